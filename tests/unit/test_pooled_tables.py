# SPDX-License-Identifier: GPL-2.0-only
"""What README.md and docs/results.md quote of types of CPU is pooled over runs."""

import re
from collections.abc import Iterator
from functools import cache

import pytest

from ream.history.pooled import ByCpu, OverRuns, Place, lines, pooled, ratios_in
from ream.paths import CHECKOUT, RECORDS

CPUS = {
    "Intel Xeon": "Intel(R) Xeon(R) Processor (family 6 model 167)",
    "Zen 3": "AMD EPYC (family 25 model 1)",
    "Zen 4": "AMD EPYC (family 25 model 17)",
}
VARIANTS = ("published", "ream")
NOT_MEASURED = "-"
ROW = re.compile(r"^\| `([a-z-]+)`, `([\w-]+)`[^|]*\|[^|]*\|(.*)\|$", re.MULTILINE)


@cache
def found() -> dict[Place, ByCpu]:
    return pooled(ratios_in(RECORDS))


def cell(its: OverRuns | None) -> str:
    """The cell of README.md: the factor, = if the interval contains 1, and the number of runs."""
    if its is None:
        return NOT_MEASURED
    ratio, low, high = its.estimate.ratio, its.estimate.low, its.estimate.high
    assert low is not None
    assert high is not None
    undecided = " =" if low <= 1 <= high else ""
    earlier = " *" if its.earlier else ""
    return f"{1 / ratio:.2f}x{undecided}{earlier} ({len(its.runs)})"


def quoted() -> Iterator[tuple[str, str, list[str]]]:
    text = (CHECKOUT / "README.md").read_text()
    for experiment, row, cells in ROW.findall(text[text.index("## The experiments") :]):
        yield experiment, row, [cell.strip() for cell in cells.split("|")]


@pytest.mark.parametrize(
    ("experiment", "row", "cells"), [pytest.param(*one, id=one[1]) for one in quoted()]
)
def test_a_row_of_the_readme_is_pooled_over_runs(
    experiment: str, row: str, cells: list[str]
) -> None:
    expected = [
        cell(found().get((experiment, row, variant), {}).get(cpu))
        for variant in VARIANTS
        for cpu in CPUS.values()
    ]
    assert cells == expected


def test_the_readme_has_such_rows() -> None:
    assert len(list(quoted())) >= 5


def test_results_md_prints_what_the_command_prints() -> None:
    text = (CHECKOUT / "docs/results.md").read_text()
    (block,) = re.findall(r"ream history --pooled.*?```\n\n```\n(.*?)```", text, re.DOTALL)
    printed = list(lines(found()))
    shown = block.splitlines()
    heads = [number for number, line in enumerate(shown) if not line.startswith(" ")]
    assert len(heads) >= 10
    for begin, end in zip(heads, [*heads[1:], len(shown)], strict=True):
        at = printed.index(shown[begin])
        assert printed[at : at + end - begin] == shown[begin:end]
