"""Bodies that were read: the same again on their own wire, legal on every other, and nothing lost unsaid."""

from __future__ import annotations

import contextlib
import copy
import functools
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamnorm import (
    Conversation,
    EncodeError,
    File,
    Link,
    RequestOptions,
    StreamnormError,
    Tool,
    ToolChoice,
    ToolResult,
    Turn,
    UsageError,
    provider,
    read_request,
)
from streamnorm.options import EFFORTS, Format
from streamnorm.providers import PROVIDERS
from streamnorm.testing import call, finish, say, script, think
from streamnorm.tools import Grammar
from tests.encoding.pairing_rules import assert_paired
from tests.providers.test_sdk_requests import judge

WIRES = list(PROVIDERS)
CALLING = [name for name, row in PROVIDERS.items() if row.tools]
PICTURE = File(b"\x89PNG", "image/png")
LINKS = Link("https://x.test/a.png"), Link("https://x.test/a.pdf", "application/pdf")
SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object",
    "properties": {"city": {"type": "string", "minLength": 2}, "days": {"type": "integer", "minimum": 1}},
    "required": ["city"], "additionalProperties": False,
}  # fmt: skip
TOOLS = (
    Tool("get_weather", "The weather", SCHEMA),
    Tool("now", "The time", strict=True),
    Tool("files: read"),
    Tool.of_text("patch", "Edit files", Grammar("lark", 'start: "x"')),
)


def heard(wire: str, *steps):
    return Turn.from_events(script(*steps).events(wire))


@functools.cache
def talk(wire: str) -> Conversation:
    """A session as that wire hears it: text, pictures, thought, two calls and their results."""
    steps = (
        say("Let me look."),
        call("get_weather", city="Oslo", big=2**70),
        call("now"),
        finish(),
    )
    first = heard(wire, think("Hm."), *steps)
    results = [ToolResult.for_call(c, {"n": n}, is_error=n == 1) for n, c in enumerate(first.calls)]
    said = Conversation().user("Hi", PICTURE).add(first).results(results)
    return said.user("And?", *LINKS).add(heard(wire, say("Bye."))).user("Thanks")


texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
words = st.sampled_from(["a", "End.", "\n\n", "x y"])
formats = st.one_of(
    st.just(Format()),
    st.builds(
        Format, st.just({"type": "object", "properties": {"a": {"type": "string"}}}),
        st.sampled_from(["answer", "trip"]), st.sampled_from(["", "A trip"]), st.sampled_from([None, True]),
    ),
)  # fmt: skip
options = st.builds(
    RequestOptions,
    model=st.sampled_from(["m", "gemini-3-pro", "claude"]),
    stream=st.none() | st.booleans(),
    usage=st.none() | st.booleans(),
    max_tokens=st.none() | st.integers(1, 64000),
    temperature=st.none() | st.sampled_from([0, 0.3, 1, 1.7]),
    top_p=st.none() | st.sampled_from([0.1, 0.95]),
    top_k=st.none() | st.integers(1, 900),
    stop=st.lists(words, max_size=6, unique=True).map(tuple),
    seed=st.none() | st.integers(0, 2**31 - 1),
    frequency_penalty=st.none() | st.sampled_from([-1.5, 0.5]),
    presence_penalty=st.none() | st.sampled_from([-1.5, 0.5]),
    effort=st.none() | st.sampled_from(EFFORTS),
    thinking=st.none() | st.booleans(),
    thinking_budget=st.none() | st.integers(1, 40000),
    verbosity=st.none() | st.sampled_from(["low", "high"]),
    format=st.none() | formats,
    user=st.none() | st.sampled_from(["u1", "u" * 70]),
)
choices = st.one_of(
    st.none(),
    st.builds(
        ToolChoice, st.sampled_from(["auto", "none", "required"]), st.just(()), st.booleans()
    ),
    st.builds(ToolChoice, st.just("tool"), st.just(("now",)), st.booleans()),
    st.builds(ToolChoice, st.just("allowed"), st.just(("get_weather", "patch")), st.booleans()),
)


def bodies(wire: str):
    """Requests that we write for that wire."""
    calling = PROVIDERS[wire].tools

    def body(wishes, choice, system, tools, turns):
        said = talk(wire) if calling else Conversation().user("Hi")
        turns = Conversation(said.turns[:turns])
        return provider(wire).prepare(
            turns, tools if calling else (), choice if calling else None, system, settings=wishes,
            unsaid="report",
        ).body  # fmt: skip

    return st.builds(
        body, options, choices, st.none() | texts, st.just(TOOLS), st.sampled_from([1, 3, 6])
    )


# --- its own wire ---------------------------------------------------------------------------------


@pytest.mark.parametrize("wire", WIRES)
@given(data=st.data())
def test_a_request_that_was_read_is_the_same_again_on_its_own_wire(wire, data):
    body = data.draw(bodies(wire))
    kept = copy.deepcopy(body)
    request = read_request(wire, body)
    again = request.prepare()
    assert again.body == body
    assert body == kept
    assert request.report == ()
    assert again.dropped == ()


# --- every other ----------------------------------------------------------------------------------


@pytest.mark.parts
@pytest.mark.parametrize("target", CALLING)
@given(data=st.data())
@settings(max_examples=30)  # the judges are slow
def test_a_request_that_was_read_is_legal_on_every_other_wire(target, data):
    wire = data.draw(st.sampled_from([other for other in CALLING if other != target]))
    body = data.draw(bodies(wire))
    thinking = data.draw(st.sampled_from(["own", "any"]))
    said = read_request(wire, body).prepare(target, model="m", stream=True, thinking=thinking).body
    judge(target)(said)
    assert_paired(target, said)


@pytest.mark.parametrize("wire", WIRES)
@given(wishes=options)
def test_each_option_is_said_or_told(wire, wishes):
    prepared = provider(wire).prepare(Conversation().user("Hi"), settings=wishes)
    read = read_request(wire, prepared.body).options
    told = {row.what for row in prepared.dropped if row.where == "options"}
    elsewhere = {"native", "model", "stream", "usage"}
    for name in set(wishes.__struct_fields__) - elsewhere:
        wished = getattr(wishes, name)
        if wished not in (None, ()) and name not in told:
            assert getattr(read, name) == wished, name


