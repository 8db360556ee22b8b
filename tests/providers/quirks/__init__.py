"""Odd things that servers were seen to do: one row each, run by ``tests/providers/test_quirks.py``.

``docs/quirks.md`` is written from these rows by ``python -m tools.quirks``.
"""

from .row import Case, Quirk
from .rows_chat import CHAT
from .rows_framing import FRAMING
from .rows_other import OTHER
from .rows_responses import RESPONSES
from .rows_vendors import VENDORS

__all__ = ["QUIRKS", "Case", "Quirk"]

QUIRKS: tuple[Quirk, ...] = (*CHAT, *RESPONSES, *OTHER, *FRAMING, *VENDORS)
