"""Codex: a line comes in, the turn that it is of goes out.

    turn.started -> item.* -> turn.completed | turn.failed                    on standard output
    task_started -> turn_context -> response_item -> task_complete            a rollout

There is one lane: an agent below has a thread, and a rollout, of its own. Older rollouts have no
``task_started``; there a ``turn_context`` begins a turn, and the next one tells that it has ended.
"""

from __future__ import annotations

import msgspec

from ...core.lanes import Lanes, Place, Role
from ...core.parser import UNREADABLE

__all__ = ["LANES", "CodexLanes"]


class _Payload(msgspec.Struct):
    type: str | None = None
    role: str | None = None
    turn_id: str | None = None


class _Line(msgspec.Struct):
    type: str
    payload: _Payload | None = None


_decode = msgspec.json.Decoder(_Line).decode

_ROLES = {
    "turn.started": Role.BEGINS,
    "item.started": Role.WITHIN,
    "item.updated": Role.WITHIN,
    "item.completed": Role.WITHIN,
    "error": Role.WITHIN,
    "turn.completed": Role.ENDS,
    "turn.failed": Role.ENDS,
    "turn_context": Role.BEGINS,
    "response_item": Role.WITHIN,
}
_EVENTS = {
    "task_started": Role.BEGINS,
    "turn_started": Role.BEGINS,
    "task_complete": Role.ENDS,
    "turn_complete": Role.ENDS,
    "turn_aborted": Role.ENDS,
    "error": Role.WITHIN,
}
_SAVED = ("session_meta", "event_msg", "response_item", "turn_context")
_PRINTED = ("thread.", "turn.", "item.")


class CodexLanes(Lanes):
    """Where a line belongs."""

    FOLLOWS = True
    REPEATS = True

    @classmethod
    def place(cls, message: bytes) -> Place | None:
        try:
            said = _decode(message)
        except UNREADABLE:
            return None
        return Place(_role(said), None, said.payload.turn_id if said.payload else None)

    @classmethod
    def looks_like(cls, message: bytes) -> bool:
        try:
            said = _decode(message)
        except UNREADABLE:
            return False
        is_saved = said.type in _SAVED and said.payload is not None
        return is_saved or said.type.startswith(_PRINTED)


def _role(said: _Line) -> Role:
    payload = said.payload or _Payload()
    if said.type == "event_msg":
        role = _EVENTS.get(payload.type or "", Role.BESIDE)
        unnamed = role is Role.BEGINS and not payload.turn_id  # its turn_context follows
        return Role.BESIDE if unnamed else role
    if payload.role not in (None, "assistant"):
        return Role.BESIDE
    return _ROLES.get(said.type, Role.BESIDE)


LANES = CodexLanes
