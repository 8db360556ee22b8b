"""Takes of DashScope's own wire: in pieces, and whole with every event."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self

from tools.takes.common import Json, Take, dumps, fragments, ident, spaced

MODEL = "qwen-plus"
WEATHER = ("get_weather", {"city": "Reykjavík", "unit": "celsius"})
TIDES = ("get_tides", {"harbour": "Höfn", "days": 3})


class Generation:
    """One streamed answer. ``whole``: every event says all that there is so far."""

    def __init__(self, name: str, whole: bool = False) -> None:
        self.name, self.whole, self.wire, self.said = name, whole, list[str](), 0
        self.message: Json = {"role": "assistant", "content": ""}

    def event(self, payload: Json, event: str = "result", status: int = 200) -> Self:
        head = f"id:{len(self.wire) + 1}\nevent:{event}\n:HTTP_STATUS/{status}\n"
        body = payload | {"request_id": ident("", self.name, size=32)}
        self.wire.append(f"{head}data:{dumps(body)}\n\n")
        return self

    def output(self, output: Json) -> Self:
        self.said += 3
        usage = {"input_tokens": 214, "output_tokens": self.said, "total_tokens": 214 + self.said}
        return self.event({"output": output, "usage": usage})

    def tell(self, message: Json, finish: str = "null") -> Self:
        return self.output({"choices": [{"message": message, "finish_reason": finish}]})

    def grow(self, field: str, text: str) -> Self:
        for piece in fragments(text, (6, 21, 14)):
            self.message[field] = self.message.get(field, "") + piece
            new = {"role": "assistant", "content": ""} | {field: piece}
            self.tell(dict(self.message) if self.whole else new)
        return self

    def text(self, text: str) -> Self:
        return self.grow("content", text)

    def call(self, at: int, tool: str, arguments: Json, text: str = "") -> Self:
        held = self.message.setdefault("tool_calls", [])
        entry: Json = {"index": at, "id": ident("call_", self.name, at), "type": "function"}
        held.append(entry | {"function": {"name": tool, "arguments": ""}})
        for n, piece in enumerate(fragments(text or spaced(arguments))):
            function = held[at]["function"]
            function["arguments"] += piece
            part = {"name": "" if n else tool, "arguments": piece}
            new = (entry | {"id": "" if n else entry["id"]}) | {"function": part}
            calls = [call | {"function": dict(call["function"])} for call in held]
            message = self.message | {"tool_calls": calls}
            self.tell(
                message if self.whole else {"role": "assistant", "content": "", "tool_calls": [new]}
            )
        return self

    def end(self, reason: str) -> list[str]:
        last = self.message if self.whole else {"role": "assistant", "content": ""}
        return self.tell(dict(last), reason).wire


def takes() -> Iterator[Take]:
    for name, proves, wire in _table():
        yield Take("dashscope", name, MODEL, proves, wire)


def _table() -> Iterator[tuple[str, str, list[str]]]:
    says = "The harbour is open until ten in the evening."
    g = Generation("text_only").text(says)
    yield g.name, "an answer in pieces; the reason is a text until the end", g.end("stop")

    g = Generation("text_whole", whole=True).text(says)
    yield g.name, "every event has the whole text so far: each word is told once", g.end("stop")

    g = Generation("parallel_calls").text("Both, then.").call(0, *WEATHER).call(1, *TIDES)
    yield g.name, "two calls in pieces, found by index; ids only come first", g.end("tool_calls")

    g = Generation("calls_whole", whole=True).text("Both, then.").call(0, *WEATHER).call(1, *TIDES)
    yield g.name, "every event has all calls so far", g.end("tool_calls")

    g = Generation("no_arguments", whole=True).call(0, "refresh", {})
    yield g.name, "a call without arguments beside the reason", g.end("tool_calls")

    g = Generation("reasoning", whole=True).grow("reasoning_content", "The unit is not given.")
    g.text("Celsius.")
    yield (
        g.name,
        "reasoning comes whole, again and again, before and beside the text",
        g.end("stop"),
    )

    g = Generation("older_form")
    for text, reason in (
        ("High", "null"),
        ("High water", "null"),
        ("High water at 04:12.", "stop"),
    ):
        g.output({"text": text, "finish_reason": reason})
    yield g.name, "the answer is a text beside its reason", g.wire

    g = Generation("content_parts")
    for text in ("A ", "harbour", "."):
        g.tell({"role": "assistant", "content": [{"text": text}]})
    yield g.name, "content as a list of parts", g.end("stop")

    g = Generation("search").text("At 07:40[1].")
    hit = {
        "index": 1,
        "title": "Ferries",
        "url": "https://example.org/ferries",
        "site_name": "Ferries",
    }
    last: Json = {"message": {"role": "assistant", "content": ""}, "finish_reason": "stop"}
    g.output({"choices": [last], "search_info": {"search_results": [hit]}})
    yield g.name, "what a search found stands beside the choices", g.wire

    g = Generation("max_tokens_in_arguments").call(0, "write_file", {}, '{"content": "Far ou')
    yield g.name, "the length limit inside the arguments", g.end("length")

    g = (
        Generation("cut_in_arguments")
        .call(0, *WEATHER)
        .call(1, "write_file", {}, '{"content": "Far')
    )
    yield g.name, "simply ends inside the arguments", g.wire

    g = Generation("cut_after_whole_arguments", whole=True).call(0, *WEATHER)
    yield g.name, "simply ends where the arguments happen to parse", g.wire

    g = Generation("error_after_200").text("One mom")
    error: dict[str, Any] = {
        "code": "Throttling.RateQuota",
        "message": "Requests rate limit exceeded.",
    }
    yield g.name, "an error event ends the stream", g.event(error, "error", 429).wire

    g = Generation("error_first")
    error = {
        "code": "DataInspectionFailed",
        "message": "Input data may contain inappropriate content.",
    }
    yield g.name, "an error for which asking again does not help", g.event(error, "error", 400).wire
