# SPDX-License-Identifier: GPL-2.0-only
"""Whether a run fits into this machine's memory, and smaller devices where it does not."""

from collections.abc import Sequence
from pathlib import Path

from ream.errors import CannotRunHere
from ream.experiment import SECTION_BYTES, Row, format_size
from ream.oracle.memmap import Facts
from ream.stage.native import NativeRow, image_bytes, native_row

MEMORY_SHARE = 0.7
"""Of the available memory we take; the rest is the machine's own."""


def available_bytes(root: Path = Path("/")) -> int:
    """Memory that we may take now: MemAvailable, or what our control group leaves of its limit."""
    meminfo = (root / "proc/meminfo").read_text(encoding="ascii").splitlines()
    bounds = [int(line.split()[1]) << 10 for line in meminfo if line.startswith("MemAvailable:")]
    try:
        limit = (root / "sys/fs/cgroup/memory.max").read_text(encoding="ascii").strip()
        used = (root / "sys/fs/cgroup/memory.current").read_text(encoding="ascii").strip()
    except OSError:
        limit = used = ""
    if limit.isdecimal() and used.isdecimal():
        bounds.append(max(0, int(limit) - int(used)))
    if not bounds:
        raise CannotRunHere("/proc/meminfo does not say how much memory is available")
    return min(bounds)


def needed_bytes(rows: Sequence[NativeRow], facts: Facts) -> int:
    """Memory a run takes: the arena of the largest map, and every predicted image."""
    arena = max(row.device.map_bytes(facts) for row in rows)
    return arena + sum(image_bytes(row, facts) for row in rows)


def fit_rows(
    rows: Sequence[Row], available: int, facts: Facts
) -> tuple[tuple[Row, ...], tuple[str, ...]]:
    """Halve the largest devices until the run fits into `available` bytes; say which were.

    Raises CannotRunHere if even one section each does not fit.
    """
    fitted = list(rows)
    while needed_bytes([native_row(row) for row in fitted], facts) > available * MEMORY_SHARE:
        largest = max(range(len(fitted)), key=lambda at: fitted[at].device_bytes)
        halved = fitted[largest].nr_sections // 2
        if not halved:
            raise CannotRunHere(
                f"{available >> 20} MiB of memory are available, and even the smallest devices"
                " need more"
            )
        smaller = {"device_bytes": halved * SECTION_BYTES}
        fitted[largest] = fitted[largest].model_copy(update=smaller)
    said = tuple(
        f"{row.name}: {format_size(now.device_bytes)} instead of {format_size(row.device_bytes)},"
        f" since {available / (1 << 30):.1f} GiB of memory are available"
        for row, now in zip(rows, fitted, strict=True)
        if row != now
    )
    return tuple(fitted), said
