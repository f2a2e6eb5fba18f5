# SPDX-License-Identifier: GPL-2.0-only
"""What kernels must get right before any of them is timed: edges by name, and mixtures by seed.

Rows are uniform memory. What is wrong of pinned pages, of shared mappings, of a swap entry among
others or of a device's last section shows in none of them, so it is looked for here.
"""

import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from itertools import islice, product
from pathlib import Path
from typing import Literal, TypeVar

from ream.experiment.deferred_init import Layout
from ream.experiment.section import PAGES_PER_SECTION
from ream.oracle.fork import fork, zap
from ream.oracle.fork_cases import correctness_mappings
from ream.oracle.fork_images import NO_RSS, State, initial
from ream.oracle.fork_mixture import random_mapping
from ream.oracle.mapping import Mapping as ForkMapping
from ream.oracle.memmap import DeviceRange
from ream.oracle.migrate_folios import Place
from ream.oracle.migrate_mixture import correctness_migrations, mixture
from ream.stage import deferred_init, migrate, zone_device
from ream.stage import fork as fork_stage
from ream.stage.deferred_layout import edge_nodes, make_nodes, small_node
from ream.stage.native import Build

MIXTURES = 40
"""Of each experiment, after the edges; more take --verify-minutes."""
A_LAUNCH = 20
"""Migrations or nodes whose arrays are files that one runner has open."""
MAPPINGS_A_LAUNCH = 8
"""Some hundred files each, with all that is done with them; a process may have 1024 open."""
DEVICES_A_LAUNCH = 40
SEED_BITS = 32
START_PFN = 1 << 20
FAR_PFN = 1 << 33
"""No 32 bits hold it."""
OLD_BLOCKS = 0xAA
"""Of two pageblocks: another migratetype, and not to be scanned, which has to stay."""
DEVICE_ORDERS = (0, 1, 4, 9, 10, 18)
DEVICE_TYPES = ("PRIVATE", "COHERENT", "FS_DAX", "GENERIC", "PCI_P2PDMA")
MOST_DEVICE_SECTIONS = 6
CPUS = 4
"""Of the machine that kernels see: three channels and who waits for them, or four threads."""
ENGINES: tuple[tuple[migrate.Engine, int], ...] = (("serial", 0), ("dma", 2))
LAYOUTS: tuple[Layout, ...] = ("whole", "unaligned", "holes")
FAULTS = ("fail_at", "short_at", "stall_at", "vanish_at")

Planned = AbstractContextManager[tuple[Path, tuple[int, ...]]]
"""A plan file, and the descriptors that a runner needs open."""
Batch = tuple[Planned, int]
"""What one launch does, and on how many CPUs; 0: those there are."""
Any_ = TypeVar("Any_")
Who = Literal["parent", "child"]


def _drawn(seed: int | str) -> random.Random:
    return random.Random(seed)  # noqa: S311  (lots, no secrets)


def _some(items: Iterable[Any_], most: int) -> Iterator[list[Any_]]:
    rest = iter(items)
    while some := list(islice(rest, most)):
        yield some


# --- fork --------------------------------------------------------------------------------


