# SPDX-License-Identifier: GPL-2.0-only
"""Pages that are unmapped go back to the kernel's own page allocator; all of its node is judged."""

import pytest

from experiments.fork import freeing
from experiments.fork.rows import ForkRow
from ream.experiment import named
from ream.variants import choose_variants

pytestmark = [pytest.mark.vm, pytest.mark.xdist_group("fork-freeing")]

NAMES = ("ream",)


@pytest.fixture(scope="module")
def freeing_rig(rig):
    """Our variant of the fork experiment, with the page allocator; runs have all of them."""
    few = [one for one in choose_variants(named("fork")) if one.name in NAMES]
    return rig(few, folder=freeing.FOLDER)


def test_what_nobody_else_has_is_free_once(freeing_rig) -> None:
    with freeing.planned(freeing.EDGES, freeing_rig.bench.work) as (plan, descriptors):
        samples, _ = freeing_rig.run_plan(plan, descriptors, cpus=freeing.CPUS)
    assert len(samples) == 2 * len(NAMES) * len(freeing.EDGES)
    assert all(one.verified for one in samples)


def test_a_row_as_shipped_reaches_no_substitute_of_the_allocator(freeing_rig) -> None:
    asked = {"operation": "munmap", "folio_bytes": "64k", "mapping_bytes": "16m"}
    row = ForkRow(name="row", frees=True, rounds=1, **asked)
    with freeing.plan_of([row], None, freeing_rig.build, freeing_rig.bench.work) as (plan, files):
        samples, end = freeing_rig.run_plan(plan, files, cpus=freeing.CPUS)
    assert {one.subject for one in samples if one.role == "limit"} == {"plain-clear-and-link"}
    reached = {stub["name"] for stub in end.stubs}
    assert "flush_tlb_mm_range" in reached
    assert not {"__folio_put", "free_pages_and_swap_cache", "__free_pages", "free_pages"} & reached
