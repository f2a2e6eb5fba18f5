# SPDX-License-Identifier: GPL-2.0-only
"""A run of the vm stage: whole kernels, one boot of each variant for each device and launch."""

import hashlib
import os
import re
import shlex
import shutil
import statistics
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from ream.command import Command, require, run
from ream.errors import BadUsage, CannotRunHere, ReamError
from ream.experiment import BEFORE, BEFORE_AGAIN, IMPLIED, Row, format_size
from ream.kernel.image import Image, build_image
from ream.kernel.source import Tree
from ream.kernel.variant import UNUSED_DAYS
from ream.measure.plan import Launch, plan_launches
from ream.measure.sample import Sample
from ream.paths import KERNEL_CONFIG, KERNEL_MODULES
from ream.progress import Reporter
from ream.record.machine import conditions, take_snapshot
from ream.record.receipt import Guest
from ream.record.record import RecordWriter
from ream.report.contract import Unit
from ream.session.request import GuestOptions, Measured, Request
from ream.stage.accel import choose_accel, kvm_fault
from ream.stage.boots import Boot, run_boots
from ream.stage.initramfs import build_init, build_initramfs, namespace_programs
from ream.stage.memory import available_bytes
from ream.stage.qemu import QEMU, Accel, Machine
from ream.stage.vm import Checked, Device, Kernel, plan_boot
from ream.variants import Variant

VM_CONFIG = KERNEL_CONFIG / "vm.config"
MODULES = ("memmap", "memremap")
"""Of kernel/modules, built for each variant."""

DRIVERS = ("nd_pmem",)
"""The kernel's own that init loads when it wants them."""

ICOUNT_LAUNCHES = 1
ICOUNT_ROUNDS = 3
"""Where instructions are counted, a repeat adds nothing."""

SAME = 1e-4
"""Two counts this near are the same: a timer's interrupt more or less."""

MESSAGE = re.compile(r"initialised (\d+) pages in (\d+)ms")
QEMU_BYTES = 1 << 30
"""Host memory of a guest besides its map: what it touches of its own, and QEMU."""


@dataclass(frozen=True)
class Setting:
    """What the guests of a run have in common."""

    accel: Accel
    reason: str
    icount: bool
    options: GuestOptions

    @property
    def given_bytes(self) -> int:
        """Memory that the user gave a guest, in one number or by nodes; 0 leaves it to us."""
        return self.options.memory_bytes or sum(node.memory_bytes for node in self.options.nodes)

    def machine(self, device: Device) -> Machine:
        """The machine for one device; raises BadUsage if the user's is too small for it."""
        given = self.given_bytes
        if given and given < device.least_bytes:
            raise BadUsage(
                f"a guest of {format_size(given)} cannot hold {device.name}: it needs"
                f" {format_size(device.least_bytes)}"
            )
        return self.machine_of(given or device.least_bytes)

    def machine_of(self, memory_bytes: int) -> Machine:
        """The machine as the user wants it, with so much memory."""
        asked = self.options
        return Machine(
            accel=self.accel,
            icount=self.icount,
            cpus=asked.cpus or (1 if self.icount else 2),
            memory_bytes=memory_bytes,
            nodes=asked.nodes,
            distances=asked.distances,
            options=asked.qemu_options,
        )


def choose_setting(options: GuestOptions, cache: Path) -> Setting:
    """KVM where a guest really boots under it, else TCG counting instructions.

    Raises CannotRunHere if what was asked for is not to be had, BadUsage if it cannot be meant.
    """
    accel, reason = choose_accel(options.accel, probe=lambda: kvm_fault(cache))
    if options.icount and accel == "kvm":
        raise BadUsage("--icount counts instructions, which KVM cannot: use --accel tcg")
    icount = accel == "tcg" if options.icount is None else options.icount
    if icount and (options.cpus or 1) > 1:
        raise BadUsage(
            f"--cpus {options.cpus}: where instructions are counted there is one CPU; "
            "--no-icount runs more, with times that are only emulated"
        )
    return Setting(accel, reason, icount, options)


