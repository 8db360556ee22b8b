"""Every request body is one that the provider's own SDK would send.

Bodies come from the golden scenarios and from every take: each folded into a conversation, answered,
and said to all wires. The judges are the request types of the official SDKs; a test is left out
where an SDK is not installed.
"""

from __future__ import annotations

import functools
import inspect
import json
from collections.abc import Callable
from typing import Any

import pytest

from streamnorm import Conversation, File, Finish, Normalizer, Tool, ToolCall, ToolResult, Turn
from streamnorm.providers import PROVIDERS
from streamnorm.providers.azure_foundry.parser import FOUNDRY_TOOLS
from streamnorm.wire import provider
from tests.conftest import CALLING, load, take_id, take_paths

pytestmark = pytest.mark.parts

Check = Callable[[dict[str, Any]], None]
PNG = File(b"\x89PNG", "image/png", "dot.png")
PDF = File(b"%PDF-1.7", "application/pdf", "paper.pdf")
TOOL = Tool(
    "get_weather", "The weather", {"type": "object", "properties": {"city": {"type": "string"}}}
)


# --- the judges -----------------------------------------------------------------------------------


def _typed(typed_dict: Any) -> Check:
    from pydantic import TypeAdapter

    adapter = TypeAdapter(typed_dict)

    def check(body: dict[str, Any]) -> None:
        _exhausted(adapter.validate_python(json.loads(json.dumps(body)), strict=False))

    return check


def _exhausted(value: Any) -> None:
    """Iterables in request types are checked as they are read."""
    if isinstance(value, dict):
        for inner in value.values():
            _exhausted(inner)
    elif not isinstance(value, str | bytes | int | float | None):
        for inner in value:
            _exhausted(inner)


def anthropic() -> Check:
    pytest.importorskip("pydantic")
    types = pytest.importorskip("anthropic.types.beta.message_create_params")
    return _typed(types.MessageCreateParamsStreaming)


def openai_chat() -> Check:
    types = pytest.importorskip("openai.types.chat.completion_create_params")
    return _typed(types.CompletionCreateParamsStreaming)


def openai_responses() -> Check:
    types = pytest.importorskip("openai.types.responses.response_create_params")
    return _typed(types.ResponseCreateParamsStreaming)


def azure_foundry() -> Check:
    """The OpenAI SDK is the client; items that only the service knows go back as they came."""
    known = openai_responses()
    foreign = {tool.type for tool in FOUNDRY_TOOLS} | {"output_message"}

    def check(body: dict[str, Any]) -> None:
        items = [item for item in body["input"] if item.get("type") not in foreign]
        known({**body, "input": items})

    return check


def gemini() -> Check:
    types = pytest.importorskip("google.genai.types")

    def check(body: dict[str, Any]) -> None:
        rest = dict(body)
        for content in [
            *rest.pop("contents"),
            *filter(None, [rest.pop("systemInstruction", None)]),
        ]:
            types.Content.model_validate(content)
        for tool in rest.pop("tools", ()):
            types.Tool.model_validate(tool)
        if config := rest.pop("toolConfig", None):
            types.ToolConfig.model_validate(config)
        if config := rest.pop("generationConfig", None):
            types.GenerationConfig.model_validate(config)
        assert not rest, f"fields that no request has: {list(rest)}"

    return check


def gemini_interactions() -> Check:
    types = pytest.importorskip("google.genai._gaos.types.interactions.createmodelinteraction")
    return types.CreateModelInteraction.model_validate


def mistral() -> Check:
    models = pytest.importorskip("mistralai.client.models")
    return models.ChatCompletionStreamRequest.model_validate


def mistral_conversations() -> Check:
    models = pytest.importorskip("mistralai.client.models")
    return models.ConversationStreamRequest.model_validate


