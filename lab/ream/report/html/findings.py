# SPDX-License-Identifier: GPL-2.0-only
"""The head of a page: its results in a few sentences and in one table."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from ream.counted import counted
from ream.experiment import BEFORE, RUNNING
from ream.measure.sample import Sample
from ream.report import sensitivity
from ream.report.contract import RowResult, Summary
from ream.report.html import tables
from ream.report.html.tables import NONE
from ream.report.not_run import folded_names
from ream.report.numbers import fit, interval
from ream.report.words import effect_words, shown_verdict, verdict_words
from ream.values import Texts, Tuple, Value

ROOM = 40
"""Width in columns for the verdicts of several tables."""
SHORT_REASON = 100
"""The most characters of a reason that is shown without being unfolded."""


class VerdictCell(Value):
    """The result of one variant in one row, in a few words and in numbers."""

    words: str
    numbers: str = ""
    verified: bool = True
    effect: str = ""
    """The effect in one word, which the style sheet has a colour for."""
    value: float | None = None
    """What the cell is sorted by."""


class Judged(Value):
    """One published counterpart: its table, the verdict, and the reason."""

    table: str
    word: str
    reason: str


class VerdictLine(Value):
    """One row of the verdict table."""

    row: str
    ident: str
    there: str
    cells: Tuple[VerdictCell]
    floor: str
    detects: str
    """The smallest effect that the row would have detected, and its clock; empty if not known."""
    shares: Texts
    """The share that each variant has; empty if none has any."""
    verdict: str
    judged: Tuple[Judged] = ()
    skipped: str | None = None

    @property
    def why(self) -> str | None:
        """The reason of all verdicts, if there is a single short one."""
        reasons = {one.reason for one in self.judged}
        short = len(reasons) == 1 and max(map(len, reasons)) <= SHORT_REASON
        return reasons.pop() if short else None

    @property
    def kind(self) -> str:
        """The word of all verdicts, as a class of the style sheet; empty if there are several."""
        words = {one.word.lower().replace(" ", "-") for one in self.judged}
        return words.pop() if len(words) == 1 else ""


def reasons(lines: Sequence[VerdictLine]) -> Mapping[str, Sequence[str]]:
    """The rows that have each short reason of a verdict, in order."""
    found: dict[str, list[str]] = {}
    for line in lines:
        if line.why is not None and line.why != line.skipped:
            found.setdefault(line.why, []).append(line.row)
    return found


def in_short(summary: Summary, names: Sequence[str]) -> Iterator[str]:
    """The results of the page in a few sentences."""
    ran = [row for row in summary.rows if row.variants]
    missing = len(summary.rows) - len(ran)
    said = f"This run has {counted(len(summary.rows), 'row')}"
    yield f"{said}, {missing} of them not run." if missing else f"{said}.{_largest(ran, names)}"
    for name in names:
        effects = Counter(
            row.variants[name].effect or "no interval" for row in ran if name in row.variants
        )
        if name != RUNNING and effects:
            said = ", ".join(f"{effect} in {count}" for effect, count in effects.most_common())
            to = {its.compared_with or BEFORE for row in ran if (its := row.variants.get(name))}
            yield f"{name} against {' and '.join(sorted(to))}: {said}."
    if words := Counter(shown_verdict(one, row) for row in summary.rows for one in row.comparisons):
        said = ", ".join(f"{word} {count}" for word, count in words.most_common())
        yield f"Published results here: {said}."
    for text in filter(None, (sensitivity.of_run(summary), sensitivity.controls(summary))):
        yield f"{text[0].upper()}{text[1:]}."
    wrong = sorted(
        {
            f"{row.row} {name}"
            for row in ran
            for name, its in row.variants.items()
            if not its.verified
        }
    )
    if wrong:
        yield f"NOT VERIFIED, so worth nothing: {', '.join(wrong)}."
    elif ran:
        yield "Every sample was verified."


def _largest(rows: Sequence[RowResult], names: Sequence[str]) -> str:
    """A sentence about the largest effect of the last variant; empty if it has none."""
    name = names[-1] if names else RUNNING
    found = [
        (abs(math.log(its.ratio)), effect_words(its), row.row)
        for row in rows
        if (its := row.variants.get(name)) and its.ratio and its.effect in ("faster", "slower")
    ]
    if not found:
        return ""
    _, words, where = max(found)
    return f" The largest effect of {name} is {words}, in {where}."


def verdicts(
    summary: Summary, names: Sequence[str], taken: Mapping[str, Sequence[Sample]]
) -> Iterator[VerdictLine]:
    """The lines of the verdict table, without rows that share their reason for not having run.

    taken: samples by row, from which the running kernel's range is shown, as it has no ratio.
    """
    apart = folded_names(summary.rows)
    for number, row in enumerate(summary.rows, start=1):
        if row.row in apart:
            continue
        yield VerdictLine(
            row=row.row,
            ident=f"row-{number}",
            there=_there(row),
            cells=tuple(cell_of(row, name, taken.get(row.row, ())) for name in names),
            floor=NONE if row.floor is None else interval(row.floor),
            detects=_detects(row),
            shares=tuple(_shares(row, names)),
            verdict=(verdict_words(row, ROOM) or "not compared").upper()
            if row.comparisons
            else NONE,
            judged=tuple(
                Judged(
                    table=one.id,
                    word=shown_verdict(one, row).upper(),
                    reason=one.reason or "no reason recorded",
                )
                for one in row.comparisons
            ),
            skipped=row.skipped if not row.variants else None,
        )


def _detects(row: RowResult) -> str:
    if row.floor is None or row.smallest_effect is None:
        return ""
    its = f"detects {sensitivity.per_cent(row.smallest_effect - 1)}"
    return its if row.clock is None else f"{its}; {row.clock.used} time"


def _there(row: RowResult) -> str:
    """The published ratio; for several, the smallest and the greatest."""
    known = sorted(
        (one for one in row.comparisons if one.ratio is not None), key=lambda one: one.ratio or 0
    )
    if not known:
        return NONE
    first, last = (tables.published_ratio(one) for one in (known[0], known[-1]))
    return first if first == last else f"{first} to {last}"


def cell_of(row: RowResult, name: str, taken: Sequence[Sample] = ()) -> VerdictCell:
    """The cell of variant `name`; for the running kernel, which has no ratio, a range."""
    result = row.variants.get(name)
    if result is None:
        return VerdictCell(words="not run")
    if name == RUNNING:
        scale, unit = tables.unit_of(row)
        return VerdictCell(
            words=f"{fit(result.median / scale, 9)} {unit}",
            numbers=_range([one.time_ns / scale for one in taken if one.subject == name]),
            verified=result.verified,
            value=result.median,
        )
    return VerdictCell(
        words=effect_words(result) or "no interval",
        numbers=tables.ratio_words(result),
        verified=result.verified,
        effect=result.effect or "",
        value=result.ratio,
    )


def _range(values: Sequence[float]) -> str:
    if not values:
        return ""
    each = "sample" if len(values) == 1 else "samples"
    return f"{fit(min(values), 9)} .. {fit(max(values), 9)}, {len(values)} {each}"


def _shares(row: RowResult, names: Sequence[str]) -> Iterator[str]:
    known = {
        name: its.of_limit for name in names if (its := row.variants.get(name)) and its.of_limit
    }
    if known:
        yield from (fit(known[name], 5) if name in known else NONE for name in names)
