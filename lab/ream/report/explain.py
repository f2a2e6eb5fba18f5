# SPDX-License-Identifier: GPL-2.0-only
"""Sentences that explain the numbers of one row, computed from these numbers alone."""

import math
from collections.abc import Collection, Iterator, Mapping

from ream.counted import counted
from ream.experiment import (
    BASE,
    BEFORE,
    PAGE_BYTES,
    PUBLISHED,
    RUNNING,
    format_size,
    is_copy,
    shown,
)
from ream.measure.statistics import LIMIT_ERROR
from ream.measure.whole import Parts
from ream.record.machine import Machine
from ream.report.contract import WALL_TIME, Ratio, Result, RowResult, Whole
from ream.report.numbers import fit, interval
from ream.values import Scalar

HUGE_PAGE = "huge page"

NO_EFFECT = ("equal", "undecided", "no difference")
WIDE_FLOOR = 1.05
"""A noise floor above this ratio hides effects of the size that people publish."""
WORTH_A_WORD = 0.95
"""CPU time below this share of the reference's is reported as CPU time freed."""
WORTHWHILE = 1.3
"""The gain that two channels on two idle CPUs are expected to reach if bandwidth allows."""


def notes(row: RowResult, *, slower: Collection[str] = (), is_bound: bool = True) -> Iterator[str]:
    """What a reader must know before relying on this row's numbers, one sentence each.

    slower: variants that are slower than `published`, as decided over all rows of the run.
    is_bound: whether the limit is what the hardware allows, so that none can be beyond it.
    """
    if row.skipped is not None:
        yield f"not run: {row.skipped}"
        return
    if row.asked_params is not None:
        yield from _changes(row.asked_params, row.params)
    before = row.variants.get(BEFORE)
    bound = _bound(row.floor)
    if before is None:
        if RUNNING not in row.variants:
            yield f"{BEFORE} was not measured: there is nothing to compare with"
    elif bound is None:
        yield "no noise floor: it takes two launches; no effect can be told from layout or noise"
    elif bound > math.log(WIDE_FLOOR):
        yield (
            f"the noise floor reaches {100 * math.expm1(bound):.0f} % here: a smaller effect "
            "cannot be seen; more launches or a quieter machine would narrow it"
        )
    for name, result in row.variants.items():
        yield from _of_one(name, result, before, row, is_bound=is_bound)
        if name in slower and not (name == BASE and row.base_adds):
            yield _slower(name, result, row)
        yield from _of_launches(name, result, row)
        yield from _by_entry(name, result, row)
        yield from _cpu_time(name, result)
    yield from _undecided(row)
    if before is not None and row.params.get("channels"):
        yield from _copy_bound(before, row)
    yield from beside(row)


def beside(row: RowResult) -> Iterator[str]:
    """Sentences about the complete call, and about what the base has gained over `published`."""
    if row.whole is not None:
        yield whole_words(row.whole, parts_of(row))
    base = row.variants.get(BASE)
    if row.base_adds and base is not None and (over := base.over_published) is not None:
        told = over.low is None or over.high is None or not over.low <= 1 <= over.high
        yield (
            f"the cost of {row.base_adds}: {BASE} takes {_interval(over)} of {PUBLISHED}'s "
            f"{_measured(row)}{'' if told else ', which is no difference'}"
        )


def parts_of(row: RowResult) -> Parts | None:
    """The time of the row's part in a live call and in hosted code; None if either is unknown."""
    if row.whole is None:
        return None
    by_wall = next((one.variants for one in row.beside if one.name == WALL_TIME), row.variants)
    names = (BASE, PUBLISHED, shown(PUBLISHED))
    median = next((by_wall[name].median for name in names if name in by_wall), None)
    return Parts.of(row.whole.whole_ns, row.whole.left_out_ns, median)


def _parts_words(parts: Parts | None) -> str:
    if parts is None:
        return ""
    live, hosted = (fit(ns / 1e6, 5) for ns in (parts.live_ns, parts.hosted_ns))
    return f"; live part {live} ms, hosted part {hosted} ms, live/hosted {fit(parts.ratio, 4, 2)}"


def whole_words(whole: Whole, parts: Parts | None) -> str:
    """The row's share of the complete call, the part's time there and in hosted code, and the ratio
    that this call would have, in words.
    """
    ratio = (
        ""
        if whole.ratio is None
        else f"; all of it would have {_interval(whole.ratio)}"
        + ("" if parts is None or parts.differ else ", and the verdict is of that")
    )
    left = f"left out: {fit(whole.left_out_ns / 1e6, 5)} ms, {whole.how}"
    if whole.share is None or whole.whole_ns is None:
        said = f"a part of {whole.name}, whose share could not be measured"
        return f"{said}; {left}{_parts_words(parts)}{ratio}"
    times = (fit(ns / 1e6, 5) for ns in (whole.whole_ns - whole.left_out_ns, whole.whole_ns))
    return (
        f"share of the whole: {100 * whole.share:.3g} % of {whole.name} here "
        f"({' of '.join(times)} ms; {left}){_parts_words(parts)}{ratio}"
    )


