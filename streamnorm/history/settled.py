"""A call and what its handler produced come in; one settled record goes out, and its ``ToolResult``.

Rule: a record is complete when it exists, and stays as it is. Its arguments are an object of its own
(whoever reads them gets a copy), its checksum is computed once and cannot be set, a record that was
changed all the same says so, and its results have one of these shapes:

    artifact, or a list of them     what a tool usually gives: text, bytes or JSON under a handle
    media, or a list of them        images, sounds, videos, documents: the provider shows them itself
    plain text                      the answer of an artifact tool, which is no artifact again

``inline=False`` shows the model a handle instead of the content, and the model reads through the
artifact tools (``streamnorm.agent.artifacts``). Calls of those are marked, so that nobody greps a grep.

``edited`` are the arguments that a person put in the place of the model's before the call was run. The
record stays that of the call as the model made it: its checksum pairs it with a stored turn that nobody
changes, and which may be signed by the provider. The result says what was really run.

A record with a ``claim`` stands for a call that is being run: it says what is to be known of the call
should nobody say more, and whose it is (``streamnorm.agent.claims``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Literal, TypeAlias

import msgspec

from ..errors import UsageError
from ..events import Provenance, ToolCall
from ..text.canonical import checksum
from ..text.exact import Refused, parse
from ..text.written import json_text
from ..tools import File, ToolResult, only_whole
from .spool import Artifact, Spool

__all__ = ["Claim", "Results", "Settled", "as_results", "fresh"]

Results: TypeAlias = str | Artifact | File | tuple[Artifact | File, ...] | None

HANDLE = (
    "[not shown: {what}. Read it with artifact_head, artifact_tail, artifact_grep, artifact_read or "
    'artifact_count and callId "{id}".]'
)
EDITED = "The user changed the arguments before allowing this call. It was run with {arguments}"


class Claim(msgspec.Struct, frozen=True):
    """Who runs a call: a run's own key, its process and machine; and until when to believe it."""

    key: str
    until: float
    machine: str
    process: int


@dataclass(frozen=True, init=False, repr=False)
class Settled:
    """One call that has settled: with results, or with an ``error``.

    ``id`` is the correlation key that the provider gave, ``started`` the time of day in seconds and
    ``seconds`` how long the handler took. ``arguments`` may be given as JSON text. ``edited`` are
    those that it was run with, if a person changed them.

    >>> record = Settled("call_1", "weather", '{"city": "Oslo"}', Artifact.of("7 degrees"))
    >>> record.arguments, record.checksum[:8]
    ({'city': 'Oslo'}, '8d0dd926')
    >>> record.result().output
    '7 degrees'
    """

    kind: ClassVar[Literal["settled"]] = "settled"
    id: str
    name: str
    _arguments: dict[str, Any]
    results: Results
    inline: bool
    error: str | None
    provenance: Provenance
    started: float | None
    seconds: float | None
    from_artifact_tool: bool
    _edited: dict[str, Any] | None
    claim: Claim | None
    checksum: str  # sha256 over the name and the canonical arguments, as that of the call itself

    def __init__(
        self,
        id: str,
        name: str,
        arguments: dict[str, Any] | str,
        results: Results | Sequence[Artifact | File] = None,
        *,
        inline: bool = True,
        error: str | None = None,
        provenance: Provenance | None = None,
        started: float | None = None,
        seconds: float | None = None,
        from_artifact_tool: bool = False,
        edited: dict[str, Any] | None = None,
        claim: Claim | None = None,
    ) -> None:
        if not (isinstance(id, str) and isinstance(name, str) and id and name):
            raise UsageError(
                "a settled call has the id and the name that the provider gave it, as texts; "
                "Settled.of(call, …) takes both from the call"
            )
        said = _object(arguments, name)
        values = {
            "id": id, "name": name, "_arguments": said,
            "results": _shaped(results, from_artifact_tool), "inline": inline,
            "error": None if error is None else _without_halves(error),
            "provenance": provenance or Provenance("natural"), "started": started,
            "seconds": seconds, "from_artifact_tool": from_artifact_tool,
            "_edited": None if edited is None else _object(edited, name),
            "claim": claim, "checksum": checksum(name, said),
        }  # fmt: skip
        for field, value in values.items():
            object.__setattr__(self, field, value)

    @classmethod
    def of(
        cls, call: ToolCall, results: Results | Sequence[Artifact | File] = None, **more: Any
    ) -> Settled:
        """The record of a call that was heard; ``more`` are the other fields."""
        call = only_whole(call, "a record is of")
        return cls(call.id, call.name, call.arguments, results, provenance=call.provenance, **more)

    @property
    def arguments(self) -> dict[str, Any]:
        """What the model said, as a copy: to change it changes nothing here."""
        own: dict[str, Any] = fresh(self._arguments)
        return own

    @property
    def edited(self) -> dict[str, Any] | None:
        """What it was run with instead, as a copy; None: with what the model said."""
        own: dict[str, Any] | None = fresh(self._edited)
        return own

    @property
    def is_intact(self) -> bool:
        """Does it still say what it said when the call settled?"""
        return self.checksum == checksum(self.name, self._arguments)

    def to_dict(self) -> dict[str, Any]:
        """All of it by name, with its ``kind``; values are as they are."""
        told = {f.name.lstrip("_"): getattr(self, f.name) for f in fields(self)}
        if self.claim is None:  # as good as always: nobody need know of it
            del told["claim"]
        return {"kind": self.kind, **told, "arguments": self.arguments, "edited": self.edited}

    def claimed(self, claim: Claim | None) -> Settled:
        """The same record, of a call that is being run; or that nobody runs any more."""
        told = self.to_dict()
        kept = {k: told[k] for k in told if k not in ("kind", "checksum", "claim")}
        return Settled(**kept, claim=claim)

    def __repr__(self) -> str:
        told = ((k, v) for k, v in self.to_dict().items() if k not in ("kind", "checksum"))
        return f"Settled({', '.join(f'{name}={value!r}' for name, value in told)})"

    @property
    def artifacts(self) -> tuple[Artifact, ...]:
        """The artifacts among the results, in order."""
        return tuple(item for item in self._items() if isinstance(item, Artifact))

    @property
    def is_handle(self) -> bool:
        """Does the model see a handle, and may artifact tools read it?"""
        return not self.inline and not self.from_artifact_tool and bool(self.artifacts)

    def result(self, call: ToolCall | None = None, spool: Spool | None = None) -> ToolResult:
        """What goes back to the provider. ``call`` is the call as it was heard, with its echo."""
        self.check()
        if call is None:
            raw = json_text(self._arguments)
            call = ToolCall(0, self.id, self.name, self.arguments, raw, provenance=self.provenance)
        elif (call.id, call.checksum) != (self.id, self.checksum):
            raise UsageError(f"this record is of {self.id!r} ({self.name}), not of {call.id!r}")
        if self.error is not None:
            return ToolResult.for_call(call, self._noted(self.error), is_error=True)
        output = self._noted(self._output(spool or Spool()))
        return ToolResult.for_call(call, output, inline=self.inline)

    def check(self) -> None:
        """Raise if this is not what the call settled with."""
        if not self.is_intact:
            raise UsageError(
                f"the record of {self.id!r} ({self.name}) was changed after the call had settled: "
                "its checksum is that of other arguments"
            )

    def _items(self) -> tuple[Any, ...]:
        if isinstance(self.results, tuple):
            return self.results
        return () if self.results is None else (self.results,)

    def _output(self, spool: Spool) -> Any:
        shown = [self._shown(item, spool) for item in self._items()]
        return shown if isinstance(self.results, tuple) else shown[0] if shown else ""

    def _noted(self, output: Any) -> Any:
        """With a word on what was run, if it is not what the model said."""
        if self._edited is None:
            return output
        note = EDITED.format(arguments=json_text(self._edited))
        if isinstance(output, str):
            return f"{note}\n{output}"
        items = output if isinstance(output, list) else [output]
        if any(isinstance(item, File) for item in items):
            return [note, *items]
        return {"note": note, "output": output}

    def _shown(self, item: str | Artifact | File, spool: Spool) -> Any:
        if not isinstance(item, Artifact):
            return item
        if not self.inline:
            return HANDLE.format(what=item.summary, id=self.id)
        value = spool.value(item)
        return _without_halves(value) if isinstance(value, str) else value


