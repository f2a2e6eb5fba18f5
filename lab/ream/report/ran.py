# SPDX-License-Identifier: GPL-2.0-only
"""The input of a summary besides samples and receipt, stored so that it can be made again."""

import hashlib
import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, Self

from pydantic import Field

import ream
from ream.experiment import Experiment, Row
from ream.folders import TABLES, table_files
from ream.measure.sample import Sample
from ream.measure.whole import LeftOut
from ream.paths import CHECKOUT, EXPERIMENTS
from ream.record.identity import DIGITS
from ream.report.contract import Unit
from ream.values import Sealed, Texts, Value

RAN = "ran"
"""The key of plan.json that contains this input."""

_PACKAGE = Path(ream.__file__).parent
_SOURCES = (
    "experiment/*.py",
    "folders.py",
    "measure/*.py",
    "report/*.py",
    "record/identity.py",
    "record/machine.py",
    "record/moment.py",
    "record/noise.py",
    "record/receipt.py",
    "counted.py",
    "grid.py",
    "published.py",
    "size.py",
    "values.py",
)
"""Files of the package that run.json can depend on; a test compares them with imports."""


@dataclass(frozen=True, kw_only=True)
class Results:
    """The results of a run; the receipt has everything else."""

    rows: tuple[Row, ...]
    """The rows as they ran, possibly with a smaller device than asked for."""
    samples: tuple[Sample, ...]
    unit: Unit = "ns"
    units: Mapping[str, Unit] = field(default_factory=dict)
    """Units of rows that differ from `unit`, by row."""
    skipped: Mapping[str, str] = field(default_factory=dict)
    """The reasons for which rows have no samples, by row."""
    remarks: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Remarks of the stage, by row."""
    left_out: Mapping[str, LeftOut | str] = field(default_factory=dict)
    """For each row that times a part of a published call, the rest's time, or why it is unknown."""
    between_runs: Mapping[str, float] = field(default_factory=dict)
    """The standard deviation of log ratios between earlier runs on this type of CPU, by row."""
    wrong: Mapping[str, str] = field(default_factory=dict)
    """For each variant that failed verification, what it did. It has no samples."""
    untouched: Mapping[str, str] = field(default_factory=dict)
    """For each given series that was not measured, the reason."""

    def unit_of(self, row: str) -> Unit:
        """The unit of a row by name."""
        return self.units.get(row, self.unit)


class Ran(Value):
    """The part of the results that plan.json stores: neither samples nor the receipt contain it."""

    rows: Sealed[str, Sealed[str, Any] | None]
    """By row in order, its fields if it ran with others than asked for; else null."""
    unit: Unit
    units: Sealed[str, Unit]
    skipped: Sealed[str, str]
    remarks: Sealed[str, Texts]
    left_out: Sealed[str, LeftOut | str]
    between_runs: Sealed[str, float] = Field(default={}, validate_default=True)

    @classmethod
    def of(cls, asked: Experiment, results: Results) -> Self:
        """The stored part of these results; asked: the experiment as it was asked for."""
        return cls(
            rows={
                row.name: None
                if row == asked.row(row.name)
                else row.model_dump(mode="json", exclude_unset=True)
                for row in results.rows
            },
            unit=results.unit,
            units=results.units,
            skipped=results.skipped,
            remarks=results.remarks,
            left_out=results.left_out,
            between_runs=results.between_runs,
        )

    def results(self, asked: Experiment, samples: Iterable[Sample]) -> Results:
        """The results of the run; raises ValueError if the experiment lacks a stored row."""
        return Results(
            rows=tuple(self._rows(asked)),
            samples=tuple(samples),
            unit=self.unit,
            units=self.units,
            skipped=self.skipped,
            remarks=self.remarks,
            left_out=self.left_out,
            between_runs=self.between_runs,
        )

    def _rows(self, asked: Experiment) -> Iterator[Row]:
        for name, fields in self.rows.items():
            row = asked.row(name)
            if row is None:
                raise ValueError(f"a row {name} ran that was not asked for")
            if fields is None:
                yield row
            else:
                yield type(row).model_validate_json(json.dumps(dict(fields)))


_BESIDE = re.compile(r"^from \.(\w+) import", re.MULTILINE)


def _models(folder: Path) -> list[Path]:
    """The files that define an experiment's rows: rows.py and the modules that it imports."""
    if not (rows := folder / "rows.py").is_file():
        return []
    used = _BESIDE.findall(rows.read_text(encoding="utf-8"))
    return sorted({rows, *(folder / f"{name}.py" for name in used)})


@cache
def summary_id(folder: Path | None = None) -> str:
    """A digest of everything besides samples that run.json depends on.

    It covers sources, published tables, and the versions of Python and scipy. folder: an experiment
    outside this checkout, whose rows and tables are included. With the same digest, the same
    samples produce the same numbers.
    """
    digest = hashlib.sha256(f"{sys.version_info[:2]} {version('scipy')}".encode())
    sources = (path for pattern in _SOURCES for path in _PACKAGE.glob(pattern))
    own = [] if folder is None or folder.parent == EXPERIMENTS else [folder]
    models = (path for place in (*sorted(EXPERIMENTS.glob("*")), *own) for path in _models(place))
    for path in [*sorted([*sources, *table_files()]), *models, *(one / TABLES for one in own)]:
        content = hashlib.sha256(path.read_bytes() if path.is_file() else b"").hexdigest()
        name = path.relative_to(CHECKOUT) if path.is_relative_to(CHECKOUT) else path.name
        digest.update(f"{name}\0{content}\n".encode())
    return digest.hexdigest()[:DIGITS]
