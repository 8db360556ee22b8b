"""Ending a loop after a tool ran: who may, what is kept, and how the conversation goes on (seed 003).

The service never has results that were not sent. Per call they are never stored; per run they are
trimmed or kept, as asked. However it was stored, the next run may supply what is missing.
"""

from __future__ import annotations

import pytest

from streamnorm import (
    Conversation,
    Finish,
    LoopGuard,
    Stop,
    StreamStart,
    TextDelta,
    ToolCall,
    ToolLoop,
    ToolResult,
    Turn,
    provider,
)
from streamnorm.agent.outgoing import KEPT_HERE
from streamnorm.agent.persist import PersistEachCall
from streamnorm.errors import UsageError
from streamnorm.history import ForeignResult
from streamnorm.testing import call, finish, say, script
from tests.agent.models import Model, add, both, outputs, ran
from tests.history.stores import EVERYWHERE, opener
from tests.providers.streams import Responses, heard

NOT_RUN = "not run: the run was stopped"
ASKS = script(say("Hm."), call("add", a=1).with_id("toolu_1"), finish())
MODES = [("run", False), ("run", True), ("call", False)]  # persist, trim


@pytest.fixture(params=EVERYWHERE)
async def history(request, tmp_path):
    with opener(request.param, tmp_path) as opened:
        async with opened() as history:
            yield history


def roles(stored):
    return [turn.role for turn in stored.turns]


# --- who may end a run ----------------------------------------------------------------------------


def submit(answer: str) -> Stop:
    "Takes the answer: there is nothing more to do."
    return Stop({"received": answer})


@both
async def test_a_tool_ends_the_run_with_a_result_that_says_and_stop():
    model = Model(script(call("submit", answer="42"), call("add", a=1)), script(say("never")))
    run, events = await ran(ToolLoop(model, [submit, add]))
    assert (run.outcome, len(model.sent)) == ("stopped", 1)
    assert outputs(run) == [{"received": "42"}, 2]  # the calls beside it are run, too
    assert [event.error for event in events if event.kind == "settled"] == [None, None]


@both
async def test_a_filter_ends_the_run_by_what_a_tool_gave():
    seen = []

    async def until(record):
        seen.append((record.name, record.error))
        return record.arguments == {"a": 2}

    model = Model(script(call("add", a=1)), script(call("add", a=2)), script(say("never")))
    run, _ = await ran(ToolLoop(model, [add], until=until))
    assert (run.outcome, len(model.sent), outputs(run)) == ("stopped", 2, [2, 3])
    assert seen == [("add", None), ("add", None)]


@both
async def test_a_filter_is_not_asked_about_calls_that_were_not_run():
    model = Model(ASKS, script(say("Well.")))
    run, _ = await ran(
        ToolLoop(model, [add], approve=lambda call: False, until=lambda record: True)
    )
    assert run.outcome == "finished"


@both
async def test_approval_may_end_the_run_before_the_call():
    model = Model(script(call("add", a=1), call("add", a=2)), script(say("never")))
    run, _ = await ran(ToolLoop(model, [add], approve=lambda call: Stop("the shop is closed")))
    assert (run.outcome, len(model.sent)) == ("stopped", 1)
    assert outputs(run) == ["not run: the shop is closed", NOT_RUN]


@both
async def test_the_caller_ends_the_run_after_a_tool_ran():
    model = Model(ASKS, script(say("never")))
    async with ToolLoop(model, [add]).run("Go.") as run:
        async for event in run:
            if event.kind == "settled":
                run.stop()
    assert (run.outcome, len(model.sent), outputs(run)) == ("stopped", 1, [2])


@both
async def test_the_caller_ends_the_run_before_a_tool_runs():
    model = Model(ASKS, script(say("never")))
    async with ToolLoop(model, [add]).run("Go.") as run:
        async for event in run:
            if event.kind == "tool_call":
                run.stop()
    assert (run.outcome, len(model.sent), outputs(run)) == ("stopped", 1, [NOT_RUN])


@both
async def test_a_handler_ends_the_run_it_is_in():
    def enough() -> str:
        "Enough."
        run.stop()
        return "done"

    model = Model(script(call("enough")), script(say("never")))
    async with ToolLoop(model, [enough]).run("Go.") as run:
        async for _ in run:
            pass
    assert (run.outcome, outputs(run)) == ("stopped", ["done"])


