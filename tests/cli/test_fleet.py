# SPDX-License-Identifier: GPL-2.0-only
"""`ream plan`, `ream run --cell` and `ream merge`, as users type them."""

import json
from pathlib import Path

import pytest

from history_world import written

USAGE = 2
TINY = ("plan", "zone-device", "--row", "small-256MB", "--launches", "1", "--rounds", "1")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["plan", "quux"], "no experiment 'quux'; there is compact"),
        (["plan", "zone-device", "--row", "quux"], "no row quux in zone-device"),
        (["plan", "zone-device", "--stage", "live"], "has no row for the live stage"),
        (["plan", "zone-device", "--launches", "0"], "launches: must be between 1 and"),
        (["plan", "zone-device", "--emit", "parallel"], "name a new directory with -o DIR"),
        (["plan", "zone-device", "--each-host"], "--each-host needs --hosts"),
        (["plan", "zone-device", "--hosts", "a"], "jsonl leaves it to others where a cell runs"),
        (["plan", "fork", "--emit", "parallel", "--hosts", "a b", "-o", "x"], "'a b' is neither"),
        (["plan", "zone-device", "--series", "nowhere.patch"], "nowhere.patch"),
        (["run", "--cell", "nowhere.json"], "nowhere.json: No such file or directory"),
        (["run", "--cell", "-"], "standard input: 0 lines, where one cell is one line"),
        (["merge", "nowhere"], "nowhere: no such directory"),
        (["merge", "."], ".: no record in there"),
        (["merge", ".", "--plan", "nowhere"], "nowhere: No such file or directory"),
    ],
)
def test_bad_words_are_refused_in_one_line(ream, words: list[str], said: str) -> None:
    answer = ream(*words)
    assert (answer.code, answer.out) == (USAGE, "")
    assert said in answer.err
    assert "Traceback" not in answer.err
    assert len(answer.err.strip().splitlines()) == 1


def test_a_plan_without_a_directory_is_lines_on_standard_output(ream) -> None:
    said = ream(*TINY, "--repeat", "2", "--seed", "5")
    assert said.code == 0
    cells = [json.loads(line) for line in said.out.splitlines()]
    assert [(cell["seed"], cell["launches"]) for cell in cells] == [(5, 1), (6, 1)]


def test_a_dry_run_of_a_plan_names_cells_and_files_and_writes_none(ream, tmp_path: Path) -> None:
    said = ream(*TINY, "--emit", "sbatch", "-o", "plan", "--dry-run")
    assert said.code == 0
    assert ": zone-device native small-256MB; 1 launch\n" in said.out
    assert "file        plan/run.sbatch\n" in said.out
    assert not list(tmp_path.iterdir())


def test_a_dry_run_of_a_cell_says_what_it_would_do(ream, tmp_path: Path) -> None:
    assert ream(*TINY, "-o", "plan").code == 0
    said = ream("run", "--cell", "plan/cells.jsonl", "--dry-run")
    assert said.code == 0, said.err
    assert "row         small-256MB: 256 MiB, FS_DAX" in said.out
    assert [path.name for path in tmp_path.iterdir()] == ["plan"]


def test_a_cell_is_measured_once(ream, tmp_path: Path) -> None:
    assert ream(*TINY, "-o", "plan").code == 0
    first = ream("run", "--cell", "plan/cells.jsonl", "-o", "runs")
    assert first.code == 0, first.err
    again = ream("run", "--cell", "plan/cells.jsonl", "-o", "runs")
    assert (again.code, again.out) == (0, first.out)
    assert "done on this machine already: runs/" in again.err
    (record,) = (tmp_path / "runs").iterdir()
    settings = json.loads((record / "receipt.json").read_text())["settings"]
    assert settings["cell"] == json.loads((tmp_path / "plan/cells.jsonl").read_text())["id"]
    assert settings["command"] == "ream run --cell plan/cells.jsonl"


def test_merge_writes_where_it_is_told_and_prints_the_same(ream, tmp_path: Path) -> None:
    written(tmp_path / "runs", 1)
    table = ream("merge", "runs")
    assert table.code == 0, table.err
    assert ream("merge", "runs", "-o", "merged.txt").out == ""
    assert (tmp_path / "merged.txt").read_text() == table.out
    said = ream("merge", "runs", "--json", "-o", "nowhere/merged.txt")
    assert (said.code, said.out) == (USAGE, "")
    assert "nowhere/merged.txt: cannot be written: No such file" in said.err


def test_a_plan_of_another_base_is_of_that_on_every_host(ream) -> None:
    said = ream(*TINY, "--base", "7.3")
    assert said.code == 0, said.err
    assert json.loads(said.out)["tree"]["base"] == "7.3"
    done = ream("run", "--cell", "-", "--dry-run", fed=said.out)
    assert done.code == 0, done.err
    assert "tree        linux-source-7.3 of the package archive\n" in done.out
    both = ream(*TINY, "--base", "7.3", "--tree", "linux")
    assert both.code == USAGE
    assert "--base 7.3 --tree linux: each names the kernel source; leave one out" in both.err
