# SPDX-License-Identifier: GPL-2.0-only
"""migrate in the vm stage: one boot of each variant in every launch, in which all rows are done."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ream.count.guest import with_counts
from ream.counted import counted
from ream.errors import BadUsage
from ream.experiment import PAGE_BYTES, is_copy
from ream.kernel.image import Image
from ream.measure.plan import Launch
from ream.measure.sample import Sample
from ream.measure.taken import Taken
from ream.session.guests import GuestSetting, shown_boot
from ream.session.request import GuestOptions
from ream.session.vm import Choose, Guests, Kernels, Kind, Places
from ream.stage.boots import Boot
from ream.stage.qemu import GuestMachine
from ream.stage.vm import Start

from .boot import (
    ENGINE,
    MigratePlan,
    MigrateSample,
    Provider,
    Step,
    migrate_initramfs,
    run_migrate_boot,
    two_nodes,
)
from .engine import NOT_COUNTED
from .programs import MOVE_FOLIOS
from .rows import MigrateRow

WARM_UP = 0
"""The round that is no sample: the first of its kind in a kernel's life costs more."""

_PROVIDERS: Mapping[str, tuple[Provider, ...]] = {
    "threads": ("mtcopy", "dcbm"),
    "dma": ("dcbm",),
}
"""What copies in a row of some engine: the first that a kernel has. Of one with mtcopy we know
that it is the lab's own; others copy by DMA, as the published series does."""


@dataclass(frozen=True)
class MigrateBoot(Boot):
    """One boot, as planned."""

    plan: MigratePlan

    says = tuple[int, MigrateSample]

    @property
    def nr_events(self) -> int:
        return len(self.plan.steps) * (self.plan.rounds + 1)

    def run(self, start: Start) -> Iterator[tuple[int, MigrateSample]]:
        return run_migrate_boot(start, self.plan)


def step_of(row: MigrateRow, modules: Collection[str], *, icount: bool = False) -> Step:
    """What a boot does for a row, in a kernel with these modules.

    icount: instructions are counted, of which a device that is waited for takes none; so there
    the engine has no model.
    """
    folio_kib = row.folio_bytes >> 10
    if row.channels:
        for provider in _PROVIDERS[row.provider]:
            if provider in modules:
                model = row.model if provider == "dcbm" and not icount else None
                return Step(folio_kib, provider, row.channels, model)
    return Step(folio_kib)


def plan_of(
    rows: Iterable[MigrateRow],
    seed: int,
    modules: Collection[str] = ("dcbm", "mtcopy"),
    *,
    icount: bool = False,
) -> MigratePlan:
    """What a boot does that gives these rows their samples, a step each, in their order.

    Raises BadUsage if one boot cannot.
    """
    rows = tuple(rows)
    sizes, rounds = {row.buffer_bytes for row in rows}, {row.rounds for row in rows}
    if len(sizes) > 1 or len(rounds) > 1:
        raise BadUsage("the rows of one boot differ in buffer_bytes or rounds: run them apart")
    return MigratePlan(
        steps=tuple(step_of(row, modules, icount=icount) for row in rows),
        buffer_bytes=sizes.pop(),
        rounds=rounds.pop(),
        seed=seed,
    )


def machine_of(plan: MigratePlan, setting: GuestSetting) -> GuestMachine:
    """The guest's machine: the user's nodes, or two. Raises BadUsage if those are too small."""
    machine = setting.machine(plan)
    if setting.options.nodes:
        _check_nodes(plan, machine)
        return machine
    if setting.options.memory_bytes:
        raise BadUsage("--memory: it does not say how much is in which node; give --numa twice")
    return replace(machine, nodes=two_nodes(machine.cpus, plan))


def _check_nodes(plan: MigratePlan, machine: GuestMachine) -> None:
    if len(machine.nodes) < len(plan.node_bytes):
        raise BadUsage("--numa: memory is moved from node 0 to node 1, and there is one node only")
    for number, least in enumerate(plan.node_bytes):
        if (given := machine.nodes[number].memory_bytes) < least:
            raise BadUsage(
                f"--numa {given >> 20}M: node {number} needs {least >> 20}M for a buffer of"
                f" {plan.buffer_bytes >> 20}M"
            )


