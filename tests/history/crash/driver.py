"""Processes that die: forked here, killed with SIGKILL, and looked after by others.

``python -m tests.history.crash.driver COMMAND --store sqlite|postgres --at PATH|SCHEMA`` prints JSON:

    points    a loop of five calls that dies at each named moment of each step, in both modes
    random    loops that are killed at random moments
    writers   processes that write one file together

The driver itself never starts a thread nor opens a store, so that forking is safe.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import select
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable
from importlib import import_module
from typing import Any

import anyio

from streamnorm import Conversation
from streamnorm.agent.loop import ToolLoop
from streamnorm.encoding.mending import mend
from streamnorm.encoding.pairs import UNAVAILABLE
from streamnorm.history import History, SQLiteHistory, UnknownConversation
from streamnorm.testing import call, say, script
from streamnorm.wire import provider
from tests.encoding.pairing_rules import RULES, assert_paired
from tests.history.stores import DSN, asks, gives, user
from tests.history.stores import call as one_call

STEPS = 5
# Where a loop of that many calls can die, and how often it gets there, by how it is stored.
COMMIT = ("begun", "grown", "recorded", "committed")
MOMENTS = {
    "run": {"sending": 6, "streaming": 6, "running": 5, "turn": 12, **dict.fromkeys(COMMIT, 1)},
    "call": {"sending": 6, "streaming": 6, "running": 5, "journal": 5, "journalled": 5, "turn": 12,
             **dict.fromkeys(COMMIT, 6)},
}  # fmt: skip
EVERY_STEP = ("sending", "running")  # of the others, a quick look takes the first and the last


def open_store(
    args: argparse.Namespace, at: Callable[[str], None] = lambda moment: None
) -> History:
    """The store; ``at`` hears of the moments of each commit."""
    if args.store == "sqlite":
        history: Any = SQLiteHistory(args.at)
    else:
        from streamnorm.history import PostgresHistory

        history = PostgresHistory(str(DSN), schema=args.at)
    history.at = at
    return history


# --- children -------------------------------------------------------------------------------------


def forked(job: Callable[[Callable[[Any], None]], Any]) -> tuple[int, int]:
    """A child that runs ``job(tell)``; its process id, and where to read what it tells."""
    out, into = os.pipe()
    pid = os.fork()
    if pid:
        os.close(into)
        return pid, out
    os.close(out)
    code = 1
    try:
        anyio.run(job, lambda said: os.write(into, json.dumps(said).encode() + b"\n"))
        code = 0
    except BaseException:  # noqa: BLE001
        import traceback

        traceback.print_exc()
    finally:
        os._exit(code)


def heard(fd: int) -> list[Any]:
    """All that a child tells, until it ends."""
    with os.fdopen(fd, "rb") as file:
        return [json.loads(line) for line in file if line.endswith(b"\n")]


def ended(pid: int) -> int:
    """The signal that ended a child, or 0."""
    status = os.waitpid(pid, 0)[1]
    if os.WIFEXITED(status) and os.WEXITSTATUS(status):
        sys.exit("a child failed; see above")
    return os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0


def told(job: Callable[[Callable[[Any], None]], Any]) -> list[Any]:
    """What a child tells that ends well."""
    pid, out = forked(job)
    said = heard(out)
    assert ended(pid) == 0
    return said


# --- a loop of five calls -------------------------------------------------------------------------


class Death:
    """Kills this process at the nth time of a moment."""

    def __init__(self, moment: str | None = None, nth: int = 1) -> None:
        self.moment, self.left = moment, nth

    def __call__(self, moment: str) -> None:
        if moment == self.moment:
            self.left -= 1
            if self.left == 0:
                os.kill(os.getpid(), signal.SIGKILL)


def loop_over(history: History, mode: str, death: Death, steps: int = STEPS) -> ToolLoop:
    checked = iter([True])

    async def send(outgoing: Any, tools: Any) -> Any:
        death("sending")
        # What would be sent first is right on every wire; what follows is of the same shape.
        for name in RULES if next(checked, False) else ("anthropic",):
            assert_paired(name, provider(name).request(outgoing, tools=tools, model="m"))
        last = max(n for n, turn in enumerate(outgoing.turns) if turn.role == "user")
        step = sum(turn.role == "assistant" for turn in outgoing.turns[last:])
        # Ids are new in each run, as a provider's are.
        key = f"{len(outgoing.turns)}x{step}"
        work = call("work", step=step).with_id(f"toolu_{key}")
        return stream(script(work if step < steps else say("Done.")).events("anthropic"))

    async def stream(events: list[Any]) -> Any:
        for event in events:
            yield event
            death("streaming")

    async def served(said: dict[str, Any]) -> str:
        death("running")
        return f"step {said['step']} ran"

    from streamnorm.agent.client_tools import ClientTool
    from streamnorm.tools import Tool

    tool = ClientTool(Tool("work"), served, is_async=True)
    return ToolLoop(send, [tool], history=history, persist=mode)  # type: ignore[arg-type]


async def run_once(loop: ToolLoop, conversation: str, said: str | None) -> Any:
    async with loop.run(said, conversation=conversation) as run:
        async for _ in run:
            pass
    return run


def look(stored: Any, mode: str, acknowledged: int) -> dict[str, Any]:
    """Is what is stored whole? Raises if it is not."""
    turns, runs = stored.turns, []
    for turn in turns:
        if turn.role == "user":
            runs.append([])
        runs[-1].append(turn)
    full = ["user", *["assistant", "tool"] * STEPS, "assistant"]
    for run in runs:
        roles = [turn.role for turn in run]
        # Per call, a run may end after any answer of the service, and only there; results that were
        # in the journal are told, and stored, with what the user says next.
        is_told = roles[-1] == "assistant" or run is not runs[-1]
        assert roles == full or (mode == "call" and roles == full[: len(roles)] and is_told), roles
    done = sum(len(run) == len(full) for run in runs)
    assert done >= acknowledged, f"{acknowledged} acknowledged, {done} there"
    states = Counter(call.state for call in stored.calls)
    assert sum(states.values()) == sum(len(turn.calls) for turn in turns)
    answered = {result.call.id for turn in turns for result in turn.results}
    for state in stored.calls:
        assert (state.state == "answered") == (state.id in answered)
    before = list(turns)
    mended = mend(stored.conversation, settled=stored.journal)
    for name in RULES:
        assert_paired(name, provider(name).request(mended.conversation, model="m"))
    closed = [row for row in mended.report if row.what == "closed"]
    assert len(closed) == states["unresolved"]
    assert stored.turns == before
    return {"turns": len(turns), "runs": done, "begun": len(runs), **states}


async def loaded(history: History, conversation: str) -> Any:
    try:
        return await history.load(conversation)
    except UnknownConversation:
        from streamnorm.history import Stored

        return Stored(conversation, [])


# --- commands -------------------------------------------------------------------------------------


def points(args: argparse.Namespace) -> dict[str, Any]:
    """Die at each moment of each step; look; let another process go on."""
    cases = [
        point(args, args.mode, moment, nth)
        for moment, times in MOMENTS[args.mode].items()
        for nth in range(1, times + 1)
        if args.all or moment in EVERY_STEP or nth in (1, times)
    ]
    assert all(case["died"] for case in cases)
    told_of = ("unresolved", "settled", "answered", "runs")
    return {"cases": len(cases), **{k: sum(c.get(k, 0) for c in cases) for k in told_of}}


def point(args: argparse.Namespace, mode: str, moment: str, nth: int) -> dict[str, Any]:
    conversation = f"{mode}/{moment}/{nth}"

    async def victim(tell: Callable[[Any], None]) -> None:
        death = Death(moment, nth)
        async with open_store(args, death) as history:
            await run_once(loop_over(history, mode, death), conversation, "Go.")
            tell("acknowledged")

    async def heir(tell: Callable[[Any], None]) -> None:
        async with open_store(args) as history:
            stored = await loaded(history, conversation)
            tell(look(stored, mode, acknowledged))
            run = await run_once(loop_over(history, mode, Death(), 0), conversation, "Well?")
            assert run.text == "Done."
            after = await history.load(conversation)
            assert after.turns[: len(stored.turns)] == stored.turns
            known = {c.id: c.settled for c in stored.calls if c.state == "settled"}
            told_of = {r.call.id: r.text for t in run.conversation.turns for r in t.results}
            for id in known:  # what had run is told as it was
                assert told_of[id].endswith("ran"), told_of[id]
            assert UNAVAILABLE not in told_of.values()  # it stands in requests, never in the store

    pid, out = forked(victim)
    acknowledged = len(heard(out))
    died = ended(pid) == signal.SIGKILL
    (seen,) = told(heir)
    return {"mode": mode, "moment": moment, "nth": nth, "died": died, **seen}


def at_random(args: argparse.Namespace) -> dict[str, Any]:
    """Kill loops at random moments; whoever comes next goes on with the same conversations."""
    dice = random.Random(args.seed)
    acknowledged: Counter[str] = Counter()
    kills = 0
    while kills < args.kills:
        mode = ("run", "call")[kills % 2]

        async def victim(tell: Callable[[Any], None], mode: str = mode) -> None:
            async with open_store(args) as history:
                loop = loop_over(history, mode, Death())
                while True:
                    await run_once(loop, mode, "Go.")
                    tell(mode)

        pid, out = forked(victim)
        # After so many whole runs, and some way into the next.
        for _ in range(dice.choice([0, 0, 1, 2])):
            acknowledged[mode] += os.read(out, 65536).count(b"\n")
        patience = time.monotonic() + dice.random() * args.patience
        while (left := patience - time.monotonic()) > 0:
            if select.select([out], [], [], left)[0]:
                acknowledged[mode] += os.read(out, 65536).count(b"\n")
        os.kill(pid, signal.SIGKILL)
        acknowledged[mode] += len(heard(out))
        kills += ended(pid) == signal.SIGKILL

    async def heir(tell: Callable[[Any], None]) -> None:
        async with open_store(args) as history:
            for mode in ("run", "call"):
                stored = await loaded(history, mode)
                tell(look(stored, mode, acknowledged[mode]))
                await run_once(loop_over(history, mode, Death(), 0), mode, "Well?")
            if isinstance(history, SQLiteHistory):
                assert (await history.settings())["quick_check"] == "ok"

    seen = told(heir)
    return {"kills": kills, "acknowledged": sum(acknowledged.values()),
            "runs": sum(s["runs"] for s in seen), "begun": sum(s["begun"] for s in seen),
            "unresolved": sum(s.get("unresolved", 0) for s in seen)}  # fmt: skip


def writers(args: argparse.Namespace) -> dict[str, Any]:
    """Processes that write one store together, to a conversation they share and one of their own."""
    until = time.monotonic() + args.seconds

    def writer(number: int) -> Any:
        async def job(tell: Callable[[Any], None]) -> None:
            async with open_store(args) as history:
                count = 0
                while time.monotonic() < until:
                    made = one_call(f"w{number}n{count}")
                    unit = [user(f"{number} {count}"), asks(made), gives(made)]
                    for conversation in ("all", f"own {number}"):
                        await history.commit(conversation, f"w{number}", count, unit, create=True)
                    count += 1
                tell(count)

        return job

    children = [forked(writer(number)) for number in range(args.processes)]
    counts = [heard(out)[0] for _, out in children]
    assert [ended(pid) for pid, _ in children] == [0] * args.processes

    async def check(tell: Callable[[Any], None]) -> None:
        async with open_store(args) as history:
            shared = await history.load("all")  # which fails if a sequence has a gap
            units = [shared.turns[n : n + 3] for n in range(0, len(shared.turns), 3)]
            assert all([t.role for t in unit] == ["user", "assistant", "tool"] for unit in units)
            for number, count in enumerate(counts):
                mine = [u[0].text for u in units if u[0].text.startswith(f"{number} ")]
                assert mine == [f"{number} {n}" for n in range(count)]
                assert len((await history.load(f"own {number}")).turns) == 3 * count
            assert isinstance(shared.conversation, Conversation)
            tell(len(shared.turns))

    (turns,) = told(check)
    return {"processes": args.processes, "units": counts, "turns": turns}


def warm_up(args: argparse.Namespace) -> None:
    """Import here, once, what every child would import by itself."""
    import_module("anyio._backends._asyncio")
    import_module("psycopg" if args.store == "postgres" else "sqlite3")
    script(call("x"), say("x")).events("anthropic")
    for name in RULES:
        provider(name).request(Conversation().user("x"), model="m")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("command", choices=("points", "random", "writers"))
    parser.add_argument("--store", choices=("sqlite", "postgres"), default="sqlite")
    parser.add_argument("--at", required=True)
    parser.add_argument("--mode", choices=("run", "call"), default="call")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--kills", type=int, default=40)
    parser.add_argument("--patience", type=float, default=0.2)
    parser.add_argument("--seed", type=int, default=6)
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=5)
    args = parser.parse_args()
    warm_up(args)
    command = {"points": points, "random": at_random, "writers": writers}[args.command]
    print(json.dumps(command(args)))


if __name__ == "__main__":
    main()
