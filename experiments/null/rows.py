# SPDX-License-Identifier: GPL-2.0-only
"""Rows of null: so many bits of a bitmap turned over, or so many system calls."""

from typing import Literal

from pydantic import Field

from ream.experiment.shape import ExperimentBase, RowBase
from ream.values import Scalar

BITS_PER_LONG = 64


class NullRow(RowBase):
    """size: bits in the native stage, else calls."""

    size: int = Field(ge=0, le=1 << 40, multiple_of=BITS_PER_LONG // 8)

    @property
    def written_bytes(self) -> int:
        return self.size // 8

    def params(self) -> dict[str, Scalar | None]:
        return {"size": self.size, "threads": 1}

    def title(self) -> str:
        what = "bits turned over" if self.stage == "native" else "calls of getppid()"
        return f"{self.size:,} {what}"


class Null(ExperimentBase[NullRow]):
    """The experiment, as its file has it."""

    name: Literal["null"]


EXPERIMENT = Null
