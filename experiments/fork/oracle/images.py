# SPDX-License-Identifier: GPL-2.0-only
"""Memory around a fork, as arrays: page table entries, descriptors, counters.

initial() lays out any mapping as it is before an operation. uniform() is the answer for the
mappings whose operations are timed, vectorised; ream.oracle.fork comes to the same, entry by
entry. Offsets, shifts and constants come from the build (`facts`), the rules from Linux.
"""

from collections import Counter
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ream.oracle.mapping import (
    DEVICE_EXCLUSIVE,
    DEVICE_PRIVATE,
    PAGE_SHIFT,
    PMD_ORDER,
    STILL_MAPPED,
    WRITTEN,
    Folio,
    Mapping,
    NonPresent,
    Place,
    Present,
    entries,
)
from ream.oracle.meaning import is_arm64, meaning_of
from ream.oracle.memmap import (
    Facts,
    descriptor_dtype,
    first_tail_dtype,
    prepare_head,
    tail_links,
)
from ream.oracle.mm_ids import FREE, PARENT, STRANGER, Owners, owners_of, write_owners
from ream.oracle.pte_arm64 import CONT, CONT_PTES

Words: TypeAlias = NDArray[np.uint64]
Counts: TypeAlias = NDArray[np.uint32]
Rss: TypeAlias = tuple[int, ...]

NO_RSS: Rss = (0, 0, 0, 0)

Moment: TypeAlias = Literal["fresh", "forked", "orphaned", "gone", "inherited", "discarded"]
"""fresh      written by their only process: writable entries, exclusive pages
forked     a child maps everything too, after a first fork or a later one
orphaned   the child is gone
gone       the parent has unmapped them after that
inherited  forked, then unmapped by the parent: the child has them
discarded  fresh, then unmapped: as gone, but PG_anon_exclusive is still there
"""

_MAPPINGS: dict[Moment, int] = {
    "fresh": 1,
    "forked": 2,
    "orphaned": 1,
    "gone": 0,
    "inherited": 1,
    "discarded": 0,
}


@dataclass(frozen=True, eq=False)
class Calls:
    """What the last operation asked of the kernel's other parts, which are stubs that count.

    deferred, dirtied, accessed, freed: calls by folio, at the index of its head's descriptor:
    deferred_split_folio(), which sets no flag; folio_mark_dirty(); folio_mark_accessed();
    the last reference dropped. swap_duplicates, swap_frees: entries. copies: source and
    destination PFN of each page copied, in order. unmapped_anon, unmapped_file: pages that
    nobody maps any more (NR_ANON_MAPPED, NR_FILE_MAPPED; fork changes neither but by copies).
    """

    deferred: Counts
    dirtied: Counts
    accessed: Counts
    freed: Counts
    swap_duplicates: int = 0
    swap_frees: int = 0
    copies: tuple[tuple[int, int], ...] = ()
    unmapped_anon: int = 0
    unmapped_file: int = 0


def no_calls(nr_descriptors: int) -> Calls:
    """Nothing was asked."""
    deferred, dirtied, accessed, freed = np.zeros((4, nr_descriptors), np.uint32)
    return Calls(deferred, dirtied, accessed, freed)


@dataclass(frozen=True, eq=False)
class State:
    """Memory before or after an operation. Nobody writes to its arrays once it is made.

    parent, child: page table entries, one for each page of the VMA; child: None before there is
    one. descriptors: shape (nr_descriptors, sizeof.page), from Place.first_pfn on. parent_rss,
    child_rss: in the order of MM_FILEPAGES and so on. taken: spare pages in use. child_number: of
    the child, or of the first that there will be; 1 is the first.
    ret: what copy_page_range() returned; unmap_page_range() returns nothing.
    """

    place: Place
    parent: Words
    child: Words | None
    descriptors: NDArray[np.uint8]
    parent_rss: Rss
    child_rss: Rss
    calls: Calls
    taken: int = 0
    ret: int = 0
    child_number: int = 1


def page_dtype(facts: Facts) -> np.dtype[Any]:
    """The fields of struct page that fork and unmap meet; include/linux/mm_types.h."""
    formats = {
        "flags": "<u8",
        "compound_head": "<u8",  # tail pages: their head's address, bit 0 set
        "mapping": "<u8",
        "index": "<u8",
        "private": "<u8",
        "_mapcount": "<i4",
        "_refcount": "<i4",
    }
    return descriptor_dtype(formats, [facts[f"page.{name}"] for name in formats], facts)


def second_tail_dtype(facts: Facts) -> np.dtype[Any]:
    """What struct folio keeps in its third page, at offsets within that page."""
    offset = facts["folio._deferred_list"] - 2 * facts["sizeof.page"]
    return descriptor_dtype({"next": "<u8", "prev": "<u8"}, [offset, offset + 8], facts)


