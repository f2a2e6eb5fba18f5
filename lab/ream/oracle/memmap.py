# SPDX-License-Identifier: GPL-2.0-only
"""Predicts every byte of the memory map of a ZONE_DEVICE range, from the rules.

Written from the specification of Linux (each rule names its place in the tree of 6.12, or of the
kernel that changed it), not from the code that it judges. Offsets, shifts and constants come from
the build (`facts`), as does the choice among rules that differ between kernels.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain, islice
from typing import IO, Any, Protocol

import numpy as np
from numpy.typing import NDArray

Facts = Mapping[str, int]

CHUNK_BYTES = 2 << 20
"""Approximate size of the pieces in which images are made: a 100 GiB device has 1.6 GiB of map."""


@dataclass(frozen=True)
class DeviceRange:
    """A range of device frames and how its pagemap groups them.

    start_pfn, nr_pages, skip_pages: frames; the first skip_pages contain the map itself (altmap).
    order: vmemmap_shift. type: as in MEMORY_DEVICE_<type>. early_pages: the number of first pages,
    up to the end of a section and of a compound page, whose sections are present since boot.
    """

    start_pfn: int
    nr_pages: int
    skip_pages: int
    order: int
    type: str
    early_pages: int = 0
    nid: int = 0

    def written_per_compound(self, facts: Facts) -> int:
        """Descriptors initialised per compound page.

        Without an altmap, and unless the section is early, the vmemmap of all tail pages except
        those in the first VMEMMAP_RESERVE_NR pages of map is one shared page, written once; only
        on architectures that have asked for that, and where descriptors fill a page of the map.
        Source: compound_nr_pages() in mm/mm_init.c, vmemmap_can_optimize() in include/linux/mm.h.
        """
        pages, size = 1 << self.order, facts["sizeof.page"]
        if not facts["ARCH_WANT_OPTIMIZE_DAX_VMEMMAP"]:
            return pages
        reserved = facts["VMEMMAP_RESERVE_NR"] * facts["PAGE_SIZE"] // size
        fill = size.bit_count() == 1
        optimized = fill and not self.early_pages and not self.skip_pages and pages > reserved
        return reserved if optimized else pages

    def parts(self) -> "tuple[DeviceRange, ...]":
        """Ranges in which the same number of descriptors is written for every compound, by address.

        The section of a compound's head decides, and only without an altmap. Source:
        compound_nr_pages() in mm/mm_init.c.
        """
        if self.skip_pages or not 0 < self.early_pages < self.nr_pages:
            return (self,)
        return replace(self, nr_pages=self.early_pages), replace(
            self,
            start_pfn=self.start_pfn + self.early_pages,
            nr_pages=self.nr_pages - self.early_pages,
            early_pages=0,
        )

    @property
    def nr_compounds(self) -> int:
        """Compound pages that begin in the range; the last may extend past its end."""
        return max(0, -(-(self.nr_pages - self.skip_pages) // (1 << self.order)))

    def map_bytes(self, facts: Facts) -> int:
        """Bytes of the map that belong to the range or are written beyond it."""
        first, *rest = self.parts()
        if rest:
            return first.nr_pages * facts["sizeof.page"] + rest[0].map_bytes(facts)
        last_head = self.skip_pages + (self.nr_compounds - 1 << self.order)
        reached = last_head + self.written_per_compound(facts) if self.nr_compounds else 0
        return max(self.nr_pages, reached) * facts["sizeof.page"]


@dataclass(frozen=True)
class MapPlace:
    """Addresses of map and pagemap that descriptors contain, and memory's old contents."""

    map: int
    pgmap: int
    poison: int
    aliased: bool = False
    """Whether shared tails are mapped as a kernel maps them: behind the pages that a compound's map
    keeps, the last of these is mapped again, so that reading returns written descriptors."""


def descriptor_dtype(formats: Mapping[str, Any], offsets: list[int], facts: Facts) -> np.dtype[Any]:
    """A dtype with fields at the build's offsets and the size of a struct page."""
    return _dtype(tuple(formats), tuple(formats.values()), tuple(offsets), facts["sizeof.page"])


