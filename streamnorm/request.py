"""A request that any program wrote for any provider: its body in, what it says out; and said again.

    request = read_request("anthropic", body)           # "auto": told by its shape
    request.conversation, request.tools, request.options
    request.prepare("gemini", model="…").body            # the same request for another wire

Rule: nothing is lost in silence. What has no place here is a row of ``report``; what only its own wire
has a word for stays in ``options.native`` and goes back to that wire; what another wire cannot say is a
row in what ``prepare`` gives. What the model said is read by the provider's own parser: it is told to
it again as a stream, so calls, ids, signatures and reasoning are what they would have been had we heard
it ourselves. Whatever stands in a body, the only errors are ours.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Literal

import msgspec

from .conversation import Conversation, Text, Turn
from .encoding.encoder import Encoder
from .encoding.fields import read_options, taken
from .encoding.kept import unkept
from .encoding.mending import Mended
from .encoding.messages import (
    Entry,
    LeftOut,
    Messages,
    ModelSaid,
    Step,
    SystemSaid,
    ToolSaid,
    UserSaid,
    gathered,
)
from .encoding.pairs import Asked, Given, Repair, paired
from .encoding.plain import must_be_plain
from .encoding.plan import Prepared
from .encoding.schemas import Dropped
from .errors import EncodeError, UsageError
from .events import Failed, ToolCall
from .normalizer import Normalizer
from .options import RequestOptions
from .providers import provider_row
from .tools import Tool, ToolChoice, ToolResult
from .wire import Wire, messages_of, wire_of
from .wire import provider as _wire

__all__ = ["Request", "read_conversation", "read_request"]

# How hard to think: a matter of the model that is asked.
THINKING = ("effort", "thinking", "thinking_budget")
NOT_ASKED = 'said to another wire; thinking="any" says it here, too'
NO_PLACE = "there is no place for this field in a conversation"


class Request(msgspec.Struct, frozen=True):
    """A request as it was read. ``provider`` is whose words it was written in.

    ``system`` is what stands before everything; system texts in the midst are turns. ``has_past``: the
    service has turns that are not in it. ``report`` tells what could not be kept.
    """

    provider: str
    conversation: Conversation
    system: str | None = None
    tools: tuple[Tool, ...] = ()
    tool_choice: ToolChoice | None = None
    options: RequestOptions = RequestOptions()
    report: tuple[Dropped, ...] = ()
    has_past: bool = False

    def prepare(
        self,
        provider: str | Wire | None = None,
        *,
        model: str | None = None,
        without: Iterable[str] = (),
        thinking: Literal["own", "any"] = "own",
        **options: Any,
    ) -> Prepared:
        """The same request for this or another wire, and a report of what that cannot say.

        A ``Wire`` in place of its name knows the tools afterwards: ``wire.tool(call.name)``.
        ``model`` is another one; ``without`` names options that are not to be said, such as
        ``max_tokens``. ``thinking``: how hard to think is said to the wire that it was said to
        (``own``), as programs say it unasked and models that cannot refuse it; or to ``any``.
        ``options`` are those of ``Wire.prepare``. A choice of tools that the wire has no word for is
        left out with a row.

        >>> body = {"model": "m", "messages": [{"role": "user", "content": "Hi"}], "temperature": 0.2}
        >>> read_request("openai_chat", body).prepare("gemini").body["generationConfig"]
        {'temperature': 0.2}
        """
        if thinking not in ("own", "any"):
            raise UsageError(f"thinking={thinking!r} is not one of own, any")
        wire = provider if isinstance(provider, Wire) else _wire(provider or self.provider)
        if self.has_past and wire.name != self.provider:
            raise EncodeError(
                f"{self.provider} has turns that are not in this request, and {wire.name} has not; send "
                "the whole conversation"
            )
        kept = self.options.without(*without)
        is_kept = thinking == "any" or wire.name == self.provider
        left = () if is_kept else [name for name in THINKING if getattr(kept, name) is not None]
        # Calls that were never whole are told in ``report``; they must not spoil every later request.
        whole = Conversation([turn.whole() for turn in self.conversation])
        with _bounded():
            prepared = wire.prepare(
                whole, self.tools, self.tool_choice, self.system, model,
                **{"settings": kept.without(*left), "unsaid": "report", **options},
            )  # fmt: skip
        told = (Dropped("options", name, NOT_ASKED) for name in left)
        return Prepared(prepared.body, (*told, *prepared.dropped))


@contextmanager
def _bounded() -> Iterator[None]:
    """In it what is nested more deeply than anybody means it is refused."""
    try:
        yield
    except RecursionError:
        raise UsageError("this request is nested too deeply to be read or written") from None


def read_request(provider: str, body: Any) -> Request:
    """What a request's body says. ``provider`` is whose wire it is, or ``"auto"``.

    >>> body = {"model": "m", "system": "Be brief.", "max_tokens": 9, "messages": []}
    >>> read_request("auto", body).system
    'Be brief.'
    """
    if not isinstance(body, dict):
        raise UsageError(f"the body of a request is an object, not {type(body).__name__}")
    with _bounded():
        must_be_plain(body)
        name, messages = wire_of(
            provider, body
        )  # of several that one provider speaks, the one it is
        return _read(name, messages, messages.evened(body))


def read_conversation(provider: str, body: Any) -> Mended:
    """The turns alone, of a body or of its list of messages; the system text is in them."""
    with _bounded():
        name, messages = messages_of(provider, body)
        must_be_plain(body, messages.container)
        return _talk(name, messages, messages.evened(body)).read()


def _read(name: str, messages: Messages, body: Entry) -> Request:
    heard = _talk(name, messages, body)
    read = heard.read()
    report = [Dropped(row.where, row.what, _why(row)) for row in read.report]
    fields = provider_row(name).part("encoder", Encoder).fields
    said, rest = read_options(fields, body)
    choice = messages.choice(body)
    unread = set() if choice is not None else {messages.choice_at}
    for path in (messages.container, *messages.beside):
        rest = rest if path in unread else taken(rest, path)
    tools = list(messages.tools(body))
    report += [Dropped(t.where, "left_out", t.why) for t in tools if isinstance(t, LeftOut)]
    report += [Dropped(where, field, NO_PLACE) for where, field in messages.unread(body)]
    report += [Dropped(messages.container, field, NO_PLACE) for field in heard.unkept]
    return Request(
        name, Conversation(read.conversation.turns), read.conversation.system,
        tuple(tool for tool in tools if isinstance(tool, Tool)), choice,
        RequestOptions(**said, native={name: rest}), _counted(report), messages.has_past(body),
    )  # fmt: skip


def _counted(report: Iterable[Dropped]) -> tuple[Dropped, ...]:
    """One row for each thing, however often it stands there."""
    places: dict[tuple[str, str], list[str]] = {}
    for row in report:
        places.setdefault((row.what, row.why), []).append(row.where)
    return tuple(
        Dropped(where[0], what, f"{why} ({len(where)} times)" if len(where) > 1 else why)
        for (what, why), where in places.items()
    )


def _why(row: Repair) -> str:
    named = " ".join(filter(None, [row.name, row.id and f"({row.id})"]))
    return f"{named}: {row.why}" if named else row.why


# --- what was said --------------------------------------------------------------------------------


def _talk(name: str, messages: Messages, body: Any) -> _Reading:
    entries = messages.entries(body)
    if not isinstance(entries, list | str if messages.takes_text else list):
        raise UsageError(f"this body has no list of {messages.container!r}, as those of {name} do")
    beside = messages.system(body) if isinstance(body, dict) else None
    reading = _Reading(name, messages)
    for step in gathered(SystemSaid, "system", messages.content(beside, "system")):
        reading.hear(step)
    for step in messages.read(entries):
        reading.hear(step)
    return reading


class _Reading:
    """Steps of a body on their way to be turns."""

    def __init__(self, provider: str, messages: Messages) -> None:
        self._provider = provider
        self._messages = messages
        self._system: str | None = None
        self._said: list[Turn | ToolSaid] = []
        self._report: list[Repair] = []
        self.unkept: list[str] = []  # fields of what the model said that its parser did not keep

    def hear(self, step: Step) -> None:
        match step:
            case ModelSaid():
                self._model(step)
            case SystemSaid():
                self._instructed(step)
            case UserSaid():
                self._said.append(Turn("user", tuple(step.pieces)))
            case ToolSaid():
                self._said.append(step)
            case LeftOut():
                self._left_out(step.where, step.why)

    def _model(self, step: ModelSaid) -> None:
        pipe = Normalizer(self._provider, seed=f"transcript/{len(self._said)}")
        events = [event for payload in step.payloads for event in pipe.feed_payload(payload)]
        events += pipe.close()
        turn = self._named(Turn.from_events(events))
        if isinstance(events[-1], Failed):
            self._left_out(step.where, f"what the model said cannot be read: {events[-1].error}")
        for broken in turn.broken:
            if not broken.goes_back:
                why = f"{broken.reason}: {broken.detail}"
                self._report.append(Repair("dropped_call", broken.id, broken.name, step.where, why))
        self.unkept += unkept(step.entries, turn, self._messages.usual)
        if turn.parts:
            self._said.append(turn)

    def _named(self, turn: Turn) -> Turn:
        """Its calls under the names by which the tools are known here."""
        parts = [
            msgspec.structs.replace(part, name=self._messages.name_of(part))
            if isinstance(part, ToolCall)
            else part
            for part in turn.parts
        ]
        return msgspec.structs.replace(turn, parts=tuple(parts))

    def _instructed(self, step: SystemSaid) -> None:
        texts = [piece.text for piece in step.pieces if isinstance(piece, Text)]
        if len(texts) < len(step.pieces):
            self._left_out(step.where, "media have no place in a system text")
        if not self._said and self._system is None:
            self._system = "\n\n".join(texts)
        else:
            self._said.append(Turn("system", (Text("\n\n".join(texts)),)))

    def _left_out(self, where: str, why: str) -> None:
        self._report.append(Repair("left_out", "", "", where, why))

    # --- results ----------------------------------------------------------------------------------

    def read(self) -> Mended:
        """The conversation: results are where they stood, each with its call."""
        calls, strays = self._pair()
        turns: list[Turn] = []
        for place, said in enumerate(self._said):
            if isinstance(said, Turn):
                turns.append(said)
            elif place in calls:
                _give(turns, ToolResult.for_call(calls[place], said.output, said.is_error))
            else:
                id, name = said.id or "", said.name or ""
                self._report.append(Repair("dropped_result", id, name, said.where, strays[place]))
        return Mended(Conversation(turns, self._system), tuple(self._report))

    def _pair(self) -> tuple[dict[int, ToolCall], dict[int, str]]:
        """By the place of a result: the call that it answers, or why it answers none."""
        calls: list[ToolCall] = []
        asked: list[Asked] = []
        given: list[Given] = []
        after = -1
        for place, said in enumerate(self._said):
            if isinstance(said, ToolSaid):
                given.append(Given(place, after, said.id, said.name))
            elif said.role == "assistant":
                after = place
                made = [part for part in said.parts if isinstance(part, ToolCall)]
                calls += made
                asked += [Asked(place, _stated_id(call), call.name) for call in made]
        answers, strays = paired(asked, given)
        answered = {given[n].place: calls[at] for at, n in enumerate(answers) if n is not None}
        return answered, {given[n].place: why for n, why in strays.items()}


def _stated_id(call: ToolCall) -> str | None:
    """An id that was minted here stands in no body."""
    return None if call.provenance.id_source == "synthetic" else call.id


def _give(turns: list[Turn], result: ToolResult) -> None:
    if turns and turns[-1].role == "tool":
        turns[-1] = Turn("tool", (*turns[-1].parts, result))
    else:
        turns.append(Turn("tool", (result,)))
