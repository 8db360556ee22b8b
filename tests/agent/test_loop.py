"""The loop: what it runs, what it gives back, what it stores, and how it ends; asyncio and trio."""

from __future__ import annotations

import asyncio
import functools
import sys
import threading
import warnings

import anyio
import pytest
import structlog

from streamnorm import Conversation, Failed, Finish, StreamStart, TextDelta, ToolCall, Turn
from streamnorm.agent.circles import LoopGuard
from streamnorm.agent.client_tools import ClientTool, running
from streamnorm.agent.loop import ToolLoop
from streamnorm.agent.persist import HistoryWarning, PersistEachCall
from streamnorm.encoding.pairs import UNAVAILABLE
from streamnorm.errors import UsageError
from streamnorm.history import ConversationMoved, HistoryConflict, MemoryHistory
from streamnorm.testing import call, cut, finish, say, script, turns
from streamnorm.tools import File, Tool
from tests.agent.models import TWO, Model, add, both, echo, fail, outputs, ran
from tests.encoding.pairing_rules import RULES

# --- running --------------------------------------------------------------------------------------


@both
async def test_calls_are_run_and_their_results_given_back_until_the_model_stops():
    model = Model(*TWO)
    run, events = await ran(ToolLoop(model, [add, echo]))
    assert (run.outcome, run.text) == ("finished", "Done.")
    assert outputs(run) == [2, "x"]
    assert [t.role for t in run.conversation.turns] == ["user", "assistant", "tool", "assistant"]
    assert [e.kind for e in events if e.kind in ("stream_start", "finish", "settled")] == [
        "stream_start", "finish", "settled", "settled", "stream_start", "finish",
    ]  # fmt: skip


@pytest.mark.parametrize("wire", sorted(set(RULES) - {"azure_foundry"}))
def test_the_same_loop_serves_every_provider(wire):
    run, _ = anyio.run(ran, ToolLoop(Model(*TWO, wire=wire), [add, echo]))
    assert (run.outcome, outputs(run)) == ("finished", [2, "x"])


@both
async def test_events_come_as_they_are_heard():
    heard, gate = [], anyio.Event()

    async def stream():
        yield StreamStart("test")
        yield TextDelta("first")
        await gate.wait()
        yield Finish("stop")

    async with ToolLoop(lambda out, tools: stream()).run("Go.") as run:
        async for event in run:
            heard.append(event.kind)
            if event.kind == "text_delta":
                gate.set()  # the reader has it before the model goes on
    assert heard == ["stream_start", "text_delta", "finish"]


@both
async def test_handlers_run_side_by_side_and_results_keep_the_order_of_the_calls():
    first_may_end = anyio.Event()

    async def first() -> str:
        "Ends last."
        await first_may_end.wait()
        return "first"

    async def second() -> str:
        "Ends first."
        first_may_end.set()
        return "second"

    model = Model(script(call("first"), call("second")), script(say("ok")))
    run, _ = await ran(ToolLoop(model, [first, second]))
    assert outputs(run) == ["first", "second"]


@both
async def test_no_more_handlers_run_at_once_than_allowed():
    now, most = 0, 0

    async def busy() -> None:
        "Counts."
        nonlocal now, most
        now += 1
        most = max(most, now)
        await anyio.lowlevel.checkpoint()
        now -= 1

    model = Model(script(*[call("busy", {}) for _ in range(9)]), script(say("ok")))
    await ran(ToolLoop(model, [busy], concurrency=3, guard=None))
    assert most == 3


@both
async def test_one_at_a_time_handlers_run_in_the_order_of_the_calls():
    order = []

    async def write(n: int) -> None:
        "Writes."
        await anyio.lowlevel.checkpoint()
        order.append(n)

    model = Model(script(*(call("write", n=n) for n in range(8))), script(say("ok")))
    await ran(ToolLoop(model, [write], concurrency=1))
    assert order == list(range(8))


@both
async def test_what_a_handler_raises_is_told_to_the_model():
    model = Model(
        script(call("fail"), call("add", a="x"), call("add", c=1), call("none")), script(say("ok"))
    )
    run, _ = await ran(ToolLoop(model, [fail, add]))
    results = [r for t in run.conversation.turns for r in t.results]
    assert all(r.is_error for r in results)
    assert results[0].text == "RuntimeError: no luck"
    assert "Expected `int`, got `str` - at `$.a`" in results[1].text
    assert "there is no `c`, only a, b" in results[2].text
    assert "there is no tool 'none'; there are: fail, add" in results[3].text


