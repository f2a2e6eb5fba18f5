# SPDX-License-Identifier: GPL-2.0-only
"""The oracle of page table entries: what holds for every layout, and entries worked by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ream.oracle import pte
from ream.oracle.pte import LAYOUTS, PteLayout

U64 = (1 << 64) - 1
ADDING = tuple(one for one in LAYOUTS if one.advances_by_adding is not None)


@st.composite
def pages(draw: st.DrawFn) -> tuple[PteLayout, int, int]:
    """A layout with a PFN and a protection of it."""
    layout = draw(st.sampled_from(LAYOUTS))
    last = (1 << layout.nr_pfn_bits) - 1
    edges = st.sampled_from([0, 1, last, last - 1, last >> 1, (last >> 1) + 1])
    pfn = draw(edges | st.integers(0, last))
    prot = draw(st.integers(1, U64)) & layout.attributes & ~layout.group
    return layout, pfn, prot or layout.attributes & ~layout.group


entries = st.integers(0, U64)
words = st.sampled_from([1 << bit for bit in range(64)]) | entries

# --- Every layout ------------------------------------------------------------------------


@given(pages())
def test_an_entry_names_the_page_it_was_made_for(page: tuple[PteLayout, int, int]) -> None:
    layout, pfn, prot = page
    entry = layout.encode(pfn, prot)
    assert layout.decode(entry) == pfn
    assert entry >> layout.word_bits == 0


@given(pages())
def test_the_pfn_leaves_the_protection_alone(page: tuple[PteLayout, int, int]) -> None:
    layout, pfn, prot = page
    assert (layout.encode(pfn, prot) ^ layout.encode(0, prot)) & ~layout.pfn_mask == 0


@given(pages(), st.integers(0, 1 << 52))
def test_advancing_is_making_an_entry_of_the_later_page(
    page: tuple[PteLayout, int, int], nr: int
) -> None:
    layout, pfn, prot = page
    nr %= (1 << layout.nr_pfn_bits) - pfn
    assert layout.advance(layout.encode(pfn, prot), nr) == layout.encode(pfn + nr, prot)


@given(pages(), st.integers(0, 600), st.integers(0, 600))
def test_advancing_twice_is_advancing_by_the_sum(
    page: tuple[PteLayout, int, int], first: int, second: int
) -> None:
    layout, pfn, prot = page
    entry = layout.encode(min(pfn, (1 << layout.nr_pfn_bits) - 1201), prot)
    assert layout.advance(layout.advance(entry, first), second) == layout.advance(
        entry, first + second
    )


@pytest.mark.parametrize("layout", ADDING, ids=lambda layout: layout.name)
@given(data=st.data())
def test_where_there_is_one_field_advancing_is_adding(
    layout: PteLayout, data: st.DataObject
) -> None:
    assert layout.advances_by_adding is not None
    pfn = data.draw(st.integers(0, (1 << layout.nr_pfn_bits) - 2))
    entry = layout.encode(pfn, 1 & layout.attributes or layout.attributes & ~layout.group)
    nr = data.draw(st.integers(1, (1 << layout.nr_pfn_bits) - 1 - pfn))
    assert layout.advance(entry, nr) == entry + (nr << layout.advances_by_adding)


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: layout.name)
def test_what_no_entry_can_name_is_refused(layout: PteLayout) -> None:
    prot = layout.attributes & ~layout.group
    last = (1 << layout.nr_pfn_bits) - 1
    with pytest.raises(ValueError, match=f"{layout.name}: no room for PFN"):
        layout.encode(last + 1, prot)
    with pytest.raises(ValueError, match="no room"):
        layout.advance(layout.encode(last, prot), 1)
    with pytest.raises(ValueError, match="no room"):
        layout.advance(layout.encode(0, prot), -1)
    with pytest.raises(ValueError, match="no protection"):
        layout.encode(0, prot | layout.pieces[0].mask)


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: layout.name)
def test_the_pieces_of_a_pfn_make_all_of_it_and_share_no_bit(layout: PteLayout) -> None:
    pieces = sorted(layout.pieces, key=lambda piece: piece.pfn_bit)
    assert [piece.pfn_bit for piece in pieces] == [
        sum(piece.nr_bits for piece in pieces[:n]) for n in range(len(pieces))
    ]
    nr_bits = sum(piece.nr_bits for piece in layout.pieces + layout.copies)
    assert layout.pfn_mask.bit_count() == nr_bits
    assert layout.pfn_mask & layout.attributes == 0
    assert layout.source.startswith("arch/")


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: layout.name)
def test_the_entry_of_no_page_names_page_0(layout: PteLayout) -> None:
    assert layout.decode(layout.empty) == 0


# --- By hand -----------------------------------------------------------------------------


def test_x86_64_stores_the_pfn_of_an_inaccessible_page_complemented() -> None:
    prot = pte.PROTNONE | pte.ACCESSED
    entry = pte.X86_64.encode(0x12345, prot)
    assert entry == 0x000F_FFFF_EDCB_A120
    assert pte.X86_64.decode(entry) == 0x12345
    # A run of such pages descends.
    assert pte.X86_64.advance(entry, 1) == entry - 0x1000
    assert pte.X86_64.encode(0x12345, pte.PRESENT) == 0x1234_5001


def test_x86_64_needs_a_bit_to_tell_a_complement_by() -> None:
    with pytest.raises(ValueError, match="without any bit"):
        pte.X86_64.encode(1, 0)


def test_x86_64_does_not_carry_into_software_bits() -> None:
    last = pte.X86_64.encode((1 << 40) - 1, pte.PRESENT)
    assert last == 0x000F_FFFF_FFFF_F001
    with pytest.raises(ValueError, match="no room"):
        pte.X86_64.advance(last, 1)


def test_arm64_splits_the_address_where_52_bits_begin() -> None:
    lpa = pte.ARM64_64K_LPA
    below = lpa.encode(0x0000_FFFF_FFFF_0000 >> 16, 3)
    assert below == 0x0000_FFFF_FFFF_0003
    # Bit 48 of the address is bit 12 of the entry; 6.12 leaves it at bit 48, too.
    assert lpa.advance(below, 1) == 1 << 48 | 1 << 12 | 3
    assert lpa.encode(0xF << 32, 3) == 3 << 48 | 0xF << 12 | 3


@pytest.mark.parametrize("layout", [pte.ARM64_4K_LPA2, pte.ARM64_16K_LPA2])
def test_arm64_lpa2_carries_past_bit_49_into_bit_8(layout: PteLayout) -> None:
    guarded = 1 << 50
    below = layout.encode((1 << 50 - layout.page_shift) - 1, guarded | 3)
    assert below == guarded | (1 << 50) - (1 << layout.page_shift) | 3
    assert layout.advance(below, 1) == guarded | 1 << 8 | 3


def test_arm64_without_lpa_ends_at_48_bits() -> None:
    last = pte.ARM64_4K.encode((1 << 36) - 1, 3)
    with pytest.raises(ValueError, match="no room"):
        pte.ARM64_4K.advance(last, 1)


def test_riscv_ends_at_bit_53_and_knows_no_next_group() -> None:
    last = pte.RISCV64.encode((1 << 44) - 1, 0xCF)
    assert last == 0x003F_FFFF_FFFF_FCCF
    with pytest.raises(ValueError, match="no room"):
        pte.RISCV64.advance(last, 1)
    group = 1 << 63 | 0x1008 << 10 | 0xCF  # 64 KiB at PFN 0x1000
    assert pte.RISCV64.decode(group) == 0x1000
    with pytest.raises(ValueError, match="group"):
        pte.RISCV64.advance(group, 16)


@pytest.mark.parametrize("layout", [pte.BOOK3S64_4K, pte.BOOK3S64_64K])
def test_book3s64_entries_are_marked_as_such_in_any_case(layout: PteLayout) -> None:
    present = 1 << 63
    entry = layout.encode(7, present)
    assert entry == present | 1 << 62 | 7 << layout.page_shift
    assert layout.advance(entry, 1) == entry + (1 << layout.page_shift)
    last = layout.encode((1 << 53 - layout.page_shift) - 1, present)
    with pytest.raises(ValueError, match="no room"):
        layout.advance(last, 1)


def test_s390_entries_are_born_young_and_valid_where_they_can_be_read() -> None:
    read, young, invalid = 0x010, 0x004, 0x400
    assert pte.S390X.encode(1, invalid | read) == 0x1000 | read | young
    assert pte.S390X.encode(1, invalid) == 0x1000 | invalid | young
    old = 0x1000 | invalid | read
    assert pte.S390X.advance(old, 1) == old + 0x1000
    assert pte.S390X.empty == invalid


def test_sparc64_steps_by_8_kib() -> None:
    valid = 1 << 63
    assert pte.SPARC64_SUN4V.encode(1, valid) == valid | 0x2000
    assert pte.SPARC64_SUN4V.advance(valid | 0x2000, 3) == valid | 0x8000
    special = 1 << 57  # above the PFN in both
    assert pte.SPARC64_SUN4U.decode(special | 0x7FF_FFFF_E000) == (1 << 30) - 1
    assert pte.SPARC64_SUN4V.decode(special | 0xFF_FFFF_FFFF_E000) == (1 << 43) - 1


def test_nios2_has_no_room_past_its_last_page() -> None:
    global_ = 1 << 20
    assert pte.NIOS2.encode(0xFFFFF, 1 << 25) == 1 << 25 | 0xFFFFF
    assert pte.NIOS2.advance(1 << 25 | 0xFFFFE, 1) & global_ == 0
    with pytest.raises(ValueError, match="no room"):
        pte.NIOS2.advance(1 << 25 | 0xFFFFF, 1)


# --- x86-64, bit by bit ------------------------------------------------------------------

RW_DIRTY = pte.PRESENT | pte.RW | pte.USER | pte.ACCESSED | pte.DIRTY


def test_a_stray_bit_makes_no_page() -> None:
    assert pte.none(0)
    assert pte.none(pte.ACCESSED | pte.DIRTY)
    assert not pte.none(pte.PROTNONE)
    assert not pte.present(pte.ACCESSED | pte.DIRTY)
    assert pte.present(pte.PROTNONE)


def test_write_protection_keeps_dirty_out_of_a_shadow_stacks_way() -> None:
    protected = pte.wrprotect(RW_DIRTY)
    assert protected == RW_DIRTY & ~(pte.RW | pte.DIRTY) | pte.SAVED_DIRTY
    assert pte.dirty(protected)
    assert not pte.write(protected, shadow_stack=True)
    assert pte.mkwrite(protected) == RW_DIRTY


def test_a_shadow_stack_is_written_without_the_write_bit() -> None:
    stack = pte.mkwrite(pte.PRESENT | pte.USER, shadow_stack=True)
    assert stack == pte.PRESENT | pte.USER | pte.DIRTY
    assert pte.write(stack, shadow_stack=True)
    assert not pte.write(stack)


@given(words)
def test_nothing_that_is_protected_can_be_written(entry: int) -> None:
    for protected in (pte.wrprotect(entry), pte.mkuffd_wp(entry)):
        assert not pte.write(protected, shadow_stack=True)
        assert pte.dirty(protected) == pte.dirty(entry)
        assert pte.wrprotect(protected) == protected


@given(words)
def test_each_change_does_what_it_is_called(entry: int) -> None:
    assert not pte.young(pte.mkold(entry))
    assert not pte.dirty(pte.mkclean(entry))
    assert pte.dirty(pte.mkdirty(entry))
    assert pte.soft_dirty(pte.mkdirty(entry))
    assert pte.soft_dirty(pte.mkdirty(entry, soft=False)) == pte.soft_dirty(entry)
    assert pte.write(pte.mkwrite(entry))
    assert pte.uffd_wp(pte.mkuffd_wp(entry))
    assert not pte.uffd_wp(pte.clear_uffd_wp(entry))
    assert not pte.soft_dirty(pte.clear_soft_dirty(entry))


@given(words)
def test_no_change_moves_the_page(entry: int) -> None:
    changes = (
        *(pte.wrprotect, pte.mkclean, pte.mkold, pte.mkdirty, pte.mkwrite),
        *(pte.clear_uffd_wp, pte.mkuffd_wp, pte.clear_soft_dirty),
    )
    for change in changes:
        assert (change(entry) ^ entry) & pte.PFN_MASK == 0


@given(words)
def test_protecting_before_or_after_other_changes_is_the_same(entry: int) -> None:
    for change in (pte.mkclean, pte.mkold, pte.clear_uffd_wp, pte.clear_soft_dirty):
        assert pte.wrprotect(change(entry)) == change(pte.wrprotect(entry))


def test_a_swap_entry_is_neither_present_nor_none() -> None:
    entry = pte.swap_entry(0, 0x1234)
    assert entry == 0x07FF_FFFF_FFDB_9600
    for marked in (entry, entry | pte.SWP_EXCLUSIVE | pte.SWP_UFFD_WP | pte.SWP_SOFT_DIRTY):
        assert not pte.present(marked)
        assert not pte.none(marked)


@pytest.mark.parametrize(("kind", "offset"), [(32, 0), (0, 1 << 50), (-1, 0), (0, -1)])
def test_a_swap_entry_without_room_is_refused(kind: int, offset: int) -> None:
    with pytest.raises(ValueError, match="no room"):
        pte.swap_entry(kind, offset)
