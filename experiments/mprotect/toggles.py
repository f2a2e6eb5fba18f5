# SPDX-License-Identifier: GPL-2.0-only
"""The jobs of rows that are measured by whole system calls."""

from .jobs import Job, blocks, named_words
from .rows import OPERATIONS, MprotectRow

OPS: dict[str, tuple[str, ...]] = {"r": OPERATIONS[:2], "none": OPERATIONS[2:]}
"""By the option --to of workloads/mprotect_folios.c, what it times: there and back."""


def job_of(row: MprotectRow, displaced_bytes: int = 0) -> Job:
    """The job that gives a row its samples.

    displaced_bytes: other memory that is written before each operation of a cold row.
    """
    to = next(to for to, ops in OPS.items() if row.operation in ops)
    kib = row.folio_bytes >> 10
    options = {
        "folio-kib": kib,
        "memory": row.memory,
        "call-bytes": row.call_bytes,
        "calls": row.nr_calls,
        "every": row.every,
        "map-order": "scattered" if row.frames == "scattered" else "contiguous",
        "to": to,
    }
    return Job(
        **named_words(options, displaced_bytes if row.pre_state == "cold" else None),
        folio_kib=kib,
        nr_bytes=blocks(row.nr_calls * row.call_bytes),
        rounds=row.rounds,
        ops=OPS[to],
        shared=row.memory == "shared",
    )


def operation_of(row: MprotectRow) -> str:
    """What the program calls what a row times."""
    return row.operation
