# SPDX-License-Identifier: GPL-2.0-only
"""One run, from its plan to its record: rows, variants and launches in, a record out."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from ream.experiment import Compact, DeferredInit, Fork, Migrate
from ream.kernel.build import compiler_version
from ream.kernel.cache import disk_faults, scratch
from ream.kernel.source import Tree, fetch_tree
from ream.paths import CHECKOUT, PUBLISHED
from ream.progress import Reporter
from ream.published import Table, check_references, load_tables
from ream.record.identity import benchmark_id
from ream.record.machine import Machine, read_machine, warnings
from ream.record.receipt import Kernel, Receipt, SeriesEntry, Settings, read_ream
from ream.record.record import RecordWriter, new_run_id, open_record
from ream.report import letter, table
from ream.report.contract import Summary
from ream.report.summary import summarise
from ream.session.live import measure_live, running_kernel
from ream.session.native import measure_native
from ream.session.request import Measured, Request
from ream.session.vm_compact import measure_compact_vm
from ream.session.vm_deferred import measure_deferred_vm
from ream.session.vm_fork import measure_fork_vm
from ream.session.vm_migrate import measure_migrate_vm
from ream.session.vm_zone_device import measure_vm


class Measure(Protocol):
    """A stage's way to measure what is asked for in kernels of a tree."""

    def __call__(
        self, request: Request, tree: Tree, *, work: Path, record: RecordWriter, reporter: Reporter
    ) -> Measured: ...


@dataclass(frozen=True)
class Outcome:
    """What a run leaves: its record's place, and what it says."""

    path: Path
    summary: Summary


def run_session(request: Request, reporter: Reporter) -> Outcome:
    """Do what is asked: build, launch, verify, record.

    Raises ReamError or one of its kind; nothing is recorded then.
    """
    run_id = new_run_id(request.experiment.name, request.stage)
    tables = load_tables(PUBLISHED)
    check_references(request.experiment.rows, tables)
    with (
        open_record(request.runs, run_id) as record,
        disk_faults(request.cache, "a run"),
        scratch(request.cache / "run" / run_id, reporter.step) as work,
    ):
        machine = read_machine()
        kernel, measured = _measure(
            request, tables, machine=machine, work=work, record=record, reporter=reporter
        )
        receipt = _receipt(request, kernel, measured, machine)
        summary = summarise(
            request.experiment,
            measured.rows,
            measured.samples,
            tables,
            receipt,
            run=run_id,
            stage=request.stage,
            variants=tuple(kernel.variants),
            skipped=measured.skipped,
            unit=measured.unit,
            units=measured.units,
            compacted=measured.compacted,
            remarks=measured.remarks,
        )
        path = record.finish(
            summary.to_object(),
            receipt.to_object(),
            table=table.render(summary),
            letter=letter.render(summary),
        )
    return Outcome(path, summary)


def _measure(
    request: Request,
    tables: Sequence[Table],
    *,
    machine: Machine,
    work: Path,
    record: RecordWriter,
    reporter: Reporter,
) -> tuple[Kernel, Measured]:
    """Measure at the stage that is asked for; with it, what kernels were measured."""
    if request.stage == "live":
        live = measure_live(
            request, tables, machine=machine, work=work, record=record, reporter=reporter
        )
        return running_kernel(machine), live
    tree = fetch_tree(request.tree, cache=request.cache, step=reporter.step)
    measure: Measure = measure_native
    if request.stage == "vm":
        measure = _measure_vm(request)
    measured = measure(request, tree, work=work, record=record, reporter=reporter)
    kernel = Kernel(
        tree=tree.label,
        tree_key=tree.key,
        version=tree.version,
        compiler=compiler_version(),
        config_sha256=measured.config_sha256,
        variants={
            variant.name: tuple(SeriesEntry.of(series) for series in variant.series)
            for variant in request.variants
        },
    )
    return kernel, measured


def _measure_vm(request: Request) -> Measure:
    """What measures this experiment in guests."""
    if isinstance(request.experiment, Fork):
        return measure_fork_vm
    if isinstance(request.experiment, DeferredInit):
        return measure_deferred_vm
    if isinstance(request.experiment, Migrate):
        return measure_migrate_vm
    if isinstance(request.experiment, Compact):
        return measure_compact_vm
    return measure_vm


def _receipt(request: Request, kernel: Kernel, measured: Measured, machine: Machine) -> Receipt:
    # What disturbs a clock does not disturb a count.
    timed = any(measured.unit_of(row.name) == "ns" for row in measured.rows)
    disturbed = warnings(machine, measured.conditions) if timed else ()
    return Receipt(
        machine=machine,
        conditions=measured.conditions,
        kernel=kernel,
        ream=read_ream(CHECKOUT),
        settings=Settings(
            command=request.command,
            seed=request.seed,
            launches=measured.launches,
            rounds={row.name: row.rounds for row in measured.rows},
            options=measured.options,
        ),
        benchmark=benchmark_id(request.experiment.name, request.stage),
        guest=measured.guest,
        symbols=measured.symbols,
        stubs=measured.stubs,
        warnings=(*measured.warnings, *disturbed),
    )
