# SPDX-License-Identifier: GPL-2.0-only
"""Direct compaction by the kernel this machine runs: huge pages where none is free.

Nearly all memory that is free in huge pages is held for that long, so how much it is, and what
stays, is known before anything is taken: `plan_memory`. What then holds it, the program
workloads/compact_thp.c, ends as soon as others need memory.
"""

import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError

from ream.counted import counted
from ream.errors import BadUsage, CannotRunHere, ReamError
from ream.experiment import RUNNING
from ream.measure.sample import Sample
from ream.measure.taken import Taken
from ream.published import Table
from ream.session.live import Live
from ream.settings import WAIT_S, Door, Setting, chosen, sole_door
from ream.size import format_size
from ream.stage.live import THP, VISIT_S, VISIT_S_PER_GIB, Step, Visits, grouped, visit_order
from ream.stage.memory import available_bytes
from ream.stage.workload import build_workload, run_workload
from ream.values import Value, faults

from .columns import CpuTimes, known, unknown
from .programs import COMPACT_THP, HOG
from .rows import CompactRow

HUGE_BYTES = 2 << 20
HUGE_ORDER = 9
PAGE_BYTES = 4096

Mode = Literal["baseline", "busy-baseline"]
"""busy: workloads/hog.c wants the same CPU all the time."""

MODES: tuple[Mode, ...] = ("baseline", "busy-baseline")

RESERVE_SHARE = 10
"""One part in so many of all memory stays available, unless another reserve is given."""

LEAST_RESERVE_BYTES = 1 << 30

MARGIN_BYTES = 256 << 20
"""What others may take of the memory over the reserve meanwhile, and we still get through."""

PROACTIVE = "/proc/sys/vm/compaction_proactiveness"
"""Compaction in the background, which would close the holes before we ask for any huge page."""

COMPACTED_SHARE = 2
"""One huge page in so many has to come from compaction. Otherwise the measurement is repeated,
because other processes freed memory meanwhile."""

MOST_ATTEMPTS = 3

PSI = "/proc/pressure/memory"


@dataclass(frozen=True)
class MemoryPlan:
    """What a run takes of a machine's memory, in bytes."""

    holes: int
    """Made full of holes: half of it is held."""
    ballast: int
    """Other huge pages that are free now."""
    huge: int
    """What compaction is to make, of what is free between the holes."""
    available: int
    reserve: int

    @property
    def taken(self) -> int:
        """Held at most."""
        return self.holes // 2 + self.ballast + self.huge

    @property
    def left(self) -> int:
        """Available at least, if nobody else takes any."""
        return self.available - self.taken

    def __str__(self) -> str:
        """Text of the plan that is shown before the measurement begins."""
        return (
            f"takes {format_size(_whole_mib(self.taken))} of the"
            f" {format_size(_whole_mib(self.available))} of memory that are available, for"
            f" seconds to minutes: {format_size(self.holes)} full of holes, about"
            f" {format_size(_whole_mib(self.ballast))} of ballast, {format_size(self.huge)} of"
            f" huge pages; gives all back as soon as others wait for memory, or less than"
            f" {format_size(_whole_mib(self.reserve))} are available"
        )


def _whole_mib(nr_bytes: int) -> int:
    return nr_bytes >> 20 << 20


