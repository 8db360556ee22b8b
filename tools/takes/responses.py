"""Takes of the OpenAI Responses wire, and the writer that Azure Foundry shares."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self

from tools.takes.common import (
    DONE,
    PIXEL,
    Json,
    Take,
    comment,
    dumps,
    fragments,
    ident,
    opaque,
    sse,
)
from tools.takes.scenarios import SCENARIOS

MODEL = "gpt-5.1-2025-11-13"
WEATHER = ("get_weather", {"city": "Reykjavík", "unit": "celsius"})
TIDES = ("get_tides", {"harbour": "Höfn", "days": 3})
LINK = {
    "type": "url_citation",
    "start_index": 0,
    "end_index": 9,
    "url": "https://example.org/ferries",
    "title": "Ferries",
}


class Response:
    """One streamed response; every method appends what the wire would say."""

    provider, model = "openai_responses", MODEL

    def __init__(self, name: str, created: bool = True) -> None:
        self.name, self.at, self.sequence = name, -1, -1
        self.wire, self.output = list[str](), list[Json]()
        self.body: Json = {"id": ident("resp_", name), "object": "response"}
        self.body |= {"created_at": 1767225600, "status": "in_progress", "error": None}
        self.body |= {"incomplete_details": None, "model": self.model, "output": []}
        self.body |= {"parallel_tool_calls": True, "tool_choice": "auto", "usage": None}
        if created:
            self.say("response.created", response=dict(self.body))
            self.say("response.in_progress", response=dict(self.body))

    # the words of the wire

    def say(self, kind: str, **fields: Any) -> Self:
        self.sequence += 1
        payload = {"type": kind, "sequence_number": self.sequence} | fields
        self.wire.append(sse(payload, kind))
        return self

    def raw(self, piece: str) -> Self:
        self.wire.append(piece)
        return self

    def on(self, kind: str, at: int | None = None, **fields: Any) -> Self:
        """An event about an open item."""
        at = self.at if at is None else at
        return self.say(kind, output_index=at, item_id=self.output[at].get("id"), **fields)

    def added(self, kind: str, prefix: str, /, **fields: Any) -> Self:
        self.at += 1
        item = {"id": ident(prefix, self.name, self.at), "type": kind} | fields
        item |= self.extra(item)
        self.output.append(item)
        return self.say("response.output_item.added", output_index=self.at, item=dict(item))

    def done(self, at: int | None = None, **fields: Any) -> Self:
        at = self.at if at is None else at
        self.output[at] |= fields
        return self.say("response.output_item.done", output_index=at, item=dict(self.output[at]))

    def extra(self, item: Json) -> Json:
        """Fields this flavour of the wire adds to every item."""
        return {}

    def call_id(self, of: int | None = None) -> str:
        return ident("call_", self.name, self.at + 1 if of is None else of, size=24)

    # items

    def whole(
        self, kind: str, prefix: str, status: str | None = "completed", /, **fields: Any
    ) -> Self:
        """An item that streams nothing: added, then done."""
        opened = {"status": "in_progress"} if status else {}
        closed: Json = {"status": status} if status else {}
        return self.added(kind, prefix, **opened, **fields).done(**closed)

    def text(self, text: str, *annotations: Json) -> Self:
        self.added("message", "msg_", status="in_progress", content=[], role="assistant")
        part: Json = {"type": "output_text", "annotations": [], "logprobs": [], "text": ""}
        self.on("response.content_part.added", content_index=0, part=part)
        for piece in fragments(text, (6, 21, 14)):
            self.on("response.output_text.delta", content_index=0, delta=piece, logprobs=[])
        for i, note in enumerate(annotations):
            where: Json = {"content_index": 0, "annotation_index": i, "annotation": note}
            self.on("response.output_text.annotation.added", **where)
        part = part | {"text": text, "annotations": list(annotations)}
        self.on("response.output_text.done", content_index=0, text=text, logprobs=[])
        self.on("response.content_part.done", content_index=0, part=part)
        return self.done(status="completed", content=[part])

    def reasoning(self, summary: str, **fields: Any) -> Self:
        self.added("reasoning", "rs_", summary=[])
        part = {"type": "summary_text", "text": ""}
        self.on("response.reasoning_summary_part.added", summary_index=0, part=part)
        for piece in fragments(summary, (18, 33)):
            self.on("response.reasoning_summary_text.delta", summary_index=0, delta=piece)
        part = part | {"text": summary}
        self.on("response.reasoning_summary_text.done", summary_index=0, text=summary)
        self.on("response.reasoning_summary_part.done", summary_index=0, part=part)
        return self.done(summary=[part], **fields)

    def begin(self, tool: str, **more: Any) -> Self:
        fields = {"status": "in_progress", "arguments": "", "call_id": self.call_id()}
        return self.added("function_call", "fc_", **fields, name=tool, **more)

    def pour(self, text: str, at: int | None = None, kind: str = "function_call") -> Self:
        for piece in fragments(text, (9, 38, 21)):
            self.on(f"response.{kind}_arguments.delta", at, delta=piece)
        return self

    def settle(self, text: str, at: int | None = None) -> Self:
        self.on("response.function_call_arguments.done", at, arguments=text)
        return self.done(at, status="completed", arguments=text)

    def call(self, tool: str, arguments: Json, **more: Any) -> Self:
        text = dumps(arguments)
        return self.begin(tool, **more).pour(text).settle(text)

    # ends

    def end(self, status: str = "completed", emptied: bool = False, **fields: Any) -> list[str]:
        usage: Json = {"input_tokens": 301, "input_tokens_details": {"cached_tokens": 128}}
        usage |= {"output_tokens": 58, "output_tokens_details": {"reasoning_tokens": 16}}
        usage |= {"total_tokens": 359}
        output = [] if emptied else self.output
        body = self.body | {"status": status, "output": output, "usage": usage} | fields
        return self.say(f"response.{status}", response=body).wire

    def take(self, proves: str, *types: str, wire: list[str] | None = None) -> Take:
        wire = self.end() if wire is None else wire
        return Take(self.provider, self.name, self.model, proves, wire, types)


def takes() -> Iterator[Take]:
    yield from _ordinary()
    yield from _odd()
    yield from _cut()
    yield from scenarios(Response)
    yield from shared_types(Response)


def _voices(flavour: type[Response]) -> Iterator[Take]:
    """Several agents in one response: items and events say whose they are."""
    chief, scout = {"agent_name": "main"}, {"agent_name": "main/scout"}
    said = {"status": "in_progress", "content": [], "role": "assistant"}
    r = flavour("two_agents").added("message", "msg_", **said, agent=chief)
    r.added("message", "msg_", **said, agent=scout)
    words = (("Let me", " ask.", ""), ("High ", "water ", "at 04:12."))
    for pieces in zip(*words, strict=True):
        for at, (piece, agent) in enumerate(zip(pieces, (chief, scout), strict=True)):
            if piece:
                delta: Json = {"content_index": 0, "delta": piece, "logprobs": [], "agent": agent}
                r.on("response.output_text.delta", at, **delta)
    for at, (pieces, agent) in enumerate(zip(words, (chief, scout), strict=True)):
        part = {"type": "output_text", "annotations": [], "logprobs": [], "text": "".join(pieces)}
        r.on("response.content_part.done", at, content_index=0, part=part, agent=agent)
        r.done(at, status="completed", content=[part])
    r.added("reasoning", "rs_", summary=[], agent=scout)
    thought: Json = {"summary_index": 0, "delta": "Three days are wanted.", "agent": scout}
    r.on("response.reasoning_summary_text.delta", **thought)
    r.done(summary=[{"type": "summary_text", "text": "Three days are wanted."}])
    r.call(*TIDES, agent=scout).call(*WEATHER, agent=chief)
    yield r.take("texts, thoughts and calls of two agents are told apart")


def _ordinary() -> Iterator[Take]:
    r = Response("text_only").text("The harbour is open until ten in the evening.")
    yield r.take("an answer without calls finishes with stop")

    r = Response("parallel_calls").text("I'll look both up.").call(*WEATHER).call(*TIDES)
    yield r.take("two calls, one after the other")

    r = Response("interleaved_calls").begin(WEATHER[0]).begin(TIDES[0])
    first, second = dumps(WEATHER[1]), dumps(TIDES[1])
    r.pour(first[:12], 0).pour(second[:9], 1).pour(first[12:], 0).pour(second[9:], 1)
    r.settle(second, 1).settle(first, 0)
    yield r.take("two open items are told apart by output_index")

    r = Response("reasoning_summary").reasoning("**Planning** no unit is given.").call(*WEATHER)
    yield r.take("a reasoning summary, then a call")

    r = Response("encrypted_reasoning")
    r.added("reasoning", "rs_", summary=[], encrypted_content=opaque(r.name, "first"))
    r.done(encrypted_content=opaque(r.name, size=120)).call(*WEATHER)
    yield r.take("encrypted reasoning is kept whole, as output_item.done gives it")

    r = Response("reasoning_text")
    r.added("reasoning", "rs_", summary=[], content=[], status="in_progress")
    for piece in ("The user wants ", "the tide."):
        r.on("response.reasoning_text.delta", content_index=0, delta=piece)
    r.on("response.reasoning_text.done", content_index=0, text="The user wants the tide.")
    r.done(content=[{"type": "reasoning_text", "text": "The user wants the tide."}]).call(*TIDES)
    yield r.take("raw reasoning of open-weight models")

    r = Response("refusal")
    r.added("message", "msg_", status="in_progress", content=[], role="assistant")
    part = {"type": "refusal", "refusal": ""}
    r.on("response.content_part.added", content_index=0, part=part)
    for piece in ("I can't ", "help with that."):
        r.on("response.refusal.delta", content_index=0, delta=piece)
    part = {"type": "refusal", "refusal": "I can't help with that."}
    r.on("response.refusal.done", content_index=0, refusal=part["refusal"])
    r.on("response.content_part.done", content_index=0, part=part)
    r.done(status="completed", content=[part])
    yield r.take("a refusal part makes the finish a refusal")

    file = {"type": "file_citation", "file_id": "file-7", "filename": "tides.pdf", "index": 20}
    r = Response("citations").text("The ferry leaves at 07:40.", LINK, file)
    yield r.take("annotations arrive beside the text")

    r = Response("background_queued", created=False)
    r.say("response.queued", response=r.body | {"status": "queued", "background": True})
    r.say("response.created", response=dict(r.body)).call(*TIDES)
    yield r.take("a background response is queued first")

    more: Json = {"namespace": "harbour", "async": True}
    r = Response("namespaced_async_call").call(*TIDES, **more)
    yield r.take("namespace and async ride along on a function call")


def _odd() -> Iterator[Take]:
    r = Response("no_arguments").begin("list_harbours").settle("{}")
    r.begin("refresh").settle("")
    yield r.take('no deltas: "{}" and "" both mean no arguments')

    r = Response("done_without_deltas").begin(WEATHER[0]).settle(dumps(WEATHER[1]))
    r.begin(TIDES[0]).done(status="completed", arguments=dumps(TIDES[1]))
    yield r.take("arguments only in arguments.done, or only in output_item.done")

    r = Response("item_done_only")
    item = {"id": ident("fc_", r.name), "type": "function_call", "status": "completed"}
    item |= {"call_id": r.call_id(0), "name": TIDES[0], "arguments": dumps(TIDES[1])}
    r.output.append(item)
    r.say("response.output_item.done", output_index=0, item=item)
    yield r.take("an item that was never added, only done")

    r = Response("only_in_completed")
    r.output = [item | {"id": ident("fc_", r.name), "call_id": r.call_id(0)}]
    yield r.take("the call is nowhere but in the terminal event")

    r = Response("rotating_item_ids")
    for n, (tool, arguments) in enumerate((WEATHER, TIDES)):
        r.begin(tool)
        for i, piece in enumerate(fragments(dumps(arguments))):
            kind, spun = "response.function_call_arguments.delta", ident("x", r.name, n, i, size=30)
            r.say(kind, output_index=n, item_id=spun, delta=piece)
        r.output[n] = r.output[n] | {"id": ident("x", r.name, n, "done", size=30)}
        r.done(status="completed", arguments=dumps(arguments))
    yield r.take("item_id differs on every event; output_index holds the call together")

    r = Response("empty_item_ids").begin(WEATHER[0])
    for piece in fragments(dumps(WEATHER[1])):
        kind = "response.function_call_arguments.delta"
        r.say(kind, output_index=0, item_id="", delta=piece)
    kind = "response.function_call_arguments.done"
    r.say(kind, output_index=1, item_id="", arguments=dumps(WEATHER[1]))
    r.done(status="completed", arguments=dumps(WEATHER[1]))
    yield r.take('item_id is "" and output_index slips between delta and done')

    r = Response("done_differs_from_deltas").begin(WEATHER[0]).pour('{"city":"Oslo"}')
    yield r.settle(dumps(WEATHER[1])).take("copies that contradict whole deltas break the call")

    r = Response("emptied_done").begin(WEATHER[0]).pour(dumps(WEATHER[1]))
    r.on("response.function_call_arguments.done", arguments="").done(status="completed")
    yield r.take("an emptied done does not wipe what the deltas said")

    r = Response("created_missing", created=False).call(*TIDES)
    yield r.take("a relay left out response.created and response.in_progress")

    r = Response("empty_output_in_completed").text("Looking.").call(*TIDES)
    wire = r.end(emptied=True)
    yield r.take("response.output is [] at the end; nothing is taken back", wire=wire)

    r = Response("keep_alives").raw(comment("keep-alive")).say("keepalive").begin(TIDES[0])
    r.raw(comment("")).pour(dumps(TIDES[1])).say("keepalive").settle(dumps(TIDES[1]))
    yield r.take("comments and keepalive payloads change nothing")

    r = Response("obfuscation").begin(TIDES[0])
    for i, piece in enumerate(fragments(dumps(TIDES[1]))):
        kind = "response.function_call_arguments.delta"
        r.on(kind, delta=piece, obfuscation=ident("", r.name, i, size=9 - i))
    yield r.settle(dumps(TIDES[1])).take("padding against length attacks is not content")

    r = Response("late_call_id").added(
        "function_call", "fc_", status="in_progress", arguments="", name=TIDES[0], call_id=""
    )
    text = dumps(TIDES[1])
    r.pour(text).on("response.function_call_arguments.done", arguments=text)
    r.done(status="completed", arguments=text, call_id=r.call_id(0))
    yield r.take("call_id is empty until the item is done: it wins over the item's id")

    r = Response("changing_call_id")
    r.added(
        "tool_search_call", "tsc_", status="in_progress", execution="client", arguments={},
        call_id=ident("call_", r.name, "added"),
    )  # fmt: skip
    r.done(status="completed", arguments={"query": "tides"}, call_id=ident("call_", r.name, "done"))
    final = r.output[0] | {"call_id": ident("call_", r.name, "final")}
    yield r.take("one item under three ids is one call", wire=r.end(output=[final]))

    r = Response("search_with_arguments").added("web_search_call", "ws_", status="in_progress")
    r.done(status="completed", name="web_search", arguments='{"query":"ferry Höfn"}')
    r.text("At 07:40.")
    yield r.take("a web search that has arguments instead of an action")

    r = Response("incomplete_unknown").call(*TIDES).begin(WEATHER[0]).pour(dumps(WEATHER[1]))
    details = {"incomplete_details": {"reason": "quota_exhausted"}}
    yield r.take("incomplete for a reason we do not know: what was not done is broken",
                 wire=r.end("incomplete", **details))  # fmt: skip

    r = Response("text_after_its_copy").added("message", "msg_", status="in_progress", content=[])
    part = {"type": "output_text", "annotations": [], "text": "Good morning."}
    r.on("response.output_text.delta", content_index=0, delta="Good ")
    r.on("response.output_text.done", content_index=0, text=part["text"])
    r.on("response.output_text.delta", content_index=0, delta="morning.")
    r.done(status="completed", content=[part])
    yield r.take("a piece of text that comes after its copy is told once")

    r = Response("done_sentinel").call(*TIDES)
    yield r.take("a proxy adds [DONE]", wire=[*r.end(), DONE])

    r = Response("split_emoji").begin("post")
    text = '{"outer":"\ud83c', '\udf0a","inner":"\\ud83d', '\\udc4b"}'
    for piece in text:
        r.on("response.function_call_arguments.delta", delta=piece)
    r.settle('{"outer":"\U0001f30a","inner":"\\ud83d\\udc4b"}')
    yield r.take("half an emoji per delta, escaped once and escaped twice")

    r = Response("invalid_json").begin("get_weather").pour('{"city":').settle('{"city":')
    r.begin("get_tides").settle('"Höfn"')
    yield r.take("settled arguments that are no JSON, or no object, are broken calls")

    r = Response("unknown_kinds").say("response.weather.delta", delta="clear")
    r.whole("hologram", "ho_", sky="clear").text("Still here.")
    yield r.take("kinds and items nobody knows yet are handed on, not dropped")

    r = Response("legacy_aliases").added("message", "msg_", role="assistant", content=[])
    r.on("response.text.delta", content_index=0, delta="The ferry leaves at 07:40.")
    where = {"content_index": 0, "annotation_index": 0}
    r.on("response.output_text_annotation.added", None, **where, annotation=LINK).done()
    r.call(*TIDES)
    end = r.body | {"status": "completed", "output": r.output}
    wire = r.say("response.done", response=end).wire
    yield r.take("old and borrowed event names, up to the terminal one", wire=wire)

    r = Response("ids_differ_at_the_end").call(*WEATHER)
    r.output = [item | {"id": ident("fc_", r.name, "other")} for item in r.output]
    yield r.take("the terminal event renames the item; it is still one call")


def _cut() -> Iterator[Take]:
    r = Response("cut_in_arguments").call(*WEATHER).begin("write_file").pour('{"file_path":"/srv/a')
    yield r.take("the connection simply ends inside the arguments", wire=r.wire)

    r = Response("cut_before_completed").call(*WEATHER)
    yield r.take("every item is done but no terminal event comes", wire=r.wire)

    r, part = Response("max_tokens_in_arguments"), '{"file_path":"/srv/poem.txt","co'
    r.begin("write_file").pour(part).done(status="incomplete", arguments=part)
    wire = r.end("incomplete", incomplete_details={"reason": "max_output_tokens"})
    yield r.take("response.incomplete inside the arguments", wire=wire)

    r = Response("content_filter").text("The recipe begins with")
    wire = r.end("incomplete", incomplete_details={"reason": "content_filter"})
    yield r.take("response.incomplete by the content filter", wire=wire)

    r = Response("error_after_200").call(*WEATHER).begin("get_tides").pour('{"harb')
    flat = {"code": "server_error", "message": "The server had an error.", "param": None}
    yield r.take("a flat error event ends the stream", wire=r.say("error", **flat).wire)

    r = Response("error_nested").begin("get_tides").pour('{"harb')
    nested = {"type": "rate_limit_error", "code": "rate_limit_exceeded", "message": "Slow down."}
    wire = r.say("error", error=nested | {"param": None}).wire
    yield r.take("the same error, nested as servers really send it", wire=wire)

    r = Response("response_failed").text("One moment")
    error = {"code": "server_error", "message": "The model could not go on."}
    yield r.take("response.failed carries the error", wire=r.end("failed", error=error))

    r = Response("response_cancelled").begin("get_tides").pour('{"harbour":"Hö')
    yield r.take("a background response cancelled in mid-call", wire=r.end("cancelled"))


def scenarios(flavour: type[Response]) -> Iterator[Take]:
    for scenario in SCENARIOS:
        r = flavour(scenario.name).text(scenario.says)
        for call in scenario.calls:
            r.call(*call)
        yield r.take(scenario.proves)


def shared_types(flavour: type[Response]) -> Iterator[Take]:
    """The item types both flavours carry, each with the events of its family."""
    yield from _hybrids(flavour)
    yield from _pairs(flavour)
    yield from _newer(flavour)


def _status(r: Response, kind: str, *words: str) -> None:
    for word in words:
        r.on(f"response.{kind}.{word}")


def _hybrids(flavour: type[Response]) -> Iterator[Take]:
    """One item is both the call and its output."""
    kind = "code_interpreter_call"
    r = flavour(f"type_{kind}")
    code = "import math\nprint(math.factorial(20))"
    box = {"container_id": ident("cntr_", r.name, size=30), "code": "", "outputs": None}
    r.added(kind, "ci_", status="in_progress", **box)
    _status(r, kind, "in_progress")
    for piece in fragments(code, (7, 15)):
        r.on(f"response.{kind}_code.delta", delta=piece)
    r.on(f"response.{kind}_code.done", code=code)
    _status(r, kind, "interpreting", "completed")
    logs = [{"type": "logs", "logs": "2432902008176640000\n"}]
    r.done(status="completed", code=code, outputs=logs).text("20! is 2432902008176640000.")
    yield r.take("code streams as text, the outputs come with the same item", kind)

    kind = "file_search_call"
    r = flavour(f"type_{kind}").added(kind, "fs_", status="in_progress", queries=[], results=None)
    _status(r, kind, "in_progress", "searching", "completed")
    found = {"file_id": "file-7harbour", "filename": "tides.pdf", "score": 0.91}
    found |= {"attributes": {}, "text": "High water at 04:12."}
    r.done(status="completed", queries=["high water"], results=[found]).text("At 04:12.")
    yield r.take("queries are the arguments, results the output", kind)

    kind = "image_generation_call"
    r = flavour(f"type_{kind}").added(kind, "ig_", status="in_progress", result=None)
    _status(r, kind, "in_progress", "generating")
    picture: Json = {"output_format": "gif", "size": "1024x1024", "quality": "low"}
    preview: Json = {"partial_image_index": 0, "partial_image_b64": PIXEL[:32]}
    r.on(f"response.{kind}.partial_image", **preview, **picture)
    _status(r, kind, "completed")
    r.done(status="completed", result=PIXEL, revised_prompt="A lighthouse at dusk", **picture)
    yield r.take("a partial image is progress, the last one the output", kind)

    kind = "mcp_call"
    r = flavour(f"type_{kind}")
    for output, error in (("Open 08-22", None), (None, {"type": "http_error", "code": 503})):
        arguments = dumps({"harbour": "Höfn"})
        fields: Json = {"name": "harbour_hours", "server_label": "harbours", "arguments": ""}
        fields |= {"approval_request_id": None, "output": None, "error": None}
        r.added(kind, "mcp_", status="in_progress", **fields)
        _status(r, kind, "in_progress")
        r.pour(arguments, kind=kind).on(f"response.{kind}_arguments.done", arguments=arguments)
        word = "failed" if error else "completed"
        _status(r, kind, word)
        r.done(status=word, arguments=arguments, output=output, error=error)
    yield r.take("an MCP call that worked and one that failed", kind)

    kind = "web_search_call"
    r = flavour(f"type_{kind}").added(kind, "ws_", status="in_progress", action={"type": "search"})
    _status(r, kind, "in_progress", "searching", "completed")
    sources = [{"type": "url", "url": "https://example.org/ferries"}]
    r.done(status="completed", action={"type": "search", "query": "Höfn ferry", "sources": sources})
    page = {"type": "open_page", "url": "https://example.org/ferries"}
    r.whole(kind, "ws_", action=page).text("The ferry leaves at 07:40.")
    yield r.take("a search and an opened page; the action is the arguments", kind)


def _pairs(flavour: type[Response]) -> Iterator[Take]:
    """A call item and an output item that names its call_id."""
    kind = "function_call"
    r = flavour(f"type_{kind}").call(*WEATHER)
    r.whole(f"{kind}_output", "fco_", call_id=r.call_id(0), output='{"celsius":7}')
    yield r.take("call_id joins function_call and its output", kind, f"{kind}_output")

    kind = "custom_tool_call"
    patch = "SELECT harbour, max(level)\nFROM tides GROUP BY 1 -- not JSON: {"
    r = flavour(f"type_{kind}")
    call = r.call_id()
    r.added(kind, "ctc_", status="in_progress", call_id=call, input="", name="run_sql")
    for piece in fragments(patch):
        r.on("response.custom_tool_call_input.delta", delta=piece)
    r.on("response.custom_tool_call_input.done", input=patch).done(status="completed", input=patch)
    r.whole(f"{kind}_output", "ctco_", call_id=call, output="Höfn | 3.1")
    yield r.take("a custom tool's input is free text", kind, f"{kind}_output")

    kind = "computer_call"
    r = flavour(f"type_{kind}")
    call = r.call_id()
    check = {"id": "cu_sc_1", "code": "malicious_instructions", "message": "Look again."}
    action = {"type": "click", "button": "left", "x": 312, "y": 48}
    r.whole(kind, "cu_", call_id=call, action=action, pending_safety_checks=[check])
    shot = {"type": "computer_screenshot", "image_url": f"data:image/gif;base64,{PIXEL}"}
    r.whole(f"{kind}_output", "cuo_", call_id=call, output=shot, acknowledged_safety_checks=[check])
    call, actions = r.call_id(), [action, {"type": "type", "text": "Höfn"}, {"type": "screenshot"}]
    r.whole(kind, "cu_", call_id=call, actions=actions, pending_safety_checks=[])
    proves = "a click with a safety check and its screenshot, then several actions at once"
    yield r.take(proves, kind, f"{kind}_output")

    kind = "apply_patch_call"
    r = flavour(f"type_{kind}")
    call, diff = r.call_id(), "@@\n-const limit = 10;\n+const limit = 20;\n"
    operation = {"type": "update_file", "path": "src/app.ts", "diff": ""}
    r.added(kind, "apc_", status="in_progress", call_id=call, operation=operation)
    for piece in fragments(diff, (9, 16)):
        r.on(f"response.{kind}_operation_diff.delta", delta=piece)
    r.on(f"response.{kind}_operation_diff.done", diff=diff)
    r.done(status="completed", operation=operation | {"diff": diff})
    r.whole(f"{kind}_output", "apco_", call_id=call, output="1 file changed")
    yield r.take("the diff streams by events the SDKs do not list", kind, f"{kind}_output")

    kind = "shell_call"
    r = flavour(f"type_{kind}")
    call, commands = r.call_id(), ["ls -la", "wc -l *.md"]
    action = {"commands": [], "max_output_length": None, "timeout_ms": 5000}
    place = {"type": "container_reference", "container_id": ident("cntr_", r.name, size=30)}
    r.added(kind, "sh_", status="in_progress", call_id=call, action=action, environment=place)
    for i, command in enumerate(commands):
        where = {"output_index": 0, "command_index": i}
        r.say("response.shell_call_command.added", **where, command="")
        for piece in fragments(command, (4, 9)):
            r.say("response.shell_call_command.delta", **where, delta=piece)
        r.say("response.shell_call_command.done", **where, command=command)
    r.done(status="completed", action=action | {"commands": commands})
    r.added(f"{kind}_output", "sho_", status="in_progress", call_id=call, output=[])
    ended = {"type": "exit", "exit_code": 0}
    printed = ("README.md\n", "12 README.md\n")
    output = [{"stdout": text, "stderr": "", "outcome": ended} for text in printed]
    for i, said in enumerate(output):
        delta = {"stdout": said["stdout"]}
        r.on("response.shell_call_output_content.delta", command_index=i, delta=delta)
        r.on("response.shell_call_output_content.done", command_index=i, output=[said])
    r.done(status="completed", output=output)
    proves = "two commands without item ids, and output deltas that are objects"
    yield r.take(proves, kind, f"{kind}_output")

    kind = "local_shell_call"
    r = flavour(f"type_{kind}")
    call = r.call_id()
    action = {"type": "exec", "command": ["git", "status", "-sb"], "env": {}}
    r.whole(kind, "lsh_", call_id=call, action=action | {"working_directory": "/srv/project"})
    r.whole(f"{kind}_output", "", id=call, output="## main")
    yield r.take("the output has no call_id: its id is the call's", kind, f"{kind}_output")

    kind = "tool_search_call"
    r = flavour(f"type_{kind}")
    tool: Json = {"type": "function", "name": "get_tides", "description": "Tide table"}
    tool |= {"parameters": {"type": "object", "properties": {}}, "strict": True}
    for execution in ("server", "client"):
        both: Json = {"call_id": r.call_id() if execution == "client" else None}
        both |= {"execution": execution}
        r.whole(kind, "tsc_", **both, arguments={"query": "tides"})
        r.whole("tool_search_output", "tso_", **both, tools=[tool])
    yield r.take(
        "call_id is null when the server searches, given when the client does",
        kind,
        "tool_search_output",
    )


def _newer(flavour: type[Response]) -> Iterator[Take]:
    kind = "mcp_list_tools"
    r = flavour(f"type_{kind}").added(kind, "mcpl_", server_label="harbours", tools=[])
    _status(r, kind, "in_progress", "completed")
    schema = {"type": "object", "properties": {"harbour": {"type": "string"}}}
    tool = {"name": "harbour_hours", "description": "Opening hours", "input_schema": schema}
    r.done(tools=[tool]).added(kind, "mcpl_", server_label="ferries", tools=[])
    _status(r, kind, "in_progress", "failed")
    r.done(error="connection refused").text("One server is away.")
    yield r.take("a listing of tools, and one that failed: not calls of the model", kind)

    kind = "mcp_approval_request"
    r = flavour(f"type_{kind}")
    ask = {"name": "book_berth", "server_label": "harbours", "arguments": dumps({"berth": 14})}
    r.whole(kind, "mcpr_", None, **ask)
    asked = r.output[0]["id"]
    answer = {"approval_request_id": asked, "approve": True, "reason": None}
    r.whole("mcp_approval_response", "mcprr_", None, **answer)
    proves = "the request waits for the client; the answer names it"
    yield r.take(proves, kind, "mcp_approval_response")

    kind = "program"
    r = flavour(f"type_{kind}")
    call = r.call_id()
    code = 'const t = await tools.get_tides({harbour: "Höfn"});\ntext(t.high);\n'
    r.added(kind, "cm_", call_id=call, code="", fingerprint=opaque(r.name))
    r.done(code=code).call(*TIDES, caller={"type": "program", "caller_id": call})
    r.whole(f"{kind}_output", "cmo_", call_id=call, result="04:12")
    proves = "a program, the call it makes, and its output"
    yield r.take(proves, kind, f"{kind}_output", "function_call")

    if flavour is not Response:
        return
    kind = "multi_agent_call"
    r = flavour(f"type_{kind}")
    call, agent = r.call_id(), {"agent_name": "main/scout"}
    task = {"action": "spawn_agent", "call_id": call, "agent": agent}
    r.whole(kind, "mac_", None, **task, arguments=dumps({"task": "Find the tide table"}))
    part = {"type": "output_text", "text": "started", "annotations": []}
    r.whole(f"{kind}_output", "maco_", None, **task, output=[part])
    yield r.take("one agent starts another", kind, f"{kind}_output")

    yield from _voices(flavour)

    r = flavour("other_items").added("compaction", "cmp_", encrypted_content="")
    r.on("response.compaction.compacting").done(encrypted_content=opaque(r.name))
    r.whole("agent_message", "agm_", None, content=[{"type": "output_text", "text": "Found it."}])
    r.whole("additional_tools", "at_", None, tools=[tool])
    yield r.text("Done.").take("items that are neither text nor calls are not lost")

    r = flavour("vendor_items")
    r.whole("acme:telemetry", "tel_", None, level=3, payload={"harbour": "Höfn"})
    yield r.text("Done.").take("an item of a vendor's own is passed on whole")

    r = flavour("audio")
    for piece in ("UklGRg==", "AAAAAA=="):
        r.say("response.audio.delta", delta=piece)
    r.say("response.audio.transcript.delta", delta="Good evening.")
    r.say("response.audio.done").say("response.audio.transcript.done")
    yield r.take("audio events carry no ids at all")
