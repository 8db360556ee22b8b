"""What the browser tests share: the real server in a thread, one real Chromium, and a gate.

Nobody sleeps here. The gate holds the scripted model after so many chunks, so that "in the middle of
the stream" is a place and not a moment; the driver waits for what the page shows.

Left out, with the reason, where Chromium, its driver, Selenium or the extra ``ui`` is missing.
STREAMNORM_SHOTS=DIR keeps a picture of every view that a test names.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

RECORDINGS = Path(__file__).resolve().parents[3] / "recordings"
CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--disable-dev-shm-usage",
)  # fmt: skip
WIDE, NARROW = (1440, 900), (420, 880)
PATIENCE = 20  # seconds until a condition that does not come true fails the test


def _found() -> tuple[str, str]:
    browser = next((path for name in CHROMIUM if (path := shutil.which(name))), None)
    driver = shutil.which("chromedriver")
    if browser is None or driver is None:
        pytest.skip("no Chromium here: install chromium and chromium-driver")
    for module in ("selenium", "starlette", "uvicorn"):
        pytest.importorskip(module, reason=f"the browser tests need {module}")
    return browser, driver


# --- the server -----------------------------------------------------------------------------------


class Gate:
    """Lets so many chunks of the scripted model pass, then holds it until it is opened."""

    def __init__(self) -> None:
        self._left: int | None = None
        self._opened: asyncio.Event | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def wait(self, seconds: float) -> None:
        self._loop = asyncio.get_running_loop()
        if self._left is None:
            return
        if self._left == 0:
            self._opened = self._opened or asyncio.Event()
            await self._opened.wait()
        else:
            self._left -= 1

    def hold_after(self, chunks: int) -> None:
        self._left, self._opened = chunks, None

    def open(self) -> None:
        self._left = None
        if self._loop is not None and self._opened is not None:
            self._loop.call_soon_threadsafe(self._opened.set)


@dataclass
class Served:
    url: str
    gate: Gate


def serving(gate: Gate, **options: Any) -> Iterator[Served]:
    """The server in a thread, on a free port, until it is not needed any more."""
    import uvicorn

    from streamnorm.page.app import create_app
    from streamnorm.page.scripted import Scripted
    from streamnorm.page.takes import Takes

    bound = socket.create_server(("127.0.0.1", 0))
    app = create_app(Takes(RECORDINGS), scripted=Scripted(wait=gate.wait), **options)
    config = uvicorn.Config(
        app, log_level="error", timeout_graceful_shutdown=1, lifespan="on", ws="none"
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=lambda: server.run(sockets=[bound]))
    thread.start()
    yield Served(f"http://127.0.0.1:{bound.getsockname()[1]}/", gate)
    gate.open()
    server.should_exit = True
    thread.join()
    bound.close()


@pytest.fixture(scope="session")
def served() -> Iterator[Served]:
    _found()
    yield from serving(Gate())


# --- the browser ----------------------------------------------------------------------------------


class Page:
    """A page in Chromium: go somewhere, look, press keys, wait until something is so."""

    def __init__(self, driver: Any, served: Served) -> None:
        self.driver = driver
        self.url = served.url
        self.gate = served.gate

    def go(self, where: str) -> None:
        """Load the page afresh at this view."""
        self.driver.get("about:blank")
        self.driver.get(f"{self.url}#/{where}")
        ready = "return document.body.dataset.ready === arguments[0]"
        self.until(lambda: self.js(ready, where.split("/")[0]), "the view")

    def js(self, code: str, *arguments: Any) -> Any:
        return self.driver.execute_script(code, *arguments)

    def all(self, css: str) -> list[Any]:
        return list(self.driver.find_elements("css selector", css))

    def one(self, css: str) -> Any:
        self.until(lambda: self.all(css), css)
        return self.all(css)[0]

    def text(self, css: str) -> str:
        code = "return document.querySelector(arguments[0])?.textContent ?? ''"
        return str(self.js(code, css))

    def texts(self, css: str) -> list[str]:
        code = "return [...document.querySelectorAll(arguments[0])].map((e) => e.textContent)"
        return list(self.js(code, css))

    def count(self, css: str) -> int:
        return int(self.js("return document.querySelectorAll(arguments[0]).length", css))

    def press(self, *keys: str) -> None:
        """Keys as a person presses them, wherever the focus is."""
        from selenium.webdriver import ActionChains

        ActionChains(self.driver).send_keys(*keys).perform()

    def slide(self, css: str, value: int) -> None:
        """Put a slider where a pointer would."""
        self.js(
            "const s = document.querySelector(arguments[0]); s.value = arguments[1];"
            "s.dispatchEvent(new Event('input', {bubbles: true}))",
            css, value,
        )  # fmt: skip

    def until(self, so: Callable[[], Any], what: str) -> Any:
        from selenium.webdriver.support.ui import WebDriverWait

        return WebDriverWait(self.driver, PATIENCE, 0.02).until(lambda _: so(), f"never: {what}")

    def size(self, width: int, height: int) -> None:
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)

    def shot(self, name: str) -> None:
        """Keep a picture, if somebody wants to look at it."""
        if folder := os.environ.get("STREAMNORM_SHOTS"):
            Path(folder).mkdir(parents=True, exist_ok=True)
            self.js(
                "document.getAnimations().forEach((a) => { try { a.finish() } catch { a.cancel() } })"
            )
            self.driver.save_screenshot(str(Path(folder) / f"{name}.png"))

    def complaints(self) -> list[str]:
        """What the browser itself found wrong: script errors, refused resources, CSP violations."""
        return [str(e["message"]) for e in self.driver.get_log("browser") if e["level"] == "SEVERE"]


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    browser, driver = _found()
    from selenium import webdriver
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service

    options = Options()
    options.binary_location = browser
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('chromium')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    options.set_capability("unhandledPromptBehavior", "ignore")
    started = webdriver.Chrome(options=options, service=Service(driver))
    yield started
    started.quit()


@pytest.fixture
def page(chromium: Any, served: Served) -> Iterator[Page]:
    page = Page(chromium, served)
    page.gate.open()
    page.size(*WIDE)
    chromium.get("about:blank")
    page.complaints()
    yield page
    page.gate.open()
    assert page.complaints() == []


@pytest.fixture
def page_at(chromium: Any) -> Callable[[str], Page]:
    """A page of a server that the test starts by itself."""
    return lambda url: Page(chromium, Served(url, Gate()))
