r"""Values come in; JSON, server-sent events and data URIs go out, each written in this one place.

Rule: what is written says what was given, or nothing is written. orjson writes plain values; what it
refuses (integers beyond 64 bits, keys that are no strings, bytes, times, structs, nesting beyond 254)
msgspec writes, and what that refuses (half of a surrogate pair, a key that is None) the standard
library does, halves as escapes. NaN and infinity, of which the first two would make ``null``, are a
``ValueError``. The standard library also writes what the other two have no form for: ASCII alone
(``json_ascii``), and spaces and halves as they are (``json_spaced``).

Nothing else in the package writes JSON, but for ``msgspec.json.encode`` where a value is typed: a
struct, or pieces of JSON that go on as they came.

Why orjson, in microseconds (Python 3.11, orjson 3.13, msgspec 0.22, best of 15)::

                                    json     msgspec   orjson
    a text delta, 91 bytes            2.2      0.18      0.16
    a whole call, 516 bytes           6.0      0.70      0.46
    a tool's output, 9 kB           177       27        20

Structs are for msgspec alone: a text delta takes it 0.22, and 0.55 if it is made plain for orjson.
"""

from __future__ import annotations

import base64
import enum
import json
from collections.abc import Iterable
from typing import Any

import msgspec
import orjson

__all__ = [
    "HOLE",
    "data_uri",
    "form",
    "in_base64",
    "json_ascii",
    "json_bytes",
    "json_sorted",
    "json_spaced",
    "json_text",
    "made_safe",
    "one_line",
    "phrase",
    "phrased",
    "plain_values",
    "safe_json",
    "safe_struct",
    "safe_text",
    "sse",
    "sse_lines",
]

_typed = msgspec.json.Encoder().encode
_checked = json.JSONEncoder(allow_nan=False, default=msgspec.to_builtins, separators=(",", ":"))
_in_lines = json.JSONEncoder(allow_nan=False, indent=2)
# Spaces as most models and people write them; no keys of other types, no conversions.
_spaced = json.JSONEncoder(allow_nan=False, ensure_ascii=False)

# In JSON these stand inside strings only, so replacing the bytes is exact. To look for one byte is
# so much cheaper than to replace it that most lines are only looked at.
_LESS, _MORE, _AND, _LEAD = b"<>&\xe2"  # the last one begins both separators, and other characters
_SEPARATORS = "\u2028".encode(), "\u2029".encode()
_NEXT_LINE = "\u0085".encode()


def json_bytes(value: Any) -> bytes:
    """``value`` as one line of JSON in UTF-8.

    >>> json_bytes({"big": 2**70, "é": [1.5, None]})
    b'{"big":1180591620717411303424,"\\xc3\\xa9":[1.5,null]}'
    """
    try:
        line = orjson.dumps(value, option=orjson.OPT_PASSTHROUGH_DATETIME)
    except TypeError:
        line = _slowly(value)
    if line.rfind(b"null") >= 0:  # it may have been a NaN; faster than ``in``
        _strictly(_checked, value)
    return line


def json_text(value: Any) -> str:
    """The same as text.

    >>> json_text({"city": "Oslo"})
    '{"city":"Oslo"}'
    """
    return json_bytes(value).decode()


def json_ascii(value: Any, *, in_lines: bool = False) -> bytes:
    r"""``value`` as JSON in ASCII, which any reader and any medium leaves as it is.

    >>> json_ascii({"é": 1}), json_ascii({"a": 1}, in_lines=True)
    (b'{"\\u00e9":1}', b'{\n  "a": 1\n}')
    """
    return _strictly(_in_lines if in_lines else _checked, value).encode("ascii")


def json_spaced(value: Any) -> str:
    """``value`` as people read it, and as it stands inside of other text: halves stay halves.

    >>> json_spaced({"city": "Höfn", "days": [1, 2]})
    '{"city": "Höfn", "days": [1, 2]}'
    """
    return _strictly(_spaced, value)


def json_sorted(value: Any) -> bytes:
    """``value`` as JSON with keys in order of their characters; ``TypeError`` for all but plain values.

    >>> json_sorted({"b": 1, "a": [2]})
    b'{"a":[2],"b":1}'
    """
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)


def safe_json(value: Any) -> bytes:
    r"""``value`` as one line of JSON that is harmless in HTML and in scripts.

    >>> safe_json({"text": "</script>"})
    b'{"text":"\\u003c/script\\u003e"}'
    """
    try:  # as ``json_bytes`` and ``made_safe``, two function calls less: measurable here
        line = orjson.dumps(value, option=orjson.OPT_PASSTHROUGH_DATETIME)
    except TypeError:
        line = _slowly(value)
    if line.rfind(b"null") >= 0:
        _strictly(_checked, value)
    if _LESS in line or _MORE in line or _AND in line or _LEAD in line:
        return made_safe(line)
    return line


def safe_struct(value: msgspec.Struct) -> bytes:
    """A struct without numbers that may be none, as such a line.

    >>> class Hi(msgspec.Struct):
    ...     to: str
    >>> safe_struct(Hi("<all>"))
    b'{"to":"\\\\u003call\\\\u003e"}'
    """
    try:
        line = _typed(value)
    except UnicodeEncodeError:  # halves of characters
        return safe_json(value)
    return made_safe(line)


