"""What the gateway keeps of a request on each pair of wires: the table in docs/gateway.md.

Rule: nothing is claimed. Each feature is written into a body of each client's wire, read back as the
gateway reads it, and said again on each upstream's wire; what the report then has is what is lost.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from streamnorm import Conversation, EncodeError, Request, Tool, ToolCall, ToolResult, read_request
from streamnorm.conversation import Text, Turn
from streamnorm.options import Format, RequestOptions
from streamnorm.providers import provider_row
from streamnorm.text.written import in_base64, json_text
from streamnorm.tools import File, Link, ToolChoice
from tools.documents import cell, main_of

__all__ = ["CLIENTS", "FEATURES", "UPSTREAMS", "lost", "made"]

PAGE = Path(__file__).resolve().parent.parent / "docs" / "gateway.md"
MARKS = re.compile(r"(<!-- made by tools.gateway: kept -->\n).*?(<!-- end -->)", re.S)
CLIENTS = {
    "anthropic": "Messages", "openai_responses": "Responses", "openai_chat": "Chat",
    "gemini": "generateContent",
}  # fmt: skip
UPSTREAMS = (
    "anthropic", "openai_responses", "openai_chat", "gemini", "bedrock", "mistral", "cohere", "ollama",
)  # fmt: skip

PICTURE = File(b"\x89PNG\r\n\x1a\n", "image/png")
PAPER = File(b"%PDF-1.4", "application/pdf", "paper.pdf")
CAT = Link("https://example.org/cat.png", "image/png")
REPORT = Link("https://example.org/report.pdf", "application/pdf")
CALL = ToolCall(0, "call_1", "look", {"at": "it"}, '{"at":"it"}')
SCHEMA = {"type": "object", "properties": {"at": {"type": "string"}}, "required": ["at"]}
LOOK = Tool("look", "Looks at something", SCHEMA)
OTHERWISE = "said by declaring"  # … fewer tools: the same in other words
DESCRIBED = "it is described"


def _talk(*parts: Any) -> Conversation:
    return Conversation().user("Hello", *parts)


def _answered(output: Any, *, is_error: bool = False) -> Conversation:
    result = ToolResult.for_call(CALL, output, is_error)
    return _talk().assistant(Turn("assistant", (CALL,))).results([result]).user("And?")


def _asked(talk: Conversation | None = None, **fields: Any) -> Callable[[str], Request]:
    return lambda wire: Request(wire, talk or _talk(), tools=(LOOK,), **fields)


def _with(**options: Any) -> Callable[[str], Request]:
    return _asked(options=RequestOptions(**options))


FEATURES: Mapping[str, Callable[[str], Request]] = {
    "texts, calls and their results": _asked(_answered("there")),
    "a result that is an error": _asked(_answered("not there", is_error=True)),
    "a picture of the user": _asked(_talk(PICTURE)),
    "a document of the user": _asked(_talk(PAPER)),
    "a picture at an address": _asked(_talk(CAT)),
    "a document at an address": _asked(_talk(REPORT)),
    "a picture in a result": _asked(_answered([PICTURE])),
    "a system text": _asked(system="Be brief."),
    "a system text in the midst": _asked(
        _talk().assistant("Hi").add(Turn("system", (Text("Be brief."),))).user("And?")
    ),
    "tool choice: any tool": _asked(tool_choice=ToolChoice("required")),
    "tool choice: this tool": _asked(tool_choice=ToolChoice("tool", ("look",))),
    "tool choice: none": _asked(tool_choice=ToolChoice("none")),
    "one call at a time": _asked(tool_choice=ToolChoice(parallel=False)),
    "`max_tokens`": _with(max_tokens=100),
    "`temperature`": _with(temperature=0.5),
    "`top_p`": _with(top_p=0.5),
    "`top_k`": _with(top_k=5),
    "stop sequences": _with(stop=("END",)),
    "`seed`": _with(seed=7),
    "penalties": _with(frequency_penalty=0.5, presence_penalty=0.5),
    "an answer in JSON by a schema": _with(format=Format(SCHEMA)),
    "how hard to think": _with(effort="high"),
    "who asks (`user`)": _with(user="u1"),
}


def lost(feature: str, client: str, upstream: str) -> list[str] | None:
    """Why it does not reach the upstream as it was; None if the client's own wire cannot say it."""
    try:
        said = FEATURES[feature](client).prepare()
    except EncodeError:
        return None
    if said.dropped or _described(said.body):
        return None
    read = read_request(client, said.body)
    told = read.prepare(upstream, model="m", images="shown")
    why = [row.why for row in (*read.report, *told.dropped) if not row.why.startswith(OTHERWISE)]
    return [*why, *_described(told.body)]


def _described(body: Any) -> list[str]:
    """Media that a wire cannot take are said in words."""
    text = json_text(body)
    gone = [f for f in (PICTURE, PAPER) if f.summary in text and in_base64(f.data) not in text]
    told = [link for link in (CAT, REPORT) if link.words in text]
    return [DESCRIBED for _ in (*gone, *told)]


def _cell(feature: str, upstream: str) -> str:
    kept, gone = [], []
    for client, title in CLIENTS.items():
        why = lost(feature, client, upstream)
        if why is not None:
            (gone if why else kept).append(title)
            described = DESCRIBED in (why or ())
    if not gone:
        return "✔"
    if not kept:
        return "in words" if described else "–"
    return f"✔ from {', '.join(kept)}"


def _table() -> str:
    titles = [cell(provider_row(name).title) for name in UPSTREAMS]
    lines = ["| of the request | " + " | ".join(titles) + " |", "|---" * (len(titles) + 1) + "|"]
    for feature in FEATURES:
        cells = [_cell(feature, upstream) for upstream in UPSTREAMS]
        lines.append(f"| {feature} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def made() -> dict[Path, str]:
    """The page with its table."""
    return {PAGE: MARKS.sub(lambda found: found[1] + _table() + found[2], PAGE.read_text())}


if __name__ == "__main__":
    sys.exit(main_of("tools.gateway", __doc__, made))
