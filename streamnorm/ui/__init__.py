"""Streams that browsers read: events in, the frames of a chat protocol out, and what clients post back.

Rule: a page shows what was told, each event once, and a call that is not whole is never shown as one.

    vercel      events -> the UI message stream of the AI SDK (``useChat``)
    ag_ui       events -> AG-UI (``HttpAgent``)
    plain       events -> our own events, for a page of your own
    inbox       what those clients post back -> ``Conversation``
    log         where a stream is kept while it is told, so that a reader may come back
    router      all of it behind four addresses, for Starlette and FastAPI
    client      the other end: events of such a stream, each once, whatever cuts the line

``docs/ui.md`` shows how they are used. What needs an extra says so when it is used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ..fold import Approval, Decision, Denied, Said
from ._encoder import Item, full_error, plain_error

if TYPE_CHECKING:
    from . import ag_ui, plain, vercel
    from .client import FollowError, Following, follow
    from .inbox import BadBody, Inbox, from_ag_ui, from_ai_sdk, from_plain, parse_body
    from .log import EventLog, MemoryLog, RedisLog, SQLiteLog
    from .router import Chat, ChatRouter, chat_router

__all__ = [
    "Approval",
    "BadBody",
    "Chat",
    "ChatRouter",
    "Decision",
    "Denied",
    "EventLog",
    "FollowError",
    "Following",
    "Inbox",
    "Item",
    "MemoryLog",
    "RedisLog",
    "SQLiteLog",
    "Said",
    "ag_ui",
    "chat_router",
    "follow",
    "from_ag_ui",
    "from_ai_sdk",
    "from_plain",
    "full_error",
    "parse_body",
    "plain",
    "plain_error",
    "vercel",
]

# module -> the names that come from it, imported at first use; the others are modules themselves
_LAZY = {
    "client": ("FollowError", "Following", "follow"),
    "inbox": ("BadBody", "Inbox", "from_ag_ui", "from_ai_sdk", "from_plain", "parse_body"),
    "log": ("EventLog", "MemoryLog", "RedisLog", "SQLiteLog"),
    "router": ("Chat", "ChatRouter", "chat_router"),
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    for module, names in _LAZY.items():
        if name in names:
            return getattr(import_module(f".{module}", __name__), name)
    return import_module(f".{name}", __name__)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
