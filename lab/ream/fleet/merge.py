# SPDX-License-Identifier: GPL-2.0-only
"""Merges the records of several machines. This is a pure function of the records.

Only ratios are pooled. Within a machine a launch is the replicate; over machines it is the machine,
since repeated runs on one machine do not predict another.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from ream.compare.pool import check_poolable, pooled
from ream.errors import BadUsage, ReamError
from ream.fleet.cell import Cell
from ream.history.ratios import ratios_of
from ream.measure.across import DIFFER_BELOW, chance_of_alike
from ream.measure.statistics import Estimate
from ream.record.archive import ARCHIVE, archive_of, archives_of
from ream.record.parts import cell_of, machine_key, machine_line, part, rows_of, run_id
from ream.record.record import RUN, Record, is_record

SCHEMA = 1
"""Schema number of the object of `ream merge --json`, described in docs/format.md."""

Over = Literal["machines", "launches"]


Key = tuple[str, str]
"""A record's run id and its machine's key, since two machines may draw one run id."""


@dataclass(frozen=True)
class UnreadRecord:
    """A record that cannot be read, and its fault."""

    path: str
    fault: str


@dataclass(frozen=True)
class Found:
    """The distinct records below some directories, in the order of their run ids."""

    records: tuple[Record, ...]
    ratios: Mapping[Key, Mapping[tuple[str, str], Estimate]]
    """The ratios of each record, by row and variant."""
    damaged: tuple[UnreadRecord, ...]


@dataclass(frozen=True)
class MergedMachine:
    """One of the machines, with the letter that the table uses for it."""

    letter: str
    key: str
    line: str
    nr_records: int
    nr_doubtful: int
    """The number of records with warnings about a possible bias."""


@dataclass(frozen=True)
class Merged:
    """One variant of one row, over all machines."""

    variant: str
    by_machine: Mapping[str, Estimate]
    """The estimate over all launches of each machine, by letter."""
    whole: Estimate
    over: Over
    """What the interval of `whole` is over: machines, or the launches of a single one."""
    alike: float | None
    """The p-value of the hypothesis that all machines have the same ratio; or None."""

    @property
    def differ(self) -> bool | None:
        """Whether the machines differ more than their launches explain; None if it is unknown."""
        return None if self.alike is None else self.alike < DIFFER_BELOW


@dataclass(frozen=True)
class MergedRow:
    """A row and its variants."""

    experiment: str
    stage: str
    row: str
    title: str
    unit: str
    better: str
    runs: tuple[str, ...]
    variants: tuple[Merged, ...]


@dataclass(frozen=True)
class Missing:
    """A cell of the plan that fewer machines have measured than it asks for."""

    cell: str
    experiment: str
    stage: str
    row: str
    repeat: int
    done: int
    wanted: int


@dataclass(frozen=True)
class Merge:
    """The result of `ream merge`."""

    machines: tuple[MergedMachine, ...]
    rows: tuple[MergedRow, ...]
    notes: tuple[str, ...]
    """Differences between records that are pooled nevertheless."""
    damaged: tuple[UnreadRecord, ...]
    missing: tuple[Missing, ...]
    planned: int | None
    """The number of cells of the plan; None if no plan was given."""

    def to_object(self, *, again: str | None) -> dict[str, Any]:
        """The object of --json; again: the command that measures missing cells."""
        return {
            "schema": SCHEMA,
            "machines": [
                {
                    "machine": machine.letter,
                    "id": machine.key,
                    "line": machine.line,
                    "records": machine.nr_records,
                    "doubtful": machine.nr_doubtful,
                }
                for machine in self.machines
            ],
            "rows": [_row_object(row) for row in self.rows],
            "notes": list(self.notes),
            "damaged": [{"path": one.path, "fault": one.fault} for one in self.damaged],
            "planned": self.planned,
            "missing": [vars(one) for one in self.missing],
            "again": again,
        }


def read_records(directories: Sequence[Path]) -> Found:
    """Every record below these directories. Damaged records are listed but not used.

    Raises BadUsage for a missing directory, or if there is no record at all.
    """
    records: dict[Key, Record] = {}
    ratios: dict[Key, Mapping[tuple[str, str], Estimate]] = {}
    damaged: list[UnreadRecord] = []
    for path in _places(directories):
        try:
            record = Record.load(str(path), path.parent)
            found = ratios_of(record)
        except ReamError as cause:
            damaged.append(UnreadRecord(str(path), str(cause)))
            continue
        # Fetched twice it is the same record.
        records.setdefault(_key(record), record)
        ratios.setdefault(_key(record), found)
    if not records:
        named = ", ".join(map(str, directories))
        faults = "".join(f"\n{one.fault}" for one in damaged)
        raise BadUsage(f"{named}: no record in there{faults}")
    in_order = tuple(record for _, record in sorted(records.items()))
    return Found(in_order, ratios, tuple(damaged))


def merge_records(found: Found, plan: Sequence[Cell] = ()) -> Merge:
    """Merge these records, and find the cells of the plan that are missing.

    Raises BadUsage, with all differences, if records of one row cannot be pooled.
    """
    machines = _machines(found.records)
    letters = {machine.key: machine.letter for machine in machines}
    by_row = _by_row(found.records)
    notes = [note for place, its in by_row.items() for note in _checked(place, its)]
    rows = [_row(place, its, found, letters) for place, its in by_row.items()]
    return Merge(
        machines=machines,
        rows=tuple(rows),
        notes=tuple(dict.fromkeys(notes)),
        damaged=found.damaged,
        missing=tuple(_missing(plan, found.records)),
        planned=len(plan) if plan else None,
    )


def _key(record: Record) -> Key:
    return run_id(record), machine_key(record)


Place = tuple[str, str, str]
"""The names of experiment, stage and row."""


def _places(directories: Sequence[Path]) -> Iterator[Path]:
    for directory in directories:
        if archive_of(directory) is not None:  # a record that an archive has
            yield directory
            continue
        if not directory.is_dir():
            raise BadUsage(f"{directory}: no such directory")
        found = {path.parent for path in directory.rglob(f"{RUN}*")}
        for place in {path.parent for path in directory.rglob(f"*{ARCHIVE}")}:
            found |= {place / name for name in archives_of(place)}
        for path in sorted(found):
            # An unfinished record is in a hidden directory.
            hidden = any(part.startswith(".") for part in path.relative_to(directory).parts)
            if is_record(path) and not hidden:
                yield path


def _machines(records: Iterable[Record]) -> tuple[MergedMachine, ...]:
    """The machines in the order of their keys, so that the same records give the same letters."""
    by_key: dict[str, list[Record]] = {}
    for record in records:
        by_key.setdefault(machine_key(record), []).append(record)
    return tuple(
        MergedMachine(
            letter=_letter(number),
            key=key,
            line=machine_line(by_key[key][0]),
            nr_records=len(by_key[key]),
            nr_doubtful=sum(1 for record in by_key[key] if record.receipt.get("warnings")),
        )
        for number, key in enumerate(sorted(by_key))
    )


def _letter(number: int) -> str:
    """The number as a letter: A, B, ... Z, AA, AB, ..."""
    text = ""
    while number >= 0:
        text = chr(ord("A") + number % 26) + text
        number = number // 26 - 1
    return text


def _by_row(records: Iterable[Record]) -> dict[Place, list[Record]]:
    found: dict[Place, list[Record]] = {}
    for record in records:
        of_what = (str(record.run.get("experiment")), str(record.run.get("stage")))
        for row in rows_of(record):
            found.setdefault((*of_what, row), []).append(record)
    return dict(sorted(found.items()))


def _checked(place: Place, records: Sequence[Record]) -> tuple[str, ...]:
    """Differences between a row's records; raises BadUsage if they cannot be pooled."""
    experiment, _, row = place
    way_out = (
        f"{experiment} {row} cannot be pooled; name records that are alike, by their paths, as in"
        " `ream merge DIR/RUN DIR/RUN`; `ream compare RUN RUN` says in what two differ"
    )
    return check_poolable(records, row, way_out)


