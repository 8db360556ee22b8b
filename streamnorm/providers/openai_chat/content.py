"""Content that is a list of typed parts: parts in, events out; what has no kind that we know comes back.

part = text | {type: text | thinking | reference | media …}
thinking = {thinking: text or [text | reference …], signature?}
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

from ...core.parser import first_text
from ...events import Citation, Echo, Event, ReasoningDelta, TextDelta, Unrecognized

__all__ = ["KINDS", "tell"]

Out: TypeAlias = list[Event]


class _Place(NamedTuple):
    """Whose content it is, and what goes back beside the signature of a thought."""

    choice: int
    signed: Echo


def tell(parts: list[Any], choice: int, signed: Echo, out: Out) -> list[tuple[str, Any]]:
    """Tells the parts that have a kind; the others, with the name of their kind."""
    place, unknown = _Place(choice, signed), []
    for part in parts:
        said = part if isinstance(part, dict) else {"type": "text", "text": part}
        kind = str(said.get("type", "text"))
        if (say := KINDS.get(kind)) is not None:
            say(place, said, out)
        elif isinstance(text := said.get("text"), str):
            out.append(TextDelta(text, 0, choice))
        else:
            unknown.append((kind, part))
    return unknown


def _text(place: _Place, part: dict[str, Any], out: Out) -> None:
    if text := first_text(part.get("text")):
        out.append(TextDelta(text, 0, place.choice))


def _thinking(place: _Place, part: dict[str, Any], out: Out) -> None:
    thoughts = part.get("thinking")
    for thought in thoughts if isinstance(thoughts, list) else [thoughts]:
        said = thought if isinstance(thought, dict) else {"text": thought}
        if text := first_text(said.get("text")):
            out.append(ReasoningDelta(text, 0, place.choice))
        elif said.get("type", "text") != "text":  # a reference to a source, or to a tool's output
            out.append(Citation(0, said))
    if signature := part.get("signature"):
        out.append(ReasoningDelta("", 0, place.choice, {**place.signed, "signature": signature}))


def _reference(place: _Place, part: dict[str, Any], out: Out) -> None:
    out.append(Citation(0, part))


def _media(place: _Place, part: dict[str, Any], out: Out) -> None:
    """No event of ours carries media: passed on whole."""
    out.append(Unrecognized(f"media/content.{part['type']}", part))


KINDS: dict[str, Callable[[_Place, dict[str, Any], Out], None]] = {
    "text": _text,
    "thinking": _thinking,
    "reference": _reference,
    "tool_reference": _reference,
    **dict.fromkeys(
        ("image_url", "document_url", "file", "input_audio", "resource", "resource_link"), _media
    ),
}
