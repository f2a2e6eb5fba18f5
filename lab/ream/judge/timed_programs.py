# SPDX-License-Identifier: GPL-2.0-only
"""Finds rows that are programs and execute changed code in the step that they measure."""

from collections.abc import Iterator
from pathlib import Path

from ream.experiment import named
from ream.folders import names
from ream.judge.reach import Reach
from ream.program.aim import met_by, worth
from ream.program.changed import Target
from ream.program.coverage import Code
from ream.program.ran import Rig
from ream.program.text import parse
from ream.stage.steps import steps_of

MOST_ROWS = 12
"""The most rows of an experiment that are counted. Rows that execute rare code come first."""


def reached(base: Rig, code: Code, target: Target, cache: Path) -> Iterator[Reach]:
    """Yield the reach in experiments with such rows, if some execute changed lines or functions.

    Lines decide if the base has code in them, else functions. All rows run once, which takes half a
    minute, unless the cache has what they execute.
    """
    wanted = target.blocks or code.numbers(target.functions)
    functions = {number: name for name in target.functions for number in code.numbers([name])}
    for experiment in (
        one.at("native").unasked() for one in map(named, names()) if one.has("native")
    ):
        if (steps := steps_of(experiment)) is None:
            continue
        programs = {row.name: parse(steps.text_of(row), row.name) for row in experiment.rows}
        met = met_by(base, code, programs, cache, only_measured=True)
        its = worth(met, wanted)
        rows = sorted(filter(its.get, its), key=lambda name: -its[name])
        if rows := rows[:MOST_ROWS]:
            executed = {functions[one][1] for name in rows for one in met[name] if one in functions}
            yield Reach(experiment.name, tuple(sorted(executed)), tuple(rows), len(programs), None)
