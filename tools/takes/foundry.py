"""Takes of Azure Foundry: Responses with agents and hosted tools, and Azure's Chat."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Self

from tools.takes import chat
from tools.takes.common import Json, Take, comment, dumps, fragments, ident
from tools.takes.responses import TIDES, WEATHER, Response, scenarios, shared_types

AGENT = {"type": "agent_reference", "name": "harbour-master", "version": "3"}


class Foundry(Response):
    """Responses as Foundry agents stream them: every item names its agent and response."""

    provider, model = "azure_foundry", "gpt-4.1"

    def extra(self, item: Json) -> Json:
        return {"agent_reference": AGENT, "response_id": self.body["id"]}

    def end(self, status: str = "completed", emptied: bool = False, **fields: Any) -> list[str]:
        return super().end(status, emptied, agent_reference=AGENT, **fields)


def takes() -> Iterator[Take]:
    yield from _responses()
    yield from _chat()
    yield from scenarios(Foundry)
    yield from shared_types(Foundry)
    yield from _hosted()
    yield from _single_items()


def _responses() -> Iterator[Take]:
    r = Foundry("text_only").text("The harbour is open until ten in the evening.")
    yield r.take("an agent's answer without calls finishes with stop")

    r = Foundry("parallel_calls").text("I'll look both up.").call(*WEATHER).call(*TIDES)
    yield r.take("two client calls of an agent, one after the other")

    r = Foundry("keep_alives").raw(comment("keep-alive")).begin(TIDES[0])
    r.raw(comment("keep-alive")).pour(dumps(TIDES[1])).settle(dumps(TIDES[1]))
    r.raw(comment("keep-alive"))
    yield r.take("keep-alive comments change nothing")

    r = Foundry("agent_named_first", created=False)
    for kind in ("response.created", "response.in_progress"):
        r.say(kind, response=r.body | {"agent_reference": AGENT})
    call = r.call_id()
    r.whole("bing_grounding_call", "bg_", call_id=call, arguments=dumps({"query": "ferry times"}))
    r.whole("bing_grounding_call_output", "bgo_", call_id=call, output="At 07:40").text("At 07:40.")
    yield r.take("the first payload names the agent, so that nobody need name the provider")

    r = Foundry("hosted_then_client_call")
    call = r.call_id()
    fields: Json = {"call_id": call, "arguments": dumps({"query": "ferry times"})}
    r.whole("bing_grounding_call", "bg_", **fields)
    r.whole("bing_grounding_call_output", "bgo_", call_id=call, output="At 07:40").call(*TIDES)
    yield r.take("only the client's call makes the finish tool_calls")

    r = Foundry("older_spellings")
    fields = {"name": "harbour_hours", "server_label": "harbours", "arguments": ""}
    r.added("reasoning", "rs_", summary=[])
    r.on("response.reasoning.delta", content_index=0, delta={"text": "Which harbour? "})
    r.on("response.reasoning.done", content_index=0, text="Which harbour? ")
    r.on("response.reasoning_summary.delta", summary_index=0, delta={"text": "Choosing."})
    r.on("response.reasoning_summary.done", summary_index=0, text="Choosing.").done()
    r.added("mcp_call", "mcp_", status="in_progress", **fields)
    arguments = dumps({"harbour": "Höfn"})
    for piece in fragments(arguments):
        r.on("response.mcp_call.arguments_delta", delta=piece)
    r.on("response.mcp_call.arguments_done", arguments=arguments)
    r.done(status="completed", arguments=arguments, output="Open 08-22")
    r.say("response.audio_transcript.delta", delta="Good evening.")
    r.say("response.audio_transcript.done")
    yield r.take("the event names of the first previews mean the same as today's")

    r = Foundry("cut_in_arguments").call(*WEATHER).begin(TIDES[0]).pour('{"harbour":"Hö')
    yield r.take("the connection simply ends inside the arguments", wire=r.wire)

    r = Foundry("error_after_200").begin(TIDES[0]).pour('{"harb')
    wire = r.say("error", code="tool_user_error", message="The index is gone.", param=None).wire
    yield r.take("an error event ends the stream", wire=wire)

    r = Foundry("max_tokens_in_arguments").begin(TIDES[0]).pour('{"harbour":"Hö')
    r.done(status="incomplete", arguments='{"harbour":"Hö')
    wire = r.end("incomplete", incomplete_details={"reason": "max_output_tokens"})
    yield r.take("response.incomplete inside the arguments", wire=wire)

    r = Foundry("hosted_call_failed")
    fields = {
        "call_id": r.call_id(),
        "name": "berths",
        "arguments": dumps({"day": "2026-01-01"}),
    }
    r.whole("openapi_call", "oa_", "failed", **fields)
    output = {"error": {"code": 503, "message": "upstream is away"}}
    fields = {"call_id": r.call_id(0), "name": "berths", "output": output}
    r.whole("openapi_call_output", "oao_", "failed", **fields).text("I could not ask.")
    yield r.take("a hosted tool that failed is a result in error")

    r = Foundry("memory_search_without_id")
    item: Json = {"type": "memory_search_call", "status": "in_progress", "results": None}
    r.say("response.output_item.added", output_index=0, item=item)
    item |= {"status": "completed", "results": [_memory(r.name)]}
    r.output.append(item)
    r.say("response.output_item.done", output_index=0, item=item)
    yield r.take("no id anywhere on the item: one is minted")


class AzureChat(chat.Chat):
    """Azure's Chat Completions: filter results around every choice."""

    provider, model = "azure_foundry", "gpt-4o-mini-2024-07-18"
    more: ClassVar[Json] = {"content_filter_results": {}}

    def filtered_prompt(self) -> Self:
        safe = {"filtered": False, "severity": "safe"}
        results = {"prompt_index": 0, "content_filter_results": {"hate": safe, "violence": safe}}
        empty = {"id": "", "object": "", "created": 0, "model": "", "choices": []}
        return self.payload(empty | {"prompt_filter_results": [results]})

    def late_offsets(self) -> Self:
        offsets = {"check_offset": 44, "start_offset": 44, "end_offset": 131}
        safe = {"hate": {"filtered": False, "severity": "safe"}}
        late: Json = {"index": 0, "finish_reason": None, "content_filter_results": safe}
        late |= {"content_filter_offsets": offsets}
        return self.payload(self.body | {"choices": [late]})


