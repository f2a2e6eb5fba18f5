# SPDX-License-Identifier: GPL-2.0-only
"""Predicts what memremap_pages() and memunmap_pages() leave behind, from the rules.

Each rule names its place in the tree of 6.12; 7.3 has the same. Descriptors and pageblocks are
ream.oracle.memmap's, but for those of an altmap. What is said here is one number for each word of
experiments/zone_device/remap/state.def: of the pagemap, the zone, the sections, the page tables and
the page allocator.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ream.oracle.memmap import (
    DeviceRange,
    Facts,
    MapPlace,
    altmap_pages_of,
    compound_chunks,
    usage_areas,
)

WORDS = tuple(
    re.findall(
        r"^STATE\((\w+)\)",
        (Path(__file__).parent.parent / "remap" / "state.def").read_text(encoding="ascii"),
        re.MULTILINE,
    )
)
OPEN = (1 << 64) - 1
"""A word that may have any value."""

PAGE_BYTES = 4096
PMD_BYTES = 2 << 20
PUD_BYTES = 1 << 30
PGD_BYTES = 1 << 39
"""What an entry of each level of page tables is for; of the top one it is a table of PUDs."""

UNCOUNTED = ("PRIVATE", "COHERENT")
"""Types whose pages take a reference to the pagemap when a driver hands them out."""


@dataclass(frozen=True)
class Remapped:
    """A device, the node that its map is allocated of, and what was before the call.

    device: no early pages; reserved_pages: those of its skip_pages that belong to another owner.
    node_pfn, node_pages: the node's frames. calls_before: how often it was mapped and unmapped.
    ram: the address of frame 0 in the linear map.
    """

    device: DeviceRange
    reserved_pages: int
    node_pfn: int
    node_pages: int
    calls_before: int
    ram: int

    @property
    def end_pfn(self) -> int:
        return self.device.start_pfn + self.device.nr_pages


def map_chunks(
    device: DeviceRange, facts: Facts, place: MapPlace, reserved: int
) -> Iterator[bytes]:
    """The memory map's bytes in address order.

    What an altmap reserves is not written, the frames that hold the map are reserved pages, and
    the rest is compound pages. Source: memmap_init_range() and memmap_init_zone_device(),
    mm/mm_init.c.
    """
    if device.skip_pages:
        yield np.full(reserved * facts["sizeof.page"] // 8, place.poison, "<u8").tobytes()
        yield altmap_pages_of(device, facts, place, reserved).tobytes()
    yield from (chunk.tobytes() for chunk in compound_chunks(device, facts, place))


def usage_bytes(device: DeviceRange, facts: Facts, reserved: int) -> bytes:
    """The sections' pageblock bits; those of frames that hold the map are set, too.

    Of these a block counts by its first frame, which must not be reserved. Source:
    memmap_init_range() and pageblock_migratetype_init_range().
    """
    block = facts["pageblock_nr_pages"]
    behind = device.start_pfn + device.skip_pages
    first_of_map = device.start_pfn + (reserved if device.skip_pages else 0)
    end_pfn = device.start_pfn + device.nr_pages
    movable = {*range(-(-first_of_map // block) * block, behind, block)}
    movable |= {*range(-(-behind // block) * block, end_pfn, block)}
    return usage_areas(sorted(movable), device.start_pfn, end_pfn, facts)


def _touched(start: int, end: int, unit: int) -> int:
    """How many aligned pieces of this size an address range touches."""
    return -(-end // unit) - start // unit if end > start else 0


def _sections(one: Remapped, facts: Facts) -> Iterator[tuple[int, int]]:
    """The frames of the device in each of its sections: the first one, and that behind the last."""
    size = facts["PAGES_PER_SECTION"]
    for start in range(one.device.start_pfn // size * size, one.end_pfn, size):
        yield max(start, one.device.start_pfn), min(start + size, one.end_pfn)


def _memory_map(one: Remapped, facts: Facts, map_address: int) -> Mapping[str, int]:
    """Entries, frames and tables of the memory map.

    Of a device of compound pages without an altmap a compound's map has two pages of its own, and
    the others are the second one again; else the map of a whole section is one entry of 2 MiB, of
    the altmap if there is one, and that of a part is pages of 4 KiB, of RAM. Source:
    __populate_section_memmap(), vmemmap_populate_compound_pages() and vmemmap_populate().
    """
    device, size = one.device, facts["sizeof.page"]
    written = device.written_per_compound(facts)
    start, end = (map_address + pfn * size for pfn in (device.start_pfn, one.end_pfn))
    tables = _touched(start, end, PGD_BYTES) + _touched(start, end, PUD_BYTES)
    if written < 1 << device.order:
        small = (end - start) // PAGE_BYTES
        frames = device.nr_compounds * written * size // PAGE_BYTES
        tables += _touched(start, end, PMD_BYTES)
        huge = on_device = 0
    else:
        parts = [*_sections(one, facts)]
        whole = [last - first == facts["PAGES_PER_SECTION"] for first, last in parts]
        huge = sum(whole)
        small = frames = (end - start - huge * PMD_BYTES) // PAGE_BYTES
        tables += len(parts) - huge
        on_device = huge * PMD_BYTES // PAGE_BYTES if device.skip_pages else 0
    return {
        "map_huge": huge,
        "map_small": small,
        "map_shared": small - frames,
        "map_frames": huge * PMD_BYTES // PAGE_BYTES + frames,
        "map_on_device": on_device,
        "altmap_alloc": on_device,
        "map_tables": tables,
    }


def _linear_map(one: Remapped) -> Mapping[str, int]:
    """Entries and tables of the linear map, as large as they can be; private memory has none.

    Memory of another device on the bus is mapped uncached. Source: pagemap_range() and
    memremap_pages(), mm/memremap.c; split_mem_range(), arch/x86/mm/init.c.
    """
    if one.device.type == "PRIVATE":
        return {}
    start, end = (one.ram + pfn * PAGE_BYTES for pfn in (one.device.start_pfn, one.end_pfn))
    gigas = max(0, end // PUD_BYTES - -(-start // PUD_BYTES))
    megas = (end - start - gigas * PUD_BYTES) // PMD_BYTES
    return {
        "linear_1g": gigas,
        "linear_2m": megas,
        "linear_uncached": (gigas + megas) * (one.device.type == "PCI_P2PDMA"),
        "linear_tables": _touched(start, end, PGD_BYTES) + _touched(start, end, PUD_BYTES) - gigas,
    }


def _lasting(one: Remapped) -> Mapping[str, int]:
    """What a device leaves behind as well as what it has.

    Zones of devices do not shrink, and with four levels the tables of PUDs stay. Source:
    remove_pfn_range_from_zone(), mm/memory_hotplug.c; remove_p4d_table(), arch/x86/mm/init_64.c.
    """
    return {
        "nr_range": 1,
        "zone_start_pfn": one.device.start_pfn,
        "zone_spanned": one.device.nr_pages,
        "zone_initialized": 1,
        "node_start_pfn": one.node_pfn,
        "node_spanned": one.end_pfn - one.node_pfn,
        "node_present": one.node_pages,
        "highest_pfn": one.end_pfn - 1,
    }


def _references(device: DeviceRange) -> int:
    """One, and one for each compound page. Source: pagemap_range(), mm/memremap.c."""
    pages = device.nr_pages - device.skip_pages >> device.order
    return 1 + pages * (device.type not in UNCOUNTED)


def mapped(one: Remapped, facts: Facts, map_address: int) -> NDArray[np.uint64]:
    """The words behind memremap_pages(). map_address: of the descriptor of frame 0."""
    size = facts["PAGES_PER_SECTION"]
    nr_sections = len([*_sections(one, facts)])
    edges = {pfn // size for pfn in (one.device.start_pfn, one.end_pfn) if pfn % size}
    return _as_words(
        {
            **_lasting(one),
            **_memory_map(one, facts, map_address),
            **_linear_map(one),
            "refs": _references(one.device),
            "found_first": 1,
            "found_last": 1,
            "sections_present": nr_sections,
            "sections_mapped": nr_sections,
            "sections_usage": nr_sections,
            "sections_tainted": len(edges),
            "subsections": one.device.nr_pages // facts["PAGES_PER_SUBSECTION"],
            "objects": OPEN,
        }
    )


def unmapped(one: Remapped, facts: Facts, map_address: int) -> NDArray[np.uint64]:
    """The words behind memunmap_pages(): all that was taken is given back.

    The arrays that sections lie in stay when the first device came. Source: sparse_index_init(),
    mm/sparse.c.
    """
    size = facts["sizeof.page"]
    start, end = (map_address + pfn * size for pfn in (one.device.start_pfn, one.end_pfn))
    contents = [one.ram + pfn * PAGE_BYTES for pfn in (one.device.start_pfn, one.end_pfn)]
    per_root = facts["PAGES_PER_SECTION"] * facts["SECTIONS_PER_ROOT"]
    roots = _touched(one.device.start_pfn, one.end_pfn, per_root)
    return _as_words(
        {
            **_lasting(one),
            "map_lacking": (end - start) // PAGE_BYTES,
            "map_tables": _touched(start, end, PGD_BYTES),
            "linear_tables": _touched(contents[0], contents[1], PGD_BYTES)
            * (one.device.type != "PRIVATE"),
            "objects": 0 if one.calls_before else roots,
        }
    )


def _as_words(said: Mapping[str, int]) -> NDArray[np.uint64]:
    """The numbers in the order of the words; those that nothing is said of are 0."""
    assert not {*said} - {*WORDS}
    return np.array([said.get(word, 0) for word in WORDS], np.uint64)
