"""The report in a real browser: every kind of number leads to the streams behind it, by mouse and by keys."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from streamnorm.table.records import records
from tests.conftest import RECORDINGS
from tests.page.browser.conftest import NARROW, WIDE
from tests.report.browser.conftest import Report
from tests.report.rows import Row, broken, call, note, session, unread
from tests.report.test_document import PAYLOADS

# One Chromium for all of them, whatever the number of workers.
pytestmark = [pytest.mark.xdist_group("browser"), pytest.mark.parts]
Open = Callable[..., Report]
ENTER, TAB, ESCAPE = "\ue007", "\ue004", "\ue00c"

ROWS: list[Row] = [
    session("well.sse", host="api.example", first_event=0.3, first_token=0.4, first_call=1.2,
            tokens_input=1000, tokens_output=30, tokens_cached=400, tokens_reasoning=5,
            captured="2026-11-18T10:00Z"),
    call("well.sse"), call("well.sse", id_source="conflated"), note("well.sse", "wire.field_unknown", 2),
    session("cut.sse", host="api.example", outcome="failed", reason="truncated", captured="2026-11-20T10:00Z"),
    broken("cut.sse"), note("cut.sse", "wire.gap"),
    session("it's.sse", provider="gemini", model="gemini-x"), call("it's.sse", id_source="synthetic"),
    note("it's.sse", "call.id_synthetic"),
    unread("notes.pdf", "holds no stream: it looks like a PDF"),
]  # fmt: skip
ALL = ["cut.sse", "it's.sse", "notes.pdf", "well.sse"]


def test_it_shows_without_a_network_and_without_complaint(report: Open) -> None:
    page = report(ROWS)
    assert page.text("h1") == "A report"
    assert page.text(".lead").startswith("3 streams from 2 providers; 4 calls, 1 broken;")
    assert page.listed() == ALL
    assert page.text("#found") == "All 4 streams."


@pytest.mark.parametrize(
    ("where", "listed"),
    [
        (".tile-bad a[href='#call=broken']", ["cut.sse"]),
        (".facts a", ["cut.sse", "it's.sse", "well.sse"]),
        ("#calls tbody tr:nth-child(1) td:nth-child(3) a", ["well.sse"]),
        ("#calls tbody tr:nth-child(1) svg a:nth-child(2)", ["cut.sse"]),
        ("#calls tbody tr:nth-child(1) th a", ["cut.sse", "well.sse"]),
        ("#ids svg .fill-mint", ["it's.sse"]),
        ("#ids tbody tr:nth-child(1) td:nth-child(4) a", ["well.sse"]),
        ("#endings tbody tr:nth-child(1) td a", ["it's.sse", "well.sse"]),
        ("#endings svg .fill-bad", ["cut.sse"]),
        ("#broken tbody td:nth-child(3) a", ["cut.sse"]),
        ("#servers tbody tr:nth-child(1) th a", ["cut.sse", "well.sse"]),
        ("#servers tbody tr:nth-child(1) td:nth-child(4) a", ["cut.sse"]),
        ("#servers .is-mint a", ["it's.sse"]),
        ("#servers .is-warn a", ["cut.sse"]),
        ("#oddities tbody tr:nth-child(1) td:last-child a", ALL),
        ("#oddities tbody tr:nth-child(2) svg a", ["it's.sse"]),
        ("#oddities tbody tr:nth-child(3) td:nth-child(4) a", ["cut.sse"]),
        ("#times tbody tr:nth-child(1) td:nth-child(3) a", ["well.sse"]),
        ("#times tbody tr:nth-child(1) svg a", ["well.sse"]),
        ("#times .about a", ["cut.sse", "it's.sse"]),
        ("#tokens tbody tr:nth-child(1) td:nth-child(4) a", ["well.sse"]),
        ("#tokens svg .fill-reasoning", ["well.sse"]),
        ("#tokens .about a", ["cut.sse", "it's.sse"]),
        ("#unreadable .about a", ["notes.pdf"]),
    ],
)
def test_every_kind_of_number_leads_to_the_streams_behind_it(
    where: str, listed: list[str], report: Open
) -> None:
    page = report(ROWS)
    page.follow(page.one(where))
    page.until(lambda: page.listed() == listed, f"{listed}, not {page.listed()}")
    in_view = "const box = document.getElementById('streams-title').getBoundingClientRect();"
    page.until(
        lambda: page.js(in_view + "return box.top >= 0 && box.bottom < innerHeight"), "in view"
    )
    if listed != ALL:
        assert page.js("return document.activeElement.id") == "streams-title"


def test_an_address_can_be_sent_and_going_back_finds_the_place(report: Open) -> None:
    page = report(ROWS, "#server=api.example&end=failed")
    assert page.listed() == ["cut.sse"]
    assert page.texts("#filters a") == ["server: api.example ×", "ended: failed ×"]
    page.one("#filters a").click()
    page.until(lambda: page.texts("#filters a") == ["ended: failed ×"], "one filter less")
    page.driver.back()
    page.until(lambda: len(page.texts("#filters a")) == 2, "both again")
    page.at("")
    number = page.one("#servers tbody tr:nth-child(1) td:nth-child(4) a")
    page.js("arguments[0].scrollIntoView({block: 'center'})", number)
    there = page.js("return scrollY")
    number.click()
    page.until(lambda: page.listed() == ["cut.sse"], "the stream")
    page.driver.back()
    page.until(lambda: page.listed() == ALL and page.js("return scrollY") == there, "the place")


@pytest.mark.parametrize(
    "hash",
    [
        "#%E0%A4%A=x",
        "#=",
        "#call",
        "#call=",
        "#no=such&facet",
        "#provider=%ud83d",
        "#&&&=",
        "#find=%",
        "#constructor=x",
        "#__proto__=x",
    ],
)
def test_an_address_that_names_nothing_is_no_error(hash: str, report: Open) -> None:
    page = report(ROWS, hash)
    assert page.text("#found") in ("No stream that is listed here fits.", "All 4 streams.")


def test_streams_are_found_by_words(report: Open) -> None:
    page = report(ROWS)
    page.press("/")
    assert page.js("return document.activeElement.id") == "find"
    page.press("GAP api")
    page.until(lambda: page.listed() == ["cut.sse"], "found")
    assert page.js("return location.hash") == "#find=GAP%20api"
    page.press("\ue003" * 3 + "nothing")
    page.until(lambda: page.text("#found") == "No stream that is listed here fits.", "none")
    page.at("#find=gemini-x")
    assert page.listed() == ["it's.sse"]
    assert page.js("return document.getElementById('find').value") == "gemini-x"


def test_a_stream_opens_and_says_how_to_look_closer(report: Open) -> None:
    page = report(ROWS)
    page.all("button.stream")[1].click()
    assert page.text(".command code") == "streamnorm inspect 'it'\\''s.sse'"
    assert "call.id_synthetic × 1" in page.text(".stream-facts")
    assert page.js("return document.activeElement.textContent") == "it's.sse"
    assert page.all("button.stream")[1].get_attribute("aria-expanded") == "true"
    page.one(".copy").click()
    page.until(lambda: page.text(".copy") in ("Copied", "Marked"), "copied")
    page.all("button.stream")[1].click()
    assert page.count(".stream-facts") == 0


def test_tables_are_sorted_by_their_heads(report: Open) -> None:
    page = report(ROWS)
    page.all("#list .sort")[2].click()
    assert page.listed()[0] == "cut.sse"
    assert page.one("#list th[aria-sort]").get_attribute("aria-sort") == "descending"
    head = page.one("#calls th:nth-child(1) .sort")
    page.follow(head)
    assert page.texts("#calls tbody th") == ["gemini", "openai_chat"]
    head.click()
    assert page.texts("#calls tbody th") == ["openai_chat", "gemini"]
    page.follow(page.one("#tokens th:nth-child(3) .sort"))
    assert page.count("#tokens th[aria-sort=descending]") == 1


def test_all_can_be_done_by_keys(report: Open) -> None:
    page = report(ROWS)
    for _ in range(60):
        page.press(TAB)
        if page.js("return document.activeElement.getAttribute('href')") == "#call=broken":
            break
    focus = page.js("return getComputedStyle(document.activeElement).outlineStyle")
    assert focus == "solid"
    page.press(ENTER)
    page.until(lambda: page.listed() == ["cut.sse"], "the stream")
    for _ in range(10):
        page.press(TAB)
        if page.js("return document.activeElement.className") == "stream":
            break
    page.press(ENTER)
    assert page.count(".stream-facts") == 1
    hidden = "return [...document.querySelectorAll('svg a')].filter((a) => a.tabIndex >= 0).length"
    assert page.js(hidden) == 0, "plots repeat the numbers of their tables"


def many(count: int) -> list[Row]:
    rows: list[Row] = []
    for n in range(count):
        rows += [
            session(f"{n:04}.sse", host=f"h{n % 40}", model=f"m{n % 30}", tokens_input=n),
            note(f"{n:04}.sse", "wire.gap"),
        ]
    return rows


def test_of_many_the_first_are_seen_and_the_others_when_they_are_asked_for(report: Open) -> None:
    page = report(many(120))
    assert len(page.listed()) == 50
    page.follow(page.one("#more"))
    assert len(page.listed()) == 100
    assert page.js("return document.activeElement.textContent") == "0050.sse"
    assert page.text("#more") == "Show 20 more of 120"
    seen = "return [...document.querySelectorAll('#servers tbody tr')].filter((r) => r.checkVisibility()).length"
    assert page.js(seen) == 12
    page.follow(page.one("#servers .unfold"))
    assert page.js(seen) == 40
    assert page.count("#servers .unfold") == 0


def test_of_too_many_a_fair_sample_is_listed_and_said(report: Open) -> None:
    rows = [session(f"{n}.sse") for n in range(5_300)]
    page = report(rows)
    assert page.text("#found") == "5,000 of 5,300 streams are listed, a fair sample."
    page.follow(page.one("#endings tbody td:nth-child(3) a"))
    page.until(lambda: page.count("#filters a") == 2, "filtered")
    assert page.text("#found") == "5,000 of 5,300 streams are listed, a fair sample."


def test_a_phone_needs_not_scroll_sideways(report: Open) -> None:
    page = report(real(), "#call=broken")
    page.size(*NARROW)
    page.one("button.stream").click()
    wide = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert page.js(wide) == 0
    boxes = "return [...document.querySelectorAll('.box')].filter((b) => b.checkVisibility() && "
    assert page.js(boxes + "b.scrollWidth > b.clientWidth).map((b) => b.ariaLabel)") == []
    page.shot("report-phone-list")
    page.js("scrollTo(0, 0)")
    page.shot("report-phone")


def test_colours_are_as_the_system_has_them_or_as_they_are_chosen(report: Open) -> None:
    page = report(real(), title="The recordings of this project")
    ground = "return getComputedStyle(document.body).backgroundColor"
    button = page.one("#theme-button")
    seen = {button.text: page.js(ground)}
    for _ in range(2):
        button.click()
        seen[button.text] = page.js(ground)
        page.shot("report" if button.text == "Light" else "report-dark")  # docs/img/report.png
    assert set(seen) == {"Auto", "Light", "Dark"}
    assert seen["Light"] != seen["Dark"]
    assert seen["Auto"] in (seen["Light"], seen["Dark"])
    button.click()


def test_text_of_the_wire_stays_text(report: Open) -> None:
    rows: list[Row] = []
    for number, payload in enumerate(PAYLOADS):
        name = f"{payload}{number}"
        rows += [
            session(name, host=payload, provider=payload, model=payload, reason=payload, outcome="failed",
                    detail=payload, form=payload, response_id=payload, tokens_input=3, first_event=1),
            call(name, id_source=payload), broken(name, payload), note(name, payload), unread(name, payload),
        ]  # fmt: skip
    page = report(rows, title=PAYLOADS[0])
    links = "return [...document.querySelectorAll('#broken tbody td:nth-child(3) a')].map((a) => a.hash)"
    hashes = page.js(links)
    assert len(hashes) == len(PAYLOADS)
    for link in hashes:
        page.at(link)
        page.js("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
        page.one("button.stream").click()
        assert page.count("#filters .chip-off") == page.count(".stream-facts") == 1
        unharmed(page)


FOREIGN = "img, iframe, object, embed, math, main style, main script"


def unharmed(page: Report) -> None:
    assert page.js("return window.pwned ?? null") is None
    assert page.count(FOREIGN) == 0
    named = "return [...document.querySelectorAll('*')].flatMap((e) => e.getAttributeNames())"
    assert page.js(named + ".filter((name) => name.startsWith('on'))") == []
    assert "\u202e" not in page.text("body")


def test_an_address_is_shown_as_text(report: Open) -> None:
    page = report(ROWS, "#call=%3Cimg%20src%3Dx%20onerror%3Dwindow.pwned%3D1%3E")
    assert page.texts("#filters b") == ["<img src=x onerror=window.pwned=1>"]
    assert page.count("img") == 0


def test_without_streams_it_says_so(report: Open) -> None:
    page = report([])
    assert page.text("#found") == "There are no streams."
    assert not page.one("#list").is_displayed()


def test_on_paper_all_rows_are_there(report: Open) -> None:
    page = report(many(120))
    page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    seen = "return [...document.querySelectorAll('#servers tbody tr')].filter((r) => r.checkVisibility()).length"
    assert page.js(seen) == 40
    assert not page.one(".top").is_displayed()
    page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


def real() -> list[Row]:
    rows: list[Row] = []
    for path in sorted(RECORDINGS.rglob("*.sse")):
        rows += records(str(path.relative_to(RECORDINGS.parent)), path.read_bytes())
    return rows


def axe() -> str:
    folder = os.environ.get("STREAMNORM_NPM", "")
    script = Path(folder) / "node_modules" / "axe-core" / "axe.min.js"
    if not folder or not script.is_file():
        pytest.skip("no axe-core: npm install axe-core, and name the folder: STREAMNORM_NPM")
    return script.read_text(encoding="utf-8")


@pytest.mark.parametrize("size", [WIDE, NARROW])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_nobody_is_left_out(theme: str, size: tuple[int, int], report: Open) -> None:
    script = axe()
    page = report([*real(), unread("x.pdf")], "#call=broken")
    page.size(*size)
    page.js("document.documentElement.dataset.theme = arguments[0]", theme)
    page.one("button.stream").click()
    page.js(script)
    found: Any = page.driver.execute_async_script(
        "const done = arguments[0]; axe.run().then((r) => done(r.violations.map((v) => [v.id, v.nodes[0].html])))"
    )
    assert found == []
