# SPDX-License-Identifier: GPL-2.0-only
"""A native row of compact that is whole: huge pages are asked for, and compaction does the rest.

There is no image of what memory must hold afterwards: which pages move is the compactor's choice.
The runner compares all of it with the rules; native/verify.c.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from experiments.migrate.engine import MODELS, EngineModel
from ream.experiment.shape import PAGE_BYTES, STRUCT_PAGE_BYTES
from ream.stage.hosted import Batch, Planned, drawn
from ream.stage.memory import Sized
from ream.stage.native import Build, Suited
from ream.stage.runner_plan import Memory, Value, plan_file

from .rows import HOLE_EVERY, HUGE_BYTES, NODE_STEP, CompactRow, FreedOrder, Holes

FOLDER = Path(__file__).parent / "native"

DRAWN_SEED = 1
"""Seed of the rows' random draws; each launch draws something else."""

RUNNER_BYTES = STRUCT_PAGE_BYTES + 6 * 8 + 4 + 2
"""What the runner keeps of each frame beside the node itself; native/row.h."""

LEAST_BYTES = 64 << 20
"""Least size of a node; of a smaller one most is reserved."""

CASE_BYTES = 128 << 20
"""Size of the node of a case."""

CPUS = 2
"""CPUs that have the address space loaded. Only with more than one are flushes deferred."""

HELD_EVERY = 1021
"""In some cases one page in so many cannot be moved. Prime, so that these lie anywhere."""


@dataclass(frozen=True)
class Whole:
    """What is asked of one node. The last three: one of so many pages cannot be moved; 0: none.

    model: of the engine whose channels copy; None: the CPU does. limits: whether plain copies are
    measured, too. isolating: another task isolates pageblocks of the zone after so many pages
    have been copied, and goes on. disabling: it disables the per-CPU lists then. leaving: a task
    exits then, and leaves a page to the next task on the CPU. 0: never. All three are for rows with
    one huge page, in which the CPU copies.
    """

    name: str
    node_bytes: int
    nr_huge: int
    rounds: int = 1
    holes: Holes = "scattered"
    used_every: int = HOLE_EVERY
    free_every: int = HOLE_EVERY
    freed: FreedOrder = "up"
    drawn: int = DRAWN_SEED
    limits: bool = False
    busy: bool = False
    isolating: int = 0
    disabling: int = 0
    leaving: int = 0
    channels: int = 0
    model: EngineModel | None = None
    pinned_every: int = 0
    mlocked_every: int = 0
    locked_every: int = 0

    def words(self) -> Mapping[str, Value]:
        return {
            "name": self.name,
            "rounds": self.rounds,
            "holes": self.holes,
            "used_every": self.used_every,
            "free_every": self.free_every,
            "freed_order": self.freed,
            "limits": self.limits,
            "busy": self.busy,
            "drawn": self.drawn,
            "nr_pages": self.node_bytes // PAGE_BYTES,
            "nr_huge": self.nr_huge,
            "isolating": self.isolating,
            "disabling": self.disabling,
            "leaving": self.leaving,
            "channels": self.channels if self.model else 0,
            "setup_ns": self.model.setup_ns if self.model else 0,
            "mb_per_s": self.model.mb_per_s if self.model else 0,
            "pinned_every": self.pinned_every,
            "mlocked_every": self.mlocked_every,
            "locked_every": self.locked_every,
        }


def _whole(row: CompactRow) -> Whole:
    return Whole(
        name=row.name,
        node_bytes=row.node_bytes,
        nr_huge=row.nr_huge,
        rounds=row.rounds,
        holes=row.holes,
        used_every=row.used_every,
        free_every=row.free_every,
        freed=row.freed,
        # What a CPU can copy is no limit of an engine that takes none.
        limits=not row.busy and row.model is None,
        busy=row.busy,
        channels=row.channels,
        model=row.model,
    )


def _planned(asked: Iterable[Whole], work: Path) -> Planned:
    def words(memory: Memory) -> Iterator[Mapping[str, Value]]:
        del memory
        return (one.words() for one in asked)

    return plan_file(FOLDER / "row.def", work, words)


def plan_of(rows: Sequence[CompactRow], threads: int | None, build: Build, work: Path) -> Planned:
    """The plan of an experiment's rows. threads, build: nothing here depends on them."""
    del threads, build
    return _planned(map(_whole, rows), work)


def suit(rows: Sequence[CompactRow], threads: int | None, *, cpus: int | None = None) -> Suited:
    """All rows; one CPU runs the kernel, whatever the machine has."""
    del threads, cpus
    return Suited(tuple(rows), cpus=CPUS)


