"""``streamnorm inspect``: a take in; what is in it, and when it came, out.

Rule: facts only, gathered once (``streamnorm.survey``); printing for people and for programs (``--json``) says
the same. Every word of the wire is cleaned before it is printed.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from ..notes import NOTES
from ..survey import survey
from ..text.shown import clean, escape_json, shorten
from ..text.written import json_text

if TYPE_CHECKING:
    from ..events import Usage
    from ..survey import CallFacts, Survey
    from ..takes.format import Take
    from .style import Style

__all__ = ["add", "chart", "run"]

EXAMPLES = """\
examples:
  streamnorm inspect recordings/anthropic/parallel_calls.sse
  streamnorm inspect answer.sse --json | jq .calls

exit codes: 0 finished, 2 usage or no readable take, 3 the stream failed or a call broke
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
        help="say what is in a take: calls, ids, oddities, timing",
        description="Say what is in a take: wire, model, events, calls and ids, oddities, timing.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("file", metavar="FILE", help="a take or a saved response body; - for stdin")
    parser.add_argument("--provider", metavar="P", help="whose wire it is; default: as in replay")
    parser.add_argument("--json", action="store_true", help="print the facts as one JSON object")
    add_color_options(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Prints the facts."""
    from ..takes.format import parse_take, read_take
    from .log import log_to_stderr
    from .style import style_for

    log_to_stderr(None)
    stdin = args.file == "-"
    take = parse_take(sys.stdin.buffer.read(), name="stdin") if stdin else read_take(args.file)
    facts = survey(take, args.provider)
    pace = _pace(take, facts.first_token)
    if args.json:
        print(escape_json(json_text(_plain(facts, pace))))
    else:
        style = style_for(sys.stdout, args.color)
        print("\n".join(_lines(facts, pace, style)))
    broken = any(call.end != "whole" for call in facts.calls)
    return 3 if facts.end == "failed" or broken else 0


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


def _pace(take: Take, first_token: float | None) -> Pace | None:
    if not take.timed or not take.chunks:
        return None
    times = [at for at, _ in take.chunks]
    gaps = [(late - early, early) for early, late in pairwise(times)]
    gap, gap_at = max(gaps, default=(0.0, 0.0))
    return Pace(
        seconds=times[-1],
        first_byte=times[0],
        first_token=first_token,
        longest_gap=round(gap, 3),
        longest_gap_at=gap_at,
        bytes_per_slot=_slots(take),
    )


def _slots(take: Take) -> list[int]:
    """The bytes that came in each slice of the time, all slices equally long."""
    whole = take.chunks[-1][0] or 1.0
    slots = [0] * WIDEST
    for at, chunk in take.chunks:
        slots[min(WIDEST - 1, int(at / whole * WIDEST))] += len(chunk)
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
    size = [f"{facts.bytes} bytes", f"{facts.chunks} chunks", f"{facts.frames} frames"]
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
