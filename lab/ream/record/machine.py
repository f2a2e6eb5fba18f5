# SPDX-License-Identifier: GPL-2.0-only
"""Describes the machine and its activity, as read from /proc and /sys.

A value that cannot be read is None: unknown is not zero. Every reader takes the root of the file
system, so that tests can supply another machine's.
"""

import math
import os
import re
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from ream.counted import counted
from ream.record.identity import machine_id
from ream.values import Texts, Tuple, Value

FLAGS_OF_INTEREST = (
    "avx", "avx2", "avx512f", "clflushopt", "clwb", "clzero", "constant_tsc", "erms", "fsrm",
    "fsrs", "hypervisor", "la57", "movdir64b", "movdiri", "nonstop_tsc", "rep_good", "sse2",
    "tsc_reliable",
)  # fmt: skip
"""CPU flags that decide which stores and string operations run, or whether to trust the clock."""

MAX_STEAL_PCT = 1.0
MAX_OTHERS_PCT = 5.0
TIMER_READS = 2000
NR_TICKS = 8
"""The number of times used from a line of /proc/stat, user to steal; user includes guests."""


class Cache(Value):
    """A cache of one CPU."""

    level: int
    type: str
    """One of Data, Instruction and Unified."""
    size_bytes: int
    line_bytes: int | None
    shared_by: str | None
    """The CPUs that share the cache, as the kernel lists them."""


class Node(Value):
    """A NUMA node. cpus: the list of its CPUs as the kernel prints it."""

    number: int
    cpus: str
    memory_bytes: int | None


class Machine(Value):
    """The hardware and settings of a machine. A value that cannot be read is None."""

    cpu: str | None
    family: int | None
    model: int | None
    stepping: int | None
    microcode: str | None
    flags: Texts
    caches: Tuple[Cache]
    """The caches of the first CPU."""
    nodes: Tuple[Node]
    nr_cpus: int
    nr_usable_cpus: int
    """The CPUs in this process's affinity mask."""
    cpu_quota: str | None
    """The cpu.max of our control group, if it sets a limit."""
    smt: str | None
    governor: str | None
    boost: str | None
    memory_bytes: int | None
    thp: str | None
    thp_defrag: str | None
    hypervisor: bool | None
    kernel: str | None
    clock_source: str | None
    timer_step_ns: int
    """The smallest difference between two readings of the clock, an upper bound on its step."""
    vendor: str | None = None
    """The CPU's vendor_id, such as AuthenticAMD; None in older records."""
    id: str | None = None
    """A digest that tells machines of one kind apart and reveals nothing about them."""

    @property
    def is_amd(self) -> bool:
        """Whether the CPU is AMD's, by its vendor, or in older records by its name."""
        return "AMD" in (self.vendor or self.cpu or "")

    def cache_bytes(self, level: int) -> int | None:
        """Size of the data cache of one level, as one CPU sees it; None if it is unknown."""
        return next(
            (c.size_bytes for c in self.caches if c.level == level and c.type != "Instruction"),
            None,
        )

    def line(self) -> str:
        """The machine in one line, for the head of a table."""
        words = [self.cpu or "unknown CPU"]
        if self.family is not None:
            words[0] += f" (family {self.family} model {self.model} stepping {self.stepping})"
        words.append(counted(self.nr_cpus, "CPU"))
        words += [
            f"L{cache.level} {_round_size(cache.size_bytes)}"
            for cache in self.caches
            if cache.type != "Instruction" and cache.level > 1
        ]
        if self.memory_bytes is not None:
            words.append(f"{_round_size(self.memory_bytes)} RAM")
        if self.hypervisor is not None:
            words.append("virtual machine" if self.hypervisor else "bare metal")
        return ", ".join(words)


class Snapshot(Value):
    """Counters of the system at one moment."""

    load_1min: float | None
    ticks: tuple[int, ...] | None
    """The first NR_TICKS times of /proc/stat, summed over CPUs since boot."""
    own_ticks: int
    """User and system time of this process and of its descendants, living or waited for."""


class Conditions(Value):
    """Other activity on the machine during the measurement."""

    load_before: float | None
    load_after: float | None
    steal_pct: float | None
    """Share of the CPU time between the snapshots that the hypervisor gave to others."""
    idle_pct: float | None
    others_pct: float | None
    """Share of CPU time used by programs other than this process and its descendants."""