@both
async def test_a_handler_that_takes_too_long_is_an_error():
    release = threading.Event()

    async def never() -> None:
        "Async."
        await anyio.sleep_forever()

    def stuck() -> None:
        "A thread."
        release.wait(60)

    model = Model(script(call("never"), call("stuck")), script(say("ok")))
    run, _ = await ran(ToolLoop(model, [never, stuck], timeout=0.05))
    release.set()
    assert ["may still be running" in text for text in outputs(run)] == [True, True]
    assert run.outcome == "finished"


@both
async def test_a_time_limit_of_the_handlers_own_is_its_own_error():
    async def ask() -> None:
        raise TimeoutError

    run, events = await ran(ToolLoop(Model(script(call("ask")), script(say("ok"))), [ask]))
    assert outputs(run) == ["TimeoutError: a time limit of the tool's own"]
    assert [event.outcome for event in events if event.kind == "tool_ended"] == ["error"]


@both
async def test_a_handler_that_would_end_the_program_is_an_error():
    def parse() -> None:
        sys.exit(2)

    async def parse_too() -> None:
        async with anyio.create_task_group():
            sys.exit(3)

    model = Model(script(call("parse"), call("parse_too"), call("add", a=1)), script(say("ok")))
    run, _ = await ran(ToolLoop(model, [parse, parse_too, add]))
    first, second, third = outputs(run)
    assert first == "SystemExit: 2"
    assert second.startswith("BaseExceptionGroup: ")
    assert (third, run.outcome) == (2, "finished")
    assert [r.is_error for t in run.conversation.turns for r in t.results] == [True, True, False]


class Speechless(Exception):
    def __str__(self):
        raise RuntimeError("no words")


def work_of(error):
    async def work() -> None:
        raise error

    return work


ODD = {
    "Speechless: it cannot say what went wrong": Speechless(),
    "ValueError: no file \ufffd": ValueError("no file \udcff"),
}


@both
async def test_an_error_in_any_words_is_told_to_the_model():
    for told, error in ODD.items():
        model = Model(script(call("work"), call("add", a=1)), script(say("ok")))
        run, _ = await ran(ToolLoop(model, [work_of(error), add]))
        assert (run.outcome, outputs(run)) == ("finished", [told, 2])


WAITED = "CancelledError: what the tool waited for was cancelled"


@pytest.mark.parametrize("persist", ["run", "call"])
def test_a_task_that_a_handler_waits_for_and_somebody_cancelled_is_an_error(persist):
    async def waits() -> None:
        task = asyncio.ensure_future(asyncio.sleep(60))
        task.cancel()
        await task

    async def ends_itself() -> None:
        asyncio.current_task().cancel()
        await asyncio.sleep(60)

    async def main():
        history = MemoryHistory()
        model = Model(script(call("waits"), call("ends_itself")), script(say("ok")))
        loop = ToolLoop(model, [waits, ends_itself], history=history, persist=persist)
        run, _ = await ran(loop, conversation="c")
        assert (run.outcome, outputs(run)) == ("finished", [WAITED, UNAVAILABLE])
        assert [call.state for call in (await history.load("c")).calls] == ["answered"] * 2

    anyio.run(main)


@both
async def test_a_real_cancellation_is_not_an_error_result():
    started, heard = anyio.Event(), []

    async def never() -> None:
        started.set()
        try:
            await anyio.sleep_forever()
        except anyio.get_cancelled_exc_class():
            heard.append("never")
            raise

    run = ToolLoop(Model(script(call("never")), script(say("ok"))), [never]).run("Go.")

    async def read():
        async for _ in run:
            pass
        heard.append("went on")

    async with anyio.create_task_group() as group:
        group.start_soon(read)
        await started.wait()
        group.cancel_scope.cancel()
    assert (heard, run.outcome, run.settled[0].error) == (["never"], "cancelled", UNAVAILABLE)


