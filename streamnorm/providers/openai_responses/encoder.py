"""OpenAI Responses, the way back: turns in, ``input`` items and ``tools`` out.

    {role: user, content} · reasoning, message and call items of the model · their *_output items

An item is a sibling of all others: a result follows its call and names it by ``call_id``. What the
model said goes back as the items that it came as, with their ids. Tools that are no functions have
output items of their own (``OUTPUTS``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from mimetypes import guess_extension
from typing import Any, ClassVar

import msgspec

from ...conversation import Made, Reasoning, Text
from ...encoding.encoder import Answer, Body, Called, Encoder, Entry, Place, Said, filled
from ...encoding.fields import NUMBER, SWITCH, TEXT, WHOLE, Field, Form, efforts, read_format
from ...encoding.ids import Grammar
from ...encoding.schemas import PLAIN_OBJECTS
from ...events import ProviderToolResult
from ...options import Format, RequestOptions
from ...text.written import data_uri, json_text
from ...tools import File, Link, Tool, ToolChoice
from .items import PICTURES, TOOLS, tools_by_type
from .items import Tool as Item

__all__ = ["ENCODER", "ResponsesEncoder"]

IMAGES = {"image/jpeg", "image/png", "image/gif", "image/webp"}
APPROVAL = "mcp_approval_request"
NAMESPACE = "namespace"


# --- how to answer --------------------------------------------------------------------------------


def _read_format(said: Any) -> Format | None:
    match said:
        case {"type": "json_object", **rest} if not rest:
            return Format()
        case {"type": "json_schema"}:
            return read_format({key: value for key, value in said.items() if key != "type"})
    return None


def _write_format(format: Format | None, options: RequestOptions) -> Any:
    if format is None:
        return None
    if format.schema is None:
        return {"type": "json_object"}
    said = {
        "type": "json_schema", "name": format.name,
        "description": format.description or None, "schema": format.schema,
        "strict": format.strict,
    }  # fmt: skip
    return filled(said)


EFFORTS = efforts("none", "minimal", "low", "medium", "high", "xhigh")
FIELDS = (
    Field("model", "model", TEXT),
    Field("max_tokens", "max_output_tokens", WHOLE),
    Field("stream", "stream", SWITCH, unsaid=False),
    Field("temperature", "temperature", NUMBER),
    Field("top_p", "top_p", NUMBER),
    Field("effort", "reasoning.effort", EFFORTS),
    Field("verbosity", "text.verbosity", TEXT),
    Field("format", "text.format", Form(_read_format, _write_format)),
    Field("user", "user", TEXT, most=64),
)


class ResponsesEncoder(Encoder):
    """One Responses request."""

    name = "openai_responses"
    grammar = Grammar("[!-~]{1,64}")
    dialect = PLAIN_OBJECTS
    fields = FIELDS
    says_text_tools = True
    narrowed: ClassVar[Mapping[str, str]] = {}
    answerable = frozenset({APPROVAL})
    says_system_anywhere = True
    ITEMS: ClassVar[Mapping[str, Item]] = tools_by_type(TOOLS)

    def body(self, talk: list[Said], system: str | None, tools: Body) -> Body:
        said = {
            "instructions": system,
            "input": self.entries(talk),
            **tools,
        }
        return filled(said)

    def system(self, said: Said) -> list[Entry]:
        return [{"role": "system", "content": said.text}]

    # --- what the model said ----------------------------------------------------------------------

    def assistant(self, said: Said) -> list[Entry]:
        told = _Items(self, said)
        for part in said.parts:
            PARTS[type(part)](told, part)
        return told.end()

    def place_of(self, part: Made, own: bool) -> Place:
        """A picture goes back with the item of the tool that made it."""
        made = own and any(echo.get("type") in PICTURES for echo in part.echoes)
        return "item" if made else "nowhere"

    def item_of(self, called: Called) -> Item:
        """The row of the item that a call of this wire came as."""
        call = called.call
        rows = [r for r in self.ITEMS.values() if r.family == call.family and "call" in r.role]
        return next((r for r in rows if r.name == call.name), rows[0] if rows else FUNCTION)

    # --- what the client said ---------------------------------------------------------------------

    def user(self, said: Said) -> list[Entry]:
        parts = said.pieces
        if len(parts) == 1 and isinstance(parts[0], Text):
            return [{"role": "user", "content": parts[0].text}]
        content = self.contents(said, lambda p: _piece(p.text if isinstance(p, Text) else p))
        return [{"role": "user", "content": content}]

    def linked(self, part: Link) -> Entry | None:
        if part.modality == "image":
            return {"type": "input_image", "image_url": part.url, "detail": "auto"}
        if part.modality != "document":
            return None
        return filled({"type": "input_file", "file_url": part.url, "filename": part.name})

    def answers(self, said: Said) -> list[Entry]:
        return [self._answer(answer) for answer in said.answers]

    def _answer(self, answer: Answer) -> Entry:
        kind = self.item_of(answer.called).type if answer.called.own else FUNCTION.type
        item = OUTPUTS.get(kind, _function_output)(self, answer)
        caller = answer.called.echo.get("caller")  # a program called it, and waits for the result
        return item if caller is None else {**item, "caller": caller}

    # --- tools ------------------------------------------------------------------------------------

    def tool(self, tool: Tool, name: str, schema: dict[str, Any]) -> Entry:
        said = {"type": "function", "name": name, "description": tool.description or None}
        return {**filled(said), "parameters": schema, "strict": tool.strict}

    def text_tool(self, tool: Tool, name: str) -> Entry:
        said: Entry = {"type": "custom", "name": name, "description": tool.description or None}
        if tool.grammar is not None:
            said["format"] = {
                "type": "grammar", "syntax": tool.grammar.syntax,
                "definition": tool.grammar.definition,
            }  # fmt: skip
        return filled(said)

    def within(self, tool: Tool, entry: Entry) -> Entry:
        if tool.namespace is None:
            return entry
        inner = {**entry, "name": tool.own_name} if "name" in entry else entry
        return {
            "type": NAMESPACE, "name": tool.namespace, "description": tool.namespace_description,
            "tools": [inner],
        }  # fmt: skip

    def tools(self, entries: list[Entry]) -> list[Entry]:
        """Each namespace once, with all of its tools, where its first one stood."""
        told: list[Entry] = []
        spaces: dict[str, Entry] = {}
        for entry in entries:
            if entry.get("type") != NAMESPACE or entry["name"] not in spaces:
                told.append(entry)
            if entry.get("type") == NAMESPACE:
                held = spaces.setdefault(entry["name"], entry)
                held["tools"] += entry["tools"] if held is not entry else []
        return told

    def choice(self, choice: ToolChoice, tools: Sequence[tuple[Tool, str]]) -> Body:
        chosen = [self.chosen(t, name) for t, name in tools if t.name in choice.names]
        said: Any = choice.mode
        if choice.mode == "tool":
            said = chosen[0]
        elif choice.mode == "allowed":
            said = self.allowed(chosen)
        return {"tool_choice": said} | ({} if choice.parallel else {"parallel_tool_calls": False})

    def allowed(self, chosen: list[Entry]) -> Entry:
        return {"type": "allowed_tools", "mode": "auto", "tools": chosen}

    def chosen(self, tool: Tool, name: str) -> Entry:
        native = tool.native.get(self.name)
        if native is None:
            kind = "custom" if self.takes_text(tool) else "function"
            space = {} if tool.namespace is None else {NAMESPACE: tool.namespace}
            return {"type": kind, **space, "name": tool.own_name if space else name}
        named = ("type", "name", "server_label")
        return {key: native[key] for key in named if key in native}


FUNCTION = tools_by_type(TOOLS)["function_call"]


# --- items --------------------------------------------------------------------------------------


class _Items:
    """The items of one assistant turn, as they come back together."""

    def __init__(self, encoder: ResponsesEncoder, said: Said) -> None:
        self.items: list[Entry] = []
        self._encoder = encoder
        self._refusals: list[Entry] = []  # they belong to the message whose id comes after them
        # A hybrid brings call and result in one item, which is kept whole with the result.
        self._whole = {
            part.id: part.echo
            for part in said.parts
            if isinstance(part, ProviderToolResult)
            and isinstance(part.echo, dict)
            and self._is_hybrid(part.echo)
        }

    def _is_hybrid(self, item: Entry) -> bool:
        row = self._encoder.ITEMS.get(str(item.get("type")))
        return row is not None and row.role == "call+output"

    def text(self, part: Text) -> None:
        if any(echo.get("type") == "refusal" for echo in part.echoes):
            self._refusals.append({"type": "refusal", "refusal": part.text})
        elif part.echoes:
            self.items.append(self._message(part))
        elif part.text:
            self.items.append({"role": "assistant", "content": part.text})

    def end(self) -> list[Entry]:
        """All items. A refusal whose message never told its id is a text."""
        left = [{"role": "assistant", "content": said["refusal"]} for said in self._refusals]
        return [*self.items, *left]

    def _message(self, part: Text) -> Entry:
        content = [*self._content(part), *self._refusals]
        self._refusals = []
        item: Entry = {"type": "message", "role": "assistant", "content": content}
        for echo in part.echoes:
            item |= echo
        return {**item, "status": item.get("status", "completed")}

    def _content(self, part: Text) -> list[Entry]:
        if not part.text:
            return []
        return [{"type": "output_text", "text": part.text, "annotations": list(part.citations)}]

    def reasoning(self, part: Reasoning) -> None:
        """Items that are opaque to us. Reasoning that has no item is not taken back."""
        self.items += part.echoes
        if not part.echoes:
            self._encoder.drop("assistant", "reasoning", "it came without an item")

    def call(self, part: Called) -> None:
        if part.call.id in self._whole:
            return
        row = self._encoder.item_of(part) if part.own else FUNCTION
        said = SAID[row.said[0]](row, part)
        item: Entry = {"type": row.type, **part.echo}
        if row.ids[0][0] == "call_id":
            item |= _call_id(row, part)
        if not row.name:
            item[row.name_field] = part.name.removeprefix(f"{item.get('namespace')}__")
        item |= said
        if row.type != FUNCTION.type and row.type not in STATELESS:
            item.setdefault("status", "completed")
        self.items.append(item)

    def result(self, part: ProviderToolResult) -> None:
        if isinstance(part.echo, dict):
            self.items.append(part.echo)


PARTS: Mapping[type, Callable[[_Items, Any], None]] = {
    Text: _Items.text,
    Reasoning: _Items.reasoning,
    Called: _Items.call,
    ProviderToolResult: _Items.result,
}
# Items that have no status.
STATELESS = {"custom_tool_call", APPROVAL, "program"}


def _call_id(row: Item, part: Called) -> Entry:
    """The id that a result names. One that the wire never gave is not sent where none names it."""
    call = part.call
    hosted = part.own and call.runs_on == "provider"
    if not hosted or call.provenance.id_source == "natural":
        return {"call_id": part.id}
    return {"call_id": None} if row.is_nullable else {}


def _as_text(row: Item, part: Called) -> Entry:
    return {row.said[1]: part.text}


def _as_raw(row: Item, part: Called) -> Entry:
    return {row.said[1]: part.call.raw}


def _as_object(row: Item, part: Called) -> Entry:
    if part.own and not part.call.raw and not part.call.arguments:
        return {}  # the wire said none, and none is made up
    return {row.said[1]: part.call.arguments}


def _as_one_of(row: Item, part: Called) -> Entry:
    _, one, many = row.said
    return part.call.arguments if many in part.call.arguments else {one: part.call.arguments}


def _as_fields(row: Item, part: Called) -> Entry:
    return part.call.arguments


# How an item says its arguments (see ``items.Tool``).
SAID: Mapping[str, Callable[[Item, Called], Entry]] = {
    "text": _as_text,
    "code": _as_raw,
    "input": _as_raw,
    "object": _as_object,
    "one of": _as_one_of,
    "fields": _as_fields,
}


# --- results ------------------------------------------------------------------------------------


def _output(answer: Answer) -> str | list[Entry]:
    """Text, or a list where there are media; this wire has no flag for an error."""
    if not answer.result.media or not answer.result.inline:
        return answer.text
    error = ["Error"] if answer.result.is_error else []
    return [_piece(piece) for piece in (*error, *answer.pieces)]


def _piece(piece: str | File) -> Entry:
    if isinstance(piece, str):
        return {"type": "input_text", "text": piece}
    if piece.type in IMAGES:
        return {
            "type": "input_image",
            "image_url": data_uri(piece.data, piece.type),
            "detail": "auto",
        }
    if piece.modality == "document" and piece.type != "application/octet-stream":
        name = piece.name or f"file{guess_extension(piece.type) or ''}"
        return {
            "type": "input_file",
            "filename": name,
            "file_data": data_uri(piece.data, piece.type),
        }
    return {"type": "input_text", "text": piece.summary}


def _function_output(encoder: ResponsesEncoder, answer: Answer) -> Entry:
    return {
        "type": "function_call_output", "call_id": answer.called.id, "output": _output(answer),
    }  # fmt: skip


def _custom_output(encoder: ResponsesEncoder, answer: Answer) -> Entry:
    return {**_function_output(encoder, answer), "type": "custom_tool_call_output"}


def _shell_output(encoder: ResponsesEncoder, answer: Answer) -> Entry:
    """What each command printed: texts, or objects with stdout, stderr and exit_code or outcome."""
    value = answer.result.value
    many = isinstance(value, list) and bool(value)
    runs = value if many else [answer.text if value is None else value]
    limit = answer.called.call.arguments.get("max_output_length")
    item = {
        "type": "shell_call_output", "call_id": answer.called.id,
        "output": [_run(run, answer.result.is_error) for run in runs], "max_output_length": limit,
    }  # fmt: skip
    return filled(item)


RUN: Mapping[str, Callable[[Any], bool]] = {
    "stdout": lambda said: isinstance(said, str | None),
    "stderr": lambda said: isinstance(said, str | None),
    "exit_code": lambda said: type(said) is int,
    "outcome": lambda said: isinstance(said, dict) and isinstance(said.get("type"), str),
}


def _run(run: Any, is_error: bool) -> Entry:
    """A dict that says anything else is not a run that printed nothing: it is what was printed."""
    is_run = isinstance(run, dict) and bool(run) and set(run) <= RUN.keys()
    is_run = is_run and all(RUN[key](said) for key, said in run.items())
    said = run if is_run else {"stdout": run if isinstance(run, str) else json_text(run)}
    code = said.get("exit_code", 1 if is_error else 0)
    outcome = said.get("outcome", {"type": "exit", "exit_code": code})
    printed = {key: said.get(key) or "" for key in ("stdout", "stderr")}
    return {**printed, "outcome": outcome}


def _local_shell_output(encoder: ResponsesEncoder, answer: Answer) -> Entry:
    """The specification wants ``call_id`` and names only ``id``; the SDK's type has only ``id``."""
    id = answer.called.id
    named = {"id": id} if encoder.options.sdk_types else {"id": id, "call_id": id}
    return {"type": "local_shell_call_output", **named, "output": answer.text}


