# SPDX-License-Identifier: GPL-2.0-only
"""Renders plots as SVG: a record's curves as one file for documents, or one plot for a page."""

import json
import re
import textwrap
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import vl_convert

from ream.errors import BadUsage
from ream.record.record import Record
from ream.report.contract import Summary
from ream.report.html.charts import Chart, kinds
from ream.report.html.curves import curves, kernel_before, unnamed
from ream.report.readers import for_readers

STYLE = Path(__file__).parent / "style.css"
COLUMNS = 2
WIDTH = 330
"""Width of each curve in pixels."""
TITLE_CHARACTERS = 50
"""The most characters of a title's line: nothing else keeps it inside of its plot."""
PAGE_WIDTH = 356
"""Width in pixels of a plot inside of a page with its names and numbers: a phone has as many."""
PADDING = {"left": 24, "right": 18, "top": 4, "bottom": 4}
"""Pixels: a browser's letters may be wider than those that a plot was laid out with."""
PADDING_OF_CURVES = {**PADDING, "left": 6}
"""Where no long names are at the left, the numbers below need the room."""

_WHOLE = ("$schema", "config", "datasets", "padding", "background")
"""Properties of a plot that the picture has once for all plots."""


def render(record: Record) -> str:
    """The picture as SVG. Raises BadUsage if the record has no rows that form a curve."""
    return svg(curves_of(record), _summary(record))


def curves_of(record: Record) -> Sequence[Chart]:
    """The curves of a record. Raises BadUsage if it has no rows that form one."""
    found = list(curves(_summary(record).rows, kernel_before(record.receipt)))
    if not found:
        raise BadUsage(f"{record.path.name}: no rows that differ in one number; there is no curve")
    return found


def unnamed_of(record: Record) -> Sequence[str]:
    """What the curves of a record have that their legends do not name."""
    return unnamed(curves_of(record), _summary(record))


def _summary(record: Record) -> Summary:
    return for_readers(Summary.from_object(record.run, source=str(record.path)))


def svg(plots: Sequence[Chart], summary: Summary) -> str:
    """Plots of a record side by side, as one SVG; summary: of that record."""
    first = kinds()[plots[0].kind]
    whole = {
        "$schema": first["$schema"],
        "config": first["config"],
        "background": "white",
        "columns": COLUMNS,
        "resolve": {"scale": dict.fromkeys(("color", "fill", "shape", "stroke"), "independent")},
        "concat": [_part(one, summary) for one in plots],
    }
    return str(vl_convert.vegalite_to_svg(_coloured(whole)))


def alone(one: Chart) -> str:
    """One plot as SVG for a document."""
    whole = {"title": _title(one.title), "background": "white", "padding": PADDING}
    return str(vl_convert.vegalite_to_svg(_coloured(filled_plot(one, kinds()[one.kind]) | whole)))


def _part(one: Chart, summary: Summary) -> Mapping[str, Any]:
    title = {"title": _title(one.title, *unnamed([one], summary))}
    its = filled_plot(one, kinds()[one.kind])
    return {name: value for name, value in its.items() if name not in _WHOLE} | title


def _title(*texts: str) -> Mapping[str, Any]:
    lines = [line for text in texts for line in textwrap.wrap(text, TITLE_CHARACTERS)]
    return {"text": lines, "anchor": "start", "fontSize": 12, "fontWeight": "normal"}


def inline(one: Chart, spec: Mapping[str, Any] | None = None) -> str:
    """A plot as SVG for inside of a page, whose style sheet has its colours.

    spec: of its kind, if it is not one of `charts.kinds()`.
    """
    filled = {**filled_plot(one, spec or kinds()[one.kind]), "width": PAGE_WIDTH}
    made = dict(vl_convert.vegalite_to_vega(filled))
    # Names at the left are part of the width; Vega-Lite cannot say so of a height by steps.
    padding = PADDING_OF_CURVES if one.family else PADDING
    fit = {"autosize": {"type": "fit-x", "contains": "padding"}, "padding": padding}
    return str(vl_convert.vega_to_svg({**made, **fit}))


def filled_plot(one: Chart, spec: Mapping[str, Any]) -> dict[str, Any]:
    """The specification of a plot with its own points, in the colours of the page's style."""
    data = {name: [dict(point) for point in points] for name, points in one.data.items()}
    return {**_filled(spec, data, one.scales), "width": WIDTH}


def _filled(part: Any, data: Mapping[str, Any], scales: Mapping[str, Sequence[object]]) -> Any:
    """A plot in which the names of data sets and of scales' values are replaced by these."""
    if isinstance(part, Mapping):
        return {
            name: {"values": data[value["name"]]}
            if name == "data" and isinstance(value, Mapping) and value.get("name") in data
            else _filled(value, data, scales)
            for name, value in part.items()
        }
    if not isinstance(part, list):
        return part
    own = scales.get(part[0]) if len(part) == 1 and isinstance(part[0], str) else None
    return [_filled(one, data, scales) for one in part] if own is None else list(own)


@cache
def colours() -> Mapping[str, str]:
    """The colours of a page's light mode, by their names in the style sheet."""
    found = re.findall(r"--([a-z0-9-]+): (#[0-9a-f]{6});", STYLE.read_text(encoding="utf-8"))
    return dict(reversed(found))  # the first of a name: what follows is for the dark, and paper


def _coloured(spec: Mapping[str, Any]) -> dict[str, Any]:
    text = re.sub(r"var\(--([a-z0-9-]+)\)", lambda name: colours()[name[1]], json.dumps(spec))
    return dict(json.loads(text))
