"""What a provider file promises: a ``Parser`` for the way in and one row that describes it.

Data comes in as the bytes of one payload; events and verbs about calls go out. A parser has

    ``decode``   bytes -> one of its payload types (msgspec structs that describe the wire),
    ``KINDS``    payload type -> handler(parser, payload, out): the only dispatch there is,
    ``QUIRKS``   place in a payload -> how to make an odd value there even,
    ``WORDS``    data that is not JSON but means something (``[DONE]``) -> handler,

and keeps what it learnt of the turn: ``reason``, ``usage``, ``echo``. It raises ``StreamOver`` at
the wire's own end mark and ``StreamFailed`` at an error the wire reports.

What cannot be read may have been a part of a call. ``EVIDENCE`` says when a call of this wire is
whole, ``CALL_TEXTS``, ``CALL_KEYS`` and ``CALL_WORDS`` where it can stand, and ``calls_named`` whose place a
payload names: those calls, or all open ones, are tainted (``core.calls``).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple, Protocol, TypeAlias, Union

import msgspec

from ..events import Echo, Event, FailedReason, FinishReason, Unrecognized, Usage
from ..framing import Framer
from ..framing.sse import SSE
from ..notes import Scribe
from ..text.exact import is_deep
from ..text.halves import masked
from . import even
from .calls import NORMAL, Call, Calls, Evidence, State
from .cursor import At
from .media import Gallery, Shown

__all__ = [
    "UNREADABLE", "Failure", "Handler", "NotJson", "Parser", "Payload", "StreamFailed",
    "StreamOver", "count", "decoder_of", "field_of", "first_count", "first_text", "items_of", "plain",
    "plainly", "replaces", "silent_kinds",
]  # fmt: skip

Out: TypeAlias = list[Event]
Handler: TypeAlias = Callable[[Any, Any, Out], None]


class Decode(Protocol):
    """The bytes of one payload -> one of the payload types."""

    def __call__(self, data: bytes, /) -> Any: ...


Word: TypeAlias = Callable[[Any, Out], None]
Run: TypeAlias = Callable[[Iterator[bytes], bytes, Out], Any]

# All that msgspec can raise for bytes from outside.
UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
plain = msgspec.json.Decoder().decode
_fields = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_REPLACED = "bytes that are not UTF-8 were replaced"


class Payload(msgspec.Struct, forbid_unknown_fields=True, gc=False):
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
    QUIRKS: ClassVar[Mapping[str, tuple[str, even.Quirk]]] = {}
    WORDS: ClassVar[Mapping[bytes, Word]] = {}
    REASONS: ClassVar[Mapping[str, FinishReason]] = {}
    # Unless a wire says otherwise it closes its calls: one that it never closed is broken.
    EVIDENCE: ClassVar[Evidence] = Evidence("its own closing mark")
    # Where the text of a call stands, and what tells whose it is, as complaints spell places: a value
    # of another type there or on the way there is a loss. So is a field that we do not know if it
    # stands beside such a text or holds one of the words.
    CALL_TEXTS: ClassVar[tuple[str, ...]] = ()
    CALL_KEYS: ClassVar[tuple[str, ...]] = ()
    CALL_WORDS: ClassVar[tuple[bytes, ...]] = ()
    # Where a field that the wire does not have is an error, which a gateway has put there.
    ERRORS_AT: ClassVar[tuple[str, ...]] = ()
    decode: ClassVar[Decode]
    # Off the hot path, a wire may know more fields than its hot type looks at.
    decode_all: ClassVar[Decode | None] = None
    # A loop of its own over payloads behind one head (and its envelope, if it has one): it hears those
    # that are as usual, as their handler would, and gives back the first one that is not, for its
    # handler; None: there are no more. It raises what decoding raises, and what ends a stream.
    run: Run | None = None
    # Is the loop the shorter way for a payload that comes alone, too? It ends no stream then.
    RUNS_ALONE: ClassVar[bool] = False
    # Here and not of each stream from the start: see ``Normalizer``.
    decoded = False  # payloads came without their framing, and so without its end mark
    even_objects = False  # its arguments came as objects, not as text
    reason: FinishReason | None = None
    raw_reason: str | None = None
    choice = 0  # the answer whose end is that of the stream
    _begun = False
    _loss: str  # what the payload that is being read lacks
    _textless: bool  # … and whether that is the text of a call
    _merged: bool  # … of a payload of another kind, which has become one with it
    _gallery: Gallery | None = None

    def __init_subclass__(cls) -> None:
        """A loop is of the wire that has it: one with handlers of its own would pass them by."""
        if "run" not in vars(cls):
            cls.run = None

    def __init__(self, calls: Calls, scribe: Scribe) -> None:
        self.calls = calls
        calls.closes = bool(self.EVIDENCE.closed_by)
        self.scribe = scribe
        self.echo: Echo = {}

    # --- what a provider may say more about -----------------------------------------------------

    @classmethod
    def framer(cls, start: str, limit: int) -> Framer:
        """The framing of a body that begins so (see ``framing.sniff``)."""
        return SSE(limit)

    @classmethod
    def unpacker(cls, start: str, limit: int, knows: Callable[[bytes], bool]) -> Framer:
        """The same, of a body in which wires may be whose payloads are known so."""
        return cls.framer(start, limit)

    @classmethod
    def around(cls, wire: type[Parser]) -> type[Parser]:
        """Another wire that comes inside of this one (see ``Provider.inside``)."""
        return wire

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

    def show(
        self,
        out: Out,
        shown: Shown,
        *,
        choice: int = 0,
        place: Any = None,
        agent: str | None = None,
    ) -> None:
        """A picture or a sound, or a piece of one; ``place`` is the wire's word for where it stands."""
        if self._gallery is None:
            self._gallery = Gallery(self.scribe, self.calls.limits.media)
        self._gallery.tell(out, shown, choice=choice, place=place, agent=agent)

    def end_of_input(self, out: Out) -> None:
        """The bytes ended without an end mark; say what that means for open calls."""

    def end_of_calls(self, out: Out) -> None:
        """The turn is over and its calls are decided next: a last word on those that are open."""

    # --- going on after a cut, on a wire that can -------------------------------------------------

    def place_of(self, data: bytes) -> At | None:
        """The place that this event says it has."""
        return None

    def place(self) -> At | None:
        """The place of the last event that was heard."""
        return None

    def begins(self, data: bytes) -> bool:
        """Is this the first event of a response?"""
        return False

    def begun(self) -> int:
        """How many parts of the answer have begun."""
        return 0

    def resumed(self, at: At, begun: int) -> None:
        """Another stream told all up to here; so many parts of the answer had begun there. Copies
        of those that come yet are not news; a call that was open there is whole if it is restated."""

    # --- the turn -------------------------------------------------------------------------------

    def begin_answer(self, out: Out) -> bool:
        """The answer begins. Is it the second time? Then a gateway tried again, and what was begun
        before will not be finished."""
        again, self._begun = self._begun, True
        for call in self.calls.unfinished() if again else ():
            self.calls.void(call, out)
        return again

    def finish_reason(self, raw: str | None) -> FinishReason:
        """The wire's word for how the turn ended, in ours; a word that we do not know is ``other``."""
        self.calls.ripen_open()
        reason = self.REASONS.get(raw or "")
        if reason is None:
            self.scribe.note("finish.unknown", raw_reason=raw or "")
        return reason or "other"

    def end_with(self, raw: str | None) -> None:
        """A word for how the turn ended came; it may not be the first one."""
        reason = self.finish_reason(raw)
        if self.reason is not None and raw != self.raw_reason:
            self.scribe.note("finish.repeated", raw_reason=raw or "")
        if replaces(reason, self.reason):
            self.reason, self.raw_reason = reason, raw
        self.calls.hear_word()

    # --- one payload, off the hot path ----------------------------------------------------------

    def hear(self, data: bytes, event: str, out: Out) -> None:
        """Any data of any event: a word, an even payload, an odd one, or one we do not know."""
        if (word := self.WORDS.get(data.strip())) is not None:
            return word(self, out)
        if event == "error" and b'"error"' not in data:
            data = b'{"error":' + data + b"}"  # only the event's name says what it is
        self._loss, self._textless, self._merged = "", False, False
        objects = self.scribe.counts["args.object"]
        try:
            payload = self._evened(data, event)
            were = self.scribe.counts["args.object"] > objects
            self.calls.both_ways = were and self._says_arguments_as_text(data)
            self.even_objects = were and not self.calls.both_ways
        except even.Uneven as uneven:
            return self._unheard(self._plain(data), data, str(uneven), out)
        if not self.means(payload):
            return self._unheard(self._plain(data), data, "no field that we know", out)
        if not self._loss and self._is_worded(data) and even.says_twice(data):
            self._loss = _TWICE
        try:
            if self._loss:
                self._hear_in_doubt(payload, data, out)
            else:
                self.KINDS[type(payload)](self, payload, out)
        finally:
            self.even_objects = self.calls.both_ways = False

    def _hear_in_doubt(self, payload: Any, data: bytes, out: Out) -> None:
        """Something of it was left aside or replaced: what it says of calls cannot be all."""
        calls, why, since = self.calls, self._loss, self.calls.sizes()
        calls.lossy = why
        try:
            self.KINDS[type(payload)](self, payload, out)
        finally:
            calls.lossy = ""
            claimed = calls.taint_grown(since, why)
            if self._merged:
                calls.taint_open(why)
            self._doubt(self._plain(data), data, why, claimed=claimed)

    def _unheard(self, payload: Any, data: bytes, why: str, out: Out) -> None:
        if isinstance(payload, dict):
            kind = payload.get(self.TYPE_FIELD, "error")
            if kind == "error" and (error := payload.get("error")):  # a gateway's own
                raise StreamFailed(_plain_failure(error))
        if self._may_be_of_a_call(payload, data):
            lost = f"a payload could not be read ({why})"
            self._doubt(payload, data, lost, claimed=not self._textless)  # or it may be a new kind
        elif self._may_be_text(self.kind_of(payload), payload):
            self._doubt_growing(
                "a payload came of a kind that we do not know, and that names no place"
            )
        self.unknown(payload, why, out)

    def _says_arguments_as_text(self, data: bytes) -> bool:
        """Beside arguments that are text nobody can tell any more which were objects, and would add up."""
        payload = self._plain(data)
        places = (where for where, (note, _) in self.QUIRKS.items() if note == "args.object")
        return any(_is_text_at(payload, where.replace("[]", "").split(".")) for where in places)

    def hear_id(self, id: bytes) -> None:
        """What the framing calls an event that is heard next, on wires that count by it."""

    def hear_no_data(self, event: str) -> None:
        """An event has a name and no data. The specification ignores it; one of a kind that we know, and
        that has fields, has lost them, and what is no name is data that lost its line."""
        self.scribe.note("wire.no_data", wire_kind=event)
        fields = self._fields_by_kind().get(event)
        near = not _is_name(event) or _is_near(event, frozenset(map(str, _tags(type(self)))))
        if not _is_sign_of_life(event) and (near if fields is None else fields):
            self._doubt_growing("an event came without its data")

    def _fields_by_kind(self) -> dict[str, tuple[str, ...]]:
        """The fields of each kind of payload, by its tag."""
        return {
            str(kind.__struct_config__.tag): kind.__struct_encode_fields__  # type: ignore[attr-defined]
            for kind in self.KINDS
        }

    def _is_worded(self, data: bytes) -> bool:
        """Does it have words that only stand in pieces of a call?"""
        return any(word in data for word in self.CALL_WORDS)

    def _doubt_growing(self, why: str) -> None:
        """It may have been of the calls that go on: neither closed by now, nor a whole object."""
        for call in self.calls.unfinished():
            whole = not self.calls.may_go_on(call) and self.calls.is_whole(call)
            if call.state < State.CLOSED and not whole:
                self.calls.taint(call, why)

    def _may_be_text(self, kind: str, payload: Any) -> bool:
        """Of a kind that we do not know: does it bring a text that could be of a call? What fields say
        that the wire has elsewhere cannot, nor what is called a sign of life."""
        if _is_sign_of_life(kind):
            return False
        known = {name for kind in self.KINDS for name in kind.__struct_encode_fields__}  # type: ignore[attr-defined]
        known -= {_step.split(path, maxsplit=1)[0] for path in self.CALL_TEXTS}
        said = payload.items() if isinstance(payload, dict) else ()
        kinds = {
            kind,
            *(value for name, value in said if name.endswith("type") and type(value) is str),
        }
        return _has_text({name: value for name, value in said if name not in known}, kinds)

    def _may_be_of_a_call(self, payload: Any, data: bytes) -> bool:
        """A kind that we do not know is new and no loss, unless it names a place or a call's words. What
        says nothing at all is no new kind: it lost what it had."""
        empty = not isinstance(payload, dict) or all(v is None for v in payload.values())
        if empty or self._is_worded(data):
            return True
        kind = payload.get(self.TYPE_FIELD, payload.get("type"))
        tags = frozenset(map(str, _tags(type(self))))
        unread = bool(self.TYPE_FIELD) and (not isinstance(kind, str) or _is_near(kind, tags))
        return unread or bool(self._loss) or self.calls_named(payload) is not None

    def _doubt(self, payload: Any, data: bytes, why: str, *, claimed: bool = False) -> None:
        """What could not be read may have been of the calls whose place it names, else of any.

        Words of a call where there is none, and that begin none, are of one whose place is garbled;
        where one is over, if the payload says anything twice.
        """
        named = self.calls_named(payload) if isinstance(payload, dict) else None
        worded = self._is_worded(data)
        if named is not None and all(call.state >= State.CLOSED for call in named):
            unclaimed = not claimed and (not named or self._textless)
            named = None if worded and (unclaimed or even.says_twice(data)) else named
        if named is None or worded:
            self.calls.lost = True  # also for a call that begins only now
        for call in self.calls.unfinished() if named is None else named:
            self.calls.taint(call, why)

    def calls_named(self, payload: dict[str, Any]) -> list[Call] | None:
        """The calls whose place this payload names, none of them if it is another's; None: no place."""
        return None

    def unknown(self, payload: Any, why: str, out: Out) -> None:
        """A payload that has no meaning to us is passed on whole."""
        kind = self.kind_of(payload)
        self.scribe.note("wire.kind_unknown", wire_kind=kind, why=why)
        out.append(Unrecognized(kind, payload))

    def means(self, payload: Any) -> bool:
        """Does it say anything? (A wire whose payloads have no kind reads any object as one.)"""
        return True

    def _evened(self, data: bytes, event: str) -> Any:
        if is_deep(data):
            raise NotJson("nested too deeply to be read")
        decode, repairs = self.decode_all or self.decode, even.Repairs(data)
        unmasked: Callable[[Any], Any] = _as_it_is
        while True:
            try:
                return unmasked(decode(data))
            except msgspec.ValidationError as error:
                # Half a character in a field that is left aside would never be complained of.
                halves = masked(data) if repairs.fresh and unmasked is _as_it_is else None
                if halves is None:
                    data = repairs.checked(self._repaired(data, error, event, repairs))
                else:
                    data, unmasked, self.calls.mended = halves[0], halves[1].unmasked, True
            except UnicodeDecodeError:
                data = self.only_utf8(data)
            except msgspec.DecodeError as error:
                data, unmasked = self._without_halves(data, error)
            except RecursionError:  # the program is itself that deep in its calls
                raise NotJson("nested too deeply to be read") from None

    def _repaired(
        self, data: bytes, error: msgspec.ValidationError, event: str, repairs: even.Repairs
    ) -> bytes:
        try:
            data.decode()
        except UnicodeDecodeError:  # in a key, where the decoder does not complain of it
            return self.only_utf8(data)
        if str(error) == f"Object missing required field `{self.TYPE_FIELD}`":
            return even.with_field(data, self.TYPE_FIELD, event)
        complaint = even.complaint(error)
        if repairs.fresh and even.says_twice(data):
            self._loss = _TWICE
        row = None if complaint.unknown else self.QUIRKS.get(complaint.where)
        if repairs.begin(complaint.path) and row is not None:
            note, quirk = row
            self.scribe.note(note, where=complaint.where)
            return self._changed(data, complaint, quirk, repairs)
        self.scribe.note(
            "wire.field_unknown" if complaint.unknown else "wire.field_odd", where=complaint.where
        )
        return self._changed(data, complaint, _left_aside, repairs)

    def _changed(
        self, data: bytes, complaint: even.Complaint, quirk: even.Quirk, repairs: even.Repairs
    ) -> bytes:
        beside = even.fields_at(data, complaint.path[:-1])
        if complaint.unknown and repairs.hopeless(len(beside)):
            raise even.Uneven("too many fields that we do not know")
        dropped: list[bytes] = []

        def changed(value: bytes) -> bytes | None:
            new = quirk(value)
            if new is even.DROP:
                dropped.append(value)
            elif self._is_moved(complaint.where, value):
                self._loss = f"{complaint.where} has words of a call"
            return new

        data = even.change(data, complaint.path, changed)
        beside = {name: raw for name, raw in beside.items() if bytes(raw) != b"null"}
        if dropped and complaint.where in self.ERRORS_AT and (error := self._plain(dropped[0])):
            raise StreamFailed(_plain_failure(error))
        if dropped and self.is_loss(complaint, dropped[0], beside):
            self._loss = f"{complaint.where} could not be read"
            self._textless = self._is_text_of_a_call(complaint.where, dropped[0])
            self._merged |= self._is_of_another_kind(complaint)
        elif self._may_be_input(complaint.inside, *dropped[:1], beside=beside):
            self.calls.lost = True
        return data

    def _may_be_input(
        self, inside: str, value: bytes = b"null", *, beside: Mapping[str, msgspec.Raw]
    ) -> bool:
        """Was a field left aside in the entry of a call that says no text? A number is no text, nor is an
        empty one, but it may be a field of its input: what looks empty may not be."""
        names = {_name(path) for path in self.CALL_TEXTS if inside and _inside(path) == inside}
        return value != b"null" and bool(names) and beside.keys().isdisjoint(names)

    def _is_text_of_a_call(self, where: str, value: bytes) -> bool:
        """Is it a call's text that is left aside, or has it one?"""
        names = (b'"%b"' % _name(path).encode() for path in self.CALL_TEXTS)
        return where in self.CALL_TEXTS or any(name in value for name in names)

    def _is_of_another_kind(self, complaint: even.Complaint) -> bool:
        """Has this kind of payload no such field, where another has one that leads to a call's text? Two
        have become one: of the text nobody knows the place."""
        step = complaint.where.count("."), _name(complaint.where)
        return complaint.unknown and step in _steps(self.CALL_TEXTS)

    def _is_moved(self, where: str, value: bytes) -> bool:
        """Does what only calls say stand in a place that leads to no call?"""
        leads = any(_on_the_way(where, path) for path in self.CALL_TEXTS)
        return not leads and self._is_worded(value)

    def is_loss(
        self, complaint: even.Complaint, value: bytes, beside: dict[str, msgspec.Raw]
    ) -> bool:
        """May the value that is left aside have been a part of a call? ``beside``: its neighbours that say
        anything.

        A field that we do not know is new, and no loss, where a call's text stands beside it; where
        the text is missing it may be the text under another name, and a number the place. One that
        has a name which only calls have was moved, and so was a text where names lead to a call's.
        """
        where = complaint.where
        said = b'"%b"%b' % (_name(where).encode(), value) if complaint.unknown else value
        if where == self.TYPE_FIELD:
            return value != b"null"  # which leaves it to the event's name
        if any(word in said for word in self.CALL_WORDS):
            return value not in _NOTHING
        if not complaint.unknown:
            paths = (*self.CALL_TEXTS, *self.CALL_KEYS)
            nothing = value == b"null" and where not in paths and not where.endswith("[]")
            return not nothing and any(_on_the_way(where, path) for path in paths)
        if value[:1] == b'"' and self._is_of_another_kind(complaint):
            return True
        is_text = value[:1] in b'"{[' and value != b'""'
        kin = (is_text, self.CALL_TEXTS), (value.isdigit(), self.CALL_KEYS)
        names = [_name(path) for could_be, paths in kin if could_be
                 for path in paths if _inside(path) == complaint.inside]  # fmt: skip
        if not complaint.inside:
            known = self._fields_by_kind().get(self._tag_of(beside), ())
            names = [name for name in names if name in known]
        return bool(names) and beside.keys().isdisjoint(names)

    def _tag_of(self, fields: Mapping[str, msgspec.Raw]) -> str:
        """What kind a payload says that it is."""
        said = bytes(fields.get(self.TYPE_FIELD, msgspec.Raw()))
        return said.strip(b'"').decode("utf-8", "replace")

    def only_utf8(self, data: bytes) -> bytes:
        text = data.decode("utf-8", "replace")
        replaced = text.count("\ufffd") - data.count(b"\xef\xbf\xbd")
        self.scribe.note("wire.bad_utf8")
        self.scribe.counts["wire.bad_utf8"] += replaced - 1
        self._loss = _REPLACED
        return text.encode()

    def _without_halves(
        self, data: bytes, error: msgspec.DecodeError
    ) -> tuple[bytes, Callable[[Any], Any]]:
        mended = masked(data)
        if mended is None:
            raise NotJson(str(error)) from None
        self.calls.mended = True
        return mended[0], mended[1].unmasked

    def sound(self, raw: msgspec.Raw | bytes) -> tuple[Any, bytes]:
        """The value of a raw field and its text, mended: nobody has looked inside it before."""
        data = bytes(raw)
        try:
            return self._whatever_halves(data), data
        except UnicodeDecodeError:
            self.calls.lossy = _REPLACED
            return self.sound(self.only_utf8(data))

    def ask_once(self, raw: bytes) -> None:
        """A raw field that begins or states a call: has it a field twice?"""
        if not even.is_said_once(raw) and even.says_twice(raw):
            self.calls.lossy = _TWICE

    def _whatever_halves(self, data: bytes) -> Any:
        try:
            return plain(data)
        except msgspec.DecodeError as error:
            mended, unmasked = self._without_halves(data, error)
            return unmasked(plain(mended))

    def exact(self, raw: msgspec.Raw, call: Call | None = None) -> str:
        """The exact text of a JSON value, nothing for null; what had to be replaced taints the call."""
        try:
            text = str(raw, "utf-8")
        except UnicodeDecodeError:
            self.scribe.note("wire.bad_utf8")
            text = bytes(raw).decode("utf-8", "replace")
            if call is None:
                self.calls.lossy = _REPLACED
            else:
                self.calls.taint(call, _REPLACED)
        return "" if text == "null" else text

    def exact_copy(self, raw: msgspec.Raw) -> str | None:
        """The same of a copy of what was heard; None if something had to be replaced: that is no copy."""
        try:
            text = str(raw, "utf-8")
        except UnicodeDecodeError:
            self.scribe.note("wire.bad_utf8")
            return None
        return "" if text == "null" else text

    def _plain(self, data: bytes) -> Any:
        try:
            payload = plainly(data)
            self.calls.mended = self.calls.mended or masked(data) is not None
            return payload
        except UNREADABLE as error:
            raise NotJson(str(error)) from None


