# SPDX-License-Identifier: GPL-2.0-only
"""A fork row, as the native runner and the oracle need it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ream.experiment.shape import STRUCT_PAGE_BYTES
from ream.oracle.mapping import PRIVATE, Mapping, Place
from ream.oracle.meaning import meaning_of
from ream.oracle.memmap import Facts
from ream.stage.hosted import Planned
from ream.stage.memory import Sized
from ream.stage.native import Build
from ream.stage.runner_plan import Memory, Value, plan_file

from .oracle.fork import DEVICE_FLAGS, needs_entries
from .oracle.images import (
    UNIFORM_ADDRESS,
    Calls,
    Moment,
    State,
    second_pages,
    uniform,
    uniform_mapping,
    uniform_second_pages,
)
from .rows import PMD_BYTES, ForkRow

FOLDER = Path(__file__).parent / "native"
"""This experiment's glue and runner."""

SHUFFLE_SEED = 0x5EED
"""Seed for the order of folios in cold rows: the same for every variant, launch and run."""

Step = Literal["copy", "unmap", "unmap-child", "exit", "exit-child", "discard", "truncate"]
"""What the runner can do; native/fork.h."""

_MOMENTS: dict[str, tuple[Step, Moment, Moment]] = {
    "fork": ("copy", "fresh", "forked"),
    "refork": ("copy", "orphaned", "forked"),
    "munmap": ("unmap", "fresh", "discarded"),
    "munmap-shared": ("unmap", "forked", "inherited"),
    "exit": ("exit-child", "forked", "orphaned"),
}
"""The step of each operation, and the states of memory before and after it."""

_Size = tuple[int, int, bool]
"""The order of a row's folios, its entries, and whether those are blocks."""

WRITE_PROTECTS = 2
"""Steps of mm->write_protect_seq: odd while entries are protected, even again afterwards.

Source: copy_page_range(), mm/memory.c."""


@dataclass(frozen=True)
class Case:
    """One operation on one mapping, and all that must come of it.

    single: after it, in a kernel that takes every entry by itself; None: the same.
    """

    name: str
    step: Step
    address: int
    vm_flags: int
    page_prot: int
    before: State
    after: State
    single: State | None
    seconds: NDArray[np.uint32]
    nr_spare: int = 0
    has_anon_vma: bool = True
    anonymous: bool = True
    child_uffd_wp: bool = False
    has_pinned: bool = False
    mm_users: int = 1
    protects: bool = True
    """Whether copying it takes write permission from the parent."""
    mixed: bool = False
    """Whether it maps frames without a mapcount, too."""
    busy: bool = False
    """Whether another task waits for the CPU."""
    overlapped: bool = False
    """Whether another CPU unmaps pages of the same mm, and reclaim has."""
    pre_state: str = "warm"
    rounds: int = 1
    uniform: bool = False
    """Whether every entry maps a page, so that a plain loop over them is a limit."""


def case_of(
    name: str,
    mapping: Mapping,
    step: Step,
    *,
    facts: Facts,
    before: State,
    after: State,
    single: State | None,
    busy: bool = False,
    overlapped: bool = False,
) -> Case:
    """A case of any mapping; before, after and single as the oracle says."""
    return Case(
        name=name,
        step=step,
        address=mapping.address,
        vm_flags=sum(facts[f"VM_{flag}"] for flag in mapping.flags),
        page_prot=meaning_of(facts).of_bits(mapping.page_prot),
        before=before,
        after=after,
        single=single,
        seconds=second_pages(mapping),
        nr_spare=mapping.nr_spares,
        has_anon_vma=mapping.has_anon_vma,
        anonymous=mapping.anonymous,
        child_uffd_wp=mapping.child_uffd_wp,
        has_pinned=mapping.has_pinned,
        protects=mapping.copies_on_write and needs_entries(mapping, facts),
        mixed=bool(mapping.flags & DEVICE_FLAGS),
        busy=busy,
        overlapped=overlapped,
    )


def _counts(calls: Calls, ret: int) -> list[int]:
    """Fields of struct fork_result from nr_freed to error, in order."""
    return [
        int(calls.freed.sum()),
        int(calls.deferred.sum()),
        calls.swap_duplicates,
        calls.swap_frees,
        int(calls.dirtied.sum()),
        int(calls.accessed.sum()),
        ret,
    ]


