# SPDX-License-Identifier: GPL-2.0-only
"""fork in the vm stage: one boot of each variant in every launch, in which all rows are done."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ream.errors import BadUsage, VerificationFailed
from ream.experiment import STRUCT_PAGE_BYTES, Fork, ForkRow
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
from ream.stage.vm_fork import ForkPlan, ForkSample, fork_initramfs, run_fork_boot


@dataclass(frozen=True)
class ForkBoot(Boot):
    """One boot, as planned."""

    plan: ForkPlan

    says = ForkSample

    @property
    def title(self) -> str:
        return f"{self.variant}, launch {self.launch + 1}"

    def run(self, begun: Callable[[Guest], None]) -> Iterator[ForkSample]:
        return run_fork_boot(
            self.machine, self.kernel, self.plan, append=self.append, log=self.log, begun=begun
        )


def plan_of(rows: Iterable[ForkRow], seed: int) -> ForkPlan:
    """What a boot does that gives these rows their samples; raises BadUsage if one cannot."""
    rows = tuple(rows)
    sizes, rounds = {row.mapping_bytes for row in rows}, {row.rounds for row in rows}
    if len(sizes) > 1 or len(rounds) > 1:
        raise BadUsage("the rows of one boot differ in mapping_bytes or rounds: run them apart")
    return ForkPlan(
        folio_kib=tuple(sorted({row.folio_bytes >> 10 for row in rows})),
        mapping_bytes=sizes.pop(),
        rounds=rounds.pop(),
        ops=tuple(dict.fromkeys(row.operation for row in rows)),
        seed=seed,
    )


def shown_command(setting: Setting, plan: ForkPlan) -> str:
    """Of a boot, as `guests.shown_boot` shows it."""
    return shown_boot(setting, setting.machine(plan), plan.init_words(), archive="fork.cpio")


def measure_fork_vm(
    request: Request, tree: Tree, *, work: Path, record: RecordWriter, reporter: Reporter
) -> Measured:
    """Build the kernels and boot them in turn; raises what building and booting raise."""
    assert isinstance(request.experiment, Fork)
    rows = request.experiment.rows
    setting = choose_setting(request.guest, request.cache)
    record.journal.agree("guests", str(setting))
    plan = plan_of(rows, request.seed)
    machine = setting.machine(plan)
    at_once = boots_at_once(setting, plan.mapping_bytes * 2)
    kernels, launches = prepare(
        request,
        tree,
        setting,
        initramfs=lambda image, init, place: fork_initramfs(image, init=init, work=place),
        modules=(),
        work=work,
        reporter=reporter,
    )
    start = take_snapshot()
    with consoles(request.cache / "console" / record.path.name) as logs:
        boots = plan_boots(
            launches, plan, machine, kernels, append=request.guest.append, consoles=logs
        )
        samples = _measure(boots, rows, at_once=at_once, record=record, reporter=reporter)
    return Measured(
        rows=rows,
        samples=samples,
        conditions=conditions(start, take_snapshot()),
        launches=len(launches),
        config_sha256=config_sha256(kernels),
        options={"accel": setting.accel, "icount": setting.icount},
        unit=setting.unit,
        guest=guest_of(setting, {"fork": machine}, {"fork": shown_command(setting, plan)}, kernels),
    )


def plan_boots(
    launches: Iterable[Launch],
    plan: ForkPlan,
    machine: Machine,
    kernels: Mapping[str, tuple[Image, Kernel]],
    *,
    append: tuple[str, ...],
    consoles: Path,
) -> list[ForkBoot]:
    """Every variant once in every launch, in the launch's random order."""
    return [
        ForkBoot(
            variant=variant,
            launch=launch.number,
            plan=plan,
            machine=machine,
            kernel=kernels[variant][1],
            append=append,
            log=consoles / f"{variant}-{launch.number}.log",
        )
        for launch in launches
        for variant in launch.link_order
    ]


def _measure(
    boots: Sequence[ForkBoot],
    rows: Sequence[ForkRow],
    *,
    at_once: int,
    record: RecordWriter,
    reporter: Reporter,
) -> tuple[Sample, ...]:
    """Run every boot; each sample is in the record as soon as it is known."""
    wanted = {(str(row.operation), row.folio_bytes >> 10): row for row in rows}
    samples: list[Sample] = []
    digests = Digests()
    plan = boots[0].plan
    total = len(boots) * (1 + len(plan.ops) * len(plan.folio_kib) * plan.rounds)
    with reporter.measuring(float(total)) as advance:
        for boot, said in kept_boots(
            boots, at_once=at_once, journal=record.journal, reporter=reporter
        ):
            if not isinstance(said, ForkSample):
                advance(1.0, boot.title)
                record.keep(f"consoles/{boot.log.name}", boot.log)
                continue
            advance(1.0, f"{boot.title}, {said.op} of {said.folio_kib} KiB")
            digests.check(boot.variant, said)
            if row := wanted.get((said.op, said.folio_kib)):
                sample = _sample_of(said, row, boot)
                record.append(sample, {"digest": said.digest})
                samples.append(sample)
    return tuple(samples)


class Digests:
    """What the parents and children of all variants share after fork, which must be the same."""

    def __init__(self) -> None:
        self._first: dict[tuple[int, int], tuple[str, str]] = {}

    def check(self, variant: str, said: ForkSample) -> None:
        """Raise VerificationFailed if another variant's fork left other pages."""
        if said.digest is None:
            return
        place = (said.folio_kib, said.round)
        other, digest = self._first.setdefault(place, (variant, said.digest))
        if digest != said.digest:
            raise VerificationFailed(
                f"fork over folios of {said.folio_kib} KiB, round {said.round}: flags, mapcounts"
                f" or contents of the pages are not the same with {variant} and {other}"
            )


def _sample_of(said: ForkSample, row: ForkRow, boot: ForkBoot) -> Sample:
    return Sample(
        row=row.name,
        launch=boot.launch,
        round=said.round,
        role="variant",
        subject=boot.variant,
        threads=boot.machine.cpus,
        time_ns=said.time_ns,
        nr_bytes=said.nr_ptes * STRUCT_PAGE_BYTES,
        verified=said.verified,
    )
