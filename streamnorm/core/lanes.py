"""What a provider says of a connection that many responses share: ``Lanes``, one part of its row.

A message comes in; where it belongs goes out. A lane is what the wire calls the place of a response
on the connection (None: it names none). One response at a time is open in a lane.

Rule: only this much is read of a message here. What it means is read by the parser of its response.
"""

from __future__ import annotations

import enum
from typing import ClassVar, NamedTuple

__all__ = ["Lanes", "Place", "Role"]


class Role(enum.Enum):
    """What a message is to the response of its lane."""

    BEGINS = "begins"  # a response; one that is still open there was cut
    WITHIN = "within"  # a part of it; it begins one where none was announced
    ENDS = "ends"  # its last message
    REFUSES = "refuses"  # an error: the end of the open one, or all that is heard of a request
    BESIDE = "beside"  # no part of a response: heard by the open one, or outside of all
    REPLIES = "replies"  # beside, and an answer to the open one
    # A part that may begin one: of the open one if that has its name or none; where it names none
    # itself, unless that was replied to.
    SPEAKS = "speaks"


class Place(NamedTuple):
    """Where a message belongs."""

    role: Role
    lane: str | None = None
    response_id: str | None = None
    closes: tuple[
        str, ...
    ] = ()  # other lanes that are over with it: what is open there hears it, too
    name: str | None = None  # of this message: one that comes again under it is dropped
    notice: bool = False  # it says more than the response that it ends: told outside as well


class Lanes:
    """The lanes of one wire.

    ``FOLLOWS``: only what comes next tells that a response has ended. So one that is open hears what
    begins the next one in its lane, and is not cut by it.
    ``REPEATS``: a beginning without a name, behind another and nothing else, is that one said again.
    """

    FOLLOWS: ClassVar[bool] = False
    REPEATS: ClassVar[bool] = False

    @classmethod
    def place(cls, message: bytes) -> Place | None:
        """Where this message belongs; None: it is no message of any wire, so it may be of any lane."""
        raise NotImplementedError

    @classmethod
    def looks_like(cls, message: bytes) -> bool:
        """Is this a message of this wire?"""
        raise NotImplementedError
