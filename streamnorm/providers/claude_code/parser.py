"""Claude Code: lines of the program's output or of a saved session in, one answer's events out.

    system(init) -> answer* -> result                            stream-json, on standard output
    answer = stream_event(event of the Messages wire)*            with partial messages; else
             assistant(message, one block or more of it)+         one line for each block
             user(tool_result)*                                   what came out of its tools
    a saved session: assistant and user alike, between lines of the program's own

One answer of the model is one stream, and this parser reads one. The program runs the tools itself,
so calls run on the provider's side, and what came out of them is told in the stream of the answer that
called: that is over when it has ended and all its calls are answered. What came out of a call that was
closed says that it was whole. A whole message that is said in partial ones as well is a copy: the inputs
in it state those of its calls, and are held against the pieces when their blocks stop. A line that is
said twice (its ``uuid``, the id of its call) is told once. Without partial messages nothing says that an
answer has ended, but the next thing that happens: another answer, a question of the user, the result.

Whose an answer is stands in its lines: ``parent_tool_use_id`` (``agentId`` in a saved session) is the
``agent`` of each event; the main one has none. What else a line says is the program's own.
"""

from __future__ import annotations

from typing import Any, ClassVar, TypeAlias

import msgspec
from msgspec import Raw

from ...core import even
from ...core.calls import Call, Evidence, Kind, State
from ...core.copies import same_value
from ...core.parser import (
    Failure,
    Handler,
    Heading,
    StreamFailed,
    StreamOver,
    decoder_of,
    first_text,
    items_of,
    silent_kinds,
)
from ...events import Event, TextDelta
from ...framing import Framer
from ...framing.lines import Lines
from ...limits import LimitReached
from ...text.written import json_bytes
from ..anthropic.parser import (
    CALLS,
    AnthropicParser,
    BlockDelta,
    BlockStart,
    BlockStop,
    MessageStart,
    MessageStop,
    Payloads,
    input_in,
)
from ..anthropic.parser import ITEMS as BLOCKS
from .lanes import is_line

__all__ = ["ITEMS", "KNOWN", "PARSER", "SUBTYPES", "ClaudeCodeParser"]

Out: TypeAlias = list[Event]

# --- the lines ----------------------------------------------------------------------------------
# Of a line that frames an answer we read what is about the answer; the rest is the program's own.


class _Line(msgspec.Struct, gc=False):
    parent_tool_use_id: str | None = None
    agent_id: str | None = msgspec.field(default=None, name="agentId")
    uuid: str | None = None

    @property
    def agent(self) -> str | None:
        return self.parent_tool_use_id or self.agent_id


class StreamEvent(_Line, tag="stream_event", tag_field="type", kw_only=True):
    event: Payloads
    session_id: Any = None


class Assistant(_Line, tag="assistant", tag_field="type", kw_only=True):
    message: Raw
    error: Any = None
    is_error: bool | None = msgspec.field(default=None, name="isApiErrorMessage")


class User(_Line, tag="user", tag_field="type", kw_only=True):
    message: Raw
    is_meta: bool | None = msgspec.field(default=None, name="isMeta")


class _Beside(_Line, kw_only=True):
    """A line of the program's own."""

    event: Any = None  # no such line has one: it is a piece of an answer that lost its kind


class System(_Beside, tag="system", tag_field="type", kw_only=True):
    subtype: str | None = None
    tool_use_id: str | None = None
    status: Any = None
    description: Any = None
    usage: Any = None
    last_tool_name: Any = None
    summary: Any = None


class Progress(_Beside, tag="tool_progress", tag_field="type", kw_only=True):
    tool_use_id: str | None = None
    elapsed_time_seconds: Any = None


class Result(_Line, tag="result", tag_field="type", kw_only=True):
    subtype: str | None = None
    is_error: bool | None = None
    result: Any = None
    errors: Any = None
    stop_reason: str | None = None
    api_error_status: Any = None


class _Opening(msgspec.Struct, frozen=True):
    id: str | None = None
    model: str | None = None


class _Event(msgspec.Struct, frozen=True):
    message: _Opening = _Opening()


class _Header(msgspec.Struct):
    event: _Event = _Event()
    message: _Opening = _Opening()


