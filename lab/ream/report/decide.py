# SPDX-License-Identifier: GPL-2.0-only
"""Computes ratios from the samples of a run, and decides together which of them are effects."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Self

from ream.experiment import AGAIN, BEFORE, CONTROL, PUBLISHED, Row, is_copy
from ream.experiment.columns import NO_COLUMNS, Columns
from ream.measure import power, statistics
from ream.measure.clock import Clock
from ream.measure.sample import Sample
from ream.measure.statistics import Estimate, Level, Limit
from ream.measure.verdict import CLAIM
from ream.measure.whole import LeftOut, whole_ratio
from ream.published import NS, Table
from ream.report.columns import over
from ream.report.contract import Layout, Unit
from ream.report.numbers import rounded

EQUAL_WITHIN = 1 + CLAIM
"""Ratios shown to be within this factor of 1 are called equal. A published effect that is larger
counts as a claim."""


@dataclass(frozen=True)
class MeasuredRow:
    """One row with its samples, before its ratios are tested."""

    row: Row
    asked: Row | None
    """The row as the experiment declares it; None if the experiment has no row of that name."""
    samples: tuple[Sample, ...]
    skipped: str | None
    unit: Unit
    floors: Mapping[str, Estimate | None] = field(default_factory=dict)
    """Noise floors by variant that others are compared with: its second copy over itself."""
    limits: tuple[Limit, ...] = ()
    limit_is_bound: bool = True
    """Whether the limits are what the hardware allows; plain loops are not."""
    columns: Columns = NO_COLUMNS
    left_out: LeftOut | str | None = None
    """For a row that times a part of a call, the time of the rest, or why it is unknown."""
    value: str | None = None
    """The quantity of `ratio` and `floor`, as a published table names it; None is time."""
    better: str = "lower"
    """Which direction of `value` is better. For "higher", ratios are inverted as in tables."""
    given: Mapping[str, str] = field(default_factory=dict)
    """For each series given by the user, the variant that it is compared with."""
    own: frozenset[str] = frozenset()
    """Variants of the experiment and series given by the user, but not their single patches."""
    base_adds: str | None = None
    """What the variant `base` contains in addition to `published`."""
    clock: Clock | None = None
    """The clock of the samples' times; None if it is wall time, as no other can be used."""
    cpu_step_ns: int | None = None
    """The step of the clock of CPU time, in ns; None if it is unknown."""
    between_runs: float | None = None
    """The standard deviation of log ratios between runs on this type of CPU; None: unknown."""
    wall_samples: tuple[Sample, ...] = ()
    """The same samples by wall time, if `samples` have their CPU time instead."""

    @property
    def changed(self) -> bool:
        """Whether the row ran with other parameters than asked for, such as a smaller device."""
        return self.asked is not None and self.asked.params() != self.row.params()

    @property
    def counted(self) -> bool:
        """Whether the values are counts of instructions rather than times."""
        return self.unit == "instructions"

    @property
    def exact(self) -> bool:
        """Whether the values are counts that repeat exactly."""
        return self.counted and statistics.repeats(self.alike)

    @property
    def alike(self) -> tuple[Sample, ...]:
        """Samples scaled to the full amount of requested work, from which ratios are computed."""
        return self.columns.alike(self.samples)

    @property
    def by_wall(self) -> tuple[Sample, ...]:
        """The samples by wall time: calls of the running kernel have no other."""
        return self.wall_samples or self.samples

    @property
    def lacking(self) -> str | None:
        """A sentence if `before` or `published` did less work than was asked for; else None."""
        return self.columns.lacking(self.samples, (BEFORE, PUBLISHED))

    @property
    def floor(self) -> Estimate | None:
        """The noise floor of `before`: the ratio of its second copy to itself."""
        return self.floors.get(BEFORE)

    def to(self, subject: str) -> str:
        """The variant that this one is compared with."""
        return subject.removesuffix(AGAIN) if is_copy(subject) else self.given.get(subject, BEFORE)

    @property
    def widest_floor(self) -> Estimate | None:
        """The noise floor in which the largest effect could hide; None if any floor is unknown."""
        known = [(statistics.floor_bound(floor), floor) for floor in self.floors.values()]
        if any(bound is None for bound, _ in known):
            return None
        return max(known, key=lambda one: one[0] or 0.0)[1]

    def floor_of(self, subject: str) -> Estimate | None:
        """The noise floor that this variant's ratio must exceed to be an effect."""
        return self.floors.get(self.to(subject))

    def ratio(self, subject: str, *, to: str | None = None) -> Estimate | None:
        """The ratio of a variant to `to`, by default to the variant that it is compared with.

        None if there are no paired samples of the two.
        """
        to = self.to(subject) if to is None else to
        if self.value is None:
            return statistics.paired_ratio(self.alike, subject, to=to, counted=self.counted)
        column = self.columns.published(self.value)
        if column is None:
            return None
        own, base = (to, subject) if self.better == "higher" else (subject, to)
        return over(column, self.samples, own, to=base, counted=self.counted, exact=self.exact)

    def of_value(self, value: str | None, better: str) -> Self:
        """The same row with ratios and floors of another quantity than time."""
        if value is None or Table.unit_of_name(value) in NS:
            return self
        of = replace(self, value=value, better=better)
        return replace(of, floors={name: of.ratio(name + AGAIN) for name in self.floors})

    def whole_ratio(self, subject: str) -> Estimate | None:
        """The ratio to `before` that the complete call would have; None if the rest is unknown."""
        if not isinstance(self.left_out, LeftOut):
            return None
        return whole_ratio(self.columns.alike(self.by_wall), subject, self.left_out)

    @property
    def published(self) -> Level | None:
        """The level of `published`; None if it was not measured."""
        return statistics.level(self.samples, PUBLISHED)

    @property
    def threads(self) -> int | None:
        """CPUs of a node that `published` ran on: those asked for, or fewer if fewer took part."""
        asked, took_part = self.row.threads, self.published and self.published.threads
        return min((number for number in (asked, took_part) if number), default=None)

    @property
    def nodes(self) -> int:
        """The number of nodes that ran at once; a published time is that of one node."""
        nodes = self.row.params().get("nodes")
        return nodes if isinstance(nodes, int) else 1


