# SPDX-License-Identifier: GPL-2.0-only
"""Computes how small an effect a row could have detected, from its spread over launches."""

import math
import statistics
from collections.abc import Iterable
from functools import cache

from ream.measure.statistics import LEAST_LAUNCHES, Estimate, floor_bound, special, t_quantile

POWER = 0.9
"""The probability with which the smallest effect is detected."""

NODES = 32
"""Number of quantiles of the error's estimate that power is averaged over. More of them change no
printed digit."""

STEPS = 20
"""Number of bisections of the interval that contains the smallest effect."""


def smallest_effect(
    estimates: Iterable[Estimate], floor: Estimate | None, between: float = 0.0
) -> float | None:
    """The smallest ratio above 1 that this row would have detected with probability POWER.

    A variant 1.02 times as slow and one 1.02 times as fast are detected alike. Detection follows
    statistics.counts(), the rule for a row that is decided alone: the t test of the launches' log
    ratios has p < 5 %, and the mean exceeds the floor's bound. The variance is the mean over all
    `estimates`, which include second copies. between: the standard deviation of log ratios between
    runs, which launches of one run do not show; it adds to the error. None without a floor, or
    with fewer than two launches.
    """
    bound = floor_bound(floor)
    spreads = [
        (statistics.variance(map(math.log, one.per_launch)), len(one.per_launch))
        for one in estimates
        if len(one.per_launch) >= LEAST_LAUNCHES
    ]
    if bound is None or not spreads:
        return None
    launches = min(number for _, number in spreads)
    error = math.sqrt(statistics.fmean(variance for variance, _ in spreads) / launches)
    to_exceed = [max(bound, error * node) for node in _nodes(launches)]
    spread = math.hypot(error, between)

    def power(effect: float) -> float:
        """The probability that an effect of this size, a logarithm, is found."""
        beyond = [(effect - least) / spread for least in to_exceed]
        return statistics.fmean(special().stdtr(launches - 1, beyond).tolist())

    if spread == 0:
        return math.exp(bound)
    low, high = bound, bound + spread
    while power(high) < POWER:
        high = bound + 2 * (high - bound)
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (low, middle) if power(middle) >= POWER else (middle, high)
    return math.exp(high)


def smallest_count(estimates: Iterable[Estimate], floor: Estimate | None, count: float) -> float:
    """The smallest detectable ratio of counts that repeat, beyond floor and rounds' range.

    count: the median of `before`, which bounds the ratio by a difference of one.
    """
    ranges = [
        math.log(max(one.ratio / one.low, one.high / one.ratio))
        for one in estimates
        if one.low is not None and one.high is not None
    ]
    return math.exp(max([math.log1p(1 / count), floor_bound(floor) or 0.0, *ranges]))


@cache
def _nodes(launches: int) -> tuple[float, ...]:
    """Quantiles of the distance from 1, in true errors of the mean, that is needed for p = 5 %.

    There are NODES of them, since each run estimates the error anew with launches - 1 degrees.
    """
    degrees = launches - 1
    chi_squared = special().chdtri(degrees, [(node + 0.5) / NODES for node in range(NODES)])
    return tuple(t_quantile(degrees) * math.sqrt(one / degrees) for one in chi_squared)
