"""Cohere v2 chat, a body read back. See ``encoder`` for what stands in it.

Calls and results stand as on Chat Completions; ``tool_plan`` is what the model thought before them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ...encoding.messages import Entry, blocks_of
from ...tools import Mode, ToolChoice
from ..openai_chat.messages import ChatMessages
from .encoder import CHOICES

__all__ = ["MESSAGES", "CohereMessages"]

MODES: Mapping[str, Mode] = {said: mode for mode, said in CHOICES.items()}


class CohereMessages(ChatMessages):
    """The messages of one request."""

    is_usual = False
    is_usual_list = False
    beside = ("tools", "tool_choice")
    opaque = ChatMessages.opaque | {"document"}

    def is_own(self, entry: Entry) -> bool:
        return "tool_plan" in entry

    def chosen(self, said: Any, body: Entry) -> ToolChoice | None:
        return None if said is None else ToolChoice(MODES[said])

    def told(self, entry: Entry) -> Iterator[Entry]:
        calls = blocks_of(entry, self.calls)
        yield {"type": "message-start", "delta": {"message": {"role": "assistant"}}}
        if plan := entry.get("tool_plan"):
            yield {"type": "tool-plan-delta", "delta": {"message": {"tool_plan": plan}}}
        for at, block in enumerate(_content(entry)):
            yield {"type": "content-start", "index": at, "delta": {"message": {"content": block}}}
            yield {"type": "content-end", "index": at}
        for at, call in enumerate(calls):
            said = {"message": {"tool_calls": call}}
            yield {"type": "tool-call-start", "index": at, "delta": said}
            yield {"type": "tool-call-end", "index": at}
        reason = "TOOL_CALL" if calls else "COMPLETE"
        yield {"type": "message-end", "delta": {"finish_reason": reason}}


def _content(entry: Entry) -> list[Entry]:
    content = entry.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return blocks_of(entry, "content")


MESSAGES = CohereMessages
