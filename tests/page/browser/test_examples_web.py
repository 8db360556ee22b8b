"""The React examples, built and run: the real clients in a real browser against the real server.

Needs what ``npm install --legacy-peer-deps`` puts into a folder named by STREAMNORM_WEB (a copy of
``examples/web``), or into ``examples/web`` itself; left out where that was not done.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.page.browser.conftest import Gate, Page, Served, serving

# One Chromium for all of them, whatever the number of workers.
pytestmark = [pytest.mark.xdist_group("browser"), pytest.mark.parts]

if TYPE_CHECKING:
    from starlette.routing import BaseRoute

SOURCES = Path(__file__).resolve().parents[3] / "examples" / "web"
ENTER = "\ue007"
SELECT_ALL, RELEASE = "\ue009", "\ue000"  # the control key, and no key any more


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = Path(os.environ.get("STREAMNORM_WEB", SOURCES))
    vite = folder / "node_modules" / "vite" / "bin" / "vite.js"
    node = shutil.which("node")
    if node is None or not vite.exists():
        pytest.skip(
            "no node packages: npm install in examples/web, or name the folder: STREAMNORM_WEB"
        )
    here = tmp_path_factory.mktemp("web") / "web"
    shutil.copytree(SOURCES, here, ignore=shutil.ignore_patterns("node_modules", "dist"))
    (here / "node_modules").symlink_to((folder / "node_modules").resolve())
    done = subprocess.run(
        [node, str(vite), "build"], cwd=here, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return here / "dist"


@pytest.fixture(scope="module")
def site(built: Path) -> Iterator[Served]:
    from starlette.routing import Mount
    from starlette.staticfiles import StaticFiles

    routes: list[BaseRoute] = [Mount("/web", StaticFiles(directory=built))]
    yield from serving(Gate(), more=routes)


@pytest.fixture
def web(chromium: Any, site: Served) -> Iterator[Page]:
    page = Page(chromium, site)
    page.gate.open()
    page.size(900, 800)
    chromium.get("about:blank")
    page.complaints()
    yield page
    page.gate.open()
    assert page.complaints() == []


def ask(page: Page, text: str) -> None:
    page.one("form input").send_keys(text + ENTER)


def at_rest(page: Page) -> None:
    page.until(lambda: page.count("form[data-busy=false]") == 1, "at rest")


@pytest.mark.parametrize("name", ["ai-sdk", "ag-ui"])
def test_the_client_shows_calls_results_and_the_answer(web: Page, name: str) -> None:
    web.driver.get(f"{web.url}web/{name}.html")
    ask(web, "What is the weather in Oslo and Lima?")
    web.until(lambda: "Lima: 19 °C and fog" in web.text("main"), "the answer")
    at_rest(web)
    assert web.texts("section.tool b") == ["get_weather", "get_weather"]
    assert web.count("[role=alert]") == 0
    ask(web, "Break the stream inside a call.")
    web.until(lambda: web.count("[role=alert]") > 0, "the failure is told")
    at_rest(web)
    web.shot(f"react-{name}")


def shown(page: Page, css: str) -> list[Any]:
    """Of each picture, how wide it is; 0 if it could not be shown."""
    code = "return [...document.querySelectorAll(arguments[0])].map((e) => e.naturalWidth)"
    return list(page.js(code, css))


@pytest.mark.parametrize("name", ["ai-sdk", "ag-ui"])
def test_a_picture_that_the_model_made_is_shown_also_after_a_reload(web: Page, name: str) -> None:
    web.driver.get(f"{web.url}web/{name}.html")
    ask(web, "Draw a picture.")
    web.until(lambda: shown(web, "article.assistant img") == [96], "the picture")
    at_rest(web)
    assert "A harbour at night." in web.text("main")
    web.shot(f"react-picture-{name}")
    web.driver.refresh()
    web.until(lambda: shown(web, "article.assistant img") == [96], "the picture again")
    assert web.count("[role=alert]") == 0


ACTS = "PHNjcmlwdD5wYXJlbnQuaGFja2VkPXRydWU8L3NjcmlwdD4="  # <script>parent.hacked=true</script>
FILES = [
    {"url": f"data:image/svg+xml;base64,{ACTS}", "mediaType": "image/svg+xml"},
    {"url": f"data:text/html;base64,{ACTS}", "mediaType": "text/html"},
    {"url": f"data:text/html;base64,{ACTS}", "mediaType": "image/png"},
    {"url": "javascript:window.hacked=true", "mediaType": "image/png"},
    {"url": "data:text/html,<script>window.hacked=true</script>", "mediaType": "text/html"},
    {"url": "https://example.invalid/a.zip", "mediaType": "application/zip"},
    {"url": "data:audio/wav;base64,UklGRg==", "mediaType": "audio/wav"},
]


def test_a_file_that_could_act_is_a_link_to_save_or_only_named(web: Page) -> None:
    files = [{"type": "file", **file} for file in FILES]
    kept = [{"id": "m1", "role": "assistant", "parts": files}]
    web.driver.get(f"{web.url}web/ai-sdk.html")
    web.js("sessionStorage.setItem('chat-of-files', arguments[0])", json.dumps(kept))
    web.driver.get("about:blank")
    web.driver.get(f"{web.url}web/ai-sdk.html#chat-of-files")
    web.until(lambda: web.count("article.assistant p") == 6, "the files")
    links = "return [...document.querySelectorAll('article a')].map((a) => [a.href, a.download])"
    saved = f"data:application/octet-stream;base64,{ACTS}"
    assert web.js(links) == [
        [saved, "file"], [saved, "file"], [saved, "file"], ["https://example.invalid/a.zip", ""],
    ]  # fmt: skip
    assert web.texts("article p") == [
        "A file (image/svg+xml)", "A file (text/html)", "A file (image/png)", "A file (image/png)",
        "A file (text/html)", "https://example.invalid/a.zip",
    ]  # fmt: skip
    assert (web.count("article img, article iframe, article object"), web.count("audio")) == (0, 1)
    assert web.js("return window.hacked ?? null") is None
    said = web.complaints()  # the server of this test lets no page play a sound
    assert ["media-src" in line for line in said] == [True] * len(said)


def asked(page: Page) -> Any:
    """The question, when it is asked and nothing runs; its buttons by what they say."""
    page.until(lambda: page.count(".approval") == 1, "the question")
    at_rest(page)
    assert '"deleted"' not in page.text("main")
    return {button.text: button for button in page.all(".approval button")}


@pytest.mark.parametrize("name", ["ai-sdk", "ag-ui"])
def test_a_tool_runs_when_it_is_allowed_also_after_a_reload(web: Page, name: str) -> None:
    web.driver.get(f"{web.url}web/{name}.html")
    ask(web, "Delete the old log files.")
    asked(web)
    web.shot(f"react-approval-{name}")
    web.driver.refresh()
    asked(web)["Allow"].click()
    web.until(lambda: "Three old log files are gone." in web.text("main"), "the answer")
    at_rest(web)
    assert '"deleted":3' in web.text("main")
    assert (web.count(".approval"), web.count("[role=alert]")) == (0, 0)


@pytest.mark.parametrize("name", ["ai-sdk", "ag-ui"])
def test_a_tool_does_not_run_when_it_is_denied(web: Page, name: str) -> None:
    web.driver.get(f"{web.url}web/{name}.html")
    ask(web, "Delete the old log files.")
    asked(web)["Deny"].click()
    web.until(lambda: "nothing was deleted" in web.text("main"), "the answer")
    at_rest(web)
    assert '"deleted"' not in web.text("main")
    ask(web, "What is the weather in Oslo?")
    web.until(lambda: "Oslo: 3 °C and snow" in web.text("main"), "the next answer")


@pytest.mark.parametrize("name", ["ai-sdk", "ag-ui"])
def test_who_says_something_else_has_not_agreed(web: Page, name: str) -> None:
    web.driver.get(f"{web.url}web/{name}.html")
    ask(web, "Delete the old log files.")
    asked(web)
    ask(web, "What is the weather in Oslo?")
    web.until(lambda: "Oslo: 3 °C and snow" in web.text("main"), "the next answer")
    at_rest(web)
    assert (web.count(".approval"), web.count("[role=alert]")) == (0, 0)
    assert '"deleted"' not in web.text("main")


@pytest.mark.parametrize("name", ["ai-sdk", "ag-ui"])
def test_a_tool_runs_with_the_arguments_that_a_person_gave(web: Page, name: str) -> None:
    web.driver.get(f"{web.url}web/{name}.html")
    ask(web, "Delete the old log files.")
    buttons = asked(web)
    box = web.one(".approval input")
    box.send_keys(SELECT_ALL, "a", RELEASE, '{"pattern":"tmp/*"}')
    buttons["Allow"].click()
    web.until(lambda: "Three old log files are gone." in web.text("main"), "the answer")
    assert '"pattern":"tmp/*","deleted":3' in web.text("main").replace('": ', '":')
    at_rest(web)


@pytest.mark.parametrize("name", ["ai-sdk", "ag-ui"])
def test_the_client_can_stop(web: Page, name: str) -> None:
    web.gate.hold_after(15)
    web.driver.get(f"{web.url}web/{name}.html")
    ask(web, "Tell me a long story.")
    web.until(lambda: "A lighthouse" in web.text("main"), "the story begins")
    web.one("form button[type=button]").click()
    at_rest(web)
    web.gate.open()
    ask(web, "What is the weather in Oslo?")
    web.until(lambda: "Oslo: 3 °C and snow" in web.text("main"), "the next answer")


def test_a_reload_in_mid_stream_loses_and_doubles_nothing(web: Page) -> None:
    from streamnorm.page.scripted import _STORY

    web.gate.hold_after(15)
    web.driver.get(f"{web.url}web/ai-sdk.html")
    ask(web, "Tell me a long story.")
    web.until(lambda: "A lighthouse" in web.text("main"), "the story begins")
    web.driver.refresh()
    web.until(lambda: "A lighthouse" in web.text("main"), "the story goes on")
    web.gate.open()
    at_rest(web)
    web.until(lambda: web.texts("article.assistant p") == [_STORY], "the story, once")
