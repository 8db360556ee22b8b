"""A provider on loopback, in a process of its own: requests in, generated streams out over HTTP.

    python -m bench.server        prints its port and serves until its standard input is closed

The first three parts of a path say what is answered, whatever an SDK adds behind them:
``/WAY/WIRE/WORKLOAD/...``. The ways:

==========  ======================================================================================
event       every event in an HTTP chunk of its own, as fast as the reader takes them
16k         HTTP chunks of 16 KiB, as fast as the reader takes them
paced       an event, then a pause of ``STEP``; each has the time of its sending in its text
crowd-N     nothing until N requests are there; then an event to each in turn, ``RATE`` a second, and
            the next when all have read it
==========  ======================================================================================
"""

from __future__ import annotations

import asyncio
import functools
import sys
import time
from collections.abc import Iterator

from bench import workloads
from bench.workloads import chunks_of, split_frames

__all__ = ["RATE", "STEP", "http_chunk", "stamped"]

HEAD = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\n"
    b"cache-control: no-cache\r\ntransfer-encoding: chunked\r\n\r\n"
)
END = b"0\r\n\r\n"
STEP = 0.001  # seconds between two events of a paced stream
RATE, SLICES = 6_500, 30  # events a second of a whole crowd, told in slices
MARK = workloads.MARK.encode()


def http_chunk(data: bytes) -> bytes:
    """One chunk of a chunked body."""
    return b"%x\r\n%b\r\n" % (len(data), data)


@functools.cache
def chunks(way: str, wire: str, name: str) -> tuple[bytes, ...]:
    """The body of an answer, in HTTP chunks."""
    workload = workloads.build(wire, name)
    pieces = chunks_of(workload, 16384) if way == "16k" else split_frames(workload)
    return tuple(http_chunk(piece) for piece in pieces)


@functools.cache
def whole(way: str, wire: str, name: str) -> bytes:
    return b"".join((HEAD, *chunks(way, wire, name), END))


def stamped(frames: tuple[bytes, ...]) -> Iterator[bytes]:
    """The frames, with the time at which each is asked for in place of its mark.

    A frame that repeats the text of others repeats their times.
    """
    stamps: list[bytes] = []
    for frame in frames:
        head, *rest = frame.split(MARK)
        if len(rest) == 1:
            stamps.append(b"%0*d" % (len(MARK), time.monotonic_ns()))
            yield head + stamps[-1] + rest[0]
        else:
            yield head + b"".join(a + b for a, b in zip(stamps, rest, strict=False))


def unread(port: int) -> bool:
    """Is there anything that was sent from this port and not read yet? (Known on Linux alone.)"""
    try:
        with open("/proc/net/tcp") as table:
            rows = [row.split()[2:5] for row in table][1:]
    except OSError:
        return False
    ends = f":{port:04X}"  # of the address that a reader is connected to
    return any(to.endswith(ends) and not queues.endswith(":00000000") for to, _, queues in rows)


class Crowd:
    """The streams of one crowd: they wait for each other, then are told event by event."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._members: list[tuple[asyncio.StreamWriter, tuple[bytes, ...]]] = []
        self._done = asyncio.Event()

    @property
    def full(self) -> bool:
        return len(self._members) == self._size

    async def join(self, writer: asyncio.StreamWriter, body: tuple[bytes, ...]) -> None:
        """Wait until this stream was told to its end, with all others."""
        writer.write(HEAD)
        # The end of a body follows its last event at once, as services send it.
        self._members.append((writer, (*body[:-1], body[-1] + END)))
        if not self.full:
            await self._done.wait()
            return
        await self._tell()
        self._done.set()

    async def _tell(self) -> None:
        pause = self._size / RATE / SLICES  # nothing is made up for: that would be a burst
        port = self._members[0][0].get_extra_info("sockname")[1]
        for number in range(max(len(body) for _, body in self._members)):
            # A reader that lags would find several events in one read, and look the cheaper for it.
            while unread(port):  # noqa: ASYNC110  # what is watched is the kernel's
                await asyncio.sleep(pause)
            for part in range(SLICES):
                for writer, body in self._members[part::SLICES]:
                    if number < len(body):
                        writer.write(body[number])
                await asyncio.sleep(pause)


class Server:
    """Answers every request of every connection."""

    def __init__(self) -> None:
        self._crowds: dict[str, Crowd] = {}

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                await reader.readexactly(_content_length(head))
                way, wire, name = head.split(b" ", 2)[1].decode().split("/")[1:4]
                await self._answer(writer, way, wire, name)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass  # the reader is gone, as it may
        finally:
            writer.close()

    async def _answer(self, writer: asyncio.StreamWriter, way: str, wire: str, name: str) -> None:
        if way == "paced":
            await self._pace(writer, wire, name)
        elif way.startswith("crowd-"):
            await self._crowd(way).join(writer, chunks("event", wire, name))
        else:
            writer.write(whole(way, wire, name))

    def _crowd(self, way: str) -> Crowd:
        """The crowd that is gathering now; a full one makes room for the next."""
        crowd = self._crowds.get(way)
        if crowd is None or crowd.full:
            crowd = self._crowds[way] = Crowd(int(way.partition("-")[2]))
        return crowd

    async def _pace(self, writer: asyncio.StreamWriter, wire: str, name: str) -> None:
        frames = tuple(split_frames(workloads.build(wire, name)))
        writer.write(HEAD)
        for frame in stamped(frames):
            writer.write(http_chunk(frame))
            await asyncio.sleep(STEP)
        writer.write(END)


def _content_length(head: bytes) -> int:
    """The length of the body that follows a request's head; every client here tells it."""
    _, found, rest = head.lower().partition(b"content-length:")
    return int(rest.split(b"\r\n", 1)[0]) if found else 0


async def _main() -> None:
    server = await asyncio.start_server(Server().serve, "127.0.0.1", 0, backlog=4096)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(_main())
