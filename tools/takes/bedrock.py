"""Takes of Bedrock: ConverseStream, other wires in its envelope, agents; frames with checksums."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any, Self

from streamnorm.framing.aws import write_frame
from streamnorm.testing import call, cut, finish, say, script, think, usage
from tools.takes.common import PIXEL, Json, Take, dumps, fragments, ident, opaque, rechunk, spaced

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


METRICS = {"inputTokenCount": 415, "outputTokenCount": 62, "invocationLatency": 925}


class Invoke:
    """Payloads of another wire, each in base64; or stretches of a body; or what agents send."""

    def __init__(self, name: str) -> None:
        self.name, self.frames = name, list[bytes]()

    def say(
        self, kind: str, payload: bytes, message_type: str = "event", json: bool = True
    ) -> Self:
        key = ":event-type" if message_type == "event" else ":exception-type"
        content = "application/json" if json else "application/octet-stream"
        headers = {key: kind, ":content-type": content, ":message-type": message_type}
        self.frames.append(write_frame(headers, payload))
        return self

    def chunk(self, inner: bytes | Json, **more: Any) -> Self:
        data = inner if isinstance(inner, bytes) else dumps(inner).encode()
        padding = "abcdefghijklmnopqrstuvwxyz"[: 3 + len(self.frames) % 20]
        chunk = {"bytes": base64.b64encode(data).decode(), **more, "p": padding}
        return self.say("chunk", dumps(chunk).encode())

    def chunks(self, *payloads: Json) -> Self:
        for payload in payloads[:-1]:
            self.chunk(payload)
        return self.chunk({**payloads[-1], "amazon-bedrock-invocationMetrics": METRICS})

    def sse(self, body: bytes, whole: bool = True) -> Self:
        """Events of a body, each as a chunk: the service drops their names and marks."""
        lines = [line[6:] for line in body.splitlines() if line.startswith(b"data: {")]
        if not whole:
            return self._each(lines)
        last = (
            lines[-1][:-1]
            + b',"amazon-bedrock-invocationMetrics":'
            + dumps(METRICS).encode()
            + b"}"
        )
        return self._each([*lines[:-1], last])

    def _each(self, lines: list[bytes]) -> Self:
        for line in lines:
            self.chunk(line)
        return self

    def parts(self, body: bytes, sizes: tuple[int, ...]) -> Self:
        for piece in rechunk(body, sizes):
            self.say("PayloadPart", piece, json=False)
        return self

    def take(self, proves: str, model: str, sizes: tuple[int, ...] = ()) -> Take:
        pieces = rechunk(b"".join(self.frames), sizes) if sizes else self.frames
        return Take("bedrock", self.name, model, proves, pieces, chunks=True)


def invoked() -> Iterator[Take]:
    both = script(
        think("Which harbour?"), say("Both, then."), call(*WEATHER), call(*TIDES), usage(415, 62),
        finish(),
    )  # fmt: skip
    i = Invoke("invoke_anthropic").sse(both.bytes("anthropic"))
    yield i.take(
        "Messages in the envelope: told as anthropic, chunks in any cut", MODEL, (7, 130, 61)
    )

    i = Invoke("invoke_chat").sse(script(say("Both."), call(*TIDES), finish()).bytes("openai_chat"))
    yield i.take(
        "Chat in the envelope; the service's counts, as the wire has none", "openai.gpt-oss-20b"
    )

    i = Invoke("invoke_cohere").sse(script(say("Both."), call(*TIDES), finish()).bytes("cohere"))
    yield i.take("Cohere in the envelope", "cohere.command-a-03-2025-v1:0")

    choice: Json = {
        "index": 0,
        "message": {"role": "assistant", "content": "High "},
        "stop_reason": None,
    }
    asked = {"name": TIDES[0], "arguments": spaced(TIDES[1])}
    called: Json = {"id": "NzDoe95tO", "function": asked}
    last: Json = {"index": 0, "message": {"role": "assistant", "content": "water.", "tool_calls": [called]},
                  "stop_reason": "tool_calls"}  # fmt: skip
    i = Invoke("invoke_mistral").chunks({"choices": [choice]}, {"choices": [last]})
    yield i.take(
        "Chat in the service's words: message for delta, stop_reason",
        "mistral.mistral-large-2407-v1:0",
    )

    nova: list[Json] = [{"messageStart": {"role": "assistant"}}]
    start = {"toolUse": {"toolUseId": ident("tooluse_", "nova"), "name": TIDES[0]}}
    nova += [{"contentBlockStart": {"contentBlockIndex": 0, "start": start}}]
    for piece in fragments(spaced(TIDES[1]), (3, 21, 11)):
        delta = {"toolUse": {"input": piece}}
        nova += [{"contentBlockDelta": {"contentBlockIndex": 0, "delta": delta}}]
    nova += [
        {"contentBlockStop": {"contentBlockIndex": 0}},
        {"messageStop": {"stopReason": "tool_use"}},
    ]
    counts = {"inputTokens": 415, "outputTokens": 62, "cacheReadInputTokenCount": 128}
    nova += [{"metadata": {"usage": counts, "metrics": {}, "trace": {}}}]
    i = Invoke("invoke_nova").chunks(*nova)
    yield i.take(
        "Nova speaks the wire of ConverseStream inside the envelope", "amazon.nova-pro-v1:0"
    )

    lama: Json = {"generation": "Until ", "prompt_token_count": 24, "generation_token_count": 1}
    i = Invoke("invoke_llama").chunks(
        lama | {"stop_reason": None},
        lama | {"generation": "ten.", "generation_token_count": 2, "stop_reason": "stop"},
    )
    yield i.take("a body that is text and counts", "meta.llama3-70b-instruct-v1:0")

    titan: Json = {"index": 0, "inputTextTokenCount": 24, "totalOutputTextTokenCount": None}
    i = Invoke("invoke_titan").chunks(
        titan | {"outputText": "Until ", "completionReason": None},
        titan | {"outputText": "ten", "completionReason": "LENGTH", "totalOutputTextTokenCount": 2},
    )
    yield i.take("the length limit of a body that is text", "amazon.titan-text-express-v1")

    body = script(say("Deleting."), call(*TIDES), cut(inside="call")).bytes("anthropic")
    i = Invoke("invoke_exception").sse(body, whole=False)
    said = {"message": "Too many tokens, please wait before trying again."}
    i.say("throttlingException", dumps(said).encode(), "exception")
    yield i.take("an exception inside the arguments: the call is broken", MODEL)

    i = Invoke("invoke_chunk_damaged")
    lines = both.bytes("anthropic")
    for at, line in enumerate(x[6:] for x in lines.splitlines() if x.startswith(b"data: {")):
        if b"Reykjav" in line:
            i.say("chunk", b'{"bytes":"&&&&","p":"abc"}')
        else:
            i.chunk(line)
        assert at < 200
    yield i.take("a chunk that is no base64 was a part of a call: that is not whole", MODEL)

    i = Invoke("agent_return_control").say("trace", dumps({"trace": {}, "sessionId": "s"}).encode())
    i.chunk(b"I look. ", attribution={"citations": []})
    parameters = [{"name": "harbour", "type": "string", "value": "Höfn"},
                  {"name": "days", "type": "integer", "value": "3"}]  # fmt: skip
    function = {"actionGroup": "tides", "function": "get_tides", "parameters": parameters,
                "actionInvocationType": "RESULT"}  # fmt: skip
    api = {"actionGroup": "orders", "apiPath": "/orders/{id}", "httpMethod": "POST",
           "parameters": [{"name": "id", "type": "string", "value": "7"}],
           "requestBody": {"content": {"application/json": {"properties": [
               {"name": "count", "type": "number", "value": "2"}]}}}}  # fmt: skip
    inputs = [{"functionInvocationInput": function}, {"apiInvocationInput": api}]
    control = {"invocationId": "79e0feaa-c6f7-49bf-814d-b7c498505172", "invocationInputs": inputs}
    i.say("returnControl", dumps(control).encode())
    yield i.take("an agent leaves two calls to the client; text in base64", "")

    body = script(say("Both, Höfn 🌊."), call(*TIDES), finish()).bytes("openai_chat")
    i = Invoke("sagemaker_chat").parts(body, (1, 7, 130, 4, 61))
    yield i.take("stretches of a Chat body, cut inside lines and characters", "")


def takes() -> Iterator[Take]:
    yield from invoked()
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

    c = Converse("picture_in_pieces").text("Here:").start(image={"format": "gif"})
    for piece in (PIXEL[:28], PIXEL[28:]):
        c.delta(image={"source": {"bytes": piece}})
    yield c.stop().end("end_turn").take("a picture is told when its block ends, whole")

    c = Converse("guardrail").text("The first step")
    yield c.end("guardrail_intervened").take("a guardrail stops the answer")

    c = Converse("cut_in_arguments").call(*WEATHER).begin("write_file").pour('{"content": "Far')
    yield c.take("simply ends inside the arguments")

    c = Converse("cut_in_frame").call(*WEATHER).end()
    yield c.take("the bytes end inside a frame", (200,), cut=150)

    c = Converse("error_after_200").call(*WEATHER).begin("get_tides").pour('{"harb')
    c.say("throttlingException", "exception", message="Too many tokens, please wait.")
    yield c.take("an exception frame ends the stream")
