"""Every union that the SDKs publish, found by walking them: SDKs in; for each union a verdict out.

    python -m tools.unions            one line for each area; exit 1 if a union is neither read nor left out

A union is a public alias of models that say by a literal field which of them they are (``type``,
``event_type``, ``event``); of botocore, the event streams of the services that serve models; of
google-genai, whose messages have no such field, the messages of its sockets.

It is *read* if every member is known to a parser of ours, or it stands in ``LEFT`` with the reason why
not. A union, or a member of one that was read, which is new in an SDK is neither: add it to the parser
of its wire (``KINDS`` and the tables beside it), or add a row to ``LEFT``. Rows that match nothing any
more are told, too.
"""

from __future__ import annotations

import pkgutil
import sys
import types
import typing
import warnings
from collections.abc import Iterator
from fnmatch import fnmatchcase
from importlib import import_module
from types import ModuleType
from typing import Any, NamedTuple

from streamnorm.providers.mistral_conversations import messages as entries
from tools.completeness import (
    BLOCKS,
    DELTAS,
    anthropic,
    bedrock,
    cohere,
    content,
    conversations,
    fields_of,
    foundry,
    installed,
    interactions,
    items_of,
    kinds,
    members,
    responses,
    words,
)

__all__ = ["LEFT", "ROOTS", "Found", "found", "main", "stale", "verdict"]

_AZURE = "azure-ai-agentserver-responses"
TAGS = ("type", "event_type", "event")

# Where an SDK has its types.
ROOTS: dict[str, tuple[str, ...]] = {
    "openai": ("openai.types",),
    "anthropic": ("anthropic.types",),
    "mistralai": ("mistralai.client.models",),
    "groq": ("groq.types",),
    "cohere": ("cohere.types", "cohere.v2.types"),
    "google-genai": ("google.genai.types", "google.genai.interactions"),
    _AZURE: ("azure.ai.agentserver.responses.models",),
    "ollama": ("ollama._types",),
    "huggingface-hub": ("huggingface_hub.inference._generated.types",),
    "botocore": ("bedrock-runtime", "bedrock-agent-runtime", "bedrock-agentcore", "sagemaker-runtime"),
}  # fmt: skip

_P, _F = responses.ResponsesParser, foundry.FoundryParser
_RESPONSES = kinds(_P) | items_of(_P)
# What the parsers of an SDK's wires know, by the wire's own names.
KNOWN: dict[str, set[str]] = {
    "openai": _RESPONSES,
    "anthropic": kinds(anthropic.AnthropicParser) | DELTAS | BLOCKS,
    "mistralai": {
        *kinds(conversations.ConversationsParser), *conversations.CHUNKS, *content.KINDS,
        *entries.TOLD, entries.RESULT, entries.INPUT, *_RESPONSES,
    },
    "groq": set(),
    "cohere": kinds(cohere.CohereParser) | {"text", "thinking"},
    "google-genai": {
        *kinds(interactions.InteractionsParser), *interactions.STARTS, *interactions.DELTAS,
    },
    _AZURE: kinds(_F) | items_of(_F),
    "ollama": set(),
    "huggingface-hub": set(),
    "botocore": set(bedrock.Frame.__struct_encode_fields__),
}  # fmt: skip

_DECLARED = "said by the client: what a request declares or chooses"
_INSIDE = "a field of an item or a block, which is kept whole"
_PARTS = "parts of a message: told by the events of its text, kept in what goes back"
_VOICE = "Realtime: voice over a socket; later"
_SESSIONS = "sessions of agents that run at the provider; later"
_NO_MODEL = "administration, evaluation or search: no model speaks"
_SPEECH = "pictures, speech and transcripts by endpoints of their own"
_OLD = "an interface that its provider has ended or replaced"

