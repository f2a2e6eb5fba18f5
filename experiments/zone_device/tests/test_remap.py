# SPDX-License-Identifier: GPL-2.0-only
"""What memremap_pages() and memunmap_pages() must leave behind, worked out by hand."""

from dataclasses import replace

import numpy as np
import pytest

from experiments.zone_device.oracle.remap import (
    OPEN,
    WORDS,
    Remapped,
    map_chunks,
    mapped,
    unmapped,
    usage_bytes,
)
from experiments.zone_device.remap import (
    NODE_STEP,
    RemapRow,
    _random_device,
    edge_devices,
    remap_row,
)
from experiments.zone_device.rows import ZoneDeviceRow
from ream.experiment import named
from ream.oracle.memmap import DeviceRange, Facts, MapPlace

FACTS: Facts = {
    "VMEMMAP_RESERVE_NR": 2,
    "ARCH_WANT_OPTIMIZE_DAX_VMEMMAP": 1,
    "PAGE_SIZE": 4096,
    "PAGES_PER_SECTION": 1 << 15,
    "PAGES_PER_SUBSECTION": 512,
    "SECTIONS_PER_ROOT": 128,
    "sizeof.page": 64,
    "pageblock_nr_pages": 512,
    "NR_PAGEBLOCK_BITS": 4,
    "MIGRATETYPE_MASK": 7,
    "MIGRATE_MOVABLE": 1,
    "sizeof.usage": 48,
    "usage.pageblock_flags": 16,
}
SECTION = 1 << 15
START = 1 << 26
MAP = 0x200000000000


def of(device: DeviceRange, calls_before: int = 1) -> Remapped:
    return Remapped(device, 2 if device.skip_pages else 0, 1 << 21, 1 << 15, calls_before, 3 << 44)


def words(device: DeviceRange) -> dict[str, int]:
    return dict(zip(WORDS, mapped(of(device), FACTS, MAP).tolist(), strict=True))


def after(device: DeviceRange, calls_before: int = 1) -> dict[str, int]:
    said = unmapped(of(device, calls_before), FACTS, MAP).tolist()
    return dict(zip(WORDS, said, strict=True))


def test_private_memory_has_a_map_and_no_part_of_the_linear_map() -> None:
    said = words(DeviceRange(START, 4 * SECTION, 0, 0, "PRIVATE"))
    assert (said["map_huge"], said["map_small"], said["map_frames"]) == (4, 0, 4 * 512)
    assert said["map_tables"] == 1 + 1  # one below the top, and one of entries of 2 MiB
    assert not any(number for word, number in said.items() if word.startswith("linear_"))
    assert said["refs"] == 1


def test_the_linear_map_is_as_coarse_as_it_can_be() -> None:
    said = words(DeviceRange(START, 9 * SECTION, 0, 0, "GENERIC"))
    assert (said["linear_1g"], said["linear_2m"], said["linear_4k"]) == (1, 64, 0)
    assert said["linear_tables"] == 1 + 1
    assert said["linear_uncached"] == 0
    assert words(DeviceRange(START, SECTION, 0, 0, "PCI_P2PDMA"))["linear_uncached"] == 64


def test_tails_of_a_compound_page_share_the_second_page_of_its_map() -> None:
    said = words(DeviceRange(START, SECTION, 0, 9, "GENERIC"))
    assert (said["map_huge"], said["map_small"]) == (0, 512)
    assert (said["map_frames"], said["map_shared"]) == (2 * 64, 6 * 64)
    assert said["map_tables"] == 1 + 1 + 1
    assert said["refs"] == 1 + 64


def test_an_altmap_gives_the_map_its_frames_and_has_no_references() -> None:
    said = words(DeviceRange(START, 2 * SECTION, 1536, 0, "FS_DAX"))
    assert said["map_on_device"] == said["altmap_alloc"] == said["map_frames"] == 2 * 512
    assert said["refs"] == 1 + 2 * SECTION - 1536


