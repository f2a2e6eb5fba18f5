# SPDX-License-Identifier: GPL-2.0-only
"""The two instructions that a program may not execute: cli and sti, which become no-operations."""

import re
from collections.abc import Iterator
from pathlib import Path

from elftools.elf.elffile import ELFFile

from ream.command import Command, run
from ream.errors import ReamError

CLI, STI = 0xFA, 0xFB
NOP = 0x90
DEADLINE_S = 120.0

_SECTION = re.compile(r"^Disassembly of section (\S+):$")
_PLACE = re.compile(r"^\s*([0-9a-f]+):\s+(?:cli|sti)\s*$")


def without_interrupt_flag(path: Path, out: Path) -> int:
    """Write a copy of a kernel object whose cli and sti do nothing; return how many it had.

    No interrupt handler runs on a program's threads, so there is nothing to keep away. Each of the
    instructions is one byte long, and so is what replaces it: nothing else moves. Raises ReamError
    if the disassembly and the file disagree about one.
    """
    code = bytearray(path.read_bytes())
    places = [*_places(path)]
    for name, at in places:
        if code[at] not in (CLI, STI):
            raise ReamError(f"{path.name}: no cli or sti at byte {at:#x}, in {name}")
        code[at] = NOP
    out.write_bytes(code)
    return len(places)


def _places(path: Path) -> Iterator[tuple[str, int]]:
    """The section and the offset in the file of each cli and sti."""
    with path.open("rb") as file:
        offset_of = {one.name: one["sh_offset"] for one in ELFFile(file).iter_sections()}
    argv = ("objdump", "-d", "--no-show-raw-insn", str(path))
    section = ""
    for line in run(Command(argv, path.parent, DEADLINE_S)).splitlines():
        if found := _SECTION.match(line):
            section = found[1]
        elif found := _PLACE.match(line):
            yield section, offset_of[section] + int(found[1], 16)
