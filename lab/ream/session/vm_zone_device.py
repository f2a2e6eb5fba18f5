# SPDX-License-Identifier: GPL-2.0-only
"""zone-device in the vm stage: one boot of each variant for each device and launch."""

import re
import shlex
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from ream.errors import BadUsage
from ream.experiment import ZoneDevice, ZoneDeviceRow, is_copy
from ream.kernel.image import Image
from ream.kernel.source import Tree
from ream.measure.plan import Launch
from ream.measure.sample import BESIDE, Sample
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
)
from ream.session.kept import kept_boots
from ream.session.request import Measured, Request
from ream.stage.boots import Boot
from ream.stage.guest import Guest
from ream.stage.initramfs import build_initramfs, namespace_programs
from ream.stage.qemu import Machine
from ream.stage.vm import Checked, Device, Kernel, plan_boot, run_boot

MODULES = ("memmap", "memremap")
"""Of kernel/modules, built for each variant."""

DRIVERS = ("nd_pmem",)
"""The kernel's own that init loads when it wants them."""

ICOUNT_ROUNDS = 3
"""Where instructions are counted, more of them add nothing."""

MESSAGE = re.compile(r"initialised (\d+) pages in (\d+)ms")


@dataclass(frozen=True)
class DeviceBoot(Boot):
    """One boot, as planned."""

    device: Device
    binds: int

    says = Checked

    @property
    def title(self) -> str:
        return f"{self.variant}, {self.device.name}"

    def run(self, begun: Callable[[Guest], None]) -> Iterator[Checked]:
        return run_boot(
            self.machine,
            self.kernel,
            self.device,
            self.binds,
            append=self.append,
            log=self.log,
            begun=begun,
        )


def rows_as_run(rows: Iterable[ZoneDeviceRow], setting: Setting) -> tuple[ZoneDeviceRow, ...]:
    """The rows with as many rounds as are worth it."""
    return tuple(
        row.model_copy(update={"rounds": min(row.rounds, ICOUNT_ROUNDS)})
        if setting.icount and not (setting.options.full or setting.options.keep_rounds)
        else row
        for row in rows
    )


def devices(rows: Iterable[ZoneDeviceRow]) -> dict[Device, tuple[ZoneDeviceRow, ...]]:
    """Rows by the device that their boots share; raises BadUsage if two are called the same."""
    found: dict[Device, list[ZoneDeviceRow]] = defaultdict(list)
    for row in rows:
        found[Device.of(row)].append(row)
    names = [device.name for device in found]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise BadUsage(f"two devices are both {twice[0]}: run them apart, with --row")
    return {device: tuple(its) for device, its in found.items()}


def nr_binds(rows: Iterable[ZoneDeviceRow]) -> int:
    """Binds of a boot that gives these rows their samples: the first, and the most rebinds."""
    return 1 + max((row.rounds for row in rows if not row.first_touch), default=0)


def shown_command(setting: Setting, device: Device, rows: Iterable[ZoneDeviceRow]) -> str:
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


