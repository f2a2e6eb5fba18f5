# SPDX-License-Identifier: GPL-2.0-only
"""A run of the native stage: builds and launches programs, and records every sample."""

import json
import shutil
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Self

from ream.count.emulator import CPUS
from ream.errors import CannotRunHere, VariantFails
from ream.experiment import CONTROL, Row
from ream.kernel.source import Tree
from ream.measure.plan import Launch, plan_programs, without
from ream.measure.sample import Sample
from ream.measure.whole import LeftOut
from ream.progress import Reporter
from ream.record.journal import Journal
from ream.record.machine import conditions, take_snapshot
from ream.record.record import RecordWriter
from ream.session.builds import by_facts, check_pages, of_all
from ream.session.correctness import verify
from ream.session.counting import CounterOf, count_facts, counters, small
from ream.session.failing import (
    UNHOSTED,
    WRONG,
    failures,
    leave_out,
    otherwise,
    otherwise_words,
    try_otherwise,
)
from ream.session.launches import LaunchPlan, Reached, Start, samples_of
from ream.session.pointless import Untouched, left_out, trees_of
from ream.session.request import Measured, Request
from ream.session.suited import by_config, suited_programs, suited_rows
from ream.stage import native
from ream.stage.bench import Bench, build_bench, config_files
from ream.stage.confine import say_unconfined
from ream.stage.hosted import Hosted, Planned
from ream.stage.memory import Sized, available_bytes, fit_rows
from ream.stage.native import Suited
from ream.stage.reach import Entered, changes, entered
from ream.stage.runner_plan import plan_of_trees

LEAST_HUGE_RATIO = 0.95


@dataclass(frozen=True)
class Part:
    """Rows of one program with kernels of one configuration, with the builds and launches."""

    its: Hosted[Row]
    plan: LaunchPlan
    bench: Bench
    builds: tuple[native.Build, ...]
    """The builds of all kinds of kernels; the first has those of the run's own tree."""
    shrunk: tuple[str, ...]

    @property
    def build(self) -> native.Build:
        """The build of the run's own tree."""
        return self.builds[0]

    def without(self, names: Collection[str]) -> Self:
        """Return the part without some of the variants."""
        launches = without(names, self.plan.launches)
        return replace(self, plan=replace(self.plan, launches=launches))

    def planned(self) -> Planned:
        """Return the plan of the rows, each with the images of every kind of kernel."""
        plan, places = self.plan, [self.bench.work]
        for number in range(1, len(self.builds)):
            places.append(self.bench.work / f"tree-{number}")
            places[-1].mkdir(exist_ok=True)
        plans = (
            self.its.plan_of(plan.rows, plan.threads, build, place)
            for build, place in zip(self.builds, places, strict=True)
        )
        return plan_of_trees(plans, self.bench.work)


def measure_native(
    request: Request, tree: Tree, *, work: Path, record: RecordWriter, reporter: Reporter
) -> Measured:
    """Build the program and launch it as often as requested; raises what the native stage raises.

    A given series that is wrong, or that needs what the stage does not provide, is left out from
    then on if another one remains. The others keep their completed rounds. A wrong series is first
    checked against other behaviour that the specification permits.
    """
    while True:
        try:
            return _measure_right(request, tree, work=work, record=record, reporter=reporter)
        except VariantFails as failed:
            if not try_otherwise(failed, request, record.journal, reporter):
                leave_out(failed, request, record.journal, reporter)
            record.begin()


def _measure_right(
    request: Request, tree: Tree, *, work: Path, record: RecordWriter, reporter: Reporter
) -> Measured:
    """Measure all variants except failed ones; raises VariantFails if another one fails."""
    wrong, unhosted = failures(record.journal, WRONG), failures(record.journal, UNHOSTED)
    failed = {*wrong, *unhosted}
    counter_of = counters(request, record, reporter)
    suited = suited_rows(request)
    _say_skipped(suited, reporter)
    parts = parts_of(
        request,
        tree,
        failed=failed,
        work=work,
        journal=record.journal,
        reporter=reporter,
    )
    untouched = _untouched(request, parts, reporter)
    parts = [part.without(untouched) for part in parts]
    nr_verified = operations_verified(request, parts, reporter)
    not_hosted = {
        name: left
        for part in parts
        for name, left in _left_out(request, part, record.journal, reporter).items()
    }
    start = take_snapshot()
    reached = Reached()
    samples = [
        sample
        for part in parts
        for sample in _measure(part, reached, failed, counter_of, record=record, reporter=reporter)
    ]
    bench = parts[0].bench
    return Measured(
        rows=in_order(request.experiment.rows, [row for part in parts for row in part.plan.rows]),
        samples=tuple(samples),
        conditions=conditions(start, take_snapshot()),
        launches=request.experiment.launches,
        config_sha256=bench.config_sha256,
        options={
            "threads": request.threads,
            "operations_verified": nr_verified,
            **({} if request.control is None else {CONTROL: request.control}),
            **{f"config_sha256 of {p.plan.label}": p.bench.config_sha256 for p in parts[1:]},
        },
        warnings=(
            *otherwise_words(request, record.journal, failed),
            *_warnings(request, parts, suited, reached),
        ),
        unit="instructions" if request.count else "ns",
        count=count_facts(request),
        wrong=wrong,
        untouched={**untouched, **{name: _first_line(what) for name, what in unhosted.items()}},
        remarks=suited.remarks,
        skipped=suited.skipped,
        symbols=symbols_of(parts),
        stubs=reached.stubs(),
        cpu_clock_step_ns=None if request.count else reached.cpu_clock_step_ns or None,
        left_out=not_hosted,
    )


