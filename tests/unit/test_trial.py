# SPDX-License-Identifier: GPL-2.0-only
"""Changes to judge are made by a rule, and the page of what was judged is made of its records."""

import sys
from pathlib import Path

from ream.paths import CHECKOUT

sys.path.insert(0, str(CHECKOUT / "tests" / "trial"))

import judged
import made

TEXT = [
    "static int look(struct page *page)",
    "{",
    "\tint found = 0;",
    "",
    "\tif (page)",
    "\t\tlook_again(page);",
    "\tif (PageDirty(page)) {",
    "\t\tfound++;",
    "\t\tput_page(page);",
    "\t}",
    "\treturn found;",
    "}",
    "",
]


def test_edits_change_nothing_that_can_be_observed() -> None:
    its = {(kind, at + 1): lines for kind, at, lines in made.edits(TEXT)}
    assert its == {
        ("unlikely", 7): ["\tif (unlikely(PageDirty(page))) {"],
        ("barrier", 9): ["\t\tbarrier();", "\t\tput_page(page);"],
    }


def test_a_made_patch_applies(tmp_path: Path) -> None:
    (tmp_path / "mm").mkdir()
    (tmp_path / "mm" / "a.c").write_text("\n".join(TEXT))
    some = [*made.of_tree(tmp_path, ["a.c"])]
    assert len(some) == 2
    assert all(made.applies(text, tmp_path) for text in some)
    assert made.ordered(some) == made.ordered(reversed(some))


def test_the_page_is_made_of_the_records() -> None:
    assert judged.PAGE.read_text(encoding="utf-8") == judged.page(judged.rows())
