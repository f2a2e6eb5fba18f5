# SPDX-License-Identifier: GPL-2.0-only
"""fork in the vm stage: one boot of each variant in every launch, in which all rows are done."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ream.count.guest import with_counts
from ream.errors import BadUsage, VerificationFailed
from ream.experiment import STRUCT_PAGE_BYTES
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

from .boot import ForkPlan, ForkSample, fork_initramfs, run_fork_boot
from .programs import FORK_FOLIOS
from .rows import ForkRow


@dataclass(frozen=True)
class ForkBoot(Boot):
    """One boot, as planned."""

    plan: ForkPlan

    says = ForkSample

    @property
    def nr_events(self) -> int:
        return len(self.plan.ops) * len(self.plan.folio_kib) * self.plan.rounds

    def run(self, start: Start) -> Iterator[ForkSample]:
        return run_fork_boot(start, self.plan)


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


class ForkGuests(Guests[ForkRow]):
    """Guests that do all rows, one after another."""

    programs = (FORK_FOLIOS,)
    names_windows = True
    arches = (X86_64.name, ARM64.name)

    def __init__(
        self, rows: Sequence[ForkRow], options: GuestOptions, seed: int, choose: Choose
    ) -> None:
        self.rows = tuple(rows)
        self.skipped: Mapping[str, str] = {}
        self.plan = plan_of(rows, seed)
        self.setting = choose(options)
        self._wanted = {(str(row.operation), row.folio_bytes >> 10): row for row in rows}
        self._digests = Digests()

    @staticmethod
    def initramfs(image: Image, init: Path, work: Path) -> Path:
        return fork_initramfs(image, init=init, work=work)

    def kinds(self) -> Mapping[str, Kind]:
        machine = self.setting.machine(self.plan)
        command = shown_boot(self.setting, machine, self.plan.init_words(), archive="fork.cpio")
        return {self.plan.name: Kind(machine, command)}

    def touched_bytes(self) -> Mapping[bool, int]:
        return {self.setting.icount: self.plan.mapping_bytes * 2}

    def boots(self, launch: Launch, kernels: Kernels, places: Places) -> Iterator[ForkBoot]:
        for variant in launch.link_order:
            yield ForkBoot(
                variant=variant,
                launch=launch.number,
                machine=self.setting.machine(self.plan),
                kernel=kernels[()][variant][1],
                append=self.setting.options.append,
                log=places.consoles / f"{variant}-{launch.number}.log",
                plan=self.plan,
            )

    def taken(self, boot: Boot, said: object) -> Iterator[Taken]:
        assert isinstance(said, ForkSample)
        self._digests.check(boot.variant, said)
        if row := self._wanted.get((said.op, said.folio_kib)):
            sample = with_counts(_sample_of(said, row, boot), said.counted)
            yield Taken(sample, {"digest": said.digest})


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


def _sample_of(said: ForkSample, row: ForkRow, boot: Boot) -> Sample:
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


GUESTS = ForkGuests
