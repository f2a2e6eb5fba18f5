# SPDX-License-Identifier: GPL-2.0-only
"""The mprotect experiment: the protection of PTE-mapped memory, changed and restored."""

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
LEAST_BYTES = 1 << 20
"""Least bytes of a sample: less is too short for the clock, so a sample makes several calls."""

Operation = Literal["rw-to-r", "r-to-rw", "rw-to-none", "none-to-rw"]
OPERATIONS: tuple[Operation, ...] = ("rw-to-r", "r-to-rw", "rw-to-none", "none-to-rw")


class MprotectRow(RowBase):
    """One change of protection, of all entries of one mapping.

    call_bytes: of one call; a smaller mapping than LEAST_BYTES is changed by several calls side by
    side. memory: private anonymous memory, or shared memory, each page written. every: entries
    from one that is there to the next. shared_every: from a page that is not exclusive to the
    next; 0: all are. history: written, so that entries are accessed and dirty, or each of them
    at random either, both or neither. contpte: entries are blocks of 16 before, each of which a TLB
    holds as one, as faults leave them; without it they are single. In guests and on the running
    kernel a sample is of whole system calls, over memory that a program has written.
    """

    folio_bytes: Size
    call_bytes: Annotated[Size, Field(gt=0, le=MAX_CALL_BYTES)] = 4 << 20
    operation: Operation
    memory: Literal["private", "shared"] = "private"
    pre_state: Literal["warm", "cold"] = "warm"
    frames: Literal["consecutive", "scattered"] = "consecutive"
    every: int = Field(default=1, ge=1, le=512)
    shared_every: int = Field(default=0, ge=0, le=512)
    history: Literal["written", "mixed"] = "written"
    contpte: bool = False

    @model_validator(mode="after")
    def _it_can_be_mapped(self) -> Self:
        if self.folio_bytes not in FOLIO_BYTES:
            known = f"{format_size(FOLIO_BYTES[0])} to {format_size(FOLIO_BYTES[-1])}"
            raise ValueError(f"folio_bytes must be a power of two from {known}")
        if self.call_bytes % PAGE_BYTES:
            raise ValueError(f"call_bytes must be a multiple of {format_size(PAGE_BYTES)}")
        if self.shared_every and self.memory == "shared":
            raise ValueError("shared_every is of private memory: no shared page is exclusive")
        if self.history == "mixed" and self.order:
            raise ValueError("a mixed history is of single pages: a batch would mix it")
        return self

    @model_validator(mode="after")
    def _its_stage_can_do_it(self) -> Self:
        if self.contpte and (self.arch != "arm64" or self.folio_bytes < CONTPTE_BYTES):
            raise ValueError("contpte is for folios of 64 KiB and more on arm64")
        if self.contpte and (self.every > 1 or self.operation == "none-to-rw"):
            raise ValueError("contpte is for entries that are all there, and can be used")
        if self.stage == "native":
            return self
        if self.shared_every or self.history != "written":
            raise ValueError("shared_every and history can only be set in the native stage")
        if self.memory == "shared" and self.frames == "scattered":
            raise ValueError("frames of shared memory can only be scattered in the native stage")
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
    def nr_ptes(self) -> int:
        """Entries of the mapping, empty ones included."""
        return self.nr_calls * self.call_bytes // PAGE_BYTES

    @property
    def written_bytes(self) -> int:
        return self.nr_ptes * STRUCT_PAGE_BYTES  # that of as many pages: time is said by page

    @property
    def times_page_tables(self) -> bool:
        return True

    def params(self) -> dict[str, Scalar | None]:
        native = self.stage == "native"
        return {
            "operation": self.operation,
            "memory": self.memory,
            "folio_kib": self.folio_bytes >> 10,
            "call_kib": self.call_bytes >> 10,
            "nr_calls": self.nr_calls,
            "nr_ptes": self.nr_ptes,
            "pre_state": None if self.stage == "vm" else self.pre_state,
            "frames": self.frames,
            "every": self.every,
            "shared_every": self.shared_every if native else None,
            "history": self.history if native else None,
            "threads": self.threads,
            **({"contpte": True} if self.contpte else {}),
        }

    def title(self) -> str:
        words = [
            f"{self.operation} of {format_size(self.call_bytes)}",
            f"{self.memory} folios of {format_size(self.folio_bytes)}",
        ]
        if self.stage != "vm":
            words.append(self.pre_state)
        if self.nr_calls > 1:
            words.append(f"{self.nr_calls} calls")
        if self.frames == "scattered":
            words.append("frames scattered")
        if self.every > 1:
            words.append(f"one entry in {self.every}")
        if self.shared_every:
            words.append(f"one page in {self.shared_every} not exclusive")
        if self.contpte:
            words.append("contpte")
        if self.history == "mixed":
            words.append("mixed history")
        return ", ".join(words)


class Mprotect(ExperimentBase[MprotectRow]):
    """The mprotect experiment, as its file has it."""

    name: Literal["mprotect"]
    limited_by: str | None = "a plain loop that flips the same bits in the same entries"
    limit_kind: LimitKind = "plain loop"
    found_live: str | None = "caches are displaced before each that is cold"


EXPERIMENT = Mprotect
