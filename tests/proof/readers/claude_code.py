"""Claude Code, read plainly: lines of agents, each of them one answer after the other.

A whole line says whole calls, each of them once in its answer. Of an answer that comes in events of
the Messages wire those count (see ``places``), and whole lines of it are copies, which state the inputs
of its calls: one whose text is another whole object is none, and one whose text is none is as its copy
says. A call of it that was stopped without any text is whole, too, when something came out of it. What
cannot be read may have been of any agent. A line of a uuid that was heard is no line.
"""

from __future__ import annotations

from typing import Any

from tests.proof.frames import Payload, Twice, lines, whole_in
from tests.proof.readers.anthropic import (
    KNOWN,
    NORMAL,
    call_in,
    carries_text,
    hear_delta,
    place_of,
)
from tests.proof.readers.places import Places, mentions
from tests.proof.readers.said import (
    Open,
    Reading,
    arguments_of,
    nothing,
    place_in,
    sound_object,
    text_in,
)

EVENTS = {"message_start", "content_block_start", "content_block_delta", "content_block_stop",
          "message_delta", "message_stop", "ping", "error"}  # fmt: skip

WHOLE = {"assistant", "user", "system", "result"}


def read(body: bytes) -> Reading:
    """A line that says two types may be of the last one, or no line at all."""
    heard = lines(body)
    reading, sure = told_by(heard), [p for p in heard if not says_two_types(p.value)]
    if len(sure) < len(heard):
        reading.also += told_by(sure).calls
    return reading


def says_two_types(said: Any) -> bool:
    """A field of it, and differently: mostly the type."""
    return isinstance(said, Twice) and said.differs


def told_by(heard: list[Payload]) -> Reading:
    agents: dict[str, Agent] = {}
    reading = Reading()
    names: set[str] = set()
    for payload in heard:
        said = whole_in(payload, "message", "type", "parent_tool_use_id", "agentId")
        kind = text_in(said.get("type")) if isinstance(said, dict) else ""
        name = whose(said) if isinstance(said, dict) else None
        if name is None:  # it may have been of any; a whole line is no piece of another
            for agent in agents.values() if kind not in WHOLE else ():
                agent.pieces.lost(None)
            continue
        uuid = text_in(said.get("uuid")) if kind in ("stream_event", "result") else ""
        if uuid and uuid in names:
            continue
        names.add(uuid)
        agent = agents.setdefault(name, Agent(reading))
        if kind == "stream_event":
            agent.event(said.get("event"))
        elif kind == "assistant":
            agent.line(said)
        elif kind == "user":
            for id in agent.results(said.get("message")):
                if id in agents:  # the agent that this call is, is over
                    agents[id].end()
        elif kind == "result":
            agent.end()
            reading.ended = "failed" if said.get("is_error") else "normal"
        elif not kind or mentions(said):
            for other in agents.values():
                other.pieces.lost(None)
    for agent in agents.values():
        agent.pieces.by_copies()
    if reading.ended == "cut" and any(agent.ended for agent in agents.values()):
        reading.ended = "normal"
    return reading


def whose(said: dict[str, Any]) -> str | None:
    """The agent, "" for the main one; None if that cannot be read."""
    names = [said.get("parent_tool_use_id"), said.get("agentId")]
    if not all(isinstance(n, str | None) for n in names):
        return None
    return names[0] or names[1] or ""


class Pieces(Places):
    """The calls of an answer in pieces, and what whole lines of it state of them."""

    def __init__(self) -> None:
        super().__init__()
        self.copies: dict[str, list[Open]] = {}  # by the ids of calls; ``given`` is the input

    def start(self, place: int | None, call: Open | None) -> None:
        """One that does not say where it stands has begun all the same: its copy states its input."""
        super().start(place, call)
        if place is None and call is not None:
            call.tainted = True
            self.all.append(call)

    def copy(self, block: Any) -> None:
        call = own(call_in(block))
        if call is not None and call.id and sound_object(call.given):
            self.copies.setdefault(call.id, []).append(call)

    def tell(self, call: Open) -> None:
        """The pieces count, unless a copy says otherwise."""
        copies = self.copies.get(call.id or "", [])
        whole = arguments_of(call, call.text) if call.text.strip() else call.given
        if not whole or all(copy.given == whole for copy in copies):
            super().tell(call)

    def say(self, call: Open, arguments: dict[str, Any]) -> None:
        """Nothing is no word against a copy that says something."""
        if arguments or not any(copy.given for copy in self.copies.get(call.id or "", [])):
            super().say(call, arguments)

    def by_copies(self) -> None:
        """What was not told by its pieces may be told by its copy, if all of them say the same."""
        for call in self.all:
            told = (
                call.state and not call.doubted
            )  # a copy may be believed against a doubtful beginning
            copies = [] if told else self.copies.get(call.id or "", [])
            if copies and all(copy.given == copies[0].given for copy in copies):
                said = copies[0]
                said.name = said.name or call.name  # a copy without a name is its text all the same
                self.reading.also.append(said.heard(said.given or {}))


