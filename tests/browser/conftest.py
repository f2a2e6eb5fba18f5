# SPDX-License-Identifier: GPL-2.0-only
"""Pages of records in Debian's chromium, which is told that there is no network."""

import os
import shutil
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from page_world import Opener, draw_all
from ream.record.record import Record
from ream.report.html.page import render
from shipped import RECORDS

BROWSERS = ("chromium", "chromium-browser", "google-chrome")

Opened = Callable[..., Page]
Shared = tuple[Opened, list[str]]


# Of a module, not of the session: while playwright lives, an event loop counts as running in this
# thread, and nothing else in this process can run one of its own.
@pytest.fixture(scope="module")
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


@pytest.fixture(scope="session")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path], Path]:
    """The file of a record's page; each record's is made once."""
    directory = tmp_path_factory.mktemp("pages")

    @cache
    def made(path: Path) -> Path:
        file = directory / f"{len(list(directory.iterdir()))}.html"
        file.write_text(render(Record.load(str(path), RECORDS)), encoding="utf-8")
        return file

    return made


@pytest.fixture
def opener(browser: Browser) -> Iterator[Opener]:
    """What opens pages; at the end none may have complained, nor asked for anything."""
    its = Opener(browser)
    yield its
    its.close()
    assert its.faults == []


@pytest.fixture
def opened(opener: Opener, page_file: Callable[[Path], Path]) -> Opened:
    """Open a record's page."""
    return lambda record, **options: opener.open(page_file(RECORDS / record), **options)


@pytest.fixture(scope="module")
def _drawn(browser: Browser, page_file: Callable[[Path], Path]) -> Iterator[Shared]:
    opener = Opener(browser)

    @cache
    def page_of(record: str) -> Page:
        page = opener.open(page_file(RECORDS / record))
        draw_all(page)
        return page

    yield page_of, opener.faults
    opener.close()


@pytest.fixture
def drawn(_drawn: Shared) -> Iterator[Opened]:
    """A record's page with every part open and drawn, for tests that leave it as it is."""
    page_of, faults = _drawn
    yield page_of
    assert faults == []
