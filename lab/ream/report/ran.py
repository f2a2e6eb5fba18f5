# SPDX-License-Identifier: GPL-2.0-only
"""What a summary is made of besides samples and receipt, so that it can be made again."""

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
"""The key of plan.json that has it."""

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
"""Of the package, what a number of run.json can depend on; a test holds it against imports."""


@dataclass(frozen=True, kw_only=True)
class Results:
    """What a run brings back that is said of it; the receipt has the rest."""

    rows: tuple[Row, ...]
    """As they ran, perhaps with a smaller device than asked for."""
    samples: tuple[Sample, ...]
    unit: Unit = "ns"
    units: Mapping[str, Unit] = field(default_factory=dict)
    """By row, where it is not `unit`."""
    skipped: Mapping[str, str] = field(default_factory=dict)
    """By row: why it has no samples."""
    remarks: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By row: what the stage knows of it besides samples."""
    left_out: Mapping[str, LeftOut | str] = field(default_factory=dict)
    """By row that is a part of what was published: what is left out, or why it is not known."""
    wrong: Mapping[str, str] = field(default_factory=dict)
    """By variant of the user's that is wrong, what it did: it has no samples."""
    untouched: Mapping[str, str] = field(default_factory=dict)
    """By given series that changes nothing that is executed, why: it was not measured."""

    def unit_of(self, row: str) -> Unit:
        return self.units.get(row, self.unit)


class Ran(Value):
    """What is in plan.json of the results: what neither samples nor receipt have."""

    rows: Sealed[str, Sealed[str, Any] | None]
    """By name and in order, the fields of a row that ran otherwise than asked; else null."""
    unit: Unit
    units: Sealed[str, Unit]
    skipped: Sealed[str, str]
    remarks: Sealed[str, Texts]
    left_out: Sealed[str, LeftOut | str]

    @classmethod
    def of(cls, asked: Experiment, results: Results) -> Self:
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
        )

    def results(self, asked: Experiment, samples: Iterable[Sample]) -> Results:
        """What the run brought back; raises ValueError if the experiment has no such row."""
        return Results(
            rows=tuple(self._rows(asked)),
            samples=tuple(samples),
            unit=self.unit,
            units=self.units,
            skipped=self.skipped,
            remarks=self.remarks,
            left_out=self.left_out,
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
    """What says what a row of an experiment is: rows.py, and what lies beside it that it uses."""
    if not (rows := folder / "rows.py").is_file():
        return []
    used = _BESIDE.findall(rows.read_text(encoding="utf-8"))
    return sorted({rows, *(folder / f"{name}.py" for name in used)})


@cache
def summary_id(folder: Path | None = None) -> str:
    """A digest of what makes run.json from samples: sources, published tables, Python and scipy.

    folder: of an experiment that is none of this checkout's, whose rows and tables count, too.
    Where it is the same, the same samples make the same numbers.
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
