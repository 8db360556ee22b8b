"""The guards of a file: Python source in, mutants out.

A mutant is the source with one guard changed:

    never, always   a condition (of ``if``, a comprehension, or one that is returned or kept)
    without         one operand of ``and``/``or``; a statement that speaks against a call; a row of a table
    boundary        ``<`` for ``<=`` and the like

and, in files that are looked at closely:

    other           another number, truth value, sign, or ``min`` for ``max``
    without         any statement that does something; an argument that has a default

Rule: a condition is still asked, as it may bind a name; only its answer is changed. What does nothing
but write notes and logs is no guard.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple, TypeAlias, cast

__all__ = ["Mutant", "Scope", "mutants_of"]

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef

# What is said for or against a call, or ends a stream.
VERBS = {
    "alias", "announce_end", "astray", "break_all", "close", "deny", "end_of_calls", "end_turn", "extend",
    "fail", "fill", "measure", "merge_object", "restarts", "restate", "settle", "taint", "taint_grown",
    "taint_open", "_break", "_fail", "_doubt", "_bound", "_mint_id", "_taint_at",
}  # fmt: skip
MARKS = {
    "contradictions", "denied", "latches", "lossy", "lost", "mended", "minted", "orphan", "overflow",
    "reason", "renamed", "rival", "stated", "state", "taint", "wire_id", "_failure", "_loss",
}  # fmt: skip
TABLES = {
    "CALL_KEYS", "CALL_TEXTS", "CALL_WORDS", "ERRORS", "FAILED", "GOING_ON", "INPUTS", "OF_CALLS",
    "REASONS", "TABLE", "TEXTS", "_ABOUT_CALLS", "_ENOUGH", "_INCOMPLETE", "NORMAL", "_NOT_AN_ID",
}  # fmt: skip
_SILENT = {"note", "log", "debug", "info", "warning"}
_NEXT = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt}
_OTHER_SIGN = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.FloorDiv: ast.Mult}
_OTHER_NAME = {"min": "max", "max": "min", "any": "all", "all": "any"}


class Scope(NamedTuple):
    """Which functions of a file are looked at: all, or those that are or speak of one of these words."""

    words: frozenset[str] | None = None
    closely: bool = False  # every statement, argument and number of them

    @classmethod
    def about(cls, *words: str) -> Scope:
        return cls(frozenset(words))


# Functions that decide, without saying any of that, what is read, whose it is, and what ends when.
DECIDE = {
    "calls_named", "end_of_calls", "end_of_input", "means", "_calls_something", "_chunk", "_end_if_over",
    "_entry_of", "_evened", "_fill_from_start", "_frame", "_only_one", "_payload", "_repaired", "_says",
}  # fmt: skip
EVIDENCE = Scope(frozenset(VERBS | MARKS))
READING = Scope(frozenset(VERBS | MARKS | DECIDE | {"open", "raise", "unfinished", "void"}))


class Mutant(NamedTuple):
    """One change. ``edit`` makes it in ``tree``, for good: one process tries one mutant."""

    file: str
    lines: range  # where a test must pass to see it; empty: anywhere
    function: str  # its qualified name; of a table: its class, or nothing
    first_line: int
    change: str
    edit: Callable[[], None]
    tree: ast.Module
    table: str = ""

    @property
    def key(self) -> tuple[str, str, str]:
        """What names it as long as the code around it stays."""
        return self.file, self.function or self.table, self.change

    def __str__(self) -> str:
        return f"{self.file}:{self.lines.start or self.first_line} {self.function} {self.change}"


def mutants_of(file: str, source: str, scope: Scope) -> list[Mutant]:
    """Every mutant of a file; of two that read alike, the second is numbered."""
    tree = ast.parse(source)
    chosen = _functions(tree) if scope.words is None else _chosen(tree, scope.words)
    found = [
        m for name, node in chosen for m in _of_function(file, tree, name, node, scope.closely)
    ]
    found += _of_tables(file, tree)
    seen: Counter[tuple[str, str, str]] = Counter()
    numbered = []
    for mutant in found:
        seen[mutant.key] += 1
        times = seen[mutant.key]
        numbered.append(mutant if times == 1 else _again(mutant, times))
    return numbered


def _again(mutant: Mutant, times: int) -> Mutant:
    return mutant._replace(change=f"{mutant.change} #{times}")


# --- which functions ------------------------------------------------------------------------------


def _functions(tree: ast.Module) -> list[tuple[str, Function]]:
    """The functions and methods of a module; those inside a function are part of it."""
    found: list[tuple[str, Function]] = []
    for node in tree.body:
        if isinstance(node, Function):
            found.append((node.name, node))
        elif isinstance(node, ast.ClassDef):
            inner = (n for n in node.body if isinstance(n, Function))
            found += [(f"{node.name}.{n.name}", n) for n in inner]
    return found


def _chosen(tree: ast.Module, words: frozenset[str]) -> list[tuple[str, Function]]:
    """Functions that speak of the words, and those of this file that their conditions ask."""
    every = _functions(tree)
    asked: set[str] = set()
    chosen: dict[str, Function] = {}
    while True:
        more = {
            name: node for name, node in every
            if name not in chosen and ({node.name, *_names(node)} & words or node.name in asked)
        }  # fmt: skip
        if not more:
            return [(name, node) for name, node in every if name in chosen]
        chosen |= more
        for node in more.values():
            asked |= {name for test in _tests(node) for name in _called(test)}


def _names(node: ast.AST) -> set[str]:
    """Names that are called or written to; a condition on one is no act of its own."""
    found = _called(node)
    for child in ast.walk(node):
        if isinstance(child, ast.Attribute) and isinstance(child.ctx, ast.Store):
            found.add(child.attr)
        elif isinstance(child, ast.Raise):
            found.add("raise")
    return found


def _called(node: ast.AST) -> set[str]:
    functions = [child.func for child in ast.walk(node) if isinstance(child, ast.Call)]
    return {f.attr for f in functions if isinstance(f, ast.Attribute)} | {
        f.id for f in functions if isinstance(f, ast.Name)
    }


def _tests(node: ast.AST) -> Iterator[ast.expr]:
    for child in ast.walk(node):
        if isinstance(child, ast.If | ast.IfExp):
            yield child.test
        elif isinstance(child, ast.BoolOp):
            yield child


# --- the changes of a function --------------------------------------------------------------------


class _Edits:
    """Collects the mutants of one function."""

    def __init__(self, file: str, tree: ast.Module, name: str, node: Function) -> None:
        self.found: list[Mutant] = []
        self._file, self._tree, self._name = file, tree, name
        self._first_line = min([node.lineno, *(d.lineno for d in node.decorator_list)])

    def add(self, at: ast.stmt | ast.expr, change: str, edit: Callable[[], None]) -> None:
        lines = range(at.lineno, (at.end_lineno or at.lineno) + 1)
        mutant = Mutant(
            self._file, lines, self._name, self._first_line, change, edit, self._tree
        )  # fmt: skip
        self.found.append(mutant)

    def constant(self, parent: ast.AST, field: str, node: ast.expr, index: int | None) -> None:
        """The condition at this place answers no, and yes."""
        text = _short(node)
        for change, op, value in (("never", ast.And(), False), ("always", ast.Or(), True)):
            new = ast.BoolOp(op, [node, ast.Constant(value)])
            self.add(node, f"{change}: {text}", _set(parent, field, index, new))

    def operand(self, node: ast.BoolOp, index: int) -> None:
        held = node.values[index]
        op, value = (ast.Or(), True) if isinstance(node.op, ast.And) else (ast.And(), False)
        word = "and" if isinstance(node.op, ast.And) else "or"
        new = ast.BoolOp(op, [held, ast.Constant(value)])
        change = f"without: {word} {_short(held)}"
        self.add(held, change, _set(node, "values", index, new))

    def boundary(self, node: ast.Compare) -> None:
        for index, op in enumerate(node.ops):
            if type(op) in _NEXT:
                new = _NEXT[type(op)]()
                self.add(node, f"boundary: {_short(node)}", _set(node, "ops", index, new))

    def other(self, parent: ast.AST, field: str, index: int | None, node: ast.expr) -> None:
        """Another number, truth value, sign or function in the place of this one."""
        change = f"other: {_short(node)}"
        match node:
            case ast.Constant(value=value) if type(value) is bool:
                new: ast.AST = ast.Constant(not value)
            case ast.Constant(value=value) if type(value) is int:
                new = ast.Constant(value + 1)
            case ast.BinOp(op=op) if type(op) in _OTHER_SIGN:
                parent, field, index, new = node, "op", None, _OTHER_SIGN[type(op)]()
            case ast.Name(id=name) if name in _OTHER_NAME:
                new = ast.Name(_OTHER_NAME[name], ast.Load())
            case _:
                return
        if not isinstance(node, ast.BinOp):
            change += f" in {_short(parent)}"
        self.add(node, change, _set(parent, field, index, new))

    def arguments(self, node: ast.Call) -> None:
        """One argument less: where it has no default, each test there notices."""
        for keyword in node.keywords:
            if keyword.arg is not None:
                change = f"without: {_short(keyword)} of {_short(node.func)}"
                self.add(node, change, partial(node.keywords.remove, keyword))
        if len(node.args) > 1 and not node.keywords and not isinstance(node.args[-1], ast.Starred):
            change = f"without: {_short(node.args[-1])} of {_short(node.func)}"
            self.add(node, change, cast(Callable[[], None], node.args.pop))

    def delete(self, parent: ast.AST, field: str, index: int, node: ast.stmt) -> None:
        never = ast.If(
            ast.Constant(False), [node], []
        )  # still there, so that its names stay what they are
        self.add(node, f"without: {_short(node)}", _set(parent, field, index, never))


def _set(parent: ast.AST, field: str, index: int | None, new: ast.AST) -> Callable[[], None]:
    def edit() -> None:
        if index is None:
            ast.copy_location(new, getattr(parent, field))
            setattr(parent, field, new)
        else:
            old = getattr(parent, field)[index]
            if hasattr(old, "lineno"):
                ast.copy_location(new, old)
            getattr(parent, field)[index] = new
        ast.fix_missing_locations(new)

    return edit


def _of_function(
    file: str, tree: ast.Module, name: str, node: Function, closely: bool
) -> list[Mutant]:
    edits = _Edits(file, tree, name, node)
    for statement in node.body:
        _visit(statement, edits)
    if closely:
        for index, statement in enumerate(node.body):
            _look_closely(node, "body", index, statement, edits)
    for parent in ast.walk(node):
        _statements(parent, edits, whole=parent is node, closely=closely)
    return sorted(edits.found, key=lambda m: (m.lines.start, m.lines.stop))


def _visit(node: ast.AST, edits: _Edits) -> None:
    if isinstance(node, ast.If) and _is_silent(node.body) and _is_silent(node.orelse):
        return
    if isinstance(node, ast.Expr) and _is_silent([node]):
        return
    if isinstance(node, ast.Raise):
        return  # what it says is no guard
    match node:
        case ast.If(test=test) | ast.IfExp(test=test):
            edits.constant(node, "test", test, None)
        case ast.comprehension(ifs=[_, *_] as tests):
            for index, test in enumerate(tests):
                edits.constant(node, "ifs", test, index)
        case ast.BoolOp(values=values):
            for index, value in enumerate(values):
                if not _is_nothing(value):
                    edits.operand(node, index)
        case ast.Compare():
            edits.boundary(node)
        case ast.Return(value=value) | ast.Assign(value=value) if _is_condition(value):
            edits.constant(node, "value", value, None)  # type: ignore[arg-type]
    for child in ast.iter_child_nodes(node):
        _visit(child, edits)


def _look_closely(
    parent: ast.AST, field: str, index: int | None, node: ast.AST, edits: _Edits
) -> None:
    if _is_mute(node):
        return
    if isinstance(node, ast.expr):
        edits.other(parent, field, index, node)
    if isinstance(node, ast.Call):
        edits.arguments(node)
    if isinstance(node, ast.AugAssign) and type(node.op) in _OTHER_SIGN:
        new = _OTHER_SIGN[type(node.op)]()
        edits.add(node, f"other: {_short(node)}", _set(node, "op", None, new))
    for name, value in ast.iter_fields(node):
        if isinstance(value, list):
            for at, each in enumerate(value):
                if isinstance(each, ast.AST):
                    _look_closely(node, name, at, each, edits)
        elif isinstance(value, ast.AST) and name not in ("annotation", "returns"):
            _look_closely(node, name, None, value, edits)


def _is_mute(node: ast.AST) -> bool:
    """What raises, or does nothing but write notes and logs."""
    match node:
        case ast.Raise() | ast.Call(func=ast.Attribute(attr="note" | "log" | "is_on")):
            return True
        case ast.If(body=body, orelse=orelse):
            return _is_silent(body) and _is_silent(orelse)
    return False


def _statements(parent: ast.AST, edits: _Edits, *, whole: bool, closely: bool) -> None:
    """Statements that speak against a call; alone under their condition, that one is asked already."""
    for field in ("body", "orelse", "finalbody"):
        block = getattr(parent, field, None)
        if not isinstance(block, list):
            continue
        alone = isinstance(parent, ast.If) and len(block) == 1
        for index, node in enumerate(block):
            speaks = _speaks(node) or (closely and _acts(node))
            if speaks and not alone and not (whole and len(block) == 1):
                edits.delete(parent, field, index, node)


def _speaks(node: ast.stmt) -> bool:
    match node:
        case ast.Raise(exc=exc):
            return exc is None or ast.unparse(exc) != "NotImplementedError"
        case ast.Expr(value=ast.Call()):
            return bool(_called(node) & VERBS)
        case ast.Assign(targets=targets):
            stored = [t for target in targets for t in ast.walk(target)]
        case ast.AugAssign(target=target):
            stored = [target]
        case _:
            return False
    return any(isinstance(t, ast.Attribute) and t.attr in MARKS for t in stored)


def _acts(node: ast.stmt) -> bool:
    """Does it change something that outlives it?"""
    match node:
        case ast.Expr(value=ast.Call()):
            return not _is_silent([node])
        case ast.Assign(targets=targets):
            return not any(isinstance(target, ast.Name) for target in targets)
    return isinstance(node, ast.AugAssign | ast.Delete)


def _is_silent(block: list[ast.stmt]) -> bool:
    """Nothing but notes and logs."""
    return all(
        isinstance(node, ast.Pass)
        or (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Call)
            and isinstance(node.value.func, ast.Attribute)
            and node.value.func.attr in _SILENT
        )
        for node in block
    )


def _is_condition(node: ast.expr | None) -> bool:
    match node:
        case ast.Compare() | ast.UnaryOp(op=ast.Not()):
            return True
        case ast.Call(func=ast.Name(id="any" | "all" | "bool" | "isinstance")):
            return True
    return False


def _is_nothing(node: ast.expr) -> bool:
    """What stands in where there is nothing: without it all is as before."""
    return isinstance(node, ast.Constant) or ast.unparse(node) in ("()", "[]", "{}")


# --- the rows of tables ---------------------------------------------------------------------------


def _of_tables(file: str, tree: ast.Module) -> list[Mutant]:
    found: list[Mutant] = []
    for owner, body in [("", tree.body), *_classes(tree)]:
        for node in body:
            if (name := _assigned(node)) in TABLES:
                for value in _literals(node):
                    found += _rows(file, tree, owner, name, value)
    return found


def _classes(tree: ast.Module) -> list[tuple[str, list[ast.stmt]]]:
    return [(node.name, node.body) for node in tree.body if isinstance(node, ast.ClassDef)]


def _assigned(node: ast.stmt) -> str:
    match node:
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
            return name
    return ""


def _literals(node: ast.stmt) -> Iterator[ast.Set | ast.Dict | ast.Tuple]:
    """The table itself: not what stands inside its rows."""
    value = getattr(node, "value", None)
    if isinstance(value, ast.Set | ast.Dict | ast.Tuple):
        yield value


def _rows(
    file: str, tree: ast.Module, owner: str, name: str, table: ast.Set | ast.Dict | ast.Tuple
) -> Iterator[Mutant]:
    rows = table.keys if isinstance(table, ast.Dict) else table.elts
    for index, row in enumerate(rows):
        if row is None or isinstance(row, ast.Starred):
            continue  # the rows of another table
        nothing = range(0)
        edit = _without_row(table, index)
        change = f"without: {name} {_short(row)}"
        yield Mutant(file, nothing, owner, row.lineno, change, edit, tree, name)


def _without_row(table: ast.Set | ast.Dict | ast.Tuple, index: int) -> Callable[[], None]:
    def edit() -> None:
        if isinstance(table, ast.Dict):
            del table.keys[index], table.values[index]
        else:
            del table.elts[index]
            if isinstance(table, ast.Set) and not table.elts:
                table.elts.append(ast.Starred(ast.Tuple([], ast.Load()), ast.Load()))
                ast.fix_missing_locations(table)

    return edit


def _short(node: ast.AST) -> str:
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= 100 else f"{text[:97]}..."