def _words(case: Case, memory: Memory) -> dict[str, Value]:
    before, after = case.before, case.after
    single = case.single or after
    same_parent = np.array_equal(single.parent, after.parent)
    same_child = np.array_equal(_or_none(single.child), _or_none(after.child))
    first_spare = before.place.first_pfn + len(before.descriptors) - case.nr_spare
    return {
        "name": case.name,
        "rounds": case.rounds,
        "limits": case.uniform,
        "operation": case.step,
        "pre_state": case.pre_state,
        "address": case.address,
        "nr_slots": len(before.parent),
        "vm_flags": case.vm_flags,
        "page_prot": case.page_prot,
        "has_anon_vma": case.has_anon_vma,
        "child_number": after.child_number,
        "child_uffd_wp": case.child_uffd_wp,
        "anonymous": case.anonymous,
        "has_pinned": case.has_pinned,
        "mm_users": case.mm_users,
        "busy": case.busy,
        "overlapped": case.overlapped,
        "write_protects": WRITE_PROTECTS if case.step == "copy" and case.protects else 0,
        "mixed": case.mixed,
        "spare_pfn": first_spare + before.taken,
        "nr_spare": case.nr_spare - before.taken,
        "nr_pages": len(before.descriptors),
        "parent_rss": before.parent_rss,
        "child_rss": before.child_rss,
        "parent_rss_after": after.parent_rss,
        "child_rss_after": after.child_rss,
        "counts": _counts(after.calls, after.ret),
        "counts_single": _counts(single.calls, single.ret),
        "parent": memory.array(before.parent),
        "child": None if case.step == "copy" else memory.array(before.child),
        "parent_after": memory.array(after.parent),
        "child_after": memory.array(after.child),
        "parent_single": None if same_parent else memory.array(single.parent),
        "child_single": None if same_child else memory.array(single.child),
        "pages": memory.array(before.descriptors),
        "pages_after": memory.array(after.descriptors),
        "seconds": memory.array(case.seconds),
        "copies": memory.array(np.array(after.calls.copies, np.uint64).reshape(-1)),
    }


def _or_none(entries: NDArray[Any] | None) -> NDArray[Any]:
    return np.zeros(0, np.uint64) if entries is None else entries


def written_plan(cases: Iterable[Case], work: Path) -> Planned:
    """The plan of some cases."""
    return plan_file(
        FOLDER / "row.def", work, lambda memory: (_words(case, memory) for case in cases)
    )


def place_of(build: Build) -> Place:
    """Addresses at which the runner lays mappings out."""
    at = build.addresses
    return Place(at["map"], at["first_pfn"], at["anon_vma"], at["mapping"])


def plan_of(rows: Sequence[ForkRow], threads: int | None, build: Build, work: Path) -> Planned:
    """The plan of an experiment's rows. threads: copying page tables is for one CPU anyway."""
    del threads
    facts, place = build.facts, place_of(build)
    vm_flags = sum(facts[f"VM_{flag}"] for flag in PRIVATE)
    prot = meaning_of(facts).of_bits(uniform_mapping(0, 1).page_prot)

    @cache
    def memory_at(row: _Size, moment: Moment, *, cold: bool, batched: bool) -> State:
        order, nr_ptes, folded = row
        return uniform(
            order,
            nr_ptes,
            facts,
            place,
            shuffled_seed=SHUFFLE_SEED if cold else None,
            state=moment,
            batched=batched,
            folded=folded,
        )

    @cache
    def seconds(order: int, nr_ptes: int) -> NDArray[np.uint32]:
        return uniform_second_pages(order, nr_ptes)

    def case(row: ForkRow) -> Case:
        step, before, after = _MOMENTS[row.operation]
        # Protected one by one, entries of a block become single.
        folded = row.contpte and row.operation != "fork"
        one_by_one = (row.order, row.nr_ptes, folded)
        size, cold = (row.order, row.nr_ptes, row.contpte), row.pre_state == "cold"
        return Case(
            name=row.name,
            step=step,
            address=UNIFORM_ADDRESS,
            vm_flags=vm_flags,
            page_prot=prot,
            before=memory_at(size, before, cold=cold, batched=True),
            after=memory_at(size, after, cold=cold, batched=True),
            single=memory_at(one_by_one, after, cold=cold, batched=False),
            seconds=seconds(*size[:2]),
            mm_users=row.mm_users,
            pre_state=row.pre_state,
            rounds=row.rounds,
            uniform=True,
        )

    return written_plan(map(case, rows), work)


def needed_bytes(rows: Sequence[ForkRow], build: Build) -> int:
    """Memory a run takes: descriptors, tables, and what is predicted of every size of folio."""
    del build
    states = {(row.order, row.nr_ptes, row.pre_state, row.contpte) for row in rows}
    largest = max(row.nr_ptes for row in rows)
    of_state = len(_MOMENTS) * (STRUCT_PAGE_BYTES + 2 * 8)
    return sum(nr for _, nr, *_ in states) * of_state + largest * (STRUCT_PAGE_BYTES + 4 * 8)


def extent_bytes(row: ForkRow) -> int:
    """What makes a row large."""
    return row.mapping_bytes


def halved(row: ForkRow) -> ForkRow | None:
    """The row with half its mapping; None if that is no whole page table."""
    half = row.mapping_bytes // 2 // PMD_BYTES * PMD_BYTES
    return row.model_copy(update={"mapping_bytes": half}) if half else None


SIZED: Sized[ForkRow] = Sized(needed_bytes, extent_bytes, halved)
