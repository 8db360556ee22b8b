"""Mistral chat, read plainly: the Chat Completions wire, with fewer words for its end."""

from __future__ import annotations

from tests.proof.readers import openai_chat
from tests.proof.readers.said import Reading

NORMAL = {"stop", "tool_calls"}
KNOWN = {"length", "model_length"}


def read(body: bytes) -> Reading:
    return openai_chat.read(body, NORMAL, KNOWN)
