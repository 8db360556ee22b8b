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
    ToolCallStart,
    Usage,
)
from .tools import Media, ToolResult

__all__ = ["Conversation", "Part", "Reasoning", "Text", "Turn"]

Role: TypeAlias = Literal["system", "user", "assistant", "tool"]


class Text(msgspec.Struct, frozen=True, tag_field="kind", tag="text"):
    """Visible text, what its provider wants back with it, and where in the text that came.

    >>> Text("Oslo is cold.").text
    'Oslo is cold.'
    """

    text: str
    echoes: tuple[Echo, ...] = ()
    citations: tuple[Any, ...] = ()
    marks: tuple[int, ...] = ()


class Reasoning(msgspec.Struct, frozen=True, tag_field="kind", tag="reasoning"):
    """What the model thought, what its provider wants back of it, and where that came.

    >>> Reasoning("Cold, I think.").text
    'Cold, I think.'
    """

    text: str = ""
    echoes: tuple[Echo, ...] = ()
    marks: tuple[int, ...] = ()


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

    def whole(self) -> Turn:
        """This turn without the calls that were never whole: what may be sent of it."""
        return msgspec.structs.replace(self, broken=())

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


_Place: TypeAlias = tuple[Any, ...]


class _Fold:
    """Deltas of one stream on their way to be parts; pieces of text are joined once.

    A part stands where it began: a call is placed by its start, as one without arguments may be told
    only when the turn is over.
    """

    def __init__(self, choice: int) -> None:
        self._choice = choice
        self._order: dict[_Place, Part | None] = {}
        self._pieces: dict[_Place, list[str]] = {}
        self._echoes: dict[_Place, list[tuple[Echo, int]]] = {}
        self._sizes: dict[_Place, int] = {}
        self._citations: dict[int, list[Any]] = {}
        self._facts: dict[str, Any] = {}
        self._broken: list[BrokenToolCall] = []

    def add(self, event: Event) -> None:
        match event:
            case TextDelta() | ReasoningDelta() if event.choice == self._choice:
                self._grow(Text if isinstance(event, TextDelta) else Reasoning, event)
            case ToolCallStart():
                self._order.setdefault((ToolCall, event.call))
            case ToolCall() if event.choice == self._choice:
                self._order[ToolCall, event.call] = event
            case ProviderToolResult():
                self._order[ProviderToolResult, len(self._order)] = event
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
        echo = None if event.echo is msgspec.UNSET else event.echo
        # Text that comes with an echo of some type is of that type: another part.
        place = kind, event.part, echo.get("type") if echo and event.text else None
        self._order.setdefault(place)
        if echo is not None:
            self._echo(place, echo)
        self._pieces.setdefault(place, []).append(event.text)
        self._sizes[place] = self._sizes.get(place, 0) + len(event.text)

    def _echo(self, place: _Place, echo: Echo) -> None:
        echoes = self._echoes.setdefault(place, [])
        if not echoes or echoes[-1][0] != echo:
            echoes.append((echo, self._sizes.get(place, 0)))

    def _end(self, event: Finish | Failed) -> None:
        self._facts["finish"] = event.reason
        if isinstance(event, Finish) and event.echo is not msgspec.UNSET:
            self._facts["echo"] = event.echo

    def turn(self) -> Turn:
        calls = iter(sorted((p for p in self._order if p[0] is ToolCall), key=lambda p: p[1]))
        # A call may be started late, so among themselves calls stand by their number.
        places = [next(calls) if place[0] is ToolCall else place for place in self._order]
        parts = (self._order[place] or self._part(place) for place in places)
        told = tuple(part for part in parts if part is not None)
        return Turn("assistant", told, broken=tuple(self._broken), **self._facts)

    def _part(self, place: _Place) -> Part | None:
        if place not in self._pieces:
            return None  # a call that was never whole
        kind, number, _ = place
        text, echoes = "".join(self._pieces[place]), self._echoes.get(place, [])
        if not text and not echoes:
            return None
        said, marks = tuple(e for e, _ in echoes), tuple(at for _, at in echoes)
        if kind is Reasoning:
            return Reasoning(text, said, marks)
        return Text(text, said, tuple(self._citations.get(number, ())), marks)


class Conversation(msgspec.Struct):
    """Turns in order. Methods add to it and return it, so that they can be chained.

    >>> Conversation().user("What is the weather in Oslo?").turns[0].text
    'What is the weather in Oslo?'
    """

    turns: list[Turn] = []
    system: str | None = None

    @classmethod
    def from_json(cls, data: bytes | str) -> Conversation:
        """The conversation that ``to_json`` wrote.

        >>> talk = Conversation().user("Hello")
        >>> Conversation.from_json(talk.to_json()) == talk
        True
        """
        return msgspec.json.decode(data, type=cls)

    def to_json(self) -> bytes:
        """All of it as JSON, echoes and media too; nothing is lost."""
        return msgspec.json.encode(self)

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
