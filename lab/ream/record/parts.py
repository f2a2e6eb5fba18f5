# SPDX-License-Identifier: GPL-2.0-only
"""What a finished record says of itself: its run, its machine and its rows."""

from collections.abc import Mapping
from typing import Any

from ream.record.record import Record


def part(value: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """An object inside of a record's; an empty one where there is none."""
    found = value.get(name)
    return found if isinstance(found, Mapping) else {}


def cell_of(record: Record) -> str | None:
    """The id of the cell of a plan that a record is of; None: of none."""
    found = part(record.receipt, "settings").get("cell")
    return found if isinstance(found, str) else None


def run_id(record: Record) -> str:
    return str(record.run.get("run") or record.path.name)


def machine_key(record: Record) -> str:
    """What tells this record's machine from others: its id, of an old record its description."""
    return machine_id(record) or f"{machine_line(record)}, no id"


def machine_id(record: Record) -> str | None:
    """The id of this record's machine; None of an old record, or where there was none."""
    found = part(record.receipt, "machine").get("id")
    return str(found) if found else None


def machine_line(record: Record) -> str:
    """The machine in a few words."""
    cpu = part(record.receipt, "machine").get("cpu")
    return str(part(record.run, "receipt").get("machine") or cpu)


def variants_of(record: Record) -> Mapping[str, Any]:
    """The series that each variant was built with."""
    return part(part(record.receipt, "kernel"), "variants")


def rows_of(record: Record) -> dict[str, Mapping[str, Any]]:
    """The rows of run.json by name."""
    rows = record.run.get("rows")
    return {
        str(row.get("row")): row
        for row in (rows if isinstance(rows, list) else ())
        if isinstance(row, Mapping)
    }
