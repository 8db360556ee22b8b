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
import json
from typing import Any

import msgspec
import orjson

__all__ = [
    "data_uri",
    "in_base64",
    "json_ascii",
    "json_bytes",
    "json_spaced",
    "json_text",
    "made_safe",
    "safe_json",
    "sse",
]

_checked = json.JSONEncoder(allow_nan=False, default=msgspec.to_builtins, separators=(",", ":"))
_in_lines = json.JSONEncoder(allow_nan=False, indent=2)
# Spaces as most models and people write them; no keys of other types, no conversions.
_spaced = json.JSONEncoder(allow_nan=False, ensure_ascii=False)

# In JSON these stand inside strings only, so replacing the bytes is exact.
_ESCAPES = (
    (b"<", rb"\u003c"),
    (b">", rb"\u003e"),
    (b"&", rb"\u0026"),
    ("\u2028".encode(), rb"\u2028"),
    ("\u2029".encode(), rb"\u2029"),
)


def json_bytes(value: Any) -> bytes:
    """``value`` as one line of JSON in UTF-8.

    >>> json_bytes({"big": 2**70, "é": [1.5, None]})
    b'{"big":1180591620717411303424,"\\xc3\\xa9":[1.5,null]}'
    """
    try:
        line = orjson.dumps(value, option=orjson.OPT_PASSTHROUGH_DATETIME)
    except TypeError:
        line = _slowly(value)
    if b"null" in line:  # it may have been a NaN
        _checked.encode(value)
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
    return (_in_lines if in_lines else _checked).encode(value).encode("ascii")


def json_spaced(value: Any) -> str:
    """``value`` as people read it, and as it stands inside of other text: halves stay halves.

    >>> json_spaced({"city": "Höfn", "days": [1, 2]})
    '{"city": "Höfn", "days": [1, 2]}'
    """
    return _spaced.encode(value)


def safe_json(value: Any) -> bytes:
    r"""``value`` as one line of JSON that is harmless in HTML and in scripts.

    >>> safe_json({"text": "</script>"})
    b'{"text":"\\u003c/script\\u003e"}'
    """
    return made_safe(json_bytes(value))


def made_safe(line: bytes) -> bytes:
    """JSON that was written elsewhere: no byte of it can end a script, start a tag or break a line."""
    for raw, escape in _ESCAPES:
        line = line.replace(raw, escape)
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
        return _checked.encode(value).encode()
