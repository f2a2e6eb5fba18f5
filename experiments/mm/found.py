# SPDX-License-Identifier: GPL-2.0-only
"""Defects of released kernels that ream found: programs that show them, and repairs.

PYTHONPATH=lab:. python experiments/mm/found.py writes docs/found.md.
"""

import textwrap
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Self

from ream.kernel.series import Patch, load_series
from ream.paths import CHECKOUT
from ream.program.step import Program
from ream.program.text import parse

FOLDER = Path(__file__).parent / "found"
PAGE = CHECKOUT / "docs" / "found.md"
SEARCHED = Path(__file__).parent / "searched.txt"
DOCUMENT_COLUMNS = 99

_HEAD = """\
<!-- SPDX-License-Identifier: GPL-2.0-only -->
<!-- experiments/mm/found.py writes this page. -->
# Defects of released kernels

Random programs, and some written by hand, showed these to ream. The project has reported none of
them yet. Each has a program that shows it, and a repair. `make test` runs the programs on the
hosted kernels that have the defects, without the repairs and with them, and `make test-vm` does
so in the guests that are named. `ream program FILE --c` writes a program as one file of C. A
defect that could harm another process is withheld: it is not listed before it has been reported.

A line of a program is a step. `p0` is a process, `a[0]` is page 0 of its mapping a, and `f+20` is
page 20 of file f. `call clear_refs x=4` writes 4 to /proc/self/clear_refs. `call pagemap_scan a
x=128` returns how many pages of a are soft-dirty, and `call proc a x=1 y=2` how many KiB of it
smaps calls swapped. `write a same=N` writes the same to all pages.
"""


_EXPLAINED = """\
Alarms that are not withheld were explained: by the defects above, or by mistakes of libmm, which
were mended. Programs leave out one thing that the kernel does wrong, in a facility for tests:
`unpoison_memory()` clears the mark of a page that was freed while it was poisoned, and the page is
lost.

One rule of libmm is stricter than the kernel: pages of a large folio may be unmapped while its
other pages are swapped out or being moved. The kernel does not note such a folio as one to be
split, so the memory of the unmapped pages stays in use until reclaim finds it.
"""


@dataclass(frozen=True)
class Defect:
    """A defect, the program that shows it, and what steps return without and with the repair.

    guests: the kernels of these that were booted to show it. alarm: what is found wrong without the
    repair, if that shows it. unseen: why no guest shows it. changes_contents: what memory holds at
    the end differs without the repair.
    """

    name: str
    title: str
    kernels: tuple[str, ...]
    guests: tuple[str, ...]
    severity: str
    since: str
    upstream: str
    cause: str
    steps: str
    returned: Mapping[int, tuple[int, int]]
    alarm: str = ""
    unseen: str = ""
    changes_contents: bool = False

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Read one from its folder."""
        its = tomllib.loads((folder / "about.toml").read_text(encoding="utf-8"))
        its = {name: it.strip() if isinstance(it, str) else it for name, it in its.items()}
        its |= {name: tuple(its[name]) for name in ("kernels", "guests")}
        its["returned"] = {int(step): tuple(both) for step, both in its["returned"].items()}
        return cls(folder.name, **its)

    @property
    def folder(self) -> Path:
        """Folder of its files."""
        return FOLDER / self.name

    @property
    def program(self) -> Program:
        """The steps that show it."""
        return parse(self.steps, self.name)

    def repair(self, kernel: str) -> Path:
        """The patch for a kernel: its own, or the one for all that have none."""
        own = self.folder / f"repair-{kernel}.patch"
        return own if own.exists() else self.folder / "repair.patch"


@dataclass(frozen=True)
class Searched:
    """Seeds of random programs that ran on a kernel, and how many of them raised an alarm.

    withheld: how many of these belong to defects that are not public.
    """

    kernel: str
    configuration: str
    steps: int
    first: int
    last: int
    alarms: int
    withheld: int

    @classmethod
    def parse(cls, line: str) -> Self:
        """A line of the list."""
        kernel, configuration, *numbers = line.split()
        return cls(kernel, configuration, *map(int, numbers))

    def __str__(self) -> str:
        return " ".join(map(str, astuple(self)))


def searched() -> list[Searched]:
    """What was tried, as hunt.py noted it."""
    lines = SEARCHED.read_text(encoding="utf-8").splitlines()
    return [Searched.parse(line) for line in lines if not line.startswith("#")]


def defects() -> list[Defect]:
    """All of them, by name."""
    return [Defect.load(one.parent) for one in sorted(FOLDER.glob("*/about.toml"))]


def repairs(kernel: str) -> list[Patch]:
    """The repairs of all defects that a kernel has."""
    its = (load_series(one.repair(kernel)) for one in defects() if kernel in one.kernels)
    return [patch for series in its for patch in series.patches]


def page() -> str:
    """The text of docs/found.md."""
    parts = [line for one in defects() for line in _part(one)]
    return _HEAD + "".join(f"\n{line}" for line in (*parts, *_searched()))


def _part(defect: Defect) -> Iterator[str]:
    steps = list(defect.program)
    program = "".join(f"{step}\n" for step in steps)
    yield f"## {defect.title}\n"
    yield f"* Kernels: {', '.join(defect.kernels)}."
    for name in ("severity", "since", "upstream"):
        yield _filled(f"* {name.capitalize()}: {getattr(defect, name)}", "  ")
    yield f"\n{_filled(defect.cause)}\n"
    yield f"```\n{program}```\n"
    changed = {step: its for step, its in defect.returned.items() if its[0] != its[1]}
    for step, (before, after) in changed.items():
        yield f"* Step {step}, `{steps[step - 1]}`, returns {before}, and {after} with the repair."
    if defect.alarm:
        yield _filled(f"* ream finds wrong without the repair: `{defect.alarm}`.", "  ")
    shown = f"hosted, and in guests of {', '.join(defect.guests)}."
    yield _filled(f"* Shown: {f'hosted only; {defect.unseen}' if defect.unseen else shown}", "  ")
    yield f"* Repair: `{defect.folder.relative_to(CHECKOUT)}/repair*.patch`\n"


def _searched() -> Iterator[str]:
    yield "## What was searched\n"
    yield "Random programs of experiments/mm/hunt.py ran on these kernels. Each seed draws one.\n"
    yield "| kernel | configuration | steps | seeds | alarms | of these withheld |"
    yield "|---|---|---|---|---|---|"
    for one in searched():
        seeds = f"{one.first} to {one.last}"
        words = (one.kernel, one.configuration, one.steps, seeds, one.alarms, one.withheld)
        yield f"| {' | '.join(map(str, words))} |"
    yield f"\n{_EXPLAINED}"


def _filled(text: str, indent: str = "") -> str:
    """A paragraph whose lines are as long as a document's may be."""
    return textwrap.fill(
        text,
        DOCUMENT_COLUMNS,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def main() -> None:
    """Write the page."""
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
