# SPDX-License-Identifier: GPL-2.0-only
"""Huge pages by all of direct compaction in one process; what is left of the node is judged."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from experiments.compact import whole
from experiments.compact.rows import CompactRow
from ream.errors import VerificationFailed
from ream.experiment import BASE, named
from ream.kernel.series import load_series
from ream.measure.sample import Sample
from ream.oracle.mapping import PAGES_PER_PMD
from ream.paths import EXPERIMENTS
from ream.stage.native import End
from ream.variants import Variant, choose_variants

pytestmark = [pytest.mark.vm, pytest.mark.xdist_group("compact-whole")]

WRONG = EXPERIMENTS / "compact" / "wrong"
PATCHES = Path(__file__).parent / "patches"
VARIANTS = ("before", "before-again", "published", "ream")
CPUS = 2
VARYING = ("longest_ns", "user_ns", "system_ns", "idle_ns", "hog_iterations")
"""Times, and what comes of them."""

ADAPTED = "dcbm_folios_migrated"
"""`ream` chooses the copier by measured times, so this counter varies."""


@pytest.fixture(scope="session")
def whole_rig(rig):
    """The compact experiment's before, before-again, published and ream."""
    return rig(choose_variants(named("compact")), folder=whole.FOLDER)


@pytest.fixture(scope="session")
def wrong_rig(rig) -> Callable[..., object]:
    def make(number: str):
        (patch,) = WRONG.glob(f"{number}-*.patch")
        return rig((Variant(BASE, ()), Variant("mine", (load_series(patch),))), folder=whole.FOLDER)

    return make


def taken(rig, *asked: whole.Whole) -> list[Sample]:
    with whole._planned(asked, rig.bench.work) as (plan, descriptors):
        samples, _ = rig.run_plan(plan, descriptors, cpus=CPUS)
    assert all(one.verified for one in samples)
    return samples


def taken_of_row(rig, row: CompactRow) -> tuple[list[Sample], End]:
    with whole.plan_of([row], None, rig.build, rig.bench.work) as (plan, descriptors):
        samples, end = rig.run_plan(plan, descriptors, cpus=CPUS)
    assert all(one.verified for one in samples)
    return samples, end


def of(samples: list[Sample], row: str, variant: str) -> list[Sample]:
    return [one for one in samples if (one.row, one.subject) == (row, variant)]


def numbers(sample: Sample) -> dict[str, int]:
    """Those that repeat."""
    its = sample.beside.items()
    return {name: value for name, value in its if name not in {*VARYING, ADAPTED}}


def test_every_kernel_leaves_a_node_as_the_rules_have_it(whole_rig) -> None:
    samples = taken(whole_rig, *whole.EDGES)
    assert len(samples) == 2 * len(VARIANTS) * len(whole.EDGES)
    for edge in whole.EDGES:
        for variant in VARIANTS:
            first, second = of(samples, edge.name, variant)
            assert numbers(first) == numbers(second)
            assert first.beside["asked"] == edge.nr_huge
            assert first.nr_bytes == first.beside["allocated"] << 21
        before, again = (of(samples, edge.name, name)[0] for name in VARIANTS[:2])
        assert numbers(before) == numbers(again)


def test_a_huge_page_takes_as_many_pages_as_its_block_has(whole_rig) -> None:
    (plain, _, odd, down, *_), pinned = whole.EDGES, whole.EDGES[-1]
    samples = taken(whole_rig, plain, odd, down, pinned)
    for edge in (plain, odd, down):
        (ours, _), (before, _) = (of(samples, edge.name, name) for name in ("ream", "before"))
        assert ours.beside["allocated"] == edge.nr_huge
        # Some blocks are whole once the lists of CPUs are drained.
        moved = ours.beside["pgmigrate_success"] / edge.nr_huge
        assert 250 < moved <= 256
        assert before.beside["pgmigrate_success"] > ours.beside["pgmigrate_success"]
        assert before.beside["tlb_flushes"] > 2 * ours.beside["tlb_flushes"]
    for variant in VARIANTS:
        (none, _) = of(samples, pinned.name, variant)
        assert (none.beside["allocated"], none.beside["pgmigrate_success"]) == (0, 0)


@pytest.mark.parametrize("used_every", [16, 32])
def test_no_block_is_passed_over_where_few_pages_are_used(whole_rig, used_every: int) -> None:
    """Where scans begin does not move on behind a block of no more than a cluster of pages."""
    sparse = replace(whole.EDGES[0], name="sparse", used_every=used_every, nr_huge=31)
    (ours, _) = of(taken(whole_rig, sparse), "sparse", "ream")
    assert ours.beside["allocated"] == 31
    assert ours.beside["pgmigrate_success"] == 31 * PAGES_PER_PMD // used_every


