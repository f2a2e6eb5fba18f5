# SPDX-License-Identifier: GPL-2.0-only
"""deferred-init in the vm stage: one boot of each variant for each shape of guest and launch."""

import shlex
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ream.counted import counted
from ream.errors import BadUsage, CannotRunHere
from ream.experiment import STRUCT_PAGE_BYTES, DeferredInit, DeferredInitRow, format_size, is_copy
from ream.kernel.image import Image
from ream.kernel.source import Tree
from ream.measure.plan import Launch
from ream.measure.sample import BESIDE, Sample
from ream.progress import Reporter
from ream.record.machine import conditions, take_snapshot
from ream.record.record import RecordWriter
from ream.session.guests import (
    QEMU_BYTES,
    Setting,
    boots_at_once,
    choose_setting,
    config_sha256,
    consoles,
    guest_of,
    prepare,
)
from ream.session.kept import kept_boots
from ream.session.request import GuestOptions, Measured, Request
from ream.stage.boots import Boot
from ream.stage.deferred_state import States
from ream.stage.guest import Guest
from ream.stage.guest_zones import Layout
from ream.stage.memory import available_bytes
from ream.stage.native import Suited
from ream.stage.qemu import Machine
from ream.stage.suit import nr_cpus
from ream.stage.vm import Kernel
from ream.stage.vm_deferred import (
    Booted,
    Shape,
    deferred_initramfs,
    layout_of,
    plan_deferred_boot,
    run_deferred_boot,
)

MODULES = ("memmap",)
"""Of kernel/modules: no guest loads it, its file has the facts of a variant's build."""

PAGE_MAP_RATIO = 64
"""A page of memory has a 64th of its size in the map, and of a guest's memory only that is
written, besides what every guest writes."""

MOST_EMULATED_BYTES = 64 << 30
"""Memory of an emulated guest: it counts instructions, and these are in proportion to memory."""


@dataclass(frozen=True)
class DeferredBoot(Boot):
    """One boot, as planned."""

    shape: Shape
    layout: Layout = field(repr=False)

    says = Booted

    @property
    def title(self) -> str:
        return f"{self.variant}, {self.shape.name}, launch {self.launch + 1}"

    def run(self, begun: Callable[[Guest], None]) -> Iterator[Booted]:
        return run_deferred_boot(
            self.machine,
            self.kernel,
            self.shape,
            self.layout,
            append=self.append,
            log=self.log,
            begun=begun,
        )


def choose(options: GuestOptions, setting_of: Callable[[GuestOptions], Setting]) -> Setting:
    """The setting; whether instructions are counted, the CPUs of each row's guest decide.

    Raises BadUsage if the user says what is the rows' to say, and what setting_of() raises.
    """
    if options.memory_bytes or options.nodes or options.distances:
        raise BadUsage(
            "--memory, --numa and --numa-distance: each row of deferred-init says what its guest"
            " has; choose rows with --row, or give them other values with --set memory_bytes=SIZE"
        )
    return replace(setting_of(replace(options, cpus=None)), options=options)


def booted_rows(rows: Iterable[DeferredInitRow], setting: Setting) -> Suited:
    """The rows whose guests are booted here, with the CPUs that the user gives; why others not."""
    booted, skipped = [], {}
    for row in rows:
        given = row.model_copy(update={"threads": setting.options.cpus or row.threads})
        if reason := _why_no_boot(given, setting):
            skipped[row.name] = reason
        else:
            booted.append(given)
    return Suited(tuple(booted), skipped=skipped)


def _why_no_boot(row: DeferredInitRow, setting: Setting) -> str | None:
    cpus, here, options = _cpus(row, setting), nr_cpus(), setting.options
    emulated = setting.accel == "tcg"
    if cpus > here and not options.full and options.cpus is None:
        without = ", without KVM" if emulated else ""
        return f"a guest of {counted(cpus, 'CPU')} on {counted(here, 'CPU')}{without}"
    if row.memory_bytes > MOST_EMULATED_BYTES and emulated and not options.full:
        most = format_size(MOST_EMULATED_BYTES)
        return f"no KVM here, and guests of more than {most} are not emulated"
    needed = row.memory_bytes // PAGE_MAP_RATIO + QEMU_BYTES
    if (available := available_bytes()) < needed:
        return f"a guest takes {needed >> 20} MiB of memory, {available >> 20} MiB are available"
    return None


