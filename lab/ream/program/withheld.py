# SPDX-License-Identifier: GPL-2.0-only
"""Alarms that stay private until a person has reported them.

A random program may find a defect of a released kernel by which one process can harm another. A
list that is committed names such an alarm by a salted hash of the rule that was broken and of the
shrunk program's shape. So the list tells nobody what is wrong, and the alarm is not shown. A
program with further steps is recognised, too.
"""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

from ream.errors import BadUsage
from ream.files import write_whole
from ream.paths import cache_dir
from ream.program.ran import Ran, computer_folder
from ream.program.step import Program, Step

LIST = "withheld"
"""A file in the computer's folder: a line `salt WORD`, then a hash a line, and comments with #."""
DIGITS = 16
MOST_SHAPES = 14
"""At most so many kinds of steps of a program are looked up, since all subsets are tried."""


@dataclass(frozen=True)
class Withheld:
    """The list of a computer's folder."""

    path: Path
    salt: str
    hashes: frozenset[str]

    @classmethod
    def load(cls, path: Path | None = None) -> "Withheld":
        """Read a list; None: that of the computer. Raises BadUsage for one that is malformed."""
        path = computer_folder() / LIST if path is None else path
        lines = path.read_text(encoding="ascii").splitlines()
        words = [line for line in lines if line and not line.startswith("#")]
        if not words or not words[0].startswith("salt "):
            raise BadUsage(f"{path}: its first line has to be `salt WORD`")
        return cls(path, words[0].removeprefix("salt "), frozenset(words[1:]))

    def hash_of(self, ran: Ran, shapes: Iterable[str]) -> str:
        """The hash of an alarm, by the rule and the shapes of steps."""
        text = "\n".join((self.salt, ran.kind, *sorted(shapes)))
        return hashlib.sha256(text.encode()).hexdigest()[:DIGITS]

    def add(self, ran: Ran, program: Program) -> str:
        """Have an alarm in the list from now on; its hash. The program has what is needed alone."""
        its = self.hash_of(ran, _shapes(program))
        if its not in self.hashes:
            with self.path.open("a", encoding="ascii") as file:
                file.write(f"{its}\n")
        return its

    def find(self, ran: Ran, program: Program) -> str | None:
        """The hash in the list that some of the program's steps have; None if there is none."""
        shapes = sorted(_shapes(program))[:MOST_SHAPES]
        for nr in range(1, len(shapes) + 1):
            for some in combinations(shapes, nr):
                if (its := self.hash_of(ran, some)) in self.hashes:
                    return its
        return None

    def put_away(self, ran: Ran, program: Program) -> str | None:
        """What to say of an alarm in the list, whose program is written down; None for others."""
        its = self.find(ran, program)
        if its is None:
            return None
        path = cache_dir() / LIST / f"{its}.program"
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, str(program).encode(), force=True)
        return f"alarm withheld: {its}; it is known and not public; the program is in {path}"


def _shapes(program: Program) -> set[str]:
    return {shape for step in program if (shape := _shape(step))}


def _shape(step: Step) -> str:
    """A step's shape; nothing for one that says how large memory is."""
    return "" if step.shape == step.verb and step.form.declares else step.shape
