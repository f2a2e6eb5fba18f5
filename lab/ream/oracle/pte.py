# SPDX-License-Identifier: GPL-2.0-only
"""The meaning of page table entries: all bits on x86-64, the PFN on other architectures.

Written from the layouts that processors define and headers of Linux 6.12 name, not from the code of
those headers, which these rules judge. An entry is an int, independent of its byte order in memory
(`PteLayout.stored`).
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

# --- x86-64: bits ------------------------------------------------------------------------
# arch/x86/include/asm/pgtable_types.h, _PAGE_BIT_*; SW is what a processor leaves to software.

PRESENT = 1 << 0
RW = 1 << 1
USER = 1 << 2
PWT = 1 << 3
PCD = 1 << 4
ACCESSED = 1 << 5
DIRTY = 1 << 6
PAT = 1 << 7
GLOBAL = 1 << 8
PROTNONE = GLOBAL  # where PRESENT is clear: no access, but a page all the same
SPECIAL = 1 << 9  # SW1
UFFD_WP = 1 << 10  # SW2
SOFT_DIRTY = 1 << 11  # SW3; only with CONFIG_MEM_SOFT_DIRTY
DEVMAP = 1 << 57  # SW4
SAVED_DIRTY = 1 << 58  # SW5; what DIRTY was when RW went: RW=0, DIRTY=1 is a shadow stack
PKEY_MASK = 0xF << 59
NX = 1 << 63

DIRTY_BITS = DIRTY | SAVED_DIRTY
PFN_MASK = (1 << 52) - (1 << 12)

# Of an entry that is neither present nor PROTNONE; arch/x86/include/asm/pgtable_types.h.
SWP_SOFT_DIRTY = RW
SWP_UFFD_WP = USER
SWP_EXCLUSIVE = PWT

_WORD = (1 << 64) - 1

_KEPT = PFN_MASK | PWT | PCD | PAT | SPECIAL | ACCESSED | DIRTY_BITS | SOFT_DIRTY | UFFD_WP
"""Bits that are the page's or its history's; all others are the protection's.

Source: _PAGE_CHG_MASK, arch/x86/include/asm/pgtable_types.h."""

_FLUSHED_IF_CHANGED = RW | USER | PWT | PCD | PAT | GLOBAL | PKEY_MASK | NX
_FLUSHED_IF_CLEARED = PRESENT | DIRTY
"""What a CPU may have cached of an entry that is present; ACCESSED may be stale.

