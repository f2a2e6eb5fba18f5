# SPDX-License-Identifier: GPL-2.0-only
"""Whether a run fits into this machine's memory, and smaller rows where it does not."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from ream.errors import CannotRunHere
from ream.experiment.shape import RowBase
from ream.size import format_size
from ream.stage.native import Build

R = TypeVar("R", bound=RowBase)

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


@dataclass(frozen=True)
class Sized(Generic[R]):
    """What an experiment says of the memory that its rows take."""

    needed_bytes: Callable[[Sequence[R], Build], int]
    """Memory that a run of rows takes."""
    extent_bytes: Callable[[R], int]
    """What makes a row large."""
    halved: Callable[[R], R | None]
    """The row with half of that; None if there is none."""
    counted_bytes: int = 16 << 20
    """Extent from which down a row is small enough where what it executes is counted."""


def fit_rows(
    rows: Sequence[R], available: int, build: Build, sized: Sized[R]
) -> tuple[tuple[R, ...], tuple[str, ...]]:
    """Halve the largest rows until the run fits into `available` bytes; say which were.

    Raises CannotRunHere if even the smallest do not fit.
    """
    fitted = list(rows)
    while sized.needed_bytes(fitted, build) > available * MEMORY_SHARE:
        largest = max(range(len(fitted)), key=lambda at: sized.extent_bytes(fitted[at]))
        smaller = sized.halved(fitted[largest])
        if smaller is None:
            raise CannotRunHere(
                f"{available >> 20} MiB of memory are available, and even the smallest rows"
                " need more"
            )
        fitted[largest] = smaller
    said = tuple(
        f"{row.name}: {format_size(sized.extent_bytes(now))} instead of"
        f" {format_size(sized.extent_bytes(row))},"
        f" since {available / (1 << 30):.1f} GiB of memory are available"
        for row, now in zip(rows, fitted, strict=True)
        if row != now
    )
    return tuple(fitted), said
