"""Bytes that a coverage-guided engine makes up, given to each target: atheris where it installs, else Hypothesis.

    python -m tests.prove.fuzz TARGET --seconds 60      one target, in this process

Each target has a process of its own: what a fuzzer finds may be the end of it.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

from tests.prove.share import Report, Share

__all__ = ["fuzz"]

ROOT = Path(__file__).resolve().parents[2]
FINDS = ROOT / "build" / "finds"
NAMES = ("wires", "frames", "takes", "bodies", "posts")
WEIGHTS = {"wires": 3.0}  # of the time; the others have one part each
LONGEST = 4096  # bytes
TIMEOUT = 20  # seconds for one input
_DONE = re.compile(r"^Done (\d+) runs", re.M)
_RUNS = re.compile(r"^#(\d+)", re.M)


def fuzz(share: Share) -> Report:
    engine = "atheris" if find_spec("atheris") is not None else "Hypothesis"
    total = sum(WEIGHTS.get(name, 1.0) for name in NAMES)
    runs, found = 0, list[str]()
    for name in NAMES:
        seconds = share.seconds * WEIGHTS.get(name, 1.0) / total
        share.told(f"{name}, {runs:,} inputs so far ({engine})")
        count, problem = in_its_own_process(name, seconds, share.seed)
        runs += count
        found += [f"{name}: {problem}"] if problem else []
    share.told(f"{runs:,} inputs")
    return Report(f"{runs:,} inputs that {engine} made up, for {', '.join(NAMES)}", found)


def in_its_own_process(name: str, seconds: float, seed: str) -> tuple[int, str]:
    """How many inputs, and what one of them did, if any did."""
    command = [
        sys.executable,
        "-m",
        "tests.prove.fuzz",
        name,
        "--seconds",
        f"{seconds:.0f}",
        "--seed",
        seed,
    ]
    process = subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True
    )
    try:
        said = process.communicate(timeout=seconds * 2 + 120)[0].decode("utf-8", "backslashreplace")
    except subprocess.TimeoutExpired:
        return 0, f"it did not come to an end in {seconds * 2 + 120:.0f} s"
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    counts = [int(number) for number in _DONE.findall(said) or _RUNS.findall(said)]
    if process.returncode == 0:
        return max(counts, default=0), ""
    return max(counts, default=0), f"exit {process.returncode}: {said[-3000:]}"


# --- in that process ------------------------------------------------------------------------------


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.prove.fuzz", description=__doc__)
    parser.add_argument("target", choices=NAMES)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", default="prove")
    parser.add_argument("--plain", action="store_true", help="Hypothesis, though atheris is there")
    options = parser.parse_args()
    if find_spec("atheris") is not None and not options.plain:
        return by_atheris(options.target, options.seconds, options.seed)
    return by_hypothesis(options.target, options.seconds, options.seed)


def by_atheris(name: str, seconds: float, seed: str) -> int:
    import atheris

    with atheris.instrument_imports(include=["streamnorm"]):
        from tests.proof.run import be_quiet
        from tests.prove.targets import JSON, TARGETS, changed, samples

        be_quiet()
        for sample in samples(name):  # a provider is imported when it is first asked for
            TARGETS[name](sample)

    def odder(data: bytes, most: int, seed: int) -> bytes:
        plain: bytes = atheris.Mutate(data, most)
        return changed(data, seed)[:most] if seed % 4 else plain

    FINDS.mkdir(parents=True, exist_ok=True)
    number = int.from_bytes(seed.encode()[:4].ljust(4, b"\0")) % 2**31 or 1
    with tempfile.TemporaryDirectory() as corpus:
        for at, sample in enumerate(samples(name)):
            (Path(corpus) / str(at)).write_bytes(sample)
        atheris.Setup(
            [name, f"-max_total_time={max(1, int(seconds))}", f"-seed={number}", f"-timeout={TIMEOUT}",
             f"-max_len={LONGEST}", "-rss_limit_mb=2048",
             f"-artifact_prefix={FINDS}/{name}-", corpus],
            TARGETS[name], **({"custom_mutator": odder} if name in JSON else {}),
        )  # fmt: skip
        atheris.Fuzz()
    return 0


def by_hypothesis(name: str, seconds: float, seed: str) -> int:
    """Samples with some of their bytes changed; what makes more happen is gone on from."""
    from hypothesis import HealthCheck, Phase, given, settings, target
    from hypothesis import seed as seeded
    from hypothesis import strategies as st

    from tests.proof.run import be_quiet
    from tests.prove.targets import JSON, TARGETS, changed, samples

    be_quiet()
    known, run, runs = list(samples(name)), TARGETS[name], 0
    changes = st.lists(
        st.tuples(st.floats(0, 1), st.integers(0, 9), st.binary(max_size=9)), max_size=6
    )

    @settings(
        max_examples=500, database=None, deadline=None, phases=[Phase.generate, Phase.target],
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(sample=st.sampled_from(known), change=changes, odd=st.integers(0, 2**32))
    def try_one(sample: bytes, change: list[tuple[float, int, bytes]], odd: int) -> None:
        nonlocal runs
        runs += 1
        body = changed(sample, odd) if name in JSON else sample
        change = [] if name in JSON and odd % 4 else change
        for where, size, text in change:
            at = int(where * len(body))
            body = body[:at] + text + body[at + size :]
        target(float(passed(run, body)), label="lines")

    until, number = time.monotonic() + seconds, 0
    while time.monotonic() < until:
        seeded(random.Random(f"{seed}/{number}").getrandbits(64))(try_one)()
        number += 1
    print(f"Done {runs} runs")
    return 0


def passed(run: Callable[[bytes], None], body: bytes) -> int:
    """How many different lines of the library these bytes pass."""
    lines = set[tuple[str, int]]()

    def trace(frame: object, event: str, _: object) -> object:
        code = frame.f_code  # type: ignore[attr-defined]
        if "streamnorm" not in code.co_filename:
            return None
        lines.add((code.co_filename, frame.f_lineno))  # type: ignore[attr-defined]
        return trace

    sys.settrace(trace)  # type: ignore[arg-type]
    try:
        run(body)
    finally:
        sys.settrace(None)
    return len(lines)


if __name__ == "__main__":
    sys.exit(main())
