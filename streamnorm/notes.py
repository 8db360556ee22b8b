"""Named tolerances and the log: something odd in, a count, a line and perhaps an error out.

Rule: nothing is tolerated in silence. Whatever the engine forgives has a row in ``NOTES``; telling
it counts it for ``pipe.notes``, logs it through structlog and raises it under ``strict=True``.

Logging costs nothing until it is wanted: each stream asks once which levels are on, when it has
something to say. If the
application has configured structlog its set-up is used; otherwise lines go to the standard logger
``streamnorm``. An application that set up no logging hears warnings all the same, as ``logging``
prints them to stderr then, and each of its kind once for a stream. Text of the wire is cleaned here,
as renderers do not. Argument values are never logged.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, NamedTuple

import msgspec

from .errors import NoteRaised

__all__ = ["LEVELS", "NOTES", "Note", "Scribe", "log", "unheard"]

DEBUG, INFO, WARNING = 10, 20, 30
LEVELS = {DEBUG: "debug", INFO: "info", WARNING: "warning"}  # as methods of a logger are called
_unheard: ContextVar[bool] = ContextVar("unheard", default=False)


class Note(NamedTuple):
    """One tolerance. ``WARNING`` raises under ``strict=True``; ``each`` logs every occurrence."""

    level: int
    sentence: str
    each: bool = False


NOTES: dict[str, Note] = {
    # identity
    "call.id_synthetic": Note(WARNING, "the wire gave no id; one was minted", each=True),
    "call.id_duplicate": Note(
        WARNING, "an id was used for two calls; the second got its own", True
    ),
    "call.id_changed": Note(WARNING, "the id changed within one call; it is one call"),
    "call.id_late": Note(WARNING, "the id came after another had to serve; the wire's id wins"),
    "call.id_conflated": Note(
        WARNING, "the wire gave no id of the call; another of the item serves", each=True
    ),
    "call.retold": Note(
        WARNING, "a client could not have told the call by its id or index; told under one of ours"
    ),
    "call.name_invalid": Note(WARNING, "the name has characters that no tool name should have"),
    "call.name_joined": Note(INFO, "the name came in pieces; they were joined"),
    "call.name_changed": Note(
        WARNING, "the name changed after the call had started; kept the first"
    ),
    "call.start_repeated": Note(WARNING, "the start of a call was said again; it is one call"),
    "call.said_twice": Note(
        WARNING, "a call was said in the old field beside the new one; it is one call"
    ),
    "call.unlisted": Note(WARNING, "the final answer lists calls, and not this one"),
    "call.tainted": Note(WARNING, "something of a call may be missing; it cannot be told whole"),
    # telling
    "call.index_missing": Note(INFO, "no index; the call was found by id or position"),
    "call.index_reused": Note(WARNING, "an index was used for a second call"),
    "call.unannounced": Note(WARNING, "arguments for a call that was never opened"),
    "call.late": Note(WARNING, "something about a call after it had ended; ignored"),
    "call.unclosed": Note(WARNING, "the turn ended without the call's own closing mark"),
    "args.repeated": Note(WARNING, "the whole arguments were said again; said once here"),
    "args.cumulative": Note(WARNING, "arguments came as growing snapshots; the news were kept"),
    "args.placeholder": Note(WARNING, "an empty object was sent before the arguments; replaced"),
    "args.object": Note(INFO, "arguments came as an object instead of text"),
    "args.merged": Note(WARNING, "arguments came as several objects; their keys were merged"),
    "args.mismatch": Note(WARNING, "the closing copy of the arguments differs from the fragments"),
    "args.done_empty": Note(WARNING, "the closing copy of the arguments was empty; ignored"),
    "args.double_encoded": Note(WARNING, "arguments were JSON inside a JSON string; unwrapped"),
    "args.replaced": Note(WARNING, "fragments followed whole arguments; the fragments win"),
    "call.forgotten": Note(
        WARNING, "the store of calls could not be read or written; the client's own copy serves"
    ),
    "result.orphan": Note(WARNING, "a result for a call that was never heard"),
    "wire.media_unreadable": Note(
        WARNING, "a picture or a sound that cannot be read; passed on whole", each=True
    ),
    "wire.text_mismatch": Note(
        WARNING, "a copy of a text differs from what was told; not told again"
    ),
    # wire
    "wire.gap": Note(WARNING, "the wire's own numbering has a hole: events are missing"),
    "wire.keepalive": Note(DEBUG, "a comment or ping that keeps the connection alive"),
    "wire.kind_unknown": Note(WARNING, "a kind of payload that we do not know; passed on whole"),
    "wire.field_unknown": Note(INFO, "a field that we do not know in a payload that we do"),
    "wire.field_odd": Note(WARNING, "a field of a type that we do not expect; left aside"),
    "wire.shape_odd": Note(INFO, "an unusual shape, made even before reading"),
    "wire.bad_utf8": Note(WARNING, "bytes that are not UTF-8 were replaced"),
    "wire.half_character": Note(WARNING, "half of a surrogate pair that never met the other"),
    "wire.split_character": Note(INFO, "a surrogate pair was split over payloads; joined"),
    "wire.no_data": Note(WARNING, "an event has a name and no data; it says nothing"),
    "wire.bad_event_skipped": Note(WARNING, "an event that is not JSON was skipped, as asked"),
    "wire.stray_line": Note(WARNING, "a line of an event is neither a field nor a comment"),
    "wire.error_field": Note(WARNING, "an error came as an SSE field instead of data"),
    "wire.unreadable": Note(
        WARNING, "a payload of a shape that no reader expected; given up", True
    ),
    "stream.cut_event": Note(INFO, "the bytes ended inside an event"),
    "stream.end_unmarked": Note(INFO, "the turn ended, but the stream's own end mark is missing"),
    "stream.of_another": Note(
        INFO, "an answer of another agent; read the session, and each is a stream of its own"
    ),
    "stream.id_changed": Note(
        WARNING, "the response ended under another id; what was not told by then is broken"
    ),
    "stream.after_end": Note(INFO, "payloads after the end of the stream; ignored"),
    "stream.resumed": Note(INFO, "the connection was lost; another one goes on where it was"),
    "stream.overlap": Note(INFO, "an event came again after the connection was lost; dropped"),
    "stream.retold": Note(
        INFO, "a copy of what began before the connection was lost; not told again"
    ),
    "stream.repeated": Note(INFO, "a message that was heard before came again; dropped"),
    "session.outside": Note(INFO, "a message of no response that is open; kept in the notices"),
    "session.stream_dropped": Note(
        WARNING, "more streams wait to be taken than are kept; it is lost"
    ),
    "session.notice_dropped": Note(WARNING, "more notices than are kept; the oldest was dropped"),
    "finish.unknown": Note(WARNING, "a finish reason that we do not know; told as other"),
    "finish.repeated": Note(INFO, "more than one finish reason for one choice"),
    "finish.reread": Note(INFO, "the wire said stop although it called tools; told as tool_calls"),
}


class Scribe:
    """Counts, logs and, under ``strict``, raises. One per stream."""

    __slots__ = (
        "_heard",
        "_logged",
        "counts",
        "debug_on",
        "frame",
        "hide",
        "info_on",
        "provider",
        "response_id",
        "strict",
    )

    def __init__(self, provider: str, *, strict: bool = False) -> None:
        self.provider = provider
        self.response_id: str | None = None
        self.strict = strict
        self.counts: Counter[str] = Counter()
        self.frame: int | None = None
        self._heard: set[str] = set()
        self._logged: set[str] = set()  # while nobody listens
        self.hide: Callable[[str], str] | None = None  # takes secrets out of what is told
        self.debug_on = False
        self.info_on: bool | None = None  # nobody has asked yet

    def is_on(self, level: int) -> bool:
        """Would a line be heard? Of the levels of each call: asked when the first one begins, once."""
        if self.info_on is None:
            self.debug_on = is_on(DEBUG)
            self.info_on = self.debug_on or is_on(INFO)
        return self.debug_on if level == DEBUG else self.info_on

    def note(self, name: str, /, **facts: Any) -> None:
        """A tolerance happened. Counted, logged (the first of its name, or each), raised if strict."""
        note = NOTES[name]
        self.counts[name] += 1
        if note.each or name not in self._heard:
            self._heard.add(name)
            self.log(note.level, name, reason=facts.pop("reason", note.sentence), **facts)
        if self.strict and note.level >= WARNING:
            told = _hidden(facts, self.hide) if self.hide is not None else facts
            detail = "; ".join(f"{k}: {v}" for k, v in told.items() if isinstance(v, str))
            raise NoteRaised(
                name,
                f"{note.sentence} ({detail})" if detail else note.sentence,
                provider=self.provider,
                frame=self.frame,
            )

    def log(self, level: int, event: str, /, **facts: Any) -> None:
        """One line, with provider and response id; if nobody set up logging, one of its kind."""
        if not is_listened_to():
            if event in self._logged:
                return
            self._logged.add(event)
        facts = {"provider": self.provider, "response_id": self.response_id, **facts}
        if self.hide is not None and is_on(level):
            facts = _hidden(facts, self.hide)
        log(level, event, **facts)


class unheard:
    """Inside nothing is logged: who counts what is noted in a million streams wants no line of each."""

    __slots__ = ("_before",)

    def __enter__(self) -> None:
        self._before = _unheard.set(True)

    def __exit__(self, *_: object) -> None:
        _unheard.reset(self._before)


def log(level: int, event: str, /, **facts: Any) -> None:
    """One line, every text of the wire cleaned."""
    if not is_on(level):
        return
    facts = {k: _cleaned(v) for k, v in facts.items()}
    if (structlog := _structlog()) is not None:
        getattr(structlog.get_logger("streamnorm"), LEVELS[level])(event, **facts)
        return
    told = " ".join(f"{key}={value!r}" for key, value in {"event": event, **facts}.items())
    _standard().log(level, "%s", told)


def is_on(level: int) -> bool:
    """Would a line of this level be heard by anybody?"""
    if _unheard.get():
        return False
    if _structlog() is not None:
        return True  # its own filter decides
    # Without any handler logging itself prints warnings.
    return bool(_standard().isEnabledFor(level) and (level >= WARNING or is_listened_to()))


def is_listened_to() -> bool:
    """Has the application set up logging, of either kind?"""
    return _structlog() is not None or bool(_standard().hasHandlers())


def _structlog() -> Any:
    """structlog if the application has configured it. It costs a third of a second to import."""
    structlog = sys.modules.get("structlog")
    return structlog if structlog is not None and structlog.is_configured() else None


def _standard() -> Any:
    import logging

    return logging.getLogger("streamnorm")


def _hidden(value: Any, hide: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return hide(value)
    if isinstance(value, dict):
        return {hide(str(key)): _hidden(item, hide) for key, item in value.items()}
    return [_hidden(item, hide) for item in value] if isinstance(value, list | tuple) else value


def _cleaned(value: Any) -> Any:
    from .text.shown import clean

    if isinstance(value, str):
        return clean(value[:256])
    if isinstance(value, dict):
        return {clean(str(k)): _cleaned(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_cleaned(v) for v in value]
    return value


def structure(value: Any) -> Any:
    """The keys and types of a payload, without its values: safe to log.

    >>> structure({"index": 0, "function": {"name": "f"}, "items": [1, 2]})
    {'index': 'int', 'function': {'name': 'str'}, 'items': ['int']}
    """
    if isinstance(value, msgspec.Struct):
        value = {f: getattr(value, f) for f in value.__struct_fields__}
        value = {k: v for k, v in value.items() if v is not None and v is not msgspec.UNSET}
    if isinstance(value, dict):
        return {str(k): structure(v) for k, v in value.items()}
    if isinstance(value, list):
        return [structure(value[0])] if value else []
    return type(value).__name__
