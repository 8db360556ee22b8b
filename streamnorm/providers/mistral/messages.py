"""Mistral chat, a body read back: Chat Completions (``openai_chat``) with these words of its own:

results have the name of their tool · {type: document_url} · nothing tells it from Chat by its shape
"""

from __future__ import annotations

from ...encoding.messages import Entry, Found, Piece, media_at
from ..openai_chat.messages import ChatMessages
from .encoder import LINKED

__all__ = ["MESSAGES", "MistralMessages"]


class MistralMessages(ChatMessages):
    """The messages of one request."""

    is_usual = False
    is_usual_list = False
    known = ChatMessages.known | {"name", "document_url"}

    def closed(self, call: Found) -> Entry:
        return {**super().closed(call), "name": call.name}

    def piece(self, block: Entry) -> Piece | None:
        if "document_url" in block:
            return media_at(block["document_url"], LINKED["document_url"])
        return super().piece(block)


MESSAGES = MistralMessages
