# SPDX-License-Identifier: GPL-2.0-only
"""Which functions of mm/ each step of a program enters."""

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import replace

from ream.program.coverage import Code, in_source
from ream.program.ran import Rig, Watched, numbered
from ream.program.step import Program, Step
from ream.stage.computer import Checks
from ream.stage.reach import COLD


def traced(rig: Rig, code: Code, program: Program) -> Iterator[tuple[Step, tuple[str, ...]]]:
    """Yield each step behind the declarations, and what it enters, first functions first.

    The program runs once for each step, up to that step. Functions that the compiler has put into
    others are not among them. Raises ReamError as Rig.run() does.
    """
    entries = _entries(code)
    watched = Watched(rig, dict(enumerate(entries)), only_measured=True)
    steps = [replace(step, measured=False) for step in numbered(program)]
    names = list(entries.values())
    for at, step in enumerate(steps):
        if step.form.declares:
            continue
        until = Program((*steps[:at], replace(step, measured=True)))
        _, met = watched.in_order(until, Checks.NEVER)
        yield step, tuple(dict.fromkeys(names[number] for number in met))


def _entries(code: Code) -> dict[int, str]:
    """The first block of each function, ascending, and the function's name in the source."""
    found = {}
    for its in code.in_folders:
        start = min(one.start for one in its.parts if not one.symbol.endswith(COLD))
        at = bisect_left(its.blocks, start)
        if at < len(its.blocks):
            found[its.blocks[at]] = in_source(its.name)
    return dict(sorted(found.items()))
