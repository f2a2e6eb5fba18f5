# SPDX-License-Identifier: GPL-2.0-only
"""Defines the plots of a page: a Vega-Lite specification per kind, which data sets fill.

Colours are named in the style sheet, so that plots follow the page's dark and print modes. Shapes
or words repeat what colours show.
"""

import math
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import product
from types import MappingProxyType
from typing import Any

import altair as alt
import vl_convert

from ream.report.html.looks import Look
from ream.values import Scalar, Sealed, Tuple, Value

INK, MUTED, LINE = "var(--ink)", "var(--muted)", "var(--line)"
BAND, BAR = "var(--band)", "var(--bar)"
NAMES, COLOURS, MARKS, TICKS = "@names", "@colours", "@marks", "@ticks"
ACROSS, UP = "@across", "@up"
"""What stands in a kind, each alone in a list, for values of each plot: the names of its variants,
their colours, their marks, the numbers of its vertical axis, and the titles of its axes."""
EFFECTS = ("better", "worse", "equal", "undecided")
"""The kinds of effects of a ratio."""
MOST_IN_PLOT = 6
"""The most variants of one plot of curves or samples."""
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
    scales: Sealed[str, Tuple[str | float]]
    """The values of NAMES, COLOURS, MARKS, TICKS, ACROSS and UP."""
    family: str = ""
    """The common part of the names of a curve's rows, such as `fork-*`."""


def chart(
    ident: str,
    kind: str,
    *,
    title: str,
    alt: str,
    looks: Mapping[str, Look] = MappingProxyType({}),
    ticks: Sequence[float] = (),
    axes: tuple[str, ...] = (),
    family: str = "",
    **data: Sequence[Point],
) -> Chart:
    """A chart with the given data sets, by name.

    looks: of the names of its points; ticks: of its vertical axis; axes: the titles of the
    horizontal and of the vertical one; family: the common part of the names of a curve's rows.
    """
    names = dict.fromkeys(str(point.get("name")) for point in data.get("points", ()))
    known = {name: looks[name] for name in names if name in looks}
    return Chart(
        id=ident,
        kind=kind,
        title=title,
        alt=alt,
        data={name: tuple(points) for name, points in data.items()},
        scales={
            NAMES: tuple(known),
            COLOURS: tuple(look.colour for look in known.values()),
            MARKS: tuple(look.shape for look in known.values()),
            TICKS: tuple(ticks),
            **{name: (title,) for name, title in zip((ACROSS, UP), axes, strict=False)},
        },
        family=family,
    )


@cache
def library() -> str:
    """Vega, Vega-Lite and vega-embed as one script, which sets window.reamEmbed."""
    return vl_convert.javascript_bundle("window.reamEmbed = vegaEmbed;")


@cache
def kinds() -> Mapping[str, Mapping[str, Any]]:
    """The Vega-Lite specification of each kind of plot, by name, without points and width."""
    made = {
        "ratio": _ratio(_marked(legend=False)),
        "effect": _ratio(_effects()),
        "overview": _overview(),
        "value": _bars("value"),
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


_DIGITS = ((1,), (1, 3), (1, 2, 5), (1, 1.5, 2, 3, 5, 7))
"""The digits of an axis's numbers in every power of ten, from few to many."""
_STEPS = (5, 2, 1, 0.5, 0.2)
"""The distances of an axis's numbers, in powers of ten, where digits alone are too few."""
LEAST_TICKS = 4


def log_ticks(low: float, high: float) -> list[float]:
    """At least LEAST_TICKS round numbers from low to high, and not many more.

    1 is one of them if it is in between. Raises ValueError unless 0 < low < high.
    """
    if not 0 < low < high:
        raise ValueError(f"no axis from {low} to {high}")
    tens = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    size = math.floor(math.log10(high - low))
    steps = (step * 10.0**size for step in _STEPS)
    of_steps = (
        [number * step for number in range(math.ceil(low / step), math.floor(high / step) + 1)]
        for step in steps
    )
    of_digits = ([digit * 10.0**ten for ten in tens for digit in its] for its in _DIGITS)
    found: list[float] = []
    for numbers in (*of_digits, *of_steps):
        found = [float(f"{one:.10g}") for one in numbers if low <= one <= high]
        if len(found) >= LEAST_TICKS:
            break
    return found


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


def _scale(range_: str) -> alt.Scale:
    return alt.Scale(domain=[NAMES], range=[range_])


def _key() -> alt.Legend:
    """A legend whose marks are as strong as the points, also beside a pale band."""
    return alt.Legend(title=None, symbolOpacity=1)


def _marked(*, legend: bool = True) -> dict[str, Any]:
    """The colour and the mark of each name; legend: unless names stand on an axis."""
    key = _key() if legend else None
    return {
        "color": alt.Color("name:N", sort=None, legend=key, scale=_scale(COLOURS)),
        "shape": alt.Shape("name:N", sort=None, legend=key, scale=_scale(MARKS)),
    }


def _effects() -> dict[str, Any]:
    """A colour and a shape for each kind of effect, of names that are no variants."""
    colours = [f"var(--series-{number})" for number in (4, 2, 0, 1)]
    shapes = ["triangle-down", "triangle-up", "circle", "square"]
    key, domain = _key(), list(EFFECTS)
    return {
        "color": alt.Color("effect:N", legend=key, scale=alt.Scale(domain=domain, range=colours)),
        "shape": alt.Shape("effect:N", legend=key, scale=alt.Scale(domain=domain, range=shapes)),
    }


# --- Kinds -------------------------------------------------------------------------------


def _ratio(marks: Mapping[str, Any]) -> _Layers:
    """A line for each name with its ratio and interval, in front of the noise floor."""
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
        tooltip=["name:N", "ratio:Q", "low:Q", "high:Q", "effect:N"],
        **marks,
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
        **_marked(),
    )
    return alt.layer(floor, _at_one(), interval, points).properties(
        height=alt.Step(STEP, **{"for": "position"})
    )


