"""How a model is to answer, in no provider's words: what a request says beside its turns and tools.

Rule: values only, and None is what nobody said. What a provider has a field for and no other has a
word for stays in ``native`` under that provider's name, and goes back to it alone.
"""

from __future__ import annotations

from typing import Any, get_args

import msgspec

from .errors import UsageError

__all__ = ["EFFORTS", "Format", "RequestOptions"]

# From the least to the most.
EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")


class Format(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """The answer is to be JSON: any object, or what the schema describes.

    >>> Format({"type": "object"}, "trip").name
    'trip'
    """

    schema: dict[str, Any] | None = None
    name: str = "answer"
    description: str = ""
    strict: bool | None = None


class RequestOptions(msgspec.Struct, frozen=True, kw_only=True, repr_omit_defaults=True):
    """How to answer. Whatever is None was not said, and the provider decides.

    ``effort`` is a word of ``none minimal low medium high xhigh max``; ``thinking`` asks for thought
    or forbids it, ``thinking_budget`` are its tokens at most. ``user`` stands for who asks. ``usage``:
    a stream tells what it cost. ``native``: fields of a provider's own, by its name.

    >>> RequestOptions(temperature=0.2, effort="high")
    RequestOptions(temperature=0.2, effort='high')
    """

    model: str | None = None
    stream: bool | None = None
    usage: bool | None = None
    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    stop: tuple[str, ...] = ()
    seed: int | None = None
    frequency_penalty: float | None = None
    presence_penalty: float | None = None
    effort: str | None = None
    thinking: bool | None = None
    thinking_budget: int | None = None
    verbosity: str | None = None
    format: Format | None = None
    user: str | None = None
    native: dict[str, dict[str, Any]] = {}

    def __post_init__(self) -> None:
        if self.effort is not None and self.effort not in EFFORTS:
            raise UsageError(f"effort is one of {', '.join(EFFORTS)}, not {self.effort!r}")
        for name, kinds in _KINDS.items():
            value = getattr(self, name)
            if not isinstance(value, kinds) or (type(value) is bool and bool not in kinds):
                wanted = ", ".join(kind.__name__ for kind in kinds)
                raise UsageError(f"{name} is one of {wanted}, not {type(value).__name__}")

    def without(self, *names: str) -> RequestOptions:
        """The same without those.

        >>> RequestOptions(temperature=0.2, seed=7).without("seed")
        RequestOptions(temperature=0.2)
        """
        unknown = sorted(set(names) - set(self.__struct_fields__))
        if unknown:
            raise UsageError(
                f"there are no options {unknown}; there are {', '.join(self.__struct_fields__)}"
            )
        return msgspec.structs.replace(self, **{name: getattr(_NONE, name) for name in names})


def _kinds(said: Any) -> tuple[type, ...]:
    """The types that a value may have; a whole number is a number, too."""
    kinds = tuple(getattr(kind, "__origin__", kind) for kind in get_args(said) or (said,))
    return (*kinds, int) if float in kinds else kinds


_KINDS: dict[str, tuple[type, ...]] = {}
_NONE = RequestOptions()
_KINDS |= {
    field.name: (tuple,) if field.name == "stop" else _kinds(field.type)
    for field in msgspec.structs.fields(RequestOptions)
    if field.name != "native"
}
