# SPDX-License-Identifier: GPL-2.0-only
"""Runs programs that reach changed code on a computer that hosts all of mm/.

All of memory is checked while they run, by rules that do not depend on the operation. So a change
can be judged for which no experiment has rows.
"""

from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any, Self

from ream.counted import counted
from ream.errors import ReamError
from ream.judge.first_wrong import first_bad
from ream.judge.judgement import Examined, Finding, SourceLine, Wrong
from ream.judge.timed_programs import reached
from ream.kernel.build import options
from ream.kernel.diff import changed_files
from ream.kernel.same_text import undecided_files
from ream.kernel.series import Patch, Series, prefixes
from ream.kernel.setup import named_config
from ream.kernel.source import Tree
from ream.kernel.variant import patched_files
from ream.paths import EXPERIMENTS
from ream.program.aim import Aim, Attempts
from ream.program.changed import Hunk, Line, Target, differing, with_lines_as_before
from ream.program.coverage import Code
from ream.program.entries import decoded
from ream.program.explore import Corpus
from ream.program.ran import (
    Ran,
    Rig,
    Watched,
    computer_folder,
    difference,
    difference_words,
    numbered,
    place,
)
from ream.program.reproducer import unperformed
from ream.program.search import Found, Searched, search, shortened
from ream.program.step import Program
from ream.program.vary import small
from ream.program.written import Written
from ream.progress import Reporter
from ream.stage.computer import Checks

NAME = "all of mm/"
DEBUG = "debug"
"""The configuration with the kernel's own assertions."""
DISTRO = "distro"
"""The configuration that compiles most of mm/ in distributions' kernels."""
MAY_BE_COMPILED = ("mm/", "include/", "fs/", "kernel/", "arch/x86/")
"""Folders with code that another configuration may compile differently."""
SHRINK_S = 20.0
MOST_LINES = 24
"""The most lines of a program that are shown in an answer."""
MOST_PLACES = 4
"""The most changed lines that a sentence names."""


@dataclass(frozen=True)
class _Question:
    """A series, the files that it changes, and how long programs run in each configuration."""

    series: Series
    files: frozenset[str]
    within_s: float
    seed: int
    cache: Path
    reporter: Reporter
    is_further: bool


@dataclass(frozen=True)
class _Pair:
    """Two computers of a tree, without a series and with it.

    target: what is changed of the base's code. written: the changed lines in the series' code.
    config: the name of the configuration that the tree has, if none was asked for.
    """

    tree: Tree
    work: Path
    base: Rig
    its: Rig
    code: Code
    target: Target
    written: Written
    config: str | None

    @classmethod
    def of(cls, asked: _Question, tree: Tree, work: Path, config: str | None = None) -> Self:
        """Build both computers in a new directory."""
        work.mkdir()
        how = f" in the configuration {config}" if config else ""
        asked.reporter.step(f"{NAME}: building it without the series and with it{how}")
        build = partial(Rig.of, tree, cache=asked.cache, step=asked.reporter.step)
        base = build((), work=work / "base")
        its = build(asked.series.patches, work=work / "series")
        both = base.computer, its.computer
        code, own = (Code(one, computer_folder()) for one in both)
        with ThreadPoolExecutor(1) as beside:  # both compile each object that differs
            written = beside.submit(Written.of, *both, own, asked.files)
            target = Target.of(*both, code, asked.files)
        return cls(tree, work, base, its, code, target, written.result(), config)


@dataclass
class Pairs:
    """The pairs of computers of a judgement, by configuration, in its temporary directory."""

    work: Path
    _built: dict[str | None, _Pair] = field(default_factory=dict)
    _elsewhere: _Pair | None = None

    def of(self, asked: _Question, tree: Tree, config: str | None = None) -> _Pair:
        """Return the pair of a configuration, which is built only once."""
        if config not in self._built:
            its = _configured(tree, config) if config else tree
            self._built[config] = _Pair.of(asked, its, self.work / (config or "asked"), config)
        return self._built[config]

    def elsewhere(self, asked: _Question, tree: Tree) -> _Pair | None:
        """Return the pair of the first other configuration in which the series changes code."""
        may_be = any(file.startswith(MAY_BE_COMPILED) for file in asked.files)
        if tree.setup.config or not may_be or self._elsewhere is not None:
            return self._elsewhere
        for name in (DEBUG, DISTRO):
            try:
                pair = self.of(asked, tree, name)
            except ReamError as cause:  # this kernel cannot be hosted in this configuration
                asked.reporter.step(f"{NAME}: not in the configuration {name}: {cause}")
                continue
            if pair.target.functions and not _is_moved_alone(asked, pair):
                self._elsewhere = pair
                break
        return self._elsewhere


