"""What can go wrong with a history, by name.

    HistoryError
    ├── UnknownConversation      no conversation of that id
    ├── ForeignResult            a result for a call that this conversation does not have
    ├── ForeignDecision          an answer to a question that was never asked in this conversation
    ├── CommitConflict           the same (conversation, run, sequence) with other content, or a gap
    ├── ConversationMoved        somebody else has appended since it was loaded
    ├── HistoryConflict          the service keeps this conversation, and so does this history
    ├── NotStorable              a value that JSON cannot say
    ├── WrongVersion             the store is newer than this library, or is none of ours
    ├── StoreReadOnly            it can be read, and not written
    ├── StoreFull                the disk or the allowed size is used up
    ├── StoreCorrupt             damaged; ``turns`` are those before the damage
    └── StoreUnavailable         cannot be opened or reached, or stayed locked

Rule: whatever is raised, nothing of that commit is stored and earlier turns stay readable.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import StreamnormError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..conversation import Turn

__all__ = [
    "CommitConflict", "ConversationMoved", "ForeignDecision", "ForeignResult", "HistoryConflict",
    "HistoryError", "NotStorable", "StoreCorrupt", "StoreFull", "StoreReadOnly", "StoreUnavailable",
    "UnknownConversation", "WrongVersion",
]  # fmt: skip


class HistoryError(StreamnormError):
    """The base of every error of a history."""


class UnknownConversation(HistoryError):
    """No conversation of that id; ``create`` it, or commit with ``create=True``."""


class ForeignResult(HistoryError):
    """A result for a call that this conversation does not have, or that has its result already."""


class ForeignDecision(HistoryError):
    """A decision on a call that this conversation does not have."""


class CommitConflict(HistoryError):
    """This (conversation, run, sequence) is stored with other content, or one before it is not."""


class ConversationMoved(HistoryError):
    """Somebody else has appended to the conversation since it was loaded."""


class HistoryConflict(HistoryError):
    """The service keeps this conversation itself, and a local history keeps it too."""


class NotStorable(HistoryError):
    """A value that cannot be written as JSON."""


class WrongVersion(HistoryError):
    """The store was written by a newer library, or it is none of ours."""


class StoreReadOnly(HistoryError):
    """The store can be read, and not written."""


class StoreFull(HistoryError):
    """The disk, or the size that was allowed, is used up."""


class StoreCorrupt(HistoryError):
    """The store is damaged. ``turns`` are those of the conversation before the damage."""

    def __init__(self, message: str, turns: Sequence[Turn] = ()) -> None:
        super().__init__(message)
        self.turns = list(turns)


class StoreUnavailable(HistoryError):
    """The store cannot be opened or reached, or somebody else kept it locked."""
