# SPDX-License-Identifier: GPL-2.0-only
"""Makes one judgement: finds the reach of a series, verifies, counts and times its rows.

Each part is an ordinary run with its own record. This module measures nothing itself.
"""

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

from ream import __version__
from ream.command import require
from ream.count.emulator import emulator_version
from ream.counted import counted
from ream.errors import CannotRunHere, ReamError, VerificationFailed, in_a_line
from ream.experiment import BEFORE, CONTROL, IMPLIED, PATCHED, Experiment, named
from ream.judge.first_wrong import first_wrong, of_series, row_alone
from ream.judge.guest import run_guests
from ream.judge.judgement import (
    CountedChange,
    Examined,
    Judgement,
    Listing,
    Operation,
    PatchStep,
    TimedChange,
    Wrong,
)
from ream.judge.kept import with_programs
from ream.judge.listings import listings
from ream.judge.notes import Notes
from ream.judge.own_table import OwnVerdict, own_tables, own_verdicts
from ream.judge.own_table import lines as own_lines
from ream.judge.programs import search_first, search_further
from ream.judge.question import Question
from ream.judge.reach import Reach, WholeReach, find_reach
from ream.judge.urgency import (
    FIRST_LAUNCHES,
    S_PER_MINUTE,
    expected_s,
    rows_in_time,
    rows_to_try,
)
from ream.judge.whole import Pairs
from ream.kernel.cache import room
from ream.kernel.confine import building
from ream.kernel.diff import changed_files
from ream.kernel.series import Series, prefixes
from ream.kernel.source import Tree, fetch_tree
from ream.measure.stable import Stable
from ream.progress import Reporter
from ream.published import Table
from ream.record.machine import read_machine
from ream.report.contract import Counted, Result, RowResult, Summary
from ream.report.counts_table import QUANTITIES, differences
from ream.report.sensitivity import controls
from ream.session.counting import once
from ream.session.guests import consoles
from ream.session.request import CountOptions, Request
from ream.session.run import Outcome, run_session
from ream.stage.qemu import QEMU
from ream.stage.steps import steps_of
from ream.variants import Variant

MOST_LAUNCHES = 64
TIMED_SHARE = 0.3
"""Least share of --minutes that is left for timing, as a first compilation may take long."""
WITHIN_PCT = 2.0
"""Width of an interval in per cent at which a row's measurement ends early."""
CONTROL_SHARE = 0.05
"""Share by which the positive control, a copy of the base kernel, is slowed."""
FIRST_SHARE = 2 / 3
"""Share of an experiment's time for the first timing; the rest is for rows timed again."""
BACKED_BY: Mapping[str, Sequence[str]] = {"slower": ("more",), "faster": ("fewer",)}
"""Outcomes by counts that confirm an effect on the time, by that effect."""
CHOSEN = (
    "timed, those that count more first, then each operation once before its other sizes; more"
    " --minutes time more"
)
LEAST_MINUTES = 0.25
"""Fewer minutes than this are not worth starting a run."""


@dataclass
class _Judging:
    """The state of a judgement in progress."""

    asked: Question
    reporter: Reporter
    counts: bool
    verify_minutes: float
    """Minutes of verification for each experiment that the series reaches."""
    began: float
    """Start of the judgement by time.monotonic(), before anything is built."""
    operations: dict[tuple[str, str], Operation] = field(default_factory=dict)
    unhosted: dict[str, str] = field(default_factory=dict)
    wrong_steps: list[tuple[int, str, str]] = field(default_factory=list)
    records: list[str] = field(default_factory=list)
    notes: Notes = field(default_factory=Notes)
    controls: list[str] = field(default_factory=list)
    guests: list[str] = field(default_factory=list)
    rows: list[RowResult] = field(default_factory=list)
    """The counted rows."""
    listings: list[Listing] = field(default_factory=list)
    own: list[OwnVerdict] = field(default_factory=list)
    """Verdicts on the tables that came with the series."""
    own_tables: tuple[Table, ...] = ()


def judge(asked: Question, reporter: Reporter) -> Judgement:
    """Judge a series. A wrong series gives a judgement, not an error.

    Raises DoesNotApply for a patch, and what building raises.
    """
    if asked.guests:
        require(QEMU)
    with room(asked.cache, reporter.step) as work:
        return _judged(asked, Pairs(work), reporter)


