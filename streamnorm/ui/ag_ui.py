"""Events come in; AG-UI events go out, for clients of protocol 1.0 and for those before it (0.0.59).

Rule: a client ends the run with an error if an event comes out of order, so none does: ``RUN_STARTED``
first; text, calls, reasoning and steps opened, told and closed; nothing open at ``RUN_FINISHED``;
nothing after ``RUN_ERROR``. What only 1.0 clients know (outcome ``cancelled``) is sent to them alone.

AG-UI has no broken calls and no changed arguments. A broken call is ended and answered at once with
the reason, so that it is neither run nor left pending; and where the closing copy of the arguments
differs from what was streamed, the streamed call is ended in that way and told again as it is.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, Iterable, Mapping
from typing import Any

from .. import fold as f
from ..events import BrokenToolCall, Failed, Finish, ToolCall
from ..text.written import (
    HOLE,
    form,
    in_base64,
    json_text,
    phrase,
    phrased,
    safe_json,
    safe_text,
)
from ..tools import File
from ._cited import sources_of
from ._encoder import (
    CUT_OFF,
    SSE_HEADERS,
    UNAVAILABLE,
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
    safe_name,
    stream_facts,
    token_facts,
    without_none,
)
from ._open import Openings, Table
from ._pace import WITHIN, Encoded

__all__ = ["HEADERS", "Encoder", "encode", "lost"]

HEADERS = dict(SSE_HEADERS)
VERSION = "1.0"

# What an interrupt wants to be answered. ``editedArgs`` in it says that clients may offer to edit.
ANSWER = {
    "type": "object",
    "properties": {
        "approved": {"type": "boolean"},
        "reason": {"type": "string", "description": "Why not."},
        "editedArgs": {
            "type": "object",
            "description": "All arguments to run the tool with, instead of the model's.",
        },
    },
    "required": ["approved"],
}


class Encoder(MoveEncoder):
    """One run of AG-UI.

    ``protocol_version`` is what the request said; without one the client is older than 1.0. ::

        encoder = ag_ui.Encoder(thread_id="t1", run_id="r1", protocol_version="1.0")
        yield encoder.feed(event)
        yield encoder.close()

    >>> Encoder(thread_id="t1", run_id="r1").feed()
    b'data: {"type":"RUN_STARTED","threadId":"t1","runId":"r1"}\\n\\n'
    """

    CALL_START = form(
        safe_json({"type": "TOOL_CALL_START", "toolCallId": HOLE, "toolCallName": HOLE,
                   "parentMessageId": HOLE})
    )  # fmt: skip
    CALL_PIECE = form(phrase({"type": "TOOL_CALL_ARGS", "toolCallId": HOLE, "delta": ""}))

    def __init__(
        self,
        *,
        thread_id: str | None = None,
        run_id: str | None = None,
        protocol_version: str | None = None,
        message_id: str | None = None,
        used: Iterable[str] = (),
        known: Mapping[str, str] | None = None,
        echo: bool = True,
        error_text: ErrorText = plain_error,
    ) -> None:
        super().__init__(used=used, known=known, echo=echo, error_text=error_text)
        self.thread_id = thread_id or new_id("thread")
        self.run_id = run_id or new_id("run")
        self.message_id = message_id or new_id("msg")
        self._modern = is_modern(protocol_version)
        self._heads: dict[f.Call, bytes] = {}  # phrases of calls of which no arguments are told yet
        self._held: dict[f.Call, list[str]] = {}  # arguments that are not told yet
        self._code: set[f.Call] = set()  # calls whose arguments are no JSON: told when whole
        self._runs: dict[str, list[f.Run]] = {}  # by message: those that are closed
        self._results = 0
        self._agents: dict[str, int] = {}  # who has spoken, in their order

    def _start(self) -> list[Told]:
        version = {"protocolVersion": VERSION} if self._modern else {}
        return [{"type": "RUN_STARTED", **self._run_ids(), **version}]

    def _finish(self, failed: Failed | None) -> list[Told]:
        if failed is not None and (failed.reason != "cancelled" or not self._modern):
            return [self._run_error(failed)]
        event: Frame = {"type": "RUN_FINISHED", **self._run_ids()}
        if failed is not None:
            event["outcome"] = {"type": "cancelled"}
        elif interrupts := self._interrupts():
            event["outcome"] = {"type": "interrupt", "interrupts": interrupts}
        if isinstance(end := self._fold.end, Finish):
            event["metadata"] = {"streamnorm": {"finishReason": end.reason}}
        return [{**event, **self._usage()}]

    def _run_error(self, failed: Failed) -> Frame:
        event = {"type": "RUN_ERROR", "message": self._error_text(failed), "code": failed.reason}
        return {**event, **self._usage()}

    def _run_ids(self) -> Frame:
        return {"threadId": self.thread_id, "runId": self.run_id}

    def _interrupts(self) -> list[Told]:
        return [
            without_none(
                id=approval.id, reason="tool_call", toolCallId=call.id,
                message=approval.reason or None, responseSchema=ANSWER,
            )
            for call, approval in self._fold.waiting
        ]  # fmt: skip

    def _usage(self) -> Frame:
        spent = [
            without_none(provider=start and start.provider, model=start and start.model)
            | token_facts(usage)
            for start, usage in self._fold.usage
        ]
        return {"usage": spent} if self._modern and spent else {}

    # --- steps, text, reasoning -------------------------------------------------------------------

    def _step(self, move: f.Step) -> list[Told]:
        event: Frame = {"type": "STEP_STARTED", "stepName": f"step-{move.number}"}
        if move.start is not None:
            event["metadata"] = {"streamnorm": stream_facts(move.start)}
        return [event]

    def _step_end(self, move: f.StepEnd) -> list[Told]:
        return [{"type": "STEP_FINISHED", "stepName": f"step-{move.number}"}]

    def _piece(self, run: f.Run) -> Frame:
        kind = "TEXT_MESSAGE" if run.kind == "text" else "REASONING_MESSAGE"
        return {"type": f"{kind}_CONTENT", "messageId": self._run_id(run), "delta": ""}

    def _run_open(self, move: f.RunOpen) -> list[Told]:
        id, run = self._run_id(move.run), move.run
        said_by = _said_by(run.agent)
        if run.kind == "text":
            name = {} if run.agent is None else {"name": run.agent}
            start = {"type": "TEXT_MESSAGE_START", "messageId": id, "role": "assistant"}
            return [{**start, **name, **said_by}]
        return [
            {"type": "REASONING_START", "messageId": id, **said_by},
            {"type": "REASONING_MESSAGE_START", "messageId": id, "role": "reasoning", **said_by},
        ]

    def _run_text(self, move: f.RunText) -> list[Told]:
        return [phrased(self._phrase(move.run), "".join(move.pieces))]

    def _run_close(self, move: f.RunClose) -> list[Told]:
        id, run = self._run_id(move.run), move.run
        self._phrases.pop(run, None)
        echoes = self._kept(id, run)
        if run.kind == "text":
            return [{"type": "TEXT_MESSAGE_END", "messageId": id}, *echoes]
        return [
            {"type": "REASONING_MESSAGE_END", "messageId": id},
            *echoes,
            {"type": "REASONING_END", "messageId": id},
        ]

    def _kept(self, id: str, run: f.Run) -> list[Told]:
        """What is to come back with a message: clients keep the last value, so it holds them all."""
        runs = self._runs.setdefault(id, [])
        runs.append(run)
        if not run.echoes:
            return []
        echoes, marks = f.echoes_of(runs)
        return [_encrypted("message", id, json_text({"echoes": echoes, "marks": marks}))]

    def _shown(self, move: f.Shown) -> list[Told]:
        """No message of the protocol holds media of an assistant: told beside it, as its own part."""
        medium, url = move.medium, address_of(move.medium)
        message = self._message(medium.step, medium.agent)
        value: Frame = {"messageId": message, "part": medium.part, **medium_facts(medium)}
        if url is None:
            return [_custom("media", {**value, "mimeType": medium.type})]
        source: Frame = {"type": "url", "value": url, "mimeType": medium.type}
        if (data := medium.data) is not None:
            source = {"type": "data", "value": in_base64(data), "mimeType": medium.type}
        kind = File(b"", medium.type).modality
        return [_custom("media", {**value, "content": {"type": kind, "source": source}})]

    def _run_id(self, run: f.Run) -> str:
        """All text of a step is one message, that of another type, choice or agent apart."""
        if run.kind == "reasoning":
            return f"{self.message_id}-{run.step}-r{run.number}"
        apart = f"-c{run.choice}" if run.choice else ""
        return self._message(run.step, run.agent) + apart + (f"-t{run.number}" if run.type else "")

    def _message(self, step: int, agent: str | None) -> str:
        if agent is None:
            return f"{self.message_id}-{step}"
        voice = self._agents.setdefault(agent, len(self._agents) + 1)
        return f"{self.message_id}-{step}-a{voice}"

    def _cited(self, move: f.Cited) -> list[Told]:
        sources = [
            without_none(title=s.title, url=s.url, filename=s.filename)
            for s in sources_of(move.event.payload)
        ]
        value = {"part": move.event.part, "sources": sources, "citation": move.event.payload}
        return [_custom("citation", value)]

    # --- calls ------------------------------------------------------------------------------------

    def _begun(self, call: f.Call) -> Told:
        id = safe_text(call.id)
        self._heads[call] = self.CALL_PIECE % id
        if call.by_provider:
            return self._opened_call(call.id, call)
        message = safe_name(self._message(call.step, call.agent))
        return self.CALL_START % (id, safe_name(call.name), message)

    def _opened_call(self, id: str, call: f.Call) -> Frame:
        event: Frame = {
            "type": "TOOL_CALL_START",
            "toolCallId": id,
            "toolCallName": call.name,
            "parentMessageId": self._message(call.step, call.agent),
        }
        if call.by_provider:
            event["metadata"] = {"streamnorm": {"providerExecuted": True}}
        return event

    def _call_text(self, move: f.CallText) -> list[Told]:
        """Clients take arguments for JSON. Code and other text is held until its object is whole."""
        call = move.call
        if call in self._phrases:
            return [phrased(self._phrases[call], "".join(move.pieces))]
        text = move.text
        self._held.setdefault(call, []).append(text)
        start = "" if call in self._code else text.lstrip()
        if not start:
            return []
        if not start.startswith("{"):
            self._code.add(call)
            return []
        return [phrased(self._argued(call), "".join(self._held.pop(call)))]

    def _ready(self, part: f.Run | f.Call, text: str) -> bytes | None:
        if not isinstance(part, f.Call):
            return self._phrase(part)
        return self._argued(part) if text.startswith("{") and part not in self._held else None

    def _argued(self, call: f.Call) -> bytes:
        """The phrase of a call whose arguments are told from here on."""
        head = self._phrases[call] = self._heads.pop(call)
        return head

    def _whole(self, call: f.Call, event: ToolCall) -> list[Frame]:
        if self._phrases.pop(call, None) is not None:  # told as it came, and not held
            told = "".join(call.pieces)
        else:
            told = ""
            self._forget(call)
        raw = event.raw
        text = raw if raw.startswith("{") else _json_of(event)
        metadata = {"streamnorm": _facts(call, event)}
        if text == told:
            return self._ended(call.id, metadata, event)
        if text.startswith(told):
            rest = _args(call.id, text[len(told) :])
            return [rest, *self._ended(call.id, metadata, event)]
        again = self._fold.unique(call.id)
        events = self._gone(call.id, "the arguments were told again, as they are", "superseded")
        call.id = again
        return [
            *events,
            self._opened_call(again, call),
            _args(again, text),
            *self._ended(again, metadata, event),
        ]

    def _forget(self, call: f.Call) -> None:
        self._phrases.pop(call, None)
        self._heads.pop(call, None)
        self._held.pop(call, None)
        self._code.discard(call)

    def _ended(self, id: str, metadata: Frame, event: ToolCall) -> list[Frame]:
        end: Frame = {"type": "TOOL_CALL_END", "toolCallId": id, "metadata": metadata}
        if self._echo and event.echo:
            return [end, _encrypted("tool-call", id, json_text(event.echo))]
        return [end]

    def _call_broken(self, move: f.CallBroken) -> list[Told]:
        call, rest = move.call, []
        if call in self._held:
            rest = [_args(call.id, "".join(self._held[call]))]
        self._forget(call)
        end: Frame = {"type": "TOOL_CALL_END", "toolCallId": call.id}
        end["metadata"] = {"streamnorm": _facts(call, move.event)}
        return [*rest, end, self._error_result(call.id, broken_text(move.event))]

    def _gone(self, id: str, why: str, reason: str) -> list[Frame]:
        end: Frame = {"type": "TOOL_CALL_END", "toolCallId": id}
        end["metadata"] = {"streamnorm": {"broken": reason}}
        return [end, self._error_result(id, why)]

    def _progress(self, move: f.Progress) -> list[Told]:
        return [_custom("tool_progress", progress_facts(move))]

    # --- results and approvals --------------------------------------------------------------------

    def _result(self, move: f.Result) -> list[Told]:
        if move.event.is_error:
            return [self._error_result(move.call.id, as_text(move.output))]
        return [self._answered(move.call.id, as_text(move.output), {})]

    def _error_result(self, id: str, text: str) -> Frame:
        return self._answered(id, text, {"metadata": {"streamnorm": {"isError": True}}})

    def _answered(self, id: str, content: str, more: Frame) -> Frame:
        self._results += 1
        return {
            "type": "TOOL_CALL_RESULT",
            "messageId": f"{self.message_id}-result-{self._results}",
            "toolCallId": id,
            "content": content,
            "role": "tool",
            **more,
        }

    def _orphan(self, move: f.Orphan) -> list[Told]:
        return [_custom("orphan_result", orphan_facts(move))]

    def _asked(self, move: f.Asked) -> list[Told]:
        value = without_none(
            id=move.approval.id, toolCallId=move.call.id, reason=move.approval.reason or None
        )
        return [_custom("approval_request", value)]

    def _refused(self, move: f.Refused) -> list[Told]:
        return [self._error_result(move.call.id, f.denial(move.reason))]


def encode(events: AsyncIterable[Item], *, within: float = WITHIN, **options: Any) -> Encoded:
    """The AG-UI events of these events, as bytes to send.

    Small pieces that come within ``within`` seconds of each other are merged; the other options are
    those of ``Encoder``.
    """
    return Encoded(events, Encoder(**options), within)


def lost(payloads: Iterable[bytes], why: str = CUT_OFF) -> list[bytes]:
    """How to end a run whose producer has died, given all payloads that it left."""
    told = Openings()
    for payload in payloads:
        told.hear(payload, OPENERS, CLOSERS)
    if told.ended:
        return []
    ends = [_end_of(event) for event in told.open.values()]
    code = "unavailable" if why == UNAVAILABLE else "lost"
    return [*map(safe_json, ends), safe_json({"type": "RUN_ERROR", "message": why, "code": code})]


OPENERS: Table = {
    "TEXT_MESSAGE_START": ("text", "messageId"),
    "REASONING_MESSAGE_START": ("reasoning", "messageId"),
    "REASONING_START": ("span", "messageId"),
    "TOOL_CALL_START": ("tool", "toolCallId"),
    "STEP_STARTED": ("step", "stepName"),
}
CLOSERS: Table = {
    "TEXT_MESSAGE_END": ("text", "messageId"),
    "REASONING_MESSAGE_END": ("reasoning", "messageId"),
    "REASONING_END": ("span", "messageId"),
    "TOOL_CALL_END": ("tool", "toolCallId"),
    "STEP_FINISHED": ("step", "stepName"),
    "RUN_FINISHED": ("end", None),
    "RUN_ERROR": ("end", None),
}
_ENDS = {what: (kind, key) for kind, (what, key) in CLOSERS.items() if key is not None}


def _end_of(opened: Frame) -> Frame:
    kind, key = _ENDS[OPENERS[opened["type"]][0]]
    end = {"type": kind, key: opened[key]}
    if kind == "TOOL_CALL_END":
        end["metadata"] = {"streamnorm": {"broken": "truncated"}}
    return end


def is_modern(version: str | None) -> bool:
    """Does a client that says this speak 1.0 or later?

    >>> is_modern("1.0"), is_modern(None), is_modern("0.9")
    (True, False, False)
    """
    major = (version or "0").split(".", 1)[0]
    return major.isdigit() and int(major) >= 1


def _json_of(call: ToolCall) -> str:
    """The arguments as JSON text: the wire's own where it is that."""
    return call.raw if call.raw.lstrip().startswith("{") else json_text(call.arguments)


def _facts(call: f.Call, event: ToolCall | BrokenToolCall) -> Frame:
    facts = call_metadata(event)
    if call.by_provider:
        facts["providerExecuted"] = True
    return facts


def _args(id: str, text: str) -> Frame:
    return {"type": "TOOL_CALL_ARGS", "toolCallId": id, "delta": text}


def _custom(name: str, value: Frame) -> Frame:
    return {"type": "CUSTOM", "name": f"streamnorm.{name}", "value": value}


def _said_by(agent: str | None) -> Frame:
    return {} if agent is None else {"metadata": {"streamnorm": {"agent": agent}}}


def _encrypted(subtype: str, id: str, value: str) -> Frame:
    return {
        "type": "REASONING_ENCRYPTED_VALUE",
        "subtype": subtype,
        "entityId": id,
        "encryptedValue": value,
    }
