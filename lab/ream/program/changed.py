# SPDX-License-Identifier: GPL-2.0-only
"""What a series changes of the code that a computer executes: functions, and blocks of them.

Blocks are known by the lines that they are compiled from. So each object with a changed function is
compiled again with debug information, which changes no code.
"""

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from difflib import unified_diff
from pathlib import Path
from typing import Self

from ream.command import Command, finished, run
from ream.kernel.objects import ObjectDifference, differences
from ream.kernel.same_text import with_line_numbers
from ream.kernel.series import Patch
from ream.program.coverage import OBJDUMP_S, Code, Function, in_source
from ream.stage.computer import Computer
from ream.stage.fault import build_of, compile_with_lines, functions, source_line

DIFF_S = 60.0
NEAR = 12
"""Where lines are only added, the next line with code is looked for so far away."""

Name = tuple[str, str]
"""A function: its object and its own name."""
Line = tuple[str, int]
"""A line of the source: its file, and its number from 1."""
Span = tuple[int, int]
"""The first line and the last one; nothing is between them if the last is before the first."""

_HUNK = re.compile(r"^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? ", re.MULTILINE)
_SECTION = re.compile(r"Disassembly of section (\S+):")
_INSTRUCTION = re.compile(r"^ +([0-9a-f]+):\t")
_LINE = re.compile(r"^(/\S+):(\d+)(?: \(discriminator \d+\))?$")


@dataclass(frozen=True)
class Hunk:
    """Lines in a row that a series changes, in the base and in what becomes of it."""

    file: str
    before: Span
    after: Span

    def __str__(self) -> str:
        """Where it is with the series; what is removed is where it was, before the line after."""
        first, last = self.after
        return f"{self.file}:{first}" + (f"-{last}" if last > first else "")


@dataclass(frozen=True)
class Target:
    """Functions that a series changes or adds, and blocks of the base that it changes.

    blocks: numbers, as Code.blocks has them. differing: objects with other code or data, or which
    only one of the two computers has. hunks: blocks by the changed lines that they are compiled
    from, as far as there are any.
    """

    functions: frozenset[Name]
    blocks: frozenset[int]
    differing: frozenset[str] = frozenset()
    hunks: Mapping[Hunk, frozenset[int]] = field(default_factory=dict)

    @classmethod
    def of(cls, base: Computer, series: Computer, code: Code, files: Collection[str]) -> Self:
        """Compare two computers. code: the base's. files: of the tree, that the series changes."""
        found = differing(base, series)
        changed = frozenset(
            (name, in_source(function))
            for name, one in found.items()
            for function in (*one.changed, *one.added)
        )
        # One that the series lacks is part of another now: the compiler has put it there.
        removed = {
            (name, in_source(function)) for name, one in found.items() for function in one.removed
        }
        hunks = [one for file in files for one in hunks_of(base.tree, series.tree, file)]
        met = defaultdict[Hunk, set[int]](set)
        for name, some in by_object(code, changed | removed).items():
            for hunk, place in _blocks(base, name, some, hunks):
                met[hunk].add(bisect_left(code.blocks, place))
        by_hunk = {hunk: frozenset(blocks) for hunk, blocks in met.items()}
        numbers = frozenset[int]().union(*by_hunk.values())
        return cls(changed, numbers, frozenset(found), by_hunk)

    def executed(self, met: Collection[int]) -> list[Hunk]:
        """The changed lines of which some block is among those that are met, by file and line."""
        its = (hunk for hunk, blocks in self.hunks.items() if not blocks.isdisjoint(met))
        return sorted(its, key=lambda one: (one.file, one.before))


def differing(base: Computer, series: Computer) -> dict[str, ObjectDifference]:
    """By object, what a series changes of the kernel that a computer hosts."""
    both = base.objects.keys() & series.objects.keys()
    found = {name: ObjectDifference() for name in base.objects.keys() ^ series.objects.keys()}
    its = {name: differences(base.objects[name], series.objects[name]) for name in sorted(both)}
    return {**found, **{name: one for name, one in its.items() if one}}


