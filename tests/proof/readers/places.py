"""Wires that close each call: what happens at a place in, the calls that are whole out.

A call is started at a place, filled by fragments of that place, and stopped. It is told when it
stops; with no text at all only if the turn then ends normally and nothing came too late. One that
never stops counts only if its text is a whole object, the turn ended with a known word and nothing
can be missing.
"""

from __future__ import annotations

from typing import Any

from tests.proof.frames import Payload
from tests.proof.readers.said import (
    Open,
    Reading,
    arguments_of,
    nothing,
    place_in,
    sound_object,
)

TEXTS = {"partial_json", "arguments", "input", "tool_calls", "toolUse"}


def mentions(said: Any) -> bool:
    """Is there anywhere in it a name that a call's text can stand under?"""
    if isinstance(said, dict):
        return bool(TEXTS & set(said)) or any(map(mentions, said.values()))
    return isinstance(said, list) and any(map(mentions, said))


def rough_place(payload: Payload) -> int | None:
    """The place that damaged bytes still name."""
    return place_in(payload.rough.get("index")) if payload.rough else None


class Places:
    """The calls of one turn, by place."""

    def __init__(self) -> None:
        self.reading = Reading()
        self.at: dict[int, Open | None] = {}  # None: something that is no call
        self.all: list[Open] = []

    def lost(self, place: int | None) -> None:
        """Something could not be read at this place, or nobody knows where."""
        for call in self.all:
            if place is None or self.at.get(place) is call:
                call.tainted = True

    def unknown(self, place: int | None, kind: Any, said: dict[str, Any]) -> None:
        """A kind that nobody knows is new and no loss, unless it names a place or brings text."""
        if place is not None or not isinstance(kind, str) or mentions(said):
            self.lost(place)

    def start(self, place: int | None, call: Open | None) -> None:
        """A call begins here, or (None) something else does."""
        if place is None:
            return self.lost(None)
        held = self.at.get(place)
        if held is not None and not held.closed:
            if call is not None and held.id == call.id and held.id and not held.text:
                return self.again(held, call)
            held.tainted = True  # begun again before it was stopped: the first was given up
            if call is not None and held.text:
                call.unsure = True  # what came until now may have been its text
        elif held is not None and call is not None and call.id and call.id == held.id:
            # said once more: it is one call, the one that was told if that was
            (call if held.state.get("told") else held).tainted = True
        self.at[place] = call
        if call is not None:
            self.all.append(call)
        return None

    def again(self, held: Open, call: Open) -> None:
        """Its start is said again before anything of it was heard: it is the same call."""
        if call.name != held.name:
            held.names, held.name = [*held.names, held.name], call.name
        if held.given != call.given:
            held.given = call.given if not held.given else held.given
            held.tainted |= bool(held.given) and bool(call.given) and held.given != call.given

    def fragment(self, place: int | None, text: Any) -> None:
        call = self.at.get(place) if place is not None else None
        if call is None or call.closed:
            if text != "":  # nobody's: it may have been anybody's
                self.lost(None)
        elif isinstance(text, str):
            call.fragments.append(text)
        else:
            call.tainted = True

    def stop(self, place: int | None) -> None:
        call = self.at.get(place) if place is not None else None
        if call is not None and not call.closed:
            call.closed = True
            self.tell(call)
            if self.reading.ended in ("normal", "length", "other"):
                self.end(self.reading.ended)

    def tell(self, call: Open) -> None:
        """Told now, if it has a text; the end decides on the others."""
        if call.tainted or not call.name:
            return
        arguments = None
        if call.text.strip():
            arguments = arguments_of(call, call.text)
        elif call.given and sound_object(call.given):
            arguments = call.given
        if arguments is not None:
            self.say(call, arguments)

    def say(self, call: Open, arguments: dict[str, Any]) -> None:
        call.state["told"] = True
        self.reading.calls.append(call.heard(arguments))
        self.reading.also += call.under_other_names(arguments)

    def end(self, how: str) -> None:
        """The turn ended: calls without text count, and whole ones that were not stopped. An end that is
        not normal stands, whatever is said after it."""
        how = self.reading.ended if self.reading.ended in ("length", "other") else how
        self.reading.ended = how
        for call in self.all:
            if call.state or call.tainted or not call.name:
                continue
            empty = not call.text.strip() and call.given in (None, {})
            if not call.closed:
                if how != "other":
                    self.tell(call)
            elif empty and how == "normal" and not call.unsure:
                self.say(call, nothing(call))
