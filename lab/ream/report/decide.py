# SPDX-License-Identifier: GPL-2.0-only
"""What the samples of a run say before anybody reads them: ratios, and which are effects."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Self

from ream.experiment import AGAIN, BEFORE, CONTROL, PUBLISHED, Row, is_copy
from ream.experiment.columns import NO_COLUMNS, Columns
from ream.measure import power, statistics
from ream.measure.sample import Sample
from ream.measure.statistics import Estimate, Level, Limit
from ream.measure.verdict import CLAIM
from ream.measure.whole import LeftOut, whole_ratio
from ream.published import NS, Table
from ream.report.columns import over
from ream.report.contract import Layout, Unit
from ream.report.numbers import rounded

EQUAL_WITHIN = 1 + CLAIM
"""What is shown to be within this of no effect is called equal; a published effect that is larger
is a claim."""


@dataclass(frozen=True)
class MeasuredRow:
    """One row, and what its samples say before anybody judges it."""

    row: Row
    asked: Row | None
    """The row as the experiment has it, if it has one of that name."""
    samples: tuple[Sample, ...]
    skipped: str | None
    unit: Unit
    floors: Mapping[str, Estimate | None]
    """By variant that others are compared with: itself against its second copy."""
    limits: tuple[Limit, ...]
    columns: Columns = NO_COLUMNS
    left_out: LeftOut | str | None = None
    """If the row is a part of what was published: what is left out, or why it is not known."""
    value: str | None = None
    """The quantity that `ratio` and `floor` are of, as a published table calls it; None: time."""
    better: str = "lower"
    """Which of two such values is the better one; where it is the higher, ratios are turned over,
    as those of tables are."""
    given: Mapping[str, str] = field(default_factory=dict)
    """Of each series that somebody gave, the variant that it is compared with."""
    own: frozenset[str] = frozenset()
    """Variants of the experiment, and series that somebody gave: not one of their patches."""
    base_adds: str | None = None
    """What the variant `base` has that `published` has not."""

    @property
    def changed(self) -> bool:
        """Whether it ran otherwise than asked, as with a smaller device."""
        return self.asked is not None and self.asked.params() != self.row.params()

    @property
    def counted(self) -> bool:
        """Whether the values are counts of instructions rather than times."""
        return self.unit == "instructions"

    @property
    def exact(self) -> bool:
        """Whether the values are counts that repeat."""
        return self.counted and statistics.repeats(self.alike)

    @property
    def alike(self) -> tuple[Sample, ...]:
        """Samples to make ratios of: as if each had done all that was asked for."""
        return self.columns.alike(self.samples)

    @property
    def lacking(self) -> str | None:
        """Whether `before` or `published` did less than was asked for, in words."""
        return self.columns.lacking(self.samples, (BEFORE, PUBLISHED))

    @property
    def floor(self) -> Estimate | None:
        """What is seen of `before` where there is nothing to see."""
        return self.floors.get(BEFORE)

    def to(self, subject: str) -> str:
        """The variant that this one is compared with."""
        return subject.removesuffix(AGAIN) if is_copy(subject) else self.given.get(subject, BEFORE)

    @property
    def widest_floor(self) -> Estimate | None:
        """The one in which the largest effect could hide; None if one is not known."""
        known = [(statistics.floor_bound(floor), floor) for floor in self.floors.values()]
        if any(bound is None for bound, _ in known):
            return None
        return max(known, key=lambda one: one[0] or 0.0)[1]

    def floor_of(self, subject: str) -> Estimate | None:
        """The floor that this variant's ratio has to be larger than."""
        return self.floors.get(self.to(subject))

    def ratio(self, subject: str, *, to: str | None = None) -> Estimate | None:
        """To the variant that it is compared with, unless another is named."""
        to = self.to(subject) if to is None else to
        if self.value is None:
            return statistics.paired_ratio(self.alike, subject, to=to, counted=self.counted)
        column = self.columns.published(self.value)
        if column is None:
            return None
        own, base = (to, subject) if self.better == "higher" else (subject, to)
        return over(column, self.samples, own, to=base, counted=self.counted, exact=self.exact)

    def of_value(self, value: str | None, better: str) -> Self:
        """The same row, its ratios and its floor being those of a quantity other than time."""
        if value is None or Table.unit_of_name(value) in NS:
            return self
        of = replace(self, value=value, better=better)
        return replace(of, floors={name: of.ratio(name + AGAIN) for name in self.floors})

    def whole_ratio(self, subject: str) -> Estimate | None:
        """The ratio to `before` that the whole would have; None where that is not known."""
        if not isinstance(self.left_out, LeftOut):
            return None
        return whole_ratio(self.alike, subject, self.left_out)

    @property
    def published(self) -> Level | None:
        return statistics.level(self.samples, PUBLISHED)

    @property
    def threads(self) -> int | None:
        """CPUs of a node that `published` ran on: those asked for, unless fewer took part."""
        asked, took_part = self.row.threads, self.published and self.published.threads
        return min((number for number in (asked, took_part) if number), default=None)

    @property
    def nodes(self) -> int:
        """How many ran at once; a published time is one node's."""
        nodes = self.row.params().get("nodes")
        return nodes if isinstance(nodes, int) else 1


