"""``--to``, ``--model``, ``--map`` and ``--key-env`` come in; for each model that a client asks for, the
upstream to ask, its name for the model, the address and the key go out.

    [NAME@]PROVIDER[=BASE_URL]      an upstream; its name is that of its provider unless one is given
    CLIENT_MODEL=[NAME/]MODEL       a client's model, or a pattern such as ``small-*``, is this model

Rule: the first of these that fits decides: a ``--map`` of exactly this model, the first pattern that
fits, ``NAME/model`` with the name of an upstream, ``--model``; else the first upstream is asked for
what the client said. A key of the environment goes to its provider's own hosts, or where ``--key-env``
says; a client's own key goes only where the client's own wire is spoken by its own provider, and only
if the gateway has no key for that. No key is ever shown.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple
from urllib.parse import quote, urlsplit, urlunsplit

import httpx

from ..core.row import Provider
from ..errors import UsageError
from ..providers import PROVIDERS, provider_row
from ..providers.detect import by_address
from ..takes.redact import secrets_in_url

__all__ = ["Route", "Upstream", "Upstreams", "sendable"]

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")


class Upstream:
    """One provider at one address."""

    __slots__ = ("_address", "_key", "at_home", "name", "row", "secrets", "variable")

    def __init__(
        self, name: str, row: Provider, address: str, key: dict[str, str], variable: str | None
    ) -> None:
        self.name = name
        self.row = row
        self._address = address  # {model} may stand in it
        self._key = key
        self.variable = variable  # of the environment, that holds the key
        told = by_address(address)
        self.at_home = told.private and told.home is not None and told.home.hosts == row.hosts
        self.secrets = frozenset(secret_of(value) for value in key.values())

    def __repr__(self) -> str:  # never the key
        return f"<Upstream {self.name}: {self.row.name}>"

    def address(self, model: str, *, stream: bool = True) -> str:
        """Where an answer of that model is asked for."""
        if self.row.path_at_once and not stream:
            return self.beside(self.row.path_at_once, model)
        return _of_model(self._address, model)

    def beside(self, path: str, model: str) -> str:
        """Another path of this wire, below the same base."""
        address, _, query = self._address.partition("?")
        own, _, of_own = self.row.path.partition("?")
        base = _without(_without(address, own), own.removeprefix(self.row.version))
        below = path.removeprefix(self.row.version) if urlsplit(base).path else path
        more = "&".join(pair for pair in query.split("&") if pair not in of_own.split("&"))
        return _of_model(base + below, model) + (f"?{more}" if more else "")

    def key_for(self, wire: str, client: Mapping[str, str]) -> dict[str, str]:
        """The header with the key for a client of ``wire`` that has sent these headers."""
        if self._key or wire != self.row.name or not self.at_home or self.row.key is None:
            return self._key
        names = ("authorization", self.row.key.header)
        return {name: client[name] for name in names if client.get(name)}


def _of_model(address: str, model: str) -> str:
    if model in (".", "..") and "{model}" in address:  # it would be another place
        raise UsageError(f"no model is called {model!r}")
    return address.replace("{model}", quote(model, safe=":@"))


def _without(address: str, path: str) -> str:
    """What stands before the path; the address may name the model in it."""
    pattern = re.escape(path).replace(re.escape("{model}"), "[^/]+")
    return re.sub(pattern + "$", "", address) if path else address


class Route(NamedTuple):
    """Whom to ask, and for which model."""

    upstream: Upstream
    model: str
    mapped: bool  # is it another name than the client's?


class Upstreams:
    """All that the gateway may ask.

    >>> row = Upstreams(["fast@ollama", "anthropic"], map=["small-*=fast/llama"]).route("small-2")
    >>> row.upstream.name, row.model
    ('fast', 'llama')
    """

    def __init__(
        self,
        to: Sequence[str],
        *,
        model: str | None = None,
        map: Iterable[str] = (),
        key_env: Iterable[str] = (),
        environment: Mapping[str, str] | None = None,
    ) -> None:
        if not to:
            raise UsageError("say where requests go: --to PROVIDER[=BASE_URL]")
        named = [_parted(text) for text in to]
        variables = _variables(key_env, [name for name, _, _ in named])
        self.all: dict[str, Upstream] = {}
        for name, row, base in named:
            if name in self.all:
                raise UsageError(
                    f"two upstreams are called {name!r}: name them, --to one@{row.name}"
                )
            address = _address(row, base, name)
            key, variable = _key(row, address, variables.get(name), environment or {})
            self.all[name] = Upstream(name, row, address, key, variable)
        self._first = next(iter(self.all.values()))
        self._map = [self._mapping(text) for text in map]
        self._exact = {left: route for left, route in self._map if not _is_pattern(left)}
        if model == "":
            raise UsageError("--model: say which")
        self._usual = None if model is None else self._named(model, mapped=True)

    def route(self, model: str) -> Route:
        """Whom to ask for what the client calls so."""
        if (route := self._exact.get(model)) is not None:
            return route
        for pattern, route in self._map:
            if _is_pattern(pattern) and fnmatchcase(model, pattern):
                return route
        if model.partition("/")[0] in self.all and "/" in model:
            return self._named(model, mapped=True)
        return self._usual or Route(self._first, model, mapped=False)

    @property
    def models(self) -> list[str]:
        """The names that a client can say and that mean one model, as far as they are known."""
        known = [left for left, _ in self._map if not _is_pattern(left)]
        routes = [route for _, route in self._map] + ([self._usual] if self._usual else [])
        named = [f"{route.upstream.name}/{route.model}" for route in routes]
        usual = [self._usual.model] if self._usual else []
        return list(dict.fromkeys([*known, *usual, *named]))

    @property
    def secrets(self) -> frozenset[str]:
        """All keys of the gateway's own."""
        return frozenset[str]().union(*(one.secrets for one in self.all.values()))

    def _mapping(self, text: str) -> tuple[str, Route]:
        left, equals, right = text.partition("=")
        if not equals or not left or not right:
            raise UsageError(
                f"--map {text!r}: write CLIENT_MODEL=MODEL, or CLIENT_MODEL=NAME/MODEL"
            )
        return left, self._named(right, mapped=True)

    def _named(self, model: str, *, mapped: bool) -> Route:
        name, slash, rest = model.partition("/")
        if slash and rest and name in self.all:
            return Route(self.all[name], rest, mapped)
        return Route(self._first, model, mapped)


