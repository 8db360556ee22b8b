"""The name of a chat protocol comes in; how it is read, told and ended goes out.

Rule: a protocol is a row of a table. Whoever serves a chat knows no other word of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from . import ag_ui, plain, vercel
from ._encoder import Encoder, ErrorText
from .inbox import Inbox, from_ag_ui, from_ai_sdk, from_plain

__all__ = ["PROTOCOLS", "ChatProtocol"]


@dataclass(frozen=True, slots=True)
class ChatProtocol:
    """A chat protocol: how a body is read, how events are written, how a dead stream is ended."""

    decode: Callable[..., Inbox]
    encoder: Callable[[Inbox, ErrorText], Encoder]
    lost: Callable[..., list[bytes]]
    headers: dict[str, str]


def _vercel(inbox: Inbox, error_text: ErrorText) -> Encoder:
    return vercel.Encoder(
        message_id=inbox.message_id, used=inbox.call_ids, known=inbox.unanswered,
        error_text=error_text,
    )  # fmt: skip


def _ag_ui(inbox: Inbox, error_text: ErrorText) -> Encoder:
    return ag_ui.Encoder(
        thread_id=inbox.chat, run_id=inbox.run, protocol_version=inbox.protocol_version,
        used=inbox.call_ids, known=inbox.unanswered, error_text=error_text,
    )  # fmt: skip


def _plain(inbox: Inbox, error_text: ErrorText) -> Encoder:
    return plain.Encoder(error_text=error_text)


PROTOCOLS = {
    "ai-sdk": ChatProtocol(from_ai_sdk, _vercel, vercel.lost, vercel.HEADERS),
    "ag-ui": ChatProtocol(from_ag_ui, _ag_ui, ag_ui.lost, ag_ui.HEADERS),
    "plain": ChatProtocol(from_plain, _plain, plain.lost, plain.HEADERS),
}
