"""How a turn ended: only a known, normal word makes calls whole that nothing else has closed."""

from __future__ import annotations

import pytest

from tests.conftest import Chat, sse, text_of
from tests.providers.streams import DONE, PAY, Gemini, Responses, broken, calls, end, fate, heard

CHATS = ["openai_chat", "mistral"]
PAID = [("a", "pay", {"n": 1})]


def chat(word: str, arguments: str = PAY) -> bytes:
    return Chat.call(0, "a", "pay", arguments) + Chat.end(word)


# --- words ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("word", ["null", "None", ""])
@pytest.mark.parametrize("provider", CHATS)
def test_a_word_that_means_none_on_every_chunk_ends_nothing(provider: str, word: str):
    begun = Chat.call(0, "a", "pay", "", finish=word)
    body = begun + Chat.call(0, None, None, '{"n"', finish=word)
    body += Chat.call(0, None, None, ":1}", finish=word)
    events, _ = heard(provider, body + Chat.end("tool_calls"))
    assert (calls(events), end(events)) == (PAID, ("finish", "tool_calls"))
    assert fate(heard(provider, begun + DONE)[0]) == (["truncated"], ("finish", "stop"))
    assert fate(heard(provider, begun)[0]) == (["truncated"], ("failed", "truncated"))


@pytest.mark.parametrize("word", ["stop", "tool_calls"])
@pytest.mark.parametrize("provider", CHATS)
def test_a_normal_word_on_every_chunk_does_not_end_a_call_at_its_first_one(
    provider: str, word: str
):
    begun = Chat.call(0, "a", "pay", "", finish=word)
    body = begun + Chat.call(0, None, None, '{"n"', finish=word)
    body += Chat.call(0, None, None, ":1}", finish=word) + DONE
    assert calls(heard(provider, body)[0]) == PAID
    assert broken(heard(provider, begun)[0]) == [("a", "pay", "truncated")]


def test_a_normal_word_beside_a_call_is_its_end_if_the_end_mark_follows():
    events, _ = heard("openai_chat", Chat.call(0, "a", "pay", "", finish="stop") + DONE)
    assert fate(events) == ([{}], ("finish", "tool_calls"))


@pytest.mark.parametrize("word", ["normal", "wat", "Stop", "finished"])
def test_an_unknown_word_is_an_end_of_its_own_and_makes_no_call_whole(word: str):
    events, notes = heard("openai_chat", chat(word))
    assert fate(events) == (["truncated"], ("finish", "other"))
    assert events[-1].raw_reason == word  # type: ignore[union-attr]
    assert notes["finish.unknown"] == 1


@pytest.mark.parametrize(
    ("word", "told"),
    [
        ("stop", ("finish", "tool_calls")),
        ("eos", ("finish", "tool_calls")),
        ("tool_calls", ("finish", "tool_calls")),
        ("function_call", ("finish", "tool_calls")),
        ("length", ("finish", "length")),
        ("model_context_window_exceeded", ("finish", "length")),  # Z.ai
        ("model_length", ("finish", "length")),  # Mistral
    ],
)
def test_known_words_that_make_a_whole_object_whole(word: str, told: tuple[str, str]):
    assert fate(heard("openai_chat", chat(word))[0]) == ([{"n": 1}], told)


@pytest.mark.parametrize(
    ("word", "broke", "told"),
    [
        ("network_error", "provider_error", ("failed", "provider_error")),  # Z.ai
        ("abort", "provider_error", ("failed", "provider_error")),  # vLLM, SGLang
        ("insufficient_system_resource", "provider_error", ("failed", "provider_error")),  # DeepSeek
        ("engine_overloaded", "provider_error", ("failed", "provider_error")),  # Moonshot
        ("malformed_function_call", "provider_error", ("failed", "provider_error")),  # Gemini
        ("function_call_filter: MALFORMED_FUNCTION_CALL", "provider_error",
         ("failed", "provider_error")),
        ("error", "provider_error", ("failed", "provider_error")),
        ("sensitive", "truncated", ("finish", "content_filter")),  # Z.ai
        ("content_filter", "truncated", ("finish", "content_filter")),
        ("repetition", "truncated", ("finish", "other")),  # vLLM
    ],
)  # fmt: skip
def test_words_for_an_end_that_is_not_normal_break_the_calls(word: str, broke: str, told):
    assert fate(heard("openai_chat", chat(word))[0]) == ([broke], told)
    assert end(heard("openai_chat", Chat.text("Hi") + Chat.end(word))[0]) == told


@pytest.mark.parametrize("word", ["length", "content_filter", "wat", "abort"])
def test_a_text_tool_is_not_whole_by_an_end_that_is_not_normal(word: str):
    entry = {"index": 0, "id": "a", "type": "custom", "custom": {"name": "sh", "input": "ls"}}
    body = Chat.delta({"tool_calls": [entry]})
    assert calls(heard("openai_chat", body + Chat.end("tool_calls"))[0]) == [
        ("a", "sh", {"input": "ls"})
    ]
    assert len(broken(heard("openai_chat", body + Chat.end(word))[0])) == 1


ADDED = Responses.CREATED + Responses.added(Responses.call(id="fc", call_id="a", arguments=""))
GROWN = ADDED + Responses.say("function_call_arguments.delta", output_index=0, delta=PAY)


@pytest.mark.parametrize("reason", ["wat", None])
def test_a_response_that_is_incomplete_for_no_reason_that_we_know_ends_as_other(reason: str | None):
    events, notes = heard("openai_responses", GROWN + Responses.incomplete(reason))
    assert fate(events) == (["truncated"], ("finish", "other"))
    assert notes["finish.unknown"] == 1


