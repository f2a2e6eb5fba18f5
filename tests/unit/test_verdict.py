# SPDX-License-Identifier: GPL-2.0-only
"""Every boundary of design.md section 6.5, worked by hand; the floor reaches 1/0.98 = 1.0204."""

import math
import random

import pytest

from ream.measure.statistics import Estimate
from ream.measure.verdict import (
    Facts,
    control,
    judge,
    judge_no_gain,
    limiting,
    not_run,
    other_architecture,
    verdict_of,
)
from ream.measure.whole import Parts

FLOOR = Estimate(1.0, 0.98, 1.01, ())


def verdict(
    ratio: float, low: float | None, high: float | None, published: float, floor: Estimate = FLOOR
) -> str:
    return judge(Estimate(ratio, low, high, ()), floor, published).word


@pytest.mark.parametrize(
    ("published", "expected"),
    [
        # Ours is 0.46 [0.45 .. 0.47]; widened by 15 % that is 0.3913 .. 0.5405.
        (0.3912, "weaker"),
        (0.3914, "agrees"),
        (0.46, "agrees"),
        (0.5404, "agrees"),
        (0.5406, "stronger"),
        (0.99, "stronger"),
        (1.0, "contradicts"),  # no effect is published, and there is one
        (1.01, "contradicts"),  # the other sign
        (2.0, "contradicts"),
    ],
)
def test_an_effect_of_ours_against_what_is_published(published: float, expected: str) -> None:
    assert verdict(0.46, 0.45, 0.47, published) == expected


@pytest.mark.parametrize(
    ("published", "expected"),
    [
        # Ours is 2.0 [1.9 .. 2.1], a loss; widened 1.652 .. 2.415.
        (1.651, "stronger"),
        (1.653, "agrees"),
        (2.414, "agrees"),
        (2.416, "weaker"),
        (0.5, "contradicts"),
    ],
)
def test_a_published_loss_is_judged_like_a_gain(published: float, expected: str) -> None:
    assert verdict(2.0, 1.9, 2.1, published) == expected


@pytest.mark.parametrize(
    ("published", "expected"),
    [
        (0.45, "contradicts"),
        (0.88, "contradicts"),  # though 0.88 is within 1.00 [0.99 .. 1.01] widened by 15 %
        (0.90, "contradicts"),  # 10 % is a claim
        (0.901, "agrees"),  # less is none that its absence contradicts
        (1.0, "agrees"),
        (1.03, "agrees"),
        (1.099, "agrees"),
        (1.10, "contradicts"),
    ],
)
def test_no_effect_within_the_floor_contradicts_a_claim_of_10_percent(
    published: float, expected: str
) -> None:
    assert verdict(1.0, 0.99, 1.01, published) == expected


def test_an_interval_wider_than_1_3_decides_nothing() -> None:
    assert verdict(0.5, 0.44, 0.44 * 1.2999, 0.5) == "agrees"
    assert verdict(0.5, 0.44, 0.44 * 1.3001, 0.5) == "inconclusive"
    assert verdict(0.5, 0.44, 0.44 * 1.3001, 2.0) == "inconclusive"


def test_without_an_interval_or_a_floor_nothing_is_decided() -> None:
    assert verdict(0.5, None, None, 0.5) == "inconclusive"
    assert judge(Estimate(0.5, 0.49, 0.51, ()), None, 0.5).word == "inconclusive"
    assert verdict(0.5, 0.49, 0.51, 0.5, Estimate(1.0, None, None, ())) == "inconclusive"


def test_an_effect_whose_interval_includes_1_does_not_count() -> None:
    # Beyond the floor, but not shown: far from the claim it contradicts, near it decides nothing.
    assert verdict(0.96, 0.91, 1.02, 0.45) == "contradicts"
    near = judge(Estimate(0.95, 0.90, 1.01, ()), FLOOR, 0.88)
    assert near.word == "inconclusive"
    assert "includes no effect" in near.reason


