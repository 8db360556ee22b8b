"""What happened in exchanges comes in; text that Prometheus reads goes out.

Rule: a label has few values, all of which were known when the gateway started: no name of a model, no id
and no word of a client. The text format is a page long and written here: the usual library for it keeps
one registry for a whole process, in which two gateways would count together.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator

__all__ = ["Counter", "Histogram", "Metrics"]

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)


class Counter:
    """A number that grows, for each set of labels; one that may fall is a ``gauge``.

    >>> calls = Counter("calls_total", "Calls", "outcome")
    >>> calls.add("whole"); calls.add("whole")
    >>> list(calls.lines())[-1]
    'calls_total{outcome="whole"} 2'
    """

    def __init__(self, name: str, help: str, *labels: str, kind: str = "counter") -> None:
        self._name, self._help, self._labels, self._kind = name, help, labels, kind
        self._values: dict[tuple[str, ...], int] = {} if labels else {(): 0}

    def add(self, *labels: str, by: int = 1) -> None:
        """So much more."""
        self._values[labels] = self._values.get(labels, 0) + by

    def lines(self) -> Iterator[str]:
        """As Prometheus reads it."""
        yield from _head(self._name, self._help, self._kind)
        for labels, value in self._values.items():
            yield f"{self._name}{_labelled(self._labels, labels)} {value}"


class Histogram:
    """How often something took how long, for each set of labels."""

    def __init__(self, name: str, help: str, *labels: str) -> None:
        self._name, self._help, self._labels = name, help, labels
        self._rows: dict[tuple[str, ...], list[int]] = {}  # a count per bound
        self._sums: dict[tuple[str, ...], float] = {}

    def add(self, *labels: str, seconds: float) -> None:
        """It took so long, once."""
        row = self._rows.setdefault(labels, [0] * (len(SECONDS) + 1))
        row[bisect_left(SECONDS, seconds)] += 1
        self._sums[labels] = self._sums.get(labels, 0.0) + seconds

    def lines(self) -> Iterator[str]:
        """As Prometheus reads it."""
        yield from _head(self._name, self._help, "histogram")
        for labels, row in self._rows.items():
            total = 0
            for bound, number in zip((*map(str, SECONDS), "+Inf"), row, strict=True):
                total += number
                with_bound = _labelled((*self._labels, "le"), (*labels, bound))
                yield f"{self._name}_bucket{with_bound} {total}"
            yield f"{self._name}_sum{_labelled(self._labels, labels)} {self._sums[labels]:.6f}"
            yield f"{self._name}_count{_labelled(self._labels, labels)} {total}"


class Metrics:
    """All that one gateway counts."""

    def __init__(self) -> None:
        of = "streamnorm_gateway_"
        self.open = Counter(f"{of}open", "Exchanges that are under way", kind="gauge")
        self.exchanges = Counter(
            f"{of}exchanges_total", "Exchanges that are over", "client", "upstream", "outcome"
        )
        self.retries = Counter(f"{of}retries_total", "Requests that were sent again", "upstream")
        self.calls = Counter(
            f"{of}calls_total", "Tool calls by how they ended and where their id is from",
            "upstream", "outcome", "id_source",
        )  # fmt: skip
        self.tokens = Counter(f"{of}tokens_total", "Tokens as upstreams count", "upstream", "kind")
        self.notes = Counter(f"{of}notes_total", "Tolerances by name", "upstream", "note")
        self.sent = Counter(f"{of}sent_bytes_total", "Bytes told to clients", "client")
        self.first = Histogram(
            f"{of}first_byte_seconds", "From the request to the first byte of the answer",
            "client", "upstream",
        )  # fmt: skip
        self.seconds = Histogram(
            f"{of}seconds", "From the request to the end", "client", "upstream"
        )

    def text(self) -> str:
        """The page for Prometheus."""
        lines = [line for one in vars(self).values() for line in one.lines()]
        return "\n".join(lines) + "\n"


def _head(name: str, help: str, kind: str) -> tuple[str, str]:
    return f"# HELP {name} {help}", f"# TYPE {name} {kind}"


def _labelled(names: tuple[str, ...], values: tuple[str, ...]) -> str:
    if not names:
        return ""
    pairs = (f'{name}="{_escaped(value)}"' for name, value in zip(names, values, strict=True))
    return "{" + ",".join(pairs) + "}"


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
