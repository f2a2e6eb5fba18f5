# SPDX-License-Identifier: GPL-2.0-only
"""Other values for fields of rows than their file has: `--set FIELD=VALUE`."""

import tomllib
from collections.abc import Iterable
from typing import Any, TypeVar

from pydantic import ValidationError

from ream.errors import BadUsage
from ream.experiment.shape import ExperimentBase, RowBase
from ream.nearest import hint
from ream.values import faults

E = TypeVar("E", bound=ExperimentBase[Any])
R = TypeVar("R", bound=RowBase)

OPTION = "--set"

_FIXED = ("name", "stage", "published", "differs", "no_verdict", "part_of", "on_request")
"""Which row it is, and what it is compared with: with another of these it is another row."""


def given(experiment: E, texts: Iterable[str]) -> E:
    """The same experiment, each of whose rows has these fields instead of its own.

    texts: FIELD=VALUE, where VALUE is as in a file, a text also without quotes. Rows are held to
    the same rules. A row of which something else is measured then than its tables have gets no
    verdict. Raises BadUsage with every fault.
    """
    values: dict[str, object] = {}
    for text in texts:
        field, equals, value = text.partition("=")
        if not equals:
            raise BadUsage(f"{OPTION} {text}: say FIELD=VALUE, as in {OPTION} threads=4")
        if field in values:
            raise BadUsage(f"{OPTION} {field}: given twice")
        _check(field, type(experiment.rows[0]))
        values[field] = _value(value)
    rows = tuple(_given(row, values) for row in experiment.rows) if values else experiment.rows
    return experiment.model_copy(update={"rows": rows})


def _check(field: str, kind: type[RowBase]) -> None:
    known = [name for name in kind.model_fields if name not in _FIXED]
    if field in _FIXED:
        raise BadUsage(f"{OPTION} {field}: is what a row is known by; write a .toml file instead")
    if field not in known:
        there = f"{hint(field, known)}; a row has {', '.join(known)}"
        raise BadUsage(f"{OPTION} {field}: no field of a row{there}")


def _value(text: str) -> object:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:  # a text, as 16GiB
        return text


def _given(row: R, values: dict[str, object]) -> R:
    fields = {**row.model_dump(mode="json", exclude_unset=True), **values}
    if (other := values.keys() - row.free_fields) and row.published and row.no_verdict is None:
        said = ", ".join(f"{name}={values[name]}" for name in sorted(other))
        fields["no_verdict"] = (
            f"{said} was set, with which this row is another one than the table's"
        )
    try:
        return type(row).model_validate(fields)
    except ValidationError as cause:
        raise faults(f"{OPTION}: row {row.name}", cause) from cause
