"""Files that others wrote come in; the streams that they hold go out, as takes.

Rule: every stream of a file is a ``Take``, and what is none is a ``Left`` that says why. Nothing is
left out without a word. Of an exchange the answer alone is kept, without its secrets.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from types import ModuleType
from typing import NamedTuple, TypeAlias

from ..errors import MissingExtra, RecordingError
from ..providers import PROGRAMS
from ..takes.format import BOM, HEADER, Take, parse_take
from ..text.shown import clean

__all__ = ["Found", "Left", "Streams", "picked", "read_lines", "read_take", "streams_of"]

MOST_TOLD = 20  # streams that an error lists
FREE, RATIO = 16 * 1024 * 1024, 100  # bytes that the answers of a file may have, and per byte of it
LINES = 20  # chunks that tell whether streams share a file


class Found(NamedTuple):
    """One stream of a file."""

    name: str  # the file's name, and the number of the stream if there are several: ``a.har#3``
    form: str  # what kind of file it was read from
    take: Take


class Left(NamedTuple):
    """A part of a file, or all of it, that is no stream."""

    name: str
    why: str  # goes on from the name
    aside: bool = False  # beside streams, and nobody would look for one there


Streams: TypeAlias = Iterator[Found | Left]


def streams_of(data: bytes, *, name: str, provider: str | None = None) -> Streams:
    """The streams in the bytes of one file; pure, and it raises nothing.

    ``provider`` is whose JSON it is, where that does not tell.

    >>> [(found.name, found.form) for found in streams_of(b"data: [DONE]\\n\\n", name="a.sse")]
    [('a.sse', 'sse')]
    >>> [left.why for left in streams_of(b"<html></html>", name="a.html")]
    ['is an HTML or XML page, not a stream. Look at the address, the proxy and the status of the request.']
    """
    first: Found | None = None  # has a number only if there is a second one
    waiting: list[Left] = []
    number = 0
    for one in _streams(data, name, provider):
        if isinstance(one, Left):
            waiting.append(one)
            continue
        number += 1
        if number == 1:
            first = one
            continue
        if first is not None:
            yield first._replace(name=f"{name}#1")
            first = None
        yield from waiting
        waiting.clear()
        yield one._replace(name=f"{name}#{number}")
    yield from filter(None, [first])
    yield from waiting


def read_take(path: str | os.PathLike[str]) -> Take:
    """The stream in the file ``path``: a take, a saved body, or what another program captured.

    Of a file with several, ``path#2`` is the second.

    >>> read_take("recordings/anthropic/nowhere.sse")
    Traceback (most recent call last):
    ...
    streamnorm.errors.RecordingError: recordings/anthropic/nowhere.sse cannot be read: \
