"""Streams to measure with: a wire and the name of a workload in, the bytes and the truth out.

Rule: the same name gives the same bytes on every machine and every Python; nothing is recorded and
nothing is read from disk. The envelopes are those of the services as of 2026 (obfuscation padding,
``usage: null``, ``event:`` lines, pings, CR LF on Gemini), so that skipping them is paid for.

========  =====================================================================================
W1        text-heavy: 2,000 text deltas of a word each, then one small call
W2        tool-heavy: 8 calls of 250 argument deltas each; Gemini: 2,000 whole calls
W3-SIZE   one call with SIZE bytes of arguments in deltas of about 64 characters; Gemini: whole
W3p-SIZE  Gemini only: the same call, streamed as ``partialArgs``
TEXT-N    N million bytes of text in deltas of 256 characters, no call (for the memory section)
STAMP-N   N text deltas that are a ``MARK`` each, no call: the server puts the time there
CROWD     16 words, then one small call: what each of many streams says
SIZE-N    the same with as many words as make about N bytes of it
========  =====================================================================================
"""

from __future__ import annotations

import json
import random
import string
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import count, pairwise
from typing import Any

__all__ = [
    "MARK", "SIZES", "WIRES", "Call", "Workload", "build", "chunks_of", "separator", "split_frames",
]  # fmt: skip

WIRES = ("openai_chat", "anthropic", "openai_responses", "gemini")
SIZES = {"64K": 64 << 10, "1M": 1 << 20, "4M": 4 << 20, "16M": 16 << 20}
MARK = "@" * 20  # in place of a time: as long as one in nanoseconds will ever be

_PROSE = """
a stream is only as good as its last event so we keep reading until the wire says it is over and
then we look twice Größe élan žluťoučký 東京 données 🙂 if not None else yield await async for row
in table: assert lambda x: x[0] buffer cursor offset digest vector commit branch
"""
_VOCABULARY = _PROSE.split()
_PADDING = string.ascii_letters + string.digits


@dataclass(frozen=True)
class Call:
    """A generated call. An empty ``id`` means that the wire gives none; so does an empty tuple of
    ``pieces`` for argument deltas."""

    id: str
    name: str
    arguments: str
    pieces: tuple[str, ...] = ()


@dataclass(frozen=True)
class Workload:
    """The bytes of one response and what has to be understood from them."""

    wire: str
    name: str
    body: bytes
    events: int
    text: str
    calls: tuple[Call, ...]


def build(wire: str, name: str) -> Workload:
    """The workload ``name`` on the wire ``wire``, made anew."""
    kind, _, size = name.partition("-")
    if kind == "SIZE":
        return _of_size(wire, int(size))
    text, calls = _content(wire, name)
    frames = list(_writer(wire, name)(text, calls, random.Random(f"{wire} {name}")))
    body = "".join(frames).encode()
    return Workload(wire, name, body, len(frames), "".join(text), calls)


def _of_size(wire: str, size: int) -> Workload:
    """The first that is as long, of the shorter ones."""
    return next(made for n in count(1) if len((made := build(wire, f"CROWD-{n}")).body) >= size)


def separator(wire: str) -> bytes:
    """What stands between two frames."""
    return b"\r\n\r\n" if wire == "gemini" else b"\n\n"


def chunks_of(workload: Workload, size: int) -> list[bytes]:
    """The body in pieces of ``size`` bytes, as a socket would give it."""
    body = workload.body
    return [body[at : at + size] for at in range(0, len(body), size)]


def split_frames(workload: Workload) -> list[bytes]:
    """The body in pieces of one event each: a slow model."""
    end = separator(workload.wire)
    return [frame + end for frame in workload.body.removesuffix(end).split(end)]


# What is said, whatever the wire.


