"""What the encoders of all chat protocols share: items in, payloads or server-sent events out.

Rule: an encoder does no I/O and knows no time. It holds nothing back: what is given to one ``feed``
is told at once, and small pieces are merged among the items of that one call. ``encode`` brings the
time: it reads events as they come and feeds them in batches.
"""

from __future__ import annotations

import secrets
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from ..events import Failed, ToolCall
from ._fold import Call, Fold, Item, Move
from ._frames import safe_json, stream_bytes

__all__ = ["Encoder", "ErrorText", "full_error", "new_id", "plain_error"]

ErrorText: TypeAlias = Callable[[Failed], str]

_SENTENCES = {
    "truncated": "The answer was cut off.",
    "provider_error": "The model's provider reported an error.",
    "transport": "The connection to the model's provider was lost.",
    "protocol": "The model's provider sent something that could not be read.",
    "limit": "The answer went beyond a limit.",
    "idle": "The model's provider stopped answering.",
    "cancelled": "The answer was stopped.",
}
INTERNAL = "internal"  # the code of what went wrong on our side


def plain_error(failed: Failed) -> str:
    """What anybody may read of a failure: a sentence, and the provider's code.

    >>> plain_error(Failed("provider_error", "org-1234 is over its quota", code="rate_limit"))
    "The model's provider reported an error. (rate_limit)"
    """
    if failed.code == INTERNAL:
        return "Something went wrong on the server."
    sentence = _SENTENCES.get(failed.reason, "Something went wrong.")
    return f"{sentence} ({failed.code})" if failed.code else sentence


def full_error(failed: Failed) -> str:
    """The failure in the provider's own words; for pages that its owner alone reads."""
    return f"{failed.reason}: {failed.error}"


def new_id(prefix: str) -> str:
    """An id that nobody can guess."""
    return f"{prefix}_{secrets.token_urlsafe(18)}"


class Encoder(ABC):
    """Events of one message in, one chat protocol out.

    ``used`` are call ids that the conversation has already; ``echo=False`` leaves out what a provider
    wants back (signatures and the like), for servers that keep the conversation themselves.
    """

    def __init__(
        self,
        *,
        used: Iterable[str] = (),
        echo: bool = True,
        error_text: ErrorText = plain_error,
    ) -> None:
        self._fold = Fold(used=used, echo=echo)
        self._error_text = error_text
        self._opened = self._closed = False

    @property
    def skipped(self) -> Counter[str]:
        """What was not told, by kind: items that no page understands."""
        return self._fold.skipped

    def payloads(self, *items: Item) -> list[bytes]:
        """The payloads of these items, each for one event of the stream."""
        if self._closed:
            return []
        out = self._openers()
        for move in self._fold.feed(items):
            out.extend(self._tell(move))
        return [safe_json(chunk) for chunk in out]

    def closing(self, failed: Failed | None = None) -> list[bytes]:
        """The last payloads: everything open is closed. ``failed`` says what stopped the events."""
        if self._closed:
            return []
        out = self._openers()
        if failed is not None:
            for move in self._fold.feed([failed]):
                out.extend(self._tell(move))
        elif self._fold.end is None:
            failed = Failed("truncated", "the events ended without an end")
        for move in self._fold.close():
            out.extend(self._tell(move))
        self._closed = True
        out.extend(self._finish(failed or self._failed()))
        return [*(safe_json(chunk) for chunk in out), *self.TRAILER]

    def feed(self, *items: Item) -> bytes:
        """These items as server-sent events."""
        return stream_bytes(self.payloads(*items))

    def close(self, failed: Failed | None = None) -> bytes:
        """The end as server-sent events."""
        return stream_bytes(self.closing(failed))

    # --- of each protocol -------------------------------------------------------------------------

    TRAILER: tuple[bytes, ...] = ()

    @abstractmethod
    def _start(self) -> list[dict[str, Any]]:
        """What comes before everything."""

    @abstractmethod
    def _tell(self, move: Move) -> Iterable[dict[str, Any]]:
        """What a move is on this wire."""

    @abstractmethod
    def _finish(self, failed: Failed | None) -> list[dict[str, Any]]:
        """What comes after everything."""

    def _openers(self) -> list[dict[str, Any]]:
        if self._opened:
            return []
        self._opened = True
        return self._start()

    def _failed(self) -> Failed | None:
        end = self._fold.end
        return end if isinstance(end, Failed) else None


def call_metadata(call: Call, event: ToolCall | Any) -> dict[str, Any]:
    """Where a call and its id come from, for the page: what ``inbox`` reads when it comes back."""
    provenance = event.provenance
    metadata: dict[str, Any] = {
        "id": event.id, "idSource": provenance.id_source, "boundary": provenance.boundary,
        "family": event.family, "call": event.call,
    }  # fmt: skip
    optional = {
        "wireId": provenance.wire_id, "wireField": provenance.wire_field,
        "provider": provenance.provider or None, "responseId": provenance.response_id,
        "choice": event.choice or None,
    }  # fmt: skip
    metadata |= {key: value for key, value in optional.items() if value is not None}
    if isinstance(event, ToolCall):
        metadata["checksum"] = event.checksum
        if not event.name_valid:
            metadata["nameValid"] = False
    else:
        metadata["broken"] = event.reason
    return metadata


def broken_text(event: Any) -> str:
    """Why a call is broken, for people."""
    return f"{event.reason}: {event.detail}" if event.detail else str(event.reason)


def without_none(**fields: Any) -> dict[str, Any]:
    """The fields that have a value."""
    return {key: value for key, value in fields.items() if value is not None}
