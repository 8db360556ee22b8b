"""What the tests share: takes as parameters, streams run in several chunkings, builders of wires.

``make test`` tries a sample where there is very much to try, ``make test-all`` all of it: the laws
are the same. STREAMNORM_TESTS=all says which of the two it is.
"""

from __future__ import annotations

import functools
import gc
import json
import logging
import os
import random
import re
import signal
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, settings

from streamnorm import Normalizer
from streamnorm.captures import read_take
from streamnorm.events import BrokenToolCall, Event, Failed, Finish, ToolCall, ToolCallStart
from streamnorm.framing.sse import SSE
from streamnorm.providers import PROVIDERS
from streamnorm.takes.format import Take

ROOT = Path(__file__).resolve().parent.parent
RECORDINGS = ROOT / "recordings"
T = TypeVar("T")
ALL = os.environ.get("STREAMNORM_TESTS") == "all"
CUTS = 120 if ALL else 30  # of each take, where cuts are tried
# Seconds for a test, for what it is given and for what it leaves, on a busy machine as well; one that goes
# on nevertheless, as what was interrupted may swallow that, is failed again and again.
LIMIT = float(os.environ.get("STREAMNORM_LIMIT") or (120 if ALL else 60))
AGAIN = LIMIT / 10
SEED = "tests"  # what minted ids are made from, so that two runs can be compared

# The servers of the tests are on this machine and speak plain HTTP. A client that reads the certificates
# of the whole world takes 25 ms to make, and thousands are made: here it finds none to read.
os.environ.pop("SSL_CERT_FILE", None)
os.environ["SSL_CERT_DIR"] = str(ROOT / "tests")

# A shell lets what it runs in the background ignore Ctrl-C, and so would every program that a test starts
# and interrupts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Deterministic (the same examples on every machine); HYPOTHESIS_PROFILE=thorough looks further, and
# elsewhere every time.
_CALM = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example]
settings.register_profile(
    "quick", max_examples=60 if ALL else 12, derandomize=True, database=None, deadline=None, print_blob=True,
    suppress_health_check=_CALM,
)  # fmt: skip
settings.register_profile(
    "thorough", max_examples=3000, deadline=None, print_blob=True, suppress_health_check=_CALM
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))

# pytest listens to every logger; writing lines for half a million cut streams costs minutes. The
# tests of the log ask for it.
logging.getLogger("streamnorm").setLevel(logging.CRITICAL + 1)


# --- how much, and how long -----------------------------------------------------------------------