def rss_of(counts: Counter[str], facts: Facts) -> Rss:
    """Counters of an mm in the kernel's order; counts: by name, MM_ANONPAGES and so on."""
    rss = list(NO_RSS)
    for name, nr_pages in counts.items():
        rss[facts[name]] += nr_pages
    return tuple(rss)


def page_links(facts: Facts, nid: int) -> int:
    """Node, zone and last CPU of a page's flags as the page allocator hands it out."""
    links = nid << facts["NODES_PGSHIFT"] | facts["ZONE_NORMAL"] << facts["ZONES_PGSHIFT"]
    if "LAST_CPUPID_PGSHIFT" in facts:
        links |= facts["LAST_CPUPID_MASK"] << facts["LAST_CPUPID_PGSHIFT"]
    return links


def spare(nr_pages: int, facts: Facts, place: Place) -> NDArray[np.uint8]:
    """Descriptors of allocated pages that nobody uses yet; shape (nr_pages, sizeof.page)."""
    pages = np.zeros(nr_pages, page_dtype(facts))
    pages["flags"] = page_links(facts, place.nid)
    pages["_mapcount"] = -1
    pages["_refcount"] = 1
    return pages.view(np.uint8).reshape(nr_pages, facts["sizeof.page"])


def lay_out(
    octets: NDArray[np.uint8], first_page: int, like: Folio, facts: Facts, place: Place
) -> None:
    """Make folios of allocated pages, not mapped by anybody yet.

    octets: shape (nr_folios, pages of each, sizeof.page), changed in place; in memory folios are
    as far from each other as in the array behind it. like: their order,
    kind and flags. Source: prep_compound_head(), prep_compound_tail() and page_rmappable_folio()
    in mm/internal.h, folio_add_new_anon_rmap() in mm/rmap.c.
    """
    size = facts["sizeof.page"]
    pages = octets.view(page_dtype(facts))[..., 0]
    head_flags = like.flags | ({"swapbacked"} if like.swapbacked else set())
    for name in head_flags:
        pages["flags"][:, 0] |= np.uint64(1 << facts[f"PG_{name}"])
    pages["mapping"][:, 0] = (
        place.anon_vma + facts["PAGE_MAPPING_ANON"] if like.anon else place.file
    )
    if like.order == 0:
        return
    nr_folios = len(octets)
    first = place.map + first_page * size
    heads = first + np.arange(nr_folios, dtype=np.uint64) * np.uint64(octets.strides[0])
    pages["flags"][:, 0] |= np.uint64(1 << facts["PG_head"])
    pages["compound_head"][:, 1:] = tail_links(heads, like.order, facts)[:, np.newaxis]
    pages["mapping"][:, 1:] = facts["TAIL_MAPPING"]
    pages["_refcount"][:, 1:] = 0
    second = octets[:, 1].view(first_tail_dtype(facts))[..., 0]
    prepare_head(second, like.order)
    second["_flags_1"] |= np.uint64(1 << facts["PG_large_rmappable"])
    second["_pincount"] = like.pins
    if like.order > 1:
        third = octets[:, 2].view(second_tail_dtype(facts))[..., 0]
        third["next"] = heads + np.uint64(facts["folio._deferred_list"])
        third["prev"] = third["next"]


def initial(mapping: Mapping, facts: Facts, place: Place) -> State:
    """Memory before the first fork: what the mapping says, counted as a kernel counts it."""
    octets = spare(mapping.nr_descriptors, facts, place)
    mapped, held = np.zeros((2, mapping.nr_descriptors), np.int64)
    index: dict[int, int] = {}
    rss: Counter[str] = Counter()
    for at, slot in enumerate(mapping.slots):
        if isinstance(slot, Present) or (
            isinstance(slot, NonPresent) and slot.kind in DEVICE_PRIVATE + STILL_MAPPED
        ):
            mapped[mapping.folios[slot.folio].first_page + slot.page] += 1
            index.setdefault(slot.folio, mapping.pgoff(at) - slot.page)
        elif isinstance(slot, NonPresent) and slot.kind in DEVICE_EXCLUSIVE:
            held[mapping.folios[slot.folio].first_page + slot.page] += 1
        if isinstance(slot, Present) or (isinstance(slot, NonPresent) and slot.has_page):
            rss[counter_of(mapping.folios[slot.folio])] += 1
        elif isinstance(slot, NonPresent) and slot.swapped:
            rss["MM_SWAPENTS"] += 1
    for number, folio in enumerate(mapping.folios):
        part = slice(folio.first_page, folio.first_page + folio.nr_pages)
        lay_out(octets[np.newaxis, part], folio.first_page, folio, facts, place)
        head_index = index.get(number, 0) if folio.index is None else folio.index
        mapcounts = mapped[part] + folio.mapped_elsewhere
        _count(octets[part], folio, head_index, mapcounts, facts)
        octets[part].view(page_dtype(facts))["_refcount"][0] += held[part].sum()
    return State(
        place=place,
        parent=np.array(list(entries(mapping, facts, place)), np.uint64),
        child=None,
        descriptors=octets,
        parent_rss=rss_of(rss, facts),
        child_rss=NO_RSS,
        calls=no_calls(mapping.nr_descriptors),
    )


