# SPDX-License-Identifier: GPL-2.0-only
"""Finds hardware counters in sysfs that are recorded with the time of a native sample.

The runner opens them (native/host/counters.c) and reports which the kernel refuses: a guest often
has no counters, and kernel.perf_event_paranoid denies system-wide ones to ordinary users. An
unknown value is missing, never 0.
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
"""Generic events, which the kernel maps to those of the CPU, by counter. The TLB event is of data
reads."""

OF_MEMORY = {
    "uncore_imc*": {"dram_reads": "cas_count_read", "dram_writes": "cas_count_write"},
    "amd_umc*": {"dram_reads": "event=0x0a,rdwrmask=0x1", "dram_writes": "event=0x0a,rdwrmask=0x2"},
}
"""Events that count transfers of 64 bytes, by the name of a memory controller's PMU. An event is an
alias that the kernel exports, as for Intel, or terms of the PMU's own format, as for AMD
(arch/x86/events/amd/uncore.c)."""

ENERGY = "energy_uj"

MOST_PARANOID = 2
"""Largest perf_event_paranoid with which a program may count its own user space execution. Kernels
of some distributions also know 3."""

_POWERCAP = "sys/class/powercap/intel-rapl:[0-9]*"
_PARANOID = "proc/sys/kernel/perf_event_paranoid"
_PMUS = "sys/bus/event_source/devices"
_BITS = re.compile(r"config:((?:\d+(?:-\d+)?,?)+)")


def sources(root: Path = Path("/")) -> tuple[str, ...]:
    """Return the counters that the runner opens, as `NAME=SOURCE` of native/host/counters.h.

    root: the directory that contains sys/. Sources that an ordinary user may not read are included;
    the runner reports that they were refused.
    """
    return (
        *(f"{name}={kind}:{config:x}" for name, (kind, config) in OF_CPU.items()),
        *_of_memory(root / _PMUS),
        *_of_energy(root),
    )


def _of_memory(pmus: Path) -> Iterator[str]:
    for pattern, counters in OF_MEMORY.items():
        for pmu in sorted(pmus.glob(pattern)):
            with suppress(OSError, ValueError, KeyError):  # another CPU generation: no counter
                kind = int((pmu / "type").read_text())
                for name, terms in counters.items():
                    config = _config(pmu, terms)
                    for cpu in (pmu / "cpumask").read_text().strip().split(","):
                        yield f"{name}={kind}:{config:x}:{int(cpu)}"


def _config(pmu: Path, terms: str) -> int:
    """Return perf_event_attr.config; raises KeyError or OSError if a term is missing."""
    alias = pmu / "events" / terms
    text = alias.read_text().strip() if alias.exists() else terms
    config = 0
    for term in text.split(","):
        name, _, value = term.partition("=")
        config |= _placed(int(value or "1", 0), (pmu / "format" / name).read_text())
    return config


def _placed(value: int, form: str) -> int:
    """Return a term's value placed in the bits that sysfs names, as in "config:0-7,32-35"."""
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
    """Yield energy counters of packages. Those of cores and memory are parts, or not everywhere."""
    for domain in sorted(root.glob(_POWERCAP)):
        with suppress(OSError, ValueError):
            if (domain / "name").read_text().startswith("package-"):
                largest = int((domain / "max_energy_range_uj").read_text())
                yield f"{ENERGY}=@{domain / ENERGY}:{largest}"


def why_none(root: Path = Path("/")) -> str | None:
    """Return why native samples have no CPU counters on this machine; None if they have some."""
    if not any((root / _PMUS).glob("cpu*")):
        return "this machine has none that programs can read, as most virtual machines have not"
    with suppress(OSError, ValueError):
        if int((root / _PARANOID).read_text()) > MOST_PARANOID:
            return "kernel.perf_event_paranoid keeps them from programs"
    return None