# --- whatever stands in a body --------------------------------------------------------------------

junk = st.sampled_from(
    [
        None,
        True,
        -1,
        0.5,
        10**30,
        "",
        "x",
        [],
        {},
        [None],
        [[]],
        {"type": "x"},
        ["x"],
        {"": 0},
        "\ud800",
    ]
)


def spoiled(value, draw):
    """The same with one thing in it that is another, gone, or said twice."""
    if isinstance(value, dict) and value:
        key = draw(st.sampled_from(sorted(value)))
        match draw(st.sampled_from(["in", "in", "other", "gone", "more"])):
            case "in":
                return {**value, key: spoiled(value[key], draw)}
            case "other":
                return {**value, key: draw(junk)}
            case "gone":
                return {k: v for k, v in value.items() if k != key}
        return {**value, draw(st.sampled_from(["type", "role", "content", "x"])): draw(junk)}
    if isinstance(value, list) and value:
        at = draw(st.integers(0, len(value) - 1))
        match draw(st.sampled_from(["in", "in", "other", "gone", "twice"])):
            case "in":
                return [*value[:at], spoiled(value[at], draw), *value[at + 1 :]]
            case "other":
                return [*value[:at], draw(junk), *value[at + 1 :]]
            case "gone":
                return [*value[:at], *value[at + 1 :]]
        return [*value[:at], value[at], *value[at:]]
    return draw(junk)


@pytest.mark.parametrize("wire", WIRES)
@given(data=st.data())
def test_whatever_stands_in_a_body_the_only_errors_are_ours(wire, data):
    body = data.draw(bodies(wire))
    for _ in range(data.draw(st.integers(1, 3))):
        body = spoiled(body, data.draw)
    for name in (wire, "auto"):
        try:
            request = read_request(name, body)
        except StreamnormError:
            continue
        for target in (request.provider, data.draw(st.sampled_from(CALLING))):
            with contextlib.suppress(StreamnormError):
                request.prepare(target)


@pytest.mark.parametrize("body", [None, "x", 7, [], b"{}", {}, {"x": 1}])
def test_what_is_no_body_is_named(body):
    with pytest.raises(UsageError):
        read_request("auto", body)
    with pytest.raises(UsageError):
        read_request("anthropic", body)


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
@pytest.mark.parametrize("wire", WIRES)
def test_a_number_that_no_json_has_is_refused_by_its_place(wire, number):
    body = provider(wire).prepare(Conversation().user("Hi"), model="m").body
    with pytest.raises(UsageError, match=r"^a\.b\[1\] is NaN or Infinity, which JSON cannot say$"):
        read_request(wire, {**body, "a": {"b": [1.5, number]}})


def test_a_body_that_is_nested_too_deeply_is_refused():
    deep: dict[str, object] = {"type": "string"}
    for _ in range(5_000):
        deep = {"type": "object", "properties": {"a": deep}}
    tool = {"type": "function", "function": {"name": "f", "parameters": deep}}
    body = {"messages": [{"role": "user", "content": "Hi"}], "tools": [tool]}
    with pytest.raises(UsageError, match="deep"):
        read_request("openai_chat", body).prepare("gemini")
    content: list[object] = ["x"]
    for _ in range(5_000):
        content = [{"content": content}]
    with pytest.raises(UsageError, match="deep"):
        read_request("openai_chat", {"messages": [{"role": "user", "content": content}]})


# --- what agent programs send ---------------------------------------------------------------------

EPHEMERAL = {"cache_control": {"type": "ephemeral"}}
MESSAGES_BODY = {
    "model": "a-model",
    "system": [{"type": "text", "text": "You are an agent."}, {"type": "text", "text": "Rules.", **EPHEMERAL}],
    "messages": [
        {"role": "user", "content": [{"type": "text", "text": "Today is Monday."},
                                     {"type": "text", "text": "List the files.", **EPHEMERAL}]},
        {"role": "system", "content": "The user is in a hurry."},
        {"role": "assistant", "content": [
            {"type": "thinking", "thinking": "A command.", "signature": "sig"},
            {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "ls"}}]},
        {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "toolu_1", "content": "a.txt", "is_error": False, **EPHEMERAL}]},
    ],
    "tools": [
        {"name": "Bash", "description": "Run it", "input_schema": SCHEMA, "eager_input_streaming": True},
        {"type": "web_search_20250305", "name": "web_search", "max_uses": 3},
    ],
    "metadata": {"user_id": "u1"}, "max_tokens": 32000, "thinking": {"type": "adaptive"},
    "context_management": {"edits": []}, "output_config": {"effort": "high"}, "stream": True,
}  # fmt: skip
CUSTOM = {
    "type": "custom", "name": "apply_patch", "description": "Edit files",
    "format": {"type": "grammar", "syntax": "lark", "definition": "start: begin"},
}  # fmt: skip
CLOSE = {"type": "function", "name": "close", "strict": False, "parameters": SCHEMA}
RESPONSES_BODY = {
    "model": "a-model", "stream": True, "store": False, "include": ["reasoning.encrypted_content"],
    "input": [
        {"type": "message", "id": "msg_1", "role": "developer",
         "content": [{"type": "input_text", "text": "You are an agent."}]},
        {"type": "message", "id": "msg_2", "role": "developer",
         "content": [{"type": "input_text", "text": "No network."}]},
        {"type": "message", "id": "msg_3", "role": "user",
         "content": [{"type": "input_text", "text": "Mend it."}]},
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "secret"},
        {"type": "custom_tool_call", "id": "ctc_1", "call_id": "call_1", "name": "apply_patch",
         "input": "*** Begin"},
        {"type": "function_call", "id": "fc_1", "call_id": "call_2", "name": "close", "namespace": "agents",
         "arguments": "{\"city\": \"x\"}", "status": "completed"},
        {"type": "custom_tool_call_output", "call_id": "call_1", "output": "Done"},
        {"type": "function_call_output", "id": "fco_1", "call_id": "call_2", "output": "closed"},
    ],
    "tools": [
        CUSTOM,
        {"type": "namespace", "name": "agents", "description": "Agents below", "tools": [
            CLOSE, {**CLOSE, "name": "spawn", "defer_loading": True}]},
        {"type": "web_search", "external_web_access": True},
    ],
    "tool_choice": "auto", "parallel_tool_calls": True, "reasoning": {"effort": "high", "summary": "auto"},
    "text": {"verbosity": "low"}, "prompt_cache_key": "k", "client_metadata": {"thread_id": "t"},
}  # fmt: skip