def measure_vm(
    request: Request, tree: Tree, *, work: Path, record: RecordWriter, reporter: Reporter
) -> Measured:
    """Build the kernels and boot them in turn; raises what building and booting raise."""
    setting = choose_setting(request.guest, request.cache)
    record.journal.agree("guests", str(setting))
    assert isinstance(request.experiment, ZoneDevice)
    rows = rows_as_run(request.experiment.rows, setting)
    by_device = devices(rows)
    machines = {device: setting.machine(device) for device in by_device}
    at_once = boots_at_once(setting, max(device.size_bytes // 64 for device in by_device))
    by_config: dict[tuple[str, ...], Kernels] = {}
    launches: tuple[Launch, ...] = ()
    for device in sorted(by_device, key=lambda device: bool(device.config)):
        if device.config in by_config:
            continue
        place = work / ("-".join(device.config) or "plain")
        place.mkdir()
        by_config[device.config], launches = prepare(
            request,
            tree,
            setting,
            initramfs=lambda image, init, place: initramfs_of(image, init=init, work=place),
            modules=MODULES,
            work=place,
            reporter=reporter,
            config=device.config,
        )
    names = [variant.name for variant in request.variants]
    start = take_snapshot()
    with consoles(request.cache / "console" / record.path.name) as logs:
        boots = plan_boots(
            launches, by_device, machines, by_config, append=request.guest.append, consoles=logs
        )
        taken = list(_measure(boots, by_device, at_once=at_once, record=record, reporter=reporter))
    samples = tuple(sample for sample, _ in taken)
    return Measured(
        rows=rows,
        samples=samples,
        conditions=conditions(start, take_snapshot()),
        launches=len(launches),
        config_sha256=config_sha256(next(iter(by_config.values()))),
        options={"accel": setting.accel, "icount": setting.icount, "full": request.guest.full},
        unit=setting.unit,
        guest=guest_of(
            setting,
            {device.name: machine for device, machine in machines.items()},
            {
                device.name: shown_command(setting, device, its_rows)
                for device, its_rows in by_device.items()
            },
            {
                ", ".join((name, *config)): kernel
                for config, kernels in by_config.items()
                for name, kernel in kernels.items()
            },
        ),
        remarks={row.name: tuple(remarks(row, names, taken)) for row in rows},
        beside=tuple(one for row in rows for pair in taken for one in beside(row, *pair)),
    )


Kernels = Mapping[str, tuple[Image, Kernel]]
"""By variant."""


Taken = tuple[Sample, Checked]


def _measure(
    boots: Sequence[DeviceBoot],
    by_device: Mapping[Device, tuple[ZoneDeviceRow, ...]],
    *,
    at_once: int,
    record: RecordWriter,
    reporter: Reporter,
) -> Iterator[Taken]:
    """Run every boot; each sample is in the record as soon as it is known."""
    total = sum(boot.binds + 1 for boot in boots)
    with reporter.measuring(float(total)) as advance:
        for boot, checked in kept_boots(
            boots, at_once=at_once, journal=record.journal, reporter=reporter
        ):
            advance(1.0, f"launch {boot.launch + 1}, {boot.device.name}, {boot.variant}")
            if not isinstance(checked, Checked):
                record.keep(f"consoles/{boot.log.name}", boot.log)
                continue
            for sample in samples_of(checked, by_device[boot.device], boot):
                row = next(row for row in by_device[boot.device] if row.name == sample.row)
                record.append(sample, _extra(row, checked))
                yield sample, checked


def plan_boots(
    launches: Iterable[Launch],
    by_device: Mapping[Device, tuple[ZoneDeviceRow, ...]],
    machines: Mapping[Device, Machine],
    kernels: Mapping[tuple[str, ...], Kernels],
    *,
    append: tuple[str, ...],
    consoles: Path,
) -> list[DeviceBoot]:
    """Every variant once for each device in every launch, in the launch's random order.

    kernels: by what their configurations have over vm.config. consoles: where logs are written;
    that of a guest that fails stays.
    """
    return [
        DeviceBoot(
            variant=variant,
            launch=launch.number,
            device=device,
            binds=nr_binds(rows),
            machine=machines[device],
            kernel=kernels[device.config][variant][1],
            append=append,
            log=consoles / f"{device.name}-{variant}-{launch.number}.log",
        )
        for launch in launches
        for device, rows in by_device.items()
        for variant in launch.link_order
    ]


def samples_of(
    checked: Checked, rows: Iterable[ZoneDeviceRow], boot: DeviceBoot
) -> Iterator[Sample]:
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
            time_ns=checked.init_ns if row.in_namespace else checked.bind.bind_ns,
            nr_bytes=checked.nr_bytes,
            verified=True,
        )


def _extra(row: ZoneDeviceRow, checked: Checked) -> dict[str, Any]:
    """What only this stage knows of a sample; docs/format.md names it."""
    return {
        BESIDE: quantities_beside(row, checked),
        "memmap_init_ns": checked.init_ns,
        "bind_ns": checked.bind.bind_ns,
        "unbind_ns": checked.bind.unbind_ns,
        "message": checked.bind.message,
    }


def remarks(row: ZoneDeviceRow, names: Iterable[str], taken: Iterable[Taken]) -> Iterator[str]:
    """What the published methods would have said here."""
    spoken: dict[str, list[float]] = {name: [] for name in names if not is_copy(name)}
    for sample, checked in taken:
        match = MESSAGE.search(checked.bind.message or "")
        if match and sample.row == row.name and sample.subject in spoken:
            spoken[sample.subject].append(float(match[2]))
    means = [f"{name} {statistics.fmean(ms):.2f}" for name, ms in spoken.items() if ms]
    if means:
        yield f"the kernel's own message, mean in ms of the guest's clock: {', '.join(means)}"


def beside(row: ZoneDeviceRow, sample: Sample, checked: Checked) -> Iterator[tuple[str, Sample]]:
    """What else one sample of a row says: of what its users wait for, or of a part of it."""
    if sample.row == row.name:
        for name, time_ns in quantities_beside(row, checked).items():
            yield name, replace(sample, time_ns=time_ns)


def quantities_beside(row: ZoneDeviceRow, checked: Checked) -> dict[str, int]:
    """By name, the other times of a row's operation, of those that were measured."""
    bind = checked.bind
    if not row.in_namespace:
        said = {"memmap_init_zone_device()": checked.init_ns, "memunmap_pages()": bind.unbind_ns}
    elif row.first_touch:
        said = {"ndctl create-namespace": bind.bind_ns}
    else:
        said = {"whole bind": bind.bind_ns, "whole unbind": bind.unbind_ns}
    return {name: time_ns for name, time_ns in said.items() if time_ns}


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
