# SPDX-License-Identifier: GPL-2.0-only
"""compact in the vm stage: a fresh boot for every sample, since compaction undoes what it needs."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from ream.errors import BadUsage, ReamError
from ream.experiment import IDEAL_PAGES, PAGE_BYTES, Compact, CompactRow, is_copy
from ream.experiment.engine import NOT_COUNTED, EngineModel
from ream.kernel.image import Image
from ream.kernel.source import Tree
from ream.measure.compaction import Compacted
from ream.measure.plan import Launch, drawn_order
from ream.measure.sample import Sample
from ream.progress import Reporter
from ream.record.machine import conditions, take_snapshot
from ream.record.record import RecordWriter
from ream.session.guests import (
    Setting,
    boots_at_once,
    choose_setting,
    config_sha256,
    consoles,
    guest_of,
    prepare,
    shown_boot,
)
from ream.session.kept import kept_boots
from ream.session.request import GuestOptions, Measured, Request
from ream.stage.boots import Boot
from ream.stage.guest import Guest
from ream.stage.qemu import Machine
from ream.stage.vm import Kernel
from ream.stage.vm_compact import (
    OWN_MODULES,
    CompactPlan,
    CompactSample,
    compact_initramfs,
    compact_nodes,
    run_compact_boot,
)

PROVIDER = "dcbm"
"""What copies by DMA; a module of kernels with the published series."""

LEAST_BUSY_CPUS = 2
"""One that allocates, which a hog may share; one for the engine and all else."""


@dataclass(frozen=True)
class CompactBoot(Boot):
    """One boot, as planned."""

    row: CompactRow
    plan: CompactPlan

    says = CompactSample

    @property
    def title(self) -> str:
        return f"{self.row.name}, {self.variant}, launch {self.launch + 1}"

    def run(self, begun: Callable[[Guest], None]) -> Iterator[CompactSample]:
        yield run_compact_boot(
            self.machine, self.kernel, self.plan, append=self.append, log=self.log, begun=begun
        )


def plan_of(
    row: CompactRow,
    seed: int,
    modules: Collection[str] = (PROVIDER,),
    *,
    icount: bool = False,
) -> CompactPlan:
    """What the guest of a row does, in a kernel with these modules.

    A kernel that cannot copy by DMA copies itself: it is what the others are compared with.
    icount: instructions are counted, of which a device that is waited for takes none; so there
    the engine has no model.
    """
    offloads = row.uses_dma and PROVIDER in modules
    return CompactPlan(
        mode=row.mode if offloads else "busy-baseline" if row.busy else "baseline",
        nr_huge=row.nr_huge,
        buffer_bytes=row.buffer_bytes,
        node_bytes=row.node_bytes,
        channels=row.channels if offloads else 0,
        model=row.model if offloads and not icount else None,
        seed=seed,
        words=("scattered=1",) if row.holes == "scattered" else (),
    )


def seed_of(launch: Launch) -> int:
    """The seed of holes and contents in a launch, the same for all of its variants.

    How much there is to do depends on them, so an interval over launches is over such draws, too.
    """
    return launch.seed >> 1


# --- Guests ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Settings:
    """What the guests of each row have in common: those with two CPUs count no instructions."""

    idle: Setting
    timed: Setting

    @classmethod
    def of_options(
        cls,
        rows: Sequence[CompactRow],
        options: GuestOptions,
        choose: Callable[[GuestOptions], Setting],
    ) -> Self:
        """Choose them; raises what choosing raises, and BadUsage for what a row decides."""
        refuse_options(rows, options)
        if all(row.timed for row in rows):
            options = replace(options, icount=False)
        idle = choose(options)
        return cls(idle, replace(idle, icount=False))

    def of(self, row: CompactRow) -> Setting:
        return self.timed if row.timed else self.idle

    def kinds(self, rows: Iterable[CompactRow]) -> dict[bool, tuple[Setting, list[CompactRow]]]:
        """Rows by whether their guests count instructions."""
        found: dict[bool, tuple[Setting, list[CompactRow]]] = {}
        for row in rows:
            setting = self.of(row)
            found.setdefault(setting.icount, (setting, []))[1].append(row)
        return found


def refuse_options(rows: Iterable[CompactRow], options: GuestOptions) -> None:
    """Raise BadUsage for an option that the rows leave no room for."""
    timed = ", ".join(row.name for row in rows if row.timed)
    if options.memory_bytes or options.nodes or options.distances:
        raise BadUsage(
            "--memory, --numa and --numa-distance: compaction is of a node of its own, whose size"
            " is the row's node_bytes; give a row of your own in a .toml file"
        )
    if timed and options.icount:
        raise BadUsage(
            f"--icount: a hog and an engine need {LEAST_BUSY_CPUS} CPUs, and instructions are"
            f" counted of one only; leave out {timed} with --row"
        )
    if timed and options.cpus is not None and options.cpus < LEAST_BUSY_CPUS:
        raise BadUsage(
            f"--cpus {options.cpus}: {timed}: the hog has the allocating CPU, the engine needs"
            f" another; give {LEAST_BUSY_CPUS} at least"
        )


def machine_of(plan: CompactPlan, setting: Setting) -> Machine:
    """The guest's machine: a node for the system and all CPUs, and one that is fragmented."""
    machine = setting.machine_of(plan.least_bytes)
    return replace(machine, nodes=compact_nodes(machine.cpus, plan))


