# SPDX-License-Identifier: GPL-2.0-only
"""Makes records of a kit's result; the native stage's code reads the output of the launches."""

import json
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from ream.counted import counted
from ream.errors import BadUsage, CannotRunHere, ReamError, VerificationFailed
from ream.experiment import Row
from ream.folders import TABLES
from ream.kit.contents import ExperimentOfKit, LaunchOfKit, PartOfKit
from ream.kit.result import Result, Said, read_result
from ream.kit.visits import left_out_of
from ream.measure.plan import Launch
from ream.measure.sample import Sample
from ream.progress import Reporter
from ream.published import load_tables
from ream.record.machine import Machine, conditions
from ream.record.record import PARTIAL, PLAN, SERIES, is_record, open_record, pretty
from ream.session.launches import LaunchPlan, Reached, Start, Starter, samples_of
from ream.session.native import in_order, small_pages
from ream.session.plan import request_of
from ream.session.request import Measured, Request
from ream.session.run import Elsewhere, Run, finished, record_bytes
from ream.session.suited import suited_rows
from ream.stage import native
from ream.stage.link import Program
from ream.stage.native import EXIT_NO_RESOURCE, Suited
from ream.stage.suit import on_cpus

ID_DIGITS = 4
NOWHERE = Path("/nonexistent")
"""Stands for the path of programs that ran on another machine."""
NOT_BEGUN = "no launch of it fitted into the minutes that the kit was given"


def records_of(path: Path, runs: Path, *, cache: Path, reporter: Reporter) -> list[Path]:
    """Write a record for each experiment of a result; return their paths.

    A result that was read before gives the same records. Raises BadUsage if the file is no result,
    or damaged. An experiment that fails raises an error after all others have their records:
    VerificationFailed if a sample's memory was wrong, ReamError if a program failed or was not the
    kit's.
    """
    result = read_result(path)
    found, failed = [], list[ReamError]()
    with tempfile.TemporaryDirectory() as work:
        machine = result.machine(Path(work))
    for its in result.kit.experiments:
        run_id = _run_id(result, its)
        if is_record(runs / run_id):
            found.append(runs / run_id)
            continue
        try:
            if not _whole(result, its):
                reporter.step(f"{path}: {its.name}: {NOT_BEGUN}: it has no record")
                continue
            found.append(_record(result, its, machine, run_id, runs, cache, reporter))
            reporter.step(f"record: {found[-1]}")
        except ReamError as cause:
            failed.append(cause)
    if failed and all(isinstance(one, BadUsage) for one in failed):
        raise BadUsage("\n".join(map(str, failed)))
    if failed:
        words = "\n".join(f"{path}: {one}" for one in failed)
        if any(isinstance(one, VerificationFailed) for one in failed):
            raise VerificationFailed(words)
        raise ReamError(words)
    return found


def _run_id(result: Result, its: ExperimentOfKit) -> str:
    """Return a run's id, the same each time for one result, so that no launch counts twice."""
    digits = result.digest[:ID_DIGITS]
    return f"{result.facts['began']}-{its.name}-native-{digits}"


def _whole(result: Result, its: ExperimentOfKit) -> bool:
    return any(
        said is not None and said.code != EXIT_NO_RESOURCE
        for part in its.parts
        for said in (result.said(part, launch) for launch in part.launches)
    )


def _record(  # noqa: PLR0917
    result: Result,
    its: ExperimentOfKit,
    machine: Machine,
    run_id: str,
    runs: Path,
    cache: Path,
    reporter: Reporter,
) -> Path:
    request = replace(_request(its, result), runs=runs, cache=cache)
    tables = load_tables(request.experiment.folder / TABLES)
    plan = {
        **its.plan,
        "run": run_id,
        "machine": machine.id,
        "nr_usable_cpus": machine.nr_usable_cpus,
    }
    built = Elsewhere(its.kernel, its.benchmark, result.kit.ream)
    with open_record(runs, run_id, keeps=False, nr_bytes=record_bytes(request)) as record:
        record.write(PLAN, pretty(plan))
        run = Run(request, run_id, machine, tables, record, reporter, plan=plan, elsewhere=built)
        measured = _measured(run, result, its)
        measured = replace(measured, between_runs=run.between_runs())
        return finished(run, measured, run.receipt(measured, None, None)).path


