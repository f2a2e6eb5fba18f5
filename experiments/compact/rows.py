# SPDX-License-Identifier: GPL-2.0-only
"""The compact experiment: huge pages out of memory in which no huge page is free."""

from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from experiments.migrate.engine import MAX_CHANNELS, EngineRow
from ream.counted import counted
from ream.experiment.shape import (
    MAX_ROUNDS,
    PAGE_BYTES,
    BatchOf,
    BytesOf,
    ExperimentBase,
    Stage,
)
from ream.experiment.size import Size
from ream.size import format_size
from ream.values import Scalar

from .columns import DECLARED, KIND_OF

HUGE_ORDER = 9
HUGE_BYTES = PAGE_BYTES << HUGE_ORDER
"""HPAGE_PMD_SIZE of x86-64, and a pageblock."""

NODE_STEP = 2 * HUGE_BYTES
"""Unit of a native node's size: a block of the allocator's largest order."""

LEAST_NODE_BYTES = 6 * HUGE_BYTES
"""A machine with fewer blocks than there are MIGRATE_TYPES, five here, groups no pages by type
(page_group_by_mobility_disabled): its blocks get another type than the rules have."""

HOLE_EVERY = 2
"""Every second page of a block is freed, as in the published workload."""

MAX_USED_EVERY = 64
"""Fewer pages in use than one of so many leave huge pages free."""

LIVE_SPARE = 2
"""Times the memory that would do if nobody else had a page of any block."""

CLUSTER_PAGES = 32
"""COMPACT_CLUSTER_MAX, include/linux/swap.h: pages of one migrate_pages() of compaction."""

_NR_HUGE = {"vm": 2048, "live": 256}
"""Default number of huge pages by stage; the published run takes 16,384 out of 250 GB."""

MAX_HUGE = 1 << 20
MAX_BYTES = 1 << 40
MAX_BATCH_PAGES = HUGE_BYTES // PAGE_BYTES

Holes = Literal["scattered", "even", "odd"]
FreedOrder = Literal["up", "down", "random"]

Mode = Literal["baseline", "dma", "busy-baseline", "busy-dma"]
"""Modes of the published table. busy: a loop that only counts runs on the same CPU."""

_OF_STAGE: dict[str, tuple[str, ...]] = {
    "vm": (
        *("nr_huge", "node_bytes", "buffer_bytes", "holes", "used_every"),
        *("channels", "two_cpus"),
    ),
    "live": ("nr_huge", "buffer_bytes", "reserve_bytes"),
    "native": (
        *("nr_huge", "node_bytes", "holes", "used_every", "free_every", "freed"),
        *("buffer_bytes", "channels", "batch_pages", "measure", "tlb_flush"),
    ),
}
"""What a row of the stage may say, besides its mode."""

_HOLES = {"scattered": "", "even": ", every second page", "odd": ", every first page of a group"}
_FREED = {"up": "freed upwards", "down": "freed downwards", "random": "freed in random order"}

_MODES: dict[str, tuple[Mode, ...]] = {
    "vm": ("baseline", "dma", "busy-baseline", "busy-dma"),
    "live": ("baseline", "busy-baseline"),
    "native": ("baseline", "dma", "busy-baseline", "busy-dma"),
}


_OF_BATCHES = ("buffer_bytes", "batch_pages", "measure", "tlb_flush")
_OF_WHOLE = ("node_bytes", "holes", "used_every", "free_every", "freed")
"""What native rows may say that move batches, and those that ask for huge pages."""

_NODE_BYTES = {"vm": 10 << 30, "native": 1 << 30}


def _is_batch(fields: dict[str, Any]) -> bool:
    return fields["stage"] == "native" and not fields["nr_huge"]


def _node_bytes(fields: dict[str, Any]) -> int:
    return 0 if _is_batch(fields) else _NODE_BYTES.get(fields["stage"], 0)


