"""A request's body read back, in no provider's words: entries in; what was said in them out.

A provider's ``Messages`` knows its own words: how it writes a call, a result, a picture. Its shape is
one of three:

    Blocks   calls are blocks of the model's message, results blocks of the user's message after it
    Lines    calls are in a field of the model's message, each result is a message after it
    Items    calls and results are items of one flat list; a result stands anywhere behind its call

Rule: what the model said is told again as the stream that it was, payload by payload, and heard by the
provider's own parser; so there is one reader of each wire. What has no place in a conversation is told
as ``LeftOut``. Nothing that stands in a body raises.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, ClassVar, NamedTuple, TypeAlias

from ..conversation import Text
from ..errors import EncodeError
from ..events import ToolCall
from ..text.media import bytes_of
from ..text.written import json_text
from ..tools import EMPTY_SCHEMA, File, Link, Tool, ToolChoice
from .encoder import Entry
from .fields import at, is_there

__all__ = [
    "Blocks", "Entry", "Found", "Items", "LeftOut", "Line", "Lines", "Messages", "ModelSaid", "Named",
    "Piece", "Recall", "Returned", "Step", "SystemSaid", "ToolSaid", "UserSaid", "as_object", "blocks_of",
    "gathered", "media", "media_at", "media_of", "type_of", "under", "word",
]  # fmt: skip

Piece: TypeAlias = Text | File | Link
Named: TypeAlias = tuple[Any, Any]  # the id and the name of a call or a result, as they stand there
Recall: TypeAlias = Callable[[str], Entry | None]  # what was told under a name
# What comes of taking something for what it is not.
ODD = (KeyError, TypeError, ValueError, AttributeError, EncodeError)
Returned: TypeAlias = tuple[Any, bool]  # what a tool gave, and whether that is an error


# --- what is read ---------------------------------------------------------------------------------


class SystemSaid(NamedTuple):
    where: str
    pieces: list[Piece]


class UserSaid(NamedTuple):
    where: str
    pieces: list[Piece]


class ModelSaid(NamedTuple):
    """One turn of the model: what stands there, and the payloads of the stream that it was."""

    where: str
    entries: list[Entry]
    payloads: list[Entry]


class ToolSaid(NamedTuple):
    where: str
    id: str | None
    name: str | None
    output: Any
    is_error: bool = False


class LeftOut(NamedTuple):
    where: str
    why: str


Step: TypeAlias = SystemSaid | UserSaid | ModelSaid | ToolSaid | LeftOut


# --- where calls and results stand ----------------------------------------------------------------


@dataclass(eq=False)
class Found:
    """A call or a result in a body."""

    id: str | None
    name: str | None
    block: Entry
    line: int


@dataclass(eq=False)
class Line:
    """One entry, and the calls and results in it."""

    entry: Entry
    is_model: bool
    calls: list[Found] = field(default_factory=list)
    results: list[Found] = field(default_factory=list)


def found(said: Named, block: Entry, line: int) -> Found:
    """A call or a result with its id and name as texts; None where there is none."""
    return Found(word(said[0]), word(said[1]), block, line)


def _a(kind: Any, value: Any) -> Any:
    if not isinstance(value, kind):
        raise TypeError("of another type")
    return value


def word(value: Any) -> str | None:
    """An id or a name, as a text; None where it is none."""
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return value or None if isinstance(value, str) else str(value) if is_number else None


# --- what a provider adds -------------------------------------------------------------------------


class Messages:
    """How one provider writes a conversation into a body. A provider's folder has a subclass."""

    needs_id: ClassVar[bool] = True
    unique: ClassVar[bool] = False  # an id may not be used again in the whole request
    # Where no word of a body tells whose it is: is it this provider's? And a bare list of messages?
    is_usual: ClassVar[bool] = False
    is_usual_list: ClassVar[bool] = False
    takes_text: ClassVar[bool] = False  # a text may stand in place of the entries

    # Where a body has its system text, its tools and what may be called, and what else is read here.
    beside: ClassVar[tuple[str, ...]] = ()
    tools_at: ClassVar[str] = ""
    choice_at: ClassVar[str] = ""
    # Fields of what a client says that are read; in the opaque ones anything may stand.
    known: ClassVar[frozenset[str]] = frozenset()
    opaque: ClassVar[frozenset[str]] = frozenset()
    usual: ClassVar[Mapping[str, Any]] = {}  # fields that say nothing by that value

    def __init__(self, container: str, provider: str) -> None:
        self.container = container  # the field of a body that holds the entries
        self.provider = provider

    # --- whose body it is -------------------------------------------------------------------------

    def likeness(self, body: Any) -> int:
        """2: its own words are in this body; 1: it would be its own if no word tells; 0: neither."""
        entries = at(body, self.container) if isinstance(body, dict) else body
        listed = [e for e in entries if isinstance(e, dict)] if isinstance(entries, list) else []
        if any(map(self.is_own, listed)) or (isinstance(body, dict) and self.is_own_body(body)):
            return 2
        told = is_there(entries) if isinstance(body, dict) else any(map(self.is_like, listed))
        return int(self.is_usual and told)

    def is_own(self, entry: Entry) -> bool:
        """Can only this provider have written the entry?"""
        return False

    def is_like(self, entry: Entry) -> bool:
        """May it have written the entry, and others who do as it does?"""
        return False

    def is_own_body(self, body: Entry) -> bool:
        """Can only this provider have written the fields beside the entries?"""
        return False

    def has_past(self, body: Any) -> bool:
        """Does the service know turns that are not in the body?"""
        return False

    def recalled(self, body: Entry, recall: Recall) -> Entry:
        """The body with what it only names, as far as that is known."""
        return body

    def evened(self, body: Any) -> Any:
        """The body as it is read here, of all the ways in which a client may spell it."""
        return body

    # --- tools ------------------------------------------------------------------------------------

    def tools(self, body: Entry) -> Iterator[Tool | LeftOut]:
        """The tools that a body declares."""
        said = at(body, self.tools_at) if self.tools_at else None
        if not isinstance(said, list):
            if is_there(said) and said is not None:
                yield LeftOut(self.tools_at, "it is no list of tools")
            return
        for number, entry in enumerate(said):
            where = f"{self.tools_at} {number}"
            try:
                yield from self.declared(entry)
            except ODD:
                yield LeftOut(where, "it is no declaration of a tool")

    def declared(self, entry: Entry) -> Iterator[Tool]:
        """The tools that one entry declares; what is odd in it may raise."""
        yield self.hosted(entry)

    def choice(self, body: Entry) -> ToolChoice | None:
        """What a body says may be called; None where nothing is said, or nothing that we have."""
        said = at(body, self.choice_at) if self.choice_at else None
        try:
            return self.chosen(said if is_there(said) else None, body)
        except ODD:
            return None

    def chosen(self, said: Any, body: Entry) -> ToolChoice | None:
        """The choice; what is odd in it may raise."""
        return None

    def hosted(self, entry: Entry) -> Tool:
        """A tool that the provider runs itself."""
        return Tool.server(self.provider, entry)

    def function(self, said: Entry, schema: str, beside: Entry | None = None) -> Tool:
        """A function; what is said of it and has no place in a ``Tool`` is kept for this wire."""
        known = {"name", "description", "strict", schema}
        extra = {key: value for key, value in said.items() if key not in known} | (beside or {})
        return Tool(
            _a(str, said["name"]),
            _a(str, said.get("description") or ""),
            _a(dict, said.get(schema) or dict(EMPTY_SCHEMA)),
            _a(bool | None, said.get("strict")),
            extra={self.provider: extra} if extra else {},
        )

    # --- what is not read -------------------------------------------------------------------------

    def unread(self, body: Entry) -> Iterator[tuple[str, str]]:
        """Fields of what a client says that have no place in a conversation: where, and their name."""
        if not self.known:
            return
        entries = self.entries(body)
        for entry in entries if isinstance(entries, list) else ():
            if isinstance(entry, dict) and not self.is_by_model(entry):
                yield from ((self.container, field) for field in self._unknown(entry))
        yield from (("system", field) for field in self._unknown(self.system(body)))

    def is_by_model(self, entry: Entry) -> bool:
        """Did the model say it? Then its parser keeps what is in it."""
        return False

    def _unknown(self, said: Any) -> Iterator[str]:
        if isinstance(said, list):
            for inner in said:
                yield from self._unknown(inner)
        elif isinstance(said, dict):
            for field, inner in said.items():
                if field in self.known:
                    yield from self._unknown(inner)
                elif field not in self.opaque and inner != self.usual.get(field):
                    yield field

    # --- calls and results ------------------------------------------------------------------------

    def call(self, block: Entry) -> Named | None:
        """Its id and name, if it is a call that the client is to answer."""
        raise NotImplementedError

    def result(self, block: Entry) -> Named | None:
        """The id and the name of the call that it answers, if it is a result."""
        raise NotImplementedError

    def returned(self, block: Entry) -> Returned:
        """What a result says."""
        raise NotImplementedError

    def closed(self, call: Found) -> Entry:
        """The result that answers an orphan neutrally."""
        raise NotImplementedError

    def can_close(self, call: Found) -> bool:
        return True

    def name_call(self, block: Entry, id: str) -> None:
        raise NotImplementedError

    def name_result(self, block: Entry, id: str) -> None:
        raise NotImplementedError

    def even(self, block: Entry) -> bool:
        """Makes the arguments of a call what the wire wants; True if they were not."""
        return False

    def name_of(self, call: ToolCall) -> str:
        """The name by which the tool is known that a call means."""
        return call.name

    def line(self, number: int, entry: Entry) -> Line:
        """The entry with the calls and results in it."""
        raise NotImplementedError

    # --- what was said ----------------------------------------------------------------------------

    def entries(self, body: Any) -> Any:
        """The value of the container; entries may be passed without a body around them."""
        if not isinstance(body, dict):
            return body
        held = at(body, self.container)
        return held if is_there(held) else None

    def system(self, body: Entry) -> Any:
        """The content of the body's own field for the system text."""
        return None

    def read(self, entries: Any) -> Iterator[Step]:
        """What the entries say, in order."""
        raise NotImplementedError

    def told(self, entry: Entry) -> Iterable[Entry]:
        """What the model said in an entry, as the payloads of a stream."""
        raise NotImplementedError

    def answered(self, answer: Entry) -> Iterable[Entry]:
        """An answer that is no stream, as the payloads of the stream that it would have been. Nothing
        that stands in it raises."""
        return ()

    def piece(self, block: Entry) -> Piece | None:
        """A text, or media that this wire may hold; what is odd in it may raise."""
        return None

    def content(self, content: Any, where: str) -> Iterator[Piece | LeftOut]:
        """A content, piece by piece: a text, a block, or a list of those."""
        for block in content if isinstance(content, list) else [content]:
            if block is None or block == "":
                continue
            piece = Text(block) if isinstance(block, str) else self._piece(block)
            if piece is not None:
                yield piece
                continue
            kind = _kind(block) if isinstance(block, dict) else type(block).__name__
            yield LeftOut(where, f"a part of type {kind} has no place in a conversation")

    def output(self, content: Any) -> Any:
        """The content of a result: a text, texts and media, or the JSON value that it is."""
        if not isinstance(content, list):
            return content
        pieces = [self._held(block) for block in content]
        if any(
            isinstance(piece, File) for piece in pieces
        ):  # what is beside media is said in words
            pieces = [
                piece or Text(json_text(said)) for piece, said in zip(pieces, content, strict=True)
            ]
        if not content or any(piece is None for piece in pieces):
            return content
        if all(isinstance(piece, Text) for piece in pieces):
            return "\n".join(piece.text for piece in pieces if isinstance(piece, Text))
        return [piece.text if isinstance(piece, Text) else piece for piece in pieces]

    def _held(self, block: Any) -> Text | File | None:
        """As ``_piece``, of a result: what is at an address stays as it is written."""
        piece = self._piece(block)
        return None if isinstance(piece, Link) else piece

    def _piece(self, block: Any) -> Piece | None:
        if not isinstance(block, dict):
            return None
        if isinstance(block.get("text"), str):
            return Text(block["text"])
        try:
            return self.piece(block)
        except ODD:
            return None


