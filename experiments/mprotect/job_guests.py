# SPDX-License-Identifier: GPL-2.0-only
"""Guests that do all jobs of an experiment: one boot of each variant in every launch.

mremap uses this as well.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from ream.count.guest import with_counts
from ream.errors import BadUsage, VerificationFailed
from ream.experiment.shape import STRUCT_PAGE_BYTES, RowBase
from ream.kernel.arch import ARM64, X86_64
from ream.kernel.image import Image
from ream.measure.plan import Launch
from ream.measure.sample import Sample
from ream.measure.taken import Taken
from ream.session.guests import shown_boot
from ream.session.request import GuestOptions
from ream.session.vm import Choose, Guests, Kernels, Kind, Places
from ream.stage.boots import Boot
from ream.stage.vm import Start

from .boot import JobPlan, job_initramfs, run_job_boot
from .job_live import JobRows
from .jobs import JobSample, jobs_of

R = TypeVar("R", bound=RowBase)


@dataclass(frozen=True)
class JobBoot(Boot):
    """One boot, as planned."""

    plan: JobPlan

    says = JobSample

    @property
    def nr_events(self) -> int:
        return sum(len(job.ops) for job in self.plan.jobs) * self.plan.rounds

    def run(self, start: Start) -> Iterator[JobSample]:
        return run_job_boot(start, self.plan)


class JobGuests(Guests[R]):
    """Guests that do all rows, one after another."""

    names_windows = True
    arches = (X86_64.name, ARM64.name)
    experiment: ClassVar[str]
    its: ClassVar[JobRows[Any]]
    """The experiment's rows as jobs."""

    def __init__(self, rows: Sequence[R], options: GuestOptions, seed: int, choose: Choose) -> None:
        self.rows = tuple(rows)
        self.skipped: Mapping[str, str] = {}
        if len({row.rounds for row in rows}) > 1:
            raise BadUsage("the rows of one boot differ in rounds: run them apart")
        jobs = {row.name: self.its.job_of(row, 0) for row in rows}
        self.plan = JobPlan(self.experiment, jobs_of(jobs.values()), rows[0].rounds, seed)
        self.setting = choose(options)
        self._wanted = {(jobs[row.name].name, self.its.operation_of(row)): row for row in rows}
        self._faults: dict[tuple[str, str, int], tuple[str, int | None]] = {}
        self._dirt: dict[tuple[str, str], tuple[int, int]] = {}

    @classmethod
    def initramfs(cls, image: Image, init: Path, work: Path) -> Path:
        return job_initramfs(cls.its.program, cls.experiment, image, init=init, work=work)

    def kinds(self) -> Mapping[str, Kind]:
        machine = self.setting.machine(self.plan)
        archive = f"{self.experiment}.cpio"
        command = shown_boot(self.setting, machine, self.plan.init_words(), archive=archive)
        return {self.plan.name: Kind(machine, command)}

    def touched_bytes(self) -> Mapping[bool, int]:
        return {self.setting.icount: self.plan.mapping_bytes * 2}

    def boots(self, launch: Launch, kernels: Kernels, places: Places) -> Iterator[JobBoot]:
        for variant in launch.link_order:
            yield JobBoot(
                variant=variant,
                launch=launch.number,
                machine=self.setting.machine(self.plan),
                kernel=kernels[()][variant][1],
                append=self.setting.options.append,
                log=places.consoles / f"{variant}-{launch.number}.log",
                plan=self.plan,
            )

    def taken(self, boot: Boot, said: object) -> Iterator[Taken]:
        assert isinstance(said, JobSample)
        self._check(boot.variant, said)
        if row := self._wanted.get((said.run, said.op)):
            if said.soft_dirtied is not None:
                self._dirt[row.name, boot.variant] = (said.soft_dirtied, said.nr_ptes)
            yield Taken(with_counts(_sample_of(said, row.name, boot), said.counted), said=said)

    def remarks(self, row: R, names: Sequence[str]) -> Iterator[str]:
        its = ((name, self._dirt.get((row.name, name), (0, 0))) for name in names)
        if found := [f"{name} {dirt} of {pages}" for name, (dirt, pages) in its if dirt]:
            yield f"soft-dirty pages afterwards, to which nobody wrote: {', '.join(found)}"

    def _check(self, variant: str, said: JobSample) -> None:
        """Raise VerificationFailed if pages are not writable as with other variants."""
        place = (said.run, said.op, said.round)
        other, faults = self._faults.setdefault(place, (variant, said.write_faults))
        if faults != said.write_faults:
            raise VerificationFailed(
                f"{said.run}, {said.op}, round {said.round}: afterwards writing took"
                f" {said.write_faults} faults with {variant}, and {faults} with {other}"
            )


def _sample_of(said: JobSample, row: str, boot: Boot) -> Sample:
    return Sample(
        row=row,
        launch=boot.launch,
        round=said.round,
        role="variant",
        subject=boot.variant,
        threads=boot.machine.cpus,
        time_ns=said.time_ns,
        nr_bytes=said.nr_ptes * STRUCT_PAGE_BYTES,
        verified=said.verified,
    )
