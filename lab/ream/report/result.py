# SPDX-License-Identifier: GPL-2.0-only
"""Computes the result of one variant in one row from its samples."""

from typing import TypedDict

from ream.experiment import BEFORE, BYTES_PER_PAGE, Row
from ream.measure import statistics
from ream.measure.clock import is_fine
from ream.measure.statistics import Level
from ream.report.columns import columns_of
from ream.report.contract import Effect, Ratio, Result
from ream.report.decide import (
    EQUAL_WITHIN,
    Decided,
    MeasuredRow,
    equal_within,
    launches_needed,
)
from ream.report.numbers import digits, ratio_of, rounded

GIB_BYTES = 1 << 30


class Said(TypedDict, total=False):
    """The fields of a Result that describe its effect, or the bound within which there is none."""

    effect: Effect
    within: float
    launches_needed: int


class CpuTime(TypedDict, total=False):
    """The fields of a Result that describe CPU time."""

    cpu_ns: int
    cpu_s_per_gib: float | None
    cpu_over_before: Ratio | None


def result_of(
    measured: MeasuredRow,
    name: str,
    level: Level,
    decided: Decided | None,
    over: Decided | None,
) -> Result:
    """The result of the variant `name` in a row.

    level: its time over all launches. decided: its ratio to the variant that it is compared with.
    over: its ratio to `published`; either is None if it does not exist.
    """
    samples = measured.samples
    estimate = decided.estimate if decided else None
    limit = statistics.limit_for(measured.limits, level.threads)
    # Another number of bytes is another task: the fill is no limit of it.
    same_task = limit is not None and limit.level.nr_bytes == level.nr_bytes
    near = statistics.of_limit(samples, name, limit) if limit is not None and same_task else None
    return Result(
        median=round(level.time_ns),
        rounds=level.nr_samples,
        launches=level.nr_launches,
        threads=level.threads,
        nr_bytes=round(level.nr_bytes),
        ratio=1.0 if name == BEFORE else digits(estimate.ratio if estimate else None),
        low=digits(estimate.low if estimate else None),
        high=digits(estimate.high if estimate else None),
        spread_low=digits(estimate.spread[0] if estimate else None),
        spread_high=digits(estimate.spread[1] if estimate else None),
        of_limit=digits(near.ratio if near else None),
        of_limit_low=digits(near.low if near else None),
        of_limit_high=digits(near.high if near else None),
        limit_threads=limit.level.threads if limit is not None and same_task else None,
        per_page=ns_per_page(level, measured.row),
        ns_per_page=None if measured.counted else ns_per_page(level, measured.row),
        per_entry=_per_entry(level, measured.row),
        gb_per_s=None if measured.counted else gb_per_s(level),
        verified=all(
            sample.verified
            for sample in samples
            if sample.role == "variant" and sample.subject == name
        ),
        over_published=ratio_of(over.estimate) if over else None,
        per_batch=_per_batch(level, measured.row),
        columns=columns_of(
            measured.columns,
            samples,
            name,
            to=measured.to(name),
            counted=measured.counted,
            exact=measured.exact,
        ),
        p_value=decided.p_value if decided else None,
        layout=decided.layout if decided else None,
        compared_with=measured.given.get(name),
        **_cpu_time(measured, name, level),
        **_said(measured, name, decided),
    )


def _cpu_time(measured: MeasuredRow, name: str, level: Level) -> CpuTime:
    """CPU time over all CPUs; empty for counts, if any sample lacks it, and if its clock is coarse.

    There is no ratio to a variant whose CPU time is too short for the clock.
    """
    cpu_ns = None if measured.counted else statistics.cpu_level(measured.alike, name)
    if cpu_ns is None or not is_fine(cpu_ns, measured.cpu_step_ns):
        return {}
    to = measured.to(name)
    base_ns = statistics.cpu_level(measured.alike, to)
    known = name != BEFORE and base_ns is not None and is_fine(base_ns, measured.cpu_step_ns)
    over = statistics.cpu_ratio(measured.alike, name, to=to) if known else None
    return {
        "cpu_ns": round(cpu_ns),
        "cpu_s_per_gib": per_gib(cpu_ns, level),
        "cpu_over_before": ratio_of(over),
    }


def _said(measured: MeasuredRow, name: str, decided: Decided | None) -> Said:
    """The effect; without one, how large it may still be and how many launches would decide it."""
    if decided is None:
        return {}
    if decided.seen:
        less = decided.estimate.ratio < 1
        if measured.counted:
            return {"effect": "fewer" if less else "more"}
        return {"effect": "faster" if less else "slower"}
    within = equal_within(measured, name, decided.estimate)
    if within is None:
        return {"effect": "undecided"}
    if within <= EQUAL_WITHIN:
        return {"effect": "equal", "within": rounded(within)}
    needed = launches_needed(within, decided.estimate)
    return {"effect": "undecided", "within": rounded(within), "launches_needed": needed}


def per_gib(cpu_ns: float, level: Level) -> float | None:
    """CPU seconds per GiB, from CPU time in ns; None for a sample without bytes."""
    return rounded(cpu_ns / 1e9 * GIB_BYTES / level.nr_bytes) if level.nr_bytes else None


def ns_per_page(level: Level, row: Row) -> float | None:
    """Time per page, rounded; None for a sample without bytes."""
    if not level.nr_bytes:
        return None
    return rounded(level.time_ns * BYTES_PER_PAGE[row.bytes_of] / level.nr_bytes)


def _per_entry(level: Level, row: Row) -> float | None:
    """Time per entry; the number of entries is proportional to the bytes of the sample."""
    if row.nr_entries is None or not level.nr_bytes:
        return None
    return rounded(level.time_ns / row.nr_entries * row.written_bytes / level.nr_bytes)


def _per_batch(level: Level, row: Row) -> float | None:
    return None if row.nr_batches is None else rounded(level.time_ns / row.nr_batches)


def gb_per_s(level: Level) -> float | None:
    """The rate in 10^9 bytes per second; None for a sample without bytes."""
    return rounded(level.nr_bytes / level.time_ns) if level.nr_bytes else None
