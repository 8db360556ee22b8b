"""Known calls in; streams that say them oddly, or only in part, out: for each wire, and each way.

Rule: a case knows which calls may be told. What is made is what servers and the ways to them do: frames in
another order, twice, cut, lost or in other bytes; nothing here knows a reader.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias

from streamnorm.testing import call, say, script

__all__ = ["SAID", "WIRES", "Case", "cuts", "oddities"]

WIRES = ("openai_chat", "anthropic", "openai_responses", "gemini")
PIECES = WIRES[:3]  # that say arguments in pieces
SAID: list[tuple[str, dict[str, Any]]] = [
    ("read_file", {"path": "ACC-1", "n": 120000, "dry_run": True}),
    ("edit_file", {"path": "b.txt", "text": "x" * 20}),
]
FIRST, SECOND = SAID[:1], SAID[1:]


class Frame(NamedTuple):
    event: str
    payload: Any  # or text, as it stands

    @property
    def data(self) -> str:
        raw = isinstance(self.payload, str)
        return self.payload if raw else json.dumps(self.payload, separators=(",", ":"))


Frames: TypeAlias = list[Frame]


@dataclass
class Case:
    """``may``: the calls that may be told. ``all``: whoever complains of nothing has all of them."""

    name: str
    wire: str
    body: bytes
    may: list[tuple[str, dict[str, Any]]] = field(default_factory=lambda: SAID)
    all: bool = True
    ends: str = "clean"  # or abrupt
    size: int = 4096  # of a chunk


# --- frames ---------------------------------------------------------------------------------------


def frames_of(wire: str, said: list[tuple[str, dict[str, Any]]] = SAID) -> Frames:
    body = script(say("Let me look."), *(call(name, **args) for name, args in said)).bytes(wire)
    frames = []
    for block in body.decode().strip().split("\n\n"):
        lines = dict(line.split(": ", 1) for line in block.split("\n"))
        data = lines["data"]
        frames.append(Frame(lines.get("event", ""), data if data == "[DONE]" else json.loads(data)))
    return frames


def body_of(frames: Frames, *, end: str = "\n", before: str = "") -> bytes:
    blocks = []
    for frame in frames:
        head = f"event: {frame.event}{end}" if frame.event else ""
        blocks.append(f"{before}{head}data: {frame.data}{end}{end}")
    return "".join(blocks).encode()


def piece(frame: Frame) -> tuple[Any, Any, str] | None:
    """Where the text of a call stands in this frame: whose it is, its holder and its key."""
    said = frame.payload
    if not isinstance(said, dict):
        return None
    if said.get("type") == "content_block_delta" and "partial_json" in said["delta"]:
        return said["index"], said["delta"], "partial_json"
    if said.get("type") == "response.function_call_arguments.delta":
        return said["output_index"], said, "delta"
    for choice in said.get("choices", ()):
        for entry in choice["delta"].get("tool_calls") or ():
            if "arguments" in entry.get("function", ()):
                return entry["index"], entry["function"], "arguments"
    return None


def of_call(frames: Frames, number: int) -> list[int]:
    """The places of the frames with text of this call."""
    found = [(at, piece(frame)) for at, frame in enumerate(frames)]
    spoken = [(at, one[0], one[1][one[2]]) for at, one in found if one is not None]
    whose = list(dict.fromkeys(who for _, who, _ in spoken))[number]
    return [at for at, who, text in spoken if who == whose and text]


def entries(frames: Frames) -> Iterator[dict[str, Any]]:
    """The entries of calls on the Chat wire."""
    for frame in frames:
        if isinstance(frame.payload, dict):
            for choice in frame.payload.get("choices", ()):
                yield from choice["delta"].get("tool_calls") or ()


def retold(frames: Frames, texts: list[str]) -> Frames:
    """The first call says these texts, and whatever states them again says so, too."""
    places = of_call(frames, 0)
    held = [piece(frames[at]) for at in places]
    before = "".join(one[1][one[2]] for one in held if one is not None)
    told: Frames = []
    for at, frame in enumerate(frames):
        if at == places[0]:
            for text in texts:
                fresh = copy.deepcopy(frame)
                where = piece(fresh)
                assert where is not None
                where[1][where[2]] = text
                told.append(fresh)
        elif at not in places:
            told.append(Frame(frame.event, replaced(frame.payload, before, "".join(texts))))
    return told


def replaced(value: Any, before: str, after: str) -> Any:
    if isinstance(value, dict):
        return {key: replaced(one, before, after) for key, one in value.items()}
    if isinstance(value, list):
        return [replaced(one, before, after) for one in value]
    return after if value == before else value


# --- cut streams ----------------------------------------------------------------------------------


def cuts(wire: str, parts: int) -> Iterator[Case]:
    """Cut at every so-manieth part, cleanly and by a broken connection."""
    body = body_of(frames_of(wire))
    for number in range(1, parts):
        at = len(body) * number // parts
        for ends in ("clean", "abrupt"):
            yield Case(f"cut at {number}/{parts}, {ends}", wire, body[:at], ends=ends)


# --- other oddities -------------------------------------------------------------------------------


def oddities(wire: str) -> Iterator[Case]:
    """Every oddity that this wire can have."""
    plain = body_of(frames_of(wire))
    yield Case("nothing odd", wire, plain)
    yield Case("chunks of one byte", wire, plain, size=1)
    yield Case("lines end with CR LF", wire, body_of(frames_of(wire), end="\r\n"))
    yield Case("lines end with CR", wire, body_of(frames_of(wire), end="\r"))
    yield Case("a byte order mark", wire, b"\xef\xbb\xbf" + plain)
    yield Case("comments between events", wire, body_of(frames_of(wire), before=": hi\n\n"))
    yield Case("an event that nobody knows", wire, body_of(with_unknown(wire)))
    yield Case("line separators in the text", wire, *separators(wire))
    for name, wires, make in CASES:
        if wire in wires:
            frames, may, whole = make(wire, frames_of(wire))
            yield Case(name, wire, body_of(frames), may, whole)


Made: TypeAlias = tuple[Frames, list[tuple[str, dict[str, Any]]], bool]


def with_unknown(wire: str) -> Frames:
    frames = frames_of(wire)
    unknown: dict[str, Any] = {"type": "future.event", "future": {"a": [1]}}
    if wire == "gemini":
        unknown = {"futureField": {"a": [1]}}
    elif wire == "openai_chat":
        unknown = {"object": "future.event", "future": {"a": [1]}, "choices": []}
    name = "future.event" if frames[0].event else ""
    half = len(frames) // 2
    return [*frames[:half], Frame(name, unknown), *frames[half:]]


def separators(wire: str) -> tuple[bytes, list[tuple[str, dict[str, Any]]]]:
    said = [("read_file", {"path": "a\u2028b\u2029c\u0085d"}), *SECOND]
    body = body_of(frames_of(wire, said)).decode()
    for code in ("2028", "2029", "0085"):
        body = body.replace(f"\\\\u{code}", chr(int(code, 16))).replace(
            f"\\u{code}", chr(int(code, 16))
        )
    return body.encode(), said


def not_json(wire: str, frames: Frames) -> Made:
    if wire == "gemini":
        at = next(n for n, f in enumerate(frames) if "functionCall" in f.data)
    else:
        at = of_call(frames, 0)[1]
    frames[at] = Frame(frames[at].event, frames[at].data[:-9])
    return frames, SAID if wire == "openai_responses" else SECOND, True


def error(wire: str, frames: Frames) -> Made:
    said: dict[str, Any] = {"error": {"message": "overloaded", "type": "server_error", "code": "e"}}
    if wire == "anthropic":
        said = {"type": "error", "error": {"type": "overloaded_error", "message": "overloaded"}}
    elif wire == "openai_responses":
        said = {"type": "error", "code": "server_error", "message": "overloaded", "param": None}
        said["sequence_number"] = 99
    elif wire == "gemini":
        said = {"error": {"code": 503, "message": "overloaded", "status": "UNAVAILABLE"}}
    at = len(frames) - 2 if wire == "gemini" else of_call(frames, 1)[0]
    return [*frames[:at], Frame("error" if frames[0].event else "", said)], FIRST, True


def length(wire: str, frames: Frames) -> Made:
    """The token limit falls inside of the second call; that it did is told at the end."""
    places = of_call(frames, 1)
    frames, rest = frames[: places[1]], frames[places[-1] + 1 :]
    if wire == "openai_chat":
        last = next(f for f in rest if f.payload != "[DONE]" and f.payload["choices"])
        last.payload["choices"][0]["finish_reason"] = "length"
        return [*frames, *rest], FIRST, False
    if wire == "anthropic":
        last = next(f for f in rest if f.payload["type"] == "message_delta")
        last.payload["delta"]["stop_reason"] = "max_tokens"
        return [*frames, *rest], FIRST, False
    final = rest[-1].payload
    final["type"] = "response.incomplete"
    final["response"] |= {
        "status": "incomplete",
        "incomplete_details": {"reason": "max_output_tokens"},
    }
    final["response"]["output"] = final["response"]["output"][:-1]
    return [*frames, Frame("response.incomplete", final)], FIRST, False


def done_inside(wire: str, frames: Frames) -> Made:
    return [*frames[: of_call(frames, 1)[1]], Frame("", "[DONE]")], FIRST, True


def lost(wire: str, frames: Frames) -> Made:
    del frames[of_call(frames, 0)[1]]
    return frames, SAID if wire == "openai_responses" else SECOND, True


def twice(wire: str, frames: Frames) -> Made:
    at = of_call(frames, 0)[1]
    frames.insert(at, frames[at])
    return frames, SAID if wire == "openai_responses" else SECOND, True


def interleaved(wire: str, frames: Frames) -> Made:
    """Both calls begin, then their pieces come by turns, then both end."""
    one, other = of_call(frames, 0), of_call(frames, 1)
    begins, ends = frames[: one[0]], frames[other[-1] + 1 :]
    between = frames[one[-1] + 1 : other[0]]
    starts = [f for f in between if "start" in f.data or "added" in f.data or piece(f) is not None]
    stops = [f for f in between if f not in starts]
    pieces: Frames = []
    for n in range(max(len(one), len(other))):
        pieces += [frames[places[n]] for places in (one, other) if n < len(places)]
    return [*begins, *starts, *pieces, *stops, *ends], SAID, True


def without_index(wire: str, frames: Frames) -> Made:
    for entry in entries(frames):
        del entry["index"]
    return frames, SAID, True


def all_index_zero(wire: str, frames: Frames) -> Made:
    for entry in entries(frames):
        entry["index"] = 0
    return frames, SAID, True


def named_each_time(wire: str, frames: Frames) -> Made:
    held: dict[int, tuple[str, str]] = {}
    for entry in entries(frames):
        if entry.get("id"):
            held[entry["index"]] = entry["id"], entry["function"]["name"]
        entry["id"], entry["function"]["name"] = held[entry["index"]]
        entry["type"] = "function"
    return frames, SAID, True


def without_id(wire: str, frames: Frames) -> Made:
    for entry in entries(frames):
        entry.pop("id", None)
    for frame in frames:
        if isinstance(frame.payload, dict):
            frame.payload.get("content_block", {}).pop("id", None)
    return frames, SAID, True


def one_id_for_both(wire: str, frames: Frames) -> Made:
    for entry in entries(frames):
        if entry.get("id"):
            entry["id"] = "call_same"
    for frame in frames:
        if isinstance(frame.payload, dict) and "id" in frame.payload.get("content_block", ()):
            frame.payload["content_block"]["id"] = "toolu_same"
    return frames, SAID, True


def after_its_end(wire: str, frames: Frames) -> Made:
    late = frames.pop(of_call(frames, 0)[-1])
    frames.insert(of_call(frames, 1)[1], late)
    return frames, [], True


def contradicted(wire: str, frames: Frames) -> Made:
    """The pieces say one amount, and the copy at the end another: nobody knows which is meant."""
    for frame in frames:
        if piece(frame) is None and "120000" in frame.data:
            frame.payload.update(json.loads(frame.data.replace("120000", "999999")))
    return frames, SECOND, True


def said_first(
    text: str, arguments: dict[str, Any] | None, *cut: int
) -> Callable[[str, Frames], Made]:
    """The first call says this text; None: that is nothing that a tool may be given."""

    def make(wire: str, frames: Frames) -> Made:
        bounds = [0, *(cut or (len(text) // 2,)), len(text)]
        texts = [text[a:b] for a, b in pairwise(bounds)]
        first = [] if arguments is None else [("read_file", arguments)]
        return retold(frames, texts), [*first, *SECOND], True

    return make


_PAIR = '{"path": "a\ud83d\ude42"}'
CASES: tuple[tuple[str, tuple[str, ...], Callable[[str, Frames], Made]], ...] = (
    ("an event that is no JSON", WIRES, not_json),
    ("an error in the stream", WIRES, error),
    ("the token limit inside arguments", PIECES, length),
    ("[DONE] inside arguments", WIRES[:1], done_inside),
    ("a piece is lost", PIECES, lost),
    ("a piece comes twice", PIECES, twice),
    ("calls are interleaved", PIECES, interleaved),
    ("no index", WIRES[:1], without_index),
    ("every index is 0", WIRES[:1], all_index_zero),
    ("id and name on every piece", WIRES[:1], named_each_time),
    ("no ids", WIRES[:2], without_id),
    ("one id for both calls", WIRES[:2], one_id_for_both),
    ("a piece after its call has ended", WIRES[1:2], after_its_end),
    ("the copy says another amount", WIRES[2:3], contradicted),
    ("a character cut in two", PIECES, said_first(_PAIR, {"path": "a\U0001f642"}, 12)),
    ("NaN as a value", PIECES, said_first('{"path": "a", "n": NaN}', None)),
    ("a key twice", PIECES, said_first('{"path": "a", "path": "b"}', None)),
    (
        "an integer beyond 64 bits",
        PIECES,
        said_first('{"n": 18446744073709551617}', {"n": 2**64 + 1}),
    ),
)
