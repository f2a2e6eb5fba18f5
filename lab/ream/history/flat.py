# SPDX-License-Identifier: GPL-2.0-only
"""Records as flat lines: one for each run, row and variant, or one for each sample.

A column's name states its unit. Its type does not depend on the records: a value that a record
lacks is empty. Times and counts of instructions have separate columns.
"""

import json
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, Literal, cast

from ream.compare.facts import series_ids
from ream.experiment.columns import OF_ROW
from ream.experiment.registry import columns_of
from ream.folders import names
from ream.history.entry import started
from ream.history.ratios import COUNTED, lines, units
from ream.record.parts import machine_key, part, variants_of
from ream.record.record import RUN, Record
from ream.report.contract import COLUMNS, ColumnValue, Result, RowResult, Summary

Kind = Literal["text", "whole", "real", "yes", "moment"]
Cell = str | int | float | bool | None
Flat = dict[str, Cell]

_OF_RUN: Mapping[str, Kind] = {
    "run": "text",
    "started": "moment",
    "experiment": "text",
    "stage": "text",
    "machine": "text",
    "machine_line": "text",
    "benchmark": "text",
    "tree": "text",
    "tree_key": "text",
    "kernel": "text",
    "compiler": "text",
    "guest": "text",
    "ream": "text",
    "seed": "whole",
    "load_before": "real",
    "load_after": "real",
    "steal_pct": "real",
    "others_pct": "real",
    "nr_warnings": "whole",
}
_OF_ROW: Mapping[str, Kind] = {
    "row": "text",
    "title": "text",
    "params": "text",
    "unit": "text",
    "better": "text",
    "bytes_of": "text",
    "floor_ratio": "real",
    "floor_low": "real",
    "floor_high": "real",
    "limit_how": "text",
    "limit_ns": "whole",
    "limit_threads": "whole",
    "nr_notes": "whole",
    "published_table": "text",
    "published_ratio": "real",
    "verdict": "text",
    "verdict_reason": "text",
    "stand_in": "text",
    "model": "text",
    "whole": "text",
    "whole_share": "real",
    "whole_ratio": "real",
    "whole_low": "real",
    "whole_high": "real",
    "smallest_effect": "real",
    "control_asked": "real",
    "control_found": "yes",
}
_OF_VARIANT: Mapping[str, Kind] = {
    "variant": "text",
    "series": "text",
    "median_ns": "whole",
    "median_instructions": "whole",
    "nr_samples": "whole",
    "launches": "whole",
    "threads": "whole",
    "nr_bytes": "whole",
    "ratio": "real",
    "low": "real",
    "high": "real",
    "spread_low": "real",
    "spread_high": "real",
    "effect": "text",
    "p_value": "real",
    "layout_depends": "yes",
    "of_limit": "real",
    "of_limit_low": "real",
    "of_limit_high": "real",
    "ns_per_page": "real",
    "instructions_per_page": "real",
    "ns_per_entry": "real",
    "instructions_per_entry": "real",
    "ns_per_batch": "real",
    "gb_per_s": "real",
    "over_published": "real",
    "over_published_low": "real",
    "over_published_high": "real",
    "verified": "yes",
    "cpu_ns": "whole",
    "cpu_s_per_gib": "real",
    "compared_with": "text",
    "within": "real",
    "launches_needed": "whole",
    "cpu_over_before": "real",
    "cpu_over_before_low": "real",
    "cpu_over_before_high": "real",
}
_COLUMNS: Mapping[str, Kind] = {
    column.name: "whole" if column.summarised == "whole" else "real"
    for experiment in names()
    for column in columns_of(experiment).columns
    if column.unit != OF_ROW and column.summarised != "ratio"
}
"""Columns that experiments declare, except those whose unit depends on the row."""

RESULTS: Mapping[str, Kind] = MappingProxyType(
    {
        **_OF_RUN,
        **_OF_ROW,
        **_OF_VARIANT,
        **{f"{COLUMNS}_{name}": kind for name, kind in _COLUMNS.items()},
    }
)
"""Columns of results, in order, with their types."""

SAMPLES: Mapping[str, Kind] = MappingProxyType(
    {
        **{name: _OF_RUN[name] for name in ("run", "started", "experiment", "stage")},
        **{name: _OF_RUN[name] for name in ("machine", "benchmark", "tree_key")},
        "row": "text",
        "launch": "whole",
        "round": "whole",
        "role": "text",
        "subject": "text",
        "threads": "whole",
        "time_ns": "whole",
        "instructions": "whole",
        "nr_bytes": "whole",
        "verified": "yes",
        "extra": "text",
        "cpu_ns": "whole",
    }
)
"""Columns of samples, in order, with their types; `extra` has the stage's own keys as JSON."""


def results(record: Record) -> Iterator[Flat]:
    """One line for each row and variant of a record, with the columns RESULTS.

    Raises BadUsage if run.json is invalid.
    """
    summary = Summary.from_object(record.run, source=str(record.path / RUN))
    own = of_run(record, summary)
    variants = variants_of(record)
    for row in summary.rows:
        of_row = _row(row)
        for name, result in row.variants.items():
            series = str(series_ids(variants[name])) if variants.get(name) else None
            its = _variant(result, counted=row.unit == COUNTED)
            yield {**own, **of_row, "variant": name, "series": series, **its}


