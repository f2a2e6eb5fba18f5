# SPDX-License-Identifier: GPL-2.0-only
"""One word for a whole table, what its controls say, and what "no gain" takes to be agreed with."""

from collections.abc import Iterable
from typing import Literal

from ream.measure.statistics import Estimate
from ream.measure.verdict import CLAIM, TOO_WIDE, Verdict, Word

_WEAKEST_FIRST: tuple[Word, ...] = ("contradicts", "inconclusive", "weaker")

Judged = tuple[Word, bool, float | None]
"""A line's verdict, whether it claims 10 % or more, and the ratio measured here."""


Control = Literal["as published", "not as published", "undecided", "not tried"]
"""What came of a line that claims less than 10 %."""
CONTROLS: tuple[Control, ...] = ("as published", "not as published", "undecided", "not tried")


def table_word(lines: Iterable[Judged]) -> Word:
    """The word of the line that holds least, of those that claim 10 % or more and could be tried.

    A table is as good as its weakest line; how many lines have which word stands beside it. A line
    that claims less is a control and does not decide, unless all of them do: then none is what the
    table claims, and it is judged by them. There, a line that contradicts does not decide where
    less than 10 % is measured. A line that was not run decides nothing, either.
    `stronger` is said only if every line is; `inconclusive`, if all that was tried decides nothing.
    """
    lines = list(lines)
    deciding = [line for line in lines if line[1]] or lines
    tried = [line for line in deciding if line[0] != "not-run"]
    words = [word for word, substantial, here in tried if _decides(word, here, substantial)]
    if not words:
        return "inconclusive" if tried else "not-run"
    for word in _WEAKEST_FIRST:
        if word in words:
            return word
    return "stronger" if set(words) == {"stronger"} else "agrees"


def _decides(word: Word, here: float | None, substantial: bool) -> bool:
    small = here is not None and abs(here - 1) < CLAIM
    return not (word == "contradicts" and small and not substantial)


def control(word: Word, here: float | None) -> Control:
    """What a line that claims less than 10 % came to: less than 10 % here is as published."""
    if word == "not-run":
        return "not tried"
    if word == "inconclusive":
        return "undecided"
    small = here is not None and abs(here - 1) < CLAIM
    return "as published" if small or word in ("agrees", "weaker") else "not as published"


def judge_no_gain(measured: Estimate) -> Verdict:
    """A source that says "no gain", in round numbers: not to see a gain is not to see none.

    Agrees only if all of the interval is within 10 % of 1, so that a gain of 10 % is excluded
    and not merely unseen; contradicts if all of it is beyond.
    Source: Schuirmann, "A comparison of the two one-sided tests procedure", J Pharmacokinet
    Biopharm 1987, with an interval of 95 % where 90 % would do.
    """
    low, high = measured.low, measured.high
    if low is None or high is None:
        return Verdict("inconclusive", "no interval: it takes two launches at least")
    if high < 1 - CLAIM:
        return Verdict("contradicts", "a gain of more than 10 % here where none was found")
    if low > 1 + CLAIM:
        return Verdict("contradicts", "a loss of more than 10 % here where about none was found")
    if low >= 1 - CLAIM and high <= 1 + CLAIM:
        return Verdict("agrees", "the whole interval is within 10 % of no effect")
    wide = high / low > TOO_WIDE
    said = "is too wide to exclude" if wide else "does not exclude"
    return Verdict("inconclusive", f"the interval {said} an effect of 10 %")
