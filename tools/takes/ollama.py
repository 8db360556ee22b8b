"""Takes of Ollama's native chat wire: lines of JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self

from tools.takes.common import PIXEL, PNG, Json, Take, dumps, fragments, ident, rechunk

MODEL = "qwen3:4b"
WEATHER = ("get_weather", {"city": "Reykjavík", "unit": "celsius"})
TIDES = ("get_tides", {"harbour": "Höfn", "days": 3})


class Lines:
    def __init__(self, name: str) -> None:
        self.name, self.lines = name, list[str]()

    def line(self, payload: Json) -> Self:
        self.lines.append(dumps(payload) + "\n")
        return self

    def say(self, done: bool = False, more: Json | None = None, **message: Any) -> Self:
        at = f"2026-01-01T00:00:{len(self.lines):02}.204117Z"
        body: Json = {"model": MODEL, "created_at": at}
        body |= {"message": {"role": "assistant", "content": ""} | message, "done": done}
        return self.line(body | (more or {}))

    def text(self, text: str, field: str = "content") -> Self:
        for piece in fragments(text, (6, 21, 14)):
            message: Json = {field: piece}
            self.say(**message)
        return self

    def call(self, *calls: tuple[str, Json], ids: bool = False, index: bool = True) -> Self:
        entries = []
        for at, (name, arguments) in enumerate(calls):
            function = ({"index": at} if index else {}) | {"name": name, "arguments": arguments}
            key = {"id": ident("call_", self.name, name, size=8).lower()} if ids else {}
            entries.append(key | {"function": function})
        return self.say(tool_calls=entries)

    def end(self, reason: str = "stop") -> Self:
        counts = {"done_reason": reason, "total_duration": 2361567204, "load_duration": 24478458}
        counts |= {"prompt_eval_count": 218, "prompt_eval_duration": 33994270}
        return self.say(True, counts | {"eval_count": 41, "eval_duration": 2300043504})

    def take(self, proves: str, sizes: tuple[int, ...] = (), cut: int = 0) -> Take:
        """One chunk per line, or cut anywhere."""
        wire = "".join(self.lines).encode()
        pieces = rechunk(wire[: len(wire) - cut], sizes) if sizes else self.lines
        return Take("ollama", self.name, MODEL, proves, pieces, chunks=True)


def takes() -> Iterator[Take]:
    w = Lines("text_only").text("The harbour is open until ten in the evening.")
    yield w.end().take("an answer without calls finishes with stop")

    w = Lines("calls_without_ids").call(WEATHER, index=False).call(TIDES, index=False)
    yield w.end().take("no ids and no index: arguments are objects, stop means tool_calls")

    w = Lines("calls_with_ids").call(WEATHER, TIDES, ids=True)
    yield w.end().take("newer servers give ids and an index")

    w = Lines("parallel_calls").text("Both, then.").call(WEATHER, TIDES).call(WEATHER)
    yield w.end().take("three calls without ids, two of them equal")

    w = Lines("no_arguments").call(("list_harbours", {}))
    yield w.end().take("an empty object of arguments")

    w = Lines("thinking").text("Which harbour?", "thinking").call(TIDES, ids=True)
    yield w.end().take("thinking is reasoning")

    w = Lines("pictures").text("Here:").say(images=[PNG, PIXEL])
    yield w.end().take("pictures come as base64; their first bytes say what they are")

    w = Lines("split_lines").text("Höfn 🌊.").call(TIDES).end()
    yield w.take("chunks that end inside lines and characters", (1, 103, 18, 2, 211))

    w = Lines("last_newline_missing").call(TIDES).end()
    yield w.take("the last line is not ended", (400,), cut=1)

    w = Lines("max_tokens").text("Far out, the lamp")
    yield w.end("length").take("the length limit")

    w = Lines("error_after_200").call(TIDES)
    w.line({"error": "an error was encountered while running the model: unexpected EOF"})
    yield w.take("an error line ends the stream")

    w = Lines("cut_after_call").call(WEATHER).text("Now the ti")
    yield w.take("simply ends: no line says done")