def samples(record: Record) -> Iterator[Flat]:
    """One line for each sample of a record, with the columns SAMPLES.

    Raises ReamError at a line that is no sample.
    """
    summary = Summary.from_object(record.run, source=str(record.path / RUN))
    own = {name: value for name, value in of_run(record, summary).items() if name in SAMPLES}
    unit = units(record)
    for line in lines(record):
        sample = line.sample
        # A fill is timed, whatever the kernel code beside it is.
        counted = unit.get(sample.row) == COUNTED and sample.role == "variant"
        yield {
            **own,
            "row": sample.row,
            "launch": sample.launch,
            "round": sample.round,
            "role": sample.role,
            "subject": sample.subject,
            "threads": sample.threads,
            "time_ns": None if counted else sample.time_ns,
            "instructions": sample.time_ns if counted else None,
            "nr_bytes": sample.nr_bytes,
            "verified": sample.verified,
            "extra": json.dumps(dict(line.extra)) if line.extra else None,
            "cpu_ns": sample.cpu_ns,
        }


def of_run(record: Record, summary: Summary) -> Flat:
    """The columns that all lines of a run share."""
    kernel = part(record.receipt, "kernel")
    began = started(summary.run)
    receipt = summary.receipt
    return {
        "run": summary.run,
        "started": None if began is None else began.isoformat(),
        "experiment": summary.experiment,
        "stage": summary.stage,
        "machine": machine_key(record),
        "machine_line": receipt.machine,
        "benchmark": _text(record.receipt.get("benchmark")),
        "tree": receipt.tree,
        "tree_key": _text(kernel.get("tree_key")),
        "kernel": _text(kernel.get("version")),
        "compiler": receipt.compiler,
        "guest": receipt.guest,
        "ream": receipt.ream,
        "seed": receipt.seed,
        "load_before": receipt.load_before,
        "load_after": receipt.load_after,
        "steal_pct": receipt.steal_pct,
        "others_pct": receipt.others_pct,
        "nr_warnings": len(receipt.warnings),
    }


def _row(row: RowResult) -> Flat:
    floor, limit, published = row.floor, row.limit, row.published_table
    whole = row.whole.ratio if row.whole else None
    return {
        "row": row.row,
        "title": row.title,
        "params": json.dumps(dict(row.params)),
        "unit": row.unit,
        "better": row.better,
        "bytes_of": row.bytes_of,
        "floor_ratio": _field(floor, "ratio"),
        "floor_low": _field(floor, "low"),
        "floor_high": _field(floor, "high"),
        "limit_how": _field(limit, "how"),
        "limit_ns": _field(limit, "value"),
        "limit_threads": _field(limit, "threads"),
        "nr_notes": len(row.notes),
        "published_table": _field(published, "id"),
        "published_ratio": _field(published, "ratio"),
        "verdict": _field(published, "verdict"),
        "verdict_reason": _field(published, "reason"),
        "stand_in": _field(published, "stand_in"),
        "model": _field(published, "model"),
        "whole": _field(row.whole, "name"),
        "whole_share": _field(row.whole, "share"),
        "whole_ratio": _field(whole, "ratio"),
        "whole_low": _field(whole, "low"),
        "whole_high": _field(whole, "high"),
        "smallest_effect": row.smallest_effect,
        "control_asked": _field(row.control, "asked"),
        "control_found": _field(row.control, "found"),
    }


def _variant(result: Result, *, counted: bool) -> Flat:
    over = result.over_published
    return {
        "median_ns": None if counted else result.median,
        "median_instructions": result.median if counted else None,
        "nr_samples": result.rounds,
        "launches": result.launches,
        "threads": result.threads,
        "nr_bytes": result.nr_bytes,
        "ratio": result.ratio,
        "low": result.low,
        "high": result.high,
        "spread_low": result.spread_low,
        "spread_high": result.spread_high,
        "effect": result.effect,
        "p_value": result.p_value,
        "layout_depends": _field(result.layout, "depends"),
        "of_limit": result.of_limit,
        "of_limit_low": result.of_limit_low,
        "of_limit_high": result.of_limit_high,
        "ns_per_page": result.ns_per_page,
        "instructions_per_page": result.per_page if counted else None,
        "ns_per_entry": None if counted else result.per_entry,
        "instructions_per_entry": result.per_entry if counted else None,
        "ns_per_batch": result.per_batch,
        "gb_per_s": None if counted else result.gb_per_s,
        "over_published": _field(over, "ratio"),
        "over_published_low": _field(over, "low"),
        "over_published_high": _field(over, "high"),
        "verified": result.verified,
        "cpu_ns": result.cpu_ns,
        "cpu_s_per_gib": result.cpu_s_per_gib,
        "compared_with": result.compared_with,
        "within": result.within,
        "launches_needed": result.launches_needed,
        "cpu_over_before": _field(result.cpu_over_before, "ratio"),
        "cpu_over_before_low": _field(result.cpu_over_before, "low"),
        "cpu_over_before_high": _field(result.cpu_over_before, "high"),
        **_columns(result.columns or {}),
    }


def _columns(its: Mapping[str, ColumnValue]) -> Flat:
    found = {name: its.get(name) for name in _COLUMNS}
    return {
        f"{COLUMNS}_{name}": value if isinstance(value, int | float) else None
        for name, value in found.items()
    }


def _field(part: object, name: str) -> Cell:
    """A field of an object, or None if there is no object."""
    return None if part is None else cast("Cell", getattr(part, name))


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None
