"""The call state machine: what a wire says about tool calls in, events out.

Rule 1: whatever decides when a call exists, grows or ends is in this file.
Rule 2: this file knows no provider.
Rule 3: parsable is not finished. A call is told whole only with evidence for each of these, else it
ends broken: it was closed, nothing of it may be missing, the wire does not contradict itself about
it, and the turn did not fail under it (``_against`` asks them one by one; ``Evidence`` is a wire's row).

A provider's parser finds the ``Call`` (by index, id, block …) and says one of seven verbs about it.
``TABLE`` has one row for every verb in every state. Two shortcuts pass it by, for speed, and are
proven equal to it (``tests/core/test_shortcuts.py``): ``whole``, and the append of a fragment to an
OPEN call, which ``append``, ``extend`` and three parsers write out.

    hear      its id or name became known        settle  the wire says the whole argument text
    append    a fragment of its arguments        close   the wire says that this call is complete
    announce  the turn is said to have ended     end     it has ended: decide
    break     the stream failed under it

``taint`` is what makes a call doubtful: something that may have been its text could not be read or
placed. It is set off the hot path and asked when a call is told; only a copy of the whole text that
the wire states itself heals it. Fragments are joined once and parsed once. The one thing done per
fragment is a list append.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import Any, NamedTuple, TypeAlias

import msgspec

from ..events import (
    Boundary,
    BrokenReason,
    BrokenToolCall,
    Event,
    FinishReason,
    IdSource,
    Provenance,
    ProviderToolResult,
    RunsOn,
    ToolCall,
    ToolCallDelta,
    ToolCallStart,
    ToolProgress,
    is_tool_name,
)
from ..limits import LimitReached, Limits
from ..notes import DEBUG, INFO, WARNING, Scribe, structure
from ..text.balance import Balance
from ..text.exact import Refused, parse
from ..text.halves import has_half, join, joined
from .copies import Copy, extends, same_value
from .marks import Marks
from .mint import PREFIX, Mint

__all__ = ["ALL", "FUNCTION", "NORMAL", "TABLE", "Call", "Calls", "Evidence", "Kind", "State"]

Out: TypeAlias = list[Event]
Place: TypeAlias = tuple[
    int, Any
]  # of a call, where the wire has places: choice and its words for it


class State(IntEnum):
    """Where a call is in its life."""

    WAITING = 0  # heard of, but without a name, or without id and fragment: not told yet
    OPEN = 1  # started; fragments flow
    CLOSED = 2  # the wire closed it, but the turn must say whether it counts
    OVER = 3  # told, whole or broken; nothing changes it any more


WAITING, OPEN, CLOSED, OVER = State


class Kind(msgspec.Struct, frozen=True, gc=False):
    """What sort of tool is called. ``key`` names the one argument of a tool whose input is text."""

    family: str = "function"
    runs_on: RunsOn = "client"
    key: str | None = None  # None: the argument text is JSON
    id_source: IdSource = "natural"
    own_name: bool = False  # the provider named it: any name is right


FUNCTION = Kind()


class Evidence(NamedTuple):
    """What counts on one wire, in its own words: a parser's row. ``docs/evidence.md`` prints them."""

    closed_by: str = ""  # what closes one call; "": nothing does, the turn's end decides
    restated_by: str = ""  # what states its whole text again
    ended_by: str = ""  # the normal end of the turn
    told: str = ""  # when a call is told


class Call(msgspec.Struct, eq=False, gc=False):
    """A call being told. Mutable and private; events are the values that leave. Nothing that it holds
    can refer back to it."""

    ordinal: int
    choice: int
    kind: Kind
    state: State = WAITING
    id: str = ""  # what results are paired with: the wire's, or minted
    wire_id: str | None = None
    field: str | None = None
    source: IdSource = "synthetic"
    name: str = ""
    started: bool = False
    # Fragments and characters measured so far; of one said all at once, the hash of its text, and its size.
    counted: tuple[int, int] = (0, 0)
    fragments: list[str] = []
    minted: bool = False
    boundary: Boundary = "stated"
    echo: dict[str, Any] | None = None
    given: str = ""  # what its start says of its text: it counts if no fragment follows
    taint: str = ""  # why something of it may be missing
    orphan: bool = False  # begun by text that said neither id nor name: it may be anybody's
    denied: tuple[BrokenReason, str] | None = None  # what its item says against it, or why it broke
    returned: dict[str, Any] | None = None  # what goes back even so, if the provider runs it
    renamed: bool = False  # another name came after it had started: it may be two calls
    objects: int = 0  # its text came as objects, which add up: the fragments when the last one had
    stated: bool = False  # the wire has said the whole of its text
    filled: bool = False  # its text is such a copy, and no fragments
    rival: str | None = None  # a copy of the whole text that contradicts what is held
    retold: Copy | None = None  # it was told, and is said once more in its place
    contradictions: int = 0
    aside: int = 0  # the hash of a copy that may be of its text, or of another's
    misheard: int = 0  # copies in doubtful payloads that said something else
    # Its fragments when a copy said its value in a shorter text, and that: the next is compared with it.
    short: tuple[int, str] = (0, "")
    latches: tuple[int, ...] = ()  # how much was held whenever a snapshot was assumed
    judged: str | None = None  # its text when it was closed, if that was no object
    balance: Balance | None = None  # whether its text may be whole, once somebody has asked
    reach: Balance | None = None  # … and whether a client may take it for that (``last``)
    displaced: bool = False  # it began in the place of another, or in none
    fallback: str = ""  # the field that should have had its id, where another one serves
    seen: Any = None  # what brought it, for the log if its id is missing
    agent: str | None = None  # who calls, where there are several

    @property
    def raw(self) -> str:
        return "".join(self.fragments)

    @property
    def size(self) -> int:
        """Characters of its argument text."""
        return len(self.raw) or self.counted[1]

    def __repr__(self) -> str:
        return f"<Call {self.ordinal} {self.name!r} {self.id!r} {self.state.name}>"


