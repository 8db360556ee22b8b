"""Redaction: bytes in any chunking and the secrets in, as many bytes out, without the secrets.

Rule: what leaves has the length and the framing of what came. A secret is overwritten with ``x``,
so a redacted take replays to the same events apart from those letters. Two nets:

1. The values themselves, wherever they stand and however they are written: as they are, escaped
   for JSON (once or twice), for a URL (JSON in it as well) or for HTML, each character in its own
   way, or as base64 in any of its three alignments. One automaton looks for all of them at once; at any moment it
   knows how many of the last bytes may be the beginning of a secret, and exactly those are held
   back. Each byte is looked at once; between possible beginnings a compiled search skips, and
   all but the end of what holds no telling bytes at all.
2. The shapes of well-known keys (``sk-…``, ``AIza…``, a bearer token, a JWT), for secrets that
   nobody named. All places where one may begin are found at once.

What it does not see: a secret that the model spells over several events of its answer, and one
that is encrypted, hashed, compressed, in hexadecimal, in base64 twice or spelt backwards.
"""

from __future__ import annotations

import base64
import html
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, TypeAlias
from urllib.parse import (
    SplitResult,
    parse_qsl,
    quote,
    unquote,
    urlsplit,
    urlunsplit,
)

from ..providers import PROVIDERS
from ..text.written import json_spaced

__all__ = [
    "KEPT",
    "Redactor",
    "bare_url",
    "is_key_name",
    "is_secret_name",
    "kept_headers",
    "secrets_in_headers",
    "secrets_in_text",
    "secrets_in_url",
    "without_secrets",
]

Secret: TypeAlias = str | bytes
Headers: TypeAlias = Mapping[str, str] | Iterable[tuple[Any, Any]]

SHORTEST = 4  # bytes; a shorter "secret" (the key "x" of a test) would blank out half of the text
FOUND_SHORTEST = 6  # … of a value that we found ourselves, such as a cookie's
MOST_STATES = 10_000  # that are kept
MOST_FOUND = 100  # secrets that are looked for in a text because it names them itself
TELLS = 16  # so many characters of a secret, at most, tell whether it may be in a text
TELLING = 6  # so many characters at the very end of a stream are the beginning of a secret
FILLER, DIGIT, OTHER_DIGIT = b"x", b"1", b"7"


