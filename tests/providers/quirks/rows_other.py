"""Anthropic, Gemini, Ollama, Bedrock and Cohere."""

from __future__ import annotations

from .row import MESSAGE, TIDES, WEATHER, Case, Quirk, anthropic, block, gemini, lines, part, sse

TOOL = {"type": "tool_use", "id": "toolu_1", "name": "f"}
CALL = ("toolu_1", "f", {"a": 1})


def _json(text: str) -> dict[str, object]:
    return {"type": "input_json_delta", "partial_json": text}


def _bedrock(*events: dict[str, object], reason: str = "tool_use") -> bytes:
    return lines(
        {"messageStart": {"role": "assistant"}}, *events, {"messageStop": {"stopReason": reason}},
        {"metadata": {"usage": {"inputTokens": 5, "outputTokens": 9}}},
    )  # fmt: skip


def _at(index: int, **event: object) -> dict[str, object]:
    ((name, said),) = event.items()
    inner = "start" if name == "contentBlockStart" else "delta"
    body = {} if name == "contentBlockStop" else {inner: said}
    return {name: {"contentBlockIndex": index, **body}}


USE = {"toolUse": {"toolUseId": "tooluse_1", "name": "f"}}

OTHER = (
    # --- Anthropic --------------------------------------------------------------------------------
    Quirk(
        75,
        "an `error` event after HTTP 200, and no `message_stop`",
        "the stream fails, with `retryable` where that helps; closed calls stay, open ones are broken",
        (
            Case(
                "anthropic",
                take="error_after_200",
                end="failed provider_error",
                calls=(("toolu_01585qBy6SPGarsBpxfScJsU", *WEATHER),),
                broken=(("get_tides", "provider_error"),),
                has=({"kind": "failed", "retryable": True, "code": "overloaded_error"},),
            ),
        ),
    ),
    Quirk(
        76,
        "`ping`, and events that nobody knows",
        "pings are counted; what is unknown is passed on whole",
        (
            Case(
                "anthropic",
                take="keep_alives",
                notes=("wire.keepalive",),
                calls=(("toolu_01xdo8WKvSa4IKcy5GniZlmu", *WEATHER),),
            ),
            Case(
                "anthropic",
                take="unknown_kinds",
                notes=("wire.kind_unknown",),
                text="Still here.",
                end="finish stop",
                has=({"kind": "unrecognized"},),
            ),
        ),
    ),
    Quirk(
        77,
        "eager input streaming: arguments that are cut or no JSON",
        "a broken call with its text; never `{}`",
        (
            Case(
                "anthropic",
                take="invalid_json",
                broken=(("get_weather", "invalid_json"), ("get_tides", "not_object")),
            ),
        ),
    ),
    Quirk(
        78,
        "malformed input that would run a tool without arguments",
        "`{}` only where no text came at all",
        (
            Case(
                "anthropic",
                anthropic(*block(0, {**TOOL, "input": {}}, _json('{"a":'))),
                broken=(("f", "invalid_json"),),
            ),
            Case(
                "anthropic",
                anthropic(*block(0, {**TOOL, "input": {}}, _json('{"a":')), reason="max_tokens"),
                broken=(("f", "length"),),
                end="finish length",
            ),
        ),
    ),
    Quirk(
        79,
        "a tool without arguments: no delta, or an empty one",
        "`{}`",
        (
            Case(
                "anthropic",
                take="no_arguments",
                calls=(
                    ("toolu_01TYDQX9CDLZYtjUY2nuhl4J", "list_harbours", {}),
                    ("toolu_01UNb4fzTZ7ZdsWsJpfAUj8N", "refresh", {}),
                ),
            ),
        ),
    ),
    Quirk(
        80,
        "the whole `input` in the block's start",
        "it counts if no fragment follows; fragments win",
        (
            Case(
                "anthropic",
                take="full_input_in_block_start",
                text="Reading.",
                calls=(
                    (
                        "toolu_01Cmct7VjW8qCKwXFKAsp30O",
                        "read_file",
                        {"absolute_path": "/srv/project/README.md"},
                    ),
                ),
            ),
            Case(
                "anthropic",
                anthropic(*block(0, {**TOOL, "input": {"a": 0}}, _json('{"a":1}'))),
                calls=(CALL,),
                notes=("args.replaced",),
            ),
        ),
    ),
    Quirk(
        81,
        "`input` is missing in the block's start",
        "as `{}`",
        (
            Case(
                "anthropic",
                take="input_absent",
                calls=(("toolu_011XPF5TvE5r1axpidM296FJ", "list_harbours", {}),),
            ),
            Case("anthropic", anthropic(*block(0, TOOL, _json('{"a":1}'))), calls=(CALL,)),
        ),
    ),
    Quirk(
        82,
        "calls made by running code need `caller` and the container on the next request",
        "`caller` is in the call's echo, the container in that of the finish",
        (
            Case(
                "anthropic",
                take="programmatic_call",
                calls=(
                    (
                        "srvtoolu_01B1VVzbKcexrSGxeyaI3mqT",
                        "code_execution",
                        {"code": "rows = await query_db(sql='select 1')\nprint(rows)"},
                    ),
                    ("toolu_01fXsB5vBD6MpEj2r1zlurfi", "query_db", {"sql": "select 1"}),
                ),
                has=(
                    {
                        "kind": "tool_call",
                        "name": "query_db",
                        "echo": {"caller": {"type": "code_execution_20250825"}},
                    },
                    {"kind": "finish", "echo": {"container": {}}},
                ),
            ),
        ),
    ),
    Quirk(
        83,
        "the container is in `message_start`, in `message_delta`, or in both",
        "the last one that is said",
        (
            Case(
                "anthropic",
                sse(
                    {**MESSAGE, "message": {**MESSAGE["message"], "container": {"id": "c1"}}},
                    *block(0, TOOL, _json('{"a":1}')),
                    {"type": "message_delta", "delta": {"stop_reason": "tool_use"}},
                    {"type": "message_stop"},
                ),
                calls=(CALL,),
                has=({"kind": "finish", "echo": {"container": {"id": "c1"}}},),
            ),
            Case(
                "anthropic",
                anthropic(*block(0, TOOL, _json('{"a":1}')), container={"id": "c2"}),
                calls=(CALL,),
                has=({"kind": "finish", "echo": {"container": {"id": "c2"}}},),
            ),
        ),
    ),
    Quirk(
        84,
        "`message_delta` counts no input, or has no usage",
        "what is not said does not overwrite",
        (
            Case(
                "anthropic",
                take="cached_usage",
                text="Twelve.",
                end="finish stop",
                usage=(9523, 44),
            ),
            Case(
                "anthropic",
                anthropic(*block(0, TOOL, _json('{"a":1}'))),
                calls=(CALL,),
                usage=(5, 9),
            ),
        ),
    ),
    Quirk(
        85,
        "`message_start` counts 0, the real counts come in `message_delta`",
        "the last that is not null",
        (
            Case(
                "anthropic",
                sse(
                    {
                        "type": "message_start",
                        "message": {
                            "id": "m",
                            "model": "m",
                            "usage": {"input_tokens": 0, "output_tokens": 0},
                        },
                    },
                    {
                        "type": "content_block_delta",
                        "index": 0,
                        "delta": {"type": "text_delta", "text": "Hi"},
                    },
                    {
                        "type": "message_delta",
                        "delta": {"stop_reason": "end_turn"},
                        "usage": {"input_tokens": 12, "output_tokens": 3},
                    },
                    {"type": "message_stop"},
                ),
                text="Hi",
                end="finish stop",
                usage=(12, 3),
            ),
        ),
    ),
    Quirk(
        86,
        "thinking after text",
        "blocks are taken in any order",
        (
            Case(
                "anthropic",
                anthropic(
                    *block(0, {"type": "text", "text": ""}, {"type": "text_delta", "text": "Hi"}),
                    *block(
                        1,
                        {"type": "thinking", "thinking": ""},
                        {"type": "thinking_delta", "thinking": "Hm"},
                    ),
                    reason="end_turn",
                ),
                text="Hi",
                reasoning="Hm",
                end="finish stop",
            ),
        ),
    ),
    # --- Gemini -----------------------------------------------------------------------------------
    Quirk(
        87,
        "`functionCall` has no id",
        "one is minted and marked synthetic; `wire_id` is empty, so it is never sent back",
        (
            Case(
                "gemini",
                take="calls_without_ids",
                notes=("call.id_synthetic",),
                calls=((None, *WEATHER), (None, *TIDES)),
                has=(
                    {
                        "kind": "tool_call",
                        "provenance": {"id_source": "synthetic", "wire_id": None},
                    },
                ),
            ),
        ),
    ),
    Quirk(
        88,
        "`functionCall` has an id, which must come back",
        "kept as it is, natural",
        (
            Case(
                "gemini",
                take="parallel_calls",
                text="Both, then.",
                calls=(("uibn2rml", *WEATHER), ("b2vapber", *TIDES)),
                has=(
                    {
                        "kind": "tool_call",
                        "provenance": {"id_source": "natural", "wire_id": "b2vapber"},
                    },
                ),
            ),
        ),
    ),
    Quirk(
        89,
        "the same tool several times, one call per chunk, no index",
        "each `functionCall` without `willContinue` is a call of its own",
        (
            Case(
                "gemini",
                take="same_tool_twice_without_ids",
                notes=("call.id_synthetic",),
                calls=(
                    (None, "get_weather", {"city": "Oslo"}),
                    (None, "get_weather", {"city": "Oslo"}),
                    (None, "get_weather", {"city": "Bergen"}),
                ),
            ),
        ),
    ),
    Quirk(
        90,
        "a chunk with the call, then another with STOP",
        "calls are remembered over chunks: `tool_calls`",
        (
            Case(
                "gemini",
                gemini(
                    part({"functionCall": {"id": "c1", "name": "f", "args": {"a": 1}}}),
                    part({"text": ""}, finish="STOP"),
                ),
                calls=(("c1", "f", {"a": 1}),),
            ),
        ),
    ),
    Quirk(
        91,
        "STOP on every chunk",
        "the end of input is the end; other reasons win over STOP",
        (
            Case(
                "gemini",
                take="stop_on_every_chunk",
                text="High water soon.",
                notes=("finish.repeated",),
                calls=(("rvagxyun", *TIDES),),
            ),
        ),
    ),
    Quirk(
        92,
        "a reason without content; MALFORMED_FUNCTION_CALL, UNEXPECTED_TOOL_CALL",
        "no content is no parts; the two are failures, with the wire's message",
        (
            Case(
                "gemini",
                take="malformed_function_call",
                text="Looking.",
                end="failed provider_error",
                has=({"kind": "failed", "code": "MALFORMED_FUNCTION_CALL", "retryable": True},),
            ),
            Case(
                "gemini",
                sse({"candidates": [{"finishReason": "UNEXPECTED_TOOL_CALL", "index": 0}]}),
                end="failed provider_error",
                has=({"kind": "failed", "code": "UNEXPECTED_TOOL_CALL"},),
            ),
            Case("gemini", take="finish_without_content", calls=(("e87z6ssi", *TIDES),)),
        ),
    ),
    Quirk(
        93,
        "a signature on the first of parallel calls only",
        "kept on the part it came with; not copied to others",
        (
            Case(
                "gemini",
                gemini(
                    part(
                        {
                            "functionCall": {"id": "c1", "name": "f", "args": {}},
                            "thoughtSignature": "c2ln",
                        },
                        {"functionCall": {"id": "c2", "name": "g", "args": {}}},
                        finish="STOP",
                    )
                ),
                calls=(("c1", "f", {}), ("c2", "g", {})),
                has=(
                    {"kind": "tool_call", "id": "c1", "echo": {"thoughtSignature": "c2ln"}},
                    {"kind": "tool_call", "id": "c2", "echo": None},
                ),
            ),
        ),
    ),
    Quirk(
        94,
        "a signature on text, or on an empty last part",
        "text stays text; the signature is that part's echo",
        (
            Case(
                "gemini",
                take="signature_on_last_text",
                text="High water is at 04:12.",
                end="finish stop",
                has=({"kind": "text_delta", "text": "", "echo": {}},),
            ),
            Case(
                "gemini",
                gemini(
                    part(
                        {"text": "High", "thoughtSignature": "c2ln"},
                        {"text": " water"},
                        finish="STOP",
                    )
                ),
                text="High water",
                end="finish stop",
                has=(
                    {
                        "kind": "text_delta",
                        "text": "High",
                        "part": 0,
                        "echo": {"thoughtSignature": "c2ln"},
                    },
                    {"kind": "text_delta", "text": " water", "part": 1, "echo": None},
                ),
            ),
        ),
    ),
    Quirk(
        95,
        "`partialArgs` with paths into lists and objects, and empty parts between",
        "built by path, told as JSON text that grows, ended by the part that does not continue",
        (
            Case(
                "gemini",
                take="partial_args_nested",
                notes=("call.id_synthetic",),
                calls=(
                    (
                        None,
                        "book",
                        {
                            "berths": [
                                {"boat": {"name": "Blue yawl"}, "number": 14},
                                {"number": 2.5, "free": True},
                            ],
                            "odd key": None,
                        },
                    ),
                ),
            ),
        ),
    ),
    Quirk(
        96,
        "`structValue` and `listValue` in `partialArgs`, which the SDK does not know",
        "any `…Value` is taken as it is",
        (
            Case(
                "gemini",
                gemini(
                    part({"functionCall": {"id": "c1", "name": "f", "willContinue": True}}),
                    part(
                        {
                            "functionCall": {
                                "partialArgs": [
                                    {"jsonPath": "$.a", "structValue": {"b": 1}},
                                    {"jsonPath": "$.c", "listValue": [1, 2]},
                                ],
                                "willContinue": True,
                            }
                        }
                    ),
                    part({"functionCall": {}}, finish="STOP"),
                ),
                calls=(("c1", "f", {"a": {"b": 1}, "c": [1, 2]}),),
            ),
        ),
    ),
    Quirk(
        97,
        "no `alt=sse`: the body is one JSON array",
        "told element by element",
        (
            Case(
                "gemini",
                take="json_array_body",
                text="Höfn 🌊, then.",
                calls=(("xfgmllxn", *TIDES),),
            ),
        ),
    ),
    # --- Ollama, Bedrock, Cohere ------------------------------------------------------------------
    Quirk(
        98,
        "Ollama says ids and indexes on newer servers only",
        "an id is used where there is one, else minted",
        (
            Case(
                "ollama",
                take="calls_with_ids",
                calls=(("call_f77jdjg2", *WEATHER), ("call_mn6pt1v5", *TIDES)),
            ),
            Case(
                "ollama",
                take="calls_without_ids",
                notes=("call.id_synthetic",),
                calls=((None, *WEATHER), (None, *TIDES)),
            ),
        ),
    ),
    Quirk(
        99,
        "Bedrock: text has no `contentBlockStart`",
        "text begins by itself",
        (
            Case(
                "bedrock",
                take="text_only",
                text="The harbour is open until ten in the evening.",
                end="finish stop",
            ),
        ),
    ),
    Quirk(
        100,
        "Bedrock: one `contentBlockIndex` for text and a tool",
        "a block is known by index and kind",
        (
            Case(
                "bedrock",
                _bedrock(
                    _at(0, contentBlockDelta={"text": "One "}),
                    _at(0, contentBlockStart=USE),
                    _at(0, contentBlockDelta={"toolUse": {"input": '{"a":'}}),
                    _at(0, contentBlockDelta={"toolUse": {"input": "1}"}}),
                    _at(0, contentBlockStop=None),
                    _at(0, contentBlockDelta={"text": "moment"}),
                ),
                text="One moment",
                calls=(("tooluse_1", "f", {"a": 1}),),
            ),
        ),
    ),
    Quirk(
        101,
        "Bedrock: fragments after `contentBlockStop`",
        "ignored, and noted",
        (
            Case(
                "bedrock",
                _bedrock(
                    _at(0, contentBlockStart=USE),
                    _at(0, contentBlockDelta={"toolUse": {"input": '{"a":1}'}}),
                    _at(0, contentBlockStop=None),
                    _at(0, contentBlockDelta={"toolUse": {"input": '{"b":2}'}}),
                ),
                calls=(("tooluse_1", "f", {"a": 1}),),
                notes=("call.late",),
            ),
        ),
    ),
    Quirk(
        102,
        "Bedrock: a proxy sends no `contentBlockStop`",
        "`messageStop` closes what is open",
        (
            Case(
                "bedrock",
                take="block_stop_missing",
                notes=("call.unclosed",),
                calls=(("tooluse_iMnGfE1wRsJBvnu1f27GPj", *TIDES),),
            ),
        ),
    ),
    Quirk(
        103,
        "Cohere: a tool plan, and results as a list of documents",
        "the plan is reasoning, marked as what it is; results are the encoder's part",
        (
            Case(
                "cohere",
                take="parallel_calls",
                reasoning="I will look both of them up.",
                calls=(("get_weather_thn2sxspmvai", *WEATHER), ("get_tides_uibn2rmla3r2", *TIDES)),
                has=({"kind": "reasoning_delta", "echo": {"type": "tool_plan"}},),
            ),
        ),
    ),
)
