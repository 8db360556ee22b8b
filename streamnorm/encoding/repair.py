"""A request's body in a provider's own words comes in; its calls and results in pairs go out.

Rule: a body that keeps the provider's pairing rules comes back as it is. In another one only the
calls and results that break a rule are touched; all else, known to us or not, stays where it is.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, TypeAlias

from ..errors import EncodeError, UsageError
from .fields import at, is_there, replaced
from .messages import Blocks, Entry, Found, Items, Line, Lines, Messages
from .pairs import Asked, Given, Orphans, Repair, What, checked, is_closed, paired
from .plain import must_be_plain, the_kind_of

__all__ = ["Repaired", "repaired"]


class Repaired(NamedTuple):
    """A request's body that can be sent, and what was done to it."""

    body: Any
    report: tuple[Repair, ...] = ()


def repaired(messages: Messages, body: Any, orphans: Orphans) -> Repaired:
    """A body, or its list of entries, mended; what is passed is not changed."""
    entries = body if isinstance(body, list) else _entries(body, messages.container)
    if not isinstance(entries, list):  # a plain text, where the wire allows one
        return Repaired(body)
    must_be_plain(entries, messages.container)
    for number, entry in enumerate(entries):
        if not isinstance(entry, dict):
            raise UsageError(
                f"{messages.container}[{number}] is {the_kind_of(entry)}; pass an object for each message"
            )
    lines = [messages.line(n, _copied(entry)) for n, entry in enumerate(entries)]
    answers = _Answers(messages, lines, checked(orphans), has_past=messages.has_past(body))
    mended = _shape(messages)(messages, lines, answers)
    if not answers.report and mended == entries:
        return Repaired(body)
    held = mended if isinstance(body, list) else replaced(body, messages.container, mended)
    return Repaired(held, tuple(answers.report))


def _entries(body: Any, container: str) -> Any:
    if not isinstance(body, dict):
        raise UsageError("a request's body is an object, or the list of its messages")
    entries = at(body, container)
    if not is_there(entries):
        raise UsageError(f"this body has no {container!r}; is it of another provider?")
    return entries


def _copied(value: Any) -> Any:
    """A copy in which nothing stands twice, even if the same object did: ids are changed in it."""
    if isinstance(value, dict):
        return {key: _copied(item) for key, item in value.items()}
    return [_copied(item) for item in value] if isinstance(value, list) else value


# --- the answers of each line ---------------------------------------------------------------------


class _Answers:
    """Calls of lines, each with the result that answers it; ids where there must be some."""

    def __init__(
        self, messages: Messages, lines: list[Line], orphans: Orphans, *, has_past: bool
    ) -> None:
        self.report: list[Repair] = []
        self.has_past = has_past
        self._messages, self._lines, self._orphans = messages, lines, orphans
        self._seen: set[str] = set()
        calls = [call for line in lines for call in line.calls]
        results = [result for line in lines for result in line.results]
        numbers, self._strays = paired(
            [Asked(call.line, call.id, call.name) for call in calls],
            _given(lines),
            by_place=not isinstance(messages, Items),
        )
        self._of = {id(c): results[n] for c, n in zip(calls, numbers, strict=True) if n is not None}
        self._order = {id(result): number for number, result in enumerate(results)}
        self._results = results

    def of(self, number: int) -> list[Found]:
        """The results of the calls of that line; calls without one are closed or gone."""
        line = self._lines[number]
        answers = [answer for call in list(line.calls) if (answer := self._answer(call, line))]
        if not self._messages.unique:
            self._seen.clear()  # most wires mind an id that is used twice only within one message
        return answers

    def in_place(
        self, number: int, answers: list[Found], fits: Callable[[list[int]], bool]
    ) -> list[Found]:
        """The answers as they are to stand; told if that is not where they stood."""
        there = [answer for answer in answers if id(answer) in self._order]
        if not fits(sorted(answer.line for answer in there)):
            for answer in there:
                self.note("moved_result", answer, f"its call is in entry {number}")
        elif len(there) == len(answers):  # their own order is as good as that of the calls
            return sorted(answers, key=lambda answer: self._order[id(answer)])
        return answers

    def is_stray(self, result: Found) -> bool:
        return self._order[id(result)] in self._strays

    def drop_strays(self) -> None:
        """Tell what nobody asked for."""
        for number, why in self._strays.items():
            self.note("dropped_result", self._results[number], why)

    def note(self, what: What, one: Found, why: str) -> None:
        self.report.append(Repair(what, one.id or "", one.name or "", f"entry {one.line}", why))

    def _answer(self, call: Found, line: Line) -> Found | None:
        result = self._of.get(id(call))
        if self._messages.even(call.block):
            self.note("evened", call, "its arguments were no object")
        if result is None and not self._closes(call):
            line.calls.remove(call)
            return None
        self._name(call, result)
        return result or Found(call.id, call.name, self._messages.closed(call), call.line)

    def _closes(self, call: Found) -> bool:
        closing = is_closed(self._orphans, f"entry {call.line}", call.id, call.name)
        closing = closing and self._messages.can_close(call)
        self.note("closed" if closing else "dropped_call", call, "it has no result")
        return closing

    def _name(self, call: Found, result: Found | None) -> None:
        """An id where one is missing or stands for another call already."""
        if not self._messages.needs_id:
            return
        if call.id and call.id not in self._seen:
            self._seen.add(call.id)
            if result is not None and not result.id:
                self._messages.name_result(result.block, call.id)
            return
        why = "its id stands for another call, too" if call.id else "it has no id"
        new = _minted(call.id, call.line, self._seen)
        self.note("renamed", call, f"{why}: now {new}")
        self._seen.add(new)
        call.id = new
        self._messages.name_call(call.block, new)
        if result is not None:
            self._messages.name_result(result.block, new)


