"""Whatever a crash or another program left, the next request keeps the provider's pairing rules."""

from __future__ import annotations

import contextlib
import copy
import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamnorm import (
    BrokenToolCall,
    Conversation,
    Text,
    ToolCall,
    ToolResult,
    Turn,
    from_messages,
    to_messages,
)
from streamnorm.cli.repair import run as run_command
from streamnorm.encoding.fields import at, replaced
from streamnorm.encoding.mending import mend
from streamnorm.encoding.pairs import UNAVAILABLE, UnansweredCall
from streamnorm.errors import EncodeError, UnknownProvider, UsageError
from streamnorm.events import Provenance
from streamnorm.history.settled import Settled
from streamnorm.history.spool import Artifact
from streamnorm.providers import provider_row
from streamnorm.wire import messages_of, provider, repair
from tests.encoding.pairing_rules import RULES, assert_paired

PROVIDERS = sorted(name for name in RULES if provider_row(name).messages)


def call(id, name="f", **arguments):
    return ToolCall(0, id, name, arguments, json.dumps(arguments))


def says(*calls, text=""):
    return Turn("assistant", (*([Text(text)] if text else []), *calls))


def gives(*calls, output="done"):
    return Turn("tool", tuple(ToolResult.for_call(c, output) for c in calls))


def talk(*turns):
    return Conversation([Turn("user", (Text("Hi"),)), *turns])


A, B, C = call("a", x=1), call("b", x=2), call("c", "g")


def kinds(report):
    return [row.what for row in report]


# --- our own conversations ------------------------------------------------------------------------


def test_a_conversation_that_is_whole_is_left_alone():
    whole = talk(says(A, B), gives(A, B), says(text="Done."))
    mended = mend(whole)
    assert mended.conversation is whole
    assert mended.report == ()


def test_an_orphan_is_closed_neutrally():
    mended = mend(talk(says(A, B), gives(A)))
    (first, second) = mended.conversation.turns[2].results
    assert (first.text, second.text, second.is_error) == ("done", UNAVAILABLE, True)
    assert UNAVAILABLE == "result unavailable; may or may not have run"
    assert str(mended.report[0]) == "turn 1: closed f (b): it has no result"


def test_an_orphan_is_dropped_if_wanted():
    mended = mend(talk(says(A, B, text="Let me."), says(C), gives(A)), orphans="drop")
    assert [t.role for t in mended.conversation.turns] == ["user", "assistant", "tool"]
    assert mended.conversation.turns[1].calls == (A,)
    assert kinds(mended.report) == ["moved_result", "dropped_call", "dropped_call"]


def test_an_orphan_raises_if_wanted():
    with pytest.raises(UnansweredCall, match="'a'"):
        mend(talk(says(A)), orphans="raise")


def test_a_result_without_a_call_is_dropped():
    mended = mend(talk(gives(A), says(text="Hm.")))
    assert [t.role for t in mended.conversation.turns] == ["user", "assistant"]
    assert kinds(mended.report) == ["dropped_result"]


def test_a_second_result_is_dropped():
    mended = mend(talk(says(A), gives(A, output="first"), gives(A, output="second")))
    assert [r.text for t in mended.conversation.turns for r in t.results] == ["first"]
    assert kinds(mended.report) == ["dropped_result"]


def test_a_result_behind_another_answer_is_moved_to_its_call():
    mended = mend(talk(says(A), says(B), gives(B), gives(A)))
    assert [t.role for t in mended.conversation.turns][1:] == ["assistant", "tool"] * 2
    assert kinds(mended.report) == ["moved_result"]


def test_results_are_put_into_the_order_of_the_calls():
    mended = mend(talk(says(A, B), gives(B, A)))
    assert [r.call.id for r in mended.conversation.turns[2].results] == ["a", "b"]


def test_an_id_that_is_used_again_in_a_later_turn_is_another_call():
    again = call("a", x=9)
    mended = mend(talk(says(A), says(again), gives(again, output="nine")))
    texts = [r.text for t in mended.conversation.turns for r in t.results]
    assert texts == [UNAVAILABLE, "nine"]


