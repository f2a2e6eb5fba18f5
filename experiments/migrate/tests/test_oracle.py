# SPDX-License-Identifier: GPL-2.0-only
"""The oracle of migration: what it predicts of small ones, by hand."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from experiments.migrate.oracle.call import ENOMEM, NR_PASSES
from experiments.migrate.oracle.folios import (
    PMD_ORDER,
    READ_ONLY,
    BatchLimit,
    Folio,
    Migration,
    Mode,
    PteBits,
)
from experiments.migrate.oracle.images import before
from experiments.migrate.oracle.migrate import ANYTHING, After, deferrable, migrate
from experiments.migrate.oracle.mixture import (
    EVERY_BITS,
)
from experiments.migrate.tests.world import FACTS, PLACE, after, chain, pages, tails
from ream.oracle import pte
from ream.oracle.mapping import PAGE_SHIFT

BARE = {**FACTS, "MEM_SOFT_DIRTY": 0, "HAVE_ARCH_USERFAULTFD_WP": 0, "MARKS_UFFD_WP": 0}
FAILED = -ENOMEM


def of(*folios: Folio, mode: Mode = "async", reason: str = "SYSCALL") -> After:
    return after(Migration(folios, mode, reason))


def flags(octets: NDArray[np.uint8], page: int) -> set[str]:
    """Names of what is set; two names may be one bit."""
    word = int(pages(octets)["flags"][page])
    return {
        name.removeprefix("PG_")
        for name, bit in FACTS.items()
        if name.startswith("PG_") and word >> bit & 1
    }


# --- By hand -----------------------------------------------------------------------------


def test_one_small_folio_is_moved() -> None:
    answer = of(Folio())
    state = answer.state
    assert (answer.ret, answer.nr_succeeded, answer.left) == (0, 1, ())
    assert state.entries[0][0] == PLACE.dst_pfn << PAGE_SHIFT | 0x8000000000000067
    assert pages(state.dst)["_refcount"][0] == 2  # the entry's and the LRU batch's
    assert pages(state.dst)["_mapcount"][0] == 0
    assert flags(state.dst, 0) == {"uptodate", "dirty", "swapbacked", "anon_exclusive"}
    assert pages(state.dst)["mapping"][0] == PLACE.anon_vma + 1
    assert pages(state.dst)["index"][0] == PLACE.address >> PAGE_SHIFT
    assert pages(state.dst)["flags"][0] >> np.uint64(58) == 1
    assert pages(state.src)["_refcount"][0] == 0
    assert pages(state.src)["_mapcount"][0] == -1
    assert flags(state.src, 0) == {"uptodate", "dirty", "swapbacked"}
    assert answer.contents.tolist() == [0, 0]


def test_the_list_is_off_the_descriptors_of_what_was_moved() -> None:
    words = of(Folio()).state
    for octets in (words.src, words.dst):
        link = octets.reshape(-1).view("<u8")[1:3]
        assert link.tolist() == [FACTS["LIST_POISON1"], FACTS["LIST_POISON2"]]


def test_a_large_folio_mapped_page_by_page_is_queued_for_a_split_with_its_target() -> None:
    answer = of(Folio(4))
    state = answer.state
    assert answer.dst_queued == (0,)
    assert answer.src_queued == ()
    assert "partially_mapped" in flags(state.dst, 1)
    assert "partially_mapped" not in flags(state.src, 1)
    assert chain({"dst": state.dst}, PLACE.dst_queue, 16) == [("dst", 2)]
    assert deferrable(Migration((Folio(4), Folio(), Folio(2)))).tolist() == [0, 20]


def test_a_batched_kernel_queues_nothing() -> None:
    answer = after(Migration((Folio(4), Folio(4, fault="extra-ref"))), batched=True)
    assert answer.src_queued == answer.dst_queued == ()
    assert "partially_mapped" not in flags(answer.state.dst, 1) | flags(answer.state.src, 17)


def test_a_huge_entry_is_one_entry_and_one_reference() -> None:
    answer = of(Folio(PMD_ORDER, mapped="pmd"))
    state = answer.state
    huge = PLACE.dst_pfn << PAGE_SHIFT | 0x80000000000000E7 | pte.SOFT_DIRTY
    assert state.pmds[0].tolist() == [huge]
    assert not state.entries[0].any()
    assert pages(state.dst)["_refcount"][0] == 2
    assert (pages(state.dst)["_mapcount"] == -1).all()
    assert tails(state.dst)["_entire_mapcount"][1] == 0
    assert tails(state.dst)["_large_mapcount"][1] == 0
    assert tails(state.dst)["_nr_pages_mapped"][1] == FACTS["ENTIRELY_MAPPED"]
    assert answer.events["THP_MIGRATION_SUCCESS"] == 1
    assert answer.single_flushes == (1, 1)
    assert answer.batch_flushes == (0, 0)
    assert answer.node_stats["NR_ANON_THPS"] == (-512, 512)


def test_two_address_spaces_share_what_was_moved() -> None:
    answer = of(Folio(2, (READ_ONLY,), nr_mappings=2))
    assert [len(list(np.flatnonzero(table))) for table in answer.state.entries] == [4, 4]
    assert np.array_equal(*answer.state.entries)
    assert pages(answer.state.dst)["_refcount"][0] == 9
    assert pages(answer.state.dst)["_mapcount"].tolist() == [1] * 4
    assert answer.rss == (4, 4)


def test_a_locked_folio_is_tried_ten_times_and_stays() -> None:
    answer = of(Folio(fault="locked"), Folio())
    assert (answer.ret, answer.left, answer.nr_succeeded) == (1, (0,), 1)
    assert (answer.nr_allocated, answer.nr_put) == (NR_PASSES + 1, NR_PASSES)
    assert flags(answer.state.src, 0) >= {"locked"}
    assert "dirty" not in flags(answer.state.src, 0)
    assert not answer.state.dst[0].reshape(-1).view("<u8")[1:3].any()


def test_a_folio_that_somebody_holds_gets_its_entries_back() -> None:
    migration = Migration((Folio(4, fault="extra-ref"), Folio()))
    was, answer = before(migration, FACTS, PLACE), after(migration)
    assert (answer.ret, answer.left) == (1, (0,))
    assert np.array_equal(answer.state.entries[0][:16], was.entries[0][:16])
    assert pages(answer.state.src)["_refcount"][0] == 18
    assert answer.src_queued == (0,)
    assert (answer.nr_allocated, answer.nr_put) == (2, 1)
    assert (answer.contents[17 : 17 + 16] == ANYTHING).all()


def test_a_folio_without_a_target_ends_the_call_but_not_what_was_begun() -> None:
    answer = of(Folio(), Folio(fault="no-target"), Folio())
    assert (answer.ret, answer.left, answer.nr_succeeded) == (FAILED, (1, 2), 1)
    assert answer.events["PGMIGRATE_FAIL"] == 1  # what was not tried is not counted
    assert answer.nr_allocated == 2


def test_folios_that_wait_for_another_pass_fail_with_the_one_without_a_target() -> None:
    answer = of(Folio(fault="locked"), Folio(2, fault="locked"), Folio(fault="no-target"))
    assert answer.ret == FAILED
    assert answer.events["PGMIGRATE_FAIL"] == 6
    assert answer.left == (0, 4, 8)


def test_a_poisoned_page_fails_its_folio_alone() -> None:
    answer = of(Folio(), Folio(2, fault="poison:3"), Folio())
    assert (answer.ret, answer.left, answer.nr_succeeded) == (1, (4,), 2)
    assert answer.nr_poison_reports == 1
    assert Migration((Folio(), Folio(2, fault="poison:3"))).poisoned_pages == (7,)


def test_a_folio_that_was_freed_counts_as_moved_and_asks_for_nothing() -> None:
    folio = Folio(2, mapped="unmapped", fault="freed", flags=frozenset({"active", "uptodate"}))
    answer = of(folio)
    assert (answer.ret, answer.nr_succeeded, answer.nr_allocated) == (0, 4, 0)
    assert (answer.nr_freed, answer.nr_added) == (1, 0)
    assert "active" not in flags(answer.state.src, 0)
    assert answer.node_stats["NR_ISOLATED_ANON"] == (-4, 0)


def test_a_partially_mapped_folio_is_split_and_what_is_left_of_it_moved() -> None:
    folio = Folio(2, (PteBits(), None, PteBits(), None), fault="partially-mapped")
    migration = Migration((folio,))
    was, answer = before(migration, FACTS, PLACE), after(migration)
    assert "partially_mapped" in flags(was.src, 1)
    assert chain({"src": was.src}, PLACE.src_queue, 16) == [("src", 2)]
    assert pages(was.src)["_refcount"].tolist() == [3, 0, 0, 0]
    assert (answer.ret, answer.left, answer.split) == (0, (), (0,))
    assert answer.src_queued == answer.dst_queued == ()
    assert (answer.nr_succeeded, answer.nr_freed, answer.nr_added) == (4, 4, 2)
    assert answer.nr_allocated == 2  # what nobody maps is freed
    assert answer.contents[4:].tolist() == [0, ANYTHING, 2, ANYTHING]
    assert not flags(answer.state.src, 0) & {"head", "partially_mapped"}
    assert pages(answer.state.src)["index"].tolist() == [(1 << 28) + page for page in range(4)]
    assert pages(answer.state.dst)["_refcount"].tolist() == [2, 1, 2, 1]
    assert answer.batch_flushes == (1, 2)
    assert answer.node_stats["NR_ANON_MAPPED"] == (-2, 2)


def test_a_huge_folio_without_a_huge_target_goes_page_by_page() -> None:
    answer = of(Folio(PMD_ORDER, fault="no-target"), Folio(fault="extra-ref"))
    assert (answer.ret, answer.left, answer.nr_succeeded) == (2, (512,), 512)
    assert answer.events["THP_MIGRATION_SPLIT"] == answer.events["THP_MIGRATION_FAIL"] == 1
    assert answer.events["THP_MIGRATION_SUCCESS"] == 0
    assert answer.events["PGMIGRATE_FAIL"] == 1
    assert of(Folio(PMD_ORDER, fault="no-target")).ret == 0
    stuck = of(Folio(PMD_ORDER, fault="no-target"), reason="NUMA_MISPLACED")
    assert (stuck.ret, stuck.left, stuck.split) == (FAILED, (0,), ())


def test_pages_of_a_split_folio_are_left_where_a_call_ends_early() -> None:
    partial = Folio(2, (None, PteBits(), PteBits(), PteBits()), fault="partially-mapped")
    answer = of(partial, Folio(fault="no-target"), Folio())
    assert answer.ret == FAILED
    assert answer.left == (4, 5, 3, 2, 1, 0)
    assert pages(answer.state.src)["_refcount"][:4].tolist() == [1, 2, 2, 2]


def test_what_fails_in_the_first_batch_comes_before_what_was_never_tried() -> None:
    folios = (Folio(fault="extra-ref"), Folio(fault="writeback"), Folio(fault="no-target"), Folio())
    # Writeback fails at once; what is held is given up in the end; the rest stays as it is.
    assert of(*folios).left == (1, 0, 2, 3)


def test_a_second_try_is_made_one_by_one() -> None:
    answer = of(Folio(fault="extra-ref"), Folio(fault="poison:0"), Folio(), mode="sync")
    assert (answer.ret, answer.nr_succeeded) == (2, 1)
    assert (answer.nr_allocated, answer.nr_put) == (5, 4)
    assert answer.nr_poison_reports == 2
    assert answer.events["PGMIGRATE_FAIL"] == 2  # of the first try nothing is counted
    assert answer.single_flushes == (2, 2)
    assert answer.batch_flushes == (1, 1)


def test_a_locked_folio_that_is_not_uptodate_is_not_waited_for_in_light_mode() -> None:
    answer = of(Folio(fault="locked", flags=frozenset()), mode="sync_light")
    assert (answer.ret, answer.nr_allocated) == (1, NR_PASSES)


def test_a_batch_ends_with_the_folio_that_fills_it() -> None:
    assert of(*[Folio()] * 512).batch_flushes == (1, 1)
    assert of(*[Folio()] * 513).batch_flushes == (1, 2)
    assert of(*[Folio()] * 511, Folio(PMD_ORDER), Folio()).batch_flushes == (1, 2)
    raised = Migration((Folio(PMD_ORDER),) * 4, limit=BatchLimit(1 << 18))
    assert after(raised).batch_flushes == (1, 1)


def test_a_batch_of_few_folios_may_have_more_pages() -> None:
    limit = BatchLimit(512, folios=4, most_pages=2048)
    small, middle, huge = Folio(), Folio(8), Folio(PMD_ORDER)
    assert flushes_of(limit, *[small] * 512, small) == (1, 2)
    assert flushes_of(limit, *[middle] * 4) == (1, 1)
    assert flushes_of(limit, *[middle] * 5) == (1, 2)
    assert flushes_of(limit, *[huge] * 3) == (1, 1)
    assert flushes_of(replace(limit, folios=99), *[huge] * 5) == (1, 2)


def flushes_of(limit: BatchLimit, *folios: Folio) -> tuple[int, int]:
    return after(Migration(folios, limit=limit)).batch_flushes


def test_poisoned_memory_keeps_its_reference_and_demotion_is_not_counted() -> None:
    assert pages(of(Folio(), reason="MEMORY_FAILURE").state.src)["_refcount"][0] == 1
    assert of(Folio(), reason="MEMORY_FAILURE").nr_freed == 0
    assert of(Folio(), reason="DEMOTION").node_stats["NR_ISOLATED_ANON"] == (0, 0)
    lazy = of(Folio(0, (PteBits(dirty=False),), swapbacked=False))
    assert lazy.node_stats["NR_ISOLATED_FILE"] == (-1, 0)
    assert "swapbacked" not in flags(lazy.state.dst, 0)


@pytest.mark.parametrize("name", ["referenced", "active", "unevictable", "workingset"])
def test_a_flag_goes_with_its_folio(name: str) -> None:
    answer = of(Folio(flags=frozenset({name})))
    assert name in flags(answer.state.dst, 0)
    assert "uptodate" not in flags(answer.state.dst, 0)
    stays = name not in {"active", "unevictable"}
    assert (name in flags(answer.state.src, 0)) is stays


def test_mlock_does_not_go_with_the_folio_but_drains_the_batches() -> None:
    answer = of(Folio(flags=frozenset({"mlocked", "unevictable"})), Folio())
    assert answer.nr_drained == 1
    assert "mlocked" not in flags(answer.state.dst, 0)
    assert "mlocked" in flags(answer.state.src, 0)


def test_locked_memory_is_locked_again_where_a_folio_is_small() -> None:
    folios = [Folio(order, flags=frozenset({"mlocked"})) for order in (0, 2)]
    answer = after(Migration((*folios, Folio()), mlocked=True))
    assert answer.nr_drained == 2
    assert ["mlocked" in flags(answer.state.dst, page) for page in (0, 4, 8)] == [True, False, True]
    assert not any("mlocked" in flags(answer.state.src, page) for page in (0, 4, 8))


def test_a_pinned_folio_keeps_its_entries() -> None:
    clean = PteBits(dirty=False)
    migration = Migration((Folio(2, (clean,), fault="pinned"), Folio(0, (clean,), fault="pinned")))
    was, answer = before(migration, FACTS, PLACE), after(migration)
    assert (answer.ret, answer.left) == (2, (0, 4))
    assert np.array_equal(answer.state.entries[0], was.entries[0])
    assert np.array_equal(answer.state.src, was.src)
    assert [pages(was.src)["_refcount"][page] for page in (0, 4)] == [6, 1026]
    assert tails(was.src)["_pincount"][1] == 1
    tries = 2 * 10
    assert answer.batch_flushes == (0, tries + 1)  # after each, or once after all, or never
    assert answer.noted == frozenset()


def test_memory_that_is_broken_is_mapped_no_more() -> None:
    folio = Folio(0, (READ_ONLY,), flags=frozenset({"uptodate", "hwpoison"}))
    for fault in (None, "extra-ref"):
        answer = of(replace(folio, fault=fault))
        entry = int(answer.state.entries[0][0])
        assert (pte.present(entry), entry >> 59) == (False, FACTS["SWP_HWPOISON"])
        assert (answer.rss, answer.rss_after) == ((1,), (0,))
        assert answer.node_stats["NR_ANON_MAPPED"] == (-1, 0)
        assert "hwpoison" not in flags(answer.state.dst, 0)
        assert pages(answer.state.dst)["_mapcount"][0] == -1


def test_an_underused_folio_waits_for_its_split_on_the_other_node() -> None:
    migration = Migration((Folio(PMD_ORDER, mapped="pmd", underused=True),))
    was, answer = before(migration, FACTS, PLACE), after(migration)
    assert chain({"src": was.src}, PLACE.src_queue, 16) == [("src", 2)]
    assert chain({"dst": answer.state.dst}, PLACE.dst_queue, 16) == [("dst", 2)]
    for octets in (was.src, answer.state.src, answer.state.dst):
        assert "partially_mapped" not in flags(octets, 1)


def test_entries_and_a_huge_entry_map_the_same_pages_once() -> None:
    answer = of(Folio(PMD_ORDER, (READ_ONLY,), "both", nr_mappings=2))
    state = answer.state
    assert [np.count_nonzero(table) for table in state.entries] == [512, 0]
    assert [np.count_nonzero(table) for table in state.pmds] == [0, 1]
    assert pages(state.dst)["_refcount"][0] == 514
    assert tails(state.dst)["_nr_pages_mapped"][1] == FACTS["ENTIRELY_MAPPED"] + 512
    assert answer.node_stats["NR_ANON_MAPPED"] == (-512, 512)
    assert (answer.rss, answer.noted) == ((512, 512), {0})
    assert answer.single_flushes == answer.batch_flushes == (1, 1)


def test_a_hole_of_the_second_address_space_stays_one() -> None:
    answer = of(Folio(2, (READ_ONLY,), nr_mappings=2, holes=frozenset({1, 2})))
    assert [np.flatnonzero(table).tolist() for table in answer.state.entries] == [
        [0, 1, 2, 3],
        [0, 3],
    ]
    assert pages(answer.state.dst)["_mapcount"].tolist() == [1, 0, 0, 1]
    assert (answer.rss, answer.nr_anon[2]) == ((4, 2), 1)


@pytest.mark.parametrize("bits", EVERY_BITS)
def test_an_entry_says_the_same_of_its_page_afterwards(bits: PteBits) -> None:
    migration = Migration((Folio(0, (bits,)),))
    was, now = before(migration, FACTS, PLACE).entries[0][0], after(migration).state.entries[0][0]
    frames = np.uint64((PLACE.src_pfn ^ PLACE.dst_pfn) << PAGE_SHIFT)
    assert now == was ^ frames
    assert pte.young(int(now)) == bits.young
    assert pte.dirty(int(now)) == bits.dirty
    assert pte.write(int(now)) == bits.write
    assert pte.uffd_wp(int(now)) == bits.uffd_wp
    assert pte.soft_dirty(int(now)) == bits.soft_dirty
    assert ("anon_exclusive" in flags(after(migration).state.dst, 0)) == bits.exclusive


@pytest.mark.parametrize("bits", EVERY_BITS)
def test_a_dirty_huge_entry_becomes_soft_dirty(bits: PteBits) -> None:
    for fault in (None, "extra-ref"):
        answer = of(Folio(PMD_ORDER, (bits,), "pmd", fault=fault))
        now = int(answer.state.pmds[0][0])
        assert pte.soft_dirty(now) == (bits.soft_dirty or bits.dirty)
        assert (pte.young(now), pte.dirty(now)) == (bits.young, bits.dirty)
        assert (pte.write(now), pte.uffd_wp(now)) == (bits.write, bits.uffd_wp)


@pytest.mark.parametrize(
    ("folio", "mode", "fault"),
    [
        (Folio(1), "async", "order 1"),
        (Folio(10), "async", "order 10"),
        (Folio(2, (PteBits(),) * 3), "async", "3 ptes"),
        (Folio(4, mapped="pmd"), "async", "huge entry"),
        (Folio(0, (PteBits(exclusive=False),)), "async", "not exclusive"),
        (Folio(0, (PteBits(uffd_wp=True),)), "async", "userfaultfd"),
        (Folio(nr_mappings=2), "async", "exclusive page with two"),
        (Folio(flags=frozenset({"lru"})), "async", "lru"),
        (Folio(fault="poison:1"), "async", "no page 1"),
        (Folio(fault="tired"), "async", "tired"),
        (Folio(fault="freed"), "async", "freed but mapped"),
        (Folio(mapped="unmapped"), "async", "unmapped"),
        (Folio(fault="locked"), "sync_light", "would wait"),
        (Folio(fault="writeback"), "sync", "would wait"),
        (Folio(PMD_ORDER, mapped="pmd", fault="no-target"), "async", "would be split"),
        (Folio(2, (None,) * 4, fault="partially-mapped"), "async", "partially-mapped: some"),
        (Folio(2, (PteBits(), None) * 2), "async", "partially-mapped: some"),
        (Folio(2, fault="partially-mapped"), "async", "partially-mapped: some"),
        (Folio(2, fault="poison:1"), "sync", "would be split"),
        (Folio(fault="pinned"), "async", "pinned: exclusive and clean"),
        (Folio(flags=frozenset({"hwpoison"})), "async", "hwpoison: a small"),
        (Folio(0, (READ_ONLY,), flags=frozenset({"hwpoison"})), "sync", "tried again"),
        (Folio(2, holes=frozenset({1})), "async", "holes: in the second"),
        (Folio(PMD_ORDER, underused=True), "async", "underused: mapped"),
        (Folio(PMD_ORDER, (READ_ONLY,), "both"), "async", "by both: in two"),
    ],
)
def test_what_cannot_be_is_refused(folio: Folio, mode: Mode, fault: str) -> None:
    with pytest.raises(ValueError, match=fault):
        Migration((Folio(), folio), mode)


def test_an_unknown_reason_a_missing_folio_and_no_folio_are_refused() -> None:
    with pytest.raises(ValueError, match="reason 'BOREDOM'"):
        Migration((Folio(),), reason="BOREDOM")
    with pytest.raises(ValueError, match="not every folio once"):
        Migration((Folio(), Folio()), listed=(0, 0))
    with pytest.raises(ValueError, match="no folios"):
        Migration(())


def test_a_build_without_soft_dirty_bits_has_none() -> None:
    migration = Migration((Folio(0, (PteBits(soft_dirty=True),)), Folio(PMD_ORDER, mapped="pmd")))
    answer = migrate(migration, BARE, PLACE)
    for table in (*answer.state.entries, *answer.state.pmds):
        assert not any(pte.soft_dirty(int(word)) for word in table)
