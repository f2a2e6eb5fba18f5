# SPDX-License-Identifier: GPL-2.0-only
"""Every variant's map is, byte for byte, what the oracle says; and a wrong one never passes."""

import os
import random
from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from experiments.zone_device.plan import START_PFN, NativeRow, altmap_pages, predicted_plan
from ream.errors import VerificationFailed
from ream.experiment.section import PAGES_PER_SECTION
from ream.measure.sample import Sample
from ream.oracle.memmap import DeviceRange
from ream.paths import CHECKOUT
from ream.stage.native import End
from ream.variants import Variant

ORDERS = (0, 1, 2, 4, 9, 15, 16, 18)
TYPES = ("PRIVATE", "COHERENT", "FS_DAX", "GENERIC", "PCI_P2PDMA")
COMPOUND = 1 << 9


def row(
    nr_pages: int,
    order: int,
    memory_type: str = "FS_DAX",
    skip_pages: int = 0,
    *,
    early: bool = False,
    nid: int = 0,
    start_pfn: int = START_PFN,
    **given: Any,
) -> NativeRow:
    """A range in one launch of one round; given: other fields of the row."""
    early_pages = nr_pages if early else 0
    device = DeviceRange(start_pfn, nr_pages, skip_pages, order, memory_type, early_pages, nid)
    fields = {"pre_state": "evicted", "rounds": 1, "threads": 0, **given}
    return NativeRow("row", device, **fields)


def run(rig, rows: Sequence[NativeRow], *, cpus: int = 0) -> tuple[list[Sample], End]:
    """One launch; every sample has been compared with the oracle."""
    with predicted_plan(rows, rig.build, rig.bench.work) as (plan, descriptors):
        return rig.run_plan(plan, descriptors, cpus=cpus)


@pytest.mark.parametrize("order", ORDERS)
def test_all_variants_make_the_same_map_for_every_type_with_and_without_altmap(
    shipped_rig, order: int
) -> None:
    nr_pages = max(4 * PAGES_PER_SECTION, 2 << order)
    rows = [
        row(
            nr_pages,
            order,
            memory_type,
            altmap_pages(nr_pages, order) if altmap else 0,
            early=early,
        )
        for memory_type, altmap, early in product(TYPES, (False, True), (False, True))
    ]
    samples, end = run(shipped_rig, rows)
    variants = [sample for sample in samples if sample.role == "variant"]
    assert len(variants) == len(rows) * 4
    assert all(sample.verified for sample in variants)
    assert end.stubs  # cond_resched() at least: what was not the kernel's own is on record


@pytest.mark.parametrize(
    ("nr_pages", "order"),
    [
        (PAGES_PER_SECTION + 512, 0),
        (3 * PAGES_PER_SECTION - 512, 4),
        (512, 0),
        (1, 0),
        (513, 9),  # the last compound reaches past the end
        (PAGES_PER_SECTION + 8, 4),
        (2 * PAGES_PER_SECTION + 512, 9),
        (9 * PAGES_PER_SECTION, 18),  # and so does this one
    ],
)
def test_lengths_that_are_no_whole_number_of_sections_or_compounds(
    shipped_rig, nr_pages: int, order: int
) -> None:
    rows = [row(nr_pages, order, early=early) for early in (False, True)]
    run(shipped_rig, rows)


def test_a_range_that_begins_inside_a_section(shipped_rig) -> None:
    rows = [
        row(5 * PAGES_PER_SECTION, order, start_pfn=START_PFN + offset)
        for order, offset in ((0, 512), (0, PAGES_PER_SECTION - 512), (9, 2048), (9, 100))
    ]
    run(shipped_rig, rows)


def test_an_altmap_that_takes_the_whole_range_leaves_nothing_to_do(shipped_rig) -> None:
    pages = 2 * PAGES_PER_SECTION
    run(shipped_rig, [row(pages, 0, skip_pages=pages), row(pages, 9, skip_pages=pages)])


