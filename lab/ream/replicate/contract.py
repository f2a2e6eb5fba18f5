# SPDX-License-Identifier: GPL-2.0-only
"""The object of `ream replicate --json`, schema 1, as docs/format.md describes it.

Within a schema number fields are added and never renamed. An unknown value is null, never 0.
"""

from collections.abc import Sequence
from typing import Any

from ream.experiment import BEFORE, PUBLISHED
from ream.replicate.outcome import Line, Replication, Totals, totals
from ream.replicate.render import WORDS
from ream.replicate.rule import CONTROLS
from ream.replicate.why import bound, differences

SCHEMA = 1


def to_object(replications: Sequence[Replication]) -> dict[str, Any]:
    """The object as plain values for json.dumps()."""
    return {
        "schema": SCHEMA,
        "tables": [_table(one) for one in replications],
        "totals": _totals(totals(replications)),
    }


def _totals(its: Totals) -> dict[str, Any]:
    return {
        "claims": {word: its.claims.get(word, 0) for word in WORDS},
        "claims_measured_rows": its.claims_measured,
        "small": its.small,
        "small_tried": its.small_tried,
        "small_measured_rows": {
            one: its.small_measured.get(one, 0) for one in CONTROLS if one != "not tried"
        },
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
        "machine_here": one.machine.line(),
        "verdict": one.word,
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
    }


def _here(line: Line) -> dict[str, Any] | None:
    if line.row is None or line.source is None:
        return None
    ratio, floor, its = line.ratio, line.floor, bound(line)
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
        "whole": None if line.row.whole is None else line.row.whole.model_dump(mode="json"),
    }
