"""A conversation comes in; the stream of a model that needs no network goes out, on any wire.

Rule: what it says depends on the conversation alone, so the same talk gives the same bytes. It is a
model made of ``streamnorm.testing`` scripts: a word in the question picks the scene, and what the
tools gave picks how the scene goes on.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from struct import pack
from typing import Any
from zlib import compress, crc32

from ..agent.client_tools import ClientTool
from ..conversation import Conversation
from ..edge.stream import Stream, normalize
from ..encoding.steps import Show, Step
from ..testing import call, cut, interleave, missing_id, say, script, show, think
from ..tools import ToolResult
from .takes import showing_wires

__all__ = ["SUGGESTIONS", "TOOLS", "Scripted"]

Steps = list[Step]
Scene = Callable[[str, list[ToolResult]], Steps]

WEATHER = {"Oslo": (3, "snow"), "Lima": (19, "fog"), "Nairobi": (24, "sun"), "Kyoto": (12, "rain")}
SUGGESTIONS = (
    "What is the weather in Oslo and Lima?",
    "Delete the old log files.",
    "Tell me a long story.",
    "Break the stream inside a call.",
    "Call a tool without an id.",
    "Draw a picture.",
)


# --- the tools ------------------------------------------------------------------------------------


def get_weather(city: str) -> dict[str, Any]:
    """The weather in a city."""
    celsius, sky = WEATHER.get(city, (len(city) * 2, "clouds"))
    return {"city": city, "celsius": celsius, "sky": sky}


def delete_files(pattern: str) -> dict[str, Any]:
    """Delete files by pattern. Nothing is deleted: this is a demonstration."""
    return {"pattern": pattern, "deleted": 3}


TOOLS = (
    ClientTool.from_function(get_weather),
    ClientTool.from_function(delete_files, consent=True),  # a person has to agree
)


# --- the model ------------------------------------------------------------------------------------


class Scripted:
    """The model. ``pace`` stretches the script's time; ``wait`` passes it."""

    def __init__(
        self, pace: float = 2.0, wait: Callable[[float], Awaitable[Any]] = asyncio.sleep
    ) -> None:
        self._pace = pace
        self._wait = wait

    def __call__(self, conversation: Conversation, provider: str) -> Stream:
        """The answer to what was said so far, as the bytes of that provider."""
        steps = _steps(conversation)
        if provider not in showing_wires():
            steps = [say(_NO_PICTURES) if isinstance(step, Show) else step for step in steps]
        made = replace(script(*steps), key=str(len(conversation)))  # ids of its own
        chunks = self._paced(made.timed(provider))
        return normalize(chunks, provider, seed=f"{len(conversation)}")

    async def _paced(self, timed: list[tuple[float, bytes]]) -> AsyncIterator[bytes]:
        before = 0.0
        for at, chunk in timed:
            await self._wait((at - before) * self._pace)
            before = at
            yield chunk


def _steps(conversation: Conversation) -> Steps:
    asked, results = _asked(conversation)
    for word, scene in _SCENES:
        if re.search(word, asked, re.IGNORECASE):
            return scene(asked, results)
    return [say(_HELP)]


def _asked(conversation: Conversation) -> tuple[str, list[ToolResult]]:
    """The last question, and what tools have given since."""
    asked = ""
    results: list[ToolResult] = []
    for turn in conversation:
        if turn.role == "user":
            asked, results = turn.text, []
        results += turn.results
    return asked, results


# --- the scenes -----------------------------------------------------------------------------------


def _weather(asked: str, results: list[ToolResult]) -> Steps:
    if results:
        told = "; ".join(_of_weather(result) for result in results)
        return [say(f"Here is what I found. {told}.")]
    cities = [name for name in WEATHER if name.lower() in asked.lower()] or ["Oslo"]
    calls: Steps = [call("get_weather", city=city) for city in cities]
    return [say("Let me look that up."), *calls, interleave()]


def _of_weather(result: ToolResult) -> str:
    output = result.output
    if result.is_error or not isinstance(output, dict):
        return f"no answer from {result.call.name}"
    return f"{output.get('city')}: {output.get('celsius')} °C and {output.get('sky')}"


def _delete(asked: str, results: list[ToolResult]) -> Steps:
    if results and results[-1].is_error:
        return [say("Understood: nothing was deleted.")]
    if results:
        return [say("Done. Three old log files are gone.")]
    return [
        think("Deleting cannot be undone, so a person should agree first."),
        say("I would delete everything that matches this pattern."),
        call("delete_files", pattern="logs/*.log.old"),
    ]


def _story(asked: str, results: list[ToolResult]) -> Steps:
    return [say(_STORY)]


def _break(asked: str, results: list[ToolResult]) -> Steps:
    return [
        say("I call a tool, and the connection ends in the middle of it."),
        call("delete_files", pattern="logs/2026/**/*.log"),
        cut(inside="call"),
    ]


def _nameless(asked: str, results: list[ToolResult]) -> Steps:
    if results:
        return [say("The result found its way back, although the wire gave no id.")]
    return [call("get_weather", city="Nairobi"), missing_id()]


def _draw(asked: str, results: list[ToolResult]) -> Steps:
    return [say("A harbour at night."), show(_picture(96, 64), "image/png")]


def _picture(width: int, height: int) -> bytes:
    """A small PNG: sky above water, and a light."""

    def pixel(x: int, y: int) -> bytes:
        if (x - width // 3) ** 2 + (y - height // 4) ** 2 < 30:
            return bytes((250, 220, 120))
        return bytes((20, 40, 90 - y)) if 2 * y < height else bytes((10, 60 + y // 2, 90))

    def block(kind: bytes, data: bytes) -> bytes:
        return pack(">I", len(data)) + kind + data + pack(">I", crc32(kind + data))

    rows = (b"\0" + b"".join(pixel(x, y) for x in range(width)) for y in range(height))
    head = pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    blocks = [(b"IHDR", head), (b"IDAT", compress(b"".join(rows), 9)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(block(kind, data) for kind, data in blocks)


_SCENES: tuple[tuple[str, Scene], ...] = (
    (r"without an id|no id", _nameless),
    (r"break|cut", _break),
    (r"weather|cold|warm", _weather),
    (r"delete|clean|remove", _delete),
    (r"story|long", _story),
    (r"draw|picture", _draw),
)
_NO_PICTURES = "(This wire has no pictures in an answer: choose another one.)"
_HELP = (
    "I am a script, not a model: I know the weather, I can ask to delete files, tell a long story, "
    "break off inside a call, call a tool without an id, or draw. Choose one of the suggestions, on "
    "whichever wire you like: what you see stays the same."
)
_STORY = " ".join((
    "A lighthouse keeper wrote down every signal that she saw, one line for each.",
    "Most ships signalled as the book of signals says.",
    "Some left out their names; she gave each a name of her own, and wrote beside it: mine.",
    "One ship began a message and vanished in the fog.",
    "Half of it read like an order, and a hasty keeper would have followed it.",
    "She wrote: broken, heard this far, not to be acted upon.",
    "In spring the captain came by and thanked her, for the order had ended with the word not.",
    "Since then the keepers on that coast have a rule.",
    "A message is whole when its sender says so, and never because it happens to make sense.",
))  # fmt: skip