def story(name: str, mapping: ForkMapping, build: Build) -> Iterator[fork_stage.Case]:
    """Everything that can be done with a mapping, once in each state that it can be in.

    Of each, what a kernel leaves that takes entries in batches, and one that takes them one by
    one; both begin with the same memory.
    """
    facts = build.facts

    def forked(state: State, *, batched: bool = True) -> State:
        return fork(mapping, state, facts, batched=batched)

    def without(step: fork_stage.Step, state: State, who: Who, *, batched: bool = True) -> State:
        return zap(
            mapping,
            state,
            who,
            facts,
            drop_markers=step not in {"discard", "truncate"},
            even_cows=step != "truncate",
            batched=batched,
        )

    fresh = initial(mapping, facts, fork_stage.place_of(build))
    both = forked(fresh)
    apart = replace(both, child=None, child_rss=NO_RSS)
    parent_left, child_left = without("unmap", both, "child"), without("unmap", both, "parent")
    acts: tuple[tuple[str, fork_stage.Step, State, Who | None], ...] = (
        ("fork", "copy", fresh, None),
        ("second-child", "copy", apart, None),
        ("refork", "copy", parent_left, None),
        ("never-forked-unmap", "unmap", fresh, "parent"),
        ("never-forked-exit", "exit", fresh, "parent"),
        ("never-forked-discard", "discard", fresh, "parent"),
        ("never-forked-truncate", "truncate", fresh, "parent"),
        ("fork-on-a-busy-cpu", "copy", fresh, None),
        ("overlapped-unmap", "unmap", fresh, "parent"),
        ("parent-first-unmap", "unmap", both, "parent"),
        ("parent-first-exit", "exit", both, "parent"),
        ("child-first-unmap", "unmap-child", both, "child"),
        ("child-first-exit", "exit-child", both, "child"),
        ("child-last-unmap", "unmap-child", child_left, "child"),
        ("child-last-exit", "exit-child", child_left, "child"),
        ("parent-last-unmap", "unmap", parent_left, "parent"),
        ("parent-last-exit", "exit", parent_left, "parent"),
    )
    for act, step, before, who in acts:
        if step == "truncate" and mapping.anonymous:
            continue  # no file that could be
        after, single = (
            without(step, before, who, batched=batched) if who else forked(before, batched=batched)
            for batched in (True, False)
        )
        yield fork_stage.case_of(
            f"{name}/{act}",
            mapping,
            step,
            facts=facts,
            before=before,
            after=after,
            single=single,
            busy=act == "fork-on-a-busy-cpu",
            overlapped=act == "overlapped-unmap",
        )


def _fork(build: Build, work: Path, seeds: Iterable[int], *, edges: bool) -> Iterator[Batch]:
    mappings = [*correctness_mappings().items()] if edges else []
    mappings += ((f"mixture-{seed}", random_mapping(seed)) for seed in seeds)
    for some in _some(mappings, MAPPINGS_A_LAUNCH):
        cases = (case for name, mapping in some for case in story(name, mapping, build))
        yield fork_stage.written_plan(cases, work), 0


# --- zone-device -------------------------------------------------------------------------


def _zone_device(build: Build, work: Path, seeds: Iterable[int], *, edges: bool) -> Iterator[Batch]:
    devices = [*_devices()] if edges else []
    devices += map(_random_device, seeds)
    rows = (
        zone_device.NativeRow(words, device, _held_before(words), 1, 0, old_blocks=OLD_BLOCKS)
        for device, words in ((device, _words(device)) for device in devices)
    )
    for some in _some(rows, DEVICES_A_LAUNCH):
        yield zone_device.predicted_plan(some, build, work), 0


def _held_before(words: str) -> str:
    return _drawn(words).choice(("evicted", "bound"))


def _words(device: DeviceRange) -> str:
    """Which one it is, in less than 64 characters."""
    early = f"-early-{device.early_pages:x}" if device.early_pages else ""
    node = f"-node-{device.nid}" if device.nid else ""
    pages = f"{device.start_pfn:x}+{device.nr_pages:x}-{device.skip_pages:x}"
    return f"{device.type}-order-{device.order}-pfn-{pages}{node}{early}"


def _devices() -> Iterator[DeviceRange]:
    """Every type, order and place of the map; lengths and starts that are no whole section."""
    for order, kind, altmap, early in product(
        DEVICE_ORDERS, DEVICE_TYPES, (False, True), (False, True)
    ):
        nr_pages = max(2 * PAGES_PER_SECTION, 2 << order)
        skip = zone_device.altmap_pages(nr_pages, order) if altmap else 0
        yield DeviceRange(START_PFN, nr_pages, skip, order, kind, nr_pages * early, 0)
    for nr_pages, order in ((PAGES_PER_SECTION + 512, 0), (1, 0), (513, 0), (1024, 9), (512, 4)):
        yield DeviceRange(START_PFN, nr_pages, 0, order, "FS_DAX", 0, 0)
    for offset, order in ((512, 0), (PAGES_PER_SECTION - 512, 0), (2048, 9), (512, 4), (100, 9)):
        yield DeviceRange(START_PFN + offset, 3 * PAGES_PER_SECTION, 0, order, "GENERIC", 0, 0)
    for early_pages, order in product((PAGES_PER_SECTION, 2 * PAGES_PER_SECTION), (0, 4, 9)):
        yield DeviceRange(START_PFN, 3 * PAGES_PER_SECTION, 0, order, "PRIVATE", early_pages, 0)
    for order in (0, 9):
        yield DeviceRange(FAR_PFN, 2 * PAGES_PER_SECTION, 0, order, "FS_DAX", 0, 0)
    for order in (0, 9):
        yield DeviceRange(START_PFN, 2 * PAGES_PER_SECTION, 0, order, "COHERENT", 0, 1)


