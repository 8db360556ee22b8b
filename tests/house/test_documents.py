"""The documents that are made from tables say what the tables say."""

from __future__ import annotations

import re
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from streamnorm.core.calls import TABLE, State
from streamnorm.providers import PROGRAMS, PROVIDERS
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


# --- names of files and modules -------------------------------------------------------------------

PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").glob("*/*.md")]
# Where a path begins that a page names: what it is about is left out.
PLACES = (
    ROOT,
    ROOT / "tests",
    ROOT / "streamnorm",
    ROOT / "streamnorm" / "providers" / "anthropic",
)
A_FILE = re.compile(
    r"(?<![\w/.<>~-])((?:[\w.-]+/)*[\w-]+\.(?:py|md|toml|yaml)|recordings/[\w/-]+\.sse)\b(?![\w/])"
    r"|`((?:[\w.-]+/)+)`"
)
A_MODULE = re.compile(r"(?<![\w/.-])streamnorm(?:\.\w+)+")
# Names that begin as our modules do and are none: on the wire of a page, in telemetry; and one that is gone.
NO_MODULES = {
    "streamnorm.tool_progress", "streamnorm.citation", "streamnorm.media", "streamnorm.tool_calls",
    "streamnorm.testing.WIRES",
}  # fmt: skip


def stale(page: Path, text: str) -> list[str]:
    """The files and modules that a page names and that are not there."""
    files = [a or b for a, b in A_FILE.findall(text)]
    places = (*PLACES, page.parent)
    missing = [one for one in files if not any((place / one).exists() for place in places)]
    modules = set(A_MODULE.findall(text)) - NO_MODULES
    return missing + sorted(name for name in modules if not is_there(name))


def is_there(name: str) -> bool:
    """Is it a module of ours, or something in one?"""
    found: Any = import_module("streamnorm")
    for at, part in enumerate(name.split(".")[1:], 2):
        with suppress(ImportError):
            import_module(".".join(name.split(".")[:at]))
        if not hasattr(found, part):
            return False
        found = getattr(found, part)
    return True


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_file_or_module_that_is_named_is_there(page):
    assert stale(page, page.read_text()) == []


@pytest.mark.parametrize(
    "name",
    ["`wires.py`", "see streamnorm/calls.py:", "`serve/`", "`streamnorm.recorder`",
     "`streamnorm.takes.recorder.Tape`", "recordings/acme/nothing.sse", "tests/core/test_no.py -k x"],
)  # fmt: skip
def test_a_name_that_is_gone_is_found(name):
    assert stale(ROOT / "README.md", name) != []


@pytest.mark.parametrize(
    "name",
    ["`core/calls.py`", "`ui/`", "streamnorm/wire.py", "`streamnorm.testing.script`", "docs/ui.md",
     "`streamnorm.core.calls.TABLE`", "`parser.py`", "recordings/anthropic/parallel_calls.sse"],
)  # fmt: skip
def test_a_name_that_is_there_is_not(name):
    assert stale(ROOT / "README.md", name) == []


def test_every_link_of_a_document_leads_somewhere():
    dead: list[str] = []
    for page in PAGES:
        links = re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", page.read_text())
        missing = [link for link in links if not (page.parent / link).exists()]
        dead += [f"{page.relative_to(ROOT)}: {link}" for link in missing]
    assert dead == []


def test_there_is_a_page_for_every_provider_and_no_other():
    pages = {path.stem for path in wires.OUT.glob("*.md")}
    assert pages == {"README", *PROVIDERS, *PROGRAMS}


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
