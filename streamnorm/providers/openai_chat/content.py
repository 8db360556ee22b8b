"""Content that is a list of typed parts: parts in, events out; what has no kind that we know comes back.

part = text | {type: text | thinking | reference | media …}
thinking = {thinking: text or [text | reference …], signature?}
media    = a list of them beside the content (``images``), a sound in pieces (``audio``), or a part
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

from ...core.media import Shown
from ...core.parser import first_text
from ...events import Citation, Echo, Event, ReasoningDelta, TextDelta

__all__ = ["KINDS", "pictures", "sound", "tell"]

Out: TypeAlias = list[Event]
Show: TypeAlias = Callable[[Shown], None]
RAW_SOUND = "audio/pcm"  # what a stream has, unless the bytes say otherwise: no chunk names it


class _Place(NamedTuple):
    """Whose content it is, and what goes back beside the signature of a thought."""

    choice: int
    signed: Echo
    show: Show


def tell(
    parts: list[Any], choice: int, signed: Echo, show: Show, out: Out
) -> list[tuple[str, Any]]:
    """Tells the parts that have a kind; the others, with the name of their kind."""
    place, unknown = _Place(choice, signed, show), []
    for part in parts:
        said = part if isinstance(part, dict) else {"type": "text", "text": part}
        kind = str(said.get("type", "text" if "text" in said else "?"))
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
    kind = part["type"]
    field, inside = MEDIA[kind]
    held = part.get(field, part)
    held = held if isinstance(held, dict) else {inside: held}
    said = held.get(inside)
    is_address = inside in ADDRESSES
    place.show(
        Shown(f"media/content.{kind}", part, None if is_address else said, said if is_address else None,
              held.get("mimeType") or TYPES.get(str(held.get("format"))))
    )  # fmt: skip


def pictures(images: Any, show: Show) -> None:
    """The pictures that a vendor puts beside the content, each as it would stand inside of it."""
    if not isinstance(images, list):
        return show(Shown("media/delta.images", images))
    for image in images:
        said = image if isinstance(image, dict) else {"image_url": image}
        address = said.get("image_url")
        url = address.get("url") if isinstance(address, dict) else address
        beside = {key: value for key, value in said.items() if key != "image_url"}
        show(Shown("media/delta.images", image, None, url, echo={"images": beside}))


def sound(audio: Any, show: Show) -> None:
    """A piece of a voice; what it says in words, and its id, stand beside it."""
    said = audio if isinstance(audio, dict) else {}
    beside = {key: value for key, value in said.items() if key != "data" and value is not None}
    show(
        Shown(
            "media/delta.audio", audio, said.get("data"), None, None, RAW_SOUND,
            {"audio": beside} if beside else None,
        )
    )  # fmt: skip


# Kinds of parts with media: where in them the bytes, or the address, are.
MEDIA = {
    "image_url": ("image_url", "url"),
    "document_url": ("document_url", "url"),
    "file": ("file", "file_data"),
    "input_audio": ("input_audio", "data"),
    "resource": ("resource", "blob"),
    "resource_link": ("resource_link", "uri"),
}
ADDRESSES = {"url", "uri", "file_data"}
TYPES = {"wav": "audio/wav", "mp3": "audio/mpeg", "flac": "audio/flac", "opus": "audio/ogg"}

KINDS: dict[str, Callable[[_Place, dict[str, Any], Out], None]] = {
    "text": _text,
    "thinking": _thinking,
    "reference": _reference,
    "tool_reference": _reference,
    **dict.fromkeys(MEDIA, _media),
}
