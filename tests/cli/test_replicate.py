# SPDX-License-Identifier: GPL-2.0-only
"""`ream replicate` as people start it: records that exist, one quick run."""

import json
from pathlib import Path

import pytest

from shipped import SHIPPED


def record_of(name: str) -> str:
    """The oldest of its kind: later ones may be of single rows."""
    return str(next(path for path in SHIPPED if f"-{name}-" in path.name))


@pytest.mark.parametrize(
    ("table", "record"), [("fork-pte-batch-v3", "fork-native"), ("compact-dma", "fork-native")]
)
def test_the_exit_code_is_that_of_the_worst_table(ream, table: str, record: str) -> None:
    said = ream("replicate", table, "--record", record_of(record), "--json")
    (told,) = json.loads(said.out)["tables"]
    codes = {"contradicts": 1, "not-run": 3, "inconclusive": 4}
    assert said.code == codes.get(told["verdict"], 0), said.err


def test_a_dry_run_says_which_runs_and_how_long(ream) -> None:
    said = ream("replicate", "--all", "--dry-run", "--seed", "3", "--launches", "2")
    assert said.code == 0, said.err
    assert "run         ream run fork --stage " in said.out
    assert "tables      fork-pte-batch-v3, unmap-pte-batch-v1" in said.out
    assert "about" in said.out
    assert "--seed 3" in said.out
    words = [line for line in said.out.splitlines() if not line.startswith("run ")]
    assert max(map(len, words)) <= 100  # commands stay in one line, to be pasted
    assert " deferred-init-triplett\n" in said.out  # the last of seven, in another line


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "name published tables (`ream list EXPERIMENT` shows"),
        (("nothing",), "no published table nothing; `ream list EXPERIMENT` shows"),
        (("--all", "--launches", "0"), "launches: must be between 1"),
    ],
)
def test_what_cannot_be_meant_is_said_in_one_line(ream, words, said) -> None:
    ran = ream("replicate", *words)
    assert ran.code == 2
    assert ran.err.startswith(f"ream: {said}")
    assert ran.out == ""


def test_a_quick_run_replicates_a_table_and_leaves_an_ordinary_record(ream, tmp_path: Path) -> None:
    (tmp_path / "small.toml").write_text(
        '[[table]]\nid = "small"\nexperiment = "fork"\ntitle = "t"\nauthor = "a"\n'
        'machine = "m"\nmethod = "m"\nunit = "ms"\nbetter = "lower"\nrows = [\n'
        "{ params = { folio_kib = 64 }, values = { before = 10, published = 7 } },\n]\n"
    )
    ran = ream("replicate", "small.toml", "--launches", "1", "--rounds", "1", "--seed", "1")
    assert ran.code == 4, ran.err  # one launch has no interval
    assert "\n  64 " in ran.out
    (record,) = (tmp_path / "data/ream/runs").iterdir()
    assert ran.out.count(f"\nrecord    {record.name}\n") == 1
    again = ream("replicate", "small.toml", "--record", record.name)
    assert (again.out, again.code) == (ran.out, ran.code)
    assert ream("report").code == 0
