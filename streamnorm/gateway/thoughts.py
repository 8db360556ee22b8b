"""Pieces of reasoning come in; the thoughts that belong to a call go out, for clients that cannot keep them.

Rule: only what a provider wants back is kept, sealed as it would be for a client that gives it back
(``encoding.envelope``). The thoughts before a call are the call's; of them it is known how many came
before all text, so that they stand there again.
"""

from __future__ import annotations

from ..conversation import Reasoning, Turn
from ..encoding.envelope import sealed
from ..events import Event, ReasoningDelta, StreamStart, TextDelta

__all__ = ["Thoughts"]


class Thoughts:
    """Those of one answer.

    >>> thoughts = Thoughts()
    >>> thoughts.hear(ReasoningDelta("Hm.", echo={"signature": "abc"}))
    >>> [part.text for part in thoughts.taken()[0]], thoughts.taken()
    (['Hm.'], ((), 0))
    """

    def __init__(self) -> None:
        self._pieces: list[Event] = []
        self._leading = 0  # pieces before all text
        self._source, self._model = "", ""
        self._speaks = False

    def hear(self, event: Event) -> None:
        """Any event of the answer."""
        if isinstance(event, ReasoningDelta):
            self._pieces.append(event)
            self._leading += not self._speaks
        elif isinstance(event, TextDelta):
            self._speaks = self._speaks or bool(event.text)
        elif isinstance(event, StreamStart):
            self._source, self._model = event.provider, event.model or ""

    def taken(self) -> tuple[tuple[Reasoning, ...], int]:
        """Those since this was last asked, and how many of them came before all text."""
        pieces, leading = self._pieces, self._leading
        self._pieces, self._leading = [], 0
        lead, rest = self._sealed(pieces[:leading]), self._sealed(pieces[leading:])
        return (*lead, *rest), len(lead)

    def _sealed(self, pieces: list[Event]) -> list[Reasoning]:
        parts = Turn.from_events(pieces).parts
        thoughts = (part for part in parts if isinstance(part, Reasoning) and part.echoes)
        return [
            Reasoning(
                one.text, ({"sealed": sealed(self._source, self._model, one.echoes, one.marks)},)
            )
            for one in thoughts
        ]