@pytest.mark.parametrize(
    ("reason", "told"),
    [("max_output_tokens", "length"), ("content_filter", "content_filter"), ("steered", "pause")],
)
def test_a_response_that_is_incomplete_for_a_known_reason_says_it(reason: str, told: str):
    events, _ = heard("openai_responses", ADDED + Responses.incomplete(reason))
    assert end(events) == ("finish", told)
    assert calls(events) == []


def test_an_item_that_was_added_and_never_done_is_no_empty_call():
    events, _ = heard("openai_responses", ADDED + Responses.completed())
    assert fate(events) == (["truncated"], ("finish", "stop"))


# --- failures before the end mark -----------------------------------------------------------------


def failing(error: dict[str, object] | None, delta: dict[str, object], word: str | None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": word}
    if error is not None:
        choice["error"] = error
    return sse({"id": "chatcmpl-1", "model": "m", "choices": [choice]})


E = {"message": "out of memory", "code": "500"}


@pytest.mark.parametrize("after", [b"", Chat.delta({}, "tool_calls"), Chat.delta({}, "stop")],
                         ids=["", "tool_calls", "stop"])  # fmt: skip
@pytest.mark.parametrize("mark", [b"", DONE], ids=["", "[DONE]"])
@pytest.mark.parametrize(
    "failure",
    [failing(E, {}, None), failing(E, {}, "tool_calls"), failing(None, {"error": E}, None),
     failing(None, {}, "error"), sse({"error": E})],
    ids=["choice", "choice, tool_calls", "delta", "finish_reason", "top"],
)  # fmt: skip
@pytest.mark.parametrize("provider", CHATS)
def test_a_failure_before_the_end_mark_fails_the_turn_and_its_calls(provider, failure, mark, after):
    events, _ = heard(provider, Chat.call(0, "a", "pay", PAY) + failure + after + mark)
    assert fate(events) == (["provider_error"], ("failed", "provider_error"))


@pytest.mark.parametrize("provider", CHATS)
def test_a_failure_after_a_normal_end_voids_the_turn_and_takes_no_call_back(provider: str):
    body = Chat.call(0, "a", "pay", PAY) + Chat.delta({}, "tool_calls") + sse({"error": E}) + DONE
    assert fate(heard(provider, body)[0]) == ([{"n": 1}], ("failed", "provider_error"))


# --- several answers at once ----------------------------------------------------------------------


def test_a_first_choice_without_an_end_is_a_cut_whatever_the_others_say():
    body = Chat.call(0, "a", "pay", PAY) + Chat.call(0, "b", "pay", PAY, choice=1)
    body += Chat.delta({}, "tool_calls", 1)
    events, _ = heard("openai_chat", body + DONE)
    assert end(events) == ("failed", "truncated")
    assert broken(events) == [("a", "pay", "truncated")]
    assert [e.choice for e in events if e.kind == "tool_call"] == [1]  # type: ignore[union-attr]
    assert end(heard("openai_chat", body)[0]) == ("failed", "truncated")


def test_the_reason_is_that_of_the_first_choice():
    body = Chat.text("a") + Chat.delta({"content": "b"}, choice=1)
    body += Chat.delta({}, "stop", 1) + Chat.delta({}, "length", 0) + DONE
    assert end(heard("openai_chat", body)[0]) == ("finish", "length")


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
@pytest.mark.parametrize(
    ("words", "told"),
    [(("MAX_TOKENS", "STOP"), "length"), (("STOP", "MAX_TOKENS"), "stop"),
     (("SAFETY", "STOP"), "content_filter")],
)  # fmt: skip
def test_with_two_candidates_the_first_ones_reason_counts_in_any_order(words, told, order):
    body = b"".join(Gemini.text("x", finish=words[at], at=at) for at in order)
    assert end(heard("gemini", body)[0]) == ("finish", told)


def test_a_first_candidate_without_an_end_is_a_cut():
    body = Gemini.text("x") + Gemini.text("y", finish="STOP", at=1)
    assert end(heard("gemini", body)[0]) == ("failed", "truncated")


# --- the end mark of another wire -----------------------------------------------------------------


@pytest.mark.parametrize("provider", ["gemini", "auto"])
def test_gemini_behind_a_proxy_that_adds_an_end_mark_ends_as_without_it(provider: str):
    called = {"functionCall": {"id": "a", "name": "pay", "args": {"n": 1}}}
    body = Gemini.text("Hi", modelVersion="m", responseId="r") + Gemini.parts(called, finish="STOP")
    without, _ = heard(provider, body)
    events, notes = heard(provider, body + DONE)
    assert (events, notes) == (without, {})
    assert (calls(events), end(events)) == (PAID, ("finish", "tool_calls"))


def test_an_end_mark_is_no_end_of_a_gemini_stream_that_gave_no_reason():
    events, _ = heard("gemini", Gemini.text("Hi") + DONE)
    assert (text_of(events), end(events)) == ("Hi", ("failed", "truncated"))


@pytest.mark.parametrize(
    ("status", "told"),
    [("in_progress", "truncated"), ("incomplete", "truncated"), ("completed", {"n": 1})],
)
def test_an_incomplete_response_closes_no_item_that_it_says_is_in_progress(status: str, told):
    item = Responses.call(id="fc", call_id="a", arguments="", status=status)
    details = {"status": "incomplete", "incomplete_details": {"reason": "wat"}, "output": [item]}
    events, _ = heard("openai_responses", GROWN + Responses.say("incomplete", response=details))
    assert fate(events) == ([told], ("finish", "other"))


@pytest.mark.parametrize("provider", ["openai_chat", "mistral", "dashscope"])
def test_an_end_mark_before_anything_else_is_an_answer_that_was_cut_off(provider):
    events, notes = heard(provider, DONE)
    assert [(e.kind, e.reason) for e in events[-1:]] == [("failed", "truncated")]
    assert not notes
