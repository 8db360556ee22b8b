"""For any conversation, from any provider to any other: what must hold of calls and results.

Every call is answered once, directly after its turn and in the order of the calls; ids are legal,
unique and the same on both sides; what came from a provider goes back to it as it came, and nothing
of it to another.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import msgspec
import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st

from streamnorm import (
    Conversation,
    EncodeError,
    File,
    Made,
    Provenance,
    Reasoning,
    Text,
    Tool,
    ToolCall,
    ToolResult,
    Turn,
    UnansweredCall,
)
from streamnorm.encoding.pairs import UNAVAILABLE
from streamnorm.text.written import in_base64
from streamnorm.wire import provider
from tests.conftest import CALLING, entries_of
from tests.encoding.test_ids import PATTERNS
from tests.providers.test_sdk_requests import talk_of, turn_of, whole_takes


class Said(NamedTuple):
    """What a body says about a call: that it was made, that it was answered, or that a user spoke."""

    what: str
    id: str | None = None
    name: str = ""
    arguments: Any = None


# --- reading bodies, wire by wire -----------------------------------------------------------------


def _anthropic(body: dict[str, Any]) -> Iterator[Said]:
    for message in body["messages"]:
        for block in message["content"]:
            if block["type"] == "tool_use":
                yield Said("call", block["id"], block["name"], block["input"])
            elif block["type"] == "tool_result":
                yield Said("result", block["tool_use_id"])
            elif message["role"] == "user":
                yield Said("user")


def _responses(body: dict[str, Any]) -> Iterator[Said]:
    for item in body["input"]:
        if item.get("type") == "function_call":
            yield Said("call", item["call_id"], item["name"], item["arguments"])
        elif item.get("type") == "function_call_output":
            yield Said("result", item["call_id"])
        elif item.get("role") == "user":
            yield Said("user")


def _chat(body: dict[str, Any]) -> Iterator[Said]:
    for message in body["messages"]:
        for entry in message.get("tool_calls", ()):
            function = entry["function"]
            yield Said("call", entry.get("id"), function["name"], function["arguments"])
        if message["role"] == "tool":
            yield Said("result", message.get("tool_call_id"), message.get("tool_name", ""))
        elif message["role"] == "user":
            yield Said("user")


def _gemini(body: dict[str, Any]) -> Iterator[Said]:
    for content in body["contents"]:
        for part in content["parts"]:
            if call := part.get("functionCall"):
                yield Said("call", call.get("id"), call["name"], call["args"])
            elif answer := part.get("functionResponse"):
                yield Said("result", answer.get("id"), answer["name"])
            elif content["role"] == "user" and "inlineData" not in part:
                yield Said("user")


def _interactions(body: dict[str, Any]) -> Iterator[Said]:
    for step in body["input"]:
        if step["type"] == "function_call":
            yield Said("call", step["id"], step["name"], step["arguments"])
        elif step["type"] == "function_result":
            yield Said("result", step["call_id"], step["name"])
        elif step["type"] == "user_input":
            yield Said("user")


def _conversations(body: dict[str, Any]) -> Iterator[Said]:
    for entry in body["inputs"]:
        if entry["type"] == "function.call":
            yield Said("call", entry["tool_call_id"], entry["name"], entry["arguments"])
        elif entry["type"] == "function.result":
            yield Said("result", entry["tool_call_id"])
        elif entry["type"] == "message.input":
            yield Said("user")


def _bedrock(body: dict[str, Any]) -> Iterator[Said]:
    roles = [message["role"] for message in body["messages"]]
    assert all(a != b for a, b in pairwise(roles)), "roles take turns"
    for message in body["messages"]:
        for block in message["content"]:
            if call := block.get("toolUse"):
                yield Said("call", call["toolUseId"], call["name"], call["input"])
            elif answer := block.get("toolResult"):
                yield Said("result", answer["toolUseId"])
            elif message["role"] == "user":
                yield Said("user")


READERS: dict[str, Callable[[dict[str, Any]], Iterator[Said]]] = {
    "anthropic": _anthropic,
    "openai_responses": _responses,
    "azure_foundry": _responses,
    "openai_chat": _chat,
    "mistral": _chat,
    "mistral_conversations": _conversations,
    "dashscope": lambda body: _chat(body["input"]),
    "cohere": _chat,
    "ollama": _chat,
    "gemini": _gemini,
    "gemini_interactions": _interactions,
    "bedrock": _bedrock,
}
AS_TEXT = {
    "openai_responses", "azure_foundry", "openai_chat", "mistral", "mistral_conversations", "cohere",
    "dashscope",
}  # fmt: skip


def exchanges(said: list[Said]) -> list[tuple[list[Said], list[Said]]]:
    """Calls and the results that follow them, with nothing between."""
    pairs: list[tuple[list[Said], list[Said]]] = []
    before = ""
    for item in said:
        if item.what == "call":
            if before != "call":
                pairs.append(([], []))
            pairs[-1][0].append(item)
        elif item.what == "result":
            assert before in ("call", "result"), "a result that follows no call"
            pairs[-1][1].append(item)
        before = item.what
    return pairs


def assert_paired(target: str, body: dict[str, Any], own: bool) -> list[Said]:
    said = list(READERS[target](body))
    pairs = exchanges(said)
    for calls, results in pairs:
        assert [c.id for c in calls] == [r.id for r in results], "answered once, in call order"
        ids = [c.id for c in calls if c.id is not None]
        assert len(set(ids)) == len(ids)
        for call, result in zip(calls, results, strict=True):
            assert result.name in ("", call.name)
    ids = [c.id for calls, _ in pairs for c in calls if c.id is not None]
    if not own or target not in ("openai_chat", "ollama", "gemini", "dashscope"):
        assert len(set(ids)) == len(ids), "unique in the whole request"
    return [call for calls, _ in pairs for call in calls]


# --- conversations --------------------------------------------------------------------------------

PNG = File(b"\x89PNG", "image/png")
ECHO = "an-echo-that-only-its-own-provider-may-hear"
ids = st.sampled_from(["functions.x:0", "x", "call_1"]) | st.text(min_size=1, max_size=70)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8), lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)  # fmt: skip
arguments = st.dictionaries(st.text(max_size=6), values, max_size=3)
outputs = st.text(max_size=20) | values | st.just(PNG) | st.just(["a", PNG])


@st.composite
def turns(draw: st.DrawFn, source: str, number: int) -> Turn:
    natural = draw(st.lists(ids, max_size=4, unique=True))
    parts: list[Any] = [Text(draw(st.text(max_size=5)))] if draw(st.booleans()) else []
    if draw(st.booleans()):
        parts.append(Reasoning("hidden thoughts"))
    for ordinal, id in enumerate(natural):
        said = draw(arguments)
        raw = json.dumps(said, ensure_ascii=False, indent=draw(st.sampled_from([None, 1])))
        origin = Provenance(
            draw(st.sampled_from(["natural", "conflated", "synthetic"])), id, "id", "stated",
            source, f"r{number}",
        )  # fmt: skip
        echo = {"x_echo": ECHO} if draw(st.booleans()) else None
        parts.append(
            ToolCall(ordinal, id, draw(st.sampled_from(["f", "g.h", "a b"])), said, raw,
                     provenance=origin, echo=echo)
        )  # fmt: skip
    return Turn("assistant", tuple(parts), source)


@st.composite
def conversations(draw: st.DrawFn, source: str) -> Conversation:
    talk = Conversation().user("Begin")
    for number in range(draw(st.integers(1, 4))):
        turn = draw(turns(source, number))
        talk.add(turn)
        results = [ToolResult.for_call(c, draw(outputs), draw(st.booleans())) for c in turn.calls]
        shuffled = draw(st.permutations(results))
        cut = draw(st.integers(0, len(shuffled)))
        for part in (shuffled[:cut], shuffled[cut:]):
            if part:
                talk.results(part)
        if draw(st.booleans()) or not results:
            talk.user("Go on")
    return talk


TOOLS = [Tool("f"), Tool("g.h"), Tool("a b")]


@pytest.mark.parametrize("target", CALLING)
@given(data=st.data())
def test_calls_and_results_pair_on_every_wire(target, data):
    source = data.draw(st.sampled_from(sorted(CALLING)))
    talk = data.draw(conversations(source))
    body = provider(target).request(talk, TOOLS)
    own = source == target
    calls = assert_paired(target, body, own)
    made = [call for turn in talk for call in turn.calls]
    assert len(calls) == len(made)
    for said, call in zip(calls, made, strict=True):
        if target in AS_TEXT:
            assert said.arguments == call.raw
        else:
            assert said.arguments == call.arguments
        if own and call.provenance.id_source != "synthetic" and target in ("openai_chat", "ollama"):
            assert said.id == call.id
        if not own and said.id is not None and target in PATTERNS:
            assert provider(target)._encoder.grammar.takes(said.id)
    heard = msgspec.json.encode(body).decode()
    echoed = any(call.echo for call in made)
    assert (ECHO in heard) == (own and echoed)
    if not own:
        assert "hidden thoughts" not in heard
        assert "hidden thoughts" in str(
            provider(target).request(talk, TOOLS, reasoning="text")
        ) or (not any(isinstance(p, Reasoning) for turn in talk for p in turn.parts))


@pytest.mark.parametrize("target", CALLING)
@given(data=st.data())
def test_earlier_turns_are_said_the_same_when_the_conversation_grows(target, data):
    """Providers cache what was said before; it must not change."""
    talk = data.draw(conversations(data.draw(st.sampled_from(sorted(CALLING)))))
    wire = provider(target)
    before = entries_of(target, wire.request(talk, TOOLS))
    talk.add(data.draw(turns("anthropic", 99)))
    talk.results([ToolResult.for_call(call, "ok") for call in talk.turns[-1].calls])
    after = entries_of(target, wire.request(talk, TOOLS))
    assert after[: len(before) - 1] == before[:-1]


@pytest.mark.parametrize("target", CALLING)
@given(data=st.data())
def test_calls_and_results_by_themselves_agree(target, data):
    turn = data.draw(turns(data.draw(st.sampled_from(sorted(CALLING))), 0))
    wire = provider(target)
    results = [ToolResult.for_call(call, "ok") for call in turn.calls]
    entries = [*wire.calls(turn.calls), *wire.results(results[::-1])]
    outer, _, inner = wire.container.partition(".")
    assert_paired(target, {outer: {inner: entries} if inner else entries}, turn.provider == target)


# --- echoes of real takes -------------------------------------------------------------------------

SECRETS = {
    "signature", "encrypted_content", "thoughtSignature", "reasoning_opaque", "redactedContent",
    "data", "encrypted_stdout", "encrypted_index",
}  # fmt: skip


def secrets(value: Any) -> Iterator[str]:
    """What only its own provider can read, and wants back to the letter."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if key in SECRETS and isinstance(inner, str) and len(inner) > 12:
                yield inner
            yield from secrets(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from secrets(inner)


def test_signatures_and_ciphertext_go_back_exactly_and_to_nobody_else():
    seen = 0
    for path in whole_takes():
        turn = turn_of(path)
        assert turn is not None
        own = turn.provider
        shown = {
            in_base64(part.data) for part in turn.parts if isinstance(part, Made) and part.data
        }
        mine = set(secrets(msgspec.to_builtins(turn)["parts"])) - shown  # pictures are for anybody
        seen += len(mine)
        for target in CALLING if mine else ():
            body = msgspec.json.encode(provider(target).request(talk_of(turn), model="m")).decode()
            heard = {secret for secret in mine if secret in body}
            assert heard == (mine if target == own else set()), f"{path.name} to {target}"
    assert seen > 10


# --- what is refused ------------------------------------------------------------------------------


def call(ordinal: int = 0, id: str = "call_1", **more: Any) -> ToolCall:
    return ToolCall(ordinal, id, "f", {}, "{}", **more)


def asked(*calls: ToolCall) -> Conversation:
    return Conversation().user("Go").add(Turn("assistant", calls))


@pytest.mark.parametrize("target", CALLING)
def test_a_result_for_an_unknown_call_is_refused(target):
    talk = asked(call()).results([ToolResult.for_call(call(id="other"), "x")])
    with pytest.raises(EncodeError, match="does not have"):
        provider(target).request(talk)


def test_a_result_of_another_call_with_the_same_id_is_refused():
    other = ToolCall(0, "call_1", "f", {"a": 1}, '{"a":1}')
    with pytest.raises(EncodeError, match="that very call"):
        provider("openai_chat").request(asked(call()).results([ToolResult.for_call(other, "x")]))


@pytest.mark.parametrize("target", CALLING)
def test_two_results_for_one_call_are_refused(target):
    result = ToolResult.for_call(call(), "x")
    with pytest.raises(EncodeError, match="two results"):
        provider(target).request(asked(call()).results([result, result]))


@pytest.mark.parametrize("target", CALLING)
def test_a_call_without_a_result_is_answered_neutrally_and_told(target):
    talk = asked(call(), call(1, "call_2")).results([ToolResult.for_call(call(), "x")])
    with structlog.testing.capture_logs() as lines:
        prepared = provider(target).prepare(talk)
    structlog.reset_defaults()
    assert str(prepared.body).count(UNAVAILABLE) == 1
    assert prepared.dropped[0] == ("turn 1", "f (call_2)", "closed: it has no result")
    assert [(line["log_level"], line["event"], line["call_id"]) for line in lines] == [
        ("warning", "request.closed", "call_2")
    ]
    assert len(talk.turns) == 3


@pytest.mark.parametrize("target", CALLING)
def test_a_call_without_a_result_is_refused_if_wanted(target):
    talk = asked(call(), call(1, "call_2")).results([ToolResult.for_call(call(), "x")])
    with pytest.raises(UnansweredCall, match=r"'call_2'.*has no result; add one"):
        provider(target).request(talk, orphans="raise")


@pytest.mark.parametrize("target", CALLING)
def test_a_call_without_a_result_is_left_out_if_wanted(target):
    talk = asked(call(0, "call_8"), call(1, "call_9")).results(
        [ToolResult.for_call(call(0, "call_8"), "x")]
    )
    prepared = provider(target).prepare(talk, orphans="drop")
    assert [said.what for said in READERS[target](prepared.body)] == ["user", "call", "result"]
    assert prepared.dropped[0] == ("turn 1", "f (call_9)", "dropped_call: it has no result")


def test_a_result_that_comes_after_the_next_answer_goes_behind_its_call():
    talk = asked(call()).assistant("Done").results([ToolResult.for_call(call(), "x")])
    prepared = provider("openai_chat").prepare(talk)
    assert [m["role"] for m in prepared.body["messages"]] == [
        "user",
        "assistant",
        "tool",
        "assistant",
    ]
    assert [row.why for row in prepared.dropped] == ["moved_result: its call is in turn 1"]


def test_a_policy_that_is_none_is_named():
    with pytest.raises(EncodeError, match="orphans='skip' is not one of error, drop, raise"):
        provider("anthropic").request(asked(call()), orphans="skip")


def test_a_turn_with_a_broken_call_is_refused_until_it_is_left_out():
    from streamnorm import BrokenToolCall

    broken = BrokenToolCall(0, "call_1", "f", "{", "length")
    turn = Turn("assistant", (Text("Let me"),), broken=(broken,))
    talk = Conversation().user("Go").add(turn).user("Again")
    with pytest.raises(EncodeError, match=r"turn\.whole\(\)"):
        provider("anthropic").request(talk)
    talk.turns[1] = turn.whole()
    assert len(provider("anthropic").request(talk)["messages"]) == 3


def test_where_a_service_keeps_the_calls_their_results_stand_first():
    from streamnorm.agent.outgoing import Outgoing

    call = ToolCall(0, "call_1", "f", {}, "{}")
    turns = [Turn("tool", (ToolResult.for_call(call, "done"),)), *Conversation().user("And?").turns]
    wire = provider("openai_responses")
    kept = Outgoing(turns, service_id="resp_1", is_service_kept=True)
    assert wire.request(kept, model="m")["input"] == [
        {"type": "function_call_output", "call_id": "call_1", "output": "done"},
        {"role": "user", "content": "And?"},
    ]
    with pytest.raises(EncodeError, match="the talk before it does not have"):
        wire.request(Conversation(turns), model="m")