# Lines that are known and of no use to us: of the output, of the SDKs, of saved sessions.
KNOWN = (
    "agent-name", "ai-title", "attachment", "auth_status", "control_cancel_request",
    "control_request", "control_response", "conversation_reset", "custom-title",
    "file-history-snapshot", "keep_alive", "last-prompt", "mode", "permission-mode", "pr-link",
    "progress", "prompt_suggestion", "queue-operation", "rate_limit_event", "summary", "tag",
    "tool_use_summary", "transcript_mirror",
)  # fmt: skip
# What lines of ``system`` are about, and what they say of the call that they name.
SUBTYPES = {
    "task_started": "started",
    "task_progress": "progress",
    "task_notification": "ended",
}

ITEMS = tuple(item._replace(runs_on="provider") for item in BLOCKS)
_RUN_THERE = {type_: Kind(kind.family, "provider") for type_, kind in CALLS.items()}
_SYNTHETIC = "<synthetic>"  # the model of what the program itself says
_REMEMBERED = 1024  # names of lines, to know one that comes again
_COPIES = 3  # of one call: that they differ is known by then
_Copy: TypeAlias = tuple[str | None, str]  # the name of a call, and its input
_MISPLACED = "a piece of an answer stands in a line of another kind"
_FOREIGN = "a piece of another session's answer came between"
_NEXT = "the next answer began before this one had ended"

# --- the way in ---------------------------------------------------------------------------------


