"""Streams in the memory of this process: for one server process, and for tests.

Rule: all readers and producers live in one event loop; readers are rung, nobody polls. A stream is
forgotten ``keep_for`` seconds after its last append; with ``keep`` only so many entries are kept.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import count

from .base import (
    KEEP_FOR,
    LEASE,
    PAGE,
    Bell,
    Busy,
    Conflict,
    Entry,
    EventLog,
    Gone,
    Page,
    State,
    View,
)

__all__ = ["MemoryLog"]


@dataclass(slots=True)
class _Stream:
    owner: str
    chat: str | None
    touched: float
    entries: list[Entry] = field(default_factory=list)
    first: int = 1
    state: State = "open"
    stopped: bool = False

    @property
    def last(self) -> int:
        return self.first + len(self.entries) - 1


class MemoryLog(EventLog):
    """An ``EventLog`` in memory.

    >>> import anyio
    >>> async def main():
    ...     log = MemoryLog()
    ...     writer = await log.create(owner="ann")
    ...     await writer.close([b"one", b"two"])
    ...     return [entry.data async for entry in log.read(writer.stream, owner="ann", after=1)]
    >>> anyio.run(main)
    [b'two']
    """

    def __init__(
        self,
        *,
        lease: float = LEASE,
        keep_for: float = KEEP_FOR,
        keep: int | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__()
        self.lease = lease
        self._keep_for, self._keep, self._clock = keep_for, keep, clock
        self._streams: dict[str, _Stream] = {}
        self._chats: dict[tuple[str, str], list[str]] = {}
        self._sweep = 0.0  # when to look for old streams again

    async def stop(self, stream: str, *, owner: str) -> None:
        self._owned(stream, owner).stopped = True

    async def _create(self, stream: str, owner: str, chat: str | None) -> None:
        self._expire()
        if chat is not None:
            streams = self._chats.setdefault((owner, chat), [])
            if streams and self._is_told(self._streams[streams[-1]]):
                raise Busy(streams[-1])
            streams.append(stream)
        self._streams[stream] = _Stream(owner, chat, self._clock())

    async def streams(self, *, owner: str, chat: str) -> list[str]:
        return list(self._chats.get((owner, chat), ()))

    async def _append(
        self, stream: str, first: int, payloads: Sequence[bytes], state: State
    ) -> bool:
        kept = self._streams.get(stream)
        if kept is None:
            raise Gone
        again = max(0, min(len(payloads), kept.last + 1 - first))  # so many were told before
        for seq, data in enumerate(payloads[:again], first):
            self._check(kept, seq, data)
        self._put(kept, first + again, payloads[again:])
        kept.touched, kept.state = self._clock(), state
        if self._keep is not None and (extra := len(kept.entries) - self._keep) > 0:
            del kept.entries[:extra]
            kept.first += extra
        if payloads or state == "done":
            self._ring(stream)
        return kept.stopped

    def _check(self, kept: _Stream, seq: int, data: bytes) -> None:
        if seq >= kept.first and kept.entries[seq - kept.first].data != data:
            raise Conflict(f"number {seq} was told differently before")

    def _put(self, kept: _Stream, first: int, payloads: Sequence[bytes]) -> None:
        if payloads and first != kept.last + 1:
            raise Conflict(f"number {first} was not expected after {kept.last}")
        kept.entries.extend(map(Entry, count(first), payloads))

    async def _look(self, stream: str, owner: str, after: int, limit: int) -> Page:
        kept = self._owned(stream, owner)
        at = max(0, after + 1 - kept.first)
        entries = kept.entries[at : at + limit]
        return Page(entries, kept.first, kept.last, kept.state, self._is_alive(kept))

    async def _glance(self, stream: str, owner: str, after: int, bell: Bell) -> Page:
        return await self._look(stream, owner, after, PAGE)  # so cheap that nobody need share it

    async def _views(self, streams: Sequence[str]) -> dict[str, View]:
        kept = {s: self._streams[s] for s in streams if s in self._streams}
        return {
            s: (k.last, k.state, self._is_alive(k)) for s, k in kept.items() if not self._is_old(k)
        }

    def _owned(self, stream: str, owner: str) -> _Stream:
        kept = self._streams.get(stream)
        if kept is None or kept.owner != owner or self._is_old(kept):
            raise Gone
        return kept

    def _is_alive(self, kept: _Stream) -> bool:
        return self._clock() - kept.touched < self.lease

    def _is_told(self, kept: _Stream) -> bool:
        return kept.state == "open" and self._is_alive(kept)

    def _is_old(self, kept: _Stream) -> bool:
        return self._clock() - kept.touched >= self._keep_for

    def _expire(self) -> None:
        if self._clock() < self._sweep:
            return
        self._sweep = self._clock() + self._keep_for / 8
        for stream in [s for s, kept in self._streams.items() if self._is_old(kept)]:
            kept = self._streams.pop(stream)
            if kept.chat is not None:
                streams = self._chats[kept.owner, kept.chat]
                streams.remove(stream)
                if not streams:
                    del self._chats[kept.owner, kept.chat]
