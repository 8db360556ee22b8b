"""Mistral conversations, read plainly: a call is an entry, known by its ids.

A function call is what all its pieces say, and counts when the response is done. What the provider
runs counts when it is done; without that only if its text, or what was stated at once, is a whole
object that says something and the response is done. A handoff counts when it is done, or with its
beginning alone when the response is. Where anything was lost, a call without any text is none.
"""

from __future__ import annotations

from typing import Any

from tests.proof.frames import Payload, sse
from tests.proof.readers.anthropic import kind_of
from tests.proof.readers.places import mentions
from tests.proof.readers.said import (
    Open,
    Reading,
    arguments_of,
    id_in,
    name_in,
    nothing,
    said_in,
    sound_object,
    text_in,
    unknown,
)

PIECE, HANDOFF = "function.call.delta", "agent.handoff"
BEGINNINGS = {PIECE, "tool.execution.started", "agent.handoff.started"}
FIELDS = {"type", "id", "name", "tool_call_id", "arguments", "created_at", "output_index", "model",
          "agent_id", "confirmation_status"}  # fmt: skip
BEFORE = ("previous_agent_id", "previous_agent_name")
AFTER = ("next_agent_id", "next_agent_name")
OF_NO_CALL, OF_HANDOFFS = ("message.", "conversation."), "agent."


def read(body: bytes) -> Reading:
    entries = Entries()
    for payload in sse(body):
        said, kind = payload.value, kind_of(payload)
        if payload.word or payload.error or failure_in(said, kind, payload.event):
            entries.reading.ended = "failed"
            break
        if not isinstance(said, dict) and is_end(payload.rough):
            entries.end()  # whatever is damaged in it, it is that
            break
        if not isinstance(said, dict):
            entries.unread(payload)
        elif kind == PIECE:
            entries.piece(said)
        elif kind == "tool.execution.started":
            entries.start(said)
        elif kind == "tool.execution.delta":
            entries.grow(said)
        elif kind == "tool.execution.done":
            entries.done(said)
        elif kind == f"{HANDOFF}.started":
            entries.hand(said)
        elif kind == f"{HANDOFF}.done":
            entries.handed(said)
        elif kind == "conversation.response.started":
            entries.begin()
        elif kind == "conversation.response.done":
            entries.end()
            break
        elif kind != "message.output.delta":
            entries.unknown(said, payload.event)
    return entries.reading


def is_end(rough: Any) -> bool:
    return isinstance(rough, dict) and rough.get("type") == "conversation.response.done"


def failure_in(said: Any, kind: str, event: str) -> bool:
    if not isinstance(said, dict):
        return False
    stated = bool(said.get("error")) or said.get("object") == "error"
    named = event == "error" and "type" not in said  # of two words for it, its own counts
    return stated or named or kind == "conversation.response.error"


