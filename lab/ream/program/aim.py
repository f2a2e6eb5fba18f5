# SPDX-License-Identifier: GPL-2.0-only
"""Programs that execute the functions which a series changes.

Those of a corpus come first, the ones that reach what few others reach before the rest. Then two of
them are mixed, or one with a random program. Between them are random programs, since a defect may
show far from the change.
"""

import hashlib
import json
import random
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path

from ream.files import write_whole
from ream.kernel.objects import differences
from ream.program.coverage import Code
from ream.program.explore import Corpus, Explorer, mixed
from ream.program.generate import generate
from ream.program.ran import Rig, computer_folder
from ream.program.step import Program
from ream.program.text import parse
from ream.stage.computer import Checks, Computer

CORPUS_AT_ONCE = 4
"""So many programs of the corpus run before the next random one."""
RANDOM_STEPS = 500
MIXED_STEPS = 150

Name = tuple[str, str]
"""A function: its object and its own name."""


@dataclass(frozen=True)
class Attempt:
    """A program to try, and where it is from, as a person would repeat it."""

    origin: str
    program: Program


def changed(base: Computer, series: Computer) -> frozenset[Name]:
    """The functions that a series changes or adds, of what both computers host."""
    found = set[Name]()
    for name, path in series.objects.items():
        if name in base.objects:
            its = differences(base.objects[name], path)
            found.update((name, function) for function in (*its.changed, *its.added))
    return frozenset(found)


class Aim:
    """A corpus, and which functions each of its programs executes on the base."""

    def __init__(self, corpus: Corpus, met: Mapping[str, frozenset[Name]]) -> None:
        self._programs = corpus.programs
        self.met = met

    @classmethod
    def of(cls, base: Rig, corpus: Corpus, cache: Path) -> "Aim":
        """Run each program once, which takes half a minute unless the cache has what they do."""
        texts = "".join(f"{name}\n{program}" for name, program in sorted(corpus.programs.items()))
        made_of = base.computer.program.read_bytes() + texts.encode()
        path = cache / "met" / f"{hashlib.sha256(made_of).hexdigest()}.json"
        if path.exists():
            found = json.loads(path.read_text(encoding="utf-8"))
            return cls(corpus, {it: frozenset(map(tuple, met)) for it, met in found.items()})
        code = Code(base.computer, computer_folder())
        owners = {at: (one.object, one.name) for one in code.functions for at in one.blocks}
        explorer = Explorer(base, code, corpus)
        met = {}
        for name, program in corpus.programs.items():
            _, numbers = explorer.run(program, Checks.NEVER)
            met[name] = frozenset(owners[code.blocks[number]] for number in numbers)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, json.dumps({it: sorted(its) for it, its in met.items()}).encode())
        return cls(corpus, met)

    def reaching(self, functions: frozenset[Name]) -> list[str]:
        """The programs that execute some of these, with those of rarely executed ones first."""
        how_often = Counter(one for its in self.met.values() for one in its & functions)
        worth = {
            name: sum(1 / how_often[one] for one in its & functions)
            for name, its in self.met.items()
        }
        reach = [name for name in self._programs if worth.get(name)]
        return sorted(reach, key=lambda name: (-worth[name], len(self._programs[name])))

    def executed(self, functions: frozenset[Name]) -> frozenset[Name]:
        """Return the functions of a set that at least one program of the corpus executes."""
        return frozenset(one for its in self.met.values() for one in its & functions)

    def attempts(self, functions: frozenset[Name], seed: int) -> Iterator[Attempt]:
        """Programs without end, those first that execute some of these functions."""
        reaching = self.reaching(functions)
        corpus = (Attempt(name, self._programs[name]) for name in reaching)
        seeds = iter(range(seed, seed + (1 << 31)))
        while some := tuple(islice(corpus, CORPUS_AT_ONCE)):
            yield from some
            yield _random(next(seeds))
        turns = cycle((self._two, self._one, None) if reaching else (None,))
        for turn, number in zip(turns, seeds, strict=False):
            yield turn(number, reaching) if turn else _random(number)

    def _two(self, seed: int, reaching: list[str]) -> Attempt:
        dice = random.Random(seed)  # noqa: S311
        first, second = dice.choice(reaching), dice.choice(list(self._programs))
        program = mixed(dice, self._programs[first], self._programs[second])
        return Attempt(f"{first} with {second}, seed {seed}", program)

    def _one(self, seed: int, reaching: list[str]) -> Attempt:
        dice = random.Random(seed)  # noqa: S311
        first = dice.choice(reaching)
        other = parse(str(generate(seed, MIXED_STEPS)))
        return Attempt(f"{first} with seed {seed}", mixed(dice, self._programs[first], other))


def _random(seed: int) -> Attempt:
    return Attempt(f"seed {seed}", parse(str(generate(seed, RANDOM_STEPS))))
