"""A provider, a model and a key of the server's environment come in; a live model goes out.

Rule: live is asked for by name when the server starts, never by a page. A key comes from the
environment, goes into one request header and nowhere else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..connecting import ADDRESSES, connect
from ..conversation import Conversation
from ..errors import UsageError
from ..handlers import ClientTool
from ..stream import Stream
from ..wires import provider as wire_of

__all__ = ["Live", "live_models"]

MOST_TOKENS = 2048
BEARER, X_API_KEY = "authorization", "x-api-key"
KEYS = {  # provider -> the variable that holds its key, the header that carries it
    "anthropic": ("ANTHROPIC_API_KEY", X_API_KEY),
    "openai_chat": ("OPENAI_API_KEY", BEARER),
    "openai_responses": ("OPENAI_API_KEY", BEARER),
    "mistral": ("MISTRAL_API_KEY", BEARER),
    "cohere": ("CO_API_KEY", BEARER),
    "ollama": ("", ""),
}


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
        return connect(provider, json=body, headers=self._headers)


def live_models(
    asked: Iterable[str], environment: Mapping[str, str], tools: Iterable[ClientTool]
) -> dict[str, Live]:
    """The models asked for as ``PROVIDER=MODEL``, by provider."""
    tools = tuple(tools)
    return {name: _one(name, model, environment, tools) for name, model in map(_parted, asked)}


def _parted(text: str) -> tuple[str, str]:
    name, equals, model = text.partition("=")
    if not equals or not model or name not in KEYS or name not in ADDRESSES:
        raise UsageError(
            f"--live {text!r}: write PROVIDER=MODEL, with a provider out of {', '.join(KEYS)}"
        )
    return name, model


def _one(
    name: str, model: str, environment: Mapping[str, str], tools: tuple[ClientTool, ...]
) -> Live:
    variable, header = KEYS[name]
    key = environment.get(variable, "") if variable else ""
    if variable and not key:
        raise UsageError(f"--live {name}: the environment has no {variable}; set it to your key")
    value = f"Bearer {key}" if header == BEARER else key
    return Live(model, {header: value} if header else {}, tools)
