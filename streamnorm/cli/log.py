"""The log of a command: a level in, log lines on stderr out, or none.

Rule: silence unless asked for. The view tells the same to people, and stdout is for events only.
"""

from __future__ import annotations

import logging
import sys

__all__ = ["log_to_stderr"]


def log_to_stderr(level: str | None) -> None:
    """Sends the library's log to stderr from ``level`` up; ``None`` turns it off."""
    logger = logging.getLogger("streamnorm")
    logger.propagate = False
    logger.handlers = [logging.StreamHandler(sys.stderr) if level else logging.NullHandler()]
    logger.setLevel(level.upper() if level else logging.CRITICAL)
