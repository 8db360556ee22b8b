"""DashScope: texts and arguments in pieces or whole with every event, by one set of events."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from streamnorm import Conversation, Normalizer, normalize, provider
from streamnorm.events import BrokenToolCall, Failed, ReasoningDelta, TextDelta, ToolCall
from tests.conftest import RECORDINGS, bytewise, load, piped, run, sse

FOLDER = RECORDINGS / "dashscope"


def said(finish: str = "null", **message: Any) -> dict[str, Any]:
    choice = {"message": {"role": "assistant", **message}, "finish_reason": finish}
    return {"output": {"choices": [choice]}, "request_id": "r"}


def told(*payloads: dict[str, Any]) -> list[Any]:
    pipe = Normalizer("dashscope", seed="tests")
    events = [event for payload in payloads for event in pipe.feed_payload(payload)]
    return events + pipe.close()


def text_of(events: list[Any]) -> str:
    return "".join(event.text for event in events if isinstance(event, TextDelta))


def gist(take: str) -> tuple[Any, ...]:
    events = run("dashscope", [load(FOLDER / f"{take}.sse")[1]])
    calls = [(e.name, e.arguments) for e in events if isinstance(e, ToolCall)]
    return text_of(events), calls, events[-1]


# --- pieces, or all of it -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pieces", "whole"), [("text_only", "text_whole"), ("parallel_calls", "calls_whole")]
)
def test_both_ways_to_ask_give_the_same_answer(pieces: str, whole: str):
    assert gist(pieces) == gist(whole)


def in_pieces(pieces: list[str]) -> list[dict[str, Any]]:
    return [*(said(content=piece) for piece in pieces), said("stop", content="")]


PIECES = st.lists(st.text("ab ", min_size=1, max_size=3), min_size=1, max_size=8)


def goes_on_twice(texts: list[str]) -> bool:
    """Do they look whole: two that go on from the one before, and are not the first, repeated?"""
    first, grown = texts[0], 0
    for before, text in pairwise(texts):
        if not text.startswith(before):
            return False
        grown += text != before and text != (first * len(text))[: len(text)]
        if grown == 2:
            return True
    return False


@given(PIECES)
@example(["1", "1"])
@example(["0", "00"])
@example(["哈", "哈"])
@example(["ha", "ha", "ha"])
@example(["ha", "haha", "ha!"])
@example(["1", "12"])
@example(["ha", "haha", "hahaha"])
@example(["a"] * 100)
def test_no_piece_is_lost_however_often_it_is_said(pieces: list[str]):
    """Only pieces that go on from one another twice cannot be told from whole texts."""
    if not goes_on_twice(pieces):
        assert text_of(told(*in_pieces(pieces))) == "".join(pieces)


@given(PIECES, st.data())
def test_a_text_that_comes_whole_again_and_again_is_told_once(pieces: list[str], data: Any):
    texts = ["".join(pieces[: at + 1]) for at in range(len(pieces))]
    again = [text for text in texts for _ in range(data.draw(st.integers(1, 3)))]
    events = told(*(said(content=text) for text in again), said("stop", content=texts[-1]))
    assert text_of(events) == "".join(pieces)


@pytest.mark.parametrize(
    ("texts", "heard"),
    [
        (["ha", "ha", "!"], "haha!"),  # pieces that are alike
        (["ha", "ha", "ha!"], "ha!"),  # the whole, twice the same
        (["1", "12", "3"], "1123"),  # a piece that begins as the first one did
        (["1", "12", "123"], "123"),
        (["1", "12"], "12"),  # nothing tells, and it went on
        (["1", "1"], "11"),  # nothing tells, and nobody says all of it without news
        (["a", "ab", "abc", "", "abc"], "abc"),
        (["a", "ab", "abc", "ab", "abcd"], "abcd"),  # an older one takes nothing back
        (["a", "ab", "abc", "xyz"], "abcxyz"),  # another one is told as well
    ],
)
def test_what_is_told_of_texts_that_may_be_either_before_a_cut(texts: list[str], heard: str):
    assert text_of(told(*(said(content=text) for text in texts))) == heard


def test_what_may_be_either_is_told_as_soon_as_something_decides():
    pipe = Normalizer("dashscope", seed="tests")
    heard = [text_of(pipe.feed_payload(said(content=t))) for t in ("a", "a", "a", "b", "b")]
    assert heard == ["a", "", "", "aab", "b"]
    pipe = Normalizer("dashscope", seed="tests")
    heard = [text_of(pipe.feed_payload(said(content=t))) for t in ("a", "ab", "abc", "abcd")]
    assert heard == ["a", "", "bc", "d"]


def test_no_more_than_some_texts_are_held():
    pipe = Normalizer("dashscope", seed="tests")
    heard = "".join(text_of(pipe.feed_payload(said(content="a"))) for _ in range(100))
    assert heard == "a" * 100


def test_a_long_text_that_is_said_again_is_no_piece_and_is_not_held():
    pipe = Normalizer("dashscope", seed="tests")
    long = "ab" * 200
    heard = [text_of(pipe.feed_payload(said(content=t))) for t in (long, long, long + "ab")]
    assert heard == [long, "", "ab"]


def order(*payloads: dict[str, Any]) -> list[tuple[str, str]]:
    """What was told, in its order: kinds and texts."""
    kinds = ("reasoning_delta", "text_delta", "tool_call_start")
    return [(e.kind, getattr(e, "text", "")) for e in told(*payloads) if e.kind in kinds]


@pytest.mark.parametrize("silent", [{}, {"reasoning_content": ""}, {"reasoning_content": None}])
def test_thoughts_that_are_alike_are_told_before_the_text(silent):
    thoughts = [said(content="", reasoning_content="ha")] * 2
    events = order(*thoughts, said(content="Hi", **silent), said("stop", content=""))
    assert events == [("reasoning_delta", "ha"), ("reasoning_delta", "ha"), ("text_delta", "Hi")]


def test_a_text_beside_a_thought_that_may_be_either_waits_for_it():
    both = said(content="Hi", reasoning_content="ha")
    thoughts = [said(content="", reasoning_content="ha"), both]
    pieces = order(*thoughts, said(content=" you"), said("stop", content=""))
    told_apart = [("reasoning_delta", "ha"), ("reasoning_delta", "ha"), ("text_delta", "Hi")]
    assert pieces == [*told_apart, ("text_delta", " you")]
    whole = order(*thoughts, said("stop", content="Hi you", reasoning_content="ha"))
    assert whole == [("reasoning_delta", "ha"), ("text_delta", "Hi"), ("text_delta", " you")]


def test_thoughts_that_went_on_are_whole_though_the_text_comes_without_them():
    thoughts = [said(content="", reasoning_content=text) for text in ("The", "The unit.")]
    events = told(*thoughts, said(content="Cel"), said("stop", content="Celsius."))
    assert "".join(e.text for e in events if isinstance(e, ReasoningDelta)) == "The unit."
    assert text_of(events) == "Celsius."


def test_texts_that_are_alike_are_told_before_a_call():
    said_so = [said(content="ha"), said(content="ha")]
    calls = {"tool_calls": call("{}")}
    pieces = order(*said_so, said(content="", **calls), said("tool_calls", content=""))
    assert pieces == [("text_delta", "ha"), ("text_delta", "ha"), ("tool_call_start", "")]
    whole = order(said(content="ha"), said(content="ha", **calls))
    assert whole == [("text_delta", "ha"), ("tool_call_start", "")]


def test_the_older_form_loses_no_piece():
    def older(text: str, finish: str = "null") -> dict[str, Any]:
        return {"output": {"text": text, "finish_reason": finish}, "request_id": "r"}

    assert text_of(told(older("1"), older("1"), older("", "stop"))) == "11"
    assert text_of(told(older("1"), older("12"), older("12", "stop"))) == "12"


def test_reasoning_that_comes_whole_beside_the_text_is_told_once():
    events = run("dashscope", [load(FOLDER / "reasoning.sse")[1]])
    thoughts = "".join(e.text for e in events if isinstance(e, ReasoningDelta))
    assert (thoughts, text_of(events)) == ("The unit is not given.", "Celsius.")


def test_what_was_held_is_told_before_an_error_and_before_a_cut():
    error = {"code": "InternalError.Timeout", "message": "Later.", "request_id": "r"}
    events = told(said(content="Hi"), said(content="Hi there"), error)
    assert text_of(events) == "Hi there"
    assert events[-1] == Failed("provider_error", "Later.", True, "InternalError.Timeout")
    assert text_of(told(said(content="Hi"), said(content="Hi there"))) == "Hi there"


# --- calls ----------------------------------------------------------------------------------------


def call(text: str, **more: Any) -> list[dict[str, Any]]:
    function = {"name": "tides", "arguments": text}
    return [{"index": 0, "id": "call_1", "type": "function", "function": function, **more}]


def test_a_reason_makes_a_call_whole_and_a_cut_does_not():
    whole = told(said(content="", tool_calls=call('{"a": 1}')), said("tool_calls", content=""))
    assert [e.arguments for e in whole if isinstance(e, ToolCall)] == [{"a": 1}]
    cut = told(said(content="", tool_calls=call('{"a": 1}')))
    assert [e.reason for e in cut if isinstance(e, BrokenToolCall)] == ["truncated"]


def test_a_call_that_is_whole_beside_its_reason_is_told_even_without_arguments():
    events = told(said("tool_calls", content="", tool_calls=call("{}")))
    assert [e.arguments for e in events if isinstance(e, ToolCall)] == [{}]


ERROR = {"code": "InternalError", "message": "Later."}
END = said("tool_calls", content="", tool_calls=call('{"a": 1}'))
END_OF_CHOICE = END["output"]["choices"][0]


@pytest.mark.parametrize(
    ("last", "failed"),
    [
        ({**END, **ERROR}, ("Later.", True, "InternalError")),
        ({**END, "code": "InvalidParameter"}, ("InvalidParameter", False, "InvalidParameter")),
        ({**END, "message": "Later."}, ("Later.", False, None)),
        ({**END, "status_code": 500}, ("the provider reported an error", False, None)),
        ({**END, "error": ERROR}, ("Later.", True, "InternalError")),
        ({"output": {**END["output"], "error": ERROR}}, ("Later.", True, "InternalError")),
        (
            {"output": {"choices": [{**END_OF_CHOICE, "error": ERROR}]}},
            ("Later.", True, "InternalError"),
        ),
        ({"output": {**END["output"], "error": "Later."}}, ("Later.", False, None)),
    ],
)
def test_an_error_beside_or_inside_an_output_breaks_what_its_end_would_tell(
    last: Any, failed: tuple[str, bool, str | None]
):
    events = told(said(content="", tool_calls=call('{"a": 1}')), last)
    assert [e.reason for e in events if isinstance(e, BrokenToolCall)] == ["provider_error"]
    assert not any(isinstance(e, ToolCall) for e in events)
    assert events[-1] == Failed("provider_error", *failed)


def test_an_event_that_is_named_an_error_is_one_whatever_it_says():
    begun = sse(said(content="", tool_calls=call('{"a": 1}')))
    for body in (b"", begun):
        events = run("dashscope", [body + sse({"request_id": "r"}, "error")])
        assert events[-1] == Failed("provider_error", "the provider reported an error")
    events = run("dashscope", [begun + sse({**ERROR, "request_id": "r"}, "error")])
    assert events[-1] == Failed("provider_error", "Later.", True, "InternalError")


def test_words_that_all_is_well_are_no_error():
    well = {"status_code": 200, "code": "Success", "message": "success"}
    events = told({**END, **well})
    assert [e.arguments for e in events if isinstance(e, ToolCall)] == [{"a": 1}]


def in_turn(*texts: str, again: bool) -> list[Any]:
    """These texts as the arguments of one call; ``again``: each of them names it."""
    named = {} if again else {"id": "", "function": {"name": ""}}
    entries = [call(texts[0])] + [call(text) for text in texts[1:]]
    for (entry,) in entries[1:] if not again else ():
        entry |= {"id": "", "function": {**entry["function"], **named["function"]}}
    payloads = [said(content="", tool_calls=entry) for entry in entries]
    events = told(*payloads, said("tool_calls", content=""))
    ends = [e for e in events if isinstance(e, ToolCall | BrokenToolCall)]
    return [e.arguments if isinstance(e, ToolCall) else e.reason for e in ends]


@pytest.mark.parametrize(
    ("texts", "again", "whole"),
    [
        (['{"n":1', '{"n":12', '{"n":123}'], True, {"n": 123}),
        (['{"n":', "1", "12", "123}"], False, {"n": 112123}),
        (['{"n":', '{"n":', '{"n":1}'], True, {"n": 1}),  # an event without news
        (['{"n":', '{"n":', "1}}"], False, {"n": {"n": 1}}),  # a piece that repeats the first
        (['{"n":', '{"n":1}'], False, "invalid_json"),  # it is a piece, and all of them are no JSON
        (['{"n":1', '{"m":2}'], True, "invalid_json"),
        (['{"n":', '{"n":1', "}"], True, "conflict"),  # whole every time, and then a piece
        (['{"n":', '{"n":1}', '{"n":'], True, {"n": 1}),  # an older one takes nothing back
        (["", "{}", "{}"], True, {}),
    ],
)
def test_arguments_are_whole_every_time_if_each_names_its_call_and_pieces_if_not(
    texts: list[str], again: bool, whole: Any
):
    assert in_turn(*texts, again=again) == [whole]


def test_another_id_in_the_place_of_a_call_that_goes_on_is_a_doubt_and_not_a_second_call():
    one, other = call('{"a": 1}'), call('{"a": 1}', id="call_2")
    events = told(said(content="", tool_calls=one), said("tool_calls", tool_calls=other))
    assert not any(isinstance(e, ToolCall) for e in events)


def test_the_id_of_a_call_in_another_place_is_not_told_a_second_time():
    one, other = call('{"a": 1}', index=3), call('{"a": 1}')
    events = told(said("length", content="", tool_calls=one), said("length", tool_calls=other))
    assert sum(isinstance(e, ToolCall) for e in events) == 1


def test_of_a_call_that_is_said_in_two_places_nobody_knows_which_is_meant():
    one, other = call('{"a": 1}', index=1), call('{"a": 1}', index=0)
    events = told(said(content="", tool_calls=one), said("tool_calls", tool_calls=other))
    assert not [e for e in events if isinstance(e, ToolCall)]
    assert [e.reason for e in events if isinstance(e, BrokenToolCall)] == ["conflict", "conflict"]


# --- the numbers of events ------------------------------------------------------------------------


def frames_of(*numbers: Any) -> bytes:
    """A call in three pieces and its end."""
    texts = ('{"a":', "1", "}")
    payloads = [said(content="", tool_calls=call(texts[0]))]
    payloads += [said(content="", tool_calls=call(t, id="")) for t in texts[1:]]
    for payload in payloads[1:]:
        payload["output"]["choices"][0]["message"]["tool_calls"][0]["function"]["name"] = ""
    payloads.append(said("tool_calls", content=""))
    frames = [
        (b"" if n is None else f"id:{n}\n".encode()) + b"event:result\n" + sse(payload)
        for n, payload in zip(numbers, payloads, strict=True)
    ]
    return b"".join(frames)


def numbered(*numbers: Any) -> list[Any]:
    """How the call ended."""
    events = run("dashscope", [frames_of(*numbers)])
    return [e.kind for e in events if isinstance(e, ToolCall | BrokenToolCall)]


@pytest.mark.parametrize(
    "numbers",
    [(1, 2, 3, 4), (7, 8, 9, 10), (7, 7, 7, 7), (1, 1, 1, 1), (None,) * 4, ("a", "b", "c", "d"),
     (5, 9, 2, 11), (1, None, 2, 3), (10**12,) * 4],
)  # fmt: skip
def test_numbers_that_go_up_by_one_and_ids_that_are_no_numbers_are_no_doubt(numbers: Any):
    assert numbered(*numbers) == ["tool_call"]


@pytest.mark.parametrize(
    "numbers", [(1, 3, 4, 5), (1, 2, 4, 5), (1, 2, 3, 5), (7, 8, 8, 9), (1, 1, 2, 3), (1, 2, 1, 2)]
)
def test_a_hole_in_the_numbers_or_one_that_comes_twice_breaks_the_call(numbers: Any):
    assert numbered(*numbers) == ["broken_tool_call"]


@pytest.mark.parametrize("size", [1, 7, 100, 10**6])
@pytest.mark.parametrize("name", ["auto", "dashscope"])
@pytest.mark.parametrize("before", [b"", b": hi\n\n"])
@pytest.mark.parametrize("numbers", [(1, 2, 4, 5), (1, 3, 4, 5), (1, 2, 3, 5)])
def test_a_hole_is_seen_whether_the_wire_is_named_or_found(
    numbers: Any, before: bytes, name: str, size: int
):
    body = before + frames_of(*numbers)
    events, pipe = piped(name, [body[at : at + size] for at in range(0, len(body), size)])
    assert [e.reason for e in events if isinstance(e, BrokenToolCall)] == ["conflict"]
    assert not [e for e in events if isinstance(e, ToolCall)]
    assert (pipe.provider, pipe.notes["wire.gap"]) == ("dashscope", 1)
    assert pipe.notes["wire.keepalive"] == (1 if before else 0)


@pytest.mark.parametrize("name", ["auto", "dashscope"])
def test_a_first_event_that_is_an_error_says_whether_it_passes(name: str):
    error = sse({"code": "Throttling", "message": "slow", "request_id": "r"})
    body = b"id:1\nevent:error\n:HTTP_STATUS/429\n" + error
    for chunks in ([body], bytewise(body)):
        events, pipe = piped(name, chunks)
        assert events[-1] == Failed("provider_error", "slow", True, "Throttling")
        assert (pipe.provider, pipe.notes) == ("dashscope", {"wire.keepalive": 1})


def test_a_hole_before_a_call_is_none_of_its_own():
    body = b"id:1\n" + sse(said(content="Hi")) + b"id:4\n"
    body += sse(said("tool_calls", content="", tool_calls=call('{"a": 1}')))
    assert [e.arguments for e in run("dashscope", [body]) if isinstance(e, ToolCall)] == [{"a": 1}]


# --- the way back, and objects of the SDK ---------------------------------------------------------


def test_a_request_has_its_messages_and_parameters_where_they_belong():
    body = provider("dashscope").request(
        Conversation().user("Hi"), model="qwen-plus", max_tokens=9, system="Be brief."
    )
    assert body == {
        "model": "qwen-plus",
        "input": {"messages": [{"role": "system", "content": "Be brief."},
                               {"role": "user", "content": "Hi"}]},
        "parameters": {"result_format": "message", "max_tokens": 9, "incremental_output": True},
    }  # fmt: skip


def test_an_object_of_the_sdk_says_that_there_is_no_error():
    about = {"status_code": 200, "code": "", "message": "", "headers": {"a": "b"}}
    payloads = [{**said(content="Hi"), **about}, {**said("stop", content=""), **about}]
    with normalize(payloads) as events:
        assert [event.kind for event in events] == ["stream_start", "text_delta", "finish"]
        assert events.provider == "dashscope"


@pytest.mark.parametrize(("code", "passes"), [
    ("Throttling.RateQuota", True), ("ModelServiceFailed", True), ("ModelServingError", True),
    ("GatewayTimeout", True), ("DataInspectionFailed", False), ("Arrearage", False),
    ("InvalidApiKey", False),
])  # fmt: skip
def test_a_code_of_the_vendors_list_says_whether_it_passes(code: str, passes: bool):
    events = told({"code": code, "message": "No.", "request_id": "r"})
    assert events[-1] == Failed("provider_error", "No.", passes, code)
