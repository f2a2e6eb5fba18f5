# SPDX-License-Identifier: GPL-2.0-only
"""deferred-init in the vm stage: one boot of each variant for each shape of guest and launch."""

import shlex
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ream.counted import counted
from ream.errors import BadUsage
from ream.experiment import STRUCT_PAGE_BYTES, format_size, is_copy
from ream.kernel.image import Image
from ream.measure.plan import Launch
from ream.measure.sample import Sample
from ream.measure.taken import Taken
from ream.session.guests import QEMU_BYTES, GuestSetting
from ream.session.request import GuestOptions
from ream.session.vm import Choose, Guests, Kernels, Kind, Places
from ream.stage.boots import Boot
from ream.stage.memory import available_bytes
from ream.stage.native import Suited
from ream.stage.qemu import GuestMachine
from ream.stage.suit import nr_cpus
from ream.stage.vm import BootableKernel, Start

from .boot import (
    Booted,
    Shape,
    deferred_initramfs,
    layout_of,
    plan_deferred_boot,
    run_deferred_boot,
)
from .rows import DeferredInitRow
from .state import States
from .zones import Layout

MODULES = ("memmap",)
"""Module of kernel/modules. No guest loads it; its file has the facts of a variant's build."""

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
    def what(self) -> str:
        return f"{self.variant}, {self.shape.name}"

    def run(self, start: Start) -> Iterator[Booted]:
        return run_deferred_boot(start, self.shape, self.layout)


def choose_of_rows(options: GuestOptions, setting_of: Choose) -> GuestSetting:
    """The setting; whether instructions are counted, the CPUs of each row's guest decide.

    Raises BadUsage if the user says what is the rows' to say, and what setting_of() raises.
    """
    if options.memory_bytes or options.nodes or options.distances:
        raise BadUsage(
            "--memory, --numa and --numa-distance: each row of deferred-init says what its guest"
            " has; choose rows with --row, or give them other values with --set memory_bytes=SIZE"
        )
    return replace(setting_of(replace(options, cpus=None)), options=options)


def booted_rows(rows: Iterable[DeferredInitRow], setting: GuestSetting) -> Suited:
    """The rows whose guests are booted here, with the CPUs that the user gives; why others not."""
    booted, skipped = [], {}
    for row in rows:
        given = row.model_copy(update={"threads": setting.options.cpus or row.threads})
        if reason := _why_no_boot(given, setting):
            skipped[row.name] = reason
        else:
            booted.append(given)
    return Suited(tuple(booted), skipped=skipped)


def _why_no_boot(row: DeferredInitRow, setting: GuestSetting) -> str | None:
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
    rows: Iterable[DeferredInitRow], setting: GuestSetting
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


def _cpus(row: DeferredInitRow, setting: GuestSetting) -> int:
    return row.threads or (1 if setting.accel == "tcg" else nr_cpus())


def why_not(shape: Shape, setting: GuestSetting) -> str | None:
    """Why the times of such a guest say nothing; None if they do."""
    if setting.accel == "tcg" and shape.cpus > 1:
        return "emulated CPUs take turns, so threads cannot make it faster"
    if shape.cpus > (here := nr_cpus()):
        return f"{shape.cpus} threads would share {counted(here, 'CPU')}"
    return None


def machine_of(shape: Shape, setting: GuestSetting) -> GuestMachine:
    """The guest's machine; instructions are counted where one CPU does all."""
    return shape.machine(
        setting.accel,
        icount=setting.icount and shape.present == 1,
        options=setting.options.qemu_options,
    )


def shown_command(setting: GuestSetting, shape: Shape) -> str:
    """QEMU's command line of a shape's boots, for people: files without their directories."""
    argv = plan_deferred_boot(
        machine_of(shape, setting),
        BootableKernel(Path("bzImage"), Path("deferred.cpio")),
        shape,
        append=setting.options.append,
        work=Path(),
    )
    return shlex.join(argv)


