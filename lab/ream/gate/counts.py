# SPDX-License-Identifier: GPL-2.0-only
"""Checks whether a run executes more than a baseline. Counts repeat, so no interval is needed."""

from collections.abc import Iterator, Mapping, Sequence

from ream.compare.alike import differences
from ream.compare.facts import of_record
from ream.compare.pool import refuse_unlike
from ream.errors import BadUsage
from ream.experiment import is_copy
from ream.gate.gate import ROUNDING, Gate, JudgedRow, Word, check_variants, refuse_itself
from ream.history.ratios import COUNTED
from ream.record.parts import machine_line, run_id
from ream.record.record import Record
from ream.report.contract import Counted, RowResult, Summary
from ream.report.counts_table import QUANTITIES

LIMIT = "0.1%"
MOST_NAMED = 3
"""The most quantities of a case that are printed."""

Counts = Mapping[str, Counted]


def gate_counts(
    now: Record,
    baseline: Record,
    limit_pct: float,
    *,
    variants: Sequence[str] = (),
    unlike: bool = False,
) -> Gate:
    """Judge each row and variant of a counted run against a baseline.

    A case fails if any quantity has grown by more than limit_pct. variants: only these. Raises
    BadUsage if a run was timed, if the runs do not measure the same thing (unless `unlike`), if
    they are one run, or if neither has a variant of that name.
    """
    refuse_itself(now, baseline)
    ours, theirs = _rows(now), _rows(baseline)
    if not unlike:
        refuse_unlike("check", (now, baseline), "--unlike judges them all the same")
    places = [
        (row, variant)
        for row in dict.fromkeys((*theirs, *ours))
        for variant in dict.fromkeys((*_variants(theirs, row), *_variants(ours, row)))
    ]
    check_variants(variants, [variant for _, variant in places])
    return Gate(
        run=run_id(now),
        baseline=run_id(baseline),
        experiment=str(now.run.get("experiment")),
        stage=str(now.run.get("stage")),
        machine=machine_line(now),
        limit_pct=limit_pct,
        cases=tuple(
            _case(row, variant, ours, theirs, limit_pct)
            for row, variant in places
            if (variant in variants if variants else not is_copy(variant))
        ),
        unlike=differences("check", of_record(baseline), of_record(now)),
        counts=True,
    )


def _rows(record: Record) -> dict[str, RowResult]:
    rows = Summary.from_object(record.run, source=str(record.path)).rows
    if not any(row.counted for row in rows):
        raise BadUsage(f"{run_id(record)} counted nothing: `ream run --count` makes such a run")
    return {row.row: row for row in rows}


def _variants(rows: Mapping[str, RowResult], row: str) -> tuple[str, ...]:
    counted = rows[row].counted if row in rows else None
    return () if counted is None else tuple(counted.variants)


def _case(
    row: str,
    variant: str,
    ours: Mapping[str, RowResult],
    theirs: Mapping[str, RowResult],
    limit_pct: float,
) -> JudgedRow:
    now, base = (_counted(rows, row, variant) for rows in (ours, theirs))
    if base is None:
        return JudgedRow(row, variant, COUNTED, "skip", "not in the baseline")
    if now is None:
        skipped = ours[row].skipped if row in ours else None
        if row not in ours:
            return JudgedRow(row, variant, COUNTED, "skip", "not in this run")
        reason = f"not counted in this run: {skipped or 'it has no such variant'}"
        return JudgedRow(row, variant, COUNTED, "inconclusive", reason)
    if not (now.repeats and base.repeats):
        where = "this run" if not now.repeats else "the baseline"
        reason = f"two samples of one kernel differ in {where}: its counts cannot be compared"
        return JudgedRow(row, variant, COUNTED, "inconclusive", reason)
    word, reason = _judge(now, base, variant, limit_pct)
    return JudgedRow(row, variant, COUNTED, word, reason)


def _counted(rows: Mapping[str, RowResult], row: str, variant: str) -> Counted | None:
    found = rows[row].counted if row in rows else None
    return found if found is not None and variant in found.variants else None


def _judge(now: Counted, base: Counted, variant: str, limit_pct: float) -> tuple[Word, str]:
    changed = list(_changes(now, base, variant))
    grown = [one for one in changed if one[1] > one[2] * (1 + limit_pct / 100) * (1 + ROUNDING)]
    if not changed:
        return "pass", "counts equal"
    said = [
        _said(quantity, new, old, _where(now, base, variant, quantity), base.per)
        for quantity, new, old in (grown or changed)[:MOST_NAMED]
    ]
    more = len(grown or changed) - MOST_NAMED
    said += [f"and {more} more"] if more > 0 else []
    return ("fail" if grown else "pass"), "; ".join(said)


def _changes(now: Counted, base: Counted, variant: str) -> Iterator[tuple[str, float, float]]:
    """Every quantity that differs, with its value per page or entry now and in the baseline."""
    for quantity in QUANTITIES:
        new = now.variants[variant].get(quantity, 0) / now.number_of(variant)
        old = base.variants[variant].get(quantity, 0) / base.number_of(variant)
        if new != old:
            yield quantity, new, old


def _where(now: Counted, base: Counted, variant: str, quantity: str) -> str | None:
    """The function in which a quantity changed most; None if no function accounts for it."""
    new, old = now.functions[variant], base.functions[variant]
    by = {
        name: abs(
            new.get(name, {}).get(quantity, 0) / now.number_of(variant)
            - old.get(name, {}).get(quantity, 0) / base.number_of(variant)
        )
        for name in {**old, **new}
    }
    most = max(by, key=lambda name: by[name], default=None)
    return most if most is not None and by[most] else None


def _said(quantity: str, new: float, old: float, function: str | None, per: str) -> str:
    share = f" ({100 * (new / old - 1):+.3g} %)" if old else ""
    place = f", most in {function}()" if function else ""
    return f"{new - old:+.4g} {QUANTITIES[quantity]} a {per}{share}{place}"
