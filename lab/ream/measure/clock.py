# SPDX-License-Identifier: GPL-2.0-only
"""Chooses the clock by which a row is judged, without looking at what the row compares.

A program that shares its CPU with others is interrupted: its wall time then includes their work,
and its CPU time does not. Each clock is judged by how far it sets two copies of the same kernel
apart in the first launches. That depends neither on any variant nor on later launches, so an effect
cannot select its clock, and more launches cannot change the choice.
"""

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from ream.experiment import BEFORE, BEFORE_AGAIN
from ream.measure.sample import Sample

PILOT_LAUNCHES = 2
"""The number of first launches whose copies of `before` choose the clock."""
LEAST_STEPS = 25
"""The least CPU time that is used, in steps of its clock: one step is then 4 % of it at most."""
UNKNOWN_STEP_NS = 4_000_000
"""The step of a CPU clock that is not recorded: a tick of a kernel with HZ = 250. Such a clock has
no CPU time below 100 ms."""
LEAST_NS = 100_000
"""The least CPU time that replaces wall time. CPU time includes the two readings of its clock, each
a system call of about 300 ns, so that shorter samples would be made to look alike."""

Name = Literal["wall", "CPU"]


@dataclass(frozen=True)
class Clock:
    """The clock of a row's times, and how far each clock sets two copies of one kernel apart.

    wall_noise, cpu_noise: the median |log ratio| of the second copy of `before` to the first, over
    the rounds of the first PILOT_LAUNCHES launches.
    """

    name: Name
    wall_noise: float
    cpu_noise: float


def is_fine(cpu_ns: float, step_ns: int | None) -> bool:
    """Whether CPU time is long enough for the step of its clock; None: the step is unknown."""
    return cpu_ns >= LEAST_STEPS * (UNKNOWN_STEP_NS if step_ns is None else step_ns)


def choose(samples: Iterable[Sample], step_ns: int | None) -> Clock | None:
    """The clock of a row with the smaller noise; None if only wall time can be used.

    samples: of one row. step_ns: of the CPU clock; None if it is unknown. CPU time can be used if
    one CPU did the work of every variant, and every sample is long enough. The caller has to make
    sure that no sample sleeps: CPU time does not pass meanwhile.
    """
    variants = [one for one in samples if one.role == "variant"]
    if step_ns is None or not variants:
        return None
    cpu_ns = [one.cpu_ns or 0 for one in variants]
    if any(one.threads != 1 for one in variants) or min(cpu_ns) < LEAST_NS:
        return None
    if not is_fine(min(cpu_ns), step_ns):
        return None
    wall, cpu = _noise(variants), _noise(by_cpu_time(variants))
    if wall is None or cpu is None:
        return None
    return Clock("CPU" if cpu < wall else "wall", wall, cpu)


def by_cpu_time(samples: Iterable[Sample]) -> tuple[Sample, ...]:
    """The same samples with their CPU time as their time.

    A fill by several CPUs keeps its wall time: it is a limit of what as many can do.
    """
    return tuple(
        replace(one, time_ns=one.cpu_ns) if one.threads == 1 and one.cpu_ns else one
        for one in samples
    )


def _noise(variants: Sequence[Sample]) -> float | None:
    """The median |log ratio| of two copies of `before` in the first launches; None without any."""
    first = sorted({one.launch for one in variants})[:PILOT_LAUNCHES]
    copies: dict[tuple[int, int], dict[str, int]] = {}
    for one in variants:
        if one.launch in first and one.subject in (BEFORE, BEFORE_AGAIN):
            copies.setdefault((one.launch, one.round), {})[one.subject] = one.time_ns
    apart = [
        abs(math.log(its[BEFORE_AGAIN] / its[BEFORE])) for its in copies.values() if len(its) > 1
    ]
    return statistics.median(apart) if apart else None
