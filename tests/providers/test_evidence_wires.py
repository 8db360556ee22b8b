"""Evidence, wire by wire: small streams in, what became of their calls and how the turn ended out.

``tests/core`` has the rule; here stands what each wire's parser must say so that it can hold. Each row
fails if a guard of that parser is removed (``make mutate``).
"""

from __future__ import annotations

from typing import Any

import pytest

from streamnorm import Limits, Normalizer
from streamnorm.events import BrokenToolCall, Event, Failed, Finish, ToolCall
from tests.conftest import SEED, assert_well_formed, sse

Json = dict[str, Any]
DONE = "[DONE]"
WHOLE = '{"to":"me"}'
IN_PAYLOADS = {"bedrock", "ollama"}  # framings of their own: asked payload by payload


def heard(wire: str, *payloads: Any) -> tuple[list[Event], dict[str, int]]:
    """The events of these payloads, and the notes."""
    pipe = Normalizer(wire, seed=SEED)
    events: list[Event] = []
    for payload in payloads:
        if wire in IN_PAYLOADS:
            events += pipe.feed_payload(payload)
        else:
            events += pipe.feed(payload if isinstance(payload, bytes) else sse(payload))
    events += pipe.close()
    assert_well_formed(events)
    return events, dict(pipe.notes)


def calls_in(events: list[Event]) -> list[tuple[str, str]]:
    """Each call in the order in which it was told: its name, and its arguments or why it is broken."""
    told = [e for e in events if isinstance(e, ToolCall | BrokenToolCall)]
    return [(e.name, e.raw if isinstance(e, ToolCall) else f"{e.reason}!") for e in told]


def told(wire: str, *payloads: Any) -> list[tuple[str, str]]:
    return calls_in(heard(wire, *payloads)[0])


def ending(events: list[Event]) -> str:
    last = events[-1]
    if isinstance(last, Failed):
        return f"failed: {last.reason}" + (", again" if last.retryable else "")
    assert isinstance(last, Finish)
    return last.reason


# --- a few words of each wire ---------------------------------------------------------------------


def a_start(index: Any = 0, id: str = "A", name: str = "pay", **more: Any) -> Json:
    block = {"type": "tool_use", "id": id, "name": name, "input": {}, **more}
    return {"type": "content_block_start", "index": index, "content_block": block}


def a_delta(text: Any, index: Any = 0, **more: Any) -> Json:
    inner = {"type": "input_json_delta", "partial_json": text, **more}
    return {"type": "content_block_delta", "index": index, "delta": inner}


def a_stop(index: Any = 0) -> Json:
    return {"type": "content_block_stop", "index": index}


def a_reason(word: Any = "tool_use") -> Json:
    return {"type": "message_delta", "delta": {"stop_reason": word}}


A_BEGIN: Json = {"type": "message_start", "message": {"id": "msg_1", "model": "m", "content": []}}
A_END: Json = {"type": "message_stop"}


def chat(*entries: Any, finish: Any = None, choice: Any = 0, **more: Any) -> Json:
    delta: Json = {"tool_calls": list(entries)} if entries else {}
    return {"choices": [{"index": choice, "delta": delta, "finish_reason": finish, **more}]}


def said(**fields: Any) -> Json:
    """A chunk whose delta has these fields."""
    return {"choices": [{"index": 0, "delta": fields, "finish_reason": None}]}


def old(name: Any, text: Any) -> Json:
    """A chunk that says a call, or a piece of one, in the old field."""
    found = {"name": name, "arguments": text}
    return said(function_call={k: v for k, v in found.items() if v is not None})


def both(item: Json, name: Any, text: Any) -> Json:
    """The same, with an entry of the new field beside it."""
    chunk = old(name, text)
    chunk["choices"][0]["delta"]["tool_calls"] = [item]
    return chunk


def entry(text: Any = None, index: Any = 0, **more: Any) -> Json:
    function = {} if text is None else {"function": {"arguments": text}}
    return {"index": index, **function, **more}


def named(text: Any = "", name: Any = "pay", id: Any = "A", index: Any = 0) -> Json:
    found = {"index": index, "id": id, "function": {"name": name, "arguments": text}}
    return {k: v for k, v in found.items() if v is not None}


def custom(text: Any, name: str | None = None, index: Any = 0, **more: Any) -> Json:
    inner = {"input": text} | ({"name": name} if name else {})
    return {"index": index, "custom": inner, **more}


# --- the words for the end ------------------------------------------------------------------------

AGAIN = "failed: provider_error, again"
FAILED = "failed: provider_error"
CHAT_WORDS = {
    "stop": "stop", "eos": "stop", "eos_token": "stop", "end_turn": "stop", "stop_sequence": "stop",
    "COMPLETE": "stop", "STOP": "stop", "length": "length", "max_tokens": "length",
    "MAX_TOKENS": "length", "model_length": "length", "max_output_tokens": "length",
    "model_context_window_exceeded": "length", "tool_calls": "tool_calls", "tool_use": "tool_calls",
    "TOOL_CALL": "tool_calls", "function_call": "tool_calls", "content_filter": "content_filter",
    "content_filtered": "content_filter", "sensitive": "content_filter",
    "guardrail_intervened": "content_filter", "SAFETY": "content_filter",
    "RECITATION": "content_filter", "PROHIBITED_CONTENT": "content_filter",
    "BLOCKLIST": "content_filter", "SPII": "content_filter", "refusal": "refusal",
    "repetition": "other", "error": AGAIN, "insufficient_system_resource": AGAIN,
    "network_error": AGAIN, "engine_overloaded": AGAIN, "timeout": AGAIN, "abort": AGAIN,
    "cancelled": FAILED, "malformed_function_call": AGAIN, "MALFORMED_FUNCTION_CALL": AGAIN,
    "function_call_filter: MALFORMED_FUNCTION_CALL": AGAIN, "UNEXPECTED_TOOL_CALL": AGAIN,
}  # fmt: skip
WORDS: dict[str, dict[str, str]] = {
    "anthropic": {
        "end_turn": "stop", "stop_sequence": "stop", "max_tokens": "length",
        "model_context_window_exceeded": "length", "tool_use": "tool_calls", "pause_turn": "pause",
        "compaction": "pause", "refusal": "refusal",
    },
    "openai_chat": CHAT_WORDS,
    "mistral": {
        "stop": "stop", "length": "length", "model_length": "length", "tool_calls": "tool_calls",
        "error": AGAIN,
    },
    "gemini": {
        "STOP": "stop", "MAX_TOKENS": "length", "CONTINUATION": "pause", "SAFETY": "content_filter",
        "RECITATION": "content_filter", "LANGUAGE": "content_filter", "BLOCKLIST": "content_filter",
        "PROHIBITED_CONTENT": "content_filter", "SPII": "content_filter",
        "IMAGE_SAFETY": "content_filter", "IMAGE_PROHIBITED_CONTENT": "content_filter",
        "IMAGE_RECITATION": "content_filter", "ESCALATION": "content_filter",
        "MODEL_ARMOR": "content_filter", "PUP_LIMITED_DISABLED": "content_filter", "OTHER": FAILED,
        "MALFORMED_FUNCTION_CALL": AGAIN, "MALFORMED_RESPONSE": AGAIN, "UNEXPECTED_TOOL_CALL": AGAIN,
        "TOO_MANY_TOOL_CALLS": FAILED, "MISSING_THOUGHT_SIGNATURE": FAILED, "NO_IMAGE": FAILED,
        "IMAGE_OTHER": FAILED,
    },
    "cohere": {
        "COMPLETE": "stop", "STOP_SEQUENCE": "stop", "MAX_TOKENS": "length",
        "TOOL_CALL": "tool_calls", "ERROR": AGAIN, "TIMEOUT": AGAIN, "ERROR_TOXIC": "content_filter",
        "ERROR_LIMIT": "length",
    },
    "ollama": {"stop": "stop", "length": "length", "load": "stop", "unload": "stop"},
    "bedrock": {
        "end_turn": "stop", "stop_sequence": "stop", "tool_use": "tool_calls", "max_tokens": "length",
        "model_context_window_exceeded": "length", "guardrail_intervened": "content_filter",
        "content_filtered": "content_filter", "malformed_model_output": AGAIN,
        "malformed_tool_use": AGAIN,
    },
    "gemini_interactions": {
        "completed": "stop", "requires_action": "tool_calls", "requires_continuation": "pause",
        "incomplete": "length", "budget_exceeded": "length",
    },
    "openai_responses": {
        "max_output_tokens": "length", "max_messages": "length", "max_tokens": "length",
        "content_filter": "content_filter", "steered": "pause",
    },
}  # fmt: skip


def ended_with(wire: str, word: Any) -> list[Any]:
    """A turn of one text that ends with this word."""
    match wire:
        case "anthropic":
            return [A_BEGIN, a_reason(word), A_END]
        case "openai_chat" | "mistral":
            return [said(content="x"), chat(finish=word), DONE]
        case "gemini":
            content = {"role": "model", "parts": [{"text": "x"}]}
            return [{"candidates": [{"content": content, "finishReason": word}]}]
        case "cohere":
            return [{"type": "message-start", "id": "1"},
                    {"type": "message-end", "delta": {"finish_reason": word}}]  # fmt: skip
        case "ollama":
            return [{"model": "m", "message": {"content": "x"}, "done": False},
                    {"model": "m", "done": True, "done_reason": word}]  # fmt: skip
        case "bedrock":
            return [{"messageStart": {"role": "assistant"}}, {"messageStop": {"stopReason": word}},
                    {"metadata": {"usage": {}}}]  # fmt: skip
        case "gemini_interactions":
            return [{"event_type": "interaction.completed", "interaction": {"status": word}}]
    response = {
        "id": "1",
        "status": "incomplete",
        "incomplete_details": {"reason": word},
        "output": [],
    }
    return [{"type": "response.incomplete", "response": response}]


