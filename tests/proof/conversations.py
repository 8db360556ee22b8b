"""Valid streams of every wire: a seed in, a ``Talk`` (frames, bytes, the calls it says) out.

Rule: what is made here is what honest servers send, in all the variety that they are known for, and
the calls it says are known because they were thought of first and only then written down.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from tests.proof.talk import Comment, Frame, Raw, Said, Style, Talk

Dice: TypeAlias = random.Random

NAMES = ("pay", "search", "get_weather", "f", "run", "read_file", "list.items", "a-b_c", "look:up")
WORDS = (
    "Oslo", "héllo", "", "日本", "a b", "😀", "👩‍👩‍👧 x", "line\nline", 'say "hi"', "back\\slash", "\u2028",
    "data: x", "[DONE]", "{}", '{"a":1}', "\u0085", "tab\t", "x" * 40, "𝒳𝒴", "0", "null", "\x7f",
)  # fmt: skip
KEYS = ("city", "q", "amount", "to", "path", "ключ", "a", "b", "x y", "nested", "list", "é😀")
NUMBERS = (0, 1, -1, 42, 2**53 + 1, 2**70, -(10**30), 0.5, -1.25e-7, 1e21, 3.14)


# --- what is said, before any wire ----------------------------------------------------------------


@dataclass
class Called:
    """A call, thought of before it is written."""

    id: str
    name: str
    arguments: dict[str, Any]
    text: str  # its argument text as the wire will say it; "": none
    key: str | None = None  # of tools whose input is plain text
    type: str = "function"
    runs_on: str = "client"
    extra: dict[str, Any] = field(default_factory=dict)


def value(dice: Dice, depth: int = 0) -> Any:
    roll = dice.random()
    if depth < 3 and roll < 0.15:
        return {dice.choice(KEYS): value(dice, depth + 1) for _ in range(dice.randint(0, 3))}
    if depth < 3 and roll < 0.25:
        return [value(dice, depth + 1) for _ in range(dice.randint(0, 3))]
    if roll < 0.65:
        return dice.choice(WORDS)
    return dice.choice(NUMBERS) if roll < 0.9 else dice.choice((True, False, None))


def arguments(dice: Dice) -> dict[str, Any]:
    return {dice.choice(KEYS): value(dice) for _ in range(dice.choice((0, 1, 1, 2, 2, 3, 4)))}


def written(dice: Dice, said: dict[str, Any]) -> str:
    """The argument text as a model may write it."""
    if not said and dice.random() < 0.6:
        return ""
    separators = dice.choice(((",", ":"), (", ", ": ")))
    text = json.dumps(said, ensure_ascii=dice.random() < 0.4, separators=separators)
    if dice.random() < 0.05:
        text = json.dumps(said, ensure_ascii=False, indent=1)
    return text


def prose(dice: Dice) -> str:
    return " ".join(dice.choice(WORDS) for _ in range(dice.randint(1, 4)))


def fragments(dice: Dice, text: str, halves: bool = True) -> list[str]:
    """The text in pieces, cut anywhere: in an escape, and even inside a character."""
    if not text or dice.random() < 0.15:
        return [text] if text or dice.random() < 0.5 else []
    units = list(text)
    if halves and not text.isascii() and dice.random() < 0.4:
        raw = text.encode("utf-16-le", "surrogatepass")
        units = [chr(raw[i] | raw[i + 1] << 8) for i in range(0, len(raw), 2)]
    count = min(len(units), dice.choice((1, 2, 2, 3, 4, 6)))
    cuts = sorted(dice.sample(range(1, len(units)), count - 1)) if len(units) > 1 else []
    pieces = ["".join(units[a:b]) for a, b in zip([0, *cuts], [*cuts, len(units)], strict=True)]
    if dice.random() < 0.2:
        pieces.insert(dice.randint(0, len(pieces)), "")
    return [p if whole_characters(p) or halves else text for p in pieces]


def whole_characters(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def ident(dice: Dice, prefix: str) -> str:
    return prefix + "".join(dice.choices("abcdefghijkmnpqrstuvwxyz0123456789", k=9))


def client_call(dice: Dice, prefix: str) -> Called:
    said = arguments(dice)
    return Called(ident(dice, prefix), dice.choice(NAMES), said, written(dice, said))


def merged(dice: Dice, tracks: list[list[Frame]], interleave: float) -> list[Frame]:
    """The tracks one after the other, or through each other, each in its own order."""
    if dice.random() >= interleave:
        return [frame for track in tracks for frame in track]
    left = [list(reversed(track)) for track in tracks if track]
    frames: list[Frame] = []
    while left:
        track = dice.choice(left)
        frames.append(track.pop())
        left = [t for t in left if t]
    return frames


def sprinkled(dice: Dice, frames: list[Frame], extra: list[Frame]) -> list[Frame]:
    """Some of the extra frames anywhere between the first and the last."""
    frames = list(frames)
    for frame in extra:
        frames.insert(dice.randint(1, max(1, len(frames) - 1)), frame)
    return frames


COMMENT = Frame(Comment(" keep-alive"))


def comments(dice: Dice) -> list[Frame]:
    return [COMMENT] * dice.choice((0, 0, 0, 1, 2))


# --- Anthropic Messages ---------------------------------------------------------------------------


def anthropic(dice: Dice) -> tuple[list[Frame], list[Said]]:
    said: list[Said] = []
    tracks: list[list[Frame]] = []
    for _ in range(dice.randint(1, 4)):
        index = len(tracks)
        roll = dice.random()
        if roll < 0.2:
            tracks.append(anthropic_text(dice, index))
        elif roll < 0.3:
            tracks.append(anthropic_thinking(dice, index))
        elif roll < 0.45:
            tracks += anthropic_server(dice, index, said)
        else:
            call = client_call(dice, "toolu_")
            tracks.append(anthropic_call(dice, index, call))
            said.append(Said(call.id, call.name, call.arguments))
    usage = {"input_tokens": 12, "output_tokens": 1, "cache_read_input_tokens": 0}
    start: dict[str, Any] = {
        "id": ident(dice, "msg_"), "type": "message", "role": "assistant", "model": "claude-x",
        "content": [], "stop_reason": None, "stop_sequence": None, "usage": usage,
    }  # fmt: skip
    reason = "tool_use" if any(s.runs_on == "client" for s in said) else "end_turn"
    delta = {"stop_reason": reason, "stop_sequence": None}
    frames = [
        typed({"type": "message_start", "message": start}),
        *merged(dice, tracks, 0.3),
        typed({"type": "message_delta", "delta": delta, "usage": {"output_tokens": 33}}),
        typed({"type": "message_stop"}),
    ]
    pings = [typed({"type": "ping"})] * dice.choice((0, 0, 1, 2))
    return sprinkled(dice, frames, [*pings, *comments(dice)]), said


def typed(payload: dict[str, Any], about: bool = False, field: str = "type") -> Frame:
    return Frame(payload, str(payload[field]), about)


def block(
    index: int, what: dict[str, Any], deltas: list[dict[str, Any]], about: bool
) -> list[Frame]:
    return [
        typed({"type": "content_block_start", "index": index, "content_block": what}, about),
        *(typed({"type": "content_block_delta", "index": index, "delta": delta}, about)
          for delta in deltas),
        typed({"type": "content_block_stop", "index": index}, about),
    ]  # fmt: skip


def anthropic_text(dice: Dice, index: int) -> list[Frame]:
    deltas = [{"type": "text_delta", "text": p} for p in fragments(dice, prose(dice))]
    return block(index, {"type": "text", "text": ""}, deltas, False)


def anthropic_thinking(dice: Dice, index: int) -> list[Frame]:
    deltas = [{"type": "thinking_delta", "thinking": p} for p in fragments(dice, prose(dice))]
    deltas.append({"type": "signature_delta", "signature": "c2ln"})
    return block(index, {"type": "thinking", "thinking": "", "signature": ""}, deltas, False)


def anthropic_call(dice: Dice, index: int, call: Called, kind: str = "tool_use") -> list[Frame]:
    start: dict[str, Any] = {"type": kind, "id": call.id, "name": call.name, "input": {}}
    start |= call.extra
    pieces = fragments(dice, call.text)
    if call.arguments and dice.random() < 0.1:  # whole at once, as programmatic calls are
        start["input"], pieces = call.arguments, []
    deltas = [{"type": "input_json_delta", "partial_json": p} for p in pieces]
    return block(index, start, deltas, True)


def anthropic_server(dice: Dice, index: int, said: list[Said]) -> list[list[Frame]]:
    call = client_call(dice, "srvtoolu_")
    kind = dice.choice(("server_tool_use", "mcp_tool_use"))
    call.name = "web_search" if kind == "server_tool_use" else call.name
    call.extra = {"server_name": "docs"} if kind == "mcp_tool_use" else {}
    said.append(Said(call.id, call.name, call.arguments, "provider"))
    result = {
        "type": "web_search_tool_result" if kind == "server_tool_use" else "mcp_tool_result",
        "tool_use_id": call.id,
        "content": [{"type": "text", "text": prose(dice)}],
    }
    # a result follows its call: one track for both
    return [
        [*anthropic_call(dice, index, call, kind), *block(index + 1, result, [], False)],
        [],
    ]


# --- OpenAI Chat Completions ----------------------------------------------------------------------


def openai_chat(dice: Dice) -> tuple[list[Frame], list[Said]]:
    envelope = {"id": ident(dice, "chatcmpl-"), "object": "chat.completion.chunk",
                "created": 1700000000, "model": "gpt-x"}  # fmt: skip
    if dice.random() < 0.3:
        envelope["system_fingerprint"] = "fp_1"
    count = dice.choice((1, 1, 1, 1, 1, 2, 3))
    said: list[Said] = []
    usage_everywhere = dice.random() < 0.2
    tracks = [chat_choice(dice, number, said) for number in range(count)]

    def chunk(choices: list[dict[str, Any]], about: bool, usage: Any = None) -> Frame:
        payload: dict[str, Any] = {**envelope, "choices": choices}
        if usage is not None or usage_everywhere:
            payload["usage"] = usage
        return Frame(payload, "", about)

    entries = merged(dice, tracks, 0.7 if count > 1 else 0.0)
    frames = [chunk([f.payload], f.about) for f in entries]
    counts = {"prompt_tokens": 9, "completion_tokens": 7, "total_tokens": 16}
    where = dice.random()
    if where < 0.4:
        frames.append(chunk([], False, counts))
    elif where < 0.6:
        last = frames[-1]
        frames[-1] = Frame({**last.payload, "usage": counts}, "", last.about)
    if dice.random() < 0.9:
        frames.append(Frame(Raw("[DONE]")))
    return sprinkled(dice, frames, comments(dice)), said


def chat_choice(dice: Dice, number: int, said: list[Said]) -> list[Frame]:
    def delta(what: dict[str, Any], about: bool = False, finish: str | None = None) -> Frame:
        entry: dict[str, Any] = {"index": number, "delta": what, "finish_reason": finish}
        return Frame(entry, "", about)

    frames = [delta({"role": "assistant", "content": dice.choice(("", None))})]
    if dice.random() < 0.2:
        field = dice.choice(("reasoning_content", "reasoning"))
        frames += [delta({field: p}) for p in fragments(dice, prose(dice))]
    if dice.random() < 0.4:
        frames += [delta({"content": p}) for p in fragments(dice, prose(dice))]
    calls = [client_call(dice, "call_") for _ in range(dice.choice((0, 1, 1, 2, 3)))]
    tracks = [chat_call(dice, index, call, delta) for index, call in enumerate(calls)]
    frames += merged(dice, tracks, 0.3)
    said += [Said(c.id, c.name, c.arguments, "client", number) for c in calls]
    word = dice.choice(("tool_calls", "tool_calls", "stop")) if calls else "stop"
    if calls and dice.random() < 0.15:  # the finish stands on the last piece itself
        last = frames[-1].payload
        frames[-1] = Frame({**last, "finish_reason": word}, "", True)
    else:
        frames.append(delta({}, True, word))
    return frames


def chat_call(dice: Dice, index: int, call: Called, delta: Callable[..., Frame]) -> list[Frame]:
    if dice.random() < 0.12:  # a tool whose input is plain text
        call.text = prose(dice) or "x"
        call.key, call.arguments = "input", {"input": call.text}
    kind, field = ("custom", "input") if call.key else ("function", "arguments")
    pieces = fragments(dice, call.text)
    first = pieces.pop(0) if pieces and dice.random() < 0.4 else ""
    start = {"index": index, "id": call.id, "type": kind, kind: {"name": call.name, field: first}}
    always = {"type": kind} if dice.random() < 0.2 else {}
    rest = [{"index": index, **always, kind: {field: p}} for p in pieces]
    return [delta({"tool_calls": [entry]}, True) for entry in (start, *rest)]


# --- OpenAI Responses -----------------------------------------------------------------------------


def openai_responses(dice: Dice) -> tuple[list[Frame], list[Said]]:
    return responses(dice, RESPONSES_CALLS)


def responses(
    dice: Dice, makers: tuple[Callable[[Dice, list[Said]], Item], ...]
) -> tuple[list[Frame], list[Said]]:
    said: list[Said] = []
    tracks: list[list[Frame]] = []
    output: list[dict[str, Any]] = []
    for _ in range(dice.randint(1, 4)):
        roll = dice.random()
        if roll < 0.15:
            item = text_item(dice)
        elif roll < 0.25:
            item = reasoning_item(dice)
        else:
            item = dice.choice(makers)(dice, said)
        tracks.append(item_frames(dice, item, len(output)))
        output.append(item.done)
    response = {"id": ident(dice, "resp_"), "object": "response", "model": "gpt-x",
                "status": "in_progress", "output": []}  # fmt: skip
    usage = {"input_tokens": 5, "output_tokens": 6, "total_tokens": 11}
    final = {**response, "status": "completed", "usage": usage,
             "output": output if dice.random() < 0.8 else []}  # fmt: skip
    frames = [
        typed({"type": "response.created", "response": response}),
        typed({"type": "response.in_progress", "response": response}),
        *merged(dice, tracks, 0.3),
        typed({"type": "response.completed", "response": final}),
    ]
    if dice.random() < 0.8:
        frames = [
            f._replace(payload={**f.payload, "sequence_number": n}) for n, f in enumerate(frames)
        ]
    return sprinkled(dice, frames, comments(dice)), said


@dataclass
class Item:
    """An item as it is added, the events between, and as it is done."""

    added: dict[str, Any]
    done: dict[str, Any]
    between: list[dict[str, Any]] = field(default_factory=list)
    about: bool = True


def item_frames(dice: Dice, item: Item, index: int) -> list[Frame]:
    where = {"output_index": index, "item_id": item.done.get("id", "")}
    events = [
        {"type": "response.output_item.added", "output_index": index, "item": item.added},
        *({"type": e["type"], **where, **e} for e in item.between),
        {"type": "response.output_item.done", "output_index": index, "item": item.done},
    ]
    return [typed(event, item.about) for event in events]


def text_item(dice: Dice) -> Item:
    text = prose(dice)
    part = {"type": "output_text", "text": text, "annotations": []}
    base = {"id": ident(dice, "msg_"), "type": "message", "role": "assistant"}
    at = {"content_index": 0}
    between = [
        {"type": "response.content_part.added", **at, "part": {**part, "text": ""}},
        *({"type": "response.output_text.delta", **at, "delta": p} for p in fragments(dice, text)),
        {"type": "response.output_text.done", **at, "text": text},
        {"type": "response.content_part.done", **at, "part": part},
    ]
    added = {**base, "status": "in_progress", "content": []}
    return Item(added, {**base, "status": "completed", "content": [part]}, between, False)


def reasoning_item(dice: Dice) -> Item:
    base = {"id": ident(dice, "rs_"), "type": "reasoning"}
    text = prose(dice)
    between = [
        {"type": "response.reasoning_summary_text.delta", "summary_index": 0, "delta": p}
        for p in fragments(dice, text)
    ]
    done = {**base, "summary": [{"type": "summary_text", "text": text}], "encrypted_content": "x"}
    return Item({**base, "summary": []}, done, between, False)


def said_text(
    dice: Dice, stem: str, field: str, text: str, name: str | None = None
) -> list[dict[str, Any]]:
    """Fragments of a text and the whole of it again."""
    pieces = fragments(dice, text) if dice.random() < 0.9 else []
    events: list[dict[str, Any]] = [{"type": f"{stem}.delta", "delta": p} for p in pieces]
    done: dict[str, Any] = {"type": f"{stem}.done", field: text}
    if name is not None and dice.random() < 0.4:
        done["name"] = name
    return [*events, done] if dice.random() < 0.9 else events


def function_item(dice: Dice, said: list[Said]) -> Item:
    call = client_call(dice, "call_")
    base = {
        "id": ident(dice, "fc_"),
        "type": "function_call",
        "call_id": call.id,
        "name": call.name,
    }
    said.append(Said(call.id, call.name, call.arguments))
    between = said_text(dice, "response.function_call_arguments", "arguments", call.text, call.name)
    added = {**base, "arguments": "", "status": "in_progress"}
    return Item(added, {**base, "arguments": call.text, "status": "completed"}, between)


def custom_item(dice: Dice, said: list[Said]) -> Item:
    text, id = prose(dice), ident(dice, "call_")
    name = dice.choice(NAMES)
    base = {"id": ident(dice, "ctc_"), "type": "custom_tool_call", "call_id": id, "name": name}
    said.append(Said(id, name, {"input": text}))
    between = said_text(dice, "response.custom_tool_call_input", "input", text)
    added = {**base, "input": "", "status": "in_progress"}
    return Item(added, {**base, "input": text, "status": "completed"}, between)


def mcp_item(dice: Dice, said: list[Said]) -> Item:
    call, id = client_call(dice, ""), ident(dice, "mcp_")
    base = {"id": id, "type": "mcp_call", "name": call.name, "server_label": "docs"}
    text = call.text or "{}"
    said.append(Said(id, call.name, call.arguments, "provider", conflated=True))
    between = [
        {"type": "response.mcp_call.in_progress"},
        *said_text(dice, "response.mcp_call_arguments", "arguments", text),
        {"type": "response.mcp_call.completed"},
    ]
    done = {**base, "arguments": text, "status": "completed", "output": prose(dice), "error": None}
    return Item({**base, "arguments": "", "status": "in_progress"}, done, between)


def code_item(dice: Dice, said: list[Said]) -> Item:
    text, id = prose(dice), ident(dice, "ci_")
    base = {"id": id, "type": "code_interpreter_call", "container_id": "cntr_1"}
    said.append(Said(id, "code_interpreter", {"code": text}, "provider", conflated=True))
    between = [
        {"type": "response.code_interpreter_call.in_progress"},
        *said_text(dice, "response.code_interpreter_call_code", "code", text),
        {"type": "response.code_interpreter_call.interpreting"},
        {"type": "response.code_interpreter_call.completed"},
    ]
    done = {**base, "code": text, "outputs": [{"type": "logs", "logs": "1"}], "status": "completed"}
    return Item({**base, "code": "", "outputs": None, "status": "in_progress"}, done, between)


def search_item(dice: Dice, said: list[Said]) -> Item:
    id, action = ident(dice, "ws_"), {"type": "search", "query": prose(dice)}
    base = {"id": id, "type": "web_search_call"}
    said.append(Said(id, "web_search", action, "provider", conflated=True))
    between = [
        {"type": f"response.web_search_call.{s}"} for s in ("in_progress", "searching", "completed")
    ]
    added = {**base, "status": "in_progress", "action": action}
    return Item(added, {**base, "status": "completed", "action": action}, between)


def file_search_item(dice: Dice, said: list[Said]) -> Item:
    id, queries = ident(dice, "fs_"), [prose(dice)]
    base = {"id": id, "type": "file_search_call", "queries": queries}
    said.append(Said(id, "file_search", {"queries": queries}, "provider", conflated=True))
    between = [
        {"type": f"response.file_search_call.{s}"}
        for s in ("in_progress", "searching", "completed")
    ]
    added = {**base, "queries": [], "status": "in_progress", "results": None}
    return Item(added, {**base, "status": "completed", "results": []}, between)


def shell_item(dice: Dice, said: list[Said]) -> Item:
    kind, name, field, action = dice.choice((
        ("local_shell_call", "local_shell", "action", {"type": "exec", "command": ["ls", prose(dice)]}),
        ("shell_call", "shell", "action", {"commands": [prose(dice)], "timeout_ms": 1000}),
        ("apply_patch_call", "apply_patch", "operation",
         {"type": "update_file", "path": "a.py", "diff": prose(dice)}),
        ("computer_call", "computer_use", "action", {"type": "click", "x": 1, "y": 2}),
    ))  # fmt: skip
    id = ident(dice, "call_")
    base = {"id": ident(dice, "it_"), "type": kind, "call_id": id, field: action}
    said.append(Said(id, name, action))
    return Item({**base, "status": "in_progress"}, {**base, "status": "completed"})


RESPONSES_CALLS = (
    function_item, function_item, function_item, function_item, custom_item, custom_item, mcp_item,
    code_item, search_item, file_search_item, shell_item,
)  # fmt: skip


# --- Gemini generateContent -----------------------------------------------------------------------


def gemini(dice: Dice) -> tuple[list[Frame], list[Said]]:
    said: list[Said] = []
    count = dice.choice((1, 1, 1, 1, 2))
    with_ids = dice.random() < 0.5
    tracks = [gemini_candidate(dice, number, said, with_ids) for number in range(count)]
    entries = merged(dice, tracks, 0.5 if count > 1 else 0.0)
    base = {"modelVersion": "gemini-x", "responseId": ident(dice, "r")}
    counts = {"promptTokenCount": 4, "candidatesTokenCount": 5, "totalTokenCount": 9}
    everywhere = dice.random() < 0.5
    frames = []
    for n, entry in enumerate(entries):
        last = n == len(entries) - 1
        usage = {"usageMetadata": counts} if everywhere or last else {}
        frames.append(Frame({"candidates": [entry.payload], **usage, **base}, "", entry.about))
    return sprinkled(dice, frames, comments(dice)), said


def gemini_candidate(dice: Dice, number: int, said: list[Said], with_ids: bool) -> list[Frame]:
    parts: list[Frame] = []
    for _ in range(dice.randint(1, 4)):
        roll = dice.random()
        if roll < 0.2:
            parts += [Frame({"text": p}) for p in fragments(dice, prose(dice))]
        elif roll < 0.3:
            parts += [Frame({"text": p, "thought": True}) for p in fragments(dice, prose(dice))]
        elif roll < 0.4:
            code = prose(dice) + "x"
            parts.append(Frame({"executableCode": {"language": "PYTHON", "code": code}}, "", True))
            result = {"outcome": "OUTCOME_OK", "output": prose(dice)}
            parts.append(Frame({"codeExecutionResult": result}))
            said.append(Said(None, "code_execution", {"code": code}, "provider", number))
        else:
            call = client_call(dice, "")
            id = call.id if with_ids else None
            said.append(Said(id, call.name, call.arguments, "client", number))
            parts += gemini_call(dice, call, id)
    entries = []
    for n, part in enumerate(parts):
        content = {"role": "model", "parts": [part.payload]}
        entry: dict[str, Any] = {"content": content, "index": number}
        if not number and dice.random() < 0.3:
            del entry["index"]
        if n == len(parts) - 1 and dice.random() < 0.6:
            entry["finishReason"] = "STOP"
        entries.append(Frame(entry, "", part.about))
    if not entries or "finishReason" not in entries[-1].payload:
        entries.append(Frame({"finishReason": "STOP", "index": number}))
    return entries


def gemini_call(dice: Dice, call: Called, id: str | None) -> list[Frame]:
    identity: dict[str, Any] = {"name": call.name} | ({"id": id} if id else {})
    if dice.random() < 0.3 and (pieces := partial_args(dice, call.arguments)):
        told = [{**identity, "willContinue": True}]
        told += [{"partialArgs": [p], "willContinue": True} for p in pieces]
        told.append({})
        return [Frame({"functionCall": part}, "", True) for part in told]
    args = {"args": call.arguments} if call.arguments or dice.random() < 0.5 else {}
    part: dict[str, Any] = {"functionCall": {**identity, **args}}
    if dice.random() < 0.2:
        part["thoughtSignature"] = "c2ln"
    return [Frame(part, "", True)]


def partial_args(dice: Dice, said: dict[str, Any]) -> list[dict[str, Any]]:
    """The arguments value by value, if each is one that can be said so."""
    pieces: list[dict[str, Any]] = []
    for key, item in said.items():
        path = f"$.{key}" if key.isidentifier() else f"$['{key}']"
        if isinstance(item, str):
            texts = fragments(dice, item) or [""]
            pieces += [
                {"jsonPath": path, "stringValue": t, "willContinue": n < len(texts) - 1}
                for n, t in enumerate(texts)
            ]
        elif item is None:
            pieces.append({"jsonPath": path, "nullValue": "NULL_VALUE"})
        elif isinstance(item, bool):
            pieces.append({"jsonPath": path, "boolValue": item})
        elif isinstance(item, int | float):
            pieces.append({"jsonPath": path, "numberValue": item})
        else:
            return []
    return pieces


# --- Azure AI Foundry: Responses, with more items -------------------------------------------------


def foundry_item(dice: Dice, said: list[Said]) -> Item:
    kind, name = dice.choice((
        ("openapi_call", ""), ("azure_function_call", ""), ("azure_ai_search_call", "azure_ai_search"),
        ("bing_grounding_call", "bing_grounding"),
    ))  # fmt: skip
    call = client_call(dice, "call_")
    call.name = name or call.name
    base = {"id": ident(dice, "it_"), "type": kind, "call_id": call.id, "agent_reference": None}
    base |= {} if name else {"name": call.name}
    text = call.text or "{}"
    said.append(Said(call.id, call.name, call.arguments, "provider"))
    added = {**base, "arguments": text, "status": "in_progress"}
    return Item(added, {**base, "arguments": text, "status": "completed"})


def azure_foundry(dice: Dice) -> tuple[list[Frame], list[Said]]:
    return responses(dice, (*RESPONSES_CALLS, foundry_item, foundry_item))


# --- Mistral chat ---------------------------------------------------------------------------------


def mistral(dice: Dice) -> tuple[list[Frame], list[Said]]:
    said: list[Said] = []
    envelope = {
        "id": ident(dice, ""),
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "m",
    }

    def chunk(delta: dict[str, Any], finish: str | None = None, about: bool = False) -> Frame:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return Frame({**envelope, "choices": [choice]}, "", about)

    frames = [chunk({"role": "assistant", "content": ""})]
    if dice.random() < 0.3:
        thinking = {"type": "thinking", "thinking": [{"type": "text", "text": prose(dice)}]}
        frames.append(chunk({"content": [thinking]}))
    if dice.random() < 0.4:
        frames += [chunk({"content": p}) for p in fragments(dice, prose(dice))]
    calls = [client_call(dice, "") for _ in range(dice.choice((0, 1, 1, 2, 3)))]
    together = dice.random() < 0.5  # all whole, in the chunk that also says the finish
    tracks: list[list[Frame]] = []
    entries = []
    for index, call in enumerate(calls):
        as_object = dice.random() < 0.15
        text: Any = call.arguments if as_object else call.text or "{}"
        said.append(Said(call.id, call.name, call.arguments))
        whole = {"id": call.id, "index": index, "function": {"name": call.name, "arguments": text}}
        entries.append(whole)
        if as_object or dice.random() < 0.5:
            tracks.append([chunk({"tool_calls": [whole]}, about=True)])
            continue
        first, *rest = fragments(dice, text) or [""]
        pieces = [{**whole, "function": {"name": call.name, "arguments": first}}]
        pieces += [
            {"id": "null", "index": index, "function": {"name": "", "arguments": p}} for p in rest
        ]
        tracks.append([chunk({"tool_calls": [p]}, about=True) for p in pieces])
    word = "tool_calls" if calls else "stop"
    if calls and together:
        frames.append(chunk({"tool_calls": entries}, word, True))
    else:
        frames += [*merged(dice, tracks, 0.2), chunk({"content": ""}, word, bool(calls))]
    usage = {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}
    frames[-1] = frames[-1]._replace(payload={**frames[-1].payload, "usage": usage})
    frames.append(Frame(Raw("[DONE]")))
    return sprinkled(dice, frames, comments(dice)), said


# --- Cohere v2 ------------------------------------------------------------------------------------


def cohere(dice: Dice) -> tuple[list[Frame], list[Said]]:
    said: list[Said] = []

    def event(
        kind: str, message: dict[str, Any] | None, index: int | None, about: bool = False
    ) -> Frame:
        payload: dict[str, Any] = {"type": kind}
        payload |= {} if index is None else {"index": index}
        payload |= {} if message is None else {"delta": {"message": message}}
        return typed(payload, about)

    start = {"role": "assistant", "content": [], "tool_plan": "", "tool_calls": [], "citations": []}
    opening = {"type": "message-start", "id": ident(dice, ""), "delta": {"message": start}}
    tracks: list[list[Frame]] = []
    frames = [typed(opening)]
    if dice.random() < 0.4:
        plan = fragments(dice, prose(dice))
        frames += [event("tool-plan-delta", {"tool_plan": p}, None) for p in plan]
    for index in range(dice.choice((0, 1, 1, 2, 3))):
        call = client_call(dice, "")
        pieces = fragments(dice, call.text)
        first = pieces.pop(0) if pieces and dice.random() < 0.2 else ""
        entry = {"id": call.id, "type": "function",
                 "function": {"name": call.name, "arguments": first}}  # fmt: skip
        tracks.append([
            event("tool-call-start", {"tool_calls": entry}, index, True),
            *(event("tool-call-delta", {"tool_calls": {"function": {"arguments": p}}}, index, True)
              for p in pieces),
            event("tool-call-end", None, index, True),
        ])  # fmt: skip
        said.append(Said(call.id, call.name, call.arguments))
    if not tracks or dice.random() < 0.3:
        content: dict[str, Any] = {"type": "text", "text": ""}
        tracks.append([
            event("content-start", {"content": content}, 0),
            *(event("content-delta", {"content": {"text": p}}, 0) for p in fragments(dice, prose(dice))),
            event("content-end", None, 0),
        ])  # fmt: skip
    frames += merged(dice, tracks, 0.2)
    usage = {"tokens": {"input_tokens": 5, "output_tokens": 6}}
    ending = {"finish_reason": "TOOL_CALL" if said else "COMPLETE", "usage": usage}
    frames.append(typed({"type": "message-end", "delta": ending}))
    if dice.random() < 0.3:
        frames.append(Frame(Raw("[DONE]")))
    return sprinkled(dice, frames, comments(dice)), said


# --- Ollama ---------------------------------------------------------------------------------------


def ollama(dice: Dice) -> tuple[list[Frame], list[Said]]:
    said: list[Said] = []
    base = {"model": "llama-x", "created_at": "2025-01-01T00:00:00Z"}

    def line(message: dict[str, Any], about: bool = False) -> Frame:
        whole = {"role": "assistant", "content": "", **message}
        return Frame({**base, "message": whole, "done": False}, "", about)

    frames = []
    if dice.random() < 0.3:
        frames += [line({"thinking": p}) for p in fragments(dice, prose(dice))]
    if dice.random() < 0.5:
        frames += [line({"content": p}) for p in fragments(dice, prose(dice))]
    entries = []
    with_ids = dice.random() < 0.5
    for index in range(dice.choice((0, 1, 1, 2, 3))):
        call = client_call(dice, "call_")
        function: dict[str, Any] = {"name": call.name, "arguments": call.arguments}
        if dice.random() < 0.5:
            function = {"index": index, **function}
        entries.append(
            {"id": call.id, "function": function} if with_ids else {"function": function}
        )
        said.append(Said(call.id if with_ids else None, call.name, call.arguments))
    if entries and dice.random() < 0.5:
        frames.append(line({"tool_calls": entries}, True))
    else:
        frames += [line({"tool_calls": [entry]}, True) for entry in entries]
    counts = {"total_duration": 5, "prompt_eval_count": 6, "eval_count": 7}
    last = {"role": "assistant", "content": ""}
    frames.append(Frame({**base, "message": last, "done": True, "done_reason": "stop", **counts}))
    return frames, said


# --- Bedrock ConverseStream -----------------------------------------------------------------------


def bedrock(dice: Dice) -> tuple[list[Frame], list[Said]]:
    said: list[Said] = []
    tracks: list[list[Frame]] = []

    def event(kind: str, payload: dict[str, Any], about: bool = False) -> Frame:
        padded = {**payload, "p": "abcdefgh"} if dice.random() < 0.3 else payload
        return Frame(padded, kind, about)

    for index in range(dice.randint(1, 4)):
        at = {"contentBlockIndex": index}
        stop = event("contentBlockStop", at, True)
        if dice.random() < 0.3:
            kind = dice.choice(("text", "reasoningContent"))
            pieces = fragments(dice, prose(dice))
            deltas = [{"text": p} if kind == "text" else {kind: {"text": p}} for p in pieces]
            tracks.append([*(event("contentBlockDelta", {"delta": d, **at}) for d in deltas), stop])
            continue
        call = client_call(dice, "tooluse_")
        use: dict[str, Any] = {"toolUseId": call.id, "name": call.name}
        if dice.random() < 0.15:
            use["type"], call.runs_on = "server_tool_use", "provider"
        said.append(Said(call.id, call.name, call.arguments, call.runs_on))
        tracks.append([
            event("contentBlockStart", {"start": {"toolUse": use}, **at}, True),
            *(event("contentBlockDelta", {"delta": {"toolUse": {"input": p}}, **at}, True)
              for p in fragments(dice, call.text)),
            stop,
        ])  # fmt: skip
    client = any(s.runs_on == "client" for s in said)
    usage = {"inputTokens": 1, "outputTokens": 2, "totalTokens": 3}
    return [
        event("messageStart", {"role": "assistant"}),
        *merged(dice, tracks, 0.2),
        event("messageStop", {"stopReason": "tool_use" if client else "end_turn"}),
        event("metadata", {"usage": usage, "metrics": {"latencyMs": 5}}),
    ], said


# --- Gemini Interactions --------------------------------------------------------------------------


def gemini_interactions(dice: Dice) -> tuple[list[Frame], list[Said]]:
    said: list[Said] = []
    tracks: list[list[Frame]] = []
    for index in range(dice.randint(1, 4)):
        roll = dice.random()
        if roll < 0.25:
            tracks.append(
                step(
                    index,
                    {"type": "model_output"},
                    [{"type": "text", "text": p} for p in fragments(dice, prose(dice))],
                    False,
                )
            )
        elif roll < 0.35:
            summary = {"type": "thought_summary", "content": {"type": "text", "text": prose(dice)}}
            tracks.append(step(index, {"type": "thought"}, [summary], False))
        elif roll < 0.5:
            tracks.append(server_step(dice, index, said))
        else:
            tracks.append(function_step(dice, index, said))
    base = {"id": ident(dice, "int_"), "model": "gemini-x", "object": "interaction"}
    status = "requires_action" if any(s.runs_on == "client" for s in said) else "completed"
    usage = {"total_input_tokens": 3, "total_output_tokens": 4}

    def told(payload: dict[str, Any]) -> Frame:
        return typed(payload, False, "event_type")

    frames = [
        told({"event_type": "interaction.created",
              "interaction": {**base, "status": "in_progress"}}),
        *merged(dice, tracks, 0.2),
        told({"event_type": "interaction.completed",
              "interaction": {**base, "status": status, "usage": usage}}),
    ]  # fmt: skip
    if dice.random() < 0.6:
        frames.append(Frame(Raw("[DONE]"), "done"))
    return sprinkled(dice, frames, comments(dice)), said


def step(
    index: int, start: dict[str, Any], deltas: list[dict[str, Any]], about: bool
) -> list[Frame]:
    at = {"index": index}
    events = [
        {"event_type": "step.start", **at, "step": start},
        *({"event_type": "step.delta", **at, "delta": delta} for delta in deltas),
        {"event_type": "step.stop", **at},
    ]
    return [typed(event, about, "event_type") for event in events]


def function_step(dice: Dice, index: int, said: list[Said]) -> list[Frame]:
    call = client_call(dice, "")
    start: dict[str, Any] = {"type": "function_call", "id": call.id, "name": call.name,
                             "arguments": {}}  # fmt: skip
    said.append(Said(call.id, call.name, call.arguments))
    pieces = fragments(dice, call.text)
    if call.arguments and dice.random() < 0.15:
        start["arguments"], pieces = call.arguments, []
    deltas = [{"type": "arguments_delta", "arguments": p} for p in pieces]
    return step(index, start, deltas, True)


def server_step(dice: Dice, index: int, said: list[Said]) -> list[Frame]:
    tool = dice.choice(("google_search", "code_execution", "url_context", "mcp_server_tool"))
    call = client_call(dice, "")
    arguments = call.arguments or {"queries": [prose(dice)]}
    named = {"name": call.name, "server_name": "docs"} if tool == "mcp_server_tool" else {}
    start: dict[str, Any] = {"type": f"{tool}_call", "id": call.id, **named}
    said.append(Said(call.id, call.name if named else tool, arguments, "provider"))
    if dice.random() < 0.5:
        return step(index, {**start, "arguments": arguments}, [], True)
    delta = {"type": f"{tool}_call", "id": call.id, "arguments": arguments}
    return step(index, {**start, "arguments": {}}, [delta], True)


# --- all of them ----------------------------------------------------------------------------------

MAKERS: dict[str, Callable[[Dice], tuple[list[Frame], list[Said]]]] = {
    "anthropic": anthropic,
    "openai_chat": openai_chat,
    "openai_responses": openai_responses,
    "gemini": gemini,
    "azure_foundry": azure_foundry,
    "mistral": mistral,
    "cohere": cohere,
    "ollama": ollama,
    "bedrock": bedrock,
    "gemini_interactions": gemini_interactions,
}
EVENTS = {"anthropic", "openai_responses", "azure_foundry", "cohere", "gemini_interactions"}


def framing_of(dice: Dice, wire: str) -> str:
    if wire == "gemini":
        return dice.choice(("sse", "sse", "array"))
    return {"ollama": "lines", "bedrock": "aws"}.get(wire, "sse")


def converse(wire: str, dice: Dice) -> Talk:
    """One stream of this wire."""
    frames, said = MAKERS[wire](dice)
    return Talk(wire, frames, said, Style.at_random(dice, framing_of(dice, wire), wire in EVENTS))
