"""The official SDKs against our tables: a member of theirs that we do not know is named.

    python -m tools.completeness            N of N for every union; exit 1 if one is not complete
    pip install openai anthropic google-genai azure-ai-projects azure-ai-agentserver-responses \\
        mistralai cohere ollama botocore groq huggingface-hub dashscope claude-agent-sdk

In come the types an SDK publishes (unions, literals, enums, models; botocore's service model), out
goes for each member whether a table, a payload type or a row of ours knows it. Nothing is listed
twice: members are discovered on their side and looked up on ours. ``EXCUSED`` holds the few that
need no row, each with its reason. An SDK that is not installed is left out by name.

``UNIONS`` says how one union is held against our tables, fields and all. Which unions there are is found
by walking the SDKs (``tools.unions``): one that is new, or has a new member, is named by this command.
"""

from __future__ import annotations

import argparse
import sys
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import Enum
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Any, NamedTuple

import msgspec

from streamnorm.providers.anthropic import parser as anthropic
from streamnorm.providers.azure_foundry import parser as foundry
from streamnorm.providers.bedrock import parser as bedrock
from streamnorm.providers.claude_code import objects as agent_sdk
from streamnorm.providers.cohere import parser as cohere
from streamnorm.providers.dashscope import parser as dashscope
from streamnorm.providers.gemini import parser as gemini
from streamnorm.providers.gemini_interactions import parser as interactions
from streamnorm.providers.mistral import parser as mistral
from streamnorm.providers.mistral_conversations import parser as conversations
from streamnorm.providers.ollama import parser as ollama
from streamnorm.providers.openai_chat import content
from streamnorm.providers.openai_chat import parser as chat
from streamnorm.providers.openai_responses import parser as responses
from streamnorm.providers.tgi import parser as tgi

__all__ = ["EXCUSED", "UNIONS", "Union", "main"]

Known = dict[str, bool]  # member -> is it in our tables?


class Union(NamedTuple):
    """One union, enum or model of an SDK, and how to hold it against our tables."""

    sdk: str  # as pip calls it
    name: str
    provider: str
    check: Callable[[], Known]

    def missing(self) -> list[str]:
        """The members that we neither know nor excuse."""
        excused = EXCUSED.get(self.name, {})
        return [m for m, known in self.check().items() if not known and m not in excused]


# Members without a row, and why that is right.
EXCUSED: dict[str, dict[str, str]] = {
    "FinishReason": {
        "FINISH_REASON_UNSPECIFIED": "says that no reason was given; told as stop, and noted",
    },
    "OutputItem, fields our rows read": {
        "image_generation_call.prompt|revised_prompt|action|size|quality|background|output_format":
            "this service says no arguments; another that speaks the same wire does",
        "memory_search_call.query|queries|arguments": "the SDK knows no arguments; told as {}",
    },
    "BetaResponseOutputItem, id sources": {
        "mcp_approval_request: conflated": "natural: mcp_approval_response refers to this very id",
    },
    "OutputItem, id sources": {
        "mcp_approval_request: conflated": "natural: mcp_approval_response refers to this very id",
    },
    "ResponseStatus": {
        "in_progress": "no end",
        "queued": "no end",
    },
    "ToolType": {
        "namespace": "a group of functions; its calls are function_call",
        "programmatic_tool_calling": "its calls are program and function_call",
        "capture_structured_outputs": "its item is structured_outputs",
        "computer": "its calls are computer_call",
        "computer_use_preview": "its calls are computer_call",
        "custom": "its calls are custom_tool_call",
        "memory_search_preview": "its calls are memory_search_call",
        "web_search_preview": "its calls are web_search_call",
        "a2a": "no item of its own in any SDK; a2a_preview_call is known",
        "browser_automation": "no item of its own in any SDK; browser_automation_preview_call is known",
        **dict.fromkeys(
            ("work_iq_preview", "fabric_iq_preview", "toolbox_search_preview", "web_iq_preview",
             "github_copilot_toolset_preview", "microsoft_copilot_toolset_preview"),
            "no item of its own in any SDK; if one comes, it is passed on whole and noted",
        ),
    },
}  # fmt: skip


