# SPDX-License-Identifier: GPL-2.0-only
"""What the README says of instructions is what its record holds."""

import re
from pathlib import Path

import pytest

from quoted_counts import counts_of, quoted_table
from ream.paths import CHECKOUT
from ream.report.contract import Counted

README = Path(__file__).parent.parent / "README.md"


def quoted() -> dict[str, dict[str, float]]:
    """The table's numbers by row, then by variant."""
    (_, *variants), *lines = quoted_table(README, "row")
    return {row: dict(zip(variants, map(float, its), strict=True)) for row, *its in lines}


@pytest.fixture(scope="module")
def counts() -> dict[str, Counted]:
    said = re.search(
        r"^Instructions for each page, from `docs/records/(\S+)`", README.read_text(), re.MULTILINE
    )
    assert said
    (name,) = said.groups()
    return counts_of(CHECKOUT / "docs/records" / name)


@pytest.mark.parametrize("row", quoted())
def test_the_instructions_of_a_row_are_those_of_the_record(
    counts: dict[str, Counted], row: str
) -> None:
    its, said = counts[row], quoted()[row]
    assert its.repeats
    for variant, number in said.items():
        there = its.variants[variant]["instructions"] / its.number
        assert there == pytest.approx(number, abs=0.051), variant
