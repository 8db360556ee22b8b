"""The live view: events in, lines for a person out.

Rule: wire text never stands at the start of a line, where our own signs do, and never reaches the
terminal uncleaned. Text flows as it comes; a call is printed once, when it is whole or broken, so
parallel calls cannot garble each other. Of several choices the first flows, the others wait.
"""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any, TextIO, assert_never

from ..events import (
    BrokenToolCall,
    Citation,
    Event,
    Failed,
    Finish,
    Media,
    Provenance,
    ProviderToolResult,
    ReasoningDelta,
    RecorderFailed,
    StreamStart,
    TextDelta,
    ToolCall,
    ToolCallDelta,
    ToolCallStart,
    ToolEnded,
    ToolProgress,
    ToolStarted,
    Unrecognized,
    Usage,
)
from ..notes import NOTES
from ..text.shown import clean, display_width, shorten
from ..text.written import json_spaced

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from .style import Style

__all__ = ["View", "arguments_text"]

INDENT = "    "
MOST_LINES = 12  # of the arguments of one call
SOURCE_KEYS = ("title", "document_title", "filename", "url", "uri", "cited_text")


class View:
    """Shows the events of one stream on ``out``.

    >>> import sys
    >>> from streamnorm.cli.style import Style
    >>> view = View(sys.stdout, Style(color=False, width=60))
    >>> view.show(ToolCall(0, "toolu_1", "read_file", {"path": "a.py"}, '{"path":"a.py"}'))
    ● read_file  {"path": "a.py"}
        id toolu_1, natural
    """

    def __init__(self, out: TextIO, style: Style) -> None:
        self._out = out
        self._style = style
        self._names: dict[int, str] = {}
        self._flowing: object = None  # which run of text the cursor stands in; None: a fresh line
        self._column = 0  # where in the line, if we wrap
        self._choice: int | None = None
        self._waiting: dict[int, list[TextDelta | ReasoningDelta]] = {}

    def show(self, event: Event) -> None:
        """Prints what is to be seen of one event."""
        match event:
            case TextDelta() | ReasoningDelta():
                self._text(event)
            case ToolCallDelta() | ToolStarted() | ToolEnded():
                pass  # a call is shown whole, at its end; tools are run by loops
            case ToolCallStart():
                self._start(event)
            case ToolCall():
                self._call(event)
            case BrokenToolCall():
                self._broken(event)
            case ToolProgress():
                self._progress(event)
            case ProviderToolResult():
                self._result(event)
            case Media():
                self._media(event)
            case Citation():
                self._citation(event)
            case Usage():
                self._usage(event)
            case StreamStart():
                self._head(event)
            case Unrecognized():
                self._unrecognized(event)
            case RecorderFailed():
                self._unrecorded(event)
            case Finish() | Failed():
                self._end(event)
            case _:
                assert_never(event)

    def say(self, line: str) -> None:
        """Prints a line of our own; what is not ours in it is to be cleaned before."""
        self._line(self._cut(line))

    def notes(self, counts: Mapping[str, int]) -> None:
        """Prints what was tolerated, with how often and the sentence for it."""
        style = self._style
        for name, count in sorted(counts.items()):
            sentence = NOTES[name].sentence if name in NOTES else ""
            head = f"{style.signs.odd} note {name} x {count}"
            self._line(style.yellow(head) + f"  {sentence}".rstrip())

    # --- text that flows

    def _text(self, event: TextDelta | ReasoningDelta) -> None:
        if self._choice is None:
            self._choice = event.choice
        if event.choice == self._choice:
            self._flow(event)
        else:
            self._waiting.setdefault(event.choice, []).append(event)

    def _flow(self, event: TextDelta | ReasoningDelta) -> None:
        if not event.text:
            return
        aside = isinstance(event, ReasoningDelta)
        margin = self._style.signs.aside if aside else "  "
        run = (event.kind, event.choice, event.part, event.agent)
        if self._flowing != run:
            self._fresh()
            if event.agent is not None:
                self._line(self._style.dim(self._cut(f"{clean(event.agent)}:")))
            self._column = len(margin)
            self._out.write(self._style.dim(margin))
        self._flowing = run
        text = self._with_margin(clean(event.text, newlines=True), margin)
        self._out.write(self._style.dim(text) if aside else text)

    def _with_margin(self, text: str, margin: str) -> str:
        if not self._style.wrap:
            return text.replace("\n", "\n" + margin)
        # The terminal would wrap to its first column, so we wrap before it does.
        pieces: list[str] = []
        for char in text.replace("\t", "    "):
            columns = 0 if char == "\n" else display_width(char)
            if char == "\n" or self._column + columns > self._style.width:
                pieces.append("\n" + margin)
                self._column = len(margin)
            if char != "\n":
                pieces.append(char)
                self._column += columns
        return "".join(pieces)

    def _flush_waiting(self) -> None:
        for choice, events in sorted(self._waiting.items()):
            self._line(self._style.dim(f"choice {choice}:"))
            for event in events:
                self._flow(event)
        self._waiting.clear()

    # --- calls

    def _start(self, event: ToolCallStart) -> None:
        self._names[event.call] = event.name
        where = " (run by the provider)" if event.runs_on == "provider" else ""
        line = f"{self._style.signs.start} {clean(event.name)}{where} begins"
        self._line(self._style.dim(self._cut(line)))

    def _call(self, event: ToolCall) -> None:
        style = self._style
        self._names[event.call] = event.name
        head = f"{style.signs.call} {style.bold(style.green(clean(event.name)))}"
        used = display_width(clean(event.name)) + 4
        inline = clean(arguments_text(event))
        if used + display_width(inline) <= style.width:
            self._line(f"{head}  {inline}")
        else:
            self._line(head)
            self._indented(_argument_lines(event))
        self._indented([_identity(event)], paint=style.cyan)

    def _broken(self, event: BrokenToolCall) -> None:
        style = self._style
        name = clean(event.name) or "a call without a name"
        self._line(style.red(self._cut(f"{style.signs.broken} {name}  broken: {event.reason}")))
        if event.detail:
            self._indented([clean(event.detail)], paint=style.red)
        if event.raw:
            self._indented([f"heard: {clean(event.raw)}"])
        self._indented([_identity(event)], paint=style.cyan)

    def _progress(self, event: ToolProgress) -> None:
        line = f"{self._style.signs.start} {self._name(event)}: {clean(event.status)}"
        self._line(self._style.dim(self._cut(line)))

    def _result(self, event: ProviderToolResult) -> None:
        style = self._style
        what = "error" if event.is_error else "result"
        line = f"{style.signs.result} {what} of {self._name(event)}: {_shown(event.output)}"
        self._line((style.red if event.is_error else str)(self._cut(line)))
        self._indented([f"id {clean(event.id)}"], paint=style.cyan)

    def _name(self, event: ToolProgress | ProviderToolResult) -> str:
        name = "" if event.call is None else self._names.get(event.call, "")
        return clean(name or event.id)

    # --- the rest

    def _head(self, event: StreamStart) -> None:
        known = [clean(fact) for fact in (event.model, event.response_id) if fact]
        line = self._style.signs.dot.join([clean(event.provider), *known])
        self._line(self._style.bold(self._cut(line)))

    def _media(self, event: Media) -> None:
        what = f"{len(event.data):,} bytes" if event.data is not None else clean(event.url or "")
        self._line(self._cut(f"{self._style.signs.cite} {clean(event.mime_type)}: {what}"))

    def _citation(self, event: Citation) -> None:
        line = f"{self._style.signs.cite} {_source(event.payload)}"
        self._line(self._style.dim(self._cut(line)))

    def _usage(self, event: Usage) -> None:
        self._flush_waiting()
        line = f"{self._style.signs.sum} {_tokens(event)}"
        self._line(self._style.dim(self._cut(line)))

    def _unrecognized(self, event: Unrecognized) -> None:
        kind = clean(event.wire_kind) or "a payload"
        line = f"{self._style.signs.odd} unrecognized {kind}: {_shown(event.payload)}"
        self._line(self._style.yellow(self._cut(line)))

    def _unrecorded(self, event: RecorderFailed) -> None:
        line = f"{self._style.signs.odd} the recording {clean(event.path)} ends here: {clean(event.error)}"
        self._line(self._style.yellow(self._cut(line)))

    def _end(self, event: Finish | Failed) -> None:
        self._flush_waiting()
        style = self._style
        if isinstance(event, Finish):
            said = event.raw_reason
            wire = f" (the wire said {clean(said)})" if said and said != event.reason else ""
            self._line(style.green(f"{style.signs.end} finished: {event.reason}") + style.dim(wire))
        else:
            self._line(style.red(f"{style.signs.end} failed: {event.reason}"))
            retry = "; a retry may help" if event.retryable else ""
            lines = textwrap.wrap(clean(event.error) + retry, style.width - len(INDENT))
            self._indented(lines, paint=style.red)

    # --- lines

    def _fresh(self) -> None:
        if self._flowing is not None:
            self._out.write("\n")
            self._flowing = None

    def _line(self, text: str) -> None:
        self._fresh()
        self._out.write(text + "\n")

    def _indented(self, lines: Iterable[str], *, paint: Callable[[str], str] = str) -> None:
        for line in lines:
            self._line(paint(self._cut(INDENT + line)))

    def _cut(self, line: str) -> str:
        return shorten(line, self._style.width)


