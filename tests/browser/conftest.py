# SPDX-License-Identifier: GPL-2.0-only
"""Pages of records in Debian's chromium, which is told that there is no network."""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, Request, Route, sync_playwright

from ream.paths import CHECKOUT
from ream.record.record import Record
from ream.report.html.page import render

RECORDS = CHECKOUT / "docs" / "records"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")

Opened = Callable[..., Page]


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    program = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    if program is None:
        reason = "chromium: not installed; `make setup` as root installs it"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    with sync_playwright() as playwright:
        # Root, whom containers run tests as, cannot have chromium's sandbox.
        started = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture
def opened(browser: Browser, tmp_path: Path) -> Iterator[Opened]:
    """Open a record's page; at the end it must not have complained, nor asked for anything."""
    faults: list[str] = []

    def asks(route: Route, request: Request) -> None:
        if request.url.startswith(("file:", "data:")):
            route.continue_()
        else:
            faults.append(f"asks for {request.url}")
            route.abort()

    def says(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            faults.append(f"{message.type}: {message.text}")

    contexts = []

    def open_page(record: str | Path, **options: object) -> Page:
        path = RECORDS / record
        file = tmp_path / f"{path.name}.html"
        file.write_text(render(Record.load(str(path), RECORDS)), encoding="utf-8")
        context = browser.new_context(offline=True, **options)  # type: ignore[arg-type]
        contexts.append(context)
        page = context.new_page()
        page.route("**/*", asks)
        page.on("console", says)
        page.on("pageerror", lambda error: faults.append(f"error: {error}"))
        page.goto(file.as_uri())
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert faults == []
