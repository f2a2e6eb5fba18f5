# SPDX-License-Identifier: GPL-2.0-only
"""What the README says of instructions is what its record holds."""

import re
from pathlib import Path

import pytest

from ream.paths import CHECKOUT
from ream.record.record import Record
from ream.report.contract import Counted, Summary

README = Path(__file__).parent.parent / "README.md"


def cells(line: str) -> list[str]:
    return [cell.strip().strip("`") for cell in line.strip("|\n").split("|")]


def quoted() -> dict[str, dict[str, float]]:
    """The table's numbers by row, then by variant."""
    (table,) = re.findall(r"^\| row \|.*\n(?:\|.*\n)+", README.read_text(), re.MULTILINE)
    head, _, *lines = table.splitlines()
    found = {}
    for line in lines:
        row, *numbers = cells(line)
        found[row] = dict(zip(cells(head)[1:], map(float, numbers), strict=True))
    return found


@pytest.fixture(scope="module")
def counts() -> dict[str, Counted]:
    (name,) = set(re.findall(r"docs/records/(\S+-mprotect-native-[0-9a-f]+)", README.read_text()))
    record = CHECKOUT / "docs/records" / name
    run = Record.load(str(record), record.parent).run
    rows = Summary.from_object(run, source=str(record)).rows
    return {row.row: row.counted for row in rows if row.counted is not None}


@pytest.mark.parametrize("row", quoted())
def test_the_instructions_of_a_row_are_those_of_the_record(
    counts: dict[str, Counted], row: str
) -> None:
    its, said = counts[row], quoted()[row]
    assert its.repeats
    for variant, number in said.items():
        there = its.variants[variant]["instructions"] / its.number
        assert there == pytest.approx(number, abs=0.051), variant
