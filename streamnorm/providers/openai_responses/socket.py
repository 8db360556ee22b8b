"""Responses on a WebSocket, served: ``response.create`` in, the body of a POST out; and the way back.

    {"type": "response.create", "stream_id": LANE?, "previous_response_id": ID?, …request}
    {"type": "response.…", …, "stream_id": LANE?}
    {"type": "error", "status": 400, "error": {…}, "stream_id": LANE?}         a request is not answered

An answer that goes on is asked for with new items only. What the client has heard before, as items that
are done, is put before them; reasoning goes back if it is all there, or if the provider keeps it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from ...core.lanes import Role
from ...core.parser import UNREADABLE, plainly
from ...encoding.socket import Asking, Pairs, Reply, Socket, Telling
from ...text.written import json_bytes
from ..openai_chat.server import error, error_type
from .lanes import ResponsesLanes

__all__ = ["ResponsesSocket", "only_prepares"]

LANES = 32  # with a name, on one connection
SHOWN = 1000  # characters of a refusal that is in no known form
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,256}")
_BAD_NAME = (
    "The 'stream_id' field must be a non-empty string with at most 256 characters and may only "
    "contain letters, numbers, underscores, hyphens, and periods."
)
_TOO_MANY = (
    f"This WebSocket connection has reached its maximum number of distinct stream IDs ({LANES}). "
    "Reuse an existing stream_id or open a new WebSocket connection."
)
_OF_SOCKETS = frozenset({"type", "stream_id", "generate"})  # fields that are never posted
_BETA = b"openai-beta"
_ENDS = (Role.ENDS, Role.REFUSES)
_NOTHING = msgspec.Raw(b"null")
_NO_STATUS = 500  # of an error inside of a stream


class _Said(msgspec.Struct):
    """What is read of a client's message."""

    type: str
    stream_id: str | None = None
    previous_response_id: str | None = None
    response_id: str | None = None
    generate: bool | None = None
    background: bool | None = None
    store: bool | None = None
    prompt_cache_options: dict[str, Any] | None = None
    input: list[msgspec.Raw] | str | None = None


class _Item(msgspec.Struct):
    type: str = ""
    encrypted_content: str | None = None


class _Response(msgspec.Struct):
    id: str | None = None
    output: list[msgspec.Raw] = []


class _Payload(msgspec.Struct):
    """What is read of a payload of an answer; the rest of it is skipped."""

    type: str
    output_index: int | None = None
    item: msgspec.Raw = msgspec.Raw()
    response: msgspec.Raw = msgspec.Raw()


_read = msgspec.json.Decoder(_Said).decode
_fields = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_heard = msgspec.json.Decoder(_Payload).decode
_item = msgspec.json.Decoder(_Item).decode
_response = msgspec.json.Decoder(_Response).decode


def only_prepares(said: Mapping[str, Any]) -> bool:
    """Is the state of a request made ready, or its cache, without output of the model?"""
    cache = said.get("prompt_cache_options")
    warms = isinstance(cache, dict) and cache.get("prewarm") is True
    return warms or said.get("generate") is False


class ResponsesSocket(Socket):
    """One connection."""

    def __init__(self) -> None:
        self._names: set[str] = set()

    # --- what the client says ---------------------------------------------------------------------

    def read(self, message: bytes) -> Asking | Reply:
        try:
            said, fields = _read(message), _fields(message)
        except UNREADABLE as error:
            return self.reply(400, f"The message is no request: {error}")
        lane = said.stream_id
        if lane is not None and not _NAME.fullmatch(lane):
            return _refusal(400, _BAD_NAME, "invalid_stream_id", "stream_id")
        if said.type != "response.create":
            return self._beside(said, fields)
        if lane is not None and lane not in self._names:
            if len(self._names) >= LANES:
                code = "websocket_stream_limit_reached"
                return _refusal(400, _TOO_MANY, code, "stream_id", lane)
            self._names.add(lane)
        if said.background:
            words = "Background responses cannot be asked for on a WebSocket."
            return _refusal(400, words, None, "background", lane)
        prepares = only_prepares(msgspec.structs.asdict(said))
        return Asking(
            lane, said.previous_response_id, prepares, said.store is not False, _items(said), fields
        )

    def reply(self, status: int, message: str) -> Reply:
        return _refusal(status, message)

    def _beside(self, said: _Said, fields: Mapping[str, msgspec.Raw]) -> Reply:
        """What is said to an answer: it cannot be heard, as nobody behind us listens."""
        if said.type == "response.processed":
            return Reply(in_turn=False)
        if said.type not in ("response.steer", "response.inject"):
            return self.reply(400, f"Unknown message: {said.type!r}.")
        what = {"code": "steering_not_supported", "message": "Nobody hears this while it answers."}
        given = {"input": fields.get("input", _NOTHING)}
        if said.type == "response.inject":
            more: dict[str, Any] = {"error": what, **given, "response_id": said.response_id}
        else:
            steer = {**given, "previous_response_id": said.previous_response_id}
            more = {"error": {"type": "invalid_request_error", **what}, "steer": steer}
        failed = {"type": f"{said.type}.failed", "sequence_number": 0, **more}
        told = msgspec.json.encode({**failed, **_named(said.stream_id)})
        return Reply(told, said.stream_id, in_turn=False)

    # --- as it would be posted --------------------------------------------------------------------

    def body(self, asking: Asking, before: Iterable[bytes] | None) -> bytes:
        fields = {k: v for k, v in asking.fields.items() if k not in _OF_SOCKETS}
        if asking.previous is not None and before is not None:
            del fields["previous_response_id"]
            fields["input"] = msgspec.Raw(b"[%b]" % b",".join((*before, *asking.items)))
        return msgspec.json.encode({**fields, "stream": True})

    def headers(self, pairs: Pairs) -> Pairs:
        betas = [(name, _without_own(value)) for name, value in pairs if name.lower() == _BETA]
        return [pair for pair in pairs if pair[0].lower() != _BETA] + [b for b in betas if b[1]]

    def unknown(self, previous: str) -> tuple[str, str]:
        words = f"Previous response with id {previous[:SHOWN]!r} not found."
        return words, "previous_response_not_found"

    # --- what it is answered ----------------------------------------------------------------------

    def telling(self, asking: Asking) -> Telling:
        return _Telling(asking.lane, stored=asking.stored)


