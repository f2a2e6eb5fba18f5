# SPDX-License-Identifier: GPL-2.0-only
"""Migrations that are timed: a buffer of folios that are alike, and nothing in their way.

uniform() is the answer, vectorised; ream.oracle.migrate comes to the same, folio by folio.
"""

from dataclasses import dataclass
from itertools import count

import numpy as np
from numpy.typing import NDArray

from experiments.fork.oracle.images import Words, uniform_order_of_folios
from ream.oracle.mapping import PAGE_SHIFT, PAGES_PER_PMD
from ream.oracle.memmap import Facts

from .call import EVENTS
from .folios import (
    PMD_ORDER,
    READ_ONLY,
    STOCK_LIMIT,
    BatchLimit,
    Folio,
    Mapped,
    Migration,
    Mode,
    Place,
    PteBits,
)
from .images import (
    Member,
    Memory,
    State,
    empty_tables,
    entry,
    index_of,
    restored,
    restored_huge,
)
from .migrate import ANYTHING, After, node_stats_of

ORDERS = range(PMD_ORDER + 1)


@dataclass(frozen=True)
class Kind:
    """A buffer of folios of one order, and how it is moved.

    Each page was written by its only process; with two mappings, by the parent before a fork.
    total_bytes: of all folios. shuffled_seed: for folios in another order on the list, and by
    address, than in memory. mode, reason, limit, spread, folios_per_call: as Migration has
    them. one_node: targets are on the sources' own node; only of small folios, which wait in no
    queue.
    """

    order: int
    total_bytes: int
    mapped: Mapped = "ptes"
    nr_mappings: int = 1
    shuffled_seed: int | None = None
    mode: Mode = "async"
    reason: str = "SYSCALL"
    limit: BatchLimit = STOCK_LIMIT
    spread: int = 1
    folios_per_call: int | None = None
    one_node: bool = False

    @property
    def nr_pages(self) -> int:
        """Frames of the sources, those between folios included."""
        return (self.total_bytes >> PAGE_SHIFT) * self.spread

    @property
    def folio(self) -> Folio:
        return _folio(self.order, self.mapped, self.nr_mappings)

    def listed(self) -> NDArray[np.int64]:
        """The folios' numbers in memory, in the order of the list."""
        pages = self.total_bytes >> PAGE_SHIFT
        return uniform_order_of_folios(self.order, pages, self.shuffled_seed)


def uniform_migration(kind: Kind) -> Migration:
    """The migration that uniform() predicts; what it says is looked at folio by folio.

    Raises ValueError as uniform() does.
    """
    order_of_list = tuple(kind.listed().tolist())
    return Migration(
        *((kind.folio,) * len(order_of_list), kind.mode, kind.reason),
        *(kind.limit, order_of_list),
        spread=kind.spread,
        folios_per_call=kind.folios_per_call,
    )


def uniform(
    kind: Kind, facts: Facts, place: Place, *, batched: bool = False
) -> tuple[State, After]:
    """Memory before, and all that must come of migrating a buffer of one order of folios.

    batched: as migrate() has it.
    Raises ValueError unless total_bytes are whole folios, and as Migration does.
    """
    folio = kind.folio
    asked = Migration(
        *((folio,), kind.mode, kind.reason, kind.limit),
        spread=kind.spread,
        folios_per_call=kind.folios_per_call,
    )
    buffer = _Buffer(folio, (kind.listed() << kind.order) * kind.spread, asked, place, facts)
    before, memory = buffer.before()
    queues = folio.queues and not batched
    buffer.move(memory, kind.reason, queues=queues)
    state = State(memory.octets["src"], memory.octets["dst"], *buffer.tables(moved=True))
    return before, _after(buffer, state, queues=queues)


def _folio(order: int, mapped: Mapped, nr_mappings: int) -> Folio:
    bits = PteBits() if nr_mappings == 1 else READ_ONLY
    return Folio(order, (bits,), mapped, nr_mappings=nr_mappings)


