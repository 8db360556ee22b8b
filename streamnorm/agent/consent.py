"""A conversation and what people decided come in; which call each decision is about goes out.

Rule: the id of a question is made of the conversation, the place of the call in it, its id and its
arguments. So it is the same after a restart and on another machine, it fits that one call as it was
shown, and no answer of an earlier turn fits a call of a later one, whatever ids a server uses again.

A call waits if its tool asks for consent and nobody has said or done anything about it: no result is
in a turn and no record beside the turns. Whoever runs it claims it first (``History.claim``), so that
it is run at most once, however often and wherever it is allowed, and also if the process dies with it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

from ..conversation import Conversation
from ..errors import UsageError
from ..events import ToolCall
from ..fold import Decision
from ..history.errors import ForeignDecision
from ..text.written import json_bytes

__all__ = ["checked", "matched", "question"]


def question(conversation: str, turn: int, call: ToolCall) -> str:
    """The id under which this call is asked about.

    >>> question("chat-1", 1, ToolCall(0, "call_1", "pay", {"euro": 5}, ""))
    'ask_f2f4d57db3aa6b0c0f6cbb8b1ba06a0b'
    """
    place = json_bytes([conversation, turn, call.id, call.checksum])
    return f"ask_{hashlib.sha256(place).hexdigest()[:32]}"


def checked(decisions: Iterable[Decision]) -> dict[str, Decision]:
    """The decisions by the ids of their questions; one for each."""
    found: dict[str, Decision] = {}
    for decision in decisions:
        if not isinstance(decision, Decision) or type(decision.allow) is not bool:
            raise UsageError(f"a decision is Decision(id=…, allow=True or False), not {decision!r}")
        if not _is_json(decision.arguments):
            raise UsageError(
                "the arguments of a decision are all that the tool takes, as a JSON object"
            )
        if found.setdefault(decision.id, decision) != decision:
            raise UsageError(f"there are two decisions on {decision.id!r}; send one")
    return found


def _is_json(arguments: Any) -> bool:
    try:
        json_bytes(arguments)
    except (TypeError, ValueError, RecursionError):
        return False
    return isinstance(arguments, dict | None)


def matched(
    scope: str, conversation: Conversation, decisions: Iterable[Decision]
) -> dict[str, ToolCall]:
    """The calls that these decisions are about, by the ids of their questions."""
    asked = {
        question(scope, number, call): call
        for number, turn in enumerate(conversation.turns)
        for call in turn.calls
    }
    for decision in decisions:
        if decision.id not in asked:
            raise ForeignDecision(
                f"nobody asked {decision.id!r} in the conversation {scope!r}; answer with the id of "
                "an Approval that was told in it"
            )
    return {decision.id: asked[decision.id] for decision in decisions}
