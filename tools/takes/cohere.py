"""Takes of the Cohere v2 chat wire."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self

from tools.takes.common import DONE, Json, Take, fragments, ident, spaced, sse

MODEL = "command-a-03-2025"
WEATHER = ("get_weather", {"city": "Reykjavík", "unit": "celsius"})
TIDES = ("get_tides", {"harbour": "Höfn", "days": 3})


class Message:
    def __init__(self, name: str) -> None:
        self.name, self.wire, self.contents, self.calls = name, list[str](), 0, 0
        message = {"role": "assistant", "content": [], "tool_plan": "", "tool_calls": []}
        start: Json = {"id": ident("", name), "type": "message-start"}
        start |= {"delta": {"message": message | {"citations": []}}}
        self.wire.append(sse(start, "message-start"))

    def say(self, kind: str, index: int | None = None, **message: Any) -> Self:
        payload: Json = {"type": kind} | ({} if index is None else {"index": index})
        payload |= {"delta": {"message": message}} if message else {}
        self.wire.append(sse(payload, kind))
        return self

    def plan(self, text: str) -> Self:
        for piece in fragments(text, (2, 14, 20)):
            self.say("tool-plan-delta", tool_plan=piece)
        return self

    def content(self, text: str, kind: str = "text") -> Self:
        at, self.contents = self.contents, self.contents + 1
        self.say("content-start", at, content={"type": kind, kind: ""})
        for piece in fragments(text, (5, 20, 11)):
            self.say("content-delta", at, content={kind: piece})
        return self.say("content-end", at)

    def cite(self, start: int, end: int, text: str) -> Self:
        source = {"type": "tool", "id": "get_tides_1:0", "tool_output": {"high": "04:12"}}
        cited = {"start": start, "end": end, "text": text, "sources": [source]}
        return self.say("citation-start", 0, citations=cited | {"type": "TEXT_CONTENT"}).say(
            "citation-end", 0
        )

    def begin(self, tool: str) -> Self:
        at, self.calls = self.calls, self.calls + 1
        call = {"id": f"{tool}_{ident('', self.name, at, size=12).lower()}", "type": "function"}
        function = {"name": tool, "arguments": ""}
        return self.say("tool-call-start", at, tool_calls=call | {"function": function})

    def pour(self, text: str) -> Self:
        for piece in fragments(text):
            call = {"function": {"arguments": piece}}
            self.say("tool-call-delta", self.calls - 1, tool_calls=call)
        return self

    def call(self, tool: str, arguments: Json) -> Self:
        return self.begin(tool).pour(spaced(arguments)).say("tool-call-end", self.calls - 1)

    def end(self, reason: str, done: bool = False, **delta: Any) -> list[str]:
        units = {"input_tokens": 44, "output_tokens": 21}
        tokens = {"input_tokens": 912, "output_tokens": 58}
        usage = {"billed_units": units, "tokens": tokens, "cached_tokens": 640}
        delta = {"finish_reason": reason} | delta | {"usage": usage}
        self.wire.append(sse({"type": "message-end", "delta": delta}, "message-end"))
        return [*self.wire, DONE] if done else self.wire


def takes() -> Iterator[Take]:
    for name, proves, wire in _table():
        yield Take("cohere", name, MODEL, proves, wire)


def _table() -> Iterator[tuple[str, str, list[str]]]:
    name = "text_only"
    m = Message(name).content("The harbour is open until ten in the evening.")
    yield name, "an answer without calls finishes with stop", m.end("COMPLETE", done=True)

    name = "parallel_calls"
    m = Message(name).plan("I will look both of them up.").call(*WEATHER).call(*TIDES)
    yield name, "a plan, which is reasoning, then two calls", m.end("TOOL_CALL")

    name = "no_arguments"
    m = Message(name).begin("list_harbours").say("tool-call-end", 0)
    m.begin("refresh").pour("{}").say("tool-call-end", 1)
    yield name, 'no delta and "{}" both mean no arguments', m.end("TOOL_CALL")

    name = "thinking"
    m = Message(name).content("High water is what they mean.", "thinking").content("At 04:12.")
    yield name, "content of kind thinking is reasoning", m.end("COMPLETE", done=True)

    name = "citations"
    m = Message(name).content("High water is at 04:12.").cite(17, 22, "04:12")
    yield name, "a citation is one object, after its text", m.end("COMPLETE")

    name = "cut_in_arguments"
    m = Message(name).call(*WEATHER).begin("write_file").pour('{"content": "Far')
    yield name, "simply ends inside the arguments", m.wire

    name = "max_tokens_in_arguments"
    m = Message(name).begin("write_file").pour('{"content": "Far').say("tool-call-end", 0)
    yield name, "the length limit inside the arguments", m.end("MAX_TOKENS")

    name = "error_in_message_end"
    m = Message(name).content("One mom")
    yield name, "the error's text is in message-end", m.end("ERROR", error="internal server error")

    name = "debug_event"
    m = Message(name)
    m.wire.append(sse({"type": "debug", "prompt": "<|START|>When is high water?"}, "debug"))
    yield name, "a debug event changes nothing", m.content("At 04:12.").end("COMPLETE")

    name = "stop_sequence"
    m = Message(name).content("one, two")
    yield name, "a stop sequence is an ordinary stop", m.end("STOP_SEQUENCE")
