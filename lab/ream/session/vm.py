# SPDX-License-Identifier: GPL-2.0-only
"""A run of the vm stage, and `Guests`, which an experiment provides in its module `guests`."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Generic, TypeVar

from ream.errors import BadUsage, CannotRunHere
from ream.experiment import Experiment, Row
from ream.experiment.registry import part
from ream.kernel.arch import X86_64
from ream.kernel.image import Image
from ream.kernel.source import Tree
from ream.measure.plan import Launch, without
from ream.measure.taken import Taken
from ream.progress import Reporter
from ream.record.machine import conditions, take_snapshot
from ream.record.receipt import GuestFacts
from ream.record.record import RecordWriter
from ream.report.contract import Unit
from ream.session.counting import count_facts
from ream.session.guests import (
    GuestSetting,
    boots_at_once,
    choose_setting,
    config_sha256,
    consoles,
    guest_of,
    prepare,
)
from ream.session.plan import check_guests
from ream.session.pointless import left_out, same_kernels, trees_of
from ream.session.replay import replayed_boots
from ream.session.request import GuestOptions, Measured, Request
from ream.stage.boots import Boot
from ream.stage.qemu import GuestMachine
from ream.stage.vm import BootableKernel
from ream.stage.workload import Workload

R = TypeVar("R", bound=Row)

Built = tuple[Image, BootableKernel]
Kernels = Mapping[tuple[str, ...], Mapping[str, Built]]
"""Kernels by the options that they add to the stage's configuration, then by variant."""
Choose = Callable[[GuestOptions], GuestSetting]


@dataclass(frozen=True)
class Kind:
    """A kind of guest: its machine, and QEMU's command line for people."""

    machine: GuestMachine
    command: str


@dataclass(frozen=True)
class Places:
    """Folders of a run."""

    consoles: Path
    """The folder of console logs; the log of a guest that fails is kept."""
    work: Path


class Guests(ABC, Generic[R]):
    """The guests of one run; each run makes an object of this class."""

    modules: ClassVar[tuple[str, ...]] = ()
    """Names of kernel/modules that are built for each variant."""
    programs: ClassVar[tuple[Workload, ...]] = ()
    """Workloads that the guest contains."""
    names_windows: ClassVar[bool] = False
    """Whether programs and modules in the guest name each sample, for a plugin that counts it."""
    arches: ClassVar[tuple[str, ...]] = (X86_64.name,)
    """The architectures whose kernels it boots."""
    counts_repeat: ClassVar[bool] = True
    """Whether two launches count the same instructions, so that one launch is enough."""

    setting: GuestSetting
    rows: tuple[R, ...]
    """The rows as they are booted."""
    skipped: Mapping[str, str]
    """The reason for each row that is not booted."""

    @abstractmethod
    def __init__(self, rows: Sequence[R], options: GuestOptions, seed: int, choose: Choose) -> None:
        """Plan the guests. Raises BadUsage if one boot cannot do it, and what choose() raises."""

    @staticmethod
    @abstractmethod
    def initramfs(image: Image, init: Path, work: Path) -> Path:
        """Make the initramfs of a guest; raises what compiling and packing raise."""

    @abstractmethod
    def kinds(self) -> Mapping[str, Kind]:
        """The kinds of guests by name."""

    @abstractmethod
    def touched_bytes(self) -> Mapping[bool, int]:
        """The most bytes that a guest writes, by whether it counts instructions."""

    @abstractmethod
    def boots(self, launch: Launch, kernels: Kernels, places: Places) -> Iterable[Boot]:
        """Boot every variant once in each kind of guest, in the launch's random order."""

    @abstractmethod
    def taken(self, boot: Boot, said: object) -> Iterable[Taken]:
        """The samples in a message of a boot; raises VerificationFailed."""

    def nr_boots(self, launches: int) -> int:
        """The number of boots of each variant."""
        return launches * len(self.kinds())

    def configs(self) -> tuple[tuple[str, ...], ...]:
        """The options that each configuration adds to the stage's own."""
        return ((),)

    def unit_of(self, row: str) -> Unit:
        del row
        return self.setting.unit

    def remarks(self, row: R, names: Sequence[str]) -> Iterator[str]:
        """Remarks on a row at the end of the run; names: the names of all variants."""
        del row, names
        yield from ()

    def not_timed(self) -> Mapping[str, str]:
        """The reason for each row that is booted but whose times mean nothing."""
        return {}


def guests_of(experiment: Experiment) -> type[Guests[Row]]:
    """The guests of an experiment; raises BadUsage if it has none."""
    found = part(type(experiment), "guests", type)
    if found is None or not issubclass(found, Guests):
        raise BadUsage(f"{experiment.folder}: rows of the vm stage, and no guests.py")
    return found


def planned(request: Request, choose: Choose) -> Guests[Row]:
    """The guests of a run; raises what planning and choosing raise."""
    kind = guests_of(request.experiment)
    if request.setup.arch not in kind.arches:
        raise CannotRunHere(
            f"--arch {request.setup.arch}: guests of {request.experiment.name} are of"
            f" {', '.join(kind.arches)} alone"
        )
    if request.count is not None and not kind.names_windows:
        raise BadUsage(
            f"--count: guests of {request.experiment.name} do not tell where a sample begins and"
            " ends; their instructions are counted as a whole, without --count"
        )
    return kind(request.experiment.rows, request.guest, request.seed, choose)


