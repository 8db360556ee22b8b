"""How far the pipe has come in the frames of a chunk: asked by those who hand its bytes on.

Rule: told by the frame, so that any chunking tells the same. It costs nothing until it is of interest:
when a client may run a call, and when the stream has ended.
"""

from __future__ import annotations

from collections.abc import Iterator
from operator import length_hint

__all__ = ["Marks"]


class Marks:
    """Frames are counted from the last of a chunk: so many were still unread."""

    __slots__ = (
        "behind_end", "behind_ripe", "broke", "cut", "eager", "in_last_chunk", "quiet", "unread",
    )  # fmt: skip

    def __init__(self) -> None:
        self.quiet = True  # neither of the two has happened since somebody last said so
        self.unread: Iterator[object] = iter(())  # frames of this chunk behind the one being read
        self.behind_ripe: int | None = None  # … behind the first that makes a call run
        self.behind_end: int | None = None  # … behind the one that ended the stream
        self.in_last_chunk = 0  # frames of the chunk in which that was
        # The name of the first call of the client's that is not whole, though nobody says why.
        self.broke: str | None = None
        self.cut = False  # a call of the client's is not whole, for whatever reason
        self.eager = False  # what is whole may be run at once: only another call is ripe

    def ripen(self) -> None:
        """With the frame that is being read a client may run a call."""
        if self.behind_ripe is None:
            self.behind_ripe = length_hint(self.unread)
            self.quiet = False

    def ripen_whole(self) -> None:
        """The same, with a call that was told as a whole."""
        if not self.eager:
            self.ripen()
