"""The log: every line that seed 004 asks for, for every provider, and nothing that it must not say."""

from __future__ import annotations

import io
import json
import logging
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st

from streamnorm import Normalizer
from streamnorm.core.mint import Mint
from streamnorm.events import BrokenToolCall, Event, ToolCall, ToolCallStart
from streamnorm.providers import PROVIDERS
from tests.conftest import (
    CALLING,
    RECORDINGS,
    ROOT,
    SEED,
    Chat,
    Messages,
    at_random,
    calls_of,
    load,
    over_takes,
    run,
    take_paths,
)

Line = dict[str, Any]


@pytest.fixture
def log() -> Iterator[list[Line]]:
    with structlog.testing.capture_logs() as lines:
        yield lines
    structlog.reset_defaults()


def logged(provider: str, body: bytes, **options: Any) -> tuple[list[Event], list[Line]]:
    with structlog.testing.capture_logs() as lines:
        events = run(provider, [body], **options)
    structlog.reset_defaults()
    return events, lines


def named(lines: list[Line], name: str) -> list[Line]:
    return [line for line in lines if line["event"] == name]


def ends(events: list[Event]) -> list[ToolCall | BrokenToolCall]:
    told = [e for e in events if isinstance(e, ToolCall | BrokenToolCall)]
    return sorted(told, key=lambda e: e.call)


# --- requirement 1: the id is found, and every line carries it ------------------------------------


@over_takes(quick=100)
def test_every_line_about_a_call_carries_its_id(path: Path):
    take, body = load(path)
    events, lines = logged(path.parent.name, body, seed=take.seed)
    starts = [e for e in events if isinstance(e, ToolCallStart)]
    started = named(lines, "tool_call.started")
    assert [(s["call"], s["call_id"], s["name"]) for s in started] == [
        (e.call, e.id, e.name) for e in starts
    ]
    assert {s["log_level"] for s in started} <= {"debug"}
    finished = named(lines, "tool_call.finished")
    told = [e for e in events if isinstance(e, ToolCall)]
    assert [(f["call_id"], f["id_source"], f["size"]) for f in finished] == [
        (e.id, e.provenance.id_source, len(e.raw)) for e in told
    ]
    assert {f["log_level"] for f in finished} <= {"info"}
    broken = named(lines, "tool_call.broken")
    assert [(b["call_id"], b["reason"]) for b in broken] == [
        (e.id, e.reason) for e in events if isinstance(e, BrokenToolCall)
    ]
    assert {b["log_level"] for b in broken} <= {"warning"}
    for line in lines:
        assert line["provider"]
        if line["event"].startswith("tool_call."):
            assert line["call_id"]


@pytest.mark.skipif("openai_responses" not in PROVIDERS, reason="not registered yet")
def test_the_call_id_is_read_from_the_nested_item_and_not_from_the_item_itself(log: list[Line]):
    _, body = load(RECORDINGS / "openai_responses" / "parallel_calls.sse")
    calls = calls_of(run("openai_responses", [body]))
    assert calls
    for call, started in zip(calls, named(log, "tool_call.started"), strict=True):
        assert call.id.startswith("call_")
        assert started["call_id"] == call.id
        assert started["id_source"] == "natural"
        assert "call_id" in started["wire_field"]


@pytest.mark.parametrize(
    ("provider", "field"), [("openai_chat", "tool_calls[].id"), ("anthropic", "content_block.id")]
)
def test_a_line_says_where_the_id_was_read(provider: str, field: str, log: list[Line]):
    if provider == "openai_chat":
        body = Chat.call(0, "call_1", "f", "{}") + Chat.end()
    else:
        body = Messages.START + Messages.open(0, "call_1", "f") + Messages.close(0) + Messages.end()
    run(provider, [body])
    for line in named(log, "tool_call.started") + named(log, "tool_call.finished"):
        assert (line["call_id"], line["wire_field"], line["id_source"]) == (
            "call_1",
            field,
            "natural",
        )


def test_lines_carry_the_response_id(log: list[Line]):
    run("openai_chat", [Chat.call(0, "call_1", "f", "{}") + Chat.end()])
    assert {line["response_id"] for line in log} == {"chatcmpl-1"}


# --- requirement 2 and 3: a missing id ------------------------------------------------------------

WITHOUT_ID = {
    "openai_chat": Chat.call(0, None, "f", '{"pin":"canary-1234"}') + Chat.end(),
    "anthropic": Messages.START + Messages.open(0, None, "f") + Messages.args(0, '{"pin":"canary-1234"}')
    + Messages.close(0) + Messages.end(),
}  # fmt: skip
WITH_EMPTY_ID = {
    "openai_chat": Chat.call(0, "", "f", '{"pin":"canary-1234"}') + Chat.end(),
    "anthropic": Messages.START + Messages.open(0, "", "f") + Messages.args(0, '{"pin":"canary-1234"}')
    + Messages.close(0) + Messages.end(),
}  # fmt: skip


