"""A cassette comes in, YAML or JSON, as VCR of Python and Ruby and their kin write it; its exchanges go out.

    interactions:            Python's vcrpy; http_interactions: Ruby's vcr, betamax
    - request: {uri, method, headers, body}
      response: {status: {code}, headers, body: {string | base64_string}}

Rule: YAML is read event by event. Nothing in it makes an object, however it is tagged; what is nested
deeply, or repeated by aliases until it would fill the memory, is refused.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from ..errors import needs
from ..takes.format import BOM
from .answer import Answer, Unread, pairs_of, when
from .strangers import NoStream

if TYPE_CHECKING:
    from yaml.events import ScalarEvent

__all__ = ["answers", "origin_of"]

DEPTH = 50  # of a cassette it is about eight
_NAMED = re.compile(r"recorded_with:\s*['\"]?([^'\"\n]{1,80})")
_DAMAGED = "begins like a cassette of VCR, and is cut or damaged{where}. Record it again."
_BINARY = ("tag:yaml.org,2002:binary", "!binary")
_SAFE = (ValueError, binascii.Error)
_DAMAGED_BYTES = 0  # neither a text nor bytes

Value: TypeAlias = Any  # texts, bytes, lists and mappings


def answers(data: bytes) -> Iterator[Answer | Unread]:
    """Its exchanges, in their order. Raises ``NoStream`` if it is no cassette."""
    is_json = data.removeprefix(BOM).lstrip()[:1] == b"{"
    for number, one in enumerate(_of_json(data) if is_json else _of_yaml(data), start=1):
        where = f"interaction {number}"
        try:
            yield _answer(one, where)
        except (_Odd, *_SAFE):
            yield Unread(where, "is not written as a cassette wants it.")


def origin_of(data: bytes) -> str:
    """The cassette, and the program that wrote it, if it says so."""
    start, end = data[:4096].decode("utf-8", "replace"), data[-4096:].decode("utf-8", "replace")
    found = _NAMED.search(end.replace('"recorded_with"', "recorded_with")) or _NAMED.search(start)
    return f"cassette of {found[1].strip()}" if found else "cassette of VCR"


class _Odd(Exception):
    """It is a cassette, and this is not as it should be."""


# --- one interaction ------------------------------------------------------------------------------


def _answer(one: Value, where: str) -> Answer | Unread:
    request, response = _mapping(one, "request"), _mapping(one, "response")
    status = response.get("status", response.get("status_code"))
    code = status.get("code") if isinstance(status, dict) else status
    url = request.get("uri")
    answer = Answer(
        where=where,
        body=_body(response),
        url=url if isinstance(url, str) else None,
        status=_number(code),
        headers=pairs_of(response.get("headers")),
        request_headers=pairs_of(request.get("headers")),
        captured=when(one.get("recorded_at")),
    )
    if not answer.body:
        return Unread(answer.called, "has no body.", aside=not answer.asked_for_a_stream)
    return answer


def _number(text: Value) -> int | None:
    digits = str(text)
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 9 else None


def _mapping(one: Value, name: str) -> dict[str, Value]:
    found = one.get(name) if isinstance(one, dict) else None
    if not isinstance(found, dict):
        raise _Odd
    return found


def _body(response: dict[str, Value]) -> bytes:
    body = response.get("body", response.get("content", b""))
    if isinstance(body, dict):
        if (packed := body.get("base64_string")) is not None:
            return base64.b64decode(_bytes(packed))
        body = body.get("string")
    return _bytes(body)


def _bytes(text: Value) -> bytes:
    if text is None:
        return b""
    if isinstance(text, str):
        return text.encode("utf-8", "surrogatepass")
    if not isinstance(text, bytes):
        raise _Odd
    return text


# --- JSON -----------------------------------------------------------------------------------------


def _of_json(data: bytes) -> Iterator[Value]:
    try:
        said = msgspec.json.decode(data.removeprefix(BOM))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise NoStream(_DAMAGED.format(where="")) from None
    for name in ("interactions", "http_interactions"):
        if isinstance(said, dict) and isinstance(said.get(name), list):
            yield from said[name]
            return
    raise NoStream("is JSON that begins like a cassette of VCR, and has no interactions.")


# --- YAML -----------------------------------------------------------------------------------------


def _of_yaml(data: bytes) -> Iterator[Value]:
    needs("yaml", "a cassette written as YAML", extra="captures")
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    events = _Tree(yaml.parse(data, Loader=loader), limit=2 * len(data) + 65536)
    try:
        yield from events.interactions()
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f" in line {mark.line + 1}" if mark is not None else ""
        raise NoStream(_DAMAGED.format(where=where)) from None
    except _Odd as error:
        raise NoStream(f"begins like a cassette of VCR, and {error}.") from None


class _Tree:
    """The values that events of YAML tell, one interaction at a time."""

    def __init__(self, events: Iterator[Any], *, limit: int) -> None:
        self._events = events
        self._anchors: dict[str, tuple[Value, int]] = {}  # with what each costs
        self._limit = limit  # of what aliases may repeat, in bytes and values
        self._cost = 0

    def interactions(self) -> Iterator[Value]:
        """The items of the list that is called so."""
        for event in self._events:
            name = type(event).__name__
            if name == "MappingStartEvent":
                break
            if name not in ("StreamStartEvent", "DocumentStartEvent"):
                raise _Odd("is a list or a text")
        keys: list[Value] = []
        while (key := self._next()) is not _END:
            keys.append(key)
            if key in ("interactions", "http_interactions"):
                yield from self._items()
            else:
                self._next()
        if not {"interactions", "http_interactions"} & set(map(str, keys)):
            raise _Odd("has no interactions")
        if not {"version", "recorded_with"} & set(map(str, keys)):
            raise _Odd("is cut: what follows the interactions is missing")

    def _items(self) -> Iterator[Value]:
        event = next(self._events, None)
        if type(event).__name__ != "SequenceStartEvent":
            return
        while (item := self._next()) is not _END:
            yield item

    def _next(self, depth: int = 2) -> Value:
        """The next value; ``_END`` where a list or a mapping ends."""
        event: Any = next(self._events, None)
        kind = type(event).__name__
        if kind == "AliasEvent":
            return self._again(event.anchor)
        if kind not in _KINDS:
            return _END
        if depth > DEPTH:
            raise _Odd("is nested too deeply")
        before = self._cost
        value = _KINDS[kind](self, event, depth)
        if event.anchor is not None:
            self._anchors[event.anchor] = value, self._cost - before
        return value

    def _again(self, anchor: str) -> Value:
        value, cost = self._anchors.get(anchor, (None, 0))
        self._cost += cost + 1
        self._limit -= cost + 1
        if self._limit < 0:
            raise _Odd("repeats itself too often")
        return value

    def _scalar(self, event: ScalarEvent, depth: int) -> Value:
        text: str = event.value
        self._cost += len(text) + 1
        if event.tag in _BINARY:
            try:
                return base64.b64decode(text)
            except _SAFE:
                return _DAMAGED_BYTES
        if event.style is None and event.tag is None and text in ("", "~", "null"):
            return None
        return text

    def _list(self, event: Any, depth: int) -> Value:
        items: list[Value] = []
        while (item := self._next(depth + 1)) is not _END:
            items.append(item)
            self._cost += 1
        return items

    def _map(self, event: Any, depth: int) -> Value:
        found: dict[str, Value] = {}
        while (key := self._next(depth + 1)) is not _END:
            value = self._next(depth + 1)
            if isinstance(key, str):  # Ruby's binary keys, and odder ones, are none that count
                found[key] = value
            self._cost += 1
        return found


_END = object()
_KINDS = {
    "ScalarEvent": _Tree._scalar,
    "SequenceStartEvent": _Tree._list,
    "MappingStartEvent": _Tree._map,
}