def shapes(
    rows: Iterable[DeferredInitRow], setting: Setting
) -> dict[Shape, tuple[DeferredInitRow, ...]]:
    """Rows by the guest that their boots share.

    Guests of one size with more than one CPU have the same number of them, of which each brings
    up its own: boot then reserves the same memory, and what is left can be compared.
    Raises BadUsage if a row wants several rounds of a boot.
    """
    rows = tuple(rows)
    for row in rows:
        if row.rounds != 1:
            raise BadUsage(
                f"{row.name}: {row.rounds} rounds: a boot is one; --launches makes it more boots"
            )
    found: dict[Shape, list[DeferredInitRow]] = defaultdict(list)
    for row in rows:
        alike = [other for other in rows if _memory(other) == _memory(row)]
        most = max(_cpus(other, setting) for other in alike)
        cpus = _cpus(row, setting)
        shape = Shape(row.memory_bytes, row.nodes, cpus, most if cpus > 1 else 1)
        found[shape].append(row)
    return {shape: tuple(its) for shape, its in found.items()}


def _memory(row: DeferredInitRow) -> tuple[int, int]:
    return row.memory_bytes, row.nodes


def _cpus(row: DeferredInitRow, setting: Setting) -> int:
    return row.threads or (1 if setting.accel == "tcg" else nr_cpus())


def why_not(shape: Shape, setting: Setting) -> str | None:
    """Why the times of such a guest say nothing; None if they do."""
    if setting.accel == "tcg" and shape.cpus > 1:
        return "emulated CPUs take turns, so threads cannot make it faster"
    if shape.cpus > (here := nr_cpus()):
        return f"{shape.cpus} threads would share {counted(here, 'CPU')}"
    return None


def machine_of(shape: Shape, setting: Setting) -> Machine:
    """The guest's machine; instructions are counted where one CPU does all."""
    return shape.machine(
        setting.accel,
        icount=setting.icount and shape.present == 1,
        options=setting.options.qemu_options,
    )


def shown_command(setting: Setting, shape: Shape) -> str:
    """QEMU's command line of a shape's boots, for people: files without their directories."""
    argv = plan_deferred_boot(
        machine_of(shape, setting),
        Kernel(Path("bzImage"), Path("deferred.cpio")),
        shape,
        append=setting.options.append,
        work=Path(),
    )
    return shlex.join(argv)


