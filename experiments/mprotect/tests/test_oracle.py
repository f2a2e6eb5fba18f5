# SPDX-License-Identifier: GPL-2.0-only
"""The oracle of mprotect() against cases worked by hand, and against itself."""

from collections.abc import Mapping as Facts
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from experiments.fork.oracle.cases import CLEAN, READ_ONLY, cached, owned, placed, run
from experiments.fork.oracle.images import initial
from experiments.fork.oracle.mixture import random_mapping
from experiments.fork.tests.world import PLACE
from experiments.mprotect.oracle.change import Change, Changed, change_protection
from experiments.mprotect.oracle.mappings import correctness_mappings
from experiments.mprotect.oracle.requests import (
    hint,
    part,
    protect_by_uffd,
    resolve_by_uffd,
    to_none,
    to_read,
    to_write,
    tracked,
)
from experiments.mprotect.oracle.uniform import Kind, uniform_change
from experiments.mprotect.tests.world import (
    ARM64,
    ARM64_NEWER,
    FACTS,
    changed,
    facts_for,
    flags,
    words,
)
from ream.oracle import pte
from ream.oracle.flushes import WORD
from ream.oracle.mapping import SHARED, WRITTEN, Mapping, Present
from ream.oracle.meaning import meaning_of

CASES = correctness_mappings()
PAGES = range(16)
READABLE = pte.PRESENT | pte.USER | pte.NX | pte.ACCESSED


def test_a_dirty_page_that_is_protected_stays_dirty_but_is_no_shadow_stack() -> None:
    entry = pte.modify(pte.X86_64.encode(7, WRITTEN), READABLE)
    assert entry == 7 << 12 | READABLE | pte.SAVED_DIRTY


def test_the_frame_of_a_page_without_access_is_complemented() -> None:
    entry = pte.modify(pte.X86_64.encode(7, WRITTEN), pte.PROTNONE | pte.ACCESSED)
    assert entry & pte.PFN_MASK == ~(7 << 12) & pte.PFN_MASK
    assert entry & ~pte.PFN_MASK == pte.PROTNONE | pte.ACCESSED | pte.SAVED_DIRTY


def test_to_take_all_access_and_give_it_back_changes_nothing_of_own_pages() -> None:
    vma = Mapping(run(0, PAGES), placed(owned(4)))
    before = initial(vma, FACTS, PLACE).parent
    none = change_protection(vma, before, to_none(vma), FACTS, batched=False)
    again = change_protection(vma, none.entries, to_write(vma), FACTS, batched=False)
    assert np.array_equal(again.entries, before)
    assert (none.nr_flushes, again.nr_flushes) == (1, 0)  # what is not PRESENT is not cached
    assert (none.nr_pages, again.nr_pages) == (16, 16)


def test_pages_become_writable_that_are_exclusive_and_no_others() -> None:
    own = [page for page in PAGES if page not in {3, 8}]
    vma = Mapping(run(0, PAGES, READ_ONLY), placed(owned(4, own)))
    for batched in (False, True):
        result = changed(vma, to_write(vma), batched=batched)
        assert [bool(word & pte.RW) for word in words(result)] == [page in own for page in PAGES]


def test_a_batch_that_begins_within_a_folio_asks_its_own_pages() -> None:
    vma = Mapping(run(0, range(4, 16), READ_ONLY), placed(owned(4, range(4))))
    assert not any(word & pte.RW for word in words(changed(vma, to_write(vma), batched=True)))


def test_no_entry_becomes_writable_because_the_first_of_its_batch_is() -> None:
    vma = CASES["writable-first"]
    result = words(changed(vma, to_write(vma), batched=True))
    assert [bool(word & pte.RW) for word in result] == [True] + [False] * 15


def test_of_shared_memory_what_is_dirty_becomes_writable_if_writes_are_notified() -> None:
    slots = tuple(Present(0, page, READ_ONLY if page == 5 else CLEAN) for page in PAGES)
    vma = Mapping(slots, placed(cached(4, swapbacked=True)), flags=SHARED, anonymous=False)
    change = to_write(vma, notified=True)
    single = words(changed(vma, change))
    assert [bool(word & pte.RW) for word in single] == [page == 5 for page in PAGES]
    batch = words(changed(vma, change, batched=True))
    assert all(word & pte.RW and pte.dirty(word) and pte.soft_dirty(word) for word in batch)


