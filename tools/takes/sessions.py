"""Takes of Responses over a WebSocket: single answers as bare JSON, and whole sessions.

A session is a file of its own kind, ``recordings/<provider>/sessions/<name>.jsonl``: one message per
line, as they came over one connection.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import chain, zip_longest
from typing import Any

from tools.takes.common import Json, Take, dumps
from tools.takes.responses import MODEL, TIDES, WEATHER, Response

STEER = {"id": "steer_1", "previous_response_id": "resp_1"}
REFUSED = {
    "type": "error", "status": 400,
    "error": {
        "type": "invalid_request_error", "code": "previous_response_not_found",
        "message": "Previous response with id 'resp_1' not found.", "param": "previous_response_id",
    },
}  # fmt: skip


class SessionTake(Take):
    """Messages of one connection, one per line."""

    suffix = ".jsonl"

    def encode(self) -> bytes:
        return "".join(f"{message}\n" for message in self.wire).encode()


class Spoken(Response):
    """A response whose events are messages in a lane."""

    def __init__(self, name: str, lane: str | None = None, created: bool = True) -> None:
        self.lane = lane
        super().__init__(name, created)

    def say(self, kind: str, **fields: Any) -> Spoken:
        self.sequence += 1
        lane = {"stream_id": self.lane} if self.lane else {}
        self.wire.append(dumps({"type": kind, "sequence_number": self.sequence} | fields | lane))
        return self


def takes() -> Iterator[Take]:
    yield from _answers()
    yield from _sessions()


def _answers() -> Iterator[Take]:
    r = Spoken("json_frames").text("I'll look.").call(*WEATHER)
    yield _frames(r, "the messages of a WebSocket, one behind the other", r.end())

    r = Spoken("json_lines", "main").call(*WEATHER).call(*TIDES)
    wire = [f"{message}\n" for message in r.end()]
    yield _frames(r, "the messages of a lane, one per line; the lane's name is known", wire)

    r = Spoken("steered").text("The ferry leaves at 07:40.")
    r.say("response.steer.accepted", steer=STEER)
    wire = r.end("incomplete", incomplete_details={"reason": "steered"})
    yield _frames(r, "steering is passed on whole; a steered answer pauses", wire)

    r = Spoken("injected").begin(TIDES[0]).pour(dumps(TIDES[1])[:9])
    r.sequence += 40  # such events may have a row of numbers of their own
    r.say("response.inject.created", response_id=r.body["id"])
    error = {"code": "response_not_found", "message": "No such response."}
    r.say("response.inject.failed", response_id="resp_0", error=error, input=[])
    r.sequence -= 42
    text = dumps(TIDES[1])
    r.pour(text[9:]).settle(text)
    yield _frames(r, "what is injected, and its numbers, are no part of the answer", r.end())

    first = Spoken("lanes_in_one", "a").begin(WEATHER[0]).pour(dumps(WEATHER[1])[:12])
    second = Spoken("lanes_in_one/b", "b")
    yield _frames(first, "two lanes are no one stream", [*first.wire, second.wire[0]])

    whole = Response("second_leg").text("I'll look both up.").call(*WEATHER).call(*TIDES)
    yield whole.take("what follows a cut is a stream of its own", wire=whole.end()[10:])


def _frames(r: Response, proves: str, wire: list[str]) -> Take:
    return Take(r.provider, r.name, MODEL, proves, wire, chunks=True)


def _sessions() -> Iterator[Take]:
    one, two = Spoken("turn_1").call(*TIDES), Spoken("turn_2").text("High water is at noon.")
    yield _session("two_turns", "turns on one connection follow each other", one.end(), two.end())

    a, b = Spoken("lane_a", "a").call(*WEATHER), Spoken("lane_b", "b").text("Hello.").call(*TIDES)
    woven = [m for pair in zip_longest(a.end(), b.end()) for m in pair if m]
    yield _session("two_lanes", "lanes interleave, and each is a stream of its own", woven)

    cut = woven[: len(woven) // 2]
    yield _session("cut_in_two_lanes", "a cut ends every stream that is open", cut)

    first, after = Spoken("steered_1", "a").text("The ferry"), Spoken("steered_2", "a").call(*TIDES)
    first.say("response.steer.accepted", steer=STEER)
    steered = first.end("incomplete", incomplete_details={"reason": "steered"})
    yield _session("steered", "a steered response and its successor", steered, after.end())

    waits = Spoken("pending", "a").call(*TIDES)
    pending = waits.end()
    stub = [{"type": "function_call_output", "call_id": waits.call_id(0)}]
    fields: Json = {"steer": STEER, "required_input": stub, "reason": "waiting_for_required_input"}
    waits.say("response.steer.pending", **fields)
    late = dumps({"type": "response.output_text.delta", "stream_id": "a", "delta": "late"})
    limits = dumps({"type": "codex.rate_limits", "rate_limits": {"allowed": True}})
    proves = "what belongs to no open response is told beside the streams"
    yield _session("beside", proves, [limits], pending, [late])

    good = Spoken("after_refusal", "a").text("Hello.").end()
    proves = "a request that is refused is a stream that fails"
    yield _session("refused", proves, [dumps(REFUSED)], [dumps(REFUSED | {"stream_id": "b"})], good)

    lost = Spoken("never_ended").begin(WEATHER[0]).pour(dumps(WEATHER[1]))
    proves = "a response that begins where another is open ends that one as cut"
    yield _session("begun_again", proves, lost.wire, Spoken("next").text("Hello.").end())


def _session(name: str, proves: str, *messages: list[str]) -> SessionTake:
    wire = list(chain(*messages))
    assert all(json.loads(message) for message in wire)
    return SessionTake("openai_responses/sessions", name, MODEL, proves, wire)
