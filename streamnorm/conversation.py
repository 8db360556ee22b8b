"""What was said so far: turns of parts, in no provider's words.

Events of a stream fold into an assistant turn; results follow in a turn of their own. Whatever a
provider wants back exactly as it came (signatures, encrypted reasoning, item ids) stays with its
part as ``echoes`` and with the turn's ``provider``, so that an encoder can tell its own from others'.

Rule: values only. A turn never changes; a conversation only grows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, TypeAlias, get_args

import msgspec

from .errors import UsageError
from .events import (
    BrokenToolCall,
    Echo,
    Event,
    Finish,
    ProviderToolResult,
    ToolCall,
    Usage,
)
from .fold import (
    Call,
    CallBroken,
    CallOpen,
    CallWhole,
    Cited,
    Fold,
    Medium,
    Move,
    Orphan,
    Result,
    Run,
    RunOpen,
    RunText,
    Shown,
    echoes_of,
)
from .text.shown import words_of
from .tools import File, Link, ToolResult

__all__ = ["Conversation", "Made", "Part", "Reasoning", "Text", "Turn"]

Role: TypeAlias = Literal["system", "user", "assistant", "tool"]
_ROLES = get_args(Role)


class Text(msgspec.Struct, frozen=True, tag_field="kind", tag="text"):
    """Visible text, what its provider wants back with it, and where in the text that came.

    >>> Text("Oslo is cold.").text
    'Oslo is cold.'
    """

    text: str
    echoes: tuple[Echo, ...] = ()
    citations: tuple[Any, ...] = ()
    marks: tuple[int, ...] = ()
    agent: str | None = None

    def __post_init__(self) -> None:
        _only(self.text, str, "a Text has a text")


class Reasoning(msgspec.Struct, frozen=True, tag_field="kind", tag="reasoning"):
    """What the model thought, what its provider wants back of it, and where that came.

    >>> Reasoning("Cold, I think.").text
    'Cold, I think.'
    """

    text: str = ""
    echoes: tuple[Echo, ...] = ()
    marks: tuple[int, ...] = ()
    agent: str | None = None

    def __post_init__(self) -> None:
        _only(self.text, str, "a Reasoning has a text")


class Made(msgspec.Struct, frozen=True, tag_field="kind", tag="made"):
    """A picture, a sound or a file that the model made: its bytes, or where they are.

    ``handle`` stands for bytes that lie in a spool (``Spool.kept`` and ``Spool.filled``).

    >>> Made("image/png", b"...").file.modality
    'image'
    """

    type: str
    data: bytes | None = None
    url: str | None = None
    echoes: tuple[Echo, ...] = ()
    agent: str | None = None
    handle: str | None = None

    def __post_init__(self) -> None:
        _only(self.type, str, "a Made has a media type")
        _only(self.data, bytes | None, "the data of a Made are bytes")

    @property
    def file(self) -> File | None:
        """The same as somebody who hands it over has it, if its bytes are at hand."""
        return None if self.data is None else File(self.data, self.type)


Part: TypeAlias = Text | Reasoning | Made | ToolCall | ProviderToolResult | ToolResult | File | Link


class Turn(msgspec.Struct, frozen=True):
    """One turn of a conversation.

    ``provider`` and ``response_id`` tell whose stream an assistant turn was folded from; ``broken``
    are its calls that were never whole: they are kept for the record and never sent, but for what a
    provider left unfinished itself, which is also a part and goes back as it came.
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

    def __post_init__(self) -> None:
        if self.role not in _ROLES:
            raise UsageError(f"a turn is of {', '.join(_ROLES)}, not of {self.role!r}")
        _only(self.parts, tuple, 'parts are a tuple, such as Turn("user", (Text("Hello"),))')
        for part in self.parts:
            _only(
                part, Part, "a part is a Text, Reasoning, Made, ToolCall, ToolResult, File or Link"
            )

    @classmethod
    def from_events(cls, events: Iterable[Event], *, choice: int = 0) -> Turn:
        """The assistant turn that a stream told.

        >>> from streamnorm import Finish, TextDelta
        >>> Turn.from_events([TextDelta("Hel"), TextDelta("lo"), Finish("stop")]).text
        'Hello'
        """
        fold, told = Fold(), _Parts(choice)
        for move in fold.feed(events):
            told.add(move)
        return cls("assistant", told.parts(), broken=tuple(told.broken), **_facts(fold))

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