def some(things: Iterable[T], count: int) -> list[T]:
    """All of them in ``make test-all``; otherwise so many, the same every time, the ends among them."""
    every = list(things)
    if ALL or len(every) <= count:
        return every
    inner = random.Random(len(every)).sample(range(1, len(every) - 1), count - 2)
    return [every[at] for at in [0, *sorted(inner), len(every) - 1]]


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """What is collected stays to the end: nothing looks for garbage in it, neither now, when that takes
    longer than the collecting, nor in a test that asks for a garbage collection."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


def pytest_unconfigure() -> None:
    """… and at the very end it may go: extension modules complain of what is left of them then."""
    gc.unfreeze()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    if config.getoption("dist") != "loadgroup":
        return None
    from tests.sharing import FileByFile

    return FileByFile(config, log)


@contextmanager
def time_limit() -> Iterator[None]:
    """What is done within takes no longer than ``LIMIT``: then it fails, wherever it is."""

    def too_long(number: int, frame: Any) -> None:
        pytest.fail(f"not done after {LIMIT:g} s")

    if not hasattr(signal, "SIGALRM"):
        yield
        return
    before = signal.signal(signal.SIGALRM, too_long)
    signal.setitimer(signal.ITIMER_REAL, LIMIT, AGAIN)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Iterator[None]:
    with time_limit():
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    with time_limit():
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Iterator[None]:
    with time_limit():
        return (yield)


def once(make: Callable[..., T]) -> Callable[..., T]:
    """What takes long and is looked at by many tests: made once for each of its arguments. Where that
    failed, or took too long, it is not tried again for every test."""
    made: dict[Any, T] = {}
    tried: set[Any] = set()

    @functools.wraps(make)
    def asked(*args: Any) -> T:
        if args not in made:
            if args in tried:
                pytest.fail(f"{make.__name__}{args} failed for the first test that asked")
            tried.add(args)
            made[args] = make(*args)
        return made[args]

    return asked


# The providers that call tools: most tests are about those.
CALLING = tuple(name for name, row in PROVIDERS.items() if row.tools)


# --- takes ----------------------------------------------------------------------------------------


def take_paths() -> list[Path]:
    """The takes of every provider that is registered."""
    return sorted(p for p in RECORDINGS.glob("*/*.sse") if p.parent.name in PROVIDERS)


def take_id(path: Path) -> str:
    return f"{path.parent.name}/{path.stem}"


def over_takes(name: str = "path", *, quick: int = 1000) -> pytest.MarkDecorator:
    """Parametrise a test over all takes of registered providers; over so many in the quick run."""
    return pytest.mark.parametrize(name, some(take_paths(), quick), ids=take_id)


def entries_of(provider: str, body: dict[str, Any]) -> Any:
    """What the container of a request holds."""
    held: Any = body
    for step in PROVIDERS[provider].container.split("."):
        held = held[step]
    return held


def load(path: Path) -> tuple[Take, bytes]:
    take = read_take(path)
    return take, take.wire


# --- running --------------------------------------------------------------------------------------


def run(provider: str, chunks: list[bytes], **options: Any) -> list[Event]:
    """The events of these chunks; minted ids are the same in every run."""
    return piped(provider, chunks, **options)[0]


def piped(provider: str, chunks: list[bytes], **options: Any) -> tuple[list[Event], Normalizer]:
    """As ``run``, and the pipe itself for its notes."""
    pipe = Normalizer(provider, **{"seed": SEED, **options})
    events: list[Event] = []
    for chunk in chunks:
        events += pipe.feed(chunk)
    events += pipe.close()
    return events, pipe


def bytewise(body: bytes) -> list[bytes]:
    return [body[i : i + 1] for i in range(len(body))]


def at_random(body: bytes, top: int, seed: int) -> list[bytes]:
    """Chunks of up to ``top`` bytes; now and then an empty one, as sockets give."""
    dice = random.Random(f"{seed}/{len(body)}")
    chunks, at = [], 0
    while at < len(body):
        size = dice.randint(0 if dice.random() < 0.1 else 1, top)
        chunks.append(body[at : at + size])
        at += size
    return chunks


def rechunked(body: bytes, sizes: tuple[int, ...]) -> list[bytes]:
    """The same bytes in chunks of these sizes, again and again."""
    chunks, at = [], 0
    while at < len(body):
        size = sizes[len(chunks) % len(sizes)]
        chunks.append(body[at : at + size])
        at += size
    return chunks


def chunkings(body: bytes) -> Iterator[list[bytes]]:
    yield bytewise(body)
    yield at_random(body, 7, 1)
    yield at_random(body, 97, 2)
    yield at_random(body, 1500, 3)


def tr(provider: str, body: bytes, **options: Any) -> list[Event]:
    """The events of a body: whole, byte by byte and cut at random, which must all be the same."""
    return traced(provider, body, **options)[0]


def traced(provider: str, body: bytes, **options: Any) -> tuple[list[Event], Normalizer]:
    events, pipe = piped(provider, [body], **options)
    for chunks in chunkings(body):
        again, other = piped(provider, chunks, **options)
        assert again == events, f"cut into {[len(c) for c in chunks[:20]]} …"
        assert noted(other) == noted(pipe)
    return events, pipe


def noted(pipe: Normalizer) -> dict[str, int]:
    """The notes of a pipe. What follows the end is counted by chunk: nobody need read on."""
    return {name: n for name, n in pipe.notes.items() if name != "stream.after_end"}


def cuts_of(body: bytes, name: str, *, every: int = 0) -> list[int]:
    """Where to cut a stream: most of them around the borders of its events, the others anywhere. The same
    for the same name. In ``make test-all`` a body of less than ``every`` bytes is cut at each of them, and
    a longer one around each border."""
    if ALL and len(body) < every:
        return list(range(len(body)))
    dice, near = random.Random(name), set[int]()
    for border in re.finditer(rb"\n\n|\r\n\r\n|\r\r|\}[\n,\r]", body):
        near.update(range(max(0, border.start() - 2), min(len(body), border.end() + 3)))
    most = len(near) if ALL and every else CUTS * 2 // 3
    cuts = {0, len(body) - 1, *dice.sample(sorted(near), min(len(near), most))}
    cuts.update(dice.sample(range(len(body)), min(len(body), CUTS - CUTS * 2 // 3)))
    return sorted(cuts)


def frames_of(body: bytes) -> list[bytes]:
    """An SSE body event by event, each with its blank line."""
    framer = SSE()
    blocks = framer.feed(body)
    return [b + b"\n\n" for b in [*blocks, *framer.rest()] if b]


# --- looking --------------------------------------------------------------------------------------


def calls_of(events: list[Event]) -> list[ToolCall]:
    return [e for e in events if isinstance(e, ToolCall)]


def broken_of(events: list[Event]) -> list[BrokenToolCall]:
    return [e for e in events if isinstance(e, BrokenToolCall)]


def text_of(events: list[Event]) -> str:
    return "".join(e.text for e in events if e.kind == "text_delta")


def said(events: list[Event]) -> list[tuple[str, str, Any]]:
    """The calls in short: id, name, arguments."""
    return [(c.id, c.name, c.arguments) for c in calls_of(events)]


def assert_well_formed(events: list[Event]) -> None:
    """What holds for any stream, whatever the bytes were."""
    ends = [i for i, e in enumerate(events) if isinstance(e, Finish | Failed)]
    assert ends == [len(events) - 1], f"terminal events at {ends} of {len(events)}"
    starts = [i for i, e in enumerate(events) if e.kind == "stream_start"]
    assert starts == ([0] if len(events) > 1 else []), f"stream starts at {starts}"
    started = [e.call for e in events if isinstance(e, ToolCallStart)]
    ended = [e.call for e in events if isinstance(e, ToolCall | BrokenToolCall)]
    assert len(set(started)) == len(started), f"a call started twice: {started}"
    assert len(set(ended)) == len(ended), f"a call ended twice: {ended}"
    assert set(started) <= set(ended), f"started {started}, ended {ended}"
    ids = [(c.choice, c.id) for c in calls_of(events)]
    assert len(set(ids)) == len(ids), f"an id was used twice: {ids}"
    for call in calls_of(events):
        assert call.id
        assert call.name
        assert type(call.arguments) is dict
        assert call.call in started


# --- the wires of two providers, said by hand -----------------------------------------------------


def sse(payload: Any, event: str | None = None) -> bytes:
    data = payload if isinstance(payload, str) else json.dumps(payload)
    return (f"event: {event}\n" if event else "").encode() + f"data: {data}\n\n".encode()


class Chat:
    """Chat Completions, chunk by chunk."""

    DONE = b"data: [DONE]\n\n"

    @staticmethod
    def delta(delta: dict[str, Any], finish: str | None = None, choice: int = 0) -> bytes:
        return sse(
            {"id": "chatcmpl-1", "object": "chat.completion.chunk", "model": "m",
             "choices": [{"index": choice, "delta": delta, "finish_reason": finish}]}
        )  # fmt: skip

    @classmethod
    def text(cls, text: str) -> bytes:
        return cls.delta({"content": text})

    @classmethod
    def call(
        cls, index: int, id: str | None, name: str | None, args: str = "", **more: Any
    ) -> bytes:
        entry: dict[str, Any] = {"index": index, "function": {"arguments": args}}
        if id is not None:
            entry |= {"id": id, "type": "function"}
        if name is not None:
            entry["function"]["name"] = name
        return cls.delta({"tool_calls": [entry]}, **more)

    @classmethod
    def end(cls, reason: str = "tool_calls", **more: Any) -> bytes:
        return cls.delta({}, reason, **more) + cls.DONE


class Messages:
    """Anthropic Messages, event by event."""

    START = sse(
        {"type": "message_start", "message": {"id": "msg_1", "type": "message", "model": "m",
         "content": [], "usage": {"input_tokens": 1, "output_tokens": 1}}}, "message_start"
    )  # fmt: skip

    @staticmethod
    def open(index: int, id: str | None, name: str | None, kind: str = "tool_use") -> bytes:
        block: dict[str, Any] = {"type": kind, "input": {}}
        if id is not None:
            block["id"] = id
        if name is not None:
            block["name"] = name
        payload = {"type": "content_block_start", "index": index, "content_block": block}
        return sse(payload, "content_block_start")

    @staticmethod
    def args(index: int, text: str) -> bytes:
        delta = {"type": "input_json_delta", "partial_json": text}
        return sse(
            {"type": "content_block_delta", "index": index, "delta": delta}, "content_block_delta"
        )

    @staticmethod
    def text(text: str, index: int = 0) -> bytes:
        delta = {"type": "text_delta", "text": text}
        return sse(
            {"type": "content_block_delta", "index": index, "delta": delta}, "content_block_delta"
        )

    @staticmethod
    def close(index: int) -> bytes:
        return sse({"type": "content_block_stop", "index": index}, "content_block_stop")

    @staticmethod
    def end(reason: str = "tool_use") -> bytes:
        delta = {"stop_reason": reason, "stop_sequence": None}
        return sse(
            {"type": "message_delta", "delta": delta, "usage": {"output_tokens": 9}},
            "message_delta",
        ) + sse({"type": "message_stop"}, "message_stop")


# --- what was left out ----------------------------------------------------------------------------

# A word of a skip's reason -> the part that it wants; the rest wants somebody's Python client.
PARTS = {
    "STREAMNORM_CORPUS": "a corpus of recorded streams",
    "STREAMNORM_SEEDS": "the source documents",
    "STREAMNORM_NPM": "JavaScript clients",
    "STREAMNORM_AGENTS": "agent programs",
    "STREAMNORM_WEB": "JavaScript clients",
    "STREAMNORM_POSTGRES": "PostgreSQL",
    "STREAMNORM_REDIS": "Redis",
    "redis-server": "Redis",
    "hromium": "Chromium",
    "node": "JavaScript clients",
}


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """One line on what was left out and how to add it."""
    wanted: Counter[str] = Counter()
    for report in terminalreporter.stats.get("skipped", ()):
        reason = str(report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr)
        part = next(
            (part for word, part in PARTS.items() if word in reason), "Python clients of others"
        )
        wanted[part] += 1
    if wanted:
        told = ", ".join(f"{part} ({count} tests)" for part, count in sorted(wanted.items()))
        terminalreporter.write_line(
            f"left out, for want of: {told}. `make everything` adds the Python clients, .ci/run shows "
            "the rest, `pytest -rs` tells each reason."
        )
