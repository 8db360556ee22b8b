"""Making an odd payload even: JSON bytes and a complaint in, JSON bytes that fit out.

The decoders are strict about shape, as a field that is dropped in silence is how calls get lost. A
payload that does not fit is changed in the one place the complaint names, by a row of the
provider's ``QUIRKS`` or by leaving that field aside with a note, and is read again by the same
decoder. So there is one lane of meaning, and an odd payload only costs more.

Rule: bytes that are not named in the complaint are not touched (``msgspec.Raw`` keeps them). A
repair shrinks the complaint and never grows the data: a quirk may quote or wrap a value once, no
place is changed twice, and a payload at most doubles (``Repairs``).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple, TypeAlias

import msgspec
from msgspec import Raw

from ..text.exact import MAX_DEPTH, UNREADABLE, Refused, count_keys

__all__ = [
    "DROP",
    "Complaint",
    "Repairs",
    "Uneven",
    "change",
    "complaint",
    "fields_at",
    "integer",
    "is_said_once",
    "number_text",
    "object_text",
    "quoted",
    "says_twice",
    "with_field",
    "wrapped",
]  # fmt: skip

# What a quirk returns: the value as it should have been, or None to leave the field aside.
Quirk: TypeAlias = Callable[[bytes], bytes | None]
DROP = None

_unknown = re.compile(r"Object contains unknown field `(.*?)`(?: - at `\$(.*)`)?$", re.S).match
_other = re.compile(r"(.*) - at `\$(.+)`$", re.S).match
_step = re.compile(r"\.([^.\[\]]+)|\[(\d+)\]")
_space_before_colon = re.compile(rb'"[ \t\r\n]+:').search
_plain = msgspec.json.Decoder().decode
_as_object = msgspec.json.Decoder(dict[str, Raw]).decode
_as_list = msgspec.json.Decoder(list[Raw]).decode


class Uneven(Exception):
    """There is no way to read this payload as one that we know."""


class Complaint(NamedTuple):
    """What does not fit and where: ``path`` to follow, ``where`` to look up and to log."""

    path: tuple[str | int, ...]
    where: str
    unknown: bool  # a field we do not know, rather than one of an unknown type
    inside: str = ""  # the object it stands in, as ``where`` spells it


def complaint(error: msgspec.ValidationError) -> Complaint:
    """Read a validation error; ``Uneven`` if it does not name a place."""
    text = str(error)
    if match := _unknown(text):
        at = match[2] or ""
        inside = _pattern(at).lstrip(".")
        return Complaint((*_steps(at), match[1]), f"{inside}.{match[1]}".lstrip("."), True, inside)
    if (match := _other(text)) and not text.startswith(("Invalid value", "Object missing")):
        return Complaint(_steps(match[2]), _pattern(match[2]).lstrip("."), False)
    raise Uneven(text)


class Repairs:
    """What was repaired in one payload, and how much that may add: a bound on hostile ones."""

    MOST, FEWEST = 64, 8  # each takes one complaint away, and reads the payload again …
    WORK = 64 * 1024 * 1024  # … so that of big ones fewer are made

    def __init__(self, data: bytes) -> None:
        self._room = 2 * len(data) + 64
        self._places: set[tuple[str | int, ...]] = set()
        self._left = max(self.FEWEST, min(self.MOST, self.WORK // (len(data) or 1)))

    @property
    def fresh(self) -> bool:
        """Was nothing repaired yet?"""
        return not self._places

    def hopeless(self, fields: int) -> bool:
        """Does an object with so many fields have more that we do not know than can be left aside?"""
        return fields > 2 * self.MOST  # we know fewer than that of any

    def begin(self, path: tuple[str | int, ...]) -> bool:
        """One more repair, at ``path``; is it the first there? A second can only leave it aside."""
        self._left -= 1
        if self._left < 0:
            raise Uneven("too many oddities in one payload")
        first = path not in self._places
        self._places.add(path)
        return first

    def checked(self, data: bytes) -> bytes:
        """The repaired payload, unless it grew too much."""
        if len(data) > self._room:
            raise Uneven("a repair would make the payload grow")
        return data


def change(data: bytes, path: tuple[str | int, ...], quirk: Quirk) -> bytes:
    """``data`` with the value at ``path`` replaced by what ``quirk`` makes of it."""
    if not path:
        return quirk(data) or b"null"
    step, *rest = path
    try:
        if isinstance(step, int):
            return _changed_list(_as_list(data), step, tuple(rest), quirk)
        return _changed_object(_as_object(data), step, tuple(rest), quirk)
    except (msgspec.DecodeError, KeyError, IndexError, RecursionError) as error:
        raise Uneven(f"no way to {path}") from error


def _changed_object(
    fields: dict[str, Raw], key: str, rest: tuple[str | int, ...], quirk: Quirk
) -> bytes:
    changed = change(bytes(fields[key]), rest, quirk) if rest else quirk(bytes(fields[key]))
    if changed is None:
        del fields[key]
    else:
        fields[key] = Raw(changed)
    return msgspec.json.encode(fields)


def _changed_list(items: list[Raw], index: int, rest: tuple[str | int, ...], quirk: Quirk) -> bytes:
    changed = change(bytes(items[index]), rest, quirk) if rest else quirk(bytes(items[index]))
    if changed is None:
        del items[index]
    else:
        items[index] = Raw(changed)
    return msgspec.json.encode(items)


def fields_at(data: bytes, path: tuple[str | int, ...]) -> dict[str, Raw]:
    """The fields of the object at ``path``; none if there is no object."""
    try:
        for step in path:
            data = bytes(_as_list(data)[step] if isinstance(step, int) else _as_object(data)[step])
        return _as_object(data)
    except (msgspec.DecodeError, KeyError, IndexError, RecursionError):
        return {}


def says_twice(data: bytes) -> bool:
    """Has an object of this payload one field twice, and differently? Only the last would be seen."""
    try:
        keys = count_keys(_plain(data), MAX_DEPTH)
    except (*UNREADABLE, Refused):
        keys = -1
    # Every field has a colon behind its quote, and no text has, as its own quotes are escaped.
    if keys == data.count(b'":') - data.count(b'\\":') and not _hides_a_colon(data):
        return False
    try:
        _objects().decode(data.decode("utf-8", "replace"))
    except _Twice:
        return True
    except (ValueError, RecursionError):
        return False
    return False


def is_said_once(data: bytes) -> bool:
    """Is each field of this object said once, for sure? Written anew it would be the same bytes."""
    try:
        return msgspec.json.encode(_as_object(data)) == data
    except (msgspec.DecodeError, RecursionError):
        return False


def _hides_a_colon(data: bytes) -> bool:
    """Behind a name that ends with a backslash, or behind white space (looked for first: it is rare)."""
    spaced = any(quote in data for quote in (b'" ', b'"\t', b'"\n', b'"\r'))
    return b'\\\\":' in data or (spaced and _space_before_colon(data) is not None)


class _Twice(Exception):
    """A field stands twice in one object."""


def _fields_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs) and any(fields[name] != value for name, value in pairs):
        raise _Twice
    return fields


@cache
def _objects() -> Any:
    import json  # here, as most streams never need it

    return json.JSONDecoder(object_pairs_hook=_fields_once)


def with_field(data: bytes, key: str, value: str) -> bytes:
    """``data`` with a text field added to its object."""
    try:
        fields = _as_object(data)
    except msgspec.DecodeError as error:
        raise Uneven("not an object") from error
    return msgspec.json.encode({**fields, key: Raw(msgspec.json.encode(value))})


def quoted(value: bytes) -> bytes:
    """A JSON value as a JSON string that holds its exact text: ``{"a":1}`` -> ``"{\\"a\\":1}"``."""
    return msgspec.json.encode(value.decode("utf-8", "replace"))


def object_text(value: bytes) -> bytes | None:
    """An object where its JSON text should stand, as that text; anything else is left aside."""
    return quoted(value) if value[:1] == b"{" else DROP


def number_text(value: bytes) -> bytes | None:
    """A whole number where a text should stand, as that text; anything else is left aside."""
    return b'"' + value + b'"' if value.removeprefix(b"-").isdigit() else DROP


def integer(value: bytes) -> bytes | None:
    """A number in quotes, or with a nought behind its point, is that number; the rest is left aside."""
    digits = value.strip(b'"').removesuffix(b".0")
    return digits if digits.isdigit() else DROP


def wrapped(value: bytes) -> bytes:
    """One thing where a list of them should stand."""
    return b"[" + value + b"]"


def _steps(path: str) -> tuple[str | int, ...]:
    return tuple(key if key else int(index) for key, index in _step.findall(path))


def _pattern(path: str) -> str:
    return re.sub(r"\[\d+\]", "[]", path)
