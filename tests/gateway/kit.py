"""A gateway that really listens, and the official SDKs as its clients, all with one face.

``gateway(...)`` runs one on the loopback address. A ``Talk`` is a conversation that a client of one wire
has with it: ``ask`` and ``answer`` give what an honest client of that wire heard, streamed or not.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, NamedTuple

import httpx
import pytest

from streamnorm.providers import provider_row
from streamnorm.testing import Script, Server, Turns
from streamnorm.testing.http import Answer

pytest.importorskip("starlette", reason="the gateway needs the extra gateway")
uvicorn = pytest.importorskip("uvicorn", reason="the gateway needs the extra gateway")
anthropic = pytest.importorskip("anthropic", reason="a client of the gateway")
openai = pytest.importorskip("openai", reason="a client of the gateway")
genai = pytest.importorskip("google.genai", reason="a client of the gateway")

from streamnorm import gateway as gateways  # noqa: E402

UPSTREAMS = ("anthropic", "openai_responses", "openai_chat", "gemini", "ollama", "bedrock")
SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}
MODEL = "client-model"


class Running(NamedTuple):
    """A gateway that listens, the rows of what went through it, and the application itself."""

    url: str
    told: list[dict[str, Any]]
    app: Any

    @property
    def rows(self) -> list[dict[str, Any]]:
        """A row is told when its exchange is over, which is a moment after its client has heard all."""
        house().settle(self.url.rpartition("/")[2])
        return self.told

    def row(self) -> dict[str, Any]:
        """The only exchange so far that was no question about models or tokens."""
        (row,) = self.rows
        return row


class House:
    """One server for all tests of a process; each gateway has a path of its own, ``/1``, ``/2``, …"""

    def __init__(self) -> None:
        self._apps: dict[str, Any] = {}
        self._count = itertools.count(1)
        self._busy = Counter[str]()  # requests under way
        self._changed = threading.Condition()
        self._listening = threading.Event()
        house = self

        class Listening(uvicorn.Server):
            async def startup(self, sockets: Any = None) -> None:
                await super().startup(sockets)
                house.loop = asyncio.get_running_loop()
                house._listening.set()

        config = uvicorn.Config(self, port=0, log_level="critical", lifespan="off", ws="auto")
        server = Listening(config)
        threading.Thread(target=server.run, daemon=True).start()
        assert self._listening.wait(60), "the gateways do not listen"
        self.url = f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        name, _, rest = scope["path"].lstrip("/").partition("/")
        path, counts = f"/{rest}", scope["type"] == "http"
        self._count_busy(name, counts)
        try:
            await self._apps[name](
                {**scope, "path": path, "raw_path": path.encode()}, receive, send
            )
        finally:
            self._count_busy(name, -counts)

    def _count_busy(self, name: str, more: int) -> None:
        with self._changed:
            self._busy[name] += more
            self._changed.notify_all()

    def settle(self, name: str) -> None:
        """Until no request to this one is under way."""
        with self._changed:
            assert self._changed.wait_for(lambda: not self._busy[name], 30), "an exchange is open"

    @contextmanager
    def open(self, app: Any) -> Iterator[str]:
        """Where this application is for now."""
        name = str(next(self._count))
        life = app.router.lifespan_context(app)
        asyncio.run_coroutine_threadsafe(life.__aenter__(), self.loop).result(30)
        self._apps[name] = app
        try:
            yield f"{self.url}/{name}"
        finally:
            del self._apps[name]
            leaving = life.__aexit__(None, None, None)
            asyncio.run_coroutine_threadsafe(leaving, self.loop).result(30)


@lru_cache(maxsize=1)
def house() -> House:
    return House()


@contextmanager
def gateway(to: str | list[str], **options: Any) -> Iterator[Running]:
    """One that listens until the end of the scope."""
    rows: list[dict[str, Any]] = []
    app = gateways.app(to, **{"environment": {}, "tell": rows.append, **options})
    with house().open(app) as url:
        yield Running(url, rows, app)


def telling(provider: str, *answers: list[bytes]) -> Server:
    """An upstream that says exactly these bytes, one list of chunks for each request."""
    kind = provider_row(provider).content_type
    return Server(lambda number: Answer(200, kind, answers[number]))


@contextmanager
def between(
    provider: str, answers: Script | Turns | Server, **options: Any
) -> Iterator[tuple[Running, Server]]:
    """A scripted upstream and a gateway in front of it."""
    server = answers if isinstance(answers, Server) else answers.server(provider)
    with server as upstream, gateway(
        f"{provider}={upstream.url}", **options
    ) as running:  # fmt: skip
        yield running, upstream


# --- clients --------------------------------------------------------------------------------------


class Call(NamedTuple):
    """A call that the client would run."""

    name: str
    arguments: Any
    id: str


class Said(NamedTuple):
    """What a client heard: text, calls, and its wire's own word for the end."""

    text: str
    calls: list[Call]
    end: str | None


