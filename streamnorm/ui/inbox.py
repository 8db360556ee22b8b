"""What a chat client posts comes in; a ``Conversation`` and the client's answers go out.

Rule: a body is somebody else's text. It is parsed exactly, every field is looked at before it is
used, and what does not fit is a ``BadBody`` with a sentence for the sender. Nothing of it is trusted:
a server that keeps the conversation itself takes ``results`` and ``approvals`` and its own history.

Calls come back with the id, the provenance and the echo that the encoders put into their metadata, so
that they can go to their provider as they came. A call that was never whole does not come back.
System messages of a client are left out unless allowed: they are the server's to write.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import msgspec

from ..conversation import Conversation, Made, Reasoning, Text, Turn
from ..errors import StreamnormError
from ..events import Provenance, ProviderToolResult, ToolCall
from ..fold import Decision, denial
from ..text.exact import Refused, parse
from ..text.media import UNTOLD, contents_of
from ..text.written import json_text
from ..tools import File, ToolResult

__all__ = ["BadBody", "Inbox", "from_ag_ui", "from_ai_sdk", "from_plain", "parse_body"]

Json: TypeAlias = dict[str, Any]
Part: TypeAlias = Text | Reasoning | Made | ToolCall | ProviderToolResult | ToolResult | File

LONGEST_ID = 512
_data_url = re.compile(
    r"data:([\w.+-]+/[\w.+-]+)?((?:;[^;,]*)*?)(;base64)?,(.*)", re.DOTALL
).fullmatch


class BadBody(StreamnormError):
    """The body is not what this protocol posts; ``where`` names the place."""

    def __init__(self, where: str, what: str) -> None:
        super().__init__(f"{where}: {what}" if where else what)
        self.where = where


@dataclass(slots=True)
class Inbox:
    """What a client posted.

    ``results`` are tool results that the client made, ``approvals`` its answers to what waits, by
    approval id, ``call_ids`` the names of calls that it knows (an encoder must not use them for
    others), ``unanswered`` those of calls that an answer may continue, by the ids that their results
    have, ``tools`` what it declared (AG-UI), ``left_out`` what was ignored.
    """

    chat: str
    conversation: Conversation
    run: str | None = None
    protocol_version: str | None = None
    trigger: str | None = None
    message_id: str | None = None  # of the assistant message that the answer continues
    approvals: dict[str, Decision] = field(default_factory=dict)
    results: list[ToolResult] = field(default_factory=list)
    call_ids: set[str] = field(default_factory=set)
    unanswered: dict[str, str] = field(default_factory=dict)
    tools: list[Json] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    body: Json = field(default_factory=dict)


def parse_body(data: bytes) -> Json:
    """The JSON object in ``data``, exactly.

    >>> parse_body(b'{"id": 1180591620717411303424}')
    {'id': 1180591620717411303424}
    """
    try:
        body = parse(data.decode("utf-8"))
    except UnicodeDecodeError:
        raise BadBody("", "the body is not UTF-8") from None
    except Refused as error:
        raise BadBody("", f"the body is not JSON: {error}") from None
    if not isinstance(body, dict):
        raise BadBody("", "the body is not a JSON object")
    return body


# --- the AI SDK -----------------------------------------------------------------------------------


def from_ai_sdk(body: Json, *, allow_system: bool = False) -> Inbox:
    """What ``useChat`` of the AI SDK posts.

    >>> part = {"type": "text", "text": "Hello"}
    >>> body = {"id": "c1", "messages": [{"id": "m1", "role": "user", "parts": [part]}]}
    >>> from_ai_sdk(body).conversation.turns[0].text
    'Hello'
    """
    inbox = Inbox(_id(body, "id", ""), Conversation(), body=body)
    inbox.trigger = _optional(body, "trigger", "")
    for at, message in enumerate(_list(body, "messages", "")):
        where = f"messages[{at}]"
        message = _object(message, where)
        role = _text(message, "role", where)
        parts = [
            _object(part, f"{where}.parts[{n}]")
            for n, part in enumerate(_list(message, "parts", where))
        ]
        if role not in _UI_ROLES:
            raise BadBody(f"{where}.role", f"{role!r} is none of {', '.join(_UI_ROLES)}")
        inbox.unanswered = {}  # of the last message alone: results cannot be told of another
        _UI_ROLES[role](inbox, message, parts, where, allow_system)
        inbox.message_id = _id(message, "id", where) if role == "assistant" else None
    return inbox


def _ui_system(inbox: Inbox, message: Json, parts: list[Json], where: str, allowed: bool) -> None:
    text = "".join(_text(p, "text", where) for p in parts if p.get("type") == "text")
    _system(inbox, text, where, allowed)


def _ui_user(inbox: Inbox, message: Json, parts: list[Json], where: str, allowed: bool) -> None:
    said: list[Part] = []
    for at, part in enumerate(parts):
        if part.get("type") == "text":
            said.append(Text(_text(part, "text", f"{where}.parts[{at}]")))
        elif part.get("type") == "file":
            said.append(_file(part, f"{where}.parts[{at}]"))
        else:
            inbox.left_out.append(f"{where}.parts[{at}]")
    if said:
        inbox.conversation.add(Turn("user", tuple(said)))


def _ui_assistant(
    inbox: Inbox, message: Json, parts: list[Json], where: str, allowed: bool
) -> None:
    facts = message.get("metadata")
    facts = facts if isinstance(facts, dict) else {}
    step = _Step(inbox, facts)
    inbox.approvals = {}  # those of earlier answers were sent before
    for at, part in enumerate(parts):
        place = f"{where}.parts[{at}]"
        kind = _text(part, "type", place)
        if kind == "step-start":
            step.close()
        elif kind.startswith("tool-") or kind == "dynamic-tool":
            _ui_tool(step, part, kind, place)
        elif kind in ("text", "reasoning"):
            step.add(_ui_run(part, kind, place))
        elif kind == "file":
            step.add(_made(part, place))
        else:
            inbox.left_out.append(place)
    step.close()


_UiRole: TypeAlias = Callable[[Inbox, Json, list[Json], str, bool], None]
_UI_ROLES: dict[str, _UiRole] = {
    "system": _ui_system,
    "user": _ui_user,
    "assistant": _ui_assistant,
}


def _ui_run(part: Json, kind: str, where: str) -> Text | Reasoning:
    text, kept = _text(part, "text", where), _ours(part.get("providerMetadata"))
    echoes, marks = _echoes(kept)
    agent = _known(kept, "agent")
    if kind == "text":
        return Text(text, echoes, (), marks, agent)
    return Reasoning(text, echoes, marks, agent)


def _made(part: Json, where: str) -> Made:
    """What the model made, as the page kept it. Nothing is fetched."""
    url, kept = _text(part, "url", where), _ours(part.get("providerMetadata"))
    echoes, _ = _echoes(kept)
    agent, type = _known(kept, "agent"), _optional(part, "mediaType", where)
    if _data_url(url) is None:
        return Made(type or UNTOLD, None, url, echoes, agent)
    contents = contents_of(url)
    if contents is None:
        raise BadBody(where, "is not base64")
    return Made(type or contents.type or UNTOLD, contents.data, None, echoes, agent)


def _ui_tool(step: _Step, part: Json, kind: str, where: str) -> None:
    inbox = step.inbox
    id = _id(part, "toolCallId", where)
    inbox.call_ids.add(id)
    name = _text(part, "toolName", where) if kind == "dynamic-tool" else kind.removeprefix("tool-")
    facts = _ours(part.get("toolMetadata"))
    state, arguments = _text(part, "state", where), part.get("input")
    if "broken" in facts or not isinstance(arguments, dict) or state == "input-streaming":
        inbox.left_out.append(where)  # it was never whole: the model hears nothing of it
        return
    echo = _ours(part.get("callProviderMetadata")).get("echo")
    ran = "provider" if part.get("providerExecuted") is True else "client"
    call = _call(step.count, id, name, arguments, facts, ran, echo)
    if state == "approval-responded":
        _decided(inbox, _object(part.get("approval"), f"{where}.approval"), f"{where}.approval")
    step.call(call, _ui_result(part, state, where), id)


def _ui_result(part: Json, state: str, where: str) -> tuple[Any, bool] | None:
    if state == "output-available":
        return part.get("output"), False
    if state == "output-error":
        return _text(part, "errorText", where), True
    if state == "output-denied":
        approval = part.get("approval")
        reason = approval.get("reason") if isinstance(approval, dict) else None
        return denial(reason if isinstance(reason, str) else ""), True
    return None


def _decided(inbox: Inbox, approval: Json, where: str) -> None:
    """An answer. The protocol has no place for other arguments: they stand in the body, by id."""
    id, edits = (
        _id(approval, "id", where),
        _object(inbox.body.get("editedArgs") or {}, "editedArgs"),
    )
    edited = _object(edits[id], f"editedArgs.{id}") if id in edits else None
    _take(inbox, _decision(id, {**approval, "editedArgs": edited}, where), where)


# --- AG-UI ----------------------------------------------------------------------------------------


def from_ag_ui(body: Json, *, allow_system: bool = False) -> Inbox:
    """What an AG-UI client posts (``RunAgentInput``).

    >>> message = {"id": "m1", "role": "user", "content": "Hello"}
    >>> body = {"threadId": "t1", "runId": "r1", "messages": [message]}
    >>> from_ag_ui(body).conversation.turns[0].text
    'Hello'
    """
    inbox = Inbox(_id(body, "threadId", ""), Conversation(), _id(body, "runId", ""), body=body)
    inbox.protocol_version = _optional(body, "protocolVersion", "")
    inbox.tools = (
        [_object(t, "tools") for t in _list(body, "tools", "")] if body.get("tools") else []
    )
    messages = [
        _object(message, f"messages[{at}]")
        for at, message in enumerate(_list(body, "messages", ""))
    ]
    _ag_messages(inbox, messages, allow_system)
    for at, entry in enumerate(_list(body, "resume", "") if body.get("resume") else []):
        where = f"resume[{at}]"
        entry = _object(entry, where)
        id = _id(entry, "interruptId", where)
        _take(inbox, _ag_decision(id, entry, where), where)
    return inbox


def _ag_decision(id: str, entry: Json, where: str) -> Decision:
    """Resolved is what the payload says; everything else, as cancelled, is a no."""
    if entry.get("status") != "resolved":
        return Decision(id=id, allow=False)
    return _decision(id, entry.get("payload"), f"{where}.payload")


def _ag_messages(inbox: Inbox, messages: list[Json], allow_system: bool) -> None:
    answers = _ag_answers(messages)
    step, voiced = _Step(inbox, {}), None
    for at, message in enumerate(messages):
        where = f"messages[{at}]"
        role = _text(message, "role", where)
        if role in ("system", "developer"):
            _system(inbox, _optional(message, "content", where) or "", where, allow_system)
        elif role == "user":
            step.end()
            inbox.conversation.add(Turn("user", tuple(_ag_content(message, where))))
        elif role == "assistant":
            answer = _voiced(message)
            if answer is None or answer != voiced:
                step.close()
            voiced = answer
            _ag_assistant(step, message, answers, where)
            continue
        elif role == "reasoning":
            step.close()
            echoes, marks = _echoes(_encrypted(message))
            text, agent = _optional(message, "content", where) or "", _speaker(message)
            step.ahead.append(Reasoning(text, echoes, marks, agent))
        elif role != "tool":
            inbox.left_out.append(where)
        voiced = None
    step.end()


_voice = re.compile(r"(.+)-a\d+").fullmatch


def _voiced(message: Json) -> str | None:
    """Of which answer a message is one voice; None if it is all of one. See ``ag_ui``."""
    id = message.get("id")
    match = _voice(id) if isinstance(id, str) and _speaker(message) else None
    return match and match[1]


def _ag_answers(messages: list[Json]) -> dict[str, Json]:
    """The tool messages by the call that they answer; the first counts."""
    answers: dict[str, Json] = {}
    for message in messages:
        if message.get("role") == "tool" and isinstance(message.get("toolCallId"), str):
            answers.setdefault(message["toolCallId"], message)
    return answers


def _ag_assistant(step: _Step, message: Json, answers: dict[str, Json], where: str) -> None:
    content = _optional(message, "content", where) or ""
    echoes, marks = _echoes(_encrypted(message))
    if content or echoes:
        step.add(Text(content, echoes, (), marks, _speaker(message)))
    calls = _list(message, "toolCalls", where) if message.get("toolCalls") else []
    for n, call in enumerate(calls):
        _ag_call(step, _object(call, f"{where}.toolCalls[{n}]"), answers, f"{where}.toolCalls[{n}]")


def _speaker(message: Json) -> str | None:
    """Who said it: as we told it, or the name that the message has."""
    return _known(_ours(message.get("metadata")), "agent") or _known(message, "name")


def _ag_call(step: _Step, call: Json, answers: dict[str, Json], where: str) -> None:
    id = _id(call, "id", where)
    step.inbox.call_ids.add(id)
    function = _object(call.get("function"), f"{where}.function")
    facts, raw = _ours(call.get("metadata")), _text(function, "arguments", f"{where}.function")
    try:
        arguments = parse(raw) if raw.strip() else {}
    except Refused:
        arguments = None
    if "broken" in facts or not isinstance(arguments, dict):
        step.inbox.left_out.append(where)
        return
    ran = "provider" if facts.get("providerExecuted") is True else "client"
    name = _text(function, "name", f"{where}.function")
    echo = _encrypted(call)
    heard = _call(step.count, id, name, arguments, facts, ran, echo or None, raw)
    step.call(heard, _ag_result(answers.get(id), where), id)


def _ag_result(message: Json | None, where: str) -> tuple[Any, bool] | None:
    if message is None:
        return None
    is_error = bool(message.get("error")) or _ours(message.get("metadata")).get("isError") is True
    pieces = _ag_content(message, where)
    if any(isinstance(piece, File) for piece in pieces):
        return [p.text if isinstance(p, Text) else p for p in pieces], is_error
    return "".join(piece.text for piece in pieces if isinstance(piece, Text)), is_error


def _ag_content(message: Json, where: str) -> list[Text | File]:
    content = message.get("content")
    if isinstance(content, str):
        return [Text(content)]
    if not isinstance(content, list):
        raise BadBody(f"{where}.content", "is neither text nor a list of parts")
    return [_ag_part(_object(p, f"{where}.content[{n}]"), where) for n, p in enumerate(content)]


def _ag_part(part: Json, where: str) -> Text | File:
    if part.get("type") == "text":
        return Text(_text(part, "text", where))
    source = _object(part.get("source"), f"{where}.source")
    value = _text(source, "value", f"{where}.source")
    if source.get("type") == "data":
        return File(_base64(value, where), _text(source, "mimeType", f"{where}.source"))
    return Text(f"[{part.get('type')}: {value}]")


def _encrypted(holder: Json) -> Json:
    """Our own echo, as the encoder wrote it; what others wrote there is left alone."""
    value = holder.get("encryptedValue")
    if not isinstance(value, str):
        return {}
    try:
        kept = parse(value)
    except Refused:
        return {}
    return kept if isinstance(kept, dict) else {}


# --- our own --------------------------------------------------------------------------------------


def from_plain(body: Json, *, allow_system: bool = False) -> Inbox:
    """What a page of your own posts: a chat's id and its messages, in plain text.

    >>> body = {"id": "c1", "messages": [{"role": "user", "text": "Hello"}], "approvals": {"a1": True}}
    >>> from_plain(body).approvals["a1"].allow
    True
    """
    inbox = Inbox(_id(body, "id", ""), Conversation(), body=body)
    for at, message in enumerate(_list(body, "messages", "")):
        where = f"messages[{at}]"
        message = _object(message, where)
        role, text = _text(message, "role", where), _text(message, "text", where)
        if role == "system":
            _system(inbox, text, where, allow_system)
        elif role in ("user", "assistant"):
            inbox.conversation.add(Turn(role, (Text(text),)))  # type: ignore[arg-type]
        else:
            raise BadBody(f"{where}.role", f"{role!r} is none of system, user, assistant")
    for id, answer in _object(body.get("approvals") or {}, "approvals").items():
        inbox.approvals[id] = _decision(id, answer, f"approvals.{id}")
    return inbox


# --- what all share ------------------------------------------------------------------------------


class _Step:
    """The parts of one assistant turn and the results that follow it."""

    def __init__(self, inbox: Inbox, facts: Json) -> None:
        self.inbox = inbox
        self.ahead: list[Part] = []  # reasoning that comes as a message of its own, before the turn
        self._facts = facts
        self._parts: list[Part] = []
        self._results: list[ToolResult] = []
        self._provider: str | None = None

    @property
    def count(self) -> int:
        return sum(isinstance(part, ToolCall) for part in self._parts)

    def add(self, part: Part) -> None:
        self._parts.append(part)

    def call(self, call: ToolCall, outcome: tuple[Any, bool] | None, id: str) -> None:
        """A call with its outcome, and the ``id`` that the page has for it."""
        self._parts.append(call)
        self._provider = self._provider or call.provenance.provider or None
        if outcome is None:
            if call.runs_on == "client":
                self.inbox.unanswered[call.id] = id
            return
        output, is_error = outcome
        if call.runs_on == "provider":
            self._parts.append(
                ProviderToolResult(call.call, call.id, output, is_error, family=call.family)
            )
            return
        result = ToolResult.for_call(call, output, is_error)
        self._results.append(result)
        self.inbox.results.append(result)

    def close(self) -> None:
        if self._parts:
            provider = self._provider or _known(self._facts, "provider")
            parts = (*self.ahead, *_in_order(self._parts))
            self.inbox.conversation.add(
                Turn("assistant", parts, provider=provider, model=_known(self._facts, "model"))
            )
            self.ahead = []
        if self._results:
            self.inbox.conversation.results(sorted(self._results, key=lambda r: r.call.call))
        self._parts, self._results, self._provider = [], [], None

    def end(self) -> None:
        """No more of this answer: reasoning that nothing followed is a turn of its own."""
        self.close()
        self._parts, self.ahead = self.ahead, []
        self.close()


def _decision(id: str, answer: Any, where: str) -> Decision:
    """A person's answer: true, false, or an object with ``approved``. Anything else is none."""
    said = {"approved": answer} if isinstance(answer, bool) else _object(answer, where)
    if not isinstance(said.get("approved"), bool):
        raise BadBody(_at(where, "approved"), "is neither true nor false")
    edited = said.get("editedArgs")
    return Decision(
        id=id, allow=said["approved"], reason=_optional(said, "reason", where) or "",
        arguments=None if edited is None else _object(edited, _at(where, "editedArgs")),
    )  # fmt: skip


