# SPDX-License-Identifier: GPL-2.0-only
"""Defines the plots of a page: a Vega-Lite specification per kind, which data sets fill.

Colours are named in the style sheet, so that plots follow the page's dark and print modes. Shapes
or words repeat what colours show.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from itertools import product
from typing import Any

import altair as alt
import vl_convert

from ream.values import Scalar, Sealed, Tuple, Value

INK, MUTED, LINE = "var(--ink)", "var(--muted)", "var(--line)"
BAND, BAR = "var(--band)", "var(--bar)"
SERIES = tuple(f"var(--series-{number})" for number in range(6))
SHAPES = ("circle", "square", "diamond", "triangle-up", "cross", "triangle-down")
EFFECTS = ("better", "worse", "equal", "undecided")
"""The kinds of effects of a ratio."""
STEP = 26
"""Height of a variant's line in pixels."""
LABEL = 170
"""The most pixels of a name at the left: a phone has 360, and the name of a limit must fit."""

RATIO = "lower is better; log scale"

_Layers = alt.LayerChart | alt.FacetChart
"""The return types of Altair's functions, although no facets are used."""

Point = Mapping[str, Scalar | None]


class Chart(Value):
    """One plot: its kind, its points, and a description in words."""

    id: str
    kind: str
    title: str
    alt: str
    data: Sealed[str, Tuple[Sealed[str, Scalar | None]]]


def chart(
    ident: str, kind: str, *, title: str, alt: str, **data: Sequence[Point]
) -> Chart:  # fmt: skip
    """A chart with the given data sets, by name."""
    return Chart(
        id=ident,
        kind=kind,
        title=title,
        alt=alt,
        data={name: tuple(points) for name, points in data.items()},
    )


@cache
def library() -> str:
    """Vega, Vega-Lite and vega-embed as one script, which sets window.reamEmbed."""
    return vl_convert.javascript_bundle("window.reamEmbed = vegaEmbed;")


@cache
def kinds() -> Mapping[str, Mapping[str, Any]]:
    """The Vega-Lite specification of each kind of plot, by name, without points and width."""
    made = {
        "ratio": _ratio(),
        "overview": _overview(),
        "value": _bars("value", "kind:N"),
        "share": _share(),
        "drift": _drift(),
        **{
            sweep_kind(limit, there): _sweep(has_limit=limit, has_published=there)
            for limit, there in product((False, True), repeat=2)
        },
        "noise": _noise(),
    }
    return {name: finished(one) for name, one in made.items()}


def finished(layers: _Layers) -> Mapping[str, Any]:
    """The specification of a plot in the style of the page, without points and width."""
    configured = layers.properties(
        background="transparent",
        padding={"left": 4, "right": 14, "top": 4, "bottom": 4},  # half a number at the right end
    ).configure(
        aria=False,  # the words beside a plot say what it shows; hundreds of marks would not
        font="sans-serif",  # widths are measured with it: it has to be the one that is drawn
        view=alt.ViewConfig(stroke=None),
        axis=alt.AxisConfig(
            labelColor=INK,
            titleColor=INK,
            titleFontWeight="normal",
            gridColor=LINE,
            domainColor=MUTED,
            tickColor=MUTED,
            labelFontSize=12,
            titleFontSize=12,
            labelLimit=LABEL,
        ),
        legend=alt.LegendConfig(
            labelColor=INK,
            labelFontSize=12,
            labelLimit=2 * LABEL,
            orient="top",
            direction="horizontal",
            columns=2,
            title=None,
        ),
    )
    return dict(configured.to_dict())


# --- Encodings ---------------------------------------------------------------------------

_POINTS = alt.NamedData(name="points")
_TICKS: dict[str, Any] = {
    "labelExpr": "format(datum.value, '~g')",
    "labelSeparation": 4,
    "tickCount": 5,
}
_FIRST_DIGITS = ((2.5, "123456789"), (8, "1234568"), (40, "1235"), (1000, "125"))
"""For axes up to a ratio of their ends, the first digits of ticks that get a number."""


def _log_ticks(scale: str) -> dict[str, Any]:
    """Axis properties with numbers that do not overlap, and always with 1 and powers of ten.

    Vega by itself leaves out every other number, which may be the 1.
    """
    first_digit = "round(datum.value / pow(10, floor(log(datum.value) / LN10 + 1e-9)))"
    times = f"domain('{scale}')[1] / domain('{scale}')[0]"
    shown = "'1'"
    for most, digits in reversed(_FIRST_DIGITS):
        shown = f"{times} <= {most} ? '{digits}' : {shown}"
    named = f"indexof({shown}, toString({first_digit})) >= 0"
    return {**_TICKS, "labelExpr": f"{named} ? format(datum.value, '~g') : ''"}


