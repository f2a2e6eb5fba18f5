# SPDX-License-Identifier: GPL-2.0-only
"""What is said of compaction besides its time, as the published table has it, and of its batches.

Pure functions: from what samples say to the parts of the object of `--json`.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import median
from types import MappingProxyType

from ream.counted import counted
from ream.experiment import BEFORE, PUBLISHED, Row, is_copy
from ream.measure import statistics
from ream.measure.compaction import Compacted, CpuTimes
from ream.measure.sample import Sample
from ream.measure.statistics import Estimate
from ream.published import Table
from ream.report.contract import (
    Batch,
    Compaction,
    MachineTime,
    PrintedLine,
    PrintedTable,
    Ratio,
    RowResult,
)

NS_PER_S = 1e9
DIGITS = 5


def compaction(
    compacted: Iterable[Compacted],
    subject: str,
    *,
    to: str = BEFORE,
    counted: bool = False,
    exact: bool = False,
) -> Compaction | None:
    """What a variant's samples of one row say; of several, the median. None: it has none.

    to: what its ratios are to. counted: instructions, not times. exact: and they repeat.
    """
    compacted = tuple(compacted)
    own = [one for one in compacted if one.subject == subject]
    if not own:
        return None
    base = [one for one in compacted if one.subject == to] if subject != to else []

    def over_before(value: Callable[[Compacted], float | None]) -> Ratio | None:
        return _ratio(statistics.paired(_places(own, value), _places(base, value), exact=exact))

    def not_copying(one: Compacted) -> float | None:
        return _without_copies(one, counted=counted)

    return Compaction(
        asked=round(median(one.asked for one in own)),
        allocated=round(median(one.allocated for one in own)),
        migrated=_whole(own, lambda one: one.counters.get("pgmigrate_success")),
        migrated_per_huge=_median(own, _migrated_per_huge),
        failed=_whole(own, lambda one: one.counters.get("pgmigrate_fail")),
        dma_copies=_whole(own, lambda one: one.counters.get("dcbm_folios_migrated")),
        migrate_scanned=_whole(own, lambda one: one.counters.get("compact_migrate_scanned")),
        free_scanned=_whole(own, lambda one: one.counters.get("compact_free_scanned")),
        stalls=_whole(own, lambda one: one.counters.get("compact_stall")),
        user_pct=_median(own, lambda one: _share(one, one.user_ns)),
        sys_pct=_median(own, lambda one: _share(one, one.system_ns)),
        idle_pct=_median(own, lambda one: _share(one, one.idle_ns)),
        hog_iterations=_whole(own, lambda one: one.hog_iterations),
        hog_per_s=_median(own, _hog_per_s),
        hog_over_before=over_before(_hog_per_s),
        per_huge=_median(own, lambda one: one.time_ns / one.allocated),
        per_huge_without_copies=_median(own, not_copying),
        without_copies_over_before=over_before(not_copying),
        page_copy=_median(own, lambda one: one.page_copy_ns),
        longest=_whole(own, lambda one: one.longest_ns),
        machine=_machine([one.machine for one in own if one.machine is not None]),
        over_before={
            name: ratio
            for name, value in QUANTITIES.items()
            if (ratio := over_before(value)) is not None
        },
    )


def over(
    compacted: Iterable[Compacted], subject: str, *, to: str, value: str, exact: bool = False
) -> Estimate | None:
    """Ratio subject/to of one of QUANTITIES, paired as times are; None if there is none.

    Where one of two has none of it, as a CPU that never idles, they have no ratio.
    """
    compacted, quantity = tuple(compacted), QUANTITIES.get(value, lambda _: None)
    places = [
        _places([one for one in compacted if one.subject == name], quantity)
        for name in (subject, to)
    ]
    return statistics.paired(places[0], places[1], exact=exact)


def _machine(times: Sequence[CpuTimes]) -> MachineTime | None:
    if not times:
        return None
    return MachineTime(
        user_ns=round(median(one.user_ns for one in times)),
        system_ns=round(median(one.system_ns for one in times)),
        idle_ns=round(median(one.idle_ns for one in times)),
        steal_ns=round(median(one.steal_ns for one in times)),
    )


def alike(samples: Iterable[Sample], compacted: Iterable[Compacted]) -> tuple[Sample, ...]:
    """Samples as if each had got as many huge pages as were asked for.

    Where the kernel gave up before, the time of all would be the time of less work.
    """
    factors = {
        (one.subject, one.launch, one.round): one.asked / one.allocated
        for one in compacted
        if one.allocated < one.asked
    }
    return tuple(
        replace(
            one,
            time_ns=round(one.time_ns * factor),
            cpu_ns=None if one.cpu_ns is None else round(one.cpu_ns * factor),
        )
        if (factor := factors.get((one.subject, one.launch, one.round)))
        else one
        for one in samples
    )


def lacking(compacted: Iterable[Compacted]) -> str | None:
    """That `before` or `published` got fewer huge pages than asked for; None: both got them."""
    least = min(
        (one for one in compacted if one.subject in (BEFORE, PUBLISHED)),
        key=lambda one: one.allocated / one.asked,
        default=None,
    )
    if least is None or least.allocated >= least.asked:
        return None
    asked = counted(least.asked, "huge page")
    return f"{least.subject} got {least.allocated:,} of {asked}, and then none"


def _migrated_per_huge(one: Compacted) -> float | None:
    migrated = one.counters.get("pgmigrate_success")
    return None if migrated is None else migrated / one.allocated


def _hog_per_s(one: Compacted) -> float | None:
    return one.hog_iterations and one.hog_iterations / one.time_ns * NS_PER_S


def _without_copies(one: Compacted, *, counted: bool) -> float | None:
    """Of a huge page; None where copies are not known, or are said to take longer than all.

    A count has all copies in it, whoever copies. A time has not, where an engine copies meanwhile;
    and where a hog has its share, a copy takes longer than it was found to.
    """
    migrated = one.counters.get("pgmigrate_success")
    meanwhile = not counted and bool(one.counters.get("dcbm_folios_migrated"))
    if migrated is None or one.page_copy_ns is None or meanwhile or one.hog_iterations is not None:
        return None
    rest = one.time_ns - one.page_copy_ns * migrated
    return rest / one.allocated if rest > 0 else None


def _share(one: Compacted, value: int | None) -> float | None:
    """Per cent of what the CPU did meanwhile; where its idling is not known, of the time."""
    parts = (one.user_ns, one.system_ns, one.idle_ns)
    whole = one.time_ns if None in parts else sum(part or 0 for part in parts)
    return None if value is None or not whole else min(100.0, 100 * value / whole)


def _places(
    compacted: Iterable[Compacted], value: Callable[[Compacted], float | None]
) -> dict[tuple[int, int], float]:
    """By launch and round; empty unless all of them are above 0.

    Were those of 0 left out, a ratio would be of the boots alone that have some.
    """
    compacted = tuple(compacted)
    found = {(one.launch, one.round): its for one in compacted if (its := value(one))}
    return found if len(found) == len(compacted) else {}


QUANTITIES: Mapping[str, Callable[[Compacted], float | None]] = MappingProxyType(
    {
        "user_pct": lambda one: _share(one, one.user_ns),
        "sys_pct": lambda one: _share(one, one.system_ns),
        "idle_pct": lambda one: _share(one, one.idle_ns),
        "hog_iterations": lambda one: one.hog_iterations,
    }
)
"""By their names in the published table: what a verdict may be about besides time."""


def _median(
    compacted: Iterable[Compacted], value: Callable[[Compacted], float | None]
) -> float | None:
    found = [one for one in map(value, compacted) if one is not None]
    return _rounded(median(found)) if found else None


def _whole(compacted: Iterable[Compacted], value: Callable[[Compacted], int | None]) -> int | None:
    found = [one for one in map(value, compacted) if one is not None]
    return round(median(found)) if found else None


def _ratio(estimate: Estimate | None) -> Ratio | None:
    if estimate is None:
        return None
    low, high = estimate.low, estimate.high
    return Ratio(
        ratio=_rounded(estimate.ratio),
        low=None if low is None else _rounded(low),
        high=None if high is None else _rounded(high),
        spread_low=_rounded(estimate.spread[0]),
        spread_high=_rounded(estimate.spread[1]),
    )


def _rounded(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")


# --- The published table -----------------------------------------------------------------


def printed_tables(
    results: Iterable[RowResult], tables: Iterable[Table], experiment: str
) -> tuple[PrintedTable, ...]:
    """Tables of an experiment, line by line, where a row of ours has the same columns."""
    if not any(one.compaction for result in results for one in result.variants.values()):
        return ()
    return tuple(
        PrintedTable(
            id=table.id,
            source=", ".join(str(part) for part in (table.author, table.date) if part),
            machine=table.machine,
            method=table.method,
            unit=table.unit,
            better=table.better,
            nr_huge=table.nr_huge,
            lines=tuple(
                PrintedLine(params=row.params, values=row.values, sd=row.sd) for row in table.rows
            ),
        )
        for table in tables
        if table.experiment == experiment
    )


# --- Batches -----------------------------------------------------------------------------

_Place = tuple[str, int]
"""A variant, and the pages of a batch."""


def batches(rows: Iterable[Row], results: Iterable[RowResult]) -> tuple[Batch, ...]:
    """Where the time of a page goes, by variant and pages of a batch.

    Rows that differ in one thing are set off against each other; what would need a row that did
    not run is None. rows and results: in lockstep.
    """
    found: dict[tuple[str, str, str], dict[_Place, tuple[float, float | None]]] = {}
    for row, result in zip(rows, results, strict=True):
        if (of := row.batch_of) is None:
            continue
        by_place = found.setdefault((of.mode, of.measure, of.tlb_flush), {})
        for name, its in result.variants.items():
            if not is_copy(name) and its.ns_per_page is not None:
                by_place[name, of.pages] = its.ns_per_page, its.per_batch
    return tuple(_batches(found))


def _batches(
    found: Mapping[tuple[str, str, str], Mapping[_Place, tuple[float, float | None]]],
) -> Iterator[Batch]:
    move = found.get(("baseline", "move", "none"), {})
    metadata = found.get(("baseline", "metadata", "none"), {})
    flushed = found.get(("baseline", "move", "measured"), {})
    dma = found.get(("dma", "move", "none"), {})
    for place in _in_order([*move, *metadata, *flushed, *dma]):
        all_of_it, _ = move.get(place, (None, None))
        rest, _ = metadata.get(place, (None, None))
        with_flush, _ = flushed.get(place, (None, None))
        # `before` has no engine: its row is the plain one again.
        by_dma, _ = dma.get(place, (None, None)) if place[0] != BEFORE else (None, None)
        whole = flushed.get(place) or move.get(place)
        yield Batch(
            subject=place[0],
            batch_pages=place[1],
            page_ns=_or_none(with_flush if with_flush is not None else all_of_it),
            copy_ns=_difference(all_of_it, rest),
            flush_ns=_difference(with_flush, all_of_it),
            rest_ns=_or_none(rest),
            dma_page_ns=_or_none(by_dma),
            call_ns=None if whole is None or whole[1] is None else whole[1],
        )


def _in_order(places: Sequence[_Place]) -> list[_Place]:
    """By variant in the order they come, then by size."""
    names = list(dict.fromkeys(name for name, _ in places))
    return sorted(set(places), key=lambda place: (names.index(place[0]), place[1]))


def _difference(more: float | None, less: float | None) -> float | None:
    """Of two measured times; noise may make it negative."""
    return None if more is None or less is None else _rounded(more - less)


def _or_none(value: float | None) -> float | None:
    return None if value is None else _rounded(value)