class Agent:
    """What one agent said."""

    def __init__(self, reading: Reading) -> None:
        self.reading = reading
        self.pieces = self.fresh()
        self.partial = False  # the answer comes in pieces
        self.id = ""  # of the answer
        self.told: set[str] = set()  # ids of calls that whole lines of this answer said
        self.ended = False
        self.over = False  # what comes now is late, until an answer begins
        self.replied = False  # something came out of its calls

    def fresh(self) -> Pieces:
        pieces = Pieces()
        pieces.reading.calls, pieces.reading.also = self.reading.calls, self.reading.also
        return pieces

    def next(self, id: str, partial: bool) -> None:
        self.pieces.by_copies()
        self.pieces, self.partial, self.id, self.told = self.fresh(), partial, id, set()
        self.over = self.replied = False

    def end(self) -> None:
        self.next("", False)
        self.over = True

    # --- in pieces --------------------------------------------------------------------------------

    def event(self, said: Any) -> None:
        kind = text_in(said.get("type")) if isinstance(said, dict) else ""
        if kind not in EVENTS:
            place = place_in(said.get("index")) if isinstance(said, dict) else None
            return self.pieces.unknown(place, kind or None, said if isinstance(said, dict) else {})
        if kind == "message_start":
            return self.begin(said.get("message"))
        if self.over or kind in ("ping", "error", "message_stop"):
            return None
        # how an answer ended says no block of it: a line behind that is no copy of anything
        self.partial |= kind != "message_delta"
        if kind == "content_block_start":
            call = own(call_in(said.get("content_block")))
            if call is not None:
                call.doubted = says_two_types(said)  # its place twice, and differently, is a loss
            self.pieces.start(place_of(said), call)
            if carries_text(said.get("delta")):
                self.pieces.lost(None)
        elif kind == "content_block_delta":
            hear_delta(self.pieces, place_of(said), said.get("delta"))
        elif kind == "content_block_stop":
            if carries_text(said.get("delta")):
                self.pieces.lost(None)
            self.pieces.stop(place_of(said))
        else:
            self.reason(said.get("delta"))
        return None

    def begin(self, message: Any) -> None:
        said = message if isinstance(message, dict) else {}
        self.next(text_in(said.get("id")), True)
        content = said.get("content")
        for index, block in enumerate(content if isinstance(content, list) else ()):
            self.pieces.start(index, own(call_in(block)))

    def reason(self, delta: Any) -> None:
        word = text_in(delta.get("stop_reason")) if isinstance(delta, dict) else ""
        if word:
            self.ended = True
            known = "length" if word in KNOWN else "other"
            self.pieces.end("normal" if word in NORMAL else known)

    def results(self, message: Any) -> list[str]:
        """A call that was stopped, and of which something came out, was run as it is."""
        content = message.get("content") if isinstance(message, dict) else None
        blocks = [b for b in content if isinstance(b, dict)] if isinstance(content, list) else []
        ids = [id for block in blocks if (id := text_in(block.get("tool_use_id")))]
        self.replied |= bool(blocks)
        for id in ids:
            for call in self.pieces.all:
                empty = not call.text.strip() and call.given in (None, {})
                doubtful = call.state or call.tainted or call.unsure or not call.name
                if call.id == id and call.closed and empty and not doubtful:
                    self.pieces.say(call, nothing(call))
        return ids

    # --- whole lines ------------------------------------------------------------------------------

    def line(self, said: dict[str, Any]) -> None:
        message = said.get("message")
        if not isinstance(message, dict):
            return self.pieces.lost(None)
        id = text_in(message.get("id"))
        refused = said.get("error") or said.get("isApiErrorMessage")
        if refused or message.get("model") == "<synthetic>":
            return None  # the program speaks, not the model
        behind = self.replied and not id and not self.partial  # without an id: the next answer
        if behind or (id and self.id and id != self.id):
            self.next(id, False)
        self.id, self.over = self.id or id, False
        if self.partial:
            for block in blocks_in(message):
                self.pieces.copy(block)
            return None
        for block in blocks_in(message):
            self.block(block)
        if text_in(message.get("stop_reason")):
            self.ended = True
        return None

    def block(self, block: Any) -> None:
        call, given = own(call_in(block)), block.get("input") if isinstance(block, dict) else None
        if call is None or not call.name or not sound_object(given):
            return
        if call.id in self.told:
            return
        self.told |= {call.id} if call.id else set()
        self.reading.calls.append(call.heard(given))


def blocks_in(message: dict[str, Any]) -> list[Any]:
    content = message.get("content")
    return content if isinstance(content, list) else []


def own(call: Open | None) -> Open | None:
    """The program runs its calls itself."""
    if call is not None:
        call.runs_on = "provider"
    return call