def test_a_task_that_reads_a_run_can_be_cancelled_by_asyncio_itself():
    async def main():
        started = asyncio.Event()

        async def never() -> None:
            started.set()
            await asyncio.sleep(60)

        run = ToolLoop(Model(script(call("never")), script(say("ok"))), [never]).run("Go.")

        async def read():
            return [event async for event in run]

        task = asyncio.ensure_future(read())
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (run.outcome, run.settled[0].error) == ("cancelled", UNAVAILABLE)

    anyio.run(main)


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_keyboard_interrupt_is_no_result(backend):
    pytest.importorskip(backend)

    async def interrupted() -> None:
        raise KeyboardInterrupt

    loop = ToolLoop(Model(script(call("interrupted")), script(say("ok"))), [interrupted])
    with pytest.raises((KeyboardInterrupt, BaseExceptionGroup)) as caught:
        anyio.run(ran, loop, backend=backend)
    raised = caught.value  # trio has it in a group
    assert isinstance(getattr(raised, "exceptions", [raised])[0], KeyboardInterrupt)


@both
async def test_what_cannot_be_sent_is_an_error_result():
    model = Model(script(call("odd"), call("nan")), script(say("ok")))
    tools = [(Tool("odd"), lambda said: object()), (Tool("nan"), lambda said: {"x": float("nan")})]
    run, _ = await ran(ToolLoop(model, tools))
    assert next(r.is_error for t in run.conversation.turns for r in t.results)
    assert run.outcome == "finished"


@both
async def test_handlers_may_return_text_json_bytes_and_media():
    picture = File(b"\x89PNG", "image/png")
    given = {
        "t": "text",
        "j": {"a": [1]},
        "b": b"\0",
        "m": picture,
        "l": [picture, "and"],
        "n": None,
    }
    tools = [(Tool(name), lambda said, value=value: value) for name, value in given.items()]
    model = Model(script(*[call(name) for name in given]), script(say("ok")))
    run, _ = await ran(ToolLoop(model, tools))
    binary = [File(b"\0", "application/octet-stream")]
    assert outputs(run) == ["text", {"a": [1]}, binary, [picture], [picture, "and"], None]


@both
async def test_a_handler_can_ask_which_call_it_serves():
    keys = []

    def look() -> str:
        "Sync."
        keys.append(running().key)
        return running().call.name

    model = Model(script(call("look").with_id("toolu_1")), script(say("ok")))
    run, _ = await ran(ToolLoop(model, [look]), run="run-7")
    assert (keys, outputs(run)) == (["run-7/toolu_1"], ["look"])
    with pytest.raises(UsageError, match="handlers"):
        running()


def spoil(said):
    """Changes all it is given, as a careless handler does."""
    said["extra"] = said.pop("path")
    said["lines"].clear()
    return "done"


SPOILED = {"path": "a", "lines": [1, 2]}


@pytest.mark.parametrize("persist", ["run", "call"])
def test_a_handler_has_arguments_of_its_own(persist):
    async def main():
        async with Watch() as history:
            model = Model(script(call("f", SPOILED).with_id("toolu_1")), script(say("ok")))
            loop = ToolLoop(model, [(Tool("f"), spoil)], history=history, persist=persist)
            run, _ = await ran(loop, conversation="c")
            (said,) = model.sent[1].turns[1].calls
            assert (said.arguments, run.settled[0].arguments) == (SPOILED, SPOILED)
            stored = await history.load("c")
            assert stored.turns[1].calls[0].arguments == SPOILED
            assert stored.calls[0].settled.checksum == said.checksum == run.settled[0].checksum

    anyio.run(main)


@both
async def test_whoever_looks_at_a_call_changes_nothing_of_it():
    def approve(call):
        spoil(call.arguments)
        return True

    def until(record):
        spoil(record.arguments)
        return False

    def f(path: str, lines: list[int]) -> str:
        "Looks at its call."
        spoil(running().call.arguments)
        return f"{path} {lines}"

    for persist in ("run", "call"):
        model = Model(script(call("f", SPOILED)), script(say("ok")))
        async with MemoryHistory() as history:
            how = {"approve": approve, "until": until, "history": history, "persist": persist}
            async with ToolLoop(model, [f], **how).run("Go.", conversation="c") as run:
                async for event in run:
                    if event.kind in ("tool_call", "settled"):
                        spoil(event.arguments)
            stored = await history.load("c")
        assert outputs(run) == ["a [1, 2]"]
        assert [c.arguments for turn in model.sent[1].turns for c in turn.calls] == [SPOILED]
        assert run.settled[0].arguments == SPOILED
        assert [c.arguments for c in stored.turns[1].calls] == [SPOILED]
        assert [c.state for c in stored.calls] == ["answered"]


@both
async def test_calls_that_the_provider_runs_are_not_run_here():
    from streamnorm.testing import result

    model = Model(script(call("web_search", query="x"), result("found"), say("Done.")))
    run, _ = await ran(ToolLoop(model, [Tool.server("anthropic", {"type": "web_search"})]))
    assert (run.outcome, run.settled) == ("finished", [])


