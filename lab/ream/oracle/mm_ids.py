# SPDX-License-Identifier: GPL-2.0-only
"""The processes that map a large folio, as far as its two slots record them.

A folio that only one process maps is recognised as such. If more than two map it, processes that
found both slots occupied are in none. Source: folio_add_return_large_mapcount() and
folio_sub_return_large_mapcount(), include/linux/rmap.h of 7.3, with CONFIG_MM_ID.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

from numpy.typing import NDArray

from ream.oracle.memmap import Facts

PARENT = 1
"""The number of the process that an experiment begins with; its children have the next numbers."""

STRANGER = 1 << 20
"""The first number of other processes that map a folio."""

Slot: TypeAlias = tuple[int, int]
"""The number of a process, and how many mappings of the folio it has."""

FREE: Slot = (0, 0)

_ID_MASK = (1 << 31) - 1  # the highest bit of one is a lock, of the other FOLIO_MM_IDS_SHARED


class Owners(NamedTuple):
    """The two slots of a folio. shared: whether more than one process may map it."""

    first: Slot
    second: Slot
    shared: bool

    def mapped(self, mm: int, nr: int, total: int) -> "Owners":
        """The slots after nr more mappings by a process; total: the number of all mappings then."""
        first, second, shared = self
        if first[0] == mm:
            first = (mm, first[1] + nr)
        elif second[0] == mm:
            second = (mm, second[1] + nr)
        elif first == FREE:
            first, shared = (mm, nr), shared or total != nr
        elif second == FREE:
            second, shared = (mm, nr), True
        return Owners(first, second, shared)

    def unmapped(self, mm: int, nr: int, total: int) -> "Owners":
        """The slots after a process removes nr mappings; total: the number of those that remain."""
        first, second, shared = self
        if first[0] == mm:
            first = (mm, first[1] - nr) if first[1] > nr else FREE
        elif second[0] == mm:
            second = (mm, second[1] - nr) if second[1] > nr else FREE
        # A process that keeps mappings does not check whether all remaining mappings are its own.
        keeps = mm in (first[0], second[0])
        return Owners(
            first, second, shared if keeps else shared and total not in (first[1], second[1])
        )


def owners_of(mappings: Sequence[Slot]) -> Owners:
    """The slots of a folio that processes mapped in this order, if they have mappings."""
    held = [(mm, nr) for mm, nr in mappings if nr]
    first, second, *_ = (*held, FREE, FREE)
    return Owners(first, second, len(held) > 1)


def are_kept(tails: NDArray[Any]) -> bool:
    """Whether the kernel has these slots; tails: of dtype first_tail_dtype()."""
    return "_mm_ids" in (tails.dtype.names or ())


def write_owners(tails: NDArray[Any], owners: Owners, facts: Facts) -> None:
    """Write the same slots into the first tail pages of folios, if the kernel has them."""
    if not are_kept(tails):
        return
    shared = facts["FOLIO_MM_IDS_SHARED_BIT"] if owners.shared else 0
    tails["_mm_ids"] = owners.first[0] | owners.second[0] << 32 | shared
    tails["_mm_id_mapcount"] = [owners.first[1] - 1, owners.second[1] - 1]


def read_owners(tails: NDArray[Any], at: int, facts: Facts) -> Owners:
    """The slots in the first tail page of one folio."""
    word = int(tails["_mm_ids"][at])
    counts = [int(count) + 1 for count in tails["_mm_id_mapcount"][at]]
    return Owners(
        (word & _ID_MASK, counts[0]),
        (word >> 32 & _ID_MASK, counts[1]),
        bool(word & facts["FOLIO_MM_IDS_SHARED_BIT"]),
    )