@pytest.mark.parametrize(
    ("wire", "word", "end"),
    [(wire, word, end) for wire, words in WORDS.items() for word, end in words.items()],
)
def test_each_known_word_for_the_end_is_told_in_ours(wire: str, word: str, end: str):
    events, notes = heard(wire, *ended_with(wire, word))
    assert ending(events) == end
    assert "finish.unknown" not in notes


@pytest.mark.parametrize("wire", WORDS)
def test_a_word_for_the_end_that_nobody_knows_is_an_ending_of_its_own(wire: str):
    events, notes = heard(wire, *ended_with(wire, "a new word"))
    assert (ending(events), notes["finish.unknown"]) == ("other", 1)


# --- Anthropic ------------------------------------------------------------------------------------

A_CLOSE = (a_reason(), A_END)
TEXT_BLOCK: Json = {"type": "text", "text": ""}
PAID = [("pay", WHOLE)]
DOUBTED = [("pay", "conflict!")]

ANTHROPIC: dict[str, tuple[tuple[Any, ...], list[tuple[str, str]]]] = {
    "a call is its fragments": ((a_start(), a_delta(WHOLE), a_stop(), *A_CLOSE), PAID),
    "an empty fragment says nothing": (
        (a_start(), a_delta(""), a_delta(WHOLE), a_delta("", 7), a_stop(), *A_CLOSE), PAID),
    "a fragment for no block makes the open ones doubtful": (
        (a_start(), a_delta(WHOLE), a_delta("x", 7), a_stop(), *A_CLOSE), DOUBTED),
    "a fragment before its block makes that one doubtful": (
        (a_delta("x", 0), a_start(), a_delta(WHOLE), a_stop(), a_start(1, "B", "b"),
         a_delta(WHOLE, 1), a_stop(1), *A_CLOSE), [("b", WHOLE), ("pay", "conflict!")]),
    "text in the place of a call makes it doubtful": (
        (a_start(), a_delta(WHOLE),
         {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": ""}},
         a_stop(), *A_CLOSE), DOUBTED),
    "text in another place does not": (
        (a_start(), a_delta(WHOLE),
         {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "x"}},
         a_stop(), *A_CLOSE), PAID),
    "a thought in the place of a call makes it doubtful": (
        (a_start(), a_delta(WHOLE),
         {"type": "content_block_delta", "index": 0,
          "delta": {"type": "thinking_delta", "thinking": "x"}}, a_stop(), *A_CLOSE), DOUBTED),
    "text in the place of a call that was told changes nothing": (
        (a_start(), a_delta(WHOLE), a_stop(),
         {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "x"}},
         a_start(1, "B", "b"), a_stop(1), *A_CLOSE), [("pay", WHOLE), ("b", "")]),
    "a message begun again voids what was open and frees its places": (
        (A_BEGIN, a_start(), a_delta('{"to"'), A_BEGIN, a_delta(WHOLE), a_start(), a_delta(WHOLE),
         a_stop(), *A_CLOSE), [("pay", "conflict!"), ("pay", "conflict!")]),
    "a message begun again voids what was open": (
        (A_BEGIN, a_start(), a_delta('{"to"'), A_BEGIN, a_start(), a_delta(WHOLE), a_stop(), *A_CLOSE),
        [("pay", "conflict!"), ("pay", WHOLE)]),
    "a first message voids nothing": ((a_start(), A_BEGIN, a_delta(WHOLE), a_stop(), *A_CLOSE), PAID),
    "another block in its place voids a call": (
        (a_start(), a_delta(WHOLE),
         {"type": "content_block_start", "index": 0, "content_block": TEXT_BLOCK}, a_stop(), *A_CLOSE),
        DOUBTED),
    "another block elsewhere does not": (
        (a_start(), a_delta(WHOLE),
         {"type": "content_block_start", "index": 1, "content_block": TEXT_BLOCK}, a_stop(), *A_CLOSE),
        PAID),
    "a start said again is the same call": (
        (a_start(), a_start(), a_delta(WHOLE), a_stop(), *A_CLOSE), PAID),
    "another start in its place voids a call": (
        (a_start(), a_start(0, "B", "b"), a_delta(WHOLE), a_stop(), *A_CLOSE),
        [("pay", "conflict!"), ("b", WHOLE)]),
    "an input in the start counts if no fragment follows": (
        (a_start(input={"to": "me"}), a_stop(), *A_CLOSE), [("pay", '{"to": "me"}')]),
    "an input in the start gives way to fragments": (
        (a_start(input={"to": "x"}), a_delta(WHOLE), a_stop(), *A_CLOSE), PAID),
    "an input in the start is whole at a normal end without a stop": (
        (a_start(input={"to": "me"}), *A_CLOSE), [("pay", '{"to": "me"}')]),
    "an input in the start is not told twice": (
        (a_start(input={"to": "me"}), a_stop(), a_stop(), *A_CLOSE), [("pay", '{"to": "me"}')]),
    "an input that is another when the start is said again": (
        (a_start(input={"to": "me"}), a_start(input={"to": "x"}), a_stop(), *A_CLOSE), DOUBTED),
    "an input that is the same when the start is said again": (
        (a_start(input={"to": "me"}), a_start(input={"to": "me"}), a_stop(), *A_CLOSE),
        [("pay", '{"to": "me"}')]),
    **{f"an input that is {odd!r}": ((a_start(input=odd), a_stop(), *A_CLOSE), DOUBTED)
       for odd in ([], "x", 5, True)},
    "no input in the start": ((a_start(input=None), a_delta(WHOLE), a_stop(), *A_CLOSE), PAID),
    "no input at all, at a normal end": ((a_start(input=None), a_stop(), *A_CLOSE), [("pay", "")]),
    "an input under another name": (
        (a_start(input=None, INPUT={"to": "me"}), a_stop(), *A_CLOSE), DOUBTED),
    "who called it is no input": (
        (a_start(input=None, caller={"type": "direct"}), a_stop(), *A_CLOSE), [("pay", "")]),
    "a stop for a place that no call has": (
        (a_start(), a_delta(WHOLE), a_stop(1), a_reason("refusal"), A_END), [("pay", "truncated!")]),
    "a block without an index has a place as well": (
        (a_start(None), a_delta(WHOLE, None), a_stop(None), *A_CLOSE), PAID),
    "a payload that names no place, beside a block without one": (
        (a_start(None), a_delta(5, None), a_delta(WHOLE, None), a_stop(None), *A_CLOSE), DOUBTED),
    "a fragment that is a number makes its own call doubtful and no other": (
        (a_start(), a_start(1, "B", "b"), a_delta(5, 1), a_delta(WHOLE), a_delta(WHOLE, 1), a_stop(),
         a_stop(1), *A_CLOSE), [("pay", WHOLE), ("b", "conflict!")]),
    "a fragment whose index is a text makes all doubtful": (
        (a_start(), a_delta(WHOLE), a_delta("x", "zero"), a_stop(), *A_CLOSE), DOUBTED),
    **{f"a {kind} whose index is a text makes all doubtful": (
        (a_start(), a_delta(WHOLE), {"type": f"content_block_{kind}", "index": "zero", **more}, a_stop(),
         *A_CLOSE), DOUBTED)
       for kind, more in (
           ("delta", {"delta": {"type": "text_delta", "text": "x"}}), ("stop", {}),
           ("start", {"content_block": TEXT_BLOCK}))},
    "a new kind that names no call is no loss": (
        (a_start(), a_delta(WHOLE), {"type": "new", "index": 3}, {"type": "newer", "text": "x"},
         a_stop(), *A_CLOSE), PAID),
    **{f"a new kind that holds {word} is a loss": (
        (a_start(), a_delta(WHOLE), {"type": "new", "x": word}, a_stop(), *A_CLOSE), DOUBTED)
       for word in ("partial_json", "tool_use")},
    "a block that is a number and has no place": (
        (a_start(), a_delta(WHOLE), {"type": "content_block_start", "index": None, "content_block": 5},
         a_stop(), *A_CLOSE), PAID),
    "an end mark without a reason is no normal end": ((a_start(), a_stop(), A_END), [("pay", "truncated!")]),
    "a null reason after one takes nothing back": (
        (a_start(), a_stop(), a_reason(), a_reason(None), A_END), [("pay", "")]),
    "a message that is a text": (
        ({"type": "message_start", "message": "x"}, a_start(), a_delta(WHOLE), a_stop(), *A_CLOSE), PAID),
    "bytes that are no text in the start of a call": (
        (sse(a_start(input={"to": "?"})).replace(b"?", b"\xff"), a_stop(), *A_CLOSE), DOUBTED),
    "bytes that are no text in the start of another block": (
        (sse({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "?"}})
         .replace(b"?", b"\xff"), a_start(1), a_delta(WHOLE, 1), a_stop(1), *A_CLOSE), PAID),
    "a null reason is none": (
        (a_start(), a_stop(), a_reason(None), A_END), [("pay", "truncated!")]),
    "a call that was told stays told when the turn fails": (
        (a_start(), a_delta(WHOLE), a_stop(), a_start(1, "B", "b"), a_delta(WHOLE, 1),
         {"type": "error", "error": {"type": "overloaded_error", "message": "x"}}),
        [("pay", WHOLE), ("b", "provider_error!")]),
}  # fmt: skip


@pytest.mark.parametrize("row", ANTHROPIC)
def test_what_an_anthropic_stream_proves(row: str):
    payloads, calls = ANTHROPIC[row]
    assert told("anthropic", *payloads) == calls


