"""Each promise can be sabotaged: its patches fit the code as it is, and a test is there to turn red.

Whether one does is asked here for a few of them; ``make sabotage`` asks for all.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import ALL, ROOT
from tests.promises.rows import PROMISES
from tests.sabotage.rows import PATCHES, Patch
from tests.sabotage.run import asked_of, copy_of_the_tree, main, patched, tried

NODES = {promise.id: promise.nodes for promise in PROMISES}
over_patches = pytest.mark.parametrize("patch", PATCHES, ids=lambda patch: patch.name)


def test_every_promise_has_a_patch():
    assert {patch.promise for patch in PATCHES} == {promise.id for promise in PROMISES}


def test_no_two_patches_have_one_name():
    assert len({patch.name for patch in PATCHES}) == len(PATCHES)


@over_patches
def test_a_patch_changes_its_file_and_leaves_it_python(patch: Patch):
    text = (ROOT / patch.file).read_text()
    changed = patched(text, patch)
    assert changed != text
    compile(changed, patch.file, "exec")


@over_patches
def test_a_patch_asks_tests_of_its_promise(patch: Patch):
    assert set(asked_of(patch)) <= set(NODES[patch.promise])


# --- the tool ---------------------------------------------------------------------------------------

PATCH = Patch("A1", "one", "streamnorm/a.py", "x = 1", "x = 2")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "streamnorm").mkdir()
    (tmp_path / "streamnorm/a.py").write_text("x = 1\ny = 1\n")
    return tmp_path


@pytest.mark.parametrize(
    ("code", "told", "by", "why"),
    [
        (1, "..F\nFAILED tests/a.py::test_one[a b - c] - assert\n1 failed", "tests/a.py::test_one", ""),
        (1, "ERROR tests/a.py::test_two - Failed: not done after 20 s", "tests/a.py::test_two", ""),
        (0, "1 passed", "", "all tests pass"),
        (None, "", "", "not done after 300 s"),
        (4, "no such file", "", "no test was run (pytest says 4): no such file"),
        (2, "ERROR tests/a.py - SyntaxError", "", "no test was run (pytest says 2): ERROR tests/a.py - "
         "SyntaxError"),
    ],
)  # fmt: skip
def test_only_a_test_that_fails_is_red(tree: Path, code: int | None, told: str, by: str, why: str):
    def run(folder: Path, nodes: list[str]) -> tuple[int | None, str]:
        assert (folder / "streamnorm/a.py").read_text() == "x = 2\ny = 1\n"
        assert nodes == NODES["A1"]
        return code, told

    verdict = tried(tree, PATCH, run)  # type: ignore[arg-type]
    assert (verdict.by, verdict.why) == (by, why)
    assert (tree / "streamnorm/a.py").read_text() == "x = 1\ny = 1\n"


@pytest.mark.parametrize(("text", "count"), [("x = 1\nx = 1\n", 2), ("z = 1\n", 0)])
def test_a_text_that_does_not_stand_there_once_is_told(text: str, count: int):
    with pytest.raises(ValueError, match=f"A1 without one: its text stands {count} times"):
        patched(text, PATCH)


def test_the_patches_can_be_listed(capsys: pytest.CaptureFixture[str]):
    assert main(["--list", "C5"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said == ["C5 without the system's generator", "1 patches"]
    assert main(["--list", "no such patch"]) == 2


# Those that would hang, were it not for the time limit of each test, and some that are quick.
SAMPLE = {"F4", "F5", "H2", "H3", "H4", "B4", "I2"} if ALL else {"C5"}


@pytest.mark.parametrize(
    "patch", [p for p in PATCHES if p.promise in SAMPLE], ids=lambda patch: patch.name
)
def test_without_its_protection_a_test_turns_red(patch: Patch):
    with copy_of_the_tree() as tree:
        verdict = tried(tree, patch)
    assert verdict.by in asked_of(patch), verdict.why