class Calls:
    """All calls of one stream: the list is the truth, whatever keys a parser uses."""

    def __init__(self, scribe: Scribe, mint: Mint, limits: Limits) -> None:
        self.all: list[Call] = []
        self.called: set[int] = set()  # the choices that call something of the client's
        # Tell a start as soon as id and name are known; a wire that may send its names in pieces
        # waits for the first fragment.
        self.eager = True
        self.mended = False  # halves of characters may stand in the fragments
        self.closes = True  # this wire closes each call by a mark of its own
        self.unwraps = True  # arguments are text here, which some write as JSON once more
        # The last characters of a piece that may make a text whole, where that is to be known.
        self.last = ""
        self.both_ways = False  # the payload being read says arguments as text and as objects
        self.lossy = ""  # why the payload that is being read may lack something of a call
        self.lost = False  # something was missing: what looks empty may not be
        self.since = ALL  # calls from this one on are of the payload that is being read
        # How many fragments each open call had when a word for the end came.
        self._at_the_word: dict[int, int] = {}
        self._strays: set[Place] = set()  # places and ids of which something came that is lost
        self._given_up: dict[str | Place, Call] = {}  # those that are void, by ``_key``
        self._told = 0  # characters of the calls that are over
        self._names: set[str] = set()  # names that were looked at
        self._scribe = scribe
        self._mint = mint
        self.limits = limits
        self.marks = Marks()
        self._open: dict[int, Call] = {}  # not over yet, by ordinal
        self._ids: dict[str | Place, Call] = {}  # by ``_key``
        # Calls said all at once under an id that was taken, by that and what they say.
        self._doubles: dict[tuple[int, str | None, int], Call] = {}

    # --- finding --------------------------------------------------------------------------------

    def by_id(self, choice: int, wire_id: str) -> Call | None:
        """The call that the wire calls so."""
        return self._ids.get(_key(choice, wire_id))

    def unfinished(self, choice: int | None = None) -> list[Call]:
        """The calls that have not ended, in order."""
        if choice is None:
            return list(self._open.values())
        return [c for c in self._open.values() if c.choice == choice]

    # --- the verbs, in the order of a call's life -----------------------------------------------

    def open(
        self, out: Out, kind: Kind = FUNCTION, *, choice: int = 0, id: str | None = None,
        field: str | None = None, name: str | None = None, inferred: bool = False, seen: Any = None,
        source: IdSource | None = None, place: Any = None, agent: str | None = None,
        instead: Call | None = None,
    ) -> Call:  # fmt: skip
        """A new call was heard of. It starts as soon as it can be named and identified. ``instead``: the
        one whose place it takes."""
        if len(self.all) >= self.limits.calls:
            raise LimitReached("calls", self.limits.calls)
        if len(self._open) >= self.limits.open_calls:
            raise LimitReached("open_calls", self.limits.open_calls)
        known = self.by_id(choice, id) if id and self.closes and place is not None else None
        if known is not None and known.state < CLOSED:  # what is not closed cannot be another
            self.void(known, out)
        call = Call(len(self.all), choice, kind)
        if inferred:
            call.boundary = "inferred"
        call.seen = seen
        call.field = field
        call.agent = agent
        if self._strays and not self._strays.isdisjoint(((choice, place), (choice, id))):
            call.taint = "arguments came for its place before it began"
        self.all.append(call)
        self._open[call.ordinal] = call
        self.hear(call, out, id=id, field=field, name=name, source=source)
        if instead is not None and id and call.wire_id is None:
            self.taint(call, "its id cannot be read: it may be the call whose place it takes")
        return call

    def hear(
        self, call: Call, out: Out, *, id: str | None = None, field: str | None = None,
        name: str | None = None, source: IdSource | None = None,
    ) -> None:  # fmt: skip
        """An id or a name of this call."""
        if self.mended:
            id, name = self._sound_names(id, name)
        if id and id != call.wire_id:
            self._identify(call, id, field, source or call.kind.id_source)
        if name and name != call.name:
            self._name(call, name)
        TABLE["hear", call.state](self, call, "", out)

    def _sound_names(self, id: str | None, name: str | None) -> tuple[str | None, str | None]:
        """With half a character in it an id or a name is none: the wire may say it again."""
        id, name = join(id or ""), join(name or "")
        if has_half(id) or has_half(name):
            self._scribe.note("wire.half_character")
        return (None if has_half(id) else id), (None if has_half(name) else name)

    def alias(self, call: Call, id: str) -> None:
        """One more id for a call that has one: it is found by both, and keeps the first."""
        if len(id) > self.limits.id:
            raise LimitReached("id", self.limits.id)
        if len(self._ids) < self.limits.calls * 2:
            self._ids.setdefault(_key(call.choice, id), call)
        self._scribe.note("call.id_changed", call_id=call.id)

    def append(self, call: Call, text: str, out: Out) -> None:
        """A fragment of its arguments. The hot verb: the usual state is asked first."""
        if call.state is OPEN:
            call.fragments.append(text)
            out.append(ToolCallDelta(call.ordinal, text, call.agent))
            if text and text[-1] in self.last:
                self._ripen_if_whole(call)
        else:
            TABLE["append", call.state](self, call, text, out)

    def extend(self, call: Call, text: str, out: Out) -> None:
        """As ``append``, for wires that may say everything again: only the news are kept."""
        if (
            text[0] == "{"
            and call.fragments
            and call.kind.key is None  # any text may begin as what came before it
            and not (text := self._news(call, text))
        ):
            return
        if call.state is OPEN:  # as append, one function call less
            call.fragments.append(text)
            out.append(ToolCallDelta(call.ordinal, text))
            if text[-1] in self.last:
                self._ripen_if_whole(call)
        else:
            TABLE["append", call.state](self, call, text, out)

    def ask_whether_text(self, call: Call) -> None:
        """More text comes for it. Was it an object, where it cannot be told which ones were?"""
        if self.both_ways and call.fragments:
            self.taint(call, "its arguments may have come as text and as an object")

    def settle(self, call: Call, text: str, out: Out) -> None:
        """The wire's own copy of the whole argument text."""
        if not self.marks.eager:  # what closes it is still to come
            self._ripen(call)
        TABLE["settle", call.state](self, call, text, out)

    def restate(self, call: Call, text: str, out: Out) -> None:
        """As ``settle``; of a call that was told, a copy that says something else is broken. What the
        provider runs may know more of its input when it is done."""
        asked = call.contradictions
        self.settle(call, text, out)
        told = call.state is OVER and call.denied is None
        if not told or (asked, call.contradictions) != (0, 1):  # the first one is told
            return
        if call.kind.runs_on == "client" or not extends(text, call.raw):
            self._break_copy(call, call.name, text, out)

    def is_whole(self, call: Call) -> bool:
        """Is its text one whole object by now? However often it is asked, the text is read once."""
        if call.objects and call.objects == len(call.fragments):
            return True
        return self._balance(call).is_whole(call.fragments)

    def _balance(self, call: Call) -> Balance:
        if call.balance is None:
            call.balance = Balance()
        return call.balance

    def may_go_on(self, call: Call) -> bool:
        """Is it text, one object of several, or a placeholder: whole, and yet perhaps not all?"""
        if call.kind.key is not None or call.objects:
            return True
        # Asked at every word for the end: a long text is not joined each time.
        return self._size(call) <= 64 and _is_placeholder(call)

    def replace(self, call: Call, text: str) -> None:
        """Forget the fragments for this text; nothing is told, what was told stays told."""
        held = call.fragments if call.retold is None else call.retold.fragments
        held[:] = [text] if text else []
        call.counted, call.balance, call.reach, call.short = (0, 0), None, None, (0, "")

    def merge_object(self, call: Call, text: str, out: Out) -> None:
        """One more object of arguments for the same call: keys are added, never lost."""
        fragments = call.fragments
        if not fragments or call.state >= CLOSED:
            self.append(call, text, out)
            call.objects = len(fragments)  # one, unless it came too late
            return None
        if self.closes:  # nobody was seen to send several where calls have a closing mark
            return self.taint(call, "an object came behind other arguments")
        size = self._size(call)
        if size == len(text) and call.raw == text:
            return self._scribe.note("args.repeated", call_id=call.id)
        if not call.objects:
            return self.taint(call, "an object came between the fragments of its arguments")
        inner = text.strip()[1:-1].strip()
        if not inner:
            return None
        self._scribe.note("args.merged", call_id=call.id)
        # The closing brace is a fragment of its own from here on, so that what is held is not copied.
        last = fragments.pop()
        fragments.append(stem := last.rstrip()[:-1])
        glue = "" if len(fragments) == 1 and not stem.strip()[1:] else ","
        fragments += [glue + inner, "}"]
        size += len(stem) - len(last) + len(glue) + len(inner) + 1
        call.objects, call.counted, call.balance = len(fragments), (len(fragments), size), None

    def whole(
        self, out: Out, text: str, kind: Kind, choice: int, id: str | None, field: str | None,
        name: str | None, echo: dict[str, Any] | None, seen: Any,
    ) -> Call:  # fmt: skip
        """A call that the wire says all at once: ``open``, ``append`` and ``close`` in one.

        The usual case is written out, as some wires say thousands of calls so (``make bench``).
        """
        ordinal, size, limits, scribe = len(self.all), len(text), self.limits, self._scribe
        arguments: Any = None
        key = (choice, id) if choice else id  # as ``_key``
        if (
            id
            and name in self._names  # so it is neither too long nor odd
            and key not in self._ids
            and len(id) <= limits.id
            and ordinal < limits.calls
            and len(self._open) < limits.open_calls
            and size <= limits.arguments
            and self._told + size <= limits.arguments_total
            and kind.key is None
            and scribe.info_on is False
            and not (self.mended or self.lossy or self._given_up)
        ):
            try:
                arguments = parse(text, limits.depth)
            except Refused:
                arguments = None  # the steps will say why
        if type(arguments) is not dict or not id or not name or not key:
            return self._whole_by_steps(out, text, kind, choice, id, field, name, echo, seen)
        source, family, runs_on = kind.id_source, kind.family, kind.runs_on
        mark = hash(text.replace("\n", "")), size
        call = Call(ordinal, choice, kind, OVER, id, id, field, source, name, True, mark, _NONE)
        self._told += size
        self.all.append(call)
        self._ids[key] = call
        if runs_on == "client":
            self.called.add(choice)
            if self.marks.behind_ripe is None:
                self.marks.ripen_whole()
        origin = Provenance(source, id, field, "stated", scribe.provider, scribe.response_id)
        out.append(ToolCallStart(ordinal, id, name, family, runs_on))
        out.append(ToolCallDelta(ordinal, text))
        out.append(
            ToolCall(ordinal, id, name, arguments, text, family, runs_on, choice, origin, echo)
        )
        return call

    def _whole_by_steps(
        self, out: Out, text: str, kind: Kind, choice: int, id: str | None, field: str | None,
        name: str | None, echo: dict[str, Any] | None, seen: Any,
    ) -> Call:  # fmt: skip
        # Most streams have no doubles, and the hash of a long text takes its time.
        flat = text.replace("\n", "")  # in JSON it can only stand between two words
        double = self._doubles.get((choice, id, hash(flat))) if self._doubles else None
        for known in (self.by_id(choice, id or ""), double):
            before = known is not None and known.ordinal < self.since and not self.lossy
            if known is not None and before and _says(known, kind, name, flat):
                self._scribe.note("call.start_repeated", call_id=known.id)
                return known
        call = self.open(out, kind, choice=choice, id=id, field=field, name=name, seen=seen)
        if call.minted:  # its id is another's
            self._doubles[choice, id, hash(flat)] = call
        call.echo = echo
        if text:
            self.append(call, text, out)
        self.close(call, out)
        return call

    def give(self, call: Call, text: str, out: Out) -> None:
        """No fragment followed its start, which said all of its text: that was in time."""
        self.append(call, text, out)
        self._at_the_word.pop(call.ordinal, None)

    def close(self, call: Call, out: Out) -> None:
        """The wire says that this call is complete."""
        TABLE["close", call.state](self, call, "", out)
        if call.denied or call.state is not OVER:
            self._ripen(call)

    def ripen_open(self) -> None:
        """A word for the end of the turn came, good or bad: a client may run what it has heard of."""
        for call in self._open.values():
            self._ripen(call)
        if self.marks.broke is not None:
            self.marks.ripen()

    def _ripen(self, call: Call) -> None:
        if call.kind.runs_on == "client":
            self.marks.ripen()

    def watch(self) -> None:
        """Where nothing closes a call, some clients run it when its text is an object: let that be known."""
        self.last = "} \t\r\n"

    def _ripen_if_whole(self, call: Call) -> None:
        if self.closes or call.kind.key is not None or self.marks.behind_ripe is not None:
            return
        if call.reach is None:
            call.reach = Balance()
        if call.reach.is_even(call.fragments):
            self._ripen(call)

    def is_odd(self, ordinal: int, told: str, *, needs_id: bool = True) -> bool:
        """Has this call, which was told under that id, another id or place than its wire should give?
        Not every wire needs one."""
        call = self.all[ordinal]
        if not needs_id and call.wire_id is None:
            return call.displaced
        meant = call.kind.id_source
        minted = told.startswith(PREFIX) and meant != "synthetic"
        return call.displaced or minted or call.source != meant

    def deny(self, call: Call, reason: BrokenReason, why: str) -> None:
        """The wire says that this call is not all there; what is said of it later may take it back."""
        call.denied = reason, why

    def hear_word(self) -> None:
        """The word for the end came, and the end itself is still to come: no text belongs between them."""
        self._at_the_word = self.sizes()

    def announce_end(self, out: Out, reason: FinishReason, choice: int | None = None) -> None:
        """A word for the end came: whole objects cannot go on. More may still come for the rest."""
        self._doubt_for_the_nameless(choice)
        for call in self.unfinished(choice):
            TABLE["announce", call.state](self, call, reason, out)
            if call.state is not OVER:
                return  # calls are told in their order

    def end_turn(self, out: Out, reason: FinishReason | None, choice: int | None = None) -> None:
        """The turn ended: every call of it counts now, or never. None: it did not say how."""
        self._doubt_for_the_nameless(choice)
        self._doubt_the_empty(choice)
        for call in self.unfinished(choice):
            TABLE["end", call.state](self, call, reason, out)

    def end(self, call: Call, reason: FinishReason, out: Out) -> None:
        """This one counts now, or never: the wire says so before the turn has ended."""
        TABLE["end", call.state](self, call, reason, out)

    def _doubt_for_the_nameless(self, choice: int | None) -> None:
        """Text of a call that was never named is text that no call claims."""
        bare = [c for c in self.unfinished(choice) if c.fragments and (c.orphan or not c.name)]
        for where in dict.fromkeys(call.choice for call in bare):
            self.taint_open("arguments came that belong to no call we know", where)

    def _doubt_the_empty(self, choice: int | None) -> None:
        """Text behind the whole object of one call is another's, perhaps that of one that has none."""
        calls = [call for call in self.unfinished(choice) if call.kind.key is None]
        if not all(call.fragments for call in calls):
            self.lost = self.lost or any(self._balance(c).is_too_much(c.fragments) for c in calls)

    def _doubt_behind(self, call: Call) -> None:
        """It broke. If it is a whole object and more, that may have been of one that is not decided yet."""
        if not self.closes and self._balance(call).is_too_much(call.fragments):
            self.taint_open("text came behind the whole object of another call", call.choice)

    # --- doubt ----------------------------------------------------------------------------------

    def taint(self, call: Call, why: str) -> None:
        """Something of this call may be missing. Of one that was told, nothing can be."""
        self.lost = True
        if call.state is not OVER and not call.taint:
            self._scribe.note("call.tainted", call_id=call.id, call=call.ordinal, reason=why)
            call.taint = why

    def taint_open(self, why: str, choice: int | None = None) -> None:
        """Something is missing, and it cannot be said of which call."""
        self.lost = True
        for call in self.unfinished(choice):
            self.taint(call, why)

    def textless(self, call: Call) -> None:
        """A fragment came without its text. For a closed call it may have been another's, as in ``_late``."""
        if call.state < CLOSED:
            self.taint(call, "a fragment came without its text")
        else:
            self.taint_open("a textless fragment came for a call that was closed", call.choice)

    def hollow(self, call: Call) -> None:
        """A piece came that says nothing: in the midst of a text it lost what it had."""
        if call.fragments and not self.is_whole(call):
            self.textless(call)

    def astray(self, place: Any = None, choice: int = 0, **where: Any) -> None:
        """Argument text came that no call claims: it may have been any open one's. Where its choice has
        none, the number of the choice may be what is wrong."""
        self.doubt_next(choice, place)
        self._scribe.note("call.unannounced", **where)
        whose = choice if self.unfinished(choice) else None
        self.taint_open("arguments came that belong to no call we know", whose)

    def doubt_next(self, choice: int, key: Any) -> None:
        """A call that begins under this id, or in this place, may have lost what came before."""
        if key is not None and len(self._strays) < self.limits.calls:
            self._strays.add((choice, key))

    def sizes(self) -> dict[int, int]:
        """How many fragments each open call has: what a doubtful payload grew can be told by it."""
        return {ordinal: len(call.fragments) for ordinal, call in self._open.items()}

    def pieces(self) -> int:
        """How many fragments the open calls have, all together."""
        count = 0
        for call in self._open.values():  # asked twice for each event off the hot path: no list
            count += len(call.fragments)
        return count

    def taint_grown(self, since: dict[int, int], why: str) -> bool:
        """The payload just read lacks something: so may every call that it began or added to. Any?"""
        grown = [c for n, c in self._open.items() if len(c.fragments) != since.get(n)]
        for call in grown:
            self.taint(call, why)
        return bool(grown)

    def restarts(self, held: Call | None, id: str | None, name: str | None, out: Out) -> bool:
        """A start came for the place of ``held``: is it the same one said again? Else that one is void.

        Id and name said again are the same call only if nothing of it was heard yet, or if it was told: then
        what follows is held against that. What is closed under another id stays: a wire may use a place twice.
        """
        if held is None:
            return False
        same = bool(id) and id == held.wire_id
        if held.state is OVER:
            return same and self._retell(held, name)
        if held.state is CLOSED and not same:
            return False
        fresh = held.state is not CLOSED and not held.fragments and not held.taint
        if same and fresh and name == held.name:
            self._scribe.note("call.start_repeated", call_id=held.id)
            return True
        self.void(held, out)
        return False

    def again(self, held: Call | None, id: str | None, out: Out) -> Call | None:
        """Where starts say no place, one of an id that was told is that call, said again: ``held``, which
        is the last one, is begun no more."""
        told = self.by_id(0, id or "")
        if told is None or told.state is not OVER or told.denied is not None:
            return held
        if held is not None and held.state < CLOSED:
            self.void(held, out)
        return told

    def _retell(self, call: Call, name: str | None) -> bool:
        """It was told, and begins again under its id: is it a copy? One that broke may be tried again."""
        if call.denied is not None:
            return False
        self._scribe.note("call.start_repeated", call_id=call.id)
        call.retold = Copy(self.limits, name or "")
        return True

    def has_text(self, call: Call) -> bool:
        """Has anything been heard of its arguments, or of its copy's?"""
        return bool(call.fragments if call.retold is None else call.retold.fragments)

    def void(self, call: Call, out: Out) -> None:
        """It was begun again, here or elsewhere, and will not be finished."""
        if call.wire_id is not None and self.by_id(call.choice, call.wire_id) is call:
            key = _key(call.choice, call.wire_id)
            del self._ids[key]  # the one that is told may need it
            self._given_up[key] = call
        if call.taint:
            self.doubt_next(call.choice, call.wire_id)
        self.lost = self.lost or bool(call.fragments)
        self.fail(call, "conflict", "it was begun again before it was whole", out)

    def break_all(self, out: Out, reason: BrokenReason, detail: str) -> None:
        """The stream failed: what is not whole by now never will be."""
        for call in self.unfinished():
            self.fail(call, reason, detail, out)

    def fail(self, call: Call, reason: BrokenReason, detail: str, out: Out) -> None:
        """This call is broken."""
        TABLE["break", call.state](self, call, (reason, detail), out)

    def measure(self) -> None:
        """Hold the open calls against the limits; only asked once a stream is long enough to matter."""
        held = [self._size(call) for call in self._open.values()]
        self._bound(max(held, default=0), self._told + sum(held))

    def _bound(self, size: int, total: int) -> None:
        limits = self.limits
        if size > limits.arguments:
            raise LimitReached("arguments", limits.arguments)
        if total > limits.arguments_total:
            raise LimitReached("arguments_total", limits.arguments_total)

    def _size(self, call: Call) -> int:
        """Characters held; each fragment is counted once, whenever somebody first asks."""
        since, size = call.counted
        size += sum(map(len, call.fragments[since:]))
        call.counted = len(call.fragments), size
        return size

    # --- what the provider runs itself ----------------------------------------------------------

    def result(
        self, out: Out, output: Any, *, id: str | None, family: str, call: Call | None = None,
        choice: int = 0, is_error: bool = False, echo: dict[str, Any] | None = None,
    ) -> None:  # fmt: skip
        """What a provider-run tool produced; paired by call or by id, an orphan is told too.

        ``family`` is what its own item says of its tool; that of the call counts before it.
        """
        call = call or self.by_id(choice, id or "")
        if call is None:
            self._scribe.note("result.orphan", call_id=id or "")
            id = id or self._mint.id(len(self.all), "orphan")
        out.append(
            ProviderToolResult(
                call.ordinal if call else None, call.id if call else id or "", output, is_error,
                msgspec.UNSET if echo is None else echo, call.kind.family if call else family,
            )
        )  # fmt: skip

    def progress(
        self, out: Out, call: Call | None, status: str, payload: Any = None, *, id: str = ""
    ) -> None:
        """How far a provider-run tool is."""
        event = ToolProgress(call.ordinal if call else None, call.id if call else id, status)
        if payload is not None:
            event = ToolProgress(event.call, event.id, status, payload)
        out.append(event)

    # --- identity -------------------------------------------------------------------------------

    def _identify(self, call: Call, id: str, field: str | None, source: IdSource) -> None:
        """Natural beats conflated beats minted, and of two alike the last counts, until it is told."""
        if len(id) > self.limits.id:
            raise LimitReached("id", self.limits.id)
        known = self.by_id(call.choice, id)
        if known is None and len(self._ids) < self.limits.calls * 2:  # it may change all the time
            self._ids[_key(call.choice, id)] = call
        if call.wire_id is not None:
            if call.state is not OVER and _RANK[source] < _RANK[call.source]:
                return None  # one more name for it, and no better one
            better = call.state is not OVER and _RANK[source] > _RANK[call.source]
            self._scribe.note("call.id_late" if better else "call.id_changed", call_id=id)
            if call.state is OVER or known not in (None, call):
                return None
        elif known not in (None, call):
            call.wire_id, call.field = id, field
            self._scribe.note("call.id_duplicate", call_id=id)
            return self._mint_id(call)
        elif call.minted:
            self._scribe.note("call.id_late", call_id=id)
        call.wire_id, call.field = id, field
        call.id, call.source, call.minted = id, source, False

    def _mint_id(self, call: Call) -> None:
        call.id, call.source, call.minted = self._mint.id(call.ordinal), "synthetic", True

    def _name(self, call: Call, name: str) -> None:
        if len(call.name) + len(name) > self.limits.name:
            raise LimitReached("name", self.limits.name)
        if call.started:
            self._scribe.note("call.name_changed", call_id=call.id)
            call.renamed = True
        else:
            call.name = name

    def _start_if_ready(self, call: Call, _: str, out: Out) -> None:
        """A start is told once there is a name, and an id or a fragment (else an id may still come)."""
        if call.name and (call.fragments or (self.eager and call.id)):
            self._start(call, out)

    def _start(self, call: Call, out: Out) -> None:
        if not call.id:
            self._mint_for_want_of_one(call)
        call.started = True
        call.state = OPEN
        if not call.kind.own_name:
            self._look_at(call.name)
        out.append(
            ToolCallStart(
                call.ordinal, call.id, call.name, call.kind.family, call.kind.runs_on, call.agent
            )
        )
        if call.fragments:
            out.append(ToolCallDelta(call.ordinal, call.raw, call.agent))
            if self.last:
                self._ripen_if_whole(call)
        if self._scribe.is_on(DEBUG):
            self._scribe.log(
                DEBUG,
                "tool_call.started",
                call_id=call.id,
                id_source=call.source,
                wire_field=call.field,
                name=call.name,
                call=call.ordinal,
            )

    def _look_at(self, name: str) -> None:
        if name not in self._names:
            self._names.add(name)
            if not is_tool_name(name):
                self._scribe.note("call.name_invalid", name=name)

    def _mint_for_want_of_one(self, call: Call) -> None:
        self._mint_id(call)
        self._scribe.note(
            "call.id_synthetic", call_id=call.id, call=call.ordinal, name=call.name,
            reason=f"no id in {call.field or 'the payload'}",
            strategy="minted: HMAC of the stream's secret and the call's number",
            structure=structure(call.seen),
        )  # fmt: skip

    # --- growing --------------------------------------------------------------------------------

    def _hold(self, call: Call, text: str, out: Out) -> None:
        call.fragments.append(text)
        self._start_if_ready(call, "", out)

    def _late(self, call: Call, text: str, out: Out) -> None:
        """Text for a call that was closed: its own, its copy's, or that of another in a garbled place."""
        if call.retold is not None:
            call.retold.hear(text)
        elif text:
            self._scribe.note("call.late", call_id=call.id)
            self.taint_open("arguments came for a call that was closed", call.choice)

    def _news(self, call: Call, text: str) -> str:
        """What ``text`` adds, if it says again what is held; else all of it.

        Nothing is compared unless ``text`` is at least as long as what is held: the work is linear. An empty
        object gives way to the first character of one.
        """
        if len(text) < self._size(call) and call.fragments != ["{}"]:
            return text
        held = call.raw
        if text == held:
            if not _whole(held):
                return text
            self._scribe.note("args.repeated", call_id=call.id)
            return ""
        if text.startswith(held):
            self._scribe.note("args.cumulative", call_id=call.id)
            # It may also be a fragment that begins like the whole: what was sent is tried first.
            call.latches += (len(held),)
            return text[len(held) :]
        if _is_placeholder(call):
            self._scribe.note("args.placeholder", call_id=call.id)
            self.replace(call, "")
            call.objects = 0
        return text

    def _compare(self, call: Call, text: str, out: Out) -> None:
        """The wire states the whole text: it fills a gap, confirms what is held, or contradicts it."""
        if not text:
            if call.fragments:
                self._scribe.note("args.done_empty", call_id=call.id)
            if call.filled:  # a copy alone said it, and another says that there is nothing
                call.rival = ""
            return None
        if call.contradictions > MOST_CONTRADICTIONS:
            return None  # nothing can make this call whole any more
        if self.lossy and call.misheard > MOST_CONTRADICTIONS:
            return None  # it would change nothing, and what is held may be long
        if call.aside not in (0, hash(text)):
            return None  # two copies, and nobody knows which is its own
        held = _shortest(call) if len(text) != self._size(call) else call.raw
        if self.mended:
            held, text = join(held), join(text)
        if len(call.fragments) > 1 and text == held and len(text) == self._size(call):
            self.replace(call, held)  # what is confirmed is not joined again
        if not held and call.stated:  # its own item says that there is none
            return self._contradict(call, held, text)
        if not held:
            self._fill(call, text, out)
        elif not (text == held or _is_value_of(call, held, text)):
            return self._contradict(call, held, text)
        call.rival = None
        if self.lossy:
            call.filled = True  # no proof, but a copy: another that differs is a contradiction
        else:
            call.taint = ""  # this is the wire's own word for all of it
            call.stated = True

    def _fill(self, call: Call, text: str, out: Out) -> None:
        call.filled = True
        if call.state is CLOSED:
            call.fragments.append(text)
        else:
            self.append(call, text, out)
        if self.lossy:
            self.taint(call, self.lossy)

    def _contradict(self, call: Call, held: str, text: str) -> None:
        """Fragments that cannot be all give way to the copy; else two words stand against each other."""
        self._scribe.note("args.mismatch", call_id=call.id)
        if self.lossy:
            call.misheard += 1
            return
        copied = call.stated or call.filled or call.rival is not None  # there was another copy
        if not copied and (call.taint or not _could_be_all(call.kind, held, text)):
            self.replace(call, text)
            call.taint, call.rival, call.latches, call.stated = "", None, (), True
        else:
            call.contradictions += 1
            call.rival = text

    def _compare_over(self, call: Call, text: str, out: Out) -> None:
        if call.retold is not None:
            return self.replace(call, text)
        if text and not _is_text_of(call, self._mended(text)):
            self._scribe.note("args.mismatch", call_id=call.id)

    def _mended(self, text: str) -> str:
        return join(text) if self.mended else text

    # --- ending ---------------------------------------------------------------------------------

    def _close(self, call: Call, _: Any, out: Out) -> None:
        """A whole object is a call at once; the rest waits for the turn's end."""
        if self.lossy:
            self.taint(call, self.lossy)
        doubt = self._doubt(call)
        if call.name and doubt is None:
            arguments = self._arguments(call)
            if type(arguments) is dict:
                return self._tell(call, arguments, out)
        if call.name and call.fragments and (doubt is None or self.mended):
            self.replace(call, call.raw)
            call.judged = call.fragments[0]
        if call.name and not call.started:
            self._start(call, out)
        call.state = CLOSED

    def _close_again(self, call: Call, _: Any, out: Out) -> None:
        """The mark comes again: a text that was no object is read again only if it is another one."""
        if len(call.fragments) != 1 or call.fragments[0] is not call.judged:
            self._close(call, "", out)

    def _close_copy(self, call: Call, _: Any, out: Out) -> None:
        """A call that was told is closed again: a copy that said something else is broken.

        Two that may be one are never both told.
        """
        copy, call.retold = call.retold, None
        if copy is None:
            return
        silent = not copy.text.strip()  # nothing, where it said something, is no other word
        if copy.name not in ("", call.name) or not (silent or _is_text_of(call, copy.text)):
            self._break_copy(call, copy.name, copy.text, out)

    def _break_copy(self, call: Call, name: str, text: str, out: Out) -> None:
        other = self.open(
            out, call.kind, choice=call.choice, id=call.wire_id, field=call.field, name=name,
            agent=call.agent,
        )  # fmt: skip
        self.append(other, text, out)
        self.fail(other, "conflict", "it was told before, and says something else now", out)

    def _announce(self, call: Call, reason: FinishReason, out: Out) -> None:
        """Where nothing closes a call, a whole object is told when its turn is said to have ended."""
        if self.closes or self.may_go_on(call):
            return
        first, balance = call.balance is None, self._balance(call)
        if not first and (balance.refused or not self.is_whole(call)):
            return  # some say it on every chunk: what was not whole before is read but once more
        if reason not in _ENOUGH or call.taint or self._doubt(call):
            return
        arguments = self._arguments(call)
        if type(arguments) is dict:
            self._end(call, reason, out, arguments)
        else:
            balance.refused = balance.is_whole(call.fragments)  # nothing can make it one

    def _end(
        self, call: Call, reason: FinishReason | None, out: Out, arguments: Any = None
    ) -> None:
        """The turn ended: decide."""
        why = self._against(call, reason)
        if why is not None:
            return self._break(call, why, out)
        if arguments is None:  # nobody has read them yet
            arguments = self._arguments(call)
        if arguments is NOTHING:
            arguments = {} if call.kind.key is None else {call.kind.key: ""}
        if type(arguments) is not dict:
            self._break(call, _why_broken(arguments, reason), out)
            return self._doubt_behind(call)
        if self.closes and call.state is not CLOSED:
            self._scribe.note("call.unclosed", call_id=call.id)
        self._tell(call, arguments, out)

    def _doubt(self, call: Call) -> tuple[BrokenReason, str] | None:
        """What speaks against a call whenever it would be told."""
        if call.denied is not None:
            return call.denied
        if call.renamed or self._began_otherwise(call):
            return "conflict", "it began otherwise than it is told: it may be two calls"
        if call.objects not in (0, len(call.fragments)):
            return "conflict", "text came behind an object of its arguments"
        if self.mended and has_half(join(call.raw)):
            return "conflict", "half of a character of its arguments never came"
        if call.rival is not None:
            sizes = f"{len(call.raw)} and {len(call.rival)} characters"
            return "conflict", f"the wire says its arguments twice, and differently ({sizes})"
        if taint := call.taint or self.lossy:
            return "conflict", taint
        return None

    def _began_otherwise(self, call: Call) -> bool:
        """Was it given up before, under its id and another name, or with another whole input? Where nothing
        closes a call, what followed its text may not be all of it, either."""
        void = self._void_of(call)
        if void is None:
            return False
        if void.name not in ("", call.name) or not _agrees(call, void.given):
            return True
        return not self.closes and bool(void.fragments)

    def _void_of(self, call: Call) -> Call | None:
        """The one that was given up under its id."""
        return self._given_up.get(_key(call.choice, call.wire_id or "")) if self._given_up else None

    def _against(self, call: Call, reason: FinishReason | None) -> tuple[BrokenReason, str] | None:
        """What speaks against a call at the end of its turn; None: all evidence is there."""
        if not call.name:
            return "conflict", "the wire never named this call"
        if (doubt := self._doubt(call)) is not None:
            return _cut(reason, doubt[1]) if doubt[0] == "truncated" else doubt
        closed = call.state is CLOSED
        empty = not any(map(str.strip, call.fragments))  # usually the first one says it
        if empty and (self.lost or (not self.closes and self._void_of(call) is not None)):
            return _LOST
        # Only a whole object is told without its closing mark, and only where nothing else is odd.
        odd = empty or call.kind.key is not None or self._is_late(call)
        odd = odd or (self.lost and not call.stated)
        odd = odd or (call.minted and call.wire_id is not None)  # under the id of another
        if not closed and self.closes and odd:
            return _cut(reason, "the wire never closed this call")
        if empty or (call.kind.key is not None and not closed):
            return None if reason in NORMAL else _cut(reason, f"no end of it came, {_how(reason)}")
        enough = NORMAL if self.closes else _ENOUGH
        if not closed and reason not in enough and (self.closes or reason is not None):
            return _cut(reason, f"the wire closes no call by itself, {_how(reason)}")
        return None

    def _is_late(self, call: Call) -> bool:
        """Did a part of its text come after a word for the end?"""
        size = self._at_the_word.get(call.ordinal)
        return size not in (None, len(call.fragments)) and not call.stated

    def _arguments(self, call: Call) -> Any:
        """The arguments as a dict, ``NOTHING`` for no text, or what is wrong with them."""
        raw = self._mended(call.raw)
        self._bound(len(raw), self._told + len(raw))
        if self.mended:
            self.replace(call, raw)
        if call.kind.key is not None:
            return {call.kind.key: raw} if raw else NOTHING
        if not raw or raw.isspace():
            return NOTHING
        if call.latches:
            if (value := self._as_sent(call, raw)) is not None:
                return value
            if _goes_on_behind_a_snapshot(call):
                return Refused("some of its pieces say all that came before again, and some go on")
        try:
            value = parse(raw, self.limits.depth)
        except Refused as refused:
            return refused
        if type(value) is dict and len(call.fragments) > 1:
            self.replace(call, raw)  # it is decided now: not to be joined again
        return self._unwrapped(call, value) if type(value) is str and self.unwraps else value

    def as_pieces(self, call: Call) -> None:
        """Snapshots were assumed, and the wire says that it has none: it is what the fragments were."""
        if self._sent_size(call) > self.limits.arguments:
            raise LimitReached("arguments", self.limits.arguments)
        self.replace(call, _sent(call))
        call.latches = ()

    def _sent_size(self, call: Call) -> int:
        return self._size(call) + sum(call.latches)

    def _as_sent(self, call: Call, raw: str) -> Any:
        """Snapshots, which begin as objects, were assumed: is it one just as the fragments were sent?"""
        if self._sent_size(call) > self.limits.arguments:
            return None
        heard = _sent(call)
        try:
            value = parse(heard, self.limits.depth)
        except Refused:
            return None
        self.replace(call, heard)
        call.latches = ()
        return value

    def _unwrapped(self, call: Call, text: str) -> Any:
        try:
            value = parse(text, self.limits.depth)
        except Refused:
            return text
        if type(value) is not dict:
            return text
        self._scribe.note("args.double_encoded", call_id=call.id)
        return value

    def _tell(self, call: Call, arguments: dict[str, Any], out: Out) -> None:
        if not call.started:
            self._start(call, out)
        self._over(call)
        if call.kind.runs_on == "client":
            self.called.add(call.choice)
            self.marks.ripen_whole()
        kind = call.kind
        out.append(
            ToolCall(
                call.ordinal,
                call.id,
                call.name,
                arguments,
                call.raw,
                kind.family,
                kind.runs_on,
                call.choice,
                self._provenance(call),
                call.echo,
                call.agent,
            )
        )
        if self._scribe.is_on(INFO):
            self._scribe.log(
                INFO,
                "tool_call.finished",
                call_id=call.id,
                id_source=call.source,
                wire_field=call.field,
                name=call.name,
                call=call.ordinal,
                size=len(call.raw),
            )

    def _break(self, call: Call, why: tuple[BrokenReason, str], out: Out) -> None:
        reason, detail = call.denied = why
        if call.given and not call.fragments:  # nothing took its place: it is what was heard
            self._hold_given(call, out)
        if call.name and not call.started:
            self._start(call, out)
        if not call.id:
            self._mint_id(call)
        self._over(call)
        raw = joined(call.raw) if self.mended else call.raw
        kind = call.kind
        if kind.runs_on == "client":
            self.marks.cut = True
            if reason != "length" and self.marks.broke is None:
                self.marks.broke = call.name
        out.append(
            BrokenToolCall(
                call.ordinal,
                call.id,
                call.name,
                raw,
                reason,
                detail,
                kind.family,
                kind.runs_on,
                call.choice,
                self._provenance(call),
                msgspec.UNSET if call.returned is None else call.returned,
                call.agent,
            )
        )
        self._scribe.log(
            WARNING, "tool_call.broken", call_id=call.id, id_source=call.source, name=call.name,
            call=call.ordinal, size=len(raw), reason=reason,
        )  # fmt: skip

    def _hold_given(self, call: Call, out: Out) -> None:
        call.fragments.append(call.given)
        if call.started:
            out.append(ToolCallDelta(call.ordinal, call.given, call.agent))

    def _over(self, call: Call) -> None:
        if call.fallback and call.source == "conflated":
            self._scribe.note(
                "call.id_conflated", call_id=call.id, call=call.ordinal, name=call.name,
                reason=f"no id in {call.fallback}", strategy=f"taken from {call.field}",
                structure=structure(call.seen),
            )  # fmt: skip
        call.state = OVER
        raw = call.raw
        if len(call.fragments) > 1:  # joined for good
            self.replace(call, raw)
        self._told += len(raw)
        del self._open[call.ordinal]

    def _provenance(self, call: Call) -> Provenance:
        scribe = self._scribe
        return Provenance(
            call.source, call.wire_id, call.field if call.wire_id else None, call.boundary,
            scribe.provider, scribe.response_id,
        )  # fmt: skip

    def _ignore(self, call: Call, _: Any, out: Out) -> None:
        """Said again; it changes nothing."""


