# SPDX-License-Identifier: GPL-2.0-only
"""Entries of page tables in words: the bits of x86-64, as arch/x86/include/asm/pgtable_types.h."""

import re

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
    r"| by |the entry is )"
    r"(0x[0-9a-f]+)"
)
"""What an alarm has before an entry."""
_READ = re.compile(r"reads (\w+) and (\w+) in page (\w+), where (\w+) was written")
"""The first word of a page and its last one, and what both should be."""


def words(entry: int) -> str:
    """What an entry says, such as "present, writable, user, frame 0x1234"."""
    if not entry:
        return "empty"
    if not entry & (_PRESENT | _PROTNONE):
        names = [name for bit, name in _SWAP_BITS.items() if entry >> bit & 1]
        offset = (~entry << 64 - _SWAP_TYPE & _WORD) >> _SWAP_OFFSET
        swap = f"swap entry of type {entry >> _SWAP_TYPE}, offset {offset:#x}"
        return ", ".join(("not present", *names, swap))
    names = [name for bit, name in _BITS.items() if entry >> bit & 1]
    if not entry & _PRESENT:
        names = ["protnone" if name == "global" else name for name in names]
    return f"{', '.join(names)}, frame {(entry & _FRAME) >> 12:#x}"


def decoded(alarm: str) -> str:
    """An alarm with each entry in it in words, too, and with what a process should read."""
    if read := _READ.search(alarm):
        first, last, page, right = read.groups()
        is_read = first if first == last else f"{first} at the beginning and {last} at the end"
        return f"{alarm[: read.start()]}reads {is_read} in page {page}, where {right} is right"
    return _IN_TEXT.sub(lambda found: f"{found[0]} ({words(int(found[1], 16))})", alarm)
