# SPDX-License-Identifier: GPL-2.0-only
"""A native row of compact: what compaction has moved, batch by batch, on the bench of migrate.

Scanners, and what gives out targets, are of mm/compaction.c, which is not hosted: folios are on
their lists and targets are known before the clock runs. The rest is migrate_pages().
"""

from collections.abc import Sequence
from pathlib import Path

from experiments.migrate.cases import cases
from experiments.migrate.oracle.folios import Mode
from experiments.migrate.oracle.uniform import Kind
from experiments.migrate.plan import (
    COUNTED_BYTES,
    FOLDER,
    Timed,
    extent_bytes,
    halved,
    memory_of,
    suit,
    timed_plan,
)
from ream.stage.hosted import Hosted, Planned
from ream.stage.memory import Sized
from ream.stage.native import Build

from .rows import HOLE_EVERY, CompactRow

REASON = "COMPACTION"
MODE: Mode = "async"
"""As direct compaction asks first."""

PRE_STATE = "isolated"
"""Descriptors have just been read by the scanners, and nothing else has."""


def timed(row: CompactRow) -> Timed:
    """What the bench of migrate makes of a row."""
    assert row.batch_pages is not None  # which all native rows have
    kind = Kind(
        order=0,
        total_bytes=row.buffer_bytes,
        mode=MODE,
        reason=REASON,
        spread=HOLE_EVERY,
        folios_per_call=row.batch_pages,
        one_node=True,
    )
    return Timed(
        name=row.name,
        kind=kind,
        rounds=row.rounds,
        engine="dma" if row.channels else "serial",
        channels=row.channels,
        model=row.model,
        pre_state=PRE_STATE,
        copies=row.measure == "move",
        flush=row.tlb_flush == "measured",
    )


def plan_of(rows: Sequence[CompactRow], threads: int | None, build: Build, work: Path) -> Planned:
    """The plan of an experiment's rows. threads: a row says how many channels copy."""
    del threads
    return timed_plan([timed(row) for row in rows], build, work)


def needed_bytes(rows: Sequence[CompactRow], build: Build) -> int:
    """Memory a run takes."""
    del build
    return memory_of([timed(row) for row in rows])


SIZED: Sized[CompactRow] = Sized(needed_bytes, extent_bytes, halved, COUNTED_BYTES)
HOSTED: Hosted[CompactRow] = Hosted(FOLDER, plan_of, SIZED, cases, suit=suit)
