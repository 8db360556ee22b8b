"""Streams that browsers read: encoders, decoders, logs to resume from, and a router.

    vercel      events -> the UI message stream of the AI SDK (``useChat``)
    ag_ui       events -> AG-UI (``HttpAgent``)
    plain       events -> our own events, for a page of your own
    inbox       what those clients post back -> ``Conversation``
    log         where a stream is kept while it is told, so that a reader may come back
    router      all of it behind three addresses, for Starlette and FastAPI

``docs/ui.md`` shows how they are used.
"""

from __future__ import annotations

from ._encoder import full_error, plain_error
from ._fold import Approval, Denied

__all__ = ["Approval", "Denied", "full_error", "plain_error"]