def _kind(block: Entry) -> str:
    """What a block says that it is: by its type, or by the one field that it has."""
    return type_of(block) or str(next(iter(block), "?"))


class _Roles(Messages):
    """Wires whose entries say who speaks."""

    model: ClassVar[str] = "assistant"
    clients: ClassVar[tuple[str, ...]] = ("user",)  # roles of whom the model answers

    def is_by_model(self, entry: Entry) -> bool:
        return bool(entry.get("role") == self.model)

    def placed(self, entries: Any) -> Iterator[tuple[str, Entry | None]]:
        """The entries, each with where it stands; None for what is no object."""
        for number, entry in enumerate(entries):
            yield f"entry {number}", entry if isinstance(entry, dict) else None

    def read(self, entries: Any) -> Iterator[Step]:
        for where, entry in self.placed(entries):
            if entry is None:
                yield LeftOut(where, "it is no object")
            else:
                yield from self.message(entry, where)

    def message(self, entry: Entry, where: str) -> Iterator[Step]:
        if entry.get("role") == self.model:
            yield ModelSaid(where, [entry], list(self.told(entry)))
        elif entry.get("role") in ("system", "developer"):
            yield from gathered(SystemSaid, where, self.content(entry.get("content"), where))
        else:
            role = entry.get("role")
            if role is not None and role not in self.clients:
                yield LeftOut(where, f"the role {role!r} is not known, and read as the user's")
            yield from self.user(entry, where)

    def user(self, entry: Entry, where: str) -> Iterator[Step]:
        yield from gathered(UserSaid, where, self.content(entry.get("content"), where))

    def tool(self, block: Entry, said: Named, where: str) -> ToolSaid:
        output, is_error = self.returned(block)
        return ToolSaid(where, word(said[0]), word(said[1]), self.output(output), is_error)


