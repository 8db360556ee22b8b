"""The peers: a wire in, a coroutine function out that reads one stream the peer's own way.

Nothing is patched: everything above the transport is the peer's code as installed. ``WIRE`` holds
the chunks that the transport hands out; there is no socket. Each reader does what a user of that
library has to do to get at the text and the final calls, and no more. ``streamnorm`` reads through
the same kind of client, so both sides pay for HTTP.

Imports stand inside the functions: every peer lives in an environment without the others.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import dataclass
from types import ModuleType
from typing import Any, ClassVar

from bench.judge import Heard

__all__ = ["PEERS", "WIRE", "Peer", "Read", "streamnorm_reader"]

Read = Callable[[], Coroutine[Any, Any, Heard | None]]
BASE = "http://peer.invalid"
ASK = [{"role": "user", "content": "go on"}]
TOOL_NAMES = ("read_file", "edit_file", "write_file")
SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}}
CHAT_TOOLS = [
    {"type": "function", "function": {"name": name, "description": name, "parameters": SCHEMA}}
    for name in TOOL_NAMES
]
MESSAGES_TOOLS = [
    {"name": name, "description": name, "input_schema": SCHEMA} for name in TOOL_NAMES
]


class WIRE:
    """What the next request will be answered with."""

    chunks: ClassVar[list[bytes]] = []


def offline() -> None:
    """Keys that open nothing, and no telemetry."""
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY"):
        os.environ[name] = "none"
    os.environ |= {
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "LANGSMITH_TRACING": "false",
        "DO_NOT_TRACK": "1",
    }


# The transport.


def newest_httpx() -> ModuleType:
    """httpx2 where the SDKs have moved to it, else httpx."""
    try:
        import httpx2
    except ImportError:
        import httpx

        return httpx
    return httpx2


def transport(http: ModuleType) -> Any:
    """A transport of ``http`` (httpx or httpx2) that answers from ``WIRE``."""

    class Body(http.AsyncByteStream):  # type: ignore[name-defined,misc]
        async def __aiter__(self) -> AsyncIterator[bytes]:
            for chunk in WIRE.chunks:
                yield chunk

    class Transport(http.AsyncBaseTransport):  # type: ignore[name-defined,misc]
        async def handle_async_request(self, request: Any) -> Any:
            headers = {"content-type": "text/event-stream; charset=utf-8"}
            return http.Response(200, headers=headers, stream=Body(), request=request)

    return Transport()


def client(http: ModuleType) -> Any:
    return http.AsyncClient(transport=transport(http), timeout=600)


# streamnorm and the plain reader.


def streamnorm_reader(wire: str) -> Read:
    import httpx

    from streamnorm import Normalizer

    http = client(httpx)

    async def read() -> Heard:
        pipe = Normalizer(wire)
        text: list[str] = []
        heard = Heard()

        def take(events: list[Any]) -> None:
            for event in events:
                kind = event.kind
                if kind == "text_delta":
                    text.append(event.text)
                elif kind == "tool_call":
                    arguments = event.arguments if wire == "gemini" else event.raw
                    heard.calls.append((event.id, event.name, arguments))
                elif kind in ("finish", "failed"):
                    heard.end = kind

        async with http.stream("POST", BASE) as response:
            async for chunk in response.aiter_bytes():
                take(pipe.feed(chunk))
        take(pipe.close())
        heard.text = "".join(text)
        return heard

    return read


def httpx_sse_reader(wire: str) -> Read:
    """Events as dicts and nothing more: no calls, no text, no ending."""
    import httpx
    import orjson
    from httpx_sse import EventSource

    http = client(httpx)

    async def read() -> None:
        async with http.stream("POST", BASE) as response:
            async for event in EventSource(response).aiter_sse():
                if event.data != "[DONE]":
                    orjson.loads(event.data)

    return read


# SDKs.


class Fragments:
    """Calls whose arguments come in pieces, under whatever key the wire uses."""

    def __init__(self) -> None:
        self.text: list[str] = []
        self.calls: dict[int, tuple[str, str, list[str]]] = {}

    def heard(self) -> Heard:
        calls = [(call_id, name, "".join(parts)) for call_id, name, parts in self.calls.values()]
        return Heard("".join(self.text), calls)

    def chat(self, chunk: Any) -> None:
        for choice in chunk.choices:
            if choice.delta.content:
                self.text.append(choice.delta.content)
            for entry in choice.delta.tool_calls or ():
                if entry.index not in self.calls:
                    self.calls[entry.index] = (entry.id, entry.function.name, [])
                self.calls[entry.index][2].append(entry.function.arguments or "")

    def responses(self, event: Any) -> None:
        kind = event.type
        if kind == "response.output_text.delta":
            self.text.append(event.delta)
        elif kind == "response.function_call_arguments.delta":
            self.calls[event.output_index][2].append(event.delta)
        elif kind == "response.output_item.added" and _get(event.item, "type") == "function_call":
            item = event.item
            self.calls[event.output_index] = (_get(item, "call_id"), _get(item, "name"), [])

    def messages(self, event: Any) -> None:
        if event.type == "content_block_delta":
            if event.delta.type == "text_delta":
                self.text.append(event.delta.text)
            elif event.delta.type == "input_json_delta":
                self.calls[event.index][2].append(event.delta.partial_json)
        elif event.type == "content_block_start" and event.content_block.type == "tool_use":
            self.calls[event.index] = (event.content_block.id, event.content_block.name, [])


def _get(item: Any, name: str) -> Any:
    return item.get(name) if isinstance(item, dict) else getattr(item, name, None)


def openai_client() -> Any:
    import openai

    return openai.AsyncOpenAI(
        base_url=f"{BASE}/v1", http_client=client(newest_httpx()), max_retries=0
    )


def openai_events(wire: str) -> Read:
    sdk = openai_client()

    async def chat() -> Heard:
        got = Fragments()
        stream = await sdk.chat.completions.create(
            model="gpt-5-mini", messages=ASK, tools=CHAT_TOOLS, stream=True
        )
        async for chunk in stream:
            got.chat(chunk)
        return got.heard()

    async def responses() -> Heard:
        got = Fragments()
        stream = await sdk.responses.create(model="gpt-5-mini", input="go on", stream=True)
        async for event in stream:
            got.responses(event)
        return got.heard()

    return chat if wire == "openai_chat" else responses


def openai_helper(wire: str) -> Read:
    sdk = openai_client()

    async def chat() -> Heard:
        async with sdk.chat.completions.stream(model="gpt-5-mini", messages=ASK) as stream:
            async for _ in stream:
                pass
            message = (await stream.get_final_completion()).choices[0].message
        calls = [(c.id, c.function.name, c.function.arguments) for c in message.tool_calls or ()]
        return Heard(message.content or "", calls)

    async def responses() -> Heard:
        async with sdk.responses.stream(model="gpt-5-mini", input="go on") as stream:
            async for _ in stream:
                pass
            final = await stream.get_final_response()
        items = [item for item in final.output if item.type == "function_call"]
        return Heard(final.output_text, [(i.call_id, i.name, i.arguments) for i in items])

    return chat if wire == "openai_chat" else responses


def anthropic_client() -> Any:
    import anthropic

    return anthropic.AsyncAnthropic(
        base_url=BASE, http_client=client(newest_httpx()), max_retries=0
    )


MESSAGES_ASK: dict[str, Any] = {
    "model": "claude-sonnet-4-5",
    "max_tokens": 64000,
    "messages": ASK,
    "tools": MESSAGES_TOOLS,
}


def anthropic_events(wire: str) -> Read:
    sdk = anthropic_client()

    async def read() -> Heard:
        got = Fragments()
        async for event in await sdk.messages.create(stream=True, **MESSAGES_ASK):
            got.messages(event)
        return got.heard()

    return read


def anthropic_helper(wire: str) -> Read:
    sdk = anthropic_client()

    async def read() -> Heard:
        async with sdk.messages.stream(**MESSAGES_ASK) as stream:
            async for _ in stream:
                pass
            blocks = (await stream.get_final_message()).content
        text = "".join(block.text for block in blocks if block.type == "text")
        return Heard(text, [(b.id, b.name, b.input) for b in blocks if b.type == "tool_use"])

    return read


def google_genai(wire: str) -> Read:
    from google import genai

    options = {"base_url": BASE, "httpx_async_client": client(newest_httpx())}
    sdk = genai.Client(api_key="none", http_options=options)

    async def read() -> Heard:
        text: list[str] = []
        calls: list[tuple[str, str, Any]] = []
        stream = await sdk.aio.models.generate_content_stream(
            model="gemini-2.5-flash", contents="go on"
        )
        async for chunk in stream:
            for part in chunk.candidates[0].content.parts or ():
                if part.text:
                    text.append(part.text)
                if (call := part.function_call) is not None:
                    calls.append((call.id, call.name, call.args))
        return Heard("".join(text), calls)

    return read


# Frameworks.


def pydantic_ai(wire: str) -> Read:
    from pydantic_ai.messages import ModelRequest, TextPart, ToolCallPart, UserPromptPart
    from pydantic_ai.models import ModelRequestParameters
    from pydantic_ai.tools import ToolDefinition

    model = _pydantic_model(wire)
    tools = [ToolDefinition(name=name, parameters_json_schema=SCHEMA) for name in TOOL_NAMES]
    parameters = ModelRequestParameters(function_tools=tools)
    messages = [ModelRequest(parts=[UserPromptPart(content="go on")])]

    async def read() -> Heard:
        async with model.request_stream(messages, None, parameters) as stream:
            async for _ in stream:
                pass
            parts = stream.get().parts
        text = "".join(part.content for part in parts if isinstance(part, TextPart))
        calls = [part for part in parts if isinstance(part, ToolCallPart)]
        return Heard(text, [(call.tool_call_id, call.tool_name, call.args) for call in calls])

    return read


def _pydantic_model(wire: str) -> Any:
    if wire == "anthropic":
        from pydantic_ai.models.anthropic import AnthropicModel
        from pydantic_ai.providers.anthropic import AnthropicProvider

        provider = AnthropicProvider(anthropic_client=anthropic_client())
        return AnthropicModel("claude-sonnet-4-5", provider=provider)
    if wire == "gemini":
        from pydantic_ai.models.google import GoogleModel
        from pydantic_ai.providers.google import GoogleProvider

        provider = GoogleProvider(api_key="none", http_client=client(newest_httpx()))
        return GoogleModel("gemini-2.5-flash", provider=provider)
    from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
    from pydantic_ai.providers.openai import OpenAIProvider

    kind = OpenAIChatModel if wire == "openai_chat" else OpenAIResponsesModel
    return kind("gpt-5-mini", provider=OpenAIProvider(openai_client=openai_client()))


def langchain_openai(wire: str) -> Read:
    from langchain_openai import ChatOpenAI

    responses = wire == "openai_responses"
    model = ChatOpenAI(
        model="gpt-4o",
        base_url=f"{BASE}/v1",
        http_async_client=client(newest_httpx()),
        max_retries=0,
        use_responses_api=responses,
        output_version="responses/v1" if responses else None,
    )

    async def read() -> Heard:
        whole: Any = None
        async for chunk in model.astream("go on"):
            whole = chunk if whole is None else whole + chunk
        content = whole.content
        if not isinstance(content, str):
            content = "".join(b["text"] for b in content if b.get("type") == "text")
        return Heard(content, [(c["id"], c["name"], c["args"]) for c in whole.tool_call_chunks])

    return read


def litellm(wire: str) -> Read:
    import httpx
    import litellm as library
    from litellm.llms.custom_httpx.http_handler import AsyncHTTPHandler

    library.suppress_debug_info = True
    http = AsyncHTTPHandler(transport=transport(httpx))

    async def responses() -> Heard:
        got = Fragments()
        stream = await library.aresponses(
            model="openai/gpt-4o", input="go on", stream=True, client=http, api_base=f"{BASE}/v1"
        )
        async for event in stream:
            got.responses(event)
        return got.heard()

    how: dict[str, Any] = {
        "openai_chat": {"model": "openai/gpt-4o", "client": openai_client()},
        "anthropic": {"model": "anthropic/claude-sonnet-4-5", "client": http, "api_base": BASE},
        "gemini": {"model": "gemini/gemini-2.5-flash", "client": http},
    }.get(wire, {})

    async def completion() -> Heard:
        stream = await library.acompletion(messages=ASK, stream=True, tools=CHAT_TOOLS, **how)
        chunks = [chunk async for chunk in stream]
        message = library.stream_chunk_builder(chunks, messages=ASK).choices[0].message
        calls = [(c.id, c.function.name, c.function.arguments) for c in message.tool_calls or ()]
        return Heard(message.content or "", calls)

    return responses if wire == "openai_responses" else completion


@dataclass(frozen=True)
class Peer:
    """``environment`` is a key of ``bench.peers.ENVIRONMENTS``, or empty for our own."""

    environment: str
    distribution: str
    wires: tuple[str, ...]
    reader: Callable[[str], Read]


OPENAI = ("openai_chat", "openai_responses")
ALL = ("openai_chat", "anthropic", "openai_responses", "gemini")
PEERS = {
    "httpx-sse + orjson": Peer("", "httpx-sse", ALL, httpx_sse_reader),
    "openai, events": Peer("sdks", "openai", OPENAI, openai_events),
    "openai, .stream()": Peer("sdks", "openai", OPENAI, openai_helper),
    "anthropic, events": Peer("sdks", "anthropic", ("anthropic",), anthropic_events),
    "anthropic, .stream()": Peer("sdks", "anthropic", ("anthropic",), anthropic_helper),
    "google-genai": Peer("sdks", "google-genai", ("gemini",), google_genai),
    "pydantic-ai": Peer("sdks", "pydantic-ai-slim", ALL, pydantic_ai),
    "langchain-openai": Peer("sdks", "langchain-openai", OPENAI, langchain_openai),
    "litellm": Peer("litellm", "litellm", ALL, litellm),
}
