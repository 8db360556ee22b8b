"""OpenAI Responses. Every word of that wire that we know is in this file.

    response.created -> response.in_progress -> item* -> response.completed | .incomplete | .failed
    item = output_item.added -> (deltas and .done of text, reasoning, arguments, code …)* ->
           output_item.done                                            or `error`, anywhere

Items interleave. A call is found by ``call_id`` where an item is at hand, else by ``output_index``,
else by ``item_id`` (which some gateways change from event to event), else it is the last open one
of its type: see ``places``. Every text is said up to four times (deltas, ``.done``, item, final
response): copies of arguments are compared by ``core.calls``, those of text by ``texts``; ``items``
has a row for each type of tool item, ``outputs`` says which output answers which call. A hole in
``sequence_number`` taints the open calls: see ``numbering``. The end mark is the final response.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, ClassVar, NamedTuple, TypeAlias

import msgspec
from msgspec import UNSET, Raw

from ...core import even
from ...core.calls import CLOSED, OPEN, Call, Evidence, State
from ...core.cursor import At
from ...core.media import Shown
from ...core.parser import (
    Failure,
    Handler,
    Heading,
    Parser,
    Payload,
    StreamFailed,
    StreamOver,
    Word,
    count,
    decoder_of,
    field_of,
    first_text,
    items_of,
)
from ...events import (
    Citation,
    Event,
    FinishReason,
    ReasoningDelta,
    TextDelta,
    ToolCallDelta,
    Unrecognized,
    Usage,
)
from ...framing import Framer
from ...framing.lines import Values
from ...framing.sse import SSE
from ...text.halves import decoded
from .items import (
    OPAQUE,
    TOOLS,
    Tool,
    echo_of,
    has_failed,
    id_of,
    identity_of,
    input_of,
    is_error,
    is_illegible,
    is_made_of_nothing,
    kind_of,
    name_of,
    output_of,
    picture_of,
    says_none,
    tools_by_type,
)
from .numbering import Numbers
from .outputs import Outputs
from .places import Places
from .texts import Texts

__all__ = ["ITEMS", "PARSER", "RETRYABLE", "ResponsesParser"]

Out: TypeAlias = list[Event]

# --- the payloads of this wire ------------------------------------------------------------------


class TextPiece(Payload, tag="response.output_text.delta", tag_field="type"):
    sequence_number: Any = None
    item_id: Any = None
    output_index: int = 0
    content_index: Any = None
    delta: str = ""
    logprobs: Any = None
    obfuscation: Any = None
    response_id: Any = None
    agent: Any = None
    stream_id: Any = None  # the lane, where several share a connection: see ``lanes``


class ArgumentsPiece(Payload, tag="response.function_call_arguments.delta", tag_field="type"):
    delta: str | None = None  # in the order in which most are written: it is looked for first
    item_id: str | None = None
    obfuscation: Any = None
    output_index: int | None = None
    sequence_number: Any = None
    call_id: str | None = None
    response_id: Any = None
    agent: Any = None
    stream_id: Any = None


class _Placed(Payload):
    """Where in the response something happens. Any of it may be missing."""

    sequence_number: int | None = None
    item_id: str | None = None
    output_index: int | None = None
    content_index: int | None = None
    summary_index: int | None = None
    obfuscation: Any = None
    response_id: Any = None
    agent_reference: Any = None
    agent: Any = None  # of several, the one that speaks; the item says it too
    stream_id: Any = None


class _Piece(_Placed):
    delta: Any = None
    call_id: str | None = None
    command_index: int | None = None
    logprobs: Any = None


class _Said(_Placed):
    """The whole of something, under the name its kind has for it."""

    name: str | None = None
    call_id: str | None = None
    text: str | None = None
    refusal: str | None = None
    arguments: str | None = None
    input: str | None = None
    code: str | None = None
    diff: str | None = None
    command: str | None = None
    command_index: int | None = None
    output: Any = None
    part: Any = None
    logprobs: Any = None
    transcript: str | None = None
    status: Any = None


class _Status(_Placed):
    call_id: str | None = None
    partial_image_b64: str | None = None
    partial_image_index: int | None = None
    background: Any = None
    output_format: Any = None
    quality: Any = None
    size: Any = None
    cost: Any = None


class _Annotated(_Placed):
    annotation: Any = None
    annotation_index: Any = None


class _OfItem(Payload):
    item: Raw
    sequence_number: int | None = None
    output_index: int | None = None
    response_id: Any = None
    agent_reference: Any = None
    agent: Any = None
    stream_id: Any = None


class _OfResponse(Payload):
    response: Raw = Raw(b"{}")
    sequence_number: int | None = None
    copilot_usage: Any = None
    agent_reference: Any = None
    agent: Any = None
    stream_id: Any = None


class _Error(Payload):
    code: Any = None
    message: str | None = None
    param: Any = None
    error: Any = None
    sequence_number: int | None = None
    status: Any = None
    headers: Any = None
    agent: Any = None
    stream_id: Any = None


class _Beside(Payload):
    """About a response and no part of it: what was steered or injected, and what came of that."""

    sequence_number: int | None = None
    response_id: Any = None
    steer: Any = None
    input: Any = None
    error: Any = None
    reason: Any = None
    required_input: Any = None
    agent: Any = None
    stream_id: Any = None


class _Final(msgspec.Struct):
    """What is read of the last response; the rest of it repeats the request."""

    id: Any = None
    status: str | None = None
    error: Any = None
    incomplete_details: Any = None
    usage: dict[str, Any] | None = None
    output: list[Raw] | None = None


class _Opening(msgspec.Struct, frozen=True):
    id: str | None = None
    model: str | None = None


class _Header(msgspec.Struct):
    response: _Opening = _Opening()


_as_final = msgspec.json.Decoder(_Final).decode
_ABOUT_CALLS = (b"arguments", b"_input", b"call_code")  # in the names of kinds
_THOUGHTS = {"reasoning_text", "summary_text"}
_LANES = (
    "responses of several lanes share this connection; streamnorm.sessions reads each on its own"
)
_ANOTHER = "the response that ended has another id than the one that began"
_ELSEWHERE = "it was not done, and may be one that was told under another id"
_NONE = ("", "{}")  # no input
_UNKNOWN: Any = object()  # the next piece is looked at, whatever its number
RAW_SOUND = "audio/pcm"  # what a stream has, unless the bytes say otherwise: no event names it

RETRYABLE = {
    "server_error",
    "rate_limit_exceeded",
    "overloaded",
    "slow_down",
    "vector_store_timeout",
}
FINISHED = {"completed", "in_progress", "generating", "searching", "interpreting", "calling"}
UNFINISHED = {"incomplete", "cancelled", "canceled", "expired", "queued"}
_INCOMPLETE: dict[str, FinishReason] = {
    "max_output_tokens": "length",
    "max_messages": "length",
    "max_tokens": "length",
    "content_filter": "content_filter",
    "steered": "pause",
}


# --- the way in ---------------------------------------------------------------------------------


class ResponsesParser(Parser):
    """One Responses stream."""

    name = "openai_responses"
    END = "response.completed, .incomplete or .failed"
    TYPE_FIELD = "type"
    SAYS_TOOL_CALLS = False
    OF_AGENTS: ClassVar[bool] = False  # its responses say which agent speaks
    TOOLS: ClassVar[dict[str, Tool]] = tools_by_type(TOOLS)
    REASONS: ClassVar[dict[str, FinishReason]] = _INCOMPLETE
    EVIDENCE = Evidence(
        "output_item.done, unless its status says incomplete or failed",
        "arguments.done, input.done, code.done, output_item.done, the final response",
        "response.completed",
        "at output_item.done",
    )
    CALL_TEXTS: ClassVar[tuple[str, ...]] = ("delta", "arguments", "input", "code")
    CALL_KEYS: ClassVar[tuple[str, ...]] = ("item_id", "output_index")
    CALL_WORDS: ClassVar[tuple[bytes, ...]] = (b'"arguments"', b'"call_id"')
    ERRORS_AT = ("error",)
    QUIRKS = {
        "arguments": ("args.object", even.object_text),
        "output_index": ("wire.shape_odd", even.integer),
    }

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._places = Places(self.calls)
        self._functions = self._places.of_type("function_call")
        self._outputs = Outputs(self.calls, self._places.type_of)
        self._numbers = Numbers(self.calls, self.scribe)
        self._names: dict[int, str] = {}
        self._item: str | None = None  # of the last piece of arguments, …
        self._place: int | None = None  # … its place, …
        self._grown: Call | None = None  # … and the call there
        self._agents: dict[int | None, str] = {}  # by place: who speaks there, if anybody is named
        self._texts = Texts(self.scribe)
        self._thoughts = Texts(self.scribe)
        self._due: Any = _UNKNOWN  # the number of the next event, if that is a piece
        self._at: Any = None  # the item whose text is being told, and its part …
        self._part: Any = None
        self._pieces: list[str] = []  # … and its pieces
        self._echoed: set[str] = set()
        self._refused = False
        self._lane: Any = UNSET  # until a response began, or something named one
        self._reached = 0  # how many items have begun, …
        self._before = 0  # … and how many of them over a connection before this one
        self._began: str | None = None  # the open response, if the first event did not say it
        self._complete = True  # what an item says without a status is all of it
        self._usage: dict[str, Any] = {}

    @classmethod
    def framer(cls, start: str, limit: int) -> Framer:
        return Values(limit) if start == "json" else SSE(limit)

    @classmethod
    def looks_like(cls, payload: dict[str, Any]) -> bool:
        kind, response = str(payload.get("type", "")), payload.get("response")
        if isinstance(response, dict) and "agent_reference" in response and not cls.OF_AGENTS:
            return False
        if kind != "error":
            return kind.startswith("response.")
        # No error of this wire names a request beside its code.
        others = payload.keys() >= {"code", "message", "request_id"}
        return not payload.keys().isdisjoint({"sequence_number", "param"}) or (
            "message" in payload and not others
        )

    def heading(self, data: bytes) -> Heading:
        opening = msgspec.json.decode(data, type=_Header).response
        return Heading(opening.model, opening.id)

    # --- where it can be resumed ----------------------------------------------------------------

    def place_of(self, data: bytes) -> int | None:
        number = field_of(data, "sequence_number")
        return number if isinstance(number, int) else None

    def place(self) -> int | None:
        return self._numbers.last

    def begun(self) -> int:
        return self._reached

    def resumed(self, at: At, begun: int) -> None:
        self._reached = self._before = begun
        if isinstance(at, int):
            self._numbers.expect(at + 1)

    def _is_retold(self, index: int | None) -> bool:
        """Is this a copy of something that began before this connection did? It was told there."""
        if index is None or index >= self._before:
            return False
        self.scribe.note("stream.retold")
        return True

    # --- pieces, as usual ------------------------------------------------------------------------

    def run(self, lines: Iterator[bytes], envelope: bytes, out: Out) -> Any:
        """As ``_arguments_piece`` and ``_text_piece`` for what goes on where the one before it was:
        written out, as a function call less per payload can be measured (``make bench``)."""
        call, item, place = self._grown, self._item, self._place
        at, part, pieces = self._at, self._part, self._pieces
        due, self._due = self._due, _UNKNOWN  # until it is told how far this went
        if call is None or call.state is not OPEN:
            ordinal, fragments, item = 0, pieces, _UNKNOWN  # no piece is of that item
        else:
            ordinal, fragments = call.ordinal, call.fragments
        for p in map(self.decode, lines):
            if p.sequence_number != due or p.stream_id is not None:
                break
            kind = type(p)
            if kind is ArgumentsPiece:
                text = p.delta
                if (
                    p.item_id != item
                    or p.output_index != place
                    or p.call_id is not None
                    or not text
                ):
                    break
                fragments.append(text)
                out.append(ToolCallDelta(ordinal, text))
            elif kind is TextPiece and p.output_index == at and p.content_index == part:
                text = p.delta
                if not text:
                    break
                pieces.append(text)
                out.append(TextDelta(text, at))
            else:
                break
            if due:  # some say none, some only ever 0
                due += 1
        else:
            p = None
        self._due = due
        return p

    # --- text and reasoning ---------------------------------------------------------------------

    def _text_piece(self, p: TextPiece, out: Out) -> None:
        number = p.sequence_number
        if number == self._due:
            self._due = number and number + 1
            return self._tell_piece(p, out)
        self._look(number)
        self._tell_piece(p, out)
        if type(number) is int:
            self._numbers.counted()

    def _look(self, number: Any) -> None:
        """The number of a piece is not the next one, or the one before it was of no piece."""
        self._due = _UNKNOWN
        if type(number) is int:
            self._numbers.look(number)
            self._due = number and number + 1
        elif number is None:
            self._due = None

    def _tell_piece(self, p: TextPiece, out: Out) -> None:
        text = p.delta
        if p.stream_id is not None:
            self._stay_in(p.stream_id)
        if p.output_index != self._at or p.content_index != self._part:
            at = p.content_index if isinstance(p.content_index, int) else 0
            if p.agent is not None or p.output_index in self._agents:
                self._voiced_piece(p, at, out)
                return
            self._turn_to(p.output_index, at)
            self._part = p.content_index
            if self._texts.retold(p.output_index, at, text):
                self._turn_away()  # the next one is looked at, too
                self._numbers.skip()
                return
        if text:
            self._pieces.append(text)  # also for their number: see ``numbering``
            out.append(TextDelta(text, p.output_index))
        else:
            self._numbers.skip()

    def _voiced_piece(self, p: TextPiece, at: int, out: Out) -> None:
        """A piece of a text whose speaker is named. Each comes here, as no other piece is at its place:
        streams of one voice pay nothing for those of several."""
        index, text = p.output_index, p.delta
        self._speak(index, p.agent)
        if self._at != (index, at):
            self._turn_to(index, at)
            self._at = index, at
            if self._texts.retold(index, at, text):
                self._turn_away()
                self._numbers.skip()
                return
        if text:
            self._pieces.append(text)
            out.append(TextDelta(text, index, 0, UNSET, self._agents.get(index)))
        else:
            self._numbers.skip()

    def _speak(self, index: int | None, *said: Any) -> None:
        """Who speaks at this place: the first of these that names somebody."""
        for agent in said:
            if (name := _named(agent)) is not None:
                self._agents[index] = name
                return

    def _turn_to(self, index: int, at: Any) -> None:
        """Another part's text is told from here on."""
        self._reached = max(self._reached, index + 1)
        self._at, self._pieces = index, self._texts.pieces(index, at)
        self._numbers.watch(self._pieces)
        for call in self._places.open_at(index):
            self.calls.taint(call, "something else came in place of its arguments")

    def _turn_away(self) -> None:
        """No part's text is being told: the next piece is looked at."""
        self._at, self._pieces = None, []
        self._numbers.watch(self._pieces)

    def _part_added(self, p: _Said, out: Out) -> None:
        """The next text may be another part of the same item."""
        self._turn_away()

    def _unheard(self, payload: Any, data: bytes, why: str, out: Out) -> None:
        number = payload.get("sequence_number") if isinstance(payload, dict) else None
        self._numbers.look(number if isinstance(number, int) else None)
        self._due = _UNKNOWN
        super()._unheard(payload, data, why, out)
        self._numbers.counted()

    def is_loss(self, complaint: even.Complaint, value: bytes, beside: dict[str, Raw]) -> bool:
        """Most kinds have no text of a call at their top: a new field there is no loss."""
        about_calls = any(word in bytes(beside.get("type", Raw())) for word in _ABOUT_CALLS)
        return (about_calls or not complaint.unknown) and super().is_loss(complaint, value, beside)

    def _other_text(self, p: _Piece, out: Out) -> None:
        if text := self._piece_of(p):
            self._tell_text(text, self._place_of(p), out)

    def _tell_text(self, text: str, index: int | None, out: Out, echo: Any = UNSET) -> None:
        out.append(TextDelta(text, index or 0, 0, echo, self._agents.get(index)))

    def _tell_thought(self, text: str, index: int | None, out: Out, echo: Any = UNSET) -> None:
        out.append(ReasoningDelta(text, index or 0, 0, echo, self._agents.get(index)))

    def _refusal_piece(self, p: _Piece, out: Out) -> None:
        self._refuse(self._piece_of(p), self._place_of(p), out)

    def _piece_of(self, p: _Piece) -> str:
        """The text of a piece, unless a copy that came before it has told it."""
        index = self._place_of(p)
        if not isinstance(p.delta, str) or self._texts.retold(index, p.content_index, p.delta):
            return ""
        pieces = self._texts.pieces(index, p.content_index)
        if p.delta:
            pieces.append(p.delta)
        return p.delta

    def _place_of(self, p: _Placed, texts: Texts | None = None) -> int | None:
        return self._home_of(p.item_id or "", p.output_index, texts or self._texts)

    def _home_of(self, item_id: str, index: int | None, texts: Texts) -> int | None:
        """The output index of an item, as that was added; its own where the item is not known, or is
        one of another kind and its own is right."""
        home = self._places.home_of(item_id, index)
        return index if texts.houses(index) and not texts.houses(home) else home

    def _text_said(self, p: _Said, out: Out) -> None:
        """The whole text: only what its pieces did not say is told."""
        part = p.part if isinstance(p.part, dict) else {}
        if str(part.get("type") or self._kind_at(p)) in _THOUGHTS:
            self._thought_said(p, out)
        else:
            said = {"text": p.text, "refusal": p.refusal, **part}
            self._tell_part(said, self._place_of(p), p.content_index, out)

    def _kind_at(self, p: _Said) -> str:
        """What the item at the place of a part is, where the part does not say what it is."""
        thought = self._thoughts.houses(p.output_index) and not self._texts.houses(p.output_index)
        return "reasoning_text" if p.part is not None and thought else ""

    def _tell_part(self, part: dict[str, Any], index: int | None, at: Any, out: Out) -> None:
        refusal = first_text(part.get("refusal"))
        if self._is_retold(index):
            self._refused = self._refused or bool(refusal)
            return
        news = self._texts.news(index, at, refusal or first_text(part.get("text")) or "")
        self._turn_away()  # nothing of it is held any more
        if refusal:
            self._refuse(news, index, out)
        elif news:
            self._tell_text(news, index, out)

    def _refuse(self, text: str, index: int | None, out: Out) -> None:
        self._refused = True
        if text:
            self._tell_text(text, index, out, {"type": "refusal"})

    def _thought_piece(self, p: _Piece, out: Out) -> None:
        text = p.delta.get("text") if isinstance(p.delta, dict) else p.delta
        index, at = self._place_of(p, self._thoughts), _thought_at(p)
        if isinstance(text, str) and text and not self._thoughts.retold(index, at, text):
            self._thoughts.pieces(index, at).append(text)
            out.append(ReasoningDelta(text, index or 0, 0, UNSET, self._agents.get(index)))

    def _thought_said(self, p: _Said, out: Out) -> None:
        part = p.part if isinstance(p.part, dict) else {}
        text = first_text(p.text, part.get("text")) or ""
        index = self._place_of(p, self._thoughts)
        if self._is_retold(index):
            return
        if news := self._thoughts.news(index, _thought_at(p), text):
            self._tell_thought(news, index, out)

    def _annotated(self, p: _Annotated, out: Out) -> None:
        out.append(Citation(p.output_index or 0, p.annotation))

    def _media(self, p: _Piece, out: Out) -> None:
        """A piece of a voice. The wire says neither what it is, nor where."""
        self._speak(None, p.agent)
        shown = Shown(f"media/{_kind(p)}", p.delta, p.delta, usually=RAW_SOUND)
        self.show(out, shown, place="audio", agent=self._agents.get(None))

    # --- pieces of calls ------------------------------------------------------------------------

    def _arguments_piece(self, p: ArgumentsPiece, out: Out) -> None:
        """The usual one is of the place and the item of the one before it."""
        call, text, number = self._grown, p.delta, p.sequence_number
        if p.stream_id is not None:
            self._stay_in(p.stream_id)
        if (
            number == self._due
            and p.item_id == self._item
            and p.output_index == self._place
            and call is not None
            and call.state is OPEN
            and text
            and p.call_id is None
        ):
            call.fragments.append(text)  # as Calls.append, without the call: measurable here
            out.append(ToolCallDelta(call.ordinal, text))
            self._due = number and number + 1
        else:
            self._unusual_piece(p, out)
            self._item, self._place = p.item_id, p.output_index
            grown = self._functions.get(p.output_index)  # type: ignore[arg-type]
            self._grown = grown
            if grown is not None and (
                grown.agent is not None
                or grown.stated
                or self._places.is_of_another(grown, OF[ArgumentsPiece], p.item_id, p.call_id)
            ):
                self._grown = None  # the long way names an agent, and asks whose it is

    def _unusual_piece(self, p: ArgumentsPiece, out: Out) -> None:
        """The number of one is looked at if it has one; else it is counted, as the usual ones are."""
        number = p.sequence_number
        self._look(number)
        self._call_piece(p, out)
        if type(number) is int:
            self._numbers.counted()

    def _call_piece(self, p: _Piece | ArgumentsPiece, out: Out) -> None:
        call = self._call_of(p, p.delta, out)
        if call is None:
            return
        if not isinstance(p.delta, str):
            self.calls.textless(call)
        elif p.delta and call.stated and call.state < CLOSED:
            self.calls.taint(call, "a fragment came after all of it was said")
        elif p.delta:
            self.calls.append(call, p.delta, out)

    def _call_said(self, p: _Said, out: Out) -> None:
        """The whole arguments, code or input of a call; its item will close it."""
        text = next((t for t in (p.arguments, p.code, p.input) if t is not None), None)
        placed = p.output_index is not None or p.item_id or p.call_id
        if not placed and len(self._places.growing(OF[type(p)])) > 1:  # whose all is it?
            self.calls.astray(wire_kind=_kind(p))
            return
        call = self._call_of(p, text or "", out)
        if call is None:
            return
        plain = call.kind.key is not None  # which has no brace to close it
        if text is None and (plain or not call.fragments):  # a word on all of it that says nothing
            self.calls.textless(call)
        if call.wire_id:
            self.calls.hear(call, out, name=p.name)
        elif p.name:  # the item itself will say who it is; if it never comes, the name is needed
            self._names[call.ordinal] = p.name
        if not (call.taint and self.even_objects):  # an object is no word of the wire on a text
            self.calls.settle(call, text or "", out)
        self._grown = None  # what comes after all was said is looked at

    def _progress_piece(self, p: _Piece, out: Out) -> None:
        """Commands and diffs are parts of an object that comes whole with its item."""
        payload = {"delta": p.delta}
        if p.command_index is not None:
            payload["command_index"] = p.command_index
        self._progress(p, STATUS[type(p)], payload, out)

    def _progress_said(self, p: _Said, out: Out) -> None:
        said = {k: v for k in ("command", "command_index", "diff", "output")
                if (v := getattr(p, k)) is not None}  # fmt: skip
        self._progress(p, STATUS[type(p)], said, out)

    def _status(self, p: _Status, out: Out) -> None:
        image = {"b64": p.partial_image_b64, "index": p.partial_image_index}
        self._progress(p, STATUS[type(p)], image if p.partial_image_b64 else None, out)

    def _progress(self, p: Any, status: str, payload: Any, out: Out) -> None:
        """A status is no evidence that a call exists: without one it is told alone."""
        call = self._places.known(p.output_index, p.item_id, OF[type(p)], p.call_id)
        if call is None:
            self.scribe.note("call.unannounced", wire_kind=_kind(p))
        else:
            self.calls.hear(call, out, id=first_text(p.call_id), field="call_id", source="natural")
        self.calls.progress(out, call, status, payload, id=p.item_id or "")

    # --- which call is meant --------------------------------------------------------------------

    def _call_of(self, p: Any, text: Any, out: Out) -> Call | None:
        """The call that a piece or a copy of its text is of; none if it is empty and of none."""
        type_ = OF[type(p)]
        copy = isinstance(p, _Said)
        call = self._places.known(p.output_index, p.item_id, type_, p.call_id, copy=copy)
        if call is None:
            return self._open_unannounced(p, type_, out) if text != "" else None
        if self._places.is_of_another(call, type_, p.item_id, p.call_id):
            self.calls.astray(wire_kind=_kind(p))
            if copy:
                call.aside = hash(text or "")  # a copy that says something else is no proof
            return None
        if p.call_id is not None:
            self.calls.hear(call, out, id=p.call_id, field="call_id", source="natural")
        return call

    def calls_named(self, payload: dict[str, Any]) -> list[Call] | None:
        index, item = payload.get("output_index"), first_text(payload.get("item_id"))
        if type(index) is not int:
            index = None
            if item is None:
                return None
        return self._places.named(index, item or "", self.TOOLS)

    def _open_unannounced(self, p: Any, type_: str, out: Out) -> Call:
        self.scribe.note("call.unannounced", wire_kind=_kind(p))
        call = self._open(self.TOOLS[type_], {"id": p.item_id}, p.output_index, out)
        self.calls.hear(call, out, id=p.call_id, field="call_id", source="natural")
        # What came before this piece may be lost as well; a copy of the whole text heals that.
        self.calls.taint(call, "its beginning was not heard")
        return call

    def _open(self, tool: Tool, item: dict[str, Any], index: int | None, out: Out) -> Call:
        """A call of which no more is known than its type and place: see ``_learn``."""
        field, source = tool.ids[0]
        agent = self._agents.get(index)
        call = self.calls.open(out, kind_of(tool, item), field=field, seen=item, agent=agent)
        if self._before:
            self._doubt_beginning(call, index)
        if source == "natural":
            call.fallback = field
        self._places.opened(call, tool.type, index, first_text(item.get("id")))
        return call

    def _doubt_beginning(self, call: Call, index: int | None) -> None:
        if index is None or index < self._before:
            self.calls.taint(call, "it began over the connection before this one")

    def _open_item(self, tool: Tool, item: dict[str, Any], index: int | None, out: Out) -> Call:
        """The call of an item. What stood open in its place is void: one place is one call."""
        for held in self._places.open_at(index):
            self.calls.void(held, out)
        return self._open(tool, item, index, out)

    def _open_done(self, tool: Tool, item: dict[str, Any], index: int | None, out: Out) -> Call:
        """The call of an item that is done and was never added. One of its id and its name that is not
        closed cannot be another: that one was given up."""
        named = self.calls.by_id(0, first_text(item.get("call_id")) or "")
        if named is not None and named.state < CLOSED and named.name == name_of(tool, item):
            self.calls.void(named, out)
        if identity_of(tool, item)[0] is None and self._is_growing(tool, item):
            self.calls.lossy = "it has no id, and may be one that has begun elsewhere"
        return self._open_item(tool, item, index, out)

    def _is_growing(self, tool: Tool, item: dict[str, Any]) -> bool:
        """Is there a call of this type and name that is not closed?"""
        name = name_of(tool, item)
        return any(call.name == name for call in self._places.growing(tool.type))

    # --- items ----------------------------------------------------------------------------------

    def _item_added(self, p: _OfItem, out: Out) -> None:
        if p.output_index is not None:
            self._reached = max(self._reached, p.output_index + 1)
        item, raw = self.sound(p.item)
        tool = self._tool_of(item)
        self._speak_of(p, item)
        if tool is not None and "call" in tool.role:
            self.ask_once(raw)
            self._call_added(tool, item, raw, p.output_index, out)
        elif tool is not None:
            self._output_added(tool, item, p.output_index)
        elif self._doubt_unless_typed(item, p.output_index):
            self._places.house(id_of(item), p.output_index)
            self._told_in(item).house(p.output_index)
        self.calls.lossy = ""

    def _speak_of(self, p: _OfItem, item: Any) -> None:
        """An item says who made it; so may the event that brings it."""
        if p.agent is not None or (isinstance(item, dict) and "agent" in item):
            said = item.get("agent") if isinstance(item, dict) else None
            self._speak(p.output_index, said, p.agent)
        elif p.output_index is None:
            self._agents.pop(None, None)

    def _told_in(self, item: dict[str, Any]) -> Texts:
        return self._thoughts if item.get("type") == "reasoning" else self._texts

    def _call_added(
        self, tool: Tool, item: dict[str, Any], raw: bytes, index: int | None, out: Out
    ) -> None:
        name = name_of(tool, item)
        call = self._places.of_item(tool.type, item, index, name, adding=True)
        if call is not None and self._places.is_added(call):  # this very item was added before
            if self._places.is_over(call, item, index):
                return self.scribe.note("call.start_repeated", call_id=call.id)
            again = call.state is not State.OVER  # else it is another item
            again = again and self.calls.restarts(call, call.wire_id, name, out)
            call = call if again else None
        if call is None:
            call = self._open_item(tool, item, index, out)
        self._places.add(call)
        self._learn(call, tool, item, index, out)
        call.echo = echo_of(item)
        if any(item.get(field) for field in tool.said[1:]):
            call.given = input_of(tool, item, raw) or call.given
        if self.calls.lossy:
            self.calls.taint(call, self.calls.lossy)

    def _doubt_unless_typed(self, item: Any, index: int | None) -> bool:
        """An item that does not say of what type it is may be the call in its place, or any. Does it?"""
        if isinstance(item, dict) and isinstance(item.get("type"), str):
            return True
        anybody = self.calls.unfinished()
        for call in anybody if index is None else self._places.named(index, "", self.TOOLS):
            self.calls.taint(call, "an item came in its place that cannot be read")
        return False

    def _tool_of(self, item: Any) -> Tool | None:
        return self.TOOLS.get(str(item.get("type"))) if isinstance(item, dict) else None

    def _output_added(self, tool: Tool, item: dict[str, Any], index: int | None) -> None:
        """Events about an output that is still growing are progress of its call."""
        call = self.calls.by_id(0, identity_of(tool, item)[0] or "")
        if call is not None:
            self._places.remember(call, tool.type, index, first_text(item.get("id")))

    def _item_done(self, p: _OfItem, out: Out) -> None:
        if p.output_index is not None:
            self._reached = max(self._reached, p.output_index + 1)
        item, raw = self.sound(p.item)
        tool = self._tool_of(item)
        self._speak_of(p, item)
        if tool is None:
            self._doubt_unless_typed(item, p.output_index)
            texts = self._told_in(item if isinstance(item, dict) else {})
            self._other_item(item, self._home_of(id_of(item), p.output_index, texts), out)
        elif "call" in tool.role:
            index = p.output_index
            call = self._places.of_item(tool.type, item, index, name_of(tool, item))
            call = call or self._open_done(tool, item, index, out)
            self._call_item(call, tool, item, raw, index, out)
        elif not self._output_again(tool, item, p.output_index):
            self._output_item(tool, item, out)
        self.calls.lossy = ""

    def _call_item(
        self, call: Call, tool: Tool, item: dict[str, Any], raw: bytes, index: int | None, out: Out
    ) -> None:
        self.ask_once(raw)
        id = self._learn(call, tool, item, index, out)
        is_theirs = call.kind.runs_on == "provider" and not tool.output
        call.echo = echo_of(item, is_theirs=is_theirs)
        text = input_of(tool, item, raw)
        if text is None and (not call.fragments or is_illegible(tool, item)):
            self.calls.taint(call, "its input could not be read, or is where its type has none")
        if text in _NONE and not call.fragments and call.given not in _NONE:
            self.calls.taint(call, "its beginning said an input, and its end says none")
        if text == "{}" and is_made_of_nothing(tool, item) and (call.taint or self.calls.lost):
            text = ""  # no word of the wire, and something was lost
        self._restate(call, id, text or "", out)
        self._grown = None
        told = call.state is State.OVER
        self._close_item(call, tool, item, out)
        if call.state is CLOSED and not call.fragments and says_none(tool, item):
            call.stated = True
        if not tool.output and not told and has_failed(item) and call.kind.runs_on == "provider":
            # no result may ever say it
            self.calls.progress(out, call, str(item["status"]), item.get("error"))
        if tool.output and self._outputs.answer(call):
            self._tell_output(tool, item, call, out)

    def _restate(self, call: Call, id: str | None, text: str, out: Out) -> None:
        """What an item says of its call. One under another id than was told may be another's."""
        mine = id is None or id == call.wire_id
        (self.calls.restate if mine else self.calls.settle)(call, text, out)

    def _close_item(self, call: Call, tool: Tool, item: dict[str, Any], out: Out) -> None:
        """An item closes its call, unless its status says that it is not all there.

        What the provider runs itself may fail although its call was whole: that is its result.
        """
        said = item.get("status")
        status = said if isinstance(said, str | None) else "?"
        unsure = not status or (status in FINISHED and status != "completed")
        if (status == "in_progress" and not call.fragments) or (unsure and not self._complete):
            return  # nothing of it came yet, or the response was cut: no end
        if status in UNFINISHED:
            self.calls.deny(call, "truncated", "its item says that it is incomplete")
            is_theirs = call.kind.runs_on == "provider"
            call.returned = item if is_theirs and not (call.taint or self.calls.lossy) else None
        elif status == "failed" and call.kind.runs_on == "client":
            self.calls.deny(call, "provider_error", "its item says that it failed")
        else:
            if status not in (None, "failed", *FINISHED):
                self.scribe.note("wire.field_odd", where="item.status")
            self.calls.close(call, out)

    def _tell_output(self, tool: Tool, item: dict[str, Any], call: Call, out: Out) -> None:
        """A hybrid's result. It may be told before the call where that waits for the turn's end."""
        self.calls.result(
            out, output_of(tool, item), id=call.id, family=tool.family, call=call,
            is_error=is_error(item), echo=item,
        )  # fmt: skip
        if (shown := picture_of(tool, item)) is not None:
            self.show(out, shown, place=call.ordinal, agent=call.agent)

    def _output_again(self, tool: Tool, item: dict[str, Any], index: int | None) -> bool:
        if id_of(item):
            return self._heard_before(item)
        return self._outputs.is_again(tool.type, repr(item), index)

    def _output_copied(self, item: dict[str, Any]) -> bool:
        return self._heard_before(item) if id_of(item) else self._outputs.is_copy(repr(item))

    def _output_item(self, tool: Tool, item: dict[str, Any], out: Out) -> None:
        id, _, _ = identity_of(tool, item)
        call = self._outputs.call_of(tool.type, id)
        if call is not None:
            self._outputs.answer(call)
        self.calls.result(
            out, output_of(tool, item), id=id, family=tool.family, call=call,
            is_error=is_error(item), echo=item,
        )  # fmt: skip

    def _learn(
        self, call: Call, tool: Tool, item: dict[str, Any], index: int | None, out: Out
    ) -> str | None:
        """Where an item stands, who it is, and its name; its id, if it has one."""
        self._places.remember(call, tool.type, index, first_text(item.get("id")))
        id, field, source = identity_of(tool, item)
        self.calls.hear(call, out, id=id, field=field, source=source, name=name_of(tool, item))
        return id

    def _other_item(self, item: Any, index: int | None, out: Out) -> None:
        kind = str(item.get("type")) if isinstance(item, dict) else ""
        if kind in ("message", "output_message"):
            self._message(item, index, out)
        elif kind == "reasoning":
            self._reasoning(item, index, out)
        elif kind in OPAQUE:
            self._echo_item(item, index, out)
        elif not self._heard_before(item):
            self.unknown({"type": f"output_item/{kind}", "item": item}, "item", out)

    def _message(self, item: dict[str, Any], index: int | None, out: Out) -> None:
        for at, part in enumerate(items_of(item.get("content"))):
            if isinstance(part, dict):
                self._tell_part(part, index, at, out)
        self._echo_text(item, index, out)

    def _echo_text(self, item: dict[str, Any], index: int | None, out: Out) -> None:
        echo = {k: item[k] for k in ("type", "id", "phase", "status", "agent") if item.get(k)}
        if item.get("id") and not self._heard_before(item):
            self._tell_text("", index, out, echo)

    def _reasoning(self, item: dict[str, Any], index: int | None, out: Out) -> None:
        """Reasoning is said again in its item: what was never told before is told from there."""
        parts = _thoughts_of(item)
        if self._is_retold(index):
            pass
        elif not self._thoughts.has(index):
            if text := "\n".join(parts.values()):
                self._thoughts.pieces(index, None).append(text)
                self._tell_thought(text, index, out)
        elif self._thoughts.has_all(index, parts):
            for at, text in parts.items():
                if news := self._thoughts.news(index, at, text):
                    self._tell_thought(news, index, out)
        self._echo_item(item, index, out)

    def _echo_item(self, item: dict[str, Any], index: int | None, out: Out) -> None:
        """What must go back as it came; once, although it may be said again at the end."""
        if not self._heard_before(item):
            self._tell_thought("", index, out, item)

    def _heard_before(self, item: Any) -> bool:
        """Items are said again at the end. One without an id is known by what it says."""
        key = id_of(item) or repr(item)
        heard = key in self._echoed
        self._echoed.add(key)
        return heard

    # --- the end --------------------------------------------------------------------------------

    def _over(self, p: _OfResponse, out: Out) -> None:
        final, output = self._final(p.response)
        self._usage = final.usage or {}
        status = STATUS[type(p)] or final.status or "completed"
        if final.status in ("failed", "cancelled", "incomplete"):
            status = final.status  # whatever the event is called
        if status == "failed" or final.error:
            raise StreamFailed(_failure(final.error))
        if status == "cancelled":
            raise StreamFailed(Failure("cancelled", "the response was cancelled"))
        self._complete = status == "completed"
        self._ask_whose(final.id)
        self._reconcile(output, out)
        self.reason, self.raw_reason = self._why_over(status, final.incomplete_details)
        for call in self.calls.unfinished():
            self.calls.hear(call, out, name=self._names.get(call.ordinal))
            if self._places.may_be_told(call, call.raw, Counter()):
                self.calls.fail(call, "conflict", _ELSEWHERE, out)
        raise StreamOver

    def _ask_whose(self, id: Any) -> None:
        """Gateways were seen to change the id of a response in mid-stream, and relays to mix two: under
        another id it ends the turn, but is no word on a call that was not told by then."""
        began = self._began or self.scribe.response_id
        if began and first_text(id) not in (None, began):
            self.scribe.note("stream.id_changed")
            self.calls.taint_open(_ANOTHER)
            self.calls.lossy = _ANOTHER

    def _final(self, raw: Raw) -> tuple[_Final, list[tuple[Any, bytes]]]:
        """The last response, and its items: what each says, and its text."""
        said, data = self.sound(raw)
        try:
            final = decoded(data, _as_final)
        except msgspec.ValidationError:
            self.scribe.note("wire.field_odd", where="response")
            status = said.get("status") if isinstance(said, dict) else None
            return _Final(status=first_text(status)), []
        texts = map(bytes, final.output or ())
        return final, list(zip(items_of(said.get("output")), texts, strict=True))

    def _why_over(self, status: str, details: Any) -> tuple[FinishReason, str]:
        if status == "completed":
            return ("refusal" if self._refused else "stop"), status
        raw = first_text(details.get("reason") if isinstance(details, dict) else None) or status
        return self.finish_reason(raw), raw

    def _reconcile(self, output: list[tuple[Any, bytes]], out: Out) -> None:
        """The final response says everything once more; what was never heard is told now.

        An empty list takes nothing back, as real servers send it; one without a call does.
        """
        named, heard, listed = set[int](), len(self.calls.all), _ids_in(output)
        news = output[self._before :]
        spare = sum(any(_message_texts(item)) for item, _ in news) - self._texts.places()
        for index, (item, data) in enumerate(output):
            tool = self._tool_of(item)
            if index < self._before and not self._began_here(tool, item, index):
                self._recall(tool, item)
            elif tool is None:
                if isinstance(item, dict):
                    spare -= self._late_item(item, index, spare > 0, out)
            elif "call" in tool.role:
                call = self._of_final(tool, item, data, index, named, out)
                named.add(call.ordinal)
                self._reconcile_call(call, tool, item, data, listed, out)
            elif not self._output_copied(item):
                self._output_item(tool, item, out)
        self.calls.lossy = ""  # of the whole response: it cannot be said whose it was
        for call in self.calls.all[:heard] if output else ():
            if call.ordinal not in named:
                self.scribe.note("call.unlisted", call_id=call.id)
                self.calls.fail(call, "conflict", "the final response has no such call", out)

    def _recall(self, tool: Tool | None, item: Any) -> None:
        """What was told before this connection still says why the turn ended."""
        self.scribe.note("stream.retold")
        if tool is not None and "call" in tool.role:
            if kind_of(tool, item).runs_on == "client":
                self.calls.called.add(0)
        elif isinstance(item, dict) and item.get("type") == "message":
            parts = items_of(item.get("content"))
            refusals = [first_text(p.get("refusal")) for p in parts if isinstance(p, dict)]
            self._refused = self._refused or any(refusals)

    def _began_here(self, tool: Tool | None, item: dict[str, Any], index: int) -> bool:
        """Was anything of this call or output heard over this connection?"""
        return tool is not None and self._places.has_item(tool.type, item, index)

    def _of_final(
        self, tool: Tool, item: dict[str, Any], raw: bytes, index: int, named: set[int], out: Out
    ) -> Call:
        """The call that an item of the final response says again; a new one if there is none."""
        name = name_of(tool, item)
        call = self._places.of_final_item(tool.type, item, index, name)
        if call is None:
            text = input_of(tool, item, raw) or ""
            call = self._places.told_alike(tool.type, name or "", text, named)
        if call is None:
            call = self._open(tool, item, None, out)
            call.agent = _named(item.get("agent"))
        return call

    def _reconcile_call(
        self,
        call: Call,
        tool: Tool,
        item: dict[str, Any],
        raw: bytes,
        listed: Counter[str],
        out: Out,
    ) -> None:
        """What the final response says of a call, told or not."""
        if call.state is State.OVER:
            id = self._learn(call, tool, item, None, out)
            self._restate(call, id, input_of(tool, item, raw) or "", out)
        elif self._places.may_be_told(call, input_of(tool, item, raw) or "", listed):
            self._learn(call, tool, item, None, out)
            self.calls.fail(call, "conflict", _ELSEWHERE, out)
        else:
            self._call_item(call, tool, item, raw, None, out)

    def _late_item(self, item: dict[str, Any], index: int, new: bool, out: Out) -> bool:
        """Messages are compared with what was told; gateways number them anew, so only as a whole.

        Is it told now? One that was never told is only one more than were heard (``new``).
        """
        if item.get("type") == "message":
            if self._texts.told(_message_texts(item)):
                return False
            if new:
                self._speak(index, item.get("agent"))
                self._message(item, index, out)
            else:
                self.scribe.note("wire.text_mismatch")
            return new
        heard = id_of(item) in self._echoed
        if not heard and not (item.get("type") == "reasoning" and self._thoughts.has_any()):
            self._speak(index, item.get("agent"))
            self._other_item(item, index, out)
        return False

    def _error(self, p: _Error, out: Out) -> None:
        said = p.error if isinstance(p.error, dict) else {}
        raise StreamFailed(_failure({"code": p.code, "message": p.message or p.error, **said}))

    def _keepalive(self, p: Any, out: Out) -> None:
        self.scribe.note("wire.keepalive")

    def _created(self, p: _OfResponse, out: Out) -> None:
        self._agents.clear()
        if self.begin_answer(out):
            if p.stream_id != self._lane:
                raise StreamFailed(Failure("protocol", _LANES))
            self._began = first_text(field_of(bytes(p.response), "id"))
        self._lane = p.stream_id

    def _under_way(self, p: _OfResponse, out: Out) -> None:
        """Says nothing new, unless the event that began the response never came."""
        if self.scribe.response_id is None and self._began is None:
            self._began = first_text(field_of(bytes(p.response), "id"))

    def _stay_in(self, lane: Any) -> None:
        """Something names its lane. What names none may come over another connection."""
        if self._lane is UNSET:
            self._lane = lane
        elif lane != self._lane:
            raise StreamFailed(Failure("protocol", _LANES))

    def _beside(self, p: _Beside, out: Out) -> None:
        """No event of ours says it: passed on whole."""
        if p.stream_id is not None:
            self._stay_in(p.stream_id)
        self._numbers.look_beside(p.sequence_number)
        self._due = _UNKNOWN
        self._numbers.counted()
        said = {f: v for f in p.__struct_fields__ if (v := getattr(p, f)) is not None}
        out.append(Unrecognized(_kind(p), {"type": _kind(p), **said}))

    def _silent(self, p: Any, out: Out) -> None:
        """Known, and of no use to us."""

    def _done(self, out: Out) -> None:
        """Some proxies add the end mark of another wire; alone it is no evidence."""

    def usage(self) -> Usage | None:
        raw = self._usage
        return Usage(
            count(raw, "input_tokens"), count(raw, "output_tokens"),
            count(raw, "input_tokens_details", "cached_tokens"),
            count(raw, "input_tokens_details", "cache_write_tokens"),
            count(raw, "output_tokens_details", "reasoning_tokens"), raw,
        ) if raw else None  # fmt: skip

    WORDS: ClassVar[dict[bytes, Word]] = {b"[DONE]": _done}


