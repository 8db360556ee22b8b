"""Numbers come in; the pieces of which tables and plots are made go out: links, bars, columns.

Rule: every number is a link to the streams behind it, ``#facet=value&…``. Plots repeat what the
table around them says: they are for the eye and the mouse, and hidden from readers of the screen.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple
from urllib.parse import quote

from .markup import Child, Html, h
from .number import Figure
from .tally import FACETS

__all__ = [
    "ENDS",
    "Piece",
    "address",
    "bar",
    "columns",
    "grouped",
    "head",
    "legend",
    "linked",
    "number",
    "percent",
    "plural",
    "table",
]  # fmt: skip

HEIGHT = 14  # of a bar, in pixels
TALL = 28  # of columns
ENDS = " … "
LEAST = 2.5  # percent: what is there can be seen


class Piece(NamedTuple):
    """A piece of a bar, or a column."""

    figure: Figure
    tags: dict[str, str]
    style: str
    says: str  # in words


def grouped(number: int) -> str:
    """Digits by threes.

    >>> grouped(1204)
    '1,204'
    """
    return f"{number:,}"


def plural(number: int, word: str) -> str:
    """
    >>> plural(1, "call"), plural(1204, "call")
    ('1 call', '1,204 calls')
    """
    return f"{number:,} {word}{'' if number == 1 else 's'}"


def percent(part: int, whole: int) -> str:
    """
    >>> percent(1, 3), percent(1, 10_000), percent(0, 0)
    ('33 %', '< 1 %', '0 %')
    """
    share = 100 * part / whole if whole else 0
    return "< 1 %" if 0 < share < 1 else "> 99 %" if 99 < share < 100 else f"{share:.0f} %"


def address(tags: dict[str, str]) -> str:
    """Where the streams with these tags are.

    >>> address({"call": "broken", "provider": "a&b"})
    '#provider=a%26b&call=broken'
    """
    told = "&".join(f"{one}={quote(tags[one], safe='')}" for one in FACETS if one in tags)
    return f"#{told}" if told else "#streams"


def number(figure: Figure, tags: dict[str, str], of: str = "") -> Html:
    """A number that leads to the streams behind it."""
    return linked(grouped(figure.total), figure, tags, of)


def linked(text: Child, figure: Figure, tags: dict[str, str], of: str = "") -> Html:
    """Words that do so; without any streams they are only words."""
    if not figure.streams:
        return h("span", {"class": "none"}, text)
    behind = f"{of + ': ' if of else ''}in {plural(figure.streams, 'stream')}"
    return h("a", {"class": "n", "href": address(tags), "data-streams": figure.streams,
                   "title": behind}, text)  # fmt: skip


def bar(pieces: Sequence[Piece], whole: float) -> Html:
    """One bar of several pieces; as long as it is wide if they sum up to ``whole``."""
    told = [piece for piece in pieces if piece.figure.total]
    wide = [max(LEAST, 100 * piece.figure.total / (whole or 1)) for piece in told]
    fits = min(1.0, 100 / (sum(wide) or 1))
    drawn, at = [], 0.0
    for piece, width in zip(told, wide, strict=True):
        drawn.append(_piece(piece, at, width * fits, 0, HEIGHT))
        at += width * fits
    return _drawing("bar", HEIGHT, drawn)


def columns(pieces: Sequence[Piece]) -> Html:
    """One column for each; the tallest is as tall as there is place."""
    most = max((piece.figure.total for piece in pieces), default=0) or 1
    wide = 100 / (len(pieces) or 1)
    drawn = [_ground()]
    for place, piece in enumerate(pieces):
        if piece.figure.total:
            tall = max(2.0, (TALL - 2) * piece.figure.total / most)
            drawn.append(_piece(piece, place * wide, wide, TALL - tall, tall))
    return _drawing("columns", TALL, drawn)


def _ground() -> Html:
    y = f"{TALL - 0.5}"
    return h("line", {"class": "ground", "x1": "0", "x2": "100%", "y1": y, "y2": y})


def _piece(piece: Piece, x: float, width: float, y: float, height: float) -> Html:
    title = f"{piece.says}: {grouped(piece.figure.total)}"
    if piece.figure.streams != piece.figure.total:
        title += f", in {plural(piece.figure.streams, 'stream')}"
    shape = h(
        "rect", {"class": f"fill-{piece.style}", "x": f"{x:.2f}%", "width": f"{width:.2f}%",
                 "y": f"{y:.1f}", "height": f"{height:.1f}"},
        h("title", None, title),
    )  # fmt: skip
    return h(
        "a",
        {"href": address(piece.tags), "data-streams": piece.figure.streams, "tabindex": "-1"},
        shape,
    )


def _drawing(name: str, height: int, shapes: Iterable[Html]) -> Html:
    return h("svg", {"class": name, "width": "100%", "height": height, "aria-hidden": "true",
                     "focusable": "false"}, shapes)  # fmt: skip


def legend(*entries: tuple[str, str]) -> Html:
    """What the colours mean."""
    return h("p", {"class": "key"}, [
        h("span", None, h("i", {"class": f"dot-{style}"}), word) for style, word in entries
    ])  # fmt: skip


def head(*names: str) -> Html:
    """The head of a table: a name that ends in ``#`` is of numbers, one that begins with ``~`` of plots,
    and says what stands at their ends."""
    return h("thead", None, h("tr", None, [_head(name) for name in names]))


def _head(name: str) -> Html:
    if name.startswith("~"):
        ends = name[1:].split(ENDS) if name[1:] else []
        told = [h("span", None, end) for end in ends] or h("span", {"class": "unseen"}, "Plot")
        return h("th", {"scope": "col", "class": "plot"}, h("div", {"class": "ends"}, told))
    is_number = name.endswith("#")
    kind = {"class": "num", "data-sort": "number"} if is_number else {"data-sort": "text"}
    return h("th", {"scope": "col", **kind}, name.removesuffix("#"))


def table(
    label: str, heads: Html, rows: Sequence[Html], *, kind: str = "", first: int = 15
) -> Html:
    """A table in a box of its own; of many rows the first are seen at once."""
    return h("div", {"class": "box", "role": "group", "aria-label": label}, h(
        "table", {"class": f"grid {kind}".strip(), "data-first": first},
        h("caption", {"class": "unseen"}, label), heads, h("tbody", None, rows),
    ))  # fmt: skip
