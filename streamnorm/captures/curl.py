"""What ``curl -i`` printed comes in: heads and bodies, one after the other; the answers go out.

Rule: an answer on the way to another one (100, a proxy's 200, a redirect that was followed) is left
out. Where a body ends is said by its length, if that fits, or by the head of the next one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from .answer import LONGEST_HEADER, MOST_HEADERS, Answer, Headers, Unread

__all__ = ["answers", "origin_of"]

# No body has such lines inside of a value, as no line end stands in one.
_HEAD = re.compile(
    rb"HTTP/\d(?:\.\d)? (\d{3})[^\r\n]{0,500}\r?\n((?:[!-9;-~]{1,200}:[^\r\n]*\r?\n)*)\r?\n"
)


def origin_of(data: bytes) -> str:
    """The program that printed it."""
    return "curl -i"


class _Part(NamedTuple):
    status: int
    headers: Headers
    body: bytes


def answers(data: bytes) -> Iterator[Answer | Unread]:
    """The answers, in their order."""
    parts = list(_parts(data))
    after = [*parts[1:], None]
    kept = [
        part for part, then in zip(parts, after, strict=False) if not _is_on_the_way(part, then)
    ]
    for number, part in enumerate(kept, start=1):
        where = f"answer {number}" if len(kept) > 1 else "the answer"
        if not part.body.strip():
            yield Unread(where, f"has the status {part.status} and no body.")
            continue
        yield Answer(
            where=where, body=part.body, status=part.status, headers=part.headers, raw=True
        )  # fmt: skip
    if not parts:
        yield Unread("the answer", "begins with a status, and its headers have no end.")


def _parts(data: bytes) -> Iterator[_Part]:
    head = _HEAD.match(data)
    while head is not None:
        headers = _headers(head[2])
        after = _next_head(data, head.end(), headers)
        end = after.start() if after else len(data)
        yield _Part(int(head[1]), headers, data[head.end() : end])
        head = after


def _next_head(data: bytes, at: int, headers: Headers) -> re.Match[bytes] | None:
    length = {name.lower(): value for name, value in headers}.get("content-length", "")
    if length.isascii() and length.isdigit() and len(length) < 16:
        end = at + int(length)
        if end == len(data):
            return None
        if (found := _HEAD.match(data, end)) is not None:
            return found
    return _HEAD.search(data, at)


def _headers(text: bytes) -> Headers:
    pairs: Headers = []
    for line in text.split(b"\n")[:MOST_HEADERS]:
        name, colon, value = line.strip().partition(b":")
        if colon:
            pairs.append((str(name, "latin-1"), str(value.strip()[:LONGEST_HEADER], "latin-1")))
    return pairs


def _is_on_the_way(part: _Part, after: _Part | None) -> bool:
    if part.status < 200:
        return True
    if after is None:
        return False
    if 300 <= part.status < 400:
        return True
    return not part.body and part.status in (200, 401, 407)  # of a proxy, or asked again with a key
