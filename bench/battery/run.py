"""All cases to all readers: ``make battery``, or ``python -m bench.battery.run [--cuts 40] [--only WORD]``.

Our own reader and those of ``bench.readers`` are asked for each stream, which comes over HTTP from loopback. Peers
are installed into .venv-bench. The tables go to tests/promises/results.json, of which docs/promises.md is made.
Exit 1 if a cell of ours is silently wrong.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import version
from pathlib import Path
from typing import Any

from bench.battery.cases import WIRES, Case, cuts, oddities
from bench.battery.judge import SILENT, verdict
from bench.environments import ensure
from bench.progress import Progress
from bench.readers import BARE, CONTENDERS, OURS, RECORDING, SSE
from tests.promises import results

__all__ = ["main", "serving"]

ROOT = Path(__file__).resolve().parents[2]
NOBODY = {BARE, SSE, RECORDING}  # who gives no calls, or is another of us
CUT_HEAD = ["reader", "wire", "ended", "cuts", "right", "told", "lost", "half", "wrong"]
_VERSION = "from importlib.metadata import version; import sys; print(version(sys.argv[1]))"


class Worker:
    """One environment, asked for one stream at a time."""

    def __init__(self, python: Path | str) -> None:
        self.process = subprocess.Popen(
            [str(python), "-m", "bench.battery.worker"], cwd=ROOT, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )  # fmt: skip

    def ask(self, contender: str, wire: str, base: str) -> dict[str, Any]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        task = {"contender": contender, "wire": wire, "base": base}
        self.process.stdin.write(json.dumps(task) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"the process of {contender} ended at {base}")
        heard: dict[str, Any] = json.loads(line)
        return heard

    def close(self) -> None:
        self.process.kill()
        self.process.communicate()


@contextmanager
def serving(cases: Sequence[Case]) -> Iterator[str]:
    """An address below which each case is answered, by its number."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            with suppress(OSError):
                self.rfile.read(int(self.headers.get("content-length") or 0))
                case = cases[int(self.path.split("/")[1])]
                self.send_response(200)
                self.send_header("content-type", "text/event-stream")
                self.send_header("transfer-encoding", "chunked")
                self.end_headers()
                for at in range(0, len(case.body), case.size):
                    chunk = case.body[at : at + case.size]
                    self.wfile.write(b"%x\r\n%b\r\n" % (len(chunk), chunk))
                if case.ends == "clean":
                    self.wfile.write(b"0\r\n\r\n")
                else:
                    self.close_connection = True

        def log_message(self, *_: Any) -> None:
            """Nobody reads it."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.battery.run", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--cuts", type=int, default=40, help="a stream is cut into so many parts")
    parser.add_argument("--only", default="", help="only readers with this in their name")
    options = parser.parse_args(argv)
    began = time.monotonic()
    cases = [case for wire in WIRES for case in (*cuts(wire, options.cuts), *oddities(wire))]
    readers = [name for name in CONTENDERS if name not in NOBODY and options.only in name]
    found, versions = _asked(cases, readers)
    for name in readers:
        for case, word in found[name]:
            if name == OURS and word in SILENT:
                print(f"OURS IS {word.upper()}: {case.wire}: {case.name}")
    tables = [_cut_table(found), _odd_table(found, cases)]
    if not options.only:
        machine = (
            f"{datetime.now(UTC).date().isoformat()}, Python {platform.python_version()}, "
            f"{(time.monotonic() - began) / 60:.0f} minutes. Measured: {', '.join(versions)}."
        )
        results.keep("battery", {"machine": machine, "tables": tables})
    for table in tables:
        print(f"\n{table['title']}")
        for row in [table["head"], *table["rows"]]:
            print("  ".join(str(cell) for cell in row))
    silent = sum(word in SILENT for _, word in found.get(OURS, ()))
    print(
        f"\n{sum(map(len, found.values()))} streams were read; ours was silently wrong {silent} times"
    )
    return 1 if silent else 0


def _asked(
    cases: list[Case], readers: list[str]
) -> tuple[dict[str, list[tuple[Case, str]]], list[str]]:
    found: dict[str, list[tuple[Case, str]]] = defaultdict(list)
    versions: dict[str, str] = {}
    progress = Progress({"battery": 1.0})
    tick = progress.section("battery")
    with serving(cases) as url:
        for number, name in enumerate(readers):
            contender = CONTENDERS[name]
            python = ensure(contender.environment) if contender.environment else sys.executable
            if python is None:
                continue
            told = _version_of(python, contender.distribution)
            versions[contender.distribution] = f"{contender.distribution} {told}"
            worker = Worker(python)
            try:
                for at, case in enumerate(cases):
                    if case.wire in contender.wires:
                        heard = worker.ask(name, case.wire, f"{url}/{at}")
                        found[name].append((case, verdict(case, heard)))
                    if at % 20 == 0:
                        tick(number * len(cases) + at, len(readers) * len(cases), name)
            finally:
                worker.close()
    progress.done("battery")
    return found, list(versions.values())


def _version_of(python: Path | str, distribution: str) -> str:
    if distribution == "streamnorm":
        return version(distribution)
    asked = [str(python), "-c", _VERSION, distribution]
    return subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip()


def _cut_table(found: dict[str, list[tuple[Case, str]]]) -> dict[str, Any]:
    rows: list[list[Any]] = []
    for name, heard in found.items():
        for wire in WIRES:
            for ends in ("clean", "abrupt"):
                words = Counter(
                    word
                    for case, word in heard
                    if case.wire == wire and case.ends == ends and case.name.startswith("cut at")
                )
                if words:
                    counts = [words[word] or "" for word in CUT_HEAD[4:]]
                    rows.append([name, wire, ends, words.total(), *counts])
    return {"title": "Cut streams", "about": _CUTS, "head": CUT_HEAD, "rows": rows}


def _odd_table(found: dict[str, list[tuple[Case, str]]], cases: list[Case]) -> dict[str, Any]:
    names = list(dict.fromkeys(case.name for case in cases if not case.name.startswith("cut at")))
    rows = []
    for odd in names:
        row = [odd]
        for heard in found.values():
            words = Counter(word for case, word in heard if case.name == odd)
            row.append(", ".join(_cell(word, count) for word, count in words.items()))
        rows.append(row)
    return {"title": "Odd streams", "about": _ODD, "head": ["stream", *found], "rows": rows}


def _cell(word: str, count: int) -> str:
    shown = f"**{word}**" if word in SILENT else word
    return shown if count == 1 else f"{count} {shown}"


_CUTS = (
    "Two calls in parallel. *Clean*: the body ends properly where it was cut, as it does behind a proxy; "
    "*abrupt*: the connection breaks. *Right*: all that was said had come. *Told*: it raised (of us: "
    "`Failed` or a `BrokenToolCall` was heard). The others are silent: *lost*: calls are missing; *half*: "
    "arguments are a text that is no JSON; *wrong*: a call that nobody made."
)
_ODD = (
    "The same words, one for each wire that can be so odd (a number if they agree); bold is silent. SDK readers "
    "without a helper use our own loop after the documentation of the SDK; whoever also looks at the finish "
    "reason sees the token limit."
)


if __name__ == "__main__":
    sys.exit(main())
