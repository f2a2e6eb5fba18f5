# SPDX-License-Identifier: GPL-2.0-only
"""Judgements with rows of all kinds, which no series has at once."""

from ream.judge.judgement import (
    CountedChange,
    Judgement,
    Listing,
    Operation,
    PatchStep,
    TimedChange,
    Wrong,
)
from ream.judge.reach import Reach, WholeReach

SUBJECT = "mm/memory: fork: copy page table entries of large folios in batches of a whole folio"
RATIOS = {"slower": 1.25, "equal": 1.001, "faster": 0.061, "undecided": 0.99}
REACH = WholeReach(
    nr_functions=991,
    changed=("copy_page_range",),
    **dict.fromkeys(("added", "removed", "moved", "data", "layout"), ()),
    text_bytes=(64, 80),
    experiments=(Reach("fork", ("copy_page_range",), ("fork-4k",), 64, None),),
    nearest=None,
)


def _operation(number: int) -> Operation:
    effect = [*RATIOS][number % len(RATIOS)]
    ratio = RATIOS[effect]
    added = (number % 5 - 2) * 7.0
    steps = tuple(PatchStep(one, SUBJECT, {"instructions": added / 2}) for one in (1, 2))
    timed = TimedChange(
        *(ratio, ratio * 0.9, ratio * 1.1, None if effect == "undecided" else effect, 1.02, 1.03),
        before_ns=24.4 * 2**number,
        per="page",
    )
    return Operation(
        "fork",
        f"munmap-free-{4 << number}k-cold",
        f"munmap of 1 GiB, folios of {4 << number} KiB, cold, folios shuffled, pages freed",
        counted=CountedChange(
            "page",
            {"instructions": 50.0, "locked": 1.0},
            {"instructions": 50.0 + added, "locked": 1.0},
            repeats=effect != "undecided",
        ),
        timed=timed if number % 7 else None,
        functions=(("copy_present_page_of_a_large_folio", {"instructions": added}),) * 3,
        steps=steps,
    )


OLD = """        4096       0  push   %rbp
        4096       4  test   %rax,%rax
                   8  ud2
        4096      10  jne    21 <copy_page_range+0x21>
"""
NEW = """        4096       0  push   %rbp
         256       4  lock incl 0x34(%rdi)
         256      12  jne    29 <copy_page_range+0x29>
"""

RIGHT = Judgement(
    "0001-fork.patch",
    (SUBJECT, "mm: another"),
    "6.12",
    "AMD EPYC (family 25 model 1), 2 CPUs",
    REACH,
    tuple(map(_operation, range(14))),
    listings=(Listing("fork", "fork-4k", "copy_page_range", OLD, NEW),),
    notes=("a note that says more of it",),
    reproduce=f"ream judge {'0001-fork.patch ' * 8}",
)
WRONG = Judgement(
    "0002-wrong.patch",
    ("mm: a wrong patch",),
    "6.12",
    "a machine",
    REACH,
    wrong=Wrong("fork", ("a page was shared that is private", "row fork-4k, pte 17: " + "a" * 150)),
)
