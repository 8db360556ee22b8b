"""Takes of Bedrock ConverseStream: binary frames with their checksums."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self

from streamnorm.framing.aws import write_frame
from tools.takes.common import Json, Take, dumps, fragments, ident, opaque, rechunk, spaced

MODEL = "anthropic.claude-sonnet-4-5-20250929-v1:0"
WEATHER = ("get_weather", {"city": "Reykjavík", "unit": "celsius"})
TIDES = ("get_tides", {"harbour": "Höfn", "days": 3})


class Converse:
    def __init__(self, name: str) -> None:
        self.name, self.at, self.frames = name, -1, list[bytes]()
        self.say("messageStart", role="assistant")

    def say(self, kind: str, message_type: str = "event", **payload: Any) -> Self:
        key = ":event-type" if message_type == "event" else ":exception-type"
        headers = {key: kind, ":content-type": "application/json", ":message-type": message_type}
        padding = "abcdefghijklmnopqrstuvwxyz"[: 3 + len(self.frames) % 20]
        self.frames.append(write_frame(headers, dumps(payload | {"p": padding}).encode()))
        return self

    def delta(self, **delta: Any) -> Self:
        return self.say("contentBlockDelta", contentBlockIndex=self.at, delta=delta)

    def stop(self) -> Self:
        return self.say("contentBlockStop", contentBlockIndex=self.at)

    def text(self, text: str) -> Self:
        self.at += 1  # text has no contentBlockStart
        for piece in fragments(text, (6, 21, 14)):
            self.delta(text=piece)
        return self.stop()

    def reasoning(self, *deltas: Json) -> Self:
        self.at += 1
        for delta in deltas:
            self.delta(reasoningContent=delta)
        return self.stop()

    def start(self, **start: Any) -> Self:
        self.at += 1
        return self.say("contentBlockStart", contentBlockIndex=self.at, start=start)

    def id(self, at: int) -> str:
        return ident("tooluse_", self.name, at)

    def begin(self, tool: str, **more: str) -> Self:
        return self.start(toolUse={"toolUseId": self.id(self.at + 1), "name": tool} | more)

    def pour(self, text: str) -> Self:
        for piece in fragments(text, (3, 21, 11)):
            self.delta(toolUse={"input": piece})
        return self

    def call(self, tool: str, arguments: Json, **more: str) -> Self:
        return self.begin(tool, **more).pour(spaced(arguments)).stop()

    def end(self, reason: str = "tool_use") -> Self:
        self.say("messageStop", stopReason=reason)
        usage = {"inputTokens": 415, "outputTokens": 62, "totalTokens": 605}
        usage |= {"cacheReadInputTokens": 128, "cacheWriteInputTokens": 0}
        return self.say("metadata", metrics={"latencyMs": 925}, usage=usage)

    def take(self, proves: str, sizes: tuple[int, ...] = (), cut: int = 0) -> Take:
        """One chunk per frame, or cut anywhere."""
        wire = b"".join(self.frames)
        pieces = rechunk(wire[: len(wire) - cut], sizes) if sizes else self.frames
        return Take("bedrock", self.name, MODEL, proves, pieces, chunks=True)


def takes() -> Iterator[Take]:
    c = Converse("text_only").text("The harbour is open until ten in the evening.")
    yield c.end("end_turn").take("text opens without a start; usage follows the stop")

    c = Converse("parallel_calls").text("Both, then.").call(*WEATHER).call(*TIDES)
    yield c.end().take("two calls, each in its own block")

    c = Converse("no_arguments").begin("list_harbours").stop().begin("refresh").pour("{}").stop()
    yield c.end().take('no delta and "{}" both mean no arguments')

    c = Converse("thinking_with_signature")
    c.reasoning({"text": "Which "}, {"text": "harbour?"}, {"signature": opaque("sign")})
    yield c.call(*TIDES).end().take("reasoning and its signature, then a call")

    c = Converse("redacted_thinking").reasoning({"redactedContent": opaque("redacted")})
    yield c.call(*TIDES).end().take("redacted reasoning is kept as it came")

    c = Converse("server_tools")
    c.call("nova_code_interpreter", {"snippet": "6 * 7"}, type="server_tool_use")
    result = {"toolUseId": c.id(0), "type": "nova_code_interpreter_result", "status": "success"}
    c.start(toolResult=result).delta(toolResult=[{"json": {"stdOut": "42", "exitCode": 0}}]).stop()
    yield c.text("42.").end("end_turn").take("a tool the provider runs, and its result")

    c = Converse("citations").text("High water is at 04:12")
    place = {"documentChar": {"documentIndex": 0, "start": 10, "end": 32}}
    c.at += 1
    c.delta(text=".").delta(citation={"title": "Tides", "location": place}).stop()
    yield c.end("end_turn").take("a citation delta")

    c = Converse("harness").text("Both, then.").call(*WEATHER)
    c.say("hookEvent", hookName="afterTool", payload={"harbour": "Höfn"})
    yield c.call(*TIDES).end().take("the stream of a harness is the same; its hooks are passed on")

    c = Converse("frames_split").text("Höfn 🌊.").call(*TIDES).end()
    yield c.take("chunks that end inside preludes, headers and characters", (1, 7, 130, 4, 61))

    c = Converse("max_tokens_in_arguments").begin("write_file").pour('{"content": "Far ou').stop()
    yield c.end("max_tokens").take("the length limit inside the arguments")

    c = Converse("block_stop_missing").begin(TIDES[0]).pour(spaced(TIDES[1]))
    yield c.end().take("a proxy never closes the block; the message's stop does")

    c = Converse("guardrail").text("The first step")
    yield c.end("guardrail_intervened").take("a guardrail stops the answer")

    c = Converse("cut_in_arguments").call(*WEATHER).begin("write_file").pour('{"content": "Far')
    yield c.take("simply ends inside the arguments")

    c = Converse("cut_in_frame").call(*WEATHER).end()
    yield c.take("the bytes end inside a frame", (200,), cut=150)

    c = Converse("error_after_200").call(*WEATHER).begin("get_tides").pour('{"harb')
    c.say("throttlingException", "exception", message="Too many tokens, please wait.")
    yield c.take("an exception frame ends the stream")
