"""Which call an entry of ``tool_calls`` means: entries in, the verbs of ``core.calls`` out.

In theory an entry is found by its ``index``; in practice servers leave it out, use one for several
calls, change ids, or send whole lists again and again. ``Choice`` keeps what is known of the calls of
one choice and decides. Rule: a name is never a key, and no two calls are ever taken for one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, TypeAlias

from ...core.calls import BEGUN_LATE, FUNCTION, Call, Calls, Kind, State
from ...core.copies import Copy
from ...core.parser import Payload
from ...core.row import Item
from ...events import Event, FinishReason
from ...notes import Scribe

__all__ = [
    "AFTER_THE_END", "BUILTIN", "CUSTOM", "EXECUTED", "ITEMS", "LEGACY", "NO_CALL_THERE", "STEPS", "Choice",
    "Entry", "FullEntry", "FullFunction", "Function", "said",
]  # fmt: skip

Out: TypeAlias = list[Event]

# --- the payloads -------------------------------------------------------------------------------


class Function(Payload):
    name: str | None = None
    arguments: str | None = None


class Entry(Payload):
    index: int | None = None
    id: str | None = None
    type: str | None = None
    function: Function | None = None


class FullFunction(Payload):
    name: str | None = None
    arguments: str | None = None
    # Known, and of no use to us …
    description: Any = None
    parameters: Any = None  # … unless a call has nothing else: is it a schema, or its arguments?
    strict: Any = None


class Custom(Payload):
    name: str | None = None
    input: str | None = None


class FullEntry(Payload):
    index: int | None = None
    id: str | None = None
    type: str | None = None
    function: FullFunction | None = None
    custom: Custom | None = None
    extra_content: Any = None
    thought_signature: Any = None
    provider_specific_fields: Any = None


# --- the types of tool entries ------------------------------------------------------------------

_ID = "tool_calls[].id"
ITEMS = (
    Item("tool_calls[].function", "function", "call", "client", "natural", _ID, "function.arguments, JSON text"),
    Item("tool_calls[].custom", "custom", "call", "client", "natural", _ID, "custom.input, free text"),
    Item("function_call", "function", "call", "client", "synthetic", "", "function_call.arguments, JSON text",
         note="legacy: one per message, no id on the wire"),
    Item("role=tool", "function", "output", "client", "natural", "tool_call_id", "content", "tool_call_id",
         "request only"),
    Item("role=function", "function", "output", "client", "synthetic", "name", "content", "name",
         "legacy, request only"),
    Item("executed_tools[]", "server-tool", "call+output", "provider", "synthetic", "",
         "arguments, JSON text", "index", "Groq"),
    Item("reasoning_steps[]", "server-tool", "call+output", "provider", "synthetic", "",
         "search_keywords, code …, fields", note="Perplexity; web_search, execute_python …"),
    Item("tool_calls[].builtin_function", "web-search", "call+output", "provider", "natural", _ID,
         "function.arguments, JSON text", "tool_call_id",
         "Kimi's $web_search: its arguments go back as its result, as they are"),
)  # fmt: skip
CUSTOM = Kind("custom", "client", "input")
LEGACY = Kind(id_source="synthetic")  # ``function_call``, which has no ids
EXECUTED = Kind("server-tool", "provider")
BUILTIN = "builtin_function"  # the type of an entry that calls a function of the provider's own
# What it is called -> its kind; any other is a server tool like all others.
_BUILTIN = {"$web_search": Kind("web-search", "provider", own_name=True)}
_OTHER = Kind("builtin-tool", "provider", own_name=True)
# What is run in a step of reasoning -> its family, and the fields that were asked for; all others came
# out. After ``ReasoningStep`` of Perplexity's own SDK (perplexityai, ``ChatMessageOutput``).
STEPS: dict[str, tuple[str, tuple[str, ...]]] = {
    "web_search": ("web-search", ("search_keywords",)),
    "fetch_url_content": ("web-fetch", ()),
    "execute_python": ("code-execution", ("code",)),
    "file_attachment_search": ("file-search", ("attachment_urls",)),
    "agent_progress": ("browser", ("action", "url")),
    "browser_agent": ("browser", ("url",)),
    "browser_tool_execution": ("browser", ("tool",)),
}

AFTER_THE_END = "text came for it after the end"
NO_CALL_THERE = "arguments came in a choice that has no call"
_NOT_AN_ID = {"", "null", "None"}


def said(text: str | None) -> str | None:
    """An id, a name or a reason; the literal "null" and the empty text mean that none was said."""
    return None if text in _NOT_AN_ID else text


class Said(NamedTuple):
    """What an entry says, and where in its list it stands."""

    place: int | None
    id: str | None
    name: str | None
    text: str | None
    at: int
    of: int

    @property
    def says_nothing(self) -> bool:
        """Real pieces have a text, if only an empty one."""
        return self.id is None and self.name is None and self.text is None


class Choice:
    """What is known of one choice and its calls."""

    __slots__ = (
        "_calls", "_over", "_passed", "_scribe", "_worded", "bare", "beside", "builtin", "by_index", "copy",
        "executed", "functions", "ids", "last", "legacy", "number", "raw_reason", "reason", "row", "spoke",
        "with_word",
    )  # fmt: skip

    def __init__(self, number: int, calls: Calls, scribe: Scribe) -> None:
        self.number = number
        self._calls, self._scribe = calls, scribe
        self.by_index: dict[int, Call] = {}
        self.functions: dict[int, Call] = {}  # those of them that are functions
        self.row: list[Call] = []  # the calls of the last chunk that had several entries
        self.last: Call | None = None
        self.ids: set[str] = set()  # of its calls, as the wire says them; …
        self.bare = 0  # … so many have none
        self.legacy: Call | None = None
        self.copy: Copy | None = None  # what ``function_call`` says beside ``tool_calls``
        self.executed: dict[int, Call] = {}
        self.builtin = False  # it calls a function of the provider's own
        self.reason: FinishReason | None = None
        self.raw_reason: str | None = None
        self.spoke = False
        self.beside = False  # the reason came in one chunk with a piece of a call
        self._over = 0  # calls before this one had begun when a word for the end came alone
        self._passed = 0  # … and before this one, when it stood beside pieces of others
        self._worded: set[int] = set()  # calls that had one beside a piece of theirs
        self.with_word = False  # … and is there one in the chunk that is being read?

    def hear(self, entries: Sequence[Entry | FullEntry], out: Out, *, objects: bool) -> None:
        """The entries of one delta; ``objects``: their arguments came as objects, not as text."""
        for at, entry in enumerate(entries):
            self._entry(entry, _said(entry, at, len(entries)), out, objects=objects)

    def named(self, entries: Any) -> list[Call]:
        """The calls whose places these entries of a delta name; any open one if one names none."""
        found: list[Call] = []
        for entry in entries if isinstance(entries, list) else [entries]:
            place: Any = entry.get("index") if isinstance(entry, dict) else None
            call = self.by_index.get(place) if type(place) is int else None
            if call is None:
                return self._calls.unfinished(self.number)
            found.append(call)
        return found

    def hear_name(self, call: Call, name: str, out: Out) -> None:
        """Names come whole, again and again, or in pieces before the first fragment."""
        held = call.name
        if not call.started and not name.startswith(held):
            self._scribe.note("call.name_joined", call_id=call.id)
            name = held + name
        self._calls.hear(call, out, name=name)

    # --- one entry ------------------------------------------------------------------------------

    def _entry(self, entry: Entry | FullEntry, it: Said, out: Out, *, objects: bool) -> None:
        call = self._find(it)
        if call is None:
            call = self._open(entry, it, out)
        elif call.wire_id is None:
            self._calls.hear(call, out, id=it.id, field=_ID)
            if call.wire_id is not None:
                self.ids.add(call.wire_id)
                self.bare -= 1
        elif it.id not in (None, call.wire_id):  # one with every fragment: the first is the call's
            self._calls.alias(call, it.id or "")
        if it.name:
            self._ask_name(call, it.name, it.id)
            self.hear_name(call, it.name, out)
        echo = call.echo
        _keep_echo(call, entry)
        self.last = call
        self._ask(call, entry, it, echo)
        if it.text:
            if objects:
                self._calls.merge_object(call, it.text, out)
            else:
                self._calls.ask_whether_text(call)
                self._calls.extend(call, it.text, out)

    def _ask_name(self, call: Call, name: str, id: str | None) -> None:
        """Is another name the rest of the first one, that one said again and damaged, or another
        call's? It is the rest if the call has an id and the piece has none, as pieces say only what is
        new, unless the first one begins with it."""
        if name.startswith(call.name):
            return
        again = id is not None and not call.started
        if call.wire_id is None or again or call.name.startswith(name):
            self._calls.taint(call, "its name came in pieces, or changed, or it is two calls")

    def _ask(
        self, call: Call, entry: Entry | FullEntry, it: Said, echo: dict[str, Any] | None
    ) -> None:
        """Can this be the same call, and is it all of it? ``echo``: what went back with it before."""
        of_a_kind = (_custom(entry) is not None) is (call.kind is CUSTOM)
        if not of_a_kind and (entry.function is not None or _custom(entry) is not None):
            self._calls.taint(call, "it is said to be of two kinds")
        elif it.text and self.is_over(call):
            self._calls.taint(call, AFTER_THE_END)
        if it.text:
            self._goes_on()
        elif it.says_nothing and call.echo is echo:
            self._calls.hollow(call)
            if entry.function is None and _custom(entry) is None:
                self._calls.lost = True  # not even an empty text

    def is_over(self, call: Call) -> bool:
        """After a word for the end nothing is of it, unless that stood beside a piece, as it then may
        stand on every chunk; but text has no closing brace, and an object that was whole before a word
        beside the piece of another is all of its call, even an empty one. So is one that the word stood
        beside, if what follows has none."""
        if call.ordinal < self._over or (call.kind is CUSTOM and self.reason is not None):
            return True
        over = call.ordinal in self._worded and not self.with_word
        return (over or call.ordinal < self._passed) and self._calls.is_whole(call)

    def hear_end(self, beside: bool, entries: Sequence[Entry | FullEntry] | None) -> None:
        """A word for the end came: alone, for all that had begun; or ``beside`` pieces of calls, for
        those that had begun before them and were whole."""
        self.beside = beside
        if not beside:
            self._over = len(self._calls.all)
            self.functions.clear()  # what comes for them now is looked at
        elif entries:
            self._passed = max(self._passed, min(map(self._ordinal, entries)))
        named = (self._at(entry.index) for entry in entries or ())
        self._worded.update(call.ordinal for call in (*named, self.legacy) if call is not None)

    def _at(self, index: int | None) -> Call | None:
        """The call in this place; the last one where a piece says none."""
        return self.last if index is None else self.by_index.get(index)

    def _ordinal(self, entry: Entry | FullEntry) -> int:
        """The number of the call in its place; that of the first if none is known."""
        call = None if entry.index is None else self.by_index.get(entry.index)
        return 0 if call is None else call.ordinal

    def _goes_on(self) -> None:
        """Some say a normal reason on every chunk or after each call: what follows needs its own."""
        if self.reason in ("stop", "tool_calls"):
            self.reason = None

    def _find(self, it: Said) -> Call | None:
        """The call that an entry continues, or None if it begins one."""
        if it.place is not None:
            return self._find_by_index(it.place, it)
        self._scribe.note("call.index_missing")
        if it.id is not None:
            known = self._calls.by_id(self.number, it.id)
            ended = self.last is not None and self.is_over(self.last)
            return known or (None if ended else _unnamed_yet(self.last, it))
        if it.of > 1:
            held = self.row[it.at] if it.at < len(self.row) else None
            return None if held is None or _begins(self._calls, held, it) else held
        if self.last is None or _begins(self._calls, self.last, it):
            return None
        self._doubt_whose()
        return self.last

    def _doubt_whose(self) -> None:
        """A piece without an index goes to the last call. Where entries have one, its own was lost,
        and it may be of any call that can go on."""
        if not self.by_index:
            return
        open = [c for c in self._calls.unfinished(self.number) if not self._calls.is_whole(c)]
        if any(call is not self.last for call in open):
            for call in open:
                self._calls.taint(call, "a piece came that does not say of which call it is")

    def _doubt_both(self, held: Call, known: Call, it: Said) -> None:
        """Its index names one call and its id another: what it says may be of either, unless the one
        of the index is whole and cannot go on."""
        if held is known or not (it.text or it.name):
            return
        self._scribe.note("call.index_reused", index=it.place)
        if self._calls.may_go_on(held) or not self._calls.is_whole(held):
            for call in (held, known):
                self._calls.taint(call, "a piece came whose index and id name different calls")

    def _doubt_copies(self, begun: Call) -> None:
        """``function_call`` said a call, and now ``tool_calls`` begins one: it may be the same, and of
        two that may be one the first that is told is told alone."""
        if self.legacy is not None:
            doubtful = begun if self.legacy.state is State.OVER else self.legacy
            self._calls.taint(doubtful, "function_call and tool_calls may say the same call")

    def hear_copy(self, function: FullFunction) -> None:
        """Some say the call of a message in the old field and in the new one: one call."""
        if self.copy is None:
            self._scribe.note("call.said_twice")
            self.copy = Copy(self._calls.limits)
        if name := said(function.name):
            self.copy.hear_name(name)
        if function.arguments:
            self.copy.hear(function.arguments)

    def end_copy(self, mine: Iterable[Call], out: Out) -> None:
        """What the old field says and the new one does not may be another call, or half of a copy.
        ``mine``: all calls of this choice."""
        copy, self.copy = self.copy, None
        if copy is None or copy.is_one_of((call.name, call.raw) for call in mine):
            return
        call = self._calls.open(out, choice=self.number, field="function_call", name=copy.name)
        self._calls.append(call, copy.text, out)
        self._calls.fail(call, "conflict", "function_call and tool_calls say different calls", out)

    def _find_by_index(self, index: int, it: Said) -> Call | None:
        held = self.by_index.get(index)
        known = self._calls.by_id(self.number, it.id or "")
        if held is None:
            # An id that is known under another index: the same call only if nothing begins here.
            if it.name is None:
                return known
            if known is not None and not known.fragments:
                self._calls.taint(known, "its id began again in another place")
            return None
        if known is not None and held.wire_id != it.id:
            self._doubt_both(held, known, it)
            return known
        if it.id is None or it.id == held.wire_id:
            return None if it.id is None and _begins(self._calls, held, it) else held
        if held.wire_id is None:  # its id came late, but not behind its end
            return None if self.is_over(held) or _begins(self._calls, held, it) else held
        return None if it.name or (_starts_object(it.text) and self._calls.is_whole(held)) else held

    def _open(self, entry: Entry | FullEntry, it: Said, out: Out) -> Call:
        bare = it.id is None and it.name is None and bool(it.text)
        if bare:
            self._calls.astray(it.place, self.number, index=it.place)
        self._goes_on()
        held = self.by_index.get(it.place) if it.place is not None else None
        if held is not None:
            self._scribe.note("call.index_reused", index=it.place)
            text = held.kind.key is not None
            if text or not self._calls.is_whole(held):  # nothing will end it: its place is taken
                self._calls.restarts(held, it.id, it.name, out)
        kind = FUNCTION if _custom(entry) is None else CUSTOM
        if entry.type == BUILTIN:
            kind, self.builtin = _BUILTIN.get(it.name or "", _OTHER), True
        call = self._calls.open(
            out, kind, choice=self.number, id=it.id, place=it.place,
            field=_ID, inferred=it.id is None and (held is not None or it.place is None), seen=entry,
            instead=held,
        )  # fmt: skip
        if call.wire_id is None:
            self.bare += 1
        else:
            self.ids.add(call.wire_id)
        late = self.reason is not None and self.reason != "other"  # which may stand on every chunk
        if late:
            self._calls.taint(call, BEGUN_LATE)
        self._doubt_copies(call)
        call.displaced = held is not None or it.place is None
        if bare:
            call.orphan = True
        if isinstance(entry.function, FullFunction) and entry.function.parameters:
            self._calls.lost = True
        if it.place is not None:
            self.by_index[it.place] = call
            self.functions.pop(it.place, None)
            if call.kind is FUNCTION:
                self.functions[it.place] = call
        if it.of > 1:
            if it.at == 0:
                self.row = []
            self.row.append(call)
        return call


def _said(entry: Entry | FullEntry, at: int, of: int) -> Said:
    custom = _custom(entry)
    if custom is not None:
        name, text = custom.name, custom.input
    else:
        function = entry.function
        name, text = (function.name, function.arguments) if function is not None else (None, None)
    return Said(entry.index, said(entry.id), said(name), text, at, of)


def _custom(entry: Entry | FullEntry) -> Custom | None:
    return entry.custom if isinstance(entry, FullEntry) else None


def _keep_echo(call: Call, entry: Entry | FullEntry) -> None:
    if entry.type == BUILTIN:
        call.echo = {**(call.echo or {}), "type": BUILTIN}
    for key in ("extra_content", "thought_signature", "provider_specific_fields"):
        value = getattr(entry, key, None)
        if value is not None:
            call.echo = {**(call.echo or {}), key: value}


def _starts_object(text: str | None) -> bool:
    return bool(text) and text.lstrip()[:1] == "{"  # type: ignore[union-attr]


def _begins(calls: Calls, held: Call, it: Said) -> bool:
    """Without an id: does this begin a call after ``held``, rather than go on with it?"""
    if held.state is State.OVER:
        return bool(it.name or it.text)
    if it.name is None or not calls.is_whole(held):
        return False
    if it.name != held.name and not it.text:
        return True
    return _starts_object(it.text) and not it.text.startswith(held.raw)  # type: ignore[union-attr]


def _unnamed_yet(last: Call | None, it: Said) -> Call | None:
    """A late id belongs to the last call if that has neither an id nor fragments yet, unless another
    begins with it: a second entry of one list, or one with a name of its own."""
    if last is None or last.wire_id is not None or last.fragments:
        return None
    return last if not it.at and it.name in (None, last.name) else None