_NONE: Any = ()  # the fragments of a call that was said all at once: it never grows
ALL = 1 << 60  # more calls than there can be
UNPLACED = "another that says no place was open: whose the pieces are, nobody can know"
BEGUN_LATE = "it began after the end of its turn was said"
NOTHING = object()  # no argument text at all, which is not the text "null"
_RANK: dict[IdSource, int] = {"synthetic": 0, "conflated": 1, "natural": 2}
MOST_CONTRADICTIONS = 2  # beyond, a call cannot be told any more, whatever is said again
NORMAL = frozenset({"stop", "tool_calls", "pause"})  # ends of a turn whose calls may be run
_ENOUGH = {*NORMAL, "length"}  # for a whole object, which no token limit can have cut
_LOST: tuple[BrokenReason, str] = (
    "conflict",
    "no arguments came for this call, but something was lost that may have been them",
)


def _key(choice: int, id: str) -> str | Place:
    """Of an id, which is of one choice; most streams have one, and no need of a tuple for each call."""
    return (choice, id) if choice else id


def _sent(call: Call) -> str:
    """Its fragments as they were sent, before snapshots were assumed."""
    raw, at, sent = call.raw, 0, list[str]()
    for held in call.latches:
        sent += [raw[at:held], raw[:held]]
        at = held
    return "".join((*sent, raw[at:]))


