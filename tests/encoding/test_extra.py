"""A field that the provider knows is added to a body; an option that is misspelt is told."""

import pytest

from streamnorm import Conversation, ToolCall, ToolResult, UsageError, provider

TALK = Conversation().user("Hello")
ANSWER = [ToolResult.for_call(ToolCall(0, "c1", "now", {}, "{}"), "noon")]

MISSPELT = {
    "pairing": "orphans", "orphan": "orphans", "toolChoice": "tool_choice", "tool_chioce": "tool_choice",
    "tools_choice": "tool_choice", "max_token": "max_tokens", "maxTokens": "max_tokens",
    "resoning": "reasoning", "image": "images", "sdk_type": "sdk_types", "Stream": "stream",
    "modle": "model", "sytem": "system", "tool": "tools",
}  # fmt: skip
# Fields of requests, of all our wires and of servers that imitate them.
REAL = """
temperature top_p top_k top_a min_p stop stop_sequences seed random_seed n user metadata store labels
service_tier thinking stream_options parallel_tool_calls reasoning_effort reasoning_format response_format
logprobs top_logprobs logit_bias frequency_penalty presence_penalty repetition_penalty
max_completion_tokens max_output_tokens max_new_tokens min_tokens max_tool_calls tool_config toolConfig
tool_resources system_instruction systemInstruction generationConfig generation_config safetySettings
cachedContent inferenceConfig additionalModelRequestFields guardrailConfig performanceConfig modelId
prompt_cache_key safety_identifier verbosity modalities audio prediction web_search_options include
previous_response_id instructions truncation background text input messages contents
context_management container mcp_servers betas output_config safe_prompt prompt_mode documents
citation_options safety_mode strict_tools options format keep_alive think num_predict suffix template raw
models mode route provider transforms plugins usage guided_json chat_template_kwargs extra_body prompt
agent agent_config environment response_modalities best_of echo ignore_eos system_prompt
"""


@pytest.mark.parametrize(("name", "option"), MISSPELT.items())
@pytest.mark.parametrize("ask", ["request", "prepare"])
def test_an_option_that_is_misspelt_or_gone_is_no_field_of_the_body(ask, name, option):
    with pytest.raises(UsageError, match=f"there is no option {name!r}: did you mean {option}="):
        getattr(provider("openai_chat"), ask)(TALK, **{name: "raise"})


@pytest.mark.parametrize("field", REAL.split())
def test_a_field_of_the_provider_is_added_to_the_body(field):
    assert provider("openai_chat").request(TALK, **{field: 7})[field] == 7


@pytest.mark.parametrize(
    ("name", "fix"),
    [("imags", "did you mean images="), ("temperature", "there are reasoning, images")],
)
def test_results_have_options_and_no_fields(name, fix):
    with pytest.raises(UsageError, match=f"there is no option {name!r}: {fix}"):
        provider("openai_chat").results(ANSWER, **{name: 1})
