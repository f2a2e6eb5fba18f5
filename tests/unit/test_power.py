# SPDX-License-Identifier: GPL-2.0-only
"""How small an effect a row would have shown, and the positive control that must be found."""

import math
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest

from ream.cli.continued import control_of
from ream.errors import BadUsage
from ream.experiment import named
from ream.measure.power import smallest_count, smallest_effect
from ream.measure.sample import Sample
from ream.measure.statistics import Estimate, counts, over_launches
from ream.paths import SERIES
from ream.record.receipt import Receipt
from ream.report import letter, sensitivity, table
from ream.report.contract import RowResult, Summary
from ream.report.html import findings
from ream.variants import choose_variants
from summary_world import summarise

EXPERIMENT = named("zone-device").resized(rounds=1)
ROW = EXPERIMENT.rows[0]
LAYOUT_SD = 0.02
QUIET, NOISY = 0.001, 0.05
ASKED = 0.03


def estimate(logs: Sequence[float]) -> Estimate:
    found = over_launches([float(log) for log in logs])
    assert found is not None
    return found


@pytest.mark.parametrize("launches", [3, 4, 8, 16])
def test_an_effect_of_the_smallest_size_is_found_nine_times_of_ten(launches: int) -> None:
    draw = np.random.default_rng(17)
    found, half, nr_runs = 0, 0, 600
    for _ in range(nr_runs):
        before, again, mine, other = draw.normal(0, LAYOUT_SD, (4, launches))
        floor = estimate(again - before)
        size = smallest_effect([floor, estimate(other - before)], floor)
        assert size is not None
        found += counts(estimate(mine - before + math.log(size)), floor) is True
        half += counts(estimate(mine - before + math.log(size) / 2), floor) is True
    # Five standard errors of such a share are 0.06.
    assert 0.84 <= found / nr_runs <= 0.96
    assert half / nr_runs <= 0.6


def test_without_a_floor_or_a_second_launch_the_smallest_effect_is_not_known() -> None:
    one = estimate([0.01])
    assert smallest_effect([one], one) is None
    assert smallest_effect([estimate([0.01, 0.02])], None) is None


def test_where_launches_repeat_exactly_the_floor_is_the_smallest_effect() -> None:
    floor = estimate([0.004] * 4)
    assert smallest_effect([floor], floor) == pytest.approx(math.exp(0.004))


def test_of_a_count_one_instruction_is_the_smallest_effect_unless_rounds_differ() -> None:
    same = Estimate(1.0, 1.0, 1.0, (1.0,))
    assert smallest_count([same], same, 1000) == pytest.approx(1.001)
    apart = Estimate(0.5, 0.49, 0.52, (0.5,))
    assert smallest_count([same, apart], same, 1000) == pytest.approx(1.04)


# --- The positive control ------------------------------------------------------------------


def samples(row: str, logs: Mapping[str, Sequence[float]]) -> list[Sample]:
    return [
        Sample(row, launch, 0, "variant", subject, 1, round(1e9 * math.exp(log)), 1 << 20, True)
        for subject, its in logs.items()
        for launch, log in enumerate(its)
    ]


def controlled(
    spread: float, receipt: Receipt, *, of_control: float = math.log1p(ASKED)
) -> Summary:
    """A run of one row, whose copies differ by so much from launch to launch."""
    draw = np.random.default_rng(3)
    names = ("before", "before-again", "published", "control")
    logs = {name: draw.normal(0, spread, 8) for name in names}
    logs["control"] = logs["control"] + of_control
    variants = {**receipt.kernel.variants, "control": ()}
    options = {**receipt.settings.options, "control": ASKED}
    return summarise(
        EXPERIMENT,
        [ROW.model_copy(update={"published": ()})],
        samples(ROW.name, {name: its.tolist() for name, its in logs.items()}),
        (),
        receipt.model_copy(
            update={
                "kernel": receipt.kernel.model_copy(update={"variants": variants}),
                "settings": receipt.settings.model_copy(update={"options": options}),
            }
        ),
        run="20261121T021500Z-zone-device-native-ab12",
        stage="native",
        variants=names,
    )


def row_of(summary: Summary) -> RowResult:
    (row,) = summary.rows
    return row


def test_a_control_is_found_on_a_quiet_row(receipt: Receipt) -> None:
    summary = controlled(QUIET, receipt)
    row = row_of(summary)
    assert row.control is not None
    assert (row.control.asked, row.control.found) == (ASKED, True)
    assert row.smallest_effect is not None
    assert row.smallest_effect < 1 + ASKED
    text = table.render(summary)
    assert "  control   +3.00 % asked, 1.03" in text
    assert "measured: found" in text
    said = "positive control, 3.00 % slower than before: found in 1 of 1 row"
    assert said in text
    assert said[1:] in " ".join(letter.render(summary).split())
    assert any(said[1:] in one for one in findings.in_short(summary, ("published",)))
    again = Summary.from_object(summary.to_object(), source="run.json")
    assert row_of(again).control == row.control


