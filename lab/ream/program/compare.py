# SPDX-License-Identifier: GPL-2.0-only
"""Compares what two kernels did with the same program, step by step.

Both report in the same words (native/libmm/kernel/spaces.c and reproducer_show.h): what each step
returned, the VMAs and the resident pages of every process after it, and, when all steps are done,
a number of all contents. Contents are read only at the end, since a read is a fault that changes
what is resident. Until then each kernel compares what it reads with what was written.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ream.program.rules import RULES, Beginning, Kernel
from ream.program.step import Program, new_step

FLAGS = re.compile(r"\b(?:lo|lf|sr|rr|dc|ac|nr|wf|dd|hg|nh|mg|um|uw|ui)\b")
"""Words of a VMA in smaps that are compared: those that do not follow from its protection."""

RSS = ("anon", "file", "shmem", "swap")

ENDS = ("killed", "died", "hangs", "wrong_page")

UNKNOWN = -1
"""What user space tells of swap entries that it cannot count."""

Fact = int | tuple[str, ...]
Facts = Mapping[tuple[int, str], Fact]
"""What is compared. The key is a line and a name: "returned", "VMAs" or a kind of pages."""


@dataclass(frozen=True)
class Difference:
    """One fact that is different, and the rule that explains it."""

    line: int
    what: str
    hosted: Fact | None
    elsewhere: Fact | None
    step: str
    why: str | None

    def __str__(self) -> str:
        """The difference in one line; of VMAs those that only one kernel has."""
        why = f" ({self.why})" if self.why else ""
        here, there = _shown(self.hosted, self.elsewhere), _shown(self.elsewhere, self.hosted)
        return f"line {self.line}: {self.step}: {self.what}: {there}, hosted {here}{why}"


def _shown(fact: Fact | None, other: Fact | None) -> str:
    if not isinstance(fact, tuple):
        return str(fact)
    known = other if isinstance(other, tuple) else ()
    return "; ".join(vma for vma in fact if vma not in known) or "fewer"


def facts_of(said: Iterable[Mapping[str, Any]]) -> Facts:
    """Order what a kernel reported of a program."""
    found: dict[tuple[int, str], Fact] = {}
    for one in said:
        line = one.get("line", 0)
        found |= {(line, end): one[end] for end in ENDS if end in one}
        if "vma" in one:
            key = line, f"VMAs of p{one['process']}"
            before = found.get(key, ())
            assert isinstance(before, tuple)
            found[key] = (*before, _vma(one["vma"]))
        elif "rss" in one:
            kinds = zip(RSS, one["rss"], strict=True)
            found |= {(line, f"{kind} of p{one['process']}"): nr for kind, nr in kinds}
        elif "returned" in one and one.get("step") != "spaces":
            found[line, "returned"] = one["returned"]
    return found


def _vma(words: Sequence[Any]) -> str:
    first, end, allows, offset, flags = words
    shown = " ".join(sorted(FLAGS.findall(flags)))
    return f"{first}-{end} {allows} {offset} {shown}".rstrip()


def differences(
    program: Program,
    hosted: Iterable[Mapping[str, Any]],
    elsewhere: Iterable[Mapping[str, Any]],
    kernel: Kernel,
) -> list[Difference]:
    """What is different, in the order of the steps; lines that only one performed are left out.

    hosted, elsewhere: what two kernels said. kernel: the one elsewhere.
    """
    ours, theirs = facts_of(hosted), facts_of(elsewhere)
    behind = replace(new_step("mincore", 0), line=max(line for line, _ in ours))
    steps = {step.line: step for step in program}
    both = {line for line, _ in ours} & {line for line, _ in theirs}
    begun = dict[str, str]()
    """Why kernels differ in a respect from now on; "": in all others."""
    found = []
    for line, what in sorted(key for key in ours.keys() | theirs.keys() if key[0] in both):
        here, there = ours.get((line, what)), theirs.get((line, what))
        if here == there or (there == UNKNOWN and what.startswith("swap")):
            continue
        step = steps.get(line)
        words = str(step) if step else "at the end"
        respect = what.split()[0]
        if what == "returned":
            respect = step.verb if step else "contents"
        result = ours.get((line, "returned"))
        its = Beginning(program, kernel, step or behind, respect, here, there, result)
        for rule in RULES:
            if (respect not in begun or not rule.respects) and rule.explains(its):
                its_own = respect if rule.respects else ""
                begun = dict.fromkeys((its_own, *rule.results), rule.why) | begun
        why = begun.get(respect, begun.get(""))
        found.append(Difference(line, what, here, there, words, why))
    return found