def _buffer_bytes(fields: dict[str, Any]) -> int:
    if fields["stage"] == "live":
        return int(fields["nr_huge"]) * HUGE_BYTES * HOLE_EVERY * LIVE_SPARE
    return 256 << 20 if _is_batch(fields) else 0


class CompactRow(EngineRow):
    """Huge pages allocated one after the other, where memory has holes of a page only.

    nr_huge: how many; natively 0 if batches of pages are moved instead. node_bytes: of the guest's
    second node, where nothing else is; natively of the only one. buffer_bytes: memory with holes;
    in a guest 0, nearly all that is free in the node; of batches the pages that are moved, without
    the holes. holes: even, every second page; odd, the other of each two; scattered, one of each
    two, drawn: even ones may all lie in frames of one parity, and a scanner that looks at every
    32nd frame sees all of them or none. used_every: of how many pages one is in use, and the others
    are holes. free_every: of how many pages one is a hole, natively. freed: the order in which
    holes are given back, natively. reserve_bytes: memory of a live machine that stays free; None
    leaves the choice to the stage. channels: of the DMA engine, which `published` and `ream` have;
    `before` copies by itself. One, unless given: compaction moves 32 pages at a time, and what is
    so small gains nothing by being shared out. batch_pages: of one migrate_pages(). measure,
    tlb_flush: as in the migrate experiment. two_cpus: of a guest without a hog; the engine then has
    a CPU to itself, as it has in rows with one, so that the CPU that allocates can idle while the
    engine copies. Such a guest has a clock and counts nothing.
    """

    stage: Stage = "vm"
    rounds: int = Field(default=1, ge=1, le=MAX_ROUNDS)
    mode: Mode = "baseline"
    nr_huge: int = Field(
        default_factory=lambda fields: _NR_HUGE.get(fields["stage"], 0), ge=0, le=MAX_HUGE
    )
    node_bytes: Annotated[Size, Field(ge=0, le=MAX_BYTES)] = Field(default_factory=_node_bytes)
    buffer_bytes: Annotated[Size, Field(ge=0, le=MAX_BYTES)] = Field(default_factory=_buffer_bytes)
    reserve_bytes: Annotated[Size, Field(gt=0, le=MAX_BYTES)] | None = None
    channels: int = Field(
        default_factory=lambda fields: int(str(fields["mode"]).endswith("dma")),
        ge=0,
        le=MAX_CHANNELS,
    )
    batch_pages: int | None = Field(
        default_factory=lambda fields: CLUSTER_PAGES if _is_batch(fields) else None,
        ge=1,
        le=MAX_BATCH_PAGES,
    )
    holes: Holes = "scattered"
    used_every: int = Field(default=HOLE_EVERY, ge=HOLE_EVERY, le=MAX_USED_EVERY)
    free_every: int = Field(default=HOLE_EVERY, ge=HOLE_EVERY, le=MAX_USED_EVERY)
    freed: FreedOrder = "up"
    measure: Literal["move", "metadata"] = "move"
    tlb_flush: Literal["none", "measured"] = "none"
    two_cpus: bool = False

    @model_validator(mode="after")
    def _its_stage_knows_it(self) -> Self:
        known = _OF_STAGE[self.stage]
        for name in dict.fromkeys(one for names in _OF_STAGE.values() for one in names):
            if name in self.model_fields_set and name not in known:
                raise ValueError(f"{name} means nothing in the {self.stage} stage")
        if self.mode not in _MODES[self.stage]:
            raise ValueError(f"the {self.stage} stage has no mode {self.mode}")
        if self.threads is not None:
            raise ValueError("threads are not given here: say channels")
        if self.stage == "vm" and self.rounds != 1:
            raise ValueError("rounds: a guest is fragmented once; give launches")
        return self

    @model_validator(mode="after")
    def _its_program_knows_it(self) -> Self:
        if self.stage == "native":
            other, of = (_OF_BATCHES, "without") if self.is_whole else (_OF_WHOLE, "with")
            for name in other:
                if name in self.model_fields_set and getattr(self, name):
                    raise ValueError(f"{name} is given in native rows {of} nr_huge")
            if self.is_whole and self.uses_dma and not self.model:
                raise ValueError("in native rows with nr_huge an engine is a model")
            if self.busy and not self.is_whole:
                raise ValueError("a hog is given in native rows with nr_huge")
        if self.stage == "native" and self.node_bytes % NODE_STEP:
            raise ValueError(f"node_bytes must be a multiple of {format_size(NODE_STEP)} here")
        if self.stage == "native" and self.is_whole and self.node_bytes < LEAST_NODE_BYTES:
            raise ValueError(f"node_bytes must be {format_size(LEAST_NODE_BYTES)} at least here")
        if self.holes == "odd" and self.stage != "native":
            raise ValueError("holes = odd means nothing outside of the native stage")
        if HOLE_EVERY not in {self.used_every, self.free_every}:
            raise ValueError("give either used_every or free_every")
        return self

    @model_validator(mode="after")
    def _channels_copy(self) -> Self:
        if self.uses_dma and not self.channels:
            raise ValueError(f"mode = {self.mode} needs a channel at least")
        if self.channels and not self.uses_dma:
            raise ValueError(f"channels are given, but mode = {self.mode} copies without them")
        if self.measure == "metadata" and self.channels:
            raise ValueError("measure = metadata copies nothing, so it has no channels")
        return self

    @model_validator(mode="after")
    def _there_is_room(self) -> Self:
        if self.buffer_bytes % HUGE_BYTES or self.node_bytes % HUGE_BYTES:
            raise ValueError(
                f"buffer_bytes and node_bytes must be multiples of {format_size(HUGE_BYTES)}"
            )
        if self.stage == "native" and not self.is_whole:
            if not self.buffer_bytes:
                raise ValueError("buffer_bytes must be more than 0")
            return self
        if not self.nr_huge:
            raise ValueError("nr_huge must be 1 at least")
        if self.node_bytes and self.buffer_bytes >= self.node_bytes:
            raise ValueError("buffer_bytes must be less than node_bytes")
        memory = self.buffer_bytes or self.node_bytes
        used = -(-self.nr_huge * HUGE_BYTES * (self.free_every - 1) // (self.used_every - 1))
        if (needed := self.nr_huge * HUGE_BYTES + used) > memory:
            raise ValueError(
                f"{self.nr_huge} huge page{' needs' if self.nr_huge == 1 else 's need'}"
                f" {format_size(needed)} of which {self._free()} is free, there are"
                f" {format_size(memory)}"
            )
        return self

    @property
    def is_whole(self) -> bool:
        """Whether huge pages are allocated, and not batches of pages moved."""
        return self.nr_huge > 0

    @property
    def busy(self) -> bool:
        """Whether something else wants the CPU all the time."""
        return self.mode.startswith("busy-")

    @property
    def timed(self) -> bool:
        """Whether its guests need two CPUs, of which no instructions can be counted."""
        return self.busy or self.two_cpus

    @property
    def uses_dma(self) -> bool:
        """Whether kernels that can copy by DMA."""
        return self.mode.endswith("dma")

    @property
    def ideal_pages(self) -> int:
        """Pages that have to move for one huge page, wherever it is made."""
        pages = HUGE_BYTES // PAGE_BYTES
        if self.free_every != HOLE_EVERY:
            return pages * (self.free_every - 1) // self.free_every
        return pages // self.used_every

    def _free(self) -> str:
        if self.free_every != HOLE_EVERY:
            return f"1 of {self.free_every}"
        every = self.used_every
        return "half" if every == HOLE_EVERY else f"{every - 1} of {every}"

    @property
    def order(self) -> int:
        """Order of the pages that are allocated."""
        return HUGE_ORDER

    @property
    def folio_bytes(self) -> int:
        """Size of the folios that compaction moves."""
        return PAGE_BYTES

    @property
    def nr_pages(self) -> int:
        """Base pages of the buffer."""
        return self.buffer_bytes // PAGE_BYTES

    @property
    def nr_folios(self) -> int:
        """Folios of the buffer; each is one page."""
        return self.nr_pages

    @property
    def batch_of(self) -> BatchOf | None:
        kind = KIND_OF.get((self.mode, self.measure, self.tlb_flush))
        return None if self.batch_pages is None or kind is None else BatchOf(kind, self.batch_pages)

    @property
    def nr_batches(self) -> int | None:
        return None if self.batch_pages is None else -(-self.nr_folios // self.batch_pages)

    @property
    def written_bytes(self) -> int:
        """Bytes allocated in huge pages; natively, bytes moved."""
        return self.nr_huge * HUGE_BYTES or self.buffer_bytes

    @property
    def bytes_of(self) -> BytesOf:
        return "memory"

    @property
    def nr_entries(self) -> int | None:
        """Huge pages; of metadata alone, entries, one for each page."""
        return self.nr_huge or (self.nr_pages if self.measure == "metadata" else None)

    @property
    def waits(self) -> bool:
        return self.channels > 0

    @property
    def cpus_wanted(self) -> int | None:
        if self.stage == "native":
            return max(1, self.workers)
        # The hog shares its CPU; it is the engine, which is software, that has another.
        return 2 if self.uses_dma else 1

    @property
    def fixed_rounds(self) -> bool:
        return self.stage == "vm"

    def params(self) -> dict[str, Scalar | None]:
        native, batch = self.stage == "native", not self.is_whole
        node, vm = self.node_bytes > 0, self.stage == "vm"
        return {
            "mode": self.mode,
            "nr_huge": None if batch else self.nr_huge,
            "order": None if batch else self.order,
            "node_bytes": self.node_bytes if node else None,
            "buffer_bytes": self.buffer_bytes or None,
            "reserve_bytes": self.reserve_bytes,
            "holes": self.holes if node else None,
            **({"freed": self.freed} if native and node else {}),
            **({"free_every": self.free_every} if self.free_every != HOLE_EVERY else {}),
            **({"used_every": self.used_every} if self.used_every != HOLE_EVERY else {}),
            "channels": self.channels,
            "batch_pages": self.batch_pages,
            "measure": self.measure if batch else None,
            "tlb_flush": self.tlb_flush if batch else None,
            "two_cpus": self.timed if vm else None,
            **self.engine_params(),
        }

    def title(self) -> str:
        words = [self._what(), self._who_copies()]
        if self.tlb_flush == "measured":
            words.append("with the time of TLB flushes")
        if self.busy:
            words.append("a hog on the same CPU")
        if self.two_cpus:
            words.append("two CPUs")
        if self.stage == "native" and self.is_whole:
            words.append(_FREED[self.freed])
        return ", ".join(words)

    def _what(self) -> str:
        if not self.is_whole:
            what = "unmap and remap" if self.measure == "metadata" else "move"
            batch = counted(self.batch_pages or 0, "page")
            return f"{what} {format_size(self.buffer_bytes)}, {batch} a call"
        memory = self.buffer_bytes or self.node_bytes
        where = "a node" if self.node_bytes else "memory"
        huge = counted(self.nr_huge, "huge page")
        said = f"{huge} out of {where} of {format_size(memory)} full of holes"
        if {self.used_every, self.free_every} != {HOLE_EVERY}:
            said += f", {self._free()} pages free"
        return f"{said}{_HOLES[self.holes] if self.node_bytes else ''}"

    def _who_copies(self) -> str:
        if self.measure == "metadata":
            return "nothing is copied"
        if not self.channels:
            return "copied by the CPU"
        said = f"{counted(self.channels, 'channel')} of the DMA engine"
        return f"{said}, {self.model_words()}" if self.model else said


class Compact(ExperimentBase[CompactRow]):
    """The compact experiment, as its file has it."""

    name: Literal["compact"]
    limited_by: str | None = "the fastest plain copy of the same bytes"

    columns = DECLARED


EXPERIMENT = Compact
