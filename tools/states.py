"""Draws docs/states.md: the life of a call, from the table of verbs and states in calls.py.

    python -m tools.states             write it
    python -m tools.states --check     exit 1 if it is not up to date

The table says which action a verb takes in a state; where that leads is tried out here, on calls
with and without a name, with no text, half of one and a whole one. So the picture cannot lie.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from itertools import groupby, product
from pathlib import Path
from typing import Any

from streamnorm.core.calls import TABLE, Call, Calls, State
from streamnorm.core.mint import Mint
from streamnorm.events import Event, FinishReason
from streamnorm.limits import Limits
from streamnorm.notes import Scribe
from tools.documents import cell, main_of

__all__ = ["edges", "made"]

OUT = Path(__file__).resolve().parent.parent / "docs" / "states.md"
WHOLE, HALF = '{"a":1}', '{"a":'
REASONS: tuple[FinishReason | None, ...] = ("stop", "length", None)

Say = Callable[[Calls, Call, list[Event]], None]
# A verb, and the ways to say it.
VERBS: dict[str, dict[str, Say]] = {
    "hear": {
        "id": lambda c, call, out: c.hear(call, out, id="id_1"),
        "name": lambda c, call, out: c.hear(call, out, name="f"),
    },
    "append": {"text": lambda c, call, out: c.append(call, HALF, out)},
    "settle": {"text": lambda c, call, out: c.settle(call, WHOLE, out)},
    "close": {"": lambda c, call, out: c.close(call, out)},
    "announce": {"stop": lambda c, call, out: c.announce_end(out, "stop")},
    "end": {
        str(reason): lambda c, call, out, reason=reason: c.end_turn(out, reason)  # type: ignore[misc]
        for reason in REASONS
    },
    "break": {"": lambda c, call, out: c.fail(call, "truncated", "the stream failed", out)},
}
MEANS = {
    "hear": "its id or name became known",
    "append": "a fragment of its arguments",
    "settle": "the wire's own copy of the whole argument text",
    "close": "the wire says that this call is complete",
    "announce": "a word for the turn's end came; more may still come",
    "end": "the turn ended, normally or not",
    "break": "the stream failed under it",
}
LIVES = {
    State.WAITING: "heard of, but not told: it has no name yet, or neither id nor text",
    State.OPEN: "started; fragments flow",
    State.CLOSED: "the wire closed it; the end of the turn decides whether it counts",
    State.OVER: "told, as a call or as a broken one; nothing changes it any more",
}


def calls_in(state: State) -> Iterator[tuple[Calls, Call]]:
    """Calls that are in that state, with all the pasts that matter."""
    pasts = product((None, "id_1"), (None, "f"), ("", HALF, WHOLE), (False, True), (False, True))
    for id, name, text, closed, settled in pasts:
        calls, call, out = _opened(id, name)
        if text:
            calls.append(call, text, out)
        if closed:
            calls.close(call, out)
        if settled:
            calls.settle(call, WHOLE, out)
        if call.state is state:
            yield calls, call


def _opened(id: str | None, name: str | None) -> tuple[Calls, Call, list[Event]]:
    calls = Calls(Scribe("states"), Mint("states"), Limits())
    out: list[Event] = []
    return calls, calls.open(out, id=id, name=name), out


def edges() -> dict[tuple[str, State], dict[State, list[str]]]:
    """Verb and state -> where it leads, and which events are told on the way."""
    found: dict[tuple[str, State], dict[State, list[str]]] = {}
    for verb, state in TABLE:
        for say in VERBS[verb].values():
            for calls, call in calls_in(state):
                out: list[Event] = []
                say(calls, call, out)
                told = found.setdefault((verb, state), {}).setdefault(call.state, [])
                told += [event.kind for event in out if event.kind not in told]
    return found


def made() -> dict[Path, str]:
    """The document."""
    found = edges()
    return {OUT: "\n".join([HEAD, _diagram(found), _lives(), _table(found)])}


HEAD = """\
# The life of a call

Whatever a wire says about a call is one of six verbs, and a call is in one of four states. What a
verb does in a state is a row of `TABLE` in `streamnorm/core/calls.py`; a test asks that no pair is
missing. This page is drawn from that table: `python -m tools.states`.
"""


def _diagram(found: dict[tuple[str, State], dict[State, list[str]]]) -> str:
    arrows: dict[tuple[State, State], list[str]] = {}
    for (verb, state), targets in found.items():
        for target in targets:
            if target is not state:
                arrows.setdefault((state, target), []).append(verb)
    lines = [
        "```mermaid",
        "stateDiagram-v2",
        f"    [*] --> {_opened(None, None)[1].state.name}: open",
        f"    [*] --> {_opened('id_1', 'f')[1].state.name}: open, with id and name",
    ]
    lines += [f"    {a.name} --> {b.name}: {', '.join(v)}" for (a, b), v in sorted(arrows.items())]
    return "\n".join([*lines, "    OVER --> [*]", "```\n"])


def _lives() -> str:
    states = [f"| `{state.name}` | {LIVES[state]} |" for state in State]
    verbs = [f"| {verb} | {MEANS[verb]} |" for verb in VERBS]
    return "\n".join(
        [
            "| state | a call is |\n|---|---|",
            *states,
            "",
            "| verb | it means |\n|---|---|",
            *verbs,
            "",
        ]
    )


def _table(found: dict[tuple[str, State], dict[State, list[str]]]) -> str:
    head = "| verb | in state | action | leads to | tells |\n|---|---|---|---|---|"
    rows = []
    for _, pairs in groupby(TABLE, key=lambda pair: pair[0]):
        for verb, state in pairs:
            targets = found.get((verb, state), {})
            leads = ", ".join(f"`{target.name}`" for target in sorted(targets))
            told = dict.fromkeys(kind for kinds in targets.values() for kind in kinds)
            tells = ", ".join(f"`{kind}`" for kind in told)
            rows.append(
                f"| {verb} | `{state.name}` | {_action(TABLE[verb, state])} | {leads} | {tells} |"
            )
    return "\n".join(["## Every verb in every state\n", head, *rows, ""])


def _action(action: Any) -> str:
    name = action.__name__.strip("_").replace("_", " ")
    said = (inspect.getdoc(action) or "").split("\n")[0].rstrip(".")
    return cell(f"**{name}**: {said}" if said else f"**{name}**")


if __name__ == "__main__":
    sys.exit(main_of("tools.states", __doc__, made))
