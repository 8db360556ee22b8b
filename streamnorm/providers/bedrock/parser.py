"""Amazon Bedrock ConverseStream. Every word of that wire that we know is in this file.

    messageStart -> block* -> messageStop -> metadata              an exception: anywhere, the last
    block = [contentBlockStart] -> contentBlockDelta* -> contentBlockStop        (contentBlockIndex)

Frames are binary (``framing.aws``); each comes here as ``{"<event>": {…}}``, which is also how SDKs
hand them out. Only tools and media have a start, text and reasoning begin by themselves. A block is
found by its index and its kind, as proxies were seen to use one index for two kinds. Usage follows
``messageStop``, so the stream is over when both have come.

    chunk*                    InvokeModelWithResponseStream: payloads of the wire that a model speaks
    PayloadPart*              SageMaker: stretches of the body that an endpoint sends
    (chunk | returnControl)*  InvokeAgent: text; calls that the agent leaves to the client

The first two are envelopes. The framing unpacks them, and the wire inside is read by its own parser:
which one it is, the first payload tells. The stream has the name of the wire inside, as what must go back
is in its words; it may be named as well. What the service says around it, exceptions and counts, is in
words of this wire. Nova speaks this wire itself, and bodies that are text alone are read here, too.
"""

from __future__ import annotations

import base64
import codecs
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, NamedTuple, TypeAlias

import msgspec
from msgspec import Raw

from ...core import even
from ...core.calls import BEGUN_LATE, FUNCTION, UNPLACED, Call, Evidence, Kind, State
from ...core.media import Shown
from ...core.parser import (
    UNREADABLE,
    Decode,
    Failure,
    Handler,
    Heading,
    Parser,
    Payload,
    StreamFailed,
    StreamOver,
    count,
    field_of,
    first_count,
    first_text,
    items_of,
)
from ...core.row import Item
from ...events import Citation, Event, FinishReason, ReasoningDelta, TextDelta, Unrecognized, Usage
from ...framing import Framer
from ...framing.aws import BROKEN, ERROR, EXCEPTION, Envelope, Envelopes
from ...framing.lines import Lines
from ...limits import LimitReached
from ...text.exact import Refused, parse
from ...text.media import bytes_of
from ...text.written import json_bytes

__all__ = ["ITEMS", "PARSER", "BedrockParser"]

Out: TypeAlias = list[Event]

# What the service adds to the last payload of any model.
METRICS = "amazon-bedrock-invocationMetrics"
ENVELOPE = Envelope("chunk", "PayloadPart")

# --- the payloads of this wire ------------------------------------------------------------------
# ``p`` is padding against guessing by length: known, and of no use to us.


class ToolInput(Payload):
    input: str | None = None


class Reasoning(Payload, rename="camel"):
    text: str | None = None
    signature: str | None = None
    redacted_content: str | None = None  # bytes, in base64


class Delta(Payload, rename="camel"):
    text: str | None = None
    tool_use: ToolInput | None = None
    reasoning_content: Reasoning | None = None
    citation: Any = None
    tool_result: Any = None
    image: Any = None


_NOTHING = Delta()


class BlockDelta(Payload, rename="camel"):
    delta: Delta
    content_block_index: int | None = None
    p: Any = None


class ToolUse(Payload, rename="camel"):
    use_id: str | None = msgspec.field(default=None, name="toolUseId")
    name: str | None = None
    type: str | None = None


class ToolResult(Payload, rename="camel"):
    use_id: str | None = msgspec.field(default=None, name="toolUseId")
    type: str | None = None
    status: str | None = None


class Start(Payload, rename="camel"):
    tool_use: ToolUse | None = None
    tool_result: ToolResult | None = None
    image: Any = None


class BlockStart(Payload, rename="camel"):
    start: Start
    content_block_index: int | None = None
    p: Any = None


class BlockStop(Payload, rename="camel"):
    content_block_index: int | None = None
    p: Any = None


class MessageStop(Payload, rename="camel"):
    stop_reason: str | None = None
    additional_model_response_fields: Any = None
    p: Any = None


class Metadata(Payload, rename="camel"):
    usage: dict[str, Any] | None = None
    trace: Any = None
    # Known, and of no use to us.
    metrics: Any = None
    performance_config: Any = None
    service_tier: Any = None
    p: Any = None


