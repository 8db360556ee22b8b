"""The options of a loop as one value, which each of its runs reads and none changes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

from ..encoding.pairs import Orphans
from ..errors import UsageError
from ..events import ToolCall
from ..history.base import History
from ..history.settled import Settled
from ..history.spool import Spool
from ..tools import Tool
from .circles import LoopGuard
from .client_tools import ClientTool, Stop
from .outgoing import Send
from .persist import ServiceIds

__all__ = [
    "CONCURRENCY",
    "LIMIT",
    "NOTHING_TO_TAKE_UP",
    "TIMEOUT",
    "Approve",
    "Persist",
    "Setup",
    "Until",
]

Answer: TypeAlias = bool | str | Stop
Approve: TypeAlias = Callable[[ToolCall], Answer | Awaitable[Answer]]
Until: TypeAlias = Callable[[Settled], bool | Awaitable[bool]]
Persist: TypeAlias = Literal["run", "call"]

LIMIT = 20  # calls of the model in one run
CONCURRENCY = 8  # handlers at the same time
TIMEOUT = 120.0  # seconds for one handler

NOTHING_TO_TAKE_UP = (
    "tools that need consent need a history that keeps the calls, and where the service alone keeps a "
    'conversation (on_conflict="clear") there is no call to take up; keep both with on_conflict="warn", '
    "or leave out service_id"
)


@dataclass(frozen=True, slots=True)
class Setup:
    """What ``ToolLoop`` was given; see there."""

    send: Send
    tools: list[Tool]
    handlers: dict[str, ClientTool]
    history: History | None
    persist: Persist
    trim: bool
    system: str | None
    limit: int
    concurrency: int
    timeout: float | None
    approve: Approve | None
    until: Until | None
    guard: LoopGuard | None
    spool: Spool
    orphans: Orphans
    service_ids: ServiceIds

    def __post_init__(self) -> None:
        for name, (fits, rule) in RULES.items():
            if not fits(value := getattr(self, name)):
                raise UsageError(f"{name} is {rule}, not {value!r}")

    @property
    def asks(self) -> bool:
        """Is there a tool that needs a person's consent?"""
        return any(tool.consent is not False for tool in self.handlers.values())


def _is_count(value: Any) -> bool:
    return type(value) is int and value > 0


def _is_function(value: Any) -> bool:
    return value is None or callable(value)


# What each option must be, for those who pass something else.
RULES: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "history": (
        lambda v: isinstance(v, History | None), 'a History such as SQLiteHistory("chat.db")'),
    "trim": (lambda v: isinstance(v, bool), "True or False"),
    "system": (lambda v: isinstance(v, str | None), "a text"),
    "limit": (_is_count, "a number of calls from 1 up"),
    "concurrency": (_is_count, "a number of handlers from 1 up"),
    "timeout": (
        lambda v: v is None or (type(v) in (int, float) and v > 0), "seconds, or None for no end"),
    "approve": (_is_function, "a function of a call"),
    "until": (_is_function, "a function of a settled record"),
    "guard": (lambda v: isinstance(v, LoopGuard | None), "a LoopGuard"),
    "spool": (lambda v: isinstance(v, Spool), 'a Spool such as Spool("artifacts")'),
    "orphans": (lambda v: v in get_args(Orphans), f"one of {', '.join(get_args(Orphans))}"),
}  # fmt: skip
