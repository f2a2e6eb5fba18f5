# SPDX-License-Identifier: GPL-2.0-only
"""Executes one run: takes rows, variants and launches, and writes a record."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from ream.counted import counted
from ream.folders import TABLES
from ream.history.pooled import between_runs
from ream.history.shares import share_remarks
from ream.kernel.build import compiler_version
from ream.kernel.cache import disk_faults, scratch
from ream.kernel.confine import building
from ream.kernel.setup import Setup
from ream.kernel.source import Tree, fetch_tree, kept_tree
from ream.kernel.variant import rehearse
from ream.paths import CHECKOUT, RECORDS
from ream.progress import Reporter
from ream.published import Table, check_references, load_tables
from ream.record.machine import Conditions, Machine, read_machine
from ream.record.noise import Noise, all_warnings, watch
from ream.record.partial import Interrupted, interrupted, read_plan, run_of
from ream.record.parts import cpu_type
from ream.record.receipt import (
    BuiltKernel,
    BuiltTree,
    Ream,
    Receipt,
    SeriesEntry,
    Settings,
    anonymous,
    read_ream,
)
from ream.record.record import (
    CONSOLE_BYTES,
    LEAST_BYTES,
    PLAN,
    ROW_BYTES,
    SAMPLE_BYTES,
    SERIES,
    RecordWriter,
    new_run_id,
    newest_time,
    open_record,
    pretty,
)
from ream.report import letter, table
from ream.report.contract import Summary
from ream.report.ran import RAN, Ran, summary_id
from ream.report.summary import summarise
from ream.session.benchmark import benchmark_id
from ream.session.computer import measure_programs
from ream.session.edition import of_tree
from ream.session.guests import doubts
from ream.session.live import measure_live, running_kernel
from ream.session.native import measure_native
from ream.session.plan import Basis, check_basis, plan_object, series_text
from ream.session.request import Measured, Request
from ream.session.until import NOT_STABLE, until_stable, worst
from ream.session.vm import check_memory, measure_vm
from ream.stage.qemu import qemu_version
from ream.stage.steps import steps_of
from ream.width import WIDEST, as_wide_as

MOST_FILLS = 6
"""The most fills in a round, over all numbers of CPUs."""


class Measure(Protocol):
    """A stage's function that measures a request in kernels of a tree."""

    def __call__(
        self, request: Request, tree: Tree, *, work: Path, record: RecordWriter, reporter: Reporter
    ) -> Measured: ...


@dataclass(frozen=True)
class Outcome:
    """The result of a run: the path of its record and the summary."""

    path: Path
    summary: Summary


def run_session(request: Request, reporter: Reporter) -> Outcome:
    """Execute a request: build, launch, verify, record; or resume an interrupted run.

    Raises ReamError or a subclass. Then there is no record, but what was measured may be kept for
    resuming; a note of the error gives the command.
    """
    with building(confined=request.confined):
        return _run_confined(request, reporter)


def _run_confined(request: Request, reporter: Reporter) -> Outcome:
    run_id = _run_id(request, reporter)
    tables = load_tables(request.experiment.folder / TABLES)
    check_references(request.experiment.rows, tables)
    with (
        open_record(
            request.runs,
            run_id,
            resume=request.resume is not None,
            nr_bytes=record_bytes(request),
        ) as record,
        disk_faults(request.cache, "a run"),
        scratch(request.cache / "run" / run_id, reporter.step) as work,
    ):
        run = Run(request, run_id, read_machine(), tables, record, reporter)
        run.begin()
        with watch(record.append_noise, begins_s=record.noise_until()) as noise:
            measured, ended = until_stable(run, work)
            measured = replace(
                measured, between_runs=run.between_runs(), remarks=run.remarks(measured)
            )
            receipt = run.receipt(measured, noise.during(reporter.measured_since), ended)
        return finished(run, measured, receipt)


