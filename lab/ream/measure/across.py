# SPDX-License-Identifier: GPL-2.0-only
"""Pools and compares ratios across runs and machines. Only ratios are pooled, never times.

Within a machine a launch is the replicate, whichever run it belongs to. Across machines the machine
is the replicate, since repeated runs on one machine do not predict another. Sources: Welch, "The
generalization of Student's problem", Biometrika 34, 1947; and "On the comparison of several mean
values", Biometrika 38, 1951.
"""

import importlib
import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ream.measure.statistics import LEAST_LAUNCHES, Estimate, over_launches, t_quantile

DIFFER_BELOW = 0.05
"""Runs are said to differ if chance would produce such a difference less often than this."""
LEAST_RUNS = 2
"""The smallest number of runs that can differ from each other."""
SAME = 1e-12
"""Logarithms of equal ratios, computed in different orders, differ by less than this."""


@dataclass(frozen=True)
class RatioChange:
    """The factor by which a ratio changed, now/base, with its 95 % interval if there is one."""

    ratio: float
    low: float | None
    high: float | None
    degrees: float | None = None
    """Degrees of freedom of the interval's t distribution; None for counts and without an
    interval."""


def pooled(estimates: Iterable[Estimate]) -> Estimate:
    """Pool estimates of runs on one machine: all their launches, with equal weights.

    If counts repeat in all runs, the interval is from the smallest to the greatest ratio of any
    run. Raises ValueError if there is no estimate.
    """
    estimates = tuple(estimates)
    found = over_launches([log for one in estimates for log in _logs(one)])
    if found is None:
        raise ValueError("no estimate to pool")
    if not all(one.exact for one in estimates):
        return found
    lows = [one.low for one in estimates if one.low is not None]
    highs = [one.high for one in estimates if one.high is not None]
    low, high = min(lows, default=None), max(highs, default=None)
    return Estimate(found.ratio, low, high, found.per_launch, exact=True)


def over_machines(by_machine: Mapping[str, Estimate]) -> Estimate:
    """The mean of the machines' log ratios, with a t interval over machines.

    `per_launch` of the result has one ratio per machine. For one machine, its own estimate. Raises
    ValueError if there is no machine.
    """
    if len(by_machine) == 1:
        return next(iter(by_machine.values()))
    found = over_launches([math.log(one.ratio) for one in by_machine.values()])
    if found is None:
        raise ValueError("no machine")
    return found


def change(now: Estimate, base: Estimate) -> RatioChange:
    """The factor by which a ratio changed, from the means of the log ratios of both runs' launches.

    Welch's interval allows different numbers of launches and different spreads. There is none if
    either run has a single launch. For counts that repeat in both, it spans the ends of both
    intervals.
    """
    ratio = now.ratio / base.ratio
    if now.exact and base.exact:
        if now.low and now.high and base.low and base.high:
            return RatioChange(ratio, now.low / base.high, now.high / base.low)
        return RatioChange(ratio, None, None)
    ours, theirs = _logs(now), _logs(base)
    if min(len(ours), len(theirs)) < LEAST_LAUNCHES:
        return RatioChange(ratio, None, None)
    errors = [statistics.variance(logs) / len(logs) for logs in (ours, theirs)]
    if sum(errors) <= 0:
        return RatioChange(ratio, ratio, ratio)
    degrees = sum(errors) ** 2 / sum(
        error**2 / (len(logs) - 1) for error, logs in zip(errors, (ours, theirs), strict=True)
    )
    half = t_quantile(degrees) * math.sqrt(sum(errors))
    middle = statistics.fmean(ours) - statistics.fmean(theirs)
    return RatioChange(math.exp(middle), math.exp(middle - half), math.exp(middle + half), degrees)


def chance_of_alike(estimates: Iterable[Estimate]) -> float | None:
    """The p-value of the null hypothesis that all runs have the same true ratio (Welch's test).

    If it is small, runs differ by something that no launch shows, and an interval over launches is
    too narrow. None with fewer than two runs, or if a run has a single launch. For counts that
    repeat in all runs it is 1 if they are equal, else 0.
    """
    estimates = tuple(estimates)
    exact = all(one.exact for one in estimates)
    runs = [_logs(one) for one in estimates]
    if len(runs) < LEAST_RUNS or (not exact and min(map(len, runs)) < LEAST_LAUNCHES):
        return None
    means = [statistics.fmean(logs) for logs in runs]
    variances = [statistics.variance(logs) if len(logs) > 1 else 0.0 for logs in runs]
    if exact or max(variances) <= 0:
        return 1.0 if max(means) - min(means) <= SAME else 0.0
    if min(variances) <= 0:  # no spread is no infinite weight: it borrows the others'
        variances = [statistics.fmean(variances)] * len(runs)
    return _welch(means, variances, [len(logs) for logs in runs])


def _welch(means: Sequence[float], variances: Sequence[float], sizes: Sequence[int]) -> float:
    """The p-value of Welch's F test of means, given the variances of single launches."""
    nr_runs = len(means)
    weights = [size / variance for size, variance in zip(sizes, variances, strict=True)]
    whole = sum(weights)
    middle = sum(weight * mean for weight, mean in zip(weights, means, strict=True)) / whole
    lost = sum(
        (1 - weight / whole) ** 2 / (size - 1) for weight, size in zip(weights, sizes, strict=True)
    )
    between = sum(
        weight * (mean - middle) ** 2 for weight, mean in zip(weights, means, strict=True)
    ) / (nr_runs - 1)
    found = between / (1 + 2 * (nr_runs - 2) / (nr_runs**2 - 1) * lost)
    # Here, not above: importing it takes longer than all else `ream --help` does.
    special = importlib.import_module("scipy.special")
    return float(special.fdtrc(nr_runs - 1, (nr_runs**2 - 1) / (3 * lost), found))


def _logs(estimate: Estimate) -> list[float]:
    return [math.log(ratio) for ratio in estimate.per_launch]