def _judged(asked: Question, pairs: Pairs, reporter: Reporter) -> Judgement:
    """Judge a series by programs and rows."""
    began = time.monotonic()
    fetch = partial(fetch_tree, cache=asked.cache, step=reporter.step)
    tree = fetch(asked.tree).built(asked.setup)
    to = fetch(asked.to).built(asked.setup) if asked.to else None
    whole = None if to else search_first(asked, tree, pairs, reporter)
    if whole is not None and (whole.wrong or whole.same or asked.quick):
        return _judgement(asked, tree, began, whole=whole, wrong=whole.wrong)
    reach = _reach(asked, tree, to, whole, reporter)
    reporter.step(reach.sentence())
    each = asked.verify_minutes / max(1, len(reach.reached))
    judging = _Judging(
        asked,
        reporter,
        counts=_counts(reporter),
        verify_minutes=each,
        began=began,
        own_tables=own_tables(asked.ids),
    )
    wrong = None
    for one in reach.reached:
        if (wrong := _count(judging, one, per_patch=asked.per_patch)) is not None:
            break
    if wrong is None and asked.guests:
        wrong = _boot(judging, reach, tree, to or tree)
    if wrong is None and whole is not None:
        whole = search_further(asked, tree, pairs, whole, reporter)
        wrong = whole.wrong
    if wrong is None:
        wrong = _time(judging, reach.reached)
    return _judgement(
        asked,
        tree,
        began,
        to=to.label if to else None,
        reach=reach,
        whole=whole,
        operations=tuple(judging.operations.values()),
        wrong=wrong,
        wrong_steps=tuple(judging.wrong_steps),
        unhosted=judging.unhosted,
        notes=judging.notes.lines(),
        controls=tuple(judging.controls),
        own_tables=tuple(own_lines([one.id for one in judging.own_tables], judging.own)),
        guests=tuple(judging.guests),
        rows=tuple(judging.rows),
        listings=tuple(judging.listings),
        records=tuple(judging.records),
    )


def _judgement(asked: Question, tree: Tree, began: float, **found: Any) -> Judgement:
    """Build the judgement from the question and what was found. began: from time.monotonic()."""
    patches = asked.series.patches
    its = Judgement(
        series=asked.series.name,
        subjects=tuple(patch.subject for patch in patches),
        tree=tree.label,
        files=tuple(sorted({name for one in patches for name in changed_files(one.body)})),
        machine=read_machine().line(),
        command=asked.command,
        reproduce=asked.reproduce,
        strict=asked.strict,
        quick=asked.quick,
        seed=asked.seed,
        ream=__version__,
        seconds=round(time.monotonic() - began, 1),
        **found,
    )
    return with_programs(its, asked)


def _reach(
    asked: Question, tree: Tree, to: Tree | None, whole: Examined | None, reporter: Reporter
) -> WholeReach:
    """Find the reach in all experiments, with that of rows that are programs on all of mm/."""
    with building(confined=asked.confined):
        found = find_reach(
            *(asked.series.patches, tree),
            to=to,
            is_examined=whole is not None and bool(whole.functions),
            cache=asked.cache,
            reporter=reporter,
        )
    if whole is None:
        return found
    elsewhere = found.elsewhere
    if elsewhere is not None:
        elsewhere = tuple(one for one in elsewhere if one not in whole.files)
    experiments = (*found.experiments, *whole.reached)
    return replace(found, experiments=experiments, elsewhere=elsewhere)


def _counts(reporter: Reporter) -> bool:
    """Whether this machine can count executed instructions."""
    try:
        emulator_version()
    except CannotRunHere as cause:
        reporter.step(f"nothing is counted: {cause}")
        return False
    return True


# --- Verifying and counting ------------------------------------------------------------


def _experiment(reach: Reach) -> Experiment:
    """Return an experiment with the reached rows, without their published values."""
    its = named(reach.experiment).at("native").only(reach.rows)
    bare = {"published": (), "part_of": None, "no_verdict": None, "differs": ()}
    rows = tuple(row.model_copy(update=bare) for row in its.rows)
    return its.model_copy(update={"rows": rows})


def _variants(asked: Question, *, per_patch: bool = False) -> list[Variant]:
    """Return the base twice and the series; per_patch: also every prefix of the series."""
    series = asked.series
    if asked.to:
        return [*(Variant(name, ()) for name in IMPLIED), Variant(PATCHED, (), BEFORE, asked.to)]
    steps = prefixes(series)[:-1] if per_patch else ()
    return [
        *(Variant(name, ()) for name in IMPLIED),
        *(Variant(f"{PATCHED}-{at}", (one,), BEFORE) for at, one in enumerate(steps, 1)),
        Variant(PATCHED, (series,), BEFORE),
    ]


