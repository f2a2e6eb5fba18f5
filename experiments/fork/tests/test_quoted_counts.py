# SPDX-License-Identifier: GPL-2.0-only
"""What the README says of each patch's locked operations is what its record holds."""

from pathlib import Path

import pytest

from quoted_counts import counts_of, quoted_table
from ream.paths import CHECKOUT
from ream.report.contract import Counted, PatchStep

README = Path(__file__).parent.parent / "README.md"
RECORD = CHECKOUT / "docs/records/20261125T014526Z-fork-native-740e"


def quoted() -> dict[str, dict[str, float]]:
    """The table's numbers by row, then by patch."""
    (_, *rows), *lines = quoted_table(README, "patch")
    found: dict[str, dict[str, float]] = {row: {} for row in rows}
    for subject, *numbers in lines:
        for its, number in zip(found.values(), numbers, strict=True):
            its[subject] = float(number)
    return found


def locked(its: Counted, step: PatchStep) -> float:
    before, after = (its.variants[name].get("locked", 0) for name in (step.before, step.after))
    return (after - before) / its.number


@pytest.fixture(scope="module")
def counts() -> dict[str, Counted]:
    return counts_of(RECORD)


@pytest.mark.parametrize("row", quoted())
def test_the_locked_operations_that_a_patch_removes_are_those_of_the_record(
    counts: dict[str, Counted], row: str
) -> None:
    its, said = counts[row], quoted()[row]
    assert its.repeats
    steps = {step.subject: locked(its, step) for step in its.steps if step.of == "ream"}
    assert len(steps) == len(said) + 7
    for subject, number in steps.items():
        assert number == pytest.approx(said.get(subject, 0), abs=0.0051), subject