def _take(inbox: Inbox, decision: Decision, where: str) -> None:
    """One answer to each question: of a yes and a no nobody knows which was meant."""
    if inbox.approvals.setdefault(decision.id, decision) != decision:
        raise BadBody(where, f"is another answer to {decision.id!r}; send one")


def _in_order(parts: list[Part]) -> Iterator[Part]:
    """The calls as the model made them: a page shows first what was heard first."""
    calls = iter(sorted((p for p in parts if isinstance(p, ToolCall)), key=lambda c: c.call))
    return (next(calls) if isinstance(part, ToolCall) else part for part in parts)


def _call(
    ordinal: int,
    id: str,
    name: str,
    arguments: Json,
    facts: Json,
    ran: str,
    echo: Any,
    raw: str | None = None,
) -> ToolCall:
    own, place = facts.get("id"), facts.get("call")
    if type(place) is int:
        ordinal = place
    return ToolCall(
        ordinal,
        own if isinstance(own, str) and own else id,
        name,
        arguments,
        json_text(arguments) if raw is None else raw,
        facts["family"] if isinstance(facts.get("family"), str) else "function",
        "provider" if ran == "provider" else "client",
        provenance=_provenance(facts),
        echo=echo if isinstance(echo, dict) else None,
        agent=_known(facts, "agent"),
    )


