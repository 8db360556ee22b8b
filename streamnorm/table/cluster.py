"""Batches come in; the rows of each are made on a Ray cluster, and written here as its part.

Rule: as on one machine, whatever happens to the others. Ray runs again what a process or a machine took
with it, and of what comes twice one is taken; a batch over which Ray gives up is read again file by file,
and a file that fails alone becomes a row that says so. The machines must have streamnorm, and reach the
files by the same names.
"""

from __future__ import annotations

import logging
import os
import pickle
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ..captures import Left
from ..captures.inputs import Input
from ..errors import UsageError, needs
from .arrow import rows, schema
from .batches import fetched
from .parts import Batch, write_part

if TYPE_CHECKING:
    import pyarrow

    from .crew import Work

__all__ = ["on_cluster"]

Files = tuple[Input | Left, ...]
# Beside the rows: which unit they are of, the number of each row in it, and how many it has.
UNIT, AT, OF = "#unit", "#at", "#of"
RETRIES = 2
BLOCKS = 10_000  # tasks at the most: each has one unit, if there are no more


def on_cluster(
    work: Work, batches: list[Batch], address: str | None, say: Callable[[str], None]
) -> Iterator[Batch]:
    """Each batch, when its part is there."""
    needs("ray.data", "--engine ray", extra="ray")
    if not batches:
        return
    with _connected(address):
        missing = {batch.number: batch for batch in batches}
        for number, table in _made([(b.number, b.files) for b in batches], work.provider):
            batch = missing.pop(number)
            write_part(work.folder / batch.part, table)
            yield batch
        for batch in missing.values():
            say(f"a batch of {len(batch.files)} files failed; each is read again, alone")
            write_part(work.folder / batch.part, _one_by_one(batch, work.provider))
            yield batch


def _one_by_one(batch: Batch, provider: str | None) -> pyarrow.Table:
    import pyarrow as pa

    units = [(at, (file,)) for at, file in enumerate(batch.files)]
    found = dict(_made(units, provider))
    lost = {
        at: rows([Left(file.name, "the process that read it failed")])
        for at, file in enumerate(batch.files)
        if at not in found
    }
    return pa.concat_tables([table for _, table in sorted({**found, **lost}.items())])


# --- on the cluster -------------------------------------------------------------------------------


def _made(
    units: Sequence[tuple[int, Files]], provider: str | None
) -> Iterator[tuple[int, pyarrow.Table]]:
    """The rows of each unit, in any order, as they come; a unit that failed is not among them."""
    import ray

    items = [{"unit": number, "files": _packed(files)} for number, files in units]
    data = ray.data.from_items(items, override_num_blocks=min(len(items), BLOCKS))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="`ray_remote_args")  # nothing else says it yet
        made = data.map_batches(
            _rows_of,
            batch_size=1,
            batch_format="numpy",
            fn_kwargs={"provider": provider},
            # otherwise a file over which processes die is tried for ever
            ray_remote_args_fn=lambda: {"max_retries": RETRIES},
        )
    waiting: dict[int, list[pyarrow.Table]] = {}
    done: set[int] = set()
    for block in made.iter_batches(batch_size=None, batch_format="pyarrow"):
        for unit, part in _by_unit(block):
            if unit in done:
                continue
            held = waiting.setdefault(unit, [])
            held.append(part)
            if sum(one.num_rows for one in held) == part[OF][0].as_py():
                done.add(unit)
                yield unit, _whole(waiting.pop(unit))


def _packed(files: Files) -> bytes:
    return pickle.dumps([one.anywhere() if isinstance(one, Input) else one for one in files])


def _rows_of(batch: dict[str, Any], provider: str | None) -> pyarrow.Table:
    """What a machine of the cluster does."""
    import pyarrow as pa

    tables = []
    for unit, files in zip(batch["unit"], batch["files"], strict=True):
        table = rows(fetched(pickle.loads(files)), provider=provider)
        count = table.num_rows
        beside = {UNIT: [int(unit)] * count, AT: list(range(count)), OF: [count] * count}
        for name, values in beside.items():
            table = table.append_column(name, pa.array(values, pa.int64()))
        tables.append(table)
    return pa.concat_tables(tables)


def _by_unit(block: pyarrow.Table) -> Iterator[tuple[int, pyarrow.Table]]:
    import pyarrow.compute as pc

    for unit in pc.unique(block[UNIT]).to_pylist():
        yield unit, block.filter(pc.equal(block[UNIT], unit))


def _whole(parts: list[pyarrow.Table]) -> pyarrow.Table:
    import pyarrow as pa

    table = pa.concat_tables(parts).sort_by(AT)
    return table.select(schema().names).cast(schema())


@contextmanager
def _connected(address: str | None) -> Iterator[None]:
    """To the cluster; one that is not connected to yet is left again."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # before it is imported: nobody is told
    import ray

    ours = not ray.is_initialized()
    if ours:
        try:
            ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
        except (ConnectionError, RuntimeError, ValueError) as error:
            raise UsageError(f"no Ray cluster at {address or 'this machine'}: {error}") from error
    context = ray.data.DataContext.get_current()
    before = context.max_errored_blocks, context.enable_progress_bars
    context.max_errored_blocks, context.enable_progress_bars = -1, False
    logging.getLogger("ray.data").setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        context.max_errored_blocks, context.enable_progress_bars = before
        if ours:
            ray.shutdown()
