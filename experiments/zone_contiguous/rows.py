# SPDX-License-Identifier: GPL-2.0-only
"""Rows of zone-contiguous: a zone, and the calls of set_zone_contiguous() that look at it."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from ream.experiment.section import WholeSections
from ream.experiment.shape import PAGE_BYTES, STRUCT_PAGE_BYTES, ExperimentBase, RowBase
from ream.size import format_size
from ream.values import Scalar

MOST_ZONE_BYTES = 1 << 42
"""Beyond it the runner has no room for what the kernel keeps of each section."""

ZoneBytes = Annotated[WholeSections, Field(gt=0, le=MOST_ZONE_BYTES)]
Hole = Literal["none", "absent", "offline", "foreign"]

HOLES: dict[Hole, str] = {
    "none": "no hole",
    "absent": "its middle section absent",
    "offline": "its middle section offline",
    "foreign": "a page of another zone in the middle",
}


class ZoneContiguousRow(RowBase):
    """set: one call, for a zone as it is. plug, unplug: a call for each block that comes or goes.

    A block that is plugged joins the zone before it is online, as in online_pages().
    """

    operation: Literal["set", "plug", "unplug"] = "set"
    zone_bytes: ZoneBytes
    block_bytes: ZoneBytes | None = None
    hole: Hole = "none"

    @model_validator(mode="after")
    def _blocks_make_up_the_zone(self) -> Self:
        if (self.block_bytes is None) != (self.operation == "set"):
            raise ValueError("block_bytes is of plug and unplug, and of them always")
        if self.block_bytes is not None and self.zone_bytes % self.block_bytes:
            raise ValueError(f"a zone is a whole number of blocks of {self.block_bytes} bytes")
        if self.block_bytes is not None and self.hole != "none":
            raise ValueError("a zone that is plugged or unplugged has no hole here")
        return self

    @property
    def nr_pages(self) -> int:
        return self.zone_bytes // PAGE_BYTES

    @property
    def written_bytes(self) -> int:
        """The memory map of the zone: it is looked at, not written."""
        return self.nr_pages * STRUCT_PAGE_BYTES

    @property
    def nr_calls(self) -> int:
        return self.zone_bytes // (self.block_bytes or self.zone_bytes)

    def params(self) -> dict[str, Scalar | None]:
        return {
            "operation": self.operation,
            "zone_bytes": self.zone_bytes,
            "block_bytes": self.block_bytes,
            "hole": self.hole,
            "threads": 1,
        }

    def title(self) -> str:
        size = format_size(self.zone_bytes)
        if self.block_bytes is None:
            return f"a zone of {size}, {HOLES[self.hole]}"
        how = "plugged" if self.operation == "plug" else "unplugged"
        return f"a zone of {size} {how} in blocks of {format_size(self.block_bytes)}"


class ZoneContiguous(ExperimentBase[ZoneContiguousRow]):
    """The experiment, as its file has it."""

    name: Literal["zone-contiguous"]


EXPERIMENT = ZoneContiguous
