"""A tool that needs a person's consent: asked, allowed, denied, edited, and taken up by another process.

What is not approved is never run; what is approved is run once, however often and wherever it is said.
"""

from __future__ import annotations

import time
from contextlib import nullcontext

import anyio
import msgspec
import pytest
import structlog

from streamnorm import (
    Approval,
    ClientTool,
    Conversation,
    Decision,
    Denied,
    File,
    LoopGuard,
    PersistEachCall,
    Settled,
    Stop,
    ToolEnded,
    ToolLoop,
    ToolResult,
    ToolStarted,
    Turn,
)
from streamnorm.agent.consent import question
from streamnorm.encoding.pairs import UNAVAILABLE
from streamnorm.errors import UsageError
from streamnorm.history import ConversationMoved, ForeignDecision, SQLiteHistory
from streamnorm.history.settled import Claim
from streamnorm.testing import call, finish, say, script
from streamnorm.tools import Tool
from tests.agent.models import Model, add, both, outputs, ran
from tests.history.stores import EVERYWHERE, opener

PAYS = script(say("I pay."), call("pay", euro=5).with_id("toolu_1"), finish())
PAYS_AND_ADDS = script(
    call("pay", euro=5).with_id("toolu_1"), call("add", a=1).with_id("toolu_2"),
    call("pay", euro=7).with_id("toolu_3"),
)  # fmt: skip
THANKS = script(say("Thanks."))
UNASKED = "not run: nobody approved it"


class Bank:
    """A tool that counts what it did."""

    def __init__(self, consent=True):
        self.paid = []
        self.tool = ClientTool.from_function(self.pay, consent=consent)

    def pay(self, euro: int) -> dict:
        "Pay."
        self.paid.append(euro)
        return {"paid": euro}


@pytest.fixture
def bank():
    return Bank()


@pytest.fixture(params=EVERYWHERE)
def store(request, tmp_path):
    """A function that opens the same store each time, as another process would."""
    with opener(request.param, tmp_path) as opened:
        yield opened if request.param != "memory" else lambda: nullcontext(opened())


@pytest.fixture(params=["run", "call"])
def persist(request):
    return request.param


def asked(events):
    return [event for event in events if isinstance(event, Approval)]


def told(model):
    """The results in the last request."""
    return [(r.call.id, r.text, r.is_error) for turn in model.sent[-1].turns for r in turn.results]


def allow(approval, **more):
    return Decision(id=approval.id, allow=True, **more)


def deny(approval, reason=""):
    return Decision(id=approval.id, allow=False, reason=reason)


async def paused(store, bank, *, asks=PAYS, **options):
    """A run that ends in asking; its questions."""
    async with store() as history:
        loop = ToolLoop(Model(asks), [bank.tool, add], history=history, **options)
        run, events = await ran(loop, conversation="c")
    assert run.outcome == "paused"
    return asked(events)


async def taken_up(store, bank, *decisions, said=None, answer=THANKS, **options):
    """Another loop, as after a restart, that is told these decisions."""
    model = Model(answer)
    async with store() as history:
        loop = ToolLoop(model, [bank.tool, add], history=history, **options)
        run, events = await ran(loop, said, conversation="c", decisions=decisions)
        stored = await history.load("c")
    return model, run, events, stored


# --- asking ---------------------------------------------------------------------------------------


@both
async def test_a_call_that_needs_consent_is_told_and_not_run():
    bank, model = Bank(), Model(PAYS)
    run, events = await ran(ToolLoop(model, [bank.tool]))
    (approval,) = asked(events)
    assert events[-1] is approval  # after everything else of the run
    assert (approval.kind, approval.call.id, approval.reason) == ("approval", "toolu_1", "")
    assert approval.call.arguments == {"euro": 5}
    assert (run.outcome, bank.paid, len(model.sent)) == ("paused", [], 1)
    assert not [e for e in events if isinstance(e, ToolStarted | Settled)]


@both
async def test_the_calls_beside_it_are_run():
    bank = Bank()
    run, events = await ran(ToolLoop(Model(PAYS_AND_ADDS), [bank.tool, add]))
    assert [e.name for e in events if isinstance(e, ToolStarted)] == ["add"]
    assert [(e.id, e.error) for e in events if isinstance(e, Settled)] == [("toolu_2", None)]
    assert [a.call.id for a in asked(events)] == ["toolu_1", "toolu_3"]
    assert (outputs(run), bank.paid) == ([2], [])


