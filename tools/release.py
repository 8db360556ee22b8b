"""Is this ready to be released? ``make release-check``.

    python -m tools.release                 everything
    python -m tools.release --only wheel    a step; again for more

Steps, in order: ``build`` (sdist, and the wheel made of it), ``contents`` (nothing but the package in the wheel,
what tests need in the sdist, no path of a machine), ``metadata`` (twine, addresses, a readme whose links and
pictures are absolute), ``pythons`` (the wheel in a fresh environment of every Python there is, and a replay there),
``extras`` (each of them installed alone), ``licences`` (of all that is installed with them), ``lowest`` (the lowest
versions, and the quick tests), ``tests`` (the quick tests on every other Python).

Exit 0 only if all is well; what could not be tried is said. All environments are in build/release.
"""

from __future__ import annotations

import argparse
import email
import re
import subprocess
import sys
import tarfile
import time
import zipfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from tools.documents import cell
from tools.lowest import OURS
from tools.lowest import main as lowest_main
from tools.pythons import ROOT, VERSIONS, bin_of, environment, project, pythons

__all__ = ["STEPS", "main", "relative_links"]

FOLDER = ROOT / "build" / "release"
DIST = FOLDER / "dist"
BUILDERS = ("build>=1.2", "twine>=6.1")
TAKE = "recordings/anthropic/parallel_calls.sse"
# Licences that may be installed beside ours, by words of what a package says of itself.
FREE = (
    "MIT",
    "BSD",
    "Apache",
    "ISC",
    "PSF",
    "Python Software Foundation",
    "MPL",
    "Mozilla",
    "Unlicense",
    "0BSD",
)
KNOWN = {
    "psycopg": "LGPL-3.0: only imported, as a library, and only with the extra `postgres`",
    "psycopg-binary": "as psycopg",
}
Found = Iterator[str]


# --- the steps ------------------------------------------------------------------------------------


def build() -> Found:
    """The sdist, and the wheel made of the sdist."""
    for old in DIST.glob("*") if DIST.exists() else ():
        old.unlink()
    python = environment(sys.executable, FOLDER / "builders")
    pip(python, "install", *BUILDERS)
    done = run(python, "-m", "build", "--outdir", DIST, ROOT)
    if done.returncode:
        yield f"it cannot be built: {done.stdout[-800:]}"


def contents() -> Found:
    """What is in the wheel and in the sdist."""
    with zipfile.ZipFile(_one("*.whl")) as wheel:
        names = wheel.namelist()
        yield from (
            f"in the wheel: {name}"
            for name in names
            if not re.match(r"streamnorm/|streamnorm-[\w.]+\.dist-info/", name)
            or name.endswith(".pyc")
        )
        if "streamnorm/py.typed" not in names:
            yield "py.typed is not in the wheel"
        texts = {n: wheel.read(n) for n in names}
    with tarfile.open(_one("*.tar.gz")) as sdist:
        inside = {member.name.partition("/")[2] for member in sdist.getmembers()}
        for wanted in (
            "tests/conftest.py",
            TAKE,
            "LICENSE",
            "SECURITY.md",
            "tools/rooms.py",
            "Makefile",
        ):
            if wanted not in inside:
                yield f"not in the sdist: {wanted}"
        yield from (
            f"in the sdist: {n}" for n in inside if "__pycache__" in n or n.startswith(".venv")
        )
    for name, data in texts.items():
        if str(ROOT).encode() in data or str(Path.home()).encode() + b"/" in data:
            yield f"a path of a machine in {name}"


def metadata() -> Found:
    """What an index shows: twine's opinion, addresses, absolute links."""
    done = run(bin_of(FOLDER / "builders"), "-m", "twine", "check", "--strict", *DIST.iterdir())
    if done.returncode:
        yield f"twine: {done.stdout[-500:]}"
    with zipfile.ZipFile(_one("*.whl")) as wheel:
        name = next(name for name in wheel.namelist() if name.endswith("/METADATA"))
        said = email.message_from_bytes(wheel.read(name))
    urls = {one.partition(",")[0] for one in said.get_all("Project-URL", [])}
    for wanted in ("Homepage", "Documentation", "Source", "Changelog", "Issues"):
        if wanted not in urls:
            yield f"no address for {wanted}"
    for field in ("License-Expression", "Requires-Python", "Summary", "Keywords"):
        if not said[field]:
            yield f"no {field}"
    yield from (
        f"the readme has a relative link: {link}"
        for link in relative_links(str(said.get_payload()))
    )


def in_pythons() -> Found:
    """The wheel alone, on each of them: it is imported, says its version and replays a take."""
    there = pythons()
    for version in VERSIONS:
        if version not in there:
            say(f"left out: there is no Python {version} here")
    for version, program in there.items():
        python = environment(program, FOLDER / f"python{version}")
        pip(python, "install", _one("*.whl"))
        yield from _smoke(python, version)


def _smoke(python: Path, what: str) -> Found:
    wanted = str(project()["version"])
    for arguments, word in (
        (("-m", "streamnorm", "--version"), wanted),
        (("-m", "streamnorm", "replay", ROOT / TAKE), "finished: tool_calls"),
        (("-W", "error", "-c", "import streamnorm; print(streamnorm.__file__)"), "site-packages"),
        (("-m", "pip", "check"), "No broken"),
    ):
        done = run(python, *arguments, cwd=FOLDER)
        if done.returncode or word not in done.stdout:
            yield f"{what}: {' '.join(map(str, arguments))} says {done.stdout[-300:]!r}"


