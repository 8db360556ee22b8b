"""Events come in; the UI message stream of the AI SDK (``ai`` 7, protocol v1) goes out.

Rule: the client is strict, so we are. Only part types that it knows are sent, each part is opened
before and closed after its deltas, and the stream always ends with ``finish`` and ``[DONE]``. A call
that is not whole ends as ``tool-input-error``; a failure is told after everything is closed, as the
client stops listening there.

Why each call ends with its whole input: the client shows what it guesses from the deltas until then.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, Callable, Iterable
from typing import Any, TypeAlias

from ..events import Failed, Finish, ToolCall
from ..tools import json_text
from . import _fold as f
from ._encoder import (
    Encoder as _Encoder,
)
from ._encoder import ErrorText, broken_text, call_metadata, new_id, plain_error, without_none
from ._fold import Item, Move
from ._frames import SSE_HEADERS, safe_json
from ._open import Openings, Table
from ._pace import WITHIN, Encoded
from ._sources import sources_of

__all__ = ["HEADERS", "Encoder", "encode", "lost"]

HEADERS = {**SSE_HEADERS, "x-vercel-ai-ui-message-stream": "v1"}
DONE = b"[DONE]"

Chunk: TypeAlias = dict[str, Any]

# Finish.reason -> finishReason. A refusal is the model's own answer, but not the one asked for.
REASONS = {
    "stop": "stop",
    "length": "length",
    "tool_calls": "tool-calls",
    "content_filter": "content-filter",
    "refusal": "content-filter",
    "pause": "other",
}


class Encoder(_Encoder):
    """One message of the UI message stream.

    >>> from streamnorm import Finish, TextDelta
    >>> encoder = Encoder(message_id="m1")
    >>> encoder.feed(TextDelta("Hel"), TextDelta("lo")).decode().splitlines()[4]
    'data: {"type":"text-start","id":"text-1"}'
    >>> encoder.feed(Finish("stop"))
    b'data: {"type":"text-end","id":"text-1"}\\n\\n'
    >>> encoder.close().endswith(b'"finishReason":"stop"}\\n\\ndata: [DONE]\\n\\n')
    True

    ``used``: call ids that the conversation has already; two calls never share one. ``echo=False``
    keeps signatures on the server. ``error_text`` says what the page may read of a failure.
    """

    TRAILER = (DONE,)

    def __init__(
        self,
        *,
        message_id: str | None = None,
        used: Iterable[str] = (),
        echo: bool = True,
        error_text: ErrorText = plain_error,
    ) -> None:
        super().__init__(used=used, echo=echo, error_text=error_text)
        self.message_id = message_id or new_id("msg")
        self._echo = echo
        self._source_count = 0

    def _start(self) -> list[Chunk]:
        return [{"type": "start", "messageId": self.message_id}]

    def _tell(self, move: Move) -> Iterable[Chunk]:
        return _TOLD[type(move)](self, move)

    def _finish(self, failed: Failed | None) -> list[Chunk]:
        end = self._fold.end
        reason = "error" if failed is not None else "other"
        if isinstance(end, Finish) and failed is None:
            reason = REASONS[end.reason]
        finish = {"type": "finish", "finishReason": reason}
        if usage := self._usage():
            finish["messageMetadata"] = usage
        if failed is None:
            return [finish]
        if failed.reason == "cancelled":
            return [{"type": "abort", "reason": self._error_text(failed)}, _other(finish)]
        return [{"type": "error", "errorText": self._error_text(failed)}, finish]

    def _usage(self) -> Any:
        total = {
            "inputTokens": _sum(u.input for _, u in self._fold.usage),
            "outputTokens": _sum(u.output for _, u in self._fold.usage),
            "cachedInputTokens": _sum(u.cached_input for _, u in self._fold.usage),
            "reasoningTokens": _sum(u.reasoning for _, u in self._fold.usage),
        }
        known = without_none(**total)
        if not known:
            return None
        known["totalTokens"] = known.get("inputTokens", 0) + known.get("outputTokens", 0)
        return {"usage": known}

    # --- steps, text, reasoning -------------------------------------------------------------------

    def _step(self, move: f.Step) -> list[Chunk]:
        chunks: list[Chunk] = [{"type": "start-step"}]
        if move.start is not None:
            facts = without_none(
                provider=move.start.provider, model=move.start.model,
                responseId=move.start.response_id,
            )  # fmt: skip
            chunks.append({"type": "message-metadata", "messageMetadata": facts})
        return chunks

    def _step_end(self, move: f.StepEnd) -> list[Chunk]:
        return [{"type": "finish-step"}]

    def _run_open(self, move: f.RunOpen) -> list[Chunk]:
        return [{"type": f"{move.run.kind}-start", "id": _run_id(move.run)}]

    def _run_text(self, move: f.RunText) -> list[Chunk]:
        return [{"type": f"{move.run.kind}-delta", "id": _run_id(move.run), "delta": move.text}]

    def _run_close(self, move: f.RunClose) -> list[Chunk]:
        chunk: Chunk = {"type": f"{move.run.kind}-end", "id": _run_id(move.run)}
        if move.run.echoes:
            kept = {"echoes": move.run.echoes, "marks": move.run.marks}
            chunk["providerMetadata"] = {"streamnorm": kept}
        return [chunk]

    def _cited(self, move: f.Cited) -> list[Chunk]:
        return [self._source(source, move) for source in sources_of(move.event.payload)]

    def _source(self, source: Any, move: f.Cited) -> Chunk:
        self._source_count += 1
        chunk: Chunk = {
            "sourceId": f"source-{self._source_count}",
            "providerMetadata": {
                "streamnorm": {"part": move.event.part, "citation": move.event.payload}
            },
        }
        if source.url is not None:
            return {"type": "source-url", "url": source.url, **_titled(source.title), **chunk}
        named = {"mediaType": "application/octet-stream", "title": source.title or "source"}
        return {
            "type": "source-document",
            **named,
            **without_none(filename=source.filename),
            **chunk,
        }

    # --- calls ------------------------------------------------------------------------------------

    def _call_open(self, move: f.CallOpen) -> list[Chunk]:
        return [{"type": "tool-input-start", **_named(move.call)}]

    def _call_text(self, move: f.CallText) -> list[Chunk]:
        return [
            {"type": "tool-input-delta", "toolCallId": move.call.id, "inputTextDelta": move.text}
        ]

    def _call_whole(self, move: f.CallWhole) -> list[Chunk]:
        chunk = {"type": "tool-input-available", **_named(move.call), "input": move.event.arguments}
        chunk["toolMetadata"] = _metadata(move.call, move.event)
        if self._echo and move.event.echo:
            chunk["providerMetadata"] = {"streamnorm": {"echo": move.event.echo}}
        return [chunk]

    def _call_broken(self, move: f.CallBroken) -> list[Chunk]:
        return [
            {
                "type": "tool-input-error",
                **_named(move.call),
                "input": move.event.raw,
                "errorText": broken_text(move.event),
                "toolMetadata": _metadata(move.call, move.event),
            }
        ]

    def _progress(self, move: f.Progress) -> list[Chunk]:
        data: Chunk = {
            "toolCallId": move.call.id if move.call else move.event.id,
            "status": move.event.status,
        }
        if isinstance(move.event.payload, str | int | float | list | dict):
            data["payload"] = move.event.payload
        return [{"type": "data-tool-progress", "data": data, "transient": True}]

    # --- results and approvals --------------------------------------------------------------------

    def _result(self, move: f.Result) -> list[Chunk]:
        flag = {"providerExecuted": True} if move.call.by_provider else {}
        if move.is_error:
            return [
                {
                    "type": "tool-output-error",
                    "toolCallId": move.call.id,
                    "errorText": _as_text(move.output),
                    **flag,
                }
            ]
        return [
            {
                "type": "tool-output-available",
                "toolCallId": move.call.id,
                "output": move.output,
                **flag,
            }
        ]

    def _orphan(self, move: f.Orphan) -> list[Chunk]:
        data = {"id": move.id, "output": move.output, "isError": move.is_error}
        return [{"type": "data-orphan-result", "data": data}]

    def _asked(self, move: f.Asked) -> list[Chunk]:
        chunk = {
            "type": "tool-approval-request",
            "approvalId": move.approval.id,
            "toolCallId": move.call.id,
        }
        return [{**chunk, "reason": move.approval.reason} if move.approval.reason else chunk]

    def _refused(self, move: f.Refused) -> list[Chunk]:
        return [{"type": "tool-output-denied", "toolCallId": move.call.id}]


_TOLD: dict[type, Callable[[Encoder, Any], list[Chunk]]] = {
    f.Step: Encoder._step,
    f.StepEnd: Encoder._step_end,
    f.RunOpen: Encoder._run_open,
    f.RunText: Encoder._run_text,
    f.RunClose: Encoder._run_close,
    f.CallOpen: Encoder._call_open,
    f.CallText: Encoder._call_text,
    f.CallWhole: Encoder._call_whole,
    f.CallBroken: Encoder._call_broken,
    f.Result: Encoder._result,
    f.Orphan: Encoder._orphan,
    f.Progress: Encoder._progress,
    f.Cited: Encoder._cited,
    f.Asked: Encoder._asked,
    f.Refused: Encoder._refused,
}


def encode(events: AsyncIterable[Item], *, within: float = WITHIN, **options: Any) -> Encoded:
    """The UI message stream of these events, as bytes to send.

    Small pieces that come within ``within`` seconds of each other are merged; the other options are
    those of ``Encoder``. ::

        return StreamingResponse(vercel.encode(normalize(upstream)), headers=vercel.HEADERS)
    """
    return Encoded(events, Encoder(**options), within)


def lost(payloads: Iterable[bytes], why: str = "The answer was cut off.") -> list[bytes]:
    """How to end a stream whose producer has died, given all payloads that it left."""
    told = Openings()
    for payload in payloads:
        told.hear(payload, OPENERS, CLOSERS)
    if told.last == DONE:
        return []
    chunks: list[Chunk] = [] if told.last else [{"type": "start"}]
    chunks += [_end_of(chunk, why) for chunk in told.open.values()]
    if told.ended:
        return [*map(safe_json, chunks), DONE]
    chunks += [{"type": "error", "errorText": why}, {"type": "finish", "finishReason": "error"}]
    return [*map(safe_json, chunks), DONE]


# type -> (what is opened or closed, the field that tells which one)
OPENERS: Table = {
    "text-start": ("text", "id"),
    "reasoning-start": ("reasoning", "id"),
    "tool-input-start": ("tool", "toolCallId"),
    "start-step": ("step", "type"),
}
CLOSERS: Table = {
    "text-end": ("text", "id"),
    "reasoning-end": ("reasoning", "id"),
    "tool-input-available": ("tool", "toolCallId"),
    "tool-input-error": ("tool", "toolCallId"),
    "finish-step": ("step", None),
    "finish": ("end", None),
}


def _end_of(opened: Chunk, why: str) -> Chunk:
    kind = opened["type"]
    if kind == "start-step":
        return {"type": "finish-step"}
    if kind != "tool-input-start":
        return {"type": kind.replace("-start", "-end"), "id": opened["id"]}
    named = {key: value for key, value in opened.items() if key != "type"}
    return {"type": "tool-input-error", **named, "input": None, "errorText": why}


def _named(call: f.Call) -> Chunk:
    chunk: Chunk = {"toolCallId": call.id, "toolName": call.name}
    return {**chunk, "providerExecuted": True} if call.by_provider else chunk


def _metadata(call: f.Call, event: ToolCall | Any) -> Chunk:
    return {"streamnorm": call_metadata(call, event)}


def _run_id(run: f.Run) -> str:
    return f"{run.kind}-{run.number}"


def _titled(title: str | None) -> Chunk:
    return {} if title is None else {"title": title}


def _other(finish: Chunk) -> Chunk:
    return {**finish, "finishReason": "other"}


def _sum(counts: Iterable[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if known else None


def _as_text(output: Any) -> str:
    return output if isinstance(output, str) else json_text(output)