@both
async def test_consent_may_depend_on_the_call_and_say_what_is_agreed_to():
    cases = [
        (lambda call: call.arguments["euro"] > 9, None),
        (lambda call: call.arguments["euro"] > 4, ""),
        (lambda call: f"{call.arguments['euro']} €", "5 €"),
        (lambda call: None, ""),  # only False says that nobody need be asked
        (lambda call: call.arguments.clear(), ""),  # and it has a copy
    ]
    for consent, reason in cases:
        bank = Bank(consent)
        run, events = await ran(ToolLoop(Model(PAYS, THANKS), [bank.tool]))
        assert [a.reason for a in asked(events)] == ([] if reason is None else [reason])
        assert bank.paid == ([5] if reason is None else [])
        assert run.conversation.turns[1].calls[0].arguments == {"euro": 5}


async def nothing(arguments):
    raise AssertionError(f"never run, and not with {arguments}")


@both
async def test_every_way_to_give_a_tool_can_ask():
    class Payment(msgspec.Struct):
        euro: int

    schema = {"type": "object", "properties": {"euro": {"type": "integer"}}}
    for tool in (
        ClientTool(Tool("pay", "", schema), nothing, is_async=True, consent=True),
        ClientTool.from_model(Payment, nothing, name="pay", consent=True),
    ):
        loop = ToolLoop(Model(PAYS), [tool])
        run, events = await ran(loop)
        assert (run.outcome, len(asked(events)), loop.asks) == ("paused", 1, True)
    assert not ToolLoop(Model(PAYS), [add]).asks


@both
async def test_nobody_is_asked_about_what_cannot_run():
    bank = Bank()
    unfit = script(call("pay", euro="five").with_id("toolu_1"))
    model = Model(unfit, THANKS)
    run, events = await ran(ToolLoop(model, [bank.tool]))
    assert (run.outcome, asked(events), bank.paid) == ("finished", [], [])
    assert "not run: the arguments do not fit: Expected `int`, got `str`" in told(model)[0][1]
    refused = ToolLoop(Model(PAYS, THANKS), [bank.tool], approve=lambda call: "the shop is closed")
    run, events = await ran(refused)
    assert (asked(events), outputs(run)) == ([], ["not run: the shop is closed"])


MISFIT = "not run: the arguments do not fit: Expected `int`, got `str` - at `$.euro`"


async def broken_off(store, bank):
    """A run that ends when the model has called, and before anything came of it."""
    unfit = script(call("pay", euro="five").with_id("toolu_1"))
    async with store() as history:
        loop = ToolLoop(Model(unfit), [bank.tool], history=history, persist="call")
        async with loop.run("Go.", conversation="c") as run:
            async for event in run:
                if event.kind == "finish":
                    break


@pytest.mark.parametrize("consent", [True, lambda call: call.arguments["euro"] > 100])
@pytest.mark.parametrize("said", [None, "Never mind."])
async def test_nobody_is_asked_about_what_cannot_run_when_a_run_is_taken_up(store, consent, said):
    bank = Bank(consent)
    await broken_off(store, bank)
    model, run, events, _ = await taken_up(store, bank, said=said, persist="call")
    assert (run.outcome, asked(events), bank.paid) == ("finished", [], [])
    assert told(model) == [("toolu_1", MISFIT, True)]


@pytest.mark.parametrize(
    ("arguments", "paid"), [(None, []), ({"euro": "5"}, []), ({"euro": 5}, [5])]
)
async def test_a_call_that_does_not_fit_any_more_runs_with_arguments_that_do_or_not_at_all(
    store, arguments, paid
):
    """As after a new version of the tool that takes other arguments."""
    bank = Bank()
    await broken_off(store, bank)
    async with store() as history:
        (called,) = (await history.load("c")).turns[-1].calls
    decision = Decision(id=question("c", 1, called), allow=True, arguments=arguments)
    model, run, events, _ = await taken_up(store, bank, decision, persist="call")
    assert (run.outcome, asked(events), bank.paid) == ("finished", [], paid)
    assert paid or told(model) == [("toolu_1", MISFIT, True)]


async def test_a_consent_function_that_fails_asks_the_person(store, persist):
    bank = Bank(consent=lambda call: call.arguments["amount"] > 3)
    (approval,) = await paused(store, bank, persist=persist)
    assert (approval.reason, bank.paid) == ("", [])
    _, run, events, _ = await taken_up(store, bank, persist=persist)
    assert (run.outcome, asked(events)) == ("paused", [approval])
    _, run, _, _ = await taken_up(store, bank, allow(approval), persist=persist)
    assert (run.outcome, bank.paid) == ("finished", [5])
    _, run, _, _ = await taken_up(store, bank, said="Thank you.", persist=persist)
    assert run.outcome == "finished"


