# SPDX-License-Identifier: GPL-2.0-only
"""A series that changes nothing that a row executes is told so, and not timed."""

import json
from pathlib import Path

import pytest

from ream.paths import EXPERIMENTS

PATCHES = Path(__file__).parent / "patches"
COMMENT, ELSEWHERE = PATCHES / "no-change.patch", PATCHES / "not-executed.patch"
BROKEN = PATCHES / "does-not-compile.patch"
OF_FORK = EXPERIMENTS / "fork/tests/native/patches"

pytestmark = pytest.mark.xdist_group("reach")

SMALL = {
    "compact": ("--stage", "native", "--row", "batch-32"),
    "deferred-init": ("--row", "1g-2-threads"),
    "fork": ("--row", "fork-64k", "--row", "munmap-64k"),
    "migrate": ("--row", "64k-serial"),
    "zone-device": ("--row", "small-256MB"),
}
COUNTS = ("--launches", "2", "--rounds", "2")


LONG = pytest.mark.vm
"""A minute and more of compiling: for `make test-vm`."""


@pytest.mark.parametrize(
    "experiment",
    [pytest.param(one, marks=() if one in ("fork", "zone-device") else LONG) for one in SMALL],
)
def test_a_comment_is_not_timed(ream, tmp_path: Path, experiment: str) -> None:
    ran = ream("run", experiment, *SMALL[experiment], *COUNTS, "--series", str(COMMENT))
    assert ran.code == 0
    said = (
        "no-change: nothing changes: every file that it touches is the same code with it: the same"
    )
    assert said in ran.err
    assert "`ream run --measure-anyway` measures it all the same" in ran.err
    assert not list(tmp_path.glob("data/ream/runs/*/run.json"))


def test_a_function_that_no_row_executes_is_named(ream) -> None:
    ran = ream("run", "fork", *SMALL["fork"], *COUNTS, "--series", str(ELSEWHERE))
    assert ran.code == 4
    said = "not-executed: not measured: it changes do_swap_page(), which no row here executes"
    assert said in ran.err


def test_code_that_an_experiment_does_not_host_leaves_it_open(ream) -> None:
    ran = ream("run", "zone-device", *SMALL["zone-device"], *COUNTS, "--series", str(ELSEWHERE))
    assert ran.code == 4
    assert "but it changes code that is not hosted here, in mm/memory.c" in ran.err


def test_a_patch_that_does_not_compile_is_named_with_the_compilers_error(ream) -> None:
    ran = ream("run", "zone-device", *SMALL["zone-device"], *COUNTS, "--series", str(BROKEN))
    assert ran.code == 2
    said = "ream: does-not-compile.patch does not compile: mm/mm_init.c:1001:13: error: implicit"
    assert ran.err.splitlines()[-1].startswith(said)


@pytest.mark.vm
def test_one_series_of_two_is_left_out_and_the_other_measured(ream) -> None:
    # Applies to the base alone, and changes what the row executes.
    works = str(PATCHES.parents[2] / "kernel/series/rmap-exclusive")
    series = ("--series", str(ELSEWHERE), "--series", works)
    ran = ream("run", "fork", "--row", "exit-64k", *COUNTS, *series, "--json")
    assert ran.code == 0, ran.err
    run = json.loads(ran.out)
    assert set(run["untouched"]) == {"not-executed"}
    assert "not-executed" not in run["rows"][0]["variants"]
    assert run["rows"][0]["variants"]["rmap-exclusive"]["effect"] in ("faster", "undecided")


@LONG
def test_which_says_what_a_patch_reaches(ream) -> None:
    ran = ream("which", str(OF_FORK / "fork-child-young.patch"), "--json")
    assert ran.code == 0, ran.err
    found = {one["experiment"]: one for one in json.loads(ran.out)}
    assert found["zone-device"]["why_not"] == "the same object code as the base in all 9 objects"
    assert found["fork"]["why_not"] is None
    rows = found["fork"]["rows"]
    assert 0 < len(rows) < found["fork"]["nr_rows"]
    assert all(not row.startswith(("munmap", "exit")) for row in rows)
