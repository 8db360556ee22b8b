"""OpenAI Responses, served: events in, items out.

    response.created -> item* -> response.completed | .incomplete | .failed
    item = output_item.added -> deltas and .done -> output_item.done

Items have ids that are made here, except those that this very wire gave and wants back. An item keeps
its id from ``added`` to ``done``: reasoning of this very wire, whose id comes last, is held until then.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple, Unpack

from ...encoding.encoder import Called, Options, Said
from ...encoding.server import Body, Server, ServerOptions, Serving
from ...events import Failed, Finish, Media, ProviderToolResult, ReasoningDelta, TextDelta, ToolCall
from ...text.written import in_base64
from ..openai_chat.server import error, error_type
from .encoder import ResponsesEncoder
from .items import PICTURES
from .socket import ResponsesSocket

__all__ = ["SERVER", "ResponsesServer"]

INCOMPLETE = {
    "length": "max_output_tokens",
    "content_filter": "content_filter",
    "pause": "steered",
    "other": "other",
}


MARK = 24  # characters of the answer's id that are in those of its items


class _Form(NamedTuple):
    """How an item that is told in texts says them: its parts, its deltas and where they stand."""

    item: dict[str, Any]
    part: dict[str, Any]
    part_kind: str
    kind: str
    text: str
    place: str
    within: str
    more: dict[str, Any] = {}  # what its deltas say besides


_MESSAGE = {"type": "message", "role": "assistant", "content": []}
FORMS = {
    "text": _Form(
        _MESSAGE, {"type": "output_text", "text": "", "annotations": []},
        "response.content_part", "response.output_text", "text", "content_index", "content",
        {"logprobs": []},
    ),
    "refusal": _Form(
        _MESSAGE, {"type": "refusal", "refusal": ""},
        "response.content_part", "response.refusal", "refusal", "content_index", "content",
    ),
    "reasoning": _Form(
        {"type": "reasoning", "summary": []}, {"type": "summary_text", "text": ""},
        "response.reasoning_summary_part", "response.reasoning_summary_text", "text",
        "summary_index", "summary",
    ),
}  # fmt: skip


class _CallForm(NamedTuple):
    """How an item that calls a tool says its input."""

    type: str
    prefix: str
    kind: str
    input: str
    empty: str


# JSON, or (True) plain text.
CALLS = {
    False: _CallForm("function_call", "fc", "response.function_call_arguments", "arguments", "{}"),
    True: _CallForm("custom_tool_call", "ctc", "response.custom_tool_call_input", "input", ""),
}


class _Telling(NamedTuple):
    """An item whose text is being told."""

    key: tuple[str, int, str | None]
    form: _Form
    at: int
    id: str
    texts: list[str]


class ResponsesServer(Server):
    """One Responses stream."""

    name = "openai_responses"
    takes_texts = True
    id_prefix = "resp_"
    socket = ResponsesSocket

    def __init__(self, **options: Unpack[ServerOptions]) -> None:
        super().__init__(**options)
        self._number = 0
        self._next = 0
        self._telling: _Telling | None = None
        self._output: dict[int, dict[str, Any]] = {}  # items that are done, by place
        self._calls_open: dict[int, dict[str, Any]] = {}
        self._refused = False
        self._thoughts: list[tuple[int, str]] = []  # held until their item says its id

    def opening(self) -> Iterable[bytes]:
        response = self._response("in_progress")
        yield self._event("response.created", response=response)
        yield self._event("response.in_progress", response=response)

    def keep_alive(self) -> bytes:
        """Without a number: between events of the provider's own none is free."""
        return self.say({"type": "keepalive"}, "keepalive")

    # --- text and reasoning -----------------------------------------------------------------------

    def text(self, event: TextDelta) -> Iterable[bytes]:
        if not event.text:
            return ()
        refused = isinstance(event.echo, dict) and event.echo.get("type") == "refusal"
        self._refused |= refused
        return self._say("refusal" if refused else "text", event.part, event.text)

    def reasoning(self, event: ReasoningDelta) -> Iterable[bytes]:
        if self.source != self.name:
            if event.text:
                yield from self._say("reasoning", event.part, event.text)
            return
        if self._thoughts and self._thoughts[0][0] != event.part:
            yield from self._end_text()
        if event.text:
            self._thoughts.append((event.part, event.text))
        if isinstance(event.echo, dict):
            yield from self._own_thoughts(event.part, event.echo)

    def _own_thoughts(self, part: int, item: dict[str, Any]) -> Iterable[bytes]:
        """An item of this wire's own reasoning, with the texts that came before it."""
        held, self._thoughts = self._thoughts, []
        if not held:
            yield from self._whole_item(item)
            return
        yield from self._end_text()
        yield from self._begin("reasoning", part, item.get("id"))
        for _, text in held:
            yield from self._say("reasoning", part, text)
        yield from self._end_telling(item)

    def _say(self, kind: str, part: int, text: str) -> Iterable[bytes]:
        if self._telling is None or self._telling.key != (kind, part, self.agent):
            yield from self._end_text()
            yield from self._begin(kind, part)
        told = self._telling
        if told is not None:
            told.texts.append(text)
            more = told.form.more
            yield self._event(f"{told.form.kind}.delta", **_where(told), delta=text, **more)

    def _begin(self, kind: str, part: int, id: Any = None) -> Iterable[bytes]:
        form, index = FORMS[kind], self._place()
        prefix = "rs" if kind == "reasoning" else "msg"
        id = id if isinstance(id, str) and id else self._id(prefix, index)
        told = self._telling = _Telling((kind, part, self.agent), form, index, id, [])
        item = {"id": told.id, **form.item, "status": "in_progress", **_said_by(self.agent)}
        yield self._event("response.output_item.added", output_index=index, item=item)
        yield self._event(f"{form.part_kind}.added", **_where(told), part=form.part)

    def _end_text(self) -> Iterable[bytes]:
        """What is being told ends, and so does reasoning whose item never came."""
        thought = self._run is not None and self._run[0] is ReasoningDelta
        if self._telling is not None and thought:
            kept = {"encrypted_content": self.envelope(reasoning=True)}
            yield from self._end_telling(more=kept)
        else:
            yield from self._end_telling()
            if envelope := self.envelope(reasoning=thought and bool(self._sealing)):
                yield from self._opaque(envelope)
        held, self._thoughts = self._thoughts, []
        for part, text in held:
            yield from self._say("reasoning", part, text)
        yield from self._end_telling()

    run_ended = _end_text

    def _opaque(self, envelope: str) -> Iterable[bytes]:
        """An item that only brings what another provider wants back."""
        at = self._place()
        item = {
            "id": self._id("rs", at), "type": "reasoning", "summary": [], "encrypted_content": envelope,
        }  # fmt: skip
        yield self._event("response.output_item.added", output_index=at, item=item)
        yield self._done(at, item)

    def _end_telling(
        self, item: dict[str, Any] | None = None, more: dict[str, Any] | None = None
    ) -> Iterable[bytes]:
        told, self._telling = self._telling, None
        if told is None:
            return
        form, text = told.form, "".join(told.texts)
        part = {**form.part, form.text: text}
        yield self._event(f"{form.kind}.done", **_where(told), **{form.text: text}, **form.more)
        yield self._event(f"{form.part_kind}.done", **_where(told), part=part)
        done = {
            "id": told.id, **form.item, form.within: [part], "status": "completed",
            **_said_by(told.key[2]), **(more or {}),
        }  # fmt: skip
        yield self._done(told.at, {**(item or done), "id": told.id})

    # --- media ------------------------------------------------------------------------------------

    def media(self, event: Media) -> Iterable[bytes] | None:
        """A picture as the item of the tool that makes such; a voice piece by piece."""
        echo = event.echo if self.source == self.name and isinstance(event.echo, dict) else {}
        if echo.get("type") in PICTURES:
            return ()  # it comes with its item
        family, _, format = event.mime_type.partition("/")
        if event.data is None or family not in ("image", "audio"):
            return None
        if family == "audio":
            return (self._event("response.audio.delta", delta=in_base64(event.data)),)
        item = {
            "id": self._id("ig", self._next), "type": "image_generation_call", "status": "completed",
            "output_format": format, "result": in_base64(event.data), **_said_by(event.agent),
        }  # fmt: skip
        return self._whole_item(item)

    # --- calls ------------------------------------------------------------------------------------

    def call_opened(self, call: Serving) -> Iterable[bytes]:
        yield from self._end_text()
        call.place = index = self._place()
        form = CALLS[call.text]
        item = {
            "id": self._id(form.prefix, index), "type": form.type, "status": "in_progress",
            form.input: "", "call_id": call.id, "name": call.name, **_said_by(self.agent),
        }  # fmt: skip
        if call.namespace is not None:
            item["namespace"] = call.namespace
        self._calls_open[index] = item
        yield self._event("response.output_item.added", output_index=index, item=item)

    def fragment(self, call: Serving, text: str) -> Iterable[bytes]:
        form = CALLS[call.text]
        return (self._event(f"{form.kind}.delta", **self._where_of(call), delta=text),)

    def call_closed(self, call: Serving) -> Iterable[bytes]:
        form, where = CALLS[call.text], self._where_of(call)
        item = self._calls_open.pop(call.place)
        said = {form.input: call.sent or form.empty}
        named = {} if call.text else {"name": call.name}
        yield self._event(f"{form.kind}.done", **where, **named, **said)
        yield self._done(call.place, {**item, "status": "completed", **said})

    def _where_of(self, call: Serving) -> dict[str, Any]:
        return {"item_id": self._calls_open[call.place]["id"], "output_index": call.place}

    def adopted(self, said: list[Body], calls: dict[str, Serving]) -> None:
        """Items that are done are those of the final response as they were told."""
        self._number, self._next, self._thoughts = 0, 0, []
        self._output, self._calls_open = {}, {}
        texts: dict[int, str] = {}  # the items of texts that are open: place and id
        for payload in said:
            kind, at, item = (payload.get(key) for key in ("type", "output_index", "item"))
            if isinstance(number := payload.get("sequence_number"), int):
                self._number = number + 1
            if not isinstance(at, int) or not isinstance(item, dict):
                continue
            self._next = max(self._next, at + 1)
            call = calls.get(str(item.get("call_id")))
            if kind == "response.output_item.done":
                texts.pop(at, None)
                self._calls_open.pop(at, None)
                self._output[at] = item
            elif kind == "response.output_item.added" and call is not None:
                call.place = at
                made = self._id(CALLS[call.text].prefix, at)
                self._calls_open[at] = {**item, "id": str(item.get("id") or made)}
            elif kind == "response.output_item.added":
                texts[at] = str(item.get("id"))
        told, self._telling = self._telling, None
        if told is not None and texts:
            at, id = texts.popitem()
            self._telling = told._replace(at=at, id=id)

    def hosted_call(self, call: ToolCall) -> Iterable[bytes]:
        """An item of this wire's own; one that brings its result comes with that."""
        encoder = ResponsesEncoder(Options())
        called = Called(call, call.id, call.name, own=True)
        if encoder.item_of(called).role == "call+output":
            return
        for item in encoder.assistant(Said("assistant", (called,))):
            yield from self._whole_item(item)

    def hosted_result(self, result: ProviderToolResult) -> Iterable[bytes]:
        return self._whole_item(result.echo) if isinstance(result.echo, dict) else ()

    def _whole_item(self, item: dict[str, Any]) -> Iterable[bytes]:
        yield from self._end_text()
        index = self._place()
        yield self._event("response.output_item.added", output_index=index, item=item)
        yield self._done(index, item)

    # --- the end ----------------------------------------------------------------------------------

    def finished(self, finish: Finish) -> Iterable[bytes]:
        yield from self._end_text()
        reason = finish.reason
        if reason == "refusal" and not self._refused:
            reason = "content_filter"  # the wire tells a refusal by its text only
        if reason in INCOMPLETE:
            response = self._response("incomplete")
            response["incomplete_details"] = {"reason": INCOMPLETE[reason]}
            yield self._event("response.incomplete", response=response)
        else:
            yield self._event("response.completed", response=self._response("completed"))

    def failed(self, failure: Failed) -> Iterable[bytes]:
        yield from self._end_text()
        response = self._response("failed")
        response["error"] = {"code": failure.code or "server_error", "message": failure.error}
        yield self._event("response.failed", response=response)

    @classmethod
    def gives_back(cls, body: dict[str, Any]) -> bool:
        """One that lets the provider keep its answers sends back no reasoning, unless it asks for it."""
        include = body.get("include")
        asks = isinstance(include, list) and "reasoning.encrypted_content" in include
        return asks or body.get("store") is False

    @classmethod
    def may_name(cls, body: dict[str, Any]) -> bool:
        """One that lets the provider keep its answers may send no more of an item than its id."""
        return body.get("store") is not False

    @property
    def nameable(self) -> dict[str, Body]:
        return {
            item["id"]: item for item in self._output.values() if isinstance(item.get("id"), str)
        }

    def counted_from(self, number: int) -> None:
        self._number = number

    def gathered(self, said: list[Body]) -> Body:
        response: Body = said[-1]["response"]
        return response

    def error_body(self, status: int, message: str, code: str | None) -> Body:
        return error(error_type(status), message, code)

    # --- small helpers ----------------------------------------------------------------------------

    def _id(self, prefix: str, place: int) -> str:
        """Of an item that is made here. Where the answer has an id of its own, no other answer's item
        has the same: a later request may say it in place of the item."""
        own = self.response_id.removeprefix(self.id_prefix)[-MARK:] if self._own_id else ""
        return "_".join(filter(None, (prefix, own, str(place))))

    def _place(self) -> int:
        place, self._next = self._next, self._next + 1
        return place

    def _done(self, index: int, item: dict[str, Any]) -> bytes:
        self._output[index] = item
        return self._event("response.output_item.done", output_index=index, item=item)

    def _event(self, kind: str, **fields: Any) -> bytes:
        number, self._number = self._number, self._number + 1
        return self.say({"type": kind, "sequence_number": number, **fields}, kind)

    def _response(self, status: str) -> dict[str, Any]:
        return {
            "id": self.response_id, "object": "response", "created_at": self.created, "status": status,
            "model": self.model, "output": [self._output[at] for at in sorted(self._output)],
            "error": None, "incomplete_details": None, "instructions": None, "metadata": {},
            "parallel_tool_calls": True, "temperature": None, "top_p": None, "tool_choice": "auto",
            "tools": [], "usage": self._counts(),
        }  # fmt: skip

    def _counts(self) -> dict[str, Any] | None:
        usage = self.usage
        if usage is None:
            return None
        counts = usage.input or 0, usage.output or 0
        return {
            "input_tokens": counts[0], "output_tokens": counts[1], "total_tokens": sum(counts),
            "input_tokens_details": {
                "cached_tokens": usage.cached_input or 0, "cache_write_tokens": usage.cache_write or 0,
            },
            "output_tokens_details": {"reasoning_tokens": usage.reasoning or 0},
        }  # fmt: skip


def _said_by(agent: str | None) -> dict[str, Any]:
    return {} if agent is None else {"agent": {"agent_name": agent}}


def _where(told: _Telling) -> dict[str, Any]:
    return {"item_id": told.id, "output_index": told.at, told.form.place: 0}


SERVER = ResponsesServer
