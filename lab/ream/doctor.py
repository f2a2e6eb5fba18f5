# SPDX-License-Identifier: GPL-2.0-only
"""What can run on this machine, and why not: every need of a stage, looked at, not changed."""

import os
import shlex
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ream.counted import counted
from ream.errors import CannotRunHere, ReamError
from ream.kernel.arch import ARM64, arch_of, native_arch
from ream.kernel.build import compiler_version
from ream.packages import install_line
from ream.paths import CHECKOUT, cache_dir
from ream.record.machine import read_machine
from ream.settings import JOURNAL, state_dir
from ream.stage import counters
from ream.stage.accel import PVM, host_module, kvm_fault
from ream.stage.live import FOLIO_KIB, why_not
from ream.stage.memory import available_bytes
from ream.stage.qemu import BOARDS
from ream.stage.shadowed import why_shadowed

TOOLS = ("gcc", "ld", "objcopy", "nm", "readelf", "make", "flex", "bison", "bc", "git", "xz")
GUEST_TOOLS = ("qemu-system-x86_64", "ndctl", "daxctl", "setpriv")
GUEST_BYTES = 5 << 30
"""Two guests at a time, each with a map of 1.6 GiB and what it touches of its own."""

CACHE_BYTES = 6 << 30
"""A tree, its build, and a few variants of it."""

COMFORTABLE_BYTES = 8 << 30
"""The largest map is 1.6 GiB, and so are two predicted images."""

BUSY_LOAD = 0.25
"""Load per CPU from other processes; more than that widens the intervals."""

NODES_TO_MOVE_BETWEEN = 2
"""With memory: where it comes from and where it goes."""

SETUP = "make setup"

OPTIONAL_TOOLS = {
    "parallel": "ream plan --emit parallel: cells on several machines",
    "ssh": "the same, to reach them",
    "man": "ream man, which shows the source of its pages without it",
}
"""What a command makes use of where it is there."""

State = Literal["ok", "warn", "NO"]


@dataclass(frozen=True)
class Finding:
    state: State
    subject: str
    text: str
    fix: str | None = None
    """What to do about it: a line to type where there is one; None where nothing is missing."""


def examine() -> tuple[Finding, ...]:
    """Look at everything the stages need; nothing is installed. Whether KVM works is tried out."""
    return (
        _cpu(),
        *(_tool(name) for name in TOOLS if shutil.which(name) is None),
        _compiler(),
        _arm64(),
        _counters(),
        _huge_pages(),
        _memory(),
        _disk(),
        _source(),
        *_guests(),
        _live(),
        _page_tables(),
        *_left_changed(),
        _quiet(),
        *_optional(),
    )


def _cpu() -> Finding:
    machine = read_machine()
    return Finding("ok", "machine", machine.line())


def _tool(name: str) -> Finding:
    return Finding("NO", name, "not installed: a stage drives it", SETUP)


def _compiler() -> Finding:
    try:
        return Finding("ok", "compiler", compiler_version(arch=arch_of(native_arch())))
    except ReamError as error:
        return Finding("NO", "compiler", str(error), SETUP)


def _arm64() -> Finding:
    if ARM64.is_here:
        return Finding("ok", "arm64", "kernels of this machine's kind run natively, and are timed")
    try:
        ARM64.require_tools()
    except CannotRunHere as error:
        return Finding("warn", "arm64", str(error), SETUP)
    text = f"its kernels can be verified and counted under {ARM64.emulator}: ream run --arch arm64"
    if shutil.which(program := BOARDS[ARM64.name].program) is None:
        return Finding("warn", "arm64", f"{text}; for guests {program} is not installed", SETUP)
    return Finding("ok", "arm64", text)


def _counters() -> Finding:
    if (reason := counters.why_none()) is not None:
        return Finding("ok", "CPU's counters", f"no table has them beside its times: {reason}")
    return Finding("ok", "CPU's counters", "tables have cycles, instructions and misses, too")


def _huge_pages() -> Finding:
    path = Path("/sys/kernel/mm/transparent_hugepage/enabled")
    try:
        state = path.read_text().strip()
    except OSError:
        return Finding(
            "NO",
            "huge pages",
            "this kernel has no transparent huge pages",
            "boot a kernel with CONFIG_TRANSPARENT_HUGEPAGE",
        )
    if "[never]" in state:
        text = f"off ({state}): the map would lie in 4 KiB pages"
        return Finding("warn", "huge pages", text, f"echo madvise > {path}")
    return Finding("ok", "huge pages", state)


