"""Mistral conversations and agents. Every word of that wire that we know is in this file.

    conversation.response.started -> (message | call | execution | handoff)* -> conversation.response.done
    message   = message.output.delta(output_index, content_index)*
    call      = function.call.delta(tool_call_id)*
    execution = tool.execution.started(id) -> tool.execution.delta(id)* -> tool.execution.done(id)
    handoff   = agent.handoff.started(id) -> agent.handoff.done(id)

A function call says its id and name with every piece, and has no closing mark: the end of the response
closes it. What the provider runs itself is closed, and answered, by ``tool.execution.done``. An entry that
is over is told once, however often it is said. There is no word for how a response ended. Who speaks is
an agent's id; a handoff says who is next.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from itertools import islice
from mimetypes import guess_type
from typing import Any, ClassVar, NamedTuple, TypeAlias

import msgspec

from ...core import even
from ...core.calls import FUNCTION, Call, Evidence, Kind, State
from ...core.media import Shown
from ...core.parser import (
    Decode,
    Failure,
    Handler,
    Heading,
    Parser,
    Payload,
    StreamFailed,
    StreamOver,
    Word,
    count,
    first_text,
)
from ...core.row import Item
from ...events import Citation, Event, ReasoningDelta, TextDelta, Usage
from ...text.media import UNTOLD
from ...text.written import json_text

__all__ = ["HANDOFF", "ITEMS", "PARSER", "ConversationsParser"]

Out: TypeAlias = list[Event]

# --- the payloads of this wire ------------------------------------------------------------------


class Message(Payload, tag="message.output.delta", tag_field="type"):
    id: Any = None
    content: Any = None  # a text, a chunk, or several
    created_at: Any = None
    output_index: int | None = None
    content_index: int | None = None
    model: Any = None
    agent_id: str | None = None
    role: Any = None


class Function(Payload, tag="function.call.delta", tag_field="type"):
    id: str | None = None
    name: str | None = None
    tool_call_id: str | None = None
    arguments: str | None = None
    created_at: Any = None
    output_index: Any = None
    model: Any = None
    agent_id: str | None = None
    confirmation_status: str | None = None


class ExecutionStart(Payload, tag="tool.execution.started", tag_field="type"):
    id: str | None = None
    name: str | None = None
    arguments: str | None = None
    created_at: Any = None
    output_index: Any = None
    model: Any = None
    agent_id: str | None = None


class ExecutionDelta(Payload, tag="tool.execution.delta", tag_field="type"):
    id: str | None = None
    name: str | None = None
    arguments: str | None = None
    created_at: Any = None
    output_index: Any = None


class ExecutionDone(Payload, tag="tool.execution.done", tag_field="type"):
    id: str | None = None
    name: str | None = None
    created_at: Any = None
    output_index: Any = None
    info: dict[str, Any] | None = None


class HandoffStart(Payload, tag="agent.handoff.started", tag_field="type"):
    id: str | None = None
    previous_agent_id: str | None = None
    previous_agent_name: str | None = None
    created_at: Any = None
    output_index: Any = None


class HandoffDone(Payload, tag="agent.handoff.done", tag_field="type"):
    id: str | None = None
    next_agent_id: str | None = None
    next_agent_name: str | None = None
    created_at: Any = None
    output_index: Any = None


class Started(Payload, tag="conversation.response.started", tag_field="type"):
    conversation_id: Any = None
    created_at: Any = None


class Done(Payload, tag="conversation.response.done", tag_field="type"):
    usage: dict[str, Any] | None = None
    created_at: Any = None


class Error(Payload, tag="conversation.response.error", tag_field="type"):
    message: Any = None
    code: Any = None
    created_at: Any = None


Payloads: TypeAlias = (
    Message | Function | ExecutionStart | ExecutionDelta | ExecutionDone | HandoffStart | HandoffDone
    | Started | Done | Error
)  # fmt: skip


class _Header(msgspec.Struct):
    conversation_id: str | None = None
    model: str | None = None
    data: _Header | None = None  # as an object of the SDK has it


class _Wrapped(msgspec.Struct):
    data: msgspec.Raw


# --- the types of tool entries ------------------------------------------------------------------

FAMILIES = {
    "web_search": "web-search",
    "web_search_premium": "web-search",
    "code_interpreter": "code-interpreter",
    "image_generation": "image-generation",
    "document_library": "file-search",
    "mistral_mcp": "mcp",
}
OTHER = "connector"  # what somebody has connected to an agent
HANDOFF = "agent.handoff"
HANDED = ("previous_agent_id", "previous_agent_name", "next_agent_id", "next_agent_name")
_ID, _EXECUTED = "tool_call_id", "tool.execution"
_TEXT = "arguments, JSON text"
ITEMS = (
    Item("function.call.delta", "function", "call", "client", "natural", _ID, _TEXT,
         note="with a confirmation_status the provider runs it, once it is confirmed"),
    Item("function.result", "function", "output", "client", "natural", _ID, "result", _ID,
         "request only"),
    *(
        Item(f"{_EXECUTED}: {name}", family, "call+output", "provider", "conflated", "id", _TEXT, "id")
        for name, family in FAMILIES.items()
    ),
    Item(f"{_EXECUTED}: another name", OTHER, "call+output", "provider", "conflated", "id", _TEXT,
         "id"),
    Item(HANDOFF, "handoff", "call", "provider", "conflated", "id",
         "previous_agent_id, next_agent_id …, fields"),
)  # fmt: skip
_HANDED = Kind("handoff", "provider", id_source="conflated")
_CONFIRMED = Kind(OTHER, "provider")
RETRYABLE = {"408", "429", "500", "502", "503", "504", "529"}
_NO_ID = ("", "null")
_MISNAMED = ("input", "args", "parameters")  # arguments elsewhere: here they may be the text …
_NOTHING = (b'""', b"null")  # … where there is none
_BRACES = "{} \t\r\n"  # all that there is of an empty object
_OF_NO_CALL = ("message.", "conversation.")  # how kinds begin that bring no arguments …
_OF_HANDOFFS = "agent."  # … or none but those of handoffs


def _kind(name: str | None) -> Kind:
    return Kind(FAMILIES.get(name or "", OTHER), "provider", id_source="conflated")


class _Handed(NamedTuple):
    """A handoff, and what its beginning said."""

    call: Call
    said: dict[str, Any]


class _Voice(NamedTuple):
    """Where a chunk of content stands, and who says it."""

    part: int
    agent: str | None


# --- the way in ---------------------------------------------------------------------------------


class ConversationsParser(Parser):
    """One response of a conversation."""

    name = "mistral_conversations"
    END = "conversation.response.done"
    SAYS_TOOL_CALLS = False
    TYPE_FIELD = "type"
    decode: ClassVar[Decode] = staticmethod(msgspec.json.Decoder(Payloads).decode)
    EVIDENCE = Evidence(
        "",
        "nothing",
        "conversation.response.done",
        "at the end; what the provider runs, at tool.execution.done",
    )
    CALL_TEXTS = ("arguments",)
    CALL_KEYS = ("tool_call_id", "id", "confirmation_status", *HANDED)
    CALL_WORDS = (b'"arguments"', b'"tool_call_id"')
    ERRORS_AT = ("error",)
    QUIRKS: ClassVar[dict[str, tuple[str, even.Quirk]]] = {
        "arguments": ("args.object", even.object_text),
        "tool_call_id": ("wire.shape_odd", even.number_text),
    }

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._functions: dict[str, Call] = {}  # by their ids, and by those of their entries
        self._executed: dict[str, Call] = {}
        self._bare: Call | None = None  # the last one that has a name and no id
        self._answered: set[int] = set()  # executions whose results were told
        self._handoffs: dict[str, _Handed] = {}
        self._parts: dict[tuple[int | None, int | None], int] = {}
        self._agent: str | None = None  # who was handed the conversation
        self._usage: dict[str, Any] = {}

    @classmethod
    def looks_like(cls, payload: dict[str, Any]) -> bool:
        inner = payload.get("data")
        said = inner if isinstance(inner, dict) else payload
        return said.get("type") in {kind.__struct_config__.tag for kind in cls.KINDS}  # type: ignore[attr-defined]

    def heading(self, data: bytes) -> Heading:
        header = msgspec.json.decode(data, type=_Header)
        header = header.data or header
        return Heading(first_text(header.model), first_text(header.conversation_id))

    def hear(self, data: bytes, event: str, out: Out) -> None:
        if data.startswith(b'{"event":'):  # an object of the SDK, with the payload inside
            with suppress(msgspec.DecodeError):
                data = bytes(msgspec.json.decode(data, type=_Wrapped).data)
        super().hear(data, event, out)

    def unknown(self, payload: Any, why: str, out: Out) -> None:
        if isinstance(payload, dict) and payload.get("object") == "error":  # as a refusal has it
            raise StreamFailed(_failure(payload.get("message"), payload.get("code")))
        super().unknown(payload, why, out)

    def calls_named(self, payload: dict[str, Any]) -> list[Call] | None:
        kind = str(payload.get("type"))
        if kind.startswith(_OF_NO_CALL):
            return []
        keys = {key for name in ("tool_call_id", "id") if isinstance(key := payload.get(name), str)}
        held = (self._functions, self._executed)
        named = [calls[key] for calls in held for key in keys if key in calls]
        named += [self._handoffs[key].call for key in keys if key in self._handoffs]
        return named or (self._open_handoffs() if kind.startswith(_OF_HANDOFFS) else None)

    def _open_handoffs(self) -> list[Call]:
        """Those that are not over; where all are, one of them stands for them."""
        open = [call for call in self.calls.unfinished() if call.kind is _HANDED]
        return open or [held.call for held in islice(self._handoffs.values(), 1)]

    def is_loss(
        self, complaint: even.Complaint, value: bytes, beside: dict[str, msgspec.Raw]
    ) -> bool:
        if complaint.where in _MISNAMED and bytes(beside.get("arguments", b"")) in _NOTHING:
            beside = {name: said for name, said in beside.items() if name != "arguments"}
        return super().is_loss(complaint, value, beside)

    # the hot kind first

    def _message(self, p: Message, out: Out) -> None:
        place = p.output_index, p.content_index
        part = self._parts.get(place)
        if part is None:
            part = self._parts[place] = len(self._parts)
        content, agent = p.content, p.agent_id or self._agent
        if type(content) is str:
            if content:
                out.append(TextDelta(content, part, agent=agent))
            return
        for chunk in content if isinstance(content, list) else (content,):
            self._chunk(chunk, _Voice(part, agent), out)

    def _chunk(self, chunk: Any, voice: _Voice, out: Out) -> None:
        said = chunk if isinstance(chunk, dict) else {"type": "text", "text": chunk}
        kind = str(said.get("type", "text" if "text" in said else "?"))
        if (say := SAID.get(kind)) is not None:
            say(said, voice, out)
        elif (shown := MEDIA.get(kind)) is not None:
            # each is whole: no other goes on with it
            self.show(out, shown(said), place=str(said), agent=voice.agent)
        else:
            super().unknown({"type": f"content/{kind}", "part": chunk}, "content", out)

    # --- calls of the client's functions ----------------------------------------------------------

    def _function(self, p: Function, out: Out) -> None:
        ids = [id for id in (p.tool_call_id, p.id) if id is not None and id not in _NO_ID]
        held = [self._functions[id] for id in ids if id in self._functions]
        if held:  # an entry is one call, whatever ids it is given
            call = held[0]
            if held[-1] is not call:
                self._doubt_whose(held)
            id = None if p.tool_call_id in _NO_ID else p.tool_call_id
            self.calls.hear(call, out, id=id, field=_ID, name=p.name)
        elif ids:
            call = self._unnamed_yet(p, out) or self._begin(p, out)
        elif p.name:
            others = [call for call in self.calls.unfinished() if call.field == _ID]
            call = self._begin(p, out)
            self._bare = call
            if others and not (_begins(p.arguments) and all(map(self.calls.is_whole, others))):
                self._doubt_whose([*others, call])
        else:
            return self.calls.astray()
        for id in ids:
            self._functions.setdefault(id, call)
        if p.arguments:
            self._grow(call, p.arguments, out)
        elif p.arguments is None:
            self.calls.hollow(call)

    def _grow(self, call: Call, text: str, out: Out) -> None:
        """Pieces add up: nobody was seen to say here all that came before once more."""
        grow = self.calls.merge_object if self.even_objects else self.calls.append
        grow(call, text, out)

    def _unnamed_yet(self, p: Function, out: Out) -> Call | None:
        """The ids of the one call that has a name, and neither an id nor text, came late."""
        call, self._bare = self._bare, None
        if call is None or call.fragments or p.name not in (None, "", call.name):
            return None
        id = None if p.tool_call_id in _NO_ID else p.tool_call_id
        self.calls.hear(call, out, id=id, field=_ID)
        return call

    def _doubt_whose(self, calls: list[Call]) -> None:
        for call in calls:
            self.calls.taint(call, "a piece came that does not say of which call it is")

    def _begin(self, p: Function, out: Out) -> Call:
        id = None if p.tool_call_id in _NO_ID else p.tool_call_id
        kind = FUNCTION if p.confirmation_status is None else _CONFIRMED
        call = self.calls.open(
            out, kind, id=id, field=_ID, name=p.name, seen=p, agent=p.agent_id or self._agent
        )
        echo = {"id": p.id, "agent_id": p.agent_id, "confirmation_status": p.confirmation_status}
        call.echo = {key: value for key, value in echo.items() if value is not None} or None
        return call

    # --- what the provider runs -------------------------------------------------------------------

    def _execution_start(self, p: ExecutionStart, out: Out) -> None:
        held = self._executed.get(p.id or "")
        if not self.calls.restarts(held, p.id, p.name, out):
            agent = p.agent_id or self._agent
            self._executed[p.id or ""] = self.calls.open(
                out, _kind(p.name), id=p.id, field="id", name=p.name, seen=p, agent=agent, instead=held,
            )  # fmt: skip
            if p.agent_id:
                self._executed[p.id or ""].echo = {"agent_id": p.agent_id}
        if p.arguments:
            self._grow(self._executed[p.id or ""], p.arguments, out)

    def _execution_delta(self, p: ExecutionDelta, out: Out) -> None:
        call = self._executed.get(p.id or "")
        if call is None:
            self.calls.astray(p.id)
        elif p.arguments:
            self._grow(call, p.arguments, out)
        elif p.arguments is None:
            (self.calls.hollow if call.state < State.CLOSED else self.calls.textless)(call)

    def _execution_done(self, p: ExecutionDone, out: Out) -> None:
        call = self._executed.get(p.id or "")
        if call is not None:
            if not call.fragments and not self.calls.lost:
                self.calls.append(call, "{}", out)  # it is over, and was run without any
            self.calls.close(call, out)
            if call.ordinal in self._answered:
                return
            self._answered.add(call.ordinal)
        family = _kind(p.name).family
        self.calls.result(
            out, p.info, id=p.id, family=family, call=call, echo={"info": p.info} if p.info else {}
        )

    # --- handoffs ---------------------------------------------------------------------------------

    def _handoff_start(self, p: HandoffStart, out: Out) -> None:
        said = {
            "previous_agent_id": p.previous_agent_id,
            "previous_agent_name": p.previous_agent_name,
        }
        held = self._handoffs.get(p.id or "")
        if held is None or not self._is_same(held, p.id, said, out):
            self._hand(p.id, said, p.previous_agent_id or self._agent, p, out)

    def _is_same(self, held: _Handed, id: str | None, said: dict[str, Any], out: Out) -> bool:
        """Is its beginning said once more, be it over or not? Without an id it is another one's."""
        if held.call.state >= State.CLOSED:
            return bool(id)
        same = self.calls.restarts(held.call, id, HANDOFF, out)
        if said != held.said:
            self.calls.taint(held.call, "its beginning was said twice, and differently")
        return same

    def _hand(
        self, id: str | None, said: dict[str, Any], agent: str | None, seen: Any, out: Out
    ) -> _Handed:
        call = self.calls.open(
            out, _HANDED, id=id, field="id", name=HANDOFF, seen=seen, agent=agent
        )
        held = self._handoffs[id or ""] = _Handed(call, said)
        return held

    def _handoff_done(self, p: HandoffDone, out: Out) -> None:
        held = self._handoffs.get(p.id or "")
        if held is None or held.call.denied is not None:
            held = held or self._hand(p.id, {}, self._agent, p, out)
            for other in self._open_handoffs():  # it may be the end of any of them
                self.calls.taint(other, "an end came that is of no beginning")
        call, said = held
        ending = {"next_agent_id": p.next_agent_id, "next_agent_name": p.next_agent_name}
        if call.state is State.OVER:  # said once more
            self.calls.settle(call, json_text(said | ending), out)
        else:
            self.calls.append(call, json_text(said | ending), out)
            self.calls.close(call, out)
        self._agent = p.next_agent_id or self._agent

    def end_of_calls(self, out: Out) -> None:
        """A handoff that the client is to make has a beginning only. What the provider runs itself has
        a closing mark: without it, only an object that cannot go on is whole, where nothing was lost."""
        for call, said in self._handoffs.values():
            if call.state is not State.OVER:
                self.calls.append(call, json_text(said), out)
        for call in self._executed.values():
            if call.state is State.OVER or call.taint:
                continue
            whole = self.calls.is_whole(call) and call.objects <= 1 and not self.calls.lost
            if whole and call.raw.strip(_BRACES):
                self.scribe.note("call.unclosed", call_id=call.id)
            else:
                self.calls.fail(call, "truncated", "the wire never closed this call", out)

    # --- the end ----------------------------------------------------------------------------------

    def _started(self, p: Started, out: Out) -> None:
        self.begin_answer(out)

    def _done(self, p: Done, out: Out) -> None:
        self._usage = p.usage or {}
        raise StreamOver  # it says no reason

    def _error(self, p: Error, out: Out) -> None:
        raise StreamFailed(_failure(p.message, p.code))

    def _over(self, out: Out) -> None:
        """[DONE] says that no more comes, not that the answer is whole."""
        raise StreamFailed(Failure("truncated", "the stream ended before its end mark", None, True))

    def usage(self) -> Usage | None:
        raw = self._usage
        if not raw:
            return None
        asked, connected = count(raw, "prompt_tokens"), count(raw, "connector_tokens")
        if asked is not None and connected is not None:
            asked += connected  # what connectors have found is read by the model, and counted apart
        return Usage(asked, count(raw, "completion_tokens"), raw=raw)

    KINDS: ClassVar[dict[type, Handler]] = {
        Message: _message,
        Function: _function,
        ExecutionStart: _execution_start,
        ExecutionDelta: _execution_delta,
        ExecutionDone: _execution_done,
        HandoffStart: _handoff_start,
        HandoffDone: _handoff_done,
        Started: _started,
        Done: _done,
        Error: _error,
    }
    WORDS: ClassVar[dict[bytes, Word]] = {b"[DONE]": _over}


