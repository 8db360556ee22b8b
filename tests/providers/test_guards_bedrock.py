"""Guards of Bedrock that no recorded stream passes: each test fails if its guard is removed."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from streamnorm import Limits, Normalizer
from streamnorm.events import Failed, ProviderToolResult
from tests.providers.streams import fate, payloads
from tests.providers.test_evidence_wires import (
    B_END,
    WHOLE,
    b_delta,
    b_said,
    b_start,
    b_stop,
    told,
)

DOUBTED = [("pay", "conflict!")]


def of_kind(kind: str, *stream: Any) -> list[Any]:
    return [event for event in payloads("bedrock", *stream) if event.kind == kind]


# --- calls ----------------------------------------------------------------------------------------


def test_text_in_the_place_of_a_call_that_was_closed_changes_nothing():
    """A proxy was seen to use one index for two kinds of block."""
    stream = (b_start(), b_stop(), b_said(text="x"), b_said(text=""), *B_END)
    assert told("bedrock", *stream) == [("pay", "")]


def test_a_call_that_was_told_is_the_same_one_when_it_is_said_again_where_blocks_say_no_place():
    stream = [b_start(index=None), b_delta(WHOLE, None), b_stop(None)]
    other = [b_start("B", "rob", None)]
    assert told("bedrock", *stream, *other, *stream, *B_END) == [
        ("pay", WHOLE),
        ("rob", "conflict!"),
    ]
    differs = [b_start(index=None), b_delta("{}", None), b_stop(None)]
    assert told("bedrock", *stream, *other, *differs, *B_END)[1:] == [
        ("rob", "conflict!"),
        *DOUBTED,
    ]


def test_a_call_that_says_its_place_is_another_than_the_one_told_under_its_id_elsewhere():
    first, second = (b_start(), b_delta(WHOLE), b_stop()), (b_start(index=1), b_delta(WHOLE, 1))
    assert told("bedrock", *first, *second, b_stop(1), *B_END) == [("pay", WHOLE)] * 2


def test_a_call_that_is_closed_leaves_the_next_one_in_no_doubt_where_blocks_say_no_place():
    first, second = b_start(index=None), (b_start("B", "rob", None), b_delta(WHOLE, None))
    stop = b_stop(None)
    assert told("bedrock", first, stop, *second, stop, *B_END) == [("rob", WHOLE), ("pay", "")]
    assert told("bedrock", first, *second, stop, *B_END) == [*DOUBTED, ("rob", "conflict!")]


@pytest.mark.parametrize("odd", [{"contentBlockDelta": None}, {"contentBlockStop": None}, {}])
def test_an_event_that_says_nothing_makes_the_call_that_goes_on_doubtful(odd):
    stream = (b_start(), b_delta(WHOLE[:3]), odd, b_delta(WHOLE[3:]), b_stop(), *B_END)
    assert told("bedrock", *stream) == DOUBTED


def test_a_delta_that_says_nothing_behind_the_end_of_a_block_makes_its_call_doubtful():
    """Its fragment came late and lost its text: there is no proof of {} any more."""
    assert told("bedrock", b_start(), b_stop(), b_said(), *B_END) == DOUBTED


def test_an_empty_text_in_the_place_of_a_call_makes_it_doubtful_too():
    assert told("bedrock", b_start(), b_delta(WHOLE), b_said(text=""), b_stop(), *B_END) == DOUBTED


def test_a_fragment_without_its_text_for_a_closed_call_makes_the_open_ones_doubtful():
    """As text for a closed call would: it may be another's, whose place was garbled."""
    first, second = (b_start(), b_delta(WHOLE), b_stop()), b_start("B", "rob", 1)
    stream = (*first, second, b_delta(WHOLE, 1), b_said(0, toolUse={}), b_stop(1), *B_END)
    assert told("bedrock", *stream) == [("pay", WHOLE), ("rob", "conflict!")]


def test_text_in_a_place_that_cannot_be_read_makes_the_open_calls_doubtful():
    stream = (b_start(), b_delta(WHOLE), b_said("zero", text="x"), b_stop(), *B_END)
    assert told("bedrock", *stream) == DOUBTED


def test_who_runs_a_tool_must_be_readable():
    assert told("bedrock", b_start(type=5), b_delta(WHOLE), b_stop(), *B_END) == DOUBTED


def test_a_new_kind_that_holds_an_input_makes_the_open_calls_doubtful():
    new = {"new": {"input": "x"}}
    assert told("bedrock", b_start(), b_delta(WHOLE), new, b_stop(), *B_END) == DOUBTED


@pytest.mark.parametrize(("index", "calls"), [(0, DOUBTED), (1, [("pay", WHOLE)])])
def test_a_new_kind_makes_the_call_doubtful_whose_place_it_names(index: int, calls: Any):
    new = {"new": {"contentBlockIndex": index}}
    assert told("bedrock", b_start(), b_delta(WHOLE), new, b_stop(), *B_END) == calls


