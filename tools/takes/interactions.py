"""Takes of the Gemini Interactions wire."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self

from tools.takes.common import PIXEL, PNG, SOUND, Json, Take, dumps, fragments, ident, opaque, sse

MODEL = "gemini-3-flash-preview"
WEATHER = ("get_weather", {"city": "Reykjavík", "unit": "celsius"})
TIDES = ("get_tides", {"harbour": "Höfn", "days": 3})


class Interaction:
    def __init__(self, name: str) -> None:
        self.name, self.at, self.wire = name, -1, list[str]()
        self.body: Json = {"id": ident("v1_", name), "object": "interaction", "model": MODEL}
        self.say("interaction.created", interaction=self.body | {"status": "in_progress"})
        self.status("in_progress")

    def say(self, kind: str, **fields: Any) -> Self:
        self.wire.append(sse({"event_type": kind} | fields, kind))
        return self

    def status(self, status: str) -> Self:
        return self.say("interaction.status_update", interaction_id=self.body["id"], status=status)

    def start(self, kind: str, **step: Any) -> Self:
        self.at += 1
        return self.say("step.start", index=self.at, step={"type": kind} | step)

    def delta(self, kind: str, **delta: Any) -> Self:
        return self.say("step.delta", index=self.at, delta={"type": kind} | delta)

    def stop(self) -> Self:
        return self.say("step.stop", index=self.at)

    def text(self, text: str) -> Self:
        self.start("model_output")
        for piece in fragments(text, (6, 21, 14)):
            self.delta("text", text=piece)
        return self.stop()

    def thought(self, text: str) -> Self:
        self.start("thought")
        for piece in fragments(text, (12, 20)):
            self.delta("thought_summary", content={"type": "text", "text": piece})
        return self.delta("thought_signature", signature=opaque(self.name, self.at)).stop()

    def id(self, at: int) -> str:
        return ident("", self.name, at, size=8).lower()

    def begin(self, tool: str) -> Self:
        return self.start("function_call", id=self.id(self.at + 1), name=tool, arguments={})

    def pour(self, text: str) -> Self:
        for piece in fragments(text):
            self.delta("arguments_delta", arguments=piece)
        return self

    def call(self, tool: str, arguments: Json) -> Self:
        return self.begin(tool).pour(dumps(arguments)).stop()

    def served(self, kind: str, call: Json, result: Any) -> Self:
        """A server tool: its call step and its result step, each told by one delta."""
        key = self.id(self.at + 1)
        self.start(f"{kind}_call", id=key, **call).delta(f"{kind}_call", **call).stop()
        self.start(f"{kind}_result", call_id=key, result=result)
        return self.delta(f"{kind}_result", result=result).stop()

    def end(self, status: str = "completed", done: bool = True) -> list[str]:
        usage = {"total_input_tokens": 156, "total_output_tokens": 34, "total_thought_tokens": 21}
        usage |= {"total_cached_tokens": 0, "total_tool_use_tokens": 0, "total_tokens": 211}
        body = self.body | {"status": status, "usage": usage}
        self.say("interaction.completed", interaction=body)
        return [*self.wire, sse("[DONE]", "done")] if done else self.wire


class Numbered(Interaction):
    """Each event says where it is."""

    def say(self, kind: str, **fields: Any) -> Self:
        return super().say(kind, **fields, event_id=ident("evt_", self.name, len(self.wire)))


def takes() -> Iterator[Take]:
    for name, proves, wire in _table():
        yield Take("gemini_interactions", name, MODEL, proves, wire)


def _table() -> Iterator[tuple[str, str, list[str]]]:
    name = "text_only"
    i = Interaction(name).text("The harbour is open until ten in the evening.")
    yield name, "an answer without calls finishes with stop", i.end()

    name = "parallel_calls"
    i = Interaction(name).text("Both, then.").call(*WEATHER).call(*TIDES)
    yield name, "two calls with ids; requires_action means tool_calls", i.end("requires_action")

    name = "event_ids"
    i = Numbered(name).text("Both, then.").call(*WEATHER).call(*TIDES)
    yield name, "every event says where the stream can be resumed", i.end("requires_action")

    name = "no_arguments"
    i = Interaction(name).begin("list_harbours").stop().call("refresh", {})
    yield name, 'no delta and "{}" both mean no arguments', i.end("requires_action")

    name = "whole_arguments_in_start"
    i = Interaction(name)
    i.start("function_call", id=i.id(0), name=TIDES[0], arguments=TIDES[1]).stop()
    yield name, "the arguments are in the step's start", i.end("requires_action")

    name = "thought_signature"
    i = Interaction(name).thought("The unit is not given.").call(*WEATHER)
    yield name, "thoughts are reasoning; the signature is kept", i.end("requires_action")

    name = "server_tools"
    i = Interaction(name).served("code_execution", _code("print(6 * 7)"), "42\n")
    query = {"arguments": {"queries": ["Höfn ferry"]}}
    hit = {"url": "https://example.org/ferries", "title": "Ferries"}
    i.served("google_search", query, [hit])
    page = {"arguments": {"urls": ["https://example.org/ferries"]}}
    i.served("url_context", page, [{"url": "https://example.org/ferries", "status": "success"}])
    asked = {"name": "harbour_hours", "server_name": "harbours", "arguments": {"harbour": "Höfn"}}
    i.served("mcp_server_tool", asked, "Open 08-22").text("At 07:40.")
    yield name, "tools the provider runs; call_id joins result and call", i.end()

    name = "citations"
    i = Interaction(name).start("model_output").delta("text", text="The ferry leaves at 07:40.")
    note = {"type": "url_citation", "url": "https://example.org/ferries", "start_index": 0}
    i.delta("text_annotation_delta", annotations=[note | {"end_index": 26}]).stop()
    yield name, "annotations arrive beside the text", i.end()

    name = "pictures_and_sound"
    i = Interaction(name).start("model_output").delta("text", text="Here:")
    i.delta("image", data=PNG, mime_type="image/png").delta("image", data=PIXEL).stop()
    i.start("model_output")
    for piece in SOUND:
        i.delta("audio", data=piece, mime_type="audio/l16", sample_rate=24000, channels=1)
    i.stop().start("model_output")
    i.delta("video", uri="https://example.org/v1beta/files/abc123", mime_type="video/mp4").stop()
    yield name, "each picture is a part, a voice in pieces is one", i.end()

    name = "incomplete_in_arguments"
    i = Interaction(name).begin("write_file").pour('{"content":"Far ou')
    yield name, "the limit inside the arguments", i.end("incomplete")

    name = "cut_in_arguments"
    i = Interaction(name).call(*WEATHER).begin("write_file").pour('{"content":"Far')
    yield name, "simply ends inside the arguments", i.wire

    name = "error_after_200"
    i = Interaction(name).begin("get_tides").pour('{"harb')
    i.say("error", error={"code": "unavailable", "message": "The model is overloaded."})
    yield name, "an error event ends the stream", i.wire

    name = "ends_by_status"
    i = Interaction(name).call(*TIDES).status("requires_action")
    yield name, "a status update is the last word", i.wire


def _code(code: str) -> Json:
    return {"arguments": {"language": "python", "code": code}}
