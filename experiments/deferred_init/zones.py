# SPDX-License-Identifier: GPL-2.0-only
"""What the kernel of a standing guest has in its zones, found as the kernel itself finds it.

Symbols and the build's facts say where everything is. What is read is judged elsewhere.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ream.counted import counted
from ream.errors import ReamError, VerificationFailed
from ream.oracle.memmap import CHUNK_BYTES, Facts
from ream.stage.guest import Guest

from .buddy import (
    ULONG_MAX,
    DeferredNode,
    block_dtype,
    clipped,
    free_ranges,
    page_dtype,
)

PAGE_BYTES = 4096
WORD_BYTES = 8


def read_symbols(system_map: Path) -> dict[str, int]:
    """Addresses by name, of System.map; raises ReamError if it cannot be read."""
    try:
        lines = system_map.read_text(encoding="ascii").splitlines()
        return {name: int(address, 16) for address, _, name in (line.split() for line in lines)}
    except (OSError, ValueError) as cause:
        raise ReamError(f"{system_map}: {cause}") from cause


@dataclass(frozen=True)
class Layout:
    """Where a kernel has what: its symbols, and the facts of its own compiler."""

    symbols: Mapping[str, int]
    facts: Facts

    def symbol(self, name: str) -> int:
        if name not in self.symbols:
            raise ReamError(f"this kernel has no symbol {name}; the vm stage looks for it")
        return self.symbols[name]


@dataclass(frozen=True)
class Node:
    """A node whose last zone is yet to be initialised in part, and where that zone is."""

    deferred: DeferredNode
    zone: int
    managed_pages: int
    held: tuple[tuple[int, int, NDArray[np.uint8]], ...]
    """Deferred pages that are not free: first pfn, one past the last, and descriptors."""

    def held_at(self, first_pfn: int, nr_pages: int) -> NDArray[np.uint8]:
        """Descriptors of some of these, as they were."""
        for first, last, octets in self.held:
            if first <= first_pfn and first_pfn + nr_pages <= last:
                size = len(octets) // (last - first)
                return octets[(first_pfn - first) * size :][: nr_pages * size]
        raise ReamError(f"{nr_pages} pages from pfn {first_pfn:#x} on were not read before")


def gaps(node: DeferredNode) -> Iterator[tuple[int, int]]:
    """The parts of the deferred pages that are not free: reserved, or no memory."""
    edges = [node.first_deferred_pfn, *(pfn for part in node.free for pfn in part), node.end_pfn]
    for first, last in zip(edges[::2], edges[1::2], strict=True):
        if first < last:
            yield first, last


class Zones:
    """A guest that stands: numbers, structures and the map of its kernel, each read anew."""

    def __init__(self, guest: Guest, layout: Layout) -> None:
        self._guest = guest
        self._layout = layout
        self.facts = layout.facts

    # --- Memory ------------------------------------------------------------------------

    def octets(self, address: int, nr_bytes: int) -> NDArray[np.uint8]:
        first = address // PAGE_BYTES * PAGE_BYTES
        last = -(-(address + nr_bytes) // PAGE_BYTES) * PAGE_BYTES
        with self._guest.memory(first, last - first) as memory:
            return memory[address - first : address - first + nr_bytes]

    def number(self, address: int, nr_bytes: int = WORD_BYTES) -> int:
        return int.from_bytes(self.octets(address, nr_bytes).tobytes(), "little")

    def member(self, structure: int, name: str, nr_bytes: int = WORD_BYTES) -> int:
        """A member by the name of its fact: "zone.managed_pages"."""
        return self.number(structure + self.facts[name], nr_bytes)

    def variable(self, name: str, nr_bytes: int = WORD_BYTES) -> int:
        return self.number(self._layout.symbol(name), nr_bytes)

    def page(self, pfn: int) -> int:
        """The address of a descriptor: SPARSEMEM_VMEMMAP has them all in one array."""
        return self._vmemmap + pfn * self.facts["sizeof.page"]

    @property
    def _vmemmap(self) -> int:
        return self.variable("vmemmap_base")

    def map_of(self, first_pfn: int, last_pfn: int) -> Iterator[tuple[int, NDArray[np.uint8]]]:
        """Descriptors in order, in pieces: the first one's pfn, and their bytes."""
        size = self.facts["sizeof.page"]
        each = CHUNK_BYTES // size
        base = self.page(0)
        # One translation for all of it: 8 bytes for each page of map.
        begin = (base + first_pfn * size) // PAGE_BYTES * PAGE_BYTES
        end = -(-(base + last_pfn * size) // PAGE_BYTES) * PAGE_BYTES
        with self._guest.memory(begin, end - begin) as memory:
            for pfn in range(first_pfn, last_pfn, each):
                at = base + pfn * size - begin
                yield pfn, memory[at : at + min(each, last_pfn - pfn) * size]

    # --- Before: what is deferred --------------------------------------------------------

    def deferred_nodes(self) -> tuple[Node, ...]:
        """Every node with deferred pages, as page_alloc_init_late() finds them; ascending."""
        found = []
        for nid in range(self.variable("nr_node_ids", 4)):
            pgdat = self.number(self._layout.symbol("node_data") + nid * WORD_BYTES)
            if pgdat and (node := self._deferred_node(nid, pgdat)):
                found.append(node)
        return tuple(found)

    def _deferred_node(self, nid: int, pgdat: int) -> Node | None:
        first_deferred = self.member(pgdat, "pglist_data.first_deferred_pfn")
        if first_deferred == ULONG_MAX:
            return None
        # Only a node's last zone is ever deferred: defer_init(), mm/mm_init.c.
        number = self.member(pgdat, "pglist_data.nr_zones", 4) - 1
        zone = pgdat + self.facts["pglist_data.node_zones"] + number * self.facts["sizeof.zone"]
        start_pfn = self.member(zone, "zone.zone_start_pfn")
        end_pfn = start_pfn + self.member(zone, "zone.spanned_pages")
        deferred = DeferredNode(
            nid=nid,
            zone=number,
            start_pfn=start_pfn,
            end_pfn=end_pfn,
            first_deferred_pfn=first_deferred,
            free=self._free(nid, first_deferred, end_pfn),
        )
        deferred = replace(deferred, movable=self._movable(deferred))
        held = [
            (first, last, np.concatenate([octets for _, octets in self.map_of(first, last)]))
            for first, last in gaps(deferred)
        ]
        managed = self.member(zone, "zone.managed_pages")
        return Node(deferred, zone, managed, tuple(held))

    def _free(self, nid: int, first_pfn: int, end_pfn: int) -> tuple[tuple[int, int], ...]:
        """What memblock has left of a node's memory, in pfns, from first_pfn to end_pfn."""
        memory = [
            (base, base + size)
            for base, size, flags, its in self._regions("memblock.memory")
            # should_skip_region(), mm/memblock.c
            if its == nid
            and not flags & (self.facts["MEMBLOCK_NOMAP"] | self.facts["MEMBLOCK_DRIVER_MANAGED"])
        ]
        reserved = [(base, base + size) for base, size, _, _ in self._regions("memblock.reserved")]
        ranges = free_ranges(memory, reserved, self.facts)
        return clipped(ranges, first_pfn, end_pfn)

    def _regions(self, which: str) -> list[tuple[int, int, int, int]]:
        """Base, size, flags and node of the regions of one kind."""
        kind = self._layout.symbol("memblock") + self.facts[which]
        regions = self.member(kind, "memblock_type.regions")
        dtype = _structure(
            {"base": "<u8", "size": "<u8", "flags": "<i4", "nid": "<i4"},
            "memblock_region",
            self.facts,
        )
        nr_bytes = self.member(kind, "memblock_type.cnt") * dtype.itemsize
        return [tuple(each) for each in self.octets(regions, nr_bytes).view(dtype).tolist()]

    # --- After: what is free -------------------------------------------------------------

    def at_rest(self, node: Node) -> bool:
        """Whether no CPU is about to change the zone's lists: nobody has its lock."""
        return self.member(node.zone, "zone.lock", 4) == 0

    def free_blocks(self, node: Node) -> NDArray[Any]:
        """All free blocks of the node's zone, by pfn, found on its lists; dtype block_dtype().

        Raises VerificationFailed if a list is not whole, a block on it is no free block of its
        order, a free block is on no list, or a count is not that of what is on the lists.
        """
        zone = self.octets(node.zone, self.facts["sizeof.zone"]).tobytes()
        heads = self._heads(node)
        index = {lru: at for at, lru in enumerate(heads["lru"].tolist())}
        blocks = np.zeros(len(heads), block_dtype())
        nr_seen = 0
        for order in range(self.facts["NR_PAGE_ORDERS"]):
            area = self.facts["zone.free_area"] + order * self.facts["sizeof.free_area"]
            seen_before = nr_seen
            for migratetype in range(self.facts["MIGRATE_TYPES"]):
                place = area + self.facts["free_area.free_list"]
                place += migratetype * self.facts["sizeof.list_head"]
                walk = self._walk(node.zone + place, zone[place:], heads, index)
                for at in walk:
                    where = f"pfn {heads['pfn'][at]:#x}, on the list of order {order}"
                    if heads["order"][at] != order:
                        raise VerificationFailed(f"{where}: its order is {heads['order'][at]}")
                    blocks[nr_seen] = (heads["pfn"][at], order, migratetype)
                    nr_seen += 1
                    if nr_seen > len(heads):
                        raise VerificationFailed(f"{where}: the list has no end")
            nr_free = _word(zone, area + self.facts["free_area.nr_free"])
            if nr_free != nr_seen - seen_before:
                raise VerificationFailed(
                    f"node {node.deferred.nid}: nr_free of order {order} is {nr_free}, on its"
                    f" lists are {nr_seen - seen_before}"
                )
        if nr_seen != len(heads):
            lost = counted(len(heads) - nr_seen, "free block")
            raise VerificationFailed(f"node {node.deferred.nid}: {lost} on no list")
        blocks.sort(order="pfn")
        return blocks

    def _heads(self, node: Node) -> NDArray[Any]:
        """Every page of the zone that says it begins a free block: pfn, order, lru's address."""
        size, offset = self.facts["sizeof.page"], self.facts["page.lru"]
        base = self.page(0)
        parts = []
        for first, octets in self.map_of(node.deferred.start_pfn, node.deferred.end_pfn):
            pages = octets.view(page_dtype(self.facts))
            which = np.flatnonzero(pages["page_type"] == self.facts["PGTY_buddy"])
            part = np.zeros(len(which), _HEAD)
            part["pfn"] = which + first
            part["order"] = pages["private"][which]
            part["lru"] = base + part["pfn"] * np.uint64(size) + np.uint64(offset)
            part["next"] = pages["lru_next"][which]
            part["prev"] = pages["lru_prev"][which]
            parts.append(part)
        return np.concatenate(parts)

    def _walk(
        self, head: int, links: bytes, heads: NDArray[Any], index: Mapping[int, int]
    ) -> Iterator[int]:
        """The list at `head`, whose own links those bytes begin with: an index for each entry."""
        after = _word(links, self.facts["list_head.next"])
        before = head
        while after != head:
            if after not in index:
                raise VerificationFailed(
                    f"the free list at {head:#x} leads to {after:#x}, where no free block begins"
                )
            at = index[after]
            if heads["prev"][at] != before:
                raise VerificationFailed(
                    f"pfn {heads['pfn'][at]:#x}: its list leads back to {heads['prev'][at]:#x},"
                    f" not {before:#x}"
                )
            yield at
            before, after = after, int(heads["next"][at])
        if _word(links, self.facts["list_head.prev"]) != before:
            raise VerificationFailed(f"the free list at {head:#x} does not lead back to its end")

    def nr_free_pages(self, node: Node) -> int:
        """NR_FREE_PAGES of the zone, with what its CPUs have not added yet."""
        item = self.facts["NR_FREE_PAGES"]
        total = self.number(node.zone + self.facts["zone.vm_stat"] + item * WORD_BYTES)
        for place in self._of_each_cpu(self.member(node.zone, "zone.per_cpu_zonestats")):
            diff = self.octets(place + self.facts["per_cpu_zonestat.vm_stat_diff"] + item, 1)
            total += int(diff.view(np.int8)[0])
        return total

    def nr_freed(self) -> int:
        """Pages freed since the kernel began, of all zones: the event PGFREE of all CPUs."""
        event = self.facts["vm_event_state.event"] + self.facts["PGFREE"] * WORD_BYTES
        events = self._of_each_cpu(self._layout.symbol("vm_event_states"))
        return sum(self.number(place + event) for place in events)

    def _of_each_cpu(self, per_cpu: int) -> Iterator[int]:
        """Where each possible CPU has its own of what a per-CPU pointer stands for."""
        offsets = self._layout.symbol("__per_cpu_offset")
        for cpu in range(self.variable("nr_cpu_ids", 4)):
            yield per_cpu + self.number(offsets + cpu * WORD_BYTES) & ULONG_MAX

    def cpu_lists(self, node: Node) -> NDArray[np.uint64]:
        """Frames that CPUs have taken off the zone's lists, to hand them out; none is in use.

        Raises VerificationFailed if such a list does not come back to its head.
        """
        size, offset = self.facts["sizeof.page"], self.facts["page.lru"]
        base, most = self.page(0), node.deferred.end_pfn
        pfns: list[int] = []
        for pages in self._of_each_cpu(self.member(node.zone, "zone.per_cpu_pageset")):
            lists = pages + self.facts["per_cpu_pages.lists"]
            for number in range(self.facts["NR_PCP_LISTS"]):
                lru = head = lists + number * self.facts["sizeof.list_head"]
                nr_pages = 1 << self._order_of_list(number)
                while (lru := self.member(lru, "list_head.next")) != head:
                    first = (lru - offset - base) // size
                    pfns.extend(range(first, first + nr_pages))
                    if len(pfns) > most:
                        raise VerificationFailed(f"the list of a CPU at {head:#x} has no end")
        return np.array(pfns, np.uint64)

    def _order_of_list(self, number: int) -> int:
        """Order of all pages on a CPU's list. Source: pindex_to_order(), mm/page_alloc.c."""
        if number >= self.facts["NR_LOWORDER_PCP_LISTS"]:
            return self.facts["HPAGE_PMD_ORDER"]
        return number // self.facts["MIGRATE_PCPTYPES"]

    def pages_at(self, pfns: NDArray[np.uint64]) -> NDArray[Any]:
        """Descriptors of some frames; dtype page_dtype()."""
        dtype = page_dtype(self.facts)
        octets = [self.octets(self.page(int(pfn)), dtype.itemsize) for pfn in pfns]
        return np.concatenate([*octets, np.empty(0, np.uint8)]).view(dtype)

    def _movable(self, node: DeferredNode) -> tuple[int, ...]:
        """The pageblocks that are MIGRATE_MOVABLE; source: get_pfnblock_bit(), page_alloc.c."""
        facts, found = self.facts, []
        block, per_section = facts["pageblock_nr_pages"], facts["PAGES_PER_SECTION"]
        first_section = node.first_deferred_pfn // per_section
        for number, octets in enumerate(self.pageblock_flags(node), first_section):
            bits = int.from_bytes(octets.tobytes(), "little")
            for at in range(per_section // block if bits else 0):
                held = bits >> at * facts["NR_PAGEBLOCK_BITS"] & facts["MIGRATETYPE_MASK"]
                if held == facts["MIGRATE_MOVABLE"]:
                    found.append(number * per_section + at * block)
        return tuple(found)

    def pageblock_flags(self, node: DeferredNode) -> NDArray[np.uint8]:
        """The sections' bits from the first deferred page on; shape (sections, bytes of each)."""
        per_section = self.facts["PAGES_PER_SECTION"]
        first = node.first_deferred_pfn // per_section
        last = -(-node.end_pfn // per_section)
        usages = [self._usage(number) for number in range(first, last)]
        offset, size = self.facts["usage.pageblock_flags"], self.facts["sizeof.usage"]
        return self._gather([usage + offset for usage in usages], size - offset)

    def _usage(self, number: int) -> int:
        root, within = divmod(number, self.facts["SECTIONS_PER_ROOT"])
        sections = self.number(self.variable("mem_section") + root * WORD_BYTES)
        return self.member(
            sections + within * self.facts["sizeof.mem_section"], "mem_section.usage"
        )

    def _gather(self, addresses: Sequence[int], nr_bytes: int) -> NDArray[np.uint8]:
        """So many bytes at each address; a node's are near each other, and are read at once."""
        low, high = min(addresses), max(addresses) + nr_bytes
        if high - low > CHUNK_BYTES:
            return np.stack([self.octets(address, nr_bytes) for address in addresses])
        octets = self.octets(low, high - low)
        return np.stack([octets[at - low : at - low + nr_bytes] for at in addresses])


_HEAD = np.dtype(
    [("pfn", "<u8"), ("order", "<u8"), ("lru", "<u8"), ("next", "<u8"), ("prev", "<u8")]
)


def _word(octets: bytes, at: int) -> int:
    return int.from_bytes(octets[at : at + WORD_BYTES], "little")


def _structure(formats: Mapping[str, str], name: str, facts: Facts) -> np.dtype[Any]:
    return np.dtype(
        {
            "names": list(formats),
            "formats": list(formats.values()),
            "offsets": [facts[f"{name}.{member}"] for member in formats],
            "itemsize": facts[f"sizeof.{name}"],
        }
    )
