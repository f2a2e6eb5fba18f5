# SPDX-License-Identifier: GPL-2.0-only
"""Judgements that a computer of all of mm/ decides, before any experiment is compiled."""

import json
import shlex
from pathlib import Path

import pytest

from ream.paths import EXPERIMENTS

PATCHES = Path(__file__).parent / "patches"


def test_a_comment_needs_no_compiler(ream) -> None:
    ran = ream("judge", str(PATCHES / "no-change.patch"), "--minutes", "0")
    assert ran.code == 0, ran.err
    assert "Nothing changes: the code and data of mm/m" in ran.out
    assert "compiling" not in ran.err


def test_a_wrong_patch_is_shown_by_a_short_program(ream, tmp_path: Path) -> None:
    wrong = EXPERIMENTS / "mremap/wrong/05-marker-kept.patch"
    ran = ream("judge", str(wrong), "--minutes", "0", "--json", "-o", str(tmp_path))
    assert ran.code == 5, ran.err
    its = json.loads(ran.out)
    assert its["reach"] is None
    assert its["whole"]["nr_entered"] > 0
    (found,) = its["findings"]
    assert found["message"].startswith("after `p0 mremap")
    assert found["rule"] == "has a marker of userfaultfd in a VMA that it does not watch"
    assert found["file"] == "mm/mremap.c"
    assert f"of the changed lines it executes mm/mremap.c:{found['line']}" in its["wrong"]["lines"]
    assert len(found["program"].splitlines()) <= 15
    _, *shown = shlex.split(its["programs"][found["id"]])
    assert shown[2:] == ["--series", str(wrong)]
    assert ream(*shown).code == 5
    assert ream(*shown[:2]).code == 0


def test_what_only_an_assertion_sees_is_shown_with_its_configuration(ream, tmp_path: Path) -> None:
    wrong = PATCHES / "computer-asserts.patch"
    where = ("-o", str(tmp_path))
    ran = ream("judge", str(wrong), "--quick", "--verify-minutes", "1", "--json", *where)
    assert ran.code == 5, ran.err
    its = json.loads(ran.out)
    (found,) = its["findings"]
    assert (found["config"], found["file"]) == ("debug", "mm/rmap.c")
    assert found["rule"].startswith("the kernel warns at VM_WARN_ON(")
    _, *shown = shlex.split(its["programs"][found["id"]])
    assert shown[4:] == ["--config", "debug"]
    assert ream(*shown[:4]).code == 0
    assert ream(*shown).code == 5


@pytest.mark.vm  # all programs of the corpus run once with assertions
def test_a_configuration_that_is_asked_for_is_the_one_that_is_judged(ream) -> None:
    wrong = str(PATCHES / "computer-asserts.patch")
    ran = ream("judge", wrong, "--config", "debug", "--verify-minutes", "1", "--json")
    assert ran.code == 5, ran.err
    its = json.loads(ran.out)
    assert its["tree"].endswith(", configured by native-debug.config")
    assert its["findings"][0]["config"] == "debug"
    assert "without the series and with it in the configuration" not in ran.err


@pytest.mark.vm  # compiled with assertions, without the series and with it
def test_an_assertion_alone_is_judged_where_it_is_compiled(ream) -> None:
    alone = PATCHES / "assertion-alone.patch"
    ran = ream("judge", str(alone), "--quick", "--verify-minutes", "0.1", "--json")
    assert ran.code == 4, ran.err
    whole = json.loads(ran.out)["whole"]
    assert (whole["same"], whole["config"]) == (False, "debug")
    assert "unlink_anon_vmas" in whole["functions"]
    assert whole["nr_entered"] > 0


@pytest.mark.vm  # compiled in three configurations
def test_lines_that_move_change_nothing_though_assertions_have_their_numbers(ream) -> None:
    ran = ream("judge", str(PATCHES / "lines-moved.patch"), "--quick")
    assert ran.code == 0, ran.err
    assert "Nothing changes: the code and data of mm/m" in ran.out


def test_a_quick_judgement_runs_no_row_and_names_the_line_that_no_program_executes(ream) -> None:
    ran = ream(
        *("judge", str(PATCHES / "line-unexecuted.patch"), "--quick"),
        *("--verify-minutes", "0.1", "--json"),
    )
    assert ran.code == 4, ran.err
    its = json.loads(ran.out)
    assert its["sentence"].startswith("Memory was right in every program")
    assert its["sentence"].endswith(" Undecided: no row was asked for (--quick).")
    assert its["operations"] == []
    assert "what it costs" in its["not_examined"]
    whole = its["whole"]
    assert whole["missed"] == []
    assert whole["unexecuted"] == [
        {"file": "mm/memory.c", "line": 971, "text": "count_vm_events(PGFREE, nr);"}
    ]


def test_code_that_no_experiment_hosts_is_counted_by_programs(ream) -> None:
    twice = EXPERIMENTS / "mm/tests/native/patches/vmalloc-twice.patch"
    quick = ("--minutes", "0", "--verify-minutes", "0.1", "--json")
    ran = ream("judge", str(twice), *quick)
    assert ran.code == 1, ran.err
    its = json.loads(ran.out)
    assert {one["experiment"] for one in its["operations"]} == {"mm"}
    (row,) = (one for one in its["operations"] if one["row"] == "vmalloc")
    assert row["outcome"] == "more"
    assert row["counted"]["repeats"]
    assert row["counted"]["after"]["instructions"] > 1.5 * row["counted"]["before"]["instructions"]
    assert "vmalloc_noprof" in its["whole"]["functions"]
    assert its["reach"]["changed"] == []
