"""What the caller says about tools: a declaration, and the result of a call.

Rule: a result is bound to the call object it answers, never to an id, so it cannot be paired with
another call; and only a whole call can be answered.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from mimetypes import guess_type
from typing import Any, ClassVar, Literal, TypeAlias, get_type_hints

import msgspec

from .errors import EncodeError
from .events import BrokenToolCall, ToolCall
from .text.written import json_text

__all__ = [
    "File", "Grammar", "Link", "Output", "Tool", "ToolChoice", "ToolResult", "arguments_of",
]  # fmt: skip

EMPTY_SCHEMA: dict[str, Any] = {"type": "object", "properties": {}}
TEXT_SCHEMA: dict[str, Any] = {
    "type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"],
    "additionalProperties": False,
}  # fmt: skip
Mode: TypeAlias = Literal["auto", "none", "required", "tool", "allowed"]
MediaKind: TypeAlias = Literal["image", "audio", "video", "document"]


class Grammar(msgspec.Struct, frozen=True):
    """What the input of a text tool may be: a ``lark`` grammar or a ``regex``, as ``syntax`` says.

    >>> Grammar("regex", "[0-9]+").definition
    '[0-9]+'
    """

    syntax: str
    definition: str


class Tool(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """A tool that the model may call.

    >>> Tool("weather", "Weather in a city", {"type": "object", "properties": {"city": {"type": "string"}}}).name
    'weather'

    ``native`` holds a provider's own declaration of a tool that it runs itself; it is passed on to
    that provider as it is and left out for every other. ``mcp_server`` is the MCP server of a tool that
    has one. ``text`` says that its input is plain text, of that ``grammar`` (see ``of_text``).
    ``namespace`` is the one it stands in, and its name begins with that. ``extra`` holds what a
    provider's declaration says beside all this, and goes back to that provider alone.
    """

    name: str
    description: str = ""
    schema: dict[str, Any] = msgspec.field(default_factory=lambda: dict(EMPTY_SCHEMA))
    strict: bool | None = None
    native: dict[str, dict[str, Any]] = {}
    mcp_server: str | None = None
    text: bool = False
    grammar: Grammar | None = None
    namespace: str | None = None
    namespace_description: str = ""
    extra: dict[str, dict[str, Any]] = {}

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not isinstance(self.description, str):
            raise EncodeError("a tool has a name and a description, which are texts, and a schema")

    @classmethod
    def from_function(
        cls,
        function: Callable[..., Any],
        *,
        name: str | None = None,
        description: str | None = None,
    ) -> Tool:
        """A tool made of a typed Python function: its name, docstring and annotations.

        >>> def add(a: int, b: int = 1) -> int:
        ...     "Add two numbers."
        >>> Tool.from_function(add).schema["required"]
        ['a']
        """
        if not callable(function):
            raise EncodeError(f"a tool is made of a typed function, not of {function!r}")
        with _sayable(_named(function)):
            schema = _schema_of(arguments_of(function))
        return cls(
            name or _named(function),
            description if description is not None else inspect.getdoc(function) or "",
            schema,
        )

    @classmethod
    def from_model(cls, model: type, *, name: str | None = None) -> Tool:
        """A tool whose arguments are a msgspec struct, a dataclass or a pydantic model.

        >>> class Trip(msgspec.Struct):
        ...     "Book a trip."
        ...     city: str
        >>> Tool.from_model(Trip)
        Tool(name='Trip', description='Book a trip.', schema={'type': 'object', \
'properties': {'city': {'type': 'string'}}, 'required': ['city']})
        """
        if not hasattr(model, "__name__"):
            raise EncodeError(
                f"a tool is made of a struct, a dataclass or a pydantic model itself, not of {model!r}"
            )
        description = inspect.cleandoc(model.__doc__ or "")
        with _sayable(model.__name__):
            schema = _schema_of(model)
        schema.pop("description", None)  # it is said once
        return cls(name or model.__name__, description, schema)

    @classmethod
    def server(cls, provider: str, declaration: dict[str, Any]) -> Tool:
        """A tool that ``provider`` runs itself, in its own words.

        >>> Tool.server("openai_responses", {"type": "web_search"}).name
        'web_search'
        """
        name = str(
            declaration.get("name") or declaration.get("type") or next(iter(declaration), "")
        )
        return cls(name, native={provider: declaration})

    @classmethod
    def of_text(
        cls, name: str, description: str = "", grammar: Grammar | None = None, **more: Any
    ) -> Tool:
        """A tool whose input is plain text. Its calls have the arguments ``{"input": text}``.

        >>> Tool.of_text("apply_patch", "Edit files").schema["required"]
        ['input']
        """
        return cls(name, description, dict(TEXT_SCHEMA), text=True, grammar=grammar, **more)

    @classmethod
    def mcp(
        cls, server: str, tool: str, description: str = "", schema: dict[str, Any] | None = None
    ) -> Tool:
        """The tool of an MCP server, under a name that tells which.

        >>> Tool.mcp("github", "create_issue").name
        'github__create_issue'
        """
        return cls(
            f"{server}__{tool}", description, schema or dict(EMPTY_SCHEMA), mcp_server=server
        )

    @property
    def own_name(self) -> str:
        """The name by which its MCP server, or its namespace, knows it.

        >>> Tool.mcp("github", "create_issue").own_name
        'create_issue'
        """
        within = self.mcp_server or self.namespace
        return self.name.removeprefix(f"{within}__") if within else self.name

    @property
    def as_function(self) -> Tool:
        """A text tool for a wire that has none: a function of one text. Any other as it is.

        >>> Tool.of_text("calc", "Reckons", Grammar("regex", "[0-9+]+")).as_function.description
        'Reckons\\n\\nThe input follows this regex:\\n[0-9+]+'
        """
        if not self.text:
            return self
        told = [self.description] if self.description else []
        if self.grammar is not None:
            kind = "regex" if self.grammar.syntax == "regex" else f"{self.grammar.syntax} grammar"
            told.append(f"The input follows this {kind}:\n{self.grammar.definition}")
        return msgspec.structs.replace(
            self, description="\n\n".join(told), text=False, grammar=None
        )


class ToolChoice(msgspec.Struct, frozen=True):
    """What the model may or must call.

    ``mode``: ``auto``, ``none``, ``required`` (any tool), ``tool`` (the one in ``names``) or
    ``allowed`` (those in ``names``). ``parallel=False`` asks for one call at a time.

    >>> ToolChoice.of("weather")
    ToolChoice(mode='tool', names=('weather',), parallel=True)
    """

    mode: Mode = "auto"
    names: tuple[str, ...] = ()
    parallel: bool = True

    def __post_init__(self) -> None:
        for name in self.names:
            if not isinstance(name, str):
                raise EncodeError(
                    'a choice is "auto", "none", "required", the name of a tool, or a list of names, '
                    f"not {name!r}"
                )

    @classmethod
    def of(cls, choice: ToolChoice | str | Iterable[str] | None) -> ToolChoice:
        """A choice from what people write: a mode, a tool's name, or a list of names."""
        if choice is None:
            return cls()
        if isinstance(choice, ToolChoice):
            return choice
        if isinstance(choice, str):
            if choice == "any":
                return cls("required")
            return cls(choice) if choice in ("auto", "none", "required") else cls("tool", (choice,))  # type: ignore[arg-type]
        return cls("allowed", tuple(choice) if isinstance(choice, Iterable) else (choice,))


