# SPDX-License-Identifier: GPL-2.0-only
"""The pages of judgements in a browser: on a phone and a screen, by day and by night."""

from pathlib import Path

import pytest

from judgement_world import RIGHT, SUBJECT, WRONG
from page_world import SMALLEST, Opener, check_looks
from ream.judge import html

pytestmark = pytest.mark.xdist_group("browser")

LISTED = tuple(
    html.Listed(
        "2026-11-25 08:10:01", f"{SUBJECT} {number}", number % 7, "It is slower. " * 9, "r.html"
    )
    for number in range(9)
)
PAGES = ("right", "wrong", "index")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("judgements")
    texts = html.render(RIGHT), html.render(WRONG), html.render_list(LISTED, home="../index.html")
    for name, text in zip(PAGES, texts, strict=True):
        (made / f"{name}.html").write_text(text, encoding="utf-8")
    return made


@pytest.mark.parametrize("width", [390, 1400])
@pytest.mark.parametrize("name", PAGES)
def test_nothing_is_cut_and_words_stand_out(
    opener: Opener, folder: Path, name: str, width: int
) -> None:
    page = opener.open(folder / f"{name}.html", viewport={"width": width, "height": 900})
    check_looks(page, width, least_words=5)
    if name == "right":
        assert page.evaluate(SMALLEST) >= 10


def test_a_loss_and_a_gain_have_colours_of_their_own_and_rows_sort(
    opener: Opener, folder: Path
) -> None:
    page = opener.open(folder / "right.html")
    colour = "(its) => getComputedStyle(its).color"
    seen = {
        name: page.locator(f"td.{name}").first.evaluate(colour)
        for name in ("slower", "faster", "undecided")
    }
    assert len(set(seen.values())) == 3
    assert page.locator("h1 span").evaluate(colour) == seen["slower"]
    assert page.locator("td.slower").first.inner_text() == "slower"
    page.get_by_role("button", name="time, ratio").click()
    said = page.locator("table.sortable td:nth-of-type(4)").all_inner_texts()
    ratios = [float(one) for one in said if one]
    assert len(ratios) == 12
    assert ratios == sorted(ratios)


def test_one_listing_marks_what_changes_and_not_what_moves(opener: Opener, folder: Path) -> None:
    page = opener.open(folder / "right.html")
    kinds = ("kept", "removed", "added")
    lines = {one: page.locator(f".listing .{one}").all_inner_texts() for one in kinds}
    texts = {name: [line.split()[-2:] for line in its] for name, its in lines.items()}
    assert [one[0] for one in texts["kept"]] == ["push", "29"]  # a jump that only moved
    assert [line.split()[0] for line in lines["removed"]] == ["-", "-"]
    assert [line.split() for line in lines["added"]] == [["+", "256", "lock", "incl", "0x34(%rdi)"]]


def test_a_title_is_the_subject_of_the_patch(opener: Opener, folder: Path) -> None:
    assert opener.open(folder / "right.html").title() == (
        f"{SUBJECT} and 1 other patch: regression"
    )
    assert opener.open(folder / "wrong.html").title() == "mm: a wrong patch: wrong"