# --- their side -----------------------------------------------------------------------------------


def of(module: str, name: str) -> Any:
    """A type that an SDK publishes."""
    found: Any = import_module(module)
    for step in name.split("."):
        found = getattr(found, step)
    return found


def members(annotation: Any) -> Iterator[Any]:
    """What an annotation may be: unions, lists and wrappers are taken apart."""
    if isinstance(annotation, type) and not typing.get_args(annotation):
        if annotation is not type(None):
            yield annotation
        return
    if hasattr(annotation, "__value__"):  # a type alias
        yield from members(annotation.__value__)
        return
    if isinstance(annotation, typing.ForwardRef | str) or annotation is Any:
        return
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Literal:
        return
    if origin is typing.Annotated:
        arguments = arguments[:1]
    if origin in (dict, Mapping):
        return
    for argument in arguments:
        yield from members(argument)


def words(annotation: Any) -> list[str]:
    """All literal texts in an annotation, or the values of an enum."""
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return [str(member.value) for member in annotation]
    if typing.get_origin(annotation) is typing.Literal:
        return [a for a in typing.get_args(annotation) if isinstance(a, str)]
    found = [w for a in typing.get_args(annotation) for w in words(a)]
    return list(dict.fromkeys(found))


def fields_of(model: Any) -> dict[str, Any]:
    """Field, as the wire spells it -> annotation, of a model of any SDK."""
    if hasattr(model, "model_fields"):
        fields = model.model_fields.items()
        return {f.alias or name: f.annotation for name, f in fields if f.exclude is not True}
    if hasattr(model, "members") and hasattr(model, "type_name"):  # a shape of botocore
        return dict(model.members)
    try:
        return typing.get_type_hints(model)
    except (NameError, TypeError, AttributeError):  # names that only a type checker can see
        return dict(getattr(model, "__annotations__", {}))


def tags(union: Any, field: str = "type") -> list[str]:
    """The wire's names of a union's members."""
    found = [word for model in members(union) for word in _tags_of(model, field)]
    return [word for word in dict.fromkeys(found) if word != "UNKNOWN"]  # an SDK's own stand-in


def _tags_of(model: Any, field: str) -> list[str]:
    return words(fields_of(model).get(field))


def below(annotation: Any) -> list[Any]:
    """The models that a field may hold."""
    if hasattr(annotation, "type_name"):
        inner = getattr(annotation, "member", annotation)  # of a list
        return [inner] if inner.type_name == "structure" else []
    return [m for m in members(annotation) if fields_of(m) and not _is_no_model(m)]


def _is_no_model(found: Any) -> bool:
    """Enums have annotations too, and some SDKs have a stand-in for what they do not know."""
    enum = isinstance(found, type) and issubclass(found, Enum)
    return enum or "is_unknown" in fields_of(found)


# --- our side -------------------------------------------------------------------------------------


def tag_of(struct: Any) -> str:
    """The wire's name of a payload type."""
    return str(struct.__struct_config__.tag)


def kinds(parser: Any) -> set[str]:
    """The wire's names of the payloads that a parser has a handler for."""
    return {tag_of(kind) for kind in parser.KINDS}


def structs(annotation: Any) -> list[type[msgspec.Struct]]:
    """The payload types that a field of ours may hold."""
    found = members(annotation)
    return [s for s in found if isinstance(s, type) and issubclass(s, msgspec.Struct)]


def items_of(parser: Any) -> set[str]:
    """The items of a Responses wire that are told or kept."""
    return {*parser.TOOLS, *responses.OPAQUE, "message", "output_message", "reasoning"}


DELTAS = {tag_of(s) for s in (anthropic.Text, anthropic.Json, *anthropic.DELTAS)}
BLOCKS = {*anthropic.CALLS, *anthropic.RESULTS, *anthropic.OPAQUE, "text", "thinking", "compaction"}


# --- one against the other ------------------------------------------------------------------------


def compared(theirs: Iterable[str], ours: Iterable[str]) -> Known:
    known = set(ours)
    return {member: member in known for member in theirs}


