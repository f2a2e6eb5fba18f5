# SPDX-License-Identifier: GPL-2.0-only
"""What must be equal where two things are held against each other: one table for all questions.

compare  two records, as `ream compare` and `ream check` ask: may ratios stand side by side?
pool     two records of a row, as `ream merge` asks: are they samples of one ratio?
resume   an unfinished run and this machine: would its other rounds be like those there are?
cell     a cell of a plan and this checkout: would it measure what was planned?

A difference refuses the answer, or is flagged: named, and gone on with. None: not asked.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Question = Literal["compare", "pool", "resume", "cell"]
Gravity = Literal["refuse", "flag"]
Unsaid = Literal["value", "skip", "flag", "doubt"]
"""What it means that one of two records, perhaps an older one, does not say a thing.

value: that is a value like others. skip: it is not compared. flag: it is flagged, never refused.
doubt: flagged even if neither says it: two that do not say are not known to be the same.
"""

OF_RECORDS: tuple[Question, ...] = ("compare", "pool")
"""Questions about records, which may be older than a thing; else both sides are of one version."""


@dataclass(frozen=True)
class Rule:
    """What a difference in one thing means, by question."""

    compare: Gravity | None = None
    pool: Gravity | None = None
    resume: Gravity | None = None
    cell: Gravity | None = None
    unsaid: Unsaid = "value"
    of_machine: bool = False
    """Whether it is not asked of two machines, of which it is said already that they are two."""

    def gravity(self, question: Question) -> Gravity | None:
        gravity: Gravity | None = getattr(self, question)
        return gravity


RULES: Mapping[str, Rule] = {
    #                        compare   pool      resume    cell
    "experiment":       Rule("refuse", "refuse"),
    "stage":            Rule("refuse", "refuse"),
    "accelerator":      Rule("refuse", "refuse"),  # an emulated CPU's numbers are its own
    "unit":             Rule("refuse", "refuse", unsaid="skip"),
    "better":           Rule("refuse", "refuse", unsaid="skip"),
    "bytes_of":         Rule("refuse", "refuse", unsaid="skip"),
    "parameter":        Rule("refuse", "refuse", None,     "refuse", unsaid="flag"),
    "version of ream":  Rule(None,     None,     None,     "refuse"),
    "benchmark":        Rule("refuse", "refuse", "refuse", "refuse", unsaid="doubt"),
    "machine":          Rule("flag",   None,     "refuse"),
    "machine's id":     Rule("flag",   "flag",   unsaid="doubt", of_machine=True),
    "CPU":              Rule("flag",   of_machine=True),
    "microcode":        Rule("flag",   of_machine=True),
    "usable CPUs":      Rule("flag",   None,     "refuse", of_machine=True),
    "bytes of memory":  Rule("flag",   of_machine=True),
    "governor":         Rule("flag",   of_machine=True),
    "boost":            Rule("flag",   of_machine=True),
    "running kernel":   Rule("flag",   of_machine=True),
    "guests":           Rule(None,     None,     "refuse"),
    "tree":             Rule("flag",   "refuse", "refuse", "refuse"),
    "other trees":      Rule(None,     None,     "refuse"),
    "compiler":         Rule("flag",   "flag",   "refuse"),
    "configuration":    Rule("flag",   "flag"),
    "series":           Rule("flag",   "refuse", "refuse", "refuse", unsaid="skip"),
    "QEMU":             Rule("flag",   "flag",   "refuse"),
    "CPUs of a guest":  Rule("flag",   "flag"),
}  # fmt: skip
"""By thing; a parameter is of a row, a series of a variant."""
