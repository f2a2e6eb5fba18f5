# SPDX-License-Identifier: GPL-2.0-only
"""The oracle of the memory map, on a made-up layout: what it predicts, and what it notices."""

import io
from collections.abc import Mapping
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from ream.oracle.memmap import (
    DeviceRange,
    MapPlace,
    altmap_pages_of,
    compound_chunks,
    first_difference,
    head_of,
    is_counted,
    map_chunks,
    tail_links,
    usage_areas,
    write_map,
)

SIZE = 64
FACTS: Mapping[str, int] = {
    "sizeof.page": SIZE,
    "page.flags": 0,
    "page.pgmap": 8,
    "page.compound_head": 8,
    "page.zone_device_data": 16,
    "page.mapping": 24,
    "page.private": 40,
    "page._mapcount": 48,
    "page._refcount": 52,
    "folio._flags_1": 64,
    "folio._large_mapcount": 80,
    "folio._entire_mapcount": 84,
    "folio._nr_pages_mapped": 88,
    "folio._pincount": 92,
    "folio._folio_nr_pages": 96,
    "PG_head": 6,
    "PG_reserved": 13,
    "NODES_PGSHIFT": 58,
    "ZONES_PGSHIFT": 56,
    "ZONE_DEVICE": 3,
    "FREE_DAX_PAGES_COUNT": 1,
    "HEADS_COME_LAST": 0,
    "TAIL_MAPPING": 0xDEAD000000000400,
    "PAGE_SIZE": 4096,
    "VMEMMAP_RESERVE_NR": 2,
    "ARCH_WANT_OPTIMIZE_DAX_VMEMMAP": 1,
}
PLACE = MapPlace(map=0xFFFFEA0000000000, pgmap=0xFFFF888001234000, poison=0, aliased=True)
RESERVE = 2


def device(order: int, *, skip_pages: int = 0, type_: str = "FS_DAX") -> DeviceRange:
    return DeviceRange(
        start_pfn=1 << 20, nr_pages=32768, skip_pages=skip_pages, order=order, type=type_
    )


def image(of: DeviceRange, place: MapPlace = PLACE) -> NDArray[np.uint8]:
    """The whole map as a kernel would leave it, what nobody writes being 0."""
    parts = [np.zeros(RESERVE * SIZE, np.uint8)] if of.skip_pages else []
    if of.skip_pages:
        parts.append(altmap_pages_of(of, FACTS, place, RESERVE).view(np.uint8))
    parts += [chunk.copy() for chunk in compound_chunks(of, FACTS, place)]
    return np.concatenate(parts)


same_image = cache(image)
"""The same array for each of the many examples of a device, which they copy."""

DEVICES = (device(0), device(0, skip_pages=1024), device(9), device(9, skip_pages=1024), device(18))


@pytest.mark.parametrize("of", DEVICES, ids=str)
def test_a_predicted_image_does_not_differ_from_itself(of: DeviceRange) -> None:
    reserve = RESERVE if of.skip_pages else 0
    assert first_difference(image(of), of, FACTS, PLACE, reserve=reserve) is None


@pytest.mark.parametrize("of", DEVICES, ids=str)
@given(data=st.data())
def test_any_flipped_bit_is_found_at_its_byte(of: DeviceRange, data: st.DataObject) -> None:
    reserve = RESERVE if of.skip_pages else 0
    wrong = same_image(of).copy()
    at = data.draw(st.integers(reserve * SIZE, len(wrong) - 1))
    wrong[at] ^= 1 << data.draw(st.integers(0, 7))
    assert first_difference(wrong, of, FACTS, PLACE, reserve=reserve) == at


@pytest.mark.parametrize("change", [-SIZE, SIZE])
def test_an_image_of_another_length_differs_where_the_shorter_one_ends(change: int) -> None:
    of = device(9)
    whole = image(of)
    other = np.resize(whole, len(whole) + change)
    assert first_difference(other, of, FACTS, PLACE) == min(len(whole), len(other))


def test_the_pages_of_the_superblock_are_not_compared() -> None:
    of = device(9, skip_pages=1024)
    held = image(of)
    held[: RESERVE * SIZE] = 0xFF
    assert first_difference(held, of, FACTS, PLACE, reserve=RESERVE) is None


def test_shared_tails_read_as_the_last_page_of_map_that_is_kept() -> None:
    pages = image(device(9)).reshape(-1, 512, SIZE)
    for compound in pages[:2]:
        for first in range(128, 512, 64):
            assert (compound[first : first + 64] == compound[64:128]).all()


def test_where_nothing_is_aliased_shared_tails_hold_the_poison() -> None:
    place = MapPlace(PLACE.map, PLACE.pgmap, poison=0x5A5A5A5A5A5A5A5A)
    pages = image(device(9), place).reshape(-1, 512, SIZE)
    assert (pages[:, 128:] == 0x5A).all()


