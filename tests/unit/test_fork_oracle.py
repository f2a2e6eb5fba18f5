# SPDX-License-Identifier: GPL-2.0-only
"""The oracle of fork and unmap: what it predicts, by hand, by invariants and against itself."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from ream.oracle import pte
from ream.oracle.fork import fork, zap
from ream.oracle.fork_cases import (
    CLEAN,
    NUMA_HINT,
    READ_ONLY,
    cached,
    correctness_mappings,
    placed,
    run,
)
from ream.oracle.fork_images import (
    Moment,
    State,
    initial,
    page_dtype,
    uniform,
    uniform_mapping,
)
from ream.oracle.fork_memory import Memory, batch_length
from ream.oracle.fork_mixture import random_mapping
from ream.oracle.mapping import (
    DEVICE_EXCLUSIVE,
    DEVICE_PRIVATE,
    PRIVATE,
    SHARED,
    WRITTEN,
    NonPresent,
    Place,
    Special,
    is_one_of,
    swap_offset,
    swap_type,
)
from ream.oracle.mapping import Mapping as Vma
from ream.oracle.memmap import first_tail_dtype

MADE_UP = """
sizeof.page=64 page.flags=0 page.compound_head=8 page.mapping=24 page.index=32
page.private=40 page._mapcount=48 page._refcount=52 folio._flags_1=64
folio._large_mapcount=80 folio._entire_mapcount=84 folio._nr_pages_mapped=88
folio._pincount=92 folio._folio_nr_pages=96 folio._deferred_list=144 PG_locked=0
PG_referenced=2 PG_uptodate=3 PG_lru=5 PG_head=6 PG_large_rmappable=9 PG_anon_exclusive=11
PG_swapbacked=17 NODES_PGSHIFT=58 ZONES_PGSHIFT=56 ZONE_NORMAL=1
TAIL_MAPPING=0xDEAD000000000400 PAGE_MAPPING_ANON=1 ENTIRELY_MAPPED=0x800000
SWP_DEVICE_WRITE=27 SWP_DEVICE_READ=28 SWP_DEVICE_EXCLUSIVE_WRITE=29 SWP_DEVICE_EXCLUSIVE_READ=30
GUP_PIN_COUNTING_BIAS=1024 MM_FILEPAGES=0 MM_ANONPAGES=1 MM_SWAPENTS=2 MM_SHMEMPAGES=3
MAX_SWAPFILES=23 SWP_HWPOISON=23 SWP_MIGRATION_READ=24 SWP_MIGRATION_READ_EXCLUSIVE=25
SWP_MIGRATION_WRITE=26 SWP_PTE_MARKER=31 PTE_MARKER_UFFD_WP=1 PTE_MARKER_POISONED=2
MEM_SOFT_DIRTY=1 HAVE_ARCH_USERFAULTFD_WP=1 MARKS_UFFD_WP=1
"""
FACTS = {name: int(value, 0) for name, value in (word.split("=") for word in MADE_UP.split())}
BARE = {**FACTS, "MEM_SOFT_DIRTY": 0, "HAVE_ARCH_USERFAULTFD_WP": 0, "MARKS_UFFD_WP": 0}
PLACE = Place(
    map=0xFFFFEA0004000000, first_pfn=0x100000, anon_vma=0xFFFF888000001000, file=0xFFFF888000002000
)
CASES = correctness_mappings()
SEEDS = st.integers(0, 1 << 32)

ORDERS = range(10)
MOMENTS: tuple[Moment, ...] = ("fresh", "forked", "orphaned", "gone", "inherited", "discarded")


def fresh(vma: Vma) -> State:
    return initial(vma, FACTS, PLACE)


def forked(vma: Vma) -> State:
    return fork(vma, fresh(vma), FACTS)


def pages(state: State) -> NDArray[Any]:
    return state.descriptors.reshape(-1).view(page_dtype(FACTS))


def tails(state: State) -> NDArray[Any]:
    return state.descriptors.reshape(-1).view(first_tail_dtype(FACTS))


def exclusive(state: State) -> NDArray[np.bool_]:
    return (pages(state)["flags"] >> np.uint64(FACTS["PG_anon_exclusive"]) & np.uint64(1)) == 1


def child_of(state: State) -> list[int]:
    assert state.child is not None
    held: list[int] = state.child.tolist()
    return held


def differing(one: State, other: State) -> set[str]:
    """What of two states is not the same."""
    names = {"parent_rss", "child_rss", "taken", "ret"}
    calls = {"swap_duplicates", "swap_frees", "copies", "unmapped_anon", "unmapped_file"}
    found = {name for name in names if getattr(one, name) != getattr(other, name)}
    found |= {name for name in calls if getattr(one.calls, name) != getattr(other.calls, name)}
    for name in ("parent", "child", "descriptors"):
        if not np.array_equal(getattr(one, name), getattr(other, name)):
            found.add(name)
    for name in ("deferred", "dirtied", "accessed", "freed"):
        if not np.array_equal(getattr(one.calls, name), getattr(other.calls, name)):
            found.add(name)
    return found


def story(vma: Vma, facts: Mapping[str, int] = FACTS) -> list[State]:
    """Two forks, and everybody unmaps, the second child's entries without a word about files."""
    states = [initial(vma, facts, PLACE)]
    states.append(fork(vma, states[-1], facts))
    states.append(zap(vma, states[-1], "child", facts))
    states.append(fork(vma, states[-1], facts))
    states.append(zap(vma, states[-1], "child", facts, drop_markers=False))
    states.append(zap(vma, states[-1], "parent", facts))
    return states