def _goes_on_behind_a_snapshot(call: Call) -> bool:
    """Who sends snapshots sends nothing else: each piece behind the first one is the news of another."""
    at = 0
    for fragment in call.fragments:
        if at > call.latches[0] and at not in call.latches:
            return True
        at += len(fragment)
    return False


def _how(reason: FinishReason | None) -> str:
    return f"and the turn ended with {reason or 'no reason'}"


def _cut(reason: FinishReason | None, detail: str) -> tuple[BrokenReason, str]:
    return (
        ("length", "the token limit fell inside it")
        if reason == "length"
        else ("truncated", detail)
    )


def _says(call: Call, kind: Kind, name: str | None, text: str) -> bool:
    """Was this call told, or closed, just so? No text and an empty object are the same arguments."""
    told = call.state >= CLOSED and call.denied is None
    if not told or (call.kind, call.name) != (kind, name):
        return False
    if kind.key is None and text in ("", "{}"):
        return not call.size or _is_text_of(call, "{}")
    return _is_text_of(call, text)


def _agrees(call: Call, given: str) -> bool:
    """Is its text what was said of it before, as a whole? What the provider runs may know more by then."""
    raw = call.raw
    if raw == given or not given:
        return True
    longer = len(raw) > len(given)  # else it cannot say more, and what was given may be long
    return call.kind.runs_on == "provider" and longer and extends(raw, given)