def walked(models: Iterable[Any], ours: Iterable[type[msgspec.Struct]]) -> Known:
    """Every field of their models, as deep as our types say which fields there are."""
    found: Known = {}
    for model in models:
        for struct in _fitting(model, list(ours)):
            _walk(model, struct, _name(model), found, ())
    return found


def _name(model: Any) -> str:
    tagged = [word for field in ("type", "event_type") for word in _tags_of(model, field)]
    return tagged[0] if len(tagged) == 1 else str(getattr(model, "name", "") or model.__name__)


def _fitting(model: Any, ours: list[type[msgspec.Struct]]) -> list[type[msgspec.Struct]]:
    """Our types for a model: the one with its tag, or those that have none."""
    tagged = {s.__struct_config__.tag: s for s in ours}
    names = [tag for field in ("type", "event_type") for tag in _tags_of(model, field)]
    return [tagged[n] for n in names if n in tagged] or [
        s for s in ours if s.__struct_config__.tag is None
    ]


def _walk(
    model: Any, struct: type[msgspec.Struct], at: str, found: Known, inside: tuple[Any, ...]
) -> None:
    fields = {f.encode_name: f.type for f in msgspec.structs.fields(struct)}
    for name, annotation in fields_of(model).items():
        if name == struct.__struct_config__.tag_field:
            continue
        path = f"{at}.{name}"
        found[path] = found.get(path, True) and name in fields
        for inner in below(annotation):
            if inner not in inside:
                for deeper in _fitting(inner, structs(fields.get(name))):
                    _walk(inner, deeper, path, found, (*inside, inner))


def claims(models: Iterable[Any], tools: Mapping[str, responses.Tool]) -> Known:
    """The fields that our rows read of an item: does the SDK's model have one of each group?"""
    found: Known = {}
    for model in models:
        there = fields_of(model)
        for type_ in _tags_of(model, "type"):
            if (tool := tools.get(type_)) is not None:
                for group in (tuple(f for f, _ in tool.ids), tool.said[1:], tool.output):
                    if group:
                        found[f"{type_}.{'|'.join(group)}"] = any(name in there for name in group)
    return found


def id_sources(models: Iterable[Any], tools: Mapping[str, responses.Tool]) -> Known:
    """Where the id of an item comes from by the SDK's model; does our row say the same?"""
    found: Known = {}
    for model in models:
        for type_ in _tags_of(model, "type"):
            if (tool := tools.get(type_)) is not None:
                source = _id_source(
                    model, "approval_request_id" if type_.endswith("_response") else "call_id"
                )
                found[f"{type_}: {source}"] = tool.item.id_source == source
    return found


def _id_source(model: Any, natural: str) -> str:
    there = fields_of(model)
    if natural in there:
        return "natural" if _is_required(model, natural) else "nullable"
    return "conflated" if "id" in there else "synthetic"


def _is_required(model: Any, field: str) -> bool:
    if type(None) in typing.get_args(fields_of(model)[field]):
        return False
    if hasattr(model, "model_fields"):
        return bool(model.model_fields[field].is_required())
    return field in model.__required_keys__


# --- the unions -----------------------------------------------------------------------------------


def tagged(sdk: str, module: str, name: str, provider: str, ours: Iterable[str]) -> Union:
    """A union whose members say their type."""
    return Union(sdk, name, provider, lambda: compared(tags(of(module, name)), ours))


def events_of(sdk: str, module: str, name: str, provider: str, parser: Any, field: str) -> Union:
    return Union(
        sdk, name, provider, lambda: compared(tags(of(module, name), field), kinds(parser))
    )


def event_fields(sdk: str, module: str, name: str, provider: str, parser: Any) -> Union:
    def check() -> Known:
        return walked(below(of(module, name)), list(parser.KINDS))

    return Union(sdk, f"{name}, fields", provider, check)


def literal(sdk: str, module: str, name: str, provider: str, ours: Iterable[str]) -> Union:
    return Union(sdk, name, provider, lambda: compared(words(of(module, name)), ours))


def reasons_in(
    sdk: str, module: str, name: str, field: str, provider: str, ours: Iterable[str]
) -> Union:
    """The texts that one field of a model may have."""

    def check() -> Known:
        return compared(words(fields_of(of(module, name))[field]), ours)

    return Union(sdk, f"{name}.{field}", provider, check)


