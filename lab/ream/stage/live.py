# SPDX-License-Identifier: GPL-2.0-only
"""The live stage: the kernel this machine runs, through the system calls of a plain program."""

import json
import os
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

from ream.counted import counted
from ream.errors import BadUsage, CannotRunHere
from ream.experiment.shape import RUNNING
from ream.measure.plan import drawn_order
from ream.measure.sample import Sample
from ream.settings import WAIT_S, Setting, sole_door
from ream.size import format_size
from ream.stage.memory import available_bytes
from ream.stage.workload import Workload, build_workload, run_workload

FOLIO_KIB = (4, 16, 32, 64, 128, 256, 512, 1024, 2048)
"""What anonymous memory comes in on x86-64. There is no 8: THP_ORDERS_ALL_ANON in
include/linux/huge_mm.h leaves out folios of two pages."""

THP = "/sys/kernel/mm/transparent_hugepage"

VISIT_S = 60.0
VISIT_S_PER_GIB = 120.0
"""A visit takes seconds per GiB; eight attempts at every mapping, emulated, some minutes."""

MEMORY_FACTOR = 1.1
"""Of the mapping, with page tables of two processes and the workload itself."""

T = TypeVar("T")

Step = Callable[[str], None]

Recall = Callable[[str, Callable[[], str]], str]
"""What a visit of that name said; it is done, or not if a run that was interrupted has done it."""


def do_anew(_visit: str, do: Callable[[], str]) -> str:
    """A Recall that remembers nothing."""
    return do()


@dataclass(frozen=True)
class Visits:
    """What every visit of a run has in common."""

    launches: int
    seed: int
    work: Path
    """A folder where programs may run."""
    step: Step
    recall: Recall = do_anew
    lost: dict[int, str] | None = None
    """Sizes of folios, in KiB, that memory could not be mapped in, each with the reason: they are
    not visited again, and the others are. None: the first of them ends all visits."""


@dataclass(frozen=True)
class Elsewhere:
    """Another machine, whose user is not root: what programs say there."""

    release: str
    """Of its kernel."""
    say: Callable[[Workload, Sequence[str]], str]
    """What a program said that was given these words; raises CannotRunHere if it did not run."""


_ELSEWHERE: ContextVar[Elsewhere | None] = ContextVar("elsewhere", default=None)


@contextmanager
def elsewhere(machine: Elsewhere) -> Iterator[None]:
    """As long as the block, programs are not run here: what they say is said by that machine."""
    token = _ELSEWHERE.set(machine)
    try:
        yield
    finally:
        _ELSEWHERE.reset(token)


def kernel_release() -> str:
    """The release of the kernel that programs run on."""
    there = _ELSEWHERE.get()
    return os.uname().release if there is None else there.release


class Said(Protocol):
    """What a workload says of one operation."""

    @property
    def launch(self) -> int: ...
    @property
    def round(self) -> int: ...
    @property
    def time_ns(self) -> int: ...
    @property
    def verified(self) -> bool: ...


def sample_of(said: Said, row: str, nr_bytes: int, cpu_ns: int | None = None) -> Sample:
    """The sample of the running kernel that a record has of an operation on `nr_bytes`."""
    return Sample(
        row=row,
        launch=said.launch,
        round=said.round,
        role="variant",
        subject=RUNNING,
        threads=1,
        time_ns=said.time_ns,
        nr_bytes=nr_bytes,
        verified=said.verified,
        cpu_ns=cpu_ns,
    )


def offered_kib(root: Path = Path("/")) -> tuple[int, ...]:
    """Folio sizes that the running kernel has a setting for, smallest first; 4 is no folio's."""
    sizes = (root / THP.lstrip("/")).glob("hugepages-*kB/enabled")
    return tuple(sorted(int(path.parent.name.removeprefix("hugepages-")[:-2]) for path in sizes))


def plan_settings(folio_kib: int, offered: Sequence[int]) -> tuple[Setting, ...]:
    """Settings under which anonymous memory, where advised, comes in folios of one size.

    Of all others nothing may come: a fault takes the largest size that is enabled. A size's own
    `madvise` holds whatever the top level says; that rules sizes set to `inherit` only.
    Source: thp_vma_allowable_orders() in include/linux/huge_mm.h.
    """
    return tuple(
        Setting(f"{THP}/hugepages-{kib}kB/enabled", "madvise" if kib == folio_kib else "never")
        for kib in offered
    )


def why_not(folio_kib: int, mapping_bytes: int = 1 << 30, root: Path = Path("/")) -> str | None:
    """Why folios of a size cannot be measured on this machine; None if they can."""
    if _ELSEWHERE.get() is not None:
        known = folio_kib == FOLIO_KIB[0]
        return None if known else "only root chooses the size of folios, and a kit needs no root"
    available = available_bytes(root)
    if mapping_bytes * MEMORY_FACTOR > available:
        return (
            f"{format_size(mapping_bytes)} do not fit into the {available >> 20} MiB of memory"
            " that are available"
        )
    return None if folio_kib == FOLIO_KIB[0] else _why_not_large(folio_kib, root)


