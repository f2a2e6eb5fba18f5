# SPDX-License-Identifier: GPL-2.0-only
"""A run of guests that is killed between two boots, and gone on with."""

import json
import signal
from collections import Counter
from pathlib import Path

import pytest

from interrupted import interrupt

pytestmark = pytest.mark.vm

WORDS = ("run", "fork", "--stage", "vm", "--accel", "tcg", "--row", "vm-fork-4k")
MORE = ("--launches", "2", "--rounds", "2", "--seed", "5")


def test_guests_that_were_done_are_not_booted_again(ream, ream_started, tmp_path: Path) -> None:
    runs = tmp_path / "data/ream/runs"
    partial = interrupt(ream_started, runs, (*WORDS, *MORE), rounds=3, by=signal.SIGKILL)
    before = {path.name: path.stat().st_mtime_ns for path in (partial / "consoles").iterdir()}
    assert len(before) >= 3
    said = ream("run", "--resume", "last")
    assert said.code == 0, said.err
    (record,) = runs.iterdir()
    lines = [json.loads(line) for line in (record / "samples.jsonl").read_text().splitlines()]
    places = Counter((line["launch"], line["round"], line["subject"]) for line in lines)
    assert len(places) == 2 * 2 * 4
    assert max(places.values()) == 1
    # What forks share was compared over both starts: it is the same in all of them.
    assert len({line["digest"] for line in lines if line["round"] == 0}) == 1
    after = {path.name: path.stat().st_mtime_ns for path in (record / "consoles").iterdir()}
    assert len(after) == 2 * 4
    done = sorted(before, key=before.__getitem__)[:3]
    assert all(after[name] == before[name] for name in done)
    assert not (record / "journal.jsonl").exists()
