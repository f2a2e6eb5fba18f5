# SPDX-License-Identifier: GPL-2.0-only
"""Runs programs by system calls: on the running kernel, and in a guest."""

import json
import os
import platform
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ream.command import Command, finished, last_words, run
from ream.errors import CannotRunHere, ReamError
from ream.kernel import confine
from ream.kernel.image import Image
from ream.paths import KERNEL_CONFIG
from ream.program.reproducer import reproducer
from ream.program.rules import Kernel, nr_nodes
from ream.program.scene import resolve
from ream.program.step import Program
from ream.stage.accel import ask_kvm, choose_accel
from ream.stage.initramfs import build_init, guest_initramfs
from ream.stage.qemu import MIB, GuestMachine, GuestNode
from ream.stage.vm import BootableKernel, Start
from ream.stage.workload import EXIT_CANNOT_RUN, compile_command

Said = list[Mapping[str, Any]]
"""What a kernel reported of a program."""

FRAGMENTS = (KERNEL_CONFIG / "vm.config",)
"""The configuration of a guest's kernel."""

LIVE_S = 300.0
GUEST_S = 1800.0
SILENCE_S = 300.0
NODE_DIRECTORIES = Path("/sys/devices/system/node")
HUGE_SHMEM = Path("/sys/kernel/mm/transparent_hugepage/shmem_enabled")
OWN_MIB = 512
"""What a guest has on its first node besides the program's memory: for its kernel and its files."""

SWAP = "/dev/ram0"


def build_program(program: Program, to: Path, *, sets: bool = False) -> Path:
    """Compile the program of system calls; raises CannotRunHere without gcc.

    sets: it writes the kernel's settings.
    """
    source = to.with_suffix(".c")
    source.write_text(reproducer(program, shows=True, sets=sets))
    run(compile_command(to, str(source), work=to.parent, arch=None))
    return to


def running_kernel() -> Kernel:
    """What rules ask of the kernel that this machine runs."""
    nodes = list(NODE_DIRECTORIES.glob("node[0-9]*"))
    swaps = Path("/proc/swaps").read_text(encoding="utf-8").splitlines()
    shmem = HUGE_SHMEM.read_text(encoding="utf-8") if HUGE_SHMEM.exists() else "[never]"
    return Kernel(
        _version(platform.release()),
        max(1, len(nodes)),
        has_swap=len(swaps) > 1,
        has_huge_shmem=not re.search(r"\[(never|advise|deny)\]", shmem),
        is_shared=True,
    )


def run_live(program: Program, work: Path) -> Said:
    """Run a program on the running kernel, confined as a build is: it writes only into `work`.

    Raises CannotRunHere if its files cannot be made here, ReamError if it ends in another way than
    such programs do.
    """
    built = build_program(program, work / "program")
    command = Command((*confine.words(work), str(built)), work, LIVE_S)
    code, out, error = finished(command, tied=True)
    said = [json.loads(line) for line in out.splitlines()]
    if code == EXIT_CANNOT_RUN:
        raise CannotRunHere(f"the program cannot make its files in {work}: {last_words(error)}")
    if code < 0 or not said:
        raise ReamError(f"the program ended with {code}: {last_words(error)}")
    return said


def guest_machine(programs: Iterable[Program], cache: Path) -> GuestMachine:
    """A machine with the nodes and CPUs that programs declare, and memory for the guest's own."""
    calls = [call for program in programs for call in resolve(program)]
    most = [0, 0, 0, 0]
    for call in calls:
        if call.name == "memory":
            pages = call.arguments.values()
            most = [max(both) for both in zip(most, pages, strict=True)]
    sizes = [pages * os.sysconf("SC_PAGE_SIZE") for pages in most if pages]
    sizes[0] += OWN_MIB * MIB
    cpus = max(call.arguments["nr"] for call in calls if call.name == "cpus")
    nodes = tuple(
        GuestNode(size, "" if node else f"0-{cpus - 1}") for node, size in enumerate(sizes)
    )
    accel, cpu, _ = choose_accel("auto", probe=lambda: ask_kvm(cache))
    return GuestMachine(accel, cpus=cpus, memory_bytes=sum(sizes), nodes=nodes, cpu=cpu)


def run_in_guest(
    programs: Sequence[Program], image: Image, *, cache: Path, work: Path, log: Path
) -> list[Said]:
    """Boot once and run programs one after another; what each said, in order.

    The guest swaps to memory if a program declares swap. One that runs alone writes the kernel's
    settings. Raises ReamError if it does not come to its end.
    """
    sets = len(programs) == 1
    paths = {
        f"/p{nr}": build_program(one, work / f"p{nr}", sets=sets) for nr, one in enumerate(programs)
    }
    init = build_init(work, arch=image.arch)
    initramfs = guest_initramfs(image, "programs", init=init, work=work, programs=paths)
    words = ["experiment=programs", f"run={','.join(paths)}"]
    calls = [call for program in programs for call in resolve(program)]
    boots = [call.words for call in calls if call.name == "boot"]
    append = ["rootfstype=ramfs", *(f"{its['name']}={its['value']}" for its in boots)]
    if swaps := [call.arguments["nr"] for call in calls if call.name == "swapon"]:
        words.append(f"swap={SWAP}")
        append.append(f"ramdisk_size={max(swaps) * 4}")  # KiB
    machine = guest_machine(programs, cache)
    start = Start(machine, BootableKernel(image.bootable, initramfs), log, tuple(append))
    found: list[Said] = []
    for message in start.messages(words, deadline_s=GUEST_S, silence_s=SILENCE_S):
        if "begins" in message:
            found.append([])
        elif "step" in message:
            found[-1].append(message["step"])
    return found


def guest_kernel(programs: Sequence[Program], version: str) -> Kernel:
    """What rules ask of a guest's kernel."""
    has_swap = any(call.name == "swapon" for one in programs for call in resolve(one))
    return Kernel(_version(version), max(map(nr_nodes, programs)), has_swap)


def _version(text: str) -> tuple[int, ...]:
    """The first two numbers of a version."""
    return tuple(map(int, re.findall(r"[0-9]+", text)[:2]))
