"""A request's body in a provider's own words comes in; its calls and results in pairs go out.

Rule: a body that keeps the provider's pairing rules comes back as it is. In another one only the
calls and results that break a rule are touched; all else, known to us or not, stays where it is.

Three shapes of wire, and a row of ``WIRES`` for each provider:

    blocks   calls are blocks of an assistant message, results blocks of the user message after it
    lines    calls are in ``tool_calls`` of an assistant message, each result is a message after it
    items    calls and results are items of one flat list; a result stands anywhere behind its call
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from .errors import UnknownProvider, UsageError
from .repairing import UNAVAILABLE, Orphans, Repair, Repaired, UnansweredCall, What

__all__ = ["repaired"]

Entry: TypeAlias = dict[str, Any]
_InPlace: TypeAlias = Callable[[int, list[int]], bool]  # the entry of the calls, those of results


def repaired(provider: str, body: Any, orphans: Orphans) -> Repaired:
    """See ``streamnorm.repair``."""
    name = guessed(body) if provider == "auto" else provider
    wire = _wire(name, body)
    entries = body if isinstance(body, list) else _entries(body, wire.container)
    if not isinstance(entries, list):  # a plain text, where the wire allows one
        return Repaired(body)
    for number, entry in enumerate(entries):
        if not isinstance(entry, dict):
            raise UsageError(f"entry {number} is no object but {type(entry).__name__}")
    work = _Work(orphans, has_past=_has_past(body))
    mended = wire.mended([_copied(entry) for entry in entries], work)
    if not work.report and mended == entries:
        return Repaired(body)
    return Repaired(
        mended if isinstance(body, list) else {**body, wire.container: mended}, tuple(work.report)
    )


def _copied(value: Any) -> Any:
    """A copy in which nothing stands twice, even if the same object did: ids are changed in it."""
    if isinstance(value, dict):
        return {key: _copied(item) for key, item in value.items()}
    return [_copied(item) for item in value] if isinstance(value, list) else value


def guessed(body: Any) -> str:
    """Whose request this is, as far as its shape tells.

    >>> guessed({"contents": []})
    'gemini'
    """
    if isinstance(body, dict):
        for container, name in (("contents", "gemini"), ("input", "openai_responses")):
            if container in body:
                return name
    entries = body if isinstance(body, list) else _entries(body, "messages")
    for entry in entries if isinstance(entries, list) else ():
        for test, name in _SIGNS:
            if isinstance(entry, dict) and test(entry):
                return name
    return "openai_chat"


def _entries(body: Any, container: str) -> Any:
    if not isinstance(body, dict):
        raise UsageError("a request's body is an object, or the list of its messages")
    if container not in body:
        raise UsageError(f"this body has no {container!r}; is it of another provider?")
    return body[container]


def _has_past(body: Any) -> bool:
    """Does the service know turns that are not in the body?"""
    return isinstance(body, dict) and bool(
        body.get("previous_response_id") or body.get("conversation")
    )


def _blocks(entry: Entry, key: str = "content") -> list[Entry]:
    blocks = entry.get(key)
    return [b for b in blocks if isinstance(b, dict)] if isinstance(blocks, list) else []


_SIGNS: tuple[tuple[Callable[[Entry], bool], str], ...] = (
    (lambda e: "parts" in e, "gemini"),
    (lambda e: "call_id" in e, "openai_responses"),
    (lambda e: any("toolUse" in b or "toolResult" in b for b in _blocks(e)), "bedrock"),
    (lambda e: any(b.get("type") in ("tool_use", "tool_result") for b in _blocks(e)), "anthropic"),
)


class _Work:
    """What the policy is, and what was done so far."""

    def __init__(self, orphans: Orphans, *, has_past: bool) -> None:
        self.orphans = orphans
        self.has_past = has_past
        self.report: list[Repair] = []

    def note(self, what: What, one: _Call | _Result, why: str) -> None:
        where = f"entry {one.line}"
        self.report.append(Repair(what, one.id or "", one.name or "", where, why))

    def closes(self, call: _Call, *, can: bool) -> bool:
        """Is this unanswered call to be answered? (Or else dropped.)"""
        if self.orphans == "raise":
            raise UnansweredCall(f"entry {call.line}: the call {call.id!r} has no result")
        closing = self.orphans == "error" and can
        self.note("closed" if closing else "dropped_call", call, "it has no result")
        return closing


@dataclass(eq=False)
class _Call:
    id: str | None
    name: str | None
    block: Entry
    line: int


@dataclass(eq=False)
class _Result:
    id: str | None
    name: str | None
    block: Entry
    line: int
    order: int = 0  # among the results of the body
    taken: bool = False


@dataclass(frozen=True)
class _Words:
    """How a provider says a call and a result; ids may be None where the wire has none."""

    call: Callable[[Entry], tuple[Any, Any] | None]
    result: Callable[[Entry], tuple[Any, Any] | None]
    close: Callable[[_Call], Entry]
    name_call: Callable[[Entry, str], None]
    name_result: Callable[[Entry, str], None]
    even: Callable[[Entry], bool] = lambda block: False  # makes odd arguments even; True if it did
    can_close: Callable[[_Call], bool] = lambda call: True
    needs_id: bool = True
    unique: bool = False  # an id may not be used again in the whole request


# --- pairing, in no provider's words --------------------------------------------------------------


@dataclass
class _Line:
    """One message: the calls and results in it, and what is left without them."""

    entry: Entry
    is_assistant: bool
    calls: list[_Call] = field(default_factory=list)
    results: list[_Result] = field(default_factory=list)


class _Pairs:
    """The calls and results of lines, paired."""

    def __init__(
        self, lines: list[_Line], words: _Words, work: _Work, in_place: _InPlace | None
    ) -> None:
        self._lines, self._words, self._work = lines, words, work
        self._in_place = in_place  # None: a result may stand anywhere behind its call
        self._results = [result for line in lines for result in line.results]
        self._by_id: dict[str, list[_Result]] = {}
        for order, result in enumerate(self._results):
            result.order = order
            if result.id:
                self._by_id.setdefault(result.id, []).append(result)
        self._seen: set[str] = set()

    def answers(self, number: int) -> list[_Result]:
        """The results of the calls of that line, in order; calls without one are closed or gone."""
        line = self._lines[number]
        answers = [a for call in list(line.calls) if (a := self._answer(call, line, number))]
        if self._in_place is None or any(answer.line == number for answer in answers):
            return answers
        if self._in_place(number, [answer.line for answer in answers]):
            return sorted(answers, key=lambda answer: answer.order)  # as good as that of the calls
        for answer in answers:
            self._work.note("moved_result", answer, f"its call is in entry {number}")
        return answers

    def leftovers(self) -> None:
        """Note what nobody asked for."""
        for result in self._results:
            if not result.taken:
                self._work.note("dropped_result", result, "no open call for it stands before")

    def _answer(self, call: _Call, line: _Line, number: int) -> _Result | None:
        result = self._pick(call, number)
        if self._words.even(call.block):
            self._work.note("evened", call, "its arguments were no object")
        if result is None and not self._work.closes(call, can=self._words.can_close(call)):
            line.calls.remove(call)
            return None
        self._name(call, result)
        return result or _Result(call.id, call.name, self._words.close(call), number, taken=True)

    def _pick(self, call: _Call, number: int) -> _Result | None:
        again = self._called_again(call, number)
        for result in self._candidates(call, number):
            if not result.taken and number < result.line <= again:
                result.taken = True
                return result
        return None

    def _called_again(self, call: _Call, number: int) -> int:
        if not call.id or len(self._by_id.get(call.id, ())) < 2:
            return len(self._lines)
        later = range(number + 1, len(self._lines))
        again = (n for n in later if any(c.id == call.id for c in self._lines[n].calls))
        return next(again, len(self._lines))

    def _candidates(self, call: _Call, number: int) -> Iterator[_Result]:
        """Those of its id; then, where ids are missing, its neighbours by name and by place."""
        if call.id:
            yield from self._by_id.get(call.id, ())
        near = [] if self._in_place is None else list(self._near(number))
        loose = [r for r in near if not r.id or not call.id]
        yield from (r for r in loose if r.name and r.name == call.name)
        yield from (r for r in loose if not r.name)

    def _near(self, number: int) -> Iterator[_Result]:
        for line in self._lines[number + 1 :]:
            if line.is_assistant:
                return
            yield from line.results

    def _name(self, call: _Call, result: _Result | None) -> None:
        """An id where one is missing or stands for another call already."""
        if not self._words.needs_id:
            return
        if call.id and call.id not in self._seen:
            self._seen.add(call.id)
            if result is not None and not result.id:
                self._words.name_result(result.block, call.id)
            return
        why = "its id stands for another call, too" if call.id else "it has no id"
        new = _minted(call.id, call.line, self._seen)
        self._work.note("renamed", call, f"{why}: now {new}")
        self._seen.add(new)
        call.id = new
        self._words.name_call(call.block, new)
        if result is not None:
            self._words.name_result(result.block, new)

    def forget_ids(self) -> None:
        """Most wires mind an id that is used twice only within one message."""
        if not self._words.unique:
            self._seen.clear()


def _minted(id: str | None, line: int, seen: set[str]) -> str:
    # Made from its place: the same body is always mended in the same way.
    for salt in range(len(seen) + 1):
        digest = hashlib.sha256(f"{id}/{line}/{salt}".encode(errors="surrogatepass")).hexdigest()
        if f"call_{digest[:20]}" not in seen:
            return f"call_{digest[:20]}"
    raise AssertionError("as many ids as salts")


# --- blocks: Anthropic, Bedrock, Gemini -----------------------------------------------------------


@dataclass(frozen=True)
class _Blocks:
    """Calls and results are blocks of messages, results in the message after the calls."""

    words: _Words
    container: str = "messages"
    key: str = "content"
    assistant: str = "assistant"
    results_first: bool = True  # in their message

    def mended(self, entries: list[Entry], work: _Work) -> list[Entry]:
        lines = [self._line(number, entry) for number, entry in enumerate(entries)]
        pairs = _Pairs(lines, self.words, work, lambda calls, at: set(at) <= {calls + 1})
        out: list[Entry] = []
        answers: list[_Result] = []  # that wait for the user message after the calls
        for number, line in enumerate(lines):
            if line.is_assistant:
                out += self._answered(answers)
                answers = pairs.answers(number)
                pairs.forget_ids()
                out += self._assistant(line)
            else:
                out += self._user(line, answers, work)
                answers = []
        pairs.leftovers()
        return out + self._answered(answers)

    def _line(self, number: int, entry: Entry) -> _Line:
        line = _Line(entry, entry.get("role") == self.assistant)
        for block in _blocks(entry, self.key):
            if line.is_assistant and (said := self.words.call(block)) is not None:
                line.calls.append(_Call(said[0], said[1], block, number))
            elif not line.is_assistant and (said := self.words.result(block)) is not None:
                line.results.append(_Result(said[0], said[1], block, number))
        return line

    def _assistant(self, line: _Line) -> list[Entry]:
        content = line.entry.get(self.key)
        if not isinstance(content, list):
            return [line.entry]
        calls = [call.block for call in line.calls]
        kept = [b for b in content if not self._is_call(b) or _is_in(b, calls)]
        return [{**line.entry, self.key: kept}] if kept else []

    def _is_call(self, block: Any) -> bool:
        return isinstance(block, dict) and self.words.call(block) is not None

    def _user(self, line: _Line, answers: list[_Result], work: _Work) -> list[Entry]:
        if not answers and not line.results:
            return [line.entry]
        content = line.entry.get(self.key)
        if isinstance(content, str):
            content = [{"type": "text", "text": content}] if content else []
        blocks = [answer.block for answer in answers]
        kept = [b for b in content or () if not _is_in(b, (r.block for r in line.results))]
        there = [b for b in content or () if _is_in(b, [*blocks, *kept])]
        if len(there) < len(blocks) + len(kept) or there == blocks + kept:
            there = blocks + kept
        elif self.results_first:
            work.note("moved_result", answers[0], "results stand first in their message")
            there = blocks + kept
        return [{**line.entry, self.key: there}] if there else []

    def _answered(self, answers: list[_Result]) -> list[Entry]:
        return [{"role": "user", self.key: [a.block for a in answers]}] if answers else []


def _is_in(block: Any, others: Iterable[Any]) -> bool:
    return any(block is other for other in others)


# --- lines: Chat and its relatives ----------------------------------------------------------------


@dataclass(frozen=True)
class _Lines:
    """Calls are in ``tool_calls`` of a message, each result is a message of its own."""

    words: _Words
    container: str = "messages"

    def mended(self, entries: list[Entry], work: _Work) -> list[Entry]:
        lines = [self._line(number, entry) for number, entry in enumerate(entries)]
        pairs = _Pairs(lines, self.words, work, _directly_behind)
        out: list[Entry] = []
        for number, line in enumerate(lines):
            if line.is_assistant:
                answers = pairs.answers(number)
                pairs.forget_ids()
                out += self._assistant(line) + [answer.block for answer in answers]
            elif not line.results:
                out.append(line.entry)
        pairs.leftovers()
        return out

    def _line(self, number: int, entry: Entry) -> _Line:
        line = _Line(entry, entry.get("role") == "assistant")
        if line.is_assistant:
            for block in _blocks(entry, "tool_calls"):
                id, name = self.words.call(block) or (None, None)
                line.calls.append(_Call(id, name, block, number))
        elif (said := self.words.result(entry)) is not None:
            line.results.append(_Result(said[0], said[1], entry, number))
        return line

    def _assistant(self, line: _Line) -> list[Entry]:
        if not line.entry.get("tool_calls"):
            return [line.entry]
        kept = [call.block for call in line.calls]
        if kept:
            return [{**line.entry, "tool_calls": kept}]
        rest = {k: v for k, v in line.entry.items() if k != "tool_calls"}
        return [rest] if rest.get("content") else []


def _directly_behind(calls: int, at: list[int]) -> bool:
    return sorted(at) == list(range(calls + 1, calls + 1 + len(at)))


# --- items: Responses -----------------------------------------------------------------------------


@dataclass(frozen=True)
class _Items:
    """Calls and results are items of one list."""

    container: str = "input"

    def mended(self, entries: list[Entry], work: _Work) -> list[Entry]:
        lines = [_item(number, entry) for number, entry in enumerate(entries)]
        pairs = _Pairs(lines, _RESPONSES, work, None)
        out: list[Entry] = []
        made: list[Entry] = []  # answers of ours, which wait for the end of a run of calls
        for number, line in enumerate(lines):
            if line.calls:
                made += [a.block for a in pairs.answers(number) if a.line == number]
                out += _kept(line, out)
                continue
            out += made
            made = []
            if not line.results or line.results[0].taken or work.has_past:
                out.append(line.entry)
        if not work.has_past:
            pairs.leftovers()
        return out + made


def _kept(line: _Line, before: list[Entry]) -> list[Entry]:
    if line.calls:
        return [line.entry]
    while before and before[-1].get("type") == "reasoning":
        before.pop()  # reasoning is refused without the item that it led to
    return []


def _item(number: int, entry: Entry) -> _Line:
    line = _Line(entry, is_assistant=False)
    if (said := _RESPONSES.call(entry)) is not None:
        line.calls.append(_Call(said[0], said[1], entry, number))
    elif (said := _RESPONSES.result(entry)) is not None:
        line.results.append(_Result(said[0], said[1], entry, number))
    return line


# --- the words of each wire -----------------------------------------------------------------------


def _set(*path: str) -> Callable[[Entry, str], None]:
    def put(block: Entry, id: str) -> None:
        for key in path[:-1]:
            block = block[key]
        block[path[-1]] = id

    return put


def _as_object(holder: Entry, key: str) -> bool:
    value = holder.get(key)
    if isinstance(value, dict):
        return False
    try:
        read = json.loads(value) if isinstance(value, str) else None
    except ValueError:
        read = None
    holder[key] = read if isinstance(read, dict) else {}
    return True


def _typed(block: Entry, kind: str, *keys: str) -> tuple[Any, Any] | None:
    if block.get("type") != kind:
        return None
    return block.get(keys[0]), block.get(keys[1]) if len(keys) > 1 else None


def _under(block: Entry, key: str, id: str, name: str = "name") -> tuple[Any, Any] | None:
    inner = block.get(key)
    return (inner.get(id), inner.get(name)) if isinstance(inner, dict) else None


_ANTHROPIC = _Words(
    call=lambda b: _typed(b, "tool_use", "id", "name"),
    result=lambda b: _typed(b, "tool_result", "tool_use_id"),
    close=lambda c: {
        "type": "tool_result", "tool_use_id": c.id, "content": UNAVAILABLE, "is_error": True,
    },
    name_call=_set("id"),
    name_result=_set("tool_use_id"),
    even=lambda b: _as_object(b, "input"),
    unique=True,
)  # fmt: skip
_BEDROCK = _Words(
    call=lambda b: _under(b, "toolUse", "toolUseId"),
    result=lambda b: _under(b, "toolResult", "toolUseId"),
    close=lambda c: {
        "toolResult": {"toolUseId": c.id, "content": [{"text": UNAVAILABLE}], "status": "error"}
    },
    name_call=_set("toolUse", "toolUseId"),
    name_result=_set("toolResult", "toolUseId"),
    even=lambda b: _as_object(b["toolUse"], "input"),
    unique=True,
)
_GEMINI = _Words(
    call=lambda b: _under(b, "functionCall", "id"),
    result=lambda b: _under(b, "functionResponse", "id"),
    close=lambda c: {
        "functionResponse": ({"id": c.id} if c.id else {})
        | {"name": c.name, "response": {"error": UNAVAILABLE}}
    },
    name_call=_set("functionCall", "id"),
    name_result=_set("functionResponse", "id"),
    even=lambda b: (
        b["functionCall"].get("args") is not None and _as_object(b["functionCall"], "args")
    ),
    needs_id=False,
)


def _function(block: Entry) -> tuple[Any, Any]:
    inner = block.get("function") or block.get("custom")
    return block.get("id"), inner.get("name") if isinstance(inner, dict) else None


def _tool_line(entry: Entry) -> tuple[Any, Any] | None:
    if entry.get("role") != "tool":
        return None
    return entry.get("tool_call_id"), entry.get("tool_name") or entry.get("name")


def _chat(more: Callable[[_Call], Entry], **options: Any) -> _Words:
    return _Words(
        call=_function,
        result=_tool_line,
        close=lambda c: (
            {"role": "tool"}
            | ({"tool_call_id": c.id} if c.id else {})
            | more(c)
            | {"content": UNAVAILABLE}
        ),
        name_call=_set("id"),
        name_result=_set("tool_call_id"),
        **options,
    )


# The item of a call -> the item of its result, for calls that the client is to answer.
_ITEMS: dict[str, Callable[[str | None], Entry]] = {
    "function_call": lambda id: {
        "type": "function_call_output", "call_id": id, "output": UNAVAILABLE
    },
    "custom_tool_call": lambda id: {
        "type": "custom_tool_call_output", "call_id": id, "output": UNAVAILABLE
    },
    "local_shell_call": lambda id: {
        "type": "local_shell_call_output", "id": id, "output": UNAVAILABLE
    },
    "shell_call": lambda id: {
        "type": "shell_call_output", "call_id": id,
        "output": [{"stdout": "", "stderr": UNAVAILABLE, "outcome": {"type": "exit", "exit_code": 1}}],
    },
    "apply_patch_call": lambda id: {
        "type": "apply_patch_call_output", "call_id": id, "status": "failed", "output": UNAVAILABLE
    },
}  # fmt: skip


# This one can only be answered with a picture of the screen, which nobody has: it is dropped.
_COMPUTER = "computer_call"


def _item_call(item: Entry) -> tuple[Any, Any] | None:
    kind = item.get("type")
    is_ours = kind in _ITEMS or kind == _COMPUTER
    return (item.get("call_id"), item.get("name") or kind) if is_ours else None


def _item_result(item: Entry) -> tuple[Any, Any] | None:
    kind = str(item.get("type"))
    is_ours = kind.endswith("_output") and kind.removesuffix("_output") in {*_ITEMS, _COMPUTER}
    # The result of a local shell is the one that names its call in ``id``.
    return (item.get("call_id") or item.get("id"), None) if is_ours else None


_RESPONSES = _Words(
    call=_item_call,
    result=_item_result,
    close=lambda c: _ITEMS[c.block["type"]](c.id),
    can_close=lambda c: c.block["type"] != _COMPUTER,
    name_call=_set("call_id"),
    name_result=_set("call_id"),
    unique=True,
)

_Wire: TypeAlias = _Blocks | _Lines | _Items
WIRES: dict[str, _Wire] = {
    "anthropic": _Blocks(_ANTHROPIC),
    "bedrock": _Blocks(_BEDROCK),
    "gemini": _Blocks(
        _GEMINI, container="contents", key="parts", assistant="model", results_first=False
    ),
    "openai_chat": _Lines(_chat(lambda c: {})),
    "mistral": _Lines(_chat(lambda c: {"name": c.name})),
    "cohere": _Lines(_chat(lambda c: {})),
    "ollama": _Lines(_chat(lambda c: {"tool_name": c.name}, needs_id=False)),
    "openai_responses": _Items(),
}


def _wire(name: str, body: Any) -> _Wire:
    if name == "azure_foundry":  # speaks two wires; the body tells which
        name = "openai_responses" if isinstance(body, dict) and "input" in body else "openai_chat"
    if name not in WIRES:
        known = ", ".join([*WIRES, "azure_foundry", "auto"])
        raise UnknownProvider(f"no request of {name!r} can be repaired; there are: {known}")
    return WIRES[name]