def _patch_output(encoder: ResponsesEncoder, answer: Answer) -> Entry:
    return {
        "type": "apply_patch_call_output", "call_id": answer.called.id,
        "status": "failed" if answer.result.is_error else "completed", "output": answer.result.text,
    }  # fmt: skip


ACKNOWLEDGED = '{"acknowledged_safety_checks":'


def _computer_output(encoder: ResponsesEncoder, answer: Answer) -> Entry:
    """A screenshot. Safety checks are acknowledged by the caller, who passes them beside it."""
    screenshots = [media for media in answer.result.media if media.modality == "image"]
    if not screenshots:
        raise encoder.cannot("a computer's result without a picture", "return an image as File")
    shown = {
        "type": "computer_screenshot",
        "image_url": data_uri(screenshots[-1].data, screenshots[-1].type),
    }
    item: Entry = {
        "type": "computer_call_output", "call_id": answer.called.id, "output": shown,
    }  # fmt: skip
    for piece in answer.result.pieces:
        if isinstance(piece, str) and piece.startswith(ACKNOWLEDGED):
            item |= msgspec.json.decode(piece)
    return item


def _search_output(encoder: ResponsesEncoder, answer: Answer) -> Entry:
    found = answer.result.value
    if not isinstance(found, list):
        raise encoder.cannot(
            "a tool search's result that is no list", "return declarations of tools"
        )
    return {
        "type": "tool_search_output", "call_id": answer.called.id, "execution": "client",
        "status": "completed", "tools": found,
    }  # fmt: skip


def _approval(encoder: ResponsesEncoder, answer: Answer) -> Entry:
    """Yes or no, or both with a reason: {"approve": false, "reason": "…"}."""
    value = answer.result.value
    said = value if isinstance(value, dict) else {"approve": value}
    if not isinstance(said.get("approve"), bool):
        raise encoder.cannot(
            f"an approval of {json_text(value)}",
            'return True, False or {"approve": …, "reason": …}',
        )
    answered = {"approve": said["approve"], "reason": said.get("reason")}
    return {
        "type": "mcp_approval_response", "approval_request_id": answer.called.id,
        **{key: value for key, value in answered.items() if value is not None},
    }  # fmt: skip


# The type of a call -> how its result is said.
OUTPUTS: Mapping[str, Callable[[ResponsesEncoder, Answer], Entry]] = {
    "custom_tool_call": _custom_output,
    "shell_call": _shell_output,
    "local_shell_call": _local_shell_output,
    "apply_patch_call": _patch_output,
    "computer_call": _computer_output,
    "tool_search_call": _search_output,
    APPROVAL: _approval,
}
ENCODER = ResponsesEncoder
