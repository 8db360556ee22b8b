"""The numbers of events: frames in; the name of each event with its number, and whether one is missing, out.

The wire numbers its events in the field ``id``, from 1. Rule: where numbers have gone up by one, any other
than the next says that something is missing, or came twice. Ids that never go up by one are no numbers.
"""

from __future__ import annotations

from ...framing import Fields
from ...framing.sse import SSE

__all__ = ["Numbered", "Numbers", "parted"]

_BEHIND = "#"  # a number behind the name of its event
_DIGITS = 9  # longer ones are no numbers of events


class Numbered(SSE):
    """Server-sent events that say their numbers.

    >>> Numbered().read(b"id:3\\nevent:result\\ndata:{}").event
    'result#3'
    """

    def read(self, frame: bytes) -> Fields:
        """Any block, by the specification; the name of its event has its number behind it."""
        fields = super().read(frame)
        ids = [line[3:].strip() for line in frame.split(b"\n") if line.startswith(b"id:")]
        if not ids or not ids[-1].isdigit() or len(ids[-1]) > _DIGITS:
            return fields
        return fields._replace(event=f"{fields.event}{_BEHIND}{int(ids[-1])}")


def parted(event: str) -> tuple[str, int | None]:
    """The name of an event, and its number if it has one."""
    name, behind, number = event.rpartition(_BEHIND)
    return (name, int(number)) if behind and number.isdecimal() else (event, None)


class Numbers:
    """The numbers of one stream.

    >>> numbers = Numbers()
    >>> [numbers.go_on(number) for number in (1, 2, 3, 5, 6, 6)]
    [True, True, True, False, True, False]
    """

    def __init__(self) -> None:
        self._last: int | None = None
        self._count = False  # they go up by one: such a stream begins with 1
        self._went_up = False
        self._again = False  # before they did, one came twice

    def go_on(self, number: int) -> bool:
        """Is this the next one, as far as anybody can tell?"""
        last, self._last = self._last, number
        if last is None:
            self._count = number == 1
            return True
        if number == last + 1:
            again, self._again = self._again, False
            self._count = self._went_up = True
            return not again
        if number == last and not self._went_up:
            self._count, self._again = False, True
        return not self._count