Source: pte_needs_flush(), arch/x86/include/asm/tlbflush.h."""
_SWP_OFFSET_BITS = 50
_SWP_OFFSET_SHIFT = 9
_SWP_TYPE_SHIFT = 59

# --- x86-64: what an entry says ----------------------------------------------------------
# arch/x86/include/asm/pgtable.h


def present(entry: int) -> bool:
    """Whether the entry maps a page, including one with PROTNONE."""
    return bool(entry & (PRESENT | PROTNONE))


def none(entry: int) -> bool:
    """Whether the entry is empty. Some processors set ACCESSED or DIRTY in an empty entry."""
    return not entry & ~(DIRTY | ACCESSED)


def young(entry: int) -> bool:
    """Whether the page was accessed since the entry was last made old."""
    return bool(entry & ACCESSED)


def dirty(entry: int) -> bool:
    """Whether the page was written through this entry, by DIRTY or SAVED_DIRTY."""
    return bool(entry & DIRTY_BITS)


def write(entry: int, *, shadow_stack: bool = False) -> bool:
    """Whether the entry allows writing.

    shadow_stack: on a processor with user shadow stacks, whose pages have RW=0 and DIRTY=1.
    """
    return bool(entry & RW) or (shadow_stack and bool(entry & DIRTY))


def special(entry: int) -> bool:
    """Whether the page, even if it has a descriptor, must not be counted."""
    return bool(entry & SPECIAL)


def uffd_wp(entry: int) -> bool:
    """Whether userfaultfd write-protects the page."""
    return bool(entry & UFFD_WP)


def soft_dirty(entry: int) -> bool:
    """Whether the page was written since /proc/PID/clear_refs; needs CONFIG_MEM_SOFT_DIRTY."""
    return bool(entry & SOFT_DIRTY)


def no_access(entry: int) -> bool:
    """Whether a present entry allows no access at all; source: pte_protnone()."""
    return bool(entry & PROTNONE) and not entry & PRESENT


def needs_flush(before: int, after: int) -> bool:
    """Whether a CPU may use what it remembers of an entry, though that has changed."""
    if not before & PRESENT:
        return False
    changed = before ^ after
    return bool(changed & _FLUSHED_IF_CHANGED or changed & before & _FLUSHED_IF_CLEARED)


# --- x86-64: what becomes of an entry ----------------------------------------------------


def _save_dirty(entry: int) -> int:
    """Move DIRTY to SAVED_DIRTY in a read-only entry, as RW=0, DIRTY=1 marks a shadow stack.

    SAVED_DIRTY is only ever set here.
    """
    if not entry & RW and entry & DIRTY:
        return entry & ~DIRTY | SAVED_DIRTY
    return entry


def wrprotect(entry: int) -> int:
    """The entry without write permission; it stays dirty if it was."""
    return _save_dirty(entry & ~RW)


def mkclean(entry: int) -> int:
    """The entry without either dirty bit; soft dirty remains."""
    return entry & ~DIRTY_BITS


def mkold(entry: int) -> int:
    """The entry without ACCESSED."""
    return entry & ~ACCESSED


def mkyoung(entry: int) -> int:
    """The entry with ACCESSED."""
    return entry | ACCESSED


def mkdirty(entry: int, *, soft: bool = True) -> int:
    """The entry with the dirty bit set; in a read-only entry that is SAVED_DIRTY.

    soft: whether the kernel has CONFIG_MEM_SOFT_DIRTY.
    """
    return _save_dirty(entry | DIRTY | (SOFT_DIRTY if soft else 0))


def mkwrite(entry: int, *, shadow_stack: bool = False) -> int:
    """The entry with write permission; SAVED_DIRTY becomes DIRTY.

    shadow_stack: whether the VMA is a shadow stack (VM_SHADOW_STACK). Source:
    arch/x86/mm/pgtable.c.
    """
    if shadow_stack:
        return entry & ~RW | DIRTY
    if entry & SAVED_DIRTY:
        entry = entry & ~SAVED_DIRTY | DIRTY
    return entry | RW


def clear_uffd_wp(entry: int) -> int:
    """The entry without userfaultfd write protection; it stays read-only."""
    return entry & ~UFFD_WP


def mkuffd_wp(entry: int) -> int:
    """The entry with userfaultfd write protection, and hence without write permission."""
    return wrprotect(entry | UFFD_WP)


def clear_soft_dirty(entry: int) -> int:
    """The entry without the soft-dirty bit."""
    return entry & ~SOFT_DIRTY


def modify(entry: int, protection: int) -> int:
    """A present entry with another protection; its page, age and history stay.

    A dirty page is DIRTY where it may be written and SAVED_DIRTY elsewhere, as RW=0, DIRTY=1 is
    a shadow stack. Source: pte_modify(), arch/x86/include/asm/pgtable.h.
    """
    bits = entry & _KEPT & ~PFN_MASK | protection & ~_KEPT
    if dirty(entry):
        saved = DIRTY if bits & RW else SAVED_DIRTY
        bits = bits & ~DIRTY_BITS | saved
    return LAYOUT.encode(LAYOUT.decode(entry), bits)


def swap_entry(kind: int, offset: int) -> int:
    """A non-present entry with a type (SWP_*) and an offset or a PFN.

    The offset is stored complemented, so that speculation does not reach the memory it points to.
    Source: arch/x86/include/asm/pgtable_64.h. Raises ValueError if type or offset is too large.
    """
    if kind >> 5 or offset >> _SWP_OFFSET_BITS:
        raise ValueError(f"type {kind} with offset {offset:#x}: no room in 5 and 50 bits")
    stored = ~offset & (1 << _SWP_OFFSET_BITS) - 1
    return kind << _SWP_TYPE_SHIFT | stored << _SWP_OFFSET_SHIFT


# --- Where architectures keep a PFN ------------------------------------------------------


@dataclass(frozen=True)
class Piece:
    """Bits of a PFN that are adjacent in the entry too; bit numbers are of the lowest."""

    pfn_bit: int
    nr_bits: int
    entry_bit: int

    @cached_property
    def mask(self) -> int:
        """The bits of the entry that the piece occupies."""
        return (1 << self.nr_bits) - 1 << self.entry_bit

    def place(self, pfn: int) -> int:
        """This piece of a PFN, at its place in the entry."""
        return pfn >> self.pfn_bit << self.entry_bit & self.mask

    def take(self, entry: int) -> int:
        """This piece of the PFN in an entry."""
        return (entry & self.mask) >> self.entry_bit << self.pfn_bit


@dataclass(frozen=True)
class PteLayout:
    """The layout of a last-level entry for one architecture and page size.

    word_bits: size of an entry. page_shift: log2 of the page's bytes. source: where 6.12 defines
    it. pieces: the PFN, from its lowest bits up.
    """

    name: str
    word_bits: int
    page_shift: int
    pieces: tuple[Piece, ...]
    source: str
    stored: Literal["little", "big"] = "little"
    """The order of an entry's bytes in memory."""
    always: int = 0
    """Bits that are set in every entry made from a PFN, whatever the protection."""
    copies: tuple[Piece, ...] = ()
    """Pieces of the PFN that 6.12 also writes where processors define zero; nothing reads them."""
    reserved: int = 0
    """Bits that must be clear, as 6.12 would read them as parts of the PFN."""
    empty: int = 0
    """The value of an empty entry."""
    group: int = 0
    """A bit that makes an entry one of a group of pages, if the processor supports that."""

    @cached_property
    def nr_pfn_bits(self) -> int:
        """The number of bits of the largest PFN that fits."""
        return sum(piece.nr_bits for piece in self.pieces)

    @cached_property
    def pfn_mask(self) -> int:
        """All bits of an entry that depend on the PFN."""
        mask = 0
        for piece in self.pieces + self.copies:
            mask |= piece.mask
        return mask

    @cached_property
    def attributes(self) -> int:
        """All bits of an entry that may be set and do not depend on the PFN."""
        return (1 << self.word_bits) - 1 & ~(self.pfn_mask | self.reserved)

    @property
    def advances_by_adding(self) -> int | None:
        """PFN_PTE_SHIFT, if adding nr << PFN_PTE_SHIFT advances an entry by nr pages; else None."""
        return self.pieces[0].entry_bit if len(self.pieces) == 1 else None

    def encode(self, pfn: int, prot: int) -> int:
        """The entry of a page with a protection.

        Raises ValueError if the PFN is too large, or if the protection overlaps its bits.
        """
        if prot & ~self.attributes:
            raise ValueError(f"{self.name}: {prot:#x} is no protection: it has bits of a PFN")
        return self._place(pfn) | prot | self.always

    def decode(self, entry: int) -> int:
        """The PFN of an entry."""
        pfn = 0
        for piece in self.pieces:
            pfn |= piece.take(entry)
        return pfn

    def advance(self, entry: int, nr: int) -> int:
        """The entry of the page nr further on, with the same attributes.

        Raises ValueError if no entry can contain that PFN.
        """
        return self._place(self.decode(entry) + nr) | entry & ~self.pfn_mask

    def _place(self, pfn: int) -> int:
        if pfn < 0 or pfn >> self.nr_pfn_bits:
            raise ValueError(f"{self.name}: no room for PFN {pfn:#x} in {self.nr_pfn_bits} bits")
        entry = 0
        for piece in self.pieces + self.copies:
            entry |= piece.place(pfn)
        return entry


