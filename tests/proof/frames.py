"""Framings, read slowly and by the book: the bytes of a body in, its payloads out.

Rule: no line of the engine is used here, and nothing is done cleverly. A payload is what one event,
line, array element or AWS message says. What is no JSON is ``UNREAD``; bytes that are no UTF-8 make
a payload unsound. Nothing that follows a place where the framing itself is lost is read.
"""

from __future__ import annotations

import json
import re
import struct
import zlib
from typing import Any, NamedTuple

UNREAD = type("Unread", (), {"__repr__": lambda self: "UNREAD"})()
# An event that has lost its data: a kind that nobody knows, and that brings some text.
LOST = {"type": "lost.data", "event_type": "lost.data", "text": "of somebody"}
BOM = b"\xef\xbb\xbf"


class Payload(NamedTuple):
    """What one frame says."""

    value: Any  # parsed JSON, or UNREAD
    event: str = ""  # the name beside it
    word: str = ""  # data that is a word: [DONE]
    error: bool = False  # the framing itself says that this is an error
    rough: Any = None  # what can be made of bytes that are no UTF-8: only good for a place
    id: str = ""  # what stands beside it


class Twice(dict[str, Any]):
    """An object that says a key twice: readable, but not exact."""

    differs = False  # … and not the same both times


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    whole = dict(pairs)
    if len(whole) == len(pairs):
        return whole
    twice = Twice(whole)
    twice.differs = any(whole[name] != value for name, value in pairs)
    return twice


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")


_decoder = json.JSONDecoder(parse_constant=_refuse, object_pairs_hook=_pairs)


def parsed(data: bytes) -> Any:
    """The JSON value of these bytes, or UNREAD."""
    try:
        return _decoder.decode(data.decode())
    except (ValueError, RecursionError):
        return UNREAD