def test_what_an_agent_on_messages_sends_is_kept_or_told():
    request = read_request("anthropic", MESSAGES_BODY)
    assert request.system == "You are an agent.\n\nRules."
    assert [turn.role for turn in request.conversation] == ["user", "system", "assistant", "tool"]
    assert request.options == RequestOptions(
        model="a-model", stream=True, max_tokens=32000, effort="high", thinking=True, user="u1",
        native={"anthropic": {"context_management": {"edits": []}}},
    )  # fmt: skip
    bash, search = request.tools
    assert bash.extra == {"anthropic": {"eager_input_streaming": True}}
    assert search.native == {"anthropic": MESSAGES_BODY["tools"][1]}
    (row,) = request.report
    assert row.what == "cache_control"
    assert "3 times" in row.why


def test_what_an_agent_on_messages_sends_goes_to_chat_with_a_report():
    body, dropped = read_request("anthropic", MESSAGES_BODY).prepare("openai_chat", model="m")
    assert {row.what for row in dropped} == {
        "effort", "thinking", "reasoning", "eager_input_streaming", "tool", "context_management: edits",
    }  # fmt: skip
    assert [message["role"] for message in body["messages"]] == [
        "system", "user", "system", "assistant", "tool",
    ]  # fmt: skip
    assert "reasoning_effort" not in body
    assert body["max_completion_tokens"] == 32000


def test_how_hard_to_think_is_said_to_another_wire_on_request():
    body, dropped = read_request("anthropic", MESSAGES_BODY).prepare("openai_chat", thinking="any")
    assert body["reasoning_effort"] == "high"
    assert "effort" not in {row.what for row in dropped}
    with pytest.raises(UsageError, match="own, any"):
        read_request("anthropic", MESSAGES_BODY).prepare("openai_chat", thinking="all")


def test_what_an_agent_on_responses_sends_is_kept_or_told():
    request = read_request("openai_responses", RESPONSES_BODY)
    assert request.system == "You are an agent."
    assert [turn.role for turn in request.conversation] == ["system", "user", "assistant", "tool"]
    assert [tool.name for tool in request.tools] == [
        "apply_patch", "agents__close", "agents__spawn", "web_search",
    ]  # fmt: skip
    patch, close, spawn, _ = request.tools
    assert (patch.text, patch.grammar) == (True, Grammar("lark", "start: begin"))
    assert (close.namespace, close.own_name, close.text) == ("agents", "close", False)
    assert spawn.extra == {"openai_responses": {"defer_loading": True}}
    assert request.options == RequestOptions(
        model="a-model", stream=True, effort="high", verbosity="low",
        native={"openai_responses": {
            "store": False, "include": ["reasoning.encrypted_content"],
            "reasoning": {"summary": "auto"}, "prompt_cache_key": "k",
            "client_metadata": {"thread_id": "t"},
        }},
    )  # fmt: skip
    assert [(row.what, row.why[-9:]) for row in request.report] == [("id", "(4 times)")]


def test_what_an_agent_on_responses_sends_goes_back_to_it_in_its_own_words():
    body = read_request("openai_responses", RESPONSES_BODY).prepare().body
    assert body["tools"] == RESPONSES_BODY["tools"]
    assert body["instructions"] == "You are an agent.\n\nNo network."
    items = {item.get("type"): item for item in body["input"]}
    assert items["reasoning"] == RESPONSES_BODY["input"][3]
    assert items["custom_tool_call"]["input"] == "*** Begin"
    assert items["custom_tool_call_output"]["output"] == "Done"
    assert (items["function_call"]["namespace"], items["function_call"]["name"]) == (
        "agents",
        "close",
    )
    assert {key: body[key] for key in ("store", "include", "reasoning", "text", "client_metadata")} == {
        key: RESPONSES_BODY[key] for key in ("store", "include", "reasoning", "text", "client_metadata")
    }  # fmt: skip


def test_what_an_agent_on_responses_sends_is_functions_elsewhere():
    body, dropped = read_request("openai_responses", RESPONSES_BODY).prepare("anthropic")
    patch, close, spawn = body["tools"]
    assert patch["input_schema"]["required"] == ["input"]
    assert (
        patch["description"] == "Edit files\n\nThe input follows this lark grammar:\nstart: begin"
    )
    assert (close["name"], spawn["name"]) == ("agents__close", "agents__spawn")
    uses = [b for m in body["messages"] for b in m["content"] if b["type"] == "tool_use"]
    assert [(use["name"], use["input"]) for use in uses] == [
        ("apply_patch", {"input": "*** Begin"}), ("agents__close", {"city": "x"}),
    ]  # fmt: skip
    assert {row.what for row in dropped} == {
        "effort", "verbosity", "text", "defer_loading", "tool", "reasoning", "store", "include",
        "reasoning: summary", "prompt_cache_key", "client_metadata: thread_id",
    }  # fmt: skip


def test_a_text_tool_of_one_wire_is_a_function_on_another_that_has_them():
    body = read_request("openai_responses", RESPONSES_BODY).prepare("openai_chat").body
    assert {tool["type"] for tool in body["tools"]} == {"function"}
    ours = provider("openai_chat").tools([Tool.of_text("p", "", Grammar("regex", "x"))])
    assert ours == [
        {"type": "custom", "custom": {
            "name": "p", "format": {"type": "grammar", "grammar": {"syntax": "regex", "definition": "x"}}}},
    ]  # fmt: skip


