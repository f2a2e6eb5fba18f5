# SPDX-License-Identifier: GPL-2.0-only
"""The oracle's PTE layouts against the kernel's own headers, of every architecture that builds.

A missing compiler or emulator is a skip at home and a failure in CI.
"""

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from arch_headers import MACHINES, SUBJECTS, Machine, Subject, judge, missing
from ream.errors import CannotRunHere, VerificationFailed
from ream.kernel.source import Tree
from ream.oracle.pte import LAYOUTS, NIOS2, PteLayout

Judge = Callable[[Subject], int]


QUICK = ("x86_64",)
"""Those that experiments run on; each of the others has a configuration of its own to compile."""

# A machine's programs are built together: one test for all that they have to say.
EACH = pytest.mark.parametrize(
    "machine",
    [
        pytest.param(one, id=one.name, marks=() if one.name in QUICK else pytest.mark.vm)
        for one in MACHINES
    ],
)


def subjects(machine: Machine) -> list[Subject]:
    return [subject for subject in SUBJECTS if subject.machine == machine]


@pytest.fixture
def judged(kernel: Tree, cache: Path) -> Judge:
    def judge_one(subject: Subject) -> int:
        if lacking := missing(subject.machine):
            reason = f"{', '.join(lacking)}: not installed; `make setup-test` as root installs it"
            if os.environ.get("CI"):
                pytest.fail(reason)
            pytest.skip(reason)
        return judge(subject, kernel, cache=cache, step=print)

    return judge_one


@EACH
def test_headers_and_oracle_agree_on_every_entry(judged: Judge, machine: Machine) -> None:
    for subject in subjects(machine):
        assert judged(subject) > 1000


def off_by_one_bit(layout: PteLayout) -> Iterator[PteLayout]:
    """Layouts that differ from the real one as little as they can."""
    *others, top = layout.pieces
    shorter = replace(top, nr_bits=top.nr_bits - 1)
    for wrong in (shorter, replace(shorter, entry_bit=top.entry_bit + 1)):
        yield replace(layout, pieces=(*others, wrong))
    yield replace(layout, page_shift=layout.page_shift + 1)
    yield replace(layout, empty=layout.empty ^ 1)
    yield replace(layout, always=layout.always ^ layout.attributes & -layout.attributes)


@EACH
def test_an_oracle_that_is_wrong_by_one_bit_is_found(judged: Judge, machine: Machine) -> None:
    for subject in subjects(machine):
        for wrong in off_by_one_bit(subject.layout):
            with pytest.raises(VerificationFailed, match=r"headers 0x\w+, oracle 0x\w+"):
                judged(replace(subject, layout=wrong))


def test_only_nios2_is_left_to_the_oracle_alone() -> None:
    assert {one.layout for one in SUBJECTS} == {*LAYOUTS} - {NIOS2}


def test_a_machine_without_its_compiler_is_told_so(kernel: Tree, cache: Path) -> None:
    subject = SUBJECTS[0]
    target = replace(subject.machine.target, cross="no-such-")
    with pytest.raises(CannotRunHere, match="no-such-gcc: not installed"):
        judge(
            replace(subject, machine=replace(subject.machine, target=target)),
            kernel,
            cache=cache,
            step=print,
        )
