"""A replay is the stream that was recorded, at any pace and in any chunks."""

from __future__ import annotations

import pytest

from streamnorm.captures import read_take
from streamnorm.edge.replay import replay
from streamnorm.errors import RecordingError, UsageError
from streamnorm.events import Event
from tests.conftest import RECORDINGS, Chat, over_takes, run

CALLS = RECORDINGS / "anthropic" / "parallel_calls.sse"


def heard(path: object, **options: object) -> list[Event]:
    return list(replay(path, **options))  # type: ignore[arg-type]


@over_takes(quick=100)
async def test_every_chunking_gives_the_same_events(path):
    take = read_take(path)
    events = run(take.provider or "auto", [take.wire], seed=take.seed)
    assert [event async for event in replay(path)] == events
    for chunking in (None, "recorded", "lines", "bytes", 7, 1000):
        assert heard(path, chunking=chunking) == events, chunking


def test_what_curl_saved_is_a_take(tmp_path):
    body = Chat.call(0, None, "now", "{}") + Chat.end()
    path = tmp_path / "answer.txt"
    path.write_bytes(body)
    first, again = heard(path), heard(path)
    assert first == again  # minted ids, too
    assert first[0].provider == "openai_chat"  # type: ignore[union-attr]
    assert [call.name for call in replay(path, provider="openai_chat").calls()] == ["now"]


def test_minted_ids_come_from_the_take_unless_told(tmp_path):
    path = tmp_path / "a.sse"
    path.write_bytes(Chat.call(0, None, "now", "{}") + Chat.end())
    mine = [call.id for call in replay(path, seed="mine").calls()]
    assert mine != [call.id for call in replay(path).calls()]
    assert replay(path, seed="mine").seed == "mine"


TIMED = b"".join(
    b": +%d.000\ndata: %b\n\n" % (at, Chat.text(str(at)).partition(b"data: ")[2].strip())
    for at in (0, 10, 11, 60)
) + b": +100.000\n" + Chat.end("stop")  # fmt: skip


@pytest.mark.parametrize(("pace", "times"), [(1.0, [0, 10, 11, 60]), (2.0, [0, 5, 5.5, 30])])
@pytest.mark.parametrize("chunking", [None, "bytes"])
def test_the_pace_is_the_one_of_the_take(tmp_path, pace, times, chunking):
    trio = pytest.importorskip("trio")
    testing = pytest.importorskip("trio.testing")
    path = tmp_path / "a.sse"
    path.write_bytes(TIMED)

    async def job() -> None:
        began = trio.current_time()
        at = []
        async for event in replay(path, pace=pace, chunking=chunking):
            if event.kind == "text_delta":
                at.append(trio.current_time() - began)
        assert at == pytest.approx(times)
        assert trio.current_time() - began == pytest.approx(100 / pace)

    trio.run(job, clock=testing.MockClock(autojump_threshold=0))


def test_a_slow_reader_is_not_made_to_wait_once_more(tmp_path):
    trio = pytest.importorskip("trio")
    testing = pytest.importorskip("trio.testing")
    path = tmp_path / "a.sse"
    path.write_bytes(TIMED)

    async def job() -> None:
        began = trio.current_time()
        async for event in replay(path, pace=1.0):
            if event.kind == "stream_start":
                await trio.sleep(90)
        assert trio.current_time() - began == pytest.approx(100)

    trio.run(job, clock=testing.MockClock(autojump_threshold=0))


def test_a_pace_in_a_for_loop(tmp_path):
    path = tmp_path / "a.sse"
    path.write_bytes(TIMED)
    assert heard(path, pace=1e6) == heard(path)


@pytest.mark.parametrize(
    "wrong", [{"pace": -1}, {"pace": float("nan")}, {"chunking": 0}, {"chunking": "words"}]
)
def test_what_cannot_be_replayed_so_is_told_at_once(wrong):
    with pytest.raises(UsageError):
        replay(CALLS, **wrong)


def test_a_take_that_is_not_there_is_told_at_once():
    with pytest.raises(RecordingError, match="cannot be read"):
        replay("nowhere.sse")


def test_a_take_that_was_read_already_is_replayed_as_well():
    take = read_take(CALLS)
    assert heard(take) == heard(CALLS)
