"""A connection that many responses share, without I/O: messages in; streams, each with its own end, out.

Rule: every message goes somewhere. Each response is a stream with a pipe of its own, which hears its
messages and no others, so that its events are those that it would have alone. What cannot be read may
be of any stream that is open, so all of them hear it. What belongs to none is told outside of them.

``Router`` says which stream a message is for. ``Demultiplexer`` gives it to that stream's pipe.
"""

from __future__ import annotations

import enum
from collections import Counter, OrderedDict
from typing import Any, NamedTuple, TypeAlias

from .core.lanes import Lanes, Place, Role
from .core.parser import UNREADABLE, plainly
from .errors import UsageError
from .events import Event, FailedReason, Unrecognized
from .limits import LimitReached, Limits
from .normalizer import Normalizer
from .notes import Scribe
from .providers import AUTO, Provider, provider_row, rows_with
from .text.written import json_bytes

__all__ = [
    "Demultiplexer", "Message", "Move", "Router", "Step", "Told", "as_line", "notice", "seed_of",
    "too_many",
]  # fmt: skip

# Lanes whose last response has ended, to know what comes late; names of messages, what comes again.
_REMEMBERED = 1024

Message: TypeAlias = str | bytes | dict[str, Any]


class Step(enum.Enum):
    """What happens to a stream."""

    BEGIN = "begin"
    HEAR = "hear"  # a message is of it
    END = "end"  # no more messages will be
    REFUSE = "refuse"  # it ends as it begins: more are open than may be
    OUTSIDE = "outside"  # a message is of no stream


class Move(NamedTuple):
    """One step: the stream's number (None: of no stream), its lane, and the message as a line."""

    step: Step
    stream: int | None
    lane: str | None
    line: bytes = b""


class _Open(NamedTuple):
    """A response that has not ended."""

    stream: int
    response_id: str | None
    begun: bool  # its beginning was said, and not only something of it
    replied: bool = False
    heard: bool = False  # anything behind its beginning


