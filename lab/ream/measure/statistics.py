# SPDX-License-Identifier: GPL-2.0-only
"""The estimator for all ratios: launches are the replicates, rounds are not.

Per launch it takes the median over rounds; over launches, the mean of logarithms with a t interval.
Ratios are paired by round, so that both variants met the same conditions. Source: Kalibera & Jones,
"Rigorous benchmarking in reasonable time", ISMM 2013.
"""

import importlib
import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Literal, TypeVar

from ream.errors import ReamError
from ream.experiment import AGAIN, BEFORE, RUNNING
from ream.measure.sample import Sample

CONFIDENCE = 0.95
LEAST_LAUNCHES = 2
"""The smallest number of launches that has a spread, and so an interval."""
FALSE_RATE = 0.05
"""The allowed share of false effects among those reported in a run: Benjamini-Hochberg's q."""
LEAST_LAYOUT_RATIO = 1.02
"""A launch that is off by less than this ratio is not reported."""
SAME = 1e-4
"""Counts that differ by at most this share are equal, which allows for a timer interrupt."""
LIMIT_ERROR = 1.02
"""A variant that beats its limit by more than this reveals an error in the limit."""

Role = Literal["variant", "limit", "live"]
Test = TypeVar("Test")
"""The key of one test of a run: a row and a variant."""


@dataclass(frozen=True)
class Estimate:
    """A ratio, its interval over launches, and the ratio of each launch."""

    ratio: float
    low: float | None
    high: float | None
    per_launch: tuple[float, ...]
    exact: bool = False
    """Whether the ratio is of counts that repeat, for which there is nothing to test. The interval
    is then from the smallest to the greatest ratio of any round."""

    @property
    def spread(self) -> tuple[float, float]:
        """The smallest and the greatest ratio of any one launch."""
        return min(self.per_launch), max(self.per_launch)


@dataclass(frozen=True)
class LaunchSpread:
    """How much launches differ, each with its own layout of code and data."""

    p_value: float
    """The probability of such a difference if launches only differed by their rounds."""
    within: float
    """The typical distance of a round from the median of its launch, as a ratio of at least 1."""


@dataclass(frozen=True)
class Level:
    """The time of a subject: the geometric mean over launches of its median round."""

    time_ns: float
    nr_bytes: float
    threads: int
    nr_samples: int
    nr_launches: int


@dataclass(frozen=True)
class Limit:
    """The time of one kind of fill of the same bytes with a given number of CPUs."""

    how: str
    level: Level


def paired_ratio(
    samples: Iterable[Sample], subject: str, *, to: str = BEFORE, counted: bool = False
) -> Estimate | None:
    """Ratio subject/to over the rounds that contain both; None if there is no such round.

    samples: of one row. Raises ReamError if a subject was measured twice in one round. The median
    is taken of the logarithms, so that with an even number of rounds the ratio of a to b is still
    exactly one over the ratio of b to a. counted: the values are counts. If they repeat, the
    interval is from the smallest to the greatest ratio of any round; otherwise they are estimated
    as times are.
    """
    samples = list(samples)
    exact = counted and repeats(samples)
    return paired(times_of(samples, subject), times_of(samples, to), exact=exact)


def repeats(samples: Iterable[Sample]) -> bool:
    """Whether the counts of every launch, and of both copies of one kernel, are equal.

    samples: of one row. This depends on the kernel rather than on the method: a kernel that waits,
    or whose work depends on which page is free, does not repeat although instructions are counted.
    """
    counts: dict[tuple[str, int], list[int]] = {}
    for sample in samples:
        if sample.role == "variant":
            kernel = sample.subject.removesuffix(AGAIN)
            counts.setdefault((kernel, sample.round), []).append(sample.time_ns)
    return all(max(its) <= min(its) * (1 + SAME) for its in counts.values())


def paired(
    values: Mapping[tuple[int, int], float],
    base: Mapping[tuple[int, int], float],
    *,
    exact: bool = False,
) -> Estimate | None:
    """Ratio of any two positive quantities by launch and round, estimated as in `paired_ratio`."""
    logs = _by_launch(values, base)
    estimate = over_launches([statistics.median(rounds) for _, rounds in sorted(logs.items())])
    if estimate is None or not exact:
        return estimate
    every = [log for rounds in logs.values() for log in rounds]
    return replace(estimate, low=math.exp(min(every)), high=math.exp(max(every)), exact=True)


