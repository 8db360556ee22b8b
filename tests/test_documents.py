"""The documents that are made from tables say what the tables say."""

from __future__ import annotations

import pytest

from streamnorm.calls import TABLE, State
from streamnorm.providers import PROVIDERS
from tools import quirks, states, wires
from tools.documents import cell, main_of


@pytest.mark.parametrize("made", [wires.made, states.made, lambda: {quirks.OUT: quirks.written()}],
                         ids=["wires", "states", "quirks"])  # fmt: skip
def test_documents_are_up_to_date(made):
    for path, text in made().items():
        assert path.read_text() == text, f"run the tool that writes {path.name}"


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