def test_what_an_anthropic_stream_says_beside_its_calls():
    result = {"type": "new_tool_result", "tool_use_id": "A", "content": "x"}
    events, notes = heard(
        "anthropic", A_BEGIN, a_start(caller={"type": "direct"}, cache_control=None), a_delta(WHOLE),
        a_stop(), a_delta("late"),
        {"type": "content_block_delta", "index": 5, "delta": {"type": "text_delta", "text": ""}},
        {"type": "content_block_start", "index": 6, "content_block": result},
        a_reason() | {"context_management": {"edits": 1}}, A_END,
    )  # fmt: skip
    assert [e.kind for e in events] == [
        "stream_start", "tool_call_start", "tool_call_delta", "tool_call", "tool_result", "finish",
    ]  # fmt: skip
    assert [e.echo for e in events[-3:]] == [
        {"caller": {"type": "direct"}}, result, {"context_management": {"edits": 1}},
    ]  # fmt: skip
    assert notes == {"call.late": 1}


# --- Chat Completions -----------------------------------------------------------------------------

STOP = (chat(finish="tool_calls"), DONE)
B = named(WHOLE, "b", "B", 1)
OTHER = '{"n":1}'

CHAT: dict[str, tuple[tuple[Any, ...], list[tuple[str, str]]]] = {
    "a call is its fragments": ((chat(named('{"to"')), chat(entry(':"me"}')), *STOP), PAID),
    "[DONE] alone is enough for whole objects": ((chat(named(WHOLE)), DONE), PAID),
    "[DONE] alone is not for empty text": ((chat(named()), DONE), [("pay", "truncated!")]),
    "a normal word is enough for empty text": ((chat(named()), *STOP), [("pay", "")]),
    **{f"an id that is {odd!r} is none": (
        (chat(named('{"to"', id=odd)), chat(entry(':"me"}', id=odd)), *STOP), PAID)
       for odd in ("", "null", "None")},
    **{f"a name that is {odd!r} is none": (
        (chat(named(name=odd)), chat(entry(function={"name": "pay", "arguments": WHOLE})), *STOP), PAID)
       for odd in ("", "null", "None")},
    "a name in pieces before the first fragment": (
        (chat(named(None, "pa")), chat(entry(function={"name": "y"})), chat(entry(WHOLE)), *STOP), PAID),
    "a name that grows": (
        (chat(named(None, "pa")), chat(entry(function={"name": "pay"})), chat(entry(WHOLE)), *STOP),
        PAID),
    "a name said again with the fragments": (
        (chat(named('{"to"')), chat(entry(function={"name": "pay", "arguments": ':"me"}'})), *STOP),
        PAID),
    "another name in mid-call": (
        (chat(named('{"to"')), chat(entry(function={"name": "b", "arguments": ':"me"}'})), *STOP),
        DOUBTED),
    "a shorter name in mid-call": (
        (chat(named('{"to"')), chat(entry(function={"name": "pa", "arguments": ':"me"}'})), *STOP),
        DOUBTED),
    "an index that is a list": (
        (chat(named(WHOLE)), chat(B), chat(entry("x", [1])), *STOP),
        [("pay", "conflict!"), ("b", "conflict!")]),
    "a fragment under an id that its call was given later": (
        (chat(named('{"to"')), chat(entry(':"m', id="X")), chat(B), chat(entry('e"}', None, id="X")),
         *STOP), [("pay", WHOLE), ("b", WHOLE)]),
    "an id that comes late": (
        (chat(named(None, id=None)), chat(entry('{"to"', id="A")), chat(entry(':"me"}')), *STOP), PAID),
    "another id with every fragment is the same call": (
        (chat(named('{"to"')), chat(entry(':"me"}', id="X")), *STOP), PAID),
    "a fragment that is a number makes its own call doubtful and no other": (
        (chat(named(WHOLE)), chat(B), chat(entry(5, 1)), *STOP), [("pay", WHOLE), ("b", "conflict!")]),
    "a fragment that is a number and has no index makes all doubtful": (
        (chat(named(WHOLE)), chat(B), chat(entry(5, None)), *STOP),
        [("pay", "conflict!"), ("b", "conflict!")]),
    "a fragment that is a number in a place of its own is that place's loss": (
        (chat(named(WHOLE)), chat(entry(5, 7)), *STOP), [("pay", WHOLE), ("", "conflict!")]),
    "entries that are no list": (
        (chat(named(WHOLE)), chat(B), said(tool_calls="x"), *STOP),
        [("pay", "conflict!"), ("b", "conflict!")]),
    "an entry that is a text": (
        (chat(named(WHOLE)), chat(B), said(tool_calls=["x"]), *STOP),
        [("pay", "conflict!"), ("b", "conflict!")]),
    "a damaged chunk of another choice is not of this one": (
        (chat(named(WHOLE)), chat(entry(5, 0), choice=1), *STOP),
        [("pay", WHOLE), ("", "conflict!")]),
    "a choice whose number is a text": (
        (chat(named(WHOLE)), chat(entry("x", 0), choice="x"), *STOP), DOUBTED),
    "a fragment that no call claims makes all doubtful": (
        (chat(named(WHOLE)), chat(entry("x", 7)), *STOP), [("pay", "conflict!"), ("", "conflict!")]),
    "a fragment of another choice that no call claims": (
        (chat(named(WHOLE)), chat(entry("x", 7), choice=1), *STOP), [*DOUBTED, ("", "conflict!")]),
    "a call that is both a function and a text tool": (
        (chat(named(WHOLE)), chat(custom("")), *STOP), DOUBTED),
    "a text tool that is a function as well": (
        (chat(custom("x", "run", id="A")), chat(entry("y")), *STOP), [("run", "conflict!")]),
    "a text tool at a normal end": (
        (chat(custom("x", "run", id="A")), chat(custom("y")), *STOP), [("run", "xy")]),
    "a bare entry in the midst of a text may have lost its piece": (
        (chat(custom("x", "run", id="A")), chat(entry()), *STOP), [("run", "conflict!")]),
    "text for a text tool after the end": (
        (chat(custom("x", "run", id="A")), chat(finish="stop"), chat(custom("y")), *STOP),
        [("run", "conflict!")]),
    "nothing for a text tool after the end": (
        (chat(custom("x", "run", id="A")), chat(finish="stop"), chat(custom("")), DONE), [("run", "x")]),
    "a normal word that text of another call follows": (
        (chat(named()), chat(named('{"to"', "b", "B", 1)), chat(finish="stop"), chat(entry(':"me"}', 1)),
         DONE), [("pay", "conflict!"), ("b", "conflict!")]),
    "a normal word that a bare entry follows, of a call without text": (
        (chat(named()), chat(finish="stop"), chat(entry()), DONE), [("pay", "conflict!")]),
    "a normal word on every chunk ends a call with the last": (
        (chat(named('{"to"'), finish="stop"), chat(entry(':"me"}'), finish="stop"), DONE), PAID),
    "a normal word that more text follows needs to be said again": (
        (chat(named(""), finish="stop"), chat(named("", "b", "B", 1)), DONE),
        [("pay", "truncated!"), ("b", "truncated!")]),
    "a token limit that a normal word follows is still one": (
        (chat(named('{"to"'), finish="length"), *STOP), [("pay", "length!")]),
    "a token limit that text follows is still one": (
        (chat(named('{"to"'), finish="length"), chat(entry(':"m')), DONE), [("pay", "length!")]),
    "entries without an index go on with the last call": (
        (chat(named('{"to"', index=None)), chat(entry(':"me"}', None)), *STOP), PAID),
    "entries without an index are found by their id": (
        (chat(named('{"to"', index=None)), chat(named('{"to"', "b", "B", None)),
         chat(entry(':"me"}', None, id="A")), chat(entry(':"me"}', None, id="B")), *STOP),
        [("pay", WHOLE), ("b", WHOLE)]),
    "a late id without an index is that of the last call": (
        (chat(named(None, id=None, index=None)), chat(entry(WHOLE, None, id="A")), *STOP), PAID),
    "entries without index and id are new calls where they begin": (
        (chat(named(WHOLE, id=None, index=None)), chat(named(OTHER, "b", None, None)), *STOP),
        [("pay", WHOLE), ("b", OTHER)]),
    "several entries without index and id, twice": (
        (chat(named(WHOLE, id=None, index=None), named(WHOLE, "b", None, None)),
         chat(named(OTHER, "c", None, None), named(OTHER, "d", None, None)), *STOP),
        [("pay", WHOLE), ("b", WHOLE), ("c", OTHER), ("d", OTHER)]),
    "id and name with every fragment": ((chat(named('{"to"')), chat(named(':"me"}')), *STOP), PAID),
    "id and name come late, with a fragment": (
        (chat(named('{"to"', id=None)), chat(named(':"me"}')), *STOP), PAID),
    "another name and object on its index, without an id": (
        (chat(named(WHOLE)), chat(named(OTHER, "b", None)), *STOP), [("pay", WHOLE), ("b", OTHER)]),
    "another name and object on its index, under its id": (
        (chat(named(WHOLE)), chat(named(OTHER, "b")), *STOP), DOUBTED),
    "another name and object on its index, with the first id": (
        (chat(named(WHOLE, id=None)), chat(named(OTHER, "b", "B")), *STOP),
        [("pay", WHOLE), ("b", OTHER)]),
    "another id with a fragment that begins no object": (
        (chat(named(WHOLE)), chat(entry("x", id="X")), *STOP), [("pay", "invalid_json!")]),
    "another id with an object inside its arguments": (
        (chat(named('{"to":')), chat(entry('{"n":1}}', id="X")), *STOP), [("pay", '{"to":{"n":1}}')]),
    "a call that begins with text alone and is named later": (
        (chat(entry('{"to"')), chat(entry(function={"name": "pay", "arguments": ':"me"}'})), *STOP),
        DOUBTED),
    "a fragment without an index is of the last call where no entry has one": (
        (chat(named("", index=None)), chat(named('{"to"', "b", "B", None)), chat(entry(':"me"}', None)),
         *STOP), [("pay", ""), ("b", WHOLE)]),
    "a whole object without an index is of the last call where no entry has one": (
        (chat(named("", index=None)), chat(named("", "b", "B", None)), chat(entry(WHOLE, None)), *STOP),
        [("pay", ""), ("b", WHOLE)]),
    "a fragment without an index is of the last call where no other can go on": (
        (chat(named(WHOLE)), chat(named('{"to"', "b", "B", 1)), chat(entry(':"me"}', None)),
         *STOP), [("pay", WHOLE), ("b", WHOLE)]),
    "a fragment without an index may be of any call that can go on, where entries have one": (
        (chat(named("")), chat(named("", "b", "B", 1)), chat(entry(WHOLE, None)), *STOP),
        [("pay", "conflict!"), ("b", "conflict!")]),
    "several entries after a single one do not go on with it": (
        (chat(named('{"to"', index=None)), chat(entry(':"me"}', None), named(WHOLE, "b", "B", None)),
         *STOP), [("pay", "conflict!"), ("", "conflict!"), ("b", "conflict!")]),
    "several entries go on with the several before them": (
        (chat(named(WHOLE, id=None, index=None), named(WHOLE, "b", None, None)),
         chat(named('{"n"', "c", None, None), named('{"n"', "d", None, None)),
         chat(entry(":1}", None), entry(":1}", None)), *STOP),
        [("pay", WHOLE), ("b", WHOLE), ("c", OTHER), ("d", OTHER)]),
    "its name again, without an id": ((chat(named(WHOLE)), chat(named(None, id=None)), *STOP), PAID),
    "its name and text again, without an id": (
        (chat(named(WHOLE)), chat(named(WHOLE, id=None)), *STOP), PAID),
    "its name and text that begins no object, without an id": (
        (chat(named(WHOLE)), chat(named("x", id=None)), *STOP), [("pay", "invalid_json!")]),
    "another name and text that begins no object, without an id": (
        (chat(named(WHOLE)), chat(named("x", "b", None)), *STOP), DOUBTED),
    "another name after a whole object, without an id": (
        (chat(named(WHOLE)), chat(named(None, "b", None)), chat(entry(OTHER)), *STOP),
        [("pay", WHOLE), ("b", OTHER)]),
    "another name after a whole object and white space, without an id": (
        (chat(named(WHOLE)), chat(entry(" ")), chat(named(OTHER, "b", None)), *STOP),
        [("pay", f"{WHOLE} "), ("b", OTHER)]),
    "another call on its index after it was told": (
        (chat(named(WHOLE), finish="stop"), chat(named(OTHER, "b", None)), *STOP),
        [("pay", WHOLE), ("b", OTHER)]),
    "another name on its index after it was told": (
        (chat(named(WHOLE), finish="stop"), chat(named(None, "b", None)), chat(entry(OTHER)), *STOP),
        [("pay", WHOLE), ("b", OTHER)]),
    "text on its index after it was told": (
        (chat(named(WHOLE), finish="stop"), chat(entry("x")), *STOP),
        [("pay", WHOLE), ("", "conflict!")]),
    "nothing on its index after it was told": (
        (chat(named(WHOLE), finish="stop"), chat(entry()), *STOP), PAID),
    "a new id without an index after a call that has one": (
        (chat(named(None, index=None)), chat(named(WHOLE, "b", "B", None)), *STOP),
        [("pay", ""), ("b", WHOLE)]),
    "a new id without an index after a call that has text": (
        (chat(named(WHOLE, id=None, index=None)), chat(named(OTHER, "b", "B", None)), *STOP),
        [("pay", WHOLE), ("b", OTHER)]),
    "a call that begins with its id and is named later": (
        (chat(entry('{"to"', id="A")), chat(entry(function={"name": "pay", "arguments": ':"me"}'})), *STOP),
        PAID),
    "an id that is used again under another index, with a name": (
        (chat(named(WHOLE)), chat(named('{"to"', "b", "A", 1)), chat(entry(':"me"}', 1, id="A")), *STOP),
        [("pay", WHOLE), ("b", WHOLE)]),
    "the id of another call wins over the index of one that is whole": (
        (chat(named(WHOLE)), chat(named('{"to"', "b", "B", 1)), chat(entry(':"me"}', 0, id="B")), *STOP),
        [("pay", WHOLE), ("b", WHOLE)]),
    "an index of one call and the id of another: a piece of either": (
        (chat(named('{"to"')), chat(named('{"to"', "b", "B", 1)), chat(entry(':"me"}', 0, id="B")),
         chat(entry(':"me"}')), *STOP),
        [("pay", "conflict!"), ("b", "conflict!")]),
    "an index of one call and the id of another, where {} may go on": (
        (chat(named("{}")), chat(named('{"to"', "b", "B", 1)), chat(entry(':"me"}', 0, id="B")), *STOP),
        [("pay", "conflict!"), ("b", "conflict!")]),
    "an index of one call and the id of another, and nothing said": (
        (chat(named('{"to"')), chat(named(WHOLE, "b", "B", 1)), chat(entry(None, 0, id="B")),
         chat(entry(':"me"}')), *STOP),
        [("pay", WHOLE), ("b", WHOLE)]),
    "another id for one call, said again": (
        (chat(named('{"to"')), chat(entry(":", id="A2")), chat(entry('"me"}', id="A2")), *STOP), PAID),
    "an index of one call, the id of another, and a name": (
        (chat(named('{"to"')), chat(named(WHOLE, "b", "B", 1)), chat(named(None, "b", "B", 0)),
         chat(entry(':"me"}')), *STOP),
        [("pay", "conflict!"), ("b", "conflict!")]),
    "text of a text tool after a reason beside it": (
        (chat(custom("one", "pay", id="A", type="custom"), finish="stop"), chat(custom(" two")), *STOP),
        DOUBTED),
    "the same half in the old field and in the new one": (
        (both(named('{"to"'), "pay", '{"to"'), *STOP), [("pay", "invalid_json!")]),
    "a copy in the old field of a call in another choice": (
        (chat(named(WHOLE, "b"), choice=1), both(named("{}"), "b", WHOLE), chat(finish="stop"),
         chat(finish="stop", choice=1), DONE),
        [("b", WHOLE), ("pay", "{}"), ("b", "conflict!")]),
    "arguments after the end of a call that was {}": (
        (chat(named("{}")), chat(finish="tool_calls"), chat(entry(WHOLE)), *STOP), DOUBTED),
    "arguments after {} and a reason that stands beside it": (
        (chat(named("{}"), finish="stop"), chat(entry('{"to":'), finish="stop"),
         chat(entry('"me"}'), finish="stop"), *STOP), PAID),
    "a call in the old field and in the new one is one": (
        (both(named('{"to":'), "pay", '{"to":'), both(entry('"me"}'), None, '"me"}'), *STOP),
        [("pay", WHOLE)]),
    "a call in both fields, written with other spaces": (
        (both(named(WHOLE), "pay", '{"to": "me"}'), *STOP), [("pay", WHOLE)]),
    "a call in both fields, of which the old one says only the name": (
        (both(named(WHOLE), "pay", None), *STOP), [("pay", WHOLE)]),
    "a call in both fields, of which the old one says no name": (
        (both(named(WHOLE), None, WHOLE), *STOP), [("pay", WHOLE)]),
    "the name of a call in both fields in pieces": (
        (both(named("", "pa"), "pa", None), both(entry(None, function={"name": "y"}), "y", None),
         both(entry(WHOLE), None, WHOLE), *STOP), [("pay", WHOLE)]),
    "the name of a call in both fields again and again": (
        (both(named('{"to":'), "pay", '{"to":'), both(entry('"me"}'), "pay", '"me"}'), *STOP), PAID),
    "halves in both fields that are no copies": (
        (both(named('{"to"'), "pay", '{"n"'), *STOP), [("pay", "invalid_json!"), ("pay", "conflict!")]),
    "another call in the old field than in the new one": (
        (both(named(WHOLE), "pay", '{"to":"you"}'), *STOP), [("pay", WHOLE), ("pay", "conflict!")]),
    "another name in the old field than in the new one": (
        (both(named(WHOLE), "b", WHOLE), *STOP), [("pay", WHOLE), ("b", "conflict!")]),
    "half a copy in the old field": (
        (both(named(WHOLE), "pay", '{"to":'), *STOP), [("pay", WHOLE), ("pay", "conflict!")]),
    "the old field after the end of the new one": (
        (chat(named(WHOLE)), chat(finish="tool_calls"), old("pay", WHOLE), *STOP), [("pay", WHOLE)]),
    "the old field before the new one": (
        (old("pay", WHOLE), chat(named(WHOLE)), *STOP), [("pay", "conflict!"), ("pay", WHOLE)]),
    "the old field, told, before the new one": (
        (old("pay", WHOLE), chat(finish="stop"), chat(named(WHOLE)), *STOP),
        [("pay", WHOLE), ("pay", "conflict!")]),
    "the old field in one choice and the new one in another": (
        (old("pay", WHOLE), chat(named(WHOLE), choice=1), chat(finish="stop"),
         chat(finish="stop", choice=1), DONE),
        [("pay", WHOLE), ("pay", WHOLE)]),
    "several entries without an index keep their order": (
        (chat(named('{"to"', index=None), named('{"to"', "b", "B", None)),
         chat(entry(':"me"}', None), entry(':"you"}', None)), *STOP),
        [("pay", WHOLE), ("b", '{"to":"you"}')]),
    "a new id and a name on a used index begin another call": (
        (chat(named(WHOLE)), chat(named(WHOLE, "b", "B")), *STOP), [("pay", WHOLE), ("b", WHOLE)]),
    "a new id and a name on a used index void what is not whole": (
        (chat(named('{"to"')), chat(named(WHOLE, "b", "B")), *STOP),
        [("pay", "conflict!"), ("b", WHOLE)]),
    "a new id and a whole object on a used index begin another call": (
        (chat(named(WHOLE)), chat(entry(WHOLE, id="B")), *STOP),
        [("pay", "conflict!"), ("", "conflict!")]),
    "a known id under another index goes on with its call": (
        (chat(named('{"to"')), chat(entry(':"me"}', 3, id="A")), *STOP), PAID),
    "an object in pieces adds up": (
        (chat(named({"to": "me"})), chat(entry({"n": 1})), *STOP), [("pay", '{"to": "me","n": 1}')]),
    "a legacy call": (
        (said(function_call={"name": "pay", "arguments": '{"to"'}),
         said(function_call={"arguments": ':"me"}'}), chat(finish="function_call"), DONE), PAID),
    "a legacy fragment that is a number": (
        (said(function_call={"name": "pay", "arguments": WHOLE}), said(function_call={"arguments": 5}),
         chat(finish="function_call"), DONE), DOUBTED),
    "an error in the delta, then [DONE]": (
        (chat(named(WHOLE)), said(error={"message": "x"}), *STOP), [("pay", "provider_error!")]),
    "an error in the choice, then [DONE]": (
        (chat(named(WHOLE)), chat(error={"message": "x"}), *STOP), [("pay", "provider_error!")]),
    "an error at the top": (
        (chat(named(WHOLE)), {"error": {"message": "x"}}), [("pay", "provider_error!")]),
    "a failing word in the chunk of the call": (
        (chat(named(WHOLE), finish="error"), DONE), [("pay", "provider_error!")]),
    "the word null is none": (
        (chat(named(), finish="null"), chat(entry(WHOLE)), *STOP), PAID),
    "a choice that has no end where another has": (
        (chat(named(WHOLE)), chat(named("", "b", "B"), choice=1), chat(finish="stop"), DONE),
        [("pay", WHOLE), ("b", "truncated!")]),
    "the first choice has no end where another has": (
        (chat(named()), chat(named(WHOLE, "b", "B"), choice=1), chat(finish="stop", choice=1), DONE),
        [("b", WHOLE), ("pay", "truncated!")]),
    "an empty id and its name with every fragment": (
        (chat(named('{"to"')), chat(named(':"me"}', id="")), *STOP), PAID),
    "a word beside an empty call, then the input ends": (
        (chat(named(), finish="stop"),), [("pay", "truncated!")]),
    "a word after an empty call, then the input ends": (
        (chat(named()), chat(finish="stop")), [("pay", "")]),
    "a second legacy call after the first was told": (
        (said(function_call={"name": "pay", "arguments": WHOLE}), chat(finish="function_call"),
         said(function_call={"name": "b", "arguments": OTHER}), *STOP), [("pay", WHOLE), ("b", OTHER)]),
    "a tool that the provider ran": (
        (said(executed_tools=[{"index": 0, "type": "pay", "arguments": WHOLE}]),
         said(executed_tools=[{"index": 0, "type": "pay", "arguments": WHOLE, "output": "x"}]), *STOP),
        PAID),
    "two tools that the provider ran": (
        (said(executed_tools=[{"index": 0, "name": "pay", "arguments": WHOLE},
                              {"index": 1, "name": "b", "arguments": OTHER}]), *STOP),
        [("pay", WHOLE), ("b", OTHER)]),
    "a tool that the provider ran, without a place and without arguments": (
        (said(executed_tools=[{"name": "pay", "arguments": ""}]), *STOP), [("pay", "")]),
    "the input ends without a word": ((chat(named(WHOLE)),), [("pay", "truncated!")]),
    "the input ends after a word": ((chat(named(WHOLE)), chat(finish="stop")), PAID),
}  # fmt: skip


