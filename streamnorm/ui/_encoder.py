"""What the encoders of all chat protocols share: items in, payloads or server-sent events out.

Rule: an encoder does no I/O and knows no time. It holds nothing back: what is given to one ``feed``
is told at once, and small pieces are merged among the items of that one call. ``encode`` brings the
time: it reads events as they come and feeds them in batches.
"""

from __future__ import annotations

import re
import secrets
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from .. import fold as f
from ..errors import StreamnormError
from ..events import (
    Failed,
    ReasoningDelta,
    StreamStart,
    TextDelta,
    ToolCall,
    ToolCallDelta,
    ToolCallStart,
    Usage,
    is_tool_name,
)
from ..fold import Call, Fold, Move
from ..text.canonical import checksum
from ..text.media import UNTOLD, is_web
from ..text.written import (
    data_uri,
    json_text,
    phrase,
    phrased,
    safe_json,
    safe_text,
    sse_lines,
)
from ..tools import ToolResult

if TYPE_CHECKING:
    from ..history.settled import Settled

__all__ = ["SSE_HEADERS", "Encoder", "ErrorText", "full_error", "new_id", "plain_error"]

SSE_HEADERS = {
    "content-type": "text/event-stream; charset=utf-8",
    "cache-control": "no-cache, no-transform",
    "connection": "keep-alive",
    "x-accel-buffering": "no",  # nginx would collect the stream before passing it on
    "x-content-type-options": "nosniff",
}

ErrorText: TypeAlias = Callable[[Failed], str]
Frame: TypeAlias = dict[str, Any]
Told: TypeAlias = Frame | bytes  # to be written, or written already
Item: TypeAlias = "f.Item | Settled"
PIECES = frozenset((TextDelta, ReasoningDelta, ToolCallDelta))

CUT = Failed("truncated", "the events ended without an end")

_SENTENCES = {
    "truncated": "The answer was cut off.",
    "provider_error": "The model's provider reported an error.",
    "transport": "The connection to the model's provider was lost.",
    "protocol": "The model's provider sent something that could not be read.",
    "limit": "The answer went beyond a limit.",
    "idle": "The model's provider stopped answering.",
    "cancelled": "The answer was stopped.",
}
INTERNAL = "internal"  # the code of what went wrong on our side
CUT_OFF = "The answer was cut off."
# What a page hears if the log is away, in every protocol. Those who come back hear the rest.
UNAVAILABLE = "The answer cannot be read right now. It goes on: come back in a moment."


def plain_error(failed: Failed) -> str:
    """What anybody may read of a failure: a sentence, and the provider's code.

    >>> plain_error(Failed("provider_error", "org-1234 is over its quota", code="rate_limit"))
    "The model's provider reported an error. (rate_limit)"
    """
    if failed.code == INTERNAL:
        return "Something went wrong on the server."
    sentence = _SENTENCES.get(failed.reason, "Something went wrong.")
    return f"{sentence} ({failed.code})" if failed.code else sentence


def full_error(failed: Failed) -> str:
    """The failure in the provider's own words; for pages that its owner alone reads."""
    return f"{failed.reason}: {failed.error}"


def new_id(prefix: str) -> str:
    """An id that nobody can guess."""
    return f"{prefix}_{secrets.token_urlsafe(18)}"


