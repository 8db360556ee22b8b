"""A history without a file, for tests. It is SQLite in memory: see ``streamnorm.history.sqlite``."""

from __future__ import annotations

from .sqlite import MemoryHistory

__all__ = ["MemoryHistory"]