def dashscope() -> Check:
    """Its SDK sends plain dicts: the messages are Chat's, the rest is what its call() knows."""
    chat = openai_chat()
    parameters = {
        "result_format", "incremental_output", "tools", "tool_choice", "max_tokens", "parallel_tool_calls",
        "temperature", "top_p", "top_k", "stop", "seed", "presence_penalty", "enable_thinking",
        "thinking_budget", "response_format",
    }  # fmt: skip

    def check(body: dict[str, Any]) -> None:
        assert set(body) <= {"model", "input", "parameters"}
        assert set(body["parameters"]) <= parameters
        tools = {k: v for k, v in body["parameters"].items() if k.startswith("tool")}
        said = [_as_chat(message) for message in body["input"]["messages"]]
        chat({"model": body["model"], "messages": said, "stream": True, **tools})

    return check


def _as_chat(message: dict[str, Any]) -> dict[str, Any]:
    if not isinstance(message.get("content"), list):
        return message
    assert all(list(part) in (["text"], ["image"]) for part in message["content"])
    return {**message, "content": "parts"}


def cohere() -> Check:
    types = pytest.importorskip("cohere")
    pydantic = pytest.importorskip("pydantic")
    messages = pydantic.TypeAdapter(list[types.ChatMessageV2])
    tools = pydantic.TypeAdapter(list[types.ToolV2])

    def check(body: dict[str, Any]) -> None:
        messages.validate_python(body["messages"])
        tools.validate_python(body.get("tools", []))
        assert body.get("tool_choice") in (None, "REQUIRED", "NONE")
        assert set(body) <= {"stream", *inspect.signature(types.ClientV2.chat_stream).parameters}

    return check


def ollama() -> Check:
    types = pytest.importorskip("ollama._types")

    def check(body: dict[str, Any]) -> None:
        types.ChatRequest.model_validate(body)
        assert set(body.get("options", ())) <= set(types.Options.model_fields)
        for message in body["messages"]:
            said = {k: v for k, v in message.items() if k != "images"}  # base64 here, files there
            types.Message.model_validate(said)

    return check


def bedrock() -> Check:
    pytest.importorskip("botocore")
    from botocore.loaders import Loader
    from botocore.model import ServiceModel
    from botocore.validate import ParamValidator

    service = ServiceModel(Loader().load_service_model("bedrock-runtime", "service-2"))
    shape = service.operation_model("ConverseStream").input_shape

    def check(body: dict[str, Any]) -> None:
        report = ParamValidator().validate(body, shape)
        assert not report.has_errors(), report.generate_report()

    return check


def tgi() -> Check:
    from dataclasses import fields

    hub = pytest.importorskip("huggingface_hub")

    def check(body: dict[str, Any]) -> None:
        kinds = (hub.TextGenerationInput, hub.TextGenerationInputGenerateParameters)
        for said, kind in zip((body, body["parameters"]), kinds, strict=True):
            assert set(said) <= {field.name for field in fields(kind)}
        assert isinstance(hub.TextGenerationInput.parse_obj_as_instance(body).inputs, str)

    return check


JUDGES: dict[str, Callable[[], Check]] = {
    "anthropic": anthropic,
    "openai_responses": openai_responses,
    "openai_chat": openai_chat,
    "gemini": gemini,
    "azure_foundry": azure_foundry,
    "mistral": mistral,
    "mistral_conversations": mistral_conversations,
    "cohere": cohere,
    "dashscope": dashscope,
    "ollama": ollama,
    "bedrock": bedrock,
    "gemini_interactions": gemini_interactions,
    "tgi": tgi,
}
judge = functools.cache(lambda name: JUDGES[name]())


# Takes whose items go back as they came although no SDK has a type for them.
OPAQUE = {
    "anthropic/other_blocks",
    "anthropic/type_tool_search_tool_result",
    "azure_foundry/type_mcp_call",
    "openai_chat/builtin_beside_function",  # Kimi's own type
    "openai_chat/builtin_web_search",
    "openai_responses/other_items",
    "openai_responses/search_with_arguments",  # as xAI says it, without an action
    "openai_responses/type_mcp_call",
    "openai_responses/type_multi_agent_call",
}


# --- conversations --------------------------------------------------------------------------------