def _chat() -> Iterator[Take]:
    c = AzureChat("azure_content_filter").filtered_prompt().role().call(0, *WEATHER)
    wire = c.finish("tool_calls").late_offsets().end()
    yield c.take("filter results before, around and after the choices; one has no delta", wire)

    c = AzureChat("chat_parallel_calls").filtered_prompt().role().call(0, *WEATHER).call(1, *TIDES)
    yield c.take("two calls on the Chat wire of a deployment", c.finish("tool_calls").end())

    c = AzureChat("chat_filtered_answer").filtered_prompt().role().text("The first step is")
    yield c.take("the filter stops an answer", c.finish("content_filter").end())

    c = AzureChat("chat_cut_in_arguments").filtered_prompt().role().begin(0, "write_file")
    c.pour(0, '{"file_path":"/srv/a')
    yield c.take("the Chat wire simply ends inside the arguments", c.wire)


# call type -> (id prefix, name or None, arguments, output)
HOSTED: dict[str, tuple[str, str | None, Json, Any]] = {
    "a2a_preview_call": ("a2a", "pilot-agent", {"message": "Who is on duty?"}, "Sigrún"),
    "azure_ai_search_call": (
        "ais",
        None,
        {"query": "berth rules", "top": 3},
        [{"id": "doc-1", "title": "Rules", "score": 2.31, "content": "Berth 14 is reserved."}],
    ),
    "azure_function_call": ("af", "count_boats", {"pier": 2}, {"boats": 17}),
    "bing_custom_search_preview_call": (
        "bcs",
        None,
        {"query": "pilot tariffs"},
        [{"url": "https://example.org/tariffs", "name": "Tariffs", "snippet": "From January"}],
    ),
    "bing_grounding_call": (
        "bg",
        None,
        {"query": "Höfn weather warning"},
        {"documents": [{"url": "https://example.org/warnings", "title": "Gale after noon"}]},
    ),
    "browser_automation_preview_call": (
        "ba",
        None,
        {"query": "Open the ferry site and read the first departure"},
        "07:40",
    ),
    "fabric_dataagent_preview_call": (
        "fda",
        None,
        {"query": "landings per month"},
        "| month | tons |\n|---|---|\n| 1 | 412 |",
    ),
    "openapi_call": ("oa", "berths_get", {"day": "2026-01-01"}, {"free": [3, 14]}),
    "sharepoint_grounding_preview_call": (
        "sp",
        None,
        {"query": "night shift handbook"},
        [{"url": "https://example.org/handbook", "title": "Handbook", "text": "Ring twice."}],
    ),
}


def _hosted() -> Iterator[Take]:
    for kind, (prefix, name, arguments, output) in HOSTED.items():
        r = Foundry(f"type_{kind}")
        both = {"call_id": r.call_id()} | ({"name": name} if name else {})
        r.whole(kind, f"{prefix}_", **both, arguments=dumps(arguments))
        r.whole(f"{kind}_output", f"{prefix}o_", **both, output=output).text("There you are.")
        shape = {"str": "a string", "list": "a list", "dict": "an object"}[type(output).__name__]
        yield r.take(f"{kind} and its output, which is {shape}", kind, f"{kind}_output")


def _memory(name: str) -> Json:
    item = {"memory_id": ident("mem_", name), "scope": "user_7", "kind": "user_profile"}
    return {"memory_item": item | {"content": "Sails a blue yawl.", "updated_at": 1767225600}}


def _single_items() -> Iterator[Take]:
    kind = "memory_search_call"
    r = Foundry(f"type_{kind}").added(kind, "ms_", status="in_progress", results=None)
    r.done(status="completed", results=[_memory(r.name)]).text("The blue yawl, then.")
    yield r.take("the results come with the call, joined by its id", kind)

    kind = "workflow_action"
    r = Foundry(f"type_{kind}")
    for action, before in (("ask_pilot", None), ("send_reply", "ask_pilot")):
        fields = {"kind": "InvokeAzureAgent", "action_id": action, "previous_action_id": before}
        r.whole(kind, "wfa_", **fields, parent_action_id="trigger")
    yield r.take("steps of a workflow: outputs without a call", kind)

    kind = "oauth_consent_request"
    r = Foundry(f"type_{kind}")
    link = "https://login.example.org/consent?code=42"
    r.whole(kind, "oauthreq_", None, consent_link=link, server_label="calendar")
    yield r.take("the user must consent; the id answers for the call", kind)

    kind = "structured_outputs"
    r = Foundry(f"type_{kind}").whole(kind, "fs_", None, output={"berth": 14, "free": True})
    yield r.take("an agent's structured output is not a call", kind)

    kind = "output_message"
    r = Foundry(f"type_{kind}")
    part = {"type": "output_text", "text": "Berth 14 is free.", "annotations": [], "logprobs": []}
    r.added(kind, "msg_", status="in_progress", role="assistant", content=[])
    r.done(status="completed", content=[part])
    yield r.take("a message under its other name, told whole", kind)
