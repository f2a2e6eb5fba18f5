# SPDX-License-Identifier: GPL-2.0-only
"""Boots whose deferred pages are compared with the oracle, all of their state."""

from collections.abc import Callable
from pathlib import Path

import pytest

from experiments.deferred_init.boot import (
    Booted,
    Shape,
    deferred_initramfs,
    layout_of,
    run_deferred_boot,
)
from experiments.deferred_init.buddy import DeferredNode
from experiments.deferred_init.guests import MODULES
from experiments.deferred_init.state import States
from experiments.deferred_init.zones import Layout
from fixtures.guests import Builder
from ream.errors import VerificationFailed
from ream.paths import EXPERIMENTS, KERNEL_MODULES
from ream.stage.initramfs import build_init
from ream.stage.vm import BootableKernel, Start

Boots = Callable[..., Booted]

BEFORE = ("before/deferred-init",)
REAM = ("zone-device", "deferred-init")
BASE: tuple[str, ...] = ()
WRONG = Path(__file__).parent / "patches"

GIB = 1 << 30
ONE = Shape(GIB)
TWO_NODES = Shape(4 * GIB, nodes=2)
CPUS = [Shape(2 * GIB, cpus=cpus, present=4) for cpus in (1, 2, 4)]
MOST = Shape(4 * GIB, nodes=2, cpus=4, present=4)
EIGHT = [Shape(2 * GIB, nodes=nodes, cpus=8, present=8) for nodes in (1, 2)]
"""More CPUs than the host may have: they take turns, and what they leave is the same."""


@pytest.fixture(scope="module")
def boots(image: Builder, tmp_path_factory: pytest.TempPathFactory) -> Boots:
    """A function that boots a series in a guest of some shape, once for each of its tests."""
    made: dict[tuple[str, ...], tuple[BootableKernel, Layout]] = {}
    known: dict[tuple[tuple[str, ...], Shape, tuple[str, ...]], Booted] = {}
    init = build_init(tmp_path_factory.mktemp("init"), *EXPERIMENTS.glob("*"))

    def kernel_of(series: tuple[str, ...]) -> tuple[BootableKernel, Layout]:
        if series not in made:
            work = tmp_path_factory.mktemp("kernel")
            built = image(*series, modules=[KERNEL_MODULES / name for name in MODULES])
            kernel = BootableKernel(built.bootable, deferred_initramfs(built, init=init, work=work))
            made[series] = kernel, layout_of(built, work)
        return made[series]

    def run(series: tuple[str, ...], shape: Shape, *append: str) -> Booted:
        key = series, shape, append
        if key not in known:
            kernel, layout = kernel_of(series)
            machine = shape.machine("tcg", icount=shape.present == 1, options=())
            log = tmp_path_factory.mktemp("boot") / "console.log"
            [known[key]] = run_deferred_boot(Start(machine, kernel, log, append), shape, layout)
        return known[key]

    return run


def nodes(booted: Booted) -> list[DeferredNode]:
    return [state.node for state in booted.states]


def test_the_base_leaves_what_is_predicted(boots: Boots) -> None:
    booted = boots(BASE, ONE)
    [state] = booted.states
    assert state.taken == ()
    assert len(state.node.free) > 1
    # All but what is initialised early, and what boot reserves.
    assert 0.7 * ONE.memory_bytes < state.nr_pages * 4096 < ONE.memory_bytes
    assert 20 < booted.times.init_ns / state.nr_pages < 60
    assert booted.times.init_ns < booted.times.boot_ns
    # In jiffies, of which it may be one short or begun.
    assert booted.times.message_ms == pytest.approx(booted.times.init_ns / 1e6, abs=1.5)


def test_two_nodes_are_both_initialised(boots: Boots) -> None:
    booted = boots(BASE, TWO_NODES)
    assert [node.nid for node in nodes(booted)] == [0, 1]
    assert [node.zone for node in nodes(booted)] == [0, 1]
    one = boots(BASE, ONE)
    each = [its.times.init_ns / its.nr_pages for its in (booted, one)]
    assert each[0] == pytest.approx(each[1], rel=0.1)


def test_more_memory_takes_in_proportion_longer(boots: Boots) -> None:
    """So all else between the two messages is little: a tenth of what 1 GiB takes."""
    little, much = boots(BASE, ONE), boots(BASE, Shape(8 * GIB))
    per_page = (much.times.init_ns - little.times.init_ns) / (much.nr_pages - little.nr_pages)
    assert 0 < little.times.init_ns - per_page * little.nr_pages < 0.1 * little.times.init_ns


@pytest.mark.parametrize("series", [BASE, BEFORE, REAM], ids=["base", "before", "ream"])
def test_the_state_is_the_same_whatever_the_kernel_and_its_threads(
    boots: Boots, series: tuple[str, ...]
) -> None:
    states = States()
    for shape in CPUS:
        states.check("base", boots(BASE, shape).states)
        assert nodes(boots(series, shape)) == nodes(boots(BASE, shape))
        states.check("series", boots(series, shape).states)
    assert nodes(boots(series, CPUS[0])) == nodes(boots(series, CPUS[-1]))


@pytest.mark.parametrize("series", [BASE, BEFORE, REAM], ids=["base", "before", "ream"])
def test_two_nodes_with_two_threads_each_leave_what_is_predicted(
    boots: Boots, series: tuple[str, ...]
) -> None:
    states = States()
    states.check("base", boots(BASE, MOST).states)
    states.check("series", boots(series, MOST).states)


@pytest.mark.parametrize("shape", EIGHT, ids=lambda shape: shape.name)
@pytest.mark.parametrize("series", [BASE, BEFORE, REAM], ids=["base", "before", "ream"])
def test_eight_cpus_leave_what_is_predicted(
    boots: Boots, series: tuple[str, ...], shape: Shape
) -> None:
    states = States()
    states.check("base", boots(BASE, shape).states)
    states.check("series", boots(series, shape).states)
    assert [node.nid for node in nodes(boots(series, shape))] == [*range(shape.nodes)]


def test_a_limit_of_threads_changes_no_state(boots: Boots) -> None:
    free, limited = (boots(REAM, CPUS[-1], f"deferred_init_threads={n}") for n in (0, 2))
    states = States()
    states.check("free", free.states)
    states.check("limited", limited.states)


def test_a_boot_counts_the_same_twice(boots: Boots) -> None:
    again = boots(BASE, ONE, "panic=-1")  # once more what it is told anyway
    assert again.times.init_ns == pytest.approx(boots(BASE, ONE).times.init_ns, rel=0.001)


def test_a_page_that_keeps_a_reference_is_seen(boots: Boots) -> None:
    with pytest.raises(VerificationFailed, match=r"byte 52 of the struct page.* is 0x01, not 0x00"):
        boots((str(WRONG / "deferred-refcount.patch"),), ONE)


def test_pages_that_are_freed_and_not_counted_are_seen(boots: Boots) -> None:
    with pytest.raises(VerificationFailed, match=r"PGFREE has grown by \d+, \d+ pages were deferr"):
        boots((str(WRONG / "deferred-not-counted.patch"),), ONE)