# --- calls that are not whole ---------------------------------------------------------------------


@both
async def test_a_stream_that_fails_runs_nothing_and_is_not_kept():
    model = Model(script(call("add", a=1), say("and"), cut()))
    run, events = await ran(ToolLoop(model, [add]))
    assert run.outcome == "failed"
    assert isinstance(events[-1], Failed)
    assert run.settled == []
    assert [t.role for t in run.conversation.turns] == ["user"]


@both
async def test_a_broken_call_is_never_run_and_the_model_is_asked_again():
    broken = script(call("add").with_raw('{"a": }'), finish("tool_calls"))
    model = Model(broken, script(call("add", a=1)), script(say("ok")), wire="openai_chat")
    run, _ = await ran(ToolLoop(model, [add]))
    assert run.outcome == "finished"
    assert [s.name for s in run.settled] == ["add"]
    assert "could not be read" in model.sent[1].turns[-1].text


@both
async def test_whole_calls_beside_a_broken_one_are_run():
    model = Model(
        script(call("add", a=1), call("add").with_raw("{]")), script(say("ok")), wire="openai_chat"
    )
    run, _ = await ran(ToolLoop(model, [add]))
    assert outputs(run) == [2]


@both
async def test_a_call_cut_by_the_length_limit_ends_the_run():
    model = Model(script(call("add").with_raw('{"a": 1'), finish("length")), wire="openai_chat")
    run, _ = await ran(ToolLoop(model, [add]))
    assert (run.outcome, run.settled) == ("broken", [])


@both
async def test_a_pause_is_gone_on_with():
    model = Model(script(say("Wait."), finish("pause")), script(say("Done.")))
    run, _ = await ran(ToolLoop(model))
    assert (run.outcome, run.text) == ("finished", "Done.")


# --- approval, limits, guard ----------------------------------------------------------------------


@both
async def test_each_call_is_approved_or_told_why_not():
    asked = []

    async def approve(call: ToolCall):
        asked.append(call.name)
        return {"add": True, "echo": "not on a Monday"}.get(call.name, False)

    steps = (call("add", a=1), call("echo", text="x"), call("fail"))
    run, _ = await ran(
        ToolLoop(Model(script(*steps), script(say("ok"))), [add, echo, fail], approve=approve)
    )
    assert asked == ["add", "echo", "fail"]
    assert outputs(run) == [2, "not run: not on a Monday", "not run: it was not approved"]


@both
async def test_the_limit_ends_the_run_with_every_call_answered():
    model = Model(*[script(call("add", a=n)) for n in range(5)])
    run, _ = await ran(ToolLoop(model, [add], limit=3))
    assert (run.outcome, len(model.sent)) == ("limit", 3)
    assert outputs(run) == [1, 2, "not run: this run may ask 3 times"]


@pytest.mark.parametrize(
    ("policy", "outcome", "ran_times"),
    [("warn", "finished", 4), ("answer", "finished", 1), ("stop", "stopped", 1)],
)
def test_the_guard_does_what_its_policy_says(policy, outcome, ran_times):
    model = Model(*[script(call("add", a=1)) for _ in range(4)], script(say("ok")))
    loop = ToolLoop(model, [add], guard=LoopGuard(equal=2, ping_pong=0, policy=policy))
    for _ in range(2):  # each run has a guard of its own
        model.sent = []
        run, _ = anyio.run(ran, loop)
        assert run.outcome == outcome
        assert [s.error for s in run.settled].count(None) == ran_times
        assert run.verdicts[0].pattern == "equal"


@both
async def test_each_run_counts_its_own_calls():
    asked, served = [], []
    guard = LoopGuard(equal=0, ping_pong=0)

    def approve(call):
        asked.append(guard.count(call))
        return True

    def look(x: int) -> int:
        "Looks."
        served.append(guard.count(running().call))
        return x

    for _ in range(2):
        model = Model(script(call("look", x=1)), script(call("look", x=1)), script(say("ok")))
        loop = ToolLoop(model, [look], guard=guard, approve=approve)
        run, _ = await ran(loop)
        heard = run.conversation.turns[1].calls[0]
        assert (run.guard.count(heard), loop.guard.count(heard)) == (2, 0)
    assert asked == served == [1, 2, 1, 2]


