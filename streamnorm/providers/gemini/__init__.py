"""Gemini generateContent: the row."""

from __future__ import annotations

from ...core.row import Counting, Key, Listing, Provider, Refusals

__all__ = ["PROVIDER"]

PROVIDER = Provider(
    name="gemini",
    title="Gemini generateContent",
    serves="Gemini API, Vertex AI, Code Assist",
    framing="SSE, JSON array",
    container="contents",
    telemetry="gcp.gemini",
    base="https://generativelanguage.googleapis.com",
    path="/v1beta/models/{model}:streamGenerateContent?alt=sse",
    path_at_once="/v1beta/models/{model}:generateContent",
    version="/v1beta",
    other_versions=("/v1", "/v1alpha"),
    counting=Counting("/v1beta/models/{model}:countTokens", "totalTokens"),
    listing=Listing(
        "/v1beta/models",
        {
            "name": "models/{id}",
            "displayName": "{id}",
            "supportedGenerationMethods": ["generateContent", "countTokens"],
        },
        field="models",
    ),
    hosts=("generativelanguage.googleapis.com",),
    paths=(":streamGenerateContent",),
    kept_headers=("x-goog-request-id",),
    key=Key(("GEMINI_API_KEY", "GOOGLE_API_KEY"), "x-goog-api-key", "", query="key"),
    sdk_modules=("google.genai",),
    sdk_fields=("sdk_http_response",),
    refusals=Refusals(delay=("error", "details", "*", "retryDelay")),
    demo="calls_without_ids",
    parser=f"{__name__}.parser",
    encoder=f"{__name__}.encoder",
    messages=f"{__name__}.messages",
    server=f"{__name__}.server",
    script=f"{__name__}.script",
)
