# SPDX-License-Identifier: GPL-2.0-only
"""Changes to judge are made by a rule, and the page of what was judged is made of its records."""

import sys
from pathlib import Path

from ream.kernel.series import load_series
from ream.paths import CHECKOUT

sys.path.insert(0, str(CHECKOUT / "tests" / "trial"))

import judged
import made
import same
import unexecuted

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


def test_patches_are_joined_in_order_without_what_does_not_apply_then(tmp_path: Path) -> None:
    (tmp_path / "mm").mkdir()
    text = "\n".join([*TEXT[:8], *["\t\t;"] * 5, *TEXT[8:]])
    (tmp_path / "mm" / "a.c").write_text(text)
    likely, barrier = made.of_tree(tmp_path, ["a.c"])
    series = [*made.joined([likely, likely, barrier, barrier], tmp_path, 3)]
    assert [(name, left) for name, _, left in series] == [("001-003", [2]), ("004-004", [])]
    (tmp_path / "series.patch").write_text(series[0][1])
    its = load_series(tmp_path / "series.patch")
    assert [one.subject for one in its.patches] == [
        "001, mm: unlikely in a.c",
        "003, mm: barrier in a.c",
    ]
    assert (tmp_path / "mm" / "a.c").read_text() == text


def test_edits_of_no_object_leave_the_tokens_as_they_are_but_for_a_name() -> None:
    its = dict(same.edits(TEXT))
    assert its.keys() == {*same.KINDS}
    assert [one.strip() for one in its["white space"]] == [one.strip() for one in TEXT]
    assert [one for one in its["a comment"] if "/*" not in one] == TEXT
    assert "\n".join(its["a name"]).replace("found_here", "found") == "\n".join(TEXT)
    elsewhere = [*TEXT, "int found;"]
    assert "a name" not in dict(same.edits(elsewhere))


def test_of_what_nothing_executes_the_edit_changes_what_is_returned() -> None:
    assert [*unexecuted.edits(TEXT, "look")] == [(10, ["\treturn found + 1;"])]
    assert [*unexecuted.edits(TEXT, "look_again")] == []


def test_the_page_is_made_of_the_records() -> None:
    assert judged.PAGE.read_text(encoding="utf-8") == judged.page(judged.rows())