class _Parts:
    """Moves of one stream on their way to be parts; pieces of text are joined once.

    A part stands where it began: a call is placed by its start, as one without arguments may be told
    only when the turn is over. Runs of one part are one, even if something came between them.
    """

    def __init__(self, choice: int) -> None:
        self._choice = choice
        self._order: dict[_Place | Call, Part | None] = {}
        self._runs: dict[_Place, list[Run]] = {}
        self._pieces: dict[_Place, list[str]] = {}
        self._citations: dict[int, list[Any]] = {}
        self.broken: list[BrokenToolCall] = []

    def add(self, move: Move) -> None:
        match move:
            case RunOpen() if move.run.choice == self._choice:
                place = _place(move.run)
                self._order.setdefault(place)
                self._runs.setdefault(place, []).append(move.run)
            case RunText() if move.run.choice == self._choice:
                self._pieces.setdefault(_place(move.run), []).append(move.text)
            case Shown() if move.medium.choice == self._choice:
                self._order[Made, len(self._order)] = _made(move.medium)
            case CallOpen():
                self._order[move.call] = None
            case CallWhole() if move.event.choice == self._choice:
                self._order[move.call] = move.event
            case CallBroken() if move.event.choice == self._choice:
                self.broken.append(move.event)
                self._order[move.call] = self._returned(move.event)
            case Result(event=ProviderToolResult()) | Orphan(event=ProviderToolResult()):
                self._order[ProviderToolResult, len(self._order)] = move.event
            case Cited():
                self._citations.setdefault(move.event.part, []).append(move.event.payload)

    def parts(self) -> tuple[Part, ...]:
        called = [place for place in self._order if isinstance(place, Call)]
        # A call may be started late, so among themselves calls stand by their number.
        calls = iter(sorted(called, key=lambda call: (call.step, call.ordinal)))
        places = [next(calls) if isinstance(place, Call) else place for place in self._order]
        parts = (self._order[place] or self._said(place) for place in places)
        return tuple(part for part in parts if part is not None)

    def _returned(self, broken: BrokenToolCall) -> ProviderToolResult | None:
        """What the provider left unfinished and wants back, unless a result has brought it."""
        told = (part.echo for part in self._order.values() if isinstance(part, ProviderToolResult))
        if not broken.goes_back or broken.echo in told:
            return None
        return ProviderToolResult(
            broken.call, broken.id, None, is_error=True, echo=broken.echo, family=broken.family
        )

    def _said(self, place: _Place | Call) -> Part | None:
        if isinstance(place, Call):
            return None  # it was never whole
        text, (echoes, marks) = "".join(self._pieces.get(place, ())), echoes_of(self._runs[place])
        _, kind, number, _, agent = place
        if kind == "reasoning":
            return Reasoning(text, echoes, marks, agent)
        return Text(text, echoes, tuple(self._citations.get(number, ())), marks, agent)


def _place(run: Run) -> _Place:
    return run.step, run.kind, run.part, run.type, run.agent


def _made(medium: Medium) -> Made:
    return Made(medium.type, medium.data, medium.url, tuple(medium.echoes), medium.agent)


def _facts(fold: Fold) -> dict[str, Any]:
    """What a stream says of its turn as a whole."""
    start, end = fold.start, fold.end
    facts: dict[str, Any] = {}
    if start is not None:
        facts = {
            "provider": start.provider, "model": start.model, "response_id": start.response_id,
        }  # fmt: skip
    if fold.usage:
        facts["usage"] = fold.usage[-1][1]
    if end is not None:
        facts["finish"] = end.reason
    if isinstance(end, Finish) and end.echo is not msgspec.UNSET:
        facts["echo"] = end.echo
    return facts


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
        try:
            return msgspec.json.decode(data, type=cls)
        except (msgspec.MsgspecError, ValueError, TypeError, RecursionError) as error:
            raise UsageError(
                f"this is no conversation: {words_of(error)}; pass what Conversation.to_json() wrote"
            ) from error

    def to_json(self) -> bytes:
        """All of it as JSON, echoes and media too; nothing is lost."""
        return msgspec.json.encode(self)

    def user(self, *parts: str | File | Link | Text) -> Conversation:
        """The user says something."""
        for part in parts:
            _only(part, str | Text | File | Link, "what a user says is text, File or Link")
        return self.add(Turn("user", tuple(Text(p) if isinstance(p, str) else p for p in parts)))

    def assistant(self, said: str | Turn | Iterable[Event]) -> Conversation:
        """The model answers: a text, a folded turn, or the events of a stream."""
        if isinstance(said, str):
            return self.add(Turn("assistant", (Text(said),)))
        _only(said, Turn | Iterable, "what a model says is a text, a Turn or its events")
        return self.add(said if isinstance(said, Turn) else Turn.from_events(said))

    def results(self, results: Sequence[ToolResult]) -> Conversation:
        """The results of the calls of the last assistant turn."""
        _only(results, list | tuple, "results are a list of ToolResult")
        for result in results:
            _only(result, ToolResult, "a result is a ToolResult, made with for_call(call, output)")
        return self.add(Turn("tool", tuple(results)))

    def add(self, turn: Turn) -> Conversation:
        """One more turn."""
        _only(turn, Turn, "a conversation is made of turns")
        self.turns.append(turn)
        return self

    @property
    def continues(self) -> bool:
        """Does a service keep what was said before, so that results here may be of calls there?"""
        return False

    def __iter__(self) -> Iterator[Turn]:
        return iter(self.turns)

    def __len__(self) -> int:
        return len(self.turns)


def _only(value: Any, kind: Any, rule: str) -> None:
    if not isinstance(value, kind):
        raise UsageError(f"{rule}, not {type(value).__name__}")
