# SPDX-License-Identifier: GPL-2.0-only
"""Mappings whose moves are timed: one kind of folio, and one kind of entry but for its page.

The answer is moved_entry() of oracle.move for the one kind of entry, written for every page of it.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from experiments.fork.oracle.images import uniform, uniform_mapping, uniform_order_of_folios
from ream.oracle import pte
from ream.oracle.flushes import Flushes
from ream.oracle.mapping import WRITTEN, Place
from ream.oracle.meaning import meaning_of
from ream.oracle.memmap import Facts
from ream.oracle.pte_arm64 import CONT

from .move import PAGE_BYTES, TAKINGS, Answers, Move, Moved, Taking, Words, extents, moved_entry

SHUFFLE_SEED = 0x5EED
"""Seed for the order of scattered frames: the same for every variant, launch and run."""

FAULTED_IN = WRITTEN | pte.SOFT_DIRTY
"""Bits of an entry that a write fault has made: pte_mkdirty() makes it soft-dirty, too."""


@dataclass(frozen=True)
class Kind:
    """Which mapping, of rows.MremapRow: how its entries, pages and frames are."""

    order: int
    scattered: bool
    every: int
    clean: bool
    folded: bool = False
    """Whether entries are blocks before, where the architecture has them."""


@dataclass(frozen=True, eq=False)
class Uniform:
    """A mapping before and after a move, in each kind of kernel."""

    address: int
    entries: Words
    descriptors: NDArray[np.uint8]
    after: Answers


def uniform_move(kind: Kind, move: Move, facts: Facts, place: Place) -> Uniform:
    """Memory before a move of a kind of mapping, and after it.

    Folios are mapped one after another in the pages that are moved, those of one call after those
    of the other; between the calls' pages nothing is. Where entries can be blocks, calls and their
    distances are of whole blocks.
    """
    of_arch = meaning_of(facts)
    nr_each = 1 << kind.order
    nr_pages = move.nr_calls * move.nr_pages
    nr_folios = -(-nr_pages >> kind.order)
    seed = SHUFFLE_SEED if kind.scattered else None
    folios = uniform_order_of_folios(kind.order, nr_folios * nr_each, seed)
    pages = (folios[:, np.newaxis] * nr_each + np.arange(nr_each)).reshape(-1)[:nr_pages]
    slots = np.add.outer(np.array(move.starts()), np.arange(move.nr_pages)).reshape(-1)
    there = np.arange(nr_pages) % kind.every == 0

    bits = of_arch.of_bits(pte.mkclean(FAULTED_IN) if kind.clean else FAULTED_IN)
    frames = (pages.astype(np.uint64) + np.uint64(place.first_pfn)) << np.uint64(12)
    each = of_arch.BLOCK_PAGES
    block = CONT if 1 < each <= nr_each and kind.every == 1 else 0

    def entries(bits: int, by: int) -> Words:
        words = np.zeros(move.nr_slots, np.uint64)
        words[slots[there] + by] = frames[there] | np.uint64(bits)
        return words

    address = uniform_mapping(0, 1).address
    after = entries(moved_entry(bits, move, facts) | block, move.by)

    def moved(taking: Taking) -> Moved:
        """One by one, blocks are converted at the old place, and again at the new one."""
        flushes = Flushes.of(facts)
        one_by_one = taking == "single" or (taking == "hinted" and not kind.folded)
        blocks = slots[::each] if block and one_by_one else slots[:0]
        for by in (0, move.by) if kind.folded else (move.by,):
            for at in blocks + by:
                flushes.add(address + int(at) * PAGE_BYTES, address + int(at + each) * PAGE_BYTES)
        for start, end in extents(address, move):
            flushes.add(address + start * PAGE_BYTES, address + end * PAGE_BYTES)
        return Moved(after, nr_pages * PAGE_BYTES, flushes.nr, flushes.start, flushes.end)

    return Uniform(
        address,
        entries(bits | (block if kind.folded else 0), 0),
        uniform(kind.order, nr_folios * nr_each, facts, place, state="fresh").descriptors,
        {taking: moved(taking) for taking in TAKINGS},
    )
