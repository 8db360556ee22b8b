"""What a person says comes in; runs of the tool loop go out, as a loop for ``streamnorm.ui.router``.

The router and its log do the rest: who hears what, who comes back after which entry, who stops it.

Rule: the loop is the library's own ``ToolLoop``. Only whole calls are run, and here some of them only
when a person agreed: the question is told like everything else, and the run waits for its answer.
The conversation is in a history, so that a server that was started again knows what was said.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from ..agent.client_tools import ClientTool
from ..agent.loop import ToolLoop
from ..conversation import Conversation
from ..edge.stream import Stream
from ..errors import StreamnormError, UsageError
from ..events import Failed, ToolCall
from ..fold import Approval, Denied, Said
from ..history.base import History
from ..history.sqlite import MemoryHistory, SQLiteHistory
from ..tools import Tool
from ..ui import Item
from ..ui.log import EventLog, MemoryLog, SQLiteLog
from ..ui.router import Chat
from .takes import scripted_wires

__all__ = ["ME", "Chats", "Choose", "Model", "Talk", "chosen"]

Model = Callable[[Conversation, str], Stream]
Choose = Callable[[Mapping[str, Any]], tuple[str, Model]]

ME = "local"  # the server listens on one machine, for whoever sits there
MOST_TURNS = 8
DENIED = "the person did not agree"
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
            if not await self.log.streams(owner=ME, chat=name):
                await self.history.delete(name)

    async def aclose(self) -> None:
        await self.log.aclose()
        await self.history.aclose()


class Talk:
    """The loop behind the router: one run for each thing that a person says."""

    def __init__(
        self,
        choose: Choose,
        tools: Iterable[ClientTool],
        ask: Callable[[str], bool],
        history: History,
    ) -> None:
        self.choose, self.tools, self.ask, self.history = choose, tuple(tools), ask, history
        self._waiting: dict[tuple[str, str], asyncio.Future[bool]] = {}

    def __call__(self, chat: Chat) -> _Answer:
        """The items of one answer."""
        return _Answer(self, chat)

    async def agreed(self, chat: str, call: ToolCall) -> bool:
        """Wait for a person's word about a call."""
        waiting: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waiting[chat, call.id] = waiting
        try:
            return await waiting
        finally:
            del self._waiting[chat, call.id]

    def decide(self, chat: str, call: str, approved: bool) -> bool:
        """That word. False: nobody asked, or it was answered before."""
        waiting = self._waiting.get((chat, call))
        if waiting is None or waiting.done():
            return False
        waiting.set_result(approved)
        return True


class _Answer:
    """The items of one run: its events, and the questions that it asks in the meantime.

    A run that waits for an answer tells nothing, so it is read by a task of its own.
    """

    def __init__(self, talk: Talk, chat: Chat) -> None:
        self._talk, self._chat = talk, chat
        self._items: asyncio.Queue[Item | None] = asyncio.Queue(maxsize=1)
        self._task: asyncio.Task[None] | None = None

    def __aiter__(self) -> _Answer:
        return self

    async def __anext__(self) -> Item:
        if self._task is None:
            self._task = asyncio.create_task(self._told())
        item = await self._items.get()
        if item is None:
            await self._task  # raises what went wrong
            raise StopAsyncIteration
        return item

    async def aclose(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _told(self) -> None:
        try:
            await self._run()
        except (StreamnormError, OSError) as problem:
            await self._items.put(Failed("transport", str(problem)))
        except Exception:
            await self._items.put(None)
            raise
        await self._items.put(None)

    async def _run(self) -> None:
        said = _last_said(self._chat.conversation)
        provider, model = self._talk.choose(self._chat.inbox.body)
        await self._items.put(Said(said, provider))

        def send(conversation: Conversation, tools: list[Tool]) -> Stream:
            return model(conversation, provider)

        loop = ToolLoop(
            send, self._talk.tools, limit=MOST_TURNS, approve=self._approved,
            history=self._talk.history, persist="call",
        )  # fmt: skip
        async with loop.run(said, conversation=self._chat.id) as run:
            async for heard in run:
                await self._items.put(heard)

    async def _approved(self, call: ToolCall) -> bool | str:
        if not self._talk.ask(call.name):
            return True
        await self._items.put(Approval(call.id, call))
        if await self._talk.agreed(self._chat.id, call):
            return True
        await self._items.put(Denied(call, DENIED))
        return DENIED


def _last_said(conversation: Conversation) -> str:
    last = conversation.turns[-1] if conversation.turns else None
    if last is None or last.role != "user" or not last.text.strip():
        raise UsageError("say something: the last message is not the user's, or it is empty")
    return last.text


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
