# SPDX-License-Identifier: GPL-2.0-only
"""The fork experiment: copying and unmapping the page tables of PTE-mapped folios."""

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

from .address_spaces import layout

PMD_BYTES = 2 << 20  # HPAGE_PMD_SIZE of x86-64: a page table's reach, and the largest folio here
FOLIO_BYTES = tuple(PAGE_BYTES << order for order in range(10))
CONTPTE_BYTES = PAGE_BYTES << 4
MAX_MAPPING_BYTES = 64 << 30

Operation = Literal[
    "fork",
    "refork",
    "munmap",
    "munmap-shared",
    "exit",
    "dontneed",
    "dup-mm",
    "dup-mm-faults",
    "dup-mm-exit",
]
"""fork      the first: every entry is writable and every page exclusive to the parent
refork    another one after it: write-protected, and shared, already
munmap    of the last mapping, which gives up the pages
munmap-shared  of the parent's, while a child maps the pages still
exit      the same by exit_mmap(), which need not watch for the CPU's own writes
dontneed  MADV_DONTNEED of the whole, the pages nobody else's
dup-mm    all that fork() does of a recorded process's memory: copy_mm()
dup-mm-faults  behind it, a write of the parent to each page that it may write
dup-mm-exit    behind it, the exit of the child: mmput()
"""

CALLS = ("dup-mm", "dup-mm-faults", "dup-mm-exit")
"""Operations of a recorded process."""

_STAGES: dict[str, tuple[str, ...]] = {
    "native": ("fork", "refork", "munmap", "munmap-shared", "exit", *CALLS),
    "vm": ("fork", "refork", "munmap", "munmap-shared", "dontneed"),
    "live": ("fork", "refork", "munmap", "munmap-shared", "dontneed"),
}


class ForkRow(RowBase):
    """One operation on one mapping of anonymous folios, all of one size.

    cold: folios lie in shuffled order in the mapping, and nothing of their descriptors and
    page tables is in a cache. mm_users: of the parent; 2 is a process with another thread.
    contpte: the parent's entries are blocks of 16, each of which a TLB holds as one. frees: pages
    go back to the kernel's own page allocator; exit is then that of the last process. layout: a
    process in layouts/, whose VMAs they are; its anonymous pages are of 4 KiB.
    """

    folio_bytes: Size
    mapping_bytes: Annotated[Size, Field(gt=0, le=MAX_MAPPING_BYTES)] = 1 << 30
    operation: Operation = "fork"
    pre_state: Literal["warm", "cold"] = "warm"
    mm_users: int = Field(default=1, ge=1, le=2)
    contpte: bool = False
    frees: bool = False
    layout: str | None = None

    @model_validator(mode="after")
    def _it_can_be_mapped(self) -> Self:
        if self.folio_bytes not in FOLIO_BYTES:
            known = f"{format_size(FOLIO_BYTES[0])} to {format_size(FOLIO_BYTES[-1])}"
            raise ValueError(f"folio_bytes must be a power of two from {known}")
        if self.mapping_bytes % PMD_BYTES:
            raise ValueError(f"mapping_bytes must be a multiple of {format_size(PMD_BYTES)}")
        if self.contpte and (self.arch != "arm64" or self.folio_bytes < CONTPTE_BYTES):
            raise ValueError("contpte is for folios of 64 KiB and more on arm64")
        if self.operation not in _STAGES[self.stage]:
            raise ValueError(f"the {self.stage} stage does not do {self.operation}")
        if self.frees and (
            self.stage != "native" or self.operation not in {"munmap", "exit"} or self.mm_users > 1
        ):
            raise ValueError("frees is for munmap and exit of the native stage, of one thread")
        if self.stage != "native" and (self.pre_state != "warm" or self.mm_users != 1):
            raise ValueError("pre_state and mm_users can only be set in the native stage")
        return self

    @model_validator(mode="after")
    def _a_call_is_of_a_recorded_process(self) -> Self:
        if (self.operation in CALLS) != (self.layout is not None):
            raise ValueError(f"a layout is for {', '.join(CALLS)}, and they are for a layout")
        if self.layout is None:
            return self
        layout(self.layout)
        if self.folio_bytes != PAGE_BYTES or self.mm_users != 1:
            raise ValueError("a process with a layout has pages of 4 KiB and one thread")
        return self

    @property
    def order(self) -> int:
        """Order of the folios in the mapping."""
        return FOLIO_BYTES.index(self.folio_bytes)

    @property
    def nr_ptes(self) -> int:
        """Entries of the mapping, one for each of its base pages."""
        return self.mapping_bytes // PAGE_BYTES

    @property
    def nr_vmas(self) -> int:
        """VMAs of the recorded process; 1 if the row has no recorded layout."""
        return len(layout(self.layout)) if self.layout else 1

    @property
    def nr_pages(self) -> int:
        """Pages that are mapped."""
        if self.layout is None:
            return self.nr_ptes
        return sum(vma.nr_anon for vma in layout(self.layout))

    @property
    def written_bytes(self) -> int:
        return self.nr_pages * STRUCT_PAGE_BYTES

    @property
    def size_of(self) -> str | None:
        folio = format_size(self.folio_bytes).replace("iB", "").replace(" ", "")
        return None if self.layout else f"{self.operation} {folio}"

    @property
    def times_page_tables(self) -> bool:
        return True

    def params(self) -> dict[str, Scalar | None]:
        native = self.stage == "native"
        return {
            "operation": self.operation,
            "folio_kib": self.folio_bytes >> 10,
            "nr_ptes": self.nr_pages,
            "pre_state": self.pre_state if native else None,
            "mm_users": self.mm_users if native else None,
            "threads": self.threads,
            **({"contpte": True} if self.contpte else {}),
            **({"frees": True} if self.frees else {}),
            **({"layout": self.layout, "nr_vmas": self.nr_vmas} if self.layout else {}),
        }

    def title(self) -> str:
        if self.layout is not None:
            what = f"{self.operation} of {self.layout}"
            return f"{what}, {self.nr_vmas} VMAs, {self.nr_pages} anonymous pages, {self.pre_state}"
        words = [
            f"{self.operation} of {format_size(self.mapping_bytes)}",
            f"folios of {format_size(self.folio_bytes)}",
        ]
        if self.stage == "native":
            words.append("warm" if self.pre_state == "warm" else "cold, folios shuffled")
        if self.contpte:
            words.append("contpte")
        if self.frees:
            words.append("pages freed")
        if self.mm_users > 1:
            words.append("an mm with threads")
        return ", ".join(words)


class Fork(ExperimentBase[ForkRow]):
    """The fork experiment, as its file has it."""

    name: Literal["fork"]
    limited_by: str | None = "the fastest plain loop over the same entries and descriptors"
    limit_kind: LimitKind = "plain loop"
    found_live: str | None = "caches are displaced before each"


EXPERIMENT = Fork