class Encoder(ABC):
    """Events of one message in, one chat protocol out."""

    def __init__(self, fold: Fold, error_text: ErrorText) -> None:
        self._fold = fold
        self._error_text = error_text
        self._closed = False

    @property
    def skipped(self) -> Counter[str]:
        """What was not told, by kind: items that no page understands."""
        return self._fold.skipped

    def payloads(self, *items: Item) -> list[bytes]:
        """The payloads of these items, each for one event of the stream."""
        return self._lines_of(items)

    @abstractmethod
    def _lines_of(self, items: tuple[Item, ...]) -> list[bytes]:
        """The same, of items at hand: to hand them on one by one takes longer."""

    @abstractmethod
    def closing(self, failed: Failed | None = None) -> list[bytes]:
        """The last payloads: everything open is closed. ``failed`` says what stopped the events."""

    def _cut(self) -> Failed | None:
        """The events just ended: with a question or an end, or in the middle."""
        return CUT if self._fold.end is None and not self._fold.waiting else None

    def feed(self, *items: Item) -> bytes:
        """These items as server-sent events."""
        lines = self._lines_of(items)
        return b"data: %b\n\n" % lines[0] if len(lines) == 1 else sse_lines(lines)

    def close(self, failed: Failed | None = None) -> bytes:
        """The end as server-sent events."""
        return sse_lines(self.closing(failed))


class MoveEncoder(Encoder):
    """A protocol that is told in moves: a subclass has a method for each, named in ``METHODS``.

    A method gives frames, or the payload of one that is written already: of a part that goes on only
    the text is new, so the rest of its frame (``_piece``) is written once.

    ``used`` are call ids that the conversation has already; ``known`` those of earlier calls that may
    be answered now, by the ids that their results have; ``echo=False`` leaves out what a provider
    wants back (signatures and the like), for servers that keep the conversation themselves.
    """

    TRAILER: ClassVar[tuple[bytes, ...]] = ()
    CALL_PIECE: ClassVar[bytes]  # the phrase of a call, a form for its id
    _tells: ClassVar[dict[type, Callable[[Any, Any], list[Told]]]] = {}  # a move -> its method

    def __init_subclass__(cls) -> None:
        cls._tells = {move: getattr(cls, name) for move, name in METHODS.items()}

    def __init__(
        self,
        *,
        used: Iterable[str] = (),
        known: Mapping[str, str] | None = None,
        echo: bool = True,
        error_text: ErrorText = plain_error,
    ) -> None:
        super().__init__(Fold(used=used, known=known, echo=echo, read=as_item), error_text)
        self._echo = echo
        self._opened = False
        self._phrases: dict[f.Run | Call, bytes] = {}  # of the parts that are open

    def _lines_of(self, items: tuple[Item, ...]) -> list[bytes]:
        if self._closed:
            return []
        if len(items) == 1:  # most often what needs no moves: a piece of an open part, or a call
            item: Any = items[0]
            kind = type(item)
            if kind in PIECES:
                part = self._fold.going(item)
                if part is not None:
                    text: str = item.text
                    if (head := self._phrases.get(part) or self._ready(part, text)) is not None:
                        part.add(text)
                        return [phrased(head, text)]
            elif kind is ToolCall and (call := self._fold.ended(item)) is not None:
                told = self._whole(call, item)
                return [safe_json(told[0])] if len(told) == 1 else _lines(told)
            elif kind is ToolCallStart and (call := self._fold.begun(item)) is not None:
                line = self._begun(call)
                return [line if type(line) is bytes else safe_json(line)]
        return _lines(self._told(self._fold.feed(items)))  # type: ignore[arg-type]  # see as_item

    def closing(self, failed: Failed | None = None) -> list[bytes]:
        """The last payloads: everything open is closed. ``failed`` says what stopped the events."""
        if self._closed:
            return []
        told = self._told(self._fold.feed([failed] if failed is not None else []))
        failed = failed or self._cut()
        told += self._told(self._fold.close())
        self._closed = True
        told += self._finish(failed or self._failed())
        return [*_lines(told), *self.TRAILER]

    def _told(self, moves: list[Move]) -> list[Told]:
        told = [] if self._opened else self._openers()
        for move in moves:
            told += self._tells[type(move)](self, move)
        return told

    def _openers(self) -> list[Told]:
        self._opened = True
        return self._start()

    def _ready(self, part: f.Run | Call, text: str) -> bytes | None:
        """As ``_phrase``, or None if this first piece does not say how the part is to be told."""
        return None if isinstance(part, Call) else self._phrase(part)

    def _phrase(self, run: f.Run) -> bytes:
        """What the pieces of an open run are told with."""
        head = self._phrases.get(run)
        if head is None:
            head = self._phrases[run] = phrase(self._piece(run))
        return head

    def _failed(self) -> Failed | None:
        end = self._fold.end
        return end if isinstance(end, Failed) else None

    def _call_open(self, move: f.CallOpen) -> list[Told]:
        return [self._begun(move.call)]

    def _call_whole(self, move: f.CallWhole) -> list[Told]:
        return [*self._whole(move.call, move.event)]

    # --- of each protocol -------------------------------------------------------------------------

    @abstractmethod
    def _start(self) -> list[Told]:
        """What comes before everything."""

    @abstractmethod
    def _piece(self, run: f.Run) -> Frame:
        """The frame of a piece of this run, with an empty text at its end."""

    @abstractmethod
    def _begun(self, call: Call) -> Told:
        """A call begins; its phrase is made here, too, of the same id."""

    @abstractmethod
    def _whole(self, call: Call, event: ToolCall) -> list[Frame]:
        """A call is whole."""

    @abstractmethod
    def _finish(self, failed: Failed | None) -> list[Told]:
        """What comes after everything."""


