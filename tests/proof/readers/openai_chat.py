"""OpenAI Chat Completions and its imitators, read plainly.

A call is what the entries of one ``index`` (else id, else the last one) of a choice say. Nothing
closes it but a finish of its choice with a known word; ``[DONE]`` alone counts for whole objects.
An argument field that cannot be read taints its call, or all of its choice if it names none.
"""

from __future__ import annotations

import json
from typing import Any

from tests.proof.frames import UNREAD, sse
from tests.proof.readers.said import (
    Open,
    Reading,
    arguments_of,
    exact,
    nothing,
    place_in,
    said_in,
    sound_object,
    text_in,
    unknown,
)

NORMAL = {"stop", "tool_calls", "function_call", "tool_use", "eos", "end_turn", "stop_sequence",
          "COMPLETE", "STOP"}  # fmt: skip
KNOWN = {"length", "max_tokens", "MAX_TOKENS", "model_length", "content_filter", "refusal",
         "model_context_window_exceeded", "sensitive"}  # fmt: skip
FAILING = {"error", "insufficient_system_resource", "network_error", "abort",
           "malformed_function_call"}  # fmt: skip
FUNCTION_FIELDS = {"name", "arguments", "description", "parameters", "strict"}


def read(body: bytes, normal: set[str] = NORMAL, known: set[str] = KNOWN) -> Reading:
    reading = Reading()
    choices: dict[int, Choice] = {}
    for payload in sse(body):
        said = payload.value
        if payload.word:
            for choice in choices.values():
                choice.end(reading, "done")
            break
        if payload.error or failure_in(said):
            reading.ended = "failed"
            break
        listed = said.get("choices") if isinstance(said, dict) else UNREAD
        if isinstance(listed, dict) or listed is UNREAD or not isinstance(listed, list | None):
            taint_named(choices, payload.rough if listed is UNREAD else None)
            continue
        for entry in listed or ():
            number = place_in(entry.get("index", 0)) if isinstance(entry, dict) else None
            if number is None:
                taint(choices, None)
                if isinstance(entry, dict):  # of the first choice, if of any: its calls are begun
                    first = choices.setdefault(0, Choice(0))
                    first.hear(entry.get("delta"))
                    first.taint()
                continue
            choice = choices.setdefault(number, Choice(number))
            choice.hear(entry.get("delta"))
            word = text_in(entry.get("finish_reason"))
            if entry.get("error") or word in FAILING:
                reading.ended = "failed"
            if reading.ended != "failed" and word:
                choice.end(
                    reading, "normal" if word in normal else "length" if word in known else "other"
                )
    for choice in choices.values():
        choice.tell_empty(reading)
    return reading


def failure_in(said: Any) -> bool:
    """An error at the top, in a choice or in its delta: nothing that is open becomes whole."""
    if not isinstance(said, dict):
        return False
    groq = said.get("x_groq")
    return bool(said.get("error")) or (isinstance(groq, dict) and bool(groq.get("error")))


def taint(choices: dict[int, Choice], number: int | None) -> None:
    for choice in choices.values():
        if number in (None, choice.number):
            choice.taint()


def taint_named(choices: dict[int, Choice], rough: Any) -> None:
    """A payload that is no UTF-8 may still say of which calls it was; else it was of any."""
    places = places_in(rough)
    if places is None:
        return taint(choices, None)
    for number, index in places:
        choice = choices.setdefault(number, Choice(number))
        if index is not None and index not in choice.by_index:
            choice.begin_unread(index)
        choice.taint(index)
    return None


def places_in(rough: Any) -> list[tuple[int, int | None]] | None:
    """The choices and indexes of all calls that it names; None for an index: any of its choice. None if
    it does not say of which choice it is."""
    listed = rough.get("choices") if isinstance(rough, dict) else None
    places: list[tuple[int, int | None]] = []
    for choice in listed if isinstance(listed, list) else (None,):
        number = choice.get("index") if isinstance(choice, dict) else None
        if not isinstance(number, int):
            return None
        delta = choice.get("delta")
        entries = delta.get("tool_calls") if isinstance(delta, dict) else None
        for entry in entries if isinstance(entries, list) else (None,):
            index = entry.get("index") if isinstance(entry, dict) else None
            places.append((number, index if isinstance(index, int) else None))
    return places