# --- choices --------------------------------------------------------------------------------------

ASKED = {"messages": [{"role": "user", "content": "Hi"}]}
FUNCTION = {"type": "function", "function": {"name": "f", "parameters": SCHEMA}}


@pytest.mark.parametrize(
    ("said", "choice"),
    [
        ({}, None),
        ({"tool_choice": "required"}, ToolChoice("required")),
        ({"parallel_tool_calls": False}, ToolChoice(parallel=False)),
        ({"tool_choice": {"type": "function", "function": {"name": "f"}}}, ToolChoice("tool", ("f",))),
        ({"tool_choice": {"type": "custom", "custom": {"name": "f"}}}, ToolChoice("tool", ("f",))),
    ],
)  # fmt: skip
def test_a_choice_is_read(said, choice):
    assert read_request("openai_chat", {**ASKED, "tools": [FUNCTION], **said}).tool_choice == choice


def test_a_choice_that_only_its_own_wire_has_goes_back_to_it_alone():
    among = {"mode": "required", "tools": [{"type": "function", "function": {"name": "f"}}]}
    said = {"type": "allowed_tools", "allowed_tools": among}
    request = read_request("openai_chat", {**ASKED, "tools": [FUNCTION], "tool_choice": said})
    assert request.prepare().body["tool_choice"] == said
    assert "tool_choice: type, allowed_tools" in {
        row.what for row in request.prepare("cohere").dropped
    }


@pytest.mark.parametrize(("target", "choice"), [("ollama", "required"), ("bedrock", "none")])
def test_a_choice_that_a_wire_cannot_say_is_a_row(target, choice):
    request = read_request("openai_chat", {**ASKED, "tools": [FUNCTION], "tool_choice": choice})
    body, dropped = request.prepare(target)
    assert "toolChoice" not in str(body)
    assert [row.what for row in dropped if row.where == "tool_choice"] == [choice]


@pytest.mark.parametrize("choice", ["required", {"type": "web_search"}])
def test_a_choice_among_tools_that_a_wire_never_hears_of_is_a_row(choice):
    body = {"input": "Hi", "tools": [{"type": "web_search"}], "tool_choice": choice}
    said, dropped = read_request("openai_responses", body).prepare("openai_chat")
    assert not {"tools", "tool_choice"} & set(said)
    assert [row.where for row in dropped] == ["web_search", "tool_choice"]


# --- options --------------------------------------------------------------------------------------


def test_a_value_that_is_none_of_ours_stays_as_it_is():
    body = {
        **ASKED,
        "temperature": "hot",
        "stop": [],
        "seed": None,
        "response_format": {"type": "text"},
    }
    request = read_request("openai_chat", body)
    assert request.options.native["openai_chat"] == {
        k: v for k, v in body.items() if k != "messages"
    }
    again = request.prepare().body
    assert {key: again[key] for key in body} == body
    told = [row.what for row in request.prepare("gemini").dropped]
    assert told == ["temperature", "stop", "response_format: type"]


def test_what_is_out_of_bounds_is_said_as_near_as_can_be():
    body = {
        **ASKED,
        "temperature": 1.7,
        "stop": ["a", "b", "c", "d"],
        "reasoning_effort": "minimal",
    }
    said, dropped = read_request("openai_chat", body).prepare("anthropic", thinking="any")
    assert (said["temperature"], said["output_config"]) == (1, {"effort": "low"})
    assert {row.what for row in dropped} == {"temperature", "effort"}


def test_options_that_are_not_to_be_said_are_left_out():
    body = {**ASKED, "temperature": 0.5, "max_completion_tokens": 9}
    said = read_request("openai_chat", body).prepare("gemini", without=["max_tokens"]).body
    assert said["generationConfig"] == {"temperature": 0.5}
    with pytest.raises(UsageError, match="max_token"):
        read_request("openai_chat", body).prepare("gemini", without=["max_token"])


@pytest.mark.parametrize(
    ("wire", "streams"), [("openai_chat", False), ("ollama", True), ("gemini", None)]
)
def test_a_body_that_does_not_say_whether_to_stream_means_what_its_wire_means(wire, streams):
    body = provider(wire).request(Conversation().user("Hi"))
    body.pop("stream", None)
    assert read_request(wire, body).options.stream is streams


@pytest.mark.parametrize(
    "wrong",
    [{"effort": "huge"}, {"temperature": "hot"}, {"stop": ["x"]}, {"seed": True}, {"stream": 1}],
)
def test_options_of_another_type_are_named(wrong):
    with pytest.raises(UsageError, match=next(iter(wrong))):
        RequestOptions(**wrong)


def test_settings_that_are_none_are_named():
    with pytest.raises(UsageError, match="RequestOptions"):
        provider("anthropic").request(Conversation().user("Hi"), settings={"temperature": 1})


def test_what_a_caller_passes_goes_before_what_the_request_says():
    body = {**ASKED, "model": "a", "stream": False, "max_tokens": 5}
    said = read_request("openai_chat", body).prepare(model="b", stream=True, max_tokens=7).body
    assert (said["model"], said["stream"], said["max_completion_tokens"]) == ("b", True, 7)


def test_a_body_for_foundry_is_of_the_wire_that_it_is():
    assert read_request("azure_foundry", {**ASKED, "tools": [FUNCTION]}).provider == "openai_chat"
    assert read_request("azure_foundry", {"input": "Hi"}).provider == "azure_foundry"


def test_a_schema_in_the_older_dialect_of_gemini_is_a_schema():
    said = {"type": "OBJECT", "properties": {"a": {"type": "STRING", "nullable": True}}}
    tools = [{"functionDeclarations": [{"name": "f", "parameters": said}], "googleSearch": {}}]
    body = {"contents": [{"role": "user", "parts": [{"text": "Hi"}]}], "tools": tools}
    function, search = read_request("gemini", body).tools
    assert function.schema == {"type": "object", "properties": {"a": {"type": ["string", "null"]}}}
    assert search.native == {"gemini": {"googleSearch": {}}}


