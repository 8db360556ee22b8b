"""Every example is a short whole program, and runs offline from a take."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.conftest import ROOT

EXAMPLES = sorted(path.name for path in (ROOT / "examples").glob("*.py"))
SAYS = {
    "live_httpx.py": "get_weather({",
    "live_openai_sdk.py": "pair the result with call_",
    "live_anthropic_sdk.py": "get_weather({",
    "replay.py": "(natural)",
    "record.py": "the same again: True",
}


def run(name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    env = {k: v for k, v in os.environ.items() if not k.endswith("_API_KEY")}
    env["PYTHONPATH"] = str(ROOT)
    return subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error", f"examples/{name}", *arguments],
        cwd=ROOT, env=env, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_runs_offline(name):
    done = run(name)
    assert done.returncode == 0, done.stderr
    assert SAYS.get(name, "") in done.stdout
    assert "Warning" not in done.stderr


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_is_short(name):
    longest = 80 if name == "agent.py" else 40
    assert len((ROOT / "examples" / name).read_text().splitlines()) < longest


def test_a_recording_is_left_where_it_was_asked_for(tmp_path):
    path = tmp_path / "take.sse"
    assert "True" in run("record.py", str(path)).stdout
    assert path.stat().st_mode & 0o777 == 0o600
    assert "sk-not-a-real-key" not in path.read_text()
