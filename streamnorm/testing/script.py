"""Scripts: steps in; the bytes, the chunks with their times, or the events of any provider out.

Rule: a script is a value. Whatever is asked of it is made anew from its steps, and the same script
gives the same bytes, ids and times in every run.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from ..core.lanes import Lanes
from ..encoding.steps import (
    KINDS,
    Call,
    Cut,
    Error,
    Fault,
    Finish,
    Hear,
    Result,
    Say,
    Show,
    Step,
    Think,
    Usage,
)
from ..encoding.teller import Talker, Teller, Told
from ..errors import UsageError
from ..normalizer import Normalizer
from ..providers import provider_row
from ..text.written import json_bytes, json_text
from .http import Answer, Server, Transport, transport
from .websocket import CLOSE, DROP, HEAR, PING, SEND, Move, Spoken, WebSocketServer

if TYPE_CHECKING:
    from collections import Counter

    from ..events import Event

__all__ = ["Script", "Turns", "script", "turns"]

TICK = 0.02  # seconds between two events, where no delay() says more
SEED = "streamnorm.testing"
_ENDS = (Finish, Cut, Error)


def script(*steps: Step) -> Script:
    """A stream, told step by step.

    >>> from streamnorm.testing import call, finish, say
    >>> s = script(say("Let me look."), call("get_weather", city="Oslo"), finish())
    >>> s.bytes("anthropic").splitlines()[0]
    b'event: message_start'
    >>> [event.name for event in s.events("anthropic") if event.kind == "tool_call"]
    ['get_weather']
    """
    for step in steps:
        if not isinstance(step, Step):
            raise UsageError(
                f"a script is made of steps such as say(...) and call(...), not {type(step).__name__}"
            )
    return Script(steps)


def turns(*scripts: Script) -> Turns:
    """Several answers, one per request, for a conversation with tools.

    >>> from streamnorm.testing import call, say
    >>> talk = turns(script(call("get_weather", city="Oslo")), script(say("7 degrees.")))
    >>> len(talk.scripts)
    2
    """
    return Turns(tuple(replace(s, key=str(n)) for n, s in enumerate(scripts, start=1)))


@dataclass(frozen=True)
class Script:
    """The steps of one stream; ``script()`` makes one."""

    steps: tuple[Step, ...]
    key: str = "1"

    def bytes(self, provider: str) -> builtins.bytes:
        """The exact bytes of that provider."""
        return b"".join(self.chunks(provider))

    def chunks(self, provider: str) -> list[builtins.bytes]:
        """The same bytes as they arrive: one chunk per event, or as ``chunked()`` says."""
        return [chunk for _, chunk in self.timed(provider)]

    def timed(self, provider: str) -> list[tuple[float, builtins.bytes]]:
        """The chunks with the time at which each arrives, in seconds from the start."""
        return _Telling(self, _teller(self, provider)).chunks()

    def events(self, provider: str, **options: Any) -> list[Event]:
        """What a reader of the stream hears; ``options`` are those of ``Normalizer``."""
        return self.heard(provider, **options)[0]

    def notes(self, provider: str, **options: Any) -> Counter[str]:
        """What a reader of the stream had to tolerate."""
        return self.heard(provider, **options)[1].notes

    def heard(self, provider: str, **options: Any) -> tuple[list[Event], Normalizer]:
        """The events, and the pipe that told them."""
        pipe = Normalizer(provider, **({"seed": SEED} | options))
        events = [event for chunk in self.chunks(provider) for event in pipe.feed(chunk)]
        if self.breaks:
            events += pipe.fail("transport", "the connection broke")
        return events + pipe.close(), pipe

    def transport(self, provider: str) -> Transport:
        """A transport for ``httpx`` (or ``httpx2``) clients, sync and async."""
        return Turns((self,), repeat=True).transport(provider)

    def server(self, provider: str) -> Server:
        """A server on the loopback address, for ``with`` and ``async with``."""
        return Turns((self,), repeat=True).server(provider)

    def websocket(self, provider: str, *, lanes: int = 1) -> WebSocketServer:
        """A WebSocket server on the loopback address, which answers every request so."""
        return Turns((self,), repeat=True).websocket(provider, lanes=lanes)

    def answer(self, provider: str) -> Answer:
        """The response that a server of that provider would give."""
        if (refused := self.refused) is not None:
            body = json_bytes(_teller(self, provider).refusal(refused))
            return Answer(refused.status or 500, "application/json", [body])
        content_type = provider_row(provider).content_type
        return Answer(200, content_type, self.chunks(provider), self.breaks)

    def spoken(self, provider: str, lane: str | None = None) -> Spoken:
        """What a server of that provider would say in this lane of a WebSocket."""
        wire = _talker(self, provider)
        wire.lane = lane
        if (refused := self.refused) is not None:
            return Spoken(wire.answer, [(SEND, [json_text(wire.refused(refused))])])
        moves = _Speaking(self, wire).moves()
        return Spoken(wire.answer, moves, Finish("pause") in self.steps)

    @property
    def breaks(self) -> bool:
        """Does the connection break, instead of ending?"""
        return any(isinstance(step, Cut) and step.abrupt for step in self.steps)

    @property
    def refused(self) -> Error | None:
        """The HTTP error that comes instead of a stream, if any."""
        found = (s for s in self.steps if isinstance(s, Error) and s.status is not None)
        return next(found, None)


@dataclass(frozen=True)
class Turns:
    """Scripts, one per request; ``turns()`` makes them."""

    scripts: tuple[Script, ...]
    repeat: bool = False  # one script for every request

    def transport(self, provider: str) -> Transport:
        """A transport for ``httpx`` (or ``httpx2``) clients, sync and async."""
        return transport(self._answering(provider))

    def server(self, provider: str) -> Server:
        """A server on the loopback address, for ``with`` and ``async with``."""
        return Server(self._answering(provider))

    def websocket(self, provider: str, *, lanes: int = 1) -> WebSocketServer:
        """A WebSocket server on the loopback address, for ``with`` and ``async with``. As many requests
        as there are ``lanes`` are waited for, and answered side by side."""
        teller = _talker(script(), provider)  # or say now that there is none

        def speaking(number: int, lane: str | None, follows: bool) -> Spoken:
            try:
                turn = self._follower(number) if follows else self.turn(number)
                return replace(turn, key=str(number + 1)).spoken(provider, lane)
            except UsageError as error:
                return script(Error("server", str(error), 500)).spoken(provider, lane)

        def preparing(number: int, lane: str | None) -> Spoken:
            nothing = script(Usage(input=0, output=0))
            return replace(nothing, key=f"prepared{number + 1}").spoken(provider, lane)

        count = None if self.repeat else len(self.scripts)
        return WebSocketServer(teller, speaking, preparing, lanes=lanes, turns=count)

    def _answering(self, provider: str) -> Callable[[int], Answer]:
        provider_row(provider).part("script", Teller)  # or say now that there is none
        return lambda number: self.turn(number).answer(provider)

    def turn(self, number: int) -> Script:
        """The script for the request of that number, from 0."""
        if self.repeat or number < len(self.scripts):
            return self.scripts[0 if self.repeat else number]
        raise UsageError(
            f"request {number + 1} came, but only {len(self.scripts)} turns are scripted"
        )

    def _follower(self, number: int) -> Script:
        """The script that follows a pause. One that answers every request does not follow itself:
        nobody asks, so that it would never end."""
        if not self.repeat and number < len(self.scripts):
            return self.scripts[number]
        raise UsageError(
            f'turn {number + 1} follows finish("pause") without a request, but only '
            f"{len(self.scripts)} turns are scripted: add it, as in turns(first, second)"
        )


def _teller(script: Script, provider: str) -> Teller:
    """One answer in the words of that provider."""
    return provider_row(provider).part("script", Teller)(script.key)


def _talker(script: Script, provider: str) -> Talker:
    """The same, on a connection with lanes."""
    provider_row(provider).part("lanes", Lanes)
    wire = _teller(script, provider)
    if not isinstance(wire, Talker):
        raise UsageError(f"{provider} has no script for a connection that answers share")
    return wire


# --- telling --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Frame:
    """Bytes that are sent together, the step they belong to, and the time before them."""

    step: int
    data: bytes
    wait: float = TICK


class _Telling:
    """One script on one wire."""

    def __init__(self, script: Script, wire: Teller) -> None:
        self.steps = list(_amended(script.steps))
        self.wire = wire
        self.wire.used = next((s for s in self.steps if isinstance(s, Usage)), Usage())
        self.faults = {s.kind: s for s in self.steps if isinstance(s, Fault)}
        self.frames: list[_Frame] = []
        self.wait = 0.0
        self.here: int | None = None  # the step at which a bare cut() stands

    def chunks(self) -> list[tuple[float, bytes]]:
        self._tell()
        timed: list[tuple[float, bytes]] = []
        now = 0.0
        for frame in self.frames:
            now = round(now + frame.wait, 6)
            timed.append((now, frame.data))
        timed = _shortened(timed, self._edge())
        size = self.faults.get("chunked")
        return _rechunked(timed, int(size.value)) if size else timed

    def _tell(self) -> None:
        self._send(-1, self.wire.start())
        at = 0
        while at < len(self.steps):
            at = self._step(at)

    def _step(self, at: int) -> int:
        """Tell the step there; where the next one is."""
        step = self.steps[at]
        if isinstance(step, Call):
            return self._calls(at)
        if isinstance(step, Say | Think):
            tell = self.wire.say if isinstance(step, Say) else self.wire.think
            self._one(at, tell(step.text))
        elif isinstance(step, Show):
            self._one(at, self.wire.show(step))
        elif isinstance(step, Finish):
            self._send(at, self.wire.finish(step.reason or self._reason()))
            self._end(at)
        elif isinstance(step, Hear):
            self._hear(at, step.what)
        elif isinstance(step, Error):
            self._send(at, self.wire.fail(step))
        elif isinstance(step, Cut):
            self.here = at
        elif isinstance(step, Fault):
            getattr(self, _FAULTS.get(step.kind, "_nothing"))(at, step)
        elif isinstance(step, Result):
            raise UsageError("result() stands right after the call that it belongs to")
        return at + 1

    def _calls(self, at: int) -> int:
        """The calls that stand side by side; those with a result were run by the provider."""
        told: list[tuple[int, Told]] = []
        while at < len(self.steps) and isinstance(step := self.steps[at], Call):
            following = self.steps[at + 1] if at + 1 < len(self.steps) else None
            if isinstance(following, Result):
                self._flush(told)
                self._send(at, self.wire.served(step, following))
                told, at = [], at + 2
            else:
                told.append((at, self.wire.call(step)))
                at += 1
        self._flush(told)
        return at

    def _flush(self, told: list[tuple[int, Told]]) -> None:
        if "interleave" in self.faults:
            for at, call in told:
                self._send(at, call.opening)
            columns = zip_longest(*([(at, d) for d in call.deltas] for at, call in told))
            for at, delta in (pair for column in columns for pair in column if pair):
                self._send(at, [delta])
            for at, call in told:
                self._send(at, call.closing)
        else:
            for at, call in told:
                self._one(at, call)

    def _one(self, at: int, told: Told) -> None:
        self._send(at, [*told.opening, *told.deltas])
        if self._is(at + 1, "duplicate"):
            self._send(at, told.deltas[-1:])
        self._send(at, told.closing)

    # --- faults

    def _delay(self, at: int, fault: Fault) -> None:
        self.wait += fault.value

    def _bad(self, at: int, fault: Fault) -> None:
        self._raw(at, self.wire.bad())

    def _nothing(self, at: int, fault: Fault) -> None:
        """It has acted already, or acts on the whole."""

    # --- sending

    def _hear(self, at: int, what: str) -> None:
        self._send(at, self.wire.heard(what))

    def _end(self, at: int) -> None:
        self._raw(at, self.wire.end())

    def _send(self, step: int, payloads: Sequence[dict[str, Any]]) -> None:
        for payload in payloads:
            self._raw(step, self.wire.frame(payload))

    def _raw(self, step: int, data: bytes) -> None:
        if not data:
            return
        if "keep_alives" in self.faults and self.wire.KEEP_ALIVE:
            self.frames.append(_Frame(step, self.wire.KEEP_ALIVE))
        self.frames.append(_Frame(step, data, TICK + self.wait))
        self.wait = 0.0

    def _is(self, at: int, kind: str) -> bool:
        step = self.steps[at] if at < len(self.steps) else None
        return isinstance(step, Fault) and step.kind == kind

    def _reason(self) -> str:
        pairs = zip(self.steps, [*self.steps[1:], None], strict=True)
        mine = any(isinstance(s, Call) and not isinstance(after, Result) for s, after in pairs)
        return "tool_calls" if mine else "stop"

    # --- the cut

    def _edge(self) -> int | None:
        """The byte at which the stream is cut."""
        cut = next((s for s in self.steps if isinstance(s, Cut)), None)
        if cut is None:
            return None
        if cut.at is not None:
            return cut.at
        word = cut.after or cut.inside
        spans = self._spans()
        if word is None:
            return max(
                (end for step, (_, end) in spans.items() if step < (self.here or 0)), default=0
            )
        found = (n for n, step in enumerate(self.steps) if isinstance(step, KINDS[word]))
        place = next((n for n in found if n in spans), None)
        if place is None:
            raise UsageError(f"cut(): the script has no {word}() to cut at")
        start, end = spans[place]
        return end if cut.after else (start + end) // 2

    def _spans(self) -> dict[int, tuple[int, int]]:
        """For each step, its first and its last byte."""
        spans: dict[int, tuple[int, int]] = {}
        at = 0
        for frame in self.frames:
            start = spans.get(frame.step, (at, 0))[0]
            at += len(frame.data)
            spans[frame.step] = (start, at)
        return spans


class _Speaking(_Telling):
    """One script as messages of a connection that many answers share."""

    wire: Talker

    def __init__(self, script: Script, wire: Talker) -> None:
        super().__init__(script, wire)
        self.waits: dict[int, str] = {}  # before this frame the client is waited for

    def moves(self) -> list[Move]:
        self._tell()
        moves: list[Move] = []
        end, edge = 0, self._edge()
        for number, frame in enumerate(self.frames):
            end += len(frame.data)
            if edge is not None and end > edge:
                break
            if number in self.waits:
                moves.append((HEAR, self.waits[number]))
            if "keep_alives" in self.faults:
                moves.append((PING, None))
            moves.append((SEND, self._pieces(frame.data.decode())))
        return [*moves, *(self._farewell(s) for s in self.steps if isinstance(s, Cut))]

    def _farewell(self, cut: Cut) -> Move:
        return (DROP, None) if cut.abrupt else (CLOSE, cut.code or 1000)

    def _pieces(self, text: str) -> list[str]:
        fault = self.faults.get("chunked")
        size = int(fault.value) if fault else len(text)
        return [text[at : at + size] for at in range(0, len(text), size)]

    def _send(self, step: int, payloads: Sequence[dict[str, Any]]) -> None:
        for payload in payloads:
            self._raw(step, json_bytes(self.wire.message(payload)))

    def _raw(self, step: int, data: bytes) -> None:
        self.frames.append(_Frame(step, data))

    def _hear(self, at: int, what: str) -> None:
        self.waits[len(self.frames)] = what
        super()._hear(at, what)

    def _end(self, at: int) -> None:
        """The connection goes on."""

    def _bad(self, at: int, fault: Fault) -> None:
        self._raw(at, b'{"oops": ')


_FAULTS = {"delay": "_delay", "bad_json": "_bad"}


def _amended(steps: tuple[Step, ...]) -> Iterator[Step]:
    """The faults that change the call before them, put into it; an end, if there is none."""
    kept: list[Step] = []
    for step in steps:
        change = _changes(step)
        if change is None:
            kept.append(step)
        elif kept and isinstance(kept[-1], Call):
            kept[-1] = replace(kept[-1], **change)
        else:
            raise UsageError(f"{getattr(step, 'kind', step)}() stands right after a call")
    yield from kept
    if not any(isinstance(step, _ENDS) for step in steps):
        yield Finish()
    elif any(isinstance(s, Cut) and s.is_elsewhere for s in steps) and not any(
        isinstance(step, Finish | Error) for step in steps
    ):
        yield Finish()  # so that there is something to cut off


def _changes(step: Step) -> dict[str, Any] | None:
    if isinstance(step, Fault) and step.kind == "missing_id":
        return {"has_id": False}
    if isinstance(step, Fault) and step.kind == "wrong_index":
        return {"index": int(step.value)}
    return None


def _shortened(timed: list[tuple[float, bytes]], edge: int | None) -> list[tuple[float, bytes]]:
    if edge is None:
        return timed
    kept: list[tuple[float, bytes]] = []
    for at, data in timed:
        data = data[:edge]
        edge -= len(data)
        if data:
            kept.append((at, data))
    return kept


def _rechunked(timed: list[tuple[float, bytes]], size: int) -> list[tuple[float, bytes]]:
    whole = b"".join(data for _, data in timed)
    ends: list[tuple[int, float]] = []
    at = 0
    for when, data in timed:
        at += len(data)
        ends.append((at, when))
    chunks: list[tuple[float, bytes]] = []
    turn = iter(ends)
    end, when = next(turn, (0, 0.0))
    for start in range(0, len(whole), size):
        last = min(start + size, len(whole))
        while end < last:
            end, when = next(turn)
        chunks.append((when, whole[start:last]))
    return chunks