class Talk:
    """One conversation of a client with the gateway."""

    wire: str
    path: str

    def __init__(self, url: str, *, stream: bool = True, key: str = "client-key") -> None:
        self.stream = stream
        self.url = url
        self.key = key
        self.messages: list[Any] = []

    def ask(self, text: str) -> Said:
        self.messages.append({"role": "user", "content": text})
        return self.go_on()

    def answer(self, results: dict[str, str]) -> Said:
        """The results of calls, by their id."""
        self.messages += self.results(results)
        return self.go_on()

    def go_on(self) -> Said:
        raise NotImplementedError

    def results(self, results: dict[str, str]) -> list[Any]:
        raise NotImplementedError

    def body(self, **more: Any) -> dict[str, Any]:
        """A request of this wire, as plain values."""
        raise NotImplementedError


class Messages(Talk):
    """Of the Anthropic SDK."""

    wire, path = "anthropic", "/v1/messages"
    tools = [{"name": "get_weather", "description": "The weather", "input_schema": SCHEMA}]

    def go_on(self) -> Said:
        asked = {
            "model": MODEL, "max_tokens": 100, "messages": self.messages, "tools": self.tools,
        }  # fmt: skip
        with anthropic.Anthropic(base_url=self.url, api_key=self.key, max_retries=0) as client:
            if self.stream:
                with client.messages.stream(**asked) as stream:
                    message = stream.get_final_message()
            else:
                message = client.messages.create(**asked)
        blocks = [block.model_dump(exclude_none=True) for block in message.content]
        self.messages.append({"role": "assistant", "content": blocks})
        return Said(
            "".join(b["text"] for b in blocks if b["type"] == "text"),
            [Call(b["name"], b["input"], b["id"]) for b in blocks if b["type"] == "tool_use"],
            message.stop_reason,
        )

    def results(self, results: dict[str, str]) -> list[Any]:
        entries = [
            {"type": "tool_result", "tool_use_id": id, "content": output}
            for id, output in results.items()
        ]
        return [{"role": "user", "content": entries}]

    def body(self, **more: Any) -> dict[str, Any]:
        said = [{"role": "user", "content": "Hello"}]
        return {
            "model": MODEL, "max_tokens": 100, "messages": said, "stream": self.stream,
            "tools": self.tools, **more,
        }  # fmt: skip


class Responses(Talk):
    """Of the OpenAI SDK."""

    wire, path = "openai_responses", "/v1/responses"
    tools = [
        {"type": "function", "name": "get_weather", "description": "The weather",
         "parameters": SCHEMA, "strict": True},
    ]  # fmt: skip

    def go_on(self) -> Said:
        asked = {"model": MODEL, "input": self.messages, "tools": self.tools, "store": False}
        with openai.OpenAI(base_url=f"{self.url}/v1", api_key=self.key, max_retries=0) as client:
            if self.stream:
                with client.responses.stream(**asked) as stream:
                    response = stream.get_final_response()
            else:
                response = client.responses.create(**asked)
        items = [item.model_dump(exclude_none=True) for item in response.output]
        for item in items:
            for part in item.get("content", []):
                part.pop("parsed", None)
            item.pop("parsed_arguments", None)
        self.messages += items
        calls = [item for item in items if item["type"] == "function_call"]
        return Said(
            response.output_text,
            [Call(c["name"], json.loads(c["arguments"]), c["call_id"]) for c in calls],
            response.status,
        )

    def results(self, results: dict[str, str]) -> list[Any]:
        return [
            {"type": "function_call_output", "call_id": id, "output": output}
            for id, output in results.items()
        ]

    def body(self, **more: Any) -> dict[str, Any]:
        said = [{"role": "user", "content": "Hello"}]
        return {
            "model": MODEL, "input": said, "stream": self.stream, "tools": self.tools,
            "store": False, **more,
        }  # fmt: skip


