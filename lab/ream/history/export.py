# SPDX-License-Identifier: GPL-2.0-only
"""Exports flat lines as CSV and as JSON lines, each as bytes."""

import csv
import io
import json
from collections.abc import Iterable, Mapping
from typing import Literal

from ream.history.flat import Cell, Flat, Kind
from ream.record.record import SCHEMA

Format = Literal["csv", "jsonl"]

NO_CHARACTER = "backslashreplace"
"""How an unpaired surrogate is encoded, which a name in damaged JSON may contain."""


def to_csv(lines: Iterable[Flat], columns: Mapping[str, Kind]) -> bytes:
    """CSV with a header line; unknown values are empty, truth values are `true` or `false`."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    for line in lines:
        writer.writerow([_cell(line[name]) for name in columns])
    return text.getvalue().encode(errors=NO_CHARACTER)


def _cell(value: Cell) -> Cell:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value


def to_jsonl(lines: Iterable[Flat], columns: Mapping[str, Kind]) -> bytes:
    """One JSON object per line with every column; unknown values are null."""
    return "".join(
        json.dumps({"schema": SCHEMA, **{name: line[name] for name in columns}}, allow_nan=False)
        + "\n"
        for line in lines
    ).encode()
