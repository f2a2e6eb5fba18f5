# SPDX-License-Identifier: GPL-2.0-only
"""The meaning of page table entries on arm64, 4 KiB pages and 48 bits of addresses.

Written from the Arm Architecture Reference Manual (DDI 0487, D8.3, stage 1 descriptors) and from
what headers of Linux 6.12 say that software makes of its bits; what judges is not what is judged.
An access or a write may be noted by the processor itself (FEAT_HAFDBS): DBM says that a page may
be written, and a write clears AP[2], so that such an entry is dirty without a bit of software's.

Sixteen entries of an aligned block that maps aligned pages of one folio may have CONT: a TLB then
holds the block as one, and notes an access or a write in any of them. Reading such an entry means
reading all; changing one means to make them single again.
"""

from dataclasses import dataclass

from ream.oracle import pte as canonical
from ream.oracle.pte import ARM64_4K, PteLayout

LAYOUT: PteLayout = ARM64_4K

VALID = 1 << 0
PAGE = 1 << 1  # a last-level descriptor
ATTRIBUTES = 7 << 2
USER = 1 << 6  # AP[1]
RDONLY = 1 << 7  # AP[2]
SHARED = 3 << 8
AF = 1 << 10
NG = 1 << 11
DBM = 1 << 51
CONT = 1 << 52
PXN = 1 << 53
UXN = 1 << 54
DIRTY = 1 << 55  # software's
SPECIAL = 1 << 56
UFFD_WP = 1 << 58
KEY = 1 << 60  # of FEAT_S1POE

WRITE = DBM
PRESENT_INVALID = NG
"""Set in an entry that is not valid but maps a page all the same, as for PROT_NONE."""

SWP_EXCLUSIVE = 1 << 2
SWP_UFFD_WP = 1 << 3
SWP_SOFT_DIRTY = 0  # there is none, nor SOFT_DIRTY
SOFT_DIRTY = 0
_SWP_TYPE_SHIFT, _SWP_TYPE_BITS = 6, 5
_SWP_OFFSET_SHIFT, _SWP_OFFSET_BITS = 12, 50

CONT_ORDER = 4
CONT_PTES = 1 << CONT_ORDER
BLOCK_PAGES = CONT_PTES

_USERS = PAGE | USER | SHARED | NG | PXN

_KEYS = 7 << 60
_OF_PROTECTION = VALID | ATTRIBUTES | USER | RDONLY | NG | WRITE | 1 << 50 | PXN | UXN | _KEYS
"""Bits that are not the page's or its history's; bit 50 is of guarded pages (FEAT_BTI).

The type of memory is among them. Source: pte_modify(), arch/arm64/include/asm/pgtable.h."""

_SOFTWARE = 0xF << 55 | 1 << 63
"""Bits that the processor ignores: DIRTY, SPECIAL, UFFD_WP and those that are of no use yet."""


def of_bits(bits: int) -> int:
    """Bits of an entry as mappings have them, which are x86-64's, as this architecture writes them.

    What x86-64 keeps for software here and this one has not is left out; its memory types and its
    keys become others than the usual.
    """
    found = _USERS | RDONLY | (VALID if bits & canonical.PRESENT else PRESENT_INVALID)
    if canonical.no_access(bits):
        found = found & ~USER | UXN  # what tells no access from a page that is gone for a moment
    if bits & canonical.RW:
        found |= WRITE
    if bits & canonical.ACCESSED:
        found |= AF
    if bits & canonical.NX:
        found |= UXN
    if bits & canonical.DIRTY_BITS:
        found = mkdirty(found)
    if bits & canonical.PWT:
        found |= 1 << 2
    if bits & canonical.PAT:
        found |= 2 << 2
    if bits & canonical.PKEY_MASK:
        found |= KEY
    if bits & canonical.SPECIAL:
        found |= SPECIAL
    return found | (UFFD_WP if bits & canonical.UFFD_WP else 0)


def present(entry: int) -> bool:
    return bool(entry & VALID) or (bool(entry & PRESENT_INVALID) and bool(entry & PAGE))


def none(entry: int) -> bool:
    return entry == 0


def young(entry: int) -> bool:
    return bool(entry & AF)


