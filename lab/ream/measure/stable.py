# SPDX-License-Identifier: GPL-2.0-only
"""Decides when a run has enough launches: when every interval is as narrow as asked for.

Stopping at a narrow interval makes intervals slightly too narrow. docs/bias.md states by how much,
and tests/unit/test_stable.py measures it.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

STEP = 2
"""The number of launches between two checks."""
MOST_TIMES = 4
"""The default limit of launches, as a multiple of the planned number."""
DEFAULT_PCT = 5.0


@dataclass(frozen=True)
class Stable:
    """The condition under which a run stops measuring."""

    within_pct: float = DEFAULT_PCT
    """The largest distance of an interval's end from its ratio, in per cent."""
    max_launches: int | None = None
    """The most launches; None is MOST_TIMES the planned number."""
    max_minutes: float | None = None

    def most_launches(self, planned: int) -> int:
        """The limit of launches for a run that planned this many."""
        return self.max_launches or MOST_TIMES * planned


class HasRatio(Protocol):
    """The fields of a variant's result that the condition needs."""

    @property
    def ratio(self) -> float | None: ...
    @property
    def low(self) -> float | None: ...
    @property
    def high(self) -> float | None: ...


def half_width_pct(result: HasRatio) -> float | None:
    """Distance in per cent from the ratio to the farther end of its interval; None without one."""
    if not result.ratio or not result.low or result.high is None:
        return None
    return 100 * max(result.high / result.ratio - 1, 1 - result.low / result.ratio)


@dataclass(frozen=True)
class Wide:
    """An interval that is too wide or does not exist yet."""

    row: str
    variant: str
    half_width_pct: float | None

    def __str__(self) -> str:
        if self.half_width_pct is None:
            return f"{self.row} ({self.variant}: no interval)"
        return f"{self.row} ({self.variant}: {self.half_width_pct:.1f} %)"


def too_wide(results: Iterable[tuple[str, str, HasRatio]], within_pct: float) -> Iterator[Wide]:
    """Variants whose intervals are too wide, from (row, variant, result): one per row."""
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
