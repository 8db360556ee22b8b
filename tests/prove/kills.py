"""Processes killed in the midst of what they store: nothing acknowledged is lost, nothing is half there."""

from __future__ import annotations

import os
from importlib import import_module
from importlib.util import find_spec

from tests.prove.share import Report, Share

__all__ = ["kills"]

# A store, and what names a server of it.
STORES = {"sqlite": "", "postgres": "STREAMNORM_POSTGRES", "redis": "STREAMNORM_REDIS"}
KILLS_PER_SECOND = 2.0


def kills(share: Share) -> Report:
    stores = [store for store, server in STORES.items() if not server or os.environ.get(server)]
    absent = ", ".join(f"{store} ({STORES[store]})" for store in STORES if store not in stores)
    if find_spec("tests.kill") is None:
        return Report("nothing", [], "kill loops: tests/kill is not there")
    run = import_module("tests.kill").run
    each = max(2, int(share.seconds * KILLS_PER_SECOND / len(stores)))
    found: list[str] = []
    for store in stores:

        def tell(what: str, store: str = store) -> None:
            share.told(f"{store}: {what}")

        found += [f"{store}: {problem}" for problem in run(store, each, tell)]
    told = ", ".join(f"{each} of {store}" for store in stores)
    return Report(f"processes killed while they store: {told}", found, absent)
