# SPDX-License-Identifier: GPL-2.0-only
"""Performs the runs of a replication one after the other, as `ream run` does."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ream.errors import BadUsage, CannotRunHere, ReamError
from ream.experiment import Stage
from ream.paths import cache_dir
from ream.progress import Reporter
from ream.published import check_references, load_tables
from ream.record.record import Record
from ream.replicate.outcome import JudgedRecord
from ream.replicate.plan import Planned
from ream.session.dry_run import plan_text, wrapped
from ream.session.request import Request
from ream.session.run import run_session
from ream.variants import choose_variants

_TOLD = ("time", "launches", "guest", "not run")
"""The lines of a run's own plan that the plan of several runs repeats."""


@dataclass
class Performed:
    """The results of the runs so far."""

    sources: list[JudgedRecord] = field(default_factory=list)
    absent: dict[tuple[str, Stage], str] = field(default_factory=dict)
    """For each experiment and stage without a record, the reason."""
    failure: ReamError | None = None
    """The first failure other than a machine that lacks something."""


def request_of(planned: Planned, *, seed: int, runs: Path) -> Request:
    """The same request that the run's own command line makes."""
    return Request(
        experiment=planned.experiment,
        stage=planned.stage,
        variants=choose_variants(planned.experiment),
        tree=None,
        threads=None,
        seed=seed,
        runs=runs,
        cache=cache_dir(),
        command=planned.command(seed),
    )


def _check_references(runs: Sequence[Planned]) -> None:
    """Raise BadUsage with the rows of all runs whose table has no such line."""
    check_references((row for one in runs for row in one.experiment.rows), load_tables())


def plan_lines(runs: Sequence[Planned], *, seed: int, directory: Path) -> Iterator[str]:
    """The planned runs, with their tables and durations, as lines; nothing is built or kept.

    Raises BadUsage as perform() does.
    """
    _check_references(runs)
    for planned in runs:
        request = request_of(planned, seed=seed, runs=directory)
        yield f"run         {request.command}"
        yield from wrapped([f"tables      {', '.join(planned.tables)}"])
        told = False
        try:
            text = plan_text(request)
        except CannotRunHere as cause:  # the others run all the same
            yield f"not run     {cause}"
            continue
        for line in text.splitlines():
            told = line.startswith(_TOLD) or (told and line.startswith(" "))
            if told:
                yield line


def perform(
    runs: Sequence[Planned], *, seed: int, directory: Path, reporter: Reporter
) -> Performed:
    """Perform every run. A run that fails leaves its reason, and the next one follows.

    Raises BadUsage, as the following runs would be refused for the same reason: before the first
    run, if a row of any names a line that no table has.
    """
    _check_references(runs)
    done = Performed()
    for number, planned in enumerate(runs, start=1):
        what = f"{planned.experiment.name}, {planned.stage} stage"
        reporter.step(f"run {number} of {len(runs)}: {what}, for {', '.join(planned.tables)}")
        try:
            outcome = run_session(request_of(planned, seed=seed, runs=directory), reporter)
        except BadUsage:
            raise
        except ReamError as cause:
            reporter.step(f"{what}: {cause}")
            done.absent[planned.experiment.name, planned.stage] = str(cause)
            if not isinstance(cause, CannotRunHere):
                done.failure = done.failure or cause
        except BaseException as cause:  # Ctrl-C and SIGTERM
            if done.sources:
                words = " ".join(f"--record {source.name}" for source in done.sources)
                cause.add_note(f"whole by now, for `ream replicate`: {words}")
            raise
        else:
            reporter.step(f"record: {outcome.path}")
            done.sources.append(JudgedRecord.of(Record.load(outcome.path.name, directory)))
    return done
