# SPDX-License-Identifier: GPL-2.0-only
"""What TLBs are told when page table entries have changed, as native/host notes it."""

from dataclasses import dataclass

from ream.oracle.mapping import PAGE_SHIFT
from ream.oracle.memmap import Facts

WORD = (1 << 64) - 1


@dataclass
class Flushes:
    """Flushes one after the other: how many, and the hull of all that they cover.

    most_pages: where a flush is an instruction for each page, so many are flushed with all others
    of the address space, by one; None: a flush is one whatever it covers. Of none, start is the
    highest word and end 0; where everything was flushed, end is the highest word.
    """

    most_pages: int | None = None
    nr: int = 0
    start: int = WORD
    end: int = 0

    @classmethod
    def of(cls, facts: Facts) -> "Flushes":
        """None yet, of a build. Source: MAX_DVM_OPS, arch/arm64/include/asm/tlbflush.h."""
        return cls(facts.get("MAX_DVM_OPS"))

    def add(self, start: int, end: int) -> None:
        """The translations of addresses from start on, below end."""
        if self.most_pages is None:
            self._note(1, start, end)
        elif end - start >= self.most_pages << PAGE_SHIFT:
            self.add_all()
        else:
            self._note(end - start >> PAGE_SHIFT, start, end)

    def add_all(self) -> None:
        """All translations of the address space."""
        self._note(1, 0, WORD)

    def _note(self, nr: int, start: int, end: int) -> None:
        self.nr += nr
        self.start = min(self.start, start)
        self.end = max(self.end, end)
