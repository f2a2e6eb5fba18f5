# SPDX-License-Identifier: GPL-2.0-only
"""Programs that execute what a series changes.

Those of a corpus come first, the ones that reach what few others reach before the rest. Then two of
them are mixed, or one with a random program. Between them are random programs, since a defect may
show far from the change.
"""

import hashlib
import json
import os
import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import cycle, islice
from pathlib import Path

from ream.errors import ReamError
from ream.files import write_whole
from ream.kernel.cache import locked
from ream.program.changed import Name, Target
from ream.program.coverage import Code
from ream.program.explore import Corpus, mixed
from ream.program.generate import generate
from ream.program.kinds import Range
from ream.program.meeting import met as meeting
from ream.program.near import Near
from ream.program.often import shapes_of_mixtures, some_often
from ream.program.ran import Rig, Watched
from ream.program.scene import without_misplaced
from ream.program.step import Program, Step, new_step
from ream.program.text import parse
from ream.program.vary import small, varied
from ream.stage.computer import Checks

MOST_REACHING = 80
"""So many programs of the corpus are tried, those first that reach most."""
LIKE_STEPS = 20
"""The start of a computer and its end take about as long as so many steps."""
CORPUS_AT_ONCE = 4
"""So many programs of the corpus run before the next random one."""
RANDOM_STEPS = 300
MIXED_STEPS = 150


NEAR_EACH, NEAR_LONG = 5, 32
"""So many short programs run behind one of the corpus, and before a long one."""
SHORT_STEPS, SHORT_RANDOM = 8, 6
"""Steps of a short random program; one of so many short ones is random."""
SHORT_FAILING = 3
"""One of so many short programs has an allocation that fails, while changed blocks are left."""
SHORT_MEETING = 4
"""One of so many short programs has a step that a step of another process may interrupt."""
MOST_VARIED = 60
"""Longer programs are not varied."""
SHORT_DIFFERING, MOST_SHORTENED = 20, 4
"""A longer program in which the series does something else is made short, at first."""
FLUSHES = "flushes"
"""The part of the state that says which pages TLBs were told to forget."""
MOST_OF_A_KIND = 3
"""Programs that are varied since the same part differs after such a step."""
Shorter = Callable[[Program, str], Program]

NR_FAILING, MOST_FAILING = 4, 12
"""So many steps of a program fail, each in one of its first allocations."""
NR_FAVOURED = 8
"""Mixtures that are favoured in random programs."""


def met_by(
    base: Rig,
    code: Code,
    programs: Mapping[str, Program],
    cache: Path,
    *,
    only_measured: bool = False,
) -> dict[str, frozenset[int]]:
    """Return the numbers of the blocks that each program meets on the base, kept in the cache."""
    texts = "".join(f"{name}\n{program}" for name, program in sorted(programs.items()))
    made_of = base.computer.program.read_bytes() + f"{only_measured}{texts}".encode()
    path = cache / "met" / f"{hashlib.sha256(made_of).hexdigest()}.json"
    with locked(path, lambda _: None):  # another run may be finding the same
        if not path.exists():
            watched = Watched(base, dict(enumerate(code.blocks)), only_measured=only_measured)
            with ThreadPoolExecutor(os.cpu_count()) as at_once:
                each = at_once.map(lambda one: watched.run(one, Checks.NEVER)[1], programs.values())
                its = {name: sorted(met) for name, met in zip(programs, each, strict=True)}
            write_whole(path, json.dumps(its).encode())
    found = json.loads(path.read_text(encoding="utf-8"))
    return {name: frozenset(its) for name, its in found.items()}


def worth(met: Mapping[str, frozenset[int]], blocks: frozenset[int]) -> dict[str, float]:
    """Return how many of some blocks each program executes; one that few execute counts more."""
    how_often = Counter(one for its in met.values() for one in its & blocks)
    return {name: sum(1 / how_often[one] for one in its & blocks) for name, its in met.items()}


@dataclass(frozen=True)
class Attempt:
    """A program to try, and where it is from, as a person would repeat it."""

    origin: str
    program: Program