# --- Uniform mappings: the vectorised answer and the model's -------------------------------


@pytest.mark.parametrize("shuffled_seed", [None, 7])
@pytest.mark.parametrize("order", ORDERS)
def test_the_vectorised_answer_is_the_model_s(order: int, shuffled_seed: int | None) -> None:
    vma = uniform_mapping(order, 1024, shuffled_seed=shuffled_seed)
    states = {"fresh": fresh(vma)}
    states["forked"] = fork(vma, states["fresh"], FACTS)
    states["orphaned"] = zap(vma, states["forked"], "child", FACTS)
    states["gone"] = zap(vma, states["orphaned"], "parent", FACTS)
    states["inherited"] = zap(vma, states["forked"], "parent", FACTS)
    states["discarded"] = zap(vma, states["fresh"], "parent", FACTS)
    for moment in MOMENTS:
        predicted = uniform(order, 1024, FACTS, PLACE, shuffled_seed=shuffled_seed, state=moment)
        assert differing(predicted, states[moment]) == set(), moment


@pytest.mark.parametrize("order", ORDERS)
def test_a_later_fork_ends_where_the_first_one_did(order: int) -> None:
    vma = uniform_mapping(order, 512)
    orphaned = uniform(order, 512, FACTS, PLACE, state="orphaned")
    again = fork(vma, orphaned, FACTS)
    assert differing(again, uniform(order, 512, FACTS, PLACE, state="forked")) == set()


@pytest.mark.parametrize("order", ORDERS)
def test_page_by_page_every_page_but_the_last_defers_a_split(order: int) -> None:
    vma = uniform_mapping(order, 512)
    orphaned = uniform(order, 512, FACTS, PLACE, state="orphaned")
    gone = zap(vma, orphaned, "parent", FACTS, batched=False)
    predicted = uniform(order, 512, FACTS, PLACE, state="gone", batched=False)
    assert differing(gone, predicted) == set()
    assert predicted.calls.deferred.sum() == 512 - (512 >> order)


def test_folios_that_are_not_shuffled_rise_with_the_address() -> None:
    state = uniform(4, 64, FACTS, PLACE, state="fresh")
    frames = [pte.X86_64.decode(entry) for entry in state.parent.tolist()]
    assert frames == list(range(PLACE.first_pfn, PLACE.first_pfn + 64))


