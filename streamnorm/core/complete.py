"""A class that a provider brings and the base that it builds on come in; what it lacks goes out.

Rule: a base says itself what it wants. That is what it declares and gives no value, and each method
in which it does nothing but raise ``NotImplementedError``; so there is no second list to keep.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from typing import Any, get_args
from weakref import WeakKeyDictionary

from .parser import Parser

__all__ = ["lacking"]


# A class is looked at once, when it is first used.
_known: WeakKeyDictionary[type, tuple[str, ...]] = WeakKeyDictionary()


def lacking(found: type, base: type) -> tuple[str, ...]:
    """The names that ``found`` must have of its own and has not.

    >>> class Silent(Parser):
    ...     name, END, KINDS, decode = "silent", "none", {}, bytes
    >>> lacking(Silent, Parser)
    ('looks_like', 'heading', 'usage')
    """
    if found not in _known:
        missing = [*_undeclared(found), *_undone(found, base)]
        if not missing and issubclass(found, Parser):
            missing = [*_unheard(found)]
        _known[found] = tuple(dict.fromkeys(missing))
    return _known[found]


def _undeclared(found: type) -> Iterator[str]:
    for of in found.__mro__:
        for name in getattr(of, "__annotations__", ()):
            if not name.startswith("_") and not hasattr(found, name):
                yield name


def _undone(found: type, base: type) -> Iterator[str]:
    for of in reversed(found.__mro__):
        for name, said in vars(of).items():
            if not inspect.isroutine(_plain(said)) or name.startswith("_"):
                continue
            mine = _plain(inspect.getattr_static(found, name))
            if _is_empty(mine) or (callable(getattr(base, name, None)) and not callable(mine)):
                yield name


def _plain(said: Any) -> Any:
    return said.__func__ if isinstance(said, classmethod | staticmethod) else said


def _is_empty(said: Any) -> bool:
    """Is ``raise NotImplementedError`` all that it does?"""
    code = getattr(said, "__code__", None)
    return code is not None and code.co_names == ("NotImplementedError",)


def _unheard(parser: type[Parser]) -> Iterator[str]:
    """Types of payload that it reads and has no handler for."""
    if not isinstance(parser.KINDS, Mapping):
        yield "KINDS that are a mapping"
        return
    read = getattr(getattr(parser.decode, "__self__", None), "type", None)
    for kind in get_args(read) or (() if read is None else (read,)):
        if kind not in parser.KINDS:
            yield f"KINDS[{getattr(kind, '__name__', kind)}]"