class Choice:
    """The calls of one choice."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.calls: list[Open] = []
        self.by_index: dict[int, Open] = {}
        self.row: list[Open] = []
        self.legacy: Open | None = None
        self.cut = False

    def taint(self, index: int | None = None) -> None:
        """The call in this place may lack something; without one, any of them may."""
        held = None if index is None else self.by_index.get(index)
        for call in self.calls:
            if not call.state.get("told") and (index is None or call is held):
                call.tainted = True

    def begin_unread(self, index: int) -> None:
        """A call that cannot be read begins here: what follows in its place is of it, and of no other."""
        self.by_index[index] = Open(None, "?", choice=self.number, tainted=True)
        self.calls.append(self.by_index[index])

    def hear(self, delta: Any) -> None:
        if delta is None:
            return
        entries = delta.get("tool_calls") if isinstance(delta, dict) else UNREAD
        if isinstance(entries, dict):
            entries = [entries]
        if entries is UNREAD or not isinstance(entries, list | None):
            self.taint()
            entries = ()
        entries = entries or ()
        for position, entry in enumerate(entries):
            self.entry(entry, position, len(entries))
        if isinstance(delta, dict) and delta.get("function_call") is not None:
            self.legacy_call(delta["function_call"])

    def entry(self, entry: Any, position: int, of: int) -> None:
        if not isinstance(entry, dict):
            return self.taint()
        index, id = place_in(entry.get("index")), said_in(entry.get("id"))
        if isinstance(entry.get("id"), int | float) and not isinstance(entry["id"], bool):
            id = json.dumps(entry["id"])
        if index is None and entry.get("index") is not None:
            index = int(entry["index"]) if str(entry["index"]).isdigit() else None
            if index is None:
                self.taint()
        text_tool = isinstance(entry.get("custom"), dict)
        function = entry.get("custom") if text_tool else entry.get("function")
        said = function if isinstance(function, dict) else {}
        name, text = said_in(said.get("name")), said.get("input" if text_tool else "arguments")
        call = self.find(index, id, name, text, position, of)
        if call is None:
            call = Open(id or None, "", key="input" if text_tool else None, choice=self.number)
            self.calls.append(call)
            self.ask_legacy(call)
            if index is not None:
                self.supersede(self.by_index.get(index))
                self.by_index[index] = call
            if of > 1:
                self.row = [*self.row, call] if position else [call]
        if id:
            call.ids.add(id)
            call.id = call.id or id
        self.touch(call)
        if id and name and not name.startswith(call.name):  # pieces of a name say no id
            call.tainted = True
        self.name(call, name)
        if function is not None and text_tool is (call.key is None):
            call.tainted = True  # text of a function in a text tool, or the other way round
        self.fragment(call, function, text)
        return None

    def touch(self, call: Open) -> None:
        """Keep the calls in the order in which they were last spoken of."""
        self.calls.remove(call)
        self.calls.append(call)

    def find(
        self, index: int | None, id: str, name: str, text: Any, position: int, of: int
    ) -> Open | None:
        known = next((c for c in self.calls if id and id in c.ids), None)
        held = self.by_index.get(index) if index is not None else None
        if index is not None:
            if held is None:
                return known if not name else None
            if known is not None and known is not held:
                if (text or name) and not whole(held):  # it cannot be said whose it was
                    known.tainted = held.tainted = True
                return known
            if not id or id in held.ids or not held.ids:
                return None if not id_of_both(id, held) and begins(held, name, text) else held
            return None if name or (opens(text) and whole(held)) else held
        last = self.calls[-1] if self.calls else None
        if id:
            fits = last is not None and not last.ids and not last.fragments and not last.closed
            return known or (last if fits else None)
        if of > 1:
            held = self.row[position] if position < len(self.row) else None
            return None if held is None or begins(held, name, text) else held
        return None if last is None or begins(last, name, text) else last

    def supersede(self, held: Open | None) -> None:
        """Another call takes its place: unless it is a whole object it was given up."""
        if held is not None and not held.closed and not whole(held):
            held.tainted = True

    def name(self, call: Open, name: str) -> None:
        if name and name != call.name and not (call.name and call.fragments):
            call.name = name if name.startswith(call.name) else call.name + name

    def fragment(self, call: Open, function: Any, text: Any) -> None:
        if isinstance(text, dict):
            self.object(call, text)
        elif isinstance(text, str):
            if text and call.closed:
                call.state["late"] = True
                call.closed = call.closed and call.state.get("told", False)
            if text and call.state.get("told") and call.fragments and exact(call.text) == {}:
                call.state["grown"] = True  # as an empty object does that is no text, see below
            if text:
                call.fragments.append(text)
            if text and call.given == {}:  # an empty object may stand for what is still to come
                call.given = None
                call.state |= {"grown": True} if call.state.get("told") else {}
            call.tainted |= bool(text) and call.given is not None and not says(text, call.given)
        elif text is not None or unreadable(function):
            call.tainted = True

    def object(self, call: Open, text: dict[str, Any]) -> None:
        """Arguments as objects: their keys add up. Beside text they mean nothing, or say it again."""
        if call.given is None and call.fragments and says(call.text, text):
            return
        if call.fragments or not sound_object(text):
            call.tainted = True
        call.given = {**(call.given or {}), **text}
        call.state |= {"merged": True} if call.state.get("told") else {}

    def ask_legacy(self, call: Open) -> None:
        """The old field and the new one may say one call: the first that is told is told alone."""
        if self.legacy is not None:
            told = self.legacy.state.get("told", False)
            (call if told else self.legacy).tainted = True

    def legacy_call(self, function: Any) -> None:
        if self.legacy is None or self.legacy.state.get("told"):
            beside = any(call is not self.legacy for call in self.calls)
            self.legacy = Open(None, "", choice=self.number, tainted=beside)
            self.calls.append(self.legacy)
        said = function if isinstance(function, dict) else {}
        self.name(self.legacy, said_in(said.get("name")))
        self.fragment(self.legacy, function, said.get("arguments"))

    def end(self, reading: Reading, how: str) -> None:
        """A finish: whole objects count with any known word, the rest only with a normal one, and not
        after one that is not."""
        self.cut |= how == "length"
        how = "length" if self.cut and how == "normal" else how
        if reading.ended == "cut" or (reading.ended != "failed" and how != "done"):
            reading.ended = how
        if any(call.fragments and not call.name and not call.closed for call in self.calls):
            self.taint()  # argument text that no call claims may have been anybody's
        for call in self.calls:
            if call.closed or how == "other":
                continue
            told = [] if call.tainted or not call.name else readings(call)
            if call.key is not None:
                self.end_text_tool(reading, call, how, told)
            elif told:
                first, *more = (call.heard(arguments) for arguments in told)
                reading.calls.append(first)
                reading.also += more
                call.closed = call.state["told"] = True
            elif how == "normal":
                call.closed = True

    def end_text_tool(
        self, reading: Reading, call: Open, how: str, told: list[dict[str, Any]]
    ) -> None:
        """Each normal finish may be the last: where text follows, all of it is a reading as well."""
        if how == "normal" and told:
            (reading.also if call.state.get("told") else reading.calls).append(call.heard(told[0]))
            call.state["told"] = True
        elif how == "normal" and not call.fragments:
            call.closed = True

    def tell_empty(self, reading: Reading) -> None:
        """Calls that ended normally without any text, and of which nothing more came."""
        for call in self.calls:
            if call.state.get("merged") and not call.tainted:  # the word may stand on every chunk
                reading.also.append(call.heard(call.given))
            if call.state.get("grown") and not call.tainted:  # … and the object for what came then
                reading.also += map(call.heard, readings(call))
            empty = not call.text.strip() and call.given is None
            if empty and call.closed and call.name and not (call.state or call.tainted):
                reading.calls.append(call.heard(nothing(call)))


def unreadable(function: Any) -> bool:
    """No object, or one that may have the text under a name that nobody knows."""
    if not isinstance(function, dict):
        return function is not None
    return unknown(function, FUNCTION_FIELDS | {"input"})


def id_of_both(id: str, held: Open) -> bool:
    return bool(id) and id in held.ids


def opens(text: Any) -> bool:
    return isinstance(text, dict) or (isinstance(text, str) and text.lstrip()[:1] == "{")


def whole(call: Open) -> bool:
    """Are its arguments one whole object? Of plain text nobody knows."""
    return call.key is None and bool(readings(call))


def begins(held: Open, name: str, text: Any) -> bool:
    """Without an id: does this begin another call, rather than go on with the one held?"""
    if held.closed and held.state.get("told"):
        return bool(name or text)
    if not name or not whole(held):
        return False
    if name != held.name and not text:
        return True
    return opens(text) and not (isinstance(text, str) and goes_on(held, text))


def goes_on(held: Open, text: str) -> bool:
    """Can this text be of what is held? An object is said again as a text, or was to be filled by it."""
    if held.given:
        return says(text, held.given)
    return text.startswith(held.text)


def says(text: str, given: dict[str, Any]) -> bool:
    """Does the text say this very object?"""
    told = exact(text)
    return told is not None and json.dumps(told) == json.dumps(given)


def readings(call: Open) -> list[dict[str, Any]]:
    """What its fragments mean: one after the other, or each saying everything so far again."""
    if call.given is not None:
        return [call.given]
    texts = [call.text] if call.key is not None else [call.text, snapshots(call.fragments)]
    found: list[dict[str, Any]] = []
    for text in dict.fromkeys(texts):
        arguments = arguments_of(call, text)
        if arguments is not None:
            found.append(arguments)
    return found


def snapshots(fragments: list[str]) -> str:
    held = ""
    for text in fragments:
        if held.strip() == "{}" or (held[:1] == "{" and text.startswith(held) and text != held):
            held = text
        elif not (text == held and exact(held) is not None):
            held += text
    return held