class Chunk(Payload):
    """Of an agent: a piece of its text."""

    bytes: str | None = None
    attribution: Any = None
    p: Any = None


class ReturnControl(Payload, rename="camel"):
    invocation_id: str | None = None
    invocation_inputs: Any = None
    p: Any = None


class ExceptionFrame(Payload):
    type: str | None = None
    payload: Any = None


class ErrorFrame(Payload):
    code: str | None = None
    message: str | None = None
    payload: Any = None


class Frame(Payload, rename="camel"):
    """One event: one of these fields."""

    content_block_delta: BlockDelta | None = None
    content_block_start: BlockStart | None = None
    content_block_stop: BlockStop | None = None
    message_start: Any = None
    message_stop: MessageStop | None = None
    metadata: Metadata | None = None
    metrics: Any = msgspec.field(default=None, name=METRICS)
    # Of agents.
    chunk: Chunk | None = None
    return_control: ReturnControl | None = None
    trace: Any = None
    files: Any = None
    # Bodies of models that have no wire but this: a piece of text, and counts with the last.
    generation: str | None = None
    output_text: str | None = None
    outputs: Any = None
    stop_reason: str | None = msgspec.field(default=None, name="stop_reason")
    completion_reason: str | None = None
    prompt_tokens: Any = msgspec.field(default=None, name="prompt_token_count")
    generation_tokens: Any = msgspec.field(default=None, name="generation_token_count")
    input_text_token_count: Any = None
    total_output_text_token_count: Any = None
    index: Any = None
    # What the framing says that is no event.
    exception: ExceptionFrame | None = msgspec.field(default=None, name=EXCEPTION)
    error: ErrorFrame | None = msgspec.field(default=None, name=ERROR)
    broken: Any = msgspec.field(default=None, name=BROKEN)
    # Exceptions, as SDKs hand them out.
    internal_server_exception: Any = None
    model_stream_error_exception: Any = None
    model_timeout_exception: Any = None
    service_unavailable_exception: Any = None
    throttling_exception: Any = None
    validation_exception: Any = None
    # The body of a request that was refused.
    message: Any = None
    type: Any = msgspec.field(default=None, name="__type")


# --- the types of tool blocks -------------------------------------------------------------------

_ID = "toolUse.toolUseId"
_INPUT = "toolUse.input, JSON text in deltas"
_START = "contentBlockStart.start.toolUse"
ITEMS = (
    Item("toolUse", "function", "call", "client", "natural", _ID, _INPUT),
    Item("toolUse/server_tool_use", "server-tool", "call", "provider", "natural", _ID, _INPUT),
    Item("toolResult", "server-tool", "output", "provider", "natural", "toolResult.toolUseId",
         "toolResult, content in deltas", "toolUseId"),
    Item("returnControl", "function", "call", "client", "synthetic", "",
         "parameters, name and value", note="an agent's; its invocationId goes back"),
    Item("toolResult (request)", "function", "output", "client", "natural", "toolResult.toolUseId",
         "content", "toolUseId", "request only"),
)  # fmt: skip
SERVER_TOOL = Kind("server-tool", "provider")
# A tool use says its type only if it is not the usual one; some models always say it.
CALLS: dict[str | None, Kind] = {None: FUNCTION, "tool_use": FUNCTION}

# --- the way in ---------------------------------------------------------------------------------

# Reasons that are failures: the model's own output could not be read by the service.
ERRORS = {"malformed_model_output", "malformed_tool_use"}
RETRYABLE = {
    "internalServerException", "internalFailure", "internalStreamFailure",
    "modelNotReadyException", "modelStreamError", "modelStreamErrorException",
    "modelTimeoutException", "serviceUnavailableException", "throttlingException",
}  # fmt: skip


_utf8 = codecs.getincrementaldecoder("utf-8")
_OF_BLOCKS = {"contentBlockStart", "contentBlockDelta", "contentBlockStop"}


class _Picture(NamedTuple):
    """A picture that is being told."""

    type: str | None
    pieces: list[Any]


# The words of bodies that are text alone: none of them ends a turn of blocks.
OF_BODIES: dict[str, FinishReason] = {
    "stop": "stop",
    "length": "length",
    "FINISH": "stop",
    "LENGTH": "length",
    "CONTENT_FILTERED": "content_filter",
}


