# SPDX-License-Identifier: GPL-2.0-only
"""What a series changes of the code that a computer executes: functions, and blocks of them.

Blocks are known by the lines that they are compiled from. So each object with a changed function is
compiled again with debug information, which changes no code.
"""

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from ream.command import Command, finished, run
from ream.kernel.objects import ObjectDifference, differences
from ream.program.coverage import OBJDUMP_S, Code, Function
from ream.stage.computer import Computer
from ream.stage.fault import build_of, compile_with_lines, functions, source_line

DIFF_S = 60.0
NEAR = 12
"""Where lines are only added, the next line with code is looked for so far away."""

Name = tuple[str, str]
"""A function: its object and its own name."""
Span = tuple[int, int]
"""The first line and the last one; nothing is between them if the last is before the first."""

_HUNK = re.compile(r"^@@ -(\d+)(?:,(\d+))? ", re.MULTILINE)
_SECTION = re.compile(r"Disassembly of section (\S+):")
_INSTRUCTION = re.compile(r"^ +([0-9a-f]+):\t")
_LINE = re.compile(r"^(/\S+):(\d+)(?: \(discriminator \d+\))?$")


@dataclass(frozen=True)
class Target:
    """Functions that a series changes or adds, and blocks of the base that it changes.

    blocks: numbers, as Code.blocks has them. differing: objects with other code or data, or which
    only one of the two computers has.
    """

    functions: frozenset[Name]
    blocks: frozenset[int]
    differing: frozenset[str] = frozenset()

    @classmethod
    def of(cls, base: Computer, series: Computer, code: Code, files: Collection[str]) -> Self:
        """Compare two computers. code: the base's. files: of the tree, that the series changes."""
        found = differing(base, series)
        changed = frozenset(
            (name, function)
            for name, one in found.items()
            for function in (*one.changed, *one.added)
        )
        spans = {file: tuple(_spans(base.tree, series.tree, file)) for file in files}
        its = defaultdict[str, list[Function]](list)  # by object
        for one in code.functions:
            if (one.object, one.name) in changed:
                its[one.object].append(one)
        places = set[int]()
        for name, some in its.items():
            places.update(_blocks(base, name, some, spans))
        numbers = frozenset(bisect_left(code.blocks, at) for at in places)
        return cls(changed, numbers, frozenset(found))


def differing(base: Computer, series: Computer) -> dict[str, ObjectDifference]:
    """By object, what a series changes of the kernel that a computer hosts."""
    both = base.objects.keys() & series.objects.keys()
    found = {name: ObjectDifference() for name in base.objects.keys() ^ series.objects.keys()}
    its = {name: differences(base.objects[name], series.objects[name]) for name in sorted(both)}
    return {**found, **{name: one for name, one in its.items() if one}}


def _spans(base: Path, series: Path, file: str) -> Iterator[Span]:
    """The lines of the base that a series has changed."""
    paths = [one / file for one in (base, series)]
    if not all(path.exists() for path in paths):
        return
    _, said, _ = finished(Command(("diff", "-U0", *map(str, paths)), base, DIFF_S))
    for first, nr in _HUNK.findall(said):
        many = int(nr or 1)
        begin = int(first) + (many == 0)  # lines are added behind the one that is named
        yield begin, begin + many - 1


def _blocks(
    base: Computer, name: str, its: Iterable[Function], spans: Mapping[str, Collection[Span]]
) -> Iterator[int]:
    """Where the blocks of an object's functions begin that are compiled from some lines."""
    path, work = base.objects[name], base.program.parent
    again = work / f"lines-{path.name}"
    if not compile_with_lines(path, build_of(path), again):
        return
    lines = _lines(again, base.tree)
    wanted = _with_code(spans, {line for its in lines.values() for line in its.values()})
    where = {one.name: one for one in functions(again)}
    for one in its:
        for part in one.parts:
            symbol = where.get(part.symbol)
            if symbol is None:
                continue
            offset = symbol.start - part.start
            at = sorted(
                place - offset
                for place, line in lines[symbol.section].items()
                if line in wanted and symbol.start <= place < symbol.start + symbol.bytes
            )
            blocks = [one.blocks[bisect_right(one.blocks, place) - 1] for place in at]
            yield from (block for block in blocks if part.start <= block)


def _lines(path: Path, tree: Path) -> dict[str, dict[int, tuple[str, int]]]:
    """By section and place, the line of each instruction."""
    found: dict[str, dict[int, tuple[str, int]]] = defaultdict(dict)
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


def _with_code(
    spans: Mapping[str, Collection[Span]], lines: Collection[tuple[str, int]]
) -> frozenset[tuple[str, int]]:
    """Lines of spans; where a span has no code, the nearest ones before and behind it."""
    found = set[tuple[str, int]]()
    for file, its in spans.items():
        known = sorted(line for name, line in lines if name == file)
        for first, last in its:
            begin, end = bisect_left(known, first), bisect_right(known, last)
            if begin >= end:
                around = known[max(0, end - 1) : begin + 1]
                inside = [one for one in around if first - NEAR <= one <= last + NEAR]
            else:
                inside = known[begin:end]
            found.update((file, line) for line in inside)
    return frozenset(found)