@both
async def test_a_run_that_is_stopped_asks_nobody_and_runs_nothing():
    def stop() -> Stop:
        "Stops."
        return Stop("over")

    bank = Bank()
    turn = script(call("pay", euro=5), call("stop"))
    run, events = await ran(ToolLoop(Model(turn), [bank.tool, stop]))
    assert (run.outcome, asked(events), bank.paid) == ("stopped", [], [])
    assert outputs(run) == ["not run: the run was stopped", "over"]
    guard = LoopGuard(equal=1, policy="stop")
    run, events = await ran(ToolLoop(Model(PAYS), [bank.tool], guard=guard))
    assert (run.outcome, asked(events), bank.paid) == ("stopped", [], [])


async def test_what_was_asked_is_stored_before_it_is_told(store, persist, bank):
    async with store() as history:
        loop = ToolLoop(Model(PAYS), [bank.tool], history=history, persist=persist)
        async with loop.run("Go.", conversation="c") as run:
            async for event in run:
                if isinstance(event, Approval):
                    stored = await history.load("c")
    assert [turn.role for turn in stored.turns] == ["user", "assistant"]
    assert [c.state for c in stored.calls] == ["unresolved"]


async def test_a_question_has_the_same_id_after_a_restart_and_no_other_call_has_it(
    store, persist, bank
):
    first = await paused(store, bank, asks=PAYS_AND_ADDS, persist=persist)
    model, run, events, _ = await taken_up(store, bank, persist=persist)
    assert asked(events) == first
    assert (run.outcome, model.sent, bank.paid) == ("paused", [], [])  # the model is not asked
    assert len({approval.id for approval in first}) == 2
    async with store() as history:
        loop = ToolLoop(Model(PAYS_AND_ADDS), [bank.tool, add], history=history, persist=persist)
        _, events = await ran(loop, conversation="another")
    assert not {a.id for a in asked(events)} & {a.id for a in first}


# --- allowing and denying -------------------------------------------------------------------------


async def test_what_is_allowed_runs_in_another_process_and_the_run_goes_on(store, persist, bank):
    (approval,) = await paused(store, bank, persist=persist)
    model, run, events, stored = await taken_up(store, bank, allow(approval), persist=persist)
    assert (run.outcome, run.text, bank.paid) == ("finished", "Thanks.", [5])
    assert told(model) == [("toolu_1", '{"paid":5}', False)]
    (began,) = [e for e in events if isinstance(e, ToolStarted)]
    (ended,) = [e for e in events if isinstance(e, ToolEnded)]
    assert began.checksum == ended.checksum == approval.call.checksum
    assert [turn.role for turn in stored.turns] == ["user", "assistant", "tool", "assistant"]
    assert [(c.state, c.settled.error) for c in stored.calls] == [("answered", None)]


async def test_what_is_denied_is_answered_so_and_never_run(store, persist, bank):
    (approval,) = await paused(store, bank, persist=persist)
    decision = deny(approval, "too much")
    model, run, events, stored = await taken_up(store, bank, decision, persist=persist)
    assert (run.outcome, bank.paid) == ("finished", [])
    assert told(model) == [("toolu_1", "The user denied this call: too much", True)]
    assert [e for e in events if isinstance(e, Denied)] == [Denied(approval.call, "too much")]
    assert not [e for e in events if isinstance(e, ToolStarted)]
    assert [c.state for c in stored.calls] == ["answered"]


async def test_results_go_back_in_the_order_of_the_calls_whoever_decided_what(store, persist, bank):
    one, two = await paused(store, bank, asks=PAYS_AND_ADDS, persist=persist)
    model, *_, stored = await taken_up(store, bank, allow(two), deny(one), persist=persist)
    assert told(model) == [
        ("toolu_1", "The user denied this call.", True), ("toolu_2", "2", False),
        ("toolu_3", '{"paid":7}', False),
    ]  # fmt: skip
    assert bank.paid == [7]
    assert {c.state for c in stored.calls} == {"answered"}


@pytest.mark.parametrize("trim", [False, True])
async def test_what_is_not_decided_waits(store, persist, bank, trim):
    how = {"persist": persist, "trim": trim}
    one, two = await paused(store, bank, asks=PAYS_AND_ADDS, **how)
    model, run, events, _ = await taken_up(store, bank, allow(one), **how)
    assert (run.outcome, bank.paid, model.sent) == ("paused", [5], [])
    assert asked(events) == [two]
    model, run, _, stored = await taken_up(store, bank, allow(two), **how)
    assert (run.outcome, bank.paid) == ("finished", [5, 7])
    assert told(model) == [
        ("toolu_1", '{"paid":5}', False), ("toolu_2", "2", False), ("toolu_3", '{"paid":7}', False)
    ]  # fmt: skip
    assert {c.state for c in stored.calls} == {"answered"}


