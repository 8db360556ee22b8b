"""The first bytes of a file come in; what it is goes out, or a sentence about what it looks like.

Rule: the sentence says what to do instead. It quotes nothing: what is no stream may be a secret.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from ..core.lanes import Lanes
from ..core.parser import UNREADABLE, plainly
from ..events import Failed
from ..framing import sniff
from ..normalizer import Normalizer
from ..notes import unheard
from ..providers import AUTO, parsers_of, recognize, rows_with
from ..takes.format import BOM, HEADER
from .packed import packing_of

__all__ = ["HEAD", "MADE_BY_HAND", "OUR_EVENTS", "NoStream", "form_of", "lanes_of"]

HEAD = 64 * 1024  # bytes that tell what a file is
LINES = 20  # … or so many lines of JSON
_FIELD = re.compile(rb"(?:\A|(?<=[\r\n]))(?:data|event|id|retry|error)?:")
_FIELDS = (b"data:", b"event:", b"id:", b"retry:")
_STATUS = re.compile(rb"HTTP/\d(?:\.\d)? \d{3}[ \r\n]")
_HAR = re.compile(rb'\s*\{\s*"log"\s*:\s*\{')
_CASSETTE = re.compile(
    rb"(?:---[^\n]*\n)?(?:interactions|http_interactions|recorded_with|version):|"
    rb'\s*\{\s*"(?:interactions|http_interactions|recorded_with|version)"\s*:'
)
_OBJECT = re.compile(rb'\s*\[?\s*(?:\{\s*(?:["}]|\Z)|\Z)')
_VERBOSE = re.compile(rb"(?m)^< HTTP/\d")
_TRACE = re.compile(rb"(?m)^(?:== Info: |=> Send |<= Recv )")  # of curl --trace
_SETTING = re.compile(rb"(?m)^(?:export )?[A-Za-z_][A-Za-z0-9_]*=(?!=?\s*$)")  # no end of base64

MADE_BY_HAND = "Keep the bytes of the answer as they came: curl -N … > answer.sse"
_MAGIC = (
    (b"PK\x03\x04", "is a zip archive. Unpack it, and name the files in it."),
    (b"SQLite format 3\0", "is an SQLite database. Streams are kept in files: name one of those."),
    (b"PAR1", "is a Parquet table. Streams are kept in files: name one of those."),
    (b"BZh", "is packed with bzip2. Unpack it first: bunzip2 FILE"),
    (b"\xfd7zXZ", "is packed with xz. Unpack it first: unxz FILE"),
    (b"7z\xbc\xaf", "is a 7z archive. Unpack it, and name the files in it."),
    (b"\x89PNG", "is a picture (PNG), not a stream."),
    (b"\xff\xd8\xff", "is a picture (JPEG), not a stream."),
    (b"GIF8", "is a picture (GIF), not a stream."),
    (b"RIFF", "is a sound or a picture (RIFF), not a stream."),
    (b"%PDF", "is a PDF, not a stream."),
    (b"\x7fELF", "is a program, not a stream."),
    (b"\n\r\r\n", "is a capture of packets. Export the answer from it: tshark, or Follow HTTP stream."),
    (b"\xd4\xc3\xb2\xa1", "is a capture of packets. Export the answer from it: tshark, or "
     "Follow HTTP stream."),
    (b"\xff\xfe", "is UTF-16 text, as PowerShell's > writes it. Save the bytes themselves: "
     "curl -N -o FILE …"),
    (b"\xfe\xff", "is UTF-16 text. Save the bytes themselves: curl -N -o FILE …"),
)  # fmt: skip
OUR_EVENTS = (
    "holds events of streamnorm, not what a provider sent. Keep the bytes themselves: "
    "streamnorm record, or curl -N"
)
_LIST = (
    "is a JSON list, not the bytes of a stream. If its items are those of one, write them one to a "
    "line: jq -c '.[]' FILE > FILE.jsonl"
)
_WHOLE_ANSWER = "is a whole answer, not a stream. Ask with stream=true."
_ASKED = {"messages", "contents", "input", "prompt"}  # in the body of a request
_SAYS_NOTHING = ("stream_start", "unrecognized", "usage", "failed")
OUR_TABLE = "is a table that streamnorm made, and no stream. Look at it: streamnorm report FILE"
# The dump of a proxy: the length of the first flow, and one of its fields.
_FLOWS = re.compile(rb"\d{1,9}:\d{1,3}:[a-z_]+[;,]")


class NoStream(Exception):
    """This is none; the text is a sentence that goes on from a name. ``aside``: nobody thought so."""

    def __init__(self, why: str, *, aside: bool = False) -> None:
        super().__init__(why)
        self.why, self.aside = why, aside


def form_of(head: bytes, *, whole: bool, provider: str | None = None) -> str:
    """What a file is that begins so; ``whole``: there is no more of it. Raises ``NoStream``.

    >>> form_of(b'data: {"choices":[]}', whole=False), form_of(b"HTTP/1.1 200 OK", whole=False)
    ('sse', 'curl')
    """
    if head.startswith((HEADER, BOM + HEADER)):
        return "take"
    if packing_of(head) is not None:
        return "packed"
    text = head.removeprefix(BOM)
    for form, pattern in (("curl", _STATUS), ("har", _HAR), ("vcr", _CASSETTE)):
        if pattern.match(text):
            return form
    if not head.strip():
        raise NoStream("is empty." if not head else "holds nothing but white space.")
    _refuse_magic(head)
    kind = sniff(text)
    if kind == "aws":
        return _aws(text)
    if kind in ("json", "array") and _OBJECT.match(text):
        return _json(text.lstrip(), whole, provider)
    if kind == "html":
        raise NoStream(
            "is an HTML or XML page, not a stream. Look at the address, the proxy and the status of "
            "the request."
        )
    return _text(text, whole)


def lanes_of(head: bytes) -> str | None:
    """The wire whose answers share a connection or a file with others, if these are lines of one."""
    return next((lanes for known, lanes in map(_told, _lines(head)) if known), None)


def _lines(head: bytes) -> list[bytes]:
    return [line for line in head.split(b"\n", LINES)[:LINES] if line.strip()]


def _told(line: bytes) -> tuple[bool, str | None]:
    """Is this a line of a wire that is known, and is it one of those that share a file?"""
    for row in rows_with("lanes", Lanes):
        if row.part("lanes", Lanes).looks_like(line):
            return True, row.name
    try:
        return recognize(plainly(line), parsers_of(AUTO)) is not None, None
    except UNREADABLE:
        return False, None


def _refuse_magic(head: bytes) -> None:
    for magic, why in _MAGIC:
        if head.startswith(magic):
            raise NoStream(why)
    if head[257:262] == b"ustar":
        raise NoStream("is a tar archive. Unpack it, and name the files in it.")
    if head[1:2] == b"\0" and head[3:4] == b"\0" and head[:1] != b"\0":
        raise NoStream("is UTF-16 text. Save the bytes themselves: curl -N -o FILE …")
    if _FLOWS.match(head):
        raise NoStream(
            "looks like the flows of mitmproxy. Export them: mitmdump -nr FILE --set hardump=FILE.har"
        )


def _aws(head: bytes) -> str:
    total, headers = int.from_bytes(head[:4]), int.from_bytes(head[4:8])
    if len(head) >= 12 and not headers + 16 <= total < 1 << 25:
        raise NoStream(f"is binary, and nothing that is known. {MADE_BY_HAND}")
    return "aws"


# --- text -----------------------------------------------------------------------------------------


def _text(head: bytes, whole: bool) -> str:
    if _FIELD.search(head) is None and not any(field.startswith(head) for field in _FIELDS):
        raise NoStream(_why_text(head))
    if whole and (b"\n\n" not in head and b"\r\n\r\n" not in head and b"\r\r" not in head):
        _refuse_run(head.splitlines())
    return "sse"


def _refuse_run(lines: list[bytes]) -> None:
    """Events that nothing separates: each line of data is a whole one by itself."""
    data = [line[5:].strip() for line in lines if line.startswith(b"data:")]
    if len(data) > 1 and all(map(_is_value, data[:2])):
        raise NoStream(
            "has lines of data without blank lines between them, so that no event ends. Put these "
            "back: sed '/^data:/G' FILE | streamnorm replay -"
        )


def _is_value(data: bytes) -> bool:
    try:
        plainly(data)
    except UNREADABLE:
        return False
    return True


def _why_text(head: bytes) -> str:
    if _VERBOSE.search(head) or _TRACE.search(head):
        made = "curl -v prints" if _TRACE.search(head) is None else "curl --trace writes"
        return f"looks like what {made}. Ask with curl -i, which keeps the answer as it came."
    if _is_list(head):
        return _LIST
    if _SETTING.search(head[:4096]):
        return "looks like a file of settings (NAME=value), not a stream. Nothing of it was kept."
    if b"\0" in head or _unreadable(head):
        return f"is binary, and nothing that is known. {MADE_BY_HAND}"
    return f"is text without an event in it. {MADE_BY_HAND}"


def _is_list(head: bytes) -> bool:
    return head.lstrip()[:1] == b"[" and isinstance(_value(head), list)


def _unreadable(head: bytes) -> bool:
    try:
        head[:-4].decode()
    except UnicodeDecodeError:
        return True
    return False


# --- JSON -----------------------------------------------------------------------------------------


def _json(head: bytes, whole: bool, provider: str | None) -> str:
    if head.startswith(b'{"kind":"'):
        raise NoStream(OUR_TABLE if head.startswith(b'{"kind":"session"') else OUR_EVENTS)
    if whole and provider in (None, AUTO) and _is_whole_answer(head):
        raise NoStream(_WHOLE_ANSWER)
    if head[:1] == b"{":
        lines = _lines(head)
        for known, lanes in map(_told, lines):
            if lanes:
                return "session"
            if known:
                return "ndjson"
    if provider not in (None, AUTO):
        return "ndjson" if head[:1] == b"{" else "json"
    failed = _heard_alone(head)
    if failed is None or failed.reason == "provider_error" or (failed.retryable and whole):
        return "json"  # pieces of a list, or an error
    raise NoStream(_why_json(head, failed))


def _is_whole_answer(head: bytes) -> bool:
    """One value that has all of an answer at once, and of which the pipe makes nothing."""
    said = _value(head)
    return isinstance(said, dict) and _has_answer(said) and not _says_something(head)


def _has_answer(said: Any, depth: int = 4) -> bool:
    """A message of an assistant, or a list of items, as they stand in an answer that is no stream."""
    if isinstance(said, list):
        return depth > 0 and any(_has_answer(one, depth - 1) for one in said[:LINES])
    if not isinstance(said, dict) or depth == 0 or any(map(said.get, _ASKED)):
        return False
    if said.get("role") == "assistant" and (said.get("content") or said.get("tool_calls")):
        return True
    for name in ("output", "outputs"):
        items = said.get(name)
        if isinstance(items, list) and any(
            isinstance(one, dict) and "type" in one for one in items
        ):
            return True
    return any(_has_answer(one, depth - 1) for one in said.values())


def _says_something(head: bytes) -> bool:
    pipe = Normalizer()
    with unheard():
        events = pipe.feed(head) + pipe.close()
    return any(event.kind not in _SAYS_NOTHING for event in events) or (
        isinstance(events[-1], Failed) and events[-1].reason == "provider_error"
    )


def _heard_alone(head: bytes) -> Failed | None:
    """Why the pipe hears nothing in it; None if it does."""
    pipe = Normalizer()
    with unheard():
        events = pipe.feed(head) + pipe.close()
    last = events[-1]
    return last if len(events) == 1 and isinstance(last, Failed) else None


def _why_json(head: bytes, failed: Failed) -> str:
    said = _value(head)
    if said is None and (lines := _lines(head)):
        said = _value(lines[0])
    keys = set(said) if isinstance(said, dict) else set()
    if isinstance(said, list):
        return _LIST
    if keys & _ASKED and not keys & {"choices", "output"}:
        return "looks like the body of a request, not an answer. Keep what the server sends back."
    return "is JSON, but not the answer of a provider that is known. Name it with --provider if it is one."


def _value(data: bytes) -> Any:
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