@pytest.mark.parametrize(("said", "meant"), [
    ({"type": "OBJECT", "properties": {"nullable": {"type": "BOOLEAN"}, "type": {"type": "STRING"}}},
     {"type": "object", "properties": {"nullable": {"type": "boolean"}, "type": {"type": "string"}}}),
    ({"type": "ARRAY", "items": {"type": "STRING"}, "minItems": "1", "maxItems": "many"},
     {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": "many"}),
    ({"anyOf": [{"type": "STRING"}, {"type": "INTEGER"}], "nullable": True},
     {"anyOf": [{"type": "string"}, {"type": "integer"}, {"type": "null"}]}),
    ({"type": "STRING", "enum": ["NO", "SO"], "nullable": True},
     {"type": ["string", "null"], "enum": ["NO", "SO", None]}),
    ({"type": "STRING", "nullable": False}, {"type": "string"}),
    ({"type": "INTEGER", "minimum": 1, "title": "7"}, {"type": "integer", "minimum": 1, "title": "7"}),
    ({"description": "Any", "nullable": True}, {"description": "Any"}),
    ({"properties": 7, "items": [{"type": "STRING"}]}, {"properties": 7, "items": [{"type": "string"}]}),
    ({"type": "OBJECT", "default": {"type": "STRING", "nullable": True}},
     {"type": "object", "default": {"type": "STRING", "nullable": True}}),
], ids=["names", "counts", "any", "enum", "not", "value", "number", "bare", "odd"])  # fmt: skip
def test_whatever_the_older_dialect_of_gemini_says_is_said_in_json_schema(said, meant):
    tools = [{"functionDeclarations": [{"name": "f", "parameters": said}]}]
    body = {"contents": [{"role": "user", "parts": [{"text": "Hi"}]}], "tools": tools}
    assert read_request("gemini", body).tools[0].schema == meant


@pytest.mark.parametrize(
    "tool", [None, 7, {}, {"type": "function"}, {"type": "function", "function": {"name": 7}}]
)
def test_a_declaration_that_is_none_is_told(tool):
    request = read_request("openai_chat", {**ASKED, "tools": [tool, FUNCTION]})
    assert [tool.name for tool in request.tools] == ["f"]
    assert [row.where for row in request.report] == ["tools 0"]


def test_a_wire_that_was_asked_knows_the_tools_by_the_names_that_they_have_there():
    function = {"type": "function", "function": {"name": "my-server.read", "parameters": SCHEMA}}
    wire = provider("cohere")
    body = read_request("openai_chat", {**ASKED, "tools": [function]}).prepare(wire).body
    named = body["tools"][0]["function"]["name"]
    assert named == "my_server_read"
    assert wire.tool(named).name == "my-server.read"


@pytest.mark.parametrize(
    "body",
    [
        {"input": "And?", "previous_response_id": "resp_1"},
        {"input": "And?", "prompt": {"id": "pmpt_1"}},
        {"input": [{"type": "item_reference", "id": "msg_1"}, {"role": "user", "content": "And?"}]},
        {"input": [{"id": "msg_1"}, {"role": "user", "content": "And?"}]},  # a type is optional
    ],
)
def test_a_request_whose_turns_a_service_has_goes_to_nobody_else(body):
    request = read_request("openai_responses", body)
    assert request.has_past
    with pytest.raises(EncodeError, match="whole conversation"):
        request.prepare("anthropic")


def test_what_a_request_goes_on_from_is_said_to_its_own_wire():
    said = {"previous_response_id": "resp_1", "prompt": {"id": "pmpt_1"}}
    named = {"type": "item_reference", "id": "msg_1"}
    body = {"input": [named, {"role": "user", "content": "And?"}], **said}
    assert read_request("openai_responses", body).prepare().body == body


def test_a_tool_of_a_namespace_is_chosen_in_it():
    choice = {"type": "function", "namespace": "agents", "name": "close"}
    request = read_request("openai_responses", {**RESPONSES_BODY, "tool_choice": choice})
    assert request.tool_choice == ToolChoice("tool", ("agents__close",))
    assert request.prepare().body["tool_choice"] == choice
    assert request.prepare("anthropic").body["tool_choice"] == {
        "type": "tool",
        "name": "agents__close",
    }


def test_a_namespace_may_hold_a_tool_that_the_provider_runs():
    space = {
        "type": "namespace",
        "name": "n",
        "description": "",
        "tools": [{"type": "web_search"}, CUSTOM],
    }
    request = read_request("openai_responses", {"input": "Hi", "tools": [space]})
    assert [tool.name for tool in request.tools] == ["n__web_search", "n__apply_patch"]
    assert request.prepare().body["tools"] == [space]


def test_a_number_that_json_cannot_say_is_refused_by_name():
    schema = {"type": "object", "default": float("nan")}
    wished = RequestOptions(model="m", format=Format(schema, "n"))
    with pytest.raises(EncodeError, match="format"):
        provider("bedrock").prepare(Conversation().user("Hi"), settings=wished)


def test_a_schema_that_is_none_is_refused_by_the_name_of_its_tool():
    function = {"name": "f", "strict": True, "parameters": {**SCHEMA, "required": 0.5}}
    tool = {"type": "function", "function": function}
    with pytest.raises(EncodeError, match="'f'"):
        read_request("openai_chat", {**ASKED, "tools": [tool]}).prepare()
    with pytest.raises(EncodeError, match="names"):
        ToolChoice("tool", (["f"],))


# --- what the model said, and only its own wire has a place for -----------------------------------

UNPLACED = {
    "anthropic": (
        {"messages": [{"role": "assistant", "content": [
            {"type": "text", "text": "Look:"},
            {"type": "image", "source": {"type": "url", "url": "https://x.test/a.png"}}]}]},
        {"url"},
    ),
    "openai_chat": (
        {"messages": [{"role": "assistant", "name": "Ada", "content": [
            {"type": "text", "text": "No."}, {"type": "refusal", "refusal": "I will not."}]}]},
        {"name", "refusal"},
    ),
    "openai_responses": (
        {"input": [{"type": "message", "role": "assistant", "id": "msg_1", "status": "completed", "content": [
            {"type": "output_text", "text": "Hi", "annotations": [], "logprobs": [{"logprob": -0.5}]}]}]},
        {"logprob"},
    ),
    "gemini": (
        {"contents": [{"role": "model", "parts": [{"text": "Hi", "partMetadata": {"k": "v"}}]}]},
        {"k"},
    ),
    "bedrock": (
        {"messages": [{"role": "assistant", "content": [
            {"text": "Hi"}, {"guardContent": {"text": {"text": "Guarded"}}}]}]},
        {"text"},
    ),
    "cohere": (
        {"messages": [{"role": "assistant", "content": "Hi", "citations": [{"text": "cited", "start": 3}]}]},
        {"text", "start"},
    ),
}  # fmt: skip


@pytest.mark.parametrize(("wire", "body", "told"), [(w, *row) for w, row in UNPLACED.items()])
def test_what_the_model_said_and_no_part_has_is_told(wire, body, told):
    request = read_request(wire, {"model": "m", **body})
    assert len(request.conversation) == 1
    assert {row.what for row in request.report} == told


def test_of_a_turn_with_ever_so_many_strange_fields_some_are_told():
    message = {"role": "assistant", "content": "Hi"} | {f"x{n}": f"y{n}" for n in range(60)}
    assert len(read_request("openai_chat", {"messages": [message]}).report) == 50


def test_a_call_that_was_never_whole_is_told_and_spoils_no_later_request():
    calls = [
        {"id": "a", "type": "function", "function": {"name": "f", "arguments": '{"n": '}},
        {"id": "b", "type": "function", "function": {"name": "g", "arguments": "{}"}},
    ]
    results = [{"role": "tool", "tool_call_id": id, "content": "done"} for id in "ab"]
    said = {"role": "assistant", "content": None, "tool_calls": calls}
    request = read_request("openai_chat", {"messages": [*ASKED["messages"], said, *results]})
    assert [row.what for row in request.report] == ["dropped_call", "dropped_result"]
    for target in CALLING:
        assert_paired(target, request.prepare(target, model="m").body)
    answered = request.prepare("anthropic").body["messages"]
    assert [block["type"] for block in answered[1]["content"]] == ["tool_use"]


def test_a_result_in_the_older_role_answers_the_call_of_its_name():
    messages = [
        *ASKED["messages"],
        {"role": "assistant", "function_call": {"name": "f", "arguments": "{}"}},
        {"role": "function", "name": "f", "content": "seven"},
    ]
    request = read_request("openai_chat", {"messages": messages})
    assert [turn.role for turn in request.conversation] == ["user", "assistant", "tool"]
    (result,) = request.conversation.turns[2].results
    assert (result.call.name, result.text) == ("f", "seven")


def test_a_role_that_nobody_knows_is_read_as_the_users_and_told():
    body = {"messages": [{"role": "critic", "content": "Bad."}]}
    request = read_request("openai_chat", body)
    assert [(turn.role, turn.text) for turn in request.conversation] == [("user", "Bad.")]
    assert "'critic'" in request.report[0].why
    for role in (["user"], {}):
        assert read_request("openai_chat", {"messages": [{"role": role, "content": "x"}]}).report
    response = {"functionResponse": {"name": "f", "response": {"output": "x"}}}
    call = {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {}}}]}
    body = {"contents": [call, {"role": "function", "parts": [response]}]}
    assert read_request("gemini", body).report == ()