class BedrockParser(Parser):
    """One ConverseStream answer."""

    name = "bedrock"
    END = "messageStop, then metadata"
    STARTS = frozenset({"aws"})
    decode: ClassVar[Decode] = staticmethod(msgspec.json.Decoder(Frame).decode)
    REASONS: ClassVar[dict[str, FinishReason]] = {
        "end_turn": "stop",
        "stop_sequence": "stop",
        "tool_use": "tool_calls",
        "max_tokens": "length",
        "model_context_window_exceeded": "length",
        "guardrail_intervened": "content_filter",
        "content_filtered": "content_filter",
        "malformed_model_output": "other",  # told as a failure in the end
        "malformed_tool_use": "other",  # told as a failure in the end
    }
    EVIDENCE = Evidence(
        "contentBlockStop of its index", "nothing", "a known stopReason in messageStop",
        "at contentBlockStop",
    )  # fmt: skip
    CALL_TEXTS = ("contentBlockDelta.delta.toolUse.input",)
    CALL_KEYS = (
        "contentBlockDelta.contentBlockIndex",
        "contentBlockStart.contentBlockIndex",
        "contentBlockStop.contentBlockIndex",
        "contentBlockStart.start.toolUse.type",
    )
    CALL_WORDS = (b'"toolUse"', b'"input"')
    QUIRKS: ClassVar[dict[str, tuple[str, even.Quirk]]] = {
        "contentBlockDelta.delta.toolUse.input": ("args.object", even.object_text),
        **dict.fromkeys(CALL_KEYS[:3], ("wire.shape_odd", even.integer)),
    }

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._tools: dict[int | None, Call] = {}  # one that says no index has a place as well
        self._results: dict[int, tuple[ToolResult, list[Any]]] = {}  # being told
        self._pictures: dict[int, _Picture] = {}  # by index: those whose block is open
        self._pictured = 0  # bytes of them
        self._usage: dict[str, Any] = {}
        self._counted = False  # metadata has come
        self._failure: Failure | None = None
        self._characters = _utf8("replace")  # of an agent's text

    @classmethod
    def framer(cls, start: str, limit: int) -> Framer:
        return Lines(limit) if start == "json" else Envelopes(ENVELOPE, limit)

    @classmethod
    def unpacker(cls, start: str, limit: int, knows: Callable[[bytes], bool]) -> Framer:
        return Envelopes(ENVELOPE, limit, lambda data: _is_body(data) or knows(data))

    @classmethod
    def around(cls, wire: type[Parser]) -> type[Parser]:
        return _around(wire)

    @classmethod
    def looks_like(cls, payload: dict[str, Any]) -> bool:
        return not payload.keys().isdisjoint(_EVENTS)

    def heading(self, data: bytes) -> Heading:
        return Heading()  # this wire says neither model nor id

    def kind_of(self, payload: Any) -> str:
        return str(next(iter(payload), "?")) if isinstance(payload, dict) else "?"

    def means(self, payload: Any) -> bool:
        """A block of a kind that we do not know has lost its only field by now."""
        if payload.content_block_delta is not None:
            return _says(payload.content_block_delta.delta)
        if payload.content_block_start is not None:
            return _says(payload.content_block_start.start)
        return _says(payload)

    def calls_named(self, payload: dict[str, Any]) -> list[Call] | None:
        said = next(iter(payload.values()), None)
        index = said.get("contentBlockIndex") if isinstance(said, dict) else None
        if type(index) is not int:
            return None
        return [self._tools[index]] if index in self._tools else []

    def _may_be_of_a_call(self, payload: Any, data: bytes) -> bool:
        """What the event of a frame has is an object: one without was damaged, whatever its name is."""
        if not isinstance(payload, dict) or not _OF_BLOCKS.isdisjoint(payload):
            return True
        odd = len(payload) == 1 and not isinstance(next(iter(payload.values())), dict)
        return odd or super()._may_be_of_a_call(payload, data)

    def _may_be_text(self, kind: str, payload: Any) -> bool:
        """The name of an event is its kind, and ``p`` is padding."""
        said = next(iter(payload.values()), None)
        said = {k: v for k, v in said.items() if k != "p"} if isinstance(said, dict) else payload
        return super()._may_be_text(kind, said)

    # the hot event first; the others have a table

    def _frame(self, p: Frame, out: Out) -> None:
        if p.content_block_delta is not None:
            self._block_delta(p.content_block_delta, out)
            return
        for field, handler in FIELDS.items():
            if (said := getattr(p, field)) is not None:
                handler(self, said, out)
        if not _says(p):
            self.scribe.note("wire.no_data", wire_kind="?")
            self._doubt_growing("an event came without its data")
        if p.generation is not None or p.output_text is not None or p.outputs is not None:
            self._body(p, out)

    def _body(self, p: Frame, out: Out) -> None:
        """There is no end mark: with the word for its end it is over."""
        said = [o for o in items_of(p.outputs) if isinstance(o, dict)]
        for text in (p.generation, p.output_text, *(o.get("text") for o in said)):
            if isinstance(text, str) and text:
                out.append(TextDelta(text))
        raw = first_text(p.stop_reason, p.completion_reason, *(o.get("stop_reason") for o in said))
        if raw is not None:
            self.raw_reason, self.reason = raw, OF_BODIES.get(raw) or self.finish_reason(raw)
        metrics = p.metrics if isinstance(p.metrics, dict) else {}
        counts = {
            "inputTokens": [p.prompt_tokens, p.input_text_token_count,
                            metrics.get("inputTokenCount")],
            "outputTokens": [p.generation_tokens, p.total_output_text_token_count,
                             metrics.get("outputTokenCount")],
        }  # fmt: skip
        for name, values in counts.items():
            told = next((v for v in values if isinstance(v, int)), None)
            if told is not None:
                self._usage[name] = told

    def _block_delta(self, p: BlockDelta, out: Out) -> None:
        delta, index = p.delta, p.content_block_index
        if delta.tool_use is not None:
            return self._fragment(index, delta.tool_use.input, out)
        if delta.text:
            out.append(TextDelta(delta.text, index or 0))
        else:
            self._rare_delta(index or 0, delta, out)
        if index in self._tools:
            self._taint_at(index, says_nothing=delta == _NOTHING)

    def _taint_at(self, index: int | None, *, says_nothing: bool) -> None:
        """What is no input came for a call's place while that was open: it was its fragment. What says
        nothing at all was, even if it comes after the stop."""
        call = self._tools[index]
        if call.state < State.CLOSED or says_nothing:
            self.calls.taint(call, "something else came in place of its arguments")

    def _fragment(self, index: int | None, text: str | None, out: Out) -> None:
        call = self._tools.get(index)
        if call is None:
            self.calls.astray((index,), index=index)
        elif text is None:
            self.calls.textless(call)
        elif text:
            grow = self.calls.merge_object if self.even_objects else self.calls.append
            grow(call, text, out)

    def _rare_delta(self, index: int, delta: Delta, out: Out) -> None:
        if delta.reasoning_content is not None:
            self._reasoning(index, delta.reasoning_content, out)
        if delta.citation is not None:
            out.append(Citation(index, delta.citation))
        if delta.tool_result is not None:
            self._result_delta(index, delta.tool_result)
        if delta.image is not None:
            self._picture(index, delta.image, out)

    def _picture(self, index: int, image: Any, out: Out) -> None:
        """Its bytes may come in pieces: it is told when its block ends."""
        picture = self._pictures.setdefault(index, _Picture(None, []))
        picture.pieces.append(image)
        said = image.get("source") if isinstance(image, dict) else None
        size = len(str(said.get("bytes") or "")) if isinstance(said, dict) else 0
        self._pictured += size * 3 // 4
        if self._pictured > self.calls.limits.media:
            raise LimitReached("media", self.calls.limits.media)

    def _show_picture(self, index: int, out: Out) -> None:
        picture = self._pictures.pop(index, None)
        if picture is None or not picture.pieces:
            return
        sources = [p.get("source") if isinstance(p, dict) else None for p in picture.pieces]
        said = [source if isinstance(source, dict) else {} for source in sources]
        data = [bytes_of(s["bytes"]) if isinstance(s.get("bytes"), str) else None for s in said]
        place = said[0].get("s3Location")
        whole = None if None in data else b"".join(piece or b"" for piece in data)
        url = place.get("uri") if isinstance(place, dict) else None
        pieces = picture.pieces[0] if len(picture.pieces) == 1 else picture.pieces
        self.show(out, Shown("media/delta.image", pieces, whole, url, picture.type))

    def _reasoning(self, index: int, said: Reasoning, out: Out) -> None:
        if said.text:
            out.append(ReasoningDelta(said.text, index))
        if said.signature:
            out.append(ReasoningDelta("", index, 0, {"signature": said.signature}))
        if said.redacted_content:
            out.append(ReasoningDelta("", index, 0, {"redactedContent": said.redacted_content}))

    # --- tools ----------------------------------------------------------------------------------

    def _block_start(self, p: BlockStart, out: Out) -> None:
        if p.start.tool_use is not None:
            self._call_start(p.content_block_index, p.start.tool_use, out)
        else:
            self._start_another(p.content_block_index, out)
        if p.start.tool_result is not None:
            self._results[p.content_block_index or 0] = p.start.tool_result, []
        if p.start.image is not None:
            self._picture_start(p.content_block_index or 0, p.start.image, out)

    def _start_another(self, index: int | None, out: Out) -> None:
        """What begins here is no call, or does not say what it is: one that is open in its place was given
        up."""
        held = self._tools.get(index)
        if held is not None and held.state < State.CLOSED:
            self.calls.void(held, out)

    def _picture_start(self, index: int, image: Any, out: Out) -> None:
        format = first_text(image.get("format") if isinstance(image, dict) else None)
        if format is None:
            out.append(Unrecognized("media/start.image", image))
        else:
            self._pictures[index] = _Picture(f"image/{format}", [])

    def _may_be_input(
        self, inside: str, value: bytes = b"null", *, beside: Mapping[str, msgspec.Raw]
    ) -> bool:
        """A start says no input: an object there, or the text of one, may be that."""
        return inside == _START and value.startswith((b"{", b"[", b'"{'))

    def _call_start(self, index: int | None, said: ToolUse, out: Out) -> None:
        held = self._tools.get(index)
        unplaced = index is None and held is not None and held.state < State.CLOSED
        if index is None:
            held = self.calls.again(held, said.use_id, out)
        if held is not None and self.calls.restarts(held, said.use_id, said.name, out):
            self._tools[index] = held
            return
        if held is not None:
            self.scribe.note("call.index_reused", index=index)
        kind = CALLS.get(said.type, SERVER_TOOL)  # never run at home what another may run
        call = self.calls.open(
            out, kind, id=said.use_id, field=_ID, name=said.name, seen=said, place=(index,),
            instead=held,
        )  # fmt: skip
        if index is not None or not self.calls.lossy:  # one that could not be read is no place
            self._tools[index] = call
        if self.reason is not None:
            self.calls.taint(call, BEGUN_LATE)
        if unplaced:
            self.calls.taint(call, UNPLACED)
        if kind is SERVER_TOOL:
            call.echo = {"type": said.type}

    def _result_delta(self, index: int, pieces: Any) -> None:
        if index not in self._results:
            self.scribe.note("call.unannounced", index=index)
            self._results[index] = ToolResult(), []
        self._results[index][1].extend(pieces if isinstance(pieces, list) else [pieces])

    def _block_stop(self, p: BlockStop, out: Out) -> None:
        if self._pictures:
            self._show_picture(p.content_block_index or 0, out)
        call = self._tools.get(p.content_block_index)
        if call is not None:
            self.calls.close(call, out)
        self._end_result(p.content_block_index or 0, out)

    def _end_result(self, index: int, out: Out) -> None:
        result, content = self._results.pop(index, (None, []))
        if result is None:
            return
        words = {"toolUseId": result.use_id, "type": result.type, "status": result.status}
        self.calls.result(
            out, content, id=result.use_id, family=SERVER_TOOL.family,
            is_error=result.status == "error",
            echo={**{k: v for k, v in words.items() if v is not None}, "content": content},
        )  # fmt: skip

    # --- the end --------------------------------------------------------------------------------

    def _message_stop(self, p: MessageStop, out: Out) -> None:
        self.end_with(p.stop_reason)
        if p.additional_model_response_fields:
            self.echo["additionalModelResponseFields"] = p.additional_model_response_fields
        for index in list(self._results):
            self._end_result(index, out)
        for index in list(self._pictures):
            self._show_picture(index, out)
        if p.stop_reason in ERRORS:
            what = f"the answer ended with {p.stop_reason}"
            self._failure = Failure("provider_error", what, p.stop_reason, True)
        self._end_if_over(out)

    def _metadata(self, p: Metadata, out: Out) -> None:
        self._counted = True
        self._usage = p.usage or self._usage
        if p.trace is not None:
            self.echo["trace"] = p.trace
        self._end_if_over(out)

    def _end_if_over(self, out: Out) -> None:
        """In either order: a relay was seen to send metadata first."""
        if self.reason is not None and self._counted:
            self.end_of_input(out)
            raise StreamOver

    def end_of_input(self, out: Out) -> None:
        self._say(b"", out, last=True)
        for picture in self._pictures.values():  # cut off: passed on as it came
            out.append(Unrecognized("media/delta.image", picture.pieces))
        self._pictures.clear()
        if self._failure is not None:
            raise StreamFailed(self._failure)

    # --- agents ---------------------------------------------------------------------------------

    def _agent_text(self, p: Chunk, out: Out) -> None:
        """There is no end mark: once something was said, the end of the body is the end."""
        try:
            data = base64.b64decode(p.bytes, validate=True)  # type: ignore[arg-type]
        except (TypeError, ValueError):  # none, or no base64
            return self.unknown({"chunk": p.bytes}, "text", out)
        self.reason = self.reason or "stop"
        self._say(data, out)
        for cited in items_of((p.attribution or {}).get("citations")) if p.attribution else ():
            out.append(Citation(0, cited))

    def _say(self, data: bytes, out: Out, *, last: bool = False) -> None:
        """A character may be cut between two pieces."""
        text = self._characters.decode(data, last)
        if text.count("\ufffd") > data.count("\ufffd".encode()):
            self.scribe.note("wire.bad_utf8")
        if text:
            out.append(TextDelta(text))

    def _return_control(self, p: ReturnControl, out: Out) -> None:
        """The agent waits for what these calls give."""
        self.reason = "tool_calls"
        if not isinstance(p.invocation_inputs, list):
            self.unknown({"returnControl": p.invocation_inputs}, "invocations", out)
        for said in items_of(p.invocation_inputs):
            kind, called = (
                next(iter(said.items()), ("", {})) if isinstance(said, dict) else ("", {})
            )
            if kind not in INVOCATIONS or not isinstance(called, dict):
                self.unknown({"returnControl": said}, "invocation", out)
                continue
            doubts: list[str] = []
            name, arguments = INVOCATIONS[kind](called, doubts)
            beside = {k: v for k, v in called.items() if isinstance(v, str)}
            echo = {"returnControl": {"invocationId": p.invocation_id, **beside}}
            self._call_at_once(json_bytes(arguments).decode(), name, echo, said, doubts, out)

    def _call_at_once(
        self,
        text: str,
        name: str | None,
        echo: dict[str, Any],
        said: Any,
        doubts: list[str],
        out: Out,
    ) -> None:
        """What is in doubt is no call that may be run."""
        before, self.calls.lossy = self.calls.lossy, self.calls.lossy or "; ".join(doubts)
        try:
            self.calls.whole(out, text, FUNCTION, 0, None, None, name, echo, said)
        finally:
            self.calls.lossy = before

    def _files(self, p: Any, out: Out) -> None:
        out.append(Unrecognized("media/files", p))

    # --- failures -------------------------------------------------------------------------------

    def _exception(self, p: ExceptionFrame, out: Out) -> None:
        raise StreamFailed(_failure(p.type, p.payload))

    def _error(self, p: ErrorFrame, out: Out) -> None:
        raise StreamFailed(_failure(p.code, p.message))

    def _broken(self, p: Any, out: Out) -> None:
        raise StreamFailed(Failure("protocol", str(p)))

    def _refused(self, p: Any, out: Out) -> None:
        raise StreamFailed(_failure(None, {"message": p}))

    def _message_start(self, p: Any, out: Out) -> None:
        self.begin_answer(out)

    def _nothing(self, p: Any, out: Out) -> None:
        """Known, and of no use to us."""

    def usage(self) -> Usage | None:
        raw = self._usage
        if not raw:
            return None
        cached = first_count(raw, ("cacheReadInputTokens",), ("cacheReadInputTokenCount",))
        written = first_count(raw, ("cacheWriteInputTokens",), ("cacheWriteInputTokenCount",))
        fresh = count(raw, "inputTokens")  # this wire does not count cached tokens as input
        return Usage(
            None if fresh is None else fresh + (cached or 0) + (written or 0),
            count(raw, "outputTokens"), cached, written, None, raw,
        )  # fmt: skip

    KINDS: ClassVar[dict[type, Handler]] = {Frame: _frame}


