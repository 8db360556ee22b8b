"""Messages come in; a run of the tool loop goes on by itself, and its log is what readers hear.

Rule: a run belongs to the conversation, not to the connection. It ends when the model is done, when
it fails or when somebody says stop; a reader that goes away changes nothing. Only whole calls are
run, those that need it only when a person agreed, and every call gets a result, so that the
conversation can go on whatever happened.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Any

from ..conversation import Conversation, Turn
from ..errors import StreamnormError
from ..events import Event, Failed, ToolCall, event_to_json
from ..handlers import ClientTool
from ..stream import Stream
from ..tools import ToolResult
from .answers import safe_json
from .log import Log

__all__ = ["Chat", "Chats", "Model"]

Model = Callable[[Conversation, str], Stream]

MOST_CHATS = 64
MOST_TURNS = 8
STOPPED = "not run: the person stopped the conversation"
UNSEEN = "not run: the stream failed"
DENIED = "not run: the person did not agree"


class Chat:
    """One conversation: its log, the run under way, the answers it waits for."""

    def __init__(self, tools: Iterable[ClientTool], ask: Callable[[str], bool]) -> None:
        self.log = Log()
        self.conversation = Conversation()
        self.stopping = False
        self._tools = {tool.name: tool for tool in tools}
        self._ask = ask
        self._stream: Stream | None = None
        self._waiting: dict[str, asyncio.Future[bool]] = {}
        self._task: asyncio.Task[None] | None = None

    # --- what a person does -----------------------------------------------------------------------

    def start(self, text: str, provider: str, model: Model) -> None:
        """The person says something; the run begins."""
        self.stopping = False
        self.conversation.user(text)
        self.log.begin()
        self._tell("user", text=text, provider=provider)
        self._task = asyncio.create_task(self._run(provider, model))

    async def stop(self) -> bool:
        """End the run as stopped. False: there was none."""
        if not self.log.live:
            return False
        self.stopping = True
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_result(False)
        if self._stream is not None:
            await self._stream.aclose()
        return True

    def decide(self, call_id: str, approved: bool) -> bool:
        """Answer an approval. False: nobody asked, or it was answered before."""
        waiting = self._waiting.get(call_id)
        if waiting is None or waiting.done():
            return False
        waiting.set_result(approved)
        return True

    # --- the run ----------------------------------------------------------------------------------

    async def _run(self, provider: str, model: Model) -> None:
        reason, error = "failed", "the server made a mistake; its log says more"
        try:
            reason, error = await self._turns(provider, model), ""
        except (StreamnormError, OSError) as problem:
            error = str(problem)
        finally:
            self._tell("run_end", reason=reason, error=error)
            self.log.end()

    async def _turns(self, provider: str, model: Model) -> str:
        for _ in range(MOST_TURNS):
            turn, failed = await self._listen(model(self.conversation, provider))
            calls = [call for call in turn.calls if call.runs_on == "client"]
            if turn.parts:
                self.conversation.assistant(turn)
            if calls:
                settled = await asyncio.gather(*(self._settle(call, failed) for call in calls))
                self.conversation.results(settled)
            if self.stopping:
                return "stopped"
            if failed:
                return "failed"
            if not calls:
                return "done"
        return "limit"

    async def _listen(self, stream: Stream) -> tuple[Turn, bool]:
        """Hear one answer to its end; everything heard is in the log first."""
        events: list[Event] = []
        self._stream = stream
        try:
            async for event in stream:
                events.append(event)
                self.log.append(safe_json(event_to_json(event)))
        finally:
            self._stream = None
            await stream.aclose()
        return Turn.from_events(events), not events or isinstance(events[-1], Failed)

    async def _settle(self, call: ToolCall, failed: bool) -> ToolResult:
        """A result for the call, whatever happens."""
        if failed or self.stopping:
            return self._result(call, STOPPED if self.stopping else UNSEEN, is_error=True)
        tool = self._tools.get(call.name)
        if tool is None:
            return self._result(call, f"there is no tool {call.name!r}", is_error=True)
        if self._ask(call.name) and not await self._approved(call):
            return self._result(call, STOPPED if self.stopping else DENIED, is_error=True)
        try:
            output = tool.handler(call.arguments)
        except (TypeError, ValueError) as error:
            return self._result(call, str(error), is_error=True)
        return self._result(call, output, is_error=False)

    async def _approved(self, call: ToolCall) -> bool:
        waiting = self._waiting[call.id] = asyncio.get_running_loop().create_future()
        self._tell("approval_request", id=call.id, name=call.name, arguments=call.arguments)
        try:
            approved = await waiting
        finally:
            del self._waiting[call.id]
        self._tell("approval", id=call.id, approved=approved)
        return approved

    def _result(self, call: ToolCall, output: Any, *, is_error: bool) -> ToolResult:
        self._tell("tool_output", id=call.id, name=call.name, output=output, is_error=is_error)
        return ToolResult.for_call(call, output, is_error=is_error)

    def _tell(self, kind: str, **facts: Any) -> None:
        self.log.append(safe_json(json.dumps({"kind": kind, **facts}).encode()))


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
        idle = [name for name, other in self._chats.items() if not other.log.live and name != chat_id]
        for name in idle[: max(0, len(self._chats) - MOST_CHATS)]:
            del self._chats[name]
        return chat

    async def close(self) -> None:
        """End all runs: the server goes away."""
        for chat in self._chats.values():
            if await chat.stop():
                logging.getLogger("streamnorm").info("a conversation was stopped with the server")