@cache
def _dtype(
    names: tuple[str, ...], formats: tuple[Any, ...], offsets: tuple[int, ...], itemsize: int
) -> np.dtype[Any]:
    return np.dtype(
        {
            "names": list(names),
            "formats": list(formats),
            "offsets": list(offsets),
            "itemsize": itemsize,
        }
    )


def page_dtype(facts: Facts) -> np.dtype[Any]:
    """The fields of struct page; include/linux/mm_types.h."""
    formats = {
        "flags": "<u8",
        "pgmap": "<u8",  # ZONE_DEVICE pages: in place of lru.next
        "compound_head": "<u8",  # tail pages: the same word, bit 0 set
        "zone_device_data": "<u8",
        "mapping": "<u8",
        "private": "<u8",
        "_mapcount": "<i4",
        "_refcount": "<i4",
    }
    return descriptor_dtype(formats, [facts[f"page.{name}"] for name in formats], facts)


def first_tail_dtype(facts: Facts) -> np.dtype[Any]:
    """The fields that struct folio has in the first tail page, at offsets within that page."""
    formats: dict[str, Any] = {
        "_flags_1": "<u8",
        "_large_mapcount": "<i4",
        "_entire_mapcount": "<i4",
        "_nr_pages_mapped": "<i4",
        "_pincount": "<i4",
        **{name: size for name, size in _OPTIONAL.items() if f"folio.{name}" in facts},
    }
    offsets = [facts[f"folio.{name}"] - facts["sizeof.page"] for name in formats]
    return descriptor_dtype(formats, offsets, facts)


_OPTIONAL = {"_folio_nr_pages": "<u4", "_mm_id_mapcount": ("<i4", 2), "_mm_ids": "<u8"}
"""Fields of the first tail page that only some kernels or configurations have."""


def prepare_head(tails: NDArray[Any], order: int) -> None:
    """Set the fields of the first tail page of a compound page that is not mapped.

    tails: dtype first_tail_dtype; other fields keep their values. Source: prep_compound_head(),
    mm/internal.h; of the mm_ids, that of 6.15.
    """
    tails["_flags_1"] |= order
    tails["_large_mapcount"] = -1
    tails["_entire_mapcount"] = -1
    tails["_nr_pages_mapped"] = 0
    tails["_pincount"] = 0
    held = tails.dtype.names or ()
    if "_folio_nr_pages" in held:
        tails["_folio_nr_pages"] = 1 << order
    if "_mm_ids" in held:
        tails["_mm_ids"] = 0
        tails["_mm_id_mapcount"] = -1


def tail_links(heads: NDArray[np.uint64], order: int, facts: Facts) -> NDArray[np.uint64]:
    """The words that mark the tail pages of compound pages and lead to their heads.

    heads: addresses of the heads. A word is that address, or a mask that yields it from the tail's
    own address: maps are then aligned to their largest compound page. Bit 0 is set. Source:
    set_compound_head(), include/linux/page-flags.h; the mask of 8c846c879e22.
    """
    if facts.get("TAILS_HOLD_MASK"):
        return np.full_like(heads, -(facts["sizeof.page"] << order) % (1 << 64) | 1)
    return heads | np.uint64(1)


def head_of(link: int, tail: int, facts: Facts) -> int:
    """The address of the head of the page at address `tail`, whose word is `link`."""
    if not link & 1:
        return tail
    return tail & link if facts.get("TAILS_HOLD_MASK") else link - 1


def page_links(facts: Facts, nid: int, zone: int) -> int:
    """Node, zone and last CPU as set_page_links() and page_cpupid_reset_last() leave them."""
    links = nid << facts["NODES_PGSHIFT"] | zone << facts["ZONES_PGSHIFT"]
    if "LAST_CPUPID_PGSHIFT" in facts:
        links |= facts["LAST_CPUPID_MASK"] << facts["LAST_CPUPID_PGSHIFT"]
    return links


def _device_flags(facts: Facts, nid: int) -> int:
    return page_links(facts, nid, facts["ZONE_DEVICE"]) | 1 << facts["PG_reserved"]