def dirty(entry: int) -> bool:
    return bool(entry & DIRTY) or (bool(entry & WRITE) and not entry & RDONLY)


def write(entry: int) -> bool:
    return bool(entry & WRITE)


def soft_dirty(entry: int) -> bool:
    del entry
    return False


def no_access(entry: int) -> bool:
    """Whether it maps a page without access: not valid, of the kernel, and not executable."""
    return present(entry) and not entry & (VALID | USER) and bool(entry & UXN)


def special(entry: int) -> bool:
    return bool(entry & SPECIAL)


def uffd_wp(entry: int) -> bool:
    return bool(entry & UFFD_WP)


def wrprotect(entry: int) -> int:
    """Without write permission; what the processor noted of writes, software notes now."""
    if dirty(entry):
        entry |= DIRTY
    return entry & ~WRITE | RDONLY


def mkclean(entry: int) -> int:
    return entry & ~DIRTY | RDONLY


def mkold(entry: int) -> int:
    return entry & ~AF


def mkyoung(entry: int) -> int:
    return entry | AF


def mkdirty(entry: int, *, soft: bool = True) -> int:
    del soft
    entry |= DIRTY
    return entry & ~RDONLY if entry & WRITE else entry


def mkwrite(entry: int) -> int:
    """With write permission: a clean one stays read-only to the processor until it is written."""
    entry |= WRITE
    return entry & ~RDONLY if entry & DIRTY else entry


def clear_uffd_wp(entry: int) -> int:
    return entry & ~UFFD_WP


def mkuffd_wp(entry: int) -> int:
    return wrprotect(entry | UFFD_WP)


def clear_soft_dirty(entry: int) -> int:
    return entry


def modify(entry: int, protection: int) -> int:
    """A present entry with another protection; its page, age and history stay.

    What the processor noted of writes, software notes; and where the page may be written, a dirty
    one is that to the processor, too.
    """
    was_dirty = dirty(entry)
    entry = entry & ~_OF_PROTECTION | protection & _OF_PROTECTION
    return mkdirty(entry) if was_dirty else entry


def needs_flush(before: int, after: int) -> bool:
    """Whether a processor may use what it remembers of an entry, though that has changed.

    It remembers none that is not valid, and nothing of bits that are software's.
    """
    return bool(before & VALID) and bool((before ^ after) & ~_SOFTWARE)


def swap_entry(kind: int, offset: int) -> int:
    """A non-present entry with a type (SWP_*) and an offset or a PFN.

    Raises ValueError if type or offset is too large.
    """
    if kind >> _SWP_TYPE_BITS or offset >> _SWP_OFFSET_BITS:
        raise ValueError(f"type {kind} with offset {offset:#x}: no room in 5 and 50 bits")
    return kind << _SWP_TYPE_SHIFT | offset << _SWP_OFFSET_SHIFT


def swap_type(entry: int) -> int:
    return entry >> _SWP_TYPE_SHIFT & (1 << _SWP_TYPE_BITS) - 1


def swap_offset(entry: int) -> int:
    return entry >> _SWP_OFFSET_SHIFT & (1 << _SWP_OFFSET_BITS) - 1


# --- Blocks of entries --------------------------------------------------------------------


@dataclass(frozen=True)
class _Block:
    """An aligned block of a table, of which a part may lie outside what is looked at."""

    table: list[int]
    start: int
    """Where it begins in the table; below 0 where that is outside."""

    @classmethod
    def of(cls, table: list[int], first: int, at: int) -> "_Block":
        """The block of slot `at`; first: the page number of slot 0's address."""
        return cls(table, at - (first + at) % CONT_PTES)

    @property
    def is_whole(self) -> bool:
        return self.start >= 0 and self.start + CONT_PTES <= len(self.table)

    def entries(self) -> list[int]:
        return self.table[self.start : self.start + CONT_PTES]

    def convert(self, entry: int) -> None:
        """All alike, and accessed and dirty if one was; entry: the first, as it becomes."""
        for one in self.entries():
            entry = mkdirty(entry) if dirty(one) else entry
            entry = mkyoung(entry) if young(one) else entry
        for nr in range(CONT_PTES):
            self.table[self.start + nr] = LAYOUT.advance(entry, nr)


