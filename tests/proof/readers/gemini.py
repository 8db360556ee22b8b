"""Gemini generateContent, read plainly.

A ``functionCall`` that does not continue is a whole call. One that continues is built value by
value until a part does not. A call without arguments counts only if its candidate stopped.
"""

from __future__ import annotations

import json
import re
from typing import Any

from tests.proof.frames import UNREAD, array, sse
from tests.proof.readers.said import (
    Heard,
    Open,
    Reading,
    exact,
    id_in,
    joined,
    name_in,
    place_in,
    sound_object,
    text_in,
    unknown,
)

NORMAL = {"STOP", "CONTINUATION"}
FAILING = {"OTHER", "MALFORMED_FUNCTION_CALL", "MALFORMED_RESPONSE", "UNEXPECTED_TOOL_CALL",
           "TOO_MANY_TOOL_CALLS", "NO_IMAGE", "IMAGE_OTHER"}  # fmt: skip
CALL_FIELDS = {"name", "args", "id", "partialArgs", "willContinue"}
PARTS = {"text", "functionCall", "executableCode", "codeExecutionResult", "toolCall", "toolResponse",
         "functionResponse", "inlineData", "fileData", "audioTranscription", "thoughtSignature",
         "thought"}  # fmt: skip
STEP = re.compile(
    r"""\.?([^.\[\]'"$][^.\[\]]*)|\[(\d+)\]|\['((?:[^'\\]|\\.)*)'\]|\["((?:[^"\\]|\\.)*)"\]"""
)


class Conflict(Exception):
    """The values of one call cannot all be true."""


def read(body: bytes) -> Reading:
    reading = Reading()
    candidates: dict[int, Candidate] = {}
    payloads = array(body) if body.lstrip()[:1] == b"[" else sse(body)
    for payload in payloads:
        said = payload.value
        if payload.word:
            continue
        if payload.rough and "candidates" in payload.rough and unharmed_parts(payload.rough):
            said = payload.rough  # what is no UTF-8 stands where nothing is said of calls
        if payload.rough:
            reading.also += unharmed(payload.rough)
        if isinstance(said, dict) and isinstance(said.get("response"), dict):
            said = said["response"]
        if payload.error or (isinstance(said, dict) and said.get("error") is not None):
            reading.ended = "failed"
            break
        listed = said.get("candidates") if isinstance(said, dict) else UNREAD
        listed = [listed] if isinstance(listed, dict) else listed
        if listed is UNREAD or not isinstance(listed, list | None):
            named = named_in(payload.rough)
            for number, candidate in candidates.items():
                if not named or number in named:
                    candidate.taint()
            continue
        for entry in listed or ():
            number = place_in(entry.get("index", 0) or 0) if isinstance(entry, dict) else None
            if number is None:
                for candidate in candidates.values():
                    candidate.taint()
                continue
            candidates.setdefault(number, Candidate(number, reading)).hear(entry)
    for candidate in candidates.values():
        candidate.end()
    return reading


def named_in(rough: Any) -> set[int | None]:
    """The candidates that a payload names which cannot be read; none if it may be of any."""
    listed = rough.get("candidates") if isinstance(rough, dict) else None
    entries = listed if isinstance(listed, list) else []
    named = {place_in(e.get("index", 0) or 0) if isinstance(e, dict) else None for e in entries}
    return set() if None in named else named


def unharmed_parts(rough: dict[str, Any]) -> bool:
    return "\\ufffd" not in json.dumps(rough["candidates"])


def unharmed(rough: dict[str, Any]) -> list[Heard]:
    """The calls of a damaged payload that the damage did not touch, however the turn may end."""
    ends = [{"index": n, "finishReason": "STOP"} for n in range(4)]
    body = f"data: {json.dumps(rough)}\n\ndata: {json.dumps({'candidates': ends})}\n\n".encode()
    return [c for c in read(body).calls if "\\ufffd" not in json.dumps([c.name, c.arguments, c.id])]


def in_camel_case(said: dict[str, Any]) -> dict[str, Any]:
    """Clients in Python spell the same names with underscores."""
    return {re.sub(r"_(\w)", lambda m: m[1].upper(), k): v for k, v in said.items()}


