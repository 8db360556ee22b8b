"""Calls come in; a verdict goes out when the model goes round in circles.

Rule: calls are the same if their names and canonical arguments are (key order, ``1.0`` and ``1`` do
not matter), ignoring keys that the caller names. A broken call is never run, and counts: a model that
fails to write a call twenty times is in a circle, too.

    equal       one call, for the nth time in this run
    ping_pong   two to four calls, in turns, for the nth time: A B A B A B
    broken      a tool whose calls were not whole, for the nth time
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Literal, NamedTuple, TypeAlias

from ..errors import UsageError
from ..events import BrokenToolCall, ToolCall
from ..text.canonical import checksum

__all__ = ["LoopGuard", "Verdict"]

Policy: TypeAlias = Literal["warn", "answer", "stop"]
Pattern: TypeAlias = Literal["equal", "ping_pong", "broken"]

POLICIES = ("warn", "answer", "stop")
LONGEST_PERIOD = 4


class Verdict(NamedTuple):
    """A circle that was seen: which pattern, how often, and what the policy says to do."""

    pattern: Pattern
    times: int
    name: str
    policy: Policy
    message: str


class LoopGuard:
    """Watches the calls of one run.

    ``equal``, ``ping_pong`` and ``broken`` are how often is too often (0: never). ``limits`` has
    another number for some tools, such as one that polls. ``ignore`` are keys whose values change
    without meaning anything (a timestamp, a request id), at any depth.

    ``policy``: ``"warn"`` only tells, ``"answer"`` gives the model an error result instead of running
    the call, ``"stop"`` ends the run.

    >>> guard = LoopGuard(equal=2)
    >>> call = ToolCall(0, "call_1", "list_files", {"path": "."}, "")
    >>> guard.heard(call)
    >>> guard.heard(call).message
    'list_files was called 2 times with the same arguments'
    """

    def __init__(
        self,
        *,
        equal: int = 3,
        ping_pong: int = 3,
        broken: int = 3,
        limits: Mapping[str, int] | None = None,
        ignore: Collection[str] = (),
        policy: Policy = "answer",
    ) -> None:
        if policy not in POLICIES:
            raise UsageError(f"a policy is one of {', '.join(POLICIES)}, not {policy!r}")
        counts = {"equal": equal, "ping_pong": ping_pong, "broken": broken, **dict(limits or {})}
        for name, count in counts.items():
            if type(count) is not int or count < 0:
                raise UsageError(f"{name} is how often is too often, or 0 for never, not {count!r}")
        if isinstance(ignore, str):
            raise UsageError(f"ignore is a set of keys, such as {{{ignore!r}}}, not a text")
        self._equal, self._ping_pong, self._broken = equal, ping_pong, broken
        self._limits = dict(limits or {})
        self._ignore = frozenset(ignore)
        self._policy: Policy = policy
        self._like: LoopGuard | None = None  # the one that this was made from
        self.reset()

    def reset(self) -> None:
        """Forget all calls: a new run."""
        self._counts: Counter[str] = Counter()
        self._trail: list[str] = []

    @classmethod
    def counting(cls) -> LoopGuard:
        """A guard that counts calls and never minds."""
        return cls(equal=0, ping_pong=0, broken=0)

    def fresh(self) -> LoopGuard:
        """A guard of the same settings that has heard nothing."""
        guard = copy.copy(self)
        guard.reset()
        guard._like = self
        return guard

    @contextmanager
    def asked(self) -> Iterator[None]:
        """Inside it, the guard that this one was made from counts for this one's run."""
        token = _present.set(self)
        try:
            yield
        finally:
            _present.reset(token)

    def count(self, call: ToolCall) -> int:
        """How often this call was heard: in this run, where ``approve`` or a handler asks."""
        present = _present.get()
        guard = present if present is not None and present._like is self else self
        return guard._counts[self.key(call)]

    def key(self, call: ToolCall) -> str:
        """The checksum of the call without the ignored keys."""
        if not isinstance(call, ToolCall):
            raise UsageError(f"a guard counts a ToolCall, not {type(call).__name__}")
        arguments = _without(call.arguments, self._ignore) if self._ignore else call.arguments
        return checksum(call.name, arguments)

    def heard(self, call: ToolCall | BrokenToolCall) -> Verdict | None:
        """Count one more call; a verdict if that is too often."""
        if isinstance(call, BrokenToolCall):
            return self._heard_broken(call)
        key = self.key(call)
        self._counts[key] += 1
        self._trail.append(key)
        return self._is_equal(call, key) or self._is_ping_pong(call)

    def _heard_broken(self, call: BrokenToolCall) -> Verdict | None:
        key = f"broken {call.name}"
        self._counts[key] += 1
        self._trail.append(key)
        times = self._counts[key]
        if not 0 < self._broken <= times:
            return None
        message = f"{times} calls of {call.name} were not whole, the last: {call.reason}"
        return Verdict("broken", times, call.name, self._policy, message)

    def _is_equal(self, call: ToolCall, key: str) -> Verdict | None:
        most, times = self._limits.get(call.name, self._equal), self._counts[key]
        if not 0 < most <= times:
            return None
        message = f"{call.name} was called {times} times with the same arguments"
        return Verdict("equal", times, call.name, self._policy, message)

    def _is_ping_pong(self, call: ToolCall) -> Verdict | None:
        if self._ping_pong <= 0 or call.name in self._limits:
            return None
        for period in range(2, LONGEST_PERIOD + 1):
            tail = self._trail[-period * self._ping_pong :]
            cycle = tail[-period:]
            if len(set(cycle)) > 1 and tail == cycle * self._ping_pong:
                message = (
                    f"the same {period} calls were made in turns {self._ping_pong} times, "
                    f"the last: {call.name}"
                )
                return Verdict("ping_pong", self._ping_pong, call.name, self._policy, message)
        return None


_present: ContextVar[LoopGuard | None] = ContextVar("streamnorm_guard", default=None)


def _without(value: Any, keys: frozenset[str]) -> Any:
    if isinstance(value, dict):
        return {k: _without(v, keys) for k, v in value.items() if k not in keys}
    if isinstance(value, list):
        return [_without(item, keys) for item in value]
    return value
