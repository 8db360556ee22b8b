"""The tool items of Responses: one row per type, and how an item says its input, id and output.

An item comes in as a plain dict and its exact JSON text; the text of a call's arguments, its id, its
name, its result and what must go back with it come out. Rule: a type is a row, not a branch, and an
input that stands in another field than usual is found, never told as empty.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec
from msgspec import Raw

from ...core.calls import Kind
from ...core.media import Shown
from ...core.parser import first_text
from ...core.row import Item
from ...events import Echo, IdSource, RunsOn
from ...text.halves import decoded

__all__ = [
    "CALL_ID", "FAILED", "ITEM_ID", "OPAQUE", "PICTURES", "TOOLS", "Tool", "echo_of", "has_failed", "id_of",
    "identity_of", "input_of", "is_error", "is_illegible", "is_made_of_nothing", "kind_of", "name_of",
    "output_of", "picture_of", "says_none", "tools_by_type",
]  # fmt: skip

# --- the types of tool items --------------------------------------------------------------------


class Tool(NamedTuple):
    """One type of item that calls a tool or brings a tool's output.

    ``said``: how it says its arguments, a form and the fields it needs:
    ``text`` JSON text · ``object`` an object · ``one of`` the first object there is · ``fields`` an
    object made of those fields · ``code`` / ``input`` plain text.
    ``ids``: fields that identify it, best first, with what kind of id that makes.
    ``output``: the fields its result is in (a hybrid brings call and result at once).
    """

    type: str
    family: str
    role: str
    runs_on: RunsOn
    ids: tuple[tuple[str, IdSource], ...]
    said: tuple[str, ...] = ()
    output: tuple[str, ...] = ()
    name: str = ""  # of tools that have no name of their own
    name_field: str = "name"
    note: str = ""
    usually: tuple[str, str] | None = None  # its id, where the first of ``ids`` may be missing

    @property
    def is_nullable(self) -> bool:
        """May its first id be null?"""
        return self.usually == _OPTIONAL

    @property
    def kind(self) -> Kind:
        key = self.said[0] if self.said[0] in ("code", "input") else None
        return Kind(self.family, self.runs_on, key)

    @property
    def item(self) -> Item:
        field, source = self.usually or self.ids[0]
        ref = field if "output" in self.role and self.role != "call+output" else ""
        return Item(self.type, self.family, self.role, self.runs_on, source, field,
                    " ".join(self.said), ref, self.note)  # fmt: skip


CALL_ID: tuple[tuple[str, IdSource], ...] = (("call_id", "natural"), ("id", "conflated"))
ITEM_ID: tuple[tuple[str, IdSource], ...] = (("id", "conflated"),)
_OPTIONAL = ("call_id", "nullable")
_JSON = ("text", "arguments")
TOOLS = (
    Tool("function_call", "function", "call", "client", CALL_ID, _JSON),
    Tool("function_call_output", "function", "output", "client", CALL_ID, output=("output",),
         usually=_OPTIONAL),
    Tool("custom_tool_call", "custom", "call", "client", CALL_ID, ("input", "input")),
    Tool("custom_tool_call_output", "custom", "output", "client", CALL_ID, output=("output",)),
    Tool("computer_call", "computer-use", "call", "client", CALL_ID, ("one of", "action", "actions"),
         name="computer_use"),
    Tool("computer_call_output", "computer-use", "output", "client", CALL_ID, output=("output",)),
    Tool("local_shell_call", "local-shell", "call", "client", CALL_ID, ("object", "action"),
         name="local_shell"),
    Tool("local_shell_call_output", "local-shell", "output", "client", CALL_ID, output=("output",),
         note="its own id is the call's", usually=("id", "conflated")),
    Tool("shell_call", "function-shell", "call", "client", CALL_ID, ("object", "action"), name="shell",
         note="runs where its `environment` says"),
    Tool("shell_call_output", "function-shell", "output", "client", CALL_ID, output=("output",)),
    Tool("apply_patch_call", "apply-patch", "call", "client", CALL_ID, ("object", "operation"),
         name="apply_patch"),
    Tool("apply_patch_call_output", "apply-patch", "output", "client", CALL_ID, output=("output",)),
    Tool("tool_search_call", "tool-search", "call", "provider", CALL_ID, ("object", "arguments"),
         name="tool_search", note="runs where its `execution` says", usually=_OPTIONAL),
    Tool("tool_search_output", "tool-search", "output", "provider", CALL_ID, output=("tools",),
         usually=_OPTIONAL),
    Tool("file_search_call", "file-search", "call+output", "provider", ITEM_ID, ("fields", "queries"),
         ("results",), "file_search"),
    Tool("web_search_call", "web-search", "call", "provider", ITEM_ID, ("object", "action"),
         name="web_search"),
    Tool("code_interpreter_call", "code-interpreter", "call+output", "provider", ITEM_ID,
         ("code", "code"), ("outputs",), "code_interpreter"),
    Tool("image_generation_call", "image-gen", "call+output", "provider", ITEM_ID,
         ("fields", "prompt", "revised_prompt", "action", "size", "quality", "background",
          "output_format"), ("result",), "image_generation"),
    Tool("mcp_call", "mcp", "call+output", "provider", ITEM_ID, _JSON, ("output", "error")),
    Tool("mcp_list_tools", "mcp", "call+output", "provider", ITEM_ID, ("fields", "server_label"),
         ("tools", "error"), "mcp_list_tools", note="a listing that the provider makes by itself"),
    Tool("mcp_approval_request", "mcp", "call", "provider", (("id", "natural"),),
         ("fields", "name", "server_label", "arguments"), name="mcp_approval_request",
         note="the client decides; answered by mcp_approval_response"),
    Tool("mcp_approval_response", "mcp", "output", "client", (("approval_request_id", "natural"),),
         output=("approve", "reason")),
    Tool("program", "programmatic", "call", "provider", CALL_ID, ("code", "code"), name="program"),
    Tool("program_output", "programmatic", "output", "provider", CALL_ID, output=("result",)),
    Tool("multi_agent_call", "multi-agent", "call", "provider", CALL_ID, _JSON, name_field="action"),
    Tool("multi_agent_call_output", "multi-agent", "output", "provider", CALL_ID, output=("output",)),
)  # fmt: skip

# Items that are no tools, no text, and must go back as they came.
OPAQUE = {"compaction", "compaction_trigger", "configuration_update", "additional_tools",
          "item_reference", "agent_message"}  # fmt: skip
_OF_THE_CALL = {"type", "call_id", "name", "arguments", "input", "code", "status", "action",
                "operation", "outputs", "results", "result", "output", "queries"}  # fmt: skip
FAILED = {"failed", "incomplete"}
# Where items were seen to have their input, the usual ones first.
INPUTS = ("arguments", "action", "input", "operation", "code", "queries", "query")
# What items have beside their input, as far as any is known.
_BESIDE = {
    "id", "type", "status", "call_id", "name", "namespace", "server_label", "approval_request_id",
    "output", "outputs", "results", "result", "error", "container_id", "environment", "execution",
    "caller", "created_by", "agent", "agent_id", "agent_reference", "response_id", "parent_id", "tools",
    "max_output_length", "pending_safety_checks", "acknowledged_safety_checks", "phase", "fingerprint",
    "size", "quality", "background", "output_format", "revised_prompt", "prompt", "memories", "reason",
    "consent_link", "approve", "partition_key", "object", "role", "encrypted_content", "summary",
}  # fmt: skip
TEXTS = {"input", "code"}  # … where it is plain text


def tools_by_type(*tables: tuple[Tool, ...]) -> dict[str, Tool]:
    """Rows of tool items by their type."""
    return {tool.type: tool for table in tables for tool in table}


# --- how items say things -----------------------------------------------------------------------


def identity_of(tool: Tool, item: dict[str, Any]) -> tuple[str | None, str, IdSource | None]:
    for field, source in tool.ids:
        if value := first_text(item.get(field)):
            return value, field if field == "call_id" else f"item.{field}", source
    return None, tool.ids[0][0], None


def name_of(tool: Tool, item: dict[str, Any]) -> str | None:
    return tool.name or first_text(item.get(tool.name_field))


def kind_of(tool: Tool, item: dict[str, Any]) -> Kind:
    execution = item.get("execution")
    if execution in ("client", "server"):
        return msgspec.structs.replace(
            tool.kind, runs_on="client" if execution == "client" else "provider"
        )
    environment = item.get("environment")
    if tool.type == "shell_call" and isinstance(environment, dict):
        remote = environment.get("type") == "container_reference"
        return msgspec.structs.replace(tool.kind, runs_on="provider" if remote else "client")
    return tool.kind


_as_fields_of = msgspec.json.Decoder(dict[str, Raw]).decode


def _fields(raw: bytes) -> dict[str, Raw]:
    return decoded(raw, _as_fields_of)


def _as_plain(tool: Tool, item: dict[str, Any], raw: bytes) -> str:
    value = item.get(tool.said[1])
    return value if isinstance(value, str) else ""


def _as_object(tool: Tool, item: dict[str, Any], raw: bytes) -> str:
    """The exact text of the object in the named field, or the text that stands there."""
    if not isinstance(item.get(tool.said[1]), dict | list):
        return first_text(item.get(tool.said[1])) or ""
    return bytes(_fields(raw)[tool.said[1]]).decode()


def _as_one_of(tool: Tool, item: dict[str, Any], raw: bytes) -> str:
    one, many = tool.said[1:]
    return (
        _as_object(tool, item, raw)
        if item.get(one)
        else _as_fields(tool._replace(said=("fields", many)), item, raw)
    )


def _as_fields(tool: Tool, item: dict[str, Any], raw: bytes) -> str:
    fields = _fields(raw)
    there = {name: fields[name] for name in tool.said[1:] if item.get(name) is not None}
    return msgspec.json.encode(there).decode()


FORMS: dict[str, Callable[[Tool, dict[str, Any], bytes], str]] = {
    "text": _as_object,
    "code": _as_plain,
    "input": _as_plain,
    "object": _as_object,
    "one of": _as_one_of,
    "fields": _as_fields,
}


def echo_of(item: dict[str, Any], *, is_theirs: bool = False) -> Echo | None:
    """What goes back beside the call itself; that it failed, too.

    ``is_theirs``: the provider runs it, so whatever it said of its state is its own to hear again.
    """
    beside = {k: v for k, v in item.items() if k not in _OF_THE_CALL and v is not None}
    status = item.get("status")
    is_news = is_theirs and isinstance(status, str) and status != "completed"
    return beside | ({"status": status} if is_news or has_failed(item) else {}) or None


def output_of(tool: Tool, item: dict[str, Any]) -> Any:
    """The result: the one field it is in, or those of several that are there."""
    there = {name: item[name] for name in tool.output if item.get(name) is not None}
    return next(iter(there.values()), None) if len(there) < 2 else there


# Items whose result is a picture: where its bytes are, and its format.
PICTURES = {"image_generation_call": ("result", "output_format")}


def picture_of(tool: Tool, item: dict[str, Any]) -> Shown | None:
    """The picture that an item brings; it goes back with the item."""
    field, format = PICTURES.get(tool.type, ("", ""))
    if not first_text(item.get(field)):
        return None
    named = first_text(item.get(format))
    echo = {key: item[key] for key in ("type", "id") if item.get(key)}
    type = f"image/{named}" if named else None
    return Shown(f"media/{tool.type}", item, item[field], type=type, echo=echo, is_told=True)


def has_failed(item: dict[str, Any]) -> bool:
    return str(item.get("status")) in FAILED


def is_error(item: dict[str, Any]) -> bool:
    return has_failed(item) or item.get("error") is not None


def id_of(item: Any) -> str:
    return first_text(item.get("id")) or "" if isinstance(item, dict) else ""


def is_made_of_nothing(tool: Tool, item: dict[str, Any]) -> bool:
    """Does its type say its input in fields of its own, and it has none of them?"""
    form, *fields = tool.said
    return form == "fields" and bool(fields) and all(item.get(name) is None for name in fields)


def says_none(tool: Tool, item: dict[str, Any]) -> bool:
    """Does its own field say that it has no input?"""
    return any(item.get(name) == "" for name in tool.said[1:])


def is_illegible(tool: Tool, item: dict[str, Any], *fields: str) -> bool:
    """Is its input, or one of these fields, a number, or no text where it should be one?"""
    legible = str | None if tool.kind.key is not None else str | dict | list | None
    return not all(isinstance(item.get(field), legible) for field in (*tool.said[1:], *fields))


def input_of(tool: Tool, item: dict[str, Any], raw: bytes) -> str | None:
    """The text of a call's input, in whatever field it is; None if it may be where nobody looks."""
    text = FORMS[tool.said[0]](tool, item, raw)
    if text not in ("", "{}"):
        return text
    plain = tool.kind.key is not None
    if is_illegible(tool, item, *INPUTS):
        return None  # not what was meant
    others = [
        field for field, value in item.items()
        if value and field not in _BESIDE and isinstance(value, str | dict | list)
    ]  # fmt: skip
    fit = [
        f for f in INPUTS
        if f in others and (f in TEXTS) is plain and (not plain or isinstance(item[f], str))
    ]  # fmt: skip
    if not fit:
        absent = not any(field in item for field in tool.said[1:])
        needs_one = absent and (tool.runs_on == "client" or tool.said[0] == "text")
        needs_one = needs_one or (tool.runs_on == "client" and tool.said[0] in ("object", "one of"))
        return None if others or needs_one else text
    if says_none(tool, item):
        return None
    value = item[fit[0]]
    return value if isinstance(value, str) else bytes(_fields(raw)[fit[0]]).decode()
