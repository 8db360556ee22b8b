"""The exception tree: whose fault is it, and what to do.

    StreamnormError
    ├── WireError                they erred; carries provider, frame number and an excerpt
    │   ├── FrameError           not this framing, not UTF-8, not JSON, or beyond a limit
    │   ├── ProviderError        the provider said so: code, message, retryable
    │   ├── StreamTruncated      the bytes ended before the answer did
    │   ├── BrokenCallError      a call of the stream is not whole
    │   └── NoteRaised           a tolerance, under strict=True
    ├── UsageError               you erred; the sentence says what to pass instead
    │   ├── UnknownProvider      lists the ones there are
    │   ├── MissingExtra         says what to install
    │   └── EncodeError          this tool or result cannot be said on that wire
    └── RecordingError           the take is not readable, or its replay differs

Rule: the core never raises for what a wire says; it ends the stream with ``Failed`` and the edge
raises. (``strict=True`` asks for the opposite, and ``NoteRaised`` keeps the events heard so far.)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .events import Event

__all__ = [
    "BrokenCallError",
    "EncodeError",
    "FrameError",
    "MissingExtra",
    "NoteRaised",
    "ProviderError",
    "RecordingError",
    "StreamTruncated",
    "StreamnormError",
    "UnknownProvider",
    "UsageError",
    "WireError",
    "needs",
]


class StreamnormError(Exception):
    """The base of every error that streamnorm raises.

    >>> issubclass(UnknownProvider, StreamnormError)
    True
    """


class WireError(StreamnormError):
    """The other side erred. ``provider``, ``frame`` (its number) and ``excerpt`` say where."""

    def __init__(
        self, message: str, *, provider: str = "", frame: int | None = None, excerpt: str = ""
    ) -> None:
        super().__init__(message)
        self.message = message
        self.provider = provider
        self.frame = frame
        self.excerpt = excerpt


class FrameError(WireError):
    """The bytes are not this framing, not UTF-8, not JSON, or beyond a limit."""


class ProviderError(WireError):
    """The provider reported a failure: its own ``code`` and words, and whether a retry may help."""

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        retryable: bool = False,
        status: int | None = None,
        retry_after: float | None = None,
        provider: str = "",
        frame: int | None = None,
        excerpt: str = "",
    ) -> None:
        super().__init__(message, provider=provider, frame=frame, excerpt=excerpt)
        self.code = code
        self.retryable = retryable
        self.status = status
        self.retry_after = retry_after


class StreamTruncated(WireError):
    """The bytes ended before the wire said that the answer did."""


class BrokenCallError(WireError):
    """A tool call of the stream is not whole and must not be run."""


class NoteRaised(WireError):
    """A tolerance that ``strict=True`` does not allow. ``events`` holds what was heard before it."""

    def __init__(self, note: str, message: str, *, provider: str = "", frame: int | None = None):
        super().__init__(f"{note}: {message}", provider=provider, frame=frame)
        self.note = note
        self.events: Sequence[Event] = ()


class UsageError(StreamnormError):
    """The caller erred; the sentence says what to pass instead."""


class UnknownProvider(UsageError):
    """No provider of that name, or none could be told from the stream."""


class MissingExtra(UsageError, ImportError):
    """A thing was used that needs a library which is not installed with streamnorm alone."""


def needs(library: str, what: str, *, extra: str) -> None:
    """Asked where a thing is used that needs a library of an extra: is it there?

    >>> needs("no_such_library", "the page", extra="ui")
    Traceback (most recent call last):
    streamnorm.errors.MissingExtra: the page needs no_such_library: pip install 'streamnorm[ui]'
    """
    try:
        import_module(library)
    except ImportError as error:
        sentence = f"{what} needs {library.partition('.')[0]}: pip install 'streamnorm[{extra}]'"
        raise MissingExtra(sentence, name=error.name) from error


class EncodeError(UsageError):
    """This tool, call or result cannot be said on that wire."""


class RecordingError(StreamnormError):
    """The take is not readable, cannot be written, or its replay differs."""