def _is_block(entry: int) -> bool:
    return bool(entry & VALID) and bool(entry & CONT)


def gathered(table: list[int], first: int, at: int) -> int:
    """An entry as it is read: of a block, accessed and dirty if any of them is."""
    entry = table[at]
    if _is_block(entry):
        for one in _Block.of(table, first, at).entries():
            entry = mkdirty(entry) if dirty(one) else entry
            entry = mkyoung(entry) if young(one) else entry
    return entry


def batch_hint(entry: int, first: int, at: int) -> int:
    """How many entries are known to be alike without a look at the others: to a block's end."""
    return CONT_PTES - (first + at) % CONT_PTES if _is_block(entry) else 1


def fold(table: list[int], first: int, at: int, *, order: int) -> list[int]:
    """Make a block of the entry and the 15 before it, if it is the last and all are alike.

    order: of the folio that it maps. Only whether they were accessed and written may differ.
    Returns where the block begins, if it became one.
    """
    entry, block = table[at], _Block.of(table, first, at)
    is_last = (first + at) % CONT_PTES == CONT_PTES - 1
    if not is_last or LAYOUT.decode(entry) % CONT_PTES != CONT_PTES - 1 or order < CONT_ORDER:
        return []
    if not entry & VALID or entry & (CONT | SPECIAL) or not block.is_whole:
        return []
    alike = mkold(mkclean(LAYOUT.advance(entry, 1 - CONT_PTES)))
    for nr, one in enumerate(block.entries()):
        if mkold(mkclean(one)) != LAYOUT.advance(alike, nr):
            return []
    block.convert(LAYOUT.advance(entry, 1 - CONT_PTES) | CONT)
    return [block.start]


def unfold(table: list[int], first: int, at: int) -> list[int]:
    """Make the entries of a block single again, if it is one; returns where it begins."""
    if not _is_block(table[at]):
        return []
    block = _Block.of(table, first, at)
    block.convert(table[block.start] & ~CONT)
    return [block.start]


def unfold_ends(table: list[int], first: int, at: int, nr: int) -> list[int]:
    """Unfold blocks that a change of `nr` entries covers in part; returns where they begin."""
    converted = []
    if (first + at) % CONT_PTES or nr < CONT_PTES:
        converted += unfold(table, first, at)
    if (first + at + nr) % CONT_PTES:
        converted += unfold(table, first, at + nr - 1)
    return converted


def take_entries(
    table: list[int], first: int, at: int, nr: int, *, soft: bool
) -> tuple[int, list[int]]:
    """Empty `nr` entries; the first one, young and dirty if any other one was.

    Blocks of which only some are taken are single before.
    """
    del soft
    converted = unfold_ends(table, first, at, nr)
    entry = table[at]
    for other in table[at + 1 : at + nr]:
        entry = mkdirty(entry) if dirty(other) else entry
        entry = mkyoung(entry) if young(other) else entry
    table[at : at + nr] = [0] * nr
    return entry, converted


def set_entries(
    table: list[int], first: int, at: int, entry: int, nr: int, *, order: int = 0
) -> list[int]:
    """Enter `nr` pages of one folio of this order from slot `at` on, blocks where they can be.

    Returns where a block begins that older entries are of, too, and had to be converted for.
    """
    entry &= ~CONT
    if nr == 1:
        table[at] = entry
        return fold(table, first, at, order=order)
    for each in range(nr):
        table[at + each] = LAYOUT.advance(entry, each)
    if not entry & VALID:
        return []
    for each in range(nr - CONT_PTES + 1):
        whole = (first + at + each) % CONT_PTES == 0
        if whole and LAYOUT.decode(table[at + each]) % CONT_PTES == 0:
            for one in range(at + each, at + each + CONT_PTES):
                table[one] |= CONT
    return []


def wrprotect_entries(table: list[int], first: int, at: int, nr: int) -> None:
    """Take write permission from entries; blocks that are covered stay what they are."""
    unfold_ends(table, first, at, nr)
    for each in range(at, at + nr):
        table[each] = wrprotect(table[each])