class DeferredInitGuests(Guests[DeferredInitRow]):
    """A kind of guest for each shape, which all of its rows share; boots of all are verified."""

    modules = MODULES

    def __init__(
        self, rows: Sequence[DeferredInitRow], options: GuestOptions, seed: int, choose: Choose
    ) -> None:
        del seed
        self.setting = choose_of_rows(options, choose)
        suited = booted_rows(rows, self.setting)
        self.rows, self.skipped = suited.rows, suited.skipped
        self.by_shape = shapes(self.rows, self.setting)
        self._layouts: dict[BootableKernel, Layout] = {}
        self._states = States()
        self._verified: list[tuple[Shape, Booted]] = []
        """Boots whose states are as predicted, and as those of all others with the same memory."""
        self._messages_ms: dict[tuple[str, str], list[int]] = defaultdict(list)
        """By row and variant."""

    @staticmethod
    def initramfs(image: Image, init: Path, work: Path) -> Path:
        return deferred_initramfs(image, init=init, work=work)

    def kinds(self) -> Mapping[str, Kind]:
        return {
            shape.name: Kind(machine_of(shape, self.setting), shown_command(self.setting, shape))
            for shape in self.by_shape
        }

    def touched_bytes(self) -> Mapping[bool, int]:
        found: dict[bool, int] = {}
        for shape in self.by_shape:
            icount, nr_bytes = self._icount(shape), shape.memory_bytes // PAGE_MAP_RATIO
            found[icount] = max(found.get(icount, 0), nr_bytes)
        return found

    def _icount(self, shape: Shape) -> bool:
        return machine_of(shape, self.setting).icount

    def nr_boots(self, launches: int) -> int:
        """What is booted for its state only is booted in the first launch: another adds nothing."""
        return sum(1 if why_not(shape, self.setting) else launches for shape in self.by_shape)

    def boots(self, launch: Launch, kernels: Kernels, places: Places) -> Iterator[DeferredBoot]:
        for shape in self.by_shape:
            if launch.number and why_not(shape, self.setting):
                continue
            for variant in launch.link_order:
                image, kernel = kernels[()][variant]
                if kernel not in self._layouts:
                    self._layouts[kernel] = layout_of(image, places.work)
                yield DeferredBoot(
                    variant=variant,
                    launch=launch.number,
                    machine=machine_of(shape, self.setting),
                    kernel=kernel,
                    append=self.setting.options.append,
                    log=places.consoles / f"{shape.name}-{variant}-{launch.number}.log",
                    shape=shape,
                    layout=self._layouts[kernel],
                )

    def taken(self, boot: Boot, said: object) -> Iterator[Taken]:
        assert isinstance(boot, DeferredBoot)
        assert isinstance(said, Booted)
        self._states.check(boot.title, said.states)
        self._verified.append((boot.shape, said))
        if why_not(boot.shape, self.setting):
            return
        for row in self.by_shape[boot.shape]:
            sample = sample_of(said, row, boot)
            self._messages_ms[row.name, boot.variant].append(said.times.message_ms)
            yield Taken(replace(sample, times=_times_beside(sample, said)), _extra(said))

    def remarks(self, row: DeferredInitRow, names: Sequence[str]) -> Iterator[str]:
        """What the published method would have said here, and what was compared besides."""
        said = {name: self._messages_ms.get((row.name, name)) for name in names}
        parts = [
            f"{name} {sum(ms) / len(ms):g}" for name, ms in said.items() if ms and not is_copy(name)
        ]
        if parts and row.measure == "init":
            yield (
                "the kernel's own message, mean in ms of the guest's clock, counted in jiffies:"
                f" {', '.join(parts)}"
            )
        if parts:
            shape = next(shape for shape, its in self.by_shape.items() if row in its)
            yield f"all struct pages, free lists and counters: {self.equal(shape)}"

    def not_timed(self) -> Mapping[str, str]:
        return {
            row.name: f"{reason}; {self._all_the_same(shape)}"
            for shape, its in self.by_shape.items()
            if (reason := why_not(shape, self.setting))
            for row in its
        }

    def _all_the_same(self, shape: Shape) -> str:
        if not self._verified:
            return "its states are verified"
        return f"booted and verified all the same: {self.equal(shape)}"

    def equal(self, shape: Shape) -> str:
        """How many boots of guests with this shape's memory and CPUs left the same state."""
        alike = [
            tuple((state.node, state.taken) for state in booted.states)
            for other, booted in self._verified
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


def _times_beside(sample: Sample, booted: Booted) -> dict[str, int]:
    """The whole boot, of a row that times a part of it."""
    boot_ns = booted.times.boot_ns
    return {} if boot_ns == sample.time_ns else {"boot to PID 1": boot_ns}


def _extra(booted: Booted) -> dict[str, Any]:
    """What only this stage knows of a sample; docs/format.md names it."""
    return {
        "message_ms": booted.times.message_ms,
        "digest": "-".join(state.digest for state in booted.states),
        "nr_taken": sum(len(state.taken) for state in booted.states),
    }


GUESTS = DeferredInitGuests
