"""The source documents, where they are reachable."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.seeds.claims import folder, text_of


@pytest.fixture
def seed() -> Callable[[str], str]:
    """The words of a source document."""
    if folder() is None:
        pytest.skip("STREAMNORM_SEEDS names no folder of source documents")
    return text_of
