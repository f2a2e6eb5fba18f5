# SPDX-License-Identifier: GPL-2.0-only
"""Programs that execute what a series changes come before others."""

from itertools import islice
from pathlib import Path

import pytest

from ream.program.aim import CORPUS_AT_ONCE, Aim, Name
from ream.program.explore import Corpus
from ream.program.text import parse

FORK, MOVE, RARE = (("mm/memory.o", name) for name in ("copy_page_range", "move", "rare"))
MET: dict[str, frozenset[Name]] = {
    "001": frozenset({FORK}),
    "002": frozenset({FORK, RARE}),
    "003": frozenset({MOVE}),
    "004": frozenset({FORK}),
}


@pytest.fixture
def aim(tmp_path: Path) -> Aim:
    lines = {"001": 3, "002": 9, "003": 2, "004": 1}
    programs = {
        name: parse("p0 mmap a 4 anon private rw\n" + "p0 write a\n" * nr)
        for name, nr in lines.items()
    }
    return Aim(Corpus(tmp_path, programs), MET)


def test_programs_that_reach_what_few_reach_come_first_and_then_the_shorter(aim: Aim) -> None:
    assert aim.reaching(frozenset({FORK, RARE})) == ["002", "004", "001"]
    assert aim.reaching(frozenset({("mm/ksm.o", "none")})) == []


def test_it_is_known_which_of_the_changed_functions_are_executed(aim: Aim) -> None:
    assert aim.executed(frozenset({RARE, ("mm/ksm.o", "none")})) == {RARE}


def test_random_programs_come_between_those_of_the_corpus_and_mixtures_behind(aim: Aim) -> None:
    tried = list(islice(aim.attempts(frozenset({FORK}), seed=7), CORPUS_AT_ONCE + 4))
    assert [one.origin for one in tried[:4]] == ["004", "001", "002", "seed 7"]
    assert tried[4].origin.endswith(", seed 8")
    assert " with seed 9" in tried[5].origin
    assert tried[6].origin == "seed 10"


def test_the_same_seed_gives_the_same_programs(aim: Aim) -> None:
    first, second = (
        [one.program for one in islice(aim.attempts(frozenset({FORK}), seed=7), 8)] for _ in "ab"
    )
    assert first == second


def test_a_change_that_no_program_executes_is_tried_with_random_ones(aim: Aim) -> None:
    origins = [one.origin for one in islice(aim.attempts(frozenset(), seed=3), 3)]
    assert origins == ["seed 3", "seed 4", "seed 5"]