def _row(
    place: Place, records: Sequence[Record], found: Found, letters: Mapping[str, str]
) -> MergedRow:
    experiment, stage, row = place
    shown = rows_of(records[0])[row]
    by_variant: dict[str, list[tuple[str, Estimate]]] = {}
    for record in records:
        letter = letters[machine_key(record)]
        for (its_row, variant), estimate in found.ratios[_key(record)].items():
            if its_row == row:
                by_variant.setdefault(variant, []).append((letter, estimate))
    return MergedRow(
        experiment=experiment,
        stage=stage,
        row=row,
        title=str(shown.get("title") or ""),
        unit=str(shown.get("unit")),
        better=str(shown.get("better")),
        runs=tuple(run_id(record) for record in records),
        variants=tuple(
            _merged(variant, by_variant[variant])
            for variant in dict.fromkeys((*part(shown, "variants"), *by_variant))
            if variant in by_variant
        ),
    )


def _merged(variant: str, estimates: Sequence[tuple[str, Estimate]]) -> Merged:
    found = pooled(sorted(estimates, key=lambda one: one[0]))
    return Merged(
        variant=variant,
        by_machine=found.by_machine,
        whole=found.whole,
        over="machines" if len(found.by_machine) > 1 else "launches",
        alike=chance_of_alike(found.by_machine.values()),
    )


def _missing(plan: Sequence[Cell], records: Iterable[Record]) -> Iterator[Missing]:
    machines: dict[str, set[str]] = {}
    for record in records:
        if (its := cell_of(record)) is not None:
            machines.setdefault(its, set()).add(machine_key(record))
    for cell in plan:
        nr_done = len(machines.get(cell.id, ()))
        if nr_done < cell.machines:
            yield Missing(
                cell=cell.id,
                experiment=cell.experiment,
                stage=cell.stage,
                row=cell.row_name,
                repeat=cell.repeat,
                done=nr_done,
                wanted=cell.machines,
            )


def _row_object(row: MergedRow) -> dict[str, Any]:
    return {
        "experiment": row.experiment,
        "stage": row.stage,
        "row": row.row,
        "title": row.title,
        "unit": row.unit,
        "better": row.better,
        "runs": list(row.runs),
        "variants": {one.variant: _variant_object(one) for one in row.variants},
    }


def _variant_object(one: Merged) -> dict[str, Any]:
    return {
        **_estimate_object(one.whole),
        "over": one.over,
        "nr_machines": len(one.by_machine),
        "nr_launches": sum(len(its.per_launch) for its in one.by_machine.values()),
        "chance_of_alike": one.alike,
        "machines_differ": one.differ,
        "machines": {
            letter: {**_estimate_object(its), "launches": len(its.per_launch)}
            for letter, its in one.by_machine.items()
        },
    }


def _estimate_object(estimate: Estimate) -> dict[str, Any]:
    return {"ratio": estimate.ratio, "low": estimate.low, "high": estimate.high}