def shown_command(setting: Setting, plan: CompactPlan) -> str:
    """Of a boot, as `guests.shown_boot` shows it."""
    return shown_boot(setting, machine_of(plan, setting), plan.init_words(), archive="compact.cpio")


# --- The run -----------------------------------------------------------------------------


def measure_compact_vm(
    request: Request, tree: Tree, *, work: Path, record: RecordWriter, reporter: Reporter
) -> Measured:
    """Build the kernels and boot them in turn; raises what building and booting raise."""
    assert isinstance(request.experiment, Compact)
    rows = request.experiment.rows
    settings = Settings.of_options(
        rows, request.guest, lambda options: choose_setting(options, request.cache)
    )
    record.journal.agree("guests", str(settings.idle))
    plans = {row.name: plan_of(row, request.seed) for row in rows}
    # Before anything is built: whether there is memory for the largest guest of either kind.
    at_once = {
        icount: boots_at_once(setting, max(plans[row.name].least_bytes for row in its))
        for icount, (setting, its) in settings.kinds(rows).items()
    }
    kernels, launches = prepare(
        request,
        tree,
        settings.of(max(rows, key=lambda row: row.timed)),
        initramfs=lambda image, init, place: compact_initramfs(image, init=init, work=place),
        modules=OWN_MODULES,
        work=work,
        reporter=reporter,
        counts_repeat=False,
    )
    start = take_snapshot()
    taken: list[Taken] = []
    with consoles(request.cache / "console" / record.path.name) as logs:
        boots = plan_boots(launches, rows, settings, kernels, consoles=logs)
        total = sum(float(boot.row.nr_huge) for boot in boots)
        with reporter.measuring(total) as advance:
            # What is counted does not mind a neighbour; what is timed has the machine alone.
            for icount, its_at_once in sorted(at_once.items(), reverse=True):
                its = [boot for boot in boots if boot.machine.icount == icount]
                taken += _measure(
                    its, at_once=its_at_once, record=record, reporter=reporter, advance=advance
                )
    machines = {row.name: machine_of(plans[row.name], settings.of(row)) for row in rows}
    return Measured(
        rows=rows,
        samples=tuple(one.sample for one in taken),
        compacted=tuple(one.compacted for one in taken),
        conditions=conditions(start, take_snapshot()),
        launches=len({boot.launch for boot in boots}),
        config_sha256=config_sha256(kernels),
        options={"accel": settings.idle.accel, "icount": any(at_once)},
        unit=settings.of(rows[0]).unit,
        units={row.name: settings.of(row).unit for row in rows},
        guest=guest_of(
            settings.of(rows[0]),
            machines,
            {
                row.name: shown_command(
                    settings.of(row),
                    plan_of(row, seed_of(launches[0]), icount=settings.of(row).icount),
                )
                for row in rows
            },
            kernels,
        ),
        remarks={row.name: tuple(remarks(row, taken, settings.of(row))) for row in rows},
    )


def plan_boots(
    launches: Sequence[Launch],
    rows: Iterable[CompactRow],
    settings: Settings,
    kernels: Mapping[str, tuple[Image, Kernel]],
    *,
    consoles: Path,
) -> list[CompactBoot]:
    """Every variant once for every row in every launch, side by side in random order."""
    boots = []
    for launch in launches:
        for row in rows:
            setting = settings.of(row)
            for variant in drawn_order(launch.link_order, launch.seed, row.name):
                image, kernel = kernels[variant]
                plan = plan_of(row, seed_of(launch), image.modules, icount=setting.icount)
                boots.append(
                    CompactBoot(
                        variant=variant,
                        launch=launch.number,
                        machine=machine_of(plan, setting),
                        kernel=kernel,
                        append=setting.options.append,
                        log=consoles / f"{row.name}-{variant}-{launch.number}.log",
                        row=row,
                        plan=plan,
                    )
                )
    return boots


