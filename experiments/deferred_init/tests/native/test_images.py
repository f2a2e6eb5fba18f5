# SPDX-License-Identifier: GPL-2.0-only
"""Every variant leaves nodes as the oracle says, whatever the threads; a wrong one never passes."""

import os
import random
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from experiments.deferred_init.layout import make_nodes
from experiments.deferred_init.plan import FOLDER, NativeRow, plan_of, predicted_plan
from experiments.deferred_init.rows import DeferredInitRow, Layout
from ream.errors import BadUsage, ReamError, VerificationFailed
from ream.experiment.section import PAGES_PER_SECTION
from ream.kernel.series import load_series
from ream.measure.sample import Sample
from ream.stage import native
from ream.stage.link import examine_kernel
from ream.variants import Variant

PATCHES = Path(__file__).parent / "patches"
LAYOUTS: tuple[Layout, ...] = ("whole", "unaligned", "holes")
SECTIONS = 16
GROUP = pytest.mark.xdist_group("deferred")


def row(
    layout: Layout = "whole",
    *,
    sections: int = SECTIONS,
    nodes: int = 1,
    threads: int = 1,
    seed: int = 1,
    pre_state: str = "evicted",
    grow_order: int | None = None,
    rounds: int = 1,
) -> NativeRow:
    its = make_nodes(nodes, sections * PAGES_PER_SECTION, layout, seed=seed)
    return NativeRow("row", its, threads, rounds, pre_state, grow_order, limits=False)


def run(rig, rows: Sequence[NativeRow], *, cpus: int = 0) -> list[Sample]:
    """One launch; every sample has been compared with the oracle."""
    with predicted_plan(rows, rig.build, rig.bench.work) as (plan, descriptors):
        samples, _ = rig.run_plan(plan, descriptors, cpus=cpus)
    return samples


@pytest.fixture(scope="session")
def base(rig: Callable):
    """The base alone: what the tests are about is the same in all variants."""
    return rig((Variant("published", ()),), folder=FOLDER)


@GROUP
@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_nodes_are_the_same_with_any_number_of_threads(base, layout: Layout) -> None:
    rows = [
        row(layout, threads=threads, pre_state=pre_state, seed=seed)
        for threads in (1, 2, 3, 4)
        for pre_state in ("evicted", "dirty", "lookalike")
        for seed in (1, 2)
    ]
    samples = run(base, rows, cpus=4)
    assert len(samples) == len(rows)
    assert all(sample.verified for sample in samples)


@GROUP
def test_as_many_threads_take_part_as_the_node_has_cpus(base) -> None:
    for threads in (1, 2, 4):
        # One that the host lets begin late finds nothing left to do; not each time.
        samples = run(base, [row(threads=threads, sections=64, rounds=10)], cpus=4)
        assert max(sample.threads for sample in samples) == threads


@GROUP
@pytest.mark.parametrize("layout", LAYOUTS)
def test_two_nodes_are_initialised_at_once(base, layout: Layout) -> None:
    # A CPU that the host gives to others meanwhile loses its node to the caller; not each time.
    for threads in (1, 2):
        samples = run(base, [row(layout, nodes=2, threads=threads, rounds=16)], cpus=4)
        most = max(sample.threads for sample in samples)
        # Small ranges may leave the second CPU of a node nothing.
        assert 2 <= most <= 2 * threads


@GROUP
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_zone_that_grew_before_the_threads_began_ends_in_the_same_state(
    base, layout: Layout
) -> None:
    # Two sections: the second allocation's worth of growth leaves nothing to the threads.
    rows = [
        row(layout, sections=sections, threads=2, grow_order=order, seed=seed)
        for sections in (2, 5)
        for order in (0, 3, 10)
        for seed in (1, 2)
    ]
    run(base, rows)


@GROUP
def test_two_rows_of_one_kernel_do_not_see_each_others_memory(base) -> None:
    rows = [row(layout, nodes=nodes) for layout in LAYOUTS for nodes in (2, 1, 2)]
    run(base, rows, cpus=2)


