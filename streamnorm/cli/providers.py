"""``streamnorm providers``: nothing in, a table of the wires that are understood out, and one of the
agent programs whose sessions are.

``--types`` prints the wire types that call tools or bring their outputs, instead.

Rule: the tables are ``PROVIDERS`` and the rows in it; nothing is written down twice.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from ..providers import Provider

__all__ = ["add", "run"]

HEADS = ("name", "wire", "framing", "cannot", "serves")
WIRE, SERVES = HEADS.index("wire"), HEADS.index("serves")
PROGRAM_HEADS = ("program", "title", "framing", "reads")
READS = PROGRAM_HEADS.index("reads")
TYPE_HEADS = ("provider", "wire type", "family", "role", "runs on", "id source", "id field")
ID_FIELD, FAMILY = TYPE_HEADS.index("id field"), TYPE_HEADS.index("family")

Row = tuple[str, ...]


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Tells the parser about this command."""
    from .style import add_color_options

    parser = commands.add_parser(
        "providers",
        help="list the providers that are understood",
        description="List the providers: the name to pass, the wire, its framing, what cannot be "
        "done with it, whom it serves. Then the agent programs, and what is read of each. "
        "With --types, list what calls tools on each wire, and where the ids come from.",
    )
    parser.add_argument(
        "--types",
        action="store_true",
        help="list the wire types of tool calls and outputs: family, role, who runs them, ids",
    )
    parser.add_argument("--provider", metavar="P", help="only this provider")
    parser.add_argument("--json", action="store_true", help="one JSON object per row")
    add_color_options(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Prints the table."""
    from ..providers import PROGRAMS, PROVIDERS, programs, provider_row

    wanted = [provider_row(args.provider)] if args.provider else list(PROVIDERS.values())
    agents = [row for row in programs() if args.provider in (None, row.name)]
    wanted = [row for row in wanted if row.name not in PROGRAMS]
    if args.types:
        # A wire type that is cut is no use; nobody reads to the right of a pipe.
        _print(
            TYPE_HEADS,
            types_of(wanted or agents),
            args,
            (ID_FIELD, FAMILY) if sys.stdout.isatty() else (),
        )
    else:
        rows: list[Row] = [
            (row.name, row.title, row.framing, " ".join(row.cannot), row.serves) for row in wanted
        ]
        said: list[Row] = [(row.name, row.title, row.framing, row.serves) for row in agents]
        if rows:
            _print(HEADS, rows, args, (SERVES, WIRE))
        if rows and said and not args.json:
            print()
        if said:
            _print(PROGRAM_HEADS, said, args, (READS,))
    return 0


def types_of(providers: Sequence[Provider]) -> list[Row]:
    """One row per wire type that is about a tool, in the order of the provider's table."""
    return [
        (
            provider.name,
            item.type,
            item.family,
            item.role,
            item.runs_on,
            item.id_source,
            item.id_field,
        )
        for provider in providers
        for item in provider.items
    ]


def _print(heads: Row, rows: list[Row], args: argparse.Namespace, shrink: tuple[int, ...]) -> None:
    if args.json:
        from ..text.written import json_text

        for row in rows:
            named = {h.replace(" ", "_"): c for h, c in zip(heads, row, strict=True)}
            print(json_text(named))
        return
    from .grid import grid
    from .style import style_for

    print(grid(heads, rows, style=style_for(sys.stdout, args.color), shrink=shrink))
