"""Text that is said again: pieces and restated copies in, what was not told yet out.

Responses says every text up to four times: in pieces, when a part is done, when its item is done,
and in the final response. Rule: a copy is compared with what was told, part by part; only what is
missing at its end is told, and a difference is a note. So is a piece that came in a place where no
item is, or after its copy: it was told once, and is not told again. Text is held until its part is
restated; after that a hash of it is enough.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Any, TypeAlias

from ...core.copies import begun_by
from ...notes import Scribe

__all__ = ["Texts"]

Part: TypeAlias = tuple[int | None, Any]  # output index, and the part in it
MOST_STRAYS = 8  # parts that one copy is compared with, and stretches of one that are owed
NEAR = 4096  # how far a piece may be from its place


class _Owed:
    """What a copy told before its pieces came, which may come in any order. What of it has not come yet
    is held as stretches, so that no text is copied."""

    __slots__ = ("_stretches", "_text")

    def __init__(self, text: str) -> None:
        self._text = text
        self._stretches = [(0, len(text))]

    def takes(self, piece: str) -> bool:
        """Is this a piece of it that has not come yet? The next one, or one that is out of order."""
        for n, (start, end) in enumerate(self._stretches):
            near = min(end, start + len(piece) + NEAR)
            at = self._text.find(piece, start, near)
            if at >= 0 and (at == start or len(self._stretches) < MOST_STRAYS):
                rest = [(start, at), (at + len(piece), end)]
                self._stretches[n : n + 1] = [(a, b) for a, b in rest if a < b]
                return True
        return False


class Texts:
    """What was told of one kind of text."""

    def __init__(self, scribe: Scribe) -> None:
        self._scribe = scribe
        self._pieces: dict[Part, list[str]] = {}
        self._done: dict[Part, tuple[int, int]] = {}  # length and hash of what was restated
        self._outputs: dict[int | None, set[Any]] = {}  # the parts that have text, by output index
        self._homes: set[int | None] = set()  # where there is an item of this kind
        self._strays: dict[Part, None] = {}  # parts with text where there is none
        self._owed: dict[Part, _Owed] = {}
        self._marks: set[tuple[int, int]] = set()  # of all that was told, in the end

    def house(self, index: int | None) -> None:
        """There is an item of this kind at this place."""
        self._homes.add(index)

    def houses(self, index: int | None) -> bool:
        """Is there an item of this kind at this place?"""
        return index in self._homes

    def pieces(self, index: int | None, at: Any) -> list[str]:
        """The pieces of a part, to be added to: none of them is empty."""
        part = (index, at or 0)
        self._outputs.setdefault(index, set()).add(part[1])
        if index not in self._homes and part not in self._done:
            self._strays[part] = None
        return self._pieces.setdefault(part, [])

    def retold(self, index: int | None, at: Any, text: str) -> bool:
        """Was this piece told already, by a copy that came before it?"""
        owed = self._owed.get((index, at or 0))
        if owed is None or not text or not owed.takes(text):
            return False
        self._scribe.note("wire.text_mismatch")
        return True

    def news(self, index: int | None, at: Any, text: str) -> str:
        """What this copy of a whole part says that was not told."""
        part = (index, at or 0)
        if not text or self._done.get(part) == _mark(text):
            return ""
        if part in self._done:
            self._scribe.note("wire.text_mismatch")
            return ""
        if not self._pieces.get(part) and self._is_of_a_sibling(part, text):
            return ""
        told = "".join(self._pieces.get(part, ()))
        if not text.startswith(told):
            self._scribe.note("wire.text_mismatch")
            text = told
        self.pieces(index, at)
        self._pieces[part] = []
        self._strays.pop(part, None)
        self._done[part] = _mark(text)
        missing = text[len(told) :]
        missing = missing[self._told_astray(part, missing) :]
        self._owed[part] = _Owed(missing)
        return missing

    def _is_of_a_sibling(self, part: Part, text: str) -> bool:
        """Is this the copy of another part of the item, whose number was changed?"""
        for other in islice(self._outputs.get(part[0], ()), MOST_STRAYS):
            sibling = (part[0], other)
            if begun_by(text, self._pieces.get(sibling, ())) == len(text):
                self._scribe.note("wire.text_mismatch")
                self._pieces[sibling], self._done[sibling] = [], _mark(text)
                return True
        return False

    def _told_astray(self, whole: Part, missing: str) -> int:
        """How much of what is missing here was told in a place where no item is, or in another part of
        the item that was not restated."""
        astray = [part for part in islice(self._strays, MOST_STRAYS) if part[0] not in self._homes]
        others = islice(self._outputs.get(whole[0], ()), MOST_STRAYS) if missing else ()
        for part in (*astray, *((whole[0], at) for at in others)):
            told = begun_by(missing, self._pieces.get(part, ()))
            if told > 0:
                self._scribe.note("wire.text_mismatch")
                self._pieces[part] = []
                self._strays.pop(part, None)
                return told
        return 0

    def has(self, index: int | None) -> bool:
        """Was anything told at this place?"""
        return index in self._outputs

    def has_all(self, index: int | None, parts: Iterable[Any]) -> bool:
        """Are these all the parts that were told at this place? (Some wires do not number them.)"""
        return self._outputs.get(index, set()) <= {part or 0 for part in parts}

    def has_any(self) -> bool:
        """Was anything told at all?"""
        return bool(self._outputs)

    def places(self) -> int:
        """In how many places anything was told."""
        return len(self._outputs)

    def told(self, texts: Iterable[str | None]) -> bool:
        """Were all these texts told, wherever?"""
        if not self._marks:  # asked at the end only
            pieces = ("".join(pieces) for pieces in self._pieces.values())
            self._marks = {*self._done.values(), *map(_mark, pieces)}
        return all(_mark(text) in self._marks for text in texts if text)


def _mark(text: str) -> tuple[int, int]:
    return len(text), hash(text)