def test_a_node_without_cpus_is_initialised_by_those_of_another(shipped_rig) -> None:
    rows = [row(16 * PAGES_PER_SECTION, order, nid=1) for order in (0, 9)]
    run(shipped_rig, rows)


@pytest.mark.parametrize("pre_state", ["evicted", "dirty", "untouched"])
def test_what_memory_held_before_does_not_matter(shipped_rig, pre_state: str) -> None:
    run(shipped_rig, [row(2 * PAGES_PER_SECTION, order, pre_state=pre_state) for order in (0, 9)])


def test_what_callers_do_around_the_call_leaves_the_map_as_it_is(shipped_rig) -> None:
    size = 3 * PAGES_PER_SECTION
    rows = [
        row(size, 0, "PRIVATE", chunk_pages=chunk_pages, also=also)
        for chunk_pages in (0, PAGES_PER_SECTION, 2 * PAGES_PER_SECTION)
        for also in ((), ("zero",), ("poison",), ("list",), ("zero", "poison", "list"))
    ]
    samples, _ = run(shipped_rig, rows)
    assert len([sample for sample in samples if sample.role == "variant"]) == len(rows) * 4


def test_one_cpu_is_enough(shipped_rig) -> None:
    samples, _ = run(shipped_rig, [row(16 * PAGES_PER_SECTION, 0)], cpus=1)
    assert {sample.threads for sample in samples} == {1}


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="this machine lends us one CPU")
def test_only_ream_uses_more_than_one_cpu_and_no_more_than_it_may(shipped_rig) -> None:
    large = row(64 * PAGES_PER_SECTION, 0)
    capped = row(64 * PAGES_PER_SECTION, 0, threads=1)
    # Another CPU takes part if it wakes in time, which a busy one does not in every launch.
    for _ in range(20):
        free = {sample.subject: sample.threads for sample in run(shipped_rig, [large])[0]}
        assert (free["before"], free["published"]) == (1, 1)
        assert free["ream"] <= 2
        if free["ream"] == 2:
            break
    assert free["ream"] == 2
    one = {sample.subject: sample.threads for sample in run(shipped_rig, [capped])[0]}
    assert one["ream"] == 1


@pytest.mark.parametrize("seed", range(6))
def test_one_flipped_bit_of_the_prediction_is_found_wherever_it_is(
    shipped_rig, seed: int, tmp_path: Path
) -> None:
    # The map and its prediction are compared, so a bit flipped in either is the same test.
    draw = random.Random(seed)
    one = row(2 * PAGES_PER_SECTION, draw.choice((0, 9)), skip_pages=COMPOUND, early=True)
    build = shipped_rig.build
    with predicted_plan([one], build, tmp_path) as (plan, descriptors):
        image = descriptors[draw.randrange(2)]
        at = draw.randrange(os.fstat(image).st_size)
        was = os.pread(image, 1, at)[0]
        os.pwrite(image, bytes([was ^ 1 << draw.randrange(8)]), at)
        with pytest.raises(VerificationFailed, match=rf"differs from the oracle at byte {at}\b"):
            shipped_rig.run_plan(plan, descriptors)


@pytest.mark.parametrize(
    ("patch", "said"),
    [
        pytest.param(
            CHECKOUT / "tests/native/patches/wrong-field.patch",
            r"wrong-field: the memory map differs .* of entry 891178 ",
            id="wrong-field",
        ),
        pytest.param(
            Path(__file__).parent / "patches/wrong-pageblock.patch",
            r"wrong-pageblock: the pageblock map differs from the oracle",
            marks=pytest.mark.vm,
            id="wrong-pageblock",
        ),
    ],
)
def test_one_wrong_field_in_a_million_pages_stops_the_run(
    patched_rig: Callable, patch: Path, said: str
) -> None:
    rig = patched_rig("zone-device", patch, beside=(Variant("before", ()),))
    with pytest.raises(VerificationFailed, match=said):
        run(rig, [row(1 << 20, 0)])
