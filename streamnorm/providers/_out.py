"""The way back, for every wire: a conversation and tools in, a request's body out.

This file decides, in no provider's words: that every call is answered once, in the order of the
calls, directly after them; which ids and names they have there; who gets an echo (only the provider
that gave it); what is left out, each with a row in the report. A provider's ``Encoder`` says the
rest in its own words, part by part.

Rule: a body that leaves here can be said on that wire, or ``EncodeError`` names the fix.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Literal, NamedTuple, TypeAlias

import msgspec

from ..conversation import Conversation, Reasoning, Text, Turn
from ..errors import EncodeError
from ..events import Echo, ProviderToolResult, ToolCall
from ..ids import Grammar, Ids
from ..names import PLAIN, Names, Rule
from ..schemas import ANY_KEYWORD, Dialect, Dropped, lowered
from ..tools import Media, Tool, ToolChoice, ToolResult, json_text, only_whole

__all__ = [
    "Answer", "Called", "Declared", "Encoder", "Entry", "Options", "Prepared", "Said", "data_uri",
    "in_base64", "merge", "prepare", "prepare_calls", "prepare_results",
]  # fmt: skip

Entry: TypeAlias = dict[str, Any]
Body: TypeAlias = dict[str, Any]
SUMMARY_FORMAT = "<thinking>\n{}\n</thinking>"


# --- what encoders are given --------------------------------------------------------------------


class Called(NamedTuple):
    """A call with the id and the name that it has on this wire.

    ``own``: this wire made the call. Then it gets its echo back.
    """

    call: ToolCall
    id: str | None
    name: str
    own: bool

    @property
    def echo(self) -> Echo:
        """What the wire wants back with the call; nothing of another wire's."""
        return dict(self.call.echo or {}) if self.own else {}

    @property
    def text(self) -> str:
        """The arguments as JSON text: the wire's own, untouched, where it is JSON."""
        call = self.call
        is_json = call.raw and call.arguments not in ({"input": call.raw}, {"code": call.raw})
        return call.raw if is_json else json_text(call.arguments)


class Answer(NamedTuple):
    """The result of a call that goes to this wire."""

    called: Called
    result: ToolResult

    @property
    def text(self) -> str:
        """All of it as text; that it is an error is said in words."""
        text = self.result.text
        if self.result.is_error and not text.lower().startswith("error"):
            return f"Error: {text}" if text else "Error"
        return text

    @property
    def pieces(self) -> tuple[str | Media, ...]:
        """Texts and media, in order; media that are not to be sent are described."""
        if not self.result.pieces:
            return (self.result.text,) if self.result.text else ()
        if self.result.inline:
            return self.result.pieces
        return (self.result.text,)


Spoken: TypeAlias = Text | Reasoning | Called | ProviderToolResult | Media


class Said(NamedTuple):
    """One turn as it may be said: parts that this wire may hear, or the answers to calls.

    ``facts`` of the turn's end that its own provider wants back.
    """

    role: Literal["system", "user", "assistant", "tool"]
    parts: tuple[Spoken, ...] = ()
    answers: tuple[Answer, ...] = ()
    own: bool = False
    facts: Echo = {}


class Options(NamedTuple):
    """How to say things that can be said in more than one way."""

    reasoning: Literal["own", "text", "none"] = "own"
    images: Literal["summary", "user"] = "summary"
    pairing: Literal["raise", "error", "drop"] = "raise"
    model: str | None = None
    max_tokens: int | None = None
    stream: bool = True


CHOICES: Mapping[str, tuple[str, ...]] = {
    "reasoning": ("own", "text", "none"),
    "images": ("summary", "user"),
    "pairing": ("raise", "error", "drop"),
}


class Declared(NamedTuple):
    """Tools in a wire's words, and what could not be said of them."""

    tools: list[Entry]
    dropped: tuple[Dropped, ...] = ()


class Prepared(NamedTuple):
    """A request's body, and what could not be said in it."""

    body: Body
    dropped: tuple[Dropped, ...] = ()


# --- what a provider adds -----------------------------------------------------------------------


