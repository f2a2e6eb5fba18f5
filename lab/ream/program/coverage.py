# SPDX-License-Identifier: GPL-2.0-only
"""Which code of a computer's folders a program executes, by block.

A breakpoint stands at each block until it is met, so that the computer that is covered is the one
that is checked and timed, to the byte; native/host/reach.c.
"""

import re
import struct
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from pathlib import Path

from ream.command import Command, run
from ream.kernel.build import BUILD
from ream.stage.computer import LEFT_OUT, Computer, kernel_texts, listed
from ream.stage.fault import functions
from ream.stage.reach import COLD

OBJDUMP_S = 120.0

_INSTRUCTION = re.compile(r"^ +([0-9a-f]+):\t(\S+)(?: +([^<\n]*))?", re.MULTILINE)
_TARGET = re.compile(r"[0-9a-f]+$")
_ALTERNATIVE = struct.Struct("<iiIBB")
"""An entry of the table of alternatives, as in native/host/arch/x86_64/alternatives.c."""


def in_source(symbol: str) -> str:
    """The function of the source that a symbol is of: the compiler names its parts and clones so.

    Its names are NAME.cold, NAME.isra.0, NAME.part.0, and the like.
    """
    return symbol.partition(".")[0] or symbol


@dataclass(frozen=True)
class Part:
    """A function's code, or what the compiler has moved out of it."""

    symbol: str
    start: int
    bytes: int


@dataclass(frozen=True)
class Function:
    """A function: its object, its parts, and its blocks."""

    object: str
    name: str
    parts: tuple[Part, ...]
    blocks: tuple[int, ...]
    """Addresses, ascending."""

    @property
    def bytes(self) -> int:
        """The bytes of all parts together."""
        return sum(one.bytes for one in self.parts)


@dataclass(frozen=True)
class Row:
    """Functions, bytes of functions and blocks: of how many how many are executed."""

    object: str
    functions: tuple[int, int]
    bytes: tuple[int, int]
    blocks: tuple[int, int]

    def words(self) -> str:
        """A line of a table."""
        parts = [
            f"{did:6d} of {nr:6d} {100 * did / max(nr, 1):3.0f} %"
            for did, nr in (self.functions, self.bytes, self.blocks)
        ]
        return f"{self.object:30} {'  '.join(parts)}"


