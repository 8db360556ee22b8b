"""The tool that removes guards one by one: which it finds, and that each is gone in its mutant."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest

from tools.mutate.guards import Mutant, Scope, mutants_of
from tools.mutate.helpers import Helpers
from tools.mutate.judged import Judged
from tools.mutate.passed import Passed
from tools.mutate.targets import EQUIVALENT, TARGETS
from tools.mutate.trial import Outcome, Run

SOURCE = """
REASONS = {"stop": 1, "length": 2}
WORDS = {"other"}

class Calls:
    def close(self, call, held):
        if call.taint and (text := held):
            self.note("said", text)
            self.taint(call, "why")
        if held:
            self.scribe.note("nothing else")
        if len(held) > 3:
            raise ValueError
        return [c for c in held if c]

def other(a):
    return a == 1
"""


def test_conditions_operands_boundaries_statements_and_rows_are_changed_one_by_one():
    assert [(m.function, m.change) for m in mutants_of("a.py", SOURCE, Scope())] == [
        ("Calls.close", "never: call.taint and (text := held)"),
        ("Calls.close", "always: call.taint and (text := held)"),
        ("Calls.close", "without: and call.taint"),
        ("Calls.close", "without: and (text := held)"),
        ("Calls.close", "without: self.taint(call, 'why')"),
        ("Calls.close", "never: len(held) > 3"),
        ("Calls.close", "always: len(held) > 3"),
        ("Calls.close", "boundary: len(held) > 3"),
        ("Calls.close", "never: c"),
        ("Calls.close", "always: c"),
        ("other", "never: a == 1"),
        ("other", "always: a == 1"),
        ("", "without: REASONS 'stop'"),
        ("", "without: REASONS 'length'"),
    ]


CLOSE = """
class Calls:
    def size(self, call, held):
        self.scribe.note("said", 1)
        self.count(call, held, more=True)
        self.held += max(held, 1) - call.size
        held = self.news(call, *held)
        del self.open[call]
