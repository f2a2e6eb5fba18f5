# SPDX-License-Identifier: GPL-2.0-only
"""Checks whether a run is slower than a baseline, for timed runs.

A case fails only if both its change and its whole interval exceed the limit. What neither fails nor
passes is inconclusive and never rounded to a pass: noise must neither stop a good change nor hide a
bad one.
"""

import importlib
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ream.compare.alike import Difference, differences
from ream.compare.facts import of_record
from ream.compare.pool import refuse_unlike
from ream.errors import BadUsage
from ream.experiment import is_copy, shown
from ream.history.ratios import Place, ratios_of, units
from ream.measure import across
from ream.measure.across import RatioChange
from ream.measure.statistics import Estimate, t_quantile
from ream.record.parts import machine_line, rows_of, run_id
from ream.record.record import Record

Word = Literal["pass", "fail", "inconclusive", "skip"]

GREATEST_PCT = 1000.0
ROUNDING = 1e-9
"""Tolerance of comparisons with the limit, so that a change of exactly 5 % is not more than 5 %."""

_PERCENT = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*(%?)")


@dataclass(frozen=True)
class JudgedRow:
    """One row and variant, the change of its ratio to `before`, and the outcome."""

    row: str
    variant: str
    unit: str
    word: Word
    reason: str
    now: Estimate | None = None
    base: Estimate | None = None
    change: RatioChange | None = None
    chance: float = 0.0
    """The probability that the case fails without any change, given its spread."""

    @property
    def name(self) -> str:
        """The names of row and variant for readers, joined by a dot."""
        return f"{self.row}.{shown(self.variant)}"


@dataclass(frozen=True)
class Gate:
    """All cases of a check, and its overall outcome."""

    run: str
    baseline: str
    experiment: str
    stage: str
    machine: str
    limit_pct: float
    cases: tuple[JudgedRow, ...]
    unlike: tuple[Difference, ...]
    """Differences between the baseline (a) and the run (b)."""
    counts: bool = False
    """Whether counts themselves are compared, rather than ratios of times."""

    @property
    def word(self) -> Word:
        """Fail if any case fails; else inconclusive if any case is, or if nothing was decided."""
        words = {case.word for case in self.cases}
        if "fail" in words:
            return "fail"
        return "inconclusive" if "inconclusive" in words or "pass" not in words else "pass"

    def number(self, word: Word) -> int:
        """The number of cases with this outcome."""
        return sum(case.word == word for case in self.cases)

    @property
    def by_chance(self) -> float:
        """The expected number of cases that fail without any change."""
        return sum(case.chance for case in self.cases)


def parse_percent(text: str) -> float:
    """The number of `5%` or `5` as 5.0.

    Raises BadUsage if it is no such number, too large, or ambiguous: 0.05 may mean 5 %.
    """
    found = _PERCENT.fullmatch(text.strip())
    if found is None:
        raise BadUsage(f"--max-regression {text!r}: not a number of per cent, as 5%")
    value = float(found[1])
    if 0 < value < 1 and not found[2]:
        raise BadUsage(f"--max-regression {text!r}: {value:g}% or {100 * value:g}%?")
    if value > GREATEST_PCT:
        raise BadUsage(f"--max-regression {text!r}: more than {GREATEST_PCT:g}% is no limit")
    return value


def refuse_itself(now: Record, baseline: Record) -> None:
    """Raise BadUsage if both records are the same run."""
    if run_id(now) == run_id(baseline):
        raise BadUsage(f"{run_id(now)} is its own baseline: give another run")


def check_variants(asked: Sequence[str], there: Sequence[str]) -> None:
    """Raise BadUsage for a requested variant that neither run contains."""
    for name in asked:
        if name not in there:
            known = ", ".join(map(shown, dict.fromkeys(there)))
            raise BadUsage(f"--variant {shown(name)!r}: neither run has it; there is {known}")


