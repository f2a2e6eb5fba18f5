# SPDX-License-Identifier: GPL-2.0-only
"""Builds the object of `--json` from samples. This is a pure function without any output."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from ream.counted import counted
from ream.experiment import (
    BASE,
    BEFORE,
    BEFORE_AGAIN,
    CONTROL,
    PAGE_BYTES,
    PUBLISHED,
    RUNNING,
    STRUCT_PAGE_BYTES,
    Experiment,
    Row,
)
from ream.measure import statistics
from ream.measure.clock import by_cpu_time, choose
from ream.measure.sample import Sample
from ream.measure.statistics import Limit
from ream.measure.verdict import Facts, Verdict, limiting, other_architecture, verdict_of
from ream.measure.whole import LeftOut, Parts
from ream.published import Printed, Table, lookup
from ream.record.receipt import Receipt, anonymous
from ream.report import explain, grid
from ream.report.batches import batches
from ream.report.columns import printed_tables
from ream.report.contract import (
    WALL_TIME,
    Beside,
    BesideResult,
    ClockUsed,
    Comparison,
    Control,
    Fill,
    ReceiptLines,
    RowResult,
    Summary,
    Whole,
)
from ream.report.counts import counted_of
from ream.report.decide import (
    Decisions,
    MeasuredRow,
    decide,
    decide_over_published,
    smallest_effect,
)
from ream.report.live import live_times
from ream.report.numbers import digits, ratio_of, rounded
from ream.report.ran import Results
from ream.report.result import GIB_BYTES, gb_per_s, ns_per_page, result_of

NS = {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}
"""Nanoseconds per unit of time that published tables use."""

GIB_PAGES = GIB_BYTES // PAGE_BYTES


COUNTED = (
    "what is executed was counted, not timed: a locked operation counts as one, and so does a"
    " streaming store, whatever they take"
)
EMULATED = (
    "an emulated CPU has neither caches nor a store bandwidth, so its times and counts are not "
    "compared with published times; where guests run under KVM this row gets a verdict"
)


ALONE = (
    "only the running kernel was measured: there is no kernel without the technique beside it; the "
    "row's last line compares it with base pages, where there is nothing to batch"
)


def summarise(
    experiment: Experiment,
    results: Results,
    tables: Iterable[Table],
    receipt: Receipt,
    *,
    run: str,
    stage: str,
    variants: Sequence[str] | None = None,
) -> Summary:
    """The summary of a run.

    experiment: as it was asked for. variants: their order, if it is not the experiment's own.
    Raises BadUsage if a row names a published table or line that does not exist.
    """
    tables = tuple(tables)
    names = tuple(variants) if variants is not None else experiment.variant_names()
    by_row: dict[str, list[Sample]] = {}
    for sample in results.samples:
        by_row.setdefault(sample.row, []).append(sample)
    given = receipt.kernel.compared_with
    measured = tuple(
        _on_its_clock(
            _measured(experiment, row, by_row.get(row.name, ()), results, given), stage, receipt
        )
        for row in results.rows
    )
    decided, over = decide(measured, names), decide_over_published(measured, names)
    live = live_times(measured, names)
    rows = tuple(
        _row(one, names, decided, over=over, tables=tables, receipt=receipt).model_copy(
            update={
                "remarks": results.remarks.get(one.row.name, ()),
                "live": live.get(one.row.name),
            }
        )
        for one in measured
    )
    return Summary(
        experiment=experiment.name,
        stage=stage,
        run=run,
        question=experiment.question,
        limited_by=experiment.limited_by,
        limit_kind=experiment.limit_kind,
        found_live=experiment.found_live,
        untouched=dict(results.untouched),
        wrong={name: tuple(what.splitlines()) for name, what in results.wrong.items()},
        rows=rows,
        receipt=_lines(receipt),
        grids=()
        if _emulated(receipt) or receipt.count
        else grid.grids(results.rows, rows, tables, experiment.name),
        tables=() if receipt.count else printed_tables(rows, tables, experiment.name),
        batches=() if receipt.count else batches(experiment.columns.parts, results.rows, rows),
    )


def _measured(
    experiment: Experiment,
    row: Row,
    samples: Sequence[Sample],
    results: Results,
    given: Mapping[str, str],
) -> MeasuredRow:
    unit, skipped = results.unit_of(row.name), results.skipped.get(row.name)
    return MeasuredRow(
        row=row,
        asked=experiment.row(row.name),
        samples=tuple(samples),
        skipped="it was not reached" if skipped is None and not samples else skipped,
        unit=unit,
        limit_is_bound=experiment.limit_kind == "bound",
        columns=experiment.all_columns,
        left_out=results.left_out.get(row.name),
        between_runs=results.between_runs.get(row.name),
        given=given,
        base_adds=experiment.base_adds,
        own=frozenset((BEFORE, *experiment.variants, *given)),
    )


def _on_its_clock(measured: MeasuredRow, stage: str, receipt: Receipt) -> MeasuredRow:
    """The row with the clock that its first launches chose, and the floors and limits by it.

    Only samples of a program that does nothing else can be timed by CPU time: those of guests and
    of the running kernel wait for interrupts and for other processes.
    """
    step_ns, clock = receipt.cpu_clock_step_ns, None
    if stage == "native" and not measured.counted and not measured.row.waits:
        clock = choose(measured.samples, step_ns)
    if clock is not None and clock.name == "CPU":
        wall, cpu = measured.samples, by_cpu_time(measured.samples)
        measured = replace(measured, samples=cpu, wall_samples=wall)
    floors = {
        name: statistics.noise_floor(measured.alike, name, counted=measured.counted)
        for name in dict.fromkeys((BEFORE, *measured.given.values()))
    }
    return replace(
        measured,
        clock=clock,
        cpu_step_ns=step_ns if stage == "native" else 0,
        floors=floors,
        limits=statistics.limits(measured.samples),
    )


def _row(
    measured: MeasuredRow,
    names: Sequence[str],
    decided: Decisions,
    *,
    over: Decisions,
    tables: Sequence[Table],
    receipt: Receipt,
) -> RowResult:
    row = measured.row
    compared = tuple(_comparisons(measured, tables, receipt))
    fills = tuple(_fill(limit, row) for limit in measured.limits)
    bare = RowResult(
        row=row.name,
        title=row.title(),
        params=row.params(),
        asked_params=measured.asked.params() if measured.asked and measured.changed else None,
        unit=measured.unit,
        better="lower",
        floor=ratio_of(measured.floor),
        limit=fills[0] if fills else None,
        limits=fills,
        variants={
            name: result_of(
                measured, name, level, decided.get((row.name, name)), over.get((row.name, name))
            )
            for name in names
            if (level := statistics.level(measured.samples, name)) is not None
        },
        published_table=compared[0] if compared else None,
        published_tables=compared if len(compared) > 1 else (),
        skipped=measured.skipped,
        bytes_of=row.bytes_of,
        whole=_whole(measured),
        base_adds=measured.base_adds,
        beside=tuple(_beside(measured, names)),
        counted=counted_of(
            *(row, measured.samples, names, receipt.kernel.variants, measured.own),
            exact=receipt.guest is None,
        ),
        smallest_effect=digits(smallest_effect(measured, decided)),
        control=_control(measured, decided, receipt),
        clock=_clock(measured),
        between_runs=measured.between_runs,
        floors={name: ratio_of(floor) for name, floor in measured.floors.items() if name != BEFORE},
    )
    # What this machine alone keeps from a verdict, as too few CPUs, is no result to explain.
    to_explain = (measured.asked or row).no_verdict
    return bare.model_copy(
        update={
            "notes": tuple(
                explain.notes(bare, slower=_slower(row, over), is_bound=measured.limit_is_bound)
            ),
            "explanation": explain.by_parts(bare, receipt.machine)
            if to_explain and measured.limit_is_bound
            else None,
        }
    )


def _clock(measured: MeasuredRow) -> ClockUsed | None:
    clock = measured.clock
    if clock is None:
        return None
    return ClockUsed(
        used=clock.name,
        wall_noise=rounded(math.exp(clock.wall_noise)),
        cpu_noise=rounded(math.exp(clock.cpu_noise)),
    )


def _whole(measured: MeasuredRow) -> Whole | None:
    """The complete call that the published table timed; None unless the row times a part of it."""
    left, name = measured.left_out, measured.row.part_of
    if name is None or not isinstance(left, LeftOut):
        return None
    return Whole(
        name=name,
        whole_ns=None if left.whole_ns is None else rounded(left.whole_ns),
        left_out_ns=rounded(left.ns),
        left_out_low=rounded(left.low_ns),
        left_out_high=rounded(left.high_ns),
        share=None if left.share is None else rounded(left.share),
        how=left.how,
        ratio=ratio_of(measured.whole_ratio(PUBLISHED)),
        floor=ratio_of(measured.whole_ratio(BEFORE_AGAIN)),
    )


def _beside(measured: MeasuredRow, names: Sequence[str]) -> Iterator[Beside]:
    """The other times of a row's operation, estimated as its time is."""
    found: dict[str, list[Sample]] = {}
    if measured.wall_samples:
        found[WALL_TIME] = [*measured.wall_samples]
    for sample in measured.samples:
        for quantity, time_ns in sample.times.items():
            found.setdefault(quantity, []).append(replace(sample, time_ns=time_ns))
    for quantity, samples in found.items():
        ratios = {
            name: statistics.paired_ratio(
                samples, name, to=measured.to(name), counted=measured.counted
            )
            for name in names
            if name != BEFORE
        }
        yield Beside(
            name=quantity,
            unit=measured.unit,
            variants={
                name: BesideResult(
                    median=round(level.time_ns), over_before=ratio_of(ratios.get(name))
                )
                for name in names
                if (level := statistics.level(samples, name)) is not None
            },
        )


