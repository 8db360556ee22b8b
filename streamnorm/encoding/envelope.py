"""What one provider wants back, kept by the client of another: echoes in, an opaque text out, and back.

A client keeps what it cannot read (the signature of a thought, encrypted reasoning) and sends it back
as it came. So an envelope rides there: whose echoes these are, the echoes, and where in their text
they came. ``restored`` makes the client's turn again a turn of the provider that said it.

Rule: what comes back is anybody's text. An envelope that is not one of ours, or too large, is none.
"""

from __future__ import annotations

import base64
import binascii
import zlib
from collections.abc import Iterable
from typing import Any, Literal

import msgspec

from ..conversation import Made, Part, Reasoning, Text, Turn
from ..events import Echo
from ..text.written import json_bytes

__all__ = ["PREFIX", "Envelope", "Sealing", "opened", "restored", "sealed"]

PREFIX = "streamnorm1."
SIZE = 4 * 1024 * 1024  # bytes of an envelope that is open; nobody's signature comes near it


class Envelope(msgspec.Struct, frozen=True, array_like=True):
    """``about``: echoes of the reasoning that it came with, of the text before it, or of no text."""

    provider: str
    model: str | None
    echoes: tuple[Echo, ...] = ()
    marks: tuple[int, ...] = ()
    about: Literal["reasoning", "text", "nothing"] = "reasoning"


def sealed(
    provider: str,
    model: str | None,
    echoes: Iterable[Echo],
    marks: Iterable[int] = (),
    about: str = "reasoning",
) -> str:
    """These echoes as one opaque text; what is too large for one is left out.

    >>> text = sealed("gemini", "m", [{"thoughtSignature": "abc"}])
    >>> text.startswith(PREFIX), opened(text).echoes
    (True, ({'thoughtSignature': 'abc'},))
    """
    plain = json_bytes([provider, model, [*echoes], [*marks], about])
    if len(plain) > SIZE:
        plain = json_bytes([provider, model, [], [], about])
    return PREFIX + base64.urlsafe_b64encode(zlib.compress(plain, 9)).decode().rstrip("=")


def opened(text: Any) -> Envelope | None:
    """What is in this text, if it is an envelope.

    >>> opened("EqQBCgIYAhIk"), opened("streamnorm1.!")
    (None, None)
    """
    if not isinstance(text, str) or not text.startswith(PREFIX):
        return None
    packed = text.removeprefix(PREFIX)
    inflating = zlib.decompressobj()
    try:
        data = base64.b64decode(packed + "=" * (-len(packed) % 4), altchars=b"-_", validate=True)
        plain = inflating.decompress(data, SIZE)
        if not inflating.eof:  # cut off, or larger than any of ours
            return None
        return msgspec.json.decode(plain, type=Envelope)
    except (binascii.Error, zlib.error, ValueError, RecursionError, msgspec.MsgspecError):
        return None


class Sealing:
    """The echoes of one run of text, as they come."""

    def __init__(self) -> None:
        self._echoes: list[Echo] = []
        self._marks: list[int] = []
        self._size = 0

    def add(self, text: str, echo: Any) -> None:
        """One more piece of the run, and what is wanted back with it."""
        if isinstance(echo, dict) and self._echoes[-1:] != [echo]:
            self._echoes.append(echo)
            self._marks.append(self._size)
        self._size += len(text)

    def __bool__(self) -> bool:
        return bool(self._echoes)

    def sealed(self, provider: str, model: str | None, *, reasoning: bool) -> str:
        """The envelope of this run."""
        about = "reasoning" if reasoning else "text" if self._size else "nothing"
        return sealed(provider, model, self._echoes, self._marks, about)


# --- the turn that came back ----------------------------------------------------------------------


def restored(turn: Turn) -> Turn:
    """A turn that a client sends back, as its provider said it; one without an envelope as it is.

    Echoes of anybody else's, which its encoder would take for its own, are left out. The calls of the
    turn stay as they are.
    """
    found = [(part, _envelope_in(part)) for part in turn.parts]
    whose = next((envelope for _, envelope in reversed(found) if envelope is not None), None)
    if whose is None:
        return _without_torn(turn)
    parts: list[Part] = []
    for part, envelope in found:
        if envelope is None:
            _add(parts, _without_echoes(part))
        elif envelope.provider == whose.provider:
            _put_back(parts, part, envelope)
        else:
            _add(parts, Reasoning(part.text if isinstance(part, Reasoning) else ""))
    return msgspec.structs.replace(
        turn, parts=tuple(parts), provider=whose.provider, model=whose.model, response_id=None,
        echo=None,
    )  # fmt: skip


def _envelope_in(part: Part) -> Envelope | None:
    if not isinstance(part, Reasoning):
        return None
    said = (opened(value) for echo in part.echoes for value in echo.values())
    return next((envelope for envelope in said if envelope is not None), None)


def _without_torn(turn: Turn) -> Turn:
    """What looks like an envelope and cannot be opened is no echo of anybody's: it would be refused."""
    if not any(map(_is_torn, turn.parts)):
        return turn
    parts: list[Part] = []
    for part in turn.parts:
        _add(parts, _without_echoes(part) if _is_torn(part) else part)
    return msgspec.structs.replace(turn, parts=tuple(parts))


def _is_torn(part: Part) -> bool:
    echoes = part.echoes if isinstance(part, Reasoning) else ()
    return any(str(value).startswith(PREFIX) for echo in echoes for value in echo.values())


def _without_echoes(part: Part) -> Part:
    if isinstance(part, Text):
        return Text(part.text, agent=part.agent)
    if isinstance(part, Reasoning):
        return Reasoning(part.text, agent=part.agent)
    return msgspec.structs.replace(part, echoes=()) if isinstance(part, Made) else part


def _add(parts: list[Part], part: Part) -> None:
    """A part of which nothing is left is none."""
    if not isinstance(part, Reasoning | Text) or part.text:
        parts.append(part)


def _put_back(parts: list[Part], part: Part, envelope: Envelope) -> None:
    echoes, marks = envelope.echoes, envelope.marks
    if envelope.about == "reasoning":
        if isinstance(part, Reasoning) and (part.text or echoes):
            parts.append(Reasoning(part.text, echoes, marks, part.agent))
        return
    last = parts[-1] if parts else None
    if envelope.about == "text" and isinstance(last, Text):
        parts[-1] = Text(last.text, echoes, last.citations, marks, last.agent)
    else:
        parts.append(Text("", echoes, (), marks))
