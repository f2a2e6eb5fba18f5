# SPDX-License-Identifier: GPL-2.0-only
"""The pages of compare, history and replicate in a browser: nothing is cut, and tables sort."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from page_world import WIDE, Opener, check_looks
from shipped import RECORDS, copied

pytestmark = pytest.mark.xdist_group("browser")

FORK = "20261128T232136Z-fork-native-011d"
PAIR = ("20261128T233046Z-migrate-native-6c37", "20261128T232546Z-migrate-native-a5d9")
PAGES = ("compare", "history", "replicate")


@pytest.fixture
def folder(ream: Callable[..., Any], tmp_path: Path) -> Path:
    """Pages as the commands write them."""
    for name in (FORK, *PAIR):
        copied(RECORDS / name, tmp_path / "runs" / name)
    words = {
        "compare": PAIR,
        "history": (),
        "replicate": ("fork-pte-batch-v3", "deferred-init-skylake", "--record", FORK),
    }
    for name in PAGES:
        said = ream(name, *words[name], "--runs", "runs", "--html")
        assert said.out == f"{name}.html\n", said.err
    return tmp_path


@pytest.mark.parametrize("width", [390, 1400])
def test_nothing_is_cut_and_words_stand_out(opener: Opener, folder: Path, width: int) -> None:
    for name in PAGES:
        page = opener.open(folder / f"{name}.html", viewport={"width": width, "height": 900})
        check_looks(page, width, least_words=20)
        if width == 1400:
            assert page.evaluate(WIDE) == []


def test_a_ratio_has_its_colour_and_a_heading_sorts_by_it(opener: Opener, folder: Path) -> None:
    page = opener.open(folder / "compare.html")
    colour = "(its) => getComputedStyle(its).color"
    gain = page.locator("td.faster").first.evaluate(colour)
    assert gain != page.locator("td.undecided").first.evaluate(colour)
    page.get_by_role("button", name="pooled").click()
    said = page.locator("tbody td:nth-of-type(4)").all_inner_texts()
    ratios = [float(one.split()[0]) for one in said]
    assert len(set(ratios)) > 10
    assert ratios == sorted(ratios)
