"""Every Python example of the README runs as it stands there."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from tests.conftest import ROOT

EXAMPLES = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.S)


def test_the_readme_has_examples():
    assert len(EXAMPLES) >= 4


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda text: text.split("\n")[0])
def test_an_example_of_the_readme_runs(example: str):
    done = subprocess.run(
        [sys.executable, "-c", example], cwd=ROOT, capture_output=True, text=True, check=False
    )
    # A stream that is cut on purpose is warned of; nothing else is said there.
    assert [line for line in done.stderr.splitlines() if not line.startswith("event=")] == []
    assert done.returncode == 0
    assert done.stdout.strip()
