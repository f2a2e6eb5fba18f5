# SPDX-License-Identifier: GPL-2.0-only
"""Columns that samples of every experiment may have: what the machine counted beside the time."""

from collections.abc import Callable
from dataclasses import replace

from ream.experiment.columns import Column, Columns, Numbers, Shown, ShownColumn
from ream.measure.sample import Sample

PREFIX = "counter_"
"""Prefix of the counters' keys in a sample."""
OBJECT = "counters"
"""What has them in a record's columns."""

LINE_BYTES = 64
MEGA, KIBI = 1e6, 1024.0

MEANS = {
    "cycles": "cycles of the CPUs, in user space",
    "instructions": "instructions, in user space",
    "cache_misses": "accesses that miss the last cache, as the CPU's maker counts them",
    "tlb_misses": "reads of data that miss the TLB",
    "dram_reads": "lines of 64 bytes that all CPUs read from memory",
    "dram_writes": "lines of 64 bytes that all CPUs wrote to memory",
    "energy_uj": "energy of all CPU packages, of everything that ran on them",
}
"""By counter."""


def _number(name: str) -> Callable[[Sample, bool], float | None]:
    return lambda sample, _: sample.beside.get(f"{PREFIX}{name}")


COLUMNS = tuple(
    Column(f"{OBJECT}.{name}", means, _number(name), unit="uj" if name.endswith("_uj") else "")
    for name, means in MEANS.items()
)


def _over(
    name: str, divisor: Callable[[Numbers], float | None]
) -> Callable[[Numbers], float | None]:
    def value(numbers: Numbers) -> float | None:
        counter, by = numbers.get(f"{OBJECT}.{name}"), divisor(numbers)
        return None if counter is None or not by else counter / by

    return value


def _bytes_over_kib(numbers: Numbers) -> float | None:
    return numbers["nr_bytes"] / KIBI


SHOWN = Shown(
    read=(
        "What the machine's counters say: millions of cycles and instructions; instructions per"
        " cycle; misses of the last cache and of the TLB per KiB; MB from and to memory; joules."
        " Memory and energy are of all that ran meanwhile."
    ),
    cells=(
        ShownColumn("Mcycles", 9, _over("cycles", lambda _: MEGA), digits=2),
        ShownColumn("Minstr", 9, _over("instructions", lambda _: MEGA), digits=2),
        ShownColumn("IPC", 6, _over("instructions", lambda n: n.get(f"{OBJECT}.cycles")), digits=2),
        ShownColumn("miss/KiB", 9, _over("cache_misses", _bytes_over_kib), digits=2),
        ShownColumn("TLB/KiB", 8, _over("tlb_misses", _bytes_over_kib), digits=2),
        ShownColumn("read MB", 8, _over("dram_reads", lambda _: MEGA / LINE_BYTES), digits=1),
        ShownColumn("written", 8, _over("dram_writes", lambda _: MEGA / LINE_BYTES), digits=1),
        ShownColumn("J", 6, _over("energy_uj", lambda _: MEGA), digits=2),
    ),
    sparse=True,
)


def with_counters(own: Columns) -> Columns:
    """An experiment's columns and tables, and behind them those of the machine's counters."""
    return replace(own, columns=(*own.columns, *COLUMNS), tables=(*own.tables, SHOWN))
