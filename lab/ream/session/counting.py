# SPDX-License-Identifier: GPL-2.0-only
"""Differences of a run that counts instead of timing."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from ream.count.counter import LaunchCounter
from ream.count.emulator import CPUS, build_plugin, emulator_version
from ream.count.guest import KernelCounter, kernel_counter
from ream.experiment import Experiment, Stage
from ream.experiment.shape import RowBase
from ream.kernel.image import Image
from ream.progress import Reporter
from ream.record.receipt import CountFacts
from ream.record.record import ANNOTATED, RecordWriter
from ream.session.request import Request
from ream.stage.link import Program
from ream.stage.memory import Sized
from ream.stage.qemu import BOARDS, qemu_version

R = TypeVar("R", bound=RowBase)

CounterOf = Callable[[Program], LaunchCounter]
"""Makes the counter of a launch from its program."""

SEED = 1
"""Default seed of a run that counts. It is fixed, since counts do not depend on chance."""

LAUNCHES = 2
"""Launches of a run that counts. The second shows that counts repeat in another link order."""


def once(
    experiment: Experiment, stage: Stage, *, launches: int | None, rounds: int | None
) -> Experiment:
    """Return the experiment with one round of two launches, or of one launch in guests.

    launches, rounds: other numbers, if requested. A kernel may adapt from round to round, as a DMA
    driver does to its engine's speed, so launches repeat where rounds do not. A guest's kernel is
    linked once for all launches.
    """
    most = 1 if stage == "vm" else LAUNCHES
    return experiment.resized(launches=launches or most, rounds=rounds or 1)


def small(rows: Sequence[R], sized: Sized[R]) -> tuple[R, ...]:
    """Return each row, halved until it is small enough or cannot be halved further.

    Counts per page equal those of a larger row, except for the cost of a call.
    """
    return tuple(_small(row, sized) for row in rows)


def _small(row: R, sized: Sized[R]) -> R:
    while sized.extent_bytes(row) > sized.counted_bytes and (half := sized.halved(row)) is not None:
        row = half
    return row


def counters(request: Request, record: RecordWriter, reporter: Reporter) -> CounterOf | None:
    """Return the function that makes a launch's counter; None if the run is timed.

    Raises CannotRunHere if the emulator is not installed.
    """
    if request.count is None:
        return None
    emulator_version(request.setup.target)
    plugin, annotate = build_plugin(request.cache, reporter.step), request.count.annotate

    def listed(text: str) -> None:
        record.write(ANNOTATED, text)

    return lambda program: LaunchCounter.of(
        plugin, program, annotate=annotate, listed=listed, cpu=request.cpu
    )


def guest_counters(
    request: Request, folder: Path, reporter: Reporter
) -> Callable[[Image], KernelCounter] | None:
    """Return the function that makes the counter of a guest's kernel; None if none is counted.

    folder: for lists of functions.
    """
    if request.count is None:
        return None
    plugin = build_plugin(request.cache, reporter.step)

    def counter(image: Image) -> KernelCounter:
        return kernel_counter(plugin, image.vmlinux, folder / f"{image.tree.parent.name}.txt")

    return counter


def count_facts(request: Request) -> CountFacts | None:
    """Return the receipt's facts on counting; None if the run is timed."""
    if request.count is None:
        return None
    arch = request.setup.target
    if request.stage == "vm":
        cpu = request.guest.cpu or BOARDS[arch.name].cpu
        return CountFacts(emulator=qemu_version(arch.name), cpu=cpu, cpus=1)
    return CountFacts(emulator=emulator_version(arch), cpu=arch.cpu_model(request.cpu), cpus=CPUS)
