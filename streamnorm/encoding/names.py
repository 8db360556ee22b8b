"""The names that tools have on a wire: any name in, one that the wire takes out, and back.

Rule: two tools never get one name, and the name that comes back in a call finds its tool. A name
that fits is left alone; in another, what does not fit becomes ``_``; one that is too long, or would
be another tool's, is shortened and ends with a hash of the whole.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from ..errors import EncodeError

__all__ = ["DOTTED", "IDENTIFIER", "PLAIN", "Names", "Rule"]

HASH = 8  # letters of it at the end of a shortened name


class Rule(NamedTuple):
    """What names look like on a wire: the letters they have, how they begin, how long they are."""

    letters: str
    begins: str
    limit: int

    def takes(self, name: str) -> bool:
        """Is this a name on that wire?

        >>> PLAIN.takes("get_weather"), PLAIN.takes("get weather")
        (True, False)
        """
        pattern = f"(?={self.begins})[{self.letters}]{{1,{self.limit}}}"
        return re.fullmatch(pattern, name) is not None

    def spelled(self, name: str) -> str:
        """The name with everything replaced that does not fit; it may still be too long."""
        fitting = re.sub(f"[^{self.letters}]", "_", name)
        return fitting if re.match(self.begins, fitting) else f"_{fitting}"

    def hashed(self, name: str) -> str:
        """A name that fits and that no other name becomes.

        >>> PLAIN.hashed("github__create an issue")
        'github__create_an_issue_9e19d2b9'
        """
        digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:HASH]
        return f"{self.spelled(name)[: self.limit - HASH - 1]}_{digest}"


PLAIN = Rule("a-zA-Z0-9_-", "", 64)
DOTTED = Rule("a-zA-Z0-9_.-", "[a-zA-Z_]", 63)
IDENTIFIER = Rule("a-zA-Z0-9_", "[a-zA-Z_]", 64)
RULES = (PLAIN, DOTTED, IDENTIFIER)


class Names:
    """The names of the tools that were declared on one wire.

    >>> names = Names(PLAIN)
    >>> names.declare(["files: read", "weather"])
    >>> names.wire("files: read"), names.original("files__read")
    ('files__read', 'files: read')
    """

    def __init__(self, rule: Rule, *, exact: bool = False) -> None:
        self._rule = rule
        self._exact = exact
        self._wire: dict[str, str] = {}  # tool -> its name on this wire
        self._original: dict[str, str] = {}
        self._elsewhere: dict[str, set[str]] = {}  # its name on any wire -> tools

    def declare(self, names: Iterable[str]) -> None:
        """Give these tools their names. Those that have one keep it."""
        new = [name for name in dict.fromkeys(names) if name not in self._wire]
        for name in new:
            self._check(name)
        spellings = Counter(map(self._rule.spelled, new))
        for name in sorted(new, key=lambda n: not self._rule.takes(n)):  # those that fit come first
            self._give(name, self._free(name, spellings))

    def wire(self, name: str) -> str:
        """The name that this wire knows a tool by, also for a name that came from another wire."""
        if name in self._wire:
            return self._wire[name]
        if name in self._original:
            return name
        elsewhere = self._elsewhere.get(name, set())
        if len(elsewhere) == 1:
            return self._wire[next(iter(elsewhere))]
        if not name:
            raise EncodeError("a call without a name cannot be sent; leave it out")
        self._give(name, self._free(name, Counter()))
        return self._wire[name]

    def original(self, name: str) -> str:
        """The tool that a call means; the name itself if no tool was declared by it."""
        return self._original.get(name, name)

    def _check(self, name: str) -> None:
        if not name:
            raise EncodeError("a tool needs a name; pass Tool(name, description, schema)")
        if self._exact and not self._rule.takes(name):
            raise EncodeError(
                f"the tool name {name!r} ({len(name)} characters) is not one that this wire takes: "
                f"{self._rule.limit} at most, of [{self._rule.letters}]; rename the tool, or let "
                'names be mapped with names="map"'
            )

    def _free(self, name: str, spellings: Counter[str]) -> str:
        """The name if it fits, its spelling if that is nobody else's, else one with a hash."""
        rule = self._rule
        if rule.takes(name) and name not in self._original:
            return name
        spelled = rule.spelled(name)
        if rule.takes(spelled) and spelled not in self._original and spellings[spelled] < 2:
            return spelled
        hashed = rule.hashed(name)
        if hashed in self._original:
            raise EncodeError(
                f"the tools {name!r} and {self._original[hashed]!r} cannot be told apart on this "
                "wire; rename one of them"
            )
        return hashed

    def _give(self, name: str, wire_name: str) -> None:
        self._wire[name], self._original[wire_name] = wire_name, name
        for rule in RULES:
            for form in (rule.spelled(name), rule.hashed(name)):
                self._elsewhere.setdefault(form, set()).add(name)
