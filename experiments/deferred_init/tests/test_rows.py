# SPDX-License-Identifier: GPL-2.0-only
"""Which deferred-init rows run on how many CPUs, and the memory that their nodes have."""

import os
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.deferred_init.layout import NodeLayout, edge_nodes, make_nodes
from experiments.deferred_init.plan import (
    FOLDER,
    halved,
    plan_ranges,
    suit,
    threads_of,
)
from experiments.deferred_init.rows import DeferredInitRow, Layout
from ream.experiment import Stage, named
from ream.experiment.section import PAGES_PER_SECTION
from ream.folders import file_of
from ream.published import Table, load_file
from ream.replicate.claims import claims
from ream.replicate.plan import make_plan
from ream.stage.bench import objects
from ream.stage.suit import nr_nodes

FACTS = {"PAGE_SIZE": 4096}
EXPERIMENT = named("deferred-init")
TABLES = load_file(file_of("deferred-init").with_name("published.toml"))
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


@pytest.mark.parametrize("nodes", [1, 2])  # of the row; the machine has two
def test_a_percentage_is_of_the_cpus_of_one_of_the_machines_nodes(nodes: int) -> None:
    assert threads_of(row(node_pct=50, nodes=nodes), cpus=104, nodes=2) == 26
    assert threads_of(row(nodes=nodes), cpus=104, nodes=2) == 52


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.id)
def test_a_percentage_comes_to_the_threads_that_its_table_prints(table: Table) -> None:
    for params in (line.params for line in table.rows if line.params.get("node_pct")):
        of_node = max(line.params["threads"] for line in table.rows)
        asked = row(node_pct=params["node_pct"])
        assert threads_of(asked, cpus=table.cpus, nodes=table.cpus // of_node) == params["threads"]


def test_nodes_are_those_whose_cpus_we_may_use(tmp_path: Path) -> None:
    assert nr_nodes(tmp_path) == 1
    usable = min(os.sched_getaffinity(0))
    for node, cpu in ((0, usable), (1, usable), (2, 8191)):
        (tmp_path / f"sys/devices/system/node/node{node}/cpu{cpu}").mkdir(parents=True)
    assert nr_nodes(tmp_path) == 2


# --- Published lines -------------------------------------------------------------------


def claimed(value: str | None) -> set[tuple[str, int]]:
    """Tables and threads of every printed line that has this quantity."""
    return {
        (table.id, claim.printed.threads)
        for table in TABLES
        for claim in claims(table)
        if not claim.is_base and claim.value == value and claim.printed.threads
    }


def answered(stage: Stage, value: str | None) -> set[tuple[str, int]]:
    """Claimed lines for which a row of the stage has exactly as many threads."""
    return claimed(value) & {
        (ref.id, its.threads)
        for its in EXPERIMENT.rows
        for ref in its.published
        if its.stage == stage and ref.value == value and its.threads
    }


def test_every_printed_line_has_rows_with_its_number_of_threads() -> None:
    assert len(claimed("init_ms")) == len(claimed("boot_ms")) == 36
    assert len(claimed(None)) == 1  # of both nodes
    assert answered("native", "init_ms") == answered("vm", "init_ms") == claimed("init_ms")
    assert answered("vm", "boot_ms") == claimed("boot_ms")
    assert answered("native", None) == claimed(None)


def test_guests_of_published_lines_have_nearly_the_memory_of_the_node() -> None:
    by_id = {table.id: table for table in TABLES}
    for its in EXPERIMENT.at("vm").rows:
        for ref in its.published:
            assert 0.8 < (its.memory_bytes >> 30) / (by_id[ref.id].node_gib or 0) < 1.25


def test_the_published_machine_could_run_every_row_but_none_twice() -> None:
    suited = suit(EXPERIMENT.at("native").rows, cpus=104, nodes=2)
    ran = {one.name: threads_of(one, cpus=104, nodes=2) for one in suited.rows}
    assert {ran[f"{n}-threads"] for _, n in claimed("init_ms") if n > 1} <= {*ran.values()}
    assert suited.skipped == {
        "2-pct": "here that is 1 thread, the same as 1-thread",
        **{
            f"{pct}-pct": f"here that is {n} threads, the same as {n}-threads"
            for pct, n in ((12, 6), (25, 13), (37, 19), (50, 26), (75, 39), (100, 52))
        },
    }
    assert suited.warnings == ()
    assert all(one.no_verdict is None for one in suited.rows)


def test_where_kvm_runs_guests_they_do_every_line_but_those_of_the_boot_log() -> None:
    plan = make_plan(TABLES, [EXPERIMENT], kvm_fault=lambda: None)
    rows = {run.stage: [one.name for one in run.experiment.rows] for run in plan.runs}
    assert rows["native"] == ["96g-48-threads"]
    assert rows["vm"] == [one.name for one in EXPERIMENT.at("vm").rows if one.published]


def test_a_small_machine_says_which_threads_it_has_no_cpus_for() -> None:
    skipped = suit(EXPERIMENT.at("native").rows, cpus=2).skipped
    assert skipped["6-threads"] == "6 threads on 2 CPUs"
    assert skipped["96g-48-threads"] == "48 threads on 2 CPUs"
    assert skipped["25-pct"] == "here that is 1 thread, the same as 1-thread"


def test_a_thread_for_each_node_may_be_all_that_there_are_cpus_for() -> None:
    rows = [row("one", nodes=2), row("two", nodes=2, threads=2)]
    said = suit(rows, cpus=2).remarks
    assert said["two"][0].startswith("one thread for each of 2 nodes takes all of 2 CPUs already")
    assert suit(rows, cpus=4).remarks == {"one": ("2 threads of each node",)}


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
    shared = "oversubscribed: 4 threads shared 2 CPUs"
    assert (suited.remarks["four"], suited.remarks["both"][-1]) == ((shared,), shared)
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


def test_memory_that_touches_stays_apart_because_of_a_flag() -> None:
    (node,) = edge_nodes()["touching"]
    ranges = [tuple(map(int, one)) for one in plan_ranges((node,))]
    kinds = [(kind, start) for kind, start, _ in ranges]
    assert [kind for kind, _ in kinds] == [0, 0, 2, 0, 2]
    assert len(node.node(0, FACTS).free) == 4


def test_nodes_that_meet_in_a_block_have_free_halves_of_it() -> None:
    low, high = edge_nodes()["zones-meet-in-a-block"]
    assert low.end_pfn == high.start_pfn
    assert low.end_pfn % 1024 == 512
    assert high.early_blocks == ((high.start_pfn, 9),)


# --- Objects ---------------------------------------------------------------------------


def test_an_object_may_name_what_is_to_be_made_global() -> None:
    named = {one.name: one.functions for one in objects(FOLDER)}
    assert named["mm/mm_init.o"] == (
        "deferred_init_memmap",
        "pgdat_init_all_done_comp",
        "pgdat_init_n_undone",
    )
    assert named["kernel/padata.o"] == ()
