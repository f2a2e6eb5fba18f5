# SPDX-License-Identifier: GPL-2.0-only
"""migrate in the vm stage: one boot of each variant in every launch, in which all rows are done."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ream.counted import counted
from ream.errors import BadUsage
from ream.experiment import PAGE_BYTES, Migrate, MigrateRow, is_copy
from ream.experiment.engine import NOT_COUNTED
from ream.kernel.image import Image
from ream.kernel.source import Tree
from ream.measure.plan import Launch
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
from ream.session.request import Measured, Request
from ream.stage.boots import Boot
from ream.stage.guest import Guest
from ream.stage.qemu import Machine
from ream.stage.vm import Kernel
from ream.stage.vm_migrate import (
    ENGINE,
    MigratePlan,
    MigrateSample,
    Provider,
    Step,
    migrate_initramfs,
    run_migrate_boot,
    two_nodes,
)

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
    def title(self) -> str:
        return f"{self.variant}, launch {self.launch + 1}"

    def run(self, begun: Callable[[Guest], None]) -> Iterator[tuple[int, MigrateSample]]:
        return run_migrate_boot(
            self.machine, self.kernel, self.plan, append=self.append, log=self.log, begun=begun
        )


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


def machine_of(plan: MigratePlan, setting: Setting) -> Machine:
    """The guest's machine: the user's nodes, or two. Raises BadUsage if those are too small."""
    machine = setting.machine(plan)
    if setting.options.nodes:
        _check_nodes(plan, machine)
        return machine
    if setting.options.memory_bytes:
        raise BadUsage("--memory: it does not say how much is in which node; give --numa twice")
    return replace(machine, nodes=two_nodes(machine.cpus, plan))


def _check_nodes(plan: MigratePlan, machine: Machine) -> None:
    if len(machine.nodes) < len(plan.node_bytes):
        raise BadUsage("--numa: memory is moved from node 0 to node 1, and there is one node only")
    for number, least in enumerate(plan.node_bytes):
        if (given := machine.nodes[number].memory_bytes) < least:
            raise BadUsage(
                f"--numa {given >> 20}M: node {number} needs {least >> 20}M for a buffer of"
                f" {plan.buffer_bytes >> 20}M"
            )


def shown_command(setting: Setting, plan: MigratePlan) -> str:
    """Of a boot, as `guests.shown_boot` shows it."""
    return shown_boot(setting, machine_of(plan, setting), plan.init_words(), archive="migrate.cpio")


def measure_migrate_vm(
    request: Request, tree: Tree, *, work: Path, record: RecordWriter, reporter: Reporter
) -> Measured:
    """Build the kernels and boot them in turn; raises what building and booting raise."""
    assert isinstance(request.experiment, Migrate)
    rows = request.experiment.rows
    setting = choose_setting(request.guest, request.cache)
    record.journal.agree("guests", str(setting))
    plan = plan_of(rows, request.seed)
    machine = machine_of(plan, setting)
    at_once = boots_at_once(setting, plan.buffer_bytes * 2)
    kernels, launches = prepare(
        request,
        tree,
        setting,
        initramfs=lambda image, init, place: migrate_initramfs(image, init=init, work=place),
        modules=(ENGINE,),
        work=work,
        reporter=reporter,
    )
    start = take_snapshot()
    with consoles(request.cache / "console" / record.path.name) as logs:
        boots = plan_boots(
            launches,
            rows,
            machine,
            kernels,
            seed=request.seed,
            append=setting.options.append,
            consoles=logs,
            icount=setting.icount,
        )
        taken = _measure(boots, rows, at_once=at_once, record=record, reporter=reporter)
    return Measured(
        rows=rows,
        samples=tuple(taken.samples),
        conditions=conditions(start, take_snapshot()),
        launches=len(launches),
        config_sha256=config_sha256(kernels),
        options={"accel": setting.accel, "icount": setting.icount},
        unit=setting.unit,
        guest=guest_of(
            setting, {plan.name: machine}, {plan.name: shown_command(setting, plan)}, kernels
        ),
        remarks={row.name: tuple(remarks(row, taken, setting)) for row in rows},
    )


def plan_boots(
    launches: Iterable[Launch],
    rows: Sequence[MigrateRow],
    machine: Machine,
    kernels: Mapping[str, tuple[Image, Kernel]],
    *,
    seed: int,
    append: tuple[str, ...],
    consoles: Path,
    icount: bool = False,
) -> list[MigrateBoot]:
    """Every variant once in every launch, in the launch's random order."""
    return [
        MigrateBoot(
            variant=variant,
            launch=launch.number,
            plan=plan_of(rows, seed, kernels[variant][0].modules, icount=icount),
            machine=machine,
            kernel=kernels[variant][1],
            append=append,
            log=consoles / f"{variant}-{launch.number}.log",
        )
        for launch in launches
        for variant in launch.link_order
    ]


class Taken:
    """What the boots of a run gave."""

    def __init__(self) -> None:
        self.samples: list[Sample] = []
        self.said: dict[tuple[str, str], list[tuple[Step, MigrateSample]]] = defaultdict(list)
        """By row and variant."""


def _measure(
    boots: Sequence[MigrateBoot],
    rows: Sequence[MigrateRow],
    *,
    at_once: int,
    record: RecordWriter,
    reporter: Reporter,
) -> Taken:
    """Run every boot; each sample is in the record as soon as it is known."""
    taken = Taken()
    plan = boots[0].plan
    total = len(boots) * (1 + len(plan.steps) * (plan.rounds + 1))
    with reporter.measuring(float(total)) as advance:
        for boot, event in kept_boots(
            boots, at_once=at_once, journal=record.journal, reporter=reporter
        ):
            if not isinstance(event, tuple):
                advance(1.0, boot.title)
                record.keep(f"consoles/{boot.log.name}", boot.log)
                continue
            number, said = event
            row, step = rows[number], boot.plan.steps[number]
            advance(1.0, f"{boot.title}, {row.name}")
            if said.round == WARM_UP:
                continue
            sample = sample_of(said, row, step, boot)
            record.append(sample, dict(said.counters))
            taken.samples.append(sample)
            taken.said[row.name, boot.variant].append((step, said))
    return taken


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


def remarks(row: MigrateRow, taken: Taken, setting: Setting) -> Iterator[str]:
    """Of a row: who copied, as the counters have it, and what is in the count."""
    for (name, variant), all_said in taken.said.items():
        if name != row.name or is_copy(variant):
            continue
        step, said = all_said[-1]
        if step.provider != "none":
            yield f"{variant}: {copied(step, said)}"
    if setting.icount:
        if row.model:
            yield NOT_COUNTED
        yield (
            f"instructions are the whole guest's, of its one CPU: {row.buffer_bytes:,} bytes copied"
            f" ({row.buffer_bytes // PAGE_BYTES:,} pages) are among them, whoever copies"
        )


def copied(step: Step, said: MigrateSample) -> str:
    """Who copied in one move, in words: the share that the provider has taken."""
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
