"""What belongs together while one request is answered: who asked what, who is asked, and who listens.

Rule: values only, and no decision but the plainest.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import httpx

from ..core.row import Provider
from ..encoding.envelope import PREFIX
from ..encoding.server import Server
from ..limits import Limits
from ..notes import Scribe
from ..private import private_folder
from ..wire import provider as wire_of
from .asked import Asked
from .client import Client
from .flow import Exchange, Flow
from .headers import asked_with, passed_query, with_query
from .restoring import returned
from .store import FileStore, MemoryStore, Named, NotedStore
from .upstreams import Route, Upstreams

__all__ = ["MIB", "Case", "Services", "Settings"]

MIB = 1024 * 1024
ENVELOPE = b'"' + PREFIX.encode()
# A text of its own, not one that is quoted in another: people also speak about envelopes.
_is_sealed = re.compile(rb"(?<!\\)" + re.escape(ENVELOPE)).search


class Settings(NamedTuple):
    """How a gateway serves."""

    retry: int = 0  # how often an upstream is asked again, while nothing was shown
    whole: bool = False  # nothing of a call is told before it is whole
    eager: bool = False  # a call may be run when it is whole, before its turn has ended
    record: Path | None = None  # the folder for takes
    limits: Limits = Limits()
    body: int = 32 * MIB  # bytes of a request
    exchanges: int = 1000  # at once


class Services(NamedTuple):
    """What all exchanges share."""

    upstreams: Upstreams
    settings: Settings
    store: MemoryStore | FileStore
    flow: Flow
    http: httpx.AsyncClient
    named: Named


class Case:
    """One request on its way."""

    __slots__ = (
        "asked", "client", "exchange", "headers", "query", "route", "scribe", "secrets", "services",
        "store", "wire",
    )  # fmt: skip

    asked: Asked
    route: Route

    def __init__(
        self,
        services: Services,
        wire: Provider,
        headers: dict[str, str],
        query: str,
        client: Client,
        exchange: Exchange,
        secrets: frozenset[str],
    ) -> None:
        self.services = services
        self.wire = wire  # the client's
        self.headers = headers
        self.query = query
        self.client = client
        self.exchange = exchange
        self.secrets = secrets
        self.scribe = Scribe(wire.name)
        self.store = NotedStore(services.store, self.scribe)

    @property
    def notes(self) -> Counter[str]:
        """What was tolerated, by name."""
        return self.scribe.counts

    def goes(self, asked: Asked, route: Route) -> None:
        """What is asked is known, and where that goes."""
        self.asked, self.route = asked, route
        row = self.exchange
        row.upstream, row.asked, row.model = route.upstream.name, asked.model, route.model
        row.streaming = asked.stream

    @property
    def is_one_wire(self) -> bool:
        """Does the upstream speak the client's own wire?"""
        return self.route.upstream.row.name == self.wire.name

    @property
    def is_kept(self) -> bool:
        """Does the request go on as it came? It does if both sides speak one wire; but not with an
        envelope of ours in it, which nobody else can read."""
        body = self.asked.body
        return self.is_one_wire and not (ENVELOPE in body and _is_sealed(body))

    @property
    def is_passed(self) -> bool:
        """Do the bytes of the answer come back, too? Of a stream in which calls are to be told as a
        whole they cannot."""
        return self.is_kept and not (self.services.settings.whole and self.asked.stream)

    @property
    def content(self) -> bytes:
        """A request that goes on as it came, but for the model's name and for ids that the upstream
        knows by another."""
        return returned(self.asked.for_model(self.route.model), self.wire, self.store)

    def onward(self, address: str | None = None) -> tuple[str, dict[str, str]]:
        """Where a request goes that is asked in the client's own words, and with which headers: those
        of the client, too, for they belong to what it says."""
        upstream = self.route.upstream
        address = address or upstream.address(self.route.model)
        return with_query(address, passed_query(self.query)), {
            **upstream.row.headers, **asked_with(self.headers), "accept-encoding": "identity",
            **upstream.key_for(self.wire.name, self.headers),
        }  # fmt: skip

    @property
    def is_renamed(self) -> bool:
        """Is the client to hear the name by which it asked, as it would keep no thoughts of another?"""
        binds = self.wire.part("server", Server).binds_thoughts
        return binds and self.route.model != self.asked.model

    def server(self) -> Server:
        """One that only says what went wrong."""
        return wire_of(self.wire.name).server()

    def take(self) -> Path | None:
        """The folder in which the take of the upstream's stream belongs."""
        folder = self.services.settings.record
        if folder is None:
            return None
        folder = folder / self.route.upstream.row.name
        private_folder(folder)
        return folder

    def taken(self, path: str | None) -> None:
        """The take is at that path: its name is that of the page of takes."""
        if path is not None:
            where = Path(path)
            self.exchange.take = f"{where.parent.name}/{where.stem}"
