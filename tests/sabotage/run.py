"""Takes the protections away one by one: ``make sabotage``, or ``python -m tests.sabotage.run [WORD …]``.

For each patch (rows.py) whose name has one of the words in it: the patch is applied in a copy of the tree, the
tests of its promise are run there under a time limit, and one of them has to fail. A test that would hang is
failed by its own time limit (tests/conftest.py), which is seconds here. First the same tests are run on the tree
as it is: all of them have to pass there, or what turns red says nothing.

Exit 0 only if every patch turns a test red. What came of them goes to tests/promises/results.json, which
docs/promises.md is made of.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from queue import SimpleQueue
from typing import NamedTuple

from bench.progress import Progress
from tests.promises import results
from tests.promises.rows import PROMISES
from tests.sabotage.rows import PATCHES, Patch

__all__ = ["Verdict", "asked_of", "copy_of_the_tree", "main", "tried"]

ROOT = Path(__file__).resolve().parents[2]
COPIED = ("streamnorm", "tests", "recordings", "tools", "bench", "docs", "examples")
LIMIT = 20  # seconds for one test
SECONDS = 300  # for all tests of a patch; a test that cannot be failed is ended with them
_NODES = {promise.id: promise.nodes for promise in PROMISES}
_RED = re.compile(r"^(?:FAILED|ERROR) (\S+?::\w+)(?:\[.*\])?(?: - .*)?$", re.M)


class Verdict(NamedTuple):
    """``by``: the test that turned red, "" if none did; ``why``: what is wrong with that."""

    patch: Patch
    by: str
    why: str
    seconds: float


def main(argv: Sequence[str] | None = None) -> int:
    options = _options(argv)
    patches = [p for p in PATCHES if not options.word or any(w in p.name for w in options.word)]
    if options.list or not patches:
        print(*(patch.name for patch in patches), f"{len(patches)} patches", sep="\n")
        return 0 if patches else 2
    progress = Progress({"sabotage": 1.0})
    tick = progress.section("sabotage")
    tick(0, len(patches) + 1, "the tests on the tree as it is")
    failing = [] if options.trust else _failing(patches)
    if failing:
        progress.clear()
        print(
            "these tests fail without a patch, so that nothing can be said:", *failing, sep="\n  "
        )
        return 2
    verdicts: list[Verdict] = []
    for verdict in all_tried(patches, options.jobs):
        verdicts.append(verdict)
        tick(len(verdicts) + 1, len(patches) + 1, verdict.patch.name)
        if not verdict.by:
            progress.clear()
            print(f"STAYS GREEN: {verdict.patch.name}: {verdict.why}", flush=True)
        elif options.verbose:
            progress.clear()
            print(f"red: {verdict.patch.name}: {verdict.by} ({verdict.seconds:.0f} s)", flush=True)
    progress.done("sabotage")
    results.keep_sabotage({v.patch.name: v.by for v in verdicts})
    green = sum(not verdict.by for verdict in verdicts)
    print(f"{len(verdicts)} patches, {len(verdicts) - green} red, {green} stay green")
    return 1 if green else 0


def _options(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.sabotage.run", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("word", nargs="*", help="only patches whose name has one of these in it")
    parser.add_argument("--jobs", type=int, default=max(1, (os.cpu_count() or 2) // 2))
    parser.add_argument("--list", action="store_true", help="only list the patches")
    parser.add_argument("--trust", action="store_true", help="do not run the tests unpatched first")
    parser.add_argument("--verbose", action="store_true", help="say which test turned red for each")
    return parser.parse_args(argv)


def asked_of(patch: Patch) -> list[str]:
    """Those that are asked."""
    return patch.tests.split() or _NODES[patch.promise]


# --- trying ---------------------------------------------------------------------------------------


@contextmanager
def copy_of_the_tree() -> Iterator[Path]:
    """What the tests need of it, compiled files too."""
    with tempfile.TemporaryDirectory(prefix="streamnorm-sabotage-") as folder:
        tree = Path(folder)
        for name in COPIED:
            shutil.copytree(ROOT / name, tree / name)
        for path in ROOT.iterdir():
            if path.is_file():
                shutil.copy2(path, tree)
        yield tree


def all_tried(patches: Sequence[Patch], jobs: int) -> Iterator[Verdict]:
    """The patches, each worker with a copy of its own."""
    waiting: SimpleQueue[Patch | None] = SimpleQueue()
    done: SimpleQueue[Verdict | BaseException] = SimpleQueue()
    for patch in [*patches, *[None] * jobs]:
        waiting.put(patch)

    def work() -> None:
        try:
            with copy_of_the_tree() as tree:
                while (patch := waiting.get()) is not None:
                    done.put(tried(tree, patch))
        except BaseException as error:  # told where the verdicts are waited for
            done.put(error)
            raise

    with ThreadPoolExecutor(jobs) as workers:
        for _ in range(jobs):
            workers.submit(work)
        try:
            for _ in patches:
                verdict = done.get()
                if isinstance(verdict, BaseException):
                    raise verdict
                yield verdict
        finally:
            with suppress(Exception):
                while True:  # whoever is not done yet finds nothing more to do
                    waiting.get_nowait()
            for _ in range(jobs):
                waiting.put(None)


def tried(tree: Path, patch: Patch, run: Callable[..., tuple[int, str]] | None = None) -> Verdict:
    """One patch, in a copy that is afterwards as it was."""
    began, file = time.monotonic(), tree / patch.file
    before = file.read_bytes()
    try:
        file.write_text(patched(before.decode(), patch))
        code, told = (run or _run)(tree, asked_of(patch))
    finally:
        file.write_bytes(before)
    reds = _RED.findall(told)
    seconds = time.monotonic() - began
    if code == 1 and reds:
        return Verdict(patch, reds[0], "", seconds)
    why = {0: "all tests pass", None: f"not done after {SECONDS} s"}.get(
        code, f"no test was run (pytest says {code}): {told[-300:]}"
    )
    return Verdict(patch, "", why, seconds)


def patched(text: str, patch: Patch) -> str:
    """The text of its file with the patch; it stands there once."""
    if (count := text.count(patch.text)) != 1:
        raise ValueError(f"{patch.name}: its text stands {count} times in {patch.file}, not once")
    return text.replace(patch.text, patch.instead)


def _failing(patches: Sequence[Patch]) -> list[str]:
    """The tests that fail on the tree as it is."""
    nodes = sorted({node for patch in patches for node in asked_of(patch)})
    with copy_of_the_tree() as tree:
        code, told = _run(tree, nodes, stop=False, seconds=6 * SECONDS)
    return [] if code == 0 else _RED.findall(told) or [told[-2000:]]


def _run(
    tree: Path, nodes: Sequence[str], *, stop: bool = True, seconds: float = SECONDS
) -> tuple[int | None, str]:
    """What pytest exits with (None: it was ended), and what it says."""
    command = [sys.executable, "-m", "pytest", "-q", "-rfE", "--tb=no", "-p", "no:cacheprovider"]
    # What a patched tree prints beside its tests is of no interest, and a warning may be all that
    # tells; whoever is started by a test finds the same tree.
    environment = os.environ | {"PYTHONPATH": str(tree), "STREAMNORM_LIMIT": str(LIMIT)}
    environment["COLUMNS"] = "2000"
    environment.pop("STREAMNORM_TESTS", None)
    process = subprocess.Popen(
        [*command, *(["-x"] if stop else []), *nodes], cwd=tree, env=environment, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
    )  # fmt: skip
    try:
        told, _ = process.communicate(timeout=seconds)
        return process.returncode, told
    except subprocess.TimeoutExpired:
        return None, ""
    finally:
        with suppress(ProcessLookupError):  # whatever it has left, too
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


if __name__ == "__main__":
    sys.exit(main())