def _random_device(seed: int) -> DeviceRange:
    draw = _drawn(seed)
    order = draw.choice(DEVICE_ORDERS[:-1])
    size = 1 << order
    nr_pages = draw.randint(1, MOST_DEVICE_SECTIONS * PAGES_PER_SECTION // size) * size
    start = START_PFN + draw.randrange(PAGES_PER_SECTION // size) * size
    skip = draw.randrange(nr_pages // size) * size if draw.random() < 1 / 2 else 0
    kind = draw.choice(DEVICE_TYPES)
    early_pages = nr_pages if draw.random() < 1 / 2 else 0
    return DeviceRange(start, nr_pages, skip, order, kind, early_pages, draw.randrange(2))


# --- deferred-init -----------------------------------------------------------------------


def _deferred_init(
    build: Build, work: Path, seeds: Iterable[int], *, edges: bool
) -> Iterator[Batch]:
    draws = [_drawn(seed) for seed in seeds]
    rows = [
        deferred_init.NativeRow(
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
    rows += _deferred_edges() if edges else ()
    for draw in draws:
        layout = draw.choice(LAYOUTS[1:])
        nodes, threads = draw.choice(((1, 1), (1, 2), (1, 3), (1, 4), (2, 1), (2, 2)))
        its = make_nodes(
            nodes, draw.randint(2, 20) * PAGES_PER_SECTION, layout, seed=draw.getrandbits(32)
        )
        grown = draw.choice((None, None, draw.randrange(11))) if nodes == 1 else None
        name = f"mixture-{layout}-{draw.getrandbits(SEED_BITS):08x}"
        rows.append(
            deferred_init.NativeRow(
                name, its, threads, 1, "lookalike", grown, limits=False, watched=True
            )
        )
    for some in _some(rows, A_LAUNCH):
        yield deferred_init.predicted_plan(some, build, work), CPUS


def _deferred_edges() -> Iterator[deferred_init.NativeRow]:
    nodes_of = {**edge_nodes(), "zeroed": small_node()}
    for (name, nodes), threads, grown in product(nodes_of.items(), (1, 2), (None, 0)):
        yield deferred_init.NativeRow(
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


# --- migrate, and what compact has of it ----------------------------------------------------


def _migrate(build: Build, work: Path, seeds: Iterable[int], *, edges: bool) -> Iterator[Batch]:
    facts, place = build.facts, migrate.place_of(build)
    cases: list[migrate.Case] = [
        migrate.case_of(f"{name}-{engine}", one, facts, place, engine=engine, channels=channels)
        for name, one in (correctness_migrations() if edges else {}).items()
        for engine, channels in ENGINES
    ]
    cases += (_mixed(seed, facts, place) for seed in seeds)
    for some in _some(cases, A_LAUNCH):
        yield migrate.written_plan(some, facts, place, work), CPUS


def _mixed(seed: int, facts: Mapping[str, int], place: Place) -> migrate.Case:
    """A mixture that somebody copies, who may have a fault."""
    draw = _drawn(seed)
    engine: migrate.Engine = draw.choice(("serial", "threads", "dma"))
    faults = {}
    if engine == "dma" and draw.random() < 1 / 2:
        faults = {draw.choice(FAULTS): draw.randint(1, 64), "timeout_ms": 30}
    return migrate.case_of(
        f"mixture-{seed}-{engine}",
        mixture(seed, splits=True),
        facts,
        place,
        engine=engine,
        channels=draw.randint(1, 3) if engine != "serial" else 0,
        faults=faults,
    )


_CASES: Mapping[str, Callable[..., Iterator[Batch]]] = {
    "compact": _migrate,
    "deferred-init": _deferred_init,
    "fork": _fork,
    "migrate": _migrate,
    "zone-device": _zone_device,
}


def cases_of(
    experiment: str, build: Build, work: Path, *, seed: int, pass_number: int
) -> Iterator[Batch]:
    """What one pass launches: in the first one all edges, in each one mixtures of its own.

    The seed draws all mixtures; their names hold what makes each of them again.
    """
    draw = _drawn(f"{seed} {pass_number}")
    seeds = [draw.getrandbits(SEED_BITS) for _ in range(MIXTURES)]
    return _CASES[experiment](build, work, seeds, edges=pass_number == 0)