@both
async def test_an_answer_without_calls_is_finished_whoever_says_stop():
    async with ToolLoop(Model(script(say("Done.")))).run("Go.") as run:
        run.stop()  # nothing was asked yet
        assert [event async for event in run] == []
    assert run.outcome == "stopped"
    async with ToolLoop(Model(script(say("Done.")))).run("Go.") as run:
        async for event in run:
            if event.kind == "text_delta":
                run.stop()
    assert (run.outcome, run.text) == ("finished", "Done.")


# --- what is kept ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("persist", "trim", "kept", "state"),
    [
        ("run", False, ["user", "assistant", "tool"], "answered"),
        ("run", True, ["user", "assistant"], "settled"),
        ("call", False, ["user", "assistant"], "settled"),
        ("call", True, ["user", "assistant"], "settled"),
    ],
)
async def test_trailing_results_are_kept_or_trimmed_per_run_and_never_stored_per_call(
    history, persist, trim, kept, state
):
    loop = ToolLoop(Model(ASKS), [add], history=history, persist=persist, trim=trim,
                    until=lambda record: True)  # fmt: skip
    run, _ = await ran(loop, conversation="c")
    assert (run.outcome, outputs(run)) == ("stopped", [2])
    stored = await history.load("c")
    assert roles(stored) == kept
    assert [c.state for c in stored.calls] == [state]


@pytest.mark.parametrize("persist", ["run", "call"])
async def test_who_stops_and_leaves_at_once_keeps_what_is_done(history, persist):
    model = Model(ASKS, script(say("Never heard to its end.")))
    loop = ToolLoop(model, [add], history=history, persist=persist, trim=True)
    async with loop.run("Go.", conversation="c") as run:
        async for event in run:
            if event.kind == "text_delta" and len(model.sent) == 2:
                run.stop()
                break
    assert run.outcome == "stopped"
    assert roles(await history.load("c")) == ["user", "assistant"]


async def test_who_leaves_without_a_word_keeps_nothing_per_run(history):
    async with ToolLoop(Model(ASKS), [add], history=history).run("Go.", conversation="c") as run:
        async for event in run:
            if event.kind == "settled":
                break
    assert run.outcome == "cancelled"
    assert await history.conversations() == []


async def test_a_note_to_the_model_that_was_never_sent_is_not_stored(history):
    broken = script(call("add").with_raw('{"a": }'), finish("tool_calls"))
    loop = ToolLoop(Model(broken, wire="openai_chat"), [add], history=history, limit=1)
    run, _ = await ran(loop, conversation="c")
    assert run.outcome == "limit"
    assert roles(await history.load("c")) == ["user", "assistant"]


async def test_what_was_said_and_never_sent_is_not_stored(history):
    async with ToolLoop(Model(ASKS), history=history).run("Go.", conversation="c") as run:
        run.stop()
        assert [event async for event in run] == []
    assert await history.conversations() == []


# --- going on -------------------------------------------------------------------------------------

ENDS = {
    "limit": {"limit": 1},
    "approval": {"approve": lambda call: Stop("closed")},
    "guard": {"guard": LoopGuard(equal=1, policy="stop")},
    "filter": {"until": lambda record: True},
}


@pytest.mark.parametrize(("persist", "trim"), [("run", True), ("call", False)])
@pytest.mark.parametrize("end", ENDS)
async def test_the_missing_result_can_be_supplied(history, persist, trim, end):
    how = {"history": history, "persist": persist, "trim": trim}
    first, _ = await ran(ToolLoop(Model(ASKS), [add], **how, **ENDS[end]), conversation="c")
    (asked,) = first.conversation.turns[1].calls
    model = Model(script(say("Thanks.")))
    supplied = Turn("tool", (ToolResult.for_call(asked, "by hand"),))
    run, _ = await ran(ToolLoop(model, [add], **how), supplied, conversation="c")
    assert [r.text for turn in model.sent[0].turns for r in turn.results] == ["by hand"]
    assert run.report == []
    stored = await history.load("c")
    assert roles(stored) == ["user", "assistant", "tool", "assistant"]
    assert [r.text for turn in stored.turns for r in turn.results] == ["by hand"]
    assert [c.state for c in stored.calls] == ["answered"]


@pytest.mark.parametrize(("persist", "trim"), MODES)
async def test_after_a_limit_the_result_can_be_supplied_however_it_was_stored(
    history, persist, trim
):
    how = {"history": history, "persist": persist, "trim": trim}
    await ran(ToolLoop(Model(ASKS), [add], limit=1, **how), conversation="c")
    stored = await history.load("c")
    assert (roles(stored), [c.state for c in stored.calls]) == (["user", "assistant"], ["settled"])
    (asked,) = stored.turns[1].calls
    model = Model(script(say("Thanks.")))
    supplied = Turn("tool", (ToolResult.for_call(asked, 2),))
    await ran(ToolLoop(model, [add], **how), supplied, conversation="c")
    assert [r.output for turn in model.sent[0].turns for r in turn.results] == [2]
    assert [c.state for c in (await history.load("c")).calls] == ["answered"]


