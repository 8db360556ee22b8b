"""What vendors add to a wire that is not theirs, and wires that few speak."""

from __future__ import annotations

from .row import TIDES, WEATHER, Case, Quirk

VENDORS = (
    Quirk(
        116,
        "a call of a function that the provider runs, which the client is to answer with its arguments "
        "(Kimi's `$web_search`)",
        "`runs_on` is the provider; its result is told with it and goes back; the turn pauses",
        (
            Case(
                "openai_chat",
                take="builtin_web_search",
                calls=(
                    (
                        "call_4",
                        "$web_search",
                        {"search_result": {"search_id": "c7e5"}, "usage": {"total_tokens": 9120}},
                    ),
                ),
                end="finish pause",
                has=({"kind": "tool_result", "id": "call_4", "family": "web-search"},),
            ),
        ),
    ),
    Quirk(
        117,
        "an error at HTTP 200 in `base_resp`, which is there with every chunk (MiniMax)",
        "a status other than zero fails the stream, with the number as its code",
        (
            Case(
                "openai_chat",
                take="base_resp_error",
                end="failed provider_error",
                has=({"kind": "failed", "code": "1027", "retryable": False},),
            ),
            Case(
                "openai_chat",
                take="base_resp",
                text="Twelve boats.",
                end="finish stop",
                notes=("wire.shape_odd",),
            ),
        ),
    ),
    Quirk(
        118,
        "sources beside the choices: `web_search` (GLM), `search_results` (Perplexity), `citations` (xAI)",
        "citations, told once however often they come",
        (
            Case(
                "openai_chat",
                take="web_search_results",
                text="At 07:40[ref_1].",
                end="finish stop",
                has=({"kind": "citation", "part": 0},),
            ),
            Case(
                "openai_chat",
                take="search_citations",
                text="At 07:40.",
                end="finish stop",
                has=({"kind": "citation", "payload": {"citations": ["https://example.org/1"]}},),
            ),
        ),
    ),
    Quirk(
        119,
        "a text or arguments come whole with every event, or in pieces: the request decides, and no "
        "payload says (DashScope)",
        "what begins as all before it is held until a text, or the last event, tells; none is lost or "
        "told twice",
        (
            Case(
                "dashscope",
                take="text_whole",
                text="The harbour is open until ten in the evening.",
                end="finish stop",
                notes=("wire.keepalive",),
            ),
            Case(
                "dashscope",
                take="calls_whole",
                text="Both, then.",
                calls=(
                    ("call_nmFuaVTXccQ5Y4TFF4Cii5", *WEATHER),
                    ("call_3TDpKUqTfmH4rDcP0beQYN", *TIDES),
                ),
                notes=("wire.keepalive",),
            ),
        ),
    ),
    Quirk(
        120,
        "no call has a closing mark, and no response a reason (Mistral conversations)",
        "the end of the response makes its calls whole; without it they are broken",
        (
            Case(
                "mistral_conversations",
                take="cut_after_whole_arguments",
                broken=(("get_weather", "truncated"),),
                end="failed truncated",
            ),
        ),
    ),
    Quirk(
        121,
        "items of a vendor's own, as `acme:telemetry` (Open Responses)",
        "passed on whole",
        (
            Case(
                "openai_responses",
                take="vendor_items",
                text="Done.",
                end="finish stop",
                notes=("wire.kind_unknown",),
                has=({"kind": "unrecognized"},),
            ),
        ),
    ),
)
