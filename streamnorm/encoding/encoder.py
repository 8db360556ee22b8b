"""What an encoder is given and what it is: turns, calls and answers as one wire may hear them.

A provider's ``Encoder`` says them in its own words, part by part. What it is given is decided in
``plan`` (turns) and ``declare`` (tools).

Rule: a body that leaves an encoder can be said on that wire, or ``EncodeError`` names the fix.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Literal, NamedTuple, TypeAlias

from ..conversation import Made, Reasoning, Text
from ..errors import EncodeError
from ..events import Echo, ProviderToolResult, ToolCall
from ..text.written import json_text
from ..tools import File, Link, Tool, ToolChoice, ToolResult
from .fields import Field
from .ids import Grammar
from .names import PLAIN, Rule
from .schemas import ANY_KEYWORD, Dialect, Dropped

__all__ = [
    "Answer", "Body", "Called", "Encoder", "Entry", "Options", "Place", "Said", "Spoken", "filled",
    "merge",
]  # fmt: skip

Entry: TypeAlias = dict[str, Any]
Body: TypeAlias = dict[str, Any]


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
    """The result of a call that goes to this wire. ``beside``: pictures that follow it."""

    called: Called
    result: ToolResult
    beside: tuple[File, ...] = ()

    @property
    def text(self) -> str:
        """All of it as text; that it is an error is said in words."""
        text = self.result.text
        if self.result.is_error and not text.lower().startswith("error"):
            return f"Error: {text}" if text else "Error"
        return text

    @property
    def pieces(self) -> tuple[str | File, ...]:
        """Texts and media, in order; media that are not to be sent are described."""
        if not self.result.pieces:
            return (self.result.text,) if self.result.text else ()
        if self.result.inline:
            return self.result.pieces
        return (self.result.text,)


Spoken: TypeAlias = Text | Reasoning | Made | Called | ProviderToolResult | File | Link
# Where a medium that the model made goes back: in its turn, with the item of the tool that made it,
# or nowhere in what the model said.
Place: TypeAlias = Literal["turn", "item", "nowhere"]


class Said(NamedTuple):
    """One turn as it may be said: parts that this wire may hear, or the answers to calls.

    ``facts`` of the turn's end that its own provider wants back.
    """

    role: Literal["system", "user", "assistant", "tool"]
    parts: tuple[Spoken, ...] = ()
    answers: tuple[Answer, ...] = ()
    own: bool = False
    facts: Echo = {}

    @property
    def text(self) -> str:
        """All visible text in one."""
        return "".join(part.text for part in self.parts if isinstance(part, Text))

    @property
    def pieces(self) -> list[Text | File | Link]:
        """The texts and media of what a client said."""
        return [part for part in self.parts if isinstance(part, Text | File | Link)]

    @property
    def pictures(self) -> tuple[File, ...]:
        """The pictures that follow the results."""
        return tuple(media for answer in self.answers for media in answer.beside)


class Options(NamedTuple):
    """How to say things that can be said in more than one way."""

    reasoning: Literal["own", "text", "none"] = "own"
    images: Literal["native", "summary", "user", "shown"] = "native"
    model: str | None = None
    max_tokens: int | None = None
    stream: bool = True
    sdk_types: bool = False  # only fields that the provider's own SDK has a type for
    unsaid: Literal["raise", "report"] = "raise"  # a choice of tools that the wire has no word for


CHOICES: Mapping[str, tuple[str, ...]] = {
    "reasoning": ("own", "text", "none"),
    "images": ("native", "summary", "user", "shown"),
    "unsaid": ("raise", "report"),
}


# --- what a provider adds -----------------------------------------------------------------------


class Encoder:
    """One request to one wire, in its words. A provider's folder has a subclass."""

    name: ClassVar[str]
    grammar: ClassVar[Grammar]
    naming: ClassVar[Rule] = PLAIN
    dialect: ClassVar[Dialect] = ANY_KEYWORD
    fields: ClassVar[tuple[Field, ...]] = ()  # of the body, that say how to answer
    choice_at: ClassVar[tuple[str, ...]] = ("tool_choice",)  # where ``choice`` puts it
    # Modes of a choice that this wire cannot say, but that mean the same with fewer tools declared.
    narrowed: ClassVar[Mapping[str, str]] = {"allowed": "auto"}
    # Calls that a provider makes for the client to answer although it runs the tool itself.
    answerable: ClassVar[frozenset[str]] = frozenset()
    names_history_tools: ClassVar[bool] = False  # tools in the history must be declared
    says_system_anywhere: ClassVar[bool] = False
    says_parallel: ClassVar[bool] = True  # that there may be one call at a time only
    says_strict: ClassVar[bool] = True  # that arguments must follow their schema
    says_text_tools: ClassVar[bool] = False  # tools whose input is plain text, and their calls

    def __init__(self, options: Options) -> None:
        self.options = options
        self.dropped: list[Dropped] = []

    def drop(self, where: str, what: str, why: str) -> None:
        """One more row of the report."""
        self.dropped.append(Dropped(where, what, why))

    def body(self, talk: list[Said], system: str | None, tools: Body) -> Body:
        """The whole body but for ``fields``. ``tools`` declare tools and the choice."""
        raise NotImplementedError

    def entries(self, talk: Iterable[Said]) -> list[Entry]:
        """What the wire's own container holds."""
        return [entry for said in talk for entry in SAY[said.role](self, said)]

    # --- turns ------------------------------------------------------------------------------------

    def system(self, said: Said) -> list[Entry]:
        """A system turn in the midst of a conversation, on a wire that has such a thing."""
        raise self.cannot("a system message in the midst of a conversation", "leave it out")

    def user(self, said: Said) -> list[Entry]:
        raise NotImplementedError

    def linked(self, part: Link) -> Entry | None:
        """A medium of the user's at an address; None: this wire takes none of this type."""
        return None

    def contents(self, said: Said, say: Callable[[Text | File], Entry | None]) -> list[Entry]:
        """What a client said, block by block; what is at an address is said by ``linked``."""
        blocks = (self.linked(p) if isinstance(p, Link) else say(p) for p in said.pieces)
        return [block for block in blocks if block is not None]

    def assistant(self, said: Said) -> list[Entry]:
        raise NotImplementedError

    def answers(self, said: Said) -> list[Entry]:
        raise NotImplementedError

    def shown(self, said: Said) -> list[Entry]:
        """Pictures of results in a message of the user, if that is wanted."""
        return self.user(Said("user", said.pictures)) if said.pictures else []

    # --- the parts of an assistant turn, for wires that say them one by one -----------------------

    def parts(self, said: Said) -> list[Entry]:
        return [entry for part in said.parts for entry in PARTS[type(part)](self, part)]

    def text(self, part: Text) -> list[Entry]:
        raise self.cannot("a text by itself", "its encoder has no text()")

    def reasoning(self, part: Reasoning) -> list[Entry]:
        raise self.cannot("reasoning by itself", "its encoder has no reasoning()")

    def called(self, part: Called) -> list[Entry]:
        raise self.cannot("a call by itself", "its encoder has no called()")

    def place_of(self, part: Made, own: bool) -> Place:
        """Where this wire hears of a medium that the model made. ``own``: this wire's model."""
        return "nowhere"

    def made(self, part: Made) -> list[Entry]:
        raise self.cannot("what a model made", "its encoder has no made()")

    def hosted_result(self, part: ProviderToolResult) -> list[Entry]:
        """What the provider's own tool gave goes back as it came."""
        return [part.echo] if isinstance(part.echo, dict) else []

    # --- tools ------------------------------------------------------------------------------------

    def tool(self, tool: Tool, name: str, schema: dict[str, Any]) -> Entry:
        """One declaration."""
        raise NotImplementedError

    def takes_text(self, tool: Tool) -> bool:
        """Is this declared as a text tool? Not one of another wire: few of a kind of wire have them."""
        return tool.text and self.says_text_tools and (not tool.extra or self.name in tool.extra)

    def text_tool(self, tool: Tool, name: str) -> Entry:
        """One declaration of a tool whose input is plain text."""
        raise self.cannot("that a tool takes plain text", "its encoder has no text_tool()")

    def within(self, tool: Tool, entry: Entry) -> Entry:
        """A declaration where it stands, on a wire that has namespaces."""
        return entry

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
    "tool": lambda encoder, said: [*encoder.answers(said), *encoder.shown(said)],
}
PARTS: Mapping[type, Callable[[Encoder, Any], list[Entry]]] = {
    Text: lambda encoder, part: encoder.text(part),
    Reasoning: lambda encoder, part: encoder.reasoning(part),
    Made: lambda encoder, part: encoder.made(part),
    Called: lambda encoder, part: encoder.called(part),
    ProviderToolResult: lambda encoder, part: encoder.hosted_result(part),
}


# --- small helpers for encoders -----------------------------------------------------------------


def merge(entries: Iterable[Entry], key: str) -> list[Entry]:
    """Neighbours of one role as one entry, for wires on which roles take turns.

    >>> merge([{"role": "user", "parts": [1]}, {"role": "user", "parts": [2]}], "parts")
    [{'role': 'user', 'parts': [1, 2]}]
    """
    merged: list[Entry] = []
    for entry in entries:
        if merged and merged[-1]["role"] == entry["role"]:
            merged[-1][key] += entry[key]
        else:
            merged.append({**entry, key: list(entry[key])})
    return merged


def filled(entry: Entry) -> Entry:
    """The entry without the fields that say nothing.

    >>> filled({"name": "f", "description": None})
    {'name': 'f'}
    """
    return {field: value for field, value in entry.items() if value is not None}
