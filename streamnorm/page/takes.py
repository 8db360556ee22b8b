"""A folder of recordings comes in; a fixed list of takes goes out, and takes by their name.

Rule: a client names a take, never a path. The list is made once; a name that is not in it does not
exist, whatever it looks like. Where there is no folder the takes are made here, from scripts, so
that the page has something to show wherever the package is installed. Uploads are kept in memory, a
few at a time, under names that nobody can guess.
"""

from __future__ import annotations

import secrets
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..captures import read_take
from ..encoding.teller import Teller
from ..errors import RecordingError
from ..providers import PROGRAMS, PROVIDERS, rows_with
from ..takes.format import Take, parse_take

__all__ = ["LARGEST_UPLOAD", "Takes", "scripted_wires", "showing_wires"]

LARGEST_UPLOAD = 4 * 1024 * 1024  # bytes
MOST_UPLOADS = 16


class Takes:
    """The takes that the page can show."""

    def __init__(self, folder: Path | None = None) -> None:
        found = _in_folder(folder) if folder is not None else {}
        self._known: dict[str, Callable[[], Take]] = found or _scripted()
        self._uploads: OrderedDict[str, Take] = OrderedDict()
        self._listing: list[dict[str, Any]] | None = None

    def look_into(self, folder: Path) -> None:
        """The takes of a folder as they are now, in the place of those that were there."""
        self._known, self._listing = _in_folder(folder), None

    def listing(self) -> list[dict[str, Any]]:
        """All names, in order, each with what the take proves."""
        if self._listing is None:
            self._listing = [_row(name, load) for name, load in self._known.items()]
        return self._listing

    def get(self, name: str) -> Take | None:
        """The take of that name, if there is one."""
        if name in self._uploads:
            return self._uploads[name]
        load = self._known.get(name)
        return load() if load else None

    def keep(self, data: bytes) -> str:
        """Keep an upload; its name. The oldest one goes when there are too many."""
        take = parse_take(data, name="this file")
        name = f"upload/{secrets.token_urlsafe(16)}"
        self._uploads[name] = take
        while len(self._uploads) > MOST_UPLOADS:
            self._uploads.popitem(last=False)
        return name


def _row(name: str, load: Callable[[], Take]) -> dict[str, Any]:
    provider, _, title = name.partition("/")
    try:
        proves = load().header.get("proves")
    except RecordingError as error:
        proves = f"not readable: {error}"
    return {
        "name": name,
        "provider": provider,
        "program": provider in PROGRAMS,
        "title": title,
        "proves": proves if isinstance(proves, str) else "",
    }


def _in_folder(folder: Path) -> dict[str, Callable[[], Take]]:
    names = (*PROVIDERS, *PROGRAMS)
    paths = [path for name in names for path in sorted((folder / name).glob("*.sse"))]
    return {f"{path.parent.name}/{path.stem}": _reader(path) for path in paths}


def _reader(path: Path) -> Callable[[], Take]:
    return lambda: read_take(path)


# --- takes without a folder -----------------------------------------------------------------------


def scripted_wires() -> list[str]:
    """The wires on which scripts with tools can be told."""
    return [row.name for row in rows_with("script", Teller) if row.tools]


def showing_wires() -> list[str]:
    """Those of them that have pictures in an answer."""
    rows = [row for row in rows_with("script", Teller) if row.tools]
    return [row.name for row in rows if row.part("script", Teller).show is not Teller.show]


def _scripted() -> dict[str, Callable[[], Take]]:
    return {
        f"{provider}/{title}": _maker(provider, title)
        for provider in scripted_wires()
        for title in _SCRIPTS
    }


def _maker(provider: str, title: str) -> Callable[[], Take]:
    return lambda: _made(provider, title)


def _made(provider: str, title: str) -> Take:
    from ..testing import script

    proves, steps = _SCRIPTS[title]
    chunks = script(*steps()).timed(provider)
    header = {"provider": provider, "made": "by streamnorm.testing", "proves": proves}
    return Take(header, chunks, provider, seed="streamnorm.testing", timed=True, finished=True)


def _two_calls() -> list[Any]:
    from ..testing import call, say

    return [
        say("Two places, one look at each."),
        call("get_weather", city="Oslo", units="metric"),
        call("get_tides", harbour="Bergen", days=3),
    ]


def _interleaved() -> list[Any]:
    from ..testing import interleave

    return [*_two_calls(), interleave()]


def _cut() -> list[Any]:
    from ..testing import cut

    return [*_two_calls(), cut(inside="call")]


def _without_ids() -> list[Any]:
    from ..testing import call, missing_id

    return [
        call("get_weather", city="Oslo"), missing_id(), call("get_weather", city="Lima"), missing_id(),
    ]  # fmt: skip


_SCRIPTS: dict[str, tuple[str, Callable[[], list[Any]]]] = {
    "scenario_two_calls": ("a short text, then two calls: the same on every wire", _two_calls),
    "interleaved_calls": ("fragments of two calls take turns", _interleaved),
    "cut_in_arguments": ("the bytes end inside a call", _cut),
    "calls_without_ids": ("the wire gives no ids, so they are minted", _without_ids),
}
