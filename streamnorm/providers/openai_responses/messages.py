"""OpenAI Responses, a body read back. See ``encoder`` for what stands in it.

An output may stand anywhere behind its call. Reasoning is refused without the item that it led to. The
service may know turns before these (``previous_response_id``, ``conversation``, a ``prompt``, items that
are only named).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar

import msgspec

from ...encoding.messages import (
    Entry,
    Found,
    Items,
    Named,
    Piece,
    Recall,
    Returned,
    Step,
    ToolSaid,
    blocks_of,
    media_at,
    media_of,
    type_of,
    word,
)
from ...encoding.pairs import UNAVAILABLE
from ...events import ToolCall
from ...text.written import json_text
from ...tools import Grammar, Link, Mode, Tool, ToolChoice
from .encoder import NAMESPACE
from .items import TOOLS, tools_by_type

__all__ = ["MESSAGES", "ResponsesMessages"]

MODES: Mapping[str, Mode] = {"auto": "auto", "none": "none", "required": "required"}
# The item of a call -> that of its result, for calls that the client is to answer.
CLOSED: Mapping[str, Callable[[str | None], Entry]] = {
    "function_call": lambda id: {
        "type": "function_call_output", "call_id": id, "output": UNAVAILABLE,
    },
    "custom_tool_call": lambda id: {
        "type": "custom_tool_call_output", "call_id": id, "output": UNAVAILABLE,
    },
    "local_shell_call": lambda id: {
        "type": "local_shell_call_output", "id": id, "output": UNAVAILABLE,
    },
    "shell_call": lambda id: {
        "type": "shell_call_output", "call_id": id,
        "output": [{"stdout": "", "stderr": UNAVAILABLE, "outcome": {"type": "exit", "exit_code": 1}}],
    },
    "apply_patch_call": lambda id: {
        "type": "apply_patch_call_output", "call_id": id, "status": "failed", "output": UNAVAILABLE,
    },
}  # fmt: skip
# This one can only be answered with a picture of the screen, which nobody has.
COMPUTER = "computer_call"
# Types of items that other providers have, too.
SHARED = {"function_call", "file_search_call"}
CALLS = {*CLOSED, COMPUTER}
ACKNOWLEDGED = "acknowledged_safety_checks"
# Results of calls that others than the client may answer, too: they are read, and not repaired.
APPROVED, SEARCHED = "mcp_approval_response", "tool_search_output"


REFERENCE = "item_reference"
# Fields by which a request goes on from what only the service has.
PAST = ("previous_response_id", "conversation", "prompt")


class ResponsesMessages(Items):
    """The input of one request."""

    unique = True
    is_usual = True
    beside = ("instructions", "tools", "tool_choice", "parallel_tool_calls")
    tools_at, choice_at = "tools", "tool_choice"
    known = frozenset(
        {"type", "role", "content", "text", "image_url", "file_url", "filename", "call_id", "output",
         "approval_request_id", "approve", "reason", "acknowledged_safety_checks"}
    )  # fmt: skip
    opaque = frozenset({"file_data", "tools", "execution", "caller"})
    usual: ClassVar[Mapping[str, Any]] = {"detail": "auto", "status": "completed"}
    TYPES: ClassVar[frozenset[str]] = frozenset({"message", "reasoning", *tools_by_type(TOOLS)})

    def is_own(self, entry: Entry) -> bool:
        kind = type_of(entry)
        if kind in SHARED:  # told apart by fields that the others' lack
            return "call_id" in entry or "status" in entry
        return kind in self.TYPES

    def has_past(self, body: Any) -> bool:
        return isinstance(body, dict) and (
            any(body.get(field) for field in PAST) or any(map(_is_reference, _input_of(body)))
        )

    def recalled(self, body: Entry, recall: Recall) -> Entry:
        said = _input_of(body)
        if not any(map(_is_reference, said)):
            return body
        known = [(recall(entry["id"]) if _is_reference(entry) else None) or entry for entry in said]
        return {**body, "input": known}

    # --- tools ------------------------------------------------------------------------------------

    def declared(self, entry: Entry) -> Iterator[Tool]:
        kind = entry["type"]
        rest = {key: value for key, value in entry.items() if key != "type"}
        if kind == "function":
            yield self.function(rest, "parameters")
        elif kind == "custom":
            yield self._text_tool(rest)
        elif kind == NAMESPACE:
            yield from self._namespace(entry)
        else:
            yield self.hosted(entry)

    def _text_tool(self, said: Entry) -> Tool:
        grammar = None
        match said.get("format"):
            case {"type": "grammar", "syntax": str(syntax), "definition": str(text), **rest}:
                grammar = None if rest else Grammar(syntax, text)
        known = {"name", "description", *(["format"] if grammar else [])}
        extra = {key: value for key, value in said.items() if key not in known}
        name, description = said["name"], said.get("description") or ""
        return Tool.of_text(name, description, grammar, extra={self.provider: extra})

    def _namespace(self, said: Entry) -> Iterator[Tool]:
        """Its tools, under names that begin with its own."""
        name, description = said["name"], said.get("description") or ""
        if not isinstance(name, str) or not name or not isinstance(description, str):
            raise TypeError("a namespace has a name")
        for entry in said["tools"]:
            for tool in self.declared(entry):
                yield msgspec.structs.replace(
                    tool, name=_within(name, tool.name), namespace=name,
                    namespace_description=description,
                )  # fmt: skip

    def name_of(self, call: ToolCall) -> str:
        space = call.echo.get(NAMESPACE) if isinstance(call.echo, dict) else None
        return _within(space, call.name)

    def chosen(self, said: Any, body: Entry) -> ToolChoice | None:
        parallel = body.get("parallel_tool_calls") is not False
        if said is None:
            return None if parallel else ToolChoice(parallel=False)
        if isinstance(said, str):
            return ToolChoice(MODES[said], parallel=parallel)
        if said["type"] == "allowed_tools":
            if said["mode"] != "auto":
                raise ValueError("a choice among some that has to be made")
            return ToolChoice("allowed", tuple(map(_name, said["tools"])), parallel)
        return ToolChoice("tool", (_name(said),), parallel)

    # --- calls and results ------------------------------------------------------------------------

    def call(self, block: Entry) -> Named | None:
        kind = type_of(block)
        return (block.get("call_id"), block.get("name") or kind) if kind in CALLS else None

    def result(self, block: Entry) -> Named | None:
        kind = type_of(block)
        if not kind.endswith("_output") or kind.removesuffix("_output") not in CALLS:
            return None
        # The result of a local shell is the one that names its call in ``id``.
        return block.get("call_id") or block.get("id"), None

    def returned(self, block: Entry) -> Returned:
        output = block.get("output")
        if type_of(block) == f"{COMPUTER}_output" and isinstance(output, dict):
            # A picture, and beside it the safety checks that were acknowledged.
            checks = {key: block[key] for key in (ACKNOWLEDGED,) if block.get(key)}
            output = [output, *([{"text": json_text(checks)}] if checks else [])]
        return output, block.get("status") == "failed"

    def closed(self, call: Found) -> Entry:
        return CLOSED[call.block["type"]](call.id)

    def can_close(self, call: Found) -> bool:
        return bool(call.block["type"] != COMPUTER)

    def name_call(self, block: Entry, id: str) -> None:
        block["call_id"] = id

    def name_result(self, block: Entry, id: str) -> None:
        block["call_id"] = id

    def leads(self, item: Entry) -> bool:
        return item.get("type") == "reasoning"

    # --- what was said ----------------------------------------------------------------------------

    def system(self, body: Entry) -> Any:
        return body.get("instructions")

    def read(self, entries: Any) -> Iterator[Step]:
        self._remote = [item.get("call_id") for item in entries if _is_remote(item)]
        return super().read(entries)

    def is_model(self, item: Entry) -> bool:
        kind = type_of(item, "message")
        if kind in ("message", "output_message"):
            return item.get("role") == "assistant"
        if kind == APPROVED or _is_searched(item):
            return False
        return self.result(item) is None or item.get("call_id") in self._remote

    def message(self, entry: Entry, where: str) -> Iterator[Step]:
        if type_of(entry) == APPROVED:
            said = {key: entry[key] for key in ("approve", "reason") if key in entry}
            yield ToolSaid(where, word(entry.get("approval_request_id")), None, said)
        elif _is_searched(entry):
            yield ToolSaid(where, word(entry.get("call_id")), None, entry.get("tools"))
        else:
            yield from super().message(entry, where)

    def piece(self, block: Entry) -> Piece | None:
        if "image_url" in block:
            return media_at(block["image_url"], "image/*")
        if "file_url" in block:
            return Link(block["file_url"], "application/*", block.get("filename"))
        if "file_data" in block:
            return media_of(block["file_data"], block.get("filename"))
        return None

    def told(self, entry: Entry) -> Iterator[Entry]:
        yield from _told(entry["items"])
        yield {"type": "response.completed", "response": {"status": "completed", "output": []}}

    def answered(self, answer: Entry) -> Iterator[Entry]:
        yield {"type": "response.created", "response": {**answer, "output": []}}
        yield from _told(blocks_of(answer, "output"))
        yield {"type": f"response.{answer.get('status')}", "response": answer}


def _told(items: list[Entry]) -> Iterator[Entry]:
    for index, item in enumerate(map(_item, items)):
        yield {"type": "response.output_item.added", "output_index": index, "item": item}
        for annotation in _annotations(item):
            kind = "response.output_text.annotation.added"
            yield {"type": kind, "output_index": index, "annotation": annotation}
        yield {"type": "response.output_item.done", "output_index": index, "item": item}


def _name(said: Entry) -> str:
    """Of a tool that is chosen; one that the provider runs is chosen by its type. Which of several
    of a type is meant is for this wire alone."""
    if not said.keys() <= {"type", "name", NAMESPACE}:
        raise ValueError("a choice that only this wire has")
    name = said.get("name") or said["type"]
    if not isinstance(name, str):
        raise TypeError("a name is a text")
    return _within(said.get(NAMESPACE), name)


def _within(space: Any, name: str) -> str:
    """The name by which a tool of a namespace is known here."""
    return f"{space}__{name}" if isinstance(space, str) and space else name


def _is_remote(item: Any) -> bool:
    """A call of a shell that the provider runs: its output is no result of the client's."""
    environment = item.get("environment") if isinstance(item, dict) else None
    return isinstance(environment, dict) and environment.get("type") == "container_reference"


def _input_of(body: Entry) -> list[Any]:
    said = body.get("input")
    return said if isinstance(said, list) else []


def _is_reference(entry: Any) -> bool:
    """An item that is only named: its type may be left out."""
    return (
        isinstance(entry, dict)
        and entry.get("type") in (REFERENCE, None)
        and entry.keys() <= {"type", "id"}
        and isinstance(entry.get("id"), str)
    )


def _annotations(item: Entry) -> list[Entry]:
    contents = blocks_of(item, "content")
    return [annotation for said in contents for annotation in blocks_of(said, "annotations")]


def _is_searched(item: Entry) -> bool:
    return type_of(item) == SEARCHED and item.get("execution") == "client"


def _item(entry: Entry) -> Entry:
    """An item as the model would have said it; people write assistant messages in short."""
    if entry.get("type", "message") != "message":
        return entry
    content = entry.get("content")
    if isinstance(content, str):
        content = [{"type": "output_text", "text": content, "annotations": []}]
    return {**entry, "type": "message", "content": content}


MESSAGES = ResponsesMessages