class File(msgspec.Struct, frozen=True, tag_field="kind", tag="media"):
    """Bytes with a type: an image, a sound, a video or a document.

    >>> File(b"...", "image/png").modality
    'image'
    """

    data: bytes
    type: str
    name: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.data, bytes) or not isinstance(self.type, str):
            wrong = self.type if isinstance(self.data, bytes) else self.data
            raise EncodeError(
                f"File is bytes and their type, such as File(b'…', 'image/png'), not "
                f"{type(wrong).__name__}"
            )

    @property
    def modality(self) -> MediaKind:
        """image, audio, video, or document for anything else."""
        return _modality(self.type)

    @property
    def summary(self) -> str:
        """What is said of it on a wire that cannot take it."""
        return f"Binary content of type {self.type} was processed."

    @property
    def words(self) -> str:
        """What a user has said with it, on a wire that cannot take it: a text is its own words.

        >>> File(b"Hi.", "text/plain").words, File(b"...", "audio/wav").words
        ('Hi.', 'Binary content of type audio/wav was processed.')
        """
        if not self.type.startswith(("text/", "application/json")):
            return self.summary
        try:
            text = self.data.decode()
        except UnicodeDecodeError:
            return self.summary
        return f"{self.name}\n\n{text}" if self.name else text


class Link(msgspec.Struct, frozen=True, tag_field="kind", tag="link"):
    """A medium of the user's at an address on the web: its bytes are not at hand, and nobody here fetches them.

    ``type`` is its media type, or as much as is known of it. A wire that takes no addresses is told of it
    in words.

    >>> Link("https://example.org/cat.png", "image/*").modality
    'image'
    """

    url: str
    type: str = "image/*"
    name: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.url, str) or not self.url.startswith(("https://", "http://")):
            raise EncodeError(
                "Link is an address on the web, such as Link('https://…/cat.png', 'image/png'); bytes "
                "are a File"
            )
        if not isinstance(self.type, str) or not isinstance(self.name, str | None):
            raise EncodeError("the type and the name of a Link are texts")

    @property
    def modality(self) -> MediaKind:
        """image, audio, video, or document for anything else."""
        return _modality(self.type)

    @property
    def exact_type(self) -> str | None:
        """Its media type: as it was said, or as the end of the address says.

        >>> Link("https://example.org/cat.png?v=2", "image/*").exact_type
        'image/png'
        """
        if not self.type.endswith("*"):
            return self.type
        guessed = guess_type(self.url.partition("?")[0].partition("#")[0])[0] or ""
        return guessed if guessed.startswith(self.type[:-1]) else None

    def is_of(self, type: str) -> bool:
        """Is it of this media type, or of this family, such as ``image/*``?

        >>> Link("https://example.org/a.pdf", "application/*").is_of("application/pdf")
        True
        """
        if type.endswith("*"):
            return self.type.startswith(type[:-1])
        return self.exact_type == type

    @property
    def words(self) -> str:
        """What is said of it on a wire that takes no addresses."""
        return f"[{self.modality}: {self.url}]"


