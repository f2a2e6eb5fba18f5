# SPDX-License-Identifier: GPL-2.0-only
"""The object of a run with the names that its variants have for readers."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, TypeVar

from pydantic import BaseModel

from ream.experiment import SHOWN, shown, shown_in
from ream.report.contract import Grid, Summary

T = TypeVar("T")

_BY_VARIANT = (
    *("floors", "functions", "hosted", "inclusive", "numbers", "over", "stand_ins", "untouched"),
    *("variants", "wrong"),
)
"""Fields whose keys are names of variants."""
_NAMES = ("after", "before", "compared_with", "of", "own", "subject")
_TEXTS = (
    *("differs", "explanation", "note", "notes", "patches", "reason", "remarks", "skipped"),
    *("tree", "untouched", "warnings", "wrong"),
)


def for_readers(summary: Summary) -> Summary:
    """The summary with what each variant is called for readers, in place of its name in records.

    A record in which another variant has one of these names keeps those that it has.
    """
    names = {name for row in summary.rows for name in row.variants} | {*summary.wrong}
    return summary if names & {*SHOWN.values()} else _of(summary)


def _of(part: T) -> T:
    if not isinstance(part, BaseModel) or (isinstance(part, Grid) and part.id is not None):
        return part  # what others published is no variant of ours
    update = {name: _value(name, getattr(part, name)) for name in type(part).model_fields}
    return part.model_copy(update=update)


def _value(field: str, value: Any) -> Any:
    if isinstance(value, str):
        return shown(value) if field in _NAMES else shown_in(value) if field in _TEXTS else value
    if isinstance(value, tuple):
        return tuple(_value(field, one) for one in value)
    if isinstance(value, Mapping):
        named = shown if field in _BY_VARIANT else str
        return MappingProxyType({named(key): _value(field, one) for key, one in value.items()})
    return _of(value)