def test_a_call_in_two_fields_is_noted_once():
    pieces = (both(named('{"to":'), "pay", '{"to":'), both(entry('"me"}'), None, '"me"}'))
    assert heard("openai_chat", *pieces, *STOP)[1] == {"call.said_twice": 1}


@pytest.mark.parametrize(
    ("limits", "failed"),
    [
        ({"arguments": len(WHOLE), "name": 3}, None),
        ({"arguments": len(WHOLE) - 1}, "arguments"),
        ({"name": 2}, "name"),
    ],
)
def test_a_call_in_the_old_field_is_bounded_as_any_other(limits: Json, failed: str | None):
    said = (
        chat(named("{}", "p")),
        old("pay", WHOLE[:5]),
        old(None, WHOLE[5:]),
        chat(finish="stop"),
        DONE,
    )
    pipe = Normalizer("openai_chat", seed=SEED, limits=Limits(**limits))
    end = [*pipe.feed(b"".join(map(sse, said))), *pipe.close()][-1]
    assert (end.code if isinstance(end, Failed) else None) == failed


def test_an_index_and_an_id_of_different_calls_are_noted():
    pieces = (
        chat(named(WHOLE)),
        chat(named('{"to"', "b", "B", 1)),
        chat(entry(':"me"}', 0, id="B")),
    )
    assert heard("openai_chat", *pieces, *STOP)[1] == {"call.index_reused": 1}


