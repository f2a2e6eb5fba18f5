# SPDX-License-Identifier: GPL-2.0-only
"""The object of `ream replicate --json`, schema 1, as docs/format.md describes it.

Within a schema number fields are added and never renamed. An unknown value is null, never 0.
"""

from collections.abc import Sequence
from typing import Any

from ream.experiment import BEFORE, PUBLISHED
from ream.measure.verdict import CONTROLS
from ream.replicate.counts import Counts
from ream.replicate.defence import defence
from ream.replicate.outcome import Line, Replication
from ream.replicate.rule import WORDS
from ream.replicate.why import bound, differences, same_measurements

SCHEMA = 1


def to_object(replications: Sequence[Replication]) -> dict[str, Any]:
    """The object as plain values for json.dumps()."""
    return {
        "schema": SCHEMA,
        "tables": [_table(one) for one in replications],
        # Lines of tables of different kinds, or of one measurement, have no sum.
        "totals": None,
        "same_measurement": [list(ids) for ids in same_measurements(replications)],
    }


def _table(one: Replication) -> dict[str, Any]:
    table, counts = one.table, one.counts
    return {
        "id": table.id,
        "experiment": table.experiment,
        "title": table.title,
        "author": table.author,
        "date": table.date.isoformat() if table.date else None,
        "message_id": table.message_id,
        "machine": table.machine,
        "architecture": table.architecture,
        "machine_here": one.machine.line(),
        "verdict": one.word,
        "fair": defence(one),
        "counts": {word: counts.get(word, 0) for word in WORDS},
        "records": [source.name for source in one.sources],
        "lines": [_line(line, is_control=line in one.controls) for line in one.lines],
        "differs": [
            {"what": said.what, "there": said.there, "here": said.here or None}
            for said in differences(one)
        ],
        "controls": {what: sum(line.control == what for line in one.controls) for what in CONTROLS},
    }


def _line(line: Line, *, is_control: bool) -> dict[str, Any]:
    printed, verdict = line.claim.printed, line.verdict
    return {
        "params": dict(line.claim.line.params),
        "value": line.claim.value,
        "unit": printed.unit,
        "better": printed.better,
        "before": printed.before,
        "published": printed.published,
        "before_sd": printed.before_sd,
        "published_sd": printed.published_sd,
        "ratio": printed.ratio,
        "verdict": None if verdict is None else verdict.word,
        "reason": None if verdict is None else verdict.reason,
        "here": _here(line),
        "control": line.control if is_control else None,
        "would_try": line.would_try,
        "inferred": list(printed.inferred),
        "architecture_counts": [_counts(one) for one in line.counts],
    }


def _counts(one: Counts) -> dict[str, Any]:
    return {
        "record": one.record,
        "row": one.row,
        "per": one.per,
        "before": one.before,
        "published": one.published,
        "ratio": one.ratio,
    }


def _here(line: Line) -> dict[str, Any] | None:
    if line.row is None or line.source is None:
        return None
    ratio, floor, its, parts = line.ratio, line.floor, bound(line), line.parts
    return {
        "record": line.source.name,
        "stage": line.source.summary.stage,
        "row": line.row.row,
        "before": line.here(BEFORE),
        "published": line.here(PUBLISHED),
        "ratio": None if ratio is None else ratio.ratio,
        "low": None if ratio is None else ratio.low,
        "high": None if ratio is None else ratio.high,
        "floor": None if floor is None else floor.model_dump(mode="json"),
        "nr_bytes": None if its is None else its.nr_bytes,
        "of_l3": None if its is None else its.of_l3,
        "before_of_limit": None if its is None else its.of_limit,
        "published_of_limit": None if its is None else its.after,
        "limit": None if its is None else its.how,
        "limit_threads": None if its is None else its.threads,
        "most_gain": None if its is None else its.most,
        "limit_kind": None if its is None else ("bound" if its.is_bound else "plain loop"),
        "limit_in_error": None if its is None else its.is_in_error,
        "live_part_ns": None if parts is None else parts.live_ns,
        "hosted_part_ns": None if parts is None else parts.hosted_ns,
        "live_over_hosted": None if parts is None else parts.ratio,
        "whole": None if line.row.whole is None else line.row.whole.model_dump(mode="json"),
    }
