"""Takes of the Mistral conversations wire: entries, connectors, agents that hand over."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self

from tools.takes.common import Json, Take, fragments, ident, spaced, sse

MODEL = "mistral-medium-latest"
WEATHER = ("get_weather", {"city": "Reykjavík", "unit": "celsius"})
TIDES = ("get_tides", {"harbour": "Höfn", "days": 3})
CLERK, PILOT = "ag_0192a1", "ag_0192b2"


class Conversation:
    """One streamed response; every method appends what the wire would say."""

    def __init__(self, name: str) -> None:
        self.name, self.at, self.wire = name, -1, list[str]()
        self.say("conversation.response.started", conversation_id=ident("conv_", name, size=32))

    def say(self, kind: str, **fields: Any) -> Self:
        stamp = {"type": kind, "created_at": "2026-01-01T08:00:00Z"}
        self.wire.append(sse(stamp | fields, kind))
        return self

    def entry(self) -> Json:
        return {"output_index": self.at, "id": self.id("entry_")}

    def id(self, prefix: str = "", size: int = 32) -> str:
        return ident(prefix, self.name, self.at, size=size)

    def content(self, *contents: Any, **who: Any) -> Self:
        self.at += 1
        for content in contents:
            same = self.entry() | {"content_index": 0, "model": MODEL, "role": "assistant"} | who
            self.say("message.output.delta", **same, content=content)
        return self

    def text(self, text: str, **who: Any) -> Self:
        return self.content(*fragments(text, (6, 21, 14)), **who)

    def call(self, tool: str, *pieces: str, **more: Any) -> Self:
        self.at += 1
        same = self.entry() | {"model": MODEL, "name": tool, "tool_call_id": self.id(size=9)}
        for piece in pieces:
            self.say("function.call.delta", **(same | more), arguments=piece)
        return self

    def asked(self, tool: str, arguments: Json, **more: Any) -> Self:
        return self.call(tool, *fragments(spaced(arguments)), **more)

    def ran(self, tool: str, arguments: str, info: Json | None, *more: str, **who: Any) -> Self:
        self.at += 1
        same = self.entry() | {"name": tool}
        self.say("tool.execution.started", **same, **who, arguments=arguments)
        for piece in more:
            self.say("tool.execution.delta", **same, arguments=piece)
        return self.say("tool.execution.done", **same, **({"info": info} if info else {}))

    def hands(self, one: tuple[str, str], two: tuple[str, str]) -> Self:
        self.at += 1
        before = {"previous_agent_id": one[0], "previous_agent_name": one[1]}
        self.say("agent.handoff.started", **self.entry(), **before)
        after = {"next_agent_id": two[0], "next_agent_name": two[1]}
        return self.say("agent.handoff.done", **self.entry(), **after)

    def end(self, **usage: Any) -> list[str]:
        used = {"prompt_tokens": 118, "completion_tokens": 31, "total_tokens": 149} | usage
        return self.say("conversation.response.done", usage=used).wire


def takes() -> Iterator[Take]:
    for name, proves, wire in _table():
        yield Take("mistral_conversations", name, MODEL, proves, wire)


def _table() -> Iterator[tuple[str, str, list[str]]]:
    c = Conversation("text_only").text("The harbour is open until ten in the evening.")
    yield c.name, "an answer without calls finishes with stop", c.end()

    c = Conversation("parallel_calls").text("Both, then.").asked(*WEATHER).asked(*TIDES)
    yield c.name, "two calls, whole when the response is done", c.end()

    c = Conversation("whole_calls").call(WEATHER[0], spaced(WEATHER[1])).call("refresh", "")
    c.call("list_harbours", "{}")
    yield c.name, 'each call in one delta; "" and "{}" mean no arguments', c.end()

    c = Conversation("connectors").ran("web_search", '{"query": "Höfn ferry"}', None)
    link = {"type": "tool_reference", "tool": "web_search", "title": "Ferries"}
    c.content("At 07:40", link | {"url": "https://example.org/ferries"}, ".")
    connected = {"connector_tokens": 7112, "connectors": {"web_search": 1}, "total_tokens": 7261}
    yield c.name, "a tool that the provider runs, its source, and its tokens", c.end(**connected)

    c = Conversation("code_interpreter")
    c.ran("code_interpreter", "", {"code": "print(6 * 7)", "code_output": "42\n"},
          '{"code": "print(6', ' * 7)"}')  # fmt: skip
    yield c.name, "arguments come in deltas; what it gave stands in info", c.text("42.").end()

    c = Conversation("made_files").ran("image_generation", '{"prompt": "a harbour"}', None)
    file = {"type": "tool_file", "tool": "image_generation", "file_id": "f-1", "file_type": "png"}
    c.content("Here: ", file | {"file_name": "image_generated_0"})
    c.content({"type": "image_url", "image_url": "https://example.org/harbour.png"})
    yield c.name, "files and pictures that a tool has made", c.end()

    c = Conversation("handoff").text("I shall ask the pilot.", agent_id=CLERK)
    c.hands((CLERK, "clerk"), (PILOT, "pilot")).text("High water ", agent_id=PILOT)
    c.text("at four.").asked(*TIDES, agent_id=PILOT)
    yield c.name, "one agent hands the conversation to another; who speaks is told", c.end()

    c = Conversation("handoff_by_client").text("I shall ask the pilot.", agent_id=CLERK)
    c.at += 1
    before = {"previous_agent_id": CLERK, "previous_agent_name": "clerk"}
    c.say("agent.handoff.started", **c.entry(), **before)
    yield c.name, "a handoff that the client is to make has a beginning only", c.end()

    c = Conversation("thinking")
    thought = {"type": "thinking", "thinking": [{"type": "text", "text": "The unit is "}]}
    rest: Json = {"type": "thinking", "thinking": [{"type": "text", "text": "not given."}]}
    c.content(thought, rest | {"signature": "c2lnbmVkCg==", "closed": True}).asked(*WEATHER)
    yield c.name, "thinking chunks are reasoning; the signature is kept", c.end()

    c = Conversation("confirmation").asked(
        "send_mail", {"to": "pilot"}, confirmation_status="pending"
    )
    yield c.name, "a connector that waits for a yes: the provider runs it, not the client", c.end()

    c = Conversation("cut_in_arguments").asked(*WEATHER).call("write_file", '{"content": "Far')
    yield c.name, "simply ends inside the arguments", c.wire

    c = Conversation("cut_after_whole_arguments").asked(*WEATHER)
    yield c.name, "simply ends where the arguments happen to parse: nothing has closed them", c.wire

    c = Conversation("invalid_json").call("write_file", '{"content": "Far ou')
    yield c.name, "arguments that are cut although the response is done", c.end()

    c = Conversation("error_after_200").call("get_tides", '{"harb')
    c.say("conversation.response.error", message="The model is overloaded.", code=503)
    yield c.name, "an error event ends the stream", c.wire

    c = Conversation("error_first")
    c.say("conversation.response.error", message="Agent not found.", code=404)
    yield c.name, "an error for which asking again does not help", c.wire
