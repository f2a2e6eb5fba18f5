# SPDX-License-Identifier: GPL-2.0-only
"""The same records give the same reports, byte for byte, wherever and whenever they are made."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ream.paths import CHECKOUT
from shipped import RECORDS

DIGESTS = """\
import hashlib, json, sys
from pathlib import Path
from ream.experiment import named
from ream.published import load_tables
from ream.record.receipt import Receipt
from ream.record.archive import paths_in
from ream.record.record import Record, is_record
from ream.report import letter, table
from ream.report.contract import Summary
from ream.report.ran import Results
from ream.report.summary import summarise

def digest(text):
    return hashlib.sha256(text.encode()).hexdigest()

runs = Path(sys.argv[1])
for run in filter(is_record, paths_in(runs)):
    record = Record.load(run.name, runs)
    summary = Summary.from_object(record.run, source=run.name)
    print(run.name, digest(table.render(summary)), digest(letter.render(summary)))

record = Record.load(sys.argv[2], runs)
receipt = Receipt.model_validate({k: v for k, v in record.receipt.items() if k != "schema"})
experiment = named(record.run["experiment"])
rows = [row for row in experiment.rows if row.name in receipt.settings.rounds]
for _ in range(2):
    results = Results(rows=tuple(rows), samples=tuple(record.samples()))
    summary = summarise(
        experiment, results, load_tables(), receipt,
        run=run.name, stage=record.run["stage"], variants=tuple(receipt.kernel.variants),
    )
    print("anew", digest(json.dumps(summary.to_object())), digest(table.render(summary)))
"""
"""Program that prints digests of every kept record, and of one made anew twice from its samples."""

FROM_SAMPLES = "20261128T075224Z-fork-native-6e45"

PLACES = (
    {"PYTHONHASHSEED": "0", "LC_ALL": "C", "TZ": "UTC"},
    {"PYTHONHASHSEED": "4242", "LC_ALL": "C.UTF-8", "TZ": "Pacific/Kiritimati", "COLUMNS": "40"},
    {"PYTHONHASHSEED": "7", "LC_ALL": "tr_TR.UTF-8", "TZ": "America/St_Johns", "NO_COLOR": "1"},
)


def digests(place: dict[str, str], cwd: Path) -> list[str]:
    """What a new process says of all records."""
    paths = {
        "PYTHONPATH": str(CHECKOUT / "lab"),
        "HOME": str(cwd),
        "PATH": os.environ["PATH"],
    }
    done = subprocess.run(
        [sys.executable, "-c", DIGESTS, str(RECORDS), FROM_SAMPLES],
        env={**paths, **place},
        cwd=cwd,
        text=True,
        capture_output=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    return digests(PLACES[0], tmp_path_factory.mktemp("here"))


@pytest.mark.vm
def test_a_report_made_twice_is_the_same(here: list[str]) -> None:
    assert here[-1] == here[-2]
    assert here[-1].startswith("anew ")


@pytest.mark.vm
@pytest.mark.parametrize("place", PLACES[1:])
def test_a_report_is_the_same_in_another_process_place_and_time_zone(
    here: list[str], place: dict[str, str], tmp_path: Path
) -> None:
    assert digests(place, tmp_path) == here