def extras() -> Found:
    """Each extra alone, in a fresh environment."""
    for name in _extras():
        python = environment(sys.executable, FOLDER / "extra")
        done = run(python, "-m", "pip", "install", "-q", f"{_one('*.whl')}[{name}]")
        if done.returncode:
            yield f"the extra {name} does not install: {done.stdout[-300:]}"
            continue
        yield from _smoke(python, f"with {name}")
        say(f"{name} installs")


def licences() -> Found:
    """Of all that is installed with any extra."""
    python = environment(sys.executable, FOLDER / "licences")
    pip(python, "install", f"{_one('*.whl')}[{','.join(_extras())}]")
    told = run(python, "-c", _LICENCES).stdout.splitlines()
    rows = ["| package | licence |", "|---|---|"]
    for line in told:
        name, _, licence = line.partition("\t")
        rows.append(f"| {name} | {cell(licence[:80] or 'not said')} |")
        if name.lower() not in KNOWN and not any(word in licence for word in FREE):
            yield f"the licence of {name} is not known to be free: {licence[:80]!r}"
    (FOLDER / "licences.md").write_text("\n".join([*rows, ""]))
    say(f"{len(told)} packages; build/release/licences.md lists them")


def lowest() -> Found:
    """The lowest versions, and the quick tests with them."""
    if lowest_main([]):
        yield "the quick tests fail with the lowest versions"


def tests() -> Found:
    """The quick tests on every Python but this one."""
    for version, program in pythons().items():
        if version == f"{sys.version_info.major}.{sys.version_info.minor}":
            continue
        python = environment(program, FOLDER / f"tests{version}")
        pip(python, "install", "-e", f"{ROOT}[dev]")
        done = subprocess.run(
            [python, "-m", "pytest", "-q", "-n", "auto", "--dist", "loadgroup", "-m", "not parts",
             "-p", "no:cacheprovider"],
            cwd=ROOT, check=False,
        )  # fmt: skip
        if done.returncode:
            yield f"the quick tests fail on Python {version}"


STEPS: dict[str, Callable[[], Found]] = {
    "build": build, "contents": contents, "metadata": metadata, "pythons": in_pythons,
    "extras": extras, "licences": licences, "lowest": lowest, "tests": tests,
}  # fmt: skip

_LICENCES = """
from importlib.metadata import distributions
for one in sorted(distributions(), key=lambda one: one.name.lower()):
    said = one.metadata
    kinds = [k.rpartition(":: ")[2] for k in said.get_all("Classifier", []) if k.startswith("License")]
    text = said["License-Expression"] or ", ".join(kinds) or (said["License"] or "").split("\\n")[0]
    if one.name not in ("pip", "setuptools", "streamnorm"):
        print(one.name, text, sep="\\t")
"""


# --- what they share ------------------------------------------------------------------------------


def relative_links(text: str) -> list[str]:
    """The links and pictures of a page that lead nowhere from somewhere else.

    >>> relative_links("[a](docs/a.md) ![b](https://x.y/b.png) [c](#c)")
    ['docs/a.md']
    """
    links: list[str] = re.findall(r"\]\(([^)\s]+)\)", re.sub(r"```.*?```", "", text, flags=re.S))
    return [link for link in links if not re.match(r"https?://|#|mailto:", link)]


def run(
    program: Path | str, *arguments: object, cwd: Path = ROOT
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(program), *map(str, arguments)], cwd=cwd, text=True, check=False,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip


def pip(python: Path, *arguments: object) -> None:
    done = run(python, "-m", "pip", "--disable-pip-version-check", "-q", *arguments)
    if done.returncode:
        sys.exit(f"pip {' '.join(map(str, arguments))}: {done.stdout[-800:]}")


def say(what: str) -> None:
    print(f"    {what}", flush=True)


def _one(pattern: str) -> Path:
    found = sorted(DIST.glob(pattern))
    if len(found) != 1:
        sys.exit(f"there is no {pattern} in {DIST.relative_to(ROOT)}: run the step `build` first")
    return found[0]


def _extras() -> list[str]:
    table: Any = project()["optional-dependencies"]
    return [name for name in table if name not in OURS]


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.release", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--only", action="append", choices=list(STEPS), help="only this step")
    parser.add_argument("--skip", action="append", choices=list(STEPS), default=[])
    options = parser.parse_args(argv)
    FOLDER.mkdir(parents=True, exist_ok=True)
    wrong = 0
    for name in options.only or [name for name in STEPS if name not in options.skip]:
        began = time.monotonic()
        print(f"==> {name}: {(STEPS[name].__doc__ or '').splitlines()[0]}", flush=True)
        found = list(STEPS[name]())
        wrong += len(found)
        for what in found:
            print(f"    WRONG: {what}", flush=True)
        say(f"{len(found) or 'nothing'} wrong, {time.monotonic() - began:.0f} s")
    print(f"ready: {'no' if wrong else 'yes, as far as it was tried'}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