def _interval(ratio: Ratio) -> str:
    has_one = ratio.low is None or ratio.low == ratio.high  # counts that repeat exactly
    return fit(ratio.ratio, 5, 3) if has_one else interval(ratio)


def _of_one(
    name: str, result: Result, before: Result | None, row: RowResult, *, is_bound: bool
) -> Iterator[str]:
    if is_bound and result.of_limit is not None and result.of_limit > LIMIT_ERROR:
        yield (
            f"{name} is at {result.of_limit:.2f} of its limit: that is an error in the limit "
            "(a better fill exists, or the fills met worse weather), not a triumph"
        )
    no_limit = bool(row.limits) and result.of_limit is None
    # Of huge pages that were not to be had the stage tells.
    if before is not None and result.nr_bytes != before.nr_bytes and not row.params.get("nr_huge"):
        missing = ": no fill of as many ran" if no_limit else ""
        yield (
            f"{name} writes {result.nr_bytes:,} bytes of {row.bytes_of}, "
            f"{BEFORE} {before.nr_bytes:,}{missing}"
        )
    elif no_limit:
        yield f"{name}: no fill of the same bytes ran with {_cpus(result.threads)} or more"


def _slower(name: str, result: Result, row: RowResult) -> str:
    over = result.over_published
    ratio = "?" if over is None else interval(over)
    return (
        f"{name} is slower than {PUBLISHED}: {ratio} of its {_measured(row)}, "
        f"{_amount_per_page(result, row)} against "
        f"{_amount_per_page(row.variants[PUBLISHED], row)} per {_page(row)}"
    )


def _cpu_time(name: str, result: Result) -> Iterator[str]:
    """The CPU time that a gain by several CPUs cost, or that offloading to an engine freed."""
    over = result.cpu_over_before
    if over is None or over.low is None or over.high is None or not result.effect:
        return
    threads = result.threads or 1
    frees = over.high < WORTH_A_WORD and (result.ratio or 0) > over.high
    if threads == 1 and not frees:
        return
    how = "no faster" if result.effect in NO_EFFECT else f"{_factor(result)}x {result.effect}"
    yield f"{name}, {_cpus(threads)}: {how} for {interval(over)} of the CPU time"


def _factor(result: Result) -> str:
    ratio = result.ratio or 1
    return fit(1 / ratio if ratio < 1 else ratio, 5)


def _measured(row: RowResult) -> str:
    return "time" if row.unit == "ns" else row.unit


def _of_launches(name: str, result: Result, row: RowResult) -> Iterator[str]:
    """Notes on the spread over launches: ratios that may be chance, or depend on layout."""
    if (why := _no_effect(result, _bound(row.floor_of(name)))) is not None:
        yield f"{name} is {result.effect}, although its interval excludes 1: {why}"
    layout = result.layout
    if layout is not None and layout.depends:
        yield (
            f"{name} depends on layout: launches give {fit(result.spread_low, 5, 3)} .. "
            f"{fit(result.spread_high, 5, 3)}, rounds of one launch are within "
            f"{100 * (layout.within - 1):.2g} % of its middle; more launches average over more"
        )


def _undecided(row: RowResult) -> Iterator[str]:
    """A note on undecided variants, with the number of launches that would decide them."""
    needed = {name: its.launches_needed for name, its in row.variants.items()}
    known = {name: nr for name, nr in needed.items() if nr is not None and not is_copy(name)}
    if known:
        most = max(known.values())
        yield (
            f"undecided: {', '.join(known)}; with about {counted(most, 'launch', 'launches')}, or"
            " on a quieter machine, what is no effect would be shown to be within 10 %"
        )


def _no_effect(result: Result, bound: float | None) -> str | None:
    """The condition of an effect that a ratio fails whose interval excludes 1; None if it is an
    effect, if its interval includes 1, or if there is no floor.

    bound: the largest |log ratio| of the noise floor.
    """
    if result.effect not in NO_EFFECT or bound is None:
        return None
    if result.ratio is None or result.low is None or result.high is None:
        return None
    if result.low <= 1 <= result.high:
        return None
    if abs(math.log(result.ratio)) <= bound:
        return f"it lies within the noise floor, which reaches {100 * math.expm1(bound):.2g} % here"
    if result.p_value is None:
        return None
    return (
        f"it does not stand the correction for multiple comparisons (p = "
        f"{fit(result.p_value, 7, 4)}), as of so many ratios some exclude 1 by chance; "
        "more launches of this row alone would tell"
    )


def _by_entry(name: str, result: Result, row: RowResult) -> Iterator[str]:
    """The cost per unmapped and remapped entry, next to that of `published`."""
    over, published = result.over_published, row.variants.get(PUBLISHED)
    if result.per_entry is None or over is None or published is None:
        return
    yield (
        f"{name} takes {result.per_entry:.3g} {row.unit} for each {entry(row)}, {PUBLISHED} "
        f"{published.per_entry or 0:.3g}: {_interval(over)} of its {_measured(row)}"
    )