class Entries:
    """The calls of one response; what each is (``kind``) and the ids it was given (``ids``)."""

    def __init__(self) -> None:
        self.reading = Reading()
        self.calls: list[Open] = []
        self.lost_any = False
        self.begun = False

    def begin(self) -> None:
        """The response begins; the second time, what was begun before will not be finished."""
        for call in self.calls if self.begun else ():
            self.lost_any |= bool(call.text) and not call.closed
            call.tainted = True
        self.begun = True

    def lost(self, calls: list[Open]) -> None:
        self.lost_any = True
        for call in calls:
            call.tainted = True

    def of(self, kind: str, *ids: str) -> list[Open]:
        return [c for c in self.calls if c.kind == kind and c.ids & set(ids)]

    def open(self, kind: str, id: str, name: str, *ids: str, runs_on: str = "provider") -> Open:
        call = Open(id or None, name, runs_on, kind=kind, ids={i for i in ids if i})
        self.calls.append(call)
        return call

    # --- what could not be read -------------------------------------------------------------------

    def named(self, said: dict[str, Any]) -> list[Open]:
        ids = {id_in(said.get("id")), id_in(said.get("tool_call_id"))} - {""}
        return [call for call in self.calls if call.ids & ids]

    def unread(self, payload: Payload) -> None:
        rough = payload.rough
        if not isinstance(rough, dict):
            return self.lost(self.calls)
        kind = text_in(rough.get("type", payload.event))
        if kind.startswith(OF_NO_CALL) and not mentions(rough):
            return None
        ids = id_in(rough.get("id")) + id_in(rough.get("tool_call_id"))
        own = ids and "\ufffd" not in ids and kind in BEGINNINGS  # its own, and new
        return self.lost(self.named(rough) or ([] if own else self.others(rough)))

    def others(self, said: dict[str, Any]) -> list[Open]:
        """Whom it may have been of, if it names nobody."""
        handed = str(said.get("type")).startswith(OF_HANDOFFS)
        return [call for call in self.calls if call.kind == "handoff" or not handed]

    def unknown(self, said: dict[str, Any], event: str) -> None:
        kind = said.get("type")
        if isinstance(kind, str) and kind.startswith(OF_NO_CALL):
            return
        if not isinstance(kind, str) or mentions(said) or self.named(said):
            begins = not isinstance(kind, str) and event in BEGINNINGS
            own = begins and bool(said_in(said.get("id")) or said_in(said.get("tool_call_id")))
            self.lost(self.named(said) or ([] if own else self.others(said)))
        return

    # --- functions --------------------------------------------------------------------------------

    def piece(self, said: dict[str, Any]) -> None:
        own, entry = said_in(said.get("tool_call_id")), said_in(said.get("id"))
        if isinstance(said.get("tool_call_id"), int | float):
            own = id_in(said["tool_call_id"])
        ids = [id for id in (own, entry) if id]
        name, held = name_in(said.get("name")), self.of("function", *ids)
        if len(held) > 1:
            self.lost(held)
        if not ids and not name:
            return self.lost(self.calls)
        late = [c for c in self.calls if c.kind == "function" and not c.ids and not c.text]
        if not held and ids and len(late) == 1 and name in ("", late[0].name):
            held = late  # its ids came late
        if held:
            call = held[0]
        else:
            theirs = said.get("confirmation_status") is not None
            others = [c for c in self.calls if c.kind == "function"]
            call = self.open("function", own, name, runs_on="provider" if theirs else "client")
            if not ids and others and not self.surely_apart(said.get("arguments"), others):
                self.lost([*others, call])
        call.ids |= set(ids)
        call.id = own or call.id
        if name and call.name and name != call.name:
            call.tainted = True
        call.name = call.name or name
        if not isinstance(said.get("confirmation_status"), str | None):
            call.tainted = True  # who runs it?
        return self.hear(call, said)

    def surely_apart(self, text: Any, others: list[Open]) -> bool:
        """A piece of no id begins another call only where none of the others can go on."""
        begins = not text or (isinstance(text, str) and text.lstrip()[:1] == "{")
        begins = begins or isinstance(text, dict)
        return begins and all(arguments_of(c, c.text) is not None or c.given for c in others)

    def hear(self, call: Open, said: dict[str, Any]) -> None:
        text = said.get("arguments")
        if isinstance(text, str):
            call.fragments.append(text)
            call.tainted |= bool(text) and call.given is not None
        elif isinstance(text, dict) and sound_object(text) and not call.text:
            if text and call.given not in (None, text):
                call.state["merged"] = True  # where one followed, more may
            call.given = {**(call.given or {}), **text}
        elif text is not None or unknown(said, FIELDS):
            self.lost([call])

    # --- what the provider runs -------------------------------------------------------------------

    def start(self, said: dict[str, Any]) -> None:
        id, name = name_in(said.get("id")), name_in(said.get("name"))
        for held in self.running(said, "execution"):
            if held.closed and id and held.state.get("told"):
                held.state["again"] = True  # said once more, and so are its pieces
                return None
            if not held.closed or id:  # one that broke may be tried again
                if id and held.name == name and not held.text and not held.tainted:
                    return self.hear(held, said)
                held.tainted = True  # begun again: the first was given up
                self.lost_any |= bool(held.text)
        return self.hear(self.open("execution", id, name, id), said)

    def nameless(self, kind: str) -> list[Open]:
        return [c for c in self.calls if c.kind == kind and not c.ids]

    def running(self, said: dict[str, Any], kind: str) -> list[Open]:
        id = name_in(said.get("id"))
        found = self.of(kind, id) if id else self.nameless(kind)
        return found[-1:]

    def grow(self, said: dict[str, Any]) -> None:
        held = self.running(said, "execution")
        if said.get("arguments") == "":
            return None
        if not held or (held[0].closed and not held[0].state.get("again")):
            return self.lost(self.calls)
        if held[0].closed:
            return None
        return self.hear(held[0], said)

    def done(self, said: dict[str, Any]) -> None:
        for call in self.running(said, "execution"):
            call.state.pop("again", None)
            if not call.closed:
                call.closed = True
                if mentions(said):
                    call.tainted = True
                self.tell(call, empty=True)

    # --- handoffs ---------------------------------------------------------------------------------

    def hand(self, said: dict[str, Any]) -> None:
        id, before = name_in(said.get("id")), {f: said.get(f) for f in BEFORE}
        for held in self.running(said, "handoff"):
            if held.closed and id:
                return
            if not held.closed:
                if held.given == before and id:
                    return
                held.closed = held.tainted = True
        call = self.open("handoff", id, HANDOFF, id)
        call.given = before
        call.tainted = not all(isinstance(v, str | None) for v in before.values())

    def handed(self, said: dict[str, Any]) -> None:
        after = {f: said.get(f) for f in AFTER}
        sound = all(isinstance(v, str | None) for v in after.values())
        held = self.running(said, "handoff")
        if not held:  # it may be the end of any of them
            self.lost([call for call in self.calls if call.kind == "handoff"])
        for call in held:
            if not call.closed:
                call.given, call.closed = {**call.given, **after}, True
                call.tainted |= not sound
                self.tell(call)

    # --- the end ----------------------------------------------------------------------------------

    def tell(self, call: Open, empty: bool = False) -> None:
        if call.tainted or not call.name or call.state.get("told"):
            return
        arguments = call.given if sound_object(call.given) else arguments_of(call, call.text)
        if arguments is None and empty and not call.text.strip() and call.given is None:
            arguments = nothing(call)
        if arguments is not None:
            call.state["told"] = True
            self.reading.calls.append(call.heard(arguments))

    def end(self) -> None:
        self.reading.ended = "normal"
        if any(c.text and not (c.name or c.ids) for c in self.calls):  # nobody says whose it is
            self.lost(self.calls)
        for call in self.calls:
            if call.kind == "function":
                self.tell(call, empty=not self.lost_any)
            elif not call.closed:
                once = call.given and not call.state.get("merged")
                enough = (once or call.text.strip("{} \t\r\n")) and not self.lost_any
                if call.kind == "handoff" or enough:
                    self.tell(call)
