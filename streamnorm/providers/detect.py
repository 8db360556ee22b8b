"""An address or the module of an SDK comes in; the provider goes out, told from the rows alone.

Rule: the path is asked before the host. Most hosts speak several wires, and the wires of the big
ones are spoken on any host; so

1. a path that a provider speaks at its own hosts, there (the Chat of a provider with a dialect);
2. a path that means a wire wherever it is;
3. a host at which one single wire is known, of which no path is.

An unknown path of a known host says whose server it is and no more: the first payload tells the wire.

Whose wire it is and whose server it is are two things: a key goes to its own provider's hosts
alone, sent as the wire wants it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple
from urllib.parse import SplitResult, unquote, urlsplit

from ..core.row import Key, Provider
from . import programs, rows

__all__ = ["Address", "by_address", "by_module"]


class Address(NamedTuple):
    """What an address tells."""

    wire: Provider | None  # whose wire is spoken there
    home: Provider | None  # whose server it is
    private: bool  # nobody on the way can read what is sent

    @property
    def name(self) -> str | None:
        """The name of the wire."""
        return self.wire.name if self.wire else None

    @property
    def at_home(self) -> bool:
        """Is it the wire's own provider that speaks it there?"""
        return self.wire is not None and self.wire is self.home

    @property
    def key(self) -> Key | None:
        """The key that this server may see, sent as its wire wants it."""
        if self.home is None or self.home.key is None or not self.private:
            return None
        sent = (self.wire.key if self.wire else None) or self.home.key
        return self.home.key._replace(header=sent.header, prefix=sent.prefix)


def by_address(url: object) -> Address:
    """Which wire an address speaks, and whose server it is, as far as it tells.

    >>> by_address("https://api.openai.com/v1/responses").name
    'openai_responses'
    >>> told = by_address("https://api.anthropic.com/v1/chat/completions")
    >>> told.name, told.home.name
    ('openai_chat', 'anthropic')
    >>> told = by_address("https://api.anthropic.com/v1/sessions/s/events/stream")
    >>> told.name is None, told.home.name
    (True, 'anthropic')
    """
    place = str(url or "").partition("#")[0].partition("?")[0]  # the rest may be a key
    known = _now().addresses
    if "@" in place:  # nor is a password kept
        return _told_by(place)
    if place not in known:
        if len(known) >= MOST_ADDRESSES:
            known.clear()
        known[place] = _told_by(place)
    return known[place]


MOST_ADDRESSES = 256  # that are remembered: a program asks few, and each many times


def _told_by(url: str) -> Address:
    parts = _parts(url)
    host, path = _host(parts), unquote(parts.path).rstrip("/")
    places = _now().places
    server = f"{host}:{parts.port}" if parts.port else host
    homes = [place for place in places if place.is_home(server)]
    wire = _longest((place.home_fit(path), place) for place in homes)
    wire = wire or _longest((place.fit(path), place) for place in places)
    wire = wire or (homes[0] if len(homes) == 1 and homes[0].is_pathless else None)
    home = wire if wire in homes else next(iter(homes), None)
    private = parts.scheme == "https" or parts.hostname in _LOOPBACK
    return Address(wire.row if wire else None, home.row if home else None, private)


def by_module(module: str) -> Provider | None:
    """Whose SDK a module belongs to.

    >>> by_module("anthropic.lib.streaming").name
    'anthropic'
    """
    seen = _now()
    if module not in seen.modules:
        place = _longest((place.module_fit(module), place) for place in seen.places)
        seen.modules[module] = place.row if place else None
    return seen.modules[module]


_LOOPBACK = ("127.0.0.1", "localhost", "::1")


def _parts(url: object) -> SplitResult:
    try:
        parts = urlsplit(str(url or ""))
        _ = parts.port  # is read late, and can be wrong
    except ValueError:
        return urlsplit("")
    return parts


def _host(parts: SplitResult) -> str:
    host = (parts.hostname or "").rstrip(".")
    return f"[{host}]" if ":" in host else host


# --- patterns -------------------------------------------------------------------------------------


class _Place:
    """Where one provider is, with its patterns made ready."""

    def __init__(self, row: Provider) -> None:
        self.row = row
        self.is_home = re.compile("|".join(map(_host_pattern, row.hosts)) or "(?!)").fullmatch
        self._paths = [_path_pattern(path) for path in row.paths]
        self._home_paths = [*self._paths, *map(_path_pattern, row.home_paths)]
        self.is_pathless = not self._home_paths

    def fit(self, path: str) -> int:
        """How much of the path this wire knows."""
        return max((size for size, p in self._paths if p.search(path)), default=0)

    def home_fit(self, path: str) -> int:
        return max((size for size, p in self._home_paths if p.search(path)), default=0)

    def module_fit(self, module: str) -> int:
        names = self.row.sdk_modules
        return max((len(n) for n in names if module == n or module.startswith(n + ".")), default=0)


_LABEL = "[a-z0-9_-]+"  # of a host's name: clients disagree about what else may stand in one


def _host_pattern(host: str) -> str:
    below = rf"{_LABEL}(?:\.{_LABEL})*" if host.startswith(".") else ""
    any_port = "" if re.search(r":\d+\Z", host) else r"(?::\d+)?"
    return below + re.escape(host).replace(r"\*", _LABEL) + any_port


def _path_pattern(path: str) -> tuple[int, re.Pattern[str]]:
    return len(path), re.compile(re.escape(path).replace(r"\*", r"[^/]+") + r"\Z")


def _longest(fits: Iterable[tuple[int, _Place]]) -> _Place | None:
    """The one that fits best; of two that fit alike, the first."""
    best, found = 0, None
    for size, place in fits:
        if size > best:
            best, found = size, place
    return found


class _Seen(NamedTuple):
    """What was made of the rows, as long as these are the same."""

    rows: tuple[Provider, ...]
    places: tuple[_Place, ...]
    modules: dict[str, Provider | None]  # asked for with every object of an SDK
    addresses: dict[str, Address]  # … and with every response


_seen = _Seen((), (), {}, {})


def _now() -> _Seen:
    global _seen
    known = rows()
    if _seen.rows is not known:
        _seen = _Seen(known, tuple(map(_Place, (*known, *programs()))), {}, {})
    return _seen
