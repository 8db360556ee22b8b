"""Writes docs/promises.md: each promise, its tests, what happens without its protection, what peers do.

    python -m tools.promises             write it
    python -m tools.promises --check     exit 1 if it is not up to date

The rows are tests/promises/rows.py and tests/sabotage/rows.py; the figures are those of the last runs of
``make sabotage``, ``make prove`` and ``make battery``, from tests/promises/results.json.
"""

from __future__ import annotations

import sys
from itertools import groupby
from pathlib import Path
from typing import Any

from tests.promises import results
from tests.promises.rows import GROUPS, PROMISES, Promise
from tests.sabotage.rows import PATCHES
from tools.documents import cell, main_of

__all__ = ["made"]

OUT = Path(__file__).resolve().parent.parent / "docs" / "promises.md"

HEAD = """\
# Promises, and what shows them

What this library promises, which tests hold it, and what happens to those tests when the protection is
taken away. `make sabotage` does that: it applies each patch of `tests/sabotage/rows.py` in a copy of the
tree, runs the tests of its promise there, and expects one of them to turn red. `make prove` looks for a
promise that does not hold, for half an hour, and `make battery` shows the same inputs to SDKs and
frameworks.

*Elsewhere* is what was measured with openai 3.49.0, anthropic 2.8.0, google-genai 3.1.0, litellm 1.106.2,
pydantic-ai 2.66.0, httpx-sse 0.4.3 and httpx2 2.16.0, or what their issues say; the tables below are of newer
releases.

What is *not* promised: that a tool runs exactly once. After a crash nobody knows whether it did; it has a
stable key for that (`ToolCall.checksum`), and its call is `unresolved` until somebody decides.
"""

PROVE = """\
## The last `make prove`

{machine}

| part | tried | found |
|---|---|---|
"""

BATTERY = """\
## The same inputs elsewhere

`make battery` serves the streams from loopback to each reader as it is installed, and compares the calls
that come out with those that were said. {machine}
"""


def made() -> dict[Path, str]:
    figures = results.read()
    red = figures.get("sabotage", {})
    parts = [HEAD, _counted(red)]
    for group, promises in groupby(PROMISES, key=lambda promise: promise.id[0]):
        parts += [f"## {group}. {GROUPS[group]}\n", *(_told(one, red) for one in promises)]
    if prove := figures.get("prove"):
        parts.append(_proved(prove))
    if battery := figures.get("battery"):
        parts.append(_battery(battery))
    return {OUT: "\n".join(parts)}


def _counted(red: dict[str, str]) -> str:
    tests = {node for promise in PROMISES for node in promise.nodes}
    tried = [patch for patch in PATCHES if patch.name in red]
    caught = sum(bool(red[patch.name]) for patch in tried)
    return (
        f"{len(PROMISES)} promises, {len(tests)} tests, {len(PATCHES)} patches; in the last run of "
        f"`make sabotage` {caught} of {len(tried)} patches turned a test red.\n"
    )


def _told(promise: Promise, red: dict[str, str]) -> str:
    lines = [f"**{promise.id}.** {promise.says}\n"]
    shown = groupby((node.partition("::") for node in promise.nodes), key=lambda node: node[0])
    for file, nodes in shown:
        names = ", ".join(f"`{name}`" for _, _, name in nodes)
        lines.append(f"- {file}: {names}")
    lines += [_patch(patch.name, red) for patch in PATCHES if patch.promise == promise.id]
    if promise.peers:
        lines.append(f"- elsewhere: {promise.peers}")
    return "\n".join([*lines, ""])


def _patch(name: str, red: dict[str, str]) -> str:
    protection = name.partition(" without ")[2]
    if name not in red:
        return f"- without {protection}: not tried yet"
    by = red[name].rpartition("::")[2]
    return f"- without {protection}: " + (f"red, `{by}`" if by else "**no test turns red**")


def _proved(prove: dict[str, Any]) -> str:
    rows = [
        f"| {cell(one['part'])} | {cell(one['tried'])} | {cell(one['found'])} |"
        for one in prove["parts"]
    ]
    return PROVE.format(machine=prove["machine"]) + "\n".join([*rows, ""])


def _battery(battery: dict[str, Any]) -> str:
    parts = [BATTERY.format(machine=battery["machine"])]
    for table in battery["tables"]:
        head = "| " + " | ".join(table["head"]) + " |\n|" + "---|" * len(table["head"])
        rows = ["| " + " | ".join(cell(str(one)) for one in row) + " |" for row in table["rows"]]
        parts.append("\n".join([f"### {table['title']}\n", table["about"] + "\n", head, *rows, ""]))
    return "\n".join(parts)


if __name__ == "__main__":
    sys.exit(main_of("tools.promises", __doc__, made))