def test_shuffled_folios_stay_whole_and_depend_on_their_seed_only() -> None:
    one, same, other = (
        uniform(2, 4096, FACTS, PLACE, shuffled_seed=seed, state="fresh").parent
        for seed in (1, 1, 2)
    )
    assert np.array_equal(one, same)
    assert not np.array_equal(one, other)
    frames = (one >> np.uint64(12) & np.uint64((1 << 40) - 1)).reshape(-1, 4)
    assert (frames[:, 1:] - frames[:, :-1] == 1).all()
    assert (frames[:, 0] % np.uint64(4) == 0).all()


# --- By hand --------------------------------------------------------------------------------


def test_a_batch_of_512_counts_once_per_page_and_once_per_folio() -> None:
    vma = uniform_mapping(9, 512)
    after = forked(vma)
    assert pages(after)["_refcount"][0] == 1024
    assert (pages(after)["_mapcount"] == 1).all()
    assert tails(after)["_large_mapcount"][1] == 1023
    assert tails(after)["_nr_pages_mapped"][1] == 512
    assert not exclusive(after).any()
    assert after.child_rss == after.parent_rss == (0, 512, 0, 0)
    assert after.parent.tolist()[1] == pte.X86_64.encode(PLACE.first_pfn + 1, READ_ONLY)
    assert child_of(after)[1] == pte.X86_64.encode(PLACE.first_pfn + 1, pte.mkold(READ_ONLY))


def lengths(vma: Vma, *, keep_dirty: bool, keep_soft_dirty: bool = False) -> list[int]:
    """Of the batches of one folio that is mapped from the first slot on."""
    held: list[int] = fresh(vma).parent.tolist()
    found, at = [], 0
    while at < len(held):
        nr = batch_length(
            held, at, len(held) - at, keep_dirty=keep_dirty, keep_soft_dirty=keep_soft_dirty
        )
        found.append(nr)
        at += nr
    return found


def test_a_clean_entry_ends_a_batch_of_private_memory_only() -> None:
    vma = CASES["one-clean-private"]
    assert lengths(vma, keep_dirty=True) == [7, 1, 8]
    assert lengths(vma, keep_dirty=False) == [16]


def test_a_saved_dirty_bit_is_as_the_hardware_s() -> None:
    assert lengths(CASES["read-only-first"], keep_dirty=True) == [16]
    after = forked(CASES["read-only-first"])
    assert {entry & pte.SAVED_DIRTY for entry in child_of(after)} == {pte.SAVED_DIRTY}
    assert not any(entry & (pte.RW | pte.DIRTY) for entry in after.parent.tolist())


def test_soft_dirty_ends_a_batch_where_it_is_tracked() -> None:
    vma = CASES["soft-dirty-tracked"]
    assert lengths(vma, keep_dirty=True) == [16]
    assert lengths(vma, keep_dirty=True, keep_soft_dirty=True) == [5, 11]


@pytest.mark.parametrize(
    ("name", "nr_marked"),
    [
        ("soft-dirty-tracked", 5),
        ("soft-dirty-tracked-first-not", 11),
        ("soft-dirty-untracked", 16),
        ("soft-dirty-untracked-first-not", 0),
    ],
)
def test_the_child_s_soft_dirty_bits_are_its_batch_s_first(name: str, nr_marked: int) -> None:
    assert sum(map(pte.soft_dirty, child_of(forked(CASES[name])))) == nr_marked


def test_entries_without_access_fall_while_their_pages_rise() -> None:
    after = child_of(forked(CASES["protnone-all"]))
    assert [low - high for high, low in pairwise(after)] == [-4096] * 15
    assert lengths(CASES["protnone-all"], keep_dirty=True) == [16]