def test_a_fragment_under_another_name_makes_its_call_doubtful():
    odd = b_said(toolUse={"INPUT": "x"})
    assert told("bedrock", b_start(), b_delta(WHOLE), odd, b_stop(), *B_END) == DOUBTED


# --- results of tools that the provider runs ------------------------------------------------------


@pytest.mark.parametrize("pieces", [[{"text": "sunny"}], {"text": "sunny"}])
def test_a_result_that_was_not_begun_is_told_and_its_pieces_may_come_alone(pieces: Any):
    (result,) = of_kind("tool_result", b_said(toolResult=pieces), b_stop(), *B_END)
    assert result.output == [{"text": "sunny"}]


def test_a_result_that_was_not_ended_is_told_with_the_turn():
    start = {"toolResult": {"toolUseId": "A", "status": "error"}}
    begun = {"contentBlockStart": {"contentBlockIndex": 0, "start": start}}
    (result,) = of_kind("tool_result", begun, b_said(toolResult=[{"text": "no"}]), *B_END)
    assert (result.id, result.output, result.is_error) == ("A", [{"text": "no"}], True)


# --- the end --------------------------------------------------------------------------------------


def test_the_turn_ends_with_its_reason_whenever_the_counts_come():
    counts = {"metadata": {"usage": {"inputTokens": 3, "outputTokens": 4}, "trace": {"a": 1}}}
    reason = {"messageStop": {"stopReason": "tool_use", "additionalModelResponseFields": {"b": 2}}}
    body = (b_start(), b_delta(WHOLE))
    for rest in (
        (b_stop(), reason, counts),
        (counts, b_stop(), reason),
        (counts, {"metadata": {}}, b_stop(), reason),
    ):
        events = payloads("bedrock", *body, *rest)
        assert fate(events) == ([{"to": "me"}], ("finish", "tool_calls"))
        assert events[-1].raw_reason == "tool_use"  # type: ignore[union-attr]
        assert events[-1].echo == {  # type: ignore[union-attr]
            "trace": {"a": 1}, "additionalModelResponseFields": {"b": 2},
        }  # fmt: skip
        (usage,) = [e for e in events if e.kind == "usage"]
        assert (usage.input, usage.output) == (3, 4)  # type: ignore[union-attr]


# --- failures -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "again"),
    [
        ("internalServerException", True),
        ("modelStreamErrorException", True),
        ("modelTimeoutException", True),
        ("serviceUnavailableException", True),
        ("throttlingException", True),
        ("validationException", False),
    ],
)
@pytest.mark.parametrize("said", [{"message": "boom"}, "boom"])
def test_an_exception_as_an_sdk_hands_it_out_fails_the_stream(code: str, again: bool, said: Any):
    events = payloads("bedrock", b_start(), b_delta(WHOLE), {code: said})
    assert events[-1] == Failed("provider_error", "boom", again, code)
    assert fate(events)[0] == ["provider_error"]


def test_a_refusal_without_a_code_is_told_in_its_words():
    assert payloads("bedrock", {"message": "no access"})[-1] == Failed(
        "provider_error", "no access"
    )


# --- bodies of models that have a wire of their own -------------------------------------------------


def test_of_a_list_of_outputs_what_is_text_is_told_and_the_first_reason_counts():
    outputs = [{"text": "Hi"}, "x", {"text": 5}, {"text": ""}, {"stop_reason": "stop"}]
    events = payloads("bedrock", {"outputs": outputs})
    assert [e.text for e in events if e.kind == "text_delta"] == ["Hi"]
    assert fate(events) == ([], ("finish", "stop"))


@pytest.mark.parametrize(
    ("word", "last"), [("stop", ("finish", "stop")), ("new_word", ("finish", "other"))]
)
def test_the_reason_beside_a_text_is_its_end_and_without_one_it_is_cut(word: str, last: Any):
    assert fate(payloads("bedrock", {"generation": "Hi", "stop_reason": word}))[1] == last
    for cut in ([{"generation": "Hi"}], [{"generation": "Hi"}, {"stop_reason": word}]):
        assert fate(payloads("bedrock", *cut))[1] == ("failed", "truncated")


@pytest.mark.parametrize(
    ("metrics", "counts"),
    [
        ({"inputTokenCount": 3, "outputTokenCount": 4}, [(3, 4)]),
        ({"outputTokenCount": 4}, [(None, 4)]),
        ({}, []),
        (5, []),
    ],
)
def test_what_the_service_counts_beside_a_text_is_its_usage(metrics: Any, counts: Any):
    said = {"generation": "Hi", "stop_reason": "stop", "amazon-bedrock-invocationMetrics": metrics}
    events = payloads("bedrock", said)
    usages = [e for e in events if e.kind == "usage"]
    assert [(e.input, e.output) for e in usages] == counts
    assert all(None not in e.raw.values() for e in usages)


# --- pictures ---------------------------------------------------------------------------------------

PIXELS = b"GIF89a123456"