def _why_not_large(folio_kib: int, root: Path) -> str | None:
    offered = offered_kib(root)
    setting = f"{THP}/hugepages-{folio_kib}kB/enabled"
    if not offered:
        return "this kernel offers no folios of a chosen size (that came with Linux 6.8)"
    if folio_kib not in offered:
        return f"this kernel offers no such size, but {', '.join(map(str, offered))} KiB"
    if os.geteuid() != 0:
        return "only root chooses the size of folios, and sees what memory is in them"
    if not os.access(root / setting.lstrip("/"), os.W_OK):
        return f"{setting}: cannot be written, even by root"
    if not os.access(root / "proc/kpageflags", os.R_OK):
        return "/proc/kpageflags: cannot be read; nothing else shows which folios there are"
    return None


def settings_lines(folio_kib: Iterable[int]) -> Iterator[str]:
    """Lines for a dry run: the settings and their values while folios of a size are mapped."""
    for kib in sorted(set(folio_kib)):
        for setting in plan_settings(kib, offered_kib()):
            if setting.value != "never":
                yield f"setting     {setting.path} = {setting.value}, other sizes never, meanwhile"


def known_sizes(folio_kib: Iterable[int]) -> list[int]:
    """The same sizes, each once and in order; raises BadUsage for one that there is not."""
    found = sorted(set(folio_kib))
    for kib in found:
        if kib not in FOLIO_KIB:
            raise BadUsage(f"folios of {kib} KiB: there is {', '.join(map(str, FOLIO_KIB))}")
    return found


def grouped(rows: Iterable[T], key: Callable[[T], Hashable]) -> list[list[T]]:
    """Rows that one program does together, by what they have in common; in their order."""
    groups: dict[Hashable, list[T]] = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return list(groups.values())


def visit_order(
    folio_kib: Sequence[int], *, rounds: int, launches: int, seed: int
) -> Iterator[tuple[int, int, int]]:
    """Every size once in every round of every launch, each time in a new order.

    Yields (launch, round, size): what drifts meanwhile meets all sizes alike.
    """
    for launch in range(launches):
        for number in range(rounds):
            for kib in drawn_order(folio_kib, seed, launch, "visit", number):
                yield launch, number, kib


def visited(
    workload: Workload,
    options: Sequence[str],
    folio_kib: Sequence[int],
    *,
    visits: Visits,
    nr_bytes: int,
    rounds: int,
) -> Iterator[tuple[int, int, str]]:
    """Launch, round and what it said of every run of a program, a process for each size and round.

    Only during one are settings changed: none is while the caller has what it said. Raises what
    building and running it raise; sizes that memory cannot be mapped in may be in visits.lost
    instead. It never outlives this iterator.
    """
    launches, seed, work, step = visits.launches, visits.seed, visits.work, visits.step
    order = visit_order(folio_kib, rounds=rounds, launches=launches, seed=seed)

    def words_of(launch: int, number: int, kib: int) -> list[str]:
        # One seed for all sizes of a round: whatever is drawn, they are drawn alike.
        drawn = (seed * launches + launch) * rounds + number
        return ["--folio-kib", str(kib), "--seed", str(drawn % (1 << 63)), *options]

    if (there := _ELSEWHERE.get()) is not None:
        for launch, number, kib in order:
            yield launch, number, there.say(workload, words_of(launch, number, kib))
        return
    step(f"compiling {workload}.c")
    program = build_workload(workload, work)
    deadline_s = VISIT_S + VISIT_S_PER_GIB * nr_bytes / (1 << 30)
    # Others than root have 4 KiB only, and those take no settings: MADV_NOHUGEPAGE sees to it.
    offered = offered_kib() if os.geteuid() == 0 else ()
    with sole_door(say=step, wait_s=WAIT_S) as door:
        for launch, number, kib in order:
            if kib in (visits.lost or ()):
                continue
            argv = [str(program), *words_of(launch, number, kib)]

            def visit(argv: Sequence[str] = argv, kib: int = kib) -> str:
                with door.applied(plan_settings(kib, offered)):
                    return run_workload(argv, work, deadline_s)

            name_of_visit = " ".join((workload.name, *options, f"{kib} KiB, {launch}.{number}"))
            try:
                said = visits.recall(name_of_visit, visit)
            except CannotRunHere as cause:
                if visits.lost is None:
                    raise
                step(f"folios of {kib} KiB are left out: {cause}")
                visits.lost[kib] = str(cause)
                continue
            if redone := nr_redone(said):
                step(
                    f"folios of {kib} KiB: {counted(redone, 'mapping')} not as wanted, and made"
                    " again"
                )
            yield launch, number, said


def operations(said: str) -> Iterator[Mapping[str, Any]]:
    """What a workload that came to its end said of its operations, in order."""
    for line in said.splitlines():
        if "op" in (fields := json.loads(line)):
            yield fields


def nr_redone(said: str) -> int:
    """How many mappings a workload that came to its end made in vain."""
    redone: int = json.loads(said.splitlines()[-1])["end"]["redone"]
    return redone