def test_a_part_of_a_section_is_mapped_by_small_pages_and_tainted() -> None:
    said = words(DeviceRange(START, SECTION + 1024, 0, 0, "COHERENT"))
    assert (said["map_huge"], said["map_small"], said["map_tables"]) == (1, 16, 1 + 1 + 1)
    assert (said["sections_tainted"], said["sections_mapped"]) == (1, 2)
    assert said["subsections"] == 64 + 2


@pytest.mark.parametrize("device", [*edge_devices(), *map(_random_device, range(40))], ids=str)
def test_nothing_stays_but_spans_and_what_one_more_device_would_use(device: DeviceRange) -> None:
    before, behind = words(device), after(device)
    kept = {word for word, number in behind.items() if number}
    assert kept <= {
        *("nr_range", "zone_start_pfn", "zone_spanned", "zone_initialized", "node_start_pfn"),
        *("node_spanned", "node_present", "highest_pfn", "map_lacking", "map_tables"),
        *("linear_tables",),
    }
    assert before["objects"] == OPEN
    assert behind["objects"] == 0
    assert behind["map_lacking"] == before["map_small"] + 512 * before["map_huge"]
    assert before["map_shared"] + before["map_frames"] == behind["map_lacking"]


def test_the_first_device_leaves_the_arrays_of_its_sections() -> None:
    device = DeviceRange(START, 130 * SECTION, 0, 0, "PRIVATE")
    assert after(device, calls_before=0)["objects"] == 2
    assert after(device, calls_before=1)["objects"] == 0


def test_pageblocks_of_an_altmap_are_movable_but_the_one_that_begins_reserved() -> None:
    device = DeviceRange(START, SECTION, 1536, 0, "FS_DAX")
    bits = int.from_bytes(usage_bytes(device, FACTS, 2)[16:], "little")
    assert [bits >> 4 * block & 7 for block in range(64)] == [0] + 63 * [1]


FIELDS = {
    "page.flags": 0,
    **dict.fromkeys(("page.pgmap", "page.compound_head"), 8),
    "page.zone_device_data": 16,
    "page.mapping": 24,
    "page.private": 40,
    "page._mapcount": 48,
    "page._refcount": 52,
    "NODES_PGSHIFT": 58,
    "ZONES_PGSHIFT": 55,
    "ZONE_DEVICE": 4,
    "PG_reserved": 13,
    "FREE_DAX_PAGES_COUNT": 1,
}


def test_the_map_of_an_altmap_is_written_from_where_it_is_not_reserved() -> None:
    device = DeviceRange(START, SECTION, 1536, 0, "FS_DAX")
    place = MapPlace(MAP + START * 64, 0x1000, 0xA5A5A5A5A5A5A5A5)
    image = np.frombuffer(b"".join(map_chunks(device, {**FACTS, **FIELDS}, place, 2)), "<u8")
    pages = image.reshape(-1, 8)
    assert len(pages) == SECTION
    assert (pages[:2] == place.poison).all()
    # A list head that is linked to itself, and then the pagemap.
    assert (pages[2:1536, 1] == place.map + 64 * np.arange(2, 1536, dtype=np.uint64) + 8).all()
    assert (pages[1536:, 1] == place.pgmap).all()


def test_a_node_has_room_for_the_map_in_whole_blocks() -> None:
    row = RemapRow("", DeviceRange(START, 512 * SECTION, 0, 0, "PRIVATE"))
    assert row.node_pages % NODE_STEP == 0
    assert row.node_pages * 4096 > 1 << 30


def test_rows_are_of_one_program_or_the_other() -> None:
    rows = {row.name: row for row in named("zone-device").rows}
    whole = rows["remap-private-64GB"]
    assert isinstance(whole, ZoneDeviceRow)
    assert whole.timed == "memremap_pages()"
    assert remap_row(whole).calls_before == 1
    assert not remap_row(whole).unmaps
    first = rows["remap-devdax-after-0"]
    assert isinstance(first, ZoneDeviceRow)
    assert replace(remap_row(first), name="") == RemapRow(
        "", DeviceRange(START, 16 << 18, 0, 9, "GENERIC"), rounds=2
    )
