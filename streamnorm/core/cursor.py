"""Where a stream was cut, and where it goes on: events of a resumed leg in, those that are news out.

A provider that can resume gives each event a place: a number, or a token that means nothing to us.
A cursor is the place of the last event that was heard, with the response that it is of. Rule: what
was heard before is dropped exactly, and nothing else is. Numbers at or before that of the cursor were
heard. Of tokens only the cursor's own is known: a leg that begins with it, or at the very beginning
of the response, is dropped up to it. Until there is news the place stays where the leg before was
lost, however much of what was heard comes again: a leg that is lost in there takes nothing back.
"""

from __future__ import annotations

import re
from typing import NamedTuple, Protocol, TypeAlias

from ..errors import UsageError

__all__ = ["At", "Cursor", "Placing", "Seam"]

At: TypeAlias = int | str  # the place of an event


class Placing(Protocol):
    """What a parser knows of places."""

    def place_of(self, data: bytes) -> At | None:
        """The place that this event says it has."""

    def begins(self, data: bytes) -> bool:
        """Is this the first event of a response?"""

    def resumed(self, at: At, begun: int) -> None:
        """Another stream told all up to here; so many parts of the answer had begun there."""


class Cursor(NamedTuple):
    """The last event that was heard of a response. As text it can be kept anywhere.

    >>> str(Cursor("openai_responses", "resp_1", 17, 2))
    'openai_responses:resp_1:17:2'
    >>> Cursor.read("openai_responses:resp_1:17:2").at
    17
    """

    provider: str
    response_id: str
    at: At
    begun: int = 0  # parts of the answer; copies of those are no news

    def __str__(self) -> str:
        from urllib.parse import quote

        at = self.at if isinstance(self.at, int) else "'" + quote(self.at, safe="")
        return f"{self.provider}:{quote(self.response_id, safe='')}:{at}:{self.begun}"

    @classmethod
    def read(cls, text: str, provider: str | None = None) -> Cursor:
        """What stream.cursor has written, of a stream of this provider if one is named."""
        from urllib.parse import unquote

        found = _WRITTEN.fullmatch(text)
        if found is None:
            raise UsageError(f"{text[:80]!r} is no cursor: pass what stream.cursor has given")
        name, id, number, token, begun = found.groups()
        if provider not in (None, name):
            raise UsageError(
                f"this is a cursor of {name!r}, not of {provider!r}: ask the provider whose "
                "stream was cut"
            )
        at = int(number) if number else unquote(token)
        return cls(name, unquote(id), at, int(begun))


_WRITTEN = re.compile(r"(\w+):([^:]+):(?:(\d{1,18})|'([^:]*)):(\d{1,9})", re.ASCII)


class Seam:
    """Between two legs of one response."""

    def __init__(self, at: At, parser: Placing | None = None, begun: int = 0) -> None:
        self.at, self.begun = at, begun  # where it goes on; what had begun there over another pipe
        self._parser = parser  # the one that told what came before, if it is this one
        self._first = True
        self.over = False  # all that follows is news

    def lost_again(self) -> None:
        """The leg behind it had no news, and another comes in its place."""
        self._first = True

    def drops(self, data: bytes, parser: Placing) -> bool:
        """Was this event heard before?"""
        if parser is not self._parser:
            self._parser = parser
            parser.resumed(self.at, self.begun)
        place = parser.place_of(data)
        if isinstance(self.at, int):
            old = isinstance(place, int) and place <= self.at
            self.over = isinstance(place, int) and not old
            return old
        first, self._first = self._first, False
        if place == self.at:
            self.over = True
            return True
        self.over = first and not parser.begins(data)
        return not self.over
