# SPDX-License-Identifier: GPL-2.0-only
"""From samples to the object of `--json`: a pure function; nothing is measured or printed here."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType

from ream.counted import counted
from ream.experiment import (
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
from ream.measure.compaction import Compacted
from ream.measure.sample import Sample
from ream.measure.statistics import Estimate, Limit
from ream.measure.verdict import Verdict, judge, not_run
from ream.measure.whole import LeftOut
from ream.published import Printed, Table, lookup
from ream.record.receipt import Receipt, anonymous
from ream.report import compaction, explain, grid
from ream.report.contract import (
    Beside,
    BesideResult,
    Comparison,
    Control,
    Fill,
    ReceiptLines,
    RowResult,
    Summary,
    Unit,
    Whole,
)
from ream.report.decide import (
    Decisions,
    MeasuredRow,
    decide,
    decide_over_published,
    smallest_effect,
)
from ream.report.numbers import rounded
from ream.report.result import GIB_BYTES, digits, gb_per_s, ns_per_page, ratio_of, result_of

NS = {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}
"""Nanoseconds of the units of time that tables have."""

GIB_PAGES = GIB_BYTES // PAGE_BYTES


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
    rows: Iterable[Row],
    samples: Iterable[Sample],
    tables: Iterable[Table],
    receipt: Receipt,
    *,
    run: str,
    stage: str,
    variants: Sequence[str] | None = None,
    skipped: Mapping[str, str] = MappingProxyType({}),
    unit: Unit = "ns",
    units: Mapping[str, Unit] = MappingProxyType({}),
    compacted: Iterable[Compacted] = (),
    remarks: Mapping[str, tuple[str, ...]] = MappingProxyType({}),
    left_out: Mapping[str, LeftOut | str] = MappingProxyType({}),
    wrong: Mapping[str, str] = MappingProxyType({}),
    untouched: Mapping[str, str] = MappingProxyType({}),
    beside: Iterable[tuple[str, Sample]] = (),
) -> Summary:
    """Everything that is said about a run.

    experiment: as it was asked for; rows: as they ran, perhaps with a smaller device.
    variants: their order, if the run had others than the experiment's own.
    skipped: by row name, why a row has no samples. unit: of the samples' values; units: by row
    name, where it is another. compacted: of compaction, what else every sample says.
    remarks: by row name, what the stage has to say of it. left_out: by name of a row that is a part
    of what was published, what is left out, or why it is not known. wrong: by variant that is left
    out of all rows, what it did. beside: other quantities of the
    same operations, by name.
    Raises BadUsage if a row names a published table or line that is not there.
    """
    tables = tuple(tables)
    by_row: dict[str, list[Sample]] = {}
    for sample in samples:
        by_row.setdefault(sample.row, []).append(sample)
    names = tuple(variants) if variants is not None else experiment.variant_names()
    rows, compacted, beside = tuple(rows), tuple(compacted), tuple(beside)
    measured = tuple(
        _measured(
            row,
            experiment.row(row.name),
            by_row.get(row.name, []),
            skipped=skipped.get(row.name),
            unit=units.get(row.name, unit),
            compacted=tuple(one for one in compacted if one.row == row.name),
            left_out=left_out.get(row.name),
            given=receipt.kernel.compared_with,
        )
        for row in rows
    )
    decided, over = decide(measured, names), decide_over_published(measured, names)
    results = tuple(
        _row(
            one,
            names,
            decided,
            over=over,
            tables=tables,
            receipt=receipt,
            base_adds=experiment.base_adds,
        ).model_copy(
            update={
                "remarks": remarks.get(one.row.name, ()),
                "beside": tuple(_beside(one, names, beside)),
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
        found_live=experiment.found_live,
        untouched=dict(untouched),
        wrong={name: tuple(what.splitlines()) for name, what in wrong.items()},
        rows=results,
        receipt=_lines(receipt),
        grids=() if _emulated(receipt) else grid.grids(rows, results, tables, experiment.name),
        tables=compaction.printed_tables(results, tables, experiment.name),
        batches=compaction.batches(rows, results),
    )


def _measured(
    row: Row,
    asked: Row | None,
    samples: Sequence[Sample],
    *,
    skipped: str | None,
    unit: Unit,
    compacted: tuple[Compacted, ...],
    left_out: LeftOut | str | None,
    given: Mapping[str, str],
) -> MeasuredRow:
    return MeasuredRow(
        row=row,
        asked=asked,
        samples=tuple(samples),
        skipped="it was not reached" if skipped is None and not samples else skipped,
        unit=unit,
        floors={
            name: statistics.noise_floor(
                compaction.alike(samples, compacted), name, counted=unit == "instructions"
            )
            for name in dict.fromkeys((BEFORE, *given.values()))
        },
        limits=statistics.limits(samples),
        compacted=compacted,
        left_out=left_out,
        given=given,
    )


def _row(
    measured: MeasuredRow,
    names: Sequence[str],
    decided: Decisions,
    *,
    over: Decisions,
    tables: Sequence[Table],
    receipt: Receipt,
    base_adds: str | None,
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
        base_adds=base_adds,
        smallest_effect=digits(smallest_effect(measured, decided)),
        control=_control(measured, decided, receipt),
        floors={name: ratio_of(floor) for name, floor in measured.floors.items() if name != BEFORE},
    )
    # What this machine alone keeps from a verdict, as too few CPUs, is no result to explain.
    to_explain = (measured.asked or row).no_verdict
    return bare.model_copy(
        update={
            "notes": tuple(explain.notes(bare, slower=_slower(row, over))),
            "explanation": explain.by_parts(bare, receipt.machine) if to_explain else None,
        }
    )


def _whole(measured: MeasuredRow) -> Whole | None:
    """What a published table has timed whole, where that of the row is a part of it."""
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


def _beside(
    measured: MeasuredRow, names: Sequence[str], beside: Sequence[tuple[str, Sample]]
) -> Iterator[Beside]:
    """The other quantities of a row, by the same estimator."""
    found: dict[str, list[Sample]] = {}
    for quantity, sample in beside:
        if sample.row == measured.row.name:
            found.setdefault(quantity, []).append(sample)
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
    """Variants of a row that are slower than `published`, among all ratios of the run."""
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
    verdict = _verdict(measured, printed, receipt)
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


def _verdict(measured: MeasuredRow, printed: Printed, receipt: Receipt) -> Verdict:
    reason = measured.row.no_verdict or measured.skipped
    if reason is None and RUNNING in receipt.kernel.variants:
        reason = ALONE
    if reason is None and _emulated(receipt):
        reason = EMULATED
    if reason is not None:
        return not_run(reason)
    if printed.ratio is None:
        return not_run("the source printed no ratio for this row")
    ours = measured.ratio(PUBLISHED)
    if ours is None and measured.published and measured.value:
        return not_run(f"{measured.value} was 0 or not measured here, so it has no ratio")
    if ours is None:
        return not_run(f"the variant {PUBLISHED} was not measured")
    unequal = _unequal_threads(measured, printed) or measured.lacking
    if unequal := unequal or _oversubscribed(measured.row, receipt):
        return not_run(unequal)
    return _judged(measured, ours, printed.ratio)


def _judged(measured: MeasuredRow, ours: Estimate, theirs: float) -> Verdict:
    """By the ratio of what was published: of the whole, where the row is a part of it."""
    if (part_of := measured.row.part_of) is None:
        return judge(ours, measured.floor, theirs, stand_in=measured.row.stands_in)
    whole = measured.whole_ratio(PUBLISHED)
    if whole is None:
        said = measured.left_out
        return not_run(
            said if isinstance(said, str) else f"what {part_of} takes besides was not measured"
        )
    return judge(whole, measured.whole_ratio(BEFORE_AGAIN), theirs)


def _emulated(receipt: Receipt) -> bool:
    return receipt.guest is not None and receipt.guest.accel == "tcg"


def _oversubscribed(row: Row, receipt: Receipt) -> str | None:
    """That the row keeps more CPUs busy than there were, or were idle: what to say of it."""
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
    """Threads, CPUs, memory and rate, where the table has them and ours are others."""
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
    """10^9 bytes a second: as printed, or from what the table says of the memory: nearly.

    A kernel initialises the first section of a node, and what memblock reserved, before.
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
    """Those of the machine, or of the guest, which a row may choose."""
    if receipt.guest is None:
        return receipt.machine.nr_cpus
    return row.threads or receipt.guest.cpus


def _lines(receipt: Receipt) -> ReceiptLines:
    return ReceiptLines(
        machine=receipt.machine.line(),
        tree=anonymous(receipt.kernel.tree),
        patches=anonymous(receipt.patches_line()),
        compiler=receipt.kernel.compiler,
        ream=receipt.ream.line(),
        guest=receipt.guest.line() if receipt.guest is not None else None,
        command=anonymous(receipt.settings.command),
        seed=receipt.settings.seed,
        launches=receipt.settings.launches,
        load_before=receipt.conditions.load_before,
        load_after=receipt.conditions.load_after,
        steal_pct=receipt.conditions.steal_pct,
        others_pct=receipt.conditions.others_pct,
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
