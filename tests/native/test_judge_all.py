# SPDX-License-Identifier: GPL-2.0-only
"""Judgements of ten wrong series, of ten slow patches, and of one without an effect, by seeds."""

import json
from pathlib import Path

import pytest

from ream.experiment import named
from ream.folders import names

PATCHES = Path(__file__).parent / "patches"
SLOW = sorted((Path(__file__).parent / "slow").glob("*.patch"))

COUNTED = ("--minutes", "0", "--verify-minutes", "0", "--json")

# Each is minutes of compiling and verifying.
pytestmark = [pytest.mark.vm, pytest.mark.xdist_group("reach")]

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


def test_there_are_ten_of_each_and_every_experiment_has_wrong_ones() -> None:
    assert (len(WRONG), len(SLOW)) == (10, 10)
    assert {name for name, _ in WRONG} <= {*names()}


@pytest.mark.parametrize(("experiment", "patch"), WRONG)
def test_a_wrong_patch_among_right_ones_is_named(
    ream, tmp_path: Path, experiment: str, patch: str
) -> None:
    wrong = named(experiment).folder / "wrong" / f"{patch}.patch"
    for number, one in enumerate(
        (PATCHES / "no-change.patch", wrong, PATCHES / "not-executed.patch"), 1
    ):
        (tmp_path / f"{number:04}.patch").write_bytes(one.read_bytes())
    ran = ream("judge", str(tmp_path), *COUNTED)
    assert ran.code == 5, ran.err
    its = json.loads(ran.out)["wrong"]
    assert its["first_patch"][0] == 2
    assert its["lines"][0]


@pytest.mark.parametrize("patch", SLOW, ids=lambda one: one.stem)
def test_a_slow_patch_is_found_by_its_counts(ream, patch: Path) -> None:
    ran = ream("judge", str(patch), *COUNTED)
    assert ran.code == 1, ran.err
    more = [one for one in json.loads(ran.out)["operations"] if one["outcome"] == "more"]
    assert more
    assert all(one["functions"] for one in more)
    if "locked" in patch.stem:
        assert all(one["counted"]["after"]["locked"] > 0 for one in more)


@pytest.mark.parametrize("seed", range(1, 11))
def test_code_that_is_laid_out_otherwise_is_no_effect(ream, seed: int) -> None:
    """Every row enters the function that changes, and executes what it did before."""
    told = ("--minutes", "0.5", "--verify-minutes", "0", "--seed", f"{seed}", "--json")
    ran = ream("judge", str(PATCHES / "other-order.patch"), *told)
    its = json.loads(ran.out)["operations"]
    assert its
    assert not {one["outcome"] for one in its} & {"slower", "faster", "more", "fewer"}
    assert ran.code in (0, 4)