def _quick(judging: _Judging, experiment: Experiment, variants: Sequence[Variant]) -> Request:
    """Return a run that verifies every row and counts it if this machine can count."""
    request = judging.asked.request(experiment, variants)
    request = replace(request, verify_minutes=judging.verify_minutes)
    if judging.counts:
        # The two copies of the base show whether counts of programs repeat.
        launches = 1 if steps_of(experiment) else None
        few = once(experiment, "native", launches=launches, rounds=None)
        return replace(request, experiment=few, count=CountOptions())
    return replace(request, experiment=experiment.resized(launches=1, rounds=1))


def _count(judging: _Judging, reach: Reach, *, per_patch: bool) -> Wrong | None:
    """Verify and count the reached rows of one experiment; return what is wrong, or None.

    An experiment that cannot be hosted is noted. per_patch: also run every prefix of the series,
    unless one of them cannot be run.
    """
    asked, reporter = judging.asked, judging.reporter
    experiment = _experiment(reach)
    reporter.step(f"{reach.experiment}: verifying and counting {counted(len(reach.rows), 'row')}")
    request = _quick(judging, experiment, _variants(asked, per_patch=per_patch))
    try:
        outcome = run_session(request, reporter)
    except ReamError as cause:
        if of_series(cause):
            return _wrong(judging, request, str(cause))
        if per_patch:
            judging.notes.add(reach.experiment, f"not patch by patch: {in_a_line(cause)}")
            return _count(judging, reach, per_patch=False)
        why = judging.unhosted[reach.experiment] = in_a_line(cause)
        reporter.step(f"{reach.experiment}: cannot be run with it: {why}")
        return None
    if PATCHED in outcome.summary.wrong:
        return _wrong(judging, request, "\n".join(outcome.summary.wrong[PATCHED]))
    _note_record(judging, outcome)
    _note_steps(judging, outcome.summary)
    for row in outcome.summary.rows:
        if row.skipped is None:
            judging.operations[reach.experiment, row.row] = _counted_row(
                asked.series, reach, row, per_patch=per_patch
            )
            judging.rows.append(row)
    if asked.listings and judging.counts:
        judging.listings += listings(request, judging.operations, reporter)
    return None


def _wrong(judging: _Judging, request: Request, said: str) -> Wrong:
    """Return what is wrong and the first patch at which it is."""
    series, reporter = judging.asked.series, judging.reporter
    reporter.step(f"{request.experiment.name}: WRONG: {said.splitlines()[0]}")
    number = first_wrong(request, series, PATCHED, reporter) if series.patches else None
    first = None if number is None else (number, series.patches[number - 1].subject)
    lines = said.splitlines()
    if series.patches:
        lines.extend(row_alone(request, said, judging.asked.reproduce))
    return Wrong(request.experiment.name, tuple(lines), first)


def _note_record(judging: _Judging, outcome: Outcome) -> None:
    """Note the record of a run and its warnings about the series and the run.

    Warnings include what may bias the run, such as other load on the machine.
    """
    judging.records.append(outcome.path.name)
    summary = outcome.summary
    others = {f"{name}: " for row in summary.rows for name in row.variants} - {f"{PATCHED}: "}
    for text in summary.receipt.warnings:
        if not text.startswith(tuple(others)):
            judging.notes.add_warning(summary.experiment, text.removeprefix(f"{PATCHED}: "))


def _note_steps(judging: _Judging, summary: Summary) -> None:
    """Note prefixes of the series that are wrong although the whole series is right."""
    for name, lines in summary.wrong.items():
        number = int(name.removeprefix(f"{PATCHED}-"))
        subject = judging.asked.series.patches[number - 1].subject
        judging.wrong_steps.append((number, subject, lines[0] if lines else ""))


def _counted_row(series: Series, reach: Reach, row: RowResult, *, per_patch: bool) -> Operation:
    title, its = row.title or "", row.counted
    if its is None or not {BEFORE, PATCHED} <= its.variants.keys():
        return Operation(reach.experiment, row.row, title)
    change = CountedChange(
        per=its.per,
        before=_each(its, BEFORE),
        after=_each(its, PATCHED),
        repeats=its.repeats,
    )
    return Operation(
        reach.experiment,
        row.row,
        title,
        counted=change,
        functions=tuple(differences(its, BEFORE, PATCHED)),
        steps=tuple(_steps(its, series)) if per_patch else (),
    )