def finished(run: "Run", measured: Measured, receipt: Receipt) -> Outcome:
    """Write the summary of what was measured, and give the record its final name."""
    summary, record = run.summary(measured, receipt), run.record
    record.write(PLAN, pretty(anonymous({**run.plan, RAN: run.ran(measured)})))
    with as_wide_as(WIDEST):  # a record is the same from any terminal
        printed = table.render(summary)
    path = record.finish(
        summary.to_object(), receipt.to_object(), table=printed, letter=letter.render(summary)
    )
    return Outcome(path, summary)


@dataclass(frozen=True)
class Elsewhere:
    """The build for a run on another machine. It may be from another checkout than the record."""

    kernel: BuiltKernel
    benchmark: str
    ream: Ream


def benchmark_of(request: Request) -> str:
    counted = request.count is not None
    arch = request.setup.target
    return benchmark_id(request.experiment, request.stage, counted=counted, arch=arch)


def _compiler(setup: Setup) -> str:
    return compiler_version(setup.cc, setup.target)


def _run_id(request: Request, reporter: Reporter) -> str:
    """Return the id of the record to resume, or a new one; report what else could be resumed."""
    if request.resume is not None:
        return run_of(request.resume)
    if left := [one for one in interrupted(request.runs) if not one.running]:
        reporter.step(_left(left))
    newest = newest_time(request.runs)
    if newest is not None and newest > datetime.now(UTC):
        reporter.step(
            f"the clock is behind the newest record, of {newest:%Y-%m-%d %H:%M:%S} UTC: this one's"
            " name continues from there, so that it is the last"
        )
    return new_run_id(request.experiment.name, request.stage, runs=request.runs)


def _left(left: Sequence[Interrupted]) -> str:
    """Return a line on runs that can be resumed: the newest, and how to list all."""
    newest = left[-1]
    which = newest.run if len(left) == 1 else f"{len(left)} runs were interrupted; {newest.run}"
    again = "" if len(left) == 1 else f"; `{newest.history}` names the others"
    return (
        f"{which} was interrupted after {counted(newest.nr_samples, 'sample')}:"
        f" `{newest.resume}` goes on with it, `{newest.discard}` removes it{again}"
    )


def record_bytes(request: Request) -> int:
    """Return the most bytes that the record of a run may take."""
    rows, launches = request.experiment.rows, request.experiment.launches
    if request.stable is not None:
        launches = request.stable.most_launches(launches)
    subjects = len(request.variants) + MOST_FILLS
    boots = len(rows) * len(request.variants) * launches if request.stage == "vm" else 0
    return (
        LEAST_BYTES
        + ROW_BYTES * len(rows)
        + SAMPLE_BYTES * sum(row.rounds for row in rows) * launches * subjects
        + CONSOLE_BYTES * boots
    )


