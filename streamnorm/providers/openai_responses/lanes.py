"""Responses over a WebSocket: a message comes in, the lane and the response that it is of go out.

    response.created -> … -> response.completed | .failed | .incomplete     in the lane ``stream_id``

Responses of one lane follow each other; those of several interleave. A request without a
``stream_id`` has the lane without a name. A request that is refused is answered by an ``error``
without a number, and by nothing else; one with a number ends a response that had begun.
``response.steer.*`` and ``response.inject.*`` may come after the end of the response that they name.
"""

from __future__ import annotations

import msgspec

from ...core.lanes import Lanes, Place, Role
from ...core.parser import UNREADABLE, first_text, plainly

__all__ = ["LANES", "ResponsesLanes"]

_ROLES = {
    "response.created": Role.BEGINS,
    "response.completed": Role.ENDS,
    "response.failed": Role.ENDS,
    "response.incomplete": Role.ENDS,
    "response.cancelled": Role.ENDS,
    "response.done": Role.ENDS,
}
_BESIDE = ("response.steer.", "response.inject.")


class _Response(msgspec.Struct, frozen=True):
    id: str | None = None


class _Message(msgspec.Struct):
    """What is read of a message; the rest of it is skipped, not decoded."""

    type: str
    stream_id: str | None = None
    response_id: str | None = None
    sequence_number: int | None = None
    response: _Response = _Response()


_decode = msgspec.json.Decoder(_Message).decode


class ResponsesLanes(Lanes):
    """Where a message of this wire belongs."""

    @classmethod
    def place(cls, message: bytes) -> Place | None:
        said = _read(message)
        if said is None:
            return None
        return Place(_role(said), said.stream_id, said.response.id or said.response_id)

    @classmethod
    def looks_like(cls, message: bytes) -> bool:
        said = _read(message)
        return said is not None and (said.type.startswith("response.") or said.type == "error")


def _read(message: bytes) -> _Message | None:
    try:
        return _decode(message)
    except UNREADABLE:
        return _read_oddly(message)


def _read_oddly(message: bytes) -> _Message | None:
    """Whatever is odd about its characters and its fields."""
    try:
        said = plainly(message)
    except UNREADABLE:
        return None
    if not isinstance(said, dict):
        return None
    response = said.get("response")
    lane, number = said.get("stream_id"), said.get("sequence_number")
    return _Message(
        first_text(said.get("type")) or "",
        # The wire's lanes are texts: 1 is a lane of its own, and not "1".
        lane if isinstance(lane, str | None) else f"stream_id={lane!r}",
        first_text(said.get("response_id")),
        number if isinstance(number, int) else None,
        _Response(first_text(response.get("id")) if isinstance(response, dict) else None),
    )


def _role(said: _Message) -> Role:
    if said.type == "error":
        return Role.REFUSES if said.sequence_number is None else Role.ENDS
    if not said.type.startswith("response.") or said.type.startswith(_BESIDE):
        return Role.BESIDE
    return _ROLES.get(said.type, Role.WITHIN)


LANES = ResponsesLanes
