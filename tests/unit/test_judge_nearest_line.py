# SPDX-License-Identifier: GPL-2.0-only
"""A fault of a series names a line of the patch with which it begins."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ream.judge import whole
from ream.judge.judgement import Finding
from ream.kernel.series import Patch
from ream.program.changed import Hunk
from ream.program.text import parse
from ream.program.written import Written

FILE = "mm/a.c"
BEFORE, AFTER = "one\ntwo\nthree\nfour\n", "one\nTWO\nthree\nFOUR\nfive\n"


def patch(*lines: str) -> Patch:
    text = "\n".join((f"--- a/{FILE}", f"+++ b/{FILE}", "@@ -1,4 +1,4 @@", *lines, ""))
    return Patch("a.patch", "a", f"\n{text}".encode())


def test_a_place_is_of_the_patch_that_has_a_line_of_it(tmp_path: Path) -> None:
    for tree, text in (("base", BEFORE), ("its", AFTER)):
        (tmp_path / tree / "mm").mkdir(parents=True)
        (tmp_path / tree / FILE).write_text(text)
    pair: Any = SimpleNamespace(
        base=SimpleNamespace(computer=SimpleNamespace(tree=tmp_path / "base")),
        its=SimpleNamespace(computer=SimpleNamespace(tree=tmp_path / "its")),
    )
    places = [Hunk(FILE, (2, 2), (2, 2)), Hunk(FILE, (4, 4), (4, 5))]
    first, second = patch("-two", "+TWO"), patch("-four", "+FOUR", "+five")
    assert [whole._is_of(first, one, pair) for one in places] == [True, False]
    assert [whole._is_of(second, one, pair) for one in places] == [False, True]


def test_a_place_begins_with_its_first_line_that_has_code() -> None:
    written = Written({(FILE, line): frozenset({line}) for line in (7, 9, 30)} | {("b.c", 5): {1}})
    commented, removed = Hunk(FILE, (4, 3), (5, 10)), Hunk(FILE, (20, 21), (20, 19))
    assert whole._narrowed(commented, written) == Hunk(FILE, (4, 3), (7, 9))
    assert whole._narrowed(removed, written) == removed


def test_a_comment_that_is_added_is_named_after_code() -> None:
    written = Written({(FILE, 30): frozenset({1})})
    comment, code = Hunk(FILE, (4, 3), (5, 6)), Hunk(FILE, (27, 26), (30, 30))
    by_comment, removed = Hunk(FILE, (8, 8), (9, 9)), Hunk(FILE, (20, 21), (20, 19))
    its = [whole._only_adds_text(one, written) for one in (comment, code, by_comment, removed)]
    assert its == [True, False, False, False]


def test_a_c_program_is_offered_if_it_makes_every_step() -> None:
    found = Finding("a rule", "what")
    said = [*whole._said(found, parse("p0 mmap a 4 anon private rw\np0 write a\n"), ())]
    assert said[1] == "a program of 2 steps shows it:"
    assert said[-1].startswith("`ream program --c` makes a C program")


@pytest.mark.parametrize(("step", "call"), [("swap 64M", "swapon"), ("hog 64", "hog")])
def test_a_c_program_that_leaves_out_a_step_is_not_offered(step: str, call: str) -> None:
    program = parse(f"p0 mmap a 4 anon private rw\np0 write a\n{step}\n")
    said = [*whole._said(Finding("a rule", "what"), program, ())]
    assert said[1] == "a program of 3 steps shows it:"
    assert said[-1] == f"a C program would leave out {call}, and so would not show it"
    assert not any("--c" in line for line in said)