def _given(lines: list[Line]) -> list[Given]:
    given: list[Given] = []
    after = -1
    for number, line in enumerate(lines):
        after = number if line.is_model else after
        given += [Given(number, after, result.id, result.name) for result in line.results]
    return given


def _minted(id: str | None, line: int, seen: set[str]) -> str:
    # Made from its place: the same body is always mended in the same way.
    for salt in range(len(seen) + 1):
        digest = hashlib.sha256(f"{id}/{line}/{salt}".encode(errors="surrogatepass")).hexdigest()
        if f"call_{digest[:20]}" not in seen:
            return f"call_{digest[:20]}"
    raise AssertionError("as many ids as salts")


# --- entries put together again -------------------------------------------------------------------


def _in_blocks(messages: Blocks, lines: list[Line], answers: _Answers) -> list[Entry]:
    out: list[Entry] = []
    waiting: list[Found] = []  # answers, for the user's message after the calls
    for number, line in enumerate(lines):
        if line.is_model:
            out += _answered(messages, waiting)
            waiting = answers.in_place(number, answers.of(number), _in_the_next(number))
            out += _model_blocks(messages, line)
        else:
            out += _user_blocks(messages, line, waiting, answers)
            waiting = []
    answers.drop_strays()
    return out + _answered(messages, waiting)


def _in_the_next(number: int) -> Callable[[list[int]], bool]:
    return lambda at: set(at) <= {number + 1}


def _model_blocks(messages: Blocks, line: Line) -> list[Entry]:
    content = line.entry.get(messages.key)
    if not isinstance(content, list):
        return [line.entry]
    calls = [call.block for call in line.calls]
    kept = [b for b in content if not _is_call(messages, b) or _is_in(b, calls)]
    return [{**line.entry, messages.key: kept}] if kept else []


def _is_call(messages: Messages, block: Any) -> bool:
    return isinstance(block, dict) and messages.call(block) is not None


def _user_blocks(
    messages: Blocks, line: Line, waiting: list[Found], answers: _Answers
) -> list[Entry]:
    if not waiting and not line.results:
        return [line.entry]
    said = line.entry.get(messages.key)
    content = said if isinstance(said, list) else messages.blocks(line.entry)
    blocks = [answer.block for answer in waiting]
    kept = [b for b in content if not _is_in(b, (result.block for result in line.results))]
    there = [b for b in content if _is_in(b, [*blocks, *kept])]
    if len(there) < len(blocks) + len(kept) or there == blocks + kept:
        there = blocks + kept
    elif messages.results_first:
        answers.note("moved_result", waiting[0], "results stand first in their message")
        there = blocks + kept
    return [{**line.entry, messages.key: there}] if there else []


def _answered(messages: Blocks, waiting: list[Found]) -> list[Entry]:
    blocks = [answer.block for answer in waiting]
    return [{"role": "user", messages.key: blocks}] if blocks else []


def _is_in(block: Any, others: Iterable[Any]) -> bool:
    return any(block is other for other in others)


def _in_lines(messages: Lines, lines: list[Line], answers: _Answers) -> list[Entry]:
    out: list[Entry] = []
    for number, line in enumerate(lines):
        if line.is_model:
            behind = answers.in_place(number, answers.of(number), _directly_behind(number))
            out += _model_line(messages, line) + [answer.block for answer in behind]
        elif not line.results:
            out.append(line.entry)
    answers.drop_strays()
    return out


def _model_line(messages: Lines, line: Line) -> list[Entry]:
    if not line.entry.get(messages.calls):
        return [line.entry]
    kept = [call.block for call in line.calls]
    if kept:
        return [{**line.entry, messages.calls: kept}]
    rest = {key: value for key, value in line.entry.items() if key != messages.calls}
    return [rest] if rest.get("content") else []


def _directly_behind(number: int) -> Callable[[list[int]], bool]:
    return lambda at: at == list(range(number + 1, number + 1 + len(at)))


def _in_items(messages: Items, lines: list[Line], answers: _Answers) -> list[Entry]:
    out: list[Entry] = []
    made: list[Entry] = []  # answers of ours, which wait for the end of a run of calls
    for number, line in enumerate(lines):
        if line.calls:
            made += [answer.block for answer in answers.of(number) if answer.line == number]
            out += _kept_item(messages, line, out)
            continue
        out += made
        made = []
        if not line.results or answers.has_past or not answers.is_stray(line.results[0]):
            out.append(line.entry)
    if not answers.has_past:
        answers.drop_strays()
    return out + made


def _kept_item(messages: Items, line: Line, before: list[Entry]) -> list[Entry]:
    if line.calls:
        return [line.entry]
    while before and messages.leads(before[-1]):
        before.pop()
    return []


_Shape: TypeAlias = Callable[[Any, list[Line], _Answers], list[Entry]]
_SHAPES: Mapping[type[Messages], _Shape] = {
    Blocks: _in_blocks,
    Lines: _in_lines,
    Items: _in_items,
}


def _shape(messages: Messages) -> _Shape:
    for kind, shape in _SHAPES.items():
        if isinstance(messages, kind):
            return shape
    raise EncodeError(f"{type(messages).__name__} is none of Blocks, Lines and Items")