@dataclass(frozen=True)
class _Tried:
    """Results of programs on a pair, and the changed blocks that they executed.

    watched: the pair's base, which finds the blocks that a program executes.
    """

    pair: _Pair
    searched: Searched
    met: frozenset[int]
    watched: Watched

    @classmethod
    def of(cls, asked: _Question, pair: _Pair, attempts: Attempts) -> Self:
        """Run programs for the time that the question gives."""
        how = f" in the configuration {pair.config}" if pair.config else ""
        asked.reporter.step(f"{NAME}: running programs with and without the series{how}")
        blocks = {one: pair.code.blocks[one] for one in pair.target.blocks}
        watched = Watched(pair.base, blocks)
        own = Watched(pair.its, {one: one for one in pair.written.addresses})
        searched = search(watched, own, attempts, within_s=asked.within_s)
        return cls(pair, searched, attempts.met, watched)

    @property
    def lines(self) -> frozenset[Line]:
        """The changed lines that programs executed with the series."""
        return self.pair.written.executed(self.searched.met)

    @property
    def is_wrong(self) -> bool:
        """Whether there was an alarm, and not only a difference from the base."""
        return self.searched.found is not None and self.searched.found.differs is None


def examine(
    series: Series,
    tree: Tree,
    pairs: Pairs,
    *,
    within_s: float,
    seed: int,
    cache: Path,
    reporter: Reporter,
    is_further: bool = False,
) -> Examined:
    """Run programs on computers with and without a series until one is wrong, or time is over.

    within_s: how long they run: half of it as the kernel was asked for, and half, unless its
    configuration was asked for, with the kernel's own assertions. What was found is then made
    short. pairs: of this series and tree. is_further: the programs of the corpus have run, and only
    those drawn by the seed do. Raises DoesNotApply and DoesNotCompile for a patch, and ReamError if
    the tree cannot be hosted.
    """
    files = frozenset(file for one in series.patches for file in changed_files(one.body))
    with patched_files(series.patches, tree, cache=cache) as place:
        if not undecided_files(files, tree.path, place, ()):
            return Examined(same=True)
    asked = _Question(series, files, within_s / 2, seed, cache, reporter, is_further)
    first = pairs.of(asked, tree)
    pair = first if first.target.functions else pairs.elsewhere(asked, tree)
    if pair is None:
        base, its = first.base.computer, first.its.computer
        hosted = base.objects.keys() - first.target.differing
        return Examined(same=not undecided_files(files, base.tree, its.tree, hosted))
    reporter.step(f"{NAME}: looking for programs that execute what is changed")
    aim = _aim(asked, first)
    tried = _Tried.of(asked, pair, _attempts(asked, aim, pair))
    examined = _examined(tried, files)
    if not tried.is_wrong and pair is first:
        second = _second(asked, pairs, aim, tried)
        if second is not None:
            examined = _with_more(examined, second)
            tried = second if second.is_wrong else tried
    if not tried.is_wrong and not is_further:
        reporter.step(f"{NAME}: finding rows that execute what is changed")
        rows = reached(pair.base, pair.code, pair.target, cache) if pair is first else ()
        examined = replace(examined, reached=tuple(rows))
    return _with_found(examined, asked, tried)


def _with_found(examined: Examined, asked: _Question, tried: _Tried) -> Examined:
    """Add a finding, if there is one, with a shortened program and the first wrong patch."""
    pair, found = tried.pair, tried.searched.found
    if found is None:
        return examined
    asked.reporter.step(f"{NAME}: making the program short in which the series does something else")
    program = numbered(shortened(pair.base, pair.its, found, within_s=SHRINK_S))
    if found.differs is not None:
        runs = pair.base.run(program), pair.its.run(program)
        differing = "\n".join(map(str, program))
        return replace(examined, differs=_differs(program, found, *runs), differing=differing)
    ran = pair.its.run(program, goes_on=True).beyond(pair.base.run(program, goes_on=True))

    def is_wrong(beginning: Series) -> bool:
        place = pair.work / f"first-{len(beginning.patches)}"
        how: Any = {"cache": asked.cache, "work": place, "step": asked.reporter.step}
        rig = Rig.of(pair.tree, beginning.patches, **how)
        return ran.kind in rig.run(program, goes_on=True).kinds

    number = first_bad(prefixes(asked.series), is_wrong, asked.reporter)
    first = None if number is None else (number, asked.series.patches[number - 1].subject)
    places = _places(pair.target, tried.watched, program)
    places.sort(key=lambda hunk: _only_adds_text(hunk, pair.written))
    if number is not None:
        own = asked.series.patches[number - 1]
        places.sort(key=lambda hunk: not _is_of(own, hunk, pair))
    places = [_narrowed(hunk, pair.written) for hunk in places]
    config = pair.config or pair.tree.setup.word or None
    shown = replace(_finding(program, ran, places), config=config)
    said = tuple(_said(shown, program, places))
    experiment = next(EXPERIMENTS.glob("*/corpus")).parent.name
    return replace(examined, wrong=Wrong(experiment, said, first, shown))


