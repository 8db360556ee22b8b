"""OpenAI Responses and those who imitate it."""

from __future__ import annotations

from .row import TIDES, WEATHER, Case, Quirk, responses, sse

ITEM = {
    "type": "function_call",
    "id": "fc_1",
    "call_id": "call_1",
    "name": "f",
    "arguments": '{"a":1}',
}
DELTA = "response.function_call_arguments.delta"

RESPONSES = (
    Quirk(
        57,
        "`item_id` differs on every event",
        "a call is found by its place, `output_index`",
        (
            Case(
                "openai_responses",
                take="rotating_item_ids",
                calls=(
                    ("call_ZrhuZxVXqRMX5KA2HkQQsC5p", *WEATHER),
                    ("call_GkES3LkWAIYWvK4iz7BCcENU", *TIDES),
                ),
            ),
        ),
    ),
    Quirk(
        58,
        "`item_id` is empty, and `output_index` slips between delta and done",
        "the last open item of that type is meant",
        (
            Case(
                "openai_responses",
                take="empty_item_ids",
                calls=(("call_hNeddGikiO9t8BAUYn3OJr2d", *WEATHER),),
            ),
        ),
    ),
    Quirk(
        59,
        "`content_index` grows with each delta of one text",
        "text belongs to its item; that index opens nothing",
        (
            Case(
                "openai_responses",
                responses(
                    *(
                        {
                            "type": "response.output_text.delta",
                            "item_id": "msg_1",
                            "output_index": 0,
                            "content_index": n,
                            "delta": text,
                        }
                        for n, text in enumerate(("High ", "water"))
                    )
                ),
                text="High water",
                end="finish stop",
                has=(
                    {"kind": "text_delta", "text": "High ", "part": 0},
                    {"kind": "text_delta", "text": "water", "part": 0},
                ),
            ),
        ),
    ),
    Quirk(
        60,
        "the final response renames the items",
        "`call_id` first, then the place: still one call",
        (
            Case(
                "openai_responses",
                take="ids_differ_at_the_end",
                calls=(("call_rHONsGoLpBHaJjoCBneZoa5k", *WEATHER),),
            ),
        ),
    ),
    Quirk(
        61,
        "arguments only in `.done`",
        "told as one delta",
        (
            Case(
                "openai_responses",
                take="done_without_deltas",
                calls=(
                    ("call_jpES9U15Y3oHwRZnHvdigxqS", *WEATHER),
                    ("call_XBGd4Fo4ZZNlF5PTUKR8H4rP", *TIDES),
                ),
            ),
        ),
    ),
    Quirk(
        62,
        "arguments only in `output_item.done`",
        "start, one delta and the call from the item alone",
        (
            Case(
                "openai_responses",
                take="item_done_only",
                calls=(("call_sNEjfmloDkgb6Q8uJMPW1w8j", *TIDES),),
            ),
        ),
    ),
    Quirk(
        63,
        "`response.created` or `content_part.added` is missing",
        "nothing waits for them",
        (
            Case(
                "openai_responses",
                take="created_missing",
                calls=(("call_CLATyTCmJOKg9TIOHkiqQLVS", *TIDES),),
            ),
        ),
    ),
    Quirk(
        64,
        "the closing events are emptied",
        "an empty copy never replaces what was heard",
        (
            Case(
                "openai_responses",
                take="emptied_done",
                notes=("args.done_empty",),
                calls=(("call_0YYoR8urtDldkP1HEUMqzm5M", *WEATHER),),
            ),
        ),
    ),
    Quirk(
        65,
        "`output` of the final response is empty; reasoning is only in `output_item.done`",
        "items count where they are said; encrypted reasoning is kept whole as an echo",
        (
            Case(
                "openai_responses",
                take="empty_output_in_completed",
                text="Looking.",
                calls=(("call_DsS0Vtnz2StfegIZl7clQvQ8", *TIDES),),
            ),
            Case(
                "openai_responses",
                take="encrypted_reasoning",
                calls=(("call_kfVaHIxWpDXKjmmvYUkJhx6v", *WEATHER),),
                has=({"kind": "reasoning_delta", "echo": {"type": "reasoning"}},),
            ),
        ),
    ),
    Quirk(
        66,
        "`response.failed`",
        "the stream fails with the response's error",
        (
            Case(
                "openai_responses",
                take="response_failed",
                text="One moment",
                end="failed provider_error",
            ),
        ),
    ),
    Quirk(
        67,
        "`response.incomplete`",
        "a finish, `length` or `content_filter`, with usage; open calls are broken",
        (
            Case(
                "openai_responses",
                take="max_tokens_in_arguments",
                broken=(("write_file", "length"),),
                end="finish length",
                usage=(301, 58),
            ),
            Case(
                "openai_responses",
                take="content_filter",
                text="The recipe begins with",
                end="finish content_filter",
                usage=(301, 58),
            ),
        ),
    ),
    Quirk(
        68,
        "`error` is flat or nested",
        "both are read",
        (
            Case(
                "openai_responses",
                take="error_after_200",
                end="failed provider_error",
                calls=(("call_6BDxQ85l0oEEFJ3UZtFgXpjn", *WEATHER),),
                broken=(("get_tides", "provider_error"),),
            ),
            Case(
                "openai_responses",
                take="error_nested",
                end="failed provider_error",
                broken=(("get_tides", "provider_error"),),
            ),
        ),
    ),
    Quirk(
        69,
        "the bytes end and no terminal event came",
        "truncated; a call whose item was done stays a call, as the wire had closed it",
        (
            Case(
                "openai_responses",
                take="cut_before_completed",
                end="failed truncated",
                calls=(("call_vfYfskZTeg4FFAXnCb2PHUgs", *WEATHER),),
            ),
        ),
    ),
    Quirk(
        70,
        "`obfuscation` fields",
        "padding; never text",
        (
            Case(
                "openai_responses",
                take="obfuscation",
                calls=(("call_7MRDJdpFppOi2b3aTglFwW6f", *TIDES),),
            ),
        ),
    ),
    Quirk(
        71,
        "`shell_call_command.*` have no `item_id`; the output's delta is an object",
        "found by `output_index`; told as progress with `command_index`, the object as it is",
        (
            Case(
                "openai_responses",
                take="type_shell_call",
                end="finish stop",
                calls=(
                    (
                        "call_SSU9WSmgmN9IvENRXkn46zPe",
                        "shell",
                        {
                            "commands": ["ls -la", "wc -l *.md"],
                            "max_output_length": None,
                            "timeout_ms": 5000,
                        },
                    ),
                ),
                has=(
                    {
                        "kind": "tool_progress",
                        "call": 0,
                        "status": "command",
                        "payload": {"command_index": 1},
                    },
                ),
            ),
        ),
    ),
    Quirk(
        72,
        "`apply_patch_call_operation_diff.*`, which the SDK does not list",
        "told as progress of the call; its arguments are the whole operation, which its item brings",
        (
            Case(
                "openai_responses",
                take="type_apply_patch_call",
                calls=(
                    (
                        "call_wkVC6DjC2hIfVlOdNVcTD7w9",
                        "apply_patch",
                        {
                            "type": "update_file",
                            "path": "src/app.ts",
                            "diff": "@@\n-const limit = 10;\n+const limit = 20;\n",
                        },
                    ),
                ),
                has=({"kind": "tool_progress", "call": 0, "status": "diff"},),
            ),
        ),
        otherwise="Telling the diff as pieces of the arguments is often advised. The pieces are not a prefix "
        "of the arguments, which are an object with the diff in it, so they are progress here.",
    ),
    Quirk(
        73,
        "a bridge from Responses to Chat loses which call a fragment is of",
        "on the Chat wire a new id with a name begins a call, whatever the index",
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
        74,
        "`sequence_number` is not in order",
        "events count in the order in which they come",
        (
            Case(
                "openai_responses",
                responses(
                    {
                        "type": "response.output_item.added",
                        "sequence_number": 9,
                        "output_index": 0,
                        "item": {**ITEM, "arguments": ""},
                    },
                    {
                        "type": DELTA,
                        "sequence_number": 3,
                        "output_index": 0,
                        "item_id": "fc_1",
                        "delta": '{"a"',
                    },
                    {
                        "type": DELTA,
                        "sequence_number": 3,
                        "output_index": 0,
                        "item_id": "fc_1",
                        "delta": ":1}",
                    },
                    {
                        "type": "response.output_item.done",
                        "sequence_number": 1,
                        "output_index": 0,
                        "item": ITEM,
                    },
                ),
                calls=(("call_1", "f", {"a": 1}),),
            ),
            Case(
                "openai_responses",
                sse(
                    {
                        "type": "response.created",
                        "sequence_number": 5,
                        "response": {"id": "resp_1", "model": "m"},
                    },
                    {
                        "type": "error",
                        "sequence_number": 0,
                        "code": "server_error",
                        "message": "gone",
                    },
                ),
                end="failed provider_error",
            ),
        ),
    ),
)
