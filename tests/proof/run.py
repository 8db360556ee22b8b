"""Mutants by the million: ``python -m tests.proof.run --mutants N --seed S [--wire W] [--jobs J]``.

Each mutant is known by seed, wire and number, and can be made again from them. Figures go to
build/proof.json, each find (minimised, one per cause and smallest stream) to build/finds/, a table
to the screen. Exit code 0 only if there is no find.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import json
import logging
import multiprocessing
import multiprocessing.connection
import random
import resource
import signal
import sys
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from tests.proof.conversations import MAKERS, converse
from tests.proof.damage import Mutant, damaged
from tests.proof.frames import blocks
from tests.proof.judge import Find, Verdict, examine, judge
from tests.proof.talk import Said, Talk

BUILD = Path(__file__).resolve().parents[2] / "build"
PER_TALK = 10  # mutants of one conversation
BATCH = 500
SECONDS = 10  # for one mutant
MEMORY = 2 * 1024**3  # for one worker
CALLS = ("told", "only_read", "missed")
KEPT = 4  # finds that are minimised and kept, per batch and kind


CONTEXT = multiprocessing.get_context("fork")
Task: TypeAlias = tuple[str, str, int, int]  # wire, seed, first number, how many


# --- one mutant -----------------------------------------------------------------------------------


def talk_of(wire: str, seed: str, number: int) -> Talk:
    return converse(wire, random.Random(f"{seed}/{wire}/{number // PER_TALK}"))


def mutant_of(talk: Talk, seed: str, number: int) -> tuple[Mutant, random.Random, dict[str, Any]]:
    dice = random.Random(f"{seed}/{talk.wire}/{number}/damage")
    mutant = damaged(dice, talk)
    options = {"on_bad_event": "skip"} if dice.random() < 0.25 else {}
    return mutant, dice, options


def judged(talk: Talk, seed: str, number: int) -> tuple[Mutant, Verdict, dict[str, Any]]:
    mutant, dice, options = mutant_of(talk, seed, number)
    chunks = dice if number % 4 == 0 else None
    return mutant, examine(talk.wire, mutant.body, mutant.said, chunks, **options), options


def judge_again(
    wire: str, body: bytes, said: list[Said], kind: str, options: dict[str, Any]
) -> list[Find]:
    """As ``judge``; what depends on chunks is looked for in several chunkings."""
    if kind != "chunking":
        return judge(wire, body, said, **options)
    dices = (random.Random(seed) for seed in range(8))
    return next((f for dice in dices if (f := judge(wire, body, said, dice, **options))), [])


def minimised(
    wire: str, framing: str, body: bytes, said: list[Said], kind: str, options: dict[str, Any]
) -> bytes:
    """The body without all frames that the find does not need."""

    def still(candidate: bytes) -> bool:
        return any(f.kind == kind for f in judge_again(wire, candidate, said, kind, options))

    pieces = blocks(body, framing)
    if not still(b"".join(pieces)):
        return body
    size = max(1, len(pieces) // 2)
    while True:
        at = 0
        while at < len(pieces):
            fewer = pieces[:at] + pieces[at + size :]
            if still(b"".join(fewer)):
                pieces = fewer
            else:
                at += size
        if size == 1:
            return b"".join(pieces)
        size //= 2


# --- many -----------------------------------------------------------------------------------------


@dataclass
class Figures:
    """What was counted."""

    mutants: int = 0
    wires: Counter[str] = field(default_factory=Counter)
    finds: Counter[tuple[str, str]] = field(default_factory=Counter)  # wire, kind
    calls: Counter[tuple[str, str]] = field(default_factory=Counter)  # wire, which calls
    operators: Counter[str] = field(default_factory=Counter)
    blamed: Counter[tuple[str, str]] = field(default_factory=Counter)  # operator, kind
    kept: list[dict[str, Any]] = field(default_factory=list)

    def add(self, other: Figures) -> None:
        self.mutants += other.mutants
        self.wires += other.wires
        self.finds += other.finds
        self.calls += other.calls
        self.operators += other.operators
        self.blamed += other.blamed
        self.kept += other.kept


class TooSlow(BaseException):
    """One mutant took too long; nobody may take it for an error of theirs."""


def _alarm(*_: Any) -> None:
    raise TooSlow(f"more than {SECONDS} s")


@contextmanager
def time_limit() -> Iterator[None]:
    """Where somebody else has set a time, that goes on behind it."""
    before = signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, *before)


def batch(wire: str, seed: str, start: int, count: int, progress: Any = None) -> Figures:
    """The mutants ``start`` … of one wire."""
    figures, kept = Figures(), Counter[str]()
    talk, talk_number = talk_of(wire, seed, start), start // PER_TALK
    for number in range(start, start + count):
        if progress is not None:
            progress.value = number
        if number // PER_TALK != talk_number:
            talk, talk_number = talk_of(wire, seed, number), number // PER_TALK
        try:
            with time_limit():
                mutant, verdict, options = judged(talk, seed, number)
        except (TooSlow, MemoryError) as error:
            mutant, _, options = mutant_of(talk, seed, number)
            why = "slow" if isinstance(error, TooSlow) else "memory"
            verdict = Verdict([Find(why, str(error))])
        figures.mutants += 1
        figures.wires[wire] += 1
        figures.operators.update(set(mutant.done))
        for name in CALLS:
            figures.calls[wire, name] += getattr(verdict, name)
        for kind in {f.kind for f in verdict.finds}:
            figures.finds[wire, kind] += 1
            figures.blamed.update((name, kind) for name in set(mutant.done))
            if kept[kind] < KEPT:
                kept[kind] += 1
                figures.kept.append(found(talk, seed, number, mutant, kind, options))
    return figures


def found(
    talk: Talk, seed: str, number: int, mutant: Mutant, kind: str, options: dict[str, Any]
) -> dict[str, Any]:
    """A find as it is kept: minimised, with all that is needed to see it again."""
    body = mutant.body
    if kind not in ("slow", "memory", "died"):
        with suppress(TooSlow, MemoryError), time_limit():
            body = minimised(talk.wire, talk.style.framing, body, mutant.said, kind, options)
    lost = kind in ("slow", "memory", "died")
    finds = [] if lost else judge_again(talk.wire, body, mutant.said, kind, options)
    sentence = next((f.sentence for f in finds if f.kind == kind), kind)
    return {
        "wire": talk.wire, "kind": kind, "sentence": sentence, "operators": list(mutant.done),
        "seed": seed, "number": number, "options": options,
        "text": body.decode("utf-8", "backslashreplace"), "base64": base64.b64encode(body).decode(),
    }  # fmt: skip


def work(task: Task, progress: Any, pipe: Any) -> None:
    """A worker: one batch in a process of its own, with bounded memory."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    signal.signal(signal.SIGALRM, _alarm)
    be_quiet()
    try:
        pipe.send(batch(*task, progress))
    except BaseException:  # the machine itself is broken, not the engine
        traceback.print_exc()
        pipe.send(None)
        raise


