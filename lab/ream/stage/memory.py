# SPDX-License-Identifier: GPL-2.0-only
"""Fits a run into this machine's memory, with smaller rows if necessary."""

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
"""Share of the available memory that ream uses; the rest is left to the machine."""


def available_bytes(root: Path = Path("/")) -> int:
    """Return the bytes of memory to use now: of MemAvailable, or of the control group's limit."""
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
    """An experiment's functions on the memory that its rows take."""

    needed_bytes: Callable[[Sequence[R], Build], int]
    """Returns the bytes of memory that a run of rows takes."""
    extent_bytes: Callable[[R], int]
    """Returns the size of a row, in bytes."""
    halved: Callable[[R], R | None]
    """Returns the row with half of that size; None if there is none."""
    counted_bytes: int = 16 << 20
    """Largest size of a row that is small enough for a run that counts."""


def fit_rows(
    rows: Sequence[R], available: int, build: Build, sized: Sized[R]
) -> tuple[tuple[R, ...], tuple[str, ...]]:
    """Halve the largest rows until the run fits into `available` bytes; also return which were.

    Raises CannotRunHere if even the smallest rows do not fit.
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