def test_a_tail_page_points_to_its_own_head() -> None:
    pages = image(device(9, skip_pages=1024))[1024 * SIZE :].view("<u8").reshape(-1, 512, 8)
    heads = PLACE.map + (1024 + np.arange(len(pages), dtype=np.uint64) * 512) * SIZE
    assert (pages[:, 1:, 1] == (heads | 1)[:, np.newaxis]).all()


def test_a_page_that_holds_the_map_is_linked_to_itself() -> None:
    pages = image(device(0, skip_pages=1024))[: 1024 * SIZE].view("<u8").reshape(-1, 8)
    own = PLACE.map + np.arange(1024, dtype=np.uint64) * SIZE + 8
    assert (pages[RESERVE:, 1] == own[RESERVE:]).all()
    assert (pages[RESERVE:, 2] == own[RESERVE:]).all()


def test_a_periodic_image_is_written_once_and_any_other_whole() -> None:
    for of, nr_bytes in ((device(0), 2 << 20), (device(9), 32768 * SIZE)):
        to = io.BytesIO()
        assert write_map(of, FACTS, PLACE, to) == nr_bytes
        assert to.getvalue() == b"".join(chunk.tobytes() for chunk in map_chunks(of, FACTS, PLACE))


def test_the_section_of_its_head_decides_what_is_written_of_a_compound() -> None:
    whole = replace(device(9), nr_pages=1024)
    mixed = replace(whole, early_pages=512)
    early, late = mixed.parts()
    assert [part.written_per_compound(FACTS) for part in (early, late)] == [512, 128]
    made = image(mixed)
    assert np.array_equal(made[: 512 * SIZE], image(replace(whole, early_pages=1024))[: 512 * SIZE])
    assert np.array_equal(made[512 * SIZE :], image(whole)[512 * SIZE :])
    assert whole.parts() == (whole,)


def test_of_a_pageblock_that_is_written_only_the_migratetype_changes() -> None:
    facts = {
        "PAGES_PER_SECTION": 1024,
        "NR_PAGEBLOCK_BITS": 4,
        "MIGRATETYPE_MASK": 7,
        "MIGRATE_MOVABLE": 1,
        "pageblock_nr_pages": 512,
        "sizeof.usage": 9,
        "usage.pageblock_flags": 8,
    }
    assert usage_areas([512], 0, 1024, facts, old=0xAA) == bytes(8) + b"\x9a"
    assert usage_areas([], 0, 1024, facts, old=0xAA) == bytes(8) + b"\xaa"


# --- Rules that kernels changed ----------------------------------------------------------


def newer_facts(**others: int) -> dict[str, int]:
    return {
        **FACTS,
        "TAILS_HOLD_MASK": 1,
        "HEADS_COME_LAST": 1,
        "FREE_DAX_PAGES_COUNT": 0,
        "folio._deferred_list": 144,
        "folio._mm_id_mapcount": 96,
        "folio._mm_ids": 104,
        **others,
    }


def test_tails_hold_a_mask_that_makes_their_head_of_their_address() -> None:
    facts, map_address, size = newer_facts(), 0x7F0000000000, FACTS["sizeof.page"]
    heads = np.array([map_address, map_address + 16 * size], "<u8")
    links = tail_links(heads, 4, facts)
    for head, link in zip(heads.tolist(), links.tolist(), strict=True):
        assert link & 1
        for tail in range(1, 16):
            assert head_of(link, head + tail * size, facts) == head
        assert head_of(0, head, facts) == head
    assert tail_links(heads, 4, FACTS).tolist() == [head | 1 for head in heads.tolist()]
    assert head_of(int(heads[0]) | 1, int(heads[0]) + size, FACTS) == heads[0]


def test_a_head_that_comes_last_keeps_its_list_and_nobody_has_it_mapped() -> None:
    facts = newer_facts()
    del facts["folio._folio_nr_pages"]
    place = MapPlace(map=0x7F0000000000, pgmap=0xABC0, poison=0x55)
    device = DeviceRange(start_pfn=0, nr_pages=32, skip_pages=0, order=4, type="GENERIC")
    octets = np.concatenate(list(map_chunks(device, facts, place)))
    words = octets.view("<u8").reshape(32, -1)
    for head in (0, 16):
        address = place.map + head * FACTS["sizeof.page"] + 144
        assert words[head + 2, 2:4].tolist() == [address, address]
        assert words[head + 1, 4] == (1 << 64) - 1  # both slots of _mm_id_mapcount
        assert words[head + 1, 5] == 0
        assert words[head + 3, 2] == 0


@pytest.mark.parametrize(
    ("memory_type", "older", "newer"),
    [("FS_DAX", 1, 0), ("PCI_P2PDMA", 1, 0), ("GENERIC", 1, 1), ("PRIVATE", 0, 0)],
)
def test_which_free_pages_have_a_reference(memory_type: str, older: int, newer: int) -> None:
    assert (is_counted(memory_type, FACTS), is_counted(memory_type, newer_facts())) == (
        older,
        newer,
    )
