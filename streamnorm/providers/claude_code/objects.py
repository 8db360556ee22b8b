"""The agent SDK's objects come in; the lines of the program that they were made from go out.

Rule: the SDK is never imported. Its objects are told by the names of their classes, and what they say is
put back under the names that the program has for it.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

__all__ = ["BLOCKS", "LINES", "payload_of"]

# Classes of blocks, and of messages -> their types in a line.
BLOCKS = {
    "TextBlock": "text",
    "ThinkingBlock": "thinking",
    "ToolUseBlock": "tool_use",
    "ToolResultBlock": "tool_result",
    "ServerToolUseBlock": "server_tool_use",
    "ServerToolResultBlock": "server_tool_result",
}
LINES = {
    "StreamEvent": "stream_event",
    "AssistantMessage": "assistant",
    "UserMessage": "user",
    "ResultMessage": "result",
    "SystemMessage": "system",
    "RateLimitEvent": "rate_limit_event",
    "ConversationResetMessage": "conversation_reset",
}
# Fields of an answer that the program has inside of ``message``.
_INSIDE = {"message_id": "id", "model": "model", "stop_reason": "stop_reason", "usage": "usage"}


def payload_of(message: Any) -> dict[str, Any]:
    """The line of this object; of a class that we do not know, what it says under its name."""
    names = (cls.__name__ for cls in type(message).__mro__)
    kind = next((LINES[name] for name in names if name in LINES), type(message).__name__)
    said = _fields(message)
    if kind == "system":
        data = said.get("data")
        return {
            **(data if isinstance(data, dict) else {}),
            "type": kind,
            "subtype": said["subtype"],
        }
    if kind in ("assistant", "user"):
        inside = {theirs: said.pop(ours) for ours, theirs in _INSIDE.items() if ours in said}
        said["message"] = {"role": kind, "content": said.pop("content", []), **inside}
    return {"type": kind, **said}


def _fields(thing: Any) -> dict[str, Any]:
    """What it says; a field that the line did not have is None."""
    said = {f.name: _plain(getattr(thing, f.name)) for f in fields(thing)}
    return {name: value for name, value in said.items() if value is not None}


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        type_ = BLOCKS.get(type(value).__name__)
        return ({"type": type_} if type_ else {}) | _fields(value)
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items()}
    return value
