# SPDX-License-Identifier: GPL-2.0-only
"""Which counters of the machine can stand beside the time of a native sample, found in sysfs.

The runner opens them (native/host/counters.c) and says which the host's kernel refuses: a guest
often has no counters, and kernel.perf_event_paranoid keeps those of the whole machine from an
ordinary user. A value that is not known is missing, never 0.
"""

import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

HARDWARE, HW_CACHE = 0, 3
"""PERF_TYPE_HARDWARE and PERF_TYPE_HW_CACHE of linux/perf_event.h."""

OF_CPU = {
    "cycles": (HARDWARE, 0),
    "instructions": (HARDWARE, 1),
    "cache_misses": (HARDWARE, 3),
    "tlb_misses": (HW_CACHE, 0x10003),
}
"""By counter: an event that the kernel maps to the CPU's own. The TLB's is of reads of data."""

OF_MEMORY = {
    "uncore_imc*": {"dram_reads": "cas_count_read", "dram_writes": "cas_count_write"},
    "amd_umc*": {"dram_reads": "event=0x0a,rdwrmask=0x1", "dram_writes": "event=0x0a,rdwrmask=0x2"},
}
"""By the name of a memory controller's PMU: what counts transfers of 64 bytes, as an alias that
the kernel exports or as terms of the PMU's own format. Intel's exports aliases, AMD's does not
(arch/x86/events/amd/uncore.c)."""

ENERGY = "energy_uj"

MOST_PARANOID = 2
"""A program may count what it does in user space; the kernels of some distributions know 3."""

_POWERCAP = "sys/class/powercap/intel-rapl:[0-9]*"
_PARANOID = "proc/sys/kernel/perf_event_paranoid"
_PMUS = "sys/bus/event_source/devices"
_BITS = re.compile(r"config:((?:\d+(?:-\d+)?,?)+)")


def sources(root: Path = Path("/")) -> tuple[str, ...]:
    """What the runner is asked to open, each as `NAME=SOURCE` of native/host/counters.h.

    root: where sys/ is. Sources that an ordinary user may not read are among them: the runner says
    that they were refused.
    """
    return (
        *(f"{name}={kind}:{config:x}" for name, (kind, config) in OF_CPU.items()),
        *_of_memory(root / _PMUS),
        *_of_energy(root),
    )


def _of_memory(pmus: Path) -> Iterator[str]:
    for pattern, counters in OF_MEMORY.items():
        for pmu in sorted(pmus.glob(pattern)):
            with suppress(OSError, ValueError, KeyError):  # of another generation: no counter
                kind = int((pmu / "type").read_text())
                for name, terms in counters.items():
                    config = _config(pmu, terms)
                    for cpu in (pmu / "cpumask").read_text().strip().split(","):
                        yield f"{name}={kind}:{config:x}:{int(cpu)}"


def _config(pmu: Path, terms: str) -> int:
    """The value of perf_event_attr.config; raises KeyError or OSError for what there is not."""
    alias = pmu / "events" / terms
    text = alias.read_text().strip() if alias.exists() else terms
    config = 0
    for term in text.split(","):
        name, _, value = term.partition("=")
        config |= _placed(int(value or "1", 0), (pmu / "format" / name).read_text())
    return config


def _placed(value: int, form: str) -> int:
    """A term's value in the bits that sysfs names, as "config:0-7,32-35"."""
    found = _BITS.match(form)
    if found is None:
        raise KeyError(form)
    config = 0
    for span in found[1].split(","):
        first, _, last = span.partition("-")
        for bit in range(int(first), int(last or first) + 1):
            config |= (value & 1) << bit
            value >>= 1
    return config


def _of_energy(root: Path) -> Iterator[str]:
    """Counters of whole packages. Cores and memory are part of them, or not counted everywhere."""
    for domain in sorted(root.glob(_POWERCAP)):
        with suppress(OSError, ValueError):
            if (domain / "name").read_text().startswith("package-"):
                largest = int((domain / "max_energy_range_uj").read_text())
                yield f"{ENERGY}=@{domain / ENERGY}:{largest}"


def why_none(root: Path = Path("/")) -> str | None:
    """Why native samples have no counters of the CPU here; None: they have some."""
    if not any((root / _PMUS).glob("cpu*")):
        return "this machine has none that programs can read, as most virtual machines have not"
    with suppress(OSError, ValueError):
        if int((root / _PARANOID).read_text()) > MOST_PARANOID:
            return "kernel.perf_event_paranoid keeps them from programs"
    return None
