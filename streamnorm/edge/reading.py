"""How a stream is to be read: what ``normalize``, ``connect`` and ``replay`` take in common.

Rule: a value and no behaviour, but that it makes the pipe that it describes. A default stands here
once; the public functions repeat the names, so that an editor and ``help`` can show them.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

import msgspec

from ..errors import UsageError
from ..limits import Limits
from ..normalizer import Normalizer
from ..providers import AUTO

__all__ = ["IDLE", "Reading", "named_secrets"]

IDLE = 120.0  # seconds without an event


def named_secrets(secrets: Iterable[str]) -> frozenset[str]:
    """What somebody names as secret. One text is one secret, and not its letters."""
    named = [secrets] if isinstance(secrets, str | bytes) else [*secrets]
    if not all(isinstance(secret, str) for secret in named):
        raise UsageError("secrets are texts: secrets=[api_key, …]")
    return frozenset(named)


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """The options of one stream."""

    record: str | os.PathLike[str] | None = None  # where the raw bytes are kept as a take
    secrets: frozenset[str] = frozenset()  # never to be kept or shown, beside those of the request
    limits: Limits | None = None
    strict: bool = False
    seed: str | None = None
    idle: float | None = IDLE
    deadline: float | None = None  # seconds for the whole stream
    on_bad_event: str = "fail"
    after: str | None = None  # the cursor of the stream that this one goes on with

    def pipe(self, provider: str | None) -> Normalizer:
        """The pipe for a wire; without a name it is told from the first payload."""
        return Normalizer(
            provider or AUTO, limits=self.limits, strict=self.strict, seed=self.seed,
            on_bad_event=self.on_bad_event, after=self.after,
        )  # fmt: skip

    def with_seed(self, seed: str | None) -> Reading:
        """The same, for one stream of several."""
        return msgspec.structs.replace(self, seed=seed)
