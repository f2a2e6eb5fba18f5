# SPDX-License-Identifier: GPL-2.0-only
"""Effects are decided over all rows of a run, and launches that differ are named."""

import math
from collections.abc import Mapping, Sequence

import pytest

from ream.experiment import named
from ream.measure.sample import Sample
from ream.measure.statistics import over_launches
from ream.record.receipt import Receipt
from ream.report import letter, table
from ream.report.contract import RowResult, Summary, Unit
from summary_world import summarise

EXPERIMENT = named("zone-device").resized(rounds=2)
ROW = EXPERIMENT.rows[0]
CLEAR = (-0.5, -0.51, -0.49, -0.5)
DOUBTFUL = (-0.05, -0.11, -0.06, -0.18)
"""Log ratios of four launches: p = 0.03."""
NOTHING = (0.01, -0.01, 0.02, -0.02)


def samples(row: str, logs: Mapping[str, Sequence[float]], *, apart: float = 0.0) -> list[Sample]:
    """Two rounds a launch, `apart` of each other in logarithms; a second copy of before, too."""
    every = {"before": (0.0,) * 4, "before-again": (0.001, -0.001, 0.001, -0.001), **logs}
    return [
        Sample(
            row=row,
            launch=launch,
            round=number,
            role="variant",
            subject=subject,
            threads=1,
            time_ns=round(1e9 * math.exp(log + (number * apart if subject in logs else 0))),
            nr_bytes=ROW.written_bytes,
            verified=True,
        )
        for subject, its in every.items()
        for launch, log in enumerate(its)
        for number in range(2)
    ]


def summary_of(rows: Sequence[str], taken: Sequence[Sample], receipt: Receipt) -> Summary:
    return summarise(
        EXPERIMENT,
        [ROW.model_copy(update={"name": name, "published": ()}) for name in rows],
        taken,
        (),
        receipt,
        run="20261121T021500Z-zone-device-native-ab12",
        stage="native",
    )


def only(summary: Summary, row: str) -> RowResult:
    return next(one for one in summary.rows if one.row == row)


def test_an_effect_that_would_count_alone_may_be_chance_among_many(receipt: Receipt) -> None:
    doubtful = samples("doubtful", {"published": DOUBTFUL})
    alone = only(summary_of(["doubtful"], doubtful, receipt), "doubtful")
    assert alone.variants["published"].effect == "faster"
    assert not any("by chance" in note for note in alone.notes)

    quiet = [f"quiet-{number}" for number in range(4)]
    many = [*doubtful, *(one for row in quiet for one in samples(row, {"published": NOTHING}))]
    among = only(summary_of(["doubtful", *quiet], many, receipt), "doubtful")
    found = among.variants["published"]
    assert found.effect == "undecided"
    assert (found.low, found.high) == (
        alone.variants["published"].low,
        alone.variants["published"].high,
    )
    (note,) = (note for note in among.notes if "by chance" in note)
    assert note == (
        "published is undecided, although its interval excludes 1: it does not stand the "
        f"correction for multiple comparisons (p = {found.p_value:.4f}), as of so many ratios some "
        "exclude 1 by chance; more launches of this row alone would tell"
    )


def test_a_real_effect_among_many_rows_still_counts(receipt: Receipt) -> None:
    rows = ["real", *(f"quiet-{number}" for number in range(20))]
    taken = [
        one
        for row in rows
        for one in samples(row, {"published": CLEAR if row == "real" else NOTHING})
    ]
    summary = summary_of(rows, taken, receipt)
    effects = [row.variants["published"].effect for row in summary.rows]
    assert effects == ["faster", *["equal"] * 20]


