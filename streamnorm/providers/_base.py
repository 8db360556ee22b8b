"""What a provider file promises: a ``Parser`` for the way in and one row that describes it.

Data comes in as the bytes of one payload; events and verbs about calls go out. A parser has

    ``decode``   bytes -> one of its payload types (msgspec structs that describe the wire),
    ``KINDS``    payload type -> handler(parser, payload, out): the only dispatch there is,
    ``QUIRKS``   place in a payload -> how to make an odd value there even,
    ``WORDS``    data that is not JSON but means something (``[DONE]``) -> handler,

and keeps what it learnt of the turn: ``reason``, ``usage``, ``echo``. It raises ``StreamOver`` at
the wire's own end mark and ``StreamFailed`` at an error the wire reports.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, NamedTuple, Protocol, TypeAlias

import msgspec

from .. import halves
from ..calls import Calls
from ..events import Echo, Event, FailedReason, FinishReason, Unrecognized, Usage
from ..framing import Framer
from ..framing.sse import SSE
from ..notes import Scribe
from . import _even

__all__ = [
    "UNREADABLE", "Failure", "Handler", "Item", "NotJson", "Parser", "Provider", "StreamFailed",
    "StreamOver", "Wire", "count", "first_text", "items_of", "plain",
]  # fmt: skip

Out: TypeAlias = list[Event]
Handler: TypeAlias = Callable[[Any, Any, Out], None]


class Decode(Protocol):
    """The bytes of one payload -> one of the payload types."""

    def __call__(self, data: bytes, /) -> Any: ...


Word: TypeAlias = Callable[[Any, Out], None]

# All that msgspec can raise for bytes from outside.
UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
MAX_REPAIRS = 64  # of one payload; each takes one complaint away
plain = msgspec.json.Decoder().decode


class Wire(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """The base of payload types. Unknown fields are complaints, so that none is lost in silence."""


class Failure(NamedTuple):
    """How a stream failed."""

    reason: FailedReason
    message: str
    code: str | None = None
    retryable: bool = False


class StreamFailed(Exception):
    """Internal: the wire reported an error, or cannot be read on."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


class StreamOver(Exception):
    """Internal: the wire said that this is the end."""


class NotJson(Exception):
    """Internal: the data of an event is not JSON."""


class Heading(NamedTuple):
    """What a stream says of itself at its beginning."""

    model: str | None = None
    response_id: str | None = None