class Encoder:
    """One request to one wire, in its words. A provider's folder has a subclass.

    ``PARTS`` says how each kind of part of an assistant turn is said; ``CHOICES`` how a choice is.
    """

    name: ClassVar[str]
    path: ClassVar[str]  # of the endpoint, below its host
    container: ClassVar[str]  # the field of the body that holds the entries
    grammar: ClassVar[Grammar]
    naming: ClassVar[Rule] = PLAIN
    dialect: ClassVar[Dialect] = ANY_KEYWORD
    choice_at: ClassVar[tuple[str, ...]] = ("tool_choice",)  # where ``choice`` puts it
    # Modes of a choice that this wire cannot say, but that mean the same with fewer tools declared.
    narrowed: ClassVar[Mapping[str, str]] = {"allowed": "auto"}
    # Calls that a provider makes for the client to answer although it runs the tool itself.
    answerable: ClassVar[frozenset[str]] = frozenset()
    names_history_tools: ClassVar[bool] = False  # tools in the history must be declared
    says_system_anywhere: ClassVar[bool] = False

    def __init__(self, options: Options) -> None:
        self.options = options
        self.dropped: list[Dropped] = []

    def drop(self, where: str, what: str, why: str) -> None:
        """One more row of the report."""
        self.dropped.append(Dropped(where, what, why))

    def body(self, talk: list[Said], system: str | None, tools: Body) -> Body:
        """The whole body. ``tools`` are the fields that declare tools and the choice."""
        raise NotImplementedError

    def said(self, said: Said) -> list[Entry]:
        """The entries of one turn, in the wire's own container."""
        return SAY[said.role](self, said)

    def system(self, said: Said) -> list[Entry]:
        """A system turn in the midst of a conversation, on a wire that has such a thing."""
        raise NotImplementedError

    def user(self, said: Said) -> list[Entry]:
        raise NotImplementedError

    def assistant(self, said: Said) -> list[Entry]:
        raise NotImplementedError

    def answers(self, said: Said) -> list[Entry]:
        raise NotImplementedError

    def tool(self, tool: Tool, name: str, schema: dict[str, Any]) -> Entry:
        """One declaration."""
        raise NotImplementedError

    def tools(self, entries: list[Entry]) -> list[Entry]:
        """All declarations, as the request's field has them."""
        return entries

    def choice(self, choice: ToolChoice, tools: Sequence[tuple[Tool, str]]) -> Body:
        """The fields of the body that say what may be called."""
        raise NotImplementedError

    def tool_fields(self, tools: list[Entry], choice: Body) -> Body:
        """Where in the body tools and choice stand."""
        return ({"tools": tools} if tools else {}) | choice

    def cannot(self, what: str, fix: str) -> EncodeError:
        """This wire has no words for it."""
        return EncodeError(f"{self.name} cannot say {what}; {fix}")


SAY: Mapping[str, Callable[[Encoder, Said], list[Entry]]] = {
    "system": lambda encoder, said: encoder.system(said),
    "user": lambda encoder, said: encoder.user(said),
    "assistant": lambda encoder, said: encoder.assistant(said),
    "tool": lambda encoder, said: encoder.answers(said),
}


# --- a whole request ----------------------------------------------------------------------------


def prepare(
    encoder: Encoder,
    names: Names,
    conversation: Conversation,
    *,
    tools: Sequence[Tool],
    choice: ToolChoice | None,
    system: str | None,
) -> Prepared:
    """The body of a request that goes on with this conversation."""
    names.declare(tool.name for tool in tools if not tool.native)
    plan = _Plan(encoder, names)
    talk = plan.of(conversation)
    texts = [text for text in (system, conversation.system, *plan.system) if text]
    fields = tool_fields(encoder, names, tools, choice, talk)
    body = encoder.body(talk, "\n\n".join(texts) or None, fields)
    return Prepared(body, tuple(encoder.dropped))


def prepare_calls(encoder: Encoder, names: Names, calls: Sequence[ToolCall]) -> list[Entry]:
    """The assistant side of these calls."""
    for call in calls:
        only_whole(call, "this wire can only be told")
    called = _called(encoder, names, Ids(encoder.name, encoder.grammar), calls)
    _each_once([c.call for c in called], "two calls of one list have the id")
    return encoder.assistant(Said("assistant", tuple(called)))