def secret_of(header: str) -> str:
    """The secret in the value of a header.

    >>> secret_of("Bearer abc"), secret_of("abc")
    ('abc', 'abc')
    """
    return header.rpartition(" ")[2]


def _is_pattern(model: str) -> bool:
    return any(char in model for char in "*?[")


def _parted(text: str) -> tuple[str, Provider, str]:
    """The name, the row and the base of ``[NAME@]PROVIDER[=BASE_URL]``."""
    left, _, base = text.partition("=")
    name, at, provider = left.rpartition("@")
    row = provider_row(provider, or_auto=False)
    if row.encoder is None:
        able = ", ".join(row.name for row in PROVIDERS.values() if row.encoder)
        raise UsageError(f"--to {provider}: it can only be read; ask one of {able}")
    if at and not _NAME.fullmatch(name):
        raise UsageError(f"--to {text!r}: a name is made of letters, digits and _ . -")
    return name or provider, row, base


def _address(row: Provider, base: str, name: str) -> str:
    """Where the wire is spoken: its own place, or below the base that was given."""
    if not base:
        if not row.base:
            raise UsageError(
                f"--to {name}: {row.name} has no address of its own; write {row.name}=https://…"
            )
        return row.base + row.path
    try:
        parts = urlsplit(base)
        usable = (
            parts.scheme in ("http", "https") and bool(httpx.URL(base).host) and parts.port != 0
        )
    except (httpx.InvalidURL, ValueError):
        usable = False
    if not usable:
        raise UsageError(f"--to {name}: the base is an address such as https://host/path")
    if secrets_in_url(base) or "@" in parts.netloc:
        raise UsageError(f"--to {name}: no key in an address; name a variable with --key-env")
    place = parts.path.rstrip("/")
    if place and by_address(base).wire is row:
        return base
    path, _, query = row.path.partition("?")
    path = path.removeprefix(row.version) if place else path
    overlap = next((n for n in range(len(path), 0, -1) if place.endswith(path[:n])), 0)
    if overlap and path[overlap:][:1] not in ("/", ""):  # a part of a name is no part of a path
        overlap = 0
    query = "&".join(filter(None, [query, parts.query]))
    return urlunsplit((parts.scheme, parts.netloc, place + path[overlap:], query, ""))


def _variables(given: Iterable[str], names: Sequence[str]) -> dict[str, str]:
    """Whose key is in which variable."""
    found: dict[str, str] = {}
    for text in given:
        name, equals, variable = text.rpartition("=")
        if not equals and len(names) > 1:
            raise UsageError(f"--key-env {text!r}: say whose key it is, {names[0]}={text}")
        name = name or names[0]
        if name not in names:
            raise UsageError(f"--key-env {text!r}: there is no --to {name!r}")
        found[name] = variable
    return found


def _key(
    row: Provider, address: str, variable: str | None, environment: Mapping[str, str]
) -> tuple[dict[str, str], str | None]:
    """The header with the key, and the variable that holds it."""
    if variable is not None:
        value = sendable("--key-env", variable, environment)
        key = row.key
        header, prefix = (key.header, key.prefix) if key else ("authorization", "Bearer ")
        return {header: prefix + value}, variable
    key = by_address(address).key
    if key is None or (variable := key.variable(environment)) is None:
        return {}, None
    sendable("the key", variable, environment)
    return key.headers(environment), variable


def sendable(whose: str, variable: str, environment: Mapping[str, str]) -> str:
    """The key that this variable holds, if a header can."""
    value = environment.get(variable, "")
    if not value:
        named = variable or "variable of no name"
        raise UsageError(f"{whose}: the environment has no {named}; set it to your key")
    if not value.isascii() or not value.isprintable() or " " in value:
        raise UsageError(
            f"{whose}: what {variable} holds is no key: it has a space, the end of a line or a "
            "letter that no key has"
        )
    return value