def test_uffd_protection_is_the_child_s_only_where_it_asked() -> None:
    protected = forked(CASES["uffd-wp-child-protected"])
    assert [pte.uffd_wp(entry) for entry in child_of(protected)] == [
        3 <= at < 9 for at in range(16)
    ]
    for name in ("uffd-wp-child-not", "uffd-wp-left-over"):
        assert not any(map(pte.uffd_wp, child_of(forked(CASES[name]))))


def test_one_writable_entry_of_shared_memory_makes_its_batch_writable() -> None:
    vma = Vma(run(0, range(4), CLEAN, WRITTEN, CLEAN), placed(cached(2)), flags=SHARED)
    after = forked(vma)
    assert all(map(pte.write, child_of(after)))
    assert not any(map(pte.dirty, child_of(after)))
    assert np.array_equal(after.parent, fresh(vma).parent)
    one_by_one = fork(vma, fresh(vma), FACTS, batched=False)
    assert [pte.write(entry) for entry in child_of(one_by_one)] == [False, True, False, False]


def test_the_child_gets_a_copy_of_a_page_that_is_pinned_and_its_parent_s_own() -> None:
    vma = CASES["pinned-one-exclusive"]
    before, after = fresh(vma), forked(vma)
    assert after.calls.copies == ((PLACE.first_pfn + 6, PLACE.first_pfn + 16),)
    assert after.parent[6] == before.parent[6]
    assert exclusive(after).nonzero()[0].tolist() == [6, 16]
    copied = child_of(after)[6]
    assert pte.X86_64.decode(copied) == PLACE.first_pfn + 16
    assert pte.write(copied)
    assert pte.young(copied)
    assert copied & pte.DIRTY
    assert pages(after)["_mapcount"][:17].tolist() == [1] * 6 + [0] + [1] * 9 + [0]
    assert pages(after)["_refcount"][0] == 16 + 1 + 15  # mapped, pinned, mapped by the child
    assert pages(after)["mapping"][16] == PLACE.anon_vma | 1
    assert pages(after)["index"][16] == vma.pgoff(6)
    assert after.child_rss == (0, 16, 0, 0)
    assert after.taken == 1


@pytest.mark.parametrize(
    ("name", "nr_copies"),
    [
        ("pinned-all-exclusive", 16),
        ("pinned-not-exclusive", 0),
        ("pinned-by-nobody-here", 0),
        ("pinned-small", 1),
        ("many-references-not-yet", 0),
        ("many-references-as-a-pin", 1),
        ("many-references-large", 0),
    ],
)
def test_only_what_may_be_pinned_is_copied(name: str, nr_copies: int) -> None:
    assert len(forked(CASES[name]).calls.copies) == nr_copies


def test_a_second_child_takes_further_spare_pages() -> None:
    vma = CASES["pinned-one-exclusive"]
    again = fork(vma, forked(vma), FACTS)
    assert again.calls.copies == ((PLACE.first_pfn + 6, PLACE.first_pfn + 17),)
    assert again.taken == 2
    with pytest.raises(ValueError, match="slot 0: all 3 spare pages are taken"):
        fork(vma, fork(vma, again, FACTS), FACTS)


def test_half_a_folio_unmapped_defers_its_split_and_the_rest_frees_it() -> None:
    vma = uniform_mapping(4, 16)
    half = zap(vma, fresh(vma), "parent", FACTS, pages=range(8))
    assert half.calls.deferred.tolist() == [1] + [0] * 15
    assert half.calls.freed.sum() == 0
    assert half.parent_rss == (0, 8, 0, 0)
    assert pages(half)["_refcount"][0] == 8
    assert tails(half)["_nr_pages_mapped"][1] == 8
    rest = zap(vma, half, "parent", FACTS)
    assert rest.calls.deferred.sum() == 0
    assert rest.calls.freed.tolist() == [1] + [0] * 15
    assert pages(rest)["_refcount"][0] == 0
    assert tails(rest)["_large_mapcount"][1] == -1


