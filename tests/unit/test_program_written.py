# SPDX-License-Identifier: GPL-2.0-only
"""Which lines that a series writes are executed, and where their statements begin."""

import subprocess
from pathlib import Path

from ream.program.coverage import Function, Part
from ream.program.written import Written, _blocks
from ream.stage.fault import functions

SOURCE = """\
__attribute__((cold)) int count(long);
int twice(long nr)
{
	if (__builtin_expect(nr > 512, 0))
		count(nr * 3);
	return (int)nr * 2;
}
"""


def test_a_line_is_executed_of_which_any_block_is_met() -> None:
    its = Written({("a.c", 3): frozenset({16, 48}), ("a.c", 4): frozenset({32})})
    assert its.addresses == {16, 32, 48}
    assert its.executed({48}) == {("a.c", 3)}
    assert its.executed(()) == frozenset()


def test_a_statement_is_in_the_block_in_which_it_begins_also_in_a_part_moved_away(
    tmp_path: Path,
) -> None:
    (tmp_path / "twice.c").write_text(SOURCE)
    words = ("gcc", "-O2", "-g", "-c", "-o", "twice.o", "twice.c")
    subprocess.run(words, cwd=tmp_path, check=True)
    found = functions(tmp_path / "twice.o")
    assert {one.name for one in found} == {"twice", "twice.cold"}
    # As in a computer: both parts are elsewhere than in the object, and each is one block.
    places = {"twice": 1 << 16, "twice.cold": 1 << 17}
    parts = tuple(Part(one.name, places[one.name], one.bytes) for one in found)
    function = Function("twice.o", "twice", parts, tuple(sorted(places.values())))
    its = {*_blocks(tmp_path / "twice.o", tmp_path, [function])}
    assert (("twice.c", 4), places["twice"]) in its
    assert (("twice.c", 6), places["twice"]) in its
    assert [block for line, block in its if line == ("twice.c", 5)] == [places["twice.cold"]]
