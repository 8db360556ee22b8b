"""Entries come in, each gets the next number; any number of readers hear them all, in order.

Rule: an entry is in the log before anybody hears of it, numbers have no gaps, and a reader that
comes late or comes back hears exactly what follows the last number it has.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

__all__ = ["Log", "Numbered"]

Numbered = tuple[int, str]


class Log:
    """The entries of one conversation, in memory."""

    def __init__(self) -> None:
        self._entries: list[str] = []
        self._news = asyncio.Event()
        self.live = False  # more may come

    def __len__(self) -> int:
        return len(self._entries)

    def append(self, entry: str) -> int:
        """Keep an entry; its number, from 1."""
        self._entries.append(entry)
        self._tell()
        return len(self._entries)

    def begin(self) -> None:
        """From now on readers wait for more."""
        self.live = True

    def end(self) -> None:
        """Nothing more for now: readers are let go when they have heard everything."""
        self.live = False
        self._tell()

    async def read(self, after: int) -> AsyncIterator[Numbered]:
        """The entries after that number, and those to come while the log is live."""
        at = max(0, after)
        while True:
            news = self._news
            while at < len(self._entries):
                at += 1
                yield at, self._entries[at - 1]
            if not self.live:
                return
            await news.wait()

    def _tell(self) -> None:
        self._news.set()
        self._news = asyncio.Event()