class MigrateGuests(Guests[MigrateRow]):
    """Guests that do all rows, one after another."""

    modules = (ENGINE,)
    programs = (MOVE_FOLIOS,)
    names_windows = True

    def __init__(
        self, rows: Sequence[MigrateRow], options: GuestOptions, seed: int, choose: Choose
    ) -> None:
        self.rows = tuple(rows)
        self.skipped: Mapping[str, str] = {}
        self.seed = seed
        self.plan = plan_of(rows, seed)
        self.setting = choose(options)
        self.machine = machine_of(self.plan, self.setting)
        self._said: dict[tuple[str, str], list[tuple[Step, MigrateSample]]] = defaultdict(list)
        """Steps and their samples, by row and variant."""

    @staticmethod
    def initramfs(image: Image, init: Path, work: Path) -> Path:
        return migrate_initramfs(image, init=init, work=work)

    def kinds(self) -> Mapping[str, Kind]:
        words = self.plan.init_words()
        command = shown_boot(self.setting, self.machine, words, archive="migrate.cpio")
        return {self.plan.name: Kind(self.machine, command)}

    def touched_bytes(self) -> Mapping[bool, int]:
        return {self.setting.icount: self.plan.buffer_bytes * 2}

    def boots(self, launch: Launch, kernels: Kernels, places: Places) -> Iterator[MigrateBoot]:
        for variant in launch.link_order:
            image, kernel = kernels[()][variant]
            yield MigrateBoot(
                variant=variant,
                launch=launch.number,
                machine=self.machine,
                kernel=kernel,
                append=self.setting.options.append,
                log=places.consoles / f"{variant}-{launch.number}.log",
                plan=plan_of(self.rows, self.seed, image.modules, icount=self.setting.icount),
            )

    def taken(self, boot: Boot, said: object) -> Iterator[Taken]:
        assert isinstance(boot, MigrateBoot)
        assert isinstance(said, tuple)
        number, moved = said
        if moved.round == WARM_UP:
            return
        row, step = self.rows[number], boot.plan.steps[number]
        self._said[row.name, boot.variant].append((step, moved))
        sample = with_counts(sample_of(moved, row, step, boot), moved.counted)
        yield Taken(sample, dict(moved.counters))

    def remarks(self, row: MigrateRow, names: Sequence[str]) -> Iterator[str]:
        """Remarks on what copied, by the counters, and on what the count includes."""
        del names
        for (name, variant), told in self._said.items():
            if name != row.name or is_copy(variant):
                continue
            step, said = told[-1]
            if step.provider != "none":
                yield f"{variant}: {copied(step, said)}"
        if self.setting.icount:
            if row.model:
                yield NOT_COUNTED
            yield (
                f"instructions are the whole guest's, of its one CPU: {row.buffer_bytes:,} bytes"
                f" copied ({row.buffer_bytes // PAGE_BYTES:,} pages) are among them, whoever copies"
            )


def sample_of(said: MigrateSample, row: MigrateRow, step: Step, boot: MigrateBoot) -> Sample:
    """What the workload said, as a record has it."""
    return Sample(
        row=row.name,
        launch=boot.launch,
        round=said.round - WARM_UP - 1,
        role="variant",
        subject=boot.variant,
        threads=min(max(1, step.parts), boot.machine.cpus),
        time_ns=said.time_ns,
        nr_bytes=said.nr_bytes,
        verified=said.verified,
        cpu_ns=said.cpu_ns,
    )


def copied(step: Step, said: MigrateSample) -> str:
    """Words for what copied in one move: the provider's share of the folios, and failures."""
    its = said.counters.get(f"{step.provider}_folios_migrated", 0)
    failures = said.counters.get(f"{step.provider}_folios_failures", 0)
    copied = f"{its:,} of {counted(said.nr_folios, 'folio')} copied by {step.provider}"
    parts = [copied]
    if failures:
        parts.append(f"{failures:,} failed, and were copied by the CPU")
    if step.provider == "dcbm":
        parts.append(
            f"{said.counters.get('swdma_descriptors', 0):,} descriptors,"
            f" {said.counters.get('swdma_bytes', 0):,} bytes of the software engine"
        )
    if step.model:
        parts.append(step.model.kept_words(said.counters.get("swdma_late", 0)))
    return "; ".join(parts)


GUESTS = MigrateGuests
