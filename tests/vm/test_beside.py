# SPDX-License-Identifier: GPL-2.0-only
"""All of ream on one base, where it shares a machine with what else the kernel does."""

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from fixtures.guests import Builder
from races import RACE, races_of
from ream.kernel.image import Image
from ream.paths import KERNEL_MODULES
from ream.stage.qemu import GuestMachine, GuestNode
from ream.stage.selftests import SELFTESTS, Selftests, read_selftests, run_selftests

Numbers = Mapping[str, int]

ALL = "all"
HERE = Path(__file__).parent
GIB = 1 << 30
OFFLOAD = read_selftests(SELFTESTS / "offload.list")

TRACED = "vm-trace"

DIES = 4
MAPPED = "32G"
"""Whose memory map, 512 MiB, takes a CPU a second: time for all to begin."""

CMA_MIB = 128
CMA_AT = "1G"
"""Where the zone of movable memory begins, which compaction empties from there."""

MOST_CPUS = 32
"""For one memory map: more share the same bandwidth."""


def numbers(
    program: str,
    image: Image,
    machine: GuestMachine,
    work: Path,
    *,
    modules: tuple[str, ...] = (),
    words: tuple[str, ...] = (),
    overlook: str | None = None,
) -> Numbers:
    """What a program of this folder prints as name=number, in a guest that a splat fails.

    overlook: splats that do not, as in `run_selftests`.
    """
    tests = Selftests(
        modules=modules, programs=(str(HERE / program),), words=words, skips={}, added={}
    )
    log = work / "console.log"
    run_selftests(machine, image, tests, work=work, log=log, overlook=overlook)
    said = re.findall(r"\b([a-z_]+)=(\d+)\b", log.read_text(errors="replace"))
    return {name: int(number) for name, number in said}


def of_dies(cpus: int, *nodes: GuestNode) -> GuestMachine:
    topology = f"sockets=1,dies={DIES},cores={cpus // DIES},threads=1"
    return GuestMachine(
        "tcg", cpus=cpus, memory_bytes=2 * GIB, nodes=nodes, options=("-smp", topology)
    )


def helpers(image: Builder, work: Path, *series: str, cpus: int, config: str = "vm") -> Numbers:
    built = image(ALL, *series, config=config, modules=[KERNEL_MODULES / "memremap"])
    return numbers(
        "llc_helpers",
        built,
        of_dies(cpus),
        work,
        modules=("memremap",),
        words=(f"memremap.size={MAPPED}", "memremap.rounds=0"),
    )


def test_helpers_begin_in_every_last_level_cache(image: Builder, tmp_path: Path) -> None:
    """Each has a bandwidth of its own: in one alone, helpers would share what one CPU has."""
    said = helpers(image, tmp_path, cpus=8)
    assert said["last_level_caches"] == DIES
    assert said["pools_at_work"] == DIES


def movers(image: Builder, work: Path, *series: str, nr_threads: int = 4) -> Numbers:
    """Two dies are of each node. Each thread of mtcopy begins on a CPU of the target's own."""
    machine = of_dies(8, GuestNode(GIB, "0-3"), GuestNode(GIB, "4-7"))
    words = ("mtcopy.offloading=1", f"mtcopy.nr_threads={nr_threads}")
    return numbers(
        "llc_helpers", image(ALL, *series), machine, work, modules=("mtcopy",), words=words
    )


def test_threads_that_copy_begin_in_every_last_level_cache(image: Builder, tmp_path: Path) -> None:
    said = movers(image, tmp_path)
    assert said["last_level_caches"] == DIES
    assert said["pools_at_work"] == DIES


def test_threads_that_copy_in_one_last_level_cache_are_seen(image: Builder, tmp_path: Path) -> None:
    said = movers(image, tmp_path, str(HERE / "patches/mtcopy-anywhere.patch"))
    assert said["pools_at_work"] < DIES


def test_no_more_threads_copy_than_are_asked_for(image: Builder, tmp_path: Path) -> None:
    """The one besides the caller begins in the second die of the target's node."""
    said = movers(image, tmp_path, nr_threads=2)
    assert said["pools_at_work"] == 2
    assert said["limits_ignored"] == 0


def test_no_more_help_than_memory_has_bandwidth_for(image: Builder, tmp_path: Path) -> None:
    """The limit counts queued works; the task that maps is one more."""
    said = helpers(image, tmp_path, cpus=MOST_CPUS + 8, config=TRACED)
    assert said["works_queued"] == MOST_CPUS - 1


def test_help_of_every_cpu_is_seen(image: Builder, tmp_path: Path) -> None:
    everyone = str(HERE / "patches/memmap-every-cpu-helps.patch")
    said = helpers(image, tmp_path, everyone, cpus=MOST_CPUS + 8, config=TRACED)
    assert said["works_queued"] == MOST_CPUS + 8 - 1


def races_of_helpers(image: Builder, work: Path, *series: str) -> set[tuple[str, str]]:
    """What KCSAN says of four CPUs that fill one memory map; it sees no streaming store."""
    built = image(ALL, *series, config="vm-kcsan", modules=[KERNEL_MODULES / "memremap"])
    words = ("memremap.size=8G", "memremap.rounds=0")
    machine = of_dies(4)
    said = numbers(
        "llc_helpers", built, machine, work, modules=("memremap",), words=words, overlook=RACE
    )
    assert said["pools_at_work"] > 1
    return races_of(work / "console.log", built, ("mm/mm_init.o",), ("memremap",))


