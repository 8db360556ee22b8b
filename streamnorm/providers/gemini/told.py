"""A call told value by value: (path, value) pairs in, the JSON text of its arguments out.

Rule: values in order are written as they come. One that belongs into something already written ends
that; the text is then built from all values when the call ends. Values that contradict each other,
or all arguments said at once that do not begin with them, are a ``Conflict``, never a guess.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple, TypeAlias

from ...core.calls import Call
from ...core.parser import UNREADABLE, plain
from ...limits import LimitReached
from ...text.exact import parse
from ...text.written import json_text

__all__ = ["Conflict", "Path", "Told", "path_of"]

Step: TypeAlias = str | int
Path: TypeAlias = tuple[Step, ...]


class Conflict(Exception):
    """The values of one call contradict each other."""


class _Level(NamedTuple):
    """An object or a list that is being written, and the keys or indexes it has."""

    is_list: bool
    seen: set[Step]

    def mark(self, step: Step) -> str | None:
        """What stands before the value at ``step``; None if it cannot stand next."""
        if isinstance(step, int) is not self.is_list or step in self.seen:
            return None
        if self.is_list and step != len(self.seen):
            return None
        comma = "," if self.seen else ""
        self.seen.add(step)
        return comma if self.is_list else f"{comma}{_quoted(step)}:"


class Told:
    """A call whose arguments come as (path, value): each as the JSON text that it adds.

    Values in order are written as they come. One that belongs into something already written ends
    that; the text is then built from all values when the call ends.
    """

    __slots__ = (
        "_in_string", "_levels", "_limit", "_size", "_steps", "_where", "call", "ordered", "promised", "repeats",
        "restated", "values",
    )  # fmt: skip

    def __init__(self, call: Call, limit: int) -> None:
        self.call = call
        self._limit = limit
        self._size = 0  # characters of all values, and of their places where these change
        self.values: list[tuple[Path, str, bool]] = []
        self.ordered = True
        self.promised: set[Path] = set()  # values that are said to go on
        self.repeats = False  # its pieces say its name again
        self.restated = ""  # all arguments at once, beside or after the values
        self._levels: list[_Level] = []
        self._steps: list[Step] = []  # that lead into the levels after the first
        self._where: Path | None = None  # the last value
        self._in_string = False

    def say(self, path: Path, text: str, is_string: bool) -> str:
        """One more value, or one more piece of a string; the text to tell."""
        if self.values and path == self.values[-1][0]:
            path = self.values[-1][0]  # not held once more
        self.values.append((path, text, is_string))
        self._bound(len(text))
        if not self.ordered:
            return ""
        if is_string and self._in_string and path == self._where:
            return text
        between = self._reach(path)
        if between is None:
            self.ordered = False
            return ""
        self._where, self._in_string = path, is_string
        return f'{between}"{text}' if is_string else between + text

    def promise(self, path: Path, goes_on: bool) -> None:
        """Will there be more of the value at ``path``?"""
        if not self.values or path != self.values[-1][0]:
            self._bound(sum(_STEP + len(step) if isinstance(step, str) else _STEP for step in path))
        (self.promised.add if goes_on else self.promised.discard)(path)

    def _bound(self, size: int) -> None:
        """What is told out of order is held, and is not yet the text of any call."""
        self._size += size
        if self._size > self._limit:
            raise LimitReached("arguments_total", self._limit)

    def end(self) -> str:
        """What closes the text; the whole text if it could not be told in order."""
        if self.promised:
            raise Conflict("a value of its arguments was to go on and never ended")
        if not self.ordered:
            return _built(self.values)
        return self._leave(0) + "}" if self._levels else ""

    def is_restated(self, value: Any) -> bool:
        """Are the values told so far a beginning of this one? Else they contradict it."""
        return not self.values or _begins(parse(_built(self.values)), value)

    def _reach(self, path: Path) -> str | None:
        """The text between the last value and the one at ``path``."""
        if not path:
            return None
        shared = 0
        for mine, its in zip(self._steps, path[:-1], strict=False):
            if mine != its:
                break
            shared += 1
        text = self._leave(shared) if self._levels else self._enter(path[0])
        for step, inner in zip(path[shared:], (*path[shared + 1 :], None), strict=True):
            mark = self._levels[-1].mark(step)
            if mark is None:
                return None
            text += mark
            if inner is not None:
                self._steps.append(step)
                text += self._enter(inner)
        return text

    def _enter(self, step: Step) -> str:
        is_list = isinstance(step, int)
        self._levels.append(_Level(is_list, set()))
        return "[" if is_list else "{"

    def _leave(self, depth: int) -> str:
        """Close the string and all levels that lie deeper."""
        text = '"' if self._in_string else ""
        self._in_string = False
        while len(self._levels) > depth + 1:
            text += "]" if self._levels.pop().is_list else "}"
            self._steps.pop()
        return text


def _begins(told: Any, whole: Any) -> bool:
    """Can ``told`` grow into ``whole`` by further values and further pieces of strings?"""
    if isinstance(told, dict) and isinstance(whole, dict):
        return all(key in whole and _begins(value, whole[key]) for key, value in told.items())
    if isinstance(told, list) and isinstance(whole, list) and len(told) <= len(whole):
        return all(map(_begins, told, whole))
    if isinstance(told, str) and isinstance(whole, str):
        return whole.startswith(told)
    return type(told) is type(whole) and bool(told == whole)


class _Leaf(NamedTuple):
    texts: list[str]
    is_string: bool


_STEP = 32  # characters that a step of a path counts as much as, beside its own
Tree: TypeAlias = dict[Step, Any]  # step -> Tree or _Leaf


def _built(values: list[tuple[Path, str, bool]]) -> str:
    """The JSON text of values in any order."""
    top: Tree = {}
    for path, text, is_string in values:
        tree = top
        for step in ("$", *path)[:-1]:
            tree = tree.setdefault(step, {})
            if isinstance(tree, _Leaf):
                raise Conflict(f"a value stands both at and below {step!r}")
        last = path[-1] if path else "$"
        leaf = tree.setdefault(last, _Leaf([], is_string))
        if not isinstance(leaf, _Leaf) or leaf.is_string is not is_string:
            raise Conflict(f"two kinds of value at {last!r}")
        if not is_string and leaf.texts and leaf.texts != [text]:
            raise Conflict(f"two values at {last!r}")
        if is_string or not leaf.texts:
            leaf.texts.append(text)
    return _written(top["$"])


def _written(node: Any) -> str:
    if isinstance(node, _Leaf):
        text = "".join(node.texts)
        return f'"{text}"' if node.is_string else text
    if all(isinstance(step, str) for step in node):
        return "{" + ",".join(f"{_quoted(k)}:{_written(v)}" for k, v in node.items()) + "}"
    if node.keys() != set(range(len(node))):
        raise Conflict("a list with gaps or keys in it")
    return "[" + ",".join(_written(node[index]) for index in range(len(node))) + "]"


_step = re.compile(
    r"""\.([^.\[\]'"$][^.\[\]]*)"""  # .name
    r"""|\[(\d{1,9})\]"""  # [0]
    r"""|\['((?:[^'\\]|\\.)*)'\]|\["((?:[^"\\]|\\.)*)"\]""",  # ['odd name']
    re.S,
)
MAX_DEPTH = 200  # beyond what arguments may have, and short of Python's own limit


def path_of(quoted: str) -> Path:
    """The steps of a path: ``$.a[0]['b c']`` -> ("a", 0, "b c")."""
    try:
        text = plain(quoted.encode())
    except UNREADABLE:
        text = None
    if not isinstance(text, str) or text[:1] != "$":
        raise Conflict("a value without a path")
    at = 1
    steps: list[Step] = []
    while at < len(text):
        match = _step.match(text, at)
        if match is None or len(steps) == MAX_DEPTH:
            raise Conflict(f"a path that we cannot read: {text[:80]!r}")
        name, index, *in_quotes = match.groups()
        key = next((k for k in in_quotes if k is not None), None)
        steps.append(int(index) if index else name or re.sub(r"\\(.)", r"\1", key or ""))
        at = match.end()
    return tuple(steps)


def _quoted(text: Step) -> str:
    return json_text(text)
