"""OpenAI Responses, read plainly.

A call is an item: added, filled, its text stated again, done. It is told when its item is done and
the item does not say that it is incomplete or failed; with no text at all only if the response then
completes. One that is never done counts only if the final response has it, or if its text is a
whole object, the response completed and nothing can be missing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from tests.proof.frames import Payload, Twice, sse
from tests.proof.readers.anthropic import kind_of
from tests.proof.readers.places import mentions
from tests.proof.readers.said import (
    Open,
    Reading,
    arguments_of,
    exact,
    name_in,
    nothing,
    place_in,
    sound_object,
    text_in,
)


class Tool(NamedTuple):
    """How one type of item says what it calls, and with what."""

    form: str  # text: JSON text, object, one of, fields, input / code: plain text
    fields: tuple[str, ...]
    name: str = ""  # of tools without a name of their own
    runs_on: str = "provider"
    name_field: str = "name"
    id_fields: tuple[str, ...] = ("call_id", "id")


TOOLS = {
    "function_call": Tool("text", ("arguments",), runs_on="client"),
    "custom_tool_call": Tool("input", ("input",), runs_on="client"),
    "computer_call": Tool("one of", ("action", "actions"), "computer_use", "client"),
    "local_shell_call": Tool("object", ("action",), "local_shell", "client"),
    "shell_call": Tool("object", ("action",), "shell", "client"),
    "apply_patch_call": Tool("object", ("operation",), "apply_patch", "client"),
    "tool_search_call": Tool("object", ("arguments",), "tool_search"),
    "file_search_call": Tool("fields", ("queries",), "file_search", id_fields=("id",)),
    "web_search_call": Tool("object", ("action",), "web_search", id_fields=("id",)),
    "code_interpreter_call": Tool("code", ("code",), "code_interpreter", id_fields=("id",)),
    "image_generation_call": Tool(
        "fields", ("prompt", "revised_prompt", "action", "size", "quality", "background",
                   "output_format"), "image_generation", id_fields=("id",)),
    "mcp_call": Tool("text", ("arguments",), id_fields=("id",)),
    "mcp_list_tools": Tool("fields", ("server_label",), "mcp_list_tools", id_fields=("id",)),
    "mcp_approval_request": Tool(
        "fields", ("name", "server_label", "arguments"), "mcp_approval_request",
        id_fields=("id",)),
    "program": Tool("code", ("code",), "program"),
    "multi_agent_call": Tool("text", ("arguments",), name_field="action"),
}  # fmt: skip
DELTAS = {
    "response.function_call_arguments": "function_call",
    "response.mcp_call_arguments": "mcp_call",
    "response.mcp_call.arguments": "mcp_call",
    "response.custom_tool_call_input": "custom_tool_call",
    "response.code_interpreter_call_code": "code_interpreter_call",
}
INPUTS = ("arguments", "input", "code", "action", "operation", "queries")
LENGTH = {"max_output_tokens", "max_messages", "max_tokens", "content_filter", "steered"}


def read(body: bytes, tools: dict[str, Tool] = TOOLS) -> Reading:
    payloads = list(sse(body))
    reading = heard(payloads, tools, kind_of)
    if any(contradicts_itself(payload) for payload in payloads):  # or nobody can read it
        known = heard(
            payloads, tools, lambda payload: "" if contradicts_itself(payload) else kind_of(payload)
        )
        reading.also += known.calls
    return reading


def contradicts_itself(payload: Payload) -> bool:
    return isinstance(payload.value, Twice) and payload.value.differs


def heard(
    payloads: list[Payload], tools: dict[str, Tool], kind_in: Callable[[Payload], str]
) -> Reading:
    items, last, silent = Items(tools), None, 0
    for payload in payloads:
        said, kind = payload.value, kind_in(payload)
        if payload.word:
            continue
        legible = said if isinstance(said, dict) else payload.rough or {}
        number = place_in(legible.get("sequence_number"))
        silent += number is None  # it may have been counted, or not
        if number is not None:
            if last is not None and not last <= number <= last + silent + 1:
                items.taint(None)
                items.lost = True
            last, silent = number, 0
        if not isinstance(said, dict):
            items.unread(payload.rough)
            continue
        items.began(kind, said.get("response"))
        if kind in ("response.output_item.added", "response.output_item.done"):
            items.item(said, kind.endswith("done"))
        elif kind == "error":
            items.reading.ended = "failed"
            break
        elif kind in ENDINGS:
            items.end(kind.removeprefix("response."), items.own(said.get("response")))
            break
        elif not items.piece(kind, said) and not kind.startswith(HARMLESS):
            place = place_in(said.get("output_index"))
            if place is not None or not isinstance(said.get("type"), str) or mentions(said):
                items.taint(place)
    return items.reading


ENDINGS = {"response.completed", "response.incomplete", "response.failed", "response.cancelled",
           "response.done"}  # fmt: skip
HARMLESS = (
    "response.created", "response.in_progress", "response.queued", "response.output_text",
    "response.content_part", "response.refusal", "response.reasoning", "response.audio",
    "response.text", "response.compaction", "response.web_search_call", "response.file_search_call",
    "response.image_generation_call", "response.code_interpreter_call.", "response.mcp_call.",
    "response.mcp_list_tools", "response.shell_call", "response.apply_patch_call", "ping",
    "keepalive",
)  # fmt: skip


class Items:
    """The calls of one response, by place."""

    def __init__(self, tools: dict[str, Tool]) -> None:
        self.tools = tools
        self.reading = Reading()
        self.calls: list[Open] = []
        self.lost = False  # something was: what says nothing may have said something
        self.id = ""  # of the response that began

    def began(self, kind: str, response: Any) -> None:
        """The first id that a response is given is its own, until another one is created."""
        id = text_in(response.get("id")) if isinstance(response, dict) else ""
        if kind == "response.created" or not self.id:
            self.id = id or self.id

    def own(self, response: Any) -> Any:
        """A final response of another id ends the turn, and is no word on what was not told before:
        a call needs the normal end of its own turn, and a copy that its own wire states."""
        id = text_in(response.get("id")) if isinstance(response, dict) else ""
        if id in ("", self.id):
            return response
        self.taint(None)
        return {**response, "output": []}

    def taint(self, place: int | None) -> None:
        for call in self.calls:
            if place is None or call.state["place"] == place:
                call.tainted = True

    def unread(self, rough: Any) -> None:
        """Bytes that are no UTF-8: of the place that they still name, if no words of calls are there."""
        named = isinstance(rough, dict) and not mentions(rough)
        place = place_in(rough.get("output_index")) if named else None
        self.taint(place)
        self.lost |= place is None

    def find(self, kind: str, place: int | None, item_id: str, call_id: str = "") -> Open | None:
        """The open call that is meant: by its own id, its place, its item, or as the last one."""
        open_ones = [c for c in reversed(self.calls) if c.state["type"] == kind]
        tests = (
            call_id and [c for c in open_ones if call_id == c.state["call_id"]],
            place is not None and [c for c in open_ones if c.state["place"] == place],
            item_id and [c for c in open_ones if c.state["item_id"] == item_id],
            (place is None or not item_id) and [c for c in open_ones if not c.closed],
        )
        return next((found[0] for found in tests if found), None)

    def start(self, kind: str, place: int | None, item_id: str) -> Open:
        tool = self.tools[kind]
        key = tool.form if tool.form in ("input", "code") else None
        call = Open(None, tool.name, tool.runs_on, key)
        call.state = {"type": kind, "place": place, "item_id": item_id, "call_id": "", "texts": []}
        self.calls.append(call)
        return call

    def piece(self, kind: str, said: dict[str, Any]) -> bool:
        """A fragment of a call, or its whole text; is it one?"""
        stem, _, what = kind.replace("arguments_d", "arguments.d").rpartition(".")
        if stem not in DELTAS or what not in ("delta", "done"):
            self.status(stem.removeprefix("response."), said)
            return False
        place, item_id = place_in(said.get("output_index")), text_in(said.get("item_id"))
        call = self.find(DELTAS[stem], place, item_id)
        if call is None:
            call = self.start(DELTAS[stem], place, item_id)
        if text_in(said.get("call_id")):
            self.identify(call, {"call_id": said["call_id"]})
            call.id = said["call_id"]
            call.ids.add(call.id)
        if what == "delta":
            if not isinstance(said.get("delta"), str):
                call.tainted = True
            elif call.closed and said["delta"]:
                self.taint(None)
            else:
                call.fragments.append(said["delta"])
            return True
        self.name(call, call.name or name_in(said.get("name")))
        texts = [said[k] for k in ("arguments", "input", "code") if k in said]
        if texts and isinstance(texts[0], str):
            self.state_text(call, texts[0])
        elif texts and sound_object(texts[0]) and call.key is None:
            call.state["texts"].append(texts[0])
        else:  # an object is no copy of a text, but a field of a wrong type
            call.tainted = True
        return True

    def status(self, kind: str, said: dict[str, Any]) -> None:
        """How far a tool is: no piece of its call, but it may say its id."""
        place, item_id = place_in(said.get("output_index")), text_in(said.get("item_id"))
        call = self.find(kind, place, item_id) if kind in self.tools else None
        if call is not None and text_in(said.get("call_id")):
            call.ids.add(said["call_id"])
            call.id = said["call_id"]

    def state_text(self, call: Open, text: str) -> None:
        """The wire's own word for all of it: nothing can be missing any more."""
        if text:
            call.state["texts"].append(text)
            call.tainted = False

    def identify(self, call: Open, item: dict[str, Any]) -> None:
        """The id of its own wins over that of its item; the last one said counts."""
        for name in reversed(self.tools[call.state["type"]].id_fields):
            if id := text_in(item.get(name)):
                call.ids.add(id)
                call.id = id
        call.state["call_id"] = text_in(item.get("call_id")) or call.state["call_id"]
        if "heard" in call.state:  # told before: both ids find it
            call.state["heard"].ids = frozenset(call.ids)

    def item(self, said: dict[str, Any], done: bool, snapshot: bool = False) -> None:
        place = place_in(said.get("output_index"))
        item = said["item"] if isinstance(said.get("item"), dict) else {}
        kind = item.get("type")
        if not isinstance(kind, str):
            return self.taint(place)
        if kind not in self.tools:
            return None
        held = self.find(kind, place, text_in(item.get("id")), text_in(item.get("call_id")))
        call = held
        if held is not None and held.closed and not snapshot:
            same = text_in(item.get("id")) and held.state["item_id"] == text_in(item.get("id"))
            own = text_in(item.get("call_id")) in ("", held.state["call_id"])
            if same and own and held.state["place"] == place and held.state.get("told"):
                return None  # one item in one place is one call, however often it is said
        if held is not None and done and not snapshot and self.is_another(held, item):
            held.tainted = held.closed = True
        if held is None or (not done and held.fragments) or (held.closed and not snapshot):
            if held is not None and not held.closed:
                held.tainted = held.closed = True  # added again: the first was given up
            call = None
        call = call or self.start(kind, place, text_in(item.get("id")))
        self.identify(call, item)
        self.learn(call, self.tools[kind], item)
        if done and not call.closed:
            self.close(call, item)
        elif snapshot and call.state.get("absent") and not (call.tainted or call.state.get("told")):
            # done without its input: the final response states it, as its own word for all of it
            self.hear_input(call, self.tools[kind], item)
        return None

    def is_another(self, held: Open, item: dict[str, Any]) -> bool:
        """By both its ids and its name: an item that was never added, in the place of one that was."""
        tool, state = self.tools[held.state["type"]], held.state
        pairs = [
            (state["item_id"], text_in(item.get("id"))),
            (state["call_id"], text_in(item.get("call_id"))),
            (held.name, tool.name or name_in(item.get(tool.name_field))),
        ]
        return all(one and other and one != other for one, other in pairs)

    def name(self, call: Open, name: str) -> None:
        """The last one counts; that it had another before is another honest reading."""
        if call.name and name and name != call.name:
            call.names.append(call.name)
        call.name = name or call.name

    def learn(self, call: Open, tool: Tool, item: dict[str, Any]) -> None:
        self.name(call, tool.name or name_in(item.get(tool.name_field)))
        execution, environment = item.get("execution"), item.get("environment")
        if isinstance(execution, str) and execution in ("client", "server"):
            call.runs_on = "client" if execution == "client" else "provider"
        elif call.state["type"] == "shell_call" and isinstance(environment, dict):
            remote = environment.get("type") == "container_reference"
            call.runs_on = "provider" if remote else "client"

    def close(self, call: Open, item: dict[str, Any]) -> None:
        call.closed = True
        status = text_in(item.get("status"))
        if status == "incomplete" or (status == "failed" and call.runs_on == "client"):
            call.tainted = True  # what a provider's tool failed at was called all the same
            return
        self.hear_input(call, self.tools[call.state["type"]], item)
        self.tell(call)

    def hear_input(self, call: Open, tool: Tool, item: dict[str, Any]) -> None:
        """The whole input, as the item states it."""
        there = {name: item[name] for name in tool.fields if item.get(name) is not None}
        elsewhere = [n for n in INPUTS if n not in tool.fields and item.get(n)]
        if tool.form == "fields":
            absent = tool.fields and not there and self.lost  # {} needs that nothing was lost
            if sound_object(there) and (there or not elsewhere) and not absent:
                call.state["texts"].append(there)
                call.tainted &= not there
            return self.hear_elsewhere(call, item, elsewhere if not there else [])
        value = next(iter(there.values()), None)
        if tool.form == "one of" and "action" not in there:
            value = there or None
        if isinstance(value, str):
            self.state_text(call, value)
        elif sound_object(value):
            call.state["texts"].append(value)
            call.tainted = False
        elif value is not None or elsewhere:
            call.tainted |= not call.fragments or value is not None
        old = call.state["type"] == "web_search_call"  # once said nothing of what it searched
        if tool.fields[0] not in item and not call.fragments and (elsewhere or not old):
            call.state["absent"] = True
        return self.hear_elsewhere(call, item, elsewhere if value is None else [])

    def hear_elsewhere(self, call: Open, item: dict[str, Any], names: list[str]) -> None:
        """A relay may put the input where another type has it."""
        for name in names:
            if call.key is not None and isinstance(item[name], str) and call.name:
                self.reading.also.append(call.heard({call.key: item[name]}))
            other = item[name] if sound_object(item[name]) else exact(str(item[name]))
            if other is not None and call.name:
                self.reading.also.append(call.heard(other))

    def tell(self, call: Open, empty: bool = False) -> None:
        """Its text: the last copy that was stated, else the fragments."""
        stated = call.state["texts"]
        if call.tainted or not call.name or call.state.get("told") or contradicted(call):
            return
        text = stated[-1] if stated else call.text
        arguments = text if isinstance(text, dict) else arguments_of(call, text)
        if arguments is None and empty and not stated and not call.text.strip():
            arguments = None if call.state.get("absent") else nothing(call)
        if arguments is not None:
            call.state["heard"] = call.heard(arguments)
            self.reading.calls.append(call.state["heard"])
            call.state["told"] = True
            self.reading.also += call.under_other_names(arguments)

    def end(self, how: str, response: Any) -> None:
        said = response if isinstance(response, dict) else {}
        if how == "done":
            how = str(said.get("status", "completed"))
        if how in ("failed", "cancelled"):
            self.reading.ended = "failed"
            return
        details = said.get("incomplete_details")
        reason = text_in(details.get("reason")) if isinstance(details, dict) else ""
        ended = "normal" if how == "completed" else "length" if reason in LENGTH else "other"
        self.reading.ended = ended
        output = said.get("output")
        listed = [i for i in output if isinstance(i, dict)] if isinstance(output, list) else []
        for index, item in enumerate(listed):
            self.item({"item": item, "output_index": self.place(index, item)}, True, True)
        for call in self.calls:
            if call.closed:
                self.tell(call, empty=ended == "normal")
            elif call.key is None and ended != "other" and not (listed and ended == "normal"):
                self.tell(call)

    def place(self, index: int, item: dict[str, Any]) -> int | None:
        """Relays number the final list anew: the place counts only if a call of its type is there."""
        there = any(
            c.state["place"] == index and c.state["type"] == item.get("type") for c in self.calls
        )
        return index if there else None


def contradicted(call: Open) -> bool:
    """Stated twice, and differently; to write a text as a JSON string is no difference."""
    stated = [meaning(call, t) for t in call.state["texts"] if t]
    return len(stated) > 1 and stated[-1] not in (stated[-2], meaning(call, call.text))


def meaning(call: Open, text: Any) -> Any:
    plain = call.key is not None or not isinstance(text, str)
    return text if plain else exact(text) or text