"""


def test_looked_at_closely_every_statement_argument_and_number_is_changed_too():
    changes = [m.change for m in mutants_of("a.py", CLOSE, Scope(closely=True))]
    assert sorted(changes) == [
        "other: 1 in max(held, 1)",
        "other: True in more=True",
        "other: max in max(held, 1)",
        "other: max(held, 1) - call.size",
        "other: self.held += max(held, 1) - call.size",
        "without: 1 of max",
        "without: del self.open[call]",
        "without: more=True of self.count",
        "without: self.count(call, held, more=True)",
        "without: self.held += max(held, 1) - call.size",
    ]
    assert mutants_of("a.py", CLOSE, Scope()) == []


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ("other: 1 in max(held, 1)", "max(held, 2) -"),
        ("other: True in more=True", "more=False"),
        ("other: max in max(held, 1)", "min(held, 1)"),
        ("other: max(held, 1) - call.size", "max(held, 1) + call.size"),
        ("other: self.held += max(held, 1) - call.size", "self.held -= max"),
        ("without: 1 of max", "max(held) -"),
        ("without: more=True of self.count", "self.count(call, held)"),
    ],
)
def test_a_close_look_changes_one_thing(change: str, code: str):
    mutant = next(m for m in mutants_of("a.py", CLOSE, Scope(closely=True)) if m.change == change)
    mutant.edit()
    assert code in ast.unparse(mutant.tree)


def test_a_file_can_be_narrowed_to_the_functions_that_speak_of_a_word():
    found = mutants_of("a.py", SOURCE, Scope.about("taint"))
    assert {m.function for m in found if m.function} == {"Calls.close"}


def test_a_mutant_still_asks_the_condition_whose_answer_it_changes():
    mutant = mutants_of("a.py", SOURCE, Scope())[0]
    mutant.edit()
    assert "if (call.taint and (text := held)) and False:" in ast.unparse(mutant.tree)


def test_a_statement_that_is_removed_is_still_there_so_that_its_names_stay_what_they_are():
    mutant = next(m for m in mutants_of("a.py", SOURCE, Scope()) if "self.taint" in m.change)
    mutant.edit()
    assert "if False:\n                self.taint(call, 'why')" in ast.unparse(mutant.tree)


def test_what_is_left_to_others_by_raising_is_no_guard():
    source = "def usage(self):\n    'Counts.'\n    raise NotImplementedError\n"
    assert mutants_of("a.py", source, Scope()) == []


def test_a_scope_has_functions_by_their_own_name_too():
    found = mutants_of("a.py", SOURCE, Scope.about("other"))
    assert {m.function for m in found if m.function} == {"other"}


@pytest.mark.parametrize("file", TARGETS)
def test_every_target_has_guards_and_every_excuse_names_one(file: str):
    found = {m.key for m in mutants_of(file, Path(file).read_text(), TARGETS[file].scope)}
    assert found
    assert {key for key in EQUIVALENT if key[0] == file} <= found


def test_every_excuse_is_about_a_target_and_has_a_reason():
    assert all(key[0] in TARGETS and reason for key, reason in EQUIVALENT.items())


# --- what was judged before -----------------------------------------------------------------------

ASKED = ("tests/core", "tests/test_more.py")
CAUGHT_BY = "tests/core/test_a.py::test_one[a::b]"


@pytest.fixture
def house(tmp_path: Path) -> Path:
    """A library of one file and three files of tests."""
    for file in ("streamnorm/a.py", "streamnorm/b.py", "tests/core/test_a.py", "tests/core/test_b.py",
                 "tests/test_more.py", "tests/conftest.py", "tests/kit.py", "tests/core/desk.py",
                 "tests/proof/__init__.py", "tests/proof/talk.py", "tests/take.bin"):  # fmt: skip
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text("as it is")
    (tmp_path / "tests/core/test_a.py").write_text("from tests.core.desk import (\n    Desk,\n)\n")
    (tmp_path / "tests/core/desk.py").write_text("from tests import proof")
    return tmp_path


def _judge(house: Path, by: str) -> Mutant:
    mutant = mutants_of("streamnorm/a.py", SOURCE, Scope())[0]
    judged = Judged(house)
    judged.keep(Outcome(mutant, by, 7), ASKED)
    judged.save()
    return mutant


@pytest.mark.parametrize("by", [CAUGHT_BY, ""])
def test_a_verdict_counts_in_the_next_run_if_nothing_has_changed(house: Path, by: str):
    mutant = _judge(house, by)
    assert Judged(house).outcome(mutant, ASKED) == Outcome(mutant, by, 7)
    assert Judged(house, forget=True).outcome(mutant, ASKED) is None


@pytest.mark.parametrize(
    ("by", "changed", "counts"),
    [
        (CAUGHT_BY, "streamnorm/a.py", False),
        (CAUGHT_BY, "streamnorm/b.py", True),
        (CAUGHT_BY, "tests/conftest.py", False),
        (CAUGHT_BY, "tests/core/test_a.py", False),
        (CAUGHT_BY, "tests/core/test_b.py", True),
        (CAUGHT_BY, "tests/core/desk.py", False),
        (CAUGHT_BY, "tests/proof/talk.py", False),
        (CAUGHT_BY, "tests/take.bin", False),
        (CAUGHT_BY, "tests/kit.py", True),
        ("", "tests/proof/talk.py", False),
        ("", "tests/kit.py", True),
        ("", "streamnorm/a.py", False),
        ("", "tests/core/test_b.py", False),
        ("", "tests/test_more.py", False),
        ("(it did not come to an end)", "tests/core/test_b.py", False),
    ],
)
def test_a_verdict_counts_as_long_as_what_it_came_from_stays(
    house: Path, by: str, changed: str, counts: bool
):
    mutant = _judge(house, by)
    (house / changed).write_text("changed")
    assert (Judged(house).outcome(mutant, ASKED) is not None) is counts
    assert Judged(house).caught_by(mutant) == by


def test_what_is_doubted_is_judged_again_and_first_by_the_test_that_caught_it(house: Path):
    mutant = _judge(house, CAUGHT_BY)
    Judged(house).doubt([mutant])
    assert Judged(house).outcome(mutant, ASKED) is None
    assert Judged(house).caught_by(mutant) == CAUGHT_BY


@pytest.mark.parametrize(
    "line",
    [
        "from tests.core.desk import Desk",
        "    from tests.core import desk",
        "from .desk import Desk",
        "from . import desk as d",
        "from ..core.desk import (\n    A,\n)",
        "import tests.core.desk",
    ],
)
def test_a_file_of_tests_brings_in_what_it_imports(tmp_path: Path, line: str):
    (tmp_path / "tests/core").mkdir(parents=True)
    (tmp_path / "tests/core/test_a.py").write_text(f"import os\n{line}\n")
    (tmp_path / "tests/core/desk.py").write_text("")
    files = {"tests/core/test_a.py", "tests/core/desk.py"}
    assert Helpers(tmp_path, files).of("tests/core/test_a.py") == files
    assert Helpers(tmp_path, files).of("tests/core/desk.py") == {"tests/core/desk.py"}


@pytest.mark.parametrize(
    "changed", ["tests/core/test_a.py", "tests/core/desk.py", "streamnorm/b.py"]
)
def test_the_lines_that_a_test_passes_are_known_until_it_or_the_library_changes(
    house: Path, changed: str
):
    judged = Judged(house)
    judged.keep_runs({CAUGHT_BY: Run(False, 0.5, {"a.py": 0b110})})
    judged.keep_runs({CAUGHT_BY: Run(False, 0.5, {"b.py": 0})})
    judged.save_runs()
    known = Judged(house).run(CAUGHT_BY, "a.py")
    assert known is not None
    assert known.lines == {"a.py": 0b110, "b.py": 0}
    assert Judged(house).run(CAUGHT_BY, "c.py") is None
    (house / changed).write_text("changed")
    assert Judged(house).run(CAUGHT_BY, "a.py") is None


# --- lines ------------------------------------------------------------------------------------------

LINES = """
def asked(number):
    "Says it."
    if (
        number > 1
        and number < 9
    ):
        return [
            n for n in range(number)
        ]
    else:
        def inside():
            return number

        match number:
            case 0:
                return inside()
    return None
"""


@pytest.mark.parametrize(
    ("number", "lines"),
    [
        (2, {3, 4, 5, 6, 7, 8, 9, 10}),
        (0, {3, 4, 5, 6, 7, 12, 13, 15, 17}),
        (9, {3, 4, 5, 6, 7, 12, 15, 18}),
    ],
)
def test_the_lines_that_a_test_passes_are_told_once(tmp_path: Path, number: int, lines: set[int]):
    file = tmp_path / "sample.py"
    file.write_text(LINES)
    module: dict[str, Any] = {}
    exec(compile(LINES, file, "exec"), module)
    passed = Passed(str(file))
    passed.mark({(str(file), "asked", 2): [module["asked"]]})
    module["asked"](number)
    bits = passed.lines()
    assert {line for line in range(1, 30) if bits >> line & 1} == lines
    assert passed.lines() == 0
