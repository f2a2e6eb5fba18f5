# SPDX-License-Identifier: GPL-2.0-only
"""Decides whether a published ratio holds here, by the rules in docs/method.md."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from ream.measure.statistics import Estimate, counts, floor_bound

WIDENED_BY = 1.15
"""A published ratio agrees if it lies within our interval with each end moved out by 15 %."""
CLAIM = 0.10
"""A published effect of at least this share is a claim, which the absence of an effect
contradicts."""
ROUNDING = 1e-9
"""Tolerance of comparisons: 0.9 is 10 % less than 1, whatever its binary fraction is."""
TOO_WIDE = 1.3
"""An interval whose ends are further apart than this factor decides nothing."""
AGREES = "the published ratio is within the interval widened by 15 %"
STANDS_IN = "stands in for the device: it says nothing of the device"

Word = Literal["agrees", "stronger", "weaker", "contradicts", "inconclusive", "not-run"]


@dataclass(frozen=True)
class Verdict:
    """A verdict and its reason in words."""

    word: Word
    reason: str


def not_run(reason: str) -> Verdict:
    """The verdict for a row, or a quantity of its author, that cannot be measured here."""
    return Verdict("not-run", reason)


def verdict_of(
    why_not: Iterable[str | None],
    measured: Estimate | None,
    floor: Estimate | None,
    published: float | None,
    *,
    stand_in: str | None = None,
    no_gain: bool = False,
) -> Verdict:
    """The verdict for reports and replications: not-run with the first reason, or else a judgement.

    why_not: reasons against any verdict, where None is no reason; they must cover a missing
    `measured` or `published`. no_gain: the source states a ratio of about 1. The rest is as in
    judge().
    """
    reason = next(filter(None, why_not), None)
    if reason is not None:
        return not_run(reason)
    assert measured is not None
    assert published is not None
    if no_gain:
        return judge_no_gain(measured)
    return judge(measured, floor, published, stand_in=stand_in)


def claims_effect(published: float) -> bool:
    """Whether a published ratio is an effect of 10 % or more."""
    return abs(published - 1) >= CLAIM - ROUNDING


def judge(
    measured: Estimate, floor: Estimate | None, published: float, *, stand_in: str | None = None
) -> Verdict:
    """Compare a measured ratio with a published one, both variant over before, lower is faster.

    stand_in: what replaces the device of the published ratio here, such as "a CPU thread"; None if
    nothing does, or if it is a declared model of that device. A replacement is no evidence about
    the device, neither for the claim nor against it.

    `contradicts` takes precedence over `agrees`: for 1.00 here and 0.88 there, the 15 % would hide
    that there is no effect. The effect is decided by this row alone, not among all of its run: the
    claim named the row beforehand, and a verdict must not depend on what else ran.
    """
    if stand_in is not None:
        return Verdict("inconclusive", f"{stand_in} {STANDS_IN}")
    bound = floor_bound(floor)
    if measured.low is None or measured.high is None or bound is None:
        return Verdict("inconclusive", "no interval: it takes two launches at least")
    if (width := measured.high / measured.low) > TOO_WIDE:
        said = f"the ends of the interval are a factor {width:.3f} apart, more than {TOO_WIDE}"
        return Verdict("inconclusive", said)
    within = measured.low / WIDENED_BY <= published <= measured.high * WIDENED_BY
    if counts(measured, floor):
        return _with_effect(measured.ratio, published, within=within)
    could = has_claim(measured.low, measured.high, published)
    return _without_effect(measured.ratio, published, bound, within=within, could=could)


def has_claim(low: float, high: float, published: float) -> bool:
    """Whether an interval contains an effect of CLAIM or more in the published direction."""
    return low <= 1 - CLAIM + ROUNDING if published < 1 else high >= 1 + CLAIM - ROUNDING


def _with_effect(measured: float, published: float, *, within: bool) -> Verdict:
    ours, theirs = math.log(measured), math.log(published)
    if ours * theirs < 0:
        return Verdict("contradicts", "the effect has the other sign")
    if within:
        return Verdict("agrees", AGREES)
    if theirs == 0:
        return Verdict("contradicts", "an effect where none is published")
    word: Word = "stronger" if abs(ours) > abs(theirs) else "weaker"
    return Verdict(word, "the same direction, but beyond the interval widened by 15 %")


def _without_effect(
    measured: float, published: float, bound: float, *, within: bool, could: bool
) -> Verdict:
    """The verdict if there is no effect here.

    bound: the largest |log ratio| of the noise floor, below which nothing can be seen. could:
    whether the interval contains an effect of CLAIM, so that the absence of an effect is not shown.
    """
    in_floor = abs(math.log(measured)) <= bound
    claimed = claims_effect(published)
    seen = claimed and abs(math.log(published)) > bound
    if seen and could and (in_floor or not within):
        return Verdict("inconclusive", "the interval has room for an effect of 10 %")
    if seen and (in_floor or not within):
        return Verdict("contradicts", "no effect here where at least 10 % is published")
    if within and not (claimed and in_floor):
        doubt = "; but the interval includes no effect" if claimed else ""
        return Verdict("agrees", AGREES + doubt)
    return Verdict("inconclusive", "the noise floor hides an effect of the published size")


def judge_no_gain(measured: Estimate) -> Verdict:
    """The verdict on a source that reports "no gain": a gain that is not seen may still exist.

    It agrees only if the whole interval is within 10 % of 1, which excludes a gain of 10 %. It
    contradicts if the whole interval is beyond. Source: Schuirmann, "A comparison of the two
    one-sided tests procedure", J Pharmacokinet Biopharm 1987, with an interval of 95 % where 90 %
    would do.
    """
    low, high = measured.low, measured.high
    if low is None or high is None:
        return Verdict("inconclusive", "no interval: it takes two launches at least")
    if high < 1 - CLAIM:
        return Verdict("contradicts", "a gain of more than 10 % here where none was found")
    if low > 1 + CLAIM:
        return Verdict("contradicts", "a loss of more than 10 % here where about none was found")
    if low >= 1 - CLAIM and high <= 1 + CLAIM:
        return Verdict("agrees", "the whole interval is within 10 % of no effect")
    wide = high / low > TOO_WIDE
    said = "is too wide to exclude" if wide else "does not exclude"
    return Verdict("inconclusive", f"the interval {said} an effect of 10 %")
