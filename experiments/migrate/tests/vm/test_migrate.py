# SPDX-License-Identifier: GPL-2.0-only
"""Memory moved between two nodes of a guest by every kernel, every path and every copier."""

import subprocess
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from experiments.migrate.boot import (
    ENGINE,
    MigratePlan,
    MigrateSample,
    Step,
    migrate_initramfs,
    run_migrate_boot,
    two_nodes,
)
from fixtures.guests import Builder
from ream.errors import CannotRunHere, VerificationFailed
from ream.experiment import named
from ream.paths import EXPERIMENTS, KERNEL_MODULES
from ream.stage.initramfs import build_init
from ream.stage.pmem import pmem_word
from ream.stage.qemu import GuestMachine, GuestNode
from ream.stage.selftests import SELFTESTS, differences, read_selftests, run_selftests
from ream.stage.vm import BootableKernel, Start

Boots = Callable[..., list[tuple[Step, MigrateSample]]]

BASE: tuple[str, ...] = ()
SHIPPED = named("migrate").variants
PUBLISHED, REAM = SHIPPED["published"], SHIPPED["ream"]
VARIANTS = (BASE, PUBLISHED, REAM)

WRONG = Path(__file__).parent / "patches"
LIST = read_selftests(SELFTESTS / "migrate.list")
GIB = 1 << 30

SIZES = (4, 16, 64, 256, 1024, 2048)
SERIAL = MigratePlan(tuple(Step(kib) for kib in SIZES), buffer_bytes=32 << 20, rounds=2)
DMA = replace(SERIAL, steps=tuple(Step(kib, "dcbm", nr) for kib in (4, 64, 2048) for nr in (1, 4)))
THREADS = replace(SERIAL, steps=tuple(Step(kib, "mtcopy", 2) for kib in (4, 64, 2048)))
ONCE = MigratePlan((Step(4), Step(64), Step(2048)), buffer_bytes=16 << 20, rounds=0)
"""Plan for a path that only has to work."""

TIER_BYTES = GIB


TIERS = "vm-debug+vm-dma+vm-tiers"
"""The debug kernel of the soak as well: one build for both, with all patches."""


@pytest.fixture(scope="module")
def moves(image: Builder, tmp_path_factory: pytest.TempPathFactory) -> Boots:
    """A function that boots a kernel of some series and gives the samples of a plan."""
    init = build_init(tmp_path_factory.mktemp("init"), *EXPERIMENTS.glob("*"))
    made: dict[tuple[tuple[str, ...], str], BootableKernel] = {}

    def kernel(series: tuple[str, ...], config: str) -> BootableKernel:
        if (series, config) not in made:
            work = tmp_path_factory.mktemp("kernel")
            built = image(*series, config=config, modules=[KERNEL_MODULES / ENGINE])
            archive = migrate_initramfs(built, init=init, work=work, namespaces=config == TIERS)
            made[series, config] = BootableKernel(built.bootable, archive)
        return made[series, config]

    def run(
        *series: str,
        plan: MigratePlan = SERIAL,
        config: str = "vm",
        machine: GuestMachine | None = None,
        append: tuple[str, ...] = (),
    ) -> list[tuple[Step, MigrateSample]]:
        counting = GuestMachine(
            "tcg", icount=True, memory_bytes=plan.least_bytes, nodes=two_nodes(1, plan)
        )
        log = tmp_path_factory.mktemp("boot") / "console.log"
        start = Start(machine or counting, kernel(series, config), log, append)
        boot = run_migrate_boot(start, plan)
        return [(plan.steps[number], said) for number, said in boot]

    return run


@pytest.fixture(scope="module")
def base(moves: Boots) -> list[tuple[Step, MigrateSample]]:
    return moves()


def best(samples: list[tuple[Step, MigrateSample]]) -> dict[Step, int]:
    """The fewest instructions of a move, by step; the first costs more."""
    found: dict[Step, int] = {}
    for step, said in samples:
        found[step] = min(said.time_ns, found.get(step, said.time_ns))
    return found


# --- move_pages(2) ---------------------------------------------------------------------


def test_every_size_is_moved_whole_by_the_base(base: list[tuple[Step, MigrateSample]]) -> None:
    assert [step.folio_kib for step, _ in base] == [kib for kib in SIZES for _ in range(3)]
    for step, said in base:
        assert said.nr_folios == said.nr_arrived == SERIAL.buffer_bytes // (step.folio_kib << 10)
        assert said.counters["pgmigrate_success"] == SERIAL.buffer_bytes >> 12
        assert said.counters["pgmigrate_fail"] == said.counters["thp_migration_split"] == 0
        assert said.counters["thp_migration_success"] == (16 if step.folio_kib == 2048 else 0)


def test_two_boots_count_nearly_the_same(
    moves: Boots, base: list[tuple[Step, MigrateSample]]
) -> None:
    assert best(moves()) == pytest.approx(best(base), rel=0.01)