def _each(its: Counted, name: str) -> Mapping[str, float]:
    return {one: its.variants[name].get(one, 0) / its.number_of(name) for one in QUANTITIES}


def _steps(its: Counted, series: Series) -> Iterator[PatchStep]:
    """Yield each patch's change against the prefix before it.

    A patch whose prefix is wrong is joined with the next one.
    """
    names = [f"{PATCHED}-{at}" for at in range(1, len(series.patches))]
    last, first = BEFORE, 1
    for number, name in enumerate([*names, PATCHED], 1):
        if name not in its.variants:
            continue
        old, new = _each(its, last), _each(its, name)
        changes = {one: new[one] - old[one] for one in QUANTITIES if new[one] != old[one]}
        subject = series.patches[number - 1].subject
        together = "" if first == number else f"with {first} to {number - 1} before it: "
        yield PatchStep(number, together + subject, changes)
        last, first = name, number + 1


# --- Guests ----------------------------------------------------------------------------


def _boot(judging: _Judging, reach: WholeReach, before: Tree, after: Tree) -> Wrong | None:
    """Boot kernels with and without the series and run the kernel's own tests there."""
    asked = judging.asked
    name = f"judge-{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{os.getpid()}"
    try:
        with (
            building(confined=asked.confined),
            consoles(asked.cache / "console" / name) as logs,
        ):
            told = run_guests(
                reach,
                (before, ()),
                (after, asked.series.patches),
                cache=asked.cache,
                logs=logs,
                reporter=judging.reporter,
            )
    except VerificationFailed as cause:
        return Wrong("guest", tuple(str(cause).splitlines()))
    judging.guests += [f"{one.name}: {one.line}" for one in told if one.decided]
    judging.unhosted |= {f"guest {one.name}": one.line for one in told if not one.decided}
    return None


# --- Timing ----------------------------------------------------------------------------


def _time(judging: _Judging, reached: Sequence[Reach]) -> Wrong | None:
    """Time the rows of each experiment in turn, within its share of the remaining minutes."""
    if not (all_s := judging.asked.minutes * S_PER_MINUTE):
        return None
    ends_at = max(judging.began + all_s, time.monotonic() + all_s * TIMED_SHARE)
    left = [one for one in reached if one.experiment not in judging.unhosted]
    for number, one in enumerate(left):
        minutes = (ends_at - time.monotonic()) / S_PER_MINUTE / (len(left) - number)
        if minutes < LEAST_MINUTES:
            judging.notes.add(one.experiment, "not timed: the minutes were over")
            continue
        if (wrong := _time_one(judging, one, minutes)) is not None:
            return wrong
    return None


def _time_one(judging: _Judging, reach: Reach, minutes: float) -> Wrong | None:
    asked, reporter = judging.asked, judging.reporter
    began = time.monotonic()
    whole = _experiment(reach)
    known = {key[1]: one for key, one in judging.operations.items() if key[0] == whole.name}
    tried = rows_to_try(whole, known, minutes)
    try:
        usual_s = max(sum(map(expected_s, tried.rows)), 1e-9)
        slowness = _round_s(asked, tried, reporter) / usual_s
        left = minutes - (time.monotonic() - began) / S_PER_MINUTE
        chosen = rows_in_time(whole, known, slowness, left)
        few = "" if len(chosen.rows) == len(whole.rows) else f"{len(chosen.rows)} of "
        many = counted(len(whole.rows), "row")
        reporter.step(f"{whole.name}: timing {few}{many} for up to {max(left, 0):.1f} minutes")
        if few:
            judging.notes.add(f"{few}{many} of {whole.name}", CHOSEN)
        stable = Stable(WITHIN_PCT, MOST_LAUNCHES, max(left, 0.0) * FIRST_SHARE)
        request = asked.request(chosen, _variants(asked))
        outcome = run_session(replace(_slowed(request), stable=stable), reporter)
        _note_record(judging, outcome)
        _note_control(judging, whole.name, outcome)
        left = minutes - (time.monotonic() - began) / S_PER_MINUTE
        again = _again(judging, request, outcome.summary, max(left, 0.0))
    except ReamError as cause:
        if of_series(cause):
            request = asked.request(whole.resized(launches=1, rounds=1), ())
            return _wrong(judging, request, str(cause))
        judging.notes.add(whole.name, f"not timed: {in_a_line(cause)}")
        return None
    for row in outcome.summary.rows:
        _note_time(judging, whole.name, row)
        if (its := row.variants.get(PATCHED)) is not None and its.ratio is not None:
            published = named(whole.name).at("native").only([row.row]).rows[0]
            judging.own += own_verdicts(
                judging.own_tables, published, row, its, amd=read_machine().is_amd
            )
    for row in again:
        _note_again(judging, whole.name, row)
    return None