class Router:
    """Messages of one connection in; which stream each is for, which begin and which end, out.

    >>> router = Router("openai_responses")
    >>> [move.step.value for move in router.route(b'{"type":"response.created"}')]
    ['begin', 'hear']
    """

    def __init__(self, provider: str = AUTO, *, limits: Limits | None = None) -> None:
        self._provider: Provider | None = None
        self._lanes: type[Lanes] | None = None
        if provider != AUTO:
            self._settle(provider_row(provider))
        self._limits = limits or Limits()
        self._scribe = Scribe(provider)
        self._open: dict[str | None, _Open] = {}
        self._ended: OrderedDict[str | None, str | None] = (
            OrderedDict()
        )  # lane -> the last response
        self._names: dict[str, None] = {}  # of the last messages that have one
        self._streams = 0

    @property
    def provider(self) -> str:
        """The provider's name; ``"auto"`` until a message has told."""
        return self._provider.name if self._provider else AUTO

    @property
    def notes(self) -> Counter[str]:
        """What was tolerated outside of streams, by name."""
        return self._scribe.counts

    def note(self, name: str, **facts: Any) -> None:
        """Something was tolerated outside of streams."""
        self._scribe.note(name, **facts)

    def route(self, line: bytes) -> list[Move]:
        """One message, as a line: see ``as_line``."""
        lanes = self._lanes or self._recognized(line)
        if lanes is None:
            return [self._outside(None, line)]
        place = lanes.place(line)
        if place is None:
            return self._unplaced(line)
        if place.lane and len(place.lane) > self._limits.id:  # too long to be kept: nobody's
            return [self._outside(None, line)]
        if place.response_id and len(place.response_id) > self._limits.id:  # nor is this kept
            place = place._replace(response_id=None)
        if place.name is not None and self._is_again(place.name):
            self.note("stream.repeated", lane=place.lane)
            return []
        return [*_ROLES[place.role](self, place, line), *self._closed_with(place, line)]

    def close(self) -> list[Move]:
        """No more messages: every stream that is open ends here."""
        return [self._over(lane) for lane in list(self._open)]

    # --- whose connection it is -------------------------------------------------------------------

    def _recognized(self, line: bytes) -> type[Lanes] | None:
        for row in rows_with("lanes", Lanes):
            if row.part("lanes", Lanes).looks_like(line):
                return self._settle(row)
        return None

    @property
    def _wire(self) -> type[Lanes]:
        assert self._lanes is not None  # it said where a message belongs
        return self._lanes

    def _settle(self, row: Provider) -> type[Lanes]:
        self._provider, self._lanes = row, row.part("lanes", Lanes)
        return self._lanes

    # --- one message, by its role -----------------------------------------------------------------

    def _begins(self, place: Place, line: bytes) -> list[Move]:
        """A response is announced. The one before it in that lane, if it is open, was cut."""
        held = self._open.get(place.lane)
        if held is not None and (not held.begun or self._is_said_again(place, held)):  # or late
            self._open[place.lane] = _Open(held.stream, place.response_id, True)
            return [Move(Step.HEAR, held.stream, place.lane, line)]
        cut = self._heard_and_over(place.lane, line) if held else []
        return [*cut, *self._begin(place, line, begun=True)]

    def _is_said_again(self, place: Place, held: _Open) -> bool:
        """Is it the beginning of the open one? Without a name, only if nothing of that was heard."""
        if place.response_id != held.response_id:
            return False
        return bool(place.response_id) or (not held.heard and self._wire.REPEATS)

    def _heard_and_over(self, lane: str | None, line: bytes) -> list[Move]:
        held = self._open[lane]
        heard = [Move(Step.HEAR, held.stream, lane, line)] if self._wire.FOLLOWS else []
        return [*heard, self._over(lane)]

    def _closed_with(self, place: Place, line: bytes) -> list[Move]:
        closed = dict.fromkeys(place.closes)  # each once, however often the message says it
        others = [lane for lane in closed if lane in self._open and lane != place.lane]
        return [move for lane in others for move in self._heard_and_over(lane, line)]

    def _within(self, place: Place, line: bytes) -> list[Move]:
        held = self._open.get(place.lane)
        if self._is_late(place, held):
            self.note("stream.after_end", lane=place.lane)
            return []
        if held is None:
            return self._begin(place, line, begun=False)
        return [self._heard(place.lane, held, line)]

    def _ends(self, place: Place, line: bytes) -> list[Move]:
        moves = self._within(place, line)
        if moves and place.lane in self._open:
            moves.append(self._over(place.lane))
        return moves

    def _refuses(self, place: Place, line: bytes) -> list[Move]:
        """Without a response that is open, it is all that is heard of a request."""
        held = self._open.get(place.lane)
        if held is None:
            moves = self._begin(place, line, begun=False)
        else:
            moves = [Move(Step.HEAR, held.stream, place.lane, line)]
        if place.lane in self._open:
            moves.append(self._over(place.lane))
        if held is not None and place.notice:
            moves.append(self._outside(place.lane, line))
        return moves

    def _replies(self, place: Place, line: bytes) -> list[Move]:
        held = self._open.get(place.lane)
        if held is not None:
            self._open[place.lane] = held._replace(replied=True)
        return self._beside(place, line)

    def _speaks(self, place: Place, line: bytes) -> list[Move]:
        """One with a name begins a response, unless that is open, or the open one lost its own. Without
        a name, only what was said to the open response tells that this is the next one."""
        held = self._open.get(place.lane)
        if place.response_id is not None:
            if held is not None and held.response_id is None:
                self._open[place.lane] = held._replace(response_id=place.response_id)
            return self._begins(place, line)
        if held is not None and (held.begun or not held.replied):
            return [self._heard(place.lane, held, line)]
        cut = self._heard_and_over(place.lane, line) if held else []
        return [*cut, *self._begin(place, line, begun=False)]

    def _beside(self, place: Place, line: bytes) -> list[Move]:
        held = self._open.get(place.lane)
        if held is None:
            return [self._outside(place.lane, line)]
        return [Move(Step.HEAR, held.stream, place.lane, line)]

    def _unplaced(self, line: bytes) -> list[Move]:
        """Nobody can say whose it is: it may have been of any that is open."""
        if not self._open:
            return [self._outside(None, line)]
        return [self._heard(lane, held, line) for lane, held in list(self._open.items())]

    def _heard(self, lane: str | None, held: _Open, line: bytes) -> Move:
        if not held.heard:
            self._open[lane] = held._replace(heard=True)
        return Move(Step.HEAR, held.stream, lane, line)

    # --- streams ----------------------------------------------------------------------------------

    def _is_late(self, place: Place, held: _Open | None) -> bool:
        """Is it of the response that has ended in this lane, and not of the one that is open?"""
        if place.lane not in self._ended:
            return False
        ended = self._ended[place.lane]
        if held is None:
            return place.response_id in (None, ended)
        return place.response_id is not None and held.response_id != place.response_id == ended

    def _is_again(self, name: str) -> bool:
        """Was a message of this name heard before? The last ones are remembered."""
        if name in self._names:
            return True
        if len(name) <= self._limits.id:  # else it is too long to be kept
            self._names[name] = None
        if len(self._names) > _REMEMBERED:
            del self._names[next(iter(self._names))]
        return False

    def _begin(self, place: Place, line: bytes, *, begun: bool) -> list[Move]:
        stream, self._streams = self._streams, self._streams + 1
        if len(self._open) >= self._limits.lanes:
            self._end(place.lane, place.response_id)
            return [Move(step, stream, place.lane) for step in (Step.BEGIN, Step.REFUSE)]
        self._open[place.lane] = _Open(stream, place.response_id, begun)
        hear = Move(Step.HEAR, stream, place.lane, line)
        return [Move(Step.BEGIN, stream, place.lane), hear]

    def _over(self, lane: str | None) -> Move:
        held = self._open.pop(lane)
        self._end(lane, held.response_id)
        return Move(Step.END, held.stream, lane)

    def _end(self, lane: str | None, response_id: str | None) -> None:
        self._ended[lane] = response_id
        self._ended.move_to_end(lane)
        if len(self._ended) > _REMEMBERED:
            self._ended.popitem(last=False)

    def _outside(self, lane: str | None, line: bytes) -> Move:
        self.note("session.outside")
        return Move(Step.OUTSIDE, None, lane, line)


