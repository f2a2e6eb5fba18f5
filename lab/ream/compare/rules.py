# SPDX-License-Identifier: GPL-2.0-only
"""The rules on which differences matter: one table for all questions.

  compare  two records, for `ream compare`: may their ratios be compared?
  check    two records, for `ream check`: may a slowdown be blamed on the kernel?
  pool     two records of a row, for `ream merge`: are they samples of one ratio?
  resume   an unfinished run and this machine: may the remaining rounds be measured here?
  cell     a cell of a plan and this checkout: does it measure what was planned?

A difference either refuses the question or is flagged, which means that it is reported and allowed.
None means that the question ignores it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Question = Literal["compare", "check", "pool", "resume", "cell"]
Gravity = Literal["refuse", "flag"]
Unsaid = Literal["value", "skip", "flag", "doubt"]
"""How to treat a property that one of two records, perhaps an older one, lacks. value: as a value
of its own. skip: it is not compared. flag: it is flagged, never refused. doubt: it is flagged even
if both lack it, since they are then not known to be equal."""

OF_RECORDS: tuple[Question, ...] = ("compare", "check", "pool")
"""Questions about records, which may be older than a property; other sides are of one version."""


@dataclass(frozen=True)
class Rule:
    """The effect of a difference in one property, by question."""

    compare: Gravity | None = None
    check: Gravity | None = None
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


HOW: Mapping[str, str] = {"benchmark": "ream's own code that measures has changed"}
"""What a difference is, for properties whose values are ids that say nothing by themselves."""

REMEDY: Mapping[str, str] = {
    "benchmark": (
        "A benchmark id is a digest of ream's files that become part of what is run: programs,"
        " substitutes for kernel functions, options of kernel and linker. If they have changed, a"
        " ratio may differ although the patches do not. To rule that out, measure both again with"
        " one version of ream."
    ),
    "series": (
        "A ratio may differ because the patches do. To see whether it does, measure both series in"
        " one run: `ream run EXPERIMENT --variant one=6.12+DIR --variant other=6.12+DIR`."
    ),
}
"""What a difference does to the ratios of two records, and how to rule it out."""

RULES: Mapping[str, Rule] = {
    #                        compare   check     pool      resume    cell
    "experiment":      Rule("refuse", "refuse", "refuse"),
    "stage":           Rule("refuse", "refuse", "refuse"),
    "accelerator":     Rule("refuse", "refuse", "refuse"),  # an emulated CPU's numbers are its own
    "unit":            Rule("refuse", "refuse", "refuse", unsaid="skip"),
    "better":          Rule("refuse", "refuse", "refuse", unsaid="skip"),
    "bytes_of":        Rule("refuse", "refuse", "refuse", unsaid="skip"),
    "parameter":       Rule("refuse", "refuse", "refuse", None,     "refuse", unsaid="flag"),
    "version of ream": Rule(None,     None,     None,     None,     "refuse"),
    "benchmark":       Rule("flag",   "refuse", "refuse", "refuse", "refuse", unsaid="doubt"),
    "machine":         Rule("flag",   "flag",   None,     "refuse"),
    "machine's id":    Rule("flag",   "flag",   "flag",   unsaid="doubt", of_machine=True),
    "CPU":             Rule("flag",   "flag",   of_machine=True),
    "microcode":       Rule("flag",   "flag",   of_machine=True),
    "usable CPUs":     Rule("flag",   "flag",   None,     "refuse", of_machine=True),
    "bytes of memory": Rule("flag",   "flag",   of_machine=True),
    "governor":        Rule("flag",   "flag",   of_machine=True),
    "boost":           Rule("flag",   "flag",   of_machine=True),
    "running kernel":  Rule("flag",   "flag",   of_machine=True),
    "guests":          Rule(None,     None,     None,     "refuse"),
    "tree":            Rule("flag",   "flag",   "refuse", "refuse", "refuse"),
    "other trees":     Rule(None,     None,     None,     "refuse"),
    "compiler":        Rule("flag",   "flag",   "flag",   "refuse"),
    "configuration":   Rule("flag",   "flag",   "flag"),
    "series":          Rule("flag",   "flag",   "refuse", "refuse", "refuse", unsaid="skip"),
    "QEMU":            Rule("flag",   "flag",   "flag",   "refuse"),
    "CPUs of a guest": Rule("flag",   "flag",   "flag"),
}  # fmt: skip
"""Rules by property; a parameter belongs to a row, a series to a variant."""
