"""Bytes that came as text: base64 and data URLs in, the exact bytes and what they are out.

Rule: all of it or nothing. Text that is no base64 gives no bytes, never some of them; nothing is
fetched; a type that nobody said is told from the first bytes (``SIGNS``), and from nothing else.
"""

from __future__ import annotations

import binascii
import re
from typing import NamedTuple

__all__ = ["UNTOLD", "Contents", "bytes_of", "contents_of", "is_web", "type_of"]

UNTOLD = "application/octet-stream"

# What a file is, by the bytes that stand at some places of its beginning.
SIGNS: tuple[tuple[str, dict[int, bytes]], ...] = (
    ("image/png", {0: b"\x89PNG\r\n\x1a\n"}),
    ("image/jpeg", {0: b"\xff\xd8\xff"}),
    ("image/gif", {0: b"GIF87a"}),
    ("image/gif", {0: b"GIF89a"}),
    ("image/webp", {0: b"RIFF", 8: b"WEBP"}),
    ("audio/wav", {0: b"RIFF", 8: b"WAVE"}),
    ("audio/mpeg", {0: b"ID3"}),
    ("audio/mpeg", {0: b"\xff\xfb"}),
    ("audio/mpeg", {0: b"\xff\xf3"}),
    ("audio/mpeg", {0: b"\xff\xf2"}),
    ("audio/ogg", {0: b"OggS"}),
    ("audio/flac", {0: b"fLaC"}),
    ("video/mp4", {4: b"ftyp"}),
    ("application/pdf", {0: b"%PDF-"}),
)
_URL_SAFE = str.maketrans("-_", "+/")
# Compiled when they are first used: most streams have no media.
_TYPE = r"[\w.+-]+/[\w.+-]+(?: *; *[\w.+-]+=[\w.+/-]+)*"
_DATA_URL = r"data:([\w.+-]+/[\w.+-]+)?((?:;(?!base64,)[^;,]*)*)(;base64)?,(.*)"
_WEB = r"https?://[^\s\x00-\x20\"'<>\\]+"


class Contents(NamedTuple):
    """What a data URL holds."""

    data: bytes
    type: str | None


def bytes_of(text: str) -> bytes | None:
    """The bytes of base64, of either alphabet, padded or not, in one line or many; None if it is none.

    >>> bytes_of("aGk="), bytes_of("aGk"), bytes_of("a?")
    (b'hi', b'hi', None)
    """
    if "-" in text or "_" in text:
        text = text.translate(_URL_SAFE)
    if "\n" in text:
        text = text.replace("\r", "").replace("\n", "")
    try:
        return binascii.a2b_base64(text + "=" * (-len(text) % 4), strict_mode=True)
    except ValueError:  # no base64, or not ASCII
        return None


def contents_of(url: str) -> Contents | None:
    """The bytes that stand in a data URL; None if it is none, or cannot be read.

    >>> contents_of("data:image/png;base64,aGk=")
    Contents(data=b'hi', type='image/png')
    """
    match = re.fullmatch(_DATA_URL, url, re.DOTALL | re.IGNORECASE)
    if match is None:
        return None
    from urllib.parse import unquote_to_bytes  # it brings much with it

    type, _, encoded, text = match.groups()
    data = bytes_of(unquote_to_bytes(text).decode("latin-1")) if encoded else unquote_to_bytes(text)
    return None if data is None else Contents(data, type and type.lower())


def type_of(data: bytes, said: str | None = None) -> str:
    """The media type: what the wire said, else what the first bytes say.

    >>> type_of(b"GIF89a..."), type_of(b"?"), type_of(b"?", "audio/L16;rate=24000")
    ('image/gif', 'application/octet-stream', 'audio/L16;rate=24000')
    """
    if said is not None and re.fullmatch(_TYPE, said) is not None:
        return said
    return next((type for type, sign in SIGNS if _begins(data, sign)), UNTOLD)


def _begins(data: bytes, sign: dict[int, bytes]) -> bool:
    return all(data.startswith(mark, at) for at, mark in sign.items())


def is_web(url: str) -> bool:
    """Is it an address that a page may show: of http or https, and nothing that runs?

    >>> is_web("https://example.org/a.png"), is_web("javascript:alert(1)")
    (True, False)
    """
    return re.fullmatch(_WEB, url, re.IGNORECASE) is not None