def _control(measured: MeasuredRow, decided: Decisions, receipt: Receipt) -> Control | None:
    asked = receipt.settings.options.get(CONTROL)
    said = decided.get((measured.row.name, CONTROL))
    if not isinstance(asked, float) or said is None:
        return None
    return Control(asked=asked, found=said.seen and said.estimate.ratio > 1)


def _slower(row: Row, over: Decisions) -> frozenset[str]:
    """Variants of a row that are slower than `published`, as decided over all rows of the run."""
    return frozenset(
        name
        for (its_row, name), one in over.items()
        if its_row == row.name and one.seen and one.estimate.ratio > 1
    )


def _comparisons(
    measured: MeasuredRow, tables: Sequence[Table], receipt: Receipt
) -> Iterator[Comparison]:
    for ref in measured.row.published:
        table = lookup(tables, ref.id)
        printed = table.printed(ref, measured.threads)
        of = measured.of_value(ref.value, printed.better)
        comparison = _comparison(of, table, printed, receipt)
        yield comparison.model_copy(update={"value": ref.value})


def _comparison(
    measured: MeasuredRow, table: Table, printed: Printed, receipt: Receipt
) -> Comparison:
    verdict = _verdict(measured, table, printed, receipt)
    return Comparison(
        id=table.id,
        ratio=digits(printed.ratio),
        verdict=verdict.word,
        reason=verdict.reason,
        before=printed.before,
        published=printed.published,
        before_sd=printed.before_sd,
        published_sd=printed.published_sd,
        unit=printed.unit if table.values_are_absolute else None,
        better=printed.better,
        params=printed.line.params,
        stand_in=measured.row.stands_in,
        model=measured.row.model_of_device,
        threads=printed.threads,
        inferred=printed.inferred,
        cpus=table.cpus,
        node_gib=table.node_gib,
        gb_per_s=digits(_their_rate(measured, table, printed)),
        title=table.title,
        author=table.author,
        date=None if table.date is None else table.date.isoformat(),
        message_id=table.message_id,
        machine=table.machine,
        base=table.base,
        approximate=table.approximate,
        claims=table.claims,
        differs=(
            *_differs(measured, table, receipt),
            *_differs_in_size(measured, table, printed, receipt),
        ),
    )


