# SPDX-License-Identifier: GPL-2.0-only
"""A series on a computer that hosts all of mm/: programs that reach what it changes.

All of memory is checked while they run, by rules that know nothing of the operation. So a change is
judged that no experiment has rows for.
"""

import tempfile
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from ream.counted import counted
from ream.judge.first_wrong import first_bad
from ream.judge.judgement import Examined, Finding, Wrong
from ream.judge.timed_programs import reached
from ream.kernel.diff import changed_files
from ream.kernel.same_text import undecided_files
from ream.kernel.series import Series, prefixes
from ream.kernel.source import Tree
from ream.kernel.variant import patched_files
from ream.paths import EXPERIMENTS
from ream.program.aim import Aim
from ream.program.changed import Hunk, Target
from ream.program.coverage import Code
from ream.program.entries import decoded
from ream.program.explore import Corpus
from ream.program.ran import Ran, Rig, Watched, computer_folder, numbered
from ream.program.search import Found, Searched, search, shortened
from ream.program.step import Program
from ream.progress import Reporter
from ream.stage.computer import Checks

NAME = "all of mm/"
SHRINK_S = 20.0
MOST_LINES = 24
"""Of a program in an answer."""
MOST_PLACES = 4
"""The most changed lines that a sentence names."""


def examine(
    series: Series, tree: Tree, *, within_s: float, seed: int, cache: Path, reporter: Reporter
) -> Examined:
    """Run programs on computers with and without a series until one is wrong, or time is over.

    within_s: how long they run. What was found is then made short. Raises DoesNotApply and
    DoesNotCompile for a patch, and ReamError if the tree cannot be hosted.
    """
    files = frozenset(file for one in series.patches for file in changed_files(one.body))
    with patched_files(series.patches, tree, cache=cache) as place:
        if not undecided_files(files, tree.path, place, ()):
            return Examined(same=True)
    with tempfile.TemporaryDirectory(prefix="ream-judge-") as name:
        work = Path(name)
        build = partial(Rig.of, tree, cache=cache, step=reporter.step)
        base = build((), work=work / "base")
        its = build(series.patches, work=work / "series")
        code = Code(base.computer, computer_folder())
        target = Target.of(base.computer, its.computer, code, files)
        if not target.functions:
            hosted = base.computer.objects.keys() - target.differing
            trees = base.computer.tree, its.computer.tree
            return Examined(same=not undecided_files(files, *trees, hosted))
        reporter.step(f"{NAME}: looking for programs that execute what is changed")
        corpus = next(EXPERIMENTS.glob("*/corpus"))
        aim = Aim.of(base, code, Corpus.load(corpus), cache)
        reporter.step(f"{NAME}: running programs with and without the series")
        attempts = aim.attempts(target, seed)
        watched = Watched(base, {number: code.blocks[number] for number in target.blocks})
        searched = search(watched, its, attempts, within_s=within_s)
        examined = _examined(target, files, base, attempts.met, searched)
        if (found := searched.found) is None or found.differs is not None:
            reporter.step(f"{NAME}: finding rows that execute what is changed")
            examined = replace(examined, reached=tuple(reached(base, code, target, cache)))
        if found is None:
            return examined
        reporter.step(f"{NAME}: making the program short in which the series does something else")
        program = numbered(shortened(base, its, found, within_s=SHRINK_S))
        if found.differs is not None:
            return replace(examined, differs=_differs(program, found))
        expected = base.run(program, goes_on=True)
        ran = its.run(program, goes_on=True).beyond(expected)

        def is_wrong(beginning: Series) -> bool:
            place = work / f"first-{len(beginning.patches)}"
            built = build(beginning.patches, work=place)
            return ran.kind in built.run(program, goes_on=True).kinds

        number = first_bad(prefixes(series), is_wrong, reporter)
        first = None if number is None else (number, series.patches[number - 1].subject)
        places = _places(target, watched, program)
        shown = _finding(program, ran, places)
        said = tuple(_said(shown, program, places))
        return replace(examined, wrong=Wrong(corpus.parent.name, said, first, shown))


def _examined(
    target: Target, files: Collection[str], base: Rig, met: frozenset[int], searched: Searched
) -> Examined:
    functions = tuple(sorted({name for _, name in target.functions}))
    done = searched.nr_programs, searched.nr_steps
    entered = target.executed(met)
    missed = tuple(sorted(str(one) for one in target.hunks if one not in entered))
    own = base.computer.objects
    sources = tuple(sorted(one for one in files if f"{one.removesuffix('.c')}.o" in own))
    return Examined(functions, len(target.blocks), len(met), *done, missed, files=sources)


def _differs(program: Program, found: Found) -> str:
    assert found.differs is not None
    last = str(list(program)[-1])
    return f"after `{last}`, {found.differs[1]} is other than without it ({found.attempt.origin})"


def _places(target: Target, base: Watched, program: Program) -> list[Hunk]:
    """The changed lines that a program executes; first those that only its last step does."""
    before = Program(program.steps[:-1])
    (_, met), (_, earlier) = (base.run(one, Checks.NEVER) for one in (program, before))
    last = target.executed(met - earlier)
    return last + [one for one in target.executed(met) if one not in last]


def _finding(program: Program, ran: Ran, places: Sequence[Hunk]) -> Finding:
    line, text = ran.alarms[0]
    steps = {step.line: str(step) for step in program}
    where = f"after `{steps[line]}`" if line in steps else "at the end"
    nearest = (places[0].file, places[0].after[0]) if places else (None, None)
    message = f"{where}: {decoded(text)}"
    return Finding(ran.kind, message, steps.get(line), "\n".join(steps.values()), *nearest)


def _said(found: Finding, program: Program, places: Sequence[Hunk]) -> Iterator[str]:
    """What is wrong, which changed lines are executed, and the program that shows it."""
    yield found.message
    if places:
        yield f"of the changed lines it executes {', '.join(map(str, places[:MOST_PLACES]))}"
    how = "`ream program FILE --series PATCH`, or --c for a C program"
    yield f"a program of {counted(len(program), 'step')} shows it ({how}):"
    shown = [f"  {step}" for step in program][:MOST_LINES]
    yield from shown
    if len(shown) < len(program):
        yield f"  and {len(program) - len(shown)} further steps"