def gathered(
    kind: Callable[[str, list[Piece]], Step], where: str, said: Iterable[Piece | LeftOut]
) -> Iterator[Step]:
    """Pieces as one step; what is left out comes before it."""
    pieces: list[Piece] = []
    for piece in said:
        if isinstance(piece, LeftOut):
            yield piece
        else:
            pieces.append(piece)
    if pieces:
        yield kind(where, pieces)


class Blocks(_Roles):
    """Calls and results are blocks of messages, results in the message after the calls."""

    key: ClassVar[str] = "content"
    results_first: ClassVar[bool] = True  # in their message

    def text(self, text: str) -> Entry:
        """A text as a block, where a message may be a plain text, too."""
        raise NotImplementedError

    def blocks(self, entry: Entry) -> list[Entry]:
        """The blocks of a message; a plain text is one."""
        content = entry.get(self.key)
        if isinstance(content, str):
            return [self.text(content)] if content else []
        return blocks_of(entry, self.key)

    def placed(self, entries: Any) -> Iterator[tuple[str, Entry | None]]:
        """Roles take turns here: what the model said in several messages, one behind the other, is one
        turn. Some clients keep each chunk of a stream as a message."""
        for is_said, rows in groupby(
            super().placed(entries), key=lambda row: self._is_said(row[1])
        ):
            together = list(rows)
            if is_said and len(together) > 1:
                said = [entry for _, entry in together if entry is not None]
                blocks = [block for entry in said for block in self.blocks(entry)]
                yield together[0][0], {"role": self.model, self.key: blocks}
            else:
                yield from together

    def _is_said(self, entry: Entry | None) -> bool:
        """Is it the model's, and nothing stands beside what it said?"""
        return entry is not None and self.is_by_model(entry) and entry.keys() == {"role", self.key}

    def line(self, number: int, entry: Entry) -> Line:
        line = Line(entry, entry.get("role") == self.model)
        for block in blocks_of(entry, self.key):
            if line.is_model and (said := self.call(block)) is not None:
                line.calls.append(found(said, block, number))
            elif not line.is_model and (said := self.result(block)) is not None:
                line.results.append(found(said, block, number))
        return line

    def user(self, entry: Entry, where: str) -> Iterator[Step]:
        rest: list[Any] = []
        content = entry.get(self.key)
        for block in content if isinstance(content, list) else [content]:
            if isinstance(block, dict) and (said := self.result(block)) is not None:
                yield self.tool(block, said, where)
            else:
                rest.append(block)
        yield from gathered(UserSaid, where, self.content(rest, where))


