# SPDX-License-Identifier: GPL-2.0-only
"""Short programs that execute what a series changes, to be varied.

Each is one of a corpus from which all is deleted that a changed block does not need. It has a tenth
of the steps, runs in a tenth of the time, and what is put into it meets the changed code.
"""

import random
from collections import Counter
from collections.abc import Callable, Mapping, MutableMapping
from typing import Any

from ream.program.shrink import shrink
from ream.program.step import Program
from ream.program.text import parse
from ream.program.vary import small

MOST_RUNS = 45
"""So many runs may be made to reduce a program: what is varied is the same on any machine."""
MOST_SEEDS = 24
MOST_FOUND = 24
"""Varied programs that are varied again, since they met a block first or showed a difference."""

Meets = Callable[[Program], frozenset[int]]
"""The numbers of the blocks that a program executes, of those that are asked for."""


class Near:
    """Seeds, which are made as they are needed: one for each block, the rarest first.

    Those that come then execute all wanted blocks that some program of the corpus does.

    met: what programs execute of the wanted blocks, by name. meets: runs a program. reduced: seeds
    that are known, by the program that they are from and the blocks that they need.
    """

    def __init__(
        self,
        programs: Mapping[str, Program],
        met: Mapping[str, frozenset[int]],
        meets: Meets,
        reduced: MutableMapping[tuple[str, frozenset[int]], Program] | None = None,
    ) -> None:
        self._programs, self._met, self._meets = programs, met, meets
        self._reduced = {} if reduced is None else reduced
        self._left = sorted(met)
        how_often = Counter(one for its in met.values() for one in its)
        self._blocks = sorted(how_often, key=lambda one: (how_often[one], one))
        self._covered = set[int]()
        self.seeds: list[tuple[str, Program]] = []
        self._found: list[tuple[str, Program]] = []

    def choose(self, dice: random.Random) -> tuple[str, Program] | None:
        """A seed; None if no program executes what is wanted. New ones are made now and then."""
        if not self.seeds or (len(self.seeds) < MOST_SEEDS and dice.randrange(8) == 0):
            self._add(dice)
        if self._found and (not self.seeds or dice.randrange(2)):
            return dice.choice(self._found)
        return dice.choice(self.seeds) if self.seeds else None

    def add(self, name: str, program: Program) -> None:
        """Vary this one, too."""
        if len(self._found) < MOST_FOUND:
            self._found.append((name, program))

    def _add(self, dice: random.Random) -> None:
        while self._blocks and self._blocks[0] in self._covered:
            self._blocks.pop(0)
        if self._blocks:
            block = self._blocks[0]
            having = [name for name in self._left if block in self._met[name]]
            name = min(having, key=lambda one: len(self._programs[one]))
            needed = frozenset({block})
            self._covered.add(block)
        elif self._left:
            some = dice.choices(self._left, k=3)
            name = min(some, key=lambda one: len(self._programs[one]))
            needed = self._met[name]
        else:
            return
        if (name, needed) not in self._reduced:
            self._reduced[name, needed] = self._without_rest(self._programs[name], needed)
        its = self._reduced[name, needed]
        self._covered |= self._meets(its)
        if all(its != one for _, one in self.seeds):
            self.seeds.append((name, its))

    def _without_rest(self, program: Program, needed: frozenset[int]) -> Program:
        if not needed <= self._meets(small(program)):
            return in_few_runs(program, lambda one: needed <= self._meets(one), MOST_RUNS)
        short = in_few_runs(program, lambda one: needed <= self._meets(small(one)), MOST_RUNS)
        return small(short)


def in_few_runs(program: Program, fits: Callable[[Program], bool], most: int) -> Program:
    """Leave out steps without which a program still fits, as far as so many runs show."""
    nr_runs = 0

    def still_fits(shorter: Program) -> bool:
        nonlocal nr_runs
        nr_runs += 1
        return fits(parse(str(shorter)))

    how: Any = {"only_deletes": True, "now": lambda: nr_runs}
    return parse(str(shrink(program, still_fits, within_s=most, **how)))