def made_safe(line: bytes) -> bytes:
    """JSON that was written elsewhere: no byte of it can end a script, start a tag or break a line."""
    if _LESS in line or _MORE in line or _AND in line:
        line = line.replace(b"<", rb"\u003c").replace(b">", rb"\u003e").replace(b"&", rb"\u0026")
    return _without_separators(line)


def one_line(line: bytes) -> bytes:
    r"""JSON that was written elsewhere: nobody finds the end of a line in it, not even who looks for
    those of Unicode, as ``str.splitlines`` does and the dot of a regular expression in JavaScript.

    >>> one_line('{"a":"\u2028\u0085é"}'.encode()).decode()
    '{"a":"\\u2028\\u0085é"}'
    """
    line = _without_separators(line)
    return line.replace(_NEXT_LINE, rb"\u0085") if _NEXT_LINE in line else line


def _without_separators(line: bytes) -> bytes:
    if _LEAD in line:
        lines, paragraphs = _SEPARATORS
        line = line.replace(lines, rb"\u2028").replace(paragraphs, rb"\u2029")
    return line


HOLE = "\0"  # no field that we name says this


def phrase(empty: dict[str, Any]) -> bytes:
    r"""The beginning of an object that is said again and again with another text in its last field.

    All but that text is written once; see ``form`` for others that change.

    >>> phrased(phrase({"type": "text-delta", "id": "t1", "delta": ""}), "<Hi>")
    b'{"type":"text-delta","id":"t1","delta":"\\u003cHi\\u003e"}'
    """
    return safe_json(empty).removesuffix(b'""}')


def form(line: bytes) -> bytes:
    """An object, or a phrase, whose fields that are ``HOLE`` are filled by ``%``, each with a text that
    is written already.

    >>> form(phrase({"id": HOLE, "delta": ""})) % safe_text("call_1")
    b'{"id":"call_1","delta":'
    """
    return line.replace(b"%", b"%%").replace(b'"\\u0000"', b"%b")


def phrased(head: bytes, text: str) -> bytes:
    """The object of a phrase, with this text; harmless, as those of ``safe_json``."""
    return head + safe_text(text) + b"}"


def safe_text(text: str) -> bytes:
    r"""As ``safe_json``, of a text.

    >>> safe_text("<Hi>")
    b'"\\u003cHi\\u003e"'
    """
    try:
        line = orjson.dumps(text)
    except TypeError:  # halves of characters
        line = json_bytes(text)
    if _LESS in line or _MORE in line or _AND in line or _LEAD in line:
        return made_safe(line)
    return line


def sse(payload: Any, event: str | None = None, id: str | None = None) -> bytes:
    """One server-sent event. ``payload`` is a line that is written already, or a value to write.

    ``id`` is the position after which a reader may go on.

    >>> sse({"a": 1}, "note"), sse("[DONE]"), sse(b"{}", id="s.7")
    (b'event: note\\ndata: {"a":1}\\n\\n', b'data: [DONE]\\n\\n', b'id: s.7\\ndata: {}\\n\\n')
    """
    if isinstance(payload, str):
        line = payload.encode()
    else:
        line = payload if isinstance(payload, bytes) else json_bytes(payload)
    head = f"event: {event}\n".encode() if event else b""
    if id is not None:
        head = f"id: {id}\n".encode() + head
    return b"%bdata: %b\n\n" % (head, line)


def sse_lines(payloads: Iterable[bytes]) -> bytes:
    """Lines that are written already, each as a server-sent event.

    >>> sse_lines([b"{}", b"[DONE]"]), sse_lines([])
    (b'data: {}\\n\\ndata: [DONE]\\n\\n', b'')
    """
    lines = b"\n\ndata: ".join(payloads)
    return b"data: %b\n\n" % lines if lines else b""


def plain_values(value: Any) -> Any:
    """What an SDK decoded, as it was in JSON.

    >>> plain_values({"bytes": b"hi", "of": (1, None)})
    {'bytes': 'aGk=', 'of': [1, None]}
    """
    if isinstance(value, dict):
        return {str(k): plain_values(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain_values(v) for v in value]
    if isinstance(value, bytes):
        return in_base64(value)
    if isinstance(value, enum.Enum):
        return value.value
    return value.isoformat() if hasattr(value, "isoformat") else value


def in_base64(data: bytes) -> str:
    """Bytes as text.

    >>> in_base64(b"hi")
    'aGk='
    """
    return base64.b64encode(data).decode()


def data_uri(data: bytes, type: str) -> str:
    """Bytes and their media type as one address.

    >>> data_uri(b"hi", "image/png")
    'data:image/png;base64,aGk='
    """
    return f"data:{type};base64,{in_base64(data)}"


def _slowly(value: Any) -> bytes:
    """What orjson refuses, or a ``TypeError`` that says why it is no JSON."""
    try:
        return msgspec.json.encode(value)
    except (TypeError, UnicodeEncodeError, msgspec.MsgspecError):
        return _strictly(_checked, value).encode()


def _strictly(encoder: json.JSONEncoder, value: Any) -> str:
    try:
        return encoder.encode(value)
    except ValueError as error:
        if "Out of range" in str(error):
            raise ValueError("a number that JSON cannot say: NaN or Infinity") from None
        raise
