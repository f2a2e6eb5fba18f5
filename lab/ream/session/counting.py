# SPDX-License-Identifier: GPL-2.0-only
"""What is different where a run of the native stage counts instead of timing."""

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
"""What makes the counter of a launch from its program."""

SEED = 1
"""Unless another one is given: counts do not depend on chance, and neither does the plan."""

LAUNCHES = 2
"""So that every variant is seen to count the same again, linked elsewhere."""


def once(
    experiment: Experiment, stage: Stage, *, launches: int | None, rounds: int | None
) -> Experiment:
    """The experiment with one round of two launches, in guests of one, unless others are asked for.

    A kernel may learn from one round to the next, as an engine's driver does of its speed: then
    rounds differ, and launches do not. A kernel in a guest is linked once for all launches.
    """
    most = 1 if stage == "vm" else LAUNCHES
    return experiment.resized(launches=launches or most, rounds=rounds or 1)


def small(rows: Sequence[R], sized: Sized[R]) -> tuple[R, ...]:
    """Each row halved until it is small enough, or cannot be halved any more.

    What is counted for each page of it is that of a larger one, but for what a call costs.
    """
    return tuple(_small(row, sized) for row in rows)


def _small(row: R, sized: Sized[R]) -> R:
    while sized.extent_bytes(row) > sized.counted_bytes and (half := sized.halved(row)) is not None:
        row = half
    return row


def counters(request: Request, record: RecordWriter, reporter: Reporter) -> CounterOf | None:
    """What makes the counter of a launch; None if the run is timed.

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
    """What makes the counter of a kernel in guests; None if functions are not counted there.

    folder: for lists of functions.
    """
    if request.count is None:
        return None
    plugin = build_plugin(request.cache, reporter.step)

    def counter(image: Image) -> KernelCounter:
        return kernel_counter(plugin, image.vmlinux, folder / f"{image.tree.parent.name}.txt")

    return counter


def count_facts(request: Request) -> CountFacts | None:
    """For the receipt; None if the run is timed."""
    if request.count is None:
        return None
    arch = request.setup.target
    if request.stage == "vm":
        cpu = request.guest.cpu or BOARDS[arch.name].cpu
        return CountFacts(emulator=qemu_version(arch.name), cpu=cpu, cpus=1)
    return CountFacts(emulator=emulator_version(arch), cpu=arch.cpu_model(request.cpu), cpus=CPUS)
