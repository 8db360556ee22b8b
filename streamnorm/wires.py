"""The way back: a provider's name in, an object that says things in its words out.

    wire = provider("anthropic")
    body = wire.request(conversation, tools=tools, model="…")

Rule: nothing is sent here and nothing is kept but the names of declared tools. What could not be
said on a wire is told by ``declare`` and ``prepare``; ``tools`` and ``request`` are the same without
the report.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module
from typing import Any, Literal

from .conversation import Conversation, Turn
from .errors import EncodeError
from .events import Event, ToolCall
from .names import Names
from .providers import _out, provider_row
from .providers._out import Declared, Encoder, Options, Prepared
from .providers._serve import Server
from .schemas import Dropped
from .tools import Tool, ToolChoice, ToolResult

__all__ = ["Declared", "Prepared", "Wire", "provider"]

Body = dict[str, Any]


def provider(name: str, *, names: Literal["map", "exact"] = "map") -> Wire:
    """The wire of that provider. ``names="exact"`` refuses tool names that would have to change.

    >>> provider("openai_chat").tools([Tool("now", "The time")])[0]["function"]["name"]
    'now'
    """
    row = provider_row(name)
    if row.encoder is None:
        raise EncodeError(f"requests to {name} cannot be written; this provider is read only")
    encoder: type[Encoder] = import_module(row.encoder).ENCODER
    return Wire(name, encoder, row.server, exact=names == "exact")


class Wire:
    """One provider's words for tools, choices, conversations and results. Made by ``provider``."""

    def __init__(
        self, name: str, encoder: type[Encoder], server: str | None, *, exact: bool = False
    ) -> None:
        self.name = name
        self.names = Names(encoder.naming, exact=exact)
        self._encoder = encoder
        self._server = server
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
        return _out.declare(self._new(), self.names, self._known(tools))

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
        stream: bool = True,
        reasoning: Literal["own", "text", "none"] = "own",
        images: Literal["summary", "user"] = "summary",
        pairing: Literal["raise", "error", "drop"] = "raise",
        **extra: Any,
    ) -> Prepared:
        """The body, and a report of what could not be said in it.

        ``reasoning``: sent to the provider that thought it (``own``), to others as ``text``, or to
        nobody (``none``). ``images``: pictures in results are described where a wire takes text
        only (``summary``), or follow in a message of the ``user``. ``pairing``: a call without its
        result raises, is answered with a neutral ``error``, or is left out (``drop``); the stored
        conversation stays as it is. ``extra`` is added to the body.

        >>> provider("gemini").prepare(Conversation().user("Hello"), system="Be brief").body
        {'contents': [{'role': 'user', 'parts': [{'text': 'Hello'}]}], \
'systemInstruction': {'parts': [{'text': 'Be brief'}]}}
        """
        options = Options(reasoning, images, pairing, model, max_tokens, stream)
        for option, words in _out.CHOICES.items():
            if getattr(options, option) not in words:
                raise EncodeError(
                    f"{option}={getattr(options, option)!r} is not one of {', '.join(words)}"
                )
        talk, mended = _paired(_conversation(conversation), pairing)
        prepared = _out.prepare(
            self._encoder(options), self.names, talk,
            tools=self._known(tools or ()), system=system,
            choice=None if tool_choice is None else ToolChoice.of(tool_choice),
        )  # fmt: skip
        return Prepared({**prepared.body, **extra}, (*mended, *prepared.dropped))

    def calls(self, calls: Sequence[ToolCall]) -> list[Body]:
        """The assistant side of these calls: entries for the provider's own container.

        >>> call = ToolCall(0, "call_1", "now", {}, "{}")
        >>> provider("gemini").calls([call])
        [{'role': 'model', 'parts': [{'functionCall': {'id': 'call_1', 'name': 'now', 'args': {}}}]}]
        """
        return _out.prepare_calls(self._new(), self.names, calls)

    def results(self, results: Sequence[ToolResult], **options: Any) -> list[Body]:
        """The results of calls that stand before: entries for the provider's own container.

        >>> call = ToolCall(0, "call_1", "now", {}, "{}")
        >>> provider("openai_chat").results([ToolResult.for_call(call, "noon")])
        [{'role': 'tool', 'tool_call_id': 'call_1', 'content': 'noon'}]
        """
        return _out.prepare_results(self._new(**options), self.names, results)

    # --- where, and the other way round -----------------------------------------------------------

    @property
    def container(self) -> str:
        """The field of the body that ``calls`` and ``results`` are added to.

        >>> provider("openai_responses").container
        'input'
        """
        return self._encoder.container

    def path(self, model: str = "") -> str:
        """The path of the streaming endpoint below the provider's host.

        >>> provider("gemini").path("gemini-pro")
        '/v1beta/models/gemini-pro:streamGenerateContent?alt=sse'
        """
        return self._encoder.path.format(model=model)

    def serve(self, events: Iterable[Event], *, whole: bool = False) -> Iterator[bytes]:
        """Events as this provider would stream them, so that a client of it can read any stream.

        ``whole=True`` holds each call back until it is complete. A call that broke never reaches
        the client as a whole one.

        >>> from streamnorm.events import Finish, TextDelta
        >>> b"".join(provider("openai_chat").serve([TextDelta("Hi"), Finish("stop")])).count(b"data:")
        4
        """
        if self._server is None:
            raise EncodeError(
                f"{self.name} cannot be served; serve openai_chat, openai_responses or anthropic"
            )
        server: Server = import_module(self._server).SERVER(whole=whole)
        return server.serve(events)

    def _new(self, **options: Any) -> Encoder:
        return self._encoder(Options(**options))

    def _known(self, tools: Iterable[Tool]) -> list[Tool]:
        known = list(tools)
        self._tools |= {tool.name: tool for tool in known if isinstance(tool, Tool)}
        return known


def _conversation(said: Conversation | Iterable[Turn]) -> Conversation:
    return said if isinstance(said, Conversation) else Conversation(list(said))


def _paired(
    talk: Conversation, pairing: Literal["raise", "error", "drop"]
) -> tuple[Conversation, tuple[Dropped, ...]]:
    """The conversation with its orphans seen to, and a row for each of them."""
    if pairing == "raise":
        return talk, ()
    from .repairing import mend  # the way back works without histories

    mended = mend(talk, orphans=pairing)
    return mended.conversation, tuple(
        Dropped(row.where, f"{row.name} ({row.id})", f"{row.what}: {row.why}")
        for row in mended.report
    )
