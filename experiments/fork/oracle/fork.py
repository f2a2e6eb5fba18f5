# SPDX-License-Identifier: GPL-2.0-only
"""What memory must hold after copy_page_range() and after unmap_page_range(), entry by entry.

Rules of Linux on one mapping's entries and descriptors; each names its place in a tree of 6.12.
Locks, preemption and TLB flushes have no part in them: none of these shows in the result. Nor
does it show whether a process exits or calls munmap. What does show is where a batch ends:
`batched=False` is a kernel that takes every entry by itself.
"""

from collections import Counter
from collections.abc import Set as AbstractSet
from typing import Literal, TypeAlias

import numpy as np

from ream.oracle.mapping import (
    DEVICE_EXCLUSIVE,
    DEVICE_PRIVATE,
    STILL_MAPPED,
    Mapping,
    is_migration,
    is_one_of,
    is_swap,
)
from ream.oracle.meaning import meaning_of
from ream.oracle.memmap import Facts
from ream.oracle.mm_ids import PARENT

from .images import Rss, State, rss_of
from .memory import Features, Memory, batch_length

DEVICE_FLAGS = frozenset({"PFNMAP", "MIXEDMAP"})
"""Flags of a VMA whose frames are not reference counted."""

_OF_DEVICES = DEVICE_PRIVATE + DEVICE_EXCLUSIVE + STILL_MAPPED

Who: TypeAlias = Literal["parent", "child"]


def fork(mapping: Mapping, state: State, facts: Facts, *, batched: bool = True) -> State:
    """After copy_page_range() from the parent to a new child.

    On a state that has a child already it is the fork of the next one: what the first child
    holds stays counted, and the result has the entries of the second.
    Raises ValueError if the mapping has too few spare pages.
    """
    work = _Fork(mapping, state, facts, batched=batched)
    if needs_entries(mapping, facts):
        at = 0
        while at < mapping.nr_pages:
            at += work.copy(at)
    return State(
        place=state.place,
        parent=np.array(work.parent, np.uint64),
        child=np.array(work.child, np.uint64),
        descriptors=work.memory.octets,
        parent_rss=state.parent_rss,
        child_rss=rss_of(work.rss, facts),
        calls=work.memory.calls(swap_duplicates=work.rss["MM_SWAPENTS"], copies=tuple(work.copies)),
        taken=state.taken + len(work.copies),
        child_number=work.child_number,
    )


def zap(
    mapping: Mapping,
    state: State,
    who: Who,
    facts: Facts,
    *,
    pages: range | None = None,
    drop_markers: bool = True,
    even_cows: bool = True,
    batched: bool = True,
) -> State:
    """After unmap_page_range() in one process, when all references are dropped.

    pages: the slots to unmap, if not all. drop_markers: ZAP_FLAG_DROP_MARKER, which munmap and
    exit give and MADV_DONTNEED does not. even_cows: whether pages of the process's own go, too,
    which stay when a file is truncated. Raises ValueError if there is no child to unmap.
    """
    held = state.parent if who == "parent" else state.child
    if held is None:
        raise ValueError("no child to unmap: fork comes first")
    work = _Zap(
        mapping,
        state,
        facts,
        process=PARENT if who == "parent" else PARENT + state.child_number,
        entries=held.tolist(),
        flags=mapping.flags if who == "parent" else mapping.child_flags,
        drop_markers=drop_markers,
        even_cows=even_cows,
        batched=batched,
    )
    pages = range(mapping.nr_pages) if pages is None else pages
    at = pages.start
    while at < pages.stop:
        at += work.unmap(at, pages.stop)
    entries = np.array(work.entries, np.uint64)
    is_parent = who == "parent"
    return State(
        place=state.place,
        parent=entries if is_parent else state.parent,
        child=state.child if is_parent else entries,
        descriptors=work.memory.octets,
        parent_rss=_less(state.parent_rss, work.rss, facts) if is_parent else state.parent_rss,
        child_rss=state.child_rss if is_parent else _less(state.child_rss, work.rss, facts),
        calls=work.memory.calls(swap_frees=work.rss["MM_SWAPENTS"]),
        taken=state.taken,
        child_number=state.child_number,
    )


