"""The options of a loop as one value, which each of its runs reads and none changes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from ..encoding.pairs import Orphans
from ..events import ToolCall
from ..history.base import History
from ..history.settled import Settled
from ..history.spool import Spool
from ..tools import Tool
from .circles import LoopGuard
from .client_tools import ClientTool, Stop
from .outgoing import Send
from .persist import ServiceIds

__all__ = ["CONCURRENCY", "LIMIT", "TIMEOUT", "Approve", "Persist", "Setup", "Until"]

Answer: TypeAlias = bool | str | Stop
Approve: TypeAlias = Callable[[ToolCall], Answer | Awaitable[Answer]]
Until: TypeAlias = Callable[[Settled], bool | Awaitable[bool]]
Persist: TypeAlias = Literal["run", "call"]

LIMIT = 20  # calls of the model in one run
CONCURRENCY = 8  # handlers at the same time
TIMEOUT = 120.0  # seconds for one handler


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