async def test_who_says_something_else_has_not_agreed(store, persist, bank):
    (approval,) = await paused(store, bank, persist=persist)
    model, run, _, _ = await taken_up(store, bank, said="Never mind.", persist=persist)
    assert told(model) == [("toolu_1", UNASKED, True)]
    assert [turn.role for turn in model.sent[0].turns] == ["user", "assistant", "tool", "user"]
    model, run, _, _ = await taken_up(store, bank, allow(approval), said="Yes!", persist=persist)
    assert (bank.paid, run.outcome) == ([], "finished")  # it is too late


async def test_a_decision_and_a_word_may_come_together(store, persist, bank):
    one, _ = await paused(store, bank, asks=PAYS_AND_ADDS, persist=persist)
    model, *_ = await taken_up(store, bank, allow(one), said="Only that.", persist=persist)
    assert [text for _, text, _ in told(model)] == ['{"paid":5}', "2", UNASKED]
    assert (model.sent[0].turns[-1].text, bank.paid) == ("Only that.", [5])


async def test_a_result_by_hand_answers_a_call_that_waits(store, persist, bank):
    (approval,) = await paused(store, bank, persist=persist)
    by_hand = Turn("tool", (ToolResult.for_call(approval.call, "paid in cash"),))
    model, *_ = await taken_up(store, bank, said=by_hand, persist=persist)
    assert (told(model), bank.paid) == ([("toolu_1", "paid in cash", False)], [])


async def test_a_later_question_of_the_same_run_is_asked_and_answered_in_its_turn(
    store, persist, bank
):
    (first,) = await paused(store, bank, persist=persist)
    again = script(call("pay", euro=5).with_id("toolu_1"))  # a server that counts from the start
    _, run, events, _ = await taken_up(store, bank, allow(first), answer=again, persist=persist)
    (second,) = asked(events)
    assert (run.outcome, bank.paid) == ("paused", [5])
    assert second.id != first.id
    _, run, events, _ = await taken_up(store, bank, allow(first), persist=persist)
    assert (run.outcome, bank.paid) == ("paused", [5])  # the old answer is none to the new question
    _, run, _, stored = await taken_up(store, bank, allow(second), persist=persist)
    assert (run.outcome, bank.paid) == ("finished", [5, 5])
    assert [c.state for c in stored.calls] == ["answered", "answered"]


@both
async def test_without_a_history_the_conversation_is_all_it_takes():
    bank, conversation = Bank(), Conversation()
    loop = ToolLoop(Model(PAYS_AND_ADDS), [bank.tool, add])
    _, events = await ran(loop, conversation=conversation)
    one, two = asked(events)
    again = ToolLoop(Model(THANKS), [bank.tool, add])
    run, events = await ran(again, None, conversation=conversation, decisions=[allow(one)])
    assert (run.outcome, asked(events), bank.paid) == ("paused", [two], [5])
    model = Model(THANKS)
    final = ToolLoop(model, [bank.tool, add])
    run, _ = await ran(final, None, conversation=conversation, decisions=[deny(two)])
    assert (run.outcome, bank.paid) == ("finished", [5])
    assert [text for _, text, _ in told(model)] == ['{"paid":5}', "2", "The user denied this call."]


# --- editing --------------------------------------------------------------------------------------

CHANGED = "The user changed the arguments before allowing this call. It was run with "


async def test_edited_arguments_are_what_is_run_and_the_model_is_told(store, persist, bank):
    (approval,) = await paused(store, bank, persist=persist)
    decision = allow(approval, arguments={"euro": 3})
    model, _, events, stored = await taken_up(store, bank, decision, persist=persist)
    assert bank.paid == [3]
    ((_, text, is_error),) = told(model)
    assert (CHANGED + '{\\"euro\\":3}' in text, '{"paid":3}' in text, is_error) == (
        True,
        True,
        False,
    )
    (began,) = [e for e in events if isinstance(e, ToolStarted)]
    ran_with = msgspec.structs.replace(approval.call, arguments={"euro": 3})
    assert began.checksum == ran_with.checksum != approval.call.checksum
    (heard,) = stored.turns[1].calls
    assert heard.arguments == {"euro": 5}  # what the model said stays as it said it
    (record,) = [c.settled for c in stored.calls]
    assert (record.arguments, record.edited) == ({"euro": 5}, {"euro": 3})
    assert record.checksum == approval.call.checksum


@both
async def test_the_same_arguments_are_no_edit():
    bank, conversation = Bank(), Conversation()
    _, events = await ran(ToolLoop(Model(PAYS), [bank.tool]), conversation=conversation)
    same = allow(asked(events)[0], arguments={"euro": 5})
    run, _ = await ran(
        ToolLoop(Model(THANKS), [bank.tool]), None, conversation=conversation, decisions=[same]
    )
    assert (outputs(run), run.settled[0].edited) == ([{"paid": 5}], None)


