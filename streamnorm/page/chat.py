"""What a person says comes in; runs of the tool loop go out, as a loop for ``streamnorm.ui.router``.

The router and its log do the rest: who hears what, who comes back after which entry, who stops it.

Rule: the loop is the library's own ``ToolLoop``. Only whole calls are run, and some of them only when
a person agreed: the question ends the run like everything else that is told, and the answer is a run
of its own. The conversation is in a history, so that a server that was started again knows what was
said and what is asked.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from ..agent.client_tools import ClientTool
from ..agent.loop import ToolLoop
from ..agent.run import Run
from ..conversation import Conversation
from ..edge.stream import Stream
from ..errors import StreamnormError, UsageError
from ..events import Failed
from ..fold import Said
from ..history.base import History
from ..history.sqlite import MemoryHistory, SQLiteHistory
from ..tools import Tool
from ..ui import Item
from ..ui.log import EventLog, MemoryLog, SQLiteLog
from ..ui.router import Chat
from .protocols import PATHS
from .takes import scripted_wires

__all__ = ["ME", "Chats", "Choose", "Model", "Talk", "chosen", "owned"]

Model = Callable[[Conversation, str], Stream]
Choose = Callable[[Mapping[str, Any]], tuple[str, Model]]

ME = "local"  # the server listens on one machine, for whoever sits there
MOST_TURNS = 8
KEPT_FOR = 30 * 24 * 3600.0  # seconds after the last word of a chat
LEASE = 3.0  # seconds: a server that was killed and started again need not be waited for


class Chats:
    """Where chats are kept: a SQLite file, or memory. ``log`` is what was told, entry by entry;
    ``history`` what the model is to know of it."""

    def __init__(self, path: Path | None = None) -> None:
        self.history: History = MemoryHistory() if path is None else SQLiteHistory(path)
        self.log: EventLog = (
            MemoryLog(keep_for=KEPT_FOR)
            if path is None
            else SQLiteLog(path, lease=LEASE, keep_for=KEPT_FOR)
        )

    async def open(self) -> None:
        """Make the file what it should be, and forget the conversations whose chats are gone."""
        for name in await self.history.conversations():  # first: it wants a file of its own
            owner, chat = owned(name)
            if not await self.log.streams(owner=owner, chat=chat):
                await self.history.delete(name)

    async def aclose(self) -> None:
        await self.log.aclose()
        await self.history.aclose()


def owned(name: str) -> tuple[str, str]:
    """Whose conversation this is, and which chat: those of other people's clients say it.

    >>> owned("6:ai-sdk:c1"), owned("c1")
    (('ai-sdk', 'c1'), ('local', 'c1'))
    """
    for owner in PATHS:
        prefix = f"{len(owner)}:{owner}:"
        if name.startswith(prefix):
            return owner, name.removeprefix(prefix)
    return ME, name


class Talk:
    """The loop behind the router: one run for each thing that a person says or decides."""

    def __init__(self, choose: Choose, tools: Iterable[ClientTool], history: History) -> None:
        self.choose, self.tools, self.history = choose, tuple(tools), history

    async def __call__(self, chat: Chat) -> AsyncIterator[Item]:
        """The items of one answer."""
        return self._told(chat)

    async def _told(self, chat: Chat) -> AsyncIterator[Item]:
        try:
            provider, model = self.choose(chat.inbox.body)
            said = _last_said(chat)
            if said is not None:
                yield Said(said, provider)
            async with self._run(chat, said, provider, model) as run:
                async for heard in run:
                    yield heard
        except (StreamnormError, OSError) as problem:
            yield Failed("transport", str(problem))

    def _run(self, chat: Chat, said: str | None, provider: str, model: Model) -> Run:
        def send(conversation: Conversation, tools: list[Tool]) -> Stream:
            return model(conversation, provider)

        loop = ToolLoop(send, self.tools, limit=MOST_TURNS, history=self.history, persist="call")
        return loop.run(said, conversation=chat.id, decisions=chat.inbox.approvals.values())


def _last_said(chat: Chat) -> str | None:
    """What the user said last, or nothing if it is an answer to what was asked."""
    last = chat.conversation.turns[-1] if chat.conversation.turns else None
    if last is not None and last.role == "user" and last.text.strip():
        return last.text
    if chat.inbox.approvals:
        return None
    raise UsageError("say something: the last message is not the user's, or it is empty")


def chosen(
    body: Mapping[str, Any], scripted: Model, live: Mapping[str, Model]
) -> tuple[str, Model]:
    """The wire that a message names, and the model that speaks it."""
    name = body.get("provider")
    wires = scripted_wires()
    if not isinstance(name, str) or name not in wires:
        raise UsageError(f"provider: one of {', '.join(wires)}")
    if body.get("live") is not True:
        return name, scripted
    if name not in live:
        raise UsageError(f"{name} is not live here: start with --live {name}=MODEL")
    return name, live[name]