# --- chunks of content --------------------------------------------------------------------------


def _text(chunk: dict[str, Any], voice: _Voice, out: Out) -> None:
    if text := first_text(chunk.get("text")):
        out.append(TextDelta(text, voice.part, agent=voice.agent))


def _thinking(chunk: dict[str, Any], voice: _Voice, out: Out) -> None:
    thoughts = chunk.get("thinking")
    for thought in thoughts if isinstance(thoughts, list) else [thoughts]:
        said = thought if isinstance(thought, dict) else {"text": thought}
        if text := first_text(said.get("text")):
            out.append(ReasoningDelta(text, voice.part, agent=voice.agent))
        elif said.get("type", "text") != "text":  # a reference to a source, or to a tool's output
            out.append(Citation(voice.part, said))
    if signature := chunk.get("signature"):
        echo = {"type": "thinking", "signature": signature}
        out.append(ReasoningDelta("", voice.part, 0, echo, voice.agent))


def _reference(chunk: dict[str, Any], voice: _Voice, out: Out) -> None:
    out.append(Citation(voice.part, chunk))


def _address(chunk: dict[str, Any]) -> Shown:
    said = chunk.get(chunk["type"])
    url = first_text(said.get("url") if isinstance(said, dict) else said)
    type_ = guess_type(url)[0] if url else None
    return Shown(f"content/{chunk['type']}", chunk, None, url, type_, echo=chunk)


def _file(chunk: dict[str, Any]) -> Shown:
    """A file that a tool has made: it is fetched by its id."""
    name = first_text(chunk.get("file_name")) or f"file.{chunk.get('file_type')}"
    type_ = guess_type(name)[0] or guess_type(f"file.{chunk.get('file_type')}")[0]
    return Shown("content/tool_file", chunk, type=type_, usually=UNTOLD, echo=chunk)


SAID: dict[str, Callable[[dict[str, Any], _Voice, Out], None]] = {
    "text": _text,
    "thinking": _thinking,
    "reference": _reference,
    "tool_reference": _reference,
}
MEDIA: dict[str, Callable[[dict[str, Any]], Shown]] = {
    "image_url": _address,
    "document_url": _address,
    "tool_file": _file,
}
CHUNKS = {**SAID, **MEDIA}  # all that we know


def _begins(text: str | None) -> bool:
    """Can this be all that is said of a call: an object, or nothing?"""
    return not text or text.lstrip()[:1] == "{"


def _failure(message: Any, code: Any) -> Failure:
    said = None if code is None else str(code)
    sentence = first_text(message, said) or "the provider reported an error"
    return Failure("provider_error", sentence, said, said in RETRYABLE)


PARSER = ConversationsParser
