# SPDX-License-Identifier: GPL-2.0-only
"""What the README says of each patch's locked operations is what its record holds."""

from pathlib import Path

import pytest

from quoted_counts import counts_of, quoted_table
from ream.paths import CHECKOUT
from ream.report.contract import Counted, PatchStep

README = Path(__file__).parent.parent / "README.md"
RECORD = CHECKOUT / "docs/records/20261126T201344Z-fork-native-baa6"


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


CALLS = CHECKOUT / "docs/records/20261126T205446Z-fork-native-dffe"
SHARED = "copy_page_range"


def share(its: Counted, variant: str) -> float:
    """Share of a fork's instructions in copy_page_range() and its callees."""
    inclusive = its.inclusive[variant][SHARED]["instructions"]
    return inclusive / its.variants[variant]["instructions"]


@pytest.mark.parametrize("line", [*quoted_table(README, "process")][1:], ids=lambda its: its[0])
def test_what_a_fork_and_an_exit_execute_is_what_the_record_has(line: list[str]) -> None:
    process, *said = line
    found = counts_of(CALLS)
    fork, exits = found[f"call-fork-{process}"], found[f"call-exit-{process}"]
    assert fork.repeats
    assert exits.repeats
    three = ("before", "published", "ream")
    expected = [fork.variants[name]["instructions"] / fork.number for name in three]
    expected += [share(fork, name) for name in ("before", "ream")]
    expected += [exits.variants[name]["instructions"] / exits.number for name in three]
    for number, quoted in zip(expected, said, strict=True):
        digits = len(quoted.partition(".")[2])
        assert number == pytest.approx(float(quoted), abs=0.51 * 10**-digits), quoted
