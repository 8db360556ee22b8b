"""A model comes in; the same tool loop goes out in the protocols that chat libraries speak.

    POST /api/ai-sdk     the UI message stream of the AI SDK (``useChat``); .../{chat}/stream, .../stop
    POST /api/ag-ui      AG-UI (``HttpAgent``)

Rule: nothing is built here. It is the library's ``ToolLoop`` behind its ``chat_router``, as anybody
would put them into a program; ``examples/web`` shows the other end. Tools that need a person's
consent are refused here: the page of ``streamnorm serve`` is where somebody can be asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from ..agent.client_tools import ClientTool
from ..agent.loop import ToolLoop
from ..conversation import Conversation
from ..edge.stream import Stream
from ..events import ToolCall
from ..providers import PROVIDERS
from ..tools import Tool
from ..ui.log import EventLog
from ..ui.router import ChatRouter, chat_router

if TYPE_CHECKING:
    from starlette.requests import Request

__all__ = ["protocol_routers"]

PATHS = {"ai-sdk": "/api/ai-sdk", "ag-ui": "/api/ag-ui"}
REFUSED = "a person has to agree first, and nobody can be asked here"


def protocol_routers(
    model: Callable[[Conversation, str], Stream],
    tools: Iterable[ClientTool],
    ask: Callable[[str], bool],
    *,
    log: EventLog,
    cross_site: bool = False,
) -> list[ChatRouter]:
    """A router for each protocol. ``cross_site``: origins are checked by the caller."""
    wire = next(iter(PROVIDERS))  # any would do: what is heard is the same

    def send(conversation: Conversation, declared: list[Tool]) -> Stream:
        return model(conversation, wire)

    def approve(call: ToolCall) -> bool | str:
        return REFUSED if ask(call.name) else True

    loop = ToolLoop(send, tools, approve=approve)
    return [
        chat_router(
            loop, protocol=name, path=path, log=log, cross_site=cross_site,
            owner=_always(name),  # each has its own chats
        )
        for name, path in PATHS.items()
    ]  # fmt: skip


def _always(name: str) -> Callable[[Request], str]:
    return lambda request: name