def test_kcsan_sees_no_race_of_who_fill_a_memory_map(image: Builder, tmp_path: Path) -> None:
    assert races_of_helpers(image, tmp_path) == set()


def test_kcsan_would_see_a_race_of_who_fill_a_memory_map(image: Builder, tmp_path: Path) -> None:
    assert races_of_helpers(image, tmp_path, str(HERE / "patches/memmap-race.patch"))


def isolated(image: Builder, work: Path, *series: str) -> Numbers:
    """How blocks and a CMA area are isolated while another process has memory compacted."""
    machine = GuestMachine("tcg", cpus=2, memory_bytes=2 * GIB)
    built = image(ALL, *series, config="vm-cma")
    said = numbers(
        "isolate_loop", built, machine, work, words=("movablecore=1G", f"cma={CMA_MIB}M@{CMA_AT}")
    )
    assert said["compact_success"] > 0
    assert said["wrong_words"] == 0
    return said


def test_memory_goes_offline_and_to_cma_while_other_memory_is_compacted(
    image: Builder, tmp_path: Path
) -> None:
    """Pages freed by a compacting task must be visible to code that isolates their block."""
    said = isolated(image, tmp_path)
    assert (said["refused"], said["cma_refused"], said["cma_whole"]) == (0, 0, 1)
    assert said["offlined"] > 0


def test_free_pages_that_compaction_keeps_are_seen(image: Builder, tmp_path: Path) -> None:
    said = isolated(image, tmp_path, str(HERE / "patches/compact-parks.patch"))
    assert said["refused"] + said["cma_refused"] > 0
    assert not said["cma_whole"]


WATCHED = "vm-debug+vm-dma+vm-tiers"
"""With DEBUG_PAGE_REF, as vm-trace; the soak of migrate has this kernel built anyway."""

TWO_NODES = GuestMachine(
    "tcg", cpus=2, memory_bytes=2 * GIB, nodes=(GuestNode(GIB, "0"), GuestNode(GIB, "1"))
)


def zapped(image: Builder, *series: str, work: Path) -> tuple[int, int]:
    """How many counts of pages were compared, and how many were wrong."""
    said = numbers("anon_counts", image(*series, config="vm-distro"), TWO_NODES, work)
    return said["anon_checks"], said["anon_wrong"]


def test_pages_leave_the_cgroup_and_the_node_that_they_were_counted_in(
    image: Builder, tmp_path: Path
) -> None:
    assert zapped(image, ALL, work=tmp_path) == (12, 0)


def test_pages_that_are_counted_in_another_cgroup_are_seen(image: Builder, tmp_path: Path) -> None:
    wrong = str(HERE / "patches/zapped-anon-lost.patch")
    nr_checks, nr_wrong = zapped(image, ALL, wrong, work=tmp_path)
    assert nr_checks == 12
    assert nr_wrong > 0


def ref_events(built: Image, work: Path) -> tuple[int, int]:
    """References taken and dropped, as traced, of 512 pages that a child has until it exits."""
    machine = GuestMachine("tcg", cpus=2, memory_bytes=2 * GIB)
    said = numbers("ref_events", built, machine, work)
    assert said["shared_pages"] == 512
    return said["ref_mod"], said["ref_mod_and_test"]


def test_who_traces_reference_counts_sees_those_of_shared_pages(
    image: Builder, tmp_path: Path
) -> None:
    """One operation on a mapcount and a reference count is for nobody to trace."""
    assert ref_events(image(ALL, config=WATCHED), tmp_path) == (512, 512)


def test_events_of_shared_pages_that_are_lost_are_noticed(image: Builder, tmp_path: Path) -> None:
    untraced = str(HERE / "patches/fork-untraced.patch")
    assert ref_events(image(ALL, untraced, config="vm-trace"), tmp_path) == (0, 0)


def offloaded(built: Image, work: Path) -> Mapping[str, str]:
    return run_selftests(TWO_NODES, built, OFFLOAD, work=work, log=work / "console.log")


@pytest.mark.parametrize("config", ["vm", "vm-distro"])
def test_what_others_copy_arrives_whole_pinned_and_protected(
    image: Builder, tmp_path: Path, config: str
) -> None:
    found = offloaded(image(ALL, config=config, modules=[KERNEL_MODULES / "swdma"]), tmp_path)
    assert set(found.values()) == {"pass"}
    assert sum(name.startswith("migration_offload.") for name in found) == 10


def test_a_hugetlb_page_that_nobody_copies_is_seen(image: Builder, tmp_path: Path) -> None:
    built = image(
        ALL, str(HERE / "patches/offload-hugetlb.patch"), modules=[KERNEL_MODULES / "swdma"]
    )
    found = offloaded(built, tmp_path)
    failed = {name for name, result in found.items() if result == "fail"}
    assert sum("hugetlb" in name for name in failed) == 2
    assert not any("folios of" in name for name in failed)