@pytest.mark.parametrize("body", [WITHOUT_ID, WITH_EMPTY_ID], ids=["missing", "empty"])
@pytest.mark.parametrize("provider", WITHOUT_ID)
def test_a_missing_id_is_one_warning_with_reason_strategy_and_structure(
    body, provider: str, log: list[Line]
):
    (call,) = calls_of(run(provider, [body[provider]]))
    (warning,) = named(log, "call.id_synthetic")
    assert warning["log_level"] == "warning"
    assert warning["call_id"] == call.id == Mint(SEED).id(0)
    assert warning["name"] == "f"
    assert warning["reason"].startswith("no id in ")
    assert "HMAC" in warning["strategy"]
    structure = str(warning["structure"])
    assert "'name': 'str'" in structure
    assert "canary" not in structure
    assert "'f'" not in structure


@over_takes(quick=100)
def test_every_minted_id_of_every_take_has_its_warning(path: Path):
    take, body = load(path)
    events, lines = logged(path.parent.name, body, seed=take.seed)
    mint = Mint(take.seed)
    for event in ends(events):
        if isinstance(event, ToolCall) and event.provenance.id_source == "synthetic":
            assert event.id == mint.id(event.call)
            warnings = [
                line for line in named(lines, "call.id_synthetic") + named(lines, "call.id_duplicate")
                if line["call_id"] in (event.id, event.provenance.wire_id)
            ]  # fmt: skip
            assert len(warnings) == 1, event
            assert warnings[0]["log_level"] == "warning"
            assert warnings[0]["reason"]


def test_each_of_two_missing_ids_has_its_own_warning(log: list[Line]):
    run("openai_chat", [Chat.call(0, None, "f", "{}") + Chat.call(1, None, "g", "{}") + Chat.end()])
    warnings = named(log, "call.id_synthetic")
    assert [w["call_id"] for w in warnings] == [Mint(SEED).id(0), Mint(SEED).id(1)]


def test_a_tolerance_is_logged_once_and_counted_every_time(log: list[Line]):
    pipe = Normalizer("openai_chat")
    pipe.feed(Chat.text("x") + b": ping\n\n" * 50 + Chat.end("stop"))
    assert len(named(log, "wire.keepalive")) == 1
    assert pipe.notes["wire.keepalive"] == 50


# --- requirement 3: the summary -------------------------------------------------------------------


@over_takes(quick=100)
def test_a_stream_ends_with_one_summary_of_every_id(path: Path):
    take, body = load(path)
    events, lines = logged(path.parent.name, body, seed=take.seed)
    summaries = [line for line in lines if line["event"] in ("stream.finished", "stream.failed")]
    assert summaries == lines[-1:]
    (summary,) = summaries
    last = events[-1]
    assert summary["event"] == ("stream.finished" if last.kind == "finish" else "stream.failed")
    level = "info" if last.kind == "finish" else "warning"
    assert (summary["log_level"], summary["reason"]) == (level, last.reason)
    assert summary["call_ids"] == [e.id for e in ends(events)]
    assert summary["calls"] == [
        {"call_id": e.id, "id_source": e.provenance.id_source, "name": e.name, "size": len(e.raw)}
        for e in ends(events)
    ]
    assert summary["bytes"] == len(body)
    assert summary["frames"] >= 1
    if len(events) > 1:
        assert summary["response_id"] == events[0].response_id


def test_the_summary_counts_the_notes(log: list[Line]):
    run("openai_chat", [b": ping\n\n" + Chat.call(0, None, "f", "{}") + Chat.end()])
    assert log[-1]["notes"] == {"wire.keepalive": 1, "call.id_synthetic": 1}


def test_the_summary_of_a_failure_is_logged_where_only_warnings_are(
    caplog: pytest.LogCaptureFixture,
):
    structlog.reset_defaults()
    caplog.set_level(logging.WARNING, "streamnorm")
    run("openai_chat", [Chat.text("x")])
    run("openai_chat", [Chat.text("x") + Chat.end("stop")])
    assert [record.getMessage().split()[0] for record in caplog.records] == [
        "event='stream.failed'"
    ]


# --- what is not logged ---------------------------------------------------------------------------