def _request(its: ExperimentOfKit, result: Result) -> Request:
    """Return the request that the kit was made for, from plan.json."""
    where = f"{result.path}: {its.name}"
    if folder := its.plan.get("experiment_folder"):  # its code would run here
        raise BadUsage(f"{where}: it is of {folder}, and kits are of this checkout's experiments")
    with tempfile.TemporaryDirectory() as work:
        partial = Path(work) / f".kit{PARTIAL}"
        partial.mkdir()
        (partial / PLAN).write_text(json.dumps(dict(its.plan)))
        (partial / SERIES).write_text(its.series)
        try:
            return replace(request_of(partial, cache=partial), resume=None)
        except BadUsage as cause:
            raise BadUsage(f"{where}: this ream cannot read its plan: {cause}") from cause


def _measured(run: Run, result: Result, its: ExperimentOfKit) -> Measured:
    """Return the launches' output in the form in which the native stage returns it."""
    request, reached = run.request, Reached()
    with on_cpus(int(result.cpus)):
        suited = suited_rows(request)
    ran, samples, notes = list[Row](), list[Sample](), list[str]()
    skipped, launches = dict(suited.skipped), 0
    for part in its.parts:
        if (plan := _plan(request, result, part, suited, notes)) is None:
            continue
        if not plan.launches:
            skipped |= {row.name: NOT_BEGUN for row in plan.rows}
            continue
        launches = max(launches, len(plan.launches))
        ran += plan.rows
        said = samples_of(
            plan, _starter(result, part), reached, (), record=run.record, reporter=run.reporter
        )
        samples += (_verified(one, result) for one in said)
    if not samples:
        raise CannotRunHere(f"{result.path}: {its.name}: no launch of it was whole")
    return Measured(
        rows=in_order(request.experiment.rows, ran),
        samples=tuple(samples),
        conditions=conditions(*result.moments()),
        launches=launches,
        config_sha256=its.parts[0].config_sha256,
        options={
            "threads": request.threads,
            "operations_verified": its.operations_verified,
            "kit": result.kit_id,
            **{f"config_sha256 of {p.label}": p.config_sha256 for p in its.parts[1:]},
        },
        warnings=(*notes, *suited.warnings, *small_pages(reached.huge_ratio)),
        remarks=suited.remarks,
        skipped=skipped,
        symbols=its.symbols,
        stubs=reached.stubs(),
        cpu_clock_step_ns=reached.cpu_clock_step_ns or None,
        left_out=left_out_of(request, its, result, ran, machine=run.machine),
    )


def _plan(
    request: Request, result: Result, part: PartOfKit, suited: Suited, notes: list[str]
) -> LaunchPlan | None:
    """Return the part of one program's plan that ran; None if it has no row for that machine."""
    plan = part.plans.get(result.cpus)
    if plan is None:
        return None
    kinds = {row.name: row for row in suited.rows}
    rows = []
    for fields in plan.rows:
        row = kinds.get(str(fields.get("name")))
        if row is None:
            raise BadUsage(
                f"{result.path}: {part.name}: this version of ream would not run"
                f" {fields.get('name')} there; read it with the version of the kit,"
                f" {result.kit.ream.line()}"
            )
        rows.append(type(row).model_validate_json(json.dumps(dict(fields))))
    begun = [one for one in part.launches if result.said(part, one) is not None]
    whole = [one for one in begun if _of(result, part, one).code != EXIT_NO_RESOURCE]
    notes += plan.shrunk
    if len(whole) < len(part.launches):
        left = counted(len(part.launches), "launch", "launches")
        notes.append(f"{part.name}: {len(whole)} of {left} ran in the kit's minutes")
    return LaunchPlan(
        tuple(rows), tuple(one.launch() for one in whole), request.threads, plan.cpus, part.label
    )


def _of(result: Result, part: PartOfKit, launch: LaunchOfKit) -> Said:
    said = result.said(part, launch)
    assert said is not None
    return said


def _starter(result: Result, part: PartOfKit) -> Starter:
    """Return a starter that replays the output of launches that ran on the other machine."""
    by_number = {one.number: one for one in part.launches}

    @contextmanager
    def ran(launch: Launch) -> Iterator[Start]:
        said = _of(result, part, by_number[launch.number])
        program = Program(NOWHERE / part.name, launch.link_order, NOWHERE)

        def start(_done: Mapping[str, int], heard: Callable[[str], None]) -> Iterator[native.Event]:
            return native.events_of(
                said.lines, lambda: (said.code, said.words), program, launch, heard=heard
            )

        yield start

    return ran


def _verified(sample: Sample, result: Result) -> Sample:
    if not sample.verified:
        raise VerificationFailed(f"{result.path}: {sample.row}: a sample that was not verified")
    return sample