def gate(
    now: Record,
    baseline: Record,
    limit_pct: float,
    *,
    variants: Sequence[str] = (),
    unlike: bool = False,
) -> Gate:
    """Judge each row and variant of a run against a baseline.

    variants: only these; by default all except second copies. Raises BadUsage if the runs do not
    measure the same thing (unless `unlike`), if they are one run, or if there is no variant of that
    name or no ratio at all.
    """
    refuse_itself(now, baseline)
    if not unlike:
        refuse_unlike("check", (now, baseline), "--unlike judges them all the same")
    ours, theirs = ratios_of(now), ratios_of(baseline)
    for record, ratios in ((now, ours), (baseline, theirs)):
        if not ratios:
            raise BadUsage(f"{run_id(record)} has no ratio to before: nothing to check")
    check_variants(variants, [variant for _, variant in (*ours, *theirs)])
    unit = {**units(baseline), **units(now)}
    asked = rows_of(now)
    places = [
        place
        for place in dict.fromkeys((*theirs, *ours))
        if (place[1] in variants if variants else not is_copy(place[1]))
    ]
    return Gate(
        run=run_id(now),
        baseline=run_id(baseline),
        experiment=str(now.run.get("experiment")),
        stage=str(now.run.get("stage")),
        machine=machine_line(now),
        limit_pct=limit_pct,
        cases=(
            *(
                _lost(place, unit.get(place[0], "ns"), theirs[place], asked[place[0]])
                if place not in ours and place[0] in asked
                else _case(place, unit.get(place[0], "ns"), ours, theirs, limit_pct)
                for place in places
            ),
            *_rows_without(now, baseline, {row for row, _ in (*ours, *theirs)}),
        ),
        unlike=differences("check", of_record(baseline), of_record(now)),
    )


def _case(
    place: Place,
    unit: str,
    ours: Mapping[Place, Estimate],
    theirs: Mapping[Place, Estimate],
    limit_pct: float,
) -> JudgedRow:
    row, variant = place
    now, base = ours.get(place), theirs.get(place)
    if now is None or base is None:
        where = "this run" if now is None else "the baseline"
        return JudgedRow(row, variant, unit, "skip", f"not in {where}", now=now, base=base)
    change = across.change(now, base)
    word, reason = judge(change, limit_pct)
    return JudgedRow(
        row,
        variant,
        unit,
        word,
        reason,
        now=now,
        base=base,
        change=change,
        chance=0.0 if now.exact and base.exact else _chance(change, limit_pct),
    )


def _lost(place: Place, unit: str, base: Estimate, row: Mapping[str, Any]) -> JudgedRow:
    """A case that the baseline measured and this run did not, which is inconclusive."""
    reason = row.get("skipped") or "it has no such variant"
    said = f"not measured in this run: {reason}"
    return JudgedRow(*place, unit=unit, word="inconclusive", reason=said, base=base)


def judge(change: RatioChange, limit_pct: float) -> tuple[Word, str]:
    """The outcome for a change of a ratio, where lower is better, and its reason."""
    limit = 1 + limit_pct / 100
    by = percent(change.ratio)
    if change.low is None or change.high is None:
        return "inconclusive", f"{by}, without an interval: it takes two launches in both runs"
    within = f"{percent(change.low)} to {percent(change.high)}"
    if change.ratio > limit * (1 + ROUNDING) and change.low > limit * (1 + ROUNDING):
        return "fail", f"{by} ({within}), more than {limit_pct:g} % slower"
    if change.high <= limit * (1 + ROUNDING):
        return "pass", f"{by} ({within})"
    return "inconclusive", f"{by} ({within}): the interval holds both sides of {limit_pct:g} %"


def percent(ratio: float) -> str:
    """A ratio as a signed change in per cent, such as `+5 %`."""
    return f"{100 * (ratio - 1):+.3g} %"


def _rows_without(now: Record, baseline: Record, having: Iterable[str]) -> Iterator[JudgedRow]:
    """Skipped cases for rows without a ratio in either run, so that no row vanishes."""
    having = set(having)
    rows = rows_of(baseline) | rows_of(now)
    for name, row in rows.items():
        if name not in having:
            reason = row.get("skipped") or "no ratio to before in either run"
            yield JudgedRow(name, "-", str(row.get("unit")), "skip", str(reason))


def _chance(change: RatioChange, limit_pct: float) -> float:
    """The probability that a case with this spread fails although nothing has changed."""
    if change.low is None or change.high is None or change.degrees is None:
        return 0.0
    quantile = t_quantile(change.degrees)
    error = (math.log(change.high) - math.log(change.low)) / 2 / quantile
    if error <= 0:
        return 0.0
    # Here, not above: importing it takes longer than all else `ream --help` does.
    special = importlib.import_module("scipy.special")
    beyond = math.log1p(limit_pct / 100) / error + quantile
    return float(special.stdtr(change.degrees, -beyond))