def cpu_times(samples: Iterable[Sample], subject: str) -> Mapping[tuple[int, int], int]:
    """CPU time of the whole machine by launch and round; empty unless every sample has some.

    Leaving out samples with 0 would bias a ratio towards the others.
    """
    own = [one for one in samples if one.role == "variant" and one.subject == subject]
    times = {(one.launch, one.round): one.cpu_ns for one in own if one.cpu_ns}
    return times if len(times) == len(own) else {}


def cpu_ratio(samples: Iterable[Sample], subject: str, *, to: str = BEFORE) -> Estimate | None:
    """Ratio subject/to of CPU time, paired by round as times are; None if CPU time is unknown."""
    samples = list(samples)
    return paired(cpu_times(samples, subject), cpu_times(samples, to))


def cpu_level(samples: Iterable[Sample], subject: str) -> float | None:
    """A variant's CPU time, as the geometric mean over launches of the median round; or None."""
    times = cpu_times(samples, subject)
    return _typical(times) if times else None


def noise_floor(
    samples: Iterable[Sample], of: str = BEFORE, *, counted: bool = False
) -> Estimate | None:
    """The ratio of a variant's second copy to itself: the effect seen where none exists."""
    return paired_ratio(samples, of + AGAIN, to=of, counted=counted)


def floor_bound(floor: Estimate | None) -> float | None:
    """The largest |log ratio| that the floor's interval allows; None without an interval."""
    if floor is None or floor.low is None or floor.high is None:
        return None
    return max(abs(math.log(floor.low)), abs(math.log(floor.high)))


def counts(estimate: Estimate, floor: Estimate | None) -> bool | None:
    """Whether a ratio is an effect: its interval excludes 1, and it exceeds the floor.

    None with fewer than two launches or without a floor, as nothing can be decided then.
    """
    bound = floor_bound(floor)
    if bound is None or estimate.low is None or estimate.high is None:
        return None
    excludes_one = not estimate.low <= 1 <= estimate.high
    return excludes_one and abs(math.log(estimate.ratio)) > bound


def p_value(estimate: Estimate) -> float | None:
    """The probability that chance alone makes the launches as far from a ratio of 1.

    This is a two-sided t test of the launches' log ratios. It excludes 1 at 5 % exactly if the 95 %
    interval does. None with fewer than two launches.
    """
    logs = [math.log(ratio) for ratio in estimate.per_launch]
    if len(logs) < LEAST_LAUNCHES:
        return None
    mean, error = statistics.fmean(logs), statistics.stdev(logs) / math.sqrt(len(logs))
    if error == 0:
        return 1.0 if mean == 0 else 0.0
    return 2 * float(special().stdtr(len(logs) - 1, -abs(mean / error)))


def outstanding(p_values: Sequence[float]) -> tuple[bool, ...]:
    """Which of many tests are significant, if FALSE_RATE of them may be false on average.

    If no effect is real, a run reports none with probability 1 - FALSE_RATE. Tests that share a
    `before` are correlated; tests/unit/test_coverage.py simulates that this does no harm. Source:
    Benjamini & Hochberg, "Controlling the false discovery rate: a practical and powerful approach
    to multiple testing", JRSS B 57 (1995).
    """
    nr_tests = len(p_values)
    enough = (p for rank, p in enumerate(sorted(p_values), 1) if p <= FALSE_RATE * rank / nr_tests)
    most = max(enough, default=-1.0)
    return tuple(p <= most for p in p_values)


def effects(
    found: Mapping[Test, tuple[Estimate, Estimate | None]],
) -> dict[Test, bool | None]:
    """Which ratios of a run are effects, corrected for multiple comparisons over all its tests.

    found: for each test, its estimate and floor. An effect is significant among all tests and
    exceeds its floor. None with fewer than two launches or without a floor; these count as no test.
    """
    tests = {
        test: (p, abs(math.log(estimate.ratio)) > bound)
        for test, (estimate, floor) in found.items()
        if (p := p_value(estimate)) is not None and (bound := floor_bound(floor)) is not None
    }
    stand = dict(zip(tests, outstanding([p for p, _ in tests.values()]), strict=True))
    return {test: stand[test] and tests[test][1] if test in tests else None for test in found}


