"""Tools, choices and results: what is declared, what is lowered, what is refused and how."""

from __future__ import annotations

import datetime
import math
from pathlib import Path
from typing import Any

import msgspec
import pytest

from streamnorm import (
    BrokenToolCall,
    ClientTool,
    Conversation,
    Decision,
    EncodeError,
    File,
    Tool,
    ToolCall,
    ToolChoice,
    ToolLoop,
    ToolResult,
    Turn,
    mend,
)
from streamnorm.errors import UsageError
from streamnorm.events import event_to_dict
from streamnorm.wire import provider
from tests.conftest import CALLING

CALL = ToolCall(0, "call_1", "f", {}, "{}")


def weather(city: str, days: int = 1, tags: list[str] | None = None) -> str:
    """The weather of a city."""
    return city


# --- tools from functions -------------------------------------------------------------------------


def test_a_typed_function_is_a_tool():
    tool = Tool.from_function(weather)
    assert (tool.name, tool.description) == ("weather", "The weather of a city.")
    assert tool.schema["required"] == ["city"]
    assert tool.schema["properties"]["days"] == {"type": "integer", "default": 1}


def test_a_function_whose_parameters_have_no_names_is_refused():
    def spread(*args: int) -> None: ...

    with pytest.raises(EncodeError, match="cannot be named"):
        Tool.from_function(spread)


# --- schemas --------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", CALLING)
@pytest.mark.parametrize("schema", [{"type": "array"}, {"type": "string"}, [], "object"])
def test_a_schema_that_is_no_object_is_refused(target, schema):
    with pytest.raises(EncodeError, match="wrap it"):
        provider(target).tools([Tool("f", schema=schema)])


def test_what_a_wire_refuses_is_dropped_with_a_report():
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "definitions": {"City": {"type": "string", "pattern": "^[A-Z]"}},
        "properties": {
            "city": {"$ref": "#/definitions/City"}, "unit": {"const": "celsius"},
            "when": {"allOf": [{"type": "string", "format": "date"}], "description": "The day"},
            "pattern": {"type": "string", "minLength": 1},
        },
    }  # fmt: skip
    declared = provider("gemini").declare([Tool("weather", schema=schema)])
    (entry,) = declared.tools[0]["functionDeclarations"]
    said = entry["parametersJsonSchema"]
    assert said["$defs"] == {"City": {"type": "string"}}
    assert said["properties"] == {
        "city": {"$ref": "#/$defs/City"}, "unit": {"enum": ["celsius"]},
        "when": {"type": "string", "format": "date", "description": "The day"},
        "pattern": {"type": "string"},  # a property of that name is no keyword
    }  # fmt: skip
    assert [(d.where, d.what) for d in declared.dropped] == [
        ("weather.pattern", "minLength"), ("weather.$defs.City", "pattern"),
    ]  # fmt: skip
    assert "definitions" in schema, "the caller's schema is never changed"


@pytest.mark.parametrize("target", ["anthropic", "openai_chat", "openai_responses", "bedrock"])
def test_alternatives_at_the_top_are_dropped_with_a_report(target):
    schema = {"type": "object", "properties": {"a": {}}, "anyOf": [{"required": ["a"]}]}
    declared = provider(target).declare([Tool("f", schema=schema)])
    assert "anyOf" not in str(declared.tools)
    assert [d.what for d in declared.dropped] == ["anyOf"]


def test_a_strict_tool_requires_everything_where_the_wire_wants_that():
    schema = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"enum": [1]},
              "c": {"type": "integer", "enum": [1]}}, "required": ["a"]}  # fmt: skip
    declared = provider("openai_chat").declare([Tool("f", schema=schema, strict=True)])
    function = declared.tools[0]["function"]
    assert function["strict"] is True
    assert function["parameters"] == {
        "type": "object", "additionalProperties": False, "required": ["a", "b", "c"],
        "properties": {"a": {"type": "string"}, "b": {"anyOf": [{"enum": [1]}, {"type": "null"}]},
                       "c": {"type": ["integer", "null"], "enum": [1, None]}},
    }  # fmt: skip
    assert [d.where for d in declared.dropped] == ["f.b", "f.c"]


