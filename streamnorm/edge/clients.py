"""A request of httpx, or of a library that is like it, comes in; that library's own classes go out.

Rule: there are httpx and httpx2, whose classes are not related. What one of them hands us is answered
with its own; neither is imported before it is there or asked for.
"""

from __future__ import annotations

from functools import lru_cache
from importlib import import_module
from typing import Any

from ..errors import UsageError

__all__ = ["library_of", "stream_class", "transport_class"]

_LIBRARIES = ("httpx", "httpx2")


def library_of(thing: Any) -> Any:
    """The library that an object is of."""
    return import_module(type(thing).__module__.partition(".")[0])


@lru_cache
def transport_class(kind: type) -> Any:
    """``kind`` as a transport for any client, sync or async, of any library that is installed."""
    bases = [(m.BaseTransport, m.AsyncBaseTransport) for m in map(_library, _LIBRARIES) if m]
    if not bases:
        raise UsageError("a transport needs httpx; install it, or use server() instead")
    return type(kind.__name__.strip("_"), (kind, *(b for pair in bases for b in pair)), {})


@lru_cache
def stream_class(library: Any, kind: type) -> Any:
    """``kind`` as the body of a response of this library, sync or async."""
    name = kind.__name__.strip("_")
    return type(name, (kind, library.SyncByteStream, library.AsyncByteStream), {})


def _library(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        return None
