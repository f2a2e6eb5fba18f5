# SPDX-License-Identifier: GPL-2.0-only
"""The lines that a series changes or adds, and the code that they are compiled to.

A line counts as executed where one of its statements begins. The compiler moves single instructions
of a line to code that is executed anyway, and those say nothing of it.
"""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Self

from elftools.elf.elffile import ELFFile

from ream.command import Command, run
from ream.program.changed import (
    Line,
    by_object,
    differing,
    hunks_of,
    with_debug_information,
)
from ream.program.coverage import Code, Function, in_source
from ream.stage.computer import Computer
from ream.stage.fault import functions, source_line

LINK_S = 60.0
DWARF_5 = 5
"""From this version on, files and folders are counted from 0."""


@dataclass(frozen=True)
class Written:
    """Lines of a series that have code.

    blocks: by line, the addresses in the series' computer of the blocks in which its statements
    begin.
    """

    blocks: Mapping[Line, frozenset[int]] = field(default_factory=dict)

    @classmethod
    def of(cls, base: Computer, series: Computer, code: Code, files: Collection[str]) -> Self:
        """Compare two computers. code: the series'. files: of the tree, that the series changes."""
        hunks = [one for file in files for one in hunks_of(base.tree, series.tree, file)]
        lines = frozenset(
            (one.file, line) for one in hunks for line in range(one.after[0], one.after[1] + 1)
        )
        names = frozenset(
            (name, in_source(function))
            for name, one in differing(base, series).items()
            for function in (*one.changed, *one.added)
        )
        found = defaultdict[Line, set[int]](set)
        for name, some in by_object(code, names).items() if lines else ():
            if (again := with_debug_information(series, name)) is not None:
                for line, block in _blocks(again, series.tree, some):
                    if line in lines:
                        found[line].add(block)
        return cls({line: frozenset(blocks) for line, blocks in found.items()})

    @property
    def addresses(self) -> frozenset[int]:
        """All blocks of all lines."""
        return frozenset[int]().union(*self.blocks.values())

    def executed(self, met: Collection[int]) -> frozenset[Line]:
        """The lines of which some block is among those that are met."""
        return frozenset(line for line, its in self.blocks.items() if not its.isdisjoint(met))


def _blocks(again: Path, tree: Path, its: Collection[Function]) -> Iterator[tuple[Line, int]]:
    """Each line of functions, with where the block begins in which a statement of it does.

    again: their object with debug information. Its sections all begin at 0, so it is linked, and
    each has a place of its own; what it calls is of no matter.
    """
    linked = again.with_suffix(".linked")
    words = ("ld", "--noinhibit-exec", "--unresolved-symbols=ignore-all", "-e", "0", "-o")
    run(Command((*words, str(linked), str(again)), again.parent, LINK_S))
    statements = sorted(_statements(linked, tree))
    places = [place for place, _ in statements]
    where = {one.name: one for one in functions(linked)}
    for one in its:
        for part in one.parts:
            if (symbol := where.get(part.symbol)) is None:
                continue
            begin = bisect_left(places, symbol.start)
            end = bisect_left(places, symbol.start + symbol.bytes)
            for place, line in statements[begin:end]:
                at = place - symbol.start + part.start
                block = one.blocks[bisect_right(one.blocks, at) - 1]
                if part.start <= block <= at:
                    yield line, block


def _statements(linked: Path, tree: Path) -> Iterator[tuple[int, Line]]:
    """The address of each statement, and its line."""
    with linked.open("rb") as file:
        dwarf: Any = ELFFile(file).get_dwarf_info()
        for unit in dwarf.iter_CUs():
            program = dwarf.line_program_for_CU(unit)
            folder = unit.get_top_DIE().attributes["DW_AT_comp_dir"].value.decode()
            named = _Files(program, Path(folder), tree)
            for entry in program.get_entries():
                state = entry.state
                if state is not None and state.is_stmt and not state.end_sequence and state.line:
                    yield state.address, (named.name(state.file), state.line)


class _Files:
    """The files of a line program, as the tree names them."""

    def __init__(self, program: Any, folder: Path, tree: Path) -> None:
        self._program, self._folder, self._tree = program, folder, tree
        self.name = cache(self._name)

    def _name(self, number: int) -> str:
        header = self._program.header
        first = 0 if header.version >= DWARF_5 else 1
        its = header.file_entry[number - first]
        folders = [one.decode() for one in header.include_directory]
        below = folders[its.dir_index - first] if its.dir_index >= first else ""
        path = self._folder / below / its.name.decode()
        return (source_line(f"{path}:1", self._tree) or ":").rpartition(":")[0]
