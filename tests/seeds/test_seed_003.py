"""Seed 003, who stores what and when: the table, the drivers, and two keepers of one conversation.

Each on every store. The same with the process killed at each write: tests/history/test_keeping_crash.py.
"""

from __future__ import annotations

import warnings

import pytest

from streamnorm import Approval, ClientTool, Decision, ToolLoop, ToolResult, Turn, provider
from streamnorm.agent.outgoing import KEPT_HERE
from streamnorm.agent.persist import HistoryWarning, PersistEachCall, ServiceIds
from streamnorm.history import HistoryConflict, UnknownConversation
from streamnorm.testing import call, cut, say, script
from tests.agent.models import Model, add, outputs, ran
from tests.history.stores import EVERYWHERE, opener

USER, CALLS, RESULTS = "user", "assistant", "tool"
THREE = (
    script(call("add", a=1).with_id("toolu_1")),
    script(call("add", a=2).with_id("toolu_2")),
    script(say("Done.")),
)
WHOLE = [USER, CALLS, RESULTS, CALLS, RESULTS, CALLS]


class Service(Model):
    """A model that keeps what it was sent, if it is told to."""

    def __call__(self, outgoing, tools):
        if not outgoing.is_service_kept:
            return super().__call__(outgoing, tools)
        provider(self.wire).request(outgoing, tools=tools, model="m")
        self.sent.append(outgoing)
        return self.turns.turn(len(self.sent) - 1).events(self.wire)


class Dies(BaseException):
    """The process ends here."""


@pytest.fixture(params=EVERYWHERE)
async def history(request, tmp_path):
    with opener(request.param, tmp_path) as opened:
        async with opened() as store:
            yield store


async def left(history) -> tuple[list[str], str | None]:
    """The roles of the turns that are stored, and the service's name."""
    try:
        stored = await history.load("c")
    except UnknownConversation:
        return [], None
    return [turn.role for turn in stored.turns], stored.service_id


def watching(history, *scripts, dies=None):
    """A model that notes before each of its calls what is stored; and may die in one of them."""
    model, seen = Service(*scripts, wire="openai_responses"), []

    async def send(outgoing, tools):
        seen.append((await left(history), outgoing.conversation_id))
        if len(seen) == dies:
            raise Dies
        return model(outgoing, tools)

    send.model = model
    return send, seen


def stored_before(seen):
    return [len(turns) for (turns, _), _ in seen]


def by_response(turn):
    return turn.response_id


# --- the table: whose stack it is, and when it is stored ------------------------------------------


async def test_default_and_default_per_run_at_the_end(history):
    send, seen = watching(history, *THREE)
    await ran(ToolLoop(send, [add], history=history), conversation="c")
    assert stored_before(seen) == [0, 0, 0]
    assert await left(history) == (WHOLE, None)


async def test_our_stack_and_per_call_after_each_call_under_a_sentinel(history):
    send, seen = watching(history, *THREE)
    await ran(ToolLoop(send, [add], history=history, persist="call"), conversation="c")
    assert stored_before(seen) == [0, 2, 4]
    assert [who for _, who in seen] == [None, KEPT_HERE, KEPT_HERE]
    assert await left(history) == (WHOLE, None)


async def test_a_custom_stack_and_per_run_at_the_end_and_nothing_is_injected(history):
    send, seen = watching(history, *THREE)
    loop = ToolLoop(send, [add], history=history, as_is=True)
    assert loop.setup.send is send
    await ran(loop, conversation="c")
    assert stored_before(seen) == [0, 0, 0]
    assert await left(history) == (WHOLE, None)


