"""Which lines a test passes: a file in; its code with a mark before each statement, and the marks, out.

Rule: a mark is one assignment, so that a test takes hardly longer than without. The marks are shared
with the processes that a test forks.
"""

from __future__ import annotations

import ast
import mmap
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FunctionType
from typing import TypeAlias

__all__ = ["Functions", "Passed", "codes_in", "module_of"]

# Where the code that can be exchanged is held: by file, qualified name and line.
Functions: TypeAlias = dict[tuple[str, str, int], list[FunctionType]]

_NAME = "__passed__"


class Passed:
    """The lines of one file."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._lines: list[int] = []  # of each mark: a bit for each line
        self._tree = ast.parse(Path(file).read_bytes())
        for node in list(ast.walk(self._tree)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                self._mark_blocks(node)
        ast.fix_missing_locations(self._tree)
        self._marks = mmap.mmap(-1, len(self._lines) + 1)

    def mark(self, functions: Functions) -> None:
        """Exchange the code of the file's functions, in this process."""
        compiled = compile(self._tree, str(Path(self._file).resolve()), "exec")
        for code in codes_in(compiled):
            for function in functions.get((self._file, code.co_qualname, code.co_firstlineno), ()):
                function.__code__ = code
                function.__globals__[_NAME] = self._marks

    def lines(self) -> int:
        """A bit for each line that was passed since this was asked last."""
        found = 0
        for number, passed in enumerate(self._marks[: len(self._lines)]):
            if passed:
                found |= self._lines[number]
                self._marks[number] = 0
        return found

    def _mark_blocks(self, function: ast.AST) -> None:
        """Statements of a function; those of functions inside it have their own turn."""
        waiting = [function]
        while waiting:
            node = waiting.pop()
            for field in ("body", "orelse", "finalbody", "handlers", "cases"):
                held = getattr(node, field, None)
                if not isinstance(held, list):
                    continue
                inside = [
                    n for n in held if not isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)
                ]
                waiting += inside
                if field not in ("handlers", "cases"):
                    setattr(node, field, [each for n in held for each in (self._mark(n), n)])

    def _mark(self, statement: ast.stmt) -> ast.stmt:
        body = getattr(statement, "body", None) or getattr(statement, "cases", None)
        first = statement.lineno
        last = _first_line(body[0]) - 1 if body else statement.end_lineno or first
        self._lines.append(((1 << (max(first, last) + 1)) - 1) & ~((1 << first) - 1))
        number = len(self._lines) - 1
        (mark,) = ast.parse(f"{_NAME}[{number}] = 1").body
        for node in ast.walk(mark):
            ast.copy_location(node, statement)
        return mark


def _first_line(node: ast.stmt | ast.match_case) -> int:
    return node.pattern.lineno if isinstance(node, ast.match_case) else node.lineno


def codes_in(code: CodeType) -> Iterator[CodeType]:
    """The code objects of all functions in it."""
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from codes_in(constant)


def module_of(file: str) -> str:
    return file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