def as_results(value: Any, spool: Spool) -> Results:
    """What a handler returned, in one of the shapes that a record has.

    >>> as_results({"celsius": 7}, Spool()).content
    b'{"celsius":7}'
    """
    if isinstance(value, Artifact | File):
        return value
    if isinstance(value, list | tuple) and any(isinstance(i, Artifact | File) for i in value):
        return tuple(i if isinstance(i, Artifact | File) else spool.put(i) for i in value)
    return spool.put(value)


def fresh(value: Any) -> Any:
    """A JSON value of one's own: the same, and nobody else holds it.

    >>> said = {"paths": ["a"]}
    >>> fresh(said)["paths"].append("b")
    >>> said
    {'paths': ['a']}
    """
    if isinstance(value, dict):
        return {key: fresh(item) for key, item in value.items()}
    if isinstance(value, list):
        return [fresh(item) for item in value]
    return value


def _without_halves(text: str) -> str:
    """No wire can carry half of a surrogate pair: halves that meet are joined, others replaced."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _object(arguments: Any, name: str) -> dict[str, Any]:
    if isinstance(arguments, str):
        try:
            arguments = parse(arguments or "{}")
        except Refused as error:
            raise UsageError(f"the arguments of {name!r} are no exact JSON: {error}") from error
    if not isinstance(arguments, dict):
        raise UsageError(f"the arguments of {name!r} are no object but {type(arguments).__name__}")
    own: dict[str, Any] = fresh(arguments)
    return own


def _shaped(results: Any, from_artifact_tool: bool) -> Results:
    if isinstance(results, list | tuple):
        if not all(isinstance(item, Artifact | File) for item in results):
            raise UsageError("a list of results holds artifacts or media; make others with a Spool")
        results = tuple(results)
    if isinstance(results, str) != from_artifact_tool and results is not None:
        raise UsageError(
            "plain text is the result of an artifact tool, and only that: "
            "put what other tools give into an Artifact"
        )
    if not isinstance(results, str | Artifact | File | tuple | None):
        raise UsageError(f"results are artifacts or media, not {type(results).__name__}")
    return results
