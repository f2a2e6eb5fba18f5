# SPDX-License-Identifier: GPL-2.0-only
"""Computes the points of a page's plots, from the object of `--json` and from samples."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

from ream.experiment import BEFORE, RUNNING
from ream.measure.sample import Sample
from ream.report.contract import Ratio, RowResult
from ream.report.html.charts import MOST_IN_PLOT, Chart, Point, chart
from ream.report.html.looks import LIMIT, Look, looks_of
from ream.report.html.tables import NONE, HtmlTable, number, unit_of
from ream.report.limit import LIMIT_WORDS
from ream.report.numbers import fit, interval
from ream.report.table import best_fills
from ream.report.words import effect_words

MOST_SAMPLES = 3000
"""The most points of a plot; more of them hide each other."""
MOST_IN_OVERVIEW = 16
"""The most rows of one overview, so that it fits a printed page."""
DIGITS = 6

_KINDS = {
    "faster": "better",
    "fewer": "better",
    "slower": "worse",
    "more": "worse",
    "equal": "equal",
}


def _short(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")


def band_of(row: RowResult) -> tuple[float, float] | None:
    """The range of ratios that do not exceed the noise floor, as effects are judged.

    The floor's interval may lie on one side of 1; the band is symmetric on a log scale.
    """
    floor = row.floor
    if floor is None or floor.low is None or floor.high is None:
        return None
    high = max(floor.low, 1 / floor.low, floor.high, 1 / floor.high)
    return 1 / high, high


# --- A row's ratio, value and share --------------------------------------------------------


def of_row(row: RowResult, ident: str, look: Mapping[str, Look], word: str) -> Iterator[Chart]:
    """The plots of one row for which there is data.

    look: of all variants of the record. word: for the limit, see report.limit.limit_word().
    """
    its = LIMIT_WORDS[word]
    scale, unit = unit_of(row)
    if ratios := ratio_points(row):
        said = "; ".join(_ratio_words(name, row) for name in row.variants if name != BEFORE)
        bound = band_of(row)
        floor = [] if bound is None else [{"low": bound[0], "high": bound[1]}]
        band = "; the noise floor is not known"
        if bound is not None:
            band = f"; the noise floor reaches from {bound[0]:.3f} to {bound[1]:.3f}"
        yield chart(
            f"{ident}-ratio",
            "ratio",
            title="Ratio to before, with its interval"
            + ("; the band is the noise floor" if floor else ""),
            alt=f"Ratios of {row.row}: {said}{band}.",
            points=ratios,
            floor=floor,
            looks=look,
        )
    if values := value_points(row, scale, word):
        said = ", ".join(f"{point['name']} {fit(_float(point['value']), 9)}" for point in values)
        yield chart(
            f"{ident}-value",
            "value",
            title=f"Median, {unit}; shorter is better"
            + (f"; {word}s with their CPUs" if any(p["kind"] == "limit" for p in values) else ""),
            alt=f"Medians of {row.row} in {unit}: {said}.",
            points=values,
            looks={str(p["name"]): LIMIT for p in values if p["kind"] == "limit"} | {**look},
        )
    if shares := share_points(row):
        said = ", ".join(f"{point['name']} {fit(_float(point['share']), 5)}" for point in shares)
        yield chart(
            f"{ident}-share",
            "share",
            title=f"Share of {its}; longer is better",
            alt=f"Shares of {its} of {row.row}: {said}; 1 is the {word}.",
            points=shares,
            looks=look,
        )


def ratio_points(row: RowResult) -> list[Point]:
    """The ratios of the row's variants, with intervals and effects."""
    return [
        {
            "name": name,
            "ratio": result.ratio,
            "low": result.low,
            "high": result.high,
            "effect": _KINDS.get(result.effect or "", "undecided"),
        }
        for name, result in row.variants.items()
        if name not in (BEFORE, RUNNING) and result.ratio is not None
    ]


def value_points(row: RowResult, scale: float, word: str) -> list[Point]:
    """The medians of the row's variants and of its fastest limits, divided by `scale`."""
    points: list[Point] = [
        {"name": name, "value": _short(result.median / scale), "kind": "variant"}
        for name, result in row.variants.items()
    ]
    points += [
        {
            "name": f"{word} {fill.how} x{fill.threads}",
            "value": _short(fill.value / scale),
            "kind": "limit",
        }
        for fill in best_fills(row.limits or ((row.limit,) if row.limit else ()))
        if row.variants
    ]
    return points


def share_points(row: RowResult) -> list[Point]:
    """The shares of the limit that the row's variants reach."""
    return [
        {
            "name": name,
            "share": result.of_limit,
            "low": result.of_limit_low,
            "high": result.of_limit_high,
        }
        for name, result in row.variants.items()
        if result.of_limit is not None
    ]


def _ratio_words(name: str, row: RowResult) -> str:
    result = row.variants[name]
    if result.ratio is None:
        return f"{name} not known"
    return f"{name} {interval(Ratio(ratio=result.ratio, low=result.low, high=result.high))}" + (
        f", {effect_words(result)}" if result.effect else ""
    )


