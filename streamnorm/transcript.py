"""Conversations come in as JSONL or as a provider's list of messages, and go out as either.

Rule: JSONL is ours and exact: what is read is equal to what was written. A provider's messages are
read by that provider's own parser: what the model said is told to it again as a stream, so calls,
ids, signatures and reasoning are what they would have been had we heard it ourselves. What cannot
be kept is a row of the report.

    line 1    {"streamnorm": "conversation", "version": 1, "system": …}
    line 2 …  one turn each (see ``streamnorm.history.rows``)
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from .conversation import Conversation, Text, Turn
from .errors import UsageError
from .events import Failed, ToolCall
from .history.rows import turn_from_bytes, turn_to_bytes
from .normalizer import Normalizer
from .pairing import guessed
from .repairing import Mended, Repair, mend
from .tools import Media, ToolResult, json_text

__all__ = ["from_jsonl", "from_messages", "to_jsonl", "to_messages"]

Entry: TypeAlias = dict[str, Any]
Piece: TypeAlias = Text | Media
VERSION = 1


# --- JSONL ----------------------------------------------------------------------------------------


def to_jsonl(conversation: Conversation) -> bytes:
    """A conversation as lines of JSON.

    >>> from_jsonl(to_jsonl(Conversation().user("Hello"))).turns[0].text
    'Hello'
    """
    return b"".join(line + b"\n" for line in _lines(conversation))


def from_jsonl(data: bytes | str) -> Conversation:
    """The conversation that ``to_jsonl`` wrote; ``UsageError`` names the line that is none."""
    if isinstance(data, str):
        data = data.encode("utf-8", "surrogatepass")
    lines = data.split(b"\n")
    if lines and not lines[-1]:
        lines.pop()
    system = _read(lines[0] if lines else b"", 1, _system)
    turns = [_read(line, number, turn_from_bytes) for number, line in enumerate(lines[1:], 2)]
    return Conversation(turns, system)


def _lines(conversation: Conversation) -> Iterator[bytes]:
    heading = {"streamnorm": "conversation", "version": VERSION, "system": conversation.system}
    yield json.dumps(heading, separators=(",", ":")).encode("ascii")
    for turn in conversation.turns:
        yield turn_to_bytes(turn)


def _read(line: bytes, number: int, reader: Callable[[bytes], Any]) -> Any:
    try:
        return reader(line)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise UsageError(f"line {number} is no line of a conversation: {error}") from error


def _system(line: bytes) -> str | None:
    heading = json.loads(line)
    if not isinstance(heading, dict) or heading.get("streamnorm") != "conversation":
        raise ValueError('the first line says {"streamnorm": "conversation", …}')
    if heading.get("version") != VERSION:
        raise ValueError(f"version {heading.get('version')} is not known here")
    system = heading.get("system")
    return None if system is None else str(system)


# --- messages -------------------------------------------------------------------------------------


def to_messages(provider: str, conversation: Conversation) -> list[Entry]:
    """The conversation as that provider's list of messages, every call of it answered.

    >>> to_messages("openai_chat", Conversation().user("Hello"))
    [{'role': 'user', 'content': 'Hello'}]
    """
    from .wires import provider as wire_of

    wire = wire_of(provider)
    entries: list[Entry] = wire.request(mend(conversation).conversation)[wire.container]
    return entries


def from_messages(provider: str, body: Any) -> Mended:
    """A request's body, or its list of messages, as a conversation, and what could not be kept.

    ``provider`` is whose wire it is, or ``"auto"``. Calls without a result stay as they are.

    >>> from_messages("openai_chat", [{"role": "user", "content": "Hello"}]).conversation.turns[0].text
    'Hello'
    """
    name = guessed(body) if provider == "auto" else provider
    if name == "azure_foundry":
        name = "openai_responses" if isinstance(body, dict) and "input" in body else "openai_chat"
    if name not in _WIRES:
        raise UsageError(f"messages of {name!r} cannot be read; there are: {', '.join(_WIRES)}")
    reader = _Reader(name)
    reader.read(body)
    return Mended(Conversation(reader.turns, reader.system), tuple(reader.report))


class _Reader:
    """Entries of one wire on their way to be turns."""

    def __init__(self, provider: str) -> None:
        self.provider = provider
        self.turns: list[Turn] = []
        self.system: str | None = None
        self.report: list[Repair] = []
        self._calls: dict[str, ToolCall] = {}  # by id, the latest
        self._open: list[ToolCall] = []  # of the last assistant turn, without a result so far
        self._items: list[Entry] = []  # of Responses: what the model said, item by item

    def read(self, body: Any) -> None:
        container, told = _WIRES[self.provider]
        entries = body.get(container) if isinstance(body, dict) else body
        if isinstance(body, dict):
            self._instruct(body)
        if isinstance(entries, str):
            entries = [{"role": "user", "content": entries}]
        if not isinstance(entries, list):
            raise UsageError(f"this body has no list of {container!r}")
        for number, entry in enumerate(entries):
            if isinstance(entry, dict):
                told(self, entry, f"entry {number}")
            else:
                self._left_out(f"entry {number}", "it is no object")
        self._flush()

    def _instruct(self, body: Entry) -> None:
        for field in ("system", "systemInstruction", "instructions"):
            if body.get(field):
                said = body[field]
                said = said.get("parts") if isinstance(said, dict) else said
                self.system = "\n\n".join(p.text for p in self._pieces(said, field, Text))

    # --- who says it ------------------------------------------------------------------------------

    def message(self, entry: Entry, where: str) -> None:
        """Wires with roles."""
        role = str(entry.get("role"))
        if role in ("assistant", "model"):
            self._assistant(entry, where)
        elif role in ("system", "developer"):
            self._system(entry, where)
        elif role == "tool":
            self._result(entry.get("tool_call_id"), entry.get("tool_name") or entry.get("name"),
                         self._output(entry.get("content"), where), False, where)  # fmt: skip
        else:
            self._user(entry, where)

    def item(self, entry: Entry, where: str) -> None:
        """Responses: what the model said comes item by item."""
        kind, role = str(entry.get("type", "message")), entry.get("role")
        if kind == "message" and role != "assistant":
            self._flush()
            self.message(entry, where)
        elif kind.endswith("_output"):
            self._flush()
            output = self._output(entry.get("output"), where)
            id = entry.get("call_id") or entry.get("id")
            self._result(id, None, output, entry.get("status") == "failed", where)
        else:
            self._items.append(_item(entry))

    def _flush(self) -> None:
        items, self._items = self._items, []
        if items:
            self._assistant({"items": items}, "items")

    def _assistant(self, entry: Entry, where: str) -> None:
        pipe = Normalizer(self.provider, seed=f"transcript/{len(self.turns)}")
        events = [e for payload in _TELL[self.provider](entry) for e in pipe.feed_payload(payload)]
        events += pipe.close()
        turn = Turn.from_events(events)
        if isinstance(events[-1], Failed):
            self._left_out(where, f"what the model said cannot be read: {events[-1].error}")
        for broken in turn.broken:
            why = f"{broken.reason}: {broken.detail}"
            self.report.append(Repair("dropped_call", broken.id, broken.name, where, why))
        if turn.parts:
            self.turns.append(turn)
        self._open = list(turn.calls)
        self._calls |= {call.id: call for call in turn.calls}

    def _system(self, entry: Entry, where: str) -> None:
        text = "\n\n".join(piece.text for piece in self._pieces(entry.get("content"), where, Text))
        if not self.turns and self.system is None:
            self.system = text
        else:
            self.turns.append(Turn("system", (Text(text),)))

    def _user(self, entry: Entry, where: str) -> None:
        rest: list[Any] = []
        content = entry.get("content", entry.get("parts"))
        for block in content if isinstance(content, list) else [content]:
            if isinstance(block, dict) and (said := _result_block(block)) is not None:
                id, name, output, is_error = said
                self._result(id, name, self._output(output, where), is_error, where)
            else:
                rest.append(block)
        parts = self._pieces(rest, where)
        parts += [Media(_bytes(image), "image/png") for image in entry.get("images") or ()]
        if parts:
            self.turns.append(Turn("user", tuple(parts)))

    # --- results ----------------------------------------------------------------------------------

    def _result(self, id: Any, name: Any, output: Any, is_error: bool, where: str) -> None:
        call = self._call_of(id, name)
        if call is None:
            why = "no call for it stands before"
            self.report.append(Repair("dropped_result", str(id), str(name), where, why))
            return
        self._open = [other for other in self._open if other is not call]
        result = ToolResult.for_call(call, output, is_error)
        if self.turns[-1].role == "tool":
            self.turns[-1] = Turn("tool", (*self.turns[-1].parts, result))
        else:
            self.turns.append(Turn("tool", (result,)))

    def _call_of(self, id: Any, name: Any) -> ToolCall | None:
        if id:
            return self._calls.get(str(id))
        named = [call for call in self._open if name in (None, call.name)]
        return named[0] if named else None

    def _output(self, output: Any, where: str) -> Any:
        if not isinstance(output, list):
            return output
        if len(output) == 1 and isinstance(output[0], dict) and set(output[0]) == {"json"}:
            return output[0]["json"]
        if not all(isinstance(item, dict) and _piece(item) is not None for item in output):
            return output
        pieces = self._pieces(output, where)
        if all(isinstance(piece, Text) for piece in pieces):
            return "\n".join(piece.text for piece in pieces if isinstance(piece, Text))
        return [piece.text if isinstance(piece, Text) else piece for piece in pieces]

    # --- pieces -----------------------------------------------------------------------------------

    def _pieces(self, content: Any, where: str, only: type | None = None) -> list[Any]:
        pieces: list[Any] = []
        for block in content if isinstance(content, list) else [content]:
            if block is None or block == "":
                continue
            piece = Text(block) if isinstance(block, str) else _piece(block)
            if piece is None or (only is not None and not isinstance(piece, only)):
                kind = block.get("type", "?") if isinstance(block, dict) else type(block).__name__
                self._left_out(where, f"a part of type {kind} has no place in a conversation")
            else:
                pieces.append(piece)
        return pieces

    def _left_out(self, where: str, why: str) -> None:
        self.report.append(Repair("left_out", "", "", where, why))


# --- a piece of content, in any wire's words ------------------------------------------------------


def _piece(block: Entry) -> Piece | None:
    if isinstance(block.get("text"), str):
        return Text(block["text"])
    for field, read in _PIECES.items():
        if field in block:
            try:
                return read(block)
            except (KeyError, TypeError, ValueError, AttributeError):
                return None
    return None


def _bytes(data: Any) -> bytes:
    return data if isinstance(data, bytes) else base64.b64decode(data, validate=True)


def _from_uri(uri: str, name: str | None = None) -> Media | None:
    head, comma, data = uri.partition(",")
    if not comma or not head.startswith("data:") or not head.endswith(";base64"):
        return None  # an address; whose content nobody has
    return Media(_bytes(data), head.removeprefix("data:").removesuffix(";base64"), name)


def _sourced(block: Entry) -> Media | None:
    source, name = block["source"], block.get("title")
    if source["type"] == "text":
        return Media(source["data"].encode(), source["media_type"], name)
    if source["type"] != "base64":
        return None
    return Media(_bytes(source["data"]), source["media_type"], name)


def _linked(block: Entry) -> Media | None:
    said = block["image_url"]
    return _from_uri(said["url"] if isinstance(said, dict) else said)


def _filed(block: Entry) -> Media | None:
    said = block.get("file", block)
    return _from_uri(said["file_data"], said.get("filename"))


def _sounding(block: Entry) -> Media:
    said = block["input_audio"]
    kind = {"mp3": "audio/mpeg"}.get(said["format"], f"audio/{said['format']}")
    return Media(_bytes(said["data"]), kind)


def _formatted(field: str, family: str) -> Callable[[Entry], Media | None]:
    def read(block: Entry) -> Media | None:
        said = block[field]
        kind = {"pdf": "application/pdf", "txt": "text/plain"}.get(said["format"])
        return Media(
            _bytes(said["source"]["bytes"]), kind or f"{family}/{said['format']}", said.get("name")
        )

    return read


_PIECES: dict[str, Callable[[Entry], Piece | None]] = {
    "source": _sourced,
    "image_url": _linked,
    "input_audio": _sounding,
    "file": _filed,
    "file_data": _filed,
    "document_url": lambda block: _from_uri(block["document_url"]),
    "inlineData": lambda b: Media(_bytes(b["inlineData"]["data"]), b["inlineData"]["mimeType"]),
    "image": _formatted("image", "image"),
    "document": _formatted("document", "application"),
    "video": _formatted("video", "video"),
    "json": lambda block: Text(json_text(block["json"])),
}


def _result_block(block: Entry) -> tuple[Any, Any, Any, bool] | None:
    """id, name, output and whether it is an error, if this block is a result."""
    if block.get("type") == "tool_result":
        return block.get("tool_use_id"), None, block.get("content"), bool(block.get("is_error"))
    if isinstance(said := block.get("toolResult"), dict):
        return said.get("toolUseId"), None, said.get("content"), said.get("status") == "error"
    if isinstance(said := block.get("functionResponse"), dict):
        response = said.get("response")
        for key in ("output", "error"):
            if isinstance(response, dict) and set(response) == {key}:
                return said.get("id"), said.get("name"), response[key], key == "error"
        return said.get("id"), said.get("name"), response, False
    return None


# --- what the model said, told again as the stream that it was ------------------------------------


def _blocks(entry: Entry) -> list[Entry]:
    content = entry.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return [block for block in content or () if isinstance(block, dict)]


def _tell_anthropic(entry: Entry) -> Iterator[Entry]:
    yield {
        "type": "message_start",
        "message": {"type": "message", "role": "assistant", "content": []},
    }
    for index, block in enumerate(_blocks(entry)):
        yield {"type": "content_block_start", "index": index, "content_block": block}
        yield {"type": "content_block_stop", "index": index}
    yield {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {}}
    yield {"type": "message_stop"}


def _tell_bedrock(entry: Entry) -> Iterator[Entry]:
    yield {"messageStart": {"role": "assistant"}}
    for at, block in enumerate(_blocks(entry)):
        for kind, said in _bedrock_block(block):
            yield {f"contentBlock{kind}": {"contentBlockIndex": at, **said}}
        yield {"contentBlockStop": {"contentBlockIndex": at}}
    yield {"messageStop": {"stopReason": "end_turn"}}


def _bedrock_block(block: Entry) -> Iterator[tuple[str, Entry]]:
    if isinstance(use := block.get("toolUse"), dict):
        start = {key: value for key, value in use.items() if key != "input"}
        yield "Start", {"start": {"toolUse": start}}
        yield "Delta", {"delta": {"toolUse": {"input": json_text(use.get("input", {}))}}}
    elif isinstance(thought := block.get("reasoningContent"), dict):
        said = thought.get("reasoningText") or thought
        for key in ("text", "signature", "redactedContent"):
            if said.get(key):
                yield "Delta", {"delta": {"reasoningContent": {key: _plain(said[key])}}}
    elif block.get("text"):
        yield "Delta", {"delta": {"text": block["text"]}}


def _plain(value: Any) -> Any:
    return base64.b64encode(value).decode() if isinstance(value, bytes) else value


def _tell_gemini(entry: Entry) -> Iterator[Entry]:
    content = {"role": "model", "parts": entry.get("parts") or []}
    yield {"candidates": [{"content": content, "finishReason": "STOP", "index": 0}]}


def _tell_chat(entry: Entry) -> Iterator[Entry]:
    calls = [c for c in entry.get("tool_calls") or () if isinstance(c, dict)]
    numbered = [{**call, "index": index} for index, call in enumerate(calls)]
    delta = {key: value for key, value in entry.items() if value is not None}
    delta |= {"tool_calls": numbered} if numbered else {}
    reason = "tool_calls" if numbered else "stop"
    yield {"choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}


def _tell_ollama(entry: Entry) -> Iterator[Entry]:
    yield {"message": entry, "done": True, "done_reason": "stop"}


def _tell_cohere(entry: Entry) -> Iterator[Entry]:
    yield {"type": "message-start", "delta": {"message": {"role": "assistant"}}}
    if plan := entry.get("tool_plan"):
        yield {"type": "tool-plan-delta", "delta": {"message": {"tool_plan": plan}}}
    for at, block in enumerate(_blocks(entry)):
        yield {"type": "content-start", "index": at, "delta": {"message": {"content": block}}}
        yield {"type": "content-end", "index": at}
    for at, call in enumerate(entry.get("tool_calls") or ()):
        yield {"type": "tool-call-start", "index": at, "delta": {"message": {"tool_calls": call}}}
        yield {"type": "tool-call-end", "index": at}
    reason = "TOOL_CALL" if entry.get("tool_calls") else "COMPLETE"
    yield {"type": "message-end", "delta": {"finish_reason": reason}}


def _tell_responses(entry: Entry) -> Iterator[Entry]:
    for index, item in enumerate(entry["items"]):
        for kind in ("added", "done"):
            yield {"type": f"response.output_item.{kind}", "output_index": index, "item": item}
    yield {"type": "response.completed", "response": {"status": "completed", "output": []}}


def _item(entry: Entry) -> Entry:
    """An item as the model would have said it; people write assistant messages in short."""
    if entry.get("type", "message") != "message":
        return entry
    content = entry.get("content")
    if isinstance(content, str):
        content = [{"type": "output_text", "text": content, "annotations": []}]
    return {**entry, "type": "message", "content": content}


_TELL: dict[str, Callable[[Entry], Iterator[Entry]]] = {
    "anthropic": _tell_anthropic,
    "bedrock": _tell_bedrock,
    "gemini": _tell_gemini,
    "openai_chat": _tell_chat,
    "mistral": _tell_chat,
    "ollama": _tell_ollama,
    "cohere": _tell_cohere,
    "openai_responses": _tell_responses,
}
_WIRES: dict[str, tuple[str, Callable[[_Reader, Entry, str], None]]] = {
    "anthropic": ("messages", _Reader.message),
    "bedrock": ("messages", _Reader.message),
    "gemini": ("contents", _Reader.message),
    "openai_chat": ("messages", _Reader.message),
    "mistral": ("messages", _Reader.message),
    "ollama": ("messages", _Reader.message),
    "cohere": ("messages", _Reader.message),
    "openai_responses": ("input", _Reader.item),
}