def rows_as_run(rows: Iterable[Row], setting: Setting) -> tuple[Row, ...]:
    """The rows with as many rounds as are worth it."""
    return tuple(
        row.model_copy(update={"rounds": min(row.rounds, ICOUNT_ROUNDS)})
        if setting.icount and not (setting.options.full or setting.options.keep_rounds)
        else row
        for row in rows
    )


def launches_as_run(launches: int, setting: Setting) -> int:
    """The number of launches that is worth it."""
    keep = setting.options.full or setting.options.keep_launches
    return ICOUNT_LAUNCHES if setting.icount and not keep else launches


def devices(rows: Iterable[Row]) -> dict[Device, tuple[Row, ...]]:
    """Rows by the device that their boots share; raises BadUsage if two are called the same."""
    found: dict[Device, list[Row]] = defaultdict(list)
    for row in rows:
        found[Device.of(row)].append(row)
    names = [device.name for device in found]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise BadUsage(f"two devices are both {twice[0]}: run them apart, with --row")
    return {device: tuple(its) for device, its in found.items()}


def nr_binds(rows: Iterable[Row]) -> int:
    """Binds of a boot that gives these rows their samples: the first, and the most rebinds."""
    return 1 + max((row.rounds for row in rows if not row.first_touch), default=0)


def build_kernels(
    variants: Iterable[Variant],
    tree: Tree,
    *,
    cache: Path,
    programs: Mapping[str, Path] = MappingProxyType({}),
    work: Path,
    reporter: Reporter,
) -> dict[str, tuple[Image, Kernel]]:
    """Every variant's kernel, each distinct list of patches once, with an initramfs around ours.

    programs: more of them for the guest, as build_initramfs() has them.
    """
    require(QEMU)
    init = build_init(work)
    built: dict[tuple[str, ...], tuple[Image, Kernel]] = {}
    found = {}
    for variant in variants:
        key = tuple(patch.sha256 for patch in variant.patches)
        if key not in built:
            image = build_image(
                tree,
                variant.patches,
                cache=cache,
                fragments=(VM_CONFIG,),
                modules=tuple(KERNEL_MODULES / name for name in MODULES),
                reporter=reporter,
            )
            place = work / f"kernel-{len(built)}"
            place.mkdir()
            initramfs = initramfs_of(image, init=init, programs=programs, work=place)
            built[key] = (image, Kernel(image.bzimage, initramfs))
        found[variant.name] = built[key]
    return found


def shown_command(setting: Setting, device: Device, rows: Iterable[Row]) -> str:
    """QEMU's command line of a device's boots, for people: files without their directories."""
    argv = plan_boot(
        setting.machine(device),
        Kernel(Path("bzImage"), Path("initramfs.cpio")),
        device,
        nr_binds(rows),
        append=setting.options.append,
        work=Path(),
    )
    return shlex.join(argv)


def initramfs_of(
    image: Image,
    *,
    init: Path,
    programs: Mapping[str, Path] = MappingProxyType({}),
    work: Path,
) -> Path:
    """What a guest of this experiment boots into: PID 1, our modules, ndctl and daxctl."""
    return build_initramfs(
        work / "initramfs.cpio",
        gen_init_cpio=image.gen_init_cpio,
        init=init,
        modules={name: image.modules[name] for name in (*MODULES, *DRIVERS)},
        programs={**namespace_programs(), **programs},
        work=work,
    )