@functools.cache
def turn_of(path: Any) -> Turn | None:
    """The turn of a take, if it ended well and nothing in it broke."""
    take, wire = load(path)
    pipe = Normalizer(take.provider or path.parent.name, seed="tests")
    events = pipe.feed(wire) + pipe.close()
    turn = Turn.from_events(events)
    return turn if isinstance(events[-1], Finish) and not turn.broken and turn.parts else None


def answer(call: ToolCall) -> ToolResult:
    """A result of the kind that the tool gives."""
    outputs: dict[str, Any] = {"computer-use": PNG, "tool-search": [], "mcp": True}
    return ToolResult.for_call(call, outputs.get(call.family, {"celsius": 7}))


def talk_of(turn: Turn) -> Conversation:
    talk = Conversation(system="Be brief.").user("What is the weather?").add(turn)
    talk.results([answer(call) for call in turn.calls])
    return talk if turn.calls else talk.user("And tomorrow?")


def whole_takes() -> list[Any]:
    paths = [path for path in take_paths() if take_id(path) not in OPAQUE]
    return [path for path in paths if turn_of(path) is not None]


def rich() -> Conversation:
    """All that a client can say, and several calls at once."""
    calls = [
        ToolCall(i, f"call_{i}", "get_weather", {"city": city}, json.dumps({"city": city}))
        for i, city in enumerate(("Oslo", "Rome", "Lima", "Perth"))
    ]
    outputs: list[Any] = [PNG, ["two", PNG, PDF], {"celsius": 7, "big": 2**70}, ""]
    talk = Conversation(system="Be brief.").user("Look", PNG, PDF)
    talk.add(Turn("assistant", tuple(calls)))
    talk.results(
        [
            ToolResult.for_call(c, o, is_error=c.call == 3)
            for c, o in zip(calls, outputs, strict=True)
        ]
    )
    return talk.assistant("Cold.").user("Thanks")


# --- the tests ------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", CALLING)
def test_what_a_client_says_is_a_request_of_the_sdk(target):
    judge(target)(provider(target).request(rich(), [TOOL], "auto", model="m"))


WISHES: tuple[Any, ...] = ("auto", "none", "required", "get_weather", ["get_weather"])
UNSAID = {
    ("ollama", "required"),
    ("ollama", "get_weather"),
    ("bedrock", "none"),
    ("dashscope", "required"),
}


@pytest.mark.parametrize(
    ("target", "choice"),
    [(t, wish) for t in CALLING for wish in WISHES if (t, str(wish)) not in UNSAID],
)
def test_every_choice_is_a_request_of_the_sdk(target, choice):
    judge(target)(provider(target).request(Conversation().user("Hi"), [TOOL], choice, model="m"))


@pytest.mark.parametrize("target", CALLING)
def test_a_strict_tool_is_a_request_of_the_sdk(target):
    schema = {
        "type": "object", "required": ["a"],
        "properties": {"a": {"type": "string", "minLength": 2}, "b": {"enum": [1, 2]}},
    }  # fmt: skip
    tool = Tool("f", "Does it", schema, strict=True)
    judge(target)(provider(target).request(Conversation().user("Hi"), [tool], model="m"))


@pytest.mark.parametrize("path", whole_takes(), ids=take_id)
def test_a_turn_goes_back_to_its_provider_as_the_sdk_would_send_it(path):
    turn = turn_of(path)
    assert turn is not None
    target = turn.provider or path.parent.name
    tools = [TOOL] if target in CALLING else []
    judge(target)(provider(target).request(talk_of(turn), tools, model="m"))


@pytest.mark.parametrize("target", CALLING)
def test_turns_of_all_providers_can_go_to_any_other(target):
    check = judge(target)
    for path in whole_takes()[::3]:  # a third of them: the judges are slow
        turn = turn_of(path)
        assert turn is not None
        try:
            check(provider(target).request(talk_of(turn), [TOOL], model="m", reasoning="text"))
        except Exception as error:
            raise AssertionError(f"{take_id(path)} to {target}") from error


def test_every_provider_has_a_judge():
    assert set(JUDGES) == set(PROVIDERS)