def symbols_of(parts: Sequence[Part]) -> dict[str, Any]:
    """Return the object that each function came from, by variant and program, for the receipt."""
    found: dict[str, Any] = {}
    for its, bench in {part.its.label: (part.its, part.bench) for part in parts}.values():
        symbols = native.symbol_map(bench.kernels.values(), bench.roots)
        of = f" of {its.label}" if its.label else ""
        found |= {f"{variant}{of}": held for variant, held in symbols.items()}
    return found


def _say_skipped(suited: Suited, reporter: Reporter) -> None:
    for reason, names in suited.by_reason().items():
        reporter.step(f"{', '.join(names)}: not run: {reason}")


def _warnings(
    request: Request, parts: Sequence[Part], suited: Suited, reached: Reached
) -> Iterator[str]:
    """Yield what may bias a run; if it counts, without what only affects times."""
    yield from (text for part in parts for text in part.shrunk)
    if request.count is None:
        yield from suited.warnings
        yield from small_pages(reached.huge_ratio)


def parts_of(
    request: Request,
    tree: Tree,
    *,
    failed: Collection[str],
    work: Path,
    journal: Journal,
    reporter: Reporter,
) -> list[Part]:
    """Return what is launched, by program and configuration.

    Launches are planned with all variants, including failed ones, so that their numbers and random
    choices do not change when a variant fails.
    """
    planned = plan_programs(
        [variant.name for variant in request.variants],
        launches=request.experiment.launches,
        seed=request.seed,
    )
    launches = without(failed, planned)
    return [
        _part(
            its,
            request,
            tree,
            replace(suited, rows=rows),
            config,
            launches=launches,
            work=work,
            journal=journal,
            reporter=reporter,
        )
        for its, suited in suited_programs(request)
        for config, rows in by_config(suited.rows).items()
    ]


def _first_line(text: str) -> str:
    return text.splitlines()[0]


def _untouched(request: Request, parts: Sequence[Part], reporter: Reporter) -> dict[str, str]:
    """Return given series that change nothing that any row executes, with the reason.

    Raises NothingChanges or Inconclusive if no other series is given.
    """
    trees = trees_of(request)
    # In a run that counts, such a series has equal counts.
    if not trees or request.measure_anyway or request.count is not None:
        return {}
    reporter.step("comparing objects, and finding what each row executes")
    found = [_pointless(part, trees) for part in parts]
    return left_out(found, request, reporter)


