"""DashScope: texts and arguments in pieces or whole with every event, by one set of events."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from streamnorm import Conversation, Normalizer, normalize, provider
from streamnorm.events import BrokenToolCall, Failed, ReasoningDelta, TextDelta, ToolCall
from streamnorm.providers.dashscope.growth import Growth
from tests.conftest import RECORDINGS, load, run, sse

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


def grown(texts: list[str]) -> str:
    growth = Growth()
    return "".join([*(growth.news("here", text) for text in texts), growth.settled("here")])


PIECES = st.lists(st.text("ab ", min_size=1, max_size=3), max_size=8)


@given(PIECES)
@example(["ha", "ha", "!"])
@example(["1", "12", "2"])
def test_pieces_are_told_as_they_came_once_one_of_them_cannot_be_the_whole(pieces: list[str]):
    """A piece that begins as all before it may be the whole text: then nobody can tell."""
    growth = Growth()
    heard = "".join([*(growth.news("here", p) for p in pieces), growth.settled("here")])
    if growth.whole is False:
        assert heard == "".join(pieces)


@given(PIECES, st.data())
def test_a_text_that_comes_whole_again_and_again_is_told_once(pieces: list[str], data: Any):
    texts = ["".join(pieces[: at + 1]) for at in range(len(pieces))]
    again = [text for text in texts for _ in range(data.draw(st.integers(1, 3)))]
    assert grown(again) == "".join(pieces)


@pytest.mark.parametrize(
    ("texts", "heard"),
    [
        (["ha", "ha", "!"], "haha!"),  # pieces that are alike
        (["ha", "ha", "ha!"], "ha!"),  # the whole, twice the same
        (["1", "12", "3"], "1123"),  # a piece that begins as the first one did
        (["1", "12", "123"], "123"),
        (["1", "12"], "12"),  # nothing tells: the usual way to ask
        (["a", "ab", "abc", "", "abc"], "abc"),
        (["a", "ab", "abc", "ab", "abcd"], "abcd"),  # an older one takes nothing back
        (["a", "ab", "abc", "xyz"], "abcxyz"),  # another one is told as well
    ],
)
def test_what_is_told_of_texts_that_may_be_either(texts: list[str], heard: str):
    assert grown(texts) == heard


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