# --- server tools ---------------------------------------------------------------------------------


def test_a_server_tool_goes_to_its_provider_as_it_is_and_to_no_other():
    search = Tool.server("anthropic", {"type": "web_search_20250305", "name": "web_search"})
    assert provider("anthropic").tools([search]) == [search.native["anthropic"]]
    declared = provider("openai_chat").declare([search, Tool("f")])
    assert len(declared.tools) == 1
    assert declared.dropped[0].what == "tool"


def test_gemini_puts_functions_into_one_entry_beside_its_own_tools():
    tools = [Tool("a"), Tool.server("gemini", {"googleSearch": {}}), Tool("b")]
    entries = provider("gemini").tools(tools)
    assert [f["name"] for f in entries[0]["functionDeclarations"]] == ["a", "b"]
    assert entries[1] == {"googleSearch": {}}


# --- choices --------------------------------------------------------------------------------------

TOOLS = [Tool("f"), Tool("g")]
SAID: dict[str, dict[str, Any]] = {
    "anthropic": {
        "auto": {"type": "auto"}, "none": {"type": "none"}, "required": {"type": "any"},
        "f": {"type": "tool", "name": "f"},
    },
    "openai_responses": {
        "auto": "auto", "none": "none", "required": "required", "f": {"type": "function", "name": "f"},
        "allowed": {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "f"}]},
    },
    "openai_chat": {
        "auto": "auto", "required": "required", "f": {"type": "function", "function": {"name": "f"}},
        "allowed": {"type": "allowed_tools", "allowed_tools": {
            "mode": "auto", "tools": [{"type": "function", "function": {"name": "f"}}]}},
    },
    "gemini": {
        "none": {"functionCallingConfig": {"mode": "NONE"}},
        "required": {"functionCallingConfig": {"mode": "ANY"}},
        "f": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["f"]}},
        "allowed": {"functionCallingConfig": {"mode": "VALIDATED", "allowedFunctionNames": ["f"]}},
    },
    "mistral": {"required": "any", "f": {"type": "function", "function": {"name": "f"}}},
    "mistral_conversations": {"auto": "auto", "none": "none", "required": "required"},
    "cohere": {"auto": None, "none": "NONE", "required": "REQUIRED"},
    "ollama": {"auto": None},
    "dashscope": {"auto": "auto", "none": "none", "f": {"type": "function", "function": {"name": "f"}}},
    "bedrock": {"auto": {"auto": {}}, "required": {"any": {}}, "f": {"tool": {"name": "f"}}},
    "gemini_interactions": {
        "required": "any", "f": {"allowed_tools": {"mode": "any", "tools": ["f"]}},
    },
}  # fmt: skip


@pytest.mark.parametrize(
    ("target", "wish"), [(target, wish) for target, said in SAID.items() for wish in said]
)
def test_a_choice_is_said_in_the_words_of_the_wire(target, wish):
    choice: Any = ["f"] if wish == "allowed" else wish
    assert provider(target).tool_choice(choice, TOOLS) == SAID[target][wish]


def test_one_call_at_a_time():
    one = ToolChoice("auto", parallel=False)
    talk: Any = []
    assert provider("anthropic").request(talk, TOOLS, one)["tool_choice"] == {
        "type": "auto", "disable_parallel_tool_use": True,
    }  # fmt: skip
    assert provider("openai_chat").request(talk, TOOLS, one)["parallel_tool_calls"] is False
    assert provider("gemini").prepare(talk, TOOLS, one).dropped[0].what == "parallel"


