# SPDX-License-Identifier: GPL-2.0-only
"""Decides whether a published ratio holds here, by the rules in docs/method.md."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from ream.measure.statistics import Estimate, counts, floor_bound
from ream.measure.whole import Parts

WIDENED_BY = 1.15
"""A published ratio agrees if it lies within our interval with each end moved out by 15 %."""
CLAIM = 0.10
"""A published effect of at least this share is a claim, which the absence of an effect
contradicts."""
ROUNDING = 1e-9
"""Tolerance of comparisons: 0.9 is 10 % less than 1, whatever its binary fraction is."""
TOO_WIDE = 1.3
"""An interval whose ends are further apart than this factor decides nothing."""
TIMED = "x86_64"
"""The architecture of kernels that are timed; those of others are counted."""
HALF = 0.5
"""The share of a published effect, in logarithms, that `agrees` has to tell from all of it."""
AGREES = "the published ratio is within the interval widened by 15 %"
STANDS_IN = "stands in for the device: it says nothing of the device"
NO_HALF = "the interval is too wide to tell the published effect from half of it"

Word = Literal["agrees", "stronger", "weaker", "contradicts", "inconclusive", "modelled", "not-run"]
Control = Literal["as published", "not as published", "undecided", "modelled", "not tried"]
"""The outcome of a line that claims less than 10 %."""
CONTROLS: tuple[Control, ...] = (
    "as published", "not as published", "undecided", "modelled", "not tried",
)  # fmt: skip


@dataclass(frozen=True)
class Verdict:
    """A verdict and its reason in words."""

    word: Word
    reason: str


@dataclass(frozen=True)
class Facts:
    """The facts beside its numbers that limit the verdict on a row."""

    stand_in: str | None = None
    """What replaces the device of the published ratio, such as "a CPU thread"; None if nothing
    does, or if it is a declared model of that device."""
    model: str | None = None
    """The declared model of that device, with its numbers; None without one."""
    is_part: bool = False
    """Whether the row times a part of the published call."""
    parts: Parts | None = None
    """The part's time on the running kernel and in hosted code; None if it was not measured."""
    misses_costs: bool = False
    """Whether hosted code lacks costs that a kernel of this machine has and that the technique
    saves, so that the absence of an effect is no evidence."""
    no_gain: bool = False
    """Whether the source states a ratio of about 1."""


NO_FACTS = Facts()


def limiting(*, page_tables: bool, amd: bool) -> bool:
    """Whether `Facts.misses_costs` holds for a row.

    page_tables: the row times code of page tables, where a batch saves calls and returns. amd: the
    CPU is AMD's, where the kernel of the machine pays for each return (retbleed, SRSO). Hosted code
    is compiled without these mitigations.
    """
    return page_tables and amd


def not_run(reason: str) -> Verdict:
    """The verdict for a row, or a quantity of its author, that cannot be measured here."""
    return Verdict("not-run", reason)


def verdict_of(
    why_not: Iterable[str | None],
    measured: Estimate | None,
    floor: Estimate | None,
    published: float | None,
    facts: Facts = NO_FACTS,
) -> Verdict:
    """The verdict for reports and replications: not-run with the first reason, or else a judgement.

    why_not: reasons against any verdict, where None is no reason; they must cover a missing
    `measured` or `published`. The rest is as in judge().
    """
    reason = next(filter(None, why_not), None)
    if reason is not None:
        return not_run(reason)
    if facts.stand_in is not None:
        return Verdict("inconclusive", f"{facts.stand_in} {STANDS_IN}")
    if facts.model is not None:
        return modelled(facts.model)
    if facts.is_part and (undecided := _apart(facts.parts)):
        return Verdict("inconclusive", undecided)
    assert measured is not None
    assert published is not None
    judged = judge_no_gain(measured) if facts.no_gain else judge(measured, floor, published)
    if facts.misses_costs and judged.word == "contradicts":
        return Verdict("inconclusive", _not_decided(facts.parts))
    return judged


def modelled(model: str) -> Verdict:
    """The verdict where a declared model replaces the device of the published ratio."""
    return Verdict(
        "modelled",
        f"the device is a model here ({model}), so the line shows what the software around a "
        "device with these numbers allows, and nothing about the device itself",
    )


def other_architecture(there: str | None, here: str, published: float | None) -> str | None:
    """The reason against a verdict on a claim for another architecture; None if it is the same.

    there: None if the source does not say. published: a ratio that claims nothing is a control on
    every architecture.
    """
    if there in (None, here) or (published is not None and not claims_effect(published)):
        return None
    return f"published for {there}, and this is {here}"