class _Inverted(PteLayout):
    """x86-64, where the PFN of an entry that is not present is complemented against speculation.

    Source: arch/x86/include/asm/pgtable-invert.h (the L1 terminal fault).
    """

    def encode(self, pfn: int, prot: int) -> int:
        if not prot:
            # The complement marks itself by bits that are set: PAGE_NONE has PROTNONE.
            raise ValueError(f"{self.name}: a protection without any bit is of no page")
        return self._flip(super().encode(pfn, prot), by=prot)

    def decode(self, entry: int) -> int:
        return super().decode(self._flip(entry, by=entry))

    def advance(self, entry: int, nr: int) -> int:
        return self._flip(super().advance(entry, nr), by=entry)

    def _flip(self, entry: int, *, by: int) -> int:
        return entry ^ self.pfn_mask if by and not by & PRESENT else entry


class _BornYoung(PteLayout):
    """s390, where a new entry is young, and a young entry with read permission is valid.

    Source: mk_pte_phys(), pte_mkyoung() in arch/s390/include/asm/pgtable.h.
    """

    YOUNG = 0x004
    READ = 0x010
    INVALID = 0x400

    def encode(self, pfn: int, prot: int) -> int:
        entry = super().encode(pfn, prot) | self.YOUNG
        return entry & ~self.INVALID if entry & self.READ else entry


