"""PROVIDERS: one row per provider. A name, a payload, an address or a module in; a provider out.

Rule: whatever is known of a provider stands in its folder.

Adding one is a folder with a row in its ``__init__``, its name here, and a few recordings; from
another package, an entry point (``plugins``). A provider's row is imported when it is first asked
for, and each of its modules after that: describing a wire as types takes a few milliseconds, and
most programs speak to one or two.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from importlib import import_module
from typing import Any, NamedTuple

from ..core.parser import Parser
from ..core.row import Item, Key, Part, Provider, Refusals
from ..errors import UnknownProvider, UsageError
from ..text.shown import shorten
from .plugins import Plugins

__all__ = [
    "AUTO", "PROGRAMS", "PROVIDERS", "Item", "Key", "Provider", "Refusals", "enveloped", "frames_around",
    "parsers_inside", "parsers_of", "programs", "provider_row",
    "recognize", "rows", "rows_with",
]  # fmt: skip

AUTO = "auto"

# In the order in which a payload of unknown origin is tried; those of other packages follow.
_NAMES = (
    "anthropic",
    "openai_responses",
    "openai_chat",
    "gemini",
    "azure_foundry",
    "mistral",
    "mistral_conversations",
    "cohere",
    "ollama",
    "bedrock",
    "gemini_interactions",
    "tgi",
    "dashscope",
)
# Agent programs speak to a provider, and their output is read: nobody asks them over a wire. They have
# rows and parsers as providers have, and are tried after all of those.
PROGRAMS = ("claude_code", "codex")
_plugins = Plugins((AUTO, *_NAMES, *PROGRAMS))


class _Providers(Mapping[str, Provider]):
    """The rows by name; each is read from its provider's folder when it is asked for."""

    def __getitem__(self, name: str) -> Provider:
        if name == AUTO:
            raise KeyError(name)
        if name in _NAMES or name in PROGRAMS:  # those are found, and not listed
            return _own(name)
        return _plugins.rows()[name]

    def __iter__(self) -> Iterator[str]:
        yield from _NAMES
        yield from _plugins.rows()

    def __len__(self) -> int:
        return len(_NAMES) + len(_plugins.rows())

    def __contains__(self, name: object) -> bool:
        return name in _NAMES or (name != AUTO and name in _plugins.rows())


PROVIDERS: Mapping[str, Provider] = _Providers()


class _Seen(NamedTuple):
    """What was made of the rows of other packages, as long as these are the same."""

    others: dict[str, Provider]
    rows: tuple[Provider, ...]
    parsers: tuple[type[Parser], ...] = ()


_seen = _Seen({}, ())
_ours: dict[str, tuple[type[Parser], ...]] = {}  # by name, as they were found: these never change


def rows() -> tuple[Provider, ...]:
    """All rows; the same tuple until a package has come or gone."""
    global _seen
    others = _plugins.rows()
    if _seen.others is not others:
        _seen = _Seen(others, tuple(PROVIDERS.values()))
    return _seen.rows


def provider_row(name: str, *, or_auto: bool = True) -> Provider:
    """The row of that name, or an error that lists the names there are; ``or_auto``: that one, too.

    >>> provider_row("anthropic").title
    'Anthropic Messages'
    """
    try:
        return PROVIDERS[name]
    except KeyError:
        names = ", ".join(PROVIDERS) + (f", or {AUTO!r}" if or_auto else "")
        why = _plugins.broken.get(name, f"there are: {names}")
        raise UnknownProvider(f"no provider {shorten(repr(name), 80)}; {why}") from None


def _own(name: str) -> Provider:
    row: Provider = import_module(f".{name}", __name__).PROVIDER
    return row


def programs() -> tuple[Provider, ...]:
    """The rows of agent programs."""
    return tuple(map(_own, PROGRAMS))


def parsers_of(name: str) -> tuple[type[Parser], ...]:
    """The wires that are spoken under a name; for more than one, the first payload decides."""
    if (known := _ours.get(name)) is not None:
        return known
    if name == AUTO:
        return _all_parsers()
    names = (name, *provider_row(name).also)
    parsers = tuple(provider_row(wire).part("parser", Parser) for wire in names)
    if set(names) <= set(_NAMES):
        _ours[name] = parsers
    return parsers


@lru_cache(maxsize=16)
def parsers_inside(name: str) -> tuple[type[Parser], ...]:
    """The wires that may come in this one's envelope; imported when one does."""
    if name in PROGRAMS or name not in PROVIDERS:
        return ()
    row = PROVIDERS[name]
    outer = row.part("parser", Parser) if row.inside else Parser
    return tuple(outer.around(provider_row(wire).part("parser", Parser)) for wire in row.inside)


def enveloped(name: str, start: str) -> type[Parser] | None:
    """This wire, as it comes in the envelope of one that begins so."""
    for row in rows():
        if name in row.inside and start in row.part("parser", Parser).STARTS:
            return next(wire for wire in parsers_inside(row.name) if wire.name == name)
    return None


def frames_around(payload: dict[str, Any], name: str) -> dict[str, str] | None:
    """The events that may hold this wire, if such a decoded payload is one of them; each with the
    field that was all of its payload."""
    for row in rows():
        frames = {frame.name: frame.raw for frame in row.sdk_frames}
        if name in (AUTO, row.name, *row.inside) and not frames.keys().isdisjoint(payload):
            return frames
    return None


def _all_parsers() -> tuple[type[Parser], ...]:
    """The parsers of all; a package whose parser fails is given up."""
    global _seen
    rows()
    if not _seen.parsers:
        for name, why in _failing("parser", Parser).items():
            _plugins.give_up(name, why)
        known = (*rows(), *programs())
        parsers = tuple(row.part("parser", Parser) for row in known)
        _seen = _seen._replace(parsers=parsers)
    return _seen.parsers


def rows_with(part: Part, base: type[object]) -> tuple[Provider, ...]:
    """All rows that have such a module; one of another package that fails is told, and left out."""
    failing = _failing(part, base)
    for name, why in failing.items():
        _plugins.warn(name, why)
    known = (*rows(), *programs())
    return tuple(row for row in known if getattr(row, part) and row.name not in failing)


def _failing(part: Part, base: type[object]) -> dict[str, str]:
    """The packages whose module for this part cannot be used, and why."""
    found: dict[str, str] = {}
    for name, row in _plugins.rows().items():
        try:
            if getattr(row, part) is not None:
                row.part(part, base)
        except UsageError as error:
            found[name] = str(error)
    return found


def recognize(payload: Any, wires: tuple[type[Parser], ...]) -> type[Parser] | None:
    """The wire that a payload is of, if it is one of these."""
    if not isinstance(payload, dict):
        return None
    return next((wire for wire in wires if wire.looks_like(payload)), None)
