"""What was counted comes in; the sections of the page go out, each with its plot and its table.

Rule: a section says what it is about, which of the streams it is about if that is not all of them, and that
there is nothing where there is nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from .markup import Child, Html, h
from .number import ERROR, Figure, Spread
from .plots import (
    ENDS,
    Piece,
    bar,
    columns,
    grouped,
    head,
    legend,
    linked,
    number,
    percent,
    plural,
    table,
)  # fmt: skip
from .tally import BANDS, NO_DATE, TIMES, TOKENS, Summary, level_of

__all__ = ["AUTO", "SECTIONS", "Server", "said", "servers"]

AUTO = "auto"  # the provider of a stream that nobody recognised
_SAID = {AUTO: "not recognised"}
WHOLE, BROKEN = "whole", "broken"
SOURCES = {"natural": "good", "conflated": "warn", "synthetic": "mint"}
LEVELS = {"warning": "warn", "info": "plain", "debug": "quiet"}
TIME_NAMES = {"first_event": "first event", "first_token": "first text, reasoning or call",
              "first_call": "first call"}  # fmt: skip
TOKEN_NAMES = {"input": "of the request", "cached": "read from a cache", "cache_write": "written to a cache",
               "output": "of the answer", "reasoning": "for reasoning"}  # fmt: skip
RANKS = {BROKEN: ("bad", "broken"), "odd": ("warn", "odd"), "": ("good", "nothing wrong")}
SEEN = 4  # of what is wrong with a server, at once


def said(value: str) -> str:
    """A provider as it is named on the page."""
    return _SAID.get(value, value)


def _section(name: str, title: str, about: Child, *children: Child) -> Html:
    return h("section", {"id": name, "class": "panel", "aria-labelledby": f"{name}-title"},
             h("h2", {"id": f"{name}-title", "tabindex": "-1"}, title),
             h("p", {"class": "about"}, about), *children)  # fmt: skip


def _nothing(sentence: str) -> Html:
    return h("p", {"class": "nothing"}, sentence)


def _row(name: Child, *cells: Child) -> Html:
    return h("tr", None, h("th", {"scope": "row"}, name), *cells)


def _plot(drawing: Html) -> Html:
    return h("td", {"class": "plot"}, drawing)


def _cell(child: Child, value: float | str | None = None, kind: str = "num") -> Html:
    return h("td", {"class": kind, "data-v": None if value is None else str(value)}, child)


def _figure(figure: Figure, tags: dict[str, str], of: str = "") -> Html:
    return _cell(number(figure, tags, of), figure.total)


# --- calls ----------------------------------------------------------------------------------------


def calls(summary: Summary) -> Html:
    """By outcome and provider."""
    about = (
        "A call is whole on the wire’s own evidence alone; a broken one must not be run. "
        "Calls by the provider whose wire it is."
    )
    providers = [p for p in summary.values("provider") if _calls_of(summary, p)]
    if not providers:
        return _section("calls", "Calls", about, _nothing("No stream calls a tool."))
    providers.sort(key=lambda p: -_calls_of(summary, p))
    most = _calls_of(summary, providers[0])
    rows = [_calls_row(summary, provider, most) for provider in providers]
    return _section(
        "calls", "Calls", about, legend(("good", WHOLE), ("bad", BROKEN)),
        table("Calls by outcome and provider", head("Provider", "~", "Whole#", "Broken#"), rows),
    )  # fmt: skip


def _calls_of(summary: Summary, provider: str) -> int:
    return sum(summary.of(provider=provider, call=end).total for end in summary.values("call"))


def _calls_row(summary: Summary, provider: str, most: int) -> Html:
    name = said(provider)
    tags = [{"provider": provider, "call": end} for end in (WHOLE, BROKEN)]
    whole, broken = (summary.of(**one) for one in tags)
    pieces = [Piece(whole, tags[0], "good", f"{name}, whole calls"),
              Piece(broken, tags[1], "bad", f"{name}, broken calls")]  # fmt: skip
    return _row(_provider(summary, provider), _plot(bar(pieces, most)),
                _figure(whole, tags[0]), _figure(broken, tags[1]))  # fmt: skip


def _provider(summary: Summary, provider: str) -> Html:
    return linked(said(provider), summary.of(provider=provider), {"provider": provider})


def broken(summary: Summary) -> Html:
    """By reason."""
    about = "A call breaks when the wire ends it badly, or when what it says is no call."
    reasons = sorted(summary.values("broken"), key=lambda reason: -summary.of(broken=reason).total)
    if not reasons:
        return _section("broken", "Why calls broke", about, _nothing("No call is broken."))
    most = summary.of(broken=reasons[0]).total
    rows = [_reason_row(summary, reason, most) for reason in reasons]
    return _section(
        "broken", "Why calls broke", about,
        table("Broken calls by reason", head("Reason", "~", "Calls#", "Streams#"), rows),
    )  # fmt: skip


def _reason_row(summary: Summary, reason: str, most: int) -> Html:
    figure, tags = summary.of(broken=reason), {"broken": reason}
    piece = Piece(figure, tags, "bad", f"broken, {reason}")
    return _row(reason, _plot(bar([piece], most)), _figure(figure, tags),
                _cell(linked(grouped(figure.streams), figure, tags), figure.streams))  # fmt: skip


# --- ids ------------------------------------------------------------------------------------------


def ids(summary: Summary) -> Html:
    """Where the ids of calls come from."""
    about = (
        "Natural: the wire gave the call an id. Conflated: the id of an item had to serve. "
        "Synthetic: the wire gave none, and one was minted."
    )
    rows = [row for provider in _by_streams(summary) if (row := _ids_row(summary, provider))]
    if not rows:
        return _section(
            "ids", "Where ids come from", about, _nothing("There are no calls, and no ids.")
        )
    heads = head("Provider", "~", *(f"{source.capitalize()}#" for source in SOURCES))
    return _section(
        "ids", "Where ids come from", about, legend(*((style, word) for word, style in SOURCES.items())),
        table("Where the ids of calls come from, by provider", heads, rows),
    )  # fmt: skip


def _ids_row(summary: Summary, provider: str) -> Html | None:
    tags = {source: {"provider": provider, "id": source} for source in SOURCES}
    figures = {source: summary.of(**tags[source]) for source in SOURCES}
    whole = sum(figure.total for figure in figures.values())
    if not whole:
        return None
    pieces = [
        Piece(figures[s], tags[s], style, f"{said(provider)}, {s} ids") for s, style in SOURCES.items()
    ]  # fmt: skip
    return _row(_provider(summary, provider), _plot(bar(pieces, whole)),
                *(_figure(figures[source], tags[source]) for source in SOURCES))  # fmt: skip


def _by_streams(summary: Summary) -> list[str]:
    return sorted(summary.values("provider"), key=lambda p: -summary.of(provider=p).streams)


# --- oddities -------------------------------------------------------------------------------------


def oddities(summary: Summary) -> Html:
    """By name, over time."""
    facet, slots, over = _time(summary)
    about = (
        "What a wire did that it should not do, and was tolerated: each has a name. "
        f"Columns: {over}; each row to its own scale."
    )
    names = summary.values("note")
    if not names:
        return _section("oddities", "Oddities", about, _nothing("Nothing odd was noted."))
    names.sort(key=lambda name: (list(LEVELS).index(level_of(name)), -summary.of(note=name).total))
    rows = [_base_row(summary, facet, slots)]
    rows += [_oddity_row(summary, name, facet, slots) for name in names]
    heads = head("Oddity", "~" + _span(slots), "How bad", "Times#", "Streams#")
    return _section(
        "oddities", "Oddities", about, table("Oddities by name over time", heads, rows, kind="wide"),
        _in_words("Oddities over time, in numbers", [
            (name, [({"note": name, facet: at}, at) for at in slots]) for name in names
        ], summary),
    )  # fmt: skip


def _time(summary: Summary) -> tuple[str, list[str], str]:
    """The facet of time, its slots, and a word for them; without dates, the order of reading."""
    if not summary.days:
        return (
            "part",
            summary.parts,
            "streams in the order in which they were read, as none says when",
        )
    slots = summary.days
    if summary.of(when=NO_DATE).streams:
        slots = [*slots, NO_DATE]
    over = f"when streams were recorded, each {summary.unit}, in UTC"
    without = summary.of(when=NO_DATE).streams
    return (
        "when",
        slots,
        over + (f"; {grouped(without)} without a date stand last" if without else ""),
    )


def _span(slots: Sequence[str]) -> str:
    named = [slot for slot in slots if slot != NO_DATE]
    if not named:
        return ""
    first, last = named[0].split(" to ")[0], named[-1].split(" to ")[-1]
    return first if first == last else f"{first}{ENDS}{last}"


def _base_row(summary: Summary, facet: str, slots: Sequence[str]) -> Html:
    pieces = [
        Piece(summary.of(**{facet: at}), {facet: at}, "base", f"{at}, all streams") for at in slots
    ]  # fmt: skip
    every = summary.of()
    return _row(
        h("span", {"class": "base"}, "all that was read, to compare"), _plot(columns(pieces)),
        _cell("", "", "level"),
        _cell("", 0), _cell(linked(grouped(every.streams), every, {}), every.streams),
    )  # fmt: skip


def _oddity_row(summary: Summary, name: str, facet: str, slots: Sequence[str]) -> Html:
    figure, level = summary.of(note=name), level_of(name)
    pieces = [
        Piece(summary.of(note=name, **{facet: at}), {"note": name, facet: at}, LEVELS[level], f"{at}, {name}")
        for at in slots
    ]  # fmt: skip
    told = [h("code", None, name), h("small", None, summary.noted.get(name, ""))]
    return _row(
        told, _plot(columns(pieces)), _cell(_badge(LEVELS[level], level), list(LEVELS).index(level), "level"),
        _figure(figure, {"note": name}),
        _cell(linked(grouped(figure.streams), figure, {"note": name}), figure.streams),
    )  # fmt: skip


def _badge(style: str, word: str) -> Html:
    return h("span", {"class": f"mark-{style}"}, word)


def _in_words(
    title: str, rows: list[tuple[str, list[tuple[dict[str, str], str]]]], summary: Summary
) -> Html:
    """The same as a plot, for keyboards and readers of the screen."""
    told = [
        h("tr", None, h("th", {"scope": "row"}, name), h("td", None, _parts(places, summary)))
        for name, places in rows
    ]  # fmt: skip
    inner = table(title, head("Row", "Numbers"), told, kind="words", first=1000)
    return h("details", {"class": "alt"}, h("summary", None, title), inner)


def _parts(places: list[tuple[dict[str, str], str]], summary: Summary) -> Iterator[Child]:
    for tags, at in places:
        figure = summary.of(**tags)
        if figure.streams:
            yield h("span", {"class": "part"}, f"{at}: ", number(figure, tags))


# --- times ----------------------------------------------------------------------------------------


def times(summary: Summary) -> Html:
    """To the first event, token and call."""
    none, streams = summary.of(timed="none").streams, _streams(summary)
    about: list[Child] = [
        "Seconds from the start of the recording, for streams that say when their bytes came. "
        f"Within how much time so many of them were there, right to {100 * ERROR:.0f} %. ",
    ]
    if none:
        about.append(linked(f"{grouped(none)} of {plural(streams, 'stream')} say no times",
                            summary.of(timed="none"), {"timed": "none"}))  # fmt: skip
        about.append(".")
    groups = [(name, _timed(summary, name)) for name in TIMES]
    if not any(providers for _, providers in groups):
        return _section(
            "times", "Time to first", about, _nothing("No stream says when its bytes came.")
        )
    bands = ENDS.join((BANDS[0][1], BANDS[-1][1]))
    heads = head("Provider", "~" + bands, "50 %#", "90 %#", "99 %#", "Longest#", "Streams#")
    tables = [
        [h("h3", None, f"To the {TIME_NAMES[name]}"),
         table(f"Seconds to the {TIME_NAMES[name]}, by provider", heads,
               [_time_row(summary, p, name) for p in providers], kind="times", first=8)]
        for name, providers in groups if providers
    ]  # fmt: skip
    words = [
        (f"{said(p)}, {TIME_NAMES[name]}", [({"provider": p, name: band}, band) for _, band in BANDS])
        for name, providers in groups for p in providers
    ]  # fmt: skip
    return _section(
        "times", "Time to first", about, *tables, _in_words("Times, in numbers", words, summary)
    )


def _timed(summary: Summary, name: str) -> list[str]:
    found = [p for p in summary.values("provider") if summary.of(provider=p, timed=name).streams]
    return sorted(found, key=lambda p: -summary.of(provider=p, timed=name).streams)


def _time_row(summary: Summary, provider: str, name: str) -> Html:
    timed = summary.of(provider=provider, timed=name)
    spread = timed.spread or Spread(0, 0, 0, 0)
    pieces = [
        Piece(summary.of(**{"provider": provider, name: band}), {"provider": provider, name: band},
              "time", f"{said(provider)}, {band}")
        for _, band in BANDS
    ]  # fmt: skip
    tags = {"provider": provider, "timed": name}
    return _row(
        _provider(summary, provider), _plot(columns(pieces)),
        *(_cell(linked(_seconds(value), timed, tags), value) for value in spread),
        _cell(linked(grouped(timed.streams), timed, tags), timed.streams),
    )  # fmt: skip


def _seconds(value: float) -> str:
    """
    >>> _seconds(0.0004), _seconds(0.123), _seconds(4.56), _seconds(1234.5)
    ('0 ms', '123 ms', '4.56 s', '1,234 s')
    """
    if value < 1:
        return f"{1000 * value:.0f} ms"
    return f"{value:.2f} s" if value < 100 else f"{value:,.0f} s"


# --- tokens ---------------------------------------------------------------------------------------


def tokens(summary: Summary) -> Html:
    """In, out, cached, reasoning; by provider and model."""
    none = summary.of(tokens="none")
    about: list[Child] = [
        "As the wire counts them. Those from a cache are a part of the request, those for reasoning a part of "
        "the answer, where the provider counts so. ",
    ]
    if none.streams:
        about += [
            linked(f"{plural(none.streams, 'stream')} say none", none, {"tokens": "none"}),
            ".",
        ]
    models = sorted(_models(summary), key=lambda row: -row.total)
    if not models:
        return _section(
            "tokens", "Tokens", about, _nothing("No stream says how many tokens it took.")
        )
    most = models[0].total
    heads = head("Provider and model", "~", "In#", "Cached#", "Out#", "Reasoning#")
    rows = [_token_row(model, most) for model in models]
    return _section(
        "tokens", "Tokens", about,
        legend(("in", "request"), ("cached", "of it, cached"),
               ("out", "answer"), ("reasoning", "of it, reasoning")),
        table("Tokens by provider and model", heads, rows, kind="tokens"),
    )  # fmt: skip


class _Model(NamedTuple):
    provider: str
    model: str
    figures: dict[str, Figure]

    @property
    def total(self) -> int:
        return sum(self.figures[name].total for name in ("input", "output"))

    def tags(self, name: str) -> dict[str, str]:
        return {"provider": self.provider, "model": self.model, "tokens": name}


def _models(summary: Summary) -> Iterator[_Model]:
    found: dict[tuple[str, str], dict[str, Figure]] = {}
    for tags, figure in summary.numbers.items():
        if [facet for facet, _ in tags] == ["provider", "model", "tokens"]:
            (_, provider), (_, model), (_, name) = tags
            found.setdefault((provider, model), {})[name] = figure
    for (provider, model), figures in found.items():
        if set(figures) != {"none"}:
            yield _Model(provider, model, {name: figures.get(name, Figure()) for name in TOKENS})


def _token_row(row: _Model, most: int) -> Html:
    named = f"{said(row.provider)}, {row.model}"
    pieces = []
    for part, whole, styles in (
        ("cached", "input", ("cached", "in")),
        ("reasoning", "output", ("reasoning", "out")),
    ):
        inside = min(row.figures[part].total, row.figures[whole].total)
        rest = row.figures[whole].total - inside
        pieces.append(Piece(row.figures[part]._replace(total=inside), row.tags(part), styles[0],
                            f"{named}, tokens {TOKEN_NAMES[part]}"))  # fmt: skip
        pieces.append(Piece(row.figures[whole]._replace(total=rest), row.tags(whole), styles[1],
                            f"{named}, other tokens {TOKEN_NAMES[whole]}"))  # fmt: skip
    return _row(
        [h("span", {"class": "model"}, row.model), h("small", None, said(row.provider))], _plot(bar(pieces, most)),
        *(_figure(row.figures[name], row.tags(name), TOKEN_NAMES[name])
          for name in ("input", "cached", "output", "reasoning")),
    )  # fmt: skip


# --- endings --------------------------------------------------------------------------------------


def endings(summary: Summary) -> Html:
    """By reason."""
    about = "Every stream ends once: it finished, or it failed, with a reason."
    found = [
        (figure, dict(tags)) for tags, figure in summary.numbers.items()
        if [facet for facet, _ in tags] == ["end", "reason"]
    ]  # fmt: skip
    if not found:
        return _section("endings", "Endings", about, _nothing("There are no streams."))
    found.sort(key=lambda one: (one[1]["end"] != "finish", -one[0].streams, one[1]["reason"]))
    most = max(figure.streams for figure, _ in found)
    rows = [_ending_row(figure, tags, most) for figure, tags in found]
    return _section(
        "endings", "Endings", about, legend(("good", "finished"), ("bad", "failed")),
        table("Endings by reason", head("Reason", "~", "Streams#"), rows),
    )  # fmt: skip


def _ending_row(figure: Figure, tags: dict[str, str], most: int) -> Html:
    style, word = ("good", "finished") if tags["end"] == "finish" else ("bad", tags["end"])
    piece = Piece(figure, tags, style, f"{word}, {tags['reason']}")
    return _row(
        [tags["reason"], h("span", {"class": "unseen"}, f", {word}")],
        _plot(bar([piece], most)),
        _figure(figure, tags),
    )


# --- servers --------------------------------------------------------------------------------------


class Server(NamedTuple):
    """What is wrong with a server."""

    name: str
    rank: str  # "broken", "odd" or ""
    streams: int
    broken: int  # of them: that failed, or with a broken call
    wrong: Figure  # with which anything is wrong
    lines: list[Html]


def servers(summary: Summary) -> list[Server]:
    """All that were seen, the worst first."""
    wrongs = _wrongs(summary)
    found = [_server(summary, name, wrongs.get(name, [])) for name in summary.values("server")]
    ranks = list(RANKS)
    return sorted(
        found, key=lambda one: (ranks.index(one.rank), -one.broken, -one.wrong.streams, one.name)
    )


def _server(summary: Summary, name: str, lines: list[tuple[int, int, Html]]) -> Server:
    is_broken = summary.of(server=name, wrong="broken").streams
    wrong = summary.of(server=name, wrong="any")
    rank = BROKEN if is_broken else "odd" if wrong.streams else ""
    ordered = sorted(lines, key=lambda line: (line[0], -line[1], line[2]))
    return Server(
        name,
        rank,
        summary.of(server=name).streams,
        is_broken,
        wrong,
        [html for _, _, html in ordered],
    )


def _wrongs(summary: Summary) -> dict[str, list[tuple[int, int, Html]]]:
    """Server -> what is wrong: how bad it is, how often, and in words."""
    found: dict[str, list[tuple[int, int, Html]]] = {}
    for key_, figure in summary.numbers.items():
        tags = dict(key_)
        tell = _TOLD.get(tuple(facet for facet, _ in key_))
        line = tell(summary, figure, tags) if tell else None
        if line is not None:
            found.setdefault(tags["server"], []).append((line[0], figure.total, line[1]))
    return found


_Line = tuple[int, Html] | None


def _told_ending(summary: Summary, figure: Figure, tags: dict[str, str]) -> _Line:
    if tags["end"] == "finish":
        return None
    words = f"{plural(figure.streams, 'stream')} {tags['end']}: {tags['reason']}"
    return 0, h("li", {"class": "is-bad"}, linked(words, figure, tags))


def _told_broken(summary: Summary, figure: Figure, tags: dict[str, str]) -> _Line:
    words = f"{plural(figure.total, 'call')} broken: {tags['broken']}"
    return 1, h("li", {"class": "is-bad"}, linked(words, figure, tags))


def _told_ids(summary: Summary, figure: Figure, tags: dict[str, str]) -> _Line:
    if tags["id"] != "synthetic":
        return None
    words = f"{plural(figure.total, 'call')} without an id: synthetic"
    return 2, h("li", {"class": "is-mint"}, linked(words, figure, tags))


def _told_note(summary: Summary, figure: Figure, tags: dict[str, str]) -> _Line:
    name, level = tags["note"], level_of(tags["note"])
    if level == "debug" or name == "call.id_synthetic":  # nothing is wrong; said above
        return None
    told = [linked([h("code", None, name), f" × {grouped(figure.total)}"], figure, tags),
            h("small", None, summary.noted.get(name, ""))]  # fmt: skip
    return list(LEVELS).index(level) + 3, h("li", {"class": f"is-{LEVELS[level]}"}, told)


_TOLD: dict[tuple[str, ...], Callable[[Summary, Figure, dict[str, str]], _Line]] = {
    ("server", "end", "reason"): _told_ending,
    ("server", "broken"): _told_broken,
    ("server", "id"): _told_ids,
    ("server", "note"): _told_note,
}


def what_is_wrong(summary: Summary) -> Html:
    """The table of servers."""
    about = (
        "A server is the host that was asked; where a recording does not name it, the provider and the model. "
        "A stream is affected if it failed, if a call broke or had no id, or if an oddity is a warning."
    )
    found = servers(summary)
    if not found:
        return _section(
            "servers", "What is wrong with each server", about, _nothing("No server was seen.")
        )
    heads = head("Server", "State", "Streams#", "Affected#", "What is wrong")
    rows = [_server_row(summary, one) for one in found]
    return _section(
        "servers", "What is wrong with each server", about,
        table("What is wrong with each server", heads, rows, kind="servers", first=12),
    )  # fmt: skip


def _server_row(summary: Summary, one: Server) -> Html:
    style, word = RANKS[one.rank]
    tags = {"server": one.name}
    share = one.wrong.streams / one.streams if one.streams else 0
    affected = [linked(grouped(one.wrong.streams), one.wrong, {**tags, "wrong": "any"}),
                h("small", None, percent(one.wrong.streams, one.streams))]  # fmt: skip
    return _row(
        linked(said(one.name), summary.of(**tags), tags),
        _cell(_badge(style, word), list(RANKS).index(one.rank), "level"),
        _figure(summary.of(**tags), tags), _cell(affected, share), _cell(_lines(one.lines), None, "wrongs"),
    )  # fmt: skip


def _lines(lines: list[Html]) -> Child:
    if not lines:
        return h("span", {"class": "none"}, "–")
    seen = h("ul", None, lines[:SEEN])
    if len(lines) <= SEEN:
        return seen
    more = h("details", {"class": "more"}, h("summary", None, f"and {len(lines) - SEEN} more"),
             h("ul", None, lines[SEEN:]))  # fmt: skip
    return [seen, more]


def _streams(summary: Summary) -> int:
    return summary.of().streams - summary.of(end="unreadable").streams


# --- what could not be read ------------------------------------------------------------------------


def unreadable(summary: Summary) -> Html | None:
    """With the reasons; nothing, if all could be read."""
    figure, tags = summary.of(end="unreadable"), {"end": "unreadable"}
    if not figure.streams:
        return None
    listed = [one.facts for one in summary.streams if one.facts["end"] == "unreadable"]
    about: list[Child] = [linked(plural(figure.streams, "file"), figure, tags),
                          " held no stream that could be read."]  # fmt: skip
    if len(listed) < figure.streams:
        about.append(f" {grouped(len(listed))} of them are listed.")
    rows = [
        _row(h("code", None, one["name"]), _cell(one["detail"] or "", None, "")) for one in listed
    ]
    return _section(
        "unreadable", "What could not be read", about,
        table("What could not be read", head("File", "Why"), rows, kind="unread", first=10),
    )  # fmt: skip


# Name -> title in the navigation, and what makes it.
SECTIONS: dict[str, tuple[str, Callable[[Summary], Html | None]]] = {
    "calls": ("Calls", calls),
    "ids": ("Ids", ids),
    "endings": ("Endings", endings),
    "broken": ("Broken", broken),
    "servers": ("Servers", what_is_wrong),
    "oddities": ("Oddities", oddities),
    "times": ("Times", times),
    "tokens": ("Tokens", tokens),
    "unreadable": ("Unread", unreadable),
}