@dataclass(frozen=True)
class Decided:
    """The ratio of a variant to its reference, and the outcome of the test over all rows."""

    estimate: Estimate
    seen: bool | None
    """Whether the ratio is an effect; None if that cannot be decided."""
    p_value: float | None = None
    layout: Layout | None = None


_Place = tuple[str, str]
"""The names of a row and a variant."""

Decisions = Mapping[_Place, Decided]
_Found = Mapping[_Place, Estimate]
_Tests = Mapping[_Place, tuple[Estimate, Estimate | None]]
"""Each ratio with the noise floor that it must exceed."""


def decide(rows: Sequence[MeasuredRow], names: Sequence[str]) -> Decisions:
    """Decide which ratios of a run are effects, and which variants depend on memory layout.

    Times, and counts that do not repeat, are corrected for multiple comparisons over all rows and
    variants. Decided alone are counts that repeat, the floor's own ratio, and the positive control,
    whose known effect must not make others more likely.
    """
    by_name = {one.row.name: one for one in rows}
    found = _ratios(by_name, [name for name in names if name != BEFORE])
    tests = _tests(found, by_name)
    seen = _seen(found, tests, by_name)
    layouts = _layouts(tests, by_name)
    return {
        key: Decided(estimate, seen[key], _p_value(estimate), layouts[key])
        if key in tests
        else Decided(estimate, seen[key])
        for key, estimate in found.items()
    }


