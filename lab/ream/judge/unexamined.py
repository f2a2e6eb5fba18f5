# SPDX-License-Identifier: GPL-2.0-only
"""Lists what a judgement did not examine."""

from collections.abc import Iterator

from ream.counted import counted
from ream.judge.judgement import Examined, Judgement
from ream.judge.reach import shortened

MOST_NAMED = 4
"""The most places or files in a sentence; --json has all of them."""

NEVER = (
    "two CPUs in one place at once, other configurations and architectures, and what only a device"
    " shows"
)
"""What programs on a computer in a process never reach."""
FURTHER = "further faults, if there are any: the first one ended the judgement"
UNWEIGHED = "its cost: nothing was counted or timed, since a fault ended the judgement"
UNREACHED = "states that no program reached (docs/judged.md: how many real faults programs find)"


MOST_LINES = 5
"""The most lines that are quoted; --json has all of them."""


def unexecuted(its: Examined | None) -> Iterator[str]:
    """Yield changed lines that no program executed; of consecutive lines, the first.

    There are none for a series that is wrong, since programs end with the first fault.
    """
    lines = () if its is None or its.wrong else its.unexecuted
    follows = {(one.file, one.line + 1) for one in lines}
    first = [one for one in lines if (one.file, one.line) not in follows]
    for one in first[:MOST_LINES]:
        yield f"{one.file}:{one.line} was not executed by any program: {one.text}"
    if nr_more := len(lines) - len(first[:MOST_LINES]):
        verb = "was" if nr_more == 1 else "were"
        yield f"nor {verb} {counted(nr_more, 'further changed line')}, which --json has"


def unexamined(its: Judgement) -> Iterator[str]:
    """Yield each thing that was not examined, in words."""
    if its.changes_nothing:
        return
    if its.wrong is not None:
        yield FURTHER
    elif its.whole is None and its.to is None:
        yield "memory as a whole, since this kernel is not hosted so"
    if its.whole is not None and its.whole.missed and its.wrong is None:
        number = counted(len(its.whole.missed), "changed place")
        yield f"{number} that no program executes: {shortened(its.whole.missed, MOST_NAMED)}"
    if its.reach is not None and its.reach.elsewhere:
        yield f"code that is not hosted, in {shortened(its.reach.elsewhere, MOST_NAMED)}"
    if its.wrong is not None and not any(one.counted or one.timed for one in its.operations):
        yield UNWEIGHED
    elif nr := sum(one.timed is None for one in its.operations):
        yield f"the time of {nr} of {counted(len(its.operations), 'row')}"
    if its.reach is None and its.wrong is None:
        yield "what it costs"
    if its.whole is not None and its.wrong is None:
        yield UNREACHED
    yield NEVER
