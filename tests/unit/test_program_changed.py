# SPDX-License-Identifier: GPL-2.0-only
"""Which lines a series changes, where code is near them, and how that is said."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ream.program import changed
from ream.program.changed import Hunk, Target, _with_code, by_object, hunks_of
from ream.program.coverage import Code, Function

TEXT = "".join(f"line {number}\n" for number in range(1, 31))


def hunks(tmp_path: Path, changed: str) -> list[Hunk]:
    for name, text in (("base", TEXT), ("series", changed)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "memory.c").write_text(text)
    return list(hunks_of(tmp_path / "base", tmp_path / "series", "memory.c"))


def test_a_changed_line_is_where_it_was_and_where_it_is(tmp_path: Path) -> None:
    changed = TEXT.replace("line 3\n", "").replace("line 20\n", "line 20a\nline 20b\n")
    first, second = hunks(tmp_path, changed)
    assert (first.before, first.after, str(first)) == ((3, 3), (3, 2), "memory.c:3")
    assert (second.before, second.after) == ((20, 20), (19, 20))
    assert str(second) == "memory.c:19-20"


def test_added_lines_are_behind_the_one_before_them(tmp_path: Path) -> None:
    (only,) = hunks(tmp_path, TEXT.replace("line 9\n", "line 9\nanother\n"))
    assert (only.before, only.after) == ((10, 9), (10, 10))


def test_a_file_that_only_one_of_both_has_changes_no_line(tmp_path: Path) -> None:
    assert list(hunks_of(tmp_path, tmp_path, "none.c")) == []


def test_where_no_changed_line_has_code_the_nearest_ones_are_taken() -> None:
    lines = [("memory.c", number) for number in (5, 9, 30)] + [("rmap.c", 11)]
    added = Hunk("memory.c", (11, 10), (11, 12))
    assert list(_with_code(added, lines)) == [("memory.c", 9)]
    changed = Hunk("memory.c", (4, 9), (4, 9))
    assert list(_with_code(changed, lines)) == [("memory.c", 5), ("memory.c", 9)]


def test_changed_lines_are_executed_of_which_a_block_is_met() -> None:
    early, late = (Hunk("memory.c", (at, at), (at, at)) for at in (9, 70))
    its = Target(
        frozenset(), frozenset({1, 2}), hunks={late: frozenset({2}), early: frozenset({1})}
    )
    assert its.executed({1, 2}) == [early, late]
    assert its.executed({2}) == [late]


def test_a_function_has_the_code_that_the_compiler_put_into_its_parts_and_clones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("other", "f", "f.cold", "f.isra.0", "f.part.0.cold")
    code = Code.__new__(Code)  # without a computer
    vars(code)["functions"] = tuple(
        Function("mm/a.o", name, (), (at,)) for at, name in enumerate(names)
    )
    assert code.numbers({("mm/a.o", "f")}) == frozenset({1, 2, 3, 4})
    (found,) = by_object(code, {("mm/a.o", "f")}).values()
    assert [one.name for one in found] == list(names[1:])
    its: Any = SimpleNamespace(changed=("f.isra",), added=("f.part.cold",), removed=(), data=())
    monkeypatch.setattr(changed, "differing", lambda *_: {"mm/a.o": its})
    monkeypatch.setattr(changed, "_blocks", lambda *_: ())
    computer: Any = SimpleNamespace(tree=tmp_path)
    assert Target.of(computer, computer, code, ()).functions == {("mm/a.o", "f")}