def is_counted(memory_type: str, facts: Facts) -> bool:
    """Whether a device's page has a reference from the beginning, before a driver hands it out.

    memory_type: as in MEMORY_DEVICE_<type>. Source: __init_zone_device_page(), mm/mm_init.c.
    """
    if memory_type in ("FS_DAX", "PCI_P2PDMA"):
        return bool(facts["FREE_DAX_PAGES_COUNT"])
    return memory_type == "GENERIC"


def compound_template(device: DeviceRange, facts: Facts, pgmap: int) -> NDArray[Any]:
    """The written descriptors of one compound page, except words that depend on the map's address.

    Shape (written_per_compound,), dtype page_dtype.
    """
    pages = np.zeros(device.written_per_compound(facts), page_dtype(facts))
    pages["flags"] = _device_flags(facts, device.nid)
    pages["_mapcount"] = -1
    pages["pgmap"][0] = pgmap
    pages["_refcount"][0] = is_counted(device.type, facts)
    if device.order == 0:
        return pages
    pages["flags"][0] |= 1 << facts["PG_head"]
    # prep_compound_tail(), mm/internal.h; a tail's own count is always 0.
    pages["mapping"][1:] = facts["TAIL_MAPPING"]
    prepare_head(pages[1:2].view(first_tail_dtype(facts)), device.order)
    return pages


def is_periodic(device: DeviceRange) -> bool:
    """Whether the image repeats one descriptor, as no byte of it depends on the PFN.

    True for base pages because sections are not in page flags (SPARSEMEM_VMEMMAP).
    """
    return device.order == 0 and device.skip_pages == 0