_NOTHING = (b"null", b'""', b"[]", b"{}")
_step = re.compile(r"[.\[]")
_is_name = re.compile(r"[\w.:/ -]*").fullmatch
_is_sign_of_life = re.compile(r"ping|keep.?alive|heart.?beat", re.I).search
_TWICE = "a field of a payload is said twice"


def replaces(reason: FinishReason, held: FinishReason | None) -> bool:
    """Does this end of a turn count, where another was said before it? One that is not normal stands,
    whatever comes after it, and ``stop`` says less than any other."""
    return held in (None, "stop") or (held in NORMAL and reason != "stop")


def _plain_failure(error: Any) -> Failure:
    said = error if isinstance(error, dict) else {"message": str(error)}
    number = said.get("code")
    code = first_text(said.get("type"), str(number) if isinstance(number, int) else number)
    message = first_text(said.get("message"), code) or "the provider reported an error"
    return Failure("provider_error", message, code)


def _has_text(said: Any, kinds: set[Any]) -> bool:
    """Is there a text anywhere in it, beside those that say of what kind it is?"""
    unseen = [said]
    while unseen:
        value = unseen.pop()
        if isinstance(value, dict):
            unseen += [inner for name, inner in value.items() if not name.endswith("type")]
        elif isinstance(value, list):
            unseen += value
        elif isinstance(value, str) and value and value not in kinds:
            return True
    return False


