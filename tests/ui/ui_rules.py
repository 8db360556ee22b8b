"""The rules that chat clients enforce, written down once more: payloads in, complaints out.

Also a strategy for any telling of events, well formed as a stream is or not.
"""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

from streamnorm import (
    BrokenToolCall,
    Citation,
    Failed,
    Finish,
    Media,
    ProviderToolResult,
    ReasoningDelta,
    RecorderFailed,
    StreamStart,
    TextDelta,
    ToolCall,
    ToolCallDelta,
    ToolCallStart,
    ToolEnded,
    ToolProgress,
    ToolResult,
    ToolStarted,
    Unrecognized,
    Usage,
)
from streamnorm.ui import Approval, Denied

VERCEL = {
    "start", "finish", "start-step", "finish-step", "message-metadata", "error", "abort",
    "text-start", "text-delta", "text-end", "reasoning-start", "reasoning-delta", "reasoning-end",
    "tool-input-start", "tool-input-delta", "tool-input-available", "tool-input-error",
    "tool-output-available", "tool-output-error", "tool-output-denied", "tool-approval-request",
    "source-url", "source-document", "data-tool-progress", "data-orphan-result", "file", "data-media",
}  # fmt: skip


def vercel_complaints(payloads: list[bytes]) -> list[str]:
    """What the AI SDK would object to, or be left with."""
    wrong: list[str] = []
    open_: set[tuple[str, str]] = set()
    calls: set[str] = set()
    if payloads[-1] != b"[DONE]":
        wrong.append("no [DONE]")
    chunks = [json.loads(p) for p in payloads if p != b"[DONE]"]
    if chunks[0]["type"] != "start" or chunks[-1]["type"] != "finish":
        wrong.append("does not begin with start and end with finish")
    for chunk in chunks:
        kind = chunk["type"]
        if kind not in VERCEL:
            wrong.append(f"unknown type {kind}")
        head, _, tail = kind.rpartition("-")
        if head in ("text", "reasoning"):
            _bracket(wrong, open_, head, tail, chunk["id"])
        elif head == "tool-input":
            id = chunk["toolCallId"]
            _bracket(wrong, open_, "tool", _TAILS.get(tail, tail), id)
            if tail in ("available", "error"):
                calls.add(id)
        elif kind in ("start-step", "finish-step"):
            _bracket(wrong, open_, "step", "start" if kind == "start-step" else "end", "")
        elif "toolCallId" in chunk and chunk["toolCallId"] not in calls:
            wrong.append(f"{kind} of a call that is not whole")
        if kind in ("error", "abort", "finish") and open_:
            wrong.append(f"{kind} while {sorted(open_)} is open")
    return wrong


_TAILS = {"available": "end", "error": "end"}


def _bracket(wrong: list[str], open_: set[tuple[str, str]], what: str, verb: str, id: str) -> None:
    place = (what, id)
    if verb == "start":
        if place in open_:
            wrong.append(f"{place} opened twice")
        open_.add(place)
    elif place not in open_:
        wrong.append(f"{verb} of {place}, which is not open")
    elif verb == "end":
        open_.discard(place)


AG_UI = {
    "TEXT_MESSAGE_START": ("text", "start"), "TEXT_MESSAGE_CONTENT": ("text", "delta"),
    "TEXT_MESSAGE_END": ("text", "end"), "REASONING_START": ("span", "start"),
    "REASONING_END": ("span", "end"), "REASONING_MESSAGE_START": ("reasoning", "start"),
    "REASONING_MESSAGE_CONTENT": ("reasoning", "delta"),
    "REASONING_MESSAGE_END": ("reasoning", "end"), "TOOL_CALL_START": ("tool", "start"),
    "TOOL_CALL_ARGS": ("tool", "delta"), "TOOL_CALL_END": ("tool", "end"),
    "STEP_STARTED": ("step", "start"), "STEP_FINISHED": ("step", "end"),
}  # fmt: skip
AG_UI_OTHERS = {
    "RUN_STARTED", "RUN_FINISHED", "RUN_ERROR", "TOOL_CALL_RESULT", "CUSTOM",
    "REASONING_ENCRYPTED_VALUE",
}  # fmt: skip


