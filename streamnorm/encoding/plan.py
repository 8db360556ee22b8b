"""A conversation comes in; what one wire is to say of it goes out, and the body of the request.

The conversation is one in which results stand directly behind their calls (``mending.answered``). This
file decides, in no provider's words: which ids and names calls have on the wire; who gets an echo (only
the provider that gave it); what is left out, each with a row in the report.

Rule: an encoder is told nothing that its wire may not hear.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from ..conversation import Conversation, Made, Reasoning, Text, Turn
from ..errors import EncodeError
from ..events import Echo, ProviderToolResult, ToolCall
from ..options import RequestOptions
from ..text.written import json_text
from ..tools import File, Link, Tool, ToolChoice, ToolResult, only_whole
from .declare import tool_fields
from .encoder import Answer, Body, Called, Encoder, Entry, Said, Spoken
from .fields import joined, said_options
from .ids import Ids
from .names import Names
from .schemas import Dropped

__all__ = ["Prepared", "prepare", "prepare_calls", "prepare_results"]

SUMMARY_FORMAT = "<thinking>\n{}\n</thinking>"


class Prepared(NamedTuple):
    """A request's body, and what could not be said in it as it was."""

    body: Body
    dropped: tuple[Dropped, ...] = ()


def prepare(
    encoder: Encoder,
    names: Names,
    conversation: Conversation,
    *,
    tools: Sequence[Tool],
    choice: ToolChoice | None,
    system: str | None,
    settings: RequestOptions,
) -> Prepared:
    """The body of a request that goes on with this conversation."""
    names.declare(tool.name for tool in tools if not tool.native)
    plan = _Plan(encoder, names)
    talk = plan.of(conversation)
    texts = [text for text in (system, conversation.system, *plan.system) if text]
    fields = tool_fields(encoder, names, tools, choice, talk)
    body = encoder.body(talk, "\n\n".join(texts) or None, fields)
    return Prepared(_with(encoder, body, settings), tuple(encoder.dropped))


def _with(encoder: Encoder, body: Body, settings: RequestOptions) -> Body:
    """The body with the fields that say how to answer: those of all wires, and this one's own."""
    if not encoder.fields:  # it has said these itself
        settings = settings.without("max_tokens")
    said, dropped = said_options(encoder.fields, settings)
    encoder.dropped += dropped
    for provider, fields in settings.native.items():
        if provider != encoder.name:
            for field, value in fields.items():
                if value is not None:
                    encoder.drop("body", _named(field, value), f"only {provider} knows this field")
    return joined(joined(said, body), settings.native.get(encoder.name, {}))


def _named(field: str, value: Any) -> str:
    """A field of another wire's body; of an object it may be a part that is left."""
    return f"{field}: {', '.join(value)}" if isinstance(value, dict) and value else field


def prepare_calls(encoder: Encoder, names: Names, calls: Sequence[ToolCall]) -> list[Entry]:
    """The assistant side of these calls."""
    for call in calls:
        only_whole(call, "this wire can only be told")
    called = _called(encoder, names, Ids(encoder.name, encoder.grammar), calls)
    _each_once([c.call for c in called], "two calls of one list have the id")
    return encoder.assistant(Said("assistant", tuple(called)))


def prepare_results(encoder: Encoder, names: Names, results: Sequence[ToolResult]) -> list[Entry]:
    """The answers to calls that stand before, in the order of the calls."""
    for result in results:
        if not isinstance(result, ToolResult):
            raise EncodeError(
                f"a result is a ToolResult, not {type(result).__name__}; make it with "
                "ToolResult.for_call(call, output)"
            )
    ordered = sorted(results, key=lambda result: result.call.call)
    _each_once([r.call for r in ordered], "two results answer the call")
    called = _called(encoder, names, Ids(encoder.name, encoder.grammar), [r.call for r in ordered])
    answers = tuple(_answer(encoder, c, r) for c, r in zip(called, ordered, strict=True))
    return encoder.entries([Said("tool", answers=answers)]) if answers else []


