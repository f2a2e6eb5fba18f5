# SPDX-License-Identifier: GPL-2.0-only
"""The live stage, which measures this machine's kernel through a plain program's system calls."""

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
"""Sizes of anonymous folios on x86-64. 8 is missing, as THP_ORDERS_ALL_ANON in
include/linux/huge_mm.h leaves out folios of two pages."""

THP = "/sys/kernel/mm/transparent_hugepage"

VISIT_S = 60.0
VISIT_S_PER_GIB = 120.0
"""Additional time limit of a visit for each GiB. A visit takes seconds per GiB, but minutes in an
emulated guest with eight attempts at every mapping."""

MEMORY_FACTOR = 1.1
"""Memory that a visit needs over the size of its mapping: page tables of two processes, and the
workload itself."""

T = TypeVar("T")

Step = Callable[[str], None]

Recall = Callable[[str, Callable[[], str]], str]
"""Returns the output of the visit with a name. The visit runs unless an interrupted run has its
output already."""


def do_anew(_visit: str, do: Callable[[], str]) -> str:
    """Run the visit: a Recall without a memory."""
    return do()


@dataclass(frozen=True)
class Visits:
    """Settings that all visits of a run share."""

    launches: int
    seed: int
    work: Path
    """The working folder of programs."""
    step: Step
    recall: Recall = do_anew
    lost: dict[int, str] | None = None
    """Folio sizes in KiB in which memory could not be mapped, with the reason. They are not visited
    again; other sizes are. None: the first such size ends all visits."""


@dataclass(frozen=True)
class Elsewhere:
    """Another machine, whose user is not root, with the output of programs there."""

    release: str
    """Release of the other machine's kernel."""
    say: Callable[[Workload, Sequence[str]], str]
    """Returns a program's output for these arguments; raises CannotRunHere if it did not run."""


_ELSEWHERE: ContextVar[Elsewhere | None] = ContextVar("elsewhere", default=None)


@contextmanager
def elsewhere(machine: Elsewhere) -> Iterator[None]:
    """Within the block, take the output of programs from another machine; none is run here."""
    token = _ELSEWHERE.set(machine)
    try:
        yield
    finally:
        _ELSEWHERE.reset(token)


def kernel_release() -> str:
    """Return the release of the kernel that programs run on."""
    there = _ELSEWHERE.get()
    return os.uname().release if there is None else there.release


class Said(Protocol):
    """A workload's report on one operation."""

    @property
    def launch(self) -> int: ...
    @property
    def round(self) -> int: ...
    @property
    def time_ns(self) -> int: ...
    @property
    def verified(self) -> bool: ...


def sample_of(said: Said, row: str, nr_bytes: int, cpu_ns: int | None = None) -> Sample:
    """Return the record's sample of the running kernel for an operation on `nr_bytes`."""
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
    """Return folio sizes in KiB that the running kernel has a setting for, ascending, without 4."""
    sizes = (root / THP.lstrip("/")).glob("hugepages-*kB/enabled")
    return tuple(sorted(int(path.parent.name.removeprefix("hugepages-")[:-2]) for path in sizes))


def plan_settings(folio_kib: int, offered: Sequence[int]) -> tuple[Setting, ...]:
    """Return settings under which advised anonymous memory is allocated in folios of one size.

    All other sizes are disabled, since a fault takes the largest enabled size. A size's own
    `madvise` applies whatever the top level setting is, which affects only sizes set to `inherit`.
    Source: thp_vma_allowable_orders() in include/linux/huge_mm.h.
    """
    return tuple(
        Setting(f"{THP}/hugepages-{kib}kB/enabled", "madvise" if kib == folio_kib else "never")
        for kib in offered
    )


def why_not(folio_kib: int, mapping_bytes: int = 1 << 30, root: Path = Path("/")) -> str | None:
    """Return why folios of a size cannot be measured on this machine; None if they can."""
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
    """Yield lines for a dry run: the settings while folios of each size are mapped."""
    for kib in sorted(set(folio_kib)):
        for setting in plan_settings(kib, offered_kib()):
            if setting.value != "never":
                yield f"setting     {setting.path} = {setting.value}, other sizes never, meanwhile"


def known_sizes(folio_kib: Iterable[int]) -> list[int]:
    """Return the sizes, each once and in order; raises BadUsage for one that does not exist."""
    found = sorted(set(folio_kib))
    for kib in found:
        if kib not in FOLIO_KIB:
            raise BadUsage(f"folios of {kib} KiB: there is {', '.join(map(str, FOLIO_KIB))}")
    return found


def grouped(rows: Iterable[T], key: Callable[[T], Hashable]) -> list[list[T]]:
    """Group rows by a key, for programs that measure a group together; the order is kept."""
    groups: dict[Hashable, list[T]] = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return list(groups.values())


def visit_order(
    folio_kib: Sequence[int], *, rounds: int, launches: int, seed: int
) -> Iterator[tuple[int, int, int]]:
    """Yield (launch, round, size): every size once per round of a launch, in a new random order.

    Drift during the run thus affects all sizes alike.
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
    """Run a program, a process for each size and round; yield launch, round and its output.

    Settings are changed only while it runs, and restored before its output is yielded. Raises what
    building and running it raise; sizes in which memory cannot be mapped may be added to
    visits.lost instead. The program never outlives this iterator.
    """
    launches, seed, work, step = visits.launches, visits.seed, visits.work, visits.step
    order = visit_order(folio_kib, rounds=rounds, launches=launches, seed=seed)

    def words_of(launch: int, number: int, kib: int) -> list[str]:
        # All sizes of a round have one seed, so that their random choices are the same.
        drawn = (seed * launches + launch) * rounds + number
        return ["--folio-kib", str(kib), "--seed", str(drawn % (1 << 63)), *options]

    if (there := _ELSEWHERE.get()) is not None:
        for launch, number, kib in order:
            yield launch, number, there.say(workload, words_of(launch, number, kib))
        return
    step(f"compiling {workload}.c")
    program = build_workload(workload, work)
    deadline_s = VISIT_S + VISIT_S_PER_GIB * nr_bytes / (1 << 30)
    # Without root only 4 KiB can be measured; MADV_NOHUGEPAGE makes that independent of settings.
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
    """Yield the reports on operations in the output of a complete workload, in order."""
    for line in said.splitlines():
        if "op" in (fields := json.loads(line)):
            yield fields


def nr_redone(said: str) -> int:
    """Return how many mappings a complete workload had to make again."""
    redone: int = json.loads(said.splitlines()[-1])["end"]["redone"]
    return redone