@dataclass(frozen=True, eq=False)
class _Buffer:
    """Folios that are alike, side by side or spread.

    heads: their first pages, in the order of the lists. asked: of whom what, for one folio.
    """

    folio: Folio
    heads: NDArray[np.int64]
    asked: Migration
    place: Place
    facts: Facts

    @property
    def nr_pages(self) -> int:
        """Frames, those that are nobody's included."""
        return len(self.heads) * self._step

    @property
    def calls(self) -> tuple[NDArray[np.int64], ...]:
        """The heads that each call is given."""
        each = self.asked.folios_per_call or len(self.heads)
        return tuple(self.heads[at : at + each] for at in range(0, len(self.heads), each))

    @property
    def _step(self) -> int:
        """Distance from a folio to the next one, in pages."""
        return self.folio.nr_pages * self.asked.spread

    @property
    def _indices(self) -> NDArray[np.int64]:
        first = index_of(0, self.place)
        return np.arange(first, first + self.nr_pages, self._step)

    @property
    def contents(self) -> NDArray[np.int64]:
        """Which page's bytes each frame holds once all have moved."""
        held = np.full((2, len(self.heads), self._step), ANYTHING, np.int64)
        pages = np.arange(self.nr_pages).reshape(len(self.heads), self._step)
        held[0] = pages
        held[1, :, : self.folio.nr_pages] = pages[:, : self.folio.nr_pages]
        return held.reshape(-1)

    def before(self) -> tuple[State, Memory]:
        """Memory before, and a copy to go on with."""
        memory = Memory(self.nr_pages, self.facts, self.place, spread=self.asked.spread)
        memory.enter("src", 0, self.folio, nr=len(self.heads))
        memory.allocate(0, self.folio.order, nr=len(self.heads))
        memory.fields("src")["index"][self.heads] = self._indices
        for call, heads in enumerate(self.calls):
            memory.list_sources(heads.tolist(), call)
        src, dst = memory.octets["src"].copy(), memory.octets["dst"].copy()
        return State(src, dst, *self.tables(moved=False)), memory

    def move(self, memory: Memory, reason: str, *, queues: bool) -> None:
        """All of them."""
        memory.move(0, self.folio, reason, nr=len(self.heads))
        memory.fields("dst")["index"][self.heads] = self._indices
        if queues:
            members: list[Member] = [("dst", page) for page in self.heads.tolist()]
            memory.queue("dst", members)

    def tables(self, *, moved: bool) -> tuple[tuple[Words, ...], tuple[Words, ...]]:
        """Entries and huge entries of every address space."""
        entries, pmds = empty_tables(self.folio.nr_mappings, -(-self.nr_pages // PAGES_PER_PMD))
        is_huge = self.folio.mapped == "pmd"
        word = entry(self.folio.mapped_bits[0], 0, self.facts, huge=is_huge)
        pages, slots = self.heads, np.arange(0, self.nr_pages, self._step)
        if moved:
            restore = restored_huge if is_huge else restored
            word = restore(word, 0, self.facts, folio_is_dirty=True)
        if is_huge:
            slots //= PAGES_PER_PMD
        else:
            within = np.arange(self.folio.nr_pages)
            pages = (pages[:, np.newaxis] + within).reshape(-1)
            slots = (slots[:, np.newaxis] + within).reshape(-1)
        pfns = pages + (self.place.dst_pfn if moved else self.place.src_pfn)
        words = pfns.astype(np.uint64) << np.uint64(PAGE_SHIFT) | np.uint64(word)
        for table in pmds if is_huge else entries:
            table[slots] = words
        return entries, pmds


def _after(buffer: _Buffer, state: State, *, queues: bool) -> After:
    folio, asked, nr_folios = buffer.folio, buffer.asked, len(buffer.heads)
    nr_pages = nr_folios * folio.nr_pages
    is_huge = folio.mapped == "pmd"
    events = dict.fromkeys(EVENTS, 0)
    events["PGMIGRATE_SUCCESS"] = nr_pages
    events["THP_MIGRATION_SUCCESS"] = nr_folios * folio.is_huge
    per_batch = next(nr for nr in count(1) if asked.limit.is_full(nr, nr * folio.nr_pages))
    nr_flushes = sum(-(-len(heads) // per_batch) for heads in buffer.calls)
    flushes = (0, 0) if is_huge else (len(buffer.calls), nr_flushes)
    nr_single = nr_folios * folio.nr_mappings * is_huge
    moved = {"isolated-anon": nr_pages, "mapped": nr_pages, "huge": nr_pages * is_huge}
    return After(
        state=state,
        ret=0,
        nr_succeeded=nr_pages,
        left=(),
        events=events,
        nr_allocated=nr_folios,
        nr_put=0,
        nr_freed=nr_folios if asked.reason != "MEMORY_FAILURE" else 0,
        nr_added=nr_folios,
        nr_drained=0,
        nr_poison_reports=0,
        contents=buffer.contents,
        node_stats=node_stats_of(asked.reason, moved, buffer.place),
        batch_flushes=flushes,
        single_flushes=(nr_single, nr_single),
        src_queued=(),
        dst_queued=tuple(buffer.heads.tolist()) if queues else (),
        rss=(nr_pages,) * folio.nr_mappings,
        rss_after=(nr_pages,) * folio.nr_mappings,
        noted=frozenset(() if is_huge else range(folio.nr_mappings)),
        nr_anon=tuple(nr_folios if order and order == folio.order else 0 for order in ORDERS),
    )
