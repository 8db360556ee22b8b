"""Takes of the Mistral chat wire: Chat's shape, with habits of its own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tools.takes.chat import TIDES, WEATHER, Chat
from tools.takes.common import DONE, Json, Take, dumps, fragments, ident, spaced


class Mistral(Chat):
    provider, model = "mistral", "mistral-small-latest"

    def entry(self, at: int, tool: str, arguments: Any, **keys: Any) -> Json:
        key = {"id": ident("", self.name, at, size=9)} | keys
        return key | {"function": {"name": tool, "arguments": arguments}, "index": at}

    def last(self, reason: str, **delta: Any) -> list[str]:
        """The last chunk has the finish and the usage; then [DONE]."""
        said = {"index": 0, "delta": {"content": ""} | delta, "finish_reason": reason}
        usage = {"prompt_tokens": 98, "total_tokens": 121, "completion_tokens": 23}
        self.payload(self.body | {"choices": [said], "usage": usage})
        return self.raw(DONE).wire


def takes() -> Iterator[Take]:
    m = Mistral("text_only").role().text("The harbour is open until ten in the evening.")
    yield m.take("an answer without calls finishes with stop", m.last("stop"))

    m = Mistral("parallel_calls").role()
    entries = [m.entry(0, WEATHER[0], spaced(WEATHER[1])), m.entry(1, TIDES[0], spaced(TIDES[1]))]
    wire = m.last("tool_calls", tool_calls=entries)
    yield m.take("two whole calls on the finishing chunk", wire)

    m = Mistral("object_arguments").role()
    wire = m.last("tool_calls", tool_calls=[m.entry(0, *WEATHER)])
    yield m.take("arguments are an object", wire)

    m = Mistral("null_string_ids").role()
    m.tool(m.entry(0, TIDES[0], ""))
    for piece in fragments(dumps(TIDES[1])):
        m.tool(m.entry(0, "", piece, id="null"))
    yield m.take('later deltas carry the id "null", which is none', m.last("tool_calls"))

    m = Mistral("no_ids").role()
    entries = [m.entry(0, tool, spaced(said), id="null") for tool, said in (WEATHER, TIDES)]
    wire = m.last("tool_calls", tool_calls=entries)
    yield m.take('two calls, index 0 and the id "null" on both', wire)

    m = Mistral("thinking_chunks", "magistral-small-latest").role()
    for piece in ("Which ", "harbour?"):
        m.delta(content=[{"type": "thinking", "thinking": [{"type": "text", "text": piece}]}])
    closed = {"type": "thinking", "thinking": [], "signature": "c2lnbmVkCg==", "closed": True}
    m.delta(content=[closed]).delta(content=[{"type": "text", "text": "Looking."}])
    wire = m.last("tool_calls", tool_calls=[m.entry(0, TIDES[0], spaced(TIDES[1]))])
    yield m.take("content is a list of chunks; thinking is reasoning", wire)

    m = Mistral("citations").role().text("The ferry leaves at 07:40")
    m.delta(content=[{"type": "reference", "reference_ids": [0, 3]}]).delta(content=".")
    yield m.take("reference chunks are citations", m.last("stop"))

    m = Mistral("max_tokens_in_arguments").role()
    wire = m.last("model_length", tool_calls=[m.entry(0, "write_file", '{"content": "Far ou')])
    yield m.take("the model's length limit inside the arguments", wire)

    m = Mistral("cut_in_arguments").role().tool(m.entry(0, "write_file", '{"content": "Far'))
    yield m.take("simply ends inside the arguments", m.wire)

    m = Mistral("finish_error").role().text("One mom")
    yield m.take('finish_reason "error" is a failure', m.last("error"))
