"""Making an odd payload even: JSON bytes and a complaint in, JSON bytes that fit out.

The decoders are strict about shape, as a field that is dropped in silence is how calls get lost. A
payload that does not fit is changed in the one place the complaint names, by a row of the
provider's ``QUIRKS`` or by leaving that field aside with a note, and is read again by the same
decoder. So there is one lane of meaning, and an odd payload only costs more.

Rule: bytes that are not named in the complaint are not touched (``msgspec.Raw`` keeps them).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import msgspec
from msgspec import Raw

__all__ = ["DROP", "Complaint", "Uneven", "change", "complaint", "json_text", "with_field"]

# What a quirk returns: the value as it should have been, or None to leave the field aside.
Quirk: TypeAlias = Callable[[bytes], bytes | None]
DROP = None

_unknown = re.compile(r"Object contains unknown field `(.*?)`(?: - at `\$(.*)`)?$", re.S).match
_other = re.compile(r"(.*) - at `\$(.+)`$", re.S).match
_step = re.compile(r"\.([^.\[\]]+)|\[(\d+)\]")
_as_object = msgspec.json.Decoder(dict[str, Raw]).decode
_as_list = msgspec.json.Decoder(list[Raw]).decode


class Uneven(Exception):
    """There is no way to read this payload as one that we know."""


class Complaint(NamedTuple):
    """What does not fit and where: ``path`` to follow, ``where`` to look up and to log."""

    path: tuple[str | int, ...]
    where: str
    unknown: bool  # a field we do not know, rather than one of an unknown type


def complaint(error: msgspec.ValidationError) -> Complaint:
    """Read a validation error; ``Uneven`` if it does not name a place."""
    text = str(error)
    if match := _unknown(text):
        at = match[2] or ""
        return Complaint((*_steps(at), match[1]), f"{_pattern(at)}.{match[1]}".lstrip("."), True)
    if (match := _other(text)) and not text.startswith(("Invalid value", "Object missing")):
        return Complaint(_steps(match[2]), _pattern(match[2]).lstrip("."), False)
    raise Uneven(text)


def change(data: bytes, path: tuple[str | int, ...], quirk: Quirk) -> bytes:
    """``data`` with the value at ``path`` replaced by what ``quirk`` makes of it."""
    if not path:
        changed = quirk(data)
        return b"null" if changed is None else changed
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


def with_field(data: bytes, key: str, value: str) -> bytes:
    """``data`` with a text field added to its object."""
    try:
        fields = _as_object(data)
    except msgspec.DecodeError as error:
        raise Uneven("not an object") from error
    return msgspec.json.encode({**fields, key: Raw(msgspec.json.encode(value))})


def json_text(value: bytes) -> bytes:
    """A JSON value as a JSON string that holds its exact text: ``{"a":1}`` -> ``"{\\"a\\":1}"``."""
    return msgspec.json.encode(value.decode("utf-8", "replace"))


def _steps(path: str) -> tuple[str | int, ...]:
    return tuple(key if key else int(index) for key, index in _step.findall(path))


def _pattern(path: str) -> str:
    return re.sub(r"\[\d+\]", "[]", path)
