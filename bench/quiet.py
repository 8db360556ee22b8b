"""Logging off, for everybody in the process: contenders log as well, and that is not measured."""

from __future__ import annotations

import logging

__all__ = ["quiet"]


def quiet() -> None:
    """Switch logging off."""
    logging.disable(logging.CRITICAL)
