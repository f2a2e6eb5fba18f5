# SPDX-License-Identifier: GPL-2.0-only
"""Nodes of every kind of layout, grown before or not, by one thread or several."""

from collections.abc import Iterable, Iterator
from itertools import product
from pathlib import Path

from ream.experiment.section import PAGES_PER_SECTION
from ream.oracle.memmap import Facts
from ream.stage.hosted import SEED_BITS, Batch, drawn, some
from ream.stage.native import Build

from .layout import edge_nodes, make_nodes, small_node
from .plan import NativeRow, booted, predicted_plan
from .rows import Layout

A_LAUNCH = 20
"""Nodes whose arrays are files that one runner has open."""
CPUS = 4
"""CPUs of the machine that kernels see, with a thread for each."""
LAYOUTS: tuple[Layout, ...] = ("whole", "unaligned", "holes")


def cases(build: Build, work: Path, seeds: Iterable[int], *, edges: bool) -> Iterator[Batch]:
    draws = [drawn(seed) for seed in seeds]
    rows = [
        NativeRow(
            f"{layout}-{nodes}-nodes-{threads}-threads-grown-{grown}-{pre_state}",
            make_nodes(nodes, 5 * PAGES_PER_SECTION, layout, seed=1),
            threads,
            1,
            pre_state,
            grown,
            limits=False,
            watched=True,
        )
        for layout, nodes, threads, grown, pre_state in product(
            LAYOUTS,
            (1, 2),
            (1, 2),
            (None, 0, 10),
            ("dirty", "lookalike"),
        )
        if edges and (nodes == 1 or grown is None)
    ]
    rows += (*_edges(build.facts), *_boots()) if edges else ()
    for draw in draws:
        layout = draw.choice(LAYOUTS[1:])
        nodes, threads = draw.choice(((1, 1), (1, 2), (1, 3), (1, 4), (2, 1), (2, 2)))
        made = make_nodes(
            nodes, draw.randint(2, 20) * PAGES_PER_SECTION, layout, seed=draw.getrandbits(32)
        )
        grown = draw.choice((None, None, draw.randrange(11))) if nodes == 1 else None
        name = f"mixture-{layout}-{draw.getrandbits(SEED_BITS):08x}"
        rows.append(
            NativeRow(name, made, threads, 1, "lookalike", grown, limits=False, watched=True)
        )
    for its in some(rows, A_LAUNCH):
        yield predicted_plan(its, build, work), CPUS


def _boots() -> Iterator[NativeRow]:
    """All that a boot does; three sections are the least of which any is deferred."""
    for sections, nodes, threads in product((1, 4), (1, 2), (1, 2)):
        made = booted(make_nodes(nodes, sections * PAGES_PER_SECTION, "whole"))
        name = f"boot-{sections}-sections-{nodes}-nodes-{threads}-threads"
        yield NativeRow(name, made, threads, 2, "dirty", limits=False, boot=True)


def _edges(facts: Facts) -> Iterator[NativeRow]:
    nodes_of = {**edge_nodes(), "zeroed": small_node()}
    # Since 6.18 a range is freed before the next is initialised, so what lies around it has to be
    # initialised by then. Ranges that touch are one, unless memblock has flags of one of them.
    if facts["FREES_BY_RANGE"]:
        del nodes_of["touching"]
    for (name, nodes), threads, grown in product(nodes_of.items(), (1, 2), (None, 0)):
        yield NativeRow(
            f"{name}-{threads}-threads-grown-{grown}",
            nodes,
            threads,
            1,
            "lookalike",
            grown,
            limits=False,
            watched=True,
            init_on_free=name == "zeroed",
        )