def reserve_bytes(root: Path = Path("/")) -> int:
    """Memory that stays available unless another reserve is asked for."""
    for line in (root / "proc/meminfo").read_text(encoding="ascii").splitlines():
        if line.startswith("MemTotal:"):
            return max((int(line.split()[1]) << 10) // RESERVE_SHARE, LEAST_RESERVE_BYTES)
    raise CannotRunHere("/proc/meminfo does not say how much memory there is")


def free_in_blocks(root: Path = Path("/")) -> int:
    """Bytes that are free in huge pages and larger blocks, where ordinary memory may be had.

    Not those of the DMA zone: lowmem_reserve keeps it from us. /proc/buddyinfo has a line for
    each zone: "Node 0, zone   Normal  2746  5149 ...", blocks of order 0, 1, and so on.
    Raises CannotRunHere if there is no such file.
    """
    try:
        lines = (root / "proc/buddyinfo").read_text(encoding="ascii").splitlines()
    except OSError as cause:
        raise CannotRunHere(f"/proc/buddyinfo: {cause.strerror}") from cause
    total = 0
    for line in lines:
        _, _, said = line.partition("zone")
        zone, *counts = said.split()
        if zone != "DMA":
            blocks = enumerate(map(int, counts))
            total += sum(nr * (PAGE_BYTES << order) for order, nr in blocks if order >= HUGE_ORDER)
    return total


def plan_memory(
    nr_huge: int, holes: int, *, available: int, free_blocks: int, reserve: int
) -> MemoryPlan:
    """What is to be taken so that no huge page is free, and at least `reserve` stays available.

    holes: bytes to make full of holes, at least; more where that leaves enough available, for
    between holes memory is free for everybody who needs no huge page. All in bytes.
    Raises CannotRunHere, with the figures, if there is no such plan.
    """
    huge = nr_huge * HUGE_BYTES
    lacking = reserve + MARGIN_BYTES + huge - (available - free_blocks)
    asked = holes
    # Of what is free in huge pages, half of the holes stays free; all else is held.
    holes = max(asked, -(-2 * lacking // HUGE_BYTES) * HUGE_BYTES)
    plan = MemoryPlan(holes, max(0, free_blocks - holes), huge, available, reserve)
    if holes <= free_blocks:
        return plan
    raise CannotRunHere(
        f"{nr_huge} huge pages by compaction: {format_size(holes)} in free huge pages would have to"
        f" be made full of holes"
        + ("" if holes == asked else f", so that {format_size(_whole_mib(reserve))} stay available")
        + f"; of the {format_size(_whole_mib(available))} of memory that are available"
        f" {format_size(_whole_mib(free_blocks))} are; ask for fewer, or free memory"
    )


def plan_here(nr_huge: int, holes: int, reserve: int | None, root: Path = Path("/")) -> MemoryPlan:
    """`plan_memory` of this machine as it is now; errors as there."""
    return plan_memory(
        nr_huge,
        holes,
        available=available_bytes(root),
        free_blocks=free_in_blocks(root),
        reserve=reserve_bytes(root) if reserve is None else reserve,
    )


def _read(path: str, root: Path) -> str | None:
    try:
        return chosen((root / path.lstrip("/")).read_text())
    except OSError:
        return None


def wanted_settings(root: Path = Path("/")) -> tuple[Setting, ...]:
    """What has to be changed, so that a fault in advised memory compacts for a huge page.

    Nothing is changed that allows it already. Source: thp_vma_allowable_orders() in
    include/linux/huge_mm.h and vma_thp_gfp_mask() in mm/huge_memory.c.
    Raises CannotRunHere if the kernel has no huge pages.
    """
    top, defrag = _read(f"{THP}/enabled", root), _read(f"{THP}/defrag", root)
    if top is None or defrag is None:
        raise CannotRunHere(f"{THP}: this kernel has no transparent huge pages")
    wanted = []
    own = f"{THP}/hugepages-{HUGE_BYTES >> 10}kB/enabled"
    # Kernels before 6.8 have the top level only, which `inherit` refers to.
    of_size = _read(own, root) or "inherit"
    if of_size == "never":
        wanted.append(Setting(own, "madvise"))
    elif of_size == "inherit" and top == "never":
        wanted.append(Setting(f"{THP}/enabled", "madvise"))
    if defrag not in ("always", "madvise", "defer+madvise"):
        wanted.append(Setting(f"{THP}/defrag", "madvise"))
    return tuple(wanted)


def background_settings(root: Path = Path("/")) -> tuple[Setting, ...]:
    """What is changed where we may: no compaction in the background, which is not ours."""
    running = _read(PROACTIVE, root) not in (None, "0")
    # Of a container even root may be refused that.
    ours = os.geteuid() == 0 and os.access(root / PROACTIVE.lstrip("/"), os.W_OK)
    return (Setting(PROACTIVE, "0"),) if running and ours else ()


def why_not_compact(
    nr_huge: int, holes: int, reserve: int | None = None, root: Path = Path("/")
) -> str | None:
    """Why this cannot be measured on this machine; None if it can, as memory is now."""
    try:
        plan_here(nr_huge, holes, reserve, root)
        wanted = wanted_settings(root)
    except CannotRunHere as reason:
        return str(reason)
    if wanted and os.geteuid() != 0:
        return f"only root can do what it takes: {'; '.join(map(str, wanted))}"
    try:
        (root / PSI.lstrip("/")).read_text()
    except OSError as cause:
        return f"{PSI}: {cause.strerror}; without it nobody sees who waits for memory"
    return None


class LiveCompactSample(Value):
    """What the workload says; times are in nanoseconds."""

    asked: int
    allocated: int
    missed: int
    """Faults that gave small pages."""
    stalled: int
    """Faults that had to wait for compaction."""
    compacted: int
    """Huge pages that compaction made; the others were free in one piece."""
    time_ns: int
    """Time of all faults, with zeroing and with the faults that gave small pages."""
    longest_ns: int
    elapsed_ns: int
    """Time from first to last fault, including the reads of counters between two faults."""
    plain_ns: int
    """Mean time of a fault that took a free huge page as ballast."""
    user_ns: int
    system_ns: int
    """user_ns, system_ns: CPU time of the faulting thread."""
    hog_ns: int | None
    """CPU time of the hog meanwhile."""
    machine: CpuTimes
    """Times of all CPUs over all processes, in steps of a hundredth of a second."""
    hog_iterations: int | None
    holes_bytes: int
    ballast_bytes: int
    least_available_bytes: int
    resident_pages: int
    wrong_words: int
    counters: Mapping[str, int]
    """Growth of each counter of the whole system; workloads/counters.c names them."""


@dataclass(frozen=True)
class Visit:
    """What one mode gave in one round of a launch."""

    mode: Mode
    launch: int
    round: int
    sample: LiveCompactSample


def measure_compactions(
    modes: Sequence[Mode],
    *,
    visits: Visits,
    nr_huge: int,
    buffer_bytes: int,
    reserve: int | None,
    rounds: int,
) -> Iterator[Visit]:
    """Have page faults compact for `nr_huge` huge pages in each mode; every sample is verified.

    buffer_bytes: to be full of holes, a multiple of 2 MiB; more where `plan_memory` says so.
    reserve: bytes that stay available; None: `reserve_bytes`. visits.step: is told how much
    is taken, before it is. Every sample is a process of its own, in a new order in every round:
    what compaction leaves behind is no memory to measure the next in.
    Only during one are settings changed: none is while the caller has a sample. Call it from the
    main thread, for that handles signals.

    Raises BadUsage for what cannot be; CannotRunHere if `why_not_compact`, if another run changes
    settings, or if memory became scarce, all of it given back; VerificationFailed if memory is
    not what it was; ReamError if the workload fails otherwise. It never outlives this iterator.
    """
    if nr_huge <= 0 or buffer_bytes <= 0 or buffer_bytes % HUGE_BYTES:
        raise BadUsage(
            f"{nr_huge} huge pages of {buffer_bytes} bytes: both more than 0, and the bytes a"
            " multiple of 2 MiB"
        )
    if reason := why_not_compact(nr_huge, buffer_bytes, reserve):
        raise CannotRunHere(reason)
    launches, seed, work, step = visits.launches, visits.seed, visits.work, visits.step
    step(f"compiling {COMPACT_THP}.c")
    program, hog = build_workload(COMPACT_THP, work), build_workload(HOG, work)
    cpu = max(os.sched_getaffinity(0))  # the first is where interrupts go
    with sole_door(say=step, wait_s=WAIT_S) as door:
        for launch, number, which in visit_order(
            range(len(modes)), rounds=rounds, launches=launches, seed=seed
        ):
            mode = modes[which]
            options = ["--cpu", str(cpu), "--huge", str(nr_huge)]
            # One seed for all modes of a round: whatever is drawn, they are drawn alike.
            drawn = (seed * launches + launch) * rounds + number
            options += ["--seed", str(drawn % (1 << 63))]
            options += ["--hog", str(hog)] if mode.startswith("busy-") else []

            def visit(options: Sequence[str] = options, mode: Mode = mode, at: int = launch) -> str:
                return _measure(
                    door,
                    (str(program), *options),
                    lambda: plan_here(nr_huge, buffer_bytes, reserve),
                    where=f"{mode}, launch {at + 1} of {launches}",
                    work=work,
                    step=step,
                ).model_dump_json()

            name = f"compact {nr_huge} {buffer_bytes} {reserve} {mode}, {launch}.{number}"
            said = visits.recall(name, visit)
            yield Visit(mode, launch, number, LiveCompactSample.model_validate_json(said))


def _measure(
    door: Door,
    argv: Sequence[str],
    plan_now: Callable[[], MemoryPlan],
    *,
    where: str,
    work: Path,
    step: Step,
) -> LiveCompactSample:
    """One sample, of which compaction gave enough; again if others freed memory meanwhile."""
    said = ""
    for _ in range(MOST_ATTEMPTS):
        plan = plan_now()
        step(f"{where}: {plan}")
        memory = ("--bytes", str(plan.holes), "--reserve", str(plan.reserve))
        deadline_s = VISIT_S + VISIT_S_PER_GIB * plan.taken / (1 << 30)
        with door.applied((*wanted_settings(), *background_settings())):
            sample = read_sample(run_workload((*argv, *memory), work, deadline_s))
        if not sample.allocated:
            raise CannotRunHere(
                f"{where}: compaction gave no huge page at all in"
                f" {counted(sample.missed, 'fault')}; memory is too fragmented, or the"
                " kernel gave it up for a while"
            )
        if sample.compacted * COMPACTED_SHARE >= sample.allocated:
            return sample
        said = next(remarks_of([sample]))
        step(f"{where}: {said}, which is too little; once more")
    raise CannotRunHere(
        f"{where}: {said}, in the last of {MOST_ATTEMPTS} attempts; does somebody free much memory?"
    )


def read_sample(said: str) -> LiveCompactSample:
    """The sample in what a workload printed, which came to its end.

    Raises ReamError if there is none.
    """
    for line in said.splitlines():
        fields: dict[str, Any] = json.loads(line)
        if "compact" in fields:
            try:
                return LiveCompactSample.model_validate(fields["compact"])
            except ValidationError as cause:
                raise ReamError(
                    f"{COMPACT_THP} said something that is no sample: {faults('compact', cause)}"
                ) from cause
    raise ReamError(f"{COMPACT_THP} gave no sample")


def remarks_of(samples: Sequence[LiveCompactSample]) -> Iterator[str]:
    """Remarks on all samples of a row: where huge pages came from, and what memory it took."""
    allocated, compacted, missed = (
        sum(getattr(one, name) for one in samples) for name in ("allocated", "compacted", "missed")
    )
    yield f"{compacted:,} of {allocated:,} huge pages came from compaction"
    if free := allocated - compacted:
        yield f"huge pages that were free in one piece: {free:,}"
    if missed:
        yield f"faults that gave small pages: {missed:,}"
    if plain := [one.plain_ns for one in samples if one.plain_ns]:
        mean_us = sum(plain) / len(plain) / 1000
        yield f"a fault that gave a free huge page took {mean_us:,.0f} us on average"
    ballast, holes = (
        max(getattr(one, name) for one in samples) for name in ("ballast_bytes", "holes_bytes")
    )
    least = min(one.least_available_bytes for one in samples)
    yield (
        f"held at most: {ballast >> 20:,} MiB as ballast, {holes >> 21:,} MiB of"
        f" {holes >> 20:,} full of holes; at least {least >> 20:,} MiB stayed available"
    )
    grown = Counter[str]()
    for one in samples:
        grown.update(one.counters)
    if (others := grown["thp_fault_alloc"] - allocated) > 0:
        yield f"counters are the system's: {others:,} huge pages were given to others meanwhile"
    if daemon := grown["compact_daemon_migrate_scanned"]:
        yield f"compaction in the background scanned {daemon:,} pages meanwhile"


def why_not_row(row: CompactRow) -> str | None:
    return why_not_compact(row.nr_huge, row.buffer_bytes, row.reserve_bytes)


def taken(rows: Sequence[CompactRow], visits: Visits) -> Iterator[Taken]:
    """Every sample of rows; those that differ in their mode only take turns."""
    for same_size in grouped(rows, lambda row: (row.buffer_bytes, row.rounds)):
        for wanted in _turns(same_size):
            some = next(iter(wanted.values()))
            for visit in measure_compactions(
                [mode for mode in MODES if mode in wanted],
                visits=visits,
                nr_huge=some.nr_huge,
                buffer_bytes=some.buffer_bytes,
                reserve=some.reserve_bytes,
                rounds=some.rounds,
            ):
                row = wanted[visit.mode]
                yield taken_of(visit.sample, row, launch=visit.launch, round_number=visit.round)


def _turns(rows: Iterable[CompactRow]) -> Iterator[dict[str, CompactRow]]:
    """Rows by mode, that are alike but for it; of two with the same mode each is of its own."""
    alike: dict[tuple[int, int | None, int], dict[str, CompactRow]] = {}
    for row in rows:
        same = 0
        while row.mode in alike.get((row.nr_huge, row.reserve_bytes, same), {}):
            same += 1
        alike.setdefault((row.nr_huge, row.reserve_bytes, same), {})[row.mode] = row
    yield from alike.values()


def taken_of(said: LiveCompactSample, row: CompactRow, *, launch: int, round_number: int) -> Taken:
    """What the workload said of huge pages, as a record and the report have it.

    User time is the hog's where there is one: who faults has next to none.
    """
    numbers = {
        "asked": said.asked,
        "allocated": said.allocated,
        "ballast": said.ballast_bytes // HUGE_BYTES,
        "longest_ns": said.longest_ns,
        "page_copy_ns": None,
        "user_ns": said.user_ns + (said.hog_ns or 0),
        "system_ns": said.system_ns,
        "idle_ns": None,
        "hog_iterations": said.hog_iterations,
        **dict(said.machine.beside()),
        **said.counters,
    }
    sample = Sample(
        row=row.name,
        launch=launch,
        round=round_number,
        role="variant",
        subject=RUNNING,
        threads=1,
        time_ns=said.time_ns,
        nr_bytes=said.allocated * HUGE_BYTES,
        verified=not said.wrong_words,
        cpu_ns=said.machine.busy_ns,
        beside=known(numbers),
    )
    return Taken(sample, unknown(numbers), said)


def remarks(
    rows: Sequence[CompactRow], taken: Sequence[Taken], tables: Sequence[Table]
) -> dict[str, tuple[str, ...]]:
    """Remarks by row: where huge pages came from, and what memory that took."""
    del tables
    said: dict[str, list[LiveCompactSample]] = {}
    for one in taken:
        if isinstance(one.said, LiveCompactSample):
            said.setdefault(one.sample.row, []).append(one.said)
    return {row.name: tuple(remarks_of(said[row.name])) for row in rows if row.name in said}


def plan_lines(rows: Sequence[CompactRow]) -> Iterator[str]:
    """Lines of a dry run: the memory it takes and the settings that change meanwhile."""
    measured = [row for row in rows if not why_not_row(row)]
    for row in measured:
        memory = plan_here(row.nr_huge, row.buffer_bytes, row.reserve_bytes)
        yield f"memory      {row.name}: {memory}"
    for setting in (*wanted_settings(), *background_settings()) if measured else ():
        yield f"setting     {setting.path} = {setting.value}, meanwhile"


LIVE: Live[CompactRow] = Live(
    why_not=why_not_row,
    taken=taken,
    plan_lines=plan_lines,
    programs=(COMPACT_THP, HOG),
    remarks=remarks,
)