def _provenance(facts: Json) -> Provenance:
    told = {
        "id_source": facts.get("idSource", "natural"), "wire_id": facts.get("wireId"),
        "wire_field": facts.get("wireField"), "boundary": facts.get("boundary", "stated"),
        "provider": facts.get("provider", ""), "response_id": facts.get("responseId"),
    }  # fmt: skip
    try:
        return msgspec.convert(told, Provenance)
    except msgspec.ValidationError:
        return Provenance("natural")


def _echoes(kept: Json) -> tuple[tuple[Json, ...], tuple[int, ...]]:
    echoes, marks = kept.get("echoes"), kept.get("marks")
    if not isinstance(echoes, list) or not all(isinstance(e, dict) for e in echoes):
        return (), ()
    whole = isinstance(marks, list) and len(marks) == len(echoes)
    if not whole or not all(isinstance(m, int) for m in _each(marks)):
        return tuple(echoes), (0,) * len(echoes)
    return tuple(echoes), tuple(_each(marks))


def _each(values: Any) -> Iterator[Any]:
    return iter(values) if isinstance(values, Iterable) else iter(())


def _system(inbox: Inbox, text: str, where: str, allowed: bool) -> None:
    if not allowed:
        inbox.left_out.append(where)
    elif text:
        before = inbox.conversation.system
        inbox.conversation.system = f"{before}\n{text}" if before else text


