# SPDX-License-Identifier: GPL-2.0-only
"""The deferred-init experiment: the struct pages of a whole node, initialised and freed at boot."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from ream.counted import counted
from ream.experiment.section import SECTION_BYTES, WholeSections
from ream.experiment.shape import PAGE_BYTES, STRUCT_PAGE_BYTES, ExperimentBase, RowBase
from ream.size import format_size
from ream.values import Scalar

MAX_MEMORY_BYTES = 8 << 40
MAX_PAGE_ORDER = 10  # include/linux/mmzone.h: the largest block an allocation can ask for
MOST_NODES = 2

Layout = Literal["whole", "unaligned", "holes"]
"""whole      one range of free memory, from the first deferred page to the end of the node
unaligned  several ranges, none of which begins or ends where a block or a section does
holes      one range out of which small and large pieces are reserved, everywhere
"""

LEAST_SECTIONS = 2
"""The smallest number of sections in the memory of a row."""

MemoryBytes = Annotated[
    WholeSections, Field(ge=LEAST_SECTIONS * SECTION_BYTES, le=MAX_MEMORY_BYTES)
]


class DeferredInitRow(RowBase):
    """deferred_init_memmap() of one machine: of every node at once.

    memory_bytes: of each node; in the vm stage of the whole guest. threads: CPUs of each node, in
    the vm stage of the guest; None: all there are. node_pct: of a node's CPUs, instead.
    grow_order: an allocation of so many pages comes before the threads have run. pre_state: of the
    map; lookalike is dirty, and holds what could be taken for free blocks. measure: what a
    boot's time is about; init is the initialisation, boot all that comes before PID 1.
    """

    stage: Literal["native", "vm"] = "native"
    memory_bytes: MemoryBytes
    nodes: int = Field(default=1, ge=1, le=MOST_NODES)
    node_pct: int | None = Field(default=None, ge=1, le=100)
    layout: Layout = "whole"
    grow_order: int | None = Field(default=None, ge=0, le=MAX_PAGE_ORDER)
    pre_state: Literal["evicted", "dirty", "lookalike"] = "evicted"
    measure: Literal["init", "boot"] = "init"

    @model_validator(mode="after")
    def _threads_are_given_once(self) -> Self:
        if self.node_pct is not None and self.threads is not None:
            raise ValueError("give threads or node_pct, not both")
        return self

    @model_validator(mode="after")
    def _its_stage_can_do_it(self) -> Self:
        if self.stage == "native" and self.measure != "init" and self._is_early_or_full_of_holes:
            raise ValueError("natively a boot is of nodes that are whole and have not grown")
        if self.stage == "vm":
            if self.node_pct is not None:
                raise ValueError("a guest has the CPUs it is given: say threads")
            if (self.layout, self.grow_order, self.pre_state) != ("whole", None, "evicted"):
                raise ValueError("layout, grow_order and pre_state can only be set natively")
        return self

    @property
    def _is_early_or_full_of_holes(self) -> bool:
        return (self.layout, self.grow_order) != ("whole", None) or self.pre_state == "lookalike"

    @property
    def nr_pages(self) -> int:
        """Pages of all nodes that this row is about."""
        nr_nodes = self.nodes if self.stage == "native" else 1
        return nr_nodes * self.memory_bytes // PAGE_BYTES

    @property
    def written_bytes(self) -> int:
        return self.nr_pages * STRUCT_PAGE_BYTES

    @property
    def cpus_wanted(self) -> int | None:
        if self.threads is None:
            return None
        return self.threads * (self.nodes if self.stage == "native" else 1)

    @property
    def free_fields(self) -> frozenset[str]:
        """Lines are found by their threads. A boot is as long as its memory is large; of the
        initialisation alone the ratio hardly depends on it, and what differs is told.
        """
        free = {"rounds", "threads", "node_pct"}
        return frozenset(free if self.stage == "vm" else free | {"memory_bytes"})

    @property
    def times_the_map(self) -> bool:
        return self.measure != "boot"

    @property
    def is_of_all_memory(self) -> bool:
        """A whole boot takes as long as its memory is large; natively the row has its own."""
        return self.stage == "vm"

    def params(self) -> dict[str, Scalar | None]:
        native = self.stage == "native"
        return {
            "nr_pages": self.nr_pages,
            "nodes": self.nodes,
            "threads": self.threads,
            "node_pct": self.node_pct,
            "layout": self.layout if native else None,
            "grow_order": self.grow_order,
            "pre_state": self.pre_state if native else None,
            "measure": self.measure,
        }

    def title(self) -> str:
        each = " each" if self.nodes > 1 and self.stage == "native" else ""
        words = [f"{format_size(self.memory_bytes)}{each}"]
        if self.nodes > 1:
            words.append(f"{self.nodes} nodes")
        if self.node_pct is not None:
            words.append(f"{self.node_pct} % of a node's CPUs")
        elif self.threads is not None:
            who = "CPU" if self.stage == "vm" else "thread"
            words.append(counted(self.threads, who))
        if self.layout != "whole":
            words.append(self.layout)
        if self.grow_order is not None:
            words.append(f"after an allocation of order {self.grow_order}")
        if self.pre_state != "evicted":
            words.append(self.pre_state)
        if self.measure == "boot":
            words.append("all of the boot" if self.stage == "vm" else "memory's part of a boot")
        elif self.stage == "vm":
            words.append("initialisation")
        return ", ".join(words)


class DeferredInit(ExperimentBase[DeferredInitRow]):
    """The deferred-init experiment, as its file has it."""

    name: Literal["deferred-init"]


EXPERIMENT = DeferredInit