def _apart(parts: Parts | None) -> str | None:
    """The reason against adding a hosted part to the rest of a live call; None if there is none."""
    if parts is None:
        return (
            "not decided: the part was not measured on the running kernel, so hosted code cannot "
            "be compared with it"
        )
    return _not_decided(parts) if parts.differ else None


def _not_decided(parts: Parts | None) -> str:
    if parts is None:
        return (
            "not decided: hosted code may be faster than this machine's kernel, and by how much "
            "was not measured on this machine"
        )
    factor, how = (parts.ratio, "faster") if parts.ratio >= 1 else (1 / parts.ratio, "slower")
    return f"not decided: hosted code is {factor:.1f} times {how} than this machine's kernel"


def claims_effect(published: float) -> bool:
    """Whether a published ratio is an effect of 10 % or more."""
    return abs(published - 1) >= CLAIM - ROUNDING


def judge(measured: Estimate, floor: Estimate | None, published: float) -> Verdict:
    """Compare a measured ratio with a published one, both variant over before, lower is faster.

    `contradicts` takes precedence over `agrees`: for 1.00 here and 0.88 there, the 15 % would hide
    that there is no effect. The effect is decided by this row alone, not among all of its run: the
    claim named the row beforehand, and a verdict must not depend on what else ran.
    """
    bound = floor_bound(floor)
    if measured.low is None or measured.high is None or bound is None:
        return Verdict("inconclusive", "no interval: it takes two launches at least")
    if (width := measured.high / measured.low) > TOO_WIDE:
        said = f"the ends of the interval are a factor {width:.3f} apart, more than {TOO_WIDE}"
        return Verdict("inconclusive", said)
    within = measured.low / WIDENED_BY <= published <= measured.high * WIDENED_BY
    if counts(measured, floor):
        return _with_effect(measured, published, within=within)
    could = has_claim(measured.low, measured.high, published)
    return _without_effect(measured.ratio, published, bound, within=within, could=could)


def has_claim(low: float, high: float, published: float) -> bool:
    """Whether an interval contains an effect of CLAIM or more in the published direction."""
    return low <= 1 - CLAIM + ROUNDING if published < 1 else high >= 1 + CLAIM - ROUNDING


def _with_effect(measured: Estimate, published: float, *, within: bool) -> Verdict:
    ours, theirs = math.log(measured.ratio), math.log(published)
    if ours * theirs < 0:
        return Verdict("contradicts", "the effect has the other sign")
    if claims_effect(published) and (by_shares := _by_shares(measured, theirs, within=within)):
        return by_shares
    if within:
        return Verdict("agrees", AGREES)
    if theirs == 0:
        return Verdict("contradicts", "an effect where none is published")
    word: Word = "stronger" if abs(ours) > abs(theirs) else "weaker"
    return Verdict(word, "the same direction, but beyond the interval widened by 15 %")


def _by_shares(measured: Estimate, theirs: float, *, within: bool) -> Verdict | None:
    """The verdict if the interval misses the published effect, or cannot tell it from half of it.

    theirs: the logarithm of the published ratio. An interval tells them apart if one of its width
    around the published ratio would exclude half of the effect, and so one and a half times of it.
    None if it does, or if the published ratio is beyond the widened interval.
    """
    ends = (measured.low or measured.ratio, measured.high or measured.ratio)
    least, most = sorted(math.log(end) / theirs for end in ends)
    if most < 1 - HALF:
        return Verdict("weaker", "the whole interval is below half of the published effect")
    if least > 1 + HALF:
        said = "the whole interval is above one and a half times of the published effect"
        return Verdict("stronger", said)
    if within and most - least >= 2 * HALF:
        return Verdict("inconclusive", NO_HALF)
    return None


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
    if within and not claimed:
        return Verdict("agrees", AGREES)
    if within and not in_floor:
        return Verdict("inconclusive", "the interval includes no effect")
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


def control(word: Word, here: float | None) -> Control:
    """The outcome of a line that claims less than 10 %; less than 10 % here is as published.

    here: the ratio measured here; None if it is unknown.
    """
    if word == "not-run":
        return "not tried"
    if word == "modelled":
        return "modelled"
    if word == "inconclusive":
        return "undecided"
    small = here is not None and abs(here - 1) < CLAIM
    return "as published" if small or word in ("agrees", "weaker") else "not as published"
