"""The page in a real Chromium: what a person sees, and what never happens."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("starlette", reason="the page needs the extra ui")

from streamnorm.page import work

# One Chromium for all of them, whatever the number of workers.
pytestmark = [pytest.mark.xdist_group("browser"), pytest.mark.parts]

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.conftest import Page

NARROW = (420, 880)
SPACE, LEFT, RIGHT, HOME, END, ENTER = "\ue00d", "\ue012", "\ue014", "\ue011", "\ue010", "\ue007"
CUT = "openai_chat/index_missing"
PIXEL = "R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"


def show(page: Page, take: str) -> None:
    page.go(f"inspect/{take}")
    title = take.split("/")[1].replace("_", " ")
    page.until(lambda: page.text(".take-name") == title, title)


def states(page: Page) -> list[str]:
    code = "return [...document.querySelectorAll('.call')].map((e) => e.dataset.state)"
    return list(page.js(code))


# --- the inspector --------------------------------------------------------------------------------


def test_a_take_shows_its_wire_its_events_and_its_calls(page: Page) -> None:
    show(page, "openai_responses/interleaved_calls")
    assert page.count(".frame") == 16
    assert page.texts(".call-name") == ["get_weather", "get_tides"]
    assert states(page) == ["whole", "whole"]
    assert "✓ Finished: tool_calls" in page.text(".end")
    assert page.texts(".event-kind")[0] == "stream_start"
    assert page.texts(".event-kind")[-1] == "finish"
    assert '"city": "Reykjavík"' in page.text(".call-args")
    page.shot("inspector-light")


def test_a_call_assembles_as_its_frames_come(page: Page) -> None:
    show(page, "openai_responses/interleaved_calls")
    page.press(HOME)
    page.until(lambda: states(page) == [], "nothing before the first frame")
    seen = []
    for _ in range(16):
        page.press(RIGHT)
        seen.append((tuple(states(page)), page.text(".call-args")))
    assert [s for s, _ in seen] == sorted(
        (s for s, _ in seen), key=lambda s: (len(s), s.count("whole"))
    )
    texts = [text for s, text in seen if s and s[0] == "assembling"]
    assert all(later.startswith(earlier) for earlier, later in pairwise(texts))
    assert texts[-1] == '{"city":"Reykjavík","unit":"celsius"}'  # parses, and is not yet whole
    assert seen[-1][0] == ("whole", "whole")


def test_the_cut_slider_breaks_what_is_not_whole(page: Page) -> None:
    show(page, CUT)
    assert states(page) == ["whole", "whole"]
    page.slide("#cut", 1403)
    page.until(lambda: states(page) == ["broken", "broken"], "both calls broken")
    assert "✕ Failed: truncated" in page.text(".end")
    assert page.text(".call-args") == '{"city":"Reykjavík","unit":"celsius"}'
    assert "Not to be run" in page.text(".call-why")
    assert "the wire ends here" in page.text(".cut-line")
    assert page.texts(".event-kind")[-3:] == ["broken_tool_call", "broken_tool_call", "failed"]
    page.shot("inspector-cut")
    page.one(".cut-line-words button").click()
    page.until(lambda: states(page) == ["whole", "whole"], "mended")


def test_every_place_to_cut_is_told_at_once_and_as_the_server_says(page: Page) -> None:
    show(page, CUT)
    size = int(page.js("return Number(document.getElementById('cut').max)"))
    for at in range(0, size, 173):
        page.slide("#cut", at)
        page.until(lambda at=at: f"{at:,} of" in page.text(".cut-words"), str(at))
        told = page.js(
            "return fetch(`/api/cut/openai_chat/index_missing?at=${arguments[0]}`).then((r) => r.text())",
            at,
        )
        kinds = [json.loads(e)["kind"] for e in json.loads(told)["tail"]]
        page.until(
            lambda kinds=kinds: page.texts(".event-kind")[-len(kinds) :] == kinds, f"{at}: {kinds}"
        )


def test_keys_play_pause_step_cut_and_change_the_speed(page: Page) -> None:
    show(page, "anthropic/scenario_shell")
    button = page.one(".play")
    page.press(HOME)
    page.press(SPACE)
    page.until(lambda: button.get_attribute("aria-label") == "Pause", "playing")
    page.until(lambda: not page.text(".clock").startswith("frame 0 "), "the playhead moves")
    page.press(SPACE)
    page.until(lambda: button.get_attribute("aria-label") == "Play", "paused")
    before = page.text(".clock")
    page.press(RIGHT)
    assert page.text(".clock") != before
    page.press(LEFT)
    assert page.text(".clock") == before
    page.press("+")
    assert page.js("return document.getElementById('speed').value") == "2"
    page.press(END, "[")
    page.until(lambda: "cut at" in page.text(".cut-words"), "cut by a key")
    page.press("x")
    page.until(lambda: page.text(".cut-words") == "✂ not cut", "mended by a key")
    page.press(SPACE)
    page.until(lambda: "frame 24 of 24" in page.text(".clock"), "played to the end")
    page.until(lambda: button.get_attribute("aria-label") == "Play", "stopped at the end")


@pytest.mark.parametrize(
    ("take", "words"),
    [
        ("gemini/calls_without_ids", "synthetic id"),
        ("azure_foundry/type_code_interpreter_call", "conflated id"),
        ("anthropic/parallel_calls", "natural id"),
    ],
)
def test_where_an_id_comes_from_is_said_in_words(page: Page, take: str, words: str) -> None:
    show(page, take)
    assert words in page.text(".call .badges")


def test_oddities_are_marked_where_they_happened(page: Page) -> None:
    show(page, "gemini/calls_without_ids")
    marked = (
        "return [...document.querySelectorAll('.frame:has(.note)')].map((e) => e.dataset.frame)"
    )
    assert page.js(marked) == ["0", "1"]
    assert "the wire gave no id" in page.text(".frame .note")


def test_takes_are_found_by_typing_and_chosen_by_keys(page: Page) -> None:
    page.go("inspect")
    page.press("/")
    page.press("exact numbers gemini")
    page.until(lambda: page.texts(".take-title") == ["exact numbers"], "one take found")
    page.press("\ue015", "\ue015", ENTER)  # down, down
    page.until(lambda: page.text(".take-name") == "exact numbers", "chosen")
    assert "12345678901234567890123" in page.text(
        ".call-args"
    )  # not the browser's idea of that number


def test_a_file_is_shown_like_a_take(page: Page, tmp_path: Path) -> None:
    page.go("inspect")
    file = tmp_path / "answer.sse"
    file.write_bytes(b'data: {"choices":[{"delta":{"content":"Hi"},"finish_reason":"stop"}]}\n\n')
    page.one("#file").send_keys(str(file))
    page.until(lambda: page.text(".take-name") == "answer.sse", "the file")
    assert page.text(".answer > .answer-text") == "Hi"
    file.write_bytes(b"")
    page.one("#file").send_keys(str(file))
    page.until(lambda: "empty" in page.text(".trouble"), "the complaint")
    page.complaints()  # the browser notes the refusal (400) as well


def test_a_picture_is_shown_and_nothing_that_could_act_or_be_loaded(
    page: Page, tmp_path: Path
) -> None:
    page.go("inspect")
    svg = "PHN2ZyB4bWxucz0iaHR0cDovL3d3dy53My5vcmcvMjAwMC9zdmciIG9ubG9hZD0iYWxlcnQoMSkiLz4="
    parts = [
        {"inlineData": {"mimeType": "image/gif", "data": PIXEL}},
        {"inlineData": {"mimeType": "image/svg+xml", "data": svg}},
        {"inlineData": {"mimeType": "text/html", "data": svg}},
        {"fileData": {"mimeType": "image/png", "fileUri": "javascript:alert(1)"}},
        {"fileData": {"mimeType": "image/png", "fileUri": "https://example.org/a.png"}},
    ]
    answer = {"candidates": [{"content": {"parts": parts}, "finishReason": "STOP"}]}
    file = tmp_path / "pictures.sse"
    file.write_text(f"data: {json.dumps(answer)}\n\n")
    page.one("#file").send_keys(str(file))
    page.until(lambda: page.count(".medium") == 5, "the media")
    look = (
        "return [...document.querySelectorAll('.medium img')].map((i) => [i.src, i.naturalWidth])"
    )
    page.until(lambda: page.js(look) == [[f"data:image/gif;base64,{PIXEL}", 1]], "the one picture")
    links = page.js("return [...document.querySelectorAll('.medium a')].map((a) => a.href)")
    assert links == ["https://example.org/a.png"]
    assert "image/svg+xml" in page.text(".media")
    page.shot("inspect-pictures")


def test_a_page_says_who_speaks_and_who_calls(page: Page) -> None:
    show(page, "openai_responses/two_agents")
    lines = [line.strip() for line in page.text(".answer > .answer-text").splitlines()]
    assert lines[:2] == ["main: Let me", "main/scout: High"]
    assert [text.split(" · ")[0] for text in page.texts(".call-facts")] == [
        "called by main/scout", "called by main",
    ]  # fmt: skip


def test_a_long_stream_is_shown_in_part_and_told_in_full(page: Page, tmp_path: Path) -> None:
    page.go("inspect")
    delta = '{"choices":[{"delta":{"content":"%d "},"finish_reason":%s}]}'
    lines = [delta % (n, '"stop"' if n == 2999 else "null") for n in range(3000)]
    file = tmp_path / "long.sse"
    file.write_text("".join(f"data: {line}\n\n" for line in lines))
    page.one("#file").send_keys(str(file))
    page.until(lambda: page.text(".take-name") == file.name, file.name)
    assert page.text(".clock").startswith("frame 3000 of 3000")
    assert page.count(".frame") <= 600
    assert page.text(".answer > .answer-text").split() == [str(n) for n in range(3000)]
    page.press(HOME, RIGHT)
    page.until(lambda: page.text(".frame[aria-current] .frame-number").startswith("frame 1"), "1")
    assert page.texts(".event-kind") == ["stream_start", "text_delta"]


# --- comparison -----------------------------------------------------------------------------------


def test_wires_are_compared_side_by_side(page: Page) -> None:
    page.go("compare/scenario_shell")
    page.until(lambda: page.count(".wire-column") == 3, "three wires")
    page.until(lambda: "they are the same calls" in page.text(".verdict"), "the verdict")
    page.one(".chip input[value=gemini]").click()
    page.until(lambda: page.count(".wire-column") == 4, "four wires")
    page.until(lambda: page.text(".verdict").startswith("4 wires, 2 calls each"), "the verdict")
    page.shot("compare-light")
    page.slide("#share", 60)
    page.until(lambda: "4 of 4 streams told as failed" in page.text(".verdict"), "all cut")
    assert page.count(".call[data-state=broken]") > 0
    page.shot("compare-cut")


# --- chat -----------------------------------------------------------------------------------------


def ask(page: Page, text: str) -> None:
    box = page.one("#say")
    page.until(box.is_displayed, "the box")
    box.send_keys(text + ENTER)


def idle(page: Page) -> None:
    code = "return document.querySelector('.chat')?.dataset.running === 'false'"
    page.until(lambda: page.js(code) and page.text(".chat-state").startswith("ready"), "ready")


def conversation(page: Page) -> str:
    """What is in the log, as a person reads it."""
    return str(page.js("return document.querySelector('.log')?.innerText"))


def test_a_tool_runs_when_it_is_allowed(page: Page) -> None:
    page.go("chat")
    ask(page, "Delete the old log files.")
    page.one(".approve")
    assert "delete_files" in page.text(".approval")
    page.shot("chat-approval")
    page.one(".approve").click()
    page.until(lambda: "Three old log files are gone." in page.text(".log"), "the answer")
    idle(page)
    assert '"deleted": 3' in page.text(".output")


def test_a_tool_does_not_run_when_it_is_denied(page: Page) -> None:
    page.go("chat")
    ask(page, "Delete the old log files.")
    page.one(".deny").click()
    page.until(lambda: "nothing was deleted" in page.text(".log"), "the answer")
    idle(page)
    assert '"deleted"' not in page.text(".log")


def test_a_question_outlives_a_reload_and_its_arguments_can_be_changed(page: Page) -> None:
    page.go("chat")
    ask(page, "Delete the old log files.")
    page.one(".approve")
    idle(page)  # nothing runs while it is asked
    page.driver.refresh()
    page.one(".edit").click()
    box = page.one(".edited")
    box.clear()
    box.send_keys('{"pattern": 5}')
    page.one(".approve").click()
    page.until(lambda: "the arguments do not fit" in page.text(".approval"), "asked again")
    page.one(".edit").click()
    page.one(".edited").clear()
    page.one(".edited").send_keys('{"pattern": "tmp/*"}')
    page.shot("chat-approval-edit")
    page.one(".approve").click()
    page.until(lambda: "Three old log files are gone." in page.text(".log"), "the answer")
    assert "tmp/*" in page.text(".output")
    assert page.count(".approval button") == 0


def test_who_says_something_else_leaves_the_question_unanswered(page: Page) -> None:
    page.go("chat")
    ask(page, "Delete the old log files.")
    page.one(".approve")
    idle(page)
    ask(page, "What is the weather in Oslo?")
    page.until(lambda: "Oslo: 3 °C and snow" in page.text(".log"), "the answer")
    assert "Not answered" in page.text(".approval")
    assert '"deleted"' not in page.text(".log")


def test_stop_ends_the_run_and_the_conversation_goes_on(page: Page) -> None:
    page.gate.hold_after(12)
    page.go("chat")
    ask(page, "Tell me a long story.")
    page.until(lambda: "A lighthouse" in page.text(".log"), "the story begins")
    page.one(".stop").click()
    page.until(lambda: "Stopped." in page.text(".log"), "stopped")
    idle(page)
    page.gate.open()
    ask(page, "What is the weather in Oslo?")
    page.until(lambda: "Oslo: 3 °C and snow" in page.text(".log"), "the answer")
    idle(page)
    page.shot("chat-stopped")


@pytest.mark.parametrize("chunks", [1, 5, 40])
def test_a_reload_in_mid_stream_loses_and_doubles_nothing(page: Page, chunks: int) -> None:
    from streamnorm.page.scripted import _STORY

    page.gate.hold_after(chunks)
    page.go("chat")
    ask(page, "Tell me a long story.")
    page.until(lambda: page.count(".said"), "asked")
    page.driver.refresh()
    page.until(lambda: page.count(".said") == 1, "the question is there again")
    page.one(".stop")
    page.driver.refresh()
    page.until(lambda: page.count(".said") == 1, "and again")
    page.gate.open()
    idle(page)
    assert page.texts(".turn .answer-text")[-1] == _STORY
    before = conversation(page)
    page.driver.refresh()
    idle(page)
    page.until(lambda: page.count(".turn"), "all of it")
    assert conversation(page) == before


def test_a_lost_connection_goes_on_after_the_last_entry(page: Page) -> None:
    from streamnorm.page.scripted import _STORY

    page.gate.hold_after(20)
    page.go("chat")
    ask(page, "Tell me a long story.")
    page.until(lambda: "A lighthouse" in page.text(".log"), "the story begins")
    page.js(
        "const ask = window.fetch; window.fetch = async (path, options) => {"
        "const told = await ask(path, options); window.again = [path, told.status]; return told }"
    )
    drop = next(b for b in page.all(".chat-head button") if b.text == "Drop the connection")
    drop.click()
    page.until(lambda: page.js("return window.again"), "connected again")
    path, status = page.js("return window.again")
    assert path.endswith("/log")
    assert status == 200
    page.gate.open()
    idle(page)
    assert page.texts(".turn .answer-text")[-1] == _STORY


def test_an_earlier_chat_can_be_taken_up_again(page: Page) -> None:
    page.go("chat")
    ask(page, "What is the weather in Kyoto?")
    page.until(lambda: "Kyoto: 12" in page.text(".log"), "the answer")
    idle(page)
    before = conversation(page)
    next(b for b in page.all(".chat-head button") if b.text == "New").click()
    page.until(lambda: page.count(".said") == 0, "an empty chat")
    kyoto = "return [...document.querySelectorAll('.earlier option')].find((o) => o.text.includes('Kyoto'))"
    page.until(lambda: page.js(kyoto), "the earlier chat in the list")
    page.js(kyoto).click()
    page.until(lambda: page.count(".said") == 1, "the question is there again")
    idle(page)
    assert conversation(page) == before
    page.shot("chat-earlier")


def test_a_broken_call_is_shown_as_broken_and_never_run(page: Page) -> None:
    page.go("chat")
    ask(page, "Break the stream inside a call.")
    page.until(lambda: states(page) == ["broken"], "the broken call")
    idle(page)
    assert page.count(".output") == 0
    assert "stream failed" in page.text(".turn-end")
    page.shot("chat-broken")


# --- what never happens ---------------------------------------------------------------------------

PAYLOADS = (
    "<script>window.pwned=1</script>",
    "<img src=x onerror=window.pwned=1>",
    "<svg/onload=window.pwned=1>",
    "\"><iframe srcdoc='<script>parent.pwned=1</script>'>",
    "</pre></script><script>window.pwned=1</script>",
    "javascript:window.pwned=1",
    "<a href=javascript:window.pwned=1>x</a>",
    "<style>*{display:none}</style>",
    "<math><mtext></mtext><mglyph><style><!--</style><img src onerror=window.pwned=1>",
    "{{constructor.constructor('window.pwned=1')()}}",
    "' autofocus onfocus=window.pwned=1 x='",
    "<details open ontoggle=window.pwned=1>",
    "\u202e\u2066hidden\u2069\u200b",
    "&lt;script&gt;window.pwned=1&lt;/script&gt;",
)
FOREIGN = (
    "script:not([src^='/static']), img, iframe, object, embed, math, main style, main a, "
    "main svg:not(.strip):not(.sign)"
)


def poisoned(payload: str) -> bytes:
    """A Chat stream with the payload in its text, reasoning, name, id, arguments and error."""
    function = {"name": payload, "arguments": json.dumps({payload: payload})}
    entry = {"index": 0, "id": payload, "type": "function", "function": function}
    deltas: list[dict[str, Any]] = [
        {"content": payload, "reasoning_content": payload}, {"tool_calls": [entry]}, {},
    ]  # fmt: skip
    frames = [
        {"id": payload, "model": payload, "object": "chat.completion.chunk",
         "choices": [{"index": 0, "delta": d, "finish_reason": "tool_calls" if not d else None}]}
        for d in deltas
    ]  # fmt: skip
    wire = "".join(f"data: {json.dumps(frame, ensure_ascii=False)}\n\n" for frame in frames)
    header = {"provider": "openai_chat", "proves": payload, "model": payload}
    return f": streamnorm {json.dumps(header)}\n{wire}data: [DONE]\n\n".encode()


def unharmed(page: Page) -> None:
    assert page.js("return window.pwned") is None
    assert page.count(FOREIGN) == 0
    named = (
        "return [...document.querySelectorAll('main *')].flatMap((e) => e.getAttributeNames())"
        ".filter((name) => name.startsWith('on'))"
    )
    assert page.js(named) == []


def test_text_of_the_wire_stays_text(page: Page, tmp_path: Path) -> None:
    page.go("inspect")
    for number, payload in enumerate(PAYLOADS):
        file = tmp_path / f"poisoned-{number}.sse"
        file.write_bytes(poisoned(payload))
        page.one("#file").send_keys(str(file))
        page.until(lambda file=file: page.text(".take-name") == file.name, file.name)
        page.js("document.querySelectorAll('main details').forEach((d) => { d.open = true; })")
        name = page.text(".call-name")
        assert payload in name if payload.isascii() else "\\u202e" in name
        assert "\u202e" not in page.text("main")
        assert payload in page.text(".answer") or not payload.isascii()
        unharmed(page)
        page.slide("#cut", 600)
        page.until(lambda: "cut at 600" in page.text(".cut-words"), "cut")
        unharmed(page)


def test_what_is_typed_stays_text(page: Page) -> None:
    page.go("chat")
    for payload in PAYLOADS[:3]:
        ask(page, payload)
        page.until(
            lambda payload=payload: payload in page.text(".said:last-of-type, .log"), payload
        )
        idle(page)
    unharmed(page)


def test_nothing_is_fetched_from_anywhere_else(page: Page) -> None:
    for view in ("inspect", "compare", "chat"):
        page.go(view)
        names = page.js("return performance.getEntriesByType('resource').map((e) => e.name)")
        assert names
        assert [name for name in names if not name.startswith(page.url)] == []


# --- for everybody --------------------------------------------------------------------------------

USED = ("button", "link", "textbox", "searchbox", "slider", "combobox", "checkbox", "log")


@pytest.mark.parametrize("view", ["inspect", "compare", "chat"])
def test_everything_that_can_be_used_has_a_name(page: Page, view: str) -> None:
    page.go(view)
    assert page.count("main") == page.count("nav") == page.count("header.top") == 1
    assert page.count("main h1") == 1
    tree = page.driver.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
    used = [n for n in tree if n.get("role", {}).get("value") in USED and not n["ignored"]]
    assert used
    assert [n["role"]["value"] for n in used if not n.get("name", {}).get("value")] == []
    assert page.count("[role=status]") >= 1


@pytest.mark.parametrize("view", ["inspect", "compare", "chat"])
def test_a_narrow_window_needs_no_sideways_scrolling(page: Page, view: str) -> None:
    page.size(*NARROW)
    page.go(view)
    page.until(lambda: page.count("main h1") == 1, "the view")
    assert page.js("return document.documentElement.scrollWidth <= innerWidth")
    page.shot(f"{view}-narrow")


@pytest.mark.parametrize("view", ["inspect", "compare", "chat"])
def test_dark_is_dark(page: Page, view: str) -> None:
    page.go(view)
    button = page.one("#theme-button")
    page.until(lambda: (button.text == "Dark") or button.click(), "dark")
    page.shot(f"{view}-dark")
    ground = page.js("return getComputedStyle(document.body).backgroundColor")
    assert ground == "rgb(20, 22, 26)"
    page.driver.refresh()
    page.until(lambda: page.one("#theme-button").text == "Dark", "kept over a reload")
    page.js("localStorage.clear()")


def test_the_keys_are_told(page: Page) -> None:
    page.go("inspect")
    page.press("?")
    page.until(lambda: page.js("return document.getElementById('keys').open"), "the list of keys")
    page.press("\ue00c")  # escape
    page.until(lambda: not page.js("return document.getElementById('keys').open"), "closed")
    page.press("3")
    page.until(lambda: page.count(".chat") == 1, "the chat")


# --- a server that is started again ---------------------------------------------------------------


def started(port: int, chats: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "streamnorm", "serve", "--port", str(port)]
    process = subprocess.Popen(
        [*command, "--chats", str(chats)], stdout=subprocess.PIPE, text=True, cwd=chats.parent
    )
    assert process.stdout is not None
    process.stdout.readline()  # says where it is when it listens
    return process


def ended(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.wait(timeout=20)
    assert process.stdout is not None
    process.stdout.close()


def test_a_page_goes_on_when_its_server_was_killed_and_started_again(
    page_at: Callable[[str], Page], tmp_path: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    page = page_at(f"http://127.0.0.1:{port}/")
    server = started(port, tmp_path / "chats.db")
    try:
        page.go("chat")
        ask(page, "Tell me a long story.")
        page.until(lambda: "A lighthouse" in page.text(".log"), "the story begins")
        ended(server)
        server = started(port, tmp_path / "chats.db")
        page.until(lambda: "The answer failed." in page.text(".log"), "the story was cut off")
        idle(page)
        assert page.text(".turn-end").endswith("The answer was cut off.")
        ask(page, "What is the weather in Oslo?")
        page.until(lambda: "Oslo: 3 °C and snow" in page.text(".log"), "the answer")
        idle(page)
        before = conversation(page)
        page.driver.refresh()
        page.until(lambda: page.count(".said") == 2, "all of it again")
        idle(page)
        assert conversation(page) == before
        page.shot("chat-restarted")
    finally:
        ended(server)
        page.complaints()  # of the server that was away


# --- files that take long -------------------------------------------------------------------------


def held(monkeypatch: pytest.MonkeyPatch, may_go_on: threading.Event, half: int) -> list[Any]:
    """Reading stops in the middle of a file until it may go on, or is ended. Whose budgets there were."""
    budgets: list[Any] = []
    step = work.Budget.step

    def waiting(budget: Any, at: int, frames: int = 0) -> bool:
        if budget not in budgets:
            budgets.append(budget)
        budget.done = at
        while at >= half and not may_go_on.wait(0.01) and not budget.cancelled:
            pass
        return bool(step(budget, at, frames))

    monkeypatch.setattr(work.Budget, "step", waiting)
    return budgets


def large(folder: Path, frames: int) -> Path:
    file = folder / "large.sse"
    file.write_bytes(b'data: {"choices":[]}\n\n' * frames)
    return file


def test_a_file_that_takes_long_tells_how_far_it_is_and_can_be_left(
    page: Page, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_go_on = threading.Event()
    page.go("inspect")
    before = page.text(".take-name")
    file = large(tmp_path, 1000)
    budgets = held(monkeypatch, may_go_on, file.stat().st_size // 2)
    page.one("#file").send_keys(str(file))
    page.until(lambda: "50 %" in page.text(".progress-share"), "half of it")
    assert page.text(".progress-words") == "Reading large.sse"
    page.shot("upload-progress")
    listed = page.js("return fetch('/api/takes').then((answer) => answer.ok)")
    assert listed  # the page answers others meanwhile
    page.one(".progress-cancel").click()
    page.until(lambda: not page.one(".progress").is_displayed(), "no progress")
    page.until(lambda: budgets[-1].cancelled, "the server has ended it")
    assert page.text(".take-name") == before
    assert page.js("return document.querySelector('.trouble').hidden")
    may_go_on.set()
    page.one("#file").send_keys(str(file))
    page.until(lambda: page.text(".take-name") == file.name, file.name)


def test_another_take_is_shown_in_the_place_of_one_that_takes_long(
    page: Page, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_go_on = threading.Event()
    page.go("inspect")
    file = large(tmp_path, 1000)
    budgets = held(monkeypatch, may_go_on, file.stat().st_size // 2)
    page.one("#file").send_keys(str(file))
    page.until(lambda: "50 %" in page.text(".progress-share"), "half of it")
    first = budgets[0]
    monkeypatch.undo()
    page.js("location.hash = '#/inspect/anthropic/text_only'")
    page.until(lambda: page.text(".take-name") == "text only", "the other take")
    page.until(lambda: first.cancelled, "the first one is left")
    may_go_on.set()


def test_a_file_with_too_many_frames_is_shown_in_part_and_says_so(
    page: Page, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    defaults = work.Budget.__init__.__kwdefaults__
    monkeypatch.setitem(defaults, "frames", 300)
    page.go("inspect")
    page.one("#file").send_keys(str(large(tmp_path, 1000)))
    page.until(lambda: page.text(".take-name") == "large.sse", "the file")
    assert "only the first 300 frames" in page.text(".bound")
    assert page.text(".clock").startswith("frame 300 of 300")
    page.shot("upload-in-part")
    page.js("location.hash = '#/inspect/anthropic/text_only'")
    page.until(lambda: page.text(".take-name") == "text only", "another take")
    assert page.js("return document.querySelector('.bound').hidden")