async def test_edited_arguments_are_checked_and_what_does_not_fit_is_asked_again(
    store, persist, bank
):
    (approval,) = await paused(store, bank, persist=persist)
    wrong = allow(approval, arguments={"euro": "all"})
    model, run, events, stored = await taken_up(store, bank, wrong, persist=persist)
    (again,) = asked(events)
    assert (run.outcome, bank.paid, model.sent) == ("paused", [], [])
    assert again.id == approval.id
    assert again.reason.startswith("the arguments do not fit: Expected `int`, got `str`")
    assert [c.state for c in stored.calls] == ["unresolved"]
    _, run, _, _ = await taken_up(
        store, bank, allow(approval, arguments={"euro": 1}), persist=persist
    )
    assert (run.outcome, bank.paid) == ("finished", [1])


async def test_the_program_has_its_say_on_what_will_run(store, persist, bank):
    (approval,) = await paused(store, bank, persist=persist)
    model, *_ = await taken_up(
        store, bank, allow(approval, arguments={"euro": 500}), persist=persist,
        approve=lambda call: call.arguments["euro"] < 100 or "that is a lot",
    )  # fmt: skip
    assert (told(model), bank.paid) == ([("toolu_1", "not run: that is a lot", True)], [])


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("ok", f'{CHANGED}{{"euro":3}}\nok'),
        ([1], {"note": CHANGED + '{"euro":3}', "output": [1]}),
        (File(b"x", "image/png"), [CHANGED + '{"euro":3}', File(b"x", "image/png")]),
    ],
)
async def test_whatever_a_tool_gives_it_is_said_what_it_was_run_with(given, expected):
    def pay(euro: int):
        "Pay."
        return given

    tool, conversation = ClientTool.from_function(pay, consent=True), Conversation()
    _, events = await ran(ToolLoop(Model(PAYS), [tool]), conversation=conversation)
    edited = [allow(asked(events)[0], arguments={"euro": 3})]
    loop = ToolLoop(Model(THANKS), [tool])
    run, _ = await ran(loop, None, conversation=conversation, decisions=edited)
    assert outputs(run) == [expected]


# --- what must never happen -----------------------------------------------------------------------


async def test_an_answer_that_is_said_twice_runs_the_call_once_and_tells_what_came_of_it(
    store, persist, bank
):
    (approval,) = await paused(store, bank, persist=persist)
    await taken_up(store, bank, allow(approval), persist=persist)
    model, run, events, _ = await taken_up(store, bank, allow(approval), persist=persist)
    assert (bank.paid, run.outcome, model.sent) == ([5], "finished", [])
    assert [getattr(e, "text", e.kind) for e in events] == ['{"paid":5}', "finish"]


async def test_a_denied_call_cannot_be_allowed_afterwards(store, persist, bank):
    (approval,) = await paused(store, bank, persist=persist)
    await taken_up(store, bank, deny(approval), persist=persist)
    await taken_up(store, bank, allow(approval), persist=persist)
    assert bank.paid == []


async def test_two_who_allow_at_the_same_time_run_it_once(store, persist, bank):
    (approval,) = await paused(store, bank, persist=persist)
    outcomes = []

    async def one_of_two():
        try:
            _, run, _, _ = await taken_up(store, bank, allow(approval), persist=persist)
            outcomes.append(run.outcome)
        except ConversationMoved:
            outcomes.append("moved")

    async with anyio.create_task_group() as group:
        group.start_soon(one_of_two)
        group.start_soon(one_of_two)
    assert bank.paid == [5]
    assert "finished" in outcomes


@pytest.mark.parametrize("said", ["the same", "a word", "nothing"])
async def test_who_says_something_while_an_allowed_call_runs_does_not_take_its_result(
    store, persist, said
):
    began, goes_on = anyio.Event(), anyio.Event()

    async def pay(euro: int) -> str:
        "Pay."
        began.set()
        await goes_on.wait()
        return "receipt 4711"

    slow, first = Bank(), {}
    slow.tool = ClientTool.from_function(pay, consent=True)
    (approval,) = await paused(store, slow, persist=persist)

    async def allowed():
        first["run"], first["stored"] = (
            await taken_up(store, slow, allow(approval), persist=persist)
        )[1::2]

    decisions = [allow(approval)] if said == "the same" else []
    word = "Is it done?" if said == "a word" else None
    async with anyio.create_task_group() as group:
        group.start_soon(allowed)
        await began.wait()
        with pytest.raises(
            ConversationMoved, match=r"'toolu_1' \(pay\) of 'c' .* running since 20"
        ):
            await taken_up(store, slow, *decisions, said=word, persist=persist)
        goes_on.set()
    assert (first["run"].outcome, outputs(first["run"])) == ("finished", ["receipt 4711"])
    results = [result.text for turn in first["stored"].turns for result in turn.results]
    assert results == ["receipt 4711"]
    _, run, _, _ = await taken_up(store, slow, said="And now?", persist=persist)
    assert run.outcome == "finished"


