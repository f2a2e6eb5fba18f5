# SPDX-License-Identifier: GPL-2.0-only
"""Every published line can be tried by some machine: planned for machines that lack nothing.

`ream replicate --all` is planned as it is for this machine, by the same code, with KVM that runs
guests and more CPUs than any table had, and once for each published machine's number of CPUs,
because what a share of the CPUs comes to depends on it. A line that no plan tries is listed.
"""

import os
from collections.abc import Iterator

import pytest

from ream.errors import CannotRunHere
from ream.experiment import DeferredInit, Experiment, Row, load
from ream.paths import EXPERIMENTS, PUBLISHED
from ream.published import load_tables
from ream.replicate.claims import Claim, claims, fits, takes
from ream.replicate.perform import request_of
from ream.replicate.plan import Plan, Planned, make_plan
from ream.replicate.render import line_label
from ream.session import guests, vm_deferred
from ream.session.native import suited_rows
from ream.session.request import GuestOptions
from ream.stage.deferred_init import threads_of

TABLES = load_tables(PUBLISHED)
MANY = 256
CPUS = sorted({MANY, *(table.cpus for table in TABLES if table.cpus)}, reverse=True)
KVM = guests.Setting("kvm", "a guest runs", icount=False, options=GuestOptions())

NOBODY = """
deferred-init-skylake 2, 1: boot_ms
deferred-init-skylake 12, 6: boot_ms
deferred-init-skylake 12, 6: init_ms
deferred-init-skylake 25, 13: boot_ms
deferred-init-skylake 25, 13: init_ms
deferred-init-skylake 37, 19: boot_ms
deferred-init-skylake 37, 19: init_ms
deferred-init-skylake 50, 26: boot_ms
deferred-init-skylake 75, 39: boot_ms
deferred-init-skylake 75, 39: init_ms
deferred-init-skylake 100, 52: boot_ms
deferred-init-broadwell-guest 3, 1: boot_ms
deferred-init-broadwell-guest 12, 4: boot_ms
deferred-init-broadwell-guest 25, 8: boot_ms
deferred-init-broadwell-guest 38, 12: boot_ms
deferred-init-broadwell-guest 50, 16: boot_ms
deferred-init-broadwell-guest 75, 24: boot_ms
deferred-init-broadwell-guest 100, 32: boot_ms
deferred-init-haswell 3, 1: boot_ms
deferred-init-haswell 11, 4: boot_ms
deferred-init-haswell 25, 9: boot_ms
deferred-init-haswell 25, 9: init_ms
deferred-init-haswell 36, 13: boot_ms
deferred-init-haswell 36, 13: init_ms
deferred-init-haswell 50, 18: boot_ms
deferred-init-haswell 75, 27: boot_ms
deferred-init-haswell 75, 27: init_ms
deferred-init-haswell 100, 36: boot_ms
deferred-init-zen-guest-16cpu 12, 2: boot_ms
deferred-init-zen-guest-16cpu 25, 4: boot_ms
deferred-init-zen-guest-16cpu 38, 6: boot_ms
deferred-init-zen-guest-16cpu 38, 6: init_ms
deferred-init-zen-guest-16cpu 50, 8: boot_ms
deferred-init-zen-guest-16cpu 75, 12: boot_ms
deferred-init-zen-guest-16cpu 100, 16: boot_ms
deferred-init-zen-guest-4cpu 50, 2: boot_ms
deferred-init-zen-guest-4cpu 75, 3: boot_ms
deferred-init-zen-guest-4cpu 100, 4: boot_ms
deferred-init-haswell-guest-4cpu 50, 2: boot_ms
deferred-init-haswell-guest-4cpu 75, 3: boot_ms
deferred-init-haswell-guest-4cpu 100, 4: boot_ms
deferred-init-triplett 0, 23398907
deferred-init-triplett 1, 24189223
unmap-pte-batch-v1 4
unmap-pte-batch-v1 16
unmap-pte-batch-v1 32
unmap-pte-batch-v1 64
unmap-pte-batch-v1 128
unmap-pte-batch-v1 256
unmap-pte-batch-v1 512
unmap-pte-batch-v1 1024
unmap-pte-batch-v1 2048
compact-dma dma: sys_pct
compact-dma busy-dma: hog_iterations
compact-dma busy-dma: sys_pct
"""
"""Lines that no machine can try, as of now: this list has to get shorter until it is empty. Take
out what a new row tries; a line that would have to be added is a fault.
"""


@pytest.fixture(scope="module")
def experiments() -> list[Experiment]:
    return [load(path) for path in sorted(EXPERIMENTS.glob("*.toml"))]


def rows_that_run(planned: Planned) -> Iterator[tuple[Row, int | None]]:
    """Rows of a run that get times on this machine, as they are run, with their threads."""
    experiment = planned.experiment
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


def test_every_published_line_can_be_tried_by_some_machine(experiments, monkeypatch) -> None:
    some = set().union(
        *(tried(plan_for(cpus, experiments, monkeypatch), experiments) for cpus in CPUS)
    )
    nobody = {line for line in lines() if line not in some}
    known = set(NOBODY.split("\n")) - {""}
    assert sorted(nobody - known) == []
    assert sorted(known - nobody) == [], "some machine can try these now: take them out of NOBODY"


def test_a_machine_that_lacks_cpus_and_kvm_tries_fewer_lines(experiments, monkeypatch) -> None:
    """Or the test above would count what is planned anywhere, whatever a machine has."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: {0, 1})
    small = tried(make_plan(TABLES, experiments, kvm_fault=lambda: "none"), experiments)
    large = tried(plan_for(MANY, experiments, monkeypatch), experiments)
    assert 0 < len(small) < len(large) - 40
    assert not {line for line in small if "boot_ms" in line}
