# SPDX-License-Identifier: GPL-2.0-only
"""The pages of judgements in a browser: on a phone and a screen, by day and by night."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from page_world import CONTRAST, CUT, OVERLAPS, SMALLEST, SVG_TEXTS, Opener
from ream.judge import html
from ream.judge.judgement import (
    CountedChange,
    Judgement,
    Listing,
    Operation,
    PatchStep,
    TimedChange,
    Wrong,
)
from ream.judge.reach import Reach, WholeReach

pytestmark = pytest.mark.xdist_group("browser")

SUBJECT = "mm/memory: fork: copy page table entries of large folios in batches of a whole folio"
RATIOS = {"slower": 1.25, "equal": 1.001, "faster": 0.061, "undecided": 0.99}
REACH = WholeReach(
    nr_functions=991,
    changed=("copy_page_range",),
    **dict.fromkeys(("added", "removed", "moved", "data", "layout"), ()),
    text_bytes=(64, 80),
    experiments=(Reach("fork", ("copy_page_range",), ("fork-4k",), 64, None),),
    nearest=None,
)


def _operation(number: int) -> Operation:
    effect = [*RATIOS][number % len(RATIOS)]
    ratio = RATIOS[effect]
    added = (number % 5 - 2) * 7.0
    steps = tuple(PatchStep(one, SUBJECT, {"instructions": added / 2}) for one in (1, 2))
    timed = TimedChange(
        ratio, ratio * 0.9, ratio * 1.1, None if effect == "undecided" else effect, 1.02, 1.03
    )
    return Operation(
        "fork",
        f"munmap-free-{4 << number}k-cold",
        f"munmap of 1 GiB, folios of {4 << number} KiB, cold, folios shuffled, pages freed",
        counted=CountedChange(
            "page",
            {"instructions": 50.0, "locked": 1.0},
            {"instructions": 50.0 + added, "locked": 1.0},
            repeats=effect != "undecided",
        ),
        timed=timed if number % 7 else None,
        functions=(("copy_present_page_of_a_large_folio", {"instructions": added}),) * 3,
        steps=steps,
    )


OLD = """        4096       0  push   %rbp
        4096       4  test   %rax,%rax
                   8  ud2
        4096      10  jne    21 <copy_page_range+0x21>
"""
NEW = """        4096       0  push   %rbp
         256       4  lock incl 0x34(%rdi)
         256      12  jne    29 <copy_page_range+0x29>
"""

RIGHT = Judgement(
    "0001-fork.patch",
    (SUBJECT, "mm: another"),
    "6.12",
    "AMD EPYC (family 25 model 1), 2 CPUs",
    REACH,
    tuple(map(_operation, range(14))),
    listings=(Listing("fork", "fork-4k", "copy_page_range", OLD, NEW),),
    notes=("a note that says more of it",),
    reproduce=f"ream judge {'0001-fork.patch ' * 8}",
)
WRONG = Judgement(
    "0002-wrong.patch",
    ("mm: a wrong patch",),
    "6.12",
    "a machine",
    REACH,
    wrong=Wrong("fork", ("a page was shared that is private", "row fork-4k, pte 17: " + "a" * 150)),
)
LISTED = tuple(
    html.Listed(
        "2026-11-25 08:10:01", f"{SUBJECT} {number}", number % 7, "It is slower. " * 9, "r.html"
    )
    for number in range(9)
)
PAGES = ("right", "wrong", "index")
SCHEMES = ("light", "dark")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("judgements")
    texts = html.render(RIGHT), html.render(WRONG), html.render_list(LISTED)
    for name, text in zip(PAGES, texts, strict=True):
        (made / f"{name}.html").write_text(text, encoding="utf-8")
    return made


@pytest.fixture
def opener(browser: Browser) -> Iterator[Opener]:
    its = Opener(browser)
    yield its
    its.close()
    assert its.faults == []


@pytest.mark.parametrize("width", [390, 1400])
@pytest.mark.parametrize("name", PAGES)
def test_nothing_is_cut_and_words_stand_out(
    opener: Opener, folder: Path, name: str, width: int
) -> None:
    page = opener.open(folder / f"{name}.html", viewport={"width": width, "height": 900})
    assert page.evaluate(CUT) == []
    assert page.evaluate(OVERLAPS) == []
    assert page.evaluate(SVG_TEXTS) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    if name == "right":
        assert page.evaluate(SMALLEST) >= 10
    for scheme in SCHEMES:
        page.emulate_media(color_scheme=scheme)
        found = page.evaluate(CONTRAST)
        assert found["seen"] > 5
        assert found["faults"] == []


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
    said = page.locator("table.sortable td:nth-of-type(3)").all_inner_texts()
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
