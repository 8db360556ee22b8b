"""OpenAI Responses: the row."""

from __future__ import annotations

from ...core.row import Counting, Key, Listing, Provider, Refusals

__all__ = ["PROVIDER"]

PROVIDER = Provider(
    name="openai_responses",
    title="OpenAI Responses",
    serves="OpenAI, Azure OpenAI, Copilot, vLLM, OpenRouter …",
    container="input",
    telemetry="openai",
    base="https://api.openai.com",
    path="/v1/responses",
    version="/v1",
    counting=Counting(
        "/v1/responses/input_tokens", "input_tokens", {"object": "response.input_tokens"}
    ),
    listing=Listing(
        "/v1/models", {"id": "{id}"}, {"models": []}
    ),  # agents that know their models ask for nothing more
    resume="/{id}?stream=true&starting_after={at}",
    hosts=("api.openai.com", ".api.openai.com"),
    paths=("/responses", "/v1/responses/*"),
    key=Key(("OPENAI_API_KEY",)),
    sdk_modules=("openai.lib.streaming.responses", "openai.types.responses"),
    refusals=Refusals(
        final=("insufficient_quota", "billing_hard_limit_reached", "context_length_exceeded")
    ),
    demo="interleaved_calls",
    parser=f"{__name__}.parser",
    encoder=f"{__name__}.encoder",
    messages=f"{__name__}.messages",
    server=f"{__name__}.server",
    script=f"{__name__}.script",
    lanes=f"{__name__}.lanes",
)
