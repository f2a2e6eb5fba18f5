# SPDX-License-Identifier: GPL-2.0-only
"""Finds out whether a hypervisor shadows this machine's page tables, as PVM and Xen PV do.

The CPU then walks tables of the hypervisor, which copies each of the kernel's entries when it is
first used or flushed. Live times of operations that write page tables include that work.
"""

import mmap
import time
from collections.abc import Callable, Iterator
from pathlib import Path

PAGES = 8192
"""More pages than a TLB has entries, so the second touch of each page also misses the TLB."""
ATTEMPTS = 3
POPULATE_WRITE = 23
"""MADV_POPULATE_WRITE of include/uapi/asm-generic/mman-common.h, since Linux 5.14."""
SHADOWED = 8.0
"""Least ratio of the first touch to the second if entries are copied. A fault of the hypervisor
takes at least 1 µs; a walk that misses the caches takes at most 0.1 µs."""

GUEST_TYPE = "sys/hypervisor/guest_type"


def why_shadowed(
    root: Path = Path("/"), first_touch: Callable[[], float | None] | None = None
) -> str | None:
    """Return what shows that page tables are shadowed; None if nothing does.

    root: the root of the file system to read. first_touch: measures the ratio; None: on this
    machine.
    """
    try:
        guest_type = (root / GUEST_TYPE).read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        guest_type = ""
    if guest_type == "PV":
        return f"/{GUEST_TYPE} says {guest_type}"
    ratio = (first_touch or first_touch_ratio)()
    if ratio is None or ratio < SHADOWED:
        return None
    return f"the first touch of a page that is mapped takes {ratio:.0f} times as long as the second"


def shadowed_warnings() -> tuple[str, ...]:
    """Return a run's warnings on live times of page tables; empty if they are not shadowed."""
    why = why_shadowed()
    if why is None:
        return ()
    words = (
        f"a hypervisor shadows this machine's page tables ({why}): times of the running kernel"
        " where it writes them contain the hypervisor's work, and predict no other machine's"
    )
    return (words,)


def first_touch_ratio() -> float | None:
    """Return the time of the first touch of mapped pages over the second's, the least of several.

    None if the kernel cannot map pages before they are touched.
    """
    found = list(_ratios())
    return min(found) if found else None


def _ratios() -> Iterator[float]:
    nr_bytes = PAGES * mmap.PAGESIZE
    for _ in range(ATTEMPTS):
        with mmap.mmap(-1, nr_bytes, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as pages:
            try:
                pages.madvise(mmap.MADV_NOHUGEPAGE)
                pages.madvise(POPULATE_WRITE)
            except OSError:
                return
            with memoryview(pages) as view, view[:: mmap.PAGESIZE] as firsts:
                times = []
                for _ in range(2):
                    began = time.perf_counter_ns()
                    bytes(firsts)
                    times.append(time.perf_counter_ns() - began)
            yield times[0] / max(1, times[1])