def test_tools_that_are_no_list_are_told():
    request = read_request("openai_chat", {**ASKED, "tools": "all"})
    assert [(row.where, row.what) for row in request.report] == [("tools", "left_out")]
    assert read_request("openai_chat", {**ASKED, "tools": None}).report == ()


def test_an_option_that_is_said_twice_in_two_ways_is_kept_for_its_own_wire():
    body = {**ASKED, "model": "m", "max_completion_tokens": 7, "max_tokens": 5}
    request = read_request("openai_chat", body)
    assert request.options.max_tokens == 7
    assert request.prepare().body == body
    assert "max_tokens" in {row.what for row in request.prepare("anthropic").dropped}


def test_a_choice_of_one_of_several_servers_is_not_said_as_another():
    servers = [{"type": "mcp", "server_label": label, "server_url": "x"} for label in "ab"]
    for choice in (
        {"type": "mcp", "server_label": "b"},
        {"type": "mcp", "server_label": "b", "name": "f"},
    ):
        body = {"model": "m", "input": "Hi", "tools": servers, "tool_choice": choice}
        prepared = read_request("openai_responses", body).prepare()
        assert prepared.body["tool_choice"] == choice


@pytest.mark.parametrize("target", ["openai_chat", "anthropic", "gemini", "mistral"])
def test_where_no_tool_is_left_there_is_no_choice_among_tools(target):
    body = {"model": "m", "input": "Hi", "tools": [{"type": "web_search"}], "tool_choice": "auto",
            "parallel_tool_calls": False}  # fmt: skip
    said, dropped = read_request("openai_responses", body).prepare(target)
    assert not [field for field in said if "tool" in field.lower()]
    assert ("tool_choice", "auto") in {(row.where, row.what) for row in dropped}


@pytest.mark.parametrize("item", [
    {"type": "tool_search_output", "execution": "client", "call_id": ["x"], "tools": []},
    {"type": "mcp_approval_response", "approval_request_id": {}, "approve": True},
])  # fmt: skip
def test_an_id_that_is_no_text_is_none(item):
    (row,) = read_request("openai_responses", {"input": [item]}).report
    assert row.what == "dropped_result"


def test_a_budget_for_thought_that_leaves_no_room_for_an_answer_is_left_out_with_a_row():
    tight = RequestOptions(model="m", max_tokens=1, thinking_budget=2000)
    prepared = provider("anthropic").prepare(
        Conversation().user("Go"), settings=tight, unsaid="report"
    )
    assert "thinking" not in prepared.body
    assert [row.what for row in prepared.dropped] == ["thinking_budget"]