def counter_of(folio: Folio) -> str:
    """Which counter of an mm its pages are in; source: mm_counter(), include/linux/mm.h."""
    if folio.anon:
        return "MM_ANONPAGES"
    return "MM_SHMEMPAGES" if folio.swapbacked else "MM_FILEPAGES"


def _count(
    octets: NDArray[np.uint8], folio: Folio, index: int, mapcounts: NDArray[np.int64], facts: Facts
) -> None:
    """Set mapcounts, references, exclusive bits and owners of one folio, in place.

    mapcounts: entries that map each page. All mapcounts are stored less 1. A pin of a small
    folio counts as many references. Source: try_grab_folio(), mm/gup.c.
    """
    pages = octets.view(page_dtype(facts))[..., 0]
    pages["_mapcount"] = mapcounts - 1
    pages["index"][0] = index
    for page in folio.exclusive:
        pages["flags"][page] |= np.uint64(1 << facts["PG_anon_exclusive"])
    refs_of_pin = 1 if folio.order else facts["GUP_PIN_COUNTING_BIAS"]
    references = folio.extra_refs + folio.pins * refs_of_pin
    pages["_refcount"][0] = references + mapcounts.sum() + folio.pmds_elsewhere
    if folio.order:
        second = octets[1:2].view(first_tail_dtype(facts))[..., 0]
        second["_large_mapcount"] = mapcounts.sum() + folio.pmds_elsewhere - 1
        second["_entire_mapcount"] = folio.pmds_elsewhere - 1
        second["_nr_pages_mapped"] = np.count_nonzero(mapcounts)
        if folio.pmds_elsewhere:
            second["_nr_pages_mapped"] += facts["ENTIRELY_MAPPED"]
        elsewhere = [folio.nr_pages] * folio.mapped_elsewhere + [1] * folio.pmds_elsewhere
        mine = int(mapcounts.sum()) - folio.mapped_elsewhere * folio.nr_pages
        owners = owners_of([(PARENT, mine), *enumerate(elsewhere, STRANGER)])
        write_owners(second, owners, facts)


def second_pages(mapping: Mapping) -> Counts:
    """Descriptors, counted from Place.first_pfn, of the second page of each large folio.

    Their _large_mapcount is compared apart: a kernel that counts the mappings of a large folio
    page by page leaves it as it was.
    """
    seconds = [folio.first_page + 1 for folio in mapping.folios if folio.order]
    return np.array(seconds, np.uint32)


def uniform_second_pages(order: int, nr_pages: int) -> Counts:
    """The same for the folios of uniform()."""
    if order == 0:
        return np.zeros(0, np.uint32)
    return np.arange(1, nr_pages, 1 << order, dtype=np.uint32)


UNIFORM_ADDRESS = 1 << 40
"""Aligned to a PMD, so that no folio lies across two page tables."""


def uniform_order_of_folios(
    order: int, nr_pages: int, shuffled_seed: int | None
) -> NDArray[np.int64]:
    """Which folio, by rising PFN, is at which place of the mapping, by rising address.

    Raises ValueError unless nr_pages is a whole number of folios of an order from 0 to 9.
    """
    if not 0 <= order <= PMD_ORDER or nr_pages <= 0 or nr_pages % (1 << order):
        raise ValueError(f"{nr_pages} pages are not folios of order {order} (0 to 9)")
    nr_folios = nr_pages >> order
    if shuffled_seed is None:
        return np.arange(nr_folios, dtype=np.int64)
    return np.random.default_rng(shuffled_seed).permutation(nr_folios)


def uniform_mapping(order: int, nr_pages: int, *, shuffled_seed: int | None = None) -> Mapping:
    """The mapping whose memory uniform() predicts; made slot by slot, so for small ones.

    Raises ValueError as uniform() does.
    """
    at = uniform_order_of_folios(order, nr_pages, shuffled_seed)
    pages = range(1 << order)
    return Mapping(
        slots=tuple(Present(int(folio), page, WRITTEN) for folio in at for page in pages),
        folios=tuple(
            Folio(order, number << order, exclusive=frozenset(pages)) for number in range(len(at))
        ),
        address=UNIFORM_ADDRESS,
    )