@dataclass
class Run:
    """A run in progress."""

    request: Request
    run_id: str
    machine: Machine
    tables: Sequence[Table]
    record: RecordWriter
    reporter: Reporter
    tree: Tree | None = None
    """The kernel source; None in the live stage."""
    plan: Mapping[str, Any] = field(default_factory=dict)
    resumed: tuple[str, ...] = ()
    """The times at which the run was resumed."""
    met: list[Conditions] = field(default_factory=list)
    """Conditions during each pass of measuring."""
    basis: Basis | None = None
    elsewhere: Elsewhere | None = None
    """The build, if the run took place on another machine."""

    def begin(self) -> None:
        """Find the tree and write the plan, or compare it with the plan of the record to resume.

        Raises BadUsage if they differ, and what fetching a tree raises.
        """
        request = self.request
        # QEMU and memory are checked before a kernel is fetched.
        qemu = qemu_version(request.guest.arch) if request.stage == "vm" else None
        if request.stage == "vm":
            check_memory(request)
        if request.stage != "live":
            self.tree = self._tree()
            self.request = replace(self.request, trees=self._other_trees())
            request = self._suited(self.tree)
        kernel = running_kernel(self.machine)
        self.basis = Basis(
            benchmark=benchmark_of(request),
            machine=self.machine.id,
            nr_usable_cpus=self.machine.nr_usable_cpus,
            tree_key=self.tree.key if self.tree else kernel.tree_key,
            other_trees={name: one.key for name, one in request.trees.items()},
            compiler=_compiler(request.setup) if self.tree else kernel.compiler,
            qemu=qemu,
        )
        self.plan = self.plan_of(request)
        journal = self.record.journal
        if request.resume is None:
            self.record.write(PLAN, pretty(self.plan))
            self.record.write(SERIES, series_text(request))
            return
        check_basis(request.resume, self.basis)
        now = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
        self.resumed = (*(journal.settled("resumed") or ()), now)
        journal.note("resumed", self.resumed)
        dropped = "; what was not whole is measured again" if journal.nr_dropped else ""
        self.reporter.step(f"going on with {self.run_id}{dropped}")

    def plan_of(self, request: Request) -> dict[str, Any]:
        """Return the object of plan.json of a request; the basis must be known."""
        assert self.basis is not None
        return plan_object(request, self.run_id, self.basis)

    def _suited(self, tree: Tree) -> Request:
        """Restrict the request to the variants that apply to a tree other than the default."""
        self.request, notes = of_tree(
            self.request,
            tree.version,
            lambda patches: rehearse(patches, tree, cache=self.request.cache),
        )
        for note in notes:
            self.reporter.step(note)
        return self.request

    def _tree(self) -> Tree:
        """Return the tree, on a resume from the cache if possible, as the source may change."""
        request = self.request
        if request.resume is not None:
            kept = kept_tree(request.cache, str(read_plan(request.resume).get("tree_key")))
            if kept is not None:
                return kept.built(request.setup)
        fetched = fetch_tree(request.tree, cache=request.cache, step=self.reporter.step)
        return fetched.built(request.setup)

    def _other_trees(self) -> dict[str, Tree]:
        """Return kernel sources of variants that do not use the run's source or options."""
        request, kept = self.request, {}
        if request.resume is not None:
            kept = read_plan(request.resume).get("other_trees", {})
        found = {}
        for one in request.variants:
            if one.tree is not None or one.setup is not None:
                tree = kept_tree(request.cache, str(kept.get(one.name))) or fetch_tree(
                    one.tree or request.tree, cache=request.cache, step=self.reporter.step
                )
                setup = one.setup or request.setup
                built = tree.built(replace(setup, cc=request.setup.cc, arch=request.setup.arch))
                if built != self.tree:
                    found[one.name] = built
        return found

    def measure(self, launches: int, work: Path) -> Measured:
        """Do this many launches; those in the journal are replayed."""
        self.record.begin()
        experiment = self.request.experiment.model_copy(update={"launches": launches})
        request = replace(self.request, experiment=experiment)
        nr_before = self.record.journal.nr_added
        measured = self._measure(request, work)
        if self.record.journal.nr_added > nr_before:  # something was measured, not only replayed
            self.met.append(measured.conditions)
        return replace(measured, conditions=worst(self.met or [measured.conditions]))

    def _measure(self, request: Request, work: Path) -> Measured:
        if self.tree is None:
            return measure_live(
                request,
                self.tables,
                machine=self.machine,
                work=work,
                record=self.record,
                reporter=self.reporter,
            )
        measure: Measure = measure_vm if request.stage == "vm" else measure_native
        if request.stage == "native" and (steps := steps_of(request.experiment)):
            measure = partial(measure_programs, steps)
        return measure(request, self.tree, work=work, record=self.record, reporter=self.reporter)

    def kernel(self, config_sha256: str) -> BuiltKernel:
        """Describe the measured kernels."""
        if self.elsewhere is not None:
            return self.elsewhere.kernel
        if self.tree is None:
            return running_kernel(self.machine)
        return BuiltKernel(
            tree=self.tree.label,
            tree_key=self.tree.key,
            version=self.tree.version,
            compiler=_compiler(self.tree.setup),
            config_sha256=config_sha256,
            config=self.tree.setup.config or None,
            trees={
                name: BuiltTree(
                    tree=one.label,
                    tree_key=one.key,
                    version=one.version,
                    config=one.setup.config or None,
                )
                for name, one in self.request.trees.items()
            },
            variants={
                variant.name: tuple(SeriesEntry.of(series) for series in variant.series)
                for variant in self.request.variants
            },
            compared_with={
                variant.name: variant.compared_with
                for variant in self.request.variants
                if variant.compared_with is not None
            },
        )

    def between_runs(self) -> Mapping[str, float]:
        """How much runs of this experiment vary on this type of CPU, from the shipped records."""
        request = self.request
        if request.stage != "native" or request.count is not None:
            return {}
        cpu = cpu_type(self.machine.model_dump())
        return between_runs(RECORDS, request.experiment.name, cpu)

    def remarks(self, measured: Measured) -> Mapping[str, tuple[str, ...]]:
        """Return the stage's remarks, and how well hosted times predict the running kernel's."""
        request = self.request
        if request.stage != "native" or request.count is not None:
            return measured.remarks
        cpu = cpu_type(self.machine.model_dump())
        found = share_remarks(measured.rows, cpu, (request.runs, RECORDS))
        of_stage = measured.remarks
        return {
            **of_stage,
            **{name: (*of_stage.get(name, ()), *more) for name, more in found.items()},
        }

    def receipt(self, measured: Measured, noise: Noise | None, ended: str | None) -> Receipt:
        request = self.request
        # What disturbs times does not disturb counts.
        timed = any(measured.unit_of(row.name) == "ns" for row in measured.rows)
        disturbed = all_warnings(self.machine, measured.conditions, noise) if timed else ()
        return Receipt(
            machine=self.machine,
            conditions=measured.conditions,
            kernel=self.kernel(measured.config_sha256),
            ream=self.elsewhere.ream if self.elsewhere else read_ream(CHECKOUT),
            settings=Settings(
                command=request.command,
                seed=request.seed,
                launches=measured.launches,
                rounds={row.name: row.rounds for row in measured.rows},
                options=measured.options,
                cell=request.cell,
                resumed=self.resumed,
                ended=ended,
            ),
            benchmark=self.elsewhere.benchmark if self.elsewhere else benchmark_of(request),
            summary_id=summary_id(request.experiment.folder),
            guest=measured.guest,
            count=measured.count,
            symbols=measured.symbols,
            stubs=measured.stubs,
            cpu_clock_step_ns=measured.cpu_clock_step_ns,
            warnings=(
                *measured.warnings,
                *doubts(measured.samples, measured.unit_of),
                *disturbed,
                *self._doubts(timed, ended),
            ),
            noise=noise,
        )

    def _doubts(self, timed: bool, ended: str | None) -> Iterator[str]:
        for name, tree in self.request.trees.items():
            other = "kernel source" if self.tree and tree.key != self.tree.key else "configuration"
            yield (
                f"{name} is of another {other}, {tree.label}: its ratio is of all in which the two"
                f" differ{', configuration included' if other == 'kernel source' else ''}"
            )
        if ended is not None and ended.startswith(NOT_STABLE):
            yield f"{ended}; a quieter machine, or a longer run, narrows it"
        if self.resumed and timed:
            yield (
                f"resumed {counted(len(self.resumed), 'time')}, last at"
                f" {self.resumed[-1]}: rounds of a launch may come from two starts, and load, steal"
                " and noise are of the last"
            )

    def ran(self, measured: Measured) -> dict[str, Any]:
        """Return what plan.json adds for the summary besides samples and receipt."""
        return Ran.of(self.request.experiment, measured).model_dump(mode="json")

    def so_far(self, measured: Measured) -> Summary:
        """Return the summary as it would be if the run ended now."""
        return self.summary(measured, self.receipt(measured, None, None))

    def summary(self, measured: Measured, receipt: Receipt) -> Summary:
        return summarise(
            self.request.experiment,
            measured,
            self.tables,
            receipt,
            run=self.run_id,
            stage=self.request.stage,
            variants=tuple(receipt.kernel.variants),
        )
