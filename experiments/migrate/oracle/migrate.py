# SPDX-License-Identifier: GPL-2.0-only
"""What memory must hold after migrate_pages(), and what calls must have said and counted.

Rules of Linux 6.12; each names its place in that tree. Who copies the contents, one by one or
many at once, shows in none of this, so nothing here knows of it. What does show is how entries
are removed: `batched` is a kernel that removes all of a folio's in an address space at once.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from experiments.fork.oracle.images import Counts, Words
from ream.oracle import pte
from ream.oracle.mapping import PAGES_PER_PMD
from ream.oracle.memmap import Facts

from .call import Call
from .folios import PMD_ORDER, Migration, Place, Unit
from .images import (
    SIDES,
    Memory,
    State,
    broken,
    laid_out,
    restored,
    restored_huge,
    tables,
)

ANYTHING = -1
"""Instead of a page whose contents a frame holds: nobody looks at them again."""

AtLeastAtMost: TypeAlias = tuple[int, int]


@dataclass(frozen=True, eq=False)
class After:
    """All that must come of one call, or of several in a row.

    ret: what it returned, or all of them in sum. nr_succeeded: base pages. left: heads on the
    caller's list, in order. events: vm_event counters. nr_allocated: calls of get_new_folio(),
    failed ones too. nr_put: of put_new_folio(). nr_freed: folios whose last reference went.
    nr_added: calls of folio_add_lru(). nr_drained: of lru_add_drain(). nr_poison_reports: calls
    of memory_failure_queue(): once for each try to copy a page that cannot be read.
    contents: of each source frame, then of each target frame, the source page whose bytes it
    holds, or ANYTHING. node_stats: changes of the source's and of the target's node; if they are
    one, both are in the first. batch_flushes: of other CPUs' TLBs for many entries
    (arch_tlbbatch_flush), where another CPU runs the address space. single_flushes: those at once.
    noted: address spaces that must know of the former (mm->tlb_flush_batched). nr_anon: by order,
    changes of the number of large anonymous folios, without what freeing one takes off.
    src_queued, dst_queued: heads on the queues of deferred splits. rss: MM_ANONPAGES of each
    address space, before; rss_after. split: heads of folios that were split; `left` has those of
    their pages that are left.
    """

    state: State
    ret: int
    nr_succeeded: int
    left: tuple[int, ...]
    events: Mapping[str, int]
    nr_allocated: int
    nr_put: int
    nr_freed: int
    nr_added: int
    nr_drained: int
    nr_poison_reports: int
    contents: NDArray[np.int64]
    node_stats: Mapping[str, tuple[int, int]]
    batch_flushes: AtLeastAtMost
    single_flushes: AtLeastAtMost
    src_queued: tuple[int, ...]
    dst_queued: tuple[int, ...]
    rss: tuple[int, ...]
    rss_after: tuple[int, ...]
    noted: frozenset[int]
    nr_anon: tuple[int, ...]
    split: tuple[int, ...] = ()


def migrate(migration: Migration, facts: Facts, place: Place, *, batched: bool = False) -> After:
    """After migrate_pages(), called once for each of the lists.

    batched: whether the kernel removes a folio's entries in an address space all at once; if not,
    the first one removed queues a large folio for a deferred split, and its target after it.
    """
    call = Call(migration, shared_queue=place.src_queue == place.dst_queue, batched=batched)
    ret, left = call.run()
    moved = [call.units[number] for number in call.moved]
    freed = [call.units[number] for number in call.freed]
    lost = [unit for number in call.unmapped_once if (unit := call.units[number]).folio.is_broken]
    spaces = range(migration.nr_mappings)
    rss = tuple(sum(folio.nr_pages_in(space) for folio in migration.folios) for space in spaces)
    heads = [call.units[number].first_page for number in left]
    return After(
        state=_state(migration, call, heads, facts, place),
        ret=ret,
        nr_succeeded=call.stats["nr_succeeded"],
        left=tuple(heads),
        events=call.events(),
        nr_allocated=call.nr_allocated,
        nr_put=call.nr_put,
        nr_freed=len(freed) + len(moved) if migration.reason != "MEMORY_FAILURE" else 0,
        nr_added=len(moved),
        nr_drained=sum("mlocked" in unit.folio.flags for unit in moved),
        nr_poison_reports=call.nr_poison_reports,
        contents=_contents(migration.nr_pages, moved),
        node_stats=_node_stats(migration.reason, moved, freed, lost, place),
        batch_flushes=(call.least_batch_flushes, call.nr_batch_flushes),
        single_flushes=(call.least_single_flushes, call.most_single_flushes),
        src_queued=call.queued("src"),
        dst_queued=call.queued("dst"),
        rss=rss,
        rss_after=tuple(
            rss[space] - sum(unit.folio.nr_pages_in(space) for unit in lost) for space in spaces
        ),
        noted=frozenset(call.noted),
        nr_anon=_nr_anon(moved, [call.units[number] for number in call.split]),
        split=tuple(call.units[number].first_page for number in call.split),
    )


def deferrable(migration: Migration) -> Counts:
    """Heads, by page, of which a kernel that is not `batched` queues the source, or the target.

    Their PG_partially_mapped and _deferred_list, in the second and the third page, are to be
    compared apart where a kernel is between the two.
    """
    found = [
        migration.first_page(number)
        for number, folio in enumerate(migration.folios)
        if folio.may_queue and not migration.splits(folio)
    ]
    return np.array(found, np.uint32)


def _nr_anon(moved: Iterable[Unit], split: Iterable[Unit]) -> tuple[int, ...]:
    """Source: __folio_migrate_mapping(), split_huge_page_to_list_to_order(); MTHP_STAT_NR_ANON."""
    nr = Counter(unit.folio.order for unit in moved)
    nr.subtract(unit.folio.order for unit in split)
    return tuple(nr[order] if order else 0 for order in range(PMD_ORDER + 1))


def _contents(nr_pages: int, moved: Iterable[Unit]) -> NDArray[np.int64]:
    """Which page's bytes each frame holds; sources keep theirs."""
    held = np.full(2 * nr_pages, ANYTHING, np.int64)
    held[:nr_pages] = np.arange(nr_pages)
    for unit in moved:
        end = unit.first_page + unit.folio.nr_pages
        held[nr_pages + unit.first_page : nr_pages + end] = held[unit.first_page : end]
    return held