class ClaudeCodeParser(AnthropicParser):
    """One answer, and what came out of its calls."""

    name = "claude_code"
    END = "message_stop and the results of all calls, the next answer, or the result"
    MARKED = False
    CALLED = _RUN_THERE
    EVIDENCE = Evidence(
        "content_block_stop of its index, or its whole block in an assistant line",
        "the assistant line beside partial messages, which comes before content_block_stop",
        "a known stop_reason, or what can only follow an answer: a result, the next one",
        "at content_block_stop, or at its assistant line",
    )
    CALL_TEXTS = ("event.delta.partial_json",)
    CALL_KEYS = ("event.index", "parent_tool_use_id", "agentId")
    QUIRKS: ClassVar[dict[str, tuple[str, even.Quirk]]] = {
        "event.index": ("wire.shape_odd", even.integer)
    }

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._agent: str | None = None
        self._message: str | None = None  # the id of the answer
        self._session: Any = None  # and that of the session that it is of
        self._heard = False  # anything of it
        self._whole = False  # it is told in whole blocks
        self._replied = False  # … and something came out of its calls
        self._partial = False  # it is told in pieces
        self._stopped = False  # … and they have ended
        self._next = 0  # the index of the next whole block
        self._answered: set[str] = set()
        self._settled = 0  # the first calls, which are all answered
        self._lines: dict[str, None] = {}  # the last ones that were heard, by their names
        # Id of a call -> its name and its input, as whole messages state them.
        self._copies: dict[str, list[_Copy]] = {}
        self._copied = 0  # characters of them

    @classmethod
    def framer(cls, start: str, limit: int) -> Framer:
        return Lines(limit)

    @classmethod
    def looks_like(cls, payload: dict[str, Any]) -> bool:
        return is_line(payload)

    def heading(self, data: bytes) -> Heading:
        header = msgspec.json.decode(data, type=_Header)
        said = header.event.message if header.event.message.id else header.message
        return Heading(said.model, said.id)

    def calls_named(self, payload: dict[str, Any]) -> list[Call] | None:
        event = payload.get("event")
        return super().calls_named(event) if isinstance(event, dict) else None

    def unknown(self, payload: Any, why: str, out: Out) -> None:
        """A line that cannot be read may still say of which answer it is."""
        if isinstance(payload, dict) and payload.get("type") == "assistant":
            self._message = self._message or _id_of(payload.get("message"))
        super().unknown(payload, why, out)

    # --- in pieces ------------------------------------------------------------------------------

    def _stream_event(self, p: StreamEvent, out: Out) -> None:
        event, since = p.event, len(out)
        if self._is_of_another(p) or self._is_again(p):
            return
        if type(event) is MessageStart:
            if self._partial or self._whole:
                self._end(cut=_NEXT)
            self._message, self._session = _id_of(event.message), p.session_id
        self._agent, self._heard = p.agent, True
        self._partial = self._partial or type(event) in _PIECES
        foreign = self._is_foreign(p)
        if foreign:
            self.calls.lossy = _FOREIGN
        try:
            INNER[type(event)](self, event, out)
        finally:
            if foreign:
                self.calls.lossy = ""
                self.calls.taint_open(_FOREIGN)
            self._sign(out, since)

    def _is_foreign(self, p: StreamEvent) -> bool:
        """Is it of another session? No answer is of two."""
        self._session = self._session or p.session_id
        return p.session_id not in (None, self._session)

    def _sign(self, out: Out, since: int) -> None:
        """Who spoke stands on every event that can say it."""
        if self._agent is None:
            return
        for call in self.calls.unfinished():
            call.agent = self._agent
        for at in range(since, len(out)):
            if hasattr(out[at], "agent"):
                out[at] = msgspec.structs.replace(out[at], agent=self._agent)

    def _message_stop(self, p: MessageStop, out: Out) -> None:
        if self.reason is None:  # said to be over, but never how
            self.reason = self.finish_reason(None)
        self._stopped = True
        if not self._unanswered():
            raise StreamOver
        self.end_of_calls(out)  # before what comes out of them
        self.calls.end_turn(out, self.reason)

    def _unanswered(self) -> bool:
        # Asked at every result: those of which all before them are answered are not looked at again.
        calls = self.calls.all
        while self._settled < len(calls) and calls[self._settled].id in self._answered:
            self._settled += 1
        return self._settled < len(calls)

    # --- whole messages -------------------------------------------------------------------------

    def _is_of_another(self, p: StreamEvent | Assistant) -> bool:
        """Agents speak at the same time: each answer is a stream, and this one is begun."""
        other = (self._partial or self._whole) and p.agent != self._agent
        if other:
            self.scribe.note("stream.of_another", agent=p.agent)
        return other

    def _assistant(self, p: Assistant, out: Out) -> None:
        if self._is_of_another(p):
            return None
        said, _ = self.sound(p.message)
        message = said if isinstance(said, dict) else {}
        if message is not said:
            self.calls.taint_open("a message could not be read")
        self._refused(p, message)
        id = _id_of(message)
        if self._is_next(id):
            self._end(cut=_NEXT)
        if self._partial:
            self._message = self._message or id
            return self._copy(p.message, message, out)
        if self._is_again(p):
            return None
        self._heard = self._whole = True
        since, self._message, self._agent = len(out), id or self._message, p.agent
        self._count(message.get("usage"))
        ended, self.reason = self.reason, None  # every line of an answer may say how it ended
        try:
            self._blocks_of(p.message, message, out)
        finally:
            self.reason = ended
            self._sign(out, since)
        if raw := first_text(message.get("stop_reason")):
            self.end_with(raw)

    def _is_again(self, p: _Line) -> bool:
        """Was this very line heard before? The last ones are remembered."""
        name = p.uuid
        if name is None or len(name) > self.calls.limits.id:
            return False
        if name in self._lines:
            self.scribe.note("stream.repeated", name=name)
            return True
        self._lines[name] = None
        if len(self._lines) > _REMEMBERED:
            del self._lines[next(iter(self._lines))]
        return False

    def _copy(self, raw: Raw, message: dict[str, Any], out: Out) -> None:
        """A whole message beside its pieces. What could not be read of it states nothing, and not that a
        call without pieces is empty."""
        exact, content = [], items_of(message.get("content"))
        if not self.calls.lossy:
            exact = _exact_blocks(bytes(raw))
            self.calls.lost |= len(exact) < len(content)
        self.calls.lossy = ""
        for block, text in zip(content, exact, strict=False):
            if isinstance(block, dict) and isinstance(block.get("input"), dict):
                if block.get("type") in CALLS:
                    self._copy_of_call(block, input_in(text), out)
                else:  # a call that lost its type, and perhaps not that alone
                    self.calls.lost = True

    def _copy_of_call(self, block: dict[str, Any], text: str, out: Out) -> None:
        """It waits for the end of the pieces, some of which may still come."""
        id = first_text(block.get("id")) or ""
        copy = first_text(block.get("name")), text
        is_new = self._keep_copy(id, copy)
        call = self.calls.by_id(0, id)
        if call is not None:  # else its pieces may come behind it
            self.calls.hear(call, out, name=copy[0])
            if is_new and call.state >= State.CLOSED:
                self.calls.settle(call, text, out)

    def _keep_copy(self, id: str, copy: _Copy) -> bool:
        """Does it say anything that no copy of a call of this id has said?"""
        limits = self.calls.limits
        if not 0 < len(id) <= limits.id:
            return False
        copies = self._copies.setdefault(id, [])
        if copy in copies or len(copies) == _COPIES:
            return False
        copies.append(copy)
        self._copied += len(copy[0] or "") + len(copy[1])
        if len(self._copies) > limits.calls:
            raise LimitReached("calls", limits.calls)
        if self._copied > limits.arguments_total:
            raise LimitReached("arguments_total", limits.arguments_total)
        return True

    def _settle(self, call: Call, out: Out) -> None:
        """What whole messages state of the calls of this id, against its pieces: what differs comes last.
        Once it is closed, each new copy is looked at as it comes."""
        copies = self._copies.get(call.wire_id or "", []) if call.state < State.CLOSED else []
        if len(copies) > 1:
            copies = sorted(copies, key=lambda copy: same_value(copy[1], call.raw), reverse=True)
        for name, text in copies:
            self.calls.hear(call, out, name=name)
            self.calls.settle(call, text, out)

    def _block_stop(self, p: BlockStop, out: Out) -> None:
        call = self._blocks.get(p.index)
        if call is not None:
            self._fill_from_start(call, out)
            self._settle(call, out)
            self.calls.close(call, out)

    def end_of_calls(self, out: Out) -> None:
        super().end_of_calls(out)
        for call in self.calls.unfinished():
            self._settle(call, out)

    def _is_next(self, id: str | None) -> bool:
        """Is a line of this id, or of none, of the next answer?"""
        if id is None:
            return self._replied and not self._partial
        return self._message is not None and id != self._message

    def _blocks_of(self, raw: Raw, message: dict[str, Any], out: Out) -> None:
        exact = _exact_blocks(bytes(raw))
        if len(exact) < len(items_of(message.get("content"))):
            self.calls.lossy = "half of a character of its message never came"
        for at, block in enumerate(items_of(message.get("content"))):
            text = exact[at] if at < len(exact) else b"{}"
            if self._is_told(block):
                continue
            self._start_block(block, text, self._next, out)
            self._give_nothing(block)
            self._block_stop(BlockStop(self._next), out)
            self._next += 1
        self.calls.lossy = ""

    def _is_told(self, block: Any) -> bool:
        """A call of this id was told before: that line was said once more."""
        id = first_text(block.get("id")) if isinstance(block, dict) else None
        told = self.calls.by_id(0, id or "") is not None and block.get("type") in CALLS
        if told:
            self.scribe.note("call.start_repeated", call_id=id)
        return told

    def _give_nothing(self, block: Any) -> None:
        """A whole block says its whole input: none is all of it, too. One that says none was damaged."""
        call = self._blocks.get(self._next)
        if call is not None and block.get("input") == {}:
            call.given = "{}"
        elif call is not None and not block.get("input"):
            self.calls.taint(call, "its block does not say its input")

    def _refused(self, p: Assistant, message: dict[str, Any]) -> None:
        """What the program says in the model's place: that it could not be asked."""
        if not (p.error or p.is_error or message.get("model") == _SYNTHETIC):
            return
        texts = [b.get("text") for b in items_of(message.get("content")) if isinstance(b, dict)]
        code = first_text(p.error)
        what = first_text(*texts, code) or "the program could not ask the model"
        raise StreamFailed(Failure("provider_error", what, code, code in _RETRYABLE))

    # --- what came out --------------------------------------------------------------------------

    def _user(self, p: User, out: Out) -> None:
        said, _ = self.sound(p.message)
        self.calls.lossy = ""
        content = said.get("content") if isinstance(said, dict) else None
        results = [b for b in items_of(content) if isinstance(b, dict) and _is_result(b)]
        if p.agent != self._agent:
            if any(block.get("tool_use_id") == self._agent for block in results):
                self._end()  # the call that this agent is, is answered
            return
        if not results and not p.is_meta and self._whole:
            self._end()
        if self._is_again(p):
            return
        for block in results:
            self._result(block, out)
        if self._stopped and not self._unanswered():
            raise StreamOver

    def _result(self, block: dict[str, Any], out: Out) -> None:
        call = self.calls.by_id(0, first_text(block.get("tool_use_id")) or "")
        if call is not None and call.state is State.CLOSED:  # it waits for the end, but it was run
            self.calls.end(call, "tool_calls", out)
        super()._result(block, out)
        self._replied = True
        self._answered.add(str(block.get("tool_use_id")))

    def _progress(self, p: System | Progress, out: Out) -> None:
        self._silent(p, out)
        ended = isinstance(p, System) and p.subtype == "task_notification"
        if ended and p.tool_use_id and p.tool_use_id == self._agent:
            self._end()  # of this very agent
        call = self.calls.by_id(0, p.tool_use_id or "")
        if call is None or self._is_again(p):
            return
        if isinstance(p, Progress):
            said: dict[str, Any] = {"elapsed_time_seconds": p.elapsed_time_seconds}
            self.calls.progress(out, call, "progress", said)
        elif p.subtype in SUBTYPES:
            fields = ("status", "description", "summary", "last_tool_name", "usage")
            said = {f: v for f in fields if (v := getattr(p, f)) is not None}
            self.calls.progress(out, call, SUBTYPES[p.subtype], said)

    # --- the end --------------------------------------------------------------------------------

    def _end(self, cut: str = "") -> None:
        """What came can only follow an answer that is over."""
        if self._partial and not self._stopped:
            why = cut or "the program went on before the answer had ended"
            raise StreamFailed(Failure("truncated", why, None, True))
        if self.reason is None:
            self.reason = "tool_calls" if self.calls.all else "stop"
        raise StreamOver

    def _over(self, p: Result, out: Out) -> None:
        errors = [e for e in items_of(p.errors) if isinstance(e, str)]
        if p.is_error and not (self._whole or self._stopped):
            what = first_text(p.result, "; ".join(errors), p.subtype) or "the program failed"
            status = p.api_error_status
            code = str(status) if isinstance(status, int) else p.subtype
            raise StreamFailed(Failure("provider_error", what, code))
        if self.reason is None and p.stop_reason and self._agent is None:
            self.raw_reason, self.reason = p.stop_reason, self.finish_reason(p.stop_reason)
        if not self._heard and isinstance(p.result, str) and p.result:
            out.append(TextDelta(p.result))  # of a command of the program: no model was asked
        self._end()

    def _silent(self, p: _Beside, out: Out) -> None:
        """Known, and of no use to us, unless a piece of an answer stands in it."""
        if p.event is not None:
            said = {"type": _kind_of(p), "event": p.event}
            self._doubt(said, json_bytes(said), _MISPLACED)
            self.unknown(said, _MISPLACED, out)

    KINDS: ClassVar[dict[type, Handler]] = {
        StreamEvent: _stream_event,
        Assistant: _assistant,
        User: _user,
        System: _progress,
        Progress: _progress,
        Result: _over,
    }


