# SPDX-License-Identifier: GPL-2.0-only
"""The migrate experiment: moving a buffer of folios from one node to another."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from ream.counted import counted
from ream.experiment.shape import PAGE_BYTES, BytesOf, ExperimentBase, GridPlace
from ream.experiment.size import Size
from ream.size import format_size
from ream.values import Scalar

from .engine import MAX_CHANNELS, EngineRow

PMD_BYTES = 2 << 20  # HPAGE_PMD_SIZE of x86-64: the largest folio here
FOLIO_BYTES = tuple(PAGE_BYTES << order for order in range(10) if order != 1)
"""Anonymous memory has no folios of two pages: THP_ORDERS_ALL_ANON, include/linux/huge_mm.h."""

MAX_BUFFER_BYTES = 64 << 30

VERBS = {"move": "move", "move-and-read": "move and read", "metadata": "unmap and remap"}
"""What a row's title says of what it measures."""


class MigrateRow(EngineRow):
    """migrate_pages() of one buffer of anonymous folios, all of one size.

    channels: that copy at once; 0 is the kernel's own copy, folio by folio, whatever the variant.
    engine: what has the channels in a variant with more than one kind of them; `published` always
    copies by dma. mapped: by single entries or by a PMD. mappings: address spaces that map every
    folio. measure: move-and-read also reads all of the memory as soon as it has been moved;
    metadata copies nothing, so that the time is of all the rest. tlb_flush: measured stands for a
    flush of other CPUs as long as one takes here; none leaves it out. mode: MIGRATE_SYNC is what
    move_pages(2) asks for. pre_state: as in the fork experiment.
    """

    folio_bytes: Size
    buffer_bytes: Annotated[Size, Field(gt=0, le=MAX_BUFFER_BYTES)] = 256 << 20
    channels: int = Field(default=0, ge=0, le=MAX_CHANNELS)
    engine: Literal["threads", "dma"] = "threads"
    mapped: Literal["ptes", "pmd"] = Field(
        default_factory=lambda fields: "pmd" if fields.get("folio_bytes") == PMD_BYTES else "ptes"
    )
    mappings: int = Field(default=1, ge=1, le=2)
    measure: Literal["move", "move-and-read", "metadata"] = "move"
    tlb_flush: Literal["none", "measured"] = "none"
    mode: Literal["sync", "async"] = "sync"
    pre_state: Literal["warm", "cold"] = "warm"

    @model_validator(mode="after")
    def _it_can_be_moved(self) -> Self:
        if self.folio_bytes not in FOLIO_BYTES:
            known = f"{format_size(FOLIO_BYTES[0])} to {format_size(FOLIO_BYTES[-1])}"
            raise ValueError(f"folio_bytes must be a power of two from {known}, but not 8 KiB")
        if self.buffer_bytes % PMD_BYTES:
            raise ValueError(f"buffer_bytes must be a multiple of {format_size(PMD_BYTES)}")
        if self.mapped == "pmd" and self.folio_bytes != PMD_BYTES:
            raise ValueError(f"only folios of {format_size(PMD_BYTES)} can be mapped by a PMD")
        if self.threads is not None:
            raise ValueError("threads are not given here: say channels")
        return self

    @model_validator(mode="after")
    def _channels_copy(self) -> Self:
        if self.measure == "metadata" and self.channels:
            raise ValueError("measure = metadata copies nothing, so it has no channels")
        if self.engine != "threads" and not self.channels:
            raise ValueError("engine is given, but no channels")
        if self.engine != "threads" and self.model:
            raise ValueError("engine = dma is what every row with an engine_model has")
        return self

    @model_validator(mode="after")
    def _its_stage_can_do_it(self) -> Self:
        if self.stage == "native":
            return self
        for name in ("mapped", "mappings", "measure", "tlb_flush", "mode", "pre_state"):
            if getattr(self, name) != self._plain(name):
                raise ValueError(f"{name} can only be set in the native stage")
        if self.stage == "live" and self.channels:
            raise ValueError("the live stage leaves the running kernel's copying as it is")
        return self

    def _plain(self, name: str) -> object:
        """What the field is where it is not given."""
        if name == "mapped":
            return "pmd" if self.folio_bytes == PMD_BYTES else "ptes"
        return type(self).model_fields[name].default

    @property
    def order(self) -> int:
        """Order of the folios in the buffer."""
        return (self.folio_bytes // PAGE_BYTES).bit_length() - 1

    @property
    def nr_pages(self) -> int:
        """Base pages of the buffer."""
        return self.buffer_bytes // PAGE_BYTES

    @property
    def nr_folios(self) -> int:
        return self.buffer_bytes // self.folio_bytes

    @property
    def nr_ptes(self) -> int:
        """Entries that map the buffer, in all address spaces; a PMD is one."""
        each = self.nr_folios if self.mapped == "pmd" else self.nr_pages
        return each * self.mappings

    @property
    def written_bytes(self) -> int:
        """Bytes of memory moved; where only metadata are measured, that would be."""
        return self.buffer_bytes

    @property
    def bytes_of(self) -> BytesOf:
        return "memory"

    @property
    def nr_entries(self) -> int | None:
        return self.nr_ptes if self.measure == "metadata" else None

    @property
    def waits(self) -> bool:
        return self.channels > 0

    @property
    def cpus_wanted(self) -> int | None:
        return max(1, self.workers)

    @property
    def provider(self) -> Literal["threads", "dma"]:
        """What copies in `ream`: a model has no threads."""
        return "dma" if self.model else self.engine

    @property
    def cell(self) -> GridPlace | None:
        """Cell of the published table: lines are numbers of channels, columns are folio sizes.

        Threads that copy as fast as they can are no channels of that table.
        """
        asked = ("mapped", "mappings", "measure", "tlb_flush", "mode", "pre_state", "engine")
        if self.stands_in or any(getattr(self, name) != self._plain(name) for name in asked):
            return None
        return GridPlace(self.channels, self.folio)

    @property
    def folio(self) -> str:
        """The size as published tables have it: 4K, 2M."""
        return format_size(self.folio_bytes).removesuffix("iB").replace(" ", "")

    def params(self) -> dict[str, Scalar | None]:
        native = self.stage == "native"
        return {
            "folio_kib": self.folio_bytes >> 10,
            "buffer_bytes": self.buffer_bytes,
            "channels": self.channels,
            "engine": self.provider if self.channels and self.stage != "live" else None,
            "mapped": self.mapped,
            "nr_ptes": self.nr_ptes,
            "mappings": self.mappings,
            "measure": self.measure,
            "tlb_flush": self.tlb_flush if native else None,
            "mode": self.mode,
            "pre_state": self.pre_state if native else None,
            **self.engine_params(),
        }

    def title(self) -> str:
        what = VERBS[self.measure]
        words = [
            f"{what} {format_size(self.buffer_bytes)}",
            f"folios of {format_size(self.folio_bytes)}",
            *self._who_copies(),
        ]
        if self.mapped != self._plain("mapped"):
            words.append("mapped by single entries")
        if self.mappings > 1:
            words.append(f"{self.mappings} address spaces")
        if self.tlb_flush == "measured":
            words.append("with the time of TLB flushes")
        if self.mode == "async":
            words.append("MIGRATE_ASYNC")
        if self.pre_state == "cold":
            words.append("cold, folios shuffled")
        return ", ".join(words)

    def _who_copies(self) -> tuple[str, ...]:
        if self.measure == "metadata":
            return ("nothing is copied",)
        if not self.channels:
            return ("serial",)
        engine = " of the DMA engine" if self.engine == "dma" else ""
        said = f"{counted(self.channels, 'channel')}{engine}"
        return (said, self.model_words()) if self.model else (said,)


class Migrate(ExperimentBase[MigrateRow]):
    """The migrate experiment, as its file has it."""

    name: Literal["migrate"]
    limited_by: str | None = "the fastest plain copy of the same bytes"


EXPERIMENT = Migrate
