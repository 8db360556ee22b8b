"""Chat Completions and its imitators: identity, names and arguments, the end."""

from __future__ import annotations

from .row import TIDES, WEATHER, Case, Quirk, call, chat, chunk, sse

CALL_1 = ("call_1", "f", {"a": 1})
TWO = (("call_1", "f", {"a": 1}), ("call_2", "g", {"b": 2}))
CUT = chat(call(0, "call_1", "f", '{"a":'), call(0, args="1}"))[
    : -len(sse(chunk(finish="tool_calls"), "[DONE]"))
]

CHAT = (
    # --- whose delta is this ----------------------------------------------------------------------
    Quirk(
        1,
        "`index` is left out",
        "the call is found by its id, else it is the last one that is open",
        (
            Case(
                "openai_chat",
                take="index_missing",
                notes=("call.index_missing",),
                calls=(
                    ("call_MPXB2GyLsVQe0kqnSPWzmPni", *WEATHER),
                    ("call_aLT1nPuHHE0uBYByJMbD0bpO", *TIDES),
                ),
            ),
        ),
    ),
    Quirk(
        2,
        "`index` is left out, and a chunk has several entries or only one of several",
        "inside a chunk of several entries the position tells them apart; a chunk of one entry says "
        "nothing by its position",
        (
            Case(
                "openai_chat",
                take="several_in_one_chunk_no_index",
                notes=("call.index_missing", "call.id_synthetic"),
                calls=((None, *WEATHER), (None, *TIDES)),
            ),
            Case(
                "openai_chat",
                chat(call(None, "call_1", "f", '{"a":1}'), call(None, "call_2", "g", '{"b":2}')),
                calls=TWO,
                notes=("call.index_missing",),
            ),
        ),
    ),
    Quirk(
        3,
        "`index` is null",
        "as if it were left out",
        (
            Case(
                "openai_chat",
                take="index_null",
                notes=("call.index_missing",),
                calls=(
                    ("call_cEZVnav1Mn7hpntkTDLfCJH2", *WEATHER),
                    ("call_rO1RCAbdEKOr7zgT1qFOzDNT", *TIDES),
                ),
            ),
        ),
    ),
    Quirk(
        4,
        "every parallel call has index 0",
        "a new id together with a name begins a new call",
        (
            Case(
                "openai_chat",
                take="index_reused_new_id",
                notes=("call.index_reused",),
                calls=(
                    ("call_3Vfl20to9ZohrsvkdpqSaFHF", *WEATHER),
                    ("call_Diy2JY3oe0vw4sOKy7W34V3D", *TIDES),
                ),
            ),
        ),
    ),
    Quirk(
        5,
        "one index for several calls, in fragments, and no ids",
        "a name with the beginning of an object, after whole arguments, begins a new call",
        (
            Case(
                "openai_chat",
                take="all_index_zero_no_ids",
                notes=("call.id_synthetic", "call.index_reused"),
                calls=((None, *WEATHER), (None, *TIDES)),
            ),
        ),
        otherwise="Two equal calls without ids on one index look exactly like a call said again: "
        "they are told once. No reader can tell these two apart.",
    ),
    Quirk(
        6,
        "the id changes within one call",
        "same index and no name: the same call, under its first id",
        (
            Case(
                "openai_chat",
                take="id_changes_within_call",
                notes=("call.id_changed",),
                calls=(("call_Efvpz4lqqKyYihWJtrsnVcDW", *WEATHER),),
            ),
        ),
    ),
    Quirk(
        7,
        "indexes begin at 1 or have gaps",
        "an index is a key, not a place in a list",
        (
            Case(
                "openai_chat",
                take="index_from_one_with_gaps",
                calls=(
                    ("call_q6d0wbI4oTLheRg5lIAOvhED", *WEATHER),
                    ("call_M0jURK7jM1o3GutjQlH3wCCF", *TIDES),
                ),
            ),
        ),
    ),
    Quirk(
        8,
        "every call has index 1",
        "as with index 0 for all: a new id with a name begins a new call",
        (
            Case(
                "openai_chat",
                chat(call(1, "call_1", "f", '{"a":1}'), call(1, "call_2", "g", '{"b":2}')),
                calls=TWO,
                notes=("call.index_reused",),
            ),
        ),
    ),
    Quirk(
        9,
        'later deltas have the id `""`',
        "an empty id is none",
        (
            Case(
                "openai_chat",
                take="id_empty_on_continuations",
                calls=(("call_jcZ5h5y2QhuKj1NBzRvOBPsz", *WEATHER),),
            ),
        ),
    ),
    Quirk(
        10,
        'later deltas have the id `"null"`, as a text',
        "that text is no id",
        (
            Case("mistral", take="null_string_ids", calls=(("hWNYkRkTa", *TIDES),)),
            Case(
                "mistral",
                take="no_ids",
                notes=("call.id_synthetic", "call.index_reused"),
                calls=((None, *WEATHER), (None, *TIDES)),
            ),
        ),
    ),
    Quirk(
        11,
        "only the first call has an id",
        "the others get one of ours, marked synthetic",
        (
            Case(
                "openai_chat",
                take="id_missing_for_second",
                notes=("call.id_synthetic",),
                calls=(("call_oJtqGtKpYpDw2dlOq3KRDFps", *WEATHER), (None, *TIDES)),
                has=(
                    {
                        "kind": "tool_call",
                        "call": 1,
                        "provenance": {"id_source": "synthetic", "wire_id": None},
                    },
                ),
            ),
        ),
    ),
    Quirk(
        12,
        "id and type are said again with every delta",
        "only arguments add up",
        (
            Case(
                "openai_chat",
                take="everything_repeated",
                calls=(("call_ze5e68643t4lJjmP2aKB4o70", *WEATHER),),
            ),
        ),
    ),
    Quirk(
        13,
        "fragments come without index and id",
        "they belong to the last call that is open",
        (
            Case(
                "openai_chat",
                take="no_keys_after_start",
                notes=("call.index_missing",),
                calls=(("call_MCJsfcpcWufFhgC2rGqYALLq", *WEATHER),),
            ),
        ),
    ),
    Quirk(
        14,
        "ids are unique within one answer only, such as `f:0`",
        "the wire's id is kept as it is; an id that comes twice in one answer is given to the first "
        "call, the second gets one of ours",
        (
            Case(
                "openai_chat",
                take="ids_from_names",
                calls=(("functions.get_weather:0", *WEATHER), ("functions.get_tides:1", *TIDES)),
            ),
            Case(
                "openai_chat",
                chat(call(0, "f:0", "f", '{"a":1}'), call(1, "f:0", "g", '{"b":2}')),
                calls=(("f:0", "f", {"a": 1}), (None, "g", {"b": 2})),
                notes=("call.id_duplicate",),
                has=({"kind": "tool_call", "call": 1, "provenance": {"wire_id": "f:0"}},),
            ),
        ),
        otherwise="An id with the turn's name in it is often offered beside the wire's. Here "
        "`provenance.response_id` says which answer an id is from; who keeps several turns has both.",
    ),
    Quirk(
        15,
        "ids have dots and colons and must come back to the letter",
        "ids are never changed on the way in",
        (
            Case(
                "openai_chat",
                take="ids_from_names",
                calls=(("functions.get_weather:0", *WEATHER), ("functions.get_tides:1", *TIDES)),
            ),
        ),
    ),
    Quirk(
        16,
        "ids that are sent must have nine letters or digits",
        "a call's id is kept as the wire gave it; what is sent is rewritten by the encoder",
        why_not="a matter of requests, not of streams: "
        "`tests/encoding/test_encode_pairing.py::test_calls_and_results_pair_on_every_wire`",
    ),
    # --- name and arguments -----------------------------------------------------------------------
    Quirk(
        17,
        "the name comes in pieces",
        "pieces add up until the first fragment of arguments; the start waits for it",
        (
            Case(
                "openai_chat",
                take="name_in_fragments",
                calls=(("call_racacW7o2KhBcfLAd2SZlVx7", *WEATHER),),
                notes=("call.name_joined",),
            ),
        ),
    ),
    Quirk(
        18,
        "the whole name is said again with every delta",
        "a name that is known already adds nothing",
        (
            Case(
                "openai_chat",
                take="everything_repeated",
                calls=(("call_ze5e68643t4lJjmP2aKB4o70", *WEATHER),),
            ),
        ),
    ),
    Quirk(
        19,
        "the first delta has an empty name, the real one follows",
        "the start is told once there is a name",
        (
            Case(
                "openai_chat",
                take="name_after_empty_name",
                calls=(("call_bftBLK3OsIoIBoUbNAcFwD5f", *WEATHER),),
            ),
        ),
    ),
    Quirk(
        20,
        "arguments come before the name",
        "they wait for it: first the start, then one delta with all that waited",
        (
            Case(
                "openai_chat",
                take="arguments_before_name",
                calls=(("call_9sInraaGh6Uab1S6isZVPIcD", *WEATHER),),
            ),
        ),
    ),
    Quirk(
        21,
        "a whole call in one chunk",
        "start, one delta, and the call at `finish_reason`",
        (
            Case(
                "openai_chat",
                take="whole_call_in_one_chunk",
                calls=(("call_WjHYQf719aQvLZo9ZP4VJ8DM", *WEATHER),),
            ),
        ),
    ),
    Quirk(
        22,
        "name, id and the first `{` in one chunk",
        "arguments of the first delta count",
        (
            Case(
                "openai_chat",
                chat(call(0, "call_1", "f", "{"), call(0, args='"a":1}')),
                calls=(CALL_1,),
            ),
        ),
    ),
    Quirk(
        23,
        "`arguments` is an object",
        "its exact JSON text is taken",
        (
            Case(
                "openai_chat",
                take="object_arguments",
                notes=("args.object",),
                calls=(("call_qrJ7NflUEw92rN6KiYx9uX21", *WEATHER),),
            ),
        ),
    ),
    Quirk(
        24,
        "`arguments` is an object, in several chunks",
        "their keys make one object",
        (
            Case(
                "openai_chat",
                take="object_arguments_in_pieces",
                notes=("args.object", "args.merged"),
                calls=(("call_xSDZ4uhENJITNJ3S1o5njdGm", *WEATHER),),
            ),
        ),
    ),
    Quirk(
        25,
        "each chunk says the arguments so far",
        "a text that begins with all that is held, and is longer, is a snapshot: its news are told. If the "
        "result is no JSON and one such step was taken, it is read as a fragment after all",
        (
            Case(
                "openai_chat",
                take="cumulative_arguments",
                notes=("args.cumulative",),
                calls=(("call_2Ia91c8D1b3clEWjPAx7orLx", *WEATHER),),
            ),
        ),
    ),
    Quirk(
        26,
        "the whole arguments are said again at the end",
        "equal to a whole object that is held: dropped",
        (
            Case(
                "openai_chat",
                take="full_arguments_repeated",
                notes=("args.repeated",),
                calls=(("call_gwclDwVXKYaZ83aW6UP6xOwB", *WEATHER),),
            ),
            Case(
                "openai_chat",
                chat(call(0, "call_1", "f", '{"a":'), call(0, args='{"a":1}')),
                calls=(CALL_1,),
                notes=("args.cumulative",),
            ),
        ),
    ),
    Quirk(
        27,
        "a trap: a fragment that is JSON by itself",
        "a text is compared with what is held, never judged by whether it parses",
        (
            Case(
                "openai_chat",
                take="fragment_that_parses",
                calls=(
                    (
                        "call_glIaiAvQjVMVhHNyjwWg6YDx",
                        "wrap",
                        {"inner": {"a": 1}, "again": {"a": 1}},
                    ),
                ),
            ),
        ),
    ),
    Quirk(
        28,
        "a trap: equal fragments that belong there twice",
        "no overlap is looked for",
        (
            Case(
                "openai_chat",
                chat(
                    call(0, "call_1", "f", '{"a":"'),
                    *(call(0, args="na") for _ in range(4)),
                    call(0, args='"}'),
                ),
                calls=(("call_1", "f", {"a": "nananana"}),),
            ),
        ),
    ),
    Quirk(
        29,
        "a trap: what came so far is a whole object, but more follows",
        "a call ends at `finish_reason` or `[DONE]`, never because it parses",
        (
            Case(
                "openai_chat",
                take="cut_after_whole_arguments",
                end="failed truncated",
                broken=(("get_weather", "truncated"),),
            ),
            Case(
                "openai_chat",
                chat(call(0, "call_1", "f", "{}"), call(0, args='{"a":1}')),
                calls=(CALL_1,),
                notes=("args.placeholder",),
            ),
        ),
    ),
    Quirk(
        30,
        "the last brace is missing",
        "a broken call with its text as it came; nothing is repaired",
        (
            Case(
                "openai_chat",
                take="invalid_json",
                broken=(("get_weather", "invalid_json"), ("get_tides", "not_object")),
            ),
        ),
    ),
    Quirk(
        31,
        "`arguments` is null",
        "nothing was said; the other entries of the chunk count",
        (
            Case(
                "openai_chat",
                take="arguments_null",
                calls=(("call_DPA2ZVOSHNVNMbHToGUeyP4B", *WEATHER),),
            ),
            Case(
                "openai_chat",
                sse(
                    chunk(
                        {
                            "tool_calls": [
                                {
                                    "index": 0,
                                    "id": "call_1",
                                    "function": {"name": "f", "arguments": None},
                                },
                                {
                                    "index": 1,
                                    "id": "call_2",
                                    "function": {"name": "g", "arguments": '{"b":2}'},
                                },
                            ]
                        }
                    ),
                    chunk(call(0, args='{"a":1}')),
                    chunk(finish="tool_calls"),
                    "[DONE]",
                ),
                calls=TWO,
            ),
        ),
    ),
    Quirk(
        32,
        "`function` is null",
        "the entry says who it is about, and no more",
        (
            Case(
                "openai_chat",
                sse(
                    chunk({"tool_calls": [{"index": 0, "id": "call_1", "function": None}]}),
                    chunk(call(0, None, "f", '{"a":1}')),
                    chunk(finish="tool_calls"),
                    "[DONE]",
                ),
                calls=(CALL_1,),
            ),
        ),
    ),
    Quirk(
        33,
        '`arguments` is `""` for a tool that takes none',
        "`{}`, as the turn ended normally",
        (
            Case(
                "openai_chat",
                take="no_arguments",
                calls=(
                    ("call_MbaGmxagRgVkJgfOgpyTOz3s", "list_harbours", {}),
                    ("call_Z0NxVTPAHl1jK5WFz43A4RKz", "refresh", {}),
                ),
            ),
        ),
    ),
    Quirk(
        34,
        "JSON inside a JSON string",
        "unwrapped once, at the top, if an object is inside; `raw` keeps the text as it came",
        (
            Case(
                "openai_chat",
                chat(call(0, "call_1", "f", '"{\\"a\\":1}"')),
                calls=(CALL_1,),
                notes=("args.double_encoded",),
                has=({"kind": "tool_call", "raw": '"{\\"a\\":1}"'},),
            ),
            Case(
                "openai_chat",
                chat(call(0, "call_1", "f", '{"a":"{\\"b\\":1}"}')),
                calls=(("call_1", "f", {"a": '{"b":1}'}),),
            ),
        ),
    ),
    Quirk(
        35,
        "arguments are JSON, but no object",
        "a broken call, `not_object`, with its text; never `{}`",
        (
            Case(
                "openai_chat",
                chat(call(0, "call_1", "f", "[1,2]")),
                broken=(("f", "not_object"),),
                has=({"kind": "broken_tool_call", "raw": "[1,2]"},),
            ),
            Case(
                "openai_chat", chat(call(0, "call_1", "f", '"two"')), broken=(("f", "not_object"),)
            ),
        ),
        otherwise="Handing the list or the text on as arguments is often advised. A `ToolCall` promises "
        "an object, so the value stays in `BrokenToolCall.raw`, unchanged.",
    ),
    Quirk(
        36,
        "a tool call written as text in the answer",
        "text; nothing is guessed",
        (
            Case(
                "openai_chat",
                chat(
                    {"content": '<tool_call>{"name":"f","arguments":{}}</tool_call>'}, finish="stop"
                ),
                text='<tool_call>{"name":"f","arguments":{}}</tool_call>',
                end="finish stop",
            ),
        ),
    ),
    # --- the end, usage, errors -------------------------------------------------------------------
    Quirk(
        37,
        "finish `stop` although tools are called",
        "told as `tool_calls`; `raw_reason` keeps `stop`",
        (
            Case(
                "openai_chat",
                take="stop_with_calls",
                notes=("finish.reread",),
                calls=(("call_VlP7N6rEl1m22ejwuihEiVbH", *WEATHER),),
                has=({"kind": "finish", "raw_reason": "stop"},),
            ),
        ),
    ),
    Quirk(
        38,
        "two finish reasons, `tool_calls` then `stop`",
        "the first that is not `stop` counts; one finish is told",
        (
            Case(
                "openai_chat",
                take="two_finish_reasons",
                notes=("finish.repeated",),
                calls=(("call_Snn5i5nO2imbMOVQYA45kt8N", *WEATHER),),
            ),
        ),
    ),
    Quirk(
        39,
        '`finish_reason` is `""` on every chunk',
        "an empty reason is none",
        (Case("openai_chat", take="empty_finish_reason", text="Hello", end="finish stop"),),
    ),
    Quirk(
        40,
        "the last fragment rides on the finishing chunk",
        "the delta is read before the reason",
        (
            Case(
                "openai_chat",
                take="finish_with_last_fragment",
                calls=(("call_H6bXFN2xn6DQQ3VZ5ZZXbhl7", *TIDES),),
            ),
        ),
    ),
    Quirk(
        41,
        "there is no `finish_reason` at all",
        "`[DONE]` completes the calls that are whole; without it the stream is truncated",
        (
            Case(
                "openai_chat",
                take="no_finish_reason",
                calls=(("call_4AxrVIPkpwFlnUhBW7zQy2k8", *WEATHER),),
            ),
            Case("openai_chat", CUT, broken=(("f", "truncated"),), end="failed truncated"),
        ),
    ),
    Quirk(
        42,
        "no `[DONE]`, or no blank line after it",
        "`finish_reason` is enough; a whole last event counts",
        (
            Case(
                "openai_chat",
                take="no_done",
                notes=("stream.end_unmarked",),
                calls=(("call_XiDTNEWk3Wd4EcbbhbgkhuVx", *WEATHER),),
            ),
            Case(
                "openai_chat",
                take="last_blank_line_missing",
                calls=(("call_5n6Pa67sMPZQ7k9RspOLHX8R", *TIDES),),
            ),
        ),
    ),
    Quirk(
        43,
        "the bytes end inside a call",
        "broken, `truncated`; never a call",
        (
            Case(
                "openai_chat",
                take="cut_in_arguments",
                end="failed truncated",
                broken=(("get_weather", "truncated"), ("write_file", "truncated")),
            ),
        ),
    ),
    Quirk(
        44,
        "the usage chunk has `choices: []`",
        "usage is read whatever the choices are",
        (
            Case(
                "openai_chat",
                sse(
                    chunk({"content": "Hi"}, "stop"),
                    {"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 2}},
                    "[DONE]",
                ),
                text="Hi",
                end="finish stop",
                usage=(7, 2),
            ),
        ),
    ),
    Quirk(
        45,
        "usage on every chunk, growing, or zero at the end",
        "the last that counts anything; never a sum",
        (
            Case(
                "openai_chat",
                take="usage_on_every_chunk",
                text="High water at 04:12.",
                end="finish stop",
                usage=(20, 3),
            ),
        ),
    ),
    Quirk(
        46,
        "usage on a chunk with content, or not on the last",
        "read wherever it stands",
        (
            Case(
                "openai_chat",
                sse(
                    chunk({"content": "H"}, usage={"prompt_tokens": 7, "completion_tokens": 2}),
                    chunk({"content": "i"}),
                    chunk(finish="stop"),
                    "[DONE]",
                ),
                text="Hi",
                end="finish stop",
                usage=(7, 2),
            ),
        ),
    ),
    Quirk(
        47,
        "several choices, each with its own finish reason",
        "choices are kept apart; the first one's reason is told",
        (
            Case(
                "openai_chat",
                take="two_choices",
                calls=(
                    ("call_KV74ykiJHvUEJfxmsI77xt18", *TIDES),
                    ("call_mXUEt8HH8LWCGYXEjVAUsdKr", *WEATHER),
                ),
            ),
        ),
    ),
    Quirk(
        48,
        "an error as a payload, after HTTP 200",
        "the stream fails with it; what was told stays told",
        (
            Case(
                "openai_chat",
                take="error_after_200",
                end="failed provider_error",
                broken=(("get_tides", "provider_error"),),
            ),
        ),
    ),
    Quirk(
        49,
        "`finish_reason` is `error`",
        "the stream fails",
        (
            Case("openai_chat", take="finish_error", text="One mom", end="failed provider_error"),
            Case(
                "openai_chat",
                chat({"content": "One mom"}, finish="error"),
                text="One mom",
                end="failed provider_error",
                has=({"kind": "failed", "retryable": True},),
            ),
        ),
    ),
    Quirk(
        50,
        "an error in an SSE field `error:`",
        "read as an error payload",
        (
            Case(
                "openai_chat",
                take="error_field",
                text="One mom",
                end="failed provider_error",
                notes=("wire.error_field",),
            ),
        ),
    ),
    Quirk(
        51,
        "an error as a bare text, nested, or inside `x_groq`",
        "all three fail the stream with their own words",
        (
            Case(
                "openai_chat",
                sse(chunk({"content": "Hi"}), {"error": "over capacity"}),
                text="Hi",
                end="failed provider_error",
                has=({"kind": "failed", "error": "over capacity"},),
            ),
            Case(
                "openai_chat",
                sse(chunk({"content": "Hi"}), {"error": {"message": "over capacity", "code": 503}}),
                text="Hi",
                end="failed provider_error",
                has=({"kind": "failed", "error": "over capacity", "retryable": True},),
            ),
            Case(
                "openai_chat",
                sse(
                    chunk({"content": "Hi"}),
                    chunk({}, x_groq={"id": "r", "error": "over capacity"}),
                ),
                text="Hi",
                end="failed provider_error",
                has=({"kind": "failed", "error": "over capacity"},),
            ),
        ),
    ),
    Quirk(
        52,
        "the first chunk has no choices but filter results",
        "known, and of no meaning for the answer",
        (
            Case(
                "azure_foundry",
                take="azure_content_filter",
                calls=(("call_EH8WO6QASS9iN0AHCiXaUge1", *WEATHER),),
            ),
        ),
    ),
    Quirk(
        53,
        "a late chunk has a choice without `delta`",
        "no delta is an empty delta",
        (
            Case(
                "azure_foundry",
                take="azure_content_filter",
                calls=(("call_EH8WO6QASS9iN0AHCiXaUge1", *WEATHER),),
            ),
            Case(
                "openai_chat",
                sse(
                    chunk({"content": "Hi"}),
                    {"choices": [{"index": 0, "content_filter_offsets": {"check_offset": 4}}]},
                    chunk(finish="stop"),
                    "[DONE]",
                ),
                text="Hi",
                end="finish stop",
            ),
        ),
    ),
    Quirk(
        54,
        "`reasoning_details` in pieces under one index, the signature last",
        "the text is told once; every piece rides along as the echo of its delta, in order",
        (
            Case(
                "openai_chat",
                take="reasoning_details",
                reasoning="Which harbour?",
                calls=(("call_rKQt5NmdQAivWcMm4RutJzW3", *TIDES),),
            ),
        ),
        otherwise="Pieces are not put together here: that is done when they are sent back.",
    ),
    Quirk(
        55,
        "a request is refused because `reasoning_content` was not sent back",
        "reasoning is told as such, so that it can be sent back",
        why_not="a matter of requests, not of streams: "
        "`tests/encoding/test_encode_requests.py::test_chat_gets_reasoning_back_beside_calls_only`",
    ),
    Quirk(
        56,
        "Together",
        "served as any other imitator",
        why_not="no deviation of this vendor is known to us",
    ),
)
