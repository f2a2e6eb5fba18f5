# SPDX-License-Identifier: GPL-2.0-only
"""Finds out whether a hypervisor shadows this machine's page tables, as PVM and Xen PV do.

The CPU then walks tables of the hypervisor, which copies each entry of ours when it is first used
or flushed. Live times of whatever writes page tables contain that work.
"""

import mmap
import time
from collections.abc import Callable, Iterator
from pathlib import Path

PAGES = 8192
"""More than a TLB has entries for, so the second touch of each page misses it, too."""
ATTEMPTS = 3
POPULATE_WRITE = 23
"""MADV_POPULATE_WRITE of include/uapi/asm-generic/mman-common.h, since Linux 5.14."""
SHADOWED = 8.0
"""Times as long as the second touch the first one takes where entries are copied: a fault of the
hypervisor, at least a microsecond, against a walk that misses the caches, at most 0.1."""

GUEST_TYPE = "sys/hypervisor/guest_type"


def why_shadowed(
    root: Path = Path("/"), first_touch: Callable[[], float | None] | None = None
) -> str | None:
    """What shows that page tables are shadowed; None if nothing does.

    root: the file system to look into. first_touch: measures it; unless given, here.
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
    """What a run says of live times of page tables: nothing where the CPU walks our own."""
    why = why_shadowed()
    if why is None:
        return ()
    words = (
        f"a hypervisor shadows this machine's page tables ({why}): times of the running kernel"
        " where it writes them contain the hypervisor's work, and predict no other machine's"
    )
    return (words,)


def first_touch_ratio() -> float | None:
    """Time of the first touch of mapped pages over that of the second, the least of all attempts.

    None where the kernel cannot map pages before they are touched.
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
