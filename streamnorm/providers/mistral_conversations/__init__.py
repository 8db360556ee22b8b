"""Mistral conversations and agents: the row."""

from __future__ import annotations

from ...core.row import Key, Provider

__all__ = ["PROVIDER"]

PROVIDER = Provider(
    name="mistral_conversations",
    title="Mistral conversations",
    serves="api.mistral.ai, /v1/conversations: agents, connectors and handoffs",
    container="inputs",
    telemetry="mistral_ai",
    base="https://api.mistral.ai",
    path="/v1/conversations",
    hosts=("api.mistral.ai",),
    home_paths=("/v1/conversations", "/v1/conversations/*", "/v1/conversations/*/restart"),
    key=Key(("MISTRAL_API_KEY",)),
    sdk_modules=("mistralai.client.models.conversationevents",),
    parser=f"{__name__}.parser",
    encoder=f"{__name__}.encoder",
    messages=f"{__name__}.messages",
    script=f"{__name__}.script",
)
