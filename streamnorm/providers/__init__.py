"""PROVIDERS: one row per provider. A name, a payload, an address or a module in; a provider out.

Rule: whatever is known of a provider stands in its folder.

Adding one is a folder with a row in its ``__init__``, its name here, and a few recordings; from
another package, an entry point (``plugins``). A provider's row is imported when it is first asked
for, and each of its modules after that: describing a wire as types takes a few milliseconds, and
most programs speak to one or two.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any, NamedTuple

from ..core.parser import Parser
from ..core.row import Item, Key, Part, Provider, Refusals
from ..errors import UnknownProvider, UsageError
from .plugins import Plugins

__all__ = [
    "AUTO", "PROVIDERS", "Item", "Key", "Provider", "Refusals", "parsers_of", "provider_row",
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
_plugins = Plugins((AUTO, *_NAMES))


class _Providers(Mapping[str, Provider]):
    """The rows by name; each is read from its provider's folder when it is asked for."""

    def __getitem__(self, name: str) -> Provider:
        if name == AUTO:
            raise KeyError(name)
        if name not in _NAMES:
            return _plugins.rows()[name]
        row: Provider = import_module(f".{name}", __name__).PROVIDER
        return row

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


def rows() -> tuple[Provider, ...]:
    """All rows; the same tuple until a package has come or gone."""
    global _seen
    others = _plugins.rows()
    if _seen.others is not others:
        _seen = _Seen(others, tuple(PROVIDERS.values()))
    return _seen.rows


def provider_row(name: str) -> Provider:
    """The row of that name, or an error that lists the names there are.

    >>> provider_row("anthropic").title
    'Anthropic Messages'
    """
    try:
        return PROVIDERS[name]
    except KeyError:
        why = _plugins.broken.get(name, f"there are: {', '.join(PROVIDERS)}, or {AUTO!r}")
        raise UnknownProvider(f"no provider {name!r}; {why}") from None


def parsers_of(name: str) -> tuple[type[Parser], ...]:
    """The wires that are spoken under a name; for more than one, the first payload decides."""
    if name == AUTO:
        return _all_parsers()
    row = provider_row(name)
    return tuple(provider_row(wire).part("parser", Parser) for wire in (name, *row.also))


def _all_parsers() -> tuple[type[Parser], ...]:
    """The parsers of all; a package whose parser fails is given up."""
    global _seen
    rows()
    if not _seen.parsers:
        for name, why in _failing("parser", Parser).items():
            _plugins.give_up(name, why)
        parsers = tuple(row.part("parser", Parser) for row in rows())
        _seen = _seen._replace(parsers=parsers)
    return _seen.parsers


def rows_with(part: Part, base: type[object]) -> tuple[Provider, ...]:
    """All rows that have such a module; one of another package that fails is told, and left out."""
    failing = _failing(part, base)
    for name, why in failing.items():
        _plugins.warn(name, why)
    return tuple(row for row in rows() if getattr(row, part) and row.name not in failing)


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
