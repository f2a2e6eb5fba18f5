# SPDX-License-Identifier: GPL-2.0-only
"""An mremap row, as the native runner and the oracle need it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ream.errors import BadUsage
from ream.experiment.shape import PAGE_BYTES, STRUCT_PAGE_BYTES
from ream.oracle.flushes import WORD
from ream.oracle.mapping import PAGES_PER_PMD, PRIVATE, Mapping, Place
from ream.oracle.meaning import meaning_of
from ream.oracle.memmap import Facts
from ream.stage.hosted import Planned
from ream.stage.memory import Sized
from ream.stage.native import Build
from ream.stage.runner_plan import Memory, Value, plan_file

from .oracle.move import Answers, Move, Moved, Words
from .oracle.uniform import Kind, Uniform, uniform_move
from .rows import LEAST_BYTES, MremapRow

FOLDER = Path(__file__).parent / "native"
"""This experiment's glue and runner."""


@dataclass(frozen=True)
class Case:
    """One move of one mapping, and all that must come of it.

    flags, page_prot: of its VMAs; the latter as mappings have it. after: in each kind of kernel.
    reclaimed: reclaim owes a flush.
    """

    name: str
    address: int
    entries: Words
    descriptors: NDArray[np.uint8]
    move: Move
    after: Answers
    flags: frozenset[str] = PRIVATE
    page_prot: int = 0
    pre_state: str = "warm"
    rounds: int = 1
    uniform: bool = False
    reclaimed: bool = False


def _signed(word: int) -> int:
    """A word as the runner reads it, a long."""
    return word - (WORD + 1) if word > WORD >> 1 else word


def _counts(after: Moved) -> list[int]:
    """Fields of struct mremap_result from nr_bytes to flushes, in order."""
    words = (after.nr_bytes, after.nr_flushes, after.flush_start, after.flush_end)
    return [_signed(word) for word in words]


def _words(case: Case, memory: Memory, facts: Facts) -> dict[str, Value]:
    move, batches = case.move, case.after["batches"]

    def other(after: Moved) -> Value:
        """Entries, if they are others than those of a kernel that takes batches."""
        same = np.array_equal(after.entries, batches.entries)
        return None if same else memory.array(after.entries)

    return {
        "name": case.name,
        "rounds": case.rounds,
        "limits": case.uniform,
        "pre_state": case.pre_state,
        "address": case.address,
        "nr_slots": len(case.entries),
        "first": move.first,
        "nr_moved": move.nr_pages,
        "by": move.by,
        "stride": move.stride,
        "nr_calls": move.nr_calls,
        "vm_flags": sum(facts[f"VM_{flag}"] for flag in case.flags),
        "page_prot": meaning_of(facts).of_bits(case.page_prot),
        "loses_uffd": move.loses_uffd,
        "reclaimed": case.reclaimed,
        "counts": _counts(batches),
        "counts_single": _counts(case.after["single"]),
        "counts_hinted": _counts(case.after["hinted"]),
        "entries": memory.array(case.entries),
        "entries_after": memory.array(batches.entries),
        "entries_single": other(case.after["single"]),
        "entries_hinted": other(case.after["hinted"]),
        "nr_pages": len(case.descriptors),
        "pages": memory.array(case.descriptors),
    }


def written_plan(cases: Iterable[Case], facts: Facts, work: Path) -> Planned:
    """The plan of some cases."""
    return plan_file(
        FOLDER / "row.def", work, lambda memory: (_words(case, memory, facts) for case in cases)
    )


def place_of(build: Build) -> Place:
    """Where the runner lays mappings out."""
    at = build.addresses
    return Place(at["map"], at["first_pfn"], at["anon_vma"], at["mapping"])


def kind_of(row: MremapRow) -> Kind:
    """The mapping that a row times a move of."""
    return Kind(row.order, row.frames == "scattered", row.every, row.clean, row.contpte)


def move_of(row: MremapRow) -> Move:
    """The calls that a row times; of several tables each has ends of its own."""
    nr, calls, quarter = row.nr_each, row.nr_calls, PAGES_PER_PMD // 4
    if row.layout == "one-table":
        return Move(nr, by=nr, stride=2 * nr, nr_calls=calls)
    tables = -(-nr // PAGES_PER_PMD) * PAGES_PER_PMD
    stride = 2 * tables + PAGES_PER_PMD
    return Move(nr, by=tables + 2 * quarter, first=3 * quarter, stride=stride, nr_calls=calls)


def plan_of(rows: Sequence[MremapRow], threads: int | None, build: Build, work: Path) -> Planned:
    """The plan of an experiment's rows. threads: an mremap() is for one CPU anyway."""
    del threads
    facts, place = build.facts, place_of(build)
    prot = Mapping((None,), ()).page_prot
    block_bytes = meaning_of(facts).BLOCK_PAGES * PAGE_BYTES

    @cache
    def moved(kind: Kind, move: Move) -> Uniform:
        return uniform_move(kind, move, facts, place)

    def case(row: MremapRow) -> Case:
        if row.folio_bytes >= block_bytes and row.call_bytes % block_bytes:
            raise BadUsage(f"{row.name}: call_bytes must be a multiple of {block_bytes} here")
        move = move_of(row)
        made = moved(kind_of(row), move)
        return Case(
            row.name,
            made.address,
            made.entries,
            made.descriptors,
            move,
            made.after,
            page_prot=prot,
            pre_state=row.pre_state,
            rounds=row.rounds,
            uniform=row.every == 1,
        )

    return written_plan(map(case, rows), facts, work)


def _nr_slots(row: MremapRow) -> int:
    return move_of(row).nr_slots


def needed_bytes(rows: Sequence[MremapRow], build: Build) -> int:
    """Memory a run takes: what is predicted of every row, the largest one's tables and map."""
    del build
    pages = [row.nr_ptes for row in rows]
    of_pages = STRUCT_PAGE_BYTES * (sum(pages) + max(pages))
    of_entries = 4 * 8 * (sum(map(_nr_slots, rows)) + max(map(_nr_slots, rows)))
    return of_pages + of_entries


def extent_bytes(row: MremapRow) -> int:
    """What makes a row large."""
    return row.call_bytes


def halved(row: MremapRow) -> MremapRow | None:
    """The row with half its mapping; None if that would be several calls."""
    half = row.call_bytes // 2
    return row.model_copy(update={"call_bytes": half}) if half >= LEAST_BYTES else None


SIZED: Sized[MremapRow] = Sized(needed_bytes, extent_bytes, halved)