def layout(samples: Iterable[Sample], subject: str, *, to: str = BEFORE) -> LaunchSpread | None:
    """Whether launches differ by more than their rounds explain: one-way analysis of variance.

    It uses the paired log ratios subject/to of `paired_ratio`. None without at least two launches,
    one of which has two rounds.
    """
    samples = list(samples)
    launches = list(_by_launch(times_of(samples, subject), times_of(samples, to)).values())
    every = [log for rounds in launches for log in rounds]
    between, within = len(launches) - 1, len(every) - len(launches)
    if between < 1 or within < 1:
        return None
    grand, means = statistics.fmean(every), [statistics.fmean(rounds) for rounds in launches]
    pairs = list(zip(launches, means, strict=True))
    explained = sum(len(rounds) * (mean - grand) ** 2 for rounds, mean in pairs) / between
    left = sum((log - mean) ** 2 for rounds, mean in pairs for log in rounds) / within
    typical = statistics.median(
        abs(log - statistics.median(rounds)) for rounds in launches for log in rounds
    )
    if left == 0:
        return LaunchSpread(p_value=0.0 if explained > 0 else 1.0, within=math.exp(typical))
    p = float(special().fdtrc(between, within, explained / left))
    return LaunchSpread(p_value=p, within=math.exp(typical))


def matters(estimate: Estimate, floor: Estimate | None) -> bool:
    """Whether any launch alone would have been off by more than the floor and LEAST_LAYOUT_RATIO.

    False without a floor.
    """
    bound = floor_bound(floor)
    low, high = estimate.spread
    off = max(estimate.ratio / low, high / estimate.ratio)
    return bound is not None and off > max(math.exp(bound), LEAST_LAYOUT_RATIO)


def level(samples: Iterable[Sample], subject: str) -> Level | None:
    """A variant's time over all launches; None if it was not measured."""
    return _level([s for s in samples if s.role == "variant" and s.subject == subject])


def limits(samples: Iterable[Sample]) -> tuple[Limit, ...]:
    """Every fill that ran, sorted by number of CPUs, and then by time."""
    kinds: dict[tuple[int, str], list[Sample]] = {}
    for sample in samples:
        if sample.role == "limit":
            kinds.setdefault((sample.threads, sample.subject), []).append(sample)
    found = [
        Limit(how, its_level)
        for (_, how), its_samples in kinds.items()
        if (its_level := _level(its_samples)) is not None
    ]
    return tuple(sorted(found, key=lambda limit: (limit.level.threads, limit.level.time_ns)))


def limit_for(found: Sequence[Limit], threads: int) -> Limit | None:
    """The fastest fill that needs no more CPUs than the next available number from `threads` on.

    A fill does not get faster with more CPUs than memory bandwidth needs, so fills with fewer CPUs
    count too. None if no fill qualifies.
    """
    enough = min((f.level.threads for f in found if f.level.threads >= threads), default=0)
    within = [limit for limit in found if limit.level.threads <= enough]
    return min(within, key=lambda limit: limit.level.time_ns, default=None)


def of_limit(samples: Iterable[Sample], subject: str, limit: Limit) -> Estimate | None:
    """The limit's time over the variant's: 1 is at the limit, 0.5 takes twice as long.

    It uses the medians of each launch that has both, without pairing rounds: the fastest fill shows
    what the hardware can do, whatever disturbed the variant in the same round.
    """
    samples = list(samples)
    fills = [s for s in samples if s.role == "limit" and s.threads == limit.level.threads]
    best = _medians(times_of(fills, limit.how, role="limit"))
    own = _medians(times_of(samples, subject))
    return over_launches([math.log(best[n] / own[n]) for n in sorted(best.keys() & own.keys())])