def test_launches_that_differ_more_than_their_rounds_are_named(receipt: Receipt) -> None:
    launches = tuple(math.log(ratio) for ratio in (0.58, 0.71, 0.6, 0.65))
    taken = samples("row", {"published": launches, "ream": launches}, apart=0.002)
    summary = summary_of(["row"], taken, receipt)
    row = only(summary, "row")
    layout = row.variants["published"].layout
    assert layout is not None
    assert layout.depends
    assert row.notes[-2] == (
        "published depends on layout: launches give 0.581 .. 0.711, rounds of one launch are "
        "within 0.1 % of its middle; more launches average over more"
    )
    assert "  launches  before-again 0.999 to 1.001, technique 0.581 to" in table.render(summary)
    assert "  launches: technique 0.581 to 0.711, ours 0.581 to 0.711\n" in letter.render(summary)


def test_rounds_that_differ_as_much_as_launches_are_no_layout(receipt: Receipt) -> None:
    launches = tuple(math.log(ratio) for ratio in (0.58, 0.71, 0.6, 0.65))
    taken = samples("row", {"published": launches}, apart=0.5)
    row = only(summary_of(["row"], taken, receipt), "row")
    layout = row.variants["published"].layout
    assert layout is not None
    assert not layout.depends
    assert not any("depends on layout" in note for note in row.notes)


def counted(logs: Mapping[str, Sequence[float]], receipt: Receipt) -> RowResult:
    unit: Unit = "instructions"
    (row,) = summarise(
        EXPERIMENT,
        [ROW.model_copy(update={"published": ()})],
        samples(ROW.name, logs),
        (),
        receipt,
        run="20261121T021500Z-zone-device-vm-ab12",
        stage="vm",
        unit=unit,
    ).rows
    return row


SAME: Mapping[str, Sequence[float]] = {"before-again": (0.0,) * 4}


def test_counts_that_repeat_exactly_are_decided_alone(receipt: Receipt) -> None:
    found = counted(SAME | {"published": (-0.1,) * 4}, receipt).variants["published"]
    assert (found.effect, found.p_value, found.layout) == ("fewer", None, None)
    assert found.low == found.high == found.ratio


@pytest.mark.parametrize(
    "logs",
    [
        pytest.param({"published": (-0.1,) * 4}, id="two copies of before differ"),
        pytest.param(SAME | {"published": (-0.1, -0.102, -0.1, -0.099)}, id="boots differ"),
    ],
)
def test_counts_that_do_not_repeat_are_judged_as_times_are(
    logs: Mapping[str, Sequence[float]], receipt: Receipt
) -> None:
    row = counted(logs, receipt)
    found = row.variants["published"]
    assert (row.unit, found.effect) == ("instructions", "fewer")
    assert found.p_value is not None
    ratios = [math.exp(log) for log in logs["published"]]
    estimate = over_launches([math.log(round(1e9 * ratio) / 1e9) for ratio in ratios])
    assert estimate is not None
    assert (found.low, found.high) == pytest.approx((estimate.low, estimate.high), rel=1e-5)
    doubtful = counted(logs | {"published": NOTHING}, receipt).variants["published"]
    assert doubtful.effect == "equal"


@pytest.mark.parametrize("name", ["before", "before-again"])
def test_the_floor_is_no_test_of_its_own(receipt: Receipt, name: str) -> None:
    row = only(summary_of(["row"], samples("row", {"published": CLEAR}), receipt), "row")
    assert row.variants[name].p_value is None
    assert row.variants["published"].p_value is not None


def test_slower_than_published_may_be_chance_among_many(receipt: Receipt) -> None:
    slower = tuple(-one for one in DOUBTFUL)
    doubtful = samples("doubtful", {"published": (0.0,) * 4, "ream": slower})
    alone = only(summary_of(["doubtful"], doubtful, receipt), "doubtful")
    assert any("slower than published" in note for note in alone.notes)

    quiet = [f"quiet-{number}" for number in range(4)]
    nothing = {"published": (0.0,) * 4, "ream": NOTHING}
    many = [*doubtful, *(one for row in quiet for one in samples(row, nothing))]
    among = only(summary_of(["doubtful", *quiet], many, receipt), "doubtful")
    assert among.variants["ream"].over_published == alone.variants["ream"].over_published
    assert not any("slower than published" in note for note in among.notes)
