# SPDX-License-Identifier: GPL-2.0-only
"""The shipped rows of compact, all of one size: what tests expect is not a matter of sizes."""

from typing import cast

from experiments.compact.rows import Compact, CompactRow
from ream.experiment import named

SHIPPED = cast(Compact, named("compact"))

LINES = ("baseline", "dma", "busy-baseline", "busy-dma")
"""Rows that are the lines of the published table."""


def lines() -> Compact:
    """Rows of guests that are lines of the table, with the same number of huge pages."""
    return _sized(SHIPPED.at("vm").only(LINES), nr_huge=2048, node_bytes=10 << 30)


def batches() -> Compact:
    """What the native stage moves batch by batch, one round each."""
    native = SHIPPED.at("native")
    rows = tuple(row for row in native.rows if not cast(CompactRow, row).is_whole)
    only = native.model_copy(update={"rows": rows})
    return _sized(only, buffer_bytes=256 << 20, rounds=1)


def _sized(experiment: Compact, **fields: int) -> Compact:
    rows = tuple(cast(CompactRow, row).model_copy(update=fields) for row in experiment.rows)
    return experiment.model_copy(update={"rows": rows})