def read_machine(root: Path = Path("/")) -> Machine:
    """Describe the machine whose file system begins at `root`."""
    cpuinfo = _cpuinfo(root)
    flags = set((cpuinfo.get("flags") or "").split())
    cpus = root / "sys/devices/system/cpu"
    return Machine(
        cpu=cpuinfo.get("model name"),
        family=whole(cpuinfo.get("cpu family")),
        model=whole(cpuinfo.get("model")),
        stepping=whole(cpuinfo.get("stepping")),
        microcode=cpuinfo.get("microcode"),
        flags=tuple(flag for flag in FLAGS_OF_INTEREST if flag in flags),
        caches=_caches(cpus / "cpu0/cache"),
        nodes=_nodes(root / "sys/devices/system/node"),
        nr_cpus=os.cpu_count() or 1,
        nr_usable_cpus=len(os.sched_getaffinity(0)),
        cpu_quota=_cpu_quota(root),
        smt=text_of(cpus / "smt/control"),
        governor=text_of(cpus / "cpu0/cpufreq/scaling_governor"),
        boost=boost_of(root),
        memory_bytes=_meminfo(root / "proc/meminfo"),
        thp=_chosen(root / "sys/kernel/mm/transparent_hugepage/enabled"),
        thp_defrag=_chosen(root / "sys/kernel/mm/transparent_hugepage/defrag"),
        hypervisor="hypervisor" in flags if flags else None,
        kernel=text_of(root / "proc/sys/kernel/osrelease"),
        clock_source=text_of(
            root / "sys/devices/system/clocksource/clocksource0/current_clocksource"
        ),
        timer_step_ns=timer_step_ns(),
        vendor=cpuinfo.get("vendor_id"),
        id=machine_id(root),
    )


def timer_step_ns() -> int:
    """The smallest step of CLOCK_MONOTONIC that this process can see."""
    smallest = 1_000_000_000
    last = time.monotonic_ns()
    for _ in range(TIMER_READS):
        now = time.monotonic_ns()
        if now > last:
            smallest = min(smallest, now - last)
        last = now
    return smallest


def take_snapshot(root: Path = Path("/")) -> Snapshot:
    """Load and CPU times at this moment; conditions() evaluates the time between two snapshots."""
    said = text_of(root / "proc/loadavg"), text_of(root / "proc/stat")
    # First the machine's times, then ours: what we use in between is not taken for others'.
    own = round(sum(os.times()[:4]) * os.sysconf("SC_CLK_TCK"))
    own += sum(_ticks_of(pid) for pid in _descendants(os.getpid()))
    return snapshot_of(*said, own_ticks=own)


def snapshot_of(loadavg: str | None, stat: str | None, *, own_ticks: int) -> Snapshot:
    """The snapshot in the texts of /proc/loadavg and /proc/stat; None is one that is not known."""
    load = re.match(r"[0-9]{1,9}\.[0-9]+", loadavg or "")
    times = re.match(r"cpu +((?:[0-9]{1,19} ?)+)", stat or "")
    ticks = tuple(int(word) for word in times[1].split()[:NR_TICKS]) if times else ()
    return Snapshot(
        load_1min=float(load[0]) if load else None,
        ticks=ticks if len(ticks) == NR_TICKS else None,
        own_ticks=own_ticks,
    )


def _descendants(pid: int) -> Iterator[int]:
    """The descendants of a process; a process that ends meanwhile is left out."""
    tasks: list[Path] = []
    with suppress(OSError):  # glob() says so if the directory has gone
        tasks += Path(f"/proc/{pid}/task").glob("[0-9]*/children")
    for task in tasks:
        for word in (text_of(task) or "").split():
            yield int(word)
            yield from _descendants(int(word))


def _ticks_of(pid: int) -> int:
    """User and system time of a process and of the children it has waited for; 0 if it is gone."""
    # The name, in parentheses, may hold anything; utime is the twelfth word after it.
    words = (text_of(Path(f"/proc/{pid}/stat")) or "").rpartition(")")[2].split()
    return sum(int(word) for word in words[11:15])


def conditions(before: Snapshot, after: Snapshot) -> Conditions:
    """The conditions between two snapshots, from the differences of their counters."""
    steal_pct = idle_pct = others_pct = None
    if before.ticks is not None and after.ticks is not None:
        # Iowait may run backwards; a total of nothing says nothing.
        spent = [
            max(late - early, 0) for early, late in zip(before.ticks, after.ticks, strict=True)
        ]
        if (total := sum(spent)) > 0:
            user, nice, system, idle, iowait, irq, softirq, steal = spent
            own = after.own_ticks - before.own_ticks
            others = max(user + nice + system + irq + softirq - own, 0)
            steal_pct, idle_pct, others_pct = (
                round(100 * ticks / total, 2) for ticks in (steal, idle + iowait, others)
            )
    return Conditions(
        load_before=before.load_1min,
        load_after=after.load_1min,
        steal_pct=steal_pct,
        idle_pct=idle_pct,
        others_pct=others_pct,
    )


