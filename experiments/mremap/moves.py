# SPDX-License-Identifier: GPL-2.0-only
"""The jobs of rows that are measured by whole system calls."""

from experiments.mprotect.jobs import BLOCK_BYTES, Job, blocks, named_words

from .rows import MremapRow

OPERATION = "move"
"""What workloads/mremap_folios.c calls it."""


def mapped_bytes(row: MremapRow) -> int:
    """Memory that the program maps for a row: to each side of what moves across tables, more."""
    if row.layout == "one-table":
        return blocks(row.nr_calls * 2 * row.call_bytes)
    return row.nr_calls * blocks(row.call_bytes + BLOCK_BYTES * 3 // 4)


def job_of(row: MremapRow, displaced_bytes: int = 0) -> Job:
    """The job that gives a row its samples.

    displaced_bytes: other memory that is written before each move of a cold row.
    """
    kib = row.folio_bytes >> 10
    options = {
        "folio-kib": kib,
        "layout": row.layout,
        "call-bytes": row.call_bytes,
        "calls": row.nr_calls,
        "every": row.every,
        "map-order": "scattered" if row.frames == "scattered" else "contiguous",
    }
    return Job(
        **named_words(options, displaced_bytes if row.pre_state == "cold" else None),
        folio_kib=kib,
        nr_bytes=mapped_bytes(row),
        rounds=row.rounds,
        ops=(OPERATION,),
    )


def operation_of(row: MremapRow) -> str:
    """What the program calls what a row times."""
    del row
    return OPERATION