class Lines(_Roles):
    """Calls stand in a field of a message, each result is a message of its own."""

    calls: ClassVar[str]  # the field of a message that holds its calls

    def line(self, number: int, entry: Entry) -> Line:
        line = Line(entry, entry.get("role") == self.model)
        if line.is_model:
            for block in blocks_of(entry, self.calls):
                line.calls.append(found(self.call(block) or (None, None), block, number))
        elif (said := self.result(entry)) is not None:
            line.results.append(found(said, entry, number))
        return line

    def message(self, entry: Entry, where: str) -> Iterator[Step]:
        said = None if entry.get("role") == self.model else self.result(entry)
        if said is None:
            yield from super().message(entry, where)
        else:
            yield self.tool(entry, said, where)


class Items(_Roles):
    """Calls and results are items of one list; what the model said comes item by item."""

    takes_text = True

    def leads(self, item: Entry) -> bool:
        """Is this refused without the item that it led to?"""
        return False

    def is_model(self, item: Entry) -> bool:
        """Did the model say it?"""
        raise NotImplementedError

    def is_by_model(self, entry: Entry) -> bool:
        return self.is_model(entry)

    def line(self, number: int, entry: Entry) -> Line:
        line = Line(entry, is_model=False)
        if (said := self.call(entry)) is not None:
            line.calls.append(found(said, entry, number))
        elif (said := self.result(entry)) is not None:
            line.results.append(found(said, entry, number))
        return line

    def read(self, entries: Any) -> Iterator[Step]:
        if isinstance(entries, str):
            entries = [{"role": "user", "content": entries}]
        items: list[Entry] = []
        for where, entry in self.placed(entries):
            if entry is not None and self.is_model(entry):
                items.append(entry)
                continue
            yield from self._turn(items)
            items = []
            if entry is None:
                yield LeftOut(where, "it is no object")
            else:
                yield from self._client(entry, where)
        yield from self._turn(items)

    def _client(self, entry: Entry, where: str) -> Iterator[Step]:
        said = self.result(entry)
        if said is None:
            yield from self.message(entry, where)
        else:
            yield self.tool(entry, said, where)

    def _turn(self, items: Sequence[Entry]) -> Iterator[Step]:
        if items:
            yield ModelSaid("items", list(items), list(self.told({"items": list(items)})))


