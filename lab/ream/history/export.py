# SPDX-License-Identifier: GPL-2.0-only
"""Exports flat lines as CSV, Parquet and JSON lines, each as bytes."""

import csv
import importlib
import io
import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Literal

from ream.history.flat import Cell, Flat, Kind
from ream.record.record import SCHEMA

Format = Literal["csv", "parquet", "jsonl", "kcidb"]

WHOLE = 1 << 63
"""The bound of Parquet's 64-bit integers; a seed beyond it becomes null there."""

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


def to_parquet(lines: Iterable[Flat], columns: Mapping[str, Kind]) -> bytes:
    """Parquet with one row group and zstd; every column has its type even if it is empty."""
    # Here, not above: a quarter of a second that no other command needs.
    arrow = importlib.import_module("pyarrow")
    parquet = importlib.import_module("pyarrow.parquet")
    kinds: Mapping[Kind, Any] = {
        "text": arrow.string(),
        "whole": arrow.int64(),
        "real": arrow.float64(),
        "yes": arrow.bool_(),
        "moment": arrow.timestamp("ms", tz="UTC"),
    }
    schema = arrow.schema([(name, kinds[kind]) for name, kind in columns.items()])
    table = arrow.Table.from_pylist(
        [{name: _typed(line[name], columns[name]) for name in columns} for line in lines],
        schema=schema.with_metadata({"ream_schema": str(SCHEMA)}),
    )
    sink = io.BytesIO()
    parquet.write_table(table, sink, compression="zstd")
    return sink.getvalue()


def _typed(value: Cell, kind: Kind) -> Any:
    if isinstance(value, str):
        if kind == "moment":
            return datetime.fromisoformat(value)
        return value.encode(errors=NO_CHARACTER).decode()
    if kind == "whole" and isinstance(value, int) and not -WHOLE <= value < WHOLE:
        return None
    return value
