# SPDX-License-Identifier: GPL-2.0-only
"""A fork row whose pages go back to the page allocator, which is the kernel's own.

There is no image of what memory must hold afterwards: which list a frame is on is the allocator's
choice. The runner compares all of the node with the rules; freeing/verify.c.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ream.experiment.shape import PAGE_BYTES, STRUCT_PAGE_BYTES
from ream.stage.hosted import Batch, Hosted, Planned, drawn
from ream.stage.memory import Sized
from ream.stage.native import Build
from ream.stage.runner_plan import Memory, Value, plan_file

from .plan import SHUFFLE_SEED, extent_bytes, halved
from .rows import ForkRow

FOLDER = Path(__file__).parent / "freeing"

NODE_STEP = 4 << 20
"""Unit of a node's size: a block of the allocator's largest order."""

SPARE_BYTES = 64 << 20
"""Memory of a node besides the mapping: page tables, pages of the gather, reserves."""

RUNNER_BYTES = STRUCT_PAGE_BYTES + 2 * 8 + 4 + 2
"""What descriptors and the runner take for each page; freeing/row.h."""

CASE_BYTES = 8 << 20
"""Size of the mapping of a case."""

CPUS = 2
"""CPUs that have the address space loaded."""


@dataclass(frozen=True)
class Freed:
    """One mapping. held_every: one folio in so many has a further reference; 0: none has."""

    name: str
    order: int
    exits: bool
    mapping_bytes: int = CASE_BYTES
    rounds: int = 2
    cold: bool = False
    shuffled: bool = False
    drawn: int = SHUFFLE_SEED
    limits: bool = False
    held_every: int = 0

    def words(self) -> Mapping[str, Value]:
        node = (self.mapping_bytes + SPARE_BYTES + NODE_STEP - 1) // NODE_STEP * NODE_STEP
        return {
            "name": self.name,
            "rounds": self.rounds,
            "limits": self.limits,
            "pre_state": "cold" if self.cold else "warm",
            "shuffled": self.shuffled,
            "drawn": self.drawn,
            "nr_pages": node // PAGE_BYTES,
            "nr_mapped": self.mapping_bytes // PAGE_BYTES,
            "order": self.order,
            "exits": self.exits,
            "held_every": self.held_every,
        }


def _freed(row: ForkRow) -> Freed:
    cold = row.pre_state == "cold"
    return Freed(
        name=row.name,
        order=row.order,
        exits=row.operation == "exit",
        mapping_bytes=row.mapping_bytes,
        rounds=row.rounds,
        cold=cold,
        shuffled=cold,
        limits=True,
    )


def planned(asked: Iterable[Freed], work: Path) -> Planned:
    """The plan of some mappings."""

    def words(memory: Memory) -> Iterator[Mapping[str, Value]]:
        del memory
        return (one.words() for one in asked)

    return plan_file(FOLDER / "row.def", work, words)


def plan_of(rows: Sequence[ForkRow], threads: int | None, build: Build, work: Path) -> Planned:
    """The plan of an experiment's rows. threads, build: nothing here depends on them."""
    del threads, build
    return planned(map(_freed, rows), work)


_ORDERS = (0, 1, 2, 3, 4, 9)
"""Those that have lists of a CPU's own, and others."""

EDGES = tuple(
    replace(one, name=f"edge-{'exit' if one.exits else 'munmap'}-order-{one.order}{suffix}")
    for order in _ORDERS
    for exits in (False, True)
    for one, suffix in (
        (Freed("", order, exits), ""),
        (Freed("", order, exits, shuffled=True, held_every=3), "-held"),
    )
)


def _mixed(seed: int) -> Freed:
    draw = drawn(seed)
    return Freed(
        f"mixture-{seed}",
        order=draw.randrange(10),
        exits=draw.random() < 1 / 2,
        mapping_bytes=draw.randint(1, 8) * (2 << 20),
        cold=draw.random() < 1 / 4,
        shuffled=draw.random() < 1 / 2,
        drawn=seed,
        held_every=draw.choice((0, 1, 2, 7)),
    )


def cases(build: Build, work: Path, seeds: Iterable[int], *, edges: bool) -> Iterator[Batch]:
    """Folios of every kind of order, some of which are held, and mixtures; all twice."""
    del build
    yield planned([*(EDGES if edges else ()), *map(_mixed, seeds)], work), CPUS


def needed_bytes(rows: Sequence[ForkRow], build: Build) -> int:
    """Memory a run takes: rows share the node, and each has its own notes."""
    del build
    largest = max(row.mapping_bytes for row in rows) + SPARE_BYTES
    return largest + largest // PAGE_BYTES * RUNNER_BYTES


def frees(row: ForkRow) -> bool:
    """Whether pages go back to the allocator."""
    return row.frees


FREEING: Hosted[ForkRow] = Hosted(
    FOLDER,
    plan_of,
    Sized(needed_bytes, extent_bytes, halved),
    cases,
    runs=frees,
    label="freeing",
)
