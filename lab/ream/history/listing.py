# SPDX-License-Identifier: GPL-2.0-only
"""The history as text and as an object, with the newest run first."""

import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ream.experiment import shown
from ream.history.choose import Choice
from ream.history.entry import Damaged, HistoryEntry, started
from ream.record.archive import MEMBER, archive_of
from ream.record.archive import files_of as archived_files
from ream.record.packed import place_of
from ream.record.record import (
    CONSOLES,
    LETTER,
    NOISE,
    PLAN,
    RECEIPT,
    RUN,
    SAMPLES,
    SCHEMA,
    SERIES,
    TABLE,
)
from ream.record.sums import SUMS
from ream.report.numbers import fit
from ream.width import width

RATIO_COLUMNS = 5
DIGITS = 3
SIGNIFICANT = 5
MOST_NAMED = 4
"""The most ratios that are printed for a run; a run with --per-patch has dozens."""
FILES = (RUN, RECEIPT, SAMPLES, TABLE, LETTER, PLAN, NOISE, SERIES, CONSOLES, SUMS)


def listing(entries: Iterable[HistoryEntry], choice: Choice) -> Iterator[str]:
    """For each run, its id, which begins with its time, and a summary of its results."""
    for entry in entries:
        yield entry.run
        yield from textwrap.wrap(
            "  ".join(_words(entry, choice)),
            width(),
            initial_indent=" " * 4,
            subsequent_indent=" " * 4,
            break_on_hyphens=False,
        )


def _words(entry: HistoryEntry, choice: Choice) -> Iterator[str]:
    yield _number(len(choice.rows(entry)), "row")
    yield headline(entry, choice)
    if verdicts := verdict_words(entry, choice):
        yield verdicts
    if entry.nr_doubts:
        yield _number(entry.nr_doubts, "doubt")
    if entry.fault is not None:
        yield f"DAMAGED: {entry.fault}"


def verdict_words(entry: HistoryEntry, choice: Choice) -> str:
    """Each verdict on a published table with its number; empty if there is none."""
    verdicts = entry.verdicts(choice.rows(entry))
    return ", ".join(f"{word} {number}" for word, number in verdicts.items())


def headline(entry: HistoryEntry, choice: Choice) -> str:
    """The ratio to `before` of each variant, of which a few are named."""
    found = [
        f"{shown(one.variant)} {fit(one.ratio, RATIO_COLUMNS, DIGITS)}"
        + (f" ({one.unit})" if one.unit != "ns" else "")
        for one in entry.headlines(choice.rows(entry))
        if choice.variant in (None, one.variant)
    ]
    if len(found) > MOST_NAMED:
        found[MOST_NAMED:] = [f"and {len(found) - MOST_NAMED} more"]
    return ", ".join(found) or "no ratio to before"


def damaged_lines(damaged: Iterable[Damaged]) -> Iterator[str]:
    """Two lines for each damaged record: its name and its fault."""
    for one in damaged:
        yield one.name
        yield f"    DAMAGED: {one.fault}"


def entry_object(entry: HistoryEntry, choice: Choice, runs: Path) -> dict[str, Any]:
    """The object of a run in `--json`; docs/commands.md describes its fields."""
    began = started(entry.run)
    rows = choice.rows(entry)
    return {
        "run": entry.run,
        "path": str(runs / entry.run),
        "started": None if began is None else began.isoformat(),
        "experiment": entry.experiment,
        "stage": entry.stage,
        "machine": entry.machine,
        "machine_line": entry.machine_line,
        "tree": entry.tree,
        "benchmark": entry.benchmark,
        "nr_rows": len(rows),
        "rows": {name: _row_object(entry, name, choice) for name in rows},
        "skipped": list(entry.skipped),
        "headlines": [
            {**one.model_dump(), "ratio": float(f"{one.ratio:.{SIGNIFICANT}g}")}
            for one in entry.headlines(rows)
            if choice.variant in (None, one.variant)
        ],
        "verdicts": dict(entry.verdicts(rows)),
        "nr_doubts": entry.nr_doubts,
        "fault": entry.fault,
    }


def _row_object(entry: HistoryEntry, name: str, choice: Choice) -> dict[str, Any]:
    row = entry.rows[name]
    return {
        "unit": row.unit,
        "verdicts": list(row.verdicts),
        "variants": {
            variant: its.model_dump()
            for variant, its in row.variants.items()
            if choice.variant in (None, variant)
        },
    }


def history_object(
    entries: Sequence[HistoryEntry],
    damaged: Iterable[Damaged],
    interrupted: Iterable[Mapping[str, Any]],
    *,
    choice: Choice,
    runs: Path,
) -> dict[str, Any]:
    """The object of `ream history --json`; docs/commands.md describes its fields."""
    return {
        "schema": SCHEMA,
        "runs": [entry_object(entry, choice, runs) for entry in entries],
        "interrupted": [dict(one) for one in interrupted],
        "damaged": [
            {"run": one.name, "path": str(runs / one.name), "fault": one.fault} for one in damaged
        ],
    }


def files_of(path: Path) -> dict[str, str]:
    """The paths of those files that a record has, by name; in an archive, with its path."""
    if archive := archive_of(path):
        names = {name.partition("/")[0] for name in archived_files(path)}
        inside = archive / f"{path.name}{MEMBER}"
        return {name: str(inside / name) for name in FILES if name in names}
    places = {name: place_of(path / name) for name in FILES}
    return {name: str(place) for name, place in places.items() if place.exists()}


def alike(entries: Iterable[HistoryEntry], entry: HistoryEntry) -> list[HistoryEntry]:
    """Other runs of the same experiment, at the same stage, on the same machine."""
    return [
        other
        for other in entries
        if other.run != entry.run
        and (other.experiment, other.stage, other.machine)
        == (entry.experiment, entry.stage, entry.machine)
    ]


def _number(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
