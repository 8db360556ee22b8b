"""The lowest versions that pyproject.toml allows, installed, and the quick tests with them: ``make lowest``.

    python -m tools.lowest               all extras but those for developers
    python -m tools.lowest --list        only say which versions these are
    python -m tools.lowest -- tests/ui   some tests

A bound that does not install, or with which a test fails, has to move: that is what this is for. The tools that
run the tests are those of today. Exit 0 only if all is well.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tools.pythons import ROOT, environment, project, pythons

__all__ = ["OURS", "lowest", "main"]

FOLDER = ROOT / ".venv-lowest"
OURS = ("dev", "sdks")  # extras of developers: what they pull in is that of today
TOOLS = ("pytest", "pytest-asyncio", "pytest-xdist", "hypothesis", "fastapi")
_REQUIREMENT = re.compile(r"\s*([\w.-]+)(\[[\w,\s-]*\])?\s*(.*?)\s*(;.*)?$")
_BOUND = re.compile(r">=\s*([\w.]+)")


def lowest(table: dict[str, Any] | None = None) -> dict[str, str]:
    """Package -> the lowest version that is allowed. One without a bound is not here."""
    table = table or project()
    extras: dict[str, list[str]] = table.get("optional-dependencies", {})
    wanted = list(table["dependencies"])
    for name, requirements in extras.items():
        wanted += requirements if name not in OURS else []
    found: dict[str, str] = {}
    for requirement in wanted:
        match = _REQUIREMENT.match(requirement)
        bound = _BOUND.search(match[3]) if match else None
        if match and bound and match[1].lower() != table["name"]:
            found[match[1].lower()] = max(found.get(match[1].lower(), ""), bound[1], key=_numbers)
    return found


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version))


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.lowest", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--list", action="store_true", help="only list the versions")
    parser.add_argument("tests", nargs="*", help="arguments for pytest")
    options = parser.parse_args(argv)
    pins = lowest()
    print(*(f"{name}=={version}" for name, version in sorted(pins.items())), sep="\n", flush=True)
    if options.list:
        return 0
    python = installed(pins)
    print("==> the quick tests with these versions", flush=True)
    return suite(python, options.tests)


def installed(pins: dict[str, str], folder: Path = FOLDER) -> Path:
    """An environment with these versions, and today's tools."""
    python = environment(next(iter(pythons().values()), sys.executable), folder)
    constraints = folder / "lowest.txt"
    constraints.write_text("".join(f"{name}=={version}\n" for name, version in pins.items()))
    extras: Any = project()["optional-dependencies"]
    names = ",".join(name for name in extras if name not in OURS)
    tools = [tool for tool in extras["dev"] if _name(tool) in TOOLS]
    subprocess.run(
        [python, "-m", "pip", "--disable-pip-version-check", "install", "-q", "-c", constraints,
         "-e", f"{ROOT}[{names}]", *tools],
        check=True,
    )  # fmt: skip
    subprocess.run([python, "-m", "pip", "--disable-pip-version-check", "check"], check=True)
    return python


def _name(requirement: str) -> str:
    match = _REQUIREMENT.match(requirement)
    return match[1].lower() if match else ""


def suite(python: Path, arguments: Sequence[str]) -> int:
    """The quick tests that need no developer's tool."""
    jobs = os.cpu_count() or 2
    command = [
        python,
        "-m",
        "pytest",
        "-q",
        "-n",
        str(jobs),
        "--dist",
        "loadgroup",
        "-m",
        "not parts",
    ]
    return subprocess.run([*command, *arguments], cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
