"""DashScope's own wire, read plainly: Chat's entries inside of ``output``, and numbered events.

In pieces only the first entry names its call; where arguments come whole with every event, each does.
So of each place either all texts are pieces, or each begins as the one before it. Numbers that have
gone up by one and then do not: something is missing, or came twice.
"""

from __future__ import annotations

import json
from typing import Any

from tests.proof.frames import UNREAD, sse
from tests.proof.readers.openai_chat import (
    FAILING,
    KNOWN,
    NORMAL,
    Choice,
    taint,
    taint_named,
)
from tests.proof.readers.said import Reading, place_in, said_in

WELL = {"", "200", "ok", "success"}


def read(body: bytes) -> Reading:
    reading, choices, numbers, grown = Reading(), dict[int, Choice](), Numbers(), Grown()
    for payload in sse(body):
        said = payload.value
        if not numbers.go_on(payload.id):
            taint(choices, None)
            numbers.lost = True
        if payload.word:
            for choice in choices.values():
                choice.end(reading, "done")
            break
        named = payload.event == "error" and not (isinstance(said, dict) and said.get("output"))
        if payload.error or named or failure_in(said):
            reading.ended = "failed"
            break
        listed = parts_of(said)
        if not isinstance(listed, list | None):
            taint_parts(choices, payload.rough)
            continue
        for at, entry in enumerate(listed or ()):
            if not isinstance(entry, dict):
                taint(choices, None)
                continue
            number = at if entry.get("index") is None else place_in(entry["index"])
            if number is None:
                taint(choices, None)
                continue
            choice = choices.setdefault(number, Choice(number))
            message = grown.news(number, entry.get("message"))
            doubt(choice, grown.doubtful)  # who was there …
            choice.hear(message)
            doubt(choice, grown.doubtful)  # … and who is now
            word = said_in(entry.get("finish_reason"))
            if word in FAILING:
                reading.ended = "failed"
            if reading.ended != "failed" and word:
                known = "length" if word in KNOWN else "other"
                choice.end(reading, "normal" if word in NORMAL else known)
    for choice in choices.values() if not numbers.lost else ():
        choice.tell_empty(reading)
    return reading


def doubt(choice: Choice, indexes: list[int]) -> None:
    for index in indexes:
        if index in choice.by_index:
            choice.by_index[index].tainted = True


class Numbers:
    """The ids of events, where they are numbers that go up by one; such a stream begins with 1."""

    def __init__(self) -> None:
        self.last: int | None = None
        self.count = False  # they do
        self.went_up = False
        self.again = False
        self.lost = False

    def go_on(self, id: str) -> bool:
        """Is this the next one, or of no numbering?"""
        number = int(id) if id.isascii() and id.isdigit() and len(id) < 10 else None
        if number is None:
            return True
        last, self.last = self.last, number
        if last is None:
            self.count = number == 1
            return True
        if number == last + 1:  # a number that came twice before was no number only until now
            self.count, self.went_up = True, True
            again, self.again = self.again, False
            return not again
        if number == last and not self.went_up:
            self.count, self.again = False, True
        return not self.count


class Grown:
    """The texts of each place, and which of them say all those before again."""

    def __init__(self) -> None:
        self.texts: dict[tuple[int, int, str], list[str]] = {}
        self.ids: dict[tuple[int, int], str] = {}
        self.whole: dict[tuple[int, int, str], bool] = {}
        self.doubtful: list[int] = []

    def news(self, number: int, message: Any) -> Any:
        """The message, with what is new in the arguments of its entries."""
        self.doubtful = []
        entries = message.get("tool_calls") if isinstance(message, dict) else None
        entries = [entries] if isinstance(entries, dict) else entries
        if not isinstance(entries, list):
            return message
        return {**message, "tool_calls": [self.entry(number, entry) for entry in entries]}

    def entry(self, number: int, entry: Any) -> Any:
        function = entry.get("function") if isinstance(entry, dict) else None
        index = place_in(entry.get("index")) if isinstance(entry, dict) else None
        text = function.get("arguments") if isinstance(function, dict) else None
        if index is None or not isinstance(text, str):
            return entry
        id, place = said_in(entry.get("id")), (number, index)
        if isinstance(entry.get("id"), int | float):
            id = json.dumps(entry["id"])
        held = self.ids.get(place, "")
        before = self.texts.get((*place, held))
        if id and held and id != held and before:  # another id, and yet it goes on: one, or two?
            self.texts.pop((*place, id), None)
            self.whole.pop((*place, id), None)
            whole = self.whole.get((*place, held))
            last = before[-1] if whole else "".join(before)
            if last and text.startswith(last) and whole is not False:  # pieces begin as they like
                self.doubtful.append(index)
        if id and any(
            id == other and at != place and at[0] == number for at, other in self.ids.items()
        ):
            self.doubtful.append(index)  # it is the id of another place of its choice
        self.ids[place] = id or held
        named = bool(id or said_in(function.get("name")))
        new = self.add((*place, self.ids[place]), text, named)
        if new is None:
            self.doubtful.append(index)
        return {**entry, "function": {**function, "arguments": new}}

    def add(self, key: tuple[int, int, str], text: str, named: bool) -> str | None:
        if key not in self.texts and (*key[:2], "") in self.texts:  # its id came late
            self.texts[key] = self.texts.pop((*key[:2], ""))
            if (*key[:2], "") in self.whole:
                self.whole[key] = self.whole.pop((*key[:2], ""))
        before = self.texts.setdefault(key, [])
        held = (before[-1] if self.whole.get(key) else "".join(before)) if before else ""
        goes_on = named and text.startswith(held)
        if key not in self.whole and held and text:
            self.whole[key] = goes_on
        if not self.whole.get(key):
            before.append(text)
            return text
        if goes_on:
            before.append(text)
            return text[len(held) :]
        return "" if named and held.startswith(text) else None


def parts_of(said: Any) -> Any:
    """The list of choices; None: it has none, and UNREAD: it cannot be read."""
    if not isinstance(said, dict):
        return UNREAD
    output = said.get("output")
    if output is None:
        return None
    return output.get("choices") if isinstance(output, dict) else UNREAD


def taint_parts(choices: dict[int, Choice], rough: Any) -> None:
    """What is no UTF-8 may still name its calls; else it was of any."""
    listed = parts_of(rough)
    as_chat = {"choices": [
        {"index": 0, **part, "delta": part.get("message")} if isinstance(part, dict) else part
        for part in listed
    ]} if isinstance(listed, list) else None  # fmt: skip
    taint_named(choices, as_chat)


def failure_in(said: Any) -> bool:
    """A code or a message at the top is an error, unless it says that all is well; so is an error."""
    if not isinstance(said, dict):
        return False
    output = said.get("output")
    parts = output.get("choices") if isinstance(output, dict) else None
    inside = [output, *(parts if isinstance(parts, list) else ())]
    if any(isinstance(part, dict) and part.get("error") is not None for part in (said, *inside)):
        return True
    status = said.get("status_code")
    failed = isinstance(status, int) and status >= 400
    return failed or any(str(said.get(f) or "").lower() not in WELL for f in ("code", "message"))
