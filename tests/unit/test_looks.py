# SPDX-License-Identifier: GPL-2.0-only
"""A variant has one colour and one mark in all plots."""

import re
from collections.abc import Iterable
from itertools import combinations

import pytest

from ream.experiment import AGAIN
from ream.record.record import Record
from ream.report.contract import Summary
from ream.report.html import page, points
from ream.report.html.charts import COLOURS, MARKS, NAMES, Chart, log_ticks
from ream.report.html.curves import curves
from ream.report.html.looks import BY_NAME, looks, looks_of
from ream.report.html.picture import STYLE
from shipped import RECORDS

MIGRATE = "20261127T152939Z-migrate-native-3e05"
FORK = "20261128T171926Z-fork-native-c3d4"


def plots(record: Record) -> Iterable[Chart]:
    """All plots of variants on the page of a record."""
    summary = Summary.from_object(record.run, source="record")
    look, taken = looks_of(summary.rows), list(record.samples())
    yield from curves(summary.rows)
    yield from points.overviews(summary.rows, ["published", "base", "ream"])
    for number, row in enumerate(summary.rows):
        yield from points.of_row(row, f"row-{number}", look, "limit")
        its = [one for one in taken if one.row == row.row and one.role == "variant"]
        yield from points.drift(row, its, f"row-{number}", look)[0]


@pytest.mark.parametrize("name", [MIGRATE, FORK])
def test_a_variant_looks_the_same_in_all_plots_of_all_pages(name: str) -> None:
    record = Record.load(str(RECORDS / name), RECORDS)
    kinds = set()
    for plot in plots(record):
        kinds.add(plot.kind.partition("-")[0])
        drawn = zip(*(plot.scales[one] for one in (NAMES, COLOURS, MARKS)), strict=True)
        for variant, *look in drawn:
            its = variant.removesuffix(AGAIN)
            if its == variant and its in BY_NAME:
                assert tuple(look) == BY_NAME[its]
        assert {str(point["name"]) for point in plot.data["points"]} == set(plot.scales[NAMES])
    assert kinds == {"sweep", "overview", "ratio", "value", "share", "drift"}


def test_all_kinds_of_plots_of_variants_take_their_looks_from_the_table() -> None:
    for kind, spec in page.charts.kinds().items():
        colours = re.findall(r"var\(--series-\d\)", str(spec))
        assert not colours or kind == "effect", kind


def test_variants_that_are_no_one_s_name_can_be_told_apart() -> None:
    names = ["before", "before-again", *(f"fork-{number}of13" for number in range(1, 14)), "ream"]
    found = looks(names)
    assert len({found[name] for name in names}) == len(names)
    assert found == looks(names)
    for one, other in combinations(BY_NAME.values(), 2):
        assert one.shape != other.shape or one.colour != other.colour


@pytest.mark.parametrize(
    ("low", "high", "numbers"),
    [
        (0.78, 1.6, [0.8, 1, 1.2, 1.4, 1.6]),
        (0.93, 1.12, [0.95, 1, 1.05, 1.1]),
        (2.3, 14, [3, 5, 7, 10]),
        (1, 5000, [1, 10, 100, 1000]),
        (99.89, 100.11, [99.9, 99.95, 100, 100.05, 100.1]),
    ],
)
def test_an_axis_has_round_numbers_between_its_ends(
    low: float, high: float, numbers: list[float]
) -> None:
    assert log_ticks(low, high) == numbers
    with pytest.raises(ValueError, match="no axis"):
        log_ticks(high, low)


def test_every_colour_is_in_the_style_sheet_for_light_dark_and_paper() -> None:
    style = STYLE.read_text(encoding="utf-8")
    for look in looks(f"given-{number}" for number in range(16)).values():
        name = look.colour.removeprefix("var(").removesuffix(")")
        assert style.count(f"{name}: #") == 3, name
