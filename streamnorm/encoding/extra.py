"""The fields that a caller adds to a body come in, and the options that we have; a typo is told.

Rule: what a provider has a field for passes, whatever it is. A name that is one of ours in other
letters, or that we had once, was meant for us: sent along it would change nothing, in silence.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import SequenceMatcher
from typing import Any

from ..errors import UsageError

__all__ = ["check_extra", "meant"]

FORMER = {"pairing": "orphans"}
# Fields of servers that are near a name of ours: a list of models to choose from, ways to answer.
REAL = {"models", "mode"}
# ``max_new_tokens`` and ``min_tokens`` are fields of others, ``tool_choise`` is a typo.
ALIKE = 0.87


def check_extra(extra: Mapping[str, Any], own: Iterable[str]) -> None:
    """Raise if one of these fields was meant to be an option of ours.

    >>> check_extra({"temperature": 0.2, "max_new_tokens": 9}, ["max_tokens"])
    """
    for name in extra:
        option = meant(name, own)
        if option is not None:
            raise UsageError(
                f"there is no option {name!r}: did you mean {option}=? A field of that name that "
                f"the provider knows is added to the body: body[{name!r}] = …"
            )


def meant(name: str, own: Iterable[str]) -> str | None:
    """The option of ours that a name was meant to be, if it is near one.

    >>> meant("pairing", ["orphans"]), meant("toolChoice", ["tool_choice"]), meant("top_p", ["tools"])
    ('orphans', 'tool_choice', None)
    """
    if name in FORMER or name in REAL:
        return FORMER.get(name)
    near = [(_likeness(name, option), option) for option in own]
    best, option = max(near, default=(0.0, ""))
    return option if best >= ALIKE else None


def _likeness(a: str, b: str) -> float:
    a, b = _plain(a), _plain(b)
    if sorted(a) == sorted(b):  # letters in another order
        return 1.0
    return SequenceMatcher(None, a, b, autojunk=False).ratio()


def _plain(name: str) -> str:
    return name.replace("_", "").replace("-", "").lower()
