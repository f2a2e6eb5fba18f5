# SPDX-License-Identifier: GPL-2.0-only
"""Searches programs for one that a series runs otherwise than its base."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from ream.errors import ReamError
from ream.program.aim import Attempt, Attempts
from ream.program.near import in_few_runs
from ream.program.ran import Ran, Rig, Watched, difference, shortest
from ream.program.shrink import shrink
from ream.program.step import Program
from ream.program.text import parse
from ream.program.vary import small
from ream.stage.computer import Checks

DIFFERING_RUNS = 50
"""The most runs of each kernel for shortening a program that is then varied."""


SEEN = frozenset({"returned", "vmas", "rss", "contents"})
"""Parts of the state that a program can see. It cannot see other parts, such as `reschedules`."""


@dataclass(frozen=True)
class Found:
    """A program with an alarm, its run, and how long it took to be found.

    differs: no alarm is raised; the line and the part of the state in which the runs differ.
    """

    attempt: Attempt
    ran: Ran
    after_s: float
    differs: tuple[int, str] | None = None


@dataclass(frozen=True)
class Searched:
    """What came of a search: what was found, and how many programs and steps agreed before.

    met: the series' blocks that were watched and that programs executed.
    """

    found: Found | None
    nr_programs: int
    nr_steps: int
    met: frozenset[int]


def search(
    base: Watched,
    series: Watched,
    attempts: Attempts,
    *,
    within_s: float,
    now: Callable[[], float] = time.monotonic,
) -> Searched:
    """Run programs until one is wrong with the series alone.

    Memory is checked after some steps, which takes a third of the time, and after each one once it
    is wrong. An alarm that the base raises in the same program is not the series', and does not
    hide what comes behind it. Without an alarm in time the first difference is what is found, or
    the first one that a program can see, if there is any.
    """
    began_s, found, nr_programs, nr_steps = now(), None, 0, 0
    rigs, executed = (base.rig, series.rig), frozenset[int]()

    def shorter(program: Program, part: str) -> Program:
        differs = _differing(*rigs, part, Checks.EACH)
        its = small(program)
        return in_few_runs(its if differs(its) else program, differs, DIFFERING_RUNS)

    with ThreadPoolExecutor(1) as beside:
        for attempt in attempts:
            its = beside.submit(series.run, attempt.program, Checks.SOME)
            try:
                expected, met = base.run(attempt.program, Checks.SOME)
                ran, own = its.result()
            except ReamError:  # it reaches what the computer lacks
                its.exception()
                if now() - began_s > within_s:
                    break
                continue
            attempts.learn(attempt, met)
            executed |= own
            after_s = now() - began_s
            if expected.is_wrong:
                expected, ran = _behind_alarms(*rigs, attempt.program, Checks.SOME)
            if (new := ran.beyond(expected)).is_wrong:
                sooner = _behind_alarms(*rigs, attempt.program, Checks.EACH)
                first = sooner[1].beyond(sooner[0])
                wrong = Found(attempt, first if first.is_wrong else new, after_s)
                return Searched(wrong, nr_programs, nr_steps, executed)
            if differs := difference(expected, ran):
                attempts.differs(attempt, *differs, shorter)
                if found is None or _is_seen(differs) > _is_seen(found.differs):
                    found = Found(attempt, ran, after_s, differs)
            nr_programs, nr_steps = nr_programs + 1, nr_steps + len(attempt.program)
            if after_s > within_s:
                break
    return Searched(found, nr_programs, nr_steps, executed)


def shortened(base: Rig, series: Rig, found: Found, *, within_s: float) -> Program:
    """The shortest program found with the same alarm, or a difference in the same part.

    The base does not raise the alarm there.
    """
    program = found.attempt.program
    if found.differs is None:
        return shortest(series, program, found.ran, within_s=within_s, base=base)
    last, part = found.differs
    program = Program(tuple(step for step in program if step.line <= last))
    # A check of memory takes ten times as long as a step, and may change what comes behind it.
    at_end, differs = (_differing(base, series, part, its) for its in (Checks.LAST, Checks.EACH))
    if at_end(program):
        within_s /= 2
        short = parse(str(shrink(program, at_end, within_s=within_s)))
        program = short if differs(short) else program
    return parse(str(shrink(program, differs, within_s=within_s)))


def _is_seen(differs: tuple[int, str] | None) -> bool:
    """Whether a program can see what differs."""
    return differs is not None and differs[1] in SEEN


def _differing(base: Rig, series: Rig, part: str, checks: Checks) -> Callable[[Program], bool]:
    """Tells whether the series differs from its base in this part first, where it is checked."""

    def differs(program: Program) -> bool:
        with ThreadPoolExecutor(1) as beside:
            ran = beside.submit(series.run, program, checks)
            try:
                its = difference(base.run(program, checks), ran.result())
            except ReamError:  # such as a node that is smaller than nodes may be
                return False
        return its is not None and its[1] == part

    return differs


def _behind_alarms(base: Rig, series: Rig, program: Program, checks: Checks) -> tuple[Ran, Ran]:
    """What both do with a program, which no alarm ends."""
    base_ran, ran = (rig.run(program, checks, goes_on=True) for rig in (base, series))
    return base_ran, ran
