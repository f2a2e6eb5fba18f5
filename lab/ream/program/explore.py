# SPDX-License-Identifier: GPL-2.0-only
"""Looks for programs that execute more of a computer's code, and keeps them as a corpus.

A corpus is a folder: a file with all programs, and one with the state in which each ends.
"""

import random
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from ream.errors import ReamError
from ream.files import write_whole
from ream.program.collection import COLLECTION, texts_in, write_texts
from ream.program.coverage import Code
from ream.program.generate import generate
from ream.program.often import some_often
from ream.program.ran import Ran, Rig, Watched, shortest
from ream.program.scene import without_misplaced
from ream.program.shrink import shrink
from ream.program.step import Program
from ream.program.text import parse
from ream.program.withheld import Withheld
from ream.stage.computer import Checks

PROGRAMS = f"all{COLLECTION}"
DIGESTS = "digests.txt"
"""A line for each program: its name, and the digest of the state in which it ends."""

MOST_BYTES = 600_000
"""The texts of a corpus may have so many bytes together."""
MOST_STEPS = 400
MINIMISE_S = 4.0
"""For one program."""
SHORTEN_S = 30.0
"""For one program in which something is wrong."""
WRONG = "wrong"
"""A folder in a corpus's: programs in which something was found wrong. It is never committed."""


@dataclass
class Corpus:
    """The programs of a folder, by name, and what all together execute."""

    folder: Path
    programs: dict[str, Program] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    """With the comments of those that were written by hand."""
    digests: dict[str, str] = field(default_factory=dict)
    met: set[int] = field(default_factory=set)

    @classmethod
    def load(cls, folder: Path) -> "Corpus":
        """Read the texts; none has been run."""
        path = folder / PROGRAMS
        texts = texts_in(path) if path.exists() else {}
        programs = {name: parse(text, f"{path}:{name}") for name, text in texts.items()}
        return cls(folder, programs, texts)

    @property
    def bytes(self) -> int:
        """How many bytes the texts of all programs have."""
        return sum(len(str(program)) for program in self.programs.values())

    def add(self, program: Program, digest: str) -> str:
        """Keep a program under the next free number, which is returned."""
        numbers = [int(name) for name in self.programs if name.isdecimal()]
        name = f"{max(numbers, default=0) + 1:03}"
        self.put(name, program, digest)
        return name

    def put(self, name: str, program: Program | None, digest: str) -> None:
        """Have this program, or none, under a name."""
        self.folder.mkdir(parents=True, exist_ok=True)
        if program is None:
            del self.programs[name], self.texts[name], self.digests[name]
        else:
            self.programs[name], self.texts[name] = program, str(program)
            self.digests[name] = digest
        write_texts(self.folder / PROGRAMS, self.texts)
        self.write_digests()

    def put_aside(self, program: Program) -> Path:
        """Write down a program in which something is wrong; where."""
        folder = self.folder / WRONG
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{len(list(folder.iterdir())) + 1:03}.program"
        write_whole(path, str(program).encode())
        return path

    def write_digests(self) -> None:
        """Note in which state each program ends."""
        lines = "".join(f"{name} {its}\n" for name, its in sorted(self.digests.items()))
        write_whole(self.folder / DIGESTS, lines.encode(), force=True)


