"""Import: a fresh interpreter in, milliseconds and the modules it did not need out."""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path

from bench.report import Options, Section, mark

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = "streamnorm"
BAR_MS = 60.0
ROUNDS = 7
# What a consumer should not pay for at import: clients, event loops, terminals, models, SDKs.
HEAVY = (
    "aiohttp",
    "anthropic",
    "anyio",
    "asyncio",
    "google.genai",
    "httpx",
    "httpx_sse",
    "logging",
    "openai",
    "pydantic",
    "requests",
    "rich",
    "starlette",
    "structlog",
)
# Their absence is asked for; the others are told for interest.
FORBIDDEN = {"aiohttp", "anthropic", "anyio", "google.genai", "httpx", "openai", "rich"}


def run(options: Options) -> Section:
    section = Section("Import of streamnorm in a fresh interpreter")
    rounds = 3 if options.quick else ROUNDS
    timings = min((_importtime() for _ in range(rounds)), key=lambda t: t[PACKAGE][1])
    timed = timings[PACKAGE][1]
    dearest = sorted(timings, key=lambda name: -timings[name][0])[:5]
    bare = min(_cpu("pass") for _ in range(rounds))
    extra = min(_cpu(f"import {PACKAGE}") for _ in range(rounds)) - bare
    modules = _modules(f"import {PACKAGE}")
    absent = [name for name in HEAVY if name not in modules]
    present = [name for name in HEAVY if name in modules]
    section.missed += [f"import: {name} is imported" for name in present if name in FORBIDDEN]
    verdict = section.bar("import, ms", timed, BAR_MS)
    section.data = {
        "importtime_ms": timed,
        "cpu_over_bare_ms": extra * 1e3,
        "modules": len(modules),
        "dearest_ms": {name: timings[name][0] for name in dearest},
        "heavy_absent": absent,
        "heavy_present": present,
    }
    section.lines = [
        f"- `-X importtime`, cumulative, best of {rounds}: **{timed:.1f} ms**, the bar is"
        f" {BAR_MS:.0f} ms: {verdict}",
        f"- CPU time over a bare interpreter, best of {rounds}: {extra * 1e3:.1f} ms;"
        f" {len(modules)} modules loaded in all",
        f"- dearest by themselves: {', '.join(f'{n} {timings[n][0]:.1f} ms' for n in dearest)}",
        f"- not imported: {', '.join(absent)}: {mark(not FORBIDDEN & set(present))}",
        f"- imported: {', '.join(present) or 'none of the heavy ones'}",
    ]
    return section


def _python(*arguments: str) -> subprocess.CompletedProcess[str]:
    """From the root of the checkout, so that it is this streamnorm which is imported."""
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)


def _importtime() -> dict[str, tuple[float, float]]:
    """Milliseconds by module below the package: its own, and with all that it imports."""
    before = _modules("pass")
    lines = _python("-X", "importtime", "-c", f"import {PACKAGE}").stderr.splitlines()[1:]
    rows = [line.removeprefix("import time:").split("|") for line in lines]
    timings = {name.strip(): (int(own) / 1e3, int(whole) / 1e3) for own, whole, name in rows}
    return {name: timing for name, timing in timings.items() if name not in before}


def _modules(code: str) -> set[str]:
    """The modules that are loaded after ``code``."""
    listing = f"{code}; import sys; print(chr(10).join(sys.modules))"
    return set(_python("-c", listing).stdout.split())


def _cpu(code: str) -> float:
    """CPU seconds of an interpreter that runs ``code``; a busy machine disturbs them less."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    _python("-c", code)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