@pytest.mark.parametrize(
    ("ratio", "low", "high", "published", "expected"),
    [
        # 65 % of the published effect, seen well enough to tell it from half of it.
        (0.679, 0.630, 0.732, 0.553, "agrees"),
        # A third of it: the whole interval is below half, however near the 15 % come.
        (0.903, 0.881, 0.925, 0.744, "weaker"),
        (0.95, 0.945, 0.955, 0.88, "weaker"),
        # The same middle with more noise is no agreement.
        (0.85, 0.82, 0.88, 0.80, "agrees"),
        (0.85, 0.76, 0.96, 0.80, "inconclusive"),
        (0.80, 0.76, 0.84, 0.80, "agrees"),
        (0.80, 0.71, 0.91, 0.80, "inconclusive"),
        # Beyond one and a half times of the effect it is more, though within 15 %.
        (0.80, 0.79, 0.81, 0.90, "stronger"),
        # Costs are judged as gains are.
        (1.18, 1.10, 1.27, 1.25, "agrees"),
        (1.18, 1.05, 1.33, 1.25, "inconclusive"),
        (1.07, 1.06, 1.08, 1.20, "weaker"),
        # What claims nothing has no half that could be told from it.
        (0.97, 0.96, 0.98, 0.95, "agrees"),
    ],
)
def test_what_agrees_could_have_excluded_half_of_the_published_effect(
    ratio: float, low: float, high: float, published: float, expected: str
) -> None:
    assert verdict(ratio, low, high, published) == expected


AMD = Facts(misses_costs=limiting(page_tables=True, amd=True))
NOTHING = Estimate(1.0, 0.99, 1.01, ())


def test_page_tables_of_an_amd_cpu_contradict_nothing() -> None:
    found = verdict_of((), NOTHING, FLOOR, 0.7, AMD)
    assert found.word == "inconclusive"
    assert found.reason.startswith("not decided: hosted code may be faster than this machine's")
    assert "was not measured on this machine" in found.reason
    known = Facts(misses_costs=True, parts=Parts(live_ns=1300, hosted_ns=1000))
    said = "not decided: hosted code is 1.3 times faster than this machine's kernel"
    assert verdict_of((), NOTHING, FLOOR, 0.7, known).reason == said
    # What is found there is an effect all the same.
    assert verdict_of((), Estimate(0.7, 0.69, 0.71, ()), FLOOR, 0.7, AMD).word == "agrees"
    for tables, amd in ((True, False), (False, True)):
        facts = Facts(misses_costs=limiting(page_tables=tables, amd=amd))
        assert verdict_of((), NOTHING, FLOOR, 0.7, facts).word == "contradicts"


@pytest.mark.parametrize(
    ("live", "word"), [(1000, "agrees"), (1490, "agrees"), (670, "agrees"),
                       (1510, "inconclusive"), (660, "inconclusive")],
)  # fmt: skip
def test_a_part_is_added_to_the_rest_only_if_it_takes_about_as_long_live(
    live: float, word: str
) -> None:
    facts = Facts(is_part=True, parts=Parts(live_ns=live, hosted_ns=1000))
    found = verdict_of((), Estimate(0.7, 0.69, 0.71, ()), FLOOR, 0.7, facts)
    assert found.word == word
    if word == "inconclusive":
        factor = "1.5 times faster" if live > 1000 else "1.5 times slower"
        assert factor in found.reason


def test_a_part_that_was_not_measured_live_has_no_verdict() -> None:
    found = verdict_of((), Estimate(0.7, 0.69, 0.71, ()), FLOOR, 0.7, Facts(is_part=True))
    assert found.word == "inconclusive"
    assert "was not measured on the running kernel" in found.reason


@pytest.mark.parametrize("published", [0.3, 0.5, 0.99, 1.0, 2.0])
def test_a_modelled_device_gets_a_word_of_its_own(published: float) -> None:
    ours = Estimate(0.5, 0.49, 0.51, ())
    found = verdict_of((), ours, FLOOR, published, Facts(model="grid: 570 ns"))
    assert found.word == "modelled"
    assert "grid: 570 ns" in found.reason
    assert "nothing about the device" in found.reason


def test_a_claim_for_another_architecture_is_not_tried_and_a_control_is() -> None:
    assert other_architecture("arm64", "x86_64", 0.6) == "published for arm64, and this is x86_64"
    assert other_architecture("arm64", "x86_64", 1.02) is None
    assert other_architecture("arm64", "arm64", 0.6) is None
    assert other_architecture(None, "x86_64", 0.6) is None


def test_the_outcome_of_a_control_with_a_model_is_said_as_such() -> None:
    assert control("modelled", 1.0) == "modelled"


def test_the_other_sign_contradicts_however_small() -> None:
    assert verdict(0.96, 0.95, 0.97, 1.03) == "contradicts"


def test_a_floor_that_hides_the_published_effect_decides_nothing() -> None:
    wide = Estimate(1.0, 0.85, 1.15, ())
    assert verdict(1.0, 0.95, 1.05, 0.88, wide) == "inconclusive"
    assert verdict(0.87, 0.86, 0.88, 0.88, wide) == "inconclusive"
    assert verdict(1.0, 0.95, 1.05, 0.45, wide) == "contradicts"


