# SPDX-License-Identifier: GPL-2.0-only
"""What the README says of instructions on arm64 is what its records hold."""

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from quoted_counts import counts_of, quoted_table
from ream.paths import CHECKOUT
from ream.report.contract import Counted

README = Path(__file__).parent.parent / "README.md"


def quoted() -> dict[str, dict[str, float]]:
    """The table's numbers by row, then by base and variant."""
    (_, *heads), *lines = quoted_table(README, "row")
    return {row: dict(zip(heads, map(float, its), strict=True)) for row, *its in lines}


@pytest.fixture(scope="module")
def counts() -> Mapping[str, Mapping[str, Counted]]:
    """By base, then by row."""
    said = re.search(r"of 6\.12 and 7\.3, from\n`(\S+)` and\n`(\S+)`", README.read_text())
    assert said
    records = (counts_of(CHECKOUT / name) for name in said.groups())
    return dict(zip(("6.12", "7.3"), records, strict=True))


@pytest.mark.parametrize("row", quoted())
def test_the_instructions_of_a_row_on_arm64_are_those_of_the_records(
    counts: Mapping[str, Mapping[str, Counted]], row: str
) -> None:
    for head, number in quoted()[row].items():
        base, variant = head.split()
        its = counts[base][row]
        assert its.repeats
        there = its.variants[variant]["instructions"] / its.number
        assert there == pytest.approx(number, abs=0.0051), head