def _is_text_of(call: Call, text: str) -> bool:
    """Is this what the call said? Of one that was said all at once, only its mark is held. What it said
    may be long, and is not read again for each of many copies that say something else."""
    if not call.fragments:
        return call.counted[0] == hash(text.replace("\n", ""))
    if text == call.raw or call.contradictions > MOST_CONTRADICTIONS:
        return text == call.raw
    same = _is_value_of(call, _shortest(call), text)
    call.contradictions += not same
    return same


def _shortest(call: Call) -> str:
    """The text of a call, or a shorter one of the same value, if a copy had one."""
    count, short = call.short
    return short if short and count == len(call.fragments) else call.raw


def _is_value_of(call: Call, held: str, text: str) -> bool:
    """Does a copy say what is held in another text? Of these the shorter one is kept: what is held may be
    long, and there may be many short copies."""
    if call.kind.key is not None or not same_value(held, text):
        return False
    call.short = len(call.fragments), min(held, text, key=len)
    return True


def _could_be_all(kind: Kind, held: str, text: str) -> bool:
    """Can what is held be the whole text, so that a copy contradicts it?"""
    return not text.startswith(held) if kind.key is not None else _whole(held)


def _whole(text: str) -> bool:
    try:
        return type(parse(text)) is dict
    except Refused:
        return False


