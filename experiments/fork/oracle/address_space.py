# SPDX-License-Identifier: GPL-2.0-only
"""What fork() must make of an address space, VMA by VMA, and what its counters must say.

Written from what the interfaces promise: madvise(2) for what a child does not get, mlock(2) for
locks, which it does not inherit, and Documentation/mm/overcommit-accounting.rst for promises.
Where a rule is the kernel's own the function that has it is named.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from experiments.fork.address_spaces import FLAGS, PAGE_SHIFT, Vma

Words = NDArray[np.uint64]

MM_ANONPAGES = 1
"""Index among the four page counters of an mm. Source: include/linux/mm_types_task.h."""


@dataclass(frozen=True)
class Placed:
    """A VMA at its place. pgoff: its first page, in its file or in anonymous memory."""

    vma: Vma
    start: int
    pgoff: int

    @property
    def end(self) -> int:
        return self.start + (self.vma.nr_pages << PAGE_SHIFT)

    @property
    def flags(self) -> int:
        return self.vma.vm_flags

    def has(self, *names: str) -> bool:
        """Whether it has each of these flags."""
        return all(name in self.vma.flags for name in names)

    @property
    def inherited(self) -> bool:
        """Whether a child has it. Source: madvise(2), MADV_DONTFORK."""
        return not self.has("dc")

    @property
    def copied(self) -> bool:
        """Whether a child sees its pages. Source: madvise(2), MADV_WIPEONFORK."""
        return self.inherited and not self.has("wf")


def placed(layout: Iterable[Vma]) -> list[Placed]:
    """The VMAs of a layout, each behind the gap before it."""
    found, page = [], 0
    for vma in layout:
        page += vma.gap
        found.append(Placed(vma, page << PAGE_SHIFT, vma.offset if vma.file else page))
        page += vma.nr_pages
    return found


def asked(its: Sequence[Placed]) -> Words:
    """What the runner is told of each: experiments/fork/calling/calling.h, enum asked_word."""
    rows = [
        (
            *(one.start, one.end, one.flags, one.vma.file, one.vma.offset),
            *(one.vma.nr_anon, one.copied),
        )
        for one in its
    ]
    return np.array(rows, np.uint64).reshape(-1)


def _words(one: Placed, flags: int, chains: int, *, own: bool, reached: int) -> tuple[int, ...]:
    return (
        *(one.start, one.end, flags, one.vma.file, one.pgoff),
        *(chains, own, reached),
    )


def parent_vmas(its: Sequence[Placed], *, forked: bool) -> Words:
    """The parent's, of each enum vma_word. forked: a child maps its pages, too.

    An anonymous page is found in each VMA that may map it (Documentation/mm/unevictable-lru.rst on
    rmap walks): the parent's, and the child's if that has inherited the page.
    """

    def of(one: Placed) -> tuple[int, ...]:
        has = one.vma.nr_anon > 0
        reached = has + (forked and has and one.copied)
        return _words(one, one.flags, int(has), own=has, reached=reached)

    return np.array([of(one) for one in its], np.uint64).reshape(-1)


def child_vmas(its: Sequence[Placed]) -> Words:
    """The child's, of each enum vma_word.

    New pages of the child have an anon_vma of its own, below the parent's, which old ones keep:
    two for each VMA that has inherited pages (anon_vma_fork(), mm/rmap.c).
    """
    locked = FLAGS["lo"]

    def of(one: Placed) -> tuple[int, ...]:
        has = one.copied and one.vma.nr_anon > 0
        return _words(one, one.flags & ~locked, 2 * has, own=has, reached=2 * has)

    return np.array([of(one) for one in its if one.inherited], np.uint64).reshape(-1)


def _is_stack(one: Placed) -> bool:
    return one.has("gd")


def _is_exec(one: Placed) -> bool:
    return one.has("ex") and not one.has("wr") and not _is_stack(one)


def _is_data(one: Placed) -> bool:
    return one.has("wr") and not one.has("sh") and not _is_stack(one)


def counters(its: Iterable[Placed], *, pages: int) -> list[int]:
    """Counters of an mm with these VMAs, in the order of enum space_counter in calling.h.

    Each VMA is of one kind at most: executable, stack or data. Source: proc(5), VmExe, VmStk and
    VmData of /proc/PID/status, and vm_stat_account(), mm/mmap.c.
    """
    its = tuple(its)

    def sum_of(which: Iterable[Placed]) -> int:
        return sum(one.vma.nr_pages for one in which)

    rss = [0, 0, 0, 0]
    rss[MM_ANONPAGES] = pages
    return [
        len(its),
        sum_of(its),
        sum_of(filter(_is_data, its)),
        sum_of(filter(_is_exec, its)),
        sum_of(filter(_is_stack, its)),
        0,
        *rss,
        1,
    ]


def parent_counters(its: Sequence[Placed]) -> list[int]:
    return counters(its, pages=sum(one.vma.nr_anon for one in its))


def child_counters(its: Sequence[Placed]) -> list[int]:
    """Locked pages are none of a child's: mlock(2)."""
    pages = sum(one.vma.nr_anon for one in its if one.copied)
    return counters((one for one in its if one.inherited), pages=pages)


def _promised(its: Iterable[Placed]) -> int:
    return sum(one.vma.nr_pages for one in its if one.has("ac"))


def committed(its: Sequence[Placed]) -> list[int]:
    """Pages that are promised to the parent, and to both."""
    alone = _promised(its)
    return [alone, alone + _promised(one for one in its if one.inherited)]


def file_vmas(its: Sequence[Placed]) -> list[int]:
    """VMAs that files know of, and that have a reference to them: the parent's, and of both."""
    of_files = [one for one in its if one.vma.file]
    return [len(of_files), len(of_files) + sum(one.inherited for one in of_files)]


def fitting(layout: Iterable[Vma]) -> list[Vma]:
    """The layout with what is no one's own page taken out: those of shared memory."""
    return [replace(one, nr_anon=0) if "sh" in one.flags else one for one in layout]


def images(its: Sequence[Placed]) -> Mapping[str, Words]:
    """What a plan has of a process, by name of its field."""
    return {
        "asked": asked(its),
        "parent": parent_vmas(its, forked=True),
        "alone": parent_vmas(its, forked=False),
        "child": child_vmas(its),
    }
