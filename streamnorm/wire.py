"""The way back: a provider's name in, an object that says things in its words out.

    wire = provider("anthropic")
    body = wire.request(conversation, tools=tools, model="…")
    body = repair("anthropic", body).body  # one that another program wrote

Rule: nothing is sent here and nothing is kept but the names of declared tools. What could not be
said on a wire is told by ``declare`` and ``prepare``; ``tools`` and ``request`` are the same without
the report.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, Iterable, Sequence
from contextlib import suppress
from typing import Any, Literal, Unpack

import msgspec

from .conversation import Conversation, Turn
from .encoding import plan
from .encoding.declare import Declared, declare
from .encoding.encoder import CHOICES, Body, Encoder, Options
from .encoding.extra import check_extra, meant
from .encoding.mending import answered
from .encoding.messages import Messages
from .encoding.names import Names
from .encoding.pairs import ORPHANS, Orphans, Repair
from .encoding.plan import Prepared
from .encoding.repair import Repaired, repaired
from .encoding.schemas import Dropped
from .encoding.server import Served, Server, ServerOptions
from .errors import EncodeError, UnknownProvider, UsageError
from .events import Event, ToolCall
from .notes import WARNING, Scribe
from .options import RequestOptions
from .providers import AUTO, PROVIDERS, Provider, provider_row
from .tools import Tool, ToolChoice, ToolResult

__all__ = ["Declared", "Prepared", "Wire", "messages_of", "provider", "repair"]


def provider(name: str, *, names: Literal["map", "exact"] = "map") -> Wire:
    """The wire of that provider. ``names="exact"`` refuses tool names that would have to change.

    >>> provider("openai_chat").tools([Tool("now", "The time")])[0]["function"]["name"]
    'now'
    """
    row = provider_row(name)
    if row.encoder is None:
        raise EncodeError(f"requests to {name} cannot be written; this provider is read only")
    return Wire(row, exact=names == "exact")


def repair(provider: str, body: Any, *, orphans: Orphans = ORPHANS) -> Repaired:
    """A request's body, or its list of messages, that another program has left broken, mended.

    ``provider`` is whose wire it is, or ``"auto"``. The body that is passed is not changed.

    >>> body = {"messages": [{"role": "assistant", "tool_calls": [
    ...     {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]}]}
    >>> repair("openai_chat", body).body["messages"][1]["content"]
    'result unavailable; may or may not have run'
    """
    return repaired(messages_of(provider, body)[1], body, orphans)


def messages_of(name: str, body: Any) -> tuple[str, Messages]:
    """Whose request this is, told by its shape for ``"auto"``, and the words that it is written in.

    >>> messages_of("auto", {"contents": []})[0]
    'gemini'
    """
    row = _guessed(body) if name == AUTO else provider_row(name)
    return row.name, wire_of(row.name, body)[1]


def wire_of(name: str, body: Any) -> tuple[str, Messages]:
    """As ``messages_of``, but of the wires that one provider speaks the name of the one it is."""
    row = _guessed(body) if name == AUTO else provider_row(name)
    rows = [row, *map(provider_row, row.also)]
    wires = [(wire.name, _messages(wire)) for wire in rows]
    return max(wires, key=lambda wire: wire[1].likeness(body))


def _guessed(body: Any) -> Provider:
    readers: list[tuple[Provider, Messages]] = []
    for row in PROVIDERS.values():
        with suppress(UsageError):  # one that cannot be read back, or whose package is broken
            readers.append((row, _messages(row)))
    row, messages = max(readers, key=lambda reader: reader[1].likeness(body))
    if messages.likeness(body):
        return row
    if isinstance(body, list):
        return next(row for row, messages in readers if messages.is_usual_list)
    raise UnknownProvider(
        "nothing tells whose request this is; pass the provider, and a body or its messages"
    )


def _messages(row: Provider) -> Messages:
    if row.messages is None:
        raise EncodeError(
            f"requests to {row.name} cannot be read back or repaired: its row names no messages"
        )
    return row.part("messages", Messages)(row.container, row.name)


class Wire:
    """One provider's words for tools, choices, conversations and results. Made by ``provider``."""

    def __init__(self, row: Provider, *, exact: bool = False) -> None:
        self._row = row
        self._encoder = row.part("encoder", Encoder)
        self.name = row.name
        self.names = Names(self._encoder.naming, exact=exact)
        self._tools: dict[str, Tool] = {}

    def __repr__(self) -> str:
        return f"<Wire {self.name}>"

    # --- tools ------------------------------------------------------------------------------------

    def tools(self, tools: Iterable[Tool]) -> list[Body]:
        """The value of the request's field for tools.

        >>> provider("anthropic").tools([Tool("now", "The time")])[0]["input_schema"]
        {'type': 'object', 'properties': {}}
        """
        return self.declare(tools).tools

    def declare(self, tools: Iterable[Tool]) -> Declared:
        """As ``tools``, with a report of what could not be said.

        >>> tool = Tool("f", schema={"type": "object", "properties": {"a": {"pattern": "x"}}})
        >>> provider("gemini").declare([tool]).dropped[0].what
        'pattern'
        """
        return declare(self._new(), self.names, self._known(tools))

    def tool_choice(
        self, choice: ToolChoice | str | Iterable[str] | None, tools: Iterable[Tool] = ()
    ) -> Any:
        """The value of the request's field for the choice; None where nothing is to be said.

        Tools are those that were declared on this wire before, or ``tools``.

        >>> provider("anthropic").tool_choice("required", [Tool("now")])
        {'type': 'any'}
        """
        known = self._known(tools) or list(self._tools.values())
        wanted = ToolChoice.of(choice)
        encoder = self._new()
        if wanted.mode in encoder.narrowed:
            raise encoder.cannot(
                f"the choice {wanted.mode!r} by itself",
                "pass tool_choice to request(), which then declares only those tools",
            )
        named = [(t, t.name if t.native else self.names.wire(t.name)) for t in known]
        missing = set(wanted.names) - {tool.name for tool in known}
        named += [(Tool(name), self.names.wire(name)) for name in sorted(missing)]
        said: Any = encoder.choice(wanted, named)
        for step in encoder.choice_at:
            said = said.get(step) if said is not None else None
        return said

    def tool(self, name: str) -> Tool | None:
        """The declared tool that a call of that name means.

        >>> wire = provider("anthropic")
        >>> _ = wire.tools([Tool("files: read")])
        >>> wire.tool("files__read").name
        'files: read'
        """
        return self._tools.get(self.names.original(name))

    # --- conversations ----------------------------------------------------------------------------

    def request(
        self,
        conversation: Conversation | Iterable[Turn],
        tools: Iterable[Tool] | None = None,
        tool_choice: ToolChoice | str | Iterable[str] | None = None,
        system: str | None = None,
        model: str | None = None,
        max_tokens: int | None = None,
        **extra: Any,
    ) -> Body:
        """The whole body of a request that goes on with the conversation. See ``prepare``.

        >>> talk = Conversation().user("Hello")
        >>> provider("openai_responses").request(talk, model="m")["input"]
        [{'role': 'user', 'content': 'Hello'}]
        """
        return self.prepare(
            conversation, tools, tool_choice, system, model, max_tokens, **extra
        ).body

    def prepare(
        self,
        conversation: Conversation | Iterable[Turn],
        tools: Iterable[Tool] | None = None,
        tool_choice: ToolChoice | str | Iterable[str] | None = None,
        system: str | None = None,
        model: str | None = None,
        max_tokens: int | None = None,
        *,
        settings: RequestOptions | None = None,
        stream: bool | None = None,
        reasoning: Literal["own", "text", "none"] = "own",
        images: Literal["native", "summary", "user", "shown"] = "native",
        sdk_types: bool = False,
        orphans: Orphans = ORPHANS,
        unsaid: Literal["raise", "report"] = "raise",
        **extra: Any,
    ) -> Prepared:
        """The body, and a report of what could not be said in it as it was.

        ``reasoning``: sent to the provider that thought it (``own``), to others as ``text``, or to
        nobody (``none``). ``images``: media in results are sent in them where the wire and the model
        take them and described elsewhere (``native``), described everywhere (``summary``), or
        described and the pictures follow in a message of the ``user``; ``shown`` is native where that
        can be, and else the user's. ``sdk_types`` leaves out what
        the provider wants but its own SDK has no field for. ``orphans``: a call without its
        result is answered with a neutral ``error``, left out (``drop``), or refused (``raise``); it
        is a warning in the log, too, and the stored conversation stays as it is. ``settings`` say
        how to answer, in no provider's words; ``model``, ``max_tokens`` and ``stream`` go before
        what they say. ``unsaid``: a choice of tools that this wire has no word for is refused
        (``raise``) or left out with a row (``report``). ``extra`` is added to the body as it is; a
        name that is nearly one of these options is refused.

        >>> provider("gemini").prepare(Conversation().user("Hello"), system="Be brief").body
        {'contents': [{'role': 'user', 'parts': [{'text': 'Hello'}]}], \
'systemInstruction': {'parts': [{'text': 'Be brief'}]}}
        """
        check_extra(extra, _OWN)
        wanted = _settled(settings, model=model, max_tokens=max_tokens, stream=stream)
        encoder = self._new(
            reasoning=reasoning, images=images, model=wanted.model, max_tokens=wanted.max_tokens,
            stream=wanted.stream, sdk_types=sdk_types, unsaid=unsaid,
        )  # fmt: skip
        talk, report = answered(_conversation(conversation), orphans=orphans)
        prepared = plan.prepare(
            encoder, self.names, talk,
            tools=self._known(tools or ()), system=system, settings=wanted,
            choice=None if tool_choice is None else ToolChoice.of(tool_choice),
        )  # fmt: skip
        mended = [self._told(row) for row in report]
        return Prepared({**prepared.body, **extra}, (*mended, *prepared.dropped))

    def calls(self, calls: Sequence[ToolCall]) -> list[Body]:
        """The assistant side of these calls: entries for the provider's own container.

        >>> call = ToolCall(0, "call_1", "now", {}, "{}")
        >>> provider("bedrock").calls([call])[0]["role"]
        'assistant'
        """
        return plan.prepare_calls(self._new(), self.names, _listed(calls, "calls"))

    def results(self, results: Sequence[ToolResult], **options: Any) -> list[Body]:
        """The results of calls that stand before: entries for the provider's own container.

        ``options`` are those of ``prepare``: ``model``, ``images``, ``sdk_types``.

        >>> call = ToolCall(0, "call_1", "now", {}, "{}")
        >>> provider("openai_chat").results([ToolResult.for_call(call, "noon")])
        [{'role': 'tool', 'tool_call_id': 'call_1', 'content': 'noon'}]
        """
        made = _listed(results, "results")
        return plan.prepare_results(self._new(**options), self.names, made)

    # --- where, and the other way round -----------------------------------------------------------

    @property
    def container(self) -> str:
        """The field of the body that ``calls`` and ``results`` are added to; a dot leads into a field.

        >>> provider("openai_responses").container
        'input'
        """
        return self._row.container

    def path(self, model: str = "") -> str:
        """The path of the streaming endpoint below the provider's host.

        >>> provider("gemini").path("gemini-pro")
        '/v1beta/models/gemini-pro:streamGenerateContent?alt=sse'
        """
        return self._row.path.format(model=model)

    def serve(
        self,
        events: Iterable[Event] | AsyncIterable[Event],
        **options: Unpack[ServerOptions],
    ) -> Served:
        """Events as this provider would stream them, so that a client of it can read any stream.

        For ``for``, or ``async for`` if the events come so. A call that broke never reaches the
        client as a whole one. ``whole=True`` holds each call back until it is complete;
        ``release="end"`` holds back what would make a client run it until the answer has ended
        normally. The other options are those of ``ServerOptions``.

        >>> from streamnorm.events import Finish, TextDelta
        >>> b"".join(provider("openai_chat").serve([TextDelta("Hi"), Finish("stop")])).count(b"data:")
        4
        """
        return Served(self.server(**options), events)

    def server(self, **options: Unpack[ServerOptions]) -> Server:
        """The same without any waiting: ``tell`` it each event, and its bytes are to be sent.

        >>> from streamnorm.events import TextDelta
        >>> server = provider("anthropic").server(release="end", model="m")
        >>> server.tell(TextDelta("Hi")).count(b"event:"), server.end().count(b"event: error")
        (3, 1)
        """
        if self._row.server is None:
            able = ", ".join(name for name, row in PROVIDERS.items() if row.server)
            raise EncodeError(f"{self.name} cannot be served; serve one of {able}")
        return self._row.part("server", Server)(**options)

    def _told(self, row: Repair) -> Dropped:
        """A row of the report; logged, too, as whoever calls ``request`` sees no report."""
        Scribe(self.name).log(
            WARNING, f"request.{row.what}",
            call_id=row.id, name=row.name, where=row.where, reason=row.why,
        )  # fmt: skip
        return Dropped(row.where, f"{row.name} ({row.id})", f"{row.what}: {row.why}")

    def _new(self, **wishes: Any) -> Encoder:
        for name in wishes:
            if name not in Options._fields:
                near = meant(name, Options._fields)
                fix = (
                    f"did you mean {near}=?" if near else f"there are {', '.join(Options._fields)}"
                )
                raise UsageError(f"there is no option {name!r}: {fix}")
        options = Options(**wishes)
        for option, words in CHOICES.items():
            if getattr(options, option) not in words:
                raise EncodeError(
                    f"{option}={getattr(options, option)!r} is not one of {', '.join(words)}; a field "
                    f"of the provider's that has this name is set on the body: body[{option!r}] = …"
                )
        return self._encoder(options)

    def _known(self, tools: Iterable[Tool]) -> list[Tool]:
        known = _listed(tools, "tools")
        for tool in known:
            if not isinstance(tool, Tool):
                raise EncodeError(
                    f"a tool is a Tool, not {type(tool).__name__}; pass Tool(name, description, "
                    "schema) or Tool.from_function(function)"
                )
        self._tools |= {tool.name: tool for tool in known}
        return known


# The names of ``prepare``'s own options, which no field of a body may be mistaken for.
_NO_OPTIONS = ("conversation", "extra", "return")
_OWN = tuple(name for name in Wire.prepare.__annotations__ if name not in _NO_OPTIONS)


def _settled(settings: RequestOptions | None, **wishes: Any) -> RequestOptions:
    """The settings with what was wished beside them. A request asks for a stream unless it says so."""
    if settings is not None and not isinstance(settings, RequestOptions):
        raise UsageError(f"settings are RequestOptions, not {type(settings).__name__}")
    said = {name: wish for name, wish in wishes.items() if wish is not None}
    wanted = msgspec.structs.replace(settings or RequestOptions(), **said)
    return wanted if wanted.stream is not None else msgspec.structs.replace(wanted, stream=True)


def _conversation(said: Conversation | Iterable[Turn]) -> Conversation:
    if isinstance(said, Conversation):
        return said
    return Conversation(_listed(said, "turns"))


def _listed(things: Any, what: str) -> list[Any]:
    """These things as a list; one thing by itself is none."""
    if isinstance(things, Iterable) and not isinstance(things, str | bytes | dict):
        return list(things)
    raise EncodeError(f"{what} are to be passed as a list, not {type(things).__name__}")
