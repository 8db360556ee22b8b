"""Files that others wrote come in; the streams that they hold go out, as takes.

Rule: every stream of a file is a ``Take``, and what is none is a ``Left`` that says why. Nothing is
left out without a word.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

from ..errors import RecordingError
from ..takes.format import Take, parse_take

__all__ = ["Found", "Left", "Streams", "streams_of"]


class Found(NamedTuple):
    """One stream of a file."""

    name: str  # the file's name, and the number of the stream if there are several: ``a.har#3``
    form: str  # what kind of file it was read from
    take: Take


class Left(NamedTuple):
    """A part of a file, or all of it, that is no stream."""

    name: str
    why: str


Streams: TypeAlias = Iterator[Found | Left]


def streams_of(data: bytes, *, name: str) -> Streams:
    """The streams in the bytes of one file; pure, and it raises nothing.

    >>> [(found.name, found.form) for found in streams_of(b"data: [DONE]\\n\\n", name="a.sse")]
    [('a.sse', 'take')]
    """
    try:
        yield Found(name, "take", parse_take(data, name=name))
    except RecordingError as error:
        yield Left(name, str(error))
