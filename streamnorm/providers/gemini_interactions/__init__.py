"""Gemini Interactions: the row."""

from __future__ import annotations

from ...core.row import Key, Provider

__all__ = ["PROVIDER"]

PROVIDER = Provider(
    name="gemini_interactions",
    title="Gemini Interactions",
    serves="Gemini API, /interactions",
    container="input",
    telemetry="gcp.gemini",
    base="https://generativelanguage.googleapis.com",
    path="/v1beta/interactions",
    resume="/{id}?stream=true&last_event_id={at}",
    hosts=("generativelanguage.googleapis.com",),
    paths=("/interactions", "/v1beta/interactions/*"),
    key=Key(("GEMINI_API_KEY", "GOOGLE_API_KEY"), "x-goog-api-key", ""),
    sdk_modules=("google.genai._interactions",),
    parser=f"{__name__}.parser",
    encoder=f"{__name__}.encoder",
    messages=f"{__name__}.messages",
    script=f"{__name__}.script",
)
