"""Text that comes in pieces, or whole again and again: which of the two, a request decides and no payload
says. Texts in, news out.

The first text of a place is told at once. One that does not begin as the one before it did is a piece; two
that go on from the one before are whole, and so is a long one that is said again. A text that is said
again word for word, or only repeats the first, may be either: it and all that follows it are held, in
order, until something decides. The last event does: it says the whole text again, or nothing.

Rule: nothing is told twice, nothing that came is dropped, nothing is told before what came before it.

Of arguments more is known: in pieces, only the first one names its call; whole ones name it every time.
So a text that goes on from the one before it is whole if it is named, and a piece if it is not. One that
fits neither is a doubt, and a call that is in doubt is never told as whole (``Arguments``).
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

from ...core.copies import begins_with, begun_by

__all__ = ["Arguments", "Growth", "News"]

News: TypeAlias = list[tuple[Any, str]]  # places, and what is new there

_GROWN = 2  # so many texts that go on from the one before are not by chance
_PIECE = 256  # characters; a longer text that is said again is none
_HELD = 64  # more texts are not held: so often nobody says a whole one without news


class Growth:
    """The texts of one stream, by their places."""

    def __init__(self) -> None:
        self.whole: bool | None = None  # does every text come whole? None: not known yet
        self._first: dict[Any, str] = {}
        self._last: dict[Any, str] = {}
        # Where texts come whole: the one that was told, in the pieces that were news.
        self._told: dict[Any, list[str]] = {}
        self._grown = 0
        self._held: News = []

    def news(self, place: Any, text: str, *, last: bool = False) -> News:
        """What may be told now that this text came, here and in the places before it."""
        if self.whole is None:
            self._weigh(place, text, last)
        self._held.append((place, text))
        if self.whole is None and (len(self._held) > 1 or place in self._told):
            return self.settled() if len(self._held) > _HELD else []
        return self._flushed()

    def silence(self, place: Any, *, last: bool = False) -> News:
        """An event said nothing in this place. A whole text would have been said again."""
        held = any(place == other for other, _ in self._held)
        if last or (held and not self._grown):
            return self.settled(whole=False)
        return []

    def settled(self, *, whole: bool | None = None) -> News:
        """What is held has to be told now: if nothing tells, only what went on is taken for whole."""
        if self._held:  # nothing is, once it is known
            self.whole = self._grown > 0 if whole is None else whole
        return self._flushed()

    def _weigh(self, place: Any, text: str, last: bool) -> None:
        before = self._last.get(place)
        self._last[place] = text
        first = self._first.setdefault(place, text)
        if before is None:
            return
        self._grown += text != before and not _repeats(text, first)
        if not text.startswith(before):
            self.whole = False
        elif last or self._grown >= _GROWN or len(before) > _PIECE:
            self.whole = True

    def _flushed(self) -> News:
        held, self._held = self._held, []
        told: News = []
        for place, text in held:
            new = self._new(place, text)
            if told and told[-1][0] == place:
                told[-1] = (place, told[-1][1] + new)
            elif new:
                told.append((place, new))
        return told

    def _new(self, place: Any, text: str) -> str:
        """What a text adds to those before it; a whole one that says less takes nothing back."""
        if self.whole is False:
            return text
        told = self._told.setdefault(place, [])
        at = begun_by(text, told)
        if at < 0 and begins_with(told, text):
            return ""
        new = text[max(at, 0) :]  # all of one that says another one: that is told as well
        if new:
            told.append(new)
        return new


def _repeats(text: str, first: str) -> bool:
    """Is it the first text, over and over?"""
    return (first * (len(text) // len(first) + 1)).startswith(text)


class _Said(NamedTuple):
    """What was said of a call's arguments so far; ``whole``: they come whole. None: not known yet."""

    id: str | None
    text: str
    whole: bool | None = None


class Arguments:
    """The arguments of calls, by their places."""

    def __init__(self) -> None:
        self._said: dict[Any, _Said] = {}

    def news(self, place: Any, id: str | None, text: str, *, named: bool) -> str | None:
        """What a text adds to those before it; None: it is neither a piece nor the whole of them."""
        said = self._said.get(place)
        if said is None or (id and said.id and id != said.id):  # another call
            self._said[place] = _Said(id, text)
            return None if said and said.text and text.startswith(said.text) else text  # or is it?
        goes_on = named and text.startswith(said.text)
        whole = said.whole
        if whole is None and said.text and text:
            whole = goes_on
        if not whole:
            held = "" if whole is False else said.text + text  # pieces are looked at no more
            self._said[place] = _Said(said.id or id, held, whole)
            return text
        if goes_on:
            self._said[place] = _Said(said.id or id, text, whole)
            return text[len(said.text) :]
        return (
            "" if named and said.text.startswith(text) else None
        )  # an older one takes nothing back