def test_of_many_rows_that_do_not_find_it_there_is_a_number(receipt: Receipt) -> None:
    summary = controlled(NOISY, receipt)
    row = row_of(summary)
    rows = tuple(row.model_copy(update={"row": f"row-{n}"}) for n in range(9))
    said = sensitivity.controls(summary.model_copy(update={"rows": rows}))
    assert said is not None
    assert said.endswith(
        "found in 0 of 9 rows, not in row-0, row-1, row-2, row-3, row-4, row-5 and 3 more"
    )


def test_a_control_that_a_noisy_row_hides_is_not_found_and_the_row_says_why(
    receipt: Receipt,
) -> None:
    summary = controlled(NOISY, receipt)
    row = row_of(summary)
    assert row.control is not None
    assert row.control.found is False
    said = f"found in 0 of 1 row, not in {ROW.name}"
    assert said in " ".join(letter.render(summary).split())
    assert any(said in one for one in findings.in_short(summary, ("published",)))
    assert row.smallest_effect is not None
    assert row.smallest_effect > 1 + ASKED
    said = str(sensitivity.control(row))
    assert "measured: not found; nine times of ten this row detects " in said
    assert said.endswith(", not 3.00 %")


def test_a_control_that_is_not_slower_is_not_found(receipt: Receipt) -> None:
    row = row_of(controlled(QUIET, receipt, of_control=-0.03))
    assert row.control is not None
    assert row.control.found is False
    assert "not found, as one time of ten" in str(sensitivity.control(row))


def test_a_control_changes_no_other_decision(receipt: Receipt) -> None:
    # Among two tests p = 0.04 is no effect; were the control one of them, it would be.
    logs = {"before": [0.0] * 4, "before-again": [0.001, -0.001] * 2}
    logs["published"], logs["ream"] = [-0.05, -0.11, -0.06, -0.18], [0.01, -0.01, 0.02, -0.02]
    said = []
    for more in ({}, {"control": [0.3, 0.301, 0.299, 0.3]}):
        summary = summarise(
            EXPERIMENT,
            [ROW.model_copy(update={"published": ()})],
            samples(ROW.name, {**logs, **more}),
            (),
            receipt,
            run="20261121T021500Z-zone-device-native-ab12",
            stage="native",
            variants=tuple({**logs, **more}),
        )
        its = row_of(summary).variants
        said.append([(its[name].effect, its[name].p_value) for name in ("published", "ream")])
        assert not more or its["control"].effect == "slower"
    assert said[0] == said[1]
    assert said[0][0][0] == "undecided"


def test_the_control_has_the_patches_of_before() -> None:
    fork = named("fork")
    by_name = {one.name: one for one in choose_variants(fork, control=True)}
    assert by_name["control"].patches == by_name["before"].patches
    assert "control" not in {one.name for one in choose_variants(fork)}


@pytest.mark.parametrize(("word", "share"), [("3%", 0.03), ("30", 0.3), ("0.5 %", 0.005)])
def test_a_control_is_given_in_per_cent(word: str, share: float) -> None:
    assert control_of(word, "native") == pytest.approx(share)
    assert control_of(None, "vm") is None


@pytest.mark.parametrize(
    ("word", "stage", "said"),
    [
        ("3%", "vm", "the native stage alone"),
        ("3%", "live", "the native stage alone"),
        ("0", "native", "give per cent from 0.01 to 100"),
        ("nan", "native", "give per cent"),
        ("many", "native", "give per cent"),
    ],
)
def test_a_control_that_cannot_be_is_refused(word: str, stage: str, said: str) -> None:
    with pytest.raises(BadUsage, match=said):
        control_of(word, stage)


def test_what_is_counted_has_no_control() -> None:
    with pytest.raises(BadUsage, match="--control 3%: what is counted has no time to slow"):
        control_of("3%", "native", counted=True)


def test_a_series_is_not_taken_for_the_positive_control(tmp_path: Path) -> None:
    patch = tmp_path / "control.patch"
    shutil.copy(next((SERIES / "zone-device").glob("0001-*")), patch)
    experiment = named("zone-device")
    with pytest.raises(BadUsage, match="a series is called control"):
        choose_variants(experiment, user_series=[patch])
