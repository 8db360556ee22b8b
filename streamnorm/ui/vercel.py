"""Events come in; the UI message stream of the AI SDK (``ai`` 7, protocol v1) goes out.

Rule: the client is strict, so we are. Only part types that it knows are sent, each part is opened
before and closed after its deltas, and the stream always ends with ``finish`` and ``[DONE]``. A call
that is not whole ends as ``tool-input-error``; a failure is told after everything is closed, as the
client stops listening there.

Why each call ends with its whole input: the client shows what it guesses from the deltas until then.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterable, Iterable, Mapping
from typing import Any

from .. import fold as f
from ..events import Failed, Finish, ToolCall
from ..text.written import HOLE, form, phrase, phrased, safe_json, safe_text
from ._cited import sources_of
from ._encoder import (
    CUT_OFF,
    SSE_HEADERS,
    ErrorText,
    Frame,
    Item,
    MoveEncoder,
    Told,
    address_of,
    as_text,
    broken_text,
    call_metadata,
    medium_facts,
    new_id,
    orphan_facts,
    plain_error,
    progress_facts,
    run_facts,
    safe_name,
    stream_facts,
    token_facts,
    without_none,
)
from ._open import Openings, Table
from ._pace import WITHIN, Encoded

__all__ = ["HEADERS", "Encoder", "encode", "lost"]

HEADERS = {**SSE_HEADERS, "x-vercel-ai-ui-message-stream": "v1"}
DONE = b"[DONE]"

# Finish.reason -> finishReason. A refusal is the model's own answer, but not the one asked for.
REASONS = {
    "stop": "stop",
    "length": "length",
    "tool_calls": "tool-calls",
    "content_filter": "content-filter",
    "refusal": "content-filter",
    "pause": "other",
    "other": "other",
}


class Encoder(MoveEncoder):
    """One message of the UI message stream.

    >>> from streamnorm import Finish, TextDelta
    >>> encoder = Encoder(message_id="m1")
    >>> encoder.feed(TextDelta("Hel"), TextDelta("lo")).decode().splitlines()[4]
    'data: {"type":"text-start","id":"text-1"}'
    >>> encoder.feed(Finish("stop"))
    b'data: {"type":"text-end","id":"text-1"}\\n\\n'
    >>> encoder.close().endswith(b'"finishReason":"stop"}\\n\\ndata: [DONE]\\n\\n')
    True

    ``used``: call ids that the conversation has already; two calls never share one. ``known``: calls of
    the message that is continued, whose results may come now. ``echo=False``
    keeps signatures on the server. ``error_text`` says what the page may read of a failure.
    """

    TRAILER = (DONE,)
    CALL_START = form(safe_json({"type": "tool-input-start", "toolCallId": HOLE, "toolName": HOLE}))
    CALL_PIECE = form(
        phrase({"type": "tool-input-delta", "toolCallId": HOLE, "inputTextDelta": ""})
    )

    def __init__(
        self,
        *,
        message_id: str | None = None,
        used: Iterable[str] = (),
        known: Mapping[str, str] | None = None,
        echo: bool = True,
        error_text: ErrorText = plain_error,
    ) -> None:
        super().__init__(used=used, known=known, echo=echo, error_text=error_text)
        self.message_id = message_id or new_id("msg")
        self._source_count = 0

    def _start(self) -> list[Told]:
        return [{"type": "start", "messageId": self.message_id}]

    def _finish(self, failed: Failed | None) -> list[Told]:
        end = self._fold.end
        reason = "error" if failed is not None else "other"
        if isinstance(end, Finish) and failed is None:
            reason = REASONS[end.reason]
        elif self._fold.waiting and failed is None:
            reason = REASONS["tool_calls"]
        finish = {"type": "finish", "finishReason": reason}
        if usage := self._usage():
            finish["messageMetadata"] = usage
        if failed is None:
            return [finish]
        if failed.reason == "cancelled":
            return [{"type": "abort", "reason": self._error_text(failed)}, _other(finish)]
        return [{"type": "error", "errorText": self._error_text(failed)}, finish]

    def _usage(self) -> Any:
        total: Counter[str] = Counter()
        for _, usage in self._fold.usage:
            total.update(token_facts(usage))
        if not total:
            return None
        total["totalTokens"] = total["inputTokens"] + total["outputTokens"]
        return {"usage": dict(total)}

    # --- steps, text, reasoning -------------------------------------------------------------------

    def _step(self, move: f.Step) -> list[Told]:
        chunks: list[Told] = [{"type": "start-step"}]
        if move.start is not None:
            facts = stream_facts(move.start)
            chunks.append({"type": "message-metadata", "messageMetadata": facts})
        return chunks

    def _step_end(self, move: f.StepEnd) -> list[Told]:
        return [{"type": "finish-step"}]

    def _piece(self, run: f.Run) -> Frame:
        return {"type": f"{run.kind}-delta", "id": _run_id(run), "delta": ""}

    def _run_open(self, move: f.RunOpen) -> list[Told]:
        start: Frame = {"type": f"{move.run.kind}-start", "id": _run_id(move.run)}
        return [start if move.run.agent is None else _with_facts(start, move.run)]

    def _run_text(self, move: f.RunText) -> list[Told]:
        return [phrased(self._phrase(move.run), "".join(move.pieces))]

    def _run_close(self, move: f.RunClose) -> list[Told]:
        self._phrases.pop(move.run, None)
        chunk: Frame = {"type": f"{move.run.kind}-end", "id": _run_id(move.run)}
        return [_with_facts(chunk, move.run)]

    def _shown(self, move: f.Shown) -> list[Told]:
        """A file of the message. One that the page may not have, or that has no bytes, is only named."""
        medium, url = move.medium, address_of(move.medium)
        facts = medium_facts(medium)
        if url is None:
            named = {"mediaType": medium.type, "part": medium.part, **facts}
            return [{"type": "data-media", "data": named}]
        chunk: Frame = {"type": "file", "url": url, "mediaType": medium.type}
        return [{**chunk, "providerMetadata": {"streamnorm": facts}} if facts else chunk]

    def _cited(self, move: f.Cited) -> list[Told]:
        return [self._source(source, move) for source in sources_of(move.event.payload)]

    def _source(self, source: Any, move: f.Cited) -> Frame:
        self._source_count += 1
        chunk: Frame = {
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

    def _begun(self, call: f.Call) -> Told:
        id = safe_text(call.id)
        self._phrases[call] = self.CALL_PIECE % id
        if call.by_provider:
            return _named("tool-input-start", call)
        return self.CALL_START % (id, safe_name(call.name))

    def _call_text(self, move: f.CallText) -> list[Told]:
        return [phrased(self._phrases[move.call], "".join(move.pieces))]

    def _whole(self, call: f.Call, event: ToolCall) -> list[Frame]:
        self._phrases.pop(call, None)
        chunk = _named("tool-input-available", call)
        chunk["input"] = event.arguments
        chunk["toolMetadata"] = {"streamnorm": call_metadata(event)}
        if self._echo and event.echo:
            chunk["providerMetadata"] = {"streamnorm": {"echo": event.echo}}
        return [chunk]

    def _call_broken(self, move: f.CallBroken) -> list[Told]:
        self._phrases.pop(move.call, None)
        chunk = _named("tool-input-error", move.call)
        chunk["input"], chunk["errorText"] = move.event.raw, broken_text(move.event)
        chunk["toolMetadata"] = {"streamnorm": call_metadata(move.event)}
        return [chunk]

    def _progress(self, move: f.Progress) -> list[Told]:
        return [{"type": "data-tool-progress", "data": progress_facts(move), "transient": True}]

    # --- results and approvals --------------------------------------------------------------------

    def _result(self, move: f.Result) -> list[Told]:
        flag = {"providerExecuted": True} if move.call.by_provider else {}
        if move.event.is_error:
            return [
                {
                    "type": "tool-output-error",
                    "toolCallId": move.call.id,
                    "errorText": as_text(move.output),
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

    def _orphan(self, move: f.Orphan) -> list[Told]:
        return [{"type": "data-orphan-result", "data": orphan_facts(move)}]

    def _asked(self, move: f.Asked) -> list[Told]:
        chunk = {
            "type": "tool-approval-request",
            "approvalId": move.approval.id,
            "toolCallId": move.call.id,
        }
        return [{**chunk, "reason": move.approval.reason} if move.approval.reason else chunk]

    def _refused(self, move: f.Refused) -> list[Told]:
        return [{"type": "tool-output-denied", "toolCallId": move.call.id}]


def encode(events: AsyncIterable[Item], *, within: float = WITHIN, **options: Any) -> Encoded:
    """The UI message stream of these events, as bytes to send.

    Small pieces that come within ``within`` seconds of each other are merged; the other options are
    those of ``Encoder``. ::

        return StreamingResponse(vercel.encode(normalize(upstream)), headers=vercel.HEADERS)
    """
    return Encoded(events, Encoder(**options), within)


def lost(payloads: Iterable[bytes], why: str = CUT_OFF) -> list[bytes]:
    """How to end a stream whose producer has died, given all payloads that it left."""
    told = Openings()
    for payload in payloads:
        told.hear(payload, OPENERS, CLOSERS)
    if told.last == DONE:
        return []
    chunks: list[Frame] = [] if told.last else [{"type": "start"}]
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


def _end_of(opened: Frame, why: str) -> Frame:
    kind = opened["type"]
    if kind == "start-step":
        return {"type": "finish-step"}
    if kind != "tool-input-start":
        return {"type": kind.replace("-start", "-end"), "id": opened["id"]}
    named = {key: value for key, value in opened.items() if key != "type"}
    return {"type": "tool-input-error", **named, "input": None, "errorText": why}


def _named(type: str, call: f.Call) -> Frame:
    chunk: Frame = {"type": type, "toolCallId": call.id, "toolName": call.name}
    if call.by_provider:
        chunk["providerExecuted"] = True
    return chunk


def _run_id(run: f.Run) -> str:
    return f"{run.kind}-{run.number}"


def _with_facts(chunk: Frame, run: f.Run) -> Frame:
    facts = run_facts(run)
    return {**chunk, "providerMetadata": {"streamnorm": facts}} if facts else chunk


def _titled(title: str | None) -> Frame:
    return {} if title is None else {"title": title}


def _other(finish: Frame) -> Frame:
    return {**finish, "finishReason": "other"}
