"""Headers of a client come in, those that may go on to an upstream go out; and the way back.

Rule: what belongs to one connection, to one host or to a person stays here. Of an answer, only what is
known to be of use is handed on.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import TypeAlias
from urllib.parse import parse_qsl, urlencode

from ..providers import PROVIDERS
from ..takes.redact import KEPT, Redactor, is_key_name

__all__ = [
    "Pairs",
    "Secrets",
    "asked_with",
    "client_headers",
    "lacks_of",
    "passed_back",
    "passed_query",
    "with_query",
]

Pairs: TypeAlias = list[tuple[bytes, bytes]]  # as ASGI has them

# Of one connection, of one host, or of the way that a request took.
_STAY = frozenset((
    "accept-encoding", "connection", "content-encoding", "content-length", "expect", "forwarded",
    "host", "keep-alive", "origin", "proxy-connection", "referer", "te", "trailer",
    "transfer-encoding", "upgrade", "via",
))  # fmt: skip
_STAY_FAMILIES = ("x-forwarded-", "sec-", "proxy-", "cf-")
_NOT_BACK = frozenset(
    ("content-encoding", "content-length", "date", "server", "transfer-encoding", "via")
)


def client_headers(pairs: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """The headers of a request by their names in lower case. One that comes twice is a list of both; but
    of keys there is one, the last.

    >>> client_headers([(b"Anthropic-Beta", b"a"), (b"anthropic-beta", b"b")])
    {'anthropic-beta': 'a, b'}
    """
    headers: dict[str, str] = {}
    for raw, text in pairs:
        name, value = raw.decode("latin-1").lower(), text.decode("latin-1")
        several = name in headers and not is_key_name(name)
        headers[name] = f"{headers[name]}, {value}" if several else value
    return headers


def asked_with(headers: Mapping[str, str]) -> dict[str, str]:
    """What goes on of a client's headers to somebody who speaks the client's own wire."""
    return {
        name: value
        for name, value in headers.items()
        if name not in _STAY and not name.startswith(_STAY_FAMILIES) and not is_key_name(name)
    }


def passed_query(query: str) -> str:
    """A client's query without what is named like a key.

    >>> passed_query("beta=true&key=AIza-123")
    'beta=true'
    """
    pairs = parse_qsl(query, keep_blank_values=True)
    kept = [(name, value) for name, value in pairs if not is_key_name(name, value)]
    return query if len(kept) == len(pairs) else urlencode(kept)


def with_query(address: str, query: str) -> str:
    """The address with what a client has in its query, and it has not.

    >>> with_query("http://host/a?alt=sse", "alt=sse&beta=true")
    'http://host/a?alt=sse&beta=true'
    """
    has = address.partition("?")[2]
    more = "&".join(pair for pair in query.split("&") if pair and pair not in has.split("&"))
    return address + ("&" if has else "?") + more if more else address


def lacks_of(path: str, query: str) -> str:
    """What stands in the query of the path and not in this one.

    >>> lacks_of("/a?alt=sse", "beta=true"), lacks_of("/a?alt=sse", "alt=sse")
    ('alt=sse', '')
    """
    wanted = filter(None, path.partition("?")[2].split("&"))
    return "&".join(pair for pair in wanted if pair not in query.split("&"))


def passed_back(headers: Pairs) -> Pairs:
    """What goes back of an upstream's headers, as the bytes that they were."""
    names, families = _back()
    lower = ((name.lower(), value) for name, value in headers)
    return [pair for pair in lower if pair[0] in names or pair[0].startswith(families)]


@lru_cache(maxsize=1)
def _back() -> tuple[frozenset[bytes], tuple[bytes, ...]]:
    names = {*KEPT, *(name for row in PROVIDERS.values() for name in row.kept_headers)}
    kept = frozenset(name.encode() for name in names - _NOT_BACK)
    return kept, tuple(name for name in kept if name.endswith(b"-"))


class Secrets:
    """The keys that were used for a request, so that no answer tells them.

    However a key is written (for JSON, a URL or HTML), its letters and digits stay what they are: its
    longest run of them is looked for, which costs next to nothing, and where one is found the redactor of
    takes does the rest. What is cleaned is whole: no frame and no body is handed on in parts.

    >>> Secrets({"hunter/22"}).clean(b"no user hunter%2F22")
    b'no user xxxxxxxxxxx'
    """

    __slots__ = ("_known", "_redactor", "_tells")

    def __init__(self, known: Iterable[str]) -> None:
        # A shorter one (the key "x" of a test) would blank out half of every answer.
        self._known = [secret.encode() for secret in known if len(secret) >= SHORTEST]
        self._tells = [max(_RUN.findall(secret), key=len, default=secret) for secret in self._known]
        self._redactor: Redactor | None = None  # few answers need one

    def clean(self, data: bytes) -> bytes:
        """The same bytes without any of the secrets."""
        for tell in self._tells:
            if tell in data:
                self._redactor = self._redactor or Redactor(self._known)
                return self._redactor.whole(data)
        return data

    def clean_text(self, text: str) -> str:
        """The same for text."""
        return self.clean(text.encode("utf-8", "replace")).decode()

    def __repr__(self) -> str:  # never the values
        return f"Secrets({len(self._known)})"


SHORTEST = 6
_RUN = re.compile(rb"[A-Za-z0-9]+")