class Parser:
    """One stream of one wire. See the module's first lines for what a provider adds."""

    name: ClassVar[str]
    END: ClassVar[str]  # the wire's end mark, for people
    MARKED: ClassVar[bool] = True  # it has one besides the end of input
    SAYS_TOOL_CALLS: ClassVar[bool] = True  # it has a finish reason for "now run the tools"
    STARTS: ClassVar[frozenset[str]] = frozenset()  # bodies that only this wire begins so
    TYPE_FIELD: ClassVar[str] = ""  # the field that an SSE event name can stand in for
    KINDS: ClassVar[Mapping[type, Handler]]
    QUIRKS: ClassVar[Mapping[str, tuple[str, _even.Quirk]]] = {}
    WORDS: ClassVar[Mapping[bytes, Word]] = {}
    REASONS: ClassVar[Mapping[str, FinishReason]] = {}
    decode: ClassVar[Decode]
    # Off the hot path, a wire may know more fields than its hot type looks at.
    decode_all: ClassVar[Decode | None] = None

    def __init__(self, calls: Calls, scribe: Scribe) -> None:
        self.calls = calls
        self.scribe = scribe
        self.reason: FinishReason | None = None
        self.raw_reason: str | None = None
        self.echo: Echo = {}

    # --- what a provider may say more about -----------------------------------------------------

    @classmethod
    def framer(cls, start: str, limit: int) -> Framer:
        """The framing of a body that begins so (see ``framing.sniff``)."""
        return SSE(limit)

    def envelope(self, data: bytes) -> int:
        """How many bytes of this payload are an envelope that the next one will repeat.

        A wire that says id, model and so on again in every payload may skip them: a payload that
        begins with the very bytes of one that was read in full is read from there on.
        """
        return 0

    @classmethod
    def looks_like(cls, payload: dict[str, Any]) -> bool:
        """Is this a payload of this wire?"""
        raise NotImplementedError

    def heading(self, data: bytes) -> Heading:
        """Model and response id, if this payload has them."""
        raise NotImplementedError

    def kind_of(self, payload: Any) -> str:
        """The wire's own name for a payload that we do not know."""
        return (
            str(payload.get("type", "?")) if isinstance(payload, dict) else type(payload).__name__
        )

    def usage(self) -> Usage | None:
        """The counts heard so far, if any."""
        raise NotImplementedError

    def end_of_input(self, out: Out) -> None:
        """The bytes ended without an end mark; say what that means for open calls."""

    # --- the turn -------------------------------------------------------------------------------

    def finish_reason(self, raw: str | None) -> FinishReason:
        """The wire's word for how the turn ended, in ours."""
        reason = self.REASONS.get(raw or "")
        if reason is None and raw:
            self.scribe.note("finish.unknown", raw_reason=raw)
        return reason or "stop"

    # --- one payload, off the hot path ----------------------------------------------------------

    def hear(self, data: bytes, event: str, out: Out) -> None:
        """Any data of any event: a word, an even payload, an odd one, or one we do not know."""
        if (word := self.WORDS.get(data.strip())) is not None:
            return word(self, out)
        try:
            payload = self._evened(data, event)
        except _even.Uneven as uneven:
            return self.unknown(self._plain(data), str(uneven), out)
        if not self.means(payload):
            return self.unknown(self._plain(data), "no field that we know", out)
        self.KINDS[type(payload)](self, payload, out)

    def unknown(self, payload: Any, why: str, out: Out) -> None:
        """A payload that has no meaning to us is passed on whole."""
        kind = self.kind_of(payload)
        self.scribe.note("wire.kind_unknown", wire_kind=kind, why=why)
        out.append(Unrecognized(kind, payload))

    def means(self, payload: Any) -> bool:
        """Does it say anything? (A wire whose payloads have no kind reads any object as one.)"""
        return True

    def _evened(self, data: bytes, event: str) -> Any:
        decode = self.decode_all or self.decode
        for _ in range(MAX_REPAIRS):
            try:
                return decode(data)
            except msgspec.ValidationError as error:
                data = self._repaired(data, error, event)
            except UnicodeDecodeError:
                data = self.only_utf8(data)
            except msgspec.DecodeError as error:
                data = self._without_halves(data, error)
            except RecursionError:
                raise NotJson("nested too deeply to be read") from None
        raise _even.Uneven("too many oddities in one payload")

    def _repaired(self, data: bytes, error: msgspec.ValidationError, event: str) -> bytes:
        try:
            data.decode()
        except UnicodeDecodeError:  # in a key, where the decoder does not complain of it
            return self.only_utf8(data)
        if event and str(error) == f"Object missing required field `{self.TYPE_FIELD}`":
            return _even.with_field(data, self.TYPE_FIELD, event)
        complaint = _even.complaint(error)
        row = self.QUIRKS.get(complaint.where)
        if row is not None:
            note, quirk = row
            self.scribe.note(note, where=complaint.where)
            return _even.change(data, complaint.path, quirk)
        self.scribe.note(
            "wire.field_unknown" if complaint.unknown else "wire.field_odd", where=complaint.where
        )
        return _even.change(data, complaint.path, lambda value: _even.DROP)

    def only_utf8(self, data: bytes) -> bytes:
        text = data.decode("utf-8", "replace")
        replaced = text.count("\ufffd") - data.count(b"\xef\xbf\xbd")
        self.scribe.note("wire.bad_utf8")
        self.scribe.counts["wire.bad_utf8"] += replaced - 1
        return text.encode()

    def _without_halves(self, data: bytes, error: msgspec.DecodeError) -> bytes:
        mended = halves.stand_in(data)
        if mended == data:
            raise NotJson(str(error)) from None
        self.calls.mended = True
        return mended

    def sound(self, raw: msgspec.Raw | bytes) -> tuple[Any, bytes]:
        """The value of a raw field and its text, mended: nobody has looked inside it before."""
        data = bytes(raw)
        try:
            return plain(data), data
        except UnicodeDecodeError:
            return self.sound(self.only_utf8(data))
        except msgspec.DecodeError as error:
            return self.sound(self._without_halves(data, error))

    def _plain(self, data: bytes) -> Any:
        try:
            return plain(halves.stand_in(data.decode("utf-8", "replace").encode()))
        except UNREADABLE as error:
            raise NotJson(str(error)) from None


class Item(NamedTuple):
    """One wire type that calls a tool or brings a tool's output. A row, not a branch."""

    type: str
    family: str
    role: str  # call, output, call+output, …
    runs_on: str  # client, provider
    id_source: str  # natural, conflated, synthetic, nullable
    id_field: str  # where the id is read
    arguments: str = ""  # where the arguments come from
    ref_field: str = ""  # how an output refers to its call
    note: str = ""


class Provider(NamedTuple):
    """One row of ``PROVIDERS``."""

    name: str
    title: str
    framing: str
    serves: str
    parser: type[Parser]
    items: tuple[Item, ...] = ()
    # More than one wire is spoken under this name: the first payload tells which.
    wires: tuple[type[Parser], ...] = ()
    # The modules of the way back, beside the parser; imported when they are first asked for.
    encoder: str | None = None
    server: str | None = None


def count(raw: Mapping[str, Any], *path: str) -> int | None:
    """A token count at a path of nested objects, if it is there and a number."""
    value: Any = raw
    for step in path:
        value = value.get(step) if isinstance(value, dict) else None
    return int(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def items_of(value: Any) -> list[Any]:
    """The items of a list; of anything else, none."""
    return value if isinstance(value, list) else []


def first_text(*candidates: Any) -> str | None:
    """The first candidate that is a text with something in it."""
    return next((c for c in candidates if isinstance(c, str) and c), None)
