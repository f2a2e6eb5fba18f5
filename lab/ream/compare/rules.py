# SPDX-License-Identifier: GPL-2.0-only
"""The rules on which differences matter: one table for all questions.

  compare  two records, for `ream compare` and `ream check`: may their ratios be compared?
  pool     two records of a row, for `ream merge`: are they samples of one ratio?
  resume   an unfinished run and this machine: may the remaining rounds be measured here?
  cell     a cell of a plan and this checkout: does it measure what was planned?

A difference either refuses the question or is flagged, which means that it is reported and allowed.
None means that the question ignores it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Question = Literal["compare", "pool", "resume", "cell"]
Gravity = Literal["refuse", "flag"]
Unsaid = Literal["value", "skip", "flag", "doubt"]
"""How to treat a property that one of two records, perhaps an older one, lacks. value: as a value
of its own. skip: it is not compared. flag: it is flagged, never refused. doubt: it is flagged even
if both lack it, since they are then not known to be equal."""

OF_RECORDS: tuple[Question, ...] = ("compare", "pool")
"""Questions about records, which may be older than a property; other sides are of one version."""


@dataclass(frozen=True)
class Rule:
    """The effect of a difference in one property, by question."""

    compare: Gravity | None = None
    pool: Gravity | None = None
    resume: Gravity | None = None
    cell: Gravity | None = None
    unsaid: Unsaid = "value"
    of_machine: bool = False
    """Whether the property is ignored for two machines, since it is reported that they are two."""

    def gravity(self, question: Question) -> Gravity | None:
        """The effect of a difference on this question; None if the question ignores it."""
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
"""Rules by property; a parameter belongs to a row, a series to a variant."""