@pytest.mark.parametrize("series", [PUBLISHED, REAM], ids="+".join)
def test_with_offloading_off_a_series_costs_nothing(
    series: tuple[str, ...], moves: Boots, base: list[tuple[Step, MigrateSample]]
) -> None:
    without, with_it = best(base), best(moves(*series))
    assert without.keys() == with_it.keys()
    for step, count in with_it.items():
        assert count < 1.01 * without[step], step


@pytest.mark.parametrize("series", [PUBLISHED, REAM], ids="+".join)
def test_the_engine_copies_what_is_moved(series: tuple[str, ...], moves: Boots) -> None:
    """All of it, if the series that weighs costs is told not to; large folios then in parts."""
    whole = series == PUBLISHED
    words = () if whole else ("adaptive=0",)
    for step, said in moves(*series, plan=replace(DMA, words=words)):
        assert said.counters["dcbm_folios_failures"] == said.counters["swdma_faults"] == 0
        assert said.counters["dcbm_folios_migrated"] == said.nr_folios, step
        assert said.counters["swdma_bytes"] == said.nr_bytes, step
        # A huge folio is a batch; the next one waits in the queues of the same channels.
        parts = 1 if whole or step.folio_kib <= 64 else step.parts
        assert said.counters["swdma_descriptors"] == parts * said.nr_folios, step


@pytest.mark.parametrize("channels", [4, 12])
def test_a_batch_that_is_alone_has_every_channel(channels: int, moves: Boots) -> None:
    """Nothing is unmapped or moved meanwhile that would leave channels to another batch.

    Of 2 MiB twelve channels get 43 pages each, the last fewer, and none is left over.
    """
    plan = replace(
        DMA, steps=(Step(2048, "dcbm", channels),), buffer_bytes=2 << 20, words=("adaptive=0",)
    )
    for _, said in moves(*REAM, plan=plan):
        assert said.nr_folios == said.counters["dcbm_folios_migrated"] == 1
        assert said.counters["swdma_descriptors"] == channels


def test_a_small_folio_is_cut_where_the_share_of_a_channel_ends(moves: Boots) -> None:
    channels, batch_bytes = 12, 2 << 20
    plan = replace(DMA, steps=(Step(16, "dcbm", channels),), words=("adaptive=0",))
    for _, said in moves(*REAM, plan=plan):
        assert said.counters["dcbm_folios_migrated"] == said.nr_folios
        assert said.counters["swdma_bytes"] == said.nr_bytes
        cuts = said.counters["swdma_descriptors"] - said.nr_folios
        assert 0 < cuts <= (channels - 1) * said.nr_bytes // batch_bytes


def test_whoever_is_quicker_copies_what_is_moved(moves: Boots) -> None:
    """An engine that runs on the same CPU is not quicker, but the kernel tries it."""
    samples = moves(*REAM, plan=DMA)
    for step, said in samples:
        assert said.counters["dcbm_folios_failures"] == said.counters["swdma_faults"] == 0
        assert said.counters["dcbm_folios_migrated"] <= said.nr_folios, step
        assert said.counters["swdma_bytes"] <= said.nr_bytes, step
    assert sum(said.counters["swdma_bytes"] for _, said in samples) > 0


def test_threads_copy_what_is_moved(moves: Boots) -> None:
    copied = {step: said.counters["mtcopy_folios_migrated"] for step, said in
              moves(*REAM, plan=THREADS)}  # fmt: skip
    assert copied[Step(2048, "mtcopy", 2)] == 16


