"""``streamnorm providers``: nothing in, a table of the wires that are understood out.

Rule: the table is ``PROVIDERS``; nothing is written down twice.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse

__all__ = ["add", "run"]

HEADS = ("name", "wire", "framing", "serves")
WIRE, SERVES = HEADS.index("wire"), HEADS.index("serves")


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Tells the parser about this command."""
    from .style import add_color_options

    parser = commands.add_parser(
        "providers",
        help="list the providers that are understood",
        description="List the providers: the name to pass, the wire, its framing, whom it serves.",
    )
    add_color_options(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Prints the table."""
    from ..providers import PROVIDERS
    from .style import style_for
    from .table import table

    rows = [(row.name, row.title, row.framing, row.serves) for row in PROVIDERS.values()]
    style = style_for(sys.stdout, args.color)
    print(table(HEADS, rows, style=style, shrink=(SERVES, WIRE)))
    return 0
