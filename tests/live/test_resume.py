# SPDX-License-Identifier: GPL-2.0-only
"""A run on the running kernel that is killed between two sizes, and gone on with."""

import json
import signal
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from interrupted import interrupt
from ream.stage.live import why_not

pytestmark = pytest.mark.xdist_group("settings")

ROWS = ("live-fork-4k", "live-fork-64k")
SMALL = """
name = "fork"
question = "Does it go on?"
launches = 2
variants = { published = [], before = ["before/large-mapcount", "before/fork"] }
"""
ROW = """
[[rows]]
name = "%s"
stage = "live"
folio_bytes = "%s"
operation = "fork"
rounds = 2
mapping_bytes = "64MiB"
"""
TEXT = SMALL + ROW % (ROWS[0], "4KiB") + ROW % (ROWS[1], "64KiB")


@pytest.mark.vm
def test_visits_that_were_made_are_not_made_again(
    ream, ream_started, settings_now: Callable[[], dict[str, str]], tmp_path: Path
) -> None:
    if reason := why_not(64, 64 << 20):
        pytest.skip(f"folios of 64 KiB: {reason}")
    runs, before = tmp_path / "data/ream/runs", settings_now()
    (tmp_path / "small.toml").write_text(TEXT)
    words = ("run", "small.toml", "--stage", "live", "--seed", "5")
    partial = interrupt(ream_started, runs, words, rounds=3, by=signal.SIGKILL)
    # The third round is in the journal; the record may not have it yet.
    kept = (partial / "samples.jsonl").read_text().splitlines()[:3]
    assert kept
    said = ream("run", "--resume", "last")
    assert said.code == 0, said.err
    (record,) = runs.iterdir()
    lines = (record / "samples.jsonl").read_text().splitlines()
    assert lines[: len(kept)] == kept
    places = Counter((s["row"], s["launch"], s["round"]) for s in map(json.loads, lines))
    assert set(places) == {(row, n, number) for row in ROWS for n in (0, 1) for number in (0, 1)}
    assert max(places.values()) == 1
    # What the killed run had changed is as it was.
    assert settings_now() == before
