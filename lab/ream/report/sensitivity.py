# SPDX-License-Identifier: GPL-2.0-only
"""States how small an effect a run could have detected, and whether it found its control."""

from ream.counted import counted
from ream.experiment import CONTROL
from ream.report.contract import RowResult, Summary
from ream.report.numbers import fit, interval

TENTH = 0.1
"""Percentages from this share on are printed with one decimal, smaller ones with two."""

MOST_NAMED = 6
"""Rows that did not find the control; of more than that there is their number."""


def per_cent(share: float) -> str:
    """The share as a percentage, with one or two decimals."""
    return f"{fit(100 * share, 5, 1 if share >= TENTH else 2)} %"


def smallest(row: RowResult) -> str | None:
    """The smallest effect that this row would have detected, in words; None if it is unknown."""
    if row.smallest_effect is None:
        return None
    size = per_cent(row.smallest_effect - 1)
    if _repeats(row):
        return f"a difference of {size} is more than the floor and the range of rounds"
    known = "" if row.between_runs is None else ", also from run to run"
    return f"an effect of {size} is found nine times of ten, where this row is decided alone{known}"


def _repeats(row: RowResult) -> bool:
    """Whether the row has counts that repeat, which are not tested statistically."""
    return row.unit == "instructions" and all(its.p_value is None for its in row.variants.values())


def of_run(summary: Summary) -> str | None:
    """The smallest and the largest of the rows' detectable effects; None if none is known."""
    sizes = [
        (one.smallest_effect, one.row)
        for one in summary.rows
        if one.smallest_effect and not _repeats(one)
    ]
    if not sizes:
        return None
    words = [f"{per_cent(size - 1)} ({row})" for size, row in (min(sizes), max(sizes))]
    said = words[0] if len(sizes) == 1 else " to ".join(words)
    return f"smallest effect found nine times of ten, each row alone: {said}"


def control(row: RowResult) -> str | None:
    """The result of the positive control in this row; None without one."""
    its, measured = row.control, row.variants.get(CONTROL)
    if its is None or measured is None:
        return None
    said = f"+{per_cent(its.asked)} asked, {interval(measured)} measured: "
    if its.found is None:
        return f"{said}it takes two launches to find an effect"
    if its.found:
        return f"{said}found"
    if row.smallest_effect is not None and row.smallest_effect - 1 > its.asked:
        least = per_cent(row.smallest_effect - 1)
        detects = f"nine times of ten this row detects {least}, not {per_cent(its.asked)}"
        return f"{said}not found; {detects}"
    return f"{said}not found, as one time of ten"


def controls(summary: Summary) -> str | None:
    """The number of rows that found the positive control, and the names of those that did not."""
    told = {row.row: row.control for row in summary.rows if row.control is not None}
    if not told:
        return None
    asked = " or ".join(sorted({per_cent(one.asked) for one in told.values()}))
    missed = [name for name, one in told.items() if one.found is not True]
    found = f"found in {len(told) - len(missed)} of {counted(len(told), 'row')}"
    more = f" and {len(missed) - MOST_NAMED} more" if len(missed) > MOST_NAMED else ""
    where = f", not in {', '.join(missed[:MOST_NAMED])}{more}" if missed else ""
    return f"positive control, {asked} slower than before: {found}{where}"