def _note_time(judging: _Judging, experiment: str, row: RowResult) -> None:
    its = row.variants.get(PATCHED)
    if row.skipped is None and its is not None and its.ratio is not None:
        key = experiment, row.row
        there = judging.operations.get(key, Operation(*key, row.title or ""))
        judging.operations[key] = replace(there, timed=_timed(row, its, its.ratio))


def _again(
    judging: _Judging, request: Request, summary: Summary, minutes: float
) -> Sequence[RowResult]:
    """Time rows again whose time changed without a matching change of their counts.

    One judgement in twenty finds such a row by chance; twice in succession, one in hundreds.
    """
    name, reporter = request.experiment.name, judging.reporter
    doubtful = []
    for row in summary.rows:
        its = row.variants.get(PATCHED)
        its_counts = judging.operations.get((name, row.row))
        if its is not None and its.effect in BACKED_BY and not _backed(its_counts, its.effect):
            doubtful.append(row.row)
    if not doubtful:
        return ()
    reporter.step(f"{name}: timing {', '.join(doubtful)} again: counts say nothing of it")
    rows = request.experiment.only(doubtful).resized(launches=FIRST_LAUNCHES)
    stable = Stable(WITHIN_PCT, MOST_LAUNCHES, minutes)
    another = replace(request, experiment=rows, seed=request.seed + 1, stable=stable)
    outcome = run_session(_slowed(another), reporter)
    judging.notes.forget_wide(doubtful)
    _note_record(judging, outcome)
    _note_control(judging, f"{name}, timed again", outcome)
    return outcome.summary.rows


def _note_control(judging: _Judging, what: str, outcome: Outcome) -> None:
    if (said := controls(outcome.summary)) is not None:
        judging.controls.append(f"{what}: {said}")


def _backed(one: Operation | None, effect: str | None) -> bool:
    """Whether the counts of a row confirm the effect on its time."""
    if one is None or one.counted is None or effect is None:
        return False
    return replace(one, timed=None).outcome in BACKED_BY[effect]


def _note_again(judging: _Judging, experiment: str, row: RowResult) -> None:
    """Record a row's second time, which unlike the first was not selected for its result."""
    first = judging.operations[experiment, row.row].timed
    _note_time(judging, experiment, row)
    second = judging.operations[experiment, row.row].timed
    if first is not None and second is not None and first.effect != second.effect:
        said = f"{first.effect} at first, and not when timed again"
        judging.notes.add(row.row, said, f"{first.ratio:.3f}x")


def _slowed(request: Request) -> Request:
    """Return the run with a positive control, which rows that are programs do not have."""
    if steps_of(request.experiment) is not None:
        return request
    variants = (*request.variants, Variant(CONTROL, ()))
    return replace(request, variants=variants, control=CONTROL_SHARE)


def _round_s(asked: Question, tried: Experiment, reporter: Reporter) -> float:
    """Return the seconds of a launch with one round of these rows; no record is kept."""
    reporter.step(f"{tried.name}: finding how long a round takes")
    unheard = Reporter(quiet=True)
    with room(asked.cache, reporter.step) as runs:
        once_ = _slowed(asked.request(tried.resized(launches=1, rounds=1), _variants(asked)))
        run_session(replace(once_, runs=runs), unheard)
    return time.monotonic() - (unheard.measured_since or time.monotonic())


def _timed(row: RowResult, its: Result, ratio: float) -> TimedChange:
    before_ns, per = _before(row)
    return TimedChange(
        ratio=ratio,
        low=its.low,
        high=its.high,
        effect=its.effect,
        within=its.within,
        smallest_effect=row.smallest_effect,
        control=None if row.control is None else row.control.found,
        before_ns=before_ns,
        per=per,
    )


def _before(row: RowResult) -> tuple[float | None, str]:
    """Return the time without the series per entry, page or call, and which of these it is."""
    if (its := row.variants.get(BEFORE)) is None:
        return None, "call"
    if its.per_entry is not None:
        return its.per_entry, "entry"
    return (its.median, "call") if its.ns_per_page is None else (its.ns_per_page, "page")
