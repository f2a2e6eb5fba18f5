# SPDX-License-Identifier: GPL-2.0-only
"""Huge pages by all of direct compaction, by the unpatched kernel alone: test_whole.py has more."""

import pytest

from experiments.compact import whole
from ream.experiment import BASE
from ream.variants import Variant

pytestmark = pytest.mark.xdist_group("compact-whole")

CPUS = 2


def test_the_base_leaves_a_node_as_the_rules_have_it_and_does_so_again(rig) -> None:
    its, edge = rig((Variant(BASE, ()),), folder=whole.FOLDER), whole.EDGES[0]
    with whole._planned([edge], its.bench.work) as (plan, descriptors):
        samples, _ = its.run_plan(plan, descriptors, cpus=CPUS)
    assert [one.subject for one in samples] == [BASE] * 2
    for one in samples:
        assert one.verified
        assert one.beside["allocated"] == edge.nr_huge
        assert one.beside["pgmigrate_success"] > 0