def test_a_shared_page_is_writable_by_its_protection_if_nobody_is_notified() -> None:
    vma = CASES["shared-read-only-clean"]
    assert all(word & pte.RW for word in words(changed(vma, to_write(vma))))


def test_where_soft_dirty_is_tracked_the_first_write_faults() -> None:
    vma = Mapping(run(0, PAGES, READ_ONLY, READ_ONLY | pte.SOFT_DIRTY), placed(owned(4)))
    result = words(changed(vma, tracked(to_write(vma))))
    assert [bool(word & pte.RW) for word in result] == [False] + [True] * 15


def test_userfaultfd_protects_and_gives_back() -> None:
    vma = Mapping(run(0, PAGES), placed(owned(4)))
    protected = changed(vma, protect_by_uffd(vma))
    assert set(flags(protected)) == {pte.mkuffd_wp(WRITTEN)}
    back = change_protection(vma, protected.entries, resolve_by_uffd(vma), FACTS, batched=False)
    assert set(flags(back)) == {WRITTEN}


def test_hints_are_for_pages_that_could_move() -> None:
    vma = CASES["protnone-two-folios"]
    assert changed(vma, hint(vma, mm_users=2)).nr_pages == 0  # they have them already
    vma = Mapping(run(0, PAGES), placed(owned(4)))
    assert changed(vma, hint(vma, mm_users=2)).nr_pages == 16
    assert changed(vma, hint(vma, mm_users=1)).nr_pages == 0  # the page is where its user is
    pinned = Mapping(run(0, PAGES), placed(owned(4, pins=1)))
    assert changed(pinned, hint(pinned, mm_users=2)).nr_pages == 0


def test_only_the_range_asked_for_changes_and_is_flushed() -> None:
    vma = Mapping(run(0, PAGES), placed(owned(4)))
    result = changed(vma, part(to_read(vma), 5, 3), batched=True)
    assert [bool(word & pte.RW) for word in words(result)] == [not 5 <= at < 8 for at in PAGES]
    assert result.flush_start == vma.address + 5 * 4096
    assert result.flush_end == vma.address + 8 * 4096
    twice = changed(vma, part(to_read(vma), 4, 2, nr_calls=2))
    assert (twice.nr_pages, twice.nr_flushes) == (4, 2)


def test_what_another_cpu_or_reclaim_owes_is_flushed_whole() -> None:
    vma = Mapping(run(0, PAGES, READ_ONLY), placed(owned(4)))
    result = changed(vma, replace(to_read(vma), overlapped=True))
    assert (result.nr_flushes, result.flush_start, result.flush_end) == (2, 0, WORD)


@pytest.mark.parametrize(
    ("before", "after", "flushed"),
    [
        (WRITTEN, READ_ONLY, True),
        (READ_ONLY, WRITTEN, True),
        (READ_ONLY, READ_ONLY & ~pte.ACCESSED, False),
        (READ_ONLY, READ_ONLY | pte.SOFT_DIRTY, False),
        (pte.PROTNONE, WRITTEN, False),
        (WRITTEN, pte.mkclean(WRITTEN), True),
        (pte.mkclean(WRITTEN), WRITTEN, False),
        (READ_ONLY, READ_ONLY | 1 << 59, True),
    ],
)
def test_a_translation_is_flushed_if_it_could_be_used_wrongly(
    before: int, after: int, flushed: bool
) -> None:
    assert pte.needs_flush(before, after) is flushed


def _changes(vma: Mapping) -> list[Change]:
    return [to_read(vma), to_write(vma), to_none(vma), tracked(to_write(vma)), hint(vma, 2)]