def test_a_result_is_bound_to_the_call_that_it_was_made_for():
    again = call("a", x=9)
    mended = mend(talk(says(A), gives(A), says(again), gives(A, output="of the first")))
    texts = [r.text for t in mended.conversation.turns for r in t.results]
    assert texts == ["done", UNAVAILABLE]
    assert kinds(mended.report) == ["closed", "dropped_result"]


def test_two_calls_of_one_id_in_one_turn_are_answered_in_order():
    twin = call("a", x=1)
    mended = mend(talk(says(A, twin), gives(A, output="one"), gives(twin, output="two")))
    assert [r.text for r in mended.conversation.turns[2].results] == ["one", "two"]
    assert mended.report == ()


def test_a_call_that_was_never_whole_is_left_out():
    broken = Turn("assistant", (), broken=(BrokenToolCall(0, "z", "f", "{", "truncated"),))
    mended = mend(talk(broken))
    assert [t.role for t in mended.conversation.turns] == ["user"]
    assert kinds(mended.report) == ["dropped_call"]


def test_what_a_handler_gave_before_a_crash_answers_first():
    record = Settled.of(A, Artifact.of("it ran"))
    mended = mend(talk(says(A, B)), settled=[record])
    assert [r.text for r in mended.conversation.turns[2].results] == ["it ran", UNAVAILABLE]
    assert kinds(mended.report) == ["restored", "closed"]


def test_calls_of_the_provider_need_no_result_of_ours():
    hosted = ToolCall(0, "s", "web_search", {}, "{}", runs_on="provider")
    assert mend(talk(says(hosted))).report == ()


def test_the_user_keeps_what_stood_beside_results():
    turn = Turn("user", (ToolResult.for_call(A, "7"), Text("and now?")))
    mended = mend(talk(says(A), turn))
    assert [t.role for t in mended.conversation.turns][1:] == ["assistant", "tool", "user"]


def test_mending_changes_nothing_that_was_passed():
    broken = talk(says(A, B), gives(B), gives(C))
    before = copy.deepcopy(broken)
    mend(broken)
    assert broken == before


ids = st.sampled_from(["a", "b", "c"])
calls = st.builds(lambda id, x: call(id, x=x), ids, st.integers(0, 2))
turns = st.lists(
    st.one_of(
        st.lists(calls, min_size=1, max_size=3, unique_by=lambda c: c.id).map(lambda c: says(*c)),
        st.lists(calls, min_size=1, max_size=3).map(lambda c: gives(*c)),
        st.just(Turn("user", (Text("Go on."),))),
        st.just(says(text="Well.")),
    ),
    max_size=8,
)


@given(turns=turns, name=st.sampled_from(PROVIDERS), orphans=st.sampled_from(["error", "drop"]))
def test_any_history_can_be_sent_to_any_provider(turns, name, orphans):
    conversation = talk(*turns)
    mended = mend(conversation, orphans=orphans)
    body = provider(name).request(mended.conversation, model="m")
    assert_paired(name, body)
    again = mend(mended.conversation, orphans=orphans)
    assert again.report == ()
    assert again.conversation == mended.conversation


# --- bodies that others wrote ---------------------------------------------------------------------


def owned(id, name, who):
    return ToolCall(
        0, id, name, {"x": 1}, '{"x":1}', provenance=Provenance("natural", id, provider=who)
    )


def whole_body(name, rounds=3):
    """A body that is right, with parallel calls in each round."""
    conversation = Conversation().user("Go.")
    for n in range(rounds):
        made = [owned(f"call{n}x{k}", f"tool{k}", name) for k in range(2)]
        conversation.add(Turn("assistant", (Text(f"Round {n}."), *made), provider=name))
        conversation.results([ToolResult.for_call(c, f"result {c.id}") for c in made])
    conversation.assistant("Done.").user("Thanks.")
    return provider(name).request(conversation, model="m")


def container(name, body):
    return at(body, provider(name).container)


def with_entries(name, body, entries):
    return replaced(body, provider(name).container, entries)