class _Napot(PteLayout):
    """riscv, where an entry of a group maps aligned pages, sized by the PFN's lowest set bit.

    Source: the Svnapot extension; pte_napot() in arch/riscv/include/asm/pgtable.h.
    """

    def decode(self, entry: int) -> int:
        pfn = super().decode(entry)
        return pfn & pfn - 1 if entry & self.group else pfn

    def advance(self, entry: int, nr: int) -> int:
        if entry & self.group:
            raise ValueError(f"{self.name}: {entry:#x} is of a group of pages, not of one")
        return super().advance(entry, nr)


X86_64 = _Inverted(
    "x86_64", 64, 12, (Piece(0, 40, 12),), "arch/x86/include/asm/pgtable_types.h: PTE_PFN_MASK"
)
ARM = PteLayout("arm", 32, 12, (Piece(0, 20, 12),), "arch/arm/include/asm/pgtable-2level.h")
ARM_LPAE = PteLayout(
    "arm-lpae",
    *(64, 12, (Piece(0, 28, 12),)),
    "arch/arm/include/asm/pgtable-3level-hwdef.h: PHYS_MASK_SHIFT",
)

_ARM64 = "arch/arm64/include/asm/pgtable-hwdef.h: PTE_ADDR_LOW, PTE_ADDR_HIGH"
_ABOVE_48 = 3 << 48
ARM64_4K = PteLayout("arm64-4k", 64, 12, (Piece(0, 36, 12),), _ARM64, reserved=_ABOVE_48)
ARM64_16K = PteLayout("arm64-16k", 64, 14, (Piece(0, 34, 14),), _ARM64, reserved=_ABOVE_48)
# FEAT_LPA: address bits [51:48] go where a 64K page's own low bits would be.
ARM64_64K_LPA = PteLayout(
    "arm64-64k-lpa",
    *(64, 16, (Piece(0, 32, 16), Piece(32, 4, 12))),
    _ARM64,
    copies=(Piece(32, 2, 48),),
)
# FEAT_LPA2 (TCR_EL1.DS): address bits [51:50] go where the shareability was.
ARM64_4K_LPA2 = PteLayout("arm64-4k-lpa2", 64, 12, (Piece(0, 38, 12), Piece(38, 2, 8)), _ARM64)
ARM64_16K_LPA2 = PteLayout("arm64-16k-lpa2", 64, 14, (Piece(0, 36, 14), Piece(36, 2, 8)), _ARM64)

RISCV64 = _Napot(
    "riscv64",
    *(64, 12, (Piece(0, 44, 10),)),
    "arch/riscv/include/asm/pgtable-64.h: _PAGE_PFN_MASK, _PAGE_NAPOT",
    group=1 << 63,
)