def test_a_folio_that_lies_across_page_tables_is_deferred_and_freed_at_once() -> None:
    vma = CASES["across-a-pmd"]
    after = zap(vma, fresh(vma), "parent", FACTS)
    assert after.calls.deferred.tolist()[0] == 1
    assert after.calls.freed.tolist()[0] == 1


def test_a_batch_of_a_file_is_dirtied_and_accessed_once() -> None:
    after = zap(
        CASES["shared-file-writable"], fresh(CASES["shared-file-writable"]), "parent", FACTS
    )
    assert after.calls.dirtied.tolist() == after.calls.accessed.tolist() == [1] + [0] * 15
    in_order = CASES["read-in-order"]
    assert zap(in_order, fresh(in_order), "parent", FACTS).calls.accessed.sum() == 0
    clean = CASES["shared-file-old-and-clean"]
    calls = zap(clean, fresh(clean), "parent", FACTS).calls
    assert calls.dirtied.sum() == calls.accessed.sum() == 0
    assert calls.unmapped_file == 16


def test_pages_of_files_are_counted_as_such() -> None:
    assert forked(CASES["shared-shmem-mixed"]).child_rss == (0, 0, 0, 16)
    assert forked(CASES["shared-file-mixed"]).child_rss == (16, 0, 0, 0)


def test_what_page_faults_can_fill_is_not_copied() -> None:
    vma = CASES["shared-file-left-to-faults"]
    after = forked(vma)
    assert not any(child_of(after))
    assert differing(after, fresh(vma)) == {"child"}


def test_a_swap_entry_is_shared_and_counted() -> None:
    after = forked(CASES["swap"])
    assert not any(entry & pte.SWP_EXCLUSIVE for entry in after.parent.tolist())
    assert after.calls.swap_duplicates == 9
    assert after.child_rss == (0, 0, 9, 0)
    assert not any(entry & pte.SWP_UFFD_WP for entry in child_of(after))
    assert any(entry & pte.SWP_UFFD_WP for entry in after.parent.tolist())
    assert [swap_offset(entry) for entry in child_of(after)] == [
        *range(1000, 1005), 2000, 2001, 2002, 77,
    ]  # fmt: skip


def test_a_page_on_its_way_becomes_read_only_on_both_sides() -> None:
    private, shared = forked(CASES["migration"]), forked(CASES["migration-shared"])
    for entries in (private.parent.tolist(), child_of(private)):
        assert {swap_type(entry) for entry in entries} == {FACTS["SWP_MIGRATION_READ"]}
    assert np.array_equal(shared.parent, fresh(CASES["migration-shared"]).parent)
    assert private.child_rss == (0, 12, 0, 0)
    assert np.array_equal(private.descriptors, fresh(CASES["migration"]).descriptors)


def test_poison_is_told_to_every_child_and_protection_to_those_who_asked() -> None:
    deaf, told = forked(CASES["markers-anon"]), forked(CASES["markers-anon-child-protected"])
    assert [entry != 0 for entry in child_of(deaf)[:4]] == [False, False, True, True]
    assert [entry != 0 for entry in child_of(told)[:4]] == [True, False, True, True]


def test_truncating_a_file_leaves_the_pages_of_the_process_s_own() -> None:
    vma = CASES["private-file-behind-own-pages"]
    before = fresh(vma)
    after = zap(vma, before, "parent", FACTS, drop_markers=False, even_cows=False)
    assert np.array_equal(after.parent[:4], before.parent[:4])
    assert not after.parent[4:].any()
    swapped = replace(CASES["swap"], anonymous=False)
    kept = zap(swapped, fresh(swapped), "parent", FACTS, drop_markers=False, even_cows=False)
    assert np.array_equal(kept.parent, fresh(swapped).parent)


