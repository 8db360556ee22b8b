"""Amazon Bedrock: ConverseStream, and the wires of models in its envelope: the row."""

from __future__ import annotations

from ...core.row import Frame, Key, Provider, Refusals
from ...framing.aws import CONTENT_TYPE

__all__ = ["PROVIDER"]

PROVIDER = Provider(
    name="bedrock",
    title="Amazon Bedrock ConverseStream",
    serves="/model/…/converse-stream of bedrock-runtime; in its envelope, what a model speaks itself",
    framing="AWS event stream",
    lines=True,
    content_type=CONTENT_TYPE,
    inside=("anthropic", "openai_chat", "cohere", "tgi"),
    telemetry="aws.bedrock",
    path="/model/{model}/converse-stream",
    # Not all of .amazonaws.com, where anybody may have a machine.
    hosts=(
        "bedrock-runtime.*.amazonaws.com",
        "bedrock-runtime-fips.*.amazonaws.com",
        ".bedrock-runtime.*.vpce.amazonaws.com",
        "bedrock-runtime.*.amazonaws.com.cn",
        "bedrock-runtime.*.api.aws",
        "bedrock-mantle.*.api.aws",
    ),
    paths=(
        "/converse-stream",
        "/invoke-with-response-stream",
        "/invocations-response-stream",
        "/agents/*/agentAliases/*/sessions/*/text",
    ),
    kept_headers=("x-amzn-requestid",),
    key=Key(("AWS_BEARER_TOKEN_BEDROCK",)),
    sdk_modules=("botocore", "aiobotocore"),
    sdk_frames=(
        Frame("chunk"),
        Frame("PayloadPart", "Bytes"),
        Frame("trace"),
        Frame("returnControl"),
        Frame("files"),
    ),
    refusals=Refusals(code_header="x-amzn-errortype"),
    parser=f"{__name__}.parser",
    encoder=f"{__name__}.encoder",
    messages=f"{__name__}.messages",
    script=f"{__name__}.script",
)
