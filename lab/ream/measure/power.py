# SPDX-License-Identifier: GPL-2.0-only
"""How small an effect a row could have shown, from its own spread over launches."""

import math
import statistics
from collections.abc import Iterable
from functools import cache

from ream.measure.statistics import LEAST_LAUNCHES, Estimate, floor_bound, special, t_quantile

POWER = 0.9
"""How often the smallest effect is found: nine times of ten."""

NODES = 32
"""Quantiles of the launches' spread that the power is averaged over; more change no digit shown."""

STEPS = 20
"""Halvings of the interval that the smallest effect is looked for in."""


def smallest_effect(estimates: Iterable[Estimate], floor: Estimate | None) -> float | None:
    """The smallest ratio above 1 that would have been found with probability POWER in this row.

    A variant 1.02 times as slow and one 1.02 times as fast are found alike. "Found" is the rule of
    statistics.counts(), which is that of the run where the row is its only one: the t test of the
    launches' log ratios has p < 5 %, and the mean is larger than the floor's bound. The spread is
    that of all `estimates` together, the second copy of `before` among them; the floor is the
    run's own. None where there is no floor, or fewer than two launches.
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

    def power(effect: float) -> float:
        """How often an effect of that size, a logarithm, is found: its error is an estimate."""
        beyond = [(effect - least) / error for least in to_exceed]
        return statistics.fmean(special().stdtr(launches - 1, beyond).tolist())

    if error == 0:
        return math.exp(bound)
    low, high = bound, bound + error
    while power(high) < POWER:
        high = bound + 2 * (high - bound)
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (low, middle) if power(middle) >= POWER else (middle, high)
    return math.exp(high)


def smallest_count(estimates: Iterable[Estimate], floor: Estimate | None, count: float) -> float:
    """The same of a count that repeats: what exceeds the floor and the range of its rounds.

    count: the median of `before`; one more than that is the least there is.
    """
    ranges = [
        math.log(max(one.ratio / one.low, one.high / one.ratio))
        for one in estimates
        if one.low is not None and one.high is not None
    ]
    return math.exp(max([math.log1p(1 / count), floor_bound(floor) or 0.0, *ranges]))


@cache
def _nodes(launches: int) -> tuple[float, ...]:
    """By how many errors of the mean it has to be off 1 for p = 5 %.

    In quantiles, since each run estimates that error anew: with launches - 1 degrees of freedom.
    """
    degrees = launches - 1
    chi_squared = special().chdtri(degrees, [(node + 0.5) / NODES for node in range(NODES)])
    return tuple(t_quantile(degrees) * math.sqrt(one / degrees) for one in chi_squared)
