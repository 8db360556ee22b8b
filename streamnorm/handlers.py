"""Functions come in; tools with handlers go out, which the loop can declare and run.

Rule: a handler gets the arguments as one object and returns a value or raises. What it may know of
the call it serves it asks ``running()``: a key that is the same when the call is run again after a
crash, so that a tool with effects can tell a second time from the first.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, TypeAlias, get_type_hints

import msgspec

from .errors import UsageError
from .events import ToolCall
from .settled import Results
from .tools import Tool

__all__ = ["ClientTool", "Running", "running"]

Handler: TypeAlias = Callable[[dict[str, Any]], Any]
Inline: TypeAlias = bool | Callable[[Results], bool]


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
class ClientTool:
    """A tool and the handler that serves it.

    ``inline`` says whether the model sees the content of the result (True) or a handle that it reads
    through the artifact tools; or it is a function of the results that decides.

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

    @classmethod
    def from_function(
        cls, function: Callable[..., Any], *, name: str | None = None, inline: Inline = True
    ) -> ClientTool:
        """A tool made of a typed function, sync or async; arguments are converted to its types."""
        tool = Tool.from_function(function, name=name)
        return cls(tool, _by_name(function), inline, _is_async(function))

    @property
    def name(self) -> str:
        return self.tool.name


Given: TypeAlias = ClientTool | Tool | tuple[Tool, Callable[..., Any]] | Callable[..., Any]


def declared(given: Iterable[Given]) -> tuple[list[Tool], dict[str, ClientTool]]:
    """All declarations, and the handlers by name; a bare ``Tool`` has none (the provider runs it)."""
    declarations: list[Tool] = []
    handlers: dict[str, ClientTool] = {}
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
    if isinstance(item, ClientTool):
        return item
    if isinstance(item, tuple) and len(item) == 2 and isinstance(item[0], Tool):
        return ClientTool(item[0], item[1], is_async=_is_async(item[1]))
    if callable(item):
        return ClientTool.from_function(item)
    raise UsageError(
        f"a tool is a function, a Tool, (Tool, handler) or a ClientTool, not {type(item).__name__}"
    )


def _by_name(function: Callable[..., Any]) -> Handler:
    kinds = get_type_hints(function, include_extras=True)
    known = set(inspect.signature(function).parameters)

    def handler(arguments: dict[str, Any]) -> Any:
        if unknown := sorted(set(arguments) - known):
            raise TypeError(f"no argument named {', '.join(unknown)}; there are {sorted(known)}")
        return function(
            **{name: msgspec.convert(v, kinds.get(name, Any)) for name, v in arguments.items()}
        )

    return handler


def _is_async(function: Callable[..., Any]) -> bool:
    call = getattr(function, "__call__", None)  # noqa: B004  (an object with an async __call__)
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(call)