async def test_a_custom_stack_and_per_call_is_the_users_and_without_persistence_warned_of(history):
    send, _ = watching(history, *THREE)
    with pytest.warns(HistoryWarning, match="no PersistEachCall"):
        loop = ToolLoop(send, [add], history=history, persist="call", as_is=True)
    await ran(loop, conversation="c")
    assert await left(history) == ([], None)  # nothing at the end either
    send, seen = watching(history, *THREE)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        stack = PersistEachCall(send, history)
        loop = ToolLoop(stack, [add], history=history, persist="call", as_is=True)
    await ran(loop, conversation="c")
    assert stored_before(seen) == [0, 2, 4]


# --- the drivers ----------------------------------------------------------------------------------


async def test_a_consistency_per_call_the_store_has_what_the_service_has_in_time_and_content(
    history,
):
    send, seen = watching(history, *THREE)
    await ran(ToolLoop(send, [add], history=history, persist="call"), conversation="c")
    has_seen = [[t.role for t in sent.turns] for sent in send.model.sent]
    # Before each call the store has what was sent before, and the answer to it.
    assert [turns for (turns, _), _ in seen] == [[], *([*sent, CALLS] for sent in has_seen[:-1])]


async def test_b_atomicity_a_run_that_fails_midway_leaves_nothing_unless_asked_for(history):
    for persist, kept in (("run", []), ("call", [USER, CALLS])):
        send, _ = watching(history, *THREE, dies=2)
        with pytest.raises(Dies):
            await ran(ToolLoop(send, [add], history=history, persist=persist), conversation="c")
        assert (await left(history))[0] == kept


async def test_b_atomicity_nor_does_one_whose_last_answer_breaks_off(history):
    for persist, kept in (("run", []), ("call", [USER, CALLS])):
        send, _ = watching(history, THREE[0], script(say("Half an ans"), cut()))
        loop = ToolLoop(send, [add], history=history, persist=persist)
        run, events = await ran(loop, conversation="c")
        assert (run.outcome, events[-1].kind) == ("failed", "failed")
        assert (await left(history))[0] == kept


async def test_c_recoverability_progress_survives_per_call_and_nothing_is_run_twice(history):
    times = []

    def pay(a: int) -> str:
        "Pays."
        times.append(a)
        return "paid"

    asks = script(call("pay", a=1).with_id("toolu_1"))
    send, _ = watching(history, asks, dies=2)
    with pytest.raises(Dies):
        await ran(ToolLoop(send, [pay], history=history, persist="call"), conversation="c")
    send, _ = watching(history, script(say("Thanks.")))
    loop = ToolLoop(send, [pay], history=history, persist="call")
    run, _ = await ran(loop, None, conversation="c")
    assert (run.text, outputs(run), times) == ("Thanks.", ["paid"], [1])


async def test_d_simplicity_one_run_is_one_update(history):
    commits = []
    commit = history.commit

    async def counted(*arguments, **options):
        commits.append(arguments[2])
        return await commit(*arguments, **options)

    history.commit = counted
    send, _ = watching(history, *THREE)
    await ran(ToolLoop(send, [add], history=history), conversation="c")
    assert commits == [0]
    commits.clear()
    send, _ = watching(history, *THREE)
    await ran(ToolLoop(send, [add], history=history, persist="call"), conversation="d")
    assert commits == [0, 1, 2]


async def test_e_flexibility_one_conversation_may_be_kept_either_way_run_by_run(history):
    for number, persist in enumerate(("run", "call", "run"), 1):
        send, _ = watching(history, script(say("Yes.")))
        await ran(ToolLoop(send, history=history, persist=persist), conversation="c")
        assert (await left(history))[0] == [USER, CALLS] * number


