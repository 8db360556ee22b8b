"""``streamnorm inspect``: files with streams in; what is in them, and when it came, out.

Rule: facts only, gathered once (``streamnorm.survey``); printing for people and for programs (``--json``) says
the same. Every word of the wire is cleaned before it is printed.
"""

from __future__ import annotations

import argparse
import sys
from array import array
from collections import Counter
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from ..notes import NOTES, unheard
from ..survey import Survey, Surveying
from ..text.shown import clean, escape_json, shorten
from ..text.written import json_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ..captures.tape import Bit, Part
    from ..events import Usage
    from ..survey import CallFacts
    from .sources import Sources
    from .style import Style

__all__ = ["add", "chart", "run"]

EXAMPLES = """\
examples:
  streamnorm inspect recordings/anthropic/parallel_calls.sse
  streamnorm inspect answer.sse --json | jq .calls
  streamnorm inspect recordings/ captures/*.har         a line for each stream, then totals
  streamnorm inspect session.har#3                      the third stream of a capture

exit codes: 0 finished, 2 usage or a file that could not be read, 3 a stream failed or a call broke
"""
HEADS = ("call", "name", "id", "source", "from", "end", "size")
NAME, ID, FROM = HEADS.index("name"), HEADS.index("id"), HEADS.index("from")
BARS, PLAIN_BARS = "▁▂▃▄▅▆▇█", ".:-=+*#@"
WIDEST = 60  # columns of the chart


@dataclass(frozen=True, slots=True)
class Pace:
    """When the bytes came, in seconds from the start."""

    seconds: float
    first_byte: float
    first_token: float | None
    longest_gap: float
    longest_gap_at: float
    bytes_per_slot: list[int]


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Tells the parser about this command."""
    from .style import add_color_options

    parser = commands.add_parser(
        "inspect",
        help="say what is in files with streams: calls, ids, oddities, timing",
        description="Say what is in takes, saved bodies and captures of other programs. Of one "
        "stream: wire, model, events, calls and ids, oddities, timing. Of several: a line for each, "
        "then totals.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "files", metavar="FILE", nargs="+",
        help="a take, a saved body, a capture (HAR, cassette, curl -i …), a folder of them, a pattern; "
        "a.har#3 is the third stream in it; - for stdin",
    )  # fmt: skip
    parser.add_argument("--provider", metavar="P", help="whose wire it is; default: as in replay")
    parser.add_argument(
        "--json", action="store_true",
        help="print the facts as one JSON object; of several streams one to a line, then totals",
    )  # fmt: skip
    add_color_options(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Prints the facts."""
    from .log import log_to_stderr
    from .sources import Sources
    from .style import style_for

    log_to_stderr(None)
    sources = Sources(args.files, args.provider)
    told = _Teller(args.json, style_for(sys.stdout, args.color), sources.hide)
    with unheard():
        for stream in _streams(sources, args.provider):
            told.tell(stream)
        return told.end(sources)


class Inspected(NamedTuple):
    """One stream."""

    name: str
    form: str
    facts: Survey
    pace: Pace | None


def _streams(sources: Sources, provider: str | None) -> Iterator[Inspected]:
    """In the order in which they end."""
    reading: dict[Part, tuple[Surveying, Arrivals]] = {}
    for part, bit in sources:
        if part not in reading:
            reading[part] = Surveying(part, provider), Arrivals()
        surveying, arrivals = reading[part]
        if bit is not None:
            surveying.hear(bit.data, bit.at if part.timed else None, goes_on=bit.goes_on)
            arrivals.add(bit)
            continue
        facts = surveying.end()
        del reading[part]
        pace = arrivals.pace(facts.first_token) if part.timed else None
        yield Inspected(part.name, part.form, facts, pace)


class _Teller:
    """Says what one stream is in full; of several, a line of each, and what they come to."""

    def __init__(self, as_json: bool, style: Style, hide: Callable[[], None]) -> None:
        self._json, self._style, self._hide = as_json, style, hide
        self._first: Inspected | None = None
        self._totals = Totals()

    def tell(self, stream: Inspected) -> None:
        """It ended. Whether it is the only one is known when the next one does."""
        self._totals.add(stream)
        if self._totals.streams == 1:
            self._first = stream
            return
        if self._first is not None:
            self._line(self._first)
            self._first = None
        self._line(stream)

    def end(self, sources: Sources) -> int:
        """All were told; the exit code."""
        totals = self._totals
        if self._first is not None and sources.alone:
            self._whole(self._first)
        else:
            if self._first is not None:
                self._line(self._first)
            self._end_of_many(sources)
        if not totals.streams:
            return 2
        return 3 if totals.trouble else 2 if sources.failed else 0

    def _line(self, stream: Inspected) -> None:
        self._hide()
        if self._json:
            whence = {"name": stream.name, "form": stream.form}
            print(escape_json(json_text(whence | _plain(stream.facts, stream.pace))))
        else:
            print(_one_line(stream, self._style))

    def _whole(self, stream: Inspected) -> None:
        self._hide()
        if self._json:
            print(escape_json(json_text(_plain(stream.facts, stream.pace))))
        else:
            print("\n".join(_lines(stream.facts, stream.pace, self._style)))

    def _end_of_many(self, sources: Sources) -> None:
        self._hide()
        plain = self._totals.plain() | {"files": sources.files, "unreadable": sources.failed}
        if self._json:
            print(escape_json(json_text({"totals": plain})))
        elif self._totals.streams:
            print("\n".join(_total_lines(plain, self._style)))