def _log(field: str, title: str) -> alt.X:
    return alt.X(
        f"{field}:Q",
        title=title,
        scale=alt.Scale(type="log", nice=False, padding=12),
        axis=alt.Axis(**_log_ticks("x")),
    )


def _names(field: str = "name") -> alt.Y:
    return alt.Y(f"{field}:N", title=None, sort=None, axis=alt.Axis(grid=True, ticks=False))


def _at_one() -> alt.Chart:
    one = alt.InlineData(values=[{"one": 1}])
    rule: alt.Chart = alt.Chart(one).mark_rule(stroke=INK, strokeDash=[4, 3])
    return rule.encode(x=alt.X("one:Q"))


def _marked(
    field: str,
    colours: Sequence[str] = SERIES,
    shapes: Sequence[str] = SHAPES,
    values: Sequence[str] | None = None,
) -> dict[str, Any]:
    """A colour and a shape for each value of a field, in order of appearance."""
    domain = alt.Undefined if values is None else list(values)
    key = alt.Legend(title=None)
    return {
        "color": alt.Color(
            f"{field}:N", sort=None, legend=key, scale=alt.Scale(domain=domain, range=colours)
        ),
        "shape": alt.Shape(
            f"{field}:N", sort=None, legend=key, scale=alt.Scale(domain=domain, range=shapes)
        ),
    }


def _effects() -> dict[str, Any]:
    colours = [SERIES[number] for number in (4, 2, 0, 1)]
    shapes = ("triangle-down", "triangle-up", "circle", "square")
    return _marked("effect", colours, shapes, EFFECTS)


def _others() -> dict[str, Any]:
    """Marks by variant name, without the colours and shapes of `before` and its second copy."""
    return _marked("name", SERIES[2:], SHAPES[2:])


# --- Kinds -------------------------------------------------------------------------------


def _ratio() -> _Layers:
    """A line for each variant with its ratio and interval, in front of the noise floor."""
    floor = (
        alt.Chart(alt.NamedData(name="floor"))
        .mark_rect(fill=BAND)
        .encode(x=alt.X("low:Q"), x2="high:Q")
    )
    base = alt.Chart(_POINTS)
    interval = (
        base.transform_filter("isValid(datum.low) && isValid(datum.high)")
        .mark_rule(strokeWidth=2, stroke=INK)
        .encode(x=alt.X("low:Q"), x2="high:Q", y=_names())
    )
    points = base.mark_point(size=90, filled=True, opacity=1).encode(
        x=_log("ratio", RATIO),
        y=_names(),
        tooltip=["name:N", "ratio:Q", "low:Q", "high:Q"],
        **_effects(),
    )
    return alt.layer(floor, _at_one(), interval, points).properties(height=alt.Step(STEP))


def _overview() -> _Layers:
    """A band for each row with its floor, and the ratio of each variant with its interval."""
    floor = (
        alt.Chart(alt.NamedData(name="floor"))
        .mark_rect(fill=BAND)
        .encode(x=alt.X("low:Q"), x2="high:Q", y=_names("row"))
    )
    base = alt.Chart(_POINTS)
    offset = alt.YOffset("name:N", sort=None)
    interval = (
        base.transform_filter("isValid(datum.low) && isValid(datum.high)")
        .mark_rule(strokeWidth=2, stroke=INK)
        .encode(x=alt.X("low:Q"), x2="high:Q", y=_names("row"), yOffset=offset)
    )
    points = base.mark_point(size=70, filled=True, opacity=1).encode(
        x=_log("ratio", RATIO),
        y=_names("row"),
        yOffset=offset,
        tooltip=["row:N", "name:N", "ratio:Q", "low:Q", "high:Q"],
        **_others(),
    )
    return alt.layer(floor, _at_one(), interval, points).properties(
        height=alt.Step(STEP, **{"for": "position"})
    )


def _bars(field: str, colour: str | None = None) -> _Layers:
    """A bar from 0 for each variant and each limit."""
    bars = alt.Chart(_POINTS).mark_bar(height=14).encode(
        x=alt.X(f"{field}:Q", title=None, axis=alt.Axis(**_TICKS), scale=alt.Scale(zero=True)),
        y=_names(),
        tooltip=["name:N", f"{field}:Q"],
        color=alt.Color(
            colour or "kind:N",
            legend=None,
            scale=alt.Scale(domain=["variant", "limit"], range=[BAR, MUTED]),
        ),
    )  # fmt: skip
    return alt.layer(bars).properties(height=alt.Step(STEP))


