# SPDX-License-Identifier: GPL-2.0-only
"""Huge pages made in a guest's second node by every kernel, with every copier, busy or not."""

from collections.abc import Callable
from pathlib import Path

import pytest

from experiments.compact.boot import (
    OWN_MODULES,
    CompactPlan,
    CompactSample,
    Mode,
    compact_initramfs,
    compact_nodes,
    run_compact_boot,
)
from fixtures.guests import Builder
from ream.errors import CannotRunHere, ReamError, VerificationFailed
from ream.experiment import named
from ream.paths import EXPERIMENTS, KERNEL_MODULES
from ream.stage.guest import Guest
from ream.stage.initramfs import build_init
from ream.stage.qemu import GuestMachine
from ream.stage.vm import BootableKernel, Start

Boot = Callable[..., CompactSample]

BASE: tuple[str, ...] = ()
SHIPPED = named("compact").variants
PUBLISHED, REAM = SHIPPED["published"], SHIPPED["ream"]
VARIANTS = (BASE, PUBLISHED, REAM)

WRONG = Path(__file__).parent / "patches"
ALL = "all"
DEBUG = "vm-debug+vm-dma+vm-tiers"

NODE_BYTES = 512 << 20
NR_HUGE = 64
PAGES_EACH = 512
LEAST_MOVED = PAGES_EACH // 2 * 7 // 8
"""Least pages to move for a huge page: half a block's, less what other blocks save it."""

NR_HELD = 8
"""Large folios that can neither be moved nor split, each in a block of its own."""

MODES: tuple[Mode, ...] = ("baseline", "dma", "busy-baseline", "busy-dma")
FAULTS = (
    "fault=stall_ms:20,fail_at:3,short_at:40,stall_at:100,reorder:1",
    "fault=fail_at:1,vanish_at:200",
    "fault=stall_at:64",
    "fault=drop_at:64",
)
"""Faults of swdma, one boot each. dcbm ends an endless stall, or the wait for a callback that never
comes, and does not use the channel again."""


def plan(mode: Mode, channels: int = 1, nr_huge: int = NR_HUGE, **other: object) -> CompactPlan:
    channels = channels if mode.endswith("dma") else 0
    return CompactPlan(mode, nr_huge, 0, NODE_BYTES, channels, **other)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def boot(image: Builder, tmp_path_factory: pytest.TempPathFactory) -> Boot:
    """A function that boots a kernel of some series and gives the sample of a plan."""
    init = build_init(tmp_path_factory.mktemp("init"), *EXPERIMENTS.glob("*"))
    made: dict[tuple[tuple[str, ...], str], BootableKernel] = {}

    def kernel(series: tuple[str, ...], config: str) -> BootableKernel:
        if (series, config) not in made:
            work = tmp_path_factory.mktemp("kernel")
            modules = [KERNEL_MODULES / name for name in OWN_MODULES]
            built = image(*series, config=config, modules=modules)
            archive = compact_initramfs(built, init=init, work=work)
            made[series, config] = BootableKernel(built.bootable, archive)
        return made[series, config]

    def run(
        *series: str,
        plan: CompactPlan,
        config: str = "vm",
        begun: Callable[[Guest], None] = lambda _guest: None,
    ) -> CompactSample:
        cpus = 2 if plan.busy else 1
        machine = GuestMachine(
            "tcg",
            icount=not plan.busy,
            cpus=cpus,
            memory_bytes=plan.least_bytes,
            nodes=compact_nodes(cpus, plan),
        )
        log = tmp_path_factory.mktemp("boot") / "console.log"
        return run_compact_boot(Start(machine, kernel(series, config), log, begun=begun), plan)

    return run


# --- Huge pages ------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("series", VARIANTS, ids="+".join)
def test_huge_pages_are_made_of_what_is_in_use(
    series: tuple[str, ...], mode: Mode, boot: Boot
) -> None:
    """The boot itself has checked that no word and no counter is wrong."""
    if series == BASE and mode.endswith("dma"):
        with pytest.raises(ReamError, match="open /modules/dcbm.ko"):
            boot(plan=plan(mode))
        return
    said = boot(*series, plan=plan(mode))
    assert said.allocated == said.asked == NR_HUGE
    assert said.counters["pgmigrate_success"] >= LEAST_MOVED * NR_HUGE
    assert 0 < said.longest_ns <= said.time_ns
    assert 0 < said.page_copy_ns < said.time_ns
    assert said.ballast > 0, "there are free huge pages that the kernel keeps for itself"
    if mode.startswith("busy"):
        assert said.hog_iterations is not None
        assert said.hog_iterations > 0
        assert said.user_ns > 0
        assert said.system_ns > 0
    else:
        assert said.hog_iterations is None
        assert said.user_ns == 0
        assert said.system_ns == pytest.approx(said.time_ns, rel=0.1)
    copied = said.counters.get("dcbm_folios_migrated", 0)
    assert (copied > 0) == mode.endswith("dma")


