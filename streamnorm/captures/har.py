"""A HAR comes in, as browsers and proxies write it; its exchanges go out.

Rule: one entry that cannot be read spares the others. Browsers drop bodies that streamed: such an entry
says so.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator
from typing import Any
from zlib import crc32

import msgspec
from msgspec import Raw

from ..takes.format import BOM
from .answer import Answer, Unread, pairs_of, when
from .strangers import NoStream

__all__ = ["answers", "origin_of"]

_MILLISECONDS = 1e11  # a moment that is greater is not in seconds
_DROPPED = (
    "has no body: browsers drop what streamed when they write a HAR. Capture it with a proxy "
    "(mitmdump --set hardump=FILE.har), with curl -N, or with streamnorm record."
)
_SENT = "has no messages that came back."


class _Program(msgspec.Struct):
    name: str = ""
    version: str = ""


class _Log(msgspec.Struct):
    creator: Any = None
    browser: Any = None
    entries: list[Raw] = []


class _Har(msgspec.Struct):
    log: _Log


class _Content(msgspec.Struct, rename="camel"):
    mime_type: Any = None
    text: str | None = None
    encoding: Any = None


class _Request(msgspec.Struct):
    url: str = ""
    method: str = "GET"
    headers: Any = None
    cookies: Any = None


class _Response(msgspec.Struct):
    status: Any = None
    headers: Any = None
    content: _Content | None = None


class _Message(msgspec.Struct):
    type: Any = None
    time: Any = None
    opcode: Any = 1
    data: Any = None


class _Entry(msgspec.Struct):
    request: _Request
    response: _Response
    started: Any = msgspec.field(default=None, name="startedDateTime")
    messages: Any = msgspec.field(default=None, name="_webSocketMessages")


_decode = msgspec.json.Decoder(_Har).decode
_as_entry = msgspec.json.Decoder(_Entry).decode
_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def answers(data: bytes) -> Iterator[Answer | Unread]:
    """Its exchanges, in their order. Raises ``NoStream`` if it is no HAR."""
    for number, raw in enumerate(_log(data).entries, start=1):
        where = f"entry {number}"
        try:
            entry = _as_entry(raw)
        except _UNREADABLE:
            yield Unread(where, "is not written as a HAR wants it.")
            continue
        yield _messages(entry, where) if entry.messages else _answer(entry, where)


def origin_of(data: bytes) -> str:
    """The HAR, and the program that wrote it."""
    try:
        log = _log(data)
    except NoStream:
        return "HAR"
    named = [one for one in (log.creator, log.browser) if isinstance(one, dict)]
    names = [f"{one.get('name', '')} {one.get('version', '')}".strip()[:80] for one in named]
    return " of ".join(["HAR", *names[:1]])


def _log(data: bytes) -> _Log:
    try:
        return _decode(data.removeprefix(BOM)).log
    except _UNREADABLE as error:
        why = "is cut or damaged" if "truncated" in str(error) else "is not written as one"
        raise NoStream(f"begins like a HAR, and {why}. Export it again.") from None


def _answer(entry: _Entry, where: str) -> Answer | Unread:
    content = entry.response.content or _Content()
    answer = _plain(entry, where)
    if not answer.header("content-type") and isinstance(content.mime_type, str):
        answer.headers.append(("content-type", content.mime_type))
    if not content.text:
        if not answer.asked_for_a_stream:
            return Unread(answer.called, "has no body.", aside=True)
        return Unread(answer.called, _DROPPED)
    try:
        answer.body, answer.remark = _bytes(
            content, "charset" in answer.header("content-type").lower()
        )
    except (ValueError, binascii.Error):
        return Unread(answer.called, "has a body that is not the base64 that it is said to be.")
    return answer


def _plain(entry: _Entry, where: str) -> Answer:
    request, response = entry.request, entry.response
    cookies = [("cookie", f"{name}={value}") for name, value in pairs_of(request.cookies)]
    return Answer(
        where=where,
        url=request.url or None,
        status=response.status if type(response.status) is int and response.status > 0 else None,
        headers=pairs_of(response.headers),
        request_headers=pairs_of(request.headers) + cookies,
        captured=when(entry.started),
    )


def _bytes(content: _Content, has_charset: bool) -> tuple[bytes, str]:
    """The body, and what is odd about how it is kept."""
    text = content.text or ""
    if content.encoding == "base64":
        return base64.b64decode(text, validate=True), ""
    data = text.encode("utf-8", "surrogatepass")
    if text.isascii() or has_charset:
        return data, ""
    # A stream seldom names its charset, and then browsers and proxies take each byte for a letter of
    # Latin. What is UTF-8 again when it is put back, or a frame whose checksum fits, was no such text.
    letters = text.translate(_LATIN)
    one = letters.encode("latin-1") if max(letters) < "\u0100" else b""
    if _is_utf8(one) or (one[:1] == b"\0" and crc32(one[:8]) == int.from_bytes(one[8:12])):
        return one, "its text read as Latin and put back"
    return data, ""


def _is_utf8(data: bytes) -> bool:
    try:
        return bool(data.decode())
    except UnicodeDecodeError:
        return False


# Letters of Windows' Latin -> the bytes that they stand for; the bytes that are none stand for themselves.
_LATIN = {
    ord(bytes([byte]).decode("cp1252")): byte
    for byte in range(0x80, 0xA0)
    if byte not in (0x81, 0x8D, 0x8F, 0x90, 0x9D)
}


# --- messages of a WebSocket ----------------------------------------------------------------------


def _messages(entry: _Entry, where: str) -> Answer | Unread:
    """What came back, a message to a line."""
    answer = _plain(entry, where)
    try:
        messages = msgspec.convert(entry.messages, list[_Message])
    except msgspec.ValidationError:
        return Unread(answer.called, "has messages that are not written as a HAR wants them.")
    came = [(one.time, _line(one)) for one in messages if one.type == "receive"]
    lines = [(at, line) for at, line in came if line]
    if not lines:
        return Unread(answer.called, _SENT, aside=True)
    answer.body = b"".join(line for _, line in lines)
    if answer.status == 101:
        answer.status = None  # says nothing of the answers
    if all(isinstance(at, int | float) for at, _ in lines):
        start = lines[0][0]
        scale = 1000.0 if start > _MILLISECONDS else 1.0
        answer.times = [(max(0.0, (at - start) / scale), len(line)) for at, line in lines]
    return answer


def _line(message: _Message) -> bytes:
    if not isinstance(message.data, str):
        return b""
    if message.opcode == 2:
        try:
            data = base64.b64decode(message.data, validate=True)
        except (ValueError, binascii.Error):
            return b""
    else:
        data = message.data.encode("utf-8", "surrogatepass")
    return data.replace(b"\r", b" ").replace(b"\n", b" ").strip() + b"\n" if data.strip() else b""
