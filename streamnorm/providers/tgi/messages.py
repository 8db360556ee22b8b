"""Hugging Face TGI's own API, a body read back: one text, which is all that was said.

Who speaks in it nobody knows: each model's template is another. There are no calls and no results.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ...conversation import Text
from ...encoding.messages import (
    Entry,
    Found,
    Line,
    Messages,
    Named,
    Returned,
    Step,
    UserSaid,
)

__all__ = ["MESSAGES", "TgiMessages"]


class TgiMessages(Messages):
    """The prompt of one request."""

    takes_text = True

    def is_own_body(self, body: Entry) -> bool:
        return isinstance(body.get(self.container), str) and isinstance(
            body.get("parameters"), dict
        )

    def read(self, entries: Any) -> Iterator[Step]:
        if isinstance(entries, str) and entries:
            yield UserSaid(self.container, [Text(entries)])

    # --- there are none of these ------------------------------------------------------------------

    def call(self, block: Entry) -> Named | None:
        return None

    def result(self, block: Entry) -> Named | None:
        return None

    def returned(self, block: Entry) -> Returned:
        return None, False

    def closed(self, call: Found) -> Entry:
        return {}

    def name_call(self, block: Entry, id: str) -> None:
        pass

    def name_result(self, block: Entry, id: str) -> None:
        pass

    def line(self, number: int, entry: Entry) -> Line:
        return Line(entry, is_model=False)

    def told(self, entry: Entry) -> Iterable[Entry]:
        return ()


MESSAGES = TgiMessages
