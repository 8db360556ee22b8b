"""The rows of streams come in; one page that shows what they say goes out.

    tally = Tally()
    for row in records("answer.sse", data):
        tally.add(row)
    page = written(tally.summary(), title="My streams")

Rule: two halves that know of each other by plain values alone. ``tally`` counts, in memory that does
not grow with the streams; ``document`` writes HTML that needs no network and no scripts to be read.
"""

from __future__ import annotations

__all__: list[str] = []
