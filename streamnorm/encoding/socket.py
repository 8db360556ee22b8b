"""A wire on a WebSocket: what a client says there comes in, requests as they would be posted go out; the
payloads of their answers become messages.

This file says what there is to be known of such a wire, in no provider's words. A provider's ``Server``
names its ``Socket`` if clients of the wire speak so.

Rule: nothing is answered here. A message is either a request, or it has its reply at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import ClassVar, NamedTuple, TypeAlias

import msgspec

__all__ = ["Asking", "Pairs", "Reply", "Socket", "Telling"]

Pairs: TypeAlias = list[tuple[bytes, bytes]]  # headers, as ASGI has them


class Asking(NamedTuple):
    """A request. ``items`` is what it says that is new, each entry as it came."""

    lane: str | None  # where its answer goes
    previous: str | None  # the id of the answer that it goes on from
    prepares: bool  # it wants no output yet
    stored: bool  # its provider keeps the answer
    items: tuple[bytes, ...]
    fields: Mapping[str, msgspec.Raw]


class Reply(NamedTuple):
    """All that is said to a message that is no request; nothing, for one that only tells something.
    ``in_turn``: it stands for an answer, so that it comes behind those that are waited for."""

    message: bytes = b""
    lane: str | None = None
    in_turn: bool = True


class Socket:
    """One connection."""

    at_once: ClassVar[int] = 16  # answers that are told side by side

    def read(self, message: bytes) -> Asking | Reply:
        """What the client says."""
        raise NotImplementedError

    def reply(self, status: int, message: str) -> Reply:
        """To something that is no request."""
        raise NotImplementedError

    def body(self, asking: Asking, before: Iterable[bytes] | None) -> bytes:
        """The request as it would be posted, with the entries that it goes on from; None: it names an
        answer that nobody here knows, and goes on naming it."""
        raise NotImplementedError

    def headers(self, pairs: Pairs) -> Pairs:
        """Of the headers with which it was opened, those that say something of the requests."""
        raise NotImplementedError

    def unknown(self, previous: str) -> tuple[str, str]:
        """What is said of an answer that nobody here knows: a message and a code."""
        raise NotImplementedError

    def telling(self, asking: Asking) -> Telling:
        """The answer to a request, as messages."""
        raise NotImplementedError


class Telling:
    """One answer. ``over``: the client has heard its end; ``id`` is told if others may go on from it,
    and ``output`` is what they then have before them."""

    def __init__(self) -> None:
        self.over = False
        self.id: str | None = None
        self.output: tuple[bytes, ...] = ()

    def tell(self, payload: bytes) -> bytes:
        """The message that says this payload of a stream."""
        raise NotImplementedError

    def refused(self, status: int, body: bytes, headers: Mapping[str, str]) -> bytes:
        """The message that says what HTTP would say with such a status and such headers."""
        raise NotImplementedError
