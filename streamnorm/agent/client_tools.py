"""Functions come in; tools with handlers go out, which the loop can declare and run.

Rule: a handler gets the arguments as one object and returns a value or raises. What it may know of
the call it serves it asks ``running()``: a key that is the same when the call is run again after a
crash, so that a tool with effects can tell a second time from the first.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import msgspec

from ..errors import UsageError
from ..events import ToolCall
from ..history.settled import Results, fresh
from ..tools import Tool, arguments_of
from .checking import Convert, Unfit, by_schema, by_type

__all__ = ["ClientTool", "Given", "Running", "Stop", "declared", "own", "running", "serving"]

Handler: TypeAlias = Callable[[dict[str, Any]], Any]
Inline: TypeAlias = bool | Callable[[Results], bool]
Consent: TypeAlias = bool | Callable[[ToolCall], bool | str]


@dataclass(frozen=True, slots=True)
class Running:
    """The call that a handler serves. ``key`` names it for ever: same run, same call, same key."""

    call: ToolCall
    conversation: str
    run: str

    @property
    def key(self) -> str:
        return f"{self.run}/{self.call.id}"


_running: ContextVar[Running | None] = ContextVar("streamnorm_running", default=None)


def own(call: ToolCall) -> ToolCall:
    """The same call with arguments of its own, for somebody who may change them."""
    return msgspec.structs.replace(call, arguments=fresh(call.arguments))


@contextmanager
def serving(current: Running) -> Iterator[None]:
    """Inside it, ``running()`` is this call."""
    token = _running.set(current)
    try:
        yield
    finally:
        _running.reset(token)


def running() -> Running:
    """Inside a handler: the call that it serves.

    ::

        def pay(amount: int) -> str:
            return bank.transfer(amount, idempotency_key=running().key)
    """
    current = _running.get()
    if current is None:
        raise UsageError("running() is for handlers: no tool is running here")
    return current


@dataclass(frozen=True, slots=True)
class Stop:
    """ "And stop": what a handler returns, or ``approve`` says, to end the run with what is done.

    ::

        def submit(answer: str) -> Stop:
            return Stop({"received": answer})
    """

    value: Any = None


@dataclass(frozen=True, slots=True)
class ClientTool:
    """A tool and the handler that serves it.

    ``inline`` says whether the model sees the content of the result (True) or a handle that it reads
    through the artifact tools; or it is a function of the results that decides. ``convert`` makes what
    the handler gets of the arguments, or raises; if there is none, a loop checks them by the schema.
    ``consent`` says that a person must agree before a call is run: True, or a function of the call
    that says True, False, or what is to be agreed to. It depends on the call alone, as it is asked
    again when a run goes on; what is not False asks.

    >>> def add(a: int, b: int = 1) -> int:
    ...     "Add two numbers."
    ...     return a + b
    >>> ClientTool.from_function(add).handler({"a": 2})
    3
    """

    tool: Tool
    handler: Handler
    inline: Inline = True
    is_async: bool = False
    is_artifact_tool: bool = False
    convert: Convert | None = None
    consent: Consent = False

    @classmethod
    def from_function(
        cls,
        function: Callable[..., Any],
        *,
        name: str | None = None,
        inline: Inline = True,
        consent: Consent = False,
    ) -> ClientTool:
        """A tool made of a typed function, sync or async; arguments are converted to its types."""
        tool = Tool.from_function(function, name=name)
        kind = arguments_of(function)
        known, typed = kind.__struct_fields__, by_type(kind)

        def convert(arguments: dict[str, Any]) -> dict[str, Any]:
            if unknown := [name for name in arguments if name not in known]:
                raise Unfit(f"there is no `{unknown[0]}`, only {', '.join(known) or 'nothing'}")
            fitted = typed(arguments)
            return {name: getattr(fitted, name) for name in arguments}  # its defaults are its own

        def handler(arguments: dict[str, Any]) -> Any:
            return function(**arguments)

        is_async = _is_async(function)
        return cls(tool, handler, inline, is_async, convert=convert, consent=consent)

    @classmethod
    def from_model(
        cls,
        model: type,
        handler: Callable[[Any], Any],
        *,
        name: str | None = None,
        inline: Inline = True,
        consent: Consent = False,
    ) -> ClientTool:
        """A tool whose handler gets a struct, a dataclass or a pydantic model made of the arguments."""
        tool = Tool.from_model(model, name=name)
        is_async, convert = _is_async(handler), by_type(model)
        return cls(tool, handler, inline, is_async, convert=convert, consent=consent)

    @property
    def name(self) -> str:
        return self.tool.name

    def asks(self, call: ToolCall) -> str | None:
        """What a person must agree to before this call is run, or ""; None: nobody need be asked.

        >>> pay = ClientTool(Tool("pay"), print, consent=lambda call: call.arguments["euro"] > 9)
        >>> pay.asks(ToolCall(0, "c", "pay", {"euro": 5}, "")) is None
        True
        """
        said = self.consent(own(call)) if callable(self.consent) else self.consent
        return None if said is False else said if isinstance(said, str) else ""


Given: TypeAlias = ClientTool | Tool | tuple[Tool | type, Callable[..., Any]] | Callable[..., Any]


def declared(given: Iterable[Given]) -> tuple[list[Tool], dict[str, ClientTool]]:
    """All declarations, and the handlers by name; a bare ``Tool`` has none (the provider runs it)."""
    declarations: list[Tool] = []
    handlers: dict[str, ClientTool] = {}
    if not isinstance(given, Iterable) or isinstance(given, str | Mapping):
        raise UsageError(f"tools is a list of tools, not {type(given).__name__}")
    for item in given:
        made = item if isinstance(item, Tool) else _client_tool(item)
        tool = made if isinstance(made, Tool) else made.tool
        if any(tool.name == other.name for other in declarations):
            raise UsageError(f"two tools are named {tool.name!r}")
        declarations.append(tool)
        if isinstance(made, ClientTool):
            handlers[tool.name] = made
    return declarations, handlers


def _client_tool(item: Any) -> ClientTool:
    if isinstance(item, tuple) and len(item) == 2 and isinstance(item[0], Tool | type):
        item = _paired(*item)
    if isinstance(item, ClientTool):
        is_checked = item.convert is not None or item.is_artifact_tool
        return item if is_checked else replace(item, convert=by_schema(item.tool))
    if callable(item) and not isinstance(item, type):
        return ClientTool.from_function(item)
    raise UsageError(
        "a tool is a function, a Tool, (Tool, handler), (Model, handler) or a ClientTool, not "
        f"{item.__name__ if isinstance(item, type) else type(item).__name__}"
    )


def _paired(declared: Tool | type, handler: Any) -> ClientTool:
    if not callable(handler):
        name = declared.name if isinstance(declared, Tool) else declared.__name__
        raise UsageError(f"the handler of {name!r} is no function: {handler!r}")
    if isinstance(declared, Tool):
        return ClientTool(declared, handler, is_async=_is_async(handler))
    return ClientTool.from_model(declared, handler)


def _is_async(function: Any) -> bool:
    function = getattr(function, "func", function)  # of a partial
    call = getattr(function, "__call__", None)  # noqa: B004  (an object with an async __call__)
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(call)
