# SPDX-License-Identifier: GPL-2.0-only
"""Columns that an experiment declares: the engine treats those of any experiment alike."""

from collections.abc import Mapping

import pytest

from ream.experiment.columns import OF_ROW, Amount, Column, Columns, Part
from ream.measure.sample import Sample
from ream.report.batches import batches
from ream.report.columns import OVER_BEFORE, columns_of, over
from ream.report.contract import Ratio

WALKS = Column(
    "walks", "page walks", lambda one, _: one.beside.get("walks"), better="lower", published=True
)
DECLARED = Columns(
    columns=(
        WALKS,
        Column(
            "walk_ns",
            "of one walk",
            lambda one, counted: None if counted else one.time_ns / one.beside["walks"],
            OF_ROW,
            "real",
        ),
        Column("walks_over_before", "a ratio", WALKS.of, summarised="ratio"),
        Column("tlb.hits", "entries found", lambda one, _: one.beside.get("hits")),
        Column("tlb.misses", "entries not found", lambda one, _: one.beside.get("misses")),
    ),
    amount=Amount("wanted", "walks", "walk"),
)


def sample(subject: str, launch: int, **beside: int) -> Sample:
    return Sample("row", launch, 0, "variant", subject, 1, 1200, 4096, True, beside=beside)


BOTH = [
    sample(name, launch, wanted=8, walks=walks + launch, hits=3 + launch)
    for name, walks in (("before", 4), ("ream", 2))
    for launch in range(3)
]


def test_columns_are_medians_ratios_and_objects_of_several() -> None:
    its = columns_of(DECLARED, BOTH, "ream", to="before")
    assert its is not None
    assert (its["walks"], its["walk_ns"], its["tlb"]) == (3, 400.0, {"hits": 4})
    ratio = its["walks_over_before"]
    assert isinstance(ratio, Ratio)
    assert ratio.ratio == pytest.approx((2 / 4 * 3 / 5 * 4 / 6) ** (1 / 3), rel=1e-4)
    assert its[OVER_BEFORE] == {"walks": ratio}


def test_what_is_compared_with_itself_has_no_ratio() -> None:
    its = columns_of(DECLARED, BOTH, "before", to="before")
    assert its is not None
    assert (its["walks_over_before"], its[OVER_BEFORE]) == (None, {})


def test_samples_that_say_nothing_have_no_columns() -> None:
    bare = [sample("ream", 0)]
    declared = Columns(columns=(WALKS,))
    assert columns_of(declared, bare, "ream", to="before") is None
    assert columns_of(Columns(), BOTH, "ream", to="before") is None


def test_a_count_may_be_none_of_a_row_that_counts_instructions() -> None:
    its = columns_of(DECLARED, BOTH, "ream", to="before", counted=True)
    assert its is not None
    assert its["walk_ns"] is None


def test_where_one_sample_has_nothing_there_is_no_ratio() -> None:
    assert over(WALKS, [*BOTH, sample("ream", 3)], "ream", to="before") is None
    assert over(WALKS, [*BOTH, sample("ream", 3, walks=0)], "ream", to="before") is None


def test_who_did_less_is_scaled_and_named() -> None:
    half = sample("ream", 0, wanted=8, walks=4)
    (scaled,) = DECLARED.alike([half])
    assert (scaled.time_ns, scaled.beside) == (2400, half.beside)
    assert DECLARED.lacking([half], ["ream"]) == "ream got 4 of 8 walks, and then none"
    assert DECLARED.lacking([half], ["before"]) is None
    assert Columns().alike([half]) == (half,)


@pytest.mark.parametrize("beside", [{}, {"wanted": 8}, {"wanted": 8, "walks": 0}])
def test_where_the_amount_is_not_known_nothing_is_scaled(beside: Mapping[str, int]) -> None:
    one = sample("ream", 0, **beside)
    assert DECLARED.alike([one]) == (one,)
    assert DECLARED.lacking([one], ["ream"]) is None


def test_no_rows_have_no_parts() -> None:
    assert batches([Part("page_ns", "a page", 9, ("move",))], (), ()) == ()