def roughly(data: bytes) -> Any:
    """An object among bytes that are no UTF-8."""
    try:
        value = _decoder.decode(data.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


# --- server-sent events -----------------------------------------------------------------------


def sse(body: bytes) -> list[Payload]:
    """Events by the WHATWG rules; the last one also without its blank line, if it is whole."""
    lines = re.split(rb"\r\n|\n|\r", body.removeprefix(BOM))
    payloads: list[Payload] = []
    block: list[bytes] = []
    for line in lines[:-1]:
        if line:
            block.append(line)
        else:
            payloads += _event(block)
            block = []
    for last in _event([*block, lines[-1]] if lines[-1] else block):
        if last.value is not UNREAD or last.word or last.error:
            payloads.append(last)
    return payloads


def _event(block: list[bytes]) -> list[Payload]:
    data: list[bytes] = []
    event = id = ""
    for line in block:
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            data.append(value)
        elif field == b"event":
            event = value.decode("utf-8", "replace")
        elif field == b"id":
            id = value.decode("utf-8", "replace")
        elif field == b"error":
            return [Payload(parsed(value), event, error=True)]
    said = b"\n".join(data)
    if said.strip() in (b"[DONE]", b'"[DONE]"'):
        return [Payload(UNREAD, event, "[DONE]")]
    if not said.strip():
        return [Payload(LOST)] if has_lost_its_data(event) else []
    value = parsed(said)
    return [Payload(value, event, rough=roughly(said) if value is UNREAD else None, id=id)]


def has_lost_its_data(event: str) -> bool:
    """Is it a piece of a text by its name, or more than a name?"""
    return event.endswith("delta") or not re.fullmatch(r"[\w.:/ -]*", event)


# --- one JSON value per line ------------------------------------------------------------------


def lines(body: bytes) -> list[Payload]:
    """One value per line; half a line at the end is nothing."""
    *whole, last = body.removeprefix(BOM).split(b"\n")
    payloads = [_line(line) for line in whole if line.strip()]
    if last.strip() and (value := parsed(last)) is not UNREAD:
        payloads.append(Payload(value))
    return payloads


def _line(line: bytes) -> Payload:
    value = parsed(line)
    return Payload(value, rough=roughly(line) if value is UNREAD else None)


def whole_in(payload: Payload, *fields: str) -> Any:
    """What a line says; one that is no UTF-8 beside these fields says what stands in them."""
    if payload.value is not UNREAD or not isinstance(payload.rough, dict):
        return payload.value
    said = {name: payload.rough[name] for name in fields if name in payload.rough}
    replaced = "\ufffd" in json.dumps(said, ensure_ascii=False)
    return UNREAD if replaced or fields[0] not in said else {**payload.rough, **said}


# --- one JSON array ---------------------------------------------------------------------------

_space = re.compile(r"[ \t\r\n]*")
_not_utf8 = re.compile("[\udc80-\udcff]")


def array(body: bytes) -> list[Payload]:
    """The elements of an array that may have been cut. Behind a place that is no JSON every object that
    can be read counts: whoever skips what is damaged goes on with the next element, and the objects
    inside a damaged one are no payloads of any wire."""
    text = body.removeprefix(BOM).decode("utf-8", "surrogateescape")
    at = _space.match(text).end()  # type: ignore[union-attr]
    if text[at : at + 1] != "[":
        return [Payload(UNREAD)] if text.strip() else []
    payloads: list[Payload] = []
    at, lost = at + 1, False
    while True:
        at = text.find("{", at) if lost else _space.match(text, at).end()  # type: ignore[union-attr]
        if not 0 <= at < len(text) or text[at] == "]":
            return payloads
        if text.startswith("[DONE]", at):
            payloads.append(Payload(UNREAD, word="[DONE]"))
            at += len("[DONE]")
            at = _space.match(text, at).end()  # type: ignore[union-attr]
            at += text[at : at + 1] == ","
            continue
        try:
            value, end = _decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            payloads.append(Payload(UNREAD))
            at, lost = at + 1, True
            continue
        if _not_utf8.search(text, at, end):
            rough = roughly(text[at:end].encode("utf-8", "surrogateescape"))
            payloads.append(Payload(UNREAD, rough=rough))
        else:
            payloads.append(Payload(value))
        at = _space.match(text, end).end()  # type: ignore[union-attr]
        if text[at : at + 1] == ",":
            at += 1
        elif not lost and text[at : at + 1] not in (
            "]",
            "",
            "{",
        ):  # a lost comma parts them as well
            payloads.append(Payload(UNREAD))
            lost = True


# --- AWS event stream -------------------------------------------------------------------------

LENGTHS = {0: 0, 1: 0, 2: 1, 3: 2, 4: 4, 5: 8, 8: 8, 9: 16}


def aws(body: bytes) -> list[Payload]:
    """Messages with good checksums, up to the first that has none."""
    payloads: list[Payload] = []
    at = 0
    while at + 16 <= len(body):
        total, size = struct.unpack_from(">II", body, at)
        message = body[at : at + total]
        if total < 16 + size or not _sums_are_right(message, total):
            return [*payloads, Payload(UNREAD)]
        headers = _headers(message[12 : 12 + size])
        kind = headers.get(":message-type", "event")
        payload = Payload(
            parsed(message[12 + size : -4] or b"{}"), headers.get(":event-type", ""),
            error=kind != "event",
        )  # fmt: skip
        payloads.append(payload)
        at += total
    return payloads


def _sums_are_right(message: bytes, total: int) -> bool:
    if len(message) != total:
        return False
    (prelude,), (whole,) = struct.unpack_from(">I", message, 8), struct.unpack(">I", message[-4:])
    return bool(prelude == zlib.crc32(message[:8]) and whole == zlib.crc32(message[:-4]))


def _headers(data: bytes) -> dict[str, str]:
    headers: dict[str, str] = {}
    at = 0
    try:
        while at < len(data):
            length = data[at]
            name = data[at + 1 : at + 1 + length].decode("utf-8", "replace")
            kind = data[at + 1 + length]
            at += 2 + length
            if kind in (6, 7):
                (size,) = struct.unpack_from(">H", data, at)
                headers[name] = data[at + 2 : at + 2 + size].decode("utf-8", "replace")
                at += 2 + size
            else:
                at += LENGTHS[kind]
    except (IndexError, KeyError, struct.error):
        return {}
    return headers


READ = {"sse": sse, "lines": lines, "array": array, "aws": aws}


# --- pieces that can be left out ----------------------------------------------------------------


def blocks(body: bytes, framing: str) -> list[bytes]:
    """The body as frames that can be left out one by one; joined they are the body."""
    if framing == "aws":
        return _messages(body)
    ends = {
        "sse": rb"(?:\r\n){2,}|\n{2,}|\r(?!\n)\r+(?!\n)",
        "lines": rb"\n",
        "array": rb"(?<=\})[ \t\r\n]*,[ \t\r\n]*(?=\{)",
    }[framing]
    pieces, at = [], 0
    for end in re.finditer(ends, body):
        pieces.append(body[at : end.end()])
        at = end.end()
    return [*pieces, body[at:]] if body[at:] else pieces


def _messages(body: bytes) -> list[bytes]:
    pieces, at = [], 0
    while at + 16 <= len(body):
        (total,) = struct.unpack_from(">I", body, at)
        if total < 16:
            break
        pieces.append(body[at : at + total])
        at += total
    return [*pieces, body[at:]] if body[at:] else pieces