def test_what_a_device_worked_on_alone_is_the_process_s_again_before_it_is_shared() -> None:
    vma = CASES["device-exclusive"]
    after = forked(vma)
    assert all(pte.present(entry) for entry in after.parent.tolist())
    assert not any(pte.write(entry) for entry in (*after.parent.tolist(), *child_of(after)))
    of_writable = after.parent[3:].tolist()
    # One that userfaultfd protects is not made dirty: it was not written since.
    assert [pte.dirty(entry) for entry in of_writable] == [True, False, True]


def test_pages_of_a_device_are_mapped_by_both_and_nobody_s_own() -> None:
    vma = CASES["device-private"]
    after = forked(vma)
    assert pages(after)["_mapcount"][: vma.nr_folio_pages].tolist() == [1] * 4
    assert not exclusive(after).any()
    assert {swap_type(entry) for entry in after.parent.tolist()} == {FACTS["SWP_DEVICE_READ"]}


def test_only_madv_dontneed_leaves_marks_in_a_file_s_vma() -> None:
    vma = CASES["uffd-wp-shmem-child-protected"]
    mark = pte.swap_entry(FACTS["SWP_PTE_MARKER"], FACTS["PTE_MARKER_UFFD_WP"])
    kept = zap(vma, fresh(vma), "parent", FACTS, drop_markers=False)
    assert kept.parent.tolist() == [0] * 3 + [mark] * 6 + [0] * 7
    assert np.array_equal(zap(vma, kept, "parent", FACTS, drop_markers=False).parent, kept.parent)
    assert not zap(vma, kept, "parent", FACTS).parent.any()
    assert not zap(vma, fresh(vma), "parent", FACTS).parent.any()


def test_entries_of_a_device_count_nothing() -> None:
    vma = Vma((Special(), Special(pfn=5)), (), flags=PRIVATE | {"MIXEDMAP"})
    after = forked(vma)
    assert after.child_rss == (0, 0, 0, 0)
    assert not any(map(pte.write, child_of(after)))
    assert not any(map(pte.write, after.parent.tolist()))


def test_a_build_without_soft_dirty_and_userfaultfd_leaves_their_bits_alone() -> None:
    vma = CASES["uffd-wp-child-not"]
    after = fork(vma, initial(vma, BARE, PLACE), BARE)
    assert sum(map(pte.uffd_wp, child_of(after))) == 6
    vma = CASES["soft-dirty-untracked"]
    after = fork(vma, initial(vma, BARE, PLACE), BARE)
    assert sum(map(pte.soft_dirty, child_of(after))) == 5


def test_a_child_that_is_not_there_cannot_be_unmapped() -> None:
    vma = CASES["one-page"]
    with pytest.raises(ValueError, match="no child to unmap"):
        zap(vma, fresh(vma), "child", FACTS)


def test_entries_of_a_numa_hint_keep_their_page() -> None:
    after = forked(CASES["protnone-two-folios"])
    entries = child_of(after)
    assert [pte.X86_64.decode(entry) for entry in entries[:4]] == [
        PLACE.first_pfn + 16 + page for page in range(4)
    ]
    assert all(entry & ~pte.PFN_MASK == pte.mkold(NUMA_HINT) for entry in entries)


# --- Of every mapping -----------------------------------------------------------------------

every_mapping = pytest.mark.parametrize("name", CASES)