def _answer(encoder: Encoder, called: Called, result: ToolResult) -> Answer:
    """File as they are wanted: in the result, described, or described and shown beside it."""
    wish, inside = encoder.options.images, Answer(called, result)
    if wish == "native" or not result.media or not result.inline:
        return inside
    if wish == "shown" and _is_sayable(encoder, encoder.answers, Said("tool", answers=(inside,))):
        return inside
    pictures = (media for media in result.media if media.modality == "image")
    beside = () if wish == "summary" else tuple(pictures)
    return Answer(called, msgspec.structs.replace(result, inline=False), beside)


def _is_sayable(encoder: Encoder, say: Callable[[Said], list[Entry]], said: Said) -> bool:
    """Does it say these media, not only words for them? It is tried, as each encoder knows itself."""
    before = len(encoder.dropped)
    media = [m for answer in said.answers for m in answer.result.media]
    media += [part for part in said.parts if isinstance(part, File)]
    try:
        text = json_text(say(said))
    except EncodeError:
        return False
    finally:
        del encoder.dropped[before:]
    return not any(file.summary in text for file in media)


def _each_once(calls: list[ToolCall], complaint: str) -> None:
    seen: set[str] = set()
    for call in calls:
        if call.id in seen:
            raise EncodeError(
                f"{complaint} {call.id!r} ({call.name}); pass each once, or all turns to request()"
            )
        seen.add(call.id)


def _called(
    encoder: Encoder, names: Names, ids: Ids, calls: Sequence[ToolCall]
) -> list[Called]:  # fmt: skip
    return [
        Called(
            call, id, names.wire(call.name) if call.runs_on == "client" else call.name,
            call.provenance.provider == encoder.name,
        )
        for call, id in zip(calls, ids.assign(calls), strict=True)
    ]  # fmt: skip


