# SPDX-License-Identifier: GPL-2.0-only
"""Formats numbers in few columns, never cut, and never as 0 unless they are 0."""

from collections.abc import Iterable

from ream.measure.statistics import Estimate
from ream.report.contract import Ratio, Result

_UNITS = {
    "ns": ((1e9, "s"), (1e6, "ms"), (1e3, "us"), (1.0, "ns")),
    "instructions": ((1e9, "G instr"), (1e6, "M instr"), (1e3, "k instr"), (1.0, "instr")),
}

DIGITS = 5
"""Significant digits of a ratio: more than any interval here supports."""


def rounded(value: float) -> float:
    """The value with DIGITS significant digits, as records store it."""
    return float(f"{value:.{DIGITS}g}")


def digits(value: float | None) -> float | None:
    """The value as records store it, or None."""
    return None if value is None else rounded(value)


def ratio_of(estimate: Estimate | None) -> Ratio | None:
    """The estimate in the form of `--json`, or None."""
    if estimate is None:
        return None
    return Ratio(
        ratio=rounded(estimate.ratio),
        low=digits(estimate.low),
        high=digits(estimate.high),
        spread_low=rounded(estimate.spread[0]),
        spread_high=rounded(estimate.spread[1]),
    )


def fit(value: float | None, width: int, digits: int = 2) -> str:
    """Format a number in at most `width` columns with at most `digits` decimals.

    None is a question mark, never 0, and a value other than 0 does not print as 0.
    """
    if value is None:
        return "?"
    for decimals in range(digits, -1, -1):
        text = f"{value:.{decimals}f}"
        if len(text) <= width and (float(text) != 0 or value == 0):
            return text
    return f"{value:.0e}"


def interval(value: Result | Ratio) -> str:
    """A ratio with its interval, in 22 columns whatever its size."""
    ratio, low, high = (fit(number, 5, 3) for number in (value.ratio, value.low, value.high))
    return "?" if value.ratio is None else f"{ratio} [{low} .. {high}]"


def scale_of(values: Iterable[float], unit: str) -> tuple[float, str]:
    """Divisor and name of the largest unit in which the smallest value is at least 1."""
    smallest, units = min(values), _UNITS[unit]
    return next(((scale, name) for scale, name in units if smallest >= scale), units[-1])
