"""What the consumer hears: small, immutable, typed values with a string ``kind``.

Rule: an event is a value. It never changes, it knows no provider's words (those sit in ``echo``,
``payload`` and ``raw``, untouched), and ``event_from_dict(event_to_dict(e)) == e``.

msgspec structs, because building one costs a tenth of a frozen dataclass (``make bench``).
``gc=False`` where nothing inside can refer back to the event: no cycle, nothing to collect.

``echo`` is what the wire wants back with that part, in the wire's own words (a thinking signature,
an encrypted reasoning item, an item id). It is absent from the JSON unless the wire gave one, and
an event may carry an empty ``text`` only to bring it.

``agent`` is who spoke, where several voices share a stream; None where there is one.
"""

from __future__ import annotations

import re
from typing import Any, ClassVar, Literal, TypeAlias

import msgspec
from msgspec import UNSET, UnsetType

__all__ = [
    "BrokenToolCall",
    "Citation",
    "Event",
    "Failed",
    "Finish",
    "Media",
    "Provenance",
    "ProviderToolResult",
    "ReasoningDelta",
    "RecorderFailed",
    "StreamStart",
    "TextDelta",
    "ToolCall",
    "ToolCallDelta",
    "ToolCallStart",
    "ToolEnded",
    "ToolProgress",
    "ToolStarted",
    "Unrecognized",
    "Usage",
    "event_from_dict",
    "event_to_dict",
    "event_to_json",
]

RunsOn: TypeAlias = Literal["client", "provider"]
IdSource: TypeAlias = Literal["natural", "conflated", "synthetic"]
Boundary: TypeAlias = Literal["stated", "inferred"]
BrokenReason: TypeAlias = Literal[
    "truncated",
    "length",
    "provider_error",
    "invalid_json",
    "not_object",
    "limit",
    "cancelled",
    "conflict",
]
FinishReason: TypeAlias = Literal[
    "stop", "length", "tool_calls", "content_filter", "refusal", "pause", "other"
]
FailedReason: TypeAlias = Literal[
    "truncated", "provider_error", "transport", "protocol", "limit", "idle", "cancelled"
]
# invalid: the arguments do not fit the tool, and its handler was not run
ToolOutcome: TypeAlias = Literal["ok", "error", "timeout", "invalid", "cancelled"]
Echo: TypeAlias = dict[str, Any]


_tool_name = re.compile(r"[A-Za-z0-9_.:-]{1,128}").fullmatch


def is_tool_name(name: str) -> bool:
    """Letters, digits and ``_ . : -``, 128 at most: what every provider's tool names are made of."""
    return _tool_name(name) is not None


class _Event(msgspec.Struct, frozen=True, tag_field="kind"):
    """The common shape; never built by itself."""


class StreamStart(_Event, frozen=True, gc=False, tag="stream_start"):
    """The first event: which provider speaks, with which model, under which response id."""

    kind: ClassVar[Literal["stream_start"]] = "stream_start"
    provider: str
    model: str | None = None
    response_id: str | None = None


class TextDelta(_Event, frozen=True, gc=False, tag="text_delta"):
    """A piece of the visible answer. ``part`` tells one run of text from the next."""

    kind: ClassVar[Literal["text_delta"]] = "text_delta"
    text: str
    part: int = 0
    choice: int = 0
    echo: Echo | UnsetType = UNSET
    agent: str | None = None


class ReasoningDelta(_Event, frozen=True, gc=False, tag="reasoning_delta"):
    """A piece of the model's reasoning; its signature or ciphertext comes in ``echo``."""

    kind: ClassVar[Literal["reasoning_delta"]] = "reasoning_delta"
    text: str
    part: int = 0
    choice: int = 0
    echo: Echo | UnsetType = UNSET
    agent: str | None = None


class Media(_Event, frozen=True, gc=False, tag="media"):
    """A picture, a sound or a file that the model made: its bytes as they came, or where they are.

    ``part`` is its number among the media of the stream. What comes in pieces (a voice) is told in
    pieces, which belong together by it; in JSON the bytes are base64. One with neither bytes nor
    address only brings an ``echo``. Nothing is fetched: an address is the wire's, as it came.
    """

    kind: ClassVar[Literal["media"]] = "media"
    part: int
    mime_type: str
    data: bytes | None = None
    url: str | None = None
    choice: int = 0
    echo: Echo | UnsetType = UNSET
    agent: str | None = None