def measure_vm(
    request: Request, tree: Tree, *, work: Path, record: RecordWriter, reporter: Reporter
) -> Measured:
    """Build the kernels and boot them in turn; raises what building and booting raise."""
    setting = choose_setting(request.guest, request.cache)
    rows = rows_as_run(request.experiment.rows, setting)
    by_device = devices(rows)
    machines = {device: setting.machine(device) for device in by_device}
    at_once = _boots_at_once(setting, by_device)
    reporter.step(f"guests run under {setting.accel.upper()}: {setting.reason}")
    kernels = build_kernels(
        request.variants, tree, cache=request.cache, work=work, reporter=reporter
    )
    names = [variant.name for variant in request.variants]
    launches = plan_launches(
        names,
        launches=launches_as_run(request.experiment.launches, setting),
        seed=request.seed,
    )
    start = take_snapshot()
    with _consoles(request.cache / "console" / record.path.name) as consoles:
        boots = plan_boots(
            launches, by_device, machines, kernels, append=request.guest.append, consoles=consoles
        )
        taken = list(_measure(boots, by_device, at_once=at_once, record=record, reporter=reporter))
    samples = tuple(sample for sample, _ in taken)
    unit: Unit = "instructions" if setting.icount else "ns"
    first = next(iter(kernels.values()))[0]
    return Measured(
        rows=rows,
        samples=samples,
        conditions=conditions(start, take_snapshot()),
        launches=len(launches),
        config_sha256=hashlib.sha256(first.config.read_bytes()).hexdigest(),
        options={"accel": setting.accel, "icount": setting.icount, "full": request.guest.full},
        warnings=tuple(doubts(samples, unit)),
        unit=unit,
        guest=_guest(setting, machines, by_device, kernels),
        remarks={row.name: tuple(remarks(row, names, taken)) for row in rows},
    )


@contextmanager
def _consoles(place: Path) -> Iterator[Path]:
    """A directory for what guests print; it stays if one fails, since the error names it.

    What failed runs left is removed after a month.
    """
    place.mkdir(parents=True)
    for old in place.parent.iterdir():
        if old.stat().st_mtime < time.time() - UNUSED_DAYS * 86400:
            shutil.rmtree(old, ignore_errors=True)
    try:
        yield place
    except ReamError:
        raise
    except BaseException:
        shutil.rmtree(place, ignore_errors=True)
        raise
    else:
        shutil.rmtree(place)


Taken = tuple[Sample, Checked]


def _measure(
    boots: Sequence[Boot],
    by_device: Mapping[Device, tuple[Row, ...]],
    *,
    at_once: int,
    record: RecordWriter,
    reporter: Reporter,
) -> Iterator[Taken]:
    """Run every boot; each sample is in the record as soon as it is known."""
    total = sum(boot.binds + 1 for boot in boots)
    with reporter.measuring(float(total)) as advance:
        for boot, checked in run_boots(boots, at_once=at_once):
            advance(1.0, f"launch {boot.launch + 1}, {boot.device.name}, {boot.variant}")
            if checked is None:
                record.keep(f"consoles/{boot.log.name}", boot.log)
                continue
            for sample in samples_of(checked, by_device[boot.device], boot):
                record.append(sample, _extra(checked))
                yield sample, checked


def plan_boots(
    launches: Iterable[Launch],
    by_device: Mapping[Device, tuple[Row, ...]],
    machines: Mapping[Device, Machine],
    kernels: Mapping[str, tuple[Image, Kernel]],
    *,
    append: tuple[str, ...],
    consoles: Path,
) -> list[Boot]:
    """Every variant once for each device in every launch, in the launch's random order.

    consoles: where their logs are written; that of a guest that fails stays.
    """
    return [
        Boot(
            variant=variant,
            launch=launch.number,
            device=device,
            binds=nr_binds(rows),
            machine=machines[device],
            kernel=kernels[variant][1],
            append=append,
            log=consoles / f"{device.name}-{variant}-{launch.number}.log",
        )
        for launch in launches
        for device, rows in by_device.items()
        for variant in launch.link_order
    ]


def samples_of(checked: Checked, rows: Iterable[Row], boot: Boot) -> Iterator[Sample]:
    number = checked.bind.number
    for row in rows:
        if row.first_touch != (number == 0) or (number > row.rounds and not row.first_touch):
            continue
        yield Sample(
            row=row.name,
            launch=boot.launch,
            round=0 if row.first_touch else number - 1,
            role="variant",
            subject=boot.variant,
            threads=boot.machine.cpus,
            time_ns=checked.call.time_ns if row.in_namespace else checked.bind.bind_ns,
            nr_bytes=checked.nr_bytes,
            verified=True,
        )


