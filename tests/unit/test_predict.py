# SPDX-License-Identifier: GPL-2.0-only
"""Predictions of one type of CPU from others: made-up types, and the page."""

import math
import random

import predictions as page
from ream.history.pooled import OverRuns
from ream.history.predict import lines, predictions, to_object
from ream.measure.statistics import Estimate

NR_ROWS = 40
SPREAD = 0.1
TRIALS = 60


def on(ratio: float, *, earlier: bool = False) -> OverRuns:
    return OverRuns(Estimate(ratio, None, None, (ratio,)), ("run",), earlier)


def alike(seed: int, types: int = 4) -> dict[tuple[str, str, str], dict[str, OverRuns]]:
    """Rows of an experiment, whose log ratios differ between types by SPREAD."""
    drawn = random.Random(seed)
    return {
        ("made", f"row-{row}", "ream"): {
            f"cpu {at}": on(math.exp(drawn.gauss(-row / 50, SPREAD))) for at in range(types)
        }
        for row in range(NR_ROWS)
    }


def test_of_types_that_are_alike_95_of_100_lie_where_the_others_predict_them() -> None:
    held = [one.holds for seed in range(TRIALS) for one in predictions(alike(seed))]
    assert len(held) == TRIALS * NR_ROWS * 4
    assert 0.93 < sum(map(bool, held)) / len(held) < 0.97


def test_a_type_of_its_own_kind_is_told() -> None:
    found = alike(1)
    for by_cpu in found.values():
        by_cpu["cpu 0"] = on(by_cpu["cpu 1"].estimate.ratio * 2)
    its = [one for one in predictions(found) if one.cpu == "cpu 0"]
    assert not any(one.holds for one in its)
    text = list(lines(its))
    assert text[0] == f"cpu 0: 0 of {NR_ROWS} ratios lie where other types predict them"
    assert text[1].endswith("OUTSIDE")


def test_a_prediction_never_sees_the_type_itself() -> None:
    found, other = alike(2), alike(2)
    for by_cpu in other.values():
        by_cpu["cpu 0"] = on(7.0)
    one, two = ([it for it in predictions(its) if it.cpu == "cpu 0"] for its in (found, other))
    assert [(it.ratio, it.low, it.high) for it in one] == [
        (it.ratio, it.low, it.high) for it in two
    ]


def test_a_type_that_nothing_ran_on_is_predicted_and_one_other_type_predicts_nothing() -> None:
    found = alike(3, types=2)
    its = list(predictions(found, cpus=("new",)))
    assert {one.cpu for one in its} == {"new"}
    assert {one.holds for one in its} == {None}
    assert "not measured" in list(lines(its))[1]
    assert to_object(its)["schema"] == 1


def test_other_kernels_under_the_same_name_predict_nothing() -> None:
    found = alike(4, types=3)
    for by_cpu in found.values():
        by_cpu["cpu 0"] = on(1.0, earlier=True)
    assert {one.cpu for one in predictions(found)} == {"cpu 0"}


def test_the_page_is_of_the_kept_records() -> None:
    command = "PYTHONPATH=lab:tests:. python tests/predictions.py"
    assert page.PAGE.read_text(encoding="utf-8") == page.written(), f"write it again: {command}"
