"""What every wire needs to tell a script: payloads in the wire's words, frames, ids, fragments.

Rule: the same script gives the same bytes in every run. A wire says *what* it tells, as payloads;
in which order they are sent, and what goes wrong on the way, is decided in ``testing/script.py``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import cycle
from typing import Any, ClassVar

from ..errors import UsageError
from ..text.written import sse
from .steps import Call, Error, Result, Show, Usage

__all__ = ["Asked", "Json", "Talker", "Teller", "Told", "fragments", "ident"]

Json = dict[str, Any]
_ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_ERRORS = {
    "overloaded": "The model is overloaded.",
    "rate_limit": "Too many requests.",
    "server": "The server had an error.",
    "invalid": "The request is not valid.",
    "auth": "The key is not valid.",
}


@dataclass(frozen=True, slots=True)
class Told:
    """How a wire tells one step: what opens it, its fragments, what closes it."""

    opening: list[Json] = field(default_factory=list)
    deltas: list[Json] = field(default_factory=list)
    closing: list[Json] = field(default_factory=list)

    @property
    def all(self) -> list[Json]:
        """One after the other."""
        return [*self.opening, *self.deltas, *self.closing]


@dataclass(frozen=True, slots=True)
class Asked:
    """What a client says on a connection that many answers share. ``what`` is ``"ask"`` for a request,
    in its lane; ``"prepare"`` for one that wants no output yet; a word of ``HEARD``, said to the answer
    with that id; or "": nothing that is known."""

    what: str
    lane: str | None = None
    answer: str | None = None


class Teller:
    """One streamed answer. Each method returns the payloads that tell one step."""

    name: ClassVar[str]
    MODEL: ClassVar[str]
    KEEP_ALIVE: ClassVar[bytes] = b": keep-alive\n\n"
    REASONS: ClassVar[Mapping[str, str]]  # ours -> the wire's
    CODES: ClassVar[Mapping[str, str]] = {}  # ours -> the wire's

    def __init__(self, key: str) -> None:
        self.key = key
        self.calls = 0  # how many were told
        self.used = Usage()

    def start(self) -> list[Json]:
        return []

    def say(self, text: str) -> Told:
        raise NotImplementedError

    def think(self, text: str) -> Told:
        raise UsageError(
            f"{self.name} tells no thoughts: leave think() out, or choose another wire"
        )

    def show(self, picture: Show) -> Told:
        raise UsageError(
            f"{self.name} has no pictures in an answer: leave show() out, or choose another wire"
        )

    def call(self, call: Call) -> Told:
        raise NotImplementedError

    def served(self, call: Call, result: Result) -> list[Json]:
        raise UsageError(
            f"{self.name} has no tools that the provider runs itself: leave result() out, or "
            "choose another wire"
        )

    def finish(self, reason: str) -> list[Json]:
        raise NotImplementedError

    def fail(self, error: Error) -> list[Json]:
        raise NotImplementedError

    def frame(self, payload: Json) -> bytes:
        """One payload as bytes; SSE unless a wire says otherwise."""
        return sse(payload)

    def bad(self) -> bytes:
        """A frame whose payload is no JSON."""
        return b'data: {"oops": \n\n'

    def end(self) -> bytes:
        """Bytes after the last payload, such as ``[DONE]``."""
        return b""

    def refusal(self, error: Error) -> Json:
        """The body of an HTTP error."""
        return {"error": {"message": self.words(error), "type": self.code(error)}}

    def heard(self, what: str) -> list[Json]:
        """The client has steered this answer, or handed something in."""
        raise UsageError(
            f"{self.name} hears nothing while it answers: leave hear() out, or choose another wire"
        )

    # --- helpers

    def id(self, prefix: str, *of: object, size: int = 22) -> str:
        return ident(prefix, self.name, self.key, *of, size=size)

    def reason(self, reason: str) -> str:
        try:
            return self.REASONS[reason]
        except KeyError:
            raise UsageError(
                f"{self.name} cannot finish with {reason!r}; it knows {', '.join(self.REASONS)}"
            ) from None

    def code(self, error: Error) -> str:
        return self.CODES.get(error.code, error.code)

    def words(self, error: Error) -> str:
        return error.message or _ERRORS.get(error.code, "Something went wrong.")


class Talker(Teller):
    """An answer that may share its connection with others: of a wire whose row has lanes."""

    lane: str | None = None  # of this answer

    @property
    def answer(self) -> str | None:
        """The id of this answer."""
        raise NotImplementedError

    @classmethod
    def asked(cls, said: Json) -> Asked:
        """What a client says."""
        raise NotImplementedError

    def message(self, payload: Json) -> Json:
        """One payload as a message in the lane."""
        raise NotImplementedError

    def refused(self, error: Error) -> Json:
        """All that is said to a request."""
        raise NotImplementedError

    def unheard(self, said: Json) -> Json:
        """To what was said to no answer, or to one that does not hear it."""
        raise NotImplementedError


def ident(prefix: str, *of: object, size: int = 22) -> str:
    """An id in a provider's style, the same in every run."""
    digest = hashlib.sha512("/".join(map(str, (prefix, *of))).encode()).digest()
    number = int.from_bytes(digest, "big")
    digits: list[str] = []
    for _ in range(size):
        number, digit = divmod(number, len(_ALPHABET))
        digits.append(_ALPHABET[digit])
    return prefix + "".join(digits)


def fragments(text: str, sizes: Iterable[int] = (5, 3, 9, 2, 6)) -> list[str]:
    """The text in small uneven pieces, as a model's tokens would cut it."""
    pieces: list[str] = []
    at = 0
    for size in cycle(sizes):
        if at >= len(text):
            return pieces
        pieces.append(text[at : at + size])
        at += size
    return pieces
