# SPDX-License-Identifier: GPL-2.0-only
"""Judgements whose rows are made up."""

from typing import Any

from ream.judge.judgement import CountedChange, Judgement, Operation, TimedChange
from ream.judge.reach import Reach, WholeReach
from ream.kernel.series import Patch, Series

SERIES = Series("mine", tuple(Patch(f"{n}.patch", f"change {n}", b"%d" % n) for n in range(1, 5)))
FORK = Reach("fork", ("copy_page_range",), ("fork-4k", "fork-64k"), 64, None)


def counted(**shares: float) -> CountedChange:
    """Quantities of 100 before, each grown by its share."""
    before = dict.fromkeys(("instructions", "locked", "loads", "prefetches"), 100.0)
    after = {name: value * (1 + shares.get(name, 0.0)) for name, value in before.items()}
    return CountedChange("page", before, after, repeats=True)


def timed(
    ratio: float, effect: str, within: float | None = None, *, control: bool | None = True
) -> TimedChange:
    return TimedChange(ratio, ratio * 0.99, ratio * 1.01, effect, within, 1.02, control)


def operation(row: str = "fork-4k", **fields: Any) -> Operation:
    return Operation("fork", row, "a title", **fields)


def reach(*reached: Reach, nearest: str | None = None) -> WholeReach:
    none: dict[str, tuple[str, ...]] = dict.fromkeys(
        ("changed", "added", "removed", "moved", "data", "layout"), ()
    )
    return WholeReach(991, **none, text_bytes=(64, 80), experiments=reached, nearest=nearest)


def judgement(*operations: Operation, **fields: Any) -> Judgement:
    its = {"reach": reach(FORK), **fields}
    subjects = tuple(one.subject for one in SERIES.patches)
    return Judgement("mine", subjects, "a tree", "a machine", operations=operations, **its)
