# SPDX-License-Identifier: GPL-2.0-only
"""Descriptors while an operation is worked out on them: references, mappings, exclusiveness.

Pages are named by their index from Place.first_pfn on. All mapcounts are stored less 1.
"""

from dataclasses import dataclass

from ream.oracle.mapping import Place
from ream.oracle.meaning import Meaning
from ream.oracle.memmap import Facts, first_tail_dtype, head_of
from ream.oracle.mm_ids import are_kept, read_owners, write_owners

from .images import Calls, State, no_calls, page_dtype

_ORDER_MASK = 0xFF  # of folio->_flags_1


@dataclass(frozen=True)
class Features:
    """What a build makes of bits that others leave alone."""

    soft_dirty: bool
    uffd_wp: bool
    marks_uffd_wp: bool

    @classmethod
    def of(cls, facts: Facts) -> "Features":
        """Features that the build's configuration enables."""
        return cls(
            soft_dirty=bool(facts["MEM_SOFT_DIRTY"]),
            uffd_wp=bool(facts["HAVE_ARCH_USERFAULTFD_WP"]),
            marks_uffd_wp=bool(facts["MARKS_UFFD_WP"]),
        )


class Memory:
    """A copy of a state's descriptors that an operation may change, and the calls it makes.

    process: the number of whose mappings become more or less.
    """

    def __init__(self, state: State, facts: Facts, process: int) -> None:
        self._process = process
        self.octets = state.descriptors.copy()
        self._facts = facts
        self._place: Place = state.place
        flat = self.octets.reshape(-1)
        self._pages = flat.view(page_dtype(facts))
        self._tails = flat.view(first_tail_dtype(facts))
        self._exclusive = 1 << facts["PG_anon_exclusive"]
        self._calls = no_calls(len(self.octets))
        self._unmapped = {True: 0, False: 0}

    def page_at(self, pfn: int) -> int:
        """The index of a frame's descriptor."""
        page = pfn - self._place.first_pfn
        assert 0 <= page < len(self._pages), f"frame {pfn:#x} has no descriptor here"
        return page

    def head_of(self, page: int) -> int:
        """The first page of its folio; source: page_folio(), include/linux/page-flags.h."""
        size = self._facts["sizeof.page"]
        link = int(self._pages["compound_head"][page])
        return (head_of(link, self._place.map + page * size, self._facts) - self._place.map) // size

    def pages_to_folio_end(self, page: int) -> int:
        """Pages of its folio from this one on."""
        head = self.head_of(page)
        return head + (1 << self.order(head)) - page

    def order(self, head: int) -> int:
        """2^order pages are in the folio."""
        if not int(self._pages["flags"][head]) >> self._facts["PG_head"] & 1:
            return 0
        return int(self._tails["_flags_1"][head + 1]) & _ORDER_MASK

    def anon(self, head: int) -> bool:
        """Whether the folio is of anonymous memory; source: folio_test_anon()."""
        return bool(int(self._pages["mapping"][head]) & self._facts["PAGE_MAPPING_ANON"])

    def counter(self, head: int) -> str:
        """The counter of an mm that its pages are in; source: mm_counter(), linux/mm.h."""
        if self.anon(head):
            return "MM_ANONPAGES"
        shmem = int(self._pages["flags"][head]) >> self._facts["PG_swapbacked"] & 1
        return "MM_SHMEMPAGES" if shmem else "MM_FILEPAGES"

    def maybe_pinned(self, head: int) -> bool:
        """Whether the folio may be pinned: a small one that has many references may be, too.

        Source: folio_maybe_dma_pinned(), include/linux/mm.h.
        """
        if self.order(head):
            return bool(self._tails["_pincount"][head + 1] > 0)
        return bool(self._pages["_refcount"][head] >= self._facts["GUP_PIN_COUNTING_BIAS"])

    def dirty(self, head: int) -> bool:
        """Whether the folio is (PG_dirty)."""
        return bool(int(self._pages["flags"][head]) >> self._facts["PG_dirty"] & 1)

    def any_exclusive(self, page: int, nr_pages: int) -> bool:
        """Whether one of them is the mapping process's own (PG_anon_exclusive)."""
        flags = self._pages["flags"][page : page + nr_pages]
        return any(int(word) & self._exclusive for word in flags)

    def add_references(self, page: int, nr: int) -> None:
        """Add nr references to the folio of a page. A negative nr takes back added ones."""
        self._pages["_refcount"][self.head_of(page)] += nr

    def drop_references(self, page: int, nr: int) -> None:
        """Drop nr references of a page's folio. The last one frees it and changes nothing else."""
        head = self.head_of(page)
        self._pages["_refcount"][head] -= nr
        if self._pages["_refcount"][head] == 0:
            self._calls.freed[head] += 1

    def map_again(self, page: int) -> None:
        """Map a page of a small folio whose entry was of another kind for a while.

        Source: folio_add_anon_rmap_pte(), mm/rmap.c, with RMAP_NONE.
        """
        self._pages["_mapcount"][page] += 1

    def share(self, page: int, nr_pages: int) -> None:
        """Map them once more; anonymous ones are nobody's own any longer.

        Source: folio_try_dup_anon_rmap_ptes(), folio_dup_file_rmap_ptes(), linux/rmap.h. The
        number of mapped pages stays: they all were mapped.
        """
        head = self.head_of(page)
        for at in range(page, page + nr_pages):
            if self.anon(head):
                self._pages["flags"][at] &= ~self._exclusive & (1 << 64) - 1
            self._pages["_mapcount"][at] += 1
        if self.order(head):
            self._count(head, nr_pages)

    def unmap(self, page: int, nr_pages: int) -> None:
        """Map them once less, in one step.

        A folio some of whose pages lose their last mapping here, but not all have lost it, is
        partially mapped: one call, as the stub of deferred_split_folio() sets no flag.
        Source: folio_remove_rmap_ptes(), mm/rmap.c.
        """
        head = self.head_of(page)
        last = 0
        for at in range(page, page + nr_pages):
            self._pages["_mapcount"][at] -= 1
            last += int(self._pages["_mapcount"][at] == -1)
        if self.order(head):
            self._count(head, -nr_pages)
            self._tails["_nr_pages_mapped"][head + 1] -= last
            left = int(self._tails["_nr_pages_mapped"][head + 1])
            if left >= self._facts["ENTIRELY_MAPPED"]:
                last = 0
            if last and left and self.anon(head):
                self._calls.deferred[head] += 1
        self._unmapped[self.anon(head)] += last

    def _count(self, head: int, nr_more: int) -> None:
        """Count mappings of a large folio; below 0 there are fewer."""
        self._tails["_large_mapcount"][head + 1] += nr_more
        if not are_kept(self._tails):
            return
        total = int(self._tails["_large_mapcount"][head + 1]) + 1
        owners = read_owners(self._tails, head + 1, self._facts)
        if nr_more > 0:
            owners = owners.mapped(self._process, nr_more, total)
        else:
            owners = owners.unmapped(self._process, -nr_more, total)
        write_owners(self._tails[head + 1 : head + 2], owners, self._facts)

    def make_anon(self, page: int, index: int) -> None:
        """Make a spare page the copy of an anonymous page, mapped once, its process's own.

        Source: folio_add_new_anon_rmap(), mm/rmap.c, after __folio_mark_uptodate(); the stub of
        folio_add_lru_vma() does nothing.
        """
        for name in ("PG_uptodate", "PG_swapbacked", "PG_anon_exclusive"):
            self._pages["flags"][page] |= 1 << self._facts[name]
        self._pages["mapping"][page] = self._place.anon_vma + self._facts["PAGE_MAPPING_ANON"]
        self._pages["index"][page] = index
        self._pages["_mapcount"][page] = 0

    def dirtied(self, page: int) -> None:
        """folio_mark_dirty() was called."""
        self._calls.dirtied[self.head_of(page)] += 1

    def accessed(self, page: int) -> None:
        """folio_mark_accessed() was called."""
        self._calls.accessed[self.head_of(page)] += 1

    def calls(
        self,
        *,
        swap_duplicates: int = 0,
        swap_frees: int = 0,
        copies: tuple[tuple[int, int], ...] = (),
    ) -> Calls:
        """What was called, with what only the page tables know."""
        return Calls(
            deferred=self._calls.deferred,
            dirtied=self._calls.dirtied,
            accessed=self._calls.accessed,
            freed=self._calls.freed,
            swap_duplicates=swap_duplicates,
            swap_frees=swap_frees,
            copies=copies,
            unmapped_anon=self._unmapped[True],
            unmapped_file=self._unmapped[False],
        )


def batch_length(
    of_arch: Meaning,
    entries: list[int],
    first: int,
    at: int,
    limit: int,
    *,
    keep_dirty: bool,
    keep_soft_dirty: bool,
    keep_write: bool = False,
) -> int:
    """How many entries from `at` on are taken together, at most `limit`.

    Those that map the next page each and differ only in ACCESSED, and in RW, the dirty and the
    soft-dirty bits unless these are kept apart; RW=0 with a saved dirty bit is as RW=1 with
    hardware's. first: the page number of the address of the first entry of all.
    Source: folio_pte_batch(), mm/internal.h.
    """

    def what_counts(entry: int) -> int:
        if not keep_dirty:
            entry = of_arch.mkclean(entry)
        if not keep_soft_dirty:
            entry = of_arch.clear_soft_dirty(entry)
        return of_arch.mkold(entry if keep_write else of_arch.wrprotect(entry))

    wanted = what_counts(of_arch.gathered(entries, first, at))
    for nr in range(1, limit):
        is_next = what_counts(of_arch.gathered(entries, first, at + nr))
        if is_next != of_arch.LAYOUT.advance(wanted, nr):
            return nr
    return limit
