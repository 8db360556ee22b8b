"""A model, tools and a history come in; a loop goes out that can be run any number of times.

    loop = ToolLoop(send, [read_file, grep], history=SQLiteHistory("chat.db"))
    async with loop.run("Why is the build red?", conversation="build-17") as run:
        async for event in run: ...

Rule: a loop never changes; what happens is in its runs, which know nothing of each other. It is the
library used as it is meant to be, and no more: to do something else, copy ``Run``.
"""

from __future__ import annotations

import uuid
import warnings
from collections.abc import Callable, Iterable

from ..conversation import Conversation, Turn
from ..encoding.pairs import ORPHANS, Orphans
from ..errors import UsageError
from ..fold import Decision
from ..history.base import History
from ..history.spool import Spool
from .artifacts import FORGED
from .circles import LoopGuard
from .client_tools import Given, declared
from .outgoing import Send
from .persist import (
    HistoryWarning,
    OnConflict,
    PersistEachCall,
    ServiceIds,
    lets_go,
    persists_each_call,
)
from .run import Run, Said
from .setup import CONCURRENCY, LIMIT, NOTHING_TO_TAKE_UP, TIMEOUT, Approve, Persist, Setup, Until

__all__ = ["ToolLoop"]


class ToolLoop:
    """Asks the model, runs the tools it calls, and asks again until it stops calling.

    ``send(outgoing, tools)`` posts the conversation and returns its ``Stream`` (or an awaitable of
    one). ``tools``: functions, ``ClientTool``, ``(Tool, handler)``, or a bare ``Tool`` that the
    provider runs.

    ``history`` and ``persist``: ``"run"`` stores all of a run when it has ended, or nothing;
    ``"call"`` after each call of the model. ``trim`` leaves out results at the end of a run that
    were never sent. ``as_is`` says that ``send`` is a stack of your own, to be left as it is.

    Calls of a tool with ``consent`` pause the run until a person has decided; see ``run``.
    ``approve(call)`` is what the program says, asked before each call: True, or False, or why not.
    ``until(record)`` is asked after each call that was run: True ends the run with what is done, as
    ``Stop`` does where a handler returns it, and ``run.stop()``. ``guard`` watches for circles,
    ``limit`` counts calls of the model, ``orphans`` says what becomes of calls without a result (see
    ``streamnorm.repair``). ``service_id(turn)`` finds the name under which the service keeps the
    conversation itself; ``on_conflict`` what to do if the history keeps it, too.
    """

    def __init__(
        self,
        send: Send,
        tools: Iterable[Given] = (),
        *,
        history: History | None = None,
        persist: Persist = "run",
        as_is: bool = False,
        trim: bool = False,
        system: str | None = None,
        limit: int = LIMIT,
        concurrency: int = CONCURRENCY,
        timeout: float | None = TIMEOUT,
        approve: Approve | None = None,
        until: Until | None = None,
        guard: LoopGuard | None = None,
        spool: Spool | None = None,
        orphans: Orphans = ORPHANS,
        service_id: Callable[[Turn], str | None] | None = None,
        on_conflict: OnConflict = "raise",
    ) -> None:
        if not callable(send):
            raise UsageError(f"send is a function of a conversation and tools, not {send!r}")
        if persist not in ("run", "call"):
            raise UsageError(f'persist is "run" or "call", not {persist!r}')
        service_ids = ServiceIds(service_id, on_conflict)
        stack = _stack(send, history, service_ids, persist, as_is)
        tools, handlers = declared(tools)
        if taken := [tool.name for tool in tools if tool.name in FORGED]:
            raise UsageError(
                f"a tool cannot be named {taken[0]!r}: the loop makes one of that name itself, to read "
                "results that are not shown; choose another name"
            )
        self.history, self.guard = history, guard
        self.setup = Setup(
            stack, tools, handlers, history, persist, trim, system, limit, concurrency, timeout,
            approve, until, guard, spool or Spool(), orphans, service_ids,
        )  # fmt: skip
        is_alone = history is not None and (service_ids.are_alone or lets_go(stack))
        if is_alone and self.asks:
            raise UsageError(NOTHING_TO_TAKE_UP)

    @property
    def asks(self) -> bool:
        """Is there a tool that needs a person's consent?"""
        return self.setup.asks

    def run(
        self,
        said: Said = None,
        *,
        conversation: str | Conversation | None = None,
        run: str | None = None,
        decisions: Iterable[Decision] = (),
    ) -> Run:
        """The user says something; or nothing, to go on where a conversation stopped.

        ``decisions`` are people's answers to what a run before this one asked (``Approval``). What is
        allowed is run, once; what is denied is answered so; what is not decided on waits.

        ``conversation`` is its id in the history, or a ``Conversation`` of yours, which then grows.
        ``run`` names this run; the same name again stores nothing twice.
        """
        if isinstance(conversation, Conversation) and self.history is not None:
            raise UsageError("with a history a conversation is named by its id")
        if not isinstance(run, str | None):
            raise UsageError(f"a run is named by a text, not {type(run).__name__}")
        if not isinstance(decisions, Iterable):
            raise UsageError(f"decisions is a list of Decision, not {type(decisions).__name__}")
        return Run(self.setup, said, conversation, run or uuid.uuid4().hex, decisions)


def _stack(
    send: Send, history: History | None, service_ids: ServiceIds, persist: Persist, as_is: bool
) -> Send:
    """Who persists, by whose stack it is and when it is to be done: see ``docs/history.md``."""
    if history is None or persist == "run":
        return send
    if not as_is:
        return PersistEachCall(send, history, service_ids=service_ids)
    if not persists_each_call(send):
        warnings.warn(
            "persist='call' with as_is=True leaves persistence to your own stack, and there is "
            "no PersistEachCall in it: nothing is stored unless you do it",
            HistoryWarning, stacklevel=3,
        )  # fmt: skip
    if service_ids.are_told:
        warnings.warn(
            "persist='call' with as_is=True leaves the service's name to your own stack: pass "
            "service_id and on_conflict to its PersistEachCall, not to the loop",
            HistoryWarning, stacklevel=3,
        )  # fmt: skip
    return send