def picture(image: Any) -> list[Any]:
    start = {"contentBlockIndex": 1, "start": {"image": {"format": "gif"}}}
    delta = {"contentBlockIndex": 1, "delta": {"image": image}}
    return [
        {"contentBlockStart": start},
        {"contentBlockDelta": delta},
        {"contentBlockStop": {"contentBlockIndex": 1}},
        {"contentBlockDelta": {"contentBlockIndex": 2, "delta": {"text": "See."}}},
        *B_END,
    ]


def shown(image: Any, limit: int = 1000) -> list[tuple[str, Any]]:
    pipe = Normalizer("bedrock", limits=Limits(media=limit))
    events = [event for said in picture(image) for event in pipe.feed_payload(said)] + pipe.close()
    return [(e.kind, getattr(e, "data", None)) for e in events[1:3]]


@pytest.mark.parametrize(("limit", "first"), [(12, ("media", PIXELS)), (11, None)])
def test_a_picture_is_told_when_its_block_ends_and_may_be_as_long_as_the_limit(limit: int, first):
    image = {"source": {"bytes": base64.b64encode(PIXELS).decode()}}
    told = [first, ("text_delta", None)] if first else []
    assert shown(image, limit) == told


def test_a_picture_is_of_the_type_that_its_start_says():
    image = {"source": {"bytes": base64.b64encode(PIXELS).decode()}}
    assert [e.mime_type for e in of_kind("media", *picture(image))] == ["image/gif"]


def test_a_result_whose_start_says_nothing_is_told():
    nothing = {"contentBlockStart": {"start": {}, "contentBlockIndex": 0}}
    piece = {"contentBlockIndex": 0, "delta": {"toolResult": [{"text": "ok"}]}}
    stream = (nothing, {"contentBlockDelta": piece}, b_stop(), *B_END)
    (result,) = [e for e in payloads("bedrock", *stream) if isinstance(e, ProviderToolResult)]
    assert result.output == [{"text": "ok"}]


def test_a_picture_that_is_elsewhere_has_no_bytes():
    image = {"source": {"s3Location": {"uri": "s3://x/y"}}}
    assert shown(image, limit=2) == [("media", None), ("text_delta", None)]


@pytest.mark.parametrize("image", ["x", {"source": 5}, {"source": {"bytes": 5}}])
def test_a_picture_that_is_none_is_passed_on(image: Any):
    assert shown(image)[0] == ("unrecognized", None)


# --- agents -----------------------------------------------------------------------------------------


def text_of_agent(text: bytes, **more: Any) -> Any:
    return {"chunk": {"bytes": base64.b64encode(text).decode(), **more}}


def control(*inputs: Any) -> Any:
    return {"returnControl": {"invocationId": "i", "invocationInputs": list(inputs)}}


ASKED = {"functionInvocationInput": {"function": "f"}}


def test_what_an_agent_says_behind_its_calls_does_not_change_the_end():
    events = payloads("bedrock", control(ASKED), text_of_agent(b"Please, call this."))
    assert fate(events) == ([{}], ("finish", "tool_calls"))
    events = payloads("bedrock", control({"newInput": {}}), text_of_agent(b"Please, call this."))
    assert fate(events) == ([], ("finish", "tool_calls"))


def test_what_an_agent_says_alone_ends_with_its_body():
    cited = {"citations": [{"n": 1}]}
    events = payloads("bedrock", text_of_agent(b"All is well.", attribution=cited))
    assert [e.payload for e in events if e.kind == "citation"] == cited["citations"]
    assert fate(events) == ([], ("finish", "stop"))


def test_an_invocation_of_a_new_kind_or_of_none_is_passed_on_and_those_beside_it_are_told():
    odd = [{"newInput": {"function": "f"}}, {"functionInvocationInput": "f"}, "x"]
    events = payloads("bedrock", control(*odd, ASKED))
    told = [e.payload["returnControl"] for e in events if e.kind == "unrecognized"]
    assert (told, fate(events)) == (odd, ([{}], ("finish", "tool_calls")))


def test_a_call_of_an_agent_in_a_damaged_payload_is_none():
    events = payloads("bedrock", {**control(ASKED), "contentBlockStop": {"contentBlockIndex": "x"}})
    assert fate(events)[0] == ["conflict"]


@pytest.mark.parametrize("said", [{}, {"image": {"format": "gif"}}, {"toolResult": {}}])
def test_a_start_of_no_call_voids_the_call_that_is_open_in_its_place_and_no_other(said: Any):
    nothing = {"contentBlockStart": {"start": said, "contentBlockIndex": 0}}
    call, rest = (b_start(), b_delta(WHOLE)), (b_stop(), *B_END)
    assert fate(payloads("bedrock", *call, nothing, *rest))[0] == ["conflict"]
    assert fate(payloads("bedrock", *call, b_stop(), nothing, *rest))[0] == [{"to": "me"}]
    assert fate(payloads("bedrock", b_start(), b_stop(), nothing, *B_END))[0] == [{}]
    elsewhere = {"contentBlockStart": {"start": said, "contentBlockIndex": 1}}
    assert fate(payloads("bedrock", *call, elsewhere, *rest))[0] == [{"to": "me"}]