def _ids_in(output: list[tuple[Any, bytes]]) -> Counter[str]:
    """All ids that the items of a response have, and how many have each."""
    items = [item for item, _ in output if isinstance(item, dict)]
    ids = ({first_text(item.get(field)) for field in ("id", "call_id")} for item in items)
    return Counter(id for those in ids for id in those if id is not None)


def _message_texts(item: Any) -> list[str | None]:
    if not isinstance(item, dict) or item.get("type") != "message":
        return []
    parts = [p for p in items_of(item.get("content")) if isinstance(p, dict)]
    return [first_text(p.get("text"), p.get("refusal")) for p in parts]


def _thoughts_of(item: dict[str, Any]) -> dict[tuple[Any, Any], str]:
    """The texts of a reasoning item, by where its pieces would say that they stand."""
    summary, content = items_of(item.get("summary")), items_of(item.get("content"))
    parts: dict[tuple[Any, Any], Any] = {(at, None): part for at, part in enumerate(summary)}
    parts |= {(None, at): part for at, part in enumerate(content)}
    texts = {at: first_text(p.get("text")) for at, p in parts.items() if isinstance(p, dict)}
    return {at: text for at, text in texts.items() if text}


def _named(agent: Any) -> str | None:
    """The name of an agent; none where only one speaks."""
    return first_text(agent.get("agent_name")) if isinstance(agent, dict) else None


