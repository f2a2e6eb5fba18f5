# SPDX-License-Identifier: GPL-2.0-only
"""A function's instructions, each with how often a sample executed it."""

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from ream.command import Command, run
from ream.count.places import Place, source_name

OBJDUMP_S = 60.0
COUNT = 12
"""Width of a count in a listing, in columns."""

Pieces = Mapping[int, tuple[int, int]]
"""Executed pieces of code: start address to end address and number of executions."""

_INSTRUCTION = re.compile(r"^\s*([0-9a-f]+):\t(.*)$")


def annotated(
    program: Path,
    places: Iterable[Place],
    functions: Iterable[str],
    executed: Mapping[str, Mapping[str, Pieces]],
) -> str:
    """Return the listings of functions as text, one for each row and variant that executed them.

    executed: the executed pieces by row and variant. The listing shows the code as it was linked:
    where an alternative was applied when the program started, the original code is shown.
    """
    asked = {source_name(name) for name in functions}
    wanted = [one for one in places if one.name in asked]
    lines: list[str] = []
    for row, variants in executed.items():
        for place in wanted:
            if (pieces := variants.get(place.variant)) is not None:
                lines += _listing(program, row, place, pieces)
    return "".join(f"{line}\n" for line in lines)


def _listing(program: Path, row: str, place: Place, pieces: Pieces) -> Iterator[str]:
    counts = [
        (start, end, number)
        for start, (end, number) in pieces.items()
        if place.start <= start < place.end
    ]
    if not counts:
        return
    yield f"{row}, {place.variant}: {place.name}()"
    bounds = (f"--start-address={place.start:#x}", f"--stop-address={place.end:#x}")
    words = ("objdump", "-d", "-w", "--no-show-raw-insn", *bounds, str(program))
    for line in run(Command(words, program.parent, OBJDUMP_S)).splitlines():
        if found := _INSTRUCTION.match(line):
            at = int(found[1], 16)
            number = sum(nr for start, end, nr in counts if start <= at < end)
            yield f"{number or '':>{COUNT}}  {at - place.start:6x}  {found[2]}"
    yield ""
