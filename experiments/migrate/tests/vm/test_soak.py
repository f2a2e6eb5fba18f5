# SPDX-License-Identifier: GPL-2.0-only
"""Debug kernels whose memory is moved while everything that can fail does, and much changes.

All boots together move more than 10 GiB. No byte may be wrong, and the kernel may not say a word.
"""

from collections.abc import Callable
from pathlib import Path

import pytest

from experiments.migrate.boot import ENGINE, MODULES, migrate_initramfs, run_soak_boot
from fixtures.guests import Builder
from races import RACE, races_of
from ream.errors import VerificationFailed
from ream.experiment import named
from ream.paths import EXPERIMENTS, KERNEL_MODULES
from ream.stage.initramfs import build_init
from ream.stage.qemu import GuestMachine, GuestNode
from ream.stage.vm import BootableKernel, Start

Soak = Callable[..., dict[str, int]]

SHIPPED = named("migrate").variants
PUBLISHED = SHIPPED["published"]
ALL = ("all",)
"""All patches, which include migrate's own series."""

GIB = 1 << 30
KERNELS = (
    (PUBLISHED, "vm", 1, 5 * GIB),
    (ALL, "vm", 1, 5 * GIB),
    (ALL, "vm-debug+vm-dma+vm-tiers", 8, GIB),
    (ALL, "vm-kcsan", 8, GIB),
)
"""Kernels, every how many faults of a kind, and the least to move. Instruments look at all patches
at once, since what is published is among them; and they are slow."""

SOAK_S = 60
MOST_FAULT = 64
"""The largest k for which migrate_soak.c injects a fault; it begins at 1."""

WRONG = Path(__file__).parent / "patches"

MACHINE = GuestMachine(
    "tcg", cpus=2, memory_bytes=3 * GIB, nodes=(GuestNode(2 * GIB, "0"), GuestNode(GIB, "1"))
)


OBJECTS = ("mm/migrate.o", "mm/migrate_copy_offload.o", "mm/rmap.o")
"""Kernel objects that the series change, without their modules."""


def name(part: str | int | tuple[str, ...]) -> str:
    return "+".join(part) if isinstance(part, tuple) else str(part)


@pytest.fixture(scope="module")
def soak(image: Builder, tmp_path_factory: pytest.TempPathFactory) -> Soak:
    """A function that boots a kernel, soaks it, and gives the totals."""
    init = build_init(tmp_path_factory.mktemp("init"), *EXPERIMENTS.glob("*"))

    def run(
        *series: str,
        config: str = "vm",
        nr_bytes: int,
        seconds: int = SOAK_S,
        seed: int = 1,
        step: int = 1,
    ) -> dict[str, int]:
        work = tmp_path_factory.mktemp("soak")
        built = image(*series, config=config, modules=[KERNEL_MODULES / ENGINE])
        kernel = BootableKernel(
            built.bootable, migrate_initramfs(built, init=init, work=work, soak=True)
        )
        words = (f"size={nr_bytes}", f"seconds={seconds}", f"seed={seed}", f"step={step}")
        log = work / "console.log"
        start = Start(MACHINE, kernel, log, begun=lambda guest: guest.overlook(RACE))
        totals = run_soak_boot(start, words)
        assert races_of(log, built, OBJECTS, MODULES) == set(), log
        return dict(totals)

    return run


@pytest.mark.parametrize(("series", "config", "step", "nr_bytes"), KERNELS, ids=name)
def test_whatever_fails_or_changes_no_byte_is_wrong(
    series: tuple[str, ...], config: str, step: int, nr_bytes: int, soak: Soak
) -> None:
    totals = soak(*series, config=config, step=step, nr_bytes=nr_bytes)
    assert totals["bytes"] >= nr_bytes
    for fault in ("fail_at", "short_at", "stall_at", "vanish_at", "reorder"):
        assert totals[fault] == MOST_FAULT // step
    assert totals["changes"] > SOAK_S
    assert totals["forks"] > 0
    assert totals["dcbm"] > 0
    assert (totals["mtcopy"] > 0) == (series == ALL)


def test_the_base_moves_as_well(soak: Soak) -> None:
    totals = soak(nr_bytes=GIB // 4, seconds=5)
    assert totals["bytes"] >= GIB // 4
    assert totals["fail_at"] == 0, "there is nothing that can fail"


def test_a_wrong_byte_is_seen(soak: Soak) -> None:
    with pytest.raises(VerificationFailed, match="soak.*memory is not as it must be"):
        soak(str(WRONG / "migrate-short.patch"), nr_bytes=GIB, seconds=5)