def _verdict(measured: MeasuredRow, table: Table, printed: Printed, receipt: Receipt) -> Verdict:
    """The verdict on the published ratio; it uses the complete call if the row times a part."""
    row = measured.row
    if row.part_of is None:
        ours, floor = measured.ratio(PUBLISHED), measured.floor
    else:
        ours, floor = measured.whole_ratio(PUBLISHED), measured.whole_ratio(BEFORE_AGAIN)
    facts = Facts(
        stand_in=row.stands_in if row.part_of is None else None,
        model=row.model_of_device,
        is_part=row.part_of is not None,
        parts=_parts(measured),
        misses_costs=limiting(page_tables=row.times_page_tables, amd=receipt.machine.is_amd),
    )
    far = other_architecture(table.architecture, receipt.kernel.architecture, printed.ratio)
    why_not = (far, *_why_not(measured, printed, receipt))
    return verdict_of(why_not, ours, floor, printed.ratio, facts)


def _parts(measured: MeasuredRow) -> Parts | None:
    left = measured.left_out
    if not isinstance(left, LeftOut):
        return None
    levels = (statistics.level(measured.by_wall, name) for name in (BASE, PUBLISHED))
    hosted = next((level.time_ns for level in levels if level is not None), None)
    return Parts.of(left.whole_ns, left.ns, hosted)