def warnings(machine: Machine, during: Conditions) -> tuple[str, ...]:
    """Warnings about a possible bias, each with its number, its threshold and a remedy."""
    said = []
    if during.others_pct is not None and during.others_pct > MAX_OTHERS_PCT:
        said.append(
            f"other programs used {during.others_pct:.0f} % of the CPU time (more than "
            f"{MAX_OTHERS_PCT:g} %) and shared caches and memory: stop them and run again"
        )
    if during.steal_pct is not None and during.steal_pct > MAX_STEAL_PCT:
        said.append(
            f"the hypervisor took {during.steal_pct:.1f} % of the CPU time for others (more "
            f"than {MAX_STEAL_PCT:g} %): run again at another time or on another machine"
        )
    if len([node for node in machine.nodes if node.cpus]) > 1:
        said.append(
            f"the machine has {len(machine.nodes)} nodes and we count all CPUs as one: bind us to "
            "one of them (`numactl -N0 -m0 ream run`)"
        )
    if machine.governor not in (None, "performance"):
        said.append(
            f"the CPU frequency governor is {machine.governor}: "
            "`cpupower frequency-set -g performance` keeps the clock from changing"
        )
    if machine.thp == "never":
        said.append(
            "transparent huge pages are off: the map is in 4 KiB pages here, where the kernel "
            "uses 2 MiB; write madvise to /sys/kernel/mm/transparent_hugepage/enabled"
        )
    if machine.cpu_quota is not None:
        said.append(
            f"a control group limits our CPU time (cpu.max is {machine.cpu_quota!r}): "
            "a sample may contain a pause; run outside of it"
        )
    return tuple(said)


def text_of(path: Path) -> str | None:
    """The text of a kernel file; None if it is empty or cannot be read."""
    with suppress(OSError):
        return path.read_text(encoding="utf-8", errors="replace").strip() or None
    return None


def whole(text: str | None) -> int | None:
    """The text as an integer of at least 0; None if it is no such number."""
    return int(text) if text is not None and re.fullmatch(r"[0-9]{1,19}", text) else None


def _chosen(path: Path) -> str | None:
    """The word in brackets of "always [madvise] never"."""
    match = re.search(r"\[(\w+)\]", text_of(path) or "")
    return match[1] if match else None


def _cpuinfo(root: Path) -> dict[str, str]:
    """The fields of the first CPU in /proc/cpuinfo."""
    first = (text_of(root / "proc/cpuinfo") or "").split("\n\n")[0]
    fields = (line.partition(":") for line in first.splitlines())
    return {name.strip(): value.strip() for name, _, value in fields}


def _bytes(text: str | None) -> int | None:
    """The bytes of a size in the format of sysfs, such as 512K."""
    match = re.fullmatch(r"(\d+)([KMG]?)", text or "")
    return int(match[1]) << {"": 0, "K": 10, "M": 20, "G": 30}[match[2]] if match else None


def _caches(directory: Path) -> tuple[Cache, ...]:
    caches = []
    for index in sorted(directory.glob("index*")):
        level, size = whole(text_of(index / "level")), _bytes(text_of(index / "size"))
        kind = text_of(index / "type")
        if level is None or size is None or kind is None:
            continue
        caches.append(
            Cache(
                level=level,
                type=kind,
                size_bytes=size,
                line_bytes=whole(text_of(index / "coherency_line_size")),
                shared_by=text_of(index / "shared_cpu_list"),
            )
        )
    return tuple(caches)


def _meminfo(path: Path) -> int | None:
    """MemTotal of the machine or of one node, in bytes."""
    match = re.search(r"MemTotal: +(\d+) kB", text_of(path) or "")
    return int(match[1]) << 10 if match else None


def _nodes(directory: Path) -> tuple[Node, ...]:
    numbers = sorted(int(path.name[4:]) for path in directory.glob("node[0-9]*"))
    return tuple(
        Node(
            number=number,
            cpus=text_of(directory / f"node{number}/cpulist") or "",
            memory_bytes=_meminfo(directory / f"node{number}/meminfo"),
        )
        for number in numbers
    )


def _cpu_quota(root: Path) -> str | None:
    quota = text_of(root / "sys/fs/cgroup/cpu.max")
    return None if quota is None or quota.startswith("max") else quota


def boost_of(root: Path) -> str | None:
    """Whether the CPU may exceed its nominal clock: on, off, or None if no driver states it."""
    cpus = root / "sys/devices/system/cpu"
    if (no_turbo := text_of(cpus / "intel_pstate/no_turbo")) is not None:
        return "off" if no_turbo == "1" else "on"
    boost = text_of(cpus / "cpufreq/boost")
    return None if boost is None else ("on" if boost == "1" else "off")


def _round_size(nr_bytes: int) -> str:
    """A size with three significant digits, such as "512 KiB" or "7.6 GiB"."""
    power = max(0, min(4, int(math.log2(max(nr_bytes, 1)) // 10)))
    return f"{nr_bytes / (1 << 10 * power):.3g} {('B', 'KiB', 'MiB', 'GiB', 'TiB')[power]}"
