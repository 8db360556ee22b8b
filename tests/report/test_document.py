"""The half of the report that writes: one page, complete in itself, whatever the wire said."""

from __future__ import annotations

import base64
import json
import re
from hashlib import sha256
from html.parser import HTMLParser
from typing import Any
from urllib.parse import unquote

import pytest

from streamnorm import __version__
from streamnorm.report.document import in_a_sentence, written
from streamnorm.report.markup import h
from streamnorm.report.tally import Summary, Tally
from tests.report.rows import Row, broken, call, note, session, unread

PAYLOADS = (
    "<script>window.pwned=1</script>",
    "<img src=x onerror=window.pwned=1>",
    "\"><iframe srcdoc='<script>parent.pwned=1</script>'>",
    "</script><script>window.pwned=1</script>",
    "--><!-- </style><style>*{display:none}</style>",
    "' autofocus onfocus=window.pwned=1 x='",
    "javascript:window.pwned=1",
    "&call=broken#=%22",
    "\u202e\u2066hidden\u2069\u200b\u2028",
    "\ud83d",
    "constructor",
    "__proto__",
)


class Seen(HTMLParser):
    """The elements of a page, with their attributes and the text in them."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.raw: dict[str, list[str]] = {"script": [], "style": []}
        self.texts: list[str] = []
        self._in: str | None = None
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag in self.raw:
            self.raw[tag].append("")
            self._in = tag

    def handle_endtag(self, tag: str) -> None:
        self._in = None

    def handle_data(self, data: str) -> None:
        if self._in:
            self.raw[self._in][-1] += data
        else:
            self.texts.append(data)

    @property
    def text(self) -> str:
        return re.sub(r"\s+", " ", " ".join(self.texts))

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attrs for name, attrs in self.elements if name == tag]

    @property
    def data(self) -> Any:
        place = next(n for n, attrs in enumerate(self.all("script")) if attrs.get("id") == "data")
        return json.loads(self.raw["script"][place])


def counted(rows: list[Row]) -> Summary:
    tally = Tally()
    for row in rows:
        tally.add(row)
    return tally.summary()


def shown(rows: list[Row], **more: Any) -> Seen:
    return Seen(written(counted(rows), title="A report", **more))


EVERYTHING = [
    session("a.sse", host="api.example", captured="2026-11-18T10:00Z", first_event=0.5, first_token=0.7,
            first_call=1.5, tokens_input=1204, tokens_output=50, tokens_cached=1000, tokens_reasoning=10),
    call("a.sse"), call("a.sse", id_source="conflated"), note("a.sse", "wire.gap", 3),
    session("b.sse", provider="gemini", outcome="failed", reason="truncated", captured="2026-11-19T10:00Z"),
    broken("b.sse"), call("b.sse", id_source="synthetic"), note("b.sse", "call.id_synthetic"),
    unread("c.pdf", "holds no stream: it looks like a PDF"),
]  # fmt: skip


def test_the_page_says_in_a_sentence_what_was_read() -> None:
    assert in_a_sentence(counted(EVERYTHING)) == (
        "2 streams from 2 providers; 4 calls, 1 broken; 2 servers did something odd. 1 file could not be read."
    )
    assert (
        in_a_sentence(counted([session()]))
        == "1 stream from 1 provider; no calls; no server did anything odd."
    )


def test_a_wire_that_nobody_recognised_is_no_provider() -> None:
    row = session(provider="auto", model=None, outcome="failed", reason="protocol")
    assert in_a_sentence(counted([row])).startswith(
        "1 stream from 0 providers; no calls; 1 server did"
    )
    assert "not recognised" in shown([row]).text


def test_every_number_of_the_page_is_that_of_the_streams_behind_it() -> None:
    page = shown(EVERYTHING)
    streams, tags = page.data["streams"], page.data["tags"]
    links = [a for a in page.all("a") if "data-streams" in a]
    assert len(links) > 50
    for link in links:
        href = link["href"] or ""
        wanted = set(href[1:].split("&")) if "=" in href else set()
        behind = [one for one in streams if wanted <= {tags[n] for n in one["tags"]}]
        assert len(behind) == int(link["data-streams"] or 0), href
        assert href == "#streams" or "=" in href


@pytest.mark.parametrize(
    "words",
    [
        "openai_chat · gpt-x", "api.example", "wire.gap", "the wire's own numbering has a hole",
        "1,204", "1 call broken: truncated", "1 stream failed: truncated", "1 call without an id: synthetic",
        "2026-11-18 10:00 to 2026-11-19 10:00 UTC", "holds no stream: it looks like a PDF",
        f"streamnorm {__version__}",
        "1 of 2 streams say no times", "700 ms", "1.50 s", "logs/*.sse", "made on Friday",
    ],
)  # fmt: skip
def test_the_page_says(words: str) -> None:
    if words == "openai_chat · gpt-x":
        text = shown([session("z.sse"), *EVERYTHING]).text
    else:
        text = shown(EVERYTHING, places=["logs/*.sse"], made="made on Friday").text
    assert words in text


@pytest.mark.parametrize(
    ("rows", "sentences"),
    [
        ([], ["No streams: there is nothing to count.", "No stream calls a tool.", "There are no streams.",
              "Nothing odd was noted.", "No stream says when its bytes came.", "No server was seen.",
              "No stream says how many tokens it took.", "There are no calls, and no ids.", "No call is broken."]),
        ([unread("a")], ["No streams: there is nothing to count. 1 file could not be read.", "is no stream"]),
        ([session()], ["No stream calls a tool.", "nothing wrong", "no stream says when"]),
    ],
)  # fmt: skip
def test_what_there_is_none_of_is_said(rows: list[Row], sentences: list[str]) -> None:
    text = shown(rows).text
    for sentence in sentences:
        assert sentence in text


def test_the_worst_server_stands_first() -> None:
    rows = [
        session("a", host="fine"), session("b", host="odd"), note("b", "wire.gap"),
        session("c", host="broken"), broken("c"),
        session("d", host="worse", outcome="failed", reason="protocol"),
        session("e", host="worse", outcome="failed", reason="protocol"),
    ]  # fmt: skip
    page = written(counted(rows), title="x")
    table = page[page.index('id="servers"') : page.index('id="oddities"')]
    assert re.findall(r'<th scope="row"><a [^>]*>(\w+)</a>', table) == [
        "worse",
        "broken",
        "odd",
        "fine",
    ]


# --- nothing from elsewhere -----------------------------------------------------------------------


def test_the_policy_allows_what_is_in_the_page_and_nothing_else() -> None:
    page = shown(EVERYTHING)
    policy = next(m["content"] or "" for m in page.all("meta") if m.get("http-equiv"))
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))

    def hashed(text: str) -> str:
        return f"'sha256-{base64.b64encode(sha256(text.encode()).digest()).decode()}'"

    kinds = [attrs.get("type") for attrs in page.all("script")]
    scripts = [text for text, kind in zip(page.raw["script"], kinds, strict=True) if kind is None]
    assert rules.pop("default-src") == "'none'"
    assert rules.pop("script-src").split() == [hashed(text) for text in scripts]
    assert rules.pop("style-src").split() == [hashed(text) for text in page.raw["style"]]
    assert rules == {"img-src": "data:", "base-uri": "'none'", "form-action": "'none'"}


def test_nothing_is_loaded_and_nothing_is_a_script_but_ours() -> None:
    page = shown(EVERYTHING)
    for name, attrs in page.elements:
        assert name not in {"img", "iframe", "object", "embed", "base", "form"}
        assert not [
            key
            for key in attrs
            if key.startswith("on") or key in ("src", "style", "srcset", "action")
        ]
        where = attrs.get("href")
        assert where is None or where.startswith(("#", "data:image/svg+xml,")), where
    assert not re.search(r"url\(|@import|https?:", " ".join(page.raw["style"]))


@pytest.mark.parametrize("payload", PAYLOADS)
def test_text_of_the_wire_stays_text_wherever_it_stands(payload: str) -> None:
    rows = [
        session(payload, host=payload, provider=payload, model=payload, reason=payload, outcome="failed",
                detail=payload, form=payload, response_id=payload, recorded=payload, tokens_input=3, first_event=1),
        call(payload, id_source=payload), broken(payload, payload), note(payload, payload),
        session("b", outcome=payload, captured=payload), unread(payload, payload),
    ]  # fmt: skip
    html = written(counted(rows), title=payload, places=[payload], made=payload)
    assert html.encode()
    page = Seen(html)
    plain = Seen(written(counted(EVERYTHING), title="x"))
    assert {name for name, _ in page.elements} <= {name for name, _ in plain.elements}
    allowed = {key for _, attrs in plain.elements for key in attrs}
    assert {key for _, attrs in page.elements for key in attrs} <= allowed
    assert not any("\u202e" in text or "\u200b" in text for text in page.texts)
    assert len(page.all("script")) == 3
    tags = [unquote(tag) for tag in page.data["tags"]]
    if payload.isprintable() and payload.isascii():
        assert f"provider={payload}" in tags
        assert payload in page.text


def test_markup_of_others_is_escaped_in_texts_and_in_attributes() -> None:
    made = h(
        "a",
        {"title": '"><b>', "hidden": True, "class": None},
        "<b>",
        ["&", None, 5, h("i", None, "x")],
    )
    assert made == '<a title="&quot;&gt;&lt;b&gt;" hidden>&lt;b&gt;&amp;5<i>x</i></a>'


def test_our_own_script_and_style_do_not_end_their_elements() -> None:
    page = shown([])
    for text in (*page.raw["script"], *page.raw["style"]):
        assert "</" not in text
        assert "<!--" not in text


def test_one_page_is_always_the_same_for_the_same_streams() -> None:
    there = written(counted(EVERYTHING), title="x")
    assert there == written(counted(EVERYTHING), title="x")


def test_a_page_that_lists_a_sample_says_so() -> None:
    rows = [session(f"{n}") for n in range(5_100)]
    text = shown(rows).text
    assert "The numbers count all 5,100 streams." in text
    assert "at most 5,000 whatever they are, and behind each number 20" in text
