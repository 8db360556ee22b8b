"""What a provider says of itself: one row, with everything that others may ask about it.

Rule: a fact about a provider stands here once, and whoever needs it reads the row. A row is light:
it names its modules, and each is imported when it is first asked for (``part``).
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from types import ModuleType
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar

import msgspec

from ..errors import UsageError
from .complete import lacking

__all__ = ["Counting", "Frame", "Item", "Key", "Listing", "Part", "Provider", "Refusals"]

T = TypeVar("T")

# The modules of a provider. A module named here has a constant of that name: PARSER, ENCODER, …
Part: TypeAlias = Literal["parser", "encoder", "messages", "server", "script", "lanes"]
_CAN: tuple[tuple[Part, str], ...] = (
    ("parser", "read"),
    ("encoder", "write"),
    ("messages", "repair"),
    ("server", "serve"),
    ("script", "script"),
    ("lanes", "multiplex"),
)


class Item(NamedTuple):
    """One wire type that calls a tool or brings a tool's output. A row, not a branch."""

    type: str
    family: str
    role: str  # call, output, call+output, …
    runs_on: str  # client, provider
    id_source: str  # natural, conflated, synthetic, nullable
    id_field: str  # where the id is read
    arguments: str = ""  # where the arguments come from
    ref_field: str = ""  # how an output refers to its call
    note: str = ""


class Key(NamedTuple):
    """The environment variables that may hold the key, and how it is sent."""

    variables: tuple[str, ...]  # the first is the preferred one
    header: str = "authorization"
    prefix: str = "Bearer "
    needed: bool = True
    query: str = ""  # the name under which it may stand in an address

    def variable(self, environment: Mapping[str, str]) -> str | None:
        """The variable that holds the key, if any does.

        >>> Key(("A_KEY", "B_KEY")).variable({"A_KEY": "", "B_KEY": "abc"})
        'B_KEY'
        """
        return next((name for name in self.variables if environment.get(name)), None)

    def headers(self, environment: Mapping[str, str]) -> dict[str, str]:
        """The header that carries the key; none if there is no key.

        >>> Key(("A_KEY",)).headers({"A_KEY": "abc"}), Key(("A_KEY",)).headers({})
        ({'authorization': 'Bearer abc'}, {})
        """
        name = self.variable(environment)
        return {} if name is None else {self.header: self.prefix + environment[name]}


class Refusals(NamedTuple):
    """The words of this provider's HTTP errors, where they are not everybody's."""

    final: tuple[str, ...] = ()  # codes for which asking again never helps
    code_field: str = ""  # a field of the body that holds the code …
    code_header: str = ""  # … or a header
    delay: tuple[str, ...] = ()  # where the body says how long to wait; "*" is each of a list


class Frame(NamedTuple):
    """An event of an SDK that stands for a frame; ``raw`` is the field that was all of its payload."""

    name: str
    raw: str = ""


class Counting(NamedTuple):
    """Where a request's tokens are counted without an answer, and what says how many there are."""

    path: str
    field: str
    more: Mapping[str, Any] = {}  # what else the answer says

    def said(self, tokens: int) -> dict[str, Any]:
        """The answer.

        >>> Counting("/count", "tokens", {"object": "count"}).said(7)
        {'object': 'count', 'tokens': 7}
        """
        return {**self.more, self.field: tokens}


class Listing(NamedTuple):
    """How a list of models is told."""

    path: str
    entry: Mapping[str, Any]  # each of them; "{id}" stands for its name
    whole: Mapping[str, Any] = {}  # with all of them
    field: str = "data"  # where they stand

    def said(self, id: str) -> dict[str, Any]:
        """One of them.

        >>> Listing("/v1/models", {"id": "{id}", "kind": "model"}).said("m1")
        {'id': 'm1', 'kind': 'model'}
        """
        return {
            k: v.replace("{id}", id) if isinstance(v, str) else v for k, v in self.entry.items()
        }