# --- what only its own wire knows -------------------------------------------------------------------


def test_what_gemini_alone_says_of_a_function_goes_back_to_it_and_is_told_elsewhere():
    said = {"name": "f", "description": "d", "parametersJsonSchema": {"type": "object", "properties": {}},
            "behavior": "NON_BLOCKING", "response": {"type": "STRING"}}  # fmt: skip
    body = {"contents": [{"role": "user", "parts": [{"text": "Hi"}]}],
            "tools": [{"functionDeclarations": [said]}]}  # fmt: skip
    request = read_request("gemini", body)
    assert request.prepare().body == body
    assert {row.what for row in request.prepare("openai_chat").dropped} >= {"behavior", "response"}


@pytest.mark.parametrize("wire", [row.name for row in PROVIDERS.values() if row.encoder])
def test_a_strict_tool_is_one_everywhere_or_there_is_a_row(wire: str):
    if wire == "tgi":
        return  # it has no tools
    schema = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}
    body = {"model": "m", "messages": [{"role": "user", "content": "Hi"}], "tools": [
        {"type": "function", "function": {"name": "f", "parameters": schema, "strict": True}}]}  # fmt: skip
    prepared = read_request("openai_chat", body).prepare(wire)
    told = "strict" in [row.what for row in prepared.dropped]
    assert ("'strict': True" in str(prepared.body)) is not told


def test_where_a_text_came_from_is_told_to_its_own_wire_and_is_a_row_elsewhere():
    cited = {"type": "char_location", "cited_text": "c", "document_index": 0,
             "document_title": None, "start_char_index": 0, "end_char_index": 1}  # fmt: skip
    text = {"type": "text", "text": "Hi", "citations": [cited]}
    said = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": [text]}]
    request = read_request("anthropic", {"model": "m", "max_tokens": 9, "messages": said})
    assert request.prepare().body["messages"][1]["content"] == [text]
    assert "citations" in [row.what for row in request.prepare("openai_chat").dropped]


def test_a_picture_in_a_result_stays_one_beside_what_nobody_knows():
    picture = {
        "type": "image",
        "source": {"type": "base64", "media_type": "image/png", "data": "aGk="},
    }
    strange = {"type": "tool_reference", "tool_name": "other"}
    said = [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "f", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1",
                                      "content": [picture, strange]}]},
    ]  # fmt: skip
    request = read_request("anthropic", {"model": "m", "max_tokens": 9, "messages": said})
    body = request.prepare("openai_chat", images="shown").body
    assert "data:image/png;base64,aGk=" in str(body["messages"][-1])
    assert "aGk=" not in body["messages"][2]["content"]
    assert "tool_reference" in body["messages"][2]["content"]


def test_what_only_goes_with_an_option_is_read_with_it():
    schema = {"type": "object", "properties": {"city": {"type": "string"}}}
    said = {"responseMimeType": "application/json", "responseJsonSchema": schema}
    request = read_request("gemini", {"contents": [], "generationConfig": said})
    assert request.options.format == Format(schema)
    assert request.options.native == {"gemini": {}}
    assert request.prepare("openai_chat", model="m").dropped == ()
    other = {**said, "responseMimeType": "text/x.enum"}
    kept = read_request("gemini", {"contents": [], "generationConfig": other}).options.native
    assert kept == {"gemini": {"generationConfig": {"responseMimeType": "text/x.enum"}}}


# --- clients of generateContent -------------------------------------------------------------------

WEATHER = {"name": "weather", "description": "It", "parametersJsonSchema": {
    "type": "object", "properties": {"my_city": {"type": "string"}}}}  # fmt: skip


def test_fields_of_gemini_may_be_written_with_underscores():
    """As its own examples have them; what tools were called with keeps its names."""
    said = read_request("gemini", {
        "system_instruction": {"parts": [{"text": "Be brief."}]},
        "contents": [
            {"role": "user", "parts": [
                {"text": "Hi"}, {"inline_data": {"mime_type": "image/png", "data": "aGk="}}]},
            {"role": "model", "parts": [
                {"function_call": {"name": "weather", "args": {"my_city": "Oslo"}}}]},
            {"role": "user", "parts": [
                {"function_response": {"name": "weather", "response": {"deg_c": 7}}}]},
        ],
        "tools": [{"function_declarations": [
            {"name": "weather", "description": "It",
             "parameters_json_schema": WEATHER["parametersJsonSchema"]}]}],
        "tool_config": {"function_calling_config": {
            "mode": "ANY", "allowed_function_names": ["weather"]}},
        "generation_config": {"max_output_tokens": 9, "stop_sequences": ["a_b"]},
    })  # fmt: skip
    assert said.report == ()
    assert said.system == "Be brief."
    asked, called, answered = said.conversation.turns
    assert asked.parts[1] == File(b"hi", "image/png")
    assert called.calls[0].arguments == {"my_city": "Oslo"}
    assert answered.results[0].value == {"deg_c": 7}
    assert said.tools[0].schema["properties"] == {"my_city": {"type": "string"}}
    assert said.tool_choice == ToolChoice("tool", ("weather",))
    assert said.options == RequestOptions(max_tokens=9, stop=("a_b",), native={"gemini": {}})


def test_names_of_properties_in_a_schema_of_gemini_keep_their_underscores():
    inner = {"type": "OBJECT", "properties": {"any_of": {"any_of": [{"type": "STRING"}]}}}
    said = {"contents": [], "tools": [{"function_declarations": [
        {"name": "f", "parameters": {"type": "OBJECT", "properties": {"a_b": inner}}}]}]}  # fmt: skip
    (tool,) = read_request("gemini", said).tools
    assert tool.schema["properties"] == {
        "a_b": {"type": "object", "properties": {"any_of": {"anyOf": [{"type": "string"}]}}}
    }


