"""What was said so far: turns of parts, in no provider's words.

Events of a stream fold into an assistant turn; results follow in a turn of their own. Whatever a
provider wants back exactly as it came (signatures, encrypted reasoning, item ids) stays with its
part as ``echoes`` and with the turn's ``provider``, so that an encoder can tell its own from others'.

Rule: values only. A turn never changes; a conversation only grows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, TypeAlias

import msgspec

from .events import (
    BrokenToolCall,
    Citation,
    Echo,
    Event,
    Failed,
    Finish,
    ProviderToolResult,
    ReasoningDelta,
    StreamStart,
    TextDelta,
    ToolCall,
    Usage,
)
from .tools import Media, ToolResult

__all__ = ["Conversation", "Part", "Reasoning", "Text", "Turn"]

Role: TypeAlias = Literal["system", "user", "assistant", "tool"]


class Text(msgspec.Struct, frozen=True, tag_field="kind", tag="text"):
    """Visible text."""

    text: str
    echoes: tuple[Echo, ...] = ()
    citations: tuple[Any, ...] = ()


class Reasoning(msgspec.Struct, frozen=True, tag_field="kind", tag="reasoning"):
    """What the model thought, and what its provider wants back of it."""

    text: str = ""
    echoes: tuple[Echo, ...] = ()


Part: TypeAlias = Text | Reasoning | ToolCall | ProviderToolResult | ToolResult | Media


class Turn(msgspec.Struct, frozen=True):
    """One turn of a conversation.

    ``provider`` and ``response_id`` tell whose stream an assistant turn was folded from; ``broken``
    are its calls that were never whole: they are kept for the record and never sent.
    """

    role: Role
    parts: tuple[Part, ...] = ()
    provider: str | None = None
    model: str | None = None
    response_id: str | None = None
    broken: tuple[BrokenToolCall, ...] = ()
    usage: Usage | None = None
    finish: str | None = None
    echo: Echo | None = None

    @classmethod
    def from_events(cls, events: Iterable[Event], *, choice: int = 0) -> Turn:
        """The assistant turn that a stream told.

        >>> Turn.from_events([TextDelta("Hel"), TextDelta("lo"), Finish("stop")]).text
        'Hello'
        """
        fold = _Fold(choice)
        for event in events:
            fold.add(event)
        return fold.turn()

    @property
    def text(self) -> str:
        """All visible text of the turn."""
        return "".join(part.text for part in self.parts if isinstance(part, Text))

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The calls that the client is to run."""
        return tuple(p for p in self.parts if isinstance(p, ToolCall) and p.runs_on == "client")

    @property
    def results(self) -> tuple[ToolResult, ...]:
        """The results in this turn."""
        return tuple(part for part in self.parts if isinstance(part, ToolResult))


class _Fold:
    """Deltas of one stream on their way to be parts; pieces of text are joined once."""

    def __init__(self, choice: int) -> None:
        self._choice = choice
        self._order: list[tuple[type, Any]] = []
        self._pieces: dict[tuple[type, Any], list[str]] = {}
        self._echoes: dict[tuple[type, Any], list[Echo]] = {}
        self._citations: dict[int, list[Any]] = {}
        self._facts: dict[str, Any] = {}
        self._broken: list[BrokenToolCall] = []

    def add(self, event: Event) -> None:
        match event:
            case TextDelta() | ReasoningDelta() if event.choice == self._choice:
                self._grow(Text if isinstance(event, TextDelta) else Reasoning, event)
            case ToolCall() if event.choice == self._choice:
                self._order.append((ToolCall, event))
            case ProviderToolResult():
                self._order.append((ProviderToolResult, event))
            case BrokenToolCall() if event.choice == self._choice:
                self._broken.append(event)
            case Citation():
                self._citations.setdefault(event.part, []).append(event.payload)
            case StreamStart():
                self._facts |= {
                    "provider": event.provider, "model": event.model, "response_id": event.response_id,
                }  # fmt: skip
            case Usage():
                self._facts["usage"] = event
            case Finish() | Failed():
                self._end(event)

    def _grow(self, kind: type, event: TextDelta | ReasoningDelta) -> None:
        key = kind, event.part
        if key not in self._pieces:
            self._order.append(key)
            self._pieces[key], self._echoes[key] = [], []
        self._pieces[key].append(event.text)
        if event.echo is not msgspec.UNSET:
            self._echoes[key].append(event.echo)

    def _end(self, event: Finish | Failed) -> None:
        self._facts["finish"] = event.reason
        if isinstance(event, Finish) and event.echo is not msgspec.UNSET:
            self._facts["echo"] = event.echo

    def turn(self) -> Turn:
        parts = tuple(part for key in self._order if (part := self._part(key)) is not None)
        return Turn("assistant", parts, broken=tuple(self._broken), **self._facts)

    def _part(self, key: tuple[type, Any]) -> Part | None:
        kind, what = key
        if kind in (ToolCall, ProviderToolResult):
            whole: Part = what
            return whole
        text, echoes = "".join(self._pieces[key]), tuple(self._echoes[key])
        if kind is Reasoning:
            return Reasoning(text, echoes) if text or echoes else None
        citations = tuple(self._citations.get(what, ()))
        return Text(text, echoes, citations) if text or echoes else None


class Conversation(msgspec.Struct):
    """Turns in order. Methods add to it and return it, so that they can be chained.

    >>> Conversation().user("What is the weather in Oslo?").turns[0].text
    'What is the weather in Oslo?'
    """

    turns: list[Turn] = []
    system: str | None = None

    def user(self, *parts: str | Media | Text) -> Conversation:
        """The user says something."""
        return self.add(Turn("user", tuple(Text(p) if isinstance(p, str) else p for p in parts)))

    def assistant(self, said: str | Turn | Iterable[Event]) -> Conversation:
        """The model answers: a text, a folded turn, or the events of a stream."""
        if isinstance(said, str):
            return self.add(Turn("assistant", (Text(said),)))
        return self.add(said if isinstance(said, Turn) else Turn.from_events(said))

    def results(self, results: Sequence[ToolResult]) -> Conversation:
        """The results of the calls of the last assistant turn."""
        return self.add(Turn("tool", tuple(results)))

    def add(self, turn: Turn) -> Conversation:
        """One more turn."""
        self.turns.append(turn)
        return self

    def __iter__(self) -> Iterator[Turn]:
        return iter(self.turns)

    def __len__(self) -> int:
        return len(self.turns)
