"""Which call is meant: places, items and ids that events name in, the call that they are of out.

A call stands at an ``output_index``, in an item with an id, and has a ``call_id``; any of these may be
missing, and gateways change them from event to event. Rule: a call is found by ``call_id`` where an
item is at hand, else by place, else by item, else it is the last open one of its type. Nothing is
opened and nothing is told here; calls of which nobody can know whose a piece is are tainted.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from ...core.calls import Call, Calls, State
from ...core.parser import first_text
from ...text.written import json_text

__all__ = ["Places"]


class Places:
    """Where the calls and items of one response stand."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._by_output: defaultdict[str, dict[int, Call]] = defaultdict(dict)
        self._by_item: dict[tuple[str, str], Call] = {}
        self._types: dict[int, str] = {}  # call -> type of its item
        self._items: dict[int, str] = {}  # call -> id of its item
        self._placed: dict[int, int | None] = {}  # the place of calls that have one, or an item
        self._added: set[int] = set()  # calls whose item was added
        self._homes: dict[str, int | None] = {}  # item id -> output index, of what is no tool
        self._alike: dict[tuple[str, str, str], deque[Call]] = {}  # at the end, what was told
        self._keys: dict[int, tuple[str, str, str]] = {}
        self._unannounced: dict[tuple[str, str, str], int] | None = None  # … and was never added

    # --- what is known --------------------------------------------------------------------------

    def opened(self, call: Call, type_: str, index: int | None, item_id: str | None) -> None:
        """There is a new call, of this type."""
        self._types[call.ordinal] = type_
        self.remember(call, type_, index, item_id)

    def remember(self, call: Call, type_: str, index: int | None, item_id: str | None) -> None:
        """This place and item are of that call, by their type its own or its output's."""
        if self._types[call.ordinal] == type_ and (index is not None or item_id):
            held = self._placed.get(call.ordinal)
            self._placed[call.ordinal] = held if index is None else index
        if index is not None:
            self._by_output[type_][index] = call
        if item_id:
            self._by_item[type_, item_id] = call
            self._items.setdefault(call.ordinal, item_id)

    def add(self, call: Call) -> None:
        """Its item was added."""
        self._added.add(call.ordinal)

    def is_added(self, call: Call) -> bool:
        return call.ordinal in self._added

    def is_over(self, call: Call, item: dict[str, Any], index: int | None) -> bool:
        """Was this very item, by all its ids and in its place, told? One that is known by its item's id
        has no other, whatever it says."""
        call_id, item_id = first_text(item.get("call_id")), first_text(item.get("id"))
        same = item_id is not None and self._items.get(call.ordinal) == item_id
        same = same and (call_id in (None, call.wire_id) or item_id == call.wire_id)
        return same and call.state is State.OVER and self._placed.get(call.ordinal) == index

    def type_of(self, call: Call) -> str:
        """The type of its item."""
        return self._types[call.ordinal]

    def house(self, item_id: str, index: int | None) -> None:
        """An item that is no tool is at this place."""
        if item_id:
            self._homes[item_id] = index

    def home_of(self, item_id: str, index: int | None) -> int | None:
        """The output index of an item, as that was added; this one where the item is not known."""
        home = self._homes.get(item_id)
        return index if home is None else home

    # --- by place -------------------------------------------------------------------------------

    def of_type(self, type_: str) -> dict[int, Call]:
        """The calls of a type by their place, now and later."""
        return self._by_output[type_]

    def open_at(self, index: int | None) -> Iterator[Call]:
        """What stands open in a place, of whatever type."""
        for calls in self._by_output.values():
            call = calls.get(index)  # type: ignore[arg-type]
            if call is not None and call.state < State.CLOSED:
                yield call

    def named(self, index: int | None, item_id: str, types: Iterable[str]) -> list[Call]:
        """All calls in a place; where there are none, those of an item of one of these types."""
        by_place = [calls[index] for calls in self._by_output.values() if index in calls]
        by_item = (self._by_item.get((type_, item_id)) for type_ in types)
        return by_place or [call for call in by_item if call is not None]

    # --- of a piece or a copy -------------------------------------------------------------------

    def known(
        self, index: int | None, item_id: str | None, type_: str, call_id: str | None = None,
        *, copy: bool = False,
    ) -> Call | None:  # fmt: skip
        """By place, item, or id, or the last open one of that type, which must fit in any case."""
        call = (
            self._by_output[type_].get(index)  # type: ignore[arg-type]
            or self._by_item.get((type_, item_id or ""))
            or self._by_call_id(call_id, type_)
        )
        if call is None and (index is None or not item_id):
            call = self._last_open(type_, index, copy=copy)
        return call

    def is_of_another(
        self, call: Call, type_: str, item_id: str | None, call_id: str | None
    ) -> bool:
        """Is its place of this call, but its item or its id of another?"""
        named = self._by_call_id(call_id, type_)
        item = self._by_item.get((type_, item_id or ""))
        if item is None and item_id and call.state is State.CLOSED:  # its own item is done
            return self._items.get(call.ordinal) not in (None, item_id)
        return item not in (None, call) or (named not in (None, call) and call.wire_id != call_id)

    def growing(self, type_: str) -> list[Call]:
        """The open calls of a type."""
        return [
            call for call in self._calls.unfinished()
            if call.state < State.CLOSED and self._types.get(call.ordinal) == type_
        ]  # fmt: skip

    def _by_call_id(self, call_id: str | None, type_: str) -> Call | None:
        call = self._calls.by_id(0, call_id or "")
        return call if call is not None and self._types[call.ordinal] == type_ else None

    def _last_open(self, type_: str, index: int | None, *, copy: bool) -> Call | None:
        """For what names no place, or one that nobody has: then of those that have none themselves.

        Servers were seen to count wrong in copies; these are compared with what is there. With several
        open nobody knows; their items will say it all again.
        """
        growing = self.growing(type_)
        if index is not None:
            growing = [
                call for call in growing
                if self._placed.get(call.ordinal) is None or (copy and call.fragments)
            ]  # fmt: skip
        if len(growing) > 1:
            for call in growing:
                self._calls.taint(call, "a fragment came that does not say which call it is of")
        return growing[-1] if growing else None

    # --- of an item -----------------------------------------------------------------------------

    def of_item(
        self, type_: str, item: dict[str, Any], index: int | None, name: str | None,
        *, adding: bool = False, final: bool = False,
    ) -> Call | None:  # fmt: skip
        """By its id; else one item, which is one place, is one call whatever ids it is given."""
        call_id, item_id = first_text(item.get("call_id")), first_text(item.get("id"))
        call = self._by_call_id(call_id, type_)
        if call is not None:
            elsewhere = index is not None and self._placed.get(call.ordinal) not in (None, index)
            other = item_id is not None and self._items.get(call.ordinal) not in (None, item_id)
            holder = self._by_item.get((type_, item_id or ""))
            taken = other and holder not in (None, call) and bool(holder.name)
            unheard = not adding and call.state < State.CLOSED and not call.fragments
            if not (taken if final else elsewhere and other and not unheard):
                return call
        call = self.known(index, item_id, type_) or self._nameless(type_)
        if call is None or not item_id or self._items.get(call.ordinal) in (None, item_id):
            return call
        if not call.name and not adding:  # whether they are one, only a copy of the text can say
            self._calls.taint(call, "arguments of another item came in its place")
            return call
        if call.name and (call.wire_id == call_id or (final and call.wire_id == item_id)):
            return call
        # Another item in its place: a gateway that changes ids, or that uses one place for all?
        same = not adding and call.state < State.CLOSED and call.name == name
        return call if same else None

    def of_final_item(
        self, type_: str, item: dict[str, Any], index: int, name: str | None
    ) -> Call | None:
        """The call that an item of the final response says again, whose order may be another."""
        own = self._by_item.get((type_, first_text(item.get("id")) or ""))
        if own is not None and not item.get("call_id"):
            return own  # by the only id that it has
        place = index if self._by_output[type_].get(index) is not None else None
        return self.of_item(type_, item, place, name, final=True)

    def has_item(self, type_: str, item: dict[str, Any], index: int) -> bool:
        """Was anything heard of this very item, by its id, its call's id or its place?"""
        call_id, item_id = first_text(item.get("call_id")), first_text(item.get("id"))
        by_item = (type_, item_id or "") in self._by_item or index in self._by_output[type_]
        return by_item or self._by_call_id(call_id, type_) is not None

    def told_alike(self, type_: str, name: str, text: str, named: set[int]) -> Call | None:
        """Ids may differ at the end: one that was told, says the same, and is not there otherwise."""
        if not self._alike:
            for call in self._calls.all:
                self._alike.setdefault(self._key(call), deque()).append(call)
        alike = self._alike.get((type_, name, _compact(text)), deque())
        while alike and alike[0].ordinal in named:
            alike.popleft()  # for good: ``named`` only grows
        return alike[0] if alike else None

    def may_be_told(self, call: Call, text: str, listed: Mapping[str, int]) -> bool:
        """At the end: was one that is not done told elsewhere? One of its id says the same, and the final
        response says that id but once; or one that came later was never added, and is not known there by
        its ids: it may be this one, under others."""
        if call.state >= State.CLOSED:
            return False
        key = self._types[call.ordinal], call.name, _compact(text)
        id = call.wire_id or ""
        own = self._calls.by_id(0, id)
        if own not in (None, call) and own.state is State.OVER and listed.get(id, 0) < 2:
            return own.denied is None and self._key(own) == key
        if self._unannounced is None:
            self._unannounced = {
                self._key(told): told.ordinal
                for told in self._calls.all
                if told.state is State.OVER and told.denied is None
                and told.ordinal not in self._added
                and told.wire_id not in listed and self._items.get(told.ordinal) not in listed
            }  # fmt: skip
        return call.ordinal < self._unannounced.get(key, -1)

    def _key(self, call: Call) -> tuple[str, str, str]:
        key = self._keys.get(call.ordinal)
        if key is None:
            key = self._types[call.ordinal], call.name, _compact(call.raw)
            if call.state is State.OVER:  # it may be long, and asked for often
                self._keys[call.ordinal] = key
        return key

    def _nameless(self, type_: str) -> Call | None:
        """The one call of this type of which something came before its item did."""
        waiting = [
            call for call in self._calls.unfinished()
            if not call.name and call.ordinal not in self._placed
            and self._types.get(call.ordinal) == type_
        ]  # fmt: skip
        return waiting[0] if len(waiting) == 1 else None


def _compact(text: str) -> str:
    """The text of a call without the spaces in which copies of it differ."""
    try:
        return json_text(msgspec.json.decode(text))
    except (msgspec.DecodeError, ValueError, RecursionError):
        return text
