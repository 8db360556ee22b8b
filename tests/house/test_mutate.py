"""The tool that removes guards one by one: which it finds, and that each is gone in its mutant."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tools.mutate.guards import Scope, mutants_of
from tools.mutate.targets import EQUIVALENT, TARGETS

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
