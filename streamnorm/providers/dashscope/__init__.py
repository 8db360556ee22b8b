"""DashScope's own generation wire: the row."""

from __future__ import annotations

from ...core.row import Key, Provider

__all__ = ["PROVIDER"]

PROVIDER = Provider(
    name="dashscope",
    title="DashScope generation",
    serves="Alibaba Cloud Model Studio, Qwen and others, by its own interface",
    container="input.messages",
    base="https://dashscope.aliyuncs.com",
    path="/api/v1/services/aigc/text-generation/generation",
    hosts=("dashscope.aliyuncs.com", "dashscope-intl.aliyuncs.com", "dashscope-us.aliyuncs.com"),
    paths=("/aigc/text-generation/generation", "/aigc/multimodal-generation/generation"),
    headers={"x-dashscope-sse": "enable"},
    key=Key(("DASHSCOPE_API_KEY",)),
    sdk_modules=("dashscope",),
    parser=f"{__name__}.parser",
    encoder=f"{__name__}.encoder",
    messages=f"{__name__}.messages",
    script=f"{__name__}.script",
)