@pytest.mark.parametrize("provider", ["openai_chat", "anthropic"])
def test_nothing_is_logged_per_delta(provider: str):
    def body(deltas: int) -> bytes:
        text = "x" * deltas
        if provider == "openai_chat":
            opening = Chat.text("t") * deltas + Chat.call(0, "a", "f", '{"a":"')
            return (
                opening
                + Chat.call(0, None, None, "x") * deltas
                + Chat.call(0, None, None, '"}')
                + Chat.end()
            )
        opening = Messages.START + Messages.text("t") * deltas + Messages.open(1, "a", "f")
        args = (
            Messages.args(1, '{"a":"')
            + b"".join(Messages.args(1, c) for c in text)
            + Messages.args(1, '"}')
        )
        return opening + args + Messages.close(1) + Messages.end()

    few, many = (logged(provider, body(n))[1] for n in (1, 300))
    assert [line["event"] for line in few] == [line["event"] for line in many]
    assert len(many) == 3  # started, finished, summary


@over_takes(quick=100)
def test_argument_values_are_never_logged(path: Path):
    take, body = load(path)
    events, lines = logged(path.parent.name, body, seed=take.seed)
    shown = repr(lines)
    names = " ".join(f"{e.name} {e.id} {e.provenance.wire_id} {e.family}" for e in ends(events))
    for event in ends(events):
        for leaf in leaves(event.arguments if isinstance(event, ToolCall) else event.raw):
            if isinstance(leaf, str) and len(leaf) > 7 and leaf not in names:
                assert leaf not in shown, leaf


def leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from leaves(inner)
    else:
        yield value


def test_the_chunking_does_not_change_the_log():
    body = (
        Chat.call(0, None, "f", '{"a":')
        + b": ping\n\n"
        + Chat.call(0, None, None, "1}")
        + Chat.end()
    )
    _, whole = logged("openai_chat", body)
    with structlog.testing.capture_logs() as cut:
        run("openai_chat", at_random(body, 9, 1))
    structlog.reset_defaults()
    assert cut == whole


# --- hostile text ---------------------------------------------------------------------------------

RENDERERS = {
    "console": lambda: structlog.dev.ConsoleRenderer(colors=False),
    "console in colour": lambda: structlog.dev.ConsoleRenderer(colors=True),
    "logfmt": structlog.processors.LogfmtRenderer,
    "json": structlog.processors.JSONRenderer,
    "key value": structlog.processors.KeyValueRenderer,
}
HOSTILE = "\x1b[41m\r\nFAKE LINE\x00\x07\x7f\x9b\u202e\u2028\u2029\u0085\u200b\ufeff"


def rendered(renderer: Any, bodies: list[tuple[str, bytes]]) -> tuple[str, int]:
    """What a renderer prints, and how many lines it was asked for."""
    asked = 0

    def count(_logger: Any, _method: str, event: Line) -> Line:
        nonlocal asked
        asked += 1
        return event

    page = io.StringIO()
    structlog.configure(
        processors=[count, structlog.processors.add_log_level, renderer],
        logger_factory=structlog.PrintLoggerFactory(file=page),
        cache_logger_on_first_use=False,
    )
    try:
        for provider, body in bodies:
            run(provider, [body])
    finally:
        structlog.reset_defaults()
    return page.getvalue(), asked


def hostile_bodies(text: str) -> list[tuple[str, bytes]]:
    """The text in every place from which it could reach a line."""
    short = text[:200]
    one_line = short.replace("\n", "").replace("\r", "")
    chat = (
        Chat.call(0, None, short or "f", "{}")
        + Chat.call(1, short, "g", '{"a"')
        + Chat.end(short or "x")
    )
    heading = json.dumps("chatcmpl-1" + short).encode()
    odd = json.dumps({"type": "odd" + short, "object": short, short: 1}).encode()
    claude = Messages.START.replace(b'"msg_1"', heading) + Messages.open(0, short, short)
    return [
        ("openai_chat", chat.replace(b'"chatcmpl-1"', heading)),
        ("openai_chat", Chat.text("a") + b"data: " + odd + b"\n\n" + Chat.end("stop")),
        ("openai_chat", Chat.call(0, short, short, "{") + b"data: not json " + one_line.encode() + b"\n\n"),
        ("anthropic", claude + Messages.close(0) + Messages.end(short or "x")),
        ("anthropic", Messages.START + b"data: " + odd + b"\n\n" + Messages.open(1, None, short) + Messages.end()),
    ]  # fmt: skip


def commanding(page: str) -> list[str]:
    """Characters of a page that move a cursor, end a line, turn or hide text."""
    bad = {
        *map(chr, range(0x20)),
        *map(chr, range(0x7F, 0xA0)),
        *"\u2028\u2029\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u200b\ufeff",
    }
    return [c for c in page if c in bad and c != "\n"]


@pytest.mark.parametrize("name", RENDERERS)
def test_hostile_text_reaches_no_line_as_it_is(name: str):
    page, asked = rendered(RENDERERS[name](), hostile_bodies(HOSTILE))
    if "colour" in name:
        page = re.sub("\x1b\\[(0|1|2|3[0-7]|9[0-7])m", "", page)  # the renderer's own
    assert asked >= 5
    assert commanding(page) == []
    assert page.count("\n") == asked
    assert not any(line.startswith("FAKE") for line in page.splitlines())


