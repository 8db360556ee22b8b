"""Messages come in; a run of the tool loop goes on by itself, and its log is what readers hear.

Rule: a run belongs to the conversation, not to the connection. It ends when the model is done, when
it fails or when somebody says stop; a reader that goes away changes nothing. The loop is the
library's own ``ToolLoop``: only whole calls are run, and here some of them only when a person agreed.

The entries of a log are the events as ``event_to_json`` writes them, and, told apart by ``kind``::

    user                {text, provider}              what the person said, and on which wire
    approval            {id, name, arguments}         may this call run?
    approval_answer     {id, approved}
    client_tool_result  {id, name, output, is_error}  what a tool gave
    end                 {reason, error}               the run is over: done, stopped, failed, limit
"""

from __future__ import annotations

import asyncio
import json
from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Any

from ..conversation import Conversation
from ..errors import StreamnormError
from ..events import Event, ToolCall, event_to_json
from ..handlers import ClientTool
from ..loop import Outcome, ToolLoop
from ..settled import Settled
from ..stream import Stream
from ..tools import Tool
from .answers import safe_json
from .log import Log

__all__ = ["Chat", "Chats", "Model"]

Model = Callable[[Conversation, str], Stream]

MOST_CHATS = 64
MOST_TURNS = 8
DENIED = "the person did not agree"
MISTAKE = "the server made a mistake; its log says more"
REASONS: dict[Outcome, str] = {"finished": "done", "limit": "limit", "stopped": "stopped"}


class Chat:
    """One conversation: its log, the run under way, the answers it waits for."""

    def __init__(self, tools: Iterable[ClientTool], ask: Callable[[str], bool]) -> None:
        self.log = Log()
        self._conversation = Conversation()
        self._tools = tuple(tools)
        self._ask = ask
        self._stopping = False
        self._stream: Stream | None = None
        self._waiting: dict[str, asyncio.Future[bool]] = {}
        self._task: asyncio.Task[None] | None = None

    # --- what a person does -----------------------------------------------------------------------

    def start(self, text: str, provider: str, model: Model) -> None:
        """The person says something; the run begins."""
        self._stopping = False
        self.log.begin()
        self._tell("user", text=text, provider=provider)
        self._task = asyncio.create_task(self._run(text, provider, model))

    async def stop(self) -> bool:
        """End the run as stopped. False: there was none."""
        if not self.log.live or self._task is None:
            return False
        self._stopping = True
        if self._waiting or self._stream is None:
            self._task.cancel()
        else:
            await self._stream.aclose()  # its reader hears what that breaks
        await asyncio.wait([self._task])
        return True

    def decide(self, call_id: str, approved: bool) -> bool:
        """Answer an approval. False: nobody asked, or it was answered before."""
        waiting = self._waiting.get(call_id)
        if waiting is None or waiting.done():
            return False
        waiting.set_result(approved)
        return True

    # --- the run ----------------------------------------------------------------------------------

    async def _run(self, text: str, provider: str, model: Model) -> None:
        reason, error = "failed", MISTAKE
        try:
            reason, error = await self._loop(text, provider, model), ""
        except asyncio.CancelledError:
            reason, error = "stopped", ""
        except (StreamnormError, OSError) as problem:
            error = str(problem)
        finally:
            self._stream = None
            self._tell("end", reason=reason, error=error)
            self.log.end()

    async def _loop(self, text: str, provider: str, model: Model) -> str:
        def send(conversation: Conversation, tools: list[Tool]) -> Stream:
            self._stream = model(conversation, provider)
            return self._stream

        loop = ToolLoop(send, self._tools, limit=MOST_TURNS, approve=self._approved)
        async with loop.run(text, conversation=self._conversation) as run:
            async for heard in run:
                self._keep(heard)
        return "stopped" if self._stopping else REASONS.get(run.outcome, "failed")

    def _keep(self, heard: Event | Settled) -> None:
        if not isinstance(heard, Settled):
            self.log.append(safe_json(event_to_json(heard)))
            return
        result = heard.result()
        facts = {"id": heard.id, "name": heard.name, "is_error": result.is_error}
        self._tell("client_tool_result", **facts, output=result.output)

    async def _approved(self, call: ToolCall) -> bool | str:
        if not self._ask(call.name):
            return True
        waiting = self._waiting[call.id] = asyncio.get_running_loop().create_future()
        self._tell("approval", id=call.id, name=call.name, arguments=call.arguments)
        approved = False
        try:
            approved = await waiting
        finally:
            del self._waiting[call.id]
            self._tell("approval_answer", id=call.id, approved=approved)
        return approved or DENIED

    def _tell(self, kind: str, **facts: Any) -> None:
        self.log.append(safe_json(json.dumps({"kind": kind, **facts}, default=str).encode()))


class Chats:
    """The conversations by id; the oldest idle one goes when there are too many."""

    def __init__(self, tools: Iterable[ClientTool], ask: Callable[[str], bool]) -> None:
        self._tools = tuple(tools)
        self._ask = ask
        self._chats: OrderedDict[str, Chat] = OrderedDict()

    def get(self, chat_id: str) -> Chat | None:
        """The conversation of that id, if there is one."""
        return self._chats.get(chat_id)

    def open(self, chat_id: str) -> Chat:
        """The conversation of that id, new if need be."""
        chat = self._chats.setdefault(chat_id, Chat(self._tools, self._ask))
        self._chats.move_to_end(chat_id)
        idle = [
            name for name, other in self._chats.items() if not other.log.live and name != chat_id
        ]
        for name in idle[: max(0, len(self._chats) - MOST_CHATS)]:
            del self._chats[name]
        return chat

    async def close(self) -> None:
        """End all runs: the server goes away."""
        for chat in list(self._chats.values()):
            await chat.stop()
