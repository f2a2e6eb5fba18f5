# SPDX-License-Identifier: GPL-2.0-only
"""What a kept run says of how well hosted times predict the running kernel's on a type of CPU."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ream.errors import ReamError
from ream.experiment import BEFORE, Row
from ream.record.archive import paths_in
from ream.record.parts import cpu_type, part, rows_of
from ream.record.record import PLAN, Record, is_record, read_object
from ream.report.numbers import fit


def share_remarks(rows: Iterable[Row], cpu: str, places: Iterable[Path]) -> dict[str, tuple[str]]:
    """By row that has a published table, how many times as long the running kernel takes.

    cpu: its type. places: directories of records, of which the newest run with --beside-live on
    such a CPU is taken; the first that has one. Rows of which it has no ratio are absent.
    """
    asked = [row for row in rows if row.published and row.size_of]
    found = _newest(cpu, places) if asked else None
    if found is None:
        return {}
    said = dict(_said(found))
    return {row.name: (said[row.size_of],) for row in asked if row.size_of in said}


def _newest(cpu: str, places: Iterable[Path]) -> Record | None:
    for place in places:
        paths = (path for path in reversed(paths_in(place)) if "-native-" in path.name)
        for path in filter(is_record, paths):
            try:
                if not read_object(path / PLAN).get("beside_live"):
                    continue
                record = Record.load(str(path), place)
            except (ReamError, OSError):
                continue  # one that is damaged says nothing
            if cpu_type(part(record.receipt, "machine")) == cpu:
                return record
    return None


def _said(record: Record) -> Iterator[tuple[str, str]]:
    """By kind of row, a sentence."""
    for row in rows_of(record).values():
        slope: Mapping[str, Any] = part(part(row, "live"), "slope")
        over = part(slope, "over").get(BEFORE)
        if not over:
            continue
        ratio, low, high = (fit(over[name], 4, 2) for name in ("ratio", "low", "high"))
        words = (
            f"on this type of CPU the running kernel takes {ratio} [{low} .. {high}] times as long"
            f" for each further page as hosted {BEFORE} ({record.run.get('run')})"
        )
        yield str(slope.get("kind")), words
