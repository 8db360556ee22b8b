"""A model comes in; the same tool loop goes out in the protocols that chat libraries speak.

    POST /api/ai-sdk     the UI message stream of the AI SDK (``useChat``); .../{chat}/stream, .../stop
    POST /api/ag-ui      AG-UI (``HttpAgent``)

Rule: nothing is built here. It is the library's ``ToolLoop`` behind its ``chat_router``, as anybody
would put them into a program; ``examples/web`` shows the other end. Where a tool needs a person's
consent, the clients' own approvals ask and answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from ..agent.client_tools import ClientTool
from ..agent.loop import ToolLoop
from ..conversation import Conversation
from ..edge.stream import Stream
from ..history.base import History
from ..tools import Tool
from ..ui.log import EventLog
from ..ui.router import ChatRouter, chat_router
from .takes import showing_wires

if TYPE_CHECKING:
    from starlette.requests import Request

__all__ = ["PATHS", "protocol_routers"]

PATHS = {"ai-sdk": "/api/ai-sdk", "ag-ui": "/api/ag-ui"}


def protocol_routers(
    model: Callable[[Conversation, str], Stream],
    tools: Iterable[ClientTool],
    *,
    log: EventLog,
    history: History,
    cross_site: bool = False,
) -> list[ChatRouter]:
    """A router for each protocol. ``cross_site``: origins are checked by the caller."""
    wire = showing_wires()[0]  # any would do that has pictures: what is heard is the same

    def send(conversation: Conversation, declared: list[Tool]) -> Stream:
        return model(conversation, wire)

    loop = ToolLoop(send, tools, history=history, persist="call")
    return [
        chat_router(
            loop, protocol=name, path=path, log=log, cross_site=cross_site,
            owner=_always(name),  # each has its own chats
        )
        for name, path in PATHS.items()
    ]  # fmt: skip


def _always(name: str) -> Callable[[Request], str]:
    return lambda request: name
