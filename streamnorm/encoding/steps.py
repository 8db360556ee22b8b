"""The steps of a script: what the model does, and what goes wrong on the way.

Rule: a step is a value and knows no wire. Faults act on the step that stands before them, or, where
that makes no sense (``keep_alives``, ``chunked``, ``interleave``), on the whole script.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from ..errors import UsageError
from ..text.written import json_spaced, json_text

__all__ = [
    "Call",
    "Cut",
    "Error",
    "Fault",
    "Finish",
    "Hear",
    "Result",
    "Say",
    "Show",
    "Step",
    "Think",
    "Usage",
    "bad_json",
    "call",
    "chunked",
    "cut",
    "delay",
    "duplicate",
    "error",
    "finish",
    "hear",
    "interleave",
    "keep_alives",
    "missing_id",
    "result",
    "say",
    "show",
    "think",
    "usage",
    "wrong_index",
]


@dataclass(frozen=True, slots=True)
class Say:
    """Visible text."""

    text: str


@dataclass(frozen=True, slots=True)
class Think:
    """Reasoning."""

    text: str


@dataclass(frozen=True, slots=True)
class Show:
    """A picture that the model made."""

    data: bytes
    type: str = "image/png"


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call; ``call()`` makes one."""

    name: str
    arguments: Mapping[str, Any]
    id: str | None = None
    raw: str | None = None
    has_id: bool = True
    index: int | None = None  # the wrong one, if it has one

    def with_id(self, id: str) -> Call:
        """The same call under this id.

        >>> call("get_weather", city="Oslo").with_id("call_1").id
        'call_1'
        """
        return replace(self, id=id)

    def with_raw(self, raw: str) -> Call:
        """The same call with this argument text, on wires that tell arguments as text.

        >>> call("get_weather").with_raw('{"city": "Os').written()
        '{"city": "Os'
        """
        return replace(self, raw=raw)

    def written(self, *, spaced: bool = False) -> str:
        """The argument text; ``spaced`` as most models write it."""
        if self.raw is not None:
            return self.raw
        try:
            return (json_spaced if spaced else json_text)(self.arguments)
        except (TypeError, ValueError) as error:
            raise UsageError(
                f"the arguments of {self.name!r} are no JSON ({error}); "
                "with_raw() takes any text in place of them"
            ) from error

    def value(self) -> Any:
        """The arguments for a wire that tells them as an object."""
        if self.raw is None:
            self.written()  # or say that they are no JSON
            return self.arguments
        try:
            return json.loads(self.raw)
        except ValueError:
            raise UsageError(
                "this wire tells arguments as an object, so with_raw() must be JSON here; "
                "use bad_json() or cut() for bytes that are none"
            ) from None


@dataclass(frozen=True, slots=True)
class Result:
    """What a tool gave that the provider ran itself: the call before it."""

    output: Any
    is_error: bool = False


@dataclass(frozen=True, slots=True)
class Usage:
    """Token counts, told with the finish."""

    input: int = 25
    output: int = 12
    cached: int = 0
    reasoning: int = 0


@dataclass(frozen=True, slots=True)
class Finish:
    """The end as the wire tells it. No reason: ``tool_calls`` if there are any, else ``stop``."""

    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Cut:
    """The end as no wire tells it."""

    at: int | None = None
    after: str | None = None
    inside: str | None = None
    abrupt: bool = False
    code: int | None = None

    @property
    def is_elsewhere(self) -> bool:
        """Is it not where it stands in the script?"""
        return (self.at, self.after, self.inside) != (None, None, None)


@dataclass(frozen=True, slots=True)
class Hear:
    """Something that the client says while it is answered: a word of ``HEARD``."""

    what: str


@dataclass(frozen=True, slots=True)
class Error:
    """An error of the provider: in the stream, or, with a status, instead of it."""

    code: str
    message: str | None = None
    status: int | None = None


@dataclass(frozen=True, slots=True)
class Fault:
    """Something else that goes wrong; ``kind`` is the name of the function that ordered it."""

    kind: str
    value: float = 0


Step: TypeAlias = Say | Think | Show | Call | Result | Usage | Hear | Finish | Cut | Error | Fault
HEARD = ("steer", "inject")


def say(text: str) -> Say:
    """The model says something.

    >>> say("Let me look.")
    Say(text='Let me look.')
    """
    return Say(text)


def think(text: str) -> Think:
    """The model reasons.

    >>> think("Celsius is usual there.")
    Think(text='Celsius is usual there.')
    """
    return Think(text)


def show(data: bytes, type: str = "image/png") -> Show:
    """The model made a picture.

    >>> show(b"GIF89a", "image/gif").type
    'image/gif'
    """
    if not isinstance(data, bytes) or not type.startswith("image/"):
        raise UsageError("show() takes the bytes of a picture and their type, such as image/png")
    return Show(data, type)


