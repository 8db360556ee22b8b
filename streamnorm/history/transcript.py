"""Conversations come in as JSONL or as a provider's list of messages, and go out as either.

Rule: JSONL is ours and exact: what is read is equal to what was written. A provider's messages are
read by that provider's own parser: what the model said is told to it again as a stream, so calls,
ids, signatures and reasoning are what they would have been had we heard it ourselves. What cannot
be kept is a row of the report.

    line 1    {"streamnorm": "conversation", "version": 1, "system": …}
    line 2 …  one turn each (see ``streamnorm.history.rows``)
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from ..conversation import Conversation, Text, Turn
from ..encoding.mending import Mended, mend
from ..encoding.messages import (
    Entry,
    LeftOut,
    ModelSaid,
    Step,
    SystemSaid,
    ToolSaid,
    UserSaid,
    gathered,
)
from ..encoding.pairs import ORPHANS, Asked, Given, Orphans, Repair, paired
from ..errors import EncodeError, UsageError
from ..events import Failed, ToolCall
from ..normalizer import Normalizer
from ..text.written import json_bytes
from ..tools import ToolResult
from ..wire import messages_of
from ..wire import provider as wire_of
from .rows import turn_from_bytes, turn_to_bytes

__all__ = ["from_jsonl", "from_messages", "to_jsonl", "to_messages"]

VERSION = 1


# --- JSONL ----------------------------------------------------------------------------------------


def to_jsonl(conversation: Conversation) -> bytes:
    """A conversation as lines of JSON.

    >>> from_jsonl(to_jsonl(Conversation().user("Hello"))).turns[0].text
    'Hello'
    """
    return b"".join(line + b"\n" for line in _lines(conversation))


def from_jsonl(data: bytes | str) -> Conversation:
    """The conversation that ``to_jsonl`` wrote; ``UsageError`` names the line that is none."""
    if isinstance(data, str):
        data = data.encode("utf-8", "surrogatepass")
    lines = data.split(b"\n")
    if lines and not lines[-1]:
        lines.pop()
    system = _read(lines[0] if lines else b"", 1, _system)
    turns = [_read(line, number, turn_from_bytes) for number, line in enumerate(lines[1:], 2)]
    return Conversation(turns, system)


def _lines(conversation: Conversation) -> Iterator[bytes]:
    heading = {"streamnorm": "conversation", "version": VERSION, "system": conversation.system}
    yield json_bytes(heading)
    for turn in conversation.turns:
        yield turn_to_bytes(turn)


def _read(line: bytes, number: int, reader: Callable[[bytes], Any]) -> Any:
    try:
        return reader(line)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise UsageError(f"line {number} is no line of a conversation: {error}") from error


def _system(line: bytes) -> str | None:
    heading = json.loads(line)
    if not isinstance(heading, dict) or heading.get("streamnorm") != "conversation":
        raise ValueError('the first line says {"streamnorm": "conversation", …}')
    if heading.get("version") != VERSION:
        raise ValueError(f"version {heading.get('version')} is not known here")
    system = heading.get("system")
    return None if system is None else str(system)


# --- messages -------------------------------------------------------------------------------------


def to_messages(
    provider: str, conversation: Conversation, *, orphans: Orphans = ORPHANS
) -> list[Entry]:
    """The conversation as that provider's list of messages, every call of it answered.

    >>> to_messages("openai_chat", Conversation().user("Hello"))
    [{'role': 'user', 'content': 'Hello'}]
    """
    wire = wire_of(provider)
    mended = mend(conversation, orphans=orphans).conversation
    entries = wire.request(mended).get(wire.container)
    if not isinstance(entries, list):
        raise EncodeError(f"requests to {provider} have no list of messages in {wire.container!r}")
    return entries


def from_messages(provider: str, body: Any) -> Mended:
    """A request's body, or its list of messages, as a conversation, and what could not be kept.

    ``provider`` is whose wire it is, or ``"auto"``. Calls without a result stay as they are.

    >>> from_messages("openai_chat", [{"role": "user", "content": "Hello"}]).conversation.turns[0].text
    'Hello'
    """
    name, messages = messages_of(provider, body)
    entries = messages.entries(body)
    if not isinstance(entries, list | str):
        raise UsageError(f"this body has no list of {messages.container!r}, as those of {name} do")
    beside = messages.system(body) if isinstance(body, dict) else None
    reading = _Reading(name)
    for step in gathered(SystemSaid, "system", messages.content(beside, "system")):
        reading.hear(step)
    for step in messages.read(entries):
        reading.hear(step)
    return reading.read()


class _Reading:
    """Steps of a body on their way to be turns."""

    def __init__(self, provider: str) -> None:
        self._provider = provider
        self._system: str | None = None
        self._said: list[Turn | ToolSaid] = []
        self._report: list[Repair] = []

    def hear(self, step: Step) -> None:
        match step:
            case ModelSaid():
                self._model(step)
            case SystemSaid():
                self._instructed(step)
            case UserSaid():
                self._said.append(Turn("user", tuple(step.pieces)))
            case ToolSaid():
                self._said.append(step)
            case LeftOut():
                self._left_out(step.where, step.why)

    def _model(self, step: ModelSaid) -> None:
        pipe = Normalizer(self._provider, seed=f"transcript/{len(self._said)}")
        events = [event for payload in step.payloads for event in pipe.feed_payload(payload)]
        events += pipe.close()
        turn = Turn.from_events(events)
        if isinstance(events[-1], Failed):
            self._left_out(step.where, f"what the model said cannot be read: {events[-1].error}")
        for broken in turn.broken:
            if not broken.goes_back:
                why = f"{broken.reason}: {broken.detail}"
                self._report.append(Repair("dropped_call", broken.id, broken.name, step.where, why))
        if turn.parts:
            self._said.append(turn)

    def _instructed(self, step: SystemSaid) -> None:
        texts = [piece.text for piece in step.pieces if isinstance(piece, Text)]
        if len(texts) < len(step.pieces):
            self._left_out(step.where, "media have no place in a system text")
        if not self._said and self._system is None:
            self._system = "\n\n".join(texts)
        else:
            self._said.append(Turn("system", (Text("\n\n".join(texts)),)))

    def _left_out(self, where: str, why: str) -> None:
        self._report.append(Repair("left_out", "", "", where, why))

    # --- results ----------------------------------------------------------------------------------

    def read(self) -> Mended:
        """The conversation: results are where they stood, each with its call."""
        calls, strays = self._pair()
        turns: list[Turn] = []
        for place, said in enumerate(self._said):
            if isinstance(said, Turn):
                turns.append(said)
            elif place in calls:
                _give(turns, ToolResult.for_call(calls[place], said.output, said.is_error))
            else:
                id, name = said.id or "", said.name or ""
                self._report.append(Repair("dropped_result", id, name, said.where, strays[place]))
        return Mended(Conversation(turns, self._system), tuple(self._report))

    def _pair(self) -> tuple[dict[int, ToolCall], dict[int, str]]:
        """By the place of a result: the call that it answers, or why it answers none."""
        calls: list[ToolCall] = []
        asked: list[Asked] = []
        given: list[Given] = []
        after = -1
        for place, said in enumerate(self._said):
            if isinstance(said, ToolSaid):
                given.append(Given(place, after, said.id, said.name))
            elif said.role == "assistant":
                after = place
                made = [part for part in said.parts if isinstance(part, ToolCall)]
                calls += made
                asked += [Asked(place, _stated_id(call), call.name) for call in made]
        answers, strays = paired(asked, given)
        answered = {given[n].place: calls[at] for at, n in enumerate(answers) if n is not None}
        return answered, {given[n].place: why for n, why in strays.items()}


def _stated_id(call: ToolCall) -> str | None:
    """An id that was minted here stands in no body."""
    return None if call.provenance.id_source == "synthetic" else call.id


def _give(turns: list[Turn], result: ToolResult) -> None:
    if turns and turns[-1].role == "tool":
        turns[-1] = Turn("tool", (*turns[-1].parts, result))
    else:
        turns.append(Turn("tool", (result,)))