# --- results at the end of a run ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("persist", "trim", "kept"),
    [
        ("run", False, [USER, CALLS, RESULTS]),
        ("run", True, [USER, CALLS]),
        ("call", False, [USER, CALLS]),
    ],
)
async def test_trailing_results_are_trimmed_if_asked_for_and_per_call_never_stored(
    history, persist, trim, kept
):
    send, _ = watching(history, THREE[0])
    how = {"history": history, "persist": persist, "trim": trim, "until": lambda record: True}
    run, _ = await ran(ToolLoop(send, [add], **how), conversation="c")
    assert (run.outcome, (await left(history))[0]) == ("stopped", kept)
    # And whoever goes on need not know which: the model hears one result in each case.
    send, _ = watching(history, script(say("Well.")))
    await ran(ToolLoop(send, [add], history=history, persist=persist), None, conversation="c")
    assert [[t.role for t in sent.turns] for sent in send.model.sent] == [[USER, CALLS, RESULTS]]


async def test_a_missing_result_is_supplied_by_hand(history):
    send, _ = watching(history, THREE[0])
    how = {"history": history, "persist": "call"}
    await ran(ToolLoop(send, [add], limit=1, **how), conversation="c")
    stored = await history.load("c")
    by_hand = ToolResult.for_call(stored.turns[-1].calls[0], "by hand")
    send, _ = watching(history, script(say("Thanks.")))
    run, _ = await ran(ToolLoop(send, [add], **how), Turn("tool", (by_hand,)), conversation="c")
    assert outputs(run) == ["by hand"]


# --- two keepers ----------------------------------------------------------------------------------

over_persist = pytest.mark.parametrize("persist", ["run", "call"])


def kept_by_both(history, send, persist, **options):
    return ToolLoop(
        send, [add], history=history, persist=persist, service_id=by_response, **options
    )


@over_persist
async def test_throw_on_conflict_stores_nothing(history, persist):
    send, _ = watching(history, *THREE)
    with pytest.raises(HistoryConflict, match="choose one, or on_conflict"):
        await ran(kept_by_both(history, send, persist), conversation="c")
    assert await left(history) == ([], None)


@over_persist
async def test_warn_on_conflict_keeps_both_and_a_run_that_dies_leaves_no_name_but_per_call(
    history, persist
):
    send, _ = watching(history, *THREE, dies=2)
    with pytest.warns(HistoryWarning), pytest.raises(Dies):
        await ran(kept_by_both(history, send, persist, on_conflict="warn"), conversation="c")
    turns, name = await left(history)
    assert (turns, name is None) == (([], True) if persist == "run" else ([USER, CALLS], False))
    send, _ = watching(history, *THREE)
    with pytest.warns(HistoryWarning):
        run, _ = await ran(
            kept_by_both(history, send, persist, on_conflict="warn"), conversation="c"
        )
    # All turns are sent and stored, whatever name there was.
    assert [t.role for t in send.model.sent[0].turns][-1] == USER
    assert len(send.model.sent[0].turns) == len(turns) + 1 + (persist == "call")
    assert (await left(history))[1] == run.conversation.turns[-1].response_id


@over_persist
async def test_clear_on_conflict_lets_go_of_the_turns_and_sends_what_is_new(history, persist):
    send, _ = watching(history, *THREE)
    run, _ = await ran(kept_by_both(history, send, persist, on_conflict="clear"), conversation="c")
    name = run.conversation.turns[-1].response_id
    assert await left(history) == ([], name)
    send, seen = watching(history, script(say("And?")))
    await ran(kept_by_both(history, send, persist, on_conflict="clear"), conversation="c")
    assert [[t.role for t in sent.turns] for sent in send.model.sent] == [[USER]]
    assert [who for _, who in seen] == [name]


async def test_the_name_of_the_service_is_updated_after_each_of_its_calls(history):
    send, seen = watching(history, *THREE)
    loop = kept_by_both(history, send, "call", on_conflict="clear")
    run, _ = await ran(loop, conversation="c")
    first, second, _ = (t.response_id for t in run.conversation.turns if t.response_id)
    assert [name for (_, name), _ in seen] == [None, first, second]
    assert [who for _, who in seen] == [None, first, second]