def _why_not(measured: MeasuredRow, printed: Printed, receipt: Receipt) -> Iterator[str | None]:
    """Reasons that rule out a verdict, the most general first."""
    yield measured.row.no_verdict or measured.skipped
    yield ALONE if RUNNING in receipt.kernel.variants else None
    yield EMULATED if _emulated(receipt) else None
    yield COUNTED if receipt.count else None
    if printed.ratio is None:
        yield "the source printed no ratio for this row"
    if measured.ratio(PUBLISHED) is None:
        if measured.published and measured.value:
            yield f"{measured.value} was 0 or not measured here, so it has no ratio"
        yield f"the variant {PUBLISHED} was not measured"
    yield _unequal_threads(measured, printed) or measured.lacking
    yield _oversubscribed(measured.row, receipt)
    if (part_of := measured.row.part_of) and measured.whole_ratio(PUBLISHED) is None:
        said = measured.left_out
        yield said if isinstance(said, str) else f"what {part_of} takes besides was not measured"


def _emulated(receipt: Receipt) -> bool:
    return receipt.guest is not None and receipt.guest.accel == "tcg"


def _oversubscribed(row: Row, receipt: Receipt) -> str | None:
    """A reason if the row keeps more CPUs busy than exist or were idle; else None."""
    wanted, cpus, during = row.cpus_wanted, _cpus(row, receipt), receipt.conditions
    taken_pct = (during.others_pct or 0) + (during.steal_pct or 0)
    idle = receipt.machine.nr_cpus * (1 - taken_pct / 100)
    if wanted is None or wanted <= min(cpus, round(idle)):
        return None
    if wanted > cpus:
        return f"oversubscribed: {counted(wanted, 'CPU')} wanted, {cpus} there are"
    return (
        f"oversubscribed: {wanted} CPUs wanted, and others left {idle:.1f} of "
        f"{receipt.machine.nr_cpus} idle: stop them and run again"
    )


def _unequal_threads(measured: MeasuredRow, printed: Printed) -> str | None:
    there, here = printed.threads, measured.threads
    if there is None or here is None or there == here:
        return None
    return f"{printed.threads_there}, {here} here"


