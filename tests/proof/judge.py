"""The judge: one damaged stream in, what the engine did wrong with it out.

Rule: a told call is right if the conversation said it, or if the plain reader finds it in the
damaged bytes (damage inside a text can leave another call that is whole). Anything else is a find:
a call that neither has, one told more often, under another's id or for another to run; two endings,
a start without an end, an exception, events that depend on the chunks.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, NamedTuple

from streamnorm import (
    BrokenToolCall,
    Event,
    Failed,
    Finish,
    Normalizer,
    ToolCall,
    ToolCallStart,
)
from streamnorm.framing.lines import Lines
from streamnorm.providers import PROGRAMS
from streamnorm.sessions import Demultiplexer
from tests.proof.readers import Reading, reader
from tests.proof.talk import Said

SEED = "proof"  # so that minted ids are the same in every run
EMPTY: tuple[dict[str, Any], ...] = ({}, {"input": ""}, {"code": ""})


class Find(NamedTuple):
    """What is wrong, in one word and in one sentence."""

    kind: str
    sentence: str


@dataclass
class Oracle:
    """All that may be told: by name and arguments, how often, under which ids, run by whom."""

    times: Counter[str]
    ids: dict[str, set[str]]
    runs_on: dict[str, set[str]]
    read: set[str]  # those that the reader has

    @classmethod
    def of(cls, said: list[Said], reading: Reading) -> Oracle:
        oracle = cls(Counter(), {}, {}, set())
        first, second = Counter[str](), Counter[str]()
        for call in said:
            first[oracle._add(call, {call.id or ""})] += 1
        for heard in (*reading.calls, *reading.also):
            second[oracle._add(heard, {*heard.ids, heard.id or ""})] += 1
        oracle.times, oracle.read = first | second, set(second)
        return oracle

    def may_be_called(self, key: str, id: str, body: bytes) -> bool:
        """Its id is one that it was given; at least, that the bytes state somewhere."""
        if id in self.ids[key]:
            return True
        stated = any(json.dumps(id, ensure_ascii=a)[1:-1].encode() in body for a in (True, False))
        return stated and key not in self.read

    def _add(self, call: Any, ids: set[str]) -> str:
        key = key_of(call)
        self.ids.setdefault(key, set()).update(ids - {""})
        self.runs_on.setdefault(key, set()).add(call.runs_on)
        return key


def key_of(call: Any) -> str:
    """Equal for equal names and arguments."""
    return json.dumps([call.name, call.arguments], sort_keys=True)


def streams(wire: str, chunks: list[bytes], **options: Any) -> list[list[Event]]:
    """What the engine tells: one stream, or one for each answer that a program printed."""
    if wire not in PROGRAMS:
        return [told(wire, chunks, **options)]
    turns, framer = Demultiplexer(wire, seed=SEED, **options), Lines()
    lines = [line for chunk in chunks for line in framer.feed(chunk)] + framer.rest()
    answers: dict[int, list[Event]] = {}
    for one in [*(t for line in lines for t in turns.feed(line)), *turns.close()]:
        if one.stream is not None:
            answers.setdefault(one.stream, []).extend(one.events)
    return [answers[number] for number in sorted(answers)]


def told(wire: str, chunks: list[bytes], **options: Any) -> list[Event]:
    """What the engine tells of the first answer, which is all there is but on wires of programs."""
    pipe = Normalizer(wire, seed=SEED, **options)
    events: list[Event] = []
    for chunk in chunks:
        events += pipe.feed(chunk)
    return events + pipe.close()


def chunked(dice: random.Random, body: bytes) -> list[bytes]:
    top = dice.choice((1, 3, 17, 100, 700))
    chunks, at = [], 0
    while at < len(body):
        size = dice.randint(1, top)
        chunks.append(body[at : at + size])
        at += size
    return chunks


@dataclass
class Verdict:
    """What is wrong, and how many calls were told, told as read, and not told."""

    finds: list[Find]
    told: int = 0
    only_read: int = 0  # not what was said, but what the damaged bytes say
    missed: int = 0  # said, still whole in the damaged bytes, and yet not told


def judge(
    wire: str, body: bytes, said: list[Said], dice: random.Random | None = None, **options: Any
) -> list[Find]:
    """What the engine does wrong with these bytes."""
    return examine(wire, body, said, dice, **options).finds


def examine(
    wire: str, body: bytes, said: list[Said], dice: random.Random | None = None, **options: Any
) -> Verdict:
    """All that is to be known about the engine and these bytes."""
    try:
        answers, alone = heard(wire, [body], **options)
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001 - the pipe promises to raise nothing at all
        return Verdict([Find("raised", f"{type(error).__name__}: {str(error)[:200]}")])
    reading, events = reader(wire)(body), [event for answer in answers for event in answer]
    finds = [find for answer in (*answers, alone) for find in misshapen(answer)]
    finds += [f for one in (events, alone) for f in invented(one, body, said, reading)]
    if dice is not None:
        again, once = heard(wire, chunked(dice, body), **options)
        for one, other in [*zip_longest(again, answers, fillvalue=[]), (once, alone)]:
            if one != other:
                finds.append(Find("chunking", f"in chunks: {unlike(one, other)}"))
    keys = Counter(key_of(e) for e in events if isinstance(e, ToolCall))
    was_said, was_read = Counter(map(key_of, said)), Counter(map(key_of, reading.calls))
    return Verdict(
        finds, keys.total(), (keys - was_said).total(), ((was_said & was_read) - keys).total()
    )


def heard(wire: str, chunks: list[bytes], **options: Any) -> tuple[list[list[Event]], list[Event]]:
    """All answers, and what one pipe alone tells of such a body."""
    answers = streams(wire, chunks, **options)
    return answers, told(wire, chunks, **options) if wire in PROGRAMS else answers[0]


def unlike(some: list[Event], others: list[Event]) -> str:
    """The first event that differs."""
    pairs = zip_longest(some, others)
    one, other = next(pair for pair in pairs if pair[0] != pair[1])
    return f"{str(one)[:200]}; at once: {str(other)[:200]}"


def misshapen(events: list[Event]) -> list[Find]:
    """One ending, and last; every start ends once; every call was started."""
    ends = [n for n, e in enumerate(events) if isinstance(e, Finish | Failed)]
    started = Counter(e.call for e in events if isinstance(e, ToolCallStart))
    ended = Counter(e.call for e in events if isinstance(e, ToolCall | BrokenToolCall))
    finds = []
    if ends != [len(events) - 1]:
        finds.append(Find("ending", f"endings at {ends} of {len(events)} events"))
    if any(n > 1 for n in (started | ended).values()) or set(started) - set(ended):
        finds.append(Find("shape", f"started {dict(started)}, ended {dict(ended)}"))
    calls = [e for e in events if isinstance(e, ToolCall)]
    if any(call.call not in started for call in calls):
        finds.append(Find("shape", "a call was told that never started"))
    ids = Counter((call.choice, call.id) for call in calls)
    if any(n > 1 for n in ids.values()) or any(not c.id or not c.name for c in calls):
        finds.append(Find("shape", f"ids are used twice or empty: {dict(ids)}"))
    return finds


def invented(events: list[Event], body: bytes, said: list[Said], reading: Reading) -> list[Find]:
    """Calls that neither the conversation nor the reader has."""
    calls = [e for e in events if isinstance(e, ToolCall)]
    if not calls:
        return []
    oracle = Oracle.of(said, reading)
    finds: list[Find] = []
    for key, times in Counter(map(key_of, calls)).items():
        call = next(c for c in calls if key_of(c) == key)
        if key not in oracle.times:
            kind = "emptied" if call.arguments in EMPTY else "invented"
            finds.append(Find(kind, f"told {shown(call)}; {both(said, reading)}"))
        elif times > oracle.times[key]:
            finds.append(Find("twice", f"told {shown(call)} {times} times; {both(said, reading)}"))
    for call in calls:
        key = key_of(call)
        if key not in oracle.times:
            continue
        source = call.provenance.id_source
        if source != "synthetic" and not oracle.may_be_called(key, call.id, body):
            finds.append(Find("id", f"{shown(call)} has an id of another: {both(said, reading)}"))
        if call.runs_on not in oracle.runs_on[key]:
            finds.append(Find("runs_on", f"{shown(call)} runs on {call.runs_on}"))
    return finds


def shown(call: Any) -> str:
    return f"{call.name}({json.dumps(call.arguments)[:120]}) id={call.id!r}"


def both(said: list[Said], reading: Reading) -> str:
    first = ", ".join(map(shown, said)) or "nothing"
    second = ", ".join(map(shown, reading.calls)) or "nothing"
    return f"the conversation says {first}; the reader finds {second}"