def _is_placeholder(call: Call) -> bool:
    """An empty object that came at once, perhaps before the arguments. What grew to {} is {}."""
    return len(call.fragments) == 1 and call.fragments[0].strip() == "{}"


def _why_broken(arguments: Any, reason: FinishReason | None) -> tuple[BrokenReason, str]:
    if reason == "length":
        return "length", "the token limit fell inside the arguments"
    if isinstance(arguments, Refused):
        return "invalid_json", str(arguments)
    return "not_object", f"the arguments are {type(arguments).__name__}, not an object"


Action: TypeAlias = Callable[[Calls, Call, Any, Out], None]

# Verb x state -> what happens. Total: a test asks for every pair; docs/states.md is drawn from it.
TABLE: dict[tuple[str, State], Action] = {
    ("hear", WAITING): Calls._start_if_ready,
    ("hear", OPEN): Calls._ignore,
    ("hear", CLOSED): Calls._ignore,
    ("hear", OVER): Calls._ignore,
    ("append", WAITING): Calls._hold,
    ("append", OPEN): Calls.append,
    ("append", CLOSED): Calls._late,
    ("append", OVER): Calls._late,
    ("settle", WAITING): Calls._compare,
    ("settle", OPEN): Calls._compare,
    ("settle", CLOSED): Calls._compare,
    ("settle", OVER): Calls._compare_over,
    ("close", WAITING): Calls._close,
    ("close", OPEN): Calls._close,
    ("close", CLOSED): Calls._close_again,
    ("close", OVER): Calls._close_copy,
    ("announce", WAITING): Calls._announce,
    ("announce", OPEN): Calls._announce,
    ("announce", CLOSED): Calls._announce,
    ("announce", OVER): Calls._ignore,
    ("end", WAITING): Calls._end,
    ("end", OPEN): Calls._end,
    ("end", CLOSED): Calls._end,
    ("end", OVER): Calls._ignore,
    ("break", WAITING): Calls._break,
    ("break", OPEN): Calls._break,
    ("break", CLOSED): Calls._break,
    ("break", OVER): Calls._ignore,
}