def test_an_interval_that_has_the_claim_in_it_does_not_contradict_it() -> None:
    wide = Estimate(0.96, 0.86, 1.07, ())
    reaching = Estimate(1.0, 0.95, 1.05, ())
    assert judge(wide, reaching, 0.88).word == "inconclusive"
    assert judge(wide, reaching, 0.86).word == "inconclusive"
    assert judge(wide, reaching, 0.85).word == "inconclusive"  # 0.86 is an effect of 10 %, too
    assert judge(Estimate(0.96, 0.91, 1.01, ()), reaching, 0.85).word == "contradicts"
    assert judge(wide, reaching, 1.20).word == "contradicts"  # no 10 % of that direction
    assert judge(Estimate(0.93, 0.85, 1.02, ()), FLOOR, 0.45).word == "inconclusive"
    assert judge(wide, FLOOR, 0.88).word == "inconclusive"  # beyond the floor, too


@pytest.mark.parametrize("published", [0.45, 0.5, 0.6, 0.99, 1.0, 2.0])
def test_what_a_stand_in_gives_is_said_for_no_claim_and_against_none(published: float) -> None:
    ours = Estimate(0.5, 0.49, 0.51, ())
    assert judge(ours, FLOOR, published).word != "inconclusive"
    found = verdict_of((), ours, FLOOR, published, Facts(stand_in="a CPU thread"))
    said = "a CPU thread stands in for the device: it says nothing of the device"
    assert (found.word, found.reason) == ("inconclusive", said)


def as_the_method_says(m: Estimate, floor: Estimate, p: float) -> str:  # noqa: C901, PLR0911
    """The table of docs/method.md, line by line, the first that fits."""
    assert m.low
    assert m.high
    assert floor.low
    assert floor.high
    ours, theirs = math.log(m.ratio), math.log(p)
    floor_end = max(abs(math.log(floor.low)), abs(math.log(floor.high)))
    m_in_floor, p_in_floor = abs(ours) <= floor_end, abs(theirs) <= floor_end
    counts = not m_in_floor and not m.low <= 1 <= m.high
    claims = p <= 0.9 or p >= 1.1
    could = m.low <= 0.9 if p < 1 else m.high >= 1.1
    if m.high / m.low > 1.3:
        return "inconclusive"
    if (counts and ours * theirs < 0) or (m_in_floor and claims and not (p_in_floor or could)):
        return "contradicts"
    if m_in_floor and claims:
        return "inconclusive"
    within = m.low / 1.15 <= p <= m.high * 1.15
    if counts and claims:
        shares = sorted((math.log(m.low) / theirs, math.log(m.high) / theirs))
        if shares[1] < 0.5:
            return "weaker"
        if shares[0] > 1.5:
            return "stronger"
        if within and shares[1] - shares[0] >= 1:
            return "inconclusive"
    if within and claims and not counts:
        return "inconclusive"
    if within:
        return "agrees"
    if counts and theirs == 0:
        return "contradicts"
    if counts:
        return "stronger" if abs(ours) > abs(theirs) else "weaker"
    return "contradicts" if claims and not (p_in_floor or could) else "inconclusive"


def test_the_table_of_the_method_gives_every_verdict() -> None:
    draw = random.Random(7)
    seen = set()
    for _ in range(20_000):
        m, half = math.exp(draw.gauss(0, 0.25)), abs(draw.gauss(0, 0.08))
        middle, reach = draw.gauss(0, 0.03), abs(draw.gauss(0, 0.12))
        ours = Estimate(m, m * math.exp(-half), m * math.exp(half), ())
        floor = Estimate(math.exp(middle), math.exp(middle - reach), math.exp(middle + reach), ())
        published = draw.choice([1.0, 0.9, 1.1, math.exp(draw.gauss(0, 0.3))])
        word = judge(ours, floor, published).word
        assert word == as_the_method_says(ours, floor, published), (ours, floor, published)
        seen.add(word)
    assert len(seen) == 5


def test_what_was_not_run_says_why() -> None:
    verdict = not_run("needs a kernel")
    assert (verdict.word, verdict.reason) == ("not-run", "needs a kernel")


def test_the_first_reason_against_a_verdict_is_told() -> None:
    found = verdict_of((None, "no CPU", "no memory"), None, None, None)
    assert (found.word, found.reason) == ("not-run", "no CPU")


def test_where_nothing_is_in_the_way_it_is_judged() -> None:
    ours, same = Estimate(0.5, 0.49, 0.51, (0.5,)), Estimate(1.0, 0.99, 1.01, (1.0,))
    assert verdict_of((None,), ours, same, 0.5) == judge(ours, same, 0.5)
    assert verdict_of((), ours, same, 1.0, Facts(no_gain=True)) == judge_no_gain(ours)