# Unions that are not read, and why. A pattern is SDK, colon, module.Name; the first that fits counts.
LEFT: dict[str, str] = {
    # OpenAI
    "openai:openai.types.realtime*": _VOICE,
    "openai:openai.types.beta.realtime*": _VOICE,
    "openai:openai.types.live*": _VOICE,
    "openai:openai.types.beta.Agent*": _SESSIONS,
    "openai:openai.types.beta.agent*": _SESSIONS,
    "openai:openai.types.beta.PersistedAgentTool": _SESSIONS,
    "openai:openai.types.beta.PersistedMcpTransport": _SESSIONS,
    "openai:openai.types.beta.HostedEnvironmentFile": _SESSIONS,
    "openai:openai.types.beta.HostedSkill": _SESSIONS,
    "openai:openai.types.beta.InputContent": _SESSIONS,
    "openai:openai.types.beta.McpTransport": _SESSIONS,
    "openai:openai.types.beta.Environment": _SESSIONS,
    "openai:openai.types.beta.TextFormat": _SESSIONS,
    "openai:openai.types.beta.WebSearchAction": _SESSIONS,
    "openai:openai.types.beta.chatkit*": _SESSIONS,
    "openai:openai.types.beta.Assistant*": _OLD,
    "openai:openai.types.beta.threads*": _OLD,
    "openai:*.ResponsesServerEvent": "over a socket: a session takes it apart into responses",
    "openai:*.BetaResponsesServerEvent": "over a socket: a session takes it apart into responses",
    "openai:*sesClientEvent": "what a client says over a socket",
    "openai:*responses_client_event.*": "what a client says over a socket",
    "openai:*ResponseSteer*": "what a client says while a response is being made",
    "openai:*response_steer_input.*": "what a client says while a response is being made",
    "openai:openai.types.admin*": _NO_MODEL,
    "openai:openai.types.eval*": _NO_MODEL,
    "openai:openai.types.graders*": _NO_MODEL,
    "openai:openai.types.fine_tuning*": _NO_MODEL,
    "openai:openai.types.webhooks*": "events of finished work, posted to a server",
    "openai:openai.types.content_provenance_check*": _NO_MODEL,
    "openai:openai.types.decision*": _NO_MODEL,
    "openai:openai.types.Decision*": _NO_MODEL,
    "openai:openai.types.FileChunkingStrategy": _NO_MODEL,
    "openai:openai.types.audio*": _SPEECH,
    "openai:openai.types.ImageEditStreamEvent": _SPEECH,
    "openai:openai.types.ImageGenStreamEvent": _SPEECH,
    "openai:openai.types.responses.ParsedResponseOutputItem": "what the SDK makes of the wire's items",
    "openai:openai.types.chat.ChatCompletionMessageToolCallUnion": "of an answer that is no stream",
    "openai:openai.types.chat*.Moderation*": "how a moderator judged; it says nothing of the answer",
    "openai:*.Moderation*": "how a moderator judged; it says nothing of the answer",
    "openai:*PromptCacheDiagnostics": "about the cache of prompts, beside the usage",
    "openai:openai.types.chat.chat_completion_store_message.*": _PARTS,
    "openai:openai.types.conversations.message.Content": _PARTS,
    "openai:*.ResponseInputContent": _PARTS,
    "openai:*.BetaResponseInputContent": _PARTS,
    "openai:*FunctionCallOutputItem": _PARTS,
    "openai:*.ParsedContent": _PARTS,
    "openai:*_output_message.Content": _PARTS,
    "openai:*_content_part_*_event.Part": _PARTS,
    "openai:*.OutputOutputContentList": _PARTS,
    "openai:*AgentMessageContent": _PARTS,
    "openai:*Annotation": "citations, told as they came",
    **dict.fromkeys(
        ("openai:*.Tool", "openai:*Tool", "openai:*ToolChoice", "openai:*Format*",
         "openai:*TextConfig", "openai:*NetworkPolicy", "openai:*.Skill", "openai:*.Variables"),
        _DECLARED,
    ),
    **dict.fromkeys(
        ("openai:*Caller", "openai:*Operation", "openai:*Outcome", "openai:*Environment",
         "openai:*Action", "openai:*ToolCallError", "openai:*code_interpreter_tool_call.Output"),
        _INSIDE,
    ),
    # Anthropic
    "anthropic:anthropic.types.beta.sessions*": _SESSIONS,
    "anthropic:anthropic.types.beta.BetaManagedAgents*": _SESSIONS,
    "anthropic:anthropic.types.beta.beta_managed_agents*": _SESSIONS,
    "anthropic:anthropic.types.beta.vaults*": _SESSIONS,
    "anthropic:anthropic.types.beta.memory_stores*": _SESSIONS,
    "anthropic:anthropic.types.beta.BetaDream*": _SESSIONS,
    "anthropic:anthropic.types.beta.beta_environment*": _SESSIONS,
    "anthropic:anthropic.types.beta.beta_cloud_config*": _SESSIONS,
    "anthropic:anthropic.types.beta.organization*": _NO_MODEL,
    "anthropic:anthropic.types.organization*": _NO_MODEL,
    "anthropic:anthropic.types*.messages*": "answers of a batch, which are no streams",
    "anthropic:*WebhookEventData": "events of finished work, posted to a server",
    "anthropic:*.MessageStreamEvent": "events that the SDK makes of the wire's",
    "anthropic:*.UserProfileEnforcementAction": _NO_MODEL,
    "anthropic:anthropic.types*Error*": "the types of an error: its own word is told as the code",
    "anthropic:*CacheMissReason": "about the cache of prompts, beside the usage",
    "anthropic:*iterations_usage.*": "kept whole in the raw usage",
    "anthropic:*fallback_credit_usage.*": "kept whole in the raw usage",
    "anthropic:*context_management_response.*": _INSIDE,
    "anthropic:*Citation": "citations, told as they came",
    **dict.fromkeys(
        ("anthropic:*Caller", "anthropic:*BlockContent", "anthropic:*_result_block.Content",
         "anthropic:*.Source", "anthropic:*ClickTarget", "anthropic:*_compaction_block.ToolChange",
         "anthropic:*_addition_block.Tool", "anthropic:*_removal_block.Tool"),
        _INSIDE,
    ),
    **dict.fromkeys(
        ("anthropic:*BetaResponseToolUnion",
         "anthropic:*BetaInputTransformation", "anthropic:*BetaOutputBehavior",
         "anthropic:*_web_fetch_url_sources.*"),
        _DECLARED,
    ),
    # Mistral
    **dict.fromkeys(
        ("mistralai:*.VoiceAgent*", "mistralai:*.Audio*", "mistralai:*.Destination"), _VOICE,
    ),
    **dict.fromkeys(
        ("mistralai:*.SpeechV1*", "mistralai:*.TranscriptionStreamEventsData"), _SPEECH,
    ),
    **dict.fromkeys(
        ("mistralai:*.ListWorkflowEventResponseEvent", "mistralai:*.StreamEventSsePayloadData",
         "mistralai:*.Payload"),
        "events of workflows: no model speaks",
    ),
    **dict.fromkeys(
        ("mistralai:*Match", "mistralai:*Filter", "mistralai:*Retriever", "mistralai:*Judge*",
         "mistralai:*.ChunkFields", "mistralai:*.DocumentFields", "mistralai:*.Embedding",
         "mistralai:*.Evalua*", "mistralai:*.BackendSpec", "mistralai:*.PipelineConfigSampling",
         "mistralai:*.ModelListData", "mistralai:*.ResponseRetrieveModel*", "mistralai:*.Block",
         "mistralai:*.DocumentUnion", "mistralai:*.OpenAPISpecSource"),
        _NO_MODEL,
    ),
    "mistralai:*.ConnectorToolCallResponseContent": "of a connector that is called by itself",
    **dict.fromkeys(
        ("mistralai:*ContentPart*Part", "mistralai:*.ResponsesOutputMessageContent",
         "mistralai:*.ResponsesMessageContent", "mistralai:*.ResponsesEasyInputMessageContent*",
         "mistralai:*.ResponsesFunctionCallOutputOutput*"),
        _PARTS,
    ),
    "mistralai:*.Annotation": "citations, told as they came",
    "mistralai:*Caller": _INSIDE,
    "mistralai:*Tool": _DECLARED,
    "mistralai:*Format": _DECLARED,
    "mistralai:*Authorization": _DECLARED,
    # Cohere
    "cohere:*StreamedChatResponse": _OLD,
    "cohere:*GenerateStreamedResponse": _OLD,
    "cohere:*ResponseFormat*": _DECLARED,
    "cohere:*UserMessageV2Content*": _DECLARED,
    "cohere:*ToolMessageV2Content*": _DECLARED,
    "cohere:*ToolContent": _DECLARED,
    "cohere:*.Content": _DECLARED,
    "cohere:*.Source": "citations, told as they came",
    "cohere:*Embed*": _NO_MODEL,
    "cohere:*Parse*": _NO_MODEL,
    # Google
    "google-genai:google.genai.types.Live*": "Gemini Live: voice over a socket; later",
    "google-genai:*Annotation": "citations, told as they came",
    "google-genai:*ResultStepResult": _INSIDE,
    "google-genai:*Subcontent": _INSIDE,
    "google-genai:*.ThoughtSummaryContent": _PARTS,
    **dict.fromkeys(
        ("google-genai:*ResponseFormat", "google-genai:*AgentConfig", "google-genai:*.Tool",
         "google-genai:*Mode"),
        _DECLARED,
    ),
    # Azure Foundry
    **dict.fromkeys(
        (f"{_AZURE}:*.Tool", f"{_AZURE}:*.OpenApiAuthDetails", f"{_AZURE}:*Format",
         f"{_AZURE}:*FormatConfiguration",
         f"{_AZURE}:*.ContainerSkill", f"{_AZURE}:*ToolParamEnvironment"),
        _DECLARED,
    ),
    **dict.fromkeys(
        (f"{_AZURE}:*Action", f"{_AZURE}:*Operation", f"{_AZURE}:*Environment", f"{_AZURE}:*Outcome",
         f"{_AZURE}:*Caller",
         f"{_AZURE}:*MCPError"),
        _INSIDE,
    ),
    f"{_AZURE}:*Content": _PARTS,
    f"{_AZURE}:*.FunctionAndCustomToolCallOutput": _PARTS,
    f"{_AZURE}:*Annotation": "citations, told as they came",
    f"{_AZURE}:*.ModerationEntry": "how a moderator judged; it says nothing of the answer",
    # Ollama, Hugging Face
    "ollama:*.SystemOne*": "questions with answers to choose from: no stream",
    "huggingface-hub:*GrammarType": _DECLARED,
    # AWS
    "botocore:sagemaker-runtime.ResponseStream": "an envelope: the bytes inside are another wire's",
    "botocore:bedrock-runtime.InvokeModelWithBidirectionalStreamOutput": _VOICE,
    "botocore:bedrock-agent-runtime.*": _SESSIONS,
    "botocore:bedrock-agentcore.InvokeHarnessStreamOutput": "Converse's; its hooks are passed on whole",
    "botocore:bedrock-agentcore.*": _SESSIONS,
}  # fmt: skip