@both
async def test_calls_are_counted_without_a_guard_too():
    model = Model(script(call("add", a=1)), script(call("add", a=1)), script(say("ok")))
    run, _ = await ran(ToolLoop(model, [add]))
    first = run.conversation.turns[1].calls[0]
    assert (run.guard.count(first), run.verdicts) == (2, [])


def test_a_circle_is_logged_with_its_ids():
    log = structlog.testing.LogCapture()
    structlog.configure(processors=[log])
    try:
        model = Model(script(call("add", a=1).with_id("toolu_1")), script(say("ok")))
        loop = ToolLoop(model, [add], guard=LoopGuard(equal=1, policy="warn"))
        anyio.run(functools.partial(ran, loop, run="run-1"))
    finally:
        structlog.reset_defaults()
    (line,) = [entry for entry in log.entries if entry["event"] == "loop.circle"]
    line.pop("conversation")
    assert line == {
        "event": "loop.circle", "log_level": "warning", "run": "run-1", "call_id": "toolu_1",
        "reason": "add was called 1 times with the same arguments", "pattern": "equal", "times": 1,
        "name": "add", "policy": "warn",
    }  # fmt: skip


@both
async def test_broken_calls_count_for_the_guard():
    broken = script(call("add").with_raw("{]"), finish("tool_calls"))
    model = Model(*[broken] * 5, wire="openai_chat")
    run, _ = await ran(ToolLoop(model, [add], guard=LoopGuard(broken=2, policy="stop")))
    assert (run.outcome, len(model.sent)) == ("stopped", 2)


# --- handles --------------------------------------------------------------------------------------


@both
async def test_a_handle_is_read_through_the_artifact_tools():
    def log() -> str:
        "A long log."
        return "ok\n" * 500 + "failed\n"

    grep = call("artifact_grep", callId="toolu_log", pattern="failed")
    model = Model(script(call("log").with_id("toolu_log")), script(grep), script(say("ok")))
    run, _ = await ran(ToolLoop(model, [ClientTool.from_function(log, inline=False)]))
    assert model.tools[0] == ["log"]
    assert "artifact_grep" in model.tools[1]
    assert "501 lines" in outputs(run)[0]
    assert outputs(run)[1] == "501: failed"
    assert [s.from_artifact_tool for s in run.settled] == [False, True]
    assert model.tools[2] == model.tools[1]


@pytest.mark.parametrize("persist", ["run", "call"])
def test_a_send_that_changes_what_it_is_given_changes_nothing_else(persist):
    model = Model(script(call("pay", {"euro": 5, "secret": "s"})), script(say("ok")))
    tool = Tool("pay", "", {"type": "object"})

    def send(outgoing, tools):
        for turn in outgoing.turns:
            for made in turn.calls:
                made.arguments.pop("secret")
            for result in turn.results:
                result.value.clear()
        return model(outgoing, tools)

    async def main():
        history = MemoryHistory()
        loop = ToolLoop(send, [(tool, lambda said: {"paid": 5})], history=history, persist=persist)
        run, _ = await ran(loop, conversation="c")
        assert [c.arguments for t in model.sent[-1].turns for c in t.calls] == [{"euro": 5}]
        assert (run.outcome, outputs(run)) == ("finished", [{"paid": 5}])
        stored = (await history.load("c")).turns
        assert stored == run.conversation.turns
        assert stored[1].calls[0].arguments == {"euro": 5, "secret": "s"}

    anyio.run(main)


# --- cancelling -----------------------------------------------------------------------------------


@both
async def test_cancelling_leaves_a_conversation_that_can_be_gone_on_with():
    started = anyio.Event()

    async def never() -> None:
        "Waits."
        started.set()
        await anyio.sleep_forever()

    conversation = Conversation()
    model = Model(script(call("add", a=1), call("never")), script(say("Fine.")))
    loop = ToolLoop(model, [add, never])
    async with anyio.create_task_group() as group:
        group.start_soon(functools.partial(ran, loop, conversation=conversation))
        await started.wait()
        group.cancel_scope.cancel()
    assert [r.text for r in conversation.turns[-1].results][-1] == UNAVAILABLE
    run, _ = await ran(loop, "Well?", conversation=conversation)
    assert run.outcome == "finished"


@both
async def test_leaving_the_loop_early_closes_the_stream():
    closed = []

    class Endless:
        def __aiter__(self):
            return self

        async def __anext__(self):
            return TextDelta("and ")

        async def aclose(self):
            closed.append(True)

    async with ToolLoop(lambda out, tools: Endless()).run("Go.") as run:
        async for _ in run:
            break
    assert (run.outcome, closed) == ("cancelled", [True])