def _thought_at(p: _Piece | _Said) -> tuple[Any, Any]:
    """Summaries and contents of one item are counted apart."""
    return p.summary_index, p.content_index


def _failure(error: Any) -> Failure:
    said = error if isinstance(error, dict) else {}
    code = first_text(said.get("code"), said.get("type"))
    message = first_text(said.get("message"), code) or "the provider reported an error"
    return Failure("provider_error", message, code, code in RETRYABLE)


def _kind(payload: Any) -> str:
    return str(type(payload).__struct_config__.tag)


# --- one row per kind of event ------------------------------------------------------------------
# kind, its payload type, its handler; then the type of item it is about and the status it tells.


class Row(NamedTuple):
    kind: str
    payload: type[Payload]
    handler: Handler
    of: str = ""
    status: str = ""


P = ResponsesParser
ROWS = (
    Row("response.output_item.added", _OfItem, P._item_added),
    Row("response.output_item.done", _OfItem, P._item_done),
    Row("response.text.delta", _Piece, P._other_text),
    Row("response.output_text.done", _Said, P._text_said),
    Row("response.content_part.added", _Said, P._part_added),
    Row("response.content_part.done", _Said, P._text_said),
    Row("response.refusal.delta", _Piece, P._refusal_piece),
    Row("response.refusal.done", _Said, P._text_said),
    Row("response.output_text.annotation.added", _Annotated, P._annotated),
    Row("response.output_text_annotation.added", _Annotated, P._annotated),
    Row("response.audio.delta", _Piece, P._media),
    Row("response.audio.done", _Said, P._silent),
    *(
        row for transcript in ("response.audio.transcript", "response.audio_transcript") for row in (
            Row(f"{transcript}.delta", _Piece, P._other_text),
            Row(f"{transcript}.done", _Said, P._silent),
        )
    ),
    *(
        row for thought in ("reasoning_text", "reasoning_summary_text", "reasoning", "reasoning_summary")
        for row in (
            Row(f"response.{thought}.delta", _Piece, P._thought_piece),
            Row(f"response.{thought}.done", _Said, P._thought_said),
        )
    ),
    Row("response.reasoning_summary_part.added", _Said, P._silent),
    Row("response.reasoning_summary_part.done", _Said, P._thought_said),
    Row("response.function_call_arguments.done", _Said, P._call_said, "function_call"),
    Row("response.mcp_call_arguments.delta", _Piece, P._call_piece, "mcp_call"),
    Row("response.mcp_call_arguments.done", _Said, P._call_said, "mcp_call"),
    Row("response.mcp_call.arguments_delta", _Piece, P._call_piece, "mcp_call"),
    Row("response.mcp_call.arguments_done", _Said, P._call_said, "mcp_call"),
    Row("response.custom_tool_call_input.delta", _Piece, P._call_piece, "custom_tool_call"),
    Row("response.custom_tool_call_input.done", _Said, P._call_said, "custom_tool_call"),
    Row("response.code_interpreter_call_code.delta", _Piece, P._call_piece, "code_interpreter_call"),
    Row("response.code_interpreter_call_code.done", _Said, P._call_said, "code_interpreter_call"),
    Row("response.shell_call_command.added", _Said, P._progress_said, "shell_call", "command"),
    Row("response.shell_call_command.delta", _Piece, P._progress_piece, "shell_call", "command"),
    Row("response.shell_call_command.done", _Said, P._progress_said, "shell_call", "command_done"),
    Row("response.shell_call_output_content.delta", _Piece, P._progress_piece,
        "shell_call_output", "output"),
    Row("response.shell_call_output_content.done", _Said, P._progress_said,
        "shell_call_output", "output_done"),
    Row("response.apply_patch_call_operation_diff.delta", _Piece, P._progress_piece,
        "apply_patch_call", "diff"),
    Row("response.apply_patch_call_operation_diff.done", _Said, P._progress_said,
        "apply_patch_call", "diff_done"),
    *(
        Row(f"response.{of}.{status}", _Status, P._status, of, status)
        for of, statuses in {
            "code_interpreter_call": ("in_progress", "interpreting", "completed"),
            "file_search_call": ("in_progress", "searching", "completed"),
            "web_search_call": ("in_progress", "searching", "completed"),
            "image_generation_call": ("in_progress", "generating", "partial_image", "completed"),
            "mcp_call": ("in_progress", "completed", "failed"),
            "mcp_list_tools": ("in_progress", "completed", "failed"),
        }.items()
        for status in statuses
    ),
    Row("response.created", _OfResponse, P._created),
    Row("response.in_progress", _OfResponse, P._under_way),
    Row("response.queued", _OfResponse, P._under_way),
    Row("response.compaction.compacting", _Status, P._silent),
    Row("response.completed", _OfResponse, P._over, status="completed"),
    Row("response.incomplete", _OfResponse, P._over, status="incomplete"),
    Row("response.failed", _OfResponse, P._over, status="failed"),
    Row("response.cancelled", _OfResponse, P._over, status="cancelled"),
    Row("response.done", _OfResponse, P._over),
    *(
        Row(f"response.{what}", _Beside, P._beside)
        for what in ("steer.accepted", "steer.pending", "steer.failed", "inject.created", "inject.failed")
    ),
    Row("error", _Error, P._error),
    Row("ping", _Status, P._keepalive),
    Row("keepalive", _Status, P._keepalive),
)  # fmt: skip
OF: dict[type, str] = {ArgumentsPiece: "function_call"}
STATUS: dict[type, str] = {}


