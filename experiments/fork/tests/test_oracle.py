# SPDX-License-Identifier: GPL-2.0-only
"""The oracle of fork and unmap: what it predicts, by hand, by invariants and against itself."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from experiments.fork.oracle.cases import (
    CLEAN,
    NUMA_HINT,
    READ_ONLY,
    cached,
    placed,
    run,
)
from experiments.fork.oracle.fork import fork, zap
from experiments.fork.oracle.images import (
    initial,
    uniform,
    uniform_mapping,
)
from experiments.fork.oracle.memory import batch_length
from experiments.fork.tests.world import (
    BARE,
    CASES,
    FACTS,
    MOMENTS,
    NEWER,
    ORDERS,
    PLACE,
    child_of,
    differing,
    exclusive,
    forked,
    fresh,
    pages,
    tails,
)
from ream.oracle import pte
from ream.oracle.mapping import (
    PRIVATE,
    SHARED,
    WRITTEN,
    Special,
)
from ream.oracle.mapping import Mapping as Vma
from ream.oracle.pte import swap_offset, swap_type

# --- Uniform mappings: the vectorised answer and the model's -------------------------------


@pytest.mark.parametrize("facts", [FACTS, NEWER], ids=["6.12", "newer"])
@pytest.mark.parametrize("shuffled_seed", [None, 7])
@pytest.mark.parametrize("order", ORDERS)
def test_the_vectorised_answer_is_the_model_s(
    order: int, shuffled_seed: int | None, facts: dict[str, int]
) -> None:
    vma = uniform_mapping(order, 1024, shuffled_seed=shuffled_seed)
    states = {"fresh": fresh(vma, facts)}
    states["forked"] = fork(vma, states["fresh"], facts)
    states["orphaned"] = zap(vma, states["forked"], "child", facts)
    states["gone"] = zap(vma, states["orphaned"], "parent", facts)
    states["inherited"] = zap(vma, states["forked"], "parent", facts)
    states["discarded"] = zap(vma, states["fresh"], "parent", facts)
    for moment in MOMENTS:
        predicted = uniform(order, 1024, facts, PLACE, shuffled_seed=shuffled_seed, state=moment)
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
    """Lengths of the batches of one folio that is mapped from the first slot on."""
    held: list[int] = fresh(vma).parent.tolist()
    found, at = [], 0
    while at < len(held):
        nr = batch_length(
            pte,
            held,
            0,
            at,
            len(held) - at,
            keep_dirty=keep_dirty,
            keep_soft_dirty=keep_soft_dirty,
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
