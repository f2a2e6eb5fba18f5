# SPDX-License-Identifier: GPL-2.0-only
"""What can run on this machine, and why not: every need of a stage, looked at, not changed."""

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ream.errors import CannotRunHere, ReamError
from ream.kernel.build import compiler_version
from ream.paths import cache_dir
from ream.record.machine import read_machine
from ream.stage.accel import kvm_fault
from ream.stage.live import FOLIO_KIB, why_not
from ream.stage.memory import available_bytes

TOOLS = ("gcc", "ld", "objcopy", "nm", "readelf", "make", "flex", "bison", "bc", "git", "xz")
GUEST_TOOLS = ("qemu-system-x86_64", "ndctl", "daxctl", "setpriv")
GUEST_BYTES = 5 << 30
"""Two guests at a time, each with a map of 1.6 GiB and what it touches of its own."""

CACHE_BYTES = 6 << 30
"""A tree, its build, and a few variants of it."""

COMFORTABLE_BYTES = 8 << 30
"""The largest map is 1.6 GiB, and so are two predicted images."""

MIGRATE_NODES = 2
"""With memory: where it comes from and where it goes."""

State = Literal["ok", "warn", "NO"]


@dataclass(frozen=True)
class Finding:
    state: State
    subject: str
    text: str


def examine() -> tuple[Finding, ...]:
    """Look at everything the stages need; nothing is installed. Whether KVM works is tried out."""
    return (
        _cpu(),
        *(_tool(name) for name in TOOLS if shutil.which(name) is None),
        _compiler(),
        _huge_pages(),
        _memory(),
        _disk(),
        _source(),
        *_guests(),
        _live(),
    )


def _cpu() -> Finding:
    machine = read_machine()
    return Finding("ok", "machine", machine.line())


def _tool(name: str) -> Finding:
    return Finding("NO", name, "not installed; `make setup` installs what ream drives")


def _compiler() -> Finding:
    try:
        return Finding("ok", "compiler", compiler_version())
    except ReamError as error:
        return Finding("NO", "compiler", str(error))


def _huge_pages() -> Finding:
    path = Path("/sys/kernel/mm/transparent_hugepage/enabled")
    try:
        state = path.read_text().strip()
    except OSError:
        return Finding("NO", "huge pages", "this kernel has no transparent huge pages")
    if "[never]" in state:
        return Finding(
            "warn", "huge pages", f"off ({state}): the map would lie in 4 KiB pages; write madvise"
        )
    return Finding("ok", "huge pages", state)


def _guests() -> Iterator[Finding]:
    """What the vm stage needs besides; without it the native stage still runs."""
    missing = [name for name in GUEST_TOOLS if shutil.which(name) is None]
    if missing:
        text = f"not installed: {', '.join(missing)}; `make setup` installs what ream drives"
        yield Finding("warn", "vm stage", text)
        return
    try:
        fault = kvm_fault(cache_dir())
    except CannotRunHere as cause:
        fault = f"the probe cannot be made ({cause})"
    if fault is None:
        yield Finding("ok", "vm stage", "guests run under KVM: their times are times")
    else:
        text = f"emulated by TCG, which counts instructions instead of time: {fault}"
        yield Finding("ok", "vm stage", text)
    if (available := available_bytes()) < GUEST_BYTES:
        text = f"{available >> 30} GiB available; the largest guest takes {GUEST_BYTES >> 30} GiB"
        yield Finding("warn", "vm memory", text)


def _live() -> Finding:
    """Of fork and migrate; zone-device needs a patched kernel."""
    missing = {kib: reason for kib in FOLIO_KIB if (reason := why_not(kib))}
    if not missing:
        nodes = sum(bool(node.memory_bytes) for node in read_machine().nodes)
        more = " and migrate" if nodes >= MIGRATE_NODES else ""
        less = "" if more else f"; migrate needs two NUMA nodes with memory, here is {nodes}"
        return Finding("ok", "live stage", f"fork{more}, with folios of every size{less}")
    if FOLIO_KIB[0] in missing:
        return Finding("warn", "live stage", missing[FOLIO_KIB[0]])
    sizes = ", ".join(map(str, missing))
    return Finding("warn", "live stage", f"not with folios of {sizes} KiB: {missing[max(missing)]}")


def _memory() -> Finding:
    available = available_bytes()
    text = f"{available >> 30} GiB available"
    if available < COMFORTABLE_BYTES:
        return Finding("warn", "memory", f"{text}; the largest devices will be made smaller")
    return Finding("ok", "memory", text)


def _disk() -> Finding:
    place = cache_dir()
    existing = next(path for path in (place, *place.parents) if path.exists())
    if not os.access(existing, os.W_OK):
        return Finding("NO", "cache", f"{existing} cannot be written to; set XDG_CACHE_HOME")
    free = shutil.disk_usage(existing).free
    text = f"{free >> 30} GiB free for {place}"
    if free >= CACHE_BYTES:
        return Finding("ok", "cache", text)
    if (place / "base").is_dir():
        return Finding("warn", "cache", f"{text}: enough for what is there, not for a new tree")
    return Finding("NO", "cache", f"{text}, a tree and its builds need {CACHE_BYTES >> 30} GiB")


def _source() -> Finding:
    trees = cache_dir() / "tree"
    if trees.is_dir() and any(trees.iterdir()):
        return Finding("ok", "kernel source", "in the cache")
    if shutil.which("apt-get") is None:
        return Finding("warn", "kernel source", "no apt-get here: give a kernel tree with --tree")
    return Finding("ok", "kernel source", "not in the cache; the first run fetches it")
