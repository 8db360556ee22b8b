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

from ..conversation import Conversation
from ..encoding.fields import at
from ..encoding.mending import Mended, mend
from ..encoding.messages import Entry
from ..encoding.pairs import ORPHANS, Orphans
from ..errors import EncodeError, UsageError
from ..request import read_conversation
from ..text.shown import words_of
from ..text.written import json_bytes
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
        raise UsageError(
            f"line {number} is no line of a conversation: {words_of(error)}"
        ) from error


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
    entries = at(wire.request(mended), wire.container)
    if not isinstance(entries, list):
        raise EncodeError(f"requests to {provider} have no list of messages in {wire.container!r}")
    return entries


def from_messages(provider: str, body: Any) -> Mended:
    """A request's body, or its list of messages, as a conversation, and what could not be kept.

    ``provider`` is whose wire it is, or ``"auto"``. Calls without a result stay as they are.

    >>> from_messages("openai_chat", [{"role": "user", "content": "Hello"}]).conversation.turns[0].text
    'Hello'
    """
    return read_conversation(provider, body)