def model(sdk: str, module: str, name: str, provider: str, struct: type[msgspec.Struct]) -> Union:
    return Union(sdk, f"{name}, fields", provider, lambda: walked([of(module, name)], [struct]))


def shape(name: str, check: Callable[[Any], Known]) -> Union:
    def load() -> Known:
        session = of("botocore.session", "get_session")()
        return check(session.get_service_model("bedrock-runtime").shape_for(name))

    return Union("botocore", name, "bedrock", load)


def _has_fields_of(struct: type[msgspec.Struct]) -> Callable[[Any], Known]:
    return lambda shape: compared(
        shape.members, (f.encode_name for f in msgspec.structs.fields(struct))
    )


def _classes(name: str, ours: Iterable[str]) -> Callable[[], Known]:
    """The classes of a union, by name."""
    return lambda: compared([m.__name__ for m in members(of("claude_agent_sdk.types", name))], ours)


def _hosted_tools() -> Known:
    """Every tool that an agent may be given: do we know the item of its calls?"""
    return {
        tool: f"{tool}_call" in foundry.FoundryParser.TOOLS
        for tool in words(of(_PROJECTS, "ToolType"))
    }


_RESPONSES, _BETA = "openai.types.responses", "openai.types.beta"
_FOUNDRY, _PROJECTS = "azure.ai.agentserver.responses.models", "azure.ai.projects.models"
_MESSAGES, _MESSAGES_BETA = "anthropic.types", "anthropic.types.beta"
_GENAI, _INTERACTIONS = "google.genai.types", "google.genai.interactions"
_CHUNK, _GROQ = "openai.types.chat.chat_completion_chunk", "groq.types.chat.chat_completion_chunk"
_MISTRAL = "mistralai.client.models"
_DASHSCOPE = "dashscope.api_entities.dashscope_response"
_P, _F = responses.ResponsesParser, foundry.FoundryParser
_OVER = {row.status for row in responses.ROWS if row.handler is _P._over and row.status}
_STATUS = {*interactions.InteractionsParser.REASONS, "cancelled", "failed",
           *(s for s in interactions.InteractionsParser.GOING_ON if s)}  # fmt: skip