_ROLES = {
    Role.BEGINS: Router._begins,
    Role.WITHIN: Router._within,
    Role.ENDS: Router._ends,
    Role.REFUSES: Router._refuses,
    Role.BESIDE: Router._beside,
    Role.REPLIES: Router._replies,
    Role.SPEAKS: Router._speaks,
}


class Told(NamedTuple):
    """What a message made a stream tell; ``stream`` is None for what belongs to none."""

    stream: int | None
    lane: str | None
    events: list[Event]


class Demultiplexer:
    """The streams of one connection.

    >>> turns = Demultiplexer("openai_responses")
    >>> created = '{"type":"response.created","stream_id":"%s","response":{"id":"r","model":"m"}}'
    >>> for told in [*turns.feed(created % "a"), *turns.feed(created % "b"), *turns.close()]:
    ...     print(told.stream, told.lane, [event.kind for event in told.events])
    0 a ['stream_start']
    1 b ['stream_start']
    0 a ['failed']
    1 b ['failed']

    The options are those of ``Normalizer``, for the pipe of each stream.
    """

    def __init__(
        self,
        provider: str = AUTO,
        *,
        strict: bool = False,
        limits: Limits | None = None,
        seed: str | None = None,
        on_bad_event: str = "fail",
    ) -> None:
        self._router = Router(provider, limits=limits)
        self._limits = limits or Limits()
        self._seed = seed
        self._options: dict[str, Any] = {"strict": strict, "on_bad_event": on_bad_event}
        self._pipes: dict[int, Normalizer] = {}

    @property
    def notes(self) -> Counter[str]:
        """What was tolerated outside of streams, by name; each stream has notes of its own."""
        return self._router.notes

    @property
    def pipes(self) -> dict[int, Normalizer]:
        """The streams that are open, by number."""
        return self._pipes

    def feed(self, message: Message) -> list[Told]:
        """One message: text, bytes, or what they say as a dict."""
        return self._made(self._router.route(as_line(message)))

    def close(self) -> list[Told]:
        """End of input: whatever is open is cut."""
        return self._made(self._router.close())

    def fail(self, reason: FailedReason, message: str, *, retryable: bool = False) -> list[Told]:
        """End all streams from outside: the connection failed, or nobody waits any more."""
        told: list[Told] = []
        for move in self._router.close():
            pipe = self._pipes.pop(_number(move))
            told.append(
                Told(move.stream, move.lane, pipe.fail(reason, message, retryable=retryable))
            )
        return [one for one in told if one.events]

    def _made(self, moves: list[Move]) -> list[Told]:
        told = (Told(m.stream, m.lane, _STEPS[m.step](self, m)) for m in moves)
        return [one for one in told if one.events]

    def _begin(self, move: Move) -> list[Event]:
        number = _number(move)
        self._pipes[number] = Normalizer(
            self._router.provider, limits=self._limits, seed=seed_of(self._seed, number),
            **self._options,
        )  # fmt: skip
        return []

    def _hear(self, move: Move) -> list[Event]:
        return self._pipes[_number(move)].feed(move.line)

    def _end(self, move: Move) -> list[Event]:
        return self._pipes.pop(_number(move)).close()

    def _refuse(self, move: Move) -> list[Event]:
        return self._pipes.pop(_number(move)).fail("limit", too_many(self._limits), code="lanes")

    def _outside(self, move: Move) -> list[Event]:
        return [notice(move.line)]