class Aim:
    """A corpus, and which blocks each of its programs executes on the base."""

    def __init__(
        self,
        corpus: Corpus,
        code: Code,
        met: Mapping[str, frozenset[int]],
        base: Rig | None = None,
    ) -> None:
        self._programs = corpus.programs
        self.code = code
        self.met = met
        """By program, the numbers of its blocks."""
        self._base = base
        self._reduced: dict[tuple[str, frozenset[int]], Program] = {}

    @classmethod
    def of(cls, base: Rig, code: Code, corpus: Corpus, cache: Path) -> "Aim":
        """Run each program once, which takes half a minute unless the cache has what they do."""
        return cls(corpus, code, met_by(base, code, corpus.programs, cache), base)

    def reaching(self, target: Target) -> list[str]:
        """The programs that execute some of it: changed lines first, and what few others reach.

        A program counts less the longer it is, since it takes as much longer.
        """
        blocks = target.blocks, self.code.numbers(target.functions)
        both = list(zip(*(worth(self.met, its).items() for its in blocks), strict=True))
        ranks = {name: (its, whole) for (name, its), (_, whole) in both if its or whole}
        steps = {name: LIKE_STEPS + len(self._programs[name]) for name in ranks}
        return sorted(
            ranks, key=lambda one: (*(-its / steps[one] for its in ranks[one]), steps[one])
        )

    def _favoured(self, target: Target) -> list[str]:
        """Mixtures with steps that programs have which execute changed lines, and others have not.

        A step counts by how much more often what is changed is executed with it than without it.
        """
        wanted = target.blocks or self.code.numbers(target.functions)
        reach = [name for name, its in self.met.items() if its & wanted]
        nr_with = Counter(shape for its in self._programs.values() for shape in _shapes(its))
        nr_reaching = Counter(shape for name in reach for shape in _shapes(self._programs[name]))
        nr = len(self._programs)

        def worth(shape: str) -> float:
            has, both = nr_with[shape], nr_reaching[shape]
            return both / max(has, 1) - (len(reach) - both) / max(nr - has, 1)

        its = {name: max(map(worth, shapes)) for name, shapes in shapes_of_mixtures().items()}
        return sorted((one for one in its if its[one] > 0), key=lambda one: -its[one])[:NR_FAVOURED]

    def executed(self, functions: frozenset[Name]) -> frozenset[Name]:
        """Return the functions of a set that at least one program of the corpus executes."""
        reached = frozenset[int]().union(*self.met.values())
        return frozenset(one for one in functions if self.code.numbers(frozenset([one])) & reached)

    def attempts(
        self,
        target: Target,
        seed: int,
        met: frozenset[int] | None = None,
        *,
        in_small: bool = False,
        only_new: bool = False,
    ) -> "Attempts":
        """Programs without end, those first that execute some of what a series changes.

        met: the changed blocks that are known to be executed; None: those that the corpus does.
        in_small: all run with little memory, for a computer that takes long to fill it. only_new:
        the programs of the corpus have run.
        """
        programs = self.reaching(target), self._programs
        reached = frozenset[int]().union(*self.met.values())
        if met is None:
            met = target.blocks & reached
        boot = frozenset.intersection(*self.met.values()) if self.met else frozenset[int]()
        own = self.code.numbers(target.functions)
        near = self._near((target.blocks & reached) - boot or (own & reached) - boot)
        favoured = self._favoured(target)
        return Attempts(
            *(*programs, favoured, met, seed),
            near=near,
            in_small=in_small,
            only_new=only_new,
            wanted=target.blocks,
        )

    def _near(self, wanted: frozenset[int]) -> Near | None:
        """What makes short programs that execute these blocks, if there is a computer for it."""
        if self._base is None:
            return None
        watched = Watched(self._base, {one: self.code.blocks[one] for one in wanted})

        def meets(program: Program) -> frozenset[int]:
            try:
                return watched.run(program, Checks.NEVER)[1]
            except ReamError:  # it reaches what the computer lacks
                return frozenset()

        met = {name: its & wanted for name, its in self.met.items() if its & wanted}
        return Near(self._programs, met, meets, self._reduced)