def _less(rss: Rss, counts: Counter[str], facts: Facts) -> Rss:
    return tuple(held - gone for held, gone in zip(rss, rss_of(counts, facts), strict=True))


def _uffd_wp(flags: AbstractSet[str], features: Features) -> bool:
    """Whether userfaultfd protects pages of the VMA; userfaultfd_wp(), userfaultfd_k.h."""
    return features.uffd_wp and "UFFD_WP" in flags


def needs_entries(mapping: Mapping, facts: Facts) -> bool:
    """Whether page faults could not fill the child's page tables as well.

    Source: vma_needs_copy(), mm/memory.c.
    """
    child_uffd_wp = _uffd_wp(mapping.child_flags, Features.of(facts))
    return child_uffd_wp or bool(mapping.flags & DEVICE_FLAGS) or mapping.has_anon_vma


class _Fork:
    """copy_page_range() under way."""

    def __init__(self, mapping: Mapping, state: State, facts: Facts, *, batched: bool) -> None:
        self.mapping = mapping
        has_child = state.child is not None and bool(state.child.any())
        self.child_number = state.child_number + has_child
        self.memory = Memory(state, facts, PARENT + self.child_number)
        self.parent: list[int] = state.parent.tolist()
        self.child = [0] * mapping.nr_pages
        self.rss: Counter[str] = Counter()
        self.copies: list[tuple[int, int]] = []
        self._state = state
        self._facts = facts
        self._features = Features.of(facts)
        self._pte = meaning_of(facts)
        self._first = mapping.pgoff(0)
        self._prot = self._pte.of_bits(mapping.page_prot)
        self._batched = batched
        self._child_uffd_wp = _uffd_wp(mapping.child_flags, self._features)

    def copy(self, at: int) -> int:
        """Deal with the entry at a slot; return for how many entries that was enough.

        Source: copy_pte_range(), copy_present_ptes(), mm/memory.c.
        """
        entry = self._pte.gathered(self.parent, self._first, at)
        if self._pte.none(entry):
            return 1
        if not self._pte.present(entry):
            if not is_one_of(
                DEVICE_EXCLUSIVE + STILL_MAPPED, self._pte.swap_type(entry), self._facts
            ):
                self._copy_nonpresent(at, entry)
                return 1
            entry = self.parent[at] = self._restored(entry)
        if self._pte.special(entry):
            self._enter(at, entry, 1)
            return 1
        return self._copy_mapped(at, entry)

    def _copy_mapped(self, at: int, entry: int) -> int:
        page = self.memory.page_at(self._pte.LAYOUT.decode(entry))
        nr, order = self._batch(at, page), self.memory.order(self.memory.head_of(page))
        if nr > 1:
            if self._share(page, nr):
                if any(self._pte.write(later) for later in self.parent[at + 1 : at + nr]):
                    entry = self._pte.mkwrite(entry)
                self._enter(at, entry, nr, order)
                return nr
            # One page to copy makes the whole batch fail. A page is allocated for its first
            # entry; if that one needs none, it is put back, and the rest is tried again.
            self._next_spare(at)
        if self._share(page, 1):
            self._enter(at, entry, 1, order)
        else:
            self._copy_page(at, page)
        return 1

    def _batch(self, at: int, page: int) -> int:
        limit = min(self.mapping.pages_to_pmd_end(at), self.mapping.nr_pages - at)
        if not self._batched:
            return 1
        flags = self.mapping.flags
        return batch_length(
            self._pte,
            self.parent,
            self._first,
            at,
            min(limit, self.memory.pages_to_folio_end(page)),
            keep_dirty="SHARED" not in flags,
            keep_soft_dirty=not self._features.soft_dirty or "SOFTDIRTY" not in flags,
        )

    def _share(self, page: int, nr: int) -> bool:
        """Map pages of one folio in the child as well; False, and no change, if one is pinned.

        The parent's device goes on writing to a page that is its own and pinned, so the child
        must not get that one. Whether a folio is pinned is asked when the new references are
        counted already. Source: folio_try_dup_anon_rmap_ptes(), include/linux/rmap.h.
        """
        head = self.memory.head_of(page)
        self.memory.add_references(page, nr)
        if (
            self.memory.anon(head)
            and self.mapping.has_pinned
            and self.memory.maybe_pinned(head)
            and self.memory.any_exclusive(page, nr)
        ):
            self.memory.add_references(page, -nr)
            return False
        self.memory.share(page, nr)
        self.rss[self.memory.counter(head)] += nr
        return True

    def _enter(self, at: int, entry: int, nr: int, order: int = 0) -> None:
        """Give the child entries as the first one is, and protect both sides from writing.

        order: of the folio that they map.

        Source: __copy_present_ptes(), mm/memory.c.
        """
        if self.mapping.copies_on_write and self._pte.write(entry):
            self._pte.wrprotect_entries(self.parent, self._first, at, nr)
            entry = self._pte.wrprotect(entry)
        if "SHARED" in self.mapping.flags:
            entry = self._pte.mkclean(entry)
        entry = self._pte.mkold(entry)
        if self._features.uffd_wp and not self._child_uffd_wp:
            entry = self._pte.clear_uffd_wp(entry)
        self._pte.set_entries(self.child, self._first, at, entry, nr, order=order)

    def _copy_page(self, at: int, page: int) -> None:
        """Give the child a copy in the next spare page; the parent keeps its own as it is.

        Source: copy_present_page(), mm/memory.c.
        """
        copy = self._next_spare(at)
        self.memory.make_anon(copy, self.mapping.pgoff(at))
        self.rss["MM_ANONPAGES"] += 1
        first_pfn = self._state.place.first_pfn
        self.copies.append((first_pfn + page, first_pfn + copy))
        entry = self._pte.LAYOUT.encode(first_pfn + copy, self._prot)
        entry = self._pte.mkdirty(entry, soft=self._features.soft_dirty)
        if "WRITE" in self.mapping.child_flags:
            entry = self._pte.mkwrite(entry)
        if self._child_uffd_wp and self._pte.uffd_wp(self.parent[at]):
            entry = self._pte.mkuffd_wp(entry)
        self.child[at] = entry

    def _next_spare(self, at: int) -> int:
        taken = self._state.taken + len(self.copies)
        if taken == self.mapping.nr_spares:
            raise ValueError(f"slot {at}: all {taken} spare pages are taken")
        return self.mapping.nr_folio_pages + taken

    def _restored(self, entry: int) -> int:
        """The entry as a CPU can use it again; the device has to ask anew.

        Source: restore_exclusive_pte(), mm/memory.c.
        """
        pfn = self._pte.swap_offset(entry)
        page = self.memory.page_at(pfn)
        still_mapped = is_one_of(STILL_MAPPED, self._pte.swap_type(entry), self._facts)
        if not still_mapped:
            self.memory.map_again(page)
        restored = self._pte.mkold(self._pte.LAYOUT.encode(pfn, self._prot))
        if entry & self._pte.SWP_SOFT_DIRTY:
            restored |= self._pte.SOFT_DIRTY
        if entry & self._pte.SWP_UFFD_WP:
            restored = self._pte.mkuffd_wp(restored)
        if still_mapped:
            return self._writable(restored, page)
        if entry & self._pte.SWP_UFFD_WP:
            return restored
        if self._pte.swap_type(entry) == self._facts["SWP_DEVICE_EXCLUSIVE_WRITE"]:
            restored = self._pte.mkdirty(restored, soft=self._features.soft_dirty)
            if "WRITE" in self.mapping.flags:
                restored = self._pte.mkwrite(restored)
        return restored

    def _writable(self, entry: int, page: int) -> int:
        """The entry of a page that a process may write without a fault, if it may.

        Source: can_change_private_pte_writable(), mm/mprotect.c.
        """
        flags = self.mapping.flags
        tracked = self._features.soft_dirty and "SOFTDIRTY" not in flags
        if (
            "WRITE" not in flags
            or (tracked and not entry & self._pte.SOFT_DIRTY)
            or (_uffd_wp(flags, self._features) and self._pte.uffd_wp(entry))
            or not self.memory.any_exclusive(page, 1)
        ):
            return entry
        if self.memory.dirty(self.memory.head_of(page)):
            entry = self._pte.mkdirty(entry, soft=self._features.soft_dirty)
        return self._pte.mkwrite(entry)

    def _copy_nonpresent(self, at: int, entry: int) -> None:
        """Source: copy_nonpresent_pte(), mm/memory.c."""
        facts = self._facts
        kind, offset = self._pte.swap_type(entry), self._pte.swap_offset(entry)
        if kind == facts["SWP_PTE_MARKER"]:
            self._copy_marker(at, offset)
            return
        if is_swap(kind, facts):
            # Both share what is in the swap file now.
            entry &= ~self._pte.SWP_EXCLUSIVE
            self.rss["MM_SWAPENTS"] += 1
        elif is_migration(kind, facts):
            self.rss[self.memory.counter(self.memory.head_of(self.memory.page_at(offset)))] += 1
            if kind != facts["SWP_MIGRATION_READ"] and self.mapping.copies_on_write:
                kept = (self._features.soft_dirty * self._pte.SWP_SOFT_DIRTY) | (
                    self._features.uffd_wp * self._pte.SWP_UFFD_WP
                )
                entry = self._pte.swap_entry(facts["SWP_MIGRATION_READ"], offset) | entry & kept
        elif is_one_of(DEVICE_PRIVATE, kind, facts):
            page = self.memory.page_at(offset)
            self.memory.add_references(page, 1)
            self.memory.share(page, 1)
            self.rss[self.memory.counter(self.memory.head_of(page))] += 1
            if kind == facts["SWP_DEVICE_WRITE"] and self.mapping.copies_on_write:
                kept = self._features.uffd_wp * self._pte.SWP_UFFD_WP
                entry = self._pte.swap_entry(facts["SWP_DEVICE_READ"], offset) | entry & kept
        self.parent[at] = entry
        if self._features.uffd_wp and not self._child_uffd_wp:
            entry &= ~self._pte.SWP_UFFD_WP
        self.child[at] = entry

    def _copy_marker(self, at: int, marker: int) -> None:
        """Copy a marker: poison to every child, uffd write protection to a registered one.

        Source: copy_pte_marker(), include/linux/mm_inline.h.
        """
        kept = self._facts["PTE_MARKER_POISONED"]
        if self._child_uffd_wp:
            kept |= self._facts["PTE_MARKER_UFFD_WP"]
        if marker & kept:
            self.child[at] = self._pte.swap_entry(self._facts["SWP_PTE_MARKER"], marker & kept)


