# SPDX-License-Identifier: GPL-2.0-only
"""Derives one verdict for a whole table."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from ream.measure.verdict import CLAIM, Word, claims_effect

WORDS: tuple[Word, ...] = (
    "agrees", "stronger", "weaker", "contradicts", "inconclusive", "modelled", "not-run",
)  # fmt: skip

LEAST_TRIED = 0.5
"""The share of a table's claims that must be measured for a word that supports the table."""

_WEAKEST_FIRST: tuple[Word, ...] = ("contradicts", "inconclusive", "weaker")


@dataclass(frozen=True)
class Judged:
    """A line's verdict, its published ratio and the ratio measured here; None if unknown."""

    word: Word
    published: float | None
    here: float | None

    @property
    def substantial(self) -> bool:
        """Whether the published effect is 10 % or more, or unknown."""
        return self.published is None or claims_effect(self.published)

    @property
    def decides(self) -> bool:
        """Whether the line can decide: a control that differs by less than 10 % here cannot."""
        small = self.here is not None and abs(self.here - 1) < CLAIM
        return self.substantial or not (self.word == "contradicts" and small)

    @property
    def is_larger_cost(self) -> bool:
        """Whether the line states a cost, which is larger here than published."""
        return self.word == "stronger" and self.published is not None and self.published > 1


def table_word(lines: Iterable[Judged]) -> Word:
    """The verdict on a table: that of its weakest line with a claim of 10 % or more.

    The order is contradicts, inconclusive, weaker, agrees; `stronger` requires that every line is,
    or that one states a cost and it is larger here. Lines with a model of the device do not decide
    unless all lines have one, and those that were not run do not either. A line that claims less
    is a control and does not decide, unless all lines do. Then one that contradicts does not decide
    if less than 10 % is measured, and the table is `inconclusive` if no line decides. Where fewer
    than half of the claims were measured, one that fails decides, and the others carry no word:
    the table is `inconclusive`.
    """
    deciding = _deciding(lines)
    tried = [line for line in deciding if line.word != "not-run"]
    measured = [line for line in tried if line.word != "modelled"]
    words = {line.word for line in measured if line.decides}
    if not tried:
        return "not-run"
    if not measured:
        return "modelled"
    if not words or ("contradicts" not in words and too_few(deciding)):
        return "inconclusive"
    for word in _WEAKEST_FIRST:
        if word in words:
            return word
    larger_cost = any(line.is_larger_cost for line in measured)
    return "stronger" if larger_cost or words == {"stronger"} else "agrees"


def too_few(lines: Iterable[Judged]) -> bool:
    """Whether some claims of a table were measured, but too few for a word that supports it."""
    deciding = _deciding(lines)
    measured = sum(line.word not in ("not-run", "modelled") for line in deciding)
    # A model of the device was tried, and is no reason to doubt the lines without one.
    tried = sum(line.word != "not-run" for line in deciding)
    return measured > 0 and tried < LEAST_TRIED * len(deciding)


def counted_words(words: Iterable[Word]) -> str:
    """How often there is each verdict."""
    number = Counter(words)
    return ", ".join(f"{number[word]} {word}" for word in WORDS if number[word])


def _deciding(lines: Iterable[Judged]) -> list[Judged]:
    lines = list(lines)
    return [line for line in lines if line.substantial] or lines