@pytest.mark.parametrize(
    "target", ["anthropic", "mistral", "mistral_conversations", "cohere", "ollama", "bedrock"]
)
def test_a_wire_that_cannot_allow_some_tools_hears_of_those_only(target):
    prepared = provider(target).prepare([], TOOLS, ["g"])
    said = str(prepared.body)
    assert "'g'" in said
    assert "'f'" not in said
    assert prepared.dropped[0].where == "tool_choice"
    with pytest.raises(EncodeError, match=r"pass tool_choice to request"):
        provider(target).tool_choice(["g"], TOOLS)


def test_ollama_cannot_force_a_call():
    with pytest.raises(EncodeError, match="choose"):
        provider("ollama").request([], TOOLS, "required")
    assert "tools" not in provider("ollama").request([], TOOLS, "none")


def test_bedrock_cannot_forbid_the_tools_that_it_knows():
    with pytest.raises(EncodeError, match="leave out"):
        provider("bedrock").request([], TOOLS, "none")


def test_a_choice_among_tools_that_are_not_there_is_refused():
    with pytest.raises(EncodeError, match="not among the tools"):
        provider("anthropic").request([], TOOLS, "nobody")
    with pytest.raises(EncodeError, match="no tools"):
        provider("anthropic").request([], [], "required")


# --- results --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("output", "text"),
    [
        ("plain", "plain"), (None, ""), ({"a": 2**70}, '{"a":1180591620717411303424}'),
        (["a", 1], '["a",1]'), (b"\x00", "Binary content of type application/octet-stream was processed."),
        ([File(b"", "image/png"), "and", {"a": 1}],
         'Binary content of type image/png was processed.\nand\n{"a":1}'),
        (datetime.date(2026, 1, 2), "2026-01-02"),
    ],
)  # fmt: skip
def test_outputs_as_text(output, text):
    assert ToolResult.for_call(CALL, output).text == text


@pytest.mark.parametrize(
    "output", [object(), math.nan, {"a": math.inf}, "\ud800", {1: object()}, [[object()]]]
)
def test_an_output_that_json_cannot_say_is_refused(output):
    with pytest.raises(EncodeError, match="return text, plain JSON"):
        ToolResult.for_call(CALL, output)


def test_an_output_that_contains_itself_is_refused():
    output: list[Any] = []
    output.append(output)
    with pytest.raises(EncodeError, match="cannot be written as JSON"):
        ToolResult.for_call(CALL, output)


def test_only_a_whole_call_can_be_answered_or_sent():
    broken: Any = BrokenToolCall(0, "call_1", "f", '{"a', "truncated")
    with pytest.raises(EncodeError, match="never whole"):
        ToolResult.for_call(broken, "x")
    with pytest.raises(EncodeError, match="never whole"):
        provider("anthropic").calls([broken])
    with pytest.raises(EncodeError, match="for_call"):
        provider("anthropic").results(["x"])  # type: ignore[list-item]


def test_two_results_for_one_call_are_refused():
    results = [ToolResult.for_call(CALL, "a"), ToolResult.for_call(CALL, "b")]
    with pytest.raises(EncodeError, match="two results"):
        provider("openai_chat").results(results)


def test_an_unknown_option_is_refused():
    with pytest.raises(EncodeError, match="own, text, none"):
        provider("openai_chat").request([], reasoning="loud")


# --- wrong types ----------------------------------------------------------------------------------


@pytest.mark.parametrize("wrong", ["call_1", None, 5, {"id": "call_1"}])
def test_a_result_answers_a_call_not_an_id(wrong):
    for make in (ToolResult, ToolResult.for_call):
        with pytest.raises(
            EncodeError, match=r"a result needs a ToolCall, not .*; pass the call itself"
        ):
            make(wrong, "done")


def test_a_result_of_a_broken_call_is_refused_with_what_to_do():
    broken = BrokenToolCall(0, "call_1", "f", "{", "truncated")
    for make in (ToolResult, ToolResult.for_call):
        with pytest.raises(EncodeError, match=r"not broken_tool_call; .* ask the model again"):
            make(broken, "done")


def test_media_are_bytes():
    with pytest.raises(EncodeError, match=r"File is bytes and their type, .* not str"):
        File("aGk=", "image/png")