class Candidate:
    """The calls of one candidate."""

    def __init__(self, number: int, reading: Reading) -> None:
        self.number = number
        self.reading = reading
        self.going_on: list[Open] = []
        self.empty: list[Heard] = []
        self.words: list[str] = []
        self.before: list[Heard] = []  # what chunks before this one have told

    def taint(self) -> None:
        for call in self.going_on:
            call.tainted = True

    def hear(self, entry: dict[str, Any]) -> None:
        entry = in_camel_case(entry)
        self.before = [*self.reading.calls, *self.empty]
        content = entry.get("content")
        parts = content.get("parts") if isinstance(content, dict) else content
        parts = [parts] if isinstance(parts, dict) else parts
        if not isinstance(parts, list | None):
            self.taint()
            parts = []
        for part in parts or ():
            if isinstance(part, dict):
                self.part(part)
            else:
                self.taint()
        if text_in(entry.get("finishReason")):
            self.words.append(entry["finishReason"])

    def part(self, part: dict[str, Any]) -> None:
        part = in_camel_case(part)
        if not PARTS & set(part):
            self.taint()
        called, code, tool = (part.get(k) for k in ("functionCall", "executableCode", "toolCall"))
        if isinstance(called, dict):
            self.call(in_camel_case(called))
        elif called is not None:
            self.taint()
        if isinstance(code, dict) and isinstance(code.get("code"), str):
            text = joined(code["code"])
            if text is not None:
                self.tell(code, "code_execution", {"code": text}, "provider", bool(text))
        if isinstance(tool, dict):
            self.whole(tool, (name_in(tool.get("toolType")) or "server_tool").lower(), "provider")

    def tell(
        self, said: dict[str, Any], name: str, arguments: dict[str, Any], runs_on: str, stated: bool
    ) -> None:
        id = id_in(said.get("id"))
        ids = frozenset({id} if id else ())
        heard = Heard(id or None, name, arguments, runs_on, self.number, ids)
        if id and heard in self.before:
            return  # said once more
        (self.reading.calls if stated else self.empty).append(heard)

    def whole(self, said: dict[str, Any], name: str, runs_on: str) -> None:
        args = said.get("args")
        args = exact(args) if isinstance(args, str) else args  # written as a text
        stated = said.get("args") is not None
        if not stated and not unknown(said, CALL_FIELDS | {"toolType"}):
            args = {}
        if name and isinstance(args, dict) and sound_object(args):
            self.tell(said, name, args, runs_on, stated)

    def call(self, said: dict[str, Any]) -> None:
        partial, more = said.get("partialArgs"), said.get("willContinue")
        name = name_in(said.get("name"))
        if not (self.going_on or more or partial is not None or not name):
            return self.whole(said, name, "client")
        call = self.continued(said, name)
        if call is None:
            if not name:
                self.taint()
                return None
            self.going_on = [c for c in self.going_on if c.id]  # nothing could go on with the rest
            call = Open(id_in(said.get("id")) or None, name, choice=self.number)
            call.state["values"] = []
            self.going_on.append(call)
        if id := id_in(said.get("id")):
            call.ids.add(id)
            call.id = call.id or id
        self.values(call, said)
        unsaid = partial is None and said.get("args") is None
        if not isinstance(more, bool | None) or (unsaid and unknown(said, CALL_FIELDS)):
            call.tainted = True
        if not more:
            self.going_on.remove(call)
            self.close(call)
        return None

    def continued(self, said: dict[str, Any], name: str) -> Open | None:
        if not self.going_on:
            return None
        last, id = self.going_on[-1], id_in(said.get("id"))
        if id:
            known = next((c for c in self.going_on if c.id == id), None)
            if known is not None or name:
                return known
        if not name:
            return last
        if name != last.name:
            return None
        # a name alone is a call without arguments, unless each piece of this one says its name
        bare = said.get("partialArgs") is None and said.get("args") is None
        begins = bare and (said.get("willContinue") or not last.state.get("repeats"))
        last.state["repeats"] = not begins
        return None if begins else last

    def values(self, call: Open, said: dict[str, Any]) -> None:
        args, partial = said.get("args"), said.get("partialArgs")
        if sound_object(args):
            if args and (partial or call.state["values"]):
                call.state["again"] = args  # all of them, beside or behind the values
            elif args or not (said.get("willContinue") or partial or call.state["values"]):
                call.state["values"].append(((), args))
        elif args is not None:
            call.tainted = True
        partial = [partial] if isinstance(partial, dict) else partial
        if not isinstance(partial, list | None):
            call.tainted = True
            return
        for piece in partial or ():
            try:
                call.state["values"].append(value_in(piece))
            except Conflict:
                call.tainted = True

    def close(self, call: Open) -> None:
        told = [heard.id for heard in self.reading.calls if heard.choice == self.number]
        again = bool(call.id) and call.id in told  # an id is of one candidate
        if call.tainted or again:
            return
        try:
            arguments = built(call.state["values"])
        except Conflict:
            return
        if "again" in call.state:
            arguments = call.state["again"] if begins(arguments, call.state["again"]) else None
        if sound_object(arguments):
            stated = self.reading.calls if call.state["values"] else self.empty
            stated.append(call.heard(arguments))

    def end(self) -> None:
        """Calls without arguments need a normal end."""
        if self.words and set(self.words) <= NORMAL:
            self.reading.calls += self.empty
        if self.words and self.reading.ended != "failed":
            self.reading.ended = "failed" if FAILING & set(self.words) else "normal"


