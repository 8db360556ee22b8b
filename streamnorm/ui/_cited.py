"""A citation in any wire's shape comes in; web pages and documents to show come out.

Rule: nothing is known of providers here; addresses and titles are looked for by their usual names.
An address that is no plain web address never becomes a link.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

__all__ = ["Source", "sources_of"]

URLS, TITLES = ("url", "uri"), ("title", "document_title", "filename", "name", "file_id", "id")
DEPTH = 6  # how deep a payload is searched


class Source(NamedTuple):
    """What was cited: a page if ``url`` is given, a document otherwise."""

    title: str | None
    url: str | None = None
    filename: str | None = None


def sources_of(payload: Any) -> list[Source]:
    """The sources that a citation names; at least one, perhaps without a title.

    >>> sources_of({"type": "url_citation", "url": "https://example.org/", "title": "Example"})
    [Source(title='Example', url='https://example.org/', filename=None)]
    """
    pages = list(dict.fromkeys(_pages(payload, DEPTH)))
    return pages or [_document(payload)]


def _pages(value: Any, depth: int) -> Iterator[Source]:
    if depth == 0:
        return
    if isinstance(value, dict):
        url = next((value[k] for k in URLS if _is_link(value.get(k))), None)
        if url is not None:
            yield Source(_first(value, ("title", "document_title", "name")), url)
        for child in value.values():
            yield from _pages(child, depth - 1)
    elif isinstance(value, list):
        for child in value:
            yield from _pages(child, depth - 1)


def _document(payload: Any) -> Source:
    if not isinstance(payload, dict):
        return Source(None)
    filename = payload.get("filename")
    return Source(_first(payload, TITLES), None, filename if isinstance(filename, str) else None)


def _is_link(value: Any) -> bool:
    return isinstance(value, str) and value.lower().startswith(("https://", "http://"))


def _first(value: dict[str, Any], names: tuple[str, ...]) -> str | None:
    texts = (value.get(name) for name in names)
    return next((text for text in texts if isinstance(text, str) and text), None)
