# SPDX-License-Identifier: GPL-2.0-only
"""The list of wrong lines is of this checkout, and each is another line than the right one."""

import shutil
from pathlib import Path

import pytest

from mutate import MOVED, PLACES, Mutation, choose, listed
from ream.paths import CHECKOUT


@pytest.mark.parametrize(
    "one", [one for name in PLACES for one in listed(name)], ids=lambda one: one.file
)
def test_a_listed_line_is_there_once_and_becomes_the_wrong_one(
    one: Mutation, tmp_path: Path
) -> None:
    copy = tmp_path / one.file
    copy.parent.mkdir(parents=True)
    shutil.copyfile(CHECKOUT / one.file, copy)
    one.apply(tmp_path)
    before = (CHECKOUT / one.file).read_text(encoding="utf-8").splitlines()
    after = copy.read_text(encoding="utf-8").splitlines()
    changed = [pair for pair in zip(before, after, strict=True) if pair[0] != pair[1]]
    assert [tuple(line.strip() for line in pair) for pair in changed] == [(one.right, one.wrong)]


def test_the_rule_takes_every_nth_comparison_and_changes_its_operator(tmp_path: Path) -> None:
    folder = tmp_path / "lab" / "ream" / "measure"
    folder.mkdir(parents=True)
    lines = ["a = 1 < 2", "b = 1 == 2", "c = 1 in (2,)", "d = 1 is not None", "same = 1 < 2"]
    (folder / "one.py").write_text("\n".join([*lines, "same = 1 < 2"]))
    assert [one.wrong for one in choose(tmp_path, 4)] == [
        "a = 1 <= 2",
        "b = 1 != 2",
        "c = 1 not in (2,)",
        "d = 1 is None",
    ]
    assert [one.wrong for one in choose(tmp_path, 2)] == ["b = 1 != 2", "d = 1 is None"]


def test_in_c_the_first_comparison_of_a_line_of_code_is_changed(tmp_path: Path) -> None:
    folder = tmp_path / "experiments" / "compact" / "native"
    folder.mkdir(parents=True)
    lines = ["#if A < B", "/* a < b", " * a == b */", "if (a < b && c == d)", "\ta = b;", "x != y;"]
    (folder / "one.c").write_text("\n".join(lines))
    assert [one.wrong for one in choose(tmp_path, 2, MOVED)] == ["if (a <= b && c == d)", "x == y;"]


def test_a_line_that_is_not_there_once_is_refused(tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text("a = 1\na = 1\n")
    for right, nr in (("a = 1", 2), ("b = 1", 0)):
        with pytest.raises(ValueError, match=f"has this line {nr} times"):
            Mutation("one.py", right, "a = 2").apply(tmp_path)
