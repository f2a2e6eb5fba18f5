# SPDX-License-Identifier: GPL-2.0-only
"""Shared parts of vm stage runs: accelerator, kernels, consoles and facts on guests."""

import hashlib
import os
import shlex
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from ream.command import require
from ream.count.guest import KernelCounter
from ream.errors import BadUsage, CannotRunHere, ReamError
from ream.experiment import BEFORE, BEFORE_AGAIN, IMPLIED, format_size
from ream.kernel.arch import arch_of
from ream.kernel.cache import long_ago
from ream.kernel.image import Image, build_image
from ream.kernel.source import Tree
from ream.measure.plan import Launch, plan_launches
from ream.measure.sample import Sample
from ream.measure.statistics import SAME
from ream.paths import KERNEL_CONFIG, KERNEL_MODULES
from ream.progress import Reporter
from ream.record.receipt import GuestFacts, GuestKind
from ream.report.contract import Unit
from ream.session.counting import guest_counters
from ream.session.request import GuestOptions, Request
from ream.stage.accel import ask_kvm, choose_accel
from ream.stage.bench import config_files
from ream.stage.initramfs import build_init
from ream.stage.memory import available_bytes
from ream.stage.qemu import BOARDS, Accel, GuestMachine, qemu_version
from ream.stage.vm import BootableKernel, boot_command
from ream.variants import Variant

VM_CONFIG = KERNEL_CONFIG / "vm.config"

ICOUNT_LAUNCHES = 1
"""Launches if instructions are counted, since counts repeat."""

QEMU_BYTES = 1 << 30
"""Host memory of a guest besides the memory it works on: for QEMU and the guest's own use."""

MakeInitramfs = Callable[[Image, Path, Path], Path]
"""Makes an initramfs from a kernel image, the program that is PID 1, and a working folder."""


class Load(Protocol):
    """The load of a guest."""

    @property
    def name(self) -> str: ...
    @property
    def least_bytes(self) -> int: ...


@dataclass(frozen=True)
class GuestSetting:
    """Settings that the guests of a run share."""

    accel: Accel
    reason: str
    icount: bool
    options: GuestOptions
    cpu: str | None = None
    """QEMU's -cpu argument; None: the default."""

    def __str__(self) -> str:
        """The settings that must be equal in all rounds of a run."""
        return f"{self.accel.upper()}, {self.unit}"

    @property
    def given_bytes(self) -> int:
        """Memory that the user set for a guest, in total or by nodes; 0: ream chooses."""
        return self.options.memory_bytes or sum(node.memory_bytes for node in self.options.nodes)

    def machine(self, load: Load) -> GuestMachine:
        """Return the machine for a load; raises BadUsage if the user's settings are too small."""
        given = self.given_bytes
        if given and given < load.least_bytes:
            raise BadUsage(
                f"a guest of {format_size(given)} cannot hold {load.name}: it needs"
                f" {format_size(load.least_bytes)}"
            )
        return self.machine_of(given or load.least_bytes)

    @property
    def unit(self) -> Unit:
        """The unit of measurements in such a guest."""
        return "instructions" if self.icount else "ns"

    def machine_of(self, memory_bytes: int) -> GuestMachine:
        """Return the machine with the user's settings and this much memory."""
        asked = self.options
        return GuestMachine(
            accel=self.accel,
            icount=self.icount,
            cpus=asked.cpus or (1 if self.icount else 2),
            memory_bytes=memory_bytes,
            nodes=asked.nodes,
            distances=asked.distances,
            options=asked.qemu_options,
            cpu=self.cpu,
            arch=asked.arch,
        )


def choose_setting(options: GuestOptions, cache: Path) -> GuestSetting:
    """Choose KVM if a guest boots under it, else TCG, which counts instructions.

    Raises CannotRunHere if the requested setting is not available, BadUsage if it is invalid.
    """
    accel, cpu, reason = choose_accel(
        options.accel,
        probe=lambda: ask_kvm(cache),
        arch=arch_of(options.arch),
        cpu=options.cpu,
    )
    if options.icount and accel == "kvm":
        raise BadUsage("--icount counts instructions, which KVM cannot: use --accel tcg")
    icount = accel == "tcg" if options.icount is None else options.icount
    if icount and (options.cpus or 1) > 1:
        raise BadUsage(
            f"--cpus {options.cpus}: where instructions are counted there is one CPU; "
            "--no-icount runs more, with times that are only emulated"
        )
    return GuestSetting(accel, reason, icount, options, cpu)


def launches_as_run(launches: int, setting: GuestSetting) -> int:
    """Return ICOUNT_LAUNCHES if instructions are counted and the user set no number of launches."""
    keep = setting.options.full or setting.options.keep_launches
    return ICOUNT_LAUNCHES if setting.icount and not keep else launches


def doubts(samples: Iterable[Sample], unit_of: Callable[[str], Unit]) -> Iterator[str]:
    """Yield warnings if boots of the same kernel do not have the same counts.

    unit_of: returns a row's unit. Times are not compared, nor rows whose `before` booted once.
    """
    counts: dict[tuple[str, int, int], dict[str, int]] = {}
    for sample in samples:
        if sample.subject in IMPLIED and unit_of(sample.row) == "instructions":
            place = (sample.row, sample.launch, sample.round)
            counts.setdefault(place, {})[sample.subject] = sample.time_ns
    apart: dict[str, float] = {}
    for (row, _, _), both in counts.items():
        if len(both) == len(IMPLIED):
            differ = abs(both[BEFORE_AGAIN] / both[BEFORE] - 1)
            apart[row] = max(apart.get(row, 0), differ)
    if differ_in := [f"{row} {worst:.0e}" for row, worst in apart.items() if worst > SAME]:
        yield (
            f"two boots of the same kernel differ by more than {SAME:g} of their count: "
            f"{', '.join(differ_in)}; the kernel waited there, and a wait is counted, too, or what"
            " it did depends on chance: intervals are over boots as of times, and take two"
            " launches at least"
        )


