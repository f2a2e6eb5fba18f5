# SPDX-License-Identifier: GPL-2.0-only
"""A user's own experiment: a folder anywhere, without an edit in the project."""

import json
import re
import shutil
import signal
from pathlib import Path

import pytest

from interrupted import Started, interrupt
from ream.paths import EXPERIMENTS

LAUNCHES = ("--launches", "2", "--seed", "7")


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    """null under another name, in another place."""
    folder = tmp_path / "somewhere" / "my_own"
    shutil.copytree(EXPERIMENTS / "null", folder, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("experiment.toml", "rows.py"):
        file = folder / name
        file.write_text(re.sub(r'"null"', '"my-own"', file.read_text()))
    return folder


@pytest.fixture
def records(tmp_path: Path) -> Path:
    return tmp_path / "data/ream/runs"


def test_it_is_listed_and_planned(ream, mine: Path) -> None:
    listed = ream("list", str(mine))
    assert listed.code == 0, listed.err
    assert listed.out.startswith("my-own: What does a run say")
    planned = ream("run", str(mine), "--dry-run")
    assert planned.code == 0, planned.err
    assert "\nrow         bits-65536: 65,536 bits turned over; 5 rounds" in planned.out
    guests = ream("run", str(mine), "--stage", "vm", "--accel", "tcg", "--dry-run")
    assert guests.code == 0, guests.err
    assert "experiment=null calls=1000 rounds=2" in guests.out


def test_natively_it_is_run_reported_exported_and_held_against_a_baseline(
    ream, mine: Path, records: Path
) -> None:
    first, second = (ream("run", str(mine), *LAUNCHES) for _ in range(2))
    assert (first.code, second.code) == (0, 0), first.err + second.err
    older, newer = sorted(path.name for path in records.iterdir())
    assert re.search(r"^bits-33554432\b", first.out, re.MULTILINE)
    assert ream("report", older).out == first.out
    rows = json.loads(ream("report", newer, "--json").out)["rows"]
    assert [row["row"] for row in rows] == ["empty", "bits-65536", "bits-33554432"]
    assert all(variant["verified"] for row in rows for variant in row["variants"].values())
    assert rows[0]["variants"]["same"]["gb_per_s"] is None
    checked = ream("check", newer, "--baseline", older)
    assert checked.code in (0, 1, 4), checked.err
    assert "bits-65536" in checked.out
    assert "my-own" in ream("export", newer, "-f", "csv").out
    assert ream("verify").code == 0


@pytest.mark.vm
def test_a_run_of_it_that_was_killed_goes_on(
    ream, ream_started: Started, mine: Path, records: Path
) -> None:
    words = ("run", str(mine), "--row", "bits-33554432", "--rounds", "40", *LAUNCHES)
    partial = interrupt(ream_started, records, words, rounds=3, by=signal.SIGKILL)
    run = partial.name[1 : -len(".partial")]
    went_on = ream("run", "--resume", run)
    assert went_on.code == 0, went_on.err
    samples = [
        json.loads(one) for one in (records / run / "samples.jsonl").read_text().split("\n")[:-1]
    ]
    places = [(one["launch"], one["round"], one["subject"]) for one in samples]
    assert len(places) == len(set(places))
    assert {launch for launch, _, _ in places} == {0, 1}
    assert {at for _, at, _ in places} == set(range(40))


def test_a_plan_for_other_machines_has_none_that_they_have_not(ream, mine: Path) -> None:
    planned = ream("plan", str(mine))
    assert planned.code == 2
    assert "a plan is for any checkout" in planned.err


@pytest.mark.vm
def test_its_runner_may_have_no_addresses(ream, mine: Path) -> None:
    runner, hosted = mine / "native/runner.c", mine / "hosted.py"
    text = re.sub(
        r"static const struct host_fact addresses.*?};\n", "", runner.read_text(), flags=re.DOTALL
    )
    runner.write_text(text.replace("\t.addresses = addresses,\n", ""))
    assert "addresses" not in runner.read_text()
    poison = 'build.addresses["poison"]'
    assert poison in hosted.read_text()
    hosted.write_text(hosted.read_text().replace(poison, str(0xA5A5A5A5A5A5A5A5)))
    ran = ream("run", str(mine), "--row", "bits-65536", "--launches", "1")
    assert ran.code == 0, ran.err


def test_its_wrong_patch_ends_with_exit_5(ream, mine: Path, records: Path) -> None:
    (wrong,) = (mine / "wrong").glob("*.patch")
    ran = ream("run", str(mine), "--launches", "1", "--series", str(wrong))
    assert (ran.code, ran.out) == (5, "")
    assert "01-last-word: the bitmap differs from the oracle at byte" in ran.err
    assert not list(records.iterdir())


def test_it_is_run_on_this_machine(ream, mine: Path) -> None:
    ran = ream("run", str(mine), "--stage", "live", *LAUNCHES)
    assert ran.code == 0, ran.err
    assert "live-calls-1000: 1,000 calls of getppid()" in ran.out


def test_a_folder_without_a_stage_says_what_is_missing(ream, mine: Path) -> None:
    (mine / "guests.py").unlink()
    ran = ream("run", str(mine), "--stage", "vm", "--accel", "tcg", "--dry-run")
    assert ran.code == 2
    assert "rows of the vm stage, and no guests.py" in ran.err


@pytest.mark.vm
def test_in_guests_it_is_booted(ream, mine: Path) -> None:
    ran = ream("run", str(mine), "--stage", "vm", "--accel", "tcg", "--row", "vm-calls-1000")
    assert ran.code == 0, ran.err
    assert "vm-calls-1000" in ran.out
