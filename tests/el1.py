# SPDX-License-Identifier: GPL-2.0-only
"""A home at EL1 for a hosted kernel of arm64: linked, run in a machine of its own, and counted."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from ream.command import Command, run
from ream.count.counter import LaunchCounter, Numbers, add_counts
from ream.kernel.arch import ARM64
from ream.stage.link import (
    ARCH_SIDE,
    COMPILER_FLAGS,
    Kernel,
    host_headers,
    is_kernel_side,
    link_program,
)
from ream.stage.native import Build

EMULATOR = "qemu-system-aarch64"
HOME = Path(__file__).parent / "native" / "el1"
VMEMMAP_START = 0xFFFF_FDFF_C000_0000
"""Where an arm64 kernel of 48 bits of address and pages of 4 KiB has its memory map."""
HOSTED_MAP = 0x2000_0000_0000
"""Where a hosted one has it."""

_ARCH = replace(
    ARM64,
    # Within reach of calls, and nothing is there: the machine's memory begins at 1 GiB.
    forbidden_base=0x3C000000,
    link_flags=("-nostdlib", f"-Wl,-T,{HOME / 'el1.lds'}", "-Wl,--no-warn-rwx-segments"),
)
_FLAGS = (
    *COMPILER_FLAGS,
    *("-fno-builtin", "-fno-tree-loop-distribute-patterns", "-mno-outline-atomics"),
    "-DREAM_AT_EL1",
)
_MACHINE = (
    *("-M", "virt", "-m", "12G", "-display", "none", "-serial", "null", "-monitor", "none"),
    *("-semihosting-config", "enable=on,target=native"),
)
_FILE = re.compile(r"/proc/self/fd/\d+")
_TOOL_S = 120.0
_RUN_S = 300.0


def build_at_el1(build: Build) -> Build:
    """What a build says of itself, with its memory map where one at EL1 has it."""
    at = dict(build.addresses)
    return replace(build, addresses={**at, "map": at["map"] - HOSTED_MAP + VMEMMAP_START})


def _plan_source(plan: Path) -> str:
    """A plan of one row, and the files that it names, as an assembler's source."""
    text = plan.read_text().strip()
    names = sorted(set(_FILE.findall(text)))
    lines = ["\t.section .rodata", "\t.globl plan_text, plan_files", f'plan_text: .asciz "{text}"']
    for number, name in enumerate(names):
        copy = plan.parent / f"file-{number}"
        copy.write_bytes(Path(name).read_bytes())
        lines += [f'name{number}: .asciz "{name}"', "\t.balign 64"]
        lines += [f'file{number}: .incbin "{copy}"', f"end{number}:"]
    lines += ["\t.balign 8", "plan_files:"]
    lines += [f"\t.quad name{nr}, file{nr}, end{nr}" for nr in range(len(names))]
    return "\n".join([*lines, "\t.quad 0, 0, 0", ""])


def _sources(folder: Path) -> Iterator[Path]:
    yield from sorted((*HOME.glob("*.c"), *HOME.glob("*.S")))
    yield from (ARCH_SIDE / ARM64.name / name for name in ("alternatives.c", "caches.c"))
    yield from (path for path in sorted(folder.glob("*.c")) if not is_kernel_side(path))


def counted_at_el1(
    kernel: Kernel, folder: Path, plan: Path, plugin: Path, cpu: str | None = None
) -> dict[str, Numbers]:
    """What the functions of a kernel execute in the only row of a plan, whose files are open.

    folder: the experiment's native code. The plan's folder is used for all that is made. Raises
    ReamError if memory is not what the plan says afterwards.
    """
    work = plan.parent
    source = work / "plan.S"
    source.write_text(_plan_source(plan))
    places = [f"-I{home}" for home in (*host_headers(ARM64), folder, HOME)]
    compiled = []
    for path in (source, *_sources(folder)):
        out = work / f"el1-{path.stem}.o"
        argv = (ARM64.tool("gcc"), *_FLAGS, *places, "-c", str(path), "-o", str(out))
        run(Command(argv, work, _TOOL_S))
        compiled.append(out)
    program = link_program([kernel], compiled, work, pad_bytes=0, arch=_ARCH)
    counter = LaunchCounter.of(plugin, program, cpu=cpu)
    words = ("-cpu", ARM64.cpu_model(cpu), "-kernel", str(program.path), *counter.argv[-2:])
    run(Command((EMULATOR, *_MACHINE, *words), work, _RUN_S))
    (window,) = map(json.loads, (work / "counts.jsonl").read_text().splitlines())
    found: dict[str, Numbers] = {}
    for number, *values in window["functions"]:
        place = counter.places[number]
        if not place.is_stand_in:
            add_counts(found, place.name, values)
    return found
