"""A Ray cluster of two machines on this one: streamnorm table runs on it, and processes of it are killed.

    python -m tests.table.cluster_kill FOLDER
    python -m tests.table.cluster_kill FOLDER RECIPE ...

FOLDER/z-pipe.sse is a named pipe. Of two runs over FOLDER/in and it, in the first one process is killed that
reads it (once.parquet), in the second each (always.parquet). With recipes FOLDER/recipe_RECIPE.py runs on the
cluster instead, for each of these, and makes FOLDER/tables of FOLDER/logs, which is called tables-RECIPE then.

Rule: what happened is printed as one line of JSON. It is a program of its own, as Ray leaves threads behind.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
ANSWER = b"data: [DONE]\n\n"


def readers_of(path: Path) -> list[int]:
    """The processes that have it open, without this one."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            with suppress(OSError):
                if any(os.path.samefile(fd, path) for fd in (entry / "fd").iterdir()):
                    found.append(int(entry.name))
    return found


def kill(path: Path) -> int:
    """Whoever reads the pipe."""
    end = os.open(path, os.O_WRONLY)
    (reader,) = readers_of(path)
    process = os.pidfd_open(reader)
    os.kill(reader, signal.SIGKILL)
    assert select.select([process], [], [], 60)[0]
    os.close(process)
    os.close(end)
    return reader


def kill_one(path: Path, killed: list[int]) -> None:
    """The first reader; the next one is answered."""
    killed.append(kill(path))
    end = os.open(path, os.O_WRONLY)
    os.write(end, ANSWER)
    os.close(end)


def kill_all(path: Path, killed: list[int]) -> None:
    """Every reader."""
    while True:
        killed.append(kill(path))


def run(folder: Path, out: str, address: str, killer: Callable[[Path, list[int]], None]) -> dict:
    from streamnorm.cli import main as streamnorm

    killed: list[int] = []
    pipe = folder / "z-pipe.sse"
    threading.Thread(target=killer, args=(pipe, killed), daemon=True).start()
    asked = ["table", "in", "z-pipe.sse", "-o", out, "--engine", "ray", "--ray-address", address]
    return {"status": streamnorm(asked), "killed": len(killed)}


def main(folder: Path, recipes: list[str]) -> None:
    import ray
    from ray.cluster_utils import Cluster

    os.chdir(folder)
    cluster = Cluster(
        initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False}
    )
    cluster.add_node(num_cpus=1)
    told = []
    if not recipes:
        told.append(run(folder, "once.parquet", cluster.address, kill_one))
        told.append(run(folder, "always.parquet", cluster.address, kill_all))
    os.environ["RAY_ADDRESS"] = cluster.address
    for recipe in recipes:
        exec(Path(f"recipe_{recipe}.py").read_text(), {"__name__": "__main__"})
        os.rename("tables", f"tables-{recipe}")
    ray.shutdown()
    cluster.shutdown()
    print(json.dumps(told))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