METHODS = {
    f.Step: "_step",
    f.StepEnd: "_step_end",
    f.RunOpen: "_run_open",
    f.RunText: "_run_text",
    f.RunClose: "_run_close",
    f.Shown: "_shown",
    f.CallOpen: "_call_open",
    f.CallText: "_call_text",
    f.CallWhole: "_call_whole",
    f.CallBroken: "_call_broken",
    f.Result: "_result",
    f.Orphan: "_orphan",
    f.Progress: "_progress",
    f.Cited: "_cited",
    f.Asked: "_asked",
    f.Refused: "_refused",
}


def _lines(told: Sequence[Told]) -> list[bytes]:
    return [line if type(line) is bytes else safe_json(line) for line in told]


# --- what goes into an encoder ----------------------------------------------------------------


def as_item(item: Item) -> f.Item:
    """The item itself; of a settled record its result."""
    return result_of(item) if getattr(item, "kind", "") == "settled" else item  # type: ignore[return-value]


def result_of(record: Any) -> ToolResult:
    """The result of a settled record. What lies on the disk is described: it is too big to show."""
    try:
        result: ToolResult = record.result()
    except StreamnormError:
        told = "; ".join(artifact.summary for artifact in record.artifacts)
        call = ToolCall(0, record.id, record.name, record.arguments, "")
        return ToolResult.for_call(call, f"[not shown: {told}]")
    return result


# --- what the protocols tell alike ------------------------------------------------------------


def stream_facts(start: StreamStart) -> Frame:
    """Who answers."""
    return without_none(provider=start.provider, model=start.model, responseId=start.response_id)


# A count as pages call it -> as we do.
TOKENS = {
    "inputTokens": "input",
    "outputTokens": "output",
    "reasoningTokens": "reasoning",
    "cachedInputTokens": "cached_input",
    "cacheWriteInputTokens": "cache_write",
}


def token_facts(usage: Usage) -> dict[str, int]:
    """What was spent, as far as it is known."""
    return without_none(**{key: getattr(usage, ours) for key, ours in TOKENS.items()})


def progress_facts(move: f.Progress) -> Frame:
    """How far a tool is that the provider runs."""
    id = move.call.id if move.call else move.event.id
    facts: Frame = {"toolCallId": id, "status": move.event.status}
    if isinstance(move.event.payload, str | int | float | list | dict):
        facts["payload"] = move.event.payload
    return facts


# Media that a page shows and that cannot act; anything else is only a file to it.
HARMLESS = {
    "image/png", "image/jpeg", "image/gif", "image/webp", "image/avif", "application/pdf",
    "text/plain",
}  # fmt: skip


