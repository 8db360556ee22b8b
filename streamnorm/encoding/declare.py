"""Tools and a choice among them come in; the fields of a request that declare them go out.

Rule: what a wire cannot say of a tool is left out with a row in the report; a choice that it cannot
say is said with fewer tools where that means the same, and refused where it does not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from ..errors import EncodeError
from ..tools import Tool, ToolChoice
from .encoder import Body, Called, Encoder, Entry, Said
from .fields import joined
from .names import Names
from .schemas import Dropped, lowered

__all__ = ["Declared", "declare", "tool_fields"]


class Declared(NamedTuple):
    """Tools in a wire's words, and what could not be said of them."""

    tools: list[Entry]
    dropped: tuple[Dropped, ...] = ()


def declare(encoder: Encoder, names: Names, tools: Sequence[Tool]) -> Declared:
    """The declarations of these tools; those of other providers' own are left out."""
    names.declare(tool.name for tool in tools if not tool.native)
    entries = [entry for tool in tools if (entry := _entry(encoder, names, tool)) is not None]
    return Declared(encoder.tools(entries) if entries else [], tuple(encoder.dropped))


def _entry(encoder: Encoder, names: Names, tool: Tool) -> Entry | None:
    if tool.native:
        native = tool.native.get(encoder.name)
        if native is None:
            encoder.drop(tool.name, "tool", f"it is run by {', '.join(tool.native)} only")
        return None if native is None else encoder.within(tool, native)
    entry = _said(encoder, tool, names.wire(tool.name))
    for provider, extra in tool.extra.items():
        if provider == encoder.name:
            entry = joined(entry, extra)
        else:
            for field in extra:
                encoder.drop(tool.name, field, f"only {provider} knows this field of a tool")
    return encoder.within(tool, entry)


def _said(encoder: Encoder, tool: Tool, name: str) -> Entry:
    if encoder.takes_text(tool):
        return encoder.text_tool(tool, name)
    if tool.text:
        encoder.drop(tool.name, "text", "said as a function that has one text, its input")
    said = tool.as_function
    schema, dropped = lowered(said.schema, encoder.dialect, where=tool.name, strict=said.strict)
    encoder.dropped += dropped
    if said.strict and not encoder.says_strict:
        encoder.drop(tool.name, "strict", "this wire cannot hold a model to a schema")
    return encoder.tool(said, name, schema)


def tool_fields(
    encoder: Encoder,
    names: Names,
    tools: Sequence[Tool],
    choice: ToolChoice | None,
    talk: Sequence[Said] = (),
) -> Body:
    """The fields of a body that declare tools and say what may be called."""
    _check_choice(choice, tools)
    chosen, tools = _narrowed(encoder, choice, tools)
    if encoder.names_history_tools:
        tools = [*tools, *_from_history(encoder, names, tools, talk)]
    declared = declare(encoder, names, tools)
    if chosen is not None and not chosen.parallel and not encoder.says_parallel:
        encoder.drop("tool_choice", "parallel", "this wire cannot ask for one call at a time")
    said = {} if chosen is None else _choice(encoder, chosen, _named(encoder, names, tools))
    return encoder.tool_fields(declared.tools, said)


def _choice(encoder: Encoder, choice: ToolChoice, named: list[tuple[Tool, str]]) -> Body:
    """The choice in the wire's words. Among tools that it never hears of there is none."""
    known = tuple(tool.name for tool, _ in named if tool.name in choice.names)
    if not named or (choice.names and not known):
        encoder.drop("tool_choice", choice.mode, "this wire hears of no such tool")
        return {}
    try:
        return encoder.choice(msgspec.structs.replace(choice, names=known), named)
    except EncodeError as error:
        if encoder.options.unsaid == "raise":
            raise
        encoder.drop("tool_choice", choice.mode, str(error))
        return {}


def _named(encoder: Encoder, names: Names, tools: Sequence[Tool]) -> list[tuple[Tool, str]]:
    """The tools that this wire hears of, with their names there."""
    return [
        (tool, tool.name if tool.native else names.wire(tool.name))
        for tool in tools
        if not tool.native or encoder.name in tool.native
    ]


def _check_choice(choice: ToolChoice | None, tools: Sequence[Tool]) -> None:
    if choice is None:
        return
    if choice.mode in ("tool", "allowed") and not choice.names:
        raise EncodeError(f'the choice {choice.mode!r} names no tool; pass names=("…",)')
    unknown = set(choice.names) - {tool.name for tool in tools}
    if unknown:
        raise EncodeError(
            f"the choice names {sorted(unknown)}, which are not among the tools of this request; "
            "declare them, or choose among those that are"
        )
    if choice.mode in ("tool", "required") and not tools:
        raise EncodeError("a call is required, but there are no tools; pass tools=[…]")


def _narrowed(
    encoder: Encoder, choice: ToolChoice | None, tools: Sequence[Tool]
) -> tuple[ToolChoice | None, Sequence[Tool]]:
    """Where a wire cannot name some of the tools: declare only those. It means the same."""
    if choice is None or choice.mode not in encoder.narrowed:
        return choice, tools
    mode = encoder.narrowed[choice.mode]
    if mode == "nothing":
        encoder.drop("tool_choice", choice.mode, "said by declaring no tool")
        return None, ()
    encoder.drop("tool_choice", choice.mode, f"said by declaring only {', '.join(choice.names)}")
    said = ToolChoice(mode, parallel=choice.parallel)  # type: ignore[arg-type]
    return said, [tool for tool in tools if tool.name in choice.names]


def _from_history(
    encoder: Encoder, names: Names, tools: Sequence[Tool], talk: Sequence[Said]
) -> list[Tool]:
    """Tools that were called and are no longer declared, on a wire that wants to know them."""
    declared = {names.wire(tool.name) for tool in tools if not tool.native}
    called = {
        part.name: part
        for said in talk
        for part in said.parts
        if isinstance(part, Called) and part.call.runs_on == "client"
    }
    gone = [name for name in called if name not in declared]
    for name in gone:
        encoder.drop(name, "tool", "called before, so it is declared although it was not passed")
    return [Tool(names.original(name)) for name in gone]
