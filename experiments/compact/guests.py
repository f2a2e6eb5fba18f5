# SPDX-License-Identifier: GPL-2.0-only
"""compact in the vm stage: a fresh boot for every sample, since compaction undoes what it needs."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from experiments.migrate.engine import NOT_COUNTED, EngineModel
from ream.errors import BadUsage, ReamError
from ream.experiment import PAGE_BYTES, is_copy
from ream.kernel.image import Image
from ream.measure.plan import Launch, drawn_order, plan_launches
from ream.measure.sample import Sample
from ream.measure.taken import Taken
from ream.report.contract import Unit
from ream.session.guests import GuestSetting, shown_boot
from ream.session.request import GuestOptions
from ream.session.vm import Choose, Guests, Kernels, Kind, Places
from ream.stage.boots import Boot
from ream.stage.qemu import GuestMachine
from ream.stage.vm import Start

from .boot import (
    OWN_MODULES,
    PROGRAMS,
    CompactPlan,
    CompactSample,
    compact_initramfs,
    compact_nodes,
    run_compact_boot,
)
from .columns import known, unknown
from .rows import HOLE_EVERY, CompactRow

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
    def weight(self) -> float:
        return float(self.row.nr_huge)

    @property
    def what(self) -> str:
        return f"{self.row.name}, {self.variant}"

    def run(self, start: Start) -> Iterator[CompactSample]:
        yield run_compact_boot(start, self.plan)


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
        words=tuple(_holes(row)),
    )


def _holes(row: CompactRow) -> Iterator[str]:
    if row.holes == "scattered":
        yield "scattered=1"
    if row.used_every != HOLE_EVERY:
        yield from (f"hole={row.used_every}", "few_used=1")


def seed_of(launch: Launch) -> int:
    """The seed of holes and contents in a launch, the same for all of its variants.

    How much there is to do depends on them, so an interval over launches is over such draws, too.
    """
    return launch.seed >> 1


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


def machine_of(plan: CompactPlan, setting: GuestSetting) -> GuestMachine:
    """The guest's machine: a node for the system and all CPUs, and one that is fragmented."""
    machine = setting.machine_of(plan.least_bytes)
    return replace(machine, nodes=compact_nodes(machine.cpus, plan))


class CompactGuests(Guests[CompactRow]):
    """A guest for each row and sample; those with two CPUs count no instructions."""

    modules = OWN_MODULES
    programs = PROGRAMS
    counts_repeat = False

    def __init__(
        self, rows: Sequence[CompactRow], options: GuestOptions, seed: int, choose: Choose
    ) -> None:
        refuse_options(rows, options)
        if all(row.timed for row in rows):
            options = replace(options, icount=False)
        self.rows = tuple(rows)
        self.skipped: Mapping[str, str] = {}
        self.setting = choose(options)
        self.by_name = {row.name: row for row in rows}
        (first, *_) = plan_launches([], launches=1, seed=seed)
        self.plans = {
            row.name: plan_of(row, seed_of(first), icount=self.setting_of(row).icount)
            for row in rows
        }
        self._last: dict[tuple[str, str], tuple[CompactSample, CompactPlan]] = {}
        """Last sample and its plan, by row and variant."""

    def setting_of(self, row: CompactRow) -> GuestSetting:
        return replace(self.setting, icount=False) if row.timed else self.setting

    @staticmethod
    def initramfs(image: Image, init: Path, work: Path) -> Path:
        return compact_initramfs(image, init=init, work=work)

    def kinds(self) -> Mapping[str, Kind]:
        found = {}
        for name, plan in self.plans.items():
            setting = self.setting_of(self.by_name[name])
            machine, words = machine_of(plan, setting), plan.init_words()
            found[name] = Kind(machine, shown_boot(setting, machine, words, archive="compact.cpio"))
        return found

    def touched_bytes(self) -> Mapping[bool, int]:
        found: dict[bool, int] = {}
        for name, plan in self.plans.items():
            icount = self.setting_of(self.by_name[name]).icount
            found[icount] = max(found.get(icount, 0), plan.least_bytes)
        return found

    def boots(self, launch: Launch, kernels: Kernels, places: Places) -> Iterator[CompactBoot]:
        for row in self.rows:
            setting = self.setting_of(row)
            for variant in drawn_order(launch.link_order, launch.seed, row.name):
                image, kernel = kernels[()][variant]
                plan = plan_of(row, seed_of(launch), image.modules, icount=setting.icount)
                yield CompactBoot(
                    variant=variant,
                    launch=launch.number,
                    machine=machine_of(plan, setting),
                    kernel=kernel,
                    append=setting.options.append,
                    log=places.consoles / f"{row.name}-{variant}-{launch.number}.log",
                    row=row,
                    plan=plan,
                )

    def taken(self, boot: Boot, said: object) -> Iterator[Taken]:
        assert isinstance(boot, CompactBoot)
        assert isinstance(said, CompactSample)
        taken = taken_of(said, boot)
        self._last[boot.row.name, boot.variant] = said, boot.plan
        yield taken

    def unit_of(self, row: str) -> Unit:
        return self.setting_of(self.by_name[row]).unit

    def remarks(self, row: CompactRow, names: Sequence[str]) -> Iterator[str]:
        """Remarks on what copied, by the counters, and on what a count or a time includes."""
        del names
        for (name, variant), (said, plan) in self._last.items():
            if name != row.name or is_copy(variant):
                continue
            if said.allocated < said.asked:
                yield (
                    f"{variant}: {said.allocated:,} of {said.asked:,} huge pages, and"
                    " then none; ratios are of the time for each"
                )
            if plan.channels:
                yield f"{variant}: {copied(said.counters, plan.model)}"
        if row.timed and self.setting.accel == "tcg":
            yield (
                "emulated, the guest's CPUs take turns on one of the host: what the engine's CPU"
                " takes, the hog's does not get, as with an engine in hardware it would"
            )
        if self.setting_of(row).icount:
            if row.model:
                yield NOT_COUNTED
            yield (
                "instructions are the whole guest's, of its one CPU: page copies are among them,"
                " whoever copies; with the best of luck"
                f" {row.nr_huge * row.ideal_pages:,} pages are moved"
            )


def taken_of(said: CompactSample, boot: CompactBoot) -> Taken:
    """What the guest said, as a record has it. Raises ReamError if it got no huge page at all."""
    row = boot.row
    if not said.allocated:
        raise ReamError(
            f"{boot.title}: the kernel gave not one of {said.asked:,} huge pages; see {boot.log}"
        )
    numbers = {
        "asked": said.asked,
        "allocated": said.allocated,
        "ballast": said.ballast,
        "longest_ns": said.longest_ns,
        "page_copy_ns": said.page_copy_ns,
        "user_ns": said.user_ns,
        "system_ns": said.system_ns,
        "idle_ns": said.idle_ns,
        "hog_iterations": said.hog_iterations,
        **dict(said.machine.beside()),
        **said.counters,
    }
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
        # With a hog, user time is the hog's: the allocating thread has next to none.
        cpu_ns=said.machine.system_ns if row.busy else said.machine.busy_ns,
        beside=known(numbers),
    )
    return Taken(sample, unknown(numbers))


def copied(counters: Mapping[str, int], model: EngineModel | None = None) -> str:
    """Words for what copied: the provider's share of the pages, failures and declined batches."""
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


GUESTS = CompactGuests