def _is_moved_alone(asked: _Question, pair: _Pair) -> bool:
    """Whether a series only moves lines in a configuration."""
    patch = with_lines_as_before(pair.base.computer.tree, pair.its.computer.tree, asked.files)
    if patch is None:
        return False
    how: Any = {"cache": asked.cache, "work": pair.work / "lines", "step": asked.reporter.step}
    try:
        its = Rig.of(pair.tree, (*asked.series.patches, patch), **how)
    except ReamError:  # a #line directive does not compile everywhere
        return False
    found = differing(pair.base.computer, its.computer).values()
    return not any(one.changed or one.added for one in found)


def _second(asked: _Question, pairs: Pairs, aim: Aim, first: _Tried) -> _Tried | None:
    """Run programs in another configuration, which may execute more of what is changed.

    None if a configuration was requested.
    """
    tree, target = first.pair.tree, first.pair.target
    if tree.setup.config:
        return None
    is_executed = bool(first.met) or bool(aim.executed(target.functions))
    name = DEBUG if is_executed else DISTRO
    pair = pairs.of(asked, tree, name)
    if name == DISTRO:
        return _Tried.of(asked, pair, _attempts(asked, aim, pair))
    # The programs are the same; the blocks of this pair that they execute are found as they run.
    how: Any = {"in_small": _poisons(pair.tree), "only_new": asked.is_further}
    attempts = aim.attempts(target, asked.seed, met=frozenset(), **how)
    return _Tried.of(asked, pair, attempts)


def _poisons(tree: Tree) -> bool:
    """Whether free memory is poisoned, which dominates the time unless memory is small."""
    return options(tree.setup.config).get("PAGE_POISONING") == "y"


def _aim(asked: _Question, pair: _Pair) -> Aim:
    corpus = Corpus.load(next(EXPERIMENTS.glob("*/corpus")))
    if _poisons(pair.tree):
        in_small = {name: small(its) for name, its in corpus.programs.items()}
        corpus = replace(corpus, programs=in_small)
    return Aim.of(pair.base, pair.code, corpus, asked.cache)


def _attempts(asked: _Question, aim: Aim, pair: _Pair) -> Attempts:
    """Return programs for a pair in any configuration.

    aim: the aim in the requested configuration. Programs that execute the changed functions there
    also do so in others. If none does, the corpus is run on this pair, which takes a minute once.
    """
    functions, seed = pair.target.functions, asked.seed
    how: Any = {"in_small": _poisons(pair.tree), "only_new": asked.is_further}
    if pair.config is None:
        return aim.attempts(pair.target, seed, **how)
    if aim.executed(functions):
        return aim.attempts(Target(functions, frozenset()), seed, met=frozenset(), **how)
    return _aim(asked, pair).attempts(pair.target, seed, **how)


def _configured(tree: Tree, name: str) -> Tree:
    """Return the same kernel in another configuration."""
    its = named_config(name, "native")
    return tree.built(replace(tree.setup, config=its.config, name=its.name))


def _with_more(examined: Examined, second: _Tried) -> Examined:
    """Add the results of another configuration, and what is executed only there."""
    searched = second.searched
    more = replace(
        examined,
        nr_programs=examined.nr_programs + searched.nr_programs,
        nr_steps=examined.nr_steps + searched.nr_steps,
        unexecuted=tuple(
            one for one in examined.unexecuted if (one.file, one.line) not in second.lines
        ),
    )
    if examined.nr_entered or not second.met or second.pair.config != DISTRO:
        return more
    its = _examined(second, examined.files)
    return replace(its, nr_programs=more.nr_programs, nr_steps=more.nr_steps, files=more.files)


def _examined(tried: _Tried, files: Collection[str]) -> Examined:
    target, met = tried.pair.target, tried.met
    functions = tuple(sorted({name for _, name in target.functions}))
    done = tried.searched.nr_programs, tried.searched.nr_steps
    entered = target.executed(met)
    missed = tuple(sorted(str(one) for one in target.hunks if one not in entered))
    own = tried.pair.base.computer.objects
    sources = tuple(sorted(one for one in files if f"{one.removesuffix('.c')}.o" in own))
    its = functions, len(target.blocks), len(met), *done, missed
    lines = tuple(_unexecuted(tried))
    return Examined(*its, unexecuted=lines, files=sources, config=tried.pair.config)


