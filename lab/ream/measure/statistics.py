# SPDX-License-Identifier: GPL-2.0-only
"""The one estimator of design.md section 6: launches are the replicates, rounds are not.

Per launch, the median over rounds; over launches, the mean of the logarithms with a t interval.
Ratios are paired: a variant and `before` of the same round met the same weather.
Source: Kalibera & Jones, "Rigorous benchmarking in reasonable time", ISMM 2013.
"""

import importlib
import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Literal, TypeVar

from ream.errors import ReamError
from ream.experiment import AGAIN, BEFORE
from ream.measure.sample import Sample

CONFIDENCE = 0.95
LEAST_LAUNCHES = 2
"""Fewer have no spread, and so no interval."""
FALSE_RATE = 0.05
"""Share of the effects said in a run that chance may have made: Benjamini-Hochberg's q."""
LEAST_LAYOUT_RATIO = 1.02
"""That one launch is off by less than this is not worth a word."""
SAME = 1e-4
"""Counts that differ by no more than this are the same: a timer's interrupt more or less."""
LIMIT_ERROR = 1.02
"""A variant this much better than its limit shows an error in the limit, not a triumph."""

Role = Literal["variant", "limit"]
Test = TypeVar("Test")
"""What names one test of a run: a row and a variant."""


@dataclass(frozen=True)
class Estimate:
    """A ratio, its interval over launches, and what each launch said."""

    ratio: float
    low: float | None
    high: float | None
    per_launch: tuple[float, ...]
    exact: bool = False
    """Whether it is of counts that repeat: then the interval is from the least to the greatest
    ratio of any round, and there is nothing to test."""

    @property
    def spread(self) -> tuple[float, float]:
        """The smallest and the greatest ratio any one launch gave."""
        return min(self.per_launch), max(self.per_launch)


@dataclass(frozen=True)
class LaunchSpread:
    """What launches differ by, each with its own layout of code and data."""

    p_value: float
    """How often launches would differ so much if they differed by their rounds alone."""
    within: float
    """How far a round typically is from the middle of its launch, as a ratio of at least 1."""


@dataclass(frozen=True)
class Level:
    """How long a subject takes: the geometric mean over launches of its median round."""

    time_ns: float
    nr_bytes: float
    threads: int
    nr_samples: int
    nr_launches: int


@dataclass(frozen=True)
class Limit:
    """The fastest that one kind of fill wrote the same bytes with this many CPUs."""

    how: str
    level: Level


def paired_ratio(
    samples: Iterable[Sample], subject: str, *, to: str = BEFORE, counted: bool = False
) -> Estimate | None:
    """Ratio subject/to over the rounds both were measured in; None if there is no such round.

    samples: of one row. Raises ReamError if a subject was measured twice in one round.
    The median is taken of the logarithms, so that with an even number of rounds the ratio
    of a to b is still exactly one over the ratio of b to a.
    counted: the values are counts. Where they repeat, the interval is from the least to the
    greatest ratio of any round; where they do not, they are estimated as times are.
    """
    samples = list(samples)
    exact = counted and repeats(samples)
    return paired(times_of(samples, subject), times_of(samples, to), exact=exact)


def repeats(samples: Iterable[Sample]) -> bool:
    """Whether every launch counted the same, and both copies of one kernel as well.

    samples: of one row. This is a matter of what was counted, not of how: a kernel that waits, or
    whose work depends on which page is free, does not repeat although instructions are counted.
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
    """Ratio of any two quantities above 0, by launch and round, as `paired_ratio` makes it."""
    logs = _by_launch(values, base)
    estimate = over_launches([statistics.median(rounds) for _, rounds in sorted(logs.items())])
    if estimate is None or not exact:
        return estimate
    every = [log for rounds in logs.values() for log in rounds]
    return replace(estimate, low=math.exp(min(every)), high=math.exp(max(every)), exact=True)


def cpu_times(samples: Iterable[Sample], subject: str) -> Mapping[tuple[int, int], int]:
    """CPU time of the whole machine by launch and round; empty unless every sample has some.

    Were those of 0 left out, a ratio would be of the others alone.
    """
    own = [one for one in samples if one.role == "variant" and one.subject == subject]
    times = {(one.launch, one.round): one.cpu_ns for one in own if one.cpu_ns}
    return times if len(times) == len(own) else {}


def cpu_ratio(samples: Iterable[Sample], subject: str, *, to: str = BEFORE) -> Estimate | None:
    """Ratio subject/to of the CPU time, paired by round as times are; None if there is none."""
    samples = list(samples)
    return paired(cpu_times(samples, subject), cpu_times(samples, to))


def cpu_level(samples: Iterable[Sample], subject: str) -> float | None:
    """A variant's CPU time over all launches, as `level` has its time; None if there is none."""
    times = cpu_times(samples, subject)
    return _typical(times) if times else None


def noise_floor(
    samples: Iterable[Sample], of: str = BEFORE, *, counted: bool = False
) -> Estimate | None:
    """A variant against its own second copy: what this run sees where there is nothing to see."""
    return paired_ratio(samples, of + AGAIN, to=of, counted=counted)


def floor_bound(floor: Estimate | None) -> float | None:
    """The largest |log ratio| the floor's interval allows; None if there is no interval."""
    if floor is None or floor.low is None or floor.high is None:
        return None
    return max(abs(math.log(floor.low)), abs(math.log(floor.high)))


