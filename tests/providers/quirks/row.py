"""What a row says, and the few words that small streams are written with."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

__all__ = [
    "MESSAGE", "TIDES", "WEATHER", "Call", "Case", "Quirk", "anthropic", "block", "call", "chat",
    "chunk", "gemini", "lines", "part", "responses", "sse",
]  # fmt: skip

Json = dict[str, Any]
Call = tuple[str | None, str, Json]  # id (None: minted here), name, arguments


@dataclass(frozen=True)
class Case:
    """One stream, written here or kept as a take, and everything it must give."""

    provider: str
    wire: bytes = b""
    take: str = ""  # the name of a recording of this provider, instead of ``wire``
    calls: tuple[Call, ...] = ()
    broken: tuple[tuple[str, str], ...] = ()  # name, reason
    text: str = ""
    reasoning: str = ""
    end: str = "finish tool_calls"
    notes: tuple[str, ...] = ()  # all of them, whatever their number
    usage: tuple[int, int] | None = None  # input and output; None: not looked at
    has: tuple[Json, ...] = ()  # parts of events that must be told


@dataclass(frozen=True)
class Quirk:
    """A number, what servers do, what we do, and the proof or the reason why there is none."""

    number: int
    title: str
    does: str
    cases: tuple[Case, ...] = ()
    why_not: str = ""  # why no stream can show it
    otherwise: str = ""  # what is often advised and not done here, and why

    @property
    def notes(self) -> tuple[str, ...]:
        """What it raises, over all its streams."""
        return tuple(dict.fromkeys(note for case in self.cases for note in case.notes))

    @property
    def takes(self) -> tuple[str, ...]:
        return tuple(f"{case.provider}/{case.take}" for case in self.cases if case.take)


WEATHER: tuple[str, Json] = ("get_weather", {"city": "Reykjavík", "unit": "celsius"})
TIDES: tuple[str, Json] = ("get_tides", {"harbour": "Höfn", "days": 3})


def sse(*payloads: Json | str) -> bytes:
    """SSE events of data alone."""
    data = (p if isinstance(p, str) else json.dumps(p, ensure_ascii=False) for p in payloads)
    return "".join(f"data: {d}\n\n" for d in data).encode()


def lines(*payloads: Json) -> bytes:
    """One JSON object per line."""
    return "".join(json.dumps(p) + "\n" for p in payloads).encode()


# --- Chat Completions


def chunk(delta: Json | None = None, finish: str | None = None, **more: Any) -> Json:
    choice = {"index": 0, "delta": delta or {}, "finish_reason": finish}
    return {"id": "chatcmpl-1", "model": "m", "choices": [choice], **more}


def call(index: Any, id: str | None = None, name: str | None = None, args: Any = None) -> Json:
    """A delta with one entry of ``tool_calls``; what is None is left out."""
    function = {k: v for k, v in (("name", name), ("arguments", args)) if v is not None}
    entry = {k: v for k, v in (("index", index), ("id", id)) if v is not None}
    return {"tool_calls": [{**entry, "function": function}]}


def chat(*deltas: Json, finish: str = "tool_calls") -> bytes:
    return sse(*map(chunk, deltas), chunk(finish=finish), "[DONE]")


# --- Responses


def responses(*events: Json, status: str = "completed", **final: Any) -> bytes:
    opening = {"type": "response.created", "response": {"id": "resp_1", "model": "m"}}
    ending = {"type": f"response.{status}", "response": {"id": "resp_1", "status": status, **final}}
    return sse(opening, *events, ending)


# --- Anthropic

MESSAGE: Json = {
    "type": "message_start",
    "message": {"id": "msg_1", "model": "m", "usage": {"input_tokens": 5, "output_tokens": 1}},
}


def block(index: int, start: Json, *deltas: Json) -> list[Json]:
    return [
        {"type": "content_block_start", "index": index, "content_block": start},
        *({"type": "content_block_delta", "index": index, "delta": d} for d in deltas),
        {"type": "content_block_stop", "index": index},
    ]


def anthropic(*events: Json, reason: str = "tool_use", **delta: Any) -> bytes:
    ending = {
        "type": "message_delta",
        "delta": {"stop_reason": reason, **delta},
        "usage": {"output_tokens": 9},
    }
    return sse(MESSAGE, *events, ending, {"type": "message_stop"})


# --- Gemini


def part(*parts: Json, finish: str | None = None, **candidate: Any) -> Json:
    said: Json = {"content": {"role": "model", "parts": list(parts)}, "index": 0, **candidate}
    if finish:
        said["finishReason"] = finish
    return {"candidates": [said], "modelVersion": "m", "responseId": "r1"}


def gemini(*chunks: Json) -> bytes:
    return sse(*chunks)
