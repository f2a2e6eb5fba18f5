# SPDX-License-Identifier: GPL-2.0-only
"""Gives each variant one colour and one mark, the same in all plots of all pages and pictures."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ream.experiment import AGAIN, BASE, BEFORE, CONTROL, OURS, PATCHED, PUBLISHED, shown
from ream.report.contract import RowResult


class Look(NamedTuple):
    """The colour and the mark of a variant: a colour of the style sheet, and a shape of Vega."""

    colour: str
    shape: str


LIMIT = Look("var(--muted)", "stroke")
"""The look of limits, which are drawn as dashes or bars."""

BY_NAME: Mapping[str, Look] = {
    BEFORE: Look("var(--series-0)", "circle"),
    shown(PUBLISHED): Look("var(--series-3)", "square"),
    shown(OURS): Look("var(--series-2)", "diamond"),
    BASE: Look("var(--series-1)", "triangle-up"),
    PATCHED: Look("var(--series-4)", "square"),
    CONTROL: Look("var(--series-0)", "wedge"),
}
"""The looks of variants that have the same name in many records. A second copy has the colour of
the first."""

COPY = "cross"
"""The mark of a second copy."""

_COLOURS = tuple(f"var(--series-{number})" for number in (4, 5, 6, 7))
_SHAPES = ("triangle-down", "triangle-right", "triangle-left", "arrow")


def looks(names: Iterable[str]) -> Mapping[str, Look]:
    """The look of each variant; names: those of all variants of a record, in its order.

    Variants that BY_NAME does not have, such as given series, kernels and prefixes, take colours
    and marks in turn, so that sixteen of them can be told apart.
    """
    found = dict(BY_NAME)
    number = 0
    for name in dict.fromkeys(name.removesuffix(AGAIN) for name in names):
        if name not in found:
            turn, place = divmod(number, len(_COLOURS))
            found[name] = Look(_COLOURS[place], _SHAPES[(place + turn) % len(_SHAPES)])
            number += 1
    copies = {f"{name}{AGAIN}": Look(look.colour, COPY) for name, look in found.items()}
    return {**found, **copies}


def looks_of(rows: Iterable[RowResult]) -> Mapping[str, Look]:
    """The look of each variant of a record's rows."""
    return looks(name for row in rows for name in row.variants)