def _modality(type: str) -> MediaKind:
    family = type.partition("/")[0]
    return family if family in ("image", "audio", "video") else "document"  # type: ignore[return-value]


Output: TypeAlias = Any  # text, a JSON value, File, or a list of texts and File
Piece: TypeAlias = str | File


class ToolResult(msgspec.Struct, frozen=True, tag_field="kind", tag="result"):
    """What a tool produced for one call. Made by ``for_call``.

    ``value`` is a text or a plain JSON value; an output with media in it is in ``pieces`` instead.
    ``inline=False`` says that media are to be described, not sent.
    """

    kind: ClassVar[Literal["result"]] = "result"
    call: ToolCall
    value: Any = None
    pieces: tuple[Piece, ...] = ()
    is_error: bool = False
    inline: bool = True

    def __post_init__(self) -> None:
        only_whole(self.call, "a result needs")

    @classmethod
    def for_call(
        cls, call: ToolCall, output: Output, is_error: bool = False, *, inline: bool = True
    ) -> ToolResult:
        """The result of ``call``: text, a JSON value, bytes or ``File``, or a list of those.

        >>> call = ToolCall(0, "call_1", "weather", {}, "")
        >>> ToolResult.for_call(call, {"celsius": 7}).text
        '{"celsius":7}'
        """
        name = only_whole(call, "a result needs").name
        pieces = _pieces(output, name)
        value = None if pieces else _plain(output, name)
        return cls(call, value, pieces, is_error, inline)

    @property
    def output(self) -> Output:
        """What was passed to ``for_call``, as plain values."""
        return list(self.pieces) if self.pieces else self.value

    @property
    def text(self) -> str:
        """The output as text; media are summarised."""
        if self.pieces:
            return "\n".join(p.summary if isinstance(p, File) else p for p in self.pieces)
        if isinstance(self.value, str):
            return self.value
        return "" if self.value is None else json_text(self.value)

    @property
    def media(self) -> list[File]:
        """The media in the output, in order."""
        return [piece for piece in self.pieces if isinstance(piece, File)]


def only_whole(call: Any, who: str) -> ToolCall:
    """The call itself if it is a whole one; an error that says what to do if it is not."""
    if isinstance(call, ToolCall):
        return call
    if isinstance(call, BrokenToolCall):
        raise EncodeError(
            f"{who} a ToolCall, not {call.kind}; a broken call was never whole and must not be run "
            "or answered: leave it out, or ask the model again"
        )
    raise EncodeError(
        f"{who} a ToolCall, not {type(call).__name__}; pass the call itself, as the stream told it: "
        "an id alone could be paired with another call"
    )