@both
async def test_without_a_history_two_who_allow_a_call_of_one_conversation_run_it_once():
    began, goes_on, conversation, times = anyio.Event(), anyio.Event(), Conversation(), []

    async def pay(euro: int) -> str:
        "Pay."
        times.append(euro)
        began.set()
        await goes_on.wait()
        return "receipt 4711"

    tool = ClientTool.from_function(pay, consent=True)
    _, events = await ran(ToolLoop(Model(PAYS), [tool]), conversation=conversation)
    decisions, loop = [allow(asked(events)[0])], ToolLoop(Model(THANKS, THANKS), [tool])
    async with anyio.create_task_group() as group:
        group.start_soon(lambda: ran(loop, None, conversation=conversation, decisions=decisions))
        await began.wait()
        for said, decided in ((None, decisions), ("Is it done?", []), (None, [])):
            with pytest.raises(ConversationMoved, match=r"'toolu_1' .* is running"):
                await ran(loop, said, conversation=conversation, decisions=decided)
        goes_on.set()
    results = [result.text for turn in conversation.turns for result in turn.results]
    assert (times, results) == ([5], ["receipt 4711"])
    run, _ = await ran(loop, "And now?", conversation=conversation)
    assert run.outcome == "finished"


@both
async def test_without_a_history_who_is_late_does_not_run_what_was_run_meanwhile():
    asking, goes_on, bank, conversation = anyio.Event(), anyio.Event(), Bank(), Conversation()

    async def approve(_):
        asking.set()
        await goes_on.wait()
        return True

    _, events = await ran(ToolLoop(Model(PAYS), [bank.tool]), conversation=conversation)
    decisions = [allow(asked(events)[0])]
    late = ToolLoop(Model(THANKS), [bank.tool], approve=approve)
    outcomes = []

    async def too_late():
        with pytest.raises(ConversationMoved, match="somebody else has decided on toolu_1"):
            await ran(late, None, conversation=conversation, decisions=decisions)
        outcomes.append("moved")

    async with anyio.create_task_group() as group:
        group.start_soon(too_late)
        await asking.wait()
        loop = ToolLoop(Model(THANKS), [bank.tool])
        await ran(loop, None, conversation=conversation, decisions=decisions)
        goes_on.set()
    results = [result.text for turn in conversation.turns for result in turn.results]
    assert (outcomes, bank.paid, results) == (["moved"], [5], ['{"paid":5}'])


@pytest.mark.parametrize(("seconds", "is_believed"), [(60, True), (-1, False)])
async def test_a_claim_of_another_machine_is_believed_until_its_time_is_over(
    store, persist, bank, seconds, is_believed
):
    (approval,) = await paused(store, bank, persist=persist)
    claim = Claim("run", time.time() + seconds, "elsewhere", 1)
    record = Settled.of(approval.call, error=UNAVAILABLE, started=time.time(), claim=claim)
    async with store() as history:
        assert await history.claim("c", [record])
        assert (await history.load("c")).journal == [record]
    if is_believed:
        with pytest.raises(ConversationMoved, match="is running since"):
            await taken_up(store, bank, allow(approval), persist=persist)
    else:
        model, run, events, _ = await taken_up(store, bank, allow(approval), persist=persist)
        assert (run.outcome, told(model)) == ("finished", [("toolu_1", UNAVAILABLE, True)])
        assert [e.claim for e in events if isinstance(e, Settled)] == [None]
    assert bank.paid == []


async def test_who_is_cancelled_gives_its_claim_back(store, persist):
    began = anyio.Event()

    async def pay(euro: int) -> str:
        "Pay."
        began.set()
        await anyio.sleep_forever()
        return "never"

    slow = Bank()
    slow.tool = ClientTool.from_function(pay, consent=True)
    (approval,) = await paused(store, slow, persist=persist)
    async with anyio.create_task_group() as group:
        group.start_soon(lambda: taken_up(store, slow, allow(approval), persist=persist))
        await began.wait()
        async with store() as history:
            (record,) = (await history.load("c")).journal
            assert record.claim is not None
        group.cancel_scope.cancel()
    async with store() as history:
        (record,) = (await history.load("c")).journal
    assert (record.claim, record.error) == (None, UNAVAILABLE)


async def test_of_several_who_claim_a_call_one_gets_it_and_with_it_all_or_nothing(store, bank):
    one, two = await paused(store, bank, asks=PAYS_AND_ADDS)
    async with store() as history, store() as other:
        assert await history.claim("c", [Settled.of(one.call, error="mine")])
        both_calls = [Settled.of(two.call, error="theirs"), Settled.of(one.call, error="theirs")]
        assert not await other.claim("c", both_calls)
        stored = await history.load("c")
        states = {c.id: c.settled and c.settled.error for c in stored.calls}
        assert (states["toolu_1"], states["toolu_3"]) == ("mine", None)
        assert await other.claim("c", both_calls[:1])


