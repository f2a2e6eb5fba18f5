# SPDX-License-Identifier: GPL-2.0-only
"""The pages of a site in a browser: nothing is cut, and tables sort."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from page_world import CUT, OVERLAPS, Opener
from ream.site.gathered import Gathered
from ream.site.pages import pages
from shipped import RECORDS, copied

pytestmark = pytest.mark.xdist_group("browser")

KEPT = (
    "20261128T232136Z-fork-native-011d",
    "20261128T232346Z-zone-device-native-5845",
    "20261128T234542Z-fork-native-d653",
)
PAGES = ("index", "fork", "mm", "upgrades", "published", "runs")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    runs, site = (tmp_path_factory.mktemp(name) for name in ("runs", "site"))
    for name in KEPT:
        copied(RECORDS / name, runs / name)
    for name, text in pages(Gathered.of(runs, lambda _number, _of: None), of_runs=False):
        (site / name).write_text(text, encoding="utf-8")
    return site


@pytest.fixture
def opener(browser: Browser) -> Iterator[Opener]:
    its = Opener(browser)
    yield its
    its.close()
    assert its.faults == []


@pytest.mark.parametrize("width", [390, 1400])
@pytest.mark.parametrize("name", PAGES)
def test_nothing_is_cut_and_no_cell_lies_on_another(
    opener: Opener, folder: Path, name: str, width: int
) -> None:
    page = opener.open(folder / f"{name}.html", viewport={"width": width, "height": 900})
    assert page.evaluate(CUT) == []
    assert page.evaluate(OVERLAPS) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_a_heading_sorts_by_numbers_up_and_down(opener: Opener, folder: Path) -> None:
    page = opener.open(folder / "fork.html")
    table = page.locator("table").first
    table.locator("thead th").nth(2).get_by_role("button").click()
    up = numbers(page)
    assert up == sorted(up)
    table.locator("thead th").nth(2).get_by_role("button").click()
    assert numbers(page) == up[::-1]
    assert len(set(up)) > 20


def numbers(page: Page) -> list[float]:
    cells = page.locator("table").first.locator("tbody td:nth-of-type(2)[data-value]")
    return [float(one) for one in cells.evaluate_all("all => all.map((one) => one.dataset.value)")]