def _file(part: Json, where: str) -> Text | File:
    """The bytes of a data URL. Nothing is fetched: any other address is told as text."""
    url = _text(part, "url", where)
    match = _data_url(url)
    if match is None:
        return Text(f"[file: {url}]")
    type, _, encoded, data = match.groups()
    media = part.get("mediaType") if isinstance(part.get("mediaType"), str) else type
    raw = _base64(data, where) if encoded else data.encode()
    name = part.get("filename")
    return File(raw, media or "text/plain", name if isinstance(name, str) else None)


def _base64(text: str, where: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise BadBody(where, "is not base64") from None


def _ours(metadata: Any) -> Json:
    kept = metadata.get("streamnorm") if isinstance(metadata, dict) else None
    return kept if isinstance(kept, dict) else {}


def _known(facts: Json, key: str) -> str | None:
    value = facts.get(key)
    return value if isinstance(value, str) else None


def _at(where: str, key: str) -> str:
    return f"{where}.{key}" if where else key


def _object(value: Any, where: str) -> Json:
    if not isinstance(value, dict):
        raise BadBody(where, "is not an object")
    return value


def _list(holder: Json, key: str, where: str) -> list[Any]:
    value = holder.get(key)
    if not isinstance(value, list):
        raise BadBody(_at(where, key), "is not a list")
    return value


def _text(holder: Json, key: str, where: str) -> str:
    value = holder.get(key)
    if not isinstance(value, str):
        raise BadBody(_at(where, key), "is not a text")
    return value


def _optional(holder: Json, key: str, where: str) -> str | None:
    return None if holder.get(key) is None else _text(holder, key, where)


def _id(holder: Json, key: str, where: str) -> str:
    value = _text(holder, key, where)
    if not 0 < len(value) <= LONGEST_ID:
        raise BadBody(_at(where, key), f"is not a text of 1 to {LONGEST_ID} characters")
    return value