def build_kernels(
    variants: Iterable[Variant],
    tree: Tree,
    *,
    folder: Path,
    cache: Path,
    initramfs: MakeInitramfs,
    modules: Sequence[str],
    work: Path,
    reporter: Reporter,
    config: Sequence[str] = (),
    counter: Callable[[Image], KernelCounter] | None = None,
) -> dict[str, tuple[Image, BootableKernel]]:
    """Build each variant's kernel and initramfs, once for each distinct list of patches.

    folder: the experiment's folder. modules: names in kernel/modules. config: fragments of
    kernel/config on top of vm.config. initramfs: makes the initramfs. counter: makes the counter of
    a kernel's functions.
    """
    arch = tree.setup.target
    require(BOARDS[arch.name].program)
    init = build_init(work, folder, arch=arch)
    variants = tuple(variants)
    built: dict[object, tuple[Image, BootableKernel]] = {}
    found = {}
    # Variants with fewer patches come first, so that others can start from their builds.
    for variant in sorted(variants, key=lambda one: len(one.patches)):
        key = variant.content
        if key not in built:
            image = build_image(
                tree,
                variant.patches,
                cache=cache,
                fragments=(VM_CONFIG, *config_files(config)),
                modules=tuple(KERNEL_MODULES / name for name in modules),
                reporter=reporter,
            )
            place = work / f"kernel-{len(built)}"
            place.mkdir()
            archive = initramfs(image, init, place)
            counts = None if counter is None else counter(image)
            built[key] = (image, BootableKernel(image.bootable, archive, counts))
        found[variant.name] = built[key]
    return {variant.name: found[variant.name] for variant in variants}


def prepare(
    request: Request,
    tree: Tree,
    setting: GuestSetting,
    *,
    initramfs: MakeInitramfs,
    modules: Sequence[str],
    work: Path,
    reporter: Reporter,
    config: Sequence[str] = (),
    counts_repeat: bool = True,
) -> tuple[dict[str, tuple[Image, BootableKernel]], tuple[Launch, ...]]:
    """Build every variant's kernel; return them and the launches in which they are booted.

    counts_repeat: whether counts repeat, so that one launch suffices if instructions are counted.
    """
    reporter.step(f"guests run under {setting.accel.upper()}: {setting.reason}")
    kernels = build_kernels(
        request.variants,
        tree,
        folder=request.experiment.folder,
        cache=request.cache,
        initramfs=initramfs,
        modules=modules,
        work=work,
        reporter=reporter,
        config=config,
        counter=guest_counters(request, work, reporter),
    )
    launches = plan_launches(
        [variant.name for variant in request.variants],
        launches=launches_as_run(request.experiment.launches, setting)
        if counts_repeat
        else request.experiment.launches,
        seed=request.seed,
    )
    return kernels, launches


@contextmanager
def consoles(place: Path) -> Iterator[Path]:
    """Yield a directory for guests' consoles. It is kept if a guest fails, as the error names it.

    Directories of failed runs are removed after a month.
    """
    shutil.rmtree(place, ignore_errors=True)  # left by an earlier start of this run
    place.mkdir(parents=True)
    for old in place.parent.iterdir():
        if old.stat().st_mtime < long_ago():
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


def boots_at_once(setting: GuestSetting, touched_bytes: int) -> int:
    """Return how many guests the host has CPUs and memory for; one if times are measured.

    touched_bytes: memory that each guest writes.
    Raises CannotRunHere if the memory does not suffice for one.
    """
    needed = touched_bytes + QEMU_BYTES
    if (available := available_bytes()) < needed:
        raise CannotRunHere(
            f"a guest takes {format_size(needed)} of memory, {available >> 20} MiB are available;"
            " choose smaller rows"
        )
    if not setting.icount:
        return 1
    return max(1, min(len(os.sched_getaffinity(0)), available // needed))


def guest_of(
    setting: GuestSetting,
    machines: Mapping[str, GuestMachine],
    commands: Mapping[str, str],
    kernels: Mapping[str, tuple[Image, BootableKernel]],
) -> GuestFacts:
    """Describe the guests for the receipt; machines and commands by kind of guest."""
    some = next(iter(machines.values()))
    kinds = {name: GuestKind(icount=it.icount, cpus=it.cpus) for name, it in machines.items()}
    return GuestFacts(
        qemu=qemu_version(some.arch),
        accel=some.accel,
        accel_reason=setting.reason,
        icount=all(machine.icount for machine in machines.values()),
        cpus=some.cpus,
        kinds=kinds if len(set(kinds.values())) > 1 else {},
        memory_bytes={name: machine.memory_bytes for name, machine in machines.items()},
        commands=dict(commands),
        kernels={
            name: hashlib.sha256(image.bootable.read_bytes()).hexdigest()
            for name, (image, _) in kernels.items()
        },
    )


def shown_boot(
    setting: GuestSetting, machine: GuestMachine, words: Sequence[str], *, archive: str
) -> str:
    """Return QEMU's command line of a boot for display, with files without their directories.

    words: arguments of PID 1. archive: the initramfs.
    """
    kernel = BootableKernel(Path(arch_of(machine.arch).image), Path(archive))
    return shlex.join(
        boot_command(machine, kernel, words, append=setting.options.append, work=Path())
    )


def config_sha256(kernels: Mapping[str, tuple[Image, BootableKernel]]) -> str:
    """Return the digest of the first kernel's configuration, which the others share."""
    image = next(iter(kernels.values()))[0]
    return hashlib.sha256(image.config.read_bytes()).hexdigest()
