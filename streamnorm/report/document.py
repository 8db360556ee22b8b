"""What was counted comes in; the page goes out: one HTML file that needs nothing beside it.

    page = written(tally.summary(), title="My streams", places=["recordings"], made="2026-11-19 20:00 UTC")

Rule: no network and no script but ours, by a policy that the page itself states: the hashes of what is
in it. The streams are data in it, in which no byte can end a script or start a tag.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import quote

from .. import __version__
from ..text.written import safe_json
from .markup import Child, Html, h, joined
from .plots import address, grouped, linked, plural
from .sections import AUTO, SECTIONS, said, servers
from .tally import LISTED, NO_DATE, Summary

__all__ = ["in_a_sentence", "is_report", "written"]

# What every report begins with: by this it is told from other files.
_MARK = (
    '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
    '<meta name="generator" content="streamnorm report"'
)
_HERE = Path(__file__).parent / "static"
_PAGE = Path(__file__).parent.parent / "page" / "static"  # the colours and the type of our page
MOST_PLACES = 8


def written(summary: Summary, *, title: str, places: Sequence[str] = (), made: str = "") -> str:
    """The page. ``made``: when."""
    style = _read(_PAGE / "base.css") + _read(_HERE / "report.css")
    theme, script = _read(_PAGE / "theme.js"), _read(_HERE / "report.js")
    data = safe_json(_data(summary)).decode()
    head = [
        h("meta", {"http-equiv": "Content-Security-Policy", "content": _policy([style], [theme, script])}),
        h("meta", {"name": "viewport", "content": "width=device-width, initial-scale=1"}),
        h("meta", {"name": "color-scheme", "content": "light dark"}),
        h("title", None, title),
        h("link", {"rel": "icon", "href": _icon()}),
        h("style", None, Html(style)),
        h("script", None, Html(theme)),
    ]  # fmt: skip
    body = [
        h("a", {"class": "skip", "href": "#main"}, "Skip to the content"),
        _top(summary),
        h("main", {"id": "main", "tabindex": "-1"}, _overview(summary, title, places, made),
          h("div", {"class": "panels"}, [make(summary) for _, make in SECTIONS.values()]), _streams(summary)),
        h("footer", {"class": "foot"}, _caps(summary)),
        h("div", {"id": "status", "class": "unseen", "role": "status", "aria-live": "polite"}),
        h("script", {"type": "application/json", "id": "data"}, Html(data)),
        h("script", None, Html(script)),
    ]  # fmt: skip
    return f"{_MARK}>{joined(head)}</head>\n<body>{joined(body)}</body></html>\n"


def is_report(path: Path) -> bool:
    """Is this file one, and so one that another may replace?"""
    try:
        with path.open("rb") as file:
            return file.read(len(_MARK)) == _MARK.encode()
    except OSError:  # who may not read it does not know
        return False


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def _policy(styles: Sequence[str], scripts: Sequence[str]) -> str:
    """What the browser may do with the page: show it, and run these."""
    return (
        f"default-src 'none'; style-src {_hashes(styles)}; script-src {_hashes(scripts)}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _hashes(texts: Sequence[str]) -> str:
    digests = (base64.b64encode(sha256(text.encode()).digest()).decode() for text in texts)
    return " ".join(f"'sha256-{digest}'" for digest in digests)


def _icon() -> str:
    return "data:image/svg+xml," + quote((_PAGE / "icon.svg").read_text(encoding="utf-8").strip())


# --- the frame ------------------------------------------------------------------------------------


def _top(summary: Summary) -> Html:
    names = {name: title for name, (title, _) in SECTIONS.items()}
    if not summary.of(end="unreadable").streams:
        del names["unreadable"]
    names["streams"] = "Streams"
    links = [h("a", {"href": f"#{name}"}, title) for name, title in names.items()]
    return h(
        "header", {"class": "top"},
        h("a", {"class": "mark", "href": "#main", "aria-label": "streamnorm report, to the top"}, _mark(),
          h("span", None, "streamnorm")),
        h("nav", {"aria-label": "Sections"}, links),
        h("div", {"class": "top-end"},
          h("button", {"id": "theme-button", "type": "button", "class": "quiet", "hidden": True}, "Auto")),
    )  # fmt: skip


def _mark() -> Html:
    return h(
        "svg", {"width": 26, "height": 26, "viewBox": "0 0 26 26", "aria-hidden": "true"},
        h("path", {"class": "mark-wire", "d": "M2 7c4 0 4 4 8 4M2 13h8M2 19c4 0 4-4 8-4"}),
        h("circle", {"class": "mark-knot", "cx": "13", "cy": "13", "r": "3.4"}),
        h("path", {"class": "mark-line", "d": "M16.4 13H24"}),
    )  # fmt: skip


# --- in short -------------------------------------------------------------------------------------


def _overview(summary: Summary, title: str, places: Sequence[str], made: str) -> Html:
    return h(
        "section", {"id": "overview", "aria-labelledby": "title"},
        h("h1", {"id": "title"}, title),
        h("p", {"class": "lead"}, in_a_sentence(summary)),
        h("dl", {"class": "facts"}, [_fact(name, told) for name, told in _facts(summary, places, made)]),
        h("ul", {"class": "tiles"}, _tiles(summary)),
    )  # fmt: skip


def in_a_sentence(summary: Summary) -> str:
    """What is on the page."""
    unread = summary.of(end="unreadable").streams
    streams = summary.of().streams - unread
    also = f" {plural(unread, 'file')} could not be read." if unread else ""
    if not streams:
        return "No streams: there is nothing to count." + also
    providers = len([name for name in summary.values("provider") if name != AUTO])
    whole, broken = summary.of(call="whole").total, summary.of(call="broken").total
    calls = (
        f"{plural(whole + broken, 'call')}, {grouped(broken)} broken"
        if whole + broken
        else "no calls"
    )
    odd = sum(1 for one in servers(summary) if one.rank)
    did = f"{plural(odd, 'server')} did something odd" if odd else "no server did anything odd"
    return (
        f"{plural(streams, 'stream')} from {plural(providers, 'provider')}; {calls}; {did}.{also}"
    )


def _fact(name: str, told: Child) -> Html:
    return h("div", None, h("dt", None, name), h("dd", None, told))


def _facts(summary: Summary, places: Sequence[str], made: str) -> list[tuple[str, Child]]:
    shown = ", ".join(places[:MOST_PLACES])
    if len(places) > MOST_PLACES:
        shown += f" and {grouped(len(places) - MOST_PLACES)} more"
    forms = [
        [linked(f"{grouped(summary.of(form=form).streams)} {form}", summary.of(form=form), {"form": form})]
        for form in summary.values("form")
    ]  # fmt: skip
    between: list[Child] = []
    for form in forms:
        between += [", " if between else "", form]
    made_by = f"by streamnorm {__version__}" + (f", {made}" if made else "")
    return [
        *([("Read", h("span", {"title": ", ".join(places)}, shown))] if places else []),
        *([("Kinds", between)] if forms else []),
        ("Recorded", _captured(summary)),
        ("Size", f"{_bytes(summary.sums.get('bytes', 0))}, {plural(summary.sums.get('events', 0), 'event')}"),
        *([("Passed over", passed)] if (passed := passed_over(summary)) else []),
        ("Made", made_by),
    ]  # fmt: skip


def passed_over(summary: Summary) -> str:
    """What lies beside streams and is none: events of ours."""
    count = summary.sums.get("passed", 0)
    return f"{plural(count, 'file')} with events of streamnorm, which are no streams" * (count > 0)


def _captured(summary: Summary) -> str:
    if summary.first is None or summary.last is None:
        return "no stream says when"
    first, last = summary.first.replace("T", " "), summary.last.replace("T", " ")
    told = f"{first} UTC" if first == last else f"{first} to {last} UTC"
    without = summary.of(when=NO_DATE).streams
    return told + (f"; {grouped(without)} do not say when" if without else "")


def _bytes(count: int) -> str:
    """
    >>> _bytes(812), _bytes(5_300_000)
    ('812 bytes', '5.3 MB')
    """
    for size, unit in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return plural(count, "byte")


def _tiles(summary: Summary) -> list[Html]:
    tiles: list[tuple[str, dict[str, str], str]] = [
        ("calls that are whole", {"call": "whole"}, "good"),
        ("broken calls", {"call": "broken"}, "bad"),
        ("streams that failed", {"end": "failed"}, "bad"),
        ("calls without an id", {"id": "synthetic"}, "mint"),
        ("affected streams", {"wrong": "any"}, "warn"),
        ("files not read", {"end": "unreadable"}, "bad"),
    ]  # fmt: skip
    every = summary.of()
    streams = every.streams - summary.of(end="unreadable").streams
    first = _tile(grouped(streams), "streams", every.streams, {}, "plain")
    return [first, *(_tile(grouped(summary.of(**tags).total), word, summary.of(**tags).streams, tags, style)
                     for word, tags, style in tiles)]  # fmt: skip


def _tile(count: str, word: str, streams: int, tags: dict[str, str], style: str) -> Html:
    inner = [h("b", None, count), h("span", None, word)]
    if not streams:
        return h("li", {"class": "tile is-none"}, inner)
    told = h("a", {"href": address(tags), "data-streams": streams}, inner)
    return h("li", {"class": f"tile tile-{style}"}, told)


# --- the streams ----------------------------------------------------------------------------------


def _streams(summary: Summary) -> Html:
    heads = [
        ("name", "Stream", ""),
        ("end", "Ended", ""),
        ("calls", "Calls", "num"),
        ("odd", "Oddities", "num"),
    ]
    row = [
        h("th", {"scope": "col", "class": kind or None, "data-by": by}, word)
        for by, word, kind in heads
    ]
    box = {"class": "box", "role": "group", "aria-label": "The streams behind the number"}
    grid = h("table", {"class": "grid list", "id": "list"}, h("caption", {"class": "unseen"}, "Streams"),
             h("thead", None, h("tr", None, row)), h("tbody", None))  # fmt: skip
    search = h("input", {"id": "find", "type": "search", "placeholder": "Find a name, model, host, oddity …",
                         "aria-label": "Find a stream", "autocomplete": "off"})  # fmt: skip
    return h(
        "section", {"id": "streams", "class": "panel", "aria-labelledby": "streams-title"},
        h("h2", {"id": "streams-title", "tabindex": "-1"}, "Streams"),
        h("div", {"class": "filters"}, h("ul", {"id": "filters", "class": "chips"}), search),
        h("p", {"id": "found", "class": "about"}),
        h("noscript", None, h("p", {"class": "nothing"}, "The list needs JavaScript; the numbers do not.")),
        h("div", {**box}, grid),
        h("button", {"id": "more", "type": "button", "hidden": True}, "Show more"),
    )  # fmt: skip


def _caps(summary: Summary) -> str:
    every, listed = summary.of().streams, len(summary.streams)
    if listed >= every:
        return f"Behind each number all of its streams are listed, {grouped(every)} in all."
    return (
        f"The numbers count all {plural(every, 'stream')}. This page lists {grouped(listed)} of them, a fair "
        f"sample: at most {grouped(LISTED)} whatever they are, and behind each number {summary.examples}, or all "
        "if there are fewer."
    )


def _data(summary: Summary) -> dict[str, Any]:
    """The streams, for the script: tags as they stand in an address, each said once."""
    places: dict[str, int] = {}
    streams = []
    for one in summary.streams:
        tags = [
            places.setdefault(address({facet: value})[1:], len(places)) for facet, value in one.tags
        ]
        facts = {name: value for name, value in one.facts.items() if value not in (None, 0, {}, "")}
        streams.append({**facts, "tags": tags})
    titles = {address({"provider": name})[1:]: said(name) for name in summary.values("provider")}
    return {
        "tags": list(places), "streams": streams, "noted": summary.noted, "said": titles,
        "every": summary.of().streams,
    }  # fmt: skip
