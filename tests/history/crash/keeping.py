"""Who keeps a conversation, and what is left of it when the process dies at any moment.

``python -m tests.history.crash.keeping --store sqlite|postgres --at PATH|SCHEMA --stack ours|own|bare
--persist run|call --policy none|raise|warn|clear`` prints a JSON list: one case for each moment that a
loop of two calls has (every write among them), with what was stored, what the next run sent, and what
was stored then.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import sys
import warnings
from collections import Counter
from collections.abc import Callable
from typing import Any

from streamnorm import Conversation, Finish, StreamStart, TextDelta, ToolCall, ToolLoop
from streamnorm.agent.outgoing import Outgoing
from streamnorm.agent.persist import PersistEachCall, ServiceIds
from streamnorm.history import History, HistoryConflict
from tests.history.crash.driver import ended, forked, heard, open_store, told, warm_up

BEFORE = Conversation().user("Before?").assistant("Yes.").turns
CALLS = 2  # that the model makes before it is done


class Fate:
    """Counts the moments of a run, and ends the process at one of them."""

    def __init__(self, tell: Callable[[Any], None], moment: str = "", nth: int = 0) -> None:
        self.tell, self.moment, self.nth = tell, moment, nth
        self.seen: Counter[str] = Counter()

    def __call__(self, moment: str) -> None:
        self.seen[moment] += 1
        if moment == self.moment and self.seen[moment] == self.nth:
            self.tell(self.seen["committed"])  # how many writes were acknowledged
            os.kill(os.getpid(), signal.SIGKILL)


class Service:
    """A model that answers by the book, and names the conversation anew with each answer."""

    def __init__(self, run: str, calls: int, at: Callable[[str], None]) -> None:
        self.run, self.calls, self.at = run, calls, at
        self.sent: list[tuple[list[str], str | None]] = []

    async def __call__(self, outgoing: Outgoing, tools: Any) -> Any:
        self.sent.append(([turn.role for turn in outgoing.turns], outgoing.service_id))
        return self.stream(len(self.sent))

    async def stream(self, number: int) -> Any:
        said: Any = TextDelta("Done.")
        if number <= self.calls:
            said = ToolCall(0, f"call_{self.run}_{number}", "work", {}, "{}")
        start = StreamStart("openai_responses", "m", f"resp_{self.run}_{number}")
        for event in (start, said, Finish("stop")):
            self.at("hearing")
            yield event


def loop_over(args: argparse.Namespace, history: History, service: Service) -> ToolLoop:
    def work() -> str:
        "Works."
        service.at("running")
        return "worked"

    find = None if args.policy == "none" else (lambda turn: turn.response_id)
    conflict = "raise" if args.policy == "none" else args.policy
    send: Any = service
    if args.stack == "own" and args.persist == "call":
        send = PersistEachCall(service, history, service_ids=ServiceIds(find, conflict))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ToolLoop(
            send, [work], history=history, persist=args.persist, as_is=args.stack != "ours",
            service_id=find, on_conflict=conflict,
        )  # fmt: skip


async def run_through(loop: ToolLoop, conversation: str, said: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        async with loop.run(said, conversation=conversation) as run:
            async for _ in run:
                pass


async def victim(
    args: argparse.Namespace, conversation: str, tell: Callable[[Any], None], *death: Any
) -> None:
    """A run that dies; or, without a death, tells how often it came to each moment."""
    async with open_store(args) as history:
        await history.commit(conversation, "before", 0, BEFORE, create=True)
        fate = Fate(tell, *death)
        history.at = fate  # type: ignore[attr-defined]
        try:
            await run_through(
                loop_over(args, history, Service("1", CALLS, fate)), conversation, "Go."
            )
        except HistoryConflict:
            fate("refused")
    tell(fate.seen)


async def heir(args: argparse.Namespace, conversation: str, tell: Callable[[Any], None]) -> None:
    """Another process looks at what is left, and goes on."""
    async with open_store(args) as history:
        left = await history.load(conversation)
        service = Service("2", 0, lambda moment: None)
        with contextlib.suppress(HistoryConflict):
            await run_through(loop_over(args, history, service), conversation, "Well?")
        then = await history.load(conversation)
        tell({
            "left": [turn.role for turn in left.turns], "left_id": left.service_id,
            "journal": [record.id for record in left.journal],
            "sent": service.sent[0][0], "sent_id": service.sent[0][1],
            "then": [turn.role for turn in then.turns], "then_id": then.service_id,
        })  # fmt: skip


def case(args: argparse.Namespace, moment: str, nth: int) -> dict[str, Any]:
    conversation = f"{moment}/{nth}"
    pid, out = forked(lambda tell: victim(args, conversation, tell, moment, nth))
    (writes,) = heard(out)
    if ended(pid) != signal.SIGKILL:
        sys.exit(f"nothing died at {conversation}")
    (seen,) = told(lambda tell: heir(args, conversation, tell))
    return {"moment": moment, "nth": nth, "writes": writes, **seen}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--store", choices=("sqlite", "postgres"), default="sqlite")
    parser.add_argument("--at", required=True)
    parser.add_argument("--stack", choices=("ours", "own", "bare"), default="ours")
    parser.add_argument("--persist", choices=("run", "call"), default="run")
    parser.add_argument("--policy", choices=("none", "raise", "warn", "clear"), default="none")
    parser.add_argument("--all", action="store_true", help="also between any two events")
    args = parser.parse_args()
    warm_up(args)
    (moments,) = told(lambda tell: victim(args, "counted", tell))
    moments.pop("refused", None)
    cases = [
        case(args, moment, nth)
        for moment, times in moments.items()
        for nth in range(1, times + 1)
        if args.all or moment != "hearing" or nth in (1, times)
    ]
    print(json.dumps(cases))


if __name__ == "__main__":
    main()