No such file or directory. Name a file with a recorded stream.
    """
    place, number = picked(os.fspath(path))
    name, data = _named(place)
    if number is None and (not data or data.startswith((HEADER, BOM + HEADER))):
        return parse_take(data, name=name)  # of a recorder that was killed nothing may be there yet
    return _the_one(list(streams_of(data, name=name)), name, number)


def read_lines(path: str | os.PathLike[str]) -> Take:
    """The file ``path`` as one take, whatever streams share its lines."""
    name, data = _named(os.fspath(path))
    return parse_take(data, name=name)


def _named(place: str) -> tuple[str, bytes]:
    name = clean(str(place))
    try:
        with open(place, "rb") as file:
            return name, file.read()
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise RecordingError(
            f"{name} cannot be read: {why}. Name a file with a recorded stream."
        ) from error


def picked(place: str) -> tuple[str, int | None]:
    """A file, and which of its streams is meant, if the name says so.

    >>> picked("a.har#3"), picked("a.har")
    (('a.har', 3), ('a.har', None))
    """
    file, mark, number = place.rpartition("#")
    if not mark or not (number.isascii() and number.isdigit()) or len(number) > 9:
        return place, None
    return (place, None) if "\0" in place or os.path.lexists(place) else (file, int(number))


def _the_one(streams: list[Found | Left], name: str, number: int | None) -> Take:
    found = [one for one in streams if isinstance(one, Found)]
    if number is not None and 0 < number <= len(found):
        return found[number - 1].take
    if number is None and len(found) == 1:
        return found[0].take
    if not found:
        raise RecordingError(_sentence(next(one for one in streams if isinstance(one, Left))))
    named = [one.name + _whence(one.take) for one in found[:MOST_TOLD]]
    more = [f"and {len(found) - MOST_TOLD} more"] if len(found) > MOST_TOLD else []
    have = f"{name} has {len(found)} stream{'s'[: len(found) > 1]}"
    raise RecordingError(f"{have}. Name one: {', '.join([*named, *more])}")


def _sentence(left: Left) -> str:
    return f"{left.name} {left.why}"


def _whence(take: Take) -> str:
    url = take.header.get("url")
    return f" ({clean(url)})" if isinstance(url, str) else ""


# --- forms ----------------------------------------------------------------------------------------


def _streams(data: bytes, name: str, provider: str | None) -> Streams:
    """As ``streams_of``, without numbers."""
    if data.startswith((HEADER, BOM + HEADER)):
        yield from _body(data, name, "take", provider)
        return
    from .strangers import HEAD, NoStream, form_of

    try:
        head = data if len(data) <= HEAD or data.lstrip()[:1] in (b"{", b"[") else data[:HEAD]
        form = form_of(head, whole=len(head) == len(data), provider=provider)
        yield from _FORMS.get(form, _body)(data, name, form, provider)
    except NoStream as none:
        yield Left(name, none.why)
    except MissingExtra as missing:
        yield Left(name, f"is not read: {missing}")


def _body(data: bytes, name: str, form: str, provider: str | None) -> Streams:
    """A take, a body, or a session of an agent program."""
    try:
        take = parse_take(data, name=name)
    except RecordingError as error:
        yield Left(name, str(error).removeprefix(name).lstrip(", "))
        return
    yield from _in_take(take, name, form)


def _in_take(take: Take, name: str, form: str) -> Streams:
    """The streams of a take: a session of an agent program or of a WebSocket has several."""
    lanes = None
    if form not in ("take", "sse", "aws") and take.chunks:
        from .strangers import HEAD, lanes_of

        lanes = lanes_of(b"".join(chunk for _, chunk in take.chunks[:LINES])[:HEAD])
    if lanes is None and take.provider not in PROGRAMS:
        yield Found(name, form, take)
        return
    from .tape import is_shared, takes_in

    if lanes is None and not is_shared(take.provider, take.header):
        yield Found(name, form, take)
        return
    takes = takes_in(take, lanes)
    yield from (Found(name, form, one) for one in takes)
    if not takes:
        yield Left(name, "is a session of an agent program without an answer in it.")


def _packed(data: bytes, name: str, form: str, provider: str | None) -> Streams:
    from .packed import packing_of, unpack

    packing = packing_of(data) or ""
    try:
        inner, whole = unpack(data, packing, name=name)
    except RecordingError as error:
        yield Left(name, str(error).removeprefix(name).lstrip())
        return
    for one in _streams(inner, name, provider):
        if isinstance(one, Found) and not whole:
            one = one._replace(take=replace(one.take, torn=True))
        yield one
    if not whole:
        yield Left(name, f"is cut or damaged: what is in the {packing} was read as far as it goes.")


def _exchanges(data: bytes, name: str, form: str, provider: str | None) -> Streams:
    """The answers of a file with exchanges."""
    from .answer import Unread, take_of
    from .strangers import NoStream

    reader = _reader(form)
    origin = reader.origin_of(data)
    left = FREE + RATIO * len(data)  # bytes that answers may still have
    streams = 0
    told = False
    asides: Counter[str] = Counter()
    for answer in reader.answers(data):
        if isinstance(answer, Unread):
            where, why, aside = answer
        else:
            where = answer.called
            try:
                take = take_of(answer, origin)
            except (NoStream, RecordingError) as none:
                why, aside = str(none), getattr(none, "aside", False)
            else:
                yield from _in_take(take, name, form)
                streams, left = streams + 1, left - sum(len(chunk) for _, chunk in take.chunks)
                if left < 0:
                    yield Left(name, "becomes too long when it is read. What follows is left out.")
                    return
                continue
        if aside:
            asides[why] += 1
        else:
            told = True
            yield Left(f"{name}, {where}", why)
    yield from _told_of(asides, name, form, streams > 0, told)


def _told_of(asides: Counter[str], name: str, form: str, has_streams: bool, told: bool) -> Streams:
    """One sentence for all exchanges in which nobody would look for a stream."""
    count = asides.total()
    if has_streams or told:
        if count:
            yield Left(
                name, f"has {count} exchange{'s'[: count > 1]} more, which are no streams.", True
            )
        return
    called = {"har": "a HAR", "vcr": "a cassette"}.get(form, "a dump of curl -i")
    if not count:
        yield Left(name, f"is {called} without an exchange in it.")
        return
    (why, _), *others = asides.most_common(3)
    if count == 1:
        yield Left(name, f"is {called} with one exchange, which {why}")
    elif not others:
        yield Left(name, f"is {called} without a stream: {count} exchanges, each of which {why}")
    else:
        most = "; ".join(
            f"{n} × {why.partition('. ')[0].rstrip('.')}" for why, n in asides.most_common(3)
        )
        yield Left(name, f"is {called} without a stream: {count} exchanges ({most}).")


def _reader(form: str) -> ModuleType:
    """The module that reads such files: ``answers(data)`` and ``origin_of(data)``."""
    from . import curl, har, vcr

    return {"har": har, "vcr": vcr, "curl": curl}[form]


_FORMS: dict[str, Callable[[bytes, str, str, str | None], Streams]] = {
    "packed": _packed,
    "har": _exchanges,
    "vcr": _exchanges,
    "curl": _exchanges,
}
