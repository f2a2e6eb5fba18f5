# SPDX-License-Identifier: GPL-2.0-only
"""Programs that execute what a series changes come before others."""

from itertools import islice
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from ream.program.aim import CORPUS_AT_ONCE, Aim, with_access
from ream.program.changed import Name, Target
from ream.program.explore import Corpus
from ream.program.text import parse
from ream.program.vary import small, varied

FORK, MOVE, RARE = (("mm/memory.o", name) for name in ("copy_page_range", "move", "rare"))
BLOCKS: dict[Name, tuple[int, ...]] = {FORK: (0x100, 0x110), MOVE: (0x200,), RARE: (0x300,)}
PLACES = (0x100, 0x110, 0x200, 0x300)
CODE: Any = SimpleNamespace(
    numbers=lambda functions: frozenset(
        number
        for number, at in enumerate(PLACES)
        if any(at in BLOCKS.get(one, ()) for one in functions)
    ),
)
"""Two blocks of fork, numbers 0 and 1, one of move, number 2, and one that is rare, number 3."""
MET = {
    "001": frozenset({0}),
    "002": frozenset({0, 3}),
    "003": frozenset({2}),
    "004": frozenset({0}),
    "005": frozenset({1}),
}


def target(*functions: Name, blocks: tuple[int, ...] = ()) -> Target:
    return Target(frozenset(functions), frozenset(blocks))


@pytest.fixture
def aim(tmp_path: Path) -> Aim:
    lines = {"001": 3, "002": 9, "003": 2, "004": 1, "005": 8}
    programs = {
        name: parse("p0 mmap a 4 anon private rw\n" + "p0 write a\n" * nr)
        for name, nr in lines.items()
    }
    return Aim(Corpus(tmp_path, programs), CODE, MET)


def test_programs_that_reach_what_few_reach_come_first_and_then_the_shorter(aim: Aim) -> None:
    assert aim.reaching(target(FORK, RARE)) == ["002", "005", "004", "001"]
    assert aim.reaching(target(("mm/ksm.o", "none"))) == []


def test_programs_that_execute_changed_lines_come_before_all_others(aim: Aim) -> None:
    assert aim.reaching(target(FORK, blocks=(0,))) == ["004", "001", "002", "005"]
    assert aim.attempts(target(FORK, blocks=(0, 1)), seed=7).met == {0, 1}


def test_it_is_known_which_of_the_changed_functions_are_executed(aim: Aim) -> None:
    assert aim.executed(frozenset({RARE, ("mm/ksm.o", "none")})) == {RARE}


def test_random_programs_come_between_those_of_the_corpus_and_mixtures_behind(aim: Aim) -> None:
    tried = list(islice(aim.attempts(target(FORK, blocks=(0,)), seed=7), CORPUS_AT_ONCE + 5))
    assert [one.origin for one in tried[:5]] == ["004", "001", "002", "005", "seed 7"]
    assert tried[5].origin.endswith(", seed 8")
    assert " with seed 9" in tried[6].origin
    assert tried[7].origin.endswith(" with failures, seed 10")
    assert "fail " in str(tried[7].program)
    assert tried[8].origin == "seed 11"


def test_the_same_seed_gives_the_same_programs(aim: Aim) -> None:
    first, second = (
        [one.program for one in islice(aim.attempts(target(FORK), seed=7), 8)] for _ in "ab"
    )
    assert first == second


def test_a_change_that_no_program_executes_is_tried_with_random_ones(aim: Aim) -> None:
    origins = [one.origin for one in islice(aim.attempts(target(), seed=3), 3)]
    assert origins == ["seed 3", "seed 4", "seed 5"]


def test_a_program_that_is_the_first_to_execute_changed_lines_is_mixed(aim: Aim) -> None:
    attempts = aim.attempts(target(FORK, blocks=(7, 8)), seed=3)
    first = next(attempts)
    while first.origin != "seed 3":
        first = next(attempts)
    attempts.learn(first, frozenset({7}))
    assert attempts.met == {7}
    origins = [next(attempts).origin for _ in range(40)]
    assert any(origin.startswith("seed 3 with ") for origin in origins)
    again = aim.attempts(target(FORK, blocks=(7, 8)), seed=3)
    for attempt in islice(again, 40):
        again.learn(attempt, frozenset())
        assert not attempt.origin.startswith("seed 3 with ")


def test_all_programs_have_little_memory_if_that_is_asked_for(aim: Aim) -> None:
    its = target(FORK, blocks=(0, 1))
    some = islice(aim.attempts(its, seed=7, in_small=True), 9)
    usual = islice(aim.attempts(its, seed=7), 9)
    for one, other in zip(some, usual, strict=True):
        assert one.origin == other.origin
        assert one.program == small(other.program)


def test_pages_of_a_step_after_which_other_flushes_are_done_are_used_before_it() -> None:
    text = "p0 mmap a 2 anon private r\np0 mremap a[0] b 1\n"
    read, write = with_access("it", parse(text))
    assert [str(step) for step in read.program][1:] == ["p0 read a[0]", "p0 mremap a[0] b 1"]
    assert [step.verb for step in write.program] == ["mmap", "write", "mremap"]
    assert not [*with_access("it", parse("memory 64M\np0 mmap a 2 anon private r\ncompact\n"))]


def test_an_area_may_be_moved_before_the_step_that_uses_it() -> None:
    program = parse("p0 mmap a 2 anon private rw\np0 mremap a[0] b 1 dontunmap\n")
    moved = {str(one) for seed in range(200) for one in varied(Random(seed), program, {"write": 1})}
    assert "p0 mremap am[0] b 1 dontunmap" in moved


def test_further_programs_are_none_of_the_corpus(aim: Aim) -> None:
    its = target(FORK, blocks=(0, 1))
    assert not {one.origin for one in islice(aim.attempts(its, 7, only_new=True), 9)} & set(MET)
