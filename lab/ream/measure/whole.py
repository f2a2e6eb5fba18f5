# SPDX-License-Identifier: GPL-2.0-only
"""A call of which a row times a part only: what is left out, and the ratio of the whole."""

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from ream.experiment import BEFORE
from ream.measure.sample import Sample
from ream.measure.statistics import CONFIDENCE, Estimate, paired, times_of


@dataclass(frozen=True)
class LeftOut:
    """What a whole call takes besides the part that a row times: of several rounds the medians."""

    whole_ns: float | None
    """None: it could not be measured, as another size of folio stood in for the row's."""
    ns: float
    low_ns: float
    high_ns: float
    """Between these two lies the median of `ns`, with 95 % confidence."""
    how: str
    """What was measured, and on which kernel."""

    @property
    def share(self) -> float | None:
        """The part's share of the whole, where both were measured."""
        return None if self.whole_ns is None else 1 - self.ns / self.whole_ns


def left_out(whole_ns: Sequence[int], rest_ns: Sequence[int], how: str) -> LeftOut:
    """From a time of the whole and one of what is left out, of each round: at least six.

    What is left out may be a difference of two times, and so seem to be less than nothing.
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
    """Ratio subject/before of the whole calls: that of the parts, what is left out added to both.

    Estimated as every ratio. How well what is left out is known goes into the interval: it spans
    those with the least and with the most that it may be.
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
    """Two of the values, between which the median lies, whatever the distribution.

    The median is below the k-th smallest of n with the chance of fewer than k heads in n tosses.
    """
    ordered, nr = sorted(values), len(values)
    below, rank = 0.0, 0
    while (below := below + math.comb(nr, rank) / 2**nr) <= (1 - CONFIDENCE) / 2:
        rank += 1
    if rank == 0:
        raise ValueError(f"{nr} rounds have no interval of {100 * CONFIDENCE:g} %")
    return ordered[rank - 1], ordered[nr - rank]