def said(call):
    return Conversation().user("Go").add(Turn("assistant", (call,)))


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (
            lambda wire, call: wire.tools([print]),
            "a tool is a Tool, not builtin_function_or_method",
        ),
        (lambda wire, call: wire.request([], [5]), "a tool is a Tool, not int"),
        (lambda wire, call: wire.tools("f"), "tools are to be passed as a list, not str"),
        (lambda wire, call: wire.results(None), "results are to be passed as a list, not NoneType"),
        (
            lambda wire, call: wire.results(ToolResult.for_call(call, 1)),
            "as a list, not ToolResult",
        ),
        (lambda wire, call: wire.results(["done"]), "a result is a ToolResult, not str"),
        (lambda wire, call: wire.calls(call), "calls are to be passed as a list, not ToolCall"),
        (lambda wire, call: wire.calls(["call_1"]), "a ToolCall, not str"),
        (lambda wire, call: wire.tool_choice(5), "a choice is .*, not 5"),
        (
            lambda wire, call: wire.tool_choice([Tool("f")]),
            "the name of a tool, or a list of names",
        ),
        (lambda wire, call: wire.request(5), "turns are to be passed as a list, not int"),
        (lambda wire, call: wire.request(["Hi"]), "a conversation is made of turns, not str"),
        (lambda wire, call: said(call).results(["done"]), "a result is a ToolResult, .* not str"),
        (lambda wire, call: said(call).results("done"), "a list of ToolResult, not str"),
        (lambda wire, call: said(call).user(5), "text, File or Link, not int"),
        (lambda wire, call: said(call).add("Hi"), "made of turns, not str"),
        (lambda wire, call: said(call).assistant(5), "a text, a Turn or its events, not int"),
        (lambda wire, call: mend("Hi"), "pass a Conversation, not str"),
        (lambda wire, call: Tool(print), "a name and a description, which are texts"),
        (lambda wire, call: Tool("f", {}), "a name and a description, which are texts"),
        (lambda wire, call: File(b"", 5), "File is bytes and their type, .* not int"),
    ],
)
def test_something_of_the_wrong_type_gets_a_sentence(wrong, sentence):
    with pytest.raises(UsageError, match=sentence):
        wrong(provider("anthropic"), ToolCall(0, "call_1", "f", {}, "{}"))


class Odd(msgspec.Struct):
    where: Path


def no_default(most: float = math.inf) -> None: ...


NOTHING = object()


def object_default(place: Odd = NOTHING) -> None: ...


def two_texts(when: datetime.datetime | str) -> None: ...


def anything(what: object) -> None: ...


@pytest.mark.parametrize("function", [no_default, object_default, two_texts, anything])
def test_a_function_without_a_schema_is_told_so_in_one_sentence(function):
    with pytest.raises(EncodeError, match=rf"^{function.__name__}: there is no schema") as caught:
        Tool.from_function(function)
    assert "\n" not in str(caught.value)
    assert "or pass a Tool with a schema" in str(caught.value)


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (lambda: Tool.from_model(Odd), "Odd: there is no schema .*Path'> is not supported"),
        (lambda: Tool.from_model(Odd(Path())), "a pydantic model itself, not of Odd"),
        (lambda: Tool.from_function(5), "a typed function, not of 5"),
        (lambda: ClientTool.from_function(5), "a typed function, not of 5"),
        (lambda: Decision(id="a", allow=True, arguments={1: 2}), "are texts, not 1"),
        (
            lambda: ToolLoop(print).run(decisions=Decision(id="a", allow=True)),
            "decisions is a list of Decision, not Decision",
        ),
    ],
)
def test_what_is_of_the_wrong_type_gets_a_sentence(made, said):
    with pytest.raises(UsageError, match=said):
        made()


def test_what_is_no_event_is_told_so():
    with pytest.raises(TypeError, match="an event is what a stream or a loop told, not str"):
        event_to_dict("x")