UNIONS: tuple[Union, ...] = (
    # OpenAI Responses, and what Foundry makes of it
    events_of("openai", _RESPONSES, "ResponseStreamEvent", "openai_responses", _P, "type"),
    event_fields("openai", _RESPONSES, "ResponseStreamEvent", "openai_responses", _P),
    events_of("openai", _BETA, "BetaResponseStreamEvent", "openai_responses", _P, "type"),
    event_fields("openai", _BETA, "BetaResponseStreamEvent", "openai_responses", _P),
    events_of("openai", _RESPONSES, "ResponsesServerEvent", "openai_responses", _P, "type"),
    event_fields("openai", _RESPONSES, "ResponsesServerEvent", "openai_responses", _P),
    events_of("openai", _BETA, "BetaResponsesServerEvent", "openai_responses", _P, "type"),
    event_fields("openai", _BETA, "BetaResponsesServerEvent", "openai_responses", _P),
    *(
        tagged("openai", module, name, "openai_responses", items_of(_P))
        for module, name in (
            (_RESPONSES, "ResponseOutputItem"), (_RESPONSES, "ResponseItem"),
            (_RESPONSES, "ResponseInputItem"), (_BETA, "BetaResponseOutputItem"),
            (_BETA, "BetaResponseItem"), (_BETA, "BetaResponseInputItem"),
        )
    ),
    Union("openai", "ResponseOutputItem, fields our rows read", "openai_responses",
          lambda: claims(members(of(_BETA, "BetaResponseOutputItem")), _P.TOOLS)),
    Union("openai", "BetaResponseOutputItem, id sources", "openai_responses",
          lambda: id_sources(members(of(_BETA, "BetaResponseOutputItem")), _P.TOOLS)),
    reasons_in("openai", "openai.types.responses.response", "IncompleteDetails", "reason",
               "openai_responses", _P.REASONS),
    literal("openai", _RESPONSES, "ResponseStatus", "openai_responses", _OVER),
    literal("azure-ai-agentserver-responses", _FOUNDRY, "ResponseStreamEventType", "azure_foundry",
            kinds(_F)),
    event_fields("azure-ai-agentserver-responses", _FOUNDRY, "ResponseStreamEvent", "azure_foundry", _F),
    *(
        literal("azure-ai-agentserver-responses", _FOUNDRY, name, "azure_foundry", items_of(_F))
        for name in ("OutputItemType", "ItemType", "ItemFieldType")
    ),
    Union("azure-ai-agentserver-responses", "OutputItem, fields our rows read", "azure_foundry",
          lambda: claims(members(of(_FOUNDRY, "OutputItem")), _F.TOOLS)),
    Union("azure-ai-agentserver-responses", "OutputItem, id sources", "azure_foundry",
          lambda: id_sources(members(of(_FOUNDRY, "OutputItem")), _F.TOOLS)),
    Union("azure-ai-projects", "ToolType", "azure_foundry", _hosted_tools),
    # OpenAI Chat and one that imitates it
    model("openai", _CHUNK, "ChatCompletionChunk", "openai_chat", chat.FullChunk),
    reasons_in("openai", _CHUNK, "Choice", "finish_reason", "openai_chat", chat.ChatParser.REASONS),
    model("groq", _GROQ, "ChatCompletionChunk", "openai_chat", chat.FullChunk),
    reasons_in("groq", _GROQ, "Choice", "finish_reason", "openai_chat", chat.ChatParser.REASONS),
    # Anthropic
    *(
        union for module, beta in ((_MESSAGES, ""), (_MESSAGES_BETA, "Beta")) for union in (
            events_of("anthropic", module, f"{beta}RawMessageStreamEvent", "anthropic",
                      anthropic.AnthropicParser, "type"),
            event_fields("anthropic", module, f"{beta}RawMessageStreamEvent", "anthropic",
                         anthropic.AnthropicParser),
            tagged("anthropic", module, f"{beta}RawContentBlockDelta", "anthropic", DELTAS),
            tagged("anthropic", module, f"{beta}ContentBlock", "anthropic", BLOCKS),
            literal("anthropic", module, f"{beta}StopReason", "anthropic",
                    anthropic.AnthropicParser.REASONS),
        )
    ),
    # Claude Code
    Union("claude-agent-sdk", "Message", "claude_code", _classes("Message", agent_sdk.LINES)),
    Union("claude-agent-sdk", "ContentBlock", "claude_code", _classes("ContentBlock", agent_sdk.BLOCKS)),
    # Gemini
    model("google-genai", _GENAI, "GenerateContentResponse", "gemini", gemini.Chunk),
    model("google-genai", _GENAI, "Part", "gemini", gemini.Part),
    literal("google-genai", _GENAI, "FinishReason", "gemini", gemini.GeminiParser.REASONS),
    events_of("google-genai", _INTERACTIONS, "InteractionSSEEvent", "gemini_interactions",
              interactions.InteractionsParser, "event_type"),
    event_fields("google-genai", _INTERACTIONS, "InteractionSSEEvent", "gemini_interactions",
                 interactions.InteractionsParser),
    tagged("google-genai", _INTERACTIONS, "Step", "gemini_interactions", interactions.STARTS),
    Union("google-genai", "StepDelta.delta", "gemini_interactions",
          lambda: compared(tags(fields_of(of(_INTERACTIONS, "StepDelta"))["delta"]),
                           interactions.DELTAS)),
    reasons_in("google-genai", _INTERACTIONS, "InteractionStatusUpdate", "status",
               "gemini_interactions", _STATUS),
    # Mistral, Cohere, Ollama
    model("mistralai", _MISTRAL, "CompletionChunk", "mistral", mistral.Chunk),
    tagged("mistralai", _MISTRAL, "ContentChunk", "mistral", content.KINDS),
    reasons_in("mistralai", _MISTRAL, "CompletionResponseStreamChoice", "finish_reason", "mistral",
               mistral.MistralParser.REASONS),
    events_of("mistralai", _MISTRAL, "ConversationEventsData", "mistral_conversations",
              conversations.ConversationsParser, "type"),
    event_fields("mistralai", _MISTRAL, "ConversationEventsData", "mistral_conversations",
                 conversations.ConversationsParser),
    tagged("mistralai", _MISTRAL, "OutputContentChunks", "mistral_conversations",
           conversations.CHUNKS),
    literal("mistralai", _MISTRAL, "BuiltInConnectors", "mistral_conversations",
            conversations.FAMILIES),
    events_of("cohere", "cohere", "V2ChatStreamResponse", "cohere", cohere.CohereParser, "type"),
    event_fields("cohere", "cohere", "V2ChatStreamResponse", "cohere", cohere.CohereParser),
    literal("cohere", "cohere", "ChatFinishReason", "cohere", cohere.CohereParser.REASONS),
    model("ollama", "ollama", "ChatResponse", "ollama", ollama.Line),
    model("ollama", "ollama", "GenerateResponse", "ollama", ollama.Line),
    # DashScope
    model("dashscope", _DASHSCOPE, "GenerationResponse", "dashscope", dashscope.Answer),
    model("dashscope", _DASHSCOPE, "MultiModalConversationOutput", "dashscope", dashscope.Output),
    # TGI
    model("huggingface-hub", "huggingface_hub", "TextGenerationStreamOutput", "tgi", tgi.Step),
    literal("huggingface-hub", "huggingface_hub", "TextGenerationOutputFinishReason", "tgi",
            tgi.TgiParser.REASONS),
    # Bedrock
    *(
        shape(name, _has_fields_of(struct))
        for name, struct in (
            ("ConverseStreamOutput", bedrock.Frame),
            ("ContentBlockDelta", bedrock.Delta), ("ContentBlockStart", bedrock.Start),
            ("ContentBlockDeltaEvent", bedrock.BlockDelta), ("ContentBlockStartEvent", bedrock.BlockStart),
            ("ContentBlockStopEvent", bedrock.BlockStop), ("MessageStopEvent", bedrock.MessageStop),
            ("ConverseStreamMetadataEvent", bedrock.Metadata), ("ToolUseBlockStart", bedrock.ToolUse),
            ("ToolUseBlockDelta", bedrock.ToolInput), ("ToolResultBlockStart", bedrock.ToolResult),
            ("ReasoningContentBlockDelta", bedrock.Reasoning),
        )
    ),
    shape("ResponseStream", _has_fields_of(bedrock.Frame)),
    shape("StopReason", lambda s: compared(s.enum, bedrock.BedrockParser.REASONS)),
)  # fmt: skip


