"""Connections that many responses share, such as a WebSocket: messages in, one stream per response out.

async with session(websocket) as streams:
    async for stream in streams:             # one after the other, or each in a task of its own
        async for event in stream: ...

turns = Demultiplexer()                      # without I/O: messages in, (stream, events) out
told = turns.feed(message) + turns.close()
"""

from __future__ import annotations

from .demultiplexer import Demultiplexer, Told
from .edge.session import LaneStream, Session, session

__all__ = ["Demultiplexer", "LaneStream", "Session", "Told", "session"]
