# SPDX-License-Identifier: GPL-2.0-only
"""Defects of released kernels that ream found: programs that show them, and repairs.

PYTHONPATH=lab:. python experiments/mm/found.py writes docs/found.md.
"""

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from ream.paths import CHECKOUT
from ream.program.step import Program
from ream.program.text import load_program

FOLDER = Path(__file__).parent / "found"
PAGE = CHECKOUT / "docs" / "found.md"

_HEAD = """\
<!-- SPDX-License-Identifier: GPL-2.0-only -->
<!-- experiments/mm/found.py writes this page. -->
# Defects of released kernels

ream found these. Each has a program that shows it, hosted and in a guest of the same kernel, and a
repair. `make test` runs the program without the repair and with it. A defect that could harm
another process is not listed here before it has been reported.
"""


@dataclass(frozen=True)
class Defect:
    """A defect, the program that shows it, and what steps return without and with the repair."""

    name: str
    title: str
    kernels: tuple[str, ...]
    severity: str
    cause: str
    returned: Mapping[int, tuple[int, int]]

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Read one from its folder."""
        its = tomllib.loads((folder / "about.toml").read_text(encoding="utf-8"))
        returned = {int(step): (before, after) for step, (before, after) in its["returned"].items()}
        severity, cause = (its[name].strip() for name in ("severity", "cause"))
        kernels = tuple(its["kernels"])
        return cls(folder.name, its["title"], kernels, severity, cause, returned)

    @property
    def folder(self) -> Path:
        """Where its files are."""
        return FOLDER / self.name

    @property
    def program(self) -> Program:
        """The steps that show it."""
        return load_program(self.folder / "steps.program")

    def repair(self, kernel: str) -> Path:
        """The patch for a kernel."""
        return self.folder / f"repair-{kernel}.patch"


def defects() -> list[Defect]:
    """All of them, by name."""
    return [Defect.load(one.parent) for one in sorted(FOLDER.glob("*/about.toml"))]


def page() -> str:
    """The text of docs/found.md."""
    return _HEAD + "".join(f"\n{line}" for one in defects() for line in _part(one))


def _part(defect: Defect) -> Iterator[str]:
    steps = list(defect.program)
    program = "".join(f"{step}\n" for step in steps)
    yield f"## {defect.title}\n"
    yield f"Kernels: {', '.join(defect.kernels)}. {defect.severity}\n"
    yield f"{defect.cause}\n"
    yield f"```\n{program}```\n"
    changed = {step: its for step, its in defect.returned.items() if its[0] != its[1]}
    for step, (before, after) in changed.items():
        yield f"* `{steps[step - 1]}` returns {before}, and {after} with the repair."
    yield f"* Repair: `{defect.folder.relative_to(CHECKOUT)}/repair-*.patch`\n"


def main() -> None:
    """Write the page."""
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
