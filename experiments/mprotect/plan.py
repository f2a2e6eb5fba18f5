# SPDX-License-Identifier: GPL-2.0-only
"""An mprotect row, as the native runner and the oracle need it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ream.errors import BadUsage
from ream.experiment.shape import PAGE_BYTES, STRUCT_PAGE_BYTES
from ream.oracle.flushes import WORD
from ream.oracle.mapping import Place
from ream.oracle.meaning import meaning_of
from ream.oracle.memmap import Facts
from ream.stage.hosted import Planned
from ream.stage.memory import Sized
from ream.stage.native import Build
from ream.stage.runner_plan import Memory, Value, plan_file

from .oracle.change import Change, Changed
from .oracle.uniform import Kind, Uniform, uniform_change
from .rows import LEAST_BYTES, MprotectRow

FOLDER = Path(__file__).parent / "native"
"""This experiment's glue and runner."""


@dataclass(frozen=True)
class Case:
    """One change of one mapping, and all that must come of it.

    single: after it, in a kernel that takes every entry by itself; None: the same. apart: in one
    that takes batches, but takes them out and writes them one by one; None: as single.
    """

    name: str
    address: int
    entries: NDArray[np.uint64]
    descriptors: NDArray[np.uint8]
    change: Change
    after: Changed
    single: Changed | None = None
    apart: Changed | None = None
    anonymous: bool = True
    pre_state: str = "warm"
    rounds: int = 1
    uniform: bool = False
    """Whether all entries change by the same bits, so that a plain loop over them is a limit."""
    races: int = 0
    """How often it is done while another CPU uses the entries; its bits must not be lost."""


def _signed(word: int) -> int:
    """A word as the runner reads it, a long."""
    return word - (WORD + 1) if word > WORD >> 1 else word


def _counts(changed: Changed) -> list[int]:
    """Fields of struct mprotect_result from nr_pages to flushes, in order."""
    words = (changed.nr_pages, changed.nr_flushes, changed.flush_start, changed.flush_end)
    return [_signed(word) for word in words]


def _words(case: Case, memory: Memory, facts: Facts) -> dict[str, Value]:
    change, single = case.change, case.single or case.after
    apart = case.apart or single

    def other(after: Changed) -> Value:
        """Entries, if they are others than those of a kernel that takes batches."""
        same = np.array_equal(after.entries, case.after.entries)
        return None if same else memory.array(after.entries)

    return {
        "name": case.name,
        "rounds": case.rounds,
        "limits": case.uniform,
        "pre_state": case.pre_state,
        "races": case.races,
        "address": case.address,
        "nr_slots": len(case.entries),
        "first_slot": change.first,
        "nr_changed": change.nr_each(len(case.entries)),
        "nr_calls": change.nr_calls,
        "vm_flags": sum(facts[f"VM_{flag}"] for flag in change.flags),
        "page_prot": meaning_of(facts).of_bits(change.page_prot),
        "cp_flags": sum(facts[f"MM_CP_{ask}"] for ask in change.asks),
        "anonymous": case.anonymous,
        "mm_users": change.mm_users,
        "overlapped": change.overlapped,
        "counts": _counts(case.after),
        "counts_single": _counts(single),
        "counts_apart": _counts(apart),
        "entries": memory.array(case.entries),
        "entries_after": memory.array(case.after.entries),
        "entries_single": other(single),
        "entries_apart": other(apart),
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


def kind_of(row: MprotectRow) -> Kind:
    """The mapping that a row times a change of."""
    return Kind(
        order=row.order,
        nr_ptes=row.nr_ptes,
        operation=row.operation,
        shared=row.memory == "shared",
        scattered=row.frames == "scattered",
        every=row.every,
        shared_every=row.shared_every,
        mixed=row.history == "mixed",
        folded=row.contpte,
    )


def plan_of(rows: Sequence[MprotectRow], threads: int | None, build: Build, work: Path) -> Planned:
    """The plan of an experiment's rows. threads: an mprotect() is for one CPU anyway."""
    del threads
    facts, place = build.facts, place_of(build)
    block_bytes = meaning_of(facts).BLOCK_PAGES * PAGE_BYTES

    @cache
    def change(kind: Kind, nr_calls: int) -> Uniform:
        return uniform_change(kind, nr_calls, facts, place)

    def case(row: MprotectRow) -> Case:
        if row.folio_bytes >= block_bytes and row.call_bytes % block_bytes:
            raise BadUsage(f"{row.name}: call_bytes must be a multiple of {block_bytes} here")
        made = change(kind_of(row), row.nr_calls)
        return Case(
            row.name,
            made.address,
            made.entries,
            made.descriptors,
            made.change,
            made.after,
            made.single,
            anonymous=row.memory == "private",
            pre_state=row.pre_state,
            rounds=row.rounds,
            uniform=row.every == 1 and not row.shared_every and row.history == "written",
        )

    return written_plan(map(case, rows), facts, work)


def needed_bytes(rows: Sequence[MprotectRow], build: Build) -> int:
    """Memory a run takes: what is predicted of every row, the largest one's tables and map."""
    del build
    of_entry = STRUCT_PAGE_BYTES + 3 * 8  # before, after, and in a table
    largest = max(row.nr_ptes for row in rows)
    return (sum(row.nr_ptes for row in rows) + largest) * of_entry


def extent_bytes(row: MprotectRow) -> int:
    """What makes a row large."""
    return row.call_bytes


def halved(row: MprotectRow) -> MprotectRow | None:
    """The row with half its mapping; None if that would be several calls."""
    half = row.call_bytes // 2
    return row.model_copy(update={"call_bytes": half}) if half >= LEAST_BYTES else None


SIZED: Sized[MprotectRow] = Sized(needed_bytes, extent_bytes, halved)