def balance(vma: Vma, state: State, mappers: list[list[int]]) -> None:
    """What the descriptors count is what the page tables and the folios' other holders hold."""
    mapped, held_by_device = np.zeros((2, vma.nr_descriptors), np.int64)
    for entries in mappers:
        for entry in entries:
            kind, page = swap_type(entry), swap_offset(entry) - PLACE.first_pfn
            if pte.present(entry) and not pte.special(entry):
                mapped[pte.X86_64.decode(entry) - PLACE.first_pfn] += 1
            elif entry and not pte.present(entry) and is_one_of(DEVICE_PRIVATE, kind, FACTS):
                mapped[page] += 1
            elif entry and not pte.present(entry) and is_one_of(DEVICE_EXCLUSIVE, kind, FACTS):
                held_by_device[page] += 1
    for folio in vma.folios:
        mapped[folio.first_page : folio.first_page + folio.nr_pages] += folio.mapped_elsewhere
    assert np.array_equal(pages(state)["_mapcount"], mapped - 1)
    for folio in vma.folios:
        head, own = folio.first_page, mapped[folio.first_page : folio.first_page + folio.nr_pages]
        held = folio.extra_refs + folio.pins * (1 if folio.order else 1024) + folio.pmds_elsewhere
        held += held_by_device[head : head + folio.nr_pages].sum()
        assert pages(state)["_refcount"][head] == own.sum() + held
        if folio.order:
            entire = FACTS["ENTIRELY_MAPPED"] if folio.pmds_elsewhere else 0
            assert tails(state)["_large_mapcount"][head + 1] == own.sum() + folio.pmds_elsewhere - 1
            assert tails(state)["_nr_pages_mapped"][head + 1] == np.count_nonzero(own) + entire


def judge(vma: Vma) -> None:
    """The invariants of one mapping's whole life."""
    before, after, orphaned, _, again, gone = story(vma)
    parent, child = after.parent.tolist(), child_of(after)
    balance(vma, before, [before.parent.tolist()])
    balance(vma, after, [parent, child])
    balance(vma, orphaned, [parent])
    balance(vma, again, [parent])
    balance(vma, gone, [])
    assert gone.parent_rss == gone.child_rss == orphaned.child_rss == (0, 0, 0, 0)
    assert not gone.parent.any()

    copied = {copy for _, copy in after.calls.copies}
    for entry in child:
        if pte.present(entry) and not pte.special(entry):
            pfn = pte.X86_64.decode(entry)
            own = bool(exclusive(after)[pfn - PLACE.first_pfn])
            if own != (pfn in copied):  # of a file's page the bit says something else
                assert not Memory(after, FACTS).anon(pfn - PLACE.first_pfn)
            assert pfn in copied or not (vma.copies_on_write and pte.write(entry))
    # Fork and the child's end give the parent back, but for who may write and whose pages are.
    flags = pages(before)["flags"] & ~np.uint64(1 << FACTS["PG_anon_exclusive"])
    nr_own = vma.nr_folio_pages
    assert np.array_equal(
        flags[:nr_own],
        pages(orphaned)["flags"][:nr_own] & ~np.uint64(1 << FACTS["PG_anon_exclusive"]),
    )
    # And what a device worked on alone is mapped again.
    restored = np.zeros(vma.nr_descriptors, np.int64)
    for slot in vma.slots:
        if isinstance(slot, NonPresent) and slot.kind in DEVICE_EXCLUSIVE:
            restored[vma.folios[slot.folio].first_page + slot.page] += 1
    assert np.array_equal(pages(before)["_mapcount"] + restored, pages(orphaned)["_mapcount"])
    for was, now in zip(before.parent.tolist(), parent, strict=True):
        if pte.present(was):
            assert now in {was, pte.wrprotect(was)}


@every_mapping
def test_a_named_mapping_keeps_the_balance(name: str) -> None:
    assert CASES[name].missing_facts(FACTS) == ()
    judge(CASES[name])


@given(seed=SEEDS)
@settings(deadline=None, max_examples=60)
def test_any_mixture_keeps_the_balance(seed: int) -> None:
    judge(random_mapping(seed))


def split_matters_only_to_bits(vma: Vma) -> None:
    before = fresh(vma)
    batched, single = fork(vma, before, FACTS), fork(vma, before, FACTS, batched=False)
    assert differing(batched, single) <= {"child"}
    may_differ = pte.SOFT_DIRTY | (pte.RW if "SHARED" in vma.flags else 0)
    for one, other in zip(child_of(batched), child_of(single), strict=True):
        assert (one ^ other) & ~may_differ == 0
    assert differing(
        zap(vma, batched, "parent", FACTS), zap(vma, batched, "parent", FACTS, batched=False)
    ) <= {"deferred", "dirtied", "accessed"}


