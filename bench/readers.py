"""The contenders: a wire and an address in, a coroutine function out that reads one stream there.

Everything is the contender's own code as installed, with its own HTTP client. Each reader does what
a user of that library has to do to get at the text and the final calls, and no more; the first two
get at neither. Imports stand inside the functions: peers live in environments without the others.

With ``note`` a reader calls it with every piece of text that comes out, at that moment.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.judge import Heard

__all__ = [
    "BARE",
    "CONTENDERS",
    "OURS",
    "SSE",
    "Contender",
    "Note",
    "Read",
    "heard_from",
    "offline",
]

Read = Callable[[], Coroutine[Any, Any, Heard | None]]
Note = Callable[[Any], object]
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
# Where each wire is served, below the address of the server.
PATHS = {
    "openai_chat": "/v1/chat/completions",
    "anthropic": "/v1/messages",
    "openai_responses": "/v1/responses",
    "gemini": "/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse",
}


def offline() -> None:
    """Keys that open nothing, no proxy on the way to loopback, and no telemetry."""
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY"):
        os.environ[name] = "none"
    os.environ |= {
        "NO_PROXY": "*",
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "LANGSMITH_TRACING": "false",
        "DO_NOT_TRACK": "1",
    }


# The floor of HTTP, the plain reader, and streamnorm.


def bare_httpx(wire: str, base: str, note: Note | None = None) -> Read:
    """The chunks as they come: no frames, no JSON."""
    import httpx

    http = httpx.AsyncClient(verify=False, timeout=600)

    async def read() -> None:
        async with http.stream("POST", base + PATHS[wire]) as response:
            async for _ in response.aiter_bytes():
                pass

    async def noted() -> None:
        async with http.stream("POST", base + PATHS[wire]) as response:
            async for chunk in response.aiter_bytes():
                note(chunk)  # type: ignore[misc]

    return read if note is None else noted


def httpx_sse(wire: str, base: str, note: Note | None = None) -> Read:
    """Events as dicts and nothing more: no calls, no text, no ending."""
    import httpx
    import orjson
    from httpx_sse import EventSource

    http = httpx.AsyncClient(verify=False, timeout=600)
    loads = orjson.loads

    async def read() -> None:
        async with http.stream("POST", base + PATHS[wire]) as response:
            async for event in EventSource(response).aiter_sse():
                if event.data != "[DONE]":
                    loads(event.data)

    async def noted() -> None:
        async with http.stream("POST", base + PATHS[wire]) as response:
            async for event in EventSource(response).aiter_sse():
                if event.data != "[DONE]":
                    loads(event.data)
                    note(event.data)  # type: ignore[misc]

    return read if note is None else noted


def streamnorm(
    wire: str, base: str, note: Note | None = None, take: Callable[[], Path] | None = None
) -> Read:
    import httpx

    http = httpx.AsyncClient(verify=False, timeout=600)

    async def read() -> Heard:
        async with http.stream("POST", base + PATHS[wire]) as response:
            return await heard_from(response, wire, note, take and take())

    return read


async def heard_from(
    response: Any, wire: str, note: Note | None = None, record: Path | None = None
) -> Heard:
    """What streamnorm makes of a response."""
    from streamnorm import normalize

    got = Fragments(note)
    calls: list[tuple[str, str, Any]] = []
    end = "nothing"
    event: Any
    async with normalize(response, record=record) as stream:
        async for event in stream:
            kind = event.kind
            if kind == "text_delta":
                got.say(event.text)
            elif kind == "tool_call":
                arguments = event.arguments if wire == "gemini" else event.raw
                calls.append((event.id, event.name, arguments))
            elif kind in ("finish", "failed"):
                end = kind
    # ``summary["recording"]`` alone: the whole of it would be paid for by the clock that runs, and a
    # stream that is kept for later is not freed while it runs, as others are.
    recording = None if record is None else stream._intake.recording().get("recording", {})
    return Heard("".join(got.text), calls, end, recording)


def streamnorm_recording(wire: str, base: str, note: Note | None = None) -> Read:
    """Each stream becomes a take of its own in a temporary folder."""
    import tempfile
    from itertools import count

    folder = tempfile.TemporaryDirectory(prefix="bench-")  # removed when the process ends
    numbers = count()
    return streamnorm(wire, base, note, lambda: Path(folder.name) / f"{next(numbers)}.sse")


# SDKs.


class Fragments:
    """Calls whose arguments come in pieces, under whatever key the wire uses."""

    def __init__(self, note: Note | None = None) -> None:
        self.text: list[str] = []
        self.say = self.text.append if note is None else note
        self.calls: dict[int, tuple[str, str, list[str]]] = {}

    def heard(self) -> Heard:
        calls = [(call_id, name, "".join(parts)) for call_id, name, parts in self.calls.values()]
        return Heard("".join(self.text), calls)

    def chat(self, chunk: Any) -> None:
        for choice in chunk.choices:
            if choice.delta.content:
                self.say(choice.delta.content)
            for entry in choice.delta.tool_calls or ():
                if entry.index not in self.calls:
                    self.calls[entry.index] = (entry.id, entry.function.name, [])
                self.calls[entry.index][2].append(entry.function.arguments or "")

    def responses(self, event: Any) -> None:
        kind = event.type
        if kind == "response.output_text.delta":
            self.say(event.delta)
        elif kind == "response.function_call_arguments.delta":
            self.calls[event.output_index][2].append(event.delta)
        elif kind == "response.output_item.added" and _get(event.item, "type") == "function_call":
            item = event.item
            self.calls[event.output_index] = (_get(item, "call_id"), _get(item, "name"), [])

    def messages(self, event: Any) -> None:
        if event.type == "content_block_delta":
            if event.delta.type == "text_delta":
                self.say(event.delta.text)
            elif event.delta.type == "input_json_delta":
                self.calls[event.index][2].append(event.delta.partial_json)
        elif event.type == "content_block_start" and event.content_block.type == "tool_use":
            self.calls[event.index] = (event.content_block.id, event.content_block.name, [])


def _get(item: Any, name: str) -> Any:
    return item.get(name) if isinstance(item, dict) else getattr(item, name, None)


def openai_client(base: str) -> Any:
    import openai

    return openai.AsyncOpenAI(base_url=f"{base}/v1", max_retries=0)


def openai_events(wire: str, base: str, note: Note | None = None) -> Read:
    sdk = openai_client(base)

    async def chat() -> Heard:
        got = Fragments(note)
        stream = await sdk.chat.completions.create(
            model="gpt-5-mini", messages=ASK, tools=CHAT_TOOLS, stream=True
        )
        async for chunk in stream:
            got.chat(chunk)
        return got.heard()

    async def responses() -> Heard:
        got = Fragments(note)
        stream = await sdk.responses.create(model="gpt-5-mini", input="go on", stream=True)
        async for event in stream:
            got.responses(event)
        return got.heard()

    return chat if wire == "openai_chat" else responses


def openai_helper(wire: str, base: str, note: Note | None = None) -> Read:
    sdk = openai_client(base)

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


MESSAGES_ASK: dict[str, Any] = {
    "model": "claude-sonnet-4-5",
    "max_tokens": 64000,
    "messages": ASK,
    "tools": MESSAGES_TOOLS,
}


def anthropic_client(base: str) -> Any:
    import anthropic

    return anthropic.AsyncAnthropic(base_url=base, max_retries=0)


def anthropic_events(wire: str, base: str, note: Note | None = None) -> Read:
    sdk = anthropic_client(base)

    async def read() -> Heard:
        got = Fragments(note)
        async for event in await sdk.messages.create(stream=True, **MESSAGES_ASK):
            got.messages(event)
        return got.heard()

    return read


def anthropic_helper(wire: str, base: str, note: Note | None = None) -> Read:
    sdk = anthropic_client(base)

    async def read() -> Heard:
        async with sdk.messages.stream(**MESSAGES_ASK) as stream:
            async for _ in stream:
                pass
            blocks = (await stream.get_final_message()).content
        text = "".join(block.text for block in blocks if block.type == "text")
        return Heard(text, [(b.id, b.name, b.input) for b in blocks if b.type == "tool_use"])

    return read


def google_genai(wire: str, base: str, note: Note | None = None) -> Read:
    from google import genai

    sdk = genai.Client(api_key="none", http_options={"base_url": base})

    async def read() -> Heard:
        got = Fragments(note)
        calls: list[tuple[str, str, Any]] = []
        stream = await sdk.aio.models.generate_content_stream(
            model="gemini-2.5-flash", contents="go on"
        )
        async for chunk in stream:
            for part in chunk.candidates[0].content.parts or ():
                if part.text:
                    got.say(part.text)
                if (call := part.function_call) is not None:
                    calls.append((call.id, call.name, call.args))
        return Heard("".join(got.text), calls)

    return read


# Frameworks.


def pydantic_ai(wire: str, base: str, note: Note | None = None) -> Read:
    from pydantic_ai.messages import ModelRequest, TextPart, ToolCallPart, UserPromptPart
    from pydantic_ai.models import ModelRequestParameters
    from pydantic_ai.tools import ToolDefinition

    model = _pydantic_model(wire, base)
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


def _pydantic_model(wire: str, base: str) -> Any:
    if wire == "anthropic":
        from pydantic_ai.models.anthropic import AnthropicModel
        from pydantic_ai.providers.anthropic import AnthropicProvider

        provider = AnthropicProvider(anthropic_client=anthropic_client(base))
        return AnthropicModel("claude-sonnet-4-5", provider=provider)
    if wire == "gemini":
        from pydantic_ai.models.google import GoogleModel
        from pydantic_ai.providers.google import GoogleProvider

        return GoogleModel(
            "gemini-2.5-flash", provider=GoogleProvider(api_key="none", base_url=base)
        )
    from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
    from pydantic_ai.providers.openai import OpenAIProvider

    kind = OpenAIChatModel if wire == "openai_chat" else OpenAIResponsesModel
    return kind("gpt-5-mini", provider=OpenAIProvider(openai_client=openai_client(base)))


def langchain_openai(wire: str, base: str, note: Note | None = None) -> Read:
    from langchain_openai import ChatOpenAI

    responses = wire == "openai_responses"
    model = ChatOpenAI(
        model="gpt-4o",
        base_url=f"{base}/v1",
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


def litellm(wire: str, base: str, note: Note | None = None) -> Read:
    import litellm as library

    library.suppress_debug_info = True

    async def responses() -> Heard:
        got = Fragments(note)
        stream = await library.aresponses(
            model="openai/gpt-4o", input="go on", stream=True, api_base=f"{base}/v1"
        )
        async for event in stream:
            got.responses(event)
        return got.heard()

    how: dict[str, Any] = {
        "openai_chat": {"model": "openai/gpt-4o", "api_base": f"{base}/v1"},
        "anthropic": {"model": "anthropic/claude-sonnet-4-5", "api_base": base},
        "gemini": {
            "model": "gemini/gemini-2.5-flash",
            "api_base": f"{base}/v1beta/models/gemini-2.5-flash",
        },
    }.get(wire, {})

    async def completion() -> Heard:
        stream = await library.acompletion(messages=ASK, stream=True, tools=CHAT_TOOLS, **how)
        chunks = [chunk async for chunk in stream]
        message = library.stream_chunk_builder(chunks, messages=ASK).choices[0].message
        calls = [(c.id, c.function.name, c.function.arguments) for c in message.tool_calls or ()]
        return Heard(message.content or "", calls)

    return responses if wire == "openai_responses" else completion


@dataclass(frozen=True)
class Contender:
    """``environment`` is a key of ``bench.environments.ENVIRONMENTS``, or empty for our own.

    ``kind``: what it gives its user. Those of one ``distribution`` share a process.
    """

    kind: str
    environment: str
    distribution: str
    wires: tuple[str, ...]
    reader: Callable[..., Read]


BARE, SSE, OURS, RECORDING = (
    "bare httpx", "httpx-sse + orjson", "streamnorm", "streamnorm, record=",
)  # fmt: skip
OPENAI = ("openai_chat", "openai_responses")
ALL = ("openai_chat", "anthropic", "openai_responses", "gemini")
MESSAGES, GEMINI = ("anthropic",), ("gemini",)
# fmt: off
CONTENDERS = {
    BARE: Contender("chunks", "", "httpx", ALL, bare_httpx),
    SSE: Contender("dicts", "", "httpx-sse", ALL, httpx_sse),
    OURS: Contender("ours", "", "streamnorm", ALL, streamnorm),
    RECORDING: Contender("recording", "", "streamnorm", ALL, streamnorm_recording),
    "openai": Contender("SDK", "sdks", "openai", OPENAI, openai_events),
    "openai, .stream()": Contender("helper", "sdks", "openai", OPENAI, openai_helper),
    "anthropic": Contender("SDK", "sdks", "anthropic", MESSAGES, anthropic_events),
    "anthropic, .stream()": Contender("helper", "sdks", "anthropic", MESSAGES, anthropic_helper),
    "google-genai": Contender("SDK", "sdks", "google-genai", GEMINI, google_genai),
    "pydantic-ai": Contender("framework", "sdks", "pydantic-ai-slim", ALL, pydantic_ai),
    "langchain-openai": Contender("framework", "sdks", "langchain-openai", OPENAI, langchain_openai),
    "litellm": Contender("framework", "litellm", "litellm", ALL, litellm),
}
# fmt: on
