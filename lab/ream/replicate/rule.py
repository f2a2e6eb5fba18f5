# SPDX-License-Identifier: GPL-2.0-only
"""Derives one verdict for a whole table, and the outcome of its controls."""

from collections.abc import Iterable
from typing import Literal

from ream.measure.verdict import CLAIM, Word

_WEAKEST_FIRST: tuple[Word, ...] = ("contradicts", "inconclusive", "weaker")

Judged = tuple[Word, bool, float | None]
"""A line's verdict, whether it claims 10 % or more, and the ratio measured here."""


Control = Literal["as published", "not as published", "undecided", "not tried"]
"""The outcome of a line that claims less than 10 %."""
CONTROLS: tuple[Control, ...] = ("as published", "not as published", "undecided", "not tried")


def table_word(lines: Iterable[Judged]) -> Word:
    """The verdict on a table: that of its weakest line with a claim of 10 % or more.

    The order is contradicts, inconclusive, weaker, agrees; `stronger` requires that every line is.
    Lines that were not run do not decide; if none was run, it is `not-run`. A line that claims less
    is a control and does not decide, unless all lines do. Then one that contradicts does not decide
    if less than 10 % is measured, and the table is `inconclusive` if no line decides.
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
    """The outcome of a line that claims less than 10 %; less than 10 % here is as published."""
    if word == "not-run":
        return "not tried"
    if word == "inconclusive":
        return "undecided"
    small = here is not None and abs(here - 1) < CLAIM
    return "as published" if small or word in ("agrees", "weaker") else "not as published"
