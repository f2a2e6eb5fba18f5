# SPDX-License-Identifier: GPL-2.0-only
"""Random programs from a seed."""

from collections import Counter

import pytest

from ream.program.generate import WEIGHTS, generate
from ream.program.grammar import FORMS
from ream.program.often import some_often
from ream.program.scene import resolve
from ream.program.text import parse


def test_an_area_of_huge_pages_that_became_smaller_is_used_as_far_as_it_goes() -> None:
    assert generate(60166, 500, some_often(60166)).steps


def test_a_seed_decides_the_program() -> None:
    assert generate(7, 100) == generate(7, 100)
    assert generate(7, 100) != generate(8, 100)


@pytest.mark.parametrize("seed", range(8))
def test_a_generated_program_is_a_text_that_can_be_read(seed: int) -> None:
    program = generate(seed, 300)
    assert parse(str(program)) == program


def test_a_program_has_as_many_steps_as_were_asked_for() -> None:
    program = generate(1, 50)
    nr_declared = sum(step.form.declares for step in program)
    before = generate(1, 0).steps
    assert program.steps[: len(before)] == before
    assert before[nr_declared].verb == "swap"
    assert len(program) == len(before) + 50


def test_every_mixture_is_drawn_and_most_steps_are_known() -> None:
    seen = Counter(step.verb for seed in range(20) for step in generate(seed, 400))
    # Steps of two processes meet in short programs alone: meeting.py.
    assert set(FORMS) - {"interrupt"} == set(seen)
    assert seen["write"] > seen["exit"] > 10


@pytest.mark.parametrize("name", WEIGHTS)
def test_a_mixture_can_be_drawn_alone(name: str) -> None:
    program = generate(3, 60, {name: 1})
    assert parse(str(program)) == program


def test_most_ranges_begin_where_something_is_mapped_and_many_are_huge_pages() -> None:
    calls = [call for seed in range(20) for call in resolve(generate(seed, 400))]
    ranges = [call.arguments for call in calls if call.name in {"write", "read", "madvise"}]
    huge = [one for one in ranges if one["page"] % 512 == 0 and one["nr"] >= 512]
    assert len(huge) > len(ranges) / 20
