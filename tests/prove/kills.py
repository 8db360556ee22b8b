"""Processes killed in the midst of what they store: nothing acknowledged is lost, nothing is half there."""

from __future__ import annotations

import time

from tests.kill import STORES, run, wants
from tests.prove.share import Report, Share

__all__ = ["kills", "reachable"]

FEW = 5  # kills, to see how long they take


def reachable() -> tuple[list[str], str]:
    """The stores that can be tried, and those that cannot, with what names their servers."""
    stores = [store for store in STORES if wants(store) is None]
    return stores, ", ".join(f"{s} ({wants(s)})" for s in STORES if s not in stores)


def kills(share: Share) -> Report:
    """As many as there is time for, of each store whose server is named."""
    stores, absent = reachable()
    found: list[str] = []
    done: dict[str, int] = {}
    for number, store in enumerate(stores):

        def tell(what: str) -> None:
            share.told(what)

        began = time.monotonic()
        found += run(store, FEW, tell)
        each = (time.monotonic() - began) / FEW
        left = share.left / (len(stores) - number)
        done[store] = FEW + (more := int(left / max(each, 0.01)))
        if more > 0:
            found += run(store, more, tell, seed=1)
    told = ", ".join(f"{count} of {store}" for store, count in done.items())
    return Report(f"processes killed while they store: {told}", found, absent)