def _check_rules(vma: Mapping) -> None:
    """Check what every change preserves: page, history, and which processes may write."""
    before = [int(word) for word in initial(vma, facts_for(vma), PLACE).parent]
    for change in _changes(vma):
        for batched in (False, True):
            result = words(changed(vma, change, batched=batched))
            for slot, was, entry in zip(vma.slots, before, result, strict=True):
                if not pte.present(was):
                    continue
                assert pte.X86_64.decode(entry) == pte.X86_64.decode(was)
                assert pte.dirty(entry) >= pte.dirty(was)
                assert pte.young(entry) >= pte.young(was)
                assert pte.soft_dirty(entry) >= pte.soft_dirty(was)
                assert entry & pte.RW or not entry & pte.DIRTY
                if entry & pte.RW and not was & pte.RW and "SHARED" not in vma.flags:
                    assert isinstance(slot, Present)
                    assert slot.page in vma.folios[slot.folio].exclusive


@pytest.mark.parametrize("name", CASES)
def test_no_change_loses_a_page_its_history_or_its_privacy(name: str) -> None:
    _check_rules(CASES[name])


@given(st.integers(0, 1 << 32))
def test_no_change_of_a_mixture_does_either(seed: int) -> None:
    _check_rules(random_mapping(seed))


def test_mappings_tell_kernels_that_batch_from_those_that_do_not() -> None:
    told = {
        name
        for name, vma in CASES.items()
        for change in _changes(vma)
        if words(changed(vma, change)) != words(changed(vma, change, batched=True))
    }
    assert {"young-and-old", "one-clean-private"} <= told


def _counts(one: Changed) -> tuple[int, int, int, int]:
    return one.nr_pages, one.nr_flushes, one.flush_start, one.flush_end


OPERATIONS = ("rw-to-r", "r-to-rw", "rw-to-none", "none-to-rw")


KINDS = st.builds(
    Kind,
    order=st.sampled_from((0, 2, 4)),
    nr_ptes=st.just(48),
    operation=st.sampled_from(OPERATIONS),
    shared=st.booleans(),
    scattered=st.booleans(),
    every=st.sampled_from((1, 2)),
    shared_every=st.sampled_from((0, 1, 5)),
    mixed=st.booleans(),
    folded=st.booleans(),
)

BECOME_ALIKE = Kind(4, 48, "rw-to-r", shared=False, scattered=False, every=1, shared_every=5)
"""Entries of blocks that could be folded by then, but of which the last are not written alone."""


@given(KINDS, st.sampled_from((1, 3)), st.sampled_from((FACTS, ARM64, ARM64_NEWER)))
@example(BECOME_ALIKE, 1, ARM64)
def test_what_is_timed_is_what_the_rules_say_entry_by_entry(
    kind: Kind, nr_calls: int, facts: Facts[str, int]
) -> None:
    layout = meaning_of(facts).LAYOUT
    if kind.shared:
        kind = replace(kind, shared_every=0)
    if kind.order:
        kind = replace(kind, mixed=False)
    order, shared = kind.order, kind.shared
    made = uniform_change(kind, nr_calls, facts, PLACE)
    slots = []
    own = 1 << FACTS["PG_anon_exclusive"]
    for word in made.entries:
        page = layout.decode(int(word)) - PLACE.first_pfn if word else None
        slots.append(None if page is None else Present(page >> order, page % (1 << order)))
    exclusive = (made.descriptors[:, :8].copy().view("<u8")[:, 0] & np.uint64(own)) != 0
    folio = cached(order, swapbacked=True) if shared else owned(order)
    folios = tuple(
        replace(
            folio,
            first_page=first,
            exclusive=frozenset(np.flatnonzero(exclusive[first : first + (1 << order)]).tolist()),
        )
        for first in range(0, len(exclusive), 1 << order)
    )
    flags = SHARED if shared else Mapping((None,), ()).flags
    vma = Mapping(tuple(slots), folios, made.address, flags=flags, anonymous=not shared)
    kinds = ((False, True, made.single), (True, True, made.after), (True, False, made.single))
    for batched, at_once, after in kinds:
        result = change_protection(
            vma, made.entries, made.change, facts, batched=batched, at_once=at_once
        )
        assert words(result) == words(after)
        assert _counts(result) == _counts(after)