class _Zap:
    """unmap_page_range() of one process under way."""

    def __init__(
        self,
        mapping: Mapping,
        state: State,
        facts: Facts,
        *,
        process: int,
        entries: list[int],
        flags: AbstractSet[str],
        drop_markers: bool,
        even_cows: bool,
        batched: bool,
    ) -> None:
        self.memory = Memory(state, facts, process)
        self.entries = entries
        self.rss: Counter[str] = Counter()
        self._mapping = mapping
        self._facts = facts
        self._batched = batched
        self._features = features = Features.of(facts)
        self._pte = meaning_of(facts)
        self._first = mapping.pgoff(0)
        self._drops_markers = drop_markers
        self._even_cows = even_cows
        self._keeps_marks = (
            not mapping.anonymous
            and not drop_markers
            and features.marks_uffd_wp
            and _uffd_wp(flags, features)
        )
        # Accesses in sequential or random order do not predict which pages are read again;
        # vma_has_recency(), include/linux/mm_inline.h.
        self._has_recency = not flags & {"SEQ_READ", "RAND_READ"}

    def unmap(self, at: int, end: int) -> int:
        """Deal with the entry at a slot; return for how many entries that was enough.

        Source: zap_pte_range(), zap_present_ptes(), mm/memory.c.
        """
        entry = self._pte.gathered(self.entries, self._first, at)
        if self._pte.none(entry):
            return 1
        if not self._pte.present(entry):
            self._unmap_nonpresent(at, entry)
            return 1
        if self._pte.special(entry):
            self._clear(at, 1, marked=self._pte.uffd_wp(entry))
            return 1
        page = self.memory.page_at(self._pte.LAYOUT.decode(entry))
        if self._stays(page):
            return 1
        nr = self._batch(at, end, page)
        self._unmap_mapped(at, nr, page)
        return nr

    def _batch(self, at: int, end: int, page: int) -> int:
        limit = min(self._mapping.pages_to_pmd_end(at), end - at)
        limit = min(limit, self.memory.pages_to_folio_end(page)) if self._batched else 1
        return batch_length(
            self._pte,
            self.entries,
            self._first,
            at,
            limit,
            keep_dirty=False,
            keep_soft_dirty=not self._features.soft_dirty,
        )

    def _unmap_mapped(self, at: int, nr: int, page: int) -> None:
        """Source: zap_present_folio_ptes(), mm/memory.c."""
        head = self.memory.head_of(page)
        self._pte.unfold_ends(self.entries, self._first, at, nr)
        held = self.entries[at : at + nr]
        if not self.memory.anon(head):
            if any(self._pte.dirty(entry) for entry in held):
                self.memory.dirtied(head)
            if self._has_recency and any(self._pte.young(entry) for entry in held):
                self.memory.accessed(head)
        self.rss[self.memory.counter(head)] += nr
        self._clear(at, nr, marked=self._pte.uffd_wp(held[0]))
        self.memory.unmap(page, nr)
        self.memory.drop_references(page, nr)

    def _stays(self, page: int) -> bool:
        """Whether it is the process's own; source: should_zap_folio(), mm/memory.c."""
        return not self._even_cows and self.memory.anon(self.memory.head_of(page))

    def _unmap_nonpresent(self, at: int, entry: int) -> None:
        """Source: zap_pte_range(), mm/memory.c."""
        facts = self._facts
        kind, offset = self._pte.swap_type(entry), self._pte.swap_offset(entry)
        is_mark = kind == facts["SWP_PTE_MARKER"] and offset & facts["PTE_MARKER_UFFD_WP"]
        if is_migration(kind, facts) or is_one_of(_OF_DEVICES, kind, facts):
            if self._stays(self.memory.page_at(offset)):
                return
        elif not is_mark and not self._even_cows:
            return
        if is_swap(kind, facts):
            self.rss["MM_SWAPENTS"] += 1
        elif is_migration(kind, facts):
            self.rss[self.memory.counter(self.memory.head_of(self.memory.page_at(offset)))] += 1
        elif is_one_of(_OF_DEVICES, kind, facts):
            page = self.memory.page_at(offset)
            self.rss[self.memory.counter(self.memory.head_of(page))] += 1
            if is_one_of(DEVICE_PRIVATE + STILL_MAPPED, kind, facts):
                self.memory.unmap(page, 1)
            self.memory.drop_references(page, 1)
        elif is_mark and not self._mapping.anonymous and not self._drops_markers:
            return
        self._clear(at, 1, marked=bool(is_mark or entry & self._pte.SWP_UFFD_WP))

    def _clear(self, at: int, nr: int, *, marked: bool) -> None:
        """No entries, or marks where userfaultfd must still hear of a write to a file's page.

        Source: zap_install_uffd_wp_if_needed(), mm/memory.c.
        """
        mark = self._pte.swap_entry(
            self._facts["SWP_PTE_MARKER"], self._facts["PTE_MARKER_UFFD_WP"]
        )
        left = mark if marked and self._keeps_marks else 0
        self.entries[at : at + nr] = [left] * nr
