"""Anthropic Messages: the row."""

from __future__ import annotations

from ...core.row import Counting, Key, Listing, Provider

__all__ = ["PROVIDER"]

PROVIDER = Provider(
    name="anthropic",
    title="Anthropic Messages",
    serves="api.anthropic.com and its gateways",
    base="https://api.anthropic.com",
    path="/v1/messages",
    counting=Counting("/v1/messages/count_tokens", "input_tokens"),
    listing=Listing(
        "/v1/models",
        {
            "id": "{id}",
            "type": "model",
            "display_name": "{id}",
            "created_at": "1970-01-01T00:00:00Z",
        },
        {"has_more": False, "first_id": None, "last_id": None},
    ),
    hosts=("api.anthropic.com",),
    paths=("/v1/messages", "/publishers/anthropic/models/*:streamRawPredict"),
    headers={"anthropic-version": "2023-06-01"},
    kept_headers=("anthropic-version", "anthropic-ratelimit-"),
    key=Key(("ANTHROPIC_API_KEY",), "x-api-key", ""),
    sdk_modules=("anthropic",),
    parser=f"{__name__}.parser",
    encoder=f"{__name__}.encoder",
    messages=f"{__name__}.messages",
    server=f"{__name__}.server",
    script=f"{__name__}.script",
)