def ag_ui_complaints(payloads: list[bytes]) -> list[str]:
    """What an AG-UI client would object to, or be left with."""
    wrong: list[str] = []
    open_: set[tuple[str, str]] = set()
    ended: set[str] = set()
    events = [json.loads(p) for p in payloads]
    kinds = [event["type"] for event in events]
    if kinds[0] != "RUN_STARTED" or kinds[-1] not in ("RUN_FINISHED", "RUN_ERROR"):
        wrong.append("does not begin with RUN_STARTED and end with an end")
    if sum(kind in ("RUN_STARTED", "RUN_FINISHED", "RUN_ERROR") for kind in kinds) != 2:
        wrong.append("more than one run")
    for event in events:
        kind = event["type"]
        if kind in AG_UI:
            what, verb = AG_UI[kind]
            id = event.get("messageId") or event.get("toolCallId") or event.get("stepName")
            _bracket(wrong, open_, what, verb, id)
            if kind == "TOOL_CALL_END":
                ended.add(id)
        elif kind not in AG_UI_OTHERS:
            wrong.append(f"unknown type {kind}")
        if kind == "TOOL_CALL_RESULT" and event["toolCallId"] not in ended:
            wrong.append("a result of a call that has not ended")
    if open_:
        wrong.append(f"{sorted(open_)} is left open")
    return wrong


# --- any telling ----------------------------------------------------------------------------------

_ids = st.sampled_from(["a", "b", "a_2", "", "<script>"])
_ordinals = st.integers(0, 2)
_texts = st.sampled_from(["", "x", "</script>&\u2028", "é" * 3])
_echo = st.sampled_from([{"type": "thinking", "signature": "s"}, {"sig": 1}])
_agents = st.sampled_from(["main", "<b>", ""])
_types = st.sampled_from(["image/png", "audio/pcm", "text/html"])
_bytes = st.sampled_from([None, b"", b"<script>"])
_urls = st.sampled_from([None, "https://example.org/a", "javascript:alert(1)"])
_args = st.sampled_from([{}, {"n": 2**70}, {"code": "<b>"}])


def _call(ordinal: int, id: str, arguments: dict[str, Any], choice: int) -> ToolCall:
    return ToolCall(ordinal, id or "a", "pay", arguments, json.dumps(arguments), choice=choice)


_calls = st.builds(_call, _ordinals, _ids, _args, st.integers(0, 1))

events = st.one_of(
    st.builds(StreamStart, st.just("anthropic")),
    st.builds(TextDelta, _texts, st.integers(0, 1), st.integers(0, 1)),
    st.builds(TextDelta, _texts, st.integers(0, 1), st.integers(0, 1), _echo),
    st.builds(ReasoningDelta, _texts, st.integers(0, 1), st.integers(0, 1)),
    st.builds(ReasoningDelta, _texts, st.integers(0, 1), st.just(0), _echo),
    st.builds(TextDelta, _texts, st.just(0), st.integers(0, 1), agent=_agents),
    st.builds(ReasoningDelta, _texts, st.just(0), st.just(0), agent=_agents),
    st.builds(Media, st.integers(0, 1), _types, _bytes, choice=st.integers(0, 1)),
    st.builds(Media, st.integers(0, 1), _types, url=_urls, agent=_agents),
    st.builds(ToolCallStart, _ordinals, _ids, st.just("pay")),
    st.builds(ToolCallDelta, _ordinals, st.sampled_from(["{", '"n":', "print(1)", " ", ""])),
    _calls,
    st.builds(
        BrokenToolCall, _ordinals, _ids, st.sampled_from(["", "pay"]), _texts,
        st.just("truncated"),
    ),
    st.builds(ToolProgress, st.none() | _ordinals, _ids, st.just("searching")),
    st.builds(ToolStarted, _ordinals, _ids, st.just("f"), st.just("c")),
    st.builds(ToolEnded, _ordinals, _ids, st.just("f"), st.just("c"), st.just("ok"), st.just(0.5)),
    st.builds(ProviderToolResult, st.none() | _ordinals, _ids, _texts, st.booleans()),
    st.builds(Citation, st.just(0), st.sampled_from([{}, None, {"url": "https://a.b/"}, [1]])),
    st.builds(Usage, st.just(3), st.just(4)),
    st.builds(Finish, st.sampled_from(["stop", "tool_calls", "refusal"])),
    st.builds(Failed, st.sampled_from(["truncated", "cancelled"]), st.just("no")),
    st.builds(RecorderFailed, st.just("a.sse"), st.just("full")),
    st.builds(Unrecognized, st.just("odd"), st.just({})),
    st.builds(ToolResult.for_call, _calls, _texts, st.booleans()),
    st.builds(Approval, _ids, _calls),
    st.builds(Denied, _calls, _texts),
)  # fmt: skip
tellings = st.lists(events, max_size=25)
