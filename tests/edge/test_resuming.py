"""``connect(after=…, resumes=…)``: an answer that is cut is asked for again, from where it was cut."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from streamnorm import Normalizer, connect, read_take, replay
from streamnorm.errors import ProviderError, UsageError
from streamnorm.events import Event, Failed, Finish, TextDelta, ToolCall
from streamnorm.takes.pipe import pipe_for
from tests.conftest import RECORDINGS, frames_of, load, run
from tests.edge.servers import Answer, Provider, Request

PATH = "/v1/responses"
TAKE = RECORDINGS / "openai_responses" / "parallel_calls.sse"
SEED, BODY = load(TAKE)[0].seed, load(TAKE)[1]
FRAMES = frames_of(BODY)
WHOLE = run("openai_responses", [BODY], seed=SEED)
BODY_ASKED = {"model": "m", "stream": True, "background": True}
NUMBERS = [json.loads(f.partition(b"data: ")[2])["sequence_number"] for f in FRAMES]


def leg(cut: int, then: str = "cut", begin: int = 0) -> Answer:
    return Answer(FRAMES[begin:cut], then=then)


class Keeping:
    """A provider that keeps the answer: it is cut at these events, and told from any on."""

    def __init__(self, *cuts: int, overlap: int = 0, then: str = "cut") -> None:
        self.cuts, self.overlap, self.then = list(cuts), overlap, then
        self.asked: list[tuple[str, str, dict[str, str]]] = []

    def __call__(self, request: Request) -> Answer:
        where = urlsplit(request.path)
        query = {key: values[0] for key, values in parse_qs(where.query).items()}
        self.asked.append((request.method, where.path, query))
        begin = int(query["starting_after"]) + 1 - self.overlap if "starting_after" in query else 0
        cut = self.cuts.pop(0) if self.cuts else len(FRAMES)
        half = [FRAMES[cut][:40]] if cut < len(FRAMES) and self.then == "cut" else []
        return Answer(
            [*FRAMES[max(0, begin) : cut], *half], then="end" if cut == len(FRAMES) else self.then
        )


@pytest.mark.parametrize("overlap", [0, 2, 100])
@pytest.mark.parametrize("then", ["cut", "end", "reset"])
async def test_a_stream_goes_on_over_as_many_connections_as_it_takes(overlap: int, then: str):
    keeping = Keeping(5, 11, 16, overlap=overlap, then=then)
    with Provider(keeping) as server:
        stream = connect(
            server.url + PATH + "?v=1", json=BODY_ASKED, resumes=3, seed=SEED, retries=0
        )
        assert [event async for event in stream] == WHOLE
    id = WHOLE[0].response_id
    assert keeping.asked[0] == ("POST", PATH, {"v": "1"})
    for asked in keeping.asked[1:]:
        number = asked[2]["starting_after"]
        query = {"stream": "true", "starting_after": number, "v": "1"}
        assert asked == ("GET", f"{PATH}/{id}", query)
    assert len(keeping.asked) == 4
    assert [r.body for r in server.requests[1:]] == [b""] * 3
    assert stream.notes["stream.resumed"] == 3


@pytest.mark.parametrize("then", ["cut", "end", "reset"])
async def test_a_stream_goes_on_behind_connections_that_say_nothing(tmp_path: Path, then: str):
    silent, path = Answer([], then=then), tmp_path / "legs.sse"
    answers = [leg(5), silent, silent, leg(len(FRAMES), "end", 3)]
    live, notes = await recorded(path, answers, resumes=3)
    assert live == WHOLE == list(replay(path))
    assert notes == {"stream.resumed": 3, "stream.overlap": 2}


async def test_a_stream_whose_connections_say_nothing_any_more_is_lost_as_the_first_of_them_was():
    with Provider([leg(5), Answer([], then="reset")]) as server:
        stream = connect(server.url + PATH, json=BODY_ASKED, resumes=3, retries=0)
        events = [event async for event in stream]
    assert (events[-1].kind, events[-1].reason) == ("failed", "transport")
    assert len(server.requests) == 4


async def test_a_leg_that_is_lost_in_its_overlap_is_asked_for_from_the_same_place():
    legs = [leg(9), leg(7, "cut", 4), leg(8, "reset"), leg(len(FRAMES), "end", 9)]
    with Provider(legs) as server:
        stream = connect(server.url + PATH, json=BODY_ASKED, resumes=3, seed=SEED, retries=0)
        assert [event async for event in stream] == WHOLE
    asked = [parse_qs(urlsplit(request.path).query) for request in server.requests[1:]]
    assert [query["starting_after"] for query in asked] == [[str(NUMBERS[8])]] * 3


async def test_a_stream_that_is_cut_inside_its_second_event_goes_on():
    keeping = Keeping(1)
    with Provider(keeping) as server:
        stream = connect(server.url + PATH, json=BODY_ASKED, resumes=5, seed=SEED, retries=0)
        assert [event async for event in stream] == WHOLE
    assert [asked[2].get("starting_after") for asked in keeping.asked] == [None, str(NUMBERS[0])]


async def test_what_follows_a_cursor_can_be_asked_for_by_another_program():
    with Provider(Keeping(9, overlap=3)) as server:
        first = [e async for e in connect(server.url + PATH, json=BODY_ASKED, seed=SEED)]
        assert isinstance(first[-1], Failed)
    cursor = cursor_of(FRAMES[:9])
    keeping = Keeping(overlap=3)
    with Provider(keeping) as server:
        stream = connect(server.url + PATH, json=BODY_ASKED, after=cursor, seed=SEED)
        second = [event async for event in stream]
    assert keeping.asked[0][0] == "GET"
    assert isinstance(second[-1], Finish)
    assert said(first) + said(second) == said(WHOLE)
    assert sorted(calls(first) + calls(second)) == sorted(calls(WHOLE))
    assert stream.notes["stream.overlap"] == 3


def cursor_of(frames: list[bytes]) -> str:
    pipe = Normalizer("openai_responses")
    pipe.feed(b"".join(frames))
    assert pipe.cursor is not None
    return pipe.cursor


def said(events: list[Event]) -> str:
    return "".join(event.text for event in events if isinstance(event, TextDelta))


def calls(events: list[Event]) -> list[tuple[str, str]]:
    return [(e.id, json.dumps(e.arguments)) for e in events if isinstance(e, ToolCall)]


async def test_the_cursor_of_a_stream_that_was_cut_is_where_it_was_cut():
    for cut in (3, 9, 12):
        with Provider(leg(cut)) as server:
            stream = connect(server.url + PATH, json=BODY_ASKED)
            assert isinstance([event async for event in stream][-1], Failed)
        assert stream.cursor == cursor_of(FRAMES[:cut])
        assert stream.cursor.split(":")[2] == str(NUMBERS[cut - 1])


async def test_without_being_asked_a_stream_that_is_cut_fails():
    keeping = Keeping(5)
    with Provider(keeping) as server:
        events = [e async for e in connect(server.url + PATH, json=BODY_ASKED)]
    assert isinstance(events[-1], Failed)
    assert len(keeping.asked) == 1


async def test_it_resumes_no_more_often_than_asked():
    keeping = Keeping(5, 8, 11)
    with Provider(keeping) as server:
        events = [
            e async for e in connect(server.url + PATH, json=BODY_ASKED, resumes=2, retries=0)
        ]
    assert isinstance(events[-1], Failed)
    assert (events[-1].reason, len(keeping.asked)) == ("transport", 3)


async def test_an_answer_that_is_not_kept_is_told_as_the_lost_connection_that_it_is():
    refused = Answer(
        [b'{"error":{"message":"Not kept."}}'],
        status=400,
        headers={"content-type": "application/json"},
    )
    with Provider([leg(5), refused]) as server:
        events = [e async for e in connect(server.url + PATH, json=BODY_ASKED, resumes=1)]
    assert (events[-1].kind, events[-1].reason) == ("failed", "transport")
    assert [request.method for request in server.requests] == ["POST", "GET"]


async def test_a_cursor_whose_answer_is_gone_is_refused_in_the_providers_words():
    gone = Answer(
        [b'{"error":{"message":"Gone."}}'], status=404, headers={"content-type": "application/json"}
    )
    with Provider(gone) as server, pytest.raises(ProviderError, match=r"Gone\."):
        [e async for e in connect(server.url + PATH, after="openai_responses:r:1:0")]


async def test_a_wire_without_places_is_not_asked_again():
    anthropic = RECORDINGS / "anthropic" / "parallel_calls.sse"
    body = load(anthropic)[1]
    with Provider(Answer([body[:600]], then="cut")) as server:
        stream = connect(server.url + "/v1/messages", json={}, resumes=5)
        assert isinstance([event async for event in stream][-1], Failed)
    assert len(server.requests) == 1


async def test_an_interaction_is_resumed_by_the_id_of_its_last_event():
    take, body = load(RECORDINGS / "gemini_interactions" / "event_ids.sse")
    frames = frames_of(body)

    def answer(request: Request) -> Answer:
        if request.method == "POST":
            return Answer(frames[:7], then="cut")
        return Answer(frames[7:])

    with Provider(answer) as server:
        url = server.url + "/v1beta/interactions"
        stream = connect(url, json={}, resumes=1, seed=take.seed)
        events = [event async for event in stream]
    assert events == run("gemini_interactions", [body], seed=take.seed)
    last = json.loads(frames[6].partition(b"data: ")[2])["event_id"]
    asked = urlsplit(server.requests[1].path)
    assert asked.path == f"/v1beta/interactions/{events[0].response_id}"
    assert parse_qs(asked.query) == {"stream": ["true"], "last_event_id": [last]}


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"after": "x"}, "is no cursor"),
        (
            {"after": "anthropic:m:1:0", "provider": "anthropic"},
            "'anthropic' cannot be resumed; those that can",
        ),
        (
            {"after": "anthropic:r:5:0"},
            "this is a cursor of 'anthropic', not of 'openai_responses'",
        ),
        (
            {"after": "openai_responses:r:5:0", "provider": "gemini_interactions"},
            "this is a cursor of 'openai_responses', not of 'gemini_interactions'",
        ),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_sent(options: dict[str, Any], complaint: str):
    with pytest.raises(UsageError, match=complaint):
        connect("http://127.0.0.1:9" + PATH, **options)


async def test_a_second_leg_can_be_recorded(tmp_path: Path):
    keeping = Keeping()
    with Provider(keeping) as server:
        path = tmp_path / "rest.sse"
        stream = connect(server.url + PATH, after=cursor_of(FRAMES[:9]), record=path)
        assert isinstance([event async for event in stream][-1], Finish)
    assert load(path)[1] == b"".join(FRAMES[9:])


# --- a take of all connections --------------------------------------------------------------------


async def recorded(path: Path, answers: Any, **options: Any) -> tuple[list[Event], Any]:
    """What is heard live, and the notes."""
    with Provider(answers) as server:
        stream = connect(
            server.url + PATH, json=BODY_ASKED, record=path, seed=SEED, retries=0, **options
        )
        return [event async for event in stream], stream.notes


@pytest.mark.parametrize("chunking", [None, "lines", "bytes", 7])
@pytest.mark.parametrize("overlap", [0, 2, 100])
@pytest.mark.parametrize("then", ["cut", "end", "reset"])
async def test_a_take_of_several_connections_replays_to_what_was_heard(
    tmp_path: Path, then: str, overlap: int, chunking: Any
):
    path = tmp_path / "legs.sse"
    live, notes = await recorded(path, Keeping(5, 11, 16, overlap=overlap, then=then), resumes=3)
    assert live == WHOLE
    take = read_take(path)
    assert (len(take.legs), take.finished) == (3, True)
    again = replay(path, chunking=chunking)
    assert [event async for event in again] == live
    assert again.notes == notes
    assert list(replay(path, chunking=chunking)) == live  # without an event loop


async def test_a_take_of_several_connections_is_heard_in_any_chunks_by_any_reader(tmp_path: Path):
    path = tmp_path / "legs.sse"
    live, notes = await recorded(path, Keeping(5, 11, overlap=2), resumes=3)
    take = read_take(path)
    for size in (1, 40, 1000, len(take.wire)):
        pipe = pipe_for(take)
        chunks = [take.wire[at : at + size] for at in range(0, len(take.wire), size)]
        assert [e for chunk in chunks for e in pipe.feed(chunk)] + pipe.close() == live
        assert pipe.notes == notes
    pipe = pipe_for(take, "anthropic")  # of another wire, which cannot be resumed
    assert [e.kind for e in pipe.feed(take.wire) + pipe.close()][-1] == "failed"


async def test_a_cut_that_was_not_resumed_is_in_the_take_as_well(tmp_path: Path):
    refused = Answer([b"{}"], status=400, headers={"content-type": "application/json"})
    half = Answer([*FRAMES[:5], FRAMES[5][:40]], then="cut")
    path = tmp_path / "legs.sse"
    live, notes = await recorded(path, [half, refused], resumes=1)
    take = read_take(path)
    assert (take.legs, take.finished) == ((len(take.wire),), False)
    again = replay(path)
    told = [event async for event in again]
    assert told[:-1] == live[:-1]
    assert again.notes == notes == {"stream.cut_event": 1, "stream.resumed": 1}
    assert [live[-1].reason, told[-1].reason] == ["transport", "truncated"]


async def test_what_the_next_response_lets_know_is_kept_secret(tmp_path: Path):
    cookie = {"set-cookie": "session=c7f0d0b1e2a3"}

    def answer(request: Request) -> Answer:
        said = b": c7f0d0b1e2a3\n\n"
        if request.method == "POST":
            return Answer([said, *FRAMES[:5]], then="cut")
        return Answer([said, *FRAMES[5:]], headers=cookie)

    path = tmp_path / "legs.sse"
    live, _ = await recorded(path, answer, resumes=1)
    assert live == WHOLE == list(replay(path))
    before, after = path.read_bytes().split(b': streamnorm {"leg":2}')
    assert b"c7f0d0b1e2a3" in before  # nobody knew
    assert b"c7f0d0b1e2a3" not in after
