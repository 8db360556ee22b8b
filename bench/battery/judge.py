"""What was said and what a reader gave its user in; one word out.

========  ==============================================================================================
right     all calls that were said, and no other
told      it raised; or, of us, ``Failed`` or a ``BrokenToolCall`` was among the events, and no wrong call
lost      it returned as if all were well, and calls are missing
half      it returned as if all were well, and arguments are a text that is no JSON
wrong     a call that nobody made: another name, or other arguments
========  ==============================================================================================

The last three are silent: a program that does what the reader's documentation shows does not notice.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from typing import Any

from bench.battery.cases import SAID, Case

__all__ = ["SILENT", "verdict"]

SILENT = ("lost", "half", "wrong")


def verdict(case: Case, heard: dict[str, Any]) -> str:
    """``heard``: ``calls`` as pairs of name and arguments, ``told`` why it complained, if it did."""
    complained = heard.get("told")
    # Whoever raises gives no calls; we tell them before we say that something is wrong.
    calls = [(name, parsed(arguments)) for name, arguments in heard.get("calls", ())]
    allowed = Counter(key(*one) for one in case.may)
    given = Counter(key(*one) for one in calls)
    if any(isinstance(arguments, str) for _, arguments in calls):
        return "half"
    if given - allowed:
        return "wrong"
    if complained:
        return "told"
    if given == Counter(key(*one) for one in SAID) or given == allowed:
        return "right" if given == allowed else "wrong"
    return "lost" if case.all else "right"


def parsed(arguments: Any) -> Any:
    """An object, or the text that is none."""
    if not isinstance(arguments, str):
        return arguments or {}
    try:
        value = json.loads(arguments or "{}")
    except ValueError:
        return arguments
    return value if isinstance(value, dict) else arguments


def key(name: str, arguments: Any) -> str:
    return json.dumps([name, _plain(arguments)], sort_keys=True)


def _plain(value: Any) -> Any:
    """NaN is equal to nothing; and a number that has become a float is another one."""
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, float) and (math.isnan(value) or math.isinf(value)):
        return "not a number"
    return value
