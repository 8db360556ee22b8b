"""OpenAI Responses, told from a script."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from ...encoding.steps import Call, Error, Result, Show
from ...encoding.teller import Asked, Json, Talker, Told, fragments
from ...text.written import in_base64, json_text, sse
from .socket import only_prepares

__all__ = ["SCRIPT", "Responses"]

_SAID = {"response.create": "ask", "response.steer": "steer", "response.inject": "inject"}


class Responses(Talker):
    """Items with an output_index; each is added, grows and is done."""

    name = "openai_responses"
    MODEL = "gpt-5.1-2025-11-13"
    REASONS: ClassVar[Mapping[str, str]] = {
        "stop": "",
        "tool_calls": "",
        "length": "max_output_tokens",
        "content_filter": "content_filter",
        "pause": "steered",
    }
    CODES: ClassVar[Mapping[str, str]] = {
        "overloaded": "server_error",
        "rate_limit": "rate_limit_exceeded",
        "server": "server_error",
        "invalid": "invalid_request_error",
        "auth": "invalid_api_key",
    }

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.at = -1
        self.sequence = -1
        self.steered = 0  # how often
        self.output: list[Json] = []
        self.body: Json = {"id": self.id("resp_", size=40), "object": "response"}
        self.body |= {"created_at": 1767225600, "status": "in_progress", "error": None}
        self.body |= {"incomplete_details": None, "model": self.MODEL, "output": []}
        self.body |= {"parallel_tool_calls": True, "tool_choice": "auto", "usage": None}

    def start(self) -> list[Json]:
        return [
            {"type": "response.created", "response": dict(self.body)},
            {"type": "response.in_progress", "response": dict(self.body)},
        ]

    def say(self, text: str) -> Told:
        item = self._item("message", "msg_", status="in_progress", content=[], role="assistant")
        part: Json = {"type": "output_text", "annotations": [], "logprobs": [], "text": ""}
        full = part | {"text": text}
        where = self._where(item) | {"content_index": 0}
        kind = "response.output_text"
        return Told(
            [self._added(item), {"type": "response.content_part.added"} | where | {"part": part}],
            [{"type": f"{kind}.delta"} | where | {"delta": p} for p in fragments(text)],
            [
                {"type": f"{kind}.done"} | where | {"text": text},
                {"type": "response.content_part.done"} | where | {"part": full},
                self._done(item, status="completed", content=[full]),
            ],
        )

    def think(self, text: str) -> Told:
        item = self._item("reasoning", "rs_", summary=[])
        part = {"type": "summary_text", "text": ""}
        where = self._where(item) | {"summary_index": 0}
        kind = "response.reasoning_summary_text"
        full = part | {"text": text}
        begun = {"type": "response.reasoning_summary_part.added"} | where | {"part": part}
        return Told(
            [self._added(item), begun],
            [{"type": f"{kind}.delta"} | where | {"delta": p} for p in fragments(text)],
            [
                {"type": f"{kind}.done"} | where | {"text": text},
                {"type": "response.reasoning_summary_part.done"} | where | {"part": full},
                self._done(item, summary=[full]),
            ],
        )

    def show(self, picture: Show) -> Told:
        """The tool that the provider runs for it, and its result."""
        item = self._item("image_generation_call", "ig_", status="in_progress", result=None)
        format = picture.type.removeprefix("image/")
        result = {"result": in_base64(picture.data), "output_format": format}
        return Told([self._added(item)], [], [self._done(item, status="completed", **result)])

    def call(self, call: Call) -> Told:
        self.calls += 1
        item = self._item("function_call", "fc_", status="in_progress", arguments="")
        if call.has_id:
            item["call_id"] = call.id or self.id("call_", self.calls, size=24)
        item["name"] = call.name
        return self._told(call, item, "function_call", {})

    def served(self, call: Call, result: Result) -> list[Json]:
        self.calls += 1
        fields: Json = {"name": call.name, "server_label": "tools", "arguments": ""}
        item = self._item("mcp_call", "mcp_", status="in_progress", **fields)
        answer = result.output if isinstance(result.output, str) else json_text(result.output)
        ended: Json = {"status": "completed", "output": answer, "error": None}
        if result.is_error:
            ended = {"status": "failed", "output": None, "error": answer}
        return self._told(call, item, "mcp_call", ended).all

    def finish(self, reason: str) -> list[Json]:
        why = self.reason(reason)
        status = "incomplete" if why else "completed"
        body = self.body | {"status": status, "output": self.output, "usage": self._usage()}
        if why:
            body |= {"incomplete_details": {"reason": why}}
        return [{"type": f"response.{status}", "response": body}]

    def fail(self, error: Error) -> list[Json]:
        said = {"code": self.code(error), "message": self.words(error), "param": None}
        return [{"type": "error"} | said]

    def heard(self, what: str) -> list[Json]:
        if what == "inject":
            return [{"type": "response.inject.created", "response_id": self.body["id"]}]
        self.steered += 1
        return [{"type": "response.steer.accepted", "steer": self._steer()}]

    def frame(self, payload: Json) -> bytes:
        return sse(self._numbered(payload), payload["type"])

    def bad(self) -> bytes:
        return b'event: response.output_text.delta\ndata: {"type": \n\n'

    # --- over a WebSocket

    @property
    def answer(self) -> str:
        return str(self.body["id"])

    @classmethod
    def asked(cls, said: Json) -> Asked:
        what = _SAID.get(str(said.get("type")), "")
        if what == "ask" and only_prepares(said):
            what = "prepare"
        answer = said.get("previous_response_id" if what == "steer" else "response_id")
        return Asked(what, said.get("stream_id"), answer)

    def message(self, payload: Json) -> Json:
        return self._numbered(payload) | self._lane()

    def refused(self, error: Error) -> Json:
        said: Json = {"type": "invalid_request_error", "code": self.code(error)}
        said |= {"message": self.words(error), "param": None}
        return {"type": "error", "status": error.status or 400, "error": said} | self._lane()

    def unheard(self, said: Json) -> Json:
        asked = self.asked(said)
        if not asked.what:
            return self.refused(Error("invalid", f"Unknown message: {said.get('type')!r}."))
        error = {"code": "response_already_completed", "message": "The response is completed."}
        failed: Json = {"type": f"response.{asked.what}.failed", "sequence_number": 0}
        if asked.what == "inject":
            failed |= {"error": error, "input": said.get("input"), "response_id": asked.answer}
        else:
            failed |= {"error": error | {"type": "invalid_request_error"}}
            failed |= {"steer": {k: said.get(k) for k in ("input", "previous_response_id")}}
        return failed | self._lane()

    def _numbered(self, payload: Json) -> Json:
        self.sequence += 1  # here, where the order is known
        return {"type": payload["type"], "sequence_number": self.sequence} | payload

    def _lane(self) -> Json:
        return {} if self.lane is None else {"stream_id": self.lane}

    def _steer(self) -> Json:
        steer = self.id("steer_", self.steered)
        return {"id": steer, "previous_response_id": self.body["id"]}

    # --- items

    def extra(self) -> Json:
        """Fields that this flavour of the wire adds to every item."""
        return {}

    def _item(self, kind: str, prefix: str, **fields: Any) -> Json:
        self.at += 1
        item = {"id": self.id(prefix, self.at), "type": kind} | fields | self.extra()
        self.output.append(item)
        return item

    def _where(self, item: Json) -> Json:
        return {"item_id": item["id"], "output_index": self.output.index(item)}

    def _added(self, item: Json) -> Json:
        where = self.output.index(item)
        return {"type": "response.output_item.added", "output_index": where, "item": dict(item)}

    def _done(self, item: Json, **fields: Any) -> Json:
        where = self.output.index(item)
        item |= fields
        return {"type": "response.output_item.done", "output_index": where, "item": dict(item)}

    def _told(self, call: Call, item: Json, kind: str, ended: Json) -> Told:
        text, where = call.written(), self._where(item)
        opening = [self._added(item)]
        kind = f"response.{kind}_arguments"
        there = where
        if call.index is not None:
            there = {"item_id": self.output[0]["id"], "output_index": call.index}
        return Told(
            opening,
            [{"type": f"{kind}.delta"} | there | {"delta": piece} for piece in fragments(text)],
            [
                {"type": f"{kind}.done"} | where | {"arguments": text},
                self._done(item, **({"status": "completed", "arguments": text} | ended)),
            ],
        )

    def _usage(self) -> Json:
        used = self.used
        return {
            "input_tokens": used.input,
            "input_tokens_details": {"cached_tokens": used.cached},
            "output_tokens": used.output,
            "output_tokens_details": {"reasoning_tokens": used.reasoning},
            "total_tokens": used.input + used.output,
        }


SCRIPT = Responses