def call(name: str, arguments: Mapping[str, Any] | None = None, /, **named: Any) -> Call:
    """The model calls a tool; arguments by name, or as a mapping for names that Python lacks.

    >>> call("get_weather", city="Oslo").arguments
    {'city': 'Oslo'}
    >>> call("search", {"from": 1}, to=2).written()
    '{"from":1,"to":2}'
    """
    return Call(name, {**(arguments or {}), **named})


def result(output: Any, *, is_error: bool = False) -> Result:
    """The provider ran the call before this itself, and this came out.

    >>> result({"celsius": 7})
    Result(output={'celsius': 7}, is_error=False)
    """
    return Result(output, is_error)


def usage(input: int = 25, output: int = 12, *, cached: int = 0, reasoning: int = 0) -> Usage:
    """Token counts, instead of 25 and 12. ``cached`` is a part of ``input``.

    >>> usage(900, 40, cached=512)
    Usage(input=900, output=40, cached=512, reasoning=0)
    """
    return Usage(input, output, cached, reasoning)


def finish(reason: str | None = None) -> Finish:
    """The answer ends. A script that ends without ``finish``, ``cut`` or ``error`` gets one.

    >>> finish("length")
    Finish(reason='length')
    """
    return Finish(reason)


def cut(
    *,
    at: int | None = None,
    after: str | None = None,
    inside: str | None = None,
    abrupt: bool = False,
    code: int | None = None,
) -> Cut:
    """The bytes end: here, ``at`` a byte, ``after`` or in the middle of (``inside``) the first
    ``"say"``, ``"think"``, ``"call"`` … A proxy that gives up looks so. ``abrupt`` also breaks the
    connection, as a crash would. A WebSocket is closed with 1000, or with this ``code``.

    >>> cut(after="call").after
    'call'
    """
    if code is not None and abrupt:
        raise UsageError(
            "cut(abrupt=True): a connection that is dropped is closed with no code: leave code= out"
        )
    if code is not None and not _may_close(code):
        raise UsageError(
            f"cut(code={code!r}): a WebSocket is closed with 1000 to 1003, 1007 to 1014 "
            "or 3000 to 4999"
        )
    if sum(place is not None for place in (at, after, inside)) > 1:
        raise UsageError("cut() takes one of at=, after= and inside=")
    for word in (after, inside):
        if word is not None and word not in KINDS:
            raise UsageError(f"cut() after or inside one of {', '.join(KINDS)}, not {word!r}")
    return Cut(at, after, inside, abrupt, code)


_CLOSING = (range(1000, 1004), range(1007, 1015), range(3000, 5000))  # 1004 to 1006 are never sent


def _may_close(code: object) -> bool:
    return isinstance(code, int) and any(code in codes for codes in _CLOSING)


def hear(what: str = "steer") -> Hear:
    """Here the client has its say: it has steered the answer (``"steer"``), or handed something in
    (``"inject"``). A scripted WebSocket waits for it.

    >>> hear("inject")
    Hear(what='inject')
    """
    if what not in HEARD:
        raise UsageError(f"hear() is for one of {', '.join(HEARD)}, not {what!r}")
    return Hear(what)


def error(
    code: str = "overloaded", message: str | None = None, *, status: int | None = None
) -> Error:
    """The provider reports an error: ``overloaded``, ``rate_limit``, ``server``, ``invalid``,
    ``auth`` in its own words, or any other code as it is. With a ``status`` it is an HTTP error
    instead of a stream.

    >>> error("rate_limit", status=429)
    Error(code='rate_limit', message=None, status=429)
    """
    return Error(code, message, status)


def delay(seconds: float) -> Fault:
    """Time passes before what follows; only the clock of the script moves, nobody waits.

    >>> delay(2.5)
    Fault(kind='delay', value=2.5)
    """
    return Fault("delay", seconds)


def duplicate() -> Fault:
    """The last fragment of the step before is sent twice."""
    return Fault("duplicate")


def missing_id() -> Fault:
    """The call before has no id on the wire."""
    return Fault("missing_id")


def wrong_index(index: int = 0) -> Fault:
    """The fragments of the call before carry this index, where the wire has one."""
    return Fault("wrong_index", index)


def interleave() -> Fault:
    """Calls that stand side by side are told at the same time, fragment by fragment."""
    return Fault("interleave")


def bad_json() -> Fault:
    """Here comes an event that is no JSON."""
    return Fault("bad_json")


def keep_alives() -> Fault:
    """A comment or ping stands between any two events."""
    return Fault("keep_alives")


def chunked(size: int) -> Fault:
    """The bytes arrive in chunks of this size, instead of one chunk per event."""
    if size < 1:
        raise UsageError(f"chunked({size}): a chunk has at least one byte")
    return Fault("chunked", size)


KINDS: dict[str, type[Step]] = {
    "say": Say,
    "think": Think,
    "show": Show,
    "call": Call,
    "result": Result,
}