@pytest.mark.parametrize("row", CHAT)
def test_what_a_chat_stream_proves(row: str):
    payloads, calls = CHAT[row]
    assert told("openai_chat", *payloads) == calls


@pytest.mark.parametrize(
    ("payloads", "id", "notes"),
    [
        ((chat(named(WHOLE)),), "A", {}),
        ((chat(named('{"to"')), chat(entry(':"me"}', id="A"))), "A", {}),
        ((chat(named('{"to"')), chat(entry(':"me"}', id="X"))), "A", {"call.id_changed": 1}),
        ((chat(named(None, id=None)), chat(entry(WHOLE, id="A"))), "A", {}),
        ((chat(named('{"to"', id=None)), chat(entry(':"me"}', id="A"))), "A",
         {"call.id_synthetic": 1, "call.id_late": 1}),
    ],
)  # fmt: skip
def test_the_first_id_of_a_chat_call_counts(payloads, id: str, notes: dict[str, int]):
    events, noted = heard("openai_chat", *payloads, *STOP)
    assert [e.id for e in events if isinstance(e, ToolCall)] == [id]
    assert noted == notes


@pytest.mark.parametrize(
    ("payloads", "boundaries"),
    [
        ((chat(named(WHOLE)),), ["stated"]),
        ((chat(named(WHOLE, id=None)),), ["stated"]),
        ((chat(named(WHOLE, index=None)),), ["stated"]),
        ((chat(named(WHOLE, id=None, index=None)),), ["inferred"]),
        ((chat(named(WHOLE)), chat(named(OTHER, "b", None))), ["stated", "inferred"]),
        ((chat(named(WHOLE)), chat(named(OTHER, "b", "B"))), ["stated", "stated"]),
    ],
)
def test_where_a_chat_call_begins_is_stated_by_an_id_or_a_place_of_its_own(payloads, boundaries):
    events, _ = heard("openai_chat", *payloads, *STOP)
    told = [e for e in events if isinstance(e, ToolCall)]
    assert [e.provenance.boundary for e in told] == boundaries


def test_what_a_chat_call_must_go_back_with_adds_up():
    for entries, echo in (
        ([named(WHOLE)], None),
        ([named('{"to"') | {"extra_content": {"g": 1}}, entry(':"me"}', thought_signature="s")],
         {"extra_content": {"g": 1}, "thought_signature": "s"}),
    ):  # fmt: skip
        events, _ = heard("openai_chat", *map(chat, entries), *STOP)
        assert [e.echo for e in events if isinstance(e, ToolCall)] == [echo]


@pytest.mark.parametrize(
    ("payloads", "end"),
    [
        ((said(content="x"), chat(finish="stop"), DONE), "stop"),
        ((said(content="x"), chat(finish="stop")), "stop"),
        ((said(content="x"),), "failed: truncated, again"),
        ((said(content="x"), chat(choice=1), chat(finish="stop")), "failed: truncated, again"),
        ((said(content="x"), chat(choice=1), chat(finish="stop"), DONE), "stop"),
        ((said(content="x"), chat(finish="stop", choice=1), DONE), "failed: truncated, again"),
        ((chat(named(WHOLE), choice=1), chat(finish="tool_calls", choice=1), DONE), "tool_calls"),
        ((said(content="x"), chat(named(WHOLE), choice=1), chat(finish="stop", choice=1),
          chat(finish="stop"), DONE), "stop"),
        ((said(refusal="no"), chat(finish="stop"), DONE), "refusal"),
        ((said(refusal="no"), chat(finish="length"), DONE), "length"),
        ((said(content="x"), {"choices": [], "x_groq": {"error": "x"}}), FAILED),
        ((said(content="x"), {"choices": [], "x_groq": {"id": "x"}}, chat(finish="stop"), DONE), "stop"),
        (({"object": "chat.completion", "choices": [{"index": 0, "message": {"content": "x"}}]}, DONE),
         "failed: protocol"),
    ],
)  # fmt: skip
def test_how_a_chat_ends(payloads, end: str):
    assert ending(heard("openai_chat", *payloads)[0]) == end


def test_the_word_null_is_odd_and_no_end():
    assert heard("openai_chat", chat(named(WHOLE), finish="null"), *STOP)[1] == {
        "wire.shape_odd": 1
    }


def test_the_first_failure_of_a_chat_is_the_one_that_is_told():
    events, _ = heard(
        "openai_chat", chat(error={"message": "a"}), chat(error={"message": "b"}), DONE
    )
    assert (events[-1].kind, events[-1].error) == ("failed", "a")


def test_another_name_in_mid_call_is_no_piece_of_it():
    notes = heard("openai_chat", chat(named('{"to"')), chat(named(':"me"}', "b")), *STOP)[1]
    assert ("call.name_changed" in notes, "call.name_joined" in notes) == (True, False)


def test_a_chat_fragment_that_no_call_claims_is_noted():
    assert heard("openai_chat", chat(entry("x")), *STOP)[1]["call.unannounced"] == 1


# --- Responses ------------------------------------------------------------------------------------


