# SPDX-License-Identifier: GPL-2.0-only
"""The pictures of documents as a browser shows them."""

from pathlib import Path

import pytest

from page_world import SMALLEST, SVG_TEXTS, Opener
from ream.paths import CHECKOUT

pytestmark = pytest.mark.xdist_group("browser")

PICTURES = sorted(CHECKOUT.glob("docs/*.svg"))


@pytest.mark.parametrize("file", PICTURES, ids=lambda file: file.name)
def test_no_text_of_a_picture_leaves_it_or_lies_on_another(opener: Opener, file: Path) -> None:
    page = opener.open(file)
    assert page.evaluate(SVG_TEXTS) == []
    assert page.evaluate(SMALLEST) >= 11


def test_a_long_title_is_found_to_be_cut(opener: Opener, tmp_path: Path) -> None:
    text = PICTURES[0].read_text(encoding="utf-8")
    title = "munmap(), without freeing pages"
    longer = tmp_path / "longer.svg"
    longer.write_text(text.replace(title, f"{title}: ns a page, over the size of the folios"))
    assert opener.open(longer).evaluate(SVG_TEXTS) != []
