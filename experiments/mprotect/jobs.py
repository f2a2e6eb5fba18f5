# SPDX-License-Identifier: GPL-2.0-only
"""What one process does that changes memory and verifies it, here and in guests.

mremap uses this as well: its program says the same of what it does.
"""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ream.count.guest import Counted
from ream.counted import counted
from ream.experiment.shape import MAX_ROUNDS
from ream.measure.plan import drawn_order
from ream.settings import WAIT_S, Setting, sole_door
from ream.stage.live import (
    FOLIO_KIB,
    THP,
    VISIT_S,
    VISIT_S_PER_GIB,
    Visits,
    nr_redone,
    offered_kib,
    operations,
    plan_settings,
    why_not,
)
from ream.stage.workload import Workload, build_workload, run_workload
from ream.values import Value

BLOCK_BYTES = 2 << 20
"""Programs map multiples of it; workloads/folios.h."""


def blocks(nr_bytes: int) -> int:
    """The bytes of whole blocks in which so many find place."""
    return -(-nr_bytes // BLOCK_BYTES) * BLOCK_BYTES


@dataclass(frozen=True)
class Job:
    """One process: rows that it gives samples of differ in the operation alone."""

    name: str
    """What the program calls itself; guests make its words of the parts between colons."""
    folio_kib: int
    nr_bytes: int
    """The size of its mapping."""
    rounds: int
    ops: tuple[str, ...]
    """Each is done once in a round."""
    words: tuple[str, ...]
    """Words for the program, besides those that every one gets."""
    shared: bool = False
    """Whether its memory is shared; that has settings of its own."""


def named_words(options: Mapping[str, object], displaced_bytes: int | None) -> dict[str, Any]:
    """The fields `name` and `words` of a job.

    options: of the program, in the order in which guest.c reads their values in the name.
    displaced_bytes: other memory that is written before each operation; None: none is.
    """
    words = [word for option, value in options.items() for word in (f"--{option}", str(value))]
    name = ":".join(map(str, options.values()))
    if displaced_bytes is not None:
        words += ["--displace-bytes", str(displaced_bytes)]
        name += ":cold"
    return {"name": name, "words": tuple(words)}


class JobSample(Value):
    """One operation over one verified mapping, as a program says it."""

    run: str
    """The job's name."""
    folio_kib: int
    round: int
    op: str
    time_ns: int
    """Time by the clock; instructions in a guest whose clock counts these."""
    nr_ptes: int
    verified: bool
    launch: int = 0
    window: int = 0
    """The name by which a plugin that counts knows the operation."""
    counted: Counted | None = None
    """What the kernel did meanwhile; None if it was not counted."""
    write_faults: int | None = None
    """Faults that writing to each page took afterwards; None if nobody wrote."""
    soft_dirtied: int | None = None
    """Pages that the kernel took for written afterwards, though nobody wrote."""


def jobs_of(jobs: Iterable[Job]) -> tuple[Job, ...]:
    """The same jobs, each once, by name, with the most rounds that are asked of it."""
    found: dict[str, Job] = {}
    for job in jobs:
        if job.name not in found or found[job.name].rounds < job.rounds:
            found[job.name] = job
    return tuple(found.values())


# --- Settings ----------------------------------------------------------------------------


def shared_kib(root: Path = Path("/")) -> tuple[int, ...]:
    """Sizes of folios that shared memory has a setting for, smallest first."""
    sizes = (root / THP.lstrip("/")).glob("hugepages-*kB/shmem_enabled")
    return tuple(sorted(int(path.parent.name.removeprefix("hugepages-")[:-2]) for path in sizes))


def shared_settings(folio_kib: int, offered: Sequence[int]) -> tuple[Setting, ...]:
    """Settings under which shared memory, where advised, comes in folios of one size.

    Source: shmem_allowable_huge_orders() in mm/shmem.c.
    """
    return tuple(
        Setting(f"{THP}/hugepages-{kib}kB/shmem_enabled", "advise" if kib == folio_kib else "never")
        for kib in offered
    )


def why_not_job(job: Job, root: Path = Path("/")) -> str | None:
    """Why a job cannot be done on this machine; None if it can."""
    if reason := why_not(job.folio_kib, job.nr_bytes, root):
        return reason
    if not job.shared or job.folio_kib == FOLIO_KIB[0]:
        return None
    if job.folio_kib not in shared_kib(root):
        return "this kernel offers no shared folios of that size (they came with Linux 6.11)"
    setting = f"{THP}/hugepages-{job.folio_kib}kB/shmem_enabled"
    if not os.access(root / setting.lstrip("/"), os.W_OK):
        return f"{setting}: cannot be written, even by root"
    return None


def settings_of(job: Job) -> tuple[Setting, ...]:
    """What holds while a job is done. Others than root have 4 KiB only, which need no settings."""
    if os.geteuid() != 0:
        return ()
    shared = shared_settings(job.folio_kib, shared_kib()) if job.shared else ()
    return (*plan_settings(job.folio_kib, offered_kib()), *shared)


def settings_lines(jobs: Iterable[Job]) -> Iterator[str]:
    """Lines for a dry run: the settings and their values during jobs."""
    wanted = (setting for job in jobs for setting in settings_of(job) if setting.value != "never")
    for setting in dict.fromkeys(wanted):
        yield f"setting     {setting.path} = {setting.value}, other sizes never, meanwhile"


# --- On this machine ---------------------------------------------------------------------


def visit_order(jobs: Sequence[Job], *, launches: int, seed: int) -> Iterator[tuple[int, int, Job]]:
    """Every job once in every round of every launch that it has, each time in a new order.

    Yields (launch, round, job): what drifts meanwhile meets all jobs alike.
    """
    named = {job.name: job for job in jobs}
    for launch in range(launches):
        for number in range(max(job.rounds for job in jobs)):
            for name in drawn_order(named, seed, launch, "visit", number):
                if number < named[name].rounds:
                    yield launch, number, named[name]


def visited(
    program: Workload, jobs: Sequence[Job], visits: Visits
) -> Iterator[tuple[Job, JobSample]]:
    """Every sample of jobs on the running kernel: a process for each job and round.

    Only during one are settings changed: none is while the caller has a sample. Raises what
    building and running the program raise. Nothing of it outlives this iterator.
    """
    visits.step(f"compiling {program}.c")
    built = build_workload(program, visits.work)
    with sole_door(say=visits.step, wait_s=WAIT_S) as door:
        for launch, number, job in visit_order(jobs, launches=visits.launches, seed=visits.seed):
            deadline_s = VISIT_S + VISIT_S_PER_GIB * job.nr_bytes / (1 << 30)
            # One seed for all jobs of a round: whatever is drawn, they are drawn alike.
            drawn = (visits.seed * visits.launches + launch) * MAX_ROUNDS + number
            argv = (str(built), "--run", job.name, "--seed", str(drawn % (1 << 63)), *job.words)

            def visit(
                argv: Sequence[str] = argv, job: Job = job, deadline_s: float = deadline_s
            ) -> str:
                with door.applied(settings_of(job)):
                    return run_workload(argv, visits.work, deadline_s)

            said = visits.recall(f"{program.name} {job.name} {launch}.{number}", visit)
            if redone := nr_redone(said):
                visits.step(
                    f"{job.name}: {counted(redone, 'mapping')} not as wanted, and made again"
                )
            for its in operations(said):
                yield job, sample_said(its, launch=launch, number=number)


def sample_said(said: Mapping[str, object], *, launch: int, number: int) -> JobSample:
    """The sample in what a program of one round says."""
    return JobSample.model_validate({**said, "launch": launch, "round": number})
