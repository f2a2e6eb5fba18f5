# SPDX-License-Identifier: GPL-2.0-only
"""What holds of every prediction of the oracle of migration, and how two of them are compared."""

from collections.abc import Iterable
from dataclasses import fields

import numpy as np
from numpy.typing import NDArray

from experiments.migrate.oracle.folios import PSE, Folio, Migration, Unit
from experiments.migrate.oracle.images import State, before
from experiments.migrate.oracle.migrate import ANYTHING, After, deferrable
from experiments.migrate.tests.world import FACTS, PLACE, chain, pages, tails
from ream.oracle import pte
from ream.oracle.mapping import PAGES_PER_PMD


def same(one: State, other: State) -> bool:
    return (
        np.array_equal(one.src, other.src)
        and np.array_equal(one.dst, other.dst)
        and all(map(np.array_equal, one.entries, other.entries))
        and all(map(np.array_equal, one.pmds, other.pmds))
    )


def differing(one: After, other: After) -> set[str]:
    """What of two answers is not the same."""
    plain = {field.name for field in fields(After)} - {"state", "contents"}
    found = {name for name in plain if getattr(one, name) != getattr(other, name)}
    found |= {"state"} if not same(one.state, other.state) else set()
    return found | ({"contents"} if not np.array_equal(one.contents, other.contents) else set())


def present(entries: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Which entries map something; what is bad memory now is mapped by none."""
    return (entries & np.uint64(pte.PRESENT)) != 0


def mapped_frames(state: State) -> Iterable[tuple[int, int, int]]:
    """Address space, page of the VMA and PFN of all that is mapped, huge pages page by page."""
    for space, (entries, pmds) in enumerate(zip(state.entries, state.pmds, strict=True)):
        for slot in np.flatnonzero(present(entries)).tolist():
            yield space, slot, pte.X86_64.decode(int(entries[slot]))
        for pmd in np.flatnonzero(pmds).tolist():
            first = pte.X86_64.decode(int(pmds[pmd]) & ~PSE)
            for page in range(PAGES_PER_PMD):
                yield space, pmd * PAGES_PER_PMD + page, first + page


def held(migration: Migration, frames: NDArray[np.int64], pfn: int) -> int:
    """What page's bytes a frame holds."""
    page = pfn - PLACE.src_pfn
    if not 0 <= page < migration.nr_pages:
        page = migration.nr_pages + pfn - PLACE.dst_pfn
    return int(frames[page])


def units_after(migration: Migration, answer: After) -> Iterable[Unit]:
    """Folios as they are afterwards: the pages of those that were split."""
    for unit in migration.units:
        yield from unit.pieces() if unit.first_page in answer.split else (unit,)


def check_laws(migration: Migration, answer: After) -> None:
    """What holds whatever was migrated."""
    was, state = before(migration, FACTS, PLACE), answer.state
    nr = migration.nr_pages
    folios = {unit.first_page: unit.folio for unit in units_after(migration, answer)}
    # No page is lost: every address that was mapped is, and reads what it read.
    reads = {(space, slot): pfn - PLACE.src_pfn for space, slot, pfn in mapped_frames(was)}
    now = {
        (space, slot): held(migration, answer.contents, pfn)
        for space, slot, pfn in mapped_frames(state)
    }
    lost = {
        (space, unit.first_slot)
        for unit in migration.units
        for space in range(unit.folio.nr_mappings)
        if unit.folio.is_broken
    }
    assert now == {at: page for at, page in reads.items() if at not in lost}
    # Sources keep their bytes, and no two targets hold the same.
    assert np.array_equal(answer.contents[:nr], np.arange(nr))
    moved = answer.contents[nr:][answer.contents[nr:] != ANYTHING]
    assert len(set(moved.tolist())) == len(moved)
    # Every folio is moved, freed or left, and the counters say how many pages are.
    counted = answer.events["PGMIGRATE_SUCCESS"]
    assert counted == sum(f.nr_pages for page, f in folios.items() if page not in answer.left)
    assert answer.nr_succeeded == counted
    assert len(set(answer.left)) == len(answer.left)
    assert (answer.ret == 0) == (not answer.left)
    if answer.ret >= 0:
        if answer.left:
            assert answer.ret == len(answer.left) + len(answer.split)
        assert answer.events["PGMIGRATE_FAIL"] == sum(folios[page].nr_pages for page in answer.left)
    check_references(migration, answer, folios)
    # Lists are whole, and hold what they should.
    both = {"src": state.src, "dst": state.dst}
    assert chain({"src": state.src}, PLACE.list, 8) == [("src", page) for page in answer.left]
    queued = chain(both, PLACE.src_queue, 16)
    assert queued == [("src", page + 2) for page in answer.src_queued]
    queued = chain(both, PLACE.dst_queue, 16)
    assert queued == [("dst", page + 2) for page in answer.dst_queued]
    waited = {*migration.waiting}
    may_be_queued = waited | set(deferrable(migration).tolist())
    assert set(answer.src_queued) | set(answer.dst_queued) <= may_be_queued
    # Every target is accounted for: used by a folio, or given back.
    nr_refused = (answer.ret < 0) + len({*migration.no_large_target} & {*answer.split})
    assert answer.nr_allocated - answer.nr_put - nr_refused == answer.nr_added


def check_references(migration: Migration, answer: After, folios: dict[int, Folio]) -> None:
    """Each entry is a reference and a mapping, and nothing else is but what was there."""
    state = answer.state
    nr_mapped = np.zeros(2 * migration.nr_pages, np.int64)
    nr_entries = np.zeros(2 * migration.nr_pages, np.int64)
    heads = np.zeros(2 * migration.nr_pages, np.int64)
    for page, folio in folios.items():
        for side in (0, migration.nr_pages):
            heads[side + page : side + page + folio.nr_pages] = side + page
    for entries, pmds in zip(state.entries, state.pmds, strict=True):
        small = [(word, 1) for word in entries[present(entries)].tolist()]
        huge = [(word & ~PSE, 0) for word in pmds[pmds != 0].tolist()]
        for word, nr_ptes in small + huge:
            pfn = pte.X86_64.decode(word)
            page = pfn - PLACE.src_pfn
            if page >= migration.nr_pages:
                page = migration.nr_pages + pfn - PLACE.dst_pfn
            nr_mapped[page] += nr_ptes
            nr_entries[heads[page]] += 1
    octets = np.concatenate((state.src, state.dst))
    fields, seconds = pages(octets), tails(octets)
    assert np.array_equal(fields["_mapcount"], nr_mapped - 1)
    for page, folio in folios.items():
        is_moved = answer.contents[migration.nr_pages + page] != ANYTHING
        src, dst = page, migration.nr_pages + page
        expected_src = nr_entries[src] + folio.nr_held
        if page not in answer.left:
            expected_src = int(migration.reason == "MEMORY_FAILURE")
        assert fields["_refcount"][src] == expected_src
        assert fields["_refcount"][dst] == nr_entries[dst] + 1
        assert bool(nr_entries[dst]) == (is_moved and not folio.is_broken)
        if folio.order:
            # Targets of what should have been split, but was not reached, are small ones.
            for at in (src,) if migration.splits(folio) else (src, dst):
                assert seconds["_large_mapcount"][at + 1] == nr_entries[at] - 1