def r_item(kind: str, text: Any = "", place: Any = 0, id: Any = "it_1", call_id: Any = "A",
           name: Any = "pay", type: str = "function_call", **more: Any) -> Json:  # fmt: skip
    field = {"custom_tool_call": "input"}.get(type, "arguments")
    item = {"type": type, "id": id, "call_id": call_id, "name": name, field: text, **more}
    said = {k: v for k, v in item.items() if v is not None}
    return {"type": f"response.output_item.{kind}", "output_index": place, "item": said}


def r_event(kind: str, place: Any = 0, id: Any = "it_1", **fields: Any) -> Json:
    found = {"type": f"response.{kind}", "output_index": place, "item_id": id, **fields}
    return {k: v for k, v in found.items() if v is not None}


def r_delta(text: Any, place: Any = 0, id: Any = "it_1", **more: Any) -> Json:
    return r_event("function_call_arguments.delta", place, id, delta=text, **more)


def r_said(text: Any, place: Any = 0, id: Any = "it_1", **more: Any) -> Json:
    return r_event("function_call_arguments.done", place, id, arguments=text, **more)


def r_over(*output: Any, kind: str = "completed", **more: Any) -> Json:
    response = {"id": "r", "output": list(output), "status": kind, **more}
    return {"type": f"response.{kind}", "response": response}


def final(text: str = WHOLE, **more: Any) -> Json:
    item = {"type": "function_call", "id": "it_1", "call_id": "A", "name": "pay", "arguments": text}
    return item | more


B_ADDED = r_item("added", place=1, id="it_2", call_id="B", name="b")
B_DONE = r_item("done", WHOLE, 1, "it_2", "B", "b")

CREATED: Json = {"type": "response.created", "response": {"id": "r"}}


def searched(id: Any = "ws_1", place: int = 0) -> tuple[Json, Json]:
    """A search of the provider's: its item has no id of the call."""
    common = {"type": "web_search_call", "call_id": None, "name": None, "place": place, "id": id}
    done = r_item("done", None, action={"query": "q"}, status="completed", **common)
    return r_item("added", None, **common), done


SEARCHED, NAMELESS = searched(), searched(id=None)

