# SPDX-License-Identifier: GPL-2.0-only
"""Samples of rows that are programs: only a state that was checked gets a time."""

import json
from collections.abc import Callable
from types import SimpleNamespace

import pytest

from ream.errors import ReamError, WrongVariant
from ream.measure.plan import Launch
from ream.measure.sample import Sample
from ream.program.live import Beside
from ream.program.ran import Ran, Timed
from ream.program.text import parse
from ream.session.computer import samples_of
from ream.stage.computer import Checks

ROW = SimpleNamespace(name="row", rounds=20, written_bytes=4096)
PROGRAM = parse("p0 mmap a 1 anon private rw\nmeasure p0 munmap a\n")
LAUNCH = Launch(3, 17, 0, ("before", "mine"))


class Rig:
    """Runs nothing, but says what a run did."""

    def __init__(self, did: Callable[[Checks], Ran]) -> None:
        self._did = did

    def run(self, _program: object, checks: Checks = Checks.EACH, **_ram: int) -> Ran:
        return self._did(checks)


def right(_checks: Checks) -> Ran:
    return Ran(returned={2: 0}, state="5", timed=Timed(ns=7, cpu_ns=8, nr=1))


def taken(mine: Callable[[Checks], Ran]) -> list[dict[str, object]]:
    rigs = {"before": Rig(right), "mine": Rig(mine)}
    return [json.loads(line) for line in samples_of(ROW, PROGRAM, rigs, LAUNCH)]


def test_in_each_round_each_variant_has_a_sample_in_an_order_of_its_own() -> None:
    found = taken(right)
    rounds = [tuple(one["subject"] for one in found[at : at + 2]) for at in range(0, 40, 2)]
    assert {frozenset(one) for one in rounds} == {frozenset(LAUNCH.link_order)}
    assert len(set(rounds)) == 2
    assert {(one["launch"], one["time_ns"], one["cpu_ns"]) for one in found} == {(3, 7, 8)}


class Live:
    """What the running kernel took, said without running anything."""

    def __init__(self, nr_checks: list[int]) -> None:
        self._nr_checks = nr_checks

    def check(self) -> None:
        self._nr_checks.append(1)

    def sample(self, row: SimpleNamespace, launch: int, number: int) -> Sample:
        its = (row.name, launch, number, "live", "running", 1, 9, row.written_bytes)
        return Sample(*its, verified=True)


def test_the_running_kernel_takes_turns_with_hosted_ones_and_is_checked_once_a_launch() -> None:
    checks: list[int] = []
    beside = Beside({"row": Live(checks)}, print)
    rigs = {"before": Rig(right), "mine": Rig(right)}
    lines = samples_of(ROW, PROGRAM, rigs, LAUNCH, beside=beside)
    found = [json.loads(line) for line in lines]
    rounds = [tuple(one["subject"] for one in found[at : at + 3]) for at in range(0, 60, 3)]
    assert {frozenset(one) for one in rounds} == {frozenset((*LAUNCH.link_order, "running"))}
    assert len({one.index("running") for one in rounds}) == 3
    assert {one["role"] for one in found if one["subject"] == "running"} == {"live"}
    assert checks == [1]


def test_what_a_check_finds_wrong_is_told_with_the_line_of_the_program() -> None:
    with pytest.raises(WrongVariant, match="row: mine: after line 2: a frame is lost") as caught:
        taken(lambda _checks: Ran(alarms=((2, "a frame is lost"),)))
    assert caught.value.variant == "mine"


def test_another_state_than_the_checked_one_gets_no_time() -> None:
    def other(checks: Checks) -> Ran:
        its = right(checks)
        return its if checks != Checks.NEVER else Ran(returned={2: 0}, state="6", timed=its.timed)

    with pytest.raises(WrongVariant, match="mine ends in another state"):
        taken(other)


def test_a_measured_step_that_fails_is_refused_by_its_line() -> None:
    with pytest.raises(ReamError, match="line 2 was to be measured and returned -22"):
        taken(lambda _checks: Ran(returned={2: -22}, state="5", timed=Timed(7, 8, 1)))