# --- small helpers for providers ------------------------------------------------------------------


def blocks_of(entry: Entry, key: str) -> list[Entry]:
    """The objects in a list of an entry."""
    blocks = entry.get(key)
    return [b for b in blocks if isinstance(b, dict)] if isinstance(blocks, list) else []


def type_of(block: Entry, usual: str = "") -> str:
    """What a block says that it is; "" if it says so in no word."""
    said = block.get("type", usual)
    return said if isinstance(said, str) else ""


def under(block: Entry, key: str, id: str, name: str = "name") -> Named | None:
    """The id and the name in the one field that says what a block is."""
    inner = block.get(key)
    return (inner.get(id), inner.get(name)) if isinstance(inner, dict) else None


def as_object(holder: Entry, key: str) -> bool:
    """Arguments that are no object are made one; True if they were none.

    >>> as_object(call := {"input": '{"a": 1}'}, "input"), call
    (True, {'input': {'a': 1}})
    """
    value = holder.get(key)
    if isinstance(value, dict):
        return False
    try:
        read = json.loads(value) if isinstance(value, str) else None
    except (ValueError, RecursionError):
        read = None
    holder[key] = read if isinstance(read, dict) else {}
    return True


def media(data: Any, type: Any, name: Any = None) -> File:
    """File whose bytes are written as base64, of either alphabet, or stand there as they are."""
    if not isinstance(type, str):
        raise TypeError("media without a type")
    plain = data if isinstance(data, bytes) else bytes_of(data)
    if plain is None:
        raise ValueError("no base64")
    return File(plain, type, name if isinstance(name, str) else None)


def media_of(uri: str, name: Any = None) -> File | None:
    """The media in a data URI; None for an address, whose content nobody has.

    >>> media_of("data:image/png;base64,aGk=").data
    b'hi'
    """
    head, comma, data = uri.partition(",")
    if not comma or not head.startswith("data:") or not head.endswith(";base64"):
        return None
    return media(data, head.removeprefix("data:").removesuffix(";base64"), name)


def media_at(uri: str, type: str, name: Any = None) -> File | Link:
    """The media in a data URI, or the link that any other is; ``type`` is what its place says of that.

    >>> media_at("https://example.org/cat.png", "image/*").url
    'https://example.org/cat.png'
    """
    return media_of(uri, name) or Link(uri, type, name if isinstance(name, str) else None)