class Attempts(Iterator[Attempt]):
    """Programs without end: some of a corpus with random ones between them, then mixtures.

    Between all of them are short ones near what is changed. met: of the changed blocks, those that
    any program has executed so far. near: makes the short ones; None: there are none. in_small: all
    have little memory. only_new: those of the corpus are left out. wanted: the changed blocks;
    while some of them are not executed, allocations of more short programs fail.
    """

    def __init__(
        self,
        reaching: Sequence[str],
        programs: Mapping[str, Program],
        favoured: Sequence[str],
        met: frozenset[int],
        seed: int,
        *,
        near: Near | None = None,
        in_small: bool = False,
        only_new: bool = False,
        wanted: frozenset[int] = frozenset(),
    ) -> None:
        self._near, self._kinds = near, Counter[str]()
        self._wanted = wanted
        self._in_small, self._only_new = in_small, only_new
        self._reaching = list(reaching)
        self._programs = dict(programs)
        self._others = list(programs)
        self._favoured = favoured
        self.met = met
        self._its = self._made(seed)
        self._soon: list[Attempt] = []

    def __next__(self) -> Attempt:
        its = self._soon.pop() if self._soon else next(self._its)
        return replace(its, program=small(its.program)) if self._in_small else its

    def learn(self, attempt: Attempt, met: frozenset[int]) -> None:
        """Note which changed blocks a program has executed; one that is the first to is mixed."""
        if not met <= self.met:
            self.met |= met
            self._programs[attempt.origin] = attempt.program
            self._reaching.append(attempt.origin)
            self._vary(attempt)

    def differs(self, attempt: Attempt, line: int, part: str, shorter: Shorter) -> None:
        """Note that the series does something else after a line, which later steps may show.

        shorter: finds a short program with a difference in the same part.
        """
        steps = tuple(step for step in attempt.program if step.line <= line)
        kind = f"{steps[-1].shape if steps else ''}: {part}"
        self._kinds[kind] += 1
        if part == FLUSHES and self._kinds[kind] <= MOST_OF_A_KIND:
            self._soon += with_access(attempt.origin, Program(steps))
        if self._near is None or self._kinds[kind] > MOST_OF_A_KIND:
            return
        program = Program(steps)
        if len(program) > SHORT_DIFFERING and self._kinds.total() <= MOST_SHORTENED:
            program = shorter(program, part)
        self._vary(replace(attempt, program=program))

    def _vary(self, attempt: Attempt) -> None:
        if self._near and len(attempt.program) <= MOST_VARIED:
            self._near.add(attempt.origin, attempt.program)

    def _made(self, seed: int) -> Iterator[Attempt]:
        first = [] if self._only_new else self._reaching[:MOST_REACHING]
        corpus = (Attempt(name, self._programs[name]) for name in first)
        seeds = iter(range(seed, seed + (1 << 31)))
        while some := tuple(islice(corpus, CORPUS_AT_ONCE)):
            for one in some:
                yield one
                yield from self._short(seeds, NEAR_EACH)
            yield self._random(next(seeds))
        turns = cycle((self._two, self._one, self._failing, self._random))
        for turn, number in zip(turns, seeds, strict=False):
            yield from self._short(seeds, NEAR_LONG)
            yield turn(number) if self._reaching else self._random(number)

    def _short(self, seeds: Iterator[int], nr: int) -> Iterator[Attempt]:
        """Short programs near what is changed; random ones if nothing is known to execute it."""
        near = self._near
        for number in islice(seeds, nr) if near else ():
            dice = random.Random(number)  # noqa: S311
            weights = some_often(number, self._favoured)
            if near and dice.randrange(SHORT_RANDOM) and (chosen := near.choose(dice)):
                name, its = f"near {chosen[0]}, seed {number}", varied(dice, chosen[1], weights)
                if not self._wanted <= self.met and dice.randrange(SHORT_FAILING) == 0:
                    its = _failing_last(dice, chosen[1] if dice.randrange(2) else its)
            else:
                name = f"short seed {number}"
                its = varied(dice, small(generate(number, SHORT_STEPS, weights)), weights)
            if dice.randrange(SHORT_MEETING) == 0:
                its = meeting(dice, its)
            yield Attempt(name, its)

    def _two(self, seed: int) -> Attempt:
        dice = random.Random(seed)  # noqa: S311
        first, second = dice.choice(self._reaching), dice.choice(self._others)
        program = mixed(dice, self._programs[first], self._programs[second])
        return Attempt(f"{first} with {second}, seed {seed}", program)

    def _one(self, seed: int) -> Attempt:
        dice = random.Random(seed)  # noqa: S311
        first = dice.choice(self._reaching)
        other = parse(str(generate(seed, MIXED_STEPS, some_often(seed))))
        return Attempt(f"{first} with seed {seed}", mixed(dice, self._programs[first], other))

    def _failing(self, seed: int) -> Attempt:
        """Allocations of some steps fail: what is changed may be what happens then."""
        dice = random.Random(seed)  # noqa: S311
        name = dice.choice(self._reaching)
        program = with_failures(dice, self._programs[name])
        return Attempt(f"{name} with failures, seed {seed}", program)

    def _random(self, seed: int) -> Attempt:
        """Some kinds of steps are frequent in it, since all together hide each other."""
        weights = some_often(seed, self._favoured)
        return Attempt(f"seed {seed}", parse(str(generate(seed, RANDOM_STEPS, weights))))


def with_access(origin: str, program: Program) -> Iterator[Attempt]:
    """Programs in which a TLB has the pages of the last step, so that a missing flush shows."""
    *before, last = program.steps
    if isinstance(area := last.get("area"), Range):
        for verb in ("read", "write"):
            steps = (*before, new_step(verb, last.process, area=area), last)
            yield Attempt(f"{origin}, {verb} before", parse(str(Program(steps))))


def with_failures(dice: random.Random, program: Program) -> Program:
    """The same steps, with allocations that fail in some of them."""
    steps = list(program.steps)
    first = sum(step.form.declares or step.verb == "swap" for step in steps)
    for _ in range(NR_FAILING):
        at = dice.randint(first, len(steps))
        steps.insert(at, _fail(dice))
    return parse(str(without_misplaced(Program(tuple(steps)))))


def _failing_last(dice: random.Random, program: Program) -> Program:
    """The same steps, with an allocation that fails in the last one or in one of those before."""
    steps = list(program.steps)
    at = len(steps) - dice.choice((1, 1, 1, 2, 3, 4))
    steps.insert(max(at, 0), _fail(dice))
    return parse(str(without_misplaced(Program(tuple(steps)))))


def _fail(dice: random.Random) -> Step:
    """The kernel may try again at once, so now and then several fail in a row."""
    times = dice.choice((None, None, 2, 4))
    return new_step("fail", nr=1 + dice.randrange(MOST_FAILING), times=times)


def _shapes(program: Program) -> frozenset[str]:
    return frozenset(step.shape for step in program)
