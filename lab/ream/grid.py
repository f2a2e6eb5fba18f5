# SPDX-License-Identifier: GPL-2.0-only
"""Rows that are grids: where a row's name has a field in braces, that field is a list of values.

Elsewhere in the row {FIELD} is the point's value, {FIELD:upper} the same in capitals; a text
that is {FIELD} and nothing else is the value itself, {FIELD:kib} the number of KiB that it is.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from typing import Any

from ream.errors import BadUsage
from ream.size import parse_size

_IN_BRACES = re.compile(r"\{(\w*)(?::(upper|kib))?\}")


def expanded(rows: Iterable[object], *, source: str) -> Iterator[tuple[int, object]]:
    """The rows of a file, a grid as one row for each of its points; each with its place there.

    Every text of a row that has an axis in braces gets the point's value there.
    Raises BadUsage, beginning with `source`, where what a name has in braces is no list.
    """
    for place, row in enumerate(rows):
        name = row.get("name") if isinstance(row, dict) else None
        axes = (
            dict.fromkeys(found[0] for found in _IN_BRACES.findall(name))
            if isinstance(name, str)
            else {}
        )
        if not isinstance(row, dict) or not isinstance(name, str) or not axes:
            yield place, row
            continue
        for axis in axes:
            if not isinstance(values := row.get(axis), list) or not values:
                said = "no list of values" if axis in row else "no field of this row"
                raise BadUsage(f"{source}: rows.{place}.name: {{{axis}}}: {said} (it is {name!r})")
        for values in product(*(row[axis] for axis in axes)):
            point = dict(zip(axes, values, strict=True))
            try:
                filled = _filled({**row, **point}, point)
            except BadUsage as cause:
                raise BadUsage(f"{source}: rows.{place}: {cause}") from cause
            yield place, {**filled, "name": _name(name, point)}


def _name(name: str, point: Mapping[str, object]) -> str:
    return _IN_BRACES.sub(lambda found: str(_as(point[found[1]], found[2])), name)


def _filled(value: Any, point: Mapping[str, object]) -> Any:
    if isinstance(value, str):
        if (whole := _IN_BRACES.fullmatch(value)) and whole[1] in point:
            return _as(point[whole[1]], whole[2])
        return _IN_BRACES.sub(lambda found: _text(found, point), value)
    if isinstance(value, dict):
        return {name: _filled(inner, point) for name, inner in value.items()}
    return [_filled(inner, point) for inner in value] if isinstance(value, list) else value


def _text(found: "re.Match[str]", point: Mapping[str, object]) -> str:
    """What stands for braces within a text; those that name no axis stay as they are."""
    return str(_as(point[found[1]], found[2])) if found[1] in point else found[0]


def _as(value: object, form: str | None) -> object:
    """Raises BadUsage if it is no size and should be one."""
    if form == "kib":
        return parse_size(str(value)) >> 10
    return str(value).upper() if form == "upper" else value