@pytest.mark.parametrize("id", ["ask_1", "toolu_1", "", "ask_" + "0" * 32])
async def test_an_answer_to_what_was_never_asked_is_refused(store, persist, bank, id):
    (approval,) = await paused(store, bank, persist=persist)
    with pytest.raises(ForeignDecision, match="nobody asked"):
        await taken_up(store, bank, Decision(id=id, allow=True), allow(approval), persist=persist)
    assert bank.paid == []
    _, run, _, _ = await taken_up(store, bank, allow(approval), persist=persist)
    assert (run.outcome, bank.paid) == ("finished", [5])  # nothing was lost by it


async def test_an_answer_of_another_conversation_is_refused(store, persist, bank):
    (approval,) = await paused(store, bank, persist=persist)
    async with store() as history:
        loop = ToolLoop(Model(PAYS), [bank.tool, add], history=history, persist=persist)
        await ran(loop, conversation="d")
        with pytest.raises(ForeignDecision):
            await ran(loop, None, conversation="d", decisions=[allow(approval)])
    assert bank.paid == []


@pytest.mark.parametrize("persist", ["call"])
async def test_a_call_of_a_tool_that_asks_nobody_cannot_be_run_by_a_decision(store, persist):
    """It may have run already: nobody knows after a crash, and the id can be worked out."""
    bank = Bank(consent=False)
    async with store() as history:
        loop = ToolLoop(Model(PAYS), [bank.tool], history=history, persist=persist)
        async with loop.run("Go.", conversation="c") as run:
            async for event in run:
                if event.kind == "finish":
                    break  # the turn is stored, and nothing is run
    asking = Bank()
    (approval,) = asked((await taken_up(store, asking, persist=persist))[2])
    model, *_ = await taken_up(store, bank, allow(approval), persist=persist)
    assert (bank.paid, asking.paid) == ([], [])
    assert told(model) == [("toolu_1", UNAVAILABLE, True)]


@both
async def test_who_leaves_while_it_is_asked_leaves_it_waiting():
    bank, conversation = Bank(), Conversation()
    async with ToolLoop(Model(PAYS_AND_ADDS), [bank.tool, add]).run(
        "Go.", conversation=conversation
    ) as run:
        async for event in run:
            if event.kind == "settled":
                break
    loop = ToolLoop(Model(THANKS), [bank.tool, add])
    _, events = await ran(loop, None, conversation=conversation)
    assert [a.call.id for a in asked(events)] == ["toolu_1", "toolu_3"]
    assert bank.paid == []


@both
async def test_who_is_cancelled_while_an_allowed_call_runs_never_runs_it_again():
    began, conversation, times = anyio.Event(), Conversation(), []

    async def pay(euro: int) -> str:
        "Pay."
        times.append(euro)
        began.set()
        await anyio.sleep_forever()
        return "never"

    tool = ClientTool.from_function(pay, consent=True)
    _, events = await ran(ToolLoop(Model(PAYS), [tool]), conversation=conversation)
    decisions = [allow(asked(events)[0])]
    loop = ToolLoop(Model(THANKS), [tool])
    async with anyio.create_task_group() as group:
        group.start_soon(lambda: ran(loop, None, conversation=conversation, decisions=decisions))
        await began.wait()
        group.cancel_scope.cancel()
    model = Model(THANKS)
    await ran(ToolLoop(model, [tool]), None, conversation=conversation, decisions=decisions)
    assert (times, told(model)) == ([5], [("toolu_1", UNAVAILABLE, True)])


class Died(BaseException):
    """The process is gone."""


@pytest.mark.parametrize("persist", ["run", "call"])
@pytest.mark.parametrize("moment", ["journal", "journalled", "running"])
async def test_a_process_that_dies_with_an_allowed_call_has_run_it_at_most_once(
    tmp_path, persist, moment
):
    """Before the claim is stored it is as if nobody had answered; after it, it is never run again."""
    bank = Bank()

    def store():
        return SQLiteHistory(tmp_path / "history.db")

    (approval,) = await paused(store, bank, persist=persist)

    def die(at="running"):
        if at == moment:
            raise Died

    def pay(euro: int) -> dict:
        "Pay."
        die()
        return bank.pay(euro)

    dying = Bank()
    dying.tool = ClientTool.from_function(pay, consent=True)

    async def process():
        async with store() as history:
            history.at = die
            loop = ToolLoop(Model(THANKS), [dying.tool], history=history, persist=persist)
            await ran(loop, None, conversation="c", decisions=[allow(approval)])

    with pytest.raises((Died, BaseExceptionGroup)):
        await process()
    model, run, _, stored = await taken_up(store, bank, allow(approval), persist=persist)
    expected = ([5], '{"paid":5}') if moment == "journal" else ([], UNAVAILABLE)
    assert (bank.paid, told(model)[0][1]) == expected
    assert (run.outcome, [c.state for c in stored.calls]) == ("finished", ["answered"])


