# SPDX-License-Identifier: GPL-2.0-only
"""In words: how small an effect a run could have seen, and whether it found its control."""

from ream.counted import counted
from ream.experiment import CONTROL
from ream.report.contract import RowResult, Summary
from ream.report.numbers import fit, interval

TENTH = 0.1
"""From here on a hundredth of a per cent says nothing."""


def per_cent(share: float) -> str:
    """With as many digits as a difference deserves."""
    return f"{fit(100 * share, 5, 1 if share >= TENTH else 2)} %"


def smallest(row: RowResult) -> str | None:
    """The smallest effect that this row would have shown; None where it is not known."""
    if row.smallest_effect is None:
        return None
    size = per_cent(row.smallest_effect - 1)
    if _repeats(row):
        return f"a difference of {size} is more than the floor and the range of rounds"
    return f"an effect of {size} is found nine times of ten, where this row is decided alone"


def _repeats(row: RowResult) -> bool:
    """Whether it is of counts that repeat, which nothing is tested of."""
    return row.unit == "instructions" and all(its.p_value is None for its in row.variants.values())


def of_run(summary: Summary) -> str | None:
    """From the row that sees most to the one that sees least."""
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
    """What the positive control gave; None where there was none."""
    its, measured = row.control, row.variants.get(CONTROL)
    if its is None or measured is None:
        return None
    said = f"+{per_cent(its.asked)} asked, {interval(measured)} measured: "
    if its.found is None:
        return f"{said}it takes two launches to find an effect"
    if its.found:
        return f"{said}found"
    if row.smallest_effect is not None and row.smallest_effect - 1 > its.asked:
        sees = per_cent(row.smallest_effect - 1)
        return f"{said}not found; nine times of ten this row sees {sees}, not {per_cent(its.asked)}"
    return f"{said}not found, as one time of ten"


def controls(summary: Summary) -> str | None:
    """In how many rows the positive control was found, and in which it was not."""
    told = {row.row: row.control for row in summary.rows if row.control is not None}
    if not told:
        return None
    asked = " or ".join(sorted({per_cent(one.asked) for one in told.values()}))
    missed = [name for name, one in told.items() if one.found is not True]
    found = f"found in {len(told) - len(missed)} of {counted(len(told), 'row')}"
    where = f", not in {', '.join(missed)}" if missed else ""
    return f"positive control, {asked} slower than before: {found}{where}"