class ToolCallStart(_Event, frozen=True, gc=False, tag="tool_call_start"):
    """A call has an id and a name. ``call`` joins start, deltas and the end."""

    kind: ClassVar[Literal["tool_call_start"]] = "tool_call_start"
    call: int
    id: str
    name: str
    family: str = "function"
    runs_on: RunsOn = "client"
    agent: str | None = None


class ToolCallDelta(_Event, frozen=True, gc=False, tag="tool_call_delta"):
    """A fragment of a call's argument text. Never to be run; wait for ``ToolCall``."""

    kind: ClassVar[Literal["tool_call_delta"]] = "tool_call_delta"
    call: int
    text: str
    agent: str | None = None


class Provenance(msgspec.Struct, frozen=True, gc=False):
    """Where a call and its id come from.

    ``natural``: the wire's own correlation id. ``conflated``: another identifier of the item serves
    as one. ``synthetic``: minted here. ``wire_id`` is always the wire's own value, if it gave one.
    """

    id_source: IdSource
    wire_id: str | None = None
    wire_field: str | None = None
    boundary: Boundary = "stated"
    provider: str = ""
    response_id: str | None = None


class ToolCall(_Event, frozen=True, gc=False, tag="tool_call"):
    """A whole call, on the wire's own evidence: it may be run.

    ``arguments`` is parsed exactly, ``raw`` is the wire's text, ``id`` is what its result is paired
    with.

    >>> call = ToolCall(0, "call_1", "weather", {"city": "Oslo"}, '{"city":"Oslo"}')
    >>> call.arguments["city"], call.checksum[:8]
    ('Oslo', '8d0dd926')
    """

    kind: ClassVar[Literal["tool_call"]] = "tool_call"
    call: int
    id: str
    name: str
    arguments: dict[str, Any]
    raw: str
    family: str = "function"
    runs_on: RunsOn = "client"
    choice: int = 0
    provenance: Provenance = Provenance("natural")
    echo: Echo | None = None
    agent: str | None = None

    @property
    def checksum(self) -> str:
        """sha256 over the name and the canonical arguments: equal calls are equal anywhere."""
        from .text.canonical import checksum  # here, as few need it and it takes a while to import

        return checksum(self.name, self.arguments)

    @property
    def name_valid(self) -> bool:
        """Is the name one that a tool can have? A call with any other must not be dispatched."""
        return is_tool_name(self.name)


class BrokenToolCall(_Event, frozen=True, gc=False, tag="broken_tool_call"):
    """A call that is not whole: ``reason`` says why, ``raw`` keeps what was heard of it.

    ``echo`` is there if the provider, which runs the tool itself, said that it is not: the item as it
    came, to be sent back so.
    """

    kind: ClassVar[Literal["broken_tool_call"]] = "broken_tool_call"
    call: int
    id: str
    name: str
    raw: str
    reason: BrokenReason
    detail: str = ""
    family: str = "function"
    runs_on: RunsOn = "client"
    choice: int = 0
    provenance: Provenance = Provenance("natural")
    echo: Echo | UnsetType = UNSET
    agent: str | None = None

    @property
    def goes_back(self) -> bool:
        """Is it the provider's own, to be sent back as it came? All others are never sent."""
        return self.echo is not UNSET


class ToolProgress(_Event, frozen=True, gc=False, tag="tool_progress"):
    """A tool that the provider runs says how far it is; partial output comes in ``payload``."""

    kind: ClassVar[Literal["tool_progress"]] = "tool_progress"
    call: int | None
    id: str
    status: str
    payload: Any | UnsetType = UNSET


class ProviderToolResult(_Event, frozen=True, gc=False, tag="tool_result"):
    """What a tool produced that the provider ran itself. ``call`` is None for an orphan."""

    kind: ClassVar[Literal["tool_result"]] = "tool_result"
    call: int | None
    id: str
    output: Any
    is_error: bool = False
    echo: Echo | UnsetType = UNSET
    family: str | UnsetType = UNSET


