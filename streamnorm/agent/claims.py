"""Runs that run calls come in; whether a stored claim is one of a run that lives goes out.

Rule: a claim is believed while it can be true, and no longer. One of this process is true while its run
lives. One of another process is not if that process is known to be gone (it was on this machine), and
not after its time, which is that of the handlers and something to spare. Whatever is believed, a call
that was claimed is not run again: the question is only whether its result is waited for.
"""

from __future__ import annotations

import os
import socket
import sys
import time
import uuid
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from weakref import WeakValueDictionary

from ..conversation import Conversation
from ..history.settled import Claim

__all__ = ["Claimant", "is_held", "is_live"]

LEASE = 600.0  # seconds, where handlers have no time limit
SPARE = 60.0  # seconds: to store a large result, and for clocks that differ


class Claimant:
    """A run that may claim calls; it counts as running them from ``begin`` until ``end``."""

    def __init__(self) -> None:
        self._key = uuid.uuid4().hex
        self._held: list[tuple[int, str]] = []

    def begin(self, timeout: float | None, rounds: int) -> Claim:
        """A claim for handlers of that time limit, so many of them one after the other."""
        _living[self._key] = self
        lease = LEASE if timeout is None else timeout * rounds + SPARE
        return Claim(self._key, time.time() + lease, _machine(), os.getpid())

    def hold(self, conversation: Conversation, ids: Iterable[str]) -> None:
        """Without a history: these calls of this very object are being run."""
        self._held = [(id(conversation), call) for call in ids]
        _holders.update(dict.fromkeys(self._held, self))

    def end(self) -> None:
        """Nothing of it is running any more."""
        _living.pop(self._key, None)
        for held in self._held:
            _holders.pop(held, None)
        self._held = []


_living: WeakValueDictionary[str, Claimant] = WeakValueDictionary()
_holders: WeakValueDictionary[tuple[int, str], Claimant] = WeakValueDictionary()


def is_held(conversation: Conversation, call: str) -> bool:
    """Is a run of this process at this call of this very object?"""
    return (id(conversation), call) in _holders


def is_live(claim: Claim) -> bool:
    """May the call of this claim still be running?"""
    is_here = claim.machine == _machine()
    if is_here and claim.process == os.getpid():
        return claim.key in _living
    return time.time() < claim.until and not (is_here and _is_gone(claim.process))


@cache
def _machine() -> str:
    """Where process numbers mean the same: this boot of this machine, and this container."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot}/{os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return f"{socket.gethostname()}/{uuid.getnode():x}"


def _is_gone(process: int) -> bool:
    """Is there surely no such process? Elsewhere than on Linux nobody can say so."""
    if sys.platform != "linux":
        return False
    try:
        os.kill(process, 0)  # asks, and does nothing to it
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False
