"""A real browser for tests of pages: Chromium, driven by Playwright.

The fixtures are imported by ``tests/conftest.py``. Tests that use them are skipped on a machine
without Chromium or Chrome. ``DGT_BROWSER`` may name the program.
"""

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
ON_MACOS = "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"
FLAGS = [
    "--no-sandbox",  # the tests may run as root
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
LOCAL = ("file:", "data:", "blob:", "about:")


@dataclass
class Tab:
    """A tab of the browser, and what has happened in it."""

    page: Any
    """The Playwright page."""
    requests: list[str] = field(default_factory=list)
    """Addresses that the page has asked the network for."""
    errors: list[str] = field(default_factory=list)
    """Errors and warnings on the console, uncaught exceptions and dialogs, such as ``alert``."""

    def watch(self) -> None:
        """Starts to record."""
        self.page.on("request", self._request)
        self.page.on("console", self._console)
        self.page.on("pageerror", self._exception)
        self.page.on("dialog", self._dialog)

    def _request(self, request: Any) -> None:
        if not request.url.startswith(LOCAL):
            self.requests.append(request.url)

    def _console(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.errors.append(f"{message.type}: {message.text}")

    def _exception(self, error: Any) -> None:
        where = getattr(error, "stack", None) or ""
        self.errors.append(f"exception: {error}\n{where}".rstrip())

    def _dialog(self, dialog: Any) -> None:
        self.errors.append(f"dialog: {dialog.message}")
        dialog.dismiss()


OpenTab = Callable[..., Tab]


def find_browser() -> str | None:
    """Returns the program to start, if there is one."""
    if named := os.environ.get("DGT_BROWSER"):
        return named
    found = (shutil.which(name) for name in PROGRAMS)
    return next(filter(None, found), ON_MACOS if Path(ON_MACOS).is_file() else None)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A running browser. Its scope is a module, as its event loop blocks those of other tests."""
    playwright = pytest.importorskip("playwright.sync_api")
    program = find_browser()
    if program is None:
        pytest.skip("needs a browser: install Chromium, or set DGT_BROWSER to its program")
    with playwright.sync_playwright() as driver:
        running = driver.chromium.launch(executable_path=program, headless=True, args=FLAGS)
        yield running
        running.close()


@pytest.fixture
def open_tab(browser: Any) -> Iterator[OpenTab]:
    """A function that opens an empty tab.

    Its keyword arguments are those of Playwright's ``new_context``, such as
    ``color_scheme="dark"`` or ``viewport={"width": 400, "height": 800}``.
    """
    contexts = []

    def open_(**options: Any) -> Tab:
        context = browser.new_context(**options)
        contexts.append(context)
        tab = Tab(context.new_page())
        tab.watch()
        return tab

    yield open_
    for context in contexts:
        context.close()
