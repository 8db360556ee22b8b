"""A provider, a model and a key of the server's environment come in; a live model goes out.

Rule: live is asked for by name when the server starts, never by a page. A key comes from the
environment, goes into one request header and nowhere else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..agent.client_tools import ClientTool
from ..conversation import Conversation
from ..edge.connect import connect
from ..edge.stream import Stream
from ..errors import UsageError
from ..providers import PROVIDERS, provider_row
from ..wire import provider as wire_of

__all__ = ["Live", "live_models"]

MOST_TOKENS = 2048


class Live:
    """One model of one provider."""

    def __init__(self, model: str, headers: Mapping[str, str], tools: Iterable[ClientTool]) -> None:
        self._model = model
        self._headers = dict(headers)
        self._tools = [tool.tool for tool in tools]

    def __call__(self, conversation: Conversation, provider: str) -> Stream:
        """Ask the provider to go on with the conversation."""
        body = wire_of(provider).request(
            conversation, tools=self._tools, model=self._model, max_tokens=MOST_TOKENS
        )
        address = provider_row(provider).address(self._model)
        assert address is not None  # or it would not have been taken
        return connect(address, provider=provider, json=body, headers=self._headers)


def live_models(
    asked: Iterable[str], environment: Mapping[str, str], tools: Iterable[ClientTool]
) -> dict[str, Live]:
    """The models asked for as ``PROVIDER=MODEL``, by provider."""
    tools = tuple(tools)
    return {name: _one(name, model, environment, tools) for name, model in map(_parted, asked)}


def _parted(text: str) -> tuple[str, str]:
    name, equals, model = text.partition("=")
    known = [row.name for row in PROVIDERS.values() if row.address("model")]
    if not equals or not model or name not in known:
        raise UsageError(
            f"--live {text!r}: write PROVIDER=MODEL, with a provider out of {', '.join(known)}"
        )
    return name, model


def _one(
    name: str, model: str, environment: Mapping[str, str], tools: tuple[ClientTool, ...]
) -> Live:
    key = provider_row(name).key
    headers = key.headers(environment) if key else {}
    if key is not None and key.needed and not headers:
        variables = " or ".join(key.variables)
        raise UsageError(f"--live {name}: the environment has no {variables}; set it to your key")
    return Live(model, headers, tools)
