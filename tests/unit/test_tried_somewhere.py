# SPDX-License-Identifier: GPL-2.0-only
"""Every published line can be tried by some machine: planned for machines that lack nothing.

`ream replicate --all` is planned as it is for this machine, by the same code, with KVM that runs
guests and more CPUs than any table had, and once for each published machine's number of CPUs,
because what a share of the CPUs comes to depends on it.
"""

import os
from collections.abc import Iterator

import pytest

from experiments.deferred_init import guests as vm_deferred
from experiments.deferred_init.plan import threads_of
from experiments.deferred_init.rows import DeferredInit
from ream.errors import CannotRunHere
from ream.experiment import Experiment, Row, named
from ream.folders import names
from ream.measure.statistics import LEAST_LAUNCHES
from ream.paths import EXPERIMENTS
from ream.published import load_tables
from ream.replicate.claims import Claim, claims, fits, takes
from ream.replicate.perform import request_of
from ream.replicate.plan import Plan, Planned, make_plan
from ream.replicate.render import line_label
from ream.session import guests
from ream.session.request import GuestOptions
from ream.session.suited import suited_rows

TABLES = load_tables()
MANY = 256
CPUS = sorted({MANY, *(table.cpus for table in TABLES if table.cpus)}, reverse=True)
KVM = guests.GuestSetting("kvm", "a guest runs", icount=False, options=GuestOptions())


@pytest.fixture(scope="module")
def experiments() -> list[Experiment]:
    return [named(name) for name in names()]


def rows_that_run(planned: Planned) -> Iterator[tuple[Row, int | None]]:
    """Rows of a run that get times on this machine, as they are run, with their threads."""
    experiment = planned.experiment
    if planned.experiment.launches < LEAST_LAUNCHES:
        return  # which have no interval, and so no verdict
    if planned.stage == "native":
        try:
            rows = suited_rows(request_of(planned, seed=1, runs=EXPERIMENTS)).rows
        except CannotRunHere:
            return
        native = isinstance(experiment, DeferredInit)
        yield from ((row, threads_of(row) if native else None) for row in rows)
    elif isinstance(experiment, DeferredInit):
        for shape, rows in vm_deferred.shapes(experiment.rows, KVM).items():
            if vm_deferred.why_not(shape, KVM) is None:
                yield from ((row, shape.cpus) for row in rows)
    elif planned.stage == "vm":
        yield from ((row, None) for row in experiment.rows)


def tried(plan: Plan, experiments: list[Experiment]) -> set[str]:
    """The lines that a run of this plan has a verdict on, of whatever word."""
    runs = {
        (planned.experiment.name, row.name): (row, threads)
        for planned in plan.runs
        for row, threads in rows_that_run(planned)
        if row.no_verdict is None and row.stands_in is None
    }
    found = set()
    for table in TABLES:
        its = fits(table, experiments)
        for claim in claims(table):
            for fit in its:
                row, threads = runs.get((table.experiment, fit.row.name), (None, None))
                if row is None or claim.printed.ratio is None:
                    continue
                there = claim.printed.threads
                same = there is None or threads is None or there == threads
                if same and takes(table, fit.ref, claim, threads):
                    found.add(label(table.id, claim))
    return found


def label(table_id: str, claim: Claim) -> str:
    return f"{table_id} {line_label(claim)}"


def plan_for(cpus: int, experiments: list[Experiment], monkeypatch: pytest.MonkeyPatch) -> Plan:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: set(range(cpus)))
    monkeypatch.setattr(os, "cpu_count", lambda: cpus)
    return make_plan(TABLES, experiments, kvm_fault=lambda: None)


def lines() -> dict[str, None]:
    return {
        label(table.id, claim): None
        for table in TABLES
        for claim in claims(table)
        if not claim.is_base
    }


NO_VERDICT = [
    # A repair, or single entries, against batching: rows compare batching with none.
    *(f"mprotect-shared-dirty-qemu-falcato {cpus}" for cpus in (1, 2, 4, 8, 16)),
    *(f"mprotect-falcato-v1 {entry}" for entry in (1, 2, 3, 4)),
    "mprotect-falcato-v2 mprotect_bench",
    *(f"mprotect-shared-dirty-metal-{name} shared dirty, 64 MiB" for name in ("falcato", "probe")),
    # Later releases than the one that rows compare.
    *(f"mprotect-shared-dirty-metal-releases {name}" for name in ("v6.18", "v6.18.19", "v6.19.9")),
    "mprotect-shared-dirty-metal-single v7.1",
    # Several processes at once: a row is one.
    *(f"mprotect-shared-dirty-qemu-batching {cpus}" for cpus in (16, 2, 4, 8)),
    *(f"mprotect-shared-dirty-qemu-may18 {cpus}" for cpus in (2, 4)),
    # Calls of a whole program, the rest of which is not printed.
    *(f"mremap-{name} bigheap" for name in ("batch-hint", "batch-raptor-lake", "lkp-bigheap")),
]
"""Lines that no machine tries, for want of a row with their claim."""


def test_every_published_line_can_be_tried_by_some_machine(experiments, monkeypatch) -> None:
    some = set().union(
        *(tried(plan_for(cpus, experiments, monkeypatch), experiments) for cpus in CPUS)
    )
    assert sorted(lines().keys() - some) == sorted(NO_VERDICT)


def test_a_machine_that_lacks_cpus_and_kvm_tries_fewer_lines(experiments, monkeypatch) -> None:
    """Or the test above would count what is planned anywhere, whatever a machine has."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: {0, 1})
    small = tried(make_plan(TABLES, experiments, kvm_fault=lambda: "none"), experiments)
    large = tried(plan_for(MANY, experiments, monkeypatch), experiments)
    assert 0 < len(small) < len(large) - 40
    assert not {line for line in small if "boot_ms" in line}