RESPONSES: dict[str, tuple[tuple[Any, ...], list[tuple[str, str]]]] = {
    "a call is its fragments and its item closes it": (
        (r_item("added"), r_delta('{"to"'), r_delta(':"me"}'), r_item("done", WHOLE), r_over()), PAID),
    "an item alone": ((r_item("done", WHOLE), r_over()), PAID),
    "an item that was added and never done": ((r_item("added"), r_over()), [("pay", "truncated!")]),
    "an item that is incomplete": (
        (r_item("added"), r_delta(WHOLE), r_item("done", WHOLE, status="incomplete"), r_over()),
        [("pay", "truncated!")]),
    "an item that failed and the client's": (
        (r_item("done", WHOLE, status="failed"), r_over()), [("pay", "provider_error!")]),
    "an item that failed and the provider's": (
        (r_item("done", WHOLE, status="failed", type="mcp_call"), r_over()), PAID),
    "an item that is first incomplete and then not": (
        (r_item("done", WHOLE, status="incomplete"), r_item("done", WHOLE, status="completed"), r_over()),
        [("pay", "truncated!")]),
    "an item that is still in progress closes nothing that has not begun": (
        (r_item("done", "", status="in_progress"), r_over()), [("pay", "truncated!")]),
    "an item in progress that has its text": (
        (r_item("done", WHOLE, status="in_progress"), r_over()), PAID),
    "a fragment that is a number makes its own call doubtful until it is said whole": (
        (r_item("added"), B_ADDED, r_delta(5), r_delta(WHOLE, 1, "it_2"), B_DONE, r_over()),
        [("b", WHOLE), ("pay", "conflict!")]),
    "where something was lost, a call that was never closed is not told": (
        (r_item("added"), B_ADDED, r_delta(5), r_delta('{"x":1}', 1, "it_2"), r_over()),
        [("pay", "conflict!"), ("b", "truncated!")]),
    "the item heals what a fragment lost": (
        (r_item("added"), r_delta(5), r_item("done", WHOLE), r_over()), PAID),
    "the whole arguments heal what a fragment lost": (
        (r_item("added"), r_delta(5), r_said(WHOLE), r_over()), PAID),
    "an item without text heals nothing": (
        (r_item("added"), r_delta(5), r_item("done", ""), r_over()), DOUBTED),
    "fragments that name no place with two calls open": (
        (r_item("added"), B_ADDED, r_delta(WHOLE, None, None), r_over()),
        [("pay", "conflict!"), ("b", "conflict!")]),
    "fragments that name no place with one call open": (
        (r_item("added"), r_delta(WHOLE, None, None), r_over()), PAID),
    "a fragment of another kind of tool opens another call": (
        (r_item("added"), r_delta(WHOLE),
         r_event("custom_tool_call_input.delta", delta="x"), r_item("done", WHOLE), r_over()),
        [("pay", WHOLE), ("", "conflict!")]),
    "a hole in the numbers": (
        (r_item("added") | {"sequence_number": 1}, r_said("", 0) | {"sequence_number": 2},
         r_delta(WHOLE), r_event("content_part.added", 5) | {"sequence_number": 9}, r_over()),
        DOUBTED),
    "numbers without a hole": (
        (r_item("added") | {"sequence_number": 1}, r_delta(WHOLE) | {"sequence_number": 2},
         r_event("content_part.added", 5) | {"sequence_number": 3}, r_over()), PAID),
    "numbers that go back": (
        (r_item("added") | {"sequence_number": 4}, r_event("content_part.added", 5) | {"sequence_number": 5},
         r_delta(WHOLE) | {"sequence_number": 6}, r_event("content_part.added", 5) | {"sequence_number": 3},
         r_over()), DOUBTED),
    "numbers that are always the same say nothing": (
        (r_item("added") | {"sequence_number": 0}, r_delta(WHOLE) | {"sequence_number": 0},
         r_event("content_part.added", 5) | {"sequence_number": 0}, r_over()), PAID),
    "a copy of the text that differs, and the item sides with it": (
        (r_item("added"), r_delta('{"x":1}'), r_said(WHOLE), r_item("done", WHOLE), r_over()), DOUBTED),
    "a copy of the text that differs, and the item sides with the fragments": (
        (r_item("added"), r_delta(WHOLE), r_said('{"x":1}'), r_item("done", WHOLE), r_over()), PAID),
    "a final response without the call": (
        (r_item("added"), r_delta(WHOLE), r_over(final(id="it_9", call_id="Z", name="z"))),
        [("z", WHOLE), ("pay", "conflict!")]),
    "a final response that is empty takes nothing back": (
        (r_item("added"), r_delta(WHOLE), r_over()), PAID),
    "a final response that says the call for the first time": ((r_over(final()),), PAID),
    "a final response that says a told call again": (
        (r_item("done", WHOLE), r_over(final())), PAID),
    "a final response that has the text of a call without any": (
        (r_item("added"), r_over(final())), PAID),
    "a final response that says incomplete": (
        (r_item("added"), r_delta(WHOLE), r_over(final(status="incomplete"))), [("pay", "truncated!")]),
    "an item said twice is one call": (
        (r_item("done", WHOLE), r_item("done", WHOLE), r_over()), PAID),
    "a start said again before anything came": (
        (r_item("added"), r_item("added"), r_delta(WHOLE), r_item("done", WHOLE), r_over()), PAID),
    "a start said again after something came": (
        (r_item("added"), r_delta('{"to"'), r_item("added"), r_item("done", WHOLE), r_over()),
        [("pay", "conflict!"), ("pay", WHOLE)]),
    "an item of one id in another place, while the first is not closed": (
        (r_item("added"), r_delta(WHOLE), r_item("done", WHOLE, 2, "it_2"), r_over()),
        [("pay", "conflict!"), ("pay", WHOLE)]),
    "an item of one id and another name in another place": (
        (r_item("added"), r_delta(WHOLE), r_item("done", WHOLE, 2, "it_2", name="b"), r_over()),
        [("b", WHOLE), ("pay", WHOLE)]),
    "an item of one id in another place, after the first was closed": (
        (r_item("added"), r_item("done", ""), r_item("done", WHOLE, 2, "it_2"), r_over()),
        [("pay", WHOLE), ("pay", "")]),
    "a usual piece after an empty one, after all was said": (
        (r_item("added"), r_said(WHOLE), r_delta(""), r_delta(""), r_delta("}"), r_item("done", ""),
         r_over()), DOUBTED),
    "a hosted item that is added again after it was told": (
        (*SEARCHED, *SEARCHED, r_over()), [("web_search", '{"query": "q"}')]),
    "an item that is added again after it was told": (
        (r_item("added"), r_item("done", WHOLE), r_item("added"), r_delta(WHOLE), r_item("done", WHOLE),
         r_over()), PAID),
    "a hosted item without an id in a place that was used is another": (
        (*NAMELESS, *NAMELESS, r_over()), [("web_search", '{"query": "q"}')] * 2),
    "a hosted item of another id in a place that was used is another": (
        (*SEARCHED, *searched(id="ws_2"), r_over()), [("web_search", '{"query": "q"}')] * 2),
    "a hosted item of one id in another place is another": (
        (*SEARCHED, *searched(place=1), r_over()), [("web_search", '{"query": "q"}')] * 2),
    "a call of another id in the item and the place of one that was told": (
        (r_item("added"), r_item("done", WHOLE), r_item("added", call_id="B", name="b"),
         r_item("done", WHOLE, call_id="B", name="b"), r_over()), [("pay", WHOLE), ("b", WHOLE)]),
    "a final list that has the item that was done in the place of another": (
        (*searched()[:1], *searched(id="ws_2")[1:],
         r_over(*(searched(id=id)[1]["item"] | {"action": {"query": q}}
                  for id, q in (("ws_1", "other"), ("ws_2", "q"))))),
        [("web_search", '{"query": "q"}')]),
    "a usual piece after all was said": (
        (r_item("added"), r_delta('{"to"'), r_delta(':"me"}'), r_said(WHOLE), r_delta(" "),
         r_item("done", ""), r_over()), DOUBTED),
    "usual pieces after all was said": (
        (r_item("added"), r_said(WHOLE), r_delta(" "), r_delta(" "), r_over()), DOUBTED),
    "a piece after an item that closes nothing has said all": (
        (r_item("added"), r_delta('{"to"'), r_delta(':"me"}'),
         r_item("done", WHOLE, status="incomplete"), r_delta(" "), r_item("done", "", status="completed"),
         r_over()), [("pay", "truncated!")]),
    "a search without a field that says for what, where nothing was lost": (
        (r_item("done", None, type="file_search_call", call_id=None, name=None), r_over()),
        [("file_search", "{}")]),
    "a search without a field that says for what, after a hole": (
        (r_event("in_progress") | {"sequence_number": 1},
         r_item("done", None, type="file_search_call", call_id=None, name=None) | {"sequence_number": 5},
         r_over()), [("file_search", "conflict!")]),
    "a search that a hole made doubtful, without a field that says for what": (
        (r_item("added", None, type="file_search_call", call_id=None, name=None) | {"sequence_number": 1},
         r_item("done", None, type="file_search_call", call_id=None, name=None) | {"sequence_number": 5},
         r_over()), [("file_search", "conflict!")]),
    "a search that a hole made doubtful, and that says for what": (
        (r_item("added", None, type="file_search_call", call_id=None, name=None) | {"sequence_number": 1},
         r_item("done", None, type="file_search_call", call_id=None, name=None, queries=["q"])
         | {"sequence_number": 5}, r_over()), [("file_search", '{"queries":["q"]}')]),
    "a response that ends under another id closes no call": (
        (CREATED, r_item("added"), r_delta(WHOLE), r_over(id="r2")), DOUBTED),
    "a response that ends under another id, and all was said": (
        (CREATED, r_item("added"), r_said(WHOLE), r_over(id="r2")), DOUBTED),
    "a response that ends under another id, and a call that was closed": (
        (CREATED, r_item("added"), r_delta(WHOLE), r_item("done", WHOLE), r_over(final(), id="r2")), PAID),
    "a response that ends under another id, and a closed call without arguments": (
        (CREATED, r_item("added"), r_item("done", ""), r_over(id="r2")), DOUBTED),
    "a response that ends under another id says no call for the first time": (
        (CREATED, r_over(final(), id="r2")), DOUBTED),
    "a response that ends under another id heals nothing": (
        (CREATED, r_item("added"), r_delta(5), r_over(final(), id="r2")), DOUBTED),
    "a response that ends under another id which began last": (
        (CREATED, CREATED | {"response": {"id": "r2"}}, r_item("added"), r_delta(WHOLE), r_over(id="r2")),
        PAID),
    "a response that ends under another id, and only its progress says the first": (
        (r_item("added"), r_delta(WHOLE), {"type": "response.in_progress", "response": {"id": "r"}},
         r_over(id="r2")), DOUBTED),
    "a response that ends without an id": (
        (CREATED, r_item("added"), r_delta(WHOLE), r_over(id=None)), PAID),
    "a response that began without an id": (
        (CREATED | {"response": {}}, r_item("added"), r_delta(WHOLE), r_over()), PAID),
    "a text tool closed by its item": (
        (r_item("added", "", type="custom_tool_call"),
         r_event("custom_tool_call_input.delta", delta="ls"),
         r_item("done", "ls", type="custom_tool_call"), r_over()), [("pay", "ls")]),
    "a text tool that was never closed": (
        (r_item("added", "", type="custom_tool_call"),
         r_event("custom_tool_call_input.delta", delta="ls"), r_over()), [("pay", "truncated!")]),
    "a text tool that is cut by the token limit": (
        (r_item("added", "", type="custom_tool_call"),
         r_event("custom_tool_call_input.delta", delta="ls"),
         r_over(kind="incomplete", incomplete_details={"reason": "max_output_tokens"})),
        [("pay", "length!")]),
    "a response that failed": (
        (r_item("added"), r_delta(WHOLE), r_over(kind="failed", error={"message": "x"})),
        [("pay", "provider_error!")]),
    "a response that was cancelled": (
        (r_item("added"), r_delta(WHOLE), r_over(kind="cancelled")), [("pay", "cancelled!")]),
    "a completed event that says failed": (
        (r_item("added"), r_delta(WHOLE),
         {"type": "response.completed", "response": {"id": "r", "status": "failed", "error": {}}}),
        [("pay", "provider_error!")]),
    "a completed event that says incomplete": (
        (r_item("done", ""), {"type": "response.completed", "response": {
            "id": "r", "status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}}),
        [("pay", "length!")]),
    "an input in a field that its type does not have": (
        (r_item("done", None, unheard={"to": "me"}), r_over()), DOUBTED),
    "arguments that are a number in the item": ((r_item("done", 5), r_over()), DOUBTED),
    "an item without arguments": ((r_item("done", None), r_over()), DOUBTED),
    "an item whose arguments are empty": ((r_item("done", ""), r_over()), [("pay", "")]),
    "[DONE] in place of the end": ((r_item("added"), r_delta(WHOLE), DONE), [("pay", "truncated!")]),
}  # fmt: skip


def test_a_type_that_never_says_an_input_is_whole_whatever_was_lost():
    item = {"type": "structured_outputs", "id": "so_1", "output": {"n": 1}}
    first = r_event("in_progress") | {"sequence_number": 1}
    done = {
        "type": "response.output_item.done",
        "output_index": 0,
        "item": item,
        "sequence_number": 5,
    }
    assert told("azure_foundry", first, done, r_over()) == [("structured_outputs", "{}")]


@pytest.mark.parametrize("row", RESPONSES)
def test_what_a_responses_stream_proves(row: str):
    payloads, calls = RESPONSES[row]
    assert told("openai_responses", *payloads) == calls


@pytest.mark.parametrize(
    ("payloads", "id", "source"),
    [
        ((r_item("added", call_id=None), r_item("done", WHOLE)), "A", "natural"),
        ((r_item("added", call_id=""), r_item("done", WHOLE)), "A", "natural"),
        ((r_item("added", call_id=None), r_said(WHOLE, call_id="A"), r_item("done", WHOLE, call_id=None)),
         "A", "natural"),
        ((r_item("added", call_id="X"), r_item("done", WHOLE)), "A", "natural"),
        ((r_item("added", call_id=None), r_item("done", WHOLE, call_id=None)), "it_1", "conflated"),
        ((r_item("added", call_id=None), r_delta(WHOLE), r_over(final())), "A", "natural"),
    ],
)  # fmt: skip
def test_the_best_id_of_an_item_counts_whenever_it_comes(payloads, id: str, source: str):
    events, _ = heard("openai_responses", *payloads, r_over())
    (call,) = [e for e in events if isinstance(e, ToolCall)]
    assert (call.id, call.provenance.id_source) == (id, source)


# --- Cohere, Bedrock, Ollama, Interactions --------------------------------------------------------


def c_call(kind: str, entry: Any = None, index: Any = 0) -> Json:
    inner = {} if entry is None else {"delta": {"message": {"tool_calls": entry}}}
    return {"type": f"tool-call-{kind}", "index": index, **inner}


def c_start(text: Any = "", id: Any = "A", name: Any = "pay", index: Any = 0) -> Json:
    return c_call("start", {"id": id, "function": {"name": name, "arguments": text}}, index)


def c_delta(text: Any, index: Any = 0) -> Json:
    return c_call("delta", {"function": {"arguments": text}}, index)


def c_end(word: Any = "TOOL_CALL", **more: Any) -> Json:
    return {"type": "message-end", "delta": {"finish_reason": word, **more}}


def b_start(id: str = "A", name: str = "pay", index: Any = 0, **more: Any) -> Json:
    use = {"toolUse": {"toolUseId": id, "name": name, **more}}
    return {"contentBlockStart": {"contentBlockIndex": index, "start": use}}


def b_delta(text: Any, index: Any = 0) -> Json:
    return b_said(index, toolUse={"input": text})


def b_said(index: Any = 0, **delta: Any) -> Json:
    return {"contentBlockDelta": {"contentBlockIndex": index, "delta": delta}}


def b_stop(index: Any = 0) -> Json:
    return {"contentBlockStop": {"contentBlockIndex": index}}


B_END = ({"messageStop": {"stopReason": "tool_use"}}, {"metadata": {"usage": {}}})


def o_line(*entries: Any, **more: Any) -> Json:
    message = {"role": "assistant", "content": "", "tool_calls": list(entries)}
    return {"model": "m", "message": message, "done": False, **more}


def o_call(arguments: Any, name: str = "pay") -> Json:
    return {"function": {"name": name, "arguments": arguments}}


O_END: Json = {"model": "m", "done": True, "done_reason": "stop"}


def i_step(kind: str, index: Any = 0, **fields: Any) -> Json:
    return {"event_type": f"step.{kind}", "index": index, **fields}


def i_start(index: Any = 0, id: str = "A", name: str = "pay", **more: Any) -> Json:
    step = {"type": "function_call", "id": id, "name": name, "arguments": {}, **more}
    return i_step("start", index, step=step)


def i_delta(arguments: Any, index: Any = 0, type: str = "arguments_delta") -> Json:
    return i_step("delta", index, delta={"type": type, "arguments": arguments})


def i_over(status: str = "requires_action") -> Json:
    return {"event_type": "interaction.completed", "interaction": {"status": status}}


THEM: dict[str, dict[str, tuple[tuple[Any, ...], list[tuple[str, str]]]]] = {
    "cohere": {
        "a call is its fragments": (
            (c_start('{"to"'), c_delta(':"me"}'), c_call("end"), c_end()), PAID),
        "a call that was never ended": ((c_start(WHOLE), c_end("ERROR_TOXIC")), [("pay", "truncated!")]),
        "an end in a place that no call has": (
            (c_start(WHOLE), c_call("end", index=1), c_end("ERROR_TOXIC")), [("pay", "truncated!")]),
        "a start said again": (
            (c_start(), c_start(), c_delta(WHOLE), c_call("end"), c_end()), PAID),
        "another start in its place": (
            (c_start(), c_start(WHOLE, "B", "b"), c_call("end"), c_end()),
            [("pay", "conflict!"), ("b", WHOLE)]),
        "a fragment that no call claims": (
            (c_start(WHOLE), c_delta("x", 7), c_call("end"), c_end()), DOUBTED),
        "a fragment before its call": (
            (c_delta("x"), c_start(WHOLE), c_call("end"), c_end()), DOUBTED),
        "a fragment without text": (
            (c_start(WHOLE), c_call("delta", {"function": {}}), c_call("end"), c_end()), DOUBTED),
        "an empty fragment": ((c_start(WHOLE), c_delta(""), c_call("end"), c_end()), PAID),
        "a name that comes late": (
            (c_start(WHOLE, name=None), c_call("delta", {"function": {"name": "pay"}}), c_call("end"),
             c_end()), PAID),
        "a fragment that is a number makes its own call doubtful": (
            (c_start(WHOLE), c_start(WHOLE, "B", "b", 1), c_delta(5, 1), c_call("end"),
             c_call("end", index=1), c_end()), [("pay", WHOLE), ("b", "conflict!")]),
        "an index that is a text": (
            (c_start(WHOLE), c_delta("x", "zero"), c_call("end"), c_end()), DOUBTED),
        "damaged content is not of a call": (
            (c_start(WHOLE), {"type": "content-delta", "index": 0, "delta": 5}, c_call("end"), c_end()),
            PAID),
        "an error at the end": (
            (c_start(WHOLE), c_end("COMPLETE", error="x")), [("pay", "provider_error!")]),
        "a failing word at the end": ((c_start(WHOLE), c_end("ERROR")), [("pay", "provider_error!")]),
        **{f"a new kind that holds {word}": (
            (c_start(WHOLE), {"type": "new", "x": word}, c_call("end"), c_end()), DOUBTED)
           for word in ("tool_calls", "function", "arguments")},
        "a new kind that holds none of a call's words": (
            (c_start(WHOLE), {"type": "new", "x": "y"}, c_call("end"), c_end()), PAID),
    },
    "bedrock": {
        "a call is its fragments": ((b_start(), b_delta('{"to"'), b_delta(':"me"}'), b_stop(), *B_END), PAID),
        "a stop in a place that no call has": (
            (b_start(), b_delta(WHOLE), b_stop(1), {"messageStop": {"stopReason": "content_filtered"}},
             B_END[1]), [("pay", "truncated!")]),
        "a start said again": ((b_start(), b_start(), b_delta(WHOLE), b_stop(), *B_END), PAID),
        "another start in its place": (
            (b_start(), b_start("B", "b"), b_delta(WHOLE), b_stop(), *B_END),
            [("pay", "conflict!"), ("b", WHOLE)]),
        "a fragment that no call claims": (
            (b_start(), b_delta(WHOLE), b_delta("x", 7), b_stop(), *B_END), DOUBTED),
        "a fragment before its call": ((b_delta("x"), b_start(), b_delta(WHOLE), b_stop(), *B_END), DOUBTED),
        "a fragment without text": (
            (b_start(), b_delta(WHOLE), b_delta(None), b_stop(), *B_END), DOUBTED),
        "an empty fragment": ((b_start(), b_delta(WHOLE), b_delta(""), b_stop(), *B_END), PAID),
        "text in its place": (
            (b_start(), b_delta(WHOLE), b_said(text="x"), b_stop(), *B_END), DOUBTED),
        "text in another place": (
            (b_start(), b_delta(WHOLE), b_said(1, text="x"), b_stop(), *B_END), PAID),
        "text in its place after it was closed": (
            (b_start(), b_delta(WHOLE), b_stop(), b_said(text="x"), b_start("B", "b", 1), b_stop(1),
             *B_END), [("pay", WHOLE), ("b", "")]),
        "a thought in its place": (
            (b_start(), b_delta(WHOLE), b_said(reasoningContent={"text": "x"}), b_stop(), *B_END),
            DOUBTED),
        "a fragment that is a number makes its own call doubtful": (
            (b_start(), b_start("B", "b", 1), b_delta(WHOLE), b_delta(WHOLE, 1), b_delta(5, 1), b_stop(),
             b_stop(1), *B_END), [("pay", WHOLE), ("b", "conflict!")]),
        "an index that is a text": (
            (b_start(), b_delta(WHOLE), b_delta("x", "zero"), b_stop(), *B_END), DOUBTED),
        "a failing word, then the counts": (
            (b_start(), b_delta(WHOLE), {"messageStop": {"stopReason": "malformed_tool_use"}}, B_END[1]),
            [("pay", "provider_error!")]),
        "a failing word, then nothing": (
            (b_start(), b_delta(WHOLE), {"messageStop": {"stopReason": "malformed_tool_use"}}),
            [("pay", "provider_error!")]),
        "the counts alone are no end": (
            (b_start(), b_delta(WHOLE), B_END[1], b_stop(), B_END[0]), PAID),
        "a new kind that holds a call's words": (
            (b_start(), b_delta(WHOLE), {"new": {"x": "toolUse"}}, b_stop(), *B_END), DOUBTED),
        "a new kind that holds none of them": (
            (b_start(), b_delta(WHOLE), {"new": {"x": "y"}}, b_stop(), *B_END), PAID),
    },
    "ollama": {
        "a call is said at once": ((o_line(o_call({"to": "me"})), O_END), PAID),
        "arguments as a text": ((o_line(o_call(WHOLE)), O_END), PAID),
        "no arguments at a normal end": ((o_line(o_call(None)), O_END), [("pay", "")]),
        "no arguments at another end": (
            (o_line(o_call(None)), O_END | {"done_reason": "new"}), [("pay", "truncated!")]),
        "an end without a word is a normal one": (
            (o_line(o_call(None)), {"model": "m", "done": True}), [("pay", "")]),
        "arguments that are a list": ((o_line(o_call([1])), O_END), [("pay", "not_object!")]),
        "arguments under another name": (
            (o_line({"function": {"name": "pay", "ARGUMENTS": {"to": "me"}}}), O_END), DOUBTED),
        "a call that was told stays told when the turn fails": (
            (o_line(o_call({"to": "me"}), o_call(None, "b")), {"error": "x"}),
            [("pay", WHOLE), ("b", "provider_error!")]),
    },
    "gemini_interactions": {
        "a call is its fragments": (
            (i_start(), i_delta('{"to"'), i_delta(':"me"}'), i_step("stop"), i_over()), PAID),
        "a call that is said in its start": (
            (i_start(arguments={"to": "me"}), i_step("stop"), i_over()), [("pay", '{"to": "me"}')]),
        "fragments count before what the start said": (
            (i_start(arguments={"to": "x"}), i_delta(WHOLE), i_step("stop"), i_over()), PAID),
        "an object in a delta": (
            (i_start(), i_delta({"to": "me"}), i_step("stop"), i_over()), [("pay", '{"to": "me"}')]),
        "an empty object between the fragments says nothing": (
            (i_start(), i_delta(WHOLE), i_delta({}), i_step("stop"), i_over()), PAID),
        "an object between the fragments": (
            (i_start(), i_delta(WHOLE), i_delta({"n": 1}), i_step("stop"), i_over()), DOUBTED),
        **{f"a fragment that is {odd!r}": (
            (i_start(), i_delta(WHOLE), i_delta(odd), i_step("stop"), i_over()), DOUBTED)
           for odd in (5, [1], True)},
        "an empty fragment": ((i_start(), i_delta(WHOLE), i_delta(""), i_step("stop"), i_over()), PAID),
        "a start said again": ((i_start(), i_start(), i_delta(WHOLE), i_step("stop"), i_over()), PAID),
        "another start in its place": (
            (i_start(), i_start(0, "B", "b"), i_delta(WHOLE), i_step("stop"), i_over()),
            [("pay", "conflict!"), ("b", WHOLE)]),
        "a step of another kind in its place": (
            (i_start(), i_delta(WHOLE), i_step("start", step={"type": "model_output"}), i_step("stop"),
             i_over()), DOUBTED),
        "a fragment that no call claims": (
            (i_start(), i_delta(WHOLE), i_delta("x", 7), i_step("stop"), i_over()), DOUBTED),
        "a fragment before its call": (
            (i_delta("x"), i_start(), i_delta(WHOLE), i_step("stop"), i_over()), DOUBTED),
        "text in its place": (
            (i_start(), i_delta(WHOLE), i_step("delta", delta={"type": "text", "text": "x"}),
             i_step("stop"), i_over()), DOUBTED),
        "text in another place": (
            (i_start(), i_delta(WHOLE), i_step("delta", 1, delta={"type": "text", "text": "x"}),
             i_step("stop"), i_over()), PAID),
        "a call without a place": (
            (i_start(None), i_delta(WHOLE, None), i_step("stop", None), i_over()), DOUBTED),
        "a stop in a place that no call has": (
            (i_start(), i_step("stop", 1), i_over()), [("pay", "truncated!")]),
        "a failed interaction": (
            (i_start(), i_delta(WHOLE), i_over("failed")), [("pay", "provider_error!")]),
    },
}  # fmt: skip


@pytest.mark.parametrize(("wire", "row"), [(wire, row) for wire in THEM for row in THEM[wire]])
def test_what_a_stream_of_the_other_wires_proves(wire: str, row: str):
    payloads, calls = THEM[wire][row]
    assert told(wire, *payloads) == calls
