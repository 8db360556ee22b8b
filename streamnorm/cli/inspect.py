"""``streamnorm inspect``: a take in; what is in it, and when it came, out.

Rule: facts only, gathered once (``survey``); printing for people and for programs (``--json``) says
the same. Every word of the wire is cleaned before it is printed.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from ..events import (
    BrokenToolCall,
    Event,
    Failed,
    Finish,
    ReasoningDelta,
    StreamStart,
    TextDelta,
    ToolCall,
    ToolCallStart,
    Usage,
)
from ..notes import NOTES
from ..text.shown import clean, escape_json, shorten
from ..text.written import json_text

if TYPE_CHECKING:
    from ..takes.format import Take
    from .style import Style

__all__ = ["Survey", "add", "run", "survey"]

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
class CallFacts:
    """One call: what it is called, where its id is from, how it ended."""

    call: int
    name: str
    id: str
    id_source: str
    wire_id: str | None
    wire_field: str | None
    boundary: str
    runs_on: str
    size: int
    end: str  # whole, or why it broke


@dataclass(frozen=True, slots=True)
class Timing:
    """When things came, in seconds from the start."""

    seconds: float
    first_byte: float
    first_token: float | None
    longest_gap: float
    longest_gap_at: float
    bytes_per_slot: list[int]


@dataclass(frozen=True, slots=True)
class Survey:
    """What is in a take."""

    provider: str
    model: str | None
    response_id: str | None
    captured: str | None
    recorded: str  # finished, unfinished, or not told
    bytes: int
    chunks: int
    frames: int
    events: dict[str, int]
    calls: list[CallFacts]
    notes: dict[str, int]
    usage: dict[str, Any] | None
    end: str
    reason: str
    detail: str
    timing: Timing | None
    headers: dict[str, Any] = field(default_factory=dict)


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
    if args.json:
        print(escape_json(json_text(asdict(facts))))
    else:
        style = style_for(sys.stdout, args.color)
        print("\n".join(_lines(facts, style)))
    broken = any(call.end != "whole" for call in facts.calls)
    return 3 if facts.end == "failed" or broken else 0


# --- the facts ------------------------------------------------------------------------------------


def survey(take: Take, provider: str | None = None) -> Survey:
    """Everything there is to say about a take.

    >>> from streamnorm.takes.format import parse_take
    >>> facts = survey(parse_take(b'data: {"choices":[{"delta":{"content":"Hi"}}]}\\n\\n'))
    >>> facts.provider, facts.events, facts.reason
    ('openai_chat', {'stream_start': 1, 'text_delta': 1, 'failed': 1}, 'truncated')
    """
    from ..takes.pipe import pipe_for

    pipe = pipe_for(take, provider)
    heard: list[tuple[float, Event]] = []
    for at, chunk in take.chunks:
        heard += [(at, event) for event in pipe.feed(chunk)]
    last = take.chunks[-1][0] if take.chunks else 0.0
    heard += [(last, event) for event in pipe.close()]
    events = [event for _, event in heard]
    start = next((e for e in events if isinstance(e, StreamStart)), StreamStart(pipe.provider))
    end = events[-1]
    assert isinstance(end, Finish | Failed)
    used = next((e for e in events if isinstance(e, Usage)), None)
    return Survey(
        provider=start.provider,
        model=start.model or _text(take.header.get("model")),
        response_id=start.response_id,
        captured=_text(take.header.get("captured")),
        recorded=_recorded(take),
        bytes=len(take.wire),
        chunks=len(take.chunks),
        frames=pipe.frames,
        events=dict(Counter(event.kind for event in events)),
        calls=_calls(events),
        notes=dict(sorted(pipe.notes.items())),
        usage=None if used is None else _usage(used),
        end=end.kind,
        reason=end.reason,
        detail=(end.raw_reason or "") if isinstance(end, Finish) else end.error,
        timing=_timing(take, heard) if take.timed and take.chunks else None,
        headers={k: take.header[k] for k in ("url", "status", "headers") if k in take.header},
    )


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _recorded(take: Take) -> str:
    from ..takes.recorder import MADE

    if take.torn:
        return "torn"
    if take.finished:
        return "finished"
    return "unfinished" if take.header.get("made") == MADE else "not told"


def _calls(events: list[Event]) -> list[CallFacts]:
    calls = [e for e in events if isinstance(e, ToolCall | BrokenToolCall)]
    return [
        CallFacts(
            call=event.call,
            name=event.name,
            id=event.id,
            id_source=event.provenance.id_source,
            wire_id=event.provenance.wire_id,
            wire_field=event.provenance.wire_field,
            boundary=event.provenance.boundary,
            runs_on=event.runs_on,
            size=len(event.raw),
            end="whole" if isinstance(event, ToolCall) else event.reason,
        )
        for event in calls
    ]


def _usage(used: Usage) -> dict[str, Any]:
    names = ("input", "output", "cached_input", "cache_write", "reasoning")
    told = {name: getattr(used, name) for name in names}
    return {name: count for name, count in told.items() if count is not None}


_TOKENS = (TextDelta, ReasoningDelta, ToolCallStart)


def _timing(take: Take, heard: list[tuple[float, Event]]) -> Timing:
    times = [at for at, _ in take.chunks]
    gaps = [(late - early, early) for early, late in pairwise(times)]
    gap, gap_at = max(gaps, default=(0.0, 0.0))
    tokens = (at for at, event in heard if isinstance(event, _TOKENS))
    return Timing(
        seconds=times[-1],
        first_byte=times[0],
        first_token=next(tokens, None),
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


def _lines(facts: Survey, style: Style) -> list[str]:
    sections = (_head(facts, style), _call_lines(facts, style), _odd_lines(facts, style),
                _time_lines(facts, style), [_end_line(facts, style)])  # fmt: skip
    return [line for section in sections for line in section]


def _head(facts: Survey, style: Style) -> list[str]:
    known = [clean(fact) for fact in (facts.model, facts.response_id) if fact]
    lines = [style.bold(style.signs.dot.join([clean(facts.provider), *known]))]
    told = {"finished": "recorded to its end", "torn": "its last chunk is torn",
            "unfinished": "the recording was cut short"}.get(facts.recorded)  # fmt: skip
    when = [f"captured {clean(facts.captured)}"] if facts.captured else []
    size = [f"{facts.bytes} bytes", f"{facts.chunks} chunks", f"{facts.frames} frames"]
    lines.append(style.signs.dot.join([*size, *when, *([told] if told else [])]))
    if "url" in facts.headers:
        lines.append(shorten(clean(f"from {facts.headers['url']}"), style.width))
    counts = (f"{count} {kind}" for kind, count in facts.events.items())
    lines += ["events: " + ", ".join(counts)]
    if facts.usage:
        tokens = (f"{name} {count}" for name, count in facts.usage.items())
        lines.append("tokens: " + ", ".join(tokens))
    return lines


def _call_lines(facts: Survey, style: Style) -> list[str]:
    from .table import table

    if not facts.calls:
        return ["calls: none"]
    rows = [
        (
            str(call.call),
            call.name + (" (run by the provider)" if call.runs_on == "provider" else ""),
            call.id,
            call.id_source,
            call.wire_field or "minted",
            ("whole" if call.end == "whole" else f"broken: {call.end}")
            + (", inferred" if call.boundary == "inferred" else ""),
            str(call.size),
        )
        for call in facts.calls
    ]
    return ["", *table(HEADS, rows, style=style, shrink=(NAME, ID, FROM)).split("\n"), ""]


def _odd_lines(facts: Survey, style: Style) -> list[str]:
    if not facts.notes:
        return ["oddities: none"]
    lines = ["oddities:"]
    for name, count in facts.notes.items():
        sentence = NOTES[name].sentence if name in NOTES else ""
        lines.append(f"  {style.yellow(f'{name} x {count}')}  {sentence}".rstrip())
    return lines


def _time_lines(facts: Survey, style: Style) -> list[str]:
    timing = facts.timing
    if timing is None:
        return ["timing: the take has no arrival times"]
    first = "none" if timing.first_token is None else f"{timing.first_token:.2f} s"
    where = f"{timing.longest_gap:.2f} s at {timing.longest_gap_at:.2f} s"
    bars = chart(timing.bytes_per_slot, style)
    return [
        f"timing: {timing.seconds:.2f} s, first token {first}, longest gap {where}",
        f"  0 s {style.cyan(bars)} {timing.seconds:.2f} s  (bytes over time)",
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