def _share() -> _Layers:
    """The share of the limit that each variant reaches; 1 is the limit."""
    base = alt.Chart(_POINTS)
    bars = base.mark_bar(height=14, color=BAR).encode(
        x=alt.X(
            "share:Q",
            title="time of what it is compared with / variant's",
            axis=alt.Axis(**_TICKS),
            scale=alt.Scale(zero=True),
        ),
        y=_names(),
        tooltip=["name:N", "share:Q", "low:Q", "high:Q"],
    )
    interval = (
        base.transform_filter("isValid(datum.low) && isValid(datum.high)")
        .mark_rule(strokeWidth=2, stroke=INK)
        .encode(x=alt.X("low:Q"), x2="high:Q", y=_names())
    )
    return alt.layer(bars, _at_one(), interval).properties(height=alt.Step(STEP))


def _drift() -> _Layers:
    """Every sample in the order in which they were taken, with a line at the start of a launch."""
    starts = (
        alt.Chart(alt.NamedData(name="launches"))
        .mark_rule(stroke=LINE, strokeWidth=1)
        .encode(x=alt.X("at:Q"))
    )
    points = alt.Chart(_POINTS).mark_point(size=34, filled=True, opacity=0.85).encode(
        x=alt.X(
            "n:Q",
            title="samples of this row, in the order taken",
            scale=alt.Scale(zero=False, nice=False, padding=6),
            axis=alt.Axis(grid=False, **_TICKS),
        ),
        y=alt.Y(
            "value:Q",
            title=None,
            scale=alt.Scale(type="log", nice=False, padding=8),
            axis=alt.Axis(**_log_ticks("y")),
        ),
        tooltip=["name:N", "value:Q", "launch:Q", "round:Q"],
        **_marked("name"),
    )  # fmt: skip
    return alt.layer(starts, points).properties(height=200)


def sweep_kind(limit: object, there: object) -> str:
    """The kind of sweep with these data sets, as Vega warns about a layer without points."""
    return "sweep" + "-limit" * bool(limit) + "-published" * bool(there)


def _sweep(*, has_limit: bool, has_published: bool) -> _Layers:
    """A curve for each variant with the band of its interval, the limit and published values."""
    across = alt.X("x:O", sort=None, title=None, axis=alt.Axis(labelAngle=0))
    up = alt.Y(
        "y:Q",
        title=None,
        scale=alt.Scale(type="log", nice=False, padding=10),
        axis=alt.Axis(**_log_ticks("y")),
    )
    # What is first, `before`, has no interval.
    fill = alt.Fill("name:N", sort=None, legend=None, scale=alt.Scale(range=SERIES[1:]))
    stroke = alt.Stroke("name:N", sort=None, legend=None, scale=alt.Scale(range=SERIES))
    base = alt.Chart(_POINTS)
    band = (
        base.transform_filter("isValid(datum.low) && isValid(datum.high)")
        .mark_area(opacity=0.2)
        .encode(x=across, y=alt.Y("low:Q"), y2="high:Q", fill=fill)
    )
    lines = base.mark_line(strokeWidth=1.5).encode(x=across, y=up, stroke=stroke)
    points = base.mark_point(size=40, filled=True, opacity=1).encode(
        x=across,
        y=up,
        tooltip=["name:N", "x:O", "y:Q", "low:Q", "high:Q"],
        **_marked("name"),
    )
    limit = (
        alt.Chart(alt.NamedData(name="limit"))
        .mark_line(stroke=MUTED, strokeDash=[4, 3], strokeWidth=1.5)
        .encode(x=across, y=up)
    )
    there = (
        alt.Chart(alt.NamedData(name="there"))
        .mark_point(shape="diamond", size=110, stroke=INK, filled=False, strokeWidth=1.5)
        .encode(x=across, y=up)
    )
    layers = [band, *[limit] * has_limit, lines, points, *[there] * has_published]
    return alt.layer(*layers).properties(height=210)


def _noise() -> _Layers:
    base = alt.Chart(_POINTS).encode(
        x=alt.X("t_s:Q", title="seconds since the run began", axis=alt.Axis(grid=False, **_TICKS)),
        y=alt.Y("value:Q", title=None, axis=alt.Axis(**_TICKS), scale=alt.Scale(zero=True)),
    )
    dash = alt.StrokeDash("name:N", sort=None, legend=None)
    # With the points' own channel, the names would stand there twice.
    colour = alt.Stroke("name:N", sort=None, legend=None, scale=alt.Scale(range=SERIES[2:]))
    lines = base.mark_line(strokeWidth=1.5).encode(stroke=colour, strokeDash=dash)
    points = base.mark_point(size=20, filled=True).encode(**_others())
    return alt.layer(lines, points).properties(height=140)
