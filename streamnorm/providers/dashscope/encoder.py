"""DashScope's own wire, the way back: Chat's messages (``openai_chat``), in fields of their own:

{model, input: {messages}, parameters: {result_format, incremental_output, tools, tool_choice …}}
content = text, or [{text} | {image}] at the multimodal address
"""

from __future__ import annotations

from collections.abc import Sequence

from ...conversation import Text
from ...encoding.encoder import Body, Entry, Said
from ...encoding.fields import FLAG, NUMBER, SWITCH, TEXT, TEXTS, WHOLE, Field
from ...text.written import data_uri
from ...tools import File, Link, Tool, ToolChoice
from ..openai_chat.encoder import FORMAT, ChatEncoder

__all__ = ["ENCODER", "DashScopeEncoder"]


FIELDS = (
    Field("model", "model", TEXT),
    Field("stream", "parameters.incremental_output", SWITCH, unsaid=False),
    Field("max_tokens", "parameters.max_tokens", WHOLE),
    Field("temperature", "parameters.temperature", NUMBER),
    Field("top_p", "parameters.top_p", NUMBER),
    Field("top_k", "parameters.top_k", WHOLE),
    Field("stop", "parameters.stop", TEXTS),
    Field("seed", "parameters.seed", WHOLE),
    Field("presence_penalty", "parameters.presence_penalty", NUMBER),
    Field("thinking", "parameters.enable_thinking", FLAG),
    Field("thinking_budget", "parameters.thinking_budget", WHOLE),
    Field("format", "parameters.response_format", FORMAT),
)


class DashScopeEncoder(ChatEncoder):
    """One request for a generation."""

    name = "dashscope"
    fields = FIELDS
    says_text_tools = False
    narrowed = {"allowed": "auto"}

    def body(self, talk: list[Said], system: str | None, tools: Body) -> Body:
        said = super().body(talk, system, tools)
        messages = {"messages": said.pop("messages")}
        return {"input": messages, "parameters": {"result_format": "message", **said}}

    def linked(self, part: Link) -> Entry | None:
        return {"image": part.url} if part.is_of("image/*") else None

    def piece(self, part: Text | File) -> Entry:
        if isinstance(part, File) and part.modality == "image":
            return {"image": data_uri(part.data, part.type)}
        return {"text": part.text if isinstance(part, Text) else part.words}

    def choice(self, choice: ToolChoice, tools: Sequence[tuple[Tool, str]]) -> Body:
        if choice.mode == "required":
            raise self.cannot("that some tool has to be called", "choose one by its name, or auto")
        return super().choice(choice, tools)


ENCODER = DashScopeEncoder
