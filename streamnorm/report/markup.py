"""Tags, attributes and texts come in; HTML goes out.

Rule: a text is escaped here, in this one place, unless it is ``Html``, which only ``h`` and
``joined`` make. No attribute is a script or a style: the page allows neither.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import TypeAlias

from ..text.shown import clean

__all__ = ["Child", "Html", "h", "joined"]

_EMPTY = {"input", "link", "meta"}  # elements without an end tag


class Html(str):
    """HTML that is written already."""

    __slots__ = ()


Child: TypeAlias = "str | int | Iterable[Child] | None"
Attribute: TypeAlias = "str | int | bool | None"


def h(name: str, attributes: dict[str, Attribute] | None = None, *children: Child) -> Html:
    """One element.

    >>> h("a", {"href": "#x", "title": '"', "hidden": False}, "<b>", 1)
    '<a href="#x" title="&quot;">&lt;b&gt;1</a>'
    """
    told = "".join(_attribute(key, value) for key, value in (attributes or {}).items())
    if name in _EMPTY:
        return Html(f"<{name}{told}>")
    return Html(f"<{name}{told}>{joined(children)}</{name}>")


def joined(children: Iterable[Child]) -> Html:
    """Several, one after the other."""
    return Html("".join(map(_child, children)))


def _child(child: Child) -> str:
    if child is None:
        return ""
    if isinstance(child, Html):
        return child
    if isinstance(child, str | int):
        return escape(clean(str(child), newlines=True))
    return joined(child)


def _attribute(name: str, value: Attribute) -> str:
    if value is None or value is False:
        return ""
    return f" {name}" if value is True else f' {name}="{escape(clean(str(value)))}"'