@dataclass(frozen=True)
class Taken:
    """What one boot gave."""

    sample: Sample
    compacted: Compacted
    plan: CompactPlan


def _measure(
    boots: Sequence[CompactBoot],
    *,
    at_once: int,
    record: RecordWriter,
    reporter: Reporter,
    advance: Callable[[float, str], None],
) -> Iterator[Taken]:
    """Run every boot; each sample is in the record as soon as it is known."""
    for boot, said in kept_boots(boots, at_once=at_once, journal=record.journal, reporter=reporter):
        if not isinstance(said, CompactSample):
            record.keep(f"consoles/{boot.log.name}", boot.log)
            continue
        taken = taken_of(said, boot)
        record.append(taken.sample, taken.compacted.extra())
        advance(float(boot.row.nr_huge), boot.title)
        yield taken


def taken_of(said: CompactSample, boot: CompactBoot) -> Taken:
    """What the guest said, as a record has it. Raises ReamError if it got no huge page at all."""
    row = boot.row
    if not said.allocated:
        raise ReamError(
            f"{boot.title}: the kernel gave not one of {said.asked:,} huge pages; see {boot.log}"
        )
    sample = Sample(
        row=row.name,
        launch=boot.launch,
        round=0,
        role="variant",
        subject=boot.variant,
        threads=boot.machine.cpus,
        time_ns=said.time_ns,
        nr_bytes=said.allocated * (PAGE_BYTES << row.order),
        verified=said.verified,
        # Where there is a hog, user time is its own: who allocates has next to none.
        cpu_ns=said.machine.system_ns if row.busy else said.machine.busy_ns,
    )
    compacted = Compacted(
        row=row.name,
        launch=boot.launch,
        subject=boot.variant,
        asked=said.asked,
        allocated=said.allocated,
        time_ns=said.time_ns,
        longest_ns=said.longest_ns,
        page_copy_ns=said.page_copy_ns,
        user_ns=said.user_ns,
        system_ns=said.system_ns,
        idle_ns=said.idle_ns,
        hog_iterations=said.hog_iterations,
        machine=said.machine,
        ballast=said.ballast,
        counters=said.counters,
        verified=said.verified,
    )
    return Taken(sample, compacted, boot.plan)


def remarks(row: CompactRow, taken: Iterable[Taken], setting: Setting) -> Iterator[str]:
    """Of a row: who copied, as the counters have it, and what is in a count or a time."""
    last = {
        one.sample.subject: one
        for one in taken
        if one.sample.row == row.name and not is_copy(one.sample.subject)
    }
    for variant, one in last.items():
        if one.compacted.allocated < one.compacted.asked:
            yield (
                f"{variant}: {one.compacted.allocated:,} of {one.compacted.asked:,} huge pages, and"
                " then none; ratios are of the time for each"
            )
        if one.plan.channels:
            yield f"{variant}: {copied(one.compacted, one.plan.model)}"
    if row.timed and setting.accel == "tcg":
        yield (
            "emulated, the guest's CPUs take turns on one of the host: what the engine's CPU takes,"
            " the hog's does not get, as with an engine in hardware it would"
        )
    if setting.icount:
        if row.model:
            yield NOT_COUNTED
        yield (
            "instructions are the whole guest's, of its one CPU: page copies are among them,"
            f" whoever copies; with the best of luck {row.nr_huge * IDEAL_PAGES:,} pages are moved"
        )


def copied(compacted: Compacted, model: EngineModel | None = None) -> str:
    """Who copied, in words: the share that the provider has taken."""
    counters = compacted.counters
    its = counters.get(f"{PROVIDER}_folios_migrated", 0)
    parts = [f"{its:,} pages copied by {PROVIDER}, {counters.get('pgmigrate_success', 0):,} moved"]
    if failures := counters.get(f"{PROVIDER}_folios_failures", 0):
        parts.append(f"{failures:,} failed, and were copied by the CPU")
    if declined := counters.get(f"{PROVIDER}_batches_declined", 0):
        parts.append(f"{declined:,} batches left to the CPU")
    parts.append(
        f"{counters.get('swdma_descriptors', 0):,} descriptors,"
        f" {counters.get('swdma_bytes', 0):,} bytes of the software engine"
    )
    if model:
        parts.append(model.kept_words(counters.get("swdma_late", 0)))
    return "; ".join(parts)
