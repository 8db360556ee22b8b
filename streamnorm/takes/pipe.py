"""A take comes in; the pipe that hears it as it was heard then goes out.

Rule: ids that were minted are minted alike again, as the take keeps what they are made from.
"""

from __future__ import annotations

from typing import Any

from ..normalizer import Normalizer
from ..providers import AUTO
from .format import Take

__all__ = ["pipe_for"]


def pipe_for(take: Take, provider: str | None = None, **options: Any) -> Normalizer:
    """For the provider that is asked for, or the take's own, or told by the bytes."""
    return Normalizer(provider or take.provider or AUTO, **({"seed": take.seed} | options))
