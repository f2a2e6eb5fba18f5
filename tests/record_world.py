# SPDX-License-Identifier: GPL-2.0-only
"""Records as a run writes them, from samples to checksums, without anything being measured."""

import json
import random
from collections.abc import Iterator, Mapping
from pathlib import Path

from ream.experiment import Row, named
from ream.measure.sample import Sample
from ream.published import load_tables
from ream.record.machine import Conditions, Machine
from ream.record.receipt import BuiltKernel, CountFacts, Ream, Receipt, Settings
from ream.record.record import PLAN, Record, open_record, pretty
from ream.record.sums import SUMS, sums_of
from ream.report import letter, table
from ream.report.ran import RAN, Ran, Results, summary_id
from ream.report.summary import summarise

RUN_ID = "20261121T0215{number:02}Z-zone-device-native-ab12"
VARIANTS = {"before": 6.0, "before-again": 6.0, "published": 3.0, "ream": 1.5}
LAUNCHES, ROUNDS = 4, 2
PAGES = 100
"""Pages of a counted sample."""
TABLES = load_tables()


def made(
    runs: Path, number: int = 0, *, experiment: str = "zone-device", made_by: str | None = None
) -> Record:
    """A finished record of two rows, the second of which ran with half of what was asked for.

    made_by: the digest of what made run.json; None: of what this checkout does.
    """
    asked = named(experiment)
    asked = asked.model_copy(update={"rows": asked.rows[:2], "launches": LAUNCHES})
    rows = (asked.rows[0], _changed(asked.rows[1]))
    run_id = RUN_ID.format(number=number)
    receipt = _receipt(made_by or summary_id())
    results = Results(
        rows=rows,
        samples=tuple(_samples(rows, random.Random(number))),
        remarks={rows[0].name: ("a remark",)},
    )
    with open_record(runs, run_id) as record:
        for sample in results.samples:
            record.append(sample)
        summary = summarise(
            asked,
            results,
            TABLES,
            receipt,
            run=run_id,
            stage="native",
            variants=tuple(VARIANTS),
        )
        record.append_noise('{"t_s": 1.0}')
        plan = {
            "schema": 1,
            "run": run_id,
            "stage": "native",
            "experiment": asked.model_dump(mode="json", exclude_unset=True, by_alias=True),
            RAN: Ran.of(asked, results).model_dump(mode="json"),
        }
        record.write(PLAN, pretty(plan))
        record.finish(
            summary.to_object(),
            receipt.to_object(),
            table=table.render(summary),
            letter=letter.render(summary),
        )
    return Record.load(run_id, runs)


def digit_changed(path: Path, name: str, old: str, new: str) -> None:
    """Edit a file of a record by hand: the first of these texts becomes the other."""
    text = (path / name).read_text()
    assert old in text
    (path / name).write_text(text.replace(old, new, 1))


def sums_made_again(path: Path) -> None:
    """Rewrite the checksums of a record that was changed, so that they match again."""
    (path / SUMS).write_text(sums_of(path))


def first_median(record: Record) -> tuple[str, int]:
    """The place of a number in run.json that every record has, and the number."""
    row = record.run["rows"][0]
    return f"rows[{row['row']}].variants.ream.median", row["variants"]["ream"]["median"]


def _changed(row: Row) -> Row:
    sizes = {name: getattr(row, name) for name in ("device_bytes", "nr_huge") if hasattr(row, name)}
    return row.model_copy(update={name: value // 2 for name, value in sizes.items()})


def _samples(rows: tuple[Row, ...], draw: random.Random) -> Iterator[Sample]:
    for row in rows:
        for launch in range(LAUNCHES):
            for number in range(ROUNDS):
                for name, truth in VARIANTS.items():
                    time_ns = round(1e6 * truth * draw.gauss(1, 0.02))
                    yield Sample(
                        row=row.name,
                        launch=launch,
                        round=number,
                        role="variant",
                        subject=name,
                        threads=1,
                        time_ns=time_ns,
                        nr_bytes=row.written_bytes,
                        verified=True,
                        beside=_beside(launch, number, time_ns) if hasattr(row, "nr_huge") else {},
                        times={"the whole": 2 * time_ns},
                    )


def _beside(launch: int, number: int, time_ns: int) -> dict[str, int]:
    machine = {"user_ns": 5, "system_ns": 6, "idle_ns": 7, "steal_ns": 8}
    return {
        "asked": 100,
        "allocated": 100 - launch,
        "longest_ns": time_ns // 50,
        "user_ns": 1000,
        "system_ns": 2000,
        "idle_ns": 3000 + number,
        "ballast": 3,
        "pgmigrate_success": 500,
        "compact_stall": number,
        **{f"machine_{name}": value for name, value in machine.items()},
    }


def _receipt(made_by: str) -> Receipt:
    variants: dict[str, list[object]] = {name: [] for name in VARIANTS}
    kernel = {"tree": "linux 6.12", "tree_key": "ab" * 32, "version": "6.12.117"}
    machine = dict.fromkeys(Machine.model_fields) | {
        "flags": [],
        "caches": [],
        "nodes": [],
        "nr_cpus": 2,
        "nr_usable_cpus": 2,
        "timer_step_ns": 30,
        "id": "feedc0ffee00",
    }
    return Receipt(
        machine=Machine.model_validate_json(json.dumps(machine)),
        conditions=Conditions(
            load_before=0.5, load_after=1.0, steal_pct=0.0, idle_pct=50.0, others_pct=1.0
        ),
        kernel=BuiltKernel.model_validate_json(
            json.dumps(
                kernel | {"compiler": "gcc 12", "config_sha256": "cd" * 32, "variants": variants}
            )
        ),
        ream=Ream(version="0.1.0", commit=None, dirty=None),
        settings=Settings(command="ream run", seed=1, launches=LAUNCHES, rounds={}),
        summary_id=made_by,
    )


def counted(
    runs: Path,
    number: int,
    functions: Mapping[str, Mapping[str, Mapping[str, int]]],
    *,
    again: Mapping[str, Mapping[str, int]] | None = None,
) -> Record:
    """A finished record of a run that counted one row. functions: of every variant what it
    executed; again: of the second copy of `before`, unless that is the same.
    """
    asked = named("zone-device")
    asked = asked.model_copy(update={"rows": asked.rows[:1], "launches": 1})
    by_variant = {"before": functions["before"], "before-again": again or functions["before"]}
    by_variant |= functions
    facts = CountFacts(emulator="qemu-x86_64 version 7.2", cpu="qemu64", cpus=4)
    receipt = _receipt(summary_id()).model_copy(
        update={"count": facts, "benchmark": "feedc0ffee00"}
    )
    (row,) = asked.rows
    samples = [
        Sample(
            row=row.name,
            launch=0,
            round=0,
            role="variant",
            subject=name,
            threads=1,
            time_ns=sum(its.get("instructions", 0) for its in own.values()),
            nr_bytes=PAGES * 64,
            verified=True,
            beside={"lines_read": 3},
            functions=own,
        )
        for name, own in by_variant.items()
    ]
    results = Results(rows=(row,), samples=tuple(samples), unit="instructions")
    run_id = RUN_ID.format(number=number)
    with open_record(runs, run_id) as record:
        for sample in samples:
            record.append(sample)
        summary = summarise(
            asked, results, TABLES, receipt, run=run_id, stage="native", variants=tuple(by_variant)
        )
        record.finish(
            summary.to_object(),
            receipt.to_object(),
            table=table.render(summary),
            letter=letter.render(summary),
        )
    return Record.load(run_id, runs)
