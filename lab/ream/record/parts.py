# SPDX-License-Identifier: GPL-2.0-only
"""Reads single properties of a finished record, such as its run, machine and rows."""

from collections.abc import Mapping
from typing import Any

from ream.record.record import Record


def part(value: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """An object inside another one of a record; empty if there is none."""
    found = value.get(name)
    return found if isinstance(found, Mapping) else {}


def cell_of(record: Record) -> str | None:
    """The id of the plan's cell that a record belongs to; None if it belongs to none."""
    found = part(record.receipt, "settings").get("cell")
    return found if isinstance(found, str) else None


def run_id(record: Record) -> str:
    """The run id of a record; for a record without one, its directory's name."""
    return str(record.run.get("run") or record.path.name)


def machine_key(record: Record) -> str:
    """The machine's id; for an old record, its description."""
    return machine_id(record) or f"{machine_line(record)}, no id"


def machine_id(record: Record) -> str | None:
    """The id of a record's machine; None for an old record or a machine without one."""
    found = part(record.receipt, "machine").get("id")
    return str(found) if found else None


def machine_line(record: Record) -> str:
    """A short description of the machine."""
    cpu = part(record.receipt, "machine").get("cpu")
    return str(part(record.run, "receipt").get("machine") or cpu)


def cpu_type(machine: Mapping[str, Any]) -> str:
    """The name, family and model of the CPU in a receipt's description of a machine."""
    return f"{machine.get('cpu')} (family {machine.get('family')} model {machine.get('model')})"


def variants_of(record: Record) -> Mapping[str, Any]:
    """The series of each variant."""
    return part(part(record.receipt, "kernel"), "variants")


def rows_of(record: Record) -> dict[str, Mapping[str, Any]]:
    """The rows of run.json by name."""
    rows = record.run.get("rows")
    return {
        str(row.get("row")): row
        for row in (rows if isinstance(rows, list) else ())
        if isinstance(row, Mapping)
    }