@both
async def test_a_run_is_read_by_one_reader():
    gate = anyio.Event()

    async def stream():
        await gate.wait()
        yield Finish("stop")

    async with (
        ToolLoop(lambda out, tools: stream()).run("Go.") as run,
        anyio.create_task_group() as group,
    ):
        group.start_soon(run.__anext__)
        await anyio.wait_all_tasks_blocked()
        with pytest.raises(UsageError, match="read already"):
            await run.__anext__()
        gate.set()


# --- history: the four combinations ---------------------------------------------------------------


class Watch(MemoryHistory):
    """Remembers what was stored when each call of the model began."""

    async def count(self, conversation="c"):
        try:
            return len((await self.load(conversation)).turns)
        except Exception:  # noqa: BLE001
            return 0


def watched(history, model):
    """A ``send`` that notes how much is stored before each call of the model."""
    seen = []

    async def send(outgoing, tools):
        seen.append(await history.count())
        return model(outgoing, tools)

    return send, seen


THREE = (script(call("add", a=1)), script(call("add", a=2)), script(say("Done.")))


@both
async def test_own_stack_and_per_run_stores_all_of_a_run_at_its_end():
    async with Watch() as history:
        send, seen = watched(history, Model(*THREE))
        run, _ = await ran(ToolLoop(send, [add], history=history), conversation="c")
        assert seen == [0, 0, 0]
        stored = await history.load("c")
        assert stored.turns == run.conversation.turns
        assert [c.settled for c in stored.calls] == run.settled


@both
async def test_own_stack_and_per_call_stores_what_the_service_has_seen_after_each_call():
    async with Watch() as history:
        send, seen = watched(history, Model(*THREE))
        loop = ToolLoop(send, [add], history=history, persist="call")
        run, _ = await ran(loop, conversation="c")
        assert seen == [0, 2, 4]
        assert (await history.load("c")).turns == run.conversation.turns


@both
async def test_a_custom_stack_and_per_run_stores_at_the_end():
    async with Watch() as history:
        send, seen = watched(history, Model(*THREE))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            loop = ToolLoop(send, [add], history=history, as_is=True)
        run, _ = await ran(loop, conversation="c")
        assert seen == [0, 0, 0]
        assert (await history.load("c")).turns == run.conversation.turns


@both
async def test_a_custom_stack_and_per_call_without_persistence_warns_and_stores_nothing():
    async with Watch() as history:
        send, _ = watched(history, Model(*THREE))
        with pytest.warns(HistoryWarning, match="no PersistEachCall"):
            loop = ToolLoop(send, [add], history=history, persist="call", as_is=True)
        run, _ = await ran(loop, conversation="c")
        assert run.outcome == "finished"
        assert await history.count() == 0


@both
async def test_a_custom_stack_and_per_call_with_persistence_of_its_own_does_not_warn():
    async with Watch() as history:
        send, seen = watched(history, Model(*THREE))
        inner = PersistEachCall(send, history)

        @functools.wraps(inner)
        async def outer(outgoing, tools):
            return await inner(outgoing, tools)

        with warnings.catch_warnings():
            warnings.simplefilter("error")
            loop = ToolLoop(outer, [add], history=history, persist="call", as_is=True)
        run, _ = await ran(loop, conversation="c")
        assert seen == [0, 2, 4]
        assert (await history.load("c")).turns == run.conversation.turns


# --- history: what is stored ----------------------------------------------------------------------


@both
async def test_finish_is_heard_when_the_run_is_stored():
    for persist in ("run", "call"):
        async with Watch() as history:
            loop = ToolLoop(Model(*TWO), [add, echo], history=history, persist=persist)
            async with loop.run("Go.", conversation="c") as run:
                async for event in run:
                    if isinstance(event, Finish) and event.reason == "stop":
                        break  # and nothing of it is lost
            assert await history.count() == 4


@both
async def test_a_run_that_fails_midway_is_not_there_per_run_and_is_up_to_there_per_call():
    for persist, kept in (("run", 0), ("call", 2)):
        async with Watch() as history:
            model = Model(script(call("add", a=1)), script(say("Half an ans"), cut()))
            loop = ToolLoop(model, [add], history=history, persist=persist)
            run, _ = await ran(loop, conversation="c")
            assert run.outcome == "failed"
            assert await history.count() == kept


