"""Azure AI Foundry, the Responses wire with more items or whatever a deployment speaks: the row."""

from __future__ import annotations

from ...core.row import Key, Provider

__all__ = ["PROVIDER"]

PROVIDER = Provider(
    name="azure_foundry",
    title="Azure AI Foundry",
    serves="Foundry projects and deployments (Responses superset; Chat and Messages are told apart)",
    container="input",
    also=("openai_chat", "anthropic"),
    telemetry="azure.ai.inference",
    path="/openai/v1/responses",
    resume="/{id}?stream=true&starting_after={at}",
    # Not all of .azure.com, where anybody may have a machine.
    hosts=(
        ".openai.azure.com",
        ".services.ai.azure.com",
        ".cognitiveservices.azure.com",
        ".inference.ai.azure.com",
        ".models.ai.azure.com",
        ".openai.azure.us",
        ".openai.azure.cn",
    ),
    home_paths=("/responses", "/v1/responses/*", "/chat/completions", "/v1/messages"),
    kept_headers=("apim-request-id", "x-ms-request-id", "x-ms-region"),
    key=Key(("AZURE_OPENAI_API_KEY", "AZURE_API_KEY"), "api-key", ""),
    demo="type_code_interpreter_call",
    parser=f"{__name__}.parser",
    encoder=f"{__name__}.encoder",
    messages=f"{__name__}.messages",
    script=f"{__name__}.script",
    lanes="streamnorm.providers.openai_responses.lanes",
)
