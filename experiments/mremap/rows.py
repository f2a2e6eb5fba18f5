# SPDX-License-Identifier: GPL-2.0-only
"""The mremap experiment: PTE-mapped memory that gets another address."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from ream.experiment.shape import (
    PAGE_BYTES,
    STRUCT_PAGE_BYTES,
    ExperimentBase,
    LimitKind,
    RowBase,
)
from ream.experiment.size import Size
from ream.size import format_size
from ream.values import Scalar

CONTPTE_BYTES = PAGE_BYTES << 4
FOLIO_BYTES = tuple(PAGE_BYTES << order for order in range(10))
MAX_CALL_BYTES = 1 << 30
TABLE_BYTES = 2 << 20
LEAST_BYTES = 4 << 20
"""Least bytes of a sample: less is too short for the clock, so a sample makes several calls."""
LEAST_ACROSS_BYTES = 1 << 20
"""A program maps two tables' reach for each call that crosses tables."""


class MremapRow(RowBase):
    """Moves of all entries of one mapping.

    call_bytes: of one call; calls of less than LEAST_BYTES are made one after another, each of
    other pages. layout: one-table, where a call's pages move within their page table; two-tables,
    from the last quarter of one to the second quarter of another, and so on across all. every:
    entries from one that is there to the next. clean: entries are accessed, but not dirty.
    contpte: entries are blocks of 16 before, each of which a TLB holds as one, as faults leave
    them; without it they are single. In guests and on the running kernel a sample is of whole
    system calls, over memory that a program has written.
    """

    folio_bytes: Size
    call_bytes: Annotated[Size, Field(gt=0, le=MAX_CALL_BYTES)] = 64 << 20
    layout: Literal["one-table", "two-tables"] = "two-tables"
    pre_state: Literal["warm", "cold"] = "warm"
    frames: Literal["consecutive", "scattered"] = "consecutive"
    every: int = Field(default=1, ge=1, le=16)
    clean: bool = False
    contpte: bool = False

    @model_validator(mode="after")
    def _it_can_be_mapped(self) -> Self:
        if self.folio_bytes not in FOLIO_BYTES:
            known = f"{format_size(FOLIO_BYTES[0])} to {format_size(FOLIO_BYTES[-1])}"
            raise ValueError(f"folio_bytes must be a power of two from {known}")
        if self.call_bytes % PAGE_BYTES:
            raise ValueError(f"call_bytes must be a multiple of {format_size(PAGE_BYTES)}")
        if self.layout == "one-table" and self.call_bytes > TABLE_BYTES // 2:
            raise ValueError(f"no more than {format_size(TABLE_BYTES // 2)} move within a table")
        if self.layout == "one-table" and TABLE_BYTES % (2 * self.call_bytes):
            raise ValueError("call_bytes must be a power of two to move within a table")
        return self

    @model_validator(mode="after")
    def _its_stage_can_do_it(self) -> Self:
        if self.contpte and (self.arch != "arm64" or self.folio_bytes < CONTPTE_BYTES):
            raise ValueError("contpte is for folios of 64 KiB and more on arm64")
        if self.contpte and self.every > 1:
            raise ValueError("contpte is for entries that are all there")
        if self.stage == "native":
            return self
        if self.clean:
            raise ValueError("clean can only be set in the native stage")
        if self.layout == "two-tables" and self.call_bytes < LEAST_ACROSS_BYTES:
            least = format_size(LEAST_ACROSS_BYTES)
            raise ValueError(
                f"less than {least} only move within a table, but for the native stage"
            )
        if self.stage == "vm" and self.pre_state == "cold":
            raise ValueError("the vm stage does not do cold: it may have no caches")
        return self

    @property
    def order(self) -> int:
        """Order of the folios in the mapping."""
        return FOLIO_BYTES.index(self.folio_bytes)

    @property
    def nr_calls(self) -> int:
        """Calls that a sample makes, each of call_bytes."""
        return max(1, LEAST_BYTES // self.call_bytes)

    @property
    def nr_each(self) -> int:
        """Pages of one call."""
        return self.call_bytes // PAGE_BYTES

    @property
    def nr_ptes(self) -> int:
        """Entries that are moved, empty ones included."""
        return self.nr_calls * self.nr_each

    @property
    def written_bytes(self) -> int:
        return self.nr_ptes * STRUCT_PAGE_BYTES  # that of as many pages: time is said by page

    @property
    def times_page_tables(self) -> bool:
        return True

    def params(self) -> dict[str, Scalar | None]:
        return {
            "folio_kib": self.folio_bytes >> 10,
            "call_kib": self.call_bytes >> 10,
            "nr_calls": self.nr_calls,
            "nr_ptes": self.nr_ptes,
            "layout": self.layout,
            "pre_state": None if self.stage == "vm" else self.pre_state,
            "frames": self.frames,
            "every": self.every,
            "clean": self.clean if self.stage == "native" else None,
            "threads": self.threads,
            **({"contpte": True} if self.contpte else {}),
        }

    def title(self) -> str:
        words = [
            f"{format_size(self.call_bytes)} within a table"
            if self.layout == "one-table"
            else f"{format_size(self.call_bytes)} across tables",
            f"folios of {format_size(self.folio_bytes)}",
        ]
        if self.stage != "vm":
            words.append(self.pre_state)
        if self.nr_calls > 1:
            words.append(f"{self.nr_calls} calls")
        if self.frames == "scattered":
            words.append("frames scattered")
        if self.every > 1:
            words.append(f"one entry in {self.every}")
        if self.contpte:
            words.append("contpte")
        if self.clean:
            words.append("clean")
        return ", ".join(words)


class Mremap(ExperimentBase[MremapRow]):
    """The mremap experiment, as its file has it."""

    name: Literal["mremap"]
    limited_by: str | None = "a plain loop that copies the same entries and clears the old ones"
    limit_kind: LimitKind = "plain loop"
    found_live: str | None = "caches are displaced before each that is cold"


EXPERIMENT = Mremap