class Found(NamedTuple):
    """A union of an SDK: where it is, and what its members are called on the wire."""

    sdk: str
    where: str  # module.Name
    tags: frozenset[str]

    @property
    def unknown(self) -> list[str]:
        """The members that no parser of that SDK's wires knows."""
        return sorted(self.tags - KNOWN[self.sdk])


# --- walking --------------------------------------------------------------------------------------


def found(sdk: str) -> list[Found]:
    """Every union of an SDK, each once, by the shortest way to it."""
    walk = _streams if sdk == "botocore" else _aliases
    unions: dict[tuple[str, frozenset[str]], str] = {}
    for root in ROOTS[sdk]:
        for where, tags in walk(root):
            key = where.rpartition(".")[2], tags
            held = unions.get(key, where)
            unions[key] = min(held, where, key=lambda path: (len(path), path))
    return sorted(Found(sdk, where, tags) for (_, tags), where in unions.items())


def _aliases(root: str) -> Iterator[tuple[str, frozenset[str]]]:
    for module in _modules(root):
        for name in sorted({*vars(module), *getattr(module, "__all__", ())}):  # some load them late
            if name.startswith("_") or name.endswith(("Param", "Params", "TypedDict")):
                continue  # of requests
            value = getattr(module, name, None)
            if _is_union(value) and len(tags := _tags(value)) > 1:
                yield f"{module.__name__}.{name}", tags
            elif name.endswith("ServerMessage") and isinstance(value, type):
                yield f"{module.__name__}.{name}", frozenset(fields_of(value))


