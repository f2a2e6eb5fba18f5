# SPDX-License-Identifier: GPL-2.0-only
"""Judgements of patches whose effect is known."""

import json
import re
from pathlib import Path

import pytest

from ream.paths import EXPERIMENTS

PATCHES = Path(__file__).parent / "patches"

QUICK = ("--minutes", "0", "--verify-minutes", "0")

# Minutes of compiling, unless it was done before.
pytestmark = [pytest.mark.vm, pytest.mark.xdist_group("reach")]


def test_the_first_wrong_patch_of_a_series_is_named(ream, tmp_path: Path) -> None:
    wrong = EXPERIMENTS / "fork/wrong/03-pinned-copy-without-uffd-wp.patch"
    for number, patch in enumerate(
        (PATCHES / "no-change.patch", wrong, PATCHES / "not-executed.patch"), 1
    ):
        (tmp_path / f"{number:04}.patch").write_bytes(patch.read_bytes())
    ran = ream("judge", str(tmp_path), *QUICK, "--json")
    assert ran.code == 5, ran.err
    its = json.loads(ran.out)
    assert its["wrong"]["experiment"] == "fork"
    assert its["wrong"]["first_patch"][0] == 2
    assert "the child's entry" in its["wrong"]["lines"][0]


def test_a_locked_operation_more_is_a_regression_of_what_is_executed(ream, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    asked = ("judge", str(PATCHES / "count-locked.patch"), *QUICK, "--html", str(page), "--json")
    ran = ream(*asked)
    assert ran.code == 1, ran.err
    its = json.loads(ran.out)
    assert {one["outcome"] for one in its["operations"]} <= {"more", "same"}
    assert any(one["counted"]["after"]["locked"] >= 1 for one in its["operations"])
    assert all(one["functions"] for one in its["operations"] if one["outcome"] == "more")
    text = page.read_text()
    assert "<svg" in text
    assert re.search(r'<span class="added">\+ +\d+ .*\block\b', text)


def test_a_comment_changes_nothing(ream) -> None:
    ran = ream("judge", str(PATCHES / "no-change.patch"))
    assert ran.code == 0, ran.err
    assert "Nothing changes: the code and data of mm/m" in ran.out


@pytest.mark.parametrize("patch", ["count-moved", "not-executed"])
def test_what_changes_nothing_that_is_executed_is_undecided(ream, patch: str) -> None:
    ran = ream("judge", str(PATCHES / f"{patch}.patch"), "--json")
    assert ran.code == 4, ran.err
    its = json.loads(ran.out)
    assert its["operations"] == []
    assert its["reach"]["nearest"]