@both
async def test_the_next_run_goes_on_with_what_is_stored():
    async with Watch() as history:
        model = Model(script(say("One.")), script(say("Two.")))
        loop = ToolLoop(model, history=history, system="Be brief.")
        await ran(loop, "1?", conversation="c")
        await ran(loop, "2?", conversation="c")
        assert [t.text for t in model.sent[1].turns] == ["1?", "One.", "2?"]
        assert model.sent[1].system == "Be brief."
        assert await history.count() == 4


@both
async def test_a_handler_that_was_done_before_a_crash_is_not_run_again():
    ran_times = []

    def pay() -> str:
        "Pays."
        ran_times.append(1)
        return "paid"

    async with Watch() as history:

        class Dies(BaseException):
            pass

        calls = 0

        def send(outgoing, tools):
            nonlocal calls
            calls += 1
            if calls == 2:
                raise Dies
            return (script(call("pay")) if calls == 1 else script(say("Thanks."))).events(
                "anthropic"
            )

        loop = ToolLoop(send, [pay], history=history, persist="call")
        with pytest.raises(Dies):
            await ran(loop, conversation="c")
        stored = await history.load("c")
        assert [c.state for c in stored.calls] == ["settled"]
        run, _ = await ran(loop, None, conversation="c")
        assert (run.text, len(ran_times)) == ("Thanks.", 1)
        assert outputs(run) == ["paid"]
        assert [c.state for c in (await history.load("c")).calls] == ["answered"]


@both
async def test_an_unresolved_call_is_closed_in_the_request_and_stays_as_it_is_in_the_store():
    async with Watch() as history:
        first = Turn.from_events(script(call("add", a=1)).events("anthropic"))
        await history.commit("c", "r", 0, [*Conversation().user("Go.").turns, first], create=True)
        model = Model(script(say("I see.")))
        run, _ = await ran(ToolLoop(model, [add], history=history), "Well?", conversation="c")
        assert model.sent[0].turns[2].results[0].text == UNAVAILABLE
        assert [row.what for row in run.report] == ["closed"]
        stored = await history.load("c")
        assert [t.role for t in stored.turns] == ["user", "assistant", "user", "assistant"]
        assert [c.state for c in stored.calls] == ["unresolved"]


@both
async def test_two_runs_at_once_do_not_mix():
    async with Watch() as history:
        slow = ToolLoop(Model(script(say("slow"))), history=history).run("1", conversation="c")
        async with slow:
            await slow.__anext__()  # it has loaded the conversation
            await ran(ToolLoop(Model(script(say("quick"))), history=history), "2", conversation="c")
            with pytest.raises(ConversationMoved):
                async for _ in slow:
                    pass
        assert [t.text for t in (await history.load("c")).turns] == ["2", "quick"]


@both
async def test_there_must_be_something_to_go_on_with():
    with pytest.raises(UsageError, match="say something"):
        await ran(ToolLoop(Model()), None)


@both
async def test_a_commit_at_the_end_is_not_cut_by_cancelling():
    async with Watch() as history:
        loop = ToolLoop(Model(script(say("Done."))), history=history)
        with anyio.CancelScope() as scope:
            async with loop.run("Go.", conversation="c") as run:
                async for event in run:
                    if event.kind == "text_delta":
                        break
                commit = history.commit

                async def cancelled(*arguments, **options):
                    scope.cancel()
                    return await commit(*arguments, **options)

                history.commit = cancelled
                async for _ in run:
                    pass
        del history.commit
        assert await history.count() == 2


# --- services that keep the conversation themselves -----------------------------------------------


def response_id(turn):
    return turn.response_id


@pytest.mark.parametrize("persist", ["run", "call"])
def test_two_keepers_of_one_conversation_are_a_conflict(persist):
    async def main():
        async with Watch() as history:
            loop = ToolLoop(Model(*TWO, wire="openai_responses"), [add, echo], history=history,
                            persist=persist, service_id=response_id)  # fmt: skip
            with pytest.raises(HistoryConflict, match="keeps the conversation 'c'"):
                await ran(loop, conversation="c")
            assert await history.count() == 0

    anyio.run(main)


