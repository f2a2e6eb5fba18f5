# SPDX-License-Identifier: GPL-2.0-only
"""The share of each part of a batched operation in its time.

The shares are differences between rows that differ in one property each.
"""

from collections.abc import Iterable, Mapping

from ream.experiment import Row, is_copy
from ream.experiment.columns import Part
from ream.report.contract import Batch, RowResult
from ream.report.numbers import digits, rounded

_Place = tuple[str, int]
"""A variant, and the number of pages in a batch."""
_Found = Mapping[str, Mapping[_Place, Mapping[bool, float | None]]]
"""For each kind of row and each place: ns per page under False, ns per call under True."""


def batches(
    parts: Iterable[Part], rows: Iterable[Row], results: Iterable[RowResult]
) -> tuple[Batch, ...]:
    """The time that each part of the operation takes, by variant and pages per batch.

    rows and results are in lockstep. A part is None if a row that it is derived from did not run.
    """
    parts = tuple(parts)
    found: dict[str, dict[_Place, dict[bool, float | None]]] = {}
    for row, result in zip(rows, results, strict=True):
        if (of := row.batch_of) is None:
            continue
        by_place = found.setdefault(of.kind, {})
        for name, its in result.variants.items():
            if not is_copy(name) and its.ns_per_page is not None:
                by_place[name, of.pages] = {False: its.ns_per_page, True: its.per_batch}
    places = dict.fromkeys(place for by_place in found.values() for place in by_place)
    names = list(dict.fromkeys(name for name, _ in places))
    return tuple(
        Batch.model_validate(
            {"subject": place[0], "batch_pages": place[1]}
            | {part.name: _value(part, place, found) for part in parts}
        )
        for place in sorted(places, key=lambda place: (names.index(place[0]), place[1]))
    )


def _value(part: Part, place: _Place, found: _Found) -> float | None:
    """The time of one part in ns, which noise may make negative; None if a row is missing."""
    if place[0] in part.without:
        return None
    own = next((its[place] for kind in part.of if place in (its := found.get(kind, {}))), None)
    value = None if own is None else own[part.per_call]
    if part.less is None:
        return value if part.per_call else digits(value)
    less = found.get(part.less, {}).get(place)
    if value is None or less is None or (off := less[part.per_call]) is None:
        return None
    return rounded(value - off)
