# SPDX-License-Identifier: GPL-2.0-only
"""Replaces cli and sti, which a program may not execute, and rdtsc in kernel objects."""

import re
from collections.abc import Iterator
from pathlib import Path

from elftools.elf.elffile import ELFFile

from ream.command import Command, run
from ream.errors import ReamError

CLI, STI = 0xFA, 0xFB
NOP = 0x90
RDTSC = bytes((0x0F, 0x31))
XOR_EAX_EAX = bytes((0x31, 0xC0))
DEADLINE_S = 120.0

_SECTION = re.compile(r"^Disassembly of section (\S+):$")
_PLACE = re.compile(r"^\s*([0-9a-f]+):\s+(cli|sti|rdtsc)\s*$")


def without_interrupt_flag(path: Path, out: Path, *, with_counter: bool = True) -> int:
    """Write a copy of a kernel object whose cli and sti do nothing; return how many it had.

    No interrupt handler runs on a program's threads, so nothing has to be disabled. Each
    instruction is replaced by one of the same length, so nothing moves. with_counter: whether
    rdtsc is kept. Otherwise its lower half gives 0 and its upper half what a register holds, which
    is no time but the same in each run. Raises ReamError if the disassembly and the file disagree.
    """
    code = bytearray(path.read_bytes())
    places = [*_places(path)]
    flags = [(section, at) for section, at, name in places if name != "rdtsc"]
    for name, at in flags:
        if code[at] not in (CLI, STI):
            raise ReamError(f"{path.name}: no cli or sti at byte {at:#x}, in {name}")
        code[at] = NOP
    for name, at in ((section, at) for section, at, name in places if name == "rdtsc"):
        if code[at : at + len(RDTSC)] != RDTSC:
            raise ReamError(f"{path.name}: no rdtsc at byte {at:#x}, in {name}")
        if not with_counter:
            code[at : at + len(RDTSC)] = XOR_EAX_EAX
    out.write_bytes(code)
    return len(flags)


def _places(path: Path) -> Iterator[tuple[str, int, str]]:
    """Yield the section, the file offset and the name of each of these instructions."""
    with path.open("rb") as file:
        offset_of = {one.name: one["sh_offset"] for one in ELFFile(file).iter_sections()}
    argv = ("objdump", "-d", "--no-show-raw-insn", str(path))
    section = ""
    for line in run(Command(argv, path.parent, DEADLINE_S)).splitlines():
        if found := _SECTION.match(line):
            section = found[1]
        elif found := _PLACE.match(line):
            yield section, offset_of[section] + int(found[1], 16), found[2]