class Totals:
    """What many streams come to."""

    def __init__(self) -> None:
        self.streams = self._bytes = 0
        self.trouble = False
        names = ("providers", "endings", "calls", "id_sources", "notes")
        self._counts: dict[str, Counter[str]] = {name: Counter() for name in names}

    def add(self, stream: Inspected) -> None:
        """One more."""
        facts, counts = stream.facts, self._counts
        self.streams += 1
        self._bytes += facts.bytes
        counts["providers"][facts.provider] += 1
        counts["endings"][f"{facts.end}: {facts.reason}"] += 1
        counts["notes"].update(facts.notes)
        for call in facts.calls:
            whole = call.end == "whole"
            counts["calls"]["whole" if whole else f"broken: {call.end}"] += 1
            counts["id_sources"][call.told.provenance.id_source] += 1
        self.trouble |= _is_trouble(facts)

    def plain(self) -> dict[str, Any]:
        """As plain values, what there is most of first."""
        counts = {name: dict(count.most_common()) for name, count in self._counts.items()}
        return {"streams": self.streams, "bytes": self._bytes, **counts}


def _is_trouble(facts: Survey) -> bool:
    return facts.end == "failed" or any(call.end != "whole" for call in facts.calls)


def _one_line(stream: Inspected, style: Style) -> str:
    facts = stream.facts
    broken = sum(call.end != "whole" for call in facts.calls)
    calls = _some(len(facts.calls), "call") + f", {broken} broken" * bool(broken)
    odd = [f"{sum(facts.notes.values())} odd"] if facts.notes else []
    said = style.signs.dot.join([clean(facts.provider), calls, f"{facts.bytes} bytes", *odd])
    end = f"{facts.end}: {facts.reason}"
    shown = (style.red if facts.end == "failed" or broken else style.green)(end)
    return f"{clean(stream.name)}  {shown}{style.signs.dot}{said}"


def _some(count: int, noun: str) -> str:
    return f"{count} {noun}{'s'[: count != 1]}"


_TOTALS = {
    "providers": "providers", "endings": "endings", "calls": "calls",
    "id_sources": "ids", "notes": "oddities",
}  # fmt: skip


def _total_lines(plain: dict[str, Any], style: Style) -> list[str]:
    first = [_some(plain[name], name[:-1]) for name in ("streams", "files", "bytes")]
    if plain["unreadable"]:
        first.append(style.red(f"{plain['unreadable']} not read"))
    lines = ["", style.bold(style.signs.sum + " " + style.signs.dot.join(first))]
    for name, called in _TOTALS.items():
        counts = ", ".join(f"{clean(key)} {count}" for key, count in plain[name].items())
        lines.append(f"{called}: {counts or 'none'}")
    return lines


# --- for programs ---------------------------------------------------------------------------------


def _plain(facts: Survey, pace: Pace | None) -> dict[str, Any]:
    """The facts as plain values."""
    return {
        "provider": facts.provider,
        "model": facts.model,
        "response_id": facts.response_id,
        "captured": facts.captured,
        "recorded": facts.recorded,
        "bytes": facts.bytes,
        "chunks": facts.chunks,
        "frames": facts.frames,
        "events": facts.events,
        "calls": [_plain_call(call) for call in facts.calls],
        "notes": facts.notes,
        "usage": None if facts.usage is None else _tokens(facts.usage),
        "end": facts.end,
        "reason": facts.reason,
        "detail": facts.detail,
        "timing": None if pace is None else asdict(pace),
        "headers": {k: facts.header[k] for k in ("url", "status", "headers") if k in facts.header},
    }


def _plain_call(call: CallFacts) -> dict[str, Any]:
    told = call.told
    origin = told.provenance
    return {
        "call": told.call,
        "name": told.name,
        "id": told.id,
        "id_source": origin.id_source,
        "wire_id": origin.wire_id,
        "wire_field": origin.wire_field,
        "boundary": origin.boundary,
        "runs_on": told.runs_on,
        "size": call.size,
        "end": call.end,
    }


def _tokens(used: Usage) -> dict[str, int]:
    names = ("input", "output", "cached_input", "cache_write", "reasoning")
    told = {name: getattr(used, name) for name in names}
    return {name: count for name, count in told.items() if count is not None}


# --- over time ------------------------------------------------------------------------------------


