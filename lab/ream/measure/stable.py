# SPDX-License-Identifier: GPL-2.0-only
"""When there are launches enough: every interval is as narrow as was asked for.

To look and stop at a narrow interval makes intervals a little too narrow: docs/bias.md says by
how much, tests/unit/test_stable.py measures it.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

STEP = 2
"""Launches between two looks."""
MOST_TIMES = 4
"""As many launches as were planned, unless the user says."""
DEFAULT_PCT = 5.0


@dataclass(frozen=True)
class Stable:
    """How long a run goes on measuring."""

    within_pct: float = DEFAULT_PCT
    """Per cent of a ratio that its interval may extend to either side."""
    max_launches: int | None = None
    """None: MOST_TIMES the planned ones."""
    max_minutes: float | None = None

    def most_launches(self, planned: int) -> int:
        return self.max_launches or MOST_TIMES * planned


class HasRatio(Protocol):
    """What is asked of a variant's result."""

    @property
    def ratio(self) -> float | None: ...
    @property
    def low(self) -> float | None: ...
    @property
    def high(self) -> float | None: ...


def half_width_pct(result: HasRatio) -> float | None:
    """How far the interval reaches from the ratio, at its wider side; None if there is none."""
    if not result.ratio or not result.low or result.high is None:
        return None
    return 100 * max(result.high / result.ratio - 1, 1 - result.low / result.ratio)


@dataclass(frozen=True)
class Wide:
    """An interval that is too wide, or not there yet."""

    row: str
    variant: str
    half_width_pct: float | None

    def __str__(self) -> str:
        if self.half_width_pct is None:
            return f"{self.row} ({self.variant}: no interval)"
        return f"{self.row} ({self.variant}: {self.half_width_pct:.1f} %)"


def too_wide(results: Iterable[tuple[str, str, HasRatio]], within_pct: float) -> Iterator[Wide]:
    """Find what is not stable among (row, variant, result), the widest of each row."""
    worst: dict[str, Wide] = {}
    for row, variant, result in results:
        width = half_width_pct(result)
        if width is not None and width <= within_pct:
            continue
        one = Wide(row, variant, width)
        if row not in worst or _key(one) > _key(worst[row]):
            worst[row] = one
    yield from worst.values()


def _key(wide: Wide) -> float:
    return float("inf") if wide.half_width_pct is None else wide.half_width_pct
