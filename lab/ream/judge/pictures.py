# SPDX-License-Identifier: GPL-2.0-only
"""Plots of a judgement as SVG, which need no script and no network."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from typing import Any

import altair as alt

from ream.experiment import PATCHED
from ream.judge.judgement import Judgement, Operation
from ream.report.html.charts import BAR, INK, MUTED, Chart, Point, chart, finished
from ream.report.html.curves import curves
from ream.report.html.looks import BY_NAME
from ream.report.html.picture import inline

MOST_ROWS = 24
MOST_WATERFALLS = 6
STEP = 26

EFFECTS = {"slower": "worse", "faster": "better", "equal": "equal"}
"""Words that the plots use for the effects on a time."""


@dataclass(frozen=True)
class Picture:
    """A plot: its title, a description in words, and the SVG."""

    title: str
    alt: str
    svg: str


def pictures(its: Judgement) -> tuple[Picture, ...]:
    """Return plots of times or instructions, of curves over sizes, and of each patch's share."""
    first = tuple(_times(its)) or tuple(_counts(its))
    return tuple(
        Picture(one.title, one.alt, inline(one, _waterfall() if one.kind == WATERFALL else None))
        for one in (*first, *curves(its.rows), *_waterfalls(its))
    )


def _times(its: Judgement) -> Iterator[Chart]:
    rows = [one for one in its.ordered() if one.timed is not None][:MOST_ROWS]
    if not rows:
        return
    points = [_time(one) for one in rows]
    said = (f"{point['name']} {point['ratio']:.3f}" for point in points)
    yield chart(
        "times",
        "effect",
        title="Time with the series over that without it",
        alt=f"Ratios of times: {', '.join(said)}.",
        points=points,
        floor=[],
    )


def _time(one: Operation) -> Point:
    assert one.timed is not None
    return {
        "name": one.row,
        "ratio": one.timed.ratio,
        "low": one.timed.low,
        "high": one.timed.high,
        "effect": EFFECTS.get(one.timed.effect or "", "undecided"),
    }


def _counts(its: Judgement) -> Iterator[Chart]:
    """Yield the chart of instructions by row; none if no row's instructions change."""
    shares = {
        one.row: 100 * one.counted.share("instructions")
        for one in its.ordered()
        if one.counted is not None and one.counted.before.get("instructions")
    }
    shown = list(shares.items())[:MOST_ROWS]
    if not any(share for _, share in shown):
        return
    yield chart(
        "counts",
        "value",
        title="Instructions that the series adds, in per cent",
        alt=f"Instructions added: {', '.join(f'{row} {share:+.1f} %' for row, share in shown)}.",
        points=[{"name": row, "value": share} for row, share in shown],
        looks=dict.fromkeys(shares, BY_NAME[PATCHED]),
    )


# --- What each patch adds --------------------------------------------------------------

WATERFALL = "waterfall"


def _waterfalls(its: Judgement) -> Iterator[Chart]:
    """Yield a chart for each of the rows that change most, if each patch was counted."""
    rows = [one for one in its.ordered() if one.counted is not None and len(one.steps) > 1]
    for number, one in enumerate(rows[:MOST_WATERFALLS], 1):
        assert one.counted is not None
        points = list(_steps(one))
        said = (f"{point['name']} {point['by']}" for point in points)
        yield chart(
            f"waterfall-{number}",
            WATERFALL,
            title=f"{one.row}: instructions for each {one.counted.per}, patch by patch",
            alt=f"{one.row}: {', '.join(said)}.",
            points=points,
        )


def _steps(one: Operation) -> Iterator[Point]:
    """Yield a bar for the base, one for each patch from where the last one ended, and the sum."""
    assert one.counted is not None
    first = one.counted.before.get("instructions", 0.0)
    changes = [step.changes.get("instructions", 0.0) for step in one.steps]
    ends = list(accumulate(changes, initial=first))
    yield {"name": "without", "from": 0.0, "to": first, "by": f"{first:.1f}", "kind": "whole"}
    for step, start, end in zip(one.steps, ends, ends[1:], strict=False):
        yield {
            "name": f"patch {step.number}",
            "from": start,
            "to": end,
            "by": f"{end - start:+.1f}" if end != start else "0",
            "kind": "more" if end > start else "less",
        }
    last = ends[-1]
    yield {"name": "with all", "from": 0.0, "to": last, "by": f"{last:.1f}", "kind": "whole"}


@cache
def _waterfall() -> Mapping[str, Any]:
    """Return the chart's marks: floating bars, and words that repeat what colours show."""
    base = alt.Chart(alt.NamedData(name="points")).encode(
        y=alt.Y("name:N", title=None, sort=None, axis=alt.Axis(grid=True, ticks=False))
    )
    colours = [BAR, "var(--series-2)", "var(--series-4)"]
    bars = base.mark_bar(height=14).encode(
        x=alt.X("from:Q", title=None, axis=alt.Axis(tickCount=5)),
        x2="to:Q",
        color=alt.Color(
            "kind:N",
            legend=None,
            scale=alt.Scale(domain=["whole", "more", "less"], range=colours),
        ),
    )
    ends = base.transform_calculate(end="max(datum.from, datum.to)")
    words = ends.mark_text(align="left", dx=5, fill=INK, stroke=MUTED, strokeWidth=0).encode(
        x="end:Q", text="by:N"
    )
    return finished(alt.layer(bars, words).properties(height=alt.Step(STEP)))