def value_in(piece: Any) -> tuple[tuple[Any, ...], Any]:
    """One partial value: where it stands, and what it is."""
    piece = in_camel_case(piece) if isinstance(piece, dict) else {}
    path = piece.get("jsonPath")
    values = {k: v for k, v in piece.items() if k.endswith("Value")} if path else {}
    if not isinstance(path, str) or len(values) != 1:
        raise Conflict
    ((kind, value),) = values.items()
    fits = {
        "stringValue": isinstance(value, str),
        "numberValue": isinstance(value, int | float) and not isinstance(value, bool),
        "boolValue": isinstance(value, bool),
        "nullValue": value in (None, "NULL_VALUE", 0) and value is not False,
    }
    if not fits.get(kind, value is not None):
        raise Conflict
    return steps(path), None if kind == "nullValue" else value


def steps(path: str) -> tuple[Any, ...]:
    at, found = 1 if path.startswith("$") else 0, list[Any]()
    while at < len(path):
        match = STEP.match(path, at)
        if match is None or len(found) > 100:
            raise Conflict
        name, index, *quoted = match.groups()
        key = next((k for k in quoted if k is not None), None)
        found.append(int(index) if index else name or re.sub(r"\\(.)", r"\1", key or ""))
        at = match.end()
    return tuple(found)


def built(values: list[tuple[tuple[Any, ...], Any]]) -> Any:
    """All values at their places; a string that comes again at its place goes on."""
    tree: dict[Any, Any] = {}
    for path, value in values:
        node = tree
        for step in ("$", *path)[:-1]:
            node = node.setdefault(step, {})
            if not isinstance(node, dict) or isinstance(node, Leaf):
                raise Conflict
        last = path[-1] if path else "$"
        held = node.get(last)
        if held is None:
            node[last] = Leaf(value)
        elif isinstance(held, Leaf) and isinstance(held.value, str) and isinstance(value, str):
            node[last] = Leaf(held.value + value)
        elif not (isinstance(held, Leaf) and same(held.value, value)):
            raise Conflict
    return plain(tree.get("$", {}))


def begins(told: Any, whole: Any) -> bool:
    """Are the values told so far a beginning of all of them?"""
    if isinstance(told, dict) and isinstance(whole, dict):
        return all(key in whole and begins(value, whole[key]) for key, value in told.items())
    if isinstance(told, list) and isinstance(whole, list):
        return len(told) <= len(whole) and all(map(begins, told, whole))
    if isinstance(told, str) and isinstance(whole, str):
        return whole.startswith(told)
    return same(told, whole)


def same(one: Any, other: Any) -> bool:
    return type(one) is type(other) and bool(one == other)


class Leaf(dict[Any, Any]):
    """A value, as opposed to a place where values stand."""

    def __init__(self, value: Any) -> None:
        super().__init__()
        self.value = value


def plain(node: Any) -> Any:
    if isinstance(node, Leaf):
        value = joined(node.value) if isinstance(node.value, str) else node.value
        if value is None and node.value is not None:
            raise Conflict
        return value
    if not any(isinstance(step, int) for step in node):
        return {step: plain(value) for step, value in node.items()}
    if set(node) != set(range(len(node))):
        raise Conflict
    return [plain(node[index]) for index in range(len(node))]