class _Telling(Telling):
    def __init__(self, lane: str | None, *, stored: bool) -> None:
        super().__init__()
        self._lane, self._stored = lane, stored
        self._done: dict[int, bytes] = {}

    def tell(self, payload: bytes) -> bytes:
        place = ResponsesLanes.place(payload)
        self.over = self.over or (place is not None and place.role in _ENDS)
        try:
            kind = self._hear(_heard(payload))
            if kind != "error":
                return payload if self._lane is None else _in_lane(payload, self._lane)
        except UNREADABLE:  # by us; the client may see more in it
            pass
        return self._oddly(payload)

    def _hear(self, said: _Payload) -> str:
        """What kind it is; and what it says that is wanted back is kept."""
        if said.type == "response.output_item.done" and said.output_index is not None:
            self._done[said.output_index] = bytes(said.item)
        elif said.type == "response.completed":
            self._completed(_response(said.response))
        return said.type

    def _completed(self, response: _Response) -> None:
        """Some say all items at the end, some say none there."""
        done = [self._done[at] for at in sorted(self._done)]
        output = [*map(bytes, response.output)]
        said = output if len(output) > len(done) else done
        self.id, self.output = response.id, tuple(filter(self._goes_back, said))

    def _goes_back(self, item: bytes) -> bool:
        said = _item(item)
        return self._stored or said.type != "reasoning" or said.encrypted_content is not None

    def _oddly(self, payload: bytes) -> bytes:
        """A payload that is not handed on as it came: an error inside of a stream has another form there,
        and no status."""
        try:
            said = plainly(payload)
        except UNREADABLE:
            return payload
        if not isinstance(said, dict):
            return payload
        if said.get("type") == "error":
            said = {"status": _NO_STATUS, **said}
            if not isinstance(said.get("error"), dict):
                what = {name: said.pop(name, None) for name in ("code", "message", "param")}
                said["error"] = {"type": error_type(_NO_STATUS), **what}
        return json_bytes({**said, **_named(self._lane)})

    def refused(self, status: int, body: bytes, headers: Mapping[str, str]) -> bytes:
        self.over = True
        what = {**_error_in(status, body), **({"headers": headers} if headers else {})}
        return json_bytes({"type": "error", "status": status, "error": what, **_named(self._lane)})


# --- small helpers --------------------------------------------------------------------------------


def _items(said: _Said) -> tuple[bytes, ...]:
    if isinstance(said.input, str):
        return (json_bytes({"type": "message", "role": "user", "content": said.input}),)
    return tuple(map(bytes, said.input or ()))


def _in_lane(payload: bytes, lane: str) -> bytes:
    return msgspec.json.encode({**_fields(payload), "stream_id": lane})


def _without_own(betas: bytes) -> bytes:
    """Without those that are about sockets: the requests go on by HTTP.

    >>> _without_own(b"responses_websockets=2026-02-06, responses_multi_agent=v1")
    b'responses_multi_agent=v1'
    """
    names = (name.strip() for name in betas.split(b","))
    return b", ".join(name for name in names if not name.startswith(b"responses_websockets"))


def _named(lane: str | None) -> dict[str, str]:
    return {} if lane is None else {"stream_id": lane}


def _refusal(
    status: int, message: str, code: str | None = None, param: str | None = None,
    lane: str | None = None,
) -> Reply:  # fmt: skip
    what = {**error(error_type(status), message, code)["error"], "param": param}
    said = {"type": "error", "status": status, "error": what, **_named(lane)}
    return Reply(json_bytes(said), lane)


def _error_in(status: int, body: bytes) -> dict[str, Any]:
    """The error of a body, in whatever form."""
    try:
        said = msgspec.json.decode(body)
    except UNREADABLE:
        said = None
    found = said.get("error") if isinstance(said, dict) else None
    if isinstance(found, dict):
        return found
    words = body[:SHOWN].decode("utf-8", "replace") or f"HTTP {status}"
    made: dict[str, Any] = error(error_type(status), words, None)["error"]
    return made