class Provider(msgspec.Struct, frozen=True, kw_only=True):
    """One row of ``PROVIDERS``.

    Patterns: in a path, the end of it counts, and ``*`` is anything but a slash. A host is meant
    exactly, ``.example.com`` is any host below it, ``*`` is one label, a port may follow.
    """

    name: str
    title: str
    serves: str
    framing: str = "SSE"
    lines: bool = False  # its payloads, without their frames, are lines of JSON and no events
    content_type: str = "text/event-stream"
    container: str = "messages"  # the field of a request with the entries; a dot leads into it
    tools: bool = True  # it calls tools; else they are a matter of its text
    also: tuple[str, ...] = ()  # more wires under this name; the first payload tells which
    inside: tuple[str, ...] = ()  # wires that may be in its envelope, told under their own names
    telemetry: str = ""  # what OpenTelemetry's conventions call it, if not by its name

    # Where it is. ``path`` may hold {model}; a provider without a ``base`` has no one address.
    base: str = ""
    path: str = ""
    path_at_once: str = ""  # where an answer that is no stream is asked for, if elsewhere
    version: str = ""  # what ``path`` begins with, and addresses that people give end with already
    other_versions: tuple[str, ...] = ()  # which clients say in its place
    counting: Counting | None = None
    listing: Listing | None = None
    hosts: tuple[str, ...] = ()  # its own: there it is at home, and there alone its key goes
    paths: tuple[str, ...] = ()  # wherever an address ends so, this wire is spoken
    home_paths: tuple[str, ...] = ()  # the same, at its own hosts only
    headers: Mapping[str, str] = {}  # that each request needs
    # What is asked for behind the address to go on with a response that was cut: {id} of it, and {at},
    # the place of the last event that was heard. Nothing: it cannot be resumed.
    resume: str = ""
    kept_headers: tuple[str, ...] = ()  # of its answers, that a take may keep; "x-y-" is a family
    key: Key | None = None

    # Objects of an SDK: the modules they come from, and fields of theirs that no wire has.
    sdk_modules: tuple[str, ...] = ()
    sdk_fields: tuple[str, ...] = ()
    sdk_frames: tuple[Frame, ...] = ()  # of those that may hold another wire
    sdk_objects: str = ""  # the module whose ``payload_of`` makes payloads of what is no model

    refusals: Refusals = Refusals()
    demo: str = "parallel_calls"  # the take that shows it best

    parser: str
    encoder: str | None = None
    messages: str | None = None
    server: str | None = None
    script: str | None = None
    lanes: str | None = None  # of a connection that many responses share

    def part(self, part: Part, base: type[T]) -> type[T]:
        """What one of its modules is for: ``part("encoder", Encoder)`` is the encoder class."""
        module, word = self._module(part), part.upper()
        found = getattr(module, word, None)
        if found is None:
            raise self._unusable(f"{module.__name__} has no {word}")
        if not isinstance(found, type) or not issubclass(found, base):
            raise self._unusable(
                f"{word} of {module.__name__} is no class that builds on "
                f"{base.__module__}.{base.__name__}"
            )
        if missing := lacking(found, base):
            raise self._unusable(f"{word} of {module.__name__} lacks {', '.join(missing)}")
        return found

    def _module(self, part: Part) -> ModuleType:
        module: str | None = getattr(self, part)
        if module is None:
            raise UsageError(f"{self.name} cannot {dict(_CAN)[part]}; it can {', '.join(self.can)}")
        try:
            return import_module(module)
        except Exception as error:
            why = f"{type(error).__name__}: {error}"
            raise self._unusable(f"{module} fails with {why}") from error

    def _unusable(self, why: str) -> UsageError:
        return UsageError(f"{self.name} cannot be used: {why}")

    def payload_of(self, thing: object) -> dict[str, Any] | None:
        """What an object of its SDK says, as a payload of the wire; None: nobody knows."""
        if not self.sdk_objects or not hasattr(thing, "__dataclass_fields__"):
            return None
        payload: dict[str, Any] = import_module(self.sdk_objects).payload_of(thing)
        return payload

    @property
    def items(self) -> tuple[Item, ...]:
        """The wire types that call tools or bring their outputs."""
        module = self._module("parser")
        items: tuple[Item, ...] = getattr(module, "ITEMS", ())
        if not isinstance(items, tuple) or not all(isinstance(item, Item) for item in items):
            raise self._unusable(f"ITEMS of {module.__name__} is no tuple of Items")
        return items

    @property
    def can(self) -> tuple[str, ...]:
        """What can be done with it, out of read, write, repair, serve, script, multiplex, connect, tools."""
        return tuple(word for word, is_so in self._able().items() if is_so)

    @property
    def cannot(self) -> tuple[str, ...]:
        """What cannot."""
        return tuple(word for word, is_so in self._able().items() if not is_so)

    def _able(self) -> dict[str, bool]:
        able = {word: getattr(self, part) is not None for part, word in _CAN}
        return able | {"connect": bool(self.base), "tools": self.tools}

    @property
    def convention(self) -> str:
        """Its name in telemetry."""
        return self.telemetry or self.name

    def address(self, model: str = "") -> str | None:
        """Where to post a request for a stream; None if there is no one place."""
        if not self.base or ("{model}" in self.path and not model):
            return None
        from urllib.parse import quote

        return self.base + self.path.format(model=quote(model, safe=":@"))
