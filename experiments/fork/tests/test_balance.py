# SPDX-License-Identifier: GPL-2.0-only
"""Fork and unmap keep counts in balance for every mapping; a wrong rule breaks the balance."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.fork.oracle.fork import fork, zap
from experiments.fork.oracle.images import (
    State,
    page_dtype,
)
from experiments.fork.oracle.memory import Memory
from experiments.fork.oracle.mixture import random_mapping
from experiments.fork.tests.world import (
    CASES,
    FACTS,
    NEWER,
    PLACE,
    SEEDS,
    child_of,
    differing,
    exclusive,
    facts_for,
    fresh,
    pages,
    story,
    tails,
)
from ream.oracle import pte
from ream.oracle.mapping import (
    DEVICE_EXCLUSIVE,
    DEVICE_PRIVATE,
    STILL_MAPPED,
    NonPresent,
    is_one_of,
)
from ream.oracle.mapping import Mapping as Vma
from ream.oracle.memmap import Facts
from ream.oracle.mm_ids import PARENT, read_owners
from ream.oracle.pte import swap_offset, swap_type

MAPPING = DEVICE_PRIVATE + STILL_MAPPED
"""Kinds of entries that are not present, and count as mappings."""

# --- Of every mapping -----------------------------------------------------------------------

every_mapping = pytest.mark.parametrize("name", CASES)


def balance(vma: Vma, state: State, mappers: list[list[int]], facts: Facts = FACTS) -> None:
    """What the descriptors count is what the page tables and the folios' other holders hold."""
    mapped, held_by_device = np.zeros((2, vma.nr_descriptors), np.int64)
    for entries in mappers:
        for entry in entries:
            kind, page = swap_type(entry), swap_offset(entry) - PLACE.first_pfn
            if pte.present(entry) and not pte.special(entry):
                mapped[pte.X86_64.decode(entry) - PLACE.first_pfn] += 1
            elif entry and not pte.present(entry) and is_one_of(MAPPING, kind, facts):
                mapped[page] += 1
            elif entry and not pte.present(entry) and is_one_of(DEVICE_EXCLUSIVE, kind, facts):
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


def judge(vma: Vma, facts: Facts = FACTS) -> None:
    """The invariants of one mapping's whole life."""
    before, after, orphaned, _, again, gone = story(vma, facts)
    parent, child = after.parent.tolist(), child_of(after)
    balance(vma, before, [before.parent.tolist()], facts)
    balance(vma, after, [parent, child], facts)
    balance(vma, orphaned, [parent], facts)
    balance(vma, again, [parent], facts)
    balance(vma, gone, [], facts)
    assert gone.parent_rss == gone.child_rss == orphaned.child_rss == (0, 0, 0, 0)
    assert not gone.parent.any()

    copied = {copy for _, copy in after.calls.copies}
    for entry in child:
        if pte.present(entry) and not pte.special(entry):
            pfn = pte.X86_64.decode(entry)
            own = bool(exclusive(after)[pfn - PLACE.first_pfn])
            if own != (pfn in copied):  # of a file's page the bit says something else
                assert not Memory(after, facts, PARENT).anon(pfn - PLACE.first_pfn)
            assert pfn in copied or not (vma.copies_on_write and pte.write(entry))
    # After fork and the child's end the parent is as before, but for write and exclusive bits.
    flags = pages(before)["flags"] & ~np.uint64(1 << facts["PG_anon_exclusive"])
    nr_own = vma.nr_folio_pages
    assert np.array_equal(
        flags[:nr_own],
        pages(orphaned)["flags"][:nr_own] & ~np.uint64(1 << facts["PG_anon_exclusive"]),
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
    assert () in (CASES[name].missing_facts(FACTS), CASES[name].missing_facts(NEWER))
    for facts in (FACTS, NEWER):
        if not CASES[name].missing_facts(facts):
            judge(CASES[name], facts)


@given(seed=SEEDS)
@settings(deadline=None, max_examples=60)
def test_any_mixture_keeps_the_balance(seed: int) -> None:
    judge(random_mapping(seed))
    judge(random_mapping(seed), NEWER)


def judge_owners(vma: Vma, state: State, mappers: dict[int, list[int]]) -> None:
    """A folio is marked shared if several processes map it; a slot has its process's mapcount."""
    for folio in vma.folios:
        if not folio.order or folio.mapped_elsewhere or folio.pmds_elsewhere:
            continue
        first = PLACE.first_pfn + folio.first_page
        frames = range(first, first + folio.nr_pages)
        held = {mm: sum(maps(entry, frames) for entry in held) for mm, held in mappers.items()}
        now = read_owners(tails(state, NEWER), folio.first_page + 1, NEWER)
        assert dict((now.first, now.second)) | {0: 0} == {
            mm: nr for mm, nr in held.items() if nr
        } | {0: 0}
        assert now.shared == (len([nr for nr in held.values() if nr]) > 1)


def maps(entry: int, frames: range) -> bool:
    if pte.present(entry):
        return not pte.special(entry) and pte.X86_64.decode(entry) in frames
    kind = swap_type(entry)
    return bool(entry) and is_one_of(MAPPING, kind, NEWER) and swap_offset(entry) in frames


def judge_all_owners(vma: Vma) -> None:
    before, after, orphaned, again, _, gone = story(vma, NEWER)
    inherited = zap(vma, after, "parent", NEWER)
    parent, child = after.parent.tolist(), child_of(after)
    judge_owners(vma, before, {PARENT: before.parent.tolist()})
    judge_owners(vma, after, {PARENT: parent, PARENT + 1: child})
    judge_owners(vma, orphaned, {PARENT: parent})
    judge_owners(vma, again, {PARENT: parent, PARENT + again.child_number: child_of(again)})
    judge_owners(vma, inherited, {PARENT + 1: child})
    judge_owners(vma, gone, {})


@every_mapping
def test_whoever_maps_a_named_mapping_s_folios_is_known(name: str) -> None:
    if not CASES[name].missing_facts(NEWER):
        judge_all_owners(CASES[name])


@given(seed=SEEDS)
@settings(deadline=None, max_examples=40)
def test_whoever_maps_a_mixture_s_folios_is_known(seed: int) -> None:
    judge_all_owners(random_mapping(seed))


def split_matters_only_to_bits(vma: Vma) -> None:
    facts = facts_for(vma)
    before = fresh(vma, facts)
    batched, single = fork(vma, before, facts), fork(vma, before, facts, batched=False)
    assert differing(batched, single) <= {"child"}
    may_differ = pte.SOFT_DIRTY | (pte.RW if "SHARED" in vma.flags else 0)
    for one, other in zip(child_of(batched), child_of(single), strict=True):
        assert (one ^ other) & ~may_differ == 0
    assert differing(
        zap(vma, batched, "parent", facts), zap(vma, batched, "parent", facts, batched=False)
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
    right = {case: story(vma, facts_for(vma)) for case, vma in small.items()}
    monkeypatch.setattr(home, name, wrong(getattr(home, name)))
    assert any(found(vma, right[case]) for case, vma in small.items())


def found(vma: Vma, right: list[State]) -> bool:
    """Whether the rules as they are now tell another story, or none."""
    try:
        now = [right[0], fork(vma, right[0], facts_for(vma))]
        now.append(zap(vma, right[1], "child", facts_for(vma)))
    except AssertionError:
        return True
    return any(differing(one, other) for one, other in zip(now, right, strict=False))
