"""DashScope's own wire, the way back: Chat's messages (``openai_chat``), in fields of their own:

{model, input: {messages}, parameters: {result_format, incremental_output, tools, tool_choice …}}
content = text, or [{text} | {image}] at the multimodal address
"""

from __future__ import annotations

from collections.abc import Sequence

from ...conversation import Text
from ...encoding.encoder import Body, Entry, Said, filled
from ...text.written import data_uri
from ...tools import File, Tool, ToolChoice
from ..openai_chat.encoder import ChatEncoder

__all__ = ["ENCODER", "DashScopeEncoder"]


class DashScopeEncoder(ChatEncoder):
    """One request for a generation."""

    name = "dashscope"
    narrowed = {"allowed": "auto"}

    def body(self, talk: list[Said], system: str | None, tools: Body) -> Body:
        said = super().body(talk, system, tools)
        whole = {"model": said.pop("model", None), "input": {"messages": said.pop("messages")}}
        return filled({**whole, "parameters": {"result_format": "message", **said}})

    def settings(self) -> Body:
        return {
            "max_tokens": self.options.max_tokens,
            "incremental_output": self.options.stream or None,
        }

    def piece(self, part: Text | File) -> Entry:
        if isinstance(part, File) and part.modality == "image":
            return {"image": data_uri(part.data, part.type)}
        return {"text": part.text if isinstance(part, Text) else part.summary}

    def choice(self, choice: ToolChoice, tools: Sequence[tuple[Tool, str]]) -> Body:
        if choice.mode == "required":
            raise self.cannot("that some tool has to be called", "choose one by its name, or auto")
        return super().choice(choice, tools)


ENCODER = DashScopeEncoder