class ToolStarted(_Event, frozen=True, gc=False, tag="tool_started"):
    """A tool of the client begins; told by a loop. ``checksum`` is that of what it runs with."""

    kind: ClassVar[Literal["tool_started"]] = "tool_started"
    call: int
    id: str
    name: str
    checksum: str


class ToolEnded(_Event, frozen=True, gc=False, tag="tool_ended"):
    """The same tool has ended: how, and after how many seconds. What it gave is told as settled."""

    kind: ClassVar[Literal["tool_ended"]] = "tool_ended"
    call: int
    id: str
    name: str
    checksum: str
    outcome: ToolOutcome
    seconds: float


class Citation(_Event, frozen=True, gc=False, tag="citation"):
    """An annotation of text ``part``, in the wire's own shape."""

    kind: ClassVar[Literal["citation"]] = "citation"
    part: int
    payload: Any


class Usage(_Event, frozen=True, gc=False, tag="usage"):
    """Token counts of the whole stream; told once, just before the end.

    ``input`` includes cached tokens and ``output`` includes reasoning tokens, on every provider.
    """

    kind: ClassVar[Literal["usage"]] = "usage"
    input: int | None = None
    output: int | None = None
    cached_input: int | None = None
    cache_write: int | None = None
    reasoning: int | None = None
    raw: dict[str, Any] = {}


class Finish(_Event, frozen=True, gc=False, tag="finish"):
    """The answer ended as the wire says it should. The last event of its stream."""

    kind: ClassVar[Literal["finish"]] = "finish"
    reason: FinishReason
    raw_reason: str | None = None
    echo: Echo | UnsetType = UNSET


class Failed(_Event, frozen=True, gc=False, tag="failed"):
    """The stream ended badly; every open call was broken before. The last event of its stream."""

    kind: ClassVar[Literal["failed"]] = "failed"
    reason: FailedReason
    error: str
    retryable: bool = False
    code: str | None = None


class RecorderFailed(_Event, frozen=True, gc=False, tag="recorder_failed"):
    """The recording of this stream ends here; the stream goes on. Told once, never last.

    ``path`` is the take, which can be read as far as it was written, and ``error`` why it ended.
    """

    kind: ClassVar[Literal["recorder_failed"]] = "recorder_failed"
    path: str
    error: str


class Unrecognized(_Event, frozen=True, gc=False, tag="unrecognized"):
    """A payload that has no meaning to us, kept whole."""

    kind: ClassVar[Literal["unrecognized"]] = "unrecognized"
    wire_kind: str
    payload: Any


Event: TypeAlias = (
    StreamStart
    | TextDelta
    | ReasoningDelta
    | Media
    | ToolCallStart
    | ToolCallDelta
    | ToolCall
    | BrokenToolCall
    | ToolProgress
    | ProviderToolResult
    | ToolStarted
    | ToolEnded
    | Citation
    | Usage
    | Finish
    | Failed
    | RecorderFailed
    | Unrecognized
)


def event_to_dict(event: Event) -> dict[str, Any]:
    """An event as plain values, with its ``kind``.

    >>> event_to_dict(TextDelta("hi"))
    {'kind': 'text_delta', 'text': 'hi', 'part': 0, 'choice': 0, 'agent': None}
    """
    plain: dict[str, Any] = msgspec.to_builtins(_told(event))
    return plain


def _told(event: Any) -> Any:
    """The event itself; of what a loop tells besides (a settled record), all of it by name."""
    if isinstance(event, msgspec.Struct):
        return event
    if not hasattr(event, "to_dict"):
        raise TypeError(f"an event is what a stream or a loop told, not {type(event).__name__}")
    return event.to_dict()


def event_from_dict(plain: dict[str, Any]) -> Event:
    """The event that ``event_to_dict`` described.

    >>> event_from_dict({"kind": "text_delta", "text": "hi"})
    TextDelta(text='hi', part=0, choice=0, echo=UNSET, agent=None)
    """
    event: Event = msgspec.convert(plain, Event)
    return event


def event_to_json(event: Event) -> bytes:
    """One line of tagged JSON.

    >>> event_to_json(ToolCallDelta(0, '{"a"'))
    b'{"kind":"tool_call_delta","call":0,"text":"{\\\\"a\\\\"","agent":null}'
    """
    return msgspec.json.encode(_told(event))