def _pieces(output: Output, name: str) -> tuple[Piece, ...]:
    """An output that has media in it, piece by piece; nothing for any other."""
    items = list(output) if isinstance(output, tuple | list) else [output]
    if not any(isinstance(item, File | bytes | bytearray | memoryview) for item in items):
        return ()
    return tuple(_piece(item, name) for item in items)


def _piece(item: Any, name: str) -> Piece:
    if isinstance(item, bytes | bytearray | memoryview):
        return File(bytes(item), "application/octet-stream")
    if isinstance(item, File):
        return item
    plain = _plain(item, name)
    return plain if isinstance(plain, str) else json_text(plain)


def _plain(output: Output, name: str) -> Any:
    """The output as texts, numbers, lists and objects: what JSON can say, and nothing less."""
    try:
        plain = msgspec.to_builtins(output, str_keys=True)
        json_text(plain)
        msgspec.json.encode(plain)  # refuses half of a surrogate pair, as many providers do
    except (TypeError, ValueError, RecursionError, msgspec.MsgspecError) as error:
        raise EncodeError(
            f"the output of {name!r} cannot be written as JSON ({error}); return text, plain JSON "
            "values, bytes or File"
        ) from error
    return plain


def arguments_of(function: Callable[..., Any]) -> type[msgspec.Struct]:
    """The named arguments of a typed function as one type.

    >>> def add(a: int, b: int = 1) -> int: ...
    >>> arguments_of(add)(2)
    Arguments(a=2, b=1)
    """
    return msgspec.defstruct("Arguments", _parameters(function), forbid_unknown_fields=True)


def _typed(function: Any) -> Any:
    """Where the annotations of something callable stand: a partial's function, an object's method."""
    function = getattr(function, "func", function)
    return function if inspect.isroutine(function) else function.__call__


def _named(function: Any) -> str:
    return getattr(getattr(function, "func", function), "__name__", type(function).__name__)


def _parameters(function: Callable[..., Any]) -> list[Any]:
    hints = get_type_hints(_typed(function), include_extras=True)
    fields: list[Any] = []
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind in (
            parameter.VAR_POSITIONAL,
            parameter.VAR_KEYWORD,
            parameter.POSITIONAL_ONLY,
        ):
            raise EncodeError(
                f"{_named(function)}: the parameter {name!r} cannot be named in a call; give it a "
                "name and a type, or pass a Tool with a schema"
            )
        kind = hints.get(name, Any)
        required = parameter.default is parameter.empty
        fields.append((name, kind) if required else (name, kind, _default(parameter.default)))
    return sorted(fields, key=len)


def _default(value: Any) -> Any:
    return (
        msgspec.field(default_factory=lambda: value)
        if isinstance(value, list | dict | set)
        else value
    )


@contextmanager
def _sayable(name: str) -> Iterator[None]:
    """In it a schema is made; a type or a default that has none is told in one sentence."""
    try:
        yield
    except EncodeError:
        raise
    except Exception as error:
        lines = str(error).splitlines() or [type(error).__name__]
        why = next((line for line in lines if "not supported" in line), lines[0])
        raise EncodeError(
            f"{name}: there is no schema for its types and defaults ({why}); use types that JSON "
            "can say, or pass a Tool with a schema"
        ) from error


def _schema_of(kind: Any) -> dict[str, Any]:
    """The schema of a type itself, other types in ``$defs``; pydantic says that of its models."""
    definitions: dict[str, Any] = {}

    def hook(model: Any) -> dict[str, Any]:
        if not hasattr(model, "model_json_schema"):
            raise NotImplementedError
        schema: dict[str, Any] = model.model_json_schema()
        definitions.update(schema.pop("$defs", {}))
        return schema

    schema = (
        hook(kind)
        if hasattr(kind, "model_json_schema")
        else msgspec.json.schema(kind, schema_hook=hook)
    )
    definitions = {**schema.pop("$defs", {}), **definitions}
    own = schema.get("$ref", "").removeprefix("#/$defs/")
    body: dict[str, Any] = dict(definitions[own] if own else schema)
    if own and json_text(definitions).count(json_text(f"#/$defs/{own}")) == 0:
        del definitions[own]  # nothing refers to it
    body.pop("title", None)
    json_text(body)  # refuses a default that is no number of JSON
    return {**body, "$defs": definitions} if definitions else body