def _differs(measured: MeasuredRow, table: Table, receipt: Receipt) -> Iterator[str]:
    base = f" on {table.base}" if table.base else ""
    version = receipt.kernel.version
    if RUNNING in receipt.kernel.variants:
        yield f"their patches{base} there, {version} as it runs here"
    elif receipt.kernel.variants.get(PUBLISHED) and not receipt.kernel.variants.get(BEFORE):
        yield f"their patches{base} there, our own writing of the technique on {version} here"
    else:
        yield f"their patches{base} there, {version} with and without the technique here"
    yield from measured.row.differs
    if measured.asked is not None and measured.changed:
        yield f"{measured.asked.title()} was asked for, {measured.row.title()} was run"


def _differs_in_size(
    measured: MeasuredRow, table: Table, printed: Printed, receipt: Receipt
) -> Iterator[str]:
    """Sentences on threads, CPUs, memory and rate, if the table states them and ours differ."""
    if unequal := _unequal_threads(measured, printed):
        yield unequal
    cpus = _cpus(measured.row, receipt)
    if table.cpus is not None and table.cpus != cpus:
        yield f"{counted(table.cpus, 'CPU')} there, {cpus} here"
    pages = measured.row.params().get("nr_pages")
    if table.node_gib is not None and isinstance(pages, int):
        gib = pages / measured.nodes / GIB_PAGES
        if gib != table.node_gib:
            yield f"{table.node_gib} GiB a node there, {gib:.3g} here"
    theirs, ours = _their_rate(measured, table, printed), measured.published
    if theirs is not None and ours is not None and measured.nodes == 1 and not _emulated(receipt):
        yield f"about {theirs:.3g} GB/s there, {gb_per_s(ours):.3g} here"


def _their_rate(measured: MeasuredRow, table: Table, printed: Printed) -> float | None:
    """The published rate in 10^9 bytes per second, as printed or computed from memory size.

    The computed rate is approximate: a kernel initialises the first section of a node, and what
    memblock reserved, before the time that is measured.
    """
    if printed.unit == grid.RATE:
        return printed.published
    nr_pages = printed.line.params.get("nr_pages")
    if not isinstance(nr_pages, int):
        nr_pages = None if table.node_gib is None else table.node_gib * GIB_PAGES
    per_unit_ns = NS.get(printed.unit)
    if not measured.row.times_the_map or not nr_pages or not printed.published or not per_unit_ns:
        return None
    return nr_pages * STRUCT_PAGE_BYTES / (printed.published * per_unit_ns)


def _cpus(row: Row, receipt: Receipt) -> int:
    """The number of CPUs of the machine, or of the guest, which a row may choose."""
    if receipt.guest is None:
        return receipt.machine.nr_cpus
    return row.threads or receipt.guest.cpus


def _lines(receipt: Receipt) -> ReceiptLines:
    return ReceiptLines(
        machine=receipt.machine.line(),
        tree=anonymous(
            "; ".join(
                (
                    receipt.kernel.tree,
                    *(f"{name}: {one.tree}" for name, one in receipt.kernel.trees.items()),
                )
            )
        ),
        patches=anonymous(receipt.patches_line()),
        compiler=receipt.kernel.compiler,
        ream=receipt.ream.line(),
        guest=receipt.guest.line() if receipt.guest is not None else None,
        count=receipt.count.line() if receipt.count is not None else None,
        command=anonymous(receipt.settings.command),
        seed=receipt.settings.seed,
        launches=receipt.settings.launches,
        load_before=receipt.conditions.load_before,
        load_after=receipt.conditions.load_after,
        steal_pct=receipt.conditions.steal_pct,
        others_pct=receipt.conditions.others_pct,
        cpu_clock_step_ns=receipt.cpu_clock_step_ns,
        warnings=receipt.warnings,
    )


def _fill(limit: Limit, row: Row) -> Fill:
    return Fill(
        value=round(limit.level.time_ns),
        threads=limit.level.threads,
        how=limit.how,
        ns_per_page=ns_per_page(limit.level, row),
        gb_per_s=gb_per_s(limit.level),
    )