@every_mapping
def test_batches_of_a_named_mapping_show_in_few_bits_only(name: str) -> None:
    split_matters_only_to_bits(CASES[name])


@given(seed=SEEDS)
@settings(deadline=None, max_examples=40)
def test_batches_of_any_mixture_show_in_few_bits_only(seed: int) -> None:
    split_matters_only_to_bits(random_mapping(seed))


@given(seed=SEEDS, data=st.data())
@settings(deadline=None, max_examples=40)
def test_unmapping_in_two_parts_leaves_what_unmapping_at_once_does(
    seed: int, data: st.DataObject
) -> None:
    vma = random_mapping(seed)
    at = data.draw(st.integers(0, vma.nr_pages))
    before = fresh(vma)
    whole = zap(vma, before, "parent", FACTS)
    part = zap(vma, before, "parent", FACTS, pages=range(at))
    parts = zap(vma, part, "parent", FACTS, pages=range(at, vma.nr_pages))
    assert differing(whole, parts) <= {
        *("deferred", "dirtied", "accessed", "freed"),
        *("swap_frees", "unmapped_anon", "unmapped_file"),
    }
    for name in ("freed", "swap_frees", "unmapped_anon", "unmapped_file"):
        of_both = getattr(part.calls, name) + getattr(parts.calls, name)
        assert np.array_equal(of_both, getattr(whole.calls, name))


# --- Rules that are wrong are found ---------------------------------------------------------


def forget_exclusive(share: Callable[..., None]) -> Callable[..., None]:
    def wrong(memory: Memory, page: int, nr_pages: int) -> None:
        share(memory, page, nr_pages)
        memory.octets.reshape(-1).view(page_dtype(FACTS))["flags"][page] |= np.uint64(
            1 << FACTS["PG_anon_exclusive"]
        )

    return wrong


def one_less(rule: Callable[..., None]) -> Callable[..., None]:
    return lambda memory, page, nr_pages: rule(memory, page, max(1, nr_pages - 1))


def unchanged(_: Callable[..., int]) -> Callable[..., int]:
    return lambda entry, **_: entry


def never(_: Callable[..., bool]) -> Callable[..., bool]:
    return lambda *_, **__: False


WRONG_RULES: tuple[tuple[object, str, Callable[..., Any]], ...] = (
    (pte, "wrprotect", unchanged),
    (pte, "mkold", unchanged),
    (pte, "mkclean", unchanged),
    (pte, "mkwrite", unchanged),
    (pte, "mkdirty", unchanged),
    (pte, "clear_uffd_wp", unchanged),
    (pte, "clear_soft_dirty", unchanged),
    (pte, "mkuffd_wp", unchanged),
    (pte, "special", never),
    (Memory, "share", forget_exclusive),
    (Memory, "share", one_less),
    (Memory, "unmap", one_less),
    (Memory, "drop_references", one_less),
    (Memory, "maybe_pinned", never),
    (Memory, "any_exclusive", never),
)


@pytest.mark.parametrize(("home", "name", "wrong"), WRONG_RULES)
def test_a_wrong_rule_is_found_by_a_named_mapping(
    monkeypatch: pytest.MonkeyPatch, home: object, name: str, wrong: Callable[..., Any]
) -> None:
    small = {case: vma for case, vma in CASES.items() if vma.nr_pages <= 32}
    right = {case: story(vma) for case, vma in small.items()}
    monkeypatch.setattr(home, name, wrong(getattr(home, name)))
    assert any(found(vma, right[case]) for case, vma in small.items())


def found(vma: Vma, right: list[State]) -> bool:
    """Whether the rules as they are now tell another story, or none."""
    try:
        now = [right[0], fork(vma, right[0], FACTS)]
        now.append(zap(vma, right[1], "child", FACTS))
    except AssertionError:
        return True
    return any(differing(one, other) for one, other in zip(now, right, strict=False))
