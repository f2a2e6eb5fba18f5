# SPDX-License-Identifier: GPL-2.0-only
"""Migrations at their edges, and random mixtures copied by the CPU, threads or a faulty engine."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from ream.stage.hosted import Batch, drawn, some
from ream.stage.native import Build

from .oracle.folios import Place
from .oracle.mixture import correctness_migrations, mixture
from .plan import Case, Engine, case_of, place_of, written_plan

A_LAUNCH = 20
"""Migrations whose arrays are files that one runner has open."""
GIVEN_AWAY = ("__srcu_read_lock", "dma_map_page_attrs", "queue_work_on")
"""Functions of which one is called wherever a copying module, engine or helper is used.

A CPU that copies a folio calls cond_resched() between its pages.
"""
CPUS = 4
"""CPUs of the machine that kernels see: three for channels, one for the thread that waits."""
ENGINES: tuple[tuple[Engine, int], ...] = (("serial", 0), ("dma", 2))
FAULTS = ("fail_at", "short_at", "stall_at", "vanish_at")


def cases(build: Build, work: Path, seeds: Iterable[int], *, edges: bool) -> Iterator[Batch]:
    facts, place = build.facts, place_of(build)
    told: list[Case] = [
        case_of(f"{name}-{engine}", one, facts, place, engine=engine, channels=channels)
        for name, one in (correctness_migrations() if edges else {}).items()
        for engine, channels in ENGINES
    ]
    told += (_mixed(seed, facts, place) for seed in seeds)
    for its in some(told, A_LAUNCH):
        yield written_plan(its, facts, place, work), CPUS


def _mixed(seed: int, facts: Mapping[str, int], place: Place) -> Case:
    """A mixture with a random copier; a DMA engine may have a fault."""
    draw = drawn(seed)
    engine: Engine = draw.choice(("serial", "threads", "dma"))
    faults = {}
    if engine == "dma" and draw.random() < 1 / 2:
        # Late, but in time: what a channel does not give back in time does not move at all.
        faults = {draw.choice(FAULTS): draw.randint(1, 64), "stall_ms": 5}
        faults["no_results"] = int(draw.random() < 1 / 8)
    return case_of(
        f"mixture-{seed}-{engine}",
        mixture(seed, splits=True),
        facts,
        place,
        engine=engine,
        channels=draw.randint(1, 3) if engine != "serial" else 0,
        faults=faults,
    )