def address_of(medium: f.Medium) -> str | None:
    """Where a page finds a medium: in a data URL, or on the web; None if it may not have it.

    >>> address_of(f.Medium(1, 1, 0, 0, "text/html", pieces=[b"<b>"]))
    'data:application/octet-stream;base64,PGI+'
    """
    if (data := medium.data) is not None:
        kind = medium.type.partition(";")[0].lower()
        shown = kind in HARMLESS or kind.startswith(("audio/", "video/"))
        return data_uri(data, kind if shown else UNTOLD)
    return medium.url if medium.url is not None and is_web(medium.url) else None


def run_facts(run: f.Run) -> Frame:
    """What is to come back with a text, and who said it."""
    facts: Frame = {"echoes": run.echoes, "marks": run.marks} if run.echoes else {}
    return facts if run.agent is None else {**facts, "agent": run.agent}


def medium_facts(medium: f.Medium) -> Frame:
    """The same of a medium. What says an address that is none of the web stays on the server."""
    hidden = medium.url is not None and not is_web(medium.url)
    told = None if hidden or not _may_leave(medium.echoes) else medium.echoes or None
    return without_none(echoes=told, agent=medium.agent)


_ADDRESS = re.compile(r"\s*[a-z][a-z0-9+.-]*:\S", re.IGNORECASE)


def _may_leave(said: Any) -> bool:
    """Is no address in it, at any depth, but those of the web?

    >>> _may_leave([{"uri": "https://example.org/a"}]), _may_leave([{"uri": "gs://bucket/a"}])
    (True, False)
    """
    found = [said]
    for value in found:  # it grows
        if isinstance(value, dict):
            found += value.values()
        elif isinstance(value, list | tuple):
            found += value
        elif isinstance(value, str) and _ADDRESS.match(value) and not is_web(value):
            return False
    return True


def orphan_facts(move: f.Orphan) -> Frame:
    """A result of a call that nobody heard of."""
    return {"id": move.id, "output": move.output, "isError": move.event.is_error}


def as_text(output: Any) -> str:
    """What a tool gave, for a place that takes text only."""
    return output if isinstance(output, str) else json_text(output)


def call_metadata(event: ToolCall | Any) -> dict[str, Any]:
    """Where a call and its id come from, for the page: what ``inbox`` reads when it comes back."""
    whence = event.provenance
    wire_id, wire_field, provider = whence.wire_id, whence.wire_field, whence.provider
    # All that most calls have is in it from the start: a dict that grows is made anew.
    metadata: dict[str, Any] = {
        "id": event.id, "idSource": whence.id_source, "boundary": whence.boundary,
        "family": event.family, "call": event.call, "wireId": wire_id, "wireField": wire_field,
        "provider": provider, "responseId": whence.response_id,
    }  # fmt: skip
    if wire_id is None:
        del metadata["wireId"]
    if wire_field is None:
        del metadata["wireField"]
    if not provider:
        del metadata["provider"]
    if whence.response_id is None:
        del metadata["responseId"]
    if event.choice:
        metadata["choice"] = event.choice
    if event.agent is not None:
        metadata["agent"] = event.agent
    if isinstance(event, ToolCall):
        metadata["checksum"] = checksum(event.name, event.arguments)
        if not _is_tool_name(event.name):
            metadata["nameValid"] = False
    else:
        metadata["broken"] = event.reason
    return metadata


# A stream has few names, and tells them often.
_is_tool_name = lru_cache(maxsize=256)(is_tool_name)
safe_name = lru_cache(maxsize=256)(safe_text)


def broken_text(event: Any) -> str:
    """Why a call is broken, for people."""
    return f"{event.reason}: {event.detail}" if event.detail else str(event.reason)


def without_none(**fields: Any) -> dict[str, Any]:
    """The fields that have a value."""
    return {key: value for key, value in fields.items() if value is not None}
