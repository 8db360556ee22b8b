"""Streams from loopback under random faults, to readers of every kind: known calls in, what is wrong out.

Each stream is a conversation whose calls are known (tests/proof/conversations). Its server ends it well, cuts
it, resets it or falls silent anywhere; its reader reads on, leaves, is cancelled, closes from another task or
raises. Rule: no call is told that was not said; a stream that nobody hurt tells all of them, whole or broken;
and afterwards no task, connection or file is left, and memory has not grown.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import random
import tempfile
from collections import Counter
from contextlib import suppress
from pathlib import Path

import httpx

from streamnorm import BrokenToolCall, Finish, ToolCall, normalize
from streamnorm.errors import StreamnormError
from streamnorm.events import Event
from tests.conftest import at_random
from tests.edge.servers import Answer, Provider, Request
from tests.proof.conversations import MAKERS, converse
from tests.proof.judge import key_of
from tests.proof.run import be_quiet
from tests.proof.talk import Talk
from tests.prove.share import Report, Share

__all__ = ["soak"]

AT_ONCE = 8
ROUND = 64  # streams between two looks at what is left
FAULTS = ("none", "none", "cut", "reset", "hang", "early")
READERS = ("all", "all", "calls", "leaves", "cancelled", "closed", "raises", "records")
MANY = 10  # rounds, after which memory says something
GROWTH = 8 * 1024 * 1024  # bytes of memory that a process may take more, after it is warm
WIRES = [wire for wire in MAKERS if wire not in ("claude_code", "codex")]


class Case:
    """One stream: what is said, what goes wrong, and who reads it."""

    def __init__(self, seed: str, number: int) -> None:
        self.dice = random.Random(f"{seed}/{number}")
        self.number = number
        self.talk: Talk = converse(self.dice.choice(WIRES), self.dice)
        self.fault, self.reader = self.dice.choice(FAULTS), self.dice.choice(READERS)
        self.where = self.dice.random()

    def __str__(self) -> str:
        return f"stream {self.number} ({self.talk.wire}, {self.fault}, {self.reader})"

    def answer(self) -> Answer:
        body = self.talk.body
        cut = len(body) if self.fault == "none" else int(len(body) * self.where)
        kind = "application/json" if body.lstrip()[:1] == b"[" else "text/event-stream"
        then = {"none": "end", "early": "end"}.get(self.fault, self.fault)
        chunks = at_random(body[:cut], self.dice.choice((7, 90, 4000)), self.number)
        return Answer(chunks, headers={"content-type": kind}, then=then)


class Left(Exception):
    """What a reader raises that makes a mistake."""


EXPECTED = (Left, StreamnormError, httpx.HTTPError)


async def asked(
    client: httpx.AsyncClient, url: str, folder: Path, case: Case, heard: list[Event]
) -> None:
    headers = {"x-case": str(case.number)}
    async with client.stream("POST", url, headers=headers) as response:
        await read(case, response, folder, heard)


async def read(case: Case, response: httpx.Response, folder: Path, heard: list[Event]) -> None:
    record = {"record": folder} if case.reader == "records" else {}
    # Idle time is waited for by a loop that others use: a reader is never slower than this.
    idle = 0.2 if case.fault == "hang" else 30.0
    few = case.dice.randint(0, 20)
    async with normalize(response, case.talk.wire, idle=idle, seed="soak", **record) as stream:
        if case.reader == "calls":
            async for call in stream.calls():
                heard.append(call)
            return
        async for event in stream:
            heard.append(event)
            if len(heard) <= few:
                continue
            if case.reader == "leaves":
                break
            if case.reader == "raises":
                raise Left
            if case.reader == "closed":
                await asyncio.gather(stream.aclose())
                break
            if case.reader == "cancelled":
                asyncio.current_task().cancel()  # type: ignore[union-attr]


def wrong(case: Case, heard: list[Event]) -> list[str]:
    """Calls that nobody said, and calls of a whole stream that were not told."""
    said = Counter(key_of(call) for call in case.talk.said)
    told = Counter(key_of(event) for event in heard if isinstance(event, ToolCall))
    at = str(case)
    found = [f"{at}: told and not said: {key}" for key in told - said]
    whole = bool(heard) and isinstance(heard[-1], Finish)
    if case.fault == "none" and case.reader in ("all", "records"):
        if not whole:
            found.append(f"{at}: it does not end well: {heard[-1:]}")
        # Where a wire leaves room for doubt, a call may be broken; it may not be lost without a word.
        broken = Counter(event.name for event in heard if isinstance(event, BrokenToolCall))
        lost = Counter(json.loads(key)[0] for key in (said - told).elements())
        found += [f"{at}: said and not told: {name}" for name in lost - broken]
    return found


class Soak:
    def __init__(self, share: Share) -> None:
        self.share = share
        self.done = Counter[str]()
        self.found: list[str] = []
        self.number = 0
        self.waiting: dict[str, Answer] = {}
        self.grown = 0

    def answer(self, request: Request) -> Answer:
        """A client that was cancelled while it asked is not there any more."""
        return self.waiting.get(request.headers["x-case"], Answer(then="cut"))

    async def one(self, client: httpx.AsyncClient, url: str, folder: Path) -> None:
        """In a task of its own, as some cancel that."""
        self.number += 1
        case = Case(self.share.seed, self.number)
        self.waiting[str(case.number)] = case.answer()
        heard: list[Event] = []
        task = asyncio.create_task(asked(client, url, folder, case, heard))
        try:
            await asyncio.wait([task])
        finally:
            del self.waiting[str(case.number)]
        self.done[case.fault] += 1
        self.done["calls"] += sum(isinstance(event, ToolCall) for event in heard)
        self.found += wrong(case, heard)
        if task.cancelled():
            if case.reader != "cancelled":
                self.found.append(f"{case}: somebody else cancelled it")
        elif (error := task.exception()) is not None and not isinstance(error, EXPECTED):
            self.found.append(f"{case}: {type(error).__name__}: {error}")

    async def round(self, url: str, folder: Path) -> None:
        async with httpx.AsyncClient(verify=False, timeout=60) as client:
            gate = asyncio.Semaphore(AT_ONCE)

            async def gated() -> None:
                async with gate:
                    await self.one(client, url, folder)

            await asyncio.gather(*(gated() for _ in range(ROUND)))

    async def run(self, server: Provider, folder: Path) -> None:
        warm, files = 0, 0
        rounds = 0
        while True:
            await self.round(server.url, folder)
            rounds += 1
            await asyncio.sleep(0)
            server.requests.clear()
            forget(folder)
            left = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
            if left:
                self.found.append(f"after round {rounds}: {len(left)} tasks are left: {left[:2]}")
            await asyncio.to_thread(server.wait_closed, 10.0)
            gc.collect()
            if rounds == 3:  # what is made once is made by now
                warm, files = resident(), descriptors()
            going_on = self.share.told(f"{self.number} streams, {self.done['calls']} calls")
            if not going_on and rounds > 3:
                break
        if (now := descriptors()) > files + 2:
            self.found.append(f"{now - files} files or sockets more than at the beginning")
        self.grown = resident() - warm
        if self.grown > GROWTH and rounds >= MANY:
            self.found.append(f"memory grew by {self.grown // 1024} KiB in {rounds - 3} rounds")


def soak(share: Share) -> Report:
    be_quiet()
    work = Soak(share)
    with tempfile.TemporaryDirectory() as folder, Provider(work.answer) as server:
        asyncio.run(work.run(server, Path(folder)))
    faults = json.dumps({fault: work.done[fault] for fault in dict.fromkeys(FAULTS)})[1:-1]
    return Report(
        f"{work.number:,} streams over loopback ({faults.replace(chr(34), '')}), "
        f"{work.done['calls']:,} calls told; memory grew by {max(0, work.grown) // 1024} KiB",
        work.found[:50],
    )


def forget(folder: Path) -> None:
    for take in folder.iterdir():
        take.unlink()


def resident() -> int:
    """Bytes of memory of this process."""
    with suppress(OSError):
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return 0


def descriptors() -> int:
    with suppress(OSError):
        return len(os.listdir("/proc/self/fd"))
    return 0
