"""The rows of streams come in; one page that shows what they say goes out.

    tally = Tally()
    for row in rows_in(["recordings"]):
        tally.add(row)
    page = written(tally.summary(), title="My streams")

Rule: two halves that know of each other by plain values alone. ``tally`` counts, in memory that does
not grow with the streams; ``document`` writes HTML that needs no network, and no scripts to be read.
"""

from __future__ import annotations

from .document import in_a_sentence, written
from .number import Figure, Spread
from .rows import rows_in
from .tally import Summary, Tally

__all__ = ["Figure", "Spread", "Summary", "Tally", "in_a_sentence", "rows_in", "written"]