@pytest.mark.parametrize("name", PROVIDERS)
def test_a_body_that_is_right_comes_back_as_it_is(name):
    body = whole_body(name)
    assert_paired(name, body)
    mended = repair(name, body)
    assert mended.body is body
    assert mended.report == ()
    entries = container(name, body)
    assert repair(name, entries).body is entries


def damaged(entries, dice):
    """What crashes, editors and other programs do to a list of messages."""
    entries = copy.deepcopy(entries)
    for _ in range(dice.randint(1, 4)):
        if not entries:
            break
        at = dice.randrange(len(entries))
        act = dice.choice(["drop", "double", "swap", "cut", "block"])
        if act == "drop":
            entries.pop(at)
        elif act == "double":
            entries.insert(dice.randrange(len(entries)), copy.deepcopy(entries[at]))
        elif act == "swap":
            other = dice.randrange(len(entries))
            entries[at], entries[other] = entries[other], entries[at]
        elif act == "cut":
            entries = entries[: at + 1]
        else:
            for key in ("content", "parts", "tool_calls"):
                if isinstance(entries[at].get(key), list) and entries[at][key]:
                    entries[at][key].pop(dice.randrange(len(entries[at][key])))
                    if not entries[at][key]:
                        entries.pop(at)
                    break
    return entries


def roles_take_turns(entries):
    """Damage that is not about pairs is not ours to mend: joined before the rules are asked."""
    joined = []
    for entry in entries:
        if joined and joined[-1]["role"] == entry["role"]:
            joined[-1] = {**joined[-1], "content": joined[-1]["content"] + entry["content"]}
        else:
            joined.append(entry)
    return joined


@pytest.mark.parametrize("name", PROVIDERS)
@pytest.mark.parametrize("orphans", ["error", "drop"])
@given(seed=st.integers(0, 10**6))
def test_a_damaged_body_is_mended(name, orphans, seed):
    body = whole_body(name)
    body = with_entries(name, body, damaged(container(name, body), random.Random(seed)))
    before = copy.deepcopy(body)
    mended = repair(name, body, orphans=orphans)
    assert body == before
    checked = mended.body
    if name == "bedrock":
        checked = with_entries(name, checked, roles_take_turns(container(name, checked)))
    assert_paired(name, checked)
    assert repair(name, mended.body, orphans=orphans).report == ()
    if mended.body != body:
        assert mended.report


@pytest.mark.parametrize("name", PROVIDERS)
def test_a_body_cut_off_after_its_calls_is_closed(name):
    body = whole_body(name, rounds=1)
    is_flat = provider(name).container in ("input", "inputs")
    body = with_entries(name, body, container(name, body)[: 4 if is_flat else 2])
    mended = repair(name, body)
    assert_paired(name, mended.body)
    assert kinds(mended.report) == ["closed", "closed"]
    assert UNAVAILABLE in json.dumps(mended.body)
    with pytest.raises(UnansweredCall):
        repair(name, body, orphans="raise")


def chat(*messages):
    return {"messages": list(messages)}


def asks(*ids, name="f"):
    function = {"name": name, "arguments": "{}"}
    return {"role": "assistant", "content": None,
            "tool_calls": [{"id": i, "type": "function", "function": function} for i in ids]}  # fmt: skip


def tells(id, content="ok"):
    return {"role": "tool", "tool_call_id": id, "content": content}


def test_an_id_that_is_used_twice_in_one_message_is_renamed_on_both_sides():
    mended = repair("openai_chat", chat(asks("c1", "c1"), tells("c1", "one"), tells("c1", "two")))
    assert_paired("openai_chat", mended.body)
    assert [m["content"] for m in mended.body["messages"][1:]] == ["one", "two"]
    assert kinds(mended.report) == ["renamed"]


def test_a_result_behind_two_calls_of_its_id_answers_the_later_one():
    mended = repair("openai_chat", chat(asks("c1"), asks("c1"), tells("c1", "late")))
    assert [m["content"] for m in mended.body["messages"]] == [None, UNAVAILABLE, None, "late"]
    assert kinds(mended.report) == ["closed"]


