# SPDX-License-Identifier: GPL-2.0-only
"""`ream history`, `show`, `compare`, `export` and `verify`, as users type them."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from history_world import RUN_ID, machine, written
from ream.paths import CHECKOUT
from record_world import RUN_ID as RECORD_ID
from record_world import digit_changed, first_median, made, sums_made_again
from shipped import RECORDS

Ream = Callable[..., Any]


@pytest.fixture
def said(ream: Ream, tmp_path: Path) -> Ream:
    """ream with a cache of the test's own."""
    return lambda *words: ream(*words, XDG_CACHE_HOME=str(tmp_path / "cache"))


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Two records where `ream run` keeps them, whose numbers are those of their samples."""
    place = tmp_path / "data/ream/runs"
    for number in (1, 2):
        written(place, number, sd=0)
    return place


def name(number: int) -> str:
    return RUN_ID.format(number=number)


def test_history_without_a_record_says_how_to_make_one(said: Ream) -> None:
    found = said("history")
    assert (found.code, found.out) == (0, "")
    assert "`ream run` makes one" in found.err


def test_history_as_json_has_every_run_and_what_is_damaged(said: Ream, runs: Path) -> None:
    (runs / name(1) / "run.json").write_text("{")
    value = json.loads(said("history", "--json").out)
    assert [one["run"] for one in value["runs"]] == [name(2)]
    assert value["runs"][0]["rows"]["fsdax"]["variants"]["ream"]["ratio"] == 0.4
    assert value["runs"][0]["headlines"][0] == {
        "variant": "published",
        "unit": "ns",
        "ratio": 0.6,
        "nr_rows": 2,
    }
    (damaged,) = value["damaged"]
    assert damaged["run"] == name(1)
    assert "damaged" in damaged["fault"]


def test_history_shows_what_is_asked_for(said: Ream, runs: Path) -> None:
    written(runs, 3, run={"experiment": "fork"}, receipt={"machine": machine(id="other")})
    assert said("history", "-n", "1").out.splitlines()[::2] == [name(3)]
    assert name(3) not in said("history", "--experiment", "zone-device").out
    assert said("history", "--machine", "oth").out.count("\n") == 2
    assert said("history", "--since", "2099-01-01").out == ""
    found = said("history", "--row", "fsdax", "--variant", "ours")
    assert "    1 row  ours 0.400  agrees 1" in found.out
    assert said("history", "--since", "soon").code == 2


@pytest.mark.usefixtures("runs")
def test_history_names_the_row_that_may_have_been_meant(said: Ream) -> None:
    found = said("history", "--row", "fsdx")
    assert (found.code, found.out) == (0, "")
    assert "fits (did you mean fsdax?)" in found.err


def test_show_speaks_of_records_elsewhere_and_to_any_terminal(
    ream_process: Ream, runs: Path, tmp_path: Path
) -> None:
    place = tmp_path / "\u00b5 there"
    runs.rename(place)
    found = ream_process(
        "show", "--runs", place.name, PYTHONIOENCODING="ascii", XDG_CACHE_HOME=str(tmp_path)
    )
    assert found.code == 0
    (line,) = found.err.splitlines()
    assert line.startswith("ream: \\xb5 there/")
    assert "no SHA256SUMS" in line
    assert f"files in \\xb5 there/{name(2)}" in found.out
    assert f"`ream compare {name(2)} {name(1)} --runs '\\xb5 there'` sets them" in found.out


@pytest.mark.parametrize("damaged", [2, 1])
def test_samples_that_are_missing_are_no_comparison(said: Ream, runs: Path, damaged: int) -> None:
    samples = runs / name(damaged) / "samples.jsonl"
    samples.write_text("".join(samples.read_text().splitlines(keepends=True)[:-4]))
    for words in (
        ("compare", "last", "last-1"),
        ("check", "last", "--baseline", "last-1"),
        ("export", "-f", "csv", "--samples"),
    ):
        found = said(*words)
        assert (found.code, found.out) == (6, "")
        assert found.err.strip().endswith("run.json has 24: the record is damaged")
    found = said("verify")
    assert found.code == 6
    assert "23 samples of devdax before, run.json has 24" in found.out


@pytest.mark.parametrize("command", [("show",), ("compare", "last-1"), ("export", "-f", "csv")])
def test_a_damaged_record_is_one_line_and_exit_2(
    said: Ream, runs: Path, command: tuple[str, ...]
) -> None:
    (runs / name(2) / "receipt.json").write_text('{"schema": 1')
    found = said(*command, name(2))
    assert (found.code, found.out) == (2, "")
    assert found.err.strip().endswith("receipt.json: not JSON; the record is damaged")


@pytest.mark.usefixtures("runs")
def test_export_replaces_no_file_unasked(said: Ream, tmp_path: Path) -> None:
    file = tmp_path / "out.csv"
    assert said("export", "-f", "csv", "-o", str(file)).code == 0
    content = file.read_bytes()
    assert content.startswith(b"run,")
    found = said("export", "-f", "csv", "-o", str(file))
    assert found.code == 2
    assert "--force replaces it" in found.err
    assert said("export", "-f", "csv", "-o", str(file), "--force").code == 0
    assert file.read_bytes() == content


def test_export_leaves_damaged_records_out_and_says_so(said: Ream, runs: Path) -> None:
    samples = runs / name(1) / "samples.jsonl"
    samples.write_bytes(samples.read_bytes()[:-5])
    found = said("export", "-f", "csv", "--samples")
    assert found.code == 0
    assert name(1) not in found.out
    assert f"not exported, damaged: {name(1)}" in found.err
    assert said("export", "-f", "csv", "--samples", name(1)).code == 6


@pytest.mark.usefixtures("runs")
def test_export_of_nothing_is_no_empty_file(said: Ream, tmp_path: Path) -> None:
    for words in (
        ("--experiment", "fork"),
        ("--stage", "vm", "last"),
        ("--runs", str(tmp_path / "none")),
    ):
        found = said("export", "-f", "csv", "-o", str(tmp_path / "out.csv"), *words)
        assert (found.code, found.out) == (2, "")
    assert not (tmp_path / "out.csv").exists()


def test_verify_names_every_fault_and_touches_no_record(said: Ream, runs: Path) -> None:
    written(runs, 3, sd=0)
    cut = runs / name(1) / "samples.jsonl"
    cut.write_bytes(cut.read_bytes()[:-7])
    (runs / name(2) / "run.json").write_text('{"schema": 99}')
    held = {path: path.read_bytes() for path in runs.rglob("*") if path.is_file()}
    found = said("verify")
    assert found.code == 6
    assert [line.partition(": ")[0] for line in found.out.splitlines()] == [name(1), name(2)]
    assert "samples.jsonl:192: not a sample" in found.out
    assert "schema 99" in found.out
    assert "1 of 3 records in" in found.err
    assert {path: path.read_bytes() for path in runs.rglob("*") if path.is_file()} == held


@pytest.mark.usefixtures("runs")
def test_verify_of_whole_records_is_silent_on_standard_output(said: Ream, tmp_path: Path) -> None:
    found = said("verify", "--dry-run")
    assert (found.code, found.out) == (0, "")
    assert not (tmp_path / "cache").exists()
    found = said("verify")
    assert (found.code, found.out) == (0, "")
    assert len(list(tmp_path.glob("cache/ream/history/*.sqlite"))) == 1


CHANGED = "samples.jsonl: its SHA-256 is not that in SHA256SUMS: it has changed since it was made"
READERS = (
    ("report",),
    ("report", "--json"),
    ("report", "--html", "page.html"),
    ("show",),
    ("export", "-f", "csv"),
    ("export", "-f", "jsonl", "--samples"),
    ("pack", "--to", "kept"),
    ("compare", RECORD_ID.format(number=1)),
    ("check", "--baseline", RECORD_ID.format(number=1)),
    ("replicate", "--all", "--record", RECORD_ID.format(number=1), "--record"),
)


@pytest.mark.parametrize("words", READERS, ids=" ".join)
@pytest.mark.parametrize("file", ["run.json", "samples.jsonl"])
def test_no_command_uses_a_record_of_which_a_digit_was_changed(
    said: Ream, tmp_path: Path, words: tuple[str, ...], file: str
) -> None:
    runs = tmp_path / "data/ream/runs"
    made(runs, 1)
    record = made(runs, 2)
    _, value = first_median(record)
    if file == "run.json":
        digit_changed(record.path, file, f'"median": {value}', f'"median": {value + 1}')
    else:
        digit_changed(record.path, file, '"time_ns": 6', '"time_ns": 7')
    found = said(*words, record.path.name)
    assert (found.code, found.out) == (2, "")
    assert f"{file}: its SHA-256 is not that in SHA256SUMS" in found.err
    assert len(found.err.splitlines()) == 1


def test_a_changed_digit_is_named_by_history_and_by_verify(said: Ream, tmp_path: Path) -> None:
    runs = tmp_path / "data/ream/runs"
    records = [made(runs, number) for number in (1, 2, 3)]
    assert (said("verify").code, said("verify").out) == (0, "")
    digit_changed(records[0].path, "samples.jsonl", '"time_ns": 6', '"time_ns": 7')
    place, value = first_median(records[1])
    digit_changed(records[1].path, "run.json", f'"median": {value}', f'"median": {value + 1}')
    sums_made_again(records[1].path)
    damaged = json.loads(said("history", "--json").out)["damaged"]
    assert [one["run"] for one in damaged] == [records[0].path.name]
    found = said("verify")
    assert found.code == 6
    assert found.out.splitlines() == [
        f"{records[0].path.name}: {CHANGED}",
        f"{records[1].path.name}: run.json: {place} is {value + 1}, its samples give {value}",
        (
            f"{records[1].path.name}: its numbers do not follow from its samples, although its"
            " checksums are right: one of the two was changed after the run"
        ),
    ]


def test_what_another_version_computed_is_told_apart(said: Ream, tmp_path: Path) -> None:
    record = made(tmp_path / "data/ream/runs", 1, made_by="0123456789ab")
    run = json.loads((record.path / "run.json").read_text())
    run["rows"][0]["smallest_effect"] = 9.5
    (record.path / "run.json").write_text(json.dumps(run))
    sums_made_again(record.path)
    found = said("verify")
    assert (found.code, found.out) == (0, "")
    said_of_it = f"ream: {record.path.name}: made by another version of ream: run.json: rows["
    assert said_of_it in found.err
    assert ".smallest_effect is 9.5, its samples give" in found.err


def test_an_edited_record_is_damaged_whatever_version_made_it(said: Ream, tmp_path: Path) -> None:
    record = made(tmp_path / "data/ream/runs", 1, made_by="0123456789ab")
    place, value = first_median(record)
    digit_changed(record.path, "run.json", f'"median": {value}', f'"median": {value + 1}')
    sums_made_again(record.path)
    found = said("verify")
    assert found.code == 6
    assert f"{place} is {value + 1}, its samples give {value}" in found.out
    assert "its numbers do not follow from its samples, although its checksums" in found.out
    assert "another version" not in found.err


@pytest.mark.usefixtures("runs")
def test_two_commands_at_once_say_the_same(ream_started_saying: Ream) -> None:
    started = [ream_started_saying("history") for _ in range(4)]
    said_by = [process.communicate(timeout=60) for process in started]
    assert {out for out, _ in said_by} == {said_by[0][0]}
    assert name(2) in said_by[0][0]
    assert {err for _, err in said_by} == {""}


@pytest.fixture
def ream_started_saying(tmp_path: Path) -> Ream:
    def start(*words: str) -> "subprocess.Popen[str]":
        environment = {
            **os.environ,
            "PYTHONPATH": str(CHECKOUT / "lab"),
            "XDG_DATA_HOME": str(tmp_path / "data"),
            "XDG_CACHE_HOME": str(tmp_path / "cache"),
        }
        return subprocess.Popen(
            [sys.executable, "-P", "-m", "ream", *words],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    return start


def test_all_records_of_the_documents_are_listed(said: Ream) -> None:
    found = said("history", "--runs", str(RECORDS))
    assert found.code == 0
    # On a busy machine it takes the two seconds after which progress is said.
    assert all(re.match(r"ream: read \d+ of \d+", line) for line in found.err.splitlines())
    assert found.out.count("zone-device-native-007a") == 1