_BOOK3S64 = "arch/powerpc/include/asm/book3s/64/pgtable.h: PTE_RPN_MASK, _PAGE_PTE"
_PAGE_PTE = 1 << 62
BOOK3S64_4K = PteLayout(
    "book3s64-4k", 64, 12, (Piece(0, 41, 12),), _BOOK3S64, stored="big", always=_PAGE_PTE
)
BOOK3S64_64K = PteLayout(
    "book3s64-64k", 64, 16, (Piece(0, 37, 16),), _BOOK3S64, stored="big", always=_PAGE_PTE
)
S390X = _BornYoung(
    "s390x",
    *(64, 12, (Piece(0, 52, 12),)),
    "arch/s390/include/asm/pgtable.h: pte_pfn(), _PAGE_INVALID",
    stored="big",
    empty=_BornYoung.INVALID,
)

_SPARC64 = "arch/sparc/include/asm/pgtable_64.h: _PAGE_PADDR_4U, _PAGE_PADDR_4V"
SPARC64_SUN4U = PteLayout("sparc64-sun4u", 64, 13, (Piece(0, 30, 13),), _SPARC64, stored="big")
SPARC64_SUN4V = PteLayout("sparc64-sun4v", 64, 13, (Piece(0, 43, 13),), _SPARC64, stored="big")
NIOS2 = PteLayout(
    "nios2", 32, 12, (Piece(0, 20, 0),), "arch/nios2/include/asm/pgtable.h: pte_pfn()"
)

LAYOUTS: tuple[PteLayout, ...] = (
    *(X86_64, ARM, ARM_LPAE),
    *(ARM64_4K, ARM64_16K, ARM64_64K_LPA, ARM64_4K_LPA2, ARM64_16K_LPA2),
    *(RISCV64, BOOK3S64_4K, BOOK3S64_64K, S390X, SPARC64_SUN4U, SPARC64_SUN4V, NIOS2),
)

# --- x86-64: entries in a table -----------------------------------------------------------

LAYOUT: PteLayout = X86_64
BLOCK_PAGES = 1


def of_bits(bits: int) -> int:
    """Bits of an entry as mappings have them: this architecture's own."""
    return bits


def swap_type(entry: int) -> int:
    """The swap type of an entry (SWP_*, or a swap file's number); __swp_type(), pgtable_64.h."""
    return entry >> _SWP_TYPE_SHIFT


def swap_offset(entry: int) -> int:
    """The swap offset of an entry: an offset, a PFN, a marker; __swp_offset(), pgtable_64.h."""
    return ~entry >> _SWP_OFFSET_SHIFT & (1 << _SWP_OFFSET_BITS) - 1


def gathered(table: list[int], first: int, at: int) -> int:
    """An entry as it is read; first: the page number of slot 0's address."""
    del first
    return table[at]


def batch_hint(entry: int, first: int, at: int) -> int:
    """How many entries are known to be alike without a look at the others."""
    del entry, first, at
    return 1


def unfold_ends(table: list[int], first: int, at: int, nr: int) -> list[int]:
    """Prepare a change of `nr` entries: each is one for itself."""
    del table, first, at, nr
    return []


def take_entries(
    table: list[int], first: int, at: int, nr: int, *, soft: bool
) -> tuple[int, list[int]]:
    """Empty `nr` entries; the first one, young and dirty if any other one was.

    Making an entry dirty makes it soft-dirty, too. Source: modify_prot_start_ptes(),
    include/linux/pgtable.h; pte_mkdirty().
    """
    del first
    entry = table[at]
    for other in table[at + 1 : at + nr]:
        entry = mkdirty(entry, soft=soft) if dirty(other) else entry
        entry = mkyoung(entry) if young(other) else entry
    table[at : at + nr] = [0] * nr
    return entry, []


def set_entries(
    table: list[int], first: int, at: int, entry: int, nr: int, *, order: int = 0
) -> list[int]:
    """Enter `nr` pages that follow each other from slot `at` on."""
    del first, order
    for each in range(nr):
        table[at + each] = LAYOUT.advance(entry, each)
    return []


def wrprotect_entries(table: list[int], first: int, at: int, nr: int) -> None:
    """Take write permission from entries."""
    del first
    for each in range(at, at + nr):
        table[each] = wrprotect(table[each])