# --- wires inside -------------------------------------------------------------------------------


class _Enveloped(Parser):
    """What the service says around the wire of a model; put before that wire's parser."""

    STARTS = BedrockParser.STARTS
    MARKED = False  # not all models say their end mark here
    _metrics: dict[str, Any] = {}

    @classmethod
    def framer(cls, start: str, limit: int) -> Framer:
        return BedrockParser.framer(start, limit)

    def end_of_input(self, out: Out) -> None:
        """The service's own counts are the last that it says."""
        self.decoded = self.decoded or bool(self._metrics)
        super().end_of_input(out)

    def hear(self, data: bytes, event: str, out: Out) -> None:
        if data.startswith(b'{":'):
            _outside(data)
        try:
            data = self._without_metrics(data) if METRICS.encode() in data else data
            data = _as_chat(data) if _is_odd_chat(data) else data
        except msgspec.MsgspecError:
            pass  # it is odd in other ways, too
        super().hear(data, event, out)

    def _without_metrics(self, data: bytes) -> bytes:
        fields = msgspec.json.decode(data, type=dict[str, Raw])
        metrics = self.sound(fields.pop(METRICS, Raw(b"{}")))[0]
        self._metrics = metrics if isinstance(metrics, dict) else {}
        return msgspec.json.encode(fields)

    def usage(self) -> Usage | None:
        heard, raw = super().usage(), self._metrics
        if heard is not None or not raw:
            return heard
        return Usage(count(raw, "inputTokenCount"), count(raw, "outputTokenCount"), raw=raw)