def measure_deferred_vm(
    request: Request, tree: Tree, *, work: Path, record: RecordWriter, reporter: Reporter
) -> Measured:
    """Build the kernels and boot them in turn; raises what building and booting raise."""
    assert isinstance(request.experiment, DeferredInit)
    setting = choose(request.guest, lambda options: choose_setting(options, request.cache))
    record.journal.agree("guests", str(setting))
    suited = booted_rows(request.experiment.rows, setting)
    for why, names in suited.by_reason().items():
        reporter.step(f"{', '.join(names)}: not run: {why}")
    if not suited.rows:
        raise CannotRunHere("; ".join(suited.by_reason()))
    by_shape = shapes(suited.rows, setting)
    at_once = boots_at_once(
        setting, max(shape.memory_bytes // PAGE_MAP_RATIO for shape in by_shape)
    )
    kernels, launches = prepare(
        request,
        tree,
        setting,
        initramfs=lambda image, init, place: deferred_initramfs(image, init=init, work=place),
        modules=MODULES,
        work=work,
        reporter=reporter,
    )
    start = take_snapshot()
    with consoles(request.cache / "console" / record.path.name) as logs:
        boots = plan_boots(
            launches,
            by_shape,
            setting,
            kernels,
            {name: layout_of(image, work) for name, (image, _) in kernels.items()},
            consoles=logs,
        )
        taken = _measure(
            boots, by_shape, setting, at_once=at_once, record=record, reporter=reporter
        )
    samples = tuple(sample for sample, _ in taken.timed)
    as_run = {row.name: row for row in suited.rows}
    return Measured(
        rows=tuple(as_run.get(row.name, row) for row in request.experiment.rows),
        samples=samples,
        conditions=conditions(start, take_snapshot()),
        launches=len(launches),
        config_sha256=config_sha256(kernels),
        options={"accel": setting.accel, "icount": setting.icount},
        unit=setting.unit,
        guest=guest_of(
            setting,
            {shape.name: machine_of(shape, setting) for shape in by_shape},
            {shape.name: shown_command(setting, shape) for shape in by_shape},
            kernels,
        ),
        remarks={
            row.name: tuple(
                remarks(row, shape, [variant.name for variant in request.variants], taken)
            )
            for shape, its in by_shape.items()
            for row in its
        },
        beside=tuple(
            (name, replace(sample, time_ns=time_ns))
            for sample, booted in taken.timed
            for name, time_ns in _beside(sample, booted).items()
        ),
        skipped={
            **suited.skipped,
            **{
                row.name: f"{reason}; booted and verified all the same: {taken.equal(shape)}"
                for shape, its in by_shape.items()
                if (reason := why_not(shape, setting))
                for row in its
            },
        },
    )


def plan_boots(
    launches: Iterable[Launch],
    by_shape: Iterable[Shape],
    setting: Setting,
    kernels: Mapping[str, tuple[Image, Kernel]],
    layouts: Mapping[str, Layout],
    *,
    consoles: Path,
) -> list[DeferredBoot]:
    """Every variant once for each shape in every launch, in the launch's random order.

    What is booted for its state only is booted in the first launch: another adds nothing.
    """
    return [
        DeferredBoot(
            variant=variant,
            launch=launch.number,
            machine=machine_of(shape, setting),
            kernel=kernels[variant][1],
            append=setting.options.append,
            log=consoles / f"{shape.name}-{variant}-{launch.number}.log",
            shape=shape,
            layout=layouts[variant],
        )
        for launch in launches
        for shape in by_shape
        if launch.number == 0 or not why_not(shape, setting)
        for variant in launch.link_order
    ]


@dataclass(frozen=True)
class Taken:
    """What the boots of a run gave."""

    timed: list[tuple[Sample, Booted]] = field(default_factory=list)
    verified: list[tuple[Shape, Booted]] = field(default_factory=list)
    """Boots whose states are as predicted, and as those of all others with the same memory."""

    def equal(self, shape: Shape) -> str:
        """How many boots of guests with this shape's memory and CPUs left the same state."""
        alike = [
            tuple((state.node, state.taken) for state in booted.states)
            for other, booted in self.verified
            if (other.memory_bytes, other.nodes, other.present)
            == (shape.memory_bytes, shape.nodes, shape.present)
        ]
        if (nr_kinds := len(set(alike))) <= 1:
            return f"states equal in {counted(len(alike), 'boot')}"
        # What boot reserves is not the same with all kernels, or a thread has got a page.
        return (
            f"states as predicted in {len(alike)} boots, which began with {nr_kinds} kinds of free"
            " memory, and equal within each"
        )


def _measure(
    boots: Sequence[DeferredBoot],
    by_shape: Mapping[Shape, tuple[DeferredInitRow, ...]],
    setting: Setting,
    *,
    at_once: int,
    record: RecordWriter,
    reporter: Reporter,
) -> Taken:
    """Run every boot; each sample is in the record as soon as it is known."""
    taken = Taken()
    states = States()
    with reporter.measuring(float(len(boots))) as advance:
        for boot, booted in kept_boots(
            boots, at_once=at_once, journal=record.journal, reporter=reporter
        ):
            if not isinstance(booted, Booted):
                advance(1.0, boot.title)
                record.keep(f"consoles/{boot.log.name}", boot.log)
                continue
            states.check(boot.title, booted.states)
            taken.verified.append((boot.shape, booted))
            if why_not(boot.shape, setting):
                continue
            for row in by_shape[boot.shape]:
                sample = sample_of(booted, row, boot)
                record.append(sample, _extra(sample, booted))
                taken.timed.append((sample, booted))
    return taken


def sample_of(booted: Booted, row: DeferredInitRow, boot: DeferredBoot) -> Sample:
    times = booted.times
    return Sample(
        row=row.name,
        launch=boot.launch,
        round=0,
        role="variant",
        subject=boot.variant,
        threads=boot.shape.cpus,
        time_ns=times.init_ns if row.measure == "init" else times.boot_ns,
        nr_bytes=booted.nr_pages * STRUCT_PAGE_BYTES,
        verified=True,
    )


def _beside(sample: Sample, booted: Booted) -> dict[str, int]:
    """The whole boot, of a row that times a part of it."""
    boot_ns = booted.times.boot_ns
    return {} if boot_ns == sample.time_ns else {"boot to PID 1": boot_ns}


def _extra(sample: Sample, booted: Booted) -> dict[str, Any]:
    """What only this stage knows of a sample; docs/format.md names it."""
    return {
        BESIDE: _beside(sample, booted),
        "message_ms": booted.times.message_ms,
        "digest": "-".join(state.digest for state in booted.states),
        "nr_taken": sum(len(state.taken) for state in booted.states),
    }


def remarks(
    row: DeferredInitRow, shape: Shape, names: Iterable[str], taken: Taken
) -> Iterator[str]:
    """What the published method would have said here, and what was compared besides."""
    said: dict[str, list[int]] = {name: [] for name in names if not is_copy(name)}
    for sample, booted in taken.timed:
        if sample.row == row.name and sample.subject in said:
            said[sample.subject].append(booted.times.message_ms)
    parts = [f"{name} {sum(ms) / len(ms):g}" for name, ms in said.items() if ms]
    if parts and row.measure == "init":
        yield (
            "the kernel's own message, mean in ms of the guest's clock, counted in jiffies:"
            f" {', '.join(parts)}"
        )
    if parts:
        yield f"all struct pages, free lists and counters: {taken.equal(shape)}"