def counts(estimate: Estimate, floor: Estimate | None) -> bool | None:
    """Whether an effect counts: its interval excludes 1 and it is larger than the floor.

    None where it cannot be said: fewer than two launches, or no floor.
    """
    bound = floor_bound(floor)
    if bound is None or estimate.low is None or estimate.high is None:
        return None
    excludes_one = not estimate.low <= 1 <= estimate.high
    return excludes_one and abs(math.log(estimate.ratio)) > bound


def p_value(estimate: Estimate) -> float | None:
    """How often chance alone would give launches that are as far from a ratio of 1.

    A two-sided t test of the launches' log ratios, which excludes 1 at 5 % exactly where the 95 %
    interval does; None for fewer than two launches.
    """
    logs = [math.log(ratio) for ratio in estimate.per_launch]
    if len(logs) < LEAST_LAUNCHES:
        return None
    mean, error = statistics.fmean(logs), statistics.stdev(logs) / math.sqrt(len(logs))
    if error == 0:
        return 1.0 if mean == 0 else 0.0
    return 2 * float(special().stdtr(len(logs) - 1, -abs(mean / error)))


def outstanding(p_values: Sequence[float]) -> tuple[bool, ...]:
    """Which of many tests stand, such that FALSE_RATE of those that do are false on average.

    Where nothing is real, nothing is said in 1 - FALSE_RATE of all runs. Tests that share a
    `before` err together; tests/unit/test_coverage.py simulates that it does no harm.
    Source: Benjamini & Hochberg, "Controlling the false discovery rate: a practical and powerful
    approach to multiple testing", JRSS B 57 (1995).
    """
    nr_tests = len(p_values)
    enough = (p for rank, p in enumerate(sorted(p_values), 1) if p <= FALSE_RATE * rank / nr_tests)
    most = max(enough, default=-1.0)
    return tuple(p <= most for p in p_values)


def effects(
    found: Mapping[Test, tuple[Estimate, Estimate | None]],
) -> dict[Test, bool | None]:
    """Which effects of a run count, all its tests together: each an estimate and its floor.

    One counts if it stands among all of them and is larger than its floor. None where it cannot be
    said: fewer than two launches, or no floor; such are no tests.
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

    Of the paired log ratios subject/to, as `paired_ratio` has them; None unless two launches and
    one launch of two rounds were measured.
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
    """Whether any one launch alone would have been off by more than the floor, and a few per cent.

    False where there is no floor.
    """
    bound = floor_bound(floor)
    low, high = estimate.spread
    off = max(estimate.ratio / low, high / estimate.ratio)
    return bound is not None and off > max(math.exp(bound), LEAST_LAYOUT_RATIO)


def level(samples: Iterable[Sample], subject: str) -> Level | None:
    """A variant's time over all launches; None if it was not measured."""
    return _level([s for s in samples if s.role == "variant" and s.subject == subject])


def limits(samples: Iterable[Sample]) -> tuple[Limit, ...]:
    """Every fill that ran, the fastest of each number of CPUs first, by number of CPUs."""
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
    """The fastest fill with as many CPUs, the next greater number of them, or fewer; else None.

    With more CPUs than it takes to use up memory's bandwidth a fill gets no faster: then the best
    that the hardware allows to so many CPUs is what fewer of them reach.
    """
    enough = min((f.level.threads for f in found if f.level.threads >= threads), default=0)
    within = [limit for limit in found if limit.level.threads <= enough]
    return min(within, key=lambda limit: limit.level.time_ns, default=None)


def of_limit(samples: Iterable[Sample], subject: str, limit: Limit) -> Estimate | None:
    """The limit's time over the variant's: 1 is at the limit, 0.5 takes twice as long.

    From the medians of each launch that has both, not paired by round: the fastest fill of a
    round says what the hardware can do, whatever disturbed the variant beside it.
    """
    samples = list(samples)
    fills = [s for s in samples if s.role == "limit" and s.threads == limit.level.threads]
    best = _medians(times_of(fills, limit.how, role="limit"))
    own = _medians(times_of(samples, subject))
    return over_launches([math.log(best[n] / own[n]) for n in sorted(best.keys() & own.keys())])


def _by_launch(
    values: Mapping[tuple[int, int], float], base: Mapping[tuple[int, int], float]
) -> dict[int, list[float]]:
    """The log ratios of each launch, over the rounds that both have."""
    logs: dict[int, list[float]] = {}
    for place, value in values.items():
        if place in base:
            logs.setdefault(place[0], []).append(math.log(value / base[place]))
    return logs


def times_of(
    samples: Iterable[Sample], subject: str, *, role: Role = "variant"
) -> dict[tuple[int, int], int]:
    """Samples by launch and round; raises ReamError if a subject occurs twice in one."""
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
    """Per launch, the median over its rounds."""
    rounds: dict[int, list[int]] = {}
    for (launch, _), time_ns in times.items():
        rounds.setdefault(launch, []).append(time_ns)
    return {launch: statistics.median(its) for launch, its in rounds.items()}


def _typical(times: Mapping[tuple[int, int], int]) -> float:
    """Over launches, the geometric mean of the medians over rounds."""
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
    """Mean of the launches' log ratios, with a t interval where there are enough."""
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
    """Student's t that CONFIDENCE of the distribution lies within."""
    return float(special().stdtrit(degrees, (1 + CONFIDENCE) / 2))


def special() -> Any:
    """scipy.special, loaded when it is first needed."""
    # Here, not above: importing it takes longer than all else `ream --help` does.
    return importlib.import_module("scipy.special")
