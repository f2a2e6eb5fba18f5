# SPDX-License-Identifier: GPL-2.0-only
"""Rows that are grids: where a row's name has a field in braces, that field is a list of values."""

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from typing import Any

from ream.errors import BadUsage

_AXIS = re.compile(r"\{(\w*)\}")


def expanded(rows: Iterable[object], *, source: str) -> Iterator[tuple[int, object]]:
    """The rows of a file, a grid as one row for each of its points; each with its place there.

    Every text of a row that has an axis in braces gets the point's value there.
    Raises BadUsage, beginning with `source`, where what a name has in braces is no list.
    """
    for place, row in enumerate(rows):
        name = row.get("name") if isinstance(row, dict) else None
        axes = dict.fromkeys(_AXIS.findall(name)) if isinstance(name, str) else {}
        if not isinstance(row, dict) or not axes:
            yield place, row
            continue
        for axis in axes:
            if not isinstance(values := row.get(axis), list) or not values:
                said = "no list of values" if axis in row else "no field of this row"
                raise BadUsage(f"{source}: rows.{place}.name: {{{axis}}}: {said} (it is {name!r})")
        for values in product(*(row[axis] for axis in axes)):
            point = dict(zip(axes, values, strict=True))
            yield place, _filled({**row, **point}, point)


def _filled(value: Any, point: Mapping[str, object]) -> Any:
    if isinstance(value, str):
        return _AXIS.sub(lambda found: str(point.get(found[1], found[0])), value)
    if isinstance(value, dict):
        return {name: _filled(inner, point) for name, inner in value.items()}
    return [_filled(inner, point) for inner in value] if isinstance(value, list) else value