def payload_types(rows: tuple[Row, ...]) -> dict[type, Handler]:
    """A tagged payload type for each row: its kind is its tag, so msgspec does the dispatch."""
    kinds: dict[type, Handler] = {}
    for row in rows:
        tagged = msgspec.defstruct(
            row.kind, (), bases=(row.payload,), forbid_unknown_fields=True, gc=False,
            tag=row.kind, tag_field="type",
        )  # fmt: skip
        is_beside = row.payload is _Beside  # its number may be of another row
        kinds[tagged] = row.handler if is_beside else _number_and(row.handler)
        OF[tagged], STATUS[tagged] = row.of, row.status
    return kinds


def _number_and(handler: Handler) -> Handler:
    """The handler, behind a look at the lane and the number of its event."""

    def numbered(parser: ResponsesParser, payload: Any, out: Out) -> None:
        if payload.stream_id is not None:
            parser._stay_in(payload.stream_id)
        numbers = parser._numbers
        numbers.look(payload.sequence_number)
        parser._due = _UNKNOWN
        handler(parser, payload, out)
        numbers.counted()

    return numbered


P.KINDS = {TextPiece: P._text_piece, ArgumentsPiece: P._arguments_piece, **payload_types(ROWS)}


P.decode = staticmethod(decoder_of(P.KINDS))


ITEMS = tuple(tool.item for tool in TOOLS)
PARSER = ResponsesParser