def _modules(root: str) -> Iterator[ModuleType]:
    package = import_module(root)
    yield package
    for found in pkgutil.walk_packages(getattr(package, "__path__", ()), f"{root}."):
        if not found.name.endswith(("_param", "_params")):
            yield import_module(found.name)


def _is_union(value: Any) -> bool:
    value = getattr(value, "__value__", value)
    if typing.get_origin(value) is typing.Annotated:
        value = typing.get_args(value)[0]
    return typing.get_origin(value) in (typing.Union, types.UnionType)


def _tags(union: Any) -> frozenset[str]:
    """What the models of a union are called by the one field that tells them apart."""
    models = [m for m in members(union) if isinstance(m, type)]
    for field in TAGS:
        said = [words(fields_of(model).get(field)) for model in models]
        if sum(len(told) == 1 for told in said) > 1:  # a setting may have several words
            return frozenset(word for told in said for word in told) - {"UNKNOWN"}
    return frozenset()


def _streams(service: str) -> Iterator[tuple[str, frozenset[str]]]:
    model = import_module("botocore.session").get_session().get_service_model(service)
    for name in model.operation_names:
        if (stream := model.operation_model(name).get_event_stream_output()) is not None:
            yield f"{service}.{stream.name}", frozenset(stream.members)


# --- judging --------------------------------------------------------------------------------------