def operations_verified(request: Request, parts: Sequence[Part], reporter: Reporter) -> int:
    """Verify all kernels before any is timed; return the number of operations verified."""
    return sum(
        verify(
            part.its,
            request,
            bench=part.bench,
            builds=part.builds,
            launches=part.plan.launches[: len(part.plan.launches) // request.experiment.launches],
            reporter=reporter,
        )
        for part in parts
    )


def _pointless(part: Part, trees: Mapping[str, str]) -> dict[str, Untouched]:
    its, plan, bench = part.its, part.plan, part.bench
    changed = {name: changes(bench, name, tree) for name, tree in trees.items()}
    rows: Entered = {}
    if any(any(one.by_object.values()) for one in changed.values()):
        tree = next(iter(trees.values()))
        with its.plan_of(plan.rows, plan.threads, part.build, bench.work) as planned:
            rows = entered(bench, tree, planned, cpus=plan.cpus)
    found = {}
    for name, one in changed.items():
        if (why := one.pointless(rows, trees[name])) is not None:
            same = None if any(one.by_object.values()) else frozenset(one.by_object)
            sources = (bench.roots[kernel].parent for kernel in (trees[name], name))
            found[name] = Untouched(why, same, *sources)
    return found


def _part(
    its: Hosted[Row],
    request: Request,
    tree: Tree,
    suited: Suited,
    config: tuple[str, ...],
    *,
    launches: tuple[Launch, ...],
    work: Path,
    journal: Journal,
    reporter: Reporter,
) -> Part:
    """Build the programs of rows of one configuration, and fit the rows into memory."""
    label = ", ".join(filter(None, (its.label, *config)))
    place = work / ("-".join(filter(None, (its.label, *config))) or "plain")
    place.mkdir(exist_ok=True)
    bench = build_bench(
        tree,
        request.variants,
        folder=its.folder,
        cache=request.cache,
        work=place,
        step=reporter.step,
        fragments=config_files(config),
        trees=request.trees,
    ).on_cpu(request.cpu)
    bench = bench if request.confined else bench.unconfined()
    say_unconfined(bench.confinement, reporter.step)
    nr_programs = len(launches) // request.experiment.launches
    bench, builds = by_facts(bench, launches[:nr_programs], otherwise(request, journal))
    if not its.any_page:
        check_pages(bench, builds)
    sized = of_all(its.sized, builds)
    wanted = suited.rows
    if request.count is not None and not request.count.full:
        wanted = small(wanted, sized)
    rows, shrunk = rows_that_fit(wanted, builds[0], sized, journal, label)
    for text in shrunk:
        reporter.step(text)
    plan = LaunchPlan(
        rows,
        launches,
        request.threads,
        suited.cpus if request.count is None else suited.cpus or CPUS,
        label,
        request.control,
        at_once=request.count is not None and not request.count.full,
        emulated=request.count is not None or bool(bench.emulator),
    )
    return Part(its, plan, bench, builds, shrunk)


def rows_that_fit(
    rows: tuple[Row, ...],
    build: native.Build,
    sized: Sized[Row],
    journal: Journal,
    label: str = "",
) -> tuple[tuple[Row, ...], tuple[str, ...]]:
    """Return rows sized to the memory available when the run begins; later launches use them too.

    Raises CannotRunHere if a resumed run no longer fits.
    """
    name = f"rows {label}".rstrip()
    kept = journal.settled(name)
    if kept is None:
        fitted, shrunk = fit_rows(rows, available_bytes(), build, sized)
        as_run = [row.model_dump(mode="json", exclude_unset=True) for row in fitted]
        journal.settle(name, {"as_run": as_run, "shrunk": shrunk})
        return fitted, shrunk
    as_began = tuple(
        type(row).model_validate_json(json.dumps(fields))
        for row, fields in zip(rows, kept["as_run"], strict=True)
    )
    if sized.needed_bytes(as_began, build) > (available := available_bytes()):
        raise CannotRunHere(
            f"the run needs {sized.needed_bytes(as_began, build) >> 20} MiB of memory, as it began;"
            f" {available >> 20} MiB are available: free some"
        )
    return as_began, tuple(kept["shrunk"])


def _left_out(
    request: Request, part: Part, journal: Journal, reporter: Reporter
) -> dict[str, LeftOut | str]:
    """Return, for rows that time a part of a call, the time of the rest when the run began."""
    measure = part.its.left_out
    if measure is None or request.count is not None:
        return {}
    place = f"left out {part.plan.label}".rstrip()
    kept = journal.settled(place)
    if kept is None:
        found = measure(part.plan.rows, seed=request.seed, work=part.bench.work, step=reporter.step)
        kept = {name: one if isinstance(one, str) else asdict(one) for name, one in found.items()}
        journal.settle(place, kept)
    return {name: one if isinstance(one, str) else LeftOut(**one) for name, one in kept.items()}


def in_order(asked: Sequence[Row], ran: Sequence[Row]) -> tuple[Row, ...]:
    """Return all requested rows, with those that ran in the size in which they ran."""
    as_run = {row.name: row for row in ran}
    return tuple(as_run.get(row.name, row) for row in asked)


def _measure(
    part: Part,
    reached: Reached,
    failed: Collection[str],
    counter_of: CounterOf | None,
    *,
    record: RecordWriter,
    reporter: Reporter,
) -> Iterator[Sample]:
    """Run every launch of a part; counter_of: makes a launch's counter; None: it is timed."""
    plan, bench = part.plan, part.bench
    reporter.step("predicting what memory must hold")
    with part.planned() as (plan_file, descriptors):

        @contextmanager
        def linked(launch: Launch) -> Iterator[Start]:
            program = bench.link(launch)

            def start(
                done: Mapping[str, int], heard: Callable[[str], None]
            ) -> Iterator[native.Event]:
                return native.launch_once(
                    program,
                    launch,
                    plan_file,
                    descriptors,
                    cpus=plan.cpus,
                    done=done,
                    control=plan.control,
                    counter=counter_of(program) if counter_of else None,
                    heard=heard,
                )

            yield start
            shutil.rmtree(program.path.parent, ignore_errors=True)

        yield from samples_of(plan, linked, reached, failed, record=record, reporter=reporter)


def small_pages(huge_ratio: float) -> Iterator[str]:
    """Yield a warning if much of the map was not in huge pages."""
    if huge_ratio < LEAST_HUGE_RATIO:
        yield (
            f"in one launch only {100 * huge_ratio:.0f} % of the map lay in huge pages (less than "
            f"{100 * LEAST_HUGE_RATIO:.0f} %), where a kernel maps all of it so: free "
            "memory, or defragment it, and run again"
        )
