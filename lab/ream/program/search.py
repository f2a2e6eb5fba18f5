# SPDX-License-Identifier: GPL-2.0-only
"""Searches random programs for one that a series runs otherwise than its base."""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from ream.errors import ReamError
from ream.program.generate import generate
from ream.program.ran import Ran, Rig, difference, shortest
from ream.program.shrink import shrink
from ream.program.step import Program
from ream.program.text import parse
from ream.stage.computer import Checks


@dataclass(frozen=True)
class Found:
    """A program with an alarm, its run, and how long it took to be found.

    differs: no alarm is raised; the line and the part of the state in which the runs differ.
    """

    seed: int
    program: Program
    ran: Ran
    after_s: float
    differs: tuple[int, str] | None = None


def search(
    base: Rig,
    series: Rig,
    seeds: Iterable[int],
    *,
    steps: int,
    within_s: float,
    now: Callable[[], float] = time.monotonic,
) -> Found | None:
    """Run random programs until one is wrong with the series alone.

    Memory is checked after some steps, which takes a third of the time, and after each one once it
    is wrong. An alarm that the base raises in the same program is not the series'. Without an alarm
    in time the first difference is returned; None if there is none.
    """
    began_s, found = now(), None
    for seed in seeds:
        program = parse(str(generate(seed, steps)))
        ran, expected = (one.run(program, Checks.SOME) for one in (series, base))
        after_s = now() - began_s
        if ran.is_wrong and expected.kind != ran.kind:
            sooner = series.run(program)
            return Found(seed, program, sooner if sooner.is_wrong else ran, after_s)
        if found is None and (differs := difference(expected, ran)):
            found = Found(seed, program, ran, after_s, differs)
        if after_s > within_s:
            break
    return found


def shortened(base: Rig, series: Rig, found: Found, *, within_s: float) -> Program:
    """The shortest program found with the same alarm, or a difference in the same part."""
    if found.differs is None:
        return shortest(series, found.program, found.ran, within_s=within_s)
    last, part = found.differs

    def fails(shorter: Program) -> bool:
        try:
            differs = difference(base.run(shorter), series.run(shorter))
        except ReamError:  # such as a node that is smaller than nodes may be
            return False
        return differs is not None and differs[1] == part

    program = Program(tuple(step for step in found.program if step.line <= last))
    return parse(str(shrink(program, fails, within_s=within_s)))
