"""Addresses and modules: the path tells the wire, the host tells whose server and whose key."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamnorm import normalize
from streamnorm.events import Failed
from streamnorm.providers import PROVIDERS
from streamnorm.providers.detect import by_address, by_module

VERTEX = "https://europe-west4-aiplatform.googleapis.com/v1/projects/p/locations/l/publishers"
GOOGLE = "https://generativelanguage.googleapis.com/v1beta"
GOOGLE_KEYS = ("GEMINI_API_KEY", "GOOGLE_API_KEY")
AZURE = "https://x.openai.azure.com/openai"
FOUNDRY = "https://x.services.ai.azure.com"
BEDROCK = "https://bedrock-runtime.eu-west-1.amazonaws.com"

# address, whose wire it is, whose server it is
ADDRESSES = [
    # at home, the wire that one expects
    ("https://api.anthropic.com/v1/messages?beta=true", "anthropic", "anthropic"),
    ("https://api.openai.com/v1/responses", "openai_responses", "openai_responses"),
    ("https://api.openai.com/v1/responses/resp_0123?stream=true", "openai_responses", "openai_responses"),
    ("https://api.openai.com/v1/chat/completions", "openai_chat", "openai_chat"),
    ("https://eu.api.openai.com/v1/chat/completions/", "openai_chat", "openai_chat"),
    (f"{GOOGLE}/models/gemini-3:streamGenerateContent?alt=sse", "gemini", "gemini"),
    (f"{GOOGLE}/models/gemini-3%3AstreamGenerateContent", "gemini", "gemini"),
    (f"{GOOGLE}/interactions", "gemini_interactions", "gemini_interactions"),
    (f"{GOOGLE}/interactions/v1_abc?stream=true", "gemini_interactions", "gemini_interactions"),
    ("https://api.mistral.ai/v1/chat/completions", "mistral", "mistral"),
    ("https://codestral.mistral.ai/v1/fim/completions", "mistral", "mistral"),
    ("https://api.mistral.ai/v1/agents/completions", "mistral", "mistral"),
    ("https://api.mistral.ai/v1/conversations", "mistral_conversations", "mistral_conversations"),
    ("https://api.mistral.ai/v1/conversations/conv_1#stream", "mistral_conversations",
     "mistral_conversations"),
    ("https://api.mistral.ai/v1/conversations/conv_1/restart", "mistral_conversations",
     "mistral_conversations"),
    ("https://dashscope.aliyuncs.com/api/v1/services/aigc/text-generation/generation", "dashscope",
     "dashscope"),
    ("https://dashscope-intl.aliyuncs.com/compatible-mode/v1/chat/completions", "openai_chat",
     "dashscope"),
    ("https://api.cohere.com/v2/chat", "cohere", "cohere"),
    ("https://stg.api.cohere.ai/v2/chat", "cohere", "cohere"),
    ("http://127.0.0.1:11434/api/chat", "ollama", "ollama"),
    ("http://localhost:11434/api/generate", "ollama", "ollama"),
    ("http://[::1]:11434/api/chat", "ollama", "ollama"),
    ("https://ollama.com/api/chat", "ollama", "ollama"),
    (f"{BEDROCK}/model/anthropic.claude-v2%3A1/converse-stream", "bedrock", "bedrock"),
    ("https://vpce-1.bedrock-runtime.us-east-1.vpce.amazonaws.com/model/m/converse-stream", "bedrock", "bedrock"),
    # at home, the wire of somebody else
    ("https://api.anthropic.com/v1/chat/completions", "openai_chat", "anthropic"),
    ("https://api.cohere.com/compatibility/v1/chat/completions", "openai_chat", "cohere"),
    ("https://api.cohere.ai/compatibility/v1/chat/completions", "openai_chat", "cohere"),
    (f"{GOOGLE}/openai/chat/completions", "openai_chat", "gemini"),
    ("https://api.mistral.ai/v1/responses", "openai_responses", "mistral"),
    ("http://127.0.0.1:11434/v1/chat/completions", "openai_chat", "ollama"),
    ("http://localhost:11434/v1/responses", "openai_responses", "ollama"),
    ("http://localhost:11434/v1/messages", "anthropic", "ollama"),
    (f"{BEDROCK}/openai/v1/chat/completions", "openai_chat", "bedrock"),
    ("https://bedrock-mantle.us-east-1.api.aws/v1/responses", "openai_responses", "bedrock"),
    # Azure speaks several wires under one name; Cohere's is not one of them
    (f"{AZURE}/deployments/gpt-5/chat/completions?api-version=2025-04-01", "azure_foundry", "azure_foundry"),
    (f"{AZURE}/v1/responses", "azure_foundry", "azure_foundry"),
    (f"{AZURE}/responses?api-version=preview", "azure_foundry", "azure_foundry"),
    (f"{FOUNDRY}/openai/v1/responses/resp_1?stream=true", "azure_foundry", "azure_foundry"),
    (f"{FOUNDRY}/models/chat/completions", "azure_foundry", "azure_foundry"),
    (f"{FOUNDRY}/anthropic/v1/messages", "azure_foundry", "azure_foundry"),
    (f"{FOUNDRY}/api/projects/p/openai/responses", "azure_foundry", "azure_foundry"),
    ("https://x.eastus.models.ai.azure.com/v2/chat", "cohere", "azure_foundry"),
    # anywhere
    ("https://openrouter.ai/api/v1/chat/completions", "openai_chat", None),
    ("https://openrouter.ai/api/v1/responses", "openai_responses", None),
    ("https://api.groq.com/openai/v1/chat/completions", "openai_chat", None),
    ("https://api.deepseek.com/chat/completions", "openai_chat", None),
    ("https://api.deepseek.com/anthropic/v1/messages", "anthropic", None),
    ("https://api.githubcopilot.com/responses", "openai_responses", None),
    ("https://chatgpt.com/backend-api/codex/responses", "openai_responses", None),
    ("http://10.0.0.7:8000/v1/messages", "anthropic", None),
    ("http://gpu-box:11434/api/chat", "ollama", None),
    ("http://gpu-box:11434/v1/chat/completions", "openai_chat", None),
    ("http://llm.internal/v2/chat", "cohere", None),
    ("https://gateway.example.com/model/m/converse-stream", "bedrock", None),
    ("https://cloudcode-pa.googleapis.com/v1internal:streamGenerateContent?alt=sse", "gemini", None),
    (f"{VERTEX}/google/models/gemini-3-pro:streamGenerateContent", "gemini", None),
    (f"{VERTEX}/anthropic/models/claude-opus-4-5:streamRawPredict", "anthropic", None),
    (f"{VERTEX}/mistralai/models/mistral-small-2503:streamRawPredict", "mistral", None),
    ("https://aiplatform.googleapis.com/v1/projects/p/endpoints/openapi/chat/completions", "openai_chat", None),
    # a path that says nothing: the server is known, its wire is not
    ("https://api.anthropic.com/v2/anything", None, "anthropic"),
    ("https://API.Anthropic.COM./v2/anything", None, "anthropic"),
    ("https://api.anthropic.com/v1/sessions/sesn_01/events/stream?beta=true", None, "anthropic"),
    ("https://api.mistral.ai/v1/audio/transcriptions", None, "mistral"),
    ("https://api.cohere.com/v1/chat", None, "cohere"),
    (f"{AZURE}/threads/t/runs", None, "azure_foundry"),
    (f"{VERTEX}/meta/models/llama-4:streamRawPredict", None, None),
    ("https://api.openai.com/v1/embeddings", None, "openai_responses"),  # two wires
    # nobody
    ("https://api.openai.com.example.com/v1", None, None),
    ("https://api.openai.com@example.com/v1", None, None),
    ("https://example.com/api.openai.com", None, None),
    ("https://notazure.com.example/ask", None, None),
    ("https://vm-1.westeurope.cloudapp.azure.com/ask", None, None),
    ("https://ec2-1-2-3-4.compute.amazonaws.com/ask", None, None),
    ("https://example.com/v1/threads/t/messages", None, None),
    ("https://example.com/v1/messages/batches", None, None),
    ("http://[", None, None),
    ("https://example.com:port/v1/messages", None, None),
    ("/v1/messages", "anthropic", None),
    ("", None, None),
    (None, None, None),
]  # fmt: skip


@pytest.mark.parametrize(("url", "wire", "home"), ADDRESSES)
def test_an_address_tells_the_wire_and_whose_server_it_is(url, wire, home):
    told = by_address(url)
    assert (told.name, told.home.name if told.home else None) == (wire, home)
    assert told.at_home == (wire is not None and wire == home)


@pytest.mark.parametrize(
    ("url", "variables", "header"),
    [
        ("https://api.anthropic.com/v1/messages", ("ANTHROPIC_API_KEY",), "x-api-key: "),
        ("https://api.anthropic.com/v1/chat/completions", ("ANTHROPIC_API_KEY",), "authorization: Bearer "),
        ("https://api.cohere.com/v2/chat", ("CO_API_KEY", "COHERE_API_KEY"), "authorization: Bearer "),
        (f"{GOOGLE}/interactions", GOOGLE_KEYS, "x-goog-api-key: "),
        (f"{GOOGLE}/openai/chat/completions", GOOGLE_KEYS, "authorization: Bearer "),
        ("https://api.openai.com/v1/embeddings", ("OPENAI_API_KEY",), "authorization: Bearer "),
        (f"{AZURE}/v1/responses", ("AZURE_OPENAI_API_KEY", "AZURE_API_KEY"), "api-key: "),
        (f"{BEDROCK}/openai/v1/chat/completions", ("AWS_BEARER_TOKEN_BEDROCK",), "authorization: Bearer "),
        ("http://127.0.0.1:11434/api/chat", ("OLLAMA_API_KEY",), "authorization: Bearer "),
    ],
)  # fmt: skip
def test_a_key_is_that_of_the_server_sent_as_the_wire_wants_it(url, variables, header):
    key = by_address(url).key
    assert key is not None
    assert (key.variables, f"{key.header}: {key.prefix}") == (variables, header)


@pytest.mark.parametrize(
    "url",
    [
        "https://openrouter.ai/api/v1/chat/completions",  # a known wire, nobody's own server
        "https://vm-1.westeurope.cloudapp.azure.com/openai/v1/responses",
        "https://bucket.s3.amazonaws.com/model/m/converse-stream",
        "http://gpu-box:11434/api/chat",
        "http://api.anthropic.com/v1/messages",  # anybody on the way could read it
        "https://api.anthropic.com.example.com/v1/messages",
    ],
)
def test_nobody_else_sees_a_key(url):
    assert by_address(url).key is None


@pytest.mark.parametrize("name", [name for name, row in PROVIDERS.items() if row.base])
def test_the_address_of_a_provider_is_its_own(name):
    row = PROVIDERS[name]
    told = by_address(row.address("some-model"))
    assert (told.name, told.home) == (name, row)
    assert told.key == row.key


def test_a_model_is_a_part_of_the_path_and_no_path_of_its_own():
    address = PROVIDERS["gemini"].address("../files?x=1")
    assert address is not None
    assert "/models/..%2Ffiles%3Fx%3D1:streamGenerateContent?alt=sse" in address
    assert PROVIDERS["gemini"].address() is None
    assert PROVIDERS["bedrock"].address("m") is None  # it depends on the region


@pytest.mark.parametrize(
    ("module", "provider"),
    [
        ("openai.lib.streaming.chat._completions", "openai_chat"),
        ("openai.types.chat.chat_completion_chunk", "openai_chat"),
        ("openai.types.responses.response_created_event", "openai_responses"),
        ("openai._streaming", None),
        ("anthropic", "anthropic"),
        ("anthropic.types", "anthropic"),
        ("anthropically", None),
        ("google.genai.types", "gemini"),
        ("google.genai._interactions.types", "gemini_interactions"),
        ("google.cloud.storage", None),
        ("mistralai.models", "mistral"),
        ("mistralai.client.models.conversationevents", "mistral_conversations"),
        ("cohere.v2", "cohere"),
        ("ollama._types", "ollama"),
        ("botocore.eventstream", "bedrock"),
        ("builtins", None),
        ("", None),
    ],
)
def test_a_module_tells_whose_sdk_it_is(module, provider):
    row = by_module(module)
    assert (row.name if row else None) == provider


@given(
    st.text(max_size=60) | st.from_regex(r"https?://[\w.@\[\]:%*-]{0,30}(/[\w:.%*-]{0,20}){0,4}")
)
def test_whatever_is_no_address_tells_nothing_and_raises_nothing(url):
    told = by_address(url)
    assert told.name is None or told.name in PROVIDERS
    assert told.key is None or told.home is not None


@pytest.mark.parametrize("host", ["api.anthropic.com", "x.openai.azure.com", "api.cohere.com"])
@pytest.mark.parametrize(
    "url",
    [
        "https://evil.example/{}", "https://evil.example?{}", "https://evil.example#{}",
        "https://evil.example\\{}", "https://evil.example\\.{}", "https://evil.example%40{}",
        "https://evil.example%2F.{}", "https://{}.evil.example/v1/messages",
        "https://{}@evil.example/v1/messages", "https://{}:x@evil.example", "https://evil{}",
        "//{}", "ftp://{}/v1/messages",
    ],
)  # fmt: skip
def test_a_name_that_only_stands_in_an_address_gets_no_key(url, host):
    if url == "https://evil{}" and host != "api.anthropic.com":
        url = "https://evil.{}.example"  # below those two, any name is their own
    assert by_address(url.format(host)).key is None


@pytest.mark.parts
def test_a_session_of_another_kind_is_not_taken_for_the_wire_of_its_host():
    anthropic, httpx2 = pytest.importorskip("anthropic"), pytest.importorskip("httpx2")
    said = {"type": "session.status_running", "id": "e_1", "processed_at": None}
    body = f"event: message\ndata: {json.dumps(said)}\n\n".encode()
    headers = {"content-type": "text/event-stream"}
    transport = httpx2.MockTransport(
        lambda _: httpx2.Response(200, content=iter([body]), headers=headers)
    )
    client = anthropic.Anthropic(api_key="k", http_client=httpx2.Client(transport=transport))
    with normalize(client.beta.sessions.events.stream("sesn_1")) as events:
        (failed,) = list(events)
    assert isinstance(failed, Failed)
    assert "cannot tell whose stream this is" in failed.error