class Explorer:
    """Runs programs on a computer, and keeps those that execute what none did before."""

    def __init__(self, rig: Rig, code: Code, corpus: Corpus) -> None:
        self._rig = rig
        self.corpus = corpus
        self.code = code
        self._watched = Watched(rig, dict(enumerate(code.blocks)))

    def run(self, program: Program, checks: Checks = Checks.LAST) -> tuple[Ran, frozenset[int]]:
        """What a program does, and the numbers of the blocks that it meets."""
        return self._watched.run(program, checks)

    def replay(self) -> Iterator[tuple[str, Ran]]:
        """Run the programs of the corpus as they are; by name, what each did."""
        for name, program in self.corpus.programs.items():
            ran, met = self.run(program)
            self.corpus.met |= met
            self.corpus.digests[name] = ran.digest
            yield name, ran

    def explore(self, dice: random.Random, ends_at: float) -> Iterator[str]:
        """Until the time is over, try programs; a line for each that is kept or is wrong."""
        while (left_s := ends_at - time.monotonic()) > 0:
            origin, program = self._draw(dice)
            try:
                ran, met = self.run(program)
            except ReamError as fault:  # it reaches what the computer lacks
                yield f"{origin}: {fault}"
                continue
            if ran.is_wrong:
                yield f"{origin}: {self._wrong(program, ran)}"
                continue
            new = met - self.corpus.met
            if new:
                yield self._keep(program, new, min(MINIMISE_S, left_s), origin)
            if self.corpus.bytes > MOST_BYTES:
                yield from self.make_room(ends_at)

    def _wrong(self, program: Program, ran: Ran) -> str:
        """Put a shortened program aside, unless its alarm is not to be shown."""
        program = shortest(self._rig, program, ran, within_s=SHORTEN_S)
        if hidden := Withheld.load().put_away(ran, program):
            return hidden
        (_, text), *_ = ran.alarms  # its line is of the longer program
        return f"WRONG: {text}; {self.corpus.put_aside(program)}"

    def _draw(self, dice: random.Random) -> tuple[str, Program]:
        """A random program with a mixture of its own, or one made of two of the corpus."""
        programs = self.corpus.programs
        if programs and dice.randrange(2):
            (first, head), (second, tail) = (dice.choice(list(programs.items())) for _ in "ab")
            return f"{first} with {second}", mixed(dice, head, tail)
        seed, nr_steps = dice.randrange(1 << 31), dice.choice((60, 150, 300))
        return f"seed {seed}", parse(str(generate(seed, nr_steps, some_often(seed))))

    def make_room(self, ends_at: float) -> Iterator[str]:
        """Leave out programs and steps that execute nothing that others do not, too.

        Those whose name is no number were written by hand, and stay as they are.
        """
        met = {name: self.run(its, Checks.NEVER)[1] for name, its in self.corpus.programs.items()}
        how_often = Counter(block for its in met.values() for block in its)
        for name in sorted(met, key=lambda name: -len(str(self.corpus.programs[name]))):
            if time.monotonic() >= ends_at:
                return
            if not name.isdecimal():
                continue
            before = self.corpus.programs[name]
            needed = {it for it in met[name] if how_often[it] == 1}
            program = self._shortest(before, frozenset(needed)) if needed else None
            ran, its = self.run(program) if program else (Ran(), frozenset[int]())
            if ran.is_wrong or not needed <= its:
                continue
            how_often.subtract(met[name])
            how_often.update(its)
            self.corpus.put(name, program, ran.digest)
            yield f"{name}: {len(before)} steps, {len(program) if program else 0} of them needed"

    def _shortest(
        self, program: Program, needed: frozenset[int], within_s: float = MINIMISE_S
    ) -> Program:
        """A program with fewer of the steps that meets the same blocks of some."""

        def still_meets(shorter: Program) -> bool:
            try:
                ran, met = self.run(parse(str(shorter)), Checks.NEVER)
            except ReamError:
                return False
            return not ran.is_wrong and needed <= met

        return parse(str(shrink(program, still_meets, within_s=within_s, only_deletes=True)))

    def _keep(self, program: Program, new: frozenset[int], within_s: float, origin: str) -> str:
        program = self._shortest(program, new, within_s)
        ran, met = self.run(program)
        if ran.is_wrong or not new <= met:
            return f"{origin}: without steps that it did not need, it does something else"
        self.corpus.met |= met
        name = self.corpus.add(program, ran.digest)
        return f"{origin}: kept as {name}, {len(program)} steps for {len(new)} new blocks"


def mixed(dice: random.Random, head: Program, tail: Program) -> Program:
    """A program with the end of another one somewhere in it, as far as the steps fit."""
    cut = dice.randrange(len(head) + 1)
    steps = head.steps[:cut] + tail.steps[dice.randrange(len(tail)) :] + head.steps[cut:]
    return parse(str(without_misplaced(Program(steps[:MOST_STEPS]))))