def be_quiet() -> None:
    """The log has a line for every broken call: not here."""
    logging.getLogger("streamnorm").setLevel(logging.CRITICAL + 1)


def guarded(wire: str, body: bytes, said: list[Said], **options: Any) -> list[Find]:
    """``judge`` in a process of its own: whatever the bytes do to it, they do nothing to us."""
    mine, its = CONTEXT.Pipe(duplex=False)

    def child() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        be_quiet()
        its.send(judge(wire, body, said, random.Random(0), **options))

    process = CONTEXT.Process(target=child)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # forks beside threads are ours
        process.start()
    its.close()
    try:
        finds: list[Find] = mine.recv() if mine.poll(SECONDS) else [Find("slow", f"{SECONDS} s")]
    except EOFError:
        finds = [Find("died", "the process did not survive these bytes")]
    process.kill()
    process.join()
    return finds


def tasks(wires: list[str], seed: str, mutants: int) -> Iterator[Task]:
    """Batches, wire after wire, so that all wires grow alike."""
    each = -(-mutants // len(wires))
    for start in range(0, each, BATCH):
        for wire in wires:
            yield wire, seed, start, min(BATCH, each - start)


class Worker:
    """One batch in a process of its own."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.pipe, its = CONTEXT.Pipe(duplex=False)
        self.number = CONTEXT.Value("q", task[2], lock=False)
        self.process = CONTEXT.Process(target=work, args=(task, self.number, its))
        self._seen, self._since = task[2], time.monotonic()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # forks beside threads are ours
            self.process.start()
        its.close()

    def is_over(self) -> bool:
        """Has it answered or died? One that stands still for too long is ended."""
        if self.number.value != self._seen:
            self._seen, self._since = self.number.value, time.monotonic()
        if time.monotonic() - self._since > 4 * SECONDS:
            self.process.kill()
            self._since = time.monotonic()
        return self.pipe.poll()

    def figures(self, again: list[Task]) -> Figures:
        """What it counted; where it died, that is a find, and the rest is done again."""
        try:
            counted: Figures | None = self.pipe.recv()
        except EOFError:
            return self._died(again)
        finally:
            self.process.join()
        if counted is None:
            raise SystemExit(f"the proof itself failed at {self.number.value} of {self.task}")
        return counted

    def _died(self, again: list[Task]) -> Figures:
        wire, seed, start, count = self.task
        number = int(self.number.value)
        if number > start:
            again.append((wire, seed, start, number - start))
        if number + 1 < start + count:
            again.append((wire, seed, number + 1, start + count - number - 1))
        talk = talk_of(wire, seed, number)
        mutant, _, options = mutant_of(talk, seed, number)
        figures = Figures(mutants=1)
        figures.wires[wire] += 1
        figures.finds[wire, "died"] += 1
        figures.kept.append(found(talk, seed, number, mutant, "died", options))
        return figures


def run_all(wires: list[str], seed: str, mutants: int, jobs: int, quiet: bool = False) -> Figures:
    """All batches over the cores; a worker that dies is a find, not an end. Interrupted, it gives what
    it has so far."""
    total, running = Figures(), list[Worker]()
    try:
        _run(tasks(wires, seed, mutants), total, running, jobs, 0 if quiet else mutants)
    except KeyboardInterrupt:
        for worker in running:
            worker.process.kill()
            worker.process.join()
    return total


def _run(
    todo: Iterator[Task], total: Figures, running: list[Worker], jobs: int, shown: int
) -> None:
    again: list[Task] = []
    began = time.monotonic()
    while True:
        while len(running) < jobs:
            task = again.pop() if again else next(todo, None)
            if task is None:
                break
            running.append(Worker(task))
        if not running:
            return
        multiprocessing.connection.wait([worker.pipe for worker in running], 0.5)
        for worker in [w for w in running if w.is_over()]:
            running.remove(worker)
            total.add(worker.figures(again))
            if shown:
                show_progress(total, shown, began)


# --- telling --------------------------------------------------------------------------------------


def show_progress(total: Figures, of: int, began: float) -> None:
    share = min(1.0, total.mutants / of)
    bar = "#" * int(share * 30)
    rate = total.mutants / max(0.001, time.monotonic() - began)
    line = f"[{bar:<30}] {total.mutants:,} of {of:,} · {rate:,.0f}/s · {sum(total.finds.values())} finds"
    end = "" if sys.stderr.isatty() else "\n"
    if sys.stderr.isatty() or share == 1.0 or int(share * 20) != int((share - 500 / of) * 20):
        print(f"\r{line}" if not end else line, end=end, file=sys.stderr, flush=True)


def table(figures: Figures) -> str:
    kinds = sorted({kind for _, kind in figures.finds})
    rows = [["wire", "mutants", *(f"calls {name}" for name in CALLS)]]
    for wire in sorted(figures.wires):
        counts = (f"{figures.calls[wire, name]:,}" for name in CALLS)
        rows.append([wire, f"{figures.wires[wire]:,}", *counts])
    rows += [[], ["wire", "mutants", *kinds]]
    for wire in sorted(figures.wires):
        rows.append(
            [wire, f"{figures.wires[wire]:,}", *(str(figures.finds[wire, k]) for k in kinds)]
        )
    rows.append([])
    rows.append(["operator", "mutants", *kinds])
    for name in sorted(figures.operators):
        rows.append(
            [name, f"{figures.operators[name]:,}", *(str(figures.blamed[name, k]) for k in kinds)]
        )
    wide = [max((len(r[i]) for r in rows if len(r) > i), default=0) for i in range(5 + len(kinds))]
    return "\n".join(
        "  ".join(c.ljust(w) if i == 0 else c.rjust(w) for i, (c, w) in enumerate(zip(r, wide, strict=False)))
        for r in rows
    )  # fmt: skip


def save(figures: Figures, seed: str, seconds: float) -> None:
    finds = BUILD / "finds"
    finds.mkdir(parents=True, exist_ok=True)
    for old in finds.glob("*.json"):
        old.unlink()
    for find in figures.kept:
        digest = hashlib.sha256(find["base64"].encode()).hexdigest()[:10]
        text = json.dumps(find, ensure_ascii=True, indent=1)
        (finds / f"{find['wire']}-{find['kind']}-{digest}.json").write_text(text + "\n")
    summary = {
        "seed": seed, "mutants": figures.mutants, "seconds": round(seconds, 1),
        "per_second": round(figures.mutants / max(seconds, 0.001)),
        "wires": dict(sorted(figures.wires.items())),
        "calls": {f"{wire} {name}": n for (wire, name), n in sorted(figures.calls.items())},
        "operators": dict(sorted(figures.operators.items())),
        "finds": {f"{wire} {kind}": n for (wire, kind), n in sorted(figures.finds.items())},
        "finds_by_operator": {f"{op} {kind}": n for (op, kind), n in sorted(figures.blamed.items())},
    }  # fmt: skip
    (BUILD / "proof.json").write_text(json.dumps(summary, indent=1) + "\n")


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.proof.run", description=__doc__)
    parser.add_argument("--mutants", type=int, default=1_000_000)
    parser.add_argument("--seed", default="1")
    parser.add_argument("--wire", action="append", choices=sorted(MAKERS), default=None)
    parser.add_argument("--jobs", type=int, default=multiprocessing.cpu_count())
    options = parser.parse_args(argv)
    for end in (signal.SIGINT, signal.SIGTERM):  # what was found until then is written down
        signal.signal(end, signal.default_int_handler)
    began = time.monotonic()
    wires = options.wire or list(MAKERS)
    figures = run_all(wires, options.seed, options.mutants, options.jobs)
    seconds = time.monotonic() - began
    print(file=sys.stderr)
    save(figures, options.seed, seconds)
    print(table(figures))
    count = sum(figures.finds.values())
    print(
        f"\n{figures.mutants:,} mutants in {seconds:,.0f} s (seed {options.seed}): {count} finds"
        + (f", see {BUILD / 'finds'}" if count else "")
    )
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
