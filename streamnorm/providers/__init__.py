"""PROVIDERS: one row per provider. Adding one is a file, a name here and a few recordings.

A provider's file is imported when it is first asked for: describing a wire as types takes a few
milliseconds, and most programs speak to one or two.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any

from ..errors import UnknownProvider
from ._base import Item, Parser, Provider

__all__ = ["AUTO", "PROVIDERS", "Item", "Provider", "parsers_of", "provider_row", "recognize"]

AUTO = "auto"

# In the order in which a payload of unknown origin is tried.
_NAMES = (
    "anthropic",
    "openai_responses",
    "openai_chat",
    "gemini",
    "azure_foundry",
    "mistral",
    "cohere",
    "ollama",
    "bedrock",
    "gemini_interactions",
)


class _Providers(Mapping[str, Provider]):
    """The rows by name; each is read from its provider's file when it is asked for."""

    def __getitem__(self, name: str) -> Provider:
        if name not in _NAMES:
            raise KeyError(name)
        row: Provider = import_module(f".{name}", __name__).PROVIDER
        return row

    def __iter__(self) -> Iterator[str]:
        return iter(_NAMES)

    def __len__(self) -> int:
        return len(_NAMES)

    def __contains__(self, name: object) -> bool:
        return name in _NAMES


PROVIDERS: Mapping[str, Provider] = _Providers()


def provider_row(name: str) -> Provider:
    """The row of that name, or an error that lists the names there are.

    >>> provider_row("anthropic").title
    'Anthropic Messages'
    """
    try:
        return PROVIDERS[name]
    except KeyError:
        raise UnknownProvider(
            f"no provider {name!r}; there are: {', '.join(PROVIDERS)}, or {AUTO!r}"
        ) from None


def parsers_of(name: str) -> tuple[type[Parser], ...]:
    """The wires that are spoken under a name; for more than one, the first payload decides."""
    if name == AUTO:
        return tuple(row.parser for row in PROVIDERS.values())
    row = provider_row(name)
    return row.wires or (row.parser,)


def recognize(payload: Any, wires: tuple[type[Parser], ...]) -> type[Parser] | None:
    """The wire that a payload is of, if it is one of these."""
    if not isinstance(payload, dict):
        return None
    return next((wire for wire in wires if wire.looks_like(payload)), None)