@pytest.mark.parametrize(("persist", "trim"), MODES)
async def test_going_on_without_a_word_tells_what_the_tool_gave(history, persist, trim):
    how = {"history": history, "persist": persist, "trim": trim}
    loop = ToolLoop(Model(ASKS), [add], until=lambda record: True, **how)
    await ran(loop, conversation="c")
    model = Model(script(say("Two.")))
    run, _ = await ran(ToolLoop(model, [add], **how), None, conversation="c")
    assert [r.output for turn in model.sent[0].turns for r in turn.results] == [2]
    assert roles(await history.load("c")) == ["user", "assistant", "tool", "assistant"]
    assert (run.settled, run.report) == ([], [])  # it was not run again


@pytest.mark.parametrize(("persist", "trim"), MODES)
async def test_of_several_calls_the_one_that_is_supplied_joins_those_that_ran(
    history, persist, trim
):
    steps = (call("add", a=1).with_id("toolu_1"), call("add", a=2).with_id("toolu_2"))
    how = {"history": history, "persist": persist, "trim": trim}

    def one(asked):
        return True if asked.id == "toolu_1" else Stop("closed")

    first, _ = await ran(
        ToolLoop(Model(script(*steps)), [add], approve=one, until=lambda r: True, **how),
        conversation="c",
    )
    _, second = first.conversation.turns[1].calls
    model = Model(script(say("ok")))
    supplied = Turn("tool", (ToolResult.for_call(second, "by hand"),))
    run, _ = await ran(ToolLoop(model, [add], **how), supplied, conversation="c")
    told = [r.output for turn in model.sent[0].turns for r in turn.results]
    if (persist, trim) == ("run", False):  # the denial was an answer, and it was kept
        assert told == [2, "not run: closed"]
        assert [row.what for row in run.report] == ["dropped_result"]
    else:
        assert told == [2, "by hand"]
    assert [c.state for c in (await history.load("c")).calls] == ["answered", "answered"]


async def test_a_result_that_is_stored_stays_as_it_is(history):
    loop = ToolLoop(Model(ASKS), [add], history=history, until=lambda record: True)
    first, _ = await ran(loop, conversation="c")
    (asked,) = first.conversation.turns[1].calls
    model = Model(script(say("ok")))
    supplied = Turn("tool", (ToolResult.for_call(asked, "late"),))
    run, _ = await ran(ToolLoop(model, [add], history=history), supplied, conversation="c")
    assert [r.output for turn in model.sent[0].turns for r in turn.results] == [2]
    assert [str(row) for row in run.report] == [
        "turn 2: dropped result add (toolu_1): the call has a result already"
    ]


@pytest.mark.parametrize("persist", ["run", "call"])
async def test_a_result_of_no_call_is_refused_before_anything_is_sent(history, persist):
    model = Model(script(say("Hi.")), script(say("never")))
    loop = ToolLoop(model, [add], history=history, persist=persist)
    await ran(loop, conversation="c")
    stranger = ToolCall(0, "call_9", "add", {}, "{}")
    with pytest.raises(ForeignResult, match="no such call 'call_9'"):
        await ran(loop, Turn("tool", (ToolResult.for_call(stranger, 1),)), conversation="c")
    assert len(model.sent) == 1
    assert roles(await history.load("c")) == ["user", "assistant"]


async def test_results_and_words_may_be_said_together(history):
    loop = ToolLoop(Model(ASKS), [add], history=history, persist="call", limit=1)
    first, _ = await ran(loop, conversation="c")
    (asked,) = first.conversation.turns[1].calls
    said = Turn(
        "tool", (ToolResult.for_call(asked, 2), *Conversation().user("Now?").turns[0].parts)
    )
    model = Model(script(say("ok")))
    await ran(ToolLoop(model, [add], history=history), said, conversation="c")
    assert [t.role for t in model.sent[0].turns] == ["user", "assistant", "tool", "user"]


