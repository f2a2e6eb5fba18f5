# SPDX-License-Identifier: GPL-2.0-only
"""zone-device in the vm stage: one boot of each variant for each device and launch."""

import re
import shlex
import statistics
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from ream.count.guest import with_counts
from ream.errors import BadUsage
from ream.experiment import is_copy
from ream.kernel.arch import ARM64, X86_64, arch_of
from ream.kernel.image import Image
from ream.measure.plan import Launch
from ream.measure.sample import Sample
from ream.measure.taken import Taken
from ream.session.guests import GuestSetting
from ream.session.request import GuestOptions
from ream.session.vm import Choose, Guests, Kernels, Kind, Places
from ream.stage.boots import Boot
from ream.stage.initramfs import guest_initramfs, namespace_programs
from ream.stage.pmem import PMEM_DRIVERS
from ream.stage.vm import BootableKernel, Start

from .boot import Checked, Device, plan_boot, run_boot
from .rows import ZoneDeviceRow

MAP_RATIO = 64
"""A page has a 64th of its size in the map, and of a guest's device only that is written."""

MODULES = ("memmap", "memremap")
"""Modules of kernel/modules, built for each variant."""

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
    def nr_events(self) -> int:
        return self.binds

    @property
    def what(self) -> str:
        return f"{self.variant}, {self.device.name}"

    def run(self, start: Start) -> Iterator[Checked]:
        return run_boot(start, self.device, self.binds)


def rows_as_run(rows: Iterable[ZoneDeviceRow], setting: GuestSetting) -> tuple[ZoneDeviceRow, ...]:
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


def shown_command(setting: GuestSetting, device: Device, rows: Iterable[ZoneDeviceRow]) -> str:
    """QEMU's command line of a device's boots, for people: files without their directories."""
    argv = plan_boot(
        setting.machine(device),
        BootableKernel(Path(arch_of(setting.options.arch).image), Path("initramfs.cpio")),
        device,
        nr_binds(rows),
        append=setting.options.append,
        work=Path(),
    )
    return shlex.join(argv)


class ZoneDeviceGuests(Guests[ZoneDeviceRow]):
    """A kind of guest for each device, which all of its rows share."""

    modules = MODULES
    names_windows = True
    arches = (X86_64.name, ARM64.name)

    def __init__(
        self, rows: Sequence[ZoneDeviceRow], options: GuestOptions, seed: int, choose: Choose
    ) -> None:
        del seed
        self.setting = choose(options)
        here = [row for row in rows if options.arch == X86_64.name or not row.in_namespace]
        self.rows = rows_as_run(here, self.setting)
        self.skipped: Mapping[str, str] = {
            row.name: f"{options.arch} has no word for the kernel that makes pmem of RAM"
            for row in rows
            if row not in here
        }
        self.by_device = devices(self.rows)
        self.machines = {device: self.setting.machine(device) for device in self.by_device}
        self._messages: dict[tuple[str, str], list[float]] = defaultdict(list)
        """By row and variant, what the kernel's own message said, in ms."""

    @staticmethod
    def initramfs(image: Image, init: Path, work: Path) -> Path:
        return initramfs_of(image, init=init, work=work)

    def kinds(self) -> Mapping[str, Kind]:
        return {
            device.name: Kind(self.machines[device], shown_command(self.setting, device, rows))
            for device, rows in self.by_device.items()
        }

    def touched_bytes(self) -> Mapping[bool, int]:
        return {self.setting.icount: max(one.size_bytes // MAP_RATIO for one in self.by_device)}

    def configs(self) -> tuple[tuple[str, ...], ...]:
        return tuple(dict.fromkeys(device.config for device in self.by_device))

    def boots(self, launch: Launch, kernels: Kernels, places: Places) -> Iterator[DeviceBoot]:
        for device, rows in self.by_device.items():
            for variant in launch.link_order:
                yield DeviceBoot(
                    variant=variant,
                    launch=launch.number,
                    machine=self.machines[device],
                    kernel=kernels[device.config][variant][1],
                    append=self.setting.options.append,
                    log=places.consoles / f"{device.name}-{variant}-{launch.number}.log",
                    device=device,
                    binds=nr_binds(rows),
                )

    def taken(self, boot: Boot, said: object) -> Iterator[Taken]:
        assert isinstance(boot, DeviceBoot)
        assert isinstance(said, Checked)
        rows = {row.name: row for row in self.by_device[boot.device]}
        for sample in samples_of(said, rows.values(), boot):
            if match := MESSAGE.search(said.bind.message or ""):
                self._messages[sample.row, sample.subject].append(float(match[2]))
            times = quantities_beside(rows[sample.row], said)
            # Of other rows the time is of more than what is counted.
            counts = said.counted if rows[sample.row].in_namespace else None
            yield Taken(with_counts(replace(sample, times=times), counts), _extra(said))

    def remarks(self, row: ZoneDeviceRow, names: Sequence[str]) -> Iterator[str]:
        """What the published methods would have said here."""
        spoken = {name: self._messages.get((row.name, name)) for name in names if not is_copy(name)}
        means = [f"{name} {statistics.fmean(ms):.2f}" for name, ms in spoken.items() if ms]
        if means:
            yield f"the kernel's own message, mean in ms of the guest's clock: {', '.join(means)}"


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


def _extra(checked: Checked) -> dict[str, Any]:
    """What only this stage knows of a sample; docs/format.md names it."""
    return {
        "memmap_init_ns": checked.init_ns,
        "bind_ns": checked.bind.bind_ns,
        "unbind_ns": checked.bind.unbind_ns,
        "message": checked.bind.message,
    }


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
    """What a guest of this experiment boots into: PID 1, our modules, ndctl and daxctl.

    The last two, the host's own, only if it can make pmem.
    """
    makers = namespace_programs() if image.arch == X86_64 else {}
    return guest_initramfs(
        image,
        "initramfs",
        init=init,
        work=work,
        modules=(*MODULES, *PMEM_DRIVERS),
        programs={**makers, **programs},
    )


GUESTS = ZoneDeviceGuests
