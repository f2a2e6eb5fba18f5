# SPDX-License-Identifier: GPL-2.0-only
"""If one of several series is wrong, the others are still measured, and the run exits with 5."""

import json
import signal
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from interrupted import Started, interrupt
from ream.paths import CHECKOUT

PATCHES = CHECKOUT / "tests/native/patches"
CRASHES = ("--series", str(PATCHES / "zone-null.patch"))
STOPS = ("--series", str(PATCHES / "stops.patch"))
UNHOSTED = "missing-function"
SMALL = (
    *("--row", "small-256MB", "--set", "device_bytes=256MiB"),
    *("--launches", "1", "--rounds", "1"),
)
RIGHT = ("--measure-anyway", "--series", str(PATCHES / "no-change.patch"))

LAUNCHES = ROUNDS = 3
ROWS = ("with-altmap", "without")

# zone-null is wrong where there is no altmap, which the pass before all rows sees.
EXPERIMENT = f"""
name = "zone-device"
question = "Who is wrong?"
launches = {LAUNCHES}
boots = 1

[variants]
ream = ["zone-device"]

[[rows]]
name = "{ROWS[0]}"
device_bytes = "1GiB"
order = 0
type = "FS_DAX"
altmap = true
rounds = {ROUNDS}

[[rows]]
name = "{ROWS[1]}"
device_bytes = "1GiB"
order = 0
type = "FS_DAX"
rounds = {ROUNDS}
"""
MEASURED = {"before", "before-again", "ream", "no-change"}
SAID = ": zone-null: SIGSEGV at address 0x"


@pytest.fixture
def words(tmp_path: Path) -> tuple[str, ...]:
    file = tmp_path / "two.toml"
    file.write_text(EXPERIMENT)
    return ("run", str(file), "--seed", "7", *CRASHES, *RIGHT)


@pytest.fixture
def records(tmp_path: Path) -> Path:
    return tmp_path / "data/ream/runs"


def check(run: dict[str, Any], record: Path) -> None:
    """All rounds of all others are there once, and none of the wrong one."""
    assert list(run["wrong"]) == ["zone-null"]
    assert SAID in run["wrong"]["zone-null"][0]
    assert any(" rip " in line for line in run["wrong"]["zone-null"])
    for row in run["rows"]:
        assert set(row["variants"]) == MEASURED
        for result in row["variants"].values():
            assert result["verified"]
            assert (result["launches"], result["rounds"]) == (LAUNCHES, LAUNCHES * ROUNDS)
    lines = [json.loads(line) for line in (record / "samples.jsonl").read_text().splitlines()]
    keys = ("launch", "row", "round", "subject")
    found = Counter(tuple(line[key] for key in keys) for line in lines if line["role"] == "variant")
    assert max(found.values()) == 1
    assert len(found) == LAUNCHES * len(ROWS) * ROUNDS * len(MEASURED)
    assert not any(line["subject"] == "zone-null" for line in lines)


def run_said(out: str) -> str:
    """What the wrong one did, in a line."""
    return str(json.loads(out)["wrong"]["zone-null"][0])


@pytest.mark.vm
def test_the_others_keep_their_samples_and_are_measured_on(ream, words, records: Path) -> None:
    ran = ream(*words, "--json")
    assert ran.code == 5, ran.err
    assert SAID in ran.err
    (record,) = records.iterdir()
    check(json.loads(ran.out), record)
    assert "zone-null is wrong and is left out" in ran.err
    receipt = json.loads((record / "receipt.json").read_text())
    assert "zone-null" in receipt["kernel"]["variants"]
    table = ream("report").out
    assert f"zone-null: WRONG: {run_said(ran.out)}" in " ".join(table.split())
    wrong = [line.split() for line in table.splitlines() if line.startswith("  zone-null ")]
    assert wrong == [["zone-null", "WRONG"]] * len(ROWS)
    assert "zone-null: WRONG: " in " ".join(ream("report", "--letter").out.split())


@pytest.mark.vm
def test_a_run_that_is_resumed_has_the_same_variants(
    ream, ream_started: Started, words, records: Path
) -> None:
    partial = interrupt(ream_started, records, words, rounds=ROUNDS + 1, by=signal.SIGKILL)
    run = partial.name[1 : -len(".partial")]
    ran = ream("run", "--resume", run, "--json")
    assert ran.code == 5, ran.err
    assert "is left out" not in ran.err
    check(json.loads(ran.out), records / run)


@pytest.mark.vm
def test_one_that_warns_and_one_that_cannot_be_hosted_are_left_out(
    ream, words: tuple[str, ...]
) -> None:
    others = [("--series", str(PATCHES / f"{name}.patch")) for name in ("warns", UNHOSTED)]
    ran = ream(*words[: words.index("--series")], *others[0], *others[1], *RIGHT, "--json")
    assert ran.code == 5, ran.err
    run = json.loads(ran.out)
    assert list(run["wrong"]) == ["warns"]
    assert "warns: WARNING at mm/mm_init.c:" in run["wrong"]["warns"][0]
    assert f"{UNHOSTED}: the kernel reached `mem_init`" in run["untouched"][UNHOSTED]
    assert all(set(row["variants"]) == MEASURED for row in run["rows"])


def test_a_series_that_cannot_be_hosted_is_no_wrong_one(ream, records: Path) -> None:
    ran = ream("run", *SMALL, "--series", str(PATCHES / f"{UNHOSTED}.patch"))
    assert (ran.code, ran.out) == (3, "")
    assert "the kernel reached `mem_init`" in ran.err
    assert not list(records.iterdir())


@pytest.mark.vm
def test_where_every_series_is_wrong_nothing_is_left_to_measure(ream, records: Path) -> None:
    ran = ream("run", *SMALL, *CRASHES, *STOPS)
    assert (ran.code, ran.out) == (5, "")
    for said in (": zone-null: SIGSEGV at ", ": stops: BUG at "):
        assert said in ran.err
    assert not list(records.iterdir())
