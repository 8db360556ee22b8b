"""Every stream that damage once found: the engine tells nothing that the plain reader does not."""

from __future__ import annotations

import pytest

from tests.proof.finds import FINDS, body_of
from tests.proof.run import guarded


@pytest.mark.parametrize("name", FINDS)
def test_nothing_is_told_that_the_plain_reader_does_not_find(name: str) -> None:
    wire, _ = FINDS[name]
    assert guarded(wire, body_of(FINDS[name]), []) == []