def verdict(union: Found) -> str | None:
    """``read``, the reason why not, or None: it is neither."""
    if not union.unknown:
        return "read"
    return next((why for row, why in LEFT.items() if _fits(row, union)), None)


def _fits(row: str, union: Found) -> bool:
    return fnmatchcase(f"{union.sdk}:{union.where}", row)


def stale(unions: list[Found]) -> list[str]:
    """Rows of ``LEFT`` about the SDKs of these unions that no union fits any more."""
    sdks = {union.sdk for union in unions}
    rows = [row for row in LEFT if row.partition(":")[0] in sdks]
    return [row for row in rows if not any(_fits(row, union) for union in unions)]


def sentence(union: Found) -> str:
    """What is to be done about a union that is neither read nor left out."""
    known = sorted(union.tags & KNOWN[union.sdk])
    return (
        f"{union.sdk}: {union.where} has members that no parser knows: {', '.join(union.unknown)}"
        f"{f' (and {len(known)} that one does)' if known else ''}. Read them (KINDS, or the tables "
        "beside it, in the parser of that wire), or give the reason why not in LEFT of tools/unions.py."
    )


def main() -> int:
    """0: all are read or left out; 1: one is neither, or a row is stale; 2: no SDK is here."""
    warnings.simplefilter("ignore")
    wrong: list[str] = []
    every: list[Found] = []
    for sdk in ROOTS:
        if installed(sdk) is None:
            print(f"left out: {sdk} is not installed")
            continue
        unions = found(sdk)
        every += unions
        judged = [verdict(union) for union in unions]
        read = judged.count("read")
        print(
            f"{sdk} {installed(sdk)}: {len(unions)} unions, {read} read, {len(unions) - read} not"
        )
        for why in dict.fromkeys(why for why in judged if why not in (None, "read")):
            print(f"    {judged.count(why):3} left out: {why}")
        wrong += [sentence(union) for union in unions if verdict(union) is None]
    wrong += [f"LEFT has a row that fits nothing: {row}" for row in stale(every)]
    for line in wrong:
        print(line)
    return 2 if not every else int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
