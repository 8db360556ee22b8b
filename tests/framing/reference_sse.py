"""A reader of whole event streams, written down from the WHATWG specification line by line.

Slow, without chunks and without limits, so that it is right by being read next to
https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation.
The tests hold our incremental framing against it.
"""

from __future__ import annotations

import re
from typing import NamedTuple


class Message(NamedTuple):
    """What is dispatched."""

    data: str
    event: str = ""


def lines_of(stream: str) -> list[str]:
    """Lines end with CRLF, LF or CR. What follows the last of them is no line: it never ended."""
    return re.split("\r\n|\n|\r", stream)[:-1]


def messages(body: bytes) -> list[Message]:
    """Everything that a body dispatches."""
    stream = body.decode("utf-8", "replace")  # always UTF-8, whatever a header says
    stream = stream.removeprefix("\ufeff")  # one leading byte order mark is ignored
    dispatched: list[Message] = []
    data, event = "", ""
    for line in lines_of(stream):
        if line == "":  # dispatch
            if data != "":
                dispatched.append(Message(data.removesuffix("\n"), event))
            data, event = "", ""
        elif line.startswith(":"):
            continue
        else:
            field, _, value = line.partition(":")
            value = value.removeprefix(" ")
            if field == "event":
                event = value
            elif field == "data":
                data += value + "\n"
            # id and retry are for reconnecting, which an answer of a model never does
    return dispatched  # what is pending at the end is discarded