def named(turn):
    return turn.response_id


async def test_where_the_service_alone_keeps_the_calls_nobody_can_be_asked(store):
    """The history would have no call to take up: it is refused before anything is said."""
    bank, clears = Bank(), {"service_id": named, "on_conflict": "clear"}
    async with store() as history:
        stack = PersistEachCall(Model(PAYS), history, **clears)
        for send, how in [
            (Model(PAYS), {"persist": "run", **clears}), (Model(PAYS), {"persist": "call", **clears}),
            (stack, {"persist": "call", "as_is": True}),
        ]:  # fmt: skip
            with pytest.raises(UsageError, match="there is no call to take up"):
                ToolLoop(send, [bank.tool], history=history, **how)
            ToolLoop(send, [add], history=history, **how)  # these ask nobody
        await history.create("c")
        await history.hand_over("c", "resp_1")
        keeps = ToolLoop(Model(PAYS), [bank.tool], history=history, service_id=named)
        with pytest.raises(UsageError, match="there is no call to take up"):
            await ran(keeps, conversation="c")
    assert ToolLoop(Model(PAYS), [bank.tool], **clears).asks  # nothing is let go of


@pytest.mark.parametrize("persist", ["run", "call"])
async def test_a_result_that_was_stored_stays_if_nobody_heard_that_it_was(tmp_path, persist):
    bank = Bank()

    def store():
        return SQLiteHistory(tmp_path / "history.db")

    (approval,) = await paused(store, bank, persist=persist)
    moments = []

    def lose(at):
        moments.append(at)
        if at == "journalled" and moments.count(at) == 2:  # the claim, then the result
            raise OSError("the connection is gone")

    async with store() as history:
        history.at = lose
        loop = ToolLoop(Model(THANKS), [bank.tool], history=history, persist=persist)
        with pytest.raises(OSError, match="the connection is gone"):
            await ran(loop, None, conversation="c", decisions=[allow(approval)])
    model, run, _, _ = await taken_up(store, bank, persist=persist)
    assert (run.outcome, bank.paid, told(model)) == (
        "finished", [5], [("toolu_1", '{"paid":5}', False)],
    )  # fmt: skip


@pytest.mark.parametrize(
    "decisions",
    [
        [{"id": "a", "allow": True}], [True], ["ask_1"],
        [Decision(id="a", allow="yes")], [Decision(id="a", allow=1)],
        [Decision(id="a", allow=True, arguments=[1])],
        [Decision(id="a", allow=True, arguments={"x": float("nan")})],
        [Decision(id="a", allow=True), Decision(id="a", allow=False)],
    ],
)  # fmt: skip
def test_what_is_no_decision_is_refused_before_anything_is_read(decisions):
    with pytest.raises(UsageError, match="decision"):
        ToolLoop(Model(PAYS)).run(None, decisions=decisions)


# --- the log --------------------------------------------------------------------------------------


@pytest.fixture
def lines():
    log = structlog.testing.LogCapture()
    structlog.configure(processors=[log])
    yield log.entries
    structlog.reset_defaults()


async def test_a_pause_and_each_decision_are_lines_of_the_log_with_their_calls(lines, tmp_path):
    bank = Bank()
    with opener("sqlite", tmp_path) as store:
        one, two = await paused(store, bank, asks=PAYS_AND_ADDS)
        await taken_up(store, bank, allow(one, arguments={"euro": 1}), deny(two, "no"))
        await taken_up(store, bank, allow(one))
    seen = [
        (e["event"], e.get("call_id") or e["call_ids"], e.get("edited"), e["conversation"])
        for e in lines
        if e["event"].startswith(("approval", "loop.paused"))
    ]
    assert seen == [
        ("loop.paused", ["toolu_1", "toolu_3"], None, "c"),
        ("approval.allowed", "toolu_1", True, "c"),
        ("approval.denied", "toolu_3", None, "c"),
        ("approval.repeated", "toolu_1", None, "c"),
    ]


async def test_a_consent_function_that_fails_is_a_warning_with_its_call(lines):
    bank = Bank(consent=lambda call: call.arguments["amount"] > 3)
    await ran(ToolLoop(Model(PAYS), [bank.tool]))
    (line,) = [e for e in lines if e["event"] == "approval.unclear"]
    told = (line["log_level"], line["call_id"], line["name"], line["reason"])
    assert told == ("warning", "toolu_1", "pay", "KeyError: 'amount'")