def _extra(checked: Checked) -> dict[str, int | str | None]:
    """What only this stage knows of a sample; docs/format.md names it."""
    return {
        "memmap_init_ns": checked.call.time_ns,
        "bind_ns": checked.bind.bind_ns,
        "unbind_ns": checked.bind.unbind_ns,
        "message": checked.bind.message,
    }


def remarks(row: Row, names: Iterable[str], taken: Iterable[Taken]) -> Iterator[str]:
    """What the published methods would have said here."""
    spoken: dict[str, list[float]] = {name: [] for name in names if name != BEFORE_AGAIN}
    inside: dict[str, list[int]] = {name: [] for name in spoken}
    for sample, checked in taken:
        if sample.row == row.name and sample.subject in spoken:
            if match := MESSAGE.search(checked.bind.message or ""):
                spoken[sample.subject].append(float(match[2]))
            inside[sample.subject].append(checked.call.time_ns)
    means = [f"{name} {statistics.fmean(ms):.2f}" for name, ms in spoken.items() if ms]
    if means:
        yield f"the kernel's own message, mean in ms of the guest's clock: {', '.join(means)}"
    parts = [f"{name} {statistics.median(ns) / 1e6:.2f}" for name, ns in inside.items() if ns]
    if parts and not row.in_namespace:
        yield f"memmap_init_zone_device() alone, median in ms of that clock: {', '.join(parts)}"


def doubts(samples: Iterable[Sample], unit: Unit) -> Iterator[str]:
    """Whether two boots of the same kernel count the same, where they must."""
    if unit != "instructions":
        return
    counts: dict[tuple[str, int, int], dict[str, int]] = defaultdict(dict)
    for sample in samples:
        if sample.subject in IMPLIED:
            place = (sample.row, sample.launch, sample.round)
            counts[place][sample.subject] = sample.time_ns
    apart: dict[str, float] = defaultdict(float)
    for (row, _, _), both in counts.items():
        if len(both) == len(IMPLIED):
            apart[row] = max(apart[row], abs(both[BEFORE_AGAIN] / both[BEFORE] - 1))
    if differ := [f"{row} {worst:.0e}" for row, worst in apart.items() if worst > SAME]:
        yield (
            f"two boots of the same kernel differ by more than {SAME:g} of their count: "
            f"{', '.join(differ)}; the kernel waited there, and a wait is counted, too"
        )


def _boots_at_once(setting: Setting, by_device: Iterable[Device]) -> int:
    """How many guests the host has CPUs and memory for; one where times are taken.

    Raises CannotRunHere if there is no memory even for one.
    """
    needed = max(device.size_bytes // 64 for device in by_device) + QEMU_BYTES
    if (available := available_bytes()) < needed:
        raise CannotRunHere(
            f"a guest takes {format_size(needed)} of memory, {available >> 20} MiB are available;"
            " --row or --size chooses a smaller device"
        )
    if not setting.icount:
        return 1
    return max(1, min(len(os.sched_getaffinity(0)), available // needed))


def _guest(
    setting: Setting,
    machines: Mapping[Device, Machine],
    by_device: Mapping[Device, tuple[Row, ...]],
    kernels: Mapping[str, tuple[Image, Kernel]],
) -> Guest:
    version = run(Command((QEMU, "--version"), Path("/"), 20.0)).splitlines()[0]
    some = next(iter(machines.values()))
    return Guest(
        qemu=version.replace(" emulator version", ""),
        accel=some.accel,
        accel_reason=setting.reason,
        icount=setting.icount,
        cpus=some.cpus,
        memory_bytes={device.name: machine.memory_bytes for device, machine in machines.items()},
        commands={
            device.name: shown_command(setting, device, rows) for device, rows in by_device.items()
        },
        kernels={
            name: hashlib.sha256(image.bzimage.read_bytes()).hexdigest()
            for name, (image, _) in kernels.items()
        },
    )
