"""DashScope's own wire, a body read back: Chat's messages, tools and choice in fields of their own.

See ``encoder`` for what stands in it.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...encoding.fields import at
from ...encoding.messages import Entry, Piece, media_at
from ..openai_chat.messages import ChatMessages

__all__ = ["MESSAGES", "DashScopeMessages"]

PARAMETERS = "parameters"


class DashScopeMessages(ChatMessages):
    """The messages of one request."""

    is_usual = False
    is_usual_list = False
    beside = tuple(f"{PARAMETERS}.{path}" for path in ChatMessages.beside)
    tools_at, choice_at = f"{PARAMETERS}.tools", f"{PARAMETERS}.tool_choice"
    known = ChatMessages.known | {"image"}

    def is_own_body(self, body: Entry) -> bool:
        return isinstance(at(body, self.container), list)

    def parallel(self, body: Entry) -> bool:
        return at(body, f"{PARAMETERS}.{self.parallel_at}") is not False

    def piece(self, block: Entry) -> Piece | None:
        return media_at(block["image"], "image/*") if "image" in block else super().piece(block)

    def told(self, entry: Entry) -> Iterator[Entry]:
        for payload in super().told(entry):
            choice = payload["choices"][0]
            said = {"message": choice["delta"], "finish_reason": choice["finish_reason"]}
            yield {"output": {"choices": [said]}}


MESSAGES = DashScopeMessages
