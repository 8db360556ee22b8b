"""Mistral chat, the Chat Completions wire with words of its own: the row."""

from __future__ import annotations

from ...core.row import Key, Provider

__all__ = ["PROVIDER"]

PROVIDER = Provider(
    name="mistral",
    title="Mistral chat",
    serves="api.mistral.ai and its gateways",
    telemetry="mistral_ai",
    base="https://api.mistral.ai",
    path="/v1/chat/completions",
    hosts=("api.mistral.ai", "codestral.mistral.ai"),
    paths=("/publishers/mistralai/models/*:streamRawPredict",),
    home_paths=("/chat/completions", "/fim/completions", "/agents/completions"),
    key=Key(("MISTRAL_API_KEY",)),
    sdk_modules=("mistralai",),
    parser=f"{__name__}.parser",
    encoder=f"{__name__}.encoder",
    messages=f"{__name__}.messages",
    script=f"{__name__}.script",
)
