# SPDX-License-Identifier: GPL-2.0-only
"""What the README says of instructions is what its records hold."""

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from quoted_counts import counts_of, quoted_table
from ream.paths import CHECKOUT
from ream.report.contract import Counted

README = Path(__file__).parent.parent / "README.md"


BOTH_BASES = r"of 6\.12 and 7\.3, from\n`docs/records/(\S+)` and\n`docs/records/(\S+)`"
"""What the table of arm64 is from."""


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


def quoted_of_arm64() -> dict[str, dict[str, float]]:
    """The other table's numbers by row, then by base and variant."""
    (_, *heads), *lines = quoted_table(README, "arm64 row")
    return {row: dict(zip(heads, map(float, its), strict=True)) for row, *its in lines}


@pytest.fixture(scope="module")
def of_arm64() -> Mapping[str, Mapping[str, Counted]]:
    """By base, then by row."""
    said = re.search(BOTH_BASES, README.read_text())
    assert said
    records = (counts_of(CHECKOUT / "docs/records" / name) for name in said.groups())
    return dict(zip(("6.12", "7.3"), records, strict=True))


@pytest.mark.parametrize("row", quoted_of_arm64())
def test_the_instructions_of_a_row_on_arm64_are_those_of_the_records(
    of_arm64: Mapping[str, Mapping[str, Counted]], row: str
) -> None:
    for head, number in quoted_of_arm64()[row].items():
        base, variant = head.split()
        its = of_arm64[base][row]
        assert its.repeats
        there = its.variants[variant]["instructions"] / its.number
        assert there == pytest.approx(number, abs=0.051), head