def test_an_engine_copies_what_it_is_given_and_a_loop_has_its_share(whole_rig) -> None:
    by_name = {one.name: one for one in whole.EDGES}
    asked = [by_name[name] for name in ("edge-dma", "edge-dma-random", "edge-busy")]
    samples = taken(whole_rig, *asked)
    for edge in asked[:2]:
        (offloaded, _), (before, _) = (of(samples, edge.name, it) for it in ("published", "before"))
        migrated = offloaded.beside["pgmigrate_success"]
        assert 0 < migrated == before.beside["pgmigrate_success"]
        assert offloaded.beside["dcbm_folios_migrated"] == migrated
        assert before.beside["dcbm_folios_migrated"] == 0
        assert "hog_iterations" not in before.beside
    for one in of(samples, "edge-busy", "before"):
        assert one.beside["hog_iterations"] > 0
        assert one.beside["user_ns"] > 0
        assert one.beside["system_ns"] > 0


def test_launches_draw_for_themselves(whole_rig) -> None:
    one = whole.EDGES[0]
    other = replace(whole_rig, launch=replace(whole_rig.launch, number=1))
    first, second = (of(taken(rig, one), one.name, "before")[0] for rig in (whole_rig, other))
    assert numbers(first) != numbers(second)


def test_a_row_as_shipped_is_taken_in_one_round(whole_rig) -> None:
    row = CompactRow(name="row", stage="native", nr_huge=8, node_bytes="64MiB", freed="random")
    samples, end = taken_of_row(whole_rig, row)
    assert {one.subject for one in samples if one.role == "variant"} == set(VARIANTS)
    assert any(one.role == "limit" and one.nr_bytes == 8 << 21 for one in samples)
    reached = {stub["name"] for stub in end.stubs}
    assert {"pcpu_alloc_noprof", "arch_tlbbatch_flush", "_raw_spin_trylock"} <= reached
    assert not {"copy_mc_to_kernel", "folio_add_lru", "__folio_put"} & reached


def test_blocks_with_pages_that_lists_of_cpus_hold_are_tried_again(whole_rig) -> None:
    """Freed in random order, pages of nearly every block are on the way to a free list."""
    row = CompactRow(
        name="row", stage="native", nr_huge=16, node_bytes="1GiB", holes="odd", freed="random"
    )
    samples, _ = taken_of_row(whole_rig, row)
    (ours, *_) = of(samples, "row", "ream")
    assert ours.beside["allocated"] == 16


def test_a_block_is_isolated_in_parts_where_little_else_is_left_to_reclaim(rig) -> None:
    """too_many_isolated() is asked within a block, and each part has a flush of its own."""
    before, _, _, ours = choose_variants(named("compact"))
    unasked = Variant(
        "unasked", (*ours.series, load_series(PATCHES / "compact-isolated-unasked.patch"))
    )
    row = CompactRow(name="row", stage="native", nr_huge=1, node_bytes="12MiB")
    samples, _ = taken_of_row(rig((before, ours, unasked), folder=whole.FOLDER), row)
    (asks, *_), (does_not, *_) = (of(samples, "row", name) for name in ("ream", "unasked"))
    assert asks.beside["allocated"] == does_not.beside["allocated"] == 1
    assert asks.beside["pgmigrate_success"] == does_not.beside["pgmigrate_success"] == 256
    assert asks.beside["tlb_flushes"] > does_not.beside["tlb_flushes"] == 1


@pytest.mark.vm
@pytest.mark.parametrize(
    ("number", "said"),
    [
        ("03", r"mine: frame 0x\w+ is lost"),
        ("05", r"edge-pinned: mine: page \d+ has 3 references, expected 2"),
        ("09", r"mine: free frames: \d+ on lists, \d+ counted"),
    ],
)
def test_a_lost_page_a_leaked_reference_and_a_wrong_count_are_caught(
    wrong_rig, number: str, said: str
) -> None:
    with pytest.raises(VerificationFailed, match=said):
        taken(wrong_rig(number), *whole.EDGES)


@pytest.mark.vm
@pytest.mark.parametrize(
    ("patch", "edge", "said"),
    [
        ("gathered-uncounted", "edge-scattered", r"4096 pages were migrated, and 0 freed"),
        ("below-high-stays", "edge-below-high", r"zone is flagged as below its high watermark"),
        ("gathered-while-isolating", "edge-isolating", r"31 free frames are in no list"),
        ("gathered-while-disabled", "edge-disabling", r"31 free frames are in no list"),
        ("gathered-and-kept", "edge-isolating-late", r"31 free frames are in no list"),
        ("gathered-in-between", "edge-leaving", r"1 free frames are in no list"),
    ],
)
def test_what_is_gathered_on_the_way_to_the_zone_is_counted_flagged_and_found(
    rig, patch: str, edge: str, said: str
) -> None:
    """Code that bypasses free_unref_page_commit() has to do its work for each page."""
    *_, ours = choose_variants(named("compact"))
    wrong = Variant("mine", (*ours.series, load_series(PATCHES / f"compact-{patch}.patch")))
    (row,) = (one for one in whole.EDGES if one.name == edge)
    with pytest.raises(VerificationFailed, match=f"{edge}: mine: {said}"):
        taken(rig((wrong,), folder=whole.FOLDER), row)
