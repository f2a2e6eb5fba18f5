# SPDX-License-Identifier: GPL-2.0-only
"""Entries of page tables and flags in words, with the kernel's names for bits.

Entries have the bits of x86-64, as arch/x86/include/asm/pgtable_types.h.
"""

import re
from collections.abc import Callable, Mapping
from functools import partial

_BITS = {
    0: "present",
    1: "writable",
    2: "user",
    3: "write-through",
    4: "uncached",
    5: "accessed",
    6: "dirty",
    7: "huge",
    8: "global",
    9: "special",
    10: "uffd-wp",
    11: "soft-dirty",
    58: "saved-dirty",
    63: "no-exec",
}
_SWAP_BITS = {1: "soft-dirty", 2: "uffd-wp", 3: "exclusive"}
"""Bits of entries that map nothing, such as swap slots, migration entries and markers."""
_SWAP_TYPE, _SWAP_OFFSET = 59, 14
"""The first bit of the type of a swap entry, and of what is left of its inverted offset when the
type is shifted out."""
_WORD = (1 << 64) - 1
_PRESENT, _PROTNONE = 1 << 0, 1 << 8
_FRAME = ((1 << 52) - 1) & ~0xFFF

_IN_TEXT = re.compile(
    r"(?:that is not: |may be written: |writable: |by its bits: |still has (?:the huge entry )?"
    r"| by |the entry is |gives its new entries |its flags allow |process \d+ has )"
    r"(0x[0-9a-f]+)"
)
"""What an alarm has before an entry."""
VM_FLAGS = (
    *("VM_READ", "VM_WRITE", "VM_EXEC", "VM_SHARED"),
    *("VM_MAYREAD", "VM_MAYWRITE", "VM_MAYEXEC", "VM_MAYSHARE"),
    *("VM_GROWSDOWN", "VM_UFFD_MISSING", "VM_PFNMAP", "bit 11"),
    *("VM_UFFD_WP", "VM_LOCKED", "VM_IO", "VM_SEQ_READ"),
    *("VM_RAND_READ", "VM_DONTCOPY", "VM_DONTEXPAND", "VM_LOCKONFAULT"),
    *("VM_ACCOUNT", "VM_NORESERVE", "VM_HUGETLB", "VM_SYNC"),
    *("VM_ARCH_1", "VM_WIPEONFORK", "VM_DONTDUMP", "VM_SOFTDIRTY"),
    *("VM_MIXEDMAP", "VM_HUGEPAGE", "VM_NOHUGEPAGE", "VM_MERGEABLE"),
)
"""The names of the bits of vma->vm_flags. Source: include/linux/mm.h."""
_PAGEMAP = {
    55: "soft-dirty",
    56: "mapped exclusively",
    57: "uffd-wp",
    61: "of a file or shared",
    62: "swapped",
    63: "present",
}
"""Bits of /proc/PID/pagemap, as Documentation/admin-guide/mm/pagemap.rst has them."""
_SCANNED = dict(
    enumerate(
        ("WPALLOWED", "WRITTEN", "FILE", "PRESENT", "SWAPPED", "PFNZERO", "HUGE", "SOFT_DIRTY")
    )
)
"""Bits of PAGEMAP_SCAN, which begin with PAGE_IS_ in include/uapi/linux/fs.h."""
_FLAGS = (
    (re.compile(r"/pagemap says .*"), _PAGEMAP),
    (re.compile(r"PAGEMAP_SCAN (?:says|leaves out) .*"), _SCANNED),
    (re.compile(r"its pages are none that can be: .*"), dict(enumerate(VM_FLAGS))),
)
"""Alarms with flags, and the names of their bits."""
_FLAGS_IN_TEXT = re.compile(r"(?:says |where |which is |none that can be: )(0x[0-9a-f]+|0\b)")
_READ = re.compile(r"reads (\w+) and (\w+) in page (\w+), where (\w+) was written")
"""The first word of a page and its last one, and what both should be."""


_EXCLUSIVE = re.compile(r"(frame \w+ is exclusive to a process)(, and \d+ entries map it)$")


def is_mapping(entry: int) -> bool:
    """Whether it maps a page, be it one that no process may use."""
    return bool(entry & (_PRESENT | _PROTNONE))


def frame(entry: int) -> int:
    """The frame that an entry maps; of one that maps nothing, some of its swap offset."""
    return (entry & _FRAME) >> 12


def bits(entry: int) -> list[str]:
    """The names of the bits that are set; protnone is that of a page that no process may use."""
    if not is_mapping(entry):
        return [name for bit, name in _SWAP_BITS.items() if entry >> bit & 1]
    names = [name for bit, name in _BITS.items() if entry >> bit & 1]
    if not entry & _PRESENT:
        names = ["protnone" if name == "global" else name for name in names]
    return names


def words(entry: int) -> str:
    """What an entry says, such as "present, writable, user, frame 0x1234"."""
    if not entry:
        return "empty"
    if not is_mapping(entry):
        offset = (~entry << 64 - _SWAP_TYPE & _WORD) >> _SWAP_OFFSET
        swap = f"swap entry of type {entry >> _SWAP_TYPE}, offset {offset:#x}"
        return ", ".join(("not present", *bits(entry), swap))
    return f"{', '.join(bits(entry))}, frame {frame(entry):#x}"


def decoded(alarm: str) -> str:
    """An alarm with each entry in it in words, too, and with what a process should read."""
    if read := _READ.search(alarm):
        first, last, page, right = read.groups()
        is_read = first if first == last else f"{first} at the beginning and {last} at the end"
        return f"{alarm[: read.start()]}reads {is_read} in page {page}, where {right} is right"
    if its := _EXCLUSIVE.search(alarm):
        why = "so one process can see what another writes"
        return f"{alarm[: its.start()]}{its[1]} (PageAnonExclusive){its[2]}, {why}"
    for pattern, names in _FLAGS:
        if pattern.search(alarm):
            return _explained(alarm, _FLAGS_IN_TEXT, partial(_flags, names))
    return _explained(alarm, _IN_TEXT, words)


def _explained(alarm: str, numbers: re.Pattern[str], words: Callable[[int], str]) -> str:
    return numbers.sub(lambda found: f"{found[0]} ({words(int(found[1], 16))})", alarm)


def _flags(names: Mapping[int, str], value: int) -> str:
    """The names of the flags that are set; the number of a frame that is among them has none."""
    return ", ".join(name for bit, name in names.items() if value >> bit & 1) or "none"
