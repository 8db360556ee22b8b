"""Turns and settled records come in; bytes go out, and the same values come back from them.

Rule: what comes back is equal to what went in, to the last bit: NUL, halves of surrogate pairs,
integers of any size, bytes, media, the order of keys. Stores keep these bytes as bytes, never as
text or ``jsonb``, which refuse or rearrange some of them.

The bytes are JSON in ASCII. What JSON cannot say is an object with the key ``$``:

    {"$": "bytes", "base64": …}  {"$": "text", "base64": …}  {"$": "number", "text": "nan"}
    {"$": "object", "items": [[key, value], …]}       an object with a key that is none of JSON's
    {"$": "media" …}  {"$": "artifact" …}             the results of a settled record
"""

from __future__ import annotations

import base64
import json
import math
import re
from collections.abc import Callable
from typing import Any

import msgspec

from ..conversation import Turn
from ..errors import UsageError
from ..events import Provenance
from ..text.written import in_base64, json_ascii
from ..tools import File
from .errors import NotStorable, StoreCorrupt
from .settled import Claim, Settled
from .spool import Artifact

__all__ = ["settled_from_bytes", "settled_to_bytes", "turn_from_bytes", "turn_to_bytes"]

MARK = "$"
_half = re.compile(r"[\ud800-\udfff]").search
_turns = msgspec.json.Decoder(Turn).decode
_RECORDS: dict[str, type[Any]] = {"media": File, "artifact": Artifact}


def turn_to_bytes(turn: Turn) -> bytes:
    """One turn as one line of JSON, without its line end."""
    if not isinstance(turn, Turn):
        raise UsageError(f"a history keeps turns, not {type(turn).__name__}")
    return _written(turn, Turn)


def turn_from_bytes(data: bytes) -> Turn:
    """The turn that ``turn_to_bytes`` wrote."""
    if b'"$"' not in data:
        return _turns(data)
    return msgspec.convert(_unpacked(json.loads(data)), Turn)


def settled_to_bytes(record: Settled) -> bytes:
    """One settled record as one line of JSON."""
    if not isinstance(record, Settled):
        raise UsageError(f"a settled record is a Settled, not {type(record).__name__}")
    record.check()
    plain = record.to_dict()
    del plain["kind"]
    return _written({**plain, "results": _packed(plain["results"])})


def settled_from_bytes(data: bytes) -> Settled:
    """The record that ``settled_to_bytes`` wrote."""
    plain = _unpacked(json.loads(data))
    plain["results"] = _unpacked(plain["results"])
    plain["provenance"] = msgspec.convert(plain["provenance"], Provenance)
    plain["claim"] = msgspec.convert(plain.get("claim"), Claim | None)
    checksum = plain.pop("checksum", None)
    record = Settled(**plain)
    if checksum is not None and record.checksum != checksum:
        raise StoreCorrupt(f"the record of {record.id!r} is not what the call settled with")
    return record


def _written(value: Any, kind: Any = Any) -> bytes:
    try:
        plain = msgspec.to_builtins(value, builtin_types=(bytes, bytearray, memoryview))
        msgspec.convert(plain, kind)  # what could not be read again is not written
        return json_ascii(_packed(plain))
    except (TypeError, ValueError, RecursionError) as error:
        raise NotStorable(f"this cannot be stored as JSON: {error}") from error


# --- what JSON cannot say -------------------------------------------------------------------------


def _packed(value: Any) -> Any:
    pack = _PACK.get(type(value))
    return pack(value) if pack is not None else value


def _pack_text(text: str) -> Any:
    if _half(text) is None:
        return text
    return {MARK: "text", "base64": in_base64(text.encode("utf-8", "surrogatepass"))}


def _pack_bytes(data: bytes) -> Any:
    return {MARK: "bytes", "base64": in_base64(bytes(data))}


def _pack_number(number: float) -> Any:
    return number if math.isfinite(number) else {MARK: "number", "text": repr(number)}


def _pack_object(plain: dict[Any, Any]) -> Any:
    if MARK not in plain and all(type(key) is str and _half(key) is None for key in plain):
        return {key: _packed(value) for key, value in plain.items()}
    return {MARK: "object", "items": [[_packed(k), _packed(v)] for k, v in plain.items()]}


def _pack_list(items: Any) -> Any:
    return [_packed(item) for item in items]


def _pack_record(record: Any) -> Any:
    # The values are packed where the whole is written; this says only what it was.
    return {MARK: record.__struct_config__.tag, **msgspec.structs.asdict(record)}


_PACK: dict[type, Callable[[Any], Any]] = {
    str: _pack_text,
    bytes: _pack_bytes,
    bytearray: _pack_bytes,
    memoryview: _pack_bytes,
    float: _pack_number,
    dict: _pack_object,
    list: _pack_list,
    tuple: _pack_list,
    File: _pack_record,
    Artifact: _pack_record,
}


def _unpacked(value: Any) -> Any:
    if type(value) is list:
        return [_unpacked(item) for item in value]
    if type(value) is not dict:
        return value
    mark = value.get(MARK)
    if mark is None:
        return {key: _unpacked(item) for key, item in value.items()}
    return _UNPACK[mark](value)


def _unpack_record(plain: dict[str, Any]) -> Any:
    kind = _RECORDS[plain.pop(MARK)]
    return kind(**{key: _unpacked(value) for key, value in plain.items()})


_UNPACK: dict[str, Callable[[dict[str, Any]], Any]] = {
    "text": lambda v: base64.b64decode(v["base64"]).decode("utf-8", "surrogatepass"),
    "bytes": lambda v: base64.b64decode(v["base64"]),
    "number": lambda v: float(v["text"]),
    "object": lambda v: {_unpacked(key): _unpacked(item) for key, item in v["items"]},
    "media": _unpack_record,
    "artifact": _unpack_record,
}
