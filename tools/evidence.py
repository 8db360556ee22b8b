"""Writes docs/evidence.md: when a call of each wire is whole, from the ``EVIDENCE`` rows of the parsers.

python -m tools.evidence             write it
python -m tools.evidence --check     exit 1 if it is not up to date
"""

from __future__ import annotations

import sys
from pathlib import Path

from streamnorm.core.calls import Evidence
from streamnorm.core.parser import Parser
from streamnorm.providers import PROVIDERS, programs
from tools.documents import cell, main_of

__all__ = ["OUT", "made"]

OUT = Path(__file__).resolve().parent.parent / "docs" / "evidence.md"

HEAD = """\
# Evidence: when a call is whole

A call is told as `ToolCall` only with evidence for each of these; otherwise it is a `BrokenToolCall` with
the reason and what was heard of it.

- **It was closed**: by the wire's own mark for this call, or on wires without one by a known, normal end
  of the turn. A call that was never closed on a wire that closes calls counts only if its text is a
  whole JSON object, the turn ended normally, no part of it came behind the word for that end, and nothing is in
  doubt; that is a note. `{}` stands for no
  text only if the call was closed, or the turn ended normally where nothing closes calls, and nothing
  was lost. It must be the end of its own turn: a Responses stream that ends under another id than it
  began with (a gateway was seen to change it, and a relay may mix two) is over, with the note
  `stream.id_changed`, but whatever was not told by then is broken, and what only that end says of calls, too.
- **Nothing of it may be missing**: a payload or field that could not be read and may have belonged to a
  call, a fragment of a wrong type or without a call, a hole in the wire's own numbering and a replaced
  character put the calls in doubt whose place they name, else all that are open: reason `conflict`. A
  piece that names two calls, one by its index and one by its id, puts both in doubt, a piece in a kind of payload
  that has none all of them, as two payloads have become one (of which is the place?), and so does a field that
  is said twice, and differently, in a payload that begins or states a call (see below). Only
  a copy of the whole text that the wire states itself takes the doubt away, from its own call.
- **The wire does not contradict itself**: an item that says incomplete or failed, a final list without
  it, another whole text, another name, another start in its place, an input when it began and none
  when it is done. Two that may be one are never both told: an item that is added again after it was told is the
  same item, a call whose id cannot be read may be the one whose place it takes, and a Chat message that says a
  call in `function_call` and in `tool_calls` says one call (`call.said_twice`); where the two differ, the old
  field's is broken. A call that was told and is said once more, under its id and in its place (Gemini and Ollama,
  which have no places: in another payload), is the same call (`call.start_repeated`); said otherwise, it is a
  `BrokenToolCall`. So is a copy of a Responses item that says something else than was told, in the final
  response or before it, and one in the final interaction; what the provider runs may know more of its input by
  then, which is a note. A call that only the final list has is told, unless one that was heard is missing there:
  it may be that one. The same id in another place is another call, with an id of its own.
- **The turn did not fail under it**: a failing word or an error, at the top, in a choice or in a delta,
  also before the end mark. A word that we do not know ends the turn as `Finish("other")`, on which no call
  without its own closing mark is whole. The first word that is not normal stands, whatever is said after it;
  only Chat lets a word that nobody knows give way, as some say one on every chunk. A call that was told when
  it closed stays told; `Failed` after it says that the turn is void.
- **Tools whose input is text** have no closing brace: only the closing mark counts, or the normal end of
  the turn where nothing closes calls; never the look of the text.

**Kinds of payloads that we do not know.** One that names the place of a call, or has words that only calls
have, puts that call in doubt. One that names no place may be new, and no loss, or the damaged piece of a
call. It puts the calls in doubt that go on at that moment (begun, not closed, no whole object yet) if it
brings a text in a field that the wire does not have elsewhere, since only a text can have been theirs. Numbers,
a bare kind, and whatever calls itself a ping, a keep-alive or a heartbeat do not. So a new kind of event that
comes between calls, or says no text, breaks nothing; one that brings text into the midst of a call breaks it
on wires that never state a text again (Anthropic, Chat, Cohere, Bedrock), and nothing on Responses, where the
item states it. An event that has a name and no data, or an empty data line, is ignored, as the specification
wants it, with a note (`wire.no_data`); if its kind is one of the wire's, or nearly, and has fields, it has lost
them, and if its name is more than a name it has eaten its data: the calls that go on are in doubt. So they are if
a Chat chunk says nothing but whose it is (`wire.field_odd`); padding, which real servers send, says more.

**New fields.** One whose value is a number may be the place of a call under another name, but only in a kind of
payload that has a place: a number beside a ping or an end breaks nothing. In the entry of a call that says no
arguments, a new field with anything in it may be a part of them: what would be `{}` is broken then. In copies of
a whole text 1 and 1.0 are the same, 1 and true are not.

**Words of a call where none belong.** A field that we do not know, and that has a name which only calls have
(`arguments` beside a function, `tool_calls` at the top), or a text in an entry of a call that has no function,
is a piece that was moved: a loss. So is a piece of a call that says nothing, not even an empty text, in the
midst of a text, one in a choice that has no call, and one behind the whole object of another call.

**Fields said twice.** JSON leaves open which counts, and the reader sees the last. Where a payload is read off the
hot path, in a block of Anthropic that begins a call and in an item of Responses, all fields are counted, and two
that differ are a loss. In the usual payloads of other wires they are not: that would take a look at each.

**Arguments as objects.** Where they should be text, one object is all of them. Where nothing closes a call (Chat
and the wires like it) the keys of several add up (`args.merged`); elsewhere two are a loss, whatever they say.

**Calls without arguments.** A missing `arguments` field is no text: `{}`, if the call was closed, the turn ended
normally and its entry has nothing that we do not know. Ollama itself always writes the field, an object or (older
servers, for none) `null`; imitators leave it out where it is empty.

Ids: the wire's own id of a call beats another identifier of its item, and that beats one that is minted,
whenever it comes before the call is told; one place is one call, whatever ids it is given.

What counts on each wire, from the row in its parser (`python -m tools.evidence`):
"""


def made() -> dict[Path, str]:
    """The document."""
    head = (
        "| wire | closes one call | states its whole text again | normal end of the turn | told |\n"
        "|---|---|---|---|---|"
    )
    known = (*PROVIDERS.values(), *programs())
    rows = [_row(row.name, row.part("parser", Parser).EVIDENCE) for row in known]
    return {OUT: "\n".join([HEAD, head, *rows, ""])}


def _row(name: str, evidence: Evidence) -> str:
    closed_by, *rest = evidence
    said = (
        closed_by or "nothing: the end of the turn decides",
        *(text or "nothing" for text in rest),
    )
    return f"| [`{name}`](wires/{name}.md) | " + " | ".join(map(cell, said)) + " |"


if __name__ == "__main__":
    sys.exit(main_of("tools.evidence", __doc__, made))
