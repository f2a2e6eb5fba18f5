# SPDX-License-Identifier: GPL-2.0-only
"""Rows of mm: programs with one measured step, about so many pages."""

from pathlib import Path
from typing import ClassVar, Literal

from pydantic import Field, field_validator

from ream.experiment import PAGE_BYTES, BytesOf, Stage
from ream.experiment.shape import ExperimentBase, RowBase
from ream.program.collection import texts_in
from ream.values import Name, Scalar

PROGRAMS = Path(__file__).parent / "timed.programs"
TEXTS = texts_in(PROGRAMS)


class MmRow(RowBase):
    """program: its name in timed.programs. pages: what its text has {pages} for.

    folio: the size of the folios that memory is in where its text has {mthp} and {thp}; there, it
    has {memory} for that of the computer.
    """

    program: Name
    pages: int = Field(ge=1, le=1 << 16)
    folio: Literal["4K", "64K", "2M"] = "4K"

    configurable: ClassVar[tuple[Stage, ...]] = ()

    @field_validator("program")
    @classmethod
    def _there_is_such_a_program(cls, program: str) -> str:
        if program not in TEXTS:
            raise ValueError(f"{PROGRAMS.name} has no {program}")
        return program

    @property
    def text(self) -> str:
        """The program: a line with {i} stands there once for each page, counted from 0."""
        repeated = (
            line.replace("{i}", str(at))
            for line in TEXTS[self.program].splitlines()
            for at in range(self.pages if "{i}" in line else 1)
        )
        text = "".join(f"{line}\n" for line in repeated)
        base = self.folio == "4K"
        for field, value in (
            ("{pages}", str(self.pages)),
            # The kernel has no huge pages with less.
            ("{memory}", "640M" if self.folio == "2M" else "256M"),
            ("{mthp}", "none" if base else self.folio),
            ("{thp}", "never" if base else "always"),
        ):
            text = text.replace(field, value)
        return text

    @property
    def written_bytes(self) -> int:
        return self.pages * PAGE_BYTES

    @property
    def size_of(self) -> str | None:
        return f"{self.program} {self.folio}"

    @property
    def bytes_of(self) -> BytesOf:
        return "memory"

    @property
    def times_the_map(self) -> bool:
        return False

    @property
    def times_page_tables(self) -> bool:
        return True

    def params(self) -> dict[str, Scalar | None]:
        folio = {} if self.folio == "4K" else {"folio": self.folio}
        return {"program": self.program, "pages": self.pages, "threads": 1, **folio}

    def title(self) -> str:
        """What the first line of its program says."""
        return self.text.splitlines()[0].removeprefix("# ")


class Mm(ExperimentBase[MmRow]):
    """The experiment, as its file has it."""

    name: Literal["mm"]


EXPERIMENT = Mm