class _Outside(msgspec.Struct):
    exception: ExceptionFrame | None = msgspec.field(default=None, name=EXCEPTION)
    error: ErrorFrame | None = msgspec.field(default=None, name=ERROR)
    broken: Any = msgspec.field(default=None, name=BROKEN)


def _outside(data: bytes) -> None:
    """A failure of the service, or of its framing, whatever it was sending."""
    said = msgspec.json.decode(data, type=_Outside)
    if said.exception is not None:
        raise StreamFailed(_failure(said.exception.type, said.exception.payload))
    if said.error is not None:
        raise StreamFailed(_failure(said.error.code, said.error.message))
    if said.broken is not None:
        raise StreamFailed(Failure("protocol", str(said.broken)))


def _around(wire: type[Parser]) -> type[Parser]:
    return type(f"Enveloped{wire.__name__}", (_Enveloped, wire), {})


# Chat as the service writes it for some models: whole messages, and another word for the end.
_CHAT = {"stop_reason": "finish_reason", "message": "delta"}


def _is_odd_chat(data: bytes) -> bool:
    return b'"choices"' in data and b'"stop_reason"' in data and b'"finish_reason"' not in data


def _as_chat(data: bytes) -> bytes:
    fields = msgspec.json.decode(data, type=dict[str, Raw])
    choices = msgspec.json.decode(fields["choices"], type=list[dict[str, Raw]])
    named = [{_CHAT.get(name, name): value for name, value in c.items()} for c in choices]
    fields["choices"] = Raw(msgspec.json.encode(named))
    return msgspec.json.encode(fields)