def _copy_bound(before: Result, row: RowResult) -> Iterator[str]:
    """A note that memory bandwidth forbids a large gain, if the fastest copy shows that."""
    threads = max(result.threads or 1 for result in row.variants.values())
    within = [limit for limit in row.limits if limit.threads <= threads]
    fastest = min(within, key=lambda limit: limit.value, default=None)
    if fastest is None or (gain := before.median / fastest.value) >= WORTHWHILE:
        return
    yield (
        f"the bandwidth of copying forbids {WORTHWHILE:g}x here: the fastest copy of the same "
        f"bytes ({fastest.how}, {_cpus(fastest.threads)}) alone is {gain:.2f}x as fast as {BEFORE}"
    )


def entry(row: RowResult) -> str:
    """The name of the unit of per-entry costs: a PTE, a PMD, or a huge page to be allocated."""
    if row.params.get("nr_huge"):
        return HUGE_PAGE
    return "PMD" if row.params.get("mapped") == "pmd" else "PTE"


def _page(row: RowResult) -> str:
    return "struct page" if row.bytes_of == "map" else "page"


def by_parts(row: RowResult, machine: Machine) -> str | None:
    """Explain a published result that gets no verdict, from what was measured here.

    None if the row lacks `before`, `published` or a limit for them.
    """
    before, published = row.variants.get(BEFORE), row.variants.get(PUBLISHED)
    if before is None or published is None or before.of_limit is None or row.limit is None:
        return None
    fill = row.limit
    first_touch = row.params.get("first_touch")
    state = "first touch" if first_touch else row.params.get("pre_state")
    said = [
        (
            f"One sample writes {_amount(before, row)} ({_cached(before, machine)}; "
            f"pre-state: {state})."
        ),
        (
            f"{BEFORE} takes {_per_page(before)} per {_page(row)}, {PUBLISHED} "
            f"{_per_page(published)}; the fastest fill of the same bytes "
            f"({fill.how}, {_cpus(fill.threads)}) takes {fill.ns_per_page:.3g} ns."
        ),
    ]
    if before.of_limit < 1:
        said.append(
            f"So {BEFORE} is at {before.of_limit:.2f} of the limit: with {_cpus(fill.threads)}, "
            "no fill of these bytes tried here brings its time below that part of what it is; "
            f"{PUBLISHED} brings it to {published.ratio:.3f}."
        )
    else:
        said.append(f"So {BEFORE} is at the limit already: there is nothing to gain here.")
    said.append(_outside(row, published))
    return " ".join(said)


def _outside(row: RowResult, published: Result) -> str:
    """How the time that is not measured here can and cannot have changed the published ratio."""
    theirs = [table.ratio for table in row.comparisons if table.ratio is not None]
    rule = (
        "Whatever else was timed there is not measured here; if it takes the same time with and "
        "without the patches, it moves a ratio towards 1, never past it"
    )
    ours = published.ratio
    across = [] if ours is None else [one for one in theirs if (one - 1) * (ours - 1) < 0]
    if not across:
        return rule + "."
    said = " or ".join(dict.fromkeys(f"{one:.3g}" for one in across))
    return (
        f"{rule}: it cannot make {said} out of the {published.ratio:.3f} measured here. "
        f"There, then, {BEFORE} may have been near its limit already, or the map in a cache."
    )


def _cached(before: Result, machine: Machine) -> str:
    """The size relative to L2 and L3. L2 is first, as a guest's L3 is often its host's."""
    sizes = {level: machine.cache_bytes(level) for level in (2, 3)}
    said = [
        f"{_times(before.nr_bytes / size)} times the L{level} of {format_size(size)}"
        for level, size in sizes.items()
        if size is not None
    ]
    return " and ".join(said) if said else "cache sizes unknown"


def _times(factor: float) -> str:
    """A factor with three digits and no exponent: 0.5, 21.3, 2048."""
    return f"{factor:.0f}" if factor >= 100 else f"{factor:.3g}"  # noqa: PLR2004


def _amount(result: Result, row: RowResult) -> str:
    return f"{result.nr_bytes / 1e9:.3g} GB of {row.bytes_of}"


def _per_page(result: Result) -> str:
    return "?" if result.ns_per_page is None else f"{result.ns_per_page:.3g} ns"


def _amount_per_page(result: Result, row: RowResult) -> str:
    return "?" if result.per_page is None else f"{result.per_page:.3g} {row.unit}"


def _cpus(threads: int | None) -> str:
    return "1 CPU" if threads == 1 else f"{threads} CPUs"


def _changes(asked: Mapping[str, Scalar | None], ran: Mapping[str, Scalar | None]) -> Iterator[str]:
    for name, value in asked.items():
        if ran.get(name) == value:
            continue
        if name == "nr_pages" and isinstance(value, int) and isinstance(ran.get(name), int):
            sizes = [format_size(int(pages) * PAGE_BYTES) for pages in (value, ran[name] or 0)]
            yield f"the device is {sizes[1]} here, {sizes[0]} was asked for: memory is short"
        else:
            yield f"{name} is {ran.get(name)} here, {value} was asked for"


def _bound(floor: Ratio | None) -> float | None:
    if floor is None or floor.low is None or floor.high is None:
        return None
    return max(abs(math.log(floor.low)), abs(math.log(floor.high)))
