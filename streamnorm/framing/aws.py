"""AWS event stream: binary frames in any chunking in, one JSON object per frame out; and written.

    u32 total | u32 headers | u32 crc of those 8 bytes | headers | payload | u32 crc of all before
    header = u8 length, name, u8 type, value; the type says how long the value is

What a frame is called stands in its headers, so the name is put around the payload, untouched:

    an event       {"contentBlockDelta": PAYLOAD}
    an exception   {":exception": {"type": "throttlingException", "payload": PAYLOAD}}
    an error       {":error": {"code": "InternalError", "message": "…", "payload": PAYLOAD}}

A service may send another wire inside: ``Envelopes`` unpacks it, and its frames are those of that
wire, as if it had come alone.

Rule: frames are read and written here alone. A frame is told when its last byte has come and both
checksums agree. Bytes that cannot be a frame end the stream, as nothing after them can be found again:
the last thing told then is ``{":broken": "what was seen"}``, after the same frames in any chunking. A
frame that the input cuts is left in ``rest``.

Why not botocore: its buffer copies all that it holds for every chunk, and is one module of a very
large package.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple, TypeAlias
from uuid import UUID
from zlib import crc32

import msgspec

from ..framing import Fields, Framer, sniff
from ..framing.lines import Lines
from ..framing.sse import SSE
from ..text.written import json_bytes, plain_values

__all__ = [
    "BROKEN", "CONTENT_TYPE", "ERROR", "EXCEPTION", "Envelope", "Envelopes", "EventStream", "Frames",
    "event_frame", "read_headers", "resealed", "write_frame",
]  # fmt: skip

CONTENT_TYPE = "application/vnd.amazon.eventstream"
# Names that no event can have, for what is not an event.
EXCEPTION, ERROR, BROKEN = ":exception", ":error", ":broken"
PRELUDE = 12  # two lengths and their checksum …
AROUND = PRELUDE + 4  # … and with the checksum of the whole: no frame is shorter
TEXT = 7  # the type of a header that is a text
MOST_WAITING = 64  # events that may be a payload or text; so many of which none is known are text
HEADINGS = 64  # different headers that are remembered; a stream has about six

Value: TypeAlias = bool | int | str | bytes | UUID
Taken: TypeAlias = tuple[Value, int]  # a value and where the next thing begins
_prelude = struct.Struct(">III").unpack_from
_u32 = struct.Struct(">I").unpack_from
_u16 = struct.Struct(">H").unpack_from
_pack_lengths, _pack = struct.Struct(">II").pack, struct.Struct(">I").pack
_pack_u16 = struct.Struct(">H").pack


class Broken(Exception):
    """Internal: these bytes cannot be a frame; the message says what was seen."""


class Around(NamedTuple):
    """What stands before and after a payload."""

    before: bytes
    after: bytes
    json: bool = True  # else the payload is text

    def put(self, payload: bytes) -> bytes:
        if not self.json:
            payload = json_bytes(payload.decode("utf-8", "replace"))
        return self.before + (payload or b"{}") + self.after


class Frames:
    """An incremental splitter: the frames as they came, both checksums of each compared.

    >>> frame = write_frame({":event-type": "ping"}, b"{}")
    >>> frames = Frames()
    >>> frames.feed(frame[:13]), frames.feed(frame[13:] + b"oops") == [frame], frames.rest()
    ([], True, [b'oops'])
    """

    def __init__(self, limit: int = 16 * 1024 * 1024) -> None:
        self.overflow = False
        self.single_lines = True
        self.lost = False  # where the next frame begins is not known any more
        self._limit = limit
        self._held: list[bytes] = []
        self._size = 0
        self._need = PRELUDE  # bytes that must be held before there is anything to look at

    def feed(self, chunk: bytes) -> list[bytes]:
        """The frames that ended in this chunk."""
        if self.lost:
            return []
        self._held.append(chunk)
        self._size += len(chunk)
        if self._size < self._need:
            return []
        frames: list[bytes] = []
        data = b"".join(self._held)
        at = self._split(data, frames)
        self._held, self._size = [data[at:]], len(data) - at
        return frames

    def rest(self) -> list[bytes]:
        """The bytes of a frame that the input cut, or those from which on there are no frames."""
        left = b"".join(self._held)
        self._held, self._size = [], 0
        return [left] if left else []

    def _split(self, data: bytes, frames: list[bytes]) -> int:
        """All whole frames of ``data``; where the rest begins."""
        at, size = 0, len(data)
        self._need = PRELUDE
        try:
            while size - at >= PRELUDE:
                total, headers = _lengths(data, at)
                if total > self._limit:
                    self.overflow = self.lost = True
                    break
                if size - at < total:
                    self._need = total
                    break
                _check(data, at, total)
                frames.append(self._told(data, at, total, headers))
                at += total
        except Broken as broken:
            self.lost = True
            self._broke(str(broken), frames)
        return at

    def _told(self, data: bytes, at: int, total: int, headers: int) -> bytes:
        return data[at : at + total]

    def _broke(self, why: str, frames: list[bytes]) -> None:
        """These bytes are no frame."""


class EventStream(Frames):
    """The frames as JSON.

    >>> frame = bytes.fromhex(
    ...     "0000002b00000013578d80a2"
    ...     "0b3a6576656e742d7479706507000470696e677b2261223a20317d394c1221"
    ... )
    >>> stream = EventStream()
    >>> stream.feed(frame[:13]), stream.feed(frame[13:]), stream.feed(frame[:-4] + b"oops")
    ([], [b'{"ping":{"a": 1}}'], [b'{":broken":"a frame of 43 bytes does not match its checksum"}'])
    """

    def __init__(self, limit: int = 16 * 1024 * 1024) -> None:
        super().__init__(limit)
        self._known: dict[bytes, Around] = {}  # by the bytes of the headers

    def rest(self) -> list[bytes]:
        """The bytes of a frame that the input cut."""
        left = super().rest()
        return [] if self.lost else left

    def head_of(self, frame: bytes) -> bytes:
        """Nothing: a frame as it is told is its own payload."""
        return b""

    def read(self, frame: bytes) -> Fields:
        """A frame as it is told is its own payload."""
        return Fields(frame)

    def _told(self, data: bytes, at: int, total: int, headers: int) -> bytes:
        body = at + PRELUDE + headers
        heading = data[at + PRELUDE : body]
        around = self._known.get(heading) or self._learn(heading)
        return around.put(data[body : at + total - 4])

    def _broke(self, why: str, frames: list[bytes]) -> None:
        frames.append(json_bytes({BROKEN: why}))

    def _learn(self, heading: bytes) -> Around:
        around = _around(read_headers(heading))
        if len(self._known) < HEADINGS:
            self._known[heading] = around
        return around


class Envelope(NamedTuple):
    """What a service puts another wire into: the events of these names."""

    whole: str  # {"bytes": base64 of one payload}
    part: str  # a stretch of the inner body, which may be cut anywhere


class Envelopes(EventStream):
    """The frames of the wire inside.

    >>> stream = Envelopes(Envelope("chunk", "part"))
    >>> stream.feed(write_frame({":event-type": "chunk"}, b'{"bytes":"eyJhIjoxfQ==","p":"ab"}'))
    [b'{"a":1}']

    What is no payload of another wire stays an event of this one, as do exceptions. Text may begin as a
    payload does: with ``knows``, the first payload that is known or the first text decides what all
    of them are, and those before it wait.
    """

    def __init__(
        self,
        envelope: Envelope,
        limit: int = 16 * 1024 * 1024,
        knows: Callable[[bytes], bool] | None = None,
    ) -> None:
        super().__init__(limit)
        self._envelope = envelope
        self._inner: Framer | None = None
        self._begun = b""  # an inner body that does not say yet how it is framed
        self._knows = knows
        self._waiting: list[bytes] = []  # events that may be a payload or text
        self._kind: type[Around] = _Whole if knows is None else _Undecided
        self._cut = False
        self._other = False  # something else was told: then no body in stretches begins any more

    @property
    def decoded(self) -> bool:
        """Was every frame one payload, and none of them cut? Then nothing marks the end but the end."""
        return self._inner is None and not self._cut

    def feed(self, chunk: bytes) -> list[bytes]:
        """The inner frames that ended in this chunk."""
        return [inner for frame in super().feed(chunk) for inner in self._unpacked(frame)]

    def rest(self) -> list[bytes]:
        """What was left of a frame, or of the inner body."""
        left = super().rest()
        self._cut = bool(left)
        if self._inner is not None:
            return left or self._inner.rest()
        return [*self._settled(Around), *left]

    def head_of(self, frame: bytes) -> bytes:
        """That of the inner framing."""
        return b"" if self._inner is None else self._inner.head_of(frame)

    def read(self, frame: bytes) -> Fields:
        """By the rules of the inner framing."""
        return Fields(frame) if self._inner is None or _is_own(frame) else self._inner.read(frame)

    def _learn(self, heading: bytes) -> Around:
        headers = read_headers(heading)
        is_event = headers.get(":message-type", "event") == "event"
        kinds: dict[str, type[Around]] = {
            self._envelope.whole: self._kind,
            self._envelope.part: _Part,
        }
        kind = kinds.get(str(headers.get(":event-type")))
        if kind is None or not is_event:
            return super()._learn(heading)
        return self._known.setdefault(heading, kind(*_around(headers)))

    def _unpacked(self, frame: bytes) -> list[bytes]:
        if frame.startswith(_PART):
            return (
                [self._put(frame[1:], self._envelope.part)]
                if self._other
                else self._stretch(frame[1:])
            )
        if frame.startswith(_UNDECIDED):
            return self._decided(frame[1:])
        self._other = True
        return [*self._settled(Around), frame] if self._waiting else [frame]

    def _stretch(self, part: bytes) -> list[bytes]:
        """Of an inner body: its frames that end here. Blank lines before the first say nothing."""
        if self._inner is None:
            self._begun = part = (self._begun + part).lstrip()
            start = sniff(part)
            if start is None:
                return []
            self._inner = Lines(self._limit) if start == "json" else SSE(self._limit)
        frames = self._inner.feed(part)
        self.single_lines = self._inner.single_lines
        self.overflow = self.overflow or self._inner.overflow
        return frames

    def _decided(self, payload: bytes) -> list[bytes]:
        """An event that may hold a payload or text, as what came before it says, or as it says."""
        if self._other and self._kind is _Undecided:  # events of this wire came before it
            self._settled(Around)
        if self._kind is not _Undecided:  # since the frames of this chunk were told
            return [self._put(payload)]
        inner, cited = _inside(payload)
        if inner and (cited or inner[:1] != b"{"):
            return [*self._settled(Around), self._put(payload)]
        assert self._knows is not None  # else nothing is undecided
        if inner and self._knows(inner):
            return [*self._settled(_Whole), self._put(payload)]
        self._waiting.append(payload)
        return [] if len(self._waiting) < MOST_WAITING else self._settled(Around)

    def _settled(self, kind: type[Around]) -> list[bytes]:
        """It is decided what these events hold: those that wait for it."""
        waiting, self._waiting = self._waiting, []
        self._kind, self._known = kind, {}
        if kind is _Whole:
            waiting = [payload for payload in waiting if _inside(payload)[0] != b""]
            if not all(_is_whole(_inside(payload)[0]) for payload in waiting):
                return [json_bytes({BROKEN: "what came before the first payload is none"})]
        return [self._put(payload) for payload in waiting]

    def _put(self, payload: bytes, part: str = "") -> bytes:
        kind = Around if part else self._kind
        return kind(*_around({":event-type": part or self._envelope.whole})).put(payload)


_PART = b"\0"  # before a stretch of an inner body, until that is framed
_UNDECIDED = b"\1"  # before an event that may hold a payload or text, until that is known


def _is_own(frame: bytes) -> bool:
    """Is it none of the inner body? Names of what is no event begin so, and no inner frame does."""
    return frame.startswith(b'{":')


class _Chunk(msgspec.Struct):
    bytes: str
    attribution: Any = None  # of a text, not of a payload


def _inside(payload: bytes) -> tuple[bytes | None, bool]:
    """The bytes that an event holds, None if they cannot be read, and whether sources are cited."""
    try:
        chunk = msgspec.json.decode(payload, type=_Chunk)
        return base64.b64decode(chunk.bytes, validate=True), chunk.attribution is not None
    except (msgspec.MsgspecError, ValueError):
        return None, False


def _is_whole(inner: bytes | None) -> bool:
    """Is what begins as a payload one to its end?"""
    try:
        msgspec.json.decode(inner or b"")
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return False
    return True


class _Whole(Around):
    """An event that holds one payload."""

    def put(self, payload: bytes) -> bytes:
        inner, cited = _inside(payload)
        return inner if inner and inner[:1] == b"{" and not cited else super().put(payload)


class _Undecided(Around):
    """An event that holds a payload or text."""

    def put(self, payload: bytes) -> bytes:
        return _UNDECIDED + payload


class _Part(Around):
    """An event that is a stretch of an inner body."""

    def put(self, payload: bytes) -> bytes:
        return _PART + payload


def _lengths(data: bytes, at: int) -> tuple[int, int]:
    """The two lengths of the frame at ``at``, once they are known to be lengths."""
    total, headers, check = _prelude(data, at)
    if crc32(data[at : at + 8]) != check:
        start = data[at : at + PRELUDE]
        raise Broken(
            f"the first {PRELUDE} bytes of a frame, {start!r}, do not match their checksum"
        )
    if headers > total - AROUND:
        raise Broken(f"a frame of the impossible length {total}, {headers} of it headers")
    return total, headers


def _check(data: bytes, at: int, total: int) -> None:
    end = at + total - 4
    if crc32(memoryview(data)[at:end]) != _u32(data, end)[0]:
        raise Broken(f"a frame of {total} bytes does not match its checksum")


# --- writing --------------------------------------------------------------------------------------


def write_frame(headers: Mapping[str, str], payload: bytes) -> bytes:
    """One frame with its checksums; the headers are texts.

    >>> write_frame({":event-type": "ping"}, b'{"a": 1}').hex()[:24]
    '0000002b00000013578d80a2'
    """
    head = b"".join(_header(*pair) for pair in headers.items())
    lengths = _pack_lengths(AROUND + len(head) + len(payload), len(head))
    return _sealed(lengths + _pack(crc32(lengths)) + head + payload)


def event_frame(name: str, body: Any, raw: str | None = "") -> bytes:
    """The frame of an event as an SDK decoded it; ``raw`` is the field that was all of its payload,
    None says that it is an exception.

    >>> Envelopes(Envelope("chunk", "")).feed(event_frame("chunk", {"bytes": b'{"a":1}'}))
    [b'{"a":1}']
    """
    data = body.get(raw) if isinstance(body, dict) else None
    if isinstance(data, str):
        with suppress(ValueError):  # what is no base64 is no body: told as the event that it is
            data = base64.b64decode(data, validate=True)
    payload = data if isinstance(data, bytes) else json_bytes(plain_values(body))
    kind = "exception" if raw is None else "event"
    return write_frame({":message-type": kind, f":{kind}-type": name}, payload)


def resealed(frame: bytes, change: Callable[[bytes], bytes]) -> bytes:
    """A frame whose headers and payload were changed, to as many bytes: its checksum fits again."""
    body = frame[PRELUDE:-4]
    changed = change(body)
    assert len(changed) == len(body)  # the lengths in the prelude have a checksum of their own
    return _sealed(frame[:PRELUDE] + changed)


def _sealed(frame: bytes) -> bytes:
    return frame + _pack(crc32(frame))


def _header(name: str, value: str) -> bytes:
    key, data = name.encode(), value.encode()
    return bytes((len(key),)) + key + bytes((TEXT,)) + _pack_u16(len(data)) + data


# --- headers ------------------------------------------------------------------------------------


def read_headers(data: bytes) -> dict[str, Value]:
    """The headers of one frame; of a name that stands twice, the last.

    >>> read_headers(b"\\x04last\\x00\\x01n\\x04\\xff\\xff\\xff\\xfe\\x01s\\x07\\x00\\x02hi")
    {'last': True, 'n': -2, 's': 'hi'}
    """
    headers: dict[str, Value] = {}
    at = 0
    try:
        while at < len(data):
            end = at + 1 + data[at]
            name = data[at + 1 : end].decode()
            headers[name], at = _TYPES[data[end]](data, end + 1)
    except (IndexError, KeyError, ValueError, struct.error) as error:
        raise Broken(f"headers that cannot be read, at byte {at} of {len(data)}") from error
    if at > len(data):
        raise Broken(f"a header that is longer than all {len(data)} bytes of them")
    return headers


def _number(form: str) -> Callable[[bytes, int], Taken]:
    reader = struct.Struct(form)
    return lambda data, at: (reader.unpack_from(data, at)[0], at + reader.size)


def _bytes(data: bytes, at: int) -> Taken:
    end = at + 2 + _u16(data, at)[0]
    return data[at + 2 : end], end


def _text(data: bytes, at: int) -> Taken:
    end = at + 2 + _u16(data, at)[0]
    return data[at + 2 : end].decode(), end


_TYPES: dict[int, Callable[[bytes, int], Taken]] = {
    0: lambda data, at: (True, at),
    1: lambda data, at: (False, at),
    2: _number(">b"),
    3: _number(">h"),
    4: _number(">i"),
    5: _number(">q"),
    6: _bytes,
    TEXT: _text,
    8: _number(">q"),  # milliseconds since 1970
    9: lambda data, at: (UUID(bytes=data[at : at + 16]), at + 16),
}


# --- what a frame is called ---------------------------------------------------------------------


def _around(headers: dict[str, Value]) -> Around:
    before, after = _KINDS.get(headers.get(":message-type"), _event)(headers)
    return Around(before, after, "json" in str(headers.get(":content-type", "json")))


def _event(headers: dict[str, Value]) -> tuple[bytes, bytes]:
    return b"{%s:" % _json(headers.get(":event-type", "?")), b"}"


def _exception(headers: dict[str, Value]) -> tuple[bytes, bytes]:
    name = _json(headers.get(":exception-type", "exception"))
    return b'{%s:{"type":%s,"payload":' % (_json(EXCEPTION), name), b"}}"


def _error(headers: dict[str, Value]) -> tuple[bytes, bytes]:
    """An error is told in its headers; it usually has no payload."""
    code, message = _json(headers.get(":error-code")), _json(headers.get(":error-message"))
    return b'{%s:{"code":%s,"message":%s,"payload":' % (_json(ERROR), code, message), b"}}"


_KINDS: dict[Any, Callable[[dict[str, Value]], tuple[bytes, bytes]]] = {
    "event": _event,
    "exception": _exception,
    "error": _error,
}


def _json(value: Value | None) -> bytes:
    return json_bytes(value if value is None else str(value))