@pytest.mark.parametrize("channels", [1, 4])
@pytest.mark.parametrize("series", [PUBLISHED, REAM], ids="+".join)
def test_an_engine_that_is_told_to_copies_every_page(
    series: tuple[str, ...], channels: int, boot: Boot
) -> None:
    words = () if series == PUBLISHED else ("adaptive=0",)
    counters = boot(*series, plan=plan("dma", channels, words=words)).counters
    assert counters["dcbm_folios_migrated"] == counters["pgmigrate_success"]
    assert counters["swdma_descriptors"] == counters["pgmigrate_success"]
    assert counters["dcbm_folios_failures"] == counters["swdma_faults"] == 0


@pytest.mark.parametrize("faults", FAULTS)
@pytest.mark.parametrize("series", [PUBLISHED, REAM], ids="+".join)
def test_an_engine_that_fails_costs_no_page(
    series: tuple[str, ...], faults: str, boot: Boot
) -> None:
    words = (faults,) if series == PUBLISHED else (faults, "adaptive=0")
    said = boot(*series, plan=plan("dma", 2, words=words))
    assert said.allocated == NR_HUGE
    assert said.counters["swdma_faults"] > 0
    assert said.counters["dcbm_folios_failures"] > 0


def test_large_folios_in_the_way_fail_requests_of_before_but_not_of_ream(boot: Boot) -> None:
    """A large folio finds no free page of its size, and a reference prevents its split."""
    held = plan("baseline", words=(f"held={NR_HELD}",))
    before, ream = (boot(*series, plan=held).counters["compact_fail"] for series in (BASE, REAM))
    assert before >= NR_HELD
    assert ream == 0


@pytest.mark.parametrize("series", VARIANTS, ids="+".join)
def test_holes_may_be_scattered(series: tuple[str, ...], boot: Boot) -> None:
    said = boot(*series, plan=plan("baseline", words=("scattered=1",)))
    assert said.allocated == NR_HUGE


def test_two_boots_count_the_same(boot: Boot) -> None:
    first, second = (boot(plan=plan("baseline")) for _ in range(2))
    assert second.time_ns == pytest.approx(first.time_ns, rel=0.01)
    assert second.counters["pgmigrate_success"] == pytest.approx(
        first.counters["pgmigrate_success"], rel=0.01
    )


# --- The law ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "free"),
    [(("hole=2",), 1 / 2), (("hole=4",), 1 / 4), (("hole=4", "few_used=1"), 3 / 4)],
)
@pytest.mark.parametrize("series", VARIANTS, ids="+".join)
def test_a_whole_pass_moves_what_lies_below_the_point_where_scanners_meet(
    series: tuple[str, ...], words: tuple[str, ...], free: float, boot: Boot
) -> None:
    """A share of the pages of a zone of Z pages is free. Pages in use below some point x fill the
    free ones above it, so that x (1 - free) = (Z - x) free, and x = Z free: of R pages in use,
    R free are moved."""
    said = boot(*series, plan=plan("law", nr_huge=0, words=words))
    assert said.counters["pgmigrate_success"] == pytest.approx(said.resident_pages * free, rel=0.03)
    assert said.allocated == said.asked == said.counters["compact_stall"] == 0
    assert said.time_ns > 0


def test_a_huge_page_of_memory_that_is_used_to_a_quarter_moves_a_quarter(boot: Boot) -> None:
    asked = plan("baseline", words=("hole=4", "few_used=1", "scattered=1"))
    assert boot(*REAM, plan=asked).counters["pgmigrate_success"] == pytest.approx(
        asked.nr_huge * 512 / 4, rel=0.03
    )


# --- What must not be -------------------------------------------------------------------


def test_a_page_that_is_not_copied_is_seen(boot: Boot) -> None:
    with pytest.raises(VerificationFailed, match="words are not as they were written"):
        boot(str(WRONG / "compact-zeroes.patch"), plan=plan("baseline"))


def test_one_word_that_is_changed_is_seen(boot: Boot) -> None:
    with pytest.raises(VerificationFailed, match="baseline.*: 1 words are not as"):
        boot(plan=plan("baseline", words=("poke=1",)))


def test_a_node_that_is_too_small_is_told(boot: Boot) -> None:
    large = CompactPlan("baseline", NR_HUGE, 2 * NODE_BYTES, NODE_BYTES)
    with pytest.raises(CannotRunHere, match="fragment.*this guest cannot"):
        boot(plan=large)


def test_a_guest_that_is_killed_is_told(boot: Boot) -> None:
    with pytest.raises(ReamError, match="QEMU was killed by SIGKILL"):
        boot(plan=plan("baseline"), begun=Guest.kill)


# --- Instruments -----------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
def test_a_debug_kernel_has_nothing_to_say(mode: Mode, boot: Boot) -> None:
    """KASAN, lockdep, and what checks the mappings of DMA; all of ream, in the soak's kernel."""
    said = boot(ALL, plan=plan(mode, nr_huge=8), config=DEBUG)
    assert said.allocated == 8


@pytest.mark.parametrize("faults", FAULTS)
def test_a_debug_kernel_has_nothing_to_say_of_faults(faults: str, boot: Boot) -> None:
    words = (faults, "adaptive=0")
    said = boot(ALL, plan=plan("dma", 2, nr_huge=8, words=words), config=DEBUG)
    assert said.allocated == 8
    assert said.counters["swdma_faults"] > 0