def node_stats_of(
    reason: str, pages: Mapping[str, int], place: Place
) -> dict[str, tuple[int, int]]:
    """Changes of the two nodes' counters.

    pages: by name, isolated-anon and isolated-file that are so no longer, mapped and huge that
    are mapped on the other node, lost that are mapped no more. Source: migrate_folio_done(),
    mm/migrate.c, and __folio_mod_stat(), mm/rmap.c; what reclaim demotes is counted by reclaim.
    """
    counted = reason != "DEMOTION"
    changes = {
        "NR_ISOLATED_ANON": (-pages.get("isolated-anon", 0) * counted, 0),
        "NR_ISOLATED_FILE": (-pages.get("isolated-file", 0) * counted, 0),
        "NR_ANON_MAPPED": (
            -pages.get("mapped", 0) - pages.get("lost", 0),
            pages.get("mapped", 0),
        ),
        "NR_ANON_THPS": (-pages.get("huge", 0), pages.get("huge", 0)),
    }
    if place.src_nid != place.dst_nid:
        return changes
    return {name: (sum(change), 0) for name, change in changes.items()}


def _node_stats(
    reason: str,
    moved: Sequence[Unit],
    freed: Sequence[Unit],
    lost: Sequence[Unit],
    place: Place,
) -> dict[str, tuple[int, int]]:
    pages: Counter[str] = Counter()
    for unit in (*moved, *freed):
        folio = unit.folio
        pages["isolated-anon" if folio.swapbacked else "isolated-file"] += folio.nr_pages
        pages["mapped"] += folio.nr_mapped_pages * (not folio.is_broken)
        pages["huge"] += folio.nr_pages * (folio.nr_huge > 0)
    pages["lost"] = sum(unit.folio.nr_mapped_pages for unit in lost)
    return node_stats_of(reason, pages, place)


def _state(migration: Migration, call: Call, left: list[int], facts: Facts, place: Place) -> State:
    memory = laid_out(migration, facts, place)
    spaces = tables(migration, facts, place)
    for number in call.split:
        memory.split(call.units[number])
        _map_again(call.units[number], place.src_pfn, spaces, facts)
    for number in call.moved:
        unit = call.units[number]
        memory.move(unit.first_page, unit.folio, migration.reason)
        memory.index("dst", unit)
        if unit.folio.underused:
            memory.unqueue(unit.first_page)
        _map_again(unit, place.dst_pfn, spaces, facts)
    for number in call.freed:
        unit = call.units[number]
        memory.leave(unit.first_page, unit.folio, migration.reason)
    for number in call.unmapped_once.difference(call.moved):
        _put_back(call.units[number], memory)
        _map_again(call.units[number], place.src_pfn, spaces, facts)
    memory.list_sources(left)
    for side in SIDES:
        memory.queue(side, call.queues[side])
    return State(memory.octets["src"], memory.octets["dst"], *spaces)


def _put_back(unit: Unit, memory: Memory) -> None:
    """The source is as it was, and its target, which was on a list, nobody's again.

    Source: migrate_folio_undo_src(), migrate_folio_undo_dst(), mm/migrate.c.
    """
    memory.put_back(unit.first_page, unit.folio)
    memory.unlink("dst", unit.first_page, unit.folio.order)


def _map_again(
    unit: Unit, base_pfn: int, spaces: tuple[tuple[Words, ...], tuple[Words, ...]], facts: Facts
) -> None:
    """Entries of a folio that was unmapped, moved or not; in place.

    base_pfn: of the side that is mapped now. Source: remove_migration_ptes(), mm/migrate.c.
    """
    folio = unit.folio
    is_dirty = folio.has_dirty_entry or "dirty" in folio.flags
    for space, (entries, pmds) in enumerate(zip(*spaces, strict=True)):
        is_huge = folio.is_huge_in(space)
        restore = restored_huge if is_huge else restored
        for page in range(len(folio.bits_in(space))):
            slot = unit.first_slot + page
            table, at = (pmds, slot // PAGES_PER_PMD) if is_huge else (entries, slot)
            pfn = base_pfn + unit.first_page + page
            if table[at] and folio.is_broken:
                table[at] = broken(pte.X86_64.decode(int(table[at])), facts)
            elif table[at]:
                table[at] = restore(int(table[at]), pfn, facts, folio_is_dirty=is_dirty)
