# SPDX-License-Identifier: GPL-2.0-only
"""Two steps of a short program meet: one of them is interrupted by the other one."""

import random

from ream.program.meeting import NR_CPUS, met
from ream.program.step import Program
from ream.program.text import parse

PROGRAM = parse("memory 64M 32M\np0 mmap a 64 anon private rw\np0 write a\np0 mprotect a[3:9] r")


def some(nr: int = 60) -> list[Program]:
    return [met(random.Random(seed), PROGRAM) for seed in range(nr)]


def test_a_step_is_interrupted_by_one_of_another_process() -> None:
    for program in some():
        verbs = [step.verb for step in program]
        at = verbs.index("interrupt")
        assert verbs.count("interrupt") == 1
        first, second = program.steps[at + 1 : at + 3]
        assert first.process != second.process
        assert first.process is not None


def test_each_process_is_on_a_cpu_of_its_own_and_has_used_the_pages() -> None:
    for program in some():
        (cpus,) = (step for step in program if step.verb == "cpus")
        assert cpus.number("nr") == NR_CPUS
        its = [step.number("cpu") for step in program if step.verb == "run_on"]
        assert its == list(range(len(its)))
        assert len(its) > 1


def test_both_the_step_of_the_program_and_the_other_one_are_interrupted() -> None:
    first = set()
    for program in some():
        at = [step.verb for step in program].index("interrupt")
        first.add(program.steps[at + 1].process)
    assert len(first) > 1


def test_a_program_without_a_step_that_may_be_interrupted_stays_as_it_is() -> None:
    alone = parse("file f 64K shmem\ntruncate f 3")
    assert met(random.Random(1), alone) == alone
