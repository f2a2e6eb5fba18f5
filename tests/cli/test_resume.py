# SPDX-License-Identifier: GPL-2.0-only
"""Runs that are killed, interrupted and gone on with, as users type it."""

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from interrupted import Started, interrupt, wait_for_rounds
from ream.paths import CHECKOUT

USAGE = 2
SMALL = (
    "run",
    "--row",
    "small-256MB",
    "--set",
    "device_bytes=1GiB",
    "--launches",
    "2",
    "--rounds",
    "4",
    "--seed",
    "7",
)


@pytest.fixture
def records(tmp_path: Path) -> Path:
    return tmp_path / "data/ream/runs"


def places(record: Path) -> list[tuple[Any, ...]]:
    """What was measured, in the order taken."""
    lines = [json.loads(line) for line in (record / "samples.jsonl").read_text().splitlines()]
    # Of a variant `threads` is how many CPUs happened to take part.
    names = ("launch", "row", "round", "role", "subject")
    return [
        (*(line[name] for name in names), line["threads"] if line["role"] == "limit" else None)
        for line in lines
    ]


def test_a_run_that_was_killed_goes_on_as_if_it_had_not_been(
    ream, ream_started: Started, records: Path
) -> None:
    partial = interrupt(ream_started, records, SMALL, rounds=5, by=signal.SIGKILL)
    run = partial.name[1 : -len(".partial")]
    with (partial / "samples.jsonl").open("a") as samples:
        samples.write('{"row": "cust')  # as a full page of a dead process leaves it
    # Another run says that it is there, and leaves it.
    other = ream(*SMALL)
    assert other.code == 0, other.err
    assert f"{run} was interrupted after" in other.err
    assert f"`ream run --resume {run}` goes on with it" in other.err
    went_on = ream("run", "--resume", run)
    assert went_on.code == 0, went_on.err
    assert f"going on with {run}" in went_on.err
    assert not partial.exists()
    whole, resumed = (
        next(path for path in records.iterdir() if (path.name == run) is mine)
        for mine in (False, True)
    )
    # No sample is missing or twice, and every round has the order it would have had.
    assert places(resumed) == places(whole)
    assert max(Counter(places(resumed)).values()) == 1
    assert (resumed / "table.txt").read_text() == went_on.out
    assert {path.name for path in resumed.iterdir()} == {path.name for path in whole.iterdir()}
    receipts = [json.loads((path / "receipt.json").read_text()) for path in (whole, resumed)]
    assert receipts[0]["stubs"] == receipts[1]["stubs"]
    assert [len(receipt["settings"]["resumed"]) for receipt in receipts] == [0, 1]
    assert any("resumed 1 time" in text for text in receipts[1]["warnings"])
    again = ream("run", "--resume", run)
    assert (again.code, again.out) == (USAGE, "")
    assert f"{run} is finished" in again.err


def test_an_interrupted_run_says_how_to_go_on_and_one_process_does(
    ream, ream_started: Started, records: Path, tmp_path: Path
) -> None:
    with subprocess.Popen(
        [sys.executable, "-P", "-m", "ream", *SMALL[:3], "--launches", "40"],
        env={
            **os.environ,
            "PYTHONPATH": str(CHECKOUT / "lab"),
            "XDG_DATA_HOME": str(tmp_path / "data"),
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=False,
    ) as process:
        partial = wait_for_rounds(records, 2, process)
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGTERM
    assert out == b""
    run = partial.name[1 : -len(".partial")]
    last = err.decode().strip().splitlines()[-1]
    assert last.endswith(f"what was measured is kept: `ream run --resume {run}`")
    first = ream_started("run", "--resume", "last")
    wait_for_rounds(records, 6, first)
    second = ream("run", "--resume", "last")
    assert (second.code, second.out) == (USAGE, "")
    assert "another process is measuring for this record" in second.err
    assert len(second.err.strip().splitlines()) == 1
    for word in ("--resume", "--discard"):  # what would be refused is not promised
        dry = ream("run", word, "last", "--dry-run")
        assert (dry.code, dry.out) == (USAGE, "")
        assert "another process is measuring for it" in dry.err
    assert ream("run", "--discard", run).code == USAGE
    first.send_signal(signal.SIGINT)
    first.wait(timeout=60)
    removed = ream("run", "--discard", run)
    assert (removed.code, removed.out) == (0, "")
    assert not list(records.iterdir())


def test_two_runs_at_once_in_one_directory_both_get_their_record(
    ream, ream_started: Started, records: Path
) -> None:
    words = ("run", "--row", "small-256MB", "--launches", "1", "--rounds", "2", "--seed", "7")
    other = ream_started(*words)
    one = ream(*words)
    assert one.code == 0, one.err
    assert other.wait(timeout=300) == 0
    both = sorted(records.iterdir())
    assert len(both) == 2
    assert places(both[0]) == places(both[1])


def test_rounds_that_would_not_be_like_are_refused(
    ream, ream_started: Started, records: Path
) -> None:
    partial = interrupt(ream_started, records, SMALL, rounds=1, by=signal.SIGKILL)
    plan = json.loads((partial / "plan.json").read_text())
    (partial / "plan.json").write_text(json.dumps({**plan, "benchmark": "another"}))
    said = ream("run", "--resume", "last", "--quiet")
    assert (said.code, said.out) == (USAGE, "")
    assert said.err == (
        "ream: the run cannot go on, begin a new one: benchmark: ream's own code that measures"
        f" has changed (ids: another when it began, {plan['benchmark']} now)\n"
    )
    assert partial.exists()


def test_more_launches_come_until_it_is_stable_or_they_are_used_up(ream, records: Path) -> None:
    words = ("run", "--row", "small-256MB", "--launches", "2", "--rounds", "1", "--quiet")
    said = ream(*words, "--until-stable=0.01", "--max-launches", "3", "--json")
    assert (said.code, said.err) == (0, "")
    (record,) = records.iterdir()
    counts = Counter(launch for launch, *_ in places(record))
    assert set(counts) == {0, 1, 2}
    assert len(set(counts.values())) == 1
    assert max(Counter(places(record)).values()) == 1
    settings = json.loads((record / "receipt.json").read_text())["settings"]
    assert settings["launches"] == 3
    assert settings["ended"].startswith("not stable: 3 launches are the most")
    assert "small-256MB" in settings["ended"]
    assert any("not stable" in text for text in json.loads(said.out)["receipt"]["warnings"])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--resume", "last"), "no interrupted run is called 'last'"),
        (("--discard", "x"), "no interrupted run is called 'x'"),
        (("--resume", "x", "--launches", "3"), "leave out --launches"),
        (("fork", "--resume", "x"), "leave out EXPERIMENT"),
        (("--resume", "x", "--discard", "y"), "--resume takes everything"),
        (("--max-minutes", "3"), "they bound --until-stable"),
        (("--until-stable=0",), "a number of per cent"),
        (("--until-stable", "--max-launches", "7"), "--launches 7 plans fewer"),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_line(
    ream, words: tuple[str, ...], said: str
) -> None:
    answer = ream("run", *words)
    assert (answer.code, answer.out) == (USAGE, "")
    assert said in answer.err
    assert len(answer.err.strip().splitlines()) == 1


def test_a_dry_run_says_how_long_it_would_go_on(ream) -> None:
    said = ream("run", "--until-stable", "--max-minutes", "30", "--dry-run", "--launches", "5")
    assert said.code == 0
    assert "within 5 %: up to 20 launches, or 30 minutes\n" in said.out
