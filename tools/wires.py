"""Writes docs/wires/*.md: what is known of each wire, from the rows and the takes of its provider.

    python -m tools.wires             write them
    python -m tools.wires --check     exit 1 if one is not up to date

Rule: nothing is said in them that is not in a provider's file or in the header of a take.
"""

from __future__ import annotations

import inspect
import logging
import re
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from streamnorm import NOTES, Normalizer
from streamnorm.captures import read_take
from streamnorm.core.parser import Parser
from streamnorm.providers import PROGRAMS, PROVIDERS, Item, Provider, programs
from tests.providers.quirks import QUIRKS
from tools.documents import cell, main_of
from tools.golden import streams_of

__all__ = ["made"]

ROOT = Path(__file__).resolve().parent.parent
OUT = ROOT / "docs" / "wires"
IN_THIS_FILE = re.compile(r" Every word of that wire(?: that we know)? is in this file\.")
TITLE = re.compile(r"[^.:]+\.\s*")  # the first sentence, which the heading says already
FAILURES = ("ERRORS", "_ERRORS")  # tables of reasons that end a stream as Failed


def made() -> dict[Path, str]:
    """The documents, by path."""
    pages = {OUT / f"{row.name}.md": _page(row) for row in (*PROVIDERS.values(), *programs())}
    return {OUT / "README.md": _index(), **pages}


def _index() -> str:
    rows = [
        f"| [`{row.name}`]({row.name}.md) | {cell(row.title)} | {cell(row.framing)} "
        f"| {len(row.items)} | {cell(row.serves)} |"
        for row in (*PROVIDERS.values(), *programs())
    ]
    return "\n".join(
        [
            "# Wires\n",
            "One page per provider and agent program: its tool types, its ends, its takes. All of it is",
            "made from the provider's own file and the headers of the takes: `python -m tools.wires`.\n",
            "| provider | wire | framing | tool types | serves |\n|---|---|---|--:|---|",
            *rows,
            "",
        ]
    )


def _page(row: Provider) -> str:
    sections = [_head(row), _types(row), _kinds(row), _reasons(row), _shapes(row), _quirks(row)]
    return "\n".join([*(section for section in sections if section), _takes(row)])


def _head(row: Provider) -> str:
    about = IN_THIS_FILE.sub("", inspect.getdoc(import_module(row.parser)) or "")
    about = about[title.end() :] if (title := TITLE.match(about)) else about
    about = f"    {about}" if about[:1].islower() or about[:1] == "{" else about  # a grammar
    parser = row.part("parser", Parser)
    facts = [
        f"- name: `{row.name}`",
        f"- framing: {row.framing}",
        f"- serves: {row.serves}",
        f"- end mark: {parser.END}" + ("" if parser.MARKED else ", then the end of input"),
    ]
    if row.inside:
        inside = ", ".join(f"`{name}`" for name in row.inside)
        facts.append(f"- in its envelope, each told under its own name: {inside}")
    if row.also:
        also = ", ".join(f"`{name}`" for name in row.also)
        facts.append(f"- also spoken under this name: {also}")
    return "\n".join([f"# {row.title}\n", about.replace("``", "`"), "", *facts, ""])


def _types(row: Provider) -> str:
    head = (
        "| wire type | family | role | runs on | id source | id field | arguments or output | note |\n"
        "|---|---|---|---|---|---|---|---|"
    )
    return "\n".join(["## Tool types\n", head, *map(_type, row.items), ""])


def _type(item: Item) -> str:
    note = "; ".join(t for t in (item.ref_field and f"refers by {item.ref_field}", item.note) if t)
    words = (item.family, item.role, item.runs_on, item.id_source, item.id_field, item.arguments)
    return f"| `{item.type}` | " + " | ".join(map(cell, (*words, note))) + " |"


def _kinds(row: Provider) -> str:
    kinds = row.part("parser", Parser).KINDS
    tags = [tag for k in kinds if (tag := getattr(k, "__struct_config__").tag)]  # noqa: B009
    if not tags:
        return ""
    said = ", ".join(f"`{tag}`" for tag in sorted(tags))
    return f"## Kinds of payload ({len(tags)})\n\n{said}\n"


def _reasons(row: Provider) -> str:
    module: Any = import_module(row.parser)
    failures = {reason for table in FAILURES for reason in getattr(module, table, ())}
    rows = [
        f"| `{raw}` | {'failed, `provider_error`' if raw in failures else f'`{reason}`'} |"
        for raw, reason in row.part("parser", Parser).REASONS.items()
    ]
    return "\n".join(["## How it ends\n", "| the wire says | we say |\n|---|---|", *rows, ""])


def _shapes(row: Provider) -> str:
    rows = [
        f"| `{where}` | `{note}` |"
        for where, (note, _) in row.part("parser", Parser).QUIRKS.items()
    ]
    if not rows:
        return ""
    return "\n".join(["## Shapes that are made even\n", "| where | note |\n|---|---|", *rows, ""])


def _quirks(row: Provider) -> str:
    about = [q for q in QUIRKS if any(case.provider == row.name for case in q.cases)]
    if not about:
        return ""
    said = [f"- {q.number}: {q.title}: {q.does}" for q in about]
    return "\n".join(["## [Quirks](../quirks.md)\n", *said, ""])


def _takes(row: Provider) -> str:
    head = "| take | proves | ends | notes |\n|---|---|---|---|"
    rows = [_take(path) for path in sorted((ROOT / "recordings" / row.name).glob("*.sse"))]
    return "\n".join([f"## Takes ({len(rows)})\n", head, *rows, ""])


def _session(path: Path) -> str:
    """What an agent program printed or saved: how each of its streams ends."""
    ends = [events[-1] for events in streams_of(path)]
    said = ", ".join(f"{end.kind} `{getattr(end, 'reason', '')}`" for end in ends)
    return f"| `{path.stem}` | {cell(str(read_take(path).header.get('proves', '')))} | {said} | |"


def _take(path: Path) -> str:
    if path.parent.name in PROGRAMS:
        return _session(path)
    take = read_take(path)
    pipe = Normalizer(path.parent.name, seed=take.seed)
    *_, end = pipe.feed(take.wire) + pipe.close()
    notes = " ".join(f"`{note}`" for note in _in_order(pipe.notes))
    proves = cell(str(take.header.get("proves", "")))
    return f"| `{path.stem}` | {proves} | {end.kind} `{getattr(end, 'reason', '')}` | {notes} |"


def _in_order(raised: Any) -> Iterator[str]:
    return (name for name in NOTES if name in raised)


if __name__ == "__main__":
    logging.getLogger("streamnorm").setLevel(logging.CRITICAL)
    sys.exit(main_of("tools.wires", __doc__, made))