def test_a_distributions_kernel_copies_past_the_caches_whole(image: Builder, moves: Boots) -> None:
    """Machine checks are handled there, so a copier may find poisoned memory."""
    built = image("all", config="vm-distro", modules=[KERNEL_MODULES / ENGINE])
    listed = subprocess.run(
        ["nm", "-u", built.config.parent / "mm/migrate.o"],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    # Not called where migrate_can_stream() is false.
    assert "folios_mc_stream" in listed.stdout
    for plan in (SERIAL, THREADS):
        samples = moves("all", plan=plan, config="vm-distro")
        assert {step for step, _ in samples} == set(plan.steps)
        assert all(said.nr_folios == said.nr_arrived for _, said in samples)
    assert any(said.counters["mtcopy_folios_migrated"] for _, said in samples)


def test_the_base_splits_large_folios_when_it_moves_them_again(moves: Boots) -> None:
    """Each round of the experiment therefore has its own buffer. Reason: move_folios.c."""
    again = replace(SERIAL, steps=(Step(4), Step(2048)), words=("back=1",))
    assert [said.source for _, said in moves(plan=again)] == [0, 1, 0] * 2
    with pytest.raises(VerificationFailed, match="64/none/0"):
        moves(plan=replace(again, steps=(Step(64),)))


def test_a_folio_whose_last_page_is_not_copied_is_seen(moves: Boots) -> None:
    with pytest.raises(VerificationFailed, match="64/none/0.*memory is not as it must be"):
        moves(str(WRONG / "migrate-short.patch"), plan=replace(ONCE, steps=(Step(64),)))


# --- Other ways ------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["mbind", "migrate_pages"])
@pytest.mark.parametrize("series", VARIANTS, ids="+".join)
def test_memory_moves_by_other_system_calls(
    series: tuple[str, ...], path: str, moves: Boots
) -> None:
    steps = tuple(replace(step, provider="dcbm", parts=2) for step in ONCE.steps if series)
    samples = moves(*series, plan=replace(ONCE, path=path, steps=(*ONCE.steps, *steps)))
    assert {said.op for _, said in samples} == {path}
    for step, said in samples:
        if series == PUBLISHED and step.provider == "dcbm":
            assert said.counters["dcbm_folios_migrated"] >= said.nr_folios


@pytest.mark.parametrize(("path", "copied"), [("move_pages", False), ("mbind", True)])
def test_an_engine_copies_for_those_it_is_told(path: str, copied: bool, moves: Boots) -> None:
    words = ("reasons=mempolicy_mbind",)
    plan = replace(ONCE, path=path, steps=(Step(64, "dcbm", 2),), words=words)
    for step, said in moves(*PUBLISHED, plan=plan):
        by_engine = said.counters["dcbm_folios_migrated"]
        assert (by_engine >= said.nr_folios) if copied else (by_engine == 0), step


TWO_CPUS = (GuestNode(GIB, "0"), GuestNode(GIB, "1"))
ALSO_BY_ENGINE = (*ONCE.steps, Step(4, "dcbm", 2), Step(64, "dcbm", 2))


def test_numa_balancing_moves_memory_to_who_reads_it(moves: Boots) -> None:
    words = ("balancing=1", "reasons=numa_misplaced", "adaptive=0")
    plan = replace(ONCE, path="numa_balancing", steps=ALSO_BY_ENGINE, words=words)
    machine = GuestMachine("tcg", cpus=2, memory_bytes=2 * GIB, nodes=TWO_CPUS)
    for step, said in moves(*REAM, plan=plan, config=TIERS, machine=machine):
        assert said.counters["numa_pages_migrated"] > 0
        assert said.counters.get("dcbm_folios_migrated", 0) > 0 or step.provider == "none"
        assert said.nr_arrived > 0


def test_reclaim_demotes_memory_to_a_lower_tier(moves: Boots) -> None:
    """Node 2 is pmem that kmem makes memory; all of it lies where pmem_word() says."""
    nodes = (GuestNode(GIB, "0"), GuestNode(GIB), GuestNode(TIER_BYTES))
    machine = GuestMachine("tcg", memory_bytes=2 * GIB + TIER_BYTES, nodes=nodes)
    words = ("tier=1", "reasons=demotion", "adaptive=0")
    plan = replace(ONCE, path="demotion", steps=ALSO_BY_ENGINE, target=2, words=words)
    samples = moves(
        *REAM,
        plan=plan,
        config=TIERS,
        machine=machine,
        append=(pmem_word(TIER_BYTES),),
    )
    for step, said in samples:
        demoted = said.counters["pgdemote_kswapd"] + said.counters["pgdemote_direct"]
        assert said.nr_arrived > 0
        assert demoted > 0
        assert said.counters.get("dcbm_folios_migrated", 0) > 0 or step.provider == "none"


@pytest.mark.parametrize(("path", "words"), [("numa_balancing", ()), ("demotion", ())])
def test_a_way_that_a_kernel_has_not_is_told(
    path: str, words: tuple[str, ...], moves: Boots
) -> None:
    with pytest.raises(CannotRunHere, match="this guest cannot"):
        moves(plan=replace(ONCE, path=path, words=words))


# --- The kernel's own tests ------------------------------------------------------------

MACHINE = GuestMachine(
    "tcg", cpus=3, memory_bytes=8 * GIB, nodes=(GuestNode(5 * GIB, "0-1"), GuestNode(3 * GIB, "2"))
)


@pytest.fixture(scope="module")
def on_base(image: Builder, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    work = tmp_path_factory.mktemp("base")
    return run_selftests(MACHINE, image(), LIST, work=work, log=work / "console.log")


@pytest.mark.parametrize("series", [PUBLISHED, REAM], ids="+".join)
def test_the_kernels_own_tests_give_the_same_results(
    series: tuple[str, ...], on_base: Mapping[str, str], image: Builder, tmp_path: Path
) -> None:
    built = image(*series)
    found = run_selftests(MACHINE, built, LIST, work=tmp_path, log=tmp_path / "console.log")
    assert differences(on_base, found, LIST) == ()
    assert sum(name.startswith("migration.") for name in found) == 6
