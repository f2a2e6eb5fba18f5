# SPDX-License-Identifier: GPL-2.0-only
"""The VMAs of real processes: sizes, flags and which of them are of one file.

`python -m experiments.fork.address_spaces PID` prints those of a process that runs, as the files
in layouts/ hold them. No address, name or content is taken: a VMA is how far it lies behind the
one before it, how long it is, how many of its pages were anonymous, and its flags.
"""

import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

LAYOUTS = Path(__file__).parent / "layouts"
PAGE_KIB = 4
PAGE_SHIFT = 12

FLAGS = {
    "rd": 1 << 0,
    "wr": 1 << 1,
    "ex": 1 << 2,
    "sh": 1 << 3,
    "mr": 1 << 4,
    "mw": 1 << 5,
    "me": 1 << 6,
    "ms": 1 << 7,
    "gd": 1 << 8,
    "lo": 1 << 13,
    "sr": 1 << 15,
    "rr": 1 << 16,
    "dc": 1 << 17,
    "de": 1 << 18,
    "ac": 1 << 20,
    "nr": 1 << 21,
    "wf": 1 << 25,
    "dd": 1 << 26,
    "hg": 1 << 29,
    "nh": 1 << 30,
    "mg": 1 << 31,
}
"""Flags of a VMA as /proc/PID/smaps names them. Source: show_smap_vma_flags(), fs/proc/task_mmu.c,
and include/linux/mm.h. Soft-dirty ("sd") is left out: every new VMA has it, and it is no property
of the program."""

_LEFT_OUT = frozenset({"sd"})
_SPECIAL = frozenset({"io", "pf", "mm", "ht"})
"""Memory of a device, and of the kernel as [vvar]: their pages are not anybody's here."""


@dataclass(frozen=True)
class Vma:
    """One VMA, in pages. file: number of what it maps, from 1; 0: nothing, it is anonymous."""

    gap: int
    nr_pages: int
    nr_anon: int
    file: int
    offset: int
    flags: tuple[str, ...]

    def __str__(self) -> str:
        numbers = (self.gap, self.nr_pages, self.nr_anon, self.file, self.offset)
        return " ".join([*map(str, numbers), *self.flags])

    @property
    def vm_flags(self) -> int:
        """VM_... of its flags."""
        return sum(FLAGS[flag] for flag in self.flags)


def read_layout(text: str) -> tuple[Vma, ...]:
    """The VMAs of a file in layouts/."""
    lines = (line.split() for line in text.splitlines() if line and not line.startswith("#"))

    def vma(words: list[str]) -> Vma:
        gap, nr_pages, nr_anon, file, offset = map(int, words[:5])
        return Vma(gap, nr_pages, nr_anon, file, offset, tuple(words[5:]))

    return tuple(map(vma, lines))


@cache
def layout(name: str) -> tuple[Vma, ...]:
    """The VMAs of the program of this name; raises ValueError if none was recorded."""
    file = LAYOUTS / f"{name}.txt"
    if not file.is_file():
        known = ", ".join(sorted(one.stem for one in LAYOUTS.glob("*.txt")))
        raise ValueError(f"there is no layout {name}; there are {known}")
    return read_layout(file.read_text(encoding="ascii"))


_HEAD = re.compile(r"^([0-9a-f]+)-([0-9a-f]+) (\S{4}) ([0-9a-f]+) (\S+) (\d+) *(.*)$")


def _fields(lines: Iterable[str]) -> Iterator[tuple[re.Match[str], dict[str, str]]]:
    head: re.Match[str] | None = None
    fields: dict[str, str] = {}
    for line in lines:
        if found := _HEAD.match(line):
            if head:
                yield head, fields
            head, fields = found, {}
        else:
            name, _, value = line.partition(":")
            fields[name] = value.strip()
    if head:
        yield head, fields


def from_smaps(smaps: str) -> Iterator[Vma]:
    """What /proc/PID/smaps says of a process; without special mappings."""
    files: dict[tuple[str, str], int] = {}
    end = 0
    for head, fields in _fields(smaps.splitlines()):
        first, last = (int(head[at], 16) >> PAGE_SHIFT for at in (1, 2))
        flags = [one for one in fields["VmFlags"].split() if one not in _LEFT_OUT]
        if first >= 1 << 35 or _SPECIAL & set(flags) or head[7] == "[vdso]":
            continue
        file = files.setdefault((head[5], head[6]), len(files) + 1) if head[6] != "0" else 0
        yield Vma(
            first - end,
            last - first,
            int(fields["Anonymous"].split()[0]) // PAGE_KIB,
            file,
            (int(head[4], 16) >> PAGE_SHIFT) if file else 0,
            tuple(sorted(flags, key=lambda flag: FLAGS[flag])),
        )
        end = last


if __name__ == "__main__":
    for one in from_smaps(Path(f"/proc/{int(sys.argv[1])}/smaps").read_text(encoding="utf-8")):
        print(one)