@pytest.mark.parametrize("name", ["console", "logfmt", "json", "key value"])
@given(text=st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
       | st.text(st.sampled_from("\x1b\r\n\t\x00\x9b\u2028\u202e\u0085\"'\\= {}%é"), max_size=12))  # fmt: skip
def test_any_text_of_the_wire_gives_one_clean_line_each(name: str, text: str):
    page, asked = rendered(RENDERERS[name](), hostile_bodies(text))
    assert commanding(page) == []
    assert page.count("\n") == asked


def test_a_long_text_of_the_wire_is_cut():
    events, lines = logged("openai_chat", Chat.text("a") + Chat.end("y" * 5_000))
    assert events[-1].raw_reason == "y" * 5_000
    assert all(len(str(value)) < 400 for line in lines for value in line.values())


# --- without any set-up, and with the standard library's ------------------------------------------

QUIET = """
from streamnorm import Normalizer
pipe = Normalizer("openai_chat")
calls = b",".join(b'{"index":%d,"function":{"name":"f","arguments":"{"}}' % n for n in (0, 1))
events = pipe.feed(b'data: {"choices":[{"delta":{"tool_calls":[' + calls + b"]}}]}\\n\\n")
events += pipe.close()
assert [e.kind for e in events][-3:] == ["broken_tool_call", "broken_tool_call", "failed"]
assert pipe.notes["call.id_synthetic"] == 2
"""


def python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True
    )


def events_in(lines: str) -> list[str]:
    return re.findall(r"event='([a-z_.]+)'", lines)


WARNED = ["call.id_synthetic", "tool_call.broken", "stream.failed"]


def test_without_any_logging_set_up_each_warning_of_a_stream_is_printed_once():
    done = python(QUIET)
    assert done.stdout == ""
    assert events_in(done.stderr) == WARNED
    assert len(done.stderr.splitlines()) == 3


def test_a_second_stream_says_its_own():
    done = python(QUIET + QUIET)
    assert events_in(done.stderr) == WARNED * 2


def test_without_any_logging_set_up_a_stream_without_trouble_is_silent():
    body = Chat.call(0, "call_1", "f", "{}") + Chat.end()
    done = python(f"""
from streamnorm import Normalizer
pipe = Normalizer("openai_chat")
events = pipe.feed({body!r}) + pipe.close()
assert events[-1].kind == "finish"
""")
    assert (done.stdout, done.stderr) == ("", "")


def test_the_usual_ways_of_silence_work():
    for way in (
        'logging.getLogger("streamnorm").setLevel(logging.ERROR)',
        "logging.disable(logging.WARNING)",
        'logging.getLogger("streamnorm").addHandler(logging.NullHandler())',
    ):
        assert python(f"import logging; {way}\n{QUIET}").stderr == "", way


def test_with_the_standard_library_set_up_lines_go_to_its_logger():
    done = python("import logging; logging.basicConfig(level=logging.INFO)\n" + QUIET)
    assert "WARNING:streamnorm:event='call.id_synthetic'" in done.stderr
    assert "WARNING:streamnorm:event='stream.failed'" in done.stderr
    assert events_in(done.stderr).count("call.id_synthetic") == 2  # whoever listens hears each
    assert "tool_call.started" not in done.stderr  # debug is off


def test_the_standard_level_is_obeyed():
    done = python("import logging; logging.basicConfig(level=logging.ERROR)\n" + QUIET)
    assert done.stderr == ""


def test_a_handler_of_the_application_hears_the_lines(caplog: pytest.LogCaptureFixture):
    with caplog.at_level(logging.DEBUG, logger="streamnorm"):
        run("openai_chat", [Chat.call(0, "call_1", "f", "{}") + Chat.end()])
    assert [r.name for r in caplog.records] == ["streamnorm"] * 3
    assert all("call_1" in r.getMessage() for r in caplog.records)


def test_every_provider_that_calls_tools_has_a_take_that_logs_a_call():
    for provider in CALLING:
        paths = [p for p in take_paths() if p.parent.name == provider]
        assert any(calls_of(run(provider, [load(p)[1]])) for p in paths)


def test_every_call_is_a_line_however_often_its_name_came(log):
    parts = [{"functionCall": {"id": id, "name": "f", "args": {"x": 1}}} for id in "abc"]
    pipe = Normalizer("gemini", seed=SEED)
    pipe.feed_payload({"candidates": [{"content": {"parts": parts}, "finishReason": "STOP"}]})
    pipe.close()
    assert [line["call_id"] for line in named(log, "tool_call.finished")] == ["a", "b", "c"]
