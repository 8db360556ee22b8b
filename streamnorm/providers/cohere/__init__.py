"""Cohere v2 chat: the row."""

from __future__ import annotations

from ...core.row import Key, Provider

__all__ = ["PROVIDER"]

PROVIDER = Provider(
    name="cohere",
    title="Cohere v2 chat",
    serves="api.cohere.com and its deployments",
    base="https://api.cohere.com",
    path="/v2/chat",
    hosts=(".cohere.com", ".cohere.ai"),
    paths=("/v2/chat",),
    key=Key(("CO_API_KEY", "COHERE_API_KEY")),
    sdk_modules=("cohere",),
    parser=f"{__name__}.parser",
    encoder=f"{__name__}.encoder",
    messages=f"{__name__}.messages",
    script=f"{__name__}.script",
)
