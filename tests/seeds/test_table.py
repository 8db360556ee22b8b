"""The table of the source documents is complete: no claim without a row, no row without its test."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT
from tests.seeds.claims import SEEDS, Claim, claims_of, listed
from tests.seeds.rows import BESIDE, ROWS, Row

HERE = Path(__file__).parent
over_seeds = pytest.mark.parametrize("seed_name", SEEDS)


def rows_of(seed: str) -> list[Row]:
    return [row for row in ROWS if row.seed == seed]


# --- claims and rows ------------------------------------------------------------------------------


@over_seeds
def test_the_claims_that_are_listed_are_those_of_the_document(seed_name: str, seed: Any):
    found = [claim._replace(text="") for claim in claims_of(seed_name, seed(seed_name))]
    assert listed(seed_name) == found, "python -m tools.seeds --claims lists them anew"


@over_seeds
def test_every_claim_has_a_row(seed_name: str):
    rows = rows_of(seed_name)
    assert len(listed(seed_name)) > 20
    lost = [c.place for c in listed(seed_name) if not any(row.covers(c) for row in rows)]
    assert lost == []


@over_seeds
def test_every_row_has_a_claim(seed_name: str):
    claims = listed(seed_name)
    assert [r.places for r in rows_of(seed_name) if not any(map(r.covers, claims))] == []


# Headings that have a binding word in them.
HEADINGS = {("001", "46")}


@over_seeds
def test_a_claim_that_binds_has_a_test(seed_name: str):
    tested = [row for row in rows_of(seed_name) if row.tests]
    binding = [c for c in listed(seed_name) if c.binds and (seed_name, c.place) not in HEADINGS]
    assert [c.place for c in binding if not any(row.covers(c) for row in tested)] == []


def test_a_row_has_a_test_or_says_why_there_is_nothing_to_test():
    assert [r.places for r in ROWS if bool(r.tests) == r.says.startswith(BESIDE)] == []
    assert [r.places for r in ROWS if bool(r.tests) != bool(r.where)] == []


def test_every_type_of_000_every_cell_of_001_and_every_criterion_of_004_has_a_row_of_its_own():
    counted = {seed: sum(1 for row in rows_of(seed) if row.tests) for seed in SEEDS}
    assert counted["000"] > 58
    assert counted["001"] > 72 + 24 + 12 + 12 + 45
    assert counted["004"] == 12


def test_a_place_is_a_line_a_range_of_lines_or_a_part_of_a_line():
    row = Row("000", "4 12.2 20-22", "")
    places = ("4", "4.3", "12.1", "12.2", "19", "20", "21.5", "22", "23")
    covered = [place for place in places if row.covers(Claim(place, "", False))]
    assert covered == ["4", "4.3", "12.2", "20", "21.5", "22"]


# --- rows and tests -------------------------------------------------------------------------------


def named() -> set[str]:
    return {test for row in ROWS for test in row.tests.split()}


def functions(path: Path) -> set[str]:
    """The tests of a file, by the names of their functions."""
    return {
        f"{path.relative_to(ROOT)}::{node.name}"
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.name.startswith("test_")
    }


def collected(files: Iterable[str]) -> set[str]:
    """The tests of these files, as pytest finds them: with their parameters."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider",
         *sorted(files)],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return {line for line in done.stdout.splitlines() if "::" in line}


def test_every_test_that_a_row_names_exists():
    files = {test.partition("::")[0] for test in named()}
    found = {name for file in files for name in functions(ROOT / file)}
    assert sorted({test.partition("[")[0] for test in named()} - found) == []


def test_every_case_of_a_test_that_a_row_names_exists():
    cases = {test for test in named() if "[" in test}
    assert len(cases) > 300
    assert sorted(cases - collected({case.partition("::")[0] for case in cases})) == []


def test_every_test_here_has_a_row():
    here = {name for path in HERE.glob("test_seed_*.py") for name in functions(path)}
    assert len(here) > 80
    assert sorted(here - {test.partition("[")[0] for test in named()}) == []


def test_every_place_of_ours_that_a_row_names_is_there():
    places = (ROOT, ROOT / "streamnorm")
    ours = {
        place for row in ROWS for place in row.where.split(", ") if re.search(r"\.(py|md)$", place)
    }
    lost = [one for one in ours if not any(list(place.glob(one)) for place in places)]
    assert sorted(lost) == []


# --- how claims are read --------------------------------------------------------------------------


def test_a_document_is_read_by_sentences_rows_cells_and_shapes():
    text = "# Title\n\nOne. Two must\nbe said.\n- Do: this\n\n| a | b |\n|---|---|\n| 1 | 2 |\n```json\n{}\n```\n"
    read = [(claim.place, claim.binds, claim.text) for claim in claims_of("001", text)]
    assert read == [
        ("1", False, "# Title"),
        ("3.1", False, "One."),
        ("3.2", True, "Two must be said."),
        ("5", True, "Do: this"),
        ("7.1", False, "a"),
        ("7.2", False, "b"),
        ("9.1", False, "1"),
        ("9.2", False, "2"),
        ("10", False, "```json {}"),
    ]
    rows = [claim.text for claim in claims_of("000", text) if "|" in claim.text]
    assert rows == ["a | b", "1 | 2"]


def test_the_rows_of_a_table_that_lost_its_bars_are_told_apart():
    text = "x |\ny |\n|---|---|\n1 |\none |\n2 |\ntwo |\n"
    assert [claim.text for claim in claims_of("003", text)][-2:] == ["1 | one", "2 | two"]