class Code:
    """All functions of the objects that a computer's file names, but those of boot.

    What the linker takes as it is needed, such as lib/, is not among them.
    """

    def __init__(self, computer: Computer, folder: Path) -> None:
        self._program = computer.program
        its = listed(folder, folder)  # of the folders and names, which all trees share
        self._folders = its.folders
        self._exposed = {f".{Path(name).name}": name for name in its.exposed}
        self._names = {
            _in_build(path): name
            for name, path in computer.objects.items()
            if not name.startswith(its.as_needed)
        }

    @cached_property
    def functions(self) -> tuple[Function, ...]:
        """Each once, by object and name."""
        found: dict[tuple[str, str], list[Part]] = {}
        texts = self._texts()
        starts = [start for start, _, _ in texts]
        for one in functions(self._program):
            at = bisect_right(starts, one.start) - 1
            if at >= 0 and one.start < texts[at][1] and one.bytes:
                name = one.name.removesuffix(COLD)
                part = Part(one.name, one.start, one.bytes)
                found.setdefault((texts[at][2], name), []).append(part)
        blocks = self._blocks(sorted(one.start for parts in found.values() for one in parts))
        return tuple(
            Function(its, name, tuple(parts), tuple(_within(blocks, parts)))
            for (its, name), parts in sorted(found.items())
        )

    @property
    def in_folders(self) -> list[Function]:
        """The functions of whole folders, that is of mm/."""
        return [one for one in self.functions if one.object.startswith(self._folders)]

    @cached_property
    def blocks(self) -> tuple[int, ...]:
        """The address of each, ascending."""
        return tuple(sorted({at for one in self.functions for at in one.blocks}))

    def numbers(self, functions: Collection[tuple[str, str]]) -> frozenset[int]:
        """The numbers of all blocks of functions, each given by its object and its source name."""
        return frozenset[int]().union(*(self._numbers.get(one, ()) for one in functions))

    @cached_property
    def _numbers(self) -> dict[tuple[str, str], frozenset[int]]:
        """Return the numbers by function, since a series may change thousands of functions."""
        found = defaultdict[tuple[str, str], set[int]](set)
        for one in self.functions:
            name = one.object, in_source(one.name)
            found[name].update(bisect_left(self.blocks, at) for at in one.blocks)
        return {name: frozenset(its) for name, its in found.items()}

    def rows(self, met: Iterable[int]) -> list[Row]:
        """Return a row for each object of the folders, and a last one for all of them.

        met: the numbers of the blocks that are executed.
        """
        reached = frozenset(self.blocks[number] for number in met)
        by_object = groupby(self.in_folders, lambda one: one.object)
        rows = [_row(name, list(its), reached) for name, its in by_object]
        return [*rows, _row("all", self.in_folders, reached)]

    def _texts(self) -> list[tuple[int, int, str]]:
        """Where which object has code: start, end, and name; ascending."""
        return sorted(
            (start, end, name)
            for start, end, path, section in kernel_texts(self._program)
            if not section.startswith(LEFT_OUT) and (name := self._named(path))
        )

    def _named(self, path: Path) -> str:
        """An object as kbuild names it; empty: the computer's file does not name it."""
        copied = (name for end, name in self._exposed.items() if path.name.endswith(end))
        return next(copied, self._names.get(_in_build(path), ""))

    def _blocks(self, entries: Sequence[int]) -> list[int]:
        """Where a block begins: a function, what is jumped to, and what is behind a jump."""
        words = ("objdump", "-d", "--no-show-raw-insn", "-j", ".text", str(self._program))
        said = run(Command(words, self._program.parent, OBJDUMP_S))
        changed = self._changed()
        starts, plain, begins = set(entries), set[int](), False
        for place, name, operands in _INSTRUCTION.findall(said):
            at = int(place, 16)
            # A static key may be there: its code is looked at and changed.
            if name.startswith(("nop", "jmp", "xchg", "data16")) or name == "cs":
                begins = True
            elif at not in changed and name != "ud2":  # an assertion that fails is no way to go
                plain.add(at)
                if begins:
                    starts.add(at)
                begins = False
            if name.startswith("j"):
                begins = True
                if _TARGET.fullmatch(operands.strip()):
                    starts.add(int(operands, 16))
            elif name.startswith("ret"):
                begins = True
        return sorted(starts & plain)

    def _changed(self) -> frozenset[int]:
        """Inside of what boot replaces instructions may begin elsewhere."""
        out = self._program.parent / "altinstructions"
        words = ("objcopy", "-O", "binary", "-j", "altinstructions", str(self._program), str(out))
        run(Command(words, self._program.parent, OBJDUMP_S))
        said = run(Command(("objdump", "-h", str(self._program)), out.parent, OBJDUMP_S))
        place = int(next(line.split()[3] for line in said.splitlines() if "altinst" in line), 16)
        found = set[int]()
        for number, (offset, _, _, nr, _) in enumerate(_ALTERNATIVE.iter_unpack(out.read_bytes())):
            site = place + number * _ALTERNATIVE.size + offset
            found.update(range(site + 1, site + nr))
        return frozenset(found)


def _in_build(path: Path) -> str:
    return str(path).partition(f"/{BUILD}/")[2]


def _within(blocks: Sequence[int], parts: Iterable[Part]) -> Iterator[int]:
    for one in sorted(parts, key=lambda one: one.start):
        end = one.start + one.bytes
        yield from blocks[bisect_left(blocks, one.start) : bisect_left(blocks, end)]


def _row(name: str, its: Sequence[Function], reached: frozenset[int]) -> Row:
    executed = [one for one in its if not reached.isdisjoint(one.blocks)]
    blocks = [at for one in its for at in one.blocks]
    return Row(
        name,
        (len(executed), len(its)),
        (sum(one.bytes for one in executed), sum(one.bytes for one in its)),
        (sum(at in reached for at in blocks), len(blocks)),
    )