def decide_over_published(rows: Sequence[MeasuredRow], names: Sequence[str]) -> Decisions:
    """Decide which ratios to `published` are effects, for the experiment's other variants.

    They are corrected among themselves as in `decide`: among sixty rows without any difference, one
    run in five would otherwise show a ratio that excludes 1 and exceeds the floor.
    """
    by_name = {one.row.name: one for one in rows}
    given = {name for one in rows for name in one.given}
    known = {BEFORE, CONTROL, PUBLISHED, *given}
    others = [name for name in names if name not in known and not is_copy(name)]
    found = _ratios(by_name, others, to=PUBLISHED)
    seen = _seen(found, _tests(found, by_name), by_name)
    return {key: Decided(estimate, seen[key]) for key, estimate in found.items()}


def _ratios(
    by_name: Mapping[str, MeasuredRow], names: Sequence[str], *, to: str | None = None
) -> _Found:
    return {
        (row, name): estimate
        for row, one in by_name.items()
        for name in names
        if (estimate := one.ratio(name, to=to)) is not None
    }


def _tests(found: _Found, by_name: Mapping[str, MeasuredRow]) -> _Tests:
    """The ratios that are tested together: those that vary and whose variants may differ."""
    return {
        (row, name): (estimate, by_name[row].floor_of(name))
        for (row, name), estimate in found.items()
        if name not in (BEFORE, CONTROL) and not is_copy(name) and not estimate.exact
    }


def _seen(
    found: _Found, tests: _Tests, by_name: Mapping[str, MeasuredRow]
) -> Mapping[_Place, bool | None]:
    """Whether each ratio is an effect, tested together with the others or alone."""
    together = statistics.effects(tests)
    return {
        (row, name): together[row, name]
        if (row, name) in tests
        else statistics.counts(estimate, by_name[row].floor_of(name))
        for (row, name), estimate in found.items()
    }


def _layouts(
    tests: _Tests,
    by_name: Mapping[str, MeasuredRow],
) -> dict[_Place, Layout | None]:
    """Whether launches differ by more than chance, and enough to matter, for each ratio."""
    found = {
        (row, name): one
        for row, name in tests
        if (one := statistics.layout(by_name[row].alike, name, to=by_name[row].to(name)))
        is not None
    }
    stand = statistics.outstanding([one.p_value for one in found.values()])
    said: dict[tuple[str, str], Layout | None] = dict.fromkeys(tests)
    for (test, one), stands in zip(found.items(), stand, strict=True):
        said[test] = Layout(
            p_value=rounded(one.p_value),
            within=rounded(one.within),
            depends=stands and statistics.matters(*tests[test]),
        )
    return said


def smallest_effect(one: MeasuredRow, decided: Decisions) -> float | None:
    """The smallest ratio above 1 that this row alone would detect with 90 % power."""
    its = [said.estimate for (row, _), said in decided.items() if row == one.row.name]
    if not one.exact:
        return power.smallest_effect(its, one.widest_floor, one.between_runs or 0.0)
    before = statistics.level(one.samples, BEFORE)
    return None if before is None else power.smallest_count(its, one.widest_floor, before.time_ns)


def equal_within(one: MeasuredRow, name: str, estimate: Estimate) -> float | None:
    """The smallest effect, as a ratio above 1, that the interval and the floor both exclude."""
    bound = statistics.floor_bound(one.floor_of(name))
    if bound is None or estimate.low is None or estimate.high is None:
        return None
    return math.exp(max(bound, abs(math.log(estimate.low)), abs(math.log(estimate.high))))


def launches_needed(within: float, estimate: Estimate) -> int:
    """The approximate number of launches that would bound an effect to EQUAL_WITHIN.

    The error of a mean shrinks with the root of their number. What does not vary by launch does not
    shrink, so this is a lower bound.
    """
    narrower = math.log(within) / math.log(EQUAL_WITHIN)
    return math.ceil(len(estimate.per_launch) * narrower**2)


def _p_value(estimate: Estimate) -> float | None:
    p_value = statistics.p_value(estimate)
    return None if p_value is None else rounded(p_value)