def cases(build: Build, work: Path, seeds: Iterable[int], *, edges: bool) -> Iterator[Batch]:
    """Nodes with pages that cannot be moved, and mixtures; all twice: what comes of it repeats."""
    del build
    asked = [*EDGES] if edges else []
    asked += map(_mixed, seeds)
    yield _planned(asked, work), CPUS


_PLAIN = Whole("edge-scattered", CASE_BYTES, nr_huge=CASE_BYTES // HUGE_BYTES // 4, rounds=2)

_ONE = replace(_PLAIN, node_bytes=LEAST_BYTES, nr_huge=1)
"""The first huge page of a node."""

_MODEL = MODELS["ptdma-v4-grid"]

EDGES = (
    _PLAIN,
    replace(_PLAIN, name="edge-even", holes="even"),
    replace(_PLAIN, name="edge-odd", holes="odd"),
    replace(_PLAIN, name="edge-down", freed="down"),
    replace(_PLAIN, name="edge-random", freed="random"),
    replace(_PLAIN, name="edge-all-there-is", nr_huge=CASE_BYTES // HUGE_BYTES),
    replace(_PLAIN, name="edge-dma", channels=1, model=_MODEL),
    replace(_PLAIN, name="edge-dma-random", channels=2, model=_MODEL, freed="random"),
    replace(_PLAIN, name="edge-dma-all-there-is", channels=1, model=_MODEL, nr_huge=64),
    # Longer than a scheduler lets one of two run before the other has its turn.
    replace(_PLAIN, name="edge-busy", busy=True, nr_huge=CASE_BYTES // HUGE_BYTES),
    replace(_PLAIN, name="edge-quarter-used", used_every=4),
    replace(_PLAIN, name="edge-quarter-free", free_every=4, nr_huge=8),
    # As many pages of a block move as have the lists of a CPU flushed.
    replace(_ONE, name="edge-below-high", free_every=4),
    # Before anything was freed, and when as much has been gathered as ever is.
    replace(_ONE, name="edge-isolating", isolating=1),
    replace(_ONE, name="edge-isolating-late", isolating=32),
    replace(_ONE, name="edge-disabling", disabling=16),
    replace(_ONE, name="edge-leaving", leaving=16),
    replace(_PLAIN, name="edge-pinned", pinned_every=HELD_EVERY),
    replace(_PLAIN, name="edge-mlocked", mlocked_every=HELD_EVERY),
    replace(_PLAIN, name="edge-locked", locked_every=HELD_EVERY),
    replace(_PLAIN, name="edge-third-locked", locked_every=3),
    replace(_PLAIN, name="edge-all-locked", locked_every=1),
    replace(_PLAIN, name="edge-all-pinned", pinned_every=1),
)


def _mixed(seed: int) -> Whole:
    draw = drawn(seed)
    held: dict[str, Any] = {
        name: draw.choice((HELD_EVERY, 2 * HELD_EVERY + 1)) if draw.random() < 1 / 4 else 0
        for name in ("pinned_every", "mlocked_every", "locked_every")
    }
    every = draw.choice(("used_every", "free_every"))
    plain = Whole(
        f"mixture-{seed}",
        LEAST_BYTES + draw.randrange(16) * NODE_STEP,
        nr_huge=draw.randint(1, 24),
        holes=draw.choice(("scattered", "even", "odd")),
        freed=draw.choice(("up", "down", "random")),
        drawn=seed,
    )
    held[every] = draw.choice((2, 3, 4, 8))
    return replace(plain, **held)


def needed_bytes(rows: Sequence[CompactRow], build: Build) -> int:
    """Memory a run takes: rows share the node, and each has its own notes."""
    del build
    largest = max(row.node_bytes for row in rows)
    return largest + largest // PAGE_BYTES * (STRUCT_PAGE_BYTES + RUNNER_BYTES)


def extent_bytes(row: CompactRow) -> int:
    """What makes a row large."""
    return row.node_bytes


def halved(row: CompactRow) -> CompactRow | None:
    """The row with half its node, and half of what is asked of it; None if that is too small."""
    half = row.node_bytes // 2 // NODE_STEP * NODE_STEP
    if half < LEAST_BYTES or row.nr_huge == 1:
        return None
    return row.model_copy(update={"node_bytes": half, "nr_huge": row.nr_huge // 2})


SIZED: Sized[CompactRow] = Sized(needed_bytes, extent_bytes, halved, LEAST_BYTES)
