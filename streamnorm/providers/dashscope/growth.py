"""Text that comes in pieces, or whole again and again: which of the two, a request decides and no payload
says. Texts in, news out.

A text that begins as all that came before it may be either: it is held until the next one, or the end,
tells. What is held is the first text and the one after it, never more. Rule: nothing is told twice, and
nothing that came is dropped.
"""

from __future__ import annotations

from typing import Any

__all__ = ["Growth"]


class _Text:
    """One text that grows."""

    __slots__ = ("longer", "repeats", "told")

    def __init__(self, told: str) -> None:
        self.told = told
        self.repeats = 0  # how often the first came again, word for word
        self.longer: str | None = None  # what began as the first and went on

    def held(self) -> str:
        """What was held back, if it came in pieces."""
        held = self.told * self.repeats + (self.longer or "")
        self.repeats, self.longer = 0, None
        return held

    def snapshot(self, text: str) -> str:
        """What a whole text adds; one that says less takes nothing back."""
        if text.startswith(self.told):
            news, self.told = text[len(self.told) :], text
            return news
        if self.told.startswith(text):
            return ""
        self.told += text  # it says another one: that is told as well
        return text


class Growth:
    """The texts of one stream, by their places."""

    def __init__(self) -> None:
        self.whole: bool | None = None  # does every text come whole? None: not known yet
        self._texts: dict[Any, _Text] = {}

    def news(self, place: Any, text: str) -> str:
        """What a text adds to those before it in its place."""
        held = self._texts.get(place)
        if not text:
            return ""
        if held is None:
            self._texts[place] = _Text(text)
            return text
        if self.whole is None:
            self._decide(held, text)
        if self.whole is None:
            return ""
        if not self.whole:
            return held.held() + text
        return self.settled(place) + held.snapshot(text)

    def _decide(self, held: _Text, text: str) -> None:
        begun = held.longer or held.told
        if not text.startswith(begun):
            self.whole = False
        elif held.longer is not None:
            self.whole = True
        elif text == held.told:
            held.repeats += 1
        else:
            held.longer = text

    def settled(self, place: Any) -> str:
        """No more comes in this place: what was held is the rest of a whole text, as far as is known."""
        held = self._texts.get(place)
        if held is None:
            return ""
        if self.whole is False:
            return held.held()
        longer, held.longer, held.repeats = held.longer, None, 0
        return held.snapshot(longer) if longer is not None else ""
