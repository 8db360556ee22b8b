"""One Chromium, as the tests of our page have it, and reports as files on the disk."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from streamnorm.report.document import written
from streamnorm.report.tally import Tally
from tests.page.browser.conftest import WIDE, Gate, Page, Served, chromium
from tests.report.rows import Row

__all__ = ["chromium"]  # a fixture, for the tests beside this file


class Report(Page):
    """A report in Chromium, opened from the disk."""

    def at(self, hash: str = "") -> None:
        """Load it afresh at this address."""
        self.driver.get("about:blank")
        self.driver.get(self.url + hash)
        self.until(lambda: self.js("return document.body.dataset.ready") == "yes", "the report")

    def listed(self) -> list[str]:
        """The names of the streams in the list."""
        return self.texts("button.stream")

    def follow(self, link: Any) -> None:
        """Click a link, or a piece of a plot."""
        self.js("arguments[0].scrollIntoView({block: 'center'})", link)
        link.click()


@pytest.fixture
def report(chromium: Any, tmp_path: Path) -> Iterator[Callable[..., Report]]:
    """A report of these rows; at the end nothing is wrong with it."""
    opened: list[Report] = []

    def of(rows: list[Row], hash: str = "", title: str = "A report") -> Report:
        tally = Tally()
        for row in rows:
            tally.add(row)
        file = tmp_path / f"report {len(opened)}.html"
        file.write_text(written(tally.summary(), title=title, places=["recordings"], made="today"))
        page = Report(chromium, Served(file.as_uri(), Gate()))
        page.size(*WIDE)
        page.at(hash)
        opened.append(page)
        return page

    chromium.get("about:blank")
    chromium.get_log("browser")
    yield of
    for page in opened[-1:]:
        assert page.complaints() == []
        assert page.js("return performance.getEntriesByType('resource').map((e) => e.name)") == []