class Chat(Talk):
    """Of the OpenAI SDK, as most imitators are asked."""

    wire, path = "openai_chat", "/v1/chat/completions"
    tools = [
        {"type": "function", "function": {
            "name": "get_weather", "description": "The weather", "parameters": SCHEMA,
            "strict": True}},
    ]  # fmt: skip

    def go_on(self) -> Said:
        asked = {"model": MODEL, "messages": self.messages, "tools": self.tools}
        with openai.OpenAI(base_url=f"{self.url}/v1", api_key=self.key, max_retries=0) as client:
            if self.stream:
                with client.chat.completions.stream(**asked) as stream:
                    completion = stream.get_final_completion()
            else:
                completion = client.chat.completions.create(**asked)
        message = completion.choices[0].message
        calls = [
            {"id": call.id, "type": "function",
             "function": {"name": call.function.name, "arguments": call.function.arguments}}
            for call in message.tool_calls or []
        ]  # fmt: skip
        kept = {"role": "assistant", "content": message.content}
        self.messages.append({**kept, "tool_calls": calls} if calls else kept)
        return Said(
            message.content or "",
            [
                Call(c["function"]["name"], json.loads(c["function"]["arguments"]), c["id"])
                for c in calls
            ],
            completion.choices[0].finish_reason,
        )

    def results(self, results: dict[str, str]) -> list[Any]:
        return [
            {"role": "tool", "tool_call_id": id, "content": output}
            for id, output in results.items()
        ]

    def body(self, **more: Any) -> dict[str, Any]:
        said = [{"role": "user", "content": "Hello"}]
        return {
            "model": MODEL, "messages": said, "stream": self.stream, "tools": self.tools, **more
        }  # fmt: skip


class Generate(Talk):
    """Of the Google GenAI SDK, which gives thoughts and signatures back as it heard them."""

    wire, path = "gemini", f"/v1beta/models/{MODEL}:streamGenerateContent?alt=sse"
    tools = [
        {"function_declarations": [
            {"name": "get_weather", "description": "The weather", "parameters_json_schema": SCHEMA}
        ]},
    ]  # fmt: skip

    def __init__(self, url: str, *, stream: bool = True, key: str = "client-key") -> None:
        super().__init__(url, stream=stream, key=key)
        if not stream:  # its address says so, and no body
            self.path = f"/v1beta/models/{MODEL}:generateContent"

    def ask(self, text: str) -> Said:
        self.messages.append({"role": "user", "parts": [{"text": text}]})
        return self.go_on()

    def go_on(self) -> Said:
        never = {"automatic_function_calling": {"disable": True}}
        asked = {
            "model": MODEL, "contents": self.messages, "config": {"tools": self.tools, **never},
        }  # fmt: skip
        client = genai.Client(api_key=self.key, http_options={"base_url": self.url})
        with client:
            if self.stream:
                chunks = list(client.models.generate_content_stream(**asked))
            else:
                chunks = [client.models.generate_content(**asked)]
        candidates = [chunk.candidates[0] for chunk in chunks if chunk.candidates]
        parts = [
            part
            for candidate in candidates
            for part in (candidate.content.parts or [] if candidate.content else [])
        ]
        ends = [candidate.finish_reason for candidate in candidates if candidate.finish_reason]
        self.messages.append(
            {"role": "model", "parts": [p.model_dump(exclude_none=True) for p in parts]}
        )
        calls = [part.function_call for part in parts if part.function_call]
        return Said(
            "".join(part.text for part in parts if part.text and not part.thought),
            [Call(call.name, call.args, call.id) for call in calls],
            ends[-1].value if ends else None,
        )

    def results(self, results: dict[str, str]) -> list[Any]:
        calls = [
            p["function_call"] for m in self.messages for p in m["parts"] if "function_call" in p
        ]
        names = {call["id"]: call["name"] for call in calls}
        parts = [
            {"function_response": {"id": id, "name": names[id], "response": {"output": output}}}
            for id, output in results.items()
        ]
        return [{"role": "user", "parts": parts}]

    def body(self, **more: Any) -> dict[str, Any]:
        return {
            "contents": [{"role": "user", "parts": [{"text": "Hello"}]}],
            "tools": [{"functionDeclarations": [
                {"name": "get_weather", "description": "The weather", "parametersJsonSchema": SCHEMA}
            ]}],
            **more,
        }  # fmt: skip


