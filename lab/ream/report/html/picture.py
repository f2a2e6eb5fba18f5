# SPDX-License-Identifier: GPL-2.0-only
"""The curves of a record as one picture, for a document: what its page draws, in a file of SVG."""

import json
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import vl_convert

from ream.errors import BadUsage
from ream.record.record import Record
from ream.report.contract import Summary
from ream.report.html.charts import Chart, kinds
from ream.report.html.curves import curves

STYLE = Path(__file__).parent / "style.css"
COLUMNS = 2
WIDTH = 330
"""Pixels of each curve."""

_WHOLE = ("$schema", "config", "datasets", "padding", "background")
"""What a plot has that stands alone, and the picture has once."""


def render(record: Record) -> str:
    """The picture. Raises BadUsage if the record has no rows that make a curve."""
    summary = Summary.from_object(record.run, source=str(record.path))
    found = list(curves(summary.rows))
    if not found:
        raise BadUsage(f"{record.path.name}: no rows that differ in one number; there is no curve")
    first = kinds()[found[0].kind]
    whole = {
        "$schema": first["$schema"],
        "config": first["config"],
        "background": "white",
        "columns": COLUMNS,
        "resolve": {"scale": {"color": "independent", "shape": "independent"}},
        "concat": [_part(one) for one in found],
    }
    return str(vl_convert.vegalite_to_svg(_coloured(whole)))


def _part(one: Chart) -> Mapping[str, Any]:
    kind = kinds()[one.kind]
    its = {name: value for name, value in kind.items() if name not in _WHOLE}
    title = {"text": one.title, "anchor": "start", "fontSize": 12, "fontWeight": "normal"}
    filled = _filled(its, {name: [dict(point) for point in one.data[name]] for name in one.data})
    return {**filled, "title": title, "width": WIDTH}


def _filled(part: Any, data: Mapping[str, Any]) -> Any:
    """A plot whose data sets stand in it instead of their names."""
    if isinstance(part, Mapping):
        return {
            name: {"values": data[value["name"]]}
            if name == "data" and isinstance(value, Mapping) and value.get("name") in data
            else _filled(value, data)
            for name, value in part.items()
        }
    return [_filled(one, data) for one in part] if isinstance(part, list) else part


@cache
def colours() -> Mapping[str, str]:
    """By its name in the style sheet, each colour of a page in daylight."""
    found = re.findall(r"--([a-z0-9-]+): (#[0-9a-f]{6});", STYLE.read_text(encoding="utf-8"))
    return dict(reversed(found))  # the first of a name: what follows is for the dark, and paper


def _coloured(spec: Mapping[str, Any]) -> dict[str, Any]:
    text = re.sub(r"var\(--([a-z0-9-]+)\)", lambda name: colours()[name[1]], json.dumps(spec))
    return dict(json.loads(text))
