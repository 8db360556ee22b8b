"""Gemini Interactions, a body read back. See ``encoder`` for what stands in it.

The input is a text, one content, a list of contents, or a list of steps. A result may stand anywhere
behind its call. The service may know turns before these (``previous_interaction_id``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ...encoding.messages import (
    Entry,
    Found,
    Items,
    Named,
    Piece,
    Returned,
    Step,
    as_object,
    media,
    type_of,
)
from ...encoding.pairs import UNAVAILABLE
from ...tools import Link, Mode, Tool, ToolChoice
from ..gemini.messages import link_of
from .encoder import MODES
from .parser import CALLS, MEDIA, RESULTS

__all__ = ["MESSAGES", "InteractionsMessages"]

WORDS: Mapping[str, Mode] = {said: mode for mode, said in MODES.items()}
CALL, RESULT, USER = "function_call", "function_result", "user_input"
# Steps that the model said, or the provider for it.
MODEL = {"model_output", "thought", *CALLS, *RESULTS} - {RESULT}
OWN_FIELDS = ("previous_interaction_id", "system_instruction", "generation_config", "agent")


class InteractionsMessages(Items):
    """The input of one request."""

    unique = True
    beside = ("system_instruction", "tools", "generation_config.tool_choice")
    tools_at, choice_at = "tools", "generation_config.tool_choice"
    known = frozenset(
        {"type", "role", "content", "text", "uri", "mime_type", "call_id", "name", "is_error"}
    )
    opaque = frozenset({"data", "result"})

    def is_own(self, entry: Entry) -> bool:
        if type_of(entry) == CALL:  # Responses has one, too, which is named by ``call_id``
            return "call_id" not in entry
        return type_of(entry) in {RESULT, USER, *MODEL}

    def is_own_body(self, body: Entry) -> bool:
        return self.container in body and any(field in body for field in OWN_FIELDS)

    def has_past(self, body: Any) -> bool:
        return isinstance(body, dict) and bool(body.get("previous_interaction_id"))

    # --- tools ------------------------------------------------------------------------------------

    def declared(self, entry: Entry) -> Iterator[Tool]:
        if entry["type"] != "function":
            yield self.hosted(entry)
        else:
            rest = {key: value for key, value in entry.items() if key != "type"}
            yield self.function(rest, "parameters")

    def chosen(self, said: Any, body: Entry) -> ToolChoice | None:
        if said is None:
            return None
        if isinstance(said, str):
            return ToolChoice(WORDS[said])
        among = said["allowed_tools"]
        names = tuple(among["tools"])
        if among["mode"] == "any" and len(names) == 1:
            return ToolChoice("tool", names)
        if among["mode"] != "validated":
            raise ValueError("a choice that only this wire has")
        return ToolChoice("allowed", names)

    # --- calls and results ------------------------------------------------------------------------

    def call(self, block: Entry) -> Named | None:
        return (block.get("id"), block.get("name")) if block.get("type") == CALL else None

    def result(self, block: Entry) -> Named | None:
        return (block.get("call_id"), block.get("name")) if block.get("type") == RESULT else None

    def returned(self, block: Entry) -> Returned:
        return block.get("result"), bool(block.get("is_error"))

    def closed(self, call: Found) -> Entry:
        return {
            "type": RESULT, "call_id": call.id, "name": call.name, "result": UNAVAILABLE,
            "is_error": True,
        }  # fmt: skip

    def name_call(self, block: Entry, id: str) -> None:
        block["id"] = id

    def name_result(self, block: Entry, id: str) -> None:
        block["call_id"] = id

    def even(self, block: Entry) -> bool:
        return as_object(block, "arguments")

    # --- what was said ----------------------------------------------------------------------------

    def entries(self, body: Any) -> Any:
        said = super().entries(body)
        steps = [said] if isinstance(said, dict) else said
        if isinstance(steps, list) and any(map(_is_content, steps)):
            return [{"type": USER, "content": steps}]
        return steps

    def system(self, body: Entry) -> Any:
        return body.get("system_instruction")

    def is_model(self, item: Entry) -> bool:
        return type_of(item) in MODEL

    def message(self, entry: Entry, where: str) -> Iterator[Step]:
        return self.user(entry, where)

    def piece(self, block: Entry) -> Piece | None:
        if type_of(block) not in MEDIA:
            return None
        return _linked(block) if "uri" in block else media(block["data"], block["mime_type"])

    def told(self, entry: Entry) -> Iterator[Entry]:
        yield {"event_type": "interaction.created", "interaction": {"status": "in_progress"}}
        for index, step in enumerate(entry["items"]):
            yield {"event_type": "step.start", "index": index, "step": step}
            yield {"event_type": "step.stop", "index": index}
        asks = any(step.get("type") == CALL for step in entry["items"])
        status = "requires_action" if asks else "completed"
        yield {"event_type": "interaction.completed", "interaction": {"status": status}}


def _linked(block: Entry) -> Link:
    family = "application" if type_of(block) == "document" else type_of(block)
    return link_of(block["uri"], block.get("mime_type") or f"{family}/*")


def _is_content(said: Any) -> bool:
    return isinstance(said, dict) and type_of(said) in {"text", *MEDIA}


MESSAGES = InteractionsMessages
