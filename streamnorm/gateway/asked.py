"""The body of a client's request comes in; the few fields that a gateway must know go out.

Rule: the body is not taken apart. All other fields stay the bytes that they were, so that a request to
somebody who speaks the client's own wire goes on as it came.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from ..errors import UsageError
from ..text.shown import words_of

__all__ = ["NOWHERE", "Address", "Asked"]

_FIELDS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_NO_JSON = "the body is no JSON object"


class Address(NamedTuple):
    """What is said beside the body, by the path, on wires that say it there."""

    model: str = ""
    stream: bool | None = None


NOWHERE = Address()  # it is all in the body


class Asked:
    """One request."""

    __slots__ = ("_address", "_fields", "body", "model", "stream")

    def __init__(self, body: bytes, address: Address = NOWHERE) -> None:
        try:
            self._fields = _FIELDS.decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise UsageError(f"{_NO_JSON}: {error}") from error
        self.body = body
        self._address = address
        self.model = address.model or self._read("model", str, "")
        in_body = self._read("stream", bool | None, False)
        self.stream = bool(in_body if address.stream is None else address.stream)
        if not self.model:
            raise UsageError("the body names no model")

    def _read(self, name: str, kind: Any, default: Any) -> Any:
        raw = self._fields.get(name)
        if raw is None:
            return default
        try:
            return msgspec.json.decode(raw, type=kind)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise UsageError(
                f"{name!r} of the body is not what it should be: {words_of(error)}"
            ) from error

    def for_model(self, model: str) -> bytes:
        """The same body, for a model of another name.

        >>> Asked(b'{"model": "a", "n": 1e2, "stream": true}').for_model("b")
        b'{"model":"b","n":1e2,"stream":true}'
        """
        if model == self.model or self._address.model:
            return self.body
        return msgspec.json.encode({**self._fields, "model": model})

    def whole(self) -> Any:
        """All of it as plain values."""
        try:
            return msgspec.json.decode(self.body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise UsageError(f"{_NO_JSON}: {error}") from error
