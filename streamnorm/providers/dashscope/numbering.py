"""The numbers of events: each number in; whether one is missing, or came twice, out.

The wire numbers its events in the field ``id``, from 1. Rule: where numbers have gone up by one, any other
than the next says that something is missing, or came twice. Ids that never go up by one are no numbers.
"""

from __future__ import annotations

__all__ = ["Numbers"]


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
