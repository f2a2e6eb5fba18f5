# SPDX-License-Identifier: GPL-2.0-only
"""What the native stage asks of compact, which has two programs.

One hosts all of direct compaction; whole.py. The other is the bench of migrate, for what compaction
moves, batch by batch: folios are on their lists and targets are known before the clock runs, and
the rest is migrate_pages().
"""

from collections.abc import Sequence
from pathlib import Path

from experiments.migrate.cases import GIVEN_AWAY, cases
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

from . import whole
from .rows import HOLE_EVERY, CompactRow

REASON = "COMPACTION"
MODE: Mode = "async"
"""Mode of direct compaction's first attempt."""

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


def is_whole(row: CompactRow) -> bool:
    """Whether huge pages are asked for, and not batches moved."""
    return row.is_whole


def is_batch(row: CompactRow) -> bool:
    """The others."""
    return not row.is_whole


BATCHES: Hosted[CompactRow] = Hosted(
    FOLDER,
    plan_of,
    SIZED,
    cases,
    suit=suit,
    runs=is_batch,
    label="batches",
    elsewhere=GIVEN_AWAY,
)
HOSTED: Hosted[CompactRow] = Hosted(
    whole.FOLDER,
    whole.plan_of,
    whole.SIZED,
    whole.cases,
    suit=whole.suit,
    runs=is_whole,
    beside=(BATCHES,),
    # A compactor that looks at fewer pages is asked to reschedule less often.
    same_work=False,
    unhosted={"LRU_GEN": "which frames are on a list is read of lists that have no generations"},
)
