"""A request whose tokens are to be counted comes in; a number goes out.

Rule: an upstream of the client's own wire is asked. Any other, and one that cannot count, is not: then
the number is reckoned from the length of the request. That is good enough for a client that wants to
know when to shorten its conversation, and for nothing else.
"""

from __future__ import annotations

from ..events import Failed
from ..text.written import json_bytes
from .asking import Refused
from .case import Case
from .passing import Passing

__all__ = ["Counted"]

BYTES = 4  # of JSON, for a token; rather too few than too many
_CANNOT = (404, 405, 501)


class Counted:
    """Attempts to count the tokens of one request."""

    def __init__(self, case: Case) -> None:
        counting = case.wire.counting
        assert counting is not None  # or there would be no such path
        self._case, self._counting = case, counting
        path = case.route.upstream.beside(counting.path, case.route.model)
        self._asking = Passing(case, path) if case.is_passed else None

    async def attempt(self) -> Failed | None:
        """Answer with a number; or say why there is none."""
        if self._asking is not None:
            try:
                return await self._asking.attempt()
            except Refused as refused:
                if refused.error.status not in _CANNOT:
                    raise
        said = self._counting.said(max(1, len(self._case.asked.body) // BYTES))
        self._case.exchange.state = "done"
        kind = [(b"content-type", b"application/json")]
        await self._case.client.answer(200, kind, json_bytes(said))
        return None
