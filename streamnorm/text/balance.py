"""Can a growing JSON text be a whole object by now? Fragments in, yes or no out.

Rule: every character is looked at once, however often it is asked, so that asking after each fragment
costs no more than reading the text. Once braces and quotes are even, a JSON reader is asked, once; after
that anything more makes it a no for good.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

__all__ = ["Balance"]

_structure = re.compile(r'["{}\[\]]').search
_in_string = re.compile(r'["\\]').search


class Balance:
    """What is known of the fragments that were looked at."""

    __slots__ = (
        "_depth",
        "_escaped",
        "_even",
        "_hopeless",
        "_quoted",
        "_seen",
        "_whole",
        "refused",
    )

    def __init__(self) -> None:
        self._seen = self._depth = 0
        self._quoted = self._escaped = False
        self._even = self._hopeless = False
        self._whole: bool | None = None  # what the reader said
        self.refused = False  # whole as it is, somebody else could not read it

    def is_whole(self, fragments: Sequence[str]) -> bool:
        """Are these fragments one whole object?"""
        if not self.is_even(fragments):
            return False
        if self._whole is None:
            self._whole = _is_json("".join(fragments))
        return self._whole

    def is_even(self, fragments: Sequence[str]) -> bool:
        """Do these fragments, of which the first ones may be known, end with their object?"""
        for text in fragments[self._seen :]:
            self._look(text)
        self._seen = len(fragments)
        return self._even and not self._hopeless

    def is_too_much(self, fragments: Sequence[str]) -> bool:
        """Does something stand behind the object of these fragments?"""
        self.is_even(fragments)
        return self._even and self._hopeless

    @property
    def hopeless(self) -> bool:
        """Is what was looked at no object, or more than one, whatever follows?"""
        return self._hopeless

    def _look(self, text: str) -> None:
        at = 0
        if self._escaped and text:
            self._escaped, at = False, 1
        while at < len(text):
            if not self._depth:
                at = self._between(text, at)
            elif self._quoted:
                at = self._through_string(text, at)
            else:
                at = self._through_structure(text, at)

    def _between(self, text: str, at: int) -> int:
        """Before the object only its brace may come, behind it nothing."""
        rest = text[at:].lstrip(" \t\r\n")
        if not rest:
            return len(text)
        if self._even or rest[0] != "{":
            self._hopeless = True
            return len(text)
        self._depth = 1
        return len(text) - len(rest) + 1

    def _through_string(self, text: str, at: int) -> int:
        found = _in_string(text, at)
        if found is None:
            return len(text)
        if found[0] == '"':
            self._quoted = False
            return found.end()
        self._escaped = found.end() == len(text)
        return found.end() + 1

    def _through_structure(self, text: str, at: int) -> int:
        found = _structure(text, at)
        if found is None:
            return len(text)
        if found[0] == '"':
            self._quoted = True
        else:
            self._depth += 1 if found[0] in "{[" else -1
            self._even = self._depth == 0
        return found.end()


def _is_json(text: str) -> bool:
    try:
        msgspec.json.decode(text)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return False
    return True
