"""A store on a disk, as arguments for the processes that are killed."""

from __future__ import annotations

import os
import tempfile

import pytest

from tests.history.stores import ON_DISK, postgres_schema

# A killed process loses nothing that it gave to the system, on a disk or not; memory is quicker.
MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


@pytest.fixture(params=ON_DISK)
def place(request):
    """Arguments that name a store of its own."""
    if request.param == "sqlite":
        with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
            yield ["--store", "sqlite", "--at", os.path.join(folder, "h.db")]
    else:
        with postgres_schema() as schema:
            yield ["--store", "postgres", "--at", schema]