# --- calls that an agent leaves to the client ---------------------------------------------------


Doubts: TypeAlias = list[str]  # why these are not the arguments of a call


def _function(said: dict[str, Any], doubts: Doubts) -> tuple[str | None, dict[str, Any]]:
    return first_text(said.get("function")), _values(said.get("parameters"), doubts)


def _api(said: dict[str, Any], doubts: Doubts) -> tuple[str | None, dict[str, Any]]:
    """The request as it is to be made; an action group has one name for all its requests."""
    body = said.get("requestBody") or {}
    content = (body.get("content") or {}) if isinstance(body, dict) else body
    bodies = content if isinstance(content, dict) else {}
    if content is not bodies:
        doubts.append("the body of its request could not be read")
    request = {
        "apiPath": said.get("apiPath"), "httpMethod": said.get("httpMethod"),
        "parameters": _values(said.get("parameters"), doubts),
        "requestBody": {kind: _values(_properties(b), doubts) for kind, b in bodies.items()},
    }  # fmt: skip
    return first_text(said.get("actionGroup")), request


def _properties(body: Any) -> Any:
    return body.get("properties") if isinstance(body, dict) else body


def _values(parameters: Any, doubts: Doubts) -> dict[str, Any]:
    """Values are texts beside the name of their type: what is no text is read as JSON."""
    if parameters is not None and not isinstance(parameters, list):
        doubts.append("its parameters are no list")
    values: dict[str, Any] = {}
    for said in items_of(parameters):
        name = said.get("name") if isinstance(said, dict) else None
        if not isinstance(name, str):
            doubts.append("a parameter has no name")
        elif name in values:
            doubts.append(f"the parameter {name!r} is said twice")
        else:
            values[name] = _value(said.get("type"), said.get("value"), doubts)
    return values