def prepare_results(encoder: Encoder, names: Names, results: Sequence[ToolResult]) -> list[Entry]:
    """The answers to calls that stand before, in the order of the calls."""
    for result in results:
        if not isinstance(result, ToolResult):
            raise EncodeError(
                f"a result is a ToolResult, not {type(result).__name__}; make it with "
                "ToolResult.for_call(call, output)"
            )
    ordered = sorted(results, key=lambda result: result.call.call)
    _each_once([r.call for r in ordered], "two results answer the call")
    called = _called(encoder, names, Ids(encoder.name, encoder.grammar), [r.call for r in ordered])
    answers = tuple(Answer(c, r) for c, r in zip(called, ordered, strict=True))
    return encoder.answers(Said("tool", answers=answers)) if answers else []


def _each_once(calls: list[ToolCall], complaint: str) -> None:
    seen: set[str] = set()
    for call in calls:
        if call.id in seen:
            raise EncodeError(
                f"{complaint} {call.id!r} ({call.name}); pass each once, or all turns to request()"
            )
        seen.add(call.id)


def _called(
    encoder: Encoder, names: Names, ids: Ids, calls: Sequence[ToolCall]
) -> list[Called]:  # fmt: skip
    return [
        Called(
            call, id, names.wire(call.name) if call.runs_on == "client" else call.name,
            call.provenance.provider == encoder.name,
        )
        for call, id in zip(calls, ids.assign(calls), strict=True)
    ]  # fmt: skip


class _Plan:
    """A conversation on its way to be said on one wire."""

    def __init__(self, encoder: Encoder, names: Names) -> None:
        self._encoder = encoder
        self._names = names
        self._ids = Ids(encoder.name, encoder.grammar)
        self._talk: list[Said] = []
        self._open: dict[int, Called] = {}  # calls of the last assistant turn, by place
        self._given: dict[int, ToolResult] = {}  # and what answers them
        self._answers_at = 0  # where their answers belong
        self.system: list[str] = []  # what belongs before everything

    def of(self, conversation: Conversation) -> list[Said]:
        for number, turn in enumerate(conversation.turns):
            TURNS[turn.role](self, turn, f"turn {number}")
        self._answer_all()
        return self._talk

    # --- each kind of turn ------------------------------------------------------------------------

    def _system(self, turn: Turn, where: str) -> None:
        if self._talk and self._encoder.says_system_anywhere:
            self._talk.append(Said("system", turn.parts))  # type: ignore[arg-type]
            return
        if self._talk:
            self._encoder.drop(where, "place", "this wire has one system text, before everything")
        self.system.append(turn.text)

    def _from_client(self, turn: Turn, where: str) -> None:
        for result in turn.results:
            self._give(result, where)
        parts = tuple(part for part in turn.parts if isinstance(part, Text | Media))
        if parts:
            self._talk.append(Said("user", parts))

    def _assistant(self, turn: Turn, where: str) -> None:
        self._answer_all()
        self._refuse_broken(turn, where)
        calls = [part for part in turn.parts if isinstance(part, ToolCall)]
        called = _called(self._encoder, self._names, self._ids, calls)
        left = iter(called)
        own = turn.provider == self._encoder.name
        parts = [
            spoken
            for part in turn.parts
            if (
                spoken := self._spoken(
                    next(left) if isinstance(part, ToolCall) else part, own, where
                )
            )
        ]
        self._talk.append(Said("assistant", tuple(parts), own=own, facts=_facts(turn, own)))
        self._open = {at: c for at, c in enumerate(called) if c in parts and self._awaits(c)}
        self._answers_at = len(self._talk)

    def _awaits(self, called: Called) -> bool:
        return called.call.runs_on == "client" or called.call.name in self._encoder.answerable

    def _refuse_broken(self, turn: Turn, where: str) -> None:
        if turn.broken:
            broken = turn.broken[0]
            raise EncodeError(
                f"{where} has a call that was never whole: {broken.name!r} ({broken.reason}); send "
                "turn.whole() instead, which leaves it out, or ask the model again"
            )

    def _spoken(self, part: Any, own: bool, where: str) -> Spoken | None:
        """The part as this wire may hear it, or None."""
        hears = HEARS.get(type(part))
        if hears is None:
            raise EncodeError(
                f"{where}: an assistant turn cannot have a {type(part).__name__}; put it into a "
                "user or a tool turn"
            )
        return hears(self, part, own, where)

    def _text(self, part: Text, own: bool, where: str) -> Text:
        return part if own else Text(part.text)

    def _reasoning(self, part: Reasoning, own: bool, where: str) -> Spoken | None:
        wish = self._encoder.options.reasoning
        if own and wish != "none":
            return part
        if wish == "text" and part.text:
            return Text(SUMMARY_FORMAT.format(part.text))
        self._encoder.drop(
            where, "reasoning", "it is sent to the provider that thought it, or on request"
        )
        return None  # fmt: skip

    def _hosted_call(self, part: Called, own: bool, where: str) -> Called | None:
        if part.own or part.call.runs_on == "client":
            return part
        self._encoder.drop(
            where, part.call.name, "only the provider that ran the tool knows the call"
        )
        return None

    def _hosted_result(self, part: ProviderToolResult, own: bool, where: str) -> Spoken | None:
        if own and part.echo is not msgspec.UNSET:
            return part
        self._encoder.drop(
            where, "tool_result", "only the provider that ran the tool knows its result"
        )
        return None

    # --- answers ----------------------------------------------------------------------------------

    def _give(self, result: ToolResult, where: str) -> None:
        at = self._place_of(result, where)
        if at in self._given:
            raise EncodeError(
                f"{where}: two results answer the call {result.call.id!r} ({result.call.name}); "
                "keep one of them"
            )
        if at is not None:
            self._given[at] = result

    def _place_of(self, result: ToolResult, where: str) -> int | None:
        call = result.call
        for at, called in self._open.items():
            if called.call == call:
                return at
        if call.runs_on == "provider" and call.provenance.provider != self._encoder.name:
            return None  # the call was left out, and so is its answer
        raise EncodeError(
            f"{where}: a result for the call {call.id!r} ({call.name}), which the assistant turn "
            "before it does not have; put results after the turn that made the call, and make them "
            "with ToolResult.for_call(call, …) of that very call"
        )

    def _answer_all(self) -> None:
        """The answers to the last calls, in their order, directly behind them."""
        for at, called in self._open.items():
            if at not in self._given and called.call.runs_on == "client":
                raise EncodeError(
                    f"the call {called.call.id!r} ({called.call.name}) has no result; add one with "
                    "conversation.results([ToolResult.for_call(call, …)]) before the next turn"
                )
        answers = tuple(Answer(self._open[at], self._given[at]) for at in sorted(self._given))
        if answers:
            self._talk.insert(self._answers_at, Said("tool", answers=answers))
        self._open, self._given = {}, {}


