"""Halves of characters in events: the events of a payload in, the same with whole characters out.

Rule: a trailing first half is held back from its part until its second half comes; no half leaves.
One that stays alone becomes U+FFFD; a call that has one is broken (``core.calls``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, cast

import msgspec

from ..events import (
    BrokenToolCall,
    Event,
    ReasoningDelta,
    TextDelta,
    ToolCall,
    ToolCallDelta,
)
from ..text.halves import REPLACEMENT, ends_open, has_half, join, joined

__all__ = ["Halves"]

Key: TypeAlias = tuple[type, int, int]
Tell: TypeAlias = Callable[[str], None]


class Halves:
    """What is held back of each part; ``mend`` goes over the events of one payload."""

    __slots__ = ("_tell", "held")

    def __init__(self, tell: Tell) -> None:
        self.held: dict[Key, TextDelta] = {}  # with the half as its text
        self._tell = tell

    def mend(self, out: list[Event], since: int) -> None:
        """Make the events from ``since`` on encodable; hold a trailing first half back."""
        mended: list[Event] = []
        for event in out[since:]:
            key = _key(event)
            if key is None:
                if isinstance(event, ToolCall | BrokenToolCall):
                    self._give_up((ToolCallDelta, event.call, 0), mended)
                mended.append(_scrubbed(event))
            else:
                self._mend_delta(cast(TextDelta, event), key, mended)
        out[since:] = mended

    def _mend_delta(self, event: TextDelta, key: Key, mended: list[Event]) -> None:
        held = self.held.pop(key, None)
        text = event.text if held is None else held.text + event.text
        if (open_half := ends_open(text)) is not None:
            text = text[:-1]
            self.held[key] = msgspec.structs.replace(event, text=open_half[0])
        if (whole := join(text)) != text:
            self._tell("wire.split_character")
        if has_half(whole) is not None:
            self._tell("wire.half_character")
        if whole or not event.text:
            mended.append(msgspec.structs.replace(event, text=joined(whole)))

    def flush(self, out: list[Event]) -> None:
        """The stream ends: what is still held never met its other half."""
        for key in list(self.held):
            self._give_up(key, out)

    def _give_up(self, key: Key, out: list[Event]) -> None:
        """What is held of this text never met its other half; of a call it is told before its end."""
        event = self.held.pop(key, None)
        if event is None:
            return
        self._tell("wire.half_character")
        whole = msgspec.structs.replace(event, text=REPLACEMENT)
        if not isinstance(whole, ToolCallDelta):  # what goes back with it was told
            whole = msgspec.structs.replace(whole, echo=msgspec.UNSET)
        out.append(whole)


def _key(event: Event) -> Key | None:
    if type(event) is ToolCallDelta:
        return ToolCallDelta, event.call, 0
    if type(event) is TextDelta or type(event) is ReasoningDelta:
        return type(event), event.part, event.choice
    return None


def _scrubbed(event: Event) -> Event:
    """Any other event, with halves inside its texts joined or replaced."""
    plain = msgspec.to_builtins(event)
    scrubbed = _scrub(plain)
    if scrubbed == plain:
        return event
    mended: Event = msgspec.convert(scrubbed, type(event))
    return mended


def _scrub(value: Any) -> Any:
    if isinstance(value, str):
        return joined(value)
    if isinstance(value, dict):
        return {joined(k): _scrub(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_scrub(v) for v in value]
    return value