class _Plan:
    """A conversation on its way to be said on one wire."""

    def __init__(self, encoder: Encoder, names: Names) -> None:
        self._encoder = encoder
        self._names = names
        self._ids = Ids(encoder.name, encoder.grammar)
        self._talk: list[Said] = []
        self._called: list[Called] = []  # in the last assistant turn
        self._speaker: str | None = None  # whose text was the last one in it
        self._pictures: list[tuple[str, File]] = []  # that the model made, not shown again yet
        self.system: list[str] = []  # what belongs before everything

    def of(self, conversation: Conversation) -> list[Said]:
        for number, turn in enumerate(conversation.turns):
            TURNS[turn.role](self, turn, f"turn {number}")
        for where, file in self._pictures:
            self._encoder.drop(where, file.type, "a model's picture needs a user's turn after it")
        return self._talk

    # --- each kind of turn ------------------------------------------------------------------------

    def _system(self, turn: Turn, where: str) -> None:
        if self._talk and self._encoder.says_system_anywhere:
            self._talk.append(Said("system", turn.parts))  # type: ignore[arg-type]
            return
        if self._talk:
            self._encoder.drop(where, "place", "this wire has one system text, before everything")
        self.system.append(turn.text)

    def _user(self, turn: Turn, where: str) -> None:
        parts = tuple(
            self._sayable(part, where)
            for part in turn.parts
            if isinstance(part, Text | File | Link)
        )
        if parts:
            self._talk.append(Said("user", (*self._shown_again(), *parts)))

    def _sayable(self, part: Text | File | Link, where: str) -> Text | File | Link:
        """What is at an address, on a wire that takes none, is told in words."""
        if not isinstance(part, Link) or self._encoder.linked(part) is not None:
            return part
        self._encoder.drop(
            where,
            "address",
            f"this wire takes no {part.modality} at an address; it is told in words",
        )
        return Text(part.words)

    def _shown_again(self) -> list[File]:
        """Pictures that the model made, on a wire that hears of them from users only."""
        pictures, self._pictures = self._pictures, []
        for where, _ in pictures:
            self._encoder.drop(where, "place", "a model's picture is shown in the next user's turn")
        return [file for _, file in pictures]

    def _tool(self, turn: Turn, where: str) -> None:
        if not self._called:  # a service has them
            calls = [result.call for result in turn.results]
            self._called = _called(self._encoder, self._names, self._ids, calls)
        called = iter(self._called)  # results stand in the order of the calls
        pairs = [(next(c for c in called if c.call == r.call), r) for r in turn.results]
        answers = tuple(
            _answer(self._encoder, call, result)
            for call, result in pairs
            if self._hears_answer(call)
        )
        if answers:
            self._talk.append(Said("tool", answers=answers))

    def _hears_answer(self, called: Called) -> bool:
        call = called.call
        if call.runs_on == "client" or call.name in self._encoder.answerable:
            return True
        if called.own:
            raise self._encoder.cannot(
                f"a result of {call.name!r}, which it runs itself", "leave the result out"
            )
        return False  # the call was left out, and so is its answer

    def _assistant(self, turn: Turn, where: str) -> None:
        calls = [part for part in turn.parts if isinstance(part, ToolCall)]
        self._called = _called(self._encoder, self._names, self._ids, calls)
        left = iter(self._called)
        self._speaker = None
        own = turn.provider == self._encoder.name
        parts = [
            spoken
            for part in turn.parts
            if (
                spoken := self._spoken(
                    next(left) if isinstance(part, ToolCall) else part, own, where
                )
            )
        ]
        self._talk.append(Said("assistant", tuple(parts), own=own, facts=_facts(turn, own)))

    def _spoken(self, part: Any, own: bool, where: str) -> Spoken | None:
        """The part as this wire may hear it, or None."""
        hears = HEARS.get(type(part))
        if hears is None:
            raise EncodeError(
                f"{where}: an assistant turn cannot have a {type(part).__name__}; put it into a "
                "user or a tool turn"
            )
        return hears(self, part, own, where)

    def _text(self, part: Text, own: bool, where: str) -> Text:
        """Another wire does not hear who speaks, only that it is somebody else."""
        before, self._speaker = self._speaker, part.agent or ""
        if own:
            return part
        if part.citations:
            self._encoder.drop(where, "citations", "only the wire that told them has their form")
        is_other = before is not None and before != self._speaker
        return Text(f"\n\n{part.text}" if is_other else part.text)

    def _reasoning(self, part: Reasoning, own: bool, where: str) -> Spoken | None:
        wish = self._encoder.options.reasoning
        if own and wish != "none":
            return part
        if wish == "text" and part.text:
            return Text(SUMMARY_FORMAT.format(part.text))
        self._encoder.drop(
            where, "reasoning", "it is sent to the provider that thought it, or on request"
        )
        return None  # fmt: skip

    def _made(self, part: Made, own: bool, where: str) -> Spoken | None:
        place = self._encoder.place_of(part, own)
        if place == "turn":
            return part if own else Made(part.type, part.data, part.url)
        if place == "nowhere":
            self._show_again(part, where)
        return None

    def _show_again(self, part: Made, where: str) -> None:
        file = part.file
        if part.handle is not None and file is None:
            why = "its bytes lie in a spool; Spool.filled(turn) brings them back"
        elif file is None or file.modality != "image":
            why = "only the provider that made it has a place for it"
        elif not self._takes(file):
            why = "this wire takes no pictures of this type"
        else:
            self._pictures.append((where, file))
            return
        self._encoder.drop(where, part.type, why)

    def _takes(self, file: File) -> bool:
        """Can a user show it on this wire?"""
        return _is_sayable(self._encoder, self._encoder.user, Said("user", (file,)))

    def _hosted_call(self, part: Called, own: bool, where: str) -> Called | None:
        if part.own or part.call.runs_on == "client":
            return part
        self._encoder.drop(
            where, part.call.name, "only the provider that ran the tool knows the call"
        )
        return None

    def _hosted_result(self, part: ProviderToolResult, own: bool, where: str) -> Spoken | None:
        if own and part.echo is not msgspec.UNSET:
            return part
        self._encoder.drop(
            where, "tool_result", "only the provider that ran the tool knows its result"
        )
        return None


TURNS: Mapping[str, Callable[[_Plan, Turn, str], None]] = {
    "system": _Plan._system,
    "user": _Plan._user,
    "tool": _Plan._tool,
    "assistant": _Plan._assistant,
}
HEARS: Mapping[type, Callable[[_Plan, Any, bool, str], Spoken | None]] = {
    Text: _Plan._text,
    Reasoning: _Plan._reasoning,
    Made: _Plan._made,
    Called: _Plan._hosted_call,
    ProviderToolResult: _Plan._hosted_result,
}


def _facts(turn: Turn, own: bool) -> Echo:
    return dict(turn.echo or {}) if own else {}