def uniform(
    order: int,
    nr_pages: int,
    facts: Facts,
    place: Place,
    *,
    shuffled_seed: int | None = None,
    state: Moment,
    batched: bool = True,
    folded: bool = False,
) -> State:
    """Anonymous memory of one order of folios at UNIFORM_ADDRESS, at one moment of its life.

    shuffled_seed: for folios in another order in the mapping than in memory. batched: whether
    the kernel unmaps a folio at once; if not, each of its pages but the last leaves it partially
    mapped. folded: whether the parent's entries are blocks, where an architecture has them.
    Raises ValueError unless nr_pages is a whole number of folios of an order to 9.
    """
    at = uniform_order_of_folios(order, nr_pages, shuffled_seed)
    nr_folios, nr_each = nr_pages >> order, 1 << order
    octets = spare(nr_pages, facts, place)
    folios = octets.reshape(nr_folios, nr_each, -1)
    lay_out(folios, 0, Folio(order, 0), facts, place)
    nr_mappings = _MAPPINGS[state]
    pages = folios.view(page_dtype(facts))[..., 0]
    pages["_mapcount"] = nr_mappings - 1
    pages["_refcount"][:, 0] = nr_mappings * nr_each
    pages["index"][at, 0] = (UNIFORM_ADDRESS >> PAGE_SHIFT) + np.arange(0, nr_pages, nr_each)
    if state in {"fresh", "discarded"}:
        pages["flags"] |= np.uint64(1 << facts["PG_anon_exclusive"])
    if order:
        second = folios[:, 1].view(first_tail_dtype(facts))[..., 0]
        second["_large_mapcount"] = nr_mappings * nr_each - 1
        second["_nr_pages_mapped"] = nr_each if nr_mappings else 0
        write_owners(second, _uniform_owners(state, nr_each), facts)
    parent, child = _uniform_entries(at, nr_each, facts, place, state, folded=folded)
    all_anon = rss_of(Counter(MM_ANONPAGES=nr_pages), facts)
    return State(
        place=place,
        parent=parent,
        child=child,
        descriptors=octets,
        parent_rss=all_anon if parent.any() else NO_RSS,
        child_rss=all_anon if child is not None and child.any() else NO_RSS,
        calls=_uniform_calls(nr_pages, nr_each, state, batched=batched),
    )


def _uniform_owners(state: Moment, nr_each: int) -> Owners:
    both = owners_of([(PARENT, nr_each), (PARENT + 1, nr_each)])
    return {
        "fresh": Owners(both.first, FREE, shared=False),
        "forked": both,
        "orphaned": Owners(both.first, FREE, shared=False),
        "inherited": Owners(FREE, both.second, shared=False),
    }.get(state, owners_of([]))


def _uniform_entries(
    at: NDArray[np.int64],
    nr_each: int,
    facts: Facts,
    place: Place,
    state: Moment,
    *,
    folded: bool,
) -> tuple[Words, Words | None]:
    """The parent's entries and the child's, from which fork took RW and, the child's, ACCESSED.

    Folios are aligned in memory and here: where the parent has blocks, all of them are, and those
    of a child are in any case, whether it got them at once or one by one.
    """
    of_arch = meaning_of(facts)
    written = of_arch.of_bits(WRITTEN)
    block = CONT if is_arm64(facts) and nr_each >= CONT_PTES else 0
    own = block if folded else 0
    page = (at[:, np.newaxis] * nr_each + np.arange(nr_each)).reshape(-1)
    frames = (page.astype(np.uint64) + np.uint64(place.first_pfn)) << np.uint64(PAGE_SHIFT)
    none = np.zeros_like(frames)
    before = frames | np.uint64(written | own)
    after = frames | np.uint64(of_arch.wrprotect(written) | own)
    of_child = frames | np.uint64(of_arch.mkold(of_arch.wrprotect(written)) | block)
    images: dict[Moment, tuple[Words, Words | None]] = {
        "fresh": (before, None),
        "forked": (after, of_child),
        "orphaned": (after, none),
        "gone": (none, none),
        "inherited": (none, of_child),
        "discarded": (none, None),
    }
    return images[state]


def _uniform_calls(nr_pages: int, nr_each: int, state: Moment, *, batched: bool) -> Calls:
    """Calls of the kernel by page: only a step that unmaps the last mapping frees anything."""
    calls = no_calls(nr_pages)
    if _MAPPINGS[state]:
        return calls
    calls.freed[::nr_each] = 1
    if not batched:
        calls.deferred[::nr_each] = nr_each - 1
    return Calls(calls.deferred, calls.dirtied, calls.accessed, calls.freed, unmapped_anon=nr_pages)
