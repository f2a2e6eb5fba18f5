# SPDX-License-Identifier: GPL-2.0-only
"""Short programs near what is changed: how they are found, and how they are varied."""

import random

import pytest

from ream.program.near import MOST_RUNS, Near, in_few_runs
from ream.program.often import some_often
from ream.program.scene import resolve
from ream.program.step import Program
from ream.program.text import parse
from ream.program.vary import SMALL, WITH_SECTIONS, small, varied

LONG = parse(
    "memory 512M 256M\ncpus 2\nfile f 6M shmem\nswap 192M\n"
    "p0 mmap a 16 anon private rw\np0 mmap b 8 f shared rw\np0 write a\np0 write b\n"
    "p0 madvise a pageout\np0 fork p1\np1 munmap a\nreclaim 64\np0 read a[3:9]\n"
)


def meets(program: Program) -> frozenset[int]:
    """Block 7 needs a fork, block 8 a page that comes back from swap, block 9 any program."""
    verbs = [step.verb for step in program]
    comes_back = {"swap", "write", "madvise", "read"} <= {*verbs}
    return frozenset({9}) | frozenset({7} if "fork" in verbs else ()) | frozenset(
        {8} if comes_back else ()
    )  # fmt: skip


def test_a_seed_has_no_step_that_its_block_does_not_need() -> None:
    near = Near({"001": LONG}, {"001": meets(LONG)}, meets)
    for number in range(60):
        near.choose(random.Random(number))
    programs = [program for _, program in near.seeds]
    assert all(one == small(one) for one in programs)
    verbs = [[step.verb for step in one if step not in small(Program(()))] for one in programs]
    assert all(len(one) < len(LONG) for one in verbs)
    assert ["fork"] in verbs
    assert any({7, 8, 9} <= meets(one) for one in programs)
    assert len({str(one) for one in programs}) == len(programs)


def test_where_nothing_is_executed_there_is_no_seed_until_a_program_is_added() -> None:
    near = Near({"001": LONG}, {}, meets)
    assert near.choose(random.Random(1)) is None
    near.add("seed 5", LONG)
    assert near.choose(random.Random(1)) == ("seed 5", LONG)


def test_reducing_ends_after_so_many_runs() -> None:
    asked = []

    def fits(program: Program) -> bool:
        asked.append(program)
        return False

    assert in_few_runs(LONG, fits, 5) == LONG
    assert len(asked) == 5 < MOST_RUNS


def test_a_small_computer_runs_the_same_steps_and_has_huge_pages() -> None:
    its = small(LONG)
    assert its.steps[0].verb == "memory"
    assert [its.steps[0].number(name) for name in ("node0", "node1")] == [*SMALL]
    assert "set /sys/kernel/mm/transparent_hugepage/enabled madvise\n" in str(its)
    left = [str(step) for step in its if step.verb not in {"set", "memory"}]
    assert left == [str(step) for step in LONG if step.verb != "memory"]


@pytest.mark.parametrize("step", ["p0 call offline x=1", "p0 mmap a9 9000 anon private rw"])
def test_a_small_computer_has_a_section_to_take_out_and_room_for_mappings(step: str) -> None:
    its = small(parse(f"{LONG}\n{step}"))
    assert [its.steps[0].number(name) for name in ("node0", "node1")] == [*WITH_SECTIONS]


def test_a_seed_of_dice_varies_a_program_in_one_way_and_others_in_others() -> None:
    weights = some_often(3)
    first, again = (varied(random.Random(3), LONG, weights) for _ in "ab")
    assert first == again
    others = {str(varied(random.Random(seed), LONG, weights)) for seed in range(40)}
    assert len(others) == 40


def test_what_is_varied_fits_and_keeps_most_of_its_steps() -> None:
    for seed in range(60):
        program = varied(random.Random(seed), LONG, some_often(seed))
        resolve(program)  # raises if a step does not fit those before it
        files = {step.word("file") for step in program if step.verb == "file"}
        text = str(program)
        assert all(f" {name}" in text.replace(f"file {name} ", "") for name in files)
        kept = {str(step) for step in program} & {str(step) for step in LONG}
        assert len(kept) >= len(LONG) // 2
