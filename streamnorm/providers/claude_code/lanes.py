"""Claude Code: a line comes in, the answer and the agent that it is of go out.

An answer begins with ``message_start``, or with the first line that has its id; where lines have none,
with the first one behind a reply. The lane is the agent:
the call that it is (``parent_tool_use_id``, and ``agentId`` in a saved session); the main one has none.
Agents answer at the same time. One below is over when the call that it is has its result.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Raw

from ...core.lanes import Lanes, Place, Role
from ...core.parser import UNREADABLE, first_text, items_of, plainly

__all__ = ["LANES", "ClaudeCodeLanes", "is_line"]

# Lines of the program's own in a saved session: they have its id, and no message.
_SAVED = "sessionId"
# Who asked, where the program asks the model itself, as when an agent in the background is done.
_OWN = ("task-notification", "auto-continuation")


def is_line(said: dict[str, Any]) -> bool:
    """Is this a line of the program's output, or of a session that it saved?"""
    kind = said.get("type")
    if kind in ("assistant", "user"):
        return isinstance(said.get("message"), dict)
    if kind in ("system", "result"):
        return isinstance(said.get("subtype"), str)
    return kind == "stream_event" or (isinstance(kind, str) and _SAVED in said)


class _Line(msgspec.Struct):
    type: str
    subtype: str | None = None
    is_error: bool | None = None
    is_meta: bool | None = msgspec.field(default=None, name="isMeta")
    parent_tool_use_id: str | None = None
    agent_id: str | None = msgspec.field(default=None, name="agentId")
    tool_use_id: str | None = None
    uuid: Any = None  # one of another type names nothing, and the line says what it says
    event: Raw = Raw(b"{}")
    message: Raw = Raw(b"{}")
    origin: Any = None


class _Message(msgspec.Struct, frozen=True):
    id: str | None = None
    content: Any = None


class _Event(msgspec.Struct):
    type: str | None = None
    message: _Message = _Message()


_decode = msgspec.json.Decoder(_Line).decode
_as_event = msgspec.json.Decoder(_Event).decode
_as_message = msgspec.json.Decoder(_Message).decode


class ClaudeCodeLanes(Lanes):
    """Where a line belongs."""

    FOLLOWS = True

    @classmethod
    def place(cls, message: bytes) -> Place | None:
        try:
            said = _decode(message)
            return _PLACES.get(said.type, _beside)(said, said.parent_tool_use_id or said.agent_id)
        except UNREADABLE:
            return None

    @classmethod
    def looks_like(cls, message: bytes) -> bool:
        try:
            said = plainly(message)
        except UNREADABLE:
            return False
        return isinstance(said, dict) and is_line(said)


def _beside(said: _Line, lane: str | None) -> Place:
    return Place(Role.BESIDE, lane)


def _piece(said: _Line, lane: str | None) -> Place:
    event = _as_event(said.event)
    if event.type == "message_start":
        return Place(Role.BEGINS, lane, event.message.id, name=first_text(said.uuid))
    return Place(Role.WITHIN, lane, name=first_text(said.uuid))


def _answer(said: _Line, lane: str | None) -> Place:
    """A line of an answer says its id, but in old sessions."""
    return Place(
        Role.SPEAKS, lane, _as_message(said.message).id or None, name=first_text(said.uuid)
    )


def _results(said: _Line, lane: str | None) -> Place:
    blocks = [b for b in items_of(_as_message(said.message).content) if isinstance(b, dict)]
    ids = (first_text(b.get("tool_use_id")) for b in blocks)
    by_program = said.is_meta and not any(b.get("type") == "tool_result" for b in blocks)
    role = Role.BESIDE if by_program else Role.REPLIES
    return Place(role, lane, None, tuple(id for id in ids if id))


def _system(said: _Line, lane: str | None) -> Place:
    """An agent in the background goes on behind its result, until this is said."""
    over = said.tool_use_id if said.subtype == "task_notification" else None
    return Place(Role.BESIDE, lane, None, (over,) if over else ())


def _over(said: _Line, lane: str | None) -> Place:
    """Without an answer, it is all that is heard of a question; behind one, an error is not its own. What
    the program asked itself has an answer, whose end may have come with the result before."""
    asked = said.origin.get("kind") if isinstance(said.origin, dict) else None
    if not said.is_error and asked in _OWN:
        return Place(Role.ENDS, lane, name=first_text(said.uuid))
    return Place(Role.REFUSES, lane, name=first_text(said.uuid), notice=bool(said.is_error))


_PLACES = {
    "stream_event": _piece,
    "assistant": _answer,
    "user": _results,
    "system": _system,
    "result": _over,
}

LANES = ClaudeCodeLanes
