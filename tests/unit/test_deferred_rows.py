# SPDX-License-Identifier: GPL-2.0-only
"""Which deferred-init rows run on how many CPUs, and the memory that their nodes have."""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ream.experiment.deferred_init import DeferredInitRow, Layout
from ream.experiment.section import PAGES_PER_SECTION
from ream.stage.bench import objects
from ream.stage.deferred_init import (
    FOLDER,
    halved,
    suit,
    threads_of,
)
from ream.stage.deferred_layout import NodeLayout, make_nodes

FACTS = {"PAGE_SIZE": 4096}
LAYOUTS: tuple[Layout, ...] = ("whole", "unaligned", "holes")


def row(name: str = "row", **fields: Any) -> DeferredInitRow:
    return DeferredInitRow.model_validate(
        {"name": name, "memory_bytes": "1GiB", "rounds": 1, **fields}
    )


# --- Threads ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "most", "threads"),
    [
        ({"threads": 3}, None, 3),
        ({"threads": 3}, 2, 2),
        ({}, None, 8),  # all there are
        ({"nodes": 2}, None, 4),  # and all of them shared out
        ({"node_pct": 50}, None, 4),
        ({"node_pct": 100}, None, 8),
        ({"node_pct": 2}, None, 1),  # never none
    ],
)
def test_a_row_says_its_threads_in_one_of_three_ways(
    fields: dict[str, Any], most: int | None, threads: int
) -> None:
    assert threads_of(row(**fields), most, cpus=8) == threads


def test_rows_that_come_to_the_same_threads_run_once() -> None:
    rows = [row("a", threads=1), row("b", node_pct=25), row("c", node_pct=100), row("d", threads=2)]
    suited = suit(rows, cpus=2)
    assert [one.name for one in suited.rows] == ["a", "c"]
    assert suited.skipped == {
        "b": "here that is 1 thread, the same as a",
        "d": "here that is 2 threads, the same as c",
    }
    assert suited.remarks == {"c": ("2 threads",)}


def test_the_same_threads_of_another_memory_are_another_row() -> None:
    rows = [
        row("a", threads=1),
        row("b", threads=1, memory_bytes="2GiB"),
        row("c", threads=1, layout="holes"),
        row("d", threads=1, nodes=2),
        row("e", threads=1, grow_order=0),
        row("f", threads=1, pre_state="dirty"),
    ]
    assert suit(rows, cpus=2).rows == tuple(rows)


def test_twice_as_many_threads_as_cpus_share_them_and_more_do_not_run() -> None:
    rows = [row("two", threads=2), row("four", threads=4), row("both", nodes=2, threads=2)]
    rows += [row("five", threads=5), row("many", nodes=2, threads=3)]
    suited = suit(rows, cpus=2)
    assert suited.cpus == 4
    assert suited.skipped == {"five": "5 threads on 2 CPUs", "many": "6 threads on 2 CPUs"}
    assert suited.remarks == dict.fromkeys(
        ("four", "both"), ("oversubscribed: 4 threads shared 2 CPUs",)
    )
    (warning,) = suited.warnings
    assert warning.startswith("four, both: several threads shared a CPU")


def test_threads_that_share_cpus_get_no_verdict() -> None:
    published = {"id": "table", "before": {"threads": 0}, "value": "init_ms"}
    rows = [row("two", threads=2, published=published), row("three", threads=3)]
    rows += [row("four", threads=4, published=published)]
    rows += [row("both", nodes=2, threads=2, published=published, no_verdict="for a reason")]
    reasons = {one.name: one.no_verdict for one in suit(rows, cpus=2).rows}
    assert reasons == {
        "two": None,
        "three": None,
        "four": "oversubscribed: 4 threads shared 2 CPUs",
        "both": "for a reason",
    }


def test_what_does_not_run_is_told_by_its_reason() -> None:
    suited = suit([row("a", threads=9), row("b", threads=9, layout="holes")], cpus=1)
    assert suited.rows == ()
    assert suited.by_reason() == {"9 threads on 1 CPU": ["a", "b"]}


def test_a_machine_with_enough_cpus_has_nothing_to_tell() -> None:
    suited = suit([row(threads=8)], cpus=16)
    assert (suited.cpus, suited.skipped, suited.remarks, suited.warnings) == (16, {}, {}, ())


def test_a_row_is_halved_until_it_has_two_sections() -> None:
    smaller = halved(row(memory_bytes="512MiB"))
    assert smaller is not None
    assert smaller.memory_bytes == 256 << 20
    assert halved(smaller) is None


# --- Memory ----------------------------------------------------------------------------


def _is_sorted_with_gaps(node: NodeLayout, ranges: Any) -> bool:
    return all(low[1] < high[0] for low, high in pairwise(ranges)) and all(
        node.start_pfn * 4096 <= start < end <= node.end_pfn * 4096 for start, end in ranges
    )


@given(
    nr_nodes=st.integers(1, 2),
    nr_pages=st.integers(2 * PAGES_PER_SECTION, 8 * PAGES_PER_SECTION),
    layout=st.sampled_from(LAYOUTS),
    seed=st.integers(0, 1 << 32),
)
def test_memory_is_as_memblock_keeps_it(
    nr_nodes: int, nr_pages: int, layout: Layout, seed: int
) -> None:
    nodes = make_nodes(nr_nodes, nr_pages, layout, seed=seed)
    assert nodes == make_nodes(nr_nodes, nr_pages, layout, seed=seed)
    for nid, node in enumerate(nodes):
        assert node.first_deferred_pfn % PAGES_PER_SECTION == 0
        assert node.first_deferred_pfn - node.start_pfn == PAGES_PER_SECTION
        assert 0 < node.end_pfn - node.first_deferred_pfn <= nr_pages
        assert _is_sorted_with_gaps(node, node.memory)
        assert _is_sorted_with_gaps(node, node.reserved)
        assert node.node(nid, FACTS).free  # some of it is free, and the oracle takes it
    assert all(low.map_end_pfn == high.start_pfn for low, high in pairwise(nodes))


def test_a_whole_node_is_one_free_range() -> None:
    (node,) = make_nodes(1, 4 * PAGES_PER_SECTION, "whole")
    assert node.node(0, FACTS).free == ((node.first_deferred_pfn, node.end_pfn),)


def test_holes_split_blocks_and_pageblocks() -> None:
    (node,) = make_nodes(1, 64 * PAGES_PER_SECTION, "holes")
    starts = {start % 1024 for start, _ in node.node(0, FACTS).free}
    assert len(starts) > 50
    assert any(start % (512 * 4096) == 0 for start, _ in node.reserved)


# --- Objects ---------------------------------------------------------------------------


def test_an_object_may_name_functions_to_make_global() -> None:
    named = {one.name: one.functions for one in objects(FOLDER)}
    assert named["mm/mm_init.o"] == ("deferred_init_memmap",)
    assert named["kernel/padata.o"] == ()
