# SPDX-License-Identifier: GPL-2.0-only
"""A made-up build, and mappings on it, for tests of the oracle of mprotect()."""

from collections.abc import Mapping

from experiments.fork.oracle.images import initial
from experiments.fork.tests.world import FACTS as OF_FORK
from experiments.fork.tests.world import NEWER as NEWER_OF_FORK
from experiments.fork.tests.world import PLACE
from experiments.mprotect.oracle.change import Change, Changed, change_protection
from ream.oracle import pte
from ream.oracle.mapping import Mapping as Vma

ASKS = {
    "MM_CP_TRY_CHANGE_WRITABLE": 1,
    "MM_CP_PROT_NUMA": 2,
    "MM_CP_UFFD_WP": 4,
    "MM_CP_UFFD_WP_RESOLVE": 8,
    "NUMA_BALANCING": 1,
    "PTE_NEEDS_FLUSH": 1,
    "MMU_GATHER_MERGE_VMAS": 1,
}
FACTS = {**OF_FORK, **ASKS, "NUMA_SPARES_ALL_PINNED": 0}
NEWER = {**NEWER_OF_FORK, **ASKS, "NUMA_SPARES_ALL_PINNED": 1}
ARM64 = {
    **FACTS,
    "ARM64": 1,
    "MEM_SOFT_DIRTY": 0,
    "MAX_DVM_OPS": 512,
    "PTE_NEEDS_FLUSH": 0,
    "MMU_GATHER_MERGE_VMAS": 0,
}
"""Facts of arm64 in 6.12. Later kernels let the architecture skip needless flushes."""
ARM64_NEWER = {**ARM64, "PTE_NEEDS_FLUSH": 1}


def facts_for(vma: Vma) -> Mapping[str, int]:
    """Facts of the first kernel that has every kind of entry in the VMA."""
    return next(facts for facts in (FACTS, NEWER) if not vma.missing_facts(facts))


def changed(vma: Vma, change: Change, *, batched: bool = False) -> Changed:
    """What comes of a change of a mapping as it is."""
    facts = facts_for(vma)
    before = initial(vma, facts, PLACE).parent
    return change_protection(vma, before, change, facts, batched=batched)


def words(result: Changed) -> list[int]:
    """Entries of the result as integers."""
    return [int(word) for word in result.entries]


def flags(result: Changed) -> list[int]:
    """Entries of the result without frame numbers."""
    return [word & ~pte.PFN_MASK for word in words(result)]