# --- the command ----------------------------------------------------------------------------------


def installed(sdk: str) -> str | None:
    """The version of an SDK, if it is there."""
    try:
        return version(sdk)
    except PackageNotFoundError:
        return None


def main(argv: list[str] | None = None) -> int:
    """0: every union of every SDK that is here is complete; 1: one is not; 2: no SDK is here."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.completeness", description=(__doc__ or "").split("\n")[0]
    )
    parser.parse_args(argv)
    absent: dict[str, None] = {}
    checked = wrong = 0
    for union in UNIONS:
        found = installed(union.sdk)
        if found is None:
            absent[union.sdk] = None
            continue
        checked += 1
        wrong += not _print(union, found)
    for sdk in absent:
        print(f"left out: {sdk} is not installed")
    walked = _walk_all() if checked else 2
    print(f"{checked - wrong} of {checked} unions complete")
    return max(int(wrong > 0), walked)


def _walk_all() -> int:
    """Every union that there is: read, or left out for a reason?"""
    from tools import unions  # which builds on this file

    return unions.main()


def _print(union: Union, found: str) -> bool:
    total, missing = len(union.check()), union.missing()
    where = f"{union.provider}: {union.sdk} {found} {union.name}"
    print(f"{total - len(missing)} of {total}".rjust(12), where)
    for member, why in EXCUSED.get(union.name, {}).items():
        print(" " * 12, f"  {member}: {why}")
    for member in missing:
        print(" " * 12, f"  not known: {member}")
    return not missing


if __name__ == "__main__":
    sys.exit(main())
