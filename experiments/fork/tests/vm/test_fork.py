# SPDX-License-Identifier: GPL-2.0-only
"""fork() and unmapping with and without PTE batching: the same memory, by another way."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from experiments.fork.boot import ForkPlan, ForkSample, fork_initramfs, run_fork_boot
from fixtures.guests import Builder
from races import RACE, races_of
from ream.errors import ReamError, VerificationFailed
from ream.paths import EXPERIMENTS
from ream.stage.initramfs import build_init
from ream.stage.qemu import GuestMachine
from ream.stage.selftests import SELFTESTS, differences, read_selftests, run_selftests
from ream.stage.vm import BootableKernel, Start

Boots = Callable[..., list[ForkSample]]

PUBLISHED = ("before/large-mapcount",)
BEFORE = (*PUBLISHED, "before/fork")
REAM = ("rmap-exclusive", "pte-hw-done", "fork")

WRONG = Path(__file__).parent / "patches"

LIST = read_selftests(SELFTESTS / "fork.list")
MACHINE = GuestMachine("tcg", cpus=2, memory_bytes=4 << 30)

OBJECTS = ("mm/memory.o", "mm/rmap.o", "mm/mmu_gather.o")
"""Kernel objects that the series change."""

DEBUG_S = 5400.0
"""Deadline of a debug kernel on a machine with other work, in seconds."""

PLAN = ForkPlan(folio_kib=(4, 16, 64, 2048), mapping_bytes=64 << 20, rounds=2)


@pytest.fixture(scope="module")
def forks(image: Builder, tmp_path_factory: pytest.TempPathFactory) -> Boots:
    """A function that boots a kernel of some series and gives the samples of a plan."""
    init = build_init(tmp_path_factory.mktemp("init"), *EXPERIMENTS.glob("*"))

    def run(*series: str, plan: ForkPlan = PLAN) -> list[ForkSample]:
        work = tmp_path_factory.mktemp("fork")
        built = image(*series)
        kernel = BootableKernel(built.bootable, fork_initramfs(built, init=init, work=work))
        machine = GuestMachine("tcg", icount=True, memory_bytes=plan.least_bytes)
        return list(run_fork_boot(Start(machine, kernel, work / "console.log"), plan))

    return run


@pytest.fixture(scope="module")
def published(forks: Boots) -> list[ForkSample]:
    return forks(*PUBLISHED)


@pytest.fixture(scope="module")
def before(forks: Boots) -> list[ForkSample]:
    return forks(*BEFORE)


@pytest.fixture(scope="module")
def ream(forks: Boots) -> list[ForkSample]:
    return forks(*REAM)


def digests(samples: list[ForkSample]) -> dict[tuple[int, int], str | None]:
    return {
        (sample.folio_kib, sample.round): sample.digest for sample in samples if sample.op == "fork"
    }


def best(samples: list[ForkSample]) -> dict[tuple[int, str], float]:
    """The fewest instructions for each PTE, by size and operation."""
    found: dict[tuple[int, str], float] = {}
    for sample in samples:
        where = sample.folio_kib, sample.op
        each = sample.time_ns / sample.nr_ptes
        found[where] = min(each, found.get(where, each))
    return found


def test_memory_after_fork_is_the_same_with_and_without_batches(
    published: list[ForkSample], before: list[ForkSample]
) -> None:
    assert None not in digests(published).values()
    assert digests(published) == digests(before)
    assert len(digests(published)) == len(PLAN.folio_kib) * PLAN.rounds


def test_memory_after_fork_is_the_same_with_fewer_locked_operations(
    published: list[ForkSample], ream: list[ForkSample]
) -> None:
    assert digests(ream) == digests(published)


@pytest.mark.parametrize("op", ["fork", "refork", "munmap", "munmap-shared"])
def test_batches_save_instructions_where_folios_are_large(
    op: str, published: list[ForkSample], before: list[ForkSample]
) -> None:
    with_batches, without = best(published), best(before)
    for kib in (64, 2048):
        assert with_batches[kib, op] < 0.8 * without[kib, op]
    # What looks for batches is in the way of base pages: 23 instructions of 117, for fork().
    assert with_batches[4, op] == pytest.approx(without[4, op], rel=0.25)


def test_two_boots_count_nearly_the_same(forks: Boots) -> None:
    """The best of several rounds is compared: interrupts in a round depend on the host's speed."""
    plan = replace(PLAN, folio_kib=(4, 64), rounds=8)
    first, second = (forks(*PUBLISHED, plan=plan) for _ in range(2))
    assert digests(first) == digests(second)
    assert best(second) == pytest.approx(best(first), rel=0.01)


def test_a_size_that_the_kernel_has_not_is_told(forks: Boots) -> None:
    with pytest.raises(ReamError, match="folios=8: no .*hugepages-8kB in this kernel"):
        forks(plan=ForkPlan(folio_kib=(8,), mapping_bytes=2 << 20, rounds=1))


def test_a_child_with_pages_in_the_wrong_order_is_seen(forks: Boots) -> None:
    plan = replace(PLAN, folio_kib=(16,), rounds=1)
    with pytest.raises(VerificationFailed, match="folios of 16 KiB.*memory is not as it must be"):
        forks(str(WRONG / "fork-reversed.patch"), plan=plan)


@pytest.fixture(scope="module")
def on_base(image: Builder, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    work = tmp_path_factory.mktemp("base")
    return run_selftests(MACHINE, image(), LIST, work=work, log=work / "console.log")


@pytest.mark.parametrize("series", [BEFORE, REAM], ids="+".join)
def test_the_kernels_own_tests_give_the_same_results(
    series: tuple[str, ...], on_base: Mapping[str, str], image: Builder, tmp_path: Path
) -> None:
    built = image(*series)
    found = run_selftests(MACHINE, built, LIST, work=tmp_path, log=tmp_path / "console.log")
    assert differences(on_base, found, LIST) == ()
    assert sum(name.startswith("cow.") for name in found) > 300


@pytest.mark.parametrize("config", ["vm-debug", "vm-kcsan"])
def test_debug_kernels_have_nothing_to_say(
    config: str, on_base: Mapping[str, str], image: Builder, tmp_path: Path
) -> None:
    """KASAN, lockdep and DEBUG_VM: any report of theirs fails the boot. KCSAN: any race of ours."""
    built = image(*REAM, config=config)
    log = tmp_path / "console.log"
    overlook = RACE if config == "vm-kcsan" else None
    found = run_selftests(
        MACHINE, built, LIST, work=tmp_path, log=log, overlook=overlook, deadline_s=DEBUG_S
    )
    assert races_of(log, built, OBJECTS) == set()
    assert "fail" not in found.values()
    # MADV_PAGEOUT is advice, and a kernel that holds on to more does not always take it.
    more = [name for name in found if (on_base[name], found[name]) == ("pass", "skip")]
    assert all("swapped out" in name for name in more)
    assert found.keys() == on_base.keys()


def test_a_parent_that_can_write_what_its_child_sees_does_not_pass(
    on_base: Mapping[str, str], image: Builder, tmp_path: Path
) -> None:
    built = image(str(WRONG / "fork-writable.patch"))
    cow = replace(LIST, programs=LIST.programs[:1])
    found = run_selftests(MACHINE, built, cow, work=tmp_path, log=tmp_path / "console.log")
    failed = {name for name, result in found.items() if result == "fail"}
    assert failed
    assert all(" THP " in name for name in failed)
    base_page = "cow.Basic COW after fork() ... with base page: No leak from parent into child"
    assert found[base_page] == on_base[base_page] == "pass"