TURNS: Mapping[str, Callable[[_Plan, Turn, str], None]] = {
    "system": _Plan._system,
    "user": _Plan._from_client,
    "tool": _Plan._from_client,
    "assistant": _Plan._assistant,
}
HEARS: Mapping[type, Callable[[_Plan, Any, bool, str], Spoken | None]] = {
    Text: _Plan._text,
    Reasoning: _Plan._reasoning,
    Called: _Plan._hosted_call,
    ProviderToolResult: _Plan._hosted_result,
}


def _facts(turn: Turn, own: bool) -> Echo:
    return dict(turn.echo or {}) if own else {}


# --- tools --------------------------------------------------------------------------------------


def declare(encoder: Encoder, names: Names, tools: Sequence[Tool]) -> Declared:
    """The declarations of these tools; those of other providers' own are left out."""
    names.declare(tool.name for tool in tools if not tool.native)
    entries = [entry for tool in tools if (entry := _entry(encoder, names, tool)) is not None]
    return Declared(encoder.tools(entries) if entries else [], tuple(encoder.dropped))


def _entry(encoder: Encoder, names: Names, tool: Tool) -> Entry | None:
    if not isinstance(tool, Tool):
        raise EncodeError(
            f"a tool is a Tool, not {type(tool).__name__}; pass Tool(name, description, schema) or "
            "Tool.from_function(function)"
        )
    if tool.native:
        native = tool.native.get(encoder.name)
        if native is None:
            encoder.drop(tool.name, "tool", f"it is run by {', '.join(tool.native)} only")
        return native
    schema, dropped = lowered(tool.schema, encoder.dialect, where=tool.name, strict=tool.strict)
    encoder.dropped += dropped
    return encoder.tool(tool, names.wire(tool.name), schema)