def _float(value: object) -> float | None:
    return value if isinstance(value, float) else None


# --- All rows ------------------------------------------------------------------------------


def overviews(rows: Sequence[RowResult], names: Sequence[str]) -> Iterator[Chart]:
    """Ratios of the named variants, with a few rows per plot."""
    compared = [
        row
        for row in rows
        if any(name in row.variants and row.variants[name].ratio is not None for name in names)
    ]
    for start in range(0, len(compared), MOST_IN_OVERVIEW):
        some = compared[start : start + MOST_IN_OVERVIEW]
        points: list[Point] = [
            {
                "row": row.row,
                "name": name,
                "ratio": row.variants[name].ratio,
                "low": row.variants[name].low,
                "high": row.variants[name].high,
            }
            for row in some
            for name in names
            if name in row.variants and row.variants[name].ratio is not None
        ]
        bounds = [(row.row, bound) for row in some if (bound := band_of(row))]
        which = "" if len(some) == len(compared) else f", from {some[0].row} to {some[-1].row}"
        said = ", ".join(
            f"{point['row']} {point['name']} {fit(_float(point['ratio']), 5, 3)}"
            for point in points
        )
        yield chart(
            f"overview-{start // MOST_IN_OVERVIEW + 1}",
            "overview",
            title=f"Ratio to before by row{which}"
            + ("; the band is each row's noise floor" if bounds else ""),
            alt=f"Ratios to before{which}: {said}. The table above has the same with intervals.",
            points=points,
            looks=looks_of(rows),
            floor=[{"row": name, "low": low, "high": high} for name, (low, high) in bounds],
        )


# --- Samples in order ------------------------------------------------------------------------


def thinned(samples: Sequence[Sample]) -> tuple[list[tuple[int, Sample]], int]:
    """Samples of a row with their positions from 1 on, and n: only every n-th round is kept."""
    every = math.ceil(len(samples) / MOST_SAMPLES) or 1
    rounds = dict.fromkeys((one.launch, one.round) for one in samples)
    kept = {place for number, place in enumerate(rounds) if number % every == 0}
    numbered = enumerate(samples, start=1)
    return [(n, one) for n, one in numbered if (one.launch, one.round) in kept], every


def drift(
    row: RowResult, samples: Sequence[Sample], ident: str, look: Mapping[str, Look]
) -> tuple[list[Chart], HtmlTable | None, int]:
    """Plots of every sample in order, some variants each; a table; and the n of thinned().

    look: of all variants of the record.
    """
    if not samples or not row.variants:
        return [], None, 1
    scale, unit = unit_of(row)
    kept, every = thinned(samples)
    starts: dict[int, int] = {}
    for n, one in kept:
        starts.setdefault(one.launch, n)
    launches: list[Point] = [{"at": n - 0.5} for n in starts.values()]
    seen = {one.subject for _, one in kept}
    names = [name for name in row.variants if name in seen]
    charts = []
    for start in range(0, len(names), MOST_IN_PLOT):
        some = names[start : start + MOST_IN_PLOT]
        points: list[Point] = [
            {
                "n": n,
                "value": _short(one.time_ns / scale),
                "name": one.subject,
                "launch": one.launch,
                "round": one.round,
            }
            for name in some
            for n, one in kept
            if one.subject == name
        ]
        charts.append(
            chart(
                f"{ident}-drift-{start // MOST_IN_PLOT + 1}",
                "drift",
                title=f"Samples in the order taken, {unit}, log scale; a line where a launch begins"
                + (
                    ""
                    if len(names) <= MOST_IN_PLOT
                    else f" ({' to '.join((some[0], *some[1:][-1:]))})"
                ),
                alt=_drift_words(row, some, kept),
                points=points,
                launches=launches,
                looks=look,
            )
        )
    return charts, _drift_table(row, kept, names), every


def _drift_words(
    row: RowResult,
    names: Iterable[str],
    kept: Sequence[tuple[int, Sample]],
) -> str:
    scale, unit = unit_of(row)
    nr_launches = len({one.launch for _, one in kept})
    said = []
    for name in names:
        values = [one.time_ns / scale for _, one in kept if one.subject == name]
        said.append(f"{name} from {fit(min(values), 9)} to {fit(max(values), 9)}")
    each = "launch" if nr_launches == 1 else "launches"
    return f"Samples of {row.row} in {unit}, over {nr_launches} {each}: {', '.join(said)}."


def _drift_table(
    row: RowResult,
    kept: Sequence[tuple[int, Sample]],
    names: Sequence[str],
) -> HtmlTable:
    scale, unit = unit_of(row)
    by_round: dict[tuple[int, int], dict[str, str]] = {}
    for _, one in kept:
        cells = by_round.setdefault((one.launch, one.round), {})
        value = number(one.time_ns / scale)
        cells[one.subject] = f"{cells[one.subject]}, {value}" if one.subject in cells else value
    return HtmlTable(
        caption=f"{row.row}: samples, {unit}",
        head=("launch, round", *names),
        lines=tuple(
            (f"{place[0]}, {place[1]}", *(cells.get(name, NONE) for name in names))
            for place, cells in by_round.items()
        ),
    )
