"""Pictures and sounds that a model made: a wire's words for one in, ``Media`` out.

Rule: bytes are told exactly, or what came is passed on whole as ``Unrecognized``. Media have numbers
of their own in a stream (``part``). A sound that comes in pieces keeps its number while nothing else
comes at its place, so pieces belong together by it; anything else is told whole, in one.

What is held of a medium is how long it is, never its bytes; ``Limits.media`` bounds that. Like a text,
a medium may be told without any bytes, only to bring what its wire wants back.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

from msgspec import UNSET

from ..events import Echo, Event, Media, Unrecognized
from ..limits import LimitReached
from ..notes import Scribe
from ..text.media import UNTOLD, bytes_of, contents_of, type_of

__all__ = ["Gallery", "Shown"]

MOST_GROWING = 64  # media that may go on at the same time


class Shown(NamedTuple):
    """A medium as its wire says it. ``whole`` is what is passed on if it cannot be read."""

    wire_kind: str
    whole: Any
    data: Any = None  # base64, or bytes
    url: Any = None
    type: Any = None  # as the wire says it
    usually: str | None = None  # … of a sound, where it never does
    echo: Echo | None = None
    is_told: bool = False  # it is also in another event, whole


class Gallery:
    """The media of one stream."""

    def __init__(self, scribe: Scribe, limit: int) -> None:
        self._scribe = scribe
        self._limit = limit
        self._count = 0
        self._growing: dict[Any, _Medium] = {}  # by place: the one that may go on

    def tell(
        self, out: list[Event], shown: Shown, *, choice: int = 0, place: Any = None,
        agent: str | None = None,
    ) -> None:  # fmt: skip
        """One medium, or a piece of one. ``place``: pieces of one sound come at one."""
        medium = self._growing.get((choice, place))
        usual = medium.type if medium is not None and shown.usually else None
        read = _read(shown, usual)
        if read is None:
            self._growing.pop((choice, place), None)  # nothing is joined over a hole
            self._scribe.note("wire.media_unreadable", wire_kind=shown.wire_kind)
            if not shown.is_told:
                out.append(Unrecognized(shown.wire_kind, shown.whole))
            return
        data, url, type = read
        part = self._part((choice, place), type, len(data or b""))
        echo = UNSET if shown.echo is None else shown.echo
        out.append(Media(part, type, data, url, choice, echo, agent))

    def _part(self, place: Any, type: str, size: int) -> int:
        medium = self._growing.get(place)
        if medium is None or medium.type != type:
            self._growing.pop(place, None)
            medium = _Medium(self._count, type)
            self._count += 1
            if type.startswith("audio/"):
                self._growing[place] = medium
            if len(self._growing) > MOST_GROWING:
                del self._growing[next(iter(self._growing))]
        medium.size += size
        if medium.size > self._limit:
            raise LimitReached("media", self._limit)
        return medium.part


class _Medium:
    """What is held of a medium: its number, and what comes with the next piece of it."""

    __slots__ = ("part", "size", "type")

    def __init__(self, part: int, type: str) -> None:
        self.part = part
        self.type = type
        self.size = 0


_Read: TypeAlias = tuple[bytes | None, str | None, str]


def _read(shown: Shown, usual: str | None) -> _Read | None:
    """Bytes or an address, and the type. ``usual``: that of the sound which this may be a piece of."""
    said = shown.type if isinstance(shown.type, str) and shown.type else usual
    if isinstance(shown.data, str | bytes) and shown.data:
        data = shown.data if isinstance(shown.data, bytes) else bytes_of(shown.data)
        return None if data is None else (data, None, _named(data, said, shown.usually))
    url = shown.url
    if isinstance(url, str) and url:
        return _addressed(url, said, shown.usually)
    if shown.data or url or not (shown.usually and shown.echo):
        return None
    return None, None, said or shown.usually  # no bytes: only what goes back


def _addressed(url: str, said: str | None, usually: str | None) -> _Read | None:
    if url[:5].lower() != "data:":
        return None, url, type_of(b"", said or usually)
    contents = contents_of(url)
    if contents is None:
        return None
    return contents.data, None, _named(contents.data, said or contents.type, usually)


def _named(data: bytes, said: str | None, usually: str | None) -> str:
    named = type_of(data, said)
    return usually if named == UNTOLD and said is None and usually is not None else named
