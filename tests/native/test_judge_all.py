# SPDX-License-Identifier: GPL-2.0-only
"""Judgements of ten wrong series, of ten slow patches, and of one without an effect, by seeds."""

import json
from pathlib import Path

import pytest

from ream.experiment import named
from ream.folders import names
from ream.judge.question import Question
from ream.judge.session import judge
from ream.kernel.series import load_series
from ream.progress import Reporter

PATCHES = Path(__file__).parent / "patches"
SLOW = sorted((Path(__file__).parent / "slow").glob("*.patch"))

COUNTED = ("--minutes", "0", "--verify-minutes", "0", "--json")

pytestmark = pytest.mark.xdist_group("reach")

LONG = pytest.mark.vm
"""Minutes of compiling and verifying each."""

WRONG = (
    ("fork", "11-uffd-wp-by-parent"),
    ("fork", "29-referenced-not-activated"),
    ("fork", "38-deferred-split-large-only"),
    ("migrate", "05-old-entry-comes-back-young"),
    ("migrate", "13-deferred-split-if-partial"),
    ("mprotect", "08-page-frame-not-inverted"),
    ("deferred-init", "10-init-and-free-in-turn"),
    ("zone-device", "02-head-after-second-tail"),
    ("zone-device", "14-pageblock-pfn-32-bit"),
    ("zone-contiguous", "03-online-is-enough"),
)
"""Experiment and patch, each of which ends as the second of three."""

QUICK = ("zone-contiguous", "03-online-is-enough")


def three(folder: Path, experiment: str, patch: str) -> Path:
    """A series of three in a folder: nothing, the wrong patch, and something never executed."""
    wrong = named(experiment).folder / "wrong" / f"{patch}.patch"
    for number, one in enumerate(
        (PATCHES / "no-change.patch", wrong, PATCHES / "not-executed.patch"), 1
    ):
        (folder / f"{number:04}.patch").write_bytes(one.read_bytes())
    return folder


def test_there_are_ten_of_each_and_every_experiment_has_wrong_ones() -> None:
    assert (len(WRONG), len(SLOW)) == (10, 10)
    assert {name for name, _ in WRONG} <= {*names()}


@pytest.mark.vm
def test_a_wrong_patch_is_named_where_one_experiment_is_all_there_is(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same in the quick suite: the objects of one configuration alone are compiled."""
    monkeypatch.setattr("ream.judge.reach.names", lambda: [QUICK[0]])
    (tmp_path / "series").mkdir()
    series = load_series(three(tmp_path / "series", *QUICK))
    asked = Question(series=series, tree=None, runs=tmp_path / "runs", cache=cache, seed=1)
    its = judge(asked, Reporter(quiet=True))
    assert its.exit_code == 5
    assert its.wrong is not None
    assert its.wrong.first_patch is not None
    assert its.wrong.first_patch[0] == 2


@LONG
@pytest.mark.parametrize(("experiment", "patch"), WRONG)
def test_a_wrong_patch_among_right_ones_is_named(
    ream, tmp_path: Path, experiment: str, patch: str
) -> None:
    ran = ream("judge", str(three(tmp_path, experiment, patch)), *COUNTED)
    assert ran.code == 5, ran.err
    its = json.loads(ran.out)["wrong"]
    assert its["first_patch"][0] == 2
    assert its["lines"][0]


@LONG
@pytest.mark.parametrize("patch", SLOW, ids=lambda one: one.stem)
def test_a_slow_patch_is_found_by_its_counts(ream, patch: Path) -> None:
    ran = ream("judge", str(patch), *COUNTED)
    assert ran.code == 1, ran.err
    more = [one for one in json.loads(ran.out)["operations"] if one["outcome"] == "more"]
    assert more
    assert all(one["functions"] for one in more)
    if "locked" in patch.stem:
        assert all(one["counted"]["after"]["locked"] > 0 for one in more)


@LONG
@pytest.mark.parametrize("seed", range(1, 11))
def test_code_that_is_laid_out_otherwise_is_no_effect(ream, seed: int) -> None:
    """Every row enters the function that changes, and executes what it did before."""
    told = ("--minutes", "0.5", "--verify-minutes", "0", "--seed", f"{seed}", "--json")
    ran = ream("judge", str(PATCHES / "other-order.patch"), *told)
    its = json.loads(ran.out)["operations"]
    assert its
    assert not {one["outcome"] for one in its} & {"slower", "faster", "more", "fewer"}
    assert ran.code in (0, 4)