def _unexecuted(tried: _Tried) -> Iterator[SourceLine]:
    """Yield changed lines with code that no program executed, without lines of only braces."""
    tree, executed = tried.pair.its.computer.tree, tried.lines
    for file, some in groupby(sorted(tried.pair.written.blocks), lambda one: one[0]):
        texts = _text_of(tree / file)
        for line in some:
            text = " ".join(texts[line[1] - 1].split())
            if line not in executed and any(map(str.isalnum, text)):
                yield SourceLine(file, line[1], text)


def _differs(program: Program, found: Found, base: Ran, its: Ran) -> str:
    assert found.differs is not None
    last = program.steps[-1].line
    differs = difference(base, its) or (last, found.differs[1])
    return f"{difference_words(differs, base, its, program)}, which may be meant"


def _places(target: Target, base: Watched, program: Program) -> list[Hunk]:
    """Return changed lines that a program executes, first those that only its last step does."""
    before = Program(program.steps[:-1])
    (_, met), (_, earlier) = (base.run(one, Checks.NEVER) for one in (program, before))
    last = target.executed(met - earlier)
    return last + [one for one in target.executed(met) if one not in last]


def _only_adds_text(hunk: Hunk, written: Written) -> bool:
    """Whether a hunk only adds lines without code, such as a comment."""
    first, last = hunk.before
    return last < first and not _lines_with_code(hunk, written)


def _narrowed(hunk: Hunk, written: Written) -> Hunk:
    """Return the hunk from the first to the last of its lines with code, if there are any."""
    lines = _lines_with_code(hunk, written)
    return replace(hunk, after=(lines[0], lines[-1])) if lines else hunk


def _lines_with_code(hunk: Hunk, written: Written) -> list[int]:
    first, last = hunk.after
    return sorted(n for file, n in written.blocks if file == hunk.file and first <= n <= last)


def _is_of(patch: Patch, hunk: Hunk, pair: _Pair) -> bool:
    """Whether a patch contains a changed line of a hunk of the whole series."""
    lines = set[str]()
    for text in patch.body.decode(errors="replace").split("\n+++ ")[1:]:
        file, _, rest = text.partition("\n")
        if file.split("\t")[0].rstrip().endswith(f"/{hunk.file}"):
            lines |= {one[1:].strip() for one in rest.splitlines() if one.startswith(("+", "-"))}
    both = (pair.base.computer.tree, hunk.before), (pair.its.computer.tree, hunk.after)
    return any(
        line.strip() and line.strip() in lines
        for tree, (first, last) in both
        for line in _text_of(tree / hunk.file)[first - 1 : last]
    )


def _text_of(path: Path) -> list[str]:
    return path.read_text(errors="replace").splitlines() if path.is_file() else []


def _finding(program: Program, ran: Ran, places: Sequence[Hunk]) -> Finding:
    line, text = ran.alarms[0]
    steps = {step.line: str(step) for step in program}
    nearest = (places[0].file, places[0].after[0]) if places else (None, None)
    message = f"{place(line, program)}: {decoded(text)}"
    return Finding(ran.kind, message, steps.get(line), "\n".join(steps.values()), *nearest)


def _said(found: Finding, program: Program, places: Sequence[Hunk]) -> Iterator[str]:
    """Yield what is wrong, the changed lines that are executed, and the program that shows it."""
    yield found.message
    if places:
        yield f"of the changed lines it executes {', '.join(map(str, places[:MOST_PLACES]))}"
    left_out = sorted(unperformed(program, sets=True))
    where = f" in the configuration {found.config}" if found.config else ""
    yield f"a program of {counted(len(program), 'step')} shows it{where}:"
    shown = [f"  {step}" for step in program][:MOST_LINES]
    yield from shown
    if len(shown) < len(program):
        yield f"  and {len(program) - len(shown)} further steps"
    if not found.config:
        yield _of_c_program(left_out)


def _of_c_program(left_out: Sequence[str]) -> str:
    """Return advice on `ream program --c`.

    The program was shortened as far as possible, so each of its steps is needed.
    """
    if not left_out:
        return "`ream program --c` makes a C program of it, which checks only what it reads"
    names = " and ".join(filter(None, (", ".join(left_out[:-1]), left_out[-1])))
    return f"a C program would leave out {names}, and so would not show it"