_STEPS = {
    Step.BEGIN: Demultiplexer._begin,
    Step.HEAR: Demultiplexer._hear,
    Step.END: Demultiplexer._end,
    Step.REFUSE: Demultiplexer._refuse,
    Step.OUTSIDE: Demultiplexer._outside,
}


def _number(move: Move) -> int:
    assert move.stream is not None
    return move.stream


# --- what a session with I/O says alike -------------------------------------------------------------


def as_line(message: Message) -> bytes:
    """A message as one line of JSON: a line end inside it can only be white space.

    >>> as_line('{"type":\\n"ping"}')
    b'{"type": "ping"}\\n'
    """
    if isinstance(message, dict):
        return json_bytes(message) + b"\n"
    if isinstance(message, str):
        message = message.encode("utf-8", "surrogatepass")
    if not isinstance(message, bytes):
        raise UsageError(f"a message is text, bytes or a dict, not a {type(message).__name__}")
    return message.replace(b"\n", b" ") + b"\n"


def notice(line: bytes) -> Unrecognized:
    """What a message says that belongs to no stream."""
    try:
        payload = plainly(line)
    except UNREADABLE:
        payload = line.decode("utf-8", "replace").strip()
    kind = payload.get("type") if isinstance(payload, dict) else None
    return Unrecognized(kind if isinstance(kind, str) else "?", payload)


def seed_of(seed: str | None, stream: int) -> str | None:
    """Streams of one session mint ids of their own."""
    return None if seed is None else f"{seed}/{stream}"


def too_many(limits: Limits) -> str:
    """Why a stream ends as it begins."""
    return str(LimitReached("lanes", limits.lanes))