def _content(wire: str, name: str) -> tuple[list[str], tuple[Call, ...]]:
    rng = random.Random(name)
    kind, _, size = name.partition("-")
    if kind == "W1":
        arguments = _json({"path": "notes/Größe.md", "range": [1, 200], "why": 'say "hi"\n\\o/'})
        return _words(rng, 2000), (Call("call_w1", "read_file", arguments, _evenly(arguments, 20)),)
    if kind == "W2" and wire == "gemini":
        return [], tuple(_small_call(rng, number) for number in range(2000))
    if kind == "W2":
        return [], tuple(_edit_call(rng, number) for number in range(8))
    if kind == "W3":
        arguments = _file_arguments(rng, SIZES[size])
        return [], (Call("call_w3", "write_file", arguments, _unevenly(rng, arguments)),)
    if kind == "W3p":
        arguments = _file_arguments(rng, SIZES[size])
        return [], (Call("", "write_file", arguments),)
    if kind == "STAMP":
        return [MARK] * int(size), ()
    if kind == "CROWD":
        arguments = _json({"path": "src/app/views.py", "line": 12})
        return _words(rng, int(size or 16)), (
            Call("call_c", "read_file", arguments, _evenly(arguments, 4)),
        )
    if kind == "TEXT":
        return [_prose(rng, 256) for _ in range(int(size) * 1_000_000 // 256)], ()
    raise ValueError(f"no workload is called {name!r}")


def _words(rng: random.Random, count: int) -> list[str]:
    return [rng.choice(_VOCABULARY) + ("\n" if n % 19 == 18 else " ") for n in range(count)]


def _prose(rng: random.Random, length: int) -> str:
    """ASCII only, so that characters are bytes."""
    words = "".join(rng.choices(("alpha ", "beta ", "gamma, ", "delta. "), k=length // 5 + 1))
    return words[:length]


def _small_call(rng: random.Random, number: int) -> Call:
    arguments = {"path": f"src/part_{number}.py", "line": number, "text": rng.choice(_VOCABULARY)}
    return Call(f"call_{number:04}", "edit_file", _json(arguments))


def _edit_call(rng: random.Random, number: int) -> Call:
    arguments = _file_arguments(rng, 1250)
    return Call(f"call_w2_{number}", "edit_file", arguments, _evenly(arguments, 250))


def _file_arguments(rng: random.Random, size: int) -> str:
    """The arguments of a file-writing call, ``size`` bytes of UTF-8 as JSON."""
    path = "src/app/views.py"
    room = size - len(_json({"path": path, "content": ""}))
    lines: list[str] = []
    while True:
        line = _source_line(rng, len(lines))
        room -= len(_json(line).encode()) - 2
        if room < 0:
            break
        lines.append(line)
    room += len(_json(line).encode()) - 2
    return _json({"path": path, "content": "".join(lines) + "#" * room})


def _source_line(rng: random.Random, number: int) -> str:
    """A line like source code: quotes, backslashes and words beyond ASCII."""
    if number % 13 == 12:
        return '    pattern = re.compile(r"^\\s+\\w*\\t$")\n'
    a, b, c, d = rng.choices(_VOCABULARY, k=4)
    return f'    value_{number} = call("{a}", {b!r})  # {c} {d}\n'


def _evenly(text: str, count: int) -> tuple[str, ...]:
    """``count`` pieces whose lengths differ by one at most."""
    cuts = [len(text) * n // count for n in range(count + 1)]
    return tuple(text[a:b] for a, b in pairwise(cuts))


def _unevenly(rng: random.Random, text: str) -> tuple[str, ...]:
    """Pieces of 48 to 80 characters, 64 on average: a chunk of a few tokens."""
    pieces, start = [], 0
    while start < len(text):
        end = start + rng.randint(48, 80)
        pieces.append(text[start:end])
        start = end
    return tuple(pieces)


# How it is said: one writer per wire, (text, calls, rng) in, frames out.

Writer = Callable[[Iterable[str], Iterable[Call], random.Random], Iterator[str]]


def _writer(wire: str, name: str) -> Writer:
    return _gemini_partial if name.startswith("W3p") else _WRITERS[wire]


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _padding(rng: random.Random, piece: str) -> str:
    """OpenAI's ``obfuscation``: it hides how long a delta is."""
    return "".join(rng.choices(_PADDING, k=16 - len(piece) % 16))


def _openai_chat(text: Iterable[str], calls: Iterable[Call], rng: random.Random) -> Iterator[str]:
    head = {
        "id": "chatcmpl-DbQ7uXo2kVYt5nRw0sLh3EaGmJc9F",
        "object": "chat.completion.chunk",
        "created": 1770933892,
        "model": "gpt-5-mini-2025-08-07",
        "service_tier": "default",
        "system_fingerprint": "fp_de604bd877",
    }

    def chunk(delta: dict[str, Any], said: str = "", reason: str | None = None) -> str:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}
        tail = {"choices": [choice], "usage": None, "obfuscation": _padding(rng, said)}
        return f"data: {_json(head | tail)}\n\n"

    yield chunk({"role": "assistant", "content": "", "refusal": None})
    for piece in text:
        yield chunk({"content": piece}, piece)
    reason = "stop"
    for index, call in enumerate(calls):
        reason = "tool_calls"
        function = {"name": call.name, "arguments": ""}
        start = {"index": index, "id": call.id, "type": "function", "function": function}
        yield chunk({"tool_calls": [start]})
        for piece in call.pieces:
            yield chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]}, piece)
    yield chunk({}, reason=reason)
    usage = {
        "prompt_tokens": 914,
        "completion_tokens": 2207,
        "total_tokens": 3121,
        "prompt_tokens_details": {"cached_tokens": 0, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": 0, "audio_tokens": 0},
    }
    yield f"data: {_json(head | {'choices': [], 'usage': usage, 'obfuscation': 'k3'})}\n\n"
    yield "data: [DONE]\n\n"


def _anthropic(text: Iterable[str], calls: Iterable[Call], rng: random.Random) -> Iterator[str]:
    def event(kind: str, **fields: Any) -> str:
        return f"event: {kind}\ndata: {_json({'type': kind} | fields)}\n\n"

    def delta(index: int, inner: dict[str, str]) -> str:
        """The service pads its deltas with spaces before the last brace."""
        line = event("content_block_delta", index=index, delta=inner)
        return f"{line[:-3]}{' ' * rng.randint(0, 15)}}}\n\n"

    usage = {
        "input_tokens": 914,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0,
        "cache_creation": {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 0},
        "output_tokens": 3,
        "service_tier": "standard",
    }
    message: dict[str, Any] = {
        "model": "claude-sonnet-4-5-20250929",
        "id": "msg_01QwK8tPz5LrVb3YhNcXe7Ds",
        "type": "message",
        "role": "assistant",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": usage,
    }
    yield event("message_start", message=message)
    blocks, reason = 0, "end_turn"
    for piece in text:
        if not blocks:
            yield event("content_block_start", index=0, content_block={"type": "text", "text": ""})
            yield 'event: ping\ndata: {"type": "ping"}\n\n'
            blocks = 1
        yield delta(0, {"type": "text_delta", "text": piece})
    if blocks:
        yield event("content_block_stop", index=0)
    for index, call in enumerate(calls, start=blocks):
        reason = "tool_use"
        block = {"type": "tool_use", "id": call.id, "name": call.name, "input": {}}
        yield event("content_block_start", index=index, content_block=block)
        for piece in ("", *call.pieces):
            yield delta(index, {"type": "input_json_delta", "partial_json": piece})
        yield event("content_block_stop", index=index)
    end = {"stop_reason": reason, "stop_sequence": None}
    yield event("message_delta", delta=end, usage=usage | {"output_tokens": 2207})
    yield event("message_stop")


def _openai_responses(
    text: Iterable[str], calls: Iterable[Call], rng: random.Random
) -> Iterator[str]:
    number = -1

    def event(name: str, **fields: Any) -> str:
        nonlocal number
        number += 1
        kind = f"response.{name}"
        payload = {"type": kind} | fields | {"sequence_number": number}
        return f"event: {kind}\ndata: {_json(payload)}\n\n"

    response = _RESPONSE | {"status": "in_progress", "output": [], "usage": None}
    yield event("created", response=response)
    yield event("in_progress", response=response)
    output: list[dict[str, Any]] = []
    pieces = list(text)
    if pieces:
        message = {"id": "msg_0d20fb26c02beeea006a0aef130b6481", "type": "message"}
        opened = message | {"status": "in_progress", "content": [], "role": "assistant"}
        part = {"type": "output_text", "annotations": [], "logprobs": [], "text": ""}
        where: dict[str, Any] = {
            "item_id": message["id"],
            "output_index": 0,
            "content_index": 0,
        }
        yield event("output_item.added", item=opened, output_index=0)
        yield event("content_part.added", part=part, **where)
        for piece in pieces:
            pad = _padding(rng, piece)
            yield event("output_text.delta", delta=piece, logprobs=[], obfuscation=pad, **where)
        whole = "".join(pieces)
        yield event("output_text.done", logprobs=[], text=whole, **where)
        yield event("content_part.done", part=part | {"text": whole}, **where)
        item = opened | {"status": "completed", "content": [part | {"text": whole}]}
        yield event("output_item.done", item=item, output_index=0)
        output.append(item)
    for index, call in enumerate(calls, start=len(output)):
        item = {
            "id": f"fc_09306f386f8ee2650169961e9186{index:04x}",
            "type": "function_call",
            "status": "in_progress",
            "arguments": "",
            "call_id": call.id,
            "name": call.name,
        }
        where = {"item_id": item["id"], "output_index": index}
        yield event("output_item.added", item=item, output_index=index)
        for piece in call.pieces:
            pad = _padding(rng, piece)
            yield event("function_call_arguments.delta", delta=piece, obfuscation=pad, **where)
        yield event("function_call_arguments.done", arguments=call.arguments, **where)
        item = item | {"status": "completed", "arguments": call.arguments}
        yield event("output_item.done", item=item, output_index=index)
        output.append(item)
    usage = {
        "input_tokens": 914,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": 2207,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 3121,
    }
    done = _RESPONSE | {"status": "completed", "output": output, "usage": usage}
    yield event("completed", response=done)


_RESPONSE: dict[str, Any] = {
    "id": "resp_09306f386f8ee2650169961e90ebe881a3b3dbcbc2d92cf0",
    "object": "response",
    "created_at": 1770933892,
    "status": None,
    "background": False,
    "error": None,
    "incomplete_details": None,
    "instructions": None,
    "max_output_tokens": None,
    "max_tool_calls": None,
    "model": "gpt-5-mini-2025-08-07",
    "output": None,
    "parallel_tool_calls": True,
    "previous_response_id": None,
    "prompt_cache_key": None,
    "reasoning": {"effort": "low", "summary": None},
    "safety_identifier": None,
    "service_tier": "default",
    "store": False,
    "temperature": 1.0,
    "text": {"format": {"type": "text"}, "verbosity": "medium"},
    "tool_choice": "auto",
    "tools": [],
    "top_logprobs": 0,
    "top_p": 1.0,
    "truncation": "disabled",
    "usage": None,
    "user": None,
    "metadata": {},
}


def _gemini_frame(parts: list[dict[str, Any]], count: int, **more: str) -> str:
    payload = {
        "candidates": [{"content": {"parts": parts, "role": "model"}} | more | {"index": 0}],
        "usageMetadata": {
            "promptTokenCount": 914,
            "candidatesTokenCount": count,
            "totalTokenCount": 914 + count,
            "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 914}],
        },
        "modelVersion": "gemini-2.5-flash",
        "responseId": "dqHOab6xGLzWodAPkPuViA4",
    }
    text = json.dumps(payload, ensure_ascii=False, separators=(",", ": "))
    return f"data: {text}\r\n\r\n"


def _gemini(text: Iterable[str], calls: Iterable[Call], rng: random.Random) -> Iterator[str]:
    count = 0
    for piece in text:
        count += 1
        yield _gemini_frame([{"text": piece}], count)
    for call in calls:
        count += 1
        function = {"name": call.name, "args": json.loads(call.arguments), "id": call.id}
        yield _gemini_frame([{"functionCall": function}], count)
    yield _gemini_frame([{"text": ""}], count + 1, finishReason="STOP")


def _gemini_partial(
    text: Iterable[str], calls: Iterable[Call], rng: random.Random
) -> Iterator[str]:
    """Arguments as ``partialArgs``: string values at one path are to be joined."""
    count = 0
    for call in calls:
        yield _gemini_frame([{"functionCall": {"name": call.name, "willContinue": True}}], count)
        for key, value in json.loads(call.arguments).items():
            for piece in (*_unevenly(rng, value), ""):
                count += 1
                argument: dict[str, Any] = {"jsonPath": f"$.{key}", "stringValue": piece}
                if piece:
                    argument["willContinue"] = True
                function = {"partialArgs": [argument], "willContinue": True}
                yield _gemini_frame([{"functionCall": function}], count)
        yield _gemini_frame([{"functionCall": {}}], count)
    yield _gemini_frame([{"text": ""}], count, finishReason="STOP")


_WRITERS: dict[str, Writer] = {
    "openai_chat": _openai_chat,
    "anthropic": _anthropic,
    "openai_responses": _openai_responses,
    "gemini": _gemini,
}
