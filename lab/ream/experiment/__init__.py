# SPDX-License-Identifier: GPL-2.0-only
"""What is measured: an experiment is a question, its variants and its rows, one TOML file each."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from ream.errors import BadUsage
from ream.experiment.compact import IDEAL_PAGES, Compact, CompactRow
from ream.experiment.deferred_init import DeferredInit, DeferredInitRow
from ream.experiment.fork import Fork, ForkRow
from ream.experiment.given import given
from ream.experiment.migrate import Migrate, MigrateRow
from ream.experiment.shape import (
    AGAIN,
    BASE,
    BEFORE,
    BEFORE_AGAIN,
    BYTES_PER_PAGE,
    CONTROL,
    IMPLIED,
    PAGE_BYTES,
    PUBLISHED,
    RUNNING,
    STRUCT_PAGE_BYTES,
    BytesOf,
    Cell,
    PublishedRef,
    Stage,
    is_copy,
)
from ream.experiment.size import format_size, parse_size
from ream.experiment.zone_device import ZoneDevice, ZoneDeviceRow
from ream.grid import expanded
from ream.values import faults, read_toml

__all__ = [
    "AGAIN",
    "BASE",
    "BEFORE",
    "BEFORE_AGAIN",
    "BYTES_PER_PAGE",
    "CONTROL",
    "IDEAL_PAGES",
    "IMPLIED",
    "PAGE_BYTES",
    "PUBLISHED",
    "RUNNING",
    "STRUCT_PAGE_BYTES",
    "BytesOf",
    "Cell",
    "Compact",
    "CompactRow",
    "DeferredInit",
    "DeferredInitRow",
    "Experiment",
    "Fork",
    "ForkRow",
    "Migrate",
    "MigrateRow",
    "PublishedRef",
    "Row",
    "Stage",
    "ZoneDevice",
    "ZoneDeviceRow",
    "format_size",
    "given",
    "is_copy",
    "load",
    "make_row",
    "parse_size",
]

Experiment = ZoneDevice | DeferredInit | Fork | Migrate | Compact
Row = ZoneDeviceRow | DeferredInitRow | ForkRow | MigrateRow | CompactRow

_BY_NAME: Mapping[object, type[Experiment]] = {
    "compact": Compact,
    "deferred-init": DeferredInit,
    "fork": Fork,
    "migrate": Migrate,
    "zone-device": ZoneDevice,
}


def load(path: Path) -> Experiment:
    """Read one experiment file, its grids as single rows.

    Raises BadUsage with every fault of the file, one line each: file: field: fault (value).
    """
    fields = read_toml(path)
    name = fields.get("name")
    kind = _BY_NAME.get(name) if isinstance(name, str) else None
    if kind is None:
        said = "Field required" if name is None else f"there is no such experiment (it is {name!r})"
        raise BadUsage(f"{path}: name: {said}; there are {', '.join(map(str, _BY_NAME))}")
    places: tuple[int, ...] = ()
    if isinstance(rows := fields.get("rows"), list) and rows:
        places, fields["rows"] = zip(*expanded(rows, source=str(path)), strict=True)
    try:
        return kind.model_validate(fields)
    except ValidationError as cause:
        raise faults(str(path), cause, rows=places) from cause


def make_row(fields: Mapping[str, Any], *, source: str = "command line") -> ZoneDeviceRow:
    """A row of zone-device from options instead of a file, held to the same rules.

    Raises BadUsage with every fault, each line beginning with `source`.
    """
    try:
        return ZoneDeviceRow.model_validate(dict(fields))
    except ValidationError as cause:
        raise faults(source, cause) from cause