def check_memory(request: Request) -> None:
    """Raise BadUsage if the user gave guests less memory than a row needs."""
    planned(request, lambda options: choose_setting(options, request.cache)).kinds()


def measure_vm(
    request: Request, tree: Tree, *, work: Path, record: RecordWriter, reporter: Reporter
) -> Measured:
    """Build the kernels and boot them in turn; raises what building and booting raise."""
    its = planned(request, lambda options: choose_setting(options, request.cache))
    check_guests(record.journal, str(its.setting))
    for why, names in by_reason(its.skipped).items():
        reporter.step(f"{', '.join(names)}: not run: {why}")
    if not its.rows:
        raise CannotRunHere("; ".join(by_reason(its.skipped)))
    # Memory for the largest guest is checked before anything is built.
    at_once = {
        icount: boots_at_once(replace(its.setting, icount=icount), nr_bytes)
        for icount, nr_bytes in its.touched_bytes().items()
    }
    kernels, launches = _kernels(request, tree, its, work=work, reporter=reporter)
    untouched = {} if request.measure_anyway else _untouched(request, kernels, reporter)
    launches = without(untouched, launches)
    start = take_snapshot()
    with consoles(request.cache / "console" / record.path.name) as logs:
        places = Places(logs, work)
        boots = [boot for launch in launches for boot in its.boots(launch, kernels, places)]
        taken = [*_measure(its, boots, at_once, record=record, reporter=reporter)]
    return Measured(
        rows=_as_run(request.experiment.rows, its.rows),
        samples=tuple(one.sample for one in taken),
        conditions=conditions(start, take_snapshot()),
        launches=len({boot.launch for boot in boots}),
        config_sha256=config_sha256(next(iter(kernels.values()))),
        options={"accel": its.setting.accel, "icount": any(at_once), "full": request.guest.full},
        unit=its.setting.unit,
        units={row.name: its.unit_of(row.name) for row in its.rows},
        count=count_facts(request),
        guest=_guest(its, kernels),
        remarks={
            row.name: tuple(its.remarks(row, [one.name for one in request.variants]))
            for row in its.rows
        },
        skipped={**its.skipped, **its.not_timed()},
        untouched=untouched,
    )


def _untouched(request: Request, kernels: Kernels, reporter: Reporter) -> dict[str, str]:
    """Given series that change no object of any of the kernels, and the reason to give."""
    trees = trees_of(request)
    found = [
        same_kernels({name: image for name, (image, _) in built.items()}, trees, reporter)
        for built in kernels.values()
    ]
    return left_out(found, request, reporter)


def by_reason(skipped: Mapping[str, str]) -> dict[str, list[str]]:
    """The names of rows that are not run, by the reason."""
    found: dict[str, list[str]] = {}
    for name, reason in skipped.items():
        found.setdefault(reason, []).append(name)
    return found


def _as_run(asked: Iterable[Row], ran: Iterable[Row]) -> tuple[Row, ...]:
    as_run = {row.name: row for row in ran}
    return tuple(as_run.get(row.name, row) for row in asked)


def _kernels(
    request: Request, tree: Tree, its: Guests[Row], *, work: Path, reporter: Reporter
) -> tuple[Kernels, tuple[Launch, ...]]:
    found: dict[tuple[str, ...], Mapping[str, Built]] = {}
    launches: tuple[Launch, ...] = ()
    for config in sorted(its.configs(), key=bool):
        place = work / ("-".join(config) or "plain")
        place.mkdir()
        found[config], launches = prepare(
            request,
            tree,
            its.setting,
            initramfs=its.initramfs,
            modules=its.modules,
            work=place,
            reporter=reporter,
            config=config,
            counts_repeat=its.counts_repeat,
        )
    return found, launches


def _measure(
    its: Guests[Row],
    boots: Sequence[Boot],
    at_once: Mapping[bool, int],
    *,
    record: RecordWriter,
    reporter: Reporter,
) -> Iterator[Taken]:
    """Run every boot; each sample is written to the record immediately.

    Guests that count run in parallel. Guests that are timed have the machine to themselves.
    """
    total = sum(boot.weight * (1 + boot.nr_events) for boot in boots)
    with reporter.measuring(total) as advance:
        for icount, together in sorted(at_once.items(), reverse=True):
            alike = [boot for boot in boots if boot.machine.icount == icount]
            for boot, said in replayed_boots(
                alike, at_once=together, journal=record.journal, reporter=reporter
            ):
                advance(boot.weight, boot.title)
                if said is None:
                    record.keep(f"consoles/{boot.log.name}", boot.log)
                    continue
                for one in its.taken(boot, said):
                    record.append(one.sample, one.extra)
                    yield one


def _guest(its: Guests[Row], kernels: Kernels) -> GuestFacts:
    kinds = its.kinds()
    return guest_of(
        its.setting,
        {name: kind.machine for name, kind in kinds.items()},
        {name: kind.command for name, kind in kinds.items()},
        {
            ", ".join((name, *config)): built
            for config, of_config in kernels.items()
            for name, built in of_config.items()
        },
    )