def _guests() -> Iterator[Finding]:
    """What the vm stage needs besides; without it the native stage still runs."""
    missing = [name for name in GUEST_TOOLS if shutil.which(name) is None]
    if missing:
        yield Finding("warn", "vm stage", f"not installed: {', '.join(missing)}", SETUP)
        return
    try:
        fault = kvm_fault(cache_dir())
    except CannotRunHere as cause:
        fault = f"the probe cannot be made ({cause})"
    module = host_module()
    if module is not None:
        bears = ", which does not boot ordinary kernels as guests" if module == PVM else ""
        yield Finding("ok", "KVM's module", f"{module}{bears}")
    if fault is None:
        yield Finding("ok", "vm stage", "guests run under KVM, so they can be timed")
    else:
        text = f"guests are emulated, so instructions are counted, and nothing timed: {fault}"
        yield Finding("ok", "vm stage", text)
    if (available := available_bytes()) < GUEST_BYTES:
        text = f"{available >> 30} GiB available; the largest guest takes {GUEST_BYTES >> 30} GiB"
        yield Finding("warn", "vm memory", text, "end other programs, or choose rows with --row")


def _live() -> Finding:
    """System calls over folios of each size; other experiments need a patched kernel."""
    missing = {kib: reason for kib in FOLIO_KIB if (reason := why_not(kib))}
    if not missing:
        nodes = sum(bool(node.memory_bytes) for node in read_machine().nodes)
        two = nodes >= NODES_TO_MOVE_BETWEEN
        less = (
            "" if two else f"; moving memory needs two NUMA nodes with memory, and here is {nodes}"
        )
        return Finding("ok", "live stage", f"system calls are timed in folios of every size{less}")
    fix = _as_root() if os.geteuid() else "boot Linux 6.8 or newer with mTHP"
    if FOLIO_KIB[0] in missing:
        free = "end other programs: 1 GiB is mapped"
        return Finding("warn", "live stage", missing[FOLIO_KIB[0]], free)
    sizes = ", ".join(map(str, missing))
    text = f"not with folios of {sizes} KiB: {missing[max(missing)]}"
    return Finding("warn", "live stage", text, fix)


def _page_tables() -> Finding:
    if (why := why_shadowed()) is None:
        return Finding("ok", "page tables", "the CPU uses this kernel's own, and no hypervisor's")
    return Finding(
        "warn",
        "page tables",
        f"a hypervisor shadows them ({why}): live times of fork, munmap, mprotect and faults"
        " contain its work",
        "measure those on a machine whose hypervisor leaves page tables to the CPU",
    )


def _as_root() -> str:
    """The same question asked by root, whose PATH is another one: it needs to know where we are."""
    return shlex.join(("sudo", str(CHECKOUT / "ream"), "doctor"))


def _left_changed() -> Iterator[Finding]:
    """Settings of this machine that a killed run of the live stage changed."""
    if (journal := state_dir() / JOURNAL).exists():
        text = f"a run ended without putting them back; {journal} has what they were"
        yield Finding("warn", "settings", text, "ream restore")


def _quiet() -> Finding:
    """Whether a measurement that began now would share the CPUs."""
    load, cpus = os.getloadavg()[0], os.cpu_count() or 1
    text = f"load {load:.2f} on {counted(cpus, 'CPU')}"
    if load <= BUSY_LOAD * cpus:
        return Finding("ok", "other programs", text)
    return Finding(
        "warn", "other programs", f"{text}: a run now is noisy", "wait, or end them (see `top`)"
    )


def _optional() -> Iterator[Finding]:
    for name, purpose in OPTIONAL_TOOLS.items():
        if shutil.which(name) is None:
            text = f"not installed; only for {purpose}"
            yield Finding("warn", name, text, install_line(name))


def _memory() -> Finding:
    available = available_bytes()
    text = f"{available >> 30} GiB available"
    if available < COMFORTABLE_BYTES:
        less = f"{text}; the largest devices will be made smaller"
        return Finding("warn", "memory", less, "end other programs")
    return Finding("ok", "memory", text)


def _disk() -> Finding:
    place = cache_dir()
    existing = next(path for path in (place, *place.parents) if path.exists())
    if not os.access(existing, os.W_OK):
        text = f"{existing} cannot be written to"
        return Finding("NO", "cache", text, "export XDG_CACHE_HOME=/a/directory/of/yours")
    free = shutil.disk_usage(existing).free
    text = f"{free >> 30} GiB free for {place}"
    if free >= CACHE_BYTES:
        return Finding("ok", "cache", text)
    room = f"make room, or point XDG_CACHE_HOME to a disk with {CACHE_BYTES >> 30} GiB"
    if (place / "base").is_dir():
        enough = f"{text}: enough for what is there, not for a new tree"
        return Finding("warn", "cache", enough, room)
    needed = f"{text}, a tree and its builds need {CACHE_BYTES >> 30} GiB"
    return Finding("NO", "cache", needed, room)


def _source() -> Finding:
    trees = cache_dir() / "tree"
    if trees.is_dir() and any(trees.iterdir()):
        return Finding("ok", "kernel source", "in the cache")
    if shutil.which("apt-get") is None:
        return Finding("warn", "kernel source", "no apt-get here", "ream run --tree PATH")
    return Finding("ok", "kernel source", "not in the cache; the first run fetches it")
