# SPDX-License-Identifier: GPL-2.0-only
"""One word for a whole table, and what its controls say."""

from collections.abc import Iterable
from typing import Literal

from ream.measure.verdict import CLAIM, Word

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
