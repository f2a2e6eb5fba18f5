# SPDX-License-Identifier: GPL-2.0-only
"""Effects and verdicts in a few words, shared by tables, letters and pages."""

from ream.experiment import BEFORE
from ream.measure.verdict import claims_effect, control
from ream.report.contract import ClockUsed, Comparison, Result, RowResult
from ream.report.numbers import fit

EQUAL = "equal"
LEAST_PER_CENT = 0.1
"""The smallest bound, in per cent, that is printed."""


def explained(*words: str) -> str:
    """A sentence that names the glossary, and words of a table that it has."""
    return f"`ream help words` explains {', '.join(words[:-1])} and {words[-1]}."


def effect_words(result: Result) -> str:
    """The effect, such as `2.23x faster`, `equal within 0.8 %` or `undecided`; empty if unknown."""
    if result.effect is None or result.ratio is None:
        return ""
    if result.effect == "equal":
        return f"{EQUAL}{_within(result)}"
    if result.effect in ("undecided", "no difference"):
        return result.effect
    factor = 1 / result.ratio if result.ratio < 1 else result.ratio
    return f"{fit(factor, 5)}x {result.effect}"


def _within(result: Result) -> str:
    """The bound of an equal result, such as ` within 0.8 %`; empty for counts that are the same."""
    if result.within is None or result.within == 1:
        return ""
    return f" within {max(100 * (result.within - 1), LEAST_PER_CENT):.1f} %"


def clock_words(clock: ClockUsed) -> str:
    """The clock of a row's times, and how far each clock set two copies of one kernel apart."""
    wall, cpu = (f"{100 * (noise - 1):.2g} %" for noise in (clock.wall_noise, clock.cpu_noise))
    return (
        f"{clock.used} time; in the first launches two copies of {BEFORE} were {wall} apart by wall"
        f" time and {cpu} by CPU time"
    )


def shown_verdict(one: Comparison, row: RowResult) -> str:
    """The verdict on a published counterpart of a row, as reports print it.

    A counterpart that claims less than 10 % is a control, and its outcome is printed.
    """
    if one.verdict == "not-run" or one.ratio is None or one.approximate:
        return one.verdict
    if claims_effect(one.ratio):
        return one.verdict
    result = row.published if one.value is None else None
    whole = None if row.whole is None else row.whole.ratio
    here = whole or result
    return control(one.verdict, None if here is None else here.ratio)


def verdict_words(row: RowResult, room: int) -> str:
    """The verdict, or the number of each; `mixed` if that exceeds `room` columns.

    Tables without a verdict count only if no table has one.
    """
    words = [shown_verdict(table, row) for table in row.comparisons]
    judged = [word for word in words if word != "not-run"]
    if len(words) == 1 or (words and not judged):
        return words[0]
    counts = [f"{word} {judged.count(word)}" for word in dict.fromkeys(judged)]
    text = f"{', '.join(counts)} of {len(words)}" if words else ""
    if len(text) <= room:
        return text
    return judged[0] if len(counts) == 1 else "mixed"