@dataclass(frozen=True)
class Decided:
    """A variant's ratio to what it is compared with, and what all of the run's say about it."""

    estimate: Estimate
    seen: bool | None
    """Whether it is an effect; None where that cannot be said."""
    p_value: float | None = None
    layout: Layout | None = None


_Place = tuple[str, str]
"""A row and a variant."""

Decisions = Mapping[_Place, Decided]
_Found = Mapping[_Place, Estimate]
_Tests = Mapping[_Place, tuple[Estimate, Estimate | None]]
"""Each with the floor that it has to be larger than."""


def decide(rows: Sequence[MeasuredRow], names: Sequence[str]) -> Decisions:
    """Which effects of a run are to be believed, and which variants depend on layout.

    Of many ratios some are far from 1 by chance: so all rows and variants are decided together,
    times and counts that do not repeat. A count that does is decided alone; so are the floor's own
    ratio and that of a positive control, which is known to be real and must not make others
    likelier.
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
    """What the ratios to `published` say, of the experiment's other variants but `before`.

    Decided among themselves as `decide` has it: of sixty rows where nothing differs, some ratio
    excludes 1 and is larger than the floor in one run of five.
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
    """What is decided together: what varies, of variants that may differ from what is beside."""
    return {
        (row, name): (estimate, by_name[row].floor_of(name))
        for (row, name), estimate in found.items()
        if name not in (BEFORE, CONTROL) and not is_copy(name) and not estimate.exact
    }


def _seen(
    found: _Found, tests: _Tests, by_name: Mapping[str, MeasuredRow]
) -> Mapping[_Place, bool | None]:
    """Whether each is an effect: among its like where it is tested, else alone."""
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
    """What launches differ by: it counts where chance does not make it, and is worth a word."""
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
    """The smallest ratio above 1 that this row would have shown nine times of ten, taken alone."""
    its = [said.estimate for (row, _), said in decided.items() if row == one.row.name]
    if not one.exact:
        return power.smallest_effect(its, one.widest_floor)
    before = statistics.level(one.samples, BEFORE)
    return None if before is None else power.smallest_count(its, one.widest_floor, before.time_ns)


def equal_within(one: MeasuredRow, name: str, estimate: Estimate) -> float | None:
    """The smallest effect, as a ratio above 1, that neither interval nor floor has room for."""
    bound = statistics.floor_bound(one.floor_of(name))
    if bound is None or estimate.low is None or estimate.high is None:
        return None
    return math.exp(max(bound, abs(math.log(estimate.low)), abs(math.log(estimate.high))))


def launches_needed(within: float, estimate: Estimate) -> int:
    """About how many launches narrow an interval, and the floor's, to a claim of EQUAL_WITHIN.

    Errors of means shrink with the root of their number. What does not vary by launch does not
    shrink, so this is the least.
    """
    narrower = math.log(within) / math.log(EQUAL_WITHIN)
    return math.ceil(len(estimate.per_launch) * narrower**2)


def _p_value(estimate: Estimate) -> float | None:
    p_value = statistics.p_value(estimate)
    return None if p_value is None else rounded(p_value)
