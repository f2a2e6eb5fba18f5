# SPDX-License-Identifier: GPL-2.0-only
"""Why the same program may do something else on another kernel.

A rule explains a difference at the step at which it begins. What differs later in the same respect
follows from it, since the two kernels are in different states then.
"""

from collections.abc import Callable
from dataclasses import dataclass

from ream.program.scene import resolve
from ream.program.step import Program, Step


@dataclass(frozen=True)
class Kernel:
    """A kernel that performs programs by system calls.

    has_huge_shmem: whether shmem_enabled gives huge pages without MADV_HUGEPAGE.
    is_shared: whether other programs use its memory and people choose its settings.
    """

    version: tuple[int, ...]
    nr_nodes: int = 1
    has_swap: bool = False
    has_huge_shmem: bool = False
    is_shared: bool = False


@dataclass(frozen=True)
class Beginning:
    """Where a kernel begins to do something else than the hosted one.

    respect: the step's name where results differ, else "contents", "VMAs" or a kind of pages.
    result: what the step returned on the hosted kernel.
    """

    program: Program
    kernel: Kernel
    step: Step
    respect: str
    hosted: object
    elsewhere: object
    result: object

    @property
    def is_newer(self) -> bool:
        """Whether code may have changed since the kernel that hosts programs by default."""
        return self.kernel.version > (6, 12)

    @property
    def more(self) -> int:
        """How much larger a number is elsewhere."""
        assert isinstance(self.hosted, int | None)
        assert isinstance(self.elsewhere, int | None)
        return (self.elsewhere or 0) - (self.hosted or 0)

    @property
    def advice(self) -> str:
        """The advice that the step gives, if it does."""
        return self.step.word("advice") if self.step.verb == "madvise" else ""

    @property
    def has_populated(self) -> bool:
        """Whether memory was populated before huge pages were asked for."""
        steps = (step for step in self.program if step.line <= self.step.line)
        return any("populate" in step.flags and step.get("thp") == "always" for step in steps)

    @property
    def has_disk(self) -> bool:
        """Whether the program has a file on the disk."""
        return any(self.has("file", kind=kind) for kind in ("disk", "large", "blocks"))

    def has(self, verb: str, **words: str) -> bool:
        """Whether the program has such a step, with these words, up to here."""
        return any(
            step.verb == verb and all(step.get(name) == word for name, word in words.items())
            for step in self.program
            if step.line <= self.step.line
        )


@dataclass(frozen=True)
class Rule:
    """What explains differences in some respects; none are named where all may differ.

    begins: whether a difference in one of these respects can begin so. results: steps whose results
    differ, too, once one has begun.
    """

    why: str
    respects: frozenset[str]
    begins: Callable[[Beginning], bool]
    results: frozenset[str] = frozenset({"mincore"})

    def explains(self, its: Beginning) -> bool:
        """Whether a difference can begin so."""
        return (its.respect in self.respects or not self.respects) and self.begins(its)


def nr_nodes(program: Program) -> int:
    """How many nodes a program declares."""
    (memory,) = (call for call in resolve(program) if call.name == "memory")
    return sum(1 for nr in memory.arguments.values() if nr)


EFAULT, EOPNOTSUPP = -14, -95
_NODE_STEPS = frozenset({"move_pages", "mbind", "set_mempolicy", "migrate_pages"})
_RSS = frozenset({"anon", "file", "shmem", "swap"})
_KERNEL_STEPS = ("reclaim", "compact", "hog", "vmalloc", "join", "pin", "fail",
                 "interrupt")  # fmt: skip
"""Steps that user space does not perform, and that change what is resident."""

RULES = (
    Rule(
        "it has fewer nodes than the program",
        _NODE_STEPS | {"VMAs", "anon"},
        lambda its: its.step.verb in _NODE_STEPS and its.kernel.nr_nodes < nr_nodes(its.program),
    ),
    Rule(
        "pages of the program's own code stay where they are, and are counted",
        frozenset({"migrate_pages"}),
        lambda its: its.more > 0,
    ),
    Rule(
        "it has no swap",
        frozenset({"anon", "swap"}),
        lambda its: its.advice == "pageout" and its.has("swap") and not its.kernel.has_swap,
    ),
    Rule(
        "its swap is a device, which takes a huge page whole",
        frozenset({"anon", "swap"}),
        lambda its: (
            its.kernel.has_swap
            and its.has("madvise", advice="pageout")
            and (its.has("mmap", thp="always") or its.has("madvise", advice="hugepage"))
        ),
    ),
    Rule(
        "its file system reads and maps other numbers of pages at once, or keeps all in memory",
        frozenset({"file", "mincore"}),
        lambda its: (
            its.has_disk and its.step.verb in {"read", "write", "madvise", "mlock", "mincore"}
        ),
        results=frozenset({"mincore", "move_pages"}),
    ),
    Rule(
        "its file system has fallocate()",
        frozenset({"fallocate"}),
        lambda its: its.has_disk and its.result == EOPNOTSUPP,
        results=frozenset({"contents", "file", "mincore"}),
    ),
    Rule(
        "a file of kind huge is one with small pages",
        frozenset({"shmem", "anon", "madvise"}),
        lambda its: its.has("file", kind="huge"),
    ),
    Rule(
        "pages after MADV_FREE go when the kernel wants memory",
        frozenset({"anon", "contents"}),
        lambda its: (
            its.has("madvise", advice="free") and (its.respect == "contents" or its.more < 0)
        ),
    ),
    Rule(
        "its settings and its free memory decide how large a huge page is",
        frozenset({"anon", "shmem", "madvise"}),
        lambda its: (
            its.kernel.is_shared
            and (its.advice == "collapse" or (its.has("mmap", thp="always") and its.more < 0))
        ),
        results=frozenset({"mincore", "madvise"}),
    ),
    Rule(
        "its files in memory get huge pages that nobody asked for",
        frozenset({"shmem", "read", "write"}),
        lambda its: its.kernel.has_huge_shmem and its.has("file", kind="shmem"),
        results=frozenset({"mincore", "contents"}),
    ),
    Rule(
        "since 6.17 mremap() moves several VMAs at once",
        frozenset(),
        lambda its: (
            its.step.verb == "mremap" and its.result == EFAULT and its.kernel.version >= (6, 17)
        ),
    ),
    Rule(
        "after 6.12 a write to the huge zero page gives a huge page, where it gave a small one",
        frozenset({"anon"}),
        lambda its: its.is_newer and its.step.verb == "write" and its.more > 0,
    ),
    Rule(
        "after 6.12 MADV_COLLAPSE needs no page that is writable",
        frozenset({"anon", "madvise"}),
        lambda its: its.is_newer and its.advice == "collapse",
    ),
    Rule(
        "after 6.12 VMAs of which one was never written to are merged after fork(), too",
        frozenset({"VMAs"}),
        lambda its: (
            its.is_newer
            and its.has("fork")
            and isinstance(its.hosted, tuple)
            and isinstance(its.elsewhere, tuple)
            and len(its.hosted) > len(its.elsewhere)
        ),
        results=frozenset(),
    ),
    Rule(
        "it did not perform steps of the kernel",
        _RSS | {"contents", "move_pages", "madvise", "compact"},
        lambda its: any(map(its.has, _KERNEL_STEPS)) or its.has("swap", size="off"),
        results=frozenset({"mincore", "move_pages"}),
    ),
    Rule(
        "khugepaged works at other times",
        frozenset({"anon", "shmem", "madvise"}),
        lambda its: its.has("wait") or its.has_populated,
    ),
)
