# SPDX-License-Identifier: GPL-2.0-only
"""The pages of a site in a browser: nothing is cut, and tables sort."""

from pathlib import Path

import pytest
from playwright.sync_api import Page

from page_world import SMALLEST, WIDE, Opener, check_looks
from ream.site.gathered import Gathered
from ream.site.pages import pages
from shipped import RECORDS, copied

pytestmark = pytest.mark.xdist_group("browser")

KEPT = (
    "20261128T232136Z-fork-native-011d",
    "20261128T232346Z-zone-device-native-5845",
    "20261128T234542Z-fork-native-d653",
    "20261127T152939Z-migrate-native-3e05",
    "20261128T233529Z-mprotect-native-7bcb",
)
PAGES = ("index", "fork", "migrate", "mprotect", "zone-device", "upgrades", "published", "runs")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    runs, site = (tmp_path_factory.mktemp(name) for name in ("runs", "site"))
    for name in KEPT:
        copied(RECORDS / name, runs / name)
    for name, text in pages(Gathered.of(runs, lambda _number, _of: None), of_runs=False):
        (site / name).write_text(text, encoding="utf-8")
    return site


@pytest.mark.parametrize("width", [390, 1400])
@pytest.mark.parametrize("name", PAGES)
def test_nothing_is_cut_and_no_cell_lies_on_another(
    opener: Opener, folder: Path, name: str, width: int
) -> None:
    page = opener.open(folder / f"{name}.html", viewport={"width": width, "height": 900})
    check_looks(page, width, least_words=20)
    if page.locator(".plot svg").count():
        assert page.evaluate(SMALLEST) >= 10
    if width == 1400:
        assert page.evaluate(WIDE) == []


def test_a_phone_shows_results_of_experiments_and_what_to_type(
    opener: Opener, folder: Path
) -> None:
    page = opener.open(folder / "index.html", viewport={"width": 390, "height": 900})
    mean = page.locator("#fork td span").first
    box = mean.bounding_box()
    assert box is not None
    assert box["x"] + box["width"] <= 390
    assert page.locator("main pre").inner_text() == "./ream judge my.patch"


def test_a_verdict_has_its_colour_and_the_number_beside_it_has_none(
    opener: Opener, folder: Path
) -> None:
    page = opener.open(folder / "published.html")
    colour = "(its) => getComputedStyle(its).color"
    ink = page.locator("main p").first.evaluate(colour)
    word = page.locator("td small.agrees").first
    assert word.evaluate(colour) != ink
    assert word.locator("..").evaluate(colour) == ink
    lines = page.locator("td:has(small.agrees)").all_inner_texts()
    assert any("slower" in one for one in lines)  # what was green, as it agreed


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
