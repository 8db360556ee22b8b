"""A conversation as a client remembers it comes in; the same as those who said it know it goes out.

Rule: what rode in the client's own opaque fields (``encoding.envelope``) is put back. A call that the
store knows gets its own id, its origin and its echo again, and its result follows it; thoughts that are
kept with it stand before it, in place of what the client has of them. Everything else
stays as the client has it; of a request that is handed on byte for byte (``returned``), every byte.
"""

from __future__ import annotations

import re

import msgspec

from ..conversation import Conversation, Part, Reasoning, Turn
from ..core.row import Provider
from ..encoding.encoder import Encoder
from ..encoding.envelope import restored as opened
from ..events import ToolCall
from ..text.written import json_bytes
from ..tools import ToolResult
from .store import Kept, Store

__all__ = ["ids_in", "restored", "returned"]


def ids_in(conversation: Conversation) -> set[str]:
    """The ids of all calls, as the client has them."""
    calls = (part for turn in conversation for part in (*turn.parts, *turn.broken))
    return {call.id for call in calls if hasattr(call, "id")} | {
        part.call.id for turn in conversation for part in turn.results
    }


def restored(conversation: Conversation, store: Store) -> Conversation:
    """With what the store knows of its calls."""
    turns = [_turn(turn, store) for turn in conversation]
    return msgspec.structs.replace(conversation, turns=turns)


def _turn(turn: Turn, store: Store) -> Turn:
    if turn.role == "assistant":
        turn = opened(_thinking(turn, store))
    if not any(isinstance(part, ToolCall | ToolResult) for part in turn.parts):
        return turn
    return msgspec.structs.replace(turn, parts=tuple(_part(part, store) for part in turn.parts))


def _thinking(turn: Turn, store: Store) -> Turn:
    lead, parts = list[Part](), list[Part]()
    said = [part for part in turn.parts if not isinstance(part, Reasoning)]
    for part in said:
        kept = _kept(part, store) if isinstance(part, ToolCall) else None
        if kept is not None:
            lead += kept.thoughts[: kept.leads]
            parts += kept.thoughts[kept.leads :]
        parts.append(part)
    thought = len(lead) + len(parts) > len(said)
    return msgspec.structs.replace(turn, parts=(*lead, *parts)) if thought else turn


def _part(part: Part, store: Store) -> Part:
    if isinstance(part, ToolCall):
        return _call(part, store)
    if isinstance(part, ToolResult):
        return msgspec.structs.replace(part, call=_call(part.call, store))
    return part


def _call(call: ToolCall, store: Store) -> ToolCall:
    kept = _kept(call, store)
    return call if kept is None else kept.restored(call)


def _kept(call: ToolCall, store: Store) -> Kept | None:
    """What is known of it; an id of ours that stands for another tool's call is nobody's."""
    kept = store.get(call.id)
    return kept if kept is not None and kept.name == call.name else None


def returned(body: bytes, wire: Provider, store: Store) -> bytes:
    """A request to somebody who speaks its own wire: ids that were made here are those again that the
    upstream gave itself, unless the wire wants them to differ in all of a request and they do not."""
    grammar = wire.part("encoder", Encoder).grammar
    prefix, size = grammar.made
    made = re.compile(rb'"(%b[0-9A-Za-z]{%d})"' % (re.escape(prefix).encode(), size))
    for served in dict.fromkeys(made.findall(body)):
        kept = store.get(served.decode())
        if kept is None or kept.provenance.provider != wire.name:
            continue
        own = json_bytes(kept.id)
        free = grammar.within == "turn" or own not in body
        if kept.provenance.id_source == "natural" and free:
            body = body.replace(b'"%b"' % served, own)
    return body
