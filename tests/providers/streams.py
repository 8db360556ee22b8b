"""Streams said by hand, frame by frame, and what is heard of them: whole, byte by byte and cut."""

from __future__ import annotations

import json
from typing import Any

from streamnorm import Normalizer
from streamnorm.events import BrokenToolCall, Event, Failed, Finish, ToolCall
from tests.conftest import SEED, assert_well_formed, frames_of, run, sse, traced

PAY = '{"n":1}'
DONE = b"data: [DONE]\n\n"


def heard(provider: str, body: bytes, **options: Any) -> tuple[list[Event], dict[str, int]]:
    """The events and notes of a body, which are the same however it is cut into chunks. Cut off after
    any frame it tells no call that it does not tell when it is whole."""
    events, pipe = traced(provider, body, **options)
    assert_well_formed(events)
    whole = set(map(_key, calls(events)))
    frames = frames_of(body)
    for end in range(len(frames)):
        cut = run(provider, [b"".join(frames[:end])], **options)
        assert_well_formed(cut)
        assert {*map(_key, calls(cut))} <= whole, f"cut after {end} frames"
    return events, dict(pipe.notes)


def _key(call: tuple[str, str, Any]) -> str:
    return json.dumps(call[1:], sort_keys=True)


def calls(events: list[Event]) -> list[tuple[str, str, Any]]:
    return [(e.id, e.name, e.arguments) for e in events if isinstance(e, ToolCall)]


def broken(events: list[Event]) -> list[tuple[str, str, str]]:
    return [(e.id, e.name, e.reason) for e in events if isinstance(e, BrokenToolCall)]


def end(events: list[Event]) -> tuple[str, str]:
    last = events[-1]
    assert isinstance(last, Finish | Failed)
    return last.kind, last.reason


def fate(events: list[Event]) -> tuple[list[Any], tuple[str, str]]:
    """The calls, or why they are broken, in the order they were told, and the end."""
    told = [
        e.arguments if isinstance(e, ToolCall) else e.reason
        for e in events
        if isinstance(e, ToolCall | BrokenToolCall)
    ]
    return told, end(events)


def payloads(provider: str, *said: dict[str, Any]) -> list[Event]:
    pipe = Normalizer(provider, seed=SEED)
    return [event for payload in said for event in pipe.feed_payload(payload)] + pipe.close()


class Responses:
    """OpenAI Responses, event by event."""

    CREATED = sse({"type": "response.created", "response": {"id": "r", "model": "m"}})

    @staticmethod
    def say(kind: str, **fields: Any) -> bytes:
        return sse({"type": f"response.{kind}", **fields})

    @classmethod
    def added(cls, item: dict[str, Any], at: int | None = 0) -> bytes:
        return cls.say("output_item.added", item=item, **_at(at))

    @classmethod
    def done(cls, item: dict[str, Any], at: int | None = 0) -> bytes:
        return cls.say("output_item.done", item=item, **_at(at))

    @classmethod
    def text(cls, text: Any, at: int | None = 0, **more: Any) -> bytes:
        return cls.say("output_text.delta", delta=text, content_index=0, **_at(at), **more)

    @classmethod
    def text_done(cls, text: str, at: int | None = 0, **more: Any) -> bytes:
        return cls.say("output_text.done", text=text, content_index=0, **_at(at), **more)

    @classmethod
    def completed(cls, *output: dict[str, Any]) -> bytes:
        response = {"id": "r", "status": "completed", "output": list(output)}
        return cls.say("completed", response=response)

    @classmethod
    def incomplete(cls, reason: str | None) -> bytes:
        details = {"reason": reason} if reason is not None else None
        response = {"status": "incomplete", "incomplete_details": details, "output": []}
        return cls.say("incomplete", response=response)

    @staticmethod
    def call(**fields: Any) -> dict[str, Any]:
        return {"type": "function_call", "name": "pay", **fields}

    @staticmethod
    def message(text: str, id: str = "msg_1") -> dict[str, Any]:
        part = {"type": "output_text", "text": text, "annotations": []}
        return {"type": "message", "id": id, "role": "assistant", "content": [part]}


def _at(index: int | None) -> dict[str, int]:
    return {} if index is None else {"output_index": index}


class Gemini:
    """Gemini, chunk by chunk."""

    @staticmethod
    def parts(*parts: dict[str, Any], finish: str | None = None, at: int = 0, **more: Any) -> bytes:
        candidate: dict[str, Any] = {"content": {"parts": list(parts)}, "index": at}
        if finish is not None:
            candidate["finishReason"] = finish
        return sse({"candidates": [candidate], **more})

    @classmethod
    def text(cls, text: str, **more: Any) -> bytes:
        return cls.parts({"text": text}, **more)