def test_an_id_that_returns_in_a_later_turn_stays_where_the_wire_allows_it():
    body = chat(asks("f:0"), tells("f:0"), asks("f:0"), tells("f:0"))
    assert repair("openai_chat", body).body is body


def test_an_id_that_returns_in_a_later_turn_is_renamed_where_it_must_be_unique():
    use = {"type": "tool_use", "id": "x", "name": "f", "input": {}}
    back = {"type": "tool_result", "tool_use_id": "x", "content": "1"}
    body = chat(*[{"role": "assistant", "content": [use]}, {"role": "user", "content": [back]}] * 2)
    mended = repair("anthropic", body)
    assert_paired("anthropic", mended.body)
    assert kinds(mended.report) == ["renamed"]


def test_calls_without_ids_are_paired_by_place_and_named():
    mended = repair(
        "openai_chat", chat(asks(None, ""), {"role": "tool", "content": "1"}, tells(""))
    )
    assert_paired("openai_chat", mended.body)
    assert [m["content"] for m in mended.body["messages"][1:]] == ["1", "ok"]
    assert kinds(mended.report) == ["renamed", "renamed"]


def test_arguments_that_are_no_object_are_made_one_where_the_wire_wants_one():
    use = {"type": "tool_use", "id": "x", "name": "f", "input": '{"a": 1}'}
    half = {"type": "tool_use", "id": "y", "name": "f", "input": '{"a": '}
    mended = repair("anthropic", chat({"role": "assistant", "content": [use, half]}))
    said = mended.body["messages"][0]["content"]
    assert [block["input"] for block in said] == [{"a": 1}, {}]
    assert kinds(mended.report).count("evened") == 2


def test_a_text_before_results_goes_behind_them():
    use = {"type": "tool_use", "id": "x", "name": "f", "input": {}}
    back = {"type": "tool_result", "tool_use_id": "x", "content": "1"}
    user = {"role": "user", "content": [{"type": "text", "text": "Here:"}, back]}
    mended = repair("anthropic", chat({"role": "assistant", "content": [use]}, user))
    assert_paired("anthropic", mended.body)
    assert kinds(mended.report) == ["moved_result"]


def test_results_for_turns_that_the_service_keeps_are_left_alone():
    body = {"previous_response_id": "resp_1",
            "input": [{"type": "function_call_output", "call_id": "c1", "output": "7"}]}  # fmt: skip
    assert repair("openai_responses", body).body is body
    del body["previous_response_id"]
    assert repair("openai_responses", body).body == {"input": []}


def test_results_for_steps_that_the_service_keeps_are_left_alone():
    body = {"previous_interaction_id": "i1",
            "input": [{"type": "function_result", "call_id": "c1", "result": "7"}]}  # fmt: skip
    assert repair("gemini_interactions", body).body is body
    del body["previous_interaction_id"]
    assert repair("gemini_interactions", body).body == {"input": []}


def test_a_call_of_an_interaction_is_answered_behind_it():
    made = {"type": "function_call", "id": "c1", "name": "f", "arguments": '{"a": 1}'}
    hosted = {"type": "google_search_call", "id": "s1", "arguments": {"queries": ["x"]}}
    mended = repair("gemini_interactions", {"input": [hosted, made]})
    answer = {"type": "function_result", "call_id": "c1", "name": "f", "result": UNAVAILABLE,
              "is_error": True}  # fmt: skip
    assert mended.body["input"] == [hosted, {**made, "arguments": {"a": 1}}, answer]
    assert kinds(mended.report) == ["evened", "closed"]


