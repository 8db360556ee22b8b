"""The numbers of events: each ``sequence_number`` that is looked at in, a note of a hole out.

Pieces of text and arguments do not look at theirs, which would cost too much: what came between two
events that do is counted from the lists that they were appended to. Rule: a number that jumps or goes
back says that events are missing or moved, and nobody knows whose they were, so all open calls are
tainted. An event without a number may have been counted, or not. Numbers that only ever stay as they are
say nothing, and none are none.
"""

from __future__ import annotations

from ...core.calls import Calls
from ...notes import Scribe

__all__ = ["Numbers"]


class Numbers:
    """The numbering of one response."""

    def __init__(self, calls: Calls, scribe: Scribe) -> None:
        self._calls = calls
        self._scribe = scribe
        self._next: int | None = None  # the number of the next event, but for pieces in between
        self._counts_up = False  # some only ever say 0
        self._silent = 0  # events without one since the last that had one
        self._looks = 0  # how many numbers were looked at
        self._unnumbered = 0  # pieces that came since, but for those in the lists …
        self._pieces: list[str] = []  # … of the text that is being told …
        self._pieces_before = self._fragments_before = 0  # … and of calls: those were counted

    def watch(self, pieces: list[str]) -> None:
        """Pieces of text are appended to this list from here on."""
        self._unnumbered += len(self._pieces) - self._pieces_before
        self._pieces, self._pieces_before = pieces, len(pieces)

    def skip(self) -> None:
        """A piece came that is in no list."""
        self._unnumbered += 1

    def look(self, number: int | None) -> None:
        """The number of an event off the hot path."""
        due = self._due()
        if number is None:  # it may have been counted, or not
            self._next, self._silent = due, self._silent + 1
            return
        latest, self._silent = (due or 0) + self._silent, 0
        self._next = number + 1
        self._looks += 1
        if due is None:
            return
        self._counts_up = self._counts_up or number == due
        if number > latest or (number < due and self._counts_up):
            self._scribe.note("wire.gap", expected=due, came=number)
            self._calls.taint_open("the wire's own numbering has a hole or goes back")

    def look_beside(self, number: int | None) -> None:
        """Of an event beside the response, which may have a number of another row: it counts if it is
        the one that is due."""
        due = self._due()
        self._next = due + 1 if due is not None and number == due else due

    def expect(self, number: int) -> None:
        """The next event should have this number: another connection told those before it."""
        self._next, self._counts_up = number, True
        self.counted()

    @property
    def last(self) -> int | None:
        """The number of the last event that was heard; None if they do not count up. The first one,
        alone, does not deny it."""
        due = self._due()
        alone = self._looks == 1 and due == self._next
        return due - 1 if due and (self._counts_up or alone) else None

    def _due(self) -> int | None:
        between = self._unnumbered + len(self._pieces) - self._pieces_before
        between += self._calls.pieces() - self._fragments_before
        return None if self._next is None else self._next + between

    def counted(self) -> None:
        """All that came up to here has its number."""
        self._unnumbered, self._pieces_before = 0, len(self._pieces)
        self._fragments_before = self._calls.pieces()
