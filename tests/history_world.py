# SPDX-License-Identifier: GPL-2.0-only
"""Records whose truth is known, for the tests of what is said of several runs."""

import json
import math
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ream.measure.sample import Sample
from ream.record.record import RECEIPT, RUN, Record

RUN_ID = "20261121T{number:06d}Z-zone-device-native-{number:04x}"
NR_BYTES = 1 << 20
TIME_NS = 10_000_000
TRUTH: Mapping[str, float] = {"published": 0.6, "ream": 0.4}
ROWS = ("fsdax", "devdax")


def written(
    runs: Path,
    number: int = 1,
    *,
    truth: Mapping[str, float] = TRUTH,
    rows: tuple[str, ...] = ROWS,
    launches: int = 8,
    rounds: int = 3,
    sd: float = 0.01,
    run_sd: float = 0.0,
    unit: str = "ns",
    seed: int | None = None,
    run: Mapping[str, Any] | None = None,
    receipt: Mapping[str, Any] | None = None,
) -> Record:
    """A record in `runs`: each launch has its own ratio of each variant, spread by `sd`.

    run_sd: what a whole run has of its own, which no launch of it shows. run, receipt: what
    run.json and receipt.json say otherwise.
    """
    name = RUN_ID.format(number=number)
    draw = random.Random(f"{seed if seed is not None else number}")
    samples = [
        sample
        for row in rows
        for sample in _samples(
            row, truth, draw, launches=launches, rounds=rounds, sd=sd, run_sd=run_sd
        )
    ]
    path = runs / name
    path.mkdir(parents=True)
    (path / "samples.jsonl").write_text("".join(sample.to_json() + "\n" for sample in samples))
    summary = _run(name, rows, truth, unit=unit, nr_launches=launches, rounds=rounds)
    (path / RUN).write_text(json.dumps(summary | dict(run or {})))
    (path / RECEIPT).write_text(json.dumps(_receipt() | dict(receipt or {})))
    for text in ("table.txt", "letter.txt"):
        (path / text).write_text("as printed\n")
    return Record.load(name, runs)


def unwritten(number: int = 1, **otherwise: Any) -> Record:
    """A record without files: as `written` makes it, but for what the receipt says otherwise.

    run: what run.json says otherwise; row: what its only row does.
    """
    name = RUN_ID.format(number=number)
    run = _run(name, ROWS[:1], TRUTH, unit="ns", nr_launches=8, rounds=3)
    run["rows"][0] |= otherwise.pop("row", {})
    return Record(Path(name), run | otherwise.pop("run", {}), _receipt() | otherwise)


def _samples(
    row: str,
    truth: Mapping[str, float],
    draw: random.Random,
    *,
    launches: int,
    rounds: int,
    sd: float,
    run_sd: float,
) -> list[Sample]:
    every = {"before": 1.0, "before-again": 1.0, **truth}
    own = {name: draw.gauss(0, run_sd) for name in every}
    found = []
    for launch in range(launches):
        layout = {name: draw.gauss(own[name], sd) for name in every}
        for number in range(rounds):
            for name, ratio in every.items():
                time_ns = round(TIME_NS * ratio * math.exp(layout[name]))
                found.append(
                    Sample(
                        row=row,
                        launch=launch,
                        round=number,
                        role="variant",
                        subject=name,
                        threads=1,
                        time_ns=time_ns,
                        nr_bytes=NR_BYTES,
                        verified=True,
                    )
                )
    return found


def _run(
    name: str,
    rows: tuple[str, ...],
    truth: Mapping[str, float],
    *,
    unit: str,
    nr_launches: int,
    rounds: int,
) -> dict[str, Any]:
    every = {"before": 1.0, "before-again": 1.0, **truth}
    return {
        "schema": 1,
        "experiment": "zone-device",
        "stage": "native",
        "run": name,
        "question": "Is it faster?",
        "rows": [
            {
                "row": row,
                "title": f"{row}, order 0",
                "params": {"order": 0, "type": "FS_DAX", "nr_pages": 1 << 16},
                "unit": unit,
                "better": "lower",
                "floor": None,
                "limit": None,
                "variants": {
                    variant: {
                        "median": round(TIME_NS * ratio),
                        "rounds": rounds * nr_launches,
                        "launches": nr_launches,
                        "nr_bytes": NR_BYTES,
                        "ratio": ratio,
                        "verified": True,
                    }
                    for variant, ratio in every.items()
                },
                "published_table": {"id": "table", "ratio": 0.6, "verdict": "agrees"},
                "notes": ["a note"],
            }
            for row in rows
        ],
        "receipt": {
            "machine": "Example CPU, 2 CPUs",
            "tree": "linux-source-6.12 6.12.117-1",
            "patches": "published: zone-device (1 patch, aaaaaaaaaaaa)",
            "compiler": "gcc 12",
            "ream": "0.1.0",
        },
    }


def series(letter: str) -> list[dict[str, Any]]:
    """A series of one patch; another letter, another series."""
    patch = {"name": "0001-mm.patch", "subject": "mm: faster", "sha256": letter * 64}
    return [{"name": "zone-device", "id": letter * 64, "patches": [patch]}]


def kernel(**changes: Any) -> dict[str, Any]:
    return {
        "tree": "linux-source-6.12 6.12.117-1",
        "tree_key": "ab" * 32,
        "version": "6.12.117",
        "compiler": "gcc 12",
        "config_sha256": "cd" * 32,
        "variants": {"before": [], "published": series("a"), "ream": series("b")},
    } | changes


def machine(**changes: Any) -> dict[str, Any]:
    return {"id": "feedc0ffee00", "cpu": "Example CPU", "kernel": "6.12.0"} | changes


def _receipt() -> dict[str, Any]:
    return {
        "schema": 1,
        "machine": machine(),
        "kernel": kernel(),
        "benchmark": "0123456789ab",
        "settings": {"seed": 1},
    }
