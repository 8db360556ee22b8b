"""What a source gives comes in, a chunk or payload at a time; the pipe's events go out.

Rule: what comes is counted and recorded first, and held back while it may be no stream at all. No
waiting here, and no clock.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..errors import ProviderError
from ..events import Event, Failed, Finish, RecorderFailed, StreamStart
from ..framing.aws import event_frame
from ..normalizer import Normalizer
from ..providers import frames_around
from .reading import Reading
from .refusals import Gate
from .sources import Item, Source
from .summary import Tally

if TYPE_CHECKING:
    from ..takes.recorder import Recorder

__all__ = ["Intake"]

_CUT_SHORT = ("transport", "idle", "limit", "cancelled")  # the body went on, or would have


class Intake:
    """Between a source and its pipe."""

    __slots__ = (
        "_calm",
        "_gate",
        "_is_told",
        "_packed",
        "_pipe",
        "_record",
        "_recorder",
        "_secrets",
        "_source",
        "_tally",
    )

    def __init__(self, source: Source, pipe: Normalizer, tally: Tally, reading: Reading) -> None:
        self._source, self._pipe, self._tally = source, pipe, tally
        self._record, self._secrets = reading.record, reading.secrets
        self._recorder: Recorder | None = None
        self._gate: Gate | None = None
        self._packed: dict[str, str] | None = None  # payloads are kept in these frames
        self._is_told = False  # that the recorder failed?
        self._calm = False  # is nothing left to be found out, so that a chunk goes the short way?

    def open(self) -> None:
        """The facts are known: look at the status, begin the recording."""
        facts = self._source.facts
        gate = Gate(facts, self._pipe.provider)
        self._gate = None if gate.open else gate
        if self._record is not None:
            from ..takes.recorder import Recorder

            self._recorder = Recorder.open(
                self._record,
                provider=self._pipe.provider,
                seed=self._pipe.seed,
                url=facts.url,
                headers=facts.headers,
                request_headers=facts.request_headers,
                secrets=facts.secrets | self._secrets,
                status=facts.status,
            )
            self._source.recorded_by(self._recorder)

    def feed(self, item: Item | None) -> list[Event]:
        """A chunk, a payload or, as None, the end. Raises ``ProviderError`` if it is no stream."""
        if self._calm and type(item) is bytes:
            tally = self._tally
            tally.chunks += 1
            tally.bytes += len(item)
            if self._recorder is None:
                return self._pipe.feed(item)
            self._recorder.chunk(item)
            return self.told(self._pipe.feed(item))
        return self.told(self._feed_slowly(item))

    def told(self, events: list[Event]) -> list[Event]:
        """These events, and among them that the recording failed, once: behind the first and before the
        last of the stream. So before a last one all is written that came."""
        tape = self._recorder
        if tape is None or self._is_told or not events:
            return events
        ends = isinstance(events[-1], Finish | Failed)
        if ends:
            tape.flush()
        if tape.failed is None or not (self._tally.events or isinstance(events[0], StreamStart)):
            return events
        self._is_told = True
        at = len(events) - ends
        return [*events[:at], RecorderFailed(tape.path, tape.failed), *events[at:]]

    def straight(self) -> Callable[[bytes], list[Event]] | None:
        """The pipe itself, if a chunk is only to be counted: nothing is left to be found out about
        the body, and nobody records it."""
        return self._pipe.feed if self._calm and self._recorder is None else None

    def _feed_slowly(self, item: Item | None) -> list[Event]:
        if not self._source.ready:
            self._source.ready = True
            self.open()
        if item is None:
            return self._feed_end()
        if isinstance(item, dict):
            item = self._framed(item)
        self._keep(item)
        if isinstance(item, dict):
            return self._pipe.feed_payload(item)
        if self._gate is not None:
            item = self._gate.let_in(item)
        self._calm = self._gate is None or self._gate.open
        return self._pipe.feed(item)

    def _framed(self, item: dict[str, Any]) -> Item:
        """Events that hold another wire are put into their frames again, as a take keeps them so."""
        if not self._tally.chunks and len(item) == 1:
            self._packed = frames_around(item, self._pipe.provider)
        if self._packed is None:
            return item
        return b"".join(event_frame(k, said, self._packed.get(k)) for k, said in item.items())

    def feed_rest(self, item: Item) -> int:
        """What follows the last event: recorded, and noted by the pipe. Returns its size."""
        size = self._keep(item)
        if isinstance(item, bytes):
            self._pipe.feed(item)
        return size or 1

    def refusal(self) -> ProviderError | None:
        """What the server said instead of streaming, if the status told so; as far as it was read."""
        return self._gate.error() if self._gate is not None and self._gate.refused else None

    def recording(self) -> dict[str, Any]:
        """Where the take is, if one is made, and whether it could be written."""
        if self._recorder is None:
            return {}
        return {"recording": {"path": self._recorder.path, "failed": self._recorder.failed}}

    def close(self) -> None:
        """Nothing more comes."""
        if self._recorder is not None:
            end = self._tally.end
            cut_short = isinstance(end, Failed) and end.reason in _CUT_SHORT
            self._recorder.close(finished=end is not None and not cut_short)

    def _feed_end(self) -> list[Event]:
        if self._gate is None or self._gate.open:
            return self._pipe.close()
        events = self._pipe.feed(self._gate.at_end()) + self._pipe.close()
        if isinstance(events[-1], Failed) and events[-1].reason != "provider_error":
            raise self._gate.no_stream()
        return events

    def _keep(self, item: Item) -> int:
        """Count and record what came; returns its size."""
        size = 0 if isinstance(item, dict) else len(item)
        self._tally.chunks += 1
        self._tally.bytes += size
        if self._recorder is not None:
            if isinstance(item, dict):
                self._recorder.payload(item)
            else:
                self._recorder.chunk(item)
        return size