@pytest.mark.parametrize("persist", ["run", "call"])
def test_the_conflict_may_be_a_warning_and_both_keep_it(persist):
    async def main():
        async with Watch() as history:
            loop = ToolLoop(Model(*TWO, wire="openai_responses"), [add, echo], history=history,
                            persist=persist, service_id=response_id, on_conflict="warn")  # fmt: skip
            with pytest.warns(HistoryWarning, match="and a history too"):
                run, _ = await ran(loop, conversation="c")
            stored = await history.load("c")
            assert stored.turns == run.conversation.turns
            assert stored.service_id == run.conversation.turns[-1].response_id

    anyio.run(main)


@pytest.mark.parametrize("persist", ["run", "call"])
def test_the_history_may_let_go_and_keep_the_services_name(persist):
    async def main():
        async with Watch() as history:
            names, sent = [], []
            scripted = turns(*TWO, script(say("Again.")))

            async def send(outgoing, tools):
                sent.append(([t.role for t in outgoing.turns], outgoing.service_id))
                try:
                    names.append((await history.load("c")).service_id)
                except Exception:  # noqa: BLE001
                    names.append(None)
                return scripted.turn(len(sent) - 1).events("openai_responses")

            loop = ToolLoop(send, [add, echo], history=history, persist=persist,
                            service_id=response_id, on_conflict="clear")  # fmt: skip
            run, _ = await ran(loop, conversation="c")
            first, last = (t.response_id for t in run.conversation.turns if t.response_id)
            assert names == [None, first if persist == "call" else None]
            assert sent[1] == (["tool"], first)  # what the service has not seen
            stored = await history.load("c")
            assert (stored.turns, stored.service_id) == ([], last)
            await ran(loop, "And?", conversation="c")
            assert sent[2] == (["user"], last)

    anyio.run(main)


# --- bad arguments --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"persist": "never"}, "persist"),
        ({"on_conflict": "shrug"}, "on_conflict"),
        ({"tools": [add, add]}, "two tools"),
        ({"tools": [5]}, "a tool is a function"),
        ({"tools": add}, "tools is a list of tools, not function"),
        ({"tools": "add"}, "tools is a list of tools, not str"),
        ({"tools": [(Tool("f"), 5)]}, "the handler of 'f' is no function: 5"),
        ({"tools": [Tool("artifact_grep")]}, "cannot be named 'artifact_grep'"),
        ({"tools": [(Tool("artifact_head"), print)]}, "choose another name"),
        ({"send": None}, "send is a function"),
        ({"history": "chat.db"}, "history is a History such as SQLiteHistory"),
        ({"limit": 0}, "limit is a number of calls from 1 up, not 0"),
        ({"limit": True}, "limit is a number"),
        ({"concurrency": 0}, "concurrency is a number"),
        ({"timeout": "10"}, "timeout is seconds, or None for no end, not '10'"),
        ({"timeout": 0}, "timeout is seconds"),
        ({"approve": True}, "approve is a function of a call"),
        ({"until": 3}, "until is a function of a settled record"),
        ({"guard": 3}, "guard is a LoopGuard, not 3"),
        ({"spool": "folder"}, "spool is a Spool"),
        ({"orphans": "keep"}, "orphans is one of error, drop, raise, not 'keep'"),
        ({"system": 5}, "system is a text"),
        ({"trim": "yes"}, "trim is True or False"),
        ({"service_id": "resp_1"}, "service_id is a function of a turn"),
    ],
)
def test_bad_arguments_are_named(options, complaint):
    with pytest.raises(UsageError, match=complaint):
        ToolLoop(**{"send": lambda out, tools: [], **options})


@pytest.mark.parametrize(
    ("said", "options", "complaint"),
    [
        (5, {}, "say a text, a Turn or nothing, not int"),
        (Conversation(), {}, "say a text, a Turn or nothing, not Conversation"),
        ("Go.", {"conversation": 5}, "a conversation is its id or a Conversation, not int"),
        ("Hi", {"run": 5}, "a run is named by a text, not int"),
    ],
)
def test_what_cannot_be_said_is_named(said, options, complaint):
    with pytest.raises(UsageError, match=complaint):
        ToolLoop(lambda out, tools: []).run(said, **options)


@both
async def test_a_send_that_gives_no_events_is_named():
    with pytest.raises(UsageError, match="send returns"):
        await ran(ToolLoop(lambda out, tools: 5))
    with pytest.raises(UsageError, match="without Finish or Failed"):
        await ran(ToolLoop(lambda out, tools: []))
    with pytest.raises(UsageError, match="named by its id"):
        ToolLoop(lambda out, tools: [], history=MemoryHistory()).run(conversation=Conversation())
