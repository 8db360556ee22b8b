"""The ids that calls have on a wire: calls in, one id each out.

Rule 1: a wire gets its own ids back as it gave them.
Rule 2: an id of another wire is kept if this one could have made it, else rewritten: the same id
        always becomes the same one, two ids never become one, and a call and its result agree.
Rule 3: an id that was minted here is sent only where an id is needed.
"""

from __future__ import annotations

import hashlib
import re
import string
from collections import Counter
from collections.abc import Sequence
from itertools import count
from typing import Literal, NamedTuple

from ..events import ToolCall

__all__ = ["Grammar", "Ids"]

_LETTERS = string.digits + string.ascii_letters


class Grammar(NamedTuple):
    """What ids look like on a wire.

    ``made``: prefix and number of letters of a rewritten id. ``needed``: a call cannot be told
    without one. ``within``: how far an id reaches. Where results stand next to their calls, a wire
    may use an id again in the next ``turn``, and wants it back as it was.
    """

    pattern: str
    made: tuple[str, int] = ("call_", 22)
    needed: bool = True
    within: Literal["turn", "request"] = "request"

    def takes(self, id: str) -> bool:
        """Could this wire have made that id?

        >>> Grammar("[a-z]{1,3}").takes("abc"), Grammar("[a-z]{1,3}").takes("abcd")
        (True, False)
        """
        return re.fullmatch(self.pattern, id) is not None

    def spells(self, id: str) -> bool:
        """Has that id, however long it is, no character that this wire's own have not?

        >>> Grammar("[a-z]{1,3}").spells("abcd"), Grammar("[a-z]{1,3}").spells("a:b")
        (True, False)
        """
        return bool(id) and all(map(self.takes, set(id)))

    def made_from(self, id: str, salt: str) -> str:
        """An id of this grammar that stands for ``id``."""
        prefix, size = self.made
        number = int.from_bytes(
            hashlib.sha256(f"{id}\0{salt}".encode("utf-8", "surrogatepass")).digest()
        )
        return prefix + "".join(_LETTERS[number // 62**place % 62] for place in range(size))


class Ids:
    """The ids of one request, handed out turn by turn.

    >>> ids = Ids("mistral", Grammar("[a-zA-Z0-9]{9}", ("", 9)))
    >>> ids.assign([ToolCall(0, "toolu_01A", "weather", {}, "")])
    ['pbhZN6veq']
    """

    def __init__(self, wire: str, grammar: Grammar) -> None:
        self._wire = wire
        self._grammar = grammar
        self._taken: set[str] = set()
        self._seen: Counter[str] = Counter()  # how often each id came so far

    def assign(self, calls: Sequence[ToolCall]) -> list[str | None]:
        """The ids of the calls of one turn, in order; None where none is to be sent."""
        here: set[str] = set()
        assigned = [self._assign(call, here) for call in calls]
        self._taken |= here
        return assigned

    def _assign(self, call: ToolCall, here: set[str]) -> str | None:
        if call.provenance.id_source == "synthetic" and not self._grammar.needed:
            return None
        id = self._own(call, here) or self._kept(call, here) or self._rewritten(call, here)
        self._seen[call.id] += 1
        here.add(id)
        return id

    def _own(self, call: ToolCall, here: set[str]) -> str | None:
        origin = call.provenance
        if origin.provider != self._wire or origin.id_source == "synthetic" or call.id in here:
            return None
        reused = self._grammar.within == "request" and call.id in self._taken
        return None if reused else call.id

    def _kept(self, call: ToolCall, here: set[str]) -> str | None:
        free = call.id not in self._taken and call.id not in here
        return call.id if free and self._grammar.takes(call.id) else None

    def _rewritten(self, call: ToolCall, here: set[str]) -> str:
        candidates = (
            self._grammar.made_from(call.id, f"{self._seen[call.id]}/{attempt}")
            for attempt in count()
        )
        return next(c for c in candidates if c not in self._taken and c not in here)