def live_ratio(samples: Iterable[Sample], subject: str) -> Estimate | None:
    """The running kernel's time over a hosted variant's, paired by round; None without both."""
    samples = list(samples)
    return paired(times_of(samples, RUNNING, role="live"), times_of(samples, subject))


def slope(
    small: Sequence[Sample], large: Sequence[Sample], subject: str, *, role: Role = "variant"
) -> dict[int, float]:
    """By launch, the time that each further byte takes, in ns: what a call costs once is not in it.

    small, large: samples of two rows that differ in their number of bytes alone.
    """
    less, more = (_medians(times_of(samples, subject, role=role)) for samples in (small, large))
    nr_bytes = large[0].nr_bytes - small[0].nr_bytes
    return {one: (more[one] - less[one]) / nr_bytes for one in sorted(less.keys() & more.keys())}


def slope_ratio(live: Mapping[int, float], hosted: Mapping[int, float]) -> Estimate | None:
    """The running kernel's slope over a hosted one's; None if noise made any of them negative."""
    pairs = [(live[one], hosted[one]) for one in sorted(live.keys() & hosted.keys())]
    if any(min(pair) <= 0 for pair in pairs):
        return None
    return over_launches([math.log(above / below) for above, below in pairs])


def _by_launch(
    values: Mapping[tuple[int, int], float], base: Mapping[tuple[int, int], float]
) -> dict[int, list[float]]:
    """The log ratios of each launch, over the rounds that contain both."""
    logs: dict[int, list[float]] = {}
    for place, value in values.items():
        if place in base:
            logs.setdefault(place[0], []).append(math.log(value / base[place]))
    return logs


def times_of(
    samples: Iterable[Sample], subject: str, *, role: Role = "variant"
) -> dict[tuple[int, int], int]:
    """Times by launch and round; raises ReamError if a subject occurs twice in one round."""
    times: dict[tuple[int, int], int] = {}
    for sample in samples:
        if sample.role != role or sample.subject != subject:
            continue
        if (sample.launch, sample.round) in times:
            raise ReamError(
                f"{sample.row}: {subject} was measured twice in round {sample.round} "
                f"of launch {sample.launch}"
            )
        times[sample.launch, sample.round] = sample.time_ns
    return times


def _medians(times: Mapping[tuple[int, int], int]) -> dict[int, float]:
    """For each launch, the median over its rounds."""
    rounds: dict[int, list[int]] = {}
    for (launch, _), time_ns in times.items():
        rounds.setdefault(launch, []).append(time_ns)
    return {launch: statistics.median(its) for launch, its in rounds.items()}


def _typical(times: Mapping[tuple[int, int], int]) -> float:
    """The geometric mean over launches of the medians over rounds."""
    return math.exp(statistics.fmean(math.log(median) for median in _medians(times).values()))


def _level(samples: Sequence[Sample]) -> Level | None:
    if not samples:
        return None
    times = {(s.launch, s.round): s.time_ns for s in samples}
    return Level(
        time_ns=_typical(times),
        nr_bytes=statistics.median(sample.nr_bytes for sample in samples),
        threads=statistics.median_high(sample.threads for sample in samples),
        nr_samples=len(samples),
        nr_launches=len({s.launch for s in samples}),
    )


def over_launches(logs: Sequence[float]) -> Estimate | None:
    """The mean of the launches' log ratios, with a t interval from LEAST_LAUNCHES launches on."""
    if not logs:
        return None
    mean = statistics.fmean(logs)
    per_launch = tuple(math.exp(log) for log in logs)
    if len(logs) < LEAST_LAUNCHES:
        return Estimate(math.exp(mean), None, None, per_launch)
    half = t_quantile(len(logs) - 1) * statistics.stdev(logs) / math.sqrt(len(logs))
    return Estimate(math.exp(mean), math.exp(mean - half), math.exp(mean + half), per_launch)


@cache
def t_quantile(degrees: float) -> float:
    """The bound of Student's t distribution within which CONFIDENCE of it lies."""
    return float(special().stdtrit(degrees, (1 + CONFIDENCE) / 2))


def special() -> Any:
    """The module scipy.special, imported on first use."""
    # Here, not above: importing it takes longer than all else `ream --help` does.
    return importlib.import_module("scipy.special")