def tool_fields(
    encoder: Encoder,
    names: Names,
    tools: Sequence[Tool],
    choice: ToolChoice | None,
    talk: Sequence[Said] = (),
) -> Body:
    """The fields of a body that declare tools and say what may be called."""
    _check_choice(choice, tools)
    chosen, tools = _narrowed(encoder, choice, tools)
    if encoder.names_history_tools:
        tools = [*tools, *_from_history(encoder, names, tools, talk)]
    declared = declare(encoder, names, tools)
    said = {} if chosen is None else encoder.choice(chosen, _named(encoder, names, tools))
    return encoder.tool_fields(declared.tools, said)


def _named(encoder: Encoder, names: Names, tools: Sequence[Tool]) -> list[tuple[Tool, str]]:
    """The tools that this wire hears of, with their names there."""
    return [
        (tool, tool.name if tool.native else names.wire(tool.name))
        for tool in tools
        if not tool.native or encoder.name in tool.native
    ]


def _check_choice(choice: ToolChoice | None, tools: Sequence[Tool]) -> None:
    if choice is None:
        return
    if choice.mode in ("tool", "allowed") and not choice.names:
        raise EncodeError(f'the choice {choice.mode!r} names no tool; pass names=("…",)')
    unknown = set(choice.names) - {tool.name for tool in tools}
    if unknown:
        raise EncodeError(
            f"the choice names {sorted(unknown)}, which are not among the tools of this request; "
            "declare them, or choose among those that are"
        )
    if choice.mode in ("tool", "required") and not tools:
        raise EncodeError("a call is required, but there are no tools; pass tools=[…]")


def _narrowed(
    encoder: Encoder, choice: ToolChoice | None, tools: Sequence[Tool]
) -> tuple[ToolChoice | None, Sequence[Tool]]:
    """Where a wire cannot name some of the tools: declare only those. It means the same."""
    if choice is None or choice.mode not in encoder.narrowed:
        return choice, tools
    mode = encoder.narrowed[choice.mode]
    if mode == "nothing":
        encoder.drop("tool_choice", choice.mode, "said by declaring no tool")
        return None, ()
    encoder.drop("tool_choice", choice.mode, f"said by declaring only {', '.join(choice.names)}")
    said = ToolChoice(mode, parallel=choice.parallel)  # type: ignore[arg-type]
    return said, [tool for tool in tools if tool.name in choice.names]


def _from_history(
    encoder: Encoder, names: Names, tools: Sequence[Tool], talk: Sequence[Said]
) -> list[Tool]:
    """Tools that were called and are no longer declared, on a wire that wants to know them."""
    declared = {names.wire(tool.name) for tool in tools if not tool.native}
    called = {
        part.name: part
        for said in talk
        for part in said.parts
        if isinstance(part, Called) and part.call.runs_on == "client"
    }
    gone = [name for name in called if name not in declared]
    for name in gone:
        encoder.drop(name, "tool", "called before, so it is declared although it was not passed")
    return [Tool(names.original(name)) for name in gone]


# --- small helpers for encoders -----------------------------------------------------------------


def merge(entries: Iterable[Entry], key: str) -> list[Entry]:
    """Neighbours of one role as one entry, for wires on which roles take turns.

    >>> merge([{"role": "user", "parts": [1]}, {"role": "user", "parts": [2]}], "parts")
    [{'role': 'user', 'parts': [1, 2]}]
    """
    merged: list[Entry] = []
    for entry in entries:
        if merged and merged[-1]["role"] == entry["role"]:
            merged[-1] = {**merged[-1], key: [*merged[-1][key], *entry[key]]}
        else:
            merged.append(entry)
    return merged


def in_base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def data_uri(media: Media) -> str:
    """The bytes and their type as one text.

    >>> data_uri(Media(b"hi", "image/png"))
    'data:image/png;base64,aGk='
    """
    return f"data:{media.type};base64,{in_base64(media.data)}"