class Redactor:
    """Takes the secrets out of one stream.

    >>> redactor = Redactor(["open sesame"])
    >>> redactor.feed(b'{"say":"open ses'), redactor.feed(b'ame!"}'), redactor.flush()
    (b'{"say":"', b'xxxxxxxxxxx!"}', b'')
    >>> redactor
    Redactor(1 secret)
    """

    __slots__ = ("_automaton", "_count", "_needles", "_shapes", "too_short")

    too_short: int  #: secrets that cannot be told from other text, and so were left alone

    def __init__(self, secrets: Iterable[Secret] = ()) -> None:
        given = {_as_bytes(secret).strip() for secret in secrets} - {b""}
        values = {value for value in given if len(value) >= SHORTEST}
        self.too_short = len(given) - len(values)
        self._count = len(values)
        self._automaton = _Automaton(chain for value in values for chain in _chains(value))
        self._needles, self._shapes = _Needles(self._automaton), _Shapes()

    def feed(self, data: bytes) -> bytes:
        """The bytes that are known to be clean now; what may begin a secret waits."""
        return self._shapes.feed(self._needles.feed(data))

    def flush(self) -> bytes:
        """What was held back when the stream ended; what is fed from here on is another one."""
        rest = self._shapes.feed(self._needles.flush()) + self._shapes.flush()
        self._needles, self._shapes = _Needles(self._automaton), _Shapes()
        return rest

    def whole(self, data: bytes) -> bytes:
        """Bytes that are complete in themselves; what ``feed`` holds back is not touched."""
        needles, shapes = _Needles(self._automaton), _Shapes()
        return shapes.feed(needles.feed(data) + needles.flush()) + shapes.flush()

    def clean_text(self, text: str) -> str:
        """A text that is complete in itself: a header, an error, a URL.

        >>> Redactor(["hunter2!"]).clean_text("no entry for hunter2!")
        'no entry for xxxxxxxx'
        """
        return self.whole(text.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")

    def __repr__(self) -> str:  # never the values
        return f"Redactor({self._count} secret{'' if self._count == 1 else 's'})"


# --- the ways to write a value --------------------------------------------------------------------

Chain: TypeAlias = list[set[bytes]]  # one after the other, each in any of its ways


def _chains(value: bytes) -> Iterator[Chain]:
    """The value, each character of it written in any way; and in base64, which mixes them."""
    yield [_ways(char) for char in value.decode("utf-8", "surrogateescape")]
    for form in set(_base64_forms(value)):
        yield [_ways(c) if c in "+/" else {c.encode()} for c in form.decode()]


@lru_cache(maxsize=1024)
def _ways(char: str) -> set[bytes]:
    """The ways in which one character is written on a wire.

    >>> sorted(_ways("/"))[:6]
    [b'%252F', b'%252f', b'%2F', b'%2f', b'&#47;', b'&#x2f;']
    """
    raw = char.encode("utf-8", "surrogateescape")
    ways = {raw, *_for_urls(raw)}
    if not "\udc80" <= char <= "\udcff":  # a byte that is no UTF-8 has no other ways
        ways |= {way.encode() for way in (*_for_json(char), *_for_html(char))}
    return ways


def _for_urls(raw: bytes) -> Iterator[bytes]:
    if raw == b" ":
        yield b"+"
    for percent in ("%", "%25"):  # once, or twice
        form = "".join(f"{percent}{byte:02x}" for byte in raw)
        yield form.encode()
        yield form.upper().encode()


def _for_json(char: str) -> set[str]:
    """Once, or as JSON inside of JSON; and, where it has to be escaped, in a URL."""
    units = char.encode("utf-16-be")
    codes = [units[at : at + 2].hex() for at in range(0, len(units), 2)]
    once = {"".join("\\u" + code for code in codes), "".join("\\u" + c.upper() for c in codes)}
    usual = json_spaced(char)[1:-1]
    once |= {usual} | ({"\\/"} if char == "/" else set())
    escaped = {way for way in once if way != char and (usual != char or not char.isascii())}
    in_urls = {
        quote(way, safe="").replace("%5C", code) for way in escaped for code in ("%5C", "%5c")
    }
    return once | {json_spaced(way)[1:-1] for way in once} | in_urls


def _for_html(char: str) -> Iterator[str]:
    if not char.isalnum():
        yield html.escape(char)
        yield f"&#{ord(char)};"
        yield f"&#x{ord(char):x};"


def _base64_forms(value: bytes) -> Iterator[bytes]:
    """Only the letters that the value alone decides; its neighbours decide the others."""
    for shift, skip in ((0, 0), (1, 2), (2, 3)):
        whole = (shift + len(value)) * 8 // 6
        form = base64.b64encode(b"\0" * shift + value)[skip:whole]
        if len(form) >= SHORTEST:
            yield form
            yield form.translate(_URL_SAFE)


_URL_SAFE = bytes.maketrans(b"+/", b"-_")


def _as_bytes(secret: Secret) -> bytes:
    return secret if isinstance(secret, bytes) else secret.encode("utf-8", "surrogatepass")


# --- the first net: the values --------------------------------------------------------------------

_ESCAPES = (b"\\u00", b"%", b"&")  # in ways to write a character of a key

Places: TypeAlias = dict[int, int]  # node -> how many bytes led there, at most


class _State:
    """The places where chains may be by now."""

    __slots__ = ("after", "depth", "longest", "places")

    def __init__(self, places: Places, depth: int, longest: int) -> None:
        self.places = places
        self.depth = depth  # so many of the last bytes may begin a secret
        self.longest = longest  # so many of the last bytes are one
        self.after: dict[int, _State] = {}


class _Automaton:
    """All chains at once. Nodes and states are made when they are first needed, as few streams hold more
    than the beginning of a secret; and kept, so that a byte costs one look-up."""

    __slots__ = ("_edges", "_ends", "_known", "_rests", "_tells", "nowhere", "reach", "starts")

    def __init__(self, chains: Iterable[Chain]) -> None:
        self._edges: list[dict[int, set[int]]] = [{}]
        self._rests: dict[int, tuple[Chain, int]] = {}  # node -> where a chain goes on from it
        self._ends: set[int] = set()
        self._tells: set[bytes] = set()
        self.reach = 0  # so many of the last bytes may begin a chain without telling it
        for chain in chains:
            self._lead_on(0, chain, 0)
            self._tell(chain[:TELLS])
        self.starts = re.compile(self._heads({0}, 3)) if self._edges[0] else None
        self.nowhere = _State({}, 0, 0)
        self._known: dict[frozenset[tuple[int, int]], _State] = {frozenset(): self.nowhere}

    def _lead_on(self, here: int, chain: Chain, at: int) -> None:
        """The next character of a chain, in each of its ways."""
        there = self._node()
        for way in chain[at]:
            self._lead(here, way, there)
        if at + 1 < len(chain):
            self._rests[there] = chain, at + 1
        else:
            self._ends.add(there)

    def _after(self, node: int) -> dict[int, set[int]]:
        """Where each byte leads from here."""
        if (rest := self._rests.pop(node, None)) is not None:
            self._lead_on(node, *rest)
        return self._edges[node]

    def _tell(self, first: Chain) -> None:
        """Where a chain is, there are its first characters as they are usually written, or another
        way to write one of them; most of those have one of a few escapes in them."""
        usual = [min(ways, key=lambda way: (len(way), way)) for ways in first]
        others = [way for ways, one in zip(first, usual, strict=True) for way in ways - {one}]
        self._tells.add(b"".join(usual))
        self._tells |= {next((mark for mark in _ESCAPES if mark in way), way) for way in others}
        self.reach = max(self.reach, sum(map(len, usual)) + max(map(len, others), default=0))

    def may_be_in(self, data: bytes) -> bool:
        """Is there anything without which no chain is? Each search takes next to nothing."""
        return any(tell in data for tell in self._tells)

    def _lead(self, here: int, way: bytes, there: int) -> None:
        for byte in way[:-1]:
            below = self._node()
            self._edges[here].setdefault(byte, set()).add(below)
            here = below
        self._edges[here].setdefault(way[-1], set()).add(there)

    def _node(self) -> int:
        self._edges.append({})
        return len(self._edges) - 1

    def _heads(self, nodes: set[int], depth: int) -> bytes:
        """A pattern for the first bytes. Three of them seldom occur by chance: between them a
        compiled search skips."""
        after: dict[int, set[int]] = {}
        for node in nodes:
            for byte, targets in self._after(node).items():
                after.setdefault(byte, set()).update(targets)
        if depth == 1:
            return b"[" + b"".join(b"\\x%02x" % byte for byte in sorted(after)) + b"]"
        heads = (b"\\x%02x" % byte + self._heads(to, depth - 1) for byte, to in after.items())
        return b"(?:" + b"|".join(heads) + b")"

    def step(self, state: _State, byte: int) -> _State:
        """The state after this byte; only asked where ``after`` does not know it yet."""
        places: Places = {}
        for node, size in [*state.places.items(), (0, 0)]:
            for target in self._after(node).get(byte, ()):
                places[target] = max(places.get(target, 0), size + 1)
        state.after[byte] = found = self._state(places)
        return found

    def _state(self, places: Places) -> _State:
        key = frozenset(places.items())
        if key not in self._known:
            if len(self._known) > MOST_STATES:  # some text makes ever new ones
                self.nowhere.after.clear()
                self._known = {frozenset(): self.nowhere}
            depth = max((size for node, size in places.items() if self._after(node)), default=0)
            ended = max((size for node, size in places.items() if node in self._ends), default=0)
            self._known[key] = _State(places, depth, ended)
        return self._known[key]


class _Needles:
    """One stream through the automaton."""

    __slots__ = ("_automaton", "_before", "_held", "_state")

    def __init__(self, automaton: _Automaton) -> None:
        self._automaton = automaton
        self._state = automaton.nowhere
        self._held = b""
        self._before = b""  # the last byte that was let go

    @property
    def rests(self) -> bool:
        """Is nothing held back?"""
        return not self._held and self._state is self._automaton.nowhere

    def feed(self, data: bytes) -> bytes:
        automaton = self._automaton
        if automaton.starts is None:
            return data
        edge = len(data) - automaton.reach
        if edge <= 0 or not self.rests or automaton.may_be_in(data):
            return self._let_go(*self._scan(data))
        return data[:edge] + self._let_go(*self._scan(data[edge:]))

    def flush(self) -> bytes:
        held = bytearray(self._held)
        depth = self._state.depth
        if depth >= TELLING:  # the stream was cut inside a secret
            _blank(held, len(held) - depth, len(held), self._before)
        self._state, self._held = self._automaton.nowhere, b""
        return bytes(held)

    def _scan(self, data: bytes) -> tuple[bytearray, int]:
        """The bytes with every needle overwritten, and how many of the last may begin one."""
        automaton, state = self._automaton, self._state
        nowhere = automaton.nowhere
        assert automaton.starts is not None
        buffer = bytearray(self._held + data)
        original = bytes(buffer)  # overwriting must not change what is found
        at, end = len(self._held), len(buffer)
        while at < end:
            if state is nowhere:
                found = automaton.starts.search(original, at)
                at = found.start() if found else max(at, end - 2)
            byte = original[at]
            state = state.after.get(byte) or automaton.step(state, byte)
            at += 1
            if state.longest:
                _blank(buffer, at - state.longest, at, self._before)
        self._state = state
        return buffer, state.depth

    def _let_go(self, buffer: bytearray, wait: int) -> bytes:
        edge = len(buffer) - wait
        self._held = bytes(buffer[edge:])
        self._before = bytes(buffer[edge - 1 : edge]) if edge else self._before
        return bytes(buffer[:edge])


_ESCAPE = re.compile(rb"u[0-9A-Fa-f]{4}|.", re.DOTALL)


def _blank(buffer: bytearray, start: int, end: int, before: bytes) -> None:
    """Overwrite, but leave what belongs to the text around: an escape that the wire had begun, a
    backslash at the end, line ends. A number stays a number."""
    previous = buffer[start - 1 : start] if start else before
    if previous == b"\\" and (escape := _ESCAPE.match(buffer, start, end)):
        start = escape.end()
    while end > start and buffer[end - 1] == 0x5C:
        end -= 1
    covered = bytes(buffer[start:end])
    filler = FILLER
    if covered.isdigit():
        filler = OTHER_DIGIT if set(covered) == set(DIGIT) else DIGIT
    buffer[start:end] = _VISIBLE.sub(filler, covered)


_VISIBLE = re.compile(rb"[^\r\n]")


# --- the second net: shapes of keys ---------------------------------------------------------------

_TOKEN = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.~+/="
# Not inside a word; but the n of \n is no part of one.
_EDGE = rb"(?:(?<![A-Za-z0-9])|(?<=\\[nrtbf]))"
# Beginning -> what must follow. Whatever can fail is bounded, so that no text makes this slow.
_SHAPES: dict[bytes, bytes] = {
    b"sk-": rb"(?=[\w-]{0,200}\d)[\w-]{20,}",
    b"sk_": rb"(?=\w{0,200}\d)\w{20,}",
    b"AIza": rb"[\w-]{35}",
    b"AKIA": rb"[A-Z0-9]{16}",
    b"ASIA": rb"[A-Z0-9]{16}",
    b"ghp_": rb"[A-Za-z0-9]{36,}",
    b"gho_": rb"[A-Za-z0-9]{36,}",
    b"ghs_": rb"[A-Za-z0-9]{36,}",
    b"github_pat_": rb"\w{40,}",
    b"gsk_": rb"[A-Za-z0-9]{32,}",
    b"hf_": rb"[A-Za-z0-9]{30,}",
    b"xai-": rb"[A-Za-z0-9]{32,}",
    b"xoxb-": rb"[\w-]{20,}",
    b"xoxp-": rb"[\w-]{20,}",
    b"ya29.": rb"[\w-]{20,}",
    b"eyJ": rb"[\w-]{8,300}\.eyJ[\w-]{8,}(?:\.[\w-]*)?",
}
_KEY = re.compile(
    _EDGE
    + b"(?:"
    + b"|".join(re.escape(head) + rest for head, rest in _SHAPES.items())
    + rb"|(?<=[Bb]earer )[\w.~+/=-]{16,})"
)
_HEAD = re.compile(_EDGE + b"(?:" + b"|".join(map(re.escape, _SHAPES)) + b")")
_BEARER = re.compile(rb"[Bb]earer \Z")
_BEARS = b"earer "  # before a key of no other shape
_BEGINNINGS = {head[:size] for head in _SHAPES for size in range(1, len(head))}
_LONGEST_HEAD = max(map(len, _SHAPES))
_CONTEXT = 16  # bytes already let go that still say what stands before
_LONGEST_WAIT = 512  # no more than this is held back; by then a key is known for one


class _Shapes:
    """One stream, looked through for things that look like keys."""

    __slots__ = ("_context", "_held", "_inside")

    def __init__(self) -> None:
        self._context = b""
        self._held = b""
        self._inside = False  # a long key: its beginning has been let go, overwritten

    def feed(self, data: bytes) -> bytes:
        if not data:
            return b""
        known = len(self._context)
        buffer = self._context + self._held + data
        return self._let_go(buffer, known, _unsettled(buffer, known))

    def flush(self) -> bytes:
        buffer = self._context + self._held
        return self._let_go(buffer, len(self._context), len(buffer))

    def _let_go(self, buffer: bytes, known: int, edge: int) -> bytes:
        keys: list[tuple[int, int]] = []
        if self._inside:
            rest = len(buffer) - len(buffer[known:].lstrip(_TOKEN))
            edge = max(edge, rest)
            keys.append((known, rest))
        keys += _keys(buffer, known, edge)
        self._held = buffer[edge:]
        if keys:
            buffer = self._covered(buffer, keys)
        self._context = buffer[max(0, edge - _CONTEXT) : edge]
        return buffer[known:edge]

    def _covered(self, buffer: bytes, keys: list[tuple[int, int]]) -> bytes:
        clean = bytearray(buffer)
        for start, end in keys:
            clean[start:end] = FILLER * (end - start)
        self._inside = keys[-1][1] == len(buffer)
        return bytes(clean)


def _keys(buffer: bytes, known: int, edge: int) -> Iterator[tuple[int, int]]:
    """Where keys stand."""
    past = known
    for at in _beginnings(buffer):
        if at >= past and (key := _KEY.match(buffer, at, edge)):
            past = key.end()
            yield at, past


# Three letters out of each beginning, seldom in other text; in four groups, of which any may also
# mix the letters that its members have at one place ("hk_").
_SELDOM = (
    (b"sk-", b"sk_", b"hf_", b"hp_", b"ho_", b"hs_"),
    (b"AIz", b"AKI", b"ASI", b"rer"),
    (b"eyJ", b"ya2"),
    (b"xai", b"xox", b"b_p"),
)
# How far from there the key begins: there, or where the rest of its beginning does, or behind it.
_AWAY = {
    -head.index(three) for head in _SHAPES for group in _SELDOM for three in group if three in head
} | {len(_BEARS) - _BEARS.index(b"rer")}


def _letters(place: int, shift: int) -> bytearray:
    """For each byte the groups that have it at this place, a bit for each."""
    table = bytearray(256)
    for bit, group in enumerate(_SELDOM, shift):
        for three in group:
            table[three[place]] |= 1 << bit
    return table


_FIRST_TWO = bytes(a | b for a, b in zip(_letters(0, 0), _letters(1, 4), strict=True))
_THIRD = bytes(_letters(2, 0))
_SOME = re.compile(rb"[^\0]")


def _beginnings(buffer: bytes) -> list[int]:
    """Where keys may begin, in order; none in nearly all text. It is looked at as one long number,
    in which a bit that is left says: this byte is a first letter of the group, the next one a second
    and the one after that a third. So all bytes are compared at once, which takes a quarter of the
    time that a search for each beginning takes."""
    text = int.from_bytes(buffer.translate(_FIRST_TWO), "little")
    found = text & text >> 12 & int.from_bytes(buffer[2:].translate(_THIRD), "little")
    if not found:
        return []
    places = [one.start() for one in _SOME.finditer(found.to_bytes(len(buffer), "little"))]
    return sorted({place + away for place in places for away in _AWAY})


def _unsettled(buffer: bytes, known: int) -> int:
    """Where the last run of letters begins that may still become a key."""
    end = len(buffer)
    run = max(len(buffer.rstrip(_TOKEN)), known)
    if run == end or end - run > _LONGEST_WAIT:
        return end
    if _BEARER.search(buffer, max(0, run - 8), run):
        return run
    if head := _HEAD.search(buffer, run):
        return head.start()
    for size in range(min(_LONGEST_HEAD, end - run), 0, -1):
        if buffer[end - size :] in _BEGINNINGS:
            return end - size
    return end


# --- where secrets stand --------------------------------------------------------------------------

# A name is read word by word (``x-api-key``, ``api_key`` and ``apiKey`` are the same two), so that nobody
# has to list the names that there are. These words name keys:
_KEY_WORDS = frozenset((
    "key", "keys", "token", "tokens", "secret", "secrets", "pass", "passwd", "password", "passwords",
    "passphrase", "passcode", "pwd", "pw", "sig", "signature", "auth", "oauth", "authorization",
    "authentication", "credential", "credentials", "cred", "creds", "cookie", "cookies", "jwt", "bearer",
    "otp", "totp", "csrf", "xsrf", "hmac", "sas", "assertion", "ticket",
))  # fmt: skip
# … and these whose visit it is: not to be kept or shown either, but no key to anything by itself.
_SESSION_WORDS = frozenset(("session", "sessions", "sess", "sid"))
_RUN_TOGETHER = re.compile(
    "(?:token|secret|password|passwd|passphrase|credential|signature|cookie|jwt)s?$|"
    "(?:access|account|api|app|auth|client|encryption|function|host|license|master|pass|private|secret|"
    "session|shared|signing|storage|subscription|user)keys?$"
)
_SESSION = re.compile("session|(?:asp|j|php|user|web)sess(?:ion)?(?:id)?$")  # at its beginning
# What stands behind it in a name of something about a key, and not of one: token_type, auth_url.
_ABOUT = frozenset((
    "age", "alg", "algorithm", "endpoint", "expires", "expiry", "format", "kind", "length", "lifetime",
    "method", "mode", "name", "size", "ttl", "type", "uri", "url", "version",
))  # fmt: skip
# Names of how many tokens there are, or may be, or when there will be more …
_COUNTING = re.compile(
    "max|min|num|count|total|limit|remain|reset|used|usage|input|output|prompt|complet|cach|rate|budget|"
    "per|think|reason"
)
_COUNT = re.compile(r"[\dTZhms.,:+\s-]*")  # … say so in digits
_IN_NAMES = re.compile("[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_COOKIE_WORDS = frozenset({"path", "domain", "expires", "max-age", "samesite"})
# A parameter in any text: ?sig=… or &pwd=…, also where the address stands encoded in another.
_PARAMETER = re.compile(r"""[?&#;]([^\s?&#;=/"'<>]{1,80})=((?:[^\s&#;"'<>,\\]|\\(?!["'nrtu]))+)""")
_AND = re.compile(r"\\u0026", re.I)
_USER = re.compile(r"//([^\s/?#@\"'<>]+)@")

Named: TypeAlias = Callable[[str, str], bool]  # name and value: is the value a secret?


def is_key_name(name: str, value: str = "") -> bool:
    """Does something of this name, a header or a parameter, hold a key?

    >>> [is_key_name(name) for name in ("subscription-key", "x-auth-tokens", "sessionToken", "pwd")]
    [True, True, True, True]
    >>> [is_key_name(name) for name in ("tokenizer", "top_k", "keep_alive", "author", "token_type")]
    [False, False, False, False, False]
    >>> is_key_name("max_tokens", "1024"), is_key_name("x-ratelimit-remaining-tokens", "6m0s")
    (False, False)
    """
    words = _words(name)
    if words == ["code"]:  # of a sign-in; a status_code is none
        return True
    counts = value != "" and _COUNTING.search(name.lower()) and _COUNT.fullmatch(value)
    return not counts and _is_of(words, lambda w: w in _KEY_WORDS or bool(_RUN_TOGETHER.search(w)))


def is_secret_name(name: str, value: str = "") -> bool:
    """As ``is_key_name``, or that of a session.

    >>> is_secret_name("x-session-affinity"), is_key_name("x-session-affinity")
    (True, False)
    """
    return is_key_name(name, value) or _is_of(
        _words(name), lambda w: w in _SESSION_WORDS or bool(_SESSION.match(w))
    )


def _words(name: str) -> list[str]:
    return [word.lower() for word in _IN_NAMES.findall(name)]


def _is_of(words: list[str], telling: Callable[[str], bool]) -> bool:
    """Is one of the words telling, and what follows the last of those does not say otherwise?"""
    after = [at for at, word in enumerate(words, 1) if telling(word)]
    return bool(after) and _ABOUT.isdisjoint(words[after[-1] :])


def secrets_in_headers(headers: Headers | None, named: Named = is_secret_name) -> set[str]:
    """The secret values among headers, without what stands around them; and those in addresses there.

    >>> secrets_in_headers({"Authorization": "Bearer abc-def-ghi", "Accept": "text/plain"})
    {'abc-def-ghi'}
    >>> secrets_in_headers({"Location": "/next?sig=abcdefgh"})
    {'abcdefgh'}
    """
    found: set[str] = set()
    for name, value in _pairs(headers):
        if named(name, value):
            found.update(_cookies(value) if "cookie" in name else _credentials(value))
        elif "=" in value or "@" in value:
            found |= secrets_in_text(value, named)
    return {value for value in found if len(value) >= FOUND_SHORTEST}


def secrets_in_url(url: object, named: Named = is_secret_name) -> set[str]:
    """The secret values in a URL: user and password, and parameters that are named like keys.

    >>> sorted(secrets_in_url("https://me:pass-word@host/v1?alt=sse&key=AIza-123"))
    ['AIza-123', 'pass-word']
    """
    parts = _split(url)
    found = {unquote(part) for part in (parts.username, parts.password) if part}
    found |= {part for part in (parts.username, parts.password) if part}
    found |= {v for k, v in parse_qsl(parts.query) if named(k, v)}
    found |= secrets_in_text(str(url), named) if url else set()
    return {value for value in found if len(value) >= FOUND_SHORTEST}


def secrets_in_text(text: str, named: Named = is_secret_name) -> set[str]:
    """The same in addresses that stand anywhere in a text: in the words of an error, in a header.

    >>> secrets_in_text("redirected to 'https://host/?pwd=hunter2%21'")
    {'hunter2!'}
    """
    found: set[str] = set()
    for written in _spellings(text):
        for name, value in _parameters(written):
            if named(unquote(name), value):
                found.add(unquote(value))
        for user in _USER.findall(written):
            found |= {*user.split(":", 1), *map(unquote, user.split(":", 1))}
    return {value for value in found if len(value) >= FOUND_SHORTEST}


def without_secrets(text: str, redactor: Redactor, found: Iterable[str] = ()) -> str:
    """A text that may be shown: without the redactor's secrets, those in addresses, and what else was
    ``found``. One that is made of hardly anything else is not shown."""
    others = secrets_in_text(text) | set(found)
    if len(others) > MOST_FOUND:
        return "(not shown: too many secrets are in it)"
    return redactor.clean_text(Redactor(others).clean_text(text) if others else text)


def _spellings(text: str) -> set[str]:
    """An address may stand encoded in another, or in JSON: many write "&" there as an escape."""
    plain = _AND.sub("&", text)
    once = unquote(plain)
    return {text, plain, once, unquote(once)}


def _parameters(text: str) -> Iterator[tuple[str, str]]:
    for name, value in _PARAMETER.findall(text):
        yield name, value
        for inner in value.split("?")[1:]:  # of an address that is the value of another's
            name, _, value = inner.partition("=")
            yield name, value


def bare_url(url: object) -> str:
    """A URL without user, password, query and fragment.

    >>> bare_url("https://me:pass@host:8080/v1/chat?key=AIza-123#top")
    'https://host:8080/v1/chat'
    """
    parts = _split(url)
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit((parts.scheme, host, parts.path, "", ""))


def _split(url: object) -> SplitResult:
    try:
        parts = urlsplit(str(url))
        _ = parts.port, parts.username  # both are read late and can be wrong
    except ValueError:
        return urlsplit("")
    return parts


def _credentials(value: str) -> Iterator[str]:
    scheme, space, rest = value.partition(" ")
    if not space:
        yield value
        return
    yield rest.strip()
    if scheme.lower() == "basic":
        yield from _basic(rest)
    for part in re.split(r"[,\s]+", rest):  # Credential=AKIA…/…, Signature=…
        yield part.partition("=")[2]


def _basic(value: str) -> Iterator[str]:
    try:
        pair = base64.b64decode(value).decode()
    except ValueError:
        return
    yield pair
    yield from pair.split(":", 1)


def _cookies(value: str) -> Iterator[str]:
    for part in value.split(";"):
        name, _, secret = part.strip().partition("=")
        if name.lower() not in _COOKIE_WORDS:
            yield secret.strip('"')
            yield unquote(secret)


# --- headers that may be kept ---------------------------------------------------------------------

# Of any server; a provider's row adds its own. A name that ends in "-" is a family.
KEPT = (
    "content-type", "content-length", "content-encoding", "transfer-encoding", "date", "server",
    "retry-after", "retry-after-ms", "request-id", "x-request-id", "cf-ray", "via", "server-timing",
    "x-envoy-upstream-service-time", "x-should-retry", "x-ratelimit-", "ratelimit-",
)  # fmt: skip


def kept_headers(
    headers: Headers | None, redactor: Redactor
) -> tuple[dict[str, str], dict[str, int]]:
    """The headers that may be written down, and of all others the name and the length.

    >>> kept_headers({"Content-Type": "text/event-stream", "X-Trace": "abcdef"}, Redactor())
    ({'content-type': 'text/event-stream'}, {'x-trace': 6})
    """
    names = {*KEPT, *(name for row in PROVIDERS.values() for name in row.kept_headers)}
    families = tuple(name for name in names if name.endswith("-"))
    kept: dict[str, str] = {}
    others: dict[str, int] = {}
    for name, value in _pairs(headers):
        if name in names or name.startswith(families):
            kept[_whole(redactor.clean_text(name))] = _whole(redactor.clean_text(value))
        else:
            shown = _whole(redactor.clean_text(name))
            others[shown] = others.get(shown, 0) + len(value)
    return kept, others


def _whole(text: str) -> str:
    """Text for every reader of JSON: some clients make halves of bytes that are no UTF-8."""
    return text.encode("utf-8", "replace").decode()


def _pairs(headers: Headers | None) -> Iterator[tuple[str, str]]:
    if headers is None:
        return
    several = getattr(headers, "multi_items", None)  # httpx: set-cookie may come twice
    if several is not None:
        pairs = several()
    else:
        # urllib's are no mapping, and have items all the same
        items = getattr(headers, "items", None)
        pairs = items() if items is not None else headers
    for name, value in pairs:
        yield _as_text(name).strip().lower(), _as_text(value).strip()


def _as_text(value: Any) -> str:
    return str(value, "latin-1") if isinstance(value, bytes) else str(value)