@GROUP
@pytest.mark.parametrize("seed", range(4))
def test_one_flipped_bit_of_the_prediction_is_found_wherever_it_is(
    base, seed: int, tmp_path: Path
) -> None:
    draw = random.Random(seed)
    # Nothing is reserved: such descriptors are put there from the prediction itself.
    with predicted_plan([row()], base.build, tmp_path) as (plan, descriptors):
        image = descriptors[-2:][draw.randrange(2)]
        at = draw.randrange(os.fstat(image).st_size)
        os.pwrite(image, bytes([os.pread(image, 1, at)[0] ^ 1 << draw.randrange(8)]), at)
        with pytest.raises(VerificationFailed, match=rf"differs from the oracle at byte {at}\b"):
            base.run_plan(plan, descriptors)


@GROUP
def test_a_block_that_is_not_on_its_list_is_found(base, tmp_path: Path) -> None:
    with predicted_plan([row()], base.build, tmp_path) as (plan, descriptors):
        order = 16 * 5 + 8  # of the sixth block, whose list is then another
        os.pwrite(descriptors[-3], b"\x09", order)
        with pytest.raises(VerificationFailed, match="free list of order 10, type 1: holds a"):
            base.run_plan(plan, descriptors)


@GROUP
def test_bytes_are_those_that_the_threads_write(base) -> None:
    rows = [row(sections=3, grow_order=order) for order in (None, 0)]
    whole, grown = run(base, rows)
    assert whole.nr_bytes == 3 * PAGES_PER_SECTION * 64
    assert grown.nr_bytes == 2 * PAGES_PER_SECTION * 64


@GROUP
def test_a_row_that_growing_leaves_nothing_of_is_refused(base, tmp_path: Path) -> None:
    small = {"name": "small", "memory_bytes": "256MiB", "rounds": 1, "grow_order": 10}
    rows = [DeferredInitRow.model_validate({**small, "layout": "unaligned"})]
    with (
        pytest.raises(BadUsage, match=r"row small: .* order 10 initialises all of its memory"),
        plan_of(rows, 1, base.build, tmp_path),
    ):
        pass


def wrong_rig(rig: Callable, patch: str):
    return rig((Variant(patch, (load_series(PATCHES / f"{patch}.patch"),)),), folder=FOLDER)


@GROUP
@pytest.mark.parametrize(
    ("patch", "said"),
    [
        ("deferred-reference-left", r"left: the memory map differs .* of entry 5000 "),
        pytest.param(
            "deferred-head-of-list",
            "free list of order 10, type 1: not in the order of one thread's frees at pfn",
            marks=pytest.mark.vm,
        ),
        pytest.param(
            "deferred-block-forgotten",
            "forgotten: node 0: managed_pages is 523264, and 524288 is right: memory is never used",
            marks=pytest.mark.vm,
        ),
    ],
)
def test_one_wrong_page_stops_the_run(rig: Callable, patch: str, said: str) -> None:
    with pytest.raises(VerificationFailed, match=said):
        run(wrong_rig(rig, patch), [row()])


@pytest.mark.vm
@GROUP
def test_another_cpu_that_does_not_come_back_is_told_with_its_function(
    rig: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    # CPU 0, which the timer interrupts, waits for it.
    monkeypatch.setattr(native, "FIRST_SAMPLE_S", 3)
    said = r"^row: deferred-others-idle: no end after 3 s: .* deferred_init_memmap_chunk\(\) \(mm/"
    with pytest.raises(VerificationFailed, match=said):
        run(wrong_rig(rig, "deferred-others-idle"), [row(sections=64, threads=2)], cpus=4)


@GROUP
@pytest.mark.vm
def test_a_block_that_is_freed_before_its_buddy_is_initialised_is_seen_by_what_lay_there(
    rig: Callable,
) -> None:
    """In poisoned memory the buddy looks like nothing, and both end as they should."""
    wrong = wrong_rig(rig, "deferred-freed-too-early")
    run(wrong, [row()])
    with pytest.raises(VerificationFailed, match="free list of order 9, type 1: holds a block"):
        run(wrong, [row(pre_state="lookalike")])


def test_a_function_that_is_not_there_cannot_be_made_global(tmp_path: Path) -> None:
    source = tmp_path / "some.c"
    source.write_text(
        "static int inlined(void) { return 1; }\nint some(void) { return inlined(); }"
    )
    some = tmp_path / "some.o"
    subprocess.run(("gcc", "-O2", "-c", str(source), "-o", str(some)), check=True)
    with pytest.raises(ReamError, match=r"v: some\.o has no inlined .* file `objects`"):
        examine_kernel("v", [some], tmp_path, exposed={some: ("inlined",)})
