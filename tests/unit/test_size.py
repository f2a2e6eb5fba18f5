# SPDX-License-Identifier: GPL-2.0-only
"""What a change adds to code and data is told by symbol, and what only moves adds nothing."""

import subprocess
from pathlib import Path

from ream.kernel.size import Grown, SizeChange, compare, sizes_of
from ream.session.size import lines

SOURCE = """\
static const int primes[] = { 2, 3, 5, 7 };
int counter = 7;
int zeroed[16];
int outside(int);
int prime(int number) { return primes[number & 3]; }
int last(int kind) { counter += kind; return outside(kind) - 1; }
"""
FLAGS = ("-O2", "-fno-pie", "-mcmodel=kernel", "-ffreestanding", "-fno-inline", "-c")
LONGER = "int last(int kind) { outside(1); outside(2); counter += kind; return outside(kind) - 1; }"


def compiled(where: Path, text: str) -> Path:
    where.mkdir()
    (where / "code.c").write_text(text)
    subprocess.run(["gcc", *FLAGS, "code.c", "-o", "code.o"], cwd=where, check=True)
    return where / "code.o"


def change(tmp_path: Path, text: str) -> SizeChange:
    before, after = compiled(tmp_path / "before", SOURCE), compiled(tmp_path / "after", text)
    return compare({"mm/code.o": before}, {"mm/code.o": after})


def test_symbols_are_of_the_kind_of_their_section(tmp_path: Path) -> None:
    symbols, sections = sizes_of(compiled(tmp_path / "one", SOURCE))
    assert symbols["rodata", "primes"] == 16
    assert symbols["data", "counter"] == 4
    assert symbols["data", "zeroed"] == 64
    assert symbols["text", "prime"] > 0
    assert sections["data"] == 68
    assert sections["text"] >= symbols["text", "prime"] + symbols["text", "last"]


def test_a_function_that_grows_is_named_with_both_sizes(tmp_path: Path) -> None:
    found = change(tmp_path, SOURCE.replace(SOURCE.splitlines()[-1], LONGER))
    (grown,) = found.symbols
    assert (grown.kind, grown.name) == ("text", "last")
    assert 0 < grown.before < grown.after
    before, after = found.totals["text"]
    assert after - before >= grown.delta
    assert found.totals["rodata"] == (16, 16)


def test_what_is_added_and_what_goes_has_no_size_on_the_other_side(tmp_path: Path) -> None:
    found = change(tmp_path, SOURCE.replace("int prime(", "int another("))
    by_name = {one.name: one for one in found.symbols}
    assert by_name["prime"].after == by_name["another"].before == 0
    assert by_name["prime"].before == by_name["another"].after > 0


def test_lines_that_move_change_no_size(tmp_path: Path) -> None:
    first, *others = SOURCE.splitlines()
    moved = "\n".join(["", "", *others[:1], "", first, *others[1:], ""])
    assert change(tmp_path, moved).symbols == ()


def test_objects_that_only_one_build_has_count(tmp_path: Path) -> None:
    only = compiled(tmp_path / "only", SOURCE)
    found = compare({}, {"mm/code.o": only})
    assert found.differing == ("mm/code.o",)
    assert found.totals["data"] == (0, 68)


def test_the_largest_changes_are_listed_and_the_others_summed_up() -> None:
    symbols = (
        Grown("text", "copy_page_range", 8175, 7223),
        Grown("rodata", "names", 0, 96),
        Grown("text", "unmap_page_range", 6309, 6290),
        Grown("text", "do_swap_page", 10, 15),
    )
    totals = {"text": (20000, 19034), "rodata": (16, 112), "data": (0, 0)}
    found = SizeChange(74, ("mm/memory.o",), totals, symbols)  # type: ignore[arg-type]
    said = list(lines("native", found, most=2))
    assert said[0] == "native: 1 of 74 objects differ: mm/memory.o"
    assert said[2].split()[-3:] == ["20,000", "19,034", "-966"]
    assert said[5].split() == ["copy_page_range", "8,175", "7,223", "-952"]
    assert said[6].split() == ["names", "(rodata)", "0", "96", "+96"]
    assert said[7].split() == ["2", "smaller", "changes", "-14"]


def test_a_series_that_changes_no_object_says_so() -> None:
    nothing = SizeChange(74, (), {"text": (0, 0), "rodata": (0, 0), "data": (0, 0)}, ())
    said = "native: the same code and data in all of 74 objects"
    assert list(lines("native", nothing)) == [said]