_PIECES = {MessageStart, BlockStart, BlockDelta, BlockStop}  # of an answer that comes in such
_RETRYABLE = {"rate_limit", "server_error", "overloaded"}


def _is_result(block: dict[str, Any]) -> bool:
    return block.get("type") == "tool_result"


def _kind_of(line: _Line) -> str:
    return str(type(line).__struct_config__.tag)


def _id_of(message: Any) -> str | None:
    return first_text(message.get("id")) if isinstance(message, dict) else None


class _Message(msgspec.Struct):
    content: list[Raw] = []


def _exact_blocks(message: bytes) -> list[bytes]:
    """The texts of a message's blocks, in which arguments stand as they came."""
    try:
        return [bytes(raw) for raw in msgspec.json.decode(message, type=_Message).content]
    except msgspec.MsgspecError:
        return []


# What is inside of ``stream_event``.
INNER: dict[type, Handler] = {
    **AnthropicParser.KINDS,
    BlockStop: ClaudeCodeParser._block_stop,
    MessageStop: ClaudeCodeParser._message_stop,
}
ClaudeCodeParser.KINDS = {
    **ClaudeCodeParser.KINDS,
    **silent_kinds(KNOWN, _Beside, ClaudeCodeParser._silent),
}
ClaudeCodeParser.decode = staticmethod(decoder_of(ClaudeCodeParser.KINDS))

PARSER = ClaudeCodeParser
