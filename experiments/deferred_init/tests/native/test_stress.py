# SPDX-License-Identifier: GPL-2.0-only
"""Nodes drawn by lot, in every variant: REAM_STRESS=1000 runs as many, else a few."""

import os
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from experiments.deferred_init.cases import cases
from experiments.deferred_init.layout import make_nodes
from experiments.deferred_init.plan import FOLDER, NativeRow, predicted_plan
from ream.experiment import named
from ream.experiment.section import PAGES_PER_SECTION
from ream.measure.sample import Sample
from ream.stage.hosted import cases_of
from ream.stage.native import launch_once
from ream.variants import choose_variants

NR_RUNS = int(os.environ.get("REAM_STRESS", "40"))
PER_LAUNCH = 40
"""Rows of a launch. All of them have predictions in memory and files open at once."""

MOST_THREADS = 4


def drawn(number: int) -> NativeRow:
    """A row that its number alone decides; the number is in its name, so that it can be redone."""
    draw = random.Random(number)
    # Parts of a job are at least a section each: few sections, few parts.
    sections = draw.choice((2, 3, 4, draw.randrange(5, 24)))
    nodes = make_nodes(
        draw.choice((1, 1, 2)),
        sections * PAGES_PER_SECTION - draw.choice((0, 0, draw.randrange(1, 5000))),
        draw.choice(("whole", "unaligned", "holes")),
        seed=number,
    )
    return NativeRow(
        name=f"stress-{number}",
        nodes=nodes,
        threads=draw.randint(1, MOST_THREADS // len(nodes)),
        rounds=1,
        pre_state=draw.choice(("evicted", "dirty")),
        grow_order=draw.choice((None, None, draw.randrange(11))),
        limits=False,
    )


@pytest.mark.xdist_group("deferred")
@pytest.mark.parametrize("first", range(0, NR_RUNS, PER_LAUNCH))
def test_any_node_ends_in_the_same_state_in_every_variant(
    deferred_rig: Callable, first: int, tmp_path: Path
) -> None:
    rows = [drawn(number) for number in range(first, min(first + PER_LAUNCH, NR_RUNS))]
    with predicted_plan(rows, deferred_rig.build, tmp_path) as (plan, descriptors):
        samples, _ = deferred_rig.run_plan(plan, descriptors, cpus=MOST_THREADS)
    assert len(samples) == len(rows) * len(deferred_rig.launch.link_order)
    assert all(sample.verified for sample in samples)


@pytest.mark.vm  # each run of the experiment begins with these, too
@pytest.mark.xdist_group("deferred")
def test_every_variant_is_right_at_every_edge(deferred_rig: Callable, tmp_path: Path) -> None:
    rig = deferred_rig
    batches = cases_of(cases, rig.build, tmp_path, seed=1, pass_number=0)
    for planned, cpus in batches:
        with planned as (plan, descriptors):
            said = list(launch_once(rig.program, rig.launch, plan, descriptors, cpus=cpus))
        assert all(one.verified for one in said if isinstance(one, Sample))


@pytest.fixture(scope="module")
def deferred_rig(rig: Callable):
    """before, before-again, published and ream."""
    return rig(choose_variants(named("deferred-init")), folder=FOLDER)