def arguments_text(call: ToolCall) -> str:
    """A call's arguments in one line of JSON, not yet cleaned."""
    return _json(call.arguments) or call.raw


def _argument_lines(call: ToolCall) -> list[str]:
    lines = [f"{clean(key)}: {clean(_json(v) or repr(v))}" for key, v in call.arguments.items()]
    left = len(lines) - MOST_LINES
    return lines if left <= 0 else [*lines[:MOST_LINES], f"and {left} more"]


def _identity(event: ToolCall | BrokenToolCall) -> str:
    where: Provenance = event.provenance
    facts = [f"id {clean(event.id)}" if event.id else "no id", where.id_source]
    if where.wire_field and where.id_source != "synthetic":
        facts.append(f"from {clean(where.wire_field)}")
    if where.wire_id and where.wire_id != event.id:
        facts.append(f"the wire said {clean(where.wire_id)}")
    if where.boundary == "inferred":
        facts.append("end inferred")
    if event.family != "function":
        facts.append(clean(event.family))
    if event.runs_on == "provider":
        facts.append("run by the provider")
    if event.choice:
        facts.append(f"choice {event.choice}")
    return ", ".join(facts)


def _source(payload: Any) -> str:
    """What a citation points at: title and address where the wire names them, else all of it."""
    if isinstance(payload, dict):
        inner = dict(payload)
        for value in payload.values():  # some wires put them one level down
            inner |= value if isinstance(value, dict) else {}
        named = [value for key in SOURCE_KEYS if isinstance(value := inner.get(key), str) and value]
        if named:
            return clean("  ".join(dict.fromkeys(named)))
    return _shown(payload)


def _tokens(usage: Usage) -> str:
    counts = {"in": usage.input, "out": usage.output}
    asides = {
        "cached": usage.cached_input,
        "written to the cache": usage.cache_write,
        "for reasoning": usage.reasoning,
    }
    told = [f"{count} {what}" for what, count in counts.items() if count is not None]
    told += [f"{count} {what}" for what, count in asides.items() if count]
    return "tokens: " + (", ".join(told) or "not told")


def _shown(value: Any) -> str:
    return clean(value if isinstance(value, str) else _json(value) or repr(value))


def _json(value: Any) -> str:
    try:
        return json_spaced(value)
    except (TypeError, ValueError, RecursionError):  # numbers or nesting beyond what json writes
        return ""
