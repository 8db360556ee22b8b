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

from ..conversation import Conversation
from ..events import ToolCall
from ..handlers import ClientTool
from ..loop import ToolLoop
from ..stream import Stream
from ..tools import Tool
from ..ui.router import chat_router

if TYPE_CHECKING:
    from starlette.routing import BaseRoute

__all__ = ["protocol_routes"]

WIRE = "anthropic"  # any would do: what is heard is the same
PATHS = {"ai-sdk": "/api/ai-sdk", "ag-ui": "/api/ag-ui"}
REFUSED = "a person has to agree first, and nobody can be asked here"
ONE_PERSON = "local"  # the server listens on one machine, for whoever sits there


def protocol_routes(
    model: Callable[[Conversation, str], Stream],
    tools: Iterable[ClientTool],
    ask: Callable[[str], bool],
    *,
    cross_site: bool = False,
) -> list[BaseRoute]:
    """The routes of both protocols. ``cross_site``: origins are checked by the caller."""

    def send(conversation: Conversation, declared: list[Tool]) -> Stream:
        return model(conversation, WIRE)

    def approve(call: ToolCall) -> bool | str:
        return REFUSED if ask(call.name) else True

    loop = ToolLoop(send, tools, approve=approve)
    routers = (
        chat_router(
            loop, protocol=name, path=path, owner=lambda request: ONE_PERSON, cross_site=cross_site
        )
        for name, path in PATHS.items()
    )
    return [route for router in routers for route in router.routes]
