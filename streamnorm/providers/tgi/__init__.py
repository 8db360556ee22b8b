"""Hugging Face TGI's own API: the row."""

from __future__ import annotations

from ...core.row import Key, Provider, Refusals

__all__ = ["PROVIDER"]

PROVIDER = Provider(
    name="tgi",
    title="Hugging Face TGI",
    serves="/generate_stream of any Text Generation Inference, LoRAX …",
    container="inputs",
    tools=False,  # the same server has them at /v1/chat/completions
    telemetry="huggingface",
    path="/generate_stream",
    hosts=("api-inference.huggingface.co", "router.huggingface.co"),
    paths=("/generate_stream",),
    key=Key(("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"), needed=False),
    sdk_modules=("text_generation",),
    refusals=Refusals(code_field="error_type"),
    demo="text_only",
    parser=f"{__name__}.parser",
    encoder=f"{__name__}.encoder",
    messages=f"{__name__}.messages",
    script=f"{__name__}.script",
)
