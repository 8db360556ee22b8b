"""The beginning of a stream: first bytes and payloads in; framing, wire and heading out.

Rule: nothing is decided at a chunk. Bytes are held until they say what the body is, and payloads are
read one by one until they say whose they are; so any chunking opens a stream alike.
"""

from __future__ import annotations

from typing import Any

from . import providers
from .core.calls import Calls
from .core.parser import UNREADABLE, Failure, Heading, Parser, StreamFailed, plainly
from .framing import Framer, sniff
from .framing.lines import Values
from .framing.sse import SSE
from .notes import Scribe

__all__ = ["Opening", "framed_by", "is_json"]

SNIFF = 80  # bytes that decide what a body is, and are shown if it is none
# How the first event of a stream that was cut can begin: data:, event:, JSON, an AWS frame, a comment.
_BEGINNINGS = {b"d", b"e", b"{", b"[", b"\0", b":"}
_OUTER = {"aws"}  # what a wire that is inside of another begins with
_NO_STREAM = {
    "gzip": "the bytes are gzip, not text: feed decoded bytes (httpx: aiter_bytes, not aiter_raw).",
    "html": "the body is an HTML page, not a stream: look at the URL, the proxy and the status.",
}


class Opening:
    """What is known of a stream that has just begun."""

    def __init__(self, provider: str, calls: Calls, scribe: Scribe, frame_bytes: int) -> None:
        self._wires = providers.parsers_of(provider)  # several: the first payload decides
        self._outer = _outer(provider)  # whose envelope it is, while another wire may be inside
        self._calls, self._scribe = calls, scribe
        self._frame_bytes = frame_bytes
        self._held = b""  # bytes that do not say yet what the body is
        self._excerpt = b""  # how the body begins
        self._start = ""  # … as ``sniff`` calls it
        self.parser: Parser = self._wires[0](calls, scribe)
        self.framer: Framer | None = None
        self.heading = Heading()
        # What every payload repeats, see Parser.envelope, and the head of its frame before it.
        self.envelope = self.lead = b""
        self.head = b""  # what the first frame is expected to begin with

    @property
    def is_undecided(self) -> bool:
        """May it still be another wire?"""
        return len(self._wires) > 1 or bool(self._outer)

    # --- framing --------------------------------------------------------------------------------

    def see(self, chunk: bytes) -> None:
        """Bytes of a body that has not said anything yet."""
        self._excerpt += chunk[: SNIFF - len(self._excerpt)]

    def frame(self, chunk: bytes) -> bytes:
        """The bytes that can be framed by now; nothing while they do not say how."""
        self._held += chunk
        start = sniff(self._held[:SNIFF])
        # What is no stream is told with an excerpt that no chunking changes.
        if (start is None or start in _NO_STREAM) and len(self._held) < SNIFF:
            return b""
        return self.all_held()

    def all_held(self) -> bytes:
        """The bytes that were held, to be framed whatever they are."""
        start = self._start = sniff(self._held[:SNIFF]) or "text"
        wire = framed_by(start, self._wires)
        if start in _OUTER and start not in wire.STARTS:
            wire = self._named_inside(start) or wire
        if start == "json" and self._scribe.provider == providers.AUTO:
            self.framer = Values(self._frame_bytes)  # lines, or the messages of a socket
        else:
            self.framer = wire.framer(start, self._frame_bytes)
        if start in wire.STARTS and _outer(wire.name):  # no other begins so, but one inside of it
            self._wires, self._outer = (wire,), wire.name
            self.framer = wire.unpacker(start, self._frame_bytes, self._is_inside)
        if start == "text":  # a bare object behind a comment is no payload, as a whole body may be
            self.head = b"data: "
        if start in _NO_STREAM:
            raise StreamFailed(Failure("protocol", f"{_NO_STREAM[start]} {self._shown()}"))
        held, self._held = self._held, b""
        return held

    def _named_inside(self, start: str) -> type[Parser] | None:
        """The wire that was named comes in an envelope."""
        inside = providers.enveloped(self.parser.name, start)
        if inside is not None:
            self.parser, self._wires = inside(self._calls, self._scribe), (inside,)
        return inside

    def _shown(self) -> str:
        return f"It begins {self._excerpt.decode('utf-8', 'backslashreplace')!r}."

    def forget(self) -> bytes:
        """The bytes that were held, which nobody needs: those of another connection come."""
        held, self._held = self._held, b""
        return held

    # --- the wire, and what it says of itself ---------------------------------------------------

    def choose_wire(self, block: bytes) -> bool:
        """Several wires are spoken under this name: which one is this? False: it does not say."""
        assert self.framer is not None
        fields = self.framer.read(block)
        payload = _value(fields.data or b"")
        if isinstance(payload, dict) and fields.event:
            payload = {"type": fields.event, **payload}
        if payload is None:
            for _ in range(fields.comments):  # beside a payload they are heard with it
                self._scribe.note("wire.keepalive")
            return False
        wire = providers.recognize(payload, self._wires)
        inside = None if wire or not self._outer else self._inside(payload)
        wire = wire or inside
        if wire is None and self._scribe.provider != providers.AUTO:
            return True  # passed on by the first wire; the next payload may tell
        if wire is None:
            raise StreamFailed(Failure("protocol", _unlike_any(payload, self._wires)))
        if inside or self._scribe.provider == providers.AUTO:
            self._scribe.provider = wire.name
        self.parser, self._wires, self._outer = wire(self._calls, self._scribe), (wire,), ""
        self._read_as(wire)
        return True

    def _read_as(self, wire: type[Parser]) -> None:
        """Events were split before anybody knew the wire; it may read more in them than others do."""
        if type(self.framer) is SSE:
            own = wire.framer(self._start, self._frame_bytes)
            self.framer = own.instead_of(self.framer) if isinstance(own, SSE) else self.framer

    def _inside(self, payload: Any) -> type[Parser] | None:
        return providers.recognize(payload, providers.parsers_inside(self._outer))

    def _is_inside(self, data: bytes) -> bool:
        return self._inside(_value(data)) is not None

    def learn_heading(self, block: bytes) -> None:
        """Model and response id, if this payload has them, and what every payload repeats."""
        assert self.framer is not None
        data = self.framer.read(block).data
        if data is None:
            return
        try:
            heading = self.parser.heading(data)
        except UNREADABLE:
            return
        head, at = self.framer.head_of(block), self.parser.envelope(data)
        if at > 1 and block.startswith(head + data[:at]):
            self.lead, self.envelope = head, data[:at]
        known = self.heading
        self.heading = Heading(
            known.model or heading.model, known.response_id or heading.response_id
        )
        self._scribe.response_id = self.heading.response_id

    # --- if nothing came of it ------------------------------------------------------------------

    def why_nothing(self, read: int) -> Failure:
        """No payload came. A cut in the first event may be tried again; what is no stream may not."""
        notes = self._scribe.counts
        begun = notes["stream.cut_event"] and self._excerpt.lstrip()[:1] in _BEGINNINGS
        cut = not read or bool(begun) or bool(notes["wire.keepalive"])
        what = self._shown() if self._excerpt else "The body was empty."
        whose = (
            f"Is this the streaming body of {self.parser.name}?"
            if self._scribe.provider != providers.AUTO
            else f"Name the provider, one of: {', '.join(providers.PROVIDERS)}."
        )
        sentence = f"{read} bytes and no event in them. {what} {whose}"
        return Failure("truncated" if cut else "protocol", sentence, None, cut)


def _outer(provider: str) -> str:
    """The provider, if other wires may be inside of its own."""
    known = provider != providers.AUTO and providers.provider_row(provider).inside
    return provider if known else ""


def framed_by(start: str, wires: tuple[type[Parser], ...]) -> type[Parser]:
    """The first wire that has a framing of its own for a body that begins so."""
    return next((wire for wire in wires if start in wire.STARTS), wires[0])


def is_json(data: bytes) -> bool:
    """Is this a whole JSON value, whatever is odd about its characters?"""
    return _value(data) is not None


def _value(data: bytes) -> Any:
    """The value of a payload, or None if it is no JSON."""
    try:
        return plainly(data)
    except UNREADABLE:
        return None


def _unlike_any(payload: Any, wires: tuple[type[Parser], ...]) -> str:
    fields = ", ".join(map(repr, list(payload)[:8])) if isinstance(payload, dict) else ""
    seen = f"has the fields {fields}" if fields else f"is {payload!r:.80}"
    return (
        f"cannot tell whose stream this is: the first payload {seen}; name the "
        f"provider, one of: {', '.join(wire.name for wire in wires)}"
    )
