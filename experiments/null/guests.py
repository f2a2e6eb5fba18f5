# SPDX-License-Identifier: GPL-2.0-only
"""null in the vm stage: the same program, in a guest of each variant."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ream.count.guest import Counted, with_counts
from ream.kernel.image import Image
from ream.measure.plan import Launch
from ream.measure.taken import Taken
from ream.session.guests import shown_boot
from ream.session.request import GuestOptions
from ream.session.vm import Choose, Guests, Kernels, Kind, Places
from ream.stage.boots import Boot
from ream.stage.initramfs import guest_initramfs
from ream.stage.vm import Start
from ream.stage.workload import build_workload
from ream.values import Value

from .live import GETPPID, sample_of
from .rows import NullRow

GUEST_BYTES = 256 << 20
DEADLINE_S = 600.0
SILENCE_S = 120.0


class NullSaid(Value):
    """One round, as the program says it, and what the kernel did in it."""

    round: dict[str, int | bool]
    counted: Counted | None = None


@dataclass(frozen=True)
class NullBoot(Boot):
    """One boot, for one row."""

    row: NullRow

    says = NullSaid

    @property
    def nr_events(self) -> int:
        return self.row.rounds

    @property
    def what(self) -> str:
        return f"{self.row.name}, {self.variant}"

    def run(self, start: Start) -> Iterator[NullSaid]:
        words = words_of(self.row)
        for message in start.messages(words, deadline_s=DEADLINE_S, silence_s=SILENCE_S):
            if "round" in (said := message.get("null", {})):
                yield NullSaid(round=dict(said), counted=start.counted(said["window"]))


def words_of(row: NullRow) -> tuple[str, ...]:
    """What PID 1 is told; guest.c reads it."""
    return ("experiment=null", f"calls={row.size}", f"rounds={row.rounds}")


class NullGuests(Guests[NullRow]):
    """A kind of guest for each row."""

    programs = (GETPPID,)
    names_windows = True

    def __init__(
        self, rows: Sequence[NullRow], options: GuestOptions, seed: int, choose: Choose
    ) -> None:
        del seed
        self.rows, self.skipped = tuple(rows), dict[str, str]()
        self.setting = choose(options)
        self.machine = self.setting.machine_of(GUEST_BYTES)

    @staticmethod
    def initramfs(image: Image, init: Path, work: Path) -> Path:
        programs = {"/workloads/getppid": build_workload(GETPPID, work)}
        return guest_initramfs(image, "null", init=init, work=work, programs=programs)

    def kinds(self) -> Mapping[str, Kind]:
        shown = (
            (row, shown_boot(self.setting, self.machine, words_of(row), archive="null.cpio"))
            for row in self.rows
        )
        return {row.name: Kind(self.machine, command) for row, command in shown}

    def touched_bytes(self) -> Mapping[bool, int]:
        return {self.setting.icount: GUEST_BYTES}

    def boots(self, launch: Launch, kernels: Kernels, places: Places) -> Iterator[NullBoot]:
        for row in self.rows:
            for variant in launch.link_order:
                yield NullBoot(
                    variant=variant,
                    launch=launch.number,
                    machine=self.machine,
                    kernel=kernels[()][variant][1],
                    append=self.setting.options.append,
                    log=places.consoles / f"{row.name}-{variant}-{launch.number}.log",
                    row=row,
                )

    def taken(self, boot: Boot, said: object) -> Iterator[Taken]:
        assert isinstance(boot, NullBoot)
        assert isinstance(said, NullSaid)
        sample = sample_of(said.round, boot.row, boot.launch, boot.variant)
        yield Taken(with_counts(sample, said.counted))


GUESTS = NullGuests