def _tags(parser: type[Parser]) -> set[Any]:
    """The kinds of payload that a wire's types are tagged with."""
    return {kind.__struct_config__.tag for kind in parser.KINDS}  # type: ignore[attr-defined]


@lru_cache(maxsize=256)
def _is_near(kind: str, tags: frozenset[str]) -> bool:
    """Is this a kind of the wire, or one with a letter or two changed?"""
    from difflib import get_close_matches

    return bool(get_close_matches(kind[:80], tags, 1, 0.94))


def decoder_of(kinds: Iterable[type]) -> Decode:
    """What decodes any payload of a table of kinds, into the one that its tag names."""
    decode: Decode = msgspec.json.Decoder(Union[tuple(kinds)]).decode  # noqa: UP007  of a table
    return decode


def silent_kinds(
    tags: Iterable[str], base: type[msgspec.Struct], handler: Handler
) -> dict[type, Handler]:
    """Kinds that are known, and of which nothing is told."""
    return {
        msgspec.defstruct(tag, (), bases=(base,), tag=tag, tag_field="type", gc=False): handler
        for tag in tags
    }


def plainly(data: bytes) -> Any:
    """The value of a payload whatever is odd about its characters."""
    try:
        return plain(data)
    except UNREADABLE:
        data = data.decode("utf-8", "replace").encode()
    mended = masked(data)
    return plain(data) if mended is None else mended[1].unmasked(plain(mended[0]))


