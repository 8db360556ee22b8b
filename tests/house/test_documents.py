"""The documents that are made from tables say what the tables say."""

from __future__ import annotations

import re

import pytest

from streamnorm.core.calls import TABLE, State
from streamnorm.providers import PROVIDERS
from tests.conftest import ROOT
from tools import states, wires
from tools.documents import cell, main_of, makers


@pytest.mark.parametrize("tool", makers())
def test_documents_are_up_to_date(tool):
    made = makers()[tool]()
    assert made
    for path, text in made.items():
        assert path.read_text() == text, f"make docs writes {path.name}"


def test_the_tools_that_make_documents_are_found():
    assert {"architecture", "quirks", "states", "wires"} <= set(makers())


@pytest.mark.parametrize("name", ["docs/architecture.md", "CONTRIBUTING.md"])
def test_a_file_that_is_named_is_there(name):
    named = re.findall(r"`([\w./]+/|[\w./]+\.(?:py|md|toml))`", (ROOT / name).read_text())
    places = (ROOT, ROOT / "streamnorm", ROOT / "streamnorm" / "providers" / "anthropic")
    assert len(named) >= 5
    assert [one for one in named if not any((place / one).exists() for place in places)] == []


def test_every_link_of_a_document_leads_somewhere():
    dead: list[str] = []
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
        links = re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", page.read_text())
        missing = [link for link in links if not (page.parent / link).exists()]
        dead += [f"{page.relative_to(ROOT)}: {link}" for link in missing]
    assert dead == []


def test_there_is_a_page_for_every_provider_and_no_other():
    pages = {path.stem for path in wires.OUT.glob("*.md")}
    assert pages == {"README", *PROVIDERS}


def test_every_wire_type_is_on_the_page_of_its_provider():
    for name, row in PROVIDERS.items():
        page = (wires.OUT / f"{name}.md").read_text()
        assert [item.type for item in row.items if f"| `{item.type}` |" not in page] == []


def test_every_pair_of_verb_and_state_was_tried():
    assert set(states.edges()) == set(TABLE)


def test_nothing_leads_out_of_over_and_everything_leads_there():
    leads = states.edges()
    assert all(set(targets) == {State.OVER} for (_, s), targets in leads.items() if s is State.OVER)
    assert {s for (_, s), targets in leads.items() if State.OVER in targets} == set(State)


def test_a_cell_of_a_table_is_one_line_without_bars():
    assert cell("a | b\n c") == "a \\| b c"


def test_a_document_is_written_once_and_then_up_to_date(tmp_path, capsys):
    made = {tmp_path / "docs" / "a.md": "one\n"}
    assert main_of("t", "d", lambda: made, ["--check"]) == 1
    assert main_of("t", "d", lambda: made, []) == 0
    assert main_of("t", "d", lambda: made, ["--check"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said == ["docs/a.md is not up to date", "docs/a.md written", "up to date"]
