"""The snippets of docs/captures.md run as they stand."""

from __future__ import annotations

import re

import pytest

from tests.conftest import ROOT

TEXT = (ROOT / "docs" / "captures.md").read_text()
SNIPPETS = re.findall(r"```python\n(.*?)```", TEXT, re.S)


@pytest.mark.parametrize("number", range(len(SNIPPETS)))
def test_each_snippet_runs(number, monkeypatch):
    monkeypatch.chdir(ROOT)
    exec(compile(SNIPPETS[number], f"captures.md, snippet {number + 1}", "exec"), {})


def test_every_form_has_a_row():
    from streamnorm.captures.opened import IN_PIECES

    named = set(re.findall(r"`([a-z]+)`", "".join(re.findall(r"(?m)^\| (`.*?) \|", TEXT))))
    assert named == {*IN_PIECES, "curl", "har", "vcr"}