def _bars(field: str) -> _Layers:
    """A bar from 0 for each variant and each limit."""
    bars = alt.Chart(_POINTS).mark_bar(height=14).encode(
        x=alt.X(f"{field}:Q", title=None, axis=alt.Axis(**_TICKS), scale=alt.Scale(zero=True)),
        y=_names(),
        tooltip=["name:N", f"{field}:Q"],
        color=alt.Color("name:N", sort=None, legend=None, scale=_scale(COLOURS)),
    )  # fmt: skip
    return alt.layer(bars).properties(height=alt.Step(STEP))


def _share() -> _Layers:
    """The share of the limit that each variant reaches; 1 is the limit."""
    base = alt.Chart(_POINTS)
    bars = base.mark_bar(height=14).encode(
        color=alt.Color("name:N", sort=None, legend=None, scale=_scale(COLOURS)),
        x=alt.X(
            "share:Q",
            title="reference time / variant's",
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
        **_marked(),
    )  # fmt: skip
    return alt.layer(starts, points).properties(height=200)


def sweep_kind(limit: object, there: object) -> str:
    """The kind of sweep with these data sets, as Vega warns about a layer without points."""
    return "sweep" + "-limit" * bool(limit) + "-published" * bool(there)


def _sweep(*, has_limit: bool, has_published: bool) -> _Layers:
    """A curve for each variant with the band of its interval, the limit and published values."""
    sizes = alt.Axis(
        labelAngle=0,
        labelExpr="replace(datum.label, 'iB', '')",
        labelOverlap="greedy",
        labelSeparation=4,
    )
    across = alt.X("x:O", sort=None, title=[ACROSS], axis=sizes)
    up = alt.Y(
        "y:Q",
        title=[UP],
        scale=alt.Scale(type="log", nice=False, padding=10),
        axis=alt.Axis(values=[TICKS], labelExpr="format(datum.value, '~g')"),
    )
    # Vega makes one legend of all channels with the same names: none of them may be without.
    fill = alt.Fill("name:N", sort=None, legend=_key(), scale=_scale(COLOURS))
    stroke = alt.Stroke("name:N", sort=None, legend=_key(), scale=_scale(COLOURS))
    base = alt.Chart(_POINTS)
    band = (
        base.transform_filter("isValid(datum.low) && isValid(datum.high)")
        .mark_area(opacity=0.2)
        .encode(x=across, y=alt.Y("low:Q", title=[UP]), y2="high:Q", fill=fill)
    )
    lines = base.mark_line(strokeWidth=1.5).encode(x=across, y=up, stroke=stroke)
    points = base.mark_point(size=40, filled=True, opacity=1).encode(
        x=across,
        y=up,
        tooltip=["name:N", "x:O", "y:Q", "low:Q", "high:Q"],
        **_marked(),
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
    colour = alt.Stroke("name:N", sort=None, legend=_key(), scale=_scale(COLOURS))
    lines = base.mark_line(strokeWidth=1.5).encode(stroke=colour, strokeDash=dash)
    points = base.mark_point(size=20, filled=True).encode(**_marked())
    return alt.layer(lines, points).properties(height=140)
