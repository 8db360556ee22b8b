"""A file that takes long keeps nobody from the page: its reading is bounded, told and can be ended."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import aclosing, suppress
from typing import Any

import pytest

pytest.importorskip("starlette", reason="the page needs the extra ui")

import httpx

from streamnorm.page.app import create_app
from streamnorm.page.dissect import TooLong, cut, dissect, spans
from streamnorm.page.takes import LARGEST_UPLOAD, Takes
from streamnorm.page.work import AT_ONCE, FRAMES, WAITING, Budget, Busy, Workshop
from streamnorm.takes.format import parse_take
from tests.conftest import RECORDINGS, Chat

TINY = b"data:1\n\n"
LINES = {"accept": "application/x-ndjson"}


class Clock:
    """Goes on by so many seconds at each look."""

    def __init__(self, by: float) -> None:
        self.now, self.by = 0.0, by

    def __call__(self) -> float:
        self.now += self.by
        return self.now


def take_of(data: bytes) -> Any:
    return parse_take(data, name="this file")


@pytest.fixture
async def client() -> Any:
    transport = httpx.ASGITransport(create_app(Takes(RECORDINGS)))
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8000") as client:
        yield client


# --- bounds ---------------------------------------------------------------------------------------


async def test_four_mebibytes_of_tiny_frames_are_shown_in_part(client: httpx.AsyncClient) -> None:
    shown = (await client.post("/api/uploads", content=TINY * (LARGEST_UPLOAD // len(TINY)))).json()
    assert len(shown["frames"]) == FRAMES
    assert shown["size"] == FRAMES * len(TINY)  # what can be played and cut is what is shown
    assert shown["end"]["events"] == []  # nothing is said of an end that was not read
    assert shown["bound"] == {
        "reason": "frames", "size": LARGEST_UPLOAD, "sentence": "This is the beginning, 160,000 of "
        "4,194,304 bytes: only the first 20,000 frames of a file are shown.",
    }  # fmt: skip
    told = await client.get(f"/api/cut/{shown['name']}", params={"at": str(shown["size"] - 4)})
    assert told.json()["frames"] == FRAMES - 1


def test_a_take_that_fits_is_whole() -> None:
    take = take_of(TINY * 100)
    assert dissect(take, "openai_chat", Budget(800, frames=100))["bound"] is None
    shown = dissect(take, "openai_chat", Budget(800, frames=99))
    assert (len(shown["frames"]), shown["bound"]["reason"]) == (99, "frames")


@pytest.mark.parametrize("piece", [TINY, b"\n", b": \n", b"[1,", b'{"a":1}\n', b"x"])
def test_time_is_bounded_whatever_the_file_is_made_of(piece: bytes) -> None:
    take = take_of(piece * (100_000 // len(piece)))
    for provider in ("openai_chat", "gemini", "ollama"):
        budget = Budget(len(take.wire), frames=10**9, seconds=10, clock=Clock(0.1))
        shown = dissect(take, provider, budget)
        if shown["bound"] is not None:
            assert shown["bound"]["reason"] == "time"
            assert "more than 10 seconds" in shown["bound"]["sentence"]
        assert budget.done <= len(take.wire)
    if piece == b"x":
        return  # one line, which is one piece of work
    slow = Budget(len(take.wire), seconds=1, clock=Clock(2))
    assert dissect(take, "openai_chat", slow)["bound"]["reason"] == "time"


def test_whose_a_file_is_is_not_looked_for_on_and_on() -> None:
    take = take_of(b": nothing yet\n\n" * 4_000 + Chat.text("Hi") + Chat.end())
    assert dissect(take)["provider"] == "openai_chat"
    left = Budget(len(take.wire))
    left.cancelled = True
    assert dissect(take, None, left)["provider"] == "auto"


def test_a_cut_of_what_takes_too_long_says_so() -> None:
    take = take_of(TINY * 50_000)
    with pytest.raises(TooLong, match="more than 1 seconds"):
        cut(take, 300_000, "openai_chat", Budget(300_000, seconds=1, clock=Clock(0.5)))


def test_a_cut_hears_the_same_in_strides_of_any_size() -> None:
    take = Takes(RECORDINGS).get("openai_responses/parallel_calls")
    assert take is not None
    ends = [*spans(take.wire, "openai_responses")]
    for at in (0, ends[0], ends[-1] - 1, ends[-1]):
        told = cut(take, at)
        assert told["frames"] == len([end for end in ends if end <= at])


# --- the workshop ---------------------------------------------------------------------------------


@pytest.fixture
def workshop() -> Iterator[Workshop]:
    workshop = Workshop()
    yield workshop
    workshop.close()


async def test_progress_is_told_while_others_go_on(workshop: Workshop) -> None:
    may_end = threading.Event()

    def act(budget: Budget) -> str:
        budget.done = 7
        assert may_end.wait(20)
        return "done"

    async with aclosing(workshop.work(act, Budget(9))) as steps:
        told = [await anext(steps) for _ in range(3)]
        assert told[-1] == 7
        assert await workshop.result(lambda budget: "another", Budget(1)) == "another"
        may_end.set()
        last = [step async for step in steps][-1]
    assert isinstance(last, Future)
    assert last.result() == "done"


async def test_who_leaves_ends_the_work(workshop: Workshop) -> None:
    ended = threading.Event()

    def act(budget: Budget) -> None:
        while budget.step(0):
            pass
        ended.set()

    steps = workshop.work(act, Budget(9, seconds=60))
    assert await anext(steps) == 0
    await steps.aclose()
    assert await asyncio.to_thread(ended.wait, 20)


async def test_closing_the_workshop_ends_all_work() -> None:
    workshop, budget = Workshop(), Budget(9, seconds=60)

    def act(budget: Budget) -> str | None:
        while budget.step(0):
            pass
        return budget.spent

    steps = workshop.work(act, budget)
    await anext(steps)
    workshop.close()
    async for step in steps:
        if isinstance(step, Future):
            assert step.result() is None  # not of time: it was told to


async def test_so_many_wait_and_no_more(workshop: Workshop) -> None:
    may_end = threading.Event()
    running = [
        workshop.work(lambda budget: may_end.wait(20), Budget(1)) for _ in range(AT_ONCE + WAITING)
    ]
    for steps in running:
        await anext(steps)
    with pytest.raises(Busy, match="try again in a moment"):
        await workshop.result(lambda budget: None, Budget(1))
    may_end.set()
    for steps in running:
        assert [step async for step in steps]
    assert await workshop.result(lambda budget: "free", Budget(1)) == "free"


# --- lines ----------------------------------------------------------------------------------------


async def lines_of(client: httpx.AsyncClient, data: bytes) -> list[dict[str, Any]]:
    answer = await client.post("/api/uploads", content=data, headers=LINES)
    assert answer.headers["content-type"].startswith("application/x-ndjson")
    assert answer.headers["x-content-type-options"] == "nosniff"
    return [json.loads(line) for line in answer.text.splitlines()]


async def test_the_last_line_is_the_answer(client: httpx.AsyncClient) -> None:
    data = (RECORDINGS / "anthropic/parallel_calls.sse").read_bytes()
    *progress, last = await lines_of(client, data)
    assert last["answer"]["provider"] == "anthropic"
    assert all(line["of"] and line["done"] <= line["of"] for line in progress)
    plain = (await client.post("/api/uploads", content=data)).json()
    assert {**plain, "name": ""} == {**last["answer"], "name": ""}


async def test_lines_hold_no_markup(client: httpx.AsyncClient) -> None:
    data = b'data: {"choices":[{"delta":{"content":"<img src=x>&"}}]}\n\n'
    answer = await client.post("/api/uploads", content=data, headers=LINES)
    assert not {"<", ">", "&"} & set(answer.text)


async def test_what_goes_wrong_on_the_way_is_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    from streamnorm.page import app

    def too_long(*_: Any) -> Any:
        raise TooLong("It takes too long.")

    def broken(*_: Any) -> Any:
        raise ZeroDivisionError("a secret")

    for act, words in (
        (too_long, "It takes too long."),
        (broken, "the server made a mistake; its log says more"),
    ):
        monkeypatch.setattr(app, "dissect", act)
        transport = httpx.ASGITransport(create_app(Takes(RECORDINGS)), raise_app_exceptions=False)
        async with httpx.AsyncClient(
            transport=transport, base_url="http://127.0.0.1:8000"
        ) as client:
            last: dict[str, Any] = {}
            with suppress(httpx.HTTPError):
                last = (await lines_of(client, TINY))[-1]
        assert last == {"error": {"message": words}}