class Arrivals:
    """When the bytes of a stream came, however many chunks there are."""

    def __init__(self) -> None:
        self._times, self._sizes = array("d"), array("q")

    def add(self, bit: Bit) -> None:
        """Bytes came, or more of those that came last."""
        if bit.goes_on and self._sizes:
            self._sizes[-1] += len(bit.data)
        elif bit.data:
            self._times.append(bit.at)
            self._sizes.append(len(bit.data))

    def pace(self, first_token: float | None) -> Pace | None:
        """What that says."""
        times = self._times
        if not times:
            return None
        gaps = ((late - early, early) for early, late in pairwise(times))
        gap, gap_at = max(gaps, default=(0.0, 0.0))
        return Pace(
            seconds=times[-1],
            first_byte=times[0],
            first_token=first_token,
            longest_gap=round(gap, 3),
            longest_gap_at=gap_at,
            bytes_per_slot=self._slots(),
        )

    def _slots(self) -> list[int]:
        """The bytes that came in each slice of the time, all slices equally long."""
        whole = self._times[-1] or 1.0
        slots = [0] * WIDEST
        for at, size in zip(self._times, self._sizes, strict=True):
            slots[min(WIDEST - 1, int(at / whole * WIDEST))] += size
        return slots


# --- for people -----------------------------------------------------------------------------------


def _lines(facts: Survey, pace: Pace | None, style: Style) -> list[str]:
    sections = (_head(facts, style), _call_lines(facts, style), _odd_lines(facts, style),
                _time_lines(pace, style), [_end_line(facts, style)])  # fmt: skip
    return [line for section in sections for line in section]


def _head(facts: Survey, style: Style) -> list[str]:
    known = [clean(fact) for fact in (facts.model, facts.response_id) if fact]
    lines = [style.bold(style.signs.dot.join([clean(facts.provider), *known]))]
    told = {"finished": "recorded to its end", "torn": "its last chunk is torn",
            "unfinished": "the recording was cut short"}.get(facts.recorded)  # fmt: skip
    when = [f"captured {clean(facts.captured)}"] if facts.captured else []
    size = [_some(getattr(facts, f"{name}s"), name) for name in ("byte", "chunk", "frame")]
    lines.append(style.signs.dot.join([*size, *when, *([told] if told else [])]))
    if "url" in facts.header:
        lines.append(shorten(clean(f"from {facts.header['url']}"), style.width))
    counts = (f"{count} {kind}" for kind, count in facts.events.items())
    lines += ["events: " + ", ".join(counts)]
    if facts.usage and (tokens := _tokens(facts.usage)):
        lines.append("tokens: " + ", ".join(f"{name} {count}" for name, count in tokens.items()))
    return lines


def _call_lines(facts: Survey, style: Style) -> list[str]:
    from .grid import grid

    if not facts.calls:
        return ["calls: none"]
    rows = [_call_row(call) for call in facts.calls]
    return ["", *grid(HEADS, rows, style=style, shrink=(NAME, ID, FROM)).split("\n"), ""]


def _call_row(call: CallFacts) -> tuple[str, ...]:
    told = call.told
    return (
        str(told.call),
        told.name + (" (run by the provider)" if told.runs_on == "provider" else ""),
        told.id,
        told.provenance.id_source,
        told.provenance.wire_field or "minted",
        ("whole" if call.end == "whole" else f"broken: {call.end}")
        + (", inferred" if told.provenance.boundary == "inferred" else ""),
        str(call.size),
    )


def _odd_lines(facts: Survey, style: Style) -> list[str]:
    if not facts.notes:
        return ["oddities: none"]
    lines = ["oddities:"]
    for name, count in facts.notes.items():
        sentence = NOTES[name].sentence if name in NOTES else ""
        lines.append(f"  {style.yellow(f'{name} x {count}')}  {sentence}".rstrip())
    return lines


def _time_lines(pace: Pace | None, style: Style) -> list[str]:
    if pace is None:
        return ["timing: the take has no arrival times"]
    first = "none" if pace.first_token is None else f"{pace.first_token:.2f} s"
    where = f"{pace.longest_gap:.2f} s at {pace.longest_gap_at:.2f} s"
    bars = chart(pace.bytes_per_slot, style)
    return [
        f"timing: {pace.seconds:.2f} s, first token {first}, longest gap {where}",
        f"  0 s {style.cyan(bars)} {pace.seconds:.2f} s  (bytes over time)",
    ]


def chart(slots: list[int], style: Style) -> str:
    """One bar per slot; an empty one is a space.

    >>> from streamnorm.cli.style import Style
    >>> chart([0, 1, 50, 100], Style(color=False, width=80))
    ' ▁▄█'
    """
    bars = BARS if style.signs.call == "●" else PLAIN_BARS
    top = max(slots, default=0) or 1
    fits = slots if len(slots) + 24 <= style.width else _merged(slots)
    top = max(fits, default=0) or top
    return "".join(" " if not n else bars[min(7, n * 8 // (top + 1))] for n in fits)


def _merged(slots: list[int]) -> list[int]:
    return [sum(slots[at : at + 3]) for at in range(0, len(slots), 3)]


def _end_line(facts: Survey, style: Style) -> str:
    sign, detail = style.signs.end, clean(facts.detail)
    if facts.end == "finish":
        said = f" (the wire said {detail})" if detail and detail != facts.reason else ""
        return style.green(f"{sign} finished: {facts.reason}") + style.dim(said)
    return style.red(shorten(f"{sign} failed: {facts.reason}: {detail}", style.width))
