"""Bytes of a file or a pipe come in, in pieces; the streams in them go out, piece by piece.

    for part, bit in parts(pieces, form, name="a.sse", seed=None):
        ...                            # bit: a chunk, or a part of one; None: this stream is over

Rule: what has been read is not kept, so that a file of any size takes little memory, and what is in
a piece is told before the next one is asked for. Takes, bodies, and what agent programs print and save
are read so; the other forms need all of their file.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, TypeAlias

from ..demultiplexer import Move, Router, Step, seed_of, too_many
from ..errors import RecordingError
from ..limits import Limits
from ..providers import AUTO, PROGRAMS
from ..takes.format import Reader, Take, digest_of

__all__ = ["Bit", "Part", "Parts", "is_shared", "parts", "parts_of_take", "takes_in"]


class Bit(NamedTuple):
    """Bytes of a stream. None of them: those of another connection follow."""

    at: float
    data: bytes
    goes_on: bool = False  # they belong to the chunk before


class Part:
    """One stream while it is read."""

    def __init__(
        self, number: int, header: dict[str, Any], provider: str | None, seed: str | None,
        lane: str | None = None,
    ) -> None:  # fmt: skip
        self.number = number
        self.header = header
        self.provider = provider
        self.seed = seed
        self.lane = lane
        self.shares = False  # its file with others?
        self.legs: tuple[int, ...] = ()  # they are told as they come
        self.name = self.form = ""  # of its file, and what kind of file that is
        self.nth: int | None = None  # of that file, if its name is that of the file and a number
        # Known when it is over:
        self.timed = self.torn = self.finished = False
        self.limit: str | None = None  # why it was not read at all


# In a header: which stream of a session this was. Its lines may name the next one, which is not in it.
STREAM = "stream"
Parts: TypeAlias = Iterator[tuple[Part, Bit | None]]


def parts(
    pieces: Iterable[bytes], *, name: str, seed: str | None = None, lanes: str | None = None
) -> Parts:
    """The streams of a take, a body, or, if ``lanes`` names their wire, of lines that share a file."""
    reader = Reader(name)
    bits = _bits(reader, pieces)
    first = next(bits, None)  # by now the header is known
    seed = reader.header.get("seed") or seed
    if lanes or is_shared(reader.provider, reader.header):
        yield from _lanes(reader, _with(first, bits), lanes or reader.provider or AUTO, seed)
    else:
        part = Part(1, reader.header, reader.provider, seed)
        for bit in _with(first, bits):
            part.timed = reader.timed
            yield part, bit
        part.timed, part.torn, part.finished = reader.timed, reader.torn, reader.finished
        yield part, None


def is_shared(provider: str | None, header: dict[str, Any]) -> bool:
    """May a take with this header be that of several streams?"""
    return provider in PROGRAMS and STREAM not in header


def _with(first: Bit | None, others: Iterator[Bit]) -> Iterator[Bit]:
    if first is not None:
        yield first
        yield from others


def _bits(reader: Reader, pieces: Iterable[bytes]) -> Iterator[Bit]:
    try:
        for piece in pieces:
            yield from _fed(reader, piece, last=False)
    except RecordingError:  # of what is packed: what came before is told first
        yield from _fed(reader, b"", last=True)
        reader.torn = True
        raise
    yield from _fed(reader, b"", last=True)


def _fed(reader: Reader, piece: bytes, *, last: bool) -> Iterator[Bit]:
    chunks = reader.feed(piece, last=last)
    for number, (at, data) in enumerate(chunks):
        yield Bit(at, data, number == 0 and reader.goes_on)


# --- streams that share a file --------------------------------------------------------------------


def _lanes(source: Reader | Take, bits: Iterator[Bit], provider: str, seed: str | None) -> Parts:
    router = Router(provider)
    known: dict[int, Part] = {}
    for at, line in _lines(bits):
        yield from _moved(router, router.route(line), source, known, seed, at)
    yield from _moved(router, router.close(), source, known, seed, 0.0)


def _moved(
    router: Router, moves: list[Move], source: Reader | Take, known: dict[int, Part],
    seed: str | None, at: float,
) -> Parts:  # fmt: skip
    for move in moves:
        number = move.stream
        if move.step is Step.OUTSIDE or number is None:
            continue
        if move.step is Step.BEGIN:
            own = None if seed is None else seed_of(seed, number)
            header = source.header | {STREAM: number + 1}
            known[number] = Part(number + 1, header, router.provider, own, move.lane)
            known[number].shares = True
            continue
        part = known[number]
        part.timed, part.torn = source.timed, source.torn
        if move.step is Step.HEAR:
            yield part, Bit(at, move.line)
            continue
        if move.step is Step.REFUSE:
            part.limit = too_many(Limits())
        part.finished = source.finished
        yield known.pop(number), None


def _lines(bits: Iterator[Bit]) -> Iterator[tuple[float, bytes]]:
    """Lines with their ends, each at the time at which it was whole."""
    held: list[bytes] = []
    at = 0.0
    for bit in bits:
        at = bit.at
        first, *others = bit.data.split(b"\n")
        held.append(first)
        if others:
            lines = [b"".join(held), *others]
            held = [lines.pop()]
            for line in lines:
                if line.strip():
                    yield at, line + b"\n"
    if (line := b"".join(held)).strip():
        yield at, line + b"\n"


# --- takes that are at hand ------------------------------------------------------------------------


def parts_of_take(take: Take, lanes: str | None = None) -> Parts:
    """The part that a take is; if ``lanes`` names the wire of its lines, those that it has."""
    if lanes is None and is_shared(take.provider, take.header):
        lanes = take.provider
    if lanes is not None:
        yield from _lanes(take, _bits_of_take(take), lanes, take.seed)
        return
    part = Part(1, take.header, take.provider, take.seed)
    part.timed, part.torn, part.finished = take.timed, take.torn, take.finished
    for bit in _bits_of_take(take):
        yield part, bit
    yield part, None


def takes_in(take: Take, lanes: str | None = None) -> list[Take]:
    """The streams of a take, each as one of its own, in the order in which they began."""
    held: dict[int, list[Bit]] = {}
    ended: dict[int, Part] = {}
    for part, bit in parts_of_take(take, lanes):
        bits = held.setdefault(part.number, [])
        if bit is None:
            ended[part.number] = part
        else:
            bits.append(bit)
    return [_take_of(ended[number], held[number]) for number in sorted(ended)]


def _bits_of_take(take: Take) -> Iterator[Bit]:
    legs, size = deque(take.legs), 0
    for at, chunk in take.chunks:
        while legs and legs[0] <= size:
            legs.popleft()
            yield Bit(at, b"")
        size += len(chunk)
        yield Bit(at, chunk)
    for _ in legs:
        yield Bit(0.0, b"")


def _take_of(part: Part, bits: list[Bit]) -> Take:
    """The take that a part of lines was."""
    chunks = [(bit.at, bit.data) for bit in bits]
    return Take(
        part.header, chunks, part.provider, part.seed or digest_of(chunks), part.timed, part.torn,
        part.finished,
    )  # fmt: skip
