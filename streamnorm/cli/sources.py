"""What a command line names as files comes in; the streams in them go out while they are read.

Rule: one file that cannot be read spares the others. What is no stream is said on stderr, the bar of
progress is there as well, and a file of any size takes little memory where its form allows that. Events
of ours that lie beside takes in a folder are no failure: they are counted, and said in one line.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, BinaryIO

from ..captures import Left, picked
from ..captures.inputs import Input, inputs
from ..captures.opened import opened
from ..captures.strangers import OUR_EVENTS
from ..text.shown import clean
from .progress import Progress, progress

if TYPE_CHECKING:
    from ..captures.tape import Bit, Part

__all__ = ["STDIN", "Sources"]

STDIN = "-"


class Sources:
    """The streams of all files, piece by piece: (part, bit)."""

    def __init__(
        self, places: Sequence[str], provider: str | None = None, *, seed: str | None = None,
        quiet: bool = False,
    ) -> None:  # fmt: skip
        self.files = 0  # that were looked at
        self.failed = 0  # that could not be read, or had something in them that could not
        self.file = ""  # that is read
        self._provider, self._seed = provider, seed
        self._places = [_picked(place) for place in places]
        self._named = {place for place, _ in self._places}
        self._several = len(places) > 1
        self._passed = 0  # files with events of ours, which were found and not named
        self._bar: Progress | None = None
        self._quiet = quiet  # no bar: what is printed stands on the same terminal

    @property
    def alone(self) -> bool:
        """Was one file named, and no other?"""
        return self.files == 1 and not self._several

    def hide(self) -> None:
        """Take the bar away, as something is to be printed."""
        if self._bar is not None:
            self._bar.hide()

    def say(self, text: str) -> None:
        """On stderr."""
        self.hide()
        print(f"streamnorm: {text}", file=sys.stderr)

    def __iter__(self) -> Iterator[tuple[Part, Bit | None]]:
        found = [(one, number) for place, number in self._places for one in _inputs(place)]
        self._several |= len(found) > 1
        sizes = [one.size for one, _ in found if isinstance(one, Input)]
        known = None if None in sizes else sum(size or 0 for size in sizes)
        if self._quiet or STDIN in [place for place, _ in self._places]:
            yield from self._read(found)
        else:
            with progress("reading", known, "B") as self._bar:
                yield from self._read(found)
        if self._passed:
            files = "1 file holds" if self._passed == 1 else f"{self._passed} files hold"
            self.say(f"{files} events of streamnorm, which are no streams: passed over.")

    def _read(
        self, found: list[tuple[Input | Left, int | None]]
    ) -> Iterator[tuple[Part, Bit | None]]:
        for one, number in found:
            self.files += 1
            if isinstance(one, Left):
                self._left(one)
                continue
            self.file = one.name
            try:
                with _Stdin() if one.name == STDIN else one.open() as file:
                    yield from self._streams(file, one.name, number)
            except (OSError, ValueError) as error:
                why = error.strerror if isinstance(error, OSError) else str(error)
                self._left(Left(one.name, f"cannot be read: {why}"))

    def _streams(
        self, file: BinaryIO, name: str, number: int | None
    ) -> Iterator[tuple[Part, Bit | None]]:
        streams = 0
        shown = "stdin" if name == STDIN else name
        for one in opened(
            file, name=shown, provider=self._provider, seed=self._seed, advance=self._advance
        ):
            if isinstance(one, Left):
                if number is None or not streams:
                    self._left(one)
                continue
            part, bit = one
            streams = max(streams, part.nth or 1)
            if number is None or (part.nth or 1) == number:
                yield part, bit
        if number is not None and number > streams and streams:
            self._left(Left(name, f"has {streams} stream{'s'[: streams > 1]}, and no #{number}."))

    def _advance(self, size: int) -> None:
        if self._bar is not None:
            self._bar.advance(size)

    def _left(self, left: Left) -> None:
        if left.why == OUR_EVENTS and left.name not in self._named:
            self._passed += 1
            return
        self.failed += not left.aside
        self.say(clean(f"{left.name} {left.why}"))


def _picked(place: str) -> tuple[str, int | None]:
    return (place, None) if place == STDIN else picked(place)


def _inputs(place: str) -> Iterator[Input | Left]:
    if place == STDIN:
        yield Input(STDIN)
    else:
        yield from inputs([place])


class _Stdin:
    """Standard input, which stays open."""

    def __enter__(self) -> BinaryIO:
        return sys.stdin.buffer

    def __exit__(self, *_: object) -> None:
        """It is not ours."""
