# SPDX-License-Identifier: GPL-2.0-only
"""Predicts the ratios of one type of CPU from runs on the others, and says how often that holds.

A row's ratio differs between types of CPU by a spread that all rows of an experiment share: few
types have run each row, and their own spread would be hardly known. The prediction is the mean of
the other types' log ratios, with the interval in which a further type's lies with 95 % if types
are alike. Source: Hahn & Meeker, "Statistical Intervals", 1991, on prediction intervals.
"""

import math
import statistics
import textwrap
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from ream.experiment import shown
from ream.history.pooled import ByCpu, Place
from ream.measure.statistics import Estimate, t_quantile
from ream.report.numbers import interval, ratio_of, rounded
from ream.width import width

LEAST_TYPES = 2
"""The smallest number of types that show how much types differ."""


@dataclass(frozen=True)
class Prediction:
    """The ratio of a place on a type of CPU, as the other types' runs predict it.

    found: what was measured there, pooled over runs; None if nothing was.
    """

    place: Place
    cpu: str
    nr_types: int
    ratio: float
    low: float
    high: float
    found: Estimate | None

    @property
    def holds(self) -> bool | None:
        """Whether the ratio that was measured lies in the interval; None if none was."""
        return None if self.found is None else self.low <= self.found.ratio <= self.high


def predictions(found: Mapping[Place, ByCpu], cpus: Iterable[str] = ()) -> Iterator[Prediction]:
    """Each place on each type of CPU of the runs, and on `cpus`, from all other types.

    A place that fewer than LEAST_TYPES others have run is not predicted.
    """
    known = {cpu for by_cpu in found.values() for cpu in by_cpu}
    for cpu in sorted({*known, *cpus}):
        spreads = _spreads(found, cpu)
        for place, by_cpu in sorted(found.items()):
            logs = _logs(by_cpu, cpu)
            if len(logs) < LEAST_TYPES or place[0] not in spreads:
                continue
            spread, degrees = spreads[place[0]]
            mean = statistics.fmean(logs)
            half = t_quantile(degrees) * spread * math.sqrt(1 + 1 / len(logs))
            yield Prediction(
                place=place,
                cpu=cpu,
                nr_types=len(logs),
                ratio=rounded(math.exp(mean)),
                low=rounded(math.exp(mean - half)),
                high=rounded(math.exp(mean + half)),
                found=by_cpu[cpu].estimate if cpu in by_cpu else None,
            )


def _logs(by_cpu: ByCpu, cpu: str) -> list[float]:
    """The log ratios of all other types, of the newest kernels alone."""
    its = (one for name, one in sorted(by_cpu.items()) if name != cpu and not one.earlier)
    return [math.log(one.estimate.ratio) for one in its]


def _spreads(found: Mapping[Place, ByCpu], cpu: str) -> dict[str, tuple[float, int]]:
    """By experiment, the standard deviation between types other than `cpu`, and its degrees."""
    sums: dict[str, float] = defaultdict(float)
    degrees: dict[str, int] = defaultdict(int)
    for (experiment, _, _), by_cpu in found.items():
        if len(logs := _logs(by_cpu, cpu)) >= LEAST_TYPES:
            sums[experiment] += statistics.variance(logs) * (len(logs) - 1)
            degrees[experiment] += len(logs) - 1
    return {name: (math.sqrt(sums[name] / nr), nr) for name, nr in degrees.items()}


def lines(found: Iterable[Prediction]) -> Iterator[str]:
    """Predictions in lines, those of a type together, with how many held before them."""
    by_cpu: dict[str, list[Prediction]] = defaultdict(list)
    for one in found:
        by_cpu[one.cpu].append(one)
    for cpu, its in by_cpu.items():
        held = [one.holds for one in its if one.holds is not None]
        said = f"{cpu}: {sum(held)} of {len(held)} ratios lie where other types predict them"
        yield from textwrap.wrap(said, width(), subsequent_indent="    ")
        for one in its:
            said = f"  {' '.join(map(shown, one.place))}: {_words(one)}"
            yield from textwrap.wrap(
                said, width(), subsequent_indent="      ", break_on_hyphens=False
            )


def _words(one: Prediction) -> str:
    predicted = f"{one.ratio:.3f} [{one.low:.3f} .. {one.high:.3f}] of {one.nr_types} types"
    if one.found is None:
        return f"{predicted}; not measured"
    measured = ratio_of(one.found)
    said = "" if measured is None else interval(measured)
    return f"{predicted}; measured {said}{'' if one.holds else ', OUTSIDE'}"


def to_object(found: Iterable[Prediction]) -> dict[str, object]:
    """The predictions for --json."""
    return {
        "schema": 1,
        "predictions": [
            {
                **dict(zip(("experiment", "row", "variant"), one.place, strict=True)),
                "cpu": one.cpu,
                "types": one.nr_types,
                "ratio": one.ratio,
                "low": one.low,
                "high": one.high,
                "found": None if one.found is None else rounded(one.found.ratio),
                "holds": one.holds,
            }
            for one in found
        ],
    }