@pytest.mark.parametrize("field", ["my_Field", "_own", "a__b", "A_b", "safetySettings"])
def test_a_field_that_gemini_cannot_mean_by_underscores_keeps_its_name(field: str):
    body = {"contents": [{"role": "user", "parts": [{"text": "Hi"}]}], field: [7]}
    assert read_request("gemini", body).prepare("gemini").body == body


def test_what_is_no_object_where_gemini_has_names_is_left_as_it_is():
    body = {"contents": [{"role": "user", "parts": [{"text": "Hi"}]}], "extra": {"properties": 7}}
    assert read_request("gemini", body).prepare("gemini").body == body


def test_a_field_of_gemini_in_both_spellings_is_read_once_and_told():
    said = {"contents": [], "generationConfig": {"seed": 5}, "generation_config": {"seed": 6}}
    request = read_request("gemini", said)
    assert request.options.seed == 5
    assert [row.what for row in request.prepare("openai_chat").dropped] == [
        "generation_config: seed"
    ]
    assert request.prepare("gemini").body == said


def test_a_field_of_gemini_that_only_looks_like_another_spelling_stays_as_it_is():
    said = {"contents": [], "generationConfig": {"_seed": 5, "top_K": 2}}
    assert read_request("gemini", said).options == RequestOptions(
        native={"gemini": {"generationConfig": {"_seed": 5, "top_K": 2}}}
    )


def test_properties_of_gemini_that_are_no_object_are_read_as_any_other_field():
    said = {"contents": [], "generationConfig": {"responseSchema": {"properties": ["a"]}}}
    assert read_request("gemini", said).prepare("gemini").body == said


def test_one_value_stands_for_a_list_of_one_on_gemini():
    said = read_request("gemini", {
        "systemInstruction": {"parts": {"text": "Be brief."}},
        "contents": {"parts": {"text": "Hi"}},
        "tools": {"functionDeclarations": WEATHER},
    })  # fmt: skip
    assert said.report == ()
    assert said.system == "Be brief."
    assert [turn.text for turn in said.conversation.turns] == ["Hi"]
    assert [tool.name for tool in said.tools] == ["weather"]


@pytest.mark.parametrize("wire", ["gemini", "openai_chat", "anthropic"])
def test_a_text_in_place_of_messages_is_refused_where_it_is_none(wire: str):
    container = provider(wire).container
    with pytest.raises(UsageError, match=f"no list of '{container}'"):
        read_request(wire, {container: "Hi", "model": "m", "max_tokens": 9})


@pytest.mark.parametrize("data", ["_-8=", "/+8=", "_-8"])
def test_media_may_be_in_the_alphabet_of_addresses(data: str):
    """As Google's SDK for Python writes all of them."""
    said = {"contents": [{"parts": [{"inlineData": {"mimeType": "image/png", "data": data}}]}]}
    request = read_request("gemini", said)
    assert request.report == ()
    assert request.conversation.turns[0].parts == (File(b"\xff\xef", "image/png"),)


@pytest.mark.parametrize(
    ("wire", "container", "of_model", "of_user"),
    [
        ("gemini", "contents", lambda text: {"role": "model", "parts": [{"text": text}]},
         {"role": "user", "parts": [{"text": "Hi"}]}),
        ("anthropic", "messages", lambda text: {"role": "assistant", "content": [
            {"type": "text", "text": text}]}, {"role": "user", "content": "Hi"}),
    ],
)  # fmt: skip
def test_what_the_model_said_in_several_messages_is_one_turn_where_roles_take_turns(
    wire: str, container: str, of_model: Callable[[str], Any], of_user: Any
):
    said = [of_user, of_model("Hel"), of_model("lo"), of_user, of_model("Bye")]
    request = read_request(wire, {container: said, "model": "m", "max_tokens": 9})
    told = [(turn.role, turn.text) for turn in request.conversation.turns]
    whole = "Hello" if wire == "gemini" else told[1][1]  # its blocks stay apart
    assert told == [("user", "Hi"), ("assistant", whole), ("user", "Hi"), ("assistant", "Bye")]
    assert request.conversation.turns[1].text.replace("\n", "") == "Hello"


def test_calls_in_several_messages_of_the_model_are_answered_behind_them():
    called = [{"role": "model", "parts": [{"functionCall": {"name": n, "args": {}}}]} for n in "fg"]
    results = [{"functionResponse": {"name": n, "response": {"output": n}}} for n in "gf"]
    request = read_request("gemini", {"contents": [*called, {"role": "user", "parts": results}]})
    assert request.report == ()
    called_turn, answered = request.conversation.turns
    assert [call.name for call in called_turn.calls] == ["f", "g"]
    assert [(result.call.name, result.value) for result in answered.results] == [
        ("g", "g"), ("f", "f")
    ]  # fmt: skip


def test_a_message_of_the_model_with_more_than_what_it_said_stays_by_itself():
    said = [{"role": "model", "parts": [{"text": text}], "mood": text} for text in "ab"]
    request = read_request("gemini", {"contents": said})
    assert [turn.text for turn in request.conversation.turns] == ["a", "b"]


def test_a_schema_of_the_answer_in_the_older_dialect_of_gemini_is_one():
    older = {"type": "OBJECT", "properties": {"a": {"type": "STRING", "nullable": True}}}
    said = {"responseMimeType": "application/json", "responseSchema": older}
    request = read_request("gemini", {"contents": [], "generationConfig": said})
    schema = {"type": "object", "properties": {"a": {"type": ["string", "null"]}}}
    assert request.options.format == Format(schema)
    assert request.prepare("gemini").body["generationConfig"] == {
        "responseMimeType": "application/json", "responseJsonSchema": schema
    }  # fmt: skip


def test_one_word_of_several_is_no_answer_in_json():
    said = {"responseMimeType": "text/x.enum", "responseSchema": {"type": "STRING", "enum": ["a"]}}
    request = read_request("gemini", {"contents": [], "generationConfig": said})
    assert request.options.format is None
    assert request.prepare("gemini").body["generationConfig"] == said