@both
async def test_in_a_conversation_of_ones_own_the_supplied_result_counts():
    conversation = Conversation()
    await ran(ToolLoop(Model(ASKS), [add], limit=1), conversation=conversation)
    assert [r.text for r in conversation.turns[-1].results] == ["not run: this run may ask 1 times"]
    (asked,) = conversation.turns[1].calls
    model = Model(script(say("Thanks.")))
    supplied = Turn("tool", (ToolResult.for_call(asked, "by hand"),))
    run, _ = await ran(ToolLoop(model, [add]), supplied, conversation=conversation)
    assert [r.text for turn in model.sent[0].turns for r in turn.results] == ["by hand"]
    assert [turn.role for turn in conversation.turns] == ["user", "assistant", "tool", "assistant"]
    assert run.report == []


# --- where the service keeps the conversation -----------------------------------------------------


def answer(name, *said):
    return [StreamStart("openai_responses", "m", name), *said, Finish("stop")]


@pytest.mark.parametrize("persist", ["run", "call"])
async def test_where_the_service_keeps_it_the_missing_result_is_supplied_in_the_same_way(
    history, persist
):
    asked = ToolCall(0, "call_1", "add", {"a": 1}, '{"a":1}')
    sent = []

    def send(outgoing, tools):
        body = provider("openai_responses").request(outgoing, tools=tools, model="m")
        sent.append((outgoing.service_id, body["input"]))
        return answer("resp_1", asked) if len(sent) == 1 else answer("resp_2", TextDelta("Two."))

    how = {"history": history, "persist": persist, "on_conflict": "clear"}
    loop = ToolLoop(send, [add], limit=1, service_id=lambda turn: turn.response_id, **how)
    await ran(loop, conversation="c")
    assert (await history.load("c")).is_handed_over
    supplied = Turn("tool", (ToolResult.for_call(asked, "by hand"),))
    run, _ = await ran(loop, supplied, conversation="c")
    output = {"type": "function_call_output", "call_id": "call_1", "output": "by hand"}
    assert sent[1] == ("resp_1", [output])
    assert (run.text, (await history.load("c")).service_id) == ("Two.", "resp_2")


async def test_a_history_that_keeps_each_call_stands_for_a_service_and_no_service_hears_of_it(
    history,
):
    seen, bodies = [], []
    model = Model(ASKS, script(say("ok")))

    def send(outgoing, tools):
        seen.append((outgoing.conversation_id, len(outgoing.fresh), outgoing.service_id))
        bodies.append(provider("anthropic").request(outgoing, tools=tools, model="m"))
        return model(outgoing, tools)

    stack = PersistEachCall(send, history)
    await ran(ToolLoop(stack, [add], history=history, persist="call", as_is=True), conversation="c")
    # The second time only what is new is to be stored: the rest is kept already.
    assert seen == [(None, 1, None), (KEPT_HERE, 1, None)]
    assert KEPT_HERE not in str(bodies)
    assert (await history.load("c")).service_id is None


@both
async def test_a_service_may_keep_the_conversation_without_any_history():
    asked = ToolCall(0, "call_1", "add", {"a": 1}, '{"a":1}')
    sent = []

    def send(outgoing, tools):
        provider("openai_responses").request(outgoing, tools=tools, model="m")
        sent.append((outgoing.conversation_id, [t.role for t in outgoing.turns]))
        return answer("resp_1", asked) if len(sent) == 1 else answer("resp_2", TextDelta("Two."))

    for persist in ("run", "call"):
        sent.clear()
        loop = ToolLoop(send, [add], persist=persist, service_id=lambda turn: turn.response_id)
        await ran(loop)
        assert sent == [(None, ["user"]), ("resp_1", ["tool"])]


@both
async def test_there_is_nothing_to_go_on_with_in_an_empty_conversation():
    with pytest.raises(UsageError, match="say something"):
        await ran(ToolLoop(Model()), None, conversation=Conversation())


@pytest.mark.parametrize("persist", ["run", "call"])
async def test_what_a_provider_left_unfinished_is_not_asked_for_again_and_goes_back(
    history, persist
):
    item = {"type": "web_search_call", "id": "ws_1", "status": "incomplete"}
    sent = []

    def send(outgoing, tools):
        sent.append(provider("openai_responses").request(outgoing, tools=tools, model="m")["input"])
        wire = Responses.CREATED + Responses.done(item) + Responses.text("Sorry.", 1)
        return heard("openai_responses", wire + Responses.completed())[0]

    loop = ToolLoop(send, [add], history=history, persist=persist)
    run, _ = await ran(loop, "Search.", conversation="c")
    assert (run.outcome, run.text, run.report) == ("finished", "Sorry.", [])
    await ran(loop, "Again.", conversation="c")
    assert [entry for entry in sent[1] if "type" in entry] == [item]