def _value(type_: Any, value: Any, doubts: Doubts) -> Any:
    if type_ == "string" or not isinstance(value, str):
        return value
    try:
        msgspec.json.decode(value)
    except (*UNREADABLE, UnicodeEncodeError):
        return value
    try:
        return parse(value)
    except Refused as refused:
        doubts.append(f"a parameter could not be read ({refused})")
        return value


INVOCATIONS = {"functionInvocationInput": _function, "apiInvocationInput": _api}


def _says(said: msgspec.Struct) -> bool:
    return any(getattr(said, field) is not None for field in said.__struct_fields__)


def _sdk(code: str) -> Handler:
    def handler(parser: BedrockParser, said: Any, out: Out) -> None:
        raise StreamFailed(_failure(code, said))

    return handler


def _failure(code: str | None, said: Any) -> Failure:
    said = said if isinstance(said, dict) else {"message": said}
    message = first_text(
        said.get("message"), said.get("Message"), said.get("originalMessage"), code
    )
    known = code[:1].lower() + code[1:] if code else ""  # SDKs write it with a capital
    return Failure(
        "provider_error",
        message or "the provider reported an error",
        first_text(said.get("ErrorCode"), code),
        known in RETRYABLE,
    )


# Fields of a frame, in the order in which they would be told -> handler.
FIELDS: dict[str, Handler] = {
    "content_block_start": BedrockParser._block_start,
    "content_block_stop": BedrockParser._block_stop,
    "message_start": BedrockParser._message_start,
    "message_stop": BedrockParser._message_stop,
    "metadata": BedrockParser._metadata,
    "chunk": BedrockParser._agent_text,
    "return_control": BedrockParser._return_control,
    "trace": BedrockParser._nothing,
    "files": BedrockParser._files,
    "exception": BedrockParser._exception,
    "error": BedrockParser._error,
    "broken": BedrockParser._broken,
    "internal_server_exception": _sdk("internalServerException"),
    "model_stream_error_exception": _sdk("modelStreamErrorException"),
    "model_timeout_exception": _sdk("modelTimeoutException"),
    "service_unavailable_exception": _sdk("serviceUnavailableException"),
    "throttling_exception": _sdk("throttlingException"),
    "validation_exception": _sdk("validationException"),
    "message": BedrockParser._refused,
}
# What models say in this wire, and what is said around them.
_BODIES = {
    "messageStart", "contentBlockStart", "contentBlockDelta", "contentBlockStop", "messageStop",
    "generation", "outputText", "outputs",
}  # fmt: skip
_EVENTS = _BODIES | {"chunk", "returnControl", "trace", "files", "hookEvent"}


def _is_body(data: bytes) -> bool:
    """Is it a payload of a model that speaks this wire?"""
    return any(field_of(data, name) is not None for name in _BODIES)


PARSER = BedrockParser