def field_of(data: bytes, name: str) -> Any:
    """One field of a payload, whatever is odd about the rest of it; None if it has none."""
    try:
        said = _fields(data).get(name)  # passes the others by, which may be long
        return None if said is None else plain(said)
    except UNREADABLE:
        pass
    try:
        payload = plainly(data)
    except UNREADABLE:
        return None
    return payload.get(name) if isinstance(payload, dict) else None


def _is_text_at(value: Any, names: list[str]) -> bool:
    """Does a text stand at this place of a payload, in any item of the lists on the way?"""
    if isinstance(value, list):
        return any(_is_text_at(item, names) for item in value)
    if not names:
        return isinstance(value, str) and value != ""
    return isinstance(value, dict) and _is_text_at(value.get(names[0]), names[1:])


def _as_it_is(value: Any) -> Any:
    return value


def _left_aside(value: bytes) -> bytes | None:
    return even.DROP


def _inside(where: str) -> str:
    return where.rpartition(".")[0]


def _name(where: str) -> str:
    return where.rpartition(".")[2].removesuffix("[]")


@lru_cache(maxsize=64)
def _steps(paths: tuple[str, ...]) -> frozenset[tuple[int, str]]:
    """All that is on the way to one of these places: how deep, and its name."""
    ways = (path.replace("[]", "").split(".")[:-1] for path in paths)
    return frozenset(step for way in ways for step in enumerate(way))


def _on_the_way(where: str, path: str) -> bool:
    """Does a call's path lead through this place, or to it?"""
    return path == where or path.startswith((f"{where}.", f"{where}["))


def count(raw: Mapping[str, Any], *path: str) -> int | None:
    """A token count at a path of nested objects, if it is there and a number."""
    value: Any = raw
    for step in path:
        value = value.get(step) if isinstance(value, dict) else None
    return int(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def first_count(raw: Mapping[str, Any], *paths: tuple[str, ...]) -> int | None:
    """The count at the first path that has one."""
    return next((n for path in paths if (n := count(raw, *path)) is not None), None)


def items_of(value: Any) -> list[Any]:
    """The items of a list; of anything else, none."""
    return value if isinstance(value, list) else []


def first_text(*candidates: Any) -> str | None:
    """The first candidate that is a text with something in it."""
    for candidate in candidates:
        if candidate and isinstance(candidate, str):
            return candidate
    return None