async def test_a_service_of_one_thread_has_one_name_and_nothing_differs(history):
    send, seen = watching(history, *THREE)
    loop = ToolLoop(send, [add], history=history, persist="call", on_conflict="clear",
                    service_id=lambda turn: "conv_1")  # fmt: skip
    await ran(loop, conversation="c")
    assert [who for _, who in seen] == [None, "conv_1", "conv_1"]
    assert await left(history) == ([], "conv_1")


async def test_the_sentinel_lets_calls_through_once_and_is_sent_to_no_service(history):
    send, seen = watching(history, *THREE)
    stack = PersistEachCall(send, history, service_ids=ServiceIds())
    loop = ToolLoop(stack, [add], history=history, persist="call", as_is=True)
    await ran(loop, conversation="c")
    assert [who for _, who in seen] == [None, KEPT_HERE, KEPT_HERE]
    # What accumulated is not stored again: each time only what is new.
    assert [len(sent.fresh) for sent in send.model.sent] == [1, 1, 1]
    assert {sent.service_id for sent in send.model.sent} == {None}


@over_persist
async def test_a_conversation_that_the_service_keeps_is_not_gone_on_with_if_nobody_says_its_next_name(
    history, persist
):
    send, _ = watching(history, *THREE)
    run, _ = await ran(kept_by_both(history, send, persist, on_conflict="clear"), conversation="c")
    send, seen = watching(history, script(say("never")))
    with pytest.raises(HistoryConflict, match="pass service_id"):
        await ran(ToolLoop(send, [add], history=history, persist=persist), "And?", conversation="c")
    assert seen == []  # nothing was sent, and nothing changed
    assert await left(history) == ([], run.conversation.turns[-1].response_id)


async def test_a_custom_stack_hears_of_the_services_name_itself(history):
    send, seen = watching(history, *THREE)
    stack = PersistEachCall(send, history, service_id=by_response, on_conflict="clear")
    how = {"history": history, "persist": "call", "as_is": True}
    with pytest.warns(HistoryWarning, match="to its PersistEachCall, not to the loop"):
        ToolLoop(stack, [add], service_id=by_response, **how)
    run, _ = await ran(ToolLoop(stack, [add], **how), conversation="c")
    first, second, last = (t.response_id for t in run.conversation.turns if t.response_id)
    assert [who for _, who in seen] == [None, first, second]
    assert await left(history) == ([], last)


@over_persist
async def test_where_calls_are_approved_each_is_stored_and_sent_once(history, persist):
    asks = script(call("add", a=1).with_id("toolu_1"), call("add", a=2).with_id("toolu_2"))
    send, _ = watching(history, asks, script(say("Done.")))
    how = {"history": history, "persist": persist, "approve": lambda call: call.id == "toolu_1"}
    await ran(ToolLoop(send, [add], **how), conversation="c")
    for turns in ((await history.load("c")).turns, send.model.sent[1].turns):
        assert [c.id for turn in turns for c in turn.calls] == ["toolu_1", "toolu_2"]
        assert [r.call.id for turn in turns for r in turn.results] == ["toolu_1", "toolu_2"]


@over_persist
async def test_where_a_person_must_agree_the_call_is_stored_and_sent_once(history, persist):
    tool = ClientTool.from_function(add, consent=True)
    send, _ = watching(history, THREE[0])
    run, events = await ran(
        ToolLoop(send, [tool], history=history, persist=persist), conversation="c"
    )
    (approval,) = (event for event in events if isinstance(event, Approval))
    assert (run.outcome, (await left(history))[0]) == ("paused", [USER, CALLS])
    send, _ = watching(history, script(say("Done.")))
    loop = ToolLoop(send, [tool], history=history, persist=persist)
    agreed = [Decision(id=approval.id, allow=True)]
    await ran(loop, None, conversation="c", decisions=agreed)
    assert [[t.role for t in sent.turns] for sent in send.model.sent] == [[USER, CALLS, RESULTS]]
    assert (await left(history))[0] == [USER, CALLS, RESULTS, CALLS]
