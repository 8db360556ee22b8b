"""Takes of the Anthropic Messages wire."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self

from tools.takes.common import Json, Take, comment, fragments, ident, opaque, spaced, sse
from tools.takes.scenarios import SCENARIOS

MODEL = "claude-sonnet-4-5-20250929"
WEATHER = ("get_weather", {"city": "Reykjavík", "unit": "celsius"})
TIDES = ("get_tides", {"harbour": "Höfn", "days": 3})


class Message:
    """One streamed message; every method appends what the wire would say."""

    def __init__(self, name: str, **usage: int) -> None:
        self.name, self.index, self.wire = name, -1, list[str]()
        self.usage: Json = {"input_tokens": 412, "cache_creation_input_tokens": 0}
        self.usage |= {"cache_read_input_tokens": 0, "output_tokens": 1} | usage
        message: Json = {"model": MODEL, "id": ident("msg_01", name), "type": "message"}
        message |= {"role": "assistant", "content": [], "stop_reason": None, "stop_sequence": None}
        self.say("message_start", message=message | {"usage": self.usage})

    def say(self, kind: str, **fields: Any) -> Self:
        self.wire.append(sse({"type": kind} | fields, kind))
        return self

    def raw(self, piece: str) -> Self:
        self.wire.append(piece)
        return self

    def ping(self) -> Self:
        return self.say("ping")

    def open(self, block: Json) -> Self:
        self.index += 1
        return self.say("content_block_start", index=self.index, content_block=block)

    def delta(self, kind: str, index: int | None = None, **fields: Any) -> Self:
        at = self.index if index is None else index
        return self.say("content_block_delta", index=at, delta={"type": kind} | fields)

    def close(self, index: int | None = None) -> Self:
        return self.say("content_block_stop", index=self.index if index is None else index)

    def whole(self, block: Json) -> Self:
        return self.open(block).close()

    def text(self, text: str, *citations: Json) -> Self:
        self.open({"type": "text", "text": ""} | ({"citations": []} if citations else {}))
        for piece in fragments(text, (6, 21, 14)):
            self.delta("text_delta", text=piece)
        for citation in citations:
            self.delta("citations_delta", citation=citation)
        return self.close()

    def thinking(self, text: str) -> Self:
        self.open({"type": "thinking", "thinking": "", "signature": ""})
        for piece in fragments(text, (12, 30)):
            self.delta("thinking_delta", thinking=piece)
        return self.delta("signature_delta", signature=opaque(self.name, self.index)).close()

    def id(self, prefix: str = "toolu_01") -> str:
        return ident(prefix, self.name, self.index + 1)

    def begin(self, tool: str, kind: str = "tool_use", **more: Any) -> Self:
        prefix = {"server_tool_use": "srvtoolu_01", "mcp_tool_use": "mcptoolu_01"}
        block = {"type": kind, "id": self.id(prefix.get(kind, "toolu_01")), "name": tool}
        return self.open(block | {"input": {}} | more)

    def pour(self, text: str, index: int | None = None) -> Self:
        for piece in ["", *fragments(text)]:
            self.delta("input_json_delta", index, partial_json=piece)
        return self

    def call(self, tool: str, arguments: Json, kind: str = "tool_use", **more: Any) -> Self:
        return self.begin(tool, kind, **more).pour(spaced(arguments)).close()

    def served(self, tool: str, arguments: Json, result: str, content: Any) -> Self:
        """A server tool and its result block."""
        used = self.id("srvtoolu_01")
        self.call(tool, arguments, "server_tool_use")
        return self.whole({"type": result, "tool_use_id": used, "content": content})

    def end(self, stop: str = "end_turn", output: int = 87, **delta: Any) -> list[str]:
        reason = {"stop_reason": stop, "stop_sequence": None} | delta
        self.say("message_delta", delta=reason, usage=self.usage | {"output_tokens": output})
        return self.say("message_stop").wire


def _take(name: str, proves: str, wire: list[str], *types: str, newline: str = "\n") -> Take:
    return Take("anthropic", name, MODEL, proves, wire, types, newline=newline)


def takes() -> Iterator[Take]:
    yield from _ordinary()
    yield from _odd()
    yield from _scenarios()
    yield from _types()


def _ordinary() -> Iterator[Take]:
    name = "text_only"
    m = Message(name).ping().text("The harbour is open until ten in the evening.")
    yield _take(name, "an answer without calls finishes with stop", m.end())

    name = "parallel_calls"
    m = Message(name).text("I'll look both up.").call(*WEATHER).call(*TIDES)
    yield _take(name, "two calls in one message, each in its own block", m.end("tool_use"))

    name = "interleaved_calls"
    m = Message(name).begin(*WEATHER[:1]).begin(*TIDES[:1])
    first, second = fragments(spaced(WEATHER[1]), (16,)), fragments(spaced(TIDES[1]), (16,))
    for one, two in zip(first, second, strict=False):
        m.delta("input_json_delta", 0, partial_json=one)
        m.delta("input_json_delta", 1, partial_json=two)
    for rest in first[len(second) :]:
        m.delta("input_json_delta", 0, partial_json=rest)
    m.close(1).close(0)
    yield _take(name, "deltas of two open blocks are told apart by index", m.end("tool_use"))

    name = "thinking_with_signature"
    m = Message(name).thinking("The city is known; the unit is not. Celsius is usual there.")
    m.text("Checking.").call(*WEATHER)
    yield _take(name, "thinking is reasoning and its signature is kept", m.end("tool_use"))

    name = "redacted_thinking"
    m = Message(name).whole({"type": "redacted_thinking", "data": opaque(name, size=90)})
    m.thinking("The rest may be told.").call(*TIDES)
    yield _take(name, "a redacted block comes whole and goes back unchanged", m.end("tool_use"))

    name = "citations"
    where = {"type": "char_location", "cited_text": "Ferry at 07:40.", "document_index": 0}
    where |= {"document_title": "Timetable", "start_char_index": 120, "end_char_index": 135}
    m = Message(name).text("According to the timetable, ").text("the ferry leaves at 07:40", where)
    yield _take(name, "citations arrive beside the text they support", m.text(".").end())

    name = "server_tools"
    m = Message(name).text("Searching first.")
    m.served("web_search", {"query": "Höfn ferry"}, "web_search_tool_result", [_hit(name)])
    m.text("Now yours.").call(*TIDES)
    yield _take(name, "a tool the provider runs, then one the client runs", m.end("tool_use"))

    name = "programmatic_call"
    m = Message(name)
    runner = m.id("srvtoolu_01")
    m.begin("code_execution", "server_tool_use")
    m.pour(spaced({"code": "rows = await query_db(sql='select 1')\nprint(rows)"})).close()
    caller = {"type": "code_execution_20250825", "tool_id": runner}
    block = {"type": "tool_use", "id": m.id(), "name": "query_db", "input": {"sql": "select 1"}}
    m.whole(block | {"caller": caller})
    box = {"id": ident("container_01", name), "expires_at": "2026-01-01T00:04:30Z"}
    wire = m.end("tool_use", container=box)
    yield _take(name, "a call made by running code: caller and container are kept", wire)

    name = "full_input_in_block_start"
    m = Message(name).text("Reading.")
    block = {"type": "tool_use", "id": m.id(), "name": "read_file"}
    m.whole(block | {"input": {"absolute_path": "/srv/project/README.md"}})
    yield _take(name, "the whole input in the block's start, and no delta", m.end("tool_use"))

    name = "pause_turn"
    m = Message(name).text("Still searching.")
    m.call("web_search", {"query": "tide tables"}, "server_tool_use")
    wire = m.end("pause_turn")
    yield _take(name, "a long server turn pauses; it is neither done nor failed", wire)

    name = "refusal"
    details = {"type": "refusal", "category": "cyber", "explanation": None}
    wire = Message(name).text("I can't help").end("refusal", 4, stop_details=details)
    yield _take(name, "a refusal is its own finish", wire)

    name = "stop_sequence"
    wire = Message(name).text("one, two, three").end("stop_sequence", 6, stop_sequence=", four")
    yield _take(name, "a stop sequence is an ordinary stop", wire)

    name = "compaction"
    m = Message(name).open({"type": "compaction", "content": None})
    m.delta("compaction_delta", content="Earlier: the user planned a trip to Höfn.").close()
    yield _take(name, "a compacted history is opaque and pauses the turn", m.end("compaction"))

    name = "context_editing"
    m = Message(name).call(*WEATHER)
    edit = {
        "type": "clear_tool_uses_20250919",
        "cleared_tool_uses": 8,
        "cleared_input_tokens": 50000,
    }
    said = {"stop_reason": "tool_use", "stop_sequence": None}
    edited = {"context_management": {"applied_edits": [edit]}}
    m.say("message_delta", delta=said, usage=m.usage | {"output_tokens": 87}, **edited)
    wire = m.say("message_stop").wire
    yield _take(name, "what was cleared of the context is told with the end", wire)

    name = "cached_usage"
    m = Message(name, input_tokens=11, cache_read_input_tokens=9000)
    m.usage |= {"cache_creation_input_tokens": 512}
    m.usage |= {"output_tokens_details": {"thinking_tokens": 30}}
    wire = m.text("Twelve.").end(output=44)
    yield _take(name, "cached input counts as input, and later usage replaces earlier", wire)


def _odd() -> Iterator[Take]:
    name = "no_arguments"
    m = Message(name).begin("list_harbours").close()
    m.begin("refresh").delta("input_json_delta", partial_json="").close()
    yield _take(name, "no delta, or only an empty one, means {}", m.end("tool_use"))

    name = "input_absent"
    m = Message(name)
    m.whole({"type": "tool_use", "id": m.id(), "name": "list_harbours"})
    yield _take(name, "a proxy left `input` out of the block's start", m.end("tool_use"))

    name = "cut_in_arguments"
    m = Message(name).text("Writing the file.").begin("write_file")
    m.delta("input_json_delta", partial_json='{"file_path": "/srv/project/a.txt", "cont')
    yield _take(name, "the connection simply ends inside the arguments", m.wire)

    name = "cut_after_block_stop"
    m = Message(name).call(*WEATHER).begin("get_tides")
    m.delta("input_json_delta", partial_json="{}")
    yield _take(name, "a closed call survives the cut; an open one that parses does not", m.wire)

    name = "cut_in_frame"
    wire = Message(name).call(*WEATHER).end("tool_use")[:-1]
    wire[-1] = wire[-1][:70]
    yield _take(name, "the bytes end inside a data line", wire)

    name = "max_tokens_in_arguments"
    m = Message(name).begin("write_file")
    m.pour('{"file_path": "/srv/project/poem.txt", "content": "Far out, the lamp').close()
    wire = m.end("max_tokens", 64)
    yield _take(name, "the block is closed but its text is not a whole object", wire)

    name = "error_after_200"
    m = Message(name).call(*WEATHER).begin("get_tides")
    m.delta("input_json_delta", partial_json='{"harb')
    m.say("error", error={"type": "overloaded_error", "message": "Overloaded"})
    yield _take(name, "an error in the stream ends it; there is no message_stop", m.wire)

    name = "keep_alives"
    m = Message(name).ping().raw(comment("keep-alive")).ping()
    m.begin("get_weather").ping().pour(spaced(WEATHER[1])).ping().close()
    yield _take(name, "pings and comments anywhere change nothing", m.end("tool_use"))

    name = "invalid_json"
    m = Message(name).begin("get_weather").pour('{"city": Höfn}').close()
    m.begin("get_tides").pour('["Höfn"]').close()
    wire = m.end("tool_use")
    yield _take(name, "closed arguments that are no JSON, or no object, are broken calls", wire)

    name = "duplicate_keys"
    m = Message(name).begin("transfer").pour('{"amount": 10, "amount": 1000}').close()
    yield _take(name, "an object that says one key twice is not trusted", m.end("tool_use"))

    name = "exact_numbers"
    m = Message(name).begin("transfer")
    m.pour('{"id": 12345678901234567890123, "rate": 0.1, "scale": 1e-7, "z": -0.0}').close()
    yield _take(name, "big integers stay integers", m.end("tool_use"))

    name = "split_emoji"
    m = Message(name).open({"type": "text", "text": ""})
    m.delta("text_delta", text="Waving \ud83d").delta("text_delta", text="\udc4b now.").close()
    m.begin("post").delta("input_json_delta", partial_json='{"outer": "\ud83c')
    m.delta("input_json_delta", partial_json='\udf0a", "inner": "\\ud83d')
    m.delta("input_json_delta", partial_json='\\udc4b"}').close()
    yield _take(name, "half an emoji per delta, escaped once and escaped twice", m.end("tool_use"))

    name = "crlf"
    m = Message(name).text("Lines end in CRLF.").call(*TIDES)
    yield _take(name, "CRLF framing", m.end("tool_use"), newline="\r\n")

    name = "unknown_kinds"
    m = Message(name).say("weather_report", sky="clear")
    m.whole({"type": "hologram", "data": "…"}).text("Still here.")
    m.open({"type": "text", "text": ""}).delta("hum_delta", hum="mm").close()
    yield _take(name, "kinds nobody knows yet are handed on, not dropped", m.end())

    name = "event_name_missing"
    wire = [e.split("\n", 1)[1] for e in Message(name).call(*WEATHER).end("tool_use")]
    yield _take(name, "data.type decides; the event lines are gone", wire)


def _scenarios() -> Iterator[Take]:
    for scenario in SCENARIOS:
        m = Message(scenario.name).text(scenario.says)
        for call in scenario.calls:
            m.call(*call)
        yield _take(scenario.name, scenario.proves, m.end("tool_use"))


def _hit(name: str) -> Json:
    hit = {"type": "web_search_result", "title": "Ferries", "url": "https://example.org/ferries"}
    return hit | {"encrypted_content": opaque(name, "hit"), "page_age": "2 days ago"}


# result type -> (tool, input, content, a second content that is an error)
SERVED: dict[str, tuple[str, Json, Any, Json]] = {
    "web_search_tool_result": (
        "web_search",
        {"query": "Höfn ferry times"},
        [_hit("type_web_search_tool_result")],
        {"type": "web_search_tool_result_error", "error_code": "max_uses_exceeded"},
    ),
    "web_fetch_tool_result": (
        "web_fetch",
        {"url": "https://example.org/tides"},
        {
            "type": "web_fetch_result",
            "url": "https://example.org/tides",
            "content": {
                "type": "document",
                "source": {"type": "text", "media_type": "text/plain", "data": "High at 04:12"},
                "title": "Tides",
            },
            "retrieved_at": "2026-01-01T00:00:00Z",
        },
        {"type": "web_fetch_tool_result_error", "error_code": "url_not_accessible"},
    ),
    "code_execution_tool_result": (
        "code_execution",
        {"code": "print(6 * 7)"},
        {
            "type": "code_execution_result",
            "stdout": "42\n",
            "stderr": "",
            "return_code": 0,
            "content": [],
        },
        {"type": "code_execution_tool_result_error", "error_code": "unavailable"},
    ),
    "bash_code_execution_tool_result": (
        "bash_code_execution",
        {"command": "wc -l notes.txt"},
        {
            "type": "bash_code_execution_result",
            "stdout": "12 notes.txt\n",
            "stderr": "",
            "return_code": 0,
            "content": [{"type": "bash_code_execution_output", "file_id": "file_011notes"}],
        },
        {"type": "bash_code_execution_tool_result_error", "error_code": "execution_time_exceeded"},
    ),
    "text_editor_code_execution_tool_result": (
        "text_editor_code_execution",
        {"command": "create", "path": "notes.txt", "file_text": "one\n"},
        {"type": "text_editor_code_execution_create_result", "is_file_update": False},
        {
            "type": "text_editor_code_execution_tool_result_error",
            "error_code": "file_not_found",
            "error_message": None,
        },
    ),
    "tool_search_tool_result": (
        "tool_search_tool_regex",
        {"pattern": "tide|harbour", "limit": 5},
        {
            "type": "tool_search_tool_search_result",
            "tool_references": [{"type": "tool_reference", "tool_name": "get_tides"}],
        },
        {"type": "tool_search_tool_result_error", "error_code": "invalid_pattern"},
    ),
    "advisor_tool_result": (
        "advisor",
        {},
        {"type": "advisor_result", "text": "Ask for the date first.", "stop_reason": "end_turn"},
        {"type": "advisor_redacted_result", "encrypted_content": opaque("advisor")},
    ),
}


def _types() -> Iterator[Take]:
    name = "type_tool_use"
    m = Message(name).call(*WEATHER, caller={"type": "direct"})
    yield _take(name, "tool_use: its id is the call's id", m.end("tool_use"), "tool_use")

    name = "type_tool_result"
    m = Message(name)
    used = m.id()
    m.call(*WEATHER)
    m.whole({"type": "tool_result", "tool_use_id": used, "content": "7 °C", "is_error": False})
    yield _take(
        name, "tool_result, if a wire carried it back", m.end("tool_use"), "tool_result", "tool_use"
    )

    name = "type_server_tool_use"
    m = Message(name).call("web_search", {"query": "ebb"}, "server_tool_use")
    m.call("tool_search_tool_bm25", {"query": "tides"}, "server_tool_use")
    proves = "server_tool_use: natural ids, run by the provider"
    yield _take(name, proves, m.end("pause_turn"), "server_tool_use")

    name = "type_mcp_tool_use"
    m = Message(name)
    for text, wrong in (("Open 08-22", False), ("no such harbour", True)):
        used = m.id("mcptoolu_01")
        m.call("harbour_hours", {"harbour": "Höfn"}, "mcp_tool_use", server_name="harbours")
        result = {"type": "mcp_tool_result", "tool_use_id": used, "is_error": wrong}
        m.whole(result | {"content": [{"type": "text", "text": text}]})
    proves = "mcp_tool_use and mcp_tool_result, one well and one in error"
    yield _take(name, proves, m.text("Done.").end(), "mcp_tool_use", "mcp_tool_result")

    for kind, (tool, arguments, content, error) in SERVED.items():
        name = f"type_{kind}"
        m = Message(name).served(tool, arguments, kind, content)
        m.served(tool, arguments, kind, error)
        proves = f"{kind}: paired with its call by tool_use_id, once well and once otherwise"
        yield _take(name, proves, m.text("That is all.").end(), kind, "server_tool_use")

    name = "other_blocks"
    m = Message(name).whole({"type": "container_upload", "file_id": ident("file_011", name)})
    change = {"from": {"model": "claude-opus-4-5"}, "to": {"model": MODEL}}
    m.whole({"type": "fallback"} | change | {"trigger": {"type": "refusal", "category": None}})
    tools = [{"name": "harbour_hours", "description": "Opening hours", "input_schema": {}}]
    m.whole({"type": "mcp_tool_listing", "server_name": "harbours", "tools": tools})
    yield _take(name, "blocks that are neither text nor calls are not lost", m.text("Ok.").end())
