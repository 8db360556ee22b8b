"""Bytes that came as text: base64 and data URLs in, the exact bytes and what they are out.

Rule: all of it or nothing. Text that is no base64 gives no bytes, never some of them; nothing is
fetched; a type that nobody said is told from the first bytes (``SIGNS``), and from nothing else.
"""

from __future__ import annotations

import binascii
import re
from typing import NamedTuple
from urllib.parse import unquote_to_bytes

__all__ = ["UNTOLD", "Contents", "bytes_of", "contents_of", "is_web", "type_of"]

UNTOLD = "application/octet-stream"

# How a file begins -> what it is. A dot stands for any byte.
SIGNS: tuple[tuple[bytes, str], ...] = (
    (rb"\x89PNG\r\n\x1a\n", "image/png"),
    (rb"\xff\xd8\xff", "image/jpeg"),
    (rb"GIF8[79]a", "image/gif"),
    (rb"RIFF....WEBP", "image/webp"),
    (rb"RIFF....WAVE", "audio/wav"),
    (rb"ID3|\xff[\xfb\xf3\xf2]", "audio/mpeg"),
    (rb"OggS", "audio/ogg"),
    (rb"fLaC", "audio/flac"),
    (rb"....ftyp", "video/mp4"),
    (rb"%PDF-", "application/pdf"),
)
_SIGNS = tuple((re.compile(sign, re.DOTALL).match, type) for sign, type in SIGNS)
_URL_SAFE = str.maketrans("-_", "+/")
_type = re.compile(r"[\w.+-]+/[\w.+-]+(?: *; *[\w.+-]+=[\w.+/-]+)*").fullmatch
_data_url = re.compile(
    r"data:([\w.+-]+/[\w.+-]+)?((?:;(?!base64,)[^;,]*)*)(;base64)?,(.*)", re.DOTALL | re.IGNORECASE
).fullmatch


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
    match = _data_url(url)
    if match is None:
        return None
    type, _, encoded, text = match.groups()
    data = bytes_of(unquote_to_bytes(text).decode("latin-1")) if encoded else unquote_to_bytes(text)
    return None if data is None else Contents(data, type and type.lower())


def type_of(data: bytes, said: str | None = None) -> str:
    """The media type: what the wire said, else what the first bytes say.

    >>> type_of(b"GIF89a..."), type_of(b"?"), type_of(b"?", "audio/L16;rate=24000")
    ('image/gif', 'application/octet-stream', 'audio/L16;rate=24000')
    """
    if said is not None and _type(said) is not None:
        return said
    return next((type for begins, type in _SIGNS if begins(data) is not None), UNTOLD)


def is_web(url: str) -> bool:
    """Is it an address that a page may show: of http or https, and nothing that runs?

    >>> is_web("https://example.org/a.png"), is_web("javascript:alert(1)")
    (True, False)
    """
    return re.match(r"https?://[^\s\x00-\x20\"'<>\\]+\Z", url, re.IGNORECASE) is not None