def test_reasoning_goes_with_the_call_that_it_led_to():
    reasoning = {"type": "reasoning", "id": "rs_1", "summary": []}
    item = {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"}
    body = {"input": [{"role": "user", "content": "Hi"}, reasoning, item]}
    assert repair("openai_responses", body, orphans="drop").body["input"] == body["input"][:1]
    closed = repair("openai_responses", body).body["input"]
    assert closed[:3] == body["input"]


@pytest.mark.parametrize("kind", ["custom_tool_call", "shell_call", "apply_patch_call"])
def test_other_calls_of_the_client_have_results_of_their_own_kind(kind):
    body = {"input": [{"type": kind, "call_id": "c1", "name": "f"}]}
    assert repair("openai_responses", body).body["input"][1]["type"] == f"{kind}_output"


def test_a_computers_call_is_dropped_as_nobody_has_its_picture():
    item = {"type": "computer_call", "call_id": "c1", "action": {"type": "screenshot"}}
    body = {"input": [{"role": "user", "content": "Hi"}, item]}
    mended = repair("openai_responses", body)
    assert mended.body["input"] == body["input"][:1]
    assert kinds(mended.report) == ["dropped_call"]
    shown = {"type": "computer_call_output", "call_id": "c1", "output": {}}
    answered = {"input": [item, shown]}
    assert repair("openai_responses", answered).body is answered


def test_a_plain_text_needs_no_repair():
    body = {"input": "Hello"}
    assert repair("openai_responses", body).body is body


LOOK_ALIKE = {
    "mistral": "openai_chat",
    "cohere": "openai_chat",
    "azure_foundry": "openai_responses",
}


@pytest.mark.parametrize("name", PROVIDERS)
def test_the_provider_is_told_by_the_shape(name):
    body = whole_body(name)
    entries = container(name, body)
    assert messages_of("auto", body)[0] == LOOK_ALIKE.get(name, name)
    alike = {**LOOK_ALIKE, "dashscope": "openai_chat"}  # its messages, without its body
    assert messages_of("auto", entries)[0] == alike.get(name, name)


@pytest.mark.parametrize(
    ("body", "name"),
    [
        ({"messages": [{"role": "user", "content": "Hi"}]}, "openai_chat"),
        ([{"role": "user", "content": "Hi"}], "openai_chat"),
        ({"input": "Hi"}, "openai_responses"),
        ({"input": [{"role": "user", "content": "Hi"}]}, "openai_responses"),
        ({"input": "Hi", "generation_config": {}}, "gemini_interactions"),
        ({"input": [{"type": "function_result", "call_id": "c", "result": "7"}]}, "gemini_interactions"),
        ({"input": [{"type": "function_call", "id": "c", "name": "f"}]}, "gemini_interactions"),
        ({"input": [{"type": "function_call", "call_id": "c", "name": "f"}]}, "openai_responses"),
        ({"inputs": [{"type": "function.result", "tool_call_id": "c"}]}, "mistral_conversations"),
        ({"inputs": "Hi", "completion_args": {}}, "mistral_conversations"),
        ({"contents": []}, "gemini"),
        ({"messages": [{"role": "user", "content": "Hi"}], "system": "S"}, "anthropic"),
        ({"messages": [], "system": [{"text": "S"}], "modelId": "m"}, "bedrock"),
        ({"messages": [{"role": "assistant", "tool_plan": "I will look."}]}, "cohere"),
        ({"messages": [{"role": "tool", "tool_name": "f", "content": "7"}]}, "ollama"),
    ],
)  # fmt: skip
def test_a_body_with_little_in_it_is_told_by_what_there_is(body, name):
    assert messages_of("auto", body)[0] == name


@pytest.mark.parametrize("body", [5, "text", None, {}, {"prompt": "x"}])
def test_a_body_that_nobody_writes_is_not_guessed(body):
    with pytest.raises(UsageError, match="pass the provider"):
        repair("auto", body)


@pytest.mark.parametrize("name", ["openai_responses", "openai_chat", "anthropic"])
def test_a_body_for_foundry_is_repaired_as_the_wire_that_it_is(name):
    body = whole_body(name, rounds=1)
    field = provider(name).container
    body[field] = body[field][: 4 if field in ("input", "inputs") else 2]
    assert repair("azure_foundry", body) == repair(name, body)
    assert repair("azure_foundry", body).report


@pytest.mark.parametrize("body", [5, "text", {}, {"prompt": "x"}])
def test_what_is_no_body_is_refused(body):
    with pytest.raises(UsageError):
        repair("anthropic", body)


def places(value, path=()):
    """The way to everything that stands in a value."""
    inside = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in inside:
        yield (*path, key)
        if isinstance(item, dict | list):
            yield from places(item, (*path, key))


JUNK = [None, 5, True, 1.5, "x", "", [], {}, [7], [None], ["x"], [{}], {"a": 1}, {"type": [1]},
        {"type": "text"}, {"text": 5}, "data:image/png;base64,!!"]  # fmt: skip


def mutated(body, dice):
    """The body with something in it gone or replaced by what nobody expects there."""
    body = copy.deepcopy(body)
    for _ in range(dice.randint(1, 3)):
        *way, last = dice.choice(list(places(body)))
        holder = body
        for key in way:
            holder = holder[key]
        if dice.random() < 0.3:
            del holder[last]
        else:
            holder[last] = copy.deepcopy(dice.choice(JUNK))
        if not body:
            break
    return body


@pytest.mark.parametrize("name", PROVIDERS)
@given(seed=st.integers(0, 10**6))
def test_whatever_stands_in_a_body_no_error_but_ours_is_raised(name, seed):
    body = mutated(whole_body(name, rounds=1), random.Random(seed))
    for who in (name, "auto"):
        with contextlib.suppress(UsageError):
            repair(who, body)
        with contextlib.suppress(UsageError):
            read = from_messages(who, body).conversation
            to_messages(name, read)


def test_a_body_that_is_nested_too_deeply_is_named():
    deep = "x"
    for _ in range(5_000):
        deep = [deep]
    with pytest.raises(UsageError, match=r"nested too deeply"):
        repair("openai_chat", chat({"role": "user", "content": deep}))


def test_an_unknown_provider_is_named():
    with pytest.raises(UnknownProvider, match="openai_chat"):
        repair("nobody", {"messages": []})


def test_a_provider_that_cannot_be_read_back_says_so(monkeypatch, tmp_path):
    row = (
        "from streamnorm.core.row import Provider\nPROVIDER = Provider(name='mute', title='Mute', "
    )
    (tmp_path / "mute_row.py").write_text(row + "serves='nobody', parser='mute_parser')")
    info = tmp_path / "mute-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: mute\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[streamnorm.providers]\nmute = mute_row\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(EncodeError, match="requests to mute cannot be read back or repaired"):
        repair("mute", {"messages": []})


# --- from the shell -------------------------------------------------------------------------------


def command(file, **options):
    import argparse

    defaults = {"provider": "auto", "orphans": "error", "out": None, "check": False}
    return run_command(argparse.Namespace(file=str(file), **{**defaults, **options}))


def test_the_command_mends_a_file(tmp_path, capsysbinary):
    file = tmp_path / "session.json"
    file.write_text(json.dumps(chat(asks("c1"))))
    assert command(file, check=True) == 3
    assert command(file) == 0
    out, err = capsysbinary.readouterr()
    assert json.loads(out)["messages"][1]["content"] == UNAVAILABLE
    assert b"entry 0: closed f (c1): it has no result" in err
    assert command(file, out=str(file)) == 0
    assert command(file, check=True) == 0


def test_the_command_gives_a_file_that_is_right_back_byte_by_byte(tmp_path, capsysbinary):
    file = tmp_path / "session.json"
    file.write_bytes(b'{"messages":  [ {"role":"user", "content":"1.0e3 \\ud800"} ] }\n')
    assert command(file) == 0
    assert capsysbinary.readouterr().out == file.read_bytes()


@pytest.mark.parametrize("data", [b"{", b"\xff", b'"text"'])
def test_the_command_names_a_file_that_is_none(tmp_path, data):
    file = tmp_path / "session.json"
    file.write_bytes(data)
    with pytest.raises(UsageError):
        command(file)


def test_the_command_names_a_file_that_is_missing(tmp_path):
    with pytest.raises(UsageError, match="No such file"):
        command(tmp_path / "none.json")