def with_lines_as_before(base: Path, series: Path, files: Collection[str]) -> Patch | None:
    """A patch on top of a series, by which lines that it moves have the numbers that they had.

    Assertions pass the numbers of their lines on, so code differs where nothing but its place does.
    None: no line is moved.
    """
    body = ""
    for file in sorted(files):
        moved = [
            (its.after[1], its.before[1] + 1)
            for its in hunks_of(base, series, file)
            if its.after[1] - its.after[0] != its.before[1] - its.before[0]
        ]
        if not moved or not file.endswith((".c", ".h")):
            continue
        old = (series / file).read_text(encoding="utf-8", errors="surrogateescape")
        new = with_line_numbers(old, moved)
        both = old.splitlines(keepends=True), new.splitlines(keepends=True)
        body += "".join(unified_diff(*both, f"a/{file}", f"b/{file}"))
    if not body:
        return None
    return Patch("lines.patch", "lines as before", body.encode(errors="surrogateescape"))


def hunks_of(base: Path, series: Path, file: str) -> Iterator[Hunk]:
    """The lines of a file that a series has changed."""
    paths = [one / file for one in (base, series)]
    if not all(path.exists() for path in paths):
        return
    _, said, _ = finished(Command(("diff", "-U0", *map(str, paths)), base, DIFF_S))
    for numbers in _HUNK.findall(said):
        (first, many), (begin, nr) = (
            (int(at), int(many or 1)) for at, many in (numbers[:2], numbers[2:])
        )
        # Where there are none, the line before them is named.
        before, after = first + (many == 0), begin + (nr == 0)
        yield Hunk(file, (before, before + many - 1), (after, after + nr - 1))


def by_object(code: Code, names: Collection[Name]) -> Mapping[str, list[Function]]:
    """The functions whose source has these names."""
    found = defaultdict[str, list[Function]](list)
    for one in code.functions:
        if (one.object, in_source(one.name)) in names:
            found[one.object].append(one)
    return found


def with_debug_information(computer: Computer, name: str) -> Path | None:
    """An object of a computer, compiled again; None if that fails."""
    path = computer.objects[name]
    again = computer.program.parent / f"lines-{path.name}"
    return again if compile_with_lines(path, build_of(path), again) else None


def _blocks(
    base: Computer, name: str, its: Iterable[Function], hunks: Iterable[Hunk]
) -> Iterator[tuple[Hunk, int]]:
    """Where the blocks of an object's functions begin that are compiled from changed lines."""
    if (again := with_debug_information(base, name)) is None:
        return
    lines = _lines(again, base.tree)
    known = {line for its in lines.values() for line in its.values()}
    wanted = defaultdict[Line, list[Hunk]](list)
    for hunk in hunks:
        for line in _with_code(hunk, known):
            wanted[line].append(hunk)
    where = {one.name: one for one in functions(again)}
    for one in its:
        for part in one.parts:
            symbol = where.get(part.symbol)
            if symbol is None:
                continue
            offset = symbol.start - part.start
            for place, line in lines[symbol.section].items():
                if line in wanted and symbol.start <= place < symbol.start + symbol.bytes:
                    block = one.blocks[bisect_right(one.blocks, place - offset) - 1]
                    if part.start <= block:
                        yield from ((hunk, block) for hunk in wanted[line])


def _lines(path: Path, tree: Path) -> dict[str, dict[int, Line]]:
    """By section and place, the line of each instruction."""
    found: dict[str, dict[int, Line]] = defaultdict(dict)
    words = ("objdump", "-d", "-l", "--no-show-raw-insn", str(path))
    section, line = "", ("", 0)
    for text in run(Command(words, path.parent, OBJDUMP_S)).splitlines():
        if match := _INSTRUCTION.match(text):
            found[section][int(match[1], 16)] = line
        elif match := _LINE.match(text):
            file, _, number = (source_line(f"{match[1]}:{match[2]}", tree) or ":0").rpartition(":")
            line = file, int(number)
        elif match := _SECTION.match(text):
            section = match[1]
    return found


def _with_code(hunk: Hunk, lines: Collection[Line]) -> Iterator[Line]:
    """Yield the hunk's lines that have code; if none has, the nearest before and behind it."""
    known = sorted(line for name, line in lines if name == hunk.file)
    first, last = hunk.before
    begin, end = bisect_left(known, first), bisect_right(known, last)
    inside = known[begin:end] if begin < end else known[max(0, end - 1) : begin + 1]
    yield from ((hunk.file, line) for line in inside if first - NEAR <= line <= last + NEAR)