TALKS: tuple[type[Talk], ...] = (Messages, Responses, Chat, Generate)


# --- without an SDK -------------------------------------------------------------------------------


class Heard(NamedTuple):
    """What stood on the wire: its status, headers and payloads, and whether its body ended well."""

    status: int
    headers: httpx.Headers
    text: str
    payloads: list[dict[str, Any]]
    broke: bool

    @property
    def error(self) -> dict[str, Any] | None:
        """The error in a stream or in a body that is none, as its wire says it."""
        for payload in self.payloads:
            if payload.get("type") == "response.failed":
                return dict(payload["response"]["error"])
            if isinstance(payload.get("error"), dict):
                return dict(payload["error"])
        return None


def post(url: str, path: str, body: Any, **headers: str) -> Heard:
    """Ask, and read all that comes."""
    with httpx.Client(timeout=60, verify=False) as client:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        with client.stream("POST", url + path, json=body, headers=named) as response:
            chunks, broke = list[bytes](), False
            try:
                for chunk in response.iter_bytes():
                    chunks.append(chunk)
            except httpx.TransportError:
                broke = True
    text = b"".join(chunks).decode()
    return Heard(response.status_code, response.headers, text, _payloads(text), broke)


def with_more(path: str, query: str) -> str:
    """The path with more in its query."""
    return f"{path}{'&' if '?' in path else '?'}{query}"


def _payloads(text: str) -> list[dict[str, Any]]:
    if text.startswith("{"):
        return [json.loads(text)]
    lines = [line[5:].strip() for line in text.splitlines() if line.startswith("data:")]
    return [json.loads(line) for line in lines if line.startswith("{")]


def would_run(wire: str, heard: Heard) -> list[str]:
    """The names of the calls that a client runs which believes each closing mark when it comes."""
    return [name for payload in heard.payloads for name in _JUDGES[wire](payload, heard)]


def _run_by_messages(payload: dict[str, Any], heard: Heard) -> Iterator[str]:
    if payload.get("type") == "content_block_stop":
        starts = (p for p in heard.payloads if p.get("type") == "content_block_start")
        block = next(p["content_block"] for p in starts if p["index"] == payload["index"])
        if block["type"] == "tool_use":
            yield block["name"]


def _run_by_responses(payload: dict[str, Any], heard: Heard) -> Iterator[str]:
    done = payload.get("type") == "response.output_item.done"
    if done and payload["item"]["type"] == "function_call":
        yield payload["item"]["name"]


def _run_by_chat(payload: dict[str, Any], heard: Heard) -> Iterator[str]:
    if any(choice.get("finish_reason") for choice in payload.get("choices", [])):
        for said in heard.payloads:
            for choice in said.get("choices", []):
                for call in choice["delta"].get("tool_calls", []):
                    if call["function"].get("name"):
                        yield call["function"]["name"]


def _run_by_generate(payload: dict[str, Any], heard: Heard) -> Iterator[str]:
    for candidate in payload.get("candidates", []):
        for part in candidate.get("content", {}).get("parts", []):
            if "functionCall" in part:
                yield part["functionCall"]["name"]


_JUDGES = {
    "anthropic": _run_by_messages, "openai_responses": _run_by_responses, "openai_chat": _run_by_chat,
    "gemini": _run_by_generate,
}  # fmt: skip
