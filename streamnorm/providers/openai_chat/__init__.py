"""OpenAI Chat Completions and those who imitate it: the row."""

from __future__ import annotations

from ...core.row import Key, Listing, Provider

__all__ = ["PROVIDER"]

PROVIDER = Provider(
    name="openai_chat",
    title="OpenAI Chat Completions",
    serves="OpenAI, Azure, vLLM, Ollama /v1, OpenRouter, Groq, DeepSeek, Copilot, Perplexity …",
    telemetry="openai",
    base="https://api.openai.com",
    path="/v1/chat/completions",
    version="/v1",
    listing=Listing(
        "/v1/models",
        {"id": "{id}", "object": "model", "created": 0, "owned_by": "streamnorm"},
        {"object": "list"},
    ),
    hosts=("api.openai.com", ".api.openai.com"),
    paths=("/chat/completions",),
    kept_headers=("openai-processing-ms", "openai-version"),
    key=Key(("OPENAI_API_KEY",)),
    sdk_modules=("openai.lib.streaming.chat", "openai.types.chat"),
    demo="index_missing",
    parser=f"{__name__}.parser",
    encoder=f"{__name__}.encoder",
    messages=f"{__name__}.messages",
    server=f"{__name__}.server",
    script=f"{__name__}.script",
)
