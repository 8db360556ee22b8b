"""Mistral conversations, a body read back. See ``encoder`` for what stands in it.

The inputs are a text, or a list of entries. A result may stand anywhere behind its call. The service may
know entries before these: the address says which conversation, the body does not.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...encoding.messages import (
    Entry,
    Found,
    Items,
    Named,
    Piece,
    Returned,
    Step,
    media_at,
    type_of,
)
from ...encoding.pairs import UNAVAILABLE
from ...tools import Tool, ToolChoice
from ..mistral.encoder import LINKED
from ..openai_chat.messages import MODES, declared_function
from .encoder import EXECUTION
from .parser import HANDOFF

__all__ = ["MESSAGES", "ConversationsMessages"]

CALL, RESULT, INPUT, OUTPUT = "function.call", "function.result", "message.input", "message.output"
MODEL = {OUTPUT, CALL, EXECUTION, HANDOFF}
OWN_FIELDS = ("completion_args", "instructions", "handoff_execution", "agent_id")


class ConversationsMessages(Items):
    """The inputs of one request."""

    unique = True
    beside = ("instructions", "tools", "completion_args.tool_choice")
    tools_at, choice_at = "tools", "completion_args.tool_choice"
    known = frozenset(
        {"type", "role", "content", "text", "image_url", "document_url", "url", "tool_call_id"}
    )
    opaque = frozenset({"result"})

    def is_own(self, entry: Entry) -> bool:
        return type_of(entry) in {INPUT, RESULT, *MODEL}

    def is_own_body(self, body: Entry) -> bool:
        return self.container in body and any(field in body for field in OWN_FIELDS)

    # --- tools ------------------------------------------------------------------------------------

    def declared(self, entry: Entry) -> Iterator[Tool]:
        yield declared_function(self, entry)

    def chosen(self, said: Any, body: Entry) -> ToolChoice | None:
        return None if said is None else ToolChoice(MODES[said])

    # --- calls and results ------------------------------------------------------------------------

    def call(self, block: Entry) -> Named | None:
        is_ours = type_of(block) == CALL and block.get("confirmation_status") is None
        return (block.get("tool_call_id"), block.get("name")) if is_ours else None

    def result(self, block: Entry) -> Named | None:
        return (block.get("tool_call_id"), None) if type_of(block) == RESULT else None

    def returned(self, block: Entry) -> Returned:
        return block.get("result"), False

    def closed(self, call: Found) -> Entry:
        return {"type": RESULT, "tool_call_id": call.id, "result": UNAVAILABLE}

    def name_call(self, block: Entry, id: str) -> None:
        block["tool_call_id"] = id

    def name_result(self, block: Entry, id: str) -> None:
        block["tool_call_id"] = id

    # --- what was said ----------------------------------------------------------------------------

    def entries(self, body: Any) -> Any:
        said = super().entries(body)
        return [said] if isinstance(said, dict) else said

    def system(self, body: Entry) -> Any:
        return body.get("instructions")

    def is_model(self, item: Entry) -> bool:
        return type_of(item) in MODEL or item.get("role") == "assistant"

    def message(self, entry: Entry, where: str) -> Iterator[Step]:
        return self.user(entry, where)

    def piece(self, block: Entry) -> Piece | None:
        for kind, type in LINKED.items():
            if kind in block:
                said = block[kind]
                return media_at(said["url"] if isinstance(said, dict) else said, type)
        return None

    def told(self, entry: Entry) -> Iterator[Entry]:
        yield {"type": "conversation.response.started"}
        for index, item in enumerate(entry["items"]):
            yield from TOLD.get(type_of(item), _message)({**item, "output_index": index})
        yield {"type": "conversation.response.done"}


def _message(item: Entry) -> Iterator[Entry]:
    content = item.get("content")
    for at, chunk in enumerate(content if isinstance(content, list) else [content]):
        place = {"output_index": item["output_index"], "content_index": at}
        said = {"agent_id": item.get("agent_id"), "content": chunk}
        yield {"type": "message.output.delta", **place, **said}


def _function(item: Entry) -> Iterator[Entry]:
    keys = ("id", "tool_call_id", "name", "arguments", "agent_id", "confirmation_status")
    yield {"type": "function.call.delta", **_only(item, *keys)}


def _execution(item: Entry) -> Iterator[Entry]:
    yield {"type": f"{EXECUTION}.started", **_only(item, "id", "name", "arguments", "agent_id")}
    yield {"type": f"{EXECUTION}.done", **_only(item, "id", "name", "info")}


def _handoff(item: Entry) -> Iterator[Entry]:
    before = _only(item, "id", "previous_agent_id", "previous_agent_name")
    yield {"type": f"{HANDOFF}.started", **before}
    yield {"type": f"{HANDOFF}.done", **_only(item, "id", "next_agent_id", "next_agent_name")}


TOLD = {OUTPUT: _message, CALL: _function, EXECUTION: _execution, HANDOFF: _handoff}


def _only(item: Entry, *keys: str) -> Entry:
    return {key: item[key] for key in keys if item.get(key) is not None}


MESSAGES = ConversationsMessages