def _poisoned(nr_bytes: int, place: MapPlace) -> NDArray[np.uint8]:
    return np.full(nr_bytes // 8, place.poison, "<u8").view(np.uint8)


def map_chunks(device: DeviceRange, facts: Facts, place: MapPlace) -> Iterator[NDArray[np.uint8]]:
    """The map's bytes in address order: first the skipped pages, then every compound.

    Chunks may share one array, so a caller must only read each one before it asks for the next.
    """
    size = facts["sizeof.page"]
    if device.skip_pages:
        yield _poisoned(device.skip_pages * size, place)
    for part in device.parts():
        yield from compound_chunks(part, facts, place)
        place = replace(place, map=place.map + part.nr_pages * size)


def compound_chunks(
    device: DeviceRange, facts: Facts, place: MapPlace
) -> Iterator[NDArray[np.uint8]]:
    """The map's bytes in address order, from the first page that is not skipped.

    device: one of its parts().
    """
    size = facts["sizeof.page"]
    stride = 1 << device.order
    template = compound_template(device, facts, place.pgmap)
    written = len(template)
    per_chunk = max(1, CHUNK_BYTES // (stride * size))
    left = device.map_bytes(facts) - device.skip_pages * size
    octets = _poisoned(per_chunk * stride * size, place).reshape(per_chunk, stride * size)
    # As bytes: assigning structs would leave out what no field covers.
    octets[:, : written * size] = template.view(np.uint8)
    pages = octets.view(template.dtype)
    for first in range(0, device.nr_compounds, per_chunk):
        if device.order:
            head = first + np.arange(per_chunk, dtype=np.uint64)
            address = place.map + (device.skip_pages + head * stride) * size
            links = tail_links(address, device.order, facts)
            pages["compound_head"][:, 1:written] = links[:, np.newaxis]
            # Where the head is prepared after the first tail, the second overwrites the list.
            if device.order > 1 and facts["HEADS_COME_LAST"]:
                word = facts["folio._deferred_list"] // 8
                octets.view("<u8")[:, word : word + 2] = (address + word * 8)[:, np.newaxis]
        if place.aliased and written < stride:
            kept = facts["PAGE_SIZE"]
            last = octets[:, written * size - kept : written * size]
            octets[:, written * size :] = np.tile(
                last, stride * size // kept - written * size // kept
            )
        # The last compound's shared tails have no descriptors of their own in the range.
        yield octets.reshape(-1)[:left]
        left -= octets.size


def write_map(device: DeviceRange, facts: Facts, place: MapPlace, to: IO[bytes]) -> int:
    """Write the predicted map; return the number of bytes (one chunk, if it is periodic)."""
    chunks = map_chunks(device, facts, place)
    if is_periodic(device):
        chunks = islice(chunks, 1)
    return sum(to.write(chunk.data) for chunk in chunks)


def altmap_pages_of(
    device: DeviceRange, facts: Facts, place: MapPlace, reserve: int
) -> NDArray[Any]:
    """Descriptors of the pages that contain the map itself, from `reserve` to skip_pages.

    They are reserved base pages with each list head linked to itself. The first `reserve` ones, of
    the namespace's superblock, are never written. Source: __init_single_page() and
    memmap_init_range(), mm/mm_init.c.
    """
    pages = np.zeros(device.skip_pages - reserve, page_dtype(facts))
    pages["flags"] = _device_flags(facts, device.nid)
    lru = place.map + facts["page.pgmap"]
    pages["pgmap"] = (
        lru + np.arange(reserve, device.skip_pages, dtype=np.uint64) * facts["sizeof.page"]
    )
    pages["zone_device_data"] = pages["pgmap"]  # lru.prev
    pages["_mapcount"] = -1
    pages["_refcount"] = 1
    return pages


class Bytes(Protocol):
    """Bytes that are read in slices, from an array or a guest's memory."""

    def __len__(self) -> int: ...
    def __getitem__(self, part: slice, /) -> NDArray[np.uint8]: ...


def first_difference(
    image: Bytes, device: DeviceRange, facts: Facts, place: MapPlace, *, reserve: int = 0
) -> int | None:
    """The offset of the first byte of a map that differs from the prediction; or None.

    image: the whole map. reserve: as for altmap_pages_of(); these bytes are not compared. An image
    of another size than predicted differs where the shorter one ends.
    """
    size = facts["sizeof.page"]
    at = reserve * size
    parts: list[Iterable[NDArray[np.uint8]]] = []
    if device.skip_pages:
        parts.append([altmap_pages_of(device, facts, place, reserve).view(np.uint8)])
    parts.append(compound_chunks(device, facts, place))
    for chunk in chain.from_iterable(parts):
        held = image[at : at + len(chunk)]
        if len(held) < len(chunk) or not np.array_equal(held, chunk):
            same = held == chunk[: len(held)]
            return at + (len(held) if same.all() else int(np.argmin(same)))
        at += len(chunk)
    return None if at == len(image) else at


def usage_areas(
    movable: Iterable[int], start_pfn: int, end_pfn: int, facts: Facts, old: int = 0
) -> bytes:
    """The usage areas of the sections that contain a page of [start_pfn, end_pfn), in order.

    movable: first PFNs of the pageblocks that are MIGRATE_MOVABLE; nothing else is written. old:
    the previous value of each byte of the pageblocks' bits. Only the migratetype of a written block
    changes. Source: pfn_to_bitidx(), get_pageblock_bitmap() and set_pfnblock_flags_mask(),
    mm/page_alloc.c.
    """
    per_section = facts["PAGES_PER_SECTION"]
    bits = facts["NR_PAGEBLOCK_BITS"]
    first_section = start_pfn // per_section
    size, offset = facts["sizeof.usage"], facts["usage.pageblock_flags"]
    before = int.from_bytes(bytes([old]) * (size - offset), "little")
    areas = [before] * (-(-end_pfn // per_section) - first_section)
    for pfn in movable:
        shift = pfn % per_section // facts["pageblock_nr_pages"] * bits
        at = pfn // per_section - first_section
        areas[at] &= ~(facts["MIGRATETYPE_MASK"] << shift)
        areas[at] |= facts["MIGRATE_MOVABLE"] << shift
    return b"".join(bytes(offset) + area.to_bytes(size - offset, "little") for area in areas)


def usage_bytes(device: DeviceRange, facts: Facts, old: int = 0) -> bytes:
    """The sections' usage areas, in which every whole pageblock of the range is MIGRATE_MOVABLE.

    Source: pageblock_migratetype_init_range(), mm/mm_init.c.
    """
    block = facts["pageblock_nr_pages"]
    end_pfn = device.start_pfn + device.nr_pages
    first_pfn = -(-(device.start_pfn + device.skip_pages) // block) * block
    movable = range(first_pfn, end_pfn, block)
    return usage_areas(movable, device.start_pfn, end_pfn, facts, old)
