# SPDX-License-Identifier: GPL-2.0-only
"""Computes the ratio of a complete call of which a row times a part only."""

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Self

from ream.experiment import BEFORE
from ream.measure.sample import Sample
from ream.measure.statistics import CONFIDENCE, Estimate, paired, times_of

APART = 1.5
"""The largest factor between a hosted part and the same part of a live call that may be added to
the rest of that call."""


@dataclass(frozen=True)
class Parts:
    """The time of one part of a call, in ns, on the running kernel and in hosted code."""

    live_ns: float
    """The whole call less its rest, as the running kernel takes them."""
    hosted_ns: float
    """The part of the hosted kernel that has the technique, as the running one has."""

    @property
    def ratio(self) -> float:
        """How many times as long the running kernel takes."""
        return self.live_ns / self.hosted_ns

    @property
    def differ(self) -> bool:
        """Whether the two are so far apart that hosted code does not stand for the live part."""
        return not 1 / APART <= self.ratio <= APART

    @classmethod
    def of(cls, whole_ns: float | None, rest_ns: float, hosted_ns: float | None) -> Self | None:
        """The parts of a measured call; None if either is unknown or not above 0."""
        if whole_ns is None or not hosted_ns or whole_ns <= rest_ns:
            return None
        return cls(whole_ns - rest_ns, hosted_ns)


@dataclass(frozen=True)
class LeftOut:
    """The time of a call outside the part that a row times, as medians over several rounds."""

    whole_ns: float | None
    """None if it could not be measured, such as with another folio size in place of the row's."""
    ns: float
    low_ns: float
    high_ns: float
    """low_ns and high_ns bound the median of `ns` with 95 % confidence."""
    how: str
    """What was measured, and on which kernel, in words."""

    @property
    def share(self) -> float | None:
        """The part's share of the complete call; None if the latter was not measured."""
        return None if self.whole_ns is None else 1 - self.ns / self.whole_ns


def left_out(whole_ns: Sequence[int], rest_ns: Sequence[int], how: str) -> LeftOut:
    """The LeftOut of times of the complete call and of the rest, in ns, from six rounds on.

    The rest may be a difference of two times, which noise can make negative: it is at least 0.
    Raises ValueError with too few rounds for an interval.
    """
    low, high = _median_within(rest_ns)
    return LeftOut(
        whole_ns=(whole := statistics.median(whole_ns)),
        ns=min(max(0.0, statistics.median(rest_ns)), whole),
        low_ns=max(0.0, low),
        high_ns=max(0.0, high),
        how=how,
    )


def whole_ratio(samples: Iterable[Sample], subject: str, left: LeftOut) -> Estimate | None:
    """Ratio subject/before of complete calls: the rest is added to the times of both parts.

    It is estimated as every ratio. Its interval spans those for the least and the greatest rest, so
    it includes the uncertainty of the rest.
    """
    samples = tuple(samples)

    def with_rest(rest_ns: float) -> Estimate | None:
        own, base = (
            {place: time_ns + rest_ns for place, time_ns in times_of(samples, name).items()}
            for name in (subject, BEFORE)
        )
        return paired(own, base)

    found = with_rest(left.ns)
    every = [one for one in (found, *map(with_rest, (left.low_ns, left.high_ns))) if one]
    if found is None or found.low is None or found.high is None:
        return found
    return replace(
        found,
        low=min(one.low for one in every if one.low is not None),
        high=max(one.high for one in every if one.high is not None),
    )


def _median_within(values: Sequence[int]) -> tuple[float, float]:
    """Two of the values between which the true median lies with CONFIDENCE, for any distribution.

    The k-th smallest of n values is above the median with the probability of fewer than k heads in
    n tosses of a coin. Raises ValueError with too few values.
    """
    ordered, nr = sorted(values), len(values)
    below, rank = 0.0, 0
    while (below := below + math.comb(nr, rank) / 2**nr) <= (1 - CONFIDENCE) / 2:
        rank += 1
    if rank == 0:
        raise ValueError(f"{nr} rounds have no interval of {100 * CONFIDENCE:g} %")
    return ordered[rank - 1], ordered[nr - rank]
